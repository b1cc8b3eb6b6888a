//! The survivors: which allocations of a range were never freed. One predicate for every view.

use rayon::prelude::*;

use crate::model::{Allocation, Allocations, Device, NEVER_NS, PoolId, ProcessId, Session, TimeRange};
use crate::text::t;

/// Rows below which one thread is quicker than several.
const PARALLEL_ROWS: usize = 200_000;

/// What "never freed" means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FreeBy {
    /// Not freed by the end of the recording.
    #[default]
    RecordingEnd,
    /// Not freed by the end of the range.
    RangeEnd,
}

impl FreeBy {
    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::RecordingEnd => "recording-end",
            Self::RangeEnd => "range-end",
        }
    }

    /// The words for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::RecordingEnd => t!("not freed by the end of the recording"),
            Self::RangeEnd => t!("not freed by the end of the range"),
        }
    }

    /// The instant by which a free counts.
    pub fn until_ns(self, range: TimeRange) -> i64 {
        match self {
            Self::RecordingEnd => NEVER_NS,
            Self::RangeEnd => range.end_ns,
        }
    }
}

/// Which devices are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DeviceFilter {
    /// Every device but the host.
    #[default]
    Gpus,
    /// Host memory only.
    Host,
    /// All memory.
    All,
    /// One device.
    One(Device),
}

impl DeviceFilter {
    /// Whether a device is looked at.
    pub fn admits(self, device: Device) -> bool {
        match self {
            Self::Gpus => !device.is_host(),
            Self::Host => device.is_host(),
            Self::All => true,
            Self::One(one) => one == device,
        }
    }
}

/// Whose memory is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selection {
    /// One process, or all.
    pub process: Option<ProcessId>,
    /// Which devices.
    pub device: DeviceFilter,
}

impl Selection {
    /// What is looked at unless the user says otherwise: the GPUs' memory, or the host's where nothing else was
    /// recorded, as in a trace of a machine without a GPU.
    pub fn of(session: &Session) -> Self {
        let devices = || session.processes.iter().flat_map(|process| &process.allocations.device);
        let is_hosts = devices().next().is_some() && devices().all(|device| device.is_host());
        let has_gpu = || session.curves().any(|(_, _, series, _)| !series.device.is_host());
        let device = if is_hosts && !has_gpu() { DeviceFilter::Host } else { DeviceFilter::Gpus };
        Self { process: None, device }
    }

    /// The processes that are looked at.
    pub fn processes(self, session: &Session) -> impl Iterator<Item = ProcessId> + use<> {
        let all = 0..session.processes.len() as u32;
        all.map(ProcessId).filter(move |&id| self.process.is_none_or(|one| one == id))
    }

    /// The start of a step, in the earliest process that has it. A range may also end at the step after the last
    /// (`is_end`): where the last one ends.
    pub fn step_ns(self, session: &Session, number: i64, is_end: bool) -> Option<i64> {
        let steps = || self.processes(session).flat_map(|id| &session.process(id).steps);
        let start = steps().filter(|step| step.number == number).map(|step| step.range.start_ns).min();
        let last = steps().max_by_key(|step| step.number);
        let is_after = |number_of_last: i64| is_end && number_of_last.checked_add(1) == Some(number);
        start.or_else(|| last.filter(|last| is_after(last.number)).map(|last| last.range.end_ns))
    }
}

/// A question about a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Query {
    /// Whose memory.
    pub selection: Selection,
    /// When it was allocated.
    pub range: TimeRange,
    /// What "never freed" means.
    pub free_by: FreeBy,
}

/// A row of a process's allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowRef {
    /// The process.
    pub process: ProcessId,
    /// The row.
    pub row: u32,
}

impl RowRef {
    /// The allocation.
    pub fn get(self, session: &Session) -> Allocation {
        session.process(self.process).allocations.get(self.row as usize)
    }
}

/// How an allocation of the range stands at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowClass {
    /// Freed by then.
    Freed,
    /// Not freed: a survivor.
    Kept,
    /// Its free was asked for and waits for a stream (`record_stream`).
    PendingFree,
    /// Not freed, but in a private pool (CUDA graphs), which keeps its blocks on purpose.
    PrivatePool,
}

/// How the allocation in `row` stands at `until_ns` ([`NEVER_NS`] for the end of the recording). The one predicate
/// behind every table, chart, total, finding and report.
pub fn classify(allocations: &Allocations, row: usize, until_ns: i64) -> RowClass {
    if allocations.free_completed_ns[row] < until_ns {
        RowClass::Freed
    } else if allocations.free_requested_ns[row] < until_ns {
        RowClass::PendingFree
    } else if allocations.pool[row] != PoolId::DEFAULT {
        RowClass::PrivatePool
    } else {
        RowClass::Kept
    }
}

/// A count and its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Totals {
    /// How many allocations.
    pub count: u64,
    /// Their requested bytes.
    pub bytes: u64,
}

