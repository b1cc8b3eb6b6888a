//! Every allocation as a block over time, stacked by age: who stood under the curve, and for how long.
//!
//! What is too small to be seen is summed into one band on top, so that a million allocations cost no more to draw than
//! a few thousand.

use super::{RowRef, Selection};
use crate::model::{BEFORE_NS, Session, TimeRange};

/// Blocks lower than this part of a pixel are summed: lower ones still show as colour where many of a kind lie together.
const PARTS_OF_PIXEL: u64 = 16;
/// How many blocks are laid out one by one.
const MAX_BLOCKS: usize = 6_000;
/// How many pieces they may fall into.
const MAX_PIECES: usize = 24_000;

/// What a map is made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MapRequest {
    /// Whose memory.
    pub selection: Selection,
    /// The visible time.
    pub range: TimeRange,
    /// How many columns of pixels it has.
    pub columns: u32,
    /// How many rows of pixels it has.
    pub rows: u32,
}

/// A block while it stands at one height. A block sinks when an older one is freed: then a new piece begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The allocation.
    pub row: RowRef,
    /// From when.
    pub start_ns: i64,
    /// Until when.
    pub end_ns: i64,
    /// The bytes below it.
    pub base_bytes: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// The height of the band of small blocks, from an instant on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// From when.
    pub time_ns: i64,
    /// The bytes below it.
    pub base_bytes: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// Blocks stacked by age.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockMap {
    /// The pieces of the blocks that are laid out one by one, oldest blocks first.
    pub pieces: Vec<Piece>,
    /// The band of all others.
    pub small: Vec<Level>,
    /// The highest that everything together gets.
    pub high_bytes: u64,
    /// Blocks below this are in the band.
    pub least_bytes: u64,
    /// How many blocks are laid out one by one.
    pub blocks: usize,
    /// How many are in the band.
    pub summed: usize,
}

/// A block that is alive in the visible time.
#[derive(Clone, Copy)]
struct Block {
    row: RowRef,
    bytes: u64,
    start_ns: i64,
    end_ns: i64,
}

/// Lays out the blocks that are alive in a range.
pub fn block_map(session: &Session, request: &MapRequest) -> BlockMap {
    let columns = Columns::new(request);
    let mut blocks = alive_in(session, request);
    blocks.sort_by_key(|block| block.start_ns);
    let total = columns.levels(&blocks);
    let high_bytes = total.iter().copied().max().unwrap_or(0);
    let mut least_bytes = (high_bytes / (u64::from(request.rows.max(1)) * PARTS_OF_PIXEL)).max(1);
    let is_wide = |block: &Block| columns.is_wide(block);
    let mut sizes: Vec<u64> = blocks.iter().filter(|block| is_wide(block)).map(|block| block.bytes).collect();
    if sizes.len() > MAX_BLOCKS {
        let (_, least, _) = sizes.select_nth_unstable_by(MAX_BLOCKS, |a, b| b.cmp(a));
        least_bytes = least_bytes.max(*least + 1);
    }
    loop {
        let large: Vec<Block> =
            blocks.iter().copied().filter(|block| block.bytes >= least_bytes && is_wide(block)).collect();
        let Some(pieces) = columns.pieces(&large) else {
            least_bytes = least_bytes.saturating_mul(2);
            continue;
        };
        let base = columns.levels(&large);
        let small = columns.band(&base, &total);
        let summed = blocks.len() - large.len();
        return BlockMap { pieces, small, high_bytes, least_bytes, blocks: large.len(), summed };
    }
}

fn alive_in(session: &Session, request: &MapRequest) -> Vec<Block> {
    let range = request.range;
    let mut blocks = Vec::new();
    for id in request.selection.processes(session) {
        let process = session.process(id);
        let table = &process.allocations;
        let end = table.alloc_ns.partition_point(|&time| time < range.end_ns);
        for row in 0..end {
            // Beyond the end of the recording nothing is known.
            let end_ns = table.free_completed_ns[row].min(process.recorded.end_ns);
            if end_ns > range.start_ns && request.selection.device.admits(table.device[row]) {
                blocks.push(Block {
                    row: RowRef { process: id, row: row as u32 },
                    bytes: table.size_bytes[row],
                    start_ns: table.alloc_ns[row],
                    end_ns,
                });
            }
        }
    }
    blocks
}

