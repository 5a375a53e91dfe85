//! Diagonals of matrices, read and written: `y[.., i] = x[.., i + max(-k, 0), i + max(k, 0)]` and the reverse.

use super::super::inventory::{ANY, Entry, OpKind, one};
use super::super::{Backward, Grads, Keep, Operation, fill, only, where_};
use super::blocks::{identity_mask, matrix};
use crate::dtype::{DType, Scalar};
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{
    Arg, Elementwise, Lowering, LoweringContext, Strided, View, ViewAxis, Window,
};
use crate::graph::{Op, RuntimeScalars, Spec};
use crate::shape::Shape;
use crate::support::options::options;
use crate::tensor::Tensor;

options! {
    /// The diagonal, and the size of the matrix around it.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct DiagOptions {
        /// The diagonal: 0 is the main one, positive ones are above it, negative ones below; 0 by default.
        k: i64 = 0,
        /// The number of rows of the matrix that `diag` returns; with `None` the matrix is as small as the diagonal allows, and
        /// square if `num_cols` is `None`, too.
        num_rows: Option<usize> as impl Into<Option<usize>> = None,
        /// The number of columns of the matrix that `diag` returns, likewise.
        num_cols: Option<usize> as impl Into<Option<usize>> = None,
        /// The value outside the diagonal that `diag` sets; 0 by default.
        padding_value: Scalar as impl Into<Scalar> = Scalar::Int(0),
    }
}

/// Square matrices with the tensor's last axis on their diagonals, and 0 elsewhere: `[.., N]` to `[.., N, N]`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let y = tf::linalg::diag(&tf::constant([1, 2])?)?;
/// assert_eq!(y.to_vec::<i32>()?, [1, 0, 0, 2]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the tensor is a scalar.
pub fn diag(diagonal: &Tensor) -> Result<Tensor> {
    diag_with(diagonal, DiagOptions::new())
}

/// Like [`diag`], on another diagonal, in a larger matrix, or with another value outside the diagonal.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use wgrad::linalg::{DiagOptions, diag_with};
/// let y = diag_with(&tf::constant([1, 2])?, DiagOptions::new().k(1).padding_value(7))?;
/// assert_eq!(y.to_vec::<i32>()?, [7, 1, 7, 7, 7, 2, 7, 7, 7]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Same as [`diag`], and an error if the matrix is too small for the diagonal, or so large that the diagonal is too short.
pub fn diag_with(diagonal: &Tensor, options: DiagOptions) -> Result<Tensor> {
    let Some(&len) = diagonal.shape().last() else {
        return Err(Error::Shape(
            "MatrixDiag: the diagonal is a scalar; it needs an axis. Use expand_dims.".into(),
        ));
    };
    let DiagOptions { k, num_rows, num_cols, padding_value } = options;
    let (down, right) = offsets(k);
    let least = [len.saturating_add(down), len.saturating_add(right)];
    // If one side is given, the other is as short as the diagonal allows; if neither is, the matrix is square.
    let sizes = match (num_rows, num_cols) {
        (None, None) => [least[0].max(least[1]); 2],
        (rows, columns) => [rows.unwrap_or(least[0]), columns.unwrap_or(least[1])],
    };
    if diagonal_len(sizes, k) != Some(len) {
        return Err(Error::Shape(message!(
            "MatrixDiag: {len} elements do not fit on diagonal {k} of a matrix of {} rows and {} columns; it takes at least \
             {} and {}, and one of them exactly.",
            sizes[0],
            sizes[1],
            least[0],
            least[1]
        )));
    }
    let y = dispatch(MatrixDiag { rows: sizes[0], columns: sizes[1], k }, &[diagonal])?;
    if padding_value == Scalar::Int(0) {
        return Ok(y);
    }
    let pad = fill(y.device(), "MatrixDiag", Shape::default(), padding_value, y.dtype())?;
    where_(&identity_mask(y.device(), sizes, k)?, &y, &pad)
}

/// The main diagonals of matrices: `[.., M, N]` to `[.., min(M, N)]`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let y = tf::linalg::diag_part(&tf::constant([[1, 2, 3], [4, 5, 6]])?)?;
/// assert_eq!(y.to_vec::<i32>()?, [1, 5]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the tensor has fewer than two axes.
pub fn diag_part(x: &Tensor) -> Result<Tensor> {
    diag_part_with(x, 0)
}

/// Diagonal `k` of matrices; positive ones are above the main diagonal.
///
/// # Errors
/// Same as [`diag_part`]; [`Error::Index`] if the diagonal does not exist.
pub fn diag_part_with(x: &Tensor, k: i64) -> Result<Tensor> {
    let [rows, columns] = matrix("MatrixDiagPart", x)?;
    checked_len("MatrixDiagPart", x, [rows, columns], k)?;
    dispatch(MatrixDiagPart { k }, &[x])
}

