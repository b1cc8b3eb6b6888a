//! The allocation map: its colours, and what can be selected in it.

use super::*;

/// The window with the map as the only track that is unfolded, so that its blocks are high.
fn map() -> Window {
    let mut window = leak();
    for label in ["Fold track Steps", "Fold track Memory"] {
        click(&mut window, label);
    }
    window
}

fn in_map(window: &Window, share: f32, above_bottom: f32) -> Pos2 {
    let rect = track(window, "Allocations stacked by age");
    pos2(rect.left() + share * rect.width(), rect.bottom() - above_bottom)
}

/// Chooses from a box of choices, each by the name that it is read by.
fn choose(window: &mut Window, choices: &str, choice: &str) {
    window.get_by_label(choices).click();
    window.run_steps(3);
    window.get_all_by_label(choice).last().expect("the choice").click();
    settle(window);
}

#[test]
fn colours_have_a_legend_and_words_under_the_pointer() {
    let mut window = map();
    window.get_by_label_contains("small ones");
    for (choice, words) in [
        ("colour by category", "activations"),
        ("colour by step", "step 8"),
        ("colour by module", "outside modules"),
        ("colour by call site", "record.py:63 validate"),
    ] {
        choose(&mut window, "What colours mean", choice);
        let map = window.state().state().map.clone().expect("a map");
        let labels: Vec<&str> = map.legend.iter().map(|class| class.label.as_str()).collect();
        assert!(labels.iter().any(|label| label.contains(words)), "{choice}: {labels:?}");
        assert_eq!(map.classes.len(), map.map.pieces.len());
        let first = labels.first().expect("a class").to_owned().to_owned();
        assert!(window.query_all_by_label(&first).next().is_some(), "the legend says {first}");
        let mut colors: Vec<_> = map.legend.iter().filter_map(|class| class.color).collect();
        let count = colors.len();
        colors.sort_unstable();
        colors.dedup();
        assert_eq!(colors.len(), count, "no two classes share a colour");
    }
}

#[test]
fn the_pointer_says_size_lifetime_and_stack() {
    let mut window = map();
    let at = in_map(&window, 0.75, 3.0);
    window.hover_at(at);
    window.run_steps(30);
    window.get_by_label_contains(", not freed");
    assert!(window.query_all_by_label_contains("record.py").count() > 0);
}

#[test]
fn ctrl_click_keeps_several_blocks() {
    let mut window = map();
    let (low, high) = (in_map(&window, 0.75, 3.0), in_map(&window, 0.75, 30.0));
    press(&mut window, low, PointerButton::Primary, Modifiers::NONE);
    let Some(Selected::Row(first)) = window.state().state().selected.clone() else { panic!("no block") };
    let cursor_ns = window.state().state().cursor_ns;
    press(&mut window, high, PointerButton::Primary, Modifiers::COMMAND);
    let Some(Selected::Rows(rows)) = window.state().state().selected.clone() else { panic!("not several") };
    assert_eq!((rows.len(), rows[0]), (2, first));
    assert_eq!(window.state().state().cursor_ns, cursor_ns, "the live set stays where it is");
    window.get_by_label("2 allocations selected");
    click(&mut window, "Show in tracks");

    key(&mut window, Modifiers::NONE, Key::Home);
    press(&mut window, high, PointerButton::Primary, Modifiers::COMMAND);
    assert_eq!(window.state().state().selected, Some(Selected::Row(first)), "again: not any more");
}
