//! Many ranks: their files told apart by their paths, so that they can be opened rank by rank.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::rank_from_path;

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

impl Owner {
    fn name(&self) -> String {
        match self {
            Self::Rank(rank) => format!("rank {rank}"),
            Self::Folder(path) | Self::Beginning(path) => {
                path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
            }
        }
    }
}

/// The files of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    /// The rank's name as far as the paths tell; the files may know better.
    pub name: String,
    /// Its traces, snapshots and logs.
    pub files: Vec<PathBuf>,
}

/// The files of a run of many ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankFiles {
    /// The ranks, in their order.
    pub ranks: Vec<Rank>,
    /// Logs of all ranks.
    pub logs: Vec<PathBuf>,
}

impl RankFiles {
    /// The ranks of a run whose files are better opened one after the other: because there are many of several ranks,
    /// or because the user wants it. `is_process_file` tells whether a file is one process's trace or snapshot.
    pub fn of(paths: &[PathBuf], is_process_file: impl Fn(&Path) -> bool, is_wanted: bool) -> Option<Self> {
        // Most runs have few files: those are not even looked at.
        if paths.len() <= MANY_FILES && !is_wanted {
            return None;
        }
        let (of_processes, logs): (Vec<&PathBuf>, Vec<&PathBuf>) =
            paths.iter().partition(|path| is_process_file(path));
        let mut in_folder: BTreeMap<&Path, usize> = BTreeMap::new();
        for path in &of_processes {
            *in_folder.entry(folder_of(path)).or_default() += 1;
        }
        let mut by_owner: BTreeMap<Owner, Vec<PathBuf>> = BTreeMap::new();
        for &path in &of_processes {
            let is_crowded = in_folder.get(folder_of(path)).is_some_and(|&count| count > MANY_FILES);
            by_owner.entry(owner_of(path, is_crowded)).or_default().push(path.clone());
        }
        let named_ranks = by_owner.keys().filter(|owner| matches!(owner, Owner::Rank(_))).count();
        let are_many = of_processes.len() > MANY_FILES && named_ranks > 1;
        if by_owner.len() < 2 || !(are_many || is_wanted) {
            return None;
        }
        let mut owners_below: BTreeMap<&Path, BTreeSet<&Owner>> = BTreeMap::new();
        for (owner, files) in &by_owner {
            for folder in files.iter().flat_map(|file| file.ancestors().skip(1)) {
                owners_below.entry(folder).or_default().insert(owner);
            }
        }
        // A log of a rank names it, or else lies with the files of those whose log it is: beside them or above.
        let owners_of = |log: &Path| -> Vec<Owner> {
            let named = rank_from_path(log).map(Owner::Rank).filter(|rank| by_owner.contains_key(rank));
            let near = || log.ancestors().skip(1).find_map(|folder| owners_below.get(folder));
            named.map_or_else(|| near().into_iter().flatten().copied().cloned().collect(), |rank| vec![rank])
        };
        let owned: Vec<(&PathBuf, Vec<Owner>)> = logs.into_iter().map(|log| (log, owners_of(log))).collect();
        let mut shared = Vec::new();
        for (log, owners) in owned {
            if owners.is_empty() || owners.len() == by_owner.len() {
                shared.push(log.clone());
                continue;
            }
            for owner in owners {
                by_owner.entry(owner).or_default().push(log.clone());
            }
        }
        let ranks = by_owner.into_iter().map(|(owner, files)| Rank { name: owner.name(), files }).collect();
        Some(Self { ranks, logs: shared })
    }

    /// All files, those of ranks first.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.ranks.iter().flat_map(|rank| &rank.files).chain(&self.logs)
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

    #[test]
    fn many_ranks_are_told_from_few_files() {
        let is_process_file = |path: &Path| path.extension().is_some_and(|extension| extension == "pickle");
        let run = |ranks: usize| -> Vec<PathBuf> {
            let snapshots = (0..ranks).map(|rank| format!("run/snapshot_rank{rank}.pickle").into());
            snapshots.chain(["run/rank1.log".into(), "run/gpu.csv".into()]).collect()
        };
        assert_eq!(RankFiles::of(&run(MANY_FILES), is_process_file, false), None, "few enough");
        let many = RankFiles::of(&run(MANY_FILES + 1), is_process_file, false).expect("many");
        assert_eq!(many.ranks.len(), MANY_FILES + 1);
        assert_eq!(many.ranks[1].files, ["run/snapshot_rank1.pickle", "run/rank1.log"].map(PathBuf::from));
        assert_eq!(many.logs, [PathBuf::from("run/gpu.csv")]);
        assert_eq!(RankFiles::of(&run(2), is_process_file, true).expect("wanted").ranks.len(), 2);
        assert_eq!(RankFiles::of(&run(1), is_process_file, true), None, "one rank is not many");
        // Cycles of one process are no ranks.
        let cycles: Vec<PathBuf> =
            (0..40).map(|cycle| format!("log/host_42.{cycle}.pickle").into()).collect();
        assert_eq!(RankFiles::of(&cycles, is_process_file, false), None);
    }
    /// Runs side by side are no ranks of one: the log of one says nothing of the others.
    #[test]
    fn logs_go_to_whose_files_they_lie_with() {
        let is_process_file = |path: &Path| path.extension().is_some_and(|extension| extension == "pickle");
        let paths = [
            "all/gpu.csv",
            "all/a/snapshot.pickle",
            "all/a/train.log",
            "all/b/snapshot_rank0.pickle",
            "all/b/snapshot_rank1.pickle",
            "all/b/logs/train.log",
            "all/b/logs/rank1.log",
        ];
        let paths: Vec<PathBuf> = paths.map(PathBuf::from).to_vec();
        let files = RankFiles::of(&paths, is_process_file, true).expect("wanted");
        assert_eq!(files.logs, [PathBuf::from("all/gpu.csv")]);
        let logs = |name: &str| -> Vec<&str> {
            let rank = files.ranks.iter().find(|rank| rank.name == name).expect("it is there");
            rank.files[1..].iter().filter_map(|path| path.to_str()).collect()
        };
        assert_eq!(logs("a"), ["all/a/train.log"]);
        assert_eq!(logs("rank 0"), ["all/b/logs/train.log"]);
        assert_eq!(logs("rank 1"), ["all/b/logs/train.log", "all/b/logs/rank1.log"]);
    }
}
