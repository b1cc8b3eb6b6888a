//! The bytes of a file: read as a stream, or held whole, and inflated on the way when it is compressed.
//!
//! Files are copied rather than mapped: a mapped file that another program cuts short ends the process with a bus error.
//! In huge pages the copy costs no more than the page faults of a map do.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use memmap2::MmapMut;

use super::{ImportError, Progress, shown_path};
use crate::text::t;

/// How much of a file's beginning is looked at to tell its kind.
const HEAD_BYTES: usize = 64 * 1024;

/// How much of a file is read between two looks at whether to stop.
const READ_BYTES: usize = 8 << 20;

/// What a compressed file may inflate to: so much, and so many times its size. Recordings inflate to 10 to 25 times
/// theirs; a few megabytes that inflate to gigabytes are made to fill the memory.
const INFLATED_BYTES: u64 = 256 << 20;
const INFLATED_TIMES: u64 = 40;

/// A file to import.
#[derive(Debug)]
pub struct Input {
    path: PathBuf,
    origin: Origin,
    compression: Compression,
}

/// Where the bytes come from.
#[derive(Debug)]
enum Origin {
    /// A file, and how long it was when it was opened: what is appended later does not count.
    File(File, u64),
    Memory(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    None,
    Gzip,
    Zstd,
}

/// The whole content of a file.
#[derive(Debug)]
pub struct Inflated<'a> {
    /// The bytes, inflated.
    pub bytes: Content<'a>,
    /// Why inflation ended early, when it did; what came out before is in `bytes`.
    pub cut: Option<String>,
}

/// Bytes in memory, wherever they lie.
#[derive(Debug)]
pub enum Content<'a> {
    /// Read from a file: the first bytes of the memory that was asked for, all of them unless the file shrank meanwhile.
    Read(MmapMut, usize),
    /// Inflated, or those of an input from memory.
    Bytes(Cow<'a, [u8]>),
}

