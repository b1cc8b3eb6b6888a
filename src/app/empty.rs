//! Before anything is open: what to drop, how to record it, samples, and progress.

use egui::{Align2, Context, RichText, Ui};

use super::command::Command;
use super::opening::Opening;
use super::settings::Settings;
use super::state::Dialog;
use crate::text::{msg, say, t};

/// The samples: folder and words.
pub const SAMPLES: [(&str, &str); 2] = [
    ("val_without_no_grad", msg!("Sample: a validation loop that leaks")),
    ("healthy", msg!("Sample: a healthy run")),
];

/// How each kind of file is made: what, what it tells, the code.
const RECIPES: &[(&str, &str, &str)] = &[
    (
        msg!("Memory snapshot"),
        msg!("every allocation with its Python stack"),
        "torch.cuda.memory._record_memory_history()\n# … train some steps …\ntorch.cuda.memory._dump_snapshot(\"snapshot.pickle\")",
    ),
    (
        msg!("Profiler trace"),
        msg!("ops, shapes, modules and steps"),
        "with torch.profiler.profile(profile_memory=True, with_stack=True,\n                            record_shapes=True, with_modules=True) as p:\n    …  # train some steps, p.step() after each\np.export_chrome_trace(\"trace.json.gz\")",
    ),
    (
        msg!("nvidia-smi log"),
        msg!("what the driver sees, per GPU and per process"),
        "nvidia-smi --query-gpu=timestamp,index,memory.used,memory.total --format=csv -lms 200 > gpu.csv",
    ),
    (
        msg!("Anything else"),
        msg!("memory summaries, training logs with printed memory figures, py-spy stacks"),
        "print(torch.cuda.memory_summary())",
    ),
];

/// Draws the empty window, or how far opening is.
pub fn show(
    ui: &mut Ui,
    settings: &Settings,
    opening: Option<&Opening>,
    is_building: bool,
    commands: &mut Vec<Command>,
) {
    egui::CentralPanel::default().show(ui, |ui| {
        egui::ScrollArea::vertical().show(ui, |ui| {
            ui.vertical_centered(|ui| {
                ui.set_max_width(760.0);
                ui.add_space(28.0);
                if opening.is_some() || is_building {
                    ui.heading(t!("Opening"));
                    ui.add_space(12.0);
                    show_progress(ui, opening, is_building, commands);
                    return;
                }
                ui.label(RichText::new(t!("What is holding your GPU memory?")).size(26.0).strong());
                ui.add_space(8.0);
                ui.label(t!("Drop the files that a run left behind, or its folder. Files of one run belong together: they share one time axis."));
                if std::env::var_os("WAYLAND_DISPLAY").is_some_and(|value| !value.is_empty()) {
                    ui.label(RichText::new(t!("Under Wayland files can't be dropped yet: use Open, a path, or arguments on the command line.")).weak());
                }
                ui.add_space(14.0);
                ui.horizontal_wrapped(|ui| {
                    if ui.button(t!("Open files…")).clicked() {
                        commands.push(Command::AskForFiles);
                    }
                    if ui.button(t!("Open folder…")).clicked() {
                        commands.push(Command::AskForFolder);
                    }
                    if ui.button(t!("Open path…")).clicked() {
                        commands.push(Command::ShowDialog(Dialog::OpenPath(String::new())));
                    }
                    for (name, text) in SAMPLES {
                        if ui.button(say(text)).clicked() {
                            commands.push(Command::OpenSample(name));
                        }
                    }
                });
                recent(ui, settings, commands);
                ui.add_space(18.0);
                for (what, tells, code) in RECIPES {
                    recipe(ui, say(what), say(tells), code, commands);
                }
            });
        });
    });
}

fn recent(ui: &mut Ui, settings: &Settings, commands: &mut Vec<Command>) {
    if settings.recent.is_empty() {
        return;
    }
    ui.add_space(10.0);
    ui.horizontal_wrapped(|ui| {
        ui.label(t!("Recent"));
        for path in settings.recent.iter().take(6) {
            let name = path
                .file_name()
                .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into());
            if ui.link(name).on_hover_text(path.display().to_string()).clicked() {
                commands.push(Command::Open(vec![path.clone()]));
            }
        }
    });
}

fn recipe(ui: &mut Ui, what: &str, tells: &str, code: &str, commands: &mut Vec<Command>) {
    let layout = egui::Layout::top_down(egui::Align::LEFT);
    ui.group(|ui| {
        ui.with_layout(layout, |ui| {
            ui.set_min_width(ui.available_width());
            ui.horizontal_wrapped(|ui| {
                ui.strong(what);
                ui.weak(tells);
                ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                    if ui.small_button(t!("Copy")).accessible_name(t!("Copy: {what}", what)).clicked() {
                        commands.push(Command::Copy(code.to_owned()));
                    }
                });
            });
            ui.add(egui::Label::new(RichText::new(code).monospace()).wrap().selectable(true));
        })
    });
}

/// How far each file is, with a way to stop it.
pub fn show_progress(ui: &mut Ui, opening: Option<&Opening>, is_building: bool, commands: &mut Vec<Command>) {
    if let Some(opening) = opening {
        let open: Vec<_> = opening.files.iter().enumerate().filter(|(_, file)| !file.is_done).collect();
        for &(at, file) in open.iter().take(12) {
            ui.horizontal(|ui| {
                let cancel = ui.small_button("×").on_hover_text(t!("Stop reading this file"));
                if cancel.accessible_name(t!("Cancel {name}", name = file.name())).clicked() {
                    commands.push(Command::CancelFile(at));
                }
                let bar = egui::ProgressBar::new(file.progress.share()).show_percentage();
                ui.add(bar.desired_width(120.0));
                ui.add(egui::Label::new(file.name()).truncate());
            });
        }
        if open.len() > 12 {
            ui.label(t!("and {count} more", count = open.len() - 12));
        }
        if open.len() > 1 && ui.button(t!("Cancel all")).clicked() {
            commands.push(Command::CancelAll);
        }
    }
    if is_building {
        ui.label(t!("Putting the files on one time axis"));
    }
}

/// Says that files can be dropped while they hover over the window.
pub fn show_drop_hint(ctx: &Context) {
    let hovered = ctx.input(|input| input.raw.hovered_files.len());
    if hovered == 0 {
        return;
    }
    let layer = egui::LayerId::new(egui::Order::Foreground, egui::Id::unique("drop hint"));
    let painter = ctx.layer_painter(layer);
    let rect = ctx.content_rect();
    painter.rect_filled(rect, 0, egui::Color32::from_black_alpha(200));
    let text = if hovered == 1 {
        t!("Drop to add this to the session")
    } else {
        t!("Drop to add these to the session")
    };
    let font = egui::FontId::proportional(24.0);
    painter.text(rect.center(), Align2::CENTER_CENTER, text, font, egui::Color32::WHITE);
}
