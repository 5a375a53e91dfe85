//! [`FixedLengthRecordReader`]: the records of a file whose records all have the same length.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::input::{RecordPosition, read_up_to, unreadable};
use crate::error::{Error, Result, message};
use crate::support::options::options;

options! {
    /// The bytes around the records of a [`FixedLengthRecordReader`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct FixedLengthRecordOptions {
        /// The bytes before the first record.
        header_bytes: usize = 0,
        /// The bytes after the last record.
        footer_bytes: usize = 0,
    }
}

/// Iterates over records of `record_bytes` bytes each, such as those of CIFAR's binary files.
///
/// ```
/// use wgrad::data::{FixedLengthRecordOptions, FixedLengthRecordReader};
/// let around = FixedLengthRecordOptions::new().header_bytes(2).footer_bytes(1);
/// let reader = FixedLengthRecordReader::new_with(&b"##abcdef."[..], "memory", 3, around)?;
/// assert_eq!(reader.collect::<Result<Vec<_>, _>>()?, [b"abc", b"def"]);
/// let error = FixedLengthRecordReader::new(&b"abcde"[..], "memory", 3)?.nth(1).expect("a second").unwrap_err();
/// assert!(error.to_string().contains("2 bytes are left after 1 records of 3 bytes"), "{error}");
/// # Ok::<(), wgrad::Error>(())
/// ```
///
/// # Errors
/// [`Error::Data`](crate::Error::Data) if the file ends within a record, [`Error::Io`](crate::Error::Io) if reading fails.
#[derive(Debug)]
pub struct FixedLengthRecordReader<R> {
    from: R,
    name: PathBuf,
    record_bytes: usize,
    around: FixedLengthRecordOptions,
    /// The bytes of the next record and the footer that have been read.
    ahead: Vec<u8>,
    place: RecordPosition,
    ended: bool,
}

impl<R: Read> FixedLengthRecordReader<R> {
    /// Reads records from `from`; `name` is for messages.
    ///
    /// # Errors
    /// [`Error::Data`] if `record_bytes` is 0.
    pub fn new(from: R, name: impl AsRef<Path>, record_bytes: usize) -> Result<Self> {
        let around = FixedLengthRecordOptions::new();
        FixedLengthRecordReader::new_with(from, name, record_bytes, around)
    }

    /// Reads records between a header and a footer.
    ///
    /// # Errors
    /// [`Error::Data`] if `record_bytes` is 0.
    pub fn new_with(
        from: R,
        name: impl AsRef<Path>,
        record_bytes: usize,
        options: FixedLengthRecordOptions,
    ) -> Result<Self> {
        check(record_bytes)?;
        Ok(FixedLengthRecordReader::resumed(
            from,
            name.as_ref(),
            record_bytes,
            options,
            RecordPosition::default(),
        ))
    }

    /// Continues at `place`, where `from` is.
    pub(crate) fn resumed(
        from: R,
        name: &Path,
        record_bytes: usize,
        around: FixedLengthRecordOptions,
        place: RecordPosition,
    ) -> Self {
        let (name, ahead) = (name.to_path_buf(), Vec::new());
        FixedLengthRecordReader { from, name, record_bytes, around, ahead, place, ended: false }
    }

    fn take(&mut self, count: usize) -> Result<usize> {
        read_up_to(&mut self.from, count as u64, &mut self.ahead)
            .map_err(|error| unreadable(&self.name, error))
    }

    fn read(&mut self) -> Result<Option<Vec<u8>>> {
        let (header, footer) = (self.around.header_bytes, self.around.footer_bytes);
        if self.place.byte == 0 && header > 0 {
            let found = self.take(header)?;
            if found < header {
                let name = self.name.display();
                return Err(Error::Data(message!(
                    "{name}: the header should take {header} bytes, and the file has {found}. Check \
                     header_bytes."
                )));
            }
            self.ahead.clear();
            self.place.byte = header as u64;
        }
        let wanted = self.record_bytes.saturating_add(footer);
        let missing = wanted - self.ahead.len();
        if self.take(missing)? == missing {
            let rest = self.ahead.split_off(self.record_bytes);
            self.place.byte += self.record_bytes as u64;
            self.place.record += 1;
            return Ok(Some(std::mem::replace(&mut self.ahead, rest)));
        }
        if self.ahead.len() == footer {
            return Ok(None);
        }
        Err(remainder(
            &self.name,
            self.ahead.len(),
            self.place.record,
            self.record_bytes,
            self.around,
        ))
    }
}

impl<R: Read> Iterator for FixedLengthRecordReader<R> {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let record = self.read();
        self.ended = !matches!(record, Ok(Some(_)));
        record.transpose()
    }
}

