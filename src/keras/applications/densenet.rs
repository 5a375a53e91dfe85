//! DenseNet121 (Huang et al. 2017).

use super::names::WeightNames;
use super::shared::{Style, built, concatenate, finished, max_pool, relu, top};
use super::{ApplicationOptions, Scaling};
use crate::error::Result;
use crate::keras::layers::{AveragePooling2D, ZeroPadding2D};
use crate::keras::{Functional, LayerExt, SymbolicTensor};
use crate::tensor::Tensor;

/// The layers of each dense block.
const BLOCKS: [usize; 4] = [6, 12, 24, 16];
/// The channels that each layer adds.
const GROWTH: usize = 32;

/// Builds DenseNet121: images `[N,224,224,3]`, result `[N,classes]`; 8,062,504 parameters.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the options do not fit the network; the errors of loading weights.
pub fn densenet121(options: &ApplicationOptions) -> Result<Functional> {
    built(options, || {
        let style = Style::new(options, 1.001e-5, 0.99);
        let input = options.input("DenseNet121", [224, 224, 3], 32)?;
        let mut x = ZeroPadding2D::new(3).on(&input)?;
        x = style.conv(&x, "conv1_conv", 64, 7, 2)?;
        x = relu(&style.norm(&x, "conv1_bn")?, "conv1_relu")?;
        x = max_pool(&ZeroPadding2D::new(1).on(&x)?, "pool1", 3, 2)?;
        let mut channels = 64;
        for (block, layers) in (2..).zip(BLOCKS) {
            for layer in 1..=layers {
                x = dense(style, &x, &format!("conv{block}_block{layer}"))?;
                channels += GROWTH;
            }
            if block < 5 {
                channels /= 2;
                let name = |part: &str| format!("pool{block}_{part}");
                x = relu(&style.norm(&x, &name("bn"))?, &name("relu"))?;
                x = style.conv(&x, &name("conv"), channels, 1, 1)?;
                x = AveragePooling2D::new([2, 2]).strides([2, 2]).on_named(&name("pool"), &x)?;
            }
        }
        x = relu(&style.norm(&x, "bn")?, "relu")?;
        x = top(&x, options, ["avg_pool", "max_pool"], None)?;
        finished("densenet121", &input, &x, options, torchvision)
    })
}

/// Adds the channels of one layer to `x`.
fn dense(style: Style, x: &SymbolicTensor, name: &str) -> Result<SymbolicTensor> {
    let part = |part: &str| format!("{name}_{part}");
    let y = relu(&style.norm(x, &part("0_bn"))?, &part("0_relu"))?;
    let y = style.conv(&y, &part("1_conv"), 4 * GROWTH, 1, 1)?;
    let y = relu(&style.norm(&y, &part("1_bn"))?, &part("1_relu"))?;
    let y = style.conv(&y, &part("2_conv"), GROWTH, 3, 1)?;
    concatenate(x, &y, &part("concat"))
}

/// Scales images as the weights of Keras and torchvision need it: [`Scaling::Torch`].
///
/// # Errors
/// As [`preprocess_input`](super::preprocess_input()).
pub fn preprocess_input(x: &Tensor) -> Result<Tensor> {
    super::preprocess_input(x, Scaling::Torch)
}

/// The names of `torchvision.models.densenet121`.
pub fn torchvision() -> WeightNames {
    let mut names = WeightNames::new();
    names.add("features.conv0", "conv1_conv");
    names.add("features.norm0", "conv1_bn");
    for (block, layers) in (1..).zip(BLOCKS) {
        for layer in 1..=layers {
            let module = format!("features.denseblock{block}.denselayer{layer}");
            let own = format!("conv{}_block{layer}", block + 1);
            for (part, ours) in
                [("norm1", "0_bn"), ("conv1", "1_conv"), ("norm2", "1_bn"), ("conv2", "2_conv")]
            {
                names.add(format!("{module}.{part}"), format!("{own}_{ours}"));
            }
        }
        if block < 4 {
            for (part, ours) in [("norm", "bn"), ("conv", "conv")] {
                names.add(
                    format!("features.transition{block}.{part}"),
                    format!("pool{}_{ours}", block + 1),
                );
            }
        }
    }
    names.add("features.norm5", "bn");
    names.add("classifier", "predictions");
    names
}
