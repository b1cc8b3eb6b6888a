//! Where the samples and recordings are, and how to open them as the app does.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use vramscope::align::{self, Opened};
use vramscope::analysis::{Index, UserCode};
use vramscope::import::{self, Progress};
use vramscope::model::Session;

/// The repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder of `samples/`.
pub fn sample(name: &str) -> PathBuf {
    root().join("samples").join(name)
}

/// A run of the larger collection of recordings, which stands beside the repository where it is developed. Says so
/// when it is not there.
pub fn recording(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("VRAMSCOPE_RECORDINGS")
        .map_or_else(|| root().join("../shared/recordings"), PathBuf::from)
        .join(name);
    if !folder.is_dir() {
        println!("skipped: no recording {name} at {}", folder.display());
        return None;
    }
    Some(folder)
}

/// Files of a folder (or one file) as a session; files of no known kind are left out.
pub fn open(path: &Path) -> Session {
    let opened: Vec<Opened> = import::expand_paths(&[path.to_owned()])
        .into_iter()
        .filter_map(|path| {
            let recording = import::import_path(&path, &Progress::default()).ok()?;
            Some(Opened::new(path, Arc::new(recording)))
        })
        .collect();
    align::build(&opened)
}

/// The same with its index.
pub fn open_index(path: &Path) -> Index {
    Index::new(Arc::new(open(path)), UserCode::default())
}
