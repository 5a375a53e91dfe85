//! [`RandomRotation`], [`RandomZoom`], [`RandomTranslation`]: transform the coordinates of images.

use super::images::{Factor, Images};
use crate::error::Result;
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::ops::concat;
use crate::ops::image::{AffineTransformOptions, FillMode, Interpolation, affine_transform_with};
use crate::tensor::Tensor;

/// Transforms images: the pixel (x, y) of the result is the pixel `(a x + b y + c, d x + e y + f)` of the image, with
/// coefficients `[N,1,1,1]`.
fn moved(
    images: &Images,
    rows: [&Tensor; 6],
    (interpolation, fill_mode, fill_value): (Interpolation, FillMode, f32),
) -> Result<Tensor> {
    let n = images.sizes()[0];
    let mut columns: Vec<Tensor> =
        rows.iter().map(|x| x.reshape_to([n, 1].into())).collect::<Result<_>>()?;
    columns.push(columns[0].zeros_like()?);
    columns.push(columns[0].zeros_like()?);
    let options = AffineTransformOptions::new()
        .interpolation(interpolation)
        .fill_mode(fill_mode)
        .fill_value(fill_value);
    images.back(affine_transform_with(&images.batch, &concat(&columns, 1)?, options)?)
}

macro_rules! random_move {
    (
        $(#[$doc:meta])* $layer:ident $(#[$new_doc:meta])* new($($new:tt)*) options { $($more:tt)* }
        |$x:ident, $layer_of:ident, $images:ident| $check:expr => $matrix:expr
    ) => {
        layer! {
            $(#[$doc])*
            pub struct $layer {
                $(#[$new_doc])*
                new($($new)*);
                options {
                    $($more)*
                    /// Sets how positions outside the image are filled.
                    fill_mode: FillMode = FillMode::Reflect,
                    /// Sets the interpolation mode.
                    interpolation: Interpolation = Interpolation::Bilinear,
                    /// Sets the value outside the image if `fill_mode` is constant.
                    fill_value: f32 = 0.0,
                }
                random(generator);
                fixed {
                    data_format: "channels_last",
                }
            }
        }

        impl Layer for $layer {
            configured!();

            fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
                let $layer_of = self;
                let $x = $check?;
                let $images = &Images::new(stringify!($layer), x, self.policy)?;
                if !cx.training() {
                    return $images.back($images.batch.clone());
                }
                let [a, b, c, d, e, f]: [Tensor; 6] = $matrix?;
                let how = (self.interpolation, self.fill_mode, self.fill_value);
                moved($images, [&a, &b, &c, &d, &e, &f], how)
            }
        }
    };
}

/// The coordinate of the center of `size` positions.
fn half(size: usize) -> f32 {
    (size as f32 - 1.0) / 2.0
}

// The first becomes `pub struct RandomRotation` with its factor and Keras's options, and a `Layer` that rotates images.
random_move! {
    /// In training, rotates each image around its center by an angle drawn from `factor` times a full turn,
    /// counterclockwise if positive; in inference returns `x`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{Layer, TRAINING, layers::RandomRotation};
    /// let x = tf::constant([1.0, 2.0, 3.0, 4.0])?.reshape([1, 2, 2, 1])?;
    /// let y = RandomRotation::new([0.5, 0.5]).call(&x, TRAINING)?.to_vec::<f32>()?; // half a turn
    /// assert!(y.iter().zip([4.0, 3.0, 2.0, 1.0]).all(|(y, want)| (y - want).abs() < 1e-3));
    /// # Ok(())
    /// # }
    /// ```
    RandomRotation
    /// Creates a layer that rotates by up to this fraction of a full turn in both directions, or by a fraction between
    /// the two numbers of a pair.
    new(
        factor: Factor as impl Into<Factor>
    )
    options {}
    |range, layer, images| layer.factor.within("RandomRotation", "factor", [-1.0, 1.0]) => {
        let turn = std::f32::consts::TAU;
        let angle = images.draw(layer.generator.get(), [range[0] * turn, range[1] * turn])?;
        let (cos, sin) = (angle.cos()?, angle.sin()?);
        let [_, h, w] = images.sizes();
        let (y, x) = (half(h), half(w));
        let across = cos.multiply(-x)?.add(sin.multiply(y)?)?.add(x)?;
        let down = sin.multiply(-x)?.subtract(cos.multiply(y)?)?.add(y)?;
        Ok::<_, crate::error::Error>([cos.clone(), sin.negative()?, across, sin, cos, down])
    }
}
random_move! {
    /// In training, zooms each image around its center: a factor above 0 zooms out, a factor below 0 zooms in; in
    /// inference returns `x`. Without a `width_factor` the aspect ratio is preserved.
    RandomZoom
    /// Creates a layer that zooms heights by up to this factor in both directions, or between the numbers of a pair,
    /// from -1 to 1.
    new(
        height_factor: Factor as impl Into<Factor>
    )
    options {
        /// Sets the factor for widths. Default: the factor drawn for the height.
        width_factor: Option<Factor> as impl Into<Option<Factor>> = None,
    }
    |ranges, layer, images| (|| {
        let tall = layer.height_factor.within("RandomZoom", "height_factor", [-1.0, 1.0])?;
        let wide = layer.width_factor.map(|wide| wide.within("RandomZoom", "width_factor", [-1.0, 1.0]));
        Ok::<_, crate::error::Error>((tall, wide.transpose()?))
    })() => {
        let (tall, wide) = ranges;
        let draw = |range: [f32; 2]| images.draw(layer.generator.get(), range.map(|end| 1.0 + end));
        let height = draw(tall)?;
        let width = wide.map_or(Ok(height.clone()), draw)?;
        let zero = height.zeros_like()?;
        let [_, h, w] = images.sizes();
        let across = width.multiply(-half(w))?.add(half(w))?;
        let down = height.multiply(-half(h))?.add(half(h))?;
        Ok::<_, crate::error::Error>([width, zero.clone(), across, zero, height, down])
    }
}
random_move! {
    /// In training, shifts each image down and right by random fractions of its height and width; in inference returns `x`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::image::FillMode;
    /// use tf::keras::{Layer, TRAINING, layers::RandomTranslation};
    /// let layer = RandomTranslation::new(0.0, [0.5, 0.5]).fill_mode(FillMode::Constant);
    /// let x = tf::constant([1.0, 2.0, 3.0, 4.0])?.reshape([1, 1, 4, 1])?;
    /// assert_eq!(layer.call(&x, TRAINING)?.to_vec::<f32>()?, [0.0, 0.0, 1.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    RandomTranslation
    /// Creates a layer that shifts by up to these fractions in both directions, or between the numbers of a pair, from
    /// -1 to 1.
    new(
        height_factor: Factor as impl Into<Factor>, width_factor: Factor as impl Into<Factor>
    )
    options {}
    |ranges, layer, images| (|| {
        let tall = layer.height_factor.within("RandomTranslation", "height_factor", [-1.0, 1.0])?;
        let wide = layer.width_factor.within("RandomTranslation", "width_factor", [-1.0, 1.0])?;
        Ok::<_, crate::error::Error>([tall, wide])
    })() => {
        let [_, h, w] = images.sizes();
        let draw = |range, size: usize| images.draw(layer.generator.get(), range)?.multiply(-(size as f32));
        let (down, right) = (draw(ranges[0], h)?, draw(ranges[1], w)?);
        let (zero, one) = (down.zeros_like()?, down.ones_like()?);
        Ok::<_, crate::error::Error>([one.clone(), zero.clone(), right, zero, one, down])
    }
}
