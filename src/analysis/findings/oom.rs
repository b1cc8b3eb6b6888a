//! Out of memory: what was asked for, what was live, and whether it would have fitted.

use rustc_hash::FxHashMap;

use super::super::RowClass;
use super::super::query::classify;
use super::families::growing_families;
use super::strands::{ProcessFacts, Role};
use super::{Context, Finding, Severity, advice};
use crate::model::{Marker, MarkerKind, Quantity, Series, StrId, TimeRange, format_bytes};
use crate::text::t;

/// The figures of one error.
#[derive(Clone, Copy, Default)]
struct Figures {
    requested: Option<u64>,
    free: Option<u64>,
    allocated: Option<u64>,
    reserved: Option<u64>,
    largest_free: Option<u64>,
}

pub(super) fn find(context: &Context<'_>, found: &mut Vec<Finding>) {
    for facts in &context.processes {
        // Requests that failed before the last one were tried again: cuDNN asks for less when a workspace doesn't fit.
        let markers: Vec<&Marker> = facts.process.markers.iter().filter(|marker| is_oom(marker)).collect();
        if let Some(last) = markers.iter().max_by_key(|marker| marker.time_ns) {
            found.push(of_process(context, facts, last, markers.len() - 1));
        }
    }
    if found.is_empty() {
        of_logs(context, found);
    }
}

fn is_oom(marker: &Marker) -> bool {
    matches!(marker.kind, MarkerKind::OutOfMemory { .. })
}

fn figures(marker: &Marker) -> Figures {
    match marker.kind {
        MarkerKind::OutOfMemory { requested_bytes, free_bytes, allocated_bytes, reserved_bytes, .. } => {
            Figures {
                requested: requested_bytes,
                free: free_bytes,
                allocated: allocated_bytes,
                reserved: reserved_bytes,
                largest_free: None,
            }
        }
        _ => Figures::default(),
    }
}

/// The figures of the same error in a training log, which says more than a snapshot's event.
fn figures_of_logs(context: &Context<'_>) -> Option<Figures> {
    let markers = context.session().sources.iter().filter(|source| source.process.is_none());
    markers.flat_map(|source| source.recording.markers.iter()).find(|marker| is_oom(marker)).map(figures)
}

fn of_process(context: &Context<'_>, facts: &ProcessFacts<'_>, marker: &Marker, earlier: usize) -> Finding {
    let at_ns = marker.time_ns;
    let own = figures(marker);
    let logged = figures_of_logs(context).unwrap_or_default();
    let table = &facts.process.allocations;
    let mut live = 0_u64;
    let mut by_site: FxHashMap<StrId, u64> = FxHashMap::default();
    let mut by_role: FxHashMap<Role, u64> = FxHashMap::default();
    for row in 0..table.rows_in(TimeRange { start_ns: i64::MIN, end_ns: at_ns }).end {
        if classify(table, row, at_ns) == RowClass::Freed
            || !context.query.selection.device.admits(table.device[row])
        {
            continue;
        }
        live += table.size_bytes[row];
        let role = facts.role(row);
        *by_role.entry(role).or_default() += table.size_bytes[row];
        if matches!(role, Role::Forward) {
            *by_site.entry(context.index.call_site(facts.id, table.stack[row])).or_default() +=
                table.size_bytes[row];
        }
    }
    let mut sites: Vec<(StrId, u64)> = by_site.into_iter().collect();
    // What grows from step to step comes before what one step needs.
    let families = growing_families(facts);
    let grows = |site: StrId| families.iter().any(|family| family.main().call_site == site);
    sites.sort_by_key(|&(site, bytes)| (!grows(site), std::cmp::Reverse(bytes), site));
    let rhythm = facts.rhythm.as_ref();
    let when = rhythm.map_or_else(String::new, |rhythm| {
        let beat = rhythm.beat_at(at_ns).max(0) as usize;
        t!(" in {when}", when = rhythm.unit.numbered(rhythm.number(beat)))
    });
    let held = sites.first().map_or_else(String::new, |&(site, bytes)| {
        t!("; {place} holds {bytes} of it", place = context.label(site), bytes = format_bytes(bytes))
    });
    let requested = own.requested.or(logged.requested);
    let asked = requested
        .map_or_else(String::new, |bytes| t!(" {bytes} were asked for", bytes = format_bytes(bytes)));
    let went_on = rhythm.is_some_and(|rhythm| facts.last_beat() - rhythm.beat_at(at_ns) >= 2);
    let mut finding = Finding::new(
        "oom",
        if went_on { Severity::Warning } else { Severity::Error },
        0.95,
        t!(
            "Out of memory{when}{whose}:{asked} with {bytes} live{held}",
            when,
            whose = context.whose(facts),
            asked,
            bytes = format_bytes(live),
            held
        ),
        advice::OUT_OF_MEMORY,
    );
    finding.bytes = live;
    let level = |quantity| level_at(facts, marker, quantity);
    finding.evidence = fit_evidence(&Figures {
        requested,
        free: own.free.or(logged.free),
        allocated: level(Quantity::Allocated).or(own.allocated).or(Some(live)),
        reserved: level(Quantity::Reserved).or(own.reserved).or(logged.reserved),
        largest_free: level(Quantity::LargestFree),
    });
    if earlier > 0 {
        finding.evidence.push(t!("{count} earlier requests failed and the run went on.", count = earlier));
    }
    if went_on {
        finding.evidence.push(t!("The run went on afterwards.").to_owned());
    }
    let mut roles: Vec<(Role, u64)> = by_role.into_iter().collect();
    roles.sort_by_key(|&(_, bytes)| std::cmp::Reverse(bytes));
    let parts: Vec<String> =
        roles.iter().map(|&(role, bytes)| format!("{} {}", role_label(role), format_bytes(bytes))).collect();
    finding.evidence.push(t!("Live at the moment: {parts}.", parts = parts.join(t!(", "))));
    finding.evidence.extend(sites.iter().take(3).map(|&(site, bytes)| {
        t!("{place}: {bytes}.", place = context.label(site), bytes = format_bytes(bytes))
    }));
    finding.call_sites =
        sites.iter().take(5).map(|&(site, _)| context.index.label(site).to_owned()).collect();
    finding.range = TimeRange::new(at_ns, at_ns.saturating_add(1));
    finding
}

