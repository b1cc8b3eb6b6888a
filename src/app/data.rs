//! A session made ready to be shown. Built once on a worker thread, then only read.

use std::sync::Arc;

use super::bars::{self, Bar};
use super::lanes::{self, ShownLane};
use super::timeline::pyramid::Pyramid;
use crate::align::{self, Opened};
use crate::analysis::growth::{self, Suggestion};
use crate::analysis::{DeviceFilter, DriverGap, Index, Selection, UserCode, driver_gaps};
use crate::model::{Device, MarkerKind, Process, ProcessId, Quantity, Session, SourceId, StrId, TimeRange};
use crate::text::{say, t};

/// A session made ready to be shown.
#[derive(Debug)]
pub struct Data {
    /// The session with its labels.
    pub index: Arc<Index>,
    /// All curves that have points.
    pub curves: Vec<Curve>,
    /// What is looked at unless the user says otherwise.
    pub selection: Selection,
    /// Where memory grows, the most telling first.
    pub suggestions: Vec<Suggestion>,
    /// When allocated memory was highest, and how high.
    pub peak: Option<(i64, i64)>,
    /// All markers on Unix time, ascending.
    pub markers: Vec<ShownMarker>,
    /// The rank of call sites among all, which picks their colour.
    call_site_ranks: Ranks,
    /// The rank of modules.
    module_ranks: Ranks,
    /// Steps and annotations in rows, by process.
    pub bars: Vec<Vec<Vec<Bar>>>,
    /// Slices of traces, ready to be drawn.
    pub lanes: Vec<ShownLane>,
    /// What the driver counts beside the allocator, by device.
    pub gaps: Vec<DriverGap>,
}

/// A curve ready to be drawn, on Unix time.
#[derive(Debug)]
pub struct Curve {
    /// What it shows, with as many words as tell it from the others.
    pub label: String,
    /// What it shows.
    pub quantity: Quantity,
    /// On which device.
    pub device: Device,
    /// The file it comes from, when it is not a process's own.
    pub source: Option<SourceId>,
    /// The process it belongs to, when there is one.
    pub process: Option<ProcessId>,
    /// Whose curve of its quantity it is, counted by process and device: it picks the shade.
    pub nth: usize,
    /// Whether a value holds until the next point.
    pub is_step: bool,
    /// Its points.
    pub points: Pyramid,
}

impl Curve {
    /// Whether it is drawn until it is switched off: the levels that people compare, not what lies between them.
    pub fn is_shown_at_first(&self) -> bool {
        !matches!(
            self.quantity,
            Quantity::Active
                | Quantity::Requested
                | Quantity::InactiveSplit
                | Quantity::LargestFree
                | Quantity::PeakAllocated
                | Quantity::PeakReserved
        )
    }
}

/// An instant worth a flag on the time axis.
#[derive(Clone, Debug)]
pub struct ShownMarker {
    /// When.
    pub time_ns: i64,
    /// What.
    pub kind: MarkerKind,
    /// One sentence.
    pub text: String,
}

impl Data {
    /// Joins files into a session and computes what every view needs. Slow: not on the UI thread.
    pub fn build(opened: &[Opened], user_code: UserCode) -> Self {
        let session = Arc::new(align::build(opened));
        let index = Arc::new(Index::new(session.clone(), user_code));
        let curves = curves_of(&session);
        let peak = peak_of(&curves);
        let selection = Selection::of(&session);
        let suggestions = growth::suggest(&index, selection);
        let mut markers: Vec<ShownMarker> = markers_of(&session);
        markers.sort_by_key(|marker| marker.time_ns);
        let (call_site_ranks, module_ranks) = ranks_of(&index);
        let bars = session.processes.iter().map(bars::bars_of).collect();
        let lanes = lanes::lanes_of(&session);
        let gaps = driver_gaps(&session, Selection { device: DeviceFilter::All, ..Selection::default() });
        Self {
            index,
            curves,
            selection,
            suggestions,
            peak,
            markers,
            call_site_ranks,
            module_ranks,
            bars,
            lanes,
            gaps,
        }
    }

    /// The rank of a call site by the bytes it ever allocated.
    pub fn call_site_rank(&self, label: StrId) -> usize {
        rank_in(&self.call_site_ranks, label)
    }

