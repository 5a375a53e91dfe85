//! MobileNetV3, small and large (Howard et al. 2019).

use super::ApplicationOptions;
use super::mobilenet_v2::stem;
use super::names::WeightNames;
use super::shared::{Style, add, built, finished, multiply, pooled};
use crate::error::Result;
use crate::keras::layers::{
    Activate, Conv2D, Dense, Dropout, Flatten, GlobalAveragePooling2D, Relu, Rescaling,
};
use crate::keras::{Activation, Functional, LayerExt, SymbolicTensor};
use crate::tensor::Tensor;

/// A block: the channels in its middle, its result's, the size of its kernels, the stride, whether it weighs its channels, and
/// whether it uses hard-swish instead of ReLU.
type Block = (usize, usize, usize, usize, bool, bool);

const SMALL: [Block; 11] = [
    (16, 16, 3, 2, true, false),
    (72, 24, 3, 2, false, false),
    (88, 24, 3, 1, false, false),
    (96, 40, 5, 2, true, true),
    (240, 40, 5, 1, true, true),
    (240, 40, 5, 1, true, true),
    (120, 48, 5, 1, true, true),
    (144, 48, 5, 1, true, true),
    (288, 96, 5, 2, true, true),
    (576, 96, 5, 1, true, true),
    (576, 96, 5, 1, true, true),
];

const LARGE: [Block; 15] = [
    (16, 16, 3, 1, false, false),
    (64, 24, 3, 2, false, false),
    (72, 24, 3, 1, false, false),
    (72, 40, 5, 2, true, false),
    (120, 40, 5, 1, true, false),
    (120, 40, 5, 1, true, false),
    (240, 80, 3, 2, false, true),
    (200, 80, 3, 1, false, true),
    (184, 80, 3, 1, false, true),
    (184, 80, 3, 1, false, true),
    (480, 112, 3, 1, true, true),
    (672, 112, 3, 1, true, true),
    (672, 160, 5, 2, true, true),
    (960, 160, 5, 1, true, true),
    (960, 160, 5, 1, true, true),
];

/// Builds the small MobileNetV3: images `[N,224,224,3]` from 0 to 255, result `[N,classes]`; 2,554,968 parameters.
///
/// Keras's arrangement scales the images itself. Torchvision's does not, pads alike on all sides, and its last two layers are
/// [`Dense`].
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the options do not fit the network; the errors of loading weights.
pub fn mobilenet_v3_small(options: &ApplicationOptions) -> Result<Functional> {
    mobilenet_v3("MobileNetV3Small", &SMALL, 1024, options)
}

/// Builds the large MobileNetV3, as [`mobilenet_v3_small`]: 5,507,432 parameters.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the options do not fit the network; the errors of loading weights.
pub fn mobilenet_v3_large(options: &ApplicationOptions) -> Result<Functional> {
    mobilenet_v3("MobileNetV3Large", &LARGE, 1280, options)
}

fn hard_swish(x: &SymbolicTensor) -> Result<SymbolicTensor> {
    Activate::new(Activation::hard_silu()).on(x)
}

fn dropped(x: &SymbolicTensor, options: &ApplicationOptions) -> Result<SymbolicTensor> {
    options.dropout(0.2).map_or_else(|| Ok(x.clone()), |rate| Dropout::new(rate).on(x))
}

fn mobilenet_v3(
    name: &str,
    blocks: &'static [Block],
    units: usize,
    options: &ApplicationOptions,
) -> Result<Functional> {
    built(options, || {
        let mut style = Style::new(options, 1e-3, 0.999);
        if style.torch {
            (style.epsilon, style.momentum) = (1e-3, 0.99);
        }
        let input = options.input(name, [224, 224, 3], 32)?;
        let mut x = match style.torch {
            true => (*input).clone(),
            false => Rescaling::new(1.0 / 127.5).offset(-1.0).on(&input)?,
        };
        x = stem(style, &x, "conv", 16)?;
        x = hard_swish(&style.norm(&x, "conv_bn")?)?;
        let mut channels = 16;
        for (number, block) in blocks.iter().enumerate() {
            x = inverted(style, &x, number, channels, block)?;
            channels = block.1;
        }
        x = style.conv(&x, "conv_1", 6 * channels, 1, 1)?;
        x = hard_swish(&style.norm(&x, "conv_1_bn")?)?;
        if !options.include_top {
            x = pooled(&x, options.pooling, ["avg_pool", "max_pool"])?;
        } else if style.torch {
            x = GlobalAveragePooling2D::new().on(&x)?;
            x = hard_swish(&Dense::new(units).on_named("conv_2", &x)?)?;
            x = dropped(&x, options)?;
            x = Dense::new(options.classes)
                .activation(options.classifier_activation)
                .on_named("logits", &x)?;
        } else {
            x = GlobalAveragePooling2D::new().keepdims(true).on(&x)?;
            x = hard_swish(&Conv2D::new(units, [1, 1]).on_named("conv_2", &x)?)?;
            x = dropped(&x, options)?;
            x = Conv2D::new(options.classes, [1, 1]).on_named("logits", &x)?;
            x = Flatten::new().on(&x)?;
            x = Activate::new(options.classifier_activation).on_named("predictions", &x)?;
        }
        finished(name, &input, &x, options, || torchvision_names(blocks))
    })
}

