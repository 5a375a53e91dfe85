//! Activations that are composed of other ops.

use super::inventory::{ANY, Entry, OpKind, Values, one};
use super::{concat, select};
use crate::error::{Error, Result, message};
use crate::shape::{Axis, axis_index};
use crate::support::options::options;
use crate::tensor::Tensor;

options! {
    /// The slope of ELU below 0.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct EluOptions {
        /// The factor of `e^x - 1`; 1 by default.
        alpha: f32 = 1.0,
    }
}

/// A number in the dtype of `x`.
fn number(x: &Tensor, op: &str, value: f32) -> Result<Tensor> {
    super::fill(x.device(), op, Default::default(), value.into(), x.dtype())
}

/// Activations. They return [`Error::DType`] for a dtype that is not float.
impl Tensor {
    /// Like [`Tensor::elu`], with `alpha (e^x - 1)` below 0.
    ///
    /// # Errors
    /// [`Error::DType`] if the dtype is not float.
    pub fn elu_with(&self, options: EluOptions) -> Result<Tensor> {
        let elu = self.elu()?;
        select(&self.greater(0.0)?, self, &elu.multiply(options.alpha)?)
    }

    /// `x` above 0, `alpha (e^(x / alpha) - 1)` below: smooth for every `alpha` (Barron 2017).
    ///
    /// # Errors
    /// [`Error::DType`] if the dtype is not float.
    pub fn celu(&self, alpha: f32) -> Result<Tensor> {
        // NaN and values above 0 do not affect the gradient below 0.
        let below = self.minimum(0.0)?.divide(alpha)?.expm1()?.multiply(alpha)?;
        select(&self.greater(0.0)?, self, &below)
    }

    /// `x hard_sigmoid(x)`, also called hard swish.
    ///
    /// # Errors
    /// [`Error::DType`] if the dtype is not float.
    pub fn hard_silu(&self) -> Result<Tensor> {
        self.multiply(self.hard_sigmoid()?)
    }

    /// Clips `x` to -1 to 1.
    ///
    /// # Errors
    /// [`Error::DType`] if the dtype is not float.
    pub fn hard_tanh(&self) -> Result<Tensor> {
        self.clip_by_value(-1.0, 1.0)
    }

    /// `x - tanh(x)`.
    ///
    /// # Errors
    /// [`Error::DType`] if the dtype is not float.
    pub fn tanh_shrink(&self) -> Result<Tensor> {
        self.subtract(self.tanh()?)
    }

    /// `x` where `|x| > threshold`, else 0. Keras's threshold is 0.5.
    ///
    /// # Errors
    /// [`Error::DType`] if the dtype is not float.
    pub fn hard_shrink(&self, threshold: f32) -> Result<Tensor> {
        select(&self.abs()?.greater(threshold)?, self, &number(self, "HardShrink", 0.0)?)
    }

    /// `x` moved towards 0 by `threshold`, and 0 where `|x| <= threshold`. Keras's threshold is 0.5.
    ///
    /// # Errors
    /// [`Error::DType`] if the dtype is not float.
    pub fn soft_shrink(&self, threshold: f32) -> Result<Tensor> {
        let below = select(
            &self.less(-threshold)?,
            &self.add(threshold)?,
            &number(self, "SoftShrink", 0.0)?,
        )?;
        select(&self.greater(threshold)?, &self.subtract(threshold)?, &below)
    }

    /// `x` where it is above `threshold`, else `default_value`.
    ///
    /// # Errors
    /// [`Error::DType`] if the dtype is not float.
    pub fn threshold(&self, threshold: f32, default_value: f32) -> Result<Tensor> {
        select(&self.greater(threshold)?, self, &number(self, "Threshold", default_value)?)
    }

    /// `(x + sqrt(x^2 + b)) / 2`. Keras's `b` is 4.
    ///
    /// # Errors
    /// [`Error::DType`] if the dtype is not float.
    pub fn squareplus(&self, b: f32) -> Result<Tensor> {
        // For large numbers the square would be infinite, and b is negligible.
        let far = self.abs()?.greater(1e9)?;
        let near = select(&far, &number(self, "SquarePlus", 0.0)?, self)?;
        let near = near.add(near.square()?.add(b)?.sqrt()?)?.multiply(0.5)?;
        select(&far, &self.relu()?, &near)
    }

    /// 0 up to -1, `(x + 1)^2 / 4` up to 1, then `x`.
    ///
    /// # Errors
    /// [`Error::DType`] if the dtype is not float.
    pub fn sparse_plus(&self) -> Result<Tensor> {
        let zero = number(self, "SparsePlus", 0.0)?;
        // For large numbers the square and its gradient would be infinite.
        let near = select(&self.abs()?.greater_equal(1.0)?, &zero, self)?;
        let curve = near.add(1.0)?.square()?.multiply(0.25)?;
        let below = select(&self.less_equal(-1.0)?, &zero, &curve)?;
        select(&self.greater_equal(1.0)?, self, &below)
    }

    /// `(x + 1) / 2`, clipped to 0 to 1; the gradient at both ends is 0.
    ///
    /// # Errors
    /// [`Error::DType`] if the dtype is not float.
    pub fn sparse_sigmoid(&self) -> Result<Tensor> {
        let line = self.add(1.0)?.multiply(0.5)?;
        let end = |value| number(self, "SparseSigmoid", value);
        let above = select(&self.greater_equal(1.0)?, &end(1.0)?, &line)?;
        select(&self.less_equal(-1.0)?, &end(0.0)?, &above)
    }

