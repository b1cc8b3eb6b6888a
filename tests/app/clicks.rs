//! What can be clicked, pressed and typed, one by one.

use egui::OutputCommand;
use vramscope::app::{Pick, Picked};
use vramscope::model::Quantity;

use super::*;

fn right_click(window: &mut Window, at: Pos2) {
    press(window, at, PointerButton::Secondary, Modifiers::NONE);
}

/// Clicks, and gives what was put on the clipboard.
fn copied_by(window: &mut Window, label: &str) -> Option<String> {
    window.get_by_label(label).click();
    for _ in 0..6 {
        window.step();
        let commands = &window.output().platform_output.commands;
        if let Some(OutputCommand::CopyText(text)) = commands.first() {
            return Some(text.clone());
        }
    }
    None
}

#[test]
fn ctrl_o_opens_what_the_system_answers() {
    let app = App::new(Vec::new()).with_picker(|what| match what {
        Pick::Files => Picked::Open(vec![sample(LEAK).join("snapshot.pickle.gz")]),
        _ => Picked::Nothing,
    });
    let mut window = window_of(app, [1000.0, 700.0], Theme::Dark);
    window.run_steps(2);
    key(&mut window, Modifiers::COMMAND, Key::O);
    settle(&mut window);
    assert_eq!(window.state().state().opened.len(), 1);
}

#[test]
fn without_a_system_dialog_a_path_can_be_typed() {
    let app = App::new(Vec::new()).with_picker(Picked::Missing);
    let mut window = window_of(app, [1000.0, 700.0], Theme::Dark);
    window.run_steps(2);
    key(&mut window, Modifiers::COMMAND, Key::O);
    assert_eq!(window.state().state().dialog, Some(Dialog::OpenPath(String::new())));
    window.get_by_label("File or folder").focus();
    window.step();
    window.get_by_label("File or folder").type_text(&sample("healthy").display().to_string());
    window.run_steps(2);
    window.key_press(Key::Enter);
    settle(&mut window);
    assert!(!window.state().state().opened.is_empty());
}

#[test]
fn tracks_can_be_put_in_another_order() {
    let mut window = leak();
    let top = |window: &Window, name: &str| window.get_by_label(&format!("Fold track {name}")).rect().top();
    assert!(top(&window, "Memory") < top(&window, "Steps"));
    let at = window.get_by_label("Fold track Memory").rect().center();
    right_click(&mut window, at);
    click(&mut window, "Move down");
    assert!(top(&window, "Steps") < top(&window, "Memory"));
    let at = window.get_by_label("Fold track Memory").rect().center();
    right_click(&mut window, at);
    click(&mut window, "Move up");
    assert!(top(&window, "Memory") < top(&window, "Steps"));
}

#[test]
fn hidden_columns_are_gone_until_they_are_shown() {
    let mut window = leak();
    window.get_by_label("Sort by count");
    for is_shown in [false, true] {
        click(&mut window, "Table");
        click(&mut window, "Count");
        key(&mut window, Modifiers::NONE, Key::Escape);
        assert_eq!(window.query_by_label("Sort by count").is_some(), is_shown);
    }
}

