//! [`Splitter`]: finds the records of a CSV file and their fields, with the automaton of the crate `csv-core`.
//!
//! The crate `csv` reads records with it, too; but it treats the end of the file as the end of an open quote, and does
//! not limit the size of a record.

use std::io::{BufRead, Chain, Cursor, Read};
use std::path::{Path, PathBuf};

use csv_core::ReadRecordResult;

use crate::data::files::input::{RecordPosition, read_up_to, unreadable};
use crate::error::{Error, Result, message};

/// Reads one record after another.
pub(super) struct Splitter<R> {
    /// The file, with its first bytes in front once they are known not to be a UTF-8 byte order mark.
    from: Chain<Cursor<Vec<u8>>, R>,
    name: PathBuf,
    core: csv_core::Reader,
    /// The maximum size of a record in bytes.
    most: usize,
    /// The fields of a record, one after another, and the end of each.
    fields: Vec<u8>,
    ends: Vec<usize>,
    /// The bytes and line ends before the next read.
    place: RecordPosition,
    /// The line on which the record in `fields` begins, counted from 1.
    line: u64,
}

impl<R: BufRead> Splitter<R> {
    pub(super) fn new(
        from: R,
        name: &Path,
        mut core: csv_core::Reader,
        most: usize,
        place: RecordPosition,
    ) -> Self {
        let (mut fields, mut ends) = (vec![0; 1 << 10], vec![0; 32]);
        // From now on it treats no bytes as a byte order mark; otherwise it might do so where a buffer happens to end.
        core.read_record(b"\n", &mut fields, &mut ends);
        let from = Cursor::default().chain(from);
        Splitter { from, name: name.to_path_buf(), core, most, fields, ends, place, line: 0 }
    }

    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    /// The position after the last record.
    pub(super) fn place(&self) -> RecordPosition {
        self.place
    }

    /// The line on which the last record begins.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Reads a record and returns the number of its fields, or none at the end.
    pub(super) fn read(&mut self) -> Result<Option<usize>> {
        if self.place.byte == 0 {
            self.skip_mark()?;
        }
        self.skip_line_ends()?;
        self.line = self.place.record + 1;
        let (mut bytes, mut count, begin) = (0, 0, self.place.byte);
        loop {
            let input = self.from.fill_buf().map_err(|error| unreadable(&self.name, error))?;
            let at_end = input.is_empty();
            if at_end && self.place.byte == begin {
                return Ok(None);
            }
            // After the last byte a line ends. If that does not end a record, a quote is open.
            let input = if at_end { b"\n" } else { input };
            let (result, read, written, ended) =
                self.core.read_record(input, &mut self.fields[bytes..], &mut self.ends[count..]);
            if !at_end {
                self.place.record += line_ends(&input[..read]);
                self.place.byte += read as u64;
                self.from.consume(read);
            }
            (bytes, count) = (bytes + written, count + ended);
            if self.place.byte - begin > self.most as u64 {
                let words = format!(
                    "has more than {} bytes (max_record_bytes). Is a quote left open? If not, allow more",
                    self.most
                );
                return Err(self.refuse(&words));
            }
            match result {
                ReadRecordResult::InputEmpty if at_end => {
                    return Err(self.refuse("ends the file within quotes. Close them"));
                }
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => self.fields.resize(2 * self.fields.len(), 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(2 * self.ends.len(), 0),
                ReadRecordResult::Record => return Ok(Some(count)),
                ReadRecordResult::End => return Ok(None),
            }
        }
    }

    /// The `i`-th field of the last record; it must exist.
    pub(super) fn field(&self, i: usize) -> &[u8] {
        let begin = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.fields[begin..self.ends[i]]
    }

    /// Skips the ends of empty lines, so that the line of the next record is known.
    fn skip_line_ends(&mut self) -> Result<()> {
        loop {
            let input = self.from.fill_buf().map_err(|error| unreadable(&self.name, error))?;
            let count = input.iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
            let all = count == input.len();
            self.place.record += line_ends(&input[..count]);
            self.place.byte += count as u64;
            self.from.consume(count);
            if !all || count == 0 {
                return Ok(());
            }
        }
    }

    /// Skips the byte order mark of UTF-8 (three bytes), if the file begins with one.
    fn skip_mark(&mut self) -> Result<()> {
        let (front, from) = self.from.get_mut();
        let mut first = Vec::new();
        read_up_to(from, 3, &mut first).map_err(|error| unreadable(&self.name, error))?;
        if first == b"\xef\xbb\xbf" {
            self.place.byte = 3;
        } else {
            *front = Cursor::new(first);
        }
        Ok(())
    }

    fn refuse(&self, what: &str) -> Error {
        let (name, line) = (self.name.display(), self.line);
        Error::Data(message!("{name}: the record that begins on line {line} {what}."))
    }
}

fn line_ends(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}