    /// Concatenates `relu(x)` and `relu(-x)` along `axis`, which becomes twice as long.
    ///
    /// # Errors
    /// [`Error::Index`] if the axis does not exist; [`Error::DType`] if the dtype is not float.
    pub fn crelu(&self, axis: impl Into<Axis>) -> Result<Tensor> {
        let axis = axis_index("CRelu", axis, self.rank())?;
        concat(&[self.relu()?, self.negative()?.relu()?], axis)
    }

    /// The first half along `axis` times the sigmoid of the second half (Dauphin et al. 2017).
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let y = tf::constant([[1.0, 2.0, 0.0, 0.0]])?.glu(-1)?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.5, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Index`] if the axis does not exist; [`Error::Shape`] if its size is odd; [`Error::DType`] if the dtype is
    /// not float.
    pub fn glu(&self, axis: impl Into<Axis>) -> Result<Tensor> {
        let axis = axis_index("Glu", axis, self.rank())?;
        let size = self.shape()[axis];
        if !size.is_multiple_of(2) {
            return Err(Error::Shape(message!(
                "Glu: axis {axis} of the tensor {:?} has the odd size {size}; it needs two halves.",
                self.shape()
            )));
        }
        let (mut begin, mut half) = (vec![0; self.rank()], vec![-1; self.rank()]);
        half[axis] = (size / 2) as i64;
        let values = self.slice(&begin, &half)?;
        begin[axis] = size / 2;
        values.multiply(self.slice(&begin, &half)?.sigmoid()?)
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Composed, "elu_with", &["keras.activations.elu"], |c| {
        let alpha = c.float("alpha")?.unwrap_or(1.0) as f32;
        one(c.x()?.elu_with(EluOptions::new().alpha(alpha)))
    })
    .cases(|cases| {
        cases.of_one("elu_with", Values::Away, |x| x.elu_with(EluOptions::new().alpha(0.7)));
    }),
    Entry::new(OpKind::Composed, "celu", &["keras.activations.celu"], |c| {
        one(c.x()?.celu(c.float("alpha")?.unwrap_or(1.0) as f32))
    })
    .cases(|cases| cases.of_one("celu", Values::Away, |x| x.celu(0.7))),
    Entry::new(OpKind::Composed, "hard_silu", &["keras.activations.hard_silu"], |c| {
        one(c.x()?.hard_silu())
    })
    .cases(|cases| cases.of_one("hard_silu", ANY, Tensor::hard_silu)),
    Entry::new(OpKind::Composed, "hard_tanh", &["keras.activations.hard_tanh"], |c| {
        one(c.x()?.hard_tanh())
    })
    .cases(|cases| {
        cases.of_one("hard_tanh", Values::Distinct(0.05), |x| x.multiply(2.0)?.hard_tanh());
    }),
    Entry::new(OpKind::Composed, "tanh_shrink", &["keras.activations.tanh_shrink"], |c| {
        one(c.x()?.tanh_shrink())
    })
    .cases(|cases| cases.of_one("tanh_shrink", Values::Away, Tensor::tanh_shrink)),
    Entry::new(OpKind::Composed, "hard_shrink", &["keras.activations.hard_shrink"], |c| {
        one(c.x()?.hard_shrink(c.float("threshold")?.unwrap_or(0.5) as f32))
    })
    .cases(|cases| cases.of_one("hard_shrink", Values::Distinct(0.0), |x| x.hard_shrink(0.5))),
    Entry::new(OpKind::Composed, "soft_shrink", &["keras.activations.soft_shrink"], |c| {
        one(c.x()?.soft_shrink(c.float("threshold")?.unwrap_or(0.5) as f32))
    })
    .cases(|cases| cases.of_one("soft_shrink", Values::Distinct(0.0), |x| x.soft_shrink(0.5))),
    Entry::new(OpKind::Composed, "threshold", &["keras.activations.threshold"], |c| {
        one(c.x()?.threshold(c.f32("threshold")?, c.f32("default_value")?))
    })
    .cases(|cases| cases.of_one("threshold", Values::Distinct(0.0), |x| x.threshold(0.5, -1.0))),
    Entry::new(OpKind::Composed, "squareplus", &["keras.activations.squareplus"], |c| {
        one(c.x()?.squareplus(c.float("b")?.unwrap_or(4.0) as f32))
    })
    .cases(|cases| cases.of_one("squareplus", ANY, |x| x.squareplus(4.0))),
    Entry::new(OpKind::Composed, "sparse_plus", &["keras.activations.sparse_plus"], |c| {
        one(c.x()?.sparse_plus())
    })
    .cases(|cases| {
        cases.of_one("sparse_plus", Values::Distinct(0.1), Tensor::sparse_plus);
    }),
    Entry::new(OpKind::Composed, "sparse_sigmoid", &["keras.activations.sparse_sigmoid"], |c| {
        one(c.x()?.sparse_sigmoid())
    })
    .cases(|cases| {
        cases.of_one("sparse_sigmoid", Values::Distinct(0.1), Tensor::sparse_sigmoid);
    }),
    Entry::new(OpKind::Composed, "crelu", &["tf.nn.crelu"], |c| {
        one(c.arg("features")?.crelu(c.int("axis")?.unwrap_or(-1)))
    })
    .cases(|cases| cases.of_one("crelu", Values::Away, |x| x.crelu(-1))),
    Entry::new(OpKind::Composed, "glu", &["keras.activations.glu"], |c| {
        one(c.x()?.glu(c.int("axis")?.unwrap_or(-1)))
    })
    .cases(|cases| cases.of_shape("glu", &[3, 6], |x| x.glu(1))),
];
