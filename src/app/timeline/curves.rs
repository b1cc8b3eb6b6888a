//! The memory curves: what the driver uses, what is reserved, what is allocated, and points of logs.

use egui::{Align2, Color32, Mesh, Painter, Pos2, Rect, RichText, Shape, Stroke, Ui, pos2};

use super::Tracks;
use super::view::Axis;
use crate::app::command::Command;
use crate::app::data::{Curve, ShownMarker};
use crate::app::theme::{Palette, track_font};
use crate::model::time::format_offset;
use crate::model::{MarkerKind, Quantity, TimeRange, format_bytes};
use crate::text::t;

const HEIGHT: f32 = 150.0;
/// In so many rows the words of flags make room for each other.
const FLAG_ROWS: usize = 3;
/// A capacity far above the curves would press them flat: then only its figure is shown.
const CAPACITY_WITHIN: f64 = 1.6;

/// A point is told of this near to it.
const AT_POINTS: f32 = 4.0;
/// A figure of the grid is so high.
const LABEL_POINTS: f32 = 14.0;

/// From bytes to y.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    rect: Rect,
    high: f64,
}

impl Scale {
    /// A scale from 0 at the bottom to a little above `high` at the top.
    pub fn new(rect: Rect, high: i64) -> Self {
        Self::up_to(rect, (high.max(1) as f64) * 1.06)
    }

    /// A scale from 0 at the bottom to `high` at the top.
    pub fn up_to(rect: Rect, high: f64) -> Self {
        Self { rect, high }
    }

    fn y_of(self, bytes: i64) -> f32 {
        self.rect.bottom() - (bytes as f64 / self.high * f64::from(self.rect.height())) as f32
    }
}

/// Draws the track.
pub fn show(ui: &mut Ui, tracks: &mut Tracks<'_, '_>) {
    if !tracks.head(ui, "Memory", legend) {
        return;
    }
    let (data, palette, axis) = (tracks.scene.data, tracks.scene.palette, tracks.axis);
    let shown: Vec<(usize, &Curve)> = data
        .curves
        .iter()
        .enumerate()
        .filter(|(_, curve)| tracks.scene.state.is_curve_shown(data, curve))
        .collect();
    let text = description(tracks, &shown);
    let height = tracks.height("Memory", HEIGHT);
    let (rect, response) = tracks.body(ui, "Memory", height, || text.clone());
    tracks.grip(ui, "Memory", height);
    let painter = ui.painter().with_clip_rect(rect);
    let scale = Scale::new(rect.with_min_y(rect.top() + 4.0), highest(&shown, &axis));
    grid(&painter, scale, rect, palette, Color32::TRANSPARENT);
    for &(index, curve) in &shown {
        let is_filled = matches!(curve.quantity, Quantity::Allocated | Quantity::Reserved);
        paint(&painter, curve, &axis, scale, palette.curve(&curve.quantity, curve.nth, index), is_filled);
    }
    let mut taken = Vec::new();
    for marker in &data.markers {
        flag(&painter, marker, &axis, rect, palette, &mut taken);
    }
    for note in &tracks.scene.state.choices.notes {
        let marker = ShownMarker { time_ns: note.time_ns, kind: MarkerKind::User, text: note.text.clone() };
        flag(&painter, &marker, &axis, rect, palette, &mut taken);
    }
    if let Some(text) = capacity(tracks, &shown).filter(|&(_, bytes)| bytes as f64 > scale.high) {
        // Beside the grid's figures: curves that grow are low here.
        let at = rect.left_top() + egui::vec2(76.0, 2.0);
        painter.text(at, Align2::LEFT_TOP, text.0, track_font(), palette.weak_text);
    }
    tracks.overlay(ui, rect);
    if let Some(at_ns) = tracks.hover_ns.filter(|_| response.hovered() || response.dragged()) {
        readout(ui, tracks, &shown, rect, at_ns);
    }
}

