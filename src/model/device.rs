//! Which device a byte lives on.

use std::fmt;

/// A device type as PyTorch numbers it (`c10::DeviceType` in `c10/core/DeviceType.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceKind(pub u8);

impl DeviceKind {
    /// Host memory.
    pub const CPU: Self = Self(0);
    /// NVIDIA GPUs, and AMD ones too: ROCm builds keep the number.
    pub const CUDA: Self = Self(1);
    /// Intel GPUs.
    pub const XPU: Self = Self(12);
    /// Apple GPUs.
    pub const MPS: Self = Self(13);
    /// Meta's accelerators.
    pub const MTIA: Self = Self(19);
    /// Out-of-tree back ends such as Ascend NPUs.
    pub const PRIVATE_USE: Self = Self(20);

    /// The name that PyTorch uses in `torch.device` strings.
    pub fn name(self) -> &'static str {
        match self.0 {
            0 => "cpu",
            1 => "cuda",
            6 => "hip",
            9 => "xla",
            12 => "xpu",
            13 => "mps",
            15 => "hpu",
            19 => "mtia",
            20 => "privateuseone",
            _ => "device",
        }
    }
}

/// One device: its type and its index within the process (`cuda:0`). Index −1 means "no index", as for the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Device {
    /// The device type.
    pub kind: DeviceKind,
    /// The visible index, or −1.
    pub index: i8,
}

impl Device {
    /// Host memory.
    pub const CPU: Self = Self { kind: DeviceKind::CPU, index: -1 };

    /// The CUDA device with this index. Indices beyond 127 (no machine has them) are clamped.
    pub fn cuda(index: i64) -> Self {
        Self::new(DeviceKind::CUDA, index)
    }

    /// A device of any type. Indices outside −1 to 127 are clamped.
    pub fn new(kind: DeviceKind, index: i64) -> Self {
        Self { kind, index: index.clamp(-1, 127) as i8 }
    }

    /// Whether this is host memory, which lenses leave out unless it is asked for.
    pub fn is_host(self) -> bool {
        self.kind == DeviceKind::CPU
    }
}

impl Default for Device {
    fn default() -> Self {
        Self::cuda(0)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.index < 0 {
            f.write_str(self.kind.name())
        } else {
            write!(f, "{}:{}", self.kind.name(), self.index)
        }
    }
}

/// What a file says of a device: its name and memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceInfo {
    /// Which device.
    pub device: Device,
    /// The product name, empty when the file doesn't give it.
    pub name: String,
    /// The board's memory, when the file gives it.
    pub total_bytes: Option<u64>,
    /// The board's UUID, empty when the file doesn't give it.
    pub uuid: String,
}
