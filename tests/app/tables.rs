//! The tabs and the details: what a click, an arrow and the wheel do there.

use egui::vec2;

use super::*;

fn wheel(window: &mut Window, at: Pos2, lines: f32, modifiers: Modifiers) {
    window.hover_at(at);
    window.event(Event::ModifiersChanged(modifiers));
    window.event(Event::MouseWheel {
        unit: egui::MouseWheelUnit::Line,
        delta: vec2(0.0, lines),
        phase: egui::TouchPhase::Move,
        source: egui::MouseWheelSource::Unknown,
        modifiers,
    });
    window.run_steps(20);
    window.event(Event::ModifiersChanged(Modifiers::NONE));
    window.run_steps(3);
}

fn selected(window: &Window) -> Option<Selected> {
    window.state().state().selected.clone()
}

fn click_first(window: &mut Window, label: &str) {
    window.get_all_by_label(label).next().expect(label).click();
    settle(window);
}

/// Clicks the last thing that is called so, which is in a table.
fn click_last(window: &mut Window, label: &str) {
    window.get_all_by_label(label).last().expect(label).click();
    settle(window);
}

#[test]
fn all_of_a_finding_opens_its_details() {
    let mut window = leak();
    click(&mut window, "Tab Findings");
    window.get_all_by_label("What to change").next().expect("advice on the card");
    let findings = window.state().state().answers.findings.clone();
    let site = vramscope::analysis::label_words(&findings[0].call_sites[0]).into_owned();
    let place = window.get_all_by_label(&site).last().expect("a call site").rect();
    press(&mut window, place.center(), PointerButton::Primary, Modifiers::NONE);
    assert_eq!(selected(&window), Some(Selected::Finding(0)));
    let last = findings.len() - 1;
    key(&mut window, Modifiers::NONE, Key::ArrowDown);
    assert_eq!(selected(&window), Some(Selected::Finding(1.min(last))));
}

#[test]
fn details_of_another_thing_start_at_their_top() {
    let mut window = leak();
    click(&mut window, "Allocations");
    let rows: Vec<Rect> = window.get_all_by_label("not freed").map(|row| row.rect()).collect();
    press(&mut window, rows[0].center(), PointerButton::Primary, Modifiers::NONE);
    let top = window.get_by_label("Show in tracks").rect().top();
    wheel(&mut window, pos2(1200.0, 600.0), -20.0, Modifiers::NONE);
    assert!(window.get_by_label("Show in tracks").rect().top() < top);
    press(&mut window, rows[1].center(), PointerButton::Primary, Modifiers::NONE);
    assert_eq!(window.get_by_label("Show in tracks").rect().top(), top);
}

#[test]
fn a_table_that_is_too_wide_scrolls_sideways() {
    let mut window = window(vec![sample(LEAK)], [700.0, 600.0], Theme::Dark);
    settle(&mut window);
    let left = |window: &Window| window.get_by_label("Sort by per step").rect().left();
    let (before, place) = (left(&window), window.get_by_label("Sort by count").rect());
    wheel(&mut window, place.center() + vec2(0.0, 30.0), -20.0, Modifiers::SHIFT);
    assert!(left(&window) < before, "{before}");
    assert!(window.get_by_label("Sort by per step").rect().right() < 700.0);
}

#[test]
fn texts_take_the_room_of_a_wide_window() {
    let mut window = window(vec![sample(LEAK)], [2400.0, 860.0], Theme::Dark);
    settle(&mut window);
    let group = window.get_by_label("Sort by call site").rect().left();
    let growth = window.get_by_label("Growth").rect().left();
    let per_step = window.get_by_label("Sort by per step").rect().left();
    let end = window.get_by_label("Details").rect().left();
    assert!(growth - group > 500.0, "{group} {growth}");
    assert!(end - per_step < 220.0, "{per_step} {end}");
}

#[test]
fn arrows_move_the_selection_of_the_table_that_was_clicked() {
    let mut window = leak();
    type_range(&mut window, "step:8", "step:16");
    for (tab, choice) in [("Tab Kept", "Groups"), ("Tab Kept", "Allocations"), ("Tab Live", "Groups")] {
        click(&mut window, tab);
        click(&mut window, choice);
        match choice {
            "Groups" => click_last(&mut window, "record.py:63 validate"),
            _ => click_first(&mut window, "not freed"),
        }
        arrows_move(&mut window);
    }
    click(&mut window, "Tab Compare");
    click_last(&mut window, "record.py:63 validate");
    arrows_move(&mut window);
}

fn arrows_move(window: &mut Window) {
    let clicked = selected(window);
    assert!(clicked.is_some());
    key(window, Modifiers::NONE, Key::ArrowUp);
    let above = selected(window);
    key(window, Modifiers::NONE, Key::ArrowDown);
    let below = selected(window);
    assert_ne!(above, below);
    // From the first row there is no way up.
    assert!(below == clicked || above == clicked);
}

#[test]
fn a_row_that_an_arrow_reaches_is_scrolled_to() {
    let mut window = leak();
    click(&mut window, "Allocations");
    click_first(&mut window, "not freed");
    for _ in 0..30 {
        key(&mut window, Modifiers::NONE, Key::ArrowDown);
    }
    let Some(Selected::Row(row)) = selected(&window) else { panic!("no row") };
    let rows = &window.state().state().answers.kept.rows;
    let at = rows.iter().position(|&other| other == row).expect("its place");
    assert_eq!(at, 30);
    // Only rows in sight are drawn.
    let data = window.state().state().data.clone().expect("a session");
    let is_drawn = |row: vramscope::analysis::RowRef| {
        let time_ns = row.get(data.session()).alloc_ns;
        let words = vramscope::model::time::format_offset(time_ns, data.span().start_ns);
        window.query_all_by_label(&words).count() > 0
    };
    assert!(is_drawn(row));
    assert!(!is_drawn(rows[0]), "the first row was scrolled away");
}

#[test]
fn sql_runs_by_key_and_its_tables_are_listed() {
    let mut window = leak();
    click(&mut window, "Tab SQL");
    window.get_by_label_contains("Tables: allocations").focus();
    window.step();
    let text = window.state().state().sql.text.clone();
    key(&mut window, Modifiers::COMMAND, Key::Enter);
    let sql = window.state().state().sql.clone();
    assert!(matches!(sql.answer, Some(Ok(ref answer)) if !answer.rows.is_empty()), "{:?}", sql.answer);
    assert_eq!(sql.text, text, "the key is no text");
    click(&mut window, "Tables and their columns");
    window.get_by_label_contains("rounded_bytes (integer)");
}
