//! Which column of a CSV of nvidia-smi, rocm-smi or amd-smi is what: by its header, or by content where there is none.

use super::samples::{MIB, is_missing};
use crate::import::wall_time::parse_stamp;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Time,
    Index,
    Name,
    Uuid,
    BusId,
    Pid,
    ProcessName,
    ProcessUsed,
    Used,
    Free,
    Total,
    /// `memory.reserved`: what the driver keeps for itself.
    DriverReserved,
    /// Utilization, power, clocks and whatever else.
    Other,
}

impl Role {
    /// Whether the column tells how much memory is used.
    pub(super) fn is_memory(self) -> bool {
        matches!(self, Self::Used | Self::ProcessUsed | Self::Free)
    }

    fn words(self) -> &'static str {
        match self {
            Self::Time => "timestamp",
            Self::Index => "index",
            Self::Name => "name",
            Self::Uuid => "uuid",
            Self::BusId => "pci.bus_id",
            Self::Pid => "pid",
            Self::ProcessName => "process_name",
            Self::ProcessUsed => "used_memory",
            Self::Used => "memory.used",
            Self::Free => "memory.free",
            Self::Total => "memory.total",
            Self::DriverReserved => "memory.reserved",
            Self::Other => "other",
        }
    }
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub role: Role,
    /// What a bare number counts, from the header's `[MiB]`.
    pub unit_bytes: Option<i64>,
}

/// Names that only nvidia-smi's queries have: one of them makes a line a header.
const OWN_NAMES: &[&str] = &[
    "memory.used",
    "memory.free",
    "memory.total",
    "memory.reserved",
    "utilization.gpu",
    "utilization.memory",
    "temperature.gpu",
    "temperature.memory",
    "power.draw",
    "power.limit",
    "fan.speed",
    "gpu_uuid",
    "gpu_bus_id",
    "gpu_serial",
    "used_gpu_memory",
    "pci.bus_id",
    "driver_version",
    "clocks.sm",
    "clocks.mem",
    "clocks.gr",
    "clocks.current.sm",
    "clocks.current.memory",
    "clocks.current.graphics",
    "compute_mode",
    // rocm-smi --showmeminfo vram --csv
    "vram total memory (b)",
    "vram total used memory (b)",
    // amd-smi metric --mem-usage --csv
    "used_vram",
    "free_vram",
    // amd-smi monitor --vram-usage --csv
    "vram_used",
    "vram_free",
];

/// The columns of a header row; `None` for any other row. Wrappers' own columns may stand among nvidia-smi's.
pub(super) fn header_columns(record: &csv::StringRecord) -> Option<Vec<Column>> {
    let names: Vec<(String, Option<i64>)> = record.iter().map(split_unit).collect();
    let is_own = |name: &str| OWN_NAMES.contains(&name);
    let has_pid = names.iter().any(|(name, _)| name == "pid");
    let is_header = names.iter().any(|(name, _)| is_own(name))
        || has_pid && names.iter().any(|(name, _)| name == "used_memory");
    is_header.then(|| {
        let role = |name: &str| match name {
            "timestamp" | "time" | "date" | "datetime" => Role::Time,
            "index" | "gpu" | "gpu_index" | "device" => Role::Index,
            "name" if has_pid => Role::ProcessName,
            "name" | "gpu_name" | "card series" => Role::Name,
            "uuid" | "gpu_uuid" => Role::Uuid,
            "gpu_bus_id" | "pci.bus_id" => Role::BusId,
            "pid" => Role::Pid,
            "process_name" => Role::ProcessName,
            "used_memory" | "used_gpu_memory" => Role::ProcessUsed,
            "memory.used" | "vram total used memory (b)" | "used_vram" | "vram_used" => Role::Used,
            "memory.free" | "free_vram" | "vram_free" => Role::Free,
            "memory.total" | "vram total memory (b)" | "total_vram" | "vram_total" => Role::Total,
            "memory.reserved" => Role::DriverReserved,
            _ => Role::Other,
        };
        names.iter().map(|(name, unit)| Column { role: role(name), unit_bytes: *unit }).collect()
    })
}

