//! [`Fields`]: the fields of one record, and their names in messages.

use std::path::Path;

/// As much of a text as a message needs: a field may be as long as a record.
fn shortened(text: &str) -> &str {
    const LETTERS: usize = 80;
    text.char_indices().nth(LETTERS).map_or(text, |(end, _)| &text[..end])
}

/// The fields of one record in the columns that the program selected.
#[derive(Debug)]
pub struct Fields<'a> {
    pub(super) name: &'a Path,
    /// The line on which the record begins, counted from 1.
    pub(super) line: u64,
    pub(super) fields: &'a [&'a [u8]],
    /// The indices of the columns in the file.
    pub(super) columns: &'a [usize],
    /// The names of all columns, if there is a header.
    pub(super) header: Option<&'a [String]>,
    /// A text that counts as an empty field.
    pub(super) na_value: &'a str,
}

impl<'a> Fields<'a> {
    /// The bytes of the `i`-th field.
    pub(super) fn get(&self, i: usize) -> &'a [u8] {
        self.fields.get(i).copied().unwrap_or_default()
    }

    /// The location of the `i`-th field: the file, the line and the column.
    pub(super) fn at(&self, i: usize) -> String {
        let (name, line) = (self.name.display(), self.line);
        let column = self.columns.get(i).copied().unwrap_or(i);
        match self.header.and_then(|header| header.get(column)) {
            Some(called) => {
                let called = shortened(called);
                format!("{name}, line {line}: column {column} (\"{called}\")")
            }
            None => format!("{name}, line {line}: column {column}"),
        }
    }

    /// The `i`-th field's text, as much of it as a message needs.
    pub(super) fn quoted(&self, i: usize) -> String {
        format!("{:?}", shortened(&String::from_utf8_lossy(self.get(i))))
    }

    /// The names of the columns, as many of them as a message needs.
    pub(super) fn names(&self) -> String {
        const NAMES: usize = 20;
        let header = self.header.unwrap_or_default();
        let names: Vec<&str> = header.iter().take(NAMES).map(|name| shortened(name)).collect();
        match header.len().saturating_sub(NAMES) {
            0 => format!("{names:?}"),
            more => format!("{names:?} and {more} more"),
        }
    }

    /// True if a field with this text counts as empty.
    pub(super) fn is_missing(&self, text: &str) -> bool {
        text.is_empty() || text == self.na_value
    }
}
