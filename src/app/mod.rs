//! The window: state and commands, tracks over one time axis, tables, details.
//!
//! Input becomes [`command::Command`]s, which are applied in one place (`apply`). Drawing only reads the [`State`].
//! Files are read and questions answered on threads of their own (`opening`, `answers`).

mod answers;
mod apply;
mod bars;
mod command;
mod data;
mod desk;
mod details;
mod dialogs;
mod empty;
mod filter;
mod fonts;
mod history;
mod keys;
mod lanes;
mod opening;
mod range_bar;
mod scene;
mod session_file;
mod settings;
mod sides;
mod sorting;
mod sources_panel;
mod sql;
mod state;
mod survey;
mod tables;
mod theme;
mod timeline;
mod toasts;
mod toolbar;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use answers::{Analyst, Question};
pub use command::Command;
use dialogs::Worker;
pub use dialogs::{Pick, Picked};
use opening::{Building, Opening, Outcome, Request, Wake};
use scene::Scene;
use session_file::Loaded;
use state::{Choices, Placement};
pub use state::{Dialog, ExportForm, Selected, State, Tab, Tone};
pub use survey::Origin as RankOrigin;
use survey::Surveying;
use timeline::view::TimeView;
use timeline::{MapQuestion, Mapper};

use crate::align::{Opened, RankFiles};
use crate::analysis::MapRequest;
use crate::model::{SourceKind, format_count};
use crate::report::LeftOut;
use crate::text::{Language, t};

/// Files dropped together may come in several frames: this long after the last one they are opened.
const DROP_WAIT_S: f64 = 0.1;
/// So many files that failed are named.
const MAX_NAMED: usize = 6;
/// How often progress is drawn.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Shows the window with these files and folders opened, until it is closed. It speaks `language`, else the one that
/// the user chose in it, else the system's.
///
/// # Errors
/// When there is no display, or it can't show the window.
pub fn run(paths: Vec<PathBuf>, language: Option<Language>) -> anyhow::Result<()> {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if cfg!(target_os = "linux") && !set("DISPLAY") && !set("WAYLAND_DISPLAY") {
        anyhow::bail!(t!(
            "there is no display to show a window on; `vramscope report FILE...` needs none and gives the same figures"
        ));
    }
    let icon = eframe::icon_data::from_png_bytes(include_bytes!("../../assets/icon.png")).unwrap_or_default();
    let options = eframe::NativeOptions {
        viewport: egui::ViewportBuilder::default()
            .with_title("vramscope")
            .with_app_id("vramscope")
            .with_inner_size([1280.0, 860.0])
            .with_min_inner_size([640.0, 480.0])
            .with_icon(icon)
            .with_drag_and_drop(true),
        renderer: eframe::Renderer::Glow,
        ..Default::default()
    };
    let start = |creation: &eframe::CreationContext<'_>| {
        let mut app = App::new(paths);
        app.state.settings = creation
            .storage
            .and_then(|storage| eframe::get_value(storage, settings::KEY))
            .unwrap_or_default();
        language.unwrap_or_else(|| app.state.settings.language()).speak();
        if creation.storage.is_none() {
            let text = t!(
                "the home folder can't be written to, so that settings are forgotten when the window closes"
            );
            app.say(&creation.egui_ctx, state::Tone::Warning, text);
        }
        Ok(Box::new(Window(app)) as Box<dyn eframe::App>)
    };
    eframe::run_native("vramscope", options, Box::new(start)).map_err(|error| {
        let error = error.to_string();
        anyhow::anyhow!(t!(
            "the window can't be shown ({error}); `vramscope report FILE...` needs none",
            error = cause_of(&error)
        ))
    })
}

/// An error of winit without the line of its source file, which it puts first (`os error at src/a.rs:7: no server`).
fn cause_of(error: &str) -> &str {
    let after_the_line = error.split_once(".rs:").and_then(|(_, line)| line.split_once(": "));
    after_the_line.map_or(error, |(_, cause)| cause)
}

