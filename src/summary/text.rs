//! [`Text`]: the content of `text`: a string, or a list or table of strings.

use crate::error::{Error, Result, message};

/// Strings to show: one, a list, or rows of a table. TensorBoard reads them as Markdown.
///
/// ```
/// use wgrad::summary::Text;
/// let one: Text = "**hello**".into();
/// let list: Text = ["a", "b"].into();
/// let table = Text::table([["name", "loss"], ["mlp", "0.25"]])?;
/// # let _ = (one, list, table);
/// # Ok::<(), wgrad::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    pub(super) shape: Vec<usize>,
    pub(super) strings: Vec<Vec<u8>>,
}

impl Text {
    /// Rows of a table; TensorBoard shows the first like the others.
    ///
    /// # Errors
    /// [`Error::Shape`] if the rows have different lengths.
    pub fn table<R, S>(rows: impl IntoIterator<Item = R>) -> Result<Text>
    where
        R: IntoIterator<Item = S>,
        S: AsRef<str>,
    {
        let (mut count, mut columns, mut strings) = (0, None, Vec::new());
        for row in rows {
            let before = strings.len();
            strings.extend(row.into_iter().map(|cell| cell.as_ref().as_bytes().to_vec()));
            let cells = strings.len() - before;
            let first = *columns.get_or_insert(cells);
            if cells != first {
                return Err(Error::Shape(message!(
                    "text: row {count} of the table has {cells} cells, and row 0 has {first}. Fill the shorter rows with \"\"."
                )));
            }
            count += 1;
        }
        Ok(Text { shape: vec![count, columns.unwrap_or(0)], strings })
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Text { shape: Vec::new(), strings: vec![text.as_bytes().to_vec()] }
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Text { shape: Vec::new(), strings: vec![text.into_bytes()] }
    }
}

impl From<&String> for Text {
    fn from(text: &String) -> Self {
        Text::from(text.as_str())
    }
}

impl<S: AsRef<str>> From<&[S]> for Text {
    fn from(list: &[S]) -> Self {
        let strings = list.iter().map(|text| text.as_ref().as_bytes().to_vec());
        Text { shape: vec![list.len()], strings: strings.collect() }
    }
}

impl<S: AsRef<str>> From<Vec<S>> for Text {
    fn from(list: Vec<S>) -> Self {
        Text::from(&list[..])
    }
}

impl<S: AsRef<str>, const N: usize> From<[S; N]> for Text {
    fn from(list: [S; N]) -> Self {
        Text::from(&list[..])
    }
}
