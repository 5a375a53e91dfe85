//! The three forms of each distribution: a method of [`Generator`], a function of a seed, and one of the global generator.

use super::generator::Generator;
use super::global;
use super::stream::{Stream, parameter};
use crate::error::Result;
use crate::shape::{Shape, broadcast};
use crate::tensor::{Operand, Tensor};

/// Generates the first two forms of distributions whose parameters broadcast to the shape of the numbers.
macro_rules! forms {
    ($($(#[$doc:meta])* $name:ident, $stateless:ident ($($arg:ident),*);)*) => {
        impl Generator {$(
            $(#[$doc])*
            pub fn $name(
                &self,
                shape: impl Into<Shape>,
                $($arg: impl Into<Operand>),*
            ) -> Result<Tensor> {
                Stream::Generator(self).$name(shape.into(), $($arg.into()),*)
            }
        )*}

        $(
            #[doc = concat!("As [`Generator::", stringify!($name), "`]; the numbers depend on `seed` alone.")]
            ///
            /// # Errors
            #[doc = concat!("As [`Generator::", stringify!($name), "`].")]
            pub fn $stateless(
                shape: impl Into<Shape>,
                seed: [i32; 2],
                $($arg: impl Into<Operand>),*
            ) -> Result<Tensor> {
                Stream::Seed(seed).$name(shape.into(), $($arg.into()),*)
            }
        )*
    };
}
// `beta, stateless_beta(a, b);` becomes `Generator::beta(shape, a, b)` and `stateless_beta(shape, seed, a, b)`, which call
// `Stream::beta`.

/// Generates the third form.
macro_rules! from_global {
    ($($name:ident($($arg:ident),*);)*) => {$(
        #[doc = concat!("As [`Generator::", stringify!($name), "`], from the [`global`] generator.")]
        ///
        /// # Errors
        #[doc = concat!("As [`Generator::", stringify!($name), "`].")]
        pub fn $name(shape: impl Into<Shape>, $($arg: impl Into<Operand>),*) -> Result<Tensor> {
            global().$name(shape, $($arg),*)
        }
    )*};
}

forms! {
    /// Draws `true` with probability `probs`, else `false`.
    ///
    /// `probs` broadcasts to `shape`. A probability below 0 counts as 0, one above 1 as 1, and NaN always draws `false`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{DType, random::Generator};
    /// let heads = Generator::from_seed(7).bernoulli([10_000], 0.25)?;
    /// let count = heads.cast(DType::I32)?.reduce_sum(())?.item::<i32>()?;
    /// assert!((2300..2700).contains(&count));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if a parameter does not broadcast to `shape`;
    /// [`Error::DType`](crate::Error::DType) if it is not a float; otherwise as [`Generator::uniform`].
    bernoulli, stateless_bernoulli(probs);

    /// Draws exponential numbers, of mean `1 / rate`, as `-log(u) / rate`; gradients pass to `rate`.
    ///
    /// # Errors
    /// As [`Generator::bernoulli`].
    exponential, stateless_exponential(rate);

    /// Draws gamma numbers with shape parameter `alpha` and rate `beta`, so their mean is `alpha / beta`.
    ///
    /// `alpha` and `beta` broadcast to `shape`, as in `tf.random.stateless_gamma`. Gradients pass to `beta`; a gradient with
    /// respect to `alpha` is an error, as are those with respect to the parameters of the distributions below. For `alpha` 0
    /// the numbers are 0; for `alpha` below 0 or NaN they are NaN. With a small `alpha` many numbers are too small for a float,
    /// and are 0.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let alpha = tf::constant([0.5, 2.0])?;
    /// let x = tf::random::Generator::from_seed(1).gamma([20_000, 2], &alpha, 1.0)?;
    /// let mean = x.reduce_mean(0)?.to_vec::<f32>()?;
    /// assert!((mean[0] - 0.5).abs() < 0.05 && (mean[1] - 2.0).abs() < 0.1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Generator::bernoulli`].
    gamma, stateless_gamma(alpha, beta);

    /// Draws Poisson numbers of mean `lam`: integers as `f32`.
    ///
    /// `lam` broadcasts to `shape`, as in `tf.random.stateless_poisson`. For a mean below 0, infinite or NaN they are NaN.
    /// From 2^24 on they are rounded as `f32` is.
    ///
    /// # Errors
    /// As [`Generator::bernoulli`].
    poisson, stateless_poisson(lam);

    /// Draws binomial numbers as `i32`: the number of successes in `counts` trials, each with probability `probs`.
    ///
    /// Both broadcast to `shape`, as in `tf.random.stateless_binomial`; `counts` may be integers. Counts from 2^24 on are
    /// rounded as `f32` is. For counts below 0 or probabilities outside 0 to 1 the numbers are 0.
    ///
    /// # Errors
    /// As [`Generator::bernoulli`].
    binomial, stateless_binomial(counts, probs);

    /// Draws beta numbers, from 0 to 1, with mean `a / (a + b)`.
    ///
    /// # Errors
    /// As [`Generator::bernoulli`].
    beta, stateless_beta(a, b);

    /// Draws Dirichlet numbers: along the last axis of `shape` they add up to 1 and have the means `alpha / sum(alpha)`.
    ///
    /// # Errors
    /// As [`Generator::bernoulli`]; [`Error::Shape`](crate::Error::Shape) if `shape` has no axis.
    dirichlet, stateless_dirichlet(alpha);

    /// Draws numbers of Student's t distribution with `df` degrees of freedom.
    ///
    /// # Errors
    /// As [`Generator::bernoulli`].
    student_t, stateless_student_t(df);
}

from_global! {
    bernoulli(probs);
    exponential(rate);
    binomial(counts, probs);
    beta(a, b);
    dirichlet(alpha);
    student_t(df);
}

impl Generator {
    /// Draws `num_samples` classes for each row of `logits` `[B,N]`, with the probabilities `softmax(logits)`:
    /// `[B,num_samples]` as `i32` (`tf.random.categorical`; its dtype is `int64`).
    ///
    /// Logits that are infinite or NaN are never drawn, as in TensorFlow; a row with only such logits returns its last class.
    /// The probabilities are rounded to multiples of 2^-31, and a class is drawn by a binary search in their sums: the draw
    /// stores N words for each row, and one for each sample. A class with a probability below 2^-32 is never drawn.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let logits = tf::constant([[0.0, 1.0, f32::NEG_INFINITY], [-100.0, 0.0, -100.0]])?;
    /// let classes = tf::random::Generator::from_seed(7).categorical(&logits, 4)?.to_vec::<i32>()?;
    /// assert!(classes[..4].iter().all(|class| *class < 2));
    /// assert_eq!(classes[4..], [1; 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if `logits` are not `[B,N]` or N is 0;
    /// [`Error::DType`](crate::Error::DType) if they are not floats; otherwise as [`Generator::uniform`].
    pub fn categorical(&self, logits: &Tensor, num_samples: usize) -> Result<Tensor> {
        Stream::Generator(self).categorical(logits, num_samples)
    }

    /// Shuffles the rows of `x` along its first axis, on the device (`tf.random.shuffle`); gradients pass through.
    ///
    /// Each row draws 32 bits, and the rows are sorted by them; two rows with the same bits keep their order.
    /// [`Generator::permutation`] returns an order on the host.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::range(0, 100, 1)?;
    /// let y = tf::random::Generator::from_seed(7).shuffle(&x)?;
    /// let mut numbers = y.to_vec::<i32>()?;
    /// assert_ne!(numbers, x.to_vec::<i32>()?);
    /// numbers.sort();
    /// assert_eq!(numbers, x.to_vec::<i32>()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Generator::uniform`].
    pub fn shuffle(&self, x: &Tensor) -> Result<Tensor> {
        Stream::Generator(self).shuffle(x)
    }
}

/// As [`Generator::categorical`]; the classes depend only on `seed`.
///
/// # Errors
/// As [`Generator::categorical`].
pub fn stateless_categorical(
    logits: &Tensor,
    num_samples: usize,
    seed: [i32; 2],
) -> Result<Tensor> {
    Stream::Seed(seed).categorical(logits, num_samples)
}

/// As [`Generator::categorical`], from the [`global`] generator.
///
/// # Errors
/// As [`Generator::categorical`].
pub fn categorical(logits: &Tensor, num_samples: usize) -> Result<Tensor> {
    global().categorical(logits, num_samples)
}

/// As [`Generator::shuffle`]; the order depends only on `seed`.
///
/// # Errors
/// As [`Generator::shuffle`].
pub fn stateless_shuffle(x: &Tensor, seed: [i32; 2]) -> Result<Tensor> {
    Stream::Seed(seed).shuffle(x)
}

/// As [`Generator::shuffle`], from the [`global`] generator.
///
/// # Errors
/// As [`Generator::shuffle`].
pub fn shuffle(x: &Tensor) -> Result<Tensor> {
    global().shuffle(x)
}

/// Draws gamma numbers from the [`global`] generator, `shape` of them for each element of `alpha` and `beta` (which are
/// broadcast together), like `tf.random.gamma`: in the result the axes of `shape` precede theirs. [`Generator::gamma`] accepts
/// the whole shape instead.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::random::gamma([10], tf::constant([0.5, 1.5])?, 2.0)?;
/// assert_eq!(x.shape(), [10, 2]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`Generator::gamma`].
pub fn gamma(
    shape: impl Into<Shape>,
    alpha: impl Into<Operand>,
    beta: impl Into<Operand>,
) -> Result<Tensor> {
    let alpha = parameter("Gamma", alpha.into(), None)?;
    let beta = beta.into();
    let each = match &beta {
        Operand::Tensor(beta) => broadcast("Gamma", &alpha.spec().shape, &beta.spec().shape)?,
        _ => alpha.spec().shape.clone(),
    };
    global().gamma(in_front(shape.into(), &each), alpha, beta)
}

/// Draws Poisson numbers from the [`global`] generator, `shape` of them for each element of `lam`, like `tf.random.poisson`: in
/// the result the axes of `shape` precede those of `lam`. [`Generator::poisson`] accepts the whole shape instead.
///
/// # Errors
/// As [`Generator::poisson`].
pub fn poisson(shape: impl Into<Shape>, lam: impl Into<Operand>) -> Result<Tensor> {
    let lam = parameter("Poisson", lam.into(), None)?;
    global().poisson(in_front(shape.into(), &lam.spec().shape), lam)
}

fn in_front(mut shape: Shape, each: &Shape) -> Shape {
    each.iter().for_each(|size| shape.push(*size));
    shape
}
