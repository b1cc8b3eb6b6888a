//! SQL: a statement, and its answer as a table.

use std::sync::LazyLock;

use egui::{CollapsingHeader, Key, Label, Modifiers, RichText, Ui};
use egui_extras::{Column, TableBuilder};

use super::cells;
use crate::app::command::Command;
use crate::app::scene::Scene;
use crate::app::sql::{Answer, MAX_ROWS};
use crate::model::format_count;
use crate::report::tables::{EXAMPLES, Table};
use crate::text::{say, t};

/// Draws the tab.
pub fn show(ui: &mut Ui, scene: &mut Scene<'_>) {
    let sql = &scene.state.sql;
    let (answer, is_running) = (sql.answer.clone(), sql.is_running);
    let mut text = sql.text.clone();
    let label = ui.label(t!("Tables: allocations, events, ops, samples, steps, segments, stacks"));
    let field =
        egui::TextEdit::multiline(&mut text).code_editor().desired_rows(3).desired_width(f32::INFINITY);
    if ui.add(field).labelled_by(label.id).changed() {
        scene.ask(Command::SetSql(text));
    }
    let is_pressed = scene.state.dialog.is_none()
        && ui.input_mut(|input| input.consume_key(Modifiers::COMMAND, Key::Enter));
    ui.horizontal_wrapped(|ui| {
        let run = ui.add_enabled(!is_running, egui::Button::new(t!("Run")));
        if run.on_hover_text(t!("Run the statement (Ctrl+Enter)")).clicked() || (is_pressed && !is_running) {
            scene.ask(Command::RunSql);
        }
        ui.menu_button(t!("Examples"), |ui| {
            for (what, example) in EXAMPLES {
                if ui.button(say(what)).clicked() {
                    scene.ask(Command::SetSql((*example).to_owned()));
                    scene.ask(Command::RunSql);
                    ui.close();
                }
            }
        });
        match &answer {
            _ if is_running => {
                ui.weak(t!("Running…"));
            }
            Some(Ok(answer)) => {
                let count = format_count(answer.total as u64);
                ui.weak(if answer.total > MAX_ROWS {
                    t!("{count} rows, the first are shown", count)
                } else {
                    t!("{count} rows", count)
                });
                if ui.button(t!("Copy as CSV")).clicked() {
                    scene.ask(Command::Copy(csv_of(answer)));
                }
            }
            Some(Err(error)) => {
                ui.label(RichText::new(error).color(scene.palette.error));
            }
            None => {}
        }
    });
    CollapsingHeader::new(t!("Tables and their columns")).show(ui, schema);
    if let Some(Ok(answer)) = &answer
        && !answer.columns.is_empty()
    {
        table(ui, answer);
    }
}

/// The columns of all tables, with their types.
fn schema(ui: &mut Ui) {
    static TABLES: LazyLock<Vec<(&str, String)>> = LazyLock::new(|| {
        let words = |(name, kind): &(String, &str)| format!("{name} ({kind})");
        let columns = |table: Table| table.columns().iter().map(words).collect::<Vec<_>>().join(", ");
        Table::ALL.into_iter().map(|table| (table.name(), columns(table))).collect()
    });
    egui::ScrollArea::vertical().max_height(160.0).auto_shrink([false, true]).show(ui, |ui| {
        for (name, columns) in TABLES.iter() {
            ui.strong(*name);
            ui.add(Label::new(RichText::new(columns).monospace().small()).wrap());
        }
    });
}

fn table(ui: &mut Ui, answer: &Answer) {
    egui::ScrollArea::horizontal().show(ui, |ui| {
        TableBuilder::new(ui)
            .id_salt("sql")
            .striped(true)
            .cell_layout(cells::layout())
            .resizable(true)
            .columns(Column::initial(130.0).clip(true), answer.columns.len())
            .header(cells::ROW, |mut row| {
                for name in &answer.columns {
                    row.col(|ui| {
                        ui.strong(name);
                    });
                }
            })
            .body(|body| {
                body.rows(cells::ROW, answer.rows.len(), |mut row| {
                    let texts = &answer.rows[row.index()];
                    for at in 0..answer.columns.len() {
                        row.col(|ui| cells::text(ui, texts.get(at).map_or("", String::as_str)));
                    }
                });
            });
    });
}

/// The answer as CSV, quoted where it must be.
fn csv_of(answer: &Answer) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in std::iter::once(&answer.columns).chain(&answer.rows) {
        // Writing into memory does not fail, and rows all have the length of the header.
        let _ = writer.write_record(row);
    }
    writer.into_inner().map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}
