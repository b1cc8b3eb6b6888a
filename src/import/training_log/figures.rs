//! Memory figures, step numbers and ranks in a line of a log.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::model::{Quantity, parse_bytes};

const MIB: f64 = (1_u64 << 20) as f64;
const GIB: f64 = (1_u64 << 30) as f64;

/// Words before a figure, the longer first; then up to 24 characters without digits; then the figure and its unit.
static FIGURE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let mem = r"mem(?:ory)?";
    let sep = r"[ _.-]?";
    let gpu = format!("(?:(?:gpu|cuda){sep})?");
    let peak_reserved = format!(
        r"max_memory_(?:reserved|cached)|(?:max|peak){sep}(?:{mem}{sep})?(?:reserved|cached)|(?-i:Max_CA)|reserved_bytes\.all\.peak"
    );
    let peak_allocated = format!(
        r"(?:max|peak){sep}(?:(?:gpu|cuda){sep})?(?:{mem}|vram)(?:{sep}(?:alloc(?:ated)?|usage|used))?|(?:max|peak){sep}alloc(?:ated)?|{mem}{sep}(?:peak|max)|(?-i:Max_MA)|allocated_bytes\.all\.peak|peak"
    );
    let reserved = format!(
        r"{gpu}(?:{mem}{sep})?(?:reserved|cached)(?:{sep}{mem})?|(?-i:CA)|GPU_mem|reserved_bytes\.all\.current"
    );
    let allocated =
        format!(r"{gpu}(?:{mem}{sep})?alloc(?:ated)?(?:{sep}{mem})?|(?-i:MA)|allocated_bytes\.all\.current");
    let other = format!(r"(?:(?:gpu|cuda|vram){sep})?{mem}(?:{sep}(?:usage|used))?|vram");
    let figure = r"[^0-9\n|,;%]{0,24}?(?P<number>\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?)(?: ?(?P<unit>[kmgt]i?b|[kmgt]|bytes|b))?";
    Regex::new(&format!(
        r"(?i)(?:^|[^a-z])(?P<word>(?P<pr>{peak_reserved})|(?P<pa>{peak_allocated})|(?P<r>{reserved})|(?P<a>{allocated})|(?P<o>{other})){figure}"
    ))
    .ok()
});

/// A unit for a whole line, as Megatron writes it: `memory (MB) | allocated: 1234.0`.
static LINE_UNIT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)[(\[](?P<unit>[kmgt]i?b|bytes|b)[)\]]").ok());

static STEP: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)(?:^|[^a-z])(?:global[_ ]?step|steps?|iteration|iter|it|batch)["']?[\s:=#\[(]*(?P<a>\d{1,12})(?:[^\d.]|$)|after (?P<b>\d{1,12}) iterations?|(?:^|\s)(?P<c>\d{1,12})/\d+ \["#,
    )
    .ok()
});

static EPOCH: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?i)(?:^|[^a-z])epoch["']?[\s:=#\[(]*(?P<n>\d{1,9})(?:[^\d.]|$)"#).ok());

static RANK: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?i)(?:^|[^a-z])rank["']?[\s:=_-]*(?P<n>\d{1,6})(?:[^\d.]|$)"#).ok());

/// A memory figure.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    pub quantity: Quantity,
    /// The word before it, as it stands there.
    pub word: String,
    pub bytes: i64,
    /// Whether the word can mean nothing else, such as `memory_allocated`.
    pub is_strong: bool,
    /// Whether the unit was guessed from the figure's size.
    pub is_guess: bool,
}

/// The figures of a line, in their order.
pub(super) fn find_figures(line: &str) -> Vec<Figure> {
    let mut figures = Vec::new();
    let Some(regex) = FIGURE.as_ref() else { return figures };
    let mut at = 0;
    let mut unit_of_line = None;
    while let Some(found) = regex.captures_at(line, at) {
        let Some(word) = found.name("word") else { break };
        let line_unit = || *unit_of_line.get_or_insert_with(|| line_unit(line));
        match figure_of(line, &found, line_unit) {
            Some(figure) => {
                at = found.get(0).map_or(line.len(), |all| all.end());
                figures.push(figure);
            }
            None => at = word.end(),
        }
    }
    figures
}

