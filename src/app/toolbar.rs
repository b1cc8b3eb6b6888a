//! The row at the top: open, export, whose memory, theme, help.

use egui::{ThemePreference, Ui};

use super::command::Command;
use super::state::{Dialog, State};
use crate::analysis::DeviceFilter;
use crate::text::{Language, say, t};

/// What stands at the right takes so much.
const RIGHT_POINTS: f32 = 130.0;

/// Draws the row.
pub fn show(ui: &mut Ui, state: &State, commands: &mut Vec<Command>) {
    egui::Panel::top("toolbar").show(ui, |ui| {
        ui.horizontal_wrapped(|ui| {
            menu(ui, state, commands);
            ui.separator();
            if ui.button(t!("Open…")).on_hover_text(t!("Add files to the session (Ctrl+O)")).clicked() {
                commands.push(Command::AskForFiles);
            }
            let export = ui.add_enabled(state.data.is_some(), egui::Button::new(t!("Export report…")));
            if export.on_hover_text(t!("Write what the range keeps (Ctrl+S)")).clicked() {
                commands.push(Command::AskForReport);
            }
            if let Some(data) = &state.data {
                ui.separator();
                selection(ui, state, data, commands);
                ui.separator();
                let growth = ui.button(t!("Suggest growth"));
                if growth.on_hover_text(t!("Brush where memory grows the most (G)")).clicked() {
                    commands.push(Command::SuggestGrowth);
                }
            }
            // Where there is no room at the right they go into the next row, as all others do.
            if ui.available_size_before_wrap().x > RIGHT_POINTS {
                let right = egui::Layout::right_to_left(egui::Align::Center);
                ui.with_layout(right, |ui| theme_and_keys(ui, commands));
            } else {
                theme_and_keys(ui, commands);
            }
        });
    });
}

fn theme_and_keys(ui: &mut Ui, commands: &mut Vec<Command>) {
    if ui.button("?").on_hover_text(t!("Keys (F1)")).accessible_name(t!("Keys")).clicked() {
        commands.push(Command::ShowDialog(Dialog::Keys));
    }
    theme_menu(ui, commands);
}

fn menu(ui: &mut Ui, state: &State, commands: &mut Vec<Command>) {
    let has_data = state.data.is_some();
    ui.menu_button(t!("File"), |ui| {
        let mut item = |ui: &mut Ui, is_enabled: bool, text: &str, keys: &str, command: Command| {
            let button = ui.add_enabled(is_enabled, egui::Button::new(text).shortcut_text(keys));
            if button.accessible_name(text).clicked() {
                commands.push(command);
                ui.close();
            }
        };
        item(ui, true, t!("Open files…"), "Ctrl+O", Command::AskForFiles);
        item(ui, true, t!("Open folder…"), "", Command::AskForFolder);
        item(ui, true, t!("Open path…"), "", Command::ShowDialog(Dialog::OpenPath(String::new())));
        ui.separator();
        for (name, text) in super::empty::SAMPLES {
            item(ui, true, say(text), "", Command::OpenSample(name));
        }
        ui.separator();
        item(ui, has_data, t!("Save session…"), "", Command::AskToSave);
        let has_any = has_data || state.survey.is_some();
        item(ui, has_any, t!("Reload all"), "", Command::Reload);
        item(ui, has_any, t!("Close all"), "", Command::CloseAll);
        item(ui, has_data, t!("Export report…"), "Ctrl+S", Command::AskForReport);
        ui.separator();
        item(ui, true, t!("Quit"), "", Command::Quit);
    });
    ui.menu_button(t!("View"), |ui| {
        let mut item = |ui: &mut Ui, is_enabled: bool, text: &str, keys: &str, command: Command| {
            let button = ui.add_enabled(is_enabled, egui::Button::new(text).shortcut_text(keys));
            if button.accessible_name(text).clicked() {
                commands.push(command);
                ui.close();
            }
        };
        item(ui, state.undo.can_go_back(), t!("Undo"), "Ctrl+Z", Command::Undo);
        item(ui, state.undo.can_go_forward(), t!("Redo"), "Ctrl+Shift+Z", Command::Redo);
        ui.separator();
        item(ui, state.views.can_go_back(), t!("View back"), t!("Alt+Left"), Command::ViewBack);
        item(ui, state.views.can_go_forward(), t!("View forward"), t!("Alt+Right"), Command::ViewForward);
        item(ui, has_data, t!("Fit range"), "F", Command::FitRange);
        item(ui, has_data, t!("Fit everything"), t!("Home"), Command::FitAll);
        item(ui, has_data, t!("Go to peak"), "P", Command::GoToPeak);
        ui.separator();
        item(ui, has_data, t!("Sources panel"), "", Command::ToggleSources);
        item(ui, has_data, t!("Details panel"), "", Command::ToggleDetails);
        item(ui, true, t!("Log…"), "", Command::ShowDialog(Dialog::Log));
        let mut exact = state.settings.exact_bytes;
        if ui.checkbox(&mut exact, t!("Bytes to the last one")).changed() {
            commands.push(Command::ToggleExactBytes);
        }
        if ui.button(t!("Settings…")).clicked() {
            commands.push(Command::AskForSettings);
            ui.close();
        }
        language_menu(ui, state, commands);
    });
    ui.menu_button(t!("Help"), |ui| {
        let keys = ui.add(egui::Button::new(t!("Keys…")).shortcut_text("F1"));
        if keys.accessible_name(t!("Keys…")).clicked() {
            commands.push(Command::ShowDialog(Dialog::Keys));
            ui.close();
        }
        if ui.button(t!("About…")).clicked() {
            commands.push(Command::ShowDialog(Dialog::About));
            ui.close();
        }
    });
}

