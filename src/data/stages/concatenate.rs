//! `concatenate`: one dataset behind another.

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{Item, ItemSpec};
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
use crate::error::Result;

impl<T: Item> Dataset<T> {
    /// The elements of this dataset, then those of another (`Dataset.concatenate`).
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::data;
    /// let numbers = data::range(1..3).concatenate(&data::range(8..10));
    /// assert_eq!(numbers.iter().collect::<wgrad::Result<Vec<i64>>>()?, [1, 2, 8, 9]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn concatenate(&self, dataset: &Dataset<T>) -> Dataset<T> {
        Dataset::new(Concatenate { first: self.clone(), second: dataset.clone() })
    }
}

struct Concatenate<T: Item> {
    first: Dataset<T>,
    second: Dataset<T>,
}

struct ConcatenateStream<T> {
    first: BoxStream<T>,
    second: BoxStream<T>,
    first_ended: bool,
}

impl<T: Item> Node<T> for Concatenate<T> {
    fn open(&self, pass: &Pass) -> Result<BoxStream<T>> {
        let (first, second) = (self.first.open(pass)?, self.second.open(pass)?);
        Ok(Box::new(ConcatenateStream { first, second, first_ended: false }))
    }

    fn cardinality(&self) -> Cardinality {
        match (self.first.cardinality(), self.second.cardinality()) {
            (Cardinality::Infinite, _) | (_, Cardinality::Infinite) => Cardinality::Infinite,
            (Cardinality::Known(a), Cardinality::Known(b)) => {
                a.checked_add(b).map_or(Cardinality::Infinite, Cardinality::Known)
            }
            _ => Cardinality::Unknown,
        }
    }

    fn spec(&self) -> ItemSpec {
        let spec = self.first.element_spec().merge(self.second.element_spec());
        spec.unwrap_or_else(T::type_spec)
    }
}

impl<T: Item> Stream<T> for ConcatenateStream<T> {
    fn next(&mut self) -> Option<Result<T>> {
        if !self.first_ended {
            let next = self.first.next();
            if next.is_some() {
                return next;
            }
            self.first_ended = true;
        }
        self.second.next()
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        write_name("concatenate", out);
        out.flag(self.first_ended);
        self.first.save(out)?;
        self.second.save(out)
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name("concatenate", from)?;
        self.first_ended = from.flag()?;
        self.first.restore(from)?;
        self.second.restore(from)
    }
}
