//! The panel on the right: all that is known of what is selected.

use egui::{Label, RichText, Ui};

use super::command::Command;
use super::scene::Scene;
use super::state::{Selected, Tab};
use crate::analysis::findings::Finding;
use crate::analysis::{FrameOrigin, Group, RowRef, Side, label_words, more_frames};
use crate::model::time::{format_duration, format_offset, format_unix};
use crate::model::{
    Allocation, AllocationFlags, BEFORE_NS, NEVER_NS, Phase, ProcessId, StackId, Stacks, format_bytes,
    format_bytes_exact, format_count, format_delta_bytes,
};
use crate::text::t;

/// So many of several allocations are listed.
const MAX_LISTED: usize = 50;

/// Draws the panel.
pub fn show(ui: &mut Ui, scene: &mut Scene<'_>) {
    let wide = ui.available_width() > 950.0;
    // In a narrow window an empty panel would only take room.
    if scene.state.looks.is_details_folded || (!wide && scene.state.selected.is_none()) {
        return;
    }
    let size = if wide { 300.0 } else { 220.0 };
    egui::Panel::right("details").default_size(size).size_range(160.0..=560.0).show(ui, |ui| {
        ui.horizontal(|ui| {
            ui.strong(t!("Details"));
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                if ui.small_button("×").accessible_name(t!("Close details")).clicked() {
                    scene.ask(Command::ToggleDetails);
                }
            });
        });
        ui.separator();
        let mut area = egui::ScrollArea::vertical().auto_shrink(false);
        if is_another(ui, scene) {
            area = area.vertical_scroll_offset(0.0);
        }
        area.show(ui, |ui| match scene.state.selected.clone() {
            Some(Selected::Row(row)) => allocation(ui, scene, row),
            Some(Selected::Rows(rows)) => allocations(ui, scene, &rows),
            Some(Selected::Group(key)) => match find_group(scene, &key) {
                Some(found) => group(ui, scene, &found),
                None => {
                    ui.weak(t!("The selected group has nothing in this range."));
                }
            },
            Some(Selected::Difference(key)) => difference(ui, scene, &key),
            Some(Selected::Finding(at)) => {
                let findings = scene.state.answers.findings.clone();
                match findings.get(at) {
                    Some(found) => finding(ui, scene, found),
                    None => {
                        ui.weak(t!("Not found in this range."));
                    }
                }
            }
            Some(Selected::Rank(_)) | None => {
                ui.weak(t!("Select a row in a table to see its stack, op and shapes here."));
            }
        });
    });
}

/// Whether something else was shown in the frame before.
fn is_another(ui: &Ui, scene: &Scene<'_>) -> bool {
    let id = egui::Id::unique("details of");
    let now = &scene.state.selected;
    let before: Option<Selected> = ui.data(|data| data.get_temp(id)).flatten();
    if before == *now {
        return false;
    }
    ui.data_mut(|data| data.insert_temp(id, now.clone()));
    true
}

fn find_group(scene: &Scene<'_>, key: &str) -> Option<Group> {
    let answers = &scene.state.answers;
    let lens = if scene.state.tab == Tab::Live { &answers.live } else { &answers.kept };
    lens.groups.iter().find(|group| group.key == key).cloned()
}

