//! What the driver counts beyond what the allocator reserved: other processes, the CUDA context, and the rest.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::Selection;
use crate::align::pearson;
use crate::model::{Device, Process, Quantity, Series, Session, SourceId, TimeRange};
use crate::text::t;

/// The most figures of other processes that are held.
const MAX_FIGURES: usize = 1 << 24;

/// Samples of a process further from a moment than this many of its intervals say nothing of it.
const STALE_INTERVALS: i64 = 2;
/// The driver's figure for a process may lie this much below reserved: both are sampled at different moments.
const SLACK_BYTES: i64 = 64 << 20;
/// From this correlation on, a process's curve is taken to follow an allocator's.
const FOLLOWS: f64 = 0.8;
/// How much correlation the same process id is worth.
const SAME_ID_BONUS: f64 = 0.5;

/// A process that holds memory of the device but none of whose recordings are open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherProcess {
    /// Its id, as the driver's log gives it.
    pub pid: u64,
    /// Its name, empty when the log doesn't give it.
    pub name: String,
    /// What it held at each moment of [`DriverGap::times_ns`].
    pub bytes: Vec<i64>,
}

impl OtherProcess {
    /// Its program, without folders.
    pub fn program(&self) -> &str {
        self.name.rsplit(['/', '\\']).next().unwrap_or_default()
    }
}

/// The driver's figure for one device, split into parts that add up to it at each moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverGap {
    /// The device, as the processes number it.
    pub device: Device,
    /// The same one, as the driver's log numbers it.
    pub driver_device: Device,
    /// The moments of the driver's samples, Unix time.
    pub times_ns: Vec<i64>,
    /// What the driver counts as used.
    pub driver_used: Vec<i64>,
    /// Whether the driver gave no total (unified memory, WDDM), so that this is the sum over its processes.
    pub is_sum_of_processes: bool,
    /// What the session's own processes had reserved.
    pub reserved: Vec<i64>,
    /// What processes held that are not in the session, the largest first.
    pub others: Vec<OtherProcess>,
    /// The CUDA contexts of the session's own processes: what the driver counts for them above reserved, at its lowest.
    pub context: Vec<i64>,
    /// What is left: libraries beside the allocator (NCCL, cuBLAS), other users of the device without a figure.
    pub rest: Vec<i64>,
    /// The ids under which the driver's log knows the session's processes, where it was found.
    pub own_pids: Vec<u64>,
}

/// How much each part grew within a range; shrinking is negative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GapGrowth {
    /// The driver's figure.
    pub driver_used_bytes: i64,
    /// Reserved by the session's processes.
    pub reserved_bytes: i64,
    /// Each other process with its id and name, by growth, the largest first.
    pub others: Vec<(u64, String, i64)>,
    /// All other processes together.
    pub other_processes_bytes: i64,
    /// The context.
    pub context_bytes: i64,
    /// The rest.
    pub rest_bytes: i64,
}

/// What a part of the driver's figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapPartKind {
    /// The whole figure.
    Driver,
    /// Reserved by the session's processes.
    Reserved,
    /// Another process.
    Process,
    /// The CUDA contexts of the session's processes.
    Context,
    /// What is left.
    Rest,
}

impl GapPartKind {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Reserved => "reserved",
            Self::Process => "process",
            Self::Context => "context",
            Self::Rest => "rest",
        }
    }
}

/// A part of the driver's figure over a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GapPart {
    /// What it is.
    pub kind: GapPartKind,
    /// Of another process its id,
    pub pid: Option<u64>,
    /// and the name of its program, without folders.
    pub name: String,
    /// By how much it grew, first to last sample.
    pub grown_bytes: i64,
    /// Its level at the last sample.
    pub end_bytes: i64,
}

impl GapPart {
    /// The words for people.
    pub fn label(&self) -> String {
        match (self.kind, self.pid) {
            (GapPartKind::Driver, _) => t!("the driver's figure").to_owned(),
            (GapPartKind::Reserved, _) => t!("reserved by PyTorch in these recordings").to_owned(),
            (GapPartKind::Process, Some(pid)) => {
                t!("process {pid} {name}", pid, name = self.name).trim_end().to_owned()
            }
            (GapPartKind::Process, None) => t!("another process").to_owned(),
            (GapPartKind::Context, _) => t!("CUDA contexts of the recorded processes").to_owned(),
            (GapPartKind::Rest, _) => t!("the rest: libraries beside the allocator").to_owned(),
        }
    }
}

