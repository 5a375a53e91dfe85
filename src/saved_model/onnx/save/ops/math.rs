//! Arithmetic: the rows of tables, reductions, scans, products and linear algebra.

use super::super::builder::{Attribute, Builder, Out};
use super::{Write, missing};
use crate::dtype::DType;
use crate::ops::CumsumOptions;
use crate::saved_model::traced::{Found, Site};
use Attribute::{Int, Ints};

pub(super) const OPS: &[(&str, Write)] = &[
    ("ArgMax", arg_max),
    ("Binary", binary),
    ("Cast", cast),
    ("Cumulative", cumulative),
    ("DeterminantRule", determinant),
    ("FFT", fft),
    ("MatMul", matmul),
    ("MatrixBandPart", band_part),
    ("MatrixDiag", diag),
    ("MatrixDiagPart", diag_part),
    ("RFFT", rfft),
    ("Reduce", reduce),
    ("Unary", unary),
];

/// `y` where `zero` is not 0, and 0 elsewhere.
fn unless_zero(b: &mut Builder, zero: &Out, dtype: DType, y: &Out) -> Out {
    let none = b.scalar(dtype, 0);
    let is = b.op("Equal", &[zero, &none], []);
    b.op("Where", &[&is, &none, y], [])
}

fn binary(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let (x, y, dtype) = (&inputs[0], &inputs[1], site.input_dtype(0));
    let both = [x, y];
    let float = dtype.is_float();
    let op = match site.call().name {
        "AddV2" => "Add",
        "RealDiv" | "TruncateDiv" => "Div",
        "Maximum" => "Max",
        "Minimum" => "Min",
        "LogicalAnd" => "And",
        "LogicalOr" => "Or",
        "LogicalXor" => "Xor",
        "LessEqual" => "LessOrEqual",
        "GreaterEqual" => "GreaterOrEqual",
        op @ ("Sub" | "Mul" | "Pow" | "Less" | "Greater" | "Equal" | "BitwiseAnd" | "BitwiseOr"
        | "BitwiseXor") => op,
        "NotEqual" => {
            let same = b.op("Equal", &both, []);
            return Ok(b.op("Not", &[&same], []));
        }
        "DivNoNan" => {
            let quotient = b.op("Div", &both, []);
            return Ok(unless_zero(b, y, dtype, &quotient));
        }
        "MulNoNan" => {
            let product = b.op("Mul", &both, []);
            return Ok(unless_zero(b, y, dtype, &product));
        }
        "Xdivy" => {
            let quotient = b.op("Div", &both, []);
            return Ok(unless_zero(b, x, dtype, &quotient));
        }
        "Xlogy" => {
            let log = b.op("Log", &[y], []);
            let product = b.op("Mul", &[x, &log], []);
            return Ok(unless_zero(b, x, dtype, &product));
        }
        "Xlog1py" => {
            let one = b.scalar(dtype, 1f32.to_bits());
            let more = b.op("Add", &[y, &one], []);
            let log = b.op("Log", &[&more], []);
            let product = b.op("Mul", &[x, &log], []);
            return Ok(unless_zero(b, x, dtype, &product));
        }
        "SquaredDifference" => {
            let difference = b.op("Sub", &both, []);
            return Ok(b.op("Mul", &[&difference, &difference], []));
        }
        "FloorDiv" if float => {
            let quotient = b.op("Div", &both, []);
            return Ok(b.op("Floor", &[&quotient], []));
        }
        "FloorDiv" => {
            // Of what is left, the quotient is exact.
            let rest = b.op("Mod", &both, []);
            let whole = b.op("Sub", &[x, &rest], []);
            return Ok(b.op("Div", &[&whole, y], []));
        }
        "FloorMod" if float => {
            let quotient = b.op("Div", &both, []);
            let floor = b.op("Floor", &[&quotient], []);
            let whole = b.op("Mul", &[&floor, y], []);
            return Ok(b.op("Sub", &[x, &whole], []));
        }
        "FloorMod" => return Ok(b.op("Mod", &both, [])),
        "TruncateMod" => return Ok(b.op("Mod", &both, [("fmod", Int(1))])),
        _ => return Err(missing()),
    };
    Ok(b.op(op, &both, []))
}

