//! `repeat`: several passes in sequence.

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{Item, ItemSpec};
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
use crate::error::Result;

impl<T: Item> Dataset<T> {
    /// `count` passes one after another, or without end if `None` (`Dataset.repeat`). A pass without elements ends the
    /// dataset.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::data;
    /// let twice: Vec<i64> = data::range(0..2).repeat(2).iter().collect::<wgrad::Result<_>>()?;
    /// assert_eq!(twice, [0, 1, 0, 1]);
    /// let endless = data::range(0..2).repeat(None).take(5);
    /// assert_eq!(endless.cardinality().known(), Some(5));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn repeat(&self, count: impl Into<Option<usize>>) -> Dataset<T> {
        Dataset::new(Repeat { input: self.clone(), count: count.into() })
    }
}

struct Repeat<T: Item> {
    input: Dataset<T>,
    count: Option<usize>,
}

struct RepeatStream<T: Item> {
    pass: Pass,
    dataset: Dataset<T>,
    count: Option<usize>,
    /// The number of passes that have begun, and the current one.
    begun: usize,
    input: Option<BoxStream<T>>,
    /// Whether this pass returned an element.
    gave: bool,
    ended: bool,
}

impl<T: Item> Node<T> for Repeat<T> {
    fn open(&self, pass: &Pass) -> Result<BoxStream<T>> {
        Ok(Box::new(RepeatStream {
            pass: pass.clone(),
            dataset: self.input.clone(),
            count: self.count,
            begun: 0,
            input: None,
            gave: false,
            ended: self.count == Some(0),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        match (self.input.cardinality(), self.count) {
            (Cardinality::Known(0), _) | (_, Some(0)) => Cardinality::Known(0),
            (Cardinality::Known(_), None) => Cardinality::Infinite,
            (Cardinality::Known(n), Some(count)) => {
                n.checked_mul(count).map_or(Cardinality::Infinite, Cardinality::Known)
            }
            (other, _) => other,
        }
    }

    fn spec(&self) -> ItemSpec {
        self.input.element_spec()
    }
}

impl<T: Item> RepeatStream<T> {
    /// The current pass; begins one if there is none.
    fn input(&mut self) -> Result<&mut BoxStream<T>> {
        if self.input.is_none() {
            self.input = Some(self.dataset.open(&self.pass)?);
            (self.begun, self.gave) = (self.begun.saturating_add(1), false);
        }
        Ok(self.input.as_mut().expect("set above"))
    }
}

impl<T: Item> Stream<T> for RepeatStream<T> {
    fn next(&mut self) -> Option<Result<T>> {
        while !self.ended && !self.pass.stopped() {
            match self.input().map(Stream::next) {
                Ok(Some(next)) => {
                    self.gave = true;
                    return Some(next);
                }
                Ok(None) => {}
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
            // The last pass stays, because saving it stores the seeds for beginning another one.
            match self.gave && self.count.is_none_or(|count| self.begun < count) {
                true => self.input = None,
                false => self.ended = true,
            }
        }
        None
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        self.input()?;
        write_name("repeat", out);
        out.number(self.begun as u64);
        out.flag(self.gave);
        out.flag(self.ended);
        self.input()?.save(out)
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name("repeat", from)?;
        let (begun, gave) = (from.size()?, from.flag()?);
        self.ended = from.flag()?;
        self.input()?.restore(from)?;
        (self.begun, self.gave) = (begun, gave);
        Ok(())
    }
}
