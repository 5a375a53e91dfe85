//! Ops that compute each element of the result from one element of each input.

use super::call::{Call, Entry, any, binary, unary, unsupported};
use super::host;
use super::on_host;
use crate::dtype::DType;
use crate::error::Result;
use crate::host_array::HostDType;
use crate::ops::where_;
use crate::saved_model::graph_def::value::Value;
use crate::tensor::Tensor;

pub(super) static OPS: &[Entry] = &[
    unary("Abs", Tensor::abs),
    unary("Acos", Tensor::acos),
    unary("Acosh", Tensor::acosh),
    unary("Asin", Tensor::asin),
    unary("Asinh", Tensor::asinh),
    unary("Atan", Tensor::atan),
    unary("Atanh", Tensor::atanh),
    unary("BesselI0", Tensor::bessel_i0),
    unary("BesselI0e", Tensor::bessel_i0e),
    unary("BesselI1", Tensor::bessel_i1),
    unary("BesselI1e", Tensor::bessel_i1e),
    unary("Ceil", Tensor::ceil),
    unary("Cos", Tensor::cos),
    unary("Cosh", Tensor::cosh),
    unary("Digamma", Tensor::digamma),
    unary("Elu", Tensor::elu),
    unary("Erf", Tensor::erf),
    unary("Erfc", Tensor::erfc),
    unary("Erfinv", Tensor::erfinv),
    unary("Exp", Tensor::exp),
    unary("Expm1", Tensor::expm1),
    unary("Floor", Tensor::floor),
    unary("Inv", Tensor::reciprocal),
    unary("Invert", Tensor::invert),
    unary("IsFinite", Tensor::is_finite),
    unary("IsInf", Tensor::is_inf),
    unary("IsNan", Tensor::is_nan),
    unary("Lgamma", Tensor::lgamma),
    unary("Log", Tensor::log),
    unary("Log1p", Tensor::log1p),
    unary("LogicalNot", Tensor::logical_not),
    unary("Ndtri", Tensor::ndtri),
    unary("Neg", Tensor::negative),
    unary("PopulationCount", Tensor::population_count),
    unary("Reciprocal", Tensor::reciprocal),
    unary("Relu", Tensor::relu),
    unary("Relu6", Tensor::relu6),
    unary("Rint", Tensor::rint),
    unary("Round", Tensor::round),
    unary("Rsqrt", Tensor::rsqrt),
    unary("Selu", Tensor::selu),
    unary("Sigmoid", Tensor::sigmoid),
    unary("Sign", Tensor::sign),
    unary("Sin", Tensor::sin),
    unary("Sinh", Tensor::sinh),
    unary("Softplus", Tensor::softplus),
    unary("Softsign", Tensor::softsign),
    unary("Sqrt", Tensor::sqrt),
    unary("Square", Tensor::square),
    unary("Tan", Tensor::tan),
    unary("Tanh", Tensor::tanh),
    binary("Add", |a, b| a.add(b)),
    binary("AddV2", |a, b| a.add(b)),
    binary("Atan2", |a, b| a.atan2(b)),
    binary("BitwiseAnd", |a, b| a.bitwise_and(b)),
    binary("BitwiseOr", |a, b| a.bitwise_or(b)),
    binary("BitwiseXor", |a, b| a.bitwise_xor(b)),
    binary("Div", divide),
    binary("DivNoNan", |a, b| a.divide_no_nan(b)),
    binary("FloorDiv", |a, b| a.floordiv(b)),
    binary("FloorMod", |a, b| a.floormod(b)),
    binary("Greater", |a, b| a.greater(b)),
    binary("GreaterEqual", |a, b| a.greater_equal(b)),
    binary("LeftShift", |a, b| a.left_shift(b)),
    binary("Less", |a, b| a.less(b)),
    binary("LessEqual", |a, b| a.less_equal(b)),
    binary("LogicalAnd", |a, b| a.logical_and(b)),
    binary("LogicalOr", |a, b| a.logical_or(b)),
    binary("Maximum", |a, b| a.maximum(b)),
    binary("Minimum", |a, b| a.minimum(b)),
    binary("Mod", |a, b| a.truncatemod(b)),
    binary("Mul", |a, b| a.multiply(b)),
    binary("MulNoNan", |a, b| a.multiply_no_nan(b)),
    binary("NextAfter", |a, b| a.nextafter(b)),
    binary("Polygamma", |a, b| a.polygamma(b)),
    binary("Pow", |a, b| a.pow(b)),
    binary("RealDiv", |a, b| a.divide(b)),
    binary("RightShift", |a, b| a.right_shift(b)),
    binary("SquaredDifference", |a, b| a.squared_difference(b)),
    binary("Sub", |a, b| a.subtract(b)),
    binary("TruncateDiv", divide),
    binary("TruncateMod", |a, b| a.truncatemod(b)),
    binary("Xdivy", |a, b| a.xdivy(b)),
    binary("Xlog1py", |a, b| a.xlog1py(b)),
    binary("Xlogy", |a, b| a.xlogy(b)),
    binary("Zeta", |a, b| a.zeta(b)),
    binary("Equal", |a, b| a.equal(b)),
    binary("NotEqual", |a, b| a.not_equal(b)),
    any("ApproximateEqual", |call| {
        let difference = call.tensor(0)?.subtract(call.tensor(1)?)?.abs()?;
        Ok(Value::Tensor(difference.less(f64::from(call.attr_float("tolerance", 1e-5)))?))
    }),
    any("Cast", cast),
    any("ClipByValue", |call| {
        let x = call.tensor(0)?;
        Ok(Value::Tensor(x.clip_by_value(call.tensor(1)?, call.tensor(2)?)?))
    }),
    any("LeakyRelu", |call| {
        Ok(Value::Tensor(call.tensor(0)?.leaky_relu(call.attr_float("alpha", 0.2))?))
    }),
    any("Select", select),
    any("SelectV2", select),
];

