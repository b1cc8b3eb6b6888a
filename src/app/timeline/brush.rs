//! The brush, the pan and the menu that every track answers to.

use egui::{CursorIcon, Id, Key, PointerButton, Response, Ui};

use super::Tracks;
use crate::app::command::Command;
use crate::app::state::Dialog;
use crate::model::TimeRange;
use crate::text::t;

/// How close to an edge counts as on it.
const EDGE_POINTS: f32 = 5.0;

/// What the pointer is dragging.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Drag {
    /// One edge; the other one stays.
    Edge { fixed_ns: i64 },
    /// The whole range, held at an instant.
    Band { range: TimeRange, held_ns: i64 },
    /// The view.
    Pan,
}

/// Turns what the pointer does on a track into commands. In a track that `has_band` the range can be held.
pub fn interact(ui: &Ui, tracks: &mut Tracks<'_, '_>, response: &Response, has_band: bool) {
    let id = Id::unique("timeline drag");
    let mut drag: Option<Drag> = ui.data(|data| data.get_temp(id)).flatten();
    let was = drag;
    let shift = ui.input(|input| input.modifiers.shift);
    if response.double_clicked() {
        tracks.scene.ask(Command::FitAll);
    } else if response.clicked() && !ui.input(|input| input.modifiers.command) {
        click(tracks, response, shift);
    }
    if response.drag_started_by(PointerButton::Middle) {
        drag = Some(Drag::Pan);
    } else if response.drag_started_by(PointerButton::Primary) {
        let origin = ui.input(|input| input.pointer.press_origin());
        let x = origin.map_or(0.0, |at| at.x);
        drag = Some(if shift { Drag::Pan } else { grasp(tracks, x, has_band) });
    }
    if ui.input(|input| input.key_pressed(Key::Escape)) {
        drag = None;
    }
    if response.dragged()
        && let Some(drag) = drag
    {
        follow(tracks, response, drag);
    }
    if response.drag_stopped() {
        if matches!(drag, Some(Drag::Edge { .. } | Drag::Band { .. })) {
            let range = moved(tracks, response, drag).or(tracks.scene.state.choices.range);
            tracks.scene.ask(Command::SetRange(range));
        }
        drag = None;
    }
    if drag != was {
        ui.data_mut(|data| data.insert_temp(id, drag));
    }
    cursor(ui, tracks, response, drag, has_band);
    menu(ui, tracks, response);
}

fn click(tracks: &mut Tracks<'_, '_>, response: &Response, shift: bool) {
    let Some(at) = response.interact_pointer_pos() else { return };
    let at_ns = tracks.axis.ns_of(at.x);
    let command = match (shift, tracks.scene.state.choices.range) {
        (true, Some(range)) => {
            let start_ns = range.start_ns.min(at_ns);
            // Beyond the middle the nearer edge moves, outside the range it grows.
            let range = if range.contains(at_ns) {
                let is_nearer_to_end = range.end_ns - at_ns < at_ns - range.start_ns;
                let fixed_ns = if is_nearer_to_end { range.start_ns } else { range.end_ns };
                TimeRange::new(fixed_ns, at_ns)
            } else {
                TimeRange::new(start_ns, range.end_ns.max(at_ns))
            };
            Command::SetRange(Some(range))
        }
        _ => Command::SetCursor(Some(at_ns)),
    };
    tracks.scene.ask(command);
}

/// What a press at `x` takes hold of.
fn grasp(tracks: &Tracks<'_, '_>, x: f32, has_band: bool) -> Drag {
    let at_ns = tracks.axis.ns_of(x);
    let Some(range) = tracks.scene.state.choices.range else { return Drag::Edge { fixed_ns: at_ns } };
    let (start, end) = (tracks.axis.x_of(range.start_ns), tracks.axis.x_of(range.end_ns));
    if (x - end).abs() <= EDGE_POINTS {
        Drag::Edge { fixed_ns: range.start_ns }
    } else if (x - start).abs() <= EDGE_POINTS {
        Drag::Edge { fixed_ns: range.end_ns }
    } else if has_band && range.contains(at_ns) {
        Drag::Band { range, held_ns: at_ns }
    } else {
        Drag::Edge { fixed_ns: at_ns }
    }
}

