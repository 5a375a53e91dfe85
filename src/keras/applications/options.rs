//! [`ApplicationOptions`]: what the networks for images have in common.

use std::path::PathBuf;

use crate::error::{Error, Result, message};
use crate::keras::{Activation, Input, PartialShape};
use crate::support::options::options;

/// What a network without its top returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Pooling {
    /// The features of each position: `[N,H,W,C]`.
    #[default]
    None,
    /// Their mean: `[N,C]`.
    Avg,
    /// Their maximum: `[N,C]`.
    Max,
}

/// Whose network of this name is built. They have the same layers, but differ in where they pad, in which convolution has the
/// stride, and in constants, so that weights only fit the one that they were trained in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Arrangement {
    /// `keras.applications`.
    #[default]
    Keras,
    /// `torchvision.models`, with Keras's names of layers. Images are scaled outside of the network, with
    /// [`Scaling::Torch`](super::Scaling::Torch).
    Torchvision,
}

options! {
    /// The options of the networks for images, with Keras's names and defaults.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::keras::{Activation, applications::{ApplicationOptions, resnet}};
    /// use wgrad::Trackable;
    /// let options = ApplicationOptions::new().input_shape([32, 32, 3]).classes(10).classifier_activation(Activation::Linear);
    /// let model = resnet::resnet18(&options)?;
    /// assert_eq!(model.get_layer("predictions")?.count_params(), 512 * 10 + 10);
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct ApplicationOptions {
        /// Sets whether the network ends in a classifier.
        include_top: bool = true,
        /// Sets the number of classes.
        classes: usize = 1000,
        /// Sets the shape of an image, `[height, width, channels]`, in which sizes may be unknown. Default: the network's
        /// own, `[224, 224, 3]` for most; without top `[None, None, 3]`.
        input_shape: PartialShape as impl Into<PartialShape> = PartialShape::default(),
        /// Sets what the network returns without top.
        pooling: Pooling = Pooling::None,
        /// Sets the activation of the classifier; with `Linear` it returns logits.
        classifier_activation: Activation = Activation::Softmax,
        /// Sets the rate of the network's dropouts; 0 leaves them out. Default: the network's own.
        dropout_rate: Option<f32> as impl Into<Option<f32>> = None,
        /// Sets whose network of this name is built.
        arrangement: Arrangement = Arrangement::Keras,
        /// Sets the file from which the weights are loaded: `.keras`, `.weights.h5` or `.h5` (feature `keras-files`), or
        /// `.safetensors` or its index (feature `safetensors`). Default: none, the weights are random.
        weights: PathBuf as impl Into<PathBuf> = PathBuf::new(),
    }
}

impl ApplicationOptions {
    pub(super) fn torchvision(&self) -> bool {
        self.arrangement == Arrangement::Torchvision
    }

    /// The rate of a dropout, if it is not 0.
    pub(super) fn dropout(&self, own: f32) -> Option<f32> {
        Some(self.dropout_rate.unwrap_or(own)).filter(|rate| *rate != 0.0)
    }

    /// The input of a network whose images have `default` as their shape, and at least `least` pixels along an axis.
    pub(super) fn input(&self, network: &str, default: [usize; 3], least: usize) -> Result<Input> {
        let given = self.input_shape.sizes();
        let wrong = |rule: String| {
            let shown = crate::trackable::shape_text(given);
            Error::Shape(message!("{network}: input_shape is {shown}; {rule}."))
        };
        if self.include_top && self.classes == 0 {
            return Err(Error::Shape(message!(
                "{network}: classes is 0; it must be at least 1, or include_top false."
            )));
        }
        let shape: Vec<Option<usize>> = match given {
            [] if self.include_top => default.iter().copied().map(Some).collect(),
            [] => vec![None, None, Some(default[2])],
            [_, _, Some(1..)] => given.to_vec(),
            _ => {
                return Err(wrong(
                    "it must be [height, width, channels], and the channels must be known".into(),
                ));
            }
        };
        if shape[..2].iter().flatten().any(|size| *size < least) {
            return Err(wrong(format!("images must have at least {least} x {least} pixels")));
        }
        Ok(Input::new(shape))
    }
}
