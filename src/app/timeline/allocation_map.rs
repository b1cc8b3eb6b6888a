//! The allocation map: each allocation a block over time, stacked by age, coloured by what the user chooses.

use std::sync::Arc;

use egui::{Color32, Id, Mesh, Pos2, Rect, RichText, Shape, Stroke, StrokeKind, Ui, pos2, vec2};

use super::Tracks;
use super::colors::{self, COLOR_BY, ColoredMap};
use super::curves::{self, Scale};
use super::view::Axis;
use crate::analysis::{BlockMap, Group, GroupBy, MapRequest, Piece, RowRef, block_map, label_words};
use crate::app::command::Command;
use crate::app::data::Data;
use crate::app::desk::Desk;
use crate::app::opening::Wake;
use crate::app::scene::Scene;
use crate::app::state::{Selected, Tab};
use crate::app::theme::track_font;
use crate::model::time::{format_duration, format_offset};
use crate::model::{BEFORE_NS, NEVER_NS, format_bytes, format_count};
use crate::text::t;

const HEIGHT: f32 = 150.0;
/// The track is so much higher than the highest stack.
const ROOM_ABOVE: f64 = 1.04;

/// A map to make.
#[derive(Clone, Debug)]
pub struct MapQuestion {
    /// Of this session.
    pub data: Arc<Data>,
    /// What it shall show.
    pub request: MapRequest,
    /// What its blocks are coloured by.
    pub color_by: GroupBy,
}

impl PartialEq for MapQuestion {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.data, &other.data)
            && self.request == other.request
            && self.color_by == other.color_by
    }
}

/// The desk of the thread that makes maps.
pub type Mapper = Desk<MapQuestion, ColoredMap>;

/// Starts the thread that makes maps.
///
/// # Errors
/// When the system has no thread to give.
pub fn start_mapper(wake: Wake) -> std::io::Result<Mapper> {
    Desk::start("allocation map", wake, |question: MapQuestion, reply| {
        let map = block_map(question.data.session(), &question.request);
        reply.send(colors::color(&question.data, map, question.color_by));
    })
}

/// The mesh of a map as it was drawn last, and what it was drawn for.
#[derive(Clone)]
struct Cached {
    map: Arc<ColoredMap>,
    axis: Axis,
    rect: Rect,
    selected: Option<Selected>,
    is_dark: bool,
    mesh: Arc<Mesh>,
}

/// Draws the track.
pub fn show(ui: &mut Ui, tracks: &mut Tracks<'_, '_>) {
    let has_rows =
        tracks.scene.data.session().processes.iter().any(|process| !process.allocations.is_empty());
    let map = tracks.scene.state.map.clone();
    let head = map.clone();
    let is_open =
        has_rows && tracks.head(ui, "Allocations", |ui, tracks| legend(ui, tracks, head.as_deref()));
    let height = tracks.height("Allocations", HEIGHT);
    let pixels = is_open.then_some([tracks.axis.width as u32, height as u32]);
    if tracks.scene.state.map_pixels != pixels {
        tracks.scene.ask(Command::SetMapPixels(pixels));
    }
    if !is_open {
        return;
    }
    let label = t!("Allocations stacked by age, {range}", range = tracks.range_text());
    let (rect, response) = tracks.body(ui, "Allocations", height, || label.clone());
    tracks.grip(ui, "Allocations", height);
    let Some(map) = map else { return };
    let painter = ui.painter().with_clip_rect(rect);
    painter.add(Shape::Mesh(mesh(ui, tracks, &map, rect)));
    let palette = tracks.scene.palette;
    let scale = Scale::up_to(rect, map.map.high_bytes.max(1) as f64 * ROOM_ABOVE);
    curves::grid(&painter, scale, rect, palette, palette.track.gamma_multiply(0.8));
    tracks.overlay(ui, rect);
    let at = response.hover_pos().filter(|at| rect.contains(*at));
    let Some(piece) = at.and_then(|at| find(&map.map, &tracks.axis, rect, at)) else { return };
    if response.clicked() {
        let keeps_others = ui.input(|input| input.modifiers.command);
        tracks.scene.ask(match keeps_others {
            true => Command::SelectAlso(piece.row),
            false => Command::Select(Some(Selected::Row(piece.row))),
        });
    }
    if !response.dragged() {
        let box_rect = rect_of(&piece, &tracks.axis, rect, map.map.high_bytes);
        let stroke = Stroke::new(1.5, tracks.scene.palette.text);
        painter.rect_stroke(box_rect, 0, stroke, StrokeKind::Inside);
        response.on_hover_ui_at_pointer(|ui| describe(ui, tracks.scene, &piece, map.by));
    }
}

