//! What else happens in the beats in which a family keeps memory: backward passes before or after, graphs freed by
//! them, and a scalar that is replaced each time.

use super::super::growth::median;
use super::families::Family;
use super::strands::{ProcessFacts, Role};
use crate::model::StrId;

/// Beats that are looked at.
const MAX_BEATS: usize = 8;

/// What happens around a family.
#[derive(Clone, Debug, Default)]
pub(super) struct BeatStory {
    /// Whether the beats hold a backward pass at all.
    pub has_backward: bool,
    /// Allocations of the autograd thread after the family's last row, in a typical beat.
    pub backward_after: u64,
    /// Bytes of other forward passes that were freed while the backward pass ran.
    pub freed_by_backward_bytes: u64,
    /// Allocations of the backward pass in early and in late beats, when they grow steadily.
    pub backward_growth: Option<(i64, i64)>,
    /// The call site of a scalar that lives until its successor is made: a running sum.
    pub running_sum: Option<StrId>,
}

/// Looks at a few of the family's beats.
pub(super) fn tell(facts: &ProcessFacts<'_>, family: &Family) -> BeatStory {
    let settled = &family.main().settled;
    let stride = settled.len().div_ceil(MAX_BEATS).max(1);
    let mut after = Vec::new();
    let mut freed = Vec::new();
    let mut story = BeatStory::default();
    for &beat in settled.iter().skip(settled.len().min(2) / 2).step_by(stride) {
        let (has_backward, count, bytes) = beat_of(facts, family, beat);
        story.has_backward |= has_backward;
        after.push(count as i64);
        freed.push(bytes as i64);
    }
    story.backward_after = median(&after).max(0) as u64;
    story.freed_by_backward_bytes = median(&freed).max(0) as u64;
    story.backward_growth = backward_growth(facts);
    story.running_sum = running_sum(facts);
    story
}

/// Whether a beat has a backward pass, how many of its allocations come after the family's last row, and the bytes of
/// other forward passes that it frees.
fn beat_of(facts: &ProcessFacts<'_>, family: &Family, beat: i32) -> (bool, u64, u64) {
    let Some(rhythm) = &facts.rhythm else { return (false, 0, 0) };
    let table = &facts.process.allocations;
    let rows = table.rows_in(rhythm.range_of(beat.max(0) as usize));
    let last_kept = family.rows().filter(|row| row.beat == beat).map(|row| row.row).max();
    let Some(last_kept) = last_kept.map(|row| row as usize) else { return (false, 0, 0) };
    let backward: Vec<usize> =
        rows.clone().filter(|&row| !is_workspace(facts, row) && facts.role(row) == Role::Backward).collect();
    let after: Vec<usize> = backward.iter().copied().filter(|&row| row > last_kept).collect();
    let (Some(&first), Some(&last)) = (after.first(), after.last()) else {
        return (!backward.is_empty(), 0, 0);
    };
    let (start_ns, end_ns) = (table.alloc_ns[first], table.alloc_ns[last]);
    let freed = rows
        .filter(|&row| {
            row < first
                && (start_ns..=end_ns).contains(&table.free_completed_ns[row])
                && facts.role(row) == Role::Forward
        })
        .map(|row| table.size_bytes[row])
        .sum();
    (true, after.len() as u64, freed)
}

fn is_workspace(facts: &ProcessFacts<'_>, row: usize) -> bool {
    facts.role(row) == Role::Workspace
}

/// Allocations of the backward pass in early and late beats, when their number grows steadily by a third or more.
fn backward_growth(facts: &ProcessFacts<'_>) -> Option<(i64, i64)> {
    let rhythm = facts.rhythm.as_ref()?;
    let table = &facts.process.allocations;
    let beats = rhythm.len();
    if beats < 6 {
        return None;
    }
    // The last beat may be cut.
    let stride = (beats - 1).div_ceil(24).max(1);
    let counts: Vec<i64> = (1..beats - 1)
        .step_by(stride)
        .map(|beat| {
            let rows = table.rows_in(rhythm.range_of(beat));
            rows.filter(|&row| facts.role(row) == Role::Backward).count() as i64
        })
        .collect();
    let (first, last) = (*counts.first()?, *counts.last()?);
    let rises = counts.windows(2).filter(|pair| pair[1] > pair[0]).count();
    let grows = rises * 4 >= (counts.len() - 1) * 3 && last * 3 >= first * 4 && last >= first + 4;
    grows.then_some((first, last))
}

/// A scalar made by the user's own line (not by a loss function), each living until the next is made.
fn running_sum(facts: &ProcessFacts<'_>) -> Option<StrId> {
    let beats = facts.rhythm.as_ref()?.len() as u32;
    facts
        .strands
        .iter()
        .filter(|strand| {
            let sizes = &strand.sizes;
            strand.role == Role::Forward
                && strand.traits.is_user_innermost
                && sizes.last_bytes <= 16
                && sizes.first_bytes <= 16
                && sizes.count >= 3
                && sizes.beats * 10 >= beats * 7
                && sizes.overlaps * 10 >= (sizes.count - 1) * 8
        })
        .map(|strand| strand.call_site)
        .next()
}
