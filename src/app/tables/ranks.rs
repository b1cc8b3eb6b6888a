//! Ranks side by side: how much each keeps, which stand out, and the way into one of them.

use egui::{CentralPanel, Label, ProgressBar, RichText, Ui};

use super::cells::{self, Spec};
use crate::app::command::{Command, Placing};
use crate::app::empty;
use crate::app::filter::Filter;
use crate::app::opening::Opening;
use crate::app::sorting::{RankColumn, order_of_ranks};
use crate::app::state::{Selected, State};
use crate::app::survey::{Origin, Row, Survey};
use crate::app::theme::Palette;
use crate::model::{format_bytes, format_count, format_delta_bytes};
use crate::report::stands_out;
use crate::text::{msg, t};

/// The name under which its columns are hidden.
pub const TABLE: &str = "ranks";

const NAME: usize = 0;
const BAR: usize = 2;
const FINDING: usize = 6;

/// The columns.
pub const COLUMNS: [Spec<RankColumn>; 7] = [
    Spec::new(msg!("Rank"), 170.0, Some(RankColumn::Name)),
    Spec::new(msg!("Per step"), 84.0, Some(RankColumn::PerStep)),
    Spec::new(msg!("Kept"), 124.0, Some(RankColumn::Kept)).with_hint(msg!("Allocated in the range, to begin with the one in which memory grows the most, and not freed by the end of the recording")),
    Spec::new(msg!("Peak"), 76.0, Some(RankColumn::Peak)),
    Spec::new(msg!("Allocations"), 76.0, Some(RankColumn::Allocations)),
    Spec::new(msg!("Steps"), 48.0, Some(RankColumn::Steps)),
    Spec::new(msg!("First finding"), 240.0, Some(RankColumn::Finding)).of_text(),
];

/// Draws the ranks where no session is open yet.
pub fn show_alone(ui: &mut Ui, state: &State, opening: Option<&Opening>, commands: &mut Vec<Command>) {
    CentralPanel::default().show(ui, |ui| {
        if let Some(survey) = &state.survey {
            let count = format_count(survey.files.ranks.len() as u64);
            ui.heading(t!("A run of {count} ranks", count));
            let text = t!(
                "Each is read, summed up and let go. Open one to see what it keeps, or two to compare them."
            );
            ui.add(Label::new(RichText::new(text).weak()).wrap());
            ui.add_space(4.0);
        }
        if opening.is_some() {
            empty::show_progress(ui, opening, false, commands);
        }
        ui.horizontal_wrapped(|ui| {
            super::table_menu(ui, &state.looks, Some((TABLE, cells::names(&COLUMNS))), commands);
            super::filter(ui, state, commands);
        });
        show(ui, state, commands);
    });
}

/// Draws what is known of the ranks so far, and the table.
pub fn show(ui: &mut Ui, state: &State, commands: &mut Vec<Command>) {
    let rows = state.ranks();
    ui.horizontal_wrapped(|ui| {
        if let Some(survey) = &state.survey {
            progress(ui, survey, commands);
            ui.separator();
        }
        actions(ui, state, rows, commands);
    });
    if rows.is_empty() {
        ui.weak(t!("No rank was looked at yet."));
        return;
    }
    let order = order(state);
    cells::scrolled(ui, |ui| table(ui, state, rows, &order, commands));
}

/// The ranks that pass the filter, in the order in which they are shown.
pub fn order(state: &State) -> Vec<u32> {
    let rows = state.ranks();
    // While a regular expression is being typed it may not be one yet; then nothing is filtered.
    let filter = Filter::parse(&state.choices.filter).ok().filter(|filter| !filter.is_empty());
    let admits =
        |row: &Row| filter.as_ref().is_none_or(|it| it.admits(&format!("{} {}", row.name, row.finding())));
    let mut order = order_of_ranks(rows, state.rank_sort);
    order.retain(|&at| admits(&rows[at as usize]));
    order
}

