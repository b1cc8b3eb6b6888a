//! The command that gives a report again.

use crate::analysis::{DeviceFilter, FreeBy, GroupBy, Index, Query};

/// `vramscope report FILES --from … --to …` for a report that was not made by a command.
pub(super) fn command(index: &Index, query: &Query, group_by: GroupBy) -> String {
    let session = &index.session;
    let mut words = vec!["vramscope".to_owned(), "report".to_owned()];
    words.extend(session.sources.iter().map(|source| source.path.display().to_string()));
    words.extend(["--from".to_owned(), unix_seconds(query.range.start_ns)]);
    words.extend(["--to".to_owned(), unix_seconds(query.range.end_ns)]);
    if query.free_by != FreeBy::default() {
        words.extend(["--free-by".to_owned(), query.free_by.name().to_owned()]);
    }
    if group_by != GroupBy::default() {
        words.extend(["--group-by".to_owned(), group_by.name().to_owned()]);
    }
    let device = match query.selection.device {
        DeviceFilter::Gpus => None,
        DeviceFilter::Host => Some("cpu".to_owned()),
        DeviceFilter::All => Some("all".to_owned()),
        DeviceFilter::One(device) => Some(device.to_string()),
    };
    if let Some(device) = device {
        words.extend(["--device".to_owned(), device]);
    }
    if let Some(process) = query.selection.process {
        words.extend(["--source".to_owned(), session.process(process).label.clone()]);
    }
    words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
}

/// Unix seconds to the last nanosecond.
fn unix_seconds(time_ns: i64) -> String {
    let sign = if time_ns < 0 { "-" } else { "" };
    let ns = time_ns.unsigned_abs();
    format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// A word as a POSIX shell reads it back.
pub fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+,%@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::TimeSpec;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quote("run/trace.json.gz"), "run/trace.json.gz");
        assert_eq!(quote("my run"), "'my run'");
        assert_eq!(quote("it's; rm"), r"'it'\''s; rm'");
        assert_eq!(quote(""), "''");
    }

    #[test]
    fn times_are_read_back_to_the_nanosecond() {
        for time_ns in [1_796_104_323_357_719_911, 0, -1_500_000_000] {
            assert_eq!(unix_seconds(time_ns).parse(), Ok(TimeSpec::UnixNs(time_ns)));
        }
    }
}
