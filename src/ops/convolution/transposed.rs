//! Transposed convolutions: the gradients of convolutions with respect to their inputs, as separate ops.

use super::super::conv2d::{Conv2dOptions, Geometry, Padding, input_gradient};
use super::super::inventory::{ANY, Answer, Args, Entry, Input, OpKind, Stop, one};
use super::super::{FLOATS, expect_dtype, same_dtype};
use super::volumes::{Frames, transpose};
use super::{
    Conv1dTransposeOptions, Conv2dTransposeOptions, Conv3dTransposeOptions, by_name, check_ranks,
};
use crate::error::{Error, Result, message};
use crate::shape::Shape;
use crate::tensor::{Operand, Tensor};

impl Tensor {
    /// Transposed convolution of images `[N,IH,IW,C]` with `filters` `[KH,KW,O,C]`; the result has the shape `[N,H,W,O]`. Each
    /// input element adds the filter, scaled by its value, to the window that a convolution with these options would read for
    /// it. This is the gradient of that convolution with respect to its input.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Conv2dTransposeOptions, Tensor};
    /// let image = Tensor::from_slice(&[1.0, 2.0], [1, 1, 2, 1])?;
    /// let filter = Tensor::from_slice(&[1.0, 10.0], [1, 2, 1, 1])?;
    /// let y = image.conv2d_transpose(&filter, Conv2dTransposeOptions::new().strides([1, 2]))?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 10.0, 2.0, 20.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if a rank is not 4, the channels differ, a stride or dilation is 0, or the convolution does not map
    /// `output_shape` to the input's shape; [`Error::DType`] if the dtypes differ or are not float.
    pub fn conv2d_transpose(
        &self,
        filters: impl Into<Operand>,
        options: Conv2dTransposeOptions,
    ) -> Result<Tensor> {
        let filters = filters.into().into_tensor_like(TWO, self)?;
        check_ranks(TWO, self, &filters, ["[N,IH,IW,C]", "[KH,KW,O,C]"])?;
        let shape = options.output_shape.as_ref().map(|shape| &shape[..]);
        spread(TWO, self, &filters, shape, forward(&options))
    }

    /// Like [`Tensor::conv2d_transpose`], along one axis: maps signals `[N,IW,C]` with `filters` `[K,O,C]` to
    /// `[N,W,O]`.
    ///
    /// # Errors
    /// As [`Tensor::conv2d_transpose`], with ranks of 3.
    pub fn conv1d_transpose(
        &self,
        filters: impl Into<Operand>,
        options: Conv1dTransposeOptions,
    ) -> Result<Tensor> {
        let filters = filters.into().into_tensor_like(ONE, self)?;
        check_ranks(ONE, self, &filters, ["[N,IW,C]", "[K,O,C]"])?;
        options.padding.check(ONE, 1, filters.shape()[1])?;
        let shape = options.output_shape.map(|[n, w, o]| [n, 1, w, o]);
        let plane = Conv2dOptions::new()
            .strides([1, options.strides])
            .padding(options.padding.under_axis())
            .dilations([1, options.dilations]);
        let (x, filters) = (self.expand_dims(1)?, filters.expand_dims(0)?);
        spread(ONE, &x, &filters, shape.as_ref().map(|s| &s[..]), plane)?.squeeze(1)
    }

