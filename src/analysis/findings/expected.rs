//! What a healthy run keeps too: optimizer state, gradients, workspaces, private pools, frees that wait.

use rustc_hash::FxHashMap;

use super::super::query::classify;
use super::super::{RowClass, Totals, totals};
use super::strands::{ProcessFacts, Role};
use super::{Context, Finding, Severity, advice};
use crate::model::{NEVER_NS, StrId, format_bytes, format_count};
use crate::text::t;

/// Frees that wait are worth a warning from here on.
const PENDING_WARNING_BYTES: u64 = 64 << 20;

pub(super) fn find(context: &Context<'_>, found: &mut Vec<Finding>) {
    for facts in &context.processes {
        by_role(context, facts, found);
        apart(context, facts, found);
    }
}

/// Survivors of one role.
#[derive(Default)]
struct Part {
    totals: Totals,
    by_site: FxHashMap<StrId, u64>,
    beats: Vec<i32>,
}

impl Part {
    fn call_sites(&self, context: &Context<'_>) -> Vec<String> {
        let mut sites: Vec<(StrId, u64)> = self.by_site.iter().map(|(&site, &bytes)| (site, bytes)).collect();
        sites.sort_by_key(|&(site, bytes)| (std::cmp::Reverse(bytes), site));
        sites.iter().take(3).map(|&(site, _)| context.index.label(site).to_owned()).collect()
    }
}

/// The survivors of the range that belong to optimizers, the backward pass and libraries' first use.
fn by_role(context: &Context<'_>, facts: &ProcessFacts<'_>, found: &mut Vec<Finding>) {
    let Some(rhythm) = &facts.rhythm else { return };
    let table = &facts.process.allocations;
    let (mut optimizer, mut gradients, mut warm_up) = (Part::default(), Part::default(), Part::default());
    // A strand with one survivor or two from the first beats, whose stack allocates in later beats as well.
    let warm_beats = (rhythm.len() as i32 / 5).clamp(1, 3);
    for row in table.rows_in(context.query.range) {
        if !context.query.selection.device.admits(table.device[row]) || !context.is_kept(facts, row as u32) {
            continue;
        }
        let beat = rhythm.beat_at(table.alloc_ns[row]);
        let part = match facts.role(row) {
            Role::Optimizer => &mut optimizer,
            Role::Backward => &mut gradients,
            Role::Workspace => &mut warm_up,
            Role::Forward if (0..warm_beats).contains(&beat) && facts.is_single(row) => &mut warm_up,
            Role::Forward | Role::Setup => continue,
        };
        let bytes = table.size_bytes[row];
        part.totals.add(bytes);
        *part.by_site.entry(context.index.call_site(facts.id, table.stack[row])).or_default() += bytes;
        part.beats.push(beat);
    }
    let unit = rhythm.unit.label();
    let number = |beat: i32| rhythm.number(beat.max(0) as usize);
    let mut push = |kind, confidence, title: String, evidence: Vec<String>, part: &Part| {
        let words = if kind == "gradients" { advice::GRADIENTS } else { advice::EXPECTED };
        let mut finding = Finding::new(kind, Severity::Info, confidence, title, words);
        finding.bytes = part.totals.bytes;
        finding.evidence = evidence;
        finding.call_sites = part.call_sites(context);
        finding.range = context.query.range;
        found.push(finding);
    };
    if optimizer.totals.bytes > 0 {
        let (first, last) = (optimizer.beats.first().copied(), optimizer.beats.last().copied());
        let (first, last) = (number(first.unwrap_or(0)), number(last.unwrap_or(0)));
        let when = rhythm.unit.from_to(first, last);
        push(
            "optimizer_state",
            0.95,
            t!(
                "Optimizer state{whose}: {bytes}, made in {when}. Expected",
                whose = context.whose(facts),
                bytes = format_bytes(optimizer.totals.bytes),
                when
            ),
            vec![t!(
                "{count} survivors whose stacks pass through the optimizer's step: momentum and the like, once for each \
                 parameter.",
                count = format_count(optimizer.totals.count)
            )],
            &optimizer,
        );
    }
    if gradients.totals.bytes >= 1024 {
        push(
            "gradients",
            0.8,
            t!(
                "Gradients{whose}: {bytes} of the last backward pass. Expected",
                whose = context.whose(facts),
                bytes = format_bytes(gradients.totals.bytes)
            ),
            vec![t!(
                "{count} survivors of the autograd thread, which has no Python stack. They go with \
                 zero_grad(set_to_none=True) and come back with the next backward pass.",
                count = format_count(gradients.totals.count)
            )],
            &gradients,
        );
    }
    if warm_up.totals.bytes >= 1 << 20 {
        push(
            "warm_up",
            0.8,
            t!(
                "Workspaces and buffers of first use{whose}: {bytes}. Expected",
                whose = context.whose(facts),
                bytes = format_bytes(warm_up.totals.bytes)
            ),
            vec![t!(
                "{count} survivors of the first {unit}s that no later {unit} repeats: cuBLAS and cuDNN workspaces and \
                 buffers that are made once.",
                count = format_count(warm_up.totals.count),
                unit
            )],
            &warm_up,
        );
    }
}

