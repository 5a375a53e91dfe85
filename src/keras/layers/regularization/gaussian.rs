//! [`GaussianDropout`] and [`GaussianNoise`]: normal noise while training.

use crate::error::{Error, Result, message};
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::keras::layers::noise::check_rate;
use crate::random::{Generator, NormalOptions};
use crate::tensor::Tensor;

/// Normal numbers in the shape and dtype of `x`.
fn normal(x: &Tensor, generator: &Generator, mean: f32, stddev: f32) -> Result<Tensor> {
    let options = NormalOptions::new().mean(mean).stddev(stddev);
    x.device().scope(|| generator.normal_with(x.shape(), options))?.cast(x.dtype())
}

layer! {
    /// In training, multiplies by noise, `x n`, where `n` is normal with mean 1 and standard deviation
    /// `sqrt(rate / (1 - rate))` (Srivastava et al. 2014); in inference returns `x`.
    pub struct GaussianDropout {
        /// Creates a layer whose noise has the same variance as dropout with this rate, in `0..1`.
        new(rate: f32);
        random(generator);
        class {
            positions(Positions::Kept);
        }
    }
}

impl Layer for GaussianDropout {
    configured!();

    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        check_rate("GaussianDropout", self.rate)?;
        let x = self.policy.autocast(x)?;
        if !cx.training() || self.rate == 0.0 {
            return Ok(x);
        }
        let stddev = (self.rate / (1.0 - self.rate)).sqrt();
        x.multiply(normal(&x, self.generator.get(), 1.0, stddev)?)
    }
}

layer! {
    /// In training, `x + n`, where `n` is normal with mean 0 and standard deviation `stddev`; in inference returns `x`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, TRAINING, layers::GaussianNoise};
    /// let (layer, x) = (GaussianNoise::new(0.1).seed(1), tf::Tensor::zeros([1000])?);
    /// assert_eq!(layer.call(&x, INFERENCE)?.to_vec::<f32>()?, [0.0; 1000]);
    /// let deviation = layer.call(&x, TRAINING)?.reduce_std(())?.item::<f32>()?;
    /// assert!((0.09..0.11).contains(&deviation));
    /// # Ok(())
    /// # }
    /// ```
    pub struct GaussianNoise {
        /// Creates a layer whose noise has this standard deviation, at least 0.
        new(stddev: f32);
        random(generator);
        class {
            positions(Positions::Kept);
        }
    }
}

impl Layer for GaussianNoise {
    configured!();

    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        if !(0.0..f32::INFINITY).contains(&self.stddev) {
            return Err(Error::Index(message!(
                "GaussianNoise: the stddev is {}; it must be a number of at least 0.",
                self.stddev
            )));
        }
        let x = self.policy.autocast(x)?;
        if !cx.training() || self.stddev == 0.0 {
            return Ok(x);
        }
        x.add(normal(&x, self.generator.get(), 0.0, self.stddev)?)
    }
}
