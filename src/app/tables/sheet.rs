//! The table in front as rows of text: what is shown, filtered and sorted as it is shown, with plain figures.

use std::sync::Arc;

use super::ranks;
use crate::analysis::{Comparison, NetGroup, RowRef};
use crate::app::answers::Lens;
use crate::app::data::Data;
use crate::app::sorting::{order_of_differences, order_of_groups, order_of_nets};
use crate::app::state::{NetView, Selected, State, Tab};
use crate::app::survey::Row;
use crate::model::{BEFORE_NS, NEVER_NS};
use crate::report::guard;

/// What a sheet is made of. Cheap to hand to another thread, where its rows are written.
pub enum Sheet {
    /// Groups in their order.
    Groups(Arc<Lens>, Vec<u32>),
    /// Allocations one by one.
    Rows(Arc<Data>, Arc<Lens>),
    /// What each group added.
    Nets(Arc<Vec<NetGroup>>, Vec<u32>),
    /// What differs between two moments.
    Differences(Arc<Comparison>, Vec<u32>),
    /// Ranks side by side.
    Ranks(Vec<Row>, Vec<u32>),
}

impl Sheet {
    /// The table of the tab in front; `None` for a tab without one.
    pub fn of(state: &State) -> Option<Self> {
        let answers = &state.answers;
        // Before a session is open, the ranks are all there is.
        let tab = if state.data.is_some() { state.tab } else { Tab::Ranks };
        let lens = match tab {
            Tab::Ranks if state.has_tab(tab) => {
                return Some(Self::Ranks(state.ranks().to_vec(), ranks::order(state)));
            }
            Tab::Kept => answers.kept.clone(),
            Tab::Live => answers.live.clone(),
            Tab::Net if state.net_view == NetView::Groups => {
                return Some(Self::Nets(answers.net.clone(), order_of_nets(&answers.net, state.net_sort)));
            }
            Tab::Compare => {
                let comparison = answers.comparison.clone()?;
                let order = order_of_differences(&comparison.differences, state.difference_sort);
                return Some(Self::Differences(comparison, order));
            }
            _ => return None,
        };
        if state.is_flat {
            return Some(Self::Rows(state.data.clone()?, lens));
        }
        let order = order_of_groups(&lens.groups, state.group_sort);
        Some(Self::Groups(lens, order))
    }

