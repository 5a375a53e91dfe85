//! `y = dtype(x)`. A float becomes an integer as with Rust's `as`: it is truncated, NaN becomes 0, and a number outside
//! the range becomes the nearest limit. Integers wrap. Anything becomes `bool` by comparison with 0.

use super::inventory::{Entry, Gradient, OpKind, one};
use super::{Backward, Grads, Keep, Operation, check_dtype, only};
use crate::dtype::{DType, Register};
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Elementwise, Lowering, LoweringContext, View};
use crate::graph::{Op, Spec};
use crate::tensor::Tensor;

impl Tensor {
    /// Converts the elements to another dtype; returns the tensor unchanged if it already has that dtype.
    ///
    /// Floats are truncated to integers; NaN becomes 0, and a number outside the range is clipped to it.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([1.9, -1.9])?.cast(tf::DType::I32)?;
    /// assert_eq!(x.to_vec::<i32>()?, [1, -1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::DType`](crate::Error::DType) if the adapter lacks `f16`.
    pub fn cast(&self, dtype: DType) -> Result<Tensor> {
        if dtype == self.dtype() {
            return Ok(self.clone());
        }
        check_dtype(self.device(), "Cast", dtype)?;
        dispatch(Cast { dtype }, &[self])
    }

    /// Like [`Tensor::cast`], but numbers outside the range of `dtype` are clipped to it: integers do not wrap, and values
    /// beyond 65504 do not become infinite in `f16`. NaN becomes 0 in integers, and booleans become 0 and 1.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([-5, 7])?;
    /// assert_eq!(x.saturate_cast(tf::DType::U32)?.to_vec::<u32>()?, [0, 7]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::cast`].
    pub fn saturate_cast(&self, dtype: DType) -> Result<Tensor> {
        // Conversions from floats to integers saturate anyway.
        match (self.dtype(), dtype) {
            (DType::F32, DType::F16) => self.clip_by_value(-65504.0, 65504.0)?.cast(dtype),
            (DType::I32, DType::F16) => self.clip_by_value(-65504, 65504)?.cast(dtype),
            (DType::U32, DType::F16) => self.minimum(65504)?.cast(dtype),
            (DType::I32, DType::U32) => self.maximum(0)?.cast(dtype),
            (DType::U32, DType::I32) => self.minimum(i32::MAX)?.cast(dtype),
            (DType::I32, DType::U8) => self.clip_by_value(0, 255)?.cast(dtype),
            (DType::U32, DType::U8) => self.minimum(255)?.cast(dtype),
            _ => self.cast(dtype),
        }
    }
}

#[derive(Debug, Attribute)]
#[op("Cast")]
pub(crate) struct Cast {
    dtype: DType,
}

