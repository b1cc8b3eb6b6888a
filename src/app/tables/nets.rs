//! What each module, op or step added in the range; the modules as a tree; and what the driver counts beside.

use egui::Ui;
use egui_extras::{Column, TableBuilder};

use super::cells;
use crate::analysis::{DriverGap, NetGroup, NetNode, Totals, label_words};
use crate::app::command::Command;
use crate::app::scene::Scene;
use crate::app::sorting::{NetColumn, order_of_nets};
use crate::app::state::NetView;
use crate::model::{format_bytes, format_count, format_delta_bytes};
use crate::report::range_label;
use crate::text::{msg, t};

/// Draws the tab.
pub fn show(ui: &mut Ui, scene: &mut Scene<'_>) {
    let nets = scene.state.answers.net.clone();
    let range = scene.state.range_or_all(scene.data);
    let net: i64 = nets.iter().map(NetGroup::net_bytes).fold(0, i64::saturating_add);
    let words = range_label(&scene.data.index, scene.state.choices.selection, range);
    ui.label(match scene.state.net_view {
        NetView::Groups => {
            t!(
                "{bytes} in {range}: allocated minus freed, whoever allocated it",
                bytes = format_delta_bytes(net),
                range = words
            )
        }
        NetView::Modules => {
            t!("What was allocated in {range}, by the module that was running", range = words)
        }
        NetView::Driver => t!("What the driver counts, first to last sample of {range}", range = words),
    });
    match scene.state.net_view {
        NetView::Groups if nets.is_empty() => {
            ui.weak(t!("Nothing was allocated or freed here."));
        }
        NetView::Groups => cells::scrolled(ui, |ui| groups(ui, scene, &nets)),
        NetView::Modules => modules(ui, scene),
        NetView::Driver => driver(ui, scene),
    }
}

fn total(totals: Totals) -> String {
    t!("{bytes} in {count}", bytes = format_bytes(totals.bytes), count = format_count(totals.count))
}

fn groups(ui: &mut Ui, scene: &mut Scene<'_>, nets: &[NetGroup]) {
    let sort = scene.state.net_sort;
    let order = order_of_nets(nets, sort);
    let columns = [
        (msg!("Net"), NetColumn::Net),
        (msg!("Allocated"), NetColumn::Allocated),
        (msg!("Freed"), NetColumn::Freed),
        (msg!("Kept"), NetColumn::Kept),
        (msg!("Peak"), NetColumn::Peak),
        (msg!("Of"), NetColumn::Key),
    ];
    let table = TableBuilder::new(ui)
        .id_salt("nets")
        .striped(true)
        .cell_layout(cells::layout())
        .resizable(true)
        .column(Column::initial(84.0))
        .columns(Column::initial(124.0), 3)
        .column(Column::initial(76.0))
        .column(Column::remainder().at_least(120.0).clip(true))
        .header(cells::ROW, |mut row| {
            for (text, column) in columns {
                row.col(|ui| {
                    if cells::header(ui, text, "", sort, column) {
                        scene.ask(Command::SortNets(column));
                    }
                });
            }
        });
    table.body(|body| {
        body.rows(cells::ROW, order.len(), |mut row| {
            let net = &nets[order[row.index()] as usize];
            row.col(|ui| cells::figure(ui, &format_delta_bytes(net.net_bytes())));
            row.col(|ui| cells::figure(ui, &total(net.allocated)));
            row.col(|ui| cells::figure(ui, &total(net.freed)));
            row.col(|ui| cells::figure(ui, &total(net.kept)));
            row.col(|ui| cells::figure(ui, &format_bytes(net.peak_bytes)));
            row.col(|ui| cells::text(ui, &label_words(&net.group.key)));
        });
    });
}

/// The modules as a tree; a click folds those inside.
fn modules(ui: &mut Ui, scene: &mut Scene<'_>) {
    let nodes = scene.state.answers.modules.clone();
    if nodes.iter().all(|node| node.descendants == 0 && node.depth == 0) {
        ui.weak(t!(
            "No trace covers this range with modules: record one with with_stack=True or with_modules=True."
        ));
        if nodes.is_empty() {
            return;
        }
    }
    let shown = unfolded(scene, &nodes);
    cells::scrolled(ui, |ui| tree(ui, scene, &nodes, &shown));
}

