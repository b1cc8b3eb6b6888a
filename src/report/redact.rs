//! A report without the names of users, hosts, folders, files, boards and processes.
//!
//! Every text of the report passes through one [`Redactor`], whatever field it stands in, so that no format and no new
//! field can let a name out. The same name becomes the same word everywhere.

use regex::{Captures, Regex};
use rustc_hash::FxHashMap;
use serde_json::Value;

use super::Report;
use crate::analysis::Index;

/// Where paths begin that are the same on every machine, and what is left of them.
const LIBRARIES: [(&str, &str); 5] = [
    ("/site-packages/", "site-packages/"),
    ("/dist-packages/", "dist-packages/"),
    ("/lib/python3", "python3"),
    ("/lib64/python3", "python3"),
    ("/lib/python/", "python/"),
];
/// Where the folders of users are.
const HOMES: [&str; 4] = ["/home/", "/Users/", "\\Users\\", "/users/"];

/// The report without names.
///
/// # Errors
/// When the report can't be taken apart, which would be a fault of its types.
pub(super) fn redact(report: &Report, index: &Index) -> anyhow::Result<Report> {
    let mut value = serde_json::to_value(report)?;
    let mut redactor = Redactor::new(index)?;
    walk(&mut value, &mut redactor);
    let mut redacted: Report = serde_json::from_value(value)?;
    redacted.redacted = true;
    Ok(redacted)
}

