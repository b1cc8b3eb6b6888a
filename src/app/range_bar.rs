//! The row between tracks and tables: the range as it can be typed, and what it holds.

use egui::{RichText, Ui};

use super::command::Command;
use super::scene::Scene;
use crate::analysis::Selection;
use crate::model::time::{TimeSpec, format_duration, format_offset};
use crate::model::{Session, TimeRange, format_bytes, format_bytes_exact, format_count, format_delta_bytes};
use crate::report::range_label;
use crate::text::t;

/// Draws the row.
pub fn show(ui: &mut Ui, scene: &mut Scene<'_>) {
    egui::Panel::top("range").show(ui, |ui| {
        ui.horizontal_wrapped(|ui| {
            ui.spacing_mut().item_spacing.x = 6.0;
            fields(ui, scene);
            ui.separator();
            figures(ui, scene);
        });
    });
}

/// What is being typed. It lives while a field has the keyboard and the range stays.
#[derive(Clone)]
struct Typed {
    texts: [String; 2],
    of: TimeRange,
    /// Why it was not taken, until it is changed.
    error: Option<String>,
}

fn fields(ui: &mut Ui, scene: &mut Scene<'_>) {
    let (data, palette) = (scene.data, scene.palette);
    let range = scene.state.range_or_all(data);
    let start_ns = data.span().start_ns;
    let id = egui::Id::unique("range fields");
    let shown = [format_offset(range.start_ns, start_ns), format_offset(range.end_ns, start_ns)];
    let typed: Option<Typed> = ui.data(|data| data.get_temp(id)).flatten();
    let Typed { mut texts, mut error, .. } = typed
        .filter(|typed| typed.of == range)
        .unwrap_or_else(|| Typed { texts: shown.clone(), of: range, error: None });
    let before = texts.clone();
    let label = ui.strong(t!("Range"));
    label.clone().on_hover_text(t!("Type step:8, +1.25s, 40%, Unix seconds or an RFC 3339 time"));
    let mut entered = None;
    let mut is_editing = false;
    for (at, (text, name)) in texts.iter_mut().zip([t!("Start of range"), t!("End of range")]).enumerate() {
        let field = egui::TextEdit::singleline(text).desired_width(88.0);
        let response = ui.add(field).accessible_name(name);
        if response.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter)) {
            entered = Some(response.clone());
        }
        is_editing |= response.has_focus();
        if let Some(error) = error.as_ref().filter(|_| response.has_focus()) {
            // Over the rows below, which stay where they are.
            let tip = egui::Tooltip::always_open(ui.ctx().clone(), ui.layer_id(), id, &response);
            tip.show(|ui| ui.label(RichText::new(error).color(palette.error)));
        }
        if at == 0 {
            ui.label(t!("to"));
        }
    }
    let selection = scene.state.choices.selection;
    if texts != before {
        error = None;
    }
    if let Some(field) = entered {
        match range_of(data.session(), selection, &texts) {
            Ok(range) => scene.ask(Command::SetRange(Some(range))),
            Err(why) => {
                error = Some(why);
                field.request_focus();
                is_editing = true;
            }
        }
    }
    let typed = is_editing.then_some(Typed { texts, of: range, error });
    ui.data_mut(|data| data.insert_temp(id, typed));
    ui.label(format_duration(range.duration_ns()));
    let words = if scene.state.choices.range.is_some() {
        range_label(&data.index, selection, range)
    } else {
        t!("the whole run; drag on a track to select a range").to_owned()
    };
    if !words.starts_with(['+', '−']) {
        ui.weak(words);
    }
}

/// Reads two fields as a range.
fn range_of(session: &Session, selection: Selection, texts: &[String; 2]) -> Result<TimeRange, String> {
    let mut times = [0; 2];
    for ((time, text), is_end) in times.iter_mut().zip(texts).zip([false, true]) {
        let text = text.trim().replace('−', "-");
        let spec: TimeSpec =
            text.parse().map_err(|error: crate::model::time::TimeSpecError| error.to_string())?;
        *time = time_of(session, selection, spec, is_end)?;
    }
    if times[0] > times[1] {
        return Err(t!("the range ends before it starts").to_owned());
    }
    Ok(TimeRange::new(times[0], times[1]))
}

/// The end of a range may be the step after the last: the last one's end, as on the command line.
fn time_of(session: &Session, selection: Selection, spec: TimeSpec, is_end: bool) -> Result<i64, String> {
    spec.resolve(session.span, |number| {
        selection.step_ns(session, number, is_end).ok_or_else(|| t!("no step {number}", number = number))
    })
}

fn figures(ui: &mut Ui, scene: &Scene<'_>) {
    let answers = &scene.state.answers;
    let rises = answers.rises;
    for (name, rise, help) in [
        (
            t!("Δ allocated"),
            rises.allocated,
            t!("How much memory_allocated rose from the range's start to its end"),
        ),
        (
            t!("Δ reserved"),
            rises.reserved,
            t!("How much memory_reserved rose from the range's start to its end"),
        ),
        (
            t!("Δ driver"),
            rises.driver,
            t!("How much the driver's used memory rose from the range's start to its end"),
        ),
    ] {
        if let Some(rise) = rise {
            figure(ui, name, &format_delta_bytes(rise), help);
        }
    }
    ui.separator();
    let totals = answers.totals;
    for (name, total, help) in [
        (
            t!("kept"),
            totals.recording_end,
            t!("Allocated in the range and not freed by the end of the recording"),
        ),
        (t!("kept at range end"), totals.range_end, t!("Allocated in the range and not freed by its end")),
    ] {
        let text = t!(
            "{bytes} in {count} allocations",
            bytes = format_bytes(total.bytes),
            count = format_count(total.count)
        );
        figure(ui, name, &text, &t!("{help}: {bytes}", help, bytes = format_bytes_exact(total.bytes)));
    }
    let help = t!("Allocated in the range minus freed in it, whoever allocated it");
    figure(ui, t!("net"), &format_delta_bytes(totals.net_bytes()), help);
    if scene.is_busy {
        ui.weak("…").on_hover_text(t!("Still working out the tabs"));
    }
}

fn figure(ui: &mut Ui, name: &str, text: &str, help: &str) {
    // One widget, so that a name is never parted from its figure.
    let format = |color| egui::TextFormat::simple(egui::TextStyle::Body.resolve(ui.style()), color);
    let mut job = egui::text::LayoutJob::default();
    job.append(name, 0.0, format(ui.visuals().weak_text_color()));
    job.append(" ", 0.0, format(ui.visuals().weak_text_color()));
    job.append(text, 0.0, format(ui.visuals().strong_text_color()));
    ui.add(egui::Label::new(job).extend()).on_hover_text(help);
}
