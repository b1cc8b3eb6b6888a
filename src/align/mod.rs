//! Files on one time axis: clocks, processes, and the linking of traces with snapshots.

mod session;

pub use session::{Opened, build};
