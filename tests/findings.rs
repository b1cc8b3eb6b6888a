//! Findings: what each kind of run is said to do, on made-up runs and on the recordings.

use vramscope::analysis::findings::{Finding, Severity, findings};
use vramscope::analysis::growth::suggest;
use vramscope::analysis::{Query, Selection};

use crate::simulated::{Block, Run, findings_of, train};
use crate::support;

const MIB: u64 = 1 << 20;

/// Kinds that no healthy run may have.
const LEAKS: &[&str] = &[
    "kept_outputs",
    "graph_kept",
    "graph_chained",
    "hook_or_cache",
    "custom_function_ctx",
    "small_tensors_kept",
    "growing_tensor",
    "growing_peak",
    "fragmentation",
    "other_process",
    "outside_allocator",
    "oom",
];

fn assert_healthy(found: &[Finding], what: &str) {
    let leaks: Vec<_> = found.iter().filter(|finding| LEAKS.contains(&finding.kind)).collect();
    assert!(leaks.is_empty(), "{what}: {leaks:#?}");
    assert!(found.iter().all(|finding| finding.severity < Severity::Error), "{what}: {found:#?}");
}

fn first_kind(found: &[Finding]) -> &'static str {
    found.first().map_or("none", |finding| finding.kind)
}

#[test]
fn plain_training_has_no_leak() {
    for annotates in [true, false] {
        let mut run = Run::new(annotates);
        train(&mut run, 20, &mut |_, _, _| {});
        let found = findings_of(run);
        assert_healthy(&found, "plain");
        assert!(found.iter().any(|finding| finding.kind == "optimizer_state"), "{found:#?}");
    }
}

#[test]
fn what_was_kept_once_is_told_and_is_no_leak() {
    let mut run = Run::new(true);
    train(&mut run, 20, &mut |run, _, step| {
        if step == 9 {
            let line = run.line(31);
            run.alloc(line, 40 * MIB);
        }
    });
    let found = findings_of(run);
    assert_healthy(&found, "kept once");
    let once = found.iter().find(|finding| finding.kind == "kept_once").expect("it is told");
    assert_eq!((once.bytes, once.severity), (40 * MIB, Severity::Warning));
    assert!(once.title.contains("in step 9, at run.py:31 go"), "{}", once.title);
    let found = findings_of({
        let mut run = Run::new(true);
        train(&mut run, 20, &mut |_, _, _| {});
        run
    });
    assert!(found.iter().all(|finding| finding.kind != "kept_once"), "{found:#?}");
}

#[test]
fn kept_outputs_are_found_with_and_without_steps() {
    for annotates in [true, false] {
        let mut run = Run::new(annotates);
        train(&mut run, 20, &mut |run, _, _| {
            let line = run.line(30);
            run.alloc(line, 2 * MIB);
        });
        let found = findings_of(run);
        assert_eq!(first_kind(&found), "kept_outputs", "{found:#?}");
        assert_eq!(found[0].call_sites, ["run.py:30 go"]);
        assert_eq!(found[0].per_step_bytes, 2 * MIB);
        assert_eq!(found[0].bytes, 40 * MIB);
    }
}

#[test]
fn outputs_of_varying_sizes_are_found() {
    let mut run = Run::default();
    train(&mut run, 20, &mut |run, _, step| {
        let line = run.line(30);
        run.alloc(line, MIB + step as u64 * 512 * 37 % 4096 * 16);
    });
    assert_eq!(first_kind(&findings_of(run)), "kept_outputs");
}

#[test]
fn a_rare_leak_has_its_period() {
    for annotates in [true, false] {
        let mut run = Run::new(annotates);
        train(&mut run, 60, &mut |run, _, step| {
            let line = run.line(30);
            let block = run.alloc(line, 2 * MIB);
            if step % 7 != 3 {
                run.free(block);
            }
        });
        let found = findings_of(run);
        assert_eq!(first_kind(&found), "kept_outputs");
        assert!(found[0].title.contains("every 7th"), "{}", found[0].title);
    }
}

