//! Memory that each step keeps: graphs, outputs, what hooks and custom functions hold, scalars.

use rustc_hash::FxHashMap;

use super::super::label_words;
use super::advice::{self, Advice};
use super::families::{Family, Site, growing_families, is_small};
use super::story::{BeatStory, tell};
use super::strands::{LongRow, ProcessFacts, Role};
use super::{Context, Finding, Severity};
use crate::model::{StackId, Stacks, StrId, TimeRange, format_bytes, format_count};
use crate::text::{say, t};

/// Growth below this is a warning, not an error.
const ERROR_BYTES: u64 = 1 << 20;
/// How many call sites a finding names.
const MAX_CALL_SITES: usize = 5;

/// A loss or a count.
const SCALAR_BYTES: u64 = 16;

/// One explanation of a family.
struct Cause {
    kind: &'static str,
    confidence: f32,
    title: String,
    evidence: Vec<String>,
    advice: Advice,
}

/// What each process keeps, a family a finding, and a second one where two explanations can't be told apart.
pub(super) fn find(context: &Context<'_>, found: &mut Vec<Finding>) {
    for facts in &context.processes {
        for family in growing_families(facts) {
            let rows: Vec<_> = family.rows().filter(|row| context.is_kept(facts, row.row)).collect();
            if rows.is_empty() {
                continue;
            }
            let bytes: u64 = rows.iter().map(|row| row.bytes).sum();
            let story = tell(facts, &family);
            for cause in causes(context, facts, &family, &story) {
                found.push(finding(context, facts, &family, cause, rows.len() as u64, bytes));
            }
        }
    }
}

fn finding(
    context: &Context<'_>,
    facts: &ProcessFacts<'_>,
    family: &Family,
    cause: Cause,
    count: u64,
    bytes: u64,
) -> Finding {
    let severity = match () {
        () if cause.confidence < 0.4 => Severity::Info,
        () if bytes >= ERROR_BYTES && family.certainty >= 0.6 => Severity::Error,
        () => Severity::Warning,
    };
    let mut evidence = vec![t!(
        "{count} allocations of the range, {bytes}, were made here and nothing has freed them by the end.",
        count = format_count(count),
        bytes = format_bytes(bytes),
    )];
    evidence.extend(rhythm_evidence(facts, family));
    evidence.extend(cause.evidence);
    if context.processes.len() > 1 {
        evidence.push(t!("{process} does so.", process = facts.process.label));
    }
    if !facts.process.has_snapshot {
        evidence.push(
            t!(
                "A trace alone shows only its window: a memory snapshot at the end of the run would prove it."
            )
            .to_owned(),
        );
    }
    Finding {
        kind: cause.kind,
        severity,
        confidence: cause.confidence * family.certainty,
        bytes,
        per_step_bytes: family.per_beat_bytes(),
        title: cause.title,
        evidence,
        confirm: say(cause.advice.confirm).to_owned(),
        advice: say(cause.advice.advice).to_owned(),
        code_before: cause.advice.before.to_owned(),
        code_after: cause.advice.after.to_owned(),
        call_sites: call_sites(context, facts, family),
        range: range_of(facts, family).unwrap_or(context.query.range),
    }
}

/// `In steps 3, 7, 11, … 23 (every 4th step): 121 allocations, 286.1 MiB each time.`
fn rhythm_evidence(facts: &ProcessFacts<'_>, family: &Family) -> Option<String> {
    let rhythm = facts.rhythm.as_ref()?;
    let seen = &family.main().seen;
    let number = |beat: i32| rhythm.number(beat.max(0) as usize).to_string();
    let listed = match seen.as_slice() {
        [first @ .., last] if seen.len() > 5 => {
            let first: Vec<String> = first.iter().take(3).map(|&beat| number(beat)).collect();
            t!("{first}, … {last}", first = first.join(t!(", ")), last = number(*last))
        }
        all => all.iter().map(|&beat| number(beat)).collect::<Vec<_>>().join(t!(", ")),
    };
    let (count, bytes) = family.per_time;
    let what = if count == 1 { t!("1 allocation").to_owned() } else { t!("{count} allocations", count) };
    Some(t!(
        "In {unit}s {listed} ({every}): {what}, {bytes} each time.",
        unit = rhythm.unit.label(),
        listed,
        every = rhythm.every(family.period),
        what,
        bytes = format_bytes(bytes)
    ))
}

