//! The strip of the whole session, with the visible part marked: drag there moves the view.

use egui::{Rect, Sense, Stroke, StrokeKind, Ui, vec2};

use super::Tracks;
use super::curves::{self, Scale};
use super::view::{Axis, TimeView};
use crate::app::command::Command;
use crate::app::data::Curve;
use crate::model::Quantity;
use crate::text::t;

const HEIGHT: f32 = 34.0;

/// Draws the strip.
pub fn show(ui: &mut Ui, tracks: &mut Tracks<'_, '_>) {
    let size = vec2(tracks.axis.width, HEIGHT);
    let (rect, response) = ui.allocate_exact_size(size, Sense::click_and_drag());
    response.widget_info(|| {
        egui::WidgetInfo::labeled(egui::Role::Figure, true, t!("Overview of the whole session"))
    });
    let palette = tracks.scene.palette;
    let painter = ui.painter().with_clip_rect(rect);
    painter.rect_filled(rect, 2, palette.track);
    let whole = Axis { view: TimeView::around(tracks.scene.data.span()), ..tracks.axis };
    let data = tracks.scene.data;
    let state = tracks.scene.state;
    let mut chosen: Vec<_> = data.curves.iter().filter(|curve| state.is_curve_shown(data, curve)).collect();
    chosen.retain(|curve| curve.quantity != Quantity::Capacity);
    let is_main = |curve: &&Curve| matches!(curve.quantity, Quantity::Allocated | Quantity::Reserved);
    if chosen.iter().any(is_main) {
        chosen.retain(is_main);
    }
    let high =
        chosen.iter().filter_map(|curve| curve.points.extremes(0..curve.points.len())).map(|(_, high)| high);
    let scale = Scale::new(rect.shrink2(vec2(0.0, 2.0)), high.max().unwrap_or(1));
    for (index, curve) in chosen.iter().enumerate() {
        curves::paint(&painter, curve, &whole, scale, palette.curve(&curve.quantity, curve.nth, index), true);
    }
    if let Some(range) = tracks.scene.state.choices.range
        && let Some(x) = whole.visible(range)
    {
        painter.rect_filled(Rect::from_x_y_ranges(x, rect.y_range()), 0, palette.range_fill);
    }
    let view = tracks.axis.view;
    if view != whole.view
        && let Some(x) = whole.visible(view.range())
    {
        let seen = Rect::from_x_y_ranges(x, rect.y_range());
        for hidden in [rect.with_max_x(seen.left()), rect.with_min_x(seen.right())] {
            painter.rect_filled(hidden, 0, palette.track.gamma_multiply(0.65));
        }
        painter.rect_stroke(seen, 2, Stroke::new(1.5, palette.range_edge), StrokeKind::Inside);
    }
    if let Some(at) = response.interact_pointer_pos()
        && (response.dragged() || response.clicked())
    {
        let middle_ns = view.start_ns + view.duration_ns() / 2;
        let share = (whole.ns_of(at.x) - middle_ns) as f64 / view.duration_ns() as f64;
        tracks.scene.ask(Command::Pan(share));
    }
    if response.double_clicked() {
        tracks.scene.ask(Command::FitAll);
    }
}