fn allocation(ui: &mut Ui, scene: &mut Scene<'_>, row: RowRef) {
    let data = scene.data;
    let session = data.session();
    let allocation: Allocation = row.get(session);
    let process = session.process(row.process);
    let start_ns = session.span.start_ns;
    ui.label(RichText::new(format_bytes(allocation.size_bytes)).size(20.0).strong());
    let op_label = data.index.label(data.index.op(row.process, allocation.op, allocation.stack));
    ui.add(Label::new(RichText::new(label_words(op_label)).strong()).wrap());
    ui.horizontal_wrapped(|ui| {
        if ui.button(t!("Show in tracks")).clicked() {
            scene.ask(Command::RevealSelected);
        }
        if ui.button(t!("Copy stack")).clicked() {
            scene.ask(Command::Copy(data.index.stack_lines(row.process, allocation.stack).join("\n")));
        }
    });
    let when = |time_ns: i64| format!("{} · {}", format_offset(time_ns, start_ns), format_unix(time_ns));
    let mut facts: Vec<(&str, String)> = vec![
        (t!("Requested"), format_bytes_exact(allocation.size_bytes)),
        (t!("Address"), format!("{:#x}", allocation.address)),
        (
            t!("Device"),
            t!(
                "{device}, stream {stream}",
                device = allocation.device,
                stream = format!("{:#x}", allocation.stream)
            ),
        ),
        (t!("Process"), process.label.clone()),
    ];
    if allocation.rounded_bytes > 0 {
        facts.insert(1, (t!("Takes"), format_bytes_exact(allocation.rounded_bytes)));
    }
    facts.push((
        t!("Allocated"),
        match allocation.alloc_ns {
            BEFORE_NS => t!("before the recording began").to_owned(),
            time_ns => when(time_ns),
        },
    ));
    facts.push((
        t!("Freed"),
        match (allocation.free_requested_ns, allocation.free_completed_ns) {
            (NEVER_NS, NEVER_NS) => t!("not by the end of the recording").to_owned(),
            (asked_ns, NEVER_NS) => {
                t!("asked for at {time}, still waits for a stream", time = format_offset(asked_ns, start_ns))
            }
            (_, time_ns) => when(time_ns),
        },
    ));
    if allocation.alloc_ns != BEFORE_NS && allocation.free_completed_ns != NEVER_NS {
        let lifetime_ns = allocation.free_completed_ns.saturating_sub(allocation.alloc_ns);
        facts.push((t!("Lifetime"), format_duration(lifetime_ns)));
    }
    if let Some(step) = process.steps.get(allocation.step as usize) {
        facts.push((t!("Step"), step.number.to_string()));
    }
    facts.extend(op_facts(scene, row.process, &allocation));
    for (flag, text) in [
        (AllocationFlags::LINKED, t!("seen by trace and snapshot")),
        (AllocationFlags::TRACE_ONLY, t!("known from the trace alone")),
        (AllocationFlags::GUESSED_PAIR, t!("alloc and free paired by size and order")),
        (AllocationFlags::FREE_LOST, t!("its free was not recorded")),
    ] {
        if allocation.flags.contains(flag) {
            facts.push((t!("Evidence"), text.to_owned()));
        }
    }
    table(ui, scene, "facts", &facts);
    stack(ui, scene, row.process, allocation.stack);
}

/// Several allocations: their sum, and each to look at alone.
fn allocations(ui: &mut Ui, scene: &mut Scene<'_>, rows: &[RowRef]) {
    let index = scene.data.index.clone();
    let size = |row: &RowRef| row.get(&index.session).size_bytes;
    let bytes = rows.iter().map(size).fold(0, u64::saturating_add);
    ui.label(RichText::new(format_bytes(bytes)).size(20.0).strong());
    ui.strong(t!("{count} allocations selected", count = format_count(rows.len() as u64)));
    if ui.button(t!("Show in tracks")).clicked() {
        scene.ask(Command::RevealSelected);
    }
    ui.add_space(6.0);
    for &row in rows.iter().take(MAX_LISTED) {
        let allocation = row.get(&index.session);
        let call_site = label_words(index.label(index.call_site(row.process, allocation.stack)));
        let text = format!("{}  {call_site}", format_bytes(allocation.size_bytes));
        let button = ui.add(egui::Button::new(text).wrap()).on_hover_text(t!("See it alone"));
        if button.clicked() {
            scene.ask(Command::Select(Some(Selected::Row(row))));
        }
    }
    if rows.len() > MAX_LISTED {
        ui.weak(t!("and {count} more", count = format_count((rows.len() - MAX_LISTED) as u64)));
    }
}

