//! Opening files: each is read on a named thread, with progress and a way to stop.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use regex::Regex;

use super::data::Data;
use crate::align::Opened;
use crate::analysis::UserCode;
use crate::import::{self, ImportError, Progress};
use crate::model::Recording;
use crate::text::t;

/// How many files are read at once.
const MAX_READERS: usize = 4;
/// How many files of a folder are looked at.
const MAX_FILES: usize = 2_000;

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
    Found(Vec<File>),
    Read(usize, Box<Result<Recording, ImportError>>),
    Finished,
}

/// Files on their way in.
pub struct Opening {
    /// The files, once folders have been walked.
    pub files: Vec<File>,
    messages: Receiver<Message>,
    recordings: Vec<Opened>,
    errors: Vec<String>,
    skipped: usize,
}

/// What came of opening files.
pub struct Outcome {
    /// What was read.
    pub recordings: Vec<Opened>,
    /// Why others were not, a sentence each.
    pub errors: Vec<String>,
    /// How many files of folders are of no kind that is known.
    pub skipped: usize,
}

impl Opening {
    /// Begins to read files and folders.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(paths: Vec<PathBuf>, log_pattern: Option<Regex>, wake: Wake) -> std::io::Result<Self> {
        let (sender, messages) = channel();
        std::thread::Builder::new()
            .name("open".to_owned())
            .spawn(move || read_all(&paths, log_pattern.as_ref(), &sender, &wake))?;
        Ok(Self { files: Vec::new(), messages, recordings: Vec::new(), errors: Vec::new(), skipped: 0 })
    }

    /// Takes in what was read since; the outcome when all is done.
    pub fn poll(&mut self) -> Option<Outcome> {
        while let Ok(message) = self.messages.try_recv() {
            match message {
                Message::Found(files) => self.files = files,
                Message::Read(at, result) => self.take(at, *result),
                Message::Finished => {
                    return Some(Outcome {
                        recordings: std::mem::take(&mut self.recordings),
                        errors: std::mem::take(&mut self.errors),
                        skipped: self.skipped,
                    });
                }
            }
        }
        None
    }

    fn take(&mut self, at: usize, result: Result<Recording, ImportError>) {
        let Some(file) = self.files.get_mut(at) else { return };
        file.is_done = true;
        match result {
            Ok(recording) => self.recordings.push(Opened::new(&file.path, Arc::new(recording))),
            Err(ImportError::Unknown { .. } | ImportError::Empty { .. }) if file.is_from_folder => {
                self.skipped += 1;
            }
            Err(error) => self.errors.push(error.to_string()),
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

fn read_all(paths: &[PathBuf], log_pattern: Option<&Regex>, sender: &Sender<Message>, wake: &Wake) {
    let files: Vec<File> = paths
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
        .take(MAX_FILES)
        .collect();
    let jobs: Vec<(usize, PathBuf, Progress)> =
        files.iter().enumerate().map(|(at, file)| (at, file.path.clone(), file.progress.clone())).collect();
    let readers = jobs.len().min(MAX_READERS);
    let queue = Mutex::new(jobs.into_iter());
    if sender.send(Message::Found(files)).is_err() {
        return;
    }
    wake();
    std::thread::scope(|scope| {
        for number in 1..=readers {
            let (queue, sender, wake) = (&queue, sender.clone(), wake.clone());
            let builder = std::thread::Builder::new().name(format!("import {number}"));
            let read = move || {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((at, path, progress)) = next else { return };
                    let result = read_one(&path, log_pattern, &progress);
                    if sender.send(Message::Read(at, Box::new(result))).is_err() {
                        return;
                    }
                    wake();
                }
            };
            if let Err(error) = builder.spawn_scoped(scope, read) {
                log::warn!("no thread to read files on: {error}");
            }
        }
    });
    // The receiver is gone when the window has closed; then there is nobody to tell.
    let _ = sender.send(Message::Finished);
    wake();
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
        std::thread::Builder::new().name("session".to_owned()).spawn(move || {
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
