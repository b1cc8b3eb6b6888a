//! Two runs, or two moments of one run: what is alive at the end of the second and not of the first.

use rustc_hash::FxHashMap;

use super::{
    FreeBy, Group, GroupBy, Index, Query, RowRef, Selection, StackLines, StackTexts, Totals, group, kept,
    live,
};
use crate::model::{BEFORE_NS, NEVER_NS, TimeRange};

/// What lives at a call site on one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// How much.
    pub totals: Totals,
    /// How much of it each step added; 0 when steps are not known.
    pub per_step_bytes: u64,
}

/// A call site on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The call site, or what else is summed by, as the second run writes it where it has it.
    pub call_site: String,
    /// The stack that holds most of it, innermost frame first.
    pub stack: StackLines,
    /// In the first run.
    pub before: Side,
    /// In the second run.
    pub after: Side,
}

impl Difference {
    /// How much more the second run holds.
    pub fn delta_bytes(&self) -> i64 {
        let difference = i128::from(self.after.totals.bytes) - i128::from(self.before.totals.bytes);
        difference.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// How many more allocations the second run has.
    pub fn delta_count(&self) -> i64 {
        self.after.totals.count as i64 - self.before.totals.count as i64
    }
}

/// A moment that can be compared with another one: whose memory, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Whose memory.
    pub selection: Selection,
    /// When; `None` at the end of the recording, where what waits for a stream or lies in a private pool stands apart.
    pub at_ns: Option<i64>,
}

impl Moment {
    /// The end of a whole recording.
    const END: Self =
        Self { selection: Selection { process: None, device: super::DeviceFilter::Gpus }, at_ns: None };

    /// What is alive then.
    fn rows(self, index: &Index) -> Vec<RowRef> {
        if let Some(at_ns) = self.at_ns {
            return live(&index.session, self.selection, at_ns);
        }
        let range = TimeRange { start_ns: BEFORE_NS, end_ns: NEVER_NS };
        kept(&index.session, &Query { selection: self.selection, range, free_by: FreeBy::RecordingEnd })
    }
}

/// A figure of memory summaries on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FigureDifference {
    /// The figure, as the summary names it.
    pub name: String,
    /// In the first run's last summary.
    pub before: i64,
    /// In the second run's.
    pub after: i64,
}

/// Two runs side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Alive at the end of the first run.
    pub before: Totals,
    /// Alive at the end of the second.
    pub after: Totals,
    /// Call sites, those that differ most first.
    pub differences: Vec<Difference>,
    /// Figures of memory summaries that differ, in their order.
    pub figures: Vec<FigureDifference>,
}

/// Compares what lives on GPUs at the end of two sessions.
pub fn compare(before: &Index, after: &Index) -> Comparison {
    let figures = figures(before, after);
    let sides = [(before, Moment::END), (after, Moment::END)];
    Comparison { figures, ..compare_sides(sides, GroupBy::CallSite) }
}

/// Compares what lives at two moments of one session, summed by call site, stack or something else, which the
/// differences then have in place of their call site.
pub fn compare_moments(index: &Index, before: Moment, after: Moment, by: GroupBy) -> Comparison {
    compare_sides([(index, before), (index, after)], by)
}

fn compare_sides(sides: [(&Index, Moment); 2], by: GroupBy) -> Comparison {
    let [before_groups, after_groups] = sides.map(|(index, moment)| group(index, &moment.rows(index), by));
    let sum = |groups: &[Group]| {
        groups.iter().fold(Totals::default(), |sum, group| Totals {
            count: sum.count + group.count,
            bytes: sum.bytes.saturating_add(group.bytes),
        })
    };
    Comparison {
        before: sum(&before_groups),
        after: sum(&after_groups),
        differences: pair(sides[0].0, &before_groups, sides[1].0, &after_groups),
        figures: Vec::new(),
    }
}

