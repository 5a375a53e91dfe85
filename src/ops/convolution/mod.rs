//! Convolutions composed of convolutions of images: along one axis, of volumes, of any rank, separable, dilated,
//! transposed.
//!
//! A signal is an image of one row. A volume is a batch of frames: the windows along the depth become channels
//! (`volumes.rs`). A transposed convolution is the gradient of a convolution with respect to its input
//! (`transposed.rs`).

mod options;
mod transposed;
mod volumes;

pub use options::{
    Conv1dOptions, Conv1dTransposeOptions, Conv2dTransposeOptions, Conv3dOptions,
    Conv3dTransposeOptions, ConvolutionOptions,
};
pub(super) use transposed::ENTRIES as TRANSPOSED;

use super::conv2d::{Conv2dOptions, Padding};
use super::inventory::{ANY, Answer, Args, Entry, Input, OpKind, Stop, one};
use crate::error::{Error, Result, message};
use crate::tensor::{Operand, Tensor};

impl Tensor {
    /// Convolves signals `[N,W,C]` with `filters` `[K,C,O]`; the result has the shape `[N,OW,O]`:
    /// `y[n,j,o] = sum over v,c of x[n, j*stride + v*dilation - left, c] * w[v,c,o]`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Conv1dOptions, Tensor};
    /// let signal = Tensor::from_slice(&[1.0, 2.0, 4.0, 8.0], [1, 4, 1])?;
    /// let difference = Tensor::from_slice(&[-1.0, 1.0], [2, 1, 1])?;
    /// let y = signal.conv1d(&difference, Conv1dOptions::new())?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::conv2d`], with ranks of 3.
    pub fn conv1d(&self, filters: impl Into<Operand>, options: Conv1dOptions) -> Result<Tensor> {
        let filters = filters.into().into_tensor_like("Conv1D", self)?;
        check_ranks("Conv1D", self, &filters, ["[N,W,C]", "[K,C,O]"])?;
        options.padding.check("Conv1D", 1, self.shape()[2])?;
        let options = Conv2dOptions::new()
            .strides([1, options.stride])
            .padding(options.padding.under_axis())
            .dilations([1, options.dilations]);
        self.expand_dims(1)?.conv2d(filters.expand_dims(0)?, options)?.squeeze(1)
    }

    /// Convolves along the axes between batch and channels, of which there may be one to three: like [`Tensor::conv1d`],
    /// [`Tensor::conv2d`] or [`Tensor::conv3d`], depending on the rank.
    ///
    /// # Errors
    /// [`Error::Shape`] if the rank is not 3, 4 or 5, or a list has neither one number nor one for each axis; otherwise same as
    /// [`Tensor::conv2d`].
    pub fn convolution(
        &self,
        filters: impl Into<Operand>,
        options: ConvolutionOptions,
    ) -> Result<Tensor> {
        let filters = filters.into().into_tensor_like("Convolution", self)?;
        let (strides, padding) = (&options.strides[..], options.padding);
        let dilations = &options.dilations[..];
        match self.rank() {
            3 => {
                let ([stride], [dilation]) = (each(strides)?, each(dilations)?);
                let options = Conv1dOptions::new().stride(stride).padding(padding);
                self.conv1d(filters, options.dilations(dilation))
            }
            4 => {
                let options = Conv2dOptions::new().strides(each(strides)?).padding(padding);
                self.conv2d(filters, options.dilations(each(dilations)?))
            }
            5 => {
                let options = Conv3dOptions::new().strides(each(strides)?).padding(padding);
                self.conv3d(filters, options.dilations(each(dilations)?))
            }
            _ => Err(Error::Shape(message!(
                "Convolution: the input is {:?}; it needs a batch, one to three axes of space and channels.",
                self.shape()
            ))),
        }
    }

    /// Convolves with `rate - 1` gaps between the elements of a window: [`Tensor::conv2d`] with dilations.
    ///
    /// # Errors
    /// As [`Tensor::conv2d`].
    pub fn atrous_conv2d(
        &self,
        filters: impl Into<Operand>,
        rate: usize,
        padding: impl Into<Padding>,
    ) -> Result<Tensor> {
        self.conv2d(filters, Conv2dOptions::new().padding(padding).dilations([rate; 2]))
    }

    /// Convolves each channel separately with `depthwise_filter` `[KH,KW,C,M]`, and mixes the C*M results at each position with
    /// `pointwise_filter` `[1,1,C*M,O]`.
    ///
    /// # Errors
    /// Same as [`Tensor::depthwise_conv2d`] and [`Tensor::conv2d`]; [`Error::Shape`] if the second filter is not `1 x 1`.
    pub fn separable_conv2d(
        &self,
        depthwise_filter: impl Into<Operand>,
        pointwise_filter: impl Into<Operand>,
        options: Conv2dOptions,
    ) -> Result<Tensor> {
        let channels = self.depthwise_conv2d(depthwise_filter, options)?;
        let mix = pointwise_filter.into().into_tensor_like("SeparableConv2D", self)?;
        let all = channels.shape()[3];
        if !matches!(mix.shape(), &[1, 1, c, _] if c == all) {
            return Err(Error::Shape(message!(
                "SeparableConv2D: the pointwise filter is {:?}; it must be [1, 1, {all}, O], as each position has \
                 {all} channels after the depthwise convolution.",
                mix.shape()
            )));
        }
        channels.conv2d(mix, Conv2dOptions::new())
    }
}

