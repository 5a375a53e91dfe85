//! [`FileFormat`]: the format of the elements of a file.

use std::path::{Path, PathBuf};

use super::input::{CompressionType, Input, RecordPosition, open};
use crate::data::item::Item;
use crate::error::Result;

/// The type of the elements of a file, and how they are read.
pub trait FileFormat: Clone + Send + Sync + 'static {
    /// The element type.
    type Item: Item;

    /// The source's name in errors and saved iterators.
    #[doc(hidden)]
    const NAME: &'static str;

    /// Rejects options with which no file can be read.
    #[doc(hidden)]
    fn check(&self) -> Result<()> {
        Ok(())
    }

    #[doc(hidden)]
    fn records(
        &self,
        file: &OneFile,
        place: RecordPosition,
    ) -> Result<Box<dyn Records<Self::Item>>>;
}

/// The elements of one file.
pub trait Records<T>: Iterator<Item = Result<T>> + Send {
    /// Where the next element begins; none if the file has no more.
    #[doc(hidden)]
    fn place(&self) -> Option<RecordPosition>;
}

/// A file that will be read.
#[derive(Debug, Clone)]
pub struct OneFile {
    pub(crate) path: PathBuf,
    pub(crate) packed: CompressionType,
    buffer: usize,
}

impl OneFile {
    /// The decompressed bytes from `byte` on.
    pub(crate) fn open(&self, byte: u64) -> Result<Input> {
        open(&self.path, self.packed, self.buffer, byte)
    }
}

/// How files are read.
#[derive(Debug, Clone)]
pub(super) struct Reading<F> {
    pub(super) format: F,
    pub(super) packed: CompressionType,
    pub(super) buffer: usize,
}

impl<F: FileFormat> Reading<F> {
    /// The elements of the file at `path`, starting at `place`.
    pub(super) fn records(
        &self,
        path: &Path,
        place: RecordPosition,
    ) -> Result<Box<dyn Records<F::Item>>> {
        let path = path.to_path_buf();
        let file = OneFile { path, packed: self.packed, buffer: self.buffer };
        self.format.records(&file, place)
    }
}
