//! Random tensors: [`Generator`], the global generator, and the stateless functions, with TensorFlow's Philox streams.
//!
//! A seed gives the same numbers on every adapter, and these are the numbers that TensorFlow gives for it.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use crate::dtype::{DType, Scalar};
use crate::eager;
use crate::error::{Error, Result, message};
use crate::graph::RuntimeScalars;
use crate::ops::{Distribution, philox_random, where_};
use crate::options::options;
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
pub struct Generator(Arc<Mutex<State>>);

options! {
    /// The range of uniform numbers.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct UniformOptions {
        /// The smallest number; 0.
        minval: f32 = 0.0,
        /// The upper end, which a draw reaches by rounding alone, and only where the range is not 0 to 1; 1.
        maxval: f32 = 1.0,
    }
}

options! {
    /// The mean and standard deviation of normal numbers.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct NormalOptions {
        /// The mean; 0.
        mean: f32 = 0.0,
        /// The standard deviation, before truncation; 1.
        stddev: f32 = 1.0,
    }
}

#[derive(Debug, Clone, Copy)]
struct State {
    counter: u128,
    key: u64,
}

/// The stream reserves so many counters for each number drawn, as TensorFlow does.
const PER_NUMBER: u128 = 256;

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
    /// assert_eq!(again.permutation(9), generator.permutation(9));
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_state(state: [u64; 3]) -> Self {
        Generator::at(State::of(state))
    }

    /// The position in the stream: the counter's low and high half and the key, in TensorFlow's order.
    pub fn state(&self) -> [u64; 3] {
        let State { counter, key } = *self.lock();
        [counter as u64, (counter >> 64) as u64, key]
    }

    /// Moves the stream to a [`state`](Generator::state).
    pub fn reset(&self, state: [u64; 3]) {
        *self.lock() = State::of(state);
    }

    /// Restarts the stream from `seed`.
    pub fn reset_from_seed(&self, seed: u64) {
        self.reset([seed, 0, 0]);
    }

    /// Makes a generator for a part of the program. Its stream depends on the present position of this one, which
    /// advances.
    pub fn split(&self) -> Generator {
        let State { counter, key } = self.take(1);
        let mixed = philox(counter_words(counter), key_words(key));
        let state = State {
            counter: u128::from(mixed[2]) | u128::from(mixed[3]) << 32,
            key: u64::from(mixed[0]) | u64::from(mixed[1]) << 32,
        };
        Generator::at(state)
    }

    /// Draws uniform numbers in [0, 1).
    ///
    /// # Errors
    /// [`Error::Device`] if there is no device or no memory.
    pub fn uniform(&self, shape: impl Into<Shape>) -> Result<Tensor> {
        self.draw(None, Distribution::Uniform, shape.into())
    }

    /// As [`Generator::uniform`], with another range.
    ///
    /// # Errors
    /// As [`Generator::uniform`].
    pub fn uniform_with(&self, shape: impl Into<Shape>, options: UniformOptions) -> Result<Tensor> {
        options.apply(self.uniform(shape)?)
    }

    /// Draws normal numbers of mean 0 and deviation 1.
    ///
    /// # Errors
    /// As [`Generator::uniform`].
    pub fn normal(&self, shape: impl Into<Shape>) -> Result<Tensor> {
        self.draw(None, Distribution::Normal, shape.into())
    }

    /// As [`Generator::normal`], with another mean and deviation.
    ///
    /// # Errors
    /// As [`Generator::uniform`].
    pub fn normal_with(&self, shape: impl Into<Shape>, options: NormalOptions) -> Result<Tensor> {
        options.apply(self.normal(shape)?)
    }

    /// Draws normal numbers, and draws those beyond two deviations again.
    ///
    /// # Errors
    /// As [`Generator::uniform`].
    pub fn truncated_normal(&self, shape: impl Into<Shape>) -> Result<Tensor> {
        self.draw(None, Distribution::TruncatedNormal, shape.into())
    }

    /// As [`Generator::truncated_normal`], with another mean and deviation.
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

    /// Draws 32 random bits for each element, as `u32`.
    ///
    /// # Errors
    /// As [`Generator::uniform`].
    pub fn bits(&self, shape: impl Into<Shape>) -> Result<Tensor> {
        self.draw(None, Distribution::Bits, shape.into())
    }

    /// Shuffles the numbers `0..n` on the host, for instance to set the order of examples.
    pub fn permutation(&self, n: usize) -> Vec<usize> {
        let State { counter, key } = self.take(n.max(1));
        let mut order: Vec<usize> = (0..n).collect();
        // Fisher and Yates, with 64 bits a step, so that the remainder's bias is below 2^-32.
        for (step, i) in (1..n).rev().enumerate() {
            let word =
                philox(counter_words(counter.wrapping_add(step as u128 / 2)), key_words(key));
            let at = 2 * (step % 2);
            let bits = u64::from(word[at]) | u64::from(word[at + 1]) << 32;
            order.swap(i, (bits % (i as u64 + 1)) as usize);
        }
        order
    }

    pub(crate) fn uniform_on(&self, device: &Device, shape: &[usize]) -> Result<Tensor> {
        self.draw(Some(device), Distribution::Uniform, shape.into())
    }

    fn at(state: State) -> Self {
        Generator(Arc::new(Mutex::new(state)))
    }

    fn draw(&self, device: Option<&Device>, what: Distribution, shape: Shape) -> Result<Tensor> {
        let numbers = shape.checked_elements().unwrap_or(0);
        let words = self.take(numbers).words();
        // Each run of a traced program draws the next numbers.
        let owner = eager::owner(|| {
            let stream = Generator(self.0.clone());
            move || Ok(stream.take(numbers).words())
        });
        philox_random(device, what, shape, words, owner)
    }

    /// Advances the stream by `numbers` draws and returns the state before them.
    fn take(&self, numbers: usize) -> State {
        let mut state = self.lock();
        let before = *state;
        state.counter = state.counter.wrapping_add(numbers as u128 * PER_NUMBER);
        before
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    const fn of([low, high, key]: [u64; 3]) -> Self {
        State { counter: low as u128 | (high as u128) << 64, key }
    }

    fn words(self) -> RuntimeScalars {
        words(key_words(self.key), counter_words(self.counter))
    }
}

