//! Convolutions of volumes, computed as convolutions of images.
//!
//! The KD frames of a window become channels of one image, and the filter's depth becomes channels, too: the
//! convolution of volumes is then one of images, `[N*OD, H, W, KD*C]` with `[KH, KW, KD*C, O]`. Its sums are as long as
//! the volume's, so nothing is rounded in between, and the whole is one product.

use super::super::concat;
use super::super::conv2d::{Conv2dOptions, FARTHEST, Padding, windows};
use super::super::pad::pad_with;
use super::super::{FLOATS, expect_dtype, same_dtype};
use super::{Conv3dOptions, check_ranks};
use crate::error::{Error, Result, message};
use crate::tensor::{Operand, Tensor};

impl Tensor {
    /// Convolves volumes `[N,D,H,W,C]` with `filters` `[KD,KH,KW,C,O]`; the result has the shape `[N,OD,OH,OW,O]`:
    /// `y[n,l,i,j,o] = sum over t,u,v,c of x[n, l*sd + t*dd - front, i*sh + u*dh - top, j*sw + v*dw - left, c] *
    /// w[t,u,v,c,o]`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Conv3dOptions, Tensor};
    /// let volume = Tensor::ones([1, 3, 3, 3, 1])?;
    /// let y = volume.conv3d(&Tensor::ones([2, 2, 2, 1, 4])?, Conv3dOptions::new())?;
    /// assert_eq!(y.shape(), [1, 2, 2, 2, 4]);
    /// assert_eq!(y.to_vec::<f32>()?, [8.0; 32]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Same as [`Tensor::conv2d`], with ranks of 5; groups are not supported.
    pub fn conv3d(&self, filters: impl Into<Operand>, options: Conv3dOptions) -> Result<Tensor> {
        const OP: &str = "Conv3D";
        let filters = filters.into().into_tensor_like(OP, self)?;
        check_ranks(OP, self, &filters, ["[N,D,H,W,C]", "[KD,KH,KW,C,O]"])?;
        same_dtype(OP, self.spec(), filters.spec())?;
        expect_dtype(OP, self.spec(), FLOATS)?;
        let (&[n, d, h, w, c], &[kd, kh, kw, fc, o]) = (self.shape(), filters.shape()) else {
            unreachable!("the ranks have been checked");
        };
        if c != fc {
            return Err(Error::Shape(message!(
                "{OP}: the volumes {:?} have {c} channels and the filters {:?} expect {fc}; the last axis of the volumes \
                 must equal the fourth of the filters.",
                self.shape(),
                filters.shape()
            )));
        }
        options.padding.check(OP, 3, c)?;
        let ([sd, sh, sw], [dd, dh, dw]) = (options.strides, options.dilations);
        let plane = Conv2dOptions::new()
            .strides([sh, sw])
            .padding(options.padding.of_axes_from(1))
            .dilations([dh, dw]);
        let frames = Frames::new(OP, d, kd, sd, dd, options.padding)?;
        // An empty tensor may have other axes of any size.
        let images = n.saturating_mul(frames.out);
        let each = frames.at_once(images, &[h, w, c]);
        let mut sum: Option<Tensor> = None;
        for first in (0..kd).step_by(each) {
            let taps = first..kd.min(first + each);
            let count = taps.len();
            let taken: Result<Vec<Tensor>> =
                taps.clone().map(|tap| frames.take(self, tap)).collect();
            let x = concat(&taken?, -1)?.reshape_to([images, h, w, count * c].into())?;
            let part = filters.split_off(taps)?.transpose([1, 2, 0, 3, 4])?;
            let y = x.conv2d(part.reshape_to([kh, kw, count * c, o].into())?, plane)?;
            sum = Some(match sum {
                Some(sum) => sum.add(y)?,
                None => y,
            });
        }
        let Some(sum) = sum else { unreachable!("a window has at least one frame") };
        let &[_, oh, ow, _] = sum.shape() else { unreachable!("a convolution gives images") };
        sum.reshape_to([n, frames.out, oh, ow, o].into())
    }

    /// The filters of some frames.
    fn split_off(&self, taps: std::ops::Range<usize>) -> Result<Tensor> {
        let mut begin = vec![0; self.rank()];
        let mut size = vec![-1; self.rank()];
        begin[0] = taps.start;
        size[0] = taps.len() as i64;
        self.slice(&begin, &size)
    }
}

/// The frames that windows along the depth cover.
pub(super) struct Frames {
    depth: usize,
    window: usize,
    stride: usize,
    dilation: usize,
    front: usize,
    /// How many windows there are.
    pub(super) out: usize,
}

