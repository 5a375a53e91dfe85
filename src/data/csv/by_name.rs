//! [`by_name`]: converts a record to a struct whose fields are named as in the header.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use super::columns::CsvColumns;
use super::fields::Fields;
use crate::error::{Error, Result, message};

/// Columns that are converted to the fields of a struct: [`by_name`].
#[derive(Debug)]
pub struct ByName<T>(PhantomData<fn() -> T>);

impl<T> Clone for ByName<T> {
    fn clone(&self) -> Self {
        ByName(PhantomData)
    }
}

/// Columns that are converted to the fields of a struct that derives serde's `Deserialize`. The file must have a header; its
/// columns may be in any order, and columns that the struct lacks are ignored. An `Option` accepts an empty field.
///
/// ```
/// use serde::Deserialize;
/// use wgrad::data::csv::{CsvOptions, CsvReader, by_name};
/// #[derive(Deserialize, Debug, PartialEq)]
/// struct Pet {
///     name: String,
///     age: Option<f32>,
/// }
/// let text = "age,colour,name\n2.5,black,Tom\n,white,Ann\n";
/// let options = CsvOptions::new().header(true);
/// let pets = CsvReader::new(text.as_bytes(), "pets.csv", by_name::<Pet>(), options)?;
/// let pets = pets.collect::<Result<Vec<Pet>, _>>()?;
/// assert_eq!(pets[0], Pet { name: "Tom".into(), age: Some(2.5) });
/// assert_eq!(pets[1], Pet { name: "Ann".into(), age: None });
/// # Ok::<(), wgrad::Error>(())
/// ```
pub fn by_name<T: DeserializeOwned + 'static>() -> ByName<T> {
    ByName(PhantomData)
}

impl<T: DeserializeOwned + 'static> CsvColumns for ByName<T> {
    type Row = T;

    fn count(&self) -> Option<usize> {
        None
    }

    fn row(&self, fields: &Fields<'_>) -> Result<T> {
        let header = fields.header.unwrap_or_default();
        let names = fields.columns.iter().filter_map(|column| header.get(*column));
        let names: csv::ByteRecord = names.map(String::as_bytes).collect();
        // A field that counts as empty is passed to serde as an empty field.
        let texts = fields.fields.iter().map(|field| match *field {
            field if field == fields.na_value.as_bytes() => &[][..],
            field => field,
        });
        let record: csv::ByteRecord = texts.collect();
        record.deserialize(Some(&names)).map_err(|error| {
            let csv::ErrorKind::Deserialize { err, .. } = error.kind() else {
                let (name, line) = (fields.name.display(), fields.line);
                return Error::Data(message!("{name}, line {line}: {error}."));
            };
            let why = err.kind();
            match err.field() {
                Some(i) => {
                    let i = usize::try_from(i).unwrap_or(usize::MAX);
                    let (at, found) = (fields.at(i), fields.quoted(i));
                    Error::Data(message!(
                        "{at} is {found}, which cannot become {}: {why}.",
                        std::any::type_name::<T>()
                    ))
                }
                None => {
                    let (name, line) = (fields.name.display(), fields.line);
                    Error::Data(message!(
                        "{name}, line {line}: {} cannot be made from the columns {}: {why}.",
                        std::any::type_name::<T>(),
                        fields.names()
                    ))
                }
            }
        })
    }
}
