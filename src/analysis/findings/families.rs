//! Families: strands of one place that keep memory in the same beats, and what becomes of it.

use rustc_hash::FxHashMap;

use super::super::BeatUnit;
use super::strands::{LongRow, NEVER, ProcessFacts, Role, Strand};
use crate::model::StrId;

/// Two places keep memory in the same beats when this share of their beats agrees.
const SAME_BEATS_SHARE: f64 = 0.75;

/// What becomes of the long-lived rows of a strand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fate {
    /// Kept again and again, never freed.
    Growing,
    /// Kept once, or only in the first beats.
    Once,
    /// As many freed as made: a buffer of bounded size.
    Bounded,
    /// Freed in bulk now and then: how often, and the highest level in bytes.
    SawTooth { falls: u32, peak_bytes: u64 },
}

/// One place that keeps memory.
#[derive(Clone, Debug)]
pub(super) struct Site {
    /// The call site's label.
    pub call_site: StrId,
    /// Indices of its strands.
    pub strands: Vec<usize>,
    /// The rows that nothing freed, in their order.
    pub rows: Vec<LongRow>,
    /// The beats that keep something, ascending, without the last one.
    pub settled: Vec<i32>,
    /// The same with the last one.
    pub seen: Vec<i32>,
}

/// Places that keep memory together.
#[derive(Clone, Debug)]
pub(super) struct Family {
    /// The places, the one that keeps most first.
    pub sites: Vec<Site>,
    /// Every how many beats it keeps something.
    pub period: usize,
    /// Count and bytes that one such beat keeps.
    pub per_time: (u64, u64),
    /// How sure it is that this goes on, 0 to 1.
    pub certainty: f32,
}

impl Family {
    /// The place that keeps most.
    pub fn main(&self) -> &Site {
        &self.sites[0]
    }

    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = &LongRow> {
        self.sites.iter().flat_map(|site| site.rows.iter())
    }

    /// Bytes for each beat.
    pub fn per_beat_bytes(&self) -> u64 {
        self.per_time.1 / self.period.max(1) as u64
    }
}

/// The strands whose memory grows, joined into families, the largest first.
pub(super) fn growing_families(facts: &ProcessFacts<'_>) -> Vec<Family> {
    let mut sites: Vec<Site> = Vec::new();
    for (position, strand) in facts.strands.iter().enumerate() {
        if !matches!(strand.role, Role::Forward | Role::Backward) || fate(facts, strand) != Fate::Growing {
            continue;
        }
        let rows = never_freed(strand);
        match sites.iter_mut().find(|site| {
            site.call_site == strand.call_site && facts.strands[site.strands[0]].role == strand.role
        }) {
            Some(site) => {
                site.strands.push(position);
                site.rows.extend(rows);
            }
            None => sites.push(Site {
                call_site: strand.call_site,
                strands: vec![position],
                rows,
                settled: Vec::new(),
                seen: Vec::new(),
            }),
        }
    }
    for site in &mut sites {
        site.rows.sort_unstable_by_key(|row| row.row);
        (site.settled, site.seen) = beats_of(&site.rows, facts.last_beat());
    }
    let bytes = |site: &Site| site.rows.iter().map(|row| row.bytes).sum::<u64>();
    let last_row = |site: &Site| site.rows.last().map_or(0, |row| row.row);
    sites.sort_by_key(|site| std::cmp::Reverse((bytes(site), last_row(site))));

    let mut families: Vec<Family> = Vec::new();
    for site in sites {
        let joins = |family: &&mut Family| {
            let main = family.main();
            let are_both_small = is_small(&site.rows) == is_small(&main.rows);
            let holds_graph = family.sites.iter().map(|site| site.strands.len()).sum::<usize>() > 3;
            same_beats(&main.settled, &site.settled) && (are_both_small || holds_graph)
        };
        match families.iter_mut().find(joins) {
            Some(family) => family.sites.push(site),
            None => families.push(Family { sites: vec![site], period: 1, per_time: (0, 0), certainty: 1.0 }),
        }
    }
    for family in &mut families {
        measure(family, facts);
    }
    families
}

/// Whether all rows are scalars or little more.
pub(super) fn is_small(rows: &[LongRow]) -> bool {
    rows.iter().all(|row| row.bytes <= 1024)
}

