//! `ignore_errors`: the elements without the errors among them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{Item, ItemSpec};
use crate::data::stages::stage::{Input, Stage};
use crate::error::{Error, Result};
use crate::support::options::options;

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
        self.stage(IgnoreErrors { options, ignored: 0, ended: false })
    }
}

#[derive(Clone)]
struct IgnoreErrors {
    options: IgnoreErrorsOptions,
    ignored: u64,
    ended: bool,
}

impl IgnoreErrors {
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

impl<T: Item> Stage<T> for IgnoreErrors {
    type Out = T;

    fn name(&self) -> &'static str {
        "ignore_errors"
    }

    fn cardinality(&self, input: &Dataset<T>) -> Cardinality {
        match input.cardinality() {
            Cardinality::Known(1..) => Cardinality::Unknown,
            other => other,
        }
    }

    fn spec(&self, input: ItemSpec) -> ItemSpec {
        input
    }

    fn next(&mut self, input: &mut Input<T>) -> Option<Result<T>> {
        while !self.ended && !input.stopped() {
            match input.next() {
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
        out.number(self.ignored);
        out.flag(self.ended);
        Ok(())
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        self.ignored = from.number()?;
        self.ended = from.flag()?;
        Ok(())
    }
}
