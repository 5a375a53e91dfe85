//! Arithmetic: the rows of tables, reductions, scans, products and linear algebra.

use super::super::builder::{Builder, Out, dtype_attr, type_of};
use super::{Write, int, t};
use crate::dtype::DType;
use crate::host_array::HostDType;
use crate::saved_model::graph_def::proto::Attr;
use crate::saved_model::traced::{Found, Number, Site};

pub(super) const OPS: &[(&str, Write)] = &[
    ("Binary", binary),
    ("Unary", unary),
    ("Zeta", zeta),
    ("NextAfter", next_after),
    ("Reduce", reduce),
    ("ArgMax", arg_max),
    ("Cumulative", cumulative),
    ("MatMul", matmul),
    ("Cast", cast),
    ("CholeskyRule", of_matrices),
    ("InverseRule", of_matrices),
    ("DeterminantRule", of_matrices),
    ("LogDeterminantRule", log_determinant),
    ("EigenvaluesRule", eigenvalues),
    ("SingularValuesRule", singular_values),
    ("SolveRule", solve),
    ("TriangularSolveRule", triangular_solve),
    ("MatrixBandPart", band_part),
    ("MatrixDiag", diag),
    ("MatrixDiagPart", diag_part),
    ("FFT", fft),
    ("RFFT", rfft),
    ("IRFFT", irfft),
];

fn binary(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let dtype = site.input_dtype(0);
    let both = [&inputs[0], &inputs[1]];
    Ok(match site.call().name {
        op @ ("LogicalAnd" | "LogicalOr") => b.op(op, &both, []),
        "LogicalXor" => b.op("NotEqual", &both, [t(DType::Bool)]),
        op => b.op(op, &both, [t(dtype)]),
    })
}

fn unary(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let (x, dtype) = (&inputs[0], site.input_dtype(0));
    Ok(match site.call().name {
        "LogicalNot" => b.op("LogicalNot", &[x], []),
        "Cbrt" => {
            let third = b.filled(dtype, &[], (1f32 / 3.0).to_bits());
            let size = b.op("Abs", &[x], [t(dtype)]);
            let root = b.op("Pow", &[&size, &third], [t(dtype)]);
            let sign = b.op("Sign", &[x], [t(dtype)]);
            b.op("Mul", &[&sign, &root], [t(dtype)])
        }
        "ReciprocalNoNan" => {
            let one = b.filled(dtype, &[], 1f32.to_bits());
            b.op("DivNoNan", &[&one, x], [t(dtype)])
        }
        "PopulationCount" => {
            let count = b.op("PopulationCount", &[x], [t(dtype)]);
            b.cast(&count, DType::U8, site.dtype())
        }
        op => b.op(op, &[x], [t(dtype)]),
    })
}

fn zeta(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    Ok(b.op("Zeta", &[&inputs[0], &inputs[1]], [t(site.dtype())]))
}

fn next_after(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    Ok(b.op("NextAfter", &[&inputs[0], &inputs[1]], [t(site.dtype())]))
}

fn reduce(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let axes: Vec<i64> = site.get("axes")?;
    let axes = b.i32s(&axes);
    let keep = ("keep_dims", Attr::Bool(site.get("keepdims")?));
    let both = [&inputs[0], &axes];
    Ok(match site.call().name {
        op @ ("Any" | "All") => b.op(op, &both, [int("Tidx"), keep]),
        op => b.op(op, &both, [t(site.dtype()), int("Tidx"), keep]),
    })
}

fn arg_max(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let axis = b.i32(site.get("axis")?);
    let attrs = [t(site.input_dtype(0)), int("Tidx"), int("output_type")];
    Ok(b.op(site.call().name, &[&inputs[0], &axis], attrs))
}

fn cumulative(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let op = site.call().name;
    if !["Cumsum", "Cumprod", "CumulativeLogsumexp"].contains(&op) {
        return Err("has no counterpart in TensorFlow".to_string());
    }
    let options: crate::ops::CumsumOptions = site.get("options")?;
    let axis = b.i32(site.get("axis")?);
    let attrs = [
        ("exclusive", Attr::Bool(options.exclusive)),
        ("reverse", Attr::Bool(options.reverse)),
        t(site.dtype()),
        int("Tidx"),
    ];
    Ok(b.op(op, &[&inputs[0], &axis], attrs))
}

fn matmul(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let turned = |name| Ok::<_, String>(Attr::Bool(site.get(name)?));
    let (a, c) = (turned("transpose_a")?, turned("transpose_b")?);
    let both = [&inputs[0], &inputs[1]];
    let dtype = t(site.dtype());
    Ok(match (site.input_rank(0), site.input_rank(1)) {
        (2, 2) => b.op("MatMul", &both, [("transpose_a", a), ("transpose_b", c), dtype]),
        _ => b.op("BatchMatMulV2", &both, [("adj_x", a), ("adj_y", c), dtype]),
    })
}

fn cast(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    Ok(b.cast(&inputs[0], site.input_dtype(0), site.dtype()))
}

fn of_matrices(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    Ok(b.op(site.call().name, &[&inputs[0]], [t(site.dtype())]))
}

fn log_determinant(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let node = b.node("LogMatrixDeterminant", [inputs[0].clone()], [t(site.dtype())]);
    Ok(format!("{node}:log_abs_determinant:0"))
}

fn eigenvalues(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let attrs = [t(site.dtype()), ("compute_v", Attr::Bool(false))];
    Ok(format!("{}:e:0", b.node("SelfAdjointEigV2", [inputs[0].clone()], attrs)))
}

fn singular_values(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let attrs = [t(site.dtype()), ("compute_uv", Attr::Bool(false))];
    Ok(format!("{}:s:0", b.node("Svd", [inputs[0].clone()], attrs)))
}

