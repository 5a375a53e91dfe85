//! ResNet18, ResNet34 and ResNet50 (He et al. 2015).

use super::names::WeightNames;
use super::shared::{Style, add, built, finished, max_pool, relu, top, zeros};
use super::{ApplicationOptions, Scaling};
use crate::error::Result;
use crate::keras::layers::Conv2D;
use crate::keras::{Functional, LayerExt, SymbolicTensor};
use crate::ops::Padding;
use crate::tensor::Tensor;

/// The blocks of each stack by depth.
fn depths(layers: usize) -> [usize; 4] {
    match layers {
        18 => [2, 2, 2, 2],
        _ => [3, 4, 6, 3],
    }
}

/// Builds ResNet50: images `[N,224,224,3]`, result `[N,classes]`; 25,636,712 parameters.
///
/// In torchvision's arrangement ("v1.5"), the second convolution of a block has the stride, not the first, and convolutions
/// have no bias: 25,610,152 parameters, of which 25,557,032 are trainable.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the options do not fit the network; the errors of loading weights.
pub fn resnet50(options: &ApplicationOptions) -> Result<Functional> {
    let mut style = Style::new(options, 1.001e-5, 0.99);
    style.bias = !style.torch;
    resnet("resnet50", 50, style, options)
}

/// Builds ResNet18: images `[N,224,224,3]`, result `[N,classes]`; 11,699,112 parameters, of which 11,689,512 are trainable.
///
/// Keras has no such network: the layers are torchvision's in both arrangements, with names as in Keras's ResNet50.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the options do not fit the network; the errors of loading weights.
pub fn resnet18(options: &ApplicationOptions) -> Result<Functional> {
    resnet("resnet18", 18, BASIC, options)
}

/// Builds ResNet34, as [`resnet18`]: 21,814,696 parameters, of which 21,797,672 are trainable.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the options do not fit the network; the errors of loading weights.
pub fn resnet34(options: &ApplicationOptions) -> Result<Functional> {
    resnet("resnet34", 34, BASIC, options)
}

/// The constants of torchvision's.
const BASIC: Style = Style { epsilon: 1e-5, momentum: 0.9, bias: false, torch: true };

fn resnet(
    name: &str,
    layers: usize,
    style: Style,
    options: &ApplicationOptions,
) -> Result<Functional> {
    built(options, || {
        let input = options.input(name, [224, 224, 3], 32)?;
        let mut x = zeros(&input, "conv1_pad", 3)?;
        x = style.conv(&x, "conv1_conv", 64, 7, 2)?;
        x = relu(&style.norm(&x, "conv1_bn")?, "conv1_relu")?;
        x = max_pool(&zeros(&x, "pool1_pad", 1)?, "pool1_pool", 3, 2)?;
        for (stack, blocks) in depths(layers).into_iter().enumerate() {
            for block in 1..=blocks {
                let name = format!("conv{}_block{block}", stack + 2);
                let stride = if stack > 0 && block == 1 { 2 } else { 1 };
                let filters = 64 << stack;
                x = match layers {
                    50 => bottleneck(style, &x, &name, filters, stride, block == 1)?,
                    _ => basic(style, &x, &name, filters, stride)?,
                };
            }
        }
        x = top(&x, options, ["avg_pool", "max_pool"], None)?;
        finished(name, &input, &x, options, || torchvision(layers))
    })
}

/// `relu(x + bn(conv(relu(bn(conv(relu(bn(conv(x))))))))`, where x is convolved, too, if `projects`.
fn bottleneck(
    style: Style,
    x: &SymbolicTensor,
    name: &str,
    filters: usize,
    stride: usize,
    projects: bool,
) -> Result<SymbolicTensor> {
    let part = |part: &str| format!("{name}_{part}");
    let shortcut = match projects {
        true => {
            let y = style.conv(x, &part("0_conv"), 4 * filters, 1, stride)?;
            style.norm(&y, &part("0_bn"))?
        }
        false => x.clone(),
    };
    let [first, second] = if style.torch { [1, stride] } else { [stride, 1] };
    let y = style.conv(x, &part("1_conv"), filters, 1, first)?;
    let y = relu(&style.norm(&y, &part("1_bn"))?, &part("1_relu"))?;
    let y = three(style, &y, &part("2"), filters, second)?;
    let y = relu(&style.norm(&y, &part("2_bn"))?, &part("2_relu"))?;
    let y = style.conv(&y, &part("3_conv"), 4 * filters, 1, 1)?;
    let y = style.norm(&y, &part("3_bn"))?;
    relu(&add(&shortcut, &y, &part("add"))?, &part("out"))
}

