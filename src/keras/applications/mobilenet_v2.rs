//! MobileNetV2 (Sandler et al. 2018).

use super::names::WeightNames;
use super::shared::{Style, add, built, finished, relu6, top, zeros};
use super::{ApplicationOptions, Scaling};
use crate::error::Result;
use crate::keras::layers::Conv2D;
use crate::keras::{Functional, LayerExt, SymbolicTensor};
use crate::ops::Padding;
use crate::tensor::Tensor;

/// The filters and the stride of each block; the first does not expand its input.
const BLOCKS: [(usize, usize); 17] = [
    (16, 1),
    (24, 2),
    (24, 1),
    (32, 2),
    (32, 1),
    (32, 1),
    (64, 2),
    (64, 1),
    (64, 1),
    (64, 1),
    (96, 1),
    (96, 1),
    (96, 1),
    (160, 2),
    (160, 1),
    (160, 1),
    (320, 1),
];

/// Builds MobileNetV2 with a width of 1: images `[N,224,224,3]`, result `[N,classes]`; 3,538,984 parameters.
///
/// Torchvision's arrangement pads alike on all sides and has a dropout before the classifier.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the options do not fit the network; the errors of loading weights.
pub fn mobilenet_v2(options: &ApplicationOptions) -> Result<Functional> {
    built(options, || {
        let style = Style::new(options, 1e-3, 0.999);
        let input = options.input("MobileNetV2", [224, 224, 3], 32)?;
        let mut x = stem(style, &input, "Conv1", 32)?;
        x = relu6(&style.norm(&x, "bn_Conv1")?, "Conv1_relu")?;
        let mut channels = 32;
        for (block, (filters, stride)) in BLOCKS.into_iter().enumerate() {
            x = inverted(style, &x, block, [channels, filters], stride)?;
            channels = filters;
        }
        x = style.conv(&x, "Conv_1", 1280, 1, 1)?;
        x = relu6(&style.norm(&x, "Conv_1_bn")?, "out_relu")?;
        let dropout = options.dropout(0.2).filter(|_| options.torchvision());
        x = top(&x, options, ["", ""], dropout)?;
        finished("mobilenetv2", &input, &x, options, torchvision)
    })
}

/// The first convolution, of 3 x 3 with a stride of 2.
pub(super) fn stem(
    style: Style,
    x: &SymbolicTensor,
    name: &str,
    filters: usize,
) -> Result<SymbolicTensor> {
    let conv = Conv2D::new(filters, [3, 3]).strides([2, 2]).use_bias(false);
    match style.torch {
        true => conv.on_named(name, &zeros(x, &format!("{name}_pad"), 1)?),
        false => conv.padding(Padding::Same).on_named(name, x),
    }
}

/// Widens the channels, convolves each, and narrows them again.
fn inverted(
    style: Style,
    x: &SymbolicTensor,
    block: usize,
    [channels, filters]: [usize; 2],
    stride: usize,
) -> Result<SymbolicTensor> {
    let part = |part: &str| match block {
        0 => format!("expanded_conv_{part}"),
        _ => format!("block_{block}_{part}"),
    };
    let mut y = x.clone();
    if block > 0 {
        y = style.conv(&y, &part("expand"), 6 * channels, 1, 1)?;
        y = relu6(&style.norm(&y, &part("expand_BN"))?, &part("expand_relu"))?;
    }
    if stride == 2 {
        y = style.pad(&y, &part("pad"), 3)?;
    }
    y = style.depthwise(&y, &part("depthwise"), 3, stride)?;
    y = relu6(&style.norm(&y, &part("depthwise_BN"))?, &part("depthwise_relu"))?;
    y = style.conv(&y, &part("project"), filters, 1, 1)?;
    y = style.norm(&y, &part("project_BN"))?;
    match channels == filters && stride == 1 {
        true => add(x, &y, &part("add")),
        false => Ok(y),
    }
}

/// Scales images as Keras's weights need it: [`Scaling::Tf`]. Torchvision's weights need [`Scaling::Torch`].
///
/// # Errors
/// As [`preprocess_input`](super::preprocess_input()).
pub fn preprocess_input(x: &Tensor) -> Result<Tensor> {
    super::preprocess_input(x, Scaling::Tf)
}

/// The names of `torchvision.models.mobilenet_v2`.
pub fn torchvision() -> WeightNames {
    let mut names = WeightNames::new();
    names.add("features.0.0", "Conv1");
    names.add("features.0.1", "bn_Conv1");
    for block in 0..BLOCKS.len() {
        let (own, wide, rest) = match block {
            0 => ("expanded_conv".to_string(), None, 0),
            _ => (format!("block_{block}"), Some(0), 1),
        };
        let module = format!("features.{}.conv", block + 1);
        if let Some(at) = wide {
            names.add(format!("{module}.{at}.0"), format!("{own}_expand"));
            names.add(format!("{module}.{at}.1"), format!("{own}_expand_BN"));
        }
        names.add(format!("{module}.{rest}.0"), format!("{own}_depthwise"));
        names.add(format!("{module}.{rest}.1"), format!("{own}_depthwise_BN"));
        names.add(format!("{module}.{}", rest + 1), format!("{own}_project"));
        names.add(format!("{module}.{}", rest + 2), format!("{own}_project_BN"));
    }
    names.add("features.18.0", "Conv_1");
    names.add("features.18.1", "Conv_1_bn");
    names.add("classifier.1", "predictions");
    names
}
