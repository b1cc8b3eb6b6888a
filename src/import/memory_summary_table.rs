//! The table of `torch.cuda.memory_summary()` and the counters of `memory_stats()`, wherever they stand in a text.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::{Device, MemorySummary, parse_bytes};

/// The title of a table.
const TITLE: &str = "memory summary, device ID";
/// A counter that `memory_stats()` always has.
const COUNTER: &str = "allocated_bytes.all.current";
/// The columns of a table.
const COLUMNS: [&str; 4] = ["Cur", "Peak", "Tot Alloc", "Tot Freed"];

/// A counter as JSON, as a Python dict or as an `OrderedDict` of pairs.
static STAT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"["'](?P<name>[a-z_]+\.(?:all|large_pool|small_pool)\.(?:current|peak|allocated|freed)|num_[a-z_]+|max_split_size)["']\s*[:,]\s*(?P<value>-?\d+)"#,
    )
    .ok()
});

static COUNTS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"OOMs: *(?P<ooms>\d+).*retries: *(?P<retries>\d+)").ok());

/// Whether a text has a table or counters.
pub(super) fn is_in(text: &str) -> bool {
    text.contains(TITLE) || text.contains(COUNTER)
}

/// Reads tables as lines come.
#[derive(Debug, Default)]
pub(super) struct TableReader {
    open: Option<MemorySummary>,
    metric: String,
}

impl TableReader {
    /// Takes a line; gives a summary when the line ends one. `true` when the line belongs to a table.
    pub(super) fn line(&mut self, number: u64, line: &str) -> (bool, Option<MemorySummary>) {
        if let Some(at) = line.find(TITLE) {
            let digits = line[at + TITLE.len()..].trim_start();
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            let device = Device::cuda(digits[..end].parse().unwrap_or(0));
            self.metric.clear();
            let next = MemorySummary { device, line: number, ..MemorySummary::default() };
            return (true, self.open.replace(next).filter(has_figures));
        }
        let Some(summary) = &mut self.open else { return (false, None) };
        // A prefix before the bar is a logger's.
        let Some(row) = line.find('|').map(|at| &line[at..]) else {
            return (false, self.finish());
        };
        if let Some(counts) = COUNTS.as_ref().and_then(|counts| counts.captures(row)) {
            summary.ooms = counts["ooms"].parse().ok();
            summary.alloc_retries = counts["retries"].parse().ok();
            return (true, None);
        }
        let cells: Vec<&str> = row.trim().trim_matches('|').split('|').map(str::trim).collect();
        if let [name, figures @ ..] = &cells[..]
            && figures.len() == COLUMNS.len()
            && !name.is_empty()
        {
            let metric = if let Some(pool) = name.strip_prefix("from ") {
                format!("{} / {pool}", self.metric)
            } else {
                (*name).clone_into(&mut self.metric);
                self.metric.clone()
            };
            for (column, cell) in COLUMNS.iter().zip(figures) {
                if let Some(value) = parse_figure(cell) {
                    set(summary, &metric, column, value);
                    let value = i64::try_from(value).unwrap_or(i64::MAX);
                    summary.figures.push((format!("{metric} / {column}"), value));
                }
            }
        }
        (true, None)
    }

    /// The table that was open when the text ended.
    pub(super) fn finish(&mut self) -> Option<MemorySummary> {
        self.open.take().filter(has_figures)
    }
}

fn has_figures(summary: &MemorySummary) -> bool {
    !summary.figures.is_empty()
}

/// `663533 KiB`, `812 K` (a count), `931`.
fn parse_figure(cell: &str) -> Option<u64> {
    let (number, unit) = cell.split_once(' ').unwrap_or((cell, ""));
    match unit.trim() {
        "K" => number.parse::<u64>().ok()?.checked_mul(1_000),
        "M" => number.parse::<u64>().ok()?.checked_mul(1_000_000),
        _ => parse_bytes(cell),
    }
}

