//! [`TfRecordReader`]: the records of one TFRecord file.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::data::files::input::{RecordPosition, read_up_to, unreadable};
use crate::error::{Error, Result, message};
use crate::files::checksum::masked_crc32c;

/// Iterates over the records of a TFRecord file, which may be any [`Read`] of its decompressed bytes.
///
/// After a corrupt record the beginning of the next one is unknown: the iterator returns one error, and then ends. A length
/// that the file cannot have costs no memory.
///
/// ```
/// use wgrad::data::tfrecord::{TfRecordReader, TfRecordWriter};
/// let mut writer = TfRecordWriter::new(Vec::new(), "memory");
/// writer.write(b"first")?;
/// writer.write(b"second")?;
/// let mut file = writer.close()?;
/// let records: Vec<Vec<u8>> = TfRecordReader::new(&file[..], "memory").collect::<Result<_, _>>()?;
/// assert_eq!(records, [b"first".to_vec(), b"second".to_vec()]);
///
/// *file.last_mut().expect("bytes") ^= 1;
/// let error = TfRecordReader::new(&file[..], "memory").nth(1).expect("a second").unwrap_err();
/// assert!(error.to_string().starts_with("memory: record 1, which begins at byte 21,"), "{error}");
/// # Ok::<(), wgrad::Error>(())
/// ```
///
/// # Errors
/// [`Error::Data`](crate::Error::Data) if a checksum is wrong or the file ends within a record, [`Error::Io`](crate::Error::Io)
/// if reading fails.
#[derive(Debug)]
pub struct TfRecordReader<R> {
    from: R,
    name: PathBuf,
    pub(super) place: RecordPosition,
    pub(super) failed: bool,
    /// The file ended within the record that failed.
    truncated: bool,
}

impl<R: Read> TfRecordReader<R> {
    /// Reads records from `from`; `name` is for messages.
    pub fn new(from: R, name: impl AsRef<Path>) -> Self {
        TfRecordReader::resumed(from, name.as_ref(), RecordPosition::default())
    }

    /// Continues at `place`, where `from` is.
    pub(crate) fn resumed(from: R, name: &Path, place: RecordPosition) -> Self {
        TfRecordReader { from, name: name.to_path_buf(), place, failed: false, truncated: false }
    }

    /// Whether the file ended within a record, like that of a writer that was killed.
    #[cfg(feature = "summary")]
    pub(crate) fn truncated(&self) -> bool {
        self.truncated
    }

    fn read(&mut self) -> Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        match self.take(12, &mut bytes)? {
            0 => return Ok(None),
            12 => {}
            found => {
                self.truncated = true;
                return Err(self.broken(&format!(
                    "should begin with 12 bytes of its length, and only {found} are there. The file \
                     is truncated"
                )));
            }
        }
        let (length, crc) = bytes.split_at(8);
        let found = masked_crc32c(length);
        let (length, crc) = (little_endian(length), little_endian(crc));
        if u64::from(found) != crc {
            return Err(self.broken(&format!(
                "says that its length is {length}, with the checksum {crc:#010x}, and these bytes have the checksum \
                 {found:#010x}. The file is corrupt, compressed or not a TFRecord file"
            )));
        }
        bytes.clear();
        let count = length.saturating_add(4);
        let found = self.take(count, &mut bytes)? as u64;
        if found < count {
            self.truncated = true;
            return Err(self.broken(&format!(
                "should have {length} bytes and 4 of their checksum, and only {found} are there. The \
                 file is truncated"
            )));
        }
        let crc = little_endian(&bytes[bytes.len() - 4..]);
        bytes.truncate(bytes.len() - 4);
        let found = masked_crc32c(&bytes);
        if u64::from(found) != crc {
            return Err(self.broken(&format!(
                "has {length} bytes with the checksum {found:#010x}, and the file says {crc:#010x}. The \
                 file is corrupt"
            )));
        }
        self.place.byte += 12 + count;
        self.place.record += 1;
        Ok(Some(bytes))
    }

    fn take(&mut self, count: u64, into: &mut Vec<u8>) -> Result<usize> {
        read_up_to(&mut self.from, count, into).map_err(|error| match unreadable(&self.name, error) {
            Error::Data(words) => Error::Data(message!(
                "{words} It happened in record {}, which begins at byte {} of the decompressed file.",
                self.place.record,
                self.place.byte
            )),
            error => error,
        })
    }

    fn broken(&self, what: &str) -> Error {
        let RecordPosition { byte, record } = self.place;
        let name = self.name.display();
        Error::Data(message!(
            "{name}: record {record}, which begins at byte {byte}, {what}; write it again."
        ))
    }
}

impl<R: Read> Iterator for TfRecordReader<R> {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let record = self.read();
        self.failed = record.is_err();
        record.transpose()
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}
