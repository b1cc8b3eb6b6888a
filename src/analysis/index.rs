//! What every question needs, computed once a session: labels of stacks and ops.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::kinds::Kinds;
use super::{Categories, Category, RowRef, UserCode};
use crate::model::{Frame, FrameId, Op, OpId, Process, ProcessId, Session, StackId, Stacks, StrId, Strings};
use crate::text::{msg, say, t};

/// The label of allocations without a Python stack, such as those of the autograd thread.
pub const NO_STACK: &str = msg!("(no Python stack)");
/// The label of allocations whose op is not known.
pub const NO_OP: &str = msg!("(op not recorded)");
/// The label of allocations outside every module.
pub const NO_MODULE: &str = msg!("(outside modules)");
/// Before the op of a stack that has no line of the user's.
const LIBRARY: &str = "(library) ";

/// A label of a stack, an op or a group in the language that is spoken; names of code stay as they are.
pub fn label_words(label: &str) -> Cow<'_, str> {
    let number = || label.strip_prefix("step ")?.parse::<i64>().ok();
    if let Some(op) = label.strip_prefix(LIBRARY) {
        t!("(library) {op}", op).into()
    } else if let Some(number) = number() {
        t!("step {number}", number).into()
    } else {
        say(label).into()
    }
}

/// A session with the labels of its stacks and ops. Cheap to share; build it off the UI thread.
#[derive(Debug)]
pub struct Index {
    /// The session.
    pub session: Arc<Session>,
    /// What counts as the user's own code.
    pub user_code: UserCode,
    labels: Strings,
    processes: Vec<ProcessLabels>,
    /// The pair of stack and op of every row.
    pub(super) kinds: Kinds,
    /// The category of each row, by process; read when first asked for.
    categories: OnceLock<Vec<Vec<Category>>>,
    passing: OnceLock<Vec<Vec<bool>>>,
}

/// Labels of one process, all in the index's own string table so that processes can be grouped together.
#[derive(Debug, Default)]
struct ProcessLabels {
    call_site_of_stack: Vec<StrId>,
    op_of_stack: Vec<StrId>,
    op: Vec<StrId>,
    module: Vec<StrId>,
}

impl Index {
    /// Labels every stack and op of a session.
    pub fn new(session: Arc<Session>, user_code: UserCode) -> Self {
        let texts: Vec<_> =
            session.processes.par_iter().map(|process| labels_of(process, &user_code)).collect();
        let mut labels = Strings::default();
        let processes = texts
            .into_iter()
            .map(|(own, [call_sites, stack_ops, ops, modules])| {
                let ids = labels.absorb(&own);
                let here = |list: Vec<StrId>| list.into_iter().map(|id| ids[id.0 as usize]).collect();
                ProcessLabels {
                    call_site_of_stack: here(call_sites),
                    op_of_stack: here(stack_ops),
                    op: here(ops),
                    module: here(modules),
                }
            })
            .collect();
        let kinds = Kinds::new(&session);
        Self {
            session,
            user_code,
            labels,
            processes,
            kinds,
            categories: OnceLock::new(),
            passing: OnceLock::new(),
        }
    }

    /// The text of a label.
    pub fn label(&self, id: StrId) -> &str {
        self.labels.get(id)
    }

    /// How many distinct labels there are: ids are `0..len`.
    pub fn label_count(&self) -> usize {
        self.labels.len()
    }

    /// `file.py:LINE function` of the innermost user frame of a stack, or a text in parentheses when it has none.
    pub fn call_site(&self, process: ProcessId, stack: StackId) -> StrId {
        at(&self.processes[process.0 as usize].call_site_of_stack, stack.0)
    }

    /// The op of an allocation: the trace's, else the one that its stack names.
    pub fn op(&self, process: ProcessId, op: OpId, stack: StackId) -> StrId {
        let labels = &self.processes[process.0 as usize];
        match labels.op.get(op.0 as usize) {
            Some(&label) if !label.is_empty() => label,
            _ => at(&labels.op_of_stack, stack.0),
        }
    }

