//! Which traces and snapshots come from one process: by what they saw. Names only tell ranks apart.

use crate::model::{Recording, SourceKind, TimeRange};

use super::merge::AddressIndex;

/// The share of a trace's allocations that a snapshot must know for both to be of one process.
const SAME_PROCESS_SHARE: f64 = 0.5;

/// A trace or snapshot with its place among the sources.
#[derive(Clone, Copy)]
pub(super) struct Member<'a> {
    pub source: u32,
    pub recording: &'a Recording,
    pub offset_ns: i64,
    pub rank_from_path: Option<u32>,
}

impl Member<'_> {
    pub(super) fn is_snapshot(&self) -> bool {
        self.recording.kind == SourceKind::Snapshot
    }

    pub(super) fn span(&self) -> Option<TimeRange> {
        Some(self.recording.span?.shifted(self.offset_ns))
    }

    pub(super) fn rank(&self) -> Option<u32> {
        self.recording.process.rank.or(self.rank_from_path)
    }
}

/// Groups members by process. Within a process the latest snapshot comes first, then earlier ones, then traces in the
/// order of time.
pub(super) fn group_by_process<'a>(members: &[Member<'a>]) -> Vec<Vec<Member<'a>>> {
    let mut group_of: Vec<usize> = (0..members.len()).collect();
    let mut join = |a: usize, b: usize| {
        let (from, to) = (group_of[a], group_of[b]);
        group_of.iter_mut().filter(|group| **group == from).for_each(|group| *group = to);
    };
    let indexed = |index: usize| &members[index].recording.allocations;
    let snapshots: Vec<usize> = (0..members.len()).filter(|&index| members[index].is_snapshot()).collect();
    if members.len() > 1 {
        for (nth, &snapshot) in snapshots.iter().enumerate() {
            let index = AddressIndex::new(indexed(snapshot));
            for (other, member) in members.iter().enumerate() {
                // A pair of snapshots is compared once. Ranks in lockstep may hold the same addresses at the same moments.
                let are_compared = other == snapshot || snapshots[..nth].contains(&other);
                if are_compared || are_other_ranks(member, &members[snapshot]) {
                    continue;
                }
                let offset_ns = member.offset_ns - members[snapshot].offset_ns;
                let (twins, candidates) = index.count_twins(indexed(snapshot), indexed(other), offset_ns);
                if candidates > 0 && twins as f64 >= SAME_PROCESS_SHARE * candidates as f64 {
                    join(other, snapshot);
                }
            }
        }
        for first in 0..members.len() {
            for second in first + 1..members.len() {
                if are_cycles(&members[first], &members[second]) {
                    join(second, first);
                }
            }
        }
    }
    let mut groups: Vec<Vec<Member<'a>>> = Vec::new();
    let mut position_of = vec![None; members.len()];
    for (index, &member) in members.iter().enumerate() {
        let position = *position_of[group_of[index]].get_or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[position].push(member);
    }
    for group in &mut groups {
        group.sort_by_key(|member| {
            let span = member.span();
            let time_ns = match (member.is_snapshot(), span) {
                (true, Some(span)) => span.end_ns.saturating_neg(),
                (false, Some(span)) => span.start_ns,
                (_, None) => i64::MAX,
            };
            (!member.is_snapshot(), time_ns)
        });
    }
    groups
}

fn are_other_ranks(a: &Member<'_>, b: &Member<'_>) -> bool {
    a.rank().zip(b.rank()).is_some_and(|(a, b)| a != b)
}

/// Whether two traces are cycles of one process's profiler: same process and rank, one after the other. Process ids
/// repeat across containers, so traces that overlap are of different processes.
fn are_cycles(a: &Member<'_>, b: &Member<'_>) -> bool {
    if a.is_snapshot() || b.is_snapshot() || a.recording.process.pid.is_none() {
        return false;
    }
    let (of_a, of_b) = (&a.recording.process, &b.recording.process);
    let hosts_agree = of_a.host.is_empty() || of_b.host.is_empty() || of_a.host == of_b.host;
    let follow = match (a.span(), b.span()) {
        (Some(a), Some(b)) => !a.overlaps(b),
        _ => false,
    };
    of_a.pid == of_b.pid && a.rank() == b.rank() && hosts_agree && follow
}
