//! Wrong calls of `einsum`, `tensordot` and linear algebra.

use wgrad as tf;
use wgrad::linalg::{self, DiagOptions};
use wgrad::{Result, Tensor};

use super::{floats, ints, text, zeros};

#[track_caller]
fn says(result: Result<Tensor>, want: &str) {
    assert_eq!(text(result), want);
}

#[test]
fn equations_that_are_none() {
    let (a, b) = (zeros([2, 3]), zeros([4, 5]));
    let of = |equation: &str, operands: &[&Tensor]| tf::einsum(equation, operands);
    says(
        of("ij,jk->ik", &[&a, &b]),
        "Einsum: \"ij,jk->ik\": label j is 3 in operand 0 ([2, 3]) and 4 in operand 1 ([4, 5]). They must be equal.",
    );
    says(
        of("ij->ik", &[&a]),
        "Einsum: \"ij->ik\": label k of the result is in no term on the left.",
    );
    says(
        of("ij->ii", &[&a]),
        "Einsum: \"ij->ii\": label i occurs twice in the result; name it once.",
    );
    says(
        of("ijk->i", &[&a]),
        "Einsum: \"ijk->i\": operand 0 is [2, 3] with 2 axes, and its term has 3 letters; give each axis a letter, or write \
         \"...\" for those without one.",
    );
    says(
        of("ij", &[&a, &b]),
        "Einsum: \"ij\": it has 1 terms on the left, and 2 tensors are given; each needs a term.",
    );
    says(
        of("i1->i", &[&a]),
        "Einsum: \"i1->i\": '1' is not a label; labels are letters, and \"...\" stands for further axes.",
    );
    says(of("i..->i", &[&a]), "Einsum: \"i..->i\": an ellipsis is three dots.");
    says(of("...i...->i", &[&a]), "Einsum: \"...i...->i\": a term may have at most one ellipsis.");
    says(
        of("...i->i", &[&a]),
        "Einsum: \"...i->i\": \"...\" stands for 1 axes on the left; the result needs it too.",
    );
    says(
        of("...,...->...", &[&a, &b]),
        "Einsum: \"...,...->...\": the ellipsis's axis -2 is 2 in operand 0 ([2, 3]) and 4 in operand 1 ([4, 5]). Sizes must \
         be equal or 1.",
    );
    assert!(text(of("ij->i->j", &[&a])).contains("'-' is not a label"));
    assert!(text(tf::einsum::<Tensor>("->", [])).contains("0 tensors are given"));
    assert!(text(of("ij,ij->", &[&a, &ints([1, 2]).reshape([1, 2]).unwrap()])).contains("i32"));
    assert!(text(of("i->i", &[&tf::constant([true]).unwrap()])).contains("bool"));
}

#[test]
fn tensordot_names_axes_and_sizes() {
    let (a, b) = (zeros([2, 3]), zeros([4, 5]));
    says(
        a.tensordot(&b, 1),
        "Tensordot: a is [2, 3] and b is [4, 5]; axis 1 of a (3) goes with axis 0 of b (4) and must have its size.",
    );
    says(
        a.tensordot(&b, 3),
        "Tensordot: a is [2, 3] and b is [4, 5]; it cannot sum over 3 axes of both. Give 0 to 2.",
    );
    assert!(text(a.tensordot(&b, -1)).contains("a negative number of axes"));
    says(
        a.tensordot(&b, ([0, 1], [0])),
        "Tensordot: 2 axes of a ([0, 1]) cannot go with 1 of b ([0]); name as many of each.",
    );
    says(a.tensordot(&a, [[0, -2], [0, 1]]), "Tensordot: axis -2 is named twice in [0, -2].");
    says(
        a.tensordot(&b, [[2], [0]]),
        "Tensordot: axis 2 does not exist in a tensor of rank 2; it must be in -2 to 1.",
    );
}

