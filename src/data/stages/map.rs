//! `map`: applies a function to each element, on one thread or on several.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::data::AUTOTUNE;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{IntoItem, Item, read_results, write_results};
use crate::data::pool::{self, Jobs, guarded};
use crate::data::stages::stage::{Input, Stage};
use crate::error::{Error, Result};
use crate::support::options::options;

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
        self.stage(Map::new(function, 1, true))
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
                    "map: num_parallel_calls is 0; it must be at least 1.".into(),
                ));
            }
            _ if T::ON_DEVICE || R::Item::ON_DEVICE => 1,
            AUTOTUNE if pool::width() == 1 => 1,
            AUTOTUNE => AHEAD * pool::width(),
            calls => calls,
        };
        let function = Arc::new(move |item| function(item).into_item());
        self.stage(Map::new(function, limit, options.deterministic))
    }
}

type Function<T, U> = Arc<dyn Fn(T) -> Result<U> + Send + Sync>;

#[derive(Clone)]
struct Map<T, U> {
    function: Function<T, U>,
    limit: usize,
    in_order: bool,
    ended: bool,
    jobs: Jobs<Result<U>>,
    /// Results that were saved or restored; they come before those of the jobs.
    ready: VecDeque<Result<U>>,
}

impl<T: Item, U: Item> Map<T, U> {
    fn new(function: Function<T, U>, limit: usize, in_order: bool) -> Self {
        let (jobs, ready) = (Jobs::new(), VecDeque::new());
        Map { function, limit, in_order, ended: false, jobs, ready }
    }
}

impl<T: Item, U: Item> Stage<T> for Map<T, U> {
    type Out = U;

    fn name(&self) -> &'static str {
        "map"
    }

    fn begin(&self) -> Self {
        Map::new(self.function.clone(), self.limit, self.in_order)
    }

    fn next(&mut self, input: &mut Input<T>) -> Option<Result<U>> {
        if let Some(ready) = self.ready.pop_front() {
            return Some(ready);
        }
        if self.limit == 1 {
            let item = input.next()?;
            return Some(item.and_then(|item| guarded("map", || (self.function)(item))));
        }
        while !self.ended && self.jobs.len() < self.limit {
            match input.next() {
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
        while let Some(result) = self.jobs.pop(true) {
            self.ready.push_back(result);
        }
        out.flag(self.ended);
        write_results(&self.ready, out)
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        self.ended = from.flag()?;
        self.ready = read_results(from)?;
        Ok(())
    }
}
