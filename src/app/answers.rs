//! The analysis thread: it answers the latest question and drops those that a newer one has overtaken.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::data::Data;
use super::filter::Filter;
use super::sorting::{self, RowColumn, Sort};
use crate::analysis::findings::{Finding, findings};
use crate::analysis::{
    FreeBy, Group, GroupBy, Index, NetGroup, Query, RangeTotals, RowRef, Selection, group, kept, live, net,
    totals,
};
use crate::model::{Quantity, TimeRange};

/// A question about the session, as the window stands.
#[derive(Clone, Debug)]
pub struct Question {
    /// The session.
    pub data: Arc<Data>,
    /// Whose memory.
    pub selection: Selection,
    /// The brushed range, or the whole session.
    pub range: TimeRange,
    /// What "never freed" means.
    pub free_by: FreeBy,
    /// What rows are summed by.
    pub group_by: GroupBy,
    /// What tables are filtered by, as typed.
    pub filter: String,
    /// How rows are sorted.
    pub sort: Sort<RowColumn>,
    /// The instant of the live set.
    pub live_at_ns: i64,
    /// Whether the pointer is still moving the range: then findings wait.
    pub is_moving: bool,
}

impl Question {
    /// The query of the analysis.
    pub fn query(&self) -> Query {
        Query { selection: self.selection, range: self.range, free_by: self.free_by }
    }

    /// Whether another one would be answered the same.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.data, &other.data)
            && self.query() == other.query()
            && self.group_by == other.group_by
            && self.filter == other.filter
            && self.sort == other.sort
            && self.live_at_ns == other.live_at_ns
            && self.is_moving == other.is_moving
    }
}

/// How many points a small curve has.
const SPARK_POINTS: usize = 24;
/// A small curve.
pub type Spark = [u64; SPARK_POINTS];

/// Rows and their groups, filtered and sorted.
#[derive(Clone, Debug, Default)]
pub struct Lens {
    /// The groups that pass the filter, the largest first.
    pub groups: Vec<Group>,
    /// How the bytes of each group grew over the range, in equal parts of it.
    pub sparks: Vec<Spark>,
    /// The rows that pass the filter, sorted.
    pub rows: Vec<RowRef>,
    /// The bytes of those rows.
    pub bytes: u64,
    /// How many rows there are without the filter.
    pub unfiltered: usize,
}

/// How much the curves rose over the range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rises {
    /// `memory_allocated`.
    pub allocated: Option<i64>,
    /// `memory_reserved`.
    pub reserved: Option<i64>,
    /// What the driver counts.
    pub driver: Option<i64>,
}

/// A part of the answer; parts come as they are ready.
#[derive(Debug)]
pub enum Part {
    /// The range's totals.
    Totals(TimeRange, RangeTotals, Rises),
    /// The survivors.
    Kept(Lens),
    /// What was alive.
    Live(i64, Lens),
    /// What each group added.
    Net(Vec<NetGroup>),
    /// Diagnoses.
    Findings(Vec<Finding>),
}

/// Everything answered so far. A part stays until a newer one replaces it, so that nothing flickers.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// The range that the totals are of.
    pub totals_of: Option<TimeRange>,
    /// The range's totals.
    pub totals: RangeTotals,
    /// How much the curves rose.
    pub rises: Rises,
    /// The survivors.
    pub kept: Arc<Lens>,
    /// What was alive at [`Self::live_at_ns`].
    pub live: Arc<Lens>,
    /// The instant of [`Self::live`].
    pub live_at_ns: Option<i64>,
    /// What each group added.
    pub net: Arc<Vec<NetGroup>>,
    /// Diagnoses.
    pub findings: Arc<Vec<Finding>>,
    /// Whether the diagnoses are those of the last question.
    pub has_findings: bool,
}

impl Answers {
    fn take(&mut self, part: Part) {
        match part {
            Part::Totals(range, totals, rises) => {
                (self.totals_of, self.totals, self.rises) = (Some(range), totals, rises);
            }
            Part::Kept(lens) => self.kept = Arc::new(lens),
            Part::Live(at_ns, lens) => (self.live_at_ns, self.live) = (Some(at_ns), Arc::new(lens)),
            Part::Net(groups) => self.net = Arc::new(groups),
            Part::Findings(found) => (self.findings, self.has_findings) = (Arc::new(found), true),
        }
    }
}

/// The slot that holds the latest question.
#[derive(Default)]
struct Slot {
    latest: Mutex<State>,
    is_changed: Condvar,
}

#[derive(Default)]
struct State {
    generation: u64,
    question: Option<Question>,
    is_closed: bool,
}

/// The handle of the analysis thread.
pub struct Analyst {
    slot: Arc<Slot>,
    parts: Receiver<(u64, Part)>,
    generation: u64,
    answered: u64,
}

impl Analyst {
    /// Starts the thread; `wake` is called after every part.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(wake: impl Fn() + Send + 'static) -> std::io::Result<Self> {
        let slot = Arc::new(Slot::default());
        let (sender, parts) = channel();
        let worker = Worker { slot: slot.clone(), sender, wake: Box::new(wake) };
        std::thread::Builder::new().name("analysis".to_owned()).spawn(move || worker.run())?;
        Ok(Self { slot, parts, generation: 0, answered: 0 })
    }

    /// Asks; an older question that is still being answered is dropped.
    pub fn ask(&mut self, question: Question) {
        self.generation += 1;
        let mut state = self.slot.latest.lock().unwrap_or_else(PoisonError::into_inner);
        state.generation = self.generation;
        state.question = Some(question);
        drop(state);
        self.slot.is_changed.notify_one();
    }

    /// Takes what is ready; late parts of older questions are dropped.
    pub fn collect(&mut self, answers: &mut Answers) {
        while let Ok((generation, part)) = self.parts.try_recv() {
            if generation == self.generation {
                if matches!(part, Part::Findings(_)) {
                    self.answered = generation;
                }
                answers.take(part);
            }
        }
    }

    /// Whether a part of the latest answer is still missing.
    pub fn is_busy(&self) -> bool {
        self.answered != self.generation
    }
}