#[test]
fn diagonals_and_bands_that_are_not_there() {
    let x = zeros([2, 3]);
    says(
        linalg::diag_part_with(&x, 3),
        "MatrixDiagPart: there is no diagonal 3 in [2, 3]; it must be above -2 and below 3.",
    );
    assert!(
        linalg::diag_part_with(&x, -2).is_err() && linalg::diag_part_with(&x, i64::MIN).is_err()
    );
    says(
        linalg::diag_part(&floats([1.0])),
        "MatrixDiagPart: the tensor is [1]; a matrix needs two axes. Use expand_dims.",
    );
    assert!(
        text(linalg::diag(&Tensor::scalar(1f32).unwrap())).contains("the diagonal is a scalar")
    );
    says(
        linalg::diag_with(&floats([1.0, 2.0]), DiagOptions::new().num_rows(4).num_cols(5)),
        "MatrixDiag: 2 elements do not fit on diagonal 0 of a matrix of 4 rows and 5 columns; it takes at least 2 and 2, and \
         one of them exactly.",
    );
    assert!(linalg::diag_with(&floats([1.0]), DiagOptions::new().k(i64::MAX)).is_err());
    says(
        linalg::set_diag(&x, &floats([1.0, 2.0, 3.0])),
        "MatrixSetDiag: diagonal 0 of [2, 3] has the shape [2], and the one given [3].",
    );
    says(
        linalg::band_part(&x, 3, 0),
        "MatrixBandPart: num_lower is 3 and the matrices [2, 3] have 2 rows; give 0 to 2, or -1 for all.",
    );
    assert!(text(linalg::band_part(&x, 0, 4)).contains("num_upper is 4"));
    says(
        linalg::tensor_diag_part(&zeros([2, 3, 2, 4])),
        "DiagPart: the tensor is [2, 3, 2, 4]; it needs an even number of axes, the second half like the first.",
    );
    let huge = Tensor::zeros([1 << 20]).unwrap();
    assert!(linalg::diag(&huge).is_err());
}

#[test]
fn matrices_that_do_not_fit() {
    let (x, square) = (zeros([4, 2, 3]), zeros([3, 3]));
    let not_square = |op: &str| {
        format!("{op}: the matrices are [4, 2, 3], 2 rows by 3 columns; they must be square.")
    };
    says(linalg::cholesky(&x), &not_square("Cholesky"));
    says(linalg::inv(&x), &not_square("MatrixInverse"));
    says(linalg::det(&x), &not_square("MatrixDeterminant"));
    says(linalg::expm(&x), &not_square("MatrixExponential"));
    says(linalg::matrix_power(&x, 2), &not_square("MatrixPower"));
    says(linalg::lu(&x).map(|y| y.0), &not_square("Lu"));
    says(linalg::slogdet(&x).map(|y| y.0), &not_square("LogMatrixDeterminant"));
    says(linalg::eigh(&x).map(|y| y.0), &not_square("SelfAdjointEigV2"));
    says(
        linalg::solve(&square, &floats([1.0, 2.0, 3.0])),
        "MatrixSolve: the matrix is [3, 3] and the right side [3]; the right side needs 3 rows, [.., 3, K]. For one vector use \
         expand_dims(-1).",
    );
    assert!(text(linalg::triangular_solve(&square, &zeros([2, 3]))).contains("needs 3 rows"));
    assert!(text(linalg::lstsq(&x, &zeros([3, 1]))).contains("needs 2 rows"));
    assert!(text(linalg::solve(&zeros([2, 3, 3]), &zeros([5, 3, 1]))).contains("leading axes"));
    assert!(
        text(linalg::triangular_solve(&zeros([2, 3, 3]), &zeros([5, 3, 1])))
            .contains("leading axes")
    );
    let order = ints([0, 1]);
    assert!(
        text(linalg::lu_solve(&square, &order, &zeros([3, 1]))).contains("perm has one axis less")
    );
    assert!(text(linalg::qr(&floats([1.0])).map(|y| y.0)).contains("a matrix needs two axes"));
    says(
        linalg::cross(&zeros([2, 3]), &zeros([3])),
        "Cross: a is [2, 3] and b is [3]; both must have one shape, whose last axis is 3.",
    );
    says(
        linalg::svdvals(&zeros([600, 513])),
        "Svd: the matrices are [600, 513]; the smaller side may be 512 at most. Compute larger ones on the host.",
    );
    assert!(linalg::eigh(&zeros([513, 513])).is_err());
}

#[test]
fn integers_have_no_factors() {
    let x = tf::constant([[4, 1], [1, 3]]).unwrap();
    let named = |op: &str| {
        format!("{op}: the dtype i32 is not supported here; use f32, f16. Cast the tensor first.")
    };
    says(linalg::cholesky(&x), &named("Cholesky"));
    says(linalg::inv(&x), &named("MatrixInverse"));
    says(linalg::qr(&x).map(|y| y.0), &named("Qr"));
    says(linalg::svdvals(&x), &named("Svd"));
    assert!(text(linalg::solve(&zeros([2, 2]), &x)).contains("both must have one dtype"));
    assert_eq!(linalg::trace(&x).unwrap().item::<i32>().unwrap(), 7);
}