impl Totals {
    /// Counts one more.
    pub fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn merge(self, other: Self) -> Self {
        Self { count: self.count + other.count, bytes: self.bytes.saturating_add(other.bytes) }
    }
}

/// What is never counted as a leak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Apart {
    /// Alive, allocated before the recording began: seen only in segments.
    pub before_recording: Totals,
    /// Freed in the recording, allocated before it began or lost by the history ring.
    pub free_without_alloc: Totals,
    /// Allocated in the range; their free was asked for and waits for a stream.
    pub pending_free: Totals,
    /// Allocated in the range in a private pool.
    pub private_pool: Totals,
}

/// The totals of a range by every definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeTotals {
    /// Allocated in the range.
    pub allocated: Totals,
    /// Freed in the range, whoever allocated it.
    pub freed: Totals,
    /// Allocated in the range and not freed by the end of the recording.
    pub recording_end: Totals,
    /// Allocated in the range and not freed by its end.
    pub range_end: Totals,
    /// What is never counted.
    pub apart: Apart,
}

impl RangeTotals {
    /// Allocated in the range minus freed in it, whoever allocated it.
    pub fn net_bytes(&self) -> i64 {
        let difference = i128::from(self.allocated.bytes) - i128::from(self.freed.bytes);
        difference.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    fn merge(self, other: Self) -> Self {
        Self {
            allocated: self.allocated.merge(other.allocated),
            freed: self.freed.merge(other.freed),
            recording_end: self.recording_end.merge(other.recording_end),
            range_end: self.range_end.merge(other.range_end),
            apart: Apart {
                before_recording: self.apart.before_recording.merge(other.apart.before_recording),
                free_without_alloc: self.apart.free_without_alloc.merge(other.apart.free_without_alloc),
                pending_free: self.apart.pending_free.merge(other.apart.pending_free),
                private_pool: self.apart.private_pool.merge(other.apart.private_pool),
            },
        }
    }

    fn add(&mut self, table: &Allocations, row: usize, range: TimeRange) {
        let bytes = table.size_bytes[row];
        let free_ns = table.free_completed_ns[row];
        if range.contains(free_ns) && free_ns != NEVER_NS {
            self.freed.add(bytes);
        }
        let alloc_ns = table.alloc_ns[row];
        if alloc_ns == crate::model::BEFORE_NS {
            let class = match (free_ns, table.free_requested_ns[row]) {
                (NEVER_NS, NEVER_NS) => &mut self.apart.before_recording,
                (NEVER_NS, _) => &mut self.apart.pending_free,
                _ => &mut self.apart.free_without_alloc,
            };
            class.add(bytes);
        } else if range.contains(alloc_ns) {
            self.allocated.add(bytes);
            match classify(table, row, NEVER_NS) {
                RowClass::Kept => self.recording_end.add(bytes),
                RowClass::PendingFree => self.apart.pending_free.add(bytes),
                RowClass::PrivatePool => self.apart.private_pool.add(bytes),
                RowClass::Freed => {}
            }
            if classify(table, row, range.end_ns) == RowClass::Kept {
                self.range_end.add(bytes);
            }
        }
    }
}

/// The survivors of a query, by process, then by allocation time.
pub fn kept(session: &Session, query: &Query) -> Vec<RowRef> {
    let until_ns = query.free_by.until_ns(query.range);
    let mut rows = Vec::new();
    for id in query.selection.processes(session) {
        let table = &session.process(id).allocations;
        let candidates = table.rows_in(query.range);
        let is_kept = |&row: &usize| {
            query.selection.device.admits(table.device[row])
                && classify(table, row, until_ns) == RowClass::Kept
        };
        let to_ref = |row: usize| RowRef { process: id, row: row as u32 };
        if candidates.len() < PARALLEL_ROWS {
            rows.extend(candidates.filter(is_kept).map(to_ref));
        } else {
            rows.par_extend(candidates.into_par_iter().filter(is_kept).map(to_ref));
        }
    }
    rows
}

/// The totals of a range by every definition at once.
pub fn totals(session: &Session, selection: Selection, range: TimeRange) -> RangeTotals {
    let mut sum = RangeTotals::default();
    for id in selection.processes(session) {
        let table = &session.process(id).allocations;
        // Frees in the range can belong to any row allocated before its end.
        let rows = 0..table.rows_in(range).end;
        let of_rows = |rows: std::ops::Range<usize>| {
            let mut sum = RangeTotals::default();
            for row in rows.filter(|&row| selection.device.admits(table.device[row])) {
                sum.add(table, row, range);
            }
            sum
        };
        let of_process = if rows.len() < PARALLEL_ROWS {
            of_rows(rows)
        } else {
            let chunks = rows.len().div_ceil(PARALLEL_ROWS);
            (0..chunks)
                .into_par_iter()
                .map(|nth| of_rows(nth * PARALLEL_ROWS..rows.end.min((nth + 1) * PARALLEL_ROWS)))
                .reduce(RangeTotals::default, RangeTotals::merge)
        };
        sum = sum.merge(of_process);
    }
    sum
}
