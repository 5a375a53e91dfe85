//! `flat_map` and `interleave`: datasets made from elements, one after another or alternately.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::data::AUTOTUNE;
use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{Item, read_results, write_results};
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
use crate::data::pool::{self, Jobs, guarded};
use crate::error::{Error, Result, message};
use crate::support::options::options;

options! {
    /// How [`Dataset::interleave_with`] alternates.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct InterleaveOptions {
        /// The number of datasets that alternate; [`AUTOTUNE`]: as many as the machine has cores.
        cycle_length: usize = AUTOTUNE,
        /// The number of consecutive elements from one dataset.
        block_length: usize = 1,
        /// The number of datasets that make their next block at the same time, on the threads of a pool; [`AUTOTUNE`]: as many
        /// as the machine has cores. 1: the thread that requests an element makes it. A browser has one thread.
        num_parallel_calls: usize = 1,
        /// Whether elements keep their order; if not, a slow dataset does not delay the others.
        deterministic: bool = true,
    }
}

/// The return types of a function that makes a dataset from an element: the dataset, or the [`Result`] of making it.
pub trait IntoDataset {
    /// The type of the dataset's elements.
    type Item: Item;

    /// The dataset.
    ///
    /// # Errors
    /// The error of making it.
    fn into_dataset(self) -> Result<Dataset<Self::Item>>;
}

impl<T: Item> IntoDataset for Dataset<T> {
    type Item = T;

    fn into_dataset(self) -> Result<Dataset<T>> {
        Ok(self)
    }
}

impl<T: Item> IntoDataset for Result<Dataset<T>> {
    type Item = T;

    fn into_dataset(self) -> Result<Dataset<T>> {
        self
    }
}

impl<T: Item> Dataset<T> {
    /// The elements of the datasets that `map_func` makes from the elements, one dataset after another (`Dataset.flat_map`).
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::data::{self, Dataset};
    /// let numbers = data::range(1..4).flat_map(|n| Dataset::from_tensors(n).repeat(n as usize));
    /// assert_eq!(numbers.iter().collect::<wgrad::Result<Vec<i64>>>()?, [1, 2, 2, 3, 3, 3]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn flat_map<R: IntoDataset>(
        &self,
        map_func: impl Fn(T) -> R + Send + Sync + 'static,
    ) -> Dataset<R::Item> {
        let rule = Rule { name: "flat_map", cycle: 1, block: usize::MAX, calls: 1, in_order: true };
        let function = Arc::new(move |item| map_func(item).into_dataset());
        Dataset::new(Interleave { input: self.clone(), function, rule })
    }

    /// The elements of the datasets that `map_func` makes from the elements, alternately (`Dataset.interleave`): one element
    /// from each of as many datasets as the machine has cores. When a dataset ends, the dataset of the next element replaces
    /// it.
    ///
    /// An error, or a panic, of `map_func` replaces the first element of its dataset.
    #[must_use]
    pub fn interleave<R: IntoDataset>(
        &self,
        map_func: impl Fn(T) -> R + Send + Sync + 'static,
    ) -> Dataset<R::Item> {
        self.interleave_with(InterleaveOptions::new(), map_func)
    }

    /// As [`Dataset::interleave`], with other options, and with several datasets that work at the same time: each makes one
    /// block ahead.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::data::{self, Dataset, InterleaveOptions};
    /// let options = InterleaveOptions::new().cycle_length(2).block_length(2);
    /// let numbers = data::range(1..4).interleave_with(options, |n| Dataset::from_tensors(n).repeat(3));
    /// assert_eq!(numbers.iter().collect::<wgrad::Result<Vec<i64>>>()?, [1, 1, 2, 2, 1, 2, 3, 3, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// If `cycle_length`, `block_length` or `num_parallel_calls` is 0, an [`Error::Data`] takes the place of the first
    /// element.
    #[must_use]
    pub fn interleave_with<R: IntoDataset>(
        &self,
        options: InterleaveOptions,
        map_func: impl Fn(T) -> R + Send + Sync + 'static,
    ) -> Dataset<R::Item> {
        let InterleaveOptions { cycle_length, block_length, num_parallel_calls, deterministic } =
            options;
        let numbers = [
            ("cycle_length", cycle_length),
            ("block_length", block_length),
            ("num_parallel_calls", num_parallel_calls),
        ];
        if let Some((name, _)) = numbers.iter().find(|(_, number)| *number == 0) {
            let what = message!("interleave: {name} is 0; it must be at least 1.");
            return Dataset::refused(Error::Data(what));
        }
        let cores = |number| if number == AUTOTUNE { pool::width() } else { number };
        let on_device = T::ON_DEVICE || R::Item::ON_DEVICE;
        let rule = Rule {
            name: "interleave",
            cycle: cores(cycle_length),
            block: block_length,
            calls: if on_device { 1 } else { cores(num_parallel_calls) },
            in_order: deterministic,
        };
        let function = Arc::new(move |item| map_func(item).into_dataset());
        Dataset::new(Interleave { input: self.clone(), function, rule })
    }
}

