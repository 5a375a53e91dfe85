//! Adaptive pooling: the windows are chosen so that there is a given number of results along each axis, by PyTorch's
//! rule.
//!
//! Result i of n along an axis of size L covers the positions from `floor(i L / n)` to `ceil((i + 1) L / n)`, so
//! neighbours may share a position. If n divides L, all windows are equal, and the pools of images compute the result.
//! Otherwise the windows' elements are gathered next to each other.

use super::super::conv2d::{FARTHEST, Padding};
use super::super::gather::GatherOptions;
use super::super::inventory::{self, ANY, Cases, Entry, Values, one};
use super::super::{FLOATS, expect_dtype};
use super::geometry::Windows;
use super::ranks::{PoolingType, expect_rank};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::tensor::Tensor;

/// Methods that pool to a given number of results along each axis.
macro_rules! adaptive {
    ($($(#[$doc:meta])* $name:ident, $op:literal, $kind:ident, $axes:literal, $layout:literal;)*) => {
        impl Tensor {$(
            $(#[$doc])*
            ///
            /// # Errors
            /// [`Error::Shape`] if the rank is wrong, or a size is 0; [`Error::DType`] if the dtype is not float.
            pub fn $name(&self, output_size: [usize; $axes]) -> Result<Tensor> {
                expect_rank($op, self, $axes + 2, $layout)?;
                pool($op, self, &output_size, PoolingType::$kind)
            }
        )*}
    };
}
// The first becomes `pub fn adaptive_avg_pool1d(&self, output_size: [usize; 1]) -> Result<Tensor>`.
adaptive! {
    /// The means of `output_size` windows that cover signals `[N,W,C]`: window i of n covers the positions from
    /// `floor(i W / n)` to `ceil((i + 1) W / n)`.
    adaptive_avg_pool1d, "AdaptiveAvgPool1D", Avg, 1, "[N,W,C]";
    /// The means of (rows, columns) windows that cover images `[N,H,W,C]`, along each axis as in
    /// [`adaptive_avg_pool1d`](Tensor::adaptive_avg_pool1d).
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::Tensor;
    /// let x = Tensor::from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0], [1, 1, 5, 1])?;
    /// assert_eq!(x.adaptive_avg_pool2d([1, 2])?.to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    adaptive_avg_pool2d, "AdaptiveAvgPool2D", Avg, 2, "[N,H,W,C]";
    /// The means of (depth, rows, columns) windows that cover volumes `[N,D,H,W,C]`, along each axis as in
    /// [`adaptive_avg_pool1d`](Tensor::adaptive_avg_pool1d).
    adaptive_avg_pool3d, "AdaptiveAvgPool3D", Avg, 3, "[N,D,H,W,C]";
    /// The largest elements of the windows of [`adaptive_avg_pool1d`](Tensor::adaptive_avg_pool1d).
    adaptive_max_pool1d, "AdaptiveMaxPool1D", Max, 1, "[N,W,C]";
    /// The largest elements of the windows of [`adaptive_avg_pool2d`](Tensor::adaptive_avg_pool2d).
    adaptive_max_pool2d, "AdaptiveMaxPool2D", Max, 2, "[N,H,W,C]";
    /// The largest elements of the windows of [`adaptive_avg_pool3d`](Tensor::adaptive_avg_pool3d).
    adaptive_max_pool3d, "AdaptiveMaxPool3D", Max, 3, "[N,D,H,W,C]";
}

fn pool(op: &str, x: &Tensor, sizes: &[usize], kind: PoolingType) -> Result<Tensor> {
    expect_dtype(op, x.spec(), FLOATS)?;
    let space = &x.shape()[1..=sizes.len()];
    if sizes.contains(&0) || space.contains(&0) || space.iter().chain(sizes).any(|n| *n > FARTHEST)
    {
        return Err(Error::Shape(message!(
            "{op}: {space:?} positions cannot be pooled to {sizes:?}; all of these must be in 1 to {FARTHEST}."
        )));
    }
    if let ([h, w], [oh, ow]) = (space, sizes) {
        if h % oh == 0 && w % ow == 0 {
            let window = [h / oh, w / ow];
            return kind.images(x, Windows { window, strides: window, padding: Padding::Valid });
        }
    }
    // The last axis is pooled first, so that equal maxima are found in the order of the elements.
    (0..sizes.len()).rev().try_fold(x.clone(), |x, k| along(op, &x, k + 1, sizes[k], kind))
}

/// The most window positions that the host lists.
const MOST: usize = 1 << 24;

/// Pools to `n` results along one axis.
fn along(op: &str, x: &Tensor, axis: usize, n: usize, kind: PoolingType) -> Result<Tensor> {
    let size = x.shape()[axis];
    if size.is_multiple_of(n) {
        return kind.along(x, axis, [size / n; 2], Padding::Valid);
    }
    if n.max(size) > MOST {
        return Err(Error::Shape(message!(
            "{op}: {size} positions do not divide into {n} windows of one size, and the host lists where each lies; \
             at most {MOST} positions or windows are possible. Choose a number that divides."
        )));
    }
    // In 64 bits on every machine.
    let edge = |i: usize| i as u64 * size as u64;
    let bin = |i: usize| (edge(i) / n as u64, edge(i + 1).div_ceil(n as u64));
    let bins: Vec<(usize, usize)> =
        (0..n).map(bin).map(|(from, to)| (from as usize, to as usize)).collect();
    let longest = bins.iter().map(|(from, to)| to - from).max().unwrap_or(1);
    let places: Vec<i32> = bins
        .iter()
        .flat_map(|&(from, to)| {
            (from..from + longest).map(move |place| match kind {
                // Repeating the last position does not change the maximum.
                PoolingType::Max => place.min(to - 1) as i32,
                // Outside the window: 0.
                PoolingType::Avg if place >= to => -1,
                PoolingType::Avg => place as i32,
            })
        })
        .collect();
    let counts: Vec<f32> = bins.iter().map(|(from, to)| (to - from) as f32).collect();
    let mut column = vec![1; x.rank()];
    column[axis] = n;
    let (places, counts) = x.device().scope(|| -> Result<(Tensor, Tensor)> {
        let places = Tensor::from_slice(&places, [places.len()])?;
        Ok((places, Tensor::from_slice(&counts, column)?))
    })?;
    let taken = |x: &Tensor| x.gather_with(&places, axis, GatherOptions::new());
    if kind == PoolingType::Max {
        return kind.along(&taken(x)?, axis, [longest; 2], Padding::Valid);
    }
    // A sum may exceed the range of f16 even if the mean does not.
    let wide = taken(&x.cast(DType::F32)?)?;
    let mut apart = wide.shape().to_vec();
    apart.splice(axis..=axis, [n, longest]);
    let sum = wide.reshape_to(apart.into())?.reduce_sum(axis + 1)?;
    sum.divide(counts)?.cast(x.dtype())
}

fn of_cases(
    cases: &mut Cases,
    name: &str,
    values: Values,
    f: fn(&Tensor, [usize; 2]) -> Result<Tensor>,
) {
    for size in [[2, 3], [3, 2], [4, 7]] {
        cases.add(format!("{name} {size:?}"), &[(&[1, 4, 5, 2], values)], move |x| f(&x[0], size));
    }
}

/// The inventory of this file.
pub(in super::super) const ENTRIES: &[Entry] = &[
    Entry::new(inventory::OpKind::Composed, "adaptive_avg_pool1d", &[], |c| {
        one(c.x()?.adaptive_avg_pool1d([c.size("output_size")?]))
    })
    .cases(|cases| {
        cases.add("adaptive_avg_pool1d", &[(&[2, 5, 1], ANY)], |x| x[0].adaptive_avg_pool1d([3]));
    }),
    Entry::new(inventory::OpKind::Composed, "adaptive_avg_pool2d", &[], |c| {
        one(c.x()?.adaptive_avg_pool2d(c.need("output_size", c.two("output_size")?)?))
    })
    .cases(|cases| {
        of_cases(cases, "adaptive_avg_pool2d", ANY, |x, size| x.adaptive_avg_pool2d(size));
    }),
    Entry::new(inventory::OpKind::Composed, "adaptive_avg_pool3d", &[], |c| {
        one(c.x()?.adaptive_avg_pool3d([c.size("output_size")?; 3]))
    })
    .cases(|cases| {
        cases.add("adaptive_avg_pool3d", &[(&[1, 3, 4, 5, 1], ANY)], |x| {
            x[0].adaptive_avg_pool3d([2, 2, 3])
        });
    }),
    Entry::new(inventory::OpKind::Composed, "adaptive_max_pool1d", &[], |c| {
        one(c.x()?.adaptive_max_pool1d([c.size("output_size")?]))
    })
    .cases(|cases| {
        cases.add("adaptive_max_pool1d", &[(&[2, 5, 1], Values::Distinct(0.0))], |x| {
            x[0].adaptive_max_pool1d([3])
        });
    }),
    Entry::new(inventory::OpKind::Composed, "adaptive_max_pool2d", &[], |c| {
        one(c.x()?.adaptive_max_pool2d(c.need("output_size", c.two("output_size")?)?))
    })
    .cases(|cases| {
        of_cases(cases, "adaptive_max_pool2d", Values::Distinct(0.0), |x, size| {
            x.adaptive_max_pool2d(size)
        });
    }),
    Entry::new(inventory::OpKind::Composed, "adaptive_max_pool3d", &[], |c| {
        one(c.x()?.adaptive_max_pool3d([c.size("output_size")?; 3]))
    })
    .cases(|cases| {
        cases.add("adaptive_max_pool3d", &[(&[1, 3, 4, 5, 1], Values::Distinct(0.0))], |x| {
            x[0].adaptive_max_pool3d([2, 2, 3])
        });
    }),
];
