//! What live memory is for, inferred: parameters, gradients, optimizer state, activations, inputs; where the peak is; and
//! how two instants differ.

use std::sync::Arc;

use rayon::prelude::*;

use super::findings::{Role, role_of};
use super::rhythm::Rhythm;
use super::traits::{StackTraits, traits_of_stacks};
use super::{Index, RowRef, Selection, Totals, UserCode, live};
use crate::model::{BEFORE_NS, NEVER_NS, Phase, Process, Session, TimeRange};
use crate::text::{msg, t};

/// What a live allocation is for. Inferred: [`Category::rule`] says how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    /// The model's weights and buffers.
    Parameters,
    /// One for each parameter, made by the backward pass.
    Gradients,
    /// Momentum and the like.
    OptimizerState,
    /// What autograd saves for the backward pass.
    Activations,
    /// Batches.
    Inputs,
    /// Gone before the step ends.
    Temporary,
    /// Workspaces of libraries.
    Workspace,
    /// Nothing tells.
    Unknown,
}

impl Category {
    /// All of them, in the order of legends.
    pub const ALL: [Self; 8] = [
        Self::Parameters,
        Self::Gradients,
        Self::OptimizerState,
        Self::Activations,
        Self::Inputs,
        Self::Temporary,
        Self::Workspace,
        Self::Unknown,
    ];

    /// The category of a number, as `as` gives it.
    pub(super) fn of_number(number: u64) -> Self {
        Self::ALL.into_iter().find(|&category| category as u64 == number).unwrap_or(Self::Unknown)
    }

    /// The words for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Parameters => msg!("parameters"),
            Self::Gradients => msg!("gradients"),
            Self::OptimizerState => msg!("optimizer state"),
            Self::Activations => msg!("activations"),
            Self::Inputs => msg!("inputs"),
            Self::Temporary => msg!("temporary"),
            Self::Workspace => msg!("workspaces"),
            Self::Unknown => msg!("unknown"),
        }
    }

    /// How it was inferred.
    pub fn rule(self) -> &'static str {
        match self {
            Self::Parameters => {
                t!("made before the first step, or while a module was moved, copied or initialized")
            }
            Self::Gradients => t!("made by the backward pass and still live in the next step or at the end"),
            Self::OptimizerState => t!("made inside an optimizer and never freed within its step"),
            Self::Activations => t!("made inside a module's forward pass and live beyond its op"),
            Self::Inputs => t!("made by the user's own line, outside of modules, in a step"),
            Self::Temporary => t!("made by the backward pass or the optimizer and freed within the step"),
            Self::Workspace => t!("asked for by cuBLAS or cuDNN"),
            Self::Unknown => t!("allocated before the recording began, or without a stack, op or step"),
        }
    }
}

/// What infers categories in one process. Make it once and ask for many rows.
#[derive(Debug)]
pub struct Categories {
    traits: Arc<Vec<StackTraits>>,
    rhythm: Option<Rhythm>,
}

impl Categories {
    /// Reads a process's stacks and steps.
    pub fn new(process: &Process, user_code: &UserCode) -> Self {
        let traits = traits_of_stacks(&process.strings, &process.stacks, user_code);
        let rhythm = Rhythm::of_process(process, &traits);
        Self { traits: Arc::new(traits), rhythm }
    }

    /// The category of a row.
    pub fn of(&self, process: &Process, row: usize) -> Category {
        let table = &process.allocations;
        if row >= table.len() || table.alloc_ns[row] == BEFORE_NS {
            return Category::Unknown;
        }
        let traits = self.traits.get(table.stack[row].0 as usize).copied().unwrap_or_default();
        let op = process.ops.get(table.op[row]);
        let beat = self.rhythm.as_ref().map(|rhythm| rhythm.beat_at(table.alloc_ns[row]));
        let outlives_step = self.rhythm.as_ref().is_none_or(|rhythm| {
            let free_ns = table.free_completed_ns[row];
            free_ns == NEVER_NS || rhythm.beat_at(free_ns) > rhythm.beat_at(table.alloc_ns[row])
        });
        let is_known = traits.has_python || traits.in_engine || op.is_some();
        match role_of(&traits, op.map_or(Phase::Unknown, |op| op.phase)) {
            Role::Workspace => Category::Workspace,
            Role::Setup => Category::Parameters,
            Role::Optimizer if outlives_step => Category::OptimizerState,
            Role::Optimizer => Category::Temporary,
            Role::Backward if !is_known && beat.is_none_or(|beat| beat < 0) => Category::Unknown,
            Role::Backward if outlives_step => Category::Gradients,
            Role::Backward => Category::Temporary,
            Role::Forward if beat == Some(-1) => Category::Parameters,
            Role::Forward if traits.in_module || op.is_some_and(|op| !op.module.is_empty()) => {
                Category::Activations
            }
            Role::Forward if traits.is_user_innermost => Category::Inputs,
            Role::Forward => Category::Activations,
        }
    }
}

/// Live bytes by category, the largest first.
pub fn by_category(index: &Index, rows: &[RowRef]) -> Vec<(Category, Totals)> {
    let mut sums = [Totals::default(); Category::ALL.len()];
    for row in rows {
        let bytes = index.session.process(row.process).allocations.size_bytes[row.row as usize];
        sums[index.category(*row) as usize].add(bytes);
    }
    let mut parts: Vec<(Category, Totals)> =
        Category::ALL.into_iter().zip(sums).filter(|(_, totals)| totals.count > 0).collect();
    parts.sort_by_key(|&(category, totals)| (std::cmp::Reverse(totals.bytes), category));
    parts
}

/// When the selected processes' allocated memory was highest in a range, and how high.
pub fn peak(session: &Session, selection: Selection, range: TimeRange) -> Option<(i64, u64)> {
    let mut changes: Vec<(i64, i64)> = Vec::new();
    for id in selection.processes(session) {
        let table = &session.process(id).allocations;
        for row in 0..table.rows_in(range).end {
            if !selection.device.admits(table.device[row]) || table.free_completed_ns[row] <= range.start_ns {
                continue;
            }
            let bytes = i64::try_from(table.size_bytes[row]).unwrap_or(i64::MAX);
            changes.push((table.alloc_ns[row].max(range.start_ns), bytes));
            if table.free_completed_ns[row] < range.end_ns {
                changes.push((table.free_completed_ns[row], bytes.saturating_neg()));
            }
        }
    }
    // Of changes at one instant, frees come first: the block may be reused at once.
    changes.par_sort_unstable();
    let (mut level, mut best) = (0_i64, None);
    for (time_ns, bytes) in changes {
        level = level.saturating_add(bytes);
        if best.is_none_or(|(_, highest)| level > highest) {
            best = Some((time_ns, level));
        }
    }
    best.map(|(time_ns, level)| (time_ns, level.max(0) as u64))
}

/// What is live at the second of two instants and not at the first, and the other way round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveChange {
    /// Live at the second instant only.
    pub added: Vec<RowRef>,
    /// Live at the first instant only.
    pub gone: Vec<RowRef>,
}

/// The difference between two instants of one session, whichever is the earlier.
pub fn live_change(session: &Session, selection: Selection, from_ns: i64, to_ns: i64) -> LiveChange {
    let at = |row: &RowRef, time_ns: i64| {
        let allocation = row.get(session);
        allocation.alloc_ns <= time_ns && allocation.free_completed_ns > time_ns
    };
    let added = live(session, selection, to_ns).into_iter().filter(|row| !at(row, from_ns)).collect();
    let gone = live(session, selection, from_ns).into_iter().filter(|row| !at(row, to_ns)).collect();
    LiveChange { added, gone }
}
