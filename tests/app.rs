//! The window, driven as a user drives it: by pointer, keys and the names of its controls.

mod clicks;
mod compare;
mod dialogs;
mod map;
mod pictures;
mod ranks;
mod tables;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use egui::{Event, Key, Modifiers, PointerButton, Pos2, Rect, Theme, pos2};
use egui_kittest::kittest::Queryable as _;
use egui_kittest::{Harness, SnapshotResults};
use vramscope::app::{App, Dialog, Selected, Tab};
use vramscope::model::TimeRange;
use vramscope::text::Language;

use crate::support::sample;

const LEAK: &str = "val_without_no_grad";

type Window = Harness<'static, App>;

fn window(paths: Vec<PathBuf>, size: [f32; 2], theme: Theme) -> Window {
    window_of(App::new(paths), size, theme)
}

fn window_of(app: App, size: [f32; 2], theme: Theme) -> Window {
    Harness::builder().with_size(size).with_step_dt(1.0 / 30.0).with_theme(theme).build_ui_state(
        |ui, app: &mut App| {
            app.logic(ui.ctx());
            app.ui(ui);
        },
        app,
    )
}

/// Steps until all threads are done and what they found is drawn.
fn settle(window: &mut Window) {
    let deadline = Instant::now() + Duration::from_secs(120);
    window.run_steps(3);
    while !window.state().is_idle() {
        assert!(Instant::now() < deadline, "the window never came to rest");
        window.step();
        std::thread::sleep(Duration::from_millis(5));
    }
    window.run_steps(6);
}

/// The window with the leaking sample opened.
fn leak() -> Window {
    let mut window = window(vec![sample(LEAK)], [1280.0, 860.0], Theme::Dark);
    settle(&mut window);
    assert!(window.state().state().data.is_some(), "{:?}", window.state().state().messages);
    window
}

fn range(window: &Window) -> Option<TimeRange> {
    window.state().state().choices.range
}

fn track(window: &Window, label: &str) -> Rect {
    window.get_by_label_contains(label).rect()
}

fn button(pos: Pos2, pressed: bool, modifiers: Modifiers) -> Event {
    Event::PointerButton { pos, button: PointerButton::Primary, pressed, modifiers }
}

fn drag(window: &mut Window, from: Pos2, to: Pos2, modifiers: Modifiers) {
    window.event(Event::ModifiersChanged(modifiers));
    window.hover_at(from);
    window.event(button(from, true, modifiers));
    window.hover_at(from.lerp(to, 0.3));
    window.hover_at(to);
    window.event(button(to, false, modifiers));
    window.event(Event::ModifiersChanged(Modifiers::NONE));
    settle(window);
}

/// Clicks on what is called exactly so.
fn click(window: &mut Window, label: &str) {
    window.get_by_label(label).click();
    settle(window);
}

fn press(window: &mut Window, at: Pos2, button: PointerButton, modifiers: Modifiers) {
    window.hover_at(at);
    for pressed in [true, false] {
        window.event_modifiers(Event::PointerButton { pos: at, button, pressed, modifiers }, modifiers);
    }
    settle(window);
}

fn key(window: &mut Window, modifiers: Modifiers, key: Key) {
    window.key_press_modifiers(modifiers, key);
    settle(window);
}

/// The tabs that the session has.
fn tabs(window: &Window) -> Vec<Tab> {
    Tab::ALL.into_iter().filter(|&tab| window.state().state().has_tab(tab)).collect()
}

/// Types a range into its two fields.
fn type_range(window: &mut Window, start: &str, end: &str) {
    for (field, text) in [("Start of range", start), ("End of range", end)] {
        window.get_by_label(field).focus();
        window.step();
        window.key_press_modifiers(Modifiers::COMMAND, Key::A);
        window.step();
        window.get_by_label(field).type_text(text);
        window.step();
    }
    window.key_press(Key::Enter);
    settle(window);
}

#[derive(Debug)]
struct Dropped(PathBuf);

impl egui::DroppedFile for Dropped {
    fn path(&self) -> &Path {
        &self.0
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        Err("the app reads files by their path".to_owned())
    }
}