fn solve(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let attrs = [t(site.dtype()), ("adjoint", Attr::Bool(site.get("adjoint")?))];
    Ok(b.op("MatrixSolve", &[&inputs[0], &inputs[1]], attrs))
}

fn triangular_solve(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    if site.get::<bool>("unit")? {
        return Err("takes the diagonal as ones, which TensorFlow's op cannot".to_string());
    }
    let attrs = [
        ("lower", Attr::Bool(site.get("lower")?)),
        ("adjoint", Attr::Bool(site.get("adjoint")?)),
        t(site.dtype()),
    ];
    Ok(b.op("MatrixTriangularSolve", &[&inputs[0], &inputs[1]], attrs))
}

fn band_part(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let (lower, upper): (i64, i64) = (site.get("lower")?, site.get("upper")?);
    let (x, dtype) = (&inputs[0], site.dtype());
    let limit = |side: i64| if side == i64::from(i32::MAX) { -1 } else { side };
    if lower >= 0 && upper >= 0 {
        let (lower, upper) = (b.i32(limit(lower)), b.i32(limit(upper)));
        return Ok(b.op("MatrixBandPart", &[x, &lower, &upper], [t(dtype), int("Tindex")]));
    }
    // TensorFlow's op always includes the main diagonal.
    let shape = site.input_shape(0)?;
    let line = |b: &mut Builder, size: &Number, shape: [i64; 2]| {
        let line = range(b, size);
        let shape = b.i32s(&shape);
        b.op("Reshape", &[&line, &shape], [t(DType::I32), int("Tshape")])
    };
    let rows = line(b, &shape[shape.len() - 2], [-1, 1]);
    let columns = line(b, &shape[shape.len() - 1], [1, -1]);
    let below = b.op("Sub", &[&rows, &columns], [t(DType::I32)]);
    let above = b.op("Neg", &[&below], [t(DType::I32)]);
    let (lower, upper) = (b.i32(lower), b.i32(upper));
    let lower = b.op("LessEqual", &[&below, &lower], [t(DType::I32)]);
    let upper = b.op("LessEqual", &[&above, &upper], [t(DType::I32)]);
    let inside = b.op("LogicalAnd", &[&lower, &upper], []);
    let zero = b.filled(dtype, &[], 0);
    Ok(b.op("SelectV2", &[&inside, x, &zero], [t(dtype)]))
}

/// The numbers from 0 to the one before `size`.
pub(super) fn range(b: &mut Builder, size: &Number) -> Out {
    let (zero, one) = (b.i32(0), b.i32(1));
    let size = b.number(size);
    b.op("Range", &[&zero, &size, &one], [int("Tidx")])
}

fn diag(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let shape = site.output_shape()?;
    let k = b.i32(site.get("k")?);
    let rows = b.number(&shape[shape.len() - 2]);
    let columns = b.number(&shape[shape.len() - 1]);
    let zero = b.filled(site.dtype(), &[], 0);
    Ok(b.op("MatrixDiagV3", &[&inputs[0], &k, &rows, &columns, &zero], [t(site.dtype())]))
}

fn diag_part(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let k = b.i32(site.get("k")?);
    let zero = b.filled(site.dtype(), &[], 0);
    Ok(b.op("MatrixDiagPartV3", &[&inputs[0], &k, &zero], [t(site.dtype())]))
}

fn complex_type() -> Attr {
    dtype_attr(HostDType::Complex64)
}

/// The numbers whose parts are the last axis of `x`.
fn complex(b: &mut Builder, x: &Out) -> Out {
    let attrs = [("num", Attr::Int(2)), t(DType::F32), ("axis", Attr::Int(-1))];
    let parts = b.node("Unpack", [x.clone()], attrs);
    let (real, imaginary) = (format!("{parts}:output:0"), format!("{parts}:output:1"));
    b.op("Complex", &[&real, &imaginary], [t(DType::F32), ("Tout", complex_type())])
}

/// Complex numbers as their parts, along a new last axis.
fn parts(b: &mut Builder, x: &Out) -> Out {
    let mut part =
        |op: &str| b.op(op, &[x], [("T", complex_type()), ("Tout", type_of(DType::F32))]);
    let (real, imaginary) = (part("Real"), part("Imag"));
    let attrs = [("N", Attr::Int(2)), t(DType::F32), ("axis", Attr::Int(-1))];
    b.op("Pack", &[&real, &imaginary], attrs)
}

fn fft(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let op = if site.get("inverse")? { "IFFT" } else { "FFT" };
    // TensorFlow transforms the last axis.
    let order = b.i32s(&[0, 2, 1, 3]);
    let turn =
        |b: &mut Builder, x: &Out| b.op("Transpose", &[x, &order], [t(DType::F32), int("Tperm")]);
    let x = turn(b, &inputs[0]);
    let x = complex(b, &x);
    let y = b.op(op, &[&x], [("Tcomplex", complex_type())]);
    let y = parts(b, &y);
    Ok(turn(b, &y))
}

fn rfft(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let length = b.vector(&site.input_shape(0)?[1..2]);
    let attrs = [("Treal", type_of(DType::F32)), ("Tcomplex", complex_type())];
    let y = b.op("RFFT", &[&inputs[0], &length], attrs);
    Ok(parts(b, &y))
}

fn irfft(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let length = b.vector(&site.output_shape()?[1..2]);
    let x = complex(b, &inputs[0]);
    let attrs = [("Treal", type_of(DType::F32)), ("Tcomplex", complex_type())];
    Ok(b.op("IRFFT", &[&x, &length], attrs))
}