/// `memory.used [MiB]` → (`memory.used`, MiB).
fn split_unit(cell: &str) -> (String, Option<i64>) {
    let (name, unit) = match cell.split_once('[') {
        Some((name, unit)) => (name, unit.trim_end().trim_end_matches(']')),
        None if cell.ends_with("(B)") => (cell, "B"),
        None => (cell, ""),
    };
    let unit_bytes = match unit {
        "B" => Some(1),
        "KiB" | "KB" => Some(1 << 10),
        "MiB" | "MB" => Some(MIB),
        "GiB" | "GB" => Some(1 << 30),
        _ => None,
    };
    (name.trim().to_ascii_lowercase(), unit_bytes)
}

/// The columns of rows without a header, and which they are in words. Only rows that show nvidia-smi's time stamp
/// (`2026/12/01 11:22:03.379`), a GPU's UUID or figures in MiB are taken for its.
pub(super) fn guess_columns(rows: &[csv::StringRecord]) -> Option<(Vec<Column>, String)> {
    let width = rows.iter().map(csv::StringRecord::len).filter(|&len| len >= 2).min()?;
    let rows: Vec<&csv::StringRecord> = rows.iter().filter(|row| row.len() >= width).collect();
    let cells =
        |column: usize| rows.iter().filter_map(move |row| row.get(column)).filter(|cell| !is_missing(cell));
    let all = |column: usize, test: &dyn Fn(&str) -> bool| {
        cells(column).next().is_some() && cells(column).all(test)
    };
    let number = |cell: &str| {
        let digits = cell.trim_end_matches("MiB").trim();
        let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit());
        is_whole.then(|| digits.parse::<i64>().ok()).flatten().filter(|&number| number < 1 << 40)
    };
    let mut roles = vec![Role::Other; width];
    let mut figures: Vec<(usize, Vec<i64>)> = Vec::new();
    let mut has_own_mark = false;
    for (column, role) in roles.iter_mut().enumerate() {
        let has_mib = all(column, &|cell| cell.ends_with("MiB"));
        has_own_mark |= has_mib;
        if all(column, &|cell| parse_stamp(cell).is_some() && cell.contains(':')) {
            *role = Role::Time;
            has_own_mark |= all(column, &|cell| cell.as_bytes().get(4) == Some(&b'/') && cell.contains('.'));
        } else if all(column, &|cell| cell.starts_with("GPU-") || cell.starts_with("MIG-")) {
            *role = Role::Uuid;
            has_own_mark = true;
        } else if all(column, &|cell| cell.len() >= 12 && cell.starts_with("0000") && cell.contains(':')) {
            *role = Role::BusId;
        } else if all(column, &|cell| number(cell).is_some()) && (has_mib || !all(column, &has_unit)) {
            figures.push((column, cells(column).filter_map(number).collect()));
        } else if all(column, &|cell| !cell.ends_with('%') && cell.chars().any(char::is_alphabetic)) {
            let is_product = |cell: &str| {
                ["NVIDIA", "Tesla", "GeForce", "Quadro", "RTX", "TITAN"]
                    .iter()
                    .any(|brand| cell.starts_with(brand))
            };
            if all(column, &is_product) {
                *role = Role::Name;
            } else if all(column, &|cell| !has_unit(cell)) {
                *role = Role::ProcessName;
            }
        }
    }
    let has_time = roles.contains(&Role::Time);
    if !has_own_mark || !has_time && !rows.iter().any(|row| row.iter().any(|cell| cell.ends_with("MiB"))) {
        return None;
    }
    guess_figures(&mut roles, &figures);
    if !roles.iter().any(|role| role.is_memory()) {
        return None;
    }
    let words: Vec<String> = roles
        .iter()
        .enumerate()
        .filter(|(_, role)| **role != Role::Other)
        .map(|(column, role)| format!("{} {}", column + 1, role.words()))
        .collect();
    let columns = roles.iter().map(|&role| Column { role, unit_bytes: Some(MIB) }).collect();
    Some((columns, words.join(", ")))
}

fn has_unit(cell: &str) -> bool {
    ["%", " W", " MHz", " C"].iter().any(|unit| cell.ends_with(unit))
}