/// The range as the pointer has it now.
fn moved(tracks: &Tracks<'_, '_>, response: &Response, drag: Option<Drag>) -> Option<TimeRange> {
    let at = response.interact_pointer_pos()?;
    let span = tracks.scene.data.span();
    let at_ns = tracks.axis.ns_of(at.x).clamp(span.start_ns, span.end_ns);
    match drag? {
        Drag::Edge { fixed_ns } => Some(TimeRange::new(fixed_ns.clamp(span.start_ns, span.end_ns), at_ns)),
        Drag::Band { range, held_ns } => {
            let by = at_ns.saturating_sub(held_ns);
            Some(range.shifted(by.clamp(
                span.start_ns.saturating_sub(range.start_ns).min(0),
                span.end_ns.saturating_sub(range.end_ns).max(0),
            )))
        }
        Drag::Pan => None,
    }
}

fn follow(tracks: &mut Tracks<'_, '_>, response: &Response, drag: Drag) {
    if drag == Drag::Pan {
        let share = -f64::from(response.drag_delta().x / tracks.axis.width);
        if share != 0.0 {
            tracks.scene.ask(Command::Pan(share));
        }
    } else if let Some(range) = moved(tracks, response, Some(drag)) {
        tracks.scene.ask(Command::MoveRange(range));
    }
}

fn cursor(ui: &Ui, tracks: &Tracks<'_, '_>, response: &Response, drag: Option<Drag>, has_band: bool) {
    let Some(at) = response.hover_pos() else { return };
    let icon = match drag {
        Some(Drag::Pan | Drag::Band { .. }) => CursorIcon::Grabbing,
        Some(Drag::Edge { .. }) => CursorIcon::ResizeHorizontal,
        None => match (grasp(tracks, at.x, has_band), tracks.scene.state.choices.range) {
            (Drag::Band { .. }, _) => CursorIcon::Grab,
            (Drag::Edge { fixed_ns }, Some(range)) if [range.start_ns, range.end_ns].contains(&fixed_ns) => {
                CursorIcon::ResizeHorizontal
            }
            _ => CursorIcon::Default,
        },
    };
    ui.set_cursor_icon(icon);
}

fn menu(ui: &Ui, tracks: &mut Tracks<'_, '_>, response: &Response) {
    let id = Id::unique("timeline menu");
    if response.secondary_clicked()
        && let Some(at) = response.interact_pointer_pos()
    {
        ui.data_mut(|data| data.insert_temp(id, tracks.axis.ns_of(at.x)));
    }
    response.context_menu(|ui| {
        let at_ns: i64 = ui.data(|data| data.get_temp(id)).unwrap_or_default();
        let data = tracks.scene.data;
        let step = data
            .session()
            .processes
            .iter()
            .find_map(|process| process.step_at(at_ns).and_then(|at| process.steps.get(at)).copied());
        let range = tracks.scene.state.choices.range;
        let mut item = |ui: &mut Ui, is_enabled: bool, text: &str, command: Command| {
            if ui.add_enabled(is_enabled, egui::Button::new(text)).clicked() {
                tracks.scene.ask(command);
                ui.close();
            }
        };
        let of_step = step.map_or_else(
            || t!("Select this step").to_owned(),
            |step| t!("Select step {step}", step = step.number),
        );
        item(ui, step.is_some(), &of_step, Command::SetRange(step.map(|step| step.range)));
        item(ui, true, t!("Select whole run"), Command::SetRange(Some(data.span())));
        item(ui, true, t!("Select suggested growth"), Command::SuggestGrowth);
        ui.separator();
        item(ui, range.is_some(), t!("Zoom to range"), Command::FitRange);
        item(ui, true, t!("Show everything"), Command::FitAll);
        item(ui, true, t!("See what is live here"), Command::SetCursor(Some(at_ns)));
        item(ui, true, t!("Add note here…"), Command::ShowDialog(Dialog::AddNote(at_ns, String::new())));
        ui.separator();
        item(ui, range.is_some(), t!("Clear range"), Command::SetRange(None));
    });
}
