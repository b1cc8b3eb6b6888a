//! A run of many ranks: summed up one by one, then opened one at a time.

use vramscope::app::RankOrigin;
use vramscope::model::Quantity;

use super::*;
use crate::ranks::{LEAKING, RANKS, path, report, run};

/// The window with the folder of a run dropped on it.
fn dropped(folder: &Path) -> Window {
    let mut window = window(Vec::new(), [1280.0, 860.0], Theme::Dark);
    window.run_steps(2);
    drop_file(&mut window, folder.to_owned());
    window
}

fn click_link(window: &mut Window, name: &str) {
    window.get_all_by_label(name).last().expect("a rank's name").click();
    settle(window);
}

fn opened(window: &Window) -> Vec<String> {
    let files = &window.state().state().opened;
    files.iter().map(|file| file.path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

#[test]
fn many_ranks_are_summed_up_and_none_is_held() {
    let folder = run();
    let window = dropped(folder.path());
    let state = window.state().state();
    assert!(state.data.is_none() && state.opened.is_empty(), "nothing is held");
    window.get_by_label("A run of 40 ranks");
    window.get_by_label("1 of 40 ranks stand out.");
    // The figures are those of the report, rank by rank.
    let report = report(&[&path(folder.path())]);
    let mut expected: Vec<_> = report["processes"].as_array().unwrap().clone();
    let mut found: Vec<serde_json::Value> = state
        .ranks()
        .iter()
        .map(|row| serde_json::to_value(row.figures.as_ref().expect("it can be read")).unwrap())
        .collect();
    let rank = |process: &serde_json::Value| process["rank"].as_u64();
    expected.sort_by_key(rank);
    found.sort_by_key(rank);
    assert_eq!(found.len(), RANKS as usize);
    assert_eq!(found, expected);
    assert_eq!(found.iter().position(|process| process["is_outlier"] == true), Some(LEAKING as usize));
}

#[test]
fn a_rank_is_opened_in_the_place_of_another_or_beside_it() {
    let folder = run();
    std::fs::copy(sample(LEAK).join("nvidia-smi-gpu.csv"), folder.path().join("gpu.csv")).unwrap();
    let mut window = dropped(folder.path());
    click_link(&mut window, "rank 17");
    assert_eq!(opened(&window), ["gpu.csv", "snapshot_rank17.pickle"], "with the log that belongs to all");
    let state = window.state().state();
    assert_eq!((state.tab, state.answers.kept.groups[0].key.as_str()), (Tab::Kept, "record.py:63 validate"));
    assert!(state.choices.range.is_some(), "its growth is brushed");
    let span = state.data.as_ref().unwrap().session().processes[0].recorded;

    key(&mut window, Modifiers::NONE, Key::Num9);
    window.get_by_label("1 of 40 ranks stand out.");
    window.get_by_label("open");
    click_link(&mut window, "rank 1");
    assert_eq!(opened(&window), ["gpu.csv", "snapshot_rank1.pickle"]);
    let state = window.state().state();
    assert_ne!(state.data.as_ref().unwrap().session().processes[0].recorded, span);
    let range = state.choices.range.expect("a range of its own");
    assert!(state.data.as_ref().unwrap().span().overlaps(range), "not that of the rank before");

    click(&mut window, "Tab Ranks");
    let name = window.get_all_by_label("rank 17").last().expect("its row").rect();
    press(&mut window, name.right_center() + egui::vec2(150.0, 0.0), PointerButton::Primary, Modifiers::NONE);
    click(&mut window, "Open rank 17 beside what is open");
    assert_eq!(opened(&window), ["gpu.csv", "snapshot_rank1.pickle", "snapshot_rank17.pickle"]);
    assert_eq!(window.state().state().data.as_ref().unwrap().session().processes.len(), 2);
}

#[test]
fn ranks_that_cannot_be_read_say_why() {
    let folder = run();
    let damaged = folder.path().join("snapshot_rank5.pickle");
    let bytes = std::fs::read(&damaged).unwrap();
    std::fs::write(&damaged, [&bytes[..400], &[b'.'; 400]].concat()).unwrap();
    std::fs::write(folder.path().join("notes.bin"), [0_u8; 99]).unwrap();
    let mut window = dropped(folder.path());
    window.get_by_label("1 could not be read.");
    window.get_by_label_contains("2 files in the folder tell nothing of memory and were left out");
    let row =
        window.state().state().ranks().iter().find(|row| row.name == "rank 5").expect("its row").clone();
    let why = row.figures.expect_err("not readable");
    assert!(why.ends_with("snapshot_rank5.pickle"), "{why}");
    // Last, whatever the table is sorted by.
    click(&mut window, "Sort by per step, sorted from the largest");
    assert!(window.query_by_label(&why).is_none());

    window.get_by_label("Filter").focus();
    window.step();
    window.get_by_label("Filter").type_text("-vramscope rank 5");
    settle(&mut window);
    assert!(window.query_all_by_label("rank 17").count() == 0);
}

#[test]
fn all_ranks_can_be_opened_at_once_and_closed() {
    let folder = run();
    let mut window = dropped(folder.path());
    click(&mut window, "Open all at once");
    assert_eq!(opened(&window).len(), RANKS as usize);
    // The same addresses at the same moments, but of other ranks.
    assert_eq!(window.state().state().data.as_ref().unwrap().session().processes.len(), RANKS as usize);
    window.get_by_label("File").click();
    window.run_steps(3);
    click(&mut window, "Close all");
    window.get_by_label("What is holding your GPU memory?");
}

/// Few ranks are opened together; the tab sets them side by side.
#[test]
fn ranks_that_are_open_are_told_apart() {
    let folder = run();
    let files = [3, LEAKING].map(|rank| folder.path().join(format!("snapshot_rank{rank}.pickle")));
    let mut window = window(files.to_vec(), [1280.0, 860.0], Theme::Dark);
    settle(&mut window);
    click(&mut window, "Tab Ranks");
    window.get_by_label_contains("stands out by");
    let data = window.state().state().data.clone().expect("a session");
    let allocated = data.curves.iter().filter(|curve| curve.quantity == Quantity::Allocated);
    let mut shades: Vec<usize> = allocated.map(|curve| curve.nth).collect();
    shades.sort_unstable();
    assert_eq!(shades, [0, 1], "each has a shade of its own");
    click_link(&mut window, "rank 17");
    let state = window.state().state();
    let id = state.choices.selection.process.expect("one process is looked at");
    assert_eq!(state.data.as_ref().unwrap().session().process(id).rank, Some(LEAKING));
    assert_eq!(state.ranks().len(), 2, "all of them are still in the table");
    assert!(matches!(state.ranks()[0].origin, RankOrigin::Process(_)));
}

#[test]
fn one_process_has_no_tab_of_ranks() {
    let mut window = leak();
    assert!(window.query_by_label("Tab Ranks").is_none());
    key(&mut window, Modifiers::NONE, Key::Num9);
    assert_eq!(window.state().state().tab, Tab::Kept);
}

/// The filter that found a rank would hide what the rank holds.
#[test]
fn a_rank_is_opened_without_the_filter_that_found_it() {
    let folder = run();
    let mut window = dropped(folder.path());
    window.get_by_label("Filter").focus();
    window.step();
    window.get_by_label("Filter").type_text("17");
    settle(&mut window);
    window.get_all_by_label("rank 17").last().expect("its row");
    click_link(&mut window, "rank 17");
    let state = window.state().state();
    assert_eq!((state.tab, state.choices.filter.as_str()), (Tab::Kept, ""));
    assert!(!state.answers.kept.groups.is_empty());
}

#[test]
fn arrows_go_from_rank_to_rank() {
    let folder = run();
    let mut window = dropped(folder.path());
    key(&mut window, Modifiers::NONE, Key::ArrowDown);
    let first = window.state().state().selected.clone();
    key(&mut window, Modifiers::NONE, Key::ArrowDown);
    let second = window.state().state().selected.clone();
    assert!(matches!((&first, &second), (Some(Selected::Rank(_)), Some(Selected::Rank(_)))));
    assert_ne!(first, second);
}

#[test]
fn notes_of_a_rank_are_told_under_the_pointer() {
    let folder = run();
    let cut = folder.path().join("snapshot_rank5.pickle");
    let bytes = std::fs::read(&cut).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() * 9 / 10]).unwrap();
    let mut window = dropped(folder.path());
    click(&mut window, "Sort by rank");
    click(&mut window, "Sort by rank, sorted from the largest");
    let rows = window.state().state().ranks().to_vec();
    let noted: Vec<_> = rows.iter().filter(|row| row.figures.is_ok() && !row.notes.is_empty()).collect();
    let note = noted.first().expect("a rank with notes").notes[0].clone();
    let word = if noted[0].notes.len() == 1 { "1 note" } else { &format!("{} notes", noted[0].notes.len()) };
    let at = window.get_all_by_label(word).next().expect("the word").rect().center();
    window.hover_at(at);
    window.run_steps(30);
    assert!(window.query_all_by_label_contains(&note).count() > 0);
}