impl Deref for Content<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Read(memory, length) => &memory[..*length],
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl Input {
    /// Opens a file. Only regular files: a pipe or a device could block or never end.
    ///
    /// # Errors
    /// [`ImportError::Io`], [`ImportError::Empty`], and [`ImportError::Content`] for what is no regular file.
    pub fn open(path: &Path) -> Result<Self, ImportError> {
        let file_name = || shown_path(path);
        let io = |cause| ImportError::Io { cause, file: file_name() };
        let metadata = path.metadata().map_err(io)?;
        if metadata.is_dir() {
            // Folders that can be listed never come here.
            path.read_dir().map_err(io)?;
            return Err(ImportError::content(t!("this is a folder"), file_name()));
        }
        if !metadata.is_file() {
            return Err(ImportError::content(t!("this is a pipe or a device, not a file"), file_name()));
        }
        if metadata.len() == 0 {
            return Err(ImportError::Empty { file: file_name() });
        }
        let file = File::open(path).map_err(io)?;
        Self::new(path.to_owned(), Origin::File(file, metadata.len())).map_err(io)
    }

    /// An input from memory, named `name` in messages.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Self {
        let compression = Compression::of(&bytes);
        Self { path: PathBuf::from(name), origin: Origin::Memory(bytes), compression }
    }

    fn new(path: PathBuf, origin: Origin) -> io::Result<Self> {
        let mut magic = Vec::new();
        origin.reader().take(Compression::MAGIC_BYTES).read_to_end(&mut magic)?;
        Ok(Self { path, origin, compression: Compression::of(&magic) })
    }

    /// The path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path as text, for messages.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Bytes on disk, which progress counts in.
    pub fn disk_bytes(&self) -> u64 {
        match &self.origin {
            Origin::File(_, length) => *length,
            Origin::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Whether it is compressed.
    pub(super) fn is_compressed(&self) -> bool {
        self.compression != Compression::None
    }

    /// The beginning of the content.
    ///
    /// # Errors
    /// When nothing of it can be read or inflated. A later fault shows up again when the whole is read.
    pub fn head(&self) -> Result<Vec<u8>, ImportError> {
        let mut head = Vec::new();
        match self.reader(&Progress::default()).take(HEAD_BYTES as u64).read_to_end(&mut head) {
            Err(error) if head.is_empty() => Err(ImportError::content(self.cut_reason(&error), self.name())),
            _ => Ok(head),
        }
    }

    /// Reads the content as a stream, inflating on the way, and reports progress. Errors while reading and inflating
    /// surface as [`io::Error`]s after everything that could be had; [`Self::cut_reason`] puts them into words.
    pub fn reader<'a>(&'a self, progress: &Progress) -> Box<dyn Read + 'a> {
        progress.set_total(self.disk_bytes());
        let raw = Counted { bytes: self.origin.reader(), done: 0, progress: progress.clone() };
        let inflated: Box<dyn Read + 'a> = match self.compression {
            Compression::None => return Box::new(raw),
            Compression::Gzip => Box::new(MultiGzDecoder::new(io::BufReader::with_capacity(256 * 1024, raw))),
            Compression::Zstd => match zstd::Decoder::new(raw) {
                Ok(decoder) => Box::new(decoder),
                Err(error) => Box::new(Failing(Some(error))),
            },
        };
        let limit = INFLATED_BYTES.saturating_add(self.disk_bytes().saturating_mul(INFLATED_TIMES));
        Box::new(Limited { inflated, left: limit, limit })
    }

    /// The whole content: as it is when it is not compressed, else inflated up to `limit_bytes`.
    ///
    /// # Errors
    /// [`ImportError::Cancelled`], [`ImportError::Io`], and [`ImportError::Content`] when there is no memory to hold it
    /// or not a single byte can be inflated.
    pub fn read_all(&self, progress: &Progress, limit_bytes: u64) -> Result<Inflated<'_>, ImportError> {
        if self.is_compressed() {
            return self.inflate(progress, limit_bytes);
        }
        let length = match &self.origin {
            Origin::File(_, length) => *length,
            Origin::Memory(bytes) => {
                progress.set_total(bytes.len() as u64);
                return Ok(Inflated { bytes: Content::Bytes(Cow::Borrowed(bytes)), cut: None });
            }
        };
        let memory = memory(length).map_err(|_| {
            let size = crate::model::format_bytes(length);
            ImportError::content(t!("there is no memory to hold its {size}", size), self.name())
        })?;
        match fill(memory, self.reader(progress), progress) {
            Ok(Some(content)) if content.is_empty() => Err(ImportError::Empty { file: self.name() }),
            Ok(Some(bytes)) => Ok(Inflated { bytes, cut: None }),
            Ok(None) => Err(ImportError::Cancelled { file: self.name() }),
            Err(cause) => Err(ImportError::Io { cause, file: self.name() }),
        }
    }

    fn inflate(&self, progress: &Progress, limit_bytes: u64) -> Result<Inflated<'_>, ImportError> {
        let mut reader = self.reader(progress);
        let mut bytes = Vec::new();
        let mut chunk = vec![0; 256 * 1024];
        let cut = loop {
            if progress.is_cancelled() {
                return Err(ImportError::Cancelled { file: self.name() });
            }
            match reader.read(&mut chunk) {
                Ok(0) => break None,
                Ok(count) if bytes.len() as u64 + count as u64 > limit_bytes => {
                    bytes.extend_from_slice(&chunk[..(limit_bytes - bytes.len() as u64) as usize]);
                    break Some(t!(
                        "it inflates to more than {limit}",
                        limit = crate::model::format_bytes(limit_bytes)
                    ));
                }
                Ok(count) => bytes.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if bytes.is_empty() => {
                    return Err(ImportError::content(self.cut_reason(&error), self.name()));
                }
                Err(error) => break Some(self.cut_reason(&error)),
            }
        };
        Ok(Inflated { bytes: Content::Bytes(Cow::Owned(bytes)), cut })
    }

    /// Why a file was not read to its end.
    pub(super) fn cut_reason(&self, error: &io::Error) -> String {
        match error.kind() {
            io::ErrorKind::FileTooLarge => error.to_string(),
            _ if !self.is_compressed() => t!("reading failed ({error})", error),
            _ => t!("the compressed data is damaged or cut ({error})", error),
        }
    }
}