/// How far the survey is, and what it found.
fn progress(ui: &mut Ui, survey: &Survey, commands: &mut Vec<Command>) {
    let (done, all) = (format_count(survey.done as u64), format_count(survey.files.ranks.len() as u64));
    if survey.is_running {
        let share = survey.done as f32 / survey.files.ranks.len().max(1) as f32;
        ui.add(ProgressBar::new(share).desired_width(160.0));
        if ui.button(t!("Stop")).accessible_name(t!("Stop looking at ranks")).clicked() {
            commands.push(Command::StopSurvey);
        }
    }
    let outliers = survey.rows.iter().filter(|row| row.is_outlier()).count();
    ui.label(match (survey.done == survey.files.ranks.len(), outliers) {
        (true, 0) => t!("None of {all} ranks stand out.", all),
        (true, count) => {
            t!("{count} of {all} ranks stand out.", count = format_count(count as u64), all)
        }
        (false, 0) => t!("{done} of {all} ranks looked at.", done, all),
        (false, count) => t!(
            "{done} of {all} ranks looked at; {count} stand out so far.",
            done,
            all,
            count = format_count(count as u64)
        ),
    });
    let failed = survey.rows.iter().filter(|row| row.figures.is_err()).count();
    if failed > 0 {
        let text = match failed {
            1 => t!("1 could not be read.").to_owned(),
            count => t!("{count} could not be read.", count = format_count(count as u64)),
        };
        ui.colored_label(Palette::of(ui.visuals()).warning, text);
    }
}

/// What can be done with the selected rank, and with all.
fn actions(ui: &mut Ui, state: &State, rows: &[Row], commands: &mut Vec<Command>) {
    let selected = match state.selected {
        Some(Selected::Rank(at)) => rows.get(at).map(|row| (at, row)),
        _ => None,
    };
    match selected {
        Some((at, row)) => {
            for (placing, text) in verbs(state, row) {
                if ui.button(text).clicked() {
                    commands.push(Command::OpenRank(at, placing));
                }
            }
        }
        None => {
            ui.weak(t!("Click a rank's name to open it, or select its row."));
        }
    }
    if let Some(survey) = &state.survey {
        let files = survey.files.ranks.iter().map(|rank| rank.files.len()).sum::<usize>();
        let hint = t!(
            "Reads {count} files and holds them all on one time axis: this takes memory and time",
            count = format_count(files as u64)
        );
        if ui.button(t!("Open all at once")).on_hover_text(hint).clicked() {
            commands.push(Command::OpenAllRanks);
        }
    }
}

/// The ways to open a rank, in words.
fn verbs(state: &State, row: &Row) -> Vec<(Placing, String)> {
    let name = &row.name;
    match row.origin {
        Origin::Files(_) if state.opened.is_empty() => vec![(Placing::Alone, t!("Open {name}", name))],
        Origin::Files(_) => vec![
            (Placing::Alone, t!("Open {name}", name)),
            (Placing::Beside, t!("Open {name} beside what is open", name)),
        ],
        Origin::Process(_) => vec![(Placing::Alone, t!("Look at {name} only", name))],
    }
}

