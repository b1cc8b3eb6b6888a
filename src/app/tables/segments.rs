//! Segments at an instant, with their blocks and holes: fragmentation can be seen.

use egui::{Rect, Sense, Stroke, StrokeKind, Ui, pos2, vec2};

use crate::analysis::{BlockAt, SegmentAt, label_words};
use crate::app::command::Command;
use crate::app::scene::Scene;
use crate::app::state::Selected;
use crate::model::time::format_offset;
use crate::model::{format_bytes, format_count};
use crate::text::t;

const ROW: f32 = 22.0;
const GAP: f32 = 4.0;
/// The least width of a segment, so that small ones can be pointed at.
const MIN_POINTS: f32 = 6.0;
/// How many segments are drawn.
const MAX_DRAWN: usize = 4_000;

/// Draws the segments.
pub fn show(ui: &mut Ui, scene: &mut Scene<'_>) {
    let segments = scene.state.answers.segments.clone();
    let at_ns = scene.state.answers.live_at_ns.unwrap_or_default();
    let at = format_offset(at_ns, scene.data.span().start_ns);
    if segments.is_empty() {
        ui.weak(t!("No segments are known at {at}: only a memory snapshot tells of them.", at));
        return;
    }
    let sum = |of: fn(&SegmentAt) -> u64| segments.iter().map(of).fold(0, u64::saturating_add);
    let (total, used) = (sum(|segment| segment.total_bytes), sum(SegmentAt::used_bytes));
    let hole = segments.iter().map(SegmentAt::largest_hole_bytes).max().unwrap_or(0);
    ui.label(t!(
        "{count} segments at {at}: {reserved} reserved, {used} in blocks, {free} free in holes, the largest {hole}",
        count = format_count(segments.len() as u64),
        at,
        reserved = format_bytes(total),
        used = format_bytes(used),
        free = format_bytes(total.saturating_sub(used)),
        hole = format_bytes(hole)
    ));
    egui::ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
        let width = ui.available_width() - 4.0;
        let placed = place(&segments, width);
        let height = placed.last().map_or(0.0, |rect| rect.bottom() + GAP);
        let (rect, response) = ui.allocate_exact_size(vec2(width, height), Sense::click());
        let label = t!("Address map of {count} segments at {at}", count = segments.len(), at);
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Figure, true, &label));
        let pointer = response.hover_pos();
        let mut hovered = None;
        for (segment, place) in segments.iter().zip(&placed) {
            let place = place.translate(rect.min.to_vec2());
            if ui.is_rect_visible(place) {
                let block = paint(ui, scene, segment, place, pointer);
                if pointer.is_some_and(|pointer| place.contains(pointer)) {
                    hovered = Some((segment, block));
                }
            }
        }
        let Some((segment, block)) = hovered else { return };
        if let Some(block) = block.filter(|_| response.clicked()) {
            scene.ask(Command::Select(Some(Selected::Row(block.row))));
        }
        response.on_hover_ui_at_pointer(|ui| describe(ui, scene, segment, block));
    });
}

/// Places segments side by side in rows, widths by bytes; the largest fills a row.
fn place(segments: &[SegmentAt], width: f32) -> Vec<Rect> {
    let largest = segments.first().map_or(1, |segment| segment.total_bytes.max(1));
    let mut at = pos2(0.0, 0.0);
    segments
        .iter()
        .take(MAX_DRAWN)
        .map(|segment| {
            let share = segment.total_bytes as f64 / largest as f64;
            let size = vec2(((share * f64::from(width)) as f32).clamp(MIN_POINTS, width), ROW);
            if at.x > 0.0 && at.x + size.x > width {
                at = pos2(0.0, at.y + ROW + GAP);
            }
            let rect = Rect::from_min_size(at, size);
            at.x += size.x + GAP;
            rect
        })
        .collect()
}

/// Paints a segment, and gives the block under the pointer.
fn paint(
    ui: &Ui,
    scene: &Scene<'_>,
    segment: &SegmentAt,
    place: Rect,
    pointer: Option<egui::Pos2>,
) -> Option<BlockAt> {
    let palette = scene.palette;
    let painter = ui.painter().with_clip_rect(place.intersect(ui.clip_rect()));
    painter.rect_filled(place, 1, palette.track);
    painter.rect_stroke(place, 1, Stroke::new(1.0, palette.outline), StrokeKind::Outside);
    let x = |address: u64| {
        let share = address.saturating_sub(segment.address) as f64 / segment.total_bytes.max(1) as f64;
        place.left() + (share * f64::from(place.width())) as f32
    };
    let session = scene.data.session();
    let mut found = None;
    let mut mesh = egui::Mesh::default();
    for block in &segment.blocks {
        let (left, right) = (x(block.address), x(block.address.saturating_add(block.bytes)));
        let stack = session.process(block.row.process).allocations.stack[block.row.row as usize];
        let call_site = scene.data.index.call_site(block.row.process, stack);
        let color = palette.category(scene.data.call_site_rank(call_site));
        let is_lit = match &scene.state.selected {
            Some(Selected::Row(row)) => *row == block.row,
            Some(Selected::Rows(rows)) => rows.contains(&block.row),
            _ => true,
        };
        let color = if is_lit { color } else { color.gamma_multiply(0.5) };
        let rect = Rect::from_x_y_ranges(left..=(right - 0.5).max(left + 0.5), place.y_range());
        mesh.add_colored_rect(rect, color);
        if block.is_pending {
            // Marked by shape too, not by colour alone.
            mesh.add_colored_rect(rect.with_max_y(rect.top() + 4.0), palette.warning);
        }
        if pointer.is_some_and(|pointer| rect.contains(pointer)) {
            found = Some(*block);
        }
    }
    painter.add(egui::Shape::mesh(mesh));
    found
}

fn describe(ui: &mut Ui, scene: &Scene<'_>, segment: &SegmentAt, block: Option<BlockAt>) {
    let index = &scene.data.index;
    if let Some(block) = block {
        let allocation = block.row.get(scene.data.session());
        ui.strong(t!("block of {bytes}", bytes = format_bytes(block.bytes)));
        ui.label(label_words(index.label(index.call_site(block.row.process, allocation.stack))));
        ui.label(label_words(index.label(index.op(block.row.process, allocation.op, allocation.stack))));
        if block.is_pending {
            ui.label(t!("its free waits for a stream"));
        }
    } else {
        ui.strong(t!("hole"));
    }
    ui.label(t!(
        "segment {address} of {bytes}, {used} used, {device}, stream {stream}",
        address = format!("{:#x}", segment.address),
        bytes = format_bytes(segment.total_bytes),
        used = format_bytes(segment.used_bytes()),
        device = segment.device,
        stream = format!("{:#x}", segment.stream)
    ));
}
