//! Opens files in parallel and joins them into a session.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::Context as _;
use regex::Regex;

use super::args::{Offset, Reading};
use super::{Status, UsageError, complain};
use crate::align::{self, Opened};
use crate::analysis::{Index, UserCode};
use crate::import::{self, ImportError, Progress};
use crate::model::{Recording, Session};
use crate::text::t;

/// Files that were opened, and those that were not.
pub(super) struct Loaded {
    /// Their session.
    pub index: Index,
    /// The files that could not be used, and why.
    pub failed: Vec<(PathBuf, ImportError)>,
    /// Files of a folder that are of no kind known here, and why.
    pub skipped: Vec<(PathBuf, ImportError)>,
    /// What the user named.
    named: Vec<PathBuf>,
}

impl Loaded {
    /// Names the inputs that could not be used.
    ///
    /// # Errors
    /// When nothing was left.
    pub fn complain(&self) -> anyhow::Result<Status> {
        let mut failed = self.failed.iter().map(|(_, error)| error);
        if self.index.session.sources.is_empty() {
            let last = failed.next_back();
            failed.for_each(|error| complain(&error.to_string()));
            match (last, self.skipped.first()) {
                (Some(error), _) => anyhow::bail!("{error}"),
                (None, Some((_, error))) => anyhow::bail!(t!("nothing here can be opened; {error}", error)),
                (None, None) => {
                    let folders: Vec<String> =
                        self.named.iter().map(|path| path.display().to_string()).collect();
                    anyhow::bail!(t!("the folder is empty: {path}", path = folders.join(", ")))
                }
            }
        }
        failed.for_each(|error| complain(&error.to_string()));
        Ok(Status::with(&self.failed))
    }
}

/// Opens everything that can be opened.
///
/// # Errors
/// For an offset of a source that isn't there; files that can't be used are listed in the result.
pub(super) fn open(files: &[PathBuf], reading: &Reading) -> anyhow::Result<Loaded> {
    let read = read(&import::expand_paths(files), files, reading)?;
    let index = join(read.opened, reading)?;
    Ok(Loaded { index, failed: read.failed, skipped: read.skipped, named: files.to_vec() })
}

/// Files that were read, not joined yet.
pub(super) struct Files {
    pub opened: Vec<Opened>,
    pub failed: Vec<(PathBuf, ImportError)>,
    pub skipped: Vec<(PathBuf, ImportError)>,
}

/// Reads files. Those of `named` were named by the user, the others were found in folders.
pub(super) fn read(paths: &[PathBuf], named: &[PathBuf], reading: &Reading) -> anyhow::Result<Files> {
    let mut files = Files { opened: Vec::new(), failed: Vec::new(), skipped: Vec::new() };
    for (path, result) in paths.iter().zip(import_all(paths, reading.log_pattern.as_ref())?) {
        match result {
            Ok(recording) => {
                let mut file = Opened::new(path, Arc::new(recording));
                file.visible_devices.clone_from(&reading.visible_devices);
                files.opened.push(file);
            }
            // A folder may hold anything; a file that was named is meant.
            Err(error @ (ImportError::Unknown { .. } | ImportError::Empty { .. }))
                if !named.contains(path) =>
            {
                files.skipped.push((path.clone(), error));
            }
            Err(error) => files.failed.push((path.clone(), error)),
        }
    }
    Ok(files)
}

/// Joins files into a session.
///
/// # Errors
/// For an offset of a source that isn't there.
pub(super) fn join(mut opened: Vec<Opened>, reading: &Reading) -> anyhow::Result<Index> {
    let mut session = align::build(&opened);
    if !reading.offset.is_empty() {
        set_offsets(&session, &mut opened, &reading.offset)?;
        session = align::build(&opened);
    }
    if reading.apply_lag {
        for (source, file) in session.sources.iter().zip(&mut opened) {
            if let Some(lag_ns) = source.alignment.lag_ns {
                file.offset_by_hand_ns = Some(source.alignment.offset_ns.saturating_sub(lag_ns));
            }
        }
        session = align::build(&opened);
    }
    let user_code = UserCode { paths: reading.user_code.clone(), shows_all_frames: reading.all_frames };
    Ok(Index::new(Arc::new(session), user_code))
}

/// Imports files on as many threads as there are cores. Results come in the order of the paths.
fn import_all(
    paths: &[PathBuf],
    log_pattern: Option<&Regex>,
) -> anyhow::Result<Vec<Result<Recording, ImportError>>> {
    let results = Mutex::new(Vec::with_capacity(paths.len()));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    import::in_parallel("import", threads, paths, |at, path| {
        let result = import::import_path_with(path, log_pattern, &Progress::default());
        results.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
        ControlFlow::Continue(())
    })
    .context(t!("no thread could be started"))?;
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|&(number, _)| number);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

fn set_offsets(session: &Session, opened: &mut [Opened], offsets: &[Offset]) -> anyhow::Result<()> {
    for offset in offsets {
        let is_meant =
            |source: &crate::model::Source| source.name == offset.name || source.path.ends_with(&offset.name);
        let mut found =
            session.sources.iter().zip(&mut *opened).filter(|(source, _)| is_meant(source)).peekable();
        if found.peek().is_none() {
            let names: Vec<&str> = session.sources.iter().map(|source| source.name.as_str()).collect();
            return Err(UsageError(t!(
                "no source is named `{name}`; there are {names}",
                name = offset.name,
                names = names.join(", ")
            ))
            .into());
        }
        found.for_each(|(_, file)| file.offset_by_hand_ns = Some(offset.offset_ns));
    }
    Ok(())
}