/// Of integers, the quotient without its fraction.
fn divide(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if a.dtype().is_float() { a.divide(b) } else { a.truncatediv(b) }
}

fn cast(call: &Call<'_>) -> Result<Value> {
    let to = call.attr_type("DstT", HostDType::F32);
    if let Some(x) = on_host(call.input(0)?) {
        if let Some(result) = host::cast(x, to) {
            return Ok(Value::host(result));
        }
    }
    let x = call.tensor(0)?;
    match to.tensor_dtype() {
        // An integer of 64 bits is one of 32 on the device.
        Some(dtype) if x.dtype() == dtype => Ok(Value::Tensor(x)),
        Some(dtype) if !matches!(to, HostDType::I8 | HostDType::I16 | HostDType::U16) => {
            Ok(Value::Tensor(x.cast(dtype)?))
        }
        _ => Err(unsupported(format_args!("a cast to {to} on a device"))),
    }
}

fn select(call: &Call<'_>) -> Result<Value> {
    let arrays = [on_host(call.input(0)?), on_host(call.input(1)?), on_host(call.input(2)?)];
    if let [Some(condition), Some(a), Some(b)] = arrays {
        // Only the first version takes a row for each element of the condition.
        if call.node.op == "SelectV2" || condition.shape() == a.shape() {
            if let Some(result) = host::select(condition, a, b) {
                return Ok(Value::host(result));
            }
        }
    }
    let (mut condition, a, b) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    if call.node.op == "Select" && condition.rank() == 1 && a.rank() > 1 {
        let mut shape = vec![1; a.rank()];
        shape[0] = condition.len();
        condition = condition.reshape(shape)?;
    }
    if condition.dtype() != DType::Bool {
        condition = condition.not_equal(0)?;
    }
    Ok(Value::Tensor(where_(&condition, &a, &b)?))
}
