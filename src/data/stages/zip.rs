//! `zip` and `enumerate`: combine the elements of several datasets.

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{Item, ItemSpec};
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
use crate::error::Result;

/// Tuples of datasets, for [`zip`].
pub trait ZipDatasets {
    /// The tuple of an element of each.
    type Item: Item;

    /// See [`zip`].
    fn zip(self) -> Dataset<Self::Item>;
}

/// The tuples of the first elements, of the second ones, and so on (`Dataset.zip`); the shortest dataset ends it.
///
/// If an element is an error, the tuple is that error; the elements of the other datasets are skipped.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::data;
/// let letters = data::Dataset::from_tensor_slices(vec!['a', 'b'].iter().map(char::to_string).collect::<Vec<_>>())?;
/// let dataset = data::zip((data::range(1..9), letters, data::range(0..7)));
/// let tuples: Vec<_> = dataset.iter().collect::<wgrad::Result<_>>()?;
/// assert_eq!(tuples, [(1, "a".to_string(), 0), (2, "b".to_string(), 1)]);
/// # Ok(())
/// # }
/// ```
pub fn zip<D: ZipDatasets>(datasets: D) -> Dataset<D::Item> {
    datasets.zip()
}

impl<T: Item> Dataset<T> {
    /// Pairs with the elements of another dataset; [`data::zip`](zip) accepts more than two.
    #[must_use]
    pub fn zip<U: Item>(&self, other: &Dataset<U>) -> Dataset<(T, U)> {
        zip((self.clone(), other.clone()))
    }

    /// Pairs of an index, starting at `start`, and an element (`Dataset.enumerate`). An error among the elements has an index,
    /// too.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// let pairs = wgrad::data::range(7..9).enumerate(1);
    /// assert_eq!(pairs.iter().collect::<wgrad::Result<Vec<_>>>()?, [(1, 7), (2, 8)]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn enumerate(&self, start: i64) -> Dataset<(i64, T)> {
        crate::data::range(start..i64::MAX).zip(self)
    }
}

/// The length of the shortest.
fn shorter(a: Cardinality, b: Cardinality) -> Cardinality {
    match (a, b) {
        (Cardinality::Known(0), _) | (_, Cardinality::Known(0)) => Cardinality::Known(0),
        (Cardinality::Infinite, other) | (other, Cardinality::Infinite) => other,
        (Cardinality::Known(a), Cardinality::Known(b)) => Cardinality::Known(a.min(b)),
        _ => Cardinality::Unknown,
    }
}

struct Zip<D>(D);

struct ZipStream<S> {
    streams: S,
    ended: bool,
}

macro_rules! tuples {
    ($(($($item:ident $at:tt),+))*) => {$(
        impl<$($item: Item),+> ZipDatasets for ($(Dataset<$item>,)+) {
            type Item = ($($item,)+);

            fn zip(self) -> Dataset<Self::Item> {
                Dataset::new(Zip(self))
            }
        }

        impl<$($item: Item),+> Node<($($item,)+)> for Zip<($(Dataset<$item>,)+)> {
            fn open(&self, pass: &Pass) -> Result<BoxStream<($($item,)+)>> {
                Ok(Box::new(ZipStream { streams: ($(self.0.$at.open(pass)?,)+), ended: false }))
            }

            fn cardinality(&self) -> Cardinality {
                let all = [$(self.0.$at.cardinality()),+];
                all.into_iter().fold(Cardinality::Infinite, shorter)
            }

            fn spec(&self) -> ItemSpec {
                ItemSpec::Tuple(vec![$(self.0.$at.element_spec()),+])
            }
        }

        impl<$($item: Item),+> Stream<($($item,)+)> for ZipStream<($(BoxStream<$item>,)+)> {
            #[allow(non_snake_case)]
            fn next(&mut self) -> Option<Result<($($item,)+)>> {
                if self.ended {
                    return None;
                }
                // Each dataset advances, whatever the others return.
                $(let $item = self.streams.$at.next();)+
                self.ended = $($item.is_none())||+;
                $(let $item = $item?;)+
                Some((|| Ok(($($item?,)+)))())
            }

            fn save(&mut self, out: &mut Writer) -> Result<()> {
                write_name("zip", out);
                out.flag(self.ended);
                $(self.streams.$at.save(out)?;)+
                Ok(())
            }

            fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
                expect_name("zip", from)?;
                self.ended = from.flag()?;
                $(self.streams.$at.restore(from)?;)+
                Ok(())
            }
        }
    )*};
}
// `(Dataset<A>, Dataset<B>)` has the elements `(A, B)`.
tuples!((A 0)(A 0, B 1)(A 0, B 1, C 2)(A 0, B 1, C 2, D 3)(A 0, B 1, C 2, D 3, E 4)(A 0, B 1, C 2, D 3, E 4, F 5));