/// Each language by its own name, and the menu by both: who can't read the one in use finds it.
fn language_menu(ui: &mut Ui, state: &State, commands: &mut Vec<Command>) {
    ui.menu_button("Language · 语言", |ui| {
        let names = Language::ALL.map(|language| (Some(language), language.own_name()));
        for (language, name) in [(None, t!("As the system"))].into_iter().chain(names) {
            if ui.selectable_label(state.settings.language == language, name).clicked() {
                commands.push(Command::SetLanguage(language));
                ui.close();
            }
        }
    });
}

/// Whose memory all tabs look at.
fn selection(ui: &mut Ui, state: &State, data: &super::data::Data, commands: &mut Vec<Command>) {
    let selection = state.choices.selection;
    let processes: Vec<_> = data.process_labels().collect();
    if processes.len() > 1 {
        let name = |id: Option<crate::model::ProcessId>| {
            id.and_then(|id| processes.get(id.0 as usize)).map_or(t!("all processes"), |(_, label)| *label)
        };
        let mut chosen = selection.process;
        let combo = egui::ComboBox::from_id_salt("process").selected_text(name(chosen)).show_ui(ui, |ui| {
            ui.selectable_value(&mut chosen, None, t!("all processes"));
            for (id, label) in &processes {
                ui.selectable_value(&mut chosen, Some(*id), *label);
            }
        });
        combo.response.accessible_name(t!("Process"));
        if chosen != selection.process {
            commands.push(Command::SetSelection(crate::analysis::Selection { process: chosen, ..selection }));
        }
    }
    let name = |filter: DeviceFilter| match filter {
        DeviceFilter::Gpus => t!("all GPUs").to_owned(),
        DeviceFilter::Host => t!("host memory").to_owned(),
        DeviceFilter::All => t!("all memory").to_owned(),
        DeviceFilter::One(device) => device.to_string(),
    };
    let mut chosen = selection.device;
    let combo = egui::ComboBox::from_id_salt("device").selected_text(name(chosen)).show_ui(ui, |ui| {
        for filter in [DeviceFilter::Gpus, DeviceFilter::Host, DeviceFilter::All] {
            ui.selectable_value(&mut chosen, filter, name(filter));
        }
        for device in data.devices() {
            ui.selectable_value(&mut chosen, DeviceFilter::One(device), device.to_string());
        }
    });
    combo.response.accessible_name(t!("Device"));
    if chosen != selection.device {
        commands.push(Command::SetSelection(crate::analysis::Selection { device: chosen, ..selection }));
    }
}

fn theme_menu(ui: &mut Ui, commands: &mut Vec<Command>) {
    let now = ui.options(|options| options.theme_preference);
    let name = |theme: ThemePreference| match theme {
        ThemePreference::Dark => t!("Dark"),
        ThemePreference::Light => t!("Light"),
        ThemePreference::System => t!("As the system"),
    };
    ui.menu_button(t!("Theme"), |ui| {
        for theme in [ThemePreference::System, ThemePreference::Dark, ThemePreference::Light] {
            if ui.selectable_label(now == theme, name(theme)).clicked() {
                commands.push(Command::SetTheme(theme));
                ui.close();
            }
        }
    });
}
