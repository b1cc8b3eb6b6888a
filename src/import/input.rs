//! The bytes of a file: held in memory, and inflated on the way when it is compressed.
//!
//! Files are copied rather than mapped: a mapped file that another program cuts short ends the process with a bus error.
//! In huge pages the copy costs no more than the page faults of a map do.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use memmap2::MmapMut;

use super::{ImportError, Progress};
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
    bytes: Bytes,
    compression: Compression,
}

#[derive(Debug)]
enum Bytes {
    /// The first bytes of the memory that was asked for, all of them unless the file shrank meanwhile.
    Read(MmapMut, usize),
    Owned(Vec<u8>),
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
    /// The bytes, borrowed from the input when it is not compressed.
    pub bytes: Cow<'a, [u8]>,
    /// Why inflation ended early, when it did; what came out before is in `bytes`.
    pub cut: Option<String>,
}

impl Input {
    /// Opens and reads a file as long as it is now. Only regular files: a pipe or a device could block or never end.
    ///
    /// # Errors
    /// [`ImportError::Io`], [`ImportError::Empty`], [`ImportError::Cancelled`], and [`ImportError::Content`] for what is
    /// no regular file or larger than memory.
    pub fn open(path: &Path, progress: &Progress) -> Result<Self, ImportError> {
        let file_name = || path.display().to_string();
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
        let memory = memory(metadata.len()).map_err(|_| {
            let size = crate::model::format_bytes(metadata.len());
            ImportError::content(t!("there is no memory to hold its {size}", size), file_name())
        })?;
        match fill(memory, file, progress).map_err(io)? {
            Some(Bytes::Read(_, 0)) => Err(ImportError::Empty { file: file_name() }),
            Some(bytes) => Ok(Self::new(path.to_owned(), bytes)),
            None => Err(ImportError::Cancelled { file: file_name() }),
        }
    }

    /// An input from memory, named `name` in messages.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Self {
        Self::new(PathBuf::from(name), Bytes::Owned(bytes))
    }

    fn new(path: PathBuf, bytes: Bytes) -> Self {
        let compression = match bytes.as_slice() {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            _ => Compression::None,
        };
        Self { path, bytes, compression }
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
        self.bytes.as_slice().len() as u64
    }

    /// Whether it is compressed.
    pub fn is_compressed(&self) -> bool {
        self.compression != Compression::None
    }

    /// The whole content when it is not compressed.
    pub fn uncompressed(&self) -> Option<&[u8]> {
        (!self.is_compressed()).then(|| self.bytes.as_slice())
    }

    /// The beginning of the content.
    pub fn head(&self) -> Vec<u8> {
        let mut head = Vec::new();
        // A fault in the compressed data shows up again, with a message, when the file is read.
        let _ = self.reader(&Progress::default()).take(HEAD_BYTES as u64).read_to_end(&mut head);
        head
    }

    /// Reads the content as a stream, inflating on the way, and reports progress. Errors while inflating surface as
    /// [`io::Error`]s after everything that could be inflated; [`cut_reason`] puts them into words.
    pub fn reader<'a>(&'a self, progress: &Progress) -> Box<dyn Read + 'a> {
        progress.set_total(self.disk_bytes());
        let raw = Counted { bytes: self.bytes.as_slice(), at: 0, progress: progress.clone() };
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
    /// [`ImportError::Cancelled`], and [`ImportError::Content`] when not a single byte can be inflated.
    pub fn read_all(&self, progress: &Progress, limit_bytes: u64) -> Result<Inflated<'_>, ImportError> {
        if let Some(bytes) = self.uncompressed() {
            progress.set_total(bytes.len() as u64);
            return Ok(Inflated { bytes: Cow::Borrowed(bytes), cut: None });
        }
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
                    return Err(ImportError::content(cut_reason(&error), self.name()));
                }
                Err(error) => break Some(cut_reason(&error)),
            }
        };
        Ok(Inflated { bytes: Cow::Owned(bytes), cut })
    }
}

impl Bytes {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Read(memory, length) => &memory[..*length],
            Self::Owned(bytes) => bytes,
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
fn fill(mut memory: MmapMut, mut from: impl Read, progress: &Progress) -> io::Result<Option<Bytes>> {
    progress.set_total(memory.len() as u64);
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
        progress.set_done(length as u64);
    }
    Ok(Some(Bytes::Read(memory, length)))
}

/// Reads from memory and tells how far it is.
struct Counted<'a> {
    bytes: &'a [u8],
    at: usize,
    progress: Progress,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = (&self.bytes[self.at..]).read(buffer)?;
        self.at += count;
        self.progress.set_done(self.at as u64);
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

/// Why a compressed file was not read to its end.
pub(super) fn cut_reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::FileTooLarge => error.to_string(),
        _ => t!("the compressed data is damaged or cut ({error})", error),
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
        assert_eq!(bytes.as_slice(), b"abc");
    }

    #[test]
    fn a_file_that_grew_is_read_as_long_as_it_was() {
        let bytes = fill(memory(2).unwrap(), b"abc".as_slice(), &Progress::default()).unwrap().unwrap();
        assert_eq!(bytes.as_slice(), b"ab");
    }

    #[test]
    fn what_inflates_without_end_is_read_up_to_a_limit() {
        let inflated = Box::new(io::repeat(b'x'));
        let mut limited = Limited { inflated, left: 3, limit: 3 };
        let mut bytes = Vec::new();
        let error = limited.read_to_end(&mut bytes).unwrap_err();
        assert_eq!(
            (bytes.as_slice(), cut_reason(&error).as_str()),
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
