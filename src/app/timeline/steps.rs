//! Steps, and the user's annotations below them.

use egui::{Align2, Rect, Stroke, StrokeKind, Ui, pos2};

use super::Tracks;
use super::view::Axis;
use crate::app::bars::Bar;
use crate::app::theme::{Palette, track_font};
use crate::model::time::format_duration;
use crate::model::{Process, ProcessId};
use crate::text::t;

const ROW: f32 = 18.0;
const MAX_ROWS: usize = 6;
/// Narrower things are drawn as one.
const MIN_POINTS: f32 = 2.0;
/// Steps that are wide enough are set apart by a line.
const PARTED_POINTS: f32 = 6.0;

/// Draws the track.
pub fn show(ui: &mut Ui, tracks: &mut Tracks<'_, '_>) {
    let data = tracks.scene.data;
    let chosen = tracks.scene.state.choices.selection.process;
    let is_chosen = |id: ProcessId| chosen.is_none_or(|one| one == id);
    let processes: Vec<(ProcessId, &Process)> = data
        .process_labels()
        .filter(|&(id, _)| is_chosen(id))
        .map(|(id, _)| (id, data.session().process(id)))
        .filter(|(_, process)| !process.steps.is_empty() || !process.annotations.is_empty())
        .take(MAX_ROWS)
        .collect();
    if processes.is_empty() || !tracks.head(ui, "Steps", |_, _| {}) {
        return;
    }
    let rows: Vec<&Vec<Bar>> = processes.iter().flat_map(|(id, _)| &data.bars[id.0 as usize]).collect();
    let height = rows.len() as f32 * ROW + 2.0;
    let steps: usize = processes.iter().map(|(_, process)| process.steps.len()).sum();
    let (rect, response) =
        tracks.body(ui, "Steps", height, || t!("Steps and annotations, {steps} steps", steps));
    let mut hovered = None;
    for (number, row) in rows.iter().enumerate() {
        let top = rect.top() + 1.0 + number as f32 * ROW;
        let lane = rect.with_min_y(top).with_max_y(top + ROW - 2.0);
        paint(ui, &tracks.axis, row, lane, tracks.scene.palette, number);
        let at = response.hover_pos().filter(|at| lane.contains(*at));
        hovered = at.and_then(|at| bar_at(row, tracks.axis.ns_of(at.x))).or(hovered);
    }
    tracks.overlay(ui, rect);
    if let Some(bar) = hovered {
        let duration = format_duration(bar.range.duration_ns());
        response.on_hover_text_at_pointer(format!("{}, {duration}", bar.name));
    }
}

/// Paints a row; what is narrower than two points is skipped over by search, so that the cost goes by pixels.
fn paint(ui: &Ui, axis: &Axis, row: &[Bar], lane: Rect, palette: &Palette, number: usize) {
    let painter = ui.painter().with_clip_rect(lane);
    let mut at = row.partition_point(|bar| bar.range.end_ns < axis.view.start_ns);
    while let Some(bar) = row.get(at) {
        if bar.range.start_ns > axis.view.end_ns {
            break;
        }
        let start = axis.x_of(bar.range.start_ns);
        let end = axis.x_of(bar.range.end_ns).max(start + MIN_POINTS);
        let rect = Rect::from_x_y_ranges(start.max(lane.left())..=end.min(lane.right()), lane.y_range());
        let fill = if bar.is_step {
            if at % 2 == 0 { palette.grid } else { palette.grid.gamma_multiply(0.6) }
        } else {
            palette.category(number).gamma_multiply(0.35)
        };
        painter.rect_filled(rect, 2, fill);
        if rect.width() > PARTED_POINTS && bar.is_step {
            painter.vline(start, lane.y_range(), Stroke::new(1.0, palette.crosshair));
        } else if rect.width() > PARTED_POINTS {
            painter.rect_stroke(rect, 2, Stroke::new(1.0, palette.category(number)), StrokeKind::Inside);
        }
        let text = if rect.width() > 54.0 { &bar.name } else { &bar.short };
        if rect.width() > 8.0 + text.chars().count() as f32 * 6.0 {
            let at = pos2(rect.left() + 4.0, rect.center().y);
            painter.text(at, Align2::LEFT_CENTER, text, track_font(), palette.text);
        }
        let painted_to_ns = axis.ns_of(end);
        at += 1 + row[at + 1..].partition_point(|bar| bar.range.end_ns < painted_to_ns);
    }
}

fn bar_at(row: &[Bar], at_ns: i64) -> Option<&Bar> {
    let after = row.partition_point(|bar| bar.range.start_ns <= at_ns);
    row.get(after.checked_sub(1)?).filter(|bar| bar.range.contains(at_ns))
}