/// Types a text in place of what a field holds.
fn retype(window: &mut Window, field: &str, text: &str) {
    window.get_by_label(field).focus();
    window.step();
    window.key_press_modifiers(Modifiers::COMMAND, Key::A);
    window.step();
    window.get_by_label(field).type_text(text);
    window.run_steps(2);
}

fn drop_file(window: &mut Window, path: PathBuf) {
    window.input_mut().dropped_files.push(Arc::new(Dropped(path)));
    window.step();
    std::thread::sleep(Duration::from_millis(20));
    window.run_steps(6);
    settle(window);
}

#[test]
fn empty_window_says_what_to_do() {
    let mut window = window(Vec::new(), [900.0, 700.0], Theme::Light);
    window.run_steps(3);
    for label in ["What is holding your GPU memory?", "Open path…", "Memory snapshot", "nvidia-smi log"] {
        window.get_by_label(label);
    }
    window.get_by_label("Sample: a healthy run").click();
    settle(&mut window);
    window.get_by_label("Tab Kept");
}

#[test]
fn dropped_files_become_a_session_with_its_leak_in_sight() {
    let mut window = window(Vec::new(), [1280.0, 860.0], Theme::Dark);
    window.run_steps(2);
    drop_file(&mut window, sample(LEAK).join("snapshot.pickle.gz"));
    drop_file(&mut window, sample(LEAK).join("nvidia-smi-gpu.csv"));
    let state = window.state().state();
    assert_eq!(state.opened.len(), 2, "the second file joined the first");
    assert!(state.choices.range.is_some(), "growth is brushed to begin with");
    window.get_by_label_contains("Memory over time");
    assert!(window.query_all_by_label_contains("record.py:63 validate").count() > 0);
}

#[test]
fn a_typed_range_has_the_figures_that_were_counted_independently() {
    let mut window = leak();
    type_range(&mut window, "step:8", "step:16");
    let answers = &window.state().state().answers;
    assert_eq!(answers.totals.recording_end.count, 244);
    assert_eq!(answers.totals.recording_end.bytes, 601_661_440);
    assert_eq!(answers.totals.range_end.count, 431);
    assert_eq!(answers.totals.range_end.bytes, 769_644_840);
    // The training log prints the same levels: they count once. From the run's own account, step 15's end against 7's.
    let truth =
        std::fs::read_to_string(crate::support::root().join("tests/fixtures/truth/val_without_no_grad.json"));
    let truth: serde_json::Value = serde_json::from_str(&truth.expect("the truth")).expect("JSON");
    let rise = |key: &str| Some(truth["steps"][15][key].as_i64()? - truth["steps"][7][key].as_i64()?);
    assert_eq!(answers.rises.allocated, rise("allocated"));
    assert_eq!(answers.rises.reserved, rise("reserved"));
    let group = &answers.kept.groups[0];
    assert_eq!((group.key.as_str(), group.count, group.bytes), ("record.py:63 validate", 242, 599_891_968));
    window.get_by_label("kept 573.8 MiB in 244 allocations");
    window.get_by_label("kept at range end 734.0 MiB in 431 allocations");
}

#[test]
fn brush_edges_band_extension_and_undo() {
    let mut window = leak();
    key(&mut window, Modifiers::NONE, Key::Escape);
    assert_eq!(range(&window), None);
    let rect = track(&window, "Memory over time");
    let at = |share: f32| pos2(rect.left() + share * rect.width(), rect.center().y);

    drag(&mut window, at(0.3), at(0.6), Modifiers::NONE);
    let brushed = range(&window).expect("a range");
    assert_eq!(window.state().state().answers.totals_of, Some(brushed), "totals followed the pointer");

    drag(&mut window, at(0.6), at(0.7), Modifiers::NONE);
    let grown = range(&window).expect("a range");
    assert_eq!(grown.start_ns, brushed.start_ns, "the edge was dragged, the other one stays");
    assert!(grown.end_ns > brushed.end_ns);

    let ruler = track(&window, "Time ruler");
    let band = |share: f32| pos2(ruler.left() + share * ruler.width(), ruler.center().y);
    drag(&mut window, band(0.5), band(0.4), Modifiers::NONE);
    let moved = range(&window).expect("a range");
    assert_eq!(moved.duration_ns(), grown.duration_ns());
    assert!(moved.start_ns < grown.start_ns);

    let far = at(0.9);
    window.hover_at(far);
    window.event_modifiers(button(far, true, Modifiers::SHIFT), Modifiers::SHIFT);
    window.event_modifiers(button(far, false, Modifiers::SHIFT), Modifiers::SHIFT);
    settle(&mut window);
    let extended = range(&window).expect("a range");
    assert_eq!(extended.start_ns, moved.start_ns);
    assert!(extended.end_ns > moved.end_ns);

    for expected in [Some(moved), Some(grown), Some(brushed), None] {
        key(&mut window, Modifiers::COMMAND, Key::Z);
        assert_eq!(range(&window), expected);
    }
    key(&mut window, Modifiers::COMMAND | Modifiers::SHIFT, Key::Z);
    assert_eq!(range(&window), Some(brushed));
}

