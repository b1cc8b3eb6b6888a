//! Metrics that loggers write as CSV (Lightning's `CSVLogger` with `DeviceStatsMonitor`, exports of W&B, one's own
//! `csv.writer`): a header whose names count memory, and a row a step or moment.

use std::sync::LazyLock;

use regex::Regex;

use super::figures::{find_figures, without_unit};
use super::reading::{Reading, RowFacts};
use crate::import::text::{clean_head, csv_rows, read_text};
use crate::import::wall_time::{Stamp, parse_stamp};
use crate::import::{Head, ImportError, Importer, Input, Progress};
use crate::model::{Clock, Device, Quantity, Recording, parse_bytes, time};

/// How often the user's wish to stop is looked at, in rows.
const CANCEL_ROWS: u64 = 4096;

/// Reads metrics as CSV.
pub struct MetricsCsvImporter;

impl Importer for MetricsCsvImporter {
    fn name(&self) -> &'static str {
        "metrics CSV"
    }

    fn detect(&self, head: &Head<'_>) -> bool {
        let text = clean_head(head);
        let mut records = reader(&text).into_records().flatten();
        let header = records.next().map(|header| columns(&header)).unwrap_or_default();
        header.len() > 1
            && header.iter().any(|column| matches!(column, Column::Memory { .. }))
            && records.next().is_some()
    }

    fn import(&self, input: &Input, progress: &Progress) -> Result<Recording, ImportError> {
        let log = read_text(input, progress)?;
        let mut rows = reader(&log.text);
        let mut record = csv::StringRecord::new();
        let mut reading = Reading::new(None);
        let mut header: Vec<Column> = Vec::new();
        let mut count = 0;
        while rows.read_record(&mut record).unwrap_or(false) {
            count += 1;
            if count % CANCEL_ROWS == 0 && progress.is_cancelled() {
                return Err(ImportError::Cancelled { file: input.name() });
            }
            let line = record.position().map_or(0, csv::Position::line);
            let names = columns(&record);
            // A logger that is started again appends its header.
            if names.iter().any(|column| matches!(column, Column::Memory { .. })) {
                header = names;
            } else {
                add_row(&mut reading, &header, line, &record);
            }
        }
        let mut recording =
            reading.finish(log.cut).map_err(|cause| ImportError::content(cause, input.name()))?;
        recording.format = "metrics CSV";
        Ok(recording)
    }
}

fn reader(text: &str) -> csv::Reader<&[u8]> {
    csv_rows().from_reader(text.as_bytes())
}

/// What a column holds.
#[derive(Clone, Debug, PartialEq)]
enum Column {
    Memory {
        quantity: Quantity,
        device: Device,
        /// What a bare number counts, as the name says; else it is guessed from the figure.
        unit: Option<String>,
    },
    Time,
    /// Seconds since the run began.
    Elapsed,
    Step,
    Epoch,
    Rank,
    Other,
}

/// `_mb`, ` (MiB)`, `[GiB]`, `_bytes` at the end of a name.
static UNIT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)(?:[_ .]|\s*[(\[])(?P<unit>[kmg]i?b|bytes)[)\]]?$").ok());

/// W&B's system metrics, `system.gpu.0.memoryAllocatedBytes`: what the driver counts on the device.
static SYSTEM_GPU: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?:^|system[./])gpu\.(?P<index>\d+)\.memoryAllocatedBytes$").ok());

fn columns(record: &csv::StringRecord) -> Vec<Column> {
    // Names are searched with care, of which rows of figures need none.
    record.iter().map(|cell| if cell.parse::<f64>().is_ok() { Column::Other } else { column(cell) }).collect()
}

fn column(name: &str) -> Column {
    let lower = name.to_ascii_lowercase();
    match lower.as_str() {
        "timestamp" | "_timestamp" | "time" | "datetime" | "date" | "wall_time" | "created_at" => {
            return Column::Time;
        }
        "_runtime" | "elapsed" | "relative time (process)" | "relative time (wall)" => {
            return Column::Elapsed;
        }
        "step" | "_step" | "global_step" | "trainer/global_step" | "iteration" | "iter" => {
            return Column::Step;
        }
        "epoch" => return Column::Epoch,
        "rank" => return Column::Rank,
        _ => {}
    }
    if let Some(found) = SYSTEM_GPU.as_ref().and_then(|pattern| pattern.captures(name)) {
        let device = Device::cuda(found["index"].parse().unwrap_or(0));
        return Column::Memory { quantity: Quantity::DriverUsed, device, unit: Some("B".to_owned()) };
    }
    // `DeviceStatsMonitor.on_train_batch_end/allocated_bytes.all.current`
    let tail = lower.rsplit('/').next().unwrap_or(&lower);
    if let Some(quantity) = of_memory_stats(tail) {
        return Column::Memory { quantity, device: Device::default(), unit: Some("B".to_owned()) };
    }
    let unit = UNIT.as_ref().and_then(|pattern| pattern.captures(tail));
    let bare = unit.as_ref().map_or(tail, |found| &tail[..found.get(0).map_or(0, |all| all.start())]);
    // A name is a figure's when a log line with it would be.
    let figures = find_figures(&format!("{bare}: 1000000000"));
    match figures.into_iter().next() {
        Some(figure) if figure.is_strong || unit.is_some() => Column::Memory {
            quantity: figure.quantity,
            device: Device::default(),
            unit: unit.map(|found| found["unit"].to_owned()),
        },
        _ => Column::Other,
    }
}

