//! The driver's figure against the allocator's: other processes, and memory from outside of PyTorch's allocator.

use super::super::Rhythm;
use super::super::growth::{Curve, beats, curves_of, driver_minus_reserved, median};
use super::super::{DeviceFilter, DriverGap, Selection, driver_gap, driver_gaps};
use super::{Context, Finding, Severity, advice};
use crate::model::{Device, Quantity, TimeRange, format_bytes, format_delta_bytes};
use crate::text::t;

/// Growth below this is noise: libraries load kernels as they go.
const MIN_RISE_BYTES: i64 = 192 << 20;
/// And below this share of the level.
const MIN_RISE_SHARE: f64 = 0.15;
/// Windows into which the run is cut.
const WINDOWS: usize = 40;

pub(super) fn find(context: &Context<'_>, found: &mut Vec<Finding>) {
    let selection = context.query.selection;
    let recorded = context.recorded();
    let gaps = driver_minus_reserved(context.session(), selection);
    let has_allocator = !gaps.is_empty();
    let curves = if has_allocator {
        gaps
    } else if recorded.is_none() {
        curves_of(context.session(), selection, &Quantity::DriverUsed)
    } else {
        return;
    };
    let rises: Vec<(Device, Rise)> =
        curves.iter().filter_map(|curve| Some((curve.series.device, rise_of(context, curve)?))).collect();
    if rises.is_empty() {
        return;
    }
    let everything = Selection { device: DeviceFilter::All, ..Selection::default() };
    let gaps = driver_gaps(context.session(), everything);
    for (device, rise) in rises {
        let own = gaps.iter().find(|gap| gap.driver_device == device).cloned();
        let gap = own.or_else(|| driver_gap(context.session(), device));
        judge(context, &rise, gap.as_ref(), has_allocator, found);
    }
}

/// A rise of the driver's figure that the allocator doesn't explain.
struct Rise {
    range: TimeRange,
    before_bytes: i64,
    after_bytes: i64,
}

/// A process, none of whose recordings are open, that takes more of the GPU.
struct Neighbour {
    pid: u64,
    name: String,
    /// How much more than at the range's start, at most.
    bytes: i64,
    /// Whether it held nothing at the range's start.
    is_new: bool,
}

fn rise_of(context: &Context<'_>, curve: &Curve) -> Option<Rise> {
    let span = curve.series.span()?;
    let start_ns = warm_end_ns(context).unwrap_or(span.start_ns).clamp(span.start_ns, span.end_ns);
    let range = TimeRange::new(start_ns, span.end_ns);
    let rhythm = Rhythm::of_windows(range, WINDOWS.min(curve.series.rows_in(range).len()))?;
    let floors: Vec<i64> = beats(&curve.series, &rhythm).iter().map(|beat| beat.floor_bytes).collect();
    if floors.len() < 4 {
        return None;
    }
    let tenth = (floors.len() / 10).max(1);
    let before_bytes = median(&floors[..tenth]);
    // The end may already see processes go: the level of the later half's better part counts.
    let mut later = floors[floors.len() / 2..].to_vec();
    later.sort_unstable();
    let after_bytes = later[later.len() * 3 / 4];
    let rise = after_bytes - before_bytes;
    let is_rise = rise > MIN_RISE_BYTES && rise as f64 > MIN_RISE_SHARE * before_bytes as f64;
    is_rise.then_some(Rise { range, before_bytes, after_bytes })
}

/// The end of the first two beats, in which contexts and kernels are loaded.
fn warm_end_ns(context: &Context<'_>) -> Option<i64> {
    let rhythms = context.processes.iter().filter_map(|facts| facts.rhythm.as_ref());
    rhythms.map(|rhythm| rhythm.range_of(1.min(rhythm.len() - 1)).start_ns).max()
}

/// The other processes that take more in the range, the largest first.
fn neighbours(gap: &DriverGap, range: TimeRange) -> Vec<Neighbour> {
    let rows = gap.times_ns.partition_point(|&time_ns| time_ns < range.start_ns)
        ..gap.times_ns.partition_point(|&time_ns| time_ns < range.end_ns);
    let mut neighbours: Vec<Neighbour> = gap
        .others
        .iter()
        .filter_map(|other| {
            let inside = other.bytes.get(rows.clone())?;
            let (first, most) = (*inside.first()?, *inside.iter().max()?);
            (most > first).then(|| Neighbour {
                pid: other.pid,
                name: other.program().to_owned(),
                bytes: most - first,
                is_new: first == 0,
            })
        })
        .collect();
    neighbours.sort_by_key(|neighbour| (std::cmp::Reverse(neighbour.bytes), neighbour.pid));
    neighbours
}