#[test]
fn keys_of_the_view() {
    let mut window = leak();
    let view = |window: &Window| window.state().state().view;
    let whole = view(&window);
    key(&mut window, Modifiers::NONE, Key::W);
    let closer = view(&window);
    assert!(closer.duration_ns() < whole.duration_ns());
    key(&mut window, Modifiers::NONE, Key::D);
    assert!(view(&window).start_ns > closer.start_ns);
    key(&mut window, Modifiers::NONE, Key::A);
    key(&mut window, Modifiers::NONE, Key::ArrowLeft);
    assert!(view(&window).start_ns < closer.start_ns);
    key(&mut window, Modifiers::NONE, Key::S);
    key(&mut window, Modifiers::NONE, Key::S);
    assert_eq!(view(&window), whole);

    key(&mut window, Modifiers::NONE, Key::CloseBracket);
    let step = range(&window).expect("the next step");
    key(&mut window, Modifiers::NONE, Key::OpenBracket);
    assert!(range(&window).expect("the step before").start_ns < step.start_ns);
    key(&mut window, Modifiers::NONE, Key::F);
    assert!(view(&window).duration_ns() < whole.duration_ns() / 2);
    key(&mut window, Modifiers::NONE, Key::Home);
    assert_eq!(view(&window), whole);
    key(&mut window, Modifiers::ALT, Key::ArrowLeft);
    assert!(view(&window).duration_ns() < whole.duration_ns() / 2);
    key(&mut window, Modifiers::ALT, Key::ArrowRight);
    assert_eq!(view(&window), whole);

    key(&mut window, Modifiers::NONE, Key::P);
    let peak = window.state().state().data.as_ref().and_then(|data| data.peak).map(|(at_ns, _)| at_ns);
    assert_eq!(window.state().state().cursor_ns, peak);
    key(&mut window, Modifiers::NONE, Key::G);
    let suggested = window.state().state().data.as_ref().map(|data| data.suggestions[0].range);
    assert_eq!(range(&window), suggested);
}

#[test]
fn wheel_zooms_at_the_pointer_and_double_click_fits() {
    let mut window = leak();
    let whole = window.state().state().view;
    let at = track(&window, "Memory over time").center();
    window.hover_at(at);
    window.event(Event::MouseWheel {
        unit: egui::MouseWheelUnit::Line,
        delta: egui::vec2(0.0, 4.0),
        phase: egui::TouchPhase::Move,
        source: egui::MouseWheelSource::Unknown,
        modifiers: Modifiers::NONE,
    });
    window.run_steps(20);
    let closer = window.state().state().view;
    assert!(closer.duration_ns() < whole.duration_ns());
    for pressed in [true, false, true, false] {
        window.event(button(at, pressed, Modifiers::NONE));
    }
    settle(&mut window);
    assert_eq!(window.state().state().view, whole);
}