/// Rejects records without bytes, of which a file would have infinitely many.
pub(crate) fn check(record_bytes: usize) -> Result<()> {
    match record_bytes {
        0 => Err(Error::Data(
            "FixedLengthRecordDataset: record_bytes is 0; a record has at least one byte.".into(),
        )),
        _ => Ok(()),
    }
}

/// The error for `left` bytes after the last whole record, including the footer.
fn remainder(
    name: &Path,
    left: usize,
    records: u64,
    record_bytes: usize,
    around: FixedLengthRecordOptions,
) -> Error {
    let FixedLengthRecordOptions { header_bytes: header, footer_bytes: footer } = around;
    let name = name.display();
    Error::Data(message!(
        "{name}: {left} bytes are left after {records} records of {record_bytes} bytes and a header of {header}; \
         they should be the footer of {footer}. Check record_bytes, header_bytes and footer_bytes, and whether the \
         file is complete."
    ))
}

#[cfg(not(target_family = "wasm"))]
mod dataset {
    use super::{FixedLengthRecordOptions, FixedLengthRecordReader, check, remainder};
    use crate::data::files::dataset::{FileDataset, IntoFiles};
    use crate::data::files::format::{FileFormat, OneFile, Records};
    use crate::data::files::input::{CompressionType, Input, RecordPosition};
    use crate::error::{Error, Result};

    /// The records of files whose records all have the same length (`tf.data.FixedLengthRecordDataset`).
    ///
    /// ```
    /// use wgrad::data::FixedLengthRecordDataset;
    /// let path = std::env::temp_dir().join(format!("wgrad-fixed-{}.bin", std::process::id()));
    /// std::fs::write(&path, "##abcdef.").expect("a folder for temporary files");
    /// let records = FixedLengthRecordDataset::new(&path, 3).header_bytes(2).footer_bytes(1).build()?;
    /// assert_eq!(records.iter().collect::<Result<Vec<Vec<u8>>, _>>()?, [b"abc", b"def"]);
    /// # std::fs::remove_file(&path).expect("it was written");
    /// # Ok::<(), wgrad::Error>(())
    /// ```
    pub type FixedLengthRecordDataset = FileDataset<FixedLengthRecords>;

    /// The format of a [`FixedLengthRecordDataset`].
    #[derive(Debug, Clone)]
    pub struct FixedLengthRecords {
        record_bytes: usize,
        around: FixedLengthRecordOptions,
    }

    impl FixedLengthRecordDataset {
        /// Records of `record_bytes` bytes each. An uncompressed file that does not contain a whole number of records is one
        /// error without any record.
        pub fn new(files: impl IntoFiles, record_bytes: usize) -> Self {
            let around = FixedLengthRecordOptions::new();
            FileDataset::from_format(files, FixedLengthRecords { record_bytes, around })
        }

        /// The bytes before the first record; default: 0.
        #[must_use]
        pub fn header_bytes(mut self, header_bytes: usize) -> Self {
            self.format().around.header_bytes = header_bytes;
            self
        }

        /// The bytes after the last record; default: 0.
        #[must_use]
        pub fn footer_bytes(mut self, footer_bytes: usize) -> Self {
            self.format().around.footer_bytes = footer_bytes;
            self
        }
    }

    impl FileFormat for FixedLengthRecords {
        type Item = Vec<u8>;
        const NAME: &'static str = "FixedLengthRecordDataset";

        fn check(&self) -> Result<()> {
            check(self.record_bytes)
        }

        fn records(
            &self,
            file: &OneFile,
            place: RecordPosition,
        ) -> Result<Box<dyn Records<Vec<u8>>>> {
            let (each, around) = (self.record_bytes, self.around);
            let input = file.open(place.byte)?;
            // The length of an uncompressed file is known: a wrong option is reported before the first record.
            if file.packed == CompressionType::None && place.byte == 0 {
                let metadata = std::fs::metadata(&file.path);
                let length = metadata.map_err(|error| Error::io(&file.path, error))?.len();
                let outside =
                    (around.header_bytes as u64).saturating_add(around.footer_bytes as u64);
                let left = length.saturating_sub(outside) % each as u64;
                if length >= outside && left > 0 {
                    let left = left.saturating_add(around.footer_bytes as u64);
                    let records = (length - outside) / each as u64;
                    let left = usize::try_from(left).unwrap_or(usize::MAX);
                    return Err(remainder(&file.path, left, records, each, around));
                }
            }
            let name = &file.path;
            Ok(Box::new(FixedLengthRecordReader::resumed(input, name, each, around, place)))
        }
    }

    impl Records<Vec<u8>> for FixedLengthRecordReader<Input> {
        fn place(&self) -> Option<RecordPosition> {
            (!self.ended).then_some(self.place)
        }
    }
}
#[cfg(not(target_family = "wasm"))]
pub use dataset::FixedLengthRecordDataset;
