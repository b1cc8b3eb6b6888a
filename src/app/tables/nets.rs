//! What each module, op or step added in the range.

use egui::Ui;
use egui_extras::{Column, TableBuilder};

use super::cells;
use crate::analysis::{NetGroup, Totals};
use crate::app::command::Command;
use crate::app::scene::Scene;
use crate::app::sorting::{NetColumn, order_of_nets};
use crate::model::{format_bytes, format_count, format_delta_bytes};
use crate::report::range_label;

/// Draws the table.
pub fn show(ui: &mut Ui, scene: &mut Scene<'_>) {
    let nets = scene.state.answers.net.clone();
    let range = scene.state.range_or_all(scene.data);
    let net: i64 = nets.iter().map(NetGroup::net_bytes).fold(0, i64::saturating_add);
    let words = range_label(&scene.data.index, scene.state.choices.selection, range);
    ui.label(format!("{} in {words}: allocated minus freed, whoever allocated it", format_delta_bytes(net)));
    if nets.is_empty() {
        ui.weak("Nothing was allocated or freed here.");
        return;
    }
    let sort = scene.state.net_sort;
    let order = order_of_nets(&nets, sort);
    let columns = [
        ("Net", NetColumn::Net),
        ("Allocated", NetColumn::Allocated),
        ("Freed", NetColumn::Freed),
        ("Of", NetColumn::Key),
    ];
    let table = TableBuilder::new(ui)
        .id_salt("nets")
        .striped(true)
        .cell_layout(cells::layout())
        .resizable(true)
        .column(Column::initial(100.0))
        .column(Column::initial(150.0))
        .column(Column::initial(150.0))
        .column(Column::remainder().at_least(120.0).clip(true))
        .header(cells::ROW, |mut row| {
            for (text, column) in columns {
                row.col(|ui| {
                    if cells::header(ui, text, sort, column) {
                        scene.ask(Command::SortNets(column));
                    }
                });
            }
        });
    table.body(|body| {
        body.rows(cells::ROW, order.len(), |mut row| {
            let net = &nets[order[row.index()] as usize];
            let total =
                |totals: Totals| format!("{} in {}", format_bytes(totals.bytes), format_count(totals.count));
            row.col(|ui| cells::figure(ui, &format_delta_bytes(net.net_bytes())));
            row.col(|ui| cells::figure(ui, &total(net.allocated)));
            row.col(|ui| cells::figure(ui, &total(net.freed)));
            row.col(|ui| cells::text(ui, &net.group.key));
        });
    });
}
