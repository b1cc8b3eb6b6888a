//! Files on one time axis: clocks, processes, and the linking of traces with snapshots.

pub mod clock;
mod fit;
mod level;
mod merge;
mod names;
mod processes;
mod ranks;
mod replay;
mod retime;
mod session;
mod steps;

pub(crate) use fit::pearson;
pub(crate) use names::{rank_from_path, short_names};
pub use ranks::{Rank, RankFiles};
pub use session::{DryRun, Opened, build, dry_run};