fn inverted(
    style: Style,
    x: &SymbolicTensor,
    number: usize,
    channels: usize,
    &(wide, filters, kernel, stride, weighs, swish): &Block,
) -> Result<SymbolicTensor> {
    let activation = |y: &SymbolicTensor| match swish {
        true => hard_swish(y),
        false => Relu::new().on(y),
    };
    let part = |part: &str| match number {
        0 => format!("expanded_conv_{part}"),
        _ => format!("expanded_conv_{number}_{part}"),
    };
    let mut y = x.clone();
    if number > 0 {
        y = style.conv(&y, &part("expand"), wide, 1, 1)?;
        y = activation(&style.norm(&y, &part("expand_bn"))?)?;
    }
    if stride == 2 {
        y = style.pad(&y, &part("depthwise_pad"), kernel)?;
    }
    y = style.depthwise(&y, &part("depthwise"), kernel, stride)?;
    y = activation(&style.norm(&y, &part("depthwise_bn"))?)?;
    if weighs {
        y = weighed(&y, wide, &part)?;
    }
    y = style.conv(&y, &part("project"), filters, 1, 1)?;
    y = style.norm(&y, &part("project_bn"))?;
    match stride == 1 && channels == filters {
        true => add(x, &y, &part("add")),
        false => Ok(y),
    }
}

/// Multiplies each channel by a weight that is computed from the means of all (Hu et al. 2018).
fn weighed(
    x: &SymbolicTensor,
    channels: usize,
    part: &dyn Fn(&str) -> String,
) -> Result<SymbolicTensor> {
    let name = |of: &str| part(&format!("squeeze_excite_{of}"));
    let y = GlobalAveragePooling2D::new().keepdims(true).on_named(&name("avg_pool"), x)?;
    let y = Conv2D::new(squeezed(channels), [1, 1]).on_named(&name("conv"), &y)?;
    let y = Relu::new().on_named(&name("relu"), &y)?;
    let y = Conv2D::new(channels, [1, 1]).on_named(&name("conv_1"), &y)?;
    // The hard sigmoid in Keras's form.
    let y = Relu::new().max_value(6.0).on(&y.add(3.0)?)?.multiply(1.0 / 6.0)?;
    multiply(x, &y, &name("mul"))
}

/// A quarter of the channels, rounded to a multiple of 8, but not down by more than a tenth.
fn squeezed(channels: usize) -> usize {
    // (c / 4 + 4) / 8, rounded down, and 9 / 10 of c / 4.
    let rounded = ((channels + 16) / 32 * 8).max(8);
    match 40 * rounded < 9 * channels {
        true => rounded + 8,
        false => rounded,
    }
}

/// Returns the images: Keras's arrangement scales them itself. Torchvision's weights need
/// [`Scaling::Torch`](super::Scaling::Torch).
///
/// # Errors
/// None; the other networks' functions have some.
pub fn preprocess_input(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

/// The names of `torchvision.models.mobilenet_v3_small`.
pub fn torchvision_small() -> WeightNames {
    torchvision_names(&SMALL)
}

/// The names of `torchvision.models.mobilenet_v3_large`.
pub fn torchvision_large() -> WeightNames {
    torchvision_names(&LARGE)
}

fn torchvision_names(blocks: &[Block]) -> WeightNames {
    let mut names = WeightNames::new();
    names.add("features.0.0", "conv");
    names.add("features.0.1", "conv_bn");
    for (number, block) in blocks.iter().enumerate() {
        let own = match number {
            0 => "expanded_conv".to_string(),
            _ => format!("expanded_conv_{number}"),
        };
        let module = format!("features.{}.block", number + 1);
        let mut at = 0;
        let mut pair = |at: usize, part: &str| {
            names.add(format!("{module}.{at}.0"), format!("{own}_{part}"));
            names.add(format!("{module}.{at}.1"), format!("{own}_{part}_bn"));
        };
        if number > 0 {
            pair(at, "expand");
            at += 1;
        }
        pair(at, "depthwise");
        let weighs = block.4;
        pair(at + 1 + usize::from(weighs), "project");
        if weighs {
            names.add(format!("{module}.{}.fc1", at + 1), format!("{own}_squeeze_excite_conv"));
            names.add(format!("{module}.{}.fc2", at + 1), format!("{own}_squeeze_excite_conv_1"));
        }
    }
    let last = blocks.len() + 1;
    names.add(format!("features.{last}.0"), "conv_1");
    names.add(format!("features.{last}.1"), "conv_1_bn");
    names.add("classifier.0", "conv_2");
    names.add("classifier.3", "logits");
    names
}
