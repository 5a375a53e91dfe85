//! Pools along one axis, of volumes and of any rank, and max pooling with indices, composed of the pools of images.
//!
//! A window is a box, so a volume is pooled plane by plane, and then along its depth. The first of equal maxima is the
//! same as in one pass, because the planes are in order; a mean of means is the mean, because all windows of a plane
//! have the same number of positions inside.

use super::super::conv2d::{FARTHEST, Padding};
use super::super::inventory::{self, ANY, Answer, Args, Cases, Entry, Stop, Values, one};
use super::super::pad::pad_with;
use super::geometry::Windows;
use super::{Pool, Pool2dOptions, PoolKind};
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::support::options::options;
use crate::tensor::Tensor;

options! {
    /// The placement of a pooling's windows along one axis.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Pool1dOptions {
        /// The stride of the windows; the window size by default (`None`), so that windows are adjacent.
        strides: Option<usize> as usize = None,
        /// The padding; `Valid` by default.
        padding: Padding as impl Into<Padding> = Padding::Valid,
    }
}

options! {
    /// The placement of a pooling's windows in volumes, each size as (depth, rows, columns).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Pool3dOptions {
        /// The stride of the windows; the window size by default (`None`), so that windows are adjacent.
        strides: Option<[usize; 3]> as [usize; 3] = None,
        /// The padding of the volume; `Valid` by default.
        padding: Padding as impl Into<Padding> = Padding::Valid,
    }
}

options! {
    /// The placement of a pooling's windows along one to three axes. A list of one number applies to all axes.
    #[derive(Debug, Clone, PartialEq, Eq, Hash)]
    pub struct PoolOptions {
        /// The stride of the windows; 1 by default.
        strides: Vec<usize> as impl Into<Vec<usize>> = vec![1],
        /// The padding; `Valid` by default.
        padding: Padding as impl Into<Padding> = Padding::Valid,
        /// The distance between the elements within a window; 1 by default.
        dilations: Vec<usize> as impl Into<Vec<usize>> = vec![1],
    }
}

options! {
    /// The placement of windows, and how indices in images are counted.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct MaxPoolWithArgmaxOptions {
        /// The stride of the windows; the window size by default (`None`), so that windows are adjacent.
        strides: Option<[usize; 2]> as [usize; 2] = None,
        /// The padding of the image; `Valid` by default.
        padding: Padding as impl Into<Padding> = Padding::Valid,
        /// Whether an index counts the images before its own; `false` by default.
        include_batch_in_index: bool = false,
    }
}

/// The reduction of each window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PoolingType {
    /// The largest element.
    Max,
    /// The mean of the elements inside.
    Avg,
}

