//! What the tabs show, worked out on the analysis thread.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::data::Data;
use super::desk::Desk;
use super::filter::Filter;
use super::opening::Wake;
use super::sorting::{self, RowColumn, Sort};
use super::state::{LiveView, Tab};
use super::survey::{Origin, Row, mark_outliers};
use crate::analysis::findings::{Finding, findings};
use crate::analysis::{
    Category, Comparison, FlameNode, FlameOrder, FreeBy, Group, GroupBy, Index, Moment, NetGroup, NetNode,
    Query, RangeTotals, RowRef, SegmentAt, Selection, Totals, address_map, by_category, compare_moments,
    compare_processes, flame, group, kept, live, live_change, module_tree, net, totals,
};
use crate::model::{Quantity, TimeRange};
use crate::report;

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
    /// All of the live set, or what it differs in from the range's start.
    pub live_view: LiveView,
    /// What is compared with what.
    pub compared: [Moment; 2],
    /// Which end of the stacks is the root.
    pub flame_order: FlameOrder,
    /// While the pointer moves the range: the tab in front. All others wait until it lets go.
    pub moving_under: Option<Tab>,
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
            && self.live_view == other.live_view
            && self.compared == other.compared
            && self.flame_order == other.flame_order
            && self.moving_under == other.moving_under
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
    /// What was alive, and what it is for.
    Live(i64, Lens, Vec<(Category, Totals)>),
    /// What each group added.
    Net(Vec<NetGroup>),
    /// What each module added.
    Modules(Vec<NetNode>),
    /// What differs between two moments.
    Compared(Comparison),
    /// The survivors by call stack.
    Flame(Vec<FlameNode>),
    /// The segments at the instant of the live set.
    Segments(Vec<SegmentAt>),
    /// Diagnoses.
    Findings(Vec<Finding>),
    /// The processes side by side.
    Processes(Vec<Row>),
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
    /// What [`Self::live`] is for, the largest first.
    pub live_categories: Vec<(Category, Totals)>,
    /// The instant of [`Self::live`].
    pub live_at_ns: Option<i64>,
    /// What each group added.
    pub net: Arc<Vec<NetGroup>>,
    /// What each module added.
    pub modules: Arc<Vec<NetNode>>,
    /// What differs between two moments; nothing before it was first asked for.
    pub comparison: Option<Arc<Comparison>>,
    /// The survivors by call stack.
    pub flame: Arc<Vec<FlameNode>>,
    /// The segments at [`Self::live_at_ns`].
    pub segments: Arc<Vec<SegmentAt>>,
    /// Diagnoses.
    pub findings: Arc<Vec<Finding>>,
    /// The processes side by side, when there are several.
    pub processes: Arc<[Row]>,
    /// Whether the diagnoses are those of the last question.
    pub has_findings: bool,
}

impl Answers {
    /// Takes in a part.
    pub fn take(&mut self, part: Part) {
        match part {
            Part::Totals(range, totals, rises) => {
                (self.totals_of, self.totals, self.rises) = (Some(range), totals, rises);
            }
            Part::Kept(lens) => self.kept = Arc::new(lens),
            Part::Live(at_ns, lens, categories) => {
                (self.live_at_ns, self.live) = (Some(at_ns), Arc::new(lens));
                self.live_categories = categories;
            }
            Part::Net(groups) => self.net = Arc::new(groups),
            Part::Modules(nodes) => self.modules = Arc::new(nodes),
            Part::Compared(comparison) => self.comparison = Some(Arc::new(comparison)),
            Part::Flame(nodes) => self.flame = Arc::new(nodes),
            Part::Segments(segments) => self.segments = Arc::new(segments),
            Part::Findings(found) => (self.findings, self.has_findings) = (Arc::new(found), true),
            Part::Processes(rows) => self.processes = rows.into(),
        }
    }
}