fn unary(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let (x, dtype) = (&inputs[0], site.input_dtype(0));
    let number = |b: &mut Builder, value: f32| b.scalar(dtype, value.to_bits());
    let op = match site.call().name {
        op @ ("Abs" | "Neg" | "Exp" | "Log" | "Sqrt" | "Reciprocal" | "Sin" | "Cos" | "Tan"
        | "Asin" | "Acos" | "Atan" | "Sinh" | "Cosh" | "Tanh" | "Asinh" | "Acosh"
        | "Atanh" | "Sigmoid" | "Softplus" | "Relu" | "Elu" | "Selu" | "Softsign" | "Erf"
        | "Sign") => op,
        "Floor" | "Ceil" | "Round" | "Rint" if !dtype.is_float() => "Identity",
        op @ ("Floor" | "Ceil" | "Round") => op,
        "Rint" => "Round",
        "IsNan" => "IsNaN",
        "IsInf" => "IsInf",
        "LogicalNot" => "Not",
        "Invert" => "BitwiseNot",
        "Square" => return Ok(b.op("Mul", &[x, x], [])),
        "Expm1" => {
            let (power, one) = (b.op("Exp", &[x], []), number(b, 1.0));
            return Ok(b.op("Sub", &[&power, &one], []));
        }
        "Log1p" => {
            let one = number(b, 1.0);
            let more = b.op("Add", &[x, &one], []);
            return Ok(b.op("Log", &[&more], []));
        }
        "Rsqrt" => {
            let root = b.op("Sqrt", &[x], []);
            return Ok(b.op("Reciprocal", &[&root], []));
        }
        "Cbrt" => {
            let third = number(b, 1.0 / 3.0);
            let size = b.op("Abs", &[x], []);
            let root = b.op("Pow", &[&size, &third], []);
            let sign = b.op("Sign", &[x], []);
            return Ok(b.op("Mul", &[&sign, &root], []));
        }
        "Erfc" => {
            let (erf, one) = (b.op("Erf", &[x], []), number(b, 1.0));
            return Ok(b.op("Sub", &[&one, &erf], []));
        }
        "ReciprocalNoNan" => {
            let quotient = b.op("Reciprocal", &[x], []);
            return Ok(unless_zero(b, x, dtype, &quotient));
        }
        "IsFinite" => {
            let (nan, inf) = (b.op("IsNaN", &[x], []), b.op("IsInf", &[x], []));
            let either = b.op("Or", &[&nan, &inf], []);
            return Ok(b.op("Not", &[&either], []));
        }
        _ => return Err(missing()),
    };
    Ok(b.op(op, &[x], []))
}

fn reduce(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let axes: Vec<i64> = site.get("axes")?;
    let keep = i64::from(site.get::<bool>("keepdims")?);
    if axes.is_empty() {
        return Ok(b.op("Identity", &[&inputs[0]], []));
    }
    let axes = b.i64s(&axes);
    let attributes = || [("keepdims", Int(keep))];
    let op = match site.call().name {
        "Sum" => "ReduceSum",
        "Prod" => "ReduceProd",
        "Max" => "ReduceMax",
        "Min" => "ReduceMin",
        // 0 and 1.
        other => {
            let numbers = b.cast(&inputs[0], DType::I32);
            let op = if other == "Any" { "ReduceMax" } else { "ReduceMin" };
            let y = b.op(op, &[&numbers, &axes], attributes());
            return Ok(b.cast(&y, DType::Bool));
        }
    };
    Ok(b.op(op, &[&inputs[0], &axes], attributes()))
}

fn arg_max(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let attributes = [("axis", Int(site.get("axis")?)), ("keepdims", Int(0))];
    let places = b.op(site.call().name, &[&inputs[0]], attributes);
    Ok(b.cast(&places, DType::I32))
}