/// Returns an error if the ranks of inputs and filters are not those of the given layouts.
fn check_ranks(op: &str, x: &Tensor, filters: &Tensor, layouts: [&str; 2]) -> Result<()> {
    let rank = layouts[0].split(',').count();
    if [x.rank(), filters.rank()] == [rank; 2] {
        return Ok(());
    }
    Err(Error::Shape(message!(
        "{op}: the input is {:?} and the filters {:?}; the input needs the {rank} axes {} and the filters {}. Use \
         expand_dims or reshape.",
        x.shape(),
        filters.shape(),
        layouts[0],
        layouts[1]
    )))
}

/// A number for each axis, or one for all.
fn each<const N: usize>(list: &[usize]) -> Result<[usize; N]> {
    match *list {
        [all] => Ok([all; N]),
        _ => list.try_into().map_err(|_| {
            Error::Shape(message!(
                "Convolution: {list:?} has {} numbers for {N} axes of space; give one for each, or one for all.",
                list.len()
            ))
        }),
    }
}

/// Numbers of a call by name: one for all axes, one for each, or TensorFlow's list with batch and channels.
fn by_name<const N: usize>(c: &Args, key: &str) -> Answer<[usize; N]> {
    let Some(list) = c.sizes(key)? else { return Ok([1; N]) };
    let inner = if list.len() == N + 2 { &list[1..=N] } else { &list[..] };
    each(inner).map_err(|_| Stop::Lacks(key.into()))
}

/// The inventory of this file and of `volumes.rs`.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Composed, "conv1d", &["tf.nn.conv1d"], |c| {
        let [stride] = by_name(c, "stride")?;
        let [dilation] = by_name(c, "dilations")?;
        let options = Conv1dOptions::new().stride(stride).padding(Padding::from_args(c)?);
        one(c.x()?.conv1d(c.arg("w")?, options.dilations(dilation)))
    })
    .cases(|cases| {
        let options = [
            Conv1dOptions::new(),
            Conv1dOptions::new().stride(2).padding(Padding::Same),
            Conv1dOptions::new().dilations(2).padding([(1, 3)]),
        ];
        for options in options {
            let inputs: [Input; 2] = [(&[2, 7, 2], ANY), (&[3, 2, 3], ANY)];
            let f = move |x: &[Tensor]| x[0].conv1d(&x[1], options);
            cases.add(format!("conv1d {options:?}"), &inputs, f);
        }
    }),
    Entry::new(OpKind::Composed, "conv3d", &["tf.nn.conv3d"], |c| {
        let options = Conv3dOptions::new()
            .strides(by_name(c, "strides")?)
            .padding(Padding::from_args(c)?)
            .dilations(by_name(c, "dilations")?);
        one(c.x()?.conv3d(c.arg("w")?, options))
    })
    .cases(|cases| {
        let options = [
            Conv3dOptions::new(),
            Conv3dOptions::new().strides([2, 1, 2]).padding(Padding::Same),
            Conv3dOptions::new().dilations([2, 1, 1]).padding([(1, 2), (0, 1), (1, 0)]),
        ];
        for options in options {
            let inputs: [Input; 2] = [(&[1, 4, 3, 4, 2], ANY), (&[2, 2, 3, 2, 2], ANY)];
            let f = move |x: &[Tensor]| x[0].conv3d(&x[1], options);
            cases.add(format!("conv3d {options:?}"), &inputs, f);
        }
    }),
    Entry::new(OpKind::Composed, "convolution", &["tf.nn.convolution"], |c| {
        let options = ConvolutionOptions::new()
            .strides(c.sizes("strides")?.unwrap_or_else(|| vec![1]))
            .padding(Padding::from_args(c)?)
            .dilations(c.sizes("dilations")?.unwrap_or_else(|| vec![1]));
        one(c.x()?.convolution(c.arg("w")?, options))
    })
    .cases(|cases| {
        let options = || ConvolutionOptions::new().padding(Padding::Same).strides([2]);
        cases.add("convolution", &[(&[1, 5, 2], ANY), (&[3, 2, 2], ANY)], move |x| {
            x[0].convolution(&x[1], options())
        });
    }),
    Entry::new(OpKind::Composed, "atrous_conv2d", &["tf.nn.atrous_conv2d"], |c| {
        one(c.x()?.atrous_conv2d(c.arg("w")?, c.size("rate")?, Padding::from_args(c)?))
    })
    .cases(|cases| {
        cases.add("atrous_conv2d", &[(&[1, 5, 6, 1], ANY), (&[2, 3, 1, 2], ANY)], |x| {
            x[0].atrous_conv2d(&x[1], 2, Padding::Same)
        });
    }),
    Entry::new(OpKind::Composed, "separable_conv2d", &["tf.nn.separable_conv2d"], |c| {
        one(c.x()?.separable_conv2d(c.arg("dw")?, c.arg("pw")?, Conv2dOptions::from_args(c)?))
    })
    .cases(|cases| {
        let inputs: [Input; 3] = [(&[1, 4, 4, 2], ANY), (&[2, 3, 2, 2], ANY), (&[1, 1, 4, 3], ANY)];
        cases.add("separable_conv2d", &inputs, |x| {
            let options = Conv2dOptions::new().padding(Padding::Same);
            x[0].separable_conv2d(&x[1], &x[2], options)
        });
    }),
];
