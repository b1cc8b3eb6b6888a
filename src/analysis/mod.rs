//! Answers: what was kept, what is live, what grew, and why. No files, no drawing.

mod address_map;
mod block_map;
mod call_site;
mod categories;
mod compare;
mod driver_gap;
pub mod findings;
mod flame;
mod groups;
pub mod growth;
mod index;
mod kinds;
mod live;
mod net;
mod processes;
mod pulse;
mod query;
mod rhythm;
mod stack_text;
mod traits;

pub use address_map::{BlockAt, SegmentAt, address_map};
pub use block_map::{BlockMap, Level, MapRequest, Piece, block_map};
pub use call_site::{FrameOrigin, UserCode};
pub use categories::{Categories, Category, LiveChange, by_category, live_change, peak};
pub use compare::{Comparison, Difference, FigureDifference, Moment, Side, compare, compare_moments};
pub use driver_gap::{DriverGap, GapGrowth, GapPart, GapPartKind, OtherProcess, driver_gap, driver_gaps};
pub use flame::{FlameNode, FlameOrder, flame};
pub use groups::{Group, GroupBy, GroupRows, group};
pub use index::{Index, label_words};
pub use live::{NetGroup, live, net};
pub use net::{NetNode, module_tree};
pub use processes::{ProcessSummary, compare_processes, outliers};
pub use query::{
    Apart, DeviceFilter, FreeBy, Query, RangeTotals, RowClass, RowRef, Selection, Totals, classify, kept,
    totals,
};
pub use rhythm::{BeatUnit, Rhythm};
pub use stack_text::{StackLines, StackTexts, more_frames};
