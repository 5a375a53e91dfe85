//! Other forms of dropout: shared draws, draws that depend on a seed only, and the form for SELU.

use super::{Generator, stateless_uniform};
use crate::dtype::f32_text;
use crate::error::{Error, Result, message};
use crate::support::options::options;
use crate::tensor::Tensor;

options! {
    /// Which elements are kept or dropped together.
    #[derive(Debug, Clone)]
    pub struct DropoutOptions {
        /// The shape of the draws, which broadcasts to the tensor's: along an axis of size 1, all elements are kept or all
        /// are dropped. Default: the tensor's own shape.
        noise_shape: Option<Vec<usize>> as impl Into<Option<Vec<usize>>> = None,
    }
}

impl Tensor {
    /// As [`Tensor::dropout`], with options.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let generator = tf::random::Generator::from_seed(1);
    /// let rows = tf::random::DropoutOptions::new().noise_shape(vec![8, 1]);
    /// let y = tf::Tensor::ones([8, 4])?.dropout_with(0.5, &generator, rows)?.to_vec::<f32>()?;
    /// assert!(y.chunks(4).all(|row| row == [0.0; 4] || row == [2.0; 4]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::dropout`], and [`Error::Shape`] if the shape of the draws does not broadcast to the tensor's.
    pub fn dropout_with(
        &self,
        rate: f32,
        generator: &Generator,
        options: DropoutOptions,
    ) -> Result<Tensor> {
        let shape = drawn(self, rate, options)?;
        self.kept_by(&generator.uniform_on(self.device(), &shape)?, rate)
    }

    /// Dropout that depends on `seed` only, and drops the same elements as TensorFlow's
    /// `tf.nn.experimental.stateless_dropout` with Philox.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::Tensor::ones([100])?;
    /// let drop = || x.stateless_dropout(0.3, [1, 2], Default::default())?.to_vec::<f32>();
    /// assert_eq!(drop()?, drop()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::dropout_with`].
    pub fn stateless_dropout(
        &self,
        rate: f32,
        seed: [i32; 2],
        options: DropoutOptions,
    ) -> Result<Tensor> {
        let shape = drawn(self, rate, options)?;
        self.kept_by(&self.device().scope(|| stateless_uniform(shape, seed))?, rate)
    }

    /// Dropout that preserves the mean and variance of inputs of mean 0 and variance 1, for networks of SELUs (Klambauer et
    /// al. 2017): dropped elements become -1.758, and then all are scaled and shifted.
    ///
    /// # Errors
    /// As [`Tensor::dropout_with`].
    pub fn alpha_dropout(
        &self,
        rate: f32,
        generator: &Generator,
        options: DropoutOptions,
    ) -> Result<Tensor> {
        let shape = drawn(self, rate, options)?;
        // -alpha scale, the limit of SELU far below 0.
        let low = -1.673_263_242_354_377_2 * 1.050_700_987_355_480_5;
        let rate_64 = f64::from(rate);
        let a = ((1.0 - rate_64) * (1.0 + rate_64 * low * low)).powf(-0.5);
        let b = -a * low * rate_64;
        let keep = generator.uniform_on(self.device(), &shape)?.greater_equal(rate)?;
        let dropped = self.zeros_like()?.add(low)?;
        crate::ops::where_(&keep, self, &dropped)?.multiply(a)?.add(b)
    }

    /// Keeps the elements whose draw is `rate` or more.
    fn kept_by(&self, draws: &Tensor, rate: f32) -> Result<Tensor> {
        let keep = draws.greater_equal(rate)?;
        crate::ops::where_(&keep, &self.divide(1.0 - rate)?, &self.zeros_like()?)
    }
}

/// The shape of the draws.
fn drawn(x: &Tensor, rate: f32, options: DropoutOptions) -> Result<Vec<usize>> {
    if !(0.0..1.0).contains(&rate) {
        return Err(Error::Index(message!(
            "Dropout: the rate is {}; it must be at least 0 and below 1.",
            f32_text(rate)
        )));
    }
    let own = x.shape();
    let Some(noise) = options.noise_shape else { return Ok(own.to_vec()) };
    let fits = noise.len() == own.len()
        && noise.iter().zip(own).all(|(&noise, &size)| noise == size || noise == 1);
    if fits {
        return Ok(noise);
    }
    Err(Error::Shape(message!(
        "Dropout: the tensor is {own:?} and noise_shape {noise:?}; it must have the tensor's sizes, or 1 where elements are \
         dropped together."
    )))
}
