//! The curves of a report as one SVG picture, which stands alone as well as in a page.

use maud::{Markup, PreEscaped, html};

use super::{Curve, Report};
use crate::model::time::format_offset;
use crate::model::{TimeRange, format_bytes};
use crate::text::{say, t};

const WIDTH: f64 = 1_000.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 34.0;
const LEGEND_LINE: f64 = 18.0;
/// More curves than this are told apart by nobody.
const MAX_CURVES: usize = 8;
/// Curves that tell the story, in the order in which they are drawn. The board's memory is none of them: it would
/// flatten a small model's curves.
const QUANTITIES: [&str; 4] = ["driver used", "process used", "reserved", "allocated"];

/// Colours that keep their contrast on light and on dark ground.
const STYLE: &str = "\
.chart text{font:12px system-ui,sans-serif;fill:#5b6270}\
.chart .grid{stroke:#8888;stroke-width:.5}\
.chart .range{fill:#2f7de1;fill-opacity:.16}\
.chart .edge{stroke:#2f7de1;stroke-width:1}\
.chart .curve{fill:none;stroke-width:1.6;stroke-linejoin:round}\
.s0{stroke:#2f7de1;fill:#2f7de1}.s1{stroke:#d9731a;fill:#d9731a}.s2{stroke:#1f9d63;fill:#1f9d63}\
.s3{stroke:#a259d9;fill:#a259d9}.s4{stroke:#cf3f5b;fill:#cf3f5b}.s5{stroke:#118c9e;fill:#118c9e}\
.s6{stroke:#8a7a14;fill:#8a7a14}.s7{stroke:#7b8190;fill:#7b8190}\
@media (prefers-color-scheme:dark){.chart text{fill:#a0a7b4}}";

/// Where times and bytes lie in the picture.
struct Scale {
    start_ns: i64,
    end_ns: i64,
    top_bytes: f64,
}

impl Scale {
    fn duration_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    fn x(&self, time_ns: i64) -> f64 {
        let share = time_ns.saturating_sub(self.start_ns) as f64 / self.duration_ns() as f64;
        LEFT + share.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, bytes: f64) -> f64 {
        HEIGHT - BOTTOM - (bytes / self.top_bytes).clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM)
    }
}

/// The curves that are drawn: the telling ones, allocated last so that it lies on top. A single figure, as a memory
/// summary gives it, is no curve.
pub(super) fn chosen(report: &Report) -> Vec<&Curve> {
    let rank = |curve: &&Curve| QUANTITIES.iter().position(|&quantity| quantity == curve.quantity);
    let session = &report.session;
    let is_seen = |curve: &&Curve| {
        curve.times_ns.len() > 1
            && curve.times_ns.iter().any(|time_ns| (session.start_ns..session.end_ns).contains(time_ns))
    };
    let mut curves: Vec<&Curve> =
        report.curves.iter().filter(|curve| rank(curve).is_some()).filter(is_seen).collect();
    let stands_out = |curve: &Curve| {
        report.processes.iter().any(|process| process.is_outlier && process.name == curve.origin)
    };
    curves.sort_by_key(|curve| (rank(curve), stands_out(curve)));
    // Of too many, those that are drawn on top say the most.
    curves.split_off(curves.len().saturating_sub(MAX_CURVES))
}

/// The picture as a file of its own, with its legend, or `None` when there is nothing to draw.
pub(super) fn file(report: &Report) -> Option<String> {
    Some(picture(report, true)?.into_string() + "\n")
}

/// The picture for a page that has the legend beside it, or `None` when there is nothing to draw.
pub(super) fn svg(report: &Report) -> Option<Markup> {
    picture(report, false)
}

