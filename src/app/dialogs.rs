//! Dialogs over the window, and the system's file dialogs on a thread of their own.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use egui::{Context, RichText, Ui};

use super::App;
use super::command::Command;
use super::keys;
use super::opening::Wake;
use super::session_file;
use super::state::{Dialog, ExportForm, Note, SettingsForm, State, Tone};
use super::theme::Palette;
use crate::model::TimeRange;
use crate::report::{self, Format, Replacement};
use crate::text::{say, t};

/// A system dialog that answers sooner was never shown: there is none on this machine.
const TOO_QUICK: Duration = Duration::from_millis(60);

/// A job on a thread of its own with one result.
pub struct Worker<T> {
    result: Receiver<T>,
}

impl<T: Send + 'static> Worker<T> {
    /// Starts the job; `wake` is called when it is done.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(name: &str, wake: Wake, job: impl FnOnce() -> T + Send + 'static) -> std::io::Result<Self> {
        let (sender, result) = channel();
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            if sender.send(job()).is_ok() {
                wake();
            }
        })?;
        Ok(Self { result })
    }

    /// The result, when it is there; an error when the job failed.
    pub fn poll(&self) -> Option<Result<T, ()>> {
        match self.result.try_recv() {
            Ok(result) => Some(Ok(result)),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(())),
        }
    }
}

/// What to ask the system for.
#[derive(Clone, Debug)]
pub enum Pick {
    /// Files to open.
    Files,
    /// A folder to open.
    Folder,
    /// Where to write a report.
    Report(ExportForm),
}

/// What the system answered.
pub enum Picked {
    /// Files and folders to open.
    Open(Vec<PathBuf>),
    /// Where to write a report.
    Report(ExportForm),
    /// The user changed their mind.
    Nothing,
    /// The system has no such dialog.
    Missing(Pick),
}

impl App {
    pub(super) fn pick(&mut self, ctx: &Context, what: Pick) {
        if self.picking.is_some() {
            return;
        }
        let ask = self.picker;
        match Worker::start("file dialog", self.wake(ctx), move || ask(what)) {
            Ok(worker) => self.picking = Some(worker),
            Err(error) => self.say(ctx, Tone::Error, t!("no thread for the file dialog: {error}", error)),
        }
    }

    pub(super) fn export(&mut self, ctx: &Context, form: &ExportForm) {
        let Some(data) = self.state.data.clone() else { return };
        if self.exporting.is_some() {
            return;
        }
        let range = self.state.range_or_all(&data);
        let choices = &self.state.choices;
        let query = crate::analysis::Query { selection: choices.selection, range, free_by: choices.free_by };
        let group_by = choices.group_by;
        let form = form.clone();
        // A picture shows what the window shows.
        let is_picture = matches!(form.format, Format::Svg | Format::Png);
        let view = is_picture.then(|| TimeRange::new(self.state.view.start_ns, self.state.view.end_ns));
        let sources = self.state.source_paths();
        let left_out = self.state.left_out.clone();
        let write = move || {
            let path = PathBuf::from(&form.path);
            report::spare(&path, sources.iter().map(PathBuf::as_path))?;
            let options = report::Options { redact: form.redact, left_out, ..Default::default() };
            let mut report = report::build(&data.index, &query, group_by, &options);
            report.view = view;
            report::write(&report, form.format, &path).map_err(|error| format!("{error:#}"))?;
            Ok(path)
        };
        match Worker::start("report", self.wake(ctx), write) {
            Ok(worker) => self.exporting = Some(worker),
            Err(error) => self.say(ctx, Tone::Error, t!("no thread for the report: {error}", error)),
        }
    }

    pub(super) fn poll_dialogs(&mut self, ctx: &Context) {
        if let Some(result) = self.picking.as_ref().and_then(Worker::poll) {
            self.picking = None;
            match result.unwrap_or(Picked::Nothing) {
                Picked::Open(paths) => self.open(ctx, paths),
                Picked::Report(form) => self.show_dialog(Dialog::Export(form)),
                Picked::Nothing => {}
                Picked::Missing(Pick::Report(_)) => {
                    self.say(
                        ctx,
                        Tone::Warning,
                        t!("this system shows no file dialog; type the path instead"),
                    );
                }
                Picked::Missing(_) => self.state.dialog = Some(Dialog::OpenPath(String::new())),
            }
        }
        if let Some(result) = self.asking_sql.as_ref().and_then(Worker::poll) {
            self.asking_sql = None;
            self.state.sql.is_running = false;
            self.state.sql.answer =
                Some(result.unwrap_or_else(|()| Err(t!("the statement could not be answered").to_owned())));
        }
        if let Some(result) = self.exporting.as_ref().and_then(Worker::poll) {
            self.exporting = None;
            match result {
                Ok(Ok(path)) => {
                    self.state.dialog = None;
                    self.say(ctx, Tone::Good, t!("Written: {path}", path = path.display()));
                }
                Ok(Err(error)) => self.say(ctx, Tone::Error, error),
                Err(()) => self.say(ctx, Tone::Error, t!("the file could not be made; nothing was written")),
            }
        }
    }
}

