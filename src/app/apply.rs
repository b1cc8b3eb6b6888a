//! Commands applied: the only place that changes the state.

use std::path::{Path, PathBuf};

use super::App;
use super::command::{Command, Placing};
use super::dialogs;
use super::session_file;
use super::sql;
use super::state::{Choices, Dialog, ExportForm, Selected, SettingsForm, State, Tab, Tone};
use super::survey::Origin;
use super::tables::Sheet;
use super::timeline;
use super::timeline::view::TimeView;
use crate::align::RankFiles;
use crate::analysis::RowRef;
use crate::model::{BEFORE_NS, NEVER_NS, SourceId, SourceKind, TimeRange, format_count};
use crate::report::{self, Format};
use crate::text::t;

/// So many rows go to the clipboard; a file takes them all.
const MAX_COPIED_ROWS: usize = 20_000;

impl App {
    pub(super) fn apply(&mut self, ctx: &egui::Context, command: Command) {
        match command {
            Command::Open(paths) => self.open(ctx, paths),
            Command::AskForFiles => self.pick(ctx, dialogs::Pick::Files),
            Command::AskForFolder => self.pick(ctx, dialogs::Pick::Folder),
            Command::OpenSample(name) => match sample_folder(name) {
                Some(folder) => self.open(ctx, vec![folder]),
                None => self.say(ctx, Tone::Error, t!("the sample {name} is not beside the program", name)),
            },
            Command::Reload => {
                self.waiting.all_at_once = true;
                self.waiting.paths.extend(self.state.opened.iter().map(|file| file.path.clone()));
                ctx.request_repaint();
                self.look_at_ranks_again(ctx);
            }
            Command::CloseSource(id) => {
                let mut opened = self.state.opened.clone();
                if (id.0 as usize) < opened.len() {
                    opened.remove(id.0 as usize);
                    self.rebuild(ctx, opened);
                }
            }
            Command::CloseAll => self.close_all(),
            Command::CancelFile(at) => {
                if let Some(file) = self.opening.as_ref().and_then(|opening| opening.files.get(at)) {
                    file.progress.cancel();
                }
            }
            Command::CancelAll => {
                if let Some(opening) = &self.opening {
                    opening.cancel_all();
                }
            }
            Command::SetOffset(id, offset_ns) => self.set_offset(id, offset_ns),
            Command::SetVisibleDevices(id, devices) => self.set_visible_devices(id, devices),
            Command::MoveRange(range) => self.move_range(range),
            Command::SetRange(range) => self.set_range(range),
            Command::SuggestGrowth => self.suggest_growth(ctx),
            Command::GoToStep(by) => self.go_to_step(by),
            Command::GoToPeak => {
                if let Some((at_ns, _)) = self.state.data.as_ref().and_then(|data| data.peak) {
                    self.state.cursor_ns = Some(at_ns);
                    self.bring_into_view(TimeRange::new(at_ns, at_ns));
                }
            }
            Command::SetCursor(at_ns) => self.state.cursor_ns = at_ns,
            Command::Zoom(..)
            | Command::Pan(_)
            | Command::Show(_)
            | Command::FitRange
            | Command::FitAll
            | Command::ViewBack
            | Command::ViewForward => self.apply_view(&command),
            Command::SetSelection(selection) => self.choose(|choices| choices.selection = selection),
            Command::SetFreeBy(free_by) => self.choose(|choices| choices.free_by = free_by),
            Command::SetGroupBy(group_by) => self.choose(|choices| choices.group_by = group_by),
            Command::SetFilter(filter) => self.choose(|choices| choices.filter = filter),
            Command::SortRows(column) => self.state.row_sort = self.state.row_sort.clicked(column),
            Command::SortGroups(column) => self.state.group_sort = self.state.group_sort.clicked(column),
            Command::SortNets(column) => self.state.net_sort = self.state.net_sort.clicked(column),
            Command::SortDifferences(column) => {
                self.state.difference_sort = self.state.difference_sort.clicked(column);
            }
            Command::SortRanks(column) => self.state.rank_sort = self.state.rank_sort.clicked(column),
            Command::OpenRank(at, placing) => self.open_rank(ctx, at, placing),
            Command::OpenAllRanks => {
                let files = self.state.survey.as_ref().map(|survey| survey.files.clone());
                let Some(RankFiles { ranks, logs }) = files else { return };
                self.waiting.all_at_once = true;
                self.waiting.paths.extend(ranks.into_iter().flat_map(|rank| rank.files).chain(logs));
                ctx.request_repaint();
            }
            Command::StopSurvey => {
                self.surveying = None;
                self.state.survey.iter_mut().for_each(|survey| survey.is_running = false);
            }
            Command::Compare(sides) => self.state.sides = Some(sides),
            Command::SetMapPixels(pixels) => self.state.map_pixels = pixels,
            Command::SetFlat(is_flat) => self.state.is_flat = is_flat,
            Command::SetNetView(view) => self.state.net_view = view,
            Command::SetLiveView(view) => self.state.live_view = view,
            Command::ToggleModule(path) => toggle(&mut self.state.looks.folded_modules, path),
            Command::SetFlameOrder(order) => self.state.flame_order = order,
            Command::ShowTab(tab) => self.state.tab = tab,
            Command::FocusFilter => self.state.wants_filter_focus = true,
            Command::FilterFocused => self.state.wants_filter_focus = false,
            Command::Select(selected) => {
                self.state.looks.is_details_folded &= selected.is_none();
                self.state.selected = selected;
            }
            Command::SelectNext(by) => self.select_next(ctx, by),
            Command::SelectAlso(row) => self.select_also(row),
            Command::RevealSelected => self.reveal_selected(),
            Command::Undo => {
                let now = self.state.choices.clone();
                self.state.undo.back(now).into_iter().for_each(|was| self.state.choices = was);
            }
            Command::Redo => {
                let now = self.state.choices.clone();
                self.state.undo.forward(now).into_iter().for_each(|next| self.state.choices = next);
            }
            Command::Escape => self.escape(),
            Command::ToggleCurve(label) => toggle(&mut self.state.looks.switched_curves, label),
            Command::ToggleSource(path) => toggle(&mut self.state.looks.hidden_sources, path),
            Command::ToggleTrack(name) => toggle(&mut self.state.looks.folded_tracks, name),
            Command::SetColorBy(by) => self.state.looks.color_by = by,
            Command::MoveTrack(name, by) => self.move_track(name, by),
            Command::ToggleColumn(table, name) => {
                toggle(&mut self.state.looks.hidden_columns, (table, name));
            }
            Command::ToggleExactBytes => self.state.settings.exact_bytes ^= true,
            Command::CopyTable => self.copy_table(ctx),
            Command::AskToSaveTable => {
                self.state.dialog = Some(Dialog::SaveTable(self.beside_sources("vramscope-table.csv")));
            }
            Command::SaveTable(path) => self.save_table(ctx, path),
            Command::ResizeTrack(name, height) => {
                self.state.looks.heights.insert(name, height.clamp(40.0, 800.0));
            }
            Command::ToggleSources => self.state.looks.is_sources_folded ^= true,
            Command::ToggleAllFrames => self.state.settings.shows_all_frames ^= true,
            Command::AskForSettings => self.ask_for_settings(),
            Command::Set(form) => self.set(ctx, &form),
            Command::ToggleDetails => self.state.looks.is_details_folded ^= true,
            Command::SetTheme(theme) => ctx.set_theme(theme),
            Command::SetLanguage(language) => {
                self.state.settings.language = language;
                self.state.settings.language().speak();
                // What was worked out says it in the language of before.
                self.work_out_again(ctx);
            }
            Command::SetSql(text) => self.state.sql.text = text,
            Command::RunSql => self.run_sql(ctx),
            Command::SaveSession(path) => self.save_session(ctx, &path),
            Command::AddNote(note) => self.choose(|choices| choices.notes.push(note)),
            Command::RemoveNote(at) => self.choose(|choices| {
                if at < choices.notes.len() {
                    choices.notes.remove(at);
                }
            }),
            Command::ShowDialog(dialog) => self.show_dialog(dialog),
            Command::AskToSave => {
                let path = self.beside_sources(&format!("session.{}", session_file::EXTENSION));
                self.state.dialog = Some(Dialog::SaveSession(path));
            }
            Command::AskForReport => self.ask_for_report(ctx),
            Command::AskForReportPath(form) => self.pick(ctx, dialogs::Pick::Report(form)),
            Command::Export(form) if !form.overwrites && Path::new(&form.path).exists() => {
                self.state.dialog = Some(Dialog::Export(ExportForm { overwrites: true, ..form }));
            }
            Command::Export(form) => self.export(ctx, &form),
            Command::CloseDialog => self.state.dialog = None,
            Command::Copy(text) => ctx.copy_text(text),
            Command::Dismiss(at) => {
                if let Some(message) = self.state.messages.get_mut(at) {
                    message.is_shown = false;
                }
            }
            Command::Quit => ctx.send_viewport_cmd(egui::ViewportCommand::Close),
        }
    }

