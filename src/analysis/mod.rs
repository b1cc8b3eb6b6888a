//! Answers: what was kept, what is live, what grew, and why. No files, no drawing.

mod address_map;
mod block_map;
mod call_site;
mod compare;
pub mod findings;
mod flame;
mod groups;
pub mod growth;
mod index;
mod live;
mod processes;
mod pulse;
mod query;
mod rhythm;
mod traits;

pub use address_map::{BlockAt, SegmentAt, address_map};
pub use block_map::{BlockMap, Level, MapRequest, Piece, block_map};
pub use call_site::{FrameOrigin, UserCode};
pub use compare::{Comparison, Difference, FigureDifference, Side, compare};
pub use flame::{FlameNode, FlameOrder, flame};
pub use groups::{Group, GroupBy, group};
pub use index::Index;
pub use live::{NetGroup, live, net};
pub use processes::{ProcessSummary, compare_processes};
pub use query::{
    Apart, DeviceFilter, FreeBy, Query, RangeTotals, RowClass, RowRef, Selection, Totals, classify, kept,
    totals,
};
pub use rhythm::{BeatUnit, Rhythm};
