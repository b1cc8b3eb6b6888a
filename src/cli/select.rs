//! From what was typed to a query: processes by name, devices by number, times by step, offset or share.

use super::UsageError;
use super::args::Selecting;
use crate::analysis::growth::{self, Suggestion};
use crate::analysis::{DeviceFilter, Index, Query, Selection};
use crate::model::time::{TimeSpec, format_unix};
use crate::model::{Device, ProcessId, Session, Source, Step, TimeRange};
use crate::text::{say, t};

/// A query, and the range in words when it was suggested.
pub(super) struct Selected {
    pub query: Query,
    pub label: Option<String>,
}

/// Which of the two ends of a range is looked up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    From,
    To,
}

/// Looks up what was typed.
///
/// # Errors
/// [`UsageError`] for a name, device, step or range that isn't there.
pub(super) fn select(index: &Index, args: &Selecting) -> Result<Selected, UsageError> {
    let session = &index.session;
    let process = args.source.as_deref().map(|name| find_process(session, name)).transpose()?;
    let device = match args.device.as_deref() {
        Some(text) => find_device(session, text)?,
        None => Selection::of(session).device,
    };
    let selection = Selection { process, device };
    let (range, label) = match (args.from, args.to) {
        (None, None) => {
            let Suggestion { range, label, .. } = growth::suggested(index, selection);
            (range, Some(label))
        }
        (from, to) => {
            let at = |spec: TimeSpec, end| {
                spec.resolve(session.span, |number| find_step(session, selection, number, end))
            };
            let start_ns = from.map_or(Ok(session.span.start_ns), |spec| at(spec, End::From))?;
            let end_ns = to.map_or(Ok(session.span.end_ns), |spec| at(spec, End::To))?;
            if start_ns >= end_ns {
                return Err(UsageError(t!(
                    "the range is empty: it would begin at {from} and end at {to}",
                    from = format_unix(start_ns),
                    to = format_unix(end_ns)
                )));
            }
            (TimeRange { start_ns, end_ns }, None)
        }
    };
    Ok(Selected { query: Query { selection, range, free_by: args.free_by }, label })
}

pub(super) fn find_process(session: &Session, name: &str) -> Result<ProcessId, UsageError> {
    let wanted = name.trim().to_lowercase();
    let ids = || (0..session.processes.len() as u32).map(ProcessId);
    let by_process = ids().find(|&id| {
        let process = session.process(id);
        process.label.to_lowercase() == wanted
            || process.rank.is_some_and(|rank| format!("rank{rank}") == wanted.replace([' ', '-', '_'], ""))
            || process.pid.is_some_and(|pid| pid.to_string() == wanted)
    });
    let by_rank =
        || ids().find(|&id| session.process(id).rank.is_some_and(|rank| rank.to_string() == wanted));
    if let Some(id) = by_process.or_else(by_rank) {
        return Ok(id);
    }
    // Each path ends with an empty name.
    let is_meant =
        |source: &&Source| !name.is_empty() && (source.name == name || source.path.ends_with(name));
    let source = session.sources.iter().find(is_meant);
    match source.map(|source| (source, source.process)) {
        Some((_, Some(id))) => Ok(id),
        Some((source, None)) => Err(UsageError(t!(
            "a {kind} holds no allocations: {name}",
            kind = say(source.kind().label()),
            name = source.name
        ))),
        None => {
            let processes = session.processes.iter().map(|process| process.label.as_str());
            let sources = session.sources.iter().filter(|source| source.process.is_some());
            let names: Vec<&str> = processes.chain(sources.map(|source| source.name.as_str())).collect();
            Err(UsageError(t!(
                "no process or source is named `{name}`; there are {names}",
                name,
                names = names.join(", ")
            )))
        }
    }
}

fn find_device(session: &Session, text: &str) -> Result<DeviceFilter, UsageError> {
    let text = text.trim().to_lowercase();
    match text.as_str() {
        "all" => return Ok(DeviceFilter::All),
        "cpu" => return Ok(DeviceFilter::Host),
        "gpu" | "gpus" => return Ok(DeviceFilter::Gpus),
        _ => {}
    }
    let mut devices: Vec<Device> =
        session.processes.iter().flat_map(|process| process.allocations.device.iter().copied()).collect();
    devices.extend(session.curves().map(|(_, _, series, _)| series.device));
    devices.sort_unstable();
    devices.dedup();
    let is_meant = |device: &Device| {
        device.to_string() == text || (!device.is_host() && device.index.to_string() == text)
    };
    devices.iter().copied().find(is_meant).map(DeviceFilter::One).ok_or_else(|| {
        let names: Vec<String> = devices.iter().map(ToString::to_string).collect();
        UsageError(t!("no device `{device}`; there are {names}", device = text, names = names.join(", ")))
    })
}

/// The start of a step; of the earliest process that has it. A range may also end at the step after the last: where
/// the last one ends.
fn find_step(session: &Session, selection: Selection, number: i64, end: End) -> Result<i64, UsageError> {
    let steps = || selection.processes(session).flat_map(|id| &session.process(id).steps);
    selection.step_ns(session, number, end == End::To).ok_or_else(|| {
        let mut numbers: Vec<i64> = steps().map(|step: &Step| step.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        UsageError(match numbers.as_slice() {
            [] => t!("no step {number}: these files name no steps; use +1.25s or 40% instead", number),
            numbers => t!("no step {number}; there are steps {steps}", number, steps = runs(numbers)),
        })
    })
}

/// `0 to 4, 8 to 15`.
fn runs(numbers: &[i64]) -> String {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let texts: Vec<String> = runs
        .iter()
        .map(
            |&(first, last)| {
                if first == last { first.to_string() } else { t!("{first} to {last}", first, last) }
            },
        )
        .collect();
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_said_as_runs() {
        assert_eq!(runs(&[0, 1, 2, 5, 8, 9]), "0 to 2, 5, 8 to 9");
    }
}
