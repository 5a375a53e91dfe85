//! U-Net (Ronneberger et al. 2015): a class for each pixel.

use super::ApplicationOptions;
use super::names::WeightNames;
use super::shared::{Style, built, concatenate, finished, max_pool, relu};
use crate::error::{Error, Result, message};
use crate::keras::layers::{Conv2D, Conv2DTranspose};
use crate::keras::{Functional, LayerExt, SymbolicTensor};
use crate::support::options::options;

options! {
    /// The sizes of a U-Net.
    #[derive(Debug, Clone, PartialEq)]
    pub struct UnetConfig {
        /// Sets the channels of the first level; each level below has twice as many.
        filters: usize = 64,
        /// Sets how often the image is halved.
        depth: usize = 4,
    }
}

/// Builds a U-Net: images `[N,256,256,3]`, result `[N,H,W,classes]`; with 2 classes 31,055,426 parameters. The height and the
/// width of images must be multiples of 2 to the depth.
///
/// Convolutions pad and have batch normalizations, as usual today; the paper has neither. Without top, the result is the
/// features of each pixel; `pooling` does not apply.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Tensor, keras::{INFERENCE, Layer, applications::{ApplicationOptions, unet}}};
/// let options = ApplicationOptions::new().input_shape([32, 32, 1]).classes(3);
/// let model = unet::unet(unet::UnetConfig::new().filters(8).depth(2), &options)?;
/// assert_eq!(model.call(&Tensor::ones([1, 32, 32, 1])?, INFERENCE)?.shape(), [1, 32, 32, 3]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the options do not fit the network; the errors of loading weights.
pub fn unet(config: UnetConfig, options: &ApplicationOptions) -> Result<Functional> {
    built(options, || {
        let UnetConfig { filters, depth } = config;
        let whole = u32::try_from(depth).ok().and_then(|depth| 1usize.checked_shl(depth));
        let (Some(whole), 1..=8) = (whole, depth) else {
            return Err(Error::Shape(message!("U-Net: depth is {depth}; it must be from 1 to 8.")));
        };
        if filters == 0 {
            return Err(Error::Shape("U-Net: filters is 0; it must be at least 1.".into()));
        }
        let input = options.input("U-Net", [256, 256, 3], whole)?;
        if input.shape()[1..3].iter().flatten().any(|size| size % whole != 0) {
            return Err(Error::Shape(message!(
                "U-Net: input_shape is {}; with a depth of {depth}, height and width must be multiples of {whole}.",
                crate::trackable::shape_text(&input.shape()[1..])
            )));
        }
        // PyTorch's momentum: short trainings end before Keras's averages have left their beginnings.
        let style = Style { epsilon: 1e-3, momentum: 0.9, bias: false, torch: false };
        let mut x = (*input).clone();
        let mut levels = Vec::new();
        for level in 0..depth {
            x = twice(style, &x, &format!("down{}", level + 1), filters << level)?;
            levels.push(x.clone());
            x = max_pool(&x, &format!("pool{}", level + 1), 2, 2)?;
        }
        x = twice(style, &x, "middle", filters << depth)?;
        for (level, skip) in levels.iter().enumerate().rev() {
            let name = format!("up{}", level + 1);
            let filters = filters << level;
            x = Conv2DTranspose::new(filters, [2, 2])
                .strides([2, 2])
                .on_named(&format!("{name}_wide"), &x)?;
            x = concatenate(skip, &x, &format!("{name}_concat"))?;
            x = twice(style, &x, &name, filters)?;
        }
        if options.include_top {
            x = Conv2D::new(options.classes, [1, 1])
                .activation(options.classifier_activation)
                .on_named("predictions", &x)?;
        }
        finished("unet", &input, &x, options, WeightNames::new)
    })
}

/// Two convolutions of 3 x 3.
fn twice(style: Style, x: &SymbolicTensor, name: &str, filters: usize) -> Result<SymbolicTensor> {
    let mut x = x.clone();
    for conv in 1..=2 {
        let part = |part: &str| format!("{name}_{part}{conv}");
        x = style.conv(&x, &part("conv"), filters, 3, 1)?;
        x = relu(&style.norm(&x, &part("bn"))?, &part("relu"))?;
    }
    Ok(x)
}