fn range_of(facts: &ProcessFacts<'_>, family: &Family) -> Option<TimeRange> {
    let rhythm = facts.rhythm.as_ref()?;
    let (first, last) = (family.main().seen.first()?, family.main().seen.last()?);
    Some(rhythm.range_of((*first).max(0) as usize).union(rhythm.range_of((*last).max(0) as usize)))
}

/// The places that keep most. Where a model's own lines keep the parts of a graph, the line that calls the model comes
/// first.
fn call_sites(context: &Context<'_>, facts: &ProcessFacts<'_>, family: &Family) -> Vec<String> {
    let mut labels: Vec<String> = caller_of_model(context, facts, family).into_iter().collect();
    for site in &family.sites {
        let label = context.index.label(site.call_site);
        if !labels.iter().any(|known| known == label) {
            labels.push(label.to_owned());
        }
    }
    labels.truncate(MAX_CALL_SITES);
    labels
}

/// The innermost user frame that all rows inside modules share, when they are from several places.
fn caller_of_model(context: &Context<'_>, facts: &ProcessFacts<'_>, family: &Family) -> Option<String> {
    let in_module = |site: &&Site| site.strands.iter().any(|&strand| facts.strands[strand].traits.in_module);
    let sites: Vec<&Site> = family.sites.iter().filter(in_module).collect();
    if sites.len() < 3 {
        return None;
    }
    let stacks = &facts.process.stacks;
    let mut common: Option<Vec<StackId>> = None;
    for &strand in sites.iter().flat_map(|site| site.strands.iter()) {
        let strand = &facts.strands[strand];
        if !strand.traits.in_module {
            continue;
        }
        let mut path: Vec<StackId> = stacks.walk(strand.stack).collect();
        path.reverse();
        common = Some(match common {
            None => path,
            Some(known) => {
                known.into_iter().zip(path).take_while(|(a, b)| a == b).map(|(stack, _)| stack).collect()
            }
        });
    }
    let stack = *common?.last()?;
    let strings = &facts.process.strings;
    let frame = context.index.user_code.call_site(strings, stacks, stack)?;
    Some(Stacks::format_frame(strings, frame))
}

/// What the stacks and ops of the main place say.
struct Looks {
    strands: usize,
    ops: usize,
    top_op: String,
    module_rows_per_time: f64,
    rows_per_time: f64,
    hooked_share: f64,
    hook_share: f64,
    custom_share: f64,
    is_backward: bool,
    /// Rows of batch norm, and those of them that are small beside the others: saved statistics.
    batch_norm: (u64, u64),
}

