//! [`Lambda`]: a custom function as a layer.

use crate::error::Result;
use crate::keras::layers::Layer;
use crate::keras::{Context, DTypePolicy};
use crate::tensor::Tensor;
use crate::trackable::{Class, Parts, Trackable};

type Function = dyn Fn(&Tensor) -> Result<Tensor> + Send + Sync;

/// `f(x)`, where `f` is a closure. A model does not track weights that the closure uses; a layer with weights must be a
/// custom [`Layer`]. A config cannot store it.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::{INFERENCE, Layer, Sequential, layers::Lambda};
/// let model = Sequential::new().add(Lambda::new(|x| x.square()?.add(1.0)));
/// assert_eq!(model.call(&tf::constant([2.0, 3.0])?, INFERENCE)?.to_vec::<f32>()?, [5.0, 10.0]);
/// # Ok(())
/// # }
/// ```
pub struct Lambda {
    function: Box<Function>,
    policy: DTypePolicy,
}

impl std::fmt::Debug for Lambda {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lambda").field("dtype", &self.policy).finish_non_exhaustive()
    }
}

impl Lambda {
    /// Creates a layer that calls `function`.
    pub fn new(function: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static) -> Self {
        Lambda { function: Box::new(function), policy: DTypePolicy::default() }
    }

    /// Sets the dtype in which the function receives its input.
    #[must_use]
    pub fn dtype(mut self, policy: DTypePolicy) -> Self {
        self.policy = policy;
        self
    }
}

impl Trackable for Lambda {
    fn track(&self, _parts: &mut Parts<'_>) {}

    fn kind(&self) -> &'static str {
        "Lambda"
    }

    fn class(&self) -> Option<&'static Class> {
        static CLASS: Class = Class::new("Lambda");
        Some(&CLASS)
    }
}

impl Layer for Lambda {
    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        (self.function)(&self.policy.autocast(x)?)
    }

    #[cfg(feature = "json")]
    fn get_config(&self) -> Result<crate::keras::Config> {
        Err(crate::error::Error::Data(
            "get_config: the function of a Lambda is the program's, which JSON cannot hold. Make the layer a struct of its \
             own, with a get_config."
                .into(),
        ))
    }
}
