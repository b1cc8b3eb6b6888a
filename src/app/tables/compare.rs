//! What is alive at one moment and not at another, summed by call site or whatever the user chooses.

use egui::Ui;

use super::cells::{self, Spec};
use crate::analysis::{Difference, label_words};
use crate::app::command::Command;
use crate::app::scene::Scene;
use crate::app::sides::Side;
use crate::app::sorting::{DifferenceColumn, order_of_differences};
use crate::app::state::Selected;
use crate::model::{format_bytes, format_count, format_delta_bytes};
use crate::text::{msg, t};

/// The name under which its columns are hidden.
pub const TABLE: &str = "compare";

const BAR: usize = 0;
const KEY: usize = 4;

/// The columns.
pub const COLUMNS: [Spec<DifferenceColumn>; 5] = [
    Spec::new(msg!("Change"), 96.0, Some(DifferenceColumn::Change)),
    Spec::new(msg!("Count"), 64.0, Some(DifferenceColumn::Count)),
    Spec::new(msg!("In B"), 124.0, Some(DifferenceColumn::After)),
    Spec::new(msg!("In A"), 124.0, Some(DifferenceColumn::Before)),
    Spec::new(msg!("Of"), 180.0, Some(DifferenceColumn::Key)).of_text(),
];

/// Draws what is compared, and the table.
pub fn show(ui: &mut Ui, scene: &mut Scene<'_>) {
    sides(ui, scene);
    let Some(comparison) = scene.state.answers.comparison.clone() else {
        ui.weak(t!("Let go of the range to see the difference."));
        return;
    };
    let (before, after) = (comparison.before.bytes, comparison.after.bytes);
    let change = i128::from(after) - i128::from(before);
    ui.label(t!(
        "{after} in {after_count} allocations alive in B, {before} in {before_count} in A: {change}",
        after = format_bytes(after),
        after_count = format_count(comparison.after.count),
        before = format_bytes(before),
        before_count = format_count(comparison.before.count),
        change = format_delta_bytes(change.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
    ));
    if comparison.differences.is_empty() {
        ui.weak(t!("No difference, or none that passes the filter."));
        return;
    }
    cells::scrolled(ui, |ui| table(ui, scene, &comparison.differences));
}

fn table(ui: &mut Ui, scene: &mut Scene<'_>, rows: &[Difference]) {
    let sort = scene.state.difference_sort;
    let order = order_of_differences(rows, sort);
    let size = |row: &Difference| row.delta_bytes().unsigned_abs();
    let largest = rows.iter().map(size).max().unwrap_or(1).max(1) as f32;
    let shown = cells::shown(&scene.state.looks, TABLE, &COLUMNS);
    let table =
        cells::table(ui, TABLE, &COLUMNS, &shown, scene.state.row_to_show).header(cells::ROW, |mut row| {
            if let Some(column) = cells::headers(&mut row, &COLUMNS, &shown, sort, |at| COLUMNS[at].name) {
                scene.ask(Command::SortDifferences(column));
            }
        });
    table.body(|body| {
        body.rows(cells::ROW, order.len(), |mut row| {
            let difference = &rows[order[row.index()] as usize];
            let is_selected = matches!(
                &scene.state.selected,
                Some(Selected::Difference(key)) if *key == difference.call_site
            );
            row.set_selected(is_selected);
            let texts = texts(difference);
            let color = scene.palette.category(if difference.delta_bytes() < 0 { 1 } else { 0 });
            for &column in &shown {
                row.col(|ui| match column {
                    BAR => cells::share(ui, &texts[BAR], size(difference) as f32 / largest, color),
                    KEY => cells::text(ui, &label_words(&texts[KEY])),
                    _ => cells::figure(ui, &texts[column]),
                });
            }
            let response = row.response();
            if response.clicked() {
                scene.ask(Command::Select(Some(Selected::Difference(difference.call_site.clone()))));
            }
            response.context_menu(|ui| {
                let stack = || difference.stack.join("\n");
                cells::copy_menu(ui, scene, &cells::names(&COLUMNS), &texts, stack);
            });
        });
    });
}

/// The two sides, each to be chosen.
fn sides(ui: &mut Ui, scene: &mut Scene<'_>) {
    let now = scene.state.compared(scene.data);
    let all = Side::all(scene.data);
    let mut chosen = now;
    ui.horizontal_wrapped(|ui| {
        for (side, (name, text)) in
            chosen.iter_mut().zip([("A", t!("What is compared, A")), ("B", t!("What is compared, B"))])
        {
            let combo = egui::ComboBox::from_id_salt(("compare", name))
                .selected_text(format!("{name}: {}", side.label(scene.state, scene.data)))
                .width(240.0)
                .truncate();
            let combo = combo.show_ui(ui, |ui| {
                for &other in &all {
                    ui.selectable_value(side, other, other.label(scene.state, scene.data));
                }
            });
            combo.response.accessible_name(text);
        }
        let swap = ui.button(t!("Swap")).on_hover_text(t!("Look at it the other way round"));
        if swap.clicked() {
            chosen.reverse();
        }
    });
    if chosen != now {
        scene.ask(Command::Compare(chosen));
    }
}

/// The cells of a row.
fn texts(difference: &Difference) -> [String; 5] {
    let count = difference.delta_count();
    let sign = if count < 0 { "−" } else { "+" };
    [
        format_delta_bytes(difference.delta_bytes()),
        if count == 0 { "0".to_owned() } else { format!("{sign}{}", format_count(count.unsigned_abs())) },
        cells::total(difference.after.totals),
        cells::total(difference.before.totals),
        difference.call_site.clone(),
    ]
}