impl PoolingType {
    fn op(self, axes: usize) -> &'static str {
        match (self, axes) {
            (PoolingType::Max, 1) => "MaxPool1D",
            (PoolingType::Avg, 1) => "AvgPool1D",
            (PoolingType::Max, _) => "MaxPool3D",
            (PoolingType::Avg, _) => "AvgPool3D",
        }
    }

    /// Pools images `[N,H,W,C]`.
    pub(super) fn images(self, x: &Tensor, windows: Windows) -> Result<Tensor> {
        let kind = if self == PoolingType::Max { PoolKind::Max } else { PoolKind::Average };
        dispatch(Pool { kind, options: windows }, &[x])
    }

    /// Pools along one axis.
    pub(super) fn along(
        self,
        x: &Tensor,
        axis: usize,
        [window, stride]: [usize; 2],
        padding: Padding,
    ) -> Result<Tensor> {
        let padding = match padding.first_edges() {
            Some(edges) => [edges, (0, 0)].into(),
            None => padding,
        };
        let mut shape = x.shape().to_vec();
        let product = |sizes: &[usize]| crate::shape::Shape::new(sizes).elements();
        let image = [product(&shape[..axis]), shape[axis], 1, product(&shape[axis + 1..])];
        let windows = Windows { window: [window, 1], strides: [stride, 1], padding };
        let pooled = self.images(&x.reshape_to(image.into())?, windows)?;
        shape[axis] = pooled.shape()[1];
        pooled.reshape_to(shape.into())
    }

    /// Pools signals `[N,W,C]`.
    fn signals(self, x: &Tensor, window: usize, options: Pool1dOptions) -> Result<Tensor> {
        let op = self.op(1);
        expect_rank(op, x, 3, "[N,W,C]")?;
        let stride = options.strides.unwrap_or(window);
        expect_sizes(op, &[window], &[stride])?;
        options.padding.check(op, 1, x.shape()[2])?;
        self.along(x, 1, [window, stride], options.padding)
    }

    /// Pools volumes `[N,D,H,W,C]`.
    fn volumes(self, x: &Tensor, window: [usize; 3], options: Pool3dOptions) -> Result<Tensor> {
        let op = self.op(3);
        expect_rank(op, x, 5, "[N,D,H,W,C]")?;
        let strides = options.strides.unwrap_or(window);
        expect_sizes(op, &window, &strides)?;
        options.padding.check(op, 3, x.shape()[4])?;
        let ([kd, kh, kw], [sd, sh, sw]) = (window, strides);
        let &[n, d, h, w, c] = x.shape() else { unreachable!("the rank has been checked") };
        let frames = x.reshape_to([n.saturating_mul(d), h, w, c].into())?;
        let padding = options.padding.of_axes_from(1);
        let planes =
            self.images(&frames, Windows { window: [kh, kw], strides: [sh, sw], padding })?;
        let &[_, oh, ow, _] = planes.shape() else { unreachable!("images have four axes") };
        let volume = planes.reshape_to([n, d, oh, ow, c].into())?;
        self.along(&volume, 1, [kd, sd], options.padding)
    }
}

impl Tensor {
    /// The largest element of each window of size `window` of signals `[N,W,C]`; NaN if the window contains NaN.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Pool1dOptions, Tensor};
    /// let x = Tensor::from_slice(&[1.0, 5.0, 2.0, 3.0], [1, 4, 1])?;
    /// assert_eq!(x.max_pool1d(2, Pool1dOptions::new())?.to_vec::<f32>()?, [5.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::max_pool2d`], with a rank of 3.
    pub fn max_pool1d(&self, window: usize, options: Pool1dOptions) -> Result<Tensor> {
        PoolingType::Max.signals(self, window, options)
    }

    /// The mean of the elements of each window of signals `[N,W,C]` that are inside.
    ///
    /// # Errors
    /// As [`Tensor::max_pool1d`].
    pub fn avg_pool1d(&self, window: usize, options: Pool1dOptions) -> Result<Tensor> {
        PoolingType::Avg.signals(self, window, options)
    }

    /// The largest element of each window of (depth, rows, columns) of volumes `[N,D,H,W,C]`; NaN if the window
    /// contains NaN.
    ///
    /// # Errors
    /// As [`Tensor::max_pool2d`], with a rank of 5.
    pub fn max_pool3d(&self, window: [usize; 3], options: Pool3dOptions) -> Result<Tensor> {
        PoolingType::Max.volumes(self, window, options)
    }

    /// The mean of the elements of each window of volumes `[N,D,H,W,C]` that are inside.
    ///
    /// # Errors
    /// As [`Tensor::max_pool3d`].
    pub fn avg_pool3d(&self, window: [usize; 3], options: Pool3dOptions) -> Result<Tensor> {
        PoolingType::Avg.volumes(self, window, options)
    }

