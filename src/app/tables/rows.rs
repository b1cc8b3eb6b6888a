//! Kept or live allocations one by one.

use egui::Ui;

use super::cells::{self, Spec};
use crate::analysis::{RowRef, label_words};
use crate::app::answers::Lens;
use crate::app::command::Command;
use crate::app::scene::Scene;
use crate::app::sorting::RowColumn;
use crate::app::state::Selected;
use crate::model::time::{format_duration, format_offset};
use crate::model::{Allocation, BEFORE_NS, NEVER_NS, format_count};
use crate::text::{msg, t};

/// Beyond this the scroll bar would jump: f32 offsets have no finer steps.
const MAX_ROWS: usize = 400_000;

/// The name under which its columns are hidden.
pub const TABLE: &str = "allocations";

/// The columns.
pub const COLUMNS: [Spec<RowColumn>; 7] = [
    Spec::new(msg!("Bytes"), 86.0, Some(RowColumn::Bytes)),
    Spec::new(msg!("Allocated"), 84.0, Some(RowColumn::Time)),
    Spec::new(msg!("Lifetime"), 84.0, Some(RowColumn::Lifetime)),
    Spec::new(msg!("Call site"), 190.0, Some(RowColumn::CallSite)).of_text(),
    Spec::new(msg!("Op"), 150.0, Some(RowColumn::Op)).of_text(),
    Spec::new(msg!("Shapes"), 150.0, None).of_text(),
    Spec::new(msg!("Step"), 60.0, Some(RowColumn::Step)),
];

/// Draws the table.
pub fn show(ui: &mut Ui, scene: &mut Scene<'_>, lens: &Lens) {
    if lens.rows.len() > MAX_ROWS {
        let first = format_count(MAX_ROWS as u64);
        ui.weak(t!("The first {first} in this order; filter or brush to see others.", first));
    }
    let sort = scene.state.row_sort;
    let shown = cells::shown(&scene.state.looks, TABLE, &COLUMNS);
    let table =
        cells::table(ui, TABLE, &COLUMNS, &shown, scene.state.row_to_show).header(cells::ROW, |mut row| {
            if let Some(column) = cells::headers(&mut row, &COLUMNS, &shown, sort, |at| COLUMNS[at].name) {
                scene.ask(Command::SortRows(column));
            }
        });
    table.body(|body| {
        body.rows(cells::ROW, lens.rows.len().min(MAX_ROWS), |mut row| {
            let row_ref = lens.rows[row.index()];
            row.set_selected(match &scene.state.selected {
                Some(Selected::Row(one)) => *one == row_ref,
                Some(Selected::Rows(rows)) => rows.contains(&row_ref),
                _ => false,
            });
            let texts = texts(scene, row_ref, &row_ref.get(scene.data.session()));
            for &at in &shown {
                row.col(|ui| cells::text(ui, &texts[at]));
            }
            let response = row.response();
            if response.clicked() {
                let keeps_others = response.ctx.input(|input| input.modifiers.command);
                scene.ask(match keeps_others {
                    true => Command::SelectAlso(row_ref),
                    false => Command::Select(Some(Selected::Row(row_ref))),
                });
            }
            if response.double_clicked() {
                scene.ask(Command::RevealSelected);
            }
            response.context_menu(|ui| {
                let index = scene.data.index.clone();
                let stack = || {
                    let allocation = row_ref.get(&index.session);
                    index.stack_lines(row_ref.process, allocation.stack).join("\n")
                };
                cells::copy_menu(ui, scene, &cells::names(&COLUMNS), &texts, stack);
            });
        });
    });
}

/// The cells of a row.
fn texts(scene: &Scene<'_>, row: RowRef, allocation: &Allocation) -> [String; 7] {
    let (index, session) = (&scene.data.index, scene.data.session());
    let process = session.process(row.process);
    let time = match allocation.alloc_ns {
        BEFORE_NS => t!("before").to_owned(),
        at_ns => format_offset(at_ns, session.span.start_ns),
    };
    let lifetime = match (allocation.alloc_ns, allocation.free_completed_ns) {
        (_, NEVER_NS) => t!("not freed").to_owned(),
        (BEFORE_NS, _) => t!("unknown").to_owned(),
        (from, to) => format_duration(to.saturating_sub(from)),
    };
    let op = process.ops.get(allocation.op).unwrap_or_default();
    [
        scene.bytes(allocation.size_bytes),
        time,
        lifetime,
        label_words(index.label(index.call_site(row.process, allocation.stack))).into_owned(),
        label_words(index.label(index.op(row.process, allocation.op, allocation.stack))).into_owned(),
        process.strings.get(op.shapes).to_owned(),
        process.steps.get(allocation.step as usize).map_or_else(String::new, |step| step.number.to_string()),
    ]
}