fn figure_of<'l>(
    line: &str,
    found: &Captures<'_>,
    line_unit: impl FnOnce() -> Option<&'l str>,
) -> Option<Figure> {
    let word = found.name("word")?.as_str();
    let lower = word.to_ascii_lowercase();
    let quantity = if found.name("pr").is_some() {
        Quantity::PeakReserved
    } else if found.name("pa").is_some() {
        Quantity::PeakAllocated
    } else if found.name("r").is_some() {
        Quantity::Reserved
    } else if found.name("a").is_some() {
        Quantity::Allocated
    } else {
        Quantity::Other(lower.replace('_', " "))
    };
    let is_strong = ["memory_allocated", "memory_reserved", "memory_cached", "bytes.all."]
        .iter()
        .any(|known| lower.contains(known));
    let number = found.name("number")?;
    let all_end = found.get(0)?.end();
    let next = line[all_end..].chars().next();
    let is_glued = next.is_some_and(|c| c.is_alphanumeric() || c == '%' || c == ':');
    let (bytes, is_guess) = match found.name("unit") {
        Some(unit) if !is_glued => {
            (i64::try_from(parse_bytes(&format!("{} {}", number.as_str(), unit.as_str()))?).ok()?, false)
        }
        // `mem 5 build`: the letter belongs to the next word; `80%` or `12:30` is no figure.
        Some(_) => return None,
        None if is_glued => return None,
        None => without_unit(number.as_str(), line_unit(), is_strong)?,
    };
    Some(Figure { quantity, word: word.to_owned(), bytes, is_strong, is_guess })
}

fn line_unit(line: &str) -> Option<&str> {
    Some(LINE_UNIT.as_ref()?.captures(line)?.name("unit")?.as_str())
}

/// A bare number: in the line's unit; else bytes when it is large; else, after a word that leaves no doubt, as people
/// divide: below 100 with decimals by 1024³, otherwise by 1024².
pub(super) fn without_unit(number: &str, line_unit: Option<&str>, is_strong: bool) -> Option<(i64, bool)> {
    if let Some(unit) = line_unit {
        return Some((i64::try_from(parse_bytes(&format!("{number} {unit}"))?).ok()?, false));
    }
    let value: f64 = number.replace(',', "").parse().ok()?;
    let is_whole = !number.contains('.');
    if !(0.0..1e15).contains(&value) {
        return None;
    }
    match (value >= 1e6, is_strong) {
        (true, _) => Some((value.round() as i64, false)),
        (false, false) => None,
        (false, true) if value == 0.0 => Some((0, false)),
        (false, true) if !is_whole && value < 100.0 => Some(((value * GIB).round() as i64, true)),
        (false, true) => Some(((value * MIB).round() as i64, true)),
    }
}

fn number_of(regex: Option<&Regex>, line: &str) -> Option<i64> {
    let found = regex?.captures(line)?;
    found.iter().skip(1).flatten().find_map(|group| group.as_str().parse().ok())
}

/// The step or iteration that a line names.
pub(super) fn find_step(line: &str) -> Option<i64> {
    number_of(STEP.as_ref(), line)
}

/// The epoch that a line names.
pub(super) fn find_epoch(line: &str) -> Option<i64> {
    number_of(EPOCH.as_ref(), line)
}