fn walk(value: &mut Value, redactor: &mut Redactor) {
    match value {
        Value::String(text) => *text = redactor.text(text),
        Value::Array(values) => values.iter_mut().for_each(|value| walk(value, redactor)),
        Value::Object(fields) => fields.values_mut().for_each(|value| walk(value, redactor)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What replaces what.
struct Redactor {
    /// Names that the session gives, by their text.
    names: FxHashMap<String, String>,
    /// Names, boards and paths in any text.
    pattern: Regex,
    users: Vec<String>,
    folders: FxHashMap<String, usize>,
    boards: FxHashMap<String, usize>,
    /// Texts that were seen before: stacks repeat.
    done: FxHashMap<String, String>,
}

impl Redactor {
    fn new(index: &Index) -> anyhow::Result<Self> {
        let mut redactor = Self {
            names: FxHashMap::default(),
            pattern: Regex::new("$^")?,
            users: Vec::new(),
            folders: FxHashMap::default(),
            boards: FxHashMap::default(),
            done: FxHashMap::default(),
        };
        redactor.gather(index);
        let mut names: Vec<&String> = redactor.names.keys().collect();
        // The longest first: the regex takes the first that fits.
        names.sort_by_key(|name| (std::cmp::Reverse(name.len()), (*name).clone()));
        let names: Vec<String> = names.into_iter().map(|name| whole_word(name)).collect();
        let names = if names.is_empty() { "[^\\s\\S]".to_owned() } else { names.join("|") };
        redactor.pattern = regex::RegexBuilder::new(&format!(
            r#"(?<name>{names})|(?<board>\b(?:GPU|MIG)-[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}\b)|(?<before>^|[\s"'(=:,<>\[`])(?<path>(?:[A-Za-z]:)?[/\\][^\s/\\:"'<>()\[\],;`][^\s:"'<>()\[\],;`]*)"#
        ))
        .size_limit(1 << 28)
        .build()?;
        Ok(redactor)
    }

    /// Everything that the session names.
    fn gather(&mut self, index: &Index) {
        let session = &index.session;
        let mut counts: FxHashMap<&str, usize> = FxHashMap::default();
        for source in &session.sources {
            let kind = source.kind().name();
            let count = counts.entry(kind).or_default();
            *count += 1;
            let word = format!("{kind}-{count}");
            let path = source.path.display().to_string();
            if let Some(file_name) = source.path.file_name().and_then(|name| name.to_str()) {
                self.name(file_name, &word);
            }
            self.name(&source.name, &word);
            self.user_of(&path);
            if let Some(folder) = source.path.parent().map(|folder| folder.display().to_string()) {
                self.odd_path(&folder);
            }
            self.name(&path, &word);
            let recording = &source.recording;
            self.numbered("host", &recording.process.host);
            for device in &recording.devices {
                self.numbered("board", &device.uuid);
            }
            for (fact, text) in &recording.facts {
                let fact = fact.to_lowercase();
                if ["serial", "uuid"].iter().any(|word| fact.contains(word)) {
                    self.numbered("board", text);
                } else if fact.contains("host") {
                    self.numbered("host", text);
                } else if fact.contains("user") {
                    self.user(text);
                }
            }
        }
        for (_, _, series, _) in session.curves() {
            self.user_of(&series.process_name);
            self.numbered("program", &series.process_name);
        }
        for process in &session.processes {
            for stack in (0..process.stacks.len() as u32).map(crate::model::StackId) {
                if let Some(frame) = process.stacks.innermost(stack) {
                    let file = process.strings.get(frame.file);
                    self.user_of(file);
                    self.odd_path(file);
                }
            }
        }
    }

    fn name(&mut self, name: &str, word: &str) {
        // One letter is no name, and `[N/A]` is nobody's.
        if name.chars().count() > 1 && !name.starts_with('[') && name != "N/A" {
            self.names.entry(name.to_owned()).or_insert_with(|| word.to_owned());
        }
    }

    fn numbered(&mut self, kind: &str, name: &str) {
        let prefix = format!("{kind}-");
        let count = self.names.values().filter(|word| word.starts_with(&prefix)).count();
        self.name(name.trim(), &format!("{prefix}{}", count + 1));
    }

    /// A path that the pattern would cut short.
    fn odd_path(&mut self, path: &str) {
        let is_odd = |c: char| c.is_whitespace() || "\"'<>()[],;`".contains(c);
        if path.contains(is_odd) && path.contains(['/', '\\']) && !path.starts_with('<') {
            let word = self.path(path);
            self.name(path, &word);
        }
    }

    fn user_of(&mut self, path: &str) {
        for home in HOMES {
            if let Some((_, rest)) = path.split_once(home) {
                let user = rest.split(['/', '\\']).next().unwrap_or_default();
                self.user(user);
            }
        }
    }

    fn user(&mut self, user: &str) {
        if user.chars().count() > 1 && !self.users.iter().any(|known| known == user) {
            self.users.push(user.to_owned());
        }
    }

    fn text(&mut self, text: &str) -> String {
        if let Some(done) = self.done.get(text) {
            return done.clone();
        }
        let pattern = self.pattern.clone();
        let named = pattern.replace_all(text, |found: &Captures<'_>| self.replacement(found));
        let replaced = self.without_users(&named);
        self.done.insert(text.to_owned(), replaced.clone());
        replaced
    }

    fn replacement(&mut self, found: &Captures<'_>) -> String {
        if let Some(name) = found.name("name") {
            return self.names.get(name.as_str()).cloned().unwrap_or_default();
        }
        if let Some(board) = found.name("board") {
            let next = self.boards.len() + 1;
            return format!("gpu-{}", self.boards.entry(board.as_str().to_owned()).or_insert(next));
        }
        let before = found.name("before").map_or("", |before| before.as_str());
        let path = found.name("path").map_or("", |path| path.as_str());
        format!("{before}{}", self.path(path))
    }

    /// `/home/ann/project/train.py` → `folder-1/train.py`; what lies in an installed package keeps its place there.
    fn path(&mut self, path: &str) -> String {
        let forward = path.replace('\\', "/");
        let library = LIBRARIES
            .iter()
            .filter_map(|(mark, kept)| Some((forward.rfind(mark)? + mark.len(), *kept)))
            .max();
        if let Some((after, kept)) = library {
            return format!("{kept}{}", &forward[after..]);
        }
        let Some((folder, file)) = forward.rsplit_once('/') else { return forward };
        let next = self.folders.len() + 1;
        let number = *self.folders.entry(folder.to_owned()).or_insert(next);
        format!("folder-{number}/{file}")
    }

    /// Users' names wherever they stand as a word, or as a part between underscores.
    fn without_users(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (position, user) in self.users.iter().enumerate() {
            let word = format!("user-{}", position + 1);
            let mut from = 0;
            while let Some(at) = text[from..].find(user.as_str()).map(|at| from + at) {
                let end = at + user.len();
                let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
                if is_part(text[..at].chars().next_back()) || is_part(text[end..].chars().next()) {
                    from = end;
                } else {
                    text.replace_range(at..end, &word);
                    from = at + word.len();
                }
            }
        }
        text
    }
}

/// A pattern for a name that must not be a part of a longer word.
fn whole_word(name: &str) -> String {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let start = if is_word(name.chars().next()) { r"\b" } else { "" };
    let end = if is_word(name.chars().next_back()) { r"\b" } else { "" };
    format!("{start}{}{end}", regex::escape(name))
}