fn table(ui: &mut Ui, state: &State, rows: &[Row], order: &[u32], commands: &mut Vec<Command>) {
    let palette = Palette::of(ui.visuals());
    let sort = state.rank_sort;
    let largest = rows.iter().map(Row::kept_bytes).max().unwrap_or(1).max(1) as f32;
    let shown = cells::shown(&state.looks, TABLE, &COLUMNS);
    let table = cells::table(ui, TABLE, &COLUMNS, &shown, state.row_to_show).header(cells::ROW, |mut row| {
        if let Some(column) = cells::headers(&mut row, &COLUMNS, &shown, sort, |at| COLUMNS[at].name) {
            commands.push(Command::SortRanks(column));
        }
    });
    table.body(|body| {
        body.rows(cells::ROW, order.len(), |mut line| {
            let at = order[line.index()] as usize;
            let row = &rows[at];
            line.set_selected(state.selected == Some(Selected::Rank(at)));
            let texts = texts(row);
            for &column in &shown {
                line.col(|ui| match column {
                    NAME => name(ui, state, at, row, palette, commands),
                    BAR => {
                        let color = if row.is_outlier() { palette.error } else { palette.category(0) };
                        cells::share(ui, &texts[BAR], row.kept_bytes() as f32 / largest, color);
                    }
                    FINDING if row.figures.is_err() => {
                        let text = RichText::new(&texts[FINDING]).color(palette.error);
                        ui.add(Label::new(text).selectable(false).truncate());
                    }
                    FINDING => cells::text(ui, &texts[FINDING]),
                    _ => cells::figure(ui, &texts[column]),
                });
            }
            let response = line.response();
            if response.clicked() {
                commands.push(Command::Select(Some(Selected::Rank(at))));
            }
            if response.double_clicked() {
                commands.push(Command::OpenRank(at, Placing::Alone));
            }
            response.context_menu(|ui| {
                for (placing, text) in verbs(state, row) {
                    if ui.button(text).clicked() {
                        commands.push(Command::OpenRank(at, placing));
                        ui.close();
                    }
                }
                if ui.button(t!("Copy row")).clicked() {
                    commands.push(Command::Copy(texts.join("\t")));
                    ui.close();
                }
            });
        });
    });
}

/// The name, which opens the rank; whether it is open, stands out, or its files warn of something.
fn name(ui: &mut Ui, state: &State, at: usize, row: &Row, palette: &Palette, commands: &mut Vec<Command>) {
    let files: Vec<String> = match &row.origin {
        Origin::Files(files) => files.iter().map(|path| path.display().to_string()).collect(),
        Origin::Process(_) => Vec::new(),
    };
    let link = ui.link(&row.name).on_hover_ui(|ui| {
        for line in files.iter().chain(&row.notes) {
            ui.label(line);
        }
    });
    if link.clicked() {
        commands.push(Command::OpenRank(at, Placing::Alone));
    }
    if is_open(state, row) {
        ui.add(Label::new(RichText::new(t!("open")).small().color(palette.good)).selectable(false));
    }
    if let Some(text) = row.figures.as_ref().ok().and_then(stands_out) {
        let label =
            Label::new(RichText::new(&text).small().color(palette.error)).selectable(false).truncate();
        ui.add(label).on_hover_text(text);
    }
    if row.figures.is_ok() && !row.notes.is_empty() {
        let text = match row.notes.len() {
            1 => t!("1 note").to_owned(),
            count => t!("{count} notes", count),
        };
        let text = RichText::new(text).small().color(palette.warning);
        ui.add(Label::new(text).selectable(false)).on_hover_text(row.notes.join("\n"));
    }
}

/// Whether the session holds the rank, or looks at it only.
fn is_open(state: &State, row: &Row) -> bool {
    match &row.origin {
        Origin::Files(files) => state.opened.iter().any(|file| files.contains(&file.path)),
        Origin::Process(id) => state.choices.selection.process == Some(*id),
    }
}

/// The cells of a row.
fn texts(row: &Row) -> [String; 7] {
    let Ok(process) = &row.figures else {
        let empty = String::new;
        return [row.name.clone(), empty(), empty(), empty(), empty(), empty(), row.finding().to_owned()];
    };
    [
        row.name.clone(),
        process.growth_per_step_bytes.map(format_delta_bytes).unwrap_or_default(),
        cells::total(process.survivors),
        process.peak_bytes.map(format_bytes).unwrap_or_default(),
        format_count(process.allocations),
        if process.steps > 0 { format_count(process.steps) } else { String::new() },
        row.finding().to_owned(),
    ]
}
