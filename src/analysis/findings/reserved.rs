//! Reserved against allocated: fragmentation, and cache that stays level.

use super::super::BeatUnit;
use super::super::growth::{Beat, Growth, median};
use super::strands::ProcessFacts;
use super::{Context, Finding, Severity, advice};
use crate::model::{BlockState, ProcessId, Quantity, format_bytes};
use crate::text::t;

/// The gap must grow by this much, and by this share of what is reserved at the end.
const MIN_GAP_BYTES: i64 = 32 << 20;
const MIN_GAP_SHARE: f64 = 0.15;
/// Cache below this is not worth a word.
const MIN_CACHE_BYTES: i64 = 128 << 20;

pub(super) fn find(context: &Context<'_>, found: &mut Vec<Finding>) {
    let reserved_curves: Vec<&Growth> =
        context.growths.iter().filter(|growth| growth.quantity == Quantity::Reserved).collect();
    for &reserved in &reserved_curves {
        // What a log printed of a process is known exactly from what the process recorded itself.
        if reserved.process.is_none() && is_recorded(&reserved_curves, reserved) {
            continue;
        }
        let allocated = context.growths.iter().find(|growth| {
            growth.quantity == Quantity::Allocated
                && growth.process == reserved.process
                && growth.source == reserved.source
        });
        let Some(allocated) = allocated else { continue };
        let pairs = pair_beats(reserved, allocated);
        if pairs.len() < 4 {
            continue;
        }
        let facts = context.processes.iter().find(|facts| Some(facts.id) == reserved.process);
        let gaps = gaps(&pairs, peaks_elsewhere(context, reserved.process));
        if let Some(finding) = fragmentation(context, facts, reserved, allocated, &pairs, &gaps) {
            found.push(finding);
        } else if let Some(finding) = cache(context, facts, reserved, &pairs) {
            found.push(finding);
        }
    }
}

/// Whether a process's own curve tells of most of the time that a log's does.
fn is_recorded(curves: &[&Growth], log: &Growth) -> bool {
    let Some(log) = log.span() else { return false };
    curves.iter().filter(|curve| curve.process.is_some()).filter_map(|curve| curve.span()).any(|own| {
        let shared_ns = own.end_ns.min(log.end_ns).saturating_sub(own.start_ns.max(log.start_ns));
        shared_ns > log.duration_ns() / 2
    })
}

/// The beats that both curves have: (reserved, allocated).
fn pair_beats(reserved: &Growth, allocated: &Growth) -> Vec<(Beat, Beat)> {
    let of = |beat: usize| {
        allocated.beats.binary_search_by_key(&beat, |other| other.beat).ok().map(|at| allocated.beats[at])
    };
    reserved.beats.iter().filter_map(|&beat| Some((beat, of(beat.beat)?))).collect()
}

/// A printed peak says more than printed levels: the highest of a log's `max_memory_allocated`.
fn peaks_elsewhere(context: &Context<'_>, process: Option<ProcessId>) -> i64 {
    if process.is_some() {
        return 0;
    }
    let curves =
        context.session().curves().filter(|(.., series, _)| series.quantity == Quantity::PeakAllocated);
    curves.filter_map(|(.., series, _)| series.bytes.iter().copied().max()).max().unwrap_or(0)
}

/// Reserved minus the highest need so far, for each beat: what need alone doesn't explain.
fn gaps(pairs: &[(Beat, Beat)], known_peak: i64) -> Vec<i64> {
    let mut need = known_peak;
    pairs
        .iter()
        .map(|(reserved, allocated)| {
            need = need.max(allocated.peak_bytes);
            reserved.peak_bytes - need
        })
        .collect()
}

