//! [`SpectralNormalization`]: divides a layer's kernel by its largest singular value.

use crate::error::{Error, Result, message};
#[cfg(feature = "json")]
use crate::keras::Config;
use crate::keras::layers::formats::{Class, ExtraVariable, PartNames};
#[cfg(feature = "json")]
use crate::keras::layers::{Configured, layer_from_config};
use crate::keras::{Context, INFERENCE, Initializer, Layer, Weight};
use crate::ops::where_;
use crate::tensor::Tensor;
use crate::trackable::{Parts, Trackable, snake_case};
use crate::variable::Variable;

/// Wraps a layer and normalizes its kernel to spectral norm 1 (Miyato et al. 2018): each call in training first divides
/// the kernel by its largest singular value, which a power iteration estimates, starting from the vector of the
/// previous call. In inference the kernel is used as it is.
///
/// The layer must have a variable `kernel` or `embeddings` whose last axis is the feature axis: a
/// [`Dense`](crate::keras::layers::Dense), a convolution, an [`Embedding`](crate::keras::layers::Embedding).
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Trackable};
/// use tf::keras::{Initializer, Layer, TRAINING, layers::{Dense, SpectralNormalization}};
/// let layer = Dense::new(2).kernel_initializer(Initializer::Constant(3.0));
/// let layer = SpectralNormalization::new(layer);
/// // A kernel [4, 2] of threes has the singular values 3 sqrt(8) and 0.
/// layer.call(&tf::Tensor::ones([1, 4])?, TRAINING)?;
/// let kernel = layer.named_variables()[0].1.read().to_vec::<f32>()?;
/// assert!(kernel.iter().all(|x| (x - 1.0 / 8f32.sqrt()).abs() < 1e-5));
/// # Ok(())
/// # }
/// ```
pub struct SpectralNormalization {
    layer: Box<dyn Layer>,
    power_iterations: usize,
    vector_u: Weight,
}

impl std::fmt::Debug for SpectralNormalization {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpectralNormalization")
            .field("layer", &self.layer.kind())
            .field("power_iterations", &self.power_iterations)
            .finish_non_exhaustive()
    }
}

impl SpectralNormalization {
    /// Wraps this layer, with one power iteration per call.
    pub fn new(layer: impl Layer + 'static) -> Self {
        SpectralNormalization::wrap(Box::new(layer))
    }

    fn wrap(layer: Box<dyn Layer>) -> Self {
        let start = Initializer::TruncatedNormal { mean: 0.0, stddev: 0.02 };
        let vector_u = Weight::new().initializer(start).trainable(false);
        SpectralNormalization { layer, power_iterations: 1, vector_u }
    }

    /// Sets the number of power iterations per call. Default: 1.
    #[must_use]
    pub fn power_iterations(mut self, power_iterations: usize) -> Self {
        self.power_iterations = power_iterations;
        self
    }

    /// The variable to normalize, if the layer has been called.
    fn kernel(&self) -> Option<Variable> {
        let mut named = self.layer.named_variables();
        let place = |name: &str| named.iter().position(|(known, _)| known == name);
        let place = place("kernel").or_else(|| place("embeddings"))?;
        Some(named.swap_remove(place).1)
    }

    /// The kernel, which is created for an input like `x` if it does not exist.
    fn made(&self, x: &Tensor) -> Result<Variable> {
        if self.power_iterations == 0 {
            return Err(Error::Index(
                "SpectralNormalization: power_iterations is 0; it must be at least 1.".into(),
            ));
        }
        if self.kernel().is_none() {
            self.layer.call(x, INFERENCE)?;
        }
        self.kernel().filter(|kernel| !kernel.shape().is_empty()).ok_or_else(|| {
            Error::Shape(message!(
                "SpectralNormalization: a {} has neither a 'kernel' nor 'embeddings'; wrap a Dense, a convolution or an \
                 Embedding.",
                self.layer.kind()
            ))
        })
    }

    /// Scales the kernel to the norm 1.
    fn normalize(&self, kernel: &Variable, vector: &Variable) -> Result<()> {
        let value = kernel.read().stop_gradient();
        let features = kernel.shape()[kernel.shape().len() - 1];
        let rows = value.reshape([-1, features as i64])?;
        let before = vector.read().stop_gradient();
        let mut u = before.cast(rows.dtype())?;
        let transposed = rows.transpose([1, 0])?;
        let mut v = unit(&u.matmul(&transposed)?)?;
        for iteration in 0..self.power_iterations {
            if iteration > 0 {
                v = unit(&u.matmul(&transposed)?)?;
            }
            u = unit(&v.matmul(&rows)?)?;
        }
        let sigma = v.matmul(&rows)?.multiply(&u)?.reduce_sum(())?;
        // A kernel of zeros has no direction, and does not change.
        let empty = value.equal(0.0)?.reduce_all(())?;
        kernel.assign(where_(&empty, &value, &value.divide(&sigma)?)?)?;
        vector.assign(where_(&empty, &before, &u.cast(before.dtype())?)?)
    }
}

/// `x` scaled to the length 1.
fn unit(x: &Tensor) -> Result<Tensor> {
    // Keras's bound, to avoid a division by 0.
    x.multiply(x.square()?.reduce_sum(())?.rsqrt()?.minimum(1e7)?)
}

impl Trackable for SpectralNormalization {
    fn track(&self, parts: &mut Parts<'_>) {
        parts.add(&snake_case(self.layer.kind()), &self.layer);
        parts.add("vector_u", &self.vector_u);
    }

    fn class(&self) -> Option<&'static Class> {
        static CLASS: Class = Class::new("SpectralNormalization")
            .attributes(&[PartNames::new("*").keras("layer")])
            .extra(ExtraVariable::InnerKernel);
        Some(&CLASS)
    }
}

impl Layer for SpectralNormalization {
    #[cfg(feature = "json")]
    fn get_config(&self) -> Result<Config> {
        self.config()
    }

    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        let kernel = self.made(x)?;
        let features = kernel.shape()[kernel.shape().len() - 1];
        let vector = self.vector_u.variable(x, [1, features])?;
        if cx.training() {
            self.normalize(&kernel, vector)?;
        }
        let y = self.layer.call(x, cx)?;
        if x.dtype().is_float() { y.cast(x.dtype()) } else { Ok(y) }
    }

    fn compute_mask(&self, x: &Tensor, mask: Option<&Tensor>) -> Result<Option<Tensor>> {
        self.layer.compute_mask(x, mask)
    }
}

#[cfg(feature = "json")]
impl Configured for SpectralNormalization {
    fn class_name() -> &'static str {
        "SpectralNormalization"
    }

    fn config(&self) -> Result<Config> {
        let mut config = Config::new(Self::class_name());
        config.set_json("layer", self.layer.get_config()?.nested());
        config.set("power_iterations", &self.power_iterations)?;
        Ok(config)
    }

    fn from_config(config: &Config) -> Result<Self> {
        config.only(&["layer", "power_iterations"], &[])?;
        let layer = SpectralNormalization::wrap(layer_from_config(&config.inner("layer")?)?);
        let iterations = config.get::<Option<usize>>("power_iterations")?.flatten().unwrap_or(1);
        Ok(layer.power_iterations(iterations))
    }
}
