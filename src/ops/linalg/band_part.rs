//! The band of matrices between two diagonals: `y[.., r, c] = x[.., r, c]` where `r - c <= lower` and `c - r <= upper`.

use super::super::inventory::{Entry, OpKind, one};
use super::super::{Backward, Grads, Keep, Operation, only};
use super::blocks::matrix;
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Arg, Elementwise, Lowering, LoweringContext, View};
use crate::graph::{Op, RuntimeScalars, Spec};
use crate::tensor::Tensor;

/// Keeps the main diagonal, `num_lower` diagonals below it and `num_upper` above it, and sets the rest to 0; a negative number
/// keeps the whole side. `(-1, 0)` is the lower triangle, `(0, -1)` the upper, `(0, 0)` the diagonal.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::constant([[1, 2, 3], [4, 5, 6], [7, 8, 9]])?;
/// assert_eq!(tf::linalg::band_part(&x, 1, 0)?.to_vec::<i32>()?, [1, 0, 0, 4, 5, 0, 0, 8, 9]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the tensor has fewer than two axes; [`Error::Index`] if a number is larger than the matrix.
pub fn band_part(x: &Tensor, num_lower: i64, num_upper: i64) -> Result<Tensor> {
    let sizes = matrix("MatrixBandPart", x)?;
    for (name, side, number, size) in
        [("num_lower", "rows", num_lower, sizes[0]), ("num_upper", "columns", num_upper, sizes[1])]
    {
        if usize::try_from(number).is_ok_and(|number| number > size) {
            return Err(Error::Index(message!(
                "MatrixBandPart: {name} is {number} and the matrices {:?} have {size} {side}; give 0 to {size}, or -1 for \
                 all.",
                x.shape()
            )));
        }
    }
    band(x, (num_lower >= 0).then_some(num_lower), (num_upper >= 0).then_some(num_upper))
}

/// As [`band_part`]; a limit may also be negative and exclude the main diagonal. `None` means no limit.
pub(super) fn band(x: &Tensor, lower: Option<i64>, upper: Option<i64>) -> Result<Tensor> {
    let [rows, columns] = matrix("MatrixBandPart", x)?;
    let limit = |side: Option<i64>| {
        side.map_or(i32::MAX, |n| n.clamp(-i64::from(i32::MAX), 1 << 30) as i32)
    };
    dispatch(MatrixBandPart { rows, columns, lower: limit(lower), upper: limit(upper) }, &[x])
}

/// The lower triangle: the elements on diagonal `k` and below it, 0 elsewhere.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::constant([[1, 2], [3, 4]])?;
/// assert_eq!(tf::linalg::tril(&x, 0)?.to_vec::<i32>()?, [1, 0, 3, 4]);
/// assert_eq!(tf::linalg::tril(&x, -1)?.to_vec::<i32>()?, [0, 0, 3, 0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the tensor has fewer than two axes.
pub fn tril(x: &Tensor, k: i64) -> Result<Tensor> {
    matrix("Tril", x)?;
    band(x, None, Some(k))
}

/// The upper triangle: the elements on diagonal `k` and above it, 0 elsewhere.
///
/// # Errors
/// As [`tril`].
pub fn triu(x: &Tensor, k: i64) -> Result<Tensor> {
    matrix("Triu", x)?;
    band(x, Some(k.saturating_neg()), None)
}

#[derive(Debug, Attribute)]
#[op("MatrixBandPart")]
pub(crate) struct MatrixBandPart {
    rows: usize,
    columns: usize,
    lower: i32,
    upper: i32,
}

impl Op for MatrixBandPart {
    fn name(&self) -> &'static str {
        "MatrixBandPart"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(inputs[0].clone())
    }

    /// The matrix's sizes and both limits: kernel texts do not contain sizes.
    fn runtime_scalars(&self) -> RuntimeScalars {
        let MatrixBandPart { rows, columns, lower, upper } = *self;
        RuntimeScalars::from_slice(&[rows as u32, columns as u32, lower as u32, upper as u32])
    }

    fn lower(&self, _: &LoweringContext) -> Lowering {
        let body = "    let row = (i / vec4<u32>(columns)) % vec4<u32>(rows);\n    \
                    let below = vec4<i32>(row) - vec4<i32>(i % vec4<u32>(columns));\n    \
                    let lower_part = below <= vec4<i32>(bitcast<i32>(lower));\n    \
                    let upper_part = -below <= vec4<i32>(bitcast<i32>(upper));\n    \
                    return select(V(), x, lower_part & upper_part);\n";
        Elementwise::new("band_part", body)
            .input("x", 0, View::Same)
            .arg("i", Arg::Index)
            .arg("rows", Arg::RuntimeScalar(0))
            .arg("columns", Arg::RuntimeScalar(1))
            .arg("lower", Arg::RuntimeScalar(2))
            .arg("upper", Arg::RuntimeScalar(3))
            .into()
    }
}

impl Operation for MatrixBandPart {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        only(dispatch(MatrixBandPart { ..*self }, &[back.dy])?)
    }
}

/// The inventory of this file.
pub(in super::super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Kernel, "band_part", &["tf.linalg.band_part"], |c| {
        let (lower, upper) = (c.int("num_lower")?, c.int("num_upper")?);
        one(band_part(c.x()?, c.need("num_lower", lower)?, c.need("num_upper", upper)?))
    })
    .takes(&DType::ALL)
    .cases(|cases| {
        cases.of_shape("band_part", &[2, 4, 5], |x| band_part(x, 1, 2));
        cases.of_shape("band_part all below", &[5, 3], |x| band_part(x, -1, 0));
    })
    .kernels(&[|make, dtype| {
        let x = make(&[2, 3, 5], dtype);
        Ok(vec![band_part(&x, 1, 0)?, triu(&x, -1)?, tril(&x, 1)?])
    }]),
    Entry::new(OpKind::Kernel, "tril", &["tf.experimental.numpy.tril"], |c| {
        one(tril(c.arg("m")?, c.int("k")?.unwrap_or(0)))
    })
    .takes(&DType::ALL)
    .cases(|cases| cases.of_shape("tril", &[3, 4], |x| tril(x, 1))),
    Entry::new(OpKind::Kernel, "triu", &["tf.experimental.numpy.triu"], |c| {
        one(triu(c.arg("m")?, c.int("k")?.unwrap_or(0)))
    })
    .takes(&DType::ALL)
    .cases(|cases| cases.of_shape("triu", &[3, 4], |x| triu(x, 1))),
];
