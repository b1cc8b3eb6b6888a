//! A session as a small file: which sources, at which offsets, the range, filters and notes. The sources stay where
//! they are.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::state::{Choices, Note, Placement};
use crate::analysis::{FreeBy, GroupBy};
use crate::model::TimeRange;
use crate::text::t;

/// The extension of such files.
pub const EXTENSION: &str = "vramscope";
const SCHEMA: &str = "vramscope.session/1";
/// No session file is larger.
const MAX_BYTES: u64 = 16 << 20;
/// How much of a source's beginning and end its fingerprint is made of.
const FINGERPRINT_PART: u64 = 64 << 10;

/// What the file holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionFile {
    schema: String,
    sources: Vec<SourceEntry>,
    #[serde(default)]
    range_ns: Option<[i64; 2]>,
    #[serde(default)]
    free_by: String,
    #[serde(default)]
    group_by: String,
    #[serde(default)]
    filter: String,
    #[serde(default)]
    notes: Vec<Note>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SourceEntry {
    /// Relative to the session file when it lies below its folder.
    path: PathBuf,
    /// Of its length, beginning and end.
    fingerprint: String,
    #[serde(default)]
    offset_ns: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    visible_devices: Vec<i8>,
}

/// A session file that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The sources, with whole paths.
    pub paths: Vec<PathBuf>,
    /// The choices to restore.
    pub choices: Choices,
    /// What is not as it was, a sentence each.
    pub warnings: Vec<String>,
}

/// Writes a session file. An older one survives until the new one is complete.
///
/// # Errors
/// A sentence when the file can't be written.
pub fn save(path: &Path, sources: &[PathBuf], choices: &Choices) -> Result<(), String> {
    let folder = folder_of(path);
    let file = SessionFile {
        schema: SCHEMA.to_owned(),
        sources: sources
            .iter()
            .map(|source| SourceEntry {
                path: source.strip_prefix(&folder).unwrap_or(source).to_owned(),
                fingerprint: fingerprint(source).unwrap_or_default(),
                offset_ns: choices.placement.offsets_ns.get(source).copied(),
                visible_devices: choices.placement.visible_devices.get(source).cloned().unwrap_or_default(),
            })
            .collect(),
        range_ns: choices.range.map(|range| [range.start_ns, range.end_ns]),
        free_by: choices.free_by.name().to_owned(),
        group_by: choices.group_by.name().to_owned(),
        filter: choices.filter.clone(),
        notes: choices.notes.clone(),
    };
    let text = serde_json::to_vec_pretty(&file).map_err(|error| error.to_string())?;
    crate::report::write_file(path, |file| Ok(file.write_all(&text)?)).map_err(|error| {
        t!(
            "the session can't be written ({cause}): {path}",
            cause = error.cause.root_cause(),
            path = path.display()
        )
    })
}

/// Reads a session file.
///
/// # Errors
/// A sentence when it is none.
pub fn load(path: &Path) -> Result<Loaded, String> {
    let failed = |cause: String| format!("{cause}: {}", path.display());
    let mut text = Vec::new();
    let file = open_regular(path).map_err(|error| failed(error.to_string()))?;
    file.take(MAX_BYTES).read_to_end(&mut text).map_err(|error| failed(error.to_string()))?;
    let file: SessionFile = serde_json::from_slice(&text)
        .map_err(|error| failed(t!("not a session file, line {line} can't be read", line = error.line())))?;
    if file.schema != SCHEMA {
        return Err(failed(t!("a session file of another version ({version})", version = file.schema)));
    }
    let folder = folder_of(path);
    let mut loaded = Loaded { paths: Vec::new(), choices: choices_of(&file), warnings: Vec::new() };
    let mut placement = Placement::default();
    for source in &file.sources {
        let whole = folder.join(&source.path);
        match fingerprint(&whole) {
            Ok(now) if now == source.fingerprint => {}
            Ok(_) => {
                loaded
                    .warnings
                    .push(t!("changed since the session was saved: {path}", path = whole.display()));
            }
            Err(_) => {
                loaded.warnings.push(t!("no longer where it was: {path}", path = whole.display()));
                continue;
            }
        }
        if let Some(offset_ns) = source.offset_ns {
            placement.offsets_ns.insert(whole.clone(), offset_ns);
        }
        if !source.visible_devices.is_empty() {
            placement.visible_devices.insert(whole.clone(), source.visible_devices.clone());
        }
        loaded.paths.push(whole);
    }
    loaded.choices.placement = placement;
    Ok(loaded)
}

