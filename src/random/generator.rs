//! [`Generator`]: a position in a Philox stream, stored on the host, which each draw advances.

use std::sync::{Arc, Mutex, MutexGuard};

use super::advance::{split, take};
use super::in_functions::{Change, repeat};
use super::options::{NormalOptions, UniformOptions};
use super::philox::{counter_words, key_words, philox};
use super::state::{State, lock};
use crate::dtype::DType;
use crate::eager::{self, Owner};
use crate::error::{Error, Result, message};
use crate::graph::RuntimeScalars;
use crate::ops::{Distribution, philox_random, philox_random_of};
use crate::runtime::Device;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// A stream of random numbers; each draw advances it.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::random::Generator;
/// let first = Generator::from_seed(7).normal([4])?.to_vec::<f32>()?;
/// let again = Generator::from_seed(7).normal([4])?.to_vec::<f32>()?;
/// assert_eq!(first, again);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Generator {
    state: Arc<Mutex<State>>,
    /// The program's hold on the generator: traces share only the state.
    handle: Arc<()>,
}

impl Generator {
    /// Starts the stream of `tf.random.Generator.from_seed(seed, alg="philox")`.
    pub fn from_seed(seed: u64) -> Self {
        Generator::from_state([seed, 0, 0])
    }

    /// Continues a stream from a [`state`](Generator::state), as `tf.random.Generator.from_state` does.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::random::Generator;
    /// let generator = Generator::from_seed(7);
    /// generator.normal([5])?;
    /// let again = Generator::from_state(generator.state());
    /// assert_eq!(again.permutation(9)?, generator.permutation(9)?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_state(state: [u64; 3]) -> Self {
        let state = State::from_words(state);
        let generator = Generator::at(state);
        generator.in_each_run(|| Change::Start(state));
        generator
    }

    /// The position in the stream: the counter's low and high half and the key, in TensorFlow's order.
    pub fn state(&self) -> [u64; 3] {
        let State { counter, key } = *self.lock();
        [counter as u64, (counter >> 64) as u64, key]
    }

    /// Moves the stream to a [`state`](Generator::state).
    pub fn reset(&self, state: [u64; 3]) {
        let state = State::from_words(state);
        if !self.in_each_run(|| Change::Reset(state)) {
            *self.lock() = state;
        }
    }

    /// Restarts the stream from `seed`.
    pub fn reset_from_seed(&self, seed: u64) {
        self.reset([seed, 0, 0]);
    }

    /// Makes a generator for a part of the program. Its stream depends on the current position of this one, which
    /// advances.
    pub fn split(&self) -> Generator {
        let state = split(&self.state);
        let generator = Generator::at(state);
        generator.in_each_run(|| Change::split(self.state.clone(), state));
        generator
    }

    /// Draws uniform numbers in [0, 1).
    ///
    /// # Errors
    /// [`Error::Device`] if there is no device or no memory.
    pub fn uniform(&self, shape: impl Into<Shape>) -> Result<Tensor> {
        self.draw(None, Distribution::UNIFORM, shape.into())
    }

    /// As [`Generator::uniform`], with another range.
    ///
    /// # Errors
    /// As [`Generator::uniform`].
    pub fn uniform_with(&self, shape: impl Into<Shape>, options: UniformOptions) -> Result<Tensor> {
        options.apply(self.uniform(shape)?)
    }

    /// Draws normal numbers with mean 0 and standard deviation 1.
    ///
    /// # Errors
    /// As [`Generator::uniform`].
    pub fn normal(&self, shape: impl Into<Shape>) -> Result<Tensor> {
        self.draw(None, Distribution::NORMAL, shape.into())
    }

    /// As [`Generator::normal`], with another mean and standard deviation.
    ///
    /// # Errors
    /// As [`Generator::uniform`].
    pub fn normal_with(&self, shape: impl Into<Shape>, options: NormalOptions) -> Result<Tensor> {
        options.apply(self.normal(shape)?)
    }

    /// Draws normal numbers, and redraws those beyond two standard deviations.
    ///
    /// # Errors
    /// As [`Generator::uniform`].
    pub fn truncated_normal(&self, shape: impl Into<Shape>) -> Result<Tensor> {
        self.draw(None, Distribution::TRUNCATED_NORMAL, shape.into())
    }

    /// As [`Generator::truncated_normal`], with another mean and standard deviation.
    ///
    /// # Errors
    /// As [`Generator::uniform`].
    pub fn truncated_normal_with(
        &self,
        shape: impl Into<Shape>,
        options: NormalOptions,
    ) -> Result<Tensor> {
        options.apply(self.truncated_normal(shape)?)
    }

    /// Draws integers in [`low`, `high`) like TensorFlow: the remainders of 32 random bits.
    ///
    /// # Errors
    /// [`Error::Index`] if `low` is not below `high`; otherwise as [`Generator::uniform`].
    pub fn uniform_int(&self, shape: impl Into<Shape>, low: i32, high: i32) -> Result<Tensor> {
        check_range("RandomUniformInt", low, high)?;
        within(self.bits(shape)?, low, high)
    }

    /// Draws 32 random bits for each element, as `u32`.
    ///
    /// # Errors
    /// As [`Generator::uniform`].
    pub fn bits(&self, shape: impl Into<Shape>) -> Result<Tensor> {
        self.draw(None, Distribution::BITS, shape.into())
    }

    /// Shuffles the numbers `0..n` on the host, for example for the order of examples.
    ///
    /// # Errors
    /// [`Error::Index`] if the host has no memory for that many numbers; the generator does not advance.
    pub fn permutation(&self, n: usize) -> Result<Vec<usize>> {
        let mut order: Vec<usize> = Vec::new();
        if order.try_reserve_exact(n).is_err() {
            return Err(Error::Index(message!(
                "permutation: the host has no memory for {n} numbers. Shuffle parts of them."
            )));
        }
        order.extend(0..n);
        let State { counter, key } = self.take(n.max(1));
        // Fisher-Yates shuffle, with 64 bits per step, so that the remainder's bias is below 2^-32.
        for (step, i) in (1..n).rev().enumerate() {
            let word =
                philox(counter_words(counter.wrapping_add(step as u128 / 2)), key_words(key));
            let at = 2 * (step % 2);
            let bits = u64::from(word[at]) | u64::from(word[at + 1]) << 32;
            order.swap(i, (bits % (i as u64 + 1)) as usize);
        }
        Ok(order)
    }

    pub(crate) fn uniform_on(&self, device: &Device, shape: &[usize]) -> Result<Tensor> {
        self.draw(Some(device), Distribution::UNIFORM, shape.into())
    }

    fn at(state: State) -> Self {
        Generator { state: Arc::new(Mutex::new(state)), handle: Arc::default() }
    }

    pub(super) fn draw(
        &self,
        device: Option<&Device>,
        what: &'static Distribution,
        shape: Shape,
    ) -> Result<Tensor> {
        let (words, owner) = self.numbers(&shape);
        philox_random(device, what, shape, words, owner)
    }

    /// Draws from a distribution with parameters, which broadcast to `shape`.
    pub(super) fn draw_of(
        &self,
        what: &'static Distribution,
        shape: Shape,
        parameters: &[&Tensor],
    ) -> Result<Tensor> {
        let (words, owner) = self.numbers(&shape);
        philox_random_of(what, shape, words, owner, parameters)
    }

    /// Advances the stream by a number for each element of `shape`. Returns the position before, and the owner that
    /// returns the numbers of the next run.
    fn numbers(&self, shape: &Shape) -> (RuntimeScalars, Option<Owner<Result<RuntimeScalars>>>) {
        let numbers = shape.checked_elements().unwrap_or(0);
        // The trace of a function draws nothing: its runs do.
        let words = match eager::traces_function() {
            true => self.lock().words(),
            false => self.take(numbers).words(),
        };
        // Each run of a traced program draws the next numbers.
        let owner = eager::owner(|| {
            let state = self.state.clone();
            move || Ok(take(&state, numbers).words())
        });
        (words, owner)
    }

    /// Advances the stream by `numbers` draws and returns the state before them.
    fn take(&self, numbers: usize) -> State {
        take(&self.state, numbers)
    }

    /// In the trace of a function: lets each run make the change. Returns whether this is a trace.
    fn in_each_run(&self, change: impl FnOnce() -> Change) -> bool {
        let traces = eager::traces_function();
        if traces {
            repeat(&self.state, &self.handle, change());
        }
        traces
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Rejects a range without an integer.
pub(super) fn check_range(op: &str, low: i32, high: i32) -> Result<()> {
    if low < high {
        return Ok(());
    }
    Err(Error::Index(message!(
        "{op}: there is no integer from {low} up to but excluding {high}; low must be below high."
    )))
}

/// The remainders of random words, in `low` to `high`.
pub(super) fn within(bits: Tensor, low: i32, high: i32) -> Result<Tensor> {
    bits.floormod(high.wrapping_sub(low) as u32)?.cast(DType::I32)?.add(low)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_where_the_stream_goes_on() {
        let generator = Generator::from_seed(7);
        assert_eq!(generator.state(), [7, 0, 0]);
        // As in TensorFlow, a draw of ten numbers reserves 2560 counters, however many it needs.
        generator.take(10);
        assert_eq!(generator.state(), [7 + 2560, 0, 0]);
        generator.reset([u64::MAX, 3, 5]);
        let again = Generator::from_state(generator.state());
        assert_eq!(again.permutation(20).unwrap(), generator.permutation(20).unwrap());
        // Twenty numbers carry into the counter's high half.
        assert_eq!(generator.state(), [20 * 256 - 1, 4, 5]);
        generator.reset_from_seed(9);
        assert_eq!(generator.state(), [9, 0, 0]);
    }

    #[test]
    fn permutations_hold_every_number_once() {
        let generator = Generator::from_seed(3);
        let first = generator.permutation(1000).unwrap();
        let mut sorted = first.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..1000).collect::<Vec<_>>());
        assert_ne!(first, generator.permutation(1000).unwrap());
        assert_eq!(first, Generator::from_seed(3).permutation(1000).unwrap());
        assert!(generator.permutation(0).unwrap().is_empty());
        let state = generator.state();
        let error = generator.permutation(usize::MAX).unwrap_err().to_string();
        assert!(error.starts_with("permutation: the host has no memory for 18446744073709551615"));
        assert_eq!(generator.state(), state);
    }
}
