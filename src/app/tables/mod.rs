//! The tabs below the tracks.

mod cells;
mod compare;
mod findings;
mod groups;
mod nets;
pub mod ranks;
mod rows;
mod segments;
mod sheet;
mod sql;
mod stacks;

use egui::Ui;

pub use sheet::Sheet;

use super::answers::Lens;
use super::command::Command;
use super::filter::Filter;
use super::scene::Scene;
use super::state::{LiveView, Looks, NetView, State, Tab};
use super::theme::Palette;
use crate::analysis::{FreeBy, GroupBy};
use crate::model::time::format_offset;
use crate::model::{format_bytes, format_count};
use crate::text::{say, t};

/// Draws the tabs and the one in front.
pub fn show(ui: &mut Ui, scene: &mut Scene<'_>) {
    ui.add_space(4.0);
    ui.horizontal_wrapped(|ui| {
        for tab in Tab::ALL.into_iter().filter(|&tab| scene.state.has_tab(tab)) {
            let text = match tab {
                Tab::Findings if scene.state.answers.has_findings => {
                    format!("{} ({})", tab.label(), scene.state.answers.findings.len())
                }
                _ => tab.label().to_owned(),
            };
            let is_front = tab == scene.state.tab;
            let name = t!("Tab {name}", name = tab.label());
            if ui.selectable_label(is_front, text).accessible_name(name).clicked() {
                scene.ask(Command::ShowTab(tab));
            }
        }
        ui.separator();
        choices(ui, scene);
    });
    ui.add_space(2.0);
    match scene.state.tab {
        Tab::Kept => {
            let kept = scene.state.answers.kept.clone();
            let words = scene.state.choices.free_by.label();
            ui.label(t!(
                "{bytes} in {count} allocations {words}",
                bytes = format_bytes(kept.bytes),
                count = counts(&kept),
                words
            ));
            show_lens(ui, scene, &kept);
        }
        Tab::Live => {
            let live = scene.state.answers.live.clone();
            let at_ns = scene.state.answers.live_at_ns.unwrap_or_default();
            let at = format_offset(at_ns, scene.data.span().start_ns);
            let why = if scene.state.cursor_ns.is_some() {
                t!("where you clicked")
            } else {
                t!("the peak; click a track for another instant")
            };
            let bytes = format_bytes(live.bytes);
            let start =
                format_offset(scene.state.range_or_all(scene.data).start_ns, scene.data.span().start_ns);
            let which = match scene.state.live_view {
                LiveView::All => t!("alive at {at}, {why}", at, why),
                LiveView::Added => t!("alive at {at} and not at the range's start, {start}", at, start),
                LiveView::Gone => t!("alive at the range's start, {start}, and not at {at}", start, at),
            };
            ui.label(t!(
                "{bytes} in {count} allocations {words}",
                bytes,
                count = counts(&live),
                words = which
            ));
            categories(ui, scene);
            show_lens(ui, scene, &live);
        }
        Tab::Net => nets::show(ui, scene),
        Tab::Compare => compare::show(ui, scene),
        Tab::Stacks => stacks::show(ui, scene),
        Tab::Segments => segments::show(ui, scene),
        Tab::Sql => sql::show(ui, scene),
        Tab::Findings => findings::show(ui, scene),
        Tab::Ranks => ranks::show(ui, scene.state, scene.commands),
    }
}

/// What the live set is for, as far as it can be inferred.
fn categories(ui: &mut Ui, scene: &Scene<'_>) {
    if scene.state.answers.live_categories.is_empty() {
        return;
    }
    ui.horizontal_wrapped(|ui| {
        for (category, totals) in &scene.state.answers.live_categories {
            let text = format!("{} {}", say(category.label()), format_bytes(totals.bytes));
            ui.weak(text).on_hover_text(t!(
                "{count} allocations; inferred: {rule}",
                count = format_count(totals.count),
                rule = category.rule()
            ));
        }
    });
}

/// How many rows there are, and of how many when they are filtered.
fn counts(lens: &Lens) -> String {
    let shown = format_count(lens.rows.len() as u64);
    if lens.rows.len() == lens.unfiltered {
        return shown;
    }
    t!("{shown} (of {all}, filtered)", shown, all = format_count(lens.unfiltered as u64))
}

fn show_lens(ui: &mut Ui, scene: &mut Scene<'_>, lens: &Lens) {
    if lens.rows.is_empty() {
        ui.add_space(8.0);
        ui.weak(match (lens.unfiltered, scene.state.tab) {
            (0, Tab::Live) => t!("Nothing was alive at this instant."),
            (0, _) => t!("Nothing: all that was allocated in the range was freed."),
            _ => t!("Nothing passes the filter."),
        });
    } else if scene.state.is_flat {
        cells::scrolled(ui, |ui| rows::show(ui, scene, lens));
    } else {
        cells::scrolled(ui, |ui| groups::show(ui, scene, lens));
    }
}

