//! `nvidia-smi -q -x`: one XML document or several in a row, the last one perhaps cut.

use quick_xml::Reader;
use quick_xml::events::Event;

use super::samples::{MIB, Samples, is_failure, parse_cell};
use crate::import::text::LogText;
use crate::import::wall_time::find_stamp;
use crate::import::{ImportError, Input, Progress};
use crate::model::{Device, Quantity, Recording};
use crate::text::{msg, t};

/// Elements lie no deeper than this; what does is skipped.
const MAX_DEPTH: usize = 64;

/// Whether a text is such a document.
pub(super) fn detect(text: &str) -> bool {
    text.trim_start().starts_with('<') && text.contains("<nvidia_smi_log")
}

/// Reads every document.
pub(super) fn import(input: &Input, progress: &Progress, log: LogText) -> Result<Recording, ImportError> {
    let mut samples = Samples::new("nvidia-smi XML");
    // Only the root's name begins a document in every version; prologs and DOCTYPEs between them are skipped.
    for (number, document) in log.text.split("<nvidia_smi_log").skip(1).enumerate() {
        if progress.is_cancelled() {
            return Err(ImportError::Cancelled { file: input.name() });
        }
        let body = document.split_once('>').map_or("", |(_, body)| body);
        let body = body.split("</nvidia_smi_log").next().unwrap_or(body);
        if let Err(error) = read_document(body, &mut samples) {
            samples.lose_row(number as u64 + 1);
            let text = t!("document {number} is damaged: {error}", number = number + 1, error);
            samples.recording().warn("damaged", text);
        }
    }
    samples.finish(input, log.cut)
}

/// What is gathered of one GPU until its element ends.
#[derive(Default)]
struct Gpu {
    name: String,
    uuid: String,
    total: Option<i64>,
    used: Option<i64>,
    reserved: Option<i64>,
    failure: String,
    processes: Vec<Process>,
    instances: Vec<Instance>,
}

/// A MIG instance.
#[derive(Default)]
struct Instance {
    gpu_instance: String,
    compute_instance: String,
    used: Option<i64>,
}

#[derive(Default)]
struct Process {
    pid: Option<u64>,
    name: String,
    used: Option<i64>,
}