fn looks(context: &Context<'_>, facts: &ProcessFacts<'_>, family: &Family) -> Looks {
    let mut by_op: FxHashMap<StrId, u64> = FxHashMap::default();
    let [mut rows, mut in_module, mut hooked, mut in_hook, mut custom] = [0.0_f64; 5];
    let (mut batch_norm, mut batch_norm_small) = (0_u64, 0_u64);
    let mut strands = 0;
    let members = family.sites.iter().flat_map(|site| site.strands.iter().map(move |&strand| (site, strand)));
    for (site, position) in members {
        let strand = &facts.strands[position];
        let is_kept = |row: &&LongRow| site.rows.binary_search_by_key(&row.row, |kept| kept.row).is_ok();
        let kept: Vec<&LongRow> = strand.long.iter().filter(is_kept).collect();
        strands += 1;
        let count = kept.len() as f64;
        rows += count;
        *by_op.entry(strand.op).or_default() += kept.len() as u64;
        in_module += count * f64::from(u8::from(strand.traits.in_module || has_module(facts, &kept)));
        hooked += count * f64::from(u8::from(strand.traits.is_hooked));
        in_hook += count * f64::from(u8::from(strand.traits.in_hook));
        custom += count * f64::from(u8::from(strand.traits.in_custom_function));
        if strand.traits.in_batch_norm {
            let largest = kept.iter().map(|row| row.bytes).max().unwrap_or(0);
            batch_norm += kept.len() as u64;
            batch_norm_small += kept.iter().filter(|row| row.bytes * 8 <= largest).count() as u64;
        }
    }
    let main = family.main();
    let times = main.seen.len().max(1) as f64;
    let share = |part: f64| if rows > 0.0 { part / rows } else { 0.0 };
    let top = by_op.iter().max_by_key(|&(op, count)| (*count, std::cmp::Reverse(*op))).map(|(&op, _)| op);
    Looks {
        strands,
        ops: by_op.len(),
        top_op: top.map_or("", |op| context.index.label(op)).to_owned(),
        module_rows_per_time: in_module / times,
        rows_per_time: rows / times,
        hooked_share: share(hooked),
        hook_share: share(in_hook),
        custom_share: share(custom),
        is_backward: facts.strands[main.strands[0]].role == Role::Backward,
        batch_norm: (batch_norm, batch_norm_small),
    }
}

/// Whether a trace places the rows inside a module, where the stack doesn't say so.
fn has_module(facts: &ProcessFacts<'_>, rows: &[&LongRow]) -> bool {
    let table = &facts.process.allocations;
    rows.first()
        .and_then(|row| facts.process.ops.get(table.op[row.row as usize]))
        .is_some_and(|op| !op.module.is_empty())
}

fn causes(context: &Context<'_>, facts: &ProcessFacts<'_>, family: &Family, story: &BeatStory) -> Vec<Cause> {
    let looks = looks(context, facts, family);
    let call_sites = call_sites(context, facts, family);
    let place = label_words(call_sites.first().map_or("", String::as_str));
    let place = place.as_ref();
    let every = facts.rhythm.as_ref().map_or_else(String::new, |rhythm| rhythm.every(family.period));
    let each = format_bytes(family.per_time.1);
    let count = family.per_time.0;
    if is_small(&family.main().rows) {
        let evidence = vec![t!(
            "Each is {bytes} at most: a loss or a metric as a tensor. Its graph, if it has one, holds Python and host \
             memory besides.",
            bytes = format_bytes(family.main().rows.iter().map(|row| row.bytes).max().unwrap_or(0))
        )];
        let title = match count {
            1 => t!("A tiny tensor stays after {every}, from {place}", every, place),
            _ => t!("{count} tiny tensors stay after {every}, from {place}", count, every, place),
        };
        return vec![Cause {
            kind: "small_tensors_kept",
            confidence: 0.9,
            title,
            evidence,
            advice: advice::SMALL_TENSORS,
        }];
    }
    if looks.is_backward {
        return vec![Cause {
            kind: "graph_kept",
            confidence: 0.5,
            title: t!("Tensors made by the backward pass stay after {every}: {each} each time", every, each),
            evidence: vec![
                t!(
                    "They come from the autograd thread: with `create_graph=True` the gradients have a graph of their \
                     own, which lives as long as any of them."
                )
                .to_owned(),
            ],
            advice: advice::BACKWARD_KEPT,
        }];
    }
    if looks.custom_share >= 0.5 {
        return vec![Cause {
            kind: "custom_function_ctx",
            confidence: 0.75,
            title: t!("A custom autograd function keeps {each} after {every}, made at {place}", each, every, place),
            evidence: vec![
                t!(
                    "Its stack passes torch.autograd.Function.apply into the user's forward: the tensor is kept as an \
                     attribute of ctx or in a list, so that backward doesn't free it."
                )
                .to_owned(),
            ],
            advice: advice::CUSTOM_FUNCTION,
        }];
    }
    let many = looks.module_rows_per_time >= 2.0 || (looks.rows_per_time >= 4.0 && looks.ops >= 2);
    let hooks = |confidence: f32| Cause {
        kind: "hook_or_cache",
        confidence,
        title: t!(
            "{count} layer outputs stay after {every}: {each} each time, made at {place}",
            count,
            every,
            each,
            place
        ),
        evidence: hook_evidence(&looks),
        advice: advice::HOOK,
    };
    if looks.hook_share >= 0.5 || (looks.hooked_share >= 0.8 && (!many || looks.ops <= 2)) {
        let confidence = if many || looks.hook_share >= 0.5 { 0.85 } else { 0.65 };
        return vec![hooks(confidence)];
    }
    if many && looks.ops >= 2 {
        let graph = graph(family, story, &looks, place, &every, &each);
        return with_running_sum(context, facts, family, story, graph, &every, &each);
    }
    if many {
        // One kind of op in many layers, without a sign of hooks: both explanations stand.
        let mut graph = graph(family, story, &looks, place, &every, &each);
        graph.confidence = graph.confidence.min(0.55);
        return vec![graph, hooks(0.35)];
    }
    vec![Cause {
        kind: "kept_outputs",
        confidence: 0.9,
        title: match (count, family.sites.len()) {
            (1, _) => t!("One tensor stays after {every}: {each}, made at {place}", every, each, place),
            (_, 0 | 1) => {
                t!("{count} outputs stay after {every}: {each}, made at {place}", count, every, each, place)
            }
            _ => t!("{count} tensors stay after {every}: {each}, made at {place}", count, every, each, place),
        },
        evidence: outputs_evidence(&looks, family, story),
        advice: advice::KEPT_OUTPUTS,
    }]
}

