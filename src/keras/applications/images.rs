//! [`preprocess_input`]: scales images as a network's training did.

use crate::error::{Error, Result, message};
use crate::tensor::{Tensor, constant};

/// How the images of a network's training were scaled; Keras's `mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scaling {
    /// To between -1 and 1.
    Tf,
    /// To between 0 and 1, then by the mean and the deviation of each channel of ImageNet.
    Torch,
    /// From RGB to BGR, less the mean of each channel of ImageNet, without a scale.
    Caffe,
}

/// Scales images `[..,H,W,3]` with RGB values from 0 to 255 for a network; Keras's `imagenet_utils.preprocess_input`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::applications::{Scaling, preprocess_input};
/// let x = wgrad::constant([[[255.0, 0.0, 127.5]]])?;
/// assert_eq!(preprocess_input(&x, Scaling::Tf)?.to_vec::<f32>()?, [1.0, -1.0, 0.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the images do not have three channels and the scaling differs between them;
/// [`Error::DType`] if they are not floats.
pub fn preprocess_input(x: &Tensor, scaling: Scaling) -> Result<Tensor> {
    if scaling != Scaling::Tf && x.shape().last() != Some(&3) {
        return Err(Error::Shape(message!(
            "preprocess_input: the images are {:?}; they must be [.., H, W, 3], as each of the three colors has its own mean.",
            x.shape()
        )));
    }
    let row = |values: [f32; 3]| constant(values);
    match scaling {
        Scaling::Tf => x.divide(127.5)?.subtract(1.0),
        Scaling::Torch => {
            let x = x.divide(255.0)?.subtract(row([0.485, 0.456, 0.406])?)?;
            x.divide(row([0.229, 0.224, 0.225])?)
        }
        Scaling::Caffe => x.reverse(-1)?.subtract(row([103.939, 116.779, 123.68])?),
    }
}
