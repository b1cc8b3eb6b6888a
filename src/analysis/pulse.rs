//! Iterations of a run without annotated steps: the lines of the training loop take turns, each once an iteration.

use rustc_hash::FxHashMap;

use super::findings::{Role, role_of};
use super::traits::StackTraits;
use crate::model::{BEFORE_NS, Phase, Process, StackId};

/// How few turns still make a loop.
const MIN_TURNS: u32 = 4;
/// How deep loops are looked for.
const MAX_DEPTH: usize = 200;

/// Whose turn it is: a branch of the tree of stacks, or a role where there are no stacks.
type Turn = u64;

const BACKWARD: Turn = u64::MAX;

/// When each iteration of the process's loop begins.
///
/// Walks down the tree of stacks to the node where the paths of the run's later half part: its children are the lines
/// of the loop (or of the function that it calls). How often each line takes its turn, and on how many lines that
/// agrees, tells the iterations; they begin with the line that comes first.
pub(super) fn loop_starts(process: &Process, traits: &[StackTraits]) -> Option<Vec<i64>> {
    let table = &process.allocations;
    let from = table.alloc_ns.partition_point(|&time| time == BEFORE_NS);
    let rows = from..table.len();
    let role = |row: usize| {
        let of_stack = traits.get(table.stack[row].0 as usize).copied().unwrap_or_default();
        role_of(&of_stack, process.ops.get(table.op[row]).map_or(Phase::Unknown, |op| op.phase))
    };
    if !rows.clone().any(|row| traits.get(table.stack[row].0 as usize).is_some_and(|stack| stack.has_python))
    {
        let turns = rows.map(|row| (table.alloc_ns[row], Some(role(row) as u64)));
        return starts_of_turns(turns);
    }
    let later = from + (table.len() - from) / 2..table.len();
    let mut node = StackId::EMPTY;
    for _ in 0..MAX_DEPTH {
        let branches = branches_below(process, node);
        let branch = |row: usize| branches.get(table.stack[row].0 as usize).copied().flatten();
        let mut counts: FxHashMap<StackId, u32> = FxHashMap::default();
        for row in later.clone().filter(|&row| role(row) != Role::Backward) {
            if let Some(branch) = branch(row) {
                *counts.entry(branch).or_default() += 1;
            }
        }
        if counts.len() > 1 {
            let turns = rows.clone().map(|row| {
                let turn = if role(row) == Role::Backward {
                    Some(BACKWARD)
                } else {
                    branch(row).map(|branch| u64::from(branch.0))
                };
                (table.alloc_ns[row], turn)
            });
            if let Some(starts) = starts_of_turns(turns) {
                return Some(starts);
            }
        }
        let (&largest, _) =
            counts.iter().max_by_key(|&(branch, count)| (*count, std::cmp::Reverse(*branch)))?;
        if largest == node {
            return None;
        }
        node = largest;
    }
    None
}

/// For each stack the branch below `node` that it belongs to; the node itself for stacks that end there.
fn branches_below(process: &Process, node: StackId) -> Vec<Option<StackId>> {
    let stacks = &process.stacks;
    let mut branches: Vec<Option<StackId>> = Vec::with_capacity(stacks.len());
    for id in (0..stacks.len() as u32).map(StackId) {
        let caller = stacks.caller(id);
        branches.push(if id == node {
            Some(node)
        } else if caller == node {
            Some(id)
        } else {
            // A caller stands before its callees; what lies beside the node has no branch.
            branches.get(caller.0 as usize).copied().flatten().filter(|&branch| branch != node)
        });
    }
    branches
}

/// The start of each turn of the first of those lines that take the same number of turns.
fn starts_of_turns(turns: impl Iterator<Item = (i64, Option<Turn>)>) -> Option<Vec<i64>> {
    let mut starts: FxHashMap<Turn, Vec<i64>> = FxHashMap::default();
    let mut last = None;
    for (time_ns, turn) in turns {
        let Some(turn) = turn else { continue };
        if last != Some(turn) {
            starts.entry(turn).or_default().push(time_ns);
            last = Some(turn);
        }
    }
    let support = |count: usize| starts.values().filter(|other| other.len().abs_diff(count) <= 1).count();
    let count = starts
        .values()
        .map(Vec::len)
        .filter(|&count| count >= MIN_TURNS as usize)
        .max_by_key(|&count| (support(count), count))
        .filter(|&count| support(count) >= 2)?;
    let agreeing = starts.into_values().filter(|starts| starts.len().abs_diff(count) <= 1);
    agreeing.min_by_key(|starts| starts.first().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_take_turns_make_a_loop() {
        // Ten iterations of lines 1, 2, 2, 3, with line 9 in every fifth.
        let mut turns = Vec::new();
        for n in 0..10 {
            let start = n * 100;
            turns.extend(
                [(start, 1), (start + 1, 2), (start + 2, 2), (start + 3, 3)].map(|(t, l)| (t, Some(l))),
            );
            if n % 5 == 0 {
                turns.push((start + 4, Some(9)));
            }
        }
        let starts = starts_of_turns(turns.into_iter()).expect("a loop");
        assert_eq!(starts, (0..10).map(|n| n * 100).collect::<Vec<_>>());
        assert_eq!(starts_of_turns((0..50).map(|n| (n, Some(1)))), None);
    }
}
