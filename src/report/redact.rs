//! A report without the names of users, hosts, folders, files, boards and processes.
//!
//! Every text of the report passes through one [`Redactor`], whatever field it stands in, so that no format and no new
//! field can let a name out. The same name becomes the same word everywhere.

use std::collections::BTreeSet;
use std::mem;

use regex::{Captures, Regex};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use super::preview::Replacement;
use super::{LeftOut, Range, Report, quote};
use crate::analysis::{FrameOrigin, Index, StackLines};
use crate::model::{Frame, MarkerKind, Op, Process, SourceKind, StackId, Stacks, StrId, format_bytes};
use crate::text::t;

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

/// Namespaces of PyTorch's own ops, up to the first dot, and of what runs below them.
const NAMESPACES: [&str; 33] = [
    "_c10d_functional",
    "_c10d_functional_autograd",
    "_quantized",
    "at",
    "aten",
    "autograd",
    "c10",
    "c10d",
    "c10d_functional",
    "caffe2",
    "cuda",
    "cudnn",
    "debugprims",
    "dtensor",
    "fbgemm",
    "gloo",
    "higher_order",
    "inductor",
    "mkl",
    "mkldnn",
    "nccl",
    "onednn",
    "prepacked",
    "prim",
    "prims",
    "profiler",
    "quantized",
    "quantized_decomposed",
    "rngprims",
    "std",
    "symm_mem",
    "torch",
    "torchvision",
];
/// What autograd writes before the node that it runs.
const EVALUATES: &str = "autograd::engine::evaluate_function: ";

/// What would be replaced in a report, and by what; folders and boards that a text names besides follow the same rules.
pub fn redactions(index: &Index, with_code: bool) -> Vec<Replacement> {
    let mut redactor = Redactor::default();
    if redactor.learn(index, with_code).is_err() {
        return Vec::new();
    }
    let users = redactor.users.iter().enumerate().map(|(position, user)| Replacement {
        kind: "user",
        original: user.clone(),
        word: user_word(position),
    });
    let names = redactor.names.iter().map(|(original, (kind, word))| Replacement {
        kind,
        original: original.clone(),
        word: word.clone(),
    });
    let mut all: Vec<Replacement> = names.chain(users).collect();
    all.sort();
    all
}

fn stacks_of(report: &mut Report) -> impl Iterator<Item = &mut StackLines> {
    let groups = report.groups.iter_mut().map(|group| &mut group.stack);
    groups.chain(report.allocations.iter_mut().map(|allocation| &mut allocation.stack))
}

