//! Growth that no list of survivors shows: one tensor made anew and larger each step, inputs that grow, and piles that
//! are freed in bulk.

use super::super::growth::Shape;
use super::super::{BeatUnit, label_words};
use super::families::{Fate, fate};
use super::strands::{ProcessFacts, Role, Strand};
use super::{Context, Finding, Severity, advice};
use crate::model::{Quantity, format_bytes};
use crate::text::t;

/// Piles below this are not worth a word.
const MIN_PILE_BYTES: u64 = 64 * 1024;
/// Growing tensors below this are not worth a word.
const MIN_TENSOR_BYTES: u64 = 64 * 1024;

pub(super) fn find(context: &Context<'_>, found: &mut Vec<Finding>) {
    for facts in &context.processes {
        growing_tensors(context, facts, found);
        saw_teeth(context, facts, found);
        growing_peak(context, facts, found);
    }
}

/// Whether a strand makes a larger tensor each time.
fn grows(strand: &Strand) -> bool {
    let sizes = &strand.sizes;
    sizes.count >= 5 && sizes.rises * 10 >= (sizes.count - 1) * 7 && sizes.falls * 10 <= sizes.count
}

fn growing_tensors(context: &Context<'_>, facts: &ProcessFacts<'_>, found: &mut Vec<Finding>) {
    let Some(rhythm) = &facts.rhythm else { return };
    for strand in &facts.strands {
        let sizes = &strand.sizes;
        let is_alive_until_next = sizes.overlaps * 10 >= sizes.count.saturating_sub(1) * 8;
        let risen = sizes.last_bytes.saturating_sub(sizes.first_bytes);
        let is_accumulator =
            strand.role == Role::Forward && is_alive_until_next && grows(strand) && strand.long.len() < 3;
        if !is_accumulator || risen < MIN_TENSOR_BYTES || sizes.last_bytes < sizes.first_bytes * 5 / 4 {
            continue;
        }
        let place = context.index.label(strand.call_site).to_owned();
        let per_step = risen / u64::from(sizes.beats.max(2) - 1);
        let mut finding = Finding::new(
            "growing_tensor",
            if risen >= 1 << 20 { Severity::Error } else { Severity::Warning },
            0.85,
            t!(
                "One tensor is made anew and larger each {unit}: {bytes} so far, {more} more each time, at {place}",
                unit = rhythm.unit.label(),
                bytes = format_bytes(sizes.last_bytes),
                more = format_bytes(risen / u64::from(sizes.count - 1)),
                place = label_words(&place),
            ),
            advice::GROWING_TENSOR,
        );
        finding.bytes = sizes.last_bytes;
        finding.per_step_bytes = per_step;
        finding.evidence = vec![
            t!(
                "{count} allocations of this stack, {rises} of them larger than the one before: from {from} to {to}.",
                count = sizes.count,
                rises = sizes.rises,
                from = format_bytes(sizes.first_bytes),
                to = format_bytes(sizes.last_bytes)
            ),
            t!("Each lives until the next is made: only the last survives, so that no list of survivors shows the growth.")
                .to_owned(),
        ];
        finding.call_sites = vec![place];
        finding.range = context.query.range;
        found.push(finding);
    }
}