/// Asks through the system's own dialogs.
pub fn ask_system(what: Pick) -> Picked {
    let asked = Instant::now();
    let dialog = rfd::FileDialog::new();
    let answer = match &what {
        Pick::Files => dialog.set_title(t!("Open files")).pick_files().map(Picked::Open),
        Pick::Folder => {
            dialog.set_title(t!("Open folder")).pick_folder().map(|folder| Picked::Open(vec![folder]))
        }
        Pick::Report(form) => {
            let extension = form.format.extension();
            let dialog = dialog.set_title(t!("Export report")).add_filter(form.format.label(), &[extension]);
            let path = dialog.set_file_name(format!("vramscope-report.{extension}")).save_file();
            path.map(|path| {
                // The system's dialog has asked already whether a file is replaced.
                let overwrites = path.exists();
                Picked::Report(ExportForm { path: path.display().to_string(), overwrites, ..form.clone() })
            })
        }
    };
    match answer {
        Some(picked) => picked,
        None if asked.elapsed() < TOO_QUICK => Picked::Missing(what),
        None => Picked::Nothing,
    }
}

/// Draws the dialog that is open.
pub fn show(ctx: &Context, state: &State, is_exporting: bool, commands: &mut Vec<Command>) {
    let Some(dialog) = &state.dialog else { return };
    let modal = egui::Modal::new(egui::Id::unique("dialog")).show(ctx, |ui| {
        ui.set_max_width((ctx.content_rect().width() - 60.0).min(640.0));
        match dialog {
            Dialog::Keys => show_keys(ui),
            Dialog::About => show_about(ui),
            Dialog::Log => show_log(ui, state),
            Dialog::OpenPath(path) => show_open_path(ui, path, commands),
            Dialog::SaveSession(path) => show_save_session(ui, path, commands),
            Dialog::SaveTable(path) => show_save_table(ui, path, commands),
            Dialog::AddNote(time_ns, text) => show_add_note(ui, *time_ns, text, commands),
            Dialog::Export(form) => show_export(ui, form, state, is_exporting, commands),
            Dialog::Settings(form) => show_settings(ui, form, commands),
        }
        if matches!(dialog, Dialog::Keys | Dialog::About | Dialog::Log) {
            ui.add_space(8.0);
            if ui.button(t!("Close")).clicked() {
                commands.push(Command::CloseDialog);
            }
        }
    });
    if modal.should_close() {
        commands.push(Command::CloseDialog);
    }
}

fn show_keys(ui: &mut Ui) {
    ui.heading(t!("Keys"));
    // Room for the heading, the button and the frame.
    let height = ui.ctx().content_rect().height() - 130.0;
    egui::ScrollArea::vertical().max_height(height).show(ui, |ui| {
        for (title, lines) in keys::SHEET {
            ui.add_space(6.0);
            ui.strong(say(title));
            egui::Grid::new(*title).num_columns(2).spacing([24.0, 3.0]).show(ui, |ui| {
                for (what, how) in *lines {
                    ui.label(say(what));
                    ui.label(say(how));
                    ui.end_row();
                }
            });
        }
    });
}

fn show_about(ui: &mut Ui) {
    ui.heading("vramscope");
    ui.label(t!("Version {version}", version = env!("VRAMSCOPE_VERSION")));
    ui.label(t!("Shows what is holding your GPU memory."));
    ui.label(t!("MIT or Apache-2.0"));
}

fn show_log(ui: &mut Ui, state: &State) {
    ui.heading(t!("Log"));
    egui::ScrollArea::vertical().max_height(360.0).show(ui, |ui| {
        let palette = Palette::of(ui.visuals());
        if state.messages.is_empty() {
            ui.weak(t!("Nothing was said yet."));
        }
        for message in &state.messages {
            let color = match message.tone {
                Tone::Good => palette.text,
                Tone::Warning => palette.warning,
                Tone::Error => palette.error,
            };
            ui.add(egui::Label::new(RichText::new(&message.text).color(color)).wrap());
        }
    });
}

