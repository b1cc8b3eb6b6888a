//! Diagnoses of the range, the most important first.

use egui::{CursorIcon, Frame, Label, RichText, Role, Sense, Stroke, Ui, UiBuilder, WidgetInfo};

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

/// A card, all of which opens the details.
fn show_one(ui: &mut Ui, scene: &mut Scene<'_>, at: usize, finding: &Finding) {
    let is_selected = scene.state.selected == Some(Selected::Finding(at));
    let card = UiBuilder::new().id_salt(("finding", at)).sense(Sense::click());
    let response = ui
        .scope_builder(card, |ui| {
            let of_card = ui.response();
            let stroke = if is_selected || of_card.has_focus() {
                Stroke::new(2.0, scene.palette.range_edge)
            } else if of_card.hovered() {
                Stroke::new(1.0, scene.palette.outline)
            } else {
                Stroke::new(1.0, scene.palette.grid)
            };
            Frame::group(ui.style()).stroke(stroke).show(ui, |ui| contents(ui, scene, finding));
        })
        .response
        .on_hover_cursor(CursorIcon::PointingHand);
    response.widget_info(|| WidgetInfo::selected(Role::Button, true, is_selected, &finding.title));
    if response.clicked() {
        scene.ask(Command::Select(Some(Selected::Finding(at))));
    }
    if scene.state.row_to_show == Some(at) {
        response.scroll_to_me(None);
    }
}

fn contents(ui: &mut Ui, scene: &Scene<'_>, finding: &Finding) {
    // A click on the words is one on the card; they can be selected in the details.
    ui.style_mut().interaction.selectable_labels = false;
    ui.set_min_width(ui.available_width());
    let word = match finding.severity {
        Severity::Error => t!("Problem"),
        Severity::Warning => t!("Warning"),
        Severity::Info => t!("Note"),
    };
    ui.horizontal_wrapped(|ui| {
        ui.label(RichText::new(word).strong().color(scene.palette.severity(finding.severity)));
        if finding.bytes > 0 {
            ui.strong(format_bytes(finding.bytes));
        }
        ui.add(Label::new(&finding.title).wrap());
    });
    for site in finding.call_sites.iter().take(3) {
        ui.label(RichText::new(label_words(site)).monospace());
    }
    if let Some(first) = finding.evidence.first() {
        ui.weak(first);
    }
    if let Some(first) = finding.advice.lines().next() {
        ui.horizontal(|ui| {
            ui.strong(t!("What to change"));
            ui.add(Label::new(first).truncate());
        });
    }
}