fn picture(report: &Report, with_legend: bool) -> Option<Markup> {
    let curves = chosen(report);
    let top_bytes = curves.iter().flat_map(|curve| &curve.bytes).max()?;
    let view = view(report, &curves);
    let start_ns = view.start_ns;
    let step_bytes = tick_bytes(*top_bytes as f64);
    let scale = Scale {
        start_ns,
        end_ns: view.end_ns.max(start_ns.saturating_add(1)),
        top_bytes: (*top_bytes as f64 / step_bytes).ceil().max(1.0) * step_bytes,
    };
    let base = HEIGHT - BOTTOM;
    let (range_from, range_to) = (scale.x(report.range.start_ns), scale.x(report.range.end_ns));
    let label = t!("Memory over time; {range} is marked", range = report.range.label);
    let height = HEIGHT + if with_legend { curves.len() as f64 * LEGEND_LINE } else { 0.0 };
    Some(html! {
        svg.chart xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {height}")) role="img"
            aria-label=(label) {
            style { (PreEscaped(STYLE)) }
            @for tick in 0..=((scale.top_bytes / step_bytes).round() as u32) {
                @let bytes = f64::from(tick) * step_bytes;
                @let y = scale.y(bytes);
                line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(number(y)) y2=(number(y)) {}
                text x=(LEFT - 8.0) y=(number(y + 4.0)) text-anchor="end" { (format_bytes(bytes as u64)) }
            }
            rect.range x=(number(range_from)) y=(TOP) width=(number((range_to - range_from).max(1.0)))
                height=(base - TOP) {}
            @for x in [range_from, range_to] {
                line.edge x1=(number(x)) x2=(number(x)) y1=(TOP) y2=(base) {}
            }
            @for (position, curve) in curves.iter().enumerate() {
                path class=(format!("curve s{position}")) style="fill:none" d=(path(&scale, curve)) {}
            }
            @for (number, x) in step_ticks(report, &scale) {
                text x=(self::number(x)) y=(base + 14.0) text-anchor="middle" { (number) }
            }
            @if with_legend {
                @for (position, curve) in curves.iter().enumerate() {
                    @let y = HEIGHT + position as f64 * LEGEND_LINE;
                    rect class=(format!("s{position}")) x=(LEFT) y=(y + 3.0) width="14" height="4" {}
                    text x=(LEFT + 22.0) y=(y + 9.0) { (say(&curve.quantity)) ", " (curve.device) ", " (curve.origin) }
                }
            }
            @for part in 0..=4_i64 {
                @let time_ns = start_ns.saturating_add(scale.duration_ns() / 4 * part);
                @let anchor = match part { 0 => "start", 4 => "end", _ => "middle" };
                text x=(number(scale.x(time_ns))) y=(base + 29.0) text-anchor=(anchor) {
                    (format_offset(time_ns, report.session.start_ns))
                }
            }
        }
    })
}

/// The part of the session that is drawn: where processes recorded, and the range, with some room on both sides. A log
/// of the driver often runs for long before and after.
fn view(report: &Report, curves: &[&Curve]) -> TimeRange {
    let session = TimeRange::new(report.session.start_ns, report.session.end_ns);
    let recorded = curves
        .iter()
        .filter(|curve| curve.is_step)
        .filter_map(|curve| Some(TimeRange::new(*curve.times_ns.first()?, *curve.times_ns.last()?)))
        .reduce(TimeRange::union);
    let Some(recorded) = recorded else { return session };
    let whole = recorded.union(TimeRange::new(report.range.start_ns, report.range.end_ns));
    let room_ns = whole.duration_ns() / 20;
    TimeRange {
        start_ns: whole.start_ns.saturating_sub(room_ns).max(session.start_ns),
        end_ns: whole.end_ns.saturating_add(room_ns).min(session.end_ns),
    }
}

/// A step between grid lines that gives two to five of them, as a round figure of KiB, MiB or GiB.
fn tick_bytes(top_bytes: f64) -> f64 {
    let mut unit = 1.0;
    while top_bytes / unit >= 1024.0 {
        unit *= 1024.0;
    }
    let steps = [0.5, 1.0, 2.0, 2.5, 5.0, 10.0, 20.0, 25.0, 50.0, 100.0, 200.0, 250.0, 500.0];
    let step = steps.into_iter().find(|step| top_bytes / (step * unit) <= 5.0).unwrap_or(500.0);
    step * unit
}

/// The numbers of steps where there is room for them.
fn step_ticks(report: &Report, scale: &Scale) -> Vec<(i64, f64)> {
    let mut last_x = f64::NEG_INFINITY;
    let in_view = report.steps.iter().filter(|step| step.start_ns >= scale.start_ns);
    in_view
        .map(|step| (step.number, scale.x(step.start_ns)))
        .filter(|&(_, x)| {
            let has_room = x - last_x > 42.0;
            if has_room {
                last_x = x;
            }
            has_room
        })
        .collect()
}

/// The part of a curve that lies in the picture. A curve of steps enters with the value that it had before.
fn path(scale: &Scale, curve: &Curve) -> String {
    let first = curve.times_ns.partition_point(|&time_ns| time_ns < scale.start_ns);
    let first = if curve.is_step { first.saturating_sub(1) } else { first };
    let mut path = String::new();
    for (&time_ns, &bytes) in curve.times_ns.iter().zip(&curve.bytes).skip(first) {
        if time_ns > scale.end_ns {
            break;
        }
        let (x, y) = (number(scale.x(time_ns)), number(scale.y(bytes as f64)));
        let part = match (path.is_empty(), curve.is_step) {
            (true, _) => format!("M{x} {y}"),
            (false, true) => format!("H{x}V{y}"),
            (false, false) => format!("L{x} {y}"),
        };
        path.push_str(&part);
    }
    path
}

/// A coordinate, to a tenth.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grid_lines_lie_at_round_figures() {
        const MIB: f64 = 1_048_576.0;
        assert_eq!(tick_bytes(1_153.0 * MIB), 0.5 * 1024.0 * MIB);
        assert_eq!(tick_bytes(573.8 * MIB), 200.0 * MIB);
        assert_eq!(tick_bytes(0.0), 0.5);
    }
}