    fn apply_view(&mut self, command: &Command) {
        let state = &mut self.state;
        let Some(data) = &state.data else { return };
        let (view, span) = (state.view, data.span());
        let middle = view.start_ns + view.duration_ns() / 2;
        match *command {
            // Wheel and keys come in many small steps: they are no history of their own.
            Command::Zoom(at_ns, factor) => {
                state.view = view.zoomed(at_ns.unwrap_or(middle), factor, span);
            }
            Command::Pan(share) => state.view = view.panned(share, span),
            Command::Show(range) => state.show(TimeView::around(range)),
            Command::FitRange => state.show(TimeView::around(state.choices.range.unwrap_or(span))),
            Command::FitAll => state.show(TimeView::around(span)),
            Command::ViewBack => state.views.back(view).into_iter().for_each(|was| state.view = was),
            Command::ViewForward => state.views.forward(view).into_iter().for_each(|next| state.view = next),
            _ => {}
        }
    }

    /// Changes a choice so that it can be undone.
    fn choose(&mut self, change: impl FnOnce(&mut Choices)) {
        let was = self.state.choices.clone();
        change(&mut self.state.choices);
        if was != self.state.choices {
            self.state.undo.push(was);
        }
    }

    fn move_range(&mut self, range: TimeRange) {
        if !self.state.is_brushing {
            self.state.undo.push(self.state.choices.clone());
            self.state.is_brushing = true;
        }
        self.state.choices.range = Some(range);
    }

