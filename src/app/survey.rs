//! Many ranks summed up one after the other: each is read, looked at and let go before its thread takes the next, so that
//! a run of hundreds is never held as a whole.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use regex::Regex;

use super::opening::Wake;
use crate::align::{self, Opened, Rank, RankFiles};
use crate::analysis::{self, FreeBy, Index, Query, Selection, UserCode, growth};
use crate::import::{self, ImportError, Progress};
use crate::model::ProcessId;
use crate::report::{self, Process};
use crate::text::t;

/// How many ranks are held at once.
const MAX_HELD: usize = 4;

/// A rank in the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The rank's name.
    pub name: String,
    /// Its figures, or why there are none.
    pub figures: Result<Process, String>,
    /// What opening it opens.
    pub origin: Origin,
    /// What its files warn of, and why one could not be read.
    pub notes: Vec<String>,
}

/// Where a rank's figures come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// Files, which are not held.
    Files(Arc<[PathBuf]>),
    /// A process of the session that is open.
    Process(ProcessId),
}

impl Row {
    /// What tells the worst rank.
    pub fn weight(&self) -> (Option<i64>, u64) {
        self.figures.as_ref().map_or((None, 0), Process::weight)
    }

    /// The survivors' bytes.
    pub fn kept_bytes(&self) -> u64 {
        self.figures.as_ref().map_or(0, |process| process.survivors.bytes)
    }

    /// The first finding, or why there are no figures.
    pub fn finding(&self) -> &str {
        match &self.figures {
            Ok(process) => process.finding.as_deref().unwrap_or_default(),
            Err(why) => why,
        }
    }

    /// Whether it stands out from the others.
    pub fn is_outlier(&self) -> bool {
        self.figures.as_ref().is_ok_and(|process| process.is_outlier)
    }
}

/// Marks the ranks that stand out from those that are known so far.
pub fn mark_outliers(rows: &mut [Row]) {
    let mut known: Vec<&mut Process> = rows.iter_mut().filter_map(|row| row.figures.as_mut().ok()).collect();
    report::mark_outliers(&mut known);
}

/// What the window knows of a run of many ranks.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Whose files they are.
    pub files: RankFiles,
    /// The ranks that were looked at, in the order in which they were done.
    pub rows: Vec<Row>,
    /// How many ranks were looked at.
    pub done: usize,
    /// How many other files are of no kind that is known.
    pub skipped: usize,
    /// Whether ranks are still being looked at.
    pub is_running: bool,
}

/// The threads that sum ranks up.
pub struct Surveying {
    messages: Receiver<Message>,
    progress: Progress,
}

enum Message {
    /// A log that belongs to no rank can't be read.
    LogFailed(String),
    /// A file that belongs to no rank is of no kind that is known.
    LogSkipped,
    /// The logs of all ranks, which can be opened with each of them.
    Logs(Vec<PathBuf>),
    /// A rank was looked at.
    Done(Vec<Row>),
}

impl Surveying {
    /// Begins to look at the ranks; dropping the value stops it.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(
        files: RankFiles,
        log_pattern: Option<Regex>,
        user_code: UserCode,
        wake: Wake,
    ) -> std::io::Result<(Self, Survey)> {
        let (sender, messages) = channel();
        let progress = Progress::default();
        let survey = Survey { files, rows: Vec::new(), done: 0, skipped: 0, is_running: true };
        let surveyor = Surveyor { log_pattern, user_code, progress: progress.clone() };
        let files = survey.files.clone();
        std::thread::Builder::new().name("ranks".to_owned()).spawn(move || {
            surveyor.look_at_all(&files, &sender, &wake);
            // The window learns by the closed channel that this was all.
            drop(sender);
            wake();
        })?;
        Ok((Self { messages, progress }, survey))
    }

    /// Takes in what was found since. What is to be said to the user.
    pub fn poll(&self, survey: &mut Survey) -> Vec<String> {
        let mut errors = Vec::new();
        let mut is_changed = false;
        loop {
            match self.messages.try_recv() {
                Ok(Message::LogFailed(error)) => errors.push(error),
                Ok(Message::LogSkipped) => survey.skipped += 1,
                Ok(Message::Logs(logs)) => survey.files.logs = logs,
                Ok(Message::Done(rows)) => {
                    survey.done += 1;
                    survey.rows.extend(rows);
                    is_changed = true;
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    survey.is_running = false;
                    break;
                }
            }
        }
        if is_changed {
            mark_outliers(&mut survey.rows);
        }
        errors
    }
}

