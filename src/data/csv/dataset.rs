//! [`CsvDataset`]: the records of CSV files as a dataset.

use super::columns::CsvColumns;
use super::reader::{CsvOptions, CsvReader, check};
use crate::data::files::format::{FileFormat, OneFile, Records};
use crate::data::files::input::{Input, RecordPosition};
use crate::data::files::{FileDataset, IntoFiles};
use crate::data::item::Item;
use crate::error::Result;

/// The records of CSV files as typed values (`tf.data.experimental.CsvDataset`); [`CsvReader`] describes the conversion.
///
/// ```
/// use wgrad::data::csv::{CsvDataset, required};
/// let path = std::env::temp_dir().join(format!("wgrad-cats-{}.csv", std::process::id()));
/// std::fs::write(&path, "name,age,weight\nTom,3,4.5\nAnn,,2\n").expect("a folder for temporary files");
/// let columns = (required::<String>(), -1i64, required::<f32>());
/// let cats = CsvDataset::new(&path, columns).header(true).build()?;
/// let ages: Vec<i64> = cats.map(|(_, age, _)| age).iter().collect::<Result<_, _>>()?;
/// assert_eq!(ages, [3, -1]);
/// # std::fs::remove_file(&path).expect("it was written");
/// # Ok::<(), wgrad::Error>(())
/// ```
pub type CsvDataset<C> = FileDataset<CsvFormat<C>>;

/// The format of a [`CsvDataset`].
#[derive(Debug, Clone)]
pub struct CsvFormat<C> {
    columns: C,
    options: CsvOptions,
}

impl<C: CsvColumns<Row: Item>> CsvDataset<C> {
    /// The records of these files: `columns` is a tuple with a default or [`required`](super::required) for each column, a
    /// `Vec` of them, or [`by_name`](super::by_name) of a struct.
    pub fn new(files: impl IntoFiles, columns: C) -> Self {
        FileDataset::from_format(files, CsvFormat { columns, options: CsvOptions::new() })
    }

    /// True if the first record of each file names the columns; default: false.
    #[must_use]
    pub fn header(self, header: bool) -> Self {
        self.options(|options| options.header(header))
    }

    /// The delimiter between two fields; default: a comma.
    #[must_use]
    pub fn field_delim(self, field_delim: u8) -> Self {
        self.options(|options| options.field_delim(field_delim))
    }

    /// Whether a field may be enclosed in quotes; default: true.
    #[must_use]
    pub fn use_quote_delim(self, use_quote_delim: bool) -> Self {
        self.options(|options| options.use_quote_delim(use_quote_delim))
    }

    /// A text that counts as an empty field.
    #[must_use]
    pub fn na_value(self, na_value: impl Into<String>) -> Self {
        self.options(|options| options.na_value(na_value))
    }

    /// The columns to read, counted from 0, in ascending order; default: all.
    #[must_use]
    pub fn select_cols(self, select_cols: impl Into<Vec<usize>>) -> Self {
        self.options(|options| options.select_cols(select_cols.into()))
    }

    /// The size above which a record is an error; default: 16 MiB.
    #[must_use]
    pub fn max_record_bytes(self, max_record_bytes: usize) -> Self {
        self.options(|options| options.max_record_bytes(max_record_bytes))
    }

    fn options(mut self, change: impl FnOnce(CsvOptions) -> CsvOptions) -> Self {
        let options = &mut self.format().options;
        *options = change(std::mem::take(options));
        self
    }
}

impl<C: CsvColumns<Row: Item>> FileFormat for CsvFormat<C> {
    type Item = C::Row;
    const NAME: &'static str = "CsvDataset";

    fn check(&self) -> Result<()> {
        check(&self.columns, &self.options)
    }

    fn records(&self, file: &OneFile, place: RecordPosition) -> Result<Box<dyn Records<C::Row>>> {
        let reader = |place: RecordPosition, header| {
            let (columns, options) = (self.columns.clone(), self.options.clone());
            file.open(place.byte)
                .map(|input| CsvReader::resumed(input, &file.path, columns, options, place, header))
        };
        // A pass that resumes in the middle of a file needs the names from its first record.
        let header = match place.byte {
            0 => None,
            _ => reader(RecordPosition::default(), None)?.header()?,
        };
        Ok(Box::new(reader(place, header)?))
    }
}

impl<C: CsvColumns<Row: Item>> Records<C::Row> for CsvReader<Input, C> {
    fn place(&self) -> Option<RecordPosition> {
        self.next_place()
    }
}