fn show_open_path(ui: &mut Ui, path: &str, commands: &mut Vec<Command>) {
    if let Some(text) =
        ask_text(ui, [t!("Open path"), t!("File or folder"), t!("Open")], path, Dialog::OpenPath, commands)
    {
        commands.push(Command::Open(vec![PathBuf::from(text)]));
    }
}

fn show_save_session(ui: &mut Ui, path: &str, commands: &mut Vec<Command>) {
    let target = |text: &str| PathBuf::from(text).with_extension(session_file::EXTENSION);
    if let Some(path) = ask_path(ui, t!("Save session"), path, target, Dialog::SaveSession, commands) {
        commands.push(Command::SaveSession(path));
    }
}

fn show_save_table(ui: &mut Ui, path: &str, commands: &mut Vec<Command>) {
    if let Some(path) = ask_path(ui, t!("Save table"), path, csv_path, Dialog::SaveTable, commands) {
        commands.push(Command::SaveTable(path));
    }
}

/// A table is written as CSV, whatever the path ends with.
fn csv_path(text: &str) -> PathBuf {
    let is_csv = |extension: &std::ffi::OsStr| extension.eq_ignore_ascii_case("csv");
    match PathBuf::from(text) {
        path if path.extension().is_some_and(is_csv) => path,
        path => path.with_added_extension("csv"),
    }
}

/// Where to save: the button says when a file is there that is replaced.
fn ask_path(
    ui: &mut Ui,
    title: &str,
    now: &str,
    target: impl Fn(&str) -> PathBuf,
    again: impl FnOnce(String) -> Dialog,
    commands: &mut Vec<Command>,
) -> Option<PathBuf> {
    let confirm = if target(now.trim()).is_file() { t!("Replace the file") } else { t!("Save") };
    ask_text(ui, [title, t!("Path"), confirm], now, again, commands).map(|text| target(&text))
}

fn show_add_note(ui: &mut Ui, time_ns: i64, text: &str, commands: &mut Vec<Command>) {
    let again = |text| Dialog::AddNote(time_ns, text);
    if let Some(text) = ask_text(ui, [t!("Add note"), t!("Note"), t!("Add")], text, again, commands) {
        commands.push(Command::AddNote(Note { time_ns, text }));
    }
}

/// A dialog with one field: its title, the field's label and the button that confirms. The text when it is confirmed.
fn ask_text(
    ui: &mut Ui,
    [title, name, confirm]: [&str; 3],
    now: &str,
    again: impl FnOnce(String) -> Dialog,
    commands: &mut Vec<Command>,
) -> Option<String> {
    ui.heading(title);
    let label = ui.label(name);
    let mut text = now.to_owned();
    let field = ui.add(egui::TextEdit::singleline(&mut text).desired_width(480.0)).labelled_by(label.id);
    let is_entered = field.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
    if ui.memory(|memory| memory.focused().is_none()) && !is_entered {
        field.request_focus();
    }
    if text != now {
        commands.push(Command::ShowDialog(again(text.clone())));
    }
    ui.add_space(8.0);
    let has_text = !text.trim().is_empty();
    let is_confirmed = ui
        .horizontal(|ui| {
            let button = ui.add_enabled(has_text, egui::Button::new(confirm));
            if ui.button(t!("Cancel")).clicked() {
                commands.push(Command::CloseDialog);
            }
            button.clicked() || (is_entered && has_text)
        })
        .inner;
    is_confirmed.then(|| {
        commands.push(Command::CloseDialog);
        text.trim().to_owned()
    })
}

