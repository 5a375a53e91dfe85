//! [`Fields`]: the fields of one record, and how messages call them.

use std::path::Path;

/// The fields of one record that a program asked for.
#[derive(Debug)]
pub struct Fields<'a> {
    pub(super) name: &'a Path,
    /// The line on which the record begins, from 1 on.
    pub(super) line: u64,
    pub(super) fields: &'a [&'a [u8]],
    /// The columns' places in the file.
    pub(super) columns: &'a [usize],
    /// The names of all columns, if there is a header.
    pub(super) header: Option<&'a [String]>,
    /// A text that means an empty field.
    pub(super) na_value: &'a str,
}

impl<'a> Fields<'a> {
    /// The bytes of the `i`-th field.
    pub(super) fn get(&self, i: usize) -> &'a [u8] {
        self.fields.get(i).copied().unwrap_or_default()
    }

    /// Where the `i`-th field stands: the file, the line and the column.
    pub(super) fn at(&self, i: usize) -> String {
        let (name, line) = (self.name.display(), self.line);
        let column = self.columns.get(i).copied().unwrap_or(i);
        match self.header.and_then(|header| header.get(column)) {
            Some(called) => format!("{name}, line {line}: column {column} (\"{called}\")"),
            None => format!("{name}, line {line}: column {column}"),
        }
    }

    /// The `i`-th field's text, as much of it as a message needs.
    pub(super) fn quoted(&self, i: usize) -> String {
        const QUOTED: usize = 80;
        let text: String = String::from_utf8_lossy(self.get(i)).chars().take(QUOTED).collect();
        format!("{text:?}")
    }

    /// True if a field with this text counts as empty.
    pub(super) fn is_missing(&self, text: &str) -> bool {
        text.is_empty() || text == self.na_value
    }
}
