//! Messages that come up at the bottom right and go by themselves; errors stay until they are closed or the next files
//! are opened.

use std::time::Duration;

use egui::{Align2, Context, RichText};

use super::command::Command;
use super::state::{State, Tone};
use super::theme::Palette;
use crate::text::t;

const SHOWN_S: f64 = 6.0;
const MAX_SHOWN: usize = 4;

/// Draws the messages that are still to be seen.
pub fn show(ctx: &Context, state: &State, commands: &mut Vec<Command>) {
    let now_s = ctx.input(|input| input.time);
    let shown: Vec<_> = state
        .messages
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, message)| message.is_shown)
        .take(MAX_SHOWN)
        .collect();
    if shown.is_empty() {
        return;
    }
    egui::Area::new(egui::Id::unique("messages")).anchor(Align2::RIGHT_BOTTOM, [-12.0, -12.0]).show(
        ctx,
        |ui| {
            ui.set_max_width(420.0);
            for (at, message) in shown {
                if message.tone != Tone::Error {
                    if now_s - message.at_s > SHOWN_S {
                        commands.push(Command::Dismiss(at));
                        continue;
                    }
                    ctx.request_repaint_after(Duration::from_secs(1));
                }
                let palette = Palette::of(ui.visuals());
                let (word, color) = match message.tone {
                    Tone::Good => ("", palette.good),
                    Tone::Warning => (t!("Note: "), palette.warning),
                    Tone::Error => (t!("Error: "), palette.error),
                };
                egui::Frame::popup(ui.style()).show(ui, |ui| {
                    ui.horizontal_top(|ui| {
                        if ui.small_button("×").accessible_name(t!("Close message")).clicked() {
                            commands.push(Command::Dismiss(at));
                        }
                        ui.add(
                            egui::Label::new(RichText::new(format!("{word}{}", message.text)).color(color))
                                .wrap(),
                        );
                    });
                });
            }
        },
    );
}