impl Drop for Analyst {
    fn drop(&mut self) {
        self.slot.latest.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
        self.slot.is_changed.notify_one();
    }
}

struct Worker {
    slot: Arc<Slot>,
    sender: Sender<(u64, Part)>,
    wake: Box<dyn Fn() + Send>,
}

impl Worker {
    fn run(&self) {
        while let Some((generation, question)) = self.next() {
            // Each step asks whether a newer question waits; what is quick and seen first comes first.
            let steps: [fn(&Question) -> Part; 5] =
                [totals_part, kept_part, live_part, net_part, findings_part];
            let count = if question.is_moving { 4 } else { 5 };
            for step in &steps[..count] {
                if self.is_overtaken(generation) {
                    break;
                }
                if self.sender.send((generation, step(&question))).is_err() {
                    return;
                }
                (self.wake)();
            }
        }
    }

    fn next(&self) -> Option<(u64, Question)> {
        let mut state = self.slot.latest.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if state.is_closed {
                return None;
            }
            if let Some(question) = state.question.take() {
                return Some((state.generation, question));
            }
            state = self.slot.is_changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn is_overtaken(&self, generation: u64) -> bool {
        let state = self.slot.latest.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_closed || state.generation != generation
    }
}

fn totals_part(question: &Question) -> Part {
    let (data, range) = (&question.data, question.range);
    let rise = |quantity| data.rise(question.selection, &quantity, range);
    let rises = Rises {
        allocated: rise(Quantity::Allocated),
        reserved: rise(Quantity::Reserved),
        driver: rise(Quantity::DriverUsed).or_else(|| rise(Quantity::ProcessUsed)),
    };
    Part::Totals(range, totals(data.session(), question.selection, range), rises)
}

fn kept_part(question: &Question) -> Part {
    Part::Kept(lens(question, kept(question.data.session(), &question.query()), question.range))
}

fn live_part(question: &Question) -> Part {
    let at_ns = question.live_at_ns;
    let rows = live(question.data.session(), question.selection, at_ns);
    Part::Live(at_ns, lens(question, rows, question.data.span()))
}

fn net_part(question: &Question) -> Part {
    let mut groups = net(&question.data.index, question.selection, question.range, question.group_by);
    if let Ok(filter) = Filter::parse(&question.filter)
        && !filter.is_empty()
    {
        groups.retain(|net| filter.admits(&group_text(&net.group)));
    }
    Part::Net(groups)
}

fn findings_part(question: &Question) -> Part {
    Part::Findings(findings(&question.data.index, &question.query()))
}

/// Filters, groups and sorts rows.
fn lens(question: &Question, mut rows: Vec<RowRef>, sparks_over: TimeRange) -> Lens {
    let index = &question.data.index;
    let unfiltered = rows.len();
    // While a regular expression is being typed it may not be one yet; then nothing is filtered.
    if let Ok(filter) = Filter::parse(&question.filter)
        && !filter.is_empty()
    {
        let mut known = FxHashMap::default();
        rows.retain(|&row| {
            let allocation = row.get(&index.session);
            let key = (row.process, allocation.stack, allocation.op);
            *known.entry(key).or_insert_with(|| filter.admits(&row_text(index, row)))
        });
    }
    let groups = group(index, &rows, question.group_by);
    let bytes = groups.iter().map(|group| group.bytes).fold(0, u64::saturating_add);
    let sparks = groups.iter().map(|group| spark_of(index, group, sparks_over)).collect();
    sorting::sort_rows(index, &mut rows, question.sort);
    Lens { groups, sparks, rows, bytes, unfiltered }
}

/// The bytes of a group that had been allocated by the end of each part of `range`.
fn spark_of(index: &Index, group: &Group, range: TimeRange) -> Spark {
    let mut parts = [0_u64; SPARK_POINTS];
    for row in &group.rows {
        let allocation = row.get(&index.session);
        let after_ns = allocation.alloc_ns.saturating_sub(range.start_ns).max(0);
        let share = after_ns as f64 / range.duration_ns().max(1) as f64;
        let part = ((share * SPARK_POINTS as f64) as usize).min(SPARK_POINTS - 1);
        parts[part] = parts[part].saturating_add(allocation.size_bytes);
    }
    for part in 1..SPARK_POINTS {
        parts[part] = parts[part].saturating_add(parts[part - 1]);
    }
    parts
}

/// What a row is found by.
fn row_text(index: &Index, row: RowRef) -> String {
    let allocation = row.get(&index.session);
    let op = index.label(index.op(row.process, allocation.op, allocation.stack));
    let call_site = index.label(index.call_site(row.process, allocation.stack));
    let module = index.module(row.process, allocation.op).map_or("", |label| index.label(label));
    format!("{call_site} {op} {module}")
}

/// What a group is found by.
fn group_text(group: &Group) -> String {
    format!("{} {} {}", group.key, group.call_site, group.ops.join(" "))
}