fn op_facts(scene: &Scene<'_>, process: ProcessId, allocation: &Allocation) -> Vec<(&'static str, String)> {
    let Some(op) = scene.data.index.op_details(process, allocation.op) else { return Vec::new() };
    let strings = &scene.data.session().process(process).strings;
    let phase = match op.phase {
        Phase::Unknown => "",
        Phase::Forward => t!("forward"),
        Phase::Backward => t!("backward"),
        Phase::Optimizer => t!("optimizer"),
    };
    let from_stack = if op.is_from_stack { t!("read from the Python stack") } else { "" };
    let mut facts: Vec<(&'static str, String)> = [
        (t!("Outer op"), op.outer),
        (t!("Forward op"), op.forward),
        (t!("Shapes"), op.shapes),
        (t!("Types"), op.dtypes),
        (t!("Tensor"), op.inferred_tensor),
        (t!("Why"), op.inferred_rule),
        (t!("Module"), op.module),
        (t!("Annotation"), op.annotation),
    ]
    .into_iter()
    .map(|(name, id)| (name, strings.get(id).to_owned()))
    .collect();
    facts.push((t!("Phase"), phase.to_owned()));
    facts.push((t!("Op"), from_stack.to_owned()));
    facts.retain(|(_, text)| !text.is_empty());
    facts
}

fn group(ui: &mut Ui, scene: &mut Scene<'_>, group: &Group) {
    ui.label(RichText::new(format_bytes(group.bytes)).size(20.0).strong());
    ui.add(Label::new(RichText::new(label_words(&group.key)).strong()).wrap());
    let mut facts = vec![
        (t!("Bytes"), format_bytes_exact(group.bytes)),
        (t!("Count"), format_count(group.count)),
        (t!("Call site"), label_words(&group.call_site).into_owned()),
    ];
    if let Some((first, last)) = group.steps {
        facts.push((
            t!("Steps"),
            if first == last { first.to_string() } else { t!("{first} to {last}", first, last) },
        ));
        if group.per_step_bytes > 0 {
            facts.push((t!("Per step"), format_bytes(group.per_step_bytes)));
        }
    }
    facts.push((t!("Ops"), group.ops.iter().map(|op| label_words(op)).collect::<Vec<_>>().join(", ")));
    table(ui, scene, "group facts", &facts);
    ui.horizontal_wrapped(|ui| {
        if ui.button(t!("Copy stack")).clicked() {
            scene.ask(Command::Copy(scene.data.index.stack_lines(group.stack.0, group.stack.1).join("\n")));
        }
    });
    stack(ui, scene, group.stack.0, group.stack.1);
}

/// A call site on both sides of the comparison.
fn difference(ui: &mut Ui, scene: &mut Scene<'_>, key: &str) {
    let comparison = scene.state.answers.comparison.clone();
    let found = comparison.iter().flat_map(|it| &it.differences).find(|it| it.call_site == key);
    let Some(found) = found else {
        ui.weak(t!("Both sides have the same of it."));
        return;
    };
    ui.label(RichText::new(format_delta_bytes(found.delta_bytes())).size(20.0).strong());
    ui.add(Label::new(RichText::new(label_words(key)).strong()).wrap());
    let side = |side: &Side| {
        t!(
            "{size} in {count}",
            size = format_bytes_exact(side.totals.bytes),
            count = format_count(side.totals.count)
        )
    };
    let mut facts = vec![(t!("In B"), side(&found.after)), (t!("In A"), side(&found.before))];
    for (name, side) in [(t!("Per step in B"), &found.after), (t!("Per step in A"), &found.before)] {
        if side.per_step_bytes > 0 {
            facts.push((name, format_bytes(side.per_step_bytes)));
        }
    }
    table(ui, scene, "difference facts", &facts);
    if ui.button(t!("Copy stack")).clicked() {
        scene.ask(Command::Copy(found.stack.join("\n")));
    }
    ui.add_space(8.0);
    ui.strong(t!("The stack that holds most of it"));
    for line in found.stack.iter() {
        ui.add(Label::new(RichText::new(line).monospace().size(11.5)).wrap().selectable(true));
    }
}