impl DriverGap {
    /// The driver's figure and its parts, which add up to it; `None` when fewer than two samples lie inside `range`.
    pub fn parts(&self, range: TimeRange) -> Option<Vec<GapPart>> {
        let growth = self.growth(range)?;
        let last = self.times_ns.partition_point(|&time_ns| time_ns < range.end_ns).checked_sub(1)?;
        let part = |kind, values: &[i64], grown_bytes| GapPart {
            kind,
            pid: None,
            name: String::new(),
            grown_bytes,
            end_bytes: values.get(last).copied().unwrap_or(0),
        };
        let mut parts = vec![
            part(GapPartKind::Driver, &self.driver_used, growth.driver_used_bytes),
            part(GapPartKind::Reserved, &self.reserved, growth.reserved_bytes),
        ];
        let of_process = |other: &OtherProcess, grown_bytes| GapPart {
            pid: Some(other.pid),
            name: other.program().to_owned(),
            ..part(GapPartKind::Process, &other.bytes, grown_bytes)
        };
        parts.extend(growth.others.iter().filter_map(|(pid, _, grown_bytes)| {
            let other = self.others.iter().find(|other| other.pid == *pid)?;
            Some(of_process(other, *grown_bytes))
        }));
        // Processes that neither grew nor shrank are a part of the level all the same.
        let is_listed = |other: &&OtherProcess| growth.others.iter().any(|(pid, ..)| *pid == other.pid);
        let level = self.others.iter().filter(|other| !is_listed(other));
        let held = level.filter(|other| other.bytes.get(last).is_some_and(|&bytes| bytes > 0));
        parts.extend(held.map(|other| of_process(other, 0)));
        parts.push(part(GapPartKind::Context, &self.context, growth.context_bytes));
        parts.push(part(GapPartKind::Rest, &self.rest, growth.rest_bytes));
        Some(parts)
    }

    /// Growth from the first to the last sample within `range`; `None` when fewer than two lie inside.
    pub fn growth(&self, range: TimeRange) -> Option<GapGrowth> {
        let start = self.times_ns.partition_point(|&time_ns| time_ns < range.start_ns);
        let end = self.times_ns.partition_point(|&time_ns| time_ns < range.end_ns).checked_sub(1)?;
        if end <= start {
            return None;
        }
        let change = |values: &[i64]| Some(values.get(end)? - values.get(start)?);
        let mut others: Vec<(u64, String, i64)> = self
            .others
            .iter()
            .filter_map(|other| Some((other.pid, other.name.clone(), change(&other.bytes)?)))
            .filter(|other| other.2 != 0)
            .collect();
        others.sort_by_key(|other| (std::cmp::Reverse(other.2), other.0));
        Some(GapGrowth {
            driver_used_bytes: change(&self.driver_used)?,
            reserved_bytes: change(&self.reserved)?,
            other_processes_bytes: others.iter().map(|other| other.2).sum(),
            others,
            context_bytes: change(&self.context)?,
            rest_bytes: change(&self.rest)?,
        })
    }
}

/// The gaps of all devices of which the selected processes reserved memory.
pub fn driver_gaps(session: &Session, selection: Selection) -> Vec<DriverGap> {
    let mut devices: Vec<Device> = selection
        .processes(session)
        .flat_map(|id| &session.process(id).series)
        .filter(|series| series.quantity == Quantity::Reserved && selection.device.admits(series.device))
        .map(|series| series.device)
        .collect();
    devices.sort_unstable();
    devices.dedup();
    devices.into_iter().filter_map(|device| driver_gap(session, device)).collect()
}

