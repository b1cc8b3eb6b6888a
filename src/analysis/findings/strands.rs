//! Strands: the allocations of one Python stack, followed through the beats of a run.

use rustc_hash::FxHashMap;

use super::super::traits::{StackTraits, traits_of_stacks};
use super::super::{Index, Query, Rhythm};
use crate::model::{BEFORE_NS, NEVER_NS, OpId, Phase, PoolId, Process, ProcessId, StackId, StrId};

/// The free beat of a row that was never freed.
pub(super) const NEVER: i32 = i32::MAX;
/// A row that lives this many beats is kept on purpose or by mistake, not just until its variable is set again.
const LONG_BEATS: i32 = 2;
/// Windows used as beats when a run has no rhythm.
const FALLBACK_WINDOWS: usize = 24;

/// What part of a step a row belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// The forward pass or the user's own code.
    Forward,
    /// The autograd engine's thread, which has no Python frames.
    Backward,
    /// Inside an optimizer.
    Optimizer,
    /// Moving, copying or initializing modules.
    Setup,
    /// A workspace of cuBLAS or cuDNN.
    Workspace,
}

/// The role of a row, from its stack and, where a trace saw it, from its op.
pub(crate) fn role_of(traits: &StackTraits, phase: Phase) -> Role {
    if traits.in_workspace {
        Role::Workspace
    } else if traits.in_optimizer || phase == Phase::Optimizer {
        Role::Optimizer
    } else if traits.in_engine || phase == Phase::Backward || (!traits.has_python && phase == Phase::Unknown)
    {
        Role::Backward
    } else if traits.in_module_setup {
        Role::Setup
    } else {
        Role::Forward
    }
}

/// A row that outlives the beat after its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LongRow {
    /// The row.
    pub row: u32,
    /// The beat that allocated it; −1 before the first.
    pub beat: i32,
    /// The beat that freed it, or [`NEVER`].
    pub free_beat: i32,
    /// Its requested bytes.
    pub bytes: u64,
}

/// How the sizes of a strand go, and whether each block still lives when the next one is made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SizeWalk {
    pub count: u32,
    pub rises: u32,
    pub falls: u32,
    pub overlaps: u32,
    pub first_bytes: u64,
    pub last_bytes: u64,
    last_free_ns: i64,
    last_beat: i32,
    pub beats: u32,
}

impl SizeWalk {
    fn step(&mut self, bytes: u64, alloc_ns: i64, free_ns: i64, beat: i32) {
        if self.count == 0 {
            self.first_bytes = bytes;
            self.last_beat = -2;
        } else {
            self.rises += u32::from(bytes > self.last_bytes);
            self.falls += u32::from(bytes < self.last_bytes);
            self.overlaps += u32::from(self.last_free_ns >= alloc_ns);
        }
        self.beats += u32::from(beat != self.last_beat);
        self.last_beat = beat;
        self.count += 1;
        self.last_bytes = bytes;
        self.last_free_ns = free_ns;
    }
}

/// The allocations of one Python stack (of one op, where there is no stack).
#[derive(Clone, Debug)]
pub(super) struct Strand {
    /// The call site's label.
    pub call_site: StrId,
    /// The op's label, of the first row.
    pub op: StrId,
    /// The stack of its first row.
    pub stack: StackId,
    /// What the stack tells.
    pub traits: StackTraits,
    /// What part of a step it belongs to.
    pub role: Role,
    /// The rows that outlive the beat after their own, and those of the last two beats that nothing freed.
    pub long: Vec<LongRow>,
    /// The sizes of all rows.
    pub sizes: SizeWalk,
}

/// A process with its rhythm and strands.
pub(super) struct ProcessFacts<'a> {
    pub id: ProcessId,
    pub process: &'a Process,
    pub traits: Vec<StackTraits>,
    pub rhythm: Option<Rhythm>,
    pub strands: Vec<Strand>,
    strand_of_key: FxHashMap<u64, u32>,
}

impl<'a> ProcessFacts<'a> {
    /// Reads a process once.
    pub fn new(index: &'a Index, query: &Query, id: ProcessId) -> Self {
        let process = index.session.process(id);
        let traits = traits_of_stacks(&process.strings, &process.stacks, &index.user_code);
        let rhythm = Rhythm::of_process(process, &traits)
            .or_else(|| Rhythm::of_windows(process.recorded, FALLBACK_WINDOWS));
        let mut facts =
            Self { id, process, traits, rhythm, strands: Vec::new(), strand_of_key: FxHashMap::default() };
        facts.strands = facts.read_strands(index, query);
        facts.strand_of_key = facts
            .strands
            .iter()
            .enumerate()
            .filter(|(_, strand)| strand.traits.has_python)
            .map(|(position, strand)| (strand.traits.python_key, position as u32))
            .collect();
        facts
    }

