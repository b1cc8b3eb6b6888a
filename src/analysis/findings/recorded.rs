//! What the recording itself leaves open: a ring that was too small, too few steps, no memory events.

use super::super::{BeatUnit, Totals};
use super::strands::ProcessFacts;
use super::{Context, Finding, Severity, advice};
use crate::model::{BEFORE_NS, NEVER_NS, SourceKind, TimeRange, format_bytes, format_count};
use crate::text::{say, t};

/// Frees without an alloc from which on events must have been lost.
const MIN_LOST_FREES: u64 = 8;

pub(super) fn find(context: &Context<'_>, found: &mut Vec<Finding>) {
    let mut has_memory = false;
    for facts in &context.processes {
        if facts.process.allocations.is_empty() {
            continue;
        }
        has_memory = true;
        truncated(context, facts, found);
        too_short(context, facts, found);
    }
    if !has_memory {
        no_memory(context, found);
    }
}

/// Blocks from before the recording: where steps were recorded before its first event, the ring was too small.
fn truncated(context: &Context<'_>, facts: &ProcessFacts<'_>, found: &mut Vec<Finding>) {
    if !facts.process.has_snapshot {
        return;
    }
    let table = &facts.process.allocations;
    let before = table.alloc_ns.partition_point(|&time| time == BEFORE_NS);
    let (mut freed, mut alive) = (Totals::default(), Totals::default());
    for row in 0..before {
        let part = if table.free_completed_ns[row] == NEVER_NS { &mut alive } else { &mut freed };
        part.add(table.size_bytes[row]);
    }
    let Some(&first_ns) = table.alloc_ns.get(before) else { return };
    let steps = &facts.process.steps;
    let steps_before = steps.iter().filter(|step| step.range.end_ns <= first_ns).count();
    if freed.count < MIN_LOST_FREES && steps_before == 0 {
        return;
    }
    let mut finding = Finding::new(
        "history_truncated",
        Severity::Warning,
        if steps_before > 0 { 0.95 } else { 0.7 },
        if steps_before > 0 {
            t!("The history ring was too small: the events of {count} steps are lost", count = steps_before)
        } else {
            t!("The history begins in the middle of the run").to_owned()
        },
        advice::TRUNCATED,
    );
    finding.title += &context.whose(facts);
    finding.bytes = alive.bytes;
    finding.evidence = vec![
        t!(
            "{count} blocks were freed whose allocation was not recorded ({bytes}).",
            count = format_count(freed.count),
            bytes = format_bytes(freed.bytes)
        ),
        t!(
            "{count} live blocks ({bytes}) are from before the first event: who allocated them is not known.",
            count = format_count(alive.count),
            bytes = format_bytes(alive.bytes)
        ),
    ];
    if let (Some(first), true) = (steps.get(steps_before), steps_before > 0) {
        finding.evidence.push(t!("The first event lies in step {number}.", number = first.number));
    }
    // From the first event on, so that whoever looks at what lies before it can be told.
    finding.range = TimeRange::new(first_ns, facts.process.recorded.end_ns.max(first_ns));
    found.push(finding);
}

fn too_short(context: &Context<'_>, facts: &ProcessFacts<'_>, found: &mut Vec<Finding>) {
    let beats = facts.rhythm.as_ref().map(|rhythm| (rhythm.unit, rhythm.len()));
    let text = match beats {
        Some((BeatUnit::Window, _)) | None => t!("no step and nothing that repeats was seen").to_owned(),
        Some((unit, beats)) if beats < 4 => unit.counted(beats),
        Some(_) => return,
    };
    let mut finding = Finding::new(
        "recording_too_short",
        Severity::Info,
        0.8,
        t!("Too short to tell growth from warm-up{whose}: {text}", whose = context.whose(facts), text),
        advice::TOO_SHORT,
    );
    finding.evidence = vec![t!(
        "{count} allocations were recorded.",
        count = format_count(facts.process.allocations.len() as u64)
    )];
    finding.range = facts.process.recorded;
    found.push(finding);
}

fn no_memory(context: &Context<'_>, found: &mut Vec<Finding>) {
    let kinds: Vec<SourceKind> = context.session().sources.iter().map(crate::model::Source::kind).collect();
    if kinds.is_empty() || kinds.contains(&SourceKind::MemoryTimeline) {
        return;
    }
    let has_trace = kinds.contains(&SourceKind::Trace);
    let words = if has_trace { advice::NO_PROFILED_MEMORY } else { advice::NO_MEMORY_EVENTS };
    let title = if has_trace {
        t!("The trace has no memory events: which tensors were allocated is not known")
    } else {
        t!("No file tells which tensors were allocated: only curves can be shown")
    };
    let mut finding = Finding::new("no_memory_events", Severity::Info, 0.95, title.to_owned(), words);
    let mut labels: Vec<&str> = kinds.iter().map(|kind| say(kind.label())).collect();
    labels.sort_unstable();
    labels.dedup();
    finding.evidence = vec![t!("Opened: {kinds}.", kinds = labels.join(t!(", ")))];
    finding
        .evidence
        .extend(context.growths.iter().take(4).map(|growth| t!("{sentence}.", sentence = growth.describe())));
    finding.range = context.query.range;
    found.push(finding);
}