/// The matrices with their main diagonals replaced.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::constant([[1, 2], [3, 4]])?;
/// assert_eq!(tf::linalg::set_diag(&x, &tf::constant([8, 9])?)?.to_vec::<i32>()?, [8, 2, 3, 9]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the tensor has fewer than two axes, or `diagonal` does not have the shape of its diagonals;
/// [`Error::DType`] if the dtypes differ.
pub fn set_diag(x: &Tensor, diagonal: &Tensor) -> Result<Tensor> {
    set_diag_with(x, diagonal, 0)
}

/// As [`set_diag`], on diagonal `k`.
///
/// # Errors
/// Same as [`set_diag`]; [`Error::Index`] if the diagonal does not exist.
pub fn set_diag_with(x: &Tensor, diagonal: &Tensor, k: i64) -> Result<Tensor> {
    let sizes = matrix("MatrixSetDiag", x)?;
    let len = checked_len("MatrixSetDiag", x, sizes, k)?;
    let mut wanted = x.shape()[..x.rank() - 2].to_vec();
    wanted.push(len);
    if diagonal.shape() != wanted {
        return Err(Error::Shape(message!(
            "MatrixSetDiag: diagonal {k} of {:?} has the shape {wanted:?}, and the one given {:?}.",
            x.shape(),
            diagonal.shape()
        )));
    }
    let [rows, columns] = sizes;
    let there = dispatch(MatrixDiag { rows, columns, k }, &[diagonal])?;
    where_(&identity_mask(x.device(), sizes, k)?, &there, x)
}

/// A tensor of twice the rank with the elements on its diagonal: `y[i.., i..] = x[i..]`, 0 elsewhere.
///
/// # Errors
/// [`Error::Shape`] if the result has too many elements.
pub fn tensor_diag(diagonal: &Tensor) -> Result<Tensor> {
    let twice = [diagonal.shape(), diagonal.shape()].concat();
    diag(&diagonal.reshape_to([diagonal.len()].into())?)?.reshape_to(twice.into())
}

/// The diagonal of a tensor whose second half of axes has the shape of the first: `y[i..] = x[i.., i..]`.
///
/// # Errors
/// [`Error::Shape`] if the halves differ, or the tensor is a scalar.
pub fn tensor_diag_part(x: &Tensor) -> Result<Tensor> {
    let half = x.rank() / 2;
    let (left, right) = x.shape().split_at(half);
    if x.rank() == 0 || left != right {
        return Err(Error::Shape(message!(
            "DiagPart: the tensor is {:?}; it needs an even number of axes, the second half like the first.",
            x.shape()
        )));
    }
    let n = Shape::new(left).elements();
    diag_part(&x.reshape_to([n, n].into())?)?.reshape_to(left.into())
}

/// The row and the column at which diagonal `k` begins.
fn offsets(k: i64) -> (usize, usize) {
    let steps = usize::try_from(k.unsigned_abs()).unwrap_or(usize::MAX);
    if k < 0 { (steps, 0) } else { (0, steps) }
}

fn diagonal_len([rows, columns]: [usize; 2], k: i64) -> Option<usize> {
    let (down, right) = offsets(k);
    Some(rows.checked_sub(down)?.min(columns.checked_sub(right)?))
}

fn checked_len(op: &str, x: &Tensor, sizes: [usize; 2], k: i64) -> Result<usize> {
    match diagonal_len(sizes, k) {
        Some(len) if len > 0 || k == 0 => Ok(len),
        _ => Err(Error::Index(message!(
            "{op}: there is no diagonal {k} in {:?}; it must be above -{} and below {}.",
            x.shape(),
            sizes[0],
            sizes[1]
        ))),
    }
}

#[derive(Debug, Attribute)]
#[op("MatrixDiagPart")]
pub(crate) struct MatrixDiagPart {
    k: i64,
}

impl Op for MatrixDiagPart {
    fn name(&self) -> &'static str {
        "MatrixDiagPart"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let at = inputs[0].shape.len() - 2;
        let sizes = [inputs[0].shape[at], inputs[0].shape[at + 1]];
        let mut shape = Shape::new(&inputs[0].shape[..at]);
        shape.push(diagonal_len(sizes, self.k).unwrap_or(0));
        Ok(Spec::new(shape, inputs[0].dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let mut strides = cx.inputs[0].shape.strides();
        let (down, right) = offsets(self.k);
        let at = strides.len() - 2;
        let offset = down as i64 * strides[at] + right as i64;
        strides[at] += strides[at + 1];
        strides.truncate(at + 1);
        Elementwise::view(View::strided(offset, &strides)).into()
    }
}

impl Operation for MatrixDiagPart {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        let shape = &back.spec(0).shape;
        let (rows, columns) = (shape[shape.len() - 2], shape[shape.len() - 1]);
        only(dispatch(MatrixDiag { rows, columns, k: self.k }, &[back.dy])?)
    }
}

