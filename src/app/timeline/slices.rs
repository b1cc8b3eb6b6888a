//! Ops, Python functions and kernels as nested slices, a row for each depth.

use egui::{Align2, Rect, Ui, pos2};

use super::Tracks;
use super::view::Axis;
use crate::app::lanes::ShownLane;
use crate::app::theme::{Palette, track_font};
use crate::model::SliceKind;
use crate::model::time::format_duration;
use crate::text::t;

const ROW: f32 = 15.0;
const MAX_LANES: usize = 6;
const MAX_ROWS: usize = 16;

/// Draws the track.
pub fn show(ui: &mut Ui, tracks: &mut Tracks<'_, '_>) {
    let lanes: Vec<&ShownLane> = tracks.scene.data.lanes.iter().take(MAX_LANES).collect();
    if lanes.is_empty() || !tracks.head(ui, "Ops and stacks", |_, _| {}) {
        return;
    }
    for lane in lanes {
        let rows = lane.rows.len().min(MAX_ROWS);
        let height = (rows + 1) as f32 * ROW;
        let (rect, response) =
            tracks.body(ui, "Ops and stacks", height, || t!("Ops and stacks of {lane}", lane = lane.name));
        let palette = tracks.scene.palette;
        let painter = ui.painter().with_clip_rect(rect);
        let name_at = pos2(rect.left() + 4.0, rect.top() + ROW * 0.5);
        painter.text(name_at, Align2::LEFT_CENTER, &lane.name, track_font(), palette.weak_text);
        let pointer = response.hover_pos();
        let mut hovered = None;
        for (depth, row) in lane.rows.iter().take(rows).enumerate() {
            let top = rect.top() + (depth + 1) as f32 * ROW;
            let strip = rect.with_min_y(top).with_max_y(top + ROW - 1.0);
            paint_row(ui, lane, row, &tracks.axis, strip, palette);
            if let Some(at) = pointer.filter(|at| strip.contains(*at)) {
                hovered = slice_at(lane, row, tracks.axis.ns_of(at.x));
            }
        }
        tracks.overlay(ui, rect);
        if let Some(slice) = hovered {
            let duration = format_duration(lane.range(slice).duration_ns());
            response.on_hover_text_at_pointer(format!("{}\n{duration}", lane.slice_name(slice)));
        }
    }
}

/// Paints a row; what is narrower than a pixel is skipped over by search, so that the cost goes by pixels.
fn paint_row(ui: &Ui, lane: &ShownLane, row: &[u32], axis: &Axis, strip: Rect, palette: &Palette) {
    let painter = ui.painter().with_clip_rect(strip);
    let mut at = row.partition_point(|&slice| lane.range(slice).end_ns <= axis.view.start_ns);
    while let Some(&slice) = row.get(at) {
        let range = lane.range(slice);
        if range.start_ns >= axis.view.end_ns {
            break;
        }
        let left = axis.x_of(range.start_ns).max(strip.left());
        let right = axis.x_of(range.end_ns).min(strip.right());
        let fill = color(lane.kind(slice), lane.slice_name(slice), palette);
        let rect = Rect::from_x_y_ranges(left..=right.max(left + 1.0), strip.y_range());
        painter.rect_filled(rect, 1, fill);
        if rect.width() > 30.0 {
            let name = lane.slice_name(slice);
            let room = (rect.width() / 5.5) as usize;
            let short: String = name.chars().take(room).collect();
            let text_at = pos2(rect.left() + 3.0, rect.center().y);
            let text_color = Palette::text_on(fill);
            painter.with_clip_rect(rect.intersect(strip)).text(
                text_at,
                Align2::LEFT_CENTER,
                short,
                track_font(),
                text_color,
            );
        }
        if right - left < 1.0 {
            // On to the first slice that ends in a later column.
            let next_ns = axis.ns_of(left + 1.0);
            let skip = row[at + 1..].partition_point(|&other| lane.range(other).end_ns < next_ns);
            at += 1 + skip;
        } else {
            at += 1;
        }
    }
}

fn slice_at(lane: &ShownLane, row: &[u32], at_ns: i64) -> Option<u32> {
    let after = row.partition_point(|&slice| lane.range(slice).start_ns <= at_ns);
    let slice = *row.get(after.checked_sub(1)?)?;
    lane.range(slice).contains(at_ns).then_some(slice)
}

/// The same name has the same colour; kinds differ in their set of colours.
fn color(kind: SliceKind, name: &str, palette: &Palette) -> egui::Color32 {
    let sum = name.bytes().fold(7_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
    let base = match kind {
        SliceKind::PythonFunction | SliceKind::Sample => 0,
        SliceKind::Module => 2,
        SliceKind::CpuOp => 4,
        SliceKind::Kernel => 6,
        SliceKind::Annotation | SliceKind::GpuAnnotation => 8,
        SliceKind::Runtime => 10,
    };
    palette.category(base + sum % 2)
}
