//! Kept or live allocations one by one.

use egui::Ui;
use egui_extras::{Column, TableBuilder};

use super::cells;
use crate::analysis::RowRef;
use crate::app::answers::Lens;
use crate::app::command::Command;
use crate::app::scene::Scene;
use crate::app::sorting::RowColumn;
use crate::app::state::Selected;
use crate::model::time::{format_duration, format_offset};
use crate::model::{Allocation, BEFORE_NS, NEVER_NS, format_bytes, format_count};

/// Beyond this the scroll bar would jump: f32 offsets have no finer steps.
const MAX_ROWS: usize = 400_000;

/// Draws the table.
pub fn show(ui: &mut Ui, scene: &mut Scene<'_>, lens: &Lens) {
    if lens.rows.len() > MAX_ROWS {
        let first = format_count(MAX_ROWS as u64);
        ui.weak(format!("The first {first} in this order; filter or brush to see others."));
    }
    let sort = scene.state.row_sort;
    let columns = [
        ("Bytes", Some(RowColumn::Bytes)),
        ("Allocated", Some(RowColumn::Time)),
        ("Lifetime", Some(RowColumn::Lifetime)),
        ("Call site", Some(RowColumn::CallSite)),
        ("Op", Some(RowColumn::Op)),
        ("Shapes", None),
        ("Step", Some(RowColumn::Step)),
    ];
    let table = TableBuilder::new(ui)
        .id_salt("allocations")
        .striped(true)
        .cell_layout(cells::layout())
        .sense(egui::Sense::click())
        .resizable(true)
        .column(Column::initial(86.0))
        .column(Column::initial(84.0))
        .column(Column::initial(84.0))
        .column(Column::initial(190.0).clip(true))
        .column(Column::initial(150.0).clip(true))
        .column(Column::initial(150.0).clip(true))
        .column(Column::remainder().at_least(50.0).clip(true))
        .header(cells::ROW, |mut row| {
            for (text, column) in columns {
                row.col(|ui| match column {
                    Some(column) => {
                        if cells::header(ui, text, sort, column) {
                            scene.ask(Command::SortRows(column));
                        }
                    }
                    None => {
                        ui.strong(text);
                    }
                });
            }
        });
    table.body(|body| {
        body.rows(cells::ROW, lens.rows.len().min(MAX_ROWS), |mut row| {
            let row_ref = lens.rows[row.index()];
            row.set_selected(scene.state.selected == Some(Selected::Row(row_ref)));
            for text in texts(scene, row_ref, &row_ref.get(scene.data.session())) {
                row.col(|ui| cells::text(ui, &text));
            }
            let response = row.response();
            if response.clicked() {
                scene.ask(Command::Select(Some(Selected::Row(row_ref))));
            }
            if response.double_clicked() {
                scene.ask(Command::RevealSelected);
            }
        });
    });
}

/// The cells of a row.
fn texts(scene: &Scene<'_>, row: RowRef, allocation: &Allocation) -> [String; 7] {
    let (index, session) = (&scene.data.index, scene.data.session());
    let process = session.process(row.process);
    let time = match allocation.alloc_ns {
        BEFORE_NS => "before".to_owned(),
        at_ns => format_offset(at_ns, session.span.start_ns),
    };
    let lifetime = match (allocation.alloc_ns, allocation.free_completed_ns) {
        (_, NEVER_NS) => "not freed".to_owned(),
        (BEFORE_NS, _) => "unknown".to_owned(),
        (from, to) => format_duration(to.saturating_sub(from)),
    };
    let op = process.ops.get(allocation.op).unwrap_or_default();
    [
        format_bytes(allocation.size_bytes),
        time,
        lifetime,
        index.label(index.call_site(row.process, allocation.stack)).to_owned(),
        index.label(index.op(row.process, allocation.op, allocation.stack)).to_owned(),
        process.strings.get(op.shapes).to_owned(),
        process.steps.get(allocation.step as usize).map_or_else(String::new, |step| step.number.to_string()),
    ]
}
