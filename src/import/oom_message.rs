//! Out-of-memory messages of PyTorch, of every wording since 1.0, parsed into their figures.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::{Device, DeviceKind, MarkerKind, parse_bytes};

/// What a message says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OomMessage {
    pub device: Device,
    pub kind: MarkerKind,
    /// The sentences with figures, without the advice.
    pub text: String,
}

/// A figure's name and the wordings around it; `@` stands for the figure. PyTorch 2.1 and 2.2 wrote "capacty".
const WORDINGS: &[(Figure, &[&str])] = &[
    (Figure::Requested, &["[Tt]ried to allocate @"]),
    (Figure::Capacity, &["total capaci?ty of @", "@ total capacity", "max allowed: @"]),
    (Figure::Free, &["of which @ is free", "allocated; @ free"]),
    (Figure::Allocated, &["@ is allocated by PyTorch", "@ already allocated", "(?:MPS|XPU) allocated: @"]),
    (Figure::Reserved, &["@ reserved in total by PyTorch", "@ cached"]),
    (Figure::Unallocated, &["@ is reserved by PyTorch but unallocated"]),
    (Figure::PrivatePool, &["@ allocated in private pools"]),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Requested,
    Capacity,
    Free,
    Allocated,
    Reserved,
    Unallocated,
    PrivatePool,
}

static PATTERNS: LazyLock<Vec<(Figure, Regex)>> = LazyLock::new(|| {
    let size = r"(?P<size>\d+(?:\.\d+)? ?(?:[KMGT]i?B|bytes|B)\b)";
    let patterns = WORDINGS.iter().flat_map(|(figure, wordings)| {
        wordings.iter().filter_map(|wording| Some((*figure, Regex::new(&wording.replace('@', size)).ok()?)))
    });
    patterns.collect()
});

static DEVICE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\b(?:GPU|XPU|device) (?P<index>\d{1,3})\b").ok());

/// Reads the message in a line, if there is one.
pub(super) fn parse(line: &str) -> Option<OomMessage> {
    let start = [
        "CUDA out of memory",
        "HIP out of memory",
        "XPU out of memory",
        "MPS backend out of memory",
        "NPU out of memory",
    ]
    .iter()
    .find_map(|words| line.find(words))?;
    let message = &line[start..];
    let size = |figure: Figure| {
        let mut found = PATTERNS.iter().filter(|(of, _)| *of == figure);
        found.find_map(|(_, pattern)| parse_bytes(pattern.captures(message)?.name("size")?.as_str()))
    };
    let allocated_bytes = size(Figure::Allocated);
    // The newer wording gives what lies idle instead of the sum.
    let reserved_bytes =
        size(Figure::Reserved).or_else(|| Some(allocated_bytes?.saturating_add(size(Figure::Unallocated)?)));
    let kind = match message.as_bytes() {
        [b'X', ..] => DeviceKind::XPU,
        [b'M', ..] => DeviceKind::MPS,
        [b'N', ..] => DeviceKind::PRIVATE_USE,
        _ => DeviceKind::CUDA,
    };
    let index = DEVICE
        .as_ref()
        .and_then(|device| device.captures(message)?.name("index")?.as_str().parse::<i64>().ok())
        .unwrap_or(0);
    // In a line of JSON, other fields follow the message's quote.
    let ends = [" If reserved", " See documentation", "\""];
    let end = ends.iter().filter_map(|end| message.find(end)).min().unwrap_or(message.len());
    Some(OomMessage {
        device: Device::new(kind, index),
        kind: MarkerKind::OutOfMemory {
            requested_bytes: size(Figure::Requested),
            free_bytes: size(Figure::Free),
            capacity_bytes: size(Figure::Capacity),
            allocated_bytes,
            reserved_bytes,
            private_pool_bytes: size(Figure::PrivatePool),
        },
        text: message[..end].trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1_048_576.0;

    fn figures(line: &str) -> [Option<u64>; 6] {
        match parse(line).unwrap().kind {
            MarkerKind::OutOfMemory {
                requested_bytes,
                free_bytes,
                capacity_bytes,
                allocated_bytes,
                reserved_bytes,
                private_pool_bytes,
            } => [
                requested_bytes,
                free_bytes,
                capacity_bytes,
                allocated_bytes,
                reserved_bytes,
                private_pool_bytes,
            ],
            other => panic!("{other:?}"),
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "compared with optional figures")]
    fn mib(value: f64) -> Option<u64> {
        Some((value * MIB).round() as u64)
    }

    #[test]
    fn wordings_of_all_versions() {
        let gib = |value: f64| mib(value * 1024.0);
        let old = "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 10.75 GiB total capacity; 9.50 GiB already allocated; 13.50 MiB free; 9.75 GiB reserved in total by PyTorch)";
        assert_eq!(figures(old), [mib(20.0), mib(13.5), gib(10.75), gib(9.5), gib(9.75), None]);
        assert_eq!(parse(old).unwrap().device, Device::cuda(1));
        let oldest = "CUDA out of memory. Tried to allocate 8.00 MiB (GPU 0; 11.00 GiB total capacity; 10.50 GiB already allocated; 2.50 MiB free; 3.00 MiB cached)";
        assert_eq!(figures(oldest)[4], mib(3.0));
        let new = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 14.00 MiB. GPU 0 has a total capacity of 139.75 GiB of which 136.25 GiB is free. Including non-PyTorch memory, this process has 3.41 GiB memory in use. Of the allocated memory 2.50 GiB is allocated by PyTorch, with 46.00 MiB allocated in private pools (e.g., CUDA Graphs), and 512.00 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try";
        assert_eq!(figures(new), [mib(14.0), gib(136.25), gib(139.75), gib(2.5), gib(3.0), mib(46.0)]);
        assert!(parse(new).unwrap().text.ends_with("but unallocated."));
        let apple = "MPS backend out of memory (MPS allocated: 17.50 GB, other allocations: 1.00 GB, max allowed: 18.13 GB). Tried to allocate 256 bytes";
        assert_eq!(figures(apple)[..1], [Some(256)]);
        assert_eq!(parse(apple).unwrap().device.kind, DeviceKind::MPS);
        assert_eq!(parse("out of memory"), None);
    }
}
