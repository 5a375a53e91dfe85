//! Opens a file whose records are read one after another, decompresses it, and can start at any byte.
//!
//! Readers of records work on any [`BufRead`]; they report its errors with [`unreadable`].

#[cfg(not(target_family = "wasm"))]
use std::io::BufRead;
use std::io::{self, Read};
use std::path::Path;

#[cfg(not(target_family = "wasm"))]
use crate::error::Result;
use crate::error::{Error, message};

/// The compression of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CompressionType {
    /// None.
    #[default]
    None,
    /// As by `gzip`; needs the feature `gzip`.
    Gzip,
    /// As by zlib; needs the feature `gzip`.
    Zlib,
}

/// A position between two records, where a reader can continue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordPosition {
    /// The decompressed bytes before it.
    pub(crate) byte: u64,
    /// The records or lines before it.
    pub(crate) record: u64,
}

/// The source of a reader.
#[cfg(not(target_family = "wasm"))]
pub type Input = Box<dyn BufRead + Send>;

/// The file at `path`, starting at this byte of its decompressed contents.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn open(
    path: &Path,
    packed: CompressionType,
    buffer: usize,
    byte: u64,
) -> Result<Input> {
    use std::fs::File;
    use std::io::{BufReader, Seek, SeekFrom};

    let system = |error| Error::io(path, error);
    crate::files::look(path).map_err(system)?;
    let mut file = File::open(path).map_err(system)?;
    if packed == CompressionType::None {
        let length = file.metadata().map_err(system)?.len();
        if byte > length {
            return Err(shrunk(path, byte, length));
        }
        file.seek(SeekFrom::Start(byte)).map_err(system)?;
        return Ok(Box::new(BufReader::with_capacity(buffer, file)));
    }
    let mut input = unpack(BufReader::with_capacity(buffer, file), packed, path)?;
    let skipped = io::copy(&mut (&mut input).take(byte), &mut io::sink());
    let skipped = skipped.map_err(|error| unreadable(path, error))?;
    if skipped < byte {
        return Err(shrunk(path, byte, skipped));
    }
    Ok(input)
}

#[cfg(not(target_family = "wasm"))]
fn shrunk(path: &Path, byte: u64, length: u64) -> Error {
    Error::Data(message!(
        "{}: the saved iterator was at byte {byte}, and the file has {length} bytes now. Begin a new pass, or \
         restore the file.",
        path.display()
    ))
}

/// The bytes of a compressed file.
#[cfg(all(feature = "gzip", not(target_family = "wasm")))]
pub(crate) fn unpack(
    from: impl BufRead + Send + 'static,
    packed: CompressionType,
    _name: &Path,
) -> Result<Input> {
    use std::io::BufReader;
    Ok(match packed {
        CompressionType::None => Box::new(from),
        CompressionType::Gzip => {
            let decoder = flate2::bufread::MultiGzDecoder::new(from);
            Box::new(BufReader::new(Worded { from: decoder, format: "GZIP" }))
        }
        CompressionType::Zlib => {
            let decoder = Zlib { from, state: flate2::Decompress::new(true), ended: false };
            Box::new(BufReader::new(Worded { from: decoder, format: "ZLIB" }))
        }
    })
}

/// The bytes of a compressed file.
#[cfg(not(any(feature = "gzip", target_family = "wasm")))]
pub(crate) fn unpack(
    from: impl BufRead + Send + 'static,
    packed: CompressionType,
    name: &Path,
) -> Result<Input> {
    match packed {
        CompressionType::None => Ok(Box::new(from)),
        _ => Err(Error::Data(message!(
            "{}: the file is compressed ({packed:?}), and wgrad was built without gzip. Build with the feature \
             \"gzip\".",
            name.display()
        ))),
    }
}

/// Describes in words why a decoder failed.
#[cfg(all(feature = "gzip", not(target_family = "wasm")))]
struct Worded<R> {
    from: R,
    format: &'static str,
}

#[cfg(all(feature = "gzip", not(target_family = "wasm")))]
impl<R: Read> Read for Worded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.from.read(into).map_err(|error| {
            let what = match error.kind() {
                io::ErrorKind::UnexpectedEof => "end too early",
                io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => "are corrupt",
                _ => return error,
            };
            let words = format!(
                "the {} data {what} ({error}). Check compression_type, and whether the file is \
                 complete.",
                self.format
            );
            io::Error::new(error.kind(), words)
        })
    }
}

/// Decompresses zlib data, and rejects data that end too early or continue after the end, which `flate2`'s own reader accepts.
#[cfg(all(feature = "gzip", not(target_family = "wasm")))]
struct Zlib<R> {
    from: R,
    state: flate2::Decompress,
    ended: bool,
}

#[cfg(all(feature = "gzip", not(target_family = "wasm")))]
impl<R: BufRead> Read for Zlib<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        use flate2::{FlushDecompress, Status};
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            let input = self.from.fill_buf()?;
            if self.ended {
                return match input.len() {
                    0 => Ok(0),
                    _ => Err(io::Error::new(io::ErrorKind::InvalidData, "bytes follow their end")),
                };
            }
            let at_end = input.is_empty();
            let (read, written) = (self.state.total_in(), self.state.total_out());
            let status = self.state.decompress(input, into, FlushDecompress::None);
            let status = status.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
            let read = (self.state.total_in() - read) as usize;
            let written = (self.state.total_out() - written) as usize;
            self.from.consume(read);
            self.ended = status == Status::StreamEnd;
            if written > 0 {
                return Ok(written);
            }
            if at_end && !self.ended {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if read == 0 && !self.ended {
                let words = "the decoder takes no more bytes";
                return Err(io::Error::new(io::ErrorKind::InvalidData, words));
            }
        }
    }
}

/// The error of reading the file `name`: about its contents if a decoder rejected them, otherwise the system's.
pub(crate) fn unreadable(name: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
            Error::Data(message!("{}: {error}", name.display()))
        }
        _ => Error::io(name, error),
    }
}

/// Appends the next `count` bytes, or fewer if the input ends earlier. Memory grows with the bytes that arrive, not with
/// `count`.
pub(crate) fn read_up_to(
    from: &mut impl Read,
    count: u64,
    into: &mut Vec<u8>,
) -> io::Result<usize> {
    /// The number of bytes that are reserved at once; most records need less.
    const AT_ONCE: u64 = 64 << 10;
    into.reserve(count.min(AT_ONCE) as usize);
    from.take(count).read_to_end(into)
}