static GLOBAL: LazyLock<Generator> = LazyLock::new(|| Generator::from_seed(0));

/// The generator that seeds initializers, dropout and shuffles. A program may read and set its
/// [`state`](Generator::state) as any other's.
pub fn global() -> &'static Generator {
    &GLOBAL
}

/// Restarts the global generator, so that every run of the program draws the same numbers.
pub fn set_seed(seed: u64) {
    GLOBAL.reset_from_seed(seed);
}

/// Draws uniform numbers in [0, 1) from the [`global`] generator.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// tf::random::set_seed(1);
/// let x = tf::random::uniform_with([8], tf::random::UniformOptions::new().minval(-1.0))?;
/// assert!(x.to_vec::<f32>()?.iter().all(|x| (-1.0..=1.0).contains(x)));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`Generator::uniform`].
pub fn uniform(shape: impl Into<Shape>) -> Result<Tensor> {
    global().uniform(shape)
}

/// As [`uniform`], with another range.
///
/// # Errors
/// As [`Generator::uniform`].
pub fn uniform_with(shape: impl Into<Shape>, options: UniformOptions) -> Result<Tensor> {
    global().uniform_with(shape, options)
}

/// Draws normal numbers of mean 0 and deviation 1 from the [`global`] generator.
///
/// # Errors
/// As [`Generator::uniform`].
pub fn normal(shape: impl Into<Shape>) -> Result<Tensor> {
    global().normal(shape)
}

/// As [`normal`], with another mean and deviation.
///
/// # Errors
/// As [`Generator::uniform`].
pub fn normal_with(shape: impl Into<Shape>, options: NormalOptions) -> Result<Tensor> {
    global().normal_with(shape, options)
}

/// Draws normal numbers from the [`global`] generator, and draws those beyond two deviations again.
///
/// # Errors
/// As [`Generator::uniform`].
pub fn truncated_normal(shape: impl Into<Shape>) -> Result<Tensor> {
    global().truncated_normal(shape)
}

/// As [`truncated_normal`], with another mean and deviation.
///
/// # Errors
/// As [`Generator::uniform`].
pub fn truncated_normal_with(shape: impl Into<Shape>, options: NormalOptions) -> Result<Tensor> {
    global().truncated_normal_with(shape, options)
}

/// Draws uniform numbers in [0, 1) that depend on `seed` alone (`tf.random.stateless_uniform`).
///
/// # Errors
/// As [`Generator::uniform`].
pub fn stateless_uniform(shape: impl Into<Shape>, seed: [i32; 2]) -> Result<Tensor> {
    stateless(Distribution::Uniform, shape.into(), seed)
}

/// As [`stateless_uniform`], with another range.
///
/// # Errors
/// As [`Generator::uniform`].
pub fn stateless_uniform_with(
    shape: impl Into<Shape>,
    seed: [i32; 2],
    options: UniformOptions,
) -> Result<Tensor> {
    options.apply(stateless_uniform(shape, seed)?)
}

/// Draws integers in [`low`, `high`) that depend on `seed` alone.
///
/// # Errors
/// [`Error::Index`] if `low` is not below `high`; else as [`Generator::uniform`].
pub fn stateless_uniform_int(
    shape: impl Into<Shape>,
    seed: [i32; 2],
    low: i32,
    high: i32,
) -> Result<Tensor> {
    if low >= high {
        return Err(Error::Index(message!(
            "StatelessRandomUniformIntV2: there is no integer from {low} up to but without {high}; low must be below high."
        )));
    }
    let bits = stateless(Distribution::Bits, shape.into(), seed)?;
    let span = Scalar::Int(i64::from(high.wrapping_sub(low) as u32));
    let span = crate::ops::fill(
        bits.device(),
        "StatelessRandomUniformIntV2",
        Default::default(),
        span,
        bits.dtype(),
    )?;
    bits.floormod(span)?.cast(DType::I32)?.add(low)
}