fn cumulative(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    if site.call().name != "Cumsum" {
        return Err(missing());
    }
    let options: CumsumOptions = site.get("options")?;
    let axis = b.i64(site.get("axis")?);
    let attributes = [
        ("exclusive", Int(i64::from(options.exclusive))),
        ("reverse", Int(i64::from(options.reverse))),
    ];
    Ok(b.op("CumSum", &[&inputs[0], &axis], attributes))
}

/// The matrices, transposed.
fn turned(b: &mut Builder, x: &Out, rank: usize) -> Out {
    let mut order: Vec<i64> = (0..rank as i64).collect();
    order.swap(rank - 1, rank - 2);
    b.transpose(x, &order)
}

fn matmul(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let mut both = [inputs[0].clone(), inputs[1].clone()];
    for (at, name) in ["transpose_a", "transpose_b"].into_iter().enumerate() {
        if site.get(name)? {
            both[at] = turned(b, &both[at], site.input_rank(at));
        }
    }
    Ok(b.op("MatMul", &[&both[0], &both[1]], []))
}

fn cast(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    Ok(b.cast(&inputs[0], site.dtype()))
}

fn determinant(b: &mut Builder, _: &Site, inputs: &[Out]) -> Found<Out> {
    Ok(b.op("Det", &[&inputs[0]], []))
}

fn band_part(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let (lower, upper): (i64, i64) = (site.get("lower")?, site.get("upper")?);
    let mut y = inputs[0].clone();
    let none = i64::from(i32::MAX);
    for (limit, upper) in [(lower, 1), (upper, 0)] {
        if limit != none {
            let k = b.i64(if upper == 1 { -limit } else { limit });
            y = b.op("Trilu", &[&y, &k], [("upper", Int(upper))]);
        }
    }
    Ok(y)
}

/// Where a square matrix has its main diagonal.
fn diagonal(
    b: &mut Builder,
    site: &Site,
    shape: &[crate::saved_model::traced::Number],
) -> Found<Out> {
    let [.., rows, columns] = shape else { return Err(missing()) };
    if site.get::<i64>("k")? != 0 || rows != columns {
        return Err("is a diagonal of a form that ONNX lacks".to_string());
    }
    let line = b.range(rows);
    let column = b.unsqueeze(&line, &[1]);
    Ok(b.op("Equal", &[&column, &line], []))
}

fn diag(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let places = diagonal(b, site, &site.output_shape()?)?;
    let wide = b.unsqueeze(&inputs[0], &[-1]);
    let zero = b.scalar(site.dtype(), 0);
    Ok(b.op("Where", &[&places, &wide, &zero], []))
}

fn diag_part(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let places = diagonal(b, site, &site.input_shape(0)?)?;
    let zero = b.scalar(site.dtype(), 0);
    let alone = b.op("Where", &[&places, &inputs[0], &zero], []);
    let last = b.i64s(&[-1]);
    Ok(b.op("ReduceSum", &[&alone, &last], [("keepdims", Int(0))]))
}

fn fft(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let inverse = i64::from(site.get::<bool>("inverse")?);
    // The batch, the samples, another axis, and the parts: ONNX's op takes signals of one axis.
    let lines = b.transpose(&inputs[0], &[0, 2, 1, 3]);
    let shape = site.input_shape(0)?;
    let signals = site.number(|trace| {
        let shape = &site.inputs[0][trace].shape;
        (shape[0] * shape[2]) as i64
    })?;
    let flat = b.reshape(&lines, &[signals, shape[1].clone(), shape[3].clone()]);
    let attributes = [("axis", Int(1)), ("inverse", Int(inverse))];
    let y = b.op("DFT", &[&flat], attributes);
    let y =
        b.reshape(&y, &[shape[0].clone(), shape[2].clone(), shape[1].clone(), shape[3].clone()]);
    Ok(b.op("Transpose", &[&y], [("perm", Ints(vec![0, 2, 1, 3]))]))
}

fn rfft(b: &mut Builder, _: &Site, inputs: &[Out]) -> Found<Out> {
    let x = b.unsqueeze(&inputs[0], &[2]);
    Ok(b.op("DFT", &[&x], [("axis", Int(1)), ("onesided", Int(1))]))
}