    /// Like [`Tensor::conv2d_transpose`], for volumes: maps `[N,ID,IH,IW,C]` with `filters` `[KD,KH,KW,O,C]` to
    /// `[N,D,H,W,O]`.
    ///
    /// # Errors
    /// As [`Tensor::conv2d_transpose`], with ranks of 5.
    pub fn conv3d_transpose(
        &self,
        filters: impl Into<Operand>,
        options: Conv3dTransposeOptions,
    ) -> Result<Tensor> {
        let filters = filters.into().into_tensor_like(THREE, self)?;
        check_ranks(THREE, self, &filters, ["[N,ID,IH,IW,C]", "[KD,KH,KW,O,C]"])?;
        let ([sd, sh, sw], [dd, dh, dw]) = (options.strides, options.dilations);
        options.padding.check(THREE, 3, filters.shape()[3])?;
        let plane = Conv2dOptions::new()
            .strides([sh, sw])
            .padding(options.padding.of_axes_from(1))
            .dilations([dh, dw]);
        let given = options.output_shape;
        let (deep, kd) = (self.shape()[1], filters.shape()[0]);
        let depth = match given {
            Some([_, d, ..]) => d,
            None => grown(THREE, deep, kd, sd, dd, options.padding)?,
        };
        let frames = Frames::new(THREE, depth, kd, sd, dd, options.padding)?;
        // The images that follow hold several frames: their channels must not be interpreted as groups.
        let [n, o] = [self.shape()[0], filters.shape()[3]];
        if frames.out != deep || given.is_some_and(|shape| [shape[0], shape[4]] != [n, o]) {
            return Err(misfit(THREE, &given.unwrap_or([0, depth, 0, 0, 0])[..], self));
        }
        let shape = given.map(|[_, _, h, w, o]| [h, w, o]);
        transpose(self, &filters, &frames, &|x, filters, taps| {
            let shape = shape.map(|[h, w, o]| [x.shape()[0], h, w, o.saturating_mul(taps)]);
            spread(THREE, x, filters, shape.as_ref().map(|s| &s[..]), plane)
        })
    }
}

const ONE: &str = "Conv1DTranspose";
const TWO: &str = "Conv2DTranspose";
const THREE: &str = "Conv3DTranspose";

fn forward(options: &Conv2dTransposeOptions) -> Conv2dOptions {
    let &Conv2dTransposeOptions { strides, padding, dilations, .. } = options;
    Conv2dOptions { strides, padding, dilations }
}

/// The transposed convolution of images, to `shape` if there is one.
fn spread(
    op: &str,
    x: &Tensor,
    filters: &Tensor,
    shape: Option<&[usize]>,
    options: Conv2dOptions,
) -> Result<Tensor> {
    same_dtype(op, x.spec(), filters.spec())?;
    expect_dtype(op, x.spec(), FLOATS)?;
    let (&[n, h, w, c], &[kh, kw, o, fc]) = (x.shape(), filters.shape()) else {
        unreachable!("the ranks have been checked");
    };
    if c != fc {
        return Err(Error::Shape(message!(
            "{op}: the input {:?} has {c} channels and the filters {:?} expect {fc}; the last axes of both must be equal. \
             The filters' axis before it is of the result.",
            x.shape(),
            filters.shape()
        )));
    }
    options.padding.check(op, 2, o)?;
    let ([sh, sw], [dh, dw]) = (options.strides, options.dilations);
    let image = match shape {
        Some(shape) => Shape::new(shape),
        None => {
            let high = grown(op, h, kh, sh, dh, options.padding)?;
            let wide = grown(op, w, kw, sw, dw, options.padding.of_axes_from(1))?;
            [n, high, wide, o].into()
        }
    };
    let g = Geometry::grouped(op, &image, &filters.spec().shape, options)?;
    if g.out[..] != *x.shape() {
        return Err(misfit(op, &image, x));
    }
    input_gradient(&image, x, filters, options)
}

fn misfit(op: &str, image: &[usize], x: &Tensor) -> Error {
    Error::Shape(message!(
        "{op}: with these strides, padding and filters a convolution of {image:?} does not give {:?}, which the input is; \
         leave out output_shape to get the one that fits, or choose one that does.",
        x.shape()
    ))
}

