//! Opening files: what is this, and what does it hold?
//!
//! Each format is an [`Importer`]: one file or folder a format. An importer turns an [`Input`] into a
//! [`Recording`](crate::model::Recording) on the file's own clock; it reads what can be read, counts what was lost,
//! and fails only when nothing useful is left.

mod detect;
mod error;
mod input;
mod memory_summary;
mod memory_summary_table;
mod memory_timeline;
mod nvidia_smi;
mod oom_message;
mod parallel;
mod progress;
mod py_spy;
mod snapshot;
mod text;
mod trace;
mod training_log;
mod wall_time;

pub use detect::{Head, expand_paths, import, import_path, import_path_with, is_process_file, is_readable};
pub use error::ImportError;
pub(crate) use error::shown_path;
pub use input::{Inflated, Input};
pub use parallel::in_parallel;
pub use progress::Progress;
pub use training_log::import_with_pattern;

use crate::model::Recording;

/// A format that can be read.
pub trait Importer: Sync {
    /// What it reads, for messages: `torch.profiler trace`.
    fn name(&self) -> &'static str;

    /// Whether the beginning of a file is of this format. Looks at content, never at the name.
    fn detect(&self, head: &Head<'_>) -> bool;

    /// Reads a file of this format. Reports progress in bytes of the file on disk and stops when cancelled.
    ///
    /// # Errors
    /// When nothing useful can be read; damage that leaves something useful is a warning in the recording.
    fn import(&self, input: &Input, progress: &Progress) -> Result<Recording, ImportError>;
}

/// Every format, the most telling first: the first that detects a file reads it.
pub const IMPORTERS: &[&dyn Importer] = &[
    &snapshot::SnapshotImporter,
    &memory_timeline::MemoryTimelineImporter,
    &py_spy::PySpyImporter,
    &trace::TraceImporter,
    &nvidia_smi::NvidiaSmiImporter,
    &training_log::MetricsCsvImporter,
    &memory_summary::MemorySummaryImporter,
    &training_log::TrainingLogImporter,
];
