//! The real program in a real window under Xvfb: a file is dropped on it, a range is brushed with the mouse, a report
//! is written.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::support::{root, sample};

const PATIENCE: Duration = Duration::from_secs(90);

/// A program that is stopped when the test ends, however it ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn has(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    found.is_ok_and(|output| output.status.success())
}

/// A Python that has Xlib: the system's own where another one comes first.
fn python() -> Option<&'static str> {
    let has_xlib = |python: &&str| {
        Command::new(python).args(["-c", "import Xlib"]).output().is_ok_and(|output| output.status.success())
    };
    ["python3", "/usr/bin/python3"].into_iter().find(has_xlib)
}

/// Xvfb on a display number that it picks itself. One starts at a time: two that find the lock of a server that was killed
/// both take its number. It is not reset when its last client leaves, as one that asks for windows each 0.1 s does: whoever
/// connects meanwhile is turned away.
fn display() -> (Running, String) {
    static STARTING: Mutex<()> = Mutex::new(());
    let _one = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut child = Command::new("Xvfb")
        .args(["-displayfd", "1", "-screen", "0", "1280x860x24", "-nolisten", "tcp", "-noreset"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("Xvfb starts");
    let mut number = String::new();
    let stdout = child.stdout.take().expect("its output");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut number)
        .expect("its display number");
    (Running(child), format!(":{}", number.trim()))
}

fn window(display: &str, home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramscope"));
    command.env("DISPLAY", display).env("HOME", home).env("XDG_DATA_HOME", home);
    command.env("LIBGL_ALWAYS_SOFTWARE", "1").env_remove("WAYLAND_DISPLAY").stdin(Stdio::null());
    command
}

fn xdotool(display: &str, arguments: &[&str]) -> String {
    let output =
        Command::new("xdotool").env("DISPLAY", display).args(arguments).output().expect("xdotool runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_there() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Exports a report as JSON into the folder. What is typed before a window under load has opened its dialog is lost: then
/// it is typed again.
fn export(display: &str, folder: &Path, name: &str) -> PathBuf {
    let deadline = Instant::now() + PATIENCE;
    for attempt in 0.. {
        let path = folder.join(format!("{name}{attempt}.json"));
        let _ = std::fs::remove_file(&path);
        xdotool(display, &["key", "ctrl+s"]);
        std::thread::sleep(Duration::from_millis(700));
        // The path field has the keyboard when the dialog opens; the format goes by the extension.
        xdotool(display, &["key", "ctrl+a"]);
        xdotool(display, &["type", "--delay", "4", &path.display().to_string()]);
        std::thread::sleep(Duration::from_millis(300));
        xdotool(display, &["key", "Return"]);
        for _ in 0..50 {
            if path.exists() {
                std::thread::sleep(Duration::from_millis(500));
                return path;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(Instant::now() < deadline, "waited in vain for the report");
        xdotool(display, &["key", "Escape"]);
    }
    unreachable!("attempts have no end")
}

fn range_of(report: &Path) -> (i64, i64) {
    let text = std::fs::read_to_string(report).expect("the report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["schema"], "vramscope.report/1");
    let of = |key: &str| report["range"][key].as_i64().expect("a time");
    (of("start_ns"), of("end_ns"))
}

#[test]
fn a_dropped_file_is_brushed_and_reported() {
    let Some(python) = python().filter(|_| has("Xvfb") && has("xdotool")) else {
        assert!(std::env::var_os("CI").is_none(), "tests/run.sh installs Xvfb, xdotool and python3-xlib");
        println!("skipped: needs Xvfb, xdotool and python3-xlib");
        return;
    };
    let (_server, display) = display();
    let home = tempfile::tempdir().expect("a folder");
    let _window = Running(window(&display, home.path()).spawn().expect("the window starts"));
    wait_for("the window", || !xdotool(&display, &["search", "--name", "^vramscope$"]).is_empty());
    std::thread::sleep(Duration::from_secs(2));
    let id = xdotool(&display, &["search", "--name", "^vramscope$"]);
    let id = id.lines().next().expect("a window").to_owned();
    xdotool(&display, &["windowmove", &id, "0", "0", "windowsize", &id, "1280", "860"]);
    xdotool(&display, &["windowfocus", &id]);

    let drop = Command::new(python)
        .env("DISPLAY", &display)
        .arg(root().join("tests/drop_file.py"))
        .arg("vramscope")
        .arg(sample("val_without_no_grad").join("snapshot.pickle.gz"))
        .output()
        .expect("the drop");
    assert!(drop.status.success(), "{}", String::from_utf8_lossy(&drop.stderr));
    xdotool(&display, &["windowfocus", &id]);
    let suggested = range_of(&export(&display, home.path(), "suggested"));
    wait_for("the brush to change the range", || {
        let brush = [
            "mousemove",
            "520",
            "200",
            "mousedown",
            "1",
            "sleep",
            "0.2",
            "mousemove",
            "600",
            "200",
            "sleep",
            "0.1",
            "mousemove",
            "760",
            "200",
            "sleep",
            "0.3",
            "mouseup",
            "1",
            "sleep",
            "0.5",
        ];
        xdotool(&display, &brush);
        let (start_ns, end_ns) = range_of(&export(&display, home.path(), "brushed"));
        assert!(start_ns < end_ns);
        (start_ns, end_ns) != suggested
    });
}

#[cfg(target_os = "linux")]
#[test]
fn two_windows_share_a_home_that_cannot_be_written_to() {
    if !(has("Xvfb") && has("xdotool")) {
        println!("skipped: needs Xvfb and xdotool");
        return;
    }
    let (_server, display) = display();
    let mut windows = [(); 2].map(|()| {
        let mut command = window(&display, Path::new("/proc"));
        Running(command.stderr(Stdio::piped()).spawn().expect("the window starts"))
    });
    let ids = || xdotool(&display, &["search", "--name", "^vramscope$"]);
    wait_for("both windows", || {
        for Running(window) in &mut windows {
            assert!(window.try_wait().expect("a status").is_none(), "it ended: {}", errors_of(window));
        }
        ids().lines().count() == 2
    });
    std::thread::sleep(Duration::from_secs(2));
    for Running(window) in &mut windows {
        assert!(window.try_wait().expect("a status").is_none(), "it still runs");
        window.kill().expect("it ends");
        let errors = errors_of(window);
        assert!(!errors.contains("panicked"), "{errors}");
    }
}

/// What a window that has ended wrote.
#[cfg(target_os = "linux")]
fn errors_of(window: &mut Child) -> String {
    let mut errors = String::new();
    std::io::Read::read_to_string(&mut window.stderr.take().expect("its errors"), &mut errors).expect("text");
    errors
}

/// What a window wrote when it has ended by itself, and whether it ended well; nothing when it goes on.
#[cfg(target_os = "linux")]
fn ended(Running(window): &mut Running) -> Option<(bool, String)> {
    let deadline = Instant::now() + Duration::from_secs(20);
    let status = loop {
        match window.try_wait().expect("a status") {
            Some(status) => break status,
            None if Instant::now() > deadline => return None,
            None => std::thread::sleep(Duration::from_millis(100)),
        }
    };
    Some((status.success(), errors_of(window)))
}

#[cfg(target_os = "linux")]
#[test]
fn a_display_that_goes_away_ends_the_window() {
    if !(has("Xvfb") && has("xdotool")) {
        println!("skipped: needs Xvfb and xdotool");
        return;
    }
    let (server, display) = display();
    let home = tempfile::tempdir().expect("a folder");
    let mut running =
        Running(window(&display, home.path()).stderr(Stdio::piped()).spawn().expect("the window starts"));
    wait_for("the window", || !xdotool(&display, &["search", "--name", "^vramscope$"]).is_empty());
    std::thread::sleep(Duration::from_secs(1));
    drop(server);
    let (is_well, errors) = ended(&mut running).expect("it ends");
    assert!(!is_well && !errors.contains("panicked"), "{errors}");
}

#[cfg(target_os = "linux")]
#[test]
fn without_a_graphics_driver_it_says_so_and_names_the_report() {
    if !has("Xvfb") {
        println!("skipped: needs Xvfb");
        return;
    }
    let (_server, display) = display();
    let home = tempfile::tempdir().expect("a folder");
    let mut command = window(&display, home.path());
    command.env("LIBGL_DRIVERS_PATH", "/nonexistent").stderr(Stdio::piped());
    let mut running = Running(command.spawn().expect("it starts"));
    let Some((is_well, errors)) = ended(&mut running) else {
        println!("skipped: this Mesa finds a driver all the same");
        return;
    };
    assert!(!is_well && !errors.contains("panicked"), "{errors}");
    assert!(errors.contains("the window can't be shown") && errors.contains("report"), "{errors}");
}

/// The graphics libraries' errors name their source files, which say nothing to users.
#[cfg(target_os = "linux")]
#[test]
fn a_display_that_cannot_be_reached_is_told_in_a_sentence() {
    let output = Command::new(env!("CARGO_BIN_EXE_vramscope"))
        .env("DISPLAY", ":64999")
        .env_remove("WAYLAND_DISPLAY")
        .env_remove("WAYLAND_SOCKET")
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("the window can't be shown") && text.contains("report"), "{text}");
    assert!(!text.contains(".rs:"), "{text}");
}

#[test]
fn without_a_display_it_says_so_and_names_the_report() {
    let output = Command::new(env!("CARGO_BIN_EXE_vramscope"))
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .env_remove("WAYLAND_SOCKET")
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("no display") && text.contains("report"), "{text}");
}
