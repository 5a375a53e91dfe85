//! `scan` and `reduce`: pass a state from element to element.

use std::sync::Arc;

use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{IntoItem, Item};
use crate::data::pool::guarded;
use crate::data::stages::stage::{Input, Stage};
use crate::error::Result;

impl<T: Item> Dataset<T> {
    /// Calls `scan_func` with the state and each element; it returns the next state and an element (`Dataset.scan`). It may
    /// return a `Result`; an error, or a panic, replaces the element and leaves the state unchanged.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// let sums = wgrad::data::range(1..5).scan(0, |sum, n| (sum + n, sum + n));
    /// assert_eq!(sums.iter().collect::<wgrad::Result<Vec<i64>>>()?, [1, 3, 6, 10]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn scan<S: Item, U: Item, R: IntoItem<Item = (S, U)>>(
        &self,
        initial_state: S,
        scan_func: impl Fn(S, T) -> R + Send + Sync + 'static,
    ) -> Dataset<U> {
        let function: Function<S, T, U> =
            Arc::new(move |state, item| scan_func(state, item).into_item());
        self.stage(Scan { state: initial_state, function })
    }

    /// Calls `reduce_func` with the state and each element, and returns the last state (`Dataset.reduce`). It may return a
    /// `Result`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// assert_eq!(wgrad::data::range(1..5).reduce(0, |sum, n| sum + n)?, 10);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The first error among the elements, or of `reduce_func`, whose panic counts as an error.
    pub fn reduce<S: Item, R: IntoItem<Item = S>>(
        &self,
        initial_state: S,
        mut reduce_func: impl FnMut(S, T) -> R,
    ) -> Result<S> {
        let mut state = initial_state;
        for item in self {
            let item = item?;
            state = guarded("reduce", || reduce_func(state, item).into_item())?;
        }
        Ok(state)
    }
}

type Function<S, T, U> = Arc<dyn Fn(S, T) -> Result<(S, U)> + Send + Sync>;

#[derive(Clone)]
struct Scan<S, T, U> {
    state: S,
    function: Function<S, T, U>,
}

impl<S: Item, T: Item, U: Item> Stage<T> for Scan<S, T, U> {
    type Out = U;

    fn name(&self) -> &'static str {
        "scan"
    }

    fn next(&mut self, input: &mut Input<T>) -> Option<Result<U>> {
        let next = input
            .next()?
            .and_then(|item| guarded("scan", || (self.function)(self.state.clone(), item)));
        Some(next.map(|(state, item)| {
            self.state = state;
            item
        }))
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        self.state.write(out)
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        self.state = S::read(from)?;
        Ok(())
    }
}
