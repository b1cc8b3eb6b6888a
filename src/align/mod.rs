//! Files on one time axis: clocks, processes, and the linking of traces with snapshots.

mod clock;
mod merge;
mod names;
mod processes;
mod replay;
mod session;
mod steps;

pub use session::{Opened, build};