/// What the colours mean, which other meaning they can have, and what is not drawn block by block.
fn legend(ui: &mut Ui, tracks: &mut Tracks<'_, '_>, map: Option<&ColoredMap>) {
    let now = tracks.scene.state.looks.color_by;
    let mut chosen = now;
    let words = |by: GroupBy| match by {
        GroupBy::Module => t!("colour by module"),
        GroupBy::Category => t!("colour by category"),
        GroupBy::Step => t!("colour by step"),
        _ => t!("colour by call site"),
    };
    let combo = egui::ComboBox::from_id_salt("color by").selected_text(words(now)).width(130.0);
    let combo = combo.show_ui(ui, |ui| {
        for by in COLOR_BY {
            ui.selectable_value(&mut chosen, by, words(by));
        }
    });
    combo.response.accessible_name(t!("What colours mean"));
    if chosen != now {
        tracks.scene.ask(Command::SetColorBy(chosen));
    }
    let Some(map) = map else { return };
    let palette = tracks.scene.palette;
    ui.spacing_mut().item_spacing.x = 4.0;
    small_blocks(ui, &map.map, palette.small);
    ui.add_space(6.0);
    // A floating scroll bar would lie over the words; the wheel scrolls without one.
    let area = egui::ScrollArea::horizontal()
        .id_salt("map legend")
        .scroll_bar_visibility(egui::scroll_area::ScrollBarVisibility::AlwaysHidden);
    area.show(ui, |ui| {
        ui.horizontal(|ui| {
            for class in &map.legend {
                let (swatch, _) = ui.allocate_exact_size(vec2(10.0, 10.0), egui::Sense::hover());
                let color = class.color.map_or(palette.others, |color| palette.category(color));
                ui.painter().rect_filled(swatch, 2, color);
                ui.add(egui::Label::new(RichText::new(&class.label).small().color(palette.text)).extend());
                ui.add_space(6.0);
            }
        });
    });
}

/// What is drawn as one band: short, so that it is there beside any legend.
fn small_blocks(ui: &mut Ui, map: &BlockMap, color: Color32) {
    if map.summed == 0 {
        return;
    }
    let (swatch, _) = ui.allocate_exact_size(vec2(10.0, 10.0), egui::Sense::hover());
    ui.painter().rect_filled(swatch, 2, color);
    let count = format_count(map.summed as u64);
    let whole = t!(
        "{count} of {total} blocks below {size} or too short, summed",
        count,
        total = format_count((map.blocks + map.summed) as u64),
        size = format_bytes(map.least_bytes)
    );
    let text = t!("{count} small ones", count);
    ui.add(egui::Label::new(RichText::new(text).small().weak()).extend()).on_hover_text(whole);
}

fn rect_of(piece: &Piece, axis: &Axis, rect: Rect, high_bytes: u64) -> Rect {
    let y = |bytes: u64| {
        rect.bottom() - (bytes as f64 / (high_bytes.max(1) as f64 * ROOM_ABOVE)) as f32 * rect.height()
    };
    let (left, right) = (axis.x_of(piece.start_ns), axis.x_of(piece.end_ns));
    let base = y(piece.base_bytes);
    let top = y(piece.base_bytes.saturating_add(piece.bytes));
    Rect::from_min_max(pos2(left, top), pos2(right.max(left + 1.0), base))
}

fn find(map: &BlockMap, axis: &Axis, rect: Rect, at: Pos2) -> Option<Piece> {
    let at_ns = axis.ns_of(at.x);
    let mut near = map.pieces.iter().filter(|piece| piece.start_ns <= at_ns && at_ns <= piece.end_ns);
    near.find(|piece| rect_of(piece, axis, rect, map.high_bytes).contains(at)).copied()
}

/// The mesh, drawn anew only when something that it shows has changed.
fn mesh(ui: &Ui, tracks: &Tracks<'_, '_>, map: &Arc<ColoredMap>, rect: Rect) -> Arc<Mesh> {
    let id = Id::unique("allocation map");
    let selected = tracks.scene.state.selected.clone();
    let is_dark = ui.visuals().dark_mode;
    let cached: Option<Cached> = ui.data(|data| data.get_temp(id));
    if let Some(cached) = cached {
        let is_same = Arc::ptr_eq(&cached.map, map)
            && cached.axis.view == tracks.axis.view
            && cached.rect == rect
            && cached.selected == selected
            && cached.is_dark == is_dark;
        if is_same {
            return cached.mesh;
        }
    }
    let mesh = Arc::new(draw(tracks, map, rect));
    let cached = Cached { map: map.clone(), axis: tracks.axis, rect, selected, is_dark, mesh: mesh.clone() };
    ui.data_mut(|data| data.insert_temp(id, cached));
    mesh
}

