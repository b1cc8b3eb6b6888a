//! What brushing costs: survivors, totals and groups of a million and of ten million allocations.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use vramscope::align::{Opened, build};
use vramscope::analysis::findings::findings;
use vramscope::analysis::{FreeBy, GroupBy, Index, Query, Selection, UserCode, group, kept, totals};
use vramscope::model::{
    Allocation, Annotation, Clock, Frame, NEVER_NS, Recording, SourceKind, StackId, TimeRange,
};

/// A run of so many allocations in 1,000 steps with 2,000 stacks, of which every other one survives.
fn index_of(rows: usize) -> Index {
    let mut recording = Recording::new(SourceKind::Snapshot, "made up", Clock::Unix);
    let file = recording.strings.intern("/home/ann/run.py");
    let stacks: Vec<StackId> = (0..2000_u32)
        .map(|line| {
            let function = recording.strings.intern(&format!("f{}", line % 50));
            let frame = recording.stacks.intern_frame(Frame { file, function, line });
            recording.stacks.push(StackId::EMPTY, frame)
        })
        .collect();
    recording.allocations.reserve(rows);
    for row in 0..rows {
        let alloc_ns = row as i64 * 1000;
        let free_ns = if row % 2 == 0 { NEVER_NS } else { alloc_ns + 5000 };
        recording.allocations.push(Allocation {
            address: 0x1000 + row as u64 * 512,
            size_bytes: 512 << (row * 7919 % 12),
            alloc_ns,
            free_requested_ns: free_ns,
            free_completed_ns: free_ns,
            stack: stacks[row * 31 % stacks.len()],
            ..Allocation::default()
        });
    }
    let end_ns = rows as i64 * 1000;
    for step in 0..1000_i64 {
        let name = recording.strings.intern(&format!("ProfilerStep#{step}"));
        let range = TimeRange::new(step * end_ns / 1000, (step + 1) * end_ns / 1000);
        recording.annotations.push(Annotation { name, range });
    }
    recording.span = Some(TimeRange::new(0, end_ns));
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
