//! How fast a profiler trace becomes a recording: the sample's, as it is and compressed.
//!
//! Larger ones, and the comparison with Python: `benches/make_big.py`, `benches/compare.py`.

use std::io::Read as _;
use std::path::Path;

use criterion::{BatchSize, Criterion, Throughput};
use vramscope::import::{self, Input, Progress};

const SAMPLE: &str = "samples/val_without_no_grad/trace.json.gz";

/// The sample's trace, compressed and inflated.
fn sample() -> std::io::Result<(Vec<u8>, String)> {
    let packed = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(SAMPLE))?;
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(packed.as_slice()).read_to_string(&mut text)?;
    Ok((packed, text))
}

fn bench(criterion: &mut Criterion, name: &str, content: &[u8], inflated_bytes: usize) {
    let mut group = criterion.benchmark_group("trace");
    group.sample_size(10).throughput(Throughput::Bytes(inflated_bytes as u64));
    group.bench_function(name, |bencher| {
        bencher.iter_batched(
            || Input::from_bytes("trace.json", content.to_vec()),
            |input| import::import(&input, &Progress::default()).map(|recording| recording.events),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn main() -> std::io::Result<()> {
    let (packed, text) = sample()?;
    let mut criterion = Criterion::default().configure_from_args();
    bench(&mut criterion, "json", text.as_bytes(), text.len());
    bench(&mut criterion, "gz", &packed, text.len());
    criterion.final_summary();
    Ok(())
}