#[derive(Debug, Attribute)]
#[op("MatrixDiag")]
pub(crate) struct MatrixDiag {
    rows: usize,
    columns: usize,
    k: i64,
}

impl Op for MatrixDiag {
    fn name(&self) -> &'static str {
        "MatrixDiag"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let x = inputs[0];
        let mut shape = Shape::new(&x.shape[..x.shape.len() - 1]);
        shape.push(self.rows);
        shape.push(self.columns);
        Ok(Spec::new(shape, x.dtype))
    }

    /// The sizes of the matrix and the diagonal: kernel texts do not contain sizes.
    fn runtime_scalars(&self) -> RuntimeScalars {
        RuntimeScalars::from_slice(&[self.rows as u32, self.columns as u32, self.k as u32])
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let x = cx.inputs[0];
        let len = x.shape[x.shape.len() - 1] as i64;
        let low = offsets(self.k).0 as i64;
        let mut axes: Vec<ViewAxis> =
            x.shape.strides().iter().map(|&stride| ViewAxis { stride, window: None }).collect();
        if let Some(last) = axes.last_mut() {
            last.window =
                (len != self.rows as i64).then_some(Window { low: low.into(), len, dilation: 1 });
        }
        axes.push(ViewAxis { stride: 0, window: None });
        let view = View::Strided(Strided { offset: 0.into(), axes: axes.into_iter().collect() });
        let body = "select(V(), x, vec4<i32>(i % vec4<u32>(columns)) - vec4<i32>((i / vec4<u32>(columns)) % \
                    vec4<u32>(rows)) == vec4<i32>(bitcast<i32>(k)))";
        Elementwise::new("matrix_diag", body)
            .input("x", 0, view)
            .arg("i", Arg::Index)
            .arg("rows", Arg::RuntimeScalar(0))
            .arg("columns", Arg::RuntimeScalar(1))
            .arg("k", Arg::RuntimeScalar(2))
            .into()
    }
}

impl Operation for MatrixDiag {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        only(dispatch(MatrixDiagPart { k: self.k }, &[back.dy])?)
    }
}

/// The inventory of this file.
pub(in super::super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Kernel, "diag", &["tf.linalg.diag"], |c| one(diag(c.x()?)))
        .forms(&["diag_with"])
        .takes(&DType::ALL)
        .cases(|cases| {
            cases.of_shape("diag", &[2, 3], diag);
            cases.of_shape("diag_with above", &[2, 3], |x| diag_with(x, DiagOptions::new().k(2)));
            cases.of_shape("diag_with below", &[3], |x| {
                diag_with(x, DiagOptions::new().k(-1).num_cols(5).padding_value(2.0))
            });
        })
        .kernels(&[|make, dtype| {
            Ok(vec![
                diag(&make(&[2, 3], dtype))?,
                diag_with(&make(&[4], dtype), DiagOptions::new().k(-2).num_cols(7))?,
            ])
        }]),
    Entry::new(OpKind::Kernel, "diag_part", &["tf.linalg.diag_part"], |c| one(diag_part(c.x()?)))
        .forms(&["diag_part_with"])
        .takes(&DType::ALL)
        .cases(|cases| {
            cases.of_shape("diag_part", &[2, 3, 4], diag_part);
            cases.of_shape("diag_part_with above", &[2, 3, 4], |x| diag_part_with(x, 2));
            cases.of_shape("diag_part_with below", &[4, 3], |x| diag_part_with(x, -2));
        }),
    Entry::new(OpKind::Composed, "set_diag", &["tf.linalg.set_diag"], |c| {
        one(set_diag(c.arg("input")?, c.arg("diagonal")?))
    })
    .forms(&["set_diag_with"])
    .takes(&DType::ALL)
    .cases(|cases| {
        cases.add("set_diag", &[(&[2, 3, 4], ANY), (&[2, 3], ANY)], |x| set_diag(&x[0], &x[1]));
        cases.add("set_diag_with", &[(&[3, 4], ANY), (&[2], ANY)], |x| {
            set_diag_with(&x[0], &x[1], -1)
        });
    }),
    Entry::new(OpKind::Composed, "tensor_diag", &["tf.linalg.tensor_diag"], |c| {
        one(tensor_diag(c.arg("diagonal")?))
    })
    .takes(&DType::ALL)
    .cases(|cases| cases.of_shape("tensor_diag", &[2, 3], tensor_diag)),
    Entry::new(OpKind::Composed, "tensor_diag_part", &["tf.linalg.tensor_diag_part"], |c| {
        one(tensor_diag_part(c.arg("input")?))
    })
    .takes(&DType::ALL)
    .cases(|cases| cases.of_shape("tensor_diag_part", &[2, 3, 2, 3], tensor_diag_part)),
];
