//! `save` and `load`: a dataset as a folder.

use std::path::{Path, PathBuf};

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::element_file::{ElementReader, ElementWriter};
use crate::data::files::CompressionType;
use crate::data::item::Item;
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
use crate::error::{Error, Result, message};
use crate::files;
use crate::support::options::options;

options! {
    /// How [`Dataset::save_with`] writes the elements.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct DatasetSaveOptions {
        /// The compression of the elements: none, or `gzip`, which needs the feature `gzip`.
        compression: CompressionType = CompressionType::None,
    }
}

/// The file in a dataset's folder.
fn file_in(path: &Path) -> PathBuf {
    path.join("dataset.elements")
}

impl<T: Item> Dataset<T> {
    /// Writes the elements of a pass to the folder `path`, which is created if it is missing (`Dataset.save`). Elements that
    /// were saved there before are replaced once all are written. TensorFlow writes another format.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// # let folder = std::env::temp_dir().join(format!("wgrad-doc-save-{}", std::process::id()));
    /// use wgrad::data::{self, Dataset};
    /// data::range(0..5).map(|n| (n, n * n)).save(&folder)?;
    /// let again = Dataset::<(i64, i64)>::load(&folder)?;
    /// assert_eq!(again.cardinality().known(), Some(5));
    /// assert_eq!(again.iter().last().expect("five elements")?, (4, 16));
    /// # std::fs::remove_dir_all(&folder).unwrap();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The first error among the elements; [`Error::Io`] if the folder cannot be written, [`Error::Data`] if another program
    /// saves there.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.save_with(path, DatasetSaveOptions::new())
    }

    /// As [`Dataset::save`], but can compress the elements.
    ///
    /// # Errors
    /// As [`Dataset::save`].
    pub fn save_with(&self, path: impl AsRef<Path>, options: DatasetSaveOptions) -> Result<()> {
        let path = path.as_ref();
        let packed = match options.compression {
            CompressionType::None => false,
            CompressionType::Gzip => true,
            other => {
                return Err(Error::Data(message!(
                    "save: compression is {other:?}; a dataset is saved with Gzip or None."
                )));
            }
        };
        files::make_folder(path).map_err(|error| Error::io(path, error))?;
        let mut writer = ElementWriter::begin("save", &file_in(path), packed)?;
        for item in self {
            writer.write(&item?)?;
        }
        writer.finish()
    }

    /// The elements that [`Dataset::save`] wrote into the folder `path` (`Dataset.load`).
    ///
    /// # Errors
    /// [`Error::Io`] if there is none, [`Error::Data`] if it is corrupt or has elements of another type. A changed element is
    /// replaced by an error.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let file = file_in(path.as_ref());
        let count = ElementReader::<T>::open(&file)?.elements();
        Ok(Dataset::new(Load { file, count: usize::try_from(count).unwrap_or(usize::MAX) }))
    }
}

struct Load {
    file: PathBuf,
    count: usize,
}

struct LoadStream<T> {
    file: PathBuf,
    reader: Option<ElementReader<T>>,
    ended: bool,
}

impl<T: Item> Node<T> for Load {
    fn open(&self, _: &Pass) -> Result<BoxStream<T>> {
        Ok(Box::new(LoadStream { file: self.file.clone(), reader: None, ended: false }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Known(self.count)
    }
}

impl<T: Item> LoadStream<T> {
    fn reader(&mut self) -> Result<&mut ElementReader<T>> {
        if self.reader.is_none() {
            self.reader = Some(ElementReader::open(&self.file)?);
        }
        Ok(self.reader.as_mut().expect("set above"))
    }
}

impl<T: Item> Stream<T> for LoadStream<T> {
    fn next(&mut self) -> Option<Result<T>> {
        if self.ended {
            return None;
        }
        match self.reader() {
            Ok(reader) => reader.next(),
            Err(error) => {
                self.ended = true;
                Some(Err(error))
            }
        }
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        write_name("load", out);
        out.flag(self.ended);
        out.number(self.reader.as_ref().map_or(0, ElementReader::at));
        Ok(())
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name("load", from)?;
        self.ended = from.flag()?;
        let at = from.number()?;
        match at {
            0 => Ok(()),
            _ => self.reader()?.pass_over(at),
        }
    }
}
