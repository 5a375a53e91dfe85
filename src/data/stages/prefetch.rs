//! `prefetch`: a thread that makes elements before they are requested.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::data::AUTOTUNE;
use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{Item, ItemSpec, read_results, write_results};
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
use crate::data::pool::guarded;
use crate::error::Result;

/// The buffer size with which [`AUTOTUNE`] begins, and its maximum when elements are taken faster than they are made.
const FEWEST: usize = 2;
const MOST: usize = 16;

impl<T: Item> Dataset<T> {
    /// Lets a thread make up to `buffer_size` elements before they are requested (`Dataset.prefetch`), so that reading and
    /// decoding continue while the device computes. [`AUTOTUNE`] begins with 2 and increases the buffer when the program has to
    /// wait, up to 16.
    ///
    /// Elements that hold tensors, and all elements in a browser, are made when they are requested; their input on the host
    /// runs ahead if `prefetch` precedes [`Dataset::to_tensors`].
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::data::{self, AUTOTUNE};
    /// let dataset = data::range(0..100).map(|n| n * n).batch(10).prefetch(AUTOTUNE);
    /// assert_eq!(dataset.iter().count(), 10);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn prefetch(&self, buffer_size: usize) -> Dataset<T> {
        Dataset::new(Prefetch { input: self.clone(), size: buffer_size })
    }
}

struct Prefetch<T: Item> {
    input: Dataset<T>,
    size: usize,
}

impl<T: Item> Node<T> for Prefetch<T> {
    fn open(&self, pass: &Pass) -> Result<BoxStream<T>> {
        let pass = pass.part();
        let input = self.input.open(&pass)?;
        let (limit, grows) = match self.size {
            AUTOTUNE => (FEWEST, true),
            size => (size, false),
        };
        let threads = !T::ON_DEVICE && limit > 0 && !cfg!(target_family = "wasm");
        Ok(Box::new(PrefetchStream {
            shared: Arc::new(Shared {
                input: Mutex::new(input),
                queue: Mutex::new(Queue { items: VecDeque::new(), ended: false, limit, pass }),
                changed: Condvar::new(),
            }),
            grows,
            thread: if threads { Thread::NotYet } else { Thread::Never },
        }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }

    fn spec(&self) -> ItemSpec {
        self.input.element_spec()
    }
}

struct PrefetchStream<T> {
    shared: Arc<Shared<T>>,
    grows: bool,
    thread: Thread,
}

#[derive(PartialEq)]
enum Thread {
    NotYet,
    Runs,
    Never,
}

struct Shared<T> {
    /// Its holder makes the next element and puts it into the queue.
    input: Mutex<BoxStream<T>>,
    queue: Mutex<Queue<T>>,
    changed: Condvar,
}

struct Queue<T> {
    items: VecDeque<Result<T>>,
    ended: bool,
    limit: usize,
    pass: Pass,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Item> Shared<T> {
    /// Makes one element; returns `false` at the end.
    fn make(&self) -> bool {
        let mut input = lock(&self.input);
        let next = match guarded("prefetch", || Ok(input.next())) {
            Ok(next) => next,
            Err(error) => Some(Err(error)),
        };
        let mut queue = lock(&self.queue);
        match next {
            Some(next) => queue.items.push_back(next),
            None => queue.ended = true,
        }
        self.changed.notify_all();
        !queue.ended
    }

    /// Keeps the queue full until the end, or until no more elements will be requested.
    fn run(&self) {
        while self.wait_for_room() && self.make() {}
        // Another thread may be waiting for an element: one that runs ahead of the same pass.
        lock(&self.queue).ended = true;
        self.changed.notify_all();
    }

    /// False if no more elements will be requested.
    fn wait_for_room(&self) -> bool {
        let mut queue = lock(&self.queue);
        while queue.items.len() >= queue.limit && !queue.pass.stopped() {
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        !queue.pass.stopped()
    }
}

impl<T: Item> PrefetchStream<T> {
    fn start(&mut self) {
        let shared = self.shared.clone();
        let thread = std::thread::Builder::new().name("wgrad-prefetch".into());
        self.thread = match thread.spawn(move || shared.run()) {
            Ok(_) => Thread::Runs,
            // On a system without another thread, nothing runs ahead.
            Err(error) => {
                log::warn!("prefetch: no thread could be started: {error}");
                Thread::Never
            }
        };
    }
}

impl<T: Item> Stream<T> for PrefetchStream<T> {
    fn next(&mut self) -> Option<Result<T>> {
        if self.thread == Thread::NotYet && !lock(&self.shared.queue).ended {
            self.start();
        }
        let mut waited = false;
        loop {
            let mut queue = lock(&self.shared.queue);
            if let Some(item) = queue.items.pop_front() {
                if waited && self.grows {
                    queue.limit = (2 * queue.limit).min(MOST);
                }
                self.shared.changed.notify_all();
                return Some(item);
            }
            if queue.ended || queue.pass.stopped() {
                return None;
            }
            if self.thread == Thread::Runs {
                waited = true;
                drop(self.shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner));
                continue;
            }
            drop(queue);
            self.shared.make();
        }
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        write_name("prefetch", out);
        // While the input is locked, no element is between it and the queue.
        let mut input = lock(&self.shared.input);
        let queue = lock(&self.shared.queue);
        out.flag(queue.ended);
        write_results(&queue.items, out)?;
        input.save(out)
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name("prefetch", from)?;
        let mut queue = lock(&self.shared.queue);
        queue.ended = from.flag()?;
        queue.items = read_results(from)?;
        lock(&self.shared.input).restore(from)
    }
}

impl<T> Drop for PrefetchStream<T> {
    fn drop(&mut self) {
        let queue = lock(&self.shared.queue);
        queue.pass.stop();
        self.shared.changed.notify_all();
    }
}
