//! How the window looks: each state in both themes.

use super::*;

/// The window with a range brushed over the leaking snapshot.
fn brushed(theme: Theme) -> Window {
    let mut window = window(vec![sample(LEAK).join("snapshot.pickle.gz")], [1100.0, 760.0], theme);
    settle(&mut window);
    key(&mut window, Modifiers::NONE, Key::Escape);
    let rect = track(&window, "Memory over time");
    let at = |share: f32| pos2(rect.left() + share * rect.width(), rect.center().y);
    drag(&mut window, at(0.3), at(0.6), Modifiers::NONE);
    window
}

/// The window with the whole sample.
fn loaded(size: [f32; 2], theme: Theme) -> Window {
    let mut window = window(vec![sample(LEAK)], size, theme);
    settle(&mut window);
    window
}

/// The window with its findings, the first one selected.
fn findings(theme: Theme) -> Window {
    let mut window = loaded([1280.0, 860.0], theme);
    click(&mut window, "Tab Findings");
    let title = window.state().state().answers.findings[0].title.clone();
    window.get_all_by_label(&title).next().expect("the first finding").click();
    settle(&mut window);
    window
}

fn look(name: &str, mut of: impl FnMut(Theme) -> Window) {
    let mut results = SnapshotResults::new();
    for (theme, suffix) in [(Theme::Dark, "dark"), (Theme::Light, "light")] {
        let mut window = of(theme);
        window.remove_cursor();
        window.run_steps(3);
        results.add(window.try_snapshot(format!("{name}_{suffix}")));
    }
}

#[test]
fn empty_picture() {
    look("empty", |theme| window(Vec::new(), [900.0, 600.0], theme));
}

#[test]
fn brushed_picture() {
    look("brushed", brushed);
}

#[test]
fn loaded_picture() {
    look("loaded", |theme| loaded([1280.0, 860.0], theme));
}

#[test]
fn findings_picture() {
    look("findings", findings);
}

#[test]
fn narrow_picture() {
    look("narrow", |theme| loaded([700.0, 600.0], theme));
}

#[test]
fn ranks_picture() {
    let folder = crate::ranks::run();
    look("ranks", |theme| {
        let mut window = window(vec![folder.path().to_owned()], [1100.0, 500.0], theme);
        settle(&mut window);
        // In the order of ranks: of equal ones, which is done first differs from run to run.
        click(&mut window, "Sort by rank");
        click(&mut window, "Sort by rank, sorted from the largest");
        window
    });
}
