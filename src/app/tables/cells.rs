//! What tables share: headers that sort, and cells.

use egui::style::ScrollStyle;
use egui::{Align, Label, Layout, Rect, RichText, ScrollArea, Ui, vec2};
use egui_extras::{Column, TableBuilder, TableRow};

use crate::app::command::Command;
use crate::app::scene::Scene;
use crate::app::sorting::Sort;
use crate::app::state::Looks;
use crate::model::{format_bytes, format_count};
use crate::report::Totals;
use crate::text::{say, t};

/// Column widths are worked out anew when the room changes by so many points.
const ROOM_STEP: f32 = 80.0;

/// A column that can be hidden.
#[derive(Clone, Copy)]
pub struct Spec<C: 'static> {
    /// Its title.
    pub name: &'static str,
    /// How wide it is to begin with, in points.
    pub width: f32,
    /// What a click on its header sorts by.
    pub sort: Option<C>,
    /// Whether it holds texts, which take the room that is left.
    pub is_text: bool,
    /// What its figures are, where the title doesn't say it.
    pub hint: &'static str,
}

impl<C: Copy> Spec<C> {
    /// A column of figures.
    pub const fn new(name: &'static str, width: f32, sort: Option<C>) -> Self {
        Self { name, width, sort, is_text: false, hint: "" }
    }

    /// The column with texts.
    pub const fn of_text(self) -> Self {
        Self { is_text: true, ..self }
    }

    /// The column with a word about its figures.
    pub const fn with_hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }
}

/// The places of the columns that are not hidden; at least one is shown.
pub fn shown<C>(looks: &Looks, table: &'static str, columns: &[Spec<C>]) -> Vec<usize> {
    let hidden = &looks.hidden_columns;
    let shown = (0..columns.len()).filter(|&at| !hidden.contains(&(table, columns[at].name)));
    let shown: Vec<usize> = shown.collect();
    if shown.is_empty() { vec![0] } else { shown }
}

/// Room for a table that may be wider than its place: then it scrolls sideways.
pub fn scrolled(ui: &mut Ui, add: impl FnOnce(&mut Ui)) {
    ui.scope(|ui| {
        // A bar that is seen: nothing else says that there are more columns.
        let within = std::mem::replace(&mut ui.spacing_mut().scroll, ScrollStyle::thin());
        ScrollArea::horizontal().show(ui, |ui| {
            ui.spacing_mut().scroll = within;
            add(ui);
        });
    });
}

/// A table with these columns; those with texts share the room that is left. Scrolls to `row`.
pub fn table<'u, C>(
    ui: &'u mut Ui,
    name: &'static str,
    columns: &[Spec<C>],
    shown: &[usize],
    row: Option<usize>,
) -> TableBuilder<'u> {
    let steps = (ui.available_width() / ROOM_STEP).floor();
    let gap = ui.spacing().item_spacing.x;
    let taken: f32 = shown.iter().map(|&at| columns[at].width + gap).sum();
    let spare = (steps * ROOM_STEP - taken).max(0.0);
    let texts: f32 = shown.iter().map(|&at| &columns[at]).filter(|it| it.is_text).map(|it| it.width).sum();
    let mut table = TableBuilder::new(ui)
        // With other columns or much other room it is another table: widths are kept for each.
        .id_salt((name, shown, steps as usize))
        .striped(true)
        .cell_layout(layout())
        .sense(egui::Sense::click())
        .resizable(true);
    for (nth, &at) in shown.iter().enumerate() {
        let column = &columns[at];
        table = table.column(if nth + 1 == shown.len() {
            Column::remainder().at_least(column.width.min(120.0)).clip(true)
        } else {
            let more = if column.is_text { spare * column.width / texts } else { 0.0 };
            Column::initial(column.width + more).clip(true)
        });
    }
    match row {
        Some(row) => table.scroll_to_row(row, None),
        None => table,
    }
}

/// The titles of the columns as they are written.
pub fn names<C>(columns: &[Spec<C>]) -> Vec<&'static str> {
    columns.iter().map(|column| column.name).collect()
}

