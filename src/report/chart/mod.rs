//! The curves of a report as one picture: what is drawn where is worked out here, `svg` and `png` write it down.

mod png;
mod svg;

use maud::Markup;

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

/// The colours of the curves, which keep their contrast on light and on dark ground.
const COLOURS: [u32; MAX_CURVES] =
    [0x2f7de1, 0xd9731a, 0x1f9d63, 0xa259d9, 0xcf3f5b, 0x118c9e, 0x8a7a14, 0x7b8190];

/// A picture, in points.
struct Picture {
    /// What it shows, for who can't see it.
    label: String,
    height: f64,
    shapes: Vec<Shape>,
}

/// What a picture is made of.
enum Shape {
    /// A line of the grid behind the curves.
    Grid { y: f64 },
    /// The range, from one edge to the other.
    Range { from: f64, to: f64 },
    /// A curve, by its colour.
    Curve { colour: usize, points: Vec<(f64, f64)> },
    /// A curve's mark in the legend.
    Mark { colour: usize, x: f64, y: f64 },
    /// A line of text, whose baseline is at `y`.
    Text { x: f64, y: f64, anchor: Anchor, text: String },
}

/// Which part of a text stands at its place.
#[derive(Clone, Copy)]
enum Anchor {
    Start,
    Middle,
    End,
}

/// A mark in the legend.
const MARK: (f64, f64) = (14.0, 4.0);

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

/// The picture as an SVG file of its own, with its legend, or `None` when there is nothing to draw.
pub(super) fn svg_file(report: &Report) -> Option<String> {
    Some(svg::markup(&picture(report, true)?).into_string() + "\n")
}

/// The picture as a PNG file, with its legend, or `None` when there is nothing to draw.
pub(super) fn png_file(report: &Report) -> Option<anyhow::Result<Vec<u8>>> {
    Some(png::encode(&picture(report, true)?))
}

/// The picture for a page that has the legend beside it, or `None` when there is nothing to draw.
pub(super) fn svg(report: &Report) -> Option<Markup> {
    Some(svg::markup(&picture(report, false)?))
}

fn picture(report: &Report, with_legend: bool) -> Option<Picture> {
    let curves = chosen(report);
    let top_bytes = curves.iter().flat_map(|curve| &curve.bytes).max()?;
    let view = report.view.unwrap_or_else(|| view(report, &curves));
    let start_ns = view.start_ns;
    let step_bytes = tick_bytes(*top_bytes as f64);
    let scale = Scale {
        start_ns,
        end_ns: view.end_ns.max(start_ns.saturating_add(1)),
        top_bytes: (*top_bytes as f64 / step_bytes).ceil().max(1.0) * step_bytes,
    };
    let base = HEIGHT - BOTTOM;
    let mut shapes = Vec::new();
    for tick in 0..=((scale.top_bytes / step_bytes).round() as u32) {
        let bytes = f64::from(tick) * step_bytes;
        let y = scale.y(bytes);
        shapes.push(Shape::Grid { y });
        shapes.push(text(LEFT - 8.0, y + 4.0, Anchor::End, format_bytes(bytes as u64)));
    }
    let (from, to) = (scale.x(report.range.start_ns), scale.x(report.range.end_ns));
    shapes.push(Shape::Range { from, to });
    for (colour, curve) in curves.iter().enumerate() {
        shapes.push(Shape::Curve { colour, points: points(&scale, curve) });
    }
    let ticks = step_ticks(report, &scale);
    if !ticks.is_empty() {
        shapes.push(text(LEFT - 14.0, base + 14.0, Anchor::End, t!("step").to_owned()));
    }
    for (number, x) in ticks {
        shapes.push(text(x, base + 14.0, Anchor::Middle, number.to_string()));
    }
    if with_legend {
        for (colour, curve) in curves.iter().enumerate() {
            let y = HEIGHT + colour as f64 * LEGEND_LINE;
            shapes.push(Shape::Mark { colour, x: LEFT, y: y + 3.0 });
            let words = format!("{}, {}, {}", say(&curve.quantity), curve.device, curve.origin);
            shapes.push(text(LEFT + 22.0, y + 9.0, Anchor::Start, words));
        }
    }
    for part in 0..=4_i64 {
        let time_ns = start_ns.saturating_add(scale.duration_ns() / 4 * part);
        let anchor = match part {
            0 => Anchor::Start,
            4 => Anchor::End,
            _ => Anchor::Middle,
        };
        let words = format_offset(time_ns, report.session.start_ns);
        shapes.push(text(scale.x(time_ns), base + 29.0, anchor, words));
    }
    let height = HEIGHT + if with_legend { curves.len() as f64 * LEGEND_LINE } else { 0.0 };
    let label = t!("Memory over time; {range} is marked", range = report.range.label);
    Some(Picture { label, height, shapes })
}

fn text(x: f64, y: f64, anchor: Anchor, text: String) -> Shape {
    Shape::Text { x, y, anchor, text }
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
    let in_view = report.steps.iter().filter(|step| (scale.start_ns..=scale.end_ns).contains(&step.start_ns));
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
fn points(scale: &Scale, curve: &Curve) -> Vec<(f64, f64)> {
    let first = curve.times_ns.partition_point(|&time_ns| time_ns < scale.start_ns);
    let first = if curve.is_step { first.saturating_sub(1) } else { first };
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (&time_ns, &bytes) in curve.times_ns.iter().zip(&curve.bytes).skip(first) {
        if time_ns > scale.end_ns {
            break;
        }
        let (x, y) = (scale.x(time_ns), scale.y(bytes as f64));
        if let Some(&(_, before)) = points.last().filter(|_| curve.is_step) {
            points.push((x, before));
        }
        points.push((x, y));
    }
    points
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