fn choices_of(file: &SessionFile) -> Choices {
    Choices {
        range: file.range_ns.map(|[start_ns, end_ns]| TimeRange::new(start_ns, end_ns)),
        free_by: [FreeBy::RecordingEnd, FreeBy::RangeEnd]
            .into_iter()
            .find(|free_by| free_by.name() == file.free_by)
            .unwrap_or_default(),
        group_by: GroupBy::ALL.into_iter().find(|by| by.name() == file.group_by).unwrap_or_default(),
        filter: file.filter.clone(),
        notes: file.notes.clone(),
        ..Default::default()
    }
}

fn folder_of(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    whole.parent().map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// Opens a file, but no pipe or device, which could block or never end, nor what the system makes up when it is read,
/// which has no length: what a session file names is not to be trusted.
fn open_regular(path: &Path) -> std::io::Result<File> {
    let metadata = path.metadata()?;
    if !metadata.is_file() || metadata.len() == 0 {
        return Err(std::io::Error::other(t!("not a file")));
    }
    File::open(path)
}

/// FNV-1a of a file's length, beginning and end: quick for files of any size, and told from any edit that matters.
fn fingerprint(path: &Path) -> std::io::Result<String> {
    let mut file = open_regular(path)?;
    let length = file.metadata()?.len();
    let mut bytes = length.to_le_bytes().to_vec();
    (&file).take(FINGERPRINT_PART).read_to_end(&mut bytes)?;
    file.seek(SeekFrom::Start(length.saturating_sub(FINGERPRINT_PART)))?;
    file.take(FINGERPRINT_PART).read_to_end(&mut bytes)?;
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Ok(format!("{hash:016x}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_session_comes_back_and_says_what_has_changed() {
        let folder = tempfile::tempdir().expect("a folder");
        let sources: Vec<PathBuf> =
            ["a.csv", "b.csv", "c.csv"].iter().map(|name| folder.path().join(name)).collect();
        for source in &sources {
            std::fs::write(source, "memory.used [MiB]\n1\n").expect("written");
        }
        let choices = Choices {
            range: Some(TimeRange::new(5, 9)),
            free_by: FreeBy::RangeEnd,
            group_by: GroupBy::Op,
            filter: "conv".to_owned(),
            placement: Placement {
                offsets_ns: BTreeMap::from([(sources[0].clone(), -3)]),
                visible_devices: BTreeMap::from([(sources[1].clone(), vec![2, 3])]),
            },
            notes: vec![Note { time_ns: 7, text: "here".to_owned() }],
            ..Default::default()
        };
        let path = folder.path().join("run.vramscope");
        save(&path, &sources, &choices).expect("saved");
        let loaded = load(&path).expect("loaded");
        assert_eq!(loaded, Loaded { paths: sources.clone(), choices, warnings: Vec::new() });

        std::fs::write(&sources[1], "memory.used [MiB]\n2\n").expect("written");
        std::fs::remove_file(&sources[2]).expect("removed");
        let loaded = load(&path).expect("loaded");
        assert_eq!(loaded.paths, sources[..2]);
        assert!(loaded.warnings[0].contains("changed") && loaded.warnings[1].contains("no longer"));
    }

    #[test]
    fn what_is_no_session_is_refused_with_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.vramscope");
        for text in ["", "[1, 2]", "{\"schema\": \"vramscope.session/9\", \"sources\": []}"] {
            std::fs::write(&path, text).expect("written");
            assert!(load(&path).expect_err(text).contains("x.vramscope"));
        }
        assert!(load(folder.path()).is_err());
    }

    #[test]
    fn what_a_session_names_but_is_no_file_is_never_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.vramscope");
        let source = |path: &str| format!("{{\"path\": \"{path}\", \"fingerprint\": \"0\"}}");
        let sources = [source("."), source("/dev/zero"), source("/dev/stdin")].join(", ");
        let text = format!("{{\"schema\": \"{SCHEMA}\", \"sources\": [{sources}]}}");
        std::fs::write(&path, text).expect("written");
        let loaded = load(&path).expect("loaded");
        assert!(loaded.paths.is_empty());
        assert_eq!(loaded.warnings.len(), 3);
    }

    #[test]
    fn an_older_session_survives_a_failed_save() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.vramscope");
        save(&path, &[], &Choices::default()).expect("saved");
        let missing = folder.path().join("missing").join("run.vramscope");
        let error = save(&missing, &[], &Choices::default()).expect_err("no folder");
        assert!(
            error.starts_with("the session can't be written (") && error.ends_with("run.vramscope"),
            "{error}"
        );
        if cfg!(target_os = "linux") {
            assert!(save(Path::new("/dev/full"), &[], &Choices::default()).is_err());
        }
        assert!(load(&path).is_ok());
    }
}
