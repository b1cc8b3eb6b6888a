//! Answers: what was kept, what is live, what grew, and why. No files, no drawing.

mod call_site;
mod compare;
mod driver_gap;
pub mod findings;
mod groups;
pub mod growth;
mod index;
mod live;
mod processes;
mod pulse;
mod query;
mod rhythm;
mod traits;

pub use call_site::{FrameOrigin, UserCode};
pub use compare::{Comparison, Difference, FigureDifference, Side, compare};
pub use driver_gap::{DriverGap, GapGrowth, OtherProcess, driver_gap};
pub use groups::{Group, GroupBy, group};
pub use index::Index;
pub use live::{NetGroup, live, net};
pub use processes::{ProcessSummary, compare_processes};
pub use query::{
    Apart, DeviceFilter, FreeBy, Query, RangeTotals, RowClass, RowRef, Selection, Totals, classify, kept,
    totals,
};
pub use rhythm::{BeatUnit, Rhythm};
