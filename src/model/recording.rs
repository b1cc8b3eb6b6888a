//! What one file holds, on the file's own clock.

use super::{
    Allocations, Device, DeviceInfo, MemorySummary, Ops, Segment, SegmentEvent, Series, Slices, StackId,
    Stacks, StrId, Strings, TimeRange,
};
use crate::text::msg;

/// What kind of file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SourceKind {
    /// A Chrome trace of `torch.profiler`.
    Trace,
    /// A pickle of `torch.cuda.memory._dump_snapshot`.
    Snapshot,
    /// A file of `export_memory_timeline`.
    MemoryTimeline,
    /// Any form of nvidia-smi's (or a like tool's) output.
    NvidiaSmi,
    /// `memory_summary()` text or `memory_stats()` JSON.
    MemorySummary,
    /// A training log with printed memory figures.
    TrainingLog,
    /// Any form of py-spy's output.
    PySpy,
}

impl SourceKind {
    /// The name in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Snapshot => "snapshot",
            Self::MemoryTimeline => "memory-timeline",
            Self::NvidiaSmi => "nvidia-smi",
            Self::MemorySummary => "memory-summary",
            Self::TrainingLog => "training-log",
            Self::PySpy => "py-spy",
        }
    }

    /// The words for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Trace => msg!("profiler trace"),
            Self::Snapshot => msg!("memory snapshot"),
            Self::MemoryTimeline => msg!("memory timeline"),
            Self::NvidiaSmi => msg!("nvidia-smi log"),
            Self::MemorySummary => msg!("memory summary"),
            Self::TrainingLog => msg!("training log"),
            Self::PySpy => msg!("py-spy stacks"),
        }
    }
}

/// What the times in a file mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clock {
    /// Nanoseconds since the Unix epoch.
    Unix,
    /// Wall time without a zone, written as if it were UTC: the offset to add is minus the zone.
    LocalWall,
    /// Time of day without a date, from midnight.
    LocalTimeOfDay,
    /// Nanoseconds from an unknown start.
    Relative,
    /// No times: "nanoseconds" count lines or steps, one second each.
    Order,
}

impl Clock {
    /// The words for people and JSON.
    pub fn label(self) -> &'static str {
        match self {
            Self::Unix => msg!("unix"),
            Self::LocalWall => msg!("local wall time"),
            Self::LocalTimeOfDay => msg!("local time of day"),
            Self::Relative => msg!("relative"),
            Self::Order => msg!("none"),
        }
    }
}

/// Something the reader of a file should know: what was lost, repaired, guessed or contradictory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// A stable word for what it is, `cut`, `repaired`, `unknown-action`.
    pub code: &'static str,
    /// One sentence.
    pub text: String,
}

impl Warning {
    /// A warning of the given code.
    pub fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

/// How much of a file could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Events, rows or lines that were dropped.
    pub events: u64,
    /// Events that were read after a repair.
    pub repaired: u64,
    /// The byte (or line, for logs) of the first fault.
    pub first_at: Option<u64>,
}

/// What a file says of the process that it comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessHint {
    /// The process id.
    pub pid: Option<u64>,
    /// The rank in a distributed run.
    pub rank: Option<u32>,
    /// How many ranks there are.
    pub world_size: Option<u32>,
    /// The host's name.
    pub host: String,
}

/// A named stretch of time: `ProfilerStep#8`, `train_step#8`, `Optimizer.step#SGD.step`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// Its name.
    pub name: StrId,
    /// When; an end that the file doesn't show is the file's end.
    pub range: TimeRange,
}

/// What happened at a [`Marker`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkerKind {
    /// An out-of-memory error. Figures are `None` where the file doesn't give them.
    OutOfMemory {
        /// What was asked for.
        requested_bytes: Option<u64>,
        /// What the driver had free.
        free_bytes: Option<u64>,
        /// The board's memory.
        capacity_bytes: Option<u64>,
        /// What PyTorch had allocated.
        allocated_bytes: Option<u64>,
        /// What PyTorch had reserved.
        reserved_bytes: Option<u64>,
        /// What lay in private pools.
        private_pool_bytes: Option<u64>,
    },
    /// A snapshot was taken.
    Snapshot,
    /// The GPU was lost, or the driver failed.
    GpuLost,
    /// A process appeared or went.
    Process,
    /// Something the user marked.
    User,
}

/// An instant worth showing on the time axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// When, on the clock of the file.
    pub time_ns: i64,
    /// On which device.
    pub device: Device,
    /// What.
    pub kind: MarkerKind,
    /// One sentence.
    pub text: String,
    /// Where in the code, when known.
    pub stack: StackId,
}

/// What one file holds. Importers fill what their format has and leave the rest empty.
#[derive(Clone, Debug)]
pub struct Recording {
    /// What kind of file it is.
    pub kind: SourceKind,
    /// What wrote it, in more words than the kind: `nvidia-smi dmon`, `py-spy folded`.
    pub format: &'static str,
    /// What its times mean.
    pub clock: Clock,
    /// How many events, rows or lines it holds.
    pub events: u64,
    /// From the first event to just after the last; the recording's end where the file tells it.
    pub span: Option<TimeRange>,
    /// The process it comes from.
    pub process: ProcessHint,
    /// The strings that all ids below refer to.
    pub strings: Strings,
    /// Call stacks.
    pub stacks: Stacks,
    /// Ops that allocated.
    pub ops: Ops,
    /// Allocations.
    pub allocations: Allocations,
    /// `segment_pool_id` of each [`super::PoolId`]; the first is (0, 0).
    pub pools: Vec<(i64, i64)>,
    /// Segments at the moment of a snapshot.
    pub segments: Vec<Segment>,
    /// What happened to segments.
    pub segment_events: Vec<SegmentEvent>,
    /// Ops, Python functions, kernels and samples with their times.
    pub slices: Slices,
    /// Named stretches of time.
    pub annotations: Vec<Annotation>,
    /// Curves.
    pub series: Vec<Series>,
    /// Instants.
    pub markers: Vec<Marker>,
    /// Summaries.
    pub summaries: Vec<MemorySummary>,
    /// What it says of devices.
    pub devices: Vec<DeviceInfo>,
    /// Settings and facts as name and value: allocator settings, versions, the pattern that matched.
    pub facts: Vec<(String, String)>,
    /// Stacks without times and how often each was seen: py-spy's dump and folded output.
    pub stack_counts: Vec<(StackId, u64)>,
    /// What was lost.
    pub lost: Lost,
    /// What the reader should know.
    pub warnings: Vec<Warning>,
}

impl Recording {
    /// A recording without contents.
    pub fn new(kind: SourceKind, format: &'static str, clock: Clock) -> Self {
        Self {
            kind,
            format,
            clock,
            events: 0,
            span: None,
            process: ProcessHint::default(),
            strings: Strings::default(),
            stacks: Stacks::default(),
            ops: Ops::default(),
            allocations: Allocations::default(),
            pools: vec![(0, 0)],
            segments: Vec::new(),
            segment_events: Vec::new(),
            slices: Slices::default(),
            annotations: Vec::new(),
            series: Vec::new(),
            markers: Vec::new(),
            summaries: Vec::new(),
            devices: Vec::new(),
            facts: Vec::new(),
            stack_counts: Vec::new(),
            lost: Lost::default(),
            warnings: Vec::new(),
        }
    }

    /// Adds a warning.
    pub fn warn(&mut self, code: &'static str, text: impl Into<String>) {
        self.warnings.push(Warning::new(code, text));
    }
}