/// Switches of the curves.
fn legend(ui: &mut Ui, tracks: &mut Tracks<'_, '_>) {
    let (data, palette) = (tracks.scene.data, tracks.scene.palette);
    ui.spacing_mut().item_spacing.x = 4.0;
    // A floating scroll bar would lie over the switches and take their clicks; the wheel scrolls without one.
    let area = egui::ScrollArea::horizontal()
        .id_salt("legend")
        .scroll_bar_visibility(egui::scroll_area::ScrollBarVisibility::AlwaysHidden);
    area.show(ui, |ui| {
        ui.horizontal(|ui| {
            let state = tracks.scene.state;
            let admitted = |curve: &Curve| state.choices.selection.device.admits(curve.device);
            // What PyTorch itself says comes first, logs after it.
            let mut curves: Vec<_> =
                data.curves.iter().enumerate().rev().filter(|(_, curve)| admitted(curve)).collect();
            curves.sort_by_key(|(_, curve)| curve.source.is_some());
            for (index, curve) in curves {
                let is_shown = state.is_curve_shown(data, curve);
                let color = palette.curve(&curve.quantity, curve.nth, index);
                let box_color = if is_shown { color } else { palette.grid };
                let text = RichText::new(&curve.label).small();
                let (swatch, _) = ui.allocate_exact_size(egui::vec2(10.0, 10.0), egui::Sense::hover());
                ui.painter().rect_filled(swatch, 2, box_color);
                let text = if is_shown {
                    text.color(palette.text)
                } else {
                    text.color(palette.weak_text).strikethrough()
                };
                let button = ui.add(egui::Button::new(text).frame(false));
                let action = if is_shown {
                    t!("Hide curve {label}", label = curve.label)
                } else {
                    t!("Show curve {label}", label = curve.label)
                };
                if button.accessible_name(action).clicked() {
                    tracks.scene.ask(Command::ToggleCurve(curve.label.clone()));
                }
                ui.add_space(6.0);
            }
        });
    });
}

/// The largest capacity that is shown, in words and in bytes.
fn capacity(tracks: &Tracks<'_, '_>, shown: &[(usize, &Curve)]) -> Option<(String, i64)> {
    let view = tracks.axis.view;
    let curves = shown.iter().filter(|(_, curve)| curve.quantity == Quantity::Capacity);
    let highest = curves.filter_map(|(_, curve)| {
        let points = &curve.points;
        points.at(view.end_ns).or_else(|| points.bytes.first().copied())
    });
    let bytes = highest.max()?;
    Some((t!("capacity {size}", size = format_bytes(bytes.unsigned_abs())), bytes))
}

fn description(tracks: &Tracks<'_, '_>, shown: &[(usize, &Curve)]) -> String {
    let data = tracks.scene.data;
    let capacity = capacity(tracks, shown).map_or_else(String::new, |(text, _)| format!(", {text}"));
    let peak = data.peak.map_or_else(String::new, |(at_ns, bytes)| {
        t!(
            ", peak {bytes} at {time}",
            bytes = format_bytes(bytes.unsigned_abs()),
            time = format_offset(at_ns, data.span().start_ns)
        )
    });
    t!(
        "Memory over time, {count} curves{peak}{capacity}, {range}",
        count = data.curves.len(),
        peak,
        capacity,
        range = tracks.range_text()
    )
}

/// The highest value that is visible.
fn highest(shown: &[(usize, &Curve)], axis: &Axis) -> i64 {
    let view = axis.view;
    let of = |curve: &Curve| {
        let points = &curve.points;
        let seen = points.first_at(view.start_ns).saturating_sub(1)..points.first_at(view.end_ns) + 1;
        points.extremes(seen).map(|(_, high)| high)
    };
    let is_capacity = |curve: &Curve| curve.quantity == Quantity::Capacity;
    let curves = shown.iter().filter(|(_, curve)| !is_capacity(curve));
    let high = curves.filter_map(|(_, curve)| of(curve)).max().unwrap_or(1).max(1);
    let capacity =
        shown.iter().filter(|(_, curve)| is_capacity(curve)).filter_map(|(_, curve)| of(curve)).max();
    match capacity {
        Some(capacity) if capacity as f64 <= high as f64 * CAPACITY_WITHIN => high.max(capacity),
        _ => high,
    }
}