impl Op for Cast {
    fn name(&self) -> &'static str {
        "Cast"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(Spec::new(inputs[0].shape.clone(), self.dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let body = match (cx.inputs[0].dtype.register(), self.dtype.register()) {
            (Register::Bool, Register::F32) => "select(vec4<f32>(0.0), vec4<f32>(1.0), x)",
            (Register::Bool, Register::I32) => "select(vec4<i32>(0i), vec4<i32>(1i), x)",
            (Register::Bool, Register::U32) => "select(vec4<u32>(0u), vec4<u32>(1u), x)",
            (Register::Bool, Register::Bool) => "x",
            // A driver's comparison may treat NaN as equal.
            (Register::F32, Register::Bool) => "(x != V(0)) | is_nan_4(x)",
            (_, Register::Bool) => "x != V(0)",
            (Register::F32, Register::I32) => {
                "select(select(vec4<i32>(x), vec4<i32>(2147483647i), x >= V(2147483648.0)), vec4<i32>(0i), is_nan_4(x))"
            }
            (Register::F32, Register::U32) if self.dtype == DType::U8 => {
                "select(vec4<u32>(clamp(x, V(0.0), V(255.0))), vec4<u32>(0u), is_nan_4(x))"
            }
            (Register::F32, Register::U32) => {
                "select(select(vec4<u32>(x), vec4<u32>(4294967295u), x >= V(4294967296.0)), vec4<u32>(0u), is_nan_4(x))"
            }
            (_, Register::F32) => "vec4<f32>(x)",
            (_, Register::I32) => "vec4<i32>(x)",
            (_, Register::U32) => "vec4<u32>(x)",
        };
        Elementwise::new("cast", body).input("x", 0, View::Same).into()
    }
}

impl Operation for Cast {
    fn keep(&self) -> Keep {
        if self.dtype.is_float() {
            Keep::Nothing
        } else {
            Keep::NoGradient("Cast: to a dtype without gradients")
        }
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        only(back.dy.cast(back.spec(0).dtype)?)
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Kernel, "cast", &["tf.cast"], |c| one(c.x()?.cast(c.dtype("dtype")?)))
        .takes(&DType::ALL)
        .gradient(Gradient::CheckedBy("half_precision_gradients_are_half_precision")),
    Entry::new(OpKind::Composed, "saturate_cast", &["tf.saturate_cast"], |c| {
        one(c.arg("value")?.saturate_cast(c.dtype("dtype")?))
    })
    .takes(&DType::ALL)
    .gradient(Gradient::CheckedBy("half_precision_gradients_are_half_precision")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_become_its_ends() {
        let floats = Tensor::from_slice(&[-1e10f32, -1.5, 3.7, 1e10, f32::INFINITY, f32::NAN], [6]);
        let floats = floats.unwrap();
        let i32s = floats.saturate_cast(DType::I32).unwrap().to_vec::<i32>().unwrap();
        assert_eq!(i32s, [i32::MIN, -1, 3, i32::MAX, i32::MAX, 0]);
        let u32s = floats.saturate_cast(DType::U32).unwrap().to_vec::<u32>().unwrap();
        assert_eq!(u32s, [0, 0, 3, u32::MAX, u32::MAX, 0]);
        let bytes = floats.saturate_cast(DType::U8).unwrap().to_vec::<u8>().unwrap();
        assert_eq!(bytes, [0, 0, 3, 255, 255, 0]);
        let x = Tensor::from_slice(&[i32::MIN, -1, 300, i32::MAX], [4]).unwrap();
        let read = |x: &Tensor, dtype| x.saturate_cast(dtype).unwrap();
        assert_eq!(read(&x, DType::U32).to_vec::<u32>().unwrap(), [0, 0, 300, 2_147_483_647]);
        assert_eq!(read(&x, DType::U8).to_vec::<u8>().unwrap(), [0, 0, 255, 255]);
        let x = Tensor::from_slice(&[7u32, u32::MAX], [2]).unwrap();
        assert_eq!(read(&x, DType::I32).to_vec::<i32>().unwrap(), [7, i32::MAX]);
        assert_eq!(read(&x, DType::U8).to_vec::<u8>().unwrap(), [7, 255]);
        if x.device().caps().f16 {
            let x = Tensor::from_slice(&[1e30f32, f32::NEG_INFINITY, 2.5], [3]).unwrap();
            let halves = read(&x, DType::F16).cast(DType::F32).unwrap().to_vec::<f32>().unwrap();
            assert_eq!(halves, [65504.0, -65504.0, 2.5]);
            let x = Tensor::from_slice(&[i32::MIN, -65519, 70000, 65504], [4]).unwrap();
            let halves = read(&x, DType::F16).cast(DType::F32).unwrap().to_vec::<f32>().unwrap();
            assert_eq!(halves, [-65504.0, -65504.0, 65504.0, 65504.0]);
            let x = Tensor::from_slice(&[u32::MAX, 65519, 7], [3]).unwrap();
            let halves = read(&x, DType::F16).cast(DType::F32).unwrap().to_vec::<f32>().unwrap();
            assert_eq!(halves, [65504.0, 65504.0, 7.0]);
        }
    }
}