/// The rank that a line names.
pub(super) fn find_rank(line: &str) -> Option<u32> {
    number_of(RANK.as_ref(), line).and_then(|rank| u32::try_from(rank).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use Quantity::{Allocated, Other, PeakAllocated, PeakReserved, Reserved};

    fn figures(line: &str) -> Vec<(Quantity, i64)> {
        find_figures(line).into_iter().map(|figure| (figure.quantity, figure.bytes)).collect()
    }

    fn mib(value: f64) -> i64 {
        (value * MIB).round() as i64
    }

    #[test]
    fn lines_of_people_and_frameworks() {
        for (line, expected) in [
            (
                "step    0  loss 2.2881  memory_allocated: 491.6 MiB  memory_reserved: 886.0 MiB  max_memory_allocated: 698.5 MiB",
                vec![(Allocated, mib(491.6)), (Reserved, mib(886.0)), (PeakAllocated, mib(698.5))],
            ),
            (
                "[rank1] step=0 torch.cuda.memory_allocated=135328256 reserved=167772160",
                vec![(Allocated, 135_328_256), (Reserved, 167_772_160)],
            ),
            ("eta: 0:01:02  iter: 19  total_loss: 2.1  max_mem: 7213M", vec![(PeakAllocated, mib(7213.0))]),
            (
                "MA 4.2 GB         Max_MA 4.3 GB         CA 5.1 GB         Max_CA 5 GB",
                vec![
                    (Allocated, mib(4.2 * 1024.0)),
                    (PeakAllocated, mib(4.3 * 1024.0)),
                    (Reserved, mib(5.1 * 1024.0)),
                    (PeakReserved, mib(5.0 * 1024.0)),
                ],
            ),
            (
                "[Rank 0] (after 2 iterations) memory (MB) | allocated: 1234.0 | max allocated: 2345.5 | reserved: 3000.0 | max reserved: 3000.0",
                vec![
                    (Allocated, mib(1234.0)),
                    (PeakAllocated, mib(2345.5)),
                    (Reserved, mib(3000.0)),
                    (PeakReserved, mib(3000.0)),
                ],
            ),
            (
                "step 120 | loss 2.318 | mem 7.5 GB | peak 9.5 GB",
                vec![(Other("mem".to_owned()), mib(7.5 * 1024.0)), (PeakAllocated, mib(9.5 * 1024.0))],
            ),
            ("Current memory: 6413632512", vec![(Other("memory".to_owned()), 6_413_632_512)]),
            ("epoch 3, loss=0.5, mem=5.5G]", vec![(Other("mem".to_owned()), mib(5.5 * 1024.0))]),
            (r#"{"step": 3, "memory_allocated": 7956733952}"#, vec![(Allocated, 7_956_733_952)]),
            ("memory_allocated: 4.5", vec![(Allocated, mib(4.5 * 1024.0))]),
            ("memory_allocated 812", vec![(Allocated, mib(812.0))]),
        ] {
            assert_eq!(figures(line), expected, "{line}");
        }
    }

    #[test]
    fn other_text_has_no_figures() {
        for line in [
            "the memory of 5 people",
            "memory usage 80%",
            "mem 12:30",
            "allocated 3 workers",
            "reserved seats: 12",
            "remember 500 MB of film",
            "step 120 loss 2.318",
        ] {
            assert_eq!(figures(line), [], "{line}");
        }
    }

    #[test]
    fn steps_epochs_and_ranks() {
        for (line, step) in [
            ("INFO step    7  loss", Some(7)),
            ("step=12 x", Some(12)),
            ("iter: 19  total", Some(19)),
            ("global_step: 300,", Some(300)),
            ("(after 2 iterations)", Some(2)),
            ("Training:  12%|█| 120/1000 [00:12<01:20, 9it/s]", Some(120)),
            (r#"{"step": 3}"#, Some(3)),
            ("stepwise 3", None),
            ("step 2.5", None),
        ] {
            assert_eq!(find_step(line), step, "{line}");
        }
        assert_eq!(find_epoch("Epoch [3/10]"), Some(3));
        assert_eq!(
            (find_rank("[rank1] x"), find_rank("[Rank 0] y"), find_rank("ranking 3")),
            (Some(1), Some(0), None)
        );
    }
}
