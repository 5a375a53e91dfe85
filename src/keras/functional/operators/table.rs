//! The supported ops, and what each computes.

use serde_json::json;

use super::call::{Call, one};
use super::constant::dtype_named;
use super::dtypes::{Sides, cast, counting, floated, floats, narrow, of_bytes, wide};
use super::math::{
    absolute, bounded, clip, dot, extreme, largest, like, matmul, modulo, normalize, product,
    round, running, smallest, whole,
};
use super::padding::pad;
use super::shapes::{expand_dims, item, one_hot, permuted, roll, split, take, tile};
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::{EluOptions, GeluOptions, NanToNumOptions, concat, einsum, stack, where_};
use crate::shape::Axes;
use crate::tensor::{Operand, Tensor};

/// A Keras op, and what it computes.
pub(super) struct Row {
    pub(super) class: &'static str,
    /// Computes its results, in order.
    pub(super) call: fn(&Call<'_>) -> Result<Vec<Tensor>>,
}

/// Rows by kind: functions of one tensor unchanged, of one with bytes as wider integers, of one as floats, of two, of two as
/// floats, comparisons, logical functions, reductions, and functions of the call.
macro_rules! rows {
    (
        one { $($one:literal $one_call:expr,)* }
        numbers { $($numbers:literal $numbers_call:expr,)* }
        floats { $($floats:literal $floats_call:expr,)* }
        two { $($two:literal $two_call:expr,)* }
        two_floats { $($two_floats:literal $two_floats_call:expr,)* }
        compare { $($compare:literal $compare_call:expr,)* }
        truths { $($truths:literal $truths_call:expr,)* }
        reduce { $($reduce:literal $reduce_call:expr,)* }
        call { $($call:literal $call_call:expr,)* }
    ) => {
        pub(super) static ROWS: &[Row] = &[
            $(Row { class: $one, call: |call| {
                let f: fn(&Tensor) -> Result<Tensor> = $one_call;
                one(f(&call.x()?))
            } },)*
            $(Row { class: $numbers, call: |call| {
                let f: fn(&Tensor) -> Result<Tensor> = $numbers_call;
                one(of_bytes(&call.x()?, f))
            } },)*
            $(Row { class: $floats, call: |call| {
                let f: fn(&Tensor) -> Result<Tensor> = $floats_call;
                one(f(&floats(&call.x()?)?))
            } },)*
            $(Row { class: $two, call: |call| {
                let f: fn(&Tensor, Operand) -> Result<Tensor> = $two_call;
                let Sides { a, b, dtype } = call.sides()?;
                one(narrow(f(&a, b)?, dtype))
            } },)*
            $(Row { class: $two_floats, call: |call| {
                let f: fn(&Tensor, Operand) -> Result<Tensor> = $two_floats_call;
                let Sides { a, b, .. } = call.sides()?;
                one(f(&floats(&a)?, floated(b)?))
            } },)*
            $(Row { class: $compare, call: |call| {
                let f: fn(&Tensor, Operand) -> Result<Tensor> = $compare_call;
                let Sides { a, b, .. } = call.sides()?;
                one(f(&a, b))
            } },)*
            $(Row { class: $truths, call: |call| {
                let f: fn(&Tensor, &Tensor) -> Result<Tensor> = $truths_call;
                let truths = |place, name| call.tensor(place, name)?.cast(DType::Bool);
                one(f(&truths(0, "x1")?, &truths(1, "x2")?))
            } },)*
            $(Row { class: $reduce, call: |call| {
                let f: fn(&Tensor, Axes) -> Result<Tensor> = $reduce_call;
                one(f(&call.x()?, call.axes()?))
            } },)*
            $(Row { class: $call, call: $call_call },)*
        ];
    };
}

rows! {
    one {
        "Copy" |x| Ok(x.clone()),
        "Erf" |x| x.erf(),
        "Erfc" |x| x.erfc(),
        "Erfinv" |x| x.erfinv(),
        "HardSigmoid" |x| x.hard_sigmoid(),
        "HardSilu" |x| x.hard_silu(),
        "HardTanh" |x| x.hard_tanh(),
        "LogSigmoid" |x| x.log_sigmoid(),
        "LogicalNot" |x| x.cast(DType::Bool)?.logical_not(),
        "Ravel" |x| x.reshape([-1]),
        "Reciprocal" |x| x.reciprocal(),
        "Rsqrt" |x| x.rsqrt(),
        "Selu" |x| x.selu(),
        "Sigmoid" |x| x.sigmoid(),
        "Silu" |x| x.silu(),
        "Softplus" |x| x.softplus(),
        "Softsign" |x| x.softsign(),
        "SparsePlus" |x| x.sparse_plus(),
        "SparseSigmoid" |x| x.sparse_sigmoid(),
        "TanhShrink" |x| x.tanh_shrink(),
    }
    numbers {
        "Absolute" absolute,
        "Abs" absolute,
        "Negative" |x| x.negative(),
        "Relu" |x| x.relu(),
        "Relu6" |x| if x.dtype().is_int() { x.clip_by_value(0, 6) } else { x.relu6() },
        "Sign" |x| x.sign(),
        "Square" |x| if x.dtype() == DType::Bool { x.cast(DType::I32) } else { x.square() },
    }
    floats {
        "Arccos" |x| x.acos(),
        "Arccosh" |x| x.acosh(),
        "Arcsin" |x| x.asin(),
        "Arcsinh" |x| x.asinh(),
        "Arctan" |x| x.atan(),
        "Arctanh" |x| x.atanh(),
        "Cbrt" |x| x.cbrt(),
        "Ceil" |x| x.ceil(),
        "Cos" |x| x.cos(),
        "Cosh" |x| x.cosh(),
        "Exp" |x| x.exp(),
        "Expm1" |x| x.expm1(),
        "Floor" |x| x.floor(),
        "Isfinite" |x| x.is_finite(),
        "Isinf" |x| x.is_inf(),
        "Isnan" |x| x.is_nan(),
        "Log" |x| x.log(),
        "Log1p" |x| x.log1p(),
        "Sin" |x| x.sin(),
        "Sinh" |x| x.sinh(),
        "Sqrt" |x| x.sqrt(),
        "Tan" |x| x.tan(),
        "Tanh" |x| x.tanh(),
    }
    two {
        "Add" |a, b| a.add(b),
        "Maximum" |a, b| a.maximum(b),
        "Minimum" |a, b| a.minimum(b),
        "Multiply" |a, b| a.multiply(b),
    }
    two_floats {
        "Arctan2" |a, b| a.atan2(b),
        "Divide" |a, b| a.divide(b),
        "DivideNoNan" |a, b| a.divide_no_nan(b),
        "Logaddexp" |a, b| a.logaddexp(b),
        "TrueDivide" |a, b| a.divide(b),
    }
    compare {
        "Equal" |a, b| a.equal(b),
        "Greater" |a, b| a.greater(b),
        "GreaterEqual" |a, b| a.greater_equal(b),
        "Less" |a, b| a.less(b),
        "LessEqual" |a, b| a.less_equal(b),
        "NotEqual" |a, b| a.not_equal(b),
    }
    truths {
        "LogicalAnd" |a, b| a.logical_and(b),
        "LogicalOr" |a, b| a.logical_or(b),
        "LogicalXor" |a, b| a.logical_xor(b),
    }
    reduce {
        "All" |x, axes| x.cast(DType::Bool)?.reduce_all(axes),
        "Amax" largest,
        "Amin" smallest,
        "Any" |x, axes| x.cast(DType::Bool)?.reduce_any(axes),
        "Logsumexp" |x, axes| floats(x)?.reduce_logsumexp(axes),
        "Mean" |x, axes| floats(x)?.reduce_mean(axes),
        "Std" |x, axes| floats(x)?.reduce_std(axes),
        "Sum" |x, axes| counting(x)?.reduce_sum(axes),
        "Var" |x, axes| floats(x)?.reduce_variance(axes),
    }
    call {
        "Argmax" |call| extreme(call, |x, axis| x.argmax(axis)),
        "Argmin" |call| extreme(call, |x, axis| x.argmin(axis)),
        "Argsort" |call| one(call.along(&wide(&call.x()?)?, |x, axis| x.argsort(axis))),
        "BroadcastTo" |call| {
            let x = call.x()?;
            let shape = call.shape("shape", &x)?;
            let size = |size: i64| {
                usize::try_from(size).map_err(|_| call.wrong("has an unknown size among 'shape'"))
            };
            one(x.broadcast_to(shape.into_iter().map(size).collect::<Result<Vec<_>>>()?))
        },
        "Cast" |call| {
            let name: String = call.need("dtype")?;
            let dtype = dtype_named(&name).map_err(|what| call.wrong(&format!("wants {what}")))?;
            one(cast(&call.x()?, dtype))
        },
        "Celu" |call| one(call.x()?.celu(call.option("alpha")?.unwrap_or(1.0))),
        "Clip" clip,
        "Concatenate" |call| one(concat(call.tensors("xs")?, call.option::<i64>("axis")?.unwrap_or(0))),
        "Cumprod" |call| running(call, |x, axis| x.cumprod(axis)),
        "Cumsum" |call| running(call, |x, axis| x.cumsum(axis)),
        "Dot" dot,
        "Einsum" |call| {
            let equation: String = call.need("subscripts")?;
            let operands = call.op.args.iter().map(|argument| call.to_tensor(argument));
            one(product(operands.collect::<Result<_>>()?, |list| einsum(&equation, list)))
        },
        "Elu" |call| {
            let alpha = call.option("alpha")?.unwrap_or(1.0);
            one(call.x()?.elu_with(EluOptions::new().alpha(alpha)))
        },
        "ExpandDims" expand_dims,
        "FloorDivide" |call| whole(call, |a, b| a.floordiv(b)),
        "Flip" |call| one(call.x()?.reverse(call.option::<Axes>("axis")?.unwrap_or(Axes::ALL))),
        "Gelu" |call| {
            let approximate = call.option("approximate")?.unwrap_or(true);
            one(call.x()?.gelu_with(GeluOptions::new().approximate(approximate)))
        },
        "GetItem" item,
        "Glu" |call| one(call.x()?.glu(call.option::<i64>("axis")?.unwrap_or(-1))),
        "HardShrink" |call| one(call.x()?.hard_shrink(call.option("threshold")?.unwrap_or(0.5))),
        "Hstack" |call| {
            let xs = call.tensors("xs")?;
            let axis = i64::from(xs.first().is_some_and(|x| x.rank() > 1));
            one(concat(xs, axis))
        },
        "LeakyRelu" |call| {
            let slope = call.option("negative_slope")?.unwrap_or(0.2);
            one(floats(&call.x()?)?.leaky_relu(slope))
        },
        "LogSoftmax" |call| one(call.along_in_shape(|x, axis| x.log_softmax(axis))),
        "Matmul" |call| {
            let [a, b] = [call.tensor(0, "x1")?, call.tensor(1, "x2")?];
            if a.rank() == 0 || b.rank() == 0 {
                return Err(call.wrong("multiplies by a single number; use ops.multiply"));
            }
            one(product(vec![a, b], |list| matmul(&list[0], &list[1])))
        },
        "Max" |call| bounded(call, Tensor::reduce_max, |y, initial| y.maximum(initial)),
        "Min" |call| bounded(call, Tensor::reduce_min, |y, initial| y.minimum(initial)),
        "Mod" modulo,
        "Moveaxis" |call| permuted(call, "source", "destination", false),
        "NanToNum" |call| {
            let options = NanToNumOptions::new().nan(call.option("nan")?.unwrap_or(0.0));
            let options = options.posinf(call.option("posinf")?).neginf(call.option("neginf")?);
            one(call.x()?.nan_to_num_with(options))
        },
        "Normalize" normalize,
        "OneHot" one_hot,
        "OnesLike" |call| like(call, |x| x.ones_like()),
        "Pad" pad,
        "Power" |call| whole(call, |a, b| a.pow(b)),
        "Prod" |call| {
            let x = match call.given("dtype").is_some_and(|dtype| !dtype.is_null()) {
                true => call.in_dtype(call.x()?)?,
                false => counting(&call.x()?)?,
            };
            one(narrow(wide(&x)?.reduce_prod(call.axes()?)?, x.dtype()))
        },
        "Repeat" |call| {
            let x = call.x()?;
            let repeats: Vec<usize> = call.list("repeats")?;
            match call.option::<i64>("axis")? {
                Some(axis) => one(x.repeat(&repeats, axis)),
                None => one(x.reshape([-1])?.repeat(&repeats, 0)),
            }
        },
        "Reshape" |call| {
            let x = call.x()?;
            one(x.reshape(call.shape("newshape", &x)?))
        },
        "Roll" roll,
        "Round" round,
        "SoftShrink" |call| one(call.x()?.soft_shrink(call.option("threshold")?.unwrap_or(0.5))),
        "Softmax" |call| one(call.along_in_shape(|x, axis| x.softmax(axis))),
        "Sort" |call| {
            let x = call.x()?;
            one(narrow(call.along(&wide(&x)?, |x, axis| x.sort(axis))?, x.dtype()))
        },
        "Split" split,
        "Squareplus" |call| one(call.x()?.squareplus(call.option("b")?.unwrap_or(4.0))),
        "Squeeze" |call| one(call.x()?.squeeze(call.option::<Axes>("axis")?.unwrap_or(Axes::ALL))),
        "Stack" |call| one(stack(call.tensors("x")?, call.option::<i64>("axis")?.unwrap_or(0))),
        "StopGradient" |call| Ok(vec![call.tensor(0, "variable")?.stop_gradient()]),
        "Subtract" |call| {
            let Sides { a, b, dtype } = call.sides()?;
            if dtype == DType::Bool {
                return Err(call.wrong("subtracts truth values; use ops.logical_xor, or ops.cast them first"));
            }
            one(narrow(a.subtract(b)?, dtype))
        },
        "Swapaxes" |call| permuted(call, "axis1", "axis2", true),
        "Take" take,
        "Tile" tile,
        "TopK" |call| {
            // Results that need not be sorted may be sorted.
            call.only("sorted", &[json!(true), json!(false)])?;
            let x = call.x()?;
            let (values, places) = wide(&x)?.top_k(call.need("k")?)?;
            Ok(vec![narrow(values, x.dtype())?, places])
        },
        "Transpose" |call| {
            let x = call.x()?;
            match call.option::<Vec<i64>>("axes")? {
                Some(axes) => one(x.transpose(&axes[..])),
                None => one(x.transpose((0..x.rank()).rev().collect::<Vec<usize>>())),
            }
        },
        "Unstack" |call| {
            let list = call.x()?.unstack(call.option::<i64>("axis")?.unwrap_or(0))?;
            match call.option::<usize>("num")? {
                Some(num) if num != list.len() => {
                    Err(call.wrong(&format!("cuts {} pieces, where 'num' is {num}", list.len())))
                }
                _ => Ok(list),
            }
        },
        // Unlike NumPy, Keras does not turn vectors into rows here.
        "Vstack" |call| one(concat(call.tensors("xs")?, 0)),
        "Where" |call| {
            let condition = call.tensor(0, "condition")?.cast(DType::Bool)?;
            let Sides { a, b, dtype } = call.both([(1, "x1"), (2, "x2")])?;
            one(narrow(where_(&condition, &a, &b.into_tensor_like("SelectV2", &a)?)?, dtype))
        },
        "ZerosLike" |call| like(call, |x| x.zeros_like()),
    }
}