fn draw(tracks: &Tracks<'_, '_>, colored: &ColoredMap, rect: Rect) -> Mesh {
    let (scene, axis, map) = (&tracks.scene, &tracks.axis, &colored.map);
    let mut mesh = Mesh::default();
    mesh.reserve_vertices((map.pieces.len() + map.small.len()) * 4);
    mesh.reserve_triangles((map.pieces.len() + map.small.len()) * 2);
    let colors: Vec<Color32> = colored
        .legend
        .iter()
        .map(|class| class.color.map_or(scene.palette.others, |color| scene.palette.category(color)))
        .collect();
    let group = selected_group(scene);
    let lit = |row: RowRef| match (&scene.state.selected, group) {
        (Some(Selected::Row(one)), _) => Some(*one == row),
        (Some(Selected::Rows(rows)), _) => Some(rows.contains(&row)),
        (Some(Selected::Group(_)), Some(group)) => Some(group.rows.binary_search(&row).is_ok()),
        _ => None,
    };
    for (piece, &class) in map.pieces.iter().zip(&colored.classes) {
        let shape = rect_of(piece, axis, rect, map.high_bytes);
        if shape.right() < rect.left() || shape.left() > rect.right() {
            continue;
        }
        let color = colors[class as usize];
        // A gap between blocks that are high enough, so that equal neighbours can be told apart.
        let gap = if shape.height() > 3.0 { 0.5 } else { 0.0 };
        let shape = shape.with_min_y(shape.top() + gap);
        match lit(piece.row) {
            None => mesh.add_colored_rect(shape, color),
            Some(false) => mesh.add_colored_rect(shape, color.gamma_multiply(0.28)),
            // The frame says it too, for whom all colours look alike.
            Some(true) if shape.height() > 4.0 && shape.width() > 4.0 => {
                mesh.add_colored_rect(shape, scene.palette.text);
                mesh.add_colored_rect(shape.shrink(1.0), color);
            }
            Some(true) => mesh.add_colored_rect(shape, color),
        }
    }
    band(&mut mesh, map, axis, rect, scene.palette.small);
    mesh
}

/// The band of small blocks on top.
fn band(mesh: &mut Mesh, map: &BlockMap, axis: &Axis, rect: Rect, color: Color32) {
    let end_ns = axis.view.end_ns;
    for (at, level) in map.small.iter().enumerate().filter(|(_, level)| level.bytes > 0) {
        let until_ns = map.small.get(at + 1).map_or(end_ns, |next| next.time_ns);
        let piece = Piece {
            row: RowRef { process: crate::model::ProcessId(0), row: 0 },
            start_ns: level.time_ns,
            end_ns: until_ns,
            base_bytes: level.base_bytes,
            bytes: level.bytes,
        };
        mesh.add_colored_rect(rect_of(&piece, axis, rect, map.high_bytes), color);
    }
}

fn selected_group<'a>(scene: &'a Scene<'_>) -> Option<&'a Group> {
    let Some(Selected::Group(key)) = &scene.state.selected else { return None };
    let answers = &scene.state.answers;
    let lens = if scene.state.tab == Tab::Live { &answers.live } else { &answers.kept };
    lens.groups.iter().find(|group| group.key == *key)
}

/// What the block under the pointer is.
fn describe(ui: &mut Ui, scene: &Scene<'_>, piece: &Piece, by: GroupBy) {
    let index = &scene.data.index;
    let allocation = piece.row.get(scene.data.session());
    let (process, stack) = (piece.row.process, allocation.stack);
    ui.strong(format_bytes(allocation.size_bytes));
    ui.label(label_words(index.label(index.op(process, allocation.op, stack))));
    ui.weak(colors::class_text(scene.data, piece.row, by));
    let start_ns = scene.data.span().start_ns;
    let from = match allocation.alloc_ns {
        BEFORE_NS => t!("before the recording").to_owned(),
        time_ns => format_offset(time_ns, start_ns),
    };
    ui.label(match allocation.free_completed_ns {
        NEVER_NS => t!("{from}, not freed", from),
        free_ns if allocation.alloc_ns == BEFORE_NS => {
            t!("{from}, freed {time}", from, time = format_offset(free_ns, start_ns))
        }
        free_ns => {
            t!(
                "{from}, freed after {duration}",
                from,
                duration = format_duration(free_ns.saturating_sub(allocation.alloc_ns))
            )
        }
    });
    for line in index.stack_lines(process, stack).iter().take(8) {
        ui.label(egui::RichText::new(line).font(track_font()));
    }
}
