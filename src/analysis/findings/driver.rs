//! The driver's figure against the allocator's: other processes, and memory from outside of PyTorch's allocator.

use super::super::Rhythm;
use super::super::growth::{Curve, beats, curves_of, driver_minus_reserved, median};
use super::{Context, Finding, Severity, advice};
use crate::model::{Quantity, TimeRange, format_bytes, format_delta_bytes};

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
    for curve in &curves {
        let Some(rise) = rise_of(context, curve) else { continue };
        let newcomers = newcomers(context, rise.range);
        judge(context, &rise, &newcomers, has_allocator, found);
    }
}

/// A rise of the driver's figure that the allocator doesn't explain.
struct Rise {
    range: TimeRange,
    before_bytes: i64,
    after_bytes: i64,
}

/// A process that appears while memory grows.
struct Newcomer {
    name: String,
    pid: Option<u64>,
    bytes: i64,
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

/// Processes that the driver sees for the first time in the range, the largest first.
fn newcomers(context: &Context<'_>, range: TimeRange) -> Vec<Newcomer> {
    let own: Vec<u64> = context.session().processes.iter().filter_map(|process| process.pid).collect();
    let mut newcomers: Vec<Newcomer> =
        curves_of(context.session(), Default::default(), &Quantity::ProcessUsed)
            .into_iter()
            .filter(|curve| curve.process.is_none() && curve.series.pid.is_none_or(|pid| !own.contains(&pid)))
            .filter(|curve| curve.series.times_ns.first().is_some_and(|&first| range.contains(first)))
            .map(|curve| Newcomer {
                name: curve.series.process_name.rsplit(['/', '\\']).next().unwrap_or_default().to_owned(),
                pid: curve.series.pid,
                bytes: curve.series.bytes.iter().copied().max().unwrap_or(0),
            })
            .filter(|newcomer| newcomer.bytes > 0)
            .collect();
    newcomers.sort_by_key(|newcomer| std::cmp::Reverse(newcomer.bytes));
    newcomers
}

fn judge(
    context: &Context<'_>,
    rise: &Rise,
    newcomers: &[Newcomer],
    has_allocator: bool,
    found: &mut Vec<Finding>,
) {
    let grown = rise.after_bytes - rise.before_bytes;
    let of_newcomers: i64 = newcomers.iter().map(|newcomer| newcomer.bytes).sum();
    let explained = of_newcomers as f64 / grown as f64;
    let layers =
        if has_allocator { "while PyTorch's reserved does not explain it" } else { "as the driver sees it" };
    let evidence = [format!(
        "Driver{}: {} after warm-up, {} later ({}).",
        if has_allocator { " minus reserved" } else { "" },
        format_bytes(rise.before_bytes.max(0) as u64),
        format_bytes(rise.after_bytes.max(0) as u64),
        format_delta_bytes(grown)
    )];
    let mut push = |kind, confidence: f32, title: String, more: Vec<String>, words| {
        let severity = if confidence >= 0.5 { Severity::Warning } else { Severity::Info };
        let mut finding = Finding::new(kind, severity, confidence, title, words);
        finding.bytes = grown.max(0) as u64;
        finding.evidence = evidence.iter().cloned().chain(more).collect();
        finding.range = rise.range;
        found.push(finding);
    };
    let listed: Vec<String> = newcomers
        .iter()
        .take(6)
        .map(|newcomer| {
            let pid = newcomer.pid.map_or_else(|| "unknown pid".to_owned(), |pid| format!("pid {pid}"));
            format!("{pid} {}, up to {}", newcomer.name, format_bytes(newcomer.bytes.max(0) as u64))
        })
        .collect();
    if explained >= 0.5 {
        push(
            "other_process",
            0.9,
            format!(
                "{} other {} on the GPU: {} more, {layers}",
                newcomers.len(),
                if newcomers.len() == 1 { "process appears" } else { "processes appear" },
                format_bytes(grown.max(0) as u64)
            ),
            vec![format!("New in this time: {}.", listed.join("; "))],
            advice::OTHER_PROCESS,
        );
        return;
    }
    let sees_processes =
        context.session().curves().any(|(.., series, _)| series.quantity == Quantity::ProcessUsed);
    let has_explanation = found_allocator_growth(context);
    if !has_allocator && !sees_processes && has_explanation {
        return;
    }
    let title = format!("The driver's figure grows by {} {layers}", format_bytes(grown.max(0) as u64));
    let (outside, other) = if sees_processes { (0.75, 0.3) } else { (0.5, 0.5) };
    let more = |text: &str| vec![text.to_owned()];
    push(
        "outside_allocator",
        outside,
        title.clone(),
        more(if sees_processes {
            "The driver's list of processes shows no newcomers that would explain it."
        } else {
            "No file lists the GPU's processes: another process would look the same."
        }),
        advice::OUTSIDE_ALLOCATOR,
    );
    push(
        "other_process",
        other,
        format!("{title}: another process, perhaps"),
        more("Query the compute apps beside the GPU to tell."),
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