#[test]
fn a_table_is_copied_and_saved_as_it_is_shown() {
    let mut window = leak();
    type_range(&mut window, "step:8", "step:16");
    key(&mut window, Modifiers::COMMAND, Key::F);
    window.get_by_label("Filter").type_text("validate");
    settle(&mut window);
    window.get_by_label("Sort by count").click();
    settle(&mut window);
    let groups = window.state().state().answers.kept.groups.clone();
    assert!(!groups.is_empty() && groups.iter().all(|group| group.key.contains("validate")));
    click(&mut window, "Table");
    let text = copied_by(&mut window, "Copy table").expect("a table on the clipboard");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), groups.len() + 1);
    assert!(lines[0].starts_with("group\tbytes\tcount"));
    assert!(lines[1].starts_with("record.py:63 validate\t599891968\t242"), "{}", lines[1]);

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table.csv");
    let save = |window: &mut Window, path: &Path, confirm: &str| {
        settle(window);
        click(window, "Table");
        click(window, "Save table as CSV…");
        retype(window, "Path", &path.display().to_string());
        click(window, confirm);
    };
    // It is CSV whatever the name says, and the name says it then.
    save(&mut window, &folder.path().join("table"), "Save");
    std::fs::write(folder.path().join("other.csv"), "older").expect("a file");
    save(&mut window, &folder.path().join("other"), "Replace the file");
    let other = std::fs::read_to_string(folder.path().join("other.csv")).expect("the table");
    let saved = std::fs::read_to_string(&path).expect("the table");
    assert_eq!(saved, other);
    assert_eq!(saved.lines().count(), groups.len() + 1);
    assert!(saved.lines().nth(1).is_some_and(|line| line.starts_with("record.py:63 validate,599891968,242")));
}

#[test]
fn the_capacity_is_a_curve_and_a_figure() {
    let mut window = leak();
    let data = window.state().state().data.clone().expect("a session");
    let capacity = data.curves.iter().find(|curve| curve.quantity == Quantity::Capacity).expect("a capacity");
    window.get_by_label_contains("capacity 140.4 GiB");
    let label = capacity.label.clone();
    // It may lie beyond the edge of the legend, which scrolls.
    window.get_by_label(&format!("Hide curve {label}")).click_accesskit();
    settle(&mut window);
    window.get_by_label(&format!("Show curve {label}"));
    assert!(window.query_by_label_contains("capacity 140.4 GiB").is_none());
}

#[test]
fn the_menu_of_a_track_selects_and_shows() {
    let mut window = leak();
    let whole = window.state().state().view;
    let span = window.state().state().data.as_ref().expect("a session").span();
    let step = window.state().state().data.as_ref().expect("a session").session().processes[0].steps[9];
    let middle_ns = step.range.start_ns + step.range.duration_ns() / 2;
    let rect = track(&window, "Memory over time");
    let share = (middle_ns - whole.start_ns) as f32 / whole.duration_ns() as f32;
    let at = pos2(rect.left() + share * rect.width(), rect.center().y);
    right_click(&mut window, at);
    click(&mut window, &format!("Select step {}", step.number));
    assert_eq!(range(&window), Some(step.range));
    right_click(&mut window, at);
    click(&mut window, "Zoom to range");
    assert!(window.state().state().view.duration_ns() < whole.duration_ns() / 3);
    let at = track(&window, "Memory over time").center();
    right_click(&mut window, at);
    click(&mut window, "Show everything");
    assert_eq!(window.state().state().view, whole);
    right_click(&mut window, at);
    click(&mut window, "Select whole run");
    assert_eq!(range(&window), Some(span));
    right_click(&mut window, at);
    click(&mut window, "Select suggested growth");
    let suggested = window.state().state().data.as_ref().map(|data| data.suggestions[0].range);
    assert_eq!(range(&window), suggested);
    right_click(&mut window, at);
    click(&mut window, "See what is live here");
    assert!(window.state().state().cursor_ns.is_some());
    right_click(&mut window, at);
    click(&mut window, "Add note here…");
    window.get_by_label("Note").focus();
    window.step();
    window.get_by_label("Note").type_text("it grows from here");
    window.run_steps(2);
    click(&mut window, "Add");
    assert_eq!(window.state().state().choices.notes[0].text, "it grows from here");
    right_click(&mut window, at);
    click(&mut window, "Clear range");
    assert_eq!(range(&window), None);
}

