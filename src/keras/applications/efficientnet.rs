//! EfficientNetB0 (Tan and Le 2019).

use super::ApplicationOptions;
use super::names::WeightNames;
use super::shared::{Style, activation, add, built, finished, multiply, pooled};
use crate::error::Result;
use crate::keras::initializers::{Distribution, FanMode};
use crate::keras::layers::{
    Conv2D, Dense, DepthwiseConv2D, Dropout, GlobalAveragePooling2D, NoiseShape, Normalization,
    Rescaling, Reshape,
};
use crate::keras::{Activation, Functional, Initializer, LayerExt, SymbolicTensor};
use crate::ops::Padding;
use crate::tensor::Tensor;

/// A stage: the size of its kernels, its blocks, its channels, how much wider they are inside, and the first block's stride.
type Stage = (usize, usize, usize, usize, usize);

const STAGES: [Stage; 7] = [
    (3, 1, 16, 1, 1),
    (3, 2, 24, 6, 2),
    (5, 2, 40, 6, 2),
    (3, 3, 80, 6, 2),
    (5, 3, 112, 6, 1),
    (5, 4, 192, 6, 2),
    (3, 1, 320, 6, 1),
];
const BLOCKS: usize = 16;
/// The rate of the dropout before the classifier; training drops an examples' block the more often the later the block is,
/// almost as often in the end.
const DROPPED: f32 = 0.2;

/// Keras's initial kernels.
fn kernels() -> Initializer {
    let (mode, distribution) = (FanMode::FanOut, Distribution::TruncatedNormal);
    Initializer::VarianceScaling { scale: 2.0, mode, distribution }
}

fn conv(x: &SymbolicTensor, name: &str, filters: usize) -> Result<SymbolicTensor> {
    Conv2D::new(filters, [1, 1]).use_bias(false).kernel_initializer(kernels()).on_named(name, x)
}

/// Builds EfficientNetB0: images `[N,224,224,3]` from 0 to 255, result `[N,classes]`; 5,330,571 parameters.
///
/// Keras's arrangement scales the images itself. Torchvision's does not, and pads alike on all sides. Keras's published weights
/// are for a network that also divides the images by the square root of ImageNet's deviations; see
/// [the guide](crate::docs::applications).
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the options do not fit the network; the errors of loading weights.
pub fn efficientnet_b0(options: &ApplicationOptions) -> Result<Functional> {
    built(options, || {
        let style = Style::new(options, 1e-3, 0.99);
        let input = options.input("EfficientNetB0", [224, 224, 3], 32)?;
        let mut x = match style.torch {
            true => (*input).clone(),
            false => {
                let x = Rescaling::new(1.0 / 255.0).on(&input)?;
                Normalization::new().on(&x)?
            }
        };
        x = style.pad(&x, "stem_conv_pad", 3)?;
        x = Conv2D::new(32, [3, 3])
            .strides([2, 2])
            .use_bias(false)
            .kernel_initializer(kernels())
            .on_named("stem_conv", &x)?;
        x = activation(&style.norm(&x, "stem_bn")?, "stem_activation", Activation::Silu)?;
        let (mut channels, mut number) = (32, 0);
        for (stage, (_, blocks, filters, _, stride)) in STAGES.into_iter().enumerate() {
            for block in 0..blocks {
                let stride = if block == 0 { stride } else { 1 };
                let dropped =
                    options.dropout(DROPPED).unwrap_or(0.0) * number as f32 / BLOCKS as f32;
                x = mb_conv(style, &x, (stage, block, dropped), [channels, filters], stride)?;
                channels = filters;
                number += 1;
            }
        }
        x = conv(&x, "top_conv", 1280)?;
        x = activation(&style.norm(&x, "top_bn")?, "top_activation", Activation::Silu)?;
        if options.include_top {
            x = GlobalAveragePooling2D::new().on_named("avg_pool", &x)?;
            if let Some(rate) = options.dropout(DROPPED) {
                x = Dropout::new(rate).on_named("top_dropout", &x)?;
            }
            let (mode, distribution) = (FanMode::FanOut, Distribution::Uniform);
            x = Dense::new(options.classes)
                .activation(options.classifier_activation)
                .kernel_initializer(Initializer::VarianceScaling {
                    scale: 1.0 / 3.0,
                    mode,
                    distribution,
                })
                .on_named("predictions", &x)?;
        } else {
            x = pooled(&x, options.pooling, ["avg_pool", "max_pool"])?;
        }
        finished("efficientnetb0", &input, &x, options, torchvision)
    })
}

