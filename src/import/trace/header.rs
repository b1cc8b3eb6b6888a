//! What a trace says outside of its events: the clock's base, the rank, the devices, what was recorded.

use memchr::memmem;

use super::scan;
use crate::model::{Device, DeviceInfo, DeviceKind};

/// Facts that are shown as they are.
const FACTS: &[&str] = &[
    "schemaVersion",
    "trace_id",
    "with_stack",
    "profile_memory",
    "record_shapes",
    "with_modules",
    "with_flops",
    "cuda_driver_version",
    "cuda_runtime_version",
    "traceName",
];

/// The metadata of a trace. It may stand before the events, after them, or on both sides.
#[derive(Debug, Default)]
pub(super) struct Header {
    pub base_ns: Option<i64>,
    pub rank: Option<u32>,
    pub world_size: Option<u32>,
    pub devices: Vec<DeviceInfo>,
    pub facts: Vec<(String, String)>,
}

/// Whether the beginning of a JSON file is a trace's: it has `traceEvents`, or is an array of events.
pub(super) fn is_trace(head: &[u8]) -> bool {
    let has = |key: &[u8]| memmem::find(head, key).is_some();
    // Long metadata may push the events out of sight; without any, the schema version stands with the devices.
    if has(b"\"traceEvents\"")
        || has(b"\"baseTimeNanoseconds\"")
        || (has(b"\"schemaVersion\"") && (has(b"\"deviceProperties\"") || has(b"\"distributedInfo\"")))
    {
        return true;
    }
    let is_array = head.iter().find(|byte| !byte.is_ascii_whitespace() && **byte < 0x80) == Some(&b'[');
    is_array
        && scan::first_event(head)
            .is_some_and(|event| !event.ph.is_empty() && (!event.ts.is_empty() || !event.pid.is_empty()))
}

impl Header {
    /// Takes what a part of the file outside the events says. Searched by key, since it may be broken elsewhere.
    pub(super) fn read(&mut self, bytes: &[u8]) {
        self.base_ns = self.base_ns.or_else(|| number(bytes, "baseTimeNanoseconds"));
        if let Some(info) = after_key(bytes, "distributedInfo") {
            let read: Option<DistributedInfo> =
                serde_json::Deserializer::from_slice(info).into_iter().next().and_then(Result::ok);
            // Where it is broken: its own numbers stand before the list of its process groups.
            let own = &info[..memchr::memchr(b'}', info).unwrap_or(info.len())];
            let read = read.unwrap_or_else(|| DistributedInfo {
                rank: number(own, "rank").and_then(|rank| rank.try_into().ok()),
                world_size: number(own, "world_size").and_then(|size| size.try_into().ok()),
            });
            self.rank = self.rank.or(read.rank);
            self.world_size = self.world_size.or(read.world_size);
        }
        // Called computeProperties in 2021.
        let devices = after_key(bytes, "deviceProperties").or_else(|| after_key(bytes, "computeProperties"));
        if self.devices.is_empty()
            && let Some(list) = devices
        {
            let list: Option<Vec<Properties>> =
                serde_json::Deserializer::from_slice(list).into_iter().next().and_then(Result::ok);
            self.devices = list.unwrap_or_default().into_iter().map(Properties::into_info).collect();
        }
        for key in FACTS {
            if let Some(value) = after_key(bytes, key)
                && !self.facts.iter().any(|(known, _)| known == key)
            {
                let end =
                    value.iter().position(|byte| matches!(byte, b',' | b'\n' | b'}')).unwrap_or(value.len());
                let text = String::from_utf8_lossy(&value[..end]);
                self.facts.push(((*key).to_owned(), text.trim().trim_matches('"').to_owned()));
            }
        }
    }

    /// Whether a flag was on when the trace was recorded; `None` when it doesn't say.
    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        self.facts.iter().find(|(known, _)| known == key).map(|(_, value)| value == "1" || value == "true")
    }
}

#[derive(serde::Deserialize)]
struct DistributedInfo {
    rank: Option<u32>,
    world_size: Option<u32>,
}

#[derive(serde::Deserialize)]
struct Properties {
    #[serde(default)]
    id: i64,
    #[serde(default)]
    name: String,
    #[serde(default, rename = "totalGlobalMem")]
    total_global_mem: Option<u64>,
}

impl Properties {
    fn into_info(self) -> DeviceInfo {
        DeviceInfo {
            device: Device::new(DeviceKind::CUDA, self.id),
            name: self.name,
            total_bytes: self.total_global_mem,
            uuid: String::new(),
        }
    }
}

/// What follows `"key":`.
fn after_key<'a>(bytes: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let quoted = format!("\"{key}\"");
    let rest = &bytes[memmem::find(bytes, quoted.as_bytes())? + quoted.len()..];
    let rest = rest.trim_ascii_start().strip_prefix(b":")?;
    Some(rest.trim_ascii_start())
}

fn number(bytes: &[u8], key: &str) -> Option<i64> {
    let value = after_key(bytes, key)?;
    let end = value.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'-').unwrap_or(value.len());
    std::str::from_utf8(&value[..end]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_found_on_both_sides() {
        let mut header = Header::default();
        header.read(br#"{"schemaVersion": 1, "profile_memory": 1, "deviceProperties": [{"id": 0, "name": "X", "totalGlobalMem": 5}],
            "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8}, "traceEvents": ["#);
        header.read(br#"], "baseTimeNanoseconds": 1790857026000000000}"#);
        assert_eq!((header.rank, header.world_size), (Some(3), Some(8)));
        assert_eq!(header.base_ns, Some(1_790_857_026_000_000_000));
        assert_eq!(header.devices[0].total_bytes, Some(5));
        assert_eq!(header.flag("profile_memory"), Some(true));
        assert_eq!(header.flag("with_stack"), None);
    }

    #[test]
    fn traces_are_told_from_other_json() {
        assert!(is_trace(b"{\"schemaVersion\": 1, \"traceEvents\": ["));
        assert!(is_trace(b" [ {\"ph\": \"X\", \"ts\": 1, \"pid\": 2, \"name\": \"a\"}"));
        assert!(!is_trace(b"[{\"pid\": 1, \"frames\": []}]"));
        assert!(!is_trace(b"{\"allocated_bytes.all.current\": 5}"));
    }
}
