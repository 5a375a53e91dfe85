//! Random tensors: [`Generator`], the global generator, and the stateless functions, with TensorFlow's Philox streams.
//!
//! A seed produces the same numbers on every adapter. Uniform, normal and truncated normal numbers and integers also equal
//! TensorFlow's for the seed; for the other distributions TensorFlow's numbers depend on its kernels, and differ here.
//!
//! | | from a generator | from a seed alone | from the global generator |
//! |---|---|---|---|
//! | uniform in [0, 1) | [`Generator::uniform`] | [`stateless_uniform`] | [`uniform`] |
//! | normal | [`Generator::normal`] | [`stateless_normal`] | [`normal`] |
//! | gamma | [`Generator::gamma`] | [`stateless_gamma`] | [`gamma`] |
//!
//! and so on. Words, uniform numbers, integers, [`bernoulli`] and [`shuffle`] are exact: the same bits on every adapter.
//! Numbers computed from them agree as far as adapters round alike. Where a number is drawn until one is accepted (gamma,
//! Poisson, binomial, and numbers made from them), rounding may make an adapter accept another try, and a draw from
//! [`categorical`] may select the neighbouring class: about one number in a million then differs, with the same distribution
//! (between Mesa's lavapipe and SwiftShader at most two, measured).

mod advance;
mod distributions;
mod dropout;
mod forms;
mod generator;
mod in_functions;
mod options;
mod philox;
#[cfg_attr(target_family = "wasm", allow(dead_code))]
pub(crate) mod replicated;
mod seeds;
mod state;
mod stateless;
mod stream;

use std::sync::LazyLock;

use crate::error::{Error, Result, message};
use crate::ops::where_;
use crate::shape::Shape;
use crate::tensor::Tensor;
pub use dropout::DropoutOptions;
pub use forms::*;
pub use generator::Generator;
pub use options::{NormalOptions, UniformOptions};
pub use seeds::{fold_in, split};
pub use stateless::*;

static GLOBAL: LazyLock<Generator> = LazyLock::new(|| Generator::from_seed(0));

/// The generator that seeds initializers, dropout and shuffles. A program may read and set its
/// [`state`](Generator::state) like that of any other generator.
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

/// Draws normal numbers with mean 0 and standard deviation 1 from the [`global`] generator.
///
/// # Errors
/// As [`Generator::uniform`].
pub fn normal(shape: impl Into<Shape>) -> Result<Tensor> {
    global().normal(shape)
}

/// As [`normal`], with another mean and standard deviation.
///
/// # Errors
/// As [`Generator::uniform`].
pub fn normal_with(shape: impl Into<Shape>, options: NormalOptions) -> Result<Tensor> {
    global().normal_with(shape, options)
}

/// Draws normal numbers from the [`global`] generator, and redraws those beyond two standard deviations.
///
/// # Errors
/// As [`Generator::uniform`].
pub fn truncated_normal(shape: impl Into<Shape>) -> Result<Tensor> {
    global().truncated_normal(shape)
}

/// As [`truncated_normal`], with another mean and standard deviation.
///
/// # Errors
/// As [`Generator::uniform`].
pub fn truncated_normal_with(shape: impl Into<Shape>, options: NormalOptions) -> Result<Tensor> {
    global().truncated_normal_with(shape, options)
}

impl Tensor {
    /// Sets elements to 0 with probability `rate` and scales the others by `1 / (1 - rate)`; draws from `generator`.
    ///
    /// # Errors
    /// [`Error::Index`] if `rate` is not in [0, 1); [`Error::DType`] if the dtype is not a float.
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
