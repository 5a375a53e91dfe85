//! [`TfRecordWriter`]: writes a TFRecord file.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::data::files::input::CompressionType;
use crate::error::{Error, Result, message};
use crate::files::checksum::masked_crc32c;
use crate::support::options::options;

options! {
    /// Options for writing a TFRecord file.
    #[derive(Debug, Clone, Copy)]
    pub struct TfRecordOptions {
        /// The compression of the file.
        compression_type: CompressionType = CompressionType::None,
        /// The compression level: from 0, which does not compress, to 9, which is slow and small.
        compression_level: u32 = 6,
    }
}

/// Writes records that TensorFlow and [`TfRecordReader`](super::TfRecordReader) read.
///
/// Call [`close`](Self::close) at the end: a writer that is dropped writes its remaining data, but cannot report an error.
///
/// ```
/// use wgrad::data::CompressionType;
/// use wgrad::data::tfrecord::{TfRecordOptions, TfRecordWriter};
/// let path = std::env::temp_dir().join(format!("wgrad-writer-{}.tfrecord", std::process::id()));
/// let options = TfRecordOptions::new().compression_type(CompressionType::Gzip);
/// let mut writer = TfRecordWriter::create_with(&path, options)?;
/// for i in 0..10 {
///     writer.write(format!("record {i}"))?;
/// }
/// writer.close()?;
/// # std::fs::remove_file(&path).expect("it was written");
/// # Ok::<(), wgrad::Error>(())
/// ```
pub struct TfRecordWriter<W: Write> {
    /// None once it is closed.
    to: Option<Sink<W>>,
    name: PathBuf,
    /// The file that gets its name at the end.
    #[cfg(not(target_family = "wasm"))]
    replacement: Option<crate::files::Replacement>,
}

impl<W: Write> std::fmt::Debug for TfRecordWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TfRecordWriter").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The writer for uncompressed bytes.
enum Sink<W: Write> {
    Plain(BufWriter<W>),
    #[cfg(feature = "gzip")]
    Gzip(BufWriter<flate2::write::GzEncoder<W>>),
    #[cfg(feature = "gzip")]
    Zlib(BufWriter<flate2::write::ZlibEncoder<W>>),
}

#[cfg(not(target_family = "wasm"))]
impl TfRecordWriter<std::fs::File> {
    /// Writes the file at `path`. The new file is written next to an existing one and replaces it on closing, so that readers
    /// have the old one until then, or after this process was killed.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be created.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        TfRecordWriter::create_with(path, TfRecordOptions::new())
    }

    /// Writes the file at `path`, compressed as set in `options`.
    ///
    /// # Errors
    /// As [`TfRecordWriter::create`], and [`Error::Data`] as for [`TfRecordWriter::new_with`].
    pub fn create_with(path: impl AsRef<Path>, options: TfRecordOptions) -> Result<Self> {
        let path = path.as_ref();
        check(path, options)?;
        let begin = || {
            let mut replacement = crate::files::Replacement::begin(path)?;
            let file = replacement.file().try_clone()?;
            Ok((replacement, file))
        };
        let (replacement, file) = begin().map_err(|error| Error::io(path, error))?;
        let mut writer = TfRecordWriter::new_with(file, path, options)?;
        writer.replacement = Some(replacement);
        Ok(writer)
    }
}

impl<W: Write> TfRecordWriter<W> {
    /// Writes to any [`Write`]; `name` is for messages.
    pub fn new(to: W, name: impl AsRef<Path>) -> Self {
        TfRecordWriter::to_sink(Sink::Plain(BufWriter::new(to)), name.as_ref())
    }

    /// Writes to any [`Write`], compressed as set in `options`.
    ///
    /// # Errors
    /// [`Error::Data`] if the level is above 9, or compression is requested and the feature `gzip` is off.
    pub fn new_with(to: W, name: impl AsRef<Path>, options: TfRecordOptions) -> Result<Self> {
        let name = name.as_ref();
        check(name, options)?;
        Ok(TfRecordWriter::to_sink(Sink::open(to, options), name))
    }

