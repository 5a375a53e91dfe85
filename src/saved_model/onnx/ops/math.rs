//! Ops of elements, reductions and products.

use super::call::{
    Call, Results, Table, axis, cast, dtype_of, long, number, one, tensor, tf, unsupported,
};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::host_array::HostDType;
use crate::ops::{GeluOptions, MatmulOptions, SortOptions, einsum, linalg, where_};
use crate::saved_model::graph_def::proto::Attr;
use crate::saved_model::graph_def::value::Value;
use crate::tensor::Tensor;

pub(super) static OPS: Table = &[
    ("Abs", |c| same(c, "Abs")),
    ("Acos", |c| same(c, "Acos")),
    ("Acosh", |c| same(c, "Acosh")),
    ("Add", |c| same(c, "AddV2")),
    ("And", |c| same(c, "LogicalAnd")),
    ("ArgMax", |c| arg(c, Tensor::argmax)),
    ("ArgMin", |c| arg(c, Tensor::argmin)),
    ("Asin", |c| same(c, "Asin")),
    ("Asinh", |c| same(c, "Asinh")),
    ("Atan", |c| same(c, "Atan")),
    ("Atanh", |c| same(c, "Atanh")),
    ("BitShift", shift),
    ("BitwiseAnd", |c| same(c, "BitwiseAnd")),
    ("BitwiseNot", |c| same(c, "Invert")),
    ("BitwiseOr", |c| same(c, "BitwiseOr")),
    ("BitwiseXor", |c| same(c, "BitwiseXor")),
    ("Cast", |c| cast(c.input(0)?, super::super::tensor::dtype(c.attr_int("to", 1) as i32))),
    ("CastLike", |c| cast(c.input(0)?, dtype_of(&c.input(1)?))),
    ("Ceil", |c| same(c, "Ceil")),
    ("Celu", |c| tensor(c.tensor(0)?.celu(c.attr_float("alpha", 1.0))?)),
    ("Clip", clip),
    ("Cos", |c| same(c, "Cos")),
    ("Cosh", |c| same(c, "Cosh")),
    ("CumProd", |c| {
        let attributes = vec![
            ("exclusive", Attr::Bool(c.attr_int("exclusive", 0) != 0)),
            ("reverse", Attr::Bool(c.attr_int("reverse", 0) != 0)),
        ];
        one(tf("Cumprod", vec![c.input(0)?, c.input(1)?], attributes)?)
    }),
    ("CumSum", |c| {
        let attributes = vec![
            ("exclusive", Attr::Bool(c.attr_int("exclusive", 0) != 0)),
            ("reverse", Attr::Bool(c.attr_int("reverse", 0) != 0)),
        ];
        one(tf("Cumsum", vec![c.input(0)?, c.input(1)?], attributes)?)
    }),
    ("Det", |c| tensor(linalg::det(&c.tensor(0)?)?)),
    ("Div", |c| {
        let x = c.input(0)?;
        same(c, if dtype_of(&x).is_float() { "RealDiv" } else { "TruncateDiv" })
    }),
    ("Einsum", |c| {
        let operands = c.all()?.iter().map(Value::tensor).collect::<Result<Vec<_>>>()?;
        tensor(einsum(&c.attr_text("equation", "").replace(' ', ""), operands)?)
    }),
    ("Elu", |c| {
        let options = crate::ops::EluOptions::new().alpha(c.attr_float("alpha", 1.0));
        tensor(c.tensor(0)?.elu_with(options)?)
    }),
    ("Equal", |c| same(c, "Equal")),
    ("Erf", |c| same(c, "Erf")),
    ("Exp", |c| same(c, "Exp")),
    ("Floor", |c| same(c, "Floor")),
    ("Gelu", |c| {
        let approximate = c.attr_text("approximate", "none") == "tanh";
        tensor(c.tensor(0)?.gelu_with(GeluOptions::new().approximate(approximate))?)
    }),
    ("Gemm", gemm),
    ("Greater", |c| same(c, "Greater")),
    ("GreaterOrEqual", |c| same(c, "GreaterEqual")),
    ("HardSigmoid", |c| {
        let (alpha, beta) = (c.attr_float("alpha", 0.2), c.attr_float("beta", 0.5));
        tensor(hard_sigmoid(&c.tensor(0)?, alpha, beta)?)
    }),
    ("HardSwish", |c| {
        let x = c.tensor(0)?;
        tensor(x.multiply(hard_sigmoid(&x, 1.0 / 6.0, 0.5)?)?)
    }),
    ("IsInf", |c| {
        let x = c.tensor(0)?;
        let (negative, positive) =
            (c.attr_int("detect_negative", 1), c.attr_int("detect_positive", 1));
        let mut found = x.is_inf()?;
        if negative == 0 {
            found = found.logical_and(x.greater(0)?)?;
        }
        if positive == 0 {
            found = found.logical_and(x.less(0)?)?;
        }
        tensor(found)
    }),
    ("IsNaN", |c| same(c, "IsNan")),
    ("LeakyRelu", |c| tensor(c.tensor(0)?.leaky_relu(c.attr_float("alpha", 0.01))?)),
    ("Less", |c| same(c, "Less")),
    ("LessOrEqual", |c| same(c, "LessEqual")),
    ("Log", |c| same(c, "Log")),
    ("MatMul", |c| tensor(matmul(&c.tensor(0)?, &c.tensor(1)?)?)),
    ("Max", |c| folded(c, "Maximum")),
    ("Mean", |c| {
        let sum = folded(c, "AddV2")?.remove(0);
        let count = number(c.inputs.len() as f64, &sum)?;
        one(tf("RealDiv", vec![sum, count], vec![])?)
    }),
    ("Min", |c| folded(c, "Minimum")),
    ("Mish", |c| tensor(c.tensor(0)?.mish()?)),
    ("Mod", |c| same(c, if c.attr_int("fmod", 0) == 0 { "FloorMod" } else { "TruncateMod" })),
    ("Mul", |c| same(c, "Mul")),
    ("Neg", |c| same(c, "Neg")),
    ("Not", |c| same(c, "LogicalNot")),
    ("Or", |c| same(c, "LogicalOr")),
    ("PRelu", |c| {
        let (x, slope) = (c.tensor(0)?, c.tensor(1)?);
        tensor(where_(&x.less(0)?, &x.multiply(slope)?, &x)?)
    }),
    ("Pow", |c| {
        let (x, exponent) = (c.input(0)?, c.input(1)?);
        let dtype = dtype_of(&x);
        // The result has the dtype of the base; an integer to the power of a float is computed as a float.
        if !dtype.is_float() && dtype_of(&exponent).is_float() {
            let x = cast(x, dtype_of(&exponent))?.remove(0);
            return cast(tf("Pow", vec![x, exponent], vec![])?, dtype);
        }
        let exponent = cast(exponent, dtype)?.remove(0);
        one(tf("Pow", vec![x, exponent], vec![])?)
    }),
    ("Reciprocal", |c| same(c, "Reciprocal")),
    ("ReduceL1", |c| reduced(c, |x| tf("Abs", vec![x], vec![]), "Sum", Ok)),
    ("ReduceL2", |c| {
        reduced(c, |x| tf("Square", vec![x], vec![]), "Sum", |y| tf("Sqrt", vec![y], vec![]))
    }),
    ("ReduceLogSum", |c| reduced(c, Ok, "Sum", |y| tf("Log", vec![y], vec![]))),
    ("ReduceLogSumExp", log_sum_exp),
    ("ReduceMax", |c| reduced(c, Ok, "Max", Ok)),
    ("ReduceMean", |c| reduced(c, Ok, "Mean", Ok)),
    ("ReduceMin", |c| reduced(c, Ok, "Min", Ok)),
    ("ReduceProd", |c| reduced(c, Ok, "Prod", Ok)),
    ("ReduceSum", |c| reduced(c, Ok, "Sum", Ok)),
    ("ReduceSumSquare", |c| reduced(c, |x| tf("Square", vec![x], vec![]), "Sum", Ok)),
    ("Relu", |c| same(c, "Relu")),
    ("Round", |c| same(c, "Round")),
    ("Selu", |c| {
        let alpha = c.attr_float("alpha", 1.673_263_2);
        let gamma = c.attr_float("gamma", 1.050_701);
        let options = crate::ops::EluOptions::new().alpha(alpha);
        tensor(c.tensor(0)?.elu_with(options)?.multiply(gamma)?)
    }),
    ("Shrink", |c| {
        let (x, bias, lambda) =
            (c.tensor(0)?, c.attr_float("bias", 0.0), c.attr_float("lambd", 0.5));
        let zero = x.zeros_like()?;
        let high = where_(&x.greater(lambda)?, &x.subtract(bias)?, &zero)?;
        tensor(where_(&x.less(-lambda)?, &x.add(bias)?, &high)?)
    }),
    ("Sigmoid", |c| same(c, "Sigmoid")),
    ("Sign", |c| same(c, "Sign")),
    ("Sin", |c| same(c, "Sin")),
    ("Sinh", |c| same(c, "Sinh")),
    ("Softplus", |c| same(c, "Softplus")),
    ("Softsign", |c| same(c, "Softsign")),
    ("Sqrt", |c| same(c, "Sqrt")),
    ("Sub", |c| same(c, "Sub")),
    ("Sum", |c| folded(c, "AddV2")),
    ("Swish", |c| {
        let x = c.tensor(0)?;
        tensor(x.multiply(x.multiply(c.attr_float("alpha", 1.0))?.sigmoid()?)?)
    }),
    ("Tan", |c| same(c, "Tan")),
    ("Tanh", |c| same(c, "Tanh")),
    ("ThresholdedRelu", |c| {
        let x = c.tensor(0)?;
        tensor(where_(&x.greater(c.attr_float("alpha", 1.0))?, &x, &x.zeros_like()?)?)
    }),
    ("TopK", top_k),
    ("Where", |c| one(tf("SelectV2", vec![c.input(0)?, c.input(1)?, c.input(2)?], vec![])?)),
    ("Xor", |c| {
        let (a, b) = (c.tensor(0)?, c.tensor(1)?);
        tensor(a.logical_xor(b)?)
    }),
];

