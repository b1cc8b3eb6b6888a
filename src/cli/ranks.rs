//! Many ranks: their files are opened rank by rank, and each rank is let go before the next is opened.

use std::path::PathBuf;

use rustc_hash::FxHashMap;

use super::args::{Offset, Reading};
use super::{UsageError, complain, open};
use crate::align::{Opened, RankFiles, short_names};
use crate::analysis::Index;
use crate::import::{self, ImportError};
use crate::text::t;

/// The files of a run of many ranks.
#[derive(Debug)]
pub(super) struct Ranks {
    files: RankFiles,
    /// The paths that the user named.
    named: Vec<PathBuf>,
}

impl Ranks {
    /// The ranks of a run whose files are better opened one after the other: because there are many of several ranks,
    /// or because the user wants it.
    pub fn of(named: &[PathBuf], is_wanted: bool) -> Option<Self> {
        let files = RankFiles::of(&import::expand_paths(named), import::is_process_file, is_wanted)?;
        Some(Self { files, named: named.to_vec() })
    }

    /// Opens one rank after the other, on request with the logs that belong to no rank, and names the inputs that could
    /// not be used, which it returns.
    ///
    /// # Errors
    /// What `see` says, an offset of a file that isn't there, or that nothing could be opened.
    pub fn each(
        &self,
        reading: &Reading,
        with_logs: bool,
        mut see: impl FnMut(&Index) -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<(PathBuf, ImportError)>> {
        self.check_offsets(&reading.offset)?;
        // All may be called `snapshot.pickle`, each in a folder of its own.
        let paths: Vec<PathBuf> = self.files.paths().cloned().collect();
        let names: FxHashMap<&PathBuf, String> = paths.iter().zip(short_names(&paths)).collect();
        let mut failed = Vec::new();
        let mut read = |paths: &[PathBuf]| -> anyhow::Result<Vec<Opened>> {
            let mut files = open::read(paths, &self.named, reading)?;
            files.opened.iter_mut().for_each(|file| file.name = names.get(&file.path).cloned());
            files.failed.iter().for_each(|(_, error)| complain(&error.to_string()));
            failed.extend(files.failed);
            Ok(files.opened)
        };
        let logs = if with_logs { read(&self.files.logs)? } else { Vec::new() };
        let mut are_none = true;
        for rank in &self.files.ranks {
            let mut opened = read(&rank.files)?;
            if opened.is_empty() {
                continue;
            }
            are_none = false;
            opened.extend(logs.iter().cloned());
            let is_here = |offset: &&Offset| opened.iter().any(|file| file.path.ends_with(&offset.name));
            let offset = reading.offset.iter().filter(is_here).cloned().collect();
            see(&open::join(opened, &Reading { offset, ..reading.clone() })?)?;
        }
        anyhow::ensure!(!are_none, t!("none of the traces and snapshots could be opened"));
        Ok(failed)
    }

    fn check_offsets(&self, offsets: &[Offset]) -> Result<(), UsageError> {
        let is_missing = |offset: &&Offset| !self.files.paths().any(|path| path.ends_with(&offset.name));
        match offsets.iter().find(is_missing) {
            Some(offset) => Err(UsageError(t!("no source is named `{name}`", name = offset.name))),
            None => Ok(()),
        }
    }
}