    fn set_range(&mut self, range: Option<TimeRange>) {
        if self.state.is_brushing {
            self.state.is_brushing = false;
            self.state.choices.range = range;
        } else {
            self.choose(|choices| choices.range = range);
        }
    }

    fn suggest_growth(&mut self, ctx: &egui::Context) {
        let Some(data) = self.state.data.clone() else { return };
        // Asking again goes on to the next suggestion.
        let now = self.state.choices.range;
        let at = data.suggestions.iter().position(|suggestion| Some(suggestion.range) == now);
        let next = at.map_or(0, |at| (at + 1) % data.suggestions.len().max(1));
        if let Some(suggestion) = data.suggestions.get(next) {
            self.set_range(Some(suggestion.range));
            self.bring_into_view(suggestion.range);
            self.say(ctx, Tone::Good, suggestion.label.clone());
        }
    }

    /// Moves the range to the next (1) or previous (−1) step.
    fn go_to_step(&mut self, by: i64) {
        let Some(data) = self.state.data.clone() else { return };
        let id = self.state.choices.selection.process.unwrap_or(crate::model::ProcessId(0));
        let Some(process) = data.session().processes.get(id.0 as usize) else { return };
        let steps = &process.steps;
        let next = match self.state.choices.range {
            None if by > 0 => 0,
            None => steps.len().saturating_sub(1),
            Some(range) if by > 0 => steps.partition_point(|step| step.range.start_ns <= range.start_ns),
            Some(range) => {
                let before = steps.partition_point(|step| step.range.start_ns < range.start_ns);
                let Some(before) = before.checked_sub(1) else { return };
                before
            }
        };
        if let Some(step) = steps.get(next) {
            self.set_range(Some(step.range));
            self.bring_into_view(step.range);
        }
    }

    /// Opens the files of a rank, or looks at a process that is open.
    fn open_rank(&mut self, ctx: &egui::Context, at: usize, placing: Placing) {
        match self.state.ranks().get(at).map(|row| row.origin.clone()) {
            Some(Origin::Files(files)) => {
                let Some(survey) = &self.state.survey else { return };
                if placing == Placing::Alone {
                    let others = survey.files.ranks.iter().flat_map(|rank| &rank.files);
                    self.waiting.instead_of.extend(others.cloned());
                    self.state.tab = Tab::default();
                    // It found the rank; what the rank holds it would hide.
                    self.state.choices.filter.clear();
                }
                self.waiting.all_at_once = true;
                self.waiting.paths.extend(files.iter().chain(&survey.files.logs).cloned());
                ctx.request_repaint();
            }
            Some(Origin::Process(id)) => {
                self.choose(|choices| {
                    choices.selection.process = Some(id);
                    choices.filter.clear();
                });
            }
            None => {}
        }
    }

