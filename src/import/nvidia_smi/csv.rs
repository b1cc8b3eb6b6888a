//! `--query-gpu` and `--query-compute-apps` as CSV: any columns in any order, with or without header and units.

use rustc_hash::FxHashMap;

use super::columns::{Column, Role, guess_columns, header_columns};
use super::samples::{MIB, Samples, is_failure, is_failure_line, is_missing, parse_cell};
use crate::import::text::{LogText, csv_rows, without_prefixes};
use crate::import::wall_time::parse_stamp;
use crate::import::{ImportError, Input, Progress};
use crate::model::{Device, Quantity, Recording};
use crate::text::{msg, t};

/// How many rows the guess of a log without a header looks at.
const GUESS_ROWS: usize = 400;

/// How often the user's wish to stop is looked at, in rows.
const CANCEL_ROWS: u64 = 4096;

/// Whether the text is such a CSV: a header of nvidia-smi's own names, or rows that begin with its time stamp.
pub(super) fn detect(text: &str) -> bool {
    let text = without_prefixes(text);
    let mut rows = Vec::new();
    for record in reader(&text).records().take(GUESS_ROWS).flatten() {
        if header_columns(&record).is_some() {
            return true;
        }
        rows.push(record);
    }
    guess_columns(&rows).is_some()
}

fn reader(text: &str) -> csv::Reader<&[u8]> {
    csv_rows().quoting(false).from_reader(text.as_bytes())
}

/// Reads the CSV.
pub(super) fn import(input: &Input, progress: &Progress, log: LogText) -> Result<Recording, ImportError> {
    let text = without_prefixes(&log.text);
    let mut reading = Reading::new();
    let is_complete = text.ends_with('\n');
    let mut rows = reader(&text);
    let mut record = csv::StringRecord::new();
    let mut last_short = None;
    let mut held: Vec<(u64, csv::StringRecord)> = Vec::new();
    let mut count = 0;
    while rows.read_record(&mut record).unwrap_or(false) {
        count += 1;
        if count % CANCEL_ROWS == 0 && progress.is_cancelled() {
            return Err(ImportError::Cancelled { file: input.name() });
        }
        let line = record.position().map_or(0, csv::Position::line);
        if let Some(columns) = header_columns(&record) {
            reading.set_header(columns);
            continue;
        }
        if reading.columns.is_empty() && held.len() < GUESS_ROWS {
            held.push((line, record.clone()));
            continue;
        }
        reading.replay(&mut held);
        last_short = reading.row(line, &record);
    }
    reading.replay(&mut held);
    if !reading.has_memory_column {
        return Err(ImportError::content(
            t!(
                "the CSV has no memory column: query memory.used (--query-gpu=timestamp,index,memory.used,memory.total)"
            ),
            input.name(),
        ));
    }
    if last_short.is_some() && !is_complete {
        reading.samples.recording().warn("cut", t!("the last line is cut"));
    }
    reading.samples.finish(input, log.cut)
}

/// The state while rows are read: a header may come again, and with other columns.
struct Reading {
    samples: Samples,
    columns: Vec<Column>,
    has_memory_column: bool,
    /// UUIDs or bus ids in the order of appearance, which stand for the index where there is none.
    gpus: FxHashMap<String, i64>,
    /// The last row's time cell and how many rows shared it, for logs that name no GPU.
    last_time: String,
    same_time: i64,
}

impl Reading {
    fn new() -> Self {
        Self {
            samples: Samples::new("nvidia-smi CSV"),
            columns: Vec::new(),
            has_memory_column: false,
            gpus: FxHashMap::default(),
            last_time: String::new(),
            same_time: 0,
        }
    }

    fn set_header(&mut self, columns: Vec<Column>) {
        self.has_memory_column |= columns.iter().any(|column| column.role.is_memory());
        self.columns = columns;
    }

    /// Reads the rows that came before any header, with columns told by their content.
    fn replay(&mut self, held: &mut Vec<(u64, csv::StringRecord)>) {
        if held.is_empty() {
            return;
        }
        if self.columns.is_empty() {
            let rows: Vec<csv::StringRecord> = held.iter().map(|(_, record)| record.clone()).collect();
            if let Some((columns, words)) = guess_columns(&rows) {
                self.set_header(columns);
                let text = t!("the log has no header; columns were told by their content: {words}", words);
                self.samples.recording().warn("guessed-columns", text);
            }
        }
        for (line, record) in std::mem::take(held) {
            self.row(line, &record);
        }
    }