#[test]
fn dragging_with_shift_or_the_middle_button_pans() {
    let mut window = leak();
    for _ in 0..4 {
        key(&mut window, Modifiers::NONE, Key::W);
    }
    let rect = track(&window, "Memory over time");
    let (from, to) = (rect.center(), rect.center() - egui::vec2(120.0, 0.0));
    let before = (window.state().state().view, range(&window));
    drag(&mut window, from, to, Modifiers::SHIFT);
    let panned = window.state().state().view;
    assert!(panned.start_ns > before.0.start_ns);
    assert_eq!(panned.duration_ns(), before.0.duration_ns());
    let middle = |pos, pressed| Event::PointerButton {
        pos,
        button: PointerButton::Middle,
        pressed,
        modifiers: Modifiers::NONE,
    };
    window.hover_at(from);
    window.event(middle(from, true));
    window.hover_at(from.lerp(to, 0.5));
    window.hover_at(to);
    window.event(middle(to, false));
    settle(&mut window);
    assert!(window.state().state().view.start_ns > panned.start_ns);
    assert_eq!(range(&window), before.1, "the range stays");
}

/// On a French keyboard the key in the place of W says Z.
#[test]
fn keys_of_direction_go_by_their_place() {
    let mut window = leak();
    let whole = window.state().state().view;
    window.event(Event::Key {
        key: Key::Z,
        physical_key: Some(Key::W),
        pressed: true,
        repeat: false,
        modifiers: Modifiers::NONE,
    });
    settle(&mut window);
    assert!(window.state().state().view.duration_ns() < whole.duration_ns());
}

/// A button that was reached by Tab used to take all keys of the window away.
#[test]
fn keys_work_while_a_button_has_the_keyboard() {
    let mut window = leak();
    window.get_by_label("Tab Live").focus();
    window.step();
    let whole = window.state().state().view;
    key(&mut window, Modifiers::NONE, Key::W);
    assert!(window.state().state().view.duration_ns() < whole.duration_ns());
}

#[test]
fn a_range_is_typed_by_offset_share_and_the_step_after_the_last() {
    let mut window = leak();
    let data = window.state().state().data.clone().expect("a session");
    let span = data.span();
    type_range(&mut window, "+0.5s", "40%");
    let typed = range(&window).expect("a range");
    assert_eq!(typed.start_ns, span.start_ns + 500_000_000);
    let share = (typed.end_ns - span.start_ns) as f64 / span.duration_ns() as f64;
    assert!((share - 0.4).abs() < 1e-3, "{share}");
    let last = *data.session().processes[0].steps.last().expect("steps");
    type_range(&mut window, "step:8", &format!("step:{}", last.number + 1));
    assert_eq!(range(&window).map(|range| range.end_ns), Some(last.range.end_ns));
}

/// When nothing moves, nothing is drawn: an idle window costs no power.
#[test]
fn an_idle_window_asks_for_no_more_frames() {
    let mut window = leak();
    for tab in tabs(&window) {
        click(&mut window, &format!("Tab {}", tab.label()));
        // Toasts go by themselves.
        window.run_steps(300);
        window.step();
        let delays: Vec<Duration> =
            window.output().viewport_output.values().map(|viewport| viewport.repaint_delay).collect();
        assert!(delays.iter().all(|delay| *delay == Duration::MAX), "{}: {delays:?}", tab.label());
    }
}

/// Rows are reached and chosen without a pointer: on from the filter by Tab, from row to row by arrows.
#[test]
fn rows_are_reached_by_keyboard() {
    let mut window = leak();
    key(&mut window, Modifiers::COMMAND, Key::F);
    let selected = |window: &Window| window.state().state().selected.clone();
    for _ in 0..30 {
        if selected(&window).is_some() {
            break;
        }
        key(&mut window, Modifiers::NONE, Key::Tab);
        key(&mut window, Modifiers::NONE, Key::Enter);
    }
    let first = selected(&window);
    assert!(matches!(first, Some(Selected::Group(_))), "{first:?}");
    for arrow in [Key::ArrowDown, Key::ArrowUp] {
        let before = selected(&window);
        key(&mut window, Modifiers::NONE, arrow);
        key(&mut window, Modifiers::NONE, Key::Enter);
        assert_ne!(selected(&window), before, "{arrow:?}");
    }
    assert_eq!(selected(&window), first);
}
