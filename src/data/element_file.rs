//! Files of elements, as `cache_file`, `snapshot` and `save` write them.
//!
//! A file has a header (eight letters, whether the body is compressed, the type of the elements), a body with the length, the
//! checksum and the bytes of each element, and a footer (the number of elements, its checksum, eight letters). A file is
//! written next to its final path and renamed when it is complete.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::codec;
use super::item::Item;
use crate::error::{Error, Result, message};
use crate::files::{self, Replacement};

const HEAD: &[u8; 8] = b"wgradel1";
const END: &[u8; 8] = b"wgradend";
/// The bytes after the body.
const END_BYTES: u64 = 8 + 4 + 8;
/// The bytes before an element.
const ELEMENT_HEAD: usize = 8 + 4;
/// The maximum length of the text of the elements' types.
const LONGEST_SPEC: u64 = 1 << 20;
/// The most bytes that one byte of a compressed body can expand to: deflate's limit is 1,032.
#[cfg(feature = "gzip")]
const PACKED: u64 = 1032;

/// Writes elements one after another.
pub(super) struct ElementWriter<T> {
    path: PathBuf,
    replacement: Replacement,
    body: Body,
    count: u64,
    element: PhantomData<fn(T)>,
}

enum Body {
    Plain(BufWriter<File>),
    #[cfg(feature = "gzip")]
    Packed(Box<flate2::write::GzEncoder<BufWriter<File>>>),
}

impl Body {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Body::Plain(out) => out,
            #[cfg(feature = "gzip")]
            Body::Packed(out) => out,
        }
    }

    fn finish(self) -> io::Result<BufWriter<File>> {
        match self {
            Body::Plain(out) => Ok(out),
            #[cfg(feature = "gzip")]
            Body::Packed(out) => out.finish(),
        }
    }
}

fn end_of(count: u64, spec: &str) -> [u8; END_BYTES as usize] {
    let mut end = [0; END_BYTES as usize];
    end[..8].copy_from_slice(&count.to_le_bytes());
    let mut sum = crc32fast::Hasher::new();
    sum.update(spec.as_bytes());
    sum.update(&end[..8]);
    end[8..12].copy_from_slice(&sum.finalize().to_le_bytes());
    end[12..].copy_from_slice(END);
    end
}

impl<T: Item> ElementWriter<T> {
    /// Begins a file. Fails if another pass or program is writing it.
    pub(super) fn begin(stage: &str, path: &Path, packed: bool) -> Result<Self> {
        let io = |error| Error::io(path, error);
        let mut replacement = Replacement::begin(path).map_err(io)?;
        // A pass that was just dropped may still be in the middle of an element.
        let waits = (0..100).find(|_| {
            let alone = replacement.other().is_none();
            if !alone {
                thread::sleep(Duration::from_millis(10));
            }
            alone
        });
        if let (None, Some(other)) = (waits, replacement.other()) {
            return Err(Error::Data(message!(
                "{stage}: another pass writes {} at this time, in {}. Wait until it ends; if no program does, delete that file.",
                path.display(),
                other.display()
            )));
        }
        let mut out = BufWriter::new(replacement.file().try_clone().map_err(io)?);
        let spec = T::type_spec().to_string();
        let head =
            [&HEAD[..], &[u8::from(packed)], &(spec.len() as u64).to_le_bytes(), spec.as_bytes()];
        out.write_all(&head.concat()).map_err(io)?;
        let body = match packed {
            false => Body::Plain(out),
            #[cfg(feature = "gzip")]
            true => {
                let level = flate2::Compression::fast();
                Body::Packed(Box::new(flate2::write::GzEncoder::new(out, level)))
            }
            #[cfg(not(feature = "gzip"))]
            true => {
                return Err(Error::Data(message!(
                    "{stage}: {} cannot be compressed; build with the feature `gzip`.",
                    path.display()
                )));
            }
        };
        Ok(ElementWriter {
            path: path.to_path_buf(),
            replacement,
            body,
            count: 0,
            element: PhantomData,
        })
    }

    pub(super) fn write(&mut self, element: &T) -> Result<()> {
        let mut bytes = codec::Writer::new();
        element.write(&mut bytes)?;
        let bytes = bytes.into_bytes();
        let mut head = [0; ELEMENT_HEAD];
        head[..8].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        head[8..].copy_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        let out = self.body.writer();
        let written = out.write_all(&head).and_then(|()| out.write_all(&bytes));
        written.map_err(|error| Error::io(&self.path, error))?;
        self.count += 1;
        Ok(())
    }

    /// The elements written so far, read back.
    pub(super) fn so_far(&mut self) -> Result<ElementReader<T>> {
        self.body.writer().flush().map_err(|error| Error::io(&self.path, error))?;
        ElementReader::begin(self.replacement.temporary(), Some(self.count))
    }

    /// Completes the file and gives it its name.
    pub(super) fn finish(self) -> Result<()> {
        let ElementWriter { path, replacement, body, count, .. } = self;
        let end = end_of(count, &T::type_spec().to_string());
        let written = body.finish().and_then(|mut out| {
            out.write_all(&end)?;
            out.flush()
        });
        written.and_then(|()| replacement.finish()).map_err(|error| Error::io(path, error))
    }
}

/// Reads elements one after another.
pub(super) struct ElementReader<T> {
    path: PathBuf,
    body: Box<dyn Read + Send>,
    /// The maximum size of an element in bytes.
    longest: u64,
    at: u64,
    count: u64,
    element: PhantomData<fn() -> T>,
}

