//! Training logs: any text with printed memory figures, with or without times, and out-of-memory messages.

mod figures;
mod metrics_csv;
mod reading;

use regex::Regex;

pub use metrics_csv::MetricsCsvImporter;
pub(super) use reading::read;

use super::text::{clean_head, lines, read_text, without_prefix};
use super::{Head, ImportError, Importer, Input, Progress, oom_message};
use crate::model::Recording;

/// The name of the importer.
pub(super) const NAME: &str = "training log";

/// Reads training logs with printed memory figures.
pub struct TrainingLogImporter;

impl Importer for TrainingLogImporter {
    fn name(&self) -> &'static str {
        NAME
    }

    fn detect(&self, head: &Head<'_>) -> bool {
        // The zero bytes of UTF-16 are gone from the text; others are of a binary file.
        let text = clean_head(head);
        let is_text = !text.contains('\u{fffd}') && !text.contains(|c: char| c < '\u{8}');
        // A JSON document is none, but a log may hold a JSON object a line, or begin with `[rank0]`.
        let start = text.trim_start();
        let is_list = start.strip_prefix('[').is_some_and(|rest| {
            rest.trim_start().is_empty() || rest.trim_start().starts_with(['{', '[', '"', ']'])
        });
        let is_object = start.starts_with('{')
            && !start.lines().next().is_some_and(|line| line.trim_end().ends_with('}'));
        let is_document = is_list || is_object;
        is_text && !is_document && has_figures(&text)
    }

    fn import(&self, input: &Input, progress: &Progress) -> Result<Recording, ImportError> {
        read(input, progress, &read_text(input, progress)?, None)
    }
}

/// Reads a log by a pattern that the user set: a regular expression with groups named `allocated`, `reserved`,
/// `max_allocated`, `max_reserved` or `mem`, and `step`, or with one group for allocated memory.
///
/// # Errors
/// When no line has what the pattern looks for.
pub fn import_with_pattern(
    input: &Input,
    pattern: &Regex,
    progress: &Progress,
) -> Result<Recording, ImportError> {
    read(input, progress, &read_text(input, progress)?, Some(pattern))
}

