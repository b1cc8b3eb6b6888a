//! Like tools: `gpustat` (text and JSON), `rocm-smi` (text and JSON) and `amd-smi` (JSON). Their CSV is read with
//! nvidia-smi's.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::samples::{MIB, Samples, parse_cell};
use crate::import::text::{LogText, lines};
use crate::import::wall_time::find_stamp;
use crate::import::{ImportError, Input, Progress};
use crate::model::{Device, Quantity, Recording};
use crate::text::t;

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
    for (_, line) in lines(&log.text) {
        if progress.is_cancelled() {
            return Err(ImportError::Cancelled { file: input.name() });
        }
        let Some(row) = GPUSTAT.as_ref().and_then(|pattern| pattern.captures(line.trim_end())) else {
            // The line above the rows: `host  Tue Dec  1 05:53:49 2026  580.95`.
            if let Some(stamp) = find_stamp(line) {
                samples.set_time(stamp);
            }
            continue;
        };
        let index = row["index"].parse().unwrap_or(0);
        if index == 0 {
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

/// `GPU[0] : VRAM Total Used Memory (B): 4658221056`
static ROCM: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"^\s*GPU\[(?P<index>\d{1,3})\]\s*:\s*(?i:vram) Total (?P<used>Used )?Memory \(B\):\s*(?P<bytes>\d+)",
    )
    .ok()
});

/// Whether a text is rocm-smi's.
pub(super) fn detect_rocm(text: &str) -> bool {
    ROCM.as_ref().is_some_and(|pattern| text.lines().take(400).any(|line| pattern.is_match(line)))
}

/// Reads rocm-smi's text (`--showmeminfo vram`), once or repeated.
pub(super) fn import_rocm(
    input: &Input,
    progress: &Progress,
    log: LogText,
) -> Result<Recording, ImportError> {
    let mut samples = Samples::new("rocm-smi");
    for (_, line) in lines(&log.text) {
        if progress.is_cancelled() {
            return Err(ImportError::Cancelled { file: input.name() });
        }
        let Some(found) = ROCM.as_ref().and_then(|pattern| pattern.captures(line)) else {
            if let Some(stamp) = find_stamp(line) {
                samples.set_time(stamp);
            }
            continue;
        };
        let index = found["index"].parse().unwrap_or(0);
        let Some(bytes) = parse_cell(&found["bytes"], 1) else { continue };
        let device = Device::cuda(index);
        if found.name("used").is_some() {
            samples.count_row();
            samples.gpu(Quantity::DriverUsed, device, bytes);
        } else {
            // The first GPU's total begins a sample.
            if index == 0 {
                samples.next_untimed();
            }
            samples.device(device, "", "", u64::try_from(bytes).ok());
            samples.gpu(Quantity::Capacity, device, bytes);
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
            || text.contains("\"vram_used\"")
            || text.contains("\"query_time\"") && text.contains("\"memory.used\""))
}

/// Reads the JSON documents of these tools, one or several in a row.
pub(super) fn import_json(
    input: &Input,
    progress: &Progress,
    log: LogText,
) -> Result<Recording, ImportError> {
    let mut samples = Samples::new("gpustat JSON");
    let documents = serde_json::Deserializer::from_str(&log.text).into_iter::<Value>();
    for (position, document) in documents.enumerate() {
        if progress.is_cancelled() {
            return Err(ImportError::Cancelled { file: input.name() });
        }
        match document {
            Ok(document) => samples.recording().format = read_document(&mut samples, &document),
            Err(error) if position == 0 => {
                let cause = t!("the JSON is damaged at line {line} ({error})", line = error.line(), error);
                return Err(ImportError::content(cause, input.name()));
            }
            Err(error) => {
                samples.lose_row(error.line() as u64);
                break;
            }
        }
    }
    samples.finish(input, log.cut)
}

/// Reads one document; says which tool wrote it.
fn read_document(samples: &mut Samples, document: &Value) -> &'static str {
    if let Some(gpus) = document.get("gpus").and_then(Value::as_array) {
        match document.get("query_time").and_then(Value::as_str).and_then(find_stamp) {
            Some(stamp) => samples.set_time(stamp),
            None => samples.next_untimed(),
        }
        for (position, card) in gpus.iter().enumerate() {
            gpustat_gpu(samples, position, card);
        }
        return "gpustat JSON";
    }
    let cards = document.as_array().or_else(|| document.get("gpu_data").and_then(Value::as_array));
    if let Some(cards) = cards {
        amd_cards(samples, cards);
        return "amd-smi JSON";
    }
    samples.next_untimed();
    for (name, card) in document.as_object().into_iter().flatten() {
        let Some(index) = name.strip_prefix("card").and_then(|index| index.parse().ok()) else { continue };
        let bytes = |key: &str| card.get(key).and_then(Value::as_str).and_then(|text| parse_cell(text, 1));
        let product = card.get("Card Series").or_else(|| card.get("Card series")).and_then(Value::as_str);
        let figures = (bytes("VRAM Total Used Memory (B)"), bytes("VRAM Total Memory (B)"));
        gpu(samples, Device::cuda(index), product.unwrap_or_default(), figures);
    }
    "rocm-smi JSON"
}

