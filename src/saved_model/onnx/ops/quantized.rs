//! Numbers as integers of 8 and 16 bits, with a scale and a zero point. A device has no `i8`, `i16` and `u16`: there, they are `i32` in
//! the same range.

use super::call::{Call, Results, Table, axis, dtype_of, unsupported};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::host_array::HostDType;
use crate::saved_model::graph_def::value::Value;
use crate::tensor::Tensor;

pub(super) static OPS: Table = &[
    ("DequantizeLinear", |c| {
        let x = c.tensor(0)?;
        one(dequantized(&x, &Scale::new(c, &x, [1, 2], "axis")?)?)
    }),
    ("DynamicQuantizeLinear", |c| {
        let x = c.tensor(0)?;
        let low = x.reduce_min(())?.minimum(0.0)?;
        let high = x.reduce_max(())?.maximum(0.0)?;
        let scale = high.subtract(&low)?.divide(255.0)?;
        let zero = low.negative()?.divide_no_nan(&scale)?.round()?.clip_by_value(0.0, 255.0)?;
        let y = x.divide_no_nan(&scale)?.round()?.add(&zero)?.clip_by_value(0.0, 255.0)?;
        let results = [y.cast(DType::U8)?, scale, zero.cast(DType::U8)?];
        Ok(results.into_iter().map(Value::Tensor).collect())
    }),
    ("MatMulInteger", |c| {
        let centered = |at: usize, zero: usize, last: bool| -> Result<Tensor> {
            let x = c.tensor(at)?.cast(DType::F32)?;
            let Some(_) = c.get(zero) else { return Ok(x) };
            let zero = c.tensor(zero)?.cast(DType::F32)?;
            // A zero point for each row of the first factor, and for each column of the second.
            let zero = match (zero.rank(), last) {
                (1, false) if zero.len() > 1 => zero.expand_dims(-1)?,
                _ => zero,
            };
            x.subtract(zero)
        };
        let (a, b) = (centered(0, 2, false)?, centered(1, 3, true)?);
        // A sum of this many products of 8 bits is exact in f32.
        let depth = a.shape().last().copied().unwrap_or(0);
        if depth > 256 {
            return Err(unsupported(format_args!("MatMulInteger over {depth} numbers")));
        }
        one(a.matmul(b)?.cast(DType::I32)?)
    }),
    ("QLinearMatMul", |c| {
        let (a, b) = (c.tensor(0)?, c.tensor(3)?);
        let a = dequantized(&a, &Scale::new(c, &a, [1, 2], "")?)?;
        let b = dequantized(&b, &Scale::new(c, &b, [4, 5], "")?)?;
        let y = a.matmul(b)?;
        let scale = Scale::new(c, &y, [6, 7], "")?;
        quantized(&y, &scale, dtype_of(&c.input(7)?))
    }),
    ("QuantizeLinear", |c| {
        let x = c.tensor(0)?;
        let scale = Scale::new(c, &x, [1, 2], "axis")?;
        let dtype = match (c.get(2), c.attr_int("output_dtype", 0)) {
            (Some(zero), _) => dtype_of(zero),
            (None, 0) => HostDType::U8,
            (None, number) => super::super::tensor::dtype(number as i32),
        };
        quantized(&x, &scale, dtype)
    }),
];

fn one(x: Tensor) -> Result<Results> {
    Ok(vec![Value::Tensor(x)])
}

/// A scale and a zero point, which broadcast with the numbers.
struct Scale {
    scale: Tensor,
    zero: Option<Tensor>,
}

impl Scale {
    /// Those in the inputs `at`, for `x`: one for all, or one for each index along an axis, or for each block along it.
    fn new(c: &Call<'_>, x: &Tensor, at: [usize; 2], name: &str) -> Result<Self> {
        let along = match name {
            // One for each row of the first factor, or each column of the second.
            "" => {
                if at[0] == 1 {
                    -2
                } else {
                    -1
                }
            }
            name => c.attr_int(name, 1),
        };
        let block = usize::try_from(c.attr_int("block_size", 0)).unwrap_or(0);
        let fitted = |value: Tensor| -> Result<Tensor> {
            if value.len() == 1 {
                return value.reshape(());
            }
            let at = axis(along, x.rank())?;
            if block > 0 && value.rank() == x.rank() {
                // No block is longer than the axis.
                let repeated = value.repeat(&[block.min(x.shape()[at].max(1))], at as i64)?;
                let mut sizes = vec![-1; x.rank()];
                sizes[at] = x.shape()[at] as i64;
                return repeated.slice(&vec![0; x.rank()], &sizes);
            }
            if value.rank() != 1 {
                return Ok(value);
            }
            let mut shape = vec![1; x.rank()];
            shape[at] = value.len();
            value.reshape(shape)
        };
        let scale = fitted(c.tensor(at[0])?)?;
        let zero = match c.get(at[1]) {
            Some(_) => Some(fitted(c.tensor(at[1])?.cast(DType::F32)?)?),
            None => None,
        };
        Ok(Scale { scale, zero })
    }
}

fn dequantized(x: &Tensor, scale: &Scale) -> Result<Tensor> {
    let x = x.cast(DType::F32)?;
    let centered = match &scale.zero {
        Some(zero) => x.subtract(zero)?,
        None => x,
    };
    centered.multiply(scale.scale.cast(DType::F32)?)?.cast(scale.scale.dtype())
}

fn quantized(x: &Tensor, scale: &Scale, dtype: HostDType) -> Result<Results> {
    let (low, high, device) = match dtype {
        HostDType::U8 => (0.0, 255.0, DType::U8),
        HostDType::I8 => (-128.0, 127.0, DType::I32),
        HostDType::U16 => (0.0, 65535.0, DType::I32),
        HostDType::I16 => (-32768.0, 32767.0, DType::I32),
        other => {
            return Err(Error::Data(message!(
                "numbers of {other} are not supported. Export the model without them."
            )));
        }
    };
    let y = x.cast(DType::F32)?.divide(scale.scale.cast(DType::F32)?)?.round()?;
    let y = match &scale.zero {
        Some(zero) => y.add(zero)?,
        None => y,
    };
    one(y.clip_by_value(low, high)?.cast(device)?)
}
