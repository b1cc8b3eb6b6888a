//! Slices of traces sorted into rows that can be drawn at any zoom.

use std::sync::Arc;

use crate::model::{LaneId, Recording, Session, SliceKind, TimeRange};

/// Deeper slices are left out of the picture.
const MAX_DEPTH: usize = 24;

/// A thread or a GPU stream with its slices.
#[derive(Debug)]
pub struct ShownLane {
    /// Its name.
    pub name: String,
    /// Whether it is a GPU's.
    pub is_gpu: bool,
    /// The recording that the rows index into.
    pub recording: Arc<Recording>,
    /// Added to the recording's own times.
    pub offset_ns: i64,
    /// By depth: slices in the order of time, which don't overlap.
    pub rows: Vec<Vec<u32>>,
}

impl ShownLane {
    /// When a slice ran.
    pub fn range(&self, slice: u32) -> TimeRange {
        let slices = &self.recording.slices;
        let at = slice as usize;
        TimeRange::new(slices.start_ns[at], slices.end_ns[at]).shifted(self.offset_ns)
    }

    /// Its name.
    pub fn slice_name(&self, slice: u32) -> &str {
        self.recording.strings.get(self.recording.slices.name[slice as usize])
    }

    /// What it is.
    pub fn kind(&self, slice: u32) -> SliceKind {
        self.recording.slices.kind[slice as usize]
    }
}

/// The lanes of all sources, threads first, those with the most slices first.
pub fn lanes_of(session: &Session) -> Vec<ShownLane> {
    let mut lanes = Vec::new();
    for source in &session.sources {
        let slices = &source.recording.slices;
        for (number, lane) in slices.lanes.iter().enumerate() {
            let mut rows: Vec<Vec<u32>> = Vec::new();
            for slice in slices.rows_of(LaneId(number as u16)) {
                let depth = slices.depth[slice] as usize;
                if depth >= MAX_DEPTH {
                    continue;
                }
                if rows.len() <= depth {
                    rows.resize_with(depth + 1, Vec::new);
                }
                rows[depth].push(slice as u32);
            }
            if !rows.is_empty() {
                lanes.push(ShownLane {
                    name: lane.name.clone(),
                    is_gpu: lane.is_gpu,
                    recording: source.recording.clone(),
                    offset_ns: source.alignment.offset_ns,
                    rows,
                });
            }
        }
    }
    lanes.sort_by_key(|lane| (lane.is_gpu, std::cmp::Reverse(lane.rows.iter().map(Vec::len).sum::<usize>())));
    lanes
}