/// Lines at round figures, which stand before `behind`.
pub fn grid(painter: &Painter, scale: Scale, rect: Rect, palette: &Palette, behind: Color32) {
    let mut step = 1024.0_f64;
    while scale.high / step > 5.0 {
        step *= 2.0;
    }
    let mut level = step;
    while level < scale.high {
        let y = scale.y_of(level as i64);
        painter.hline(rect.x_range(), y, Stroke::new(1.0, palette.grid));
        let text = format_bytes(level as u64);
        let at = pos2(rect.left() + 4.0, y - 1.0);
        if y > rect.top() + LABEL_POINTS {
            let galley = painter.layout_no_wrap(text, track_font(), palette.weak_text);
            let place = Align2::LEFT_BOTTOM.anchor_size(at, galley.size());
            painter.rect_filled(place.expand2(egui::vec2(2.0, 0.0)), 2, behind);
            painter.galley(place.min, galley, palette.weak_text);
        }
        level += step;
    }
}

/// Paints a curve: all its points while there are few, else the lowest and highest of each column of pixels.
pub fn paint(painter: &Painter, curve: &Curve, axis: &Axis, scale: Scale, color: Color32, is_filled: bool) {
    let line = points_of(curve, axis, scale);
    if line.is_empty() {
        return;
    }
    if is_filled {
        painter.add(Shape::mesh(fill(&line, scale.rect.bottom(), color.gamma_multiply(0.22))));
    }
    if curve.quantity == Quantity::Capacity {
        painter.extend(Shape::dashed_line(&line, Stroke::new(1.5, color), 6.0, 4.0));
        return;
    }
    let is_sparse = !curve.is_step && line.len() < 64;
    if is_sparse {
        for &at in &line {
            painter.circle_filled(at, 2.5, color);
        }
    }
    painter.add(Shape::line(line, Stroke::new(1.5, color)));
}

fn points_of(curve: &Curve, axis: &Axis, scale: Scale) -> Vec<Pos2> {
    let points = &curve.points;
    let view = axis.view;
    // One point more on each side, so that the line goes on to the edges.
    let first = points.first_at(view.start_ns).saturating_sub(1);
    let last = (points.first_at(view.end_ns) + 1).min(points.len());
    if first >= last {
        return Vec::new();
    }
    let mut line = Vec::new();
    let columns = axis.width.ceil().max(1.0) as usize;
    if last - first <= columns * 2 {
        let mut before: Option<Pos2> = None;
        for at in first..last {
            let now = pos2(axis.x_of(points.times_ns[at]), scale.y_of(points.bytes[at]));
            if let (true, Some(before)) = (curve.is_step, before) {
                line.push(pos2(now.x, before.y));
            }
            line.push(now);
            before = Some(now);
        }
    } else {
        let mut start = first;
        let mut before_y = scale.y_of(points.bytes[first]);
        for column in 0..=columns {
            let x = axis.left + column as f32;
            let end = points.first_at(axis.ns_of(x + 1.0)).min(last);
            let Some((low, high)) = points.extremes(start..end) else { continue };
            let (low, high) = (scale.y_of(low), scale.y_of(high));
            if curve.is_step {
                line.push(pos2(x, before_y));
            }
            // The end that is nearer to where the line comes from is drawn first.
            let is_low_first = (before_y - low).abs() < (before_y - high).abs();
            let (one, two) = if is_low_first { (low, high) } else { (high, low) };
            line.extend([pos2(x, one), pos2(x, two)]);
            before_y = scale.y_of(points.bytes[end - 1]);
            start = end;
        }
    }
    // A value holds until the next event; after the last one nothing is known but that it held.
    if curve.is_step
        && last == points.len()
        && let Some(&end) = line.last()
        && end.x < axis.right()
    {
        line.push(pos2((end.x + 2.0).min(axis.right()), end.y));
    }
    line
}

/// The area under a line.
fn fill(line: &[Pos2], bottom: f32, color: Color32) -> Mesh {
    let mut mesh = Mesh::default();
    mesh.reserve_vertices(line.len() * 2);
    mesh.reserve_triangles(line.len() * 2);
    for (at, point) in line.iter().enumerate() {
        mesh.colored_vertex(*point, color);
        mesh.colored_vertex(pos2(point.x, bottom), color);
        if at > 0 {
            let corner = at as u32 * 2;
            mesh.add_triangle(corner - 2, corner - 1, corner);
            mesh.add_triangle(corner - 1, corner, corner + 1);
        }
    }
    mesh
}

