//! Tracks over one time axis. All share one mapping from time to x ([`view::Axis`]), one brush and one crosshair.

mod allocation_map;
mod brush;
mod colors;
mod curves;
mod overview;
pub mod pyramid;
mod ruler;
mod slices;
mod steps;
pub mod view;

use egui::containers::scroll_area::{DragScroll, ScrollSource};
use egui::{Rect, Response, Sense, Ui, vec2};

pub use allocation_map::{MapQuestion, Mapper, start_mapper};
pub use colors::ColoredMap;

use super::command::Command;
use super::scene::Scene;
use crate::model::time::{format_duration, format_offset};
use crate::text::{msg, say, t};
use view::Axis;

/// How much a notch of the wheel zooms.
const ZOOM_PER_POINT: f64 = 1.0 / 240.0;

/// The share of the room that a high track takes to begin with.
const ROOM_SHARE: f32 = 0.27;
/// No track is lower to begin with.
const MIN_HEIGHT: f32 = 72.0;

/// The tracks are no lower than this.
const LEAST_TRACKS: f32 = 110.0;
/// So much is left for what is below them: the range, the tabs and some rows, even where they take several lines.
const LEAST_BELOW: f32 = 280.0;

/// Draws a track.
type Show = fn(&mut Ui, &mut Tracks<'_, '_>);

/// The tracks by name, from top to bottom as they are to begin with.
const TRACKS: [(&str, Show); 4] = [
    (msg!("Memory"), curves::show),
    (msg!("Steps"), steps::show),
    (msg!("Allocations"), allocation_map::show),
    (msg!("Ops and stacks"), slices::show),
];