fn measure(family: &mut Family, facts: &ProcessFacts<'_>) {
    let main = family.main().clone();
    let mut gaps: Vec<i32> = main.seen.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable();
    family.period = gaps.get(gaps.len() / 2).map_or(1, |&gap| gap.max(1) as usize);
    let mut of_beats: FxHashMap<i32, (u64, u64)> = FxHashMap::default();
    for row in family.rows() {
        let (count, bytes) = of_beats.entry(row.beat).or_default();
        *count += 1;
        *bytes += row.bytes;
    }
    let mut figures: Vec<(u64, u64)> =
        main.settled.iter().map(|beat| of_beats.get(beat).copied().unwrap_or_default()).collect();
    figures.sort_unstable_by_key(|&(_, bytes)| bytes);
    family.per_time = figures.get(figures.len() / 2).copied().unwrap_or_default();
    let of_beats = match main.seen.len() {
        0..=2 if facts.last_beat() >= 11 => 0.5,
        0..=2 => 0.7,
        3 => 0.9,
        _ => 1.0,
    };
    let is_window = facts.rhythm.as_ref().is_some_and(|rhythm| rhythm.unit == BeatUnit::Window);
    let of_source = if facts.process.has_snapshot { 1.0 } else { 0.85 };
    family.certainty = of_beats * of_source * if is_window { 0.7 } else { 1.0 };
}

/// The rows that nothing freed, without sizes that occur once among many that repeat: workspaces made at first use
/// share the stack of the tensor beside them.
fn never_freed(strand: &Strand) -> Vec<LongRow> {
    let rows: Vec<LongRow> = strand.long.iter().copied().filter(|row| row.free_beat == NEVER).collect();
    let mut sizes: Vec<u64> = rows.iter().map(|row| row.bytes).collect();
    sizes.sort_unstable();
    let times = |bytes: u64| {
        sizes.partition_point(|&size| size <= bytes) - sizes.partition_point(|&size| size < bytes)
    };
    let repeated = rows.iter().filter(|row| times(row.bytes) >= 3).count();
    if repeated * 2 > rows.len() {
        rows.into_iter().filter(|row| times(row.bytes) >= 2).collect()
    } else {
        rows
    }
}

/// The beats of rows, without and with the last beat of the run.
fn beats_of(rows: &[LongRow], last_beat: i32) -> (Vec<i32>, Vec<i32>) {
    let mut seen: Vec<i32> = rows.iter().map(|row| row.beat).collect();
    seen.sort_unstable();
    seen.dedup();
    let settled = seen.iter().copied().filter(|&beat| beat < last_beat).collect();
    (settled, seen)
}

/// What becomes of a strand's long-lived rows.
pub(super) fn fate(facts: &ProcessFacts<'_>, strand: &Strand) -> Fate {
    let last_beat = facts.last_beat();
    let freed = strand.long.iter().filter(|row| row.free_beat != NEVER).count();
    let kept = never_freed(strand);
    if freed > 0 {
        if let Some((falls, peak_bytes)) = bulk_falls(&strand.long, last_beat) {
            return Fate::SawTooth { falls, peak_bytes };
        }
        if freed * 2 > kept.len() {
            return Fate::Bounded;
        }
    }
    let (settled, seen) = beats_of(&kept, last_beat);
    // What was made in the last two beats may be in flight, and proves nothing by itself.
    let is_proven = settled.iter().any(|&beat| last_beat - beat >= 2);
    let (Some(&last_seen), true) = (seen.last(), is_proven && seen.len() >= 2) else {
        return Fate::Once;
    };
    let mut gaps: Vec<i32> = seen.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable();
    let gap = gaps[gaps.len() / 2];
    let has_stopped = f64::from(last_beat - last_seen) > 2.5 * f64::from(gap) + 1.0;
    if has_stopped { Fate::Once } else { Fate::Growing }
}

/// How often at least half of what had piled up went within a beat, and the highest pile.
fn bulk_falls(long: &[LongRow], last_beat: i32) -> Option<(u32, u64)> {
    let beats = (last_beat.max(0) + 2) as usize;
    let (mut up, mut down) = (vec![0_u64; beats], vec![0_u64; beats]);
    let mut rows_down = vec![0_u32; beats];
    for row in long {
        let at = (row.beat.max(0) as usize).min(beats - 1);
        up[at] += row.bytes;
        if row.free_beat != NEVER {
            let at = (row.free_beat.max(0) as usize).min(beats - 1);
            down[at] += row.bytes;
            rows_down[at] += 1;
        }
    }
    let (mut level, mut peak, mut falls) = (0_u64, 0_u64, 0_u32);
    for beat in 0..beats {
        level += up[beat];
        peak = peak.max(level);
        // Three beats' worth at least: fewer go when a buffer of bounded size moves on.
        if rows_down[beat] >= 3 && down[beat] * 2 >= level && down[beat] >= 3 * median_up(&up) {
            falls += 1;
        }
        level = level.saturating_sub(down[beat]);
    }
    (falls > 0).then_some((falls, peak))
}

/// The median of the beats that add something.
fn median_up(up: &[u64]) -> u64 {
    let mut adding: Vec<u64> = up.iter().copied().filter(|&bytes| bytes > 0).collect();
    adding.sort_unstable();
    adding.get(adding.len() / 2).copied().unwrap_or(0)
}

fn same_beats(a: &[i32], b: &[i32]) -> bool {
    let common = a.iter().filter(|beat| b.binary_search(beat).is_ok()).count();
    let all = a.len() + b.len() - common;
    common as f64 >= SAME_BEATS_SHARE * all as f64
}