#[test]
fn a_validation_pass_that_keeps_its_graph() {
    let mut run = Run::default();
    train(&mut run, 21, &mut |run, model, step| {
        if step % 5 == 2 {
            let _kept = model.forward(run, 41);
        }
    });
    let found = findings_of(run);
    assert_eq!(first_kind(&found), "graph_kept", "{found:#?}");
    assert_eq!(found[0].call_sites[0], "run.py:41 go");
    assert!(found[0].advice.contains("no_grad"), "{}", found[0].advice);
}

#[test]
fn a_retained_graph_is_told_by_its_backward_pass() {
    let mut run = Run::default();
    let mut model = None;
    for _ in 0..16 {
        let model = model.get_or_insert_with(|| crate::simulated::Model::new(&mut run));
        run.begin_step();
        let _kept = model.forward(&mut run, 21);
        model.zero_grad(&mut run);
        model.backward(&mut run, Vec::new());
        model.optimize(&mut run, 24);
        run.end_step();
    }
    let found = findings_of(run);
    assert_eq!(first_kind(&found), "graph_kept", "{found:#?}");
    assert!(found[0].code_before.contains("retain_graph"), "{}", found[0].title);
}

#[test]
fn a_hidden_state_shows_in_a_backward_pass_that_lengthens() {
    let mut run = Run::default();
    let mut model = crate::simulated::Model::new(&mut run);
    for step in 0..16 {
        run.begin_step();
        let _kept = model.forward(&mut run, 21);
        model.zero_grad(&mut run);
        for _ in 0..=step {
            model.backward(&mut run, Vec::new());
        }
        model.optimize(&mut run, 24);
        run.end_step();
    }
    assert_eq!(first_kind(&findings_of(run)), "graph_chained");
}

#[test]
fn a_tensor_that_is_joined_onto_is_found_though_one_survives() {
    let mut run = Run::default();
    let mut last: Option<Block> = None;
    train(&mut run, 20, &mut |run, _, step| {
        let line = run.line(33);
        let block = run.alloc(line, (step as u64 + 1) * MIB);
        if let Some(last) = last.replace(block) {
            run.free(last);
        }
    });
    let found = findings_of(run);
    assert_eq!(first_kind(&found), "growing_tensor", "{found:#?}");
    assert_eq!(found[0].call_sites, ["run.py:33 go"]);
    assert_eq!(found[0].per_step_bytes, MIB);
}

#[test]
fn cycles_that_the_collector_frees_are_a_saw_tooth() {
    let mut run = Run::default();
    let mut pile: Vec<Block> = Vec::new();
    train(&mut run, 40, &mut |run, _, step| {
        let line = run.line(35);
        pile.push(run.alloc(line, 8 * MIB));
        if step % 12 == 11 {
            run.free_all(pile.drain(..));
        }
    });
    let found = findings_of(run);
    assert_eq!(first_kind(&found), "saw_tooth", "{found:#?}");
    assert_healthy(&found, "saw-tooth");
}

#[test]
fn caches_and_prefetched_batches_are_no_leaks() {
    for length in [1, 2, 3, 8] {
        let mut run = Run::default();
        let mut buffer: Vec<Block> = Vec::new();
        train(&mut run, 40, &mut |run, _, _| {
            let line = run.line(36);
            buffer.push(run.alloc(line, 2 * MIB));
            if buffer.len() > length {
                run.free(buffer.remove(0));
            }
        });
        assert_healthy(&findings_of(run), &format!("a buffer of {length}"));
    }
}

#[test]
fn workspaces_of_first_use_are_no_leaks() {
    let mut run = Run::default();
    train(&mut run, 20, &mut |run, _, step| {
        let stack = run.layer("linear", 4, 21);
        if step < 2 {
            run.alloc(stack, 32 * MIB);
        }
    });
    let found = findings_of(run);
    assert_healthy(&found, "workspaces");
    assert!(found.iter().any(|finding| finding.kind == "warm_up"), "{found:#?}");
}

#[test]
fn accumulated_gradients_are_no_leaks() {
    let mut run = Run::default();
    let mut model = crate::simulated::Model::new(&mut run);
    for step in 0..32 {
        run.begin_step();
        let (saved, output) = model.forward(&mut run, 21);
        model.backward(&mut run, saved);
        run.free(output);
        if step % 4 == 3 {
            model.optimize(&mut run, 24);
            model.zero_grad(&mut run);
        }
        run.end_step();
    }
    assert_healthy(&findings_of(run), "accumulation");
}

