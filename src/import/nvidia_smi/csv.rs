//! `--query-gpu` and `--query-compute-apps` with `--format=csv`, with any columns in any order.

use std::collections::BTreeMap;

use super::cells::{Time, bytes, is_missing, time};
use crate::import::Progress;
use crate::import::text::plain_line;
use crate::model::{
    Clock, Device, DeviceInfo, Marker, MarkerKind, Quantity, Recording, Series, SourceKind, StackId,
    format_count,
};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Time,
    Index,
    Name,
    Uuid,
    Pid,
    ProcessName,
    Used,
    ProcessUsed,
    Total,
    Other,
}

/// The columns of a log, with their units.
#[derive(Clone, Debug, Default, PartialEq)]
struct Layout {
    columns: Vec<(Column, String)>,
}

impl Layout {
    /// From a header line, `timestamp, index, memory.used [MiB]`.
    fn from_header(line: &str) -> Option<Self> {
        let columns: Vec<(Column, String)> = split(line).map(column_of).collect();
        let known = columns.iter().filter(|(column, _)| *column != Column::Other).count();
        // One known word could be any CSV's: a time or an index is none of nvidia-smi's own.
        let is_own = line.contains("memory.")
            || line.contains("utilization.")
            || line.contains("used_gpu_memory")
            || line.contains("gpu_uuid")
            || line.contains("gpu_bus_id")
            || line.contains("temperature.gpu");
        (is_own && known >= 1).then_some(Self { columns })
    }

    /// Guesses the columns of a row without a header: times, indices, names and UUIDs show themselves; of the figures
    /// in MiB the pair with the larger constant one is used and total.
    fn from_row(line: &str) -> Option<Self> {
        let cells: Vec<&str> = split(line).collect();
        let has_pid = cells.iter().any(|cell| cell.starts_with("GPU-"))
            && cells.len() >= 4
            && cells.iter().any(|cell| cell.contains('/') && time(cell).is_none());
        let mut columns: Vec<(Column, String)> = Vec::new();
        let mut memory = Vec::new();
        for (position, cell) in cells.iter().enumerate() {
            let is_number = !cell.is_empty() && cell.bytes().all(|byte| byte.is_ascii_digit());
            let column = if time(cell).is_some() {
                Column::Time
            } else if cell.starts_with("GPU-") || cell.starts_with("MIG-") {
                Column::Uuid
            } else if ["NVIDIA", "Tesla", "GeForce", "Quadro", "RTX", "A100", "H100"]
                .iter()
                .any(|brand| cell.starts_with(brand))
            {
                Column::Name
            } else if cell.ends_with("MiB") {
                memory.push((position, bytes(cell, "MiB").unwrap_or(0)));
                Column::Other
            } else if has_pid && is_number {
                Column::Pid
            } else if has_pid && cell.contains('/') {
                Column::ProcessName
            } else if is_number
                && cell.len() <= 2
                && !columns.iter().any(|(column, _)| *column == Column::Index)
            {
                Column::Index
            } else {
                Column::Other
            };
            columns.push((column, "MiB".to_owned()));
        }
        if has_pid {
            columns[memory.last()?.0].0 = Column::ProcessUsed;
        } else {
            let &(total_at, total) =
                memory.iter().max_by_key(|(position, bytes)| (*bytes, usize::MAX - *position))?;
            let used_at =
                memory.iter().find(|(position, _)| *position != total_at).map(|(position, _)| *position);
            match used_at {
                Some(used_at) if total > 0 => {
                    columns[used_at].0 = Column::Used;
                    columns[total_at].0 = Column::Total;
                }
                _ => columns[total_at].0 = Column::Used,
            }
        }
        columns.iter().any(|(column, _)| *column == Column::Time).then_some(Self { columns })
    }

    fn has(&self, column: Column) -> bool {
        self.columns.iter().any(|(known, _)| *known == column)
    }