#[test]
fn keys_of_dialogs_and_tabs() {
    let mut window = leak();
    key(&mut window, Modifiers::NONE, Key::F1);
    window.get_by_label("Brush a range");
    key(&mut window, Modifiers::NONE, Key::Escape);
    assert_eq!(window.state().state().dialog, None);
    key(&mut window, Modifiers::NONE, Key::Questionmark);
    assert_eq!(window.state().state().dialog, Some(Dialog::Keys));
    key(&mut window, Modifiers::NONE, Key::Escape);
    for (number, tab) in
        [Key::Num1, Key::Num2, Key::Num3, Key::Num4, Key::Num5, Key::Num6, Key::Num7, Key::Num8]
            .into_iter()
            .zip(Tab::ALL)
    {
        key(&mut window, Modifiers::NONE, number);
        assert_eq!(window.state().state().tab, tab);
    }
    for tab in tabs(&window) {
        window.get_by_label(&format!("Tab {}", tab.label())).click();
        settle(&mut window);
        assert_eq!(window.state().state().tab, tab);
    }
    window.get_by_label("Tab Kept").click();
    settle(&mut window);
    key(&mut window, Modifiers::COMMAND, Key::F);
    window.get_by_label("Filter").type_text("validate -conv");
    settle(&mut window);
    assert_eq!(window.state().state().choices.filter, "validate -conv");
    assert!(window.state().state().answers.kept.unfiltered > window.state().state().answers.kept.rows.len());
}

#[test]
fn rows_open_in_the_details_and_in_the_tracks() {
    let mut window = leak();
    type_range(&mut window, "step:8", "step:16");
    // The legend of the map says it first.
    window.get_all_by_label("record.py:63 validate").last().expect("its row").click();
    settle(&mut window);
    let selected = Some(Selected::Group("record.py:63 validate".to_owned()));
    assert_eq!(window.state().state().selected, selected);
    window.get_by_label("Python stack, innermost first");

    window.get_by_label("Allocations").click();
    settle(&mut window);
    assert!(window.state().state().is_flat);
    window.get_all_by_label("not freed").next().expect("a row").click();
    settle(&mut window);
    assert!(matches!(window.state().state().selected, Some(Selected::Row(_))));
    let before = window.state().state().view;
    window.get_by_label("Show in tracks").click();
    settle(&mut window);
    assert_ne!(window.state().state().view, before);
}

#[test]
fn a_file_that_cannot_be_read_leaves_the_session_as_it_was() {
    let mut window = leak();
    let opened = window.state().state().opened.len();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("picture.png");
    std::fs::write(&path, b"\x89PNG\r\n\x1a\n and more").expect("written");
    drop_file(&mut window, path);
    assert_eq!(window.state().state().opened.len(), opened);
    window.get_by_label_contains("this is a PNG image");
}