fn show_settings(ui: &mut Ui, form: &SettingsForm, commands: &mut Vec<Command>) {
    let mut now = form.clone();
    ui.heading(t!("Settings"));
    ui.add_space(6.0);
    let label = ui
        .label(t!("Your own code although it lies in an installed package: a part of its path, one a line"));
    let field = egui::TextEdit::multiline(&mut now.user_code).desired_rows(3).desired_width(f32::INFINITY);
    ui.add(field).labelled_by(label.id);
    ui.add_space(6.0);
    let label = ui.label(t!("A regular expression that finds memory figures in logs of your own"));
    let field = egui::TextEdit::singleline(&mut now.log_pattern).desired_width(f32::INFINITY);
    ui.add(field.hint_text(r"step (?P<step>\d+) .* vram (?P<allocated>[\d.]+ ?GB)")).labelled_by(label.id);
    ui.weak(
        t!("Groups named allocated, reserved, max_allocated, max_reserved, mem and step; one group without a name is allocated memory."),
    );
    let wrong = Some(now.log_pattern.trim())
        .filter(|pattern| !pattern.is_empty())
        .and_then(|pattern| regex::Regex::new(pattern).err());
    if let Some(error) = &wrong {
        // The last line says what is wrong; those before it draw where.
        let text = error.to_string();
        ui.colored_label(Palette::of(ui.visuals()).error, text.lines().last().unwrap_or_default());
    }
    if now != *form {
        commands.push(Command::ShowDialog(Dialog::Settings(now.clone())));
    }
    ui.add_space(8.0);
    ui.horizontal(|ui| {
        if ui.add_enabled(wrong.is_none(), egui::Button::new(t!("Apply"))).clicked() {
            commands.push(Command::Set(now));
        }
        if ui.button(t!("Cancel")).clicked() {
            commands.push(Command::CloseDialog);
        }
    });
}

fn show_export(
    ui: &mut Ui,
    form: &ExportForm,
    state: &State,
    is_exporting: bool,
    commands: &mut Vec<Command>,
) {
    let mut now = form.clone();
    ui.heading(t!("Export report"));
    ui.label(t!("What the range keeps, grouped as the window shows it, with findings and advice."));
    ui.add_space(6.0);
    ui.horizontal(|ui| {
        for format in Format::ALL {
            if ui.radio(now.format == format, format.label()).clicked() {
                now.format = format;
                now.path = PathBuf::from(&now.path).with_extension(format.extension()).display().to_string();
            }
        }
    });
    let mut is_entered = false;
    ui.horizontal(|ui| {
        let label = ui.label(t!("Path"));
        let field = egui::TextEdit::singleline(&mut now.path).desired_width(400.0);
        let response = ui.add(field).labelled_by(label.id);
        is_entered = response.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
        if !is_entered && ui.memory(|memory| memory.focused().is_none()) {
            response.request_focus();
        }
        if response.changed()
            && let Some(format) = Format::of_path(Path::new(&now.path))
        {
            now.format = format;
        }
        if ui.button(t!("Browse…")).clicked() {
            commands.push(Command::AskForReportPath(now.clone()));
        }
    });
    let redact = ui.checkbox(&mut now.redact, t!("Replace names of users, hosts and folders"));
    if redact.changed()
        && let Some(data) = &state.data
    {
        now.replaced = if now.redact { report::redactions(&data.index, false).into() } else { [].into() };
    }
    show_replaced(ui, &now.replaced);
    // Said of another path, it doesn't hold.
    now.overwrites &= now.path == form.path;
    if now.overwrites {
        let text = t!("A file is there already; it will be replaced.");
        ui.colored_label(Palette::of(ui.visuals()).warning, text);
    }
    if now != *form {
        commands.push(Command::ShowDialog(Dialog::Export(now.clone())));
    }
    ui.add_space(8.0);
    ui.horizontal(|ui| {
        let can_write = !is_exporting && !now.path.trim().is_empty();
        let verb = if now.overwrites { t!("Replace the file") } else { t!("Export") };
        if ui.add_enabled(can_write, egui::Button::new(verb)).clicked() || (can_write && is_entered) {
            commands.push(Command::Export(now));
        }
        if ui.button(t!("Cancel")).clicked() {
            commands.push(Command::CloseDialog);
        }
        if is_exporting {
            ui.weak(t!("Writing…"));
        }
    });
}

/// What a redacted report replaces, before it is written.
fn show_replaced(ui: &mut Ui, replaced: &[Replacement]) {
    if replaced.is_empty() {
        return;
    }
    ui.weak(t!("Replaced everywhere, other folders besides; names of your code stay:"));
    egui::ScrollArea::vertical().max_height(140.0).auto_shrink([false, true]).show(ui, |ui| {
        for Replacement { original, word, .. } in replaced {
            // The word has its own width, what it stands for all the rest.
            ui.horizontal(|ui| {
                ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                    ui.add_space(10.0);
                    ui.weak(word);
                    ui.with_layout(egui::Layout::left_to_right(egui::Align::Center), |ui| {
                        ui.add(egui::Label::new(original.as_str()).truncate());
                    });
                });
            });
        }
    });
}