fn read_document(body: &str, samples: &mut Samples) -> Result<(), quick_xml::Error> {
    let mut reader = Reader::from_str(body);
    // Some drivers leave elements unbalanced, and process names hold raw ampersands.
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    let mut path: Vec<String> = Vec::new();
    let mut gpu = Gpu::default();
    let mut index = 0;
    let mut is_timed = false;
    loop {
        match reader.read_event()? {
            Event::Start(element) => {
                if path.len() < MAX_DEPTH {
                    path.push(element.name().as_ref().to_owned());
                }
                match path.last().map(String::as_str) {
                    Some("process_info") => gpu.processes.push(Process::default()),
                    Some("mig_device") => gpu.instances.push(Instance::default()),
                    _ => {}
                }
            }
            Event::End(element) => {
                let name = element.name().as_ref().to_owned();
                // An element that was never closed ends with its parent.
                if let Some(at) = path.iter().rposition(|open| *open == name) {
                    path.truncate(at);
                }
                if name == "gpu" {
                    if !is_timed {
                        samples.next_untimed();
                        is_timed = true;
                    }
                    add(samples, Device::cuda(index), &std::mem::take(&mut gpu));
                    index += 1;
                }
            }
            Event::Text(text) => {
                let text = text.trim();
                if text.is_empty() {
                    continue;
                }
                let tail: Vec<&str> = path.iter().map(String::as_str).collect();
                if tail == ["timestamp"] {
                    if let Some(stamp) = find_stamp(text) {
                        samples.set_time(stamp);
                        is_timed = true;
                    }
                } else {
                    set(&mut gpu, &tail, text);
                }
            }
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

/// Sets what the element at `path` tells. The path may hold elements that were never closed. MIG devices have memory
/// elements of their own.
fn set(gpu: &mut Gpu, path: &[&str], text: &str) {
    if path.contains(&"mig_device") {
        if let Some(instance) = gpu.instances.last_mut() {
            match path {
                [.., "gpu_instance_id"] => text.clone_into(&mut instance.gpu_instance),
                [.., "compute_instance_id"] => text.clone_into(&mut instance.compute_instance),
                [.., "fb_memory_usage", "used"] => instance.used = parse_cell(text, MIB),
                _ => {}
            }
        }
        return;
    }
    match path {
        ["gpu", "product_name"] => text.clone_into(&mut gpu.name),
        ["gpu", "uuid"] => text.clone_into(&mut gpu.uuid),
        [.., "fb_memory_usage", "total"] => gpu.total = parse_cell(text, MIB),
        [.., "fb_memory_usage", "reserved"] => gpu.reserved = parse_cell(text, MIB),
        [.., "fb_memory_usage", "used"] => {
            gpu.used = parse_cell(text, MIB);
            if is_failure(text) {
                text.clone_into(&mut gpu.failure);
            }
        }
        [.., "process_info", field] => {
            if let Some(process) = gpu.processes.last_mut() {
                match *field {
                    "pid" => process.pid = text.parse().ok(),
                    "process_name" => process.name.push_str(text),
                    "used_memory" => process.used = parse_cell(text, MIB),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

fn add(samples: &mut Samples, device: Device, gpu: &Gpu) {
    samples.count_row();
    samples.device(device, &gpu.name, &gpu.uuid, gpu.total.and_then(|total| u64::try_from(total).ok()));
    if !gpu.failure.is_empty() {
        samples.gpu_failed(device, &format!("{device}: {}", gpu.failure));
    }
    for (quantity, bytes) in [
        (Quantity::DriverUsed, gpu.used),
        (Quantity::Capacity, gpu.total),
        (Quantity::Other(msg!("reserved by the driver").to_owned()), gpu.reserved),
    ] {
        if let Some(bytes) = bytes {
            samples.gpu(quantity, device, bytes);
        }
    }
    for instance in &gpu.instances {
        if let Some(used) = instance.used {
            samples.mig(device, &instance.gpu_instance, &instance.compute_instance, used);
        }
    }
    for process in &gpu.processes {
        if let (Some(pid), Some(bytes)) = (process.pid, process.used) {
            samples.process(device, pid, &process.name, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::import::{Input, Progress, import};
    use crate::model::{Clock, Quantity};

    fn document(second: u32, used: u32) -> String {
        format!(
            "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>\n<timestamp>Tue Dec  1 05:53:{second} 2026</timestamp>\n<gpu id=\"00000000:01:00.0\"><product_name>NVIDIA H200</product_name><uuid>GPU-1</uuid>\n<mig_devices><mig_device><index>0</index><gpu_instance_id>3</gpu_instance_id><compute_instance_id>0</compute_instance_id><fb_memory_usage><total>9 MiB</total><used>9 MiB</used></fb_memory_usage></mig_device></mig_devices>\n<fb_memory_usage><total>143771 MiB</total><reserved>616 MiB</reserved><used>{used} MiB</used></fb_memory_usage>\n<supported_mem_clock><value>\n<processes><process_info><pid>445</pid><process_name>a & b</process_name><used_memory>500 MiB</used_memory></process_info></processes></supported_mem_clock>\n</gpu>\n</nvidia_smi_log>\n"
        )
    }

    #[test]
    fn documents_in_a_row_the_last_one_cut() {
        let mut text = document(49, 1000) + &document(50, 1001);
        let cut = document(51, 1002);
        text.push_str(&cut[..cut.len() / 2]);
        let log = import(&Input::from_bytes("smi.xml", text.into_bytes()), &Progress::default()).unwrap();
        assert_eq!((log.clock, log.format), (Clock::LocalWall, "nvidia-smi XML"));
        let used = log.series.iter().find(|series| series.quantity == Quantity::DriverUsed).unwrap();
        assert_eq!(used.bytes, [1000 << 20, 1001 << 20]);
        let instance = Quantity::InstanceUsed("MIG 3/0 used".to_owned());
        let instance = log.series.iter().find(|series| series.quantity == instance).unwrap();
        assert_eq!(instance.bytes[..2], [9 << 20; 2]);
        assert_eq!((log.devices[0].name.as_str(), log.devices[0].uuid.as_str()), ("NVIDIA H200", "GPU-1"));
    }
}