type Function<T, U> = Arc<dyn Fn(T) -> Result<Dataset<U>> + Send + Sync>;

#[derive(Clone, Copy)]
struct Rule {
    name: &'static str,
    cycle: usize,
    block: usize,
    calls: usize,
    in_order: bool,
}

struct Interleave<T: Item, U: Item> {
    input: Dataset<T>,
    function: Function<T, U>,
    rule: Rule,
}

/// An active dataset, and the element that it was made from.
struct Inner<T, U> {
    item: T,
    stream: BoxStream<U>,
}

/// The block of a dataset's turn, and the dataset if it did not end.
struct Block<T, U> {
    items: VecDeque<Result<U>>,
    inner: Option<Inner<T, U>>,
}

struct InterleaveStream<T, U: Item> {
    pass: Pass,
    input: BoxStream<T>,
    input_ended: bool,
    function: Function<T, U>,
    rule: Rule,
    /// The positions that never had a dataset; their turns precede those of `turns`.
    fresh: usize,
    /// The order of the next turns; a `None` takes the input's next element.
    turns: VecDeque<Option<Inner<T, U>>>,
    /// One thread: the dataset whose turn it is, and how many elements it may still return.
    now: Option<(Inner<T, U>, usize)>,
    /// Several threads: elements to return, finished blocks, and blocks that are being made, which precede `turns`.
    items: VecDeque<Result<U>>,
    made: VecDeque<Block<T, U>>,
    jobs: Jobs<Block<T, U>>,
}