/// Starts the analysis thread.
///
/// # Errors
/// When the system has no thread to give.
pub fn start(wake: Wake) -> std::io::Result<Analyst> {
    Desk::start("analysis", wake, |question: Question, reply| {
        for (tab, step) in STEPS {
            let is_seen = |front: Tab| tab.is_none_or(|tab| tab == front && !SLOW.contains(&tab));
            if !question.moving_under.is_none_or(is_seen) {
                continue;
            }
            if reply.is_overtaken() {
                return;
            }
            reply.send(step(&question));
        }
    })
}

/// A part of the answer, and the tab that shows it; the totals are seen in all.
type Step = (Option<Tab>, fn(&Question) -> Part);

/// What is quick and seen first comes first; before each step it is asked whether a newer question waits.
const STEPS: [Step; 10] = [
    (None, totals_part),
    (Some(Tab::Kept), kept_part),
    (Some(Tab::Live), live_part),
    (Some(Tab::Net), net_part),
    (Some(Tab::Compare), compared_part),
    (Some(Tab::Stacks), flame_part),
    (Some(Tab::Segments), segments_part),
    (Some(Tab::Net), modules_part),
    (Some(Tab::Findings), findings_part),
    (Some(Tab::Ranks), processes_part),
];

/// Tabs that wait while the pointer moves the range: they look at more than one frame's time allows.
const SLOW: [Tab; 2] = [Tab::Findings, Tab::Ranks];

/// The desk of the analysis thread.
pub type Analyst = Desk<Question, Part>;

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
    let (session, at_ns) = (question.data.session(), question.live_at_ns);
    let change = || live_change(session, question.selection, question.range.start_ns, at_ns);
    let rows = match question.live_view {
        LiveView::All => live(session, question.selection, at_ns),
        LiveView::Added => change().added,
        LiveView::Gone => change().gone,
    };
    let lens = lens(question, rows, question.data.span());
    let categories = by_category(&question.data.index, &lens.rows);
    Part::Live(at_ns, lens, categories)
}

fn net_part(question: &Question) -> Part {
    let mut groups = net(&question.data.index, &question.query(), question.group_by);
    if let Ok(filter) = Filter::parse(&question.filter)
        && !filter.is_empty()
    {
        groups.retain(|net| filter.admits(&group_text(&net.group)));
    }
    Part::Net(groups)
}

fn modules_part(question: &Question) -> Part {
    Part::Modules(module_tree(&question.data.index, &question.query()))
}

fn compared_part(question: &Question) -> Part {
    let [before, after] = question.compared;
    let mut comparison = compare_moments(&question.data.index, before, after, question.group_by);
    if let Ok(filter) = Filter::parse(&question.filter)
        && !filter.is_empty()
    {
        comparison.differences.retain(|difference| filter.admits(&difference.call_site));
    }
    comparison.differences.retain(|difference| difference.before != difference.after);
    Part::Compared(comparison)
}

fn flame_part(question: &Question) -> Part {
    let rows = kept(question.data.session(), &question.query());
    Part::Flame(flame(&question.data.index, &rows, question.flame_order))
}

fn segments_part(question: &Question) -> Part {
    Part::Segments(address_map(question.data.session(), question.selection, question.live_at_ns))
}

fn findings_part(question: &Question) -> Part {
    Part::Findings(findings(&question.data.index, &question.query()))
}

/// All processes, whichever is looked at.
fn processes_part(question: &Question) -> Part {
    let index = &question.data.index;
    if index.session.processes.len() < 2 {
        return Part::Processes(Vec::new());
    }
    let selection = Selection { process: None, ..question.selection };
    let summaries = compare_processes(index, &Query { selection, ..question.query() }, None);
    let rows = summaries.iter().map(|summary| {
        let process = report::process(index, summary);
        Row {
            name: process.name.clone(),
            figures: Ok(process),
            origin: Origin::Process(summary.process),
            notes: Vec::new(),
        }
    });
    let mut rows: Vec<Row> = rows.collect();
    mark_outliers(&mut rows);
    Part::Processes(rows)
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
