//! `range`: consecutive integers.

use std::ops::Range;

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
use crate::error::Result;

/// The numbers of a range (`Dataset.range`).
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// let numbers: Vec<i64> = wgrad::data::range(3..6).iter().collect::<wgrad::Result<_>>()?;
/// assert_eq!(numbers, [3, 4, 5]);
/// # Ok(())
/// # }
/// ```
pub fn range(range: Range<i64>) -> Dataset<i64> {
    Dataset::new(Numbers(range))
}

struct Numbers(Range<i64>);

struct NumbersStream(Range<i64>);

impl Node<i64> for Numbers {
    fn open(&self, _: &Pass) -> Result<BoxStream<i64>> {
        Ok(Box::new(NumbersStream(self.0.clone())))
    }

    fn cardinality(&self) -> Cardinality {
        let count = i128::from(self.0.end) - i128::from(self.0.start);
        Cardinality::Known(usize::try_from(count.max(0)).unwrap_or(usize::MAX))
    }
}

impl Stream<i64> for NumbersStream {
    fn next(&mut self) -> Option<Result<i64>> {
        self.0.next().map(Ok)
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        write_name("range", out);
        out.number(self.0.start as u64);
        Ok(())
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name("range", from)?;
        self.0.start = from.number()? as i64;
        Ok(())
    }
}