/// The gap on one device; `None` without a driver's log or without a reserved curve.
pub fn driver_gap(session: &Session, device: Device) -> Option<DriverGap> {
    let mut owners: Vec<Owner<'_>> = session
        .processes
        .iter()
        .filter_map(|process| {
            let is_reserved =
                |series: &&Series| series.quantity == Quantity::Reserved && series.device == device;
            let reserved = process.series.iter().find(is_reserved).filter(|series| !series.is_empty())?;
            Some(Owner { process, reserved, pid: None })
        })
        .collect();
    let Driver { source, series: driver, offset_ns, is_sum_of_processes } =
        driver_series(session, device, &owners)?;
    let mut users = process_series(session, source, driver.device);
    find_own_pids(&mut owners, &users);
    let own_pids: Vec<u64> = owners.iter().filter_map(|owner| owner.pid).collect();

    let times_ns: Vec<i64> =
        driver.times_ns.iter().map(|time_ns| time_ns.saturating_add(offset_ns)).collect();
    let reserved: Vec<i64> = times_ns
        .iter()
        .map(|&time_ns| owners.iter().map(|owner| owner.reserved_at(time_ns, &users)).sum())
        .collect();
    let contexts: Vec<i64> = owners.iter().map(|owner| context_of(owner, &users)).collect();
    let estimate = own_pids.is_empty().then(|| context_estimate(&owners, &times_ns, &driver.bytes));
    let context: Vec<i64> = times_ns
        .iter()
        .map(|&time_ns| {
            let known = owners.iter().zip(&contexts).map(|(owner, &context)| match owner.pid {
                Some(pid) => {
                    let held = users.iter().filter(|user| user.pid == pid).map(|user| user.at(time_ns)).max();
                    context.min(held.unwrap_or(0))
                }
                None => 0,
            });
            let is_alive = owners.iter().any(|owner| owner.process.recorded.contains(time_ns));
            known.sum::<i64>() + estimate.filter(|_| is_alive).unwrap_or(0)
        })
        .collect();
    users.retain(|user| !own_pids.contains(&user.pid));
    // Of more processes than that, in a log of years or one made so, the smaller ones are part of the rest.
    users.sort_by_key(|user| (std::cmp::Reverse(user.bytes.iter().copied().max()), user.pid));
    users.truncate(MAX_FIGURES / times_ns.len().max(1));
    let mut others: Vec<OtherProcess> = users
        .iter()
        .map(|user| OtherProcess {
            pid: user.pid,
            name: user.name.clone(),
            bytes: times_ns.iter().map(|&time_ns| user.at(time_ns)).collect(),
        })
        .collect();
    others.sort_by_key(|other| (std::cmp::Reverse(other.bytes.iter().copied().max()), other.pid));
    let rest = (0..times_ns.len())
        .map(|row| {
            let of_others: i64 = others.iter().map(|other| other.bytes[row]).sum();
            driver.bytes[row] - reserved[row] - of_others - context[row]
        })
        .collect();
    Some(DriverGap {
        device,
        driver_device: driver.device,
        times_ns,
        driver_used: driver.bytes.clone(),
        is_sum_of_processes,
        reserved,
        others,
        context,
        rest,
        own_pids,
    })
}

/// A process of the session that reserved memory of the device.
struct Owner<'a> {
    process: &'a Process,
    reserved: &'a Series,
    /// Its id in the driver's log.
    pid: Option<u64>,
}

impl Owner<'_> {
    /// After its recording a process may go on for as long as the driver shows it; its last level holds until then.
    fn reserved_at(&self, time_ns: i64, users: &[User]) -> i64 {
        let is_shown = || users.iter().any(|user| Some(user.pid) == self.pid && user.at(time_ns) > 0);
        if time_ns <= self.process.recorded.end_ns || is_shown() {
            self.reserved.at(time_ns).unwrap_or(0)
        } else {
            0
        }
    }
}

/// A process as the driver's log shows it, on Unix time.
struct User {
    pid: u64,
    name: String,
    times_ns: Vec<i64>,
    bytes: Vec<i64>,
    interval_ns: i64,
}

impl User {
    /// What it held at a moment: the nearest sample's figure, 0 where none is near.
    fn at(&self, time_ns: i64) -> i64 {
        let after = self.times_ns.partition_point(|&time| time <= time_ns);
        let nearest = [after.checked_sub(1), Some(after)]
            .into_iter()
            .flatten()
            .filter_map(|row| {
                Some((
                    self.times_ns.get(row)?.saturating_sub(time_ns).saturating_abs(),
                    *self.bytes.get(row)?,
                ))
            })
            .min();
        match nearest {
            Some((distance_ns, bytes)) if distance_ns <= self.interval_ns.saturating_mul(STALE_INTERVALS) => {
                bytes
            }
            _ => 0,
        }
    }