    /// Reads a row; `Some` when it has too few cells.
    fn row(&mut self, line: u64, record: &csv::StringRecord) -> Option<()> {
        let whole = record.iter().collect::<Vec<_>>().join(", ");
        if is_failure_line(&whole) {
            self.samples.gpu_failed(Device::default(), &whole);
            return None;
        }
        if record.len() < self.columns.len() || self.columns.is_empty() {
            if !whole.trim().is_empty() {
                self.samples.lose_row(line);
            }
            return Some(());
        }
        let cells = self.cells(record);
        let cell = |role: Role| {
            let index = self.columns.iter().position(|column| column.role == role)?;
            Some((cells.get(index)?.as_str(), self.columns[index].unit_bytes))
        };
        let text = |role: Role| cell(role).map_or("", |(text, _)| text).to_owned();
        let time = text(Role::Time);
        let bytes = |role: Role| cell(role).and_then(|(text, unit)| parse_cell(text, unit.unwrap_or(MIB)));
        let (used, total) = (bytes(Role::Used), bytes(Role::Total));
        let (free, reserved) = (bytes(Role::Free), bytes(Role::DriverReserved));
        let process_used = bytes(Role::ProcessUsed);
        let pid = text(Role::Pid).parse::<u64>().ok();
        let (name, process_name, uuid) = (text(Role::Name), text(Role::ProcessName), text(Role::Uuid));
        let gpu = if uuid.is_empty() { text(Role::BusId) } else { uuid.clone() };
        // rocm-smi writes `card0`.
        let index = text(Role::Index).trim_start_matches("card").parse::<i64>().ok();
        let failure = cells.iter().find(|cell| is_failure(cell)).cloned();
        let is_process = self.columns.iter().any(|column| column.role == Role::Pid);

        if let Some(stamp) = parse_stamp(&time) {
            self.samples.set_time(stamp);
        } else if !time.is_empty() || self.columns.iter().any(|column| column.role == Role::Time) {
            self.samples.lose_row(line);
            return None;
        }
        let same_sample = !time.is_empty() && time == self.last_time;
        self.same_time = if same_sample { self.same_time + 1 } else { 0 };
        self.last_time.clone_from(&time);
        let index = index.unwrap_or_else(|| match (gpu.is_empty() || is_missing(&gpu), is_process) {
            (false, _) => self.index_of(&gpu),
            (true, false) if !time.is_empty() => self.same_time,
            (true, _) => 0,
        });
        if time.is_empty() && index == 0 {
            self.samples.next_untimed();
        }
        let device = Device::cuda(index);
        self.samples.count_row();
        if let Some(failure) = failure {
            self.samples.gpu_failed(device, &format!("{device}: {failure}"));
        }
        let total_bytes = total.and_then(|bytes| u64::try_from(bytes).ok());
        self.samples.device(device, &name, &uuid, total_bytes);
        let derived = || Some(total? - free? - reserved.unwrap_or(0)).filter(|&bytes| bytes >= 0);
        if let Some(used) = used.or_else(derived) {
            self.samples.gpu(Quantity::DriverUsed, device, used);
        }
        if let Some(total) = total {
            self.samples.gpu(Quantity::Capacity, device, total);
        }
        if let Some(reserved) = reserved {
            self.samples.gpu(Quantity::Other(msg!("reserved by the driver").to_owned()), device, reserved);
        }
        if let (Some(pid), Some(bytes)) = (pid, process_used) {
            self.samples.process(device, pid, &process_name, bytes);
        }
        None
    }

    /// The cells; a process's name may hold commas, so surplus cells are part of it.
    fn cells(&self, record: &csv::StringRecord) -> Vec<String> {
        let mut cells: Vec<String> = record.iter().map(str::to_owned).collect();
        let surplus = cells.len().saturating_sub(self.columns.len());
        let name =
            self.columns.iter().position(|column| matches!(column.role, Role::ProcessName | Role::Name));
        if let (1.., Some(name)) = (surplus, name)
            && name + surplus < cells.len()
        {
            let joined = cells[name..=name + surplus].join(", ");
            cells.splice(name..=name + surplus, [joined]);
        }
        cells
    }

    fn index_of(&mut self, gpu: &str) -> i64 {
        let next = self.gpus.len() as i64;
        *self.gpus.entry(gpu.to_owned()).or_insert(next)
    }
}