/// Tells index, process id, total, used and free apart among columns of whole numbers.
fn guess_figures(roles: &mut [Role], figures: &[(usize, Vec<i64>)]) {
    let max = |values: &[i64]| values.iter().copied().max().unwrap_or(0);
    let is_level = |values: &[i64]| values.iter().all(|value| Some(value) == values.first());
    let is_process = roles.contains(&Role::ProcessName);
    let mut rest: Vec<&(usize, Vec<i64>)> = figures.iter().collect();
    // Process id and used memory: the id comes first in every query that people write.
    if is_process {
        if let [pid, used, ..] = rest[..] {
            roles[pid.0] = Role::Pid;
            roles[used.0] = Role::ProcessUsed;
        }
        return;
    }
    if let Some(at) = rest.iter().position(|(_, values)| max(values) < 16 && rest.len() > 1)
        && at == 0
    {
        roles[rest.remove(at).0] = Role::Index;
    }
    let total = rest
        .iter()
        .enumerate()
        .filter(|(_, (_, values))| is_level(values) && max(values) >= 512)
        .max_by_key(|(_, (_, values))| max(values))
        .map(|(at, _)| at);
    let Some(total) = total else {
        if let Some((column, _)) = rest.iter().max_by_key(|(_, values)| max(values)) {
            roles[*column] = Role::Used;
        }
        return;
    };
    let &(total_column, ref totals) = rest.remove(total);
    let total_mib = max(totals);
    // Used and free add up to the total but for what the driver keeps; used grows from the smaller side.
    let fits = |values: &[i64]| values.iter().all(|&value| value <= total_mib);
    let mut memory: Vec<&(usize, Vec<i64>)> = rest.into_iter().filter(|(_, values)| fits(values)).collect();
    let sums = |a: &[i64], b: &[i64]| {
        a.iter().zip(b).all(|(a, b)| a + b <= total_mib && (a + b) * 100 >= total_mib * 93)
    };
    for first in 0..memory.len() {
        for second in first + 1..memory.len() {
            if sums(&memory[first].1, &memory[second].1) {
                let (used, free) = if memory[first].1.first() <= memory[second].1.first() {
                    (first, second)
                } else {
                    (second, first)
                };
                roles[total_column] = Role::Total;
                roles[memory[used].0] = Role::Used;
                roles[memory[free].0] = Role::Free;
                return;
            }
        }
    }
    // Percentages stay at or below 100; used memory rarely does.
    memory.retain(|(_, values)| max(values) > 100);
    match memory.iter().max_by_key(|(_, values)| max(values)) {
        Some((column, _)) => {
            roles[total_column] = Role::Total;
            roles[*column] = Role::Used;
        }
        None => roles[total_column] = Role::Used,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(line: &str) -> csv::StringRecord {
        line.split(',').map(str::trim).collect::<Vec<_>>().into()
    }

    fn roles(rows: &[&str]) -> Option<Vec<Role>> {
        let rows: Vec<_> = rows.iter().map(|row| record(row)).collect();
        guess_columns(&rows).map(|(columns, _)| columns.iter().map(|column| column.role).collect())
    }

    #[test]
    fn headers_of_other_csvs_are_none() {
        assert!(header_columns(&record("timestamp, name, memory.used [MiB]")).is_some());
        assert!(header_columns(&record("pid, used_memory [MiB]")).is_some());
        for other in ["timestamp, name, value", "epoch, loss, memory", "pid, name, used"] {
            assert!(header_columns(&record(other)).is_none(), "{other}");
        }
    }

    #[test]
    fn columns_without_header_are_told_by_content() {
        use Role::{Free, Index, Name, Other, Pid, ProcessName, ProcessUsed, Time, Total, Used, Uuid};
        let gpu = [
            "2026/03/02 09:15:00.104, 0, NVIDIA H100, 97 %, 81559 MiB, 544 MiB, 80400 MiB",
            "2026/03/02 09:15:00.204, 0, NVIDIA H100, 90 %, 81559 MiB, 21544 MiB, 59400 MiB",
        ];
        assert_eq!(roles(&gpu), Some(vec![Time, Index, Name, Other, Total, Used, Free]));
        let no_units =
            ["2026/03/02 09:15:00.104, 0, 97, 544, 81559", "2026/03/02 09:15:00.204, 0, 12, 1544, 81559"];
        assert_eq!(roles(&no_units), Some(vec![Time, Index, Other, Used, Total]));
        let apps = ["2026/03/02 09:15:00.104, GPU-1c7e, 40213, /opt/bin/python, 20916 MiB"];
        assert_eq!(roles(&apps), Some(vec![Time, Uuid, Pid, ProcessName, ProcessUsed]));
        assert_eq!(roles(&["2026-03-02 09:15:00, 0, 12"]), None);
        assert_eq!(roles(&["a, b", "c, d"]), None);
    }
}
