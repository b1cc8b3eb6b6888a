//! The boxed table that plain `nvidia-smi` prints, once or again and again (`-l`, `watch`, a shell loop).

use std::sync::LazyLock;

use regex::Regex;

use super::samples::{MIB, Samples, is_failure_line, parse_cell};
use crate::import::text::{LogText, without_prefix};
use crate::import::wall_time::find_stamp;
use crate::import::{ImportError, Input, Progress};
use crate::model::{Device, Quantity, Recording};

struct Patterns {
    /// `|   0  NVIDIA H200    On  | 00000000:01:00.0 Off |`
    gpu: Regex,
    /// `21544MiB / 24564MiB`
    memory: Regex,
    /// `|    0   N/A  N/A   40213   C   .../bin/python   20916MiB |`
    process: Regex,
}

static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    Some(Patterns {
        gpu: Regex::new(r"^\|\s+(?P<index>\d+)\s+(?P<name>\S.*?)\s{2,}.*[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:").ok()?,
        memory: Regex::new(r"(?P<used>\d+)MiB\s*/\s*(?P<total>\d+)MiB").ok()?,
        process: Regex::new(
            r"^\|\s+(?P<gpu>\d+)\s+(?:(?:N/A|\d+)\s+(?:N/A|\d+)\s+)?(?P<pid>\d+)\s+(?P<type>[CGM+]{1,5})\s+(?P<name>\S.*?)\s+(?P<used>\d+MiB|N/A)\s*\|?\s*$",
        )
        .ok()?,
    })
});

/// Whether a text holds the box.
pub(super) fn detect(text: &str) -> bool {
    text.lines().take(400).any(|line| line.contains("| NVIDIA-SMI "))
}

/// Reads every box.
pub(super) fn import(input: &Input, progress: &Progress, log: LogText) -> Result<Recording, ImportError> {
    let mut samples = Samples::new("nvidia-smi table");
    let Some(patterns) = PATTERNS.as_ref() else {
        return Err(ImportError::content("the table can't be read", input.name()));
    };
    let mut device: Option<Device> = None;
    let mut pending_stamp = None;
    let mut in_mig = false;
    let mut in_processes = false;
    for line in log.text.lines() {
        let line = without_prefix(line);
        if line.contains("| NVIDIA-SMI ") {
            if progress.is_cancelled() {
                return Err(ImportError::Cancelled { file: input.name() });
            }
            match pending_stamp.take() {
                Some(stamp) => samples.set_time(stamp),
                None => samples.next_untimed(),
            }
            (device, in_mig, in_processes) = (None, false, false);
        } else if !line.trim_start().starts_with(['|', '+']) {
            // The time stands above the box, or in the line that `watch` writes at the top.
            if let Some(stamp) = find_stamp(line) {
                pending_stamp = Some(stamp);
            } else if is_failure_line(line) {
                samples.gpu_failed(Device::default(), line);
            } else if let Some(at) = line.find("  ") {
                pending_stamp = find_stamp(&line[at..]).or(pending_stamp);
            }
        } else if line.contains("MIG devices:") {
            in_mig = true;
        } else if line.contains("Processes:") {
            (in_mig, in_processes) = (false, true);
        } else if in_processes {
            if let Some(found) = patterns.process.captures(line) {
                let gpu = found["gpu"].parse().unwrap_or(0);
                if let (Ok(pid), Some(bytes)) = (found["pid"].parse(), parse_cell(&found["used"], MIB)) {
                    samples.process(Device::cuda(gpu), pid, &found["name"], bytes);
                }
            }
        } else if !in_mig {
            if let Some(found) = patterns.gpu.captures(line) {
                let of_row = Device::cuda(found["index"].parse().unwrap_or(0));
                samples.device(of_row, &found["name"], "", None);
                device = Some(of_row);
            } else if let (Some(of_row), Some(found)) = (device, patterns.memory.captures(line)) {
                samples.count_row();
                let bytes = |name: &str| parse_cell(&found[name], MIB);
                if let Some(used) = bytes("used") {
                    samples.gpu(Quantity::DriverUsed, of_row, used);
                }
                if let Some(total) = bytes("total") {
                    samples.gpu(Quantity::Capacity, of_row, total);
                    samples.device(of_row, "", "", u64::try_from(total).ok());
                }
                device = None;
            } else if line.contains("ERR!")
                && let Some(of_row) = device
            {
                samples.gpu_failed(of_row, &format!("{of_row}: ERR!"));
            }
        }
    }
    samples.finish(input, log.cut)
}

#[cfg(test)]
mod tests {
    use crate::import::{Input, Progress, import};
    use crate::model::{Clock, Device, Quantity};

    const BOX: &str = "\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|=========================================+========================+======================|
|   0  NVIDIA GeForce RTX 4090        Off |   00000000:01:00.0 Off |                  Off |
| 41%   63C    P2            311W /  450W |   21544MiB /  24564MiB |     97%      Default |
|                                         |                        |                  N/A |
|   1  NVIDIA GeForce RTX 4090        Off |   00000000:02:00.0 Off |                  Off |
|ERR!   63C    P2            311W /  450W |     544MiB /  24564MiB |     97%      Default |
+-----------------------------------------+------------------------+----------------------+
| MIG devices:                                                                            |
|  0    3   0   0  |           14366MiB / 19968MiB    | 42      0 |  3   0    2    0    0 |
|                  |               2MiB / 32767MiB    |           |                       |
+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|    0   N/A  N/A           40213      C   .../envs/t/bin/python                 20916MiB |
|    0         1234      G   /usr/lib/xorg/Xorg                   N/A
+-----------------------------------------------------------------------------------------+
";

    #[test]
    fn boxes_with_times_gpus_and_processes() {
        let text = format!("Mon Mar  2 09:15:00 2026       \n{BOX}Mon Mar  2 09:15:01 2026       \n{BOX}");
        let log = import(&Input::from_bytes("smi.log", text.into_bytes()), &Progress::default()).unwrap();
        assert_eq!((log.clock, log.format), (Clock::LocalWall, "nvidia-smi table"));
        let series = |quantity: Quantity, index: i64| {
            let found = log
                .series
                .iter()
                .find(|series| series.quantity == quantity && series.device == Device::cuda(index));
            found.unwrap().bytes.clone()
        };
        assert_eq!(series(Quantity::DriverUsed, 0), [21_544 << 20; 2]);
        assert_eq!(series(Quantity::DriverUsed, 1), [544 << 20; 2]);
        assert_eq!(series(Quantity::ProcessUsed, 0), [20_916 << 20; 2]);
        assert_eq!(log.devices[0].name, "NVIDIA GeForce RTX 4090");
        assert_eq!(log.series[0].times_ns[1] - log.series[0].times_ns[0], 1_000_000_000);
    }
}