/// The most elements that are copied at once for overlapping windows.
const MOST: usize = 64 << 20;

impl Frames {
    pub(super) fn new(
        op: &str,
        depth: usize,
        window: usize,
        stride: usize,
        dilation: usize,
        padding: Padding,
    ) -> Result<Self> {
        let farthest = window.saturating_mul(dilation).max(stride).max(depth);
        if [window, stride, dilation].contains(&0) || farthest > FARTHEST {
            return Err(Error::Shape(message!(
                "{op}: along the depth the stride {stride}, the dilation {dilation} and the filter's size {window} \
                 must be at least 1, and neither the stride nor the dilated filter may span more than {FARTHEST} \
                 positions."
            )));
        }
        let (out, front) = windows(depth, window, stride, dilation, padding);
        Ok(Frames { depth, window, stride, dilation, front, out })
    }

    /// How many frames of a window to join in one image.
    fn at_once(&self, frames: usize, sizes: &[usize]) -> usize {
        // One kernel joins seven tensors.
        let frame = sizes.iter().fold(1, |n: usize, &size| n.saturating_mul(size));
        (MOST / frames.saturating_mul(frame).max(1)).clamp(1, 7)
    }

    /// The padding in front of frame `tap` of the first window; negative if that frame is inside the volume.
    fn low(&self, tap: usize) -> i64 {
        self.front as i64 - (tap * self.dilation) as i64
    }

    /// How many positions the same frame of all windows spans.
    fn span(&self) -> i64 {
        if self.out == 0 { 0 } else { ((self.out - 1) * self.stride + 1) as i64 }
    }

    /// Frame `tap` of every window: `[N,D,..]` to `[N,OD,..]`, zeros where it is outside.
    fn take(&self, x: &Tensor, tap: usize) -> Result<Tensor> {
        let low = self.low(tap);
        let high = self.span() - low - self.depth as i64;
        let mut edges = smallvec::smallvec![(0, 0, 1); x.rank()];
        edges[1] = (low, high, 1);
        let mut steps = vec![1; x.rank()];
        steps[1] = self.stride;
        pad_with(x, edges, 0.into())?.take_steps(steps.into_iter())
    }

    /// The reverse of `take`: puts `[N,OD,..]` at the positions of the windows' frame `tap` in `[N,D,..]`, and zeros
    /// elsewhere.
    fn give(&self, y: &Tensor, tap: usize) -> Result<Tensor> {
        let low = -self.low(tap);
        let high = self.depth as i64 - low - self.span();
        let mut edges = smallvec::smallvec![(0, 0, 1); y.rank()];
        edges[1] = (low, high, self.stride as i64);
        pad_with(y, edges, 0.into())
    }
}

/// A transposed convolution of images, with filters and the number of frames that their results hold.
type OfImages<'a> = &'a dyn Fn(&Tensor, &Tensor, usize) -> Result<Tensor>;

/// Spreads `x` `[N,OD,OH,OW,C]` by `filters` `[KD,KH,KW,O,C]` over `[N,D,H,W,O]`.
pub(super) fn transpose(
    x: &Tensor,
    filters: &Tensor,
    frames: &Frames,
    of_images: OfImages,
) -> Result<Tensor> {
    let (&[n, deep, h, w, c], &[kd, kh, kw, o, fc]) = (x.shape(), filters.shape()) else {
        unreachable!("the ranks have been checked");
    };
    let count = n.saturating_mul(deep);
    let images = x.reshape_to([count, h, w, c].into())?;
    let each = frames.at_once(count, &[h, w, o]);
    let mut sum: Option<Tensor> = None;
    for first in (0..frames.window).step_by(each) {
        let taps = first..kd.min(first + each);
        let count = taps.len();
        let part = filters.split_off(taps.clone())?.transpose([1, 2, 0, 3, 4])?;
        let part = part.reshape_to([kh, kw, count * o, fc].into())?;
        let y = of_images(&images, &part, count)?;
        let &[_, high, wide, _] = y.shape() else { unreachable!("it gives images") };
        let y = y.reshape_to([n, deep, high, wide, count * o].into())?;
        for (tap, frame) in taps.zip(y.split(count, -1)?) {
            let there = frames.give(&frame, tap)?;
            sum = Some(match sum {
                Some(sum) => sum.add(there)?,
                None => there,
            });
        }
    }
    sum.ok_or_else(|| unreachable!("a window has at least one frame"))
}
