//! How fast a profiler trace becomes a recording: the sample's, as it is, compressed, and repeated.
//!
//! `VRAMSCOPE_WRITE_TRACE=big.json VRAMSCOPE_TRACE_MB=2000 cargo bench --bench trace` only writes a trace of that size.

use std::io::{BufWriter, Read as _, Write};
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

/// Writes a trace whose events stand `times` times one behind the other, each time ten seconds later.
fn write_repeated(trace: &str, times: u64, out: &mut impl Write) -> std::io::Result<()> {
    const SHIFT_US: u64 = 10_000_000;
    const TS: &str = "\"ts\": ";
    let start = trace.find("\"traceEvents\": [").map_or(0, |at| at + "\"traceEvents\": [".len());
    let end = trace.rfind(']').unwrap_or(trace.len());
    out.write_all(&trace.as_bytes()[..start])?;
    for time in 0..times {
        if time > 0 {
            out.write_all(b",")?;
        }
        let mut rest = &trace[start..end];
        while let Some(at) = rest.find(TS) {
            let (before, after) = rest.split_at(at + TS.len());
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            let whole: u64 = after[..digits].parse().unwrap_or(0);
            write!(out, "{before}{}", whole + time * SHIFT_US)?;
            rest = &after[digits..];
        }
        out.write_all(rest.as_bytes())?;
    }
    out.write_all(&trace.as_bytes()[end..])
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
    if let Some(path) = std::env::var_os("VRAMSCOPE_WRITE_TRACE") {
        let megabytes: u64 =
            std::env::var("VRAMSCOPE_TRACE_MB").ok().and_then(|text| text.parse().ok()).unwrap_or(2000);
        let times = (megabytes * 1_000_000).div_ceil(text.len() as u64);
        return write_repeated(&text, times, &mut BufWriter::new(std::fs::File::create(path)?));
    }
    let mut criterion = Criterion::default().configure_from_args();
    bench(&mut criterion, "json", text.as_bytes(), text.len());
    bench(&mut criterion, "gz", &packed, text.len());
    let mut repeated = Vec::new();
    write_repeated(&text, 4, &mut repeated)?;
    bench(&mut criterion, "json_x4", &repeated, repeated.len());
    criterion.final_summary();
    Ok(())
}
