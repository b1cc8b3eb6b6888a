//! What the system does to a program: files that shrink, vanish, block or never end, disks that are full, homes that
//! are read-only, names that are not UTF-8. Each ends in a result or in a sentence.

use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use vramscope::import::{self, Progress};

use crate::support::sample;

/// No fault may hold the program up for longer.
const PATIENCE: Duration = Duration::from_secs(30);

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_vramscope"))
}

/// Runs a command to its end, which comes soon.
fn run(command: &mut Command) -> Output {
    // Files rather than pipes: those fill up while nobody reads.
    let [mut stdout, mut stderr] = [(); 2].map(|()| tempfile::tempfile().expect("a file"));
    command.stdin(Stdio::null());
    command.stdout(stdout.try_clone().expect("a handle")).stderr(stderr.try_clone().expect("a handle"));
    let mut child = command.spawn().expect("it starts");
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a status") {
            break status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("it hangs: {command:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let [stdout, stderr] = [&mut stdout, &mut stderr].map(|file| {
        let mut bytes = Vec::new();
        file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("its output");
        bytes
    });
    Output { status, stdout, stderr }
}

/// The one sentence of a command that fails.
fn complaint(command: &mut Command) -> String {
    let output = run(command);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{command:?}: {text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

fn snapshot() -> PathBuf {
    sample("val_without_no_grad").join("snapshot.pickle.gz")
}

#[test]
fn files_that_shrink_or_vanish_while_they_are_read_are_read_as_far_as_they_go() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train.log");
    let whole = "step 1 memory_allocated: 12.5 GB\n".repeat(200_000);
    std::fs::write(&path, &whole).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            for number in 0_u64.. {
                if is_done.load(Ordering::Relaxed) {
                    return;
                }
                match number % 3 {
                    0 => file.set_len(number * 977 % whole.len() as u64).unwrap(),
                    1 => std::fs::write(&path, &whole).unwrap(),
                    _ => drop(std::fs::remove_file(&path)),
                }
            }
        });
        for _ in 0..40 {
            if let Err(error) = import::import_path(&path, &Progress::default()) {
                assert!(error.to_string().ends_with("train.log"), "{error}");
            }
        }
        is_done.store(true, Ordering::Relaxed);
    });
}

#[cfg(unix)]
#[test]
fn pipes_devices_and_folders_are_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [pipe.as_path(), Path::new("/dev/zero"), Path::new("/dev/null")] {
        let text = complaint(program().arg("inspect").arg(path));
        assert_eq!(text, format!("vramscope: this is a pipe or a device, not a file: {}\n", path.display()));
    }
    assert!(complaint(program().arg("inspect").arg(folder.path())).contains("the folder is empty: "));
}

#[cfg(unix)]
#[test]
fn folders_that_hold_themselves_are_walked_once() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("a/b");
    std::fs::create_dir_all(&inner).unwrap();
    std::fs::copy(snapshot(), inner.join("snapshot.pickle.gz")).unwrap();
    std::os::unix::fs::symlink(folder.path(), inner.join("again")).unwrap();
    std::os::unix::fs::symlink("loop", folder.path().join("loop")).unwrap();
    assert_eq!(import::expand_paths(&[folder.path().to_owned()]).len(), 1);
    assert!(complaint(program().arg("inspect").arg(folder.path().join("loop"))).ends_with("loop\n"));
}

/// The program without the right to read everything that root has.
#[cfg(target_os = "linux")]
fn unprivileged() -> Command {
    let arguments = ["--bounding-set=-dac_override,-dac_read_search", env!("CARGO_BIN_EXE_vramscope")];
    let can_drop = Command::new("setpriv").args(arguments).arg("--version").output();
    if !can_drop.is_ok_and(|output| output.status.success()) {
        // Whoever has no rights to drop needs to drop none.
        return program();
    }
    let mut command = Command::new("setpriv");
    command.args(arguments);
    command
}

#[cfg(target_os = "linux")]
#[test]
fn what_may_not_be_read_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (file, closed) = (folder.path().join("snapshot.pickle.gz"), folder.path().join("closed"));
    std::fs::copy(snapshot(), &file).unwrap();
    std::fs::create_dir(&closed).unwrap();
    for path in [&file, &closed] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o000)).unwrap();
        let text = complaint(unprivileged().arg("inspect").arg(path));
        assert!(
            text.contains("Permission denied") && text.ends_with(&format!("{}\n", path.display())),
            "{text}"
        );
    }
    // One closed folder among others costs nothing but itself.
    std::fs::copy(snapshot(), folder.path().join("open.pickle.gz")).unwrap();
    let output = run(unprivileged().arg("inspect").arg(folder.path()));
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("open.pickle.gz"));
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn names_that_are_no_utf_8_are_opened_in_any_locale() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9 \xff.pickle.gz"));
    std::fs::copy(snapshot(), &path).unwrap();
    let report = folder.path().join(std::ffi::OsStr::from_bytes(b"\xff.html"));
    let arguments: [&[&str]; 5] = [
        &["inspect"],
        &["report", "-o"],
        &["report", "--redact", "--format", "json"],
        &["export", "--table", "steps"],
        &["query"],
    ];
    for arguments in arguments {
        let mut command = program();
        command.args(arguments).env("LC_ALL", "C").env_remove("LANG");
        match arguments.last() {
            Some(&"-o") => command.arg(&report).arg(&path),
            Some(&"query") => command.arg(&path).arg("SELECT COUNT(*) FROM allocations"),
            _ => command.arg(&path),
        };
        let output = run(&mut command);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{command:?}: {text}");
    }
    assert!(report.exists());
}

/// A shell that lets files grow to 8 KiB: writing more fails in the middle, as on a disk that is full.
#[cfg(target_os = "linux")]
fn on_a_full_disk() -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "bash", env!("CARGO_BIN_EXE_vramscope")]);
    command
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_the_older_file() {
    let folder = tempfile::tempdir().unwrap();
    for (name, arguments) in [
        ("report.html", &["report"][..]),
        ("allocations.csv", &["export", "--table", "allocations"]),
        ("allocations.parquet", &["export", "--table", "allocations"]),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, "older").unwrap();
        let text = complaint(on_a_full_disk().args(arguments).arg(snapshot()).arg("-o").arg(&path));
        assert!(text.contains(name) && text.contains("File too large"), "{text}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "older");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "nothing half-written stays behind");
    let text = complaint(program().args(["report", "-o", "/dev/full"]).arg(snapshot()));
    assert!(text.contains("No space left"), "{text}");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = program().arg("report").arg(snapshot()).stdout(full).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn a_killed_program_leaves_the_older_file_or_the_whole_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    std::fs::write(&path, "\"older\"").unwrap();
    let start = || {
        let mut command = program();
        command.args(["report", "--all", "-o"]).arg(&path).arg(snapshot());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let started = Instant::now();
    // Two at once, the one after the other.
    let mut both = [start(), start()];
    assert!(both.iter_mut().all(|child| child.wait().unwrap().success()));
    let needed = started.elapsed();
    for part in 1..=20 {
        let mut child = start();
        std::thread::sleep(needed * part / 20);
        let _ = child.kill();
        child.wait().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "a whole file after {part}/20");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_display_that_does_not_answer_is_a_sentence() {
    let text =
        complaint(program().env("DISPLAY", ":65000").env_remove("WAYLAND_DISPLAY").env("HOME", "/proc"));
    assert!(text.contains("the window can't be shown") && text.contains("report"), "{text}");
}
