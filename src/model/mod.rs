//! The data that everything else reads: times, bytes, allocations, stacks, ops, series, sessions.
//!
//! No I/O, no drawing and no analysis here. An importer fills a [`Recording`]; `align` joins recordings into a
//! [`Session`]; `analysis`, `report` and `app` read sessions.

mod allocation;
mod bytes;
mod device;
mod op;
mod recording;
mod segment;
mod series;
mod session;
mod slice;
mod stack;
mod strings;
mod summary;
pub mod time;

pub use allocation::{Allocation, AllocationFlags, Allocations, PoolId};
pub use bytes::{MAX_BYTES, format_bytes, format_bytes_exact, format_count, format_delta_bytes, parse_bytes};
pub use device::{Device, DeviceInfo, DeviceKind};
pub use op::{Op, OpId, Ops, Phase};
pub use recording::{
    Annotation, Clock, Lost, Marker, MarkerKind, ProcessHint, Recording, SourceKind, Warning,
};
pub use segment::{Block, BlockState, Segment, SegmentEvent, SegmentEventKind};
pub use series::{Quantity, Series};
pub use session::{Alignment, AlignmentMethod, Link, Process, ProcessId, Session, Source, SourceId, Step};
pub use slice::{Lane, LaneId, Slice, SliceKind, Slices};
pub use stack::{Frame, FrameId, StackId, Stacks};
pub(crate) use strings::without_middle;
pub use strings::{StrId, Strings};
pub use summary::MemorySummary;
pub use time::{BEFORE_NS, NEVER_NS, TimeRange};