fn saw_teeth(context: &Context<'_>, facts: &ProcessFacts<'_>, found: &mut Vec<Finding>) {
    let mut piles: Vec<(&Strand, u32, u64)> = facts
        .strands
        .iter()
        .filter(|strand| matches!(strand.role, Role::Forward | Role::Backward))
        .filter_map(|strand| match fate(facts, strand) {
            Fate::SawTooth { falls, peak_bytes } => Some((strand, falls, peak_bytes)),
            _ => None,
        })
        .collect();
    // Gradients that accumulate over several iterations come and go too, and have no Python frames.
    piles.retain(|(strand, ..)| strand.role == Role::Forward);
    let peak_bytes: u64 = piles.iter().map(|&(.., peak)| peak).sum();
    let Some(falls) = piles.iter().map(|&(_, falls, _)| falls).max() else { return };
    if peak_bytes < MIN_PILE_BYTES {
        return;
    }
    piles.sort_by_key(|&(.., peak)| std::cmp::Reverse(peak));
    let peak_of_run = context
        .growth(Some(facts.id), &Quantity::Allocated)
        .map_or(0, |growth| growth.beats.iter().map(|beat| beat.peak_bytes).max().unwrap_or(0).max(0) as u64);
    let is_large = peak_bytes * 10 >= peak_of_run;
    let mut finding = Finding::new(
        "saw_tooth",
        if is_large { Severity::Warning } else { Severity::Info },
        if falls >= 2 { 0.85 } else { 0.6 },
        match falls {
            1 => {
                t!("Memory piles up to {bytes} and is freed in bulk, once", bytes = format_bytes(peak_bytes))
            }
            _ => t!(
                "Memory piles up to {bytes} and is freed in bulk, {falls} times",
                bytes = format_bytes(peak_bytes),
                falls
            ),
        },
        advice::SAW_TOOTH,
    );
    finding.bytes = peak_bytes;
    finding.evidence = vec![t!(
        "{count} stacks pile up over several {unit}s and lose half or more of it within one: no endless growth.",
        count = piles.len(),
        unit = facts.rhythm.as_ref().map_or(BeatUnit::Step, |rhythm| rhythm.unit).label()
    )];
    let mut sites: Vec<String> = Vec::new();
    for (strand, ..) in &piles {
        let label = context.index.label(strand.call_site);
        if sites.len() < 3 && !sites.iter().any(|site| site == label) {
            sites.push(label.to_owned());
        }
    }
    finding.call_sites = sites;
    finding.range = context.query.range;
    found.push(finding);
}

/// The floor is level, but each step needs more than the one before.
fn growing_peak(context: &Context<'_>, facts: &ProcessFacts<'_>, found: &mut Vec<Finding>) {
    let Some(growth) = context.growth(Some(facts.id), &Quantity::Allocated) else { return };
    let has_cause = found.iter().any(|finding| finding.severity > Severity::Info);
    if growth.floor.shape.is_growth() || growth.peak.shape != Shape::Ramp || has_cause {
        return;
    }
    let mut growing: Vec<&Strand> = facts
        .strands
        .iter()
        .filter(|strand| grows(strand) && strand.sizes.last_bytes > strand.sizes.first_bytes * 11 / 10)
        .collect();
    growing.sort_by_key(|strand| {
        std::cmp::Reverse(strand.sizes.last_bytes.saturating_sub(strand.sizes.first_bytes))
    });
    let per_step = growth.peak.per_beat_bytes.max(0.0) as u64;
    let mut finding = Finding::new(
        "growing_peak",
        Severity::Warning,
        if growing.is_empty() { 0.5 } else { 0.8 },
        t!(
            "Each {unit} needs more at its peak than the one before, {rate}, while nothing stays",
            unit = growth.rhythm.unit.label(),
            rate = growth.rate()
        ),
        advice::GROWING_INPUTS,
    );
    finding.bytes = growth.peak.rise_bytes.max(0) as u64;
    finding.per_step_bytes = per_step;
    finding.evidence = vec![t!(
        "Floor: {floor}. Peak: {peak}.",
        floor = growth.floor.shape.label(),
        peak = growth.peak.shape.label()
    )];
    if !growing.is_empty() {
        finding
            .evidence
            .push(t!("{count} stacks allocate larger tensors from step to step.", count = growing.len()));
    }
    for strand in growing {
        let label = context.index.label(strand.call_site).to_owned();
        if finding.call_sites.len() < 3 && !finding.call_sites.contains(&label) {
            finding.call_sites.push(label);
        }
    }
    finding.range = growth.range();
    found.push(finding);
}
