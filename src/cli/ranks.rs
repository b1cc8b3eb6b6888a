//! Many ranks: their files are opened rank by rank, and each rank is let go before the next is opened.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::args::{Offset, Reading};
use super::{Status, UsageError, complain, open};
use crate::align::{Opened, rank_from_path};
use crate::analysis::Index;
use crate::import;
use crate::text::t;

/// So many traces and snapshots are still opened at once. A laptop holds them, and sees them on one time axis.
const MANY_FILES: usize = 16;

/// Whose file it is, as far as its path tells.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Rank(u32),
    /// Of everything in this folder.
    Folder(PathBuf),
    /// Of files with this beginning in a folder of many: `host_4242`, as `tensorboard_trace_handler` names them.
    Beginning(PathBuf),
}

/// The files of a run of many ranks.
#[derive(Debug)]
pub(super) struct Ranks {
    /// The files of each rank, in the order of ranks.
    ranks: Vec<Vec<PathBuf>>,
    /// Logs that belong to no rank.
    logs: Vec<PathBuf>,
    /// The paths that the user named.
    named: Vec<PathBuf>,
}

impl Ranks {
    /// The ranks of a run whose files are better opened one after the other: because there are many of several ranks,
    /// or because the user wants it.
    pub fn of(named: &[PathBuf], is_wanted: bool) -> Option<Self> {
        let paths = import::expand_paths(named);
        // Most runs have few files: those are not even looked at.
        if paths.len() <= MANY_FILES && !is_wanted {
            return None;
        }
        let (of_processes, logs): (Vec<PathBuf>, Vec<PathBuf>) =
            paths.into_iter().partition(|path| import::is_process_file(path));
        let mut in_folder: BTreeMap<&Path, usize> = BTreeMap::new();
        for path in &of_processes {
            *in_folder.entry(folder_of(path)).or_default() += 1;
        }
        let mut by_owner: BTreeMap<Owner, Vec<PathBuf>> = BTreeMap::new();
        for path in &of_processes {
            let is_crowded = in_folder.get(folder_of(path)).is_some_and(|&count| count > MANY_FILES);
            by_owner.entry(owner_of(path, is_crowded)).or_default().push(path.clone());
        }
        let named_ranks = by_owner.keys().filter(|owner| matches!(owner, Owner::Rank(_))).count();
        let are_many = of_processes.len() > MANY_FILES && named_ranks > 1;
        if by_owner.len() < 2 || !(are_many || is_wanted) {
            return None;
        }
        let mut shared = Vec::new();
        for path in logs {
            let rank = rank_from_path(&path).map(Owner::Rank);
            match rank.and_then(|rank| by_owner.get_mut(&rank)) {
                Some(files) => files.push(path),
                None => shared.push(path),
            }
        }
        Some(Self { ranks: by_owner.into_values().collect(), logs: shared, named: named.to_vec() })
    }

    /// Opens one rank after the other, on request with the logs that belong to no rank, and names the inputs that could
    /// not be used.
    ///
    /// # Errors
    /// What `see` says, an offset of a file that isn't there, or that nothing could be opened.
    pub fn each(
        &self,
        reading: &Reading,
        with_logs: bool,
        mut see: impl FnMut(&Index) -> anyhow::Result<()>,
    ) -> anyhow::Result<Status> {
        self.check_offsets(&reading.offset)?;
        let mut status = Status::Done;
        let mut read = |paths: &[PathBuf]| -> anyhow::Result<Vec<Opened>> {
            let files = open::read(paths, &self.named, reading)?;
            for (_, error) in &files.failed {
                complain(&error.to_string());
                status = Status::InputLeftOut;
            }
            Ok(files.opened)
        };
        let logs = if with_logs { read(&self.logs)? } else { Vec::new() };
        let mut are_none = true;
        for rank in &self.ranks {
            let mut opened = read(rank)?;
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
        Ok(status)
    }

    fn check_offsets(&self, offsets: &[Offset]) -> Result<(), UsageError> {
        let is_missing = |offset: &&Offset| {
            !self.ranks.iter().flatten().chain(&self.logs).any(|path| path.ends_with(&offset.name))
        };
        match offsets.iter().find(is_missing) {
            Some(offset) => Err(UsageError(t!("no source is named `{name}`", name = offset.name))),
            None => Ok(()),
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn owner_of(path: &Path, is_crowded: bool) -> Owner {
    if let Some(rank) = rank_from_path(path) {
        return Owner::Rank(rank);
    }
    if !is_crowded {
        return Owner::Folder(folder_of(path).to_owned());
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    Owner::Beginning(path.with_file_name(name.split('.').next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_go_to_whom_their_paths_name() {
        assert_eq!(owner_of(Path::new("run/snapshot_rank3.pickle"), true), Owner::Rank(3));
        assert_eq!(owner_of(Path::new("run/host7/trace.json"), false), Owner::Folder("run/host7".into()));
        let cycles = ["log/host_42.1796.pt.trace.json", "log/host_42.1797.pt.trace.json"];
        for cycle in cycles {
            assert_eq!(owner_of(Path::new(cycle), true), Owner::Beginning("log/host_42".into()));
        }
    }
}