    /// The rank of a module by the bytes it ever allocated.
    pub fn module_rank(&self, label: StrId) -> usize {
        rank_in(&self.module_ranks, label)
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.index.session
    }

    /// The whole time that any file covers; never empty.
    pub fn span(&self) -> TimeRange {
        let span = self.session().span;
        TimeRange::new(span.start_ns, span.end_ns.max(span.start_ns.saturating_add(1)))
    }

    /// The processes that a selection can choose from.
    pub fn process_labels(&self) -> impl Iterator<Item = (ProcessId, &str)> {
        let processes = self.session().processes.iter().enumerate();
        processes.map(|(index, process)| (ProcessId(index as u32), process.label.as_str()))
    }

    /// The devices that memory was allocated on.
    pub fn devices(&self) -> Vec<Device> {
        let mut devices: Vec<Device> =
            self.curves.iter().filter(|curve| curve.process.is_some()).map(|curve| curve.device).collect();
        devices.sort();
        devices.dedup();
        devices
    }

    /// How much a quantity rose over a range: the sum over the selected processes, or over the devices for what only
    /// the driver knows. What a process's own recording tells counts before what logs print of it, and a level that
    /// several logs tell counts once. `None` where no curve covers the range.
    pub fn rise(&self, selection: Selection, quantity: &Quantity, range: TimeRange) -> Option<i64> {
        let is_chosen = |curve: &&Curve| {
            curve.quantity == *quantity
                && selection.device.admits(curve.device)
                && (curve.process.is_none() || selection.process.is_none_or(|id| curve.process == Some(id)))
        };
        let mut chosen: Vec<&Curve> = self.curves.iter().filter(is_chosen).collect();
        if chosen.iter().any(|curve| curve.source.is_none()) {
            chosen.retain(|curve| curve.source.is_none());
        } else if *quantity != Quantity::ProcessUsed {
            let mut seen = Vec::new();
            chosen.retain(|curve| {
                let key = (curve.device, curve.process);
                let is_new = !seen.contains(&key);
                seen.push(key);
                is_new
            });
        }
        let rises = chosen.into_iter().filter_map(|curve| {
            let points = &curve.points;
            let start = points.at(range.start_ns).or_else(|| points.bytes.first().copied())?;
            Some(points.at(range.end_ns)?.saturating_sub(start))
        });
        rises.reduce(i64::saturating_add)
    }
}

fn curves_of(session: &Session) -> Vec<Curve> {
    let has_processes = session.processes.len() > 1;
    let mut curves: Vec<Curve> = session
        .curves()
        .filter(|(_, _, series, _)| !series.is_empty())
        .map(|(source, process, series, offset_ns)| {
            let mut label = say(series.quantity.label()).to_owned();
            if let (true, Some(id)) = (has_processes, process) {
                label = format!("{label} · {}", session.process(id).label);
            } else if !series.process_name.is_empty() {
                // A whole path would push the other curves out of the legend.
                let name = series.process_name.rsplit(['/', '\\']).next().unwrap_or_default();
                label = format!("{label} · {name}");
            } else if let Some(pid) = series.pid {
                label = format!("{label} · {}", t!("process {pid}", pid));
            }
            let times = series.times_ns.iter().map(|time| time.saturating_add(offset_ns)).collect();
            Curve {
                label,
                quantity: series.quantity.clone(),
                device: series.device,
                source,
                process,
                nth: 0,
                is_step: series.is_step,
                points: Pyramid::new(times, series.bytes.clone()),
            }
        })
        .collect();
    // What PyTorch says comes last, so that it is drawn on top.
    curves.sort_by_key(|curve| std::cmp::Reverse(curve.quantity.clone()));
    let labels: Vec<(String, bool)> =
        curves.iter().map(|curve| (curve.label.clone(), curve.source.is_some())).collect();
    for curve in &mut curves {
        let alike = labels.iter().filter(|(label, _)| *label == curve.label).count();
        let alike_of_processes =
            labels.iter().filter(|(label, is_log)| !is_log && *label == curve.label).count();
        curve.label = match curve.source {
            Some(id) if alike > 1 => format!("{} · {}", curve.label, session.source(id).name),
            None if alike_of_processes > 1 => format!("{} · {}", curve.label, curve.device),
            _ => continue,
        };
    }
    number_shades(&mut curves, session);
    curves
}