/// The op of TensorFlow of all inputs.
fn same(c: &Call<'_>, op: &str) -> Result<Results> {
    one(tf(op, c.all()?, vec![])?)
}

/// An op of two values, for any number of them.
fn folded(c: &Call<'_>, op: &str) -> Result<Results> {
    let mut all = c.all()?.into_iter();
    let first = all.next().ok_or_else(|| Error::Data(message!("it has no inputs.")))?;
    one(all.try_fold(first, |result, x| tf(op, vec![result, x], vec![]))?)
}

/// A shift by a negative number, or by all bits, leaves nothing but the sign.
fn shift(c: &Call<'_>) -> Result<Results> {
    let (x, by) = (c.tensor(0)?, c.tensor(1)?);
    let outside = by.less(0)?.logical_or(by.greater_equal(32)?)?;
    let within = where_(&outside, &by.zeros_like()?, &by)?;
    if c.attr_text("direction", "") == "LEFT" {
        return tensor(where_(&outside, &x.zeros_like()?, &x.left_shift(within)?)?);
    }
    let sign = x.right_shift(by.zeros_like()?.add(31)?)?;
    let sign = if x.dtype() == DType::I32 { sign } else { x.zeros_like()? };
    tensor(where_(&outside, &sign, &x.right_shift(within)?)?)
}

