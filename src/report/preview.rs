//! What a redacted report replaces, and what of the user's it still tells: to be read before it is sent.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{Report, printable};
use crate::text::t;

/// No list of names that stay is longer.
const MAX_STAYING: usize = 40;

/// The kinds of names that stay unless code is to be replaced too.
const CODE_KINDS: [&str; 3] = ["code", "module", "op"];

/// A name, what it is, and what stands in its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Replacement {
    /// What it is: `file`, `folder`, `user`, `host`, `board`, `program`, `line` (of a log), `code`, `module` or `op`.
    pub kind: &'static str,
    /// The name.
    pub original: String,
    /// What stands in its place.
    pub word: String,
}

/// What was replaced in a report, and what it still tells.
pub fn preview(redacted: &Report, replaced: &[Replacement]) -> String {
    let words: BTreeSet<&str> = replaced.iter().map(|replacement| replacement.word.as_str()).collect();
    // What stands in parentheses says that there is no name.
    let stays = |name: &&String| !name.is_empty() && !name.starts_with('(') && !words.contains(name.as_str());
    let mut text = String::new();
    let kind_width = replaced.iter().map(|replacement| replacement.kind.len()).max().unwrap_or_default();
    if replaced.is_empty() {
        let _ = writeln!(text, "{}", t!("Nothing is replaced: the report holds no name that --redact knows"));
    } else {
        let _ = writeln!(text, "{}", t!("Replaced"));
    }
    for Replacement { kind, original, word } in replaced {
        let _ = writeln!(text, "  {kind:kind_width$}  {} → {}", one_line(original), one_line(word));
    }
    let sites = redacted.groups.iter().map(|group| &group.call_site);
    let sites = sites.chain(redacted.allocations.iter().map(|allocation| &allocation.call_site));
    list(&mut text, t!("Still told, of your code"), sites.filter(stays));
    let modules = redacted.allocations.iter().map(|allocation| &allocation.module);
    list(&mut text, t!("Still told, modules"), modules.filter(stays));
    let has_code = replaced.iter().any(|replacement| CODE_KINDS.contains(&replacement.kind));
    text.push_str(if has_code {
        t!(
            "Still told besides: sizes, times, steps, addresses, PyTorch's own ops, shapes, frames of installed packages, \
             models of GPUs, ranks and process ids"
        )
    } else {
        t!(
            "Still told besides: sizes, times, steps, addresses, ops, shapes, frames of your code and of installed \
             packages, models of GPUs, ranks and process ids"
        )
    });
    text.push('\n');
    text
}

fn list<'a>(text: &mut String, title: &str, names: impl Iterator<Item = &'a String>) {
    let names: BTreeSet<&String> = names.collect();
    if names.is_empty() {
        return;
    }
    let _ = writeln!(text, "{title}");
    for name in names.iter().take(MAX_STAYING) {
        let _ = writeln!(text, "  {}", one_line(name));
    }
    if names.len() > MAX_STAYING {
        let _ = writeln!(text, "  {}", t!("… and {count} more", count = names.len() - MAX_STAYING));
    }
}

/// A name that stays in its line.
fn one_line(name: &str) -> String {
    printable(name).replace(['\n', '\t'], " ")
}
