//! Opening files: each is read on a named thread, with progress and a way to stop.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use regex::Regex;

use super::data::Data;
use crate::align::{Opened, RankFiles};
use crate::analysis::UserCode;
use crate::import::{self, ImportError, Progress};
use crate::model::Recording;
use crate::report::LeftOut;
use crate::text::t;

/// How many files are read at once.
const MAX_READERS: usize = 4;
/// How many files of a folder are looked at.
pub const MAX_FILES: usize = 2_000;

/// What is to be opened.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Files and folders.
    pub paths: Vec<PathBuf>,
    /// Files that leave the session when these have come in.
    pub instead_of: Vec<PathBuf>,
    /// What goes to the recent ones once something of it is open.
    pub chosen: Vec<PathBuf>,
    /// Whether files of many ranks are opened all the same, and not summed up one by one.
    pub all_at_once: bool,
}

/// A file on its way in.
#[derive(Clone, Debug)]
pub struct File {
    /// Where it is.
    pub path: PathBuf,
    /// How far it is; cancels it too.
    pub progress: Progress,
    /// Whether it was found in a folder: then a file of no use is no error.
    pub is_from_folder: bool,
    /// Whether it is done, well or not.
    pub is_done: bool,
}

impl File {
    /// The file's name for people.
    pub fn name(&self) -> String {
        self.path
            .file_name()
            .map_or_else(|| self.path.display().to_string(), |name| name.to_string_lossy().into())
    }
}

enum Message {
    Found(Vec<File>, usize),
    ManyRanks(RankFiles),
    Read(usize, Box<Result<Recording, ImportError>>),
    Finished,
}

/// Files on their way in.
pub struct Opening {
    /// The files, once folders have been walked.
    pub files: Vec<File>,
    messages: Receiver<Message>,
    outcome: Outcome,
}

/// What came of opening files.
#[derive(Default)]
pub struct Outcome {
    /// What was read.
    pub recordings: Vec<Opened>,
    /// The names of others, and why each was not, in a sentence.
    pub failed: Vec<(String, String)>,
    /// Of these the ones that are of a known kind, which a report has to name.
    pub left_out: Vec<LeftOut>,
    /// How many files of folders are of no kind that is known.
    pub skipped: usize,
    /// How many files there were beyond those that are read at once.
    pub too_many: usize,
    /// What was chosen, of which some may have been read.
    pub chosen: Vec<PathBuf>,
    /// Files that leave the session.
    pub instead_of: Vec<PathBuf>,
    /// The files of a run of many ranks, none of which was read.
    pub many_ranks: Option<RankFiles>,
}

impl Opening {
    /// Begins to read files and folders.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(request: Request, log_pattern: Option<Regex>, wake: Wake) -> std::io::Result<Self> {
        let (sender, messages) = channel();
        let outcome =
            Outcome { instead_of: request.instead_of, chosen: request.chosen, ..Outcome::default() };
        let (paths, all_at_once) = (request.paths, request.all_at_once);
        thread::Builder::new().name("open".to_owned()).spawn(move || {
            open_all(&paths, all_at_once, log_pattern.as_ref(), &sender, &wake);
            // The receiver is gone when the window has closed; then there is nobody to tell.
            let _ = sender.send(Message::Finished);
            wake();
        })?;
        Ok(Self { files: Vec::new(), messages, outcome })
    }

    /// Takes in what was read since; the outcome when all is done.
    pub fn poll(&mut self) -> Option<Outcome> {
        while let Ok(message) = self.messages.try_recv() {
            match message {
                Message::Found(files, too_many) => (self.files, self.outcome.too_many) = (files, too_many),
                Message::ManyRanks(files) => self.outcome.many_ranks = Some(files),
                Message::Read(at, result) => self.take(at, *result),
                Message::Finished => {
                    let mut outcome = std::mem::take(&mut self.outcome);
                    // They are read several at once and end in any order.
                    outcome.failed.sort_unstable();
                    outcome.left_out.sort_by(|a, b| a.name.cmp(&b.name));
                    return Some(outcome);
                }
            }
        }
        None
    }

    fn take(&mut self, at: usize, result: Result<Recording, ImportError>) {
        let Some(file) = self.files.get_mut(at) else { return };
        let outcome = &mut self.outcome;
        file.is_done = true;
        match result {
            Ok(recording) => outcome.recordings.push(Opened::new(&file.path, Arc::new(recording))),
            Err(ImportError::Unknown { .. } | ImportError::Empty { .. }) if file.is_from_folder => {
                outcome.skipped += 1;
            }
            Err(error) => {
                if matches!(error, ImportError::Content { .. } | ImportError::Io { .. }) {
                    outcome.left_out.push(LeftOut::file(&file.path, error.cause()));
                }
                outcome.failed.push((file.name(), error.to_string()));
            }
        }
    }

    /// Stops all files that are not read yet.
    pub fn cancel_all(&self) {
        for file in &self.files {
            file.progress.cancel();
        }
    }
}