fn tree(ui: &mut Ui, scene: &mut Scene<'_>, nodes: &[NetNode], shown: &[usize]) {
    let table = TableBuilder::new(ui)
        .id_salt("modules")
        .striped(true)
        .cell_layout(cells::layout())
        .sense(egui::Sense::click())
        .resizable(true)
        .column(Column::initial(200.0).clip(true))
        .columns(Column::initial(84.0), 5)
        .column(Column::remainder().at_least(80.0))
        .header(cells::ROW, |mut row| {
            for text in
                [t!("Module"), t!("Forward"), t!("Backward"), t!("Freed"), t!("Kept"), t!("Peak"), t!("Net")]
            {
                row.col(|ui| {
                    ui.strong(text);
                });
            }
        });
    table.body(|body| {
        body.rows(cells::ROW, shown.len(), |mut row| {
            let node = &nodes[shown[row.index()]];
            let is_folded = scene.state.looks.folded_modules.contains(&node.path);
            row.col(|ui| {
                ui.add_space(14.0 * node.depth as f32);
                let arrow = match (node.descendants, is_folded) {
                    (0, _) => "   ",
                    (_, true) => "⏵ ",
                    (_, false) => "⏷ ",
                };
                cells::text(ui, &format!("{arrow}{}", label_words(&node.name)));
            });
            row.col(|ui| cells::figure(ui, &format_bytes(node.forward.bytes)));
            row.col(|ui| cells::figure(ui, &format_bytes(node.backward.bytes)));
            row.col(|ui| cells::figure(ui, &format_bytes(node.freed.bytes)));
            row.col(|ui| cells::figure(ui, &format_bytes(node.kept.bytes)));
            row.col(|ui| cells::figure(ui, &format_bytes(node.peak_bytes)));
            row.col(|ui| cells::figure(ui, &format_delta_bytes(node.net_bytes())));
            if row.response().clicked() && node.descendants > 0 {
                scene.ask(Command::ToggleModule(node.path.clone()));
            }
        });
    });
}

/// The nodes that no folded one hides.
fn unfolded(scene: &Scene<'_>, nodes: &[NetNode]) -> Vec<usize> {
    let folded = &scene.state.looks.folded_modules;
    let mut shown = Vec::with_capacity(nodes.len());
    let mut at = 0;
    while let Some(node) = nodes.get(at) {
        shown.push(at);
        at += 1 + if folded.contains(&node.path) { node.descendants } else { 0 };
    }
    shown
}

/// The driver's figure split into its parts, for each device.
fn driver(ui: &mut Ui, scene: &Scene<'_>) {
    let range = scene.state.range_or_all(scene.data);
    let device = scene.state.choices.selection.device;
    let gaps = scene.data.gaps.iter().filter(|gap| device.admits(gap.device));
    let grown: Vec<_> = gaps.filter_map(|gap| Some((gap, gap.parts(range)?))).collect();
    if grown.is_empty() {
        ui.weak(t!(
            "No driver's log has two samples in this range: open an nvidia-smi log beside the recordings."
        ));
        return;
    }
    egui::ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
        for (gap, parts) in grown {
            ui.add_space(4.0);
            ui.strong(title(gap));
            let grid = egui::Grid::new(("driver", gap.device)).num_columns(3).spacing([24.0, 3.0]);
            grid.striped(true).show(ui, |ui| {
                for heading in ["", t!("grew by"), t!("at the end")] {
                    ui.weak(heading);
                }
                ui.end_row();
                for part in parts {
                    ui.label(part.label());
                    ui.label(format_delta_bytes(part.grown_bytes));
                    ui.label(format_bytes(part.end_bytes.max(0).unsigned_abs()));
                    ui.end_row();
                }
            });
        }
    });
}

fn title(gap: &DriverGap) -> String {
    let mut title = gap.device.to_string();
    if gap.driver_device != gap.device {
        title.push_str(&t!(", GPU {gpu} of the driver's log", gpu = gap.driver_device.index));
    }
    if gap.is_sum_of_processes {
        title.push_str(t!(": the driver gives no total, so its processes are summed"));
    }
    if let [first, ..] = gap.own_pids[..] {
        title.push_str(&t!(" (the recorded process is {pid} there)", pid = first));
    }
    title
}