    /// The last beat.
    pub fn last_beat(&self) -> i32 {
        self.rhythm.as_ref().map_or(0, |rhythm| rhythm.len() as i32 - 1)
    }

    /// The role of a row.
    pub fn role(&self, row: usize) -> Role {
        let table = &self.process.allocations;
        let traits = self.traits.get(table.stack[row].0 as usize).copied().unwrap_or_default();
        let phase = self.process.ops.get(table.op[row]).map_or(Phase::Unknown, |op| op.phase);
        role_of(&traits, phase)
    }

    /// Whether a row is one of its size that survives, while its stack goes on allocating.
    pub fn is_single(&self, row: usize) -> bool {
        let table = &self.process.allocations;
        let bytes = table.size_bytes[row];
        let strand = self.strand_of_row(row);
        strand.is_some_and(|strand| {
            let same = strand.long.iter().filter(|long| long.bytes == bytes && long.free_beat == NEVER);
            same.count() <= 2
        })
    }

    fn strand_of_row(&self, row: usize) -> Option<&Strand> {
        let traits = self.traits.get(self.process.allocations.stack[row].0 as usize)?;
        let position = *self.strand_of_key.get(&traits.python_key)?;
        self.strands.get(position as usize)
    }

    fn read_strands(&self, index: &Index, query: &Query) -> Vec<Strand> {
        let table = &self.process.allocations;
        let Some(rhythm) = &self.rhythm else { return Vec::new() };
        let mut strands: Vec<Strand> = Vec::new();
        let mut by_key: FxHashMap<(u64, StrId), u32> = FxHashMap::default();
        // Stacks are many times fewer than rows: a row finds its strand by its stack's id.
        let mut of_stack = vec![u32::MAX; self.traits.len()];
        let from = table.alloc_ns.partition_point(|&time| time == BEFORE_NS);
        let mut beat = rhythm.beat_at(table.alloc_ns.get(from).copied().unwrap_or(0));
        for row in from..table.len() {
            let alloc_ns = table.alloc_ns[row];
            while rhythm.starts_ns.get((beat + 1) as usize).is_some_and(|&start| start <= alloc_ns) {
                beat += 1;
            }
            let is_apart = table.pool[row] != PoolId::DEFAULT
                || (table.free_completed_ns[row] == NEVER_NS && table.free_requested_ns[row] != NEVER_NS);
            if is_apart || !query.selection.device.admits(table.device[row]) {
                continue;
            }
            let stack = table.stack[row];
            let traits = self.traits.get(stack.0 as usize).copied().unwrap_or_default();
            let known = of_stack.get(stack.0 as usize).copied().unwrap_or(u32::MAX);
            let strand = if traits.has_python && known != u32::MAX {
                known
            } else {
                let op = index.op(self.id, table.op[row], stack);
                let key = if traits.has_python { (traits.python_key, StrId::EMPTY) } else { (0, op) };
                let strand = *by_key.entry(key).or_insert_with(|| {
                    strands.push(Strand {
                        call_site: index.call_site(self.id, stack),
                        op,
                        stack,
                        traits,
                        role: self.role(row),
                        long: Vec::new(),
                        sizes: SizeWalk::default(),
                    });
                    strands.len() as u32 - 1
                });
                if traits.has_python {
                    of_stack[stack.0 as usize] = strand;
                }
                strand
            };
            let Some(strand) = strands.get_mut(strand as usize) else { continue };
            let free_ns = table.free_completed_ns[row];
            let bytes = table.size_bytes[row];
            strand.sizes.step(bytes, alloc_ns, free_ns, beat);
            let free_beat = if free_ns == NEVER_NS { NEVER } else { rhythm.beat_at(free_ns) };
            if beat >= 0 && free_beat.saturating_sub(beat) >= LONG_BEATS {
                strand.long.push(LongRow { row: row as u32, beat, free_beat, bytes });
            }
            // An op's label can come from a trace that covers only a part: the first one that is known serves.
            if table.op[row] != OpId::NONE && !strand.traits.has_python {
                strand.op = index.op(self.id, table.op[row], stack);
            }
        }
        strands
    }
}
