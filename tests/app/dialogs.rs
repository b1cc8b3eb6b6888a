//! Dialogs, menus and fields: what they keep, and what a key in them does.

use egui_kittest::kittest::NodeT as _;
use vramscope::app::ExportForm;

use super::*;

/// Types over what a field holds.
fn form(window: &Window) -> ExportForm {
    match window.state().state().dialog.clone() {
        Some(Dialog::Export(form)) => form,
        other => panic!("no export dialog: {other:?}"),
    }
}

/// A second export used to replace a redacted file by one that was not, without a word.
#[test]
fn the_export_dialog_keeps_its_choices_and_asks_before_it_replaces() {
    let mut window = leak();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.json");
    key(&mut window, Modifiers::COMMAND, Key::S);
    click(&mut window, "Replace names of users, hosts and folders");
    retype(&mut window, "Path", &path.display().to_string());
    click(&mut window, "Export");
    assert_eq!(window.state().state().dialog, None);
    std::fs::write(&path, "mine").expect("written");

    key(&mut window, Modifiers::COMMAND, Key::S);
    let again = form(&window);
    assert_eq!((again.redact, again.path.as_str()), (true, path.to_str().expect("text")));
    assert!(!again.replaced.is_empty());
    click(&mut window, "Export");
    window.get_by_label("A file is there already; it will be replaced.");
    assert_eq!(std::fs::read_to_string(&path).expect("the file"), "mine");
    // What was said of this file holds of no other.
    retype(&mut window, "Path", &folder.path().join("other.json").display().to_string());
    window.get_by_label("Export");
    retype(&mut window, "Path", &path.display().to_string());
    click(&mut window, "Export");
    click(&mut window, "Replace the file");
    assert_eq!(window.state().state().dialog, None);
    assert!(std::fs::read_to_string(&path).expect("the report").len() > 1_000);
}

#[test]
fn what_is_replaced_is_shown_as_wide_as_there_is_room() {
    let mut window = leak();
    key(&mut window, Modifiers::COMMAND, Key::S);
    click(&mut window, "Replace names of users, hosts and folders");
    let replaced = form(&window).replaced;
    let longest = replaced.iter().max_by_key(|it| it.original.len()).expect("names");
    assert!(longest.original.len() > 20, "{replaced:?}");
    let rect = window.get_all_by_label(&longest.original).next().expect("its line").rect();
    let top =
        |at: usize| window.get_all_by_label(&replaced[at].original).next().expect("its line").rect().top();
    assert!((10.0..30.0).contains(&(top(1) - top(0))), "a line below the other");
    assert!(rect.width() > 5.0 * longest.original.len().min(60) as f32, "{rect:?}");
}

#[test]
fn esc_in_a_menu_closes_the_menu_alone() {
    let mut window = leak();
    let brushed = range(&window);
    assert!(brushed.is_some());
    for (menu, item) in [("View", "Settings…"), ("Table", "Copy table")] {
        window.get_by_label(menu).click();
        window.run_steps(3);
        window.get_by_label(item);
        key(&mut window, Modifiers::NONE, Key::Escape);
        assert!(window.query_by_label(item).is_none(), "{menu} is closed");
        assert_eq!(range(&window), brushed);
    }
    key(&mut window, Modifiers::NONE, Key::Escape);
    assert_eq!(range(&window), None);
}

#[test]
fn a_range_that_is_not_understood_stays_to_be_mended() {
    let mut window = leak();
    let (brushed, view) = (range(&window), window.state().state().view);
    let below = window.get_by_label("Tab Kept").rect();
    retype(&mut window, "Start of range", "banana");
    assert!(window.query_by_label_contains("banana").is_none(), "nothing is said while it is typed");
    key(&mut window, Modifiers::NONE, Key::Enter);
    let is_focused = |window: &Window| window.get_by_label("Start of range").accesskit_node().is_focused();
    assert!(is_focused(&window));
    window.get_by_label_contains("banana");
    assert_eq!(window.get_by_label("Tab Kept").rect(), below, "nothing moves");
    key(&mut window, Modifiers::NONE, Key::W);
    assert_eq!((range(&window), window.state().state().view), (brushed, view), "keys are text");
    window.get_by_label("Start of range").type_text("s");
    window.run_steps(3);
    assert!(window.query_by_label_contains("banana").is_none(), "the message was about another text");
    // Left alone, the fields say the range again.
    key(&mut window, Modifiers::NONE, Key::Escape);
    assert!(!is_focused(&window));
    assert_ne!(window.get_by_label("Start of range").value().as_deref(), Some("bananas"));
    assert_eq!(range(&window), brushed);
}

#[test]
fn a_small_window_shows_both_halves_and_all_keys() {
    let mut window = window(vec![sample(LEAK)], [640.0, 480.0], Theme::Dark);
    settle(&mut window);
    let row = window.get_all_by_label("record.py:63 validate").last().expect("a row").rect();
    assert!(row.bottom() < 480.0, "{row:?}");
    assert!(track(&window, "Memory over time").height() > 30.0);
    key(&mut window, Modifiers::NONE, Key::F1);
    window.run_steps(3);
    let close = window.get_by_label("Close").rect();
    assert!(close.bottom() < 480.0, "{close:?}");
    window.get_by_label("1 to 8");
}

#[test]
fn only_what_was_opened_is_recent_and_failures_are_told_in_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let broken: Vec<PathBuf> = ["a.png", "b.png", "c.png"].map(|name| folder.path().join(name)).to_vec();
    for path in &broken {
        std::fs::write(path, b"\x89PNG\r\n\x1a\n and more").expect("written");
    }
    let mut window = window(broken, [1000.0, 700.0], Theme::Dark);
    settle(&mut window);
    let state = |window: &Window| {
        let state = window.state().state();
        let shown = state.messages.iter().filter(|message| message.is_shown).count();
        (shown, state.messages.len(), state.settings.recent.clone())
    };
    assert_eq!(state(&window), (1, 4, vec![]), "one is seen, and all are in the log");
    window.get_by_label_contains("3 files could not be opened, View > Log says why: a.png, b.png, c.png");
    drop_file(&mut window, sample(LEAK).join("snapshot.pickle.gz"));
    assert_eq!(state(&window), (0, 4, vec![sample(LEAK).join("snapshot.pickle.gz")]));
}

/// Another language, too, has everything worked out again.
#[test]
fn what_is_selected_stays_when_the_same_files_are_put_together_again() {
    let mut window = leak();
    click(&mut window, "Allocations");
    window.get_all_by_label("not freed").next().expect("a row").click();
    settle(&mut window);
    let selected = window.state().state().selected.clone();
    assert!(selected.is_some());
    window.get_by_label("View").click();
    window.run_steps(3);
    click(&mut window, "Settings…");
    retype(
        &mut window,
        "Your own code although it lies in an installed package: a part of its path, one a line",
        "torchvision",
    );
    click(&mut window, "Apply");
    assert_eq!(window.state().state().selected, selected);
}
