//! What brushing costs: survivors, totals and groups of a million and of ten million allocations.

mod made_up;

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use vramscope::align::{Opened, build};
use vramscope::analysis::findings::findings;
use vramscope::analysis::{FreeBy, GroupBy, Index, Query, Selection, UserCode, group, kept, totals};

/// A run of so many allocations in 1,000 steps with 2,000 stacks, of which every other one survives.
fn index_of(rows: usize) -> Index {
    let lives_ns = |row: usize| (!row.is_multiple_of(2)).then_some(5000);
    let recording = made_up::Run { rows, stacks: 2000, steps: 1000, lives_ns }.recording();
    let opened = Opened::new("made-up", Arc::new(recording));
    Index::new(Arc::new(build(&[opened])), UserCode::default())
}

fn brushing(criterion: &mut Criterion) {
    for (name, rows) in [("1 M", 1_000_000), ("10 M", 10_000_000)] {
        let index = index_of(rows);
        let selection = Selection::default();
        let range = index.session.span;
        let query = Query { selection, range, free_by: FreeBy::RecordingEnd };
        let mut bench = criterion.benchmark_group(name);
        bench.sample_size(10);
        bench.bench_function("kept", |b| b.iter(|| black_box(kept(&index.session, &query))));
        bench.bench_function("totals", |b| b.iter(|| black_box(totals(&index.session, selection, range))));
        // What each move of the brush asks for.
        bench.bench_function("brush", |b| {
            b.iter(|| {
                let rows = kept(&index.session, &query);
                black_box((totals(&index.session, selection, range), group(&index, &rows, GroupBy::CallSite)))
            });
        });
        // As many rows as there are allocations.
        let all: Vec<_> = (0..index.session.processes[0].allocations.len() as u32)
            .map(|row| vramscope::analysis::RowRef { process: vramscope::model::ProcessId(0), row })
            .collect();
        for by in GroupBy::ALL {
            bench.bench_function(format!("group by {}", by.label()), |b| {
                b.iter(|| black_box(group(&index, &all, by)));
            });
        }
        bench.bench_function("findings", |b| b.iter(|| black_box(findings(&index, &query))));
        bench.finish();
    }
}

criterion_group!(benches, brushing);
criterion_main!(benches);