/// `relu(x + bn(conv(relu(bn(conv(x)))))`, where x is convolved, too, if its shape changes.
fn basic(
    style: Style,
    x: &SymbolicTensor,
    name: &str,
    filters: usize,
    stride: usize,
) -> Result<SymbolicTensor> {
    let part = |part: &str| format!("{name}_{part}");
    let shortcut = match stride {
        1 => x.clone(),
        _ => {
            let y = style.conv(x, &part("0_conv"), filters, 1, stride)?;
            style.norm(&y, &part("0_bn"))?
        }
    };
    let y = three(style, x, &part("1"), filters, stride)?;
    let y = relu(&style.norm(&y, &part("1_bn"))?, &part("1_relu"))?;
    let y = style.conv(&y, &part("2_conv"), filters, 3, 1)?;
    let y = style.norm(&y, &part("2_bn"))?;
    relu(&add(&shortcut, &y, &part("add"))?, &part("out"))
}

/// A convolution of 3 x 3 that keeps the size but for its stride.
fn three(
    style: Style,
    x: &SymbolicTensor,
    name: &str,
    filters: usize,
    stride: usize,
) -> Result<SymbolicTensor> {
    let conv = Conv2D::new(filters, [3, 3]).strides([stride, stride]).use_bias(style.bias);
    let name_of = |part: &str| format!("{name}_{part}");
    match stride {
        1 => conv.padding(Padding::Same).on_named(&name_of("conv"), x),
        _ => conv.on_named(&name_of("conv"), &zeros(x, &name_of("pad"), 1)?),
    }
}

/// Scales images as Keras's weights of ResNet50 need it: [`Scaling::Caffe`]. Torchvision's weights need [`Scaling::Torch`].
///
/// # Errors
/// As [`preprocess_input`](super::preprocess_input()).
pub fn preprocess_input(x: &Tensor) -> Result<Tensor> {
    super::preprocess_input(x, Scaling::Caffe)
}

/// The names of `torchvision.models.resnet18`, 34 and 50, by the number of `layers`, which timm has, too.
pub fn torchvision(layers: usize) -> WeightNames {
    let mut names = WeightNames::new();
    names.add("conv1", "conv1_conv");
    names.add("bn1", "conv1_bn");
    let convolutions = if layers == 50 { 3 } else { 2 };
    for (stack, blocks) in depths(layers).into_iter().enumerate() {
        for block in 0..blocks {
            let module = format!("layer{}.{block}", stack + 1);
            let layer = format!("conv{}_block{}", stack + 2, block + 1);
            for conv in 1..=convolutions {
                names.add(format!("{module}.conv{conv}"), format!("{layer}_{conv}_conv"));
                names.add(format!("{module}.bn{conv}"), format!("{layer}_{conv}_bn"));
            }
            if block == 0 && (layers == 50 || stack > 0) {
                names.add(format!("{module}.downsample.0"), format!("{layer}_0_conv"));
                names.add(format!("{module}.downsample.1"), format!("{layer}_0_bn"));
            }
        }
    }
    names.add("fc", "predictions");
    names
}

/// The names of `transformers.ResNetModel` and `ResNetForImageClassification`, by the number of `layers`: 18, 34 or 50.
pub fn transformers(layers: usize) -> WeightNames {
    let mut names = WeightNames::new();
    names.prefix("resnet.");
    let mut pair = |module: &str, layer: &str| {
        names.add(format!("{module}.convolution"), format!("{layer}_conv"));
        names.add(format!("{module}.normalization"), format!("{layer}_bn"));
    };
    pair("embedder.embedder", "conv1");
    let convolutions = if layers == 50 { 3 } else { 2 };
    for (stack, blocks) in depths(layers).into_iter().enumerate() {
        for block in 0..blocks {
            let module = format!("encoder.stages.{stack}.layers.{block}");
            let layer = format!("conv{}_block{}", stack + 2, block + 1);
            for conv in 0..convolutions {
                pair(&format!("{module}.layer.{conv}"), &format!("{layer}_{}", conv + 1));
            }
            if block == 0 && (layers == 50 || stack > 0) {
                pair(&format!("{module}.shortcut"), &format!("{layer}_0"));
            }
        }
    }
    names.add("classifier.1", "predictions");
    names
}
