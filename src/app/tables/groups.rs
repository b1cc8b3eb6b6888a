//! Kept or live allocations, summed by call site, op, stack, module, step or size.

use egui::Ui;

use super::cells::{self, Spec};
use crate::analysis::{Group, label_words};
use crate::app::answers::Lens;
use crate::app::command::Command;
use crate::app::scene::Scene;
use crate::app::sorting::{GroupColumn, order_of_groups};
use crate::app::state::Selected;
use crate::model::format_count;
use crate::text::{msg, t};

/// The name under which its columns are hidden.
pub const TABLE: &str = "groups";

const BYTES: usize = 0;
const COUNT: usize = 1;
const KEY: usize = 2;
const GROWTH: usize = 3;
const PER_STEP: usize = 6;

/// The columns; the third is called after what rows are summed by.
pub const COLUMNS: [Spec<GroupColumn>; 7] = [
    Spec::new(msg!("Bytes"), 88.0, Some(GroupColumn::Bytes)),
    Spec::new(msg!("Count"), 56.0, Some(GroupColumn::Count)),
    Spec::new(msg!("Group"), 180.0, Some(GroupColumn::Key)).of_text(),
    Spec::new(msg!("Growth"), 72.0, None),
    Spec::new(msg!("Ops"), 120.0, None).of_text(),
    Spec::new(msg!("Steps"), 64.0, None),
    Spec::new(msg!("Per step"), 80.0, Some(GroupColumn::PerStep)),
];

/// Draws the table.
pub fn show(ui: &mut Ui, scene: &mut Scene<'_>, lens: &Lens) {
    let sort = scene.state.group_sort;
    let order = order_of_groups(&lens.groups, sort);
    let largest = lens.groups.iter().map(|group| group.bytes).max().unwrap_or(1).max(1) as f32;
    let key_title = title(scene.state.choices.group_by.label());
    let name_of = |at: usize| if at == KEY { key_title.as_str() } else { COLUMNS[at].name };
    let shown = cells::shown(&scene.state.looks, TABLE, &COLUMNS);
    let table =
        cells::table(ui, TABLE, &COLUMNS, &shown, scene.state.row_to_show).header(cells::ROW, |mut row| {
            if let Some(column) = cells::headers(&mut row, &COLUMNS, &shown, sort, name_of) {
                scene.ask(Command::SortGroups(column));
            }
        });
    let color = scene.palette.category(0);
    table.body(|body| {
        body.rows(cells::ROW, order.len(), |mut row| {
            let at = order[row.index()] as usize;
            let group = &lens.groups[at];
            let selected = &scene.state.selected;
            row.set_selected(matches!(selected, Some(Selected::Group(key)) if *key == group.key));
            let texts = texts(scene, group);
            for &column in &shown {
                row.col(|ui| match column {
                    BYTES => cells::share(ui, &texts[BYTES], group.bytes as f32 / largest, color),
                    GROWTH => cells::spark(ui, &lens.sparks[at], color),
                    COUNT | PER_STEP => cells::figure(ui, &texts[column]),
                    _ => cells::text(ui, &texts[column]),
                });
            }
            let response = row.response();
            if response.clicked() {
                scene.ask(Command::Select(Some(Selected::Group(group.key.clone()))));
            }
            response.context_menu(|ui| {
                let index = scene.data.index.clone();
                let stack = || index.stack_lines(group.stack.0, group.stack.1).join("\n");
                cells::copy_menu(ui, scene, &cells::names(&COLUMNS), &texts, stack);
            });
        });
    });
}

/// The cells of a group; that of its small curve is empty.
fn texts(scene: &Scene<'_>, group: &Group) -> [String; 7] {
    let per_step = if group.per_step_bytes > 0 { scene.bytes(group.per_step_bytes) } else { String::new() };
    [
        scene.bytes(group.bytes),
        format_count(group.count),
        label_words(&group.key).into_owned(),
        String::new(),
        group.ops.iter().map(|op| label_words(op)).collect::<Vec<_>>().join(", "),
        steps(group),
        per_step,
    ]
}

fn steps(group: &Group) -> String {
    match group.steps {
        None => String::new(),
        Some((first, last)) if first == last => first.to_string(),
        Some((first, last)) => t!("{first} to {last}", first, last),
    }
}

fn title(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