fn role_label(role: Role) -> &'static str {
    match role {
        Role::Forward => t!("activations, inputs and outputs"),
        Role::Backward => t!("gradients and backward"),
        Role::Optimizer => t!("optimizer"),
        Role::Setup => t!("parameters"),
        Role::Workspace => t!("workspaces"),
    }
}

/// A curve's level just before an event.
fn level_at(facts: &ProcessFacts<'_>, marker: &Marker, quantity: Quantity) -> Option<u64> {
    let is_it = |series: &&Series| series.quantity == quantity && series.device == marker.device;
    let curve = facts.process.series.iter().find(is_it)?;
    curve.at(marker.time_ns).and_then(|bytes| u64::try_from(bytes).ok())
}

/// Whether the request would have fitted into what lay free.
fn fit_evidence(figures: &Figures) -> Vec<String> {
    let &Figures { requested, free, allocated, reserved, largest_free } = figures;
    let mut evidence = Vec::new();
    if let (Some(requested), Some(reserved), Some(allocated)) = (requested, reserved, allocated) {
        let unused = reserved.saturating_sub(allocated);
        let is_enough = unused >= requested;
        let largest = largest_free.map_or_else(String::new, |bytes| {
            t!(" in pieces of at most {bytes}", bytes = format_bytes(bytes))
        });
        let verdict = if is_enough && largest_free.is_none_or(|bytes| bytes < requested) {
            t!("fragmentation alone made it fail")
        } else if is_enough {
            t!("a block was large enough, but lay in the pool of another size, stream or CUDA graph")
        } else {
            t!("the request would not have fitted without fragmentation either")
        };
        evidence.push(t!(
            "Reserved {reserved}, {unused} of it not allocated{largest}: {verdict}.",
            reserved = format_bytes(reserved),
            unused = format_bytes(unused),
            largest,
            verdict
        ));
    }
    if let (Some(free), Some(requested)) = (free, requested)
        && free > requested
    {
        evidence.push(t!(
            "The driver still had {bytes} free: a limit of the process (set_per_process_memory_fraction, MIG) was reached, \
             not the card.",
            bytes = format_bytes(free)
        ));
    }
    evidence
}

/// Errors that only a log tells of.
fn of_logs(context: &Context<'_>, found: &mut Vec<Finding>) {
    for source in &context.session().sources {
        let Some(marker) = source.recording.markers.iter().find(|marker| is_oom(marker)) else { continue };
        let figures = figures(marker);
        let asked = match (figures.requested.map(format_bytes), figures.allocated.map(format_bytes)) {
            (Some(bytes), Some(allocated)) => {
                t!(": {bytes} were asked for with {allocated} allocated", bytes, allocated)
            }
            (Some(bytes), None) => t!(": {bytes} were asked for", bytes),
            (None, _) => String::new(),
        };
        let mut finding = Finding::new(
            "oom",
            Severity::Error,
            0.9,
            t!("Out of memory{asked}", asked),
            advice::OUT_OF_MEMORY,
        );
        finding.bytes = figures.allocated.unwrap_or(0);
        finding.evidence = fit_evidence(&figures);
        finding.evidence.push(t!("{source} says so: {words}", source = source.name, words = marker.text));
        let at_ns = marker.time_ns.saturating_add(source.alignment.offset_ns);
        finding.range = TimeRange::new(at_ns, at_ns.saturating_add(1));
        found.push(finding);
        return;
    }
}