    fn samples(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.times_ns.iter().copied().zip(self.bytes.iter().copied())
    }
}

/// The driver's curve of a device.
struct Driver<'s> {
    source: Option<SourceId>,
    series: Cow<'s, Series>,
    offset_ns: i64,
    is_sum_of_processes: bool,
}

/// The driver's curve of the device. Where the log numbers devices otherwise (`CUDA_VISIBLE_DEVICES`), or the process
/// runs on a MIG instance, the one whose curve follows reserved much better than the one of the same number. Where the
/// driver gives no total, the sum over the processes that it lists.
fn driver_series<'s>(session: &'s Session, device: Device, owners: &[Owner<'_>]) -> Option<Driver<'s>> {
    let curves: Vec<(Option<SourceId>, &Series, i64)> = session
        .curves()
        .filter(|(_, _, series, _)| {
            matches!(series.quantity, Quantity::DriverUsed | Quantity::InstanceUsed(_)) && series.len() > 1
        })
        .map(|(source, _, series, offset_ns)| (source, series, offset_ns))
        .collect();
    let follows = |&(_, series, offset_ns): &(Option<SourceId>, &Series, i64)| {
        let pairs: Vec<(i64, i64)> = series
            .times_ns
            .iter()
            .zip(&series.bytes)
            .map(|(&time_ns, &bytes)| (time_ns.saturating_add(offset_ns), bytes))
            .map(|(time_ns, bytes)| (bytes, owners.iter().map(|owner| owner.reserved_at(time_ns, &[])).sum()))
            .collect();
        pearson(&pairs).unwrap_or(0.0)
    };
    let is_same = |series: &Series| series.device == device && series.quantity == Quantity::DriverUsed;
    let same = curves.iter().find(|(_, series, _)| is_same(series));
    let Some(best) = curves.iter().max_by(|a, b| follows(a).total_cmp(&follows(b))) else {
        return sum_of_processes(session, device);
    };
    let (source, series, offset_ns) = match same {
        Some(same) if follows(same) + 0.2 >= follows(best) => *same,
        _ if owners.is_empty() => return None,
        _ => *best,
    };
    Some(Driver { source, series: Cow::Borrowed(series), offset_ns, is_sum_of_processes: false })
}

/// What the driver counts for all processes together at each moment of its log.
fn sum_of_processes<'s>(session: &'s Session, device: Device) -> Option<Driver<'s>> {
    let mut sums: BTreeMap<(Option<SourceId>, i64), BTreeMap<i64, i64>> = BTreeMap::new();
    for (source, _, series, offset_ns) in session.curves() {
        if series.quantity == Quantity::ProcessUsed && series.device == device {
            let sum = sums.entry((source, offset_ns)).or_default();
            for (&time_ns, &bytes) in series.times_ns.iter().zip(&series.bytes) {
                let level = sum.entry(time_ns).or_insert(0);
                *level = level.saturating_add(bytes);
            }
        }
    }
    let ((source, offset_ns), sum) = sums.into_iter().max_by_key(|(_, sum)| sum.len())?;
    let mut series = Series::new(Quantity::DriverUsed, device, false);
    sum.into_iter().for_each(|(time_ns, bytes)| series.push(time_ns, bytes));
    (series.len() > 1).then_some(Driver {
        source,
        series: Cow::Owned(series),
        offset_ns,
        is_sum_of_processes: true,
    })
}

/// The board's UUID, empty when the source doesn't give it.
fn uuid_of(session: &Session, source: Option<SourceId>, device: Device) -> &str {
    let recording = source.and_then(|id| session.sources.get(id.0 as usize)).map(|source| &source.recording);
    let info = recording.and_then(|recording| recording.devices.iter().find(|info| info.device == device));
    info.map_or("", |info| &info.uuid)
}