    /// The module path of an op.
    pub fn module(&self, process: ProcessId, op: OpId) -> Option<StrId> {
        self.processes[process.0 as usize]
            .module
            .get(op.0 as usize)
            .copied()
            .filter(|label| !label.is_empty())
    }

    /// What a row is for, inferred; of all rows when first asked for.
    pub fn category(&self, row: RowRef) -> Category {
        let of_process = |process: &Process| -> Vec<Category> {
            let categories = Categories::new(process, &self.user_code);
            let rows = (0..process.allocations.len()).into_par_iter();
            rows.map(|row| categories.of(process, row)).collect()
        };
        let categories =
            self.categories.get_or_init(|| self.session.processes.par_iter().map(of_process).collect());
        categories[row.process.0 as usize][row.row as usize]
    }

    /// What a trace recorded of an op.
    pub fn op_details(&self, process: ProcessId, op: OpId) -> Option<Op> {
        self.session.process(process).ops.get(op)
    }

    /// The frames of a stack, innermost first; without native ones that only pass a call on, unless all are wanted or
    /// nothing else would be left.
    pub fn frames(&self, process: ProcessId, stack: StackId, shows_all: bool) -> Vec<Frame> {
        self.shown_frames(process, stack, shows_all).collect()
    }

    fn shown_frames(
        &self,
        process: ProcessId,
        stack: StackId,
        shows_all: bool,
    ) -> impl Iterator<Item = Frame> + '_ {
        let passing = &self.passing_frames()[process.0 as usize];
        let stacks = &self.session.process(process).stacks;
        let ids = move || stacks.walk(stack).filter_map(|stack| stacks.innermost_id(stack));
        let shows_all = shows_all || ids().all(|id| passing[id.0 as usize]);
        ids().filter(move |id| shows_all || !passing[id.0 as usize]).filter_map(|id| stacks.frame(id))
    }

    /// By process which frames only pass a call on: each is looked at once, however many stacks it is in.
    fn passing_frames(&self) -> &[Vec<bool>] {
        let of_process = |process: &Process| -> Vec<bool> {
            let frames = (0..process.stacks.frame_count() as u32).map(|id| process.stacks.frame(FrameId(id)));
            frames
                .map(|frame| {
                    frame.is_some_and(|frame| self.user_code.is_passing_native(&process.strings, frame))
                })
                .collect()
        };
        self.passing.get_or_init(|| self.session.processes.iter().map(of_process).collect())
    }
}

fn at(labels: &[StrId], index: u32) -> StrId {
    labels.get(index as usize).copied().unwrap_or_default()
}

/// Call sites by stack, ops by stack, ops and modules by op, in a table of their own. Each text is kept once: stacks by
/// the hundred thousand share a line.
fn labels_of(process: &Process, user_code: &UserCode) -> (Strings, [Vec<StrId>; 4]) {
    let (strings, stacks): (&Strings, &Stacks) = (&process.strings, &process.stacks);
    let mut labels = Strings::default();
    let ids = || (0..stacks.len() as u32).map(StackId);
    let call_sites = ids()
        .map(|stack| match user_code.call_site(strings, stacks, stack) {
            Some(frame) => labels.intern(&Stacks::format_frame(strings, frame)),
            None => match user_code.op_from_stack(strings, stacks, stack) {
                Some(op) => labels.intern(&format!("{LIBRARY}{op}")),
                None => labels.intern(NO_STACK),
            },
        })
        .collect();
    let stack_ops = ids()
        .map(|stack| {
            labels.intern(user_code.op_from_stack(strings, stacks, stack).as_deref().unwrap_or(NO_OP))
        })
        .collect();
    let ops = process.ops.iter().map(|op| labels.intern(strings.get(op.name))).collect();
    let modules = process.ops.iter().map(|op| labels.intern(strings.get(op.module))).collect();
    (labels, [call_sites, stack_ops, ops, modules])
}