    /// Pools along the axes between batch and channels, of which there may be one to three, with windows of the sizes
    /// `window`. The windows may be dilated if nothing is padded.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{PoolOptions, PoolingType, Tensor};
    /// let x = Tensor::from_slice(&[1.0, 5.0, 2.0, 3.0], [1, 4, 1])?;
    /// let y = x.pool(&[2], PoolingType::Max, PoolOptions::new().dilations([2]))?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, 5.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the rank is not 3, 4 or 5, a list has neither one number nor one for each axis, a size is 0,
    /// or dilated windows are padded; [`Error::DType`] if the dtype is not float.
    pub fn pool(
        &self,
        window: &[usize],
        pooling_type: PoolingType,
        options: PoolOptions,
    ) -> Result<Tensor> {
        let axes = self.rank().saturating_sub(2);
        if !(1..=3).contains(&axes) {
            return Err(Error::Shape(message!(
                "Pool: the input is {:?}; it needs a batch, one to three axes of space and channels.",
                self.shape()
            )));
        }
        let [window, strides, dilations] =
            [window, &options.strides, &options.dilations].map(|l| spread(l, axes));
        let (window, strides, dilations) = (window?, strides?, dilations?);
        expect_sizes("Pool", &window, &strides)?;
        expect_sizes("Pool", &dilations, &[])?;
        if dilations.iter().all(|&d| d == 1) {
            options.padding.check("Pool", axes, self.shape()[axes + 1])?;
            if axes == 2 {
                let of = [window[0], window[1]];
                let strides = [strides[0], strides[1]];
                let windows = Windows { window: of, strides, padding: options.padding };
                return pooling_type.images(self, windows);
            }
            // The last axis is pooled first, so that equal maxima are found in the order of the elements.
            return (0..axes).rev().try_fold(self.clone(), |x, axis| {
                pooling_type.along(
                    &x,
                    axis + 1,
                    [window[axis], strides[axis]],
                    options.padding.of_axes_from(axis),
                )
            });
        }
        if options.padding != Padding::Valid {
            return Err(Error::Shape(message!(
                "Pool: the dilations {dilations:?} leave gaps in the windows, and such windows cannot reach beyond the ends; \
                 use Padding::Valid, and pad before."
            )));
        }
        (0..axes).rev().try_fold(self.clone(), |x, axis| {
            let of = [window[axis], strides[axis], dilations[axis]];
            with_gaps(pooling_type, &x, axis + 1, of)
        })
    }

    /// The largest element of each window of (rows, columns) of images `[N,H,W,C]`, and its flat index
    /// `(y * W + x) * C + c` in its image, as `i32`; the first one in case of ties.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{MaxPoolWithArgmaxOptions, Tensor};
    /// let x = Tensor::from_slice(&[1.0, 5.0, 2.0, 3.0], [1, 2, 2, 1])?;
    /// let (y, place) = x.max_pool_with_argmax([2, 2], MaxPoolWithArgmaxOptions::new())?;
    /// assert_eq!((y.item::<f32>()?, place.item::<i32>()?), (5.0, 1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::max_pool2d`].
    pub fn max_pool_with_argmax(
        &self,
        window: [usize; 2],
        options: MaxPoolWithArgmaxOptions,
    ) -> Result<(Tensor, Tensor)> {
        let MaxPoolWithArgmaxOptions { strides, padding, .. } = options;
        let windows = Windows::new(window, Pool2dOptions { strides, padding });
        let largest = PoolingType::Max.images(self, windows)?;
        let places = dispatch(Pool { kind: PoolKind::ArgMax, options: windows }, &[self])?;
        let image = crate::shape::Shape::new(&self.shape()[1..]).elements();
        match options.include_batch_in_index {
            false if !places.is_empty() => Ok((largest, places.floormod(image)?)),
            _ => Ok((largest, places)),
        }
    }
}