impl<T: Item> ElementReader<T> {
    /// Opens a complete file.
    pub(super) fn open(path: &Path) -> Result<Self> {
        Self::begin(path, None)
    }

    /// Opens a file; `so_far` is the number of elements in a file that is still being written.
    fn begin(path: &Path, so_far: Option<u64>) -> Result<Self> {
        let broken = |what: &str| Error::Data(message!("{}: {what}", path.display()));
        let io = |error| Error::io(path, error);
        let size = files::look(path).map_err(io)?.len();
        let mut file = File::open(path).map_err(io)?;
        let cut = "it is not a complete file of elements that wgrad wrote; it is truncated or corrupt. Delete it, \
                   and it is written again.";
        let mut head = [0; 17];
        file.read_exact(&mut head).map_err(|_| broken(cut))?;
        let mut spec_bytes = [0; 8];
        spec_bytes.copy_from_slice(&head[9..]);
        let spec_bytes = u64::from_le_bytes(spec_bytes);
        let end_bytes = if so_far.is_some() { 0 } else { END_BYTES };
        let body = size.checked_sub(17 + end_bytes).and_then(|rest| rest.checked_sub(spec_bytes));
        let (true, Some(body)) = (head[..8] == *HEAD && spec_bytes <= LONGEST_SPEC, body) else {
            return Err(broken(cut));
        };
        let mut spec = vec![0; spec_bytes as usize];
        file.read_exact(&mut spec).map_err(io)?;
        let expected = T::type_spec().to_string();
        if spec != expected.as_bytes() {
            return Err(broken(&format!(
                "its elements are {}, and those of this dataset {expected}. Use another file, or delete it.",
                String::from_utf8_lossy(&spec)
            )));
        }
        let count = match so_far {
            Some(count) => count,
            None => {
                let mut end = [0; END_BYTES as usize];
                file.seek(SeekFrom::End(-(END_BYTES as i64))).map_err(io)?;
                file.read_exact(&mut end).map_err(io)?;
                file.seek(SeekFrom::Start(17 + spec_bytes)).map_err(io)?;
                let mut count = [0; 8];
                count.copy_from_slice(&end[..8]);
                let count = u64::from_le_bytes(count);
                if end != end_of(count, &expected) {
                    return Err(broken(cut));
                }
                count
            }
        };
        let plain = BufReader::new(file).take(body);
        let (body, longest): (Box<dyn Read + Send>, u64) = match head[8] {
            0 => (Box::new(plain), body),
            #[cfg(feature = "gzip")]
            1 => (
                Box::new(BufReader::new(flate2::bufread::GzDecoder::new(plain))),
                body.saturating_mul(PACKED),
            ),
            #[cfg(not(feature = "gzip"))]
            1 => return Err(broken("it is compressed; build with the feature `gzip`.")),
            _ => return Err(broken(cut)),
        };
        Ok(ElementReader {
            path: path.to_path_buf(),
            body,
            longest,
            at: 0,
            count,
            element: PhantomData,
        })
    }

    pub(super) fn elements(&self) -> u64 {
        self.count
    }

    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Continues after this many elements.
    pub(super) fn pass_over(&mut self, count: u64) -> Result<()> {
        if count > self.count {
            return Err(Error::Data(message!(
                "resume: the state is after {count} elements of {}, which has {}; it was written again.",
                self.path.display(),
                self.count
            )));
        }
        while self.at < count {
            self.bytes()?;
            self.at += 1;
        }
        Ok(())
    }

    /// The bytes of the next element.
    fn bytes(&mut self) -> Result<Vec<u8>> {
        let (path, at) = (&self.path, self.at);
        let broken = |what: &str| {
            Error::Data(message!("{}: element {at} of {}: {what}", path.display(), self.count))
        };
        let refused = |error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => broken("the file is truncated or corrupt."),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                broken(&format!("the compressed bytes are corrupt: {error}."))
            }
            _ => Error::io(path, error),
        };
        let mut head = [0; ELEMENT_HEAD];
        self.body.read_exact(&mut head).map_err(refused)?;
        let (mut length, mut sum) = ([0; 8], [0; 4]);
        length.copy_from_slice(&head[..8]);
        sum.copy_from_slice(&head[8..]);
        let length = u64::from_le_bytes(length);
        if length > self.longest {
            return Err(broken(&format!(
                "its {length} bytes are more than the file has; it is corrupt."
            )));
        }
        let mut bytes = Vec::new();
        let read = (&mut self.body).take(length).read_to_end(&mut bytes).map_err(refused)?;
        if read as u64 != length {
            return Err(broken("the file is truncated or corrupt."));
        }
        if crc32fast::hash(&bytes).to_le_bytes() != sum {
            return Err(broken(
                "its checksum differs; the file is corrupt. Delete it, and it is written again.",
            ));
        }
        Ok(bytes)
    }

    fn element(&mut self) -> Result<T> {
        let bytes = self.bytes()?;
        let mut from = codec::Reader::new(&bytes);
        let element = T::read(&mut from)?;
        if from.left() > 0 {
            return Err(Error::Data(message!(
                "{}: element {} has {} bytes too many; the file is corrupt.",
                self.path.display(),
                self.at,
                from.left()
            )));
        }
        Ok(element)
    }
}

impl<T: Item> Iterator for ElementReader<T> {
    type Item = Result<T>;

    /// The next element. After an error nothing more can be read.
    fn next(&mut self) -> Option<Result<T>> {
        if self.at >= self.count {
            return None;
        }
        let element = self.element();
        self.at = if element.is_ok() { self.at + 1 } else { self.count };
        Some(element)
    }
}