/// The visible time in columns of pixels.
struct Columns {
    range: TimeRange,
    count: usize,
    width_ns: f64,
}

impl Columns {
    fn new(request: &MapRequest) -> Self {
        let count = request.columns.clamp(1, 8_192) as usize;
        let width_ns = (request.range.duration_ns() as f64 / count as f64).max(1.0);
        Self { range: request.range, count, width_ns }
    }

    /// The column of an instant; the first and last take what lies outside.
    fn of(&self, time_ns: i64) -> usize {
        let offset_ns = time_ns.saturating_sub(self.range.start_ns).max(0);
        ((offset_ns as f64 / self.width_ns) as usize).min(self.count)
    }

    fn start_ns(&self, column: usize) -> i64 {
        self.range.start_ns.saturating_add((column as f64 * self.width_ns) as i64)
    }

    /// Whether a block is seen for a column at least.
    fn is_wide(&self, block: &Block) -> bool {
        self.of(block.end_ns) > self.of(block.start_ns)
    }

    /// The bytes alive at the start of each column.
    fn levels(&self, blocks: &[Block]) -> Vec<u64> {
        let mut changes = vec![0_i128; self.count + 2];
        for block in blocks {
            changes[self.of(block.start_ns)] += i128::from(block.bytes);
            changes[self.of(block.end_ns) + usize::from(block.end_ns > self.range.end_ns)] -=
                i128::from(block.bytes);
        }
        let mut level = 0_i128;
        changes
            .iter()
            .take(self.count + 1)
            .map(|change| {
                level += change;
                u64::try_from(level.max(0)).unwrap_or(u64::MAX)
            })
            .collect()
    }

    /// Stacks blocks, which come in the order of their age; `None` when they fall into too many pieces.
    fn pieces(&self, blocks: &[Block]) -> Option<Vec<Piece>> {
        // (column, block) of every begin and end; ends first, as the allocator reuses what was freed.
        let mut ends: Vec<(usize, usize)> =
            blocks.iter().enumerate().map(|(at, block)| (self.of(block.end_ns), at)).collect();
        ends.sort_unstable();
        let mut begins =
            blocks.iter().enumerate().map(|(at, block)| (self.of(block.start_ns), at)).peekable();
        let mut ends = ends.into_iter().peekable();
        let mut is_over = vec![false; blocks.len()];
        let mut open: Vec<Option<Piece>> = vec![None; blocks.len()];
        let mut alive: Vec<usize> = Vec::new();
        let mut pieces = Vec::new();
        while let Some(column) =
            [begins.peek(), ends.peek()].into_iter().flatten().map(|&(column, _)| column).min()
        {
            let now_ns = self.start_ns(column);
            let mut has_ended = false;
            while let Some((_, at)) = ends.next_if(|&(other, _)| other == column) {
                is_over[at] = true;
                has_ended = true;
                if let Some(piece) = open[at].take() {
                    pieces.push(Piece { end_ns: now_ns, ..piece });
                }
            }
            if has_ended {
                alive.retain(|&at| !is_over[at]);
            }
            let mut base_bytes = 0_u64;
            if has_ended {
                for &at in &alive {
                    if let Some(piece) = open[at].as_mut().filter(|piece| piece.base_bytes != base_bytes) {
                        pieces.push(Piece { end_ns: now_ns, ..*piece });
                        (piece.start_ns, piece.base_bytes) = (now_ns, base_bytes);
                    }
                    base_bytes = base_bytes.saturating_add(blocks[at].bytes);
                }
            } else if let Some(piece) = alive.last().and_then(|&at| open[at]) {
                base_bytes = piece.base_bytes.saturating_add(piece.bytes);
            }
            while let Some((_, at)) = begins.next_if(|&(other, _)| other == column) {
                let block = blocks[at];
                let start_ns = if block.start_ns == BEFORE_NS { self.range.start_ns } else { block.start_ns };
                open[at] = Some(Piece {
                    row: block.row,
                    start_ns: start_ns.max(self.range.start_ns),
                    end_ns: block.end_ns,
                    base_bytes,
                    bytes: block.bytes,
                });
                base_bytes = base_bytes.saturating_add(block.bytes);
                alive.push(at);
            }
            if pieces.len() > MAX_PIECES {
                return None;
            }
        }
        Some(pieces)
    }

