//! The panel on the left: every file with its kind, span, clock, offset and warnings.

use egui::{Label, RichText, Ui};

use super::command::Command;
use super::empty;
use super::opening::Opening;
use super::scene::Scene;
use crate::align;
use crate::model::time::{format_duration, format_offset};
use crate::model::{AlignmentMethod, Clock, Source, SourceId, SourceKind, format_count};
use crate::text::{say, t};

/// Draws the panel.
pub fn show(ui: &mut Ui, scene: &mut Scene<'_>, opening: Option<&Opening>) {
    if scene.state.looks.is_sources_folded {
        return;
    }
    let size = if ui.available_width() > 1000.0 { 230.0 } else { 180.0 };
    egui::Panel::left("sources").default_size(size).size_range(140.0..=480.0).show(ui, |ui| {
        ui.horizontal(|ui| {
            ui.strong(t!("Sources"));
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                if ui.small_button("×").accessible_name(t!("Close sources")).clicked() {
                    scene.ask(Command::ToggleSources);
                }
            });
        });
        ui.separator();
        egui::ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
            if opening.is_some() {
                empty::show_progress(ui, opening, false, scene.commands);
                ui.separator();
            }
            let data = scene.data;
            for (at, source) in data.session().sources.iter().enumerate() {
                show_source(ui, scene, SourceId(at as u32), source);
                ui.separator();
            }
            for link in &data.session().links {
                let name = |id: SourceId| data.session().source(id).name.as_str();
                ui.add(
                    Label::new(t!(
                        "{matched} of {all} allocations of {trace} found in {snapshot}",
                        matched = format_count(link.matched),
                        all = format_count(link.allocations),
                        trace = name(link.trace),
                        snapshot = name(link.snapshot)
                    ))
                    .wrap(),
                );
            }
        });
    });
}

fn show_source(ui: &mut Ui, scene: &mut Scene<'_>, id: SourceId, source: &Source) {
    let is_hidden = scene.state.looks.hidden_sources.contains(&source.path);
    ui.horizontal(|ui| {
        let mut is_shown = !is_hidden;
        let eye = ui.checkbox(&mut is_shown, "").on_hover_text(t!("Show its curves"));
        if eye.accessible_name(t!("Show {name}", name = source.name)).changed() {
            scene.ask(Command::ToggleSource(source.path.clone()));
        }
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            let close = ui.small_button("×").on_hover_text(t!("Take this file out of the session"));
            if close.accessible_name(t!("Close {name}", name = source.name)).clicked() {
                scene.ask(Command::CloseSource(id));
            }
            ui.with_layout(egui::Layout::left_to_right(egui::Align::Center), |ui| {
                let name = ui.add(Label::new(RichText::new(&source.name).strong()).truncate());
                name.on_hover_text(source.path.display().to_string());
            });
        });
    });
    let events = format_count(source.recording.events);
    let span = source
        .span()
        .map_or_else(String::new, |span| t!(", {duration}", duration = format_duration(span.duration_ns())));
    ui.add(
        Label::new(
            RichText::new(t!(
                "{kind}: {events} events{span}",
                kind = say(source.kind().label()),
                events,
                span
            ))
            .small(),
        )
        .wrap(),
    );
    let alignment = &source.alignment;
    let sure = if alignment.confidence < 1.0 {
        t!(" ({percent}% sure)", percent = format!("{:.0}", alignment.confidence * 100.0))
    } else {
        String::new()
    };
    let clock = t!(
        "clock: {clock}, {method}{sure}",
        clock = say(source.recording.clock.label()),
        method = say(alignment.method.label()),
        sure
    );
    let label = ui.add(Label::new(RichText::new(clock).small().color(scene.palette.weak_text)).wrap());
    if !alignment.evidence.is_empty() {
        label.on_hover_text(&alignment.evidence);
    }
    if source.recording.clock != Clock::Unix || alignment.method == AlignmentMethod::ByHand {
        offset(ui, scene, id, source);
    }
    visible_devices(ui, scene, id, source);
    if alignment.outside > 0 {
        let text = match alignment.outside {
            1 => t!("1 point outside the other sources").to_owned(),
            count => t!("{count} points outside the other sources", count = format_count(count)),
        };
        ui.label(RichText::new(text).small().color(scene.palette.warning));
    }
    recognised(ui, source);
    warnings(ui, scene, source);
}

