//! Names of sources and processes, from paths.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

/// For each path the file's name, with as many folders before it as tell it from the others.
pub(crate) fn short_names(paths: &[PathBuf]) -> Vec<String> {
    let parts: Vec<Vec<String>> = paths
        .iter()
        .map(|path| path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect())
        .collect();
    let tail = |index: usize, count: usize| {
        let all = &parts[index];
        all[all.len().saturating_sub(count)..].join("/")
    };
    let mut names: Vec<String> = (0..parts.len()).map(|index| tail(index, 1)).collect();
    // Only those of one name go on to one folder more: a folder may hold a hundred thousand files.
    let mut alike: Vec<usize> = (0..parts.len()).collect();
    let mut count = 1;
    while !alike.is_empty() {
        let mut by_name: FxHashMap<String, Vec<usize>> = FxHashMap::default();
        for index in std::mem::take(&mut alike) {
            by_name.entry(tail(index, count)).or_default().push(index);
        }
        for (name, same) in by_name {
            let longer = |&index: &usize| count < parts[index].len();
            match same[..] {
                [index] if longer(&index) => names[index] = name,
                [_] => {}
                _ if same.iter().any(longer) => alike.extend(same),
                _ => {}
            }
        }
        count += 1;
    }
    names
}

/// The rank that a file's name or folder gives: `snapshot_rank1.pickle`, `rank-3/trace.json`, `rank12_memory.pickle`.
pub(crate) fn rank_from_path(path: &Path) -> Option<u32> {
    let parts: Vec<String> =
        path.components().map(|part| part.as_os_str().to_string_lossy().to_ascii_lowercase()).collect();
    parts.iter().rev().take(2).find_map(|part| {
        let after = &part[part.find("rank")? + "rank".len()..];
        let digits = after.trim_start_matches(['_', '-', ' ', '=']);
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_take_the_folders_they_need() {
        let paths: Vec<PathBuf> =
            ["/a/x/trace.json", "/a/y/trace.json", "/a/y/log.txt"].map(PathBuf::from).to_vec();
        assert_eq!(short_names(&paths), ["x/trace.json", "y/trace.json", "log.txt"]);
        let same: Vec<PathBuf> = vec!["t.json".into(), "t.json".into()];
        assert_eq!(short_names(&same), ["t.json", "t.json"]);
        let beginnings: Vec<PathBuf> = ["x/t.json", "/a/x/t.json", "/b/x/t.json"].map(PathBuf::from).to_vec();
        assert_eq!(short_names(&beginnings), ["t.json", "a/x/t.json", "b/x/t.json"]);
    }

    #[test]
    fn ranks_are_read_from_names() {
        for (path, rank) in [
            ("d/snapshot_rank1.pickle.gz", Some(1)),
            ("run/rank-3/trace.json", Some(3)),
            ("iteration_10/rank12_memory_snapshot.pickle", Some(12)),
            ("rank0.1796104736617684802.pt.trace.json.gz", Some(0)),
            ("ranking/trace.json", None),
            ("trace.json", None),
        ] {
            assert_eq!(rank_from_path(Path::new(path)), rank, "{path}");
        }
    }
}