    fn position(&self, column: Column) -> Option<usize> {
        self.columns.iter().position(|(known, _)| *known == column)
    }

    /// The cells of a row, or `None` when it has too few. A process name may hold commas: what is too much is its.
    fn cells<'a>(&self, line: &'a str) -> Option<Vec<&'a str>> {
        let cells: Vec<&str> = split(line).collect();
        match cells.len().checked_sub(self.columns.len())? {
            0 => Some(cells),
            surplus => {
                let name = self.position(Column::ProcessName).or_else(|| self.position(Column::Name))?;
                let mut joined = cells.clone();
                joined.drain(name + 1..=name + surplus);
                Some(joined)
            }
        }
    }
}

fn split(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(str::trim)
}

fn column_of(header: &str) -> (Column, String) {
    let (name, unit) = match header.split_once('[') {
        Some((name, unit)) => (name.trim(), unit.trim_end_matches(']').trim()),
        None => (header, ""),
    };
    let column = match name.to_ascii_lowercase().as_str() {
        "timestamp" => Column::Time,
        "index" | "gpu" => Column::Index,
        "name" | "gpu_name" => Column::Name,
        "uuid" | "gpu_uuid" => Column::Uuid,
        "pid" => Column::Pid,
        "process_name" => Column::ProcessName,
        "memory.used" => Column::Used,
        "used_memory" | "used_gpu_memory" => Column::ProcessUsed,
        "memory.total" => Column::Total,
        _ => Column::Other,
    };
    (column, unit.to_owned())
}

/// Whether a line is the header of such a log.
pub(super) fn is_header(line: &str) -> bool {
    line.contains(',') && Layout::from_header(line).is_some()
        || matches!(line.trim(), "memory.used [MiB]" | "memory.used")
}

/// Whether a line is a row of a log without a header.
pub(super) fn is_row(line: &str) -> bool {
    line.contains(',') && line.contains("MiB") && Layout::from_row(line).is_some()
}

#[derive(Default)]
struct Curves {
    series: BTreeMap<(u8, i64, u64), Series>,
}

impl Curves {
    fn push(&mut self, key: (u8, i64, u64), new: impl FnOnce() -> Series, time_ns: i64, bytes: i64) {
        self.series.entry(key).or_insert_with(new).push(time_ns, bytes);
    }
}