fn walk(value: &mut Value, redactor: &mut Redactor) {
    match value {
        Value::String(text) => *text = redactor.text(text),
        Value::Array(values) => values.iter_mut().for_each(|value| walk(value, redactor)),
        Value::Object(fields) => fields.values_mut().for_each(|value| walk(value, redactor)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Numbered words, the same for the same text.
#[derive(Default)]
struct Words {
    numbers: FxHashMap<(&'static str, String), usize>,
    counts: FxHashMap<&'static str, usize>,
}

impl Words {
    fn of(&mut self, kind: &'static str, text: &str) -> String {
        let number = *self.numbers.entry((kind, text.to_owned())).or_insert_with(|| {
            let count = self.counts.entry(kind).or_default();
            *count += 1;
            *count
        });
        format!("{kind}-{number}")
    }
}

/// What replaces what. One redactor gives the reports of several sessions the same words for the same names.
#[derive(Default)]
pub struct Redactor {
    /// Names that the session gives, by their text: what each is, and its word.
    names: FxHashMap<String, (&'static str, String)>,
    /// Names, boards and paths in any text.
    pattern: Option<Regex>,
    users: Vec<String>,
    /// Names that are replaced only where they are the whole text, as they may be any word.
    alone: FxHashMap<String, (&'static str, String)>,
    words: Words,
    /// Texts that were seen before: stacks repeat.
    done: FxHashMap<String, String>,
    /// What was replaced so far.
    replaced: BTreeSet<Replacement>,
}

impl Redactor {
    /// The report of a session without names. Where they can't be replaced, the texts are left out.
    pub fn redact(&mut self, mut report: Report, index: &Index, with_code: bool) -> Report {
        let stacks: Vec<StackLines> = stacks_of(&mut report).map(mem::take).collect();
        let mut redacted = match self.try_redact(&report, index, with_code) {
            Ok(redacted) => redacted,
            Err(error) => return withheld(report, &error),
        };
        // Many rows share a stack, which needs to be redacted once.
        let mut known: FxHashMap<*const String, StackLines> = FxHashMap::default();
        for (place, stack) in stacks_of(&mut redacted).zip(&stacks) {
            let lines = known.entry(stack.as_ptr());
            *place = lines.or_insert_with(|| stack.iter().map(|line| self.text(line)).collect()).clone();
        }
        redacted
    }

    /// A file that no session holds, since it can't be used.
    pub fn left_out(&mut self, file: LeftOut) -> LeftOut {
        let word = self.words.of("input", &file.name);
        LeftOut { name: self.record("file", &file.name, word), ..file }
    }

    /// What was replaced in all reports so far.
    pub fn replaced(self) -> Vec<Replacement> {
        self.replaced.into_iter().collect()
    }

    /// Fails when the report can't be taken apart, which would be a fault of its types.
    fn try_redact(&mut self, report: &Report, index: &Index, with_code: bool) -> anyhow::Result<Report> {
        let mut value = serde_json::to_value(report)?;
        self.learn(index, with_code)?;
        walk(&mut value, self);
        let mut redacted: Report = serde_json::from_value(value)?;
        redacted.redacted = true;
        redacted.view = report.view;
        Ok(redacted)
    }

    /// Learns the names of a session in place of those of the one before.
    fn learn(&mut self, index: &Index, with_code: bool) -> anyhow::Result<()> {
        self.names.clear();
        self.alone.clear();
        self.done.clear();
        self.gather(index);
        if with_code {
            self.gather_code(index);
        }
        let mut names: Vec<&String> = self.names.keys().collect();
        // The longest first: the regex takes the first that fits.
        names.sort_by_key(|name| (std::cmp::Reverse(name.len()), (*name).clone()));
        let names: Vec<String> = names.into_iter().map(|name| whole_word(name)).collect();
        let names = if names.is_empty() { "[^\\s\\S]".to_owned() } else { names.join("|") };
        let pattern = regex::RegexBuilder::new(&format!(
            r#"(?<name>{names})|(?<board>\b(?:GPU|MIG)-[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}\b)|(?<before>^|[\s"'(=:,<>\[`（：，、；])(?<path>(?:[A-Za-z]:)?[/\\][^\s/\\:"'<>()\[\],;`][^\s:"'<>()\[\],;`（），；。]*)"#
        ))
        .size_limit(1 << 28)
        .build()?;
        self.pattern = Some(pattern);
        Ok(())
    }

    /// Everything that the session names.
    fn gather(&mut self, index: &Index) {
        let session = &index.session;
        for source in &session.sources {
            let path = source.path.display().to_string();
            let word = self.words.of(source.kind().name(), &path);
            if let Some(file_name) = source.path.file_name().and_then(|name| name.to_str()) {
                self.name("file", file_name, &word);
            }
            self.name("file", &source.name, &word);
            self.user_of(&path);
            if let Some(folder) = source.path.parent().map(|folder| folder.display().to_string()) {
                self.odd_path(&folder);
            }
            self.name("file", &path, &word);
            self.name("file", &quote(&path), &word);
            let recording = &source.recording;
            if !matches!(source.kind(), SourceKind::Trace | SourceKind::Snapshot) {
                // What else stands in the line is anyone's.
                for marker in &recording.markers {
                    if let Some(figures) = figures_of(&marker.kind) {
                        self.name("line", &marker.text, &figures);
                    }
                }
            }
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
            for stack in (0..process.stacks.len() as u32).map(StackId) {
                if let Some(frame) = process.stacks.innermost(stack) {
                    let file = process.strings.get(frame.file);
                    self.user_of(file);
                    self.odd_path(file);
                }
            }
        }
    }

    /// Source files, functions and modules: each where it is written as a frame or a path of modules, since a function
    /// may be called `step` or `main`.
    fn gather_code(&mut self, index: &Index) {
        for process in &index.session.processes {
            let strings = &process.strings;
            let stacks = (0..process.stacks.len() as u32).map(StackId);
            let frames: FxHashSet<Frame> =
                stacks.filter_map(|stack| process.stacks.innermost(stack)).collect();
            let mut frames: Vec<Frame> = frames.into_iter().collect();
            frames.sort_unstable_by_key(|frame| (frame.file, frame.line, frame.function));
            for frame in frames {
                let (file, function) = (strings.get(frame.file), strings.get(frame.function));
                let whole = Stacks::format_whole_frame(strings, frame);
                let is_own = match index.user_code.origin(strings, frame) {
                    FrameOrigin::User => true,
                    FrameOrigin::Native => is_own_native(function),
                    FrameOrigin::Library | FrameOrigin::Generated => false,
                };
                if !is_own {
                    continue;
                }
                let function_word = self.words.of("function", function);
                // The frame of an unknown source is its function.
                let word = match whole == function {
                    true => function_word,
                    false => format!("{}.py:{} {function_word}", self.words.of("file", file), frame.line),
                };
                self.name("code", &whole, &word);
                self.name("code", &Stacks::format_frame(strings, frame), &word);
            }
            self.gather_ops(process);
        }
    }

    /// The user's own modules, ops and autograd functions, and ranges of `record_function`.
    fn gather_ops(&mut self, process: &Process) {
        let text = |id: StrId| process.strings.get(id);
        for op in process.ops.iter() {
            let module = text(op.module);
            let parts: Vec<String> = module.split(" > ").map(|part| self.words.of("module", part)).collect();
            self.name("module", module, &parts.join(" > "));
            let Op { name, outer, forward, annotation, .. } = op;
            for name in
                [name, outer, forward, annotation].map(text).into_iter().filter(|name| is_own_op(name))
            {
                let (before, node) =
                    name.strip_prefix(EVALUATES).map_or(("", name), |node| (EVALUATES, node));
                let word = format!("{before}{}", self.words.of("op", node));
                if name.chars().all(char::is_lowercase) {
                    self.alone.insert(name.to_owned(), ("op", word));
                } else {
                    self.name("op", name, &word);
                }
            }
        }
    }

    fn name(&mut self, kind: &'static str, name: &str, word: &str) {
        // One letter is no name, and `[N/A]` is nobody's.
        if name.chars().count() > 1 && !name.starts_with('[') && name != "N/A" {
            self.names.entry(name.to_owned()).or_insert_with(|| (kind, word.to_owned()));
        }
    }

    fn numbered(&mut self, kind: &'static str, name: &str) {
        if !name.trim().is_empty() {
            let word = self.words.of(kind, name.trim());
            self.name(kind, name.trim(), &word);
        }
    }

    /// A path that the pattern would cut short.
    fn odd_path(&mut self, path: &str) {
        let is_odd = |c: char| c.is_whitespace() || "\"'<>()[],;`".contains(c);
        if path.contains(is_odd) && path.contains(['/', '\\']) && !path.starts_with('<') {
            let word = self.path(path);
            self.name("folder", path, &word);
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
        if let Some((kind, word)) = self.alone.get(text).cloned() {
            return self.record(kind, text, word);
        }
        // Most lines of stacks are a name as they stand, and the pattern of thousands of names is slow.
        if let Some(word) = self.named(text) {
            return word;
        }
        let Some(pattern) = self.pattern.clone() else { return String::new() };
        let named = pattern.replace_all(text, |found: &Captures<'_>| self.replacement(found));
        let replaced = self.without_users(&named);
        self.done.insert(text.to_owned(), replaced.clone());
        replaced
    }

    fn replacement(&mut self, found: &Captures<'_>) -> String {
        if let Some(name) = found.name("name") {
            return self.named(name.as_str()).unwrap_or_default();
        }
        if let Some(board) = found.name("board") {
            let word = self.words.of("board", board.as_str());
            return self.record("board", board.as_str(), word);
        }
        let before = found.name("before").map_or("", |before| before.as_str());
        let path = found.name("path").map_or("", |path| path.as_str());
        // The pattern takes the sign before a path first, so a path that has a word of its own comes here too.
        let word = self.named(path).unwrap_or_else(|| self.path(path));
        format!("{before}{word}")
    }

    fn named(&mut self, name: &str) -> Option<String> {
        let (kind, word) = self.names.get(name).cloned()?;
        Some(self.record(kind, name, word))
    }

    fn record(&mut self, kind: &'static str, original: &str, word: String) -> String {
        if original != word {
            self.replaced.insert(Replacement { kind, original: original.to_owned(), word: word.clone() });
        }
        word
    }

    /// `/home/ann/project/train.py` → `folder-1/train.py`; what lies in an installed package keeps its place there.
    fn path(&mut self, path: &str) -> String {
        let forward = path.replace('\\', "/");
        let library = LIBRARIES
            .iter()
            .filter_map(|(mark, kept)| Some((forward.rfind(mark)? + mark.len(), *kept)))
            .max();
        if let Some((after, kept)) = library {
            let kept = self.record("folder", &path[..after], kept.to_owned());
            return format!("{kept}{}", &forward[after..]);
        }
        let Some((folder, file)) = forward.rsplit_once('/') else { return forward };
        let file = self.names.get(file).map_or(file, |(_, word)| word).to_owned();
        let word = self.words.of("folder", folder);
        // Each backslash became one slash, so places are the same.
        format!("{}/{file}", self.record("folder", &path[..folder.len()], word))
    }

    /// Users' names wherever they stand as a word, or as a part between underscores.
    fn without_users(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (position, user) in self.users.clone().iter().enumerate() {
            let word = user_word(position);
            let mut from = 0;
            while let Some(at) = text[from..].find(user.as_str()).map(|at| from + at) {
                let end = at + user.len();
                let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
                if is_part(text[..at].chars().next_back()) || is_part(text[end..].chars().next()) {
                    from = end;
                } else {
                    text.replace_range(at..end, &word);
                    self.record("user", user, word.clone());
                    from = at + word.len();
                }
            }
        }
        text
    }
}

/// What is left when names can't be replaced: figures without any text from the files.
fn withheld(report: Report, error: &anyhow::Error) -> Report {
    Report {
        summary: t!("Names could not be replaced, so the texts were left out ({error})", error),
        command: String::new(),
        redacted: true,
        sources: Vec::new(),
        left_out: Vec::new(),
        links: Vec::new(),
        selection: String::new(),
        processes: Vec::new(),
        driver: Vec::new(),
        groups: Vec::new(),
        allocations: Vec::new(),
        findings: Vec::new(),
        curves: Vec::new(),
        view: None,
        range: Range { label: t!("the range").to_owned(), ..report.range },
        ..report
    }
}

/// What an out-of-memory message says in figures, much as PyTorch words it.
fn figures_of(kind: &MarkerKind) -> Option<String> {
    let &MarkerKind::OutOfMemory {
        requested_bytes,
        free_bytes,
        capacity_bytes,
        allocated_bytes,
        reserved_bytes,
        private_pool_bytes,
    } = kind
    else {
        return None;
    };
    let figures = [
        ("tried to allocate", requested_bytes),
        ("total capacity", capacity_bytes),
        ("free", free_bytes),
        ("allocated by PyTorch", allocated_bytes),
        ("reserved by PyTorch", reserved_bytes),
        ("in private pools", private_pool_bytes),
    ];
    let figures: Vec<String> = figures
        .into_iter()
        .filter_map(|(words, bytes)| Some(format!("{words} {}", format_bytes(bytes?))))
        .collect();
    Some(format!("out of memory ({})", figures.join(", ")))
}

/// Whether an op is none of PyTorch's: of a namespace of its own, a custom autograd function, or a range that the user
/// named.
fn is_own_op(name: &str) -> bool {
    let name = name.strip_prefix(EVALUATES).unwrap_or(name);
    // PyTorch numbers its own nodes: `ReluBackward0`.
    let is_node = name.trim_end_matches(|c: char| c.is_ascii_digit()).ends_with("Backward")
        && name.ends_with(|c: char| c.is_ascii_digit());
    let is_view = matches!(name, "" | "detach" | "detach_");
    !is_node && !is_view && !is_of_torch(name)
}

/// Whether a C++ function lies in a namespace that is none of PyTorch's.
fn is_own_native(function: &str) -> bool {
    let name = function.split(['(', '<']).next().unwrap_or(function);
    let name = name.rsplit(' ').next().unwrap_or(name);
    name.contains("::") && !is_of_torch(name)
}

/// By its namespace: `aten::conv2d`, `nccl:all_reduce`, `torch.nn.functional.linear`.
fn is_of_torch(name: &str) -> bool {
    name.split_once([':', '.']).is_some_and(|(namespace, _)| NAMESPACES.contains(&namespace))
}

fn user_word(position: usize) -> String {
    format!("user-{}", position + 1)
}

/// A pattern for a name that must not be a part of a longer word.
fn whole_word(name: &str) -> String {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let start = if is_word(name.chars().next()) { r"\b" } else { "" };
    let end = if is_word(name.chars().next_back()) { r"\b" } else { "" };
    format!("{start}{}{end}", regex::escape(name))
}
