//! VGG16 (Simonyan and Zisserman 2014).

use super::names::WeightNames;
use super::shared::{built, classifier, finished, max_pool, pooled};
use super::{ApplicationOptions, Scaling};
use crate::error::Result;
use crate::keras::layers::{Conv2D, Dense, Dropout, Flatten};
use crate::keras::{Activation, Functional, LayerExt};
use crate::ops::Padding;
use crate::tensor::Tensor;

/// The convolutions of each block, and their filters.
const BLOCKS: [(usize, usize); 5] = [(2, 64), (2, 128), (3, 256), (3, 512), (3, 512)];

/// Builds VGG16: images `[N,224,224,3]`, result `[N,classes]`; 138,357,544 parameters.
///
/// In torchvision's arrangement there are dropouts before the last two layers.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the options do not fit the network; the errors of loading weights.
pub fn vgg16(options: &ApplicationOptions) -> Result<Functional> {
    built(options, || {
        let input = options.input("VGG16", [224, 224, 3], 32)?;
        let mut x = (*input).clone();
        for (block, (convolutions, filters)) in (1..).zip(BLOCKS) {
            for conv in 1..=convolutions {
                x = Conv2D::new(filters, [3, 3])
                    .activation(Activation::Relu)
                    .padding(Padding::Same)
                    .on_named(&format!("block{block}_conv{conv}"), &x)?;
            }
            x = max_pool(&x, &format!("block{block}_pool"), 2, 2)?;
        }
        if options.include_top {
            x = Flatten::new().on_named("flatten", &x)?;
            for name in ["fc1", "fc2"] {
                x = Dense::new(4096).activation(Activation::Relu).on_named(name, &x)?;
                if let Some(rate) = options.dropout(0.5).filter(|_| options.torchvision()) {
                    x = Dropout::new(rate).on(&x)?;
                }
            }
            x = classifier(options).on_named("predictions", &x)?;
        } else {
            x = pooled(&x, options.pooling, ["", ""])?;
        }
        finished("vgg16", &input, &x, options, torchvision)
    })
}

/// Scales images as Keras's weights need it: [`Scaling::Caffe`].
///
/// # Errors
/// As [`preprocess_input`](super::preprocess_input()).
pub fn preprocess_input(x: &Tensor) -> Result<Tensor> {
    super::preprocess_input(x, Scaling::Caffe)
}

/// The names of `torchvision.models.vgg16`.
pub fn torchvision() -> WeightNames {
    let mut names = WeightNames::new();
    let mut module = 0;
    for (block, (convolutions, _)) in (1..).zip(BLOCKS) {
        for conv in 1..=convolutions {
            names.add(format!("features.{module}"), format!("block{block}_conv{conv}"));
            // A convolution and its ReLU.
            module += 2;
        }
        // The pooling.
        module += 1;
    }
    names.add("classifier.0", "fc1");
    names.add("classifier.3", "fc2");
    names.add("classifier.6", "predictions");
    names
}
