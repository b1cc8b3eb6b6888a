//! What a report holds. Serialized as it stands, it is the JSON that scripts rely on (`docs/report.schema.json`).
//!
//! Everything is text and numbers by now: a report can be redacted and rendered without the session.

use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::align;
use crate::analysis::{self, StackLines};
use crate::model::TimeRange;

/// The version of the JSON contract.
pub const SCHEMA: &str = "vramscope.report/1";

/// What was found in a range, and in which files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// The version of vramscope that wrote it.
    pub version: String,
    /// The result in one sentence.
    pub summary: String,
    /// The command that gives this report again.
    pub command: String,
    /// The command that reports another of the processes, when they were opened one by one and the rest is of one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub command_for_another: Option<String>,
    /// Whether names were replaced.
    pub redacted: bool,
    /// The files.
    pub sources: Vec<Source>,
    /// Files and ranks that could not be used.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// The range that was asked about.
    pub range: Range,
    /// The whole session.
    pub session: Range,
    /// Whose memory: a process and a device, in words.
    pub selection: String,
    /// What "never freed" means for groups and allocations: `recording-end` or `range-end`.
    pub free_by: String,
    /// What groups have in common: `call-site`, `op`…
    pub group_by: String,
    /// Traces linked to snapshots.
    pub links: Vec<Link>,
    /// Survivors by every definition.
    pub survivors: Survivors,
    /// What is never counted as a leak.
    pub apart: Apart,
    /// The processes of the session; of many ranks that were opened one by one, all of them.
    pub processes: Vec<Process>,
    /// What the driver counts for each device, and what it consists of.
    pub driver: Vec<Driver>,
    /// Survivors by what they have in common, the most bytes first.
    pub groups: Vec<Group>,
    /// The largest survivors.
    pub allocations: Vec<Allocation>,
    /// How many survivors there are in all.
    pub allocations_total: u64,
    /// Diagnoses, the most important first.
    pub findings: Vec<Finding>,
    /// Curves, with fewer points than were recorded.
    pub curves: Vec<Curve>,
    /// The part of the session that pictures show; without it, where processes recorded.
    #[serde(skip)]
    pub view: Option<TimeRange>,
    /// The starts of training steps, thinned when there are many.
    pub steps: Vec<StepMark>,
}

/// An opened file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// The file's name, with as many folders as tell it from the others.
    pub name: String,
    /// `trace`, `snapshot`, `nvidia-smi`…
    pub kind: String,
    /// What wrote it, in more words.
    pub format: String,
    /// How many events, rows or lines it holds.
    pub events: u64,
    /// Its first instant as Unix time, when it has times.
    pub first_ns: Option<i64>,
    /// Its last instant as Unix time.
    pub last_ns: Option<i64>,
    /// Added to the file's own times to give Unix time.
    pub offset_ns: i64,
    /// What its own times mean.
    pub clock: String,
    /// How the offset was found.
    pub alignment: String,
    /// How sure that is, 0 to 1.
    pub confidence: f32,
    /// A sentence of evidence for it.
    pub evidence: String,
    /// By how much its figures come after the allocator's, where that can be estimated; not part of the offset.
    pub lag_ns: Option<i64>,
    /// How many of its points fall outside the other sources.
    pub outside: u64,
    /// The process that it belongs to.
    pub process: Option<String>,
    /// How many events could not be read.
    pub lost_events: u64,
    /// How many were read after a repair.
    pub repaired_events: u64,
    /// What the reader of it should know, a sentence each.
    pub warnings: Vec<String>,
}

/// A file or a rank that could not be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The file as it was named or found; of a rank that was read, the rank's name.
    pub name: String,
    /// The rank, as far as the path tells.
    pub rank: Option<u32>,
    /// Why.
    pub cause: String,
}

impl LeftOut {
    /// A file that could not be used.
    pub fn file(path: &Path, cause: String) -> Self {
        Self { name: path.display().to_string(), rank: align::rank_from_path(path), cause }
    }
}

/// A stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// The first instant inside, Unix time.
    pub start_ns: i64,
    /// The first instant after.
    pub end_ns: i64,
    /// In words: `steps 8 to 15`.
    pub label: String,
}

/// What the driver counts for a device over the range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Driver {
    /// The device, as the processes number it.
    pub device: String,
    /// The same one, as the driver's log numbers it.
    pub driver_device: String,
    /// Whether the driver gave no total, so that its processes are summed.
    pub is_sum_of_processes: bool,
    /// The whole figure, then the parts that add up to it.
    pub parts: Vec<DriverPart>,
}

/// A part of what the driver counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriverPart {
    /// `driver` (the whole), `reserved`, `process`, `context` or `rest`.
    pub part: String,
    /// In words.
    pub label: String,
    /// Of another process its id.
    pub pid: Option<u64>,
    /// By how much it grew, first to last sample in the range.
    pub grown_bytes: i64,
    /// Its level at the last sample.
    pub end_bytes: i64,
}

/// A trace and a snapshot of one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// The trace's name.
    pub trace: String,
    /// The snapshot's name.
    pub snapshot: String,
    /// How many of the trace's allocations the snapshot could know.
    pub allocations: u64,
    /// How many it does.
    pub matched: u64,
}

/// A count and its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// How many allocations.
    pub count: u64,
    /// Their requested bytes.
    pub bytes: u64,
}

impl From<analysis::Totals> for Totals {
    fn from(totals: analysis::Totals) -> Self {
        Self { count: totals.count, bytes: totals.bytes }
    }
}