/// Curves of one quantity differ in shade when they are of several processes or devices; what a log prints of a process has
/// the shade of the process.
fn number_shades(curves: &mut [Curve], session: &Session) {
    let owner_of = |curve: &Curve| {
        let rank = curve.source.and_then(|id| session.source(id).recording.process.rank);
        let is_owner =
            |process: &Process| session.processes.len() == 1 || rank.is_some() && process.rank == rank;
        let found = || session.processes.iter().position(is_owner).map(|at| ProcessId(at as u32));
        curve.process.or_else(found)
    };
    let mut owners: Vec<(Quantity, Option<ProcessId>, Device)> = Vec::new();
    let (mut recorded, mut logged): (Vec<&mut Curve>, Vec<&mut Curve>) =
        curves.iter_mut().partition(|curve| curve.source.is_none());
    for curve in recorded.iter_mut().chain(&mut logged) {
        let owner = (curve.quantity.clone(), owner_of(curve), curve.device);
        let is_alike = |other: &&(Quantity, Option<ProcessId>, Device)| other.0 == owner.0;
        let alike: Vec<_> = owners.iter().filter(is_alike).collect();
        match alike.iter().position(|&other| *other == owner) {
            Some(nth) => curve.nth = nth,
            None => {
                curve.nth = alike.len();
                owners.push(owner);
            }
        }
    }
}

/// By label: its rank among all by the bytes it ever allocated.
type Ranks = Vec<u32>;

fn rank_in(ranks: &Ranks, label: StrId) -> usize {
    ranks.get(label.0 as usize).map_or(0, |&rank| rank as usize)
}

/// The ranks of call sites and of modules.
fn ranks_of(index: &Index) -> (Ranks, Ranks) {
    let mut of_call_sites = vec![0_u64; index.label_count()];
    let mut of_modules = of_call_sites.clone();
    let add = |sums: &mut [u64], label: StrId, bytes: u64| {
        if let Some(sum) = sums.get_mut(label.0 as usize) {
            *sum = sum.saturating_add(bytes);
        }
    };
    for (number, process) in index.session.processes.iter().enumerate() {
        let (id, table) = (ProcessId(number as u32), &process.allocations);
        for ((&stack, &op), &size_bytes) in table.stack.iter().zip(&table.op).zip(&table.size_bytes) {
            add(&mut of_call_sites, index.call_site(id, stack), size_bytes);
            if let Some(module) = index.module(id, op) {
                add(&mut of_modules, module, size_bytes);
            }
        }
    }
    let ranks = |bytes: Vec<u64>| {
        let mut order: Vec<u32> = (0..bytes.len() as u32).collect();
        order.sort_by_key(|&label| std::cmp::Reverse(bytes[label as usize]));
        let mut ranks = vec![0; bytes.len()];
        for (rank, label) in order.into_iter().enumerate() {
            ranks[label as usize] = rank as u32;
        }
        ranks
    };
    (ranks(of_call_sites), ranks(of_modules))
}

fn peak_of(curves: &[Curve]) -> Option<(i64, i64)> {
    let allocated = curves
        .iter()
        .filter(|curve| curve.quantity == Quantity::Allocated && DeviceFilter::Gpus.admits(curve.device));
    allocated
        .filter_map(|curve| {
            let (at, &bytes) = curve.points.bytes.iter().enumerate().rev().max_by_key(|&(_, bytes)| bytes)?;
            Some((curve.points.times_ns[at], bytes))
        })
        .max_by_key(|&(_, bytes)| bytes)
}

fn markers_of(session: &Session) -> Vec<ShownMarker> {
    let shown = |marker: &crate::model::Marker, offset_ns: i64| ShownMarker {
        time_ns: marker.time_ns.saturating_add(offset_ns),
        kind: marker.kind.clone(),
        text: marker.text.clone(),
    };
    let of_processes = session.processes.iter().flat_map(|process| &process.markers);
    let of_sources = session.sources.iter().filter(|source| source.process.is_none());
    of_processes
        .map(|marker| shown(marker, 0))
        .chain(of_sources.flat_map(|source| {
            let offset_ns = source.alignment.offset_ns;
            source.recording.markers.iter().map(move |marker| shown(marker, offset_ns))
        }))
        .collect()
}
