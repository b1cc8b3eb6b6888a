//! The Chinese of each English text, read once from `zh_CN.po`, a gettext catalogue.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

const SOURCE: &str = include_str!("zh_CN.po");

static ENTRIES: LazyLock<FxHashMap<String, String>> = LazyLock::new(|| entries(SOURCE).collect());

/// The Chinese of an English text.
pub(super) fn chinese(english: &str) -> Option<&'static str> {
    ENTRIES.get(english).map(String::as_str)
}

/// The pairs of a catalogue: a `msgid` line and the `msgstr` line below it. The first pair is the header, with an
/// empty `msgid`.
fn entries(source: &str) -> impl Iterator<Item = (String, String)> {
    let mut english = String::new();
    source.lines().filter_map(move |line| {
        if let Some(quoted) = line.strip_prefix("msgid ") {
            english = unquoted(quoted);
            None
        } else {
            let chinese = unquoted(line.strip_prefix("msgstr ")?);
            let english = std::mem::take(&mut english);
            (!english.is_empty() && !chinese.is_empty()).then_some((english, chinese))
        }
    })
}

/// The text between quotes, with its escapes resolved.
fn unquoted(quoted: &str) -> String {
    let inner = quoted.trim().trim_start_matches('"');
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    let mut text = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some(escaped) => text.push(escaped),
                None => {}
            },
            _ => text.push(c),
        }
    }
    text
}

/// All pairs, for the tests.
#[cfg(test)]
pub(crate) fn all() -> Vec<(String, String)> {
    entries(SOURCE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_a_catalogue() {
        let source = "# remark\nmsgid \"\"\nmsgstr \"Language: zh_CN\\n\"\n\n#: src/a.rs\nmsgid \"a \\\"b\\\"\\nc\"\nmsgstr \"甲\"\n";
        let read: Vec<_> = entries(source).collect();
        assert_eq!(read, [("a \"b\"\nc".to_owned(), "甲".to_owned())]);
    }
}