/// The keys of `torch.cuda.memory_stats()`.
fn of_memory_stats(key: &str) -> Option<Quantity> {
    Some(match key {
        "allocated_bytes.all.current" => Quantity::Allocated,
        "reserved_bytes.all.current" => Quantity::Reserved,
        "active_bytes.all.current" => Quantity::Active,
        "requested_bytes.all.current" => Quantity::Requested,
        "inactive_split_bytes.all.current" => Quantity::InactiveSplit,
        "allocated_bytes.all.peak" => Quantity::PeakAllocated,
        "reserved_bytes.all.peak" => Quantity::PeakReserved,
        _ => return None,
    })
}

fn add_row(reading: &mut Reading<'_>, header: &[Column], line: u64, record: &csv::StringRecord) {
    let mut facts = RowFacts::default();
    let mut figures: Vec<(Device, Quantity, i64)> = Vec::new();
    let whole =
        |cell: &str| cell.parse::<f64>().ok().filter(|number| number.fract() == 0.0).map(|n| n as i64);
    for (column, cell) in header.iter().zip(record).filter(|(_, cell)| !cell.is_empty()) {
        match column {
            Column::Memory { quantity, device, unit } => {
                if let Some((bytes, is_guess)) = figure(cell, unit.as_deref()) {
                    facts.guesses += u64::from(is_guess);
                    figures.push((*device, quantity.clone(), bytes));
                }
            }
            Column::Time => facts.stamp = parse_stamp(cell),
            Column::Elapsed => {
                let ns = time::parse_decimal_ns(cell, 9);
                facts.stamp = facts.stamp.or(ns.map(|ns| Stamp { ns, clock: Clock::Relative }));
            }
            Column::Step => facts.step = whole(cell),
            Column::Epoch => facts.epoch = whole(cell),
            Column::Rank => facts.rank = whole(cell).and_then(|rank| u32::try_from(rank).ok()),
            Column::Other => {}
        }
    }
    reading.metrics(line, &facts, figures);
}

fn figure(cell: &str, unit: Option<&str>) -> Option<(i64, bool)> {
    if cell.ends_with(|c: char| c.is_ascii_alphabetic()) {
        return Some((i64::try_from(parse_bytes(cell)?).ok()?, false));
    }
    match unit {
        // Large whole numbers come as `1.04e+08` too.
        Some("B" | "bytes") => {
            let bytes = cell.parse::<f64>().ok().filter(|bytes| (0.0..1e15).contains(bytes))?;
            Some((bytes.round() as i64, false))
        }
        unit => without_unit(cell, unit, true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::import;
    use crate::model::SourceKind;

    fn read(text: &str) -> Recording {
        import(&Input::from_bytes("metrics.csv", text.as_bytes().to_vec()), &Progress::default()).unwrap()
    }

    fn points(log: &Recording, quantity: &Quantity) -> Vec<(i64, i64)> {
        let series = log.series.iter().find(|series| series.quantity == *quantity).unwrap();
        series.times_ns.iter().copied().zip(series.bytes.iter().copied()).collect()
    }

    #[test]
    fn lightnings_metrics_have_steps_and_no_times() {
        let log = read(
            "DeviceStatsMonitor.on_train_batch_end/allocated_bytes.all.current,DeviceStatsMonitor.on_train_batch_end/reserved_bytes.all.current,epoch,loss,step\n\
             104857600.0,209715200.0,0,,10\n,,0,0.5,10\n1.15343360e+08,209715200.0,0,,20\n",
        );
        assert_eq!((log.kind, log.format, log.clock), (SourceKind::TrainingLog, "metrics CSV", Clock::Order));
        let allocated: Vec<i64> = points(&log, &Quantity::Allocated).iter().map(|point| point.1).collect();
        assert_eq!(allocated, [100 << 20, 110 << 20]);
        let names: Vec<&str> = log.annotations.iter().map(|one| log.strings.get(one.name)).collect();
        assert_eq!(names, ["step#10", "step#20"]);
    }

    #[test]
    fn system_metrics_and_own_columns_with_units() {
        let log = read(
            "_timestamp,_runtime,system.gpu.1.memoryAllocatedBytes\n1796104323.5,0.5,1000000\n1796104333.5,10.5,2000000\n",
        );
        assert_eq!(log.clock, Clock::Unix);
        assert_eq!(
            points(&log, &Quantity::DriverUsed),
            [(1_796_104_323_500_000_000, 1_000_000), (1_796_104_333_500_000_000, 2_000_000)]
        );
        assert_eq!(log.series[0].device, Device::cuda(1));
        let log = read(
            "time,step,memory_allocated_mb,max_memory_allocated (GiB)\n2026-12-01 11:22:04.5,1,100,1.5\n",
        );
        assert_eq!(points(&log, &Quantity::Allocated)[0].1, 100 << 20);
        assert_eq!(points(&log, &Quantity::PeakAllocated)[0].1, 3 << 29);
    }

    #[test]
    fn other_tables_are_none_of_them() {
        for text in
            ["epoch,loss,accuracy\n1,2,3\n", "name,memory of,people\nx,1,2\n", "memory_allocated: 5 MiB, x\n"]
        {
            let head = Head::new(text.as_bytes());
            assert!(!MetricsCsvImporter.detect(&head), "{text}");
        }
    }
}
