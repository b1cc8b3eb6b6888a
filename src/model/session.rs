//! All opened files on one time axis, joined by process.

use std::path::PathBuf;
use std::sync::Arc;

use super::{
    Allocations, Annotation, Marker, Ops, Recording, Segment, SegmentEvent, Series, SourceKind, Stacks,
    Strings, TimeRange,
};
use crate::text::msg;

/// A source of a session: an index into [`Session::sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub u32);

/// A process of a session: an index into [`Session::processes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

/// How a source's offset was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AlignmentMethod {
    /// Its times are Unix times.
    SameClock,
    /// The zone under which its curve fits the others best.
    ZoneByCurve,
    /// The zone under which it overlaps the others.
    ZoneByOverlap,
    /// Its times are relative, and its curve fits the others best here.
    ShapeOfCurve,
    /// Placed by its step numbers.
    Steps,
    /// It has figures of one instant, and the curves have the same ones here.
    Level,
    /// Nothing to go by: placed at the start of the session.
    Assumed,
    /// Set by hand.
    ByHand,
}

impl AlignmentMethod {
    /// The words for people and JSON.
    pub fn label(self) -> &'static str {
        match self {
            Self::SameClock => msg!("same clock"),
            Self::ZoneByCurve => msg!("zone found by overlap and correlation"),
            Self::ZoneByOverlap => msg!("zone found by overlap"),
            Self::ShapeOfCurve => msg!("placed by the shape of its curve"),
            Self::Steps => msg!("placed by step numbers"),
            Self::Level => msg!("placed by its figures"),
            Self::Assumed => msg!("assumed"),
            Self::ByHand => msg!("set by hand"),
        }
    }
}

/// Where a source lies on the session's time axis, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Alignment {
    /// Added to the file's own times to give Unix time.
    pub offset_ns: i64,
    /// How it was found.
    pub method: AlignmentMethod,
    /// How sure that is, 0 to 1.
    pub confidence: f32,
    /// How many of its points fall outside the other sources.
    pub outside: u64,
    /// A sentence of evidence: the correlation, the runner-up, an estimated lag.
    pub evidence: String,
    /// By how much its figures come after the allocator's (before it, when negative), where that can be estimated. Not
    /// part of the offset: nvidia-smi shows a level some time after it is reached.
    pub lag_ns: Option<i64>,
}

/// An opened file.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name to show: the file's, with as many folders as tell it from the others.
    pub name: String,
    /// Where it was opened.
    pub path: PathBuf,
    /// What it holds, on its own clock.
    pub recording: Arc<Recording>,
    /// Where it lies.
    pub alignment: Alignment,
    /// The process it belongs to, when it belongs to one.
    pub process: Option<ProcessId>,
}

impl Source {
    /// What kind of file it is.
    pub fn kind(&self) -> SourceKind {
        self.recording.kind
    }

    /// Its span as Unix time.
    pub fn span(&self) -> Option<TimeRange> {
        Some(self.recording.span?.shifted(self.alignment.offset_ns))
    }
}

/// A training step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The number that the run gave it.
    pub number: i64,
    /// When it ran.
    pub range: TimeRange,
}

/// A process of the run with everything that its traces and snapshots know, all on Unix time.
#[derive(Clone, Debug)]
pub struct Process {
    /// `rank 1`, `process 445`.
    pub label: String,
    /// The process id.
    pub pid: Option<u64>,
    /// The rank.
    pub rank: Option<u32>,
    /// Its traces and snapshots.
    pub sources: Vec<SourceId>,
    /// The strings that all ids below refer to.
    pub strings: Arc<Strings>,
    /// Call stacks.
    pub stacks: Arc<Stacks>,
    /// Ops that allocated.
    pub ops: Arc<Ops>,
    /// One row an allocation, whoever saw it.
    pub allocations: Arc<Allocations>,
    /// `segment_pool_id` of each pool.
    pub pools: Vec<(i64, i64)>,
    /// Segments at the moment of the snapshot.
    pub segments: Vec<Segment>,
    /// What happened to segments.
    pub segment_events: Vec<SegmentEvent>,
    /// Named stretches of time, sorted by start.
    pub annotations: Vec<Annotation>,
    /// The training steps, sorted by start; they don't overlap.
    pub steps: Vec<Step>,
    /// What the steps were called: `ProfilerStep`, `train_step`.
    pub step_name: String,
    /// Curves that its traces, or its snapshot's events, tell.
    pub series: Vec<Series>,
    /// Instants.
    pub markers: Vec<Marker>,
    /// From the first to just after the last event of its memory history: "the recording" of the survivors' definition.
    pub recorded: TimeRange,
    /// Whether a snapshot covers it; a trace alone is weaker evidence.
    pub has_snapshot: bool,
}

impl Process {
    /// The step that holds `time_ns`, as an index into [`Self::steps`].
    pub fn step_at(&self, time_ns: i64) -> Option<usize> {
        let index = self.steps.partition_point(|step| step.range.start_ns <= time_ns).checked_sub(1)?;
        self.steps[index].range.contains(time_ns).then_some(index)
    }
}

/// A trace and a snapshot of one process, and how many of the trace's allocations found their twin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The trace.
    pub trace: SourceId,
    /// The snapshot.
    pub snapshot: SourceId,
    /// How many of the trace's allocations the snapshot could know.
    pub allocations: u64,
    /// How many it does.
    pub matched: u64,
}

/// All opened files on one time axis.
#[derive(Clone, Debug)]
pub struct Session {
    /// The files.
    pub sources: Vec<Source>,
    /// The processes, by rank, then by id.
    pub processes: Vec<Process>,
    /// Traces linked to snapshots.
    pub links: Vec<Link>,
    /// From the first to just after the last instant of any source.
    pub span: TimeRange,
}

impl Session {
    /// A session without files.
    pub fn empty() -> Self {
        Self { sources: Vec::new(), processes: Vec::new(), links: Vec::new(), span: TimeRange::new(0, 0) }
    }

    /// The process of an id; panics for an id of another session.
    pub fn process(&self, id: ProcessId) -> &Process {
        &self.processes[id.0 as usize]
    }

    /// The source of an id; panics for an id of another session.
    pub fn source(&self, id: SourceId) -> &Source {
        &self.sources[id.0 as usize]
    }

    /// All curves with the source or process that they come from and the offset to add to their times. Sources that
    /// feed a process are seen through the process.
    pub fn curves(&self) -> impl Iterator<Item = (Option<SourceId>, Option<ProcessId>, &Series, i64)> {
        let of_processes = self.processes.iter().enumerate().flat_map(|(index, process)| {
            process.series.iter().map(move |series| (None, Some(ProcessId(index as u32)), series, 0))
        });
        let of_sources = self
            .sources
            .iter()
            .enumerate()
            .filter(|(_, source)| !matches!(source.kind(), SourceKind::Trace | SourceKind::Snapshot))
            .flat_map(|(index, source)| {
                source.recording.series.iter().map(move |series| {
                    (Some(SourceId(index as u32)), source.process, series, source.alignment.offset_ns)
                })
            });
        of_processes.chain(of_sources)
    }
}