fn outputs_evidence(looks: &Looks, family: &Family, story: &BeatStory) -> Vec<String> {
    let mut evidence = Vec::new();
    if !looks.top_op.is_empty() {
        evidence.push(t!(
            "The op is {op}; nothing that its graph saved stays with it, so it is the tensor itself that is held.",
            op = label_words(&looks.top_op)
        ));
    }
    if story.backward_after > 0 {
        evidence.push(t!("The backward pass ended after it was made, and it stayed.").to_owned());
    }
    if family.sites.len() > 1 {
        evidence.push(t!("{count} places keep tensors in the same steps.", count = family.sites.len()));
    }
    evidence
}

fn hook_evidence(looks: &Looks) -> Vec<String> {
    let mut evidence = vec![match looks.strands {
        1 => t!(
            "{count} survivors each time from 1 stack ({op}): one kind of tensor from many layers, not all that a graph \
             saves.",
            count = format!("{:.0}", looks.rows_per_time),
            op = label_words(&looks.top_op)
        ),
        stacks => t!(
            "{count} survivors each time from {stacks} stacks ({op}): one kind of tensor from many layers, not all that \
             a graph saves.",
            count = format!("{:.0}", looks.rows_per_time),
            stacks,
            op = label_words(&looks.top_op)
        ),
    }];
    if looks.hooked_share > 0.5 {
        evidence.push(t!("These modules run with hooks (nn.Module calls them through `inner`).").to_owned());
    }
    if looks.hook_share > 0.5 {
        evidence.push(t!("The tensors are made inside a module's hook.").to_owned());
    }
    evidence
}

