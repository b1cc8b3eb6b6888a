//! Like tools of other makers: `gpustat` (text and JSON), `rocm-smi` and `amd-smi` (JSON).

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::samples::{MIB, Samples, parse_cell};
use crate::import::text::{LogText, lines};
use crate::import::wall_time::find_stamp;
use crate::import::{ImportError, Input, Progress};
use crate::model::{Device, Quantity, Recording};

/// `[0] NVIDIA H200 | 35°C,   0 % |  600 / 143771 MB | user(500M) user/445(100M)`
static GPUSTAT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"^\[(?P<index>\d{1,3})\]\s+(?P<name>[^|]+?)\s*\|[^|]*\|\s*(?P<used>\d+)\s*/\s*(?P<total>\d+)\s*(?:MB|MiB)?\s*(?:\||$)(?P<processes>.*)",
    )
    .ok()
});

/// `user:python/445(100M)` or `python/445(100M)` behind a gpustat row.
static GPUSTAT_PROCESS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?P<name>[^\s:/]+)/(?P<pid>\d+)\((?P<used>\d+)M\)").ok());

/// Whether a text is gpustat's.
pub(super) fn detect_gpustat(text: &str) -> bool {
    let Some(pattern) = GPUSTAT.as_ref() else { return false };
    text.lines().take(40).any(|line| pattern.is_match(line.trim_end()))
}

/// Reads gpustat's text, once or repeated.
pub(super) fn import_gpustat(
    input: &Input,
    progress: &Progress,
    log: LogText,
) -> Result<Recording, ImportError> {
    let mut samples = Samples::new("gpustat");
    let mut is_timed = false;
    for (_, line) in lines(&log.text) {
        if progress.is_cancelled() {
            return Err(ImportError::Cancelled { file: input.name() });
        }
        let Some(row) = GPUSTAT.as_ref().and_then(|pattern| pattern.captures(line.trim_end())) else {
            // The line above the rows: `host  Tue Dec  1 05:53:49 2026  580.95`.
            if let Some(stamp) = find_stamp(line) {
                samples.set_time(stamp);
                is_timed = true;
            }
            continue;
        };
        let index = row["index"].parse().unwrap_or(0);
        if !is_timed && index == 0 {
            samples.next_untimed();
        }
        samples.count_row();
        let device = Device::cuda(index);
        let total = parse_cell(&row["total"], MIB);
        samples.device(device, &row["name"], "", total.and_then(|total| u64::try_from(total).ok()));
        if let Some(used) = parse_cell(&row["used"], MIB) {
            samples.gpu(Quantity::DriverUsed, device, used);
        }
        if let Some(total) = total {
            samples.gpu(Quantity::Capacity, device, total);
        }
        let processes = GPUSTAT_PROCESS.iter().flat_map(|pattern| pattern.captures_iter(&row["processes"]));
        for process in processes {
            if let (Ok(pid), Some(bytes)) = (process["pid"].parse(), parse_cell(&process["used"], MIB)) {
                samples.process(device, pid, &process["name"], bytes);
            }
        }
    }
    samples.finish(input, log.cut)
}

/// Whether a text is the JSON of gpustat, rocm-smi or amd-smi.
pub(super) fn detect_json(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with(['{', '['])
        && (text.contains("\"VRAM Total Used Memory (B)\"")
            || text.contains("\"used_vram\"")
            || text.contains("\"query_time\"") && text.contains("\"memory.used\""))
}

/// Reads one JSON document of these tools.
pub(super) fn import_json(input: &Input, log: LogText) -> Result<Recording, ImportError> {
    let value: Value = serde_json::from_str(log.text.trim()).map_err(|error| {
        ImportError::content(format!("the JSON is damaged at line {} ({error})", error.line()), input.name())
    })?;
    let mut samples;
    if let Some(gpus) = value.get("gpus").and_then(Value::as_array) {
        samples = Samples::new("gpustat JSON");
        match value.get("query_time").and_then(Value::as_str).and_then(find_stamp) {
            Some(stamp) => samples.set_time(stamp),
            None => samples.next_untimed(),
        }
        for (position, gpu) in gpus.iter().enumerate() {
            gpustat_gpu(&mut samples, position, gpu);
        }
    } else if let Some(cards) = value.as_object() {
        samples = Samples::new("rocm-smi JSON");
        samples.next_untimed();
        for (name, card) in cards {
            let Some(index) = name.strip_prefix("card").and_then(|index| index.parse().ok()) else {
                continue;
            };
            let bytes =
                |key: &str| card.get(key).and_then(Value::as_str).and_then(|text| parse_cell(text, 1));
            let product = card.get("Card Series").or_else(|| card.get("Card series")).and_then(Value::as_str);
            let figures = (bytes("VRAM Total Used Memory (B)"), bytes("VRAM Total Memory (B)"));
            gpu(&mut samples, Device::cuda(index), product.unwrap_or_default(), figures);
        }
    } else {
        samples = Samples::new("amd-smi JSON");
        samples.next_untimed();
        for card in value.as_array().into_iter().flatten() {
            let index = card.get("gpu").and_then(Value::as_i64).unwrap_or(0);
            // `{"value": 1024, "unit": "MB"}`
            let bytes = |key: &str| {
                let figure = card.get("mem_usage").or_else(|| card.get("vram"))?.get(key)?;
                let unit = figure.get("unit").and_then(Value::as_str).unwrap_or("MB");
                parse_cell(&format!("{} {unit}", figure.get("value")?), MIB)
            };
            gpu(&mut samples, Device::cuda(index), "", (bytes("used_vram"), bytes("total_vram")));
        }
    }
    samples.finish(input, log.cut)
}