/// The parts of the growth, in words.
fn split_words(gap: &DriverGap, range: TimeRange) -> Option<String> {
    let growth = gap.growth(range)?;
    let total = if gap.is_sum_of_processes {
        t!("The driver's processes together")
    } else {
        t!("The driver's figure")
    };
    Some(t!(
        "{total}, first to last sample: {driver}; of these PyTorch's reserved {reserved}, other processes {others}, \
         CUDA contexts {contexts}, the rest {rest}.",
        total,
        driver = format_delta_bytes(growth.driver_used_bytes),
        reserved = format_delta_bytes(growth.reserved_bytes),
        others = format_delta_bytes(growth.other_processes_bytes),
        contexts = format_delta_bytes(growth.context_bytes),
        rest = format_delta_bytes(growth.rest_bytes)
    ))
}

fn judge(
    context: &Context<'_>,
    rise: &Rise,
    gap: Option<&DriverGap>,
    has_allocator: bool,
    found: &mut Vec<Finding>,
) {
    let grown = rise.after_bytes - rise.before_bytes;
    let neighbours = gap.map(|gap| neighbours(gap, rise.range)).unwrap_or_default();
    let of_neighbours: i64 = neighbours.iter().map(|neighbour| neighbour.bytes).sum();
    let explained = of_neighbours as f64 / grown as f64;
    let level = t!(
        "{curve}: {before} after warm-up, {after} later ({grown}).",
        curve = if has_allocator { t!("Driver minus reserved") } else { t!("Driver") },
        before = format_bytes(rise.before_bytes.max(0) as u64),
        after = format_bytes(rise.after_bytes.max(0) as u64),
        grown = format_delta_bytes(grown)
    );
    let split = gap.filter(|_| has_allocator).and_then(|gap| split_words(gap, rise.range));
    let evidence: Vec<String> = std::iter::once(level).chain(split).collect();
    let mut push = |kind, confidence: f32, title: String, more: Vec<String>, words| {
        let severity = if confidence >= 0.5 { Severity::Warning } else { Severity::Info };
        let mut finding = Finding::new(kind, severity, confidence, title, words);
        finding.bytes = grown.max(0) as u64;
        finding.evidence = evidence.iter().cloned().chain(more).collect();
        finding.range = rise.range;
        found.push(finding);
    };
    let words = |neighbours: &[&Neighbour]| {
        let each = neighbours.iter().take(6).map(|neighbour| {
            let bytes = format_bytes(neighbour.bytes.max(0) as u64);
            t!("pid {pid} {name}, {bytes}", pid = neighbour.pid, name = neighbour.name, bytes)
        });
        each.collect::<Vec<_>>().join(t!("; "))
    };
    if explained >= 0.5 {
        let (new, older): (Vec<&Neighbour>, Vec<&Neighbour>) =
            neighbours.iter().partition(|neighbour| neighbour.is_new);
        let mut more = Vec::new();
        if !new.is_empty() {
            more.push(t!("New on the GPU in this time: {processes}.", processes = words(&new)));
        }
        if !older.is_empty() {
            more.push(t!("There before, and larger: {processes}.", processes = words(&older)));
        }
        let bytes = format_bytes(of_neighbours.max(0) as u64);
        let title = match neighbours.len() {
            1 => t!("1 other process takes {bytes} of the GPU, beyond what PyTorch reserved here", bytes),
            count => t!(
                "{count} other processes take {bytes} of the GPU, beyond what PyTorch reserved here",
                count,
                bytes
            ),
        };
        push("other_process", 0.9, title, more, advice::OTHER_PROCESS);
        return;
    }
    let sees_processes =
        context.session().curves().any(|(.., series, _)| series.quantity == Quantity::ProcessUsed);
    let has_explanation = found_allocator_growth(context);
    if !has_allocator && !sees_processes && has_explanation {
        return;
    }
    let bytes = format_bytes(grown.max(0) as u64);
    let title = if has_allocator {
        t!("The driver counts {bytes} more that PyTorch did not reserve", bytes)
    } else {
        t!("The GPU's used memory grows by {bytes}, and no file tells PyTorch's share", bytes)
    };
    let (outside, other) = if sees_processes { (0.75, 0.3) } else { (0.5, 0.5) };
    let more = |text: &str| vec![text.to_owned()];
    push(
        "outside_allocator",
        outside,
        title.clone(),
        more(if sees_processes {
            t!("The processes that the driver lists don't explain it.")
        } else {
            t!("No file lists the GPU's processes: another process would look the same.")
        }),
        advice::OUTSIDE_ALLOCATOR,
    );
    push(
        "other_process",
        other,
        t!("Another process may have taken the {bytes}", bytes),
        more(t!("Query the compute apps beside the GPU to tell.")),
        advice::OTHER_PROCESS,
    );
}

/// Whether a log's allocated or reserved grows as well, so that the driver's growth needs no further cause.
fn found_allocator_growth(context: &Context<'_>) -> bool {
    context.growths.iter().any(|growth| {
        matches!(growth.quantity, Quantity::Allocated | Quantity::Reserved)
            && growth.leading().shape.is_growth()
    })
}
