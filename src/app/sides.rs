//! What can be compared within a session: processes at the end of their recordings, snapshots, and instants of one run.

use super::data::Data;
use super::state::State;
use crate::analysis::{Moment, Selection};
use crate::model::time::format_offset;
use crate::model::{ProcessId, SourceId, SourceKind};
use crate::text::t;

/// A side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A process at the end of its recording.
    End(ProcessId),
    /// A process when one of its snapshots was taken.
    Snapshot(SourceId),
    /// The start of the range.
    RangeStart,
    /// The end of the range.
    RangeEnd,
    /// Where a track was clicked, else the peak.
    Cursor,
}

impl Side {
    /// All that a session has.
    pub fn all(data: &Data) -> Vec<Self> {
        let mut sides: Vec<Self> = ends(data).collect();
        sides.extend(snapshots(data));
        sides.extend([Self::RangeStart, Self::RangeEnd, Self::Cursor]);
        sides
    }

    /// The two that are compared until the user chooses others: two processes, else two snapshots, else the two ends of
    /// the range.
    pub fn first(data: &Data) -> [Self; 2] {
        let pair = |mut sides: Vec<Self>| (sides.len() > 1).then(|| [sides[0], sides.swap_remove(1)]);
        let (ends, snapshots) = (ends(data).collect(), snapshots(data));
        pair(ends).or_else(|| pair(snapshots)).unwrap_or([Self::RangeStart, Self::RangeEnd])
    }

    /// What it is in the analysis.
    pub fn moment(self, state: &State, data: &Data) -> Moment {
        let selection = state.choices.selection;
        let range = state.range_or_all(data);
        let of = |process| Selection { process, ..selection };
        match self {
            Self::End(process) => Moment { selection: of(Some(process)), at_ns: None },
            Self::Snapshot(id) => {
                let source = data.session().source(id);
                Moment { selection: of(source.process), at_ns: source.span().map(|span| span.end_ns) }
            }
            Self::RangeStart => Moment { selection, at_ns: Some(range.start_ns) },
            Self::RangeEnd => Moment { selection, at_ns: Some(range.end_ns) },
            Self::Cursor => Moment { selection, at_ns: Some(state.live_at_ns(data)) },
        }
    }

    /// The words for people.
    pub fn label(self, state: &State, data: &Data) -> String {
        let session = data.session();
        let offset = || {
            let at_ns = self.moment(state, data).at_ns.unwrap_or_default();
            format_offset(at_ns, data.span().start_ns)
        };
        match self {
            Self::End(id) => {
                let process = session.process(id);
                let source = process.sources.first().map_or("", |&id| session.source(id).name.as_str());
                if process.label == source {
                    t!("end of {process}", process = source)
                } else {
                    t!("end of {process} ({file})", process = process.label, file = source)
                }
            }
            Self::Snapshot(id) => t!("snapshot {file}", file = session.source(id).name),
            Self::RangeStart => t!("start of the range, {offset}", offset = offset()),
            Self::RangeEnd => t!("end of the range, {offset}", offset = offset()),
            Self::Cursor => t!("cursor, {offset}", offset = offset()),
        }
    }
}

fn ends(data: &Data) -> impl Iterator<Item = Side> {
    let processes = data.session().processes.iter().enumerate();
    let known = processes.filter(|(_, process)| !process.allocations.is_empty());
    known.map(|(number, _)| Side::End(ProcessId(number as u32)))
}

/// The snapshots of processes that have several, in the order in which they were taken.
fn snapshots(data: &Data) -> Vec<Side> {
    let sources = &data.session().sources;
    let process_of = |at: usize| sources[at].process.filter(|_| sources[at].kind() == SourceKind::Snapshot);
    let mut known: Vec<usize> = (0..sources.len()).filter(|&at| process_of(at).is_some()).collect();
    let of_processes: Vec<_> = known.iter().map(|&at| process_of(at)).collect();
    known.retain(|&at| of_processes.iter().filter(|&&process| process == process_of(at)).count() > 1);
    known.sort_by_key(|&at| (process_of(at), sources[at].span().map(|span| span.end_ns)));
    known.into_iter().map(|at| Side::Snapshot(SourceId(at as u32))).collect()
}
