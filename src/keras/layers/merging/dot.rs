//! [`Dot`]: products of two tensors' vectors.

use crate::error::{Error, Result, message};
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::shape::axis_index;
use crate::tensor::Tensor;

/// The axes of two tensors that [`Dot`] sums over: one number for both, or a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DotAxes([i64; 2]);

impl From<i64> for DotAxes {
    fn from(both: i64) -> Self {
        DotAxes([both; 2])
    }
}

impl From<[i64; 2]> for DotAxes {
    fn from(axes: [i64; 2]) -> Self {
        DotAxes(axes)
    }
}

#[cfg(feature = "json")]
impl crate::keras::ConfigValue for DotAxes {
    fn to_json(&self) -> std::result::Result<serde_json::Value, String> {
        self.0.to_json()
    }

    fn from_json(value: &serde_json::Value) -> std::result::Result<Self, String> {
        <[i64; 2]>::from_json(value).map(DotAxes)
    }
}

layer! {
    /// The dot product of two tensors along `axes`, for each example: `[N,A,D]` and `[N,D,B]` with the axes `[2, 1]`
    /// give `[N,A,B]`; `[N,D]` and `[N,D]` with the axis 1 give `[N,1]`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::Dot};
    /// let inputs = [tf::constant([[3.0, 4.0]])?, tf::constant([[6.0, 8.0]])?];
    /// let y = Dot::new(1).call(&inputs[..], INFERENCE)?;
    /// assert_eq!((y.shape(), y.item::<f32>()?), (&[1, 1][..], 50.0));
    /// let cosine = Dot::new(1).normalize(true).call(&inputs[..], INFERENCE)?;
    /// assert!((cosine.item::<f32>()? - 1.0).abs() < 1e-6);
    /// # Ok(())
    /// # }
    /// ```
    pub struct Dot {
        /// Creates a layer that sums over these axes, one of each tensor; axis 0 is the batch axis and not allowed.
        new(axes: DotAxes as impl Into<DotAxes>);
        options {
            /// Sets whether to L2-normalize the vectors first, so that the products are cosine similarities.
            normalize: bool = false,
        }
    }
}

impl Dot {
    /// The tensor as `[N, others, axis]`, and the sizes of the others.
    fn rows(&self, x: &Tensor, axis: usize) -> Result<(Tensor, Vec<usize>)> {
        let others: Vec<usize> = (1..x.rank()).filter(|other| *other != axis).collect();
        let sizes: Vec<usize> = others.iter().map(|&other| x.shape()[other]).collect();
        let order: Vec<usize> = [0].into_iter().chain(others).chain([axis]).collect();
        let rows = [x.shape()[0], sizes.iter().product(), x.shape()[axis]];
        Ok((x.transpose(order)?.reshape_to(rows.into())?, sizes))
    }
}

impl Layer<[Tensor]> for Dot {
    configured!();

    fn call(&self, inputs: &[Tensor], _cx: Context<'_>) -> Result<Tensor> {
        let [a, b] = inputs else {
            return Err(Error::Shape(message!(
                "Dot: {} inputs were given; it needs two.",
                inputs.len()
            )));
        };
        let (mut a, mut b) = (self.policy.autocast(a)?, self.policy.autocast(b)?);
        let axes = [
            axis_index("Dot", self.axes.0[0], a.rank())?,
            axis_index("Dot", self.axes.0[1], b.rank())?,
        ];
        let same = a.shape().first() == b.shape().first()
            && a.shape().get(axes[0]) == b.shape().get(axes[1]);
        if a.rank() < 2 || b.rank() < 2 || axes.contains(&0) || !same {
            return Err(Error::Shape(message!(
                "Dot: the inputs are {:?} and {:?} and the axes {:?}; batches and summed axes must have one size, and axis 0 is \
                 that of the batch.",
                a.shape(),
                b.shape(),
                self.axes.0
            )));
        }
        if self.normalize {
            (a, b) = (a.l2_normalize(axes[0])?, b.l2_normalize(axes[1])?);
        }
        let ((a, mut sizes), (b, others)) = (self.rows(&a, axes[0])?, self.rows(&b, axes[1])?);
        let products = a.matmul_with(&b, crate::ops::MatmulOptions::new().transpose_b(true))?;
        sizes.extend(others);
        // The product of two vectors is one number, which has an axis of size 1.
        if sizes.is_empty() {
            sizes.push(1);
        }
        sizes.insert(0, a.shape()[0]);
        products.reshape_to(sizes.into())
    }

    fn compute_mask(&self, _inputs: &[Tensor], _mask: Option<&Tensor>) -> Result<Option<Tensor>> {
        Ok(None)
    }
}
