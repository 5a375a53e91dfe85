//! [`TfRecordDataset`]: the records of TFRecord files as a dataset.

use super::TfRecordReader;
use crate::data::files::format::{FileFormat, OneFile, Records};
use crate::data::files::input::{Input, RecordPosition};
use crate::data::files::{FileDataset, IntoFiles};
use crate::error::Result;

/// The records of TFRecord files (`tf.data.TFRecordDataset`), as bytes.
///
/// After a corrupt record the next file follows.
///
/// ```
/// use wgrad::data::{Dataset, TfRecordDataset};
/// use wgrad::data::tfrecord::TfRecordWriter;
/// let path = std::env::temp_dir().join(format!("wgrad-records-{}.tfrecord", std::process::id()));
/// let mut writer = TfRecordWriter::create(&path)?;
/// for i in 0..5u8 {
///     writer.write([i, i])?;
/// }
/// writer.close()?;
/// let records: Dataset<Vec<u8>> = TfRecordDataset::new(&path).build()?;
/// let batch = records.batch(5).iter().next().expect("five records")?;
/// assert_eq!(batch.shape(), [5, 2]);
/// # std::fs::remove_file(&path).expect("it was written");
/// # Ok::<(), wgrad::Error>(())
/// ```
pub type TfRecordDataset = FileDataset<TfRecords>;

/// The format of a [`TfRecordDataset`].
#[derive(Debug, Clone)]
pub struct TfRecords;

impl TfRecordDataset {
    /// The records of these files.
    pub fn new(files: impl IntoFiles) -> Self {
        FileDataset::from_format(files, TfRecords)
    }
}

impl FileFormat for TfRecords {
    type Item = Vec<u8>;
    const NAME: &'static str = "TFRecordDataset";

    fn records(&self, file: &OneFile, place: RecordPosition) -> Result<Box<dyn Records<Vec<u8>>>> {
        Ok(Box::new(TfRecordReader::resumed(file.open(place.byte)?, &file.path, place)))
    }
}

impl Records<Vec<u8>> for TfRecordReader<Input> {
    fn place(&self) -> Option<RecordPosition> {
        (!self.failed).then_some(self.place)
    }
}