    fn to_sink(to: Sink<W>, name: &Path) -> Self {
        TfRecordWriter {
            to: Some(to),
            name: name.to_path_buf(),
            #[cfg(not(target_family = "wasm"))]
            replacement: None,
        }
    }

    fn inside(&mut self) -> io::Result<&mut dyn Write> {
        let closed = || io::Error::other("the writer is closed");
        self.to.as_mut().map(Sink::inside).ok_or_else(closed)
    }

    /// Appends a record.
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails.
    pub fn write(&mut self, record: impl AsRef<[u8]>) -> Result<()> {
        let record = record.as_ref();
        let length = (record.len() as u64).to_le_bytes();
        let parts = [
            &length[..],
            &masked_crc32c(&length).to_le_bytes(),
            record,
            &masked_crc32c(record).to_le_bytes(),
        ];
        let written =
            self.inside().and_then(|to| parts.iter().try_for_each(|part| to.write_all(part)));
        written.map_err(|error| Error::io(&self.name, error))
    }

    /// Flushes the data written so far.
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails.
    pub fn flush(&mut self) -> Result<()> {
        self.inside().and_then(|to| to.flush()).map_err(|error| Error::io(&self.name, error))
    }

    /// Writes the remaining data, and returns the underlying writer.
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails.
    pub fn close(mut self) -> Result<W> {
        self.finish().map_err(|error| Error::io(&self.name, error))
    }

    fn finish(&mut self) -> io::Result<W> {
        let to = self.to.take().ok_or_else(|| io::Error::other("the writer is closed"))?;
        let mut to = to.close()?;
        to.flush()?;
        #[cfg(not(target_family = "wasm"))]
        self.replacement.take().map_or(Ok(()), crate::files::Replacement::finish)?;
        Ok(to)
    }
}

impl<W: Write> Drop for TfRecordWriter<W> {
    fn drop(&mut self) {
        // An incomplete file after a panic does not replace a complete one.
        if self.to.is_some() && !std::thread::panicking() {
            let _ = self.finish();
        }
    }
}

impl<W: Write> Sink<W> {
    #[cfg(feature = "gzip")]
    fn open(to: W, options: TfRecordOptions) -> Self {
        let level = flate2::Compression::new(options.compression_level);
        // Collects small parts before they are compressed.
        match options.compression_type {
            CompressionType::None => Sink::Plain(BufWriter::new(to)),
            CompressionType::Gzip => {
                Sink::Gzip(BufWriter::new(flate2::write::GzEncoder::new(to, level)))
            }
            CompressionType::Zlib => {
                Sink::Zlib(BufWriter::new(flate2::write::ZlibEncoder::new(to, level)))
            }
        }
    }

    #[cfg(not(feature = "gzip"))]
    fn open(to: W, _: TfRecordOptions) -> Self {
        Sink::Plain(BufWriter::new(to))
    }

    fn inside(&mut self) -> &mut dyn Write {
        match self {
            Sink::Plain(to) => to,
            #[cfg(feature = "gzip")]
            Sink::Gzip(to) => to,
            #[cfg(feature = "gzip")]
            Sink::Zlib(to) => to,
        }
    }

    fn close(self) -> io::Result<W> {
        match self {
            Sink::Plain(to) => Ok(to.into_inner()?),
            #[cfg(feature = "gzip")]
            Sink::Gzip(to) => to.into_inner()?.finish(),
            #[cfg(feature = "gzip")]
            Sink::Zlib(to) => to.into_inner()?.finish(),
        }
    }
}

fn check(name: &Path, options: TfRecordOptions) -> Result<()> {
    let name = name.display();
    if options.compression_level > 9 {
        return Err(Error::Data(message!(
            "{name}: compression_level is {}, and levels go from 0 to 9.",
            options.compression_level
        )));
    }
    if cfg!(not(feature = "gzip")) && options.compression_type != CompressionType::None {
        return Err(Error::Data(message!(
            "{name}: the file is to be compressed ({:?}), and wgrad was built without gzip. Build with the feature \
             \"gzip\".",
            options.compression_type
        )));
    }
    Ok(())
}