#[test]
fn a_report_is_exported_to_a_typed_path() {
    let mut window = leak();
    type_range(&mut window, "step:8", "step:16");
    let folder = tempfile::tempdir().expect("a folder");
    // What could not be read belongs into the report as well.
    let broken = folder.path().join("broken.pickle");
    std::fs::write(&broken, b"\x80\x04cos\nsystem\n.").expect("written");
    drop_file(&mut window, broken.clone());
    let path = folder.path().join("report.html");
    key(&mut window, Modifiers::COMMAND, Key::S);
    window.get_by_label("JSON").click();
    window.run_steps(2);
    window.get_by_label("Path").focus();
    window.step();
    window.key_press_modifiers(Modifiers::COMMAND, Key::A);
    window.step();
    let path = path.with_extension("json");
    window.get_by_label("Path").type_text(&path.display().to_string());
    window.run_steps(2);
    window.get_by_label("Export").click();
    settle(&mut window);
    let text = std::fs::read_to_string(&path).expect("the report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["survivors"]["recording_end"]["bytes"], 601_661_440);
    assert_eq!(report["left_out"][0]["name"], broken.display().to_string());
    assert_eq!(window.state().state().dialog, None);
}

/// A recording can't be made again.
#[test]
fn a_report_never_replaces_what_is_open() {
    let mut window = leak();
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("own.log");
    let lines = "step 0 memory_allocated: 1.0 MiB\nstep 1 memory_allocated: 2.0 MiB\n";
    std::fs::write(&log, lines).expect("written");
    drop_file(&mut window, log.clone());
    key(&mut window, Modifiers::COMMAND, Key::S);
    retype(&mut window, "Path", &log.display().to_string());
    window.get_by_label("Export").click();
    settle(&mut window);
    window.get_by_label("Replace the file").click();
    settle(&mut window);
    let said = &window.state().state().messages;
    assert!(said.iter().any(|message| message.text.contains("would replace a file")), "{said:?}");
    assert_eq!(std::fs::read_to_string(log).expect("still there"), lines);
}

#[test]
fn the_export_dialog_shows_what_it_replaces() {
    let mut window = leak();
    key(&mut window, Modifiers::COMMAND, Key::S);
    assert!(window.query_all_by_label("snapshot-1").next().is_none());
    window.get_by_label("Replace names of users, hosts and folders").click();
    window.run_steps(3);
    assert!(window.query_all_by_label("snapshot-1").next().is_some());
}

#[test]
fn curves_sources_and_tracks_can_be_switched() {
    let mut window = leak();
    window.get_by_label("Hide curve reserved").click();
    settle(&mut window);
    window.get_by_label("Show curve reserved");
    window.get_by_label("Fold track Steps").click();
    settle(&mut window);
    window.get_by_label("Unfold track Steps");
    let sources = window.state().state().opened.len();
    window.get_by_label_contains("Close train.log").click();
    settle(&mut window);
    assert_eq!(window.state().state().opened.len(), sources - 1);
}

#[test]
fn every_tab_answers_for_the_range() {
    let mut window = leak();
    type_range(&mut window, "step:8", "step:16");
    window.get_by_label("Tab Stacks").click();
    settle(&mut window);
    window.get_by_label("Flame graph of 573.8 MiB in 244 allocations");
    window.get_by_label("From the allocation").click();
    settle(&mut window);
    window.get_by_label("Flame graph of 573.8 MiB in 244 allocations");
    window.get_by_label("Tab Segments").click();
    settle(&mut window);
    window.get_by_label_contains("Address map of");
    window.get_by_label("Tab Net").click();
    settle(&mut window);
    window.get_by_label_contains("in steps 8 to 15: allocated minus freed");
    window.get_by_label("Driver").click();
    settle(&mut window);
    window.get_by_label("the driver's figure");
    window.get_by_label("reserved by PyTorch in these recordings");
    window.get_by_label("Module tree").click();
    settle(&mut window);
    window.get_by_label_contains("by the module that was running");
    assert!(!window.state().state().answers.modules.is_empty());
    // The trace covers other steps: over the whole run modules lie in modules, and can be folded.
    key(&mut window, Modifiers::NONE, Key::Escape);
    let modules = window.state().state().answers.modules.clone();
    let outermost = modules.iter().find(|node| node.descendants > 0).expect("nested modules");
    window.get_by_label(&format!("⏷ {}", outermost.name)).click();
    settle(&mut window);
    assert!(window.state().state().looks.folded_modules.contains(&outermost.path));
    window.get_by_label(&format!("⏵ {}", outermost.name));
    window.get_by_label("Tab SQL").click();
    settle(&mut window);
    window.get_by_label("Run").click();
    settle(&mut window);
    let answer = window.state().state().sql.answer.clone();
    assert!(matches!(answer, Some(Ok(ref answer)) if !answer.rows.is_empty()), "{answer:?}");
}

#[test]
fn the_live_set_is_sorted_into_categories_and_compared_with_the_ranges_start() {
    let mut window = leak();
    type_range(&mut window, "step:8", "step:16");
    window.get_by_label("Tab Live").click();
    settle(&mut window);
    let all = window.state().state().answers.live.bytes;
    let categories = window.state().state().answers.live_categories.clone();
    assert_eq!(categories.iter().map(|(_, totals)| totals.bytes).sum::<u64>(), all);
    window.get_by_label_contains("activations ");
    for (button, words) in [("New", "and not at the range's start"), ("Gone", "alive at the range's start")] {
        window.get_by_label(button).click();
        settle(&mut window);
        window.get_by_label_contains(words);
        assert!(window.state().state().answers.live.bytes < all);
    }
}

#[test]
fn settings_are_applied_to_what_is_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("train.log");
    std::fs::write(&log, "memory_allocated: 1 MiB\nround 7 vram 12.5 GB\nround 8 vram 13 GB\n")
        .expect("written");
    let mut window = window(vec![log], [1000.0, 700.0], Theme::Dark);
    settle(&mut window);
    window.get_by_label("View").click();
    window.run_steps(3);
    window.get_by_label("Settings…").click();
    window.run_steps(3);
    let field = "A regular expression that finds memory figures in logs of your own";
    window.get_by_label(field).focus();
    window.step();
    window.get_by_label(field).type_text("round (");
    window.run_steps(2);
    window.get_by_label_contains("unclosed group");
    window.get_by_label(field).type_text(r"?P<step>\d+) vram (?P<allocated>.*)");
    window.run_steps(2);
    window.get_by_label("Apply").click();
    settle(&mut window);
    let series = &window.state().state().opened[0].recording.series;
    assert_eq!(series[0].bytes, [25 << 29, 13 << 30]);
    assert_eq!(window.state().state().dialog, None);
}