/// What is never counted as a leak: private pools and frees that wait for a stream, of the whole recording.
fn apart(context: &Context<'_>, facts: &ProcessFacts<'_>, found: &mut Vec<Finding>) {
    let table = &facts.process.allocations;
    let (mut private, mut pending) = (Totals::default(), Totals::default());
    for row in 0..table.len() {
        if table.free_completed_ns[row] != NEVER_NS
            || !context.query.selection.device.admits(table.device[row])
        {
            continue;
        }
        match classify(table, row, NEVER_NS) {
            RowClass::PrivatePool => private.add(table.size_bytes[row]),
            RowClass::PendingFree => pending.add(table.size_bytes[row]),
            RowClass::Kept | RowClass::Freed => {}
        }
    }
    let segments =
        facts.process.segments.iter().filter(|segment| segment.pool != crate::model::PoolId::DEFAULT);
    let (pool_segments, pool_bytes) =
        segments.fold((0_u64, 0_u64), |(count, bytes), segment| (count + 1, bytes + segment.total_bytes));
    if private.count > 0 || pool_segments > 0 {
        let mut finding = Finding::new(
            "private_pool",
            Severity::Info,
            0.95,
            t!(
                "A private pool holds {bytes} of {reserved} reserved{whose}: CUDA graphs keep their memory",
                bytes = format_bytes(private.bytes),
                reserved = format_bytes(pool_bytes),
                whose = context.whose(facts)
            ),
            advice::PRIVATE_POOL,
        );
        finding.bytes = private.bytes.max(pool_bytes);
        finding.evidence = vec![t!(
            "{blocks} live blocks and {segments} segments outside the default pool. They are counted apart, not as leaks.",
            blocks = format_count(private.count),
            segments = pool_segments
        )];
        finding.range = facts.process.recorded;
        found.push(finding);
    }
    if pending.count > 0 {
        let is_much = pending.bytes >= PENDING_WARNING_BYTES;
        let mut finding = Finding::new(
            "pending_free",
            if is_much { Severity::Warning } else { Severity::Info },
            0.8,
            t!(
                "{bytes} are freed but wait for a stream{whose}",
                bytes = format_bytes(pending.bytes),
                whose = context.whose(facts)
            ),
            advice::PENDING_FREE,
        );
        finding.bytes = pending.bytes;
        let in_range =
            totals(context.session(), context.query.selection, context.query.range).apart.pending_free;
        finding.evidence = vec![t!(
            "{blocks} blocks whose free was requested and not completed by the end of the recording, {in_range} of them \
             allocated in the range.",
            blocks = format_count(pending.count),
            in_range = format_count(in_range.count)
        )];
        finding.range = facts.process.recorded;
        found.push(finding);
    }
}