impl Origin {
    /// Reads from the beginning, whatever else reads the same file.
    fn reader(&self) -> OriginReader<'_> {
        match self {
            Self::File(file, length) => OriginReader::File { file, at: 0, length: *length },
            Self::Memory(bytes) => OriginReader::Memory(bytes),
        }
    }
}

impl Compression {
    const MAGIC_BYTES: u64 = 4;

    fn of(beginning: &[u8]) -> Self {
        match beginning {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            _ => Self::None,
        }
    }
}

enum OriginReader<'a> {
    File { file: &'a File, at: u64, length: u64 },
    Memory(&'a [u8]),
}

impl Read for OriginReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File { file, at, length } => {
                let most = usize::try_from(*length - *at).unwrap_or(usize::MAX).min(buffer.len());
                #[cfg(unix)]
                let count = std::os::unix::fs::FileExt::read_at(*file, &mut buffer[..most], *at)?;
                #[cfg(windows)]
                let count = std::os::windows::fs::FileExt::seek_read(*file, &mut buffer[..most], *at)?;
                *at += count as u64;
                Ok(count)
            }
            Self::Memory(bytes) => bytes.read(buffer),
        }
    }
}

/// Memory of so many bytes, in huge pages where the system has them.
fn memory(length: u64) -> io::Result<MmapMut> {
    let length = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let memory = MmapMut::map_anon(length)?;
    #[cfg(target_os = "linux")]
    // A kernel without huge pages is slower and nothing else.
    let _ = memory.advise(memmap2::Advice::HugePage);
    Ok(memory)
}

/// Fills memory from a file, as far as the file goes. `None` when cancelled.
fn fill(
    mut memory: MmapMut,
    mut from: impl Read,
    progress: &Progress,
) -> io::Result<Option<Content<'static>>> {
    let mut length = 0;
    while length < memory.len() {
        if progress.is_cancelled() {
            return Ok(None);
        }
        let end = memory.len().min(length + READ_BYTES);
        match from.read(&mut memory[length..end]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(Content::Read(memory, length)))
}

/// Reads and tells how far it is.
struct Counted<R> {
    bytes: R,
    done: u64,
    progress: Progress,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read(buffer)?;
        self.done += count as u64;
        self.progress.set_done(self.done);
        Ok(count)
    }
}

/// Inflates so much and no more.
struct Limited<'a> {
    inflated: Box<dyn Read + 'a>,
    left: u64,
    limit: u64,
}

impl Read for Limited<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            let limit = crate::model::format_bytes(self.limit);
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                t!("it inflates to {limit} and more", limit),
            ));
        }
        let count = self.inflated.by_ref().take(self.left).read(buffer)?;
        self.left -= count as u64;
        Ok(count)
    }
}

struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(self.0.take().unwrap_or_else(|| io::ErrorKind::InvalidData.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_shrank_is_read_as_far_as_it_goes() {
        let bytes = fill(memory(10).unwrap(), b"abc".as_slice(), &Progress::default()).unwrap().unwrap();
        assert_eq!(&*bytes, b"abc");
    }

    #[test]
    fn a_file_that_grew_is_read_as_long_as_it_was() {
        let bytes = fill(memory(2).unwrap(), b"abc".as_slice(), &Progress::default()).unwrap().unwrap();
        assert_eq!(&*bytes, b"ab");
    }

    #[test]
    fn what_inflates_without_end_is_read_up_to_a_limit() {
        let inflated = Box::new(io::repeat(b'x'));
        let mut limited = Limited { inflated, left: 3, limit: 3 };
        let mut bytes = Vec::new();
        let error = limited.read_to_end(&mut bytes).unwrap_err();
        assert_eq!(
            (bytes.as_slice(), Input::from_bytes("x", Vec::new()).cut_reason(&error).as_str()),
            (b"xxx".as_slice(), "it inflates to 3 B and more")
        );
    }

    #[test]
    fn reading_stops_when_asked_and_fails_with_the_file() {
        let stopped = Progress::default();
        stopped.cancel();
        assert!(fill(memory(2).unwrap(), b"abc".as_slice(), &stopped).unwrap().is_none());
        let broken = Failing(Some(io::Error::other("the disk is gone")));
        assert!(fill(memory(2).unwrap(), broken, &Progress::default()).is_err());
        assert!(memory(u64::MAX).is_err());
    }
}