/// Survivors of the range by every definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Survivors {
    /// Allocated in the range, not freed by the end of the recording.
    pub recording_end: Totals,
    /// Allocated in the range, not freed by its end.
    pub range_end: Totals,
    /// Allocated in the range minus freed in it, whoever allocated it.
    pub net_bytes: i64,
    /// Allocated in the range.
    pub allocated: Totals,
    /// Freed in the range.
    pub freed: Totals,
}

/// What is never counted as a leak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Apart {
    /// Alive, allocated before the recording began.
    pub before_recording: Totals,
    /// Freed in the recording; the allocation was before it, or its event was lost.
    pub free_without_alloc: Totals,
    /// Free asked for, waiting for a stream.
    pub pending_free: Totals,
    /// In a private pool, as CUDA graphs have them.
    pub private_pool: Totals,
}

/// A process of the session with the figures that tell ranks apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// `rank 1`, `process 445`.
    pub name: String,
    /// The rank.
    pub rank: Option<u32>,
    /// The process id.
    pub pid: Option<u64>,
    /// How many allocations it recorded.
    pub allocations: u64,
    /// How many training steps it recorded.
    pub steps: u64,
    /// How much of allocated memory stayed, on average, with each step of the range.
    pub growth_per_step_bytes: Option<i64>,
    /// The highest allocated.
    pub peak_bytes: Option<u64>,
    /// Survivors of the range.
    pub survivors: Totals,
    /// The first finding.
    pub finding: Option<String>,
    /// Whether it stands out from the other processes.
    pub is_outlier: bool,
    /// By what: `growth`, `kept`, `peak`.
    pub outlier_by: Vec<String>,
}

impl Process {
    /// What tells the worst process: how much it grows, and of those that grow alike, how much they keep.
    pub fn weight(&self) -> (Option<i64>, u64) {
        (self.growth_per_step_bytes, self.survivors.bytes)
    }
}

/// Survivors with something in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// What they have in common.
    pub key: String,
    /// How many.
    pub count: u64,
    /// Their requested bytes.
    pub bytes: u64,
    /// The call site that holds most of the bytes.
    pub call_site: String,
    /// The ops, by bytes.
    pub ops: Vec<String>,
    /// The stack that holds most of the bytes, innermost frame first.
    #[serde(serialize_with = "write_lines", deserialize_with = "read_lines")]
    pub stack: StackLines,
    /// In which steps they were allocated, when steps are known.
    pub steps: Option<GroupSteps>,
}

fn write_lines<S: Serializer>(lines: &StackLines, serializer: S) -> Result<S::Ok, S::Error> {
    lines[..].serialize(serializer)
}

fn read_lines<'a, D: Deserializer<'a>>(deserializer: D) -> Result<StackLines, D::Error> {
    Vec::deserialize(deserializer).map(Vec::into)
}

/// In which steps the survivors of a group were allocated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupSteps {
    /// The first step's number.
    pub first: i64,
    /// The last step's number.
    pub last: i64,
    /// How much each step adds from the first to the last; 0 when a single step did.
    pub per_step_bytes: u64,
}

/// One survivor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Allocation {
    /// The process, when there are several.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub process: Option<String>,
    /// The address.
    pub address: u64,
    /// The requested bytes.
    pub bytes: u64,
    /// When it was allocated, Unix time.
    pub time_ns: i64,
    /// When its memory came back, when the recording shows it.
    pub freed_ns: Option<i64>,
    /// The device: `cuda:0`.
    pub device: String,
    /// The stream's handle.
    pub stream: u64,
    /// The op.
    pub op: String,
    /// The op's input shapes, empty when not recorded.
    pub shapes: String,
    /// The tensor's likely shape and type, `[8, 64, 128, 128] float`; empty when nothing tells.
    pub tensor: String,
    /// The module path, empty when not recorded.
    pub module: String,
    /// The step's number.
    pub step: Option<i64>,
    /// The innermost frame that is the user's own.
    pub call_site: String,
    /// The stack, innermost frame first.
    #[serde(serialize_with = "write_lines", deserialize_with = "read_lines")]
    pub stack: StackLines,
}

/// A diagnosis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is: `graph_kept`, `fragmentation`.
    pub kind: String,
    /// `error`, `warning` or `info`.
    pub severity: String,
    /// How sure it is, 0 to 1.
    pub confidence: f32,
    /// How much memory it holds so far.
    pub bytes: u64,
    /// How much a step adds.
    pub per_step_bytes: u64,
    /// One sentence.
    pub title: String,
    /// Why it is believed, a sentence each.
    pub evidence: Vec<String>,
    /// An experiment that would confirm it.
    pub confirm: String,
    /// What to change.
    pub advice: String,
    /// The code before the change.
    pub code_before: String,
    /// The code after it.
    pub code_after: String,
    /// Where, the most bytes first.
    pub call_sites: Vec<String>,
}

/// A figure over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// `allocated`, `reserved`, `driver used`…
    pub quantity: String,
    /// The source or process that tells it.
    pub origin: String,
    /// On which device.
    pub device: String,
    /// The process's name, where the file gives one.
    pub process_name: String,
    /// Whether a value holds until the next point.
    pub is_step: bool,
    /// The times, Unix time.
    pub times_ns: Vec<i64>,
    /// The figures.
    pub bytes: Vec<i64>,
}

/// Where a training step starts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepMark {
    /// Its number.
    pub number: i64,
    /// When it starts, Unix time.
    pub start_ns: i64,
}
