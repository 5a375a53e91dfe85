//! [`CsvReader`]: the records of a CSV file as typed values.

use std::io::BufRead;
use std::path::Path;

use super::columns::CsvColumns;
use super::fields::Fields;
use super::splitter::Splitter;
use crate::data::files::input::RecordPosition;
use crate::error::{Error, Result, message};
use crate::support::options::options;

options! {
    /// The format of a CSV file.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct CsvOptions {
        /// True if the first record names the columns.
        header: bool = false,
        /// The delimiter between two fields.
        field_delim: u8 = b',',
        /// True if a field may be enclosed in quotes (`"a, b"`), in which two quotes represent one.
        use_quote_delim: bool = true,
        /// A text that counts as an empty field, such as `NA`.
        na_value: String as impl Into<String> = String::new(),
        /// The columns to read, counted from 0, in ascending order; default: all.
        select_cols: Option<Vec<usize>> as impl Into<Option<Vec<usize>>> = None,
        /// A record of more bytes is an error; the usual cause is an open quote.
        max_record_bytes: usize = 16 << 20,
    }
}

/// Iterates over the records of a CSV file; each becomes a tuple, a `Vec` or a struct.
///
/// Among the columns, a value is the default of empty fields, and `required::<T>()` is a column without a default. Empty lines
/// are ignored. A field that does not match its column is an error; the next record follows it.
///
/// ```
/// use wgrad::data::csv::{CsvOptions, CsvReader, required};
/// let text = "name,age,weight\nTom,3,4.5\n\"Ann, the cat\",,2\nTim,old,3\n";
/// let options = CsvOptions::new().header(true);
/// let columns = (required::<String>(), -1i64, required::<f32>());
/// let mut cats = CsvReader::new(text.as_bytes(), "cats.csv", columns, options)?;
/// assert_eq!(cats.next().expect("three")?, ("Tom".to_string(), 3, 4.5));
/// assert_eq!(cats.next().expect("three")?, ("Ann, the cat".to_string(), -1, 2.0));
/// let error = cats.next().expect("three").unwrap_err();
/// assert!(error.to_string().starts_with(
///     "cats.csv, line 4: column 1 (\"age\") should be i64, and it is \"old\"."
/// ), "{error}");
/// # Ok::<(), wgrad::Error>(())
/// ```
///
/// # Errors
/// [`Error::Data`](crate::Error::Data) for a record that has too few or too many fields, a required field that is empty or a
/// field that is not a value of its column's type, a quote that is not closed; [`Error::Io`](crate::Error::Io) if reading
/// fails.
pub struct CsvReader<R, C> {
    records: Splitter<R>,
    columns: C,
    options: CsvOptions,
    header: Option<Vec<String>>,
    begun: bool,
    failed: bool,
}

impl<R, C> std::fmt::Debug for CsvReader<R, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CsvReader")
            .field("options", &self.options)
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

impl<R: BufRead, C: CsvColumns> CsvReader<R, C> {
    /// Reads records from `from`; `name` is for messages.
    ///
    /// # Errors
    /// [`Error::Data`] if the options contradict each other or the columns.
    pub fn new(from: R, name: impl AsRef<Path>, columns: C, options: CsvOptions) -> Result<Self> {
        check(&columns, &options)?;
        Ok(CsvReader::resumed(
            from,
            name.as_ref(),
            columns,
            options,
            RecordPosition::default(),
            None,
        ))
    }

    /// Continues at `place`, where `from` is. At the beginning of the file the header is read first; elsewhere it is passed.
    pub(crate) fn resumed(
        from: R,
        name: &Path,
        columns: C,
        options: CsvOptions,
        place: RecordPosition,
        header: Option<Vec<String>>,
    ) -> Self {
        let core = csv_core::ReaderBuilder::new()
            .delimiter(options.field_delim)
            .quoting(options.use_quote_delim)
            .build();
        let records = Splitter::new(from, name, core, options.max_record_bytes, place);
        let begun = place.byte > 0 || !options.header;
        CsvReader { records, columns, options, header, begun, failed: false }
    }

    /// Where the next record begins; none if the file has no more.
    pub(crate) fn next_place(&self) -> Option<RecordPosition> {
        (!self.failed).then(|| self.records.place())
    }

    /// The names of the columns, once the header is read.
    pub(crate) fn header(&mut self) -> Result<Option<Vec<String>>> {
        self.begin()?;
        Ok(self.header.clone())
    }

    fn begin(&mut self) -> Result<()> {
        if !self.begun {
            self.begun = true;
            let count = self.records.read()?.unwrap_or(0);
            let name = |i| String::from_utf8_lossy(self.records.field(i)).into_owned();
            self.header = Some((0..count).map(name).collect());
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Option<C::Row>> {
        let read = self.begin().and_then(|()| self.records.read());
        // After a record without an end, the beginning of the next one is unknown.
        self.failed = read.is_err();
        let Some(found) = read? else { return Ok(None) };
        let wanted = self.columns.count().or(self.header.as_ref().map(Vec::len)).unwrap_or(found);
        let fits = match &self.options.select_cols {
            Some(columns) => columns.last().is_none_or(|last| *last < found),
            None => found == wanted,
        };
        if !fits {
            let (name, line) = (self.records.name().display(), self.records.line());
            return Err(Error::Data(match &self.options.select_cols {
                Some(columns) => message!(
                    "{name}, line {line}: the record has {found} fields, and select_cols is {columns:?}, counted \
                     from 0."
                ),
                None => message!(
                    "{name}, line {line}: the record has {found} fields, and {wanted} are expected. Fix it, or \
                     choose columns by select_cols."
                ),
            }));
        }
        // Only now: a header may promise more columns than its records have fields.
        let columns = self.options.select_cols.clone().unwrap_or_else(|| (0..wanted).collect());
        let fields: Vec<&[u8]> = columns.iter().map(|i| self.records.field(*i)).collect();
        let fields = Fields {
            name: self.records.name(),
            line: self.records.line(),
            fields: &fields,
            columns: &columns,
            header: self.header.as_deref(),
            na_value: &self.options.na_value,
        };
        self.columns.row(&fields).map(Some)
    }
}

impl<R: BufRead, C: CsvColumns> Iterator for CsvReader<R, C> {
    type Item = Result<C::Row>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.failed {
            true => None,
            false => self.read().transpose(),
        }
    }
}

/// Rejects options that contradict each other or the columns.
pub(crate) fn check<C: CsvColumns>(columns: &C, options: &CsvOptions) -> Result<()> {
    if matches!(options.field_delim, b'"' | b'\n' | b'\r') {
        return Err(Error::Data(message!(
            "CsvDataset: field_delim is {:?}, which has another meaning in a CSV file.",
            char::from(options.field_delim)
        )));
    }
    if columns.count().is_none() && !options.header {
        return Err(Error::Data(
            "CsvDataset: by_name takes the columns' names from the first record; call header(true)."
                .into(),
        ));
    }
    let Some(selected) = &options.select_cols else { return Ok(()) };
    if selected.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(Error::Data(message!(
            "CsvDataset: select_cols is {selected:?}; the columns must ascend, each once."
        )));
    }
    match columns.count() {
        Some(count) if count != selected.len() => Err(Error::Data(message!(
            "CsvDataset: select_cols is {selected:?}, and {count} columns are described. There must be \
             equally many."
        ))),
        _ => Ok(()),
    }
}