/// Reads a log. The error says what is missing.
pub(super) fn read(text: &str, progress: &Progress) -> Result<Recording, String> {
    let mut recording = Recording::new(SourceKind::NvidiaSmi, "nvidia-smi CSV", Clock::LocalWall);
    let mut layout: Option<Layout> = None;
    let mut curves = Curves::default();
    let mut uuids: Vec<String> = Vec::new();
    let mut rows = 0_u64;
    let mut faults = 0_u64;
    let mut steps_back = 0_u64;
    let mut last_ns = None;
    let mut memory_column_seen = false;
    let (mut first_ns, mut end_ns) = (i64::MAX, i64::MIN);
    let mut unfold_ns = 0_i64;
    for (number, line) in text.lines().enumerate() {
        if number % 4096 == 0 && progress.is_cancelled() {
            break;
        }
        let line = plain_line(line);
        if line.trim().is_empty() {
            continue;
        }
        if let Some(of_header) = Layout::from_header(&line) {
            memory_column_seen |= of_header.has(Column::Used) || of_header.has(Column::ProcessUsed);
            layout = Some(of_header);
            continue;
        }
        if layout.is_none() {
            layout = Layout::from_row(&line);
            if layout.is_some() {
                memory_column_seen = true;
                recording.warn(
                    "guessed-columns",
                    "the log has no header: its columns were recognised by their content",
                );
            }
        }
        let Some(of_log) = &layout else { continue };
        if let Some(text) = driver_fault(&line) {
            let time_ns = last_ns.unwrap_or(0);
            recording.markers.push(Marker {
                time_ns,
                device: Device::default(),
                kind: MarkerKind::GpuLost,
                text,
                stack: StackId::EMPTY,
            });
            continue;
        }
        let Some(cells) = of_log.cells(&line) else {
            faults += 1;
            recording.lost.first_at.get_or_insert(number as u64 + 1);
            continue;
        };
        let cell = |column: Column| of_log.position(column).and_then(|position| cells.get(position).copied());
        let time_ns = match cell(Column::Time).map(time) {
            Some(Some(Time::Local(time_ns))) => time_ns,
            Some(Some(Time::Unix(time_ns))) => {
                recording.clock = Clock::Unix;
                time_ns
            }
            Some(None) => {
                faults += 1;
                recording.lost.first_at.get_or_insert(number as u64 + 1);
                continue;
            }
            None => {
                recording.clock = Clock::Order;
                rows as i64 * 1_000_000_000
            }
        };
        // Clocks that go back an hour in the night when summer ends.
        let mut time_ns = time_ns + unfold_ns;
        if let Some(last_ns) = last_ns
            && last_ns - time_ns > 1_800_000_000_000
        {
            steps_back += 1;
            let hours = (last_ns - time_ns + 1_799_999_999_999) / 3_600_000_000_000;
            unfold_ns += hours.max(1) * 3_600_000_000_000;
            time_ns += hours.max(1) * 3_600_000_000_000;
        }
        let time_ns = last_ns.map_or(time_ns, |last_ns: i64| time_ns.max(last_ns));
        last_ns = Some(time_ns);
        rows += 1;
        (first_ns, end_ns) = (first_ns.min(time_ns), end_ns.max(time_ns));
        let unit = |column: Column| {
            of_log.position(column).map_or("", |position| of_log.columns[position].1.as_str())
        };

        let index = match cell(Column::Index).and_then(|cell| cell.parse::<i64>().ok()) {
            Some(index) => index,
            None => match cell(Column::Uuid) {
                Some(uuid) if !uuid.is_empty() => {
                    uuids.iter().position(|known| known == uuid).unwrap_or_else(|| {
                        uuids.push(uuid.to_owned());
                        uuids.len() - 1
                    }) as i64
                }
                _ => 0,
            },
        };
        let device = Device::cuda(index);
        if !recording.devices.iter().any(|info| info.device == device) {
            recording.devices.push(DeviceInfo {
                device,
                name: cell(Column::Name).filter(|name| !is_missing(name)).unwrap_or("").to_owned(),
                total_bytes: cell(Column::Total)
                    .and_then(|cell| bytes(cell, unit(Column::Total)))
                    .map(|bytes| bytes as u64),
                uuid: cell(Column::Uuid).unwrap_or("").to_owned(),
            });
        }
        if let Some(used) = cell(Column::Used).and_then(|cell| bytes(cell, unit(Column::Used))) {
            curves.push((0, index, 0), || Series::new(Quantity::DriverUsed, device, false), time_ns, used);
        }
        if let Some(total) = cell(Column::Total).and_then(|cell| bytes(cell, unit(Column::Total))) {
            curves.push((1, index, 0), || Series::new(Quantity::Capacity, device, true), time_ns, total);
        }
        if let Some(used) = cell(Column::ProcessUsed).and_then(|cell| bytes(cell, unit(Column::ProcessUsed)))
            && let Some(pid) = cell(Column::Pid).and_then(|cell| cell.parse::<u64>().ok())
        {
            let name = cell(Column::ProcessName).unwrap_or("");
            let new = || Series {
                pid: Some(pid),
                process_name: if is_missing(name) { String::new() } else { name.to_owned() },
                ..Series::new(Quantity::ProcessUsed, device, false)
            };
            curves.push((2, index, pid), new, time_ns, used);
        }
    }
    if !memory_column_seen {
        return Err(
            "the log has no memory column: query memory.used (or used_memory with --query-compute-apps)"
                .to_owned(),
        );
    }
    recording.events = rows;
    recording.lost.events = faults;
    recording.series = curves.series.into_values().collect();
    if rows > 0 {
        recording.span =
            Some(crate::model::TimeRange { start_ns: first_ns, end_ns: end_ns.saturating_add(1) });
    }
    if recording.series.iter().all(Series::is_empty) {
        recording.warn("no-figures", "no row of the log has a memory figure");
    }
    if faults > 0 {
        let first = recording.lost.first_at.unwrap_or(0);
        recording.warn(
            "odd-lines",
            format!("{} lines could not be read, the first is line {first}", format_count(faults)),
        );
    }
    if steps_back > 0 {
        recording.warn(
            "clock-steps-back",
            "the clock goes back within the log (summer time ends?): times after that were moved on",
        );
    }
    Ok(recording)
}

