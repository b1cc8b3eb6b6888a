//! Nothing grows: said only when no other diagnosis says otherwise.

use super::super::BeatUnit;
use super::super::growth::Shape;
use super::{Context, Finding, Severity, advice};
use crate::model::Quantity;
use crate::text::t;

/// Kinds that say that memory grows or that the run failed.
const GROWS: &[&str] = &[
    "oom",
    "graph_kept",
    "graph_chained",
    "kept_outputs",
    "hook_or_cache",
    "custom_function_ctx",
    "growing_tensor",
    "growing_peak",
    "saw_tooth",
    "fragmentation",
    "other_process",
    "outside_allocator",
    "small_tensors_kept",
];

pub(super) fn find(context: &Context<'_>, found: &mut Vec<Finding>) {
    let denies = |finding: &Finding| finding.severity > Severity::Info && GROWS.contains(&finding.kind);
    let curves: Vec<_> =
        context.growths.iter().filter(|growth| !matches!(growth.quantity, Quantity::ProcessUsed)).collect();
    let is_level = curves.iter().all(|growth| !growth.leading().shape.is_growth())
        && curves.iter().any(|growth| growth.floor.shape != Shape::TooShort);
    if found.iter().any(denies) || !is_level {
        return;
    }
    let allocated = curves.iter().find(|growth| growth.quantity == Quantity::Allocated);
    let beats = allocated.or(curves.first()).map_or(0, |growth| growth.beats.len());
    let unit = allocated.map_or(BeatUnit::Window, |growth| growth.rhythm.unit);
    let mut finding = Finding::new(
        "no_growth",
        Severity::Info,
        if beats >= 10 { 0.9 } else { 0.7 },
        t!("Nothing grows over {steps}", steps = unit.counted(beats)),
        advice::LEVEL,
    );
    finding.confirm =
        t!("Record for longer, over an epoch's end and a validation, if growth is rare.").to_owned();
    // A curve of three printed figures says nothing beside one that is long enough.
    let tell = curves.iter().filter(|growth| growth.floor.shape != Shape::TooShort);
    for sentence in tell.map(|growth| t!("{sentence}.", sentence = growth.describe())) {
        if finding.evidence.len() < 5 && !finding.evidence.contains(&sentence) {
            finding.evidence.push(sentence);
        }
    }
    finding.range = context.recorded().unwrap_or(context.query.range);
    found.push(finding);
}