/// amd-smi: `metric --mem-usage` nests the figures, `monitor` and its `timestamp` (Unix seconds) do not.
fn amd_cards(samples: &mut Samples, cards: &[Value]) {
    let mut first = None;
    for card in cards {
        let index = card.get("gpu").and_then(Value::as_i64).unwrap_or(0);
        let stamp = card.get("timestamp").and_then(Value::as_i64);
        match stamp.and_then(|seconds| find_stamp(&seconds.to_string())) {
            Some(stamp) => samples.set_time(stamp),
            // In a list of samples the first GPU comes again.
            None if *first.get_or_insert(index) == index => samples.next_untimed(),
            None => {}
        }
        // `{"value": 1024, "unit": "MB"}`, or the bare number.
        let bytes = |keys: [&str; 2]| {
            let nested = card.get("mem_usage").or_else(|| card.get("vram")).unwrap_or(card);
            let figure = keys.iter().find_map(|key| nested.get(key).or_else(|| card.get(key)))?;
            let unit = figure.get("unit").and_then(Value::as_str).unwrap_or("MB");
            parse_cell(&format!("{} {unit}", figure.get("value").unwrap_or(figure)), MIB)
        };
        let figures = (bytes(["used_vram", "vram_used"]), bytes(["total_vram", "vram_total"]));
        gpu(samples, Device::cuda(index), "", figures);
    }
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
    use crate::model::{Clock, Quantity, Recording};

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
        let log = read(concat!(
            r#"[{"timestamp": 1721245011, "gpu": 0, "vram_used": {"value": 283, "unit": "MB"}, "vram_total": 196300}]"#,
            "\n",
            r#"[{"timestamp": 1721245012, "gpu": 0, "vram_used": {"value": 284, "unit": "MB"}, "vram_total": 196300}]"#,
            "\n[{\"timestamp\": 17212"
        ));
        assert_eq!((log.clock, log.lost.events), (Clock::Unix, 1));
        assert_eq!(used(&log, Quantity::DriverUsed), [283 << 20, 284 << 20]);
    }

    #[test]
    fn amd_as_text_and_csv() {
        let screen = "\
============================ ROCm System Management Interface ============================
================================== Memory Usage (Bytes) ==================================
GPU[0]\t\t: VRAM Total Memory (B): 32195477504
GPU[0]\t\t: VRAM Total Used Memory (B): 30414307328
================================== End of ROCm SMI Log ===================================
";
        let log = read(&screen.repeat(2));
        assert_eq!((log.format, log.clock), ("rocm-smi", Clock::Order));
        assert_eq!(used(&log, Quantity::DriverUsed), [30_414_307_328; 2]);
        let log = read(
            "WARNING: AMD GPU device(s) is/are in a low-power state.\n\ndevice,VRAM Total Memory (B),VRAM Total Used Memory (B)\ncard0,8589934592,1073741824\ncard1,17179869184,2147483648\n",
        );
        assert_eq!(used(&log, Quantity::DriverUsed), [1_073_741_824]);
        assert_eq!(log.series.last().unwrap().device.index, 1);
        let log = read("gpu,total_vram,used_vram,free_vram\n0,16368,905,15463\n");
        assert_eq!(used(&log, Quantity::DriverUsed), [905 << 20]);
        let log = read(
            "timestamp,gpu,vram_used,vram_free,vram_total,vram_percent\n1721245011,0,283,196017,196300,0\n1721245012,0,290,196010,196300,0\n",
        );
        assert_eq!((log.clock, used(&log, Quantity::DriverUsed)), (Clock::Unix, vec![283 << 20, 290 << 20]));
    }
}
