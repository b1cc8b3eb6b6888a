//! Compares the catalogue with the sources: every literal that the program says, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::catalogue;

/// The English literal of every `t!` and `msg!` of a source file.
fn said_in(source: &str) -> Vec<String> {
    let code: String = source
        .lines()
        .map(|line| if line.trim_start().starts_with("//") { "\n".to_owned() } else { format!("{line}\n") })
        .collect();
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    ["t!(", "msg!("]
        .into_iter()
        .flat_map(|call| code.match_indices(call))
        .filter(|&(at, _)| !code[..at].ends_with(is_name))
        .filter_map(|(at, found)| literal(code[at + found.len()..].trim_start()))
        .collect()
}

/// The string literal that a text begins with.
fn literal(text: &str) -> Option<String> {
    let mut chars = text.strip_prefix('"')?.chars().peekable();
    let mut value = String::new();
    loop {
        match chars.next()? {
            '"' => return Some(value),
            '\\' => match chars.next()? {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                '\n' => while chars.next_if(|c| c.is_whitespace()).is_some() {},
                escaped => value.push(escaped),
            },
            c => value.push(c),
        }
    }
}

/// The names in braces.
fn placeholders(template: &str) -> BTreeSet<&str> {
    template.split('{').skip(1).filter_map(|from| Some(from.split_once('}')?.0)).collect()
}

/// The literals of all sources but this module's own, each with a file that says it.
fn said() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = walkdir::WalkDir::new(root.join("src")).into_iter().filter_map(Result::ok);
    files
        .filter(|file| file.path().extension().is_some_and(|extension| extension == "rs"))
        .filter(|file| !file.path().starts_with(root.join("src/text")))
        .flat_map(|file| {
            let source = std::fs::read_to_string(file.path()).expect("a source file");
            let name = file.path().strip_prefix(root).expect("a file of the crate").display().to_string();
            said_in(&source).into_iter().map(move |english| (english, name.clone()))
        })
        .collect()
}

#[test]
fn literals_are_found() {
    let source = "let a = t!(\"one\");\n// t!(\"remark\")\nassert!(\"no\");\n\
                  t!(\n    \"two {n} \\\n     and \\\"three\\\"\",\n    n = 1\n)";
    assert_eq!(said_in(source), ["one", "two {n} and \"three\""]);
}

#[test]
fn all_that_is_said_has_its_chinese() {
    let known: BTreeMap<String, String> = catalogue::all().into_iter().collect();
    let missing: Vec<_> = said().into_iter().filter(|(english, _)| !known.contains_key(english)).collect();
    assert!(missing.is_empty(), "src/text/zh_CN.po lacks {missing:#?}");
}

#[test]
fn the_catalogue_has_nothing_else() {
    let said = said();
    let mut seen = BTreeSet::new();
    for (english, _) in catalogue::all() {
        assert!(said.contains_key(&english), "nothing says {english:?}");
        assert!(seen.insert(english.clone()), "{english:?} is there twice");
    }
}

#[test]
fn placeholders_are_the_same() {
    for (english, chinese) in catalogue::all() {
        assert_eq!(placeholders(&english), placeholders(&chinese), "{english:?} {chinese:?}");
        let is_name =
            |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        assert!(placeholders(&english).iter().all(is_name), "a placeholder is a plain name: {english:?}");
    }
}

/// Placeholders that names of the user's go into: of files, places in the code, processes.
const NAMES: &str =
    "cause error name names path place places process processes snapshot source sources sum trace";

#[test]
fn names_stand_apart_in_chinese() {
    // A redacted report finds names as whole words; a letter beside one would make a longer word of it.
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    for (_, chinese) in catalogue::all() {
        for name in NAMES.split(' ').map(|name| format!("{{{name}}}")) {
            for (at, found) in chinese.match_indices(&name) {
                let (before, after) = (&chinese[..at], &chinese[at + found.len()..]);
                let touches = is_letter(before.chars().next_back()) || is_letter(after.chars().next());
                assert!(!touches, "{name} needs a space or a sign on both sides: {chinese:?}");
            }
        }
    }
}

/// Words of the window that are the same in both languages.
const SAME: [&str; 2] = ["vramscope", "Language · 语言"];

/// Literals with letters in them that are given straight to what shows them.
fn bare_words(source: &str) -> Vec<String> {
    let shown = regex::Regex::new(
        r#"(?x)
        \b(?:label|weak|strong|heading|button|menu_button|small_button|link|checkbox|radio|selectable_label
            |selectable_value|on_hover_text|on_hover_text_at_pointer|accessible_name|hint_text|selected_text|say
            |set_title|RichText::new|Label::new|Button::new|ProgressBar::new|CollapsingHeader::new)
        \(\s*(?:[^()"\n]*,\s*)?(?:format!\(\s*)?"((?:[^"\\]|\\.)*)""#,
    );
    let placeholder = regex::Regex::new(r"\{[^}]*\}|\\.");
    let (Ok(shown), Ok(placeholder)) = (shown, placeholder) else { panic!("these are regular expressions") };
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let literals = shown.captures_iter(code).map(|found| found[1].to_owned());
    literals
        .filter(|literal| placeholder.replace_all(literal, "").contains(char::is_alphabetic))
        .filter(|literal| !SAME.contains(&literal.as_str()))
        .collect()
}

#[test]
fn bare_words_are_found() {
    let source = r#"
        ui.label("Kept"); ui.label(t!("Kept")); ui.weak(format!("{} rows", 3)); ui.heading("vramscope");
        ui.checkbox(&mut is_on, "Show"); self.say(ctx, Tone::Error, format!("{error:#}"));
    "#;
    assert_eq!(bare_words(source), ["Kept", "{} rows", "Show"]);
}

#[test]
fn the_window_shows_no_bare_words() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/app");
    for file in walkdir::WalkDir::new(folder).into_iter().filter_map(Result::ok) {
        if file.path().extension().is_some_and(|extension| extension == "rs") {
            let source = std::fs::read_to_string(file.path()).expect("a source file");
            let bare = bare_words(&source);
            assert!(bare.is_empty(), "{} shows words without `t!`: {bare:?}", file.path().display());
        }
    }
}