fn gpustat_gpu(samples: &mut Samples, position: usize, card: &Value) {
    let index = card.get("index").and_then(Value::as_i64).unwrap_or(position as i64);
    let mib = |value: &Value, key: &str| {
        value.get(key).and_then(Value::as_i64).and_then(|mib| mib.checked_mul(MIB))
    };
    let text = |key: &str| card.get(key).and_then(Value::as_str).unwrap_or_default();
    let device = Device::cuda(index);
    samples.device(device, "", text("uuid"), None);
    gpu(samples, device, text("name"), (mib(card, "memory.used"), mib(card, "memory.total")));
    for process in card.get("processes").and_then(Value::as_array).into_iter().flatten() {
        let pid = process.get("pid").and_then(Value::as_u64);
        if let (Some(pid), Some(bytes)) = (pid, mib(process, "gpu_memory_usage")) {
            let name = process.get("command").and_then(Value::as_str).unwrap_or_default();
            samples.process(device, pid, name, bytes);
        }
    }
}

fn gpu(samples: &mut Samples, device: Device, name: &str, (used, total): (Option<i64>, Option<i64>)) {
    samples.count_row();
    samples.device(device, name, "", total.and_then(|total| u64::try_from(total).ok()));
    if let Some(used) = used {
        samples.gpu(Quantity::DriverUsed, device, used);
    }
    if let Some(total) = total {
        samples.gpu(Quantity::Capacity, device, total);
    }
}

#[cfg(test)]
mod tests {
    use crate::import::{Input, Progress, import};
    use crate::model::{Quantity, Recording};

    fn read(text: &str) -> Recording {
        import(&Input::from_bytes("x", text.as_bytes().to_vec()), &Progress::default()).unwrap()
    }

    fn used(recording: &Recording, quantity: Quantity) -> Vec<i64> {
        recording.series.iter().find(|series| series.quantity == quantity).unwrap().bytes.clone()
    }

    #[test]
    fn gpustat_as_text_and_json() {
        let log = read(
            "box  Tue Dec  1 05:53:49 2026  580.95.05\n[0] NVIDIA H200 | 35°C,   0 % |   600 / 143771 MB | me:python/445(500M)\n",
        );
        assert_eq!(used(&log, Quantity::DriverUsed), [600 << 20]);
        assert_eq!(used(&log, Quantity::ProcessUsed), [500 << 20]);
        let log = read(
            r#"{"hostname": "box", "query_time": "2026-12-01T05:53:49.1", "gpus": [{"index": 0, "uuid": "GPU-1", "name": "NVIDIA H200", "memory.used": 600, "memory.total": 143771, "processes": [{"command": "python", "pid": 445, "gpu_memory_usage": 500}]}]}"#,
        );
        assert_eq!(used(&log, Quantity::DriverUsed), [600 << 20]);
        assert_eq!(log.devices[0].uuid, "GPU-1");
    }

    #[test]
    fn amd_as_json() {
        let log = read(
            r#"{"card0": {"VRAM Total Memory (B)": "68702699520", "VRAM Total Used Memory (B)": "10960896"}, "system": {}}"#,
        );
        assert_eq!(used(&log, Quantity::DriverUsed), [10_960_896]);
        let log = read(
            r#"[{"gpu": 1, "mem_usage": {"total_vram": {"value": 196592, "unit": "MB"}, "used_vram": {"value": 283, "unit": "MB"}}}]"#,
        );
        assert_eq!(used(&log, Quantity::DriverUsed), [283 << 20]);
        assert_eq!(log.series[0].device.index, 1);
    }
}
