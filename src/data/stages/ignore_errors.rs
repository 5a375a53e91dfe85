//! `ignore_errors`: the elements without the errors among them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{Item, ItemSpec};
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
use crate::error::{Error, Result};
use crate::options::options;

options! {
    /// How [`Dataset::ignore_errors_with`] reports the errors.
    #[derive(Debug, Clone)]
    pub struct IgnoreErrorsOptions {
        /// Whether to log a warning at the first error of a pass, and at its end one with their number.
        log_warning: bool = false,
        /// The counter for the errors of all passes.
        counter: Option<Arc<AtomicUsize>> as impl Into<Option<Arc<AtomicUsize>>> = None,
    }
}

impl<T: Item> Dataset<T> {
    /// Drops the errors among the elements, and continues after them (`Dataset.ignore_errors`).
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Error, data};
    /// let even = |n| if n % 2 == 0 { Ok(n) } else { Err(Error::Data("odd".into())) };
    /// let numbers = data::range(0..5).map(even).ignore_errors();
    /// assert_eq!(numbers.iter().collect::<wgrad::Result<Vec<i64>>>()?, [0, 2, 4]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn ignore_errors(&self) -> Dataset<T> {
        self.ignore_errors_with(IgnoreErrorsOptions::new())
    }

    /// As [`Dataset::ignore_errors`], and logs or counts the errors that it drops.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use std::sync::{Arc, atomic::{AtomicUsize, Ordering}};
    /// use wgrad::data::{self, IgnoreErrorsOptions};
    /// let broken = Arc::new(AtomicUsize::new(0));
    /// let options = IgnoreErrorsOptions::new().counter(broken.clone());
    /// let numbers = data::range(0..5).map(|n| 6 / n).ignore_errors_with(options);
    /// assert_eq!(numbers.iter().count(), 4);
    /// assert_eq!(broken.load(Ordering::Relaxed), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn ignore_errors_with(&self, options: IgnoreErrorsOptions) -> Dataset<T> {
        Dataset::new(IgnoreErrors { input: self.clone(), options })
    }
}

struct IgnoreErrors<T: Item> {
    input: Dataset<T>,
    options: IgnoreErrorsOptions,
}

struct IgnoreErrorsStream<T> {
    pass: Pass,
    input: BoxStream<T>,
    options: IgnoreErrorsOptions,
    ignored: u64,
    ended: bool,
}

impl<T: Item> Node<T> for IgnoreErrors<T> {
    fn open(&self, pass: &Pass) -> Result<BoxStream<T>> {
        Ok(Box::new(IgnoreErrorsStream {
            pass: pass.clone(),
            input: self.input.open(pass)?,
            options: self.options.clone(),
            ignored: 0,
            ended: false,
        }))
    }

    fn cardinality(&self) -> Cardinality {
        match self.input.cardinality() {
            Cardinality::Known(1..) => Cardinality::Unknown,
            other => other,
        }
    }

    fn spec(&self) -> ItemSpec {
        self.input.element_spec()
    }
}

impl<T> IgnoreErrorsStream<T> {
    fn count(&mut self, error: &Error) {
        self.ignored += 1;
        if let Some(counter) = &self.options.counter {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        if self.options.log_warning && self.ignored == 1 {
            log::warn!("ignore_errors: {error}");
        }
    }
}

impl<T: Item> Stream<T> for IgnoreErrorsStream<T> {
    fn next(&mut self) -> Option<Result<T>> {
        while !self.ended && !self.pass.stopped() {
            match self.input.next() {
                Some(Ok(item)) => return Some(Ok(item)),
                Some(Err(error)) => self.count(&error),
                None => {
                    self.ended = true;
                    if self.options.log_warning && self.ignored > 0 {
                        log::warn!(
                            "ignore_errors: {} elements of the pass were errors.",
                            self.ignored
                        );
                    }
                }
            }
        }
        None
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        write_name("ignore_errors", out);
        out.number(self.ignored);
        out.flag(self.ended);
        self.input.save(out)
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name("ignore_errors", from)?;
        self.ignored = from.number()?;
        self.ended = from.flag()?;
        self.input.restore(from)
    }
}
