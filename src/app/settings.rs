//! What is remembered from one start to the next. The window's size, the theme and the panels' widths are remembered by
//! egui itself.

use std::path::{Path, PathBuf};

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::analysis::UserCode;
use crate::text::Language;

/// Under which key it is stored.
pub const KEY: &str = "vramscope";
/// How many recent files and folders are remembered.
const MAX_RECENT: usize = 12;

/// What is remembered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Files and folders that were opened, the latest first.
    pub recent: Vec<PathBuf>,
    /// Whether stacks show C++ frames too that only pass a call on.
    pub shows_all_frames: bool,
    /// Whether figures are written to the last byte.
    pub exact_bytes: bool,
    /// Whether reports have names of users, hosts and folders replaced.
    pub redacts: bool,
    /// The language that was chosen; `None` follows the system.
    pub language: Option<Language>,
    /// Parts of paths that are the user's own code although they lie in an installed package.
    pub user_code: Vec<String>,
    /// A regular expression that finds memory figures in the user's own logs; empty for none.
    pub log_pattern: String,
}

impl Settings {
    /// The language to speak.
    pub fn language(&self) -> Language {
        self.language.unwrap_or_else(Language::of_system)
    }

    /// What is the user's own code.
    pub fn user_code(&self) -> UserCode {
        UserCode { paths: self.user_code.clone(), ..UserCode::default() }
    }

    /// The user's pattern for logs, if there is one that can be used.
    pub fn log_pattern(&self) -> Option<Regex> {
        Some(self.log_pattern.trim()).filter(|pattern| !pattern.is_empty()).and_then(|it| Regex::new(it).ok())
    }

    /// Remembers what was opened.
    pub fn remember(&mut self, path: &Path) {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        self.recent.retain(|old| *old != path);
        self.recent.insert(0, path);
        self.recent.truncate(MAX_RECENT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_files_are_kept_once_and_the_latest_first() {
        let mut settings = Settings::default();
        for name in ["/a", "/b", "/a"] {
            settings.remember(Path::new(name));
        }
        assert_eq!(settings.recent, [PathBuf::from("/a"), PathBuf::from("/b")]);
        for number in 0..20 {
            settings.remember(Path::new(&format!("/{number}")));
        }
        assert_eq!(settings.recent.len(), MAX_RECENT);
    }
}