    /// The names of the columns, with units.
    pub fn header(&self) -> &'static [&'static str] {
        match self {
            Self::Groups(..) => {
                &["group", "bytes", "count", "ops", "first_step", "last_step", "per_step_bytes", "call_site"]
            }
            Self::Rows(..) => &[
                "bytes",
                "alloc_ns",
                "lifetime_ns",
                "call_site",
                "op",
                "shapes",
                "step",
                "address",
                "device",
            ],
            Self::Nets(..) => {
                &["group", "net_bytes", "allocated_bytes", "freed_bytes", "kept_bytes", "peak_bytes"]
            }
            Self::Differences(..) => &[
                "group",
                "delta_bytes",
                "delta_count",
                "after_bytes",
                "after_count",
                "before_bytes",
                "before_count",
            ],
            Self::Ranks(..) => &[
                "process",
                "kept_bytes",
                "kept_count",
                "growth_per_step_bytes",
                "peak_bytes",
                "allocations",
                "steps",
                "outlier_by",
                "first_finding",
                "notes",
            ],
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Groups(_, order)
            | Self::Nets(_, order)
            | Self::Differences(_, order)
            | Self::Ranks(_, order) => order.len(),
            Self::Rows(_, lens) => lens.rows.len(),
        }
    }

    /// The cells of a row.
    pub fn cells(&self, row: usize) -> Vec<String> {
        match self {
            Self::Groups(lens, order) => {
                let group = &lens.groups[order[row] as usize];
                let step = |of: fn((i64, i64)) -> i64| group.steps.map(|steps| of(steps).to_string());
                vec![
                    group.key.clone(),
                    group.bytes.to_string(),
                    group.count.to_string(),
                    group.ops.join("; "),
                    step(|steps| steps.0).unwrap_or_default(),
                    step(|steps| steps.1).unwrap_or_default(),
                    group.per_step_bytes.to_string(),
                    group.call_site.clone(),
                ]
            }
            Self::Rows(data, lens) => row_cells(data, lens.rows[row]),
            Self::Nets(nets, order) => {
                let net = &nets[order[row] as usize];
                vec![
                    net.group.key.clone(),
                    net.net_bytes().to_string(),
                    net.allocated.bytes.to_string(),
                    net.freed.bytes.to_string(),
                    net.kept.bytes.to_string(),
                    net.peak_bytes.to_string(),
                ]
            }
            Self::Ranks(rows, order) => rank_cells(&rows[order[row] as usize]),
            Self::Differences(comparison, order) => {
                let difference = &comparison.differences[order[row] as usize];
                let (after, before) = (difference.after.totals, difference.before.totals);
                vec![
                    difference.call_site.clone(),
                    difference.delta_bytes().to_string(),
                    difference.delta_count().to_string(),
                    after.bytes.to_string(),
                    after.count.to_string(),
                    before.bytes.to_string(),
                    before.count.to_string(),
                ]
            }
        }
    }

    /// What is selected when a row is; `None` where rows can't be.
    pub fn selected(&self, row: usize) -> Option<Selected> {
        match self {
            Self::Groups(lens, order) => Some(Selected::Group(lens.groups[order[row] as usize].key.clone())),
            Self::Rows(_, lens) => Some(Selected::Row(lens.rows[row])),
            Self::Nets(..) => None,
            Self::Differences(comparison, order) => {
                let difference = &comparison.differences[order[row] as usize];
                Some(Selected::Difference(difference.call_site.clone()))
            }
            Self::Ranks(_, order) => Some(Selected::Rank(order[row] as usize)),
        }
    }

    /// The row of what is selected; of several, that of the last.
    pub fn row_of(&self, selected: &Selected) -> Option<usize> {
        match (self, selected) {
            (Self::Groups(lens, order), Selected::Group(key)) => {
                order.iter().position(|&at| lens.groups[at as usize].key == *key)
            }
            (Self::Rows(_, lens), Selected::Row(one)) => lens.rows.iter().position(|row| row == one),
            (Self::Rows(_, lens), Selected::Rows(rows)) => {
                lens.rows.iter().position(|row| Some(row) == rows.last())
            }
            (Self::Differences(comparison, order), Selected::Difference(key)) => {
                order.iter().position(|&at| comparison.differences[at as usize].call_site == *key)
            }
            (Self::Ranks(_, order), Selected::Rank(rank)) => {
                order.iter().position(|&at| at as usize == *rank)
            }
            _ => None,
        }
    }

    /// The first rows as text with tabs, which spreadsheets take from the clipboard.
    pub fn to_text(&self, max_rows: usize) -> String {
        let mut text = self.header().join("\t");
        for row in 0..self.len().min(max_rows) {
            text.push('\n');
            let cells = self.cells(row);
            text += &cells.iter().map(|cell| cell.replace(['\t', '\n'], " ")).collect::<Vec<_>>().join("\t");
        }
        text
    }

    /// Writes all rows as CSV.
    ///
    /// # Errors
    /// When they can't be written.
    pub fn write(&self, out: &mut impl std::io::Write) -> anyhow::Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(self.header())?;
        for row in 0..self.len() {
            writer.write_record(self.cells(row).iter().map(|cell| guard(cell).into_owned()))?;
        }
        Ok(writer.flush()?)
    }
}

fn rank_cells(row: &Row) -> Vec<String> {
    let mut cells = vec![row.name.clone()];
    match &row.figures {
        Ok(process) => cells.extend([
            process.survivors.bytes.to_string(),
            process.survivors.count.to_string(),
            process.growth_per_step_bytes.map(|bytes| bytes.to_string()).unwrap_or_default(),
            process.peak_bytes.map(|bytes| bytes.to_string()).unwrap_or_default(),
            process.allocations.to_string(),
            process.steps.to_string(),
            process.outlier_by.join(" "),
            process.finding.clone().unwrap_or_default(),
            row.notes.join("; "),
        ]),
        Err(why) => {
            cells.extend(std::iter::repeat_n(String::new(), 8));
            cells.push(why.clone());
        }
    }
    cells
}

fn row_cells(data: &Data, row: RowRef) -> Vec<String> {
    let (index, session) = (&data.index, data.session());
    let process = session.process(row.process);
    let allocation = row.get(session);
    let op = process.ops.get(allocation.op).unwrap_or_default();
    let known = |time_ns: i64| ![BEFORE_NS, NEVER_NS].contains(&time_ns);
    let (alloc_ns, free_ns) = (allocation.alloc_ns, allocation.free_completed_ns);
    let lifetime = (known(alloc_ns) && known(free_ns)).then(|| free_ns.saturating_sub(alloc_ns).to_string());
    vec![
        allocation.size_bytes.to_string(),
        if known(alloc_ns) { alloc_ns.to_string() } else { String::new() },
        lifetime.unwrap_or_default(),
        index.label(index.call_site(row.process, allocation.stack)).to_owned(),
        index.label(index.op(row.process, allocation.op, allocation.stack)).to_owned(),
        process.strings.get(op.shapes).to_owned(),
        process.steps.get(allocation.step as usize).map_or_else(String::new, |step| step.number.to_string()),
        format!("{:#x}", allocation.address),
        allocation.device.to_string(),
    ]
}
