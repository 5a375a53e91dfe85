//! LeNet-5 (LeCun et al. 1998), as it is built today: with ReLU and maxima.

use super::ApplicationOptions;
use super::names::WeightNames;
use super::shared::{built, classifier, finished, max_pool, pooled};
use crate::error::Result;
use crate::keras::layers::{Conv2D, Dense, Flatten};
use crate::keras::{Activation, Functional, LayerExt};
use crate::ops::Padding;

/// Builds LeNet-5: images `[N,28,28,1]`, result `[N,classes]`; with 10 classes 61,706 parameters.
///
/// Keras has no such network; the names follow those of its VGG.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the options do not fit the network; the errors of loading weights.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Trackable, keras::applications::{ApplicationOptions, lenet}};
/// let model = lenet::lenet(&ApplicationOptions::new().classes(10))?;
/// assert_eq!(model.count_params(), 61_706);
/// # Ok(())
/// # }
/// ```
pub fn lenet(options: &ApplicationOptions) -> Result<Functional> {
    built(options, || {
        let input = options.input("LeNet", [28, 28, 1], 14)?;
        let conv = |filters| Conv2D::new(filters, [5, 5]).activation(Activation::Relu);
        let x = conv(6).padding(Padding::Same).on_named("conv1", &input)?;
        let x = max_pool(&x, "pool1", 2, 2)?;
        let x = conv(16).on_named("conv2", &x)?;
        let mut x = max_pool(&x, "pool2", 2, 2)?;
        if options.include_top {
            x = Flatten::new().on_named("flatten", &x)?;
            for (name, units) in [("fc1", 120), ("fc2", 84)] {
                x = Dense::new(units).activation(Activation::Relu).on_named(name, &x)?;
            }
            x = classifier(options).on_named("predictions", &x)?;
        } else {
            x = pooled(&x, options.pooling, ["", ""])?;
        }
        finished("lenet", &input, &x, options, pytorch)
    })
}

/// The names in the many PyTorch programs that call the layers `conv1`, `conv2`, `fc1`, `fc2` and `fc3`.
pub fn pytorch() -> WeightNames {
    let mut names = WeightNames::new();
    for (module, layer) in [
        ("conv1", "conv1"),
        ("conv2", "conv2"),
        ("fc1", "fc1"),
        ("fc2", "fc2"),
        ("fc3", "predictions"),
    ] {
        names.add(module, layer);
    }
    names
}