/// The processes that use the driver's device. A log of processes alone numbers devices in the order in which it meets
/// them; where both logs give UUIDs, those decide.
fn process_series(session: &Session, driver: Option<SourceId>, device: Device) -> Vec<User> {
    let board = uuid_of(session, driver, device);
    session
        .curves()
        .filter(|(_, _, series, _)| series.quantity == Quantity::ProcessUsed && !series.is_empty())
        .filter(|(source, _, series, _)| match (board, uuid_of(session, *source, series.device)) {
            ("", _) | (_, "") => series.device == device,
            (board, other) => board == other,
        })
        .filter_map(|(_, _, series, offset_ns)| {
            let mut steps: Vec<i64> =
                series.times_ns.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
            steps.sort_unstable();
            Some(User {
                pid: series.pid?,
                name: series.process_name.clone(),
                times_ns: series.times_ns.iter().map(|time_ns| time_ns.saturating_add(offset_ns)).collect(),
                bytes: series.bytes.clone(),
                interval_ns: steps.get(steps.len() / 2).copied().unwrap_or(1_000_000_000).max(1),
            })
        })
        .collect()
}

/// Finds the session's processes in the driver's log: by id, unless the curve of another one follows much better, since
/// a container numbers its processes otherwise than the host.
fn find_own_pids(owners: &mut [Owner<'_>], users: &[User]) {
    let mut taken: Vec<u64> = Vec::new();
    for owner in owners {
        let score = |user: &User| {
            let is_same = Some(user.pid) == owner.process.pid;
            let follows = pearson(&pairs(owner, user)).unwrap_or(0.0);
            (is_same || follows >= FOLLOWS).then_some(follows + if is_same { SAME_ID_BONUS } else { 0.0 })
        };
        let best = users
            .iter()
            .filter(|user| !taken.contains(&user.pid) && can_be(owner, user))
            .filter_map(|user| Some((user.pid, score(user)?)))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        owner.pid = best.map(|(pid, _)| pid);
        taken.extend(owner.pid);
    }
}

/// What the driver counts for a user and what an owner had reserved, at the user's samples within the recording.
fn pairs(owner: &Owner<'_>, user: &User) -> Vec<(i64, i64)> {
    user.samples()
        .filter(|(time_ns, _)| owner.process.recorded.contains(*time_ns))
        .filter_map(|(time_ns, bytes)| Some((bytes, owner.reserved.at(time_ns)?)))
        .collect()
}

/// Whether the driver's figures for a user can be the owner's: at least what it had reserved.
fn can_be(owner: &Owner<'_>, user: &User) -> bool {
    let pairs = pairs(owner, user);
    let enough = pairs.iter().filter(|(held, reserved)| held + SLACK_BYTES >= *reserved).count();
    !pairs.is_empty() && enough * 10 >= pairs.len() * 8
}

/// The context of an owner: the least that the driver counted for it above reserved.
fn context_of(owner: &Owner<'_>, users: &[User]) -> i64 {
    let own = users.iter().filter(|user| Some(user.pid) == owner.pid);
    let gaps = own.flat_map(|user| pairs(owner, user)).map(|(held, reserved)| held - reserved);
    gaps.filter(|&gap| gap >= 0).min().unwrap_or(0)
}

/// Without figures by process: the least that the device used above reserved while the process lived, less what was
/// used before.
fn context_estimate(owners: &[Owner<'_>], times_ns: &[i64], used: &[i64]) -> i64 {
    let gap = |(&time_ns, &bytes): (&i64, &i64)| {
        let is_alive = owners.iter().any(|owner| owner.process.recorded.contains(time_ns));
        let reserved: i64 = owners.iter().map(|owner| owner.reserved_at(time_ns, &[])).sum();
        is_alive.then_some(bytes - reserved)
    };
    let lowest = times_ns.iter().zip(used).filter_map(gap).min().unwrap_or(0);
    let idle = used.iter().copied().min().unwrap_or(0);
    (lowest - idle).max(0)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::align::{Opened, build};
    use crate::model::{Clock, Recording, SourceKind};

    const S: i64 = 1_000_000_000;
    const MIB: i64 = 1 << 20;

    fn series(quantity: Quantity, pid: Option<u64>, mib: impl Fn(i64) -> Option<i64>) -> Series {
        let mut series = Series::new(quantity, Device::cuda(0), false);
        series.pid = pid;
        (0..40).filter_map(|s| Some((s, mib(s)?))).for_each(|(s, mib)| series.push(s * S, mib * MIB));
        series
    }

    /// A process with id 7 in its container, 4007 on the host, that reserves more and more from second 10 to 30; and
    /// another one that takes 300 MiB at second 20.
    fn session(has_processes: bool) -> Session {
        let reserved = |s: i64| (s - 10) * 10;
        let mut trace = Recording::new(SourceKind::Trace, "test", Clock::Unix);
        trace.process.pid = Some(7);
        trace.series.push(series(Quantity::Reserved, None, |s| (10..30).contains(&s).then(|| reserved(s))));
        trace.span = Some(TimeRange::new(10 * S, 30 * S));
        let mut log = Recording::new(SourceKind::NvidiaSmi, "test", Clock::Unix);
        let own = |s: i64| (10..30).contains(&s).then(|| reserved(s) + 500);
        let other = |s: i64| (s >= 20).then_some(300);
        log.series.push(series(Quantity::DriverUsed, None, |s| {
            Some(5 + own(s).unwrap_or(0) + other(s).unwrap_or(0))
        }));
        if has_processes {
            log.series.push(series(Quantity::ProcessUsed, Some(4007), own));
            log.series.push(series(Quantity::ProcessUsed, Some(7), other));
        }
        log.span = Some(TimeRange::new(0, 40 * S));
        let opened = [trace, log].map(|recording| Opened::new(recording.kind.name(), Arc::new(recording)));
        build(&opened)
    }

    #[test]
    fn the_own_process_is_found_by_its_curve_when_ids_differ() {
        let gap = driver_gap(&session(true), Device::cuda(0)).unwrap();
        assert_eq!(gap.own_pids, [4007]);
        assert_eq!(gap.others.iter().map(|other| other.pid).collect::<Vec<_>>(), [7]);
        let growth = gap.growth(TimeRange::new(12 * S, 28 * S)).unwrap();
        assert_eq!(growth.reserved_bytes, 150 * MIB);
        assert_eq!(growth.other_processes_bytes, 300 * MIB);
        assert_eq!((growth.context_bytes, growth.rest_bytes), (0, 0));
        assert_eq!(growth.driver_used_bytes, 450 * MIB);
        assert_eq!(gap.context[15], 500 * MIB);
        let parts = gap.parts(TimeRange::new(12 * S, 28 * S)).unwrap();
        assert_eq!(parts[0].grown_bytes, parts[1..].iter().map(|part| part.grown_bytes).sum::<i64>());
        assert_eq!(parts[0].end_bytes, parts[1..].iter().map(|part| part.end_bytes).sum::<i64>());
        assert_eq!((parts[2].kind, parts[2].pid), (GapPartKind::Process, Some(7)));
    }

    #[test]
    fn without_processes_the_context_is_estimated() {
        let gap = driver_gap(&session(false), Device::cuda(0)).unwrap();
        assert_eq!((gap.own_pids.len(), gap.others.len()), (0, 0));
        assert_eq!(gap.context[15], 500 * MIB);
        let growth = gap.growth(TimeRange::new(12 * S, 28 * S)).unwrap();
        assert_eq!((growth.reserved_bytes, growth.rest_bytes), (150 * MIB, 300 * MIB));
    }

    /// Guards the drivers that give `[N/A]` for the whole device: GB10, WDDM.
    #[test]
    fn without_a_total_the_processes_are_summed() {
        let mut session = session(true);
        for source in &mut session.sources {
            let series = &mut Arc::make_mut(&mut source.recording).series;
            series.retain(|series| series.quantity != Quantity::DriverUsed);
        }
        let gap = driver_gap(&session, Device::cuda(0)).unwrap();
        assert!(gap.is_sum_of_processes);
        let growth = gap.growth(TimeRange::new(12 * S, 28 * S)).unwrap();
        assert_eq!(growth.driver_used_bytes, 450 * MIB);
        assert_eq!((growth.reserved_bytes, growth.other_processes_bytes), (150 * MIB, 300 * MIB));
        assert_eq!((growth.context_bytes, growth.rest_bytes), (0, 0));
    }

    #[test]
    fn nothing_is_said_without_a_drivers_log() {
        let mut session = session(true);
        session.sources.truncate(1);
        assert_eq!(driver_gap(&session, Device::cuda(0)), None);
    }
}
