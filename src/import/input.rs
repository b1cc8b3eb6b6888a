//! The bytes of a file: mapped, or inflated on the way when it is compressed.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use memmap2::Mmap;

use super::{ImportError, Progress};

/// How much of a file's beginning is looked at to tell its kind.
const HEAD_BYTES: usize = 64 * 1024;

/// A file to import.
#[derive(Debug)]
pub struct Input {
    path: PathBuf,
    bytes: Bytes,
    compression: Compression,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
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
    /// The bytes, borrowed from the mapped file when it is not compressed.
    pub bytes: Cow<'a, [u8]>,
    /// Why inflation ended early, when it did; what came out before is in `bytes`.
    pub cut: Option<String>,
}

impl Input {
    /// Opens and maps a file. Only regular files: a pipe or a device could block or never end.
    ///
    /// # Errors
    /// [`ImportError::Io`] and [`ImportError::Empty`].
    pub fn open(path: &Path) -> Result<Self, ImportError> {
        let file_name = || path.display().to_string();
        let io = |cause| ImportError::Io { cause, file: file_name() };
        let metadata = path.metadata().map_err(io)?;
        if !metadata.is_file() {
            return Err(ImportError::content("this is not a regular file", file_name()));
        }
        if metadata.len() == 0 {
            return Err(ImportError::Empty { file: file_name() });
        }
        let file = File::open(path).map_err(io)?;
        #[expect(unsafe_code, reason = "the one place where a file is mapped; it is only read")]
        // SAFETY: the map is read-only and private to this value. Another program may still change the file under it;
        // every importer treats the bytes as untrusted and copies what it keeps.
        let map = unsafe { Mmap::map(&file) }.map_err(io)?;
        Ok(Self::new(path.to_owned(), Bytes::Mapped(map)))
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
    /// [`io::Error`]s after everything that could be inflated.
    pub fn reader<'a>(&'a self, progress: &Progress) -> Box<dyn Read + 'a> {
        progress.set_total(self.disk_bytes());
        let raw = Counted { bytes: self.bytes.as_slice(), at: 0, progress: progress.clone() };
        match self.compression {
            Compression::None => Box::new(raw),
            Compression::Gzip => Box::new(MultiGzDecoder::new(io::BufReader::with_capacity(256 * 1024, raw))),
            Compression::Zstd => match zstd::Decoder::new(raw) {
                Ok(decoder) => Box::new(decoder),
                Err(error) => Box::new(Failing(Some(error))),
            },
        }
    }

    /// The whole content: mapped when it is not compressed, else inflated up to `limit_bytes`.
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
                    break Some(format!(
                        "it inflates to more than {}",
                        crate::model::format_bytes(limit_bytes)
                    ));
                }
                Ok(count) => bytes.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if bytes.is_empty() => {
                    return Err(ImportError::content(
                        format!("the compressed data is damaged ({error})"),
                        self.name(),
                    ));
                }
                Err(error) => break Some(format!("the compressed data is damaged or cut ({error})")),
            }
        };
        Ok(Inflated { bytes: Cow::Owned(bytes), cut })
    }
}

impl Bytes {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Owned(bytes) => bytes,
        }
    }
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

struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(self.0.take().unwrap_or_else(|| io::ErrorKind::InvalidData.into()))
    }
}