#[test]
fn a_click_on_the_allocation_map_selects_the_block() {
    let mut window = leak();
    for label in ["Fold track Steps", "Fold track Memory"] {
        window.get_by_label(label).click();
        settle(&mut window);
    }
    let rect = track(&window, "Allocations stacked by age");
    let at = pos2(rect.left() + 0.75 * rect.width(), rect.bottom() - 3.0);
    window.hover_at(at);
    for pressed in [true, false] {
        window.event(button(at, pressed, Modifiers::NONE));
    }
    settle(&mut window);
    assert!(matches!(window.state().state().selected, Some(Selected::Row(_))));
    window.get_by_label("Show in tracks");
}

#[test]
fn a_saved_session_comes_back_with_its_range() {
    let mut window = leak();
    type_range(&mut window, "step:8", "step:16");
    let saved = range(&window);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.vramscope");
    window.get_by_label("File").click();
    window.run_steps(3);
    window.get_by_label("Save session…").click();
    window.run_steps(3);
    window.key_press_modifiers(Modifiers::COMMAND, Key::A);
    window.step();
    window.get_by_label("Path").type_text(&path.display().to_string());
    window.run_steps(2);
    window.get_by_label("Save").click();
    settle(&mut window);
    assert!(path.is_file(), "{:?}", window.state().state().messages);

    let mut again = self::window(vec![path], [1280.0, 860.0], Theme::Dark);
    settle(&mut again);
    assert_eq!(range(&again), saved);
    assert_eq!(again.state().state().opened.len(), window.state().state().opened.len());
}

/// Set in the process that draws the window in Chinese.
const IN_CHINESE: &str = "VRAMSCOPE_TESTS_IN_CHINESE";

#[test]
fn pictures_in_chinese() {
    // The language is the whole process's, and the other tests of this one read English.
    if std::env::var_os(IN_CHINESE).is_none() {
        let tests = std::env::current_exe().expect("this program");
        let mut child = std::process::Command::new(tests);
        child.args(["--exact", "app::pictures_in_chinese", "--nocapture"]).env(IN_CHINESE, "1");
        assert!(child.status().expect("it starts").success());
        return;
    }
    Language::Chinese.speak();
    let mut results = SnapshotResults::new();
    let mut empty = window(Vec::new(), [900.0, 600.0], Theme::Light);
    empty.run_steps(3);
    let mut found = window(vec![sample(LEAK).join("snapshot.pickle.gz")], [1100.0, 760.0], Theme::Dark);
    settle(&mut found);
    found.get_by_label("标签页 诊断").click();
    settle(&mut found);
    found.get_by_label_contains("前向传播的计算图").click();
    settle(&mut found);
    for (name, mut window) in [("empty", empty), ("findings", found)] {
        window.remove_cursor();
        window.run_steps(3);
        results.add(window.try_snapshot(format!("{name}_chinese")));
    }
}

/// A session file may come from anyone: what it names could be a pipe or a file of the system, which blocks its reader.
#[test]
fn a_session_file_that_names_what_is_no_file_opens_nothing_and_blocks_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.vramscope");
    let entry = |name: &str| serde_json::json!({ "path": name, "fingerprint": "0" });
    let mut sources = vec![entry("/dev/zero"), entry("/proc/kmsg"), entry(".")];
    sources.extend((0..20).map(|number| entry(&format!("gone-{number}.pickle"))));
    let file = serde_json::json!({ "schema": "vramscope.session/1", "sources": sources });
    std::fs::write(&path, file.to_string()).expect("written");
    let mut window = self::window(vec![path], [1280.0, 860.0], Theme::Dark);
    settle(&mut window);
    assert!(window.state().state().opened.is_empty());
    let said =
        |text: &str| window.state().state().messages.iter().filter(|it| it.text.contains(text)).count();
    assert!(said("no longer where it was") > 0);
    assert_eq!(said("more files of the session are not as they were"), 1);
}
