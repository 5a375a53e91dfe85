//! `map`: applies a function to each element, on one thread or on several.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::data::AUTOTUNE;
use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{IntoItem, Item, read_result, write_result};
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
use crate::data::pool::{self, Jobs, guarded};
use crate::error::{Error, Result};
use crate::options::options;

/// The number of concurrent elements per core if the dataset chooses it.
const AHEAD: usize = 2;

options! {
    /// How [`Dataset::map_with`] calls its function.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct MapOptions {
        /// The number of elements that are computed at the same time, on the threads of a pool, or that wait for an earlier
        /// one; [`AUTOTUNE`]: two for each core of the machine, so that a slow element does not stop the others. 1: the thread
        /// that requests an element makes it. A browser has one thread.
        num_parallel_calls: usize = 1,
        /// Whether elements keep their order; if not, a slow element does not delay the others.
        deterministic: bool = true,
    }
}

impl<T: Item> Dataset<T> {
    /// Applies `function` to each element (`Dataset.map`). It may return a `Result`; an error, or a panic, replaces the
    /// element.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// let squares = wgrad::data::range(0..4).map(|n| n * n);
    /// assert_eq!(squares.iter().collect::<wgrad::Result<Vec<i64>>>()?, [0, 1, 4, 9]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn map<R: IntoItem>(
        &self,
        function: impl Fn(T) -> R + Send + Sync + 'static,
    ) -> Dataset<R::Item> {
        let function = Arc::new(move |item| function(item).into_item());
        Dataset::new(Map { input: self.clone(), function, limit: 1, in_order: true })
    }

    /// As [`Dataset::map`], with several elements computed at the same time.
    ///
    /// The thread that requests an element calls functions of tensors, because the calls of a device must be in program order.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::data::{self, AUTOTUNE, MapOptions};
    /// let options = MapOptions::new().num_parallel_calls(AUTOTUNE);
    /// let squares = data::range(0..4).map_with(options, |n| n * n);
    /// assert_eq!(squares.iter().collect::<wgrad::Result<Vec<i64>>>()?, [0, 1, 4, 9]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// If `num_parallel_calls` is 0, an [`Error::Data`] takes the place of the first element.
    #[must_use]
    pub fn map_with<R: IntoItem>(
        &self,
        options: MapOptions,
        function: impl Fn(T) -> R + Send + Sync + 'static,
    ) -> Dataset<R::Item> {
        let limit = match options.num_parallel_calls {
            0 => {
                return Dataset::refused(Error::Data(
                    "map: num_parallel_calls is 0; at least one element must be under way.".into(),
                ));
            }
            _ if T::ON_DEVICE || R::Item::ON_DEVICE => 1,
            AUTOTUNE if pool::width() == 1 => 1,
            AUTOTUNE => AHEAD * pool::width(),
            calls => calls,
        };
        let function = Arc::new(move |item| function(item).into_item());
        let in_order = options.deterministic;
        Dataset::new(Map { input: self.clone(), function, limit, in_order })
    }
}

type Function<T, U> = Arc<dyn Fn(T) -> Result<U> + Send + Sync>;

struct Map<T: Item, U> {
    input: Dataset<T>,
    function: Function<T, U>,
    limit: usize,
    in_order: bool,
}

impl<T: Item, U: Item> Node<U> for Map<T, U> {
    fn open(&self, pass: &Pass) -> Result<BoxStream<U>> {
        let (input, function) = (self.input.open(pass)?, self.function.clone());
        Ok(Box::new(MapStream {
            input,
            function,
            limit: self.limit,
            in_order: self.in_order,
            ended: false,
            jobs: Jobs::new(),
            ready: VecDeque::new(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }
}

struct MapStream<T, U> {
    input: BoxStream<T>,
    function: Function<T, U>,
    limit: usize,
    in_order: bool,
    ended: bool,
    jobs: Jobs<Result<U>>,
    /// Results that were saved or restored; they come before those of the jobs.
    ready: VecDeque<Result<U>>,
}

impl<T: Item, U: Item> Stream<U> for MapStream<T, U> {
    fn next(&mut self) -> Option<Result<U>> {
        if let Some(ready) = self.ready.pop_front() {
            return Some(ready);
        }
        if self.limit == 1 {
            let item = self.input.next()?;
            return Some(item.and_then(|item| guarded("map", || (self.function)(item))));
        }
        while !self.ended && self.jobs.len() < self.limit {
            match self.input.next() {
                Some(Ok(item)) => {
                    let function = self.function.clone();
                    self.jobs.push(move || guarded("map", || function(item)));
                }
                Some(Err(error)) => self.jobs.push_done(Err(error)),
                None => self.ended = true,
            }
        }
        self.jobs.pop(self.in_order)
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        write_name("map", out);
        while let Some(result) = self.jobs.pop(true) {
            self.ready.push_back(result);
        }
        out.flag(self.ended);
        out.number(self.ready.len() as u64);
        self.ready.iter().try_for_each(|result| write_result(result, out))?;
        self.input.save(out)
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name("map", from)?;
        self.ended = from.flag()?;
        for _ in 0..from.count(1)? {
            self.ready.push_back(read_result(from)?);
        }
        self.input.restore(from)
    }
}
