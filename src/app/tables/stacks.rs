//! What the range keeps as a flame graph of call stacks, from the program's entry or from the allocating function.

use egui::{Align2, Id, Rect, Sense, Stroke, StrokeKind, Ui, pos2, vec2};

use crate::analysis::{FlameNode, FlameOrder, label_words};
use crate::app::command::Command;
use crate::app::scene::Scene;
use crate::app::theme::{Palette, track_font};
use crate::model::{format_bytes, format_bytes_exact, format_count};
use crate::text::t;

const ROW: f32 = 18.0;
/// Narrower bars are not drawn.
const MIN_POINTS: f32 = 1.0;

/// Draws the graph.
pub fn show(ui: &mut Ui, scene: &mut Scene<'_>) {
    let nodes = scene.state.answers.flame.clone();
    let zoom_id = Id::unique("flame zoom");
    let zoomed: usize = ui.data(|data| data.get_temp(zoom_id)).unwrap_or_default();
    let order = scene.state.flame_order;
    ui.horizontal_wrapped(|ui| {
        for (choice, text) in
            [(FlameOrder::TopDown, t!("From the entry")), (FlameOrder::BottomUp, t!("From the allocation"))]
        {
            if ui.selectable_label(order == choice, text).clicked() {
                scene.ask(Command::SetFlameOrder(choice));
                ui.data_mut(|data| data.insert_temp(zoom_id, 0_usize));
            }
        }
        if zoomed > 0 && ui.button(t!("Show all")).clicked() {
            ui.data_mut(|data| data.insert_temp(zoom_id, 0_usize));
        }
        ui.weak(t!("Click a bar to zoom in."));
    });
    let Some(top) = nodes.get(zoomed).or(nodes.first()).filter(|top| top.bytes > 0) else {
        ui.weak(t!("Nothing: all that was allocated in the range was freed."));
        return;
    };
    let deepest = nodes.iter().map(|node| node.depth).max().unwrap_or(0).saturating_sub(top.depth);
    egui::ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
        let size = vec2(ui.available_width(), (f32::from(deepest) + 1.0) * ROW);
        let (rect, response) = ui.allocate_exact_size(size, Sense::click());
        let label = t!(
            "Flame graph of {bytes} in {count} allocations",
            bytes = format_bytes(top.bytes),
            count = format_count(top.count)
        );
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Figure, true, &label));
        let pointer = response.hover_pos();
        let mut hovered = None;
        for (at, node) in nodes.iter().enumerate() {
            let Some(bar) = bar_of(node, top, rect).filter(|bar| ui.is_rect_visible(*bar)) else { continue };
            let is_hovered = pointer.is_some_and(|pointer| bar.contains(pointer));
            paint(ui, node, bar, scene.palette, is_hovered);
            if is_hovered {
                hovered = Some((at, node));
            }
        }
        let Some((at, node)) = hovered else { return };
        if response.clicked() {
            ui.data_mut(|data| data.insert_temp(zoom_id, at));
        }
        response.on_hover_ui_at_pointer(|ui| {
            ui.strong(words(node));
            ui.label(t!(
                "{bytes} in {count} allocations",
                bytes = format_bytes_exact(node.bytes),
                count = format_count(node.count)
            ));
        });
    });
}

fn words(node: &FlameNode) -> String {
    if node.label.is_empty() { t!("all").to_owned() } else { label_words(&node.label).into_owned() }
}

/// Where a node is drawn, if it is seen below `top`.
fn bar_of(node: &FlameNode, top: &FlameNode, rect: Rect) -> Option<Rect> {
    let depth = node.depth.checked_sub(top.depth)?;
    let offset = node.start_bytes.checked_sub(top.start_bytes).filter(|&offset| offset < top.bytes)?;
    let scale = f64::from(rect.width()) / top.bytes as f64;
    let left = rect.left() + (offset as f64 * scale) as f32;
    let width = (node.bytes as f64 * scale) as f32;
    let row = rect.top() + f32::from(depth) * ROW;
    (width >= MIN_POINTS).then(|| Rect::from_min_size(pos2(left, row), vec2(width, ROW - 1.0)))
}

fn paint(ui: &Ui, node: &FlameNode, bar: Rect, palette: &Palette, is_hovered: bool) {
    let name = node.label.rsplit(' ').next().unwrap_or_default();
    let sum = name.bytes().fold(3_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
    let fill = palette.category(sum);
    let painter = ui.painter().with_clip_rect(bar.intersect(ui.clip_rect()));
    painter.rect_filled(bar.shrink2(vec2(0.5, 0.0)), 2, fill);
    if is_hovered {
        painter.rect_stroke(bar, 2, Stroke::new(2.0, palette.text), StrokeKind::Inside);
    }
    if bar.width() > 40.0 {
        let label = words(node);
        let text = format!("{label}  {}", format_bytes(node.bytes));
        let at = pos2(bar.left() + 4.0, bar.center().y);
        painter.text(at, Align2::LEFT_CENTER, text, track_font(), Palette::text_on(fill));
    }
}
