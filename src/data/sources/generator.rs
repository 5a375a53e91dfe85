//! `from_generator`: elements from any iterator.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{IntoItem, Item};
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
use crate::data::pool::guarded;
use crate::error::Result;

impl<T: Item> Dataset<T> {
    /// The elements of an iterator; each pass calls `generator` for a new one. Elements may be `Result`s.
    ///
    /// To resume a saved pass, the source makes a new iterator and skips all elements that were returned before.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::data::Dataset;
    /// let squares = Dataset::from_generator(|| (0i64..).map(|n| n * n));
    /// let numbers: Vec<i64> = squares.take(4).iter().collect::<wgrad::Result<_>>()?;
    /// assert_eq!(numbers, [0, 1, 4, 9]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_generator<I>(generator: impl Fn() -> I + Send + Sync + 'static) -> Self
    where
        I: IntoIterator<Item: IntoItem<Item = T> + 'static, IntoIter: Send + 'static>,
    {
        Dataset::new(Generator {
            begin: Arc::new(move || Box::new(generator().into_iter().map(IntoItem::into_item))),
        })
    }
}

type Iter<T> = Box<dyn Iterator<Item = Result<T>> + Send>;
type Begin<T> = Arc<dyn Fn() -> Iter<T> + Send + Sync>;

struct Generator<T> {
    begin: Begin<T>,
}

struct GeneratorStream<T> {
    pass: Pass,
    begin: Begin<T>,
    iter: Option<Iter<T>>,
    given: u64,
    ended: bool,
}

impl<T: Item> Node<T> for Generator<T> {
    fn open(&self, pass: &Pass) -> Result<BoxStream<T>> {
        let (pass, begin) = (pass.clone(), self.begin.clone());
        Ok(Box::new(GeneratorStream { pass, begin, iter: None, given: 0, ended: false }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

impl<T: Item> GeneratorStream<T> {
    /// The iterator's next element; an iterator that panics has ended.
    fn pull(&mut self) -> Result<Option<Result<T>>> {
        let (begin, iter) = (&self.begin, &mut self.iter);
        guarded("from_generator", || Ok(iter.get_or_insert_with(|| begin()).next()))
    }
}

impl<T: Item> Stream<T> for GeneratorStream<T> {
    fn next(&mut self) -> Option<Result<T>> {
        if self.ended || self.pass.stopped() {
            return None;
        }
        let next = self.pull();
        self.ended = !matches!(next, Ok(Some(_)));
        if self.ended {
            // An iterator that panicked may panic again when it is dropped.
            let iter = self.iter.take();
            let _ = catch_unwind(AssertUnwindSafe(|| drop(iter)));
        }
        match next {
            Ok(next) => {
                self.given += 1;
                next
            }
            Err(error) => Some(Err(error)),
        }
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        write_name("from_generator", out);
        out.number(self.given);
        out.flag(self.ended);
        Ok(())
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name("from_generator", from)?;
        let given = from.number()?;
        self.ended = from.flag()?;
        while !self.ended && self.given < given && !self.pass.stopped() {
            if self.pull()?.is_none() {
                self.ended = true;
            }
            self.given += 1;
        }
        Ok(())
    }
}