/// What the tab in front is grouped and filtered by.
fn choices(ui: &mut Ui, scene: &mut Scene<'_>) {
    let tab = scene.state.tab;
    if matches!(tab, Tab::Findings | Tab::Segments | Tab::Sql) {
        return;
    }
    if matches!(tab, Tab::Kept | Tab::Stacks) {
        free_by(ui, scene);
    }
    if tab == Tab::Stacks {
        return;
    }
    let has_flat = matches!(tab, Tab::Kept | Tab::Live);
    let is_flat = scene.state.is_flat && has_flat;
    if tab == Tab::Net {
        for (view, text) in [
            (NetView::Groups, t!("Groups")),
            (NetView::Modules, t!("Module tree")),
            (NetView::Driver, t!("Driver")),
        ] {
            if ui.selectable_label(scene.state.net_view == view, text).clicked() {
                scene.ask(Command::SetNetView(view));
            }
        }
        if scene.state.net_view != NetView::Groups {
            return;
        }
    }
    if tab == Tab::Live {
        for (view, text, hint) in [
            (LiveView::All, t!("All"), t!("All that is alive at the instant")),
            (LiveView::Added, t!("New"), t!("Alive at the instant, but not at the range's start")),
            (LiveView::Gone, t!("Gone"), t!("Alive at the range's start, but not at the instant")),
        ] {
            if ui.selectable_label(scene.state.live_view == view, text).on_hover_text(hint).clicked() {
                scene.ask(Command::SetLiveView(view));
            }
        }
        ui.separator();
    }
    if has_flat {
        if ui.selectable_label(!is_flat, t!("Groups")).clicked() {
            scene.ask(Command::SetFlat(false));
        }
        if ui.selectable_label(is_flat, t!("Allocations")).clicked() {
            scene.ask(Command::SetFlat(true));
        }
    }
    if !is_flat && tab != Tab::Ranks {
        group_by(ui, scene);
    }
    let columns = match (tab, is_flat) {
        (Tab::Ranks, _) => Some((ranks::TABLE, cells::names(&ranks::COLUMNS))),
        (Tab::Net, _) => None,
        (Tab::Compare, _) => Some((compare::TABLE, cells::names(&compare::COLUMNS))),
        (_, true) => Some((rows::TABLE, cells::names(&rows::COLUMNS))),
        (_, false) => Some((groups::TABLE, cells::names(&groups::COLUMNS))),
    };
    table_menu(ui, &scene.state.looks, columns, scene.commands);
    filter(ui, scene.state, scene.commands);
}

/// Columns to show, and the table as a whole to copy or save.
fn table_menu(
    ui: &mut Ui,
    looks: &Looks,
    columns: Option<(&'static str, Vec<&'static str>)>,
    commands: &mut Vec<Command>,
) {
    ui.menu_button(t!("Table"), |ui| {
        for (table, name) in
            columns.iter().flat_map(|(table, names)| names.iter().map(|name| (*table, *name)))
        {
            let mut is_shown = !looks.hidden_columns.contains(&(table, name));
            if ui.checkbox(&mut is_shown, say(name)).changed() {
                commands.push(Command::ToggleColumn(table, name));
            }
        }
        if columns.is_some() {
            ui.separator();
        }
        for (text, command) in
            [(t!("Copy table"), Command::CopyTable), (t!("Save table as CSV…"), Command::AskToSaveTable)]
        {
            if ui.button(text).clicked() {
                commands.push(command);
                ui.close();
            }
        }
    });
}

fn free_by(ui: &mut Ui, scene: &mut Scene<'_>) {
    let now = scene.state.choices.free_by;
    let mut chosen = now;
    let short = match now {
        FreeBy::RecordingEnd => t!("not freed by recording end"),
        FreeBy::RangeEnd => t!("not freed by range end"),
    };
    let combo = egui::ComboBox::from_id_salt("free by").selected_text(short).width(180.0).show_ui(ui, |ui| {
        for free_by in [FreeBy::RecordingEnd, FreeBy::RangeEnd] {
            ui.selectable_value(&mut chosen, free_by, free_by.label());
        }
    });
    combo.response.accessible_name(t!("What never freed means"));
    if chosen != now {
        scene.ask(Command::SetFreeBy(chosen));
    }
}

fn group_by(ui: &mut Ui, scene: &mut Scene<'_>) {
    let now = scene.state.choices.group_by;
    let mut chosen = now;
    let text = t!("by {group}", group = now.label());
    let combo = egui::ComboBox::from_id_salt("group by").selected_text(text).width(90.0).show_ui(ui, |ui| {
        for by in GroupBy::ALL {
            ui.selectable_value(&mut chosen, by, t!("by {group}", group = by.label()));
        }
    });
    combo.response.accessible_name(t!("Group by"));
    if chosen != now {
        scene.ask(Command::SetGroupBy(chosen));
    }
}

fn filter(ui: &mut Ui, state: &State, commands: &mut Vec<Command>) {
    let mut text = state.choices.filter.clone();
    let field = egui::TextEdit::singleline(&mut text).desired_width(150.0).hint_text(t!("Filter"));
    let response = ui.add(field).accessible_name(t!("Filter"));
    if state.wants_filter_focus {
        response.request_focus();
        commands.push(Command::FilterFocused);
    }
    if response.changed() {
        commands.push(Command::SetFilter(text.clone()));
    }
    response
        .on_hover_text(t!("Words that must be there, -word that must not, /regular expression/ (Ctrl+F)"));
    if let Err(error) = Filter::parse(&text) {
        ui.colored_label(Palette::of(ui.visuals()).error, error);
    }
}