    /// Selects the row `by` rows below the selected one, in the table in front.
    fn select_next(&mut self, ctx: &egui::Context, by: isize) {
        let state = &self.state;
        let sheet = Sheet::of(state);
        let len = match &sheet {
            Some(sheet) => sheet.len(),
            None if state.tab == Tab::Findings => state.answers.findings.len(),
            None => 0,
        };
        let now = match (&state.selected, &sheet) {
            (Some(selected), Some(sheet)) => sheet.row_of(selected),
            (&Some(Selected::Finding(at)), None) => Some(at),
            _ => None,
        };
        let Some(last) = len.checked_sub(1) else { return };
        let row = now.map_or(0, |row| row.saturating_add_signed(by).min(last));
        let next = sheet.map_or(Some(Selected::Finding(row)), |sheet| sheet.selected(row));
        if next.is_some() {
            self.apply(ctx, Command::Select(next));
            self.state.row_to_show = Some(row);
        }
    }

    fn select_also(&mut self, row: RowRef) {
        let mut rows = match self.state.selected.take() {
            Some(Selected::Row(one)) => vec![one],
            Some(Selected::Rows(rows)) => rows,
            _ => Vec::new(),
        };
        match rows.iter().position(|&known| known == row) {
            Some(at) => drop(rows.remove(at)),
            None => rows.push(row),
        }
        self.state.looks.is_details_folded &= rows.is_empty();
        self.state.selected = match rows.as_slice() {
            [] => None,
            [one] => Some(Selected::Row(*one)),
            _ => Some(Selected::Rows(rows)),
        };
    }

    fn reveal_selected(&mut self) {
        let Some(data) = self.state.data.clone() else { return };
        let span = data.span();
        let life_of = |row: RowRef| {
            let allocation = row.get(data.session());
            let start = if allocation.alloc_ns == BEFORE_NS { span.start_ns } else { allocation.alloc_ns };
            let is_freed = allocation.free_completed_ns != NEVER_NS;
            TimeRange::new(start, if is_freed { allocation.free_completed_ns } else { span.end_ns })
        };
        match self.state.selected.clone() {
            Some(Selected::Row(row)) => self.state.show(TimeView::around(life_of(row))),
            Some(Selected::Rows(rows)) => {
                let lives = rows.into_iter().map(life_of).reduce(TimeRange::union);
                self.state.show(TimeView::around(lives.unwrap_or(span)));
            }
            Some(Selected::Finding(at)) => {
                if let Some(range) = self.state.answers.findings.get(at).map(|finding| finding.range) {
                    self.set_range(Some(range));
                    self.state.show(TimeView::around(range));
                }
            }
            Some(Selected::Group(_) | Selected::Difference(_) | Selected::Rank(_)) | None => {}
        }
    }

    /// Changes the view only when a part of `range` is not seen.
    fn bring_into_view(&mut self, range: TimeRange) {
        let view = self.state.view.range();
        if range.start_ns < view.start_ns || range.end_ns > view.end_ns {
            let Some(data) = &self.state.data else { return };
            let span = data.span();
            let wanted = if range.duration_ns() == 0 {
                let half = self.state.view.duration_ns() / 2;
                TimeRange::new(range.start_ns.saturating_sub(half), range.end_ns.saturating_add(half))
            } else {
                range.union(range.shifted(range.duration_ns())).union(range.shifted(-range.duration_ns()))
            };
            let start = wanted.start_ns.max(span.start_ns);
            self.state
                .show(TimeView::around(TimeRange::new(start, wanted.end_ns.min(span.end_ns).max(start))));
        }
    }

    fn escape(&mut self) {
        let state = &mut self.state;
        if state.dialog.is_some() {
            state.dialog = None;
        } else if state.is_brushing || state.choices.range.is_some() {
            self.set_range(None);
        } else {
            state.selected = None;
            state.cursor_ns = None;
        }
    }

    fn set_offset(&mut self, id: SourceId, offset_ns: Option<i64>) {
        let Some(path) = self.state.opened.get(id.0 as usize).map(|file| file.path.clone()) else { return };
        self.choose(|choices| {
            match offset_ns {
                Some(offset_ns) => choices.placement.offsets_ns.insert(path, offset_ns),
                None => choices.placement.offsets_ns.remove(&path),
            };
        });
    }

