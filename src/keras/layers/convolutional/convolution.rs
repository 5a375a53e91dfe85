//! The common code of all convolutions: the checks before the kernel is created, and the operations
//! after the sums.

use crate::error::{Error, Result, message};
use crate::keras::layers::shapes::{expect_axes, positive};
use crate::keras::{Activation, Context, Regularizer};
use crate::ops::Padding;
use crate::tensor::Tensor;

/// The windows of a convolution along all spatial axes.
pub(super) struct Windows<'a> {
    pub(super) kernel_size: &'a [usize],
    pub(super) strides: &'a [usize],
    pub(super) dilation_rate: &'a [usize],
    pub(super) padding: Padding,
}

impl Windows<'_> {
    /// Refuses windows that do not fit an input; returns the number of its channels.
    pub(super) fn check(&self, layer: &str, x: &Tensor) -> Result<usize> {
        let axes = self.kernel_size.len();
        expect_axes(layer, x, axes)?;
        positive(layer, "kernel_size", self.kernel_size)?;
        positive(layer, "strides", self.strides)?;
        positive(layer, "dilation_rate", self.dilation_rate)?;
        let spans = self.kernel_size.iter().zip(self.dilation_rate);
        // No input is as large as a span that overflows.
        let spans = spans.map(|(size, rate)| (size - 1).saturating_mul(*rate).saturating_add(1));
        let sizes = &x.shape()[1..=axes];
        if self.padding == Padding::Valid
            && sizes.iter().zip(spans).any(|(size, span)| *size < span)
        {
            return Err(Error::Shape(message!(
                "{layer}: the input is {:?}, which is smaller than a kernel of {:?} with a dilation_rate of {:?}. Pad it \
                 (padding 'same'), or take smaller kernels.",
                x.shape(),
                self.kernel_size,
                self.dilation_rate
            )));
        }
        Ok(x.shape()[axes + 1])
    }
}

/// Refuses groups that do not divide channels and filters; returns the number of channels of each
/// group.
pub(super) fn channels_of_group(
    layer: &str,
    groups: usize,
    channels: usize,
    filters: usize,
) -> Result<usize> {
    positive(layer, "filters", &[filters])?;
    if groups == 0 || !channels.is_multiple_of(groups) || !filters.is_multiple_of(groups) {
        return Err(Error::Shape(message!(
            "{layer}: {groups} groups, {channels} channels and {filters} filters; the groups must divide both."
        )));
    }
    Ok(channels / groups)
}

/// `activation(sums + bias)`, and the penalty on it.
pub(super) fn finish(
    mut sums: Tensor,
    bias: Option<Tensor>,
    activation: Activation,
    penalty: Option<&Regularizer>,
    cx: Context<'_>,
) -> Result<Tensor> {
    if let Some(bias) = bias {
        sums = sums.add(bias)?;
    }
    let y = activation.apply(&sums)?;
    cx.regularize(penalty, &y)?;
    Ok(y)
}