/// The names of the tracks from top to bottom, where the user has moved some.
pub fn order(moved: &[&'static str]) -> Vec<&'static str> {
    let known = |name: &&str| TRACKS.iter().any(|(track, _)| track == name);
    let mut order: Vec<&'static str> = moved.iter().copied().filter(known).collect();
    order.extend(TRACKS.iter().map(|(name, _)| *name).filter(|name| !moved.contains(name)));
    order
}

/// What tracks share in a frame.
pub struct Tracks<'s, 'a> {
    /// What to draw, and where to put commands.
    pub scene: &'s mut Scene<'a>,
    /// Where time is.
    pub axis: Axis,
    /// The instant under the pointer.
    pub hover_ns: Option<i64>,
    /// How high the tracks' panel is.
    room: f32,
}

/// Draws all tracks in a panel of their own.
pub fn show(ui: &mut Ui, scene: &mut Scene<'_>) {
    let height = ui.available_height();
    let panel = egui::Panel::top("tracks").resizable(true).default_size(height * 0.55);
    panel.size_range(LEAST_TRACKS..=(height - LEAST_BELOW).max(LEAST_TRACKS)).show(ui, |ui| {
        ui.spacing_mut().item_spacing.y = 2.0;
        let area = ui.available_rect_before_wrap();
        let axis = Axis { view: scene.state.view, left: area.left(), width: area.width() - 10.0 };
        let pointer = ui.input(|input| input.pointer.hover_pos()).filter(|&at| area.contains(at));
        let hover_ns = pointer.map(|at| axis.ns_of(at.x));
        let mut tracks = Tracks { scene, axis, hover_ns, room: area.height() };
        if ui.rect_contains_pointer(area) {
            tracks.wheel(ui);
        }
        overview::show(ui, &mut tracks);
        ruler::show(ui, &mut tracks);
        let source = ScrollSource { mouse_wheel: false, drag: DragScroll::Never, scroll_bar: true };
        egui::ScrollArea::vertical().scroll_source(source).auto_shrink(false).show(ui, |ui| {
            for name in order(&tracks.scene.state.looks.track_order) {
                if let Some((_, show)) = TRACKS.iter().find(|(known, _)| *known == name) {
                    show(ui, &mut tracks);
                }
            }
        });
    });
}

impl Tracks<'_, '_> {
    /// The wheel zooms at the pointer; sideways it pans.
    fn wheel(&mut self, ui: &Ui) {
        let (scroll, pinch) = ui.input(|input| (input.smooth_scroll_delta(), input.zoom_delta()));
        let factor = (-f64::from(scroll.y) * ZOOM_PER_POINT).exp() / f64::from(pinch);
        if (factor - 1.0).abs() > 1e-4 {
            self.scene.ask(Command::Zoom(self.hover_ns, factor));
        }
        if scroll.x != 0.0 {
            self.scene.ask(Command::Pan(-f64::from(scroll.x / self.axis.width)));
        }
    }

    /// The head of a track: its name with a button that folds it, and what `extra` adds. Says whether it is unfolded.
    fn head(&mut self, ui: &mut Ui, name: &'static str, extra: impl FnOnce(&mut Ui, &mut Self)) -> bool {
        let is_folded = self.scene.state.looks.folded_tracks.contains(name);
        ui.horizontal(|ui| {
            let title = say(name);
            let text = format!("{} {title}", if is_folded { "⏵" } else { "⏷" });
            let button = egui::Button::new(egui::RichText::new(text).strong()).frame(false);
            let action = if is_folded {
                t!("Unfold track {name}", name = title)
            } else {
                t!("Fold track {name}", name = title)
            };
            let button = ui.add(button).accessible_name(action);
            if button.clicked() {
                self.scene.ask(Command::ToggleTrack(name));
            }
            button.context_menu(|ui| {
                for (text, by) in [(t!("Move up"), -1), (t!("Move down"), 1)] {
                    if ui.button(text).clicked() {
                        self.scene.ask(Command::MoveTrack(name, by));
                        ui.close();
                    }
                }
            });
            button.on_hover_text(t!("Click to fold, right-click to move"));
            if !is_folded {
                extra(ui, self);
            }
        });
        !is_folded
    }

    /// How high the user wants a track; to begin with as high as leaves room for the others.
    fn height(&self, name: &str, otherwise: f32) -> f32 {
        let chosen = self.scene.state.looks.heights.get(name).copied();
        chosen.unwrap_or_else(|| (self.room * ROOM_SHARE).clamp(MIN_HEIGHT, otherwise))
    }

    /// The strip below a track that changes its height.
    fn grip(&mut self, ui: &mut Ui, name: &'static str, height: f32) {
        let (rect, response) = ui.allocate_exact_size(vec2(self.axis.width, 5.0), Sense::drag());
        response.widget_info(|| {
            egui::WidgetInfo::labeled(egui::Role::Splitter, true, t!("Resize track {name}", name = say(name)))
        });
        let response = response.on_hover_and_drag_cursor(egui::CursorIcon::ResizeVertical);
        if response.hovered() || response.dragged() {
            ui.painter().rect_filled(rect.shrink2(vec2(0.0, 1.5)), 1, self.scene.palette.crosshair);
        }
        let by = response.drag_delta().y;
        if by != 0.0 {
            self.scene.ask(Command::ResizeTrack(name, height + by));
        }
    }

    /// The body of a track with background and brush; `label` describes it to those who can't see it.
    fn body(&mut self, ui: &mut Ui, name: &str, height: f32, label: impl Fn() -> String) -> (Rect, Response) {
        let size = vec2(self.axis.width, height);
        let (rect, response) = ui.allocate_exact_size(size, Sense::click_and_drag());
        ui.painter().rect_filled(rect, 0, self.scene.palette.track);
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Figure, true, label()));
        brush::interact(ui, self, &response, name == "Ruler");
        if response.has_focus() {
            let ring = egui::Stroke::new(2.0, self.scene.palette.range_edge);
            ui.painter().rect_stroke(rect, 0, ring, egui::StrokeKind::Inside);
        }
        (rect, response)
    }

    /// Paints what lies over every track: the range, the cursor and the crosshair.
    fn overlay(&self, ui: &Ui, rect: Rect) {
        let painter = ui.painter().with_clip_rect(rect);
        let palette = self.scene.palette;
        if let Some(range) = self.scene.state.choices.range
            && let Some(x) = self.axis.visible(range)
        {
            painter.rect_filled(Rect::from_x_y_ranges(x, rect.y_range()), 0, palette.range_fill);
            for edge_ns in [range.start_ns, range.end_ns] {
                let edge = self.axis.x_of(edge_ns);
                painter.vline(edge, rect.y_range(), egui::Stroke::new(1.5, palette.range_edge));
            }
        }
        if let Some(at_ns) = self.scene.state.cursor_ns {
            let stroke = egui::Stroke::new(1.5, palette.text);
            painter.vline(self.axis.x_of(at_ns), rect.y_range(), stroke);
        }
        if let Some(at_ns) = self.hover_ns {
            let stroke = egui::Stroke::new(1.0, palette.crosshair);
            painter.vline(self.axis.x_of(at_ns), rect.y_range(), stroke);
        }
    }

    /// The brushed range in words, for those who can't see it.
    fn range_text(&self) -> String {
        let start_ns = self.scene.data.span().start_ns;
        self.scene.state.choices.range.map_or_else(
            || t!("no range").to_owned(),
            |range| {
                t!(
                    "range {from} to {to}, {duration}",
                    from = format_offset(range.start_ns, start_ns),
                    to = format_offset(range.end_ns, start_ns),
                    duration = format_duration(range.duration_ns())
                )
            },
        )
    }
}