#[test]
fn what_is_in_flight_at_the_end_is_no_leak() {
    let mut run = Run::default();
    train(&mut run, 12, &mut |_, _, _| {});
    run.begin_step();
    let model = crate::simulated::Model::new(&mut run);
    let _in_flight = model.forward(&mut run, 21);
    run.end_step();
    assert_healthy(&findings_of(run), "in flight");
}

#[test]
fn a_loss_list_is_tiny() {
    let mut run = Run::default();
    train(&mut run, 20, &mut |run, _, _| {
        let line = run.line(31);
        run.alloc(line, 4);
    });
    let found = findings_of(run);
    assert_eq!(first_kind(&found), "small_tensors_kept", "{found:#?}");
    assert_eq!(found[0].bytes, 80);
}

#[test]
fn two_leaks_are_two_findings() {
    let mut run = Run::default();
    train(&mut run, 20, &mut |run, _, step| {
        let (tiny, rare) = (run.line(31), run.line(32));
        run.alloc(tiny, 4);
        if step % 5 == 0 {
            run.alloc(rare, 16 * MIB);
        }
    });
    let kinds: Vec<_> = findings_of(run).iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds[..2], ["kept_outputs", "small_tensors_kept"], "{kinds:?}");
}

/// The first finding of each recording, one of several kinds, and where; `""` where no call site is expected.
const OF_RECORDINGS: &[(&str, &[&str], &str)] = &[
    ("val_without_no_grad", &["graph_kept"], "record.py:63 validate"),
    ("aux_loss_running_sum", &["graph_chained", "graph_kept"], "record.py:119 step"),
    ("hook_activations", &["hook_or_cache"], "record.py:136 step"),
    ("custom_loss_keeps_ctx", &["custom_function_ctx", "kept_outputs"], "record.py:305 forward"),
    ("expandable_metrics", &["kept_outputs"], "record.py:216 step"),
    ("loss_list", &["small_tensors_kept"], "record.py:83 step"),
    ("fragmentation", &["fragmentation"], ""),
    ("workers_touch_cuda", &["other_process"], ""),
    ("streams_and_graphs", &["kept_outputs"], "record.py:238 step"),
    ("ring_truncated", &["kept_outputs"], "record.py:269 step"),
    ("runs_out_of_memory", &["oom"], "record.py:256 step"),
    ("long_run", &["kept_outputs"], "record.py:344 step"),
    ("ddp", &["kept_outputs"], "ddp.py:19 rank_main"),
    ("healthy", &["no_growth"], ""),
];

#[test]
fn recordings_have_the_first_finding_that_their_script_earns() {
    let mut wrong = Vec::new();
    for &(name, kinds, place) in OF_RECORDINGS {
        let Some(path) = support::recording(name) else { return };
        let index = support::open_index(&path);
        let whole = index.session.span;
        let suggested = suggest(&index, Selection::default())[0].range;
        for range in [whole, suggested] {
            let query = Query { selection: Selection::default(), range, free_by: Default::default() };
            let found = findings(&index, &query);
            let is_right = found.first().is_some_and(|first| {
                let is_there = place.is_empty() || first.call_sites.first().is_some_and(|site| site == place);
                kinds.contains(&first.kind) && is_there
            });
            // The log and the snapshot of a process tell of one fragmentation, of one cache.
            for (nth, finding) in found.iter().enumerate() {
                let is_one = ["fragmentation", "cache_only"].contains(&finding.kind) && name != "ddp";
                if is_one && found[..nth].iter().any(|other| other.kind == finding.kind) {
                    wrong.push(format!("{name}: {} twice", finding.kind));
                }
            }
            if !is_right {
                let first = found.first().map(|first| (first.kind, first.call_sites.clone()));
                wrong.push(format!("{name}: {first:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_healthy_recording_has_no_leak() {
    let Some(path) = support::recording("healthy") else { return };
    let index = support::open_index(&path);
    let query =
        Query { selection: Selection::default(), range: index.session.span, free_by: Default::default() };
    let found = findings(&index, &query);
    assert_healthy(&found, "healthy");
    assert!(found.iter().any(|finding| finding.kind == "optimizer_state"), "{found:#?}");
}