fn hard_sigmoid(x: &Tensor, alpha: f32, beta: f32) -> Result<Tensor> {
    x.multiply(alpha)?.add(beta)?.clip_by_value(0, 1)
}

fn arg(c: &Call<'_>, f: fn(&Tensor, i64) -> Result<Tensor>) -> Result<Results> {
    let x = c.tensor(0)?;
    let at = axis(c.attr_int("axis", 0), x.rank())?;
    let y = if c.attr_int("select_last_index", 0) == 0 {
        f(&x, at as i64)?
    } else {
        // The first one from the end.
        let last = x.shape()[at] as i64 - 1;
        let place = f(&x.reverse(at)?, at as i64)?;
        place.negative()?.add(last)?
    };
    tensor(if c.attr_int("keepdims", 1) != 0 { y.expand_dims(at)? } else { y })
}

fn clip(c: &Call<'_>) -> Result<Results> {
    let x = c.input(0)?;
    let mut result = x.clone();
    for (at, name, op) in [(1, "min", "Maximum"), (2, "max", "Minimum")] {
        let bound = match (c.get(at), c.attr_float(name, f32::NAN)) {
            (Some(bound), _) => Some(bound.clone()),
            (None, value) if value.is_nan() => None,
            (None, value) => Some(number(f64::from(value), &x)?),
        };
        if let Some(bound) = bound {
            result = tf(op, vec![result, bound], vec![])?;
        }
    }
    one(result)
}

