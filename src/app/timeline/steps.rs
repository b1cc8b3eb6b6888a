//! Steps, and the user's annotations below them.

use egui::{Align2, Rect, Stroke, StrokeKind, Ui, pos2};

use super::Tracks;
use crate::app::theme::{Palette, track_font};
use crate::model::time::format_duration;
use crate::model::{Process, ProcessId, TimeRange};
use crate::text::t;

const ROW: f32 = 18.0;
const MAX_ROWS: usize = 6;
/// Narrower things are drawn as one.
const MIN_POINTS: f32 = 2.0;

/// Draws the track.
pub fn show(ui: &mut Ui, tracks: &mut Tracks<'_, '_>) {
    let data = tracks.scene.data;
    let chosen = tracks.scene.state.choices.selection.process;
    let is_chosen = |id: ProcessId| chosen.is_none_or(|one| one == id);
    let processes: Vec<&Process> = data
        .process_labels()
        .filter(|&(id, _)| is_chosen(id))
        .map(|(id, _)| data.session().process(id))
        .filter(|process| !process.steps.is_empty() || !process.annotations.is_empty())
        .take(MAX_ROWS)
        .collect();
    if processes.is_empty() || !tracks.head(ui, "Steps", |_, _| {}) {
        return;
    }
    let rows: Vec<Vec<Bar>> = processes.iter().flat_map(|process| rows_of(process)).collect();
    let height = rows.len() as f32 * ROW + 2.0;
    let steps: usize = processes.iter().map(|process| process.steps.len()).sum();
    let (rect, response) =
        tracks.body(ui, "Steps", height, || t!("Steps and annotations, {steps} steps", steps));
    let palette = tracks.scene.palette;
    let mut hovered = None;
    for (number, row) in rows.iter().enumerate() {
        let top = rect.top() + 1.0 + number as f32 * ROW;
        let lane = rect.with_min_y(top).with_max_y(top + ROW - 2.0);
        let at = response.hover_pos().filter(|at| lane.contains(*at));
        hovered = paint(ui, tracks, row, lane, at.map(|at| at.x), palette, number).or(hovered);
    }
    tracks.overlay(ui, rect);
    if let Some(text) = hovered {
        response.on_hover_text_at_pointer(text);
    }
}

/// A named stretch of time.
struct Bar {
    name: String,
    range: TimeRange,
    is_step: bool,
}

/// Steps first, then annotations that aren't steps, in as few rows as they need.
fn rows_of(process: &Process) -> Vec<Vec<Bar>> {
    let mut rows = vec![
        process
            .steps
            .iter()
            .map(|step| Bar {
                name: t!("step {number}", number = step.number),
                range: step.range,
                is_step: true,
            })
            .collect::<Vec<_>>(),
    ];
    if rows[0].is_empty() {
        rows.clear();
    }
    let first = rows.len();
    let is_step = |name: &str| !process.step_name.is_empty() && name.starts_with(&process.step_name);
    for annotation in &process.annotations {
        let name = process.strings.get(annotation.name);
        if is_step(name) {
            continue;
        }
        let bar = Bar { name: name.to_owned(), range: annotation.range, is_step: false };
        let is_free = |row: &&mut Vec<Bar>| {
            row.last().is_none_or(|last: &Bar| last.range.end_ns <= annotation.range.start_ns)
        };
        if let Some(row) = rows[first..].iter_mut().find(is_free) {
            row.push(bar);
        } else if rows.len() < first + MAX_ROWS {
            rows.push(vec![bar]);
        }
    }
    rows
}

/// Paints a row, and gives the text of what is under the pointer.
fn paint(
    ui: &Ui,
    tracks: &Tracks<'_, '_>,
    row: &[Bar],
    lane: Rect,
    pointer_x: Option<f32>,
    palette: &Palette,
    number: usize,
) -> Option<String> {
    let painter = ui.painter().with_clip_rect(lane);
    let axis = tracks.axis;
    let from = row.partition_point(|bar| bar.range.end_ns < axis.view.start_ns);
    let mut hovered = None;
    let mut painted_to = f32::MIN;
    for (at, bar) in row.iter().enumerate().skip(from) {
        if bar.range.start_ns > axis.view.end_ns {
            break;
        }
        let (start, end) = (axis.x_of(bar.range.start_ns), axis.x_of(bar.range.end_ns));
        if pointer_x.is_some_and(|x| start <= x && x < end) {
            hovered = Some(format!("{}, {}", bar.name, format_duration(bar.range.duration_ns())));
        }
        if end < painted_to {
            continue;
        }
        painted_to = end.max(start + MIN_POINTS);
        let rect =
            Rect::from_x_y_ranges(start.max(lane.left())..=painted_to.min(lane.right()), lane.y_range());
        let fill = if bar.is_step {
            if at % 2 == 0 { palette.grid } else { palette.grid.gamma_multiply(0.6) }
        } else {
            palette.category(number).gamma_multiply(0.35)
        };
        painter.rect_filled(rect, 2, fill);
        if rect.width() > 6.0 {
            painter.rect_stroke(rect, 2, Stroke::new(1.0, palette.track), StrokeKind::Inside);
        }
        let is_word = |c: char| bar.is_step && !c.is_ascii_digit() && c != '-';
        let short = bar.name.trim_matches(is_word);
        let text = if rect.width() > 54.0 { bar.name.as_str() } else { short };
        if rect.width() > 8.0 + text.chars().count() as f32 * 6.0 {
            let at = pos2(rect.left() + 4.0, rect.center().y);
            painter.text(at, Align2::LEFT_CENTER, text, track_font(), palette.text);
        }
    }
    hovered
}
