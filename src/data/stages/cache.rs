//! `cache`: makes elements once and stores them in memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{Item, ItemSpec, read_items, write_items};
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
use crate::error::{Error, Result, message};

/// The warning about the cache after a pass with errors.
pub(super) fn warn_of_error(stage: &str, error: &Error) {
    log::warn!(
        "{stage}: an element is an error, so this pass is not kept; `ignore_errors` before it omits such elements. \
         {error}"
    );
}

impl<T: Item> Dataset<T> {
    /// Stores the elements of the first complete pass in memory, and returns them in all later passes
    /// (`Dataset.cache`).
    ///
    /// A pass that ends early or has errors stores nothing. A saved pass contains the elements.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use std::sync::{Arc, atomic::{AtomicUsize, Ordering}};
    /// let calls = Arc::new(AtomicUsize::new(0));
    /// let count = calls.clone();
    /// let dataset = wgrad::data::range(0..5).map(move |n| n + count.fetch_add(1, Ordering::Relaxed) as i64).cache();
    /// for _ in 0..3 {
    ///     assert_eq!(dataset.iter().count(), 5);
    /// }
    /// assert_eq!(calls.load(Ordering::Relaxed), 5);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn cache(&self) -> Dataset<T> {
        Dataset::new(Cache { input: self.clone(), kept: Arc::default() })
    }
}

type Kept<T> = Arc<Mutex<Option<Arc<Vec<T>>>>>;

fn lock<T>(kept: &Kept<T>) -> MutexGuard<'_, Option<Arc<Vec<T>>>> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Cache<T: Item> {
    input: Dataset<T>,
    kept: Kept<T>,
}

struct CacheStream<T> {
    pass: Pass,
    input: BoxStream<T>,
    kept: Kept<T>,
    state: State<T>,
}

enum State<T> {
    Begin,
    /// The elements so far, which will be stored.
    Filling(Vec<T>),
    /// Stored elements, and how many of them were returned.
    Reading(Arc<Vec<T>>, usize),
    /// The input's elements, which are not stored.
    Through,
}

impl<T: Item> Node<T> for Cache<T> {
    fn open(&self, pass: &Pass) -> Result<BoxStream<T>> {
        Ok(Box::new(CacheStream {
            pass: pass.clone(),
            input: self.input.open(pass)?,
            kept: self.kept.clone(),
            state: State::Begin,
        }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }

    fn spec(&self) -> ItemSpec {
        self.input.element_spec()
    }
}

impl<T: Item> Stream<T> for CacheStream<T> {
    fn next(&mut self) -> Option<Result<T>> {
        if let State::Begin = self.state {
            self.state = match &*lock(&self.kept) {
                Some(items) => State::Reading(items.clone(), 0),
                None => State::Filling(Vec::new()),
            };
        }
        match &mut self.state {
            State::Reading(items, at) => {
                let item = items.get(*at)?.clone();
                *at += 1;
                Some(Ok(item))
            }
            State::Filling(items) => {
                let next = self.input.next();
                match &next {
                    Some(Ok(item)) => items.push(item.clone()),
                    Some(Err(error)) => {
                        warn_of_error("cache", error);
                        self.state = State::Through;
                    }
                    // A stopped pass ends early.
                    None if self.pass.stopped() => self.state = State::Through,
                    None => {
                        let items = Arc::new(std::mem::take(items));
                        lock(&self.kept).get_or_insert_with(|| items.clone());
                        let given = items.len();
                        self.state = State::Reading(items, given);
                    }
                }
                next
            }
            _ => self.input.next(),
        }
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        write_name("cache", out);
        let (kind, items, at) = match &self.state {
            State::Begin => match &*lock(&self.kept) {
                Some(items) => (2, Some(items.clone()), 0),
                None => (0, None, 0),
            },
            State::Filling(items) => (1, Some(Arc::new(items.clone())), 0),
            State::Reading(items, at) => (2, Some(items.clone()), *at),
            State::Through => (3, None, 0),
        };
        out.number(kind);
        let items = items.unwrap_or_default();
        write_items(&*items, out)?;
        out.number(at as u64);
        match kind {
            2 => Ok(()),
            _ => self.input.save(out),
        }
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name("cache", from)?;
        let kind = from.number()?;
        let items: Vec<T> = read_items(from)?;
        let at = from.size()?;
        self.state = match kind {
            0 => State::Begin,
            1 => State::Filling(items),
            2 => {
                let items = Arc::new(items);
                *lock(&self.kept) = Some(items.clone());
                State::Reading(items, at)
            }
            3 => State::Through,
            kind => {
                return Err(Error::Data(message!(
                    "resume: a cache is in state {kind}; it is corrupt."
                )));
            }
        };
        match kind {
            2 => Ok(()),
            _ => self.input.restore(from),
        }
    }
}