/// Asks the window to look again.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

fn open_all(
    paths: &[PathBuf],
    all_at_once: bool,
    log_pattern: Option<&Regex>,
    sender: &Sender<Message>,
    wake: &Wake,
) {
    let mut files: Vec<File> = paths
        .iter()
        .flat_map(|path| {
            let is_from_folder = path.is_dir();
            let found = import::expand_paths(std::slice::from_ref(path));
            found.into_iter().map(move |path| File {
                path,
                progress: Progress::default(),
                is_from_folder,
                is_done: false,
            })
        })
        .collect();
    if !all_at_once {
        let found: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
        if let Some(ranks) = RankFiles::of(&found, import::is_process_file, false) {
            // Nobody listens any more when the window has closed; so below.
            drop(sender.send(Message::ManyRanks(ranks)));
            return;
        }
    }
    let too_many = files.len().saturating_sub(MAX_FILES);
    files.truncate(MAX_FILES);
    if sender.send(Message::Found(files.clone(), too_many)).is_err() {
        return;
    }
    wake();
    let all_read = import::in_parallel("import", MAX_READERS, &files, |at, file| {
        let result = read_one(&file.path, log_pattern, &file.progress);
        if sender.send(Message::Read(at, Box::new(result))).is_err() {
            return ControlFlow::Break(());
        }
        wake();
        ControlFlow::Continue(())
    });
    if let Err(error) = all_read {
        log::warn!("no thread to read files on: {error}");
    }
}

fn read_one(path: &Path, log_pattern: Option<&Regex>, progress: &Progress) -> Result<Recording, ImportError> {
    if progress.is_cancelled() {
        return Err(ImportError::Cancelled { file: path.display().to_string() });
    }
    import::import_path_with(path, log_pattern, progress)
}

/// What a session was built from, and the session.
pub type Built = (Vec<Opened>, Arc<Data>);

/// A session that is being put together.
pub struct Building {
    result: Receiver<Built>,
}

impl Building {
    /// Begins to put files together; dropping the value forgets the result.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(opened: Vec<Opened>, user_code: UserCode, wake: Wake) -> std::io::Result<Self> {
        let (sender, result) = channel();
        thread::Builder::new().name("session".to_owned()).spawn(move || {
            let data = Arc::new(Data::build(&opened, user_code));
            if sender.send((opened, data)).is_ok() {
                wake();
            }
        })?;
        Ok(Self { result })
    }

    /// The session, when it is ready. An error when putting it together failed.
    pub fn poll(&self) -> Option<Result<Built, &'static str>> {
        match self.result.try_recv() {
            Ok(ready) => Some(Ok(ready)),
            Err(std::sync::mpsc::TryRecvError::Empty) => None,
            Err(std::sync::mpsc::TryRecvError::Disconnected) => {
                Some(Err(t!("the files could not be put together; the session is as it was")))
            }
        }
    }
}