/// A flag where something happened.
fn flag(
    painter: &Painter,
    marker: &ShownMarker,
    axis: &Axis,
    rect: Rect,
    palette: &Palette,
    taken: &mut Vec<Rect>,
) {
    if axis.visible(TimeRange::new(marker.time_ns, marker.time_ns)).is_none() {
        return;
    }
    let (word, color) = match marker.kind {
        MarkerKind::OutOfMemory { .. } => (t!("out of memory"), palette.error),
        MarkerKind::GpuLost => (t!("GPU lost"), palette.error),
        MarkerKind::Snapshot => (t!("snapshot"), palette.weak_text),
        MarkerKind::Process => (t!("process"), palette.weak_text),
        MarkerKind::User => (marker.text.as_str(), palette.text),
    };
    let x = axis.x_of(marker.time_ns);
    painter.vline(x, rect.y_range(), Stroke::new(1.0, color));
    let (align, at) =
        if x > rect.right() - 120.0 { (Align2::RIGHT_TOP, x - 4.0) } else { (Align2::LEFT_TOP, x + 4.0) };
    let galley = painter.layout_no_wrap(word.to_owned(), track_font(), color);
    let place = align.anchor_size(pos2(at, rect.top() + 2.0), galley.size());
    // Lower where another word stands; where there are too many, the line says that there is something.
    let mut rows = (0..FLAG_ROWS).map(|row| place.translate(egui::vec2(0.0, row as f32 * galley.size().y)));
    let is_free = |place: &Rect| !taken.iter().any(|other: &Rect| other.intersects(*place));
    if let Some(place) = rows.find(is_free) {
        taken.push(place);
        painter.galley(place.min, galley, color);
    }
}

/// What every curve says under the pointer, in the corner that the pointer is far from.
fn readout(ui: &Ui, tracks: &Tracks<'_, '_>, shown: &[(usize, &Curve)], rect: Rect, at_ns: i64) {
    let palette = tracks.scene.palette;
    let slack_ns = tracks.axis.ns_of(AT_POINTS) - tracks.axis.ns_of(0.0);
    let figures: Vec<(usize, &Curve, i64)> = shown
        .iter()
        .rev()
        .filter_map(|&(index, curve)| Some((index, curve, curve.points.recorded_at(at_ns, slack_ns)?)))
        .collect();
    // As many lines as the track is high, after the time and before what says that there are more.
    let line = ui.fonts_mut(|fonts| fonts.row_height(&track_font()));
    let lines = (((rect.height() - 20.0) / line) as usize).saturating_sub(1).max(1);
    let listed = if figures.len() > lines { lines - 1 } else { figures.len() };
    let mut job = egui::text::LayoutJob::default();
    let mut add = |text: String, color| {
        job.append(&text, 0.0, egui::TextFormat::simple(track_font(), color));
    };
    add(format_offset(at_ns, tracks.scene.data.span().start_ns), palette.text);
    for &(index, curve, bytes) in &figures[..listed] {
        let figure = format_bytes(u64::try_from(bytes).unwrap_or(0));
        add("\n■ ".to_owned(), palette.curve(&curve.quantity, curve.nth, index));
        add(format!("{figure}  {}", curve.label), palette.text);
    }
    if listed < figures.len() {
        let more = t!("and {count} more", count = figures.len() - listed);
        add(format!("\n{more}"), palette.weak_text);
    }
    let galley = ui.painter().layout_job(job);
    let is_left = tracks.axis.x_of(at_ns) > rect.center().x;
    let size = galley.size() + egui::vec2(12.0, 8.0);
    let x = if is_left { rect.left() + 70.0 } else { rect.right() - size.x - 6.0 };
    let frame = Rect::from_min_size(pos2(x, rect.top() + 6.0), size);
    let painter = ui.painter().with_clip_rect(rect);
    painter.rect_filled(frame, 4, palette.track.gamma_multiply(0.92));
    painter.rect_stroke(frame, 4, Stroke::new(1.0, palette.grid), egui::StrokeKind::Inside);
    painter.galley(frame.min + egui::vec2(6.0, 4.0), galley, palette.text);
}