/// When files were last written to, as far as the system tells.
fn times_of<'a>(paths: impl Iterator<Item = &'a Path>) -> BTreeMap<PathBuf, SystemTime> {
    paths.filter_map(|path| Some((path.to_owned(), path.metadata().ok()?.modified().ok()?))).collect()
}

/// Whether all traces and snapshots have made room for others.
fn are_other_processes(old: &[Opened], new: &[Opened]) -> bool {
    let of_processes = |opened: &[Opened]| -> BTreeSet<PathBuf> {
        let kinds = [SourceKind::Trace, SourceKind::Snapshot];
        let files = opened.iter().filter(|file| kinds.contains(&file.recording.kind));
        files.map(|file| file.path.clone()).collect()
    };
    let (old, new) = (of_processes(old), of_processes(new));
    !old.is_empty() && !new.is_empty() && old.is_disjoint(&new)
}

/// Whether these are the same recordings in the same places: then rows stay what they are.
fn are_same(old: &[Opened], new: &[Opened]) -> bool {
    let is_same = |(old, new): (&Opened, &Opened)| {
        Arc::ptr_eq(&old.recording, &new.recording)
            && old.offset_by_hand_ns == new.offset_by_hand_ns
            && old.visible_devices == new.visible_devices
    };
    old.len() == new.len() && old.iter().zip(new).all(is_same)
}

/// The app in a native window.
struct Window(App);

impl eframe::App for Window {
    fn logic(&mut self, ctx: &egui::Context, _: &mut eframe::Frame) {
        self.0.logic(ctx);
    }

    fn ui(&mut self, ui: &mut egui::Ui, _: &mut eframe::Frame) {
        self.0.ui(ui);
    }

    fn save(&mut self, storage: &mut dyn eframe::Storage) {
        eframe::set_value(storage, settings::KEY, &self.0.state.settings);
    }
}

/// The app, without a window around it.
pub struct App {
    state: State,
    opening: Option<Opening>,
    surveying: Option<Surveying>,
    building: Option<Building>,
    built_with: Placement,
    analyst: Option<Analyst>,
    asked: Option<Question>,
    mapper: Option<Mapper>,
    asked_map: Option<MapQuestion>,
    waiting: Request,
    dropped: Vec<PathBuf>,
    dropped_at_s: f64,
    preloaded: Vec<Opened>,
    picker: fn(Pick) -> Picked,
    picking: Option<Worker<Picked>>,
    exporting: Option<Worker<Result<PathBuf, String>>>,
    asking_sql: Option<Worker<Result<Arc<sql::Answer>, String>>>,
    session_files: VecDeque<PathBuf>,
    reading_session: Option<Worker<(PathBuf, Result<Loaded, String>)>>,
    restoring: Option<Choices>,
    is_set_up: bool,
    modified: BTreeMap<PathBuf, SystemTime>,
    was_focused: bool,
}