/// The offset as a value to drag, in seconds. What has no clock to shift is placed from the session's start.
fn offset(ui: &mut Ui, scene: &mut Scene<'_>, id: SourceId, source: &Source) {
    ui.horizontal_wrapped(|ui| {
        let (name, base_ns) = match source.recording.clock {
            Clock::Order | Clock::Relative => {
                let first_ns = source.span().map_or(0, |span| span.start_ns - source.alignment.offset_ns);
                (t!("placed at"), scene.data.span().start_ns.saturating_sub(first_ns))
            }
            Clock::Unix | Clock::LocalWall | Clock::LocalTimeOfDay => (t!("offset"), 0),
        };
        let label = ui.label(RichText::new(name).small());
        let now_ns = source.alignment.offset_ns.saturating_sub(base_ns);
        let key = egui::Id::unique("offset").with(id.0);
        let dragged: Option<f64> = ui.data(|data| data.get_temp(key));
        let mut seconds = dragged.unwrap_or(now_ns as f64 / 1e9);
        let value = egui::DragValue::new(&mut seconds).speed(0.01).max_decimals(3).suffix(" s");
        let response = ui.add(value).labelled_by(label.id).on_hover_text(t!(
            "Added to the file's own times; its first point is at {time}",
            time = source
                .span()
                .map_or_else(String::new, |span| format_offset(span.start_ns, scene.data.span().start_ns))
        ));
        if response.dragged() || response.has_focus() {
            dry_run(ui, scene, id, base_ns.saturating_add((seconds * 1e9) as i64));
        }
        if response.dragged() {
            ui.data_mut(|data| data.insert_temp(key, seconds));
        } else if (response.drag_stopped() || response.changed() || dragged.is_some())
            && !response.has_focus()
        {
            ui.data_mut(|data| data.remove::<f64>(key));
            let offset_ns = (seconds * 1e9) as i64;
            if offset_ns != now_ns {
                scene.ask(Command::SetOffset(id, Some(base_ns.saturating_add(offset_ns))));
            }
        }
        if let Some(lag_ns) = source.alignment.lag_ns {
            let button = ui.small_button(t!("Apply lag")).on_hover_text(t!(
                "Its figures come about {lag} after the allocator's: move it by that much",
                lag = format_duration(lag_ns)
            ));
            if button.clicked() {
                scene.ask(Command::SetOffset(id, Some(source.alignment.offset_ns.saturating_sub(lag_ns))));
            }
        }
        if source.alignment.method == AlignmentMethod::ByHand
            && ui.small_button(t!("Auto")).on_hover_text(t!("Find the offset again")).clicked()
        {
            scene.ask(Command::SetOffset(id, None));
        }
    });
}

/// What the offset under the pointer would do, before it is applied.
fn dry_run(ui: &mut Ui, scene: &Scene<'_>, id: SourceId, offset_ns: i64) {
    let Some(run) = align::dry_run(scene.data.session(), id, offset_ns) else { return };
    let start = format_offset(run.span.start_ns, scene.data.span().start_ns);
    let text = t!(
        "would begin at {start}; {outside} of {points} points outside the others",
        start,
        outside = format_count(run.outside),
        points = format_count(run.points)
    );
    let color = if run.outside > 0 { scene.palette.warning } else { scene.palette.weak_text };
    ui.label(RichText::new(text).small().color(color));
}

/// Which GPUs of a driver's log the run saw, where the log knows several.
fn visible_devices(ui: &mut Ui, scene: &mut Scene<'_>, id: SourceId, source: &Source) {
    let is_drivers = source.kind() == SourceKind::NvidiaSmi;
    if !is_drivers || source.recording.devices.len() < 2 {
        return;
    }
    let chosen = scene.state.choices.placement.visible_devices.get(&source.path);
    let now = chosen
        .map_or_else(String::new, |devices| devices.iter().map(i8::to_string).collect::<Vec<_>>().join(","));
    ui.horizontal(|ui| {
        let label = ui.label(RichText::new(t!("visible devices")).small());
        let key = egui::Id::unique("visible devices").with(id.0);
        let mut text: String = ui.data(|data| data.get_temp(key)).unwrap_or_else(|| now.clone());
        let field = egui::TextEdit::singleline(&mut text).desired_width(70.0).hint_text("0,1,…");
        let response = ui.add(field).labelled_by(label.id).on_hover_text(
            t!("The GPUs of this log that the run saw, as CUDA_VISIBLE_DEVICES lists them: 2,3 when its cuda:0 is GPU 2"),
        );
        if response.has_focus() {
            ui.data_mut(|data| data.insert_temp(key, text));
        } else if response.lost_focus() {
            ui.data_mut(|data| data.remove::<String>(key));
            let devices: Option<Vec<i8>> =
                text.split(',').map(str::trim).filter(|one| !one.is_empty()).map(|one| one.parse().ok()).collect();
            if let Some(devices) = devices
                && text.trim() != now
            {
                scene.ask(Command::SetVisibleDevices(id, devices));
            }
        }
    });
}

/// What a log was read by: the words or the pattern, and the first lines that have them.
fn recognised(ui: &mut Ui, source: &Source) {
    let facts = &source.recording.facts;
    let lines: Vec<&str> =
        facts.iter().filter(|(name, _)| name == "recognised").map(|(_, text)| text.as_str()).collect();
    if lines.is_empty() {
        return;
    }
    let title = RichText::new(t!("What was recognised")).small();
    egui::CollapsingHeader::new(title).id_salt(("recognised", &source.path)).show(ui, |ui| {
        if let Some((_, words)) = facts.iter().find(|(name, _)| name == "pattern") {
            ui.add(Label::new(RichText::new(t!("by: {words}", words)).small()).wrap());
        }
        for line in lines {
            ui.add(Label::new(RichText::new(line).small()).wrap());
        }
        ui.weak(RichText::new(t!("View > Settings sets a pattern of your own.")).small());
    });
}

fn warnings(ui: &mut Ui, scene: &Scene<'_>, source: &Source) {
    let lost = source.recording.lost;
    let mut texts: Vec<String> =
        source.recording.warnings.iter().map(|warning| warning.text.clone()).collect();
    if lost.events > 0 && texts.is_empty() {
        texts.push(t!("{count} events could not be read", count = format_count(lost.events)));
    }
    if texts.is_empty() {
        return;
    }
    let title = match texts.len() {
        1 => t!("1 warning").to_owned(),
        count => t!("{count} warnings", count),
    };
    let title = RichText::new(title).small().color(scene.palette.warning);
    egui::CollapsingHeader::new(title).id_salt(&source.path).show(ui, |ui| {
        for text in texts {
            ui.add(Label::new(RichText::new(text).small()).wrap());
        }
    });
}