/// Pools along one axis with dilated windows: positions whose indices have the same remainder become a column.
fn with_gaps(
    kind: PoolingType,
    x: &Tensor,
    axis: usize,
    [window, stride, dilation]: [usize; 3],
) -> Result<Tensor> {
    let size = x.shape()[axis];
    let span = (window - 1).saturating_mul(dilation).saturating_add(1);
    let out = (size + 1).saturating_sub(span);
    // Windows beyond the end are removed afterwards, whatever their values.
    let gaps = dilation.min(size.max(1));
    let rows = size.div_ceil(gaps);
    let mut edges = smallvec::smallvec![(0, 0, 1); x.rank()];
    edges[axis] = (0, (rows * gaps - size) as i64, 1);
    let padded = pad_with(x, edges, 0.into())?;
    let mut apart = x.shape().to_vec();
    apart.splice(axis..=axis, [rows, gaps]);
    let pooled =
        kind.along(&padded.reshape_to(apart.into())?, axis, [window, 1], Padding::Valid)?;
    let mut shape = x.shape().to_vec();
    shape[axis] = pooled.shape()[axis] * gaps;
    let mut edges = smallvec::smallvec![(0, 0, 1); x.rank()];
    edges[axis] = (0, out as i64 - shape[axis] as i64, 1);
    let whole = pad_with(&pooled.reshape_to(shape.into())?, edges, 0.into())?;
    whole.take_steps((0..x.rank()).map(|k| if k == axis { stride } else { 1 }))
}

pub(super) fn expect_rank(op: &str, x: &Tensor, rank: usize, layout: &str) -> Result<()> {
    if x.rank() == rank {
        return Ok(());
    }
    Err(Error::Shape(message!(
        "{op}: the input is {:?}; it needs the {rank} axes {layout}. Use expand_dims or reshape.",
        x.shape()
    )))
}

fn expect_sizes(op: &str, window: &[usize], strides: &[usize]) -> Result<()> {
    if window.iter().chain(strides).all(|n| (1..=FARTHEST).contains(n)) {
        return Ok(());
    }
    Err(Error::Shape(message!(
        "{op}: the window {window:?} and the strides {strides:?} must all be in 1 to {FARTHEST}."
    )))
}

/// A number for each of some axes, or one for all.
fn spread(list: &[usize], axes: usize) -> Result<Vec<usize>> {
    match list {
        [all] => Ok(vec![*all; axes]),
        list if list.len() == axes => Ok(list.to_vec()),
        list => Err(Error::Shape(message!(
            "Pool: {list:?} has {} numbers for {axes} axes of space; give one for each, or one for all.",
            list.len()
        ))),
    }
}

fn by_name<const N: usize>(c: &Args, key: &str) -> Answer<[usize; N]> {
    let list = c.need(key, c.sizes(key)?)?;
    let inner = if list.len() == N + 2 { &list[1..=N] } else { &list[..] };
    let all = if let [all] = inner { vec![*all; N] } else { inner.to_vec() };
    all.try_into().map_err(|_| Stop::Lacks(key.into()))
}

fn signal_options(c: &Args) -> Answer<(usize, Pool1dOptions)> {
    let ([window], [stride]) = (by_name(c, "ksize")?, by_name(c, "strides")?);
    Ok((window, Pool1dOptions::new().strides(stride).padding(Padding::from_args(c)?)))
}

fn volume_options(c: &Args) -> Answer<([usize; 3], Pool3dOptions)> {
    let strides: [usize; 3] = by_name(c, "strides")?;
    Ok((
        by_name(c, "ksize")?,
        Pool3dOptions::new().strides(strides).padding(Padding::from_args(c)?),
    ))
}

fn signals_of_cases(
    cases: &mut Cases,
    name: &str,
    values: Values,
    f: fn(&Tensor, usize, Pool1dOptions) -> Result<Tensor>,
) {
    let base = Pool1dOptions::new();
    for options in [base, base.strides(2).padding(Padding::Same), base.padding([(1, 2)])] {
        let name = format!("{name} {options:?}");
        cases.add(name, &[(&[2, 7, 2], values)], move |x| f(&x[0], 3, options));
    }
}

fn volumes_of_cases(
    cases: &mut Cases,
    name: &str,
    values: Values,
    f: fn(&Tensor, [usize; 3], Pool3dOptions) -> Result<Tensor>,
) {
    let base = Pool3dOptions::new();
    for options in [base, base.strides([2, 1, 2]).padding(Padding::Same)] {
        let name = format!("{name} {options:?}");
        cases.add(name, &[(&[1, 4, 3, 4, 2], values)], move |x| f(&x[0], [2, 3, 2], options));
    }
}