    /// What is between two levels, told where it changes.
    fn band(&self, base: &[u64], total: &[u64]) -> Vec<Level> {
        let mut levels: Vec<Level> = Vec::new();
        for (column, (&base_bytes, &total)) in base.iter().zip(total).take(self.count).enumerate() {
            let bytes = total.saturating_sub(base_bytes);
            let is_new =
                levels.last().is_none_or(|last| (last.base_bytes, last.bytes) != (base_bytes, bytes));
            if is_new {
                levels.push(Level { time_ns: self.start_ns(column), base_bytes, bytes });
            }
        }
        levels
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::align;
    use crate::model::{Allocation, Clock, NEVER_NS, Recording, SourceKind};

    fn session(rows: &[(i64, i64, u64)]) -> Session {
        let mut recording = Recording::new(SourceKind::Snapshot, "test", Clock::Unix);
        for (address, &(alloc_ns, free_ns, size_bytes)) in rows.iter().enumerate() {
            recording.allocations.push(Allocation::from_to(
                address as u64 + 1,
                size_bytes,
                alloc_ns,
                free_ns,
            ));
        }
        recording.span = Some(TimeRange::new(0, 1_000));
        align::build(&[align::Opened::new("snapshot.pickle", Arc::new(recording))])
    }

    fn map(rows: &[(i64, i64, u64)]) -> BlockMap {
        let request = MapRequest {
            selection: Selection::default(),
            range: TimeRange::new(0, 1_000),
            columns: 100,
            rows: 100,
        };
        block_map(&session(rows), &request)
    }

    #[test]
    fn a_block_sinks_when_an_older_one_is_freed() {
        let map = map(&[(0, 500, 100), (200, NEVER_NS, 50), (300, 400, 25)]);
        let told: Vec<_> = map
            .pieces
            .iter()
            .map(|piece| (piece.row.row, piece.start_ns, piece.end_ns, piece.base_bytes))
            .collect();
        assert_eq!(told, [(2, 300, 400, 150), (0, 0, 500, 0), (1, 200, 500, 100), (1, 500, 1_000, 0)]);
        assert_eq!(map.high_bytes, 175);
        assert!(map.small.iter().all(|level| level.bytes == 0));
    }

    #[test]
    fn small_and_short_blocks_are_summed_into_the_band() {
        let map = map(&[(0, NEVER_NS, 10_000), (100, 900, 5), (101, 102, 5_000), (110, 800, 3)]);
        assert_eq!((map.blocks, map.summed), (1, 3));
        assert_eq!(map.small.iter().map(|level| level.bytes).max(), Some(8));
        assert!(map.small.iter().all(|level| level.base_bytes == 10_000));
    }

    #[test]
    fn pieces_never_overlap_and_fill_the_total() {
        let rows: Vec<(i64, i64, u64)> = (0..200)
            .map(|at| {
                let start = at * 5;
                (
                    start,
                    if at % 3 == 0 { NEVER_NS } else { start + 20 + (at * 37) % 300 },
                    64 + (at as u64 * 13) % 50,
                )
            })
            .collect();
        let map = map(&rows);
        for at_ns in [15, 255, 505, 995] {
            let mut seen: Vec<(u64, u64)> = map
                .pieces
                .iter()
                .filter(|piece| piece.start_ns <= at_ns && at_ns < piece.end_ns)
                .map(|piece| (piece.base_bytes, piece.bytes))
                .collect();
            seen.sort_unstable();
            for pair in seen.windows(2) {
                assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?} at {at_ns}");
            }
        }
    }
}