/// Pairs call sites of the same text; then, since an edit moves lines, those of the same file and function where that
/// names one on each side.
fn pair(before: &Index, before_groups: &[Group], after: &Index, after_groups: &[Group]) -> Vec<Difference> {
    let mut rest: FxHashMap<&str, &Group> =
        before_groups.iter().map(|group| (group.key.as_str(), group)).collect();
    let mut pairs: Vec<(Option<&Group>, &Group)> =
        after_groups.iter().map(|group| (rest.remove(group.key.as_str()), group)).collect();
    let mut moved: FxHashMap<String, Vec<&Group>> = FxHashMap::default();
    for group in rest.values() {
        moved.entry(without_line(&group.key)).or_default().push(group);
    }
    let mut new_in: FxHashMap<String, usize> = FxHashMap::default();
    for (_, group) in pairs.iter().filter(|(before, _)| before.is_none()) {
        *new_in.entry(without_line(&group.key)).or_default() += 1;
    }
    for (before, group) in pairs.iter_mut().filter(|(before, _)| before.is_none()) {
        let place = without_line(&group.key);
        if let (Some([one]), Some(1)) = (moved.get(&place).map(Vec::as_slice), new_in.get(&place)) {
            rest.remove(one.key.as_str());
            *before = Some(one);
        }
    }
    let (mut before_stacks, mut after_stacks) = (StackTexts::new(before), StackTexts::new(after));
    let of_after = pairs.into_iter().map(|(one, other)| Difference {
        call_site: other.key.clone(),
        stack: after_stacks.lines(other.stack.0, other.stack.1),
        before: one.map(side).unwrap_or_default(),
        after: side(other),
    });
    let gone = rest.into_values().map(|group| Difference {
        call_site: group.key.clone(),
        stack: before_stacks.lines(group.stack.0, group.stack.1),
        before: side(group),
        after: Side::default(),
    });
    let mut differences: Vec<Difference> = of_after.chain(gone).collect();
    differences.sort_by(|a, b| {
        let size = |difference: &Difference| difference.delta_bytes().unsigned_abs();
        size(b).cmp(&size(a)).then_with(|| a.call_site.cmp(&b.call_site))
    });
    differences
}

fn side(group: &Group) -> Side {
    Side { totals: Totals { count: group.count, bytes: group.bytes }, per_step_bytes: group.per_step_bytes }
}

/// `train.py:12 step` → `train.py step`.
fn without_line(call_site: &str) -> String {
    match call_site.split_once(' ').map(|(place, function)| (place.rsplit_once(':'), function)) {
        Some((Some((file, line)), function)) if line.parse::<u32>().is_ok() => format!("{file} {function}"),
        _ => call_site.to_owned(),
    }
}

fn figures(before: &Index, after: &Index) -> Vec<FigureDifference> {
    let last = |index: &Index| -> Vec<(String, i64)> {
        let summaries = index.session.sources.iter().flat_map(|source| &source.recording.summaries);
        summaries.last().map(|summary| summary.figures.clone()).unwrap_or_default()
    };
    let old: FxHashMap<String, i64> = last(before).into_iter().collect();
    last(after)
        .into_iter()
        .filter_map(|(name, after)| {
            let before = *old.get(&name)?;
            (before != after).then_some(FigureDifference { name, before, after })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::align;
    use crate::analysis::UserCode;
    use crate::model::{Allocation, Clock, Recording, SourceKind};

    #[test]
    fn two_moments_differ_in_what_was_allocated_and_freed_between() {
        let mut recording = Recording::new(SourceKind::Snapshot, "test", Clock::Unix);
        for (address, alloc_ns, free_ns, size_bytes) in
            [(1, 0, NEVER_NS, 64), (2, 10, 30, 8), (3, 25, NEVER_NS, 16), (4, 26, NEVER_NS, 16)]
        {
            recording.allocations.push(Allocation::from_to(address, size_bytes, alloc_ns, free_ns));
        }
        recording.span = Some(TimeRange::new(0, 100));
        let opened = align::Opened::new("snapshot.pickle", Arc::new(recording));
        let index = Index::new(Arc::new(align::build(&[opened])), UserCode::default());
        let moment = |at_ns| Moment { selection: Selection::default(), at_ns };
        let found = compare_moments(&index, moment(Some(20)), moment(None), GroupBy::Size);
        let told: Vec<_> = found
            .differences
            .iter()
            .map(|difference| (difference.delta_bytes(), difference.delta_count()))
            .collect();
        assert_eq!(told, [(32, 2), (-8, -1), (0, 0)]);
        assert_eq!((found.before.bytes, found.after.bytes), (72, 96));
        let back = compare_moments(&index, moment(None), moment(Some(20)), GroupBy::Size);
        assert_eq!(back.differences[0].delta_bytes(), -32, "the other way round");
    }

    #[test]
    fn lines_are_left_out_of_places() {
        assert_eq!(without_line("train.py:12 step"), "train.py step");
        assert_eq!(without_line("(no Python stack)"), "(no Python stack)");
    }
}
