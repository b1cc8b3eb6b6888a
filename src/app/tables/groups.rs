//! Kept or live allocations, summed by call site, op, stack, module, step or size.

use egui::Ui;
use egui_extras::{Column, TableBuilder};

use super::cells;
use crate::analysis::Group;
use crate::app::answers::Lens;
use crate::app::command::Command;
use crate::app::scene::Scene;
use crate::app::sorting::{GroupColumn, order_of_groups};
use crate::app::state::Selected;
use crate::model::{format_bytes, format_count};

/// Draws the table.
pub fn show(ui: &mut Ui, scene: &mut Scene<'_>, lens: &Lens) {
    let sort = scene.state.group_sort;
    let order = order_of_groups(&lens.groups, sort);
    let largest = lens.groups.iter().map(|group| group.bytes).max().unwrap_or(1).max(1) as f32;
    let key_title = title(scene.state.choices.group_by.label());
    let columns = [
        ("Bytes", Some(GroupColumn::Bytes)),
        ("Count", Some(GroupColumn::Count)),
        (key_title.as_str(), Some(GroupColumn::Key)),
        ("Growth", None),
        ("Ops", None),
        ("Steps", None),
        ("Per step", Some(GroupColumn::PerStep)),
    ];
    let table = TableBuilder::new(ui)
        .id_salt("groups")
        .striped(true)
        .cell_layout(cells::layout())
        .sense(egui::Sense::click())
        .resizable(true)
        .column(Column::initial(88.0))
        .column(Column::initial(56.0))
        .column(Column::initial(180.0).clip(true))
        .column(Column::initial(72.0))
        .column(Column::initial(120.0).clip(true))
        .column(Column::initial(64.0).clip(true))
        .column(Column::remainder().at_least(70.0).clip(true))
        .header(cells::ROW, |mut row| {
            for (text, column) in columns {
                row.col(|ui| match column {
                    Some(column) => {
                        if cells::header(ui, text, sort, column) {
                            scene.ask(Command::SortGroups(column));
                        }
                    }
                    None => {
                        ui.strong(text);
                    }
                });
            }
        });
    let color = scene.palette.category(0);
    table.body(|body| {
        body.rows(cells::ROW, order.len(), |mut row| {
            let at = order[row.index()] as usize;
            let group = &lens.groups[at];
            let selected = &scene.state.selected;
            row.set_selected(matches!(selected, Some(Selected::Group(key)) if *key == group.key));
            row.col(|ui| cells::share(ui, &format_bytes(group.bytes), group.bytes as f32 / largest, color));
            row.col(|ui| cells::figure(ui, &format_count(group.count)));
            row.col(|ui| cells::text(ui, &group.key));
            row.col(|ui| cells::spark(ui, &lens.sparks[at], color));
            row.col(|ui| cells::text(ui, &group.ops.join(", ")));
            row.col(|ui| cells::text(ui, &steps(group)));
            row.col(|ui| {
                if group.per_step_bytes > 0 {
                    cells::figure(ui, &format_bytes(group.per_step_bytes));
                }
            });
            let response = row.response();
            if response.clicked() {
                scene.ask(Command::Select(Some(Selected::Group(group.key.clone()))));
            }
            response.context_menu(|ui| {
                if ui.button("Copy row").clicked() {
                    let text =
                        format!("{}\t{}\t{}\t{}", group.bytes, group.count, group.key, group.ops.join(", "));
                    scene.ask(Command::Copy(text));
                    ui.close();
                }
            });
        });
    });
}

fn steps(group: &Group) -> String {
    match group.steps {
        None => String::new(),
        Some((first, last)) if first == last => first.to_string(),
        Some((first, last)) => format!("{first} to {last}"),
    }
}

fn title(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
