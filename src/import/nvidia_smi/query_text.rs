//! `nvidia-smi -q` as text (`-d MEMORY` or whole): `key : value` lines under a section a GPU.

use rustc_hash::FxHashMap;

use super::samples::{MIB, Samples, is_failure, parse_cell};
use crate::import::text::LogText;
use crate::import::wall_time::find_stamp;
use crate::import::{ImportError, Input, Progress};
use crate::model::{Device, Quantity, Recording};

/// Whether a text is such a report.
pub(super) fn detect(text: &str) -> bool {
    let start = text.lines().take(40);
    start.filter(|line| line.contains("NVSMI LOG") || line.trim_start().starts_with("Attached GPUs")).count()
        >= 1
}

/// Reads one report or many.
pub(super) fn import(input: &Input, progress: &Progress, log: LogText) -> Result<Recording, ImportError> {
    let mut samples = Samples::new("nvidia-smi -q");
    let mut gpus: FxHashMap<String, i64> = FxHashMap::default();
    let mut device: Option<Device> = None;
    let mut section = String::new();
    let mut section_depth = 0;
    let mut gpu_depth = 0;
    let mut pid: Option<u64> = None;
    let mut process_name = String::new();
    for line in log.text.lines() {
        let depth = line.len() - line.trim_start().len();
        let line = line.trim();
        if line.contains("NVSMI LOG") {
            if progress.is_cancelled() {
                return Err(ImportError::Cancelled { file: input.name() });
            }
            device = None;
            continue;
        }
        let Some((key, value)) = line.split_once(" : ").map(|(key, value)| (key.trim(), value.trim())) else {
            let words = line.trim_end_matches(':').trim();
            if let Some(bus_id) = words.strip_prefix("GPU ").filter(|id| id.contains(':')) {
                let next = gpus.len() as i64;
                device = Some(Device::cuda(*gpus.entry(bus_id.to_owned()).or_insert(next)));
                (gpu_depth, pid) = (depth, None);
                section.clear();
            } else if !words.is_empty() {
                words.clone_into(&mut section);
                section_depth = depth;
            }
            continue;
        };
        let key_lower = key.to_ascii_lowercase();
        if key_lower == "timestamp" {
            match find_stamp(value) {
                Some(stamp) => samples.set_time(stamp),
                None => samples.next_untimed(),
            }
            continue;
        }
        let Some(device) = device else { continue };
        if is_failure(value) {
            samples.gpu_failed(device, &format!("{device}: {value}"));
        }
        // A section ends where a line stands as far left as its title; MIG devices have a memory section of their own.
        let in_memory = section.eq_ignore_ascii_case("FB Memory Usage")
            && depth > section_depth
            && section_depth <= gpu_depth + 4;
        match key_lower.as_str() {
            "product name" => samples.device(device, value, "", None),
            "gpu uuid" => samples.device(device, "", value, None),
            "total" if in_memory => {
                if let Some(total) = parse_cell(value, MIB) {
                    samples.gpu(Quantity::Capacity, device, total);
                    samples.device(device, "", "", u64::try_from(total).ok());
                }
            }
            "used" if in_memory => {
                samples.count_row();
                if let Some(used) = parse_cell(value, MIB) {
                    samples.gpu(Quantity::DriverUsed, device, used);
                }
            }
            "process id" => pid = value.parse().ok(),
            "name" if pid.is_some() => value.clone_into(&mut process_name),
            "used gpu memory" => {
                if let (Some(pid), Some(bytes)) = (pid, parse_cell(value, MIB)) {
                    samples.process(device, pid, &process_name, bytes);
                }
            }
            _ => {}
        }
    }
    samples.finish(input, log.cut)
}

#[cfg(test)]
mod tests {
    use crate::import::{Input, Progress, import};
    use crate::model::{Clock, Quantity};

    #[test]
    fn memory_sections_of_two_reports() {
        let report = |second: u32, used: u32| {
            format!(
                "\n==============NVSMI LOG==============\n\nTimestamp                                 : Tue Dec  1 05:53:{second} 2026\nDriver Version                            : 580.95.05\n\nAttached GPUs                             : 1\nGPU 00000000:01:00.0\n    FB Memory Usage\n        Total                             : 143771 MiB\n        Reserved                          : 616 MiB\n        Used                              : {used} MiB\n        Free                              : 142000 MiB\n    BAR1 Memory Usage\n        Total                             : 262144 MiB\n        Used                              : 1 MiB\n    Processes\n        Process ID                        : 445\n            Type                          : C\n            Name                          : python\n            Used GPU Memory               : {used} MiB\n"
            )
        };
        let text = format!("{}{}", report(49, 1000), report(50, 1001));
        let log = import(&Input::from_bytes("q.txt", text.into_bytes()), &Progress::default()).unwrap();
        assert_eq!((log.clock, log.format), (Clock::LocalWall, "nvidia-smi -q"));
        let bytes = |quantity: Quantity| {
            log.series.iter().find(|series| series.quantity == quantity).unwrap().bytes.clone()
        };
        assert_eq!(bytes(Quantity::DriverUsed), [1000 << 20, 1001 << 20]);
        assert_eq!(bytes(Quantity::ProcessUsed), [1000 << 20, 1001 << 20]);
        assert_eq!(log.devices[0].total_bytes, Some(143_771 << 20));
    }
}