impl<T: Item, U: Item> Node<U> for Interleave<T, U> {
    fn open(&self, pass: &Pass) -> Result<BoxStream<U>> {
        Ok(Box::new(InterleaveStream {
            pass: pass.clone(),
            input: self.input.open(pass)?,
            input_ended: false,
            function: self.function.clone(),
            rule: self.rule,
            fresh: self.rule.cycle,
            turns: VecDeque::new(),
            now: None,
            items: VecDeque::new(),
            made: VecDeque::new(),
            jobs: Jobs::new(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality().varies()
    }
}

fn begin<T: Item, U: Item>(
    function: &Function<T, U>,
    pass: &Pass,
    name: &str,
    item: T,
) -> Result<Inner<T, U>> {
    let dataset = guarded(name, || function(item.clone()))?;
    Ok(Inner { item, stream: dataset.open(pass)? })
}

impl<T: Item, U: Item> Block<T, U> {
    fn error(error: Error) -> Self {
        Block { items: VecDeque::from([Err(error)]), inner: None }
    }

    fn make(mut inner: Inner<T, U>, pass: &Pass, length: usize) -> Self {
        let mut items = VecDeque::new();
        while items.len() < length && !pass.stopped() {
            match inner.stream.next() {
                Some(item) => items.push_back(item),
                None => return Block { items, inner: None },
            }
        }
        Block { items, inner: Some(inner) }
    }
}

impl<T: Item, U: Item> InterleaveStream<T, U> {
    /// The dataset whose turn is next, or an element to make one from.
    #[allow(clippy::type_complexity)]
    fn turn(&mut self) -> Option<Result<Result<Inner<T, U>, T>>> {
        loop {
            match self.fresh {
                0 => {
                    if let Some(inner) = self.turns.pop_front()? {
                        return Some(Ok(Ok(inner)));
                    }
                }
                _ => self.fresh -= 1,
            }
            let next = if self.input_ended { None } else { self.input.next() };
            match next {
                Some(next) => return Some(next.map(Err)),
                None => (self.input_ended, self.fresh) = (true, 0),
            }
        }
    }

    fn next_on_this_thread(&mut self) -> Option<Result<U>> {
        while !self.pass.stopped() {
            let Some((inner, left)) = &mut self.now else {
                let inner = match self.turn()? {
                    Ok(Ok(inner)) => Ok(inner),
                    Ok(Err(item)) => begin(&self.function, &self.pass, self.rule.name, item),
                    Err(error) => Err(error),
                };
                match inner {
                    Ok(inner) => self.now = Some((inner, self.rule.block)),
                    Err(error) => {
                        self.turns.push_back(None);
                        return Some(Err(error));
                    }
                }
                continue;
            };
            let next = inner.stream.next();
            *left -= 1;
            if next.is_none() {
                self.now = None;
                self.turns.push_back(None);
                continue;
            }
            if *left == 0 {
                self.turns.push_back(self.now.take().map(|(inner, _)| inner));
            }
            return next;
        }
        None
    }

    fn next_of_jobs(&mut self) -> Option<Result<U>> {
        while !self.pass.stopped() {
            if let Some(item) = self.items.pop_front() {
                return Some(item);
            }
            while self.jobs.len() + self.made.len() < self.rule.calls {
                let Some(turn) = self.turn() else { break };
                let (function, pass, rule) = (self.function.clone(), self.pass.clone(), self.rule);
                match turn {
                    Err(error) => self.jobs.push_done(Block::error(error)),
                    Ok(turn) => self.jobs.push(move || {
                        let make = || {
                            let inner = match turn {
                                Ok(inner) => inner,
                                Err(item) => begin(&function, &pass, rule.name, item)?,
                            };
                            Ok(Block::make(inner, &pass, rule.block))
                        };
                        guarded(rule.name, make).unwrap_or_else(Block::error)
                    }),
                }
            }
            let made = self.made.pop_front();
            let block = made.or_else(|| self.jobs.pop(self.rule.in_order))?;
            self.items = block.items;
            self.turns.push_back(block.inner);
        }
        None
    }
}

fn write_inner<T: Item, U>(inner: &mut Inner<T, U>, out: &mut Writer) -> Result<()> {
    inner.item.write(out)?;
    inner.stream.save(out)
}

impl<T: Item, U: Item> InterleaveStream<T, U> {
    fn read_inner(&self, from: &mut Reader<'_>) -> Result<Inner<T, U>> {
        let mut inner = begin(&self.function, &self.pass, self.rule.name, T::read(from)?)?;
        inner.stream.restore(from)?;
        Ok(inner)
    }

    fn read_optional(&self, from: &mut Reader<'_>) -> Result<Option<Inner<T, U>>> {
        if from.flag()? { self.read_inner(from).map(Some) } else { Ok(None) }
    }
}

fn write_optional<T: Item, U>(inner: Option<&mut Inner<T, U>>, out: &mut Writer) -> Result<()> {
    out.flag(inner.is_some());
    inner.map_or(Ok(()), |inner| write_inner(inner, out))
}

impl<T: Item, U: Item> Stream<U> for InterleaveStream<T, U> {
    fn next(&mut self) -> Option<Result<U>> {
        match self.rule.calls {
            1 => self.next_on_this_thread(),
            _ => self.next_of_jobs(),
        }
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        write_name(self.rule.name, out);
        self.made.extend(std::iter::from_fn(|| self.jobs.pop(true)));
        out.flag(self.input_ended);
        out.number(self.fresh as u64);
        out.number(self.turns.len() as u64);
        self.turns.iter_mut().try_for_each(|inner| write_optional(inner.as_mut(), out))?;
        out.number(self.now.as_ref().map_or(0, |(_, left)| *left as u64));
        write_optional(self.now.as_mut().map(|(inner, _)| inner), out)?;
        write_results(&self.items, out)?;
        out.number(self.made.len() as u64);
        for block in &mut self.made {
            write_results(&block.items, out)?;
            write_optional(block.inner.as_mut(), out)?;
        }
        self.input.save(out)
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name(self.rule.name, from)?;
        self.input_ended = from.flag()?;
        self.fresh = from.size()?;
        for _ in 0..from.count(1)? {
            let inner = self.read_optional(from)?;
            self.turns.push_back(inner);
        }
        let left = from.size()?.max(1);
        self.now = self.read_optional(from)?.map(|inner| (inner, left));
        self.items = read_results(from)?;
        for _ in 0..from.count(9)? {
            let (items, inner) = (read_results(from)?, self.read_optional(from)?);
            self.made.push_back(Block { items, inner });
        }
        self.input.restore(from)
    }
}