impl Drop for Surveying {
    fn drop(&mut self) {
        self.progress.cancel();
    }
}

/// How ranks are read and looked at.
struct Surveyor {
    log_pattern: Option<Regex>,
    user_code: UserCode,
    progress: Progress,
}

impl Surveyor {
    fn look_at_all(&self, files: &RankFiles, sender: &Sender<Message>, wake: &Wake) {
        let mut logs = Vec::new();
        for path in &files.logs {
            match self.read(path) {
                Ok(opened) => logs.push(opened),
                Err(ImportError::Cancelled { .. }) => return,
                // A folder may hold anything. The receiver is gone when nobody wants to know any more; so below.
                Err(ImportError::Unknown { .. } | ImportError::Empty { .. }) => {
                    drop(sender.send(Message::LogSkipped));
                }
                Err(error) => drop(sender.send(Message::LogFailed(error.to_string()))),
            }
        }
        drop(sender.send(Message::Logs(logs.iter().map(|log| log.path.clone()).collect())));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let all_seen = import::in_parallel("rank", cores.min(MAX_HELD), &files.ranks, |_, rank| {
            let rows = self.look_at(rank, &logs);
            if self.progress.is_cancelled() || sender.send(Message::Done(rows)).is_err() {
                return ControlFlow::Break(());
            }
            wake();
            ControlFlow::Continue(())
        });
        if let Err(error) = all_seen {
            log::warn!("no thread to look at ranks on: {error}");
        }
    }

    fn read(&self, path: &Path) -> Result<Opened, ImportError> {
        let recording = import::import_path_with(path, self.log_pattern.as_ref(), &self.progress)?;
        Ok(Opened::new(path, Arc::new(recording)))
    }

    /// The figures that a report of the rank alone gives.
    fn look_at(&self, rank: &Rank, logs: &[Opened]) -> Vec<Row> {
        let (mut opened, mut errors, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        for path in &rank.files {
            match self.read(path) {
                Ok(file) => {
                    notes.extend(file.recording.warnings.iter().map(|warning| warning.text.clone()));
                    opened.push(file);
                }
                // What lies beside a rank's files may be anything.
                Err(ImportError::Unknown { .. }) => {}
                Err(error) => errors.push(error.to_string()),
            }
        }
        opened.extend(logs.iter().cloned());
        let index = Index::new(Arc::new(align::build(&opened)), self.user_code.clone());
        let session = &index.session;
        let selection = Selection::of(session);
        let range = growth::suggested(&index, selection).range;
        let query = Query { selection, range, free_by: FreeBy::default() };
        let origin = Origin::Files(rank.files.as_slice().into());
        let row = |name: &str, figures| Row {
            name: name.to_owned(),
            figures,
            origin: origin.clone(),
            notes: errors.iter().chain(&notes).cloned().collect(),
        };
        if session.processes.is_empty() {
            let why = errors.first().cloned();
            let why = why.unwrap_or_else(|| t!("none of the files tells of a process").to_owned());
            return vec![row(&rank.name, Err(why))];
        }
        let summaries = analysis::compare_processes(&index, &query, None);
        let figures = summaries.iter().map(|summary| report::process(&index, summary));
        figures
            .map(|process| {
                // Opened alone, a file of no known process has no folder in its name.
                let is_known = process.rank.is_some() || process.pid.is_some() || summaries.len() > 1;
                let name = if is_known { process.name.clone() } else { rank.name.clone() };
                row(&name, Ok(process))
            })
            .collect()
    }
}
