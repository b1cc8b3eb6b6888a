//! What was kept once in the middle of a run: the level rose and stays, which is no growth, and still takes its room.

use rustc_hash::FxHashMap;

use super::super::{BeatUnit, Totals, label_words};
use super::families::{Fate, fate};
use super::strands::{NEVER, ProcessFacts, Role};
use super::{Context, Finding, Severity, advice};
use crate::model::{Quantity, StrId, format_bytes, format_count};
use crate::text::t;

/// Less than this is not worth a word.
const MIN_BYTES: u64 = 1 << 20;
/// Nor is less than this share of the peak.
const MIN_SHARE: f64 = 0.02;
/// From this share of the peak on it is a warning.
const WARNING_SHARE: f64 = 0.1;

pub(super) fn find(context: &Context<'_>, found: &mut Vec<Finding>) {
    for facts in &context.processes {
        in_process(context, facts, found);
    }
}

fn in_process(context: &Context<'_>, facts: &ProcessFacts<'_>, found: &mut Vec<Finding>) {
    let Some(rhythm) = facts.rhythm.as_ref().filter(|rhythm| rhythm.unit != BeatUnit::Window) else { return };
    let last_beat = facts.last_beat();
    // What the first beats make belongs to warm-up, what the last two made may be in flight.
    let first_beat = (rhythm.len() as i32 / 5).clamp(1, 3);
    let mut beats: FxHashMap<i32, (Totals, FxHashMap<StrId, u64>)> = FxHashMap::default();
    for strand in &facts.strands {
        if !matches!(strand.role, Role::Forward | Role::Setup) || fate(facts, strand) != Fate::Once {
            continue;
        }
        for row in &strand.long {
            let is_settled = row.beat >= first_beat && last_beat - row.beat >= 2;
            if row.free_beat == NEVER && is_settled && context.is_kept(facts, row.row) {
                let (totals, by_site) = beats.entry(row.beat).or_default();
                totals.add(row.bytes);
                *by_site.entry(strand.call_site).or_default() += row.bytes;
            }
        }
    }
    let largest = beats.into_iter().max_by_key(|(beat, (totals, _))| (totals.bytes, -beat));
    let Some((beat, (totals, by_site))) = largest else { return };
    let share = totals.bytes as f64 / peak_bytes(context, facts).max(1) as f64;
    if totals.bytes < MIN_BYTES || share < MIN_SHARE {
        return;
    }
    let mut sites: Vec<(StrId, u64)> = by_site.into_iter().collect();
    sites.sort_by_key(|&(site, bytes)| (std::cmp::Reverse(bytes), site));
    let call_sites: Vec<String> =
        sites.iter().take(3).map(|&(site, _)| context.index.label(site).to_owned()).collect();
    let unit = rhythm.unit.label();
    let when = rhythm.unit.numbered(rhythm.number(beat.max(0) as usize));
    let mut finding = Finding::new(
        "kept_once",
        if share >= WARNING_SHARE { Severity::Warning } else { Severity::Info },
        0.8,
        t!(
            "{bytes} kept once, in {when}, at {place}{whose}: the level rose and stays",
            bytes = format_bytes(totals.bytes),
            when,
            place = label_words(call_sites.first().map_or("", String::as_str)),
            whose = context.whose(facts)
        ),
        advice::KEPT_ONCE,
    );
    finding.bytes = totals.bytes;
    finding.evidence = vec![
        t!(
            "{count} allocations of {when} are still there at the end, {percent}% of the peak; no other {unit} keeps \
             anything at these places.",
            count = format_count(totals.count),
            when,
            percent = format!("{:.0}", share * 100.0),
            unit
        ),
        t!("{count} {unit}s follow without more of it.", count = last_beat - beat, unit),
    ];
    finding.call_sites = call_sites;
    finding.range = rhythm.range_of(beat.max(0) as usize);
    found.push(finding);
}

fn peak_bytes(context: &Context<'_>, facts: &ProcessFacts<'_>) -> u64 {
    let curves = facts.process.series.iter().filter(|series| {
        series.quantity == Quantity::Allocated && context.query.selection.device.admits(series.device)
    });
    curves.filter_map(|series| series.bytes.iter().max()).map(|&bytes| bytes.max(0).unsigned_abs()).sum()
}
