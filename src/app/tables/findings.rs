//! Diagnoses of the range, the most important first.

use egui::{Frame, RichText, Stroke, Ui};

use crate::analysis::findings::{Finding, Severity};
use crate::analysis::label_words;
use crate::app::command::Command;
use crate::app::scene::Scene;
use crate::app::state::Selected;
use crate::model::format_bytes;
use crate::text::t;

/// Draws the list.
pub fn show(ui: &mut Ui, scene: &mut Scene<'_>) {
    let findings = scene.state.answers.findings.clone();
    if !scene.state.answers.has_findings {
        let is_brushing = scene.state.is_brushing;
        ui.weak(if is_brushing {
            t!("Let go of the range to see what is found in it.")
        } else {
            t!("Looking…")
        });
        return;
    }
    if findings.is_empty() {
        ui.label(t!("Nothing stands out in this range."));
        return;
    }
    egui::ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
        for (at, finding) in findings.iter().enumerate() {
            show_one(ui, scene, at, finding);
        }
    });
}

fn show_one(ui: &mut Ui, scene: &mut Scene<'_>, at: usize, finding: &Finding) {
    let is_selected = scene.state.selected == Some(Selected::Finding(at));
    let word = match finding.severity {
        Severity::Error => t!("Problem"),
        Severity::Warning => t!("Warning"),
        Severity::Info => t!("Note"),
    };
    let stroke = if is_selected {
        Stroke::new(2.0, scene.palette.range_edge)
    } else {
        Stroke::new(1.0, scene.palette.grid)
    };
    Frame::group(ui.style()).stroke(stroke).show(ui, |ui| {
        ui.set_min_width(ui.available_width());
        ui.horizontal_wrapped(|ui| {
            ui.label(RichText::new(word).strong().color(scene.palette.severity(finding.severity)));
            if finding.bytes > 0 {
                ui.strong(format_bytes(finding.bytes));
            }
            if ui.add(egui::Button::selectable(is_selected, &finding.title).wrap()).clicked() {
                scene.ask(Command::Select(Some(Selected::Finding(at))));
            }
        });
        for site in finding.call_sites.iter().take(3) {
            ui.label(RichText::new(label_words(site)).monospace());
        }
        if let Some(first) = finding.evidence.first() {
            ui.weak(first);
        }
    });
}