    fn set_visible_devices(&mut self, id: SourceId, devices: Vec<i8>) {
        let Some(path) = self.state.opened.get(id.0 as usize).map(|file| file.path.clone()) else { return };
        self.choose(|choices| {
            let known = &mut choices.placement.visible_devices;
            if devices.is_empty() {
                known.remove(&path)
            } else {
                known.insert(path, devices)
            };
        });
    }

    fn move_track(&mut self, name: &'static str, by: i32) {
        let mut order = timeline::order(&self.state.looks.track_order);
        let Some(at) = order.iter().position(|&track| track == name) else { return };
        let to = at.saturating_add_signed(by as isize).min(order.len() - 1);
        order.swap(at, to);
        self.state.looks.track_order = order;
    }

    fn copy_table(&mut self, ctx: &egui::Context) {
        let Some(sheet) = Sheet::of(&self.state) else { return };
        ctx.copy_text(sheet.to_text(MAX_COPIED_ROWS));
        let (count, all) = (sheet.len().min(MAX_COPIED_ROWS) as u64, sheet.len() as u64);
        let text = match count == all {
            true => t!("{count} rows copied", count = format_count(count)),
            false => t!(
                "the first {count} of {all} rows copied",
                count = format_count(count),
                all = format_count(all)
            ),
        };
        self.say(ctx, Tone::Good, text);
    }

    fn save_table(&mut self, ctx: &egui::Context, path: PathBuf) {
        let Some(sheet) = Sheet::of(&self.state).filter(|_| self.exporting.is_none()) else { return };
        let sources = self.state.source_paths();
        let write = move || {
            report::spare(&path, sources.iter().map(PathBuf::as_path))?;
            report::write_file(&path, |file| sheet.write(&mut std::io::BufWriter::new(file)))
                .map_err(|error| format!("{error:#}"))?;
            Ok(path)
        };
        match dialogs::Worker::start("table", self.wake(ctx), write) {
            Ok(worker) => self.exporting = Some(worker),
            Err(error) => self.say(ctx, Tone::Error, t!("no thread for the table: {error}", error)),
        }
    }

    fn ask_for_settings(&mut self) {
        let settings = &self.state.settings;
        self.state.dialog = Some(Dialog::Settings(SettingsForm {
            user_code: settings.user_code.join("\n"),
            log_pattern: settings.log_pattern.clone(),
        }));
    }

    /// Puts what is open together again, and looks at the ranks again.
    fn work_out_again(&mut self, ctx: &egui::Context) {
        if !self.state.opened.is_empty() {
            self.rebuild(ctx, self.state.opened.clone());
        }
        self.look_at_ranks_again(ctx);
    }

    fn look_at_ranks_again(&mut self, ctx: &egui::Context) {
        if let Some(survey) = &self.state.survey {
            self.start_survey(ctx, survey.files.clone());
        }
    }

    /// Call sites are told anew when other code is the user's, and logs are read again by another pattern.
    fn set(&mut self, ctx: &egui::Context, form: &SettingsForm) {
        let lines = form.user_code.lines().map(str::trim).filter(|line| !line.is_empty());
        let user_code: Vec<String> = lines.map(str::to_owned).collect();
        let log_pattern = form.log_pattern.trim().to_owned();
        let settings = &mut self.state.settings;
        let is_other_code = settings.user_code != user_code;
        let is_other_pattern = settings.log_pattern != log_pattern;
        (settings.user_code, settings.log_pattern) = (user_code, log_pattern);
        self.state.dialog = None;
        if is_other_code {
            self.work_out_again(ctx);
        }
        if is_other_pattern {
            let is_log = |file: &&crate::align::Opened| file.recording.kind == SourceKind::TrainingLog;
            let logs = self.state.opened.iter().filter(is_log).map(|file| file.path.clone());
            self.waiting.paths.extend(logs);
            ctx.request_repaint();
        }
    }

    /// Where a new file is written unless the user says otherwise: in the folder of the first source.
    fn beside_sources(&self, name: &str) -> String {
        let folder = self.state.opened.first().and_then(|file| file.path.parent()).unwrap_or(Path::new(""));
        folder.join(name).display().to_string()
    }

    fn ask_for_report(&mut self, ctx: &egui::Context) {
        let Some(data) = &self.state.data else {
            self.say(ctx, Tone::Warning, t!("open a recording first; then there is something to report"));
            return;
        };
        let last = self.state.exported.clone();
        let (format, path) =
            last.unwrap_or_else(|| (Format::Html, self.beside_sources("vramscope-report.html")));
        let redact = self.state.settings.redacts;
        let replaced = if redact { report::redactions(&data.index, false).into() } else { [].into() };
        let form = ExportForm { format, path, redact, replaced, overwrites: false };
        self.state.dialog = Some(Dialog::Export(form));
    }