/// The name of a block, such as `block2a`.
fn block_name(stage: usize, block: usize) -> String {
    format!("block{}{}", stage + 1, char::from(b'a' + block as u8))
}

fn mb_conv(
    style: Style,
    x: &SymbolicTensor,
    (stage, block, rate): (usize, usize, f32),
    [channels, filters]: [usize; 2],
    stride: usize,
) -> Result<SymbolicTensor> {
    let (kernel, _, _, ratio, _) = STAGES[stage];
    let name = block_name(stage, block);
    let part = |part: &str| format!("{name}_{part}");
    let silu = |y: &SymbolicTensor, name: &str| activation(y, &part(name), Activation::Silu);
    let wide = channels * ratio;
    let mut y = x.clone();
    if ratio != 1 {
        y = conv(&y, &part("expand_conv"), wide)?;
        y = silu(&style.norm(&y, &part("expand_bn"))?, "expand_activation")?;
    }
    let padding = if stride == 2 { Padding::Valid } else { Padding::Same };
    if stride == 2 {
        y = style.pad(&y, &part("dwconv_pad"), kernel)?;
    }
    y = DepthwiseConv2D::new([kernel, kernel])
        .strides([stride, stride])
        .padding(padding)
        .use_bias(false)
        .depthwise_initializer(kernels())
        .on_named(&part("dwconv"), &y)?;
    y = silu(&style.norm(&y, &part("bn"))?, "activation")?;
    // The weights of the channels.
    let mut se = GlobalAveragePooling2D::new().on_named(&part("se_squeeze"), &y)?;
    se = Reshape::new([1, 1, wide]).on_named(&part("se_reshape"), &se)?;
    for (to, units, function) in [
        ("se_reduce", (channels / 4).max(1), Activation::Silu),
        ("se_expand", wide, Activation::Sigmoid),
    ] {
        se = Conv2D::new(units, [1, 1])
            .activation(function)
            .kernel_initializer(kernels())
            .on_named(&part(to), &se)?;
    }
    y = multiply(&y, &se, &part("se_excite"))?;
    y = conv(&y, &part("project_conv"), filters)?;
    y = style.norm(&y, &part("project_bn"))?;
    if stride != 1 || channels != filters {
        return Ok(y);
    }
    if rate > 0.0 {
        // All of an example, or nothing of it.
        let whole = NoiseShape::from([None, Some(1), Some(1), Some(1)]);
        y = Dropout::new(rate).noise_shape(whole).on_named(&part("drop"), &y)?;
    }
    add(&y, x, &part("add"))
}

/// Returns the images: Keras's arrangement scales them itself. Torchvision's weights need
/// [`Scaling::Torch`](super::Scaling::Torch).
///
/// # Errors
/// None; the other networks' functions have some.
pub fn preprocess_input(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

/// The names of `torchvision.models.efficientnet_b0`.
pub fn torchvision() -> WeightNames {
    let mut names = WeightNames::new();
    names.add("features.0.0", "stem_conv");
    names.add("features.0.1", "stem_bn");
    for (stage, (_, blocks, _, ratio, _)) in STAGES.into_iter().enumerate() {
        for block in 0..blocks {
            let own = block_name(stage, block);
            let module = format!("features.{}.{block}.block", stage + 1);
            let mut at = 0;
            let mut pair = |at: usize, conv: &str, norm: &str| {
                names.add(format!("{module}.{at}.0"), format!("{own}_{conv}"));
                names.add(format!("{module}.{at}.1"), format!("{own}_{norm}"));
            };
            if ratio != 1 {
                pair(at, "expand_conv", "expand_bn");
                at += 1;
            }
            pair(at, "dwconv", "bn");
            pair(at + 2, "project_conv", "project_bn");
            names.add(format!("{module}.{}.fc1", at + 1), format!("{own}_se_reduce"));
            names.add(format!("{module}.{}.fc2", at + 1), format!("{own}_se_expand"));
        }
    }
    names.add("features.8.0", "top_conv");
    names.add("features.8.1", "top_bn");
    names.add("classifier.1", "predictions");
    names
}