/// What the driver says when it fails, in the middle of a log.
fn driver_fault(line: &str) -> Option<String> {
    let starts = [
        "Unable to determine the device handle",
        "NVIDIA-SMI has failed",
        "Failed to initialize NVML",
        "GPU is lost",
    ];
    starts.iter().any(|start| line.contains(start)).then(|| line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(text: &str) -> Recording {
        read(text, &Progress::default()).unwrap()
    }

    #[test]
    fn devices_and_gaps() {
        let log = recording(
            "timestamp, index, name, memory.used [MiB], memory.total [MiB], utilization.gpu [%]\r\n\
             2026/03/02 09:15:00.104, 0, NVIDIA H100 80GB HBM3, 21544 MiB, 81559 MiB, 97 %\r\n\
             2026/03/02 09:15:00.107, 1, NVIDIA H100 80GB HBM3, [N/A], [N/A], [GPU requires reset]\r\n\
             Unable to determine the device handle for GPU0000:5A:00.0: Unknown Error\r\n\
             2026/03/02 09:15:01.104, 0, NVIDIA H100 80GB HBM3, 21546 MiB, 81559 MiB, 97 %\r\n\
             2026/03/02 09:15:01.1",
        );
        let used = log.series.iter().find(|series| series.quantity == Quantity::DriverUsed).unwrap();
        assert_eq!(used.bytes, [21_544 << 20, 21_546 << 20]);
        assert_eq!(used.times_ns[1] - used.times_ns[0], 1_000_000_000);
        assert_eq!((log.events, log.lost.events, log.markers.len(), log.devices.len()), (3, 1, 1, 2));
    }

    #[test]
    fn processes_with_commas_in_their_names() {
        let log = recording(
            "timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n\
             2026/03/02 09:15:00.110, GPU-1c7e, 40213, /opt/a,b/python, 20916 MiB\n\
             2026/03/02 09:15:00.110, GPU-1c7e, 40377, [Insufficient Permissions], [N/A]\n",
        );
        assert_eq!(log.series.len(), 1);
        assert_eq!((log.series[0].pid, log.series[0].bytes[0]), (Some(40_213), 20_916 << 20));
        assert_eq!(log.series[0].process_name, "/opt/a");
    }

    #[test]
    fn rows_without_a_header_are_recognised() {
        let log = recording(
            "2026/03/02 09:15:00.104, 0, NVIDIA H100, 81559 MiB, 500 MiB\n2026/03/02 09:15:01.104, 0, NVIDIA H100, 81559 MiB, 600 MiB\n",
        );
        let used = log.series.iter().find(|series| series.quantity == Quantity::DriverUsed).unwrap();
        assert_eq!(used.bytes, [500 << 20, 600 << 20]);
    }

    #[test]
    fn a_log_without_memory_says_what_to_query() {
        let error =
            read("timestamp, utilization.gpu [%]\n2026/03/02 09:15:00.104, 5 %\n", &Progress::default())
                .unwrap_err();
        assert!(error.contains("query memory.used"), "{error}");
    }
}