/// The default size of a transposed convolution along an axis, as in Keras.
fn grown(
    op: &str,
    size: usize,
    window: usize,
    stride: usize,
    dilation: usize,
    padding: Padding,
) -> Result<usize> {
    let span = window.saturating_sub(1).checked_mul(dilation).and_then(|n| n.checked_add(1));
    let grown = span.and_then(|span| match padding.first_edges() {
        Some((low, high)) => {
            let all = size.saturating_sub(1).checked_mul(stride)?.checked_add(span)?;
            Some(all.saturating_sub(low + high))
        }
        None if padding == Padding::Same => size.checked_mul(stride),
        None => size.checked_mul(stride)?.checked_add(span.saturating_sub(stride)),
    });
    grown.ok_or_else(|| {
        Error::Shape(message!(
            "{op}: {size} positions with windows of {window}, strides of {stride} and dilations of {dilation} would \
             become more than 2^64."
        ))
    })
}

/// The shape of the result of a call by name, and its options.
fn shape_of<const N: usize>(c: &Args) -> Answer<Option<[usize; N]>> {
    let list = c.sizes("output_shape")?;
    list.map(|list| list.try_into().map_err(|_| Stop::Lacks("output_shape".into()))).transpose()
}

/// The inventory of this file.
pub(in super::super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Kernel, "conv2d_transpose", &["tf.nn.conv2d_transpose"], |c| {
        c.remark("filter_layout");
        let options = Conv2dTransposeOptions {
            output_shape: shape_of(c)?,
            strides: by_name(c, "strides")?,
            padding: Padding::from_args(c)?,
            dilations: by_name(c, "dilations")?,
        };
        one(c.x()?.conv2d_transpose(c.arg("w")?, options))
    })
    .cases(|cases| {
        let base = Conv2dTransposeOptions::new();
        for options in [
            base,
            base.strides([2, 3]),
            base.strides([2, 1]).padding(Padding::Valid),
            base.dilations([2, 1]).padding([(1, 0), (0, 1)]),
            base.strides([2, 2]).output_shape([1, 5, 7, 2]),
        ] {
            let inputs: [Input; 2] = [(&[1, 3, 4, 3], ANY), (&[3, 2, 2, 3], ANY)];
            let f = move |x: &[Tensor]| x[0].conv2d_transpose(&x[1], options);
            cases.add(format!("conv2d_transpose {options:?}"), &inputs, f);
        }
    }),
    Entry::new(OpKind::Composed, "conv1d_transpose", &["tf.nn.conv1d_transpose"], |c| {
        let ([strides], [dilations]) = (by_name(c, "strides")?, by_name(c, "dilations")?);
        let options = Conv1dTransposeOptions {
            output_shape: shape_of(c)?,
            strides,
            padding: Padding::from_args(c)?,
            dilations,
        };
        one(c.x()?.conv1d_transpose(c.arg("w")?, options))
    })
    .cases(|cases| {
        let base = Conv1dTransposeOptions::new();
        for options in [base.strides(2), base.strides(3).padding(Padding::Valid)] {
            let inputs: [Input; 2] = [(&[2, 3, 2], ANY), (&[2, 3, 2], ANY)];
            let f = move |x: &[Tensor]| x[0].conv1d_transpose(&x[1], options);
            cases.add(format!("conv1d_transpose {options:?}"), &inputs, f);
        }
    }),
    Entry::new(OpKind::Composed, "conv3d_transpose", &["tf.nn.conv3d_transpose"], |c| {
        let options = Conv3dTransposeOptions {
            output_shape: shape_of(c)?,
            strides: by_name(c, "strides")?,
            padding: Padding::from_args(c)?,
            dilations: by_name(c, "dilations")?,
        };
        one(c.x()?.conv3d_transpose(c.arg("w")?, options))
    })
    .cases(|cases| {
        let base = Conv3dTransposeOptions::new();
        for options in [
            base,
            base.strides([2, 1, 2]).padding(Padding::Valid),
            base.strides([2, 2, 1]).output_shape([1, 3, 4, 3, 2]),
        ] {
            let inputs: [Input; 2] = [(&[1, 2, 2, 3, 2], ANY), (&[2, 3, 2, 2, 2], ANY)];
            let f = move |x: &[Tensor]| x[0].conv3d_transpose(&x[1], options);
            cases.add(format!("conv3d_transpose {options:?}"), &inputs, f);
        }
    }),
];