impl App {
    /// An app that opens these files and folders first.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self {
            state: State::default(),
            opening: None,
            surveying: None,
            building: None,
            built_with: Placement::default(),
            analyst: None,
            asked: None,
            mapper: None,
            asked_map: None,
            waiting: Request::default(),
            dropped: paths,
            dropped_at_s: 0.0,
            preloaded: Vec::new(),
            picker: dialogs::ask_system,
            picking: None,
            exporting: None,
            asking_sql: None,
            session_files: VecDeque::new(),
            reading_session: None,
            restoring: None,
            is_set_up: false,
            modified: BTreeMap::new(),
            was_focused: true,
        }
    }

    /// An app that shows what was read already.
    pub fn of(opened: Vec<Opened>) -> Self {
        Self { preloaded: opened, ..Self::new(Vec::new()) }
    }

    /// The app with other dialogs for files than the system's.
    #[must_use]
    pub fn with_picker(self, picker: fn(Pick) -> Picked) -> Self {
        Self { picker, ..self }
    }

    /// What the window knows.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Whether no thread is at work and nothing waits to be opened.
    pub fn is_idle(&self) -> bool {
        let is_answered = !self.analyst.as_ref().is_some_and(Analyst::is_busy);
        let is_mapped = !self.mapper.as_ref().is_some_and(Mapper::is_busy);
        let is_reading = self.opening.is_some()
            || self.surveying.is_some()
            || self.building.is_some()
            || self.reading_session.is_some();
        let is_waiting = !self.waiting.paths.is_empty()
            || !self.dropped.is_empty()
            || !self.preloaded.is_empty()
            || !self.session_files.is_empty();
        is_answered
            && is_mapped
            && !is_reading
            && !is_waiting
            && self.picking.is_none()
            && self.exporting.is_none()
            && self.asking_sql.is_none()
    }

    /// Takes in what threads have done and gives them what is next. Cheap; call it before every frame.
    pub fn logic(&mut self, ctx: &egui::Context) {
        if !self.is_set_up {
            self.is_set_up = true;
            theme::install(ctx);
            fonts::install(ctx);
        }
        self.notice_changes(ctx);
        self.take_dropped(ctx);
        if !self.preloaded.is_empty() {
            let opened = std::mem::take(&mut self.preloaded);
            self.rebuild(ctx, opened);
        }
        self.poll_session_file(ctx);
        self.poll_opening(ctx);
        self.poll_survey(ctx);
        self.poll_building(ctx);
        self.poll_dialogs(ctx);
        if self.opening.is_none() && !self.waiting.paths.is_empty() {
            let request = std::mem::take(&mut self.waiting);
            self.start_opening(ctx, request);
        }
        if self.building.is_none()
            && self.state.data.is_some()
            && self.built_with != self.state.choices.placement
        {
            self.rebuild(ctx, self.state.opened.clone());
        }
        self.ask(ctx);
        self.ask_map(ctx);
    }

    /// Draws the window and applies what the user does.
    pub fn ui(&mut self, ui: &mut egui::Ui) {
        let ctx = ui.ctx().clone();
        let mut commands = keys::commands(&ctx, &self.state);
        toolbar::show(ui, &self.state, &mut commands);
        match self.state.data.clone() {
            Some(data) => {
                let mut scene = Scene::new(ui, &self.state, &data, &mut commands);
                scene.is_busy = self.analyst.as_ref().is_some_and(Analyst::is_busy);
                sources_panel::show(ui, &mut scene, self.opening.as_ref());
                details::show(ui, &mut scene);
                egui::CentralPanel::default().show(ui, |ui| {
                    timeline::show(ui, &mut scene);
                    range_bar::show(ui, &mut scene);
                    tables::show(ui, &mut scene);
                });
            }
            None if self.state.survey.is_some() => {
                tables::ranks::show_alone(ui, &self.state, self.opening.as_ref(), &mut commands);
            }
            None => empty::show(
                ui,
                &self.state.settings,
                self.opening.as_ref(),
                self.building.is_some(),
                &mut commands,
            ),
        }
        dialogs::show(&ctx, &self.state, self.exporting.is_some(), &mut commands);
        empty::show_drop_hint(&ctx);
        toasts::show(&ctx, &self.state, &mut commands);
        self.state.row_to_show = None;
        for command in commands {
            self.apply(&ctx, command);
        }
        self.ask(&ctx);
        self.ask_map(&ctx);
    }

    fn wake(&self, ctx: &egui::Context) -> Wake {
        let ctx = ctx.clone();
        Arc::new(move || ctx.request_repaint())
    }

    fn open(&mut self, ctx: &egui::Context, paths: Vec<PathBuf>) {
        for path in paths {
            if path.extension().is_some_and(|extension| extension == session_file::EXTENSION) {
                self.session_files.push_back(path);
            } else {
                self.waiting.chosen.push(path.clone());
                self.waiting.paths.push(path);
            }
        }
        ctx.request_repaint();
    }

    /// Reads session files one after the other: what they name may lie on a slow disk.
    fn poll_session_file(&mut self, ctx: &egui::Context) {
        if let Some(result) = self.reading_session.as_ref().and_then(Worker::poll) {
            self.reading_session = None;
            if let Ok((path, loaded)) = result {
                self.take_session(ctx, &path, loaded);
            }
        }
        if self.reading_session.is_some() {
            return;
        }
        let Some(path) = self.session_files.pop_front() else { return };
        let read = move || {
            let loaded = session_file::load(&path);
            (path, loaded)
        };
        match Worker::start("session file", self.wake(ctx), read) {
            Ok(worker) => self.reading_session = Some(worker),
            Err(error) => self.say(ctx, Tone::Error, t!("no thread to read files on: {error}", error)),
        }
    }

    /// Opens the sources of a session file; its choices are restored when they are there.
    fn take_session(&mut self, ctx: &egui::Context, path: &Path, loaded: Result<Loaded, String>) {
        match loaded {
            Ok(loaded) => {
                let more = loaded.warnings.len().saturating_sub(MAX_NAMED);
                for warning in loaded.warnings.into_iter().take(MAX_NAMED) {
                    self.say(ctx, Tone::Warning, warning);
                }
                if more > 0 {
                    let count = format_count(more as u64);
                    self.say(
                        ctx,
                        Tone::Warning,
                        t!("{count} more files of the session are not as they were", count),
                    );
                }
                self.state.settings.remember(path);
                self.waiting.paths.extend(loaded.paths);
                // They were open together when they were saved.
                self.waiting.all_at_once = true;
                self.restoring = Some(loaded.choices);
            }
            Err(error) => self.say(ctx, Tone::Error, error),
        }
    }

    fn start_opening(&mut self, ctx: &egui::Context, request: Request) {
        match Opening::start(request, self.state.settings.log_pattern(), self.wake(ctx)) {
            Ok(opening) => self.opening = Some(opening),
            Err(error) => self.say(ctx, Tone::Error, t!("no thread to read files on: {error}", error)),
        }
    }

    /// When the user comes back to the window, says which files have changed on disk meanwhile.
    fn notice_changes(&mut self, ctx: &egui::Context) {
        let is_focused = ctx.input(|input| input.focused);
        let has_come_back = is_focused && !self.was_focused;
        self.was_focused = is_focused;
        if !has_come_back {
            return;
        }
        let now = times_of(self.state.opened.iter().map(|file| file.path.as_path()));
        let mut changed =
            now.iter().filter(|&(path, time)| self.modified.get(path).is_some_and(|old| old != time));
        if let Some((path, _)) = changed.next() {
            let text = t!("changed on disk, File > Reload all reads it again: {path}", path = path.display());
            self.say(ctx, Tone::Warning, text);
        }
        self.modified = now;
    }

    fn take_dropped(&mut self, ctx: &egui::Context) {
        let files = ctx.input_mut(|input| std::mem::take(&mut input.raw.dropped_files));
        let now_s = ctx.input(|input| input.time);
        if !files.is_empty() {
            self.dropped.extend(files.iter().map(|file| file.path().to_owned()));
            self.dropped_at_s = now_s;
        }
        if self.dropped.is_empty() {
            return;
        }
        if now_s - self.dropped_at_s >= DROP_WAIT_S {
            let paths = std::mem::take(&mut self.dropped);
            self.open(ctx, paths);
        } else {
            ctx.request_repaint_after(Duration::from_secs_f64(DROP_WAIT_S));
        }
    }

    fn poll_opening(&mut self, ctx: &egui::Context) {
        let Some(opening) = &mut self.opening else { return };
        let Some(outcome) = opening.poll() else {
            ctx.request_repaint_after(PROGRESS_EVERY);
            return;
        };
        self.opening = None;
        self.take_outcome(ctx, outcome);
    }

    /// Looks at the ranks one by one, from the first.
    fn start_survey(&mut self, ctx: &egui::Context, files: RankFiles) {
        let settings = &self.state.settings;
        match Surveying::start(files, settings.log_pattern(), settings.user_code(), self.wake(ctx)) {
            Ok((surveying, survey)) => {
                (self.surveying, self.state.survey) = (Some(surveying), Some(survey));
                // They come in another order.
                if matches!(self.state.selected, Some(Selected::Rank(_))) {
                    self.state.selected = None;
                }
            }
            Err(error) => self.say(ctx, Tone::Error, t!("no thread to read files on: {error}", error)),
        }
    }

    fn poll_survey(&mut self, ctx: &egui::Context) {
        let (Some(surveying), Some(survey)) = (&self.surveying, &mut self.state.survey) else { return };
        let errors = surveying.poll(survey);
        if !survey.is_running {
            let skipped = survey.skipped;
            self.surveying = None;
            self.say_skipped(ctx, skipped);
        }
        for error in errors {
            self.say(ctx, Tone::Error, error);
        }
    }

    fn say_skipped(&mut self, ctx: &egui::Context, skipped: usize) {
        let text = match skipped {
            0 => return,
            1 => t!("1 file in the folder tells nothing of memory and was left out").to_owned(),
            count => t!("{count} files in the folder tell nothing of memory and were left out", count),
        };
        self.say(ctx, Tone::Warning, text);
    }

    /// Remembers what was chosen and could be opened, a folder for any of its files.
    fn remember_opened(&mut self, outcome: &Outcome) {
        let of_ranks = outcome.many_ranks.iter().flat_map(|files| &files.ranks).flat_map(|rank| &rank.files);
        let files = outcome.recordings.iter().map(|recording| &recording.path).chain(of_ranks);
        let files: Vec<&PathBuf> = files.collect();
        for path in &outcome.chosen {
            if files.iter().any(|file| file.starts_with(path)) {
                self.state.settings.remember(path);
            }
        }
    }

    /// Says which files could not be opened: of one why, of several their names, for the log has the rest.
    fn say_failed(&mut self, ctx: &egui::Context, failed: Vec<(String, String)>) {
        if failed.len() < 2 {
            failed.into_iter().for_each(|(_, why)| self.say(ctx, Tone::Error, why));
            return;
        }
        let count = format_count(failed.len() as u64);
        let mut names: Vec<String> = failed.iter().map(|(name, _)| name.clone()).take(MAX_NAMED).collect();
        if failed.len() > MAX_NAMED {
            names.push(t!("and {count} more", count = format_count((failed.len() - MAX_NAMED) as u64)));
        }
        for (_, why) in failed {
            self.say(ctx, Tone::Error, why);
            self.state.messages.last_mut().into_iter().for_each(|message| message.is_shown = false);
        }
        let names = names.join(", ");
        let text = t!("{count} files could not be opened, View > Log says why: {names}", count, names);
        self.say(ctx, Tone::Error, text);
    }

    /// New files join the session; one that was open already is replaced.
    fn take_outcome(&mut self, ctx: &egui::Context, outcome: Outcome) {
        self.remember_opened(&outcome);
        if !outcome.recordings.is_empty() || outcome.many_ranks.is_some() {
            // What failed before is no news any more; the log has it still.
            let errors = self.state.messages.iter_mut().filter(|message| message.tone == Tone::Error);
            errors.for_each(|message| message.is_shown = false);
        }
        self.say_failed(ctx, outcome.failed);
        self.say_skipped(ctx, outcome.skipped);
        if outcome.too_many > 0 {
            let text = t!(
                "{count} more files were left out: {most} are read at once",
                count = format_count(outcome.too_many as u64),
                most = format_count(opening::MAX_FILES as u64)
            );
            self.say(ctx, Tone::Warning, text);
        }
        if let Some(files) = outcome.many_ranks {
            self.start_survey(ctx, files);
            self.state.tab = Tab::Ranks;
        }
        let is_open = |file: &LeftOut| {
            outcome.recordings.iter().any(|opened| opened.path.as_os_str() == file.name.as_str())
        };
        self.state.left_out.extend(outcome.left_out);
        self.state.left_out.retain(|file| !is_open(file));
        if outcome.recordings.is_empty() {
            return;
        }
        let mut opened = self.state.opened.clone();
        opened.retain(|file| !outcome.instead_of.contains(&file.path));
        for recording in outcome.recordings {
            match opened.iter_mut().find(|old| old.path == recording.path) {
                Some(old) => *old = recording,
                None => opened.push(recording),
            }
        }
        opened.sort_by(|a, b| a.path.cmp(&b.path));
        if let Some(restored) = &self.restoring {
            self.state.choices.placement = restored.placement.clone();
        }
        self.rebuild(ctx, opened);
    }

    fn poll_building(&mut self, ctx: &egui::Context) {
        let Some(result) = self.building.as_ref().and_then(Building::poll) else { return };
        self.building = None;
        let (opened, data) = match result {
            Ok(ready) => ready,
            Err(text) => {
                self.say(ctx, Tone::Error, text);
                return;
            }
        };
        let state = &mut self.state;
        let old_span = state.data.as_ref().map(|data| data.span());
        let span = data.span();
        let is_another_run = old_span.is_none() || are_other_processes(&state.opened, &opened);
        if is_another_run || old_span.is_some_and(|old| state.view == TimeView::around(old)) {
            state.view = TimeView::around(span);
        }
        if is_another_run {
            (state.undo, state.views, state.cursor_ns) = Default::default();
            state.choices.range = data.suggestions.first().map(|suggestion| suggestion.range);
            state.choices.selection = data.selection;
        }
        if let Some(restored) = self.restoring.take() {
            state.choices = restored;
        }
        let processes = data.session().processes.len();
        if state.choices.selection.process.is_some_and(|id| id.0 as usize >= processes) {
            state.choices.selection.process = None;
        }
        if !are_same(&state.opened, &opened) {
            // Rows are those of the session before.
            state.selected = None;
            state.sides = None;
        }
        state.map = None;
        state.answers = answers::Answers::default();
        self.modified = times_of(opened.iter().map(|file| file.path.as_path()));
        state.opened = opened;
        state.data = Some(data);
        if !state.has_tab(state.tab) {
            state.tab = Tab::default();
        }
        self.asked = None;
        self.asked_map = None;
    }

    /// Asks the analysis thread when anything that it answers by has changed, and takes in its answers.
    fn ask(&mut self, ctx: &egui::Context) {
        let Some(data) = self.state.data.clone() else { return };
        if self.analyst.is_none() {
            match answers::start(self.wake(ctx)) {
                Ok(analyst) => self.analyst = Some(analyst),
                Err(error) => self.say(ctx, Tone::Error, t!("no thread for the analysis: {error}", error)),
            }
        }
        let Some(analyst) = &mut self.analyst else { return };
        let state = &mut self.state;
        let question = Question {
            selection: state.choices.selection,
            range: state.range_or_all(&data),
            free_by: state.choices.free_by,
            group_by: state.choices.group_by,
            filter: state.choices.filter.clone(),
            sort: state.row_sort,
            live_at_ns: state.live_at_ns(&data),
            live_view: state.live_view,
            compared: state.compared(&data).map(|side| side.moment(state, &data)),
            flame_order: state.flame_order,
            moving_under: state.is_brushing.then_some(state.tab),
            data,
        };
        if self.asked.as_ref().is_none_or(|asked| !asked.is_same(&question)) {
            analyst.ask(question.clone());
            state.answers.has_findings = false;
            self.asked = Some(question);
        }
        while let Some(part) = analyst.poll() {
            state.answers.take(part);
        }
    }

    /// Asks for the allocation map when the view or the selection has changed, and takes it in.
    fn ask_map(&mut self, ctx: &egui::Context) {
        let (Some(data), Some([columns, rows])) = (self.state.data.clone(), self.state.map_pixels) else {
            return;
        };
        if self.mapper.is_none() {
            match timeline::start_mapper(self.wake(ctx)) {
                Ok(mapper) => self.mapper = Some(mapper),
                Err(error) => {
                    self.say(ctx, Tone::Error, t!("no thread for the allocation map: {error}", error));
                }
            }
        }
        let Some(mapper) = &mut self.mapper else { return };
        let selection = self.state.choices.selection;
        let request = MapRequest { selection, range: self.state.view.range(), columns, rows };
        let question = MapQuestion { data, request, color_by: self.state.looks.color_by };
        if self.asked_map.as_ref() != Some(&question) {
            mapper.ask(question.clone());
            self.asked_map = Some(question);
        }
        while let Some(map) = mapper.poll() {
            self.state.map = Some(Arc::new(map));
        }
    }
}
