//! [`LayerNormalization`]: brings each example to mean 0 and variance 1.

use super::Layer;
use crate::error::Result;
use crate::keras::{Context, Initializer, Weight};
use crate::ops::NormalizationOptions;
use crate::shape::{Axes, axis_list};
use crate::tensor::Tensor;
use crate::trackable::Trackable;

/// `y = gamma (x - mean) / sqrt(variance + epsilon) + beta`, mean and variance over `axis` of each example (Ba et al.
/// 2016): input of any shape, gamma and beta in the shape of its axes `axis`, result in the shape of the input.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::{INFERENCE, Layer, layers::LayerNormalization};
/// let x = tf::constant([[1.0, 3.0], [10.0, 30.0]])?;
/// let y = LayerNormalization::new().epsilon(1e-6).call(&x, INFERENCE)?.to_vec::<f32>()?;
/// assert!(y.iter().zip([-1.0, 1.0, -1.0, 1.0]).all(|(y, want)| (y - want).abs() < 1e-5));
/// # Ok(())
/// # }
/// ```
#[derive(Trackable)]
pub struct LayerNormalization {
    axis: Axes,
    epsilon: f32,
    gamma: Option<Weight>,
    beta: Option<Weight>,
}

impl Default for LayerNormalization {
    fn default() -> Self {
        LayerNormalization::new()
    }
}

impl LayerNormalization {
    /// A layer over the last axis, with an epsilon of 0.001, a gamma of ones and a beta of zeros.
    pub fn new() -> Self {
        let (gamma, beta) = (Some(Weight::ones()), Some(Weight::zeros()));
        LayerNormalization { axis: (-1).into(), epsilon: 1e-3, gamma, beta }
    }

    /// Sets the axes to normalize together.
    pub fn axis(mut self, axis: impl Into<Axes>) -> Self {
        self.axis = axis.into();
        self
    }

    /// Sets the number that keeps the division from blowing up where all elements are equal.
    pub fn epsilon(mut self, epsilon: f32) -> Self {
        self.epsilon = epsilon;
        self
    }

    /// Sets whether the layer has a beta.
    pub fn center(mut self, center: bool) -> Self {
        self.beta = center.then(|| self.beta.unwrap_or_else(Weight::zeros));
        self
    }

    /// Sets whether the layer has a gamma.
    pub fn scale(mut self, scale: bool) -> Self {
        self.gamma = scale.then(|| self.gamma.unwrap_or_else(Weight::ones));
        self
    }

    /// Sets the numbers at which beta starts, if there is one.
    pub fn beta_initializer(mut self, initializer: Initializer) -> Self {
        self.beta = self.beta.map(|beta| beta.initializer(initializer));
        self
    }

    /// Sets the numbers at which gamma starts, if there is one.
    pub fn gamma_initializer(mut self, initializer: Initializer) -> Self {
        self.gamma = self.gamma.map(|gamma| gamma.initializer(initializer));
        self
    }
}

impl Layer for LayerNormalization {
    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        let axes = axis_list("LayerNormalization", &self.axis, x.shape().len())?;
        let sizes: Vec<usize> = axes.iter().map(|&axis| x.shape()[axis]).collect();
        let weight = |weight: &Option<Weight>| -> Result<Option<Tensor>> {
            weight.as_ref().map(|weight| Ok(weight.get(x, &sizes[..])?.read())).transpose()
        };
        let mut options = NormalizationOptions::new().epsilon(self.epsilon);
        options.scale = weight(&self.gamma)?;
        options.offset = weight(&self.beta)?;
        x.layer_normalization(&axes[..], options)
    }
}
