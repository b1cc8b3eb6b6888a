//! How fast a memory snapshot becomes a recording, and a recording a session with its curves.
//!
//! Larger ones, and the comparison with Python: `benches/make_big.py`, `benches/compare.py`.

use std::hint::black_box;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput};
use vramscope::align::{self, Opened};
use vramscope::import::{self, Input, Progress};

const SAMPLE: &str = "samples/healthy/snapshot.pickle.gz";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let packed = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(SAMPLE))?;
    let mut pickle = Vec::new();
    flate2::read::MultiGzDecoder::new(packed.as_slice()).read_to_end(&mut pickle)?;
    let read = |bytes: &[u8]| {
        import::import(&Input::from_bytes("snapshot.pickle", bytes.to_vec()), &Progress::default())
    };
    let recording = Arc::new(read(&pickle)?);

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("snapshot");
    group.sample_size(20).throughput(Throughput::Bytes(pickle.len() as u64));
    for (name, content) in [("pickle", &pickle), ("gz", &packed)] {
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || Input::from_bytes("snapshot.pickle", content.clone()),
                |input| import::import(&input, &Progress::default()).map(black_box),
                BatchSize::PerIteration,
            );
        });
    }
    group.bench_function("session", |bencher| {
        let opened = [Opened::new("snapshot.pickle", recording.clone())];
        bencher.iter(|| black_box(align::build(&opened)));
    });
    group.finish();
    criterion.final_summary();
    Ok(())
}
