//! Tuples of elements as elements.

use super::{Item, ItemSpec, PadTo};
use crate::data::codec::{Reader, Writer};
use crate::error::{Error, Result, message};

/// The common number of rows of all parts.
///
/// # Errors
/// [`Error::Shape`] if they differ.
#[doc(hidden)]
pub fn same_rows(counts: &[usize]) -> Result<usize> {
    match counts {
        [first, rest @ ..] if rest.iter().all(|count| count == first) => Ok(*first),
        _ => Err(Error::Shape(message!(
            "unbatch: the parts of the element differ in their first axes: {counts:?}; they count the rows and must be equal."
        ))),
    }
}

macro_rules! tuples {
    ($(($($item:ident $at:tt),+))*) => {$(
        impl<$($item: Item),+> Item for ($($item,)+) {
            type Batch = ($($item::Batch,)+);
            type Padding = ($($item::Padding,)+);
            const ON_DEVICE: bool = $($item::ON_DEVICE)||+;

            fn type_spec() -> ItemSpec {
                ItemSpec::Tuple(vec![$($item::type_spec()),+])
            }

            fn spec(&self) -> ItemSpec {
                ItemSpec::Tuple(vec![$(self.$at.spec()),+])
            }

            #[allow(non_snake_case)]
            fn stack(items: Vec<Self>) -> Result<Self::Batch> {
                $(let mut $item = Vec::with_capacity(items.len());)+
                for item in items {
                    $($item.push(item.$at);)+
                }
                Ok(($($item::stack($item)?,)+))
            }

            #[allow(non_snake_case)]
            fn pad(items: Vec<Self>, to: &mut PadTo<'_>, padding: &Self::Padding) -> Result<Self::Batch> {
                $(let mut $item = Vec::with_capacity(items.len());)+
                for item in items {
                    $($item.push(item.$at);)+
                }
                Ok(($($item::pad($item, to, &padding.$at)?,)+))
            }

            fn rows(&self) -> Result<usize> {
                same_rows(&[$(self.$at.rows()?),+])
            }

            fn row(&self, at: usize) -> Result<Self::Batch> {
                Ok(($(self.$at.row(at)?,)+))
            }

            fn write(&self, out: &mut Writer) -> Result<()> {
                $(self.$at.write(out)?;)+
                Ok(())
            }

            fn read(from: &mut Reader<'_>) -> Result<Self> {
                Ok(($($item::read(from)?,)+))
            }
        }
    )*};
}
// `(A, B)`: a batch is the batch of each part, `(A::Batch, B::Batch)`.
tuples!((A 0)(A 0, B 1)(A 0, B 1, C 2)(A 0, B 1, C 2, D 3)(A 0, B 1, C 2, D 3, E 4)(A 0, B 1, C 2, D 3, E 4, F 5));