/// One figure after a word that leaves no doubt, or an out-of-memory message; or several lines with the same weaker
/// word. A single mention of memory in a text makes no log.
fn has_figures(text: &str) -> bool {
    let mut words: Vec<(String, u64)> = Vec::new();
    for (_, line) in lines(text) {
        if line.split_whitespace().any(|word| word == "GPU_mem") || oom_message::parse(line).is_some() {
            return true;
        }
        for figure in figures::find_figures(without_prefix(line)) {
            if figure.is_strong {
                return true;
            }
            match words.iter_mut().find(|(word, _)| *word == figure.word) {
                Some((_, count)) if *count >= 2 => return true,
                Some((_, count)) => *count += 1,
                None => words.push((figure.word, 1)),
            }
        }
    }
    words.iter().any(|(_, count)| *count >= 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::import;
    use crate::model::{Clock, MarkerKind, Quantity, SourceKind};

    fn read_bytes(bytes: &[u8]) -> Recording {
        import(&Input::from_bytes("train.log", bytes.to_vec()), &Progress::default()).unwrap()
    }

    fn bytes_of(recording: &Recording, quantity: &Quantity) -> Vec<i64> {
        recording.series.iter().find(|series| series.quantity == *quantity).unwrap().bytes.clone()
    }

    const MIB: i64 = 1 << 20;

    #[test]
    fn lines_with_whole_seconds_are_spread() {
        let log = read_bytes(
            b"2026-12-01 11:22:04 INFO step 0  memory_allocated: 1.0 MiB  max_memory_allocated: 3.0 MiB\n\
              2026-12-01 11:22:04 INFO step 1  memory_allocated: 2.0 MiB  max_memory_allocated: 3.0 MiB\n\
              2026-12-01 11:22:05 INFO step 2  memory_allocated: 1.0 MiB  max_memory_allocated: 3.0 MiB\n",
        );
        assert_eq!((log.kind, log.clock), (SourceKind::TrainingLog, Clock::LocalWall));
        let allocated = &log.series[0];
        assert_eq!(allocated.bytes, [MIB, 2 * MIB, MIB]);
        let start_ns = 1_796_124_124_000_000_000;
        let after: Vec<i64> = allocated.times_ns.iter().map(|time_ns| time_ns - start_ns).collect();
        assert_eq!(after, [0, 500_000_000, 1_000_000_000]);
        assert_eq!(bytes_of(&log, &Quantity::PeakAllocated), [3 * MIB; 3]);
        let names: Vec<&str> = log.annotations.iter().map(|one| log.strings.get(one.name)).collect();
        assert_eq!(names, ["step#0", "step#1", "step#2"]);
        assert!(log.facts.iter().any(|(name, text)| {
            name == "recognised" && text == "line 1: step 0, allocated 1.00 MiB, peak allocated 3.00 MiB"
        }));
    }

    #[test]
    fn a_progress_bar_is_a_relative_clock_that_starts_again() {
        let log = read_bytes(
            b" 10%|#  | 1/10 [00:01<00:09, mem=5.0G]\r 20%|## | 2/10 [00:02<00:08, mem=6.0G]\r\n\
              \x1b[32m 10%|#  | 1/10 [00:01<00:09, mem=7.0G]\x1b[0m\r\n",
        );
        assert_eq!(log.clock, Clock::Relative);
        assert_eq!(bytes_of(&log, &Quantity::Other("mem".to_owned())), [5 << 30, 6 << 30, 7 << 30]);
        assert_eq!(log.series[0].times_ns, [1_000_000_000, 2_000_000_000, 2_000_000_000]);
    }

    #[test]
    fn ranks_without_times_and_an_error() {
        let log = read_bytes(
            b"[rank1] step=0 torch.cuda.memory_allocated=135328256 reserved=167772160\n\
              [rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 14.00 MiB. GPU 0 has a total capacity of 8.00 GiB of which 1.00 GiB is free.\n",
        );
        assert_eq!((log.clock, log.process.rank), (Clock::Order, Some(1)));
        assert_eq!(bytes_of(&log, &Quantity::Reserved), [167_772_160]);
        assert!(matches!(
            log.markers[0].kind,
            MarkerKind::OutOfMemory { requested_bytes: Some(14_680_064), .. }
        ));
    }

    #[test]
    fn a_table_of_epochs_counts_reserved_memory() {
        let log = read_bytes(
            b"      Epoch    GPU_mem   box_loss  Instances       Size\n\
              \x20       1/2      6.25G      1.234         12        640: 100%\n\
              \x20       2/2       512M      1.134         12        640: 100%\n",
        );
        assert_eq!(bytes_of(&log, &Quantity::Reserved), [25 << 28, 512 << 20]);
    }

    #[test]
    fn a_pattern_of_the_users() {
        let input = Input::from_bytes("x.log", b"used 12.5 GB now\nnothing\nused 13 GB now\n".to_vec());
        let pattern = Regex::new(r"used ([\d.]+ GB)").unwrap();
        let log = import_with_pattern(&input, &pattern, &Progress::default()).unwrap();
        assert_eq!(bytes_of(&log, &Quantity::Allocated), [25 << 29, 13 << 30]);
        assert!(import_with_pattern(&input, &Regex::new("(absent)").unwrap(), &Progress::default()).is_err());
        let input = Input::from_bytes("x.log", b"it 7: 12.5G, 13G\nit 8: 12.5G, 14G\n".to_vec());
        let pattern = Regex::new(r"it (?P<step>\d+): (?P<allocated>\S+), (?P<reserved>\S+)").unwrap();
        let log = import_with_pattern(&input, &pattern, &Progress::default()).unwrap();
        assert_eq!(bytes_of(&log, &Quantity::Reserved), [13 << 30, 14 << 30]);
        let names: Vec<&str> = log.annotations.iter().map(|one| log.strings.get(one.name)).collect();
        assert_eq!(names, ["step#7", "step#8"]);
    }

    #[test]
    fn text_that_only_mentions_memory_is_refused() {
        for text in ["A machine with memory 16 GB is enough.\n", "hello\n", "{\"mem\": 5}\n"] {
            let input = Input::from_bytes("x.txt", text.as_bytes().to_vec());
            assert!(import(&input, &Progress::default()).is_err(), "{text}");
        }
    }
}
