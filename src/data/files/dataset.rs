//! [`FileDataset`]: the elements of files, one file after another or several alternately.

use std::path::{Path, PathBuf};

use super::format::{FileFormat, Reading, Records};
use super::input::{CompressionType, RecordPosition};
use super::turns::Turns;
use crate::data::AUTOTUNE;
use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::Item;
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
use crate::data::pool::width;
use crate::error::{Error, Result, message};

/// The bytes that a reader requests from the system at once, as in TensorFlow.
const BUFFER: usize = 256 << 10;

/// Reads the elements of files; [`build`](Self::build) makes a [`Dataset`] from it.
///
/// An element that cannot be read is an `Err` among the elements. If the beginning of the next element is then unknown, the
/// next file follows. A missing file is one `Err`.
#[derive(Debug, Clone)]
pub struct FileDataset<F> {
    files: Dataset<PathBuf>,
    reading: Reading<F>,
    num_parallel_reads: usize,
}

impl<F: FileFormat> FileDataset<F> {
    pub(crate) fn from_format(files: impl IntoFiles, format: F) -> Self {
        let reading = Reading { format, packed: CompressionType::None, buffer: BUFFER };
        FileDataset { files: files.into_files(), reading, num_parallel_reads: 1 }
    }

    /// The format, to set its own options.
    pub(crate) fn format(&mut self) -> &mut F {
        &mut self.reading.format
    }

    /// The compression of the files; default: none.
    #[must_use]
    pub fn compression_type(mut self, compression_type: CompressionType) -> Self {
        self.reading.packed = compression_type;
        self
    }

    /// The bytes of a file that are read at once; default: 256 KiB.
    #[must_use]
    pub fn buffer_size(mut self, buffer_size: usize) -> Self {
        self.reading.buffer = buffer_size;
        self
    }

    /// Reads this many files at the same time and alternates between their elements; default: one file after another.
    ///
    /// The order is the same in each pass, whatever the threads do. [`AUTOTUNE`] reads as many files as there are threads; then
    /// the order differs between machines.
    #[must_use]
    pub fn num_parallel_reads(mut self, num_parallel_reads: usize) -> Self {
        self.num_parallel_reads = num_parallel_reads;
        self
    }

    /// The dataset. Files are opened only when their elements are requested.
    ///
    /// # Errors
    /// [`Error::Data`] if an option makes no sense.
    pub fn build(self) -> Result<Dataset<F::Item>> {
        self.reading.format.check()?;
        for (option, value) in
            [("num_parallel_reads", self.num_parallel_reads), ("buffer_size", self.reading.buffer)]
        {
            if value == 0 {
                return Err(Error::Data(message!(
                    "{}: {option} is 0; it must be at least 1.",
                    F::NAME
                )));
            }
        }
        Ok(Dataset::new(self))
    }
}

impl<F: FileFormat> Node<F::Item> for FileDataset<F> {
    fn open(&self, pass: &Pass) -> Result<BoxStream<F::Item>> {
        let files = self.files.open(pass)?;
        let (of, pass) = (self.reading.clone(), pass.clone());
        Ok(match self.num_parallel_reads {
            1 => Box::new(Files { of, files, pass, current: None }),
            AUTOTUNE => Box::new(Turns::new(of, width(), files, pass)),
            reads => Box::new(Turns::new(of, reads, files, pass)),
        })
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

struct Files<F: FileFormat> {
    of: Reading<F>,
    files: BoxStream<PathBuf>,
    pass: Pass,
    current: Option<Current<F::Item>>,
}

/// The current file.
struct Current<T> {
    path: PathBuf,
    records: Box<dyn Records<T>>,
}

impl<F: FileFormat> Stream<F::Item> for Files<F> {
    fn next(&mut self) -> Option<Result<F::Item>> {
        loop {
            if self.pass.stopped() {
                return None;
            }
            if let Some(current) = &mut self.current {
                match current.records.next() {
                    Some(record) => return Some(record),
                    None => self.current = None,
                }
            }
            let path = match self.files.next()? {
                Ok(path) => path,
                Err(error) => return Some(Err(error)),
            };
            match self.of.records(&path, RecordPosition::default()) {
                Ok(records) => self.current = Some(Current { path, records }),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        write_name(F::NAME, out);
        let current = self.current.as_ref();
        let place = current.and_then(|current| Some((&current.path, current.records.place()?)));
        out.flag(place.is_some());
        if let Some((path, place)) = place {
            path.write(out)?;
            out.number(place.byte);
            out.number(place.record);
        }
        self.files.save(out)
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name(F::NAME, from)?;
        self.current = match from.flag()? {
            false => None,
            true => {
                let path = PathBuf::read(from)?;
                let place = RecordPosition { byte: from.number()?, record: from.number()? };
                let records = self.of.records(&path, place)?;
                Some(Current { path, records })
            }
        };
        self.files.restore(from)
    }
}

/// Names of files: one, several, or a [`Dataset`] of them, for example from
/// [`Dataset::list_files`](crate::data::Dataset::list_files).
pub trait IntoFiles {
    /// The names.
    fn into_files(self) -> Dataset<PathBuf>;
}

impl IntoFiles for Dataset<PathBuf> {
    fn into_files(self) -> Dataset<PathBuf> {
        self
    }
}

impl IntoFiles for &Dataset<PathBuf> {
    fn into_files(self) -> Dataset<PathBuf> {
        self.clone()
    }
}

impl<P: AsRef<Path>> IntoFiles for Vec<P> {
    fn into_files(self) -> Dataset<PathBuf> {
        self[..].into_files()
    }
}

impl<P: AsRef<Path>> IntoFiles for &Vec<P> {
    fn into_files(self) -> Dataset<PathBuf> {
        self[..].into_files()
    }
}

impl<P: AsRef<Path>, const N: usize> IntoFiles for [P; N] {
    fn into_files(self) -> Dataset<PathBuf> {
        self[..].into_files()
    }
}

impl<P: AsRef<Path>> IntoFiles for &[P] {
    fn into_files(self) -> Dataset<PathBuf> {
        let names: Vec<PathBuf> = self.iter().map(|path| path.as_ref().to_path_buf()).collect();
        Dataset::from_tensor_slices(names).expect("one list has one length")
    }
}

macro_rules! one_file {
    ($($type:ty)*) => {$(
        impl IntoFiles for $type {
            fn into_files(self) -> Dataset<PathBuf> {
                [self].into_files()
            }
        }
    )*};
}

one_file! { &str String &String &Path PathBuf &PathBuf }
