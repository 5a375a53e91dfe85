//! [`Table`]: columns with names.

use crate::error::{Error, Result, message};
use crate::host_array::HostArray;
use crate::keras::layers::HostInput;

/// Columns of a table on the host, by name: what a [`FeatureSpace`](super::FeatureSpace) learns from and maps. A column is `[N]` or
/// `[N,1]`, or a single value for a single example.
///
/// ```
/// use wgrad::keras::layers::Table;
/// let table = Table::new().column("name", &["Ann", "Ben"]).column("age", &[31, 5]);
/// assert_eq!(table.names().collect::<Vec<_>>(), ["name", "age"]);
/// assert_eq!(table.get("age").map(|age| age.shape()), Some(&[2][..]));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    columns: Vec<(String, HostArray<'static>)>,
}

impl Table {
    /// Creates a table without columns.
    pub fn new() -> Self {
        Table::default()
    }

    /// Adds a column, or replaces the one with this name.
    #[must_use]
    pub fn column<X: HostInput + ?Sized>(mut self, name: impl Into<String>, values: &X) -> Self {
        self.set(name.into(), values.host_array().into_owned());
        self
    }

    pub(super) fn set(&mut self, name: String, values: HostArray<'static>) {
        match self.columns.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = values,
            None => self.columns.push((name, values)),
        }
    }

    /// Returns a column.
    pub fn get(&self, name: &str) -> Option<&HostArray<'static>> {
        self.columns.iter().find(|(known, _)| known == name).map(|(_, values)| values)
    }

    /// Returns the names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| &**name)
    }

    /// Returns the columns with their names.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &HostArray<'static>)> {
        self.columns.iter().map(|(name, values)| (&**name, values))
    }

    /// A column `[N,1]` for a feature, and whether it was a single value.
    pub(super) fn feature(&self, name: &str) -> Result<(HostArray<'_>, bool)> {
        let column = self.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.names().take(12).collect();
            Error::Data(message!(
                "FeatureSpace: the table has no column '{name}'; it has {}. Add it, or leave out the feature.",
                if known.is_empty() { "none".to_string() } else { known.join(", ") }
            ))
        })?;
        match *column.shape() {
            [] => Ok((column.view().with_shape([1, 1]), true)),
            [rows] => Ok((column.view().with_shape([rows, 1]), false)),
            [_, _] => Ok((column.view(), false)),
            ref shape => Err(Error::Shape(message!(
                "FeatureSpace: the column '{name}' is {shape:?}; it must be [N], [N, 1] or a single value."
            ))),
        }
    }
}