/// The header of such a table, with `name_of` each column's title; the column by which a click sorts.
pub fn headers<'n, C: PartialEq + Copy>(
    row: &mut TableRow<'_, '_>,
    columns: &[Spec<C>],
    shown: &[usize],
    sort: Sort<C>,
    name_of: impl Fn(usize) -> &'n str,
) -> Option<C> {
    let mut clicked = None;
    for &at in shown {
        row.col(|ui| match columns[at].sort {
            Some(column) if header(ui, name_of(at), columns[at].hint, sort, column) => clicked = Some(column),
            Some(_) => {}
            None => {
                ui.strong(say(name_of(at)));
            }
        });
    }
    clicked
}

/// What the menu of a row offers to copy: single cells, the row, the stack.
pub fn copy_menu(
    ui: &mut Ui,
    scene: &mut Scene<'_>,
    names: &[&str],
    cells: &[String],
    stack: impl FnOnce() -> String,
) {
    let mut copied = None;
    if ui.button(t!("Copy row")).clicked() {
        copied = Some(cells.join("\t"));
    }
    if ui.button(t!("Copy stack")).clicked() {
        copied = Some(stack());
    }
    ui.menu_button(t!("Copy cell"), |ui| {
        for (name, cell) in names.iter().zip(cells).filter(|(_, cell)| !cell.is_empty()) {
            if ui.button(say(name)).on_hover_text(cell).clicked() {
                copied = Some(cell.clone());
            }
        }
    });
    if let Some(text) = copied {
        scene.ask(Command::Copy(text));
        ui.close();
    }
}

/// The height of a row.
pub const ROW: f32 = 20.0;

/// How cells are laid out.
pub fn layout() -> Layout {
    Layout::left_to_right(Align::Center)
}

/// A header that sorts by its column; whether it was clicked. The hint may be empty.
pub fn header<C: PartialEq + Copy>(ui: &mut Ui, text: &str, hint: &str, sort: Sort<C>, column: C) -> bool {
    let (arrow, order) = match (sort.column == column, sort.is_descending) {
        (false, _) => ("", ""),
        (true, true) => (" ⏷", t!(", sorted from the largest")),
        (true, false) => (" ⏶", t!(", sorted from the smallest")),
    };
    let text = say(text);
    let button = egui::Button::new(RichText::new(format!("{text}{arrow}")).strong()).frame(false);
    let mut response = ui.add(button);
    if !hint.is_empty() {
        response = response.on_hover_text(say(hint));
    }
    response.accessible_name(t!("Sort by {column}{order}", column = text.to_lowercase(), order)).clicked()
}

/// How many bytes in how many allocations.
pub fn total(totals: impl Into<Totals>) -> String {
    let totals = totals.into();
    match totals.count {
        0 => t!("none").to_owned(),
        count => t!("{size} in {count}", size = format_bytes(totals.bytes), count = format_count(count)),
    }
}

/// A figure, to the right.
pub fn figure(ui: &mut Ui, text: &str) {
    ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
        ui.add(Label::new(text).selectable(false).truncate());
    });
}

/// A text, cut where the column ends.
pub fn text(ui: &mut Ui, text: &str) {
    ui.add(Label::new(text).selectable(false).truncate());
}

/// A figure over a bar that shows its share of the largest.
pub fn share(ui: &mut Ui, text: &str, share: f32, color: egui::Color32) {
    let rect = ui.max_rect().shrink2(vec2(0.0, 2.0));
    let bar = Rect::from_min_size(rect.min, vec2(rect.width() * share.clamp(0.0, 1.0), rect.height()));
    ui.painter().rect_filled(bar, 2, color.gamma_multiply(0.3));
    figure(ui, text);
}

/// A small curve, drawn to its own height.
pub fn spark(ui: &Ui, values: &[u64], color: egui::Color32) {
    let rect = ui.max_rect().shrink2(vec2(2.0, 3.0));
    let high = values.iter().copied().max().unwrap_or(0).max(1) as f32;
    let last = values.len().saturating_sub(1).max(1) as f32;
    let points = values.iter().enumerate().map(|(at, &value)| {
        let x = rect.left() + at as f32 / last * rect.width();
        egui::pos2(x, rect.bottom() - value as f32 / high * rect.height())
    });
    ui.painter().line(points.collect(), egui::Stroke::new(1.5, color));
}