/// A graph that stays: of a pass that no backward follows, of a loss never sent backward, or retained.
fn graph(family: &Family, story: &BeatStory, looks: &Looks, place: &str, every: &str, each: &str) -> Cause {
    let count = family.per_time.0;
    let mut evidence = vec![t!(
        "{count} allocations of {ops} ops in {stacks} stacks each time: what autograd saves of a whole forward pass, \
         not one output.",
        count = format!("{:.0}", looks.rows_per_time),
        ops = looks.ops,
        stacks = looks.strands
    )];
    let is_eval = looks.batch_norm.0 >= 3 && looks.batch_norm.1 == 0;
    if is_eval {
        evidence.push(
            t!("Its batch-norm layers saved no batch statistics: the model was in eval mode.").to_owned(),
        );
    } else if looks.batch_norm.1 > 0 {
        evidence.push(
            t!("Its batch-norm layers saved batch statistics: the model was in training mode.").to_owned(),
        );
    }
    if let Some((early, late)) = story.backward_growth {
        evidence.push(t!(
            "The backward pass makes more tensors from step to step, {early} at first and {late} at the end: it walks \
             through the graphs of earlier steps.",
            early,
            late
        ));
        return Cause {
            kind: "graph_chained",
            confidence: 0.85,
            title: t!(
                "Each step's graph holds the one before: {each} {every}, made at {place}",
                each,
                every,
                place
            ),
            evidence,
            advice: advice::GRAPH_CHAINED,
        };
    }
    if story.backward_after == 0 && !story.has_backward {
        evidence.push(t!("No backward pass was seen in these steps.").to_owned());
    } else if story.backward_after == 0 {
        evidence.push(t!("No backward pass follows it in its step.").to_owned());
    } else if story.freed_by_backward_bytes > 0 {
        evidence.push(t!(
            "The step's backward pass ran after it and freed {bytes} of another forward pass, but nothing of this one.",
            bytes = format_bytes(story.freed_by_backward_bytes)
        ));
    } else {
        evidence.push(
            t!("The step's backward pass ran after it and freed nothing of it: the graph was retained.")
                .to_owned(),
        );
    }
    let (advice, why) = if story.backward_after == 0 || (is_eval && story.freed_by_backward_bytes > 0) {
        (advice::VALIDATION, t!("no backward follows"))
    } else if story.freed_by_backward_bytes > 0 {
        (advice::AUX_LOSS, t!("never sent backward"))
    } else {
        (advice::RETAIN_GRAPH, t!("retained"))
    };
    Cause {
        kind: "graph_kept",
        confidence: 0.9,
        title: t!(
            "The graph of a forward pass stays after {every} ({why}): {count} tensors, {each}, made at {place}",
            every,
            why,
            count,
            each,
            place
        ),
        evidence,
        advice,
    }
}

/// A kept graph, and where a scalar is replaced each step, the other explanation: a running sum that chains the graphs.
fn with_running_sum(
    context: &Context<'_>,
    facts: &ProcessFacts<'_>,
    family: &Family,
    story: &BeatStory,
    mut graph: Cause,
    every: &str,
    each: &str,
) -> Vec<Cause> {
    let Some(rolling) = story.running_sum.filter(|_| graph.kind == "graph_kept" && story.backward_after > 0)
    else {
        return vec![graph];
    };
    let place = call_sites(context, facts, family).into_iter().next().unwrap_or_default();
    let rolling = context.label(rolling);
    // A list of losses keeps a scalar each time; a running sum lets each one go.
    let keeps_scalars = family.rows().any(|row| row.bytes <= SCALAR_BYTES);
    let mut evidence = vec![t!(
        "A scalar made at {place} lives until its successor is made: a sum that carries its graph along would do so.",
        place = rolling
    )];
    evidence.push(if keeps_scalars {
        t!("Scalars of each step stay as well, as with a list of losses: the two can't be told apart from here.")
            .to_owned()
    } else {
        t!("No scalar of an earlier step stays by itself, as a list of losses would make it.").to_owned()
    });
    let confidence = if keeps_scalars { 0.35 } else { 0.65 };
    graph.confidence = 1.0 - confidence;
    let chained = Cause {
        kind: "graph_chained",
        confidence,
        title: t!(
            "Graphs chained by a running sum at {sum}, perhaps: {each} {every}, made at {place}",
            sum = rolling,
            each,
            every,
            place = label_words(&place)
        ),
        evidence,
        advice: advice::RUNNING_SUM,
    };
    if keeps_scalars { vec![graph, chained] } else { vec![chained, graph] }
}