fn fragmentation(
    context: &Context<'_>,
    facts: Option<&ProcessFacts<'_>>,
    reserved: &Growth,
    allocated: &Growth,
    pairs: &[(Beat, Beat)],
    gaps: &[i64],
) -> Option<Finding> {
    // Windows of time don't know where training begins.
    let is_timed = reserved.rhythm.unit == BeatUnit::Window;
    let warm_up = if is_timed { gaps.len() * 2 / 5 } else { (gaps.len() / 8).clamp(1, 3) };
    let late = &gaps[gaps.len() - (gaps.len() / 8).max(1)..];
    let (early_gap, late_gap) = (gaps[warm_up - 1].max(0), median(late));
    let (first, last) = (pairs[warm_up - 1], pairs[pairs.len() - 1]);
    let grown = late_gap - early_gap;
    let reserved_rise = last.0.peak_bytes - first.0.peak_bytes;
    let floor_rise = if allocated.floor.shape.is_growth() { allocated.floor.rise_bytes.max(0) } else { 0 };
    let is_fragmented = grown > MIN_GAP_BYTES
        && grown as f64 > MIN_GAP_SHARE * last.0.peak_bytes as f64
        && reserved_rise > 0
        && grown > 2 * floor_rise;
    if !is_fragmented {
        return None;
    }
    let last_gap = gaps[gaps.len() - 1];
    let need_rise = reserved_rise - (last_gap - early_gap);
    let whose = facts.map_or_else(String::new, |facts| context.whose(facts));
    let unit = reserved.rhythm.unit.label();
    let mut finding = Finding::new(
        "fragmentation",
        Severity::Warning,
        if pairs.len() >= 10 { 0.85 } else { 0.6 },
        t!(
            "Reserved grows from {from} to {to}{whose} while what is needed grows by {need}: fragmentation",
            from = format_bytes(first.0.peak_bytes.max(0) as u64),
            to = format_bytes(last.0.peak_bytes.max(0) as u64),
            whose,
            need = format_bytes(need_rise.max(0) as u64),
        ),
        advice::FRAGMENTATION,
    );
    finding.bytes = last_gap.max(0) as u64;
    finding.per_step_bytes = (grown / (pairs.len() - warm_up).max(1) as i64).max(0) as u64;
    finding.evidence = vec![
        t!(
            "Reserved minus the highest allocated so far: {early} after {when}, {late} at the end.",
            early = format_bytes(early_gap as u64),
            when = reserved.rhythm.unit.numbered(reserved.rhythm.number(first.0.beat)),
            late = format_bytes(last_gap.max(0) as u64)
        ),
        t!(
            "Allocated at the end of a {unit} is {shape}: from {from} to {to}.",
            unit,
            shape = allocated.floor.shape.label(),
            from = format_bytes(first.1.floor_bytes.max(0) as u64),
            to = format_bytes(last.1.floor_bytes.max(0) as u64)
        ),
    ];
    if let Some(facts) = facts {
        finding.evidence.extend(sizes_evidence(facts));
        finding.evidence.extend(segments_evidence(facts));
        finding.call_sites = varying_sites(context, facts);
        if facts.process.segments.iter().any(|segment| segment.is_expandable) {
            finding.advice = t!(
                "Expandable segments are on already: make sizes repeat. Pad to a few lengths, and drop the last \
                 partial batch."
            )
            .to_owned();
            finding.code_before.clear();
            finding.code_after.clear();
        }
    }
    finding.range = reserved.rhythm.range_of(first.0.beat).union(reserved.rhythm.range_of(last.0.beat));
    Some(finding)
}

/// Whether a strand's sizes vary from time to time.
fn varies(strand: &super::strands::Strand) -> bool {
    strand.sizes.count >= 8 && (strand.sizes.rises + strand.sizes.falls) * 2 > strand.sizes.count
}

fn sizes_evidence(facts: &ProcessFacts<'_>) -> Option<String> {
    let often = facts.strands.iter().filter(|strand| strand.sizes.count >= 8).count();
    let varying = facts.strands.iter().filter(|strand| varies(strand)).count();
    (varying > 0).then(|| {
        t!(
            "{varying} of {often} stacks ask for other sizes from time to time, which freed blocks don't fit.",
            varying,
            often
        )
    })
}

fn varying_sites(context: &Context<'_>, facts: &ProcessFacts<'_>) -> Vec<String> {
    let mut varying: Vec<_> =
        facts.strands.iter().filter(|strand| varies(strand) && strand.traits.has_user).collect();
    varying.sort_by_key(|strand| std::cmp::Reverse(strand.sizes.last_bytes.max(strand.sizes.first_bytes)));
    let mut sites: Vec<String> = Vec::new();
    for strand in varying {
        let label = context.index.label(strand.call_site);
        if sites.len() < 3 && !sites.iter().any(|site| site == label) {
            sites.push(label.to_owned());
        }
    }
    sites
}

/// Free bytes in segments that hold live blocks too, and the largest free block.
fn segments_evidence(facts: &ProcessFacts<'_>) -> Option<String> {
    let segments = &facts.process.segments;
    let (mut split_bytes, mut largest, mut split_segments) = (0_u64, 0_u64, 0_u64);
    for segment in segments {
        let free = segment.blocks.iter().filter(|block| block.state == BlockState::Inactive);
        let is_split = segment.blocks.iter().any(|block| block.state != BlockState::Inactive);
        let free: Vec<u64> = free.map(|block| block.size_bytes).collect();
        largest = largest.max(free.iter().copied().max().unwrap_or(0));
        if is_split && !free.is_empty() {
            split_bytes += free.iter().sum::<u64>();
            split_segments += 1;
        }
    }
    (!segments.is_empty()).then(|| {
        t!(
            "At the snapshot {split} of {all} segments hold live and free blocks, {free} of it free; the largest free \
             block is {largest}.",
            split = split_segments,
            all = segments.len(),
            free = format_bytes(split_bytes),
            largest = format_bytes(largest)
        )
    })
}

fn cache(
    context: &Context<'_>,
    facts: Option<&ProcessFacts<'_>>,
    reserved: &Growth,
    pairs: &[(Beat, Beat)],
) -> Option<Finding> {
    let (last_reserved, last_allocated) = pairs[pairs.len() - 1];
    let cached = last_reserved.floor_bytes - last_allocated.floor_bytes;
    let is_level = !reserved.floor.shape.is_growth();
    if !is_level || cached < MIN_CACHE_BYTES || cached * 3 < last_reserved.floor_bytes {
        return None;
    }
    let mut finding = Finding::new(
        "cache_only",
        Severity::Info,
        0.85,
        t!(
            "{bytes} of {reserved} reserved{whose} is cache for the next {unit}, and level",
            bytes = format_bytes(cached as u64),
            reserved = format_bytes(last_reserved.floor_bytes.max(0) as u64),
            whose = facts.map_or_else(String::new, |facts| context.whose(facts)),
            unit = reserved.rhythm.unit.label()
        ),
        advice::CACHE_ONLY,
    );
    finding.bytes = cached as u64;
    finding.evidence = vec![reserved.describe()];
    finding.range = context.query.range;
    Some(finding)
}