fn set(summary: &mut MemorySummary, metric: &str, column: &str, value: u64) {
    let field = match (metric, column) {
        ("Allocated memory", "Cur") => &mut summary.allocated_bytes,
        ("Allocated memory", "Peak") => &mut summary.peak_allocated_bytes,
        ("Active memory", "Cur") => &mut summary.active_bytes,
        ("Requested memory", "Cur") => &mut summary.requested_bytes,
        ("GPU reserved memory" | "Reserved memory", "Cur") => &mut summary.reserved_bytes,
        ("GPU reserved memory" | "Reserved memory", "Peak") => &mut summary.peak_reserved_bytes,
        ("Non-releasable memory", "Cur") => &mut summary.inactive_split_bytes,
        ("Allocations", "Cur") => &mut summary.allocations,
        _ => return,
    };
    *field = Some(value);
}

/// The counters of `memory_stats()` in a text.
pub(super) fn stats(number: u64, text: &str) -> Option<MemorySummary> {
    if !text.contains(COUNTER) {
        return None;
    }
    let mut summary = MemorySummary { line: number, ..MemorySummary::default() };
    for found in STAT.as_ref()?.captures_iter(text) {
        let Ok(value) = found["value"].parse::<i64>() else { continue };
        let name = &found["name"];
        let field = match name {
            "allocated_bytes.all.current" => Some(&mut summary.allocated_bytes),
            "allocated_bytes.all.peak" => Some(&mut summary.peak_allocated_bytes),
            "active_bytes.all.current" => Some(&mut summary.active_bytes),
            "requested_bytes.all.current" => Some(&mut summary.requested_bytes),
            "reserved_bytes.all.current" => Some(&mut summary.reserved_bytes),
            "reserved_bytes.all.peak" => Some(&mut summary.peak_reserved_bytes),
            "inactive_split_bytes.all.current" => Some(&mut summary.inactive_split_bytes),
            "allocation.all.current" => Some(&mut summary.allocations),
            "num_alloc_retries" => Some(&mut summary.alloc_retries),
            "num_ooms" => Some(&mut summary.ooms),
            _ => None,
        };
        if let Some(field) = field {
            *field = u64::try_from(value).ok();
        }
        summary.figures.push((name.to_owned(), value));
    }
    (summary.allocated_bytes.is_some()).then_some(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_old_and_new_one_after_the_other() {
        let text = "\
INFO |===========================================================================|
|                  PyTorch CUDA memory summary, device ID 1                 |
|            CUDA OOMs: 2            |        cudaMalloc retries: 3         |
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
| Allocated memory      |   7587 MB  |  10137 MB  |   1931 GB  |   1923 GB  |
|       from large pool |   7360 MB  |   9833 MB  |   1873 GB  |   1865 GB  |
| GPU reserved memory   |  10444 MiB |  10444 MiB |  10444 MiB |      0 B   |
| Allocations           |    1042    |    1311    |     812 K  |     811 K  |
|===========================================================================|
|                  PyTorch CUDA memory summary, device ID 0                 |
| Allocated memory      |    512 B   |    512 B   |    512 B   |      0 B   |";
        let mut reader = TableReader::default();
        let mut summaries: Vec<MemorySummary> =
            text.lines().zip(1..).filter_map(|(line, number)| reader.line(number, line).1).collect();
        summaries.extend(reader.finish());
        assert_eq!(summaries.len(), 2);
        let first = &summaries[0];
        assert_eq!((first.device, first.ooms, first.alloc_retries), (Device::cuda(1), Some(2), Some(3)));
        assert_eq!(first.allocated_bytes, Some(7587 << 20));
        assert_eq!(first.peak_reserved_bytes, Some(10_444 << 20));
        assert_eq!(first.allocations, Some(1042));
        assert!(first.figures.contains(&("Allocated memory / large pool / Cur".to_owned(), 7360 << 20)));
        assert!(first.figures.contains(&("Allocations / Tot Alloc".to_owned(), 812_000)));
        assert_eq!(summaries[1].allocated_bytes, Some(512));
    }

    #[test]
    fn counters_as_json_and_as_python_prints_them() {
        for text in [
            r#"{"allocated_bytes.all.current": 679458304, "num_ooms": 1}"#,
            "OrderedDict([('allocated_bytes.all.current', 679458304), ('num_ooms', 1)])",
            "{'allocated_bytes.all.current': 679458304, 'num_ooms': 1}",
        ] {
            let summary = stats(1, text).unwrap();
            assert_eq!((summary.allocated_bytes, summary.ooms), (Some(679_458_304), Some(1)), "{text}");
        }
        assert_eq!(stats(1, "allocated_bytes"), None);
    }
}