/// A product as NumPy's `matmul` has it: a vector is a row, or a column.
fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (row, column) = (a.rank() == 1, b.rank() == 1);
    let a = if row { a.expand_dims(0)? } else { a.clone() };
    let b = if column { b.expand_dims(1)? } else { b.clone() };
    let mut y = a.matmul(&b)?;
    if column {
        y = y.squeeze(-1)?;
    }
    if row { y.squeeze(if column { -1 } else { -2 }) } else { Ok(y) }
}

fn gemm(c: &Call<'_>) -> Result<Results> {
    let options = MatmulOptions::new()
        .transpose_a(c.attr_int("transA", 0) != 0)
        .transpose_b(c.attr_int("transB", 0) != 0);
    let (alpha, beta) = (c.attr_float("alpha", 1.0), c.attr_float("beta", 1.0));
    let mut y = c.tensor(0)?.matmul_with(c.tensor(1)?, options)?;
    if alpha != 1.0 {
        y = y.multiply(alpha)?;
    }
    if c.get(2).is_some() && beta != 0.0 {
        let bias = c.tensor(2)?;
        y = y.add(if beta == 1.0 { bias } else { bias.multiply(beta)? })?;
    }
    tensor(y)
}

/// The axes of a reduction; `None` if it reduces nothing.
fn axes(c: &Call<'_>, rank: usize) -> Result<Option<Vec<i64>>> {
    let axes = c.ints_or(1, "axes")?.unwrap_or_default();
    if !axes.is_empty() {
        return Ok(Some(axes));
    }
    let nothing = c.attr_int("noop_with_empty_axes", 0) != 0;
    Ok((!nothing).then(|| (0..rank as i64).collect()))
}

fn reduced(
    c: &Call<'_>,
    before: fn(Value) -> Result<Value>,
    op: &str,
    after: fn(Value) -> Result<Value>,
) -> Result<Results> {
    let x = c.input(0)?;
    let Some(axes) = axes(c, x.shape()?.len())? else {
        return one(after(before(x)?)?);
    };
    let x = before(x)?;
    let keepdims = Attr::Bool(c.attr_int("keepdims", 1) != 0);
    // Of truth values, the largest is whether any is true.
    if dtype_of(&x) == HostDType::Bool {
        let op = if op == "Max" { "Any" } else { "All" };
        return one(tf(op, vec![x, long(&axes)], vec![("keep_dims", keepdims)])?);
    }
    let y = tf(op, vec![x, long(&axes)], vec![("keep_dims", keepdims)])?;
    one(after(y)?)
}

fn log_sum_exp(c: &Call<'_>) -> Result<Results> {
    let x = c.tensor(0)?;
    let Some(axes) = axes(c, x.rank())? else { return tensor(x) };
    let axes = crate::shape::Axes::from(axes).keepdims(c.attr_int("keepdims", 1) != 0);
    tensor(x.reduce_logsumexp(axes)?)
}

fn top_k(c: &Call<'_>) -> Result<Results> {
    let x = c.tensor(0)?;
    let k = match c.get(1) {
        Some(_) => c.ints(1)?.first().copied().unwrap_or(0),
        None => c.attr_int("k", 0),
    };
    if k < 0 {
        return Err(Error::Index(message!("its k is {k}.")));
    }
    let at = axis(c.attr_int("axis", -1), x.rank())?;
    let largest = c.attr_int("largest", 1) != 0;
    let places = x.argsort_with(at, SortOptions::new().descending(largest))?;
    let mut size = vec![-1; x.rank()];
    size[at] = k;
    let places = places.slice(&vec![0; x.rank()], &size)?;
    let values = super::arrays::gather_elements(&x, &places, at)?;
    if x.dtype() == DType::Bool {
        return Err(unsupported(format_args!("TopK of truth values")));
    }
    Ok(vec![Value::Tensor(values), Value::Tensor(places)])
}

/// Sums along some axes.
pub(super) fn mean(x: &Value, axes: &[i64]) -> Result<Value> {
    tf("Mean", vec![x.clone(), long(axes)], vec![("keep_dims", Attr::Bool(true))])
}
