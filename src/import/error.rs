//! Why a file could not be opened: one sentence that names the cause first and the file last.

use crate::model::without_middle;
use crate::text::t;
use std::io;
use std::path::Path;

/// Why a file could not be opened. [`std::fmt::Display`] gives the whole sentence.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The operating system refused.
    #[error("{cause}: {file}")]
    Io {
        /// What the system said.
        cause: io::Error,
        /// The file.
        file: String,
    },
    /// There is nothing in it.
    #[error("{}", is_empty(.file))]
    Empty {
        /// The file.
        file: String,
    },
    /// Not a kind of file that can be read here.
    #[error("{}", is_unknown(.looks_like, .file))]
    Unknown {
        /// What it seems to be: `this is a PNG image`.
        looks_like: String,
        /// The file.
        file: String,
    },
    /// The content is of a known kind but can't be used.
    #[error("{cause}: {file}")]
    Content {
        /// What is wrong, with the byte or line.
        cause: String,
        /// The file.
        file: String,
    },
    /// The user stopped it.
    #[error("{}", is_cancelled(.file))]
    Cancelled {
        /// The file.
        file: String,
    },
}

/// A path in a sentence: of one that no system opens the beginning and the end.
pub(crate) fn shown_path(path: &Path) -> String {
    const MOST_BYTES: usize = 4096;
    let path = path.display().to_string();
    if path.len() <= MOST_BYTES {
        return path;
    }
    without_middle(&path, 100)
}

fn is_empty(file: &str) -> String {
    t!("the file is empty: {path}", path = file)
}

fn is_unknown(looks_like: &str, file: &str) -> String {
    t!("{looks_like}, which is none of the kinds that can be opened: {path}", looks_like, path = file)
}

fn is_cancelled(file: &str) -> String {
    t!("cancelled: {path}", path = file)
}

impl ImportError {
    /// The sentence without the file.
    pub fn cause(&self) -> String {
        let (Self::Io { file, .. }
        | Self::Empty { file }
        | Self::Unknown { file, .. }
        | Self::Content { file, .. }
        | Self::Cancelled { file }) = self;
        let text = self.to_string();
        let cause = text.strip_suffix(file.as_str()).unwrap_or(&text);
        cause.trim_end_matches([':', '：', ' ']).to_owned()
    }

    /// The content can't be used, for `cause`.
    pub fn content(cause: impl Into<String>, file: impl Into<String>) -> Self {
        Self::Content { cause: cause.into(), file: file.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_beyond_all_measure_is_shortened_in_its_middle() {
        let long = "/été".repeat(2000) + "/train.log";
        let shown = shown_path(Path::new(&long));
        assert!(shown.len() < 220 && shown.starts_with("/été/") && shown.ends_with("/train.log"), "{shown}");
        assert_eq!(shown_path(Path::new("a/train.log")), "a/train.log");
    }
}