/// Draws normal numbers that depend on `seed` alone.
///
/// # Errors
/// As [`Generator::uniform`].
pub fn stateless_normal(shape: impl Into<Shape>, seed: [i32; 2]) -> Result<Tensor> {
    stateless(Distribution::Normal, shape.into(), seed)
}

/// Draws truncated normal numbers that depend on `seed` alone.
///
/// # Errors
/// As [`Generator::uniform`].
pub fn stateless_truncated_normal(shape: impl Into<Shape>, seed: [i32; 2]) -> Result<Tensor> {
    stateless(Distribution::TruncatedNormal, shape.into(), seed)
}

impl Tensor {
    /// Sets elements to 0 with probability `rate` and scales the others by `1 / (1 - rate)`; draws from `generator`.
    ///
    /// # Errors
    /// [`Error::Index`] if `rate` is not in 0 to 1 (without 1); [`Error::DType`] if the dtype is not float.
    pub fn dropout(&self, rate: f32, generator: &Generator) -> Result<Tensor> {
        if !(0.0..1.0).contains(&rate) {
            return Err(Error::Index(message!(
                "Dropout: the rate is {rate}; it must be at least 0 and below 1."
            )));
        }
        let keep = generator.uniform_on(self.device(), self.shape())?.greater_equal(rate)?;
        where_(&keep, &self.divide(1.0 - rate)?, &self.zeros_like()?)
    }
}

impl UniformOptions {
    fn apply(self, unit: Tensor) -> Result<Tensor> {
        let UniformOptions { minval, maxval } = self;
        if (minval, maxval) == (0.0, 1.0) {
            return Ok(unit);
        }
        unit.multiply(maxval - minval)?.add(minval)
    }
}

impl NormalOptions {
    fn apply(self, unit: Tensor) -> Result<Tensor> {
        let NormalOptions { mean, stddev } = self;
        if (mean, stddev) == (0.0, 1.0) {
            return Ok(unit);
        }
        unit.multiply(stddev)?.add(mean)
    }
}

/// TensorFlow scrambles a seed with Philox itself: key 0x02461e293ec8f720, the seed as the counter.
fn stateless(what: Distribution, shape: Shape, seed: [i32; 2]) -> Result<Tensor> {
    let wide = |s: i32| i64::from(s) as u64;
    let [a, b] = [wide(seed[0]), wide(seed[1])];
    let counter = u128::from(a) | u128::from(b) << 64;
    let mixed = philox(counter_words(counter), [0x3ec8_f720, 0x0246_1e29]);
    let words = words([mixed[0], mixed[1]], [0, 0, mixed[2], mixed[3]]);
    philox_random(None, what, shape, words, None)
}

/// The runtime scalars of the op that draws.
fn words(key: [u32; 2], counter: [u32; 4]) -> RuntimeScalars {
    key.into_iter().chain(counter).collect()
}

fn counter_words(counter: u128) -> [u32; 4] {
    std::array::from_fn(|i| (counter >> (32 * i)) as u32)
}

fn key_words(key: u64) -> [u32; 2] {
    [key as u32, (key >> 32) as u32]
}

/// Philox 4x32-10, as in `shaders/prelude.wgsl`.
fn philox(mut c: [u32; 4], mut k: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let a = 0xD251_1F53u64 * u64::from(c[0]);
        let b = 0xCD9E_8D57u64 * u64::from(c[2]);
        c = [(b >> 32) as u32 ^ c[1] ^ k[0], b as u32, (a >> 32) as u32 ^ c[3] ^ k[1], a as u32];
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    // The test vectors of the Random123 distribution.
    #[test]
    fn philox_matches_its_test_vectors() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
    }

    #[test]
    fn a_state_is_where_the_stream_goes_on() {
        let generator = Generator::from_seed(7);
        assert_eq!(generator.state(), [7, 0, 0]);
        // As in TensorFlow, a draw of ten numbers takes 2560 counters, however many it needs.
        generator.take(10);
        assert_eq!(generator.state(), [7 + 2560, 0, 0]);
        generator.reset([u64::MAX, 3, 5]);
        let again = Generator::from_state(generator.state());
        assert_eq!(again.permutation(20), generator.permutation(20));
        // Twenty numbers carry into the counter's high half.
        assert_eq!(generator.state(), [20 * 256 - 1, 4, 5]);
        generator.reset_from_seed(9);
        assert_eq!(generator.state(), [9, 0, 0]);
    }

    #[test]
    fn permutations_hold_every_number_once() {
        let generator = Generator::from_seed(3);
        let first = generator.permutation(1000);
        let mut sorted = first.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..1000).collect::<Vec<_>>());
        assert_ne!(first, generator.permutation(1000));
        assert_eq!(first, Generator::from_seed(3).permutation(1000));
        assert!(generator.permutation(0).is_empty());
    }
}
