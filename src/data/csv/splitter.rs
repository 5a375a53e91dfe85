//! [`Splitter`]: finds the records of a CSV file and their fields, by the automaton of the crate `csv-core`.
//!
//! The crate `csv` reads records with it, too; but it takes a quote that nobody closes for the end of the file, and a
//! record has no bound.

use std::io::{BufRead, Chain, Cursor, Read};
use std::path::{Path, PathBuf};

use csv_core::ReadRecordResult;

use crate::data::files::input::{Place, read_up_to, unreadable};
use crate::error::{Error, Result, message};

/// Reads one record after the other.
pub(super) struct Splitter<R> {
    /// The file; its first bytes, once they are known to be no mark of UTF-8, stand in front of the others.
    from: Chain<Cursor<Vec<u8>>, R>,
    name: PathBuf,
    core: csv_core::Reader,
    /// The most bytes that a record may have.
    most: usize,
    /// The fields of a record, one behind the other, and where each ends.
    fields: Vec<u8>,
    ends: Vec<usize>,
    /// Bytes and line ends in front of what is read next.
    place: Place,
    /// The line on which the record in `fields` begins, from 1 on.
    line: u64,
}

impl<R: BufRead> Splitter<R> {
    pub(super) fn new(
        from: R,
        name: &Path,
        mut core: csv_core::Reader,
        most: usize,
        place: Place,
    ) -> Self {
        let (mut fields, mut ends) = (vec![0; 1 << 10], vec![0; 32]);
        // From now on it takes no bytes for a mark of UTF-8; it would where a buffer happens to end.
        core.read_record(b"\n", &mut fields, &mut ends);
        let from = Cursor::default().chain(from);
        Splitter { from, name: name.to_path_buf(), core, most, fields, ends, place, line: 0 }
    }

    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    /// What follows the last record.
    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// The line on which the last record begins.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Reads a record and gives the number of its fields, or none at the end.
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
            // Behind the last byte a line ends. Where that ends no record, quotes are open.
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
                    "has more than {} bytes (max_record_bytes). Is a quote open? If it is not, allow more",
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

    /// The `i`-th field of the last record, which exists.
    pub(super) fn field(&self, i: usize) -> &[u8] {
        let begin = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.fields[begin..self.ends[i]]
    }

    /// Skips the ends of empty lines, so that the next record begins on a line that is known.
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

    /// Skips the three bytes that mark a text as UTF-8, if the file begins with them.
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