/// The inventory of this file.
pub(in super::super) const ENTRIES: &[Entry] = &[
    Entry::new(inventory::OpKind::Composed, "max_pool1d", &["tf.nn.max_pool1d"], |c| {
        let (window, options) = signal_options(c)?;
        one(c.x()?.max_pool1d(window, options))
    })
    .cases(|cases| {
        signals_of_cases(cases, "max_pool1d", Values::Distinct(0.0), |x, k, options| {
            x.max_pool1d(k, options)
        });
    }),
    Entry::new(inventory::OpKind::Composed, "avg_pool1d", &["tf.nn.avg_pool1d"], |c| {
        let (window, options) = signal_options(c)?;
        one(c.x()?.avg_pool1d(window, options))
    })
    .cases(|cases| {
        signals_of_cases(cases, "avg_pool1d", ANY, |x, k, options| x.avg_pool1d(k, options));
    }),
    Entry::new(inventory::OpKind::Composed, "max_pool3d", &["tf.nn.max_pool3d"], |c| {
        let (window, options) = volume_options(c)?;
        one(c.x()?.max_pool3d(window, options))
    })
    .cases(|cases| {
        volumes_of_cases(cases, "max_pool3d", Values::Distinct(0.0), |x, k, options| {
            x.max_pool3d(k, options)
        });
    }),
    Entry::new(inventory::OpKind::Composed, "avg_pool3d", &["tf.nn.avg_pool3d"], |c| {
        let (window, options) = volume_options(c)?;
        one(c.x()?.avg_pool3d(window, options))
    })
    .cases(|cases| {
        volumes_of_cases(cases, "avg_pool3d", ANY, |x, k, options| x.avg_pool3d(k, options));
    }),
    Entry::new(inventory::OpKind::Composed, "pool", &["tf.nn.pool"], |c| {
        let kind = match c.need("pooling_type", c.text("pooling_type")?)?.as_str() {
            "MAX" => PoolingType::Max,
            "AVG" => PoolingType::Avg,
            _ => return Err(Stop::Lacks("pooling_type".into())),
        };
        let options = PoolOptions::new()
            .strides(c.sizes("strides")?.unwrap_or_else(|| vec![1]))
            .padding(Padding::from_args(c)?)
            .dilations(c.sizes("dilations")?.unwrap_or_else(|| vec![1]));
        one(c.x()?.pool(&c.need("window_shape", c.sizes("window_shape")?)?, kind, options))
    })
    .cases(|cases| {
        cases.add("pool with gaps", &[(&[1, 7, 5, 2], Values::Distinct(0.0))], |x| {
            let options = PoolOptions::new().dilations([3, 2]).strides([2, 1]);
            x[0].pool(&[2], PoolingType::Max, options)
        });
        cases.add("pool to means", &[(&[1, 4, 3, 5, 1], ANY)], |x| {
            x[0].pool(&[2, 3, 2], PoolingType::Avg, PoolOptions::new().padding(Padding::Same))
        });
    }),
    Entry::new(
        inventory::OpKind::Kernel,
        "max_pool_with_argmax",
        &["tf.nn.max_pool_with_argmax"],
        |c| {
            let options = MaxPoolWithArgmaxOptions::new()
                .strides(by_name(c, "strides")?)
                .padding(Padding::from_args(c)?)
                .include_batch_in_index(c.flag("include_batch_in_index")?);
            let (y, places) = c.x()?.max_pool_with_argmax(by_name(c, "ksize")?, options)?;
            Ok(vec![y, places])
        },
    )
    .cases(|cases| {
        cases.add("max_pool_with_argmax", &[(&[2, 4, 4, 1], Values::Distinct(0.0))], |x| {
            Ok(x[0].max_pool_with_argmax([3, 2], MaxPoolWithArgmaxOptions::new())?.0)
        });
    }),
];
