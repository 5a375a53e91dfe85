//! [`CsvColumns`]: the types of a record's fields, and the defaults of empty ones.

use std::marker::PhantomData;

use super::fields::Fields;
use crate::error::{Error, Result, message};

/// The type of a field's value.
pub trait CsvValue: Sized + Clone + Send + Sync + 'static {
    /// The type, for messages.
    const NAME: &'static str;

    /// The value, if the text represents one.
    fn parse(text: &str) -> Option<Self>;
}

macro_rules! csv_values {
    ($($type:ty)*) => {$(
        impl CsvValue for $type {
            const NAME: &'static str = stringify!($type);

            fn parse(text: &str) -> Option<Self> {
                text.trim().parse().ok()
            }
        }
    )*};
}

csv_values! { f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 }

impl CsvValue for bool {
    const NAME: &'static str = "bool";

    fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "true" | "True" | "TRUE" | "1" => Some(true),
            "false" | "False" | "FALSE" | "0" => Some(false),
            _ => None,
        }
    }
}

impl CsvValue for String {
    const NAME: &'static str = "String";

    fn parse(text: &str) -> Option<Self> {
        Some(text.to_string())
    }
}

/// One column: a value serves as the default, `required::<f32>()` has none.
pub trait CsvColumn: Clone + Send + Sync + 'static {
    /// The type of the field's value.
    type Value: CsvValue;

    /// The value of an empty field; none if an empty field is an error.
    fn default(&self) -> Option<Self::Value>;
}

/// A column whose fields must not be empty: [`required`].
#[derive(Debug)]
pub struct Required<T>(PhantomData<fn() -> T>);

impl<T> Clone for Required<T> {
    fn clone(&self) -> Self {
        Required(PhantomData)
    }
}

/// A column of `T` whose fields must not be empty, like a dtype in TensorFlow's `record_defaults`.
pub fn required<T: CsvValue>() -> Required<T> {
    Required(PhantomData)
}

impl<T: CsvValue> CsvColumn for Required<T> {
    type Value = T;

    fn default(&self) -> Option<T> {
        None
    }
}

impl<T: CsvValue> CsvColumn for T {
    type Value = T;

    fn default(&self) -> Option<T> {
        Some(self.clone())
    }
}

impl CsvColumn for &'static str {
    type Value = String;

    fn default(&self) -> Option<String> {
        Some(self.to_string())
    }
}

/// The columns of a record: a tuple of [`CsvColumn`]s, a `Vec` with an entry for each column, or
/// [`by_name`](super::by_name) of a struct.
pub trait CsvColumns: Clone + Send + Sync + 'static {
    /// A record's values: a tuple, a `Vec`, a struct.
    type Row;

    /// The number of columns; none if the header determines it.
    fn count(&self) -> Option<usize>;

    /// The values of these fields, one for each column.
    ///
    /// # Errors
    /// [`Error::Data`] for a field that does not match its column.
    fn row(&self, fields: &Fields<'_>) -> Result<Self::Row>;
}

macro_rules! csv_tuples {
    ($($count:literal: $($column:ident $at:tt)*;)*) => {$(
        impl<$($column: CsvColumn),*> CsvColumns for ($($column,)*) {
            type Row = ($($column::Value,)*);

            fn count(&self) -> Option<usize> {
                Some($count)
            }

            fn row(&self, fields: &Fields<'_>) -> Result<Self::Row> {
                Ok(($(value(fields, $at, &self.$at)?,)*))
            }
        }
    )*};
}

csv_tuples! {
    1: A 0;
    2: A 0 B 1;
    3: A 0 B 1 C 2;
    4: A 0 B 1 C 2 D 3;
    5: A 0 B 1 C 2 D 3 E 4;
    6: A 0 B 1 C 2 D 3 E 4 F 5;
    7: A 0 B 1 C 2 D 3 E 4 F 5 G 6;
    8: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7;
    9: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8;
    10: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9;
    11: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10;
    12: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11;
}

/// Columns of the same type, one for each entry.
impl<C: CsvColumn> CsvColumns for Vec<C> {
    type Row = Vec<C::Value>;

    fn count(&self) -> Option<usize> {
        Some(self.len())
    }

    fn row(&self, fields: &Fields<'_>) -> Result<Self::Row> {
        self.iter().enumerate().map(|(i, column)| value(fields, i, column)).collect()
    }
}

/// The value of the `i`-th field.
fn value<C: CsvColumn>(fields: &Fields<'_>, i: usize, column: &C) -> Result<C::Value> {
    let wanted = C::Value::NAME;
    let text = std::str::from_utf8(fields.get(i)).map_err(|error| {
        let (at, from) = (fields.at(i), error.valid_up_to());
        Error::Data(message!(
            "{at} should be {wanted}, and it is not valid UTF-8 from its byte {from} on. Convert the file."
        ))
    })?;
    if fields.is_missing(text) {
        return column.default().ok_or_else(|| {
            let at = fields.at(i);
            let found = if text.is_empty() { "empty".to_string() } else { format!("{text:?}") };
            Error::Data(message!(
                "{at} is required ({wanted}), and it is {found}. Give the column a default in place of \
                 required::<{wanted}>(), or fill the field in."
            ))
        });
    }
    C::Value::parse(text).ok_or_else(|| {
        let (at, found) = (fields.at(i), fields.quoted(i));
        Error::Data(message!(
            "{at} should be {wanted}, and it is {found}. Fix it, or make its column a String."
        ))
    })
}