    /// Opens a dialog or changes its fields; those of an export are there again next time.
    pub(super) fn show_dialog(&mut self, dialog: Dialog) {
        if let Dialog::Export(form) = &dialog {
            self.state.exported = Some((form.format, form.path.clone()));
            self.state.settings.redacts = form.redact;
        }
        self.state.dialog = Some(dialog);
    }

    fn close_all(&mut self) {
        self.surveying = None;
        self.state.survey = None;
        self.close_session();
    }

    /// Closes what is open. A run of many ranks stays, so that another one can be opened.
    fn close_session(&mut self) {
        self.opening = None;
        self.building = None;
        self.asked = None;
        self.asked_map = None;
        let looks = std::mem::take(&mut self.state.looks);
        let messages = std::mem::take(&mut self.state.messages);
        let settings = std::mem::take(&mut self.state.settings);
        let (survey, rank_sort) = (self.state.survey.take(), self.state.rank_sort);
        self.state = State { looks, messages, settings, survey, rank_sort, ..State::default() };
    }

    fn run_sql(&mut self, ctx: &egui::Context) {
        let Some(data) = self.state.data.clone() else { return };
        if self.asking_sql.is_some() {
            return;
        }
        let text = self.state.sql.text.clone();
        let ask = move || sql::ask(&data, &text);
        match dialogs::Worker::start("sql", self.wake(ctx), ask) {
            Ok(worker) => {
                self.asking_sql = Some(worker);
                self.state.sql.is_running = true;
            }
            Err(error) => self.say(ctx, Tone::Error, t!("no thread for SQL: {error}", error)),
        }
    }

    fn save_session(&mut self, ctx: &egui::Context, path: &Path) {
        let sources: Vec<PathBuf> = self
            .state
            .opened
            .iter()
            .map(|file| std::path::absolute(&file.path).unwrap_or_else(|_| file.path.clone()))
            .collect();
        match session_file::save(path, &sources, &self.state.choices) {
            Ok(()) => {
                self.state.settings.remember(path);
                self.state.dialog = None;
                self.say(ctx, Tone::Good, t!("Session saved: {path}", path = path.display()));
            }
            Err(error) => self.say(ctx, Tone::Error, error),
        }
    }

    /// Puts files together again, with the offsets as they are chosen.
    pub(super) fn rebuild(&mut self, ctx: &egui::Context, mut opened: Vec<crate::align::Opened>) {
        if opened.is_empty() {
            self.close_session();
            return;
        }
        for file in &mut opened {
            let placement = &self.state.choices.placement;
            file.offset_by_hand_ns = placement.offsets_ns.get(&file.path).copied();
            file.visible_devices = placement.visible_devices.get(&file.path).cloned().unwrap_or_default();
        }
        self.built_with = self.state.choices.placement.clone();
        let user_code = self.state.settings.user_code();
        match super::opening::Building::start(opened, user_code, self.wake(ctx)) {
            Ok(building) => self.building = Some(building),
            Err(error) => self.say(ctx, Tone::Error, t!("no thread to put files together: {error}", error)),
        }
    }

    /// Shows a message and keeps it in the log.
    pub(super) fn say(&mut self, ctx: &egui::Context, tone: Tone, text: impl Into<String>) {
        let at_s = ctx.input(|input| input.time);
        self.state.messages.push(super::state::Message { tone, text: text.into(), at_s, is_shown: true });
    }
}

impl State {
    /// Changes the view so that one can go back.
    fn show(&mut self, view: TimeView) {
        if view != self.view {
            self.views.push(self.view);
            self.view = view;
        }
    }
}

fn toggle<T: Ord>(set: &mut std::collections::BTreeSet<T>, value: T) {
    if !set.remove(&value) {
        set.insert(value);
    }
}

/// The folder of a sample: beside the program when it is installed, else in the source tree.
fn sample_folder(name: &str) -> Option<PathBuf> {
    let beside = std::env::current_exe().ok()?.parent()?.join("samples").join(name);
    let shared = std::env::current_exe().ok()?.parent()?.join("../share/vramscope/samples").join(name);
    let in_tree = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("samples").join(name);
    let here = PathBuf::from("samples").join(name);
    [beside, shared, here, in_tree].into_iter().find(|folder| folder.is_dir())
}