fn finding(ui: &mut Ui, scene: &mut Scene<'_>, finding: &Finding) {
    ui.add(Label::new(RichText::new(&finding.title).size(16.0).strong()).wrap());
    ui.horizontal_wrapped(|ui| {
        if ui.button(t!("Show its range")).clicked() {
            scene.ask(Command::RevealSelected);
        }
        if ui.button(t!("Copy")).clicked() {
            scene.ask(Command::Copy(text_of(finding)));
        }
    });
    let mut facts = vec![
        (t!("Holds"), format_bytes_exact(finding.bytes)),
        (t!("Confidence"), format!("{:.0}%", finding.confidence * 100.0)),
    ];
    if finding.per_step_bytes > 0 {
        facts.push((t!("Per step"), format_bytes(finding.per_step_bytes)));
    }
    table(ui, scene, "finding facts", &facts);
    let places: Vec<_> = finding.call_sites.iter().map(|site| label_words(site)).collect();
    section(ui, t!("Where"), &places.join("\n"));
    section(ui, t!("What to change"), &finding.advice);
    for (title, code) in [(t!("Before"), &finding.code_before), (t!("After"), &finding.code_after)] {
        if !code.is_empty() {
            ui.add_space(6.0);
            ui.weak(title);
            ui.add(Label::new(RichText::new(code).monospace()).wrap());
        }
    }
    section(ui, t!("Why"), &finding.evidence.join("\n"));
    section(ui, t!("What would confirm it"), &finding.confirm);
}

fn text_of(finding: &Finding) -> String {
    let parts = [
        finding.title.clone(),
        finding.call_sites.join("\n"),
        finding.evidence.join("\n"),
        finding.advice.clone(),
        finding.confirm.clone(),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn section(ui: &mut Ui, title: &str, text: &str) {
    if !text.is_empty() {
        ui.add_space(8.0);
        ui.strong(title);
        ui.add(Label::new(text).wrap());
    }
}

fn table(ui: &mut Ui, scene: &Scene<'_>, id: &str, facts: &[(&str, String)]) {
    ui.add_space(6.0);
    egui::Grid::new(id).num_columns(2).spacing([10.0, 4.0]).show(ui, |ui| {
        for (name, text) in facts {
            ui.label(RichText::new(*name).color(scene.palette.weak_text));
            ui.add(Label::new(text).wrap());
            ui.end_row();
        }
    });
}

/// The stack, the user's own frames in bold.
fn stack(ui: &mut Ui, scene: &mut Scene<'_>, process: ProcessId, stack: StackId) {
    let index = scene.data.index.clone();
    let tables = scene.data.session().process(process);
    ui.add_space(8.0);
    ui.strong(t!("Python stack, innermost first"));
    if stack.is_empty() {
        ui.weak(t!("not recorded: work of the autograd thread has none"));
        return;
    }
    let shows_all = scene.state.settings.shows_all_frames;
    let (frames, more) = index.frames_shown(process, stack, shows_all);
    let hidden = tables.stacks.frames(stack).count() - index.frames(process, stack, false).len();
    if hidden > 0 {
        let mut is_on = shows_all;
        if ui
            .checkbox(&mut is_on, t!("Show {count} more C++ frames", count = format_count(hidden as u64)))
            .clicked()
        {
            scene.ask(Command::ToggleAllFrames);
        }
    }
    for frame in frames {
        let is_own = index.user_code.origin(&tables.strings, frame) == FrameOrigin::User;
        let text = RichText::new(Stacks::format_whole_frame(&tables.strings, frame)).monospace().size(11.5);
        let text = if is_own {
            text.strong().color(scene.palette.range_edge)
        } else {
            text.color(scene.palette.weak_text)
        };
        ui.add(Label::new(text).wrap().selectable(true));
    }
    if more > 0 {
        ui.weak(more_frames(more));
    }
}
