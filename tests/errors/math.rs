//! Element-wise math, norms, scans and 64-bit values: errors, and results of edge cases. The numbers are TensorFlow's (2.21),
//! unless a comment states otherwise.

use wgrad as tf;
use wgrad::{Axes, ConfusionMatrixOptions, CumsumOptions, DType, HostOptions, NormOrder, Tensor};

use crate::{floats, ints, same, text, values, zeros};

const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;

/// Equal within 4 units in the last place, infinities and NaN included.
#[track_caller]
fn near(got: tf::Result<Tensor>, want: &[f32]) {
    let got = values(got);
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        let close = (got - want).abs() <= 5e-7 * want.abs() || got == want;
        assert!(close || got.is_nan() && want.is_nan(), "{got:?}, not {want:?}");
    }
}

#[test]
fn special_functions_at_the_edges() {
    let x = floats([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -20.5, 80.0, INF, -INF, NAN, 3e38]);
    let lgamma = [
        INF,
        INF,
        0.0,
        INF,
        0.572_364_9,
        1.265_512_1,
        0.0,
        -42.707_195,
        269.291_1,
        INF,
        INF,
        NAN,
        INF,
    ];
    near(x.lgamma(), &lgamma);
    let digamma = [
        NAN,
        NAN,
        -0.577_215_7,
        NAN,
        -1.963_510_1,
        0.036_489_973,
        0.422_784_33,
        3.044_617,
        4.375_764,
        INF,
        NAN,
        NAN,
        88.596_85,
    ];
    near(x.digamma(), &digamma);
    let x = floats([0.0, 1.0, -1.0, 0.5, 2.0, INF, NAN, 1e-6]);
    near(x.erfinv(), &[0.0, INF, -INF, 0.476_936_28, NAN, NAN, NAN, 8.862_269e-7]);
    near(x.ndtri(), &[-INF, INF, NAN, 0.0, NAN, NAN, NAN, -4.753_424]);
    near(x.erfcinv(), &[INF, 0.0, NAN, 0.476_936_28, -INF, NAN, NAN, 3.458_910_8]);
    let x = floats([0.0, 1.0, -2.0, 20.0, 100.0, INF, NAN]);
    near(x.bessel_i0(), &[1.0, 1.266_066, 2.279_585_4, 43_558_284.0, INF, NAN, NAN]);
    near(x.bessel_i1(), &[0.0, 0.565_159_1, -1.590_636_8, 42_454_972.0, INF, NAN, NAN]);
    near(x.bessel_i0e(), &[1.0, 0.465_759_6, 0.308_508_3, 0.089_780_31, 0.039_944_38, 0.0, NAN]);
    near(x.bessel_i1e(), &[0.0, 0.207_910_42, -0.215_269_3, 0.087_506_22, 0.039_744_15, 0.0, NAN]);
    let (s, q) = (
        floats([1.0, 2.0, 2.0, 2.0, 3.0, 2.5, 0.5, INF, INF, 2.0, 2.0, NAN, 3.0, 2.5, 4.0, INF]),
        floats([
            -1.0, 0.0, -0.5, -2.5, -2.5, -2.5, 2.0, 1.0, 2.0, INF, NAN, 2.0, 0.0, -1.0, -3.0, -1.0,
        ]),
    );
    let zeta = [
        INF,
        INF,
        8.934_802,
        9.539_246,
        0.054_102_026,
        NAN,
        NAN,
        1.0,
        0.0,
        0.0,
        NAN,
        NAN,
        NAN,
        NAN,
        INF,
        INF,
    ];
    // Terms of 3 and 1/8 cancel to 0.05.
    let got = values(s.zeta(&q));
    for (got, want) in got.iter().zip(zeta) {
        let close = (got - want).abs() < 4e-6 || got == &want || got.is_nan() && want.is_nan();
        assert!(close, "{got:?}, not {want:?}");
    }
    let (n, x) =
        (floats([0.0, 1.0, 2.0, 3.0, 1.5, -1.0, 1.0]), floats([0.5, 1.0, 2.0, 2.0, 1.0, 1.0, NAN]));
    let polygamma = [-1.963_510_1, 1.644_934, -0.828_796_6, 1.481_893_4 / 3.0, NAN, NAN, NAN];
    let got = values(n.polygamma(&x));
    let psi3 = 6.0 * 0.082_323_23;
    for (at, (got, want)) in got.iter().zip(polygamma).enumerate() {
        let want = if at == 2 {
            -0.404_113_8
        } else if at == 3 {
            psi3
        } else {
            want
        };
        let close = (got - want).abs() <= 4e-6 * want.abs() || got.is_nan() && want.is_nan();
        assert!(close, "{at}: {got:?}, not {want:?}");
    }
}

#[test]
fn products_and_quotients_without_nan() {
    let (a, b) =
        (floats([0.0, NAN, INF, 0.0, 0.0, 2.0, -0.0]), floats([NAN, 0.0, 0.0, 0.0, INF, 0.0, 1.0]));
    same(&values(a.multiply_no_nan(&b)), &[NAN, 0.0, 0.0, 0.0, NAN, 0.0, -0.0]);
    same(&values(a.xdivy(&b)), &[0.0, NAN, INF, 0.0, 0.0, INF, 0.0]);
    same(&values(a.xlog1py(&b)), &[0.0, NAN, NAN, 0.0, 0.0, 0.0, 0.0]);
    same(
        &values(floats([0.0, -0.0, 4.0, INF, NAN]).reciprocal_no_nan()),
        &[0.0, 0.0, 0.25, 0.0, NAN],
    );
    let (a, b) = (floats([-7.5, 7.5, 7.0, INF, 1.0]), floats([2.0, -2.0, INF, 2.0, 0.0]));
    same(&values(a.truncatemod(&b)), &[-1.5, 1.5, 7.0, NAN, NAN]);
}

#[test]
fn integers_divide_shift_and_wrap_as_in_tensorflow() {
    let (a, b) = (ints([7, -7, 7, -7, i32::MIN]), ints([2, 2, -2, -2, -1]));
    let list = |x: tf::Result<Tensor>| x.unwrap().to_vec::<i32>().unwrap();
    assert_eq!(list(a.truncatediv(&b)), [3, -3, -3, 3, i32::MIN]);
    assert_eq!(list(a.truncatemod(&b)), [1, -1, 1, -1, 0]);
    assert_eq!(list(a.floordiv(&b)), [3, -4, -4, 3, i32::MIN]);
    assert_eq!(list(a.floormod(&b)), [1, 1, -1, -1, 0]);
    // TensorFlow refuses to divide by 0; here the result is the dividend, as documented.
    assert_eq!(list(ints([5, -5]).truncatediv(0)), [5, -5]);
    assert_eq!(list(ints([5, -5]).truncatemod(0)), [0, 0]);
    let (a, by) = (ints([5, 5, 5, 5, -5, -5, -5]), ints([1, 31, 32, -1, 1, 40, -1]));
    assert_eq!(list(a.left_shift(&by)), [10, i32::MIN, i32::MIN, 5, -10, i32::MIN, -5]);
    assert_eq!(list(a.right_shift(&by)), [2, 0, 0, 5, -3, -1, -5]);
    let (a, by) = (Tensor::from_slice(&[5u32, u32::MAX], [2]).unwrap(), 40u32);
    let by = Tensor::from_slice(&[by, by], [2]).unwrap();
    assert_eq!(a.right_shift(&by).unwrap().to_vec::<u32>().unwrap(), [0, 1]);
    assert_eq!(a.left_shift(&by).unwrap().to_vec::<u32>().unwrap(), [1 << 31, 1 << 31]);
    assert_eq!(list(ints([-1, 0, 7]).population_count()), [32, 0, 3]);
    assert_eq!(list(ints([0, -1, 5]).invert()), [-1, 0, -6]);
    assert_eq!(list(ints([6, -1]).bitwise_xor(ints([3, 1]))), [5, -2]);
    // Products wrap.
    assert_eq!(list(ints([1 << 20, 1 << 13]).cumprod(0)), [1 << 20, 0]);
}

#[test]
fn words_of_refused_math() {
    let error = text(floats([1.0]).bitwise_and(floats([1.0])));
    assert_eq!(
        error,
        "BitwiseAnd: not defined for f32 (a is [1] and b is [1]); use i32, u32. Cast both first."
    );
    let error = text(ints([1]).lgamma());
    assert_eq!(
        error,
        "Lgamma: not defined for i32 (the tensor is [1]); use f32, f16. Cast the tensor first."
    );
    let error = text(floats([1.0]).truncatediv(1.0));
    assert!(error.starts_with("TruncateDiv: not defined for f32"), "{error}");
    let error = text(ints([1]).zeta(ints([1])));
    assert!(
        error.starts_with("Zeta: the dtype i32 is not supported here; use f32, f16."),
        "{error}"
    );
    let error = text(ints([1]).nextafter(ints([1])));
    assert!(
        error.starts_with("NextAfter: the dtype i32 is not supported here; use f32."),
        "{error}"
    );
    let error = text(floats([1.0, 2.0]).zeta(floats([1.0, 2.0, 3.0])));
    assert!(error.contains("Zeta") && error.contains("[2]") && error.contains("[3]"), "{error}");
    let error = text(zeros([2, 3]).glu(1));
    assert_eq!(error, "Glu: axis 1 of the tensor [2, 3] has the odd size 3; it needs two halves.");
    assert!(text(zeros([2, 3]).crelu(2)).contains("CRelu"));
    assert!(text(Tensor::scalar(1f32).unwrap().lbeta()).contains("axis"));
}

#[test]
fn norms_at_the_edges() {
    let x = tf::constant([[3.0, -4.0], [0.0, 1.0]]).unwrap();
    same(&values(x.norm(1, [0, 1])), &[5.0]);
    same(&values(x.norm(f32::INFINITY, [0, 1])), &[7.0]);
    same(&values(x.norm(1, [1, 0])), &[7.0]);
    let kept = x.norm(1, Axes::from([0, 1]).keepdims(true)).unwrap();
    assert_eq!(kept.shape(), [1, 1]);
    near(x.norm(0.5, 0), &[3.0, 9.0]);
    // The norm of an empty tensor is 0, and its maximum is -infinity.
    same(&values(zeros([2, 0]).norm(NormOrder::Euclidean, 1)), &[0.0, 0.0]);
    same(&values(zeros([0]).norm(f32::INFINITY, ())), &[-INF]);
    same(&values(zeros([0, 2]).moments(0).map(|(mean, _)| mean)), &[NAN, NAN]);
    same(&values(zeros([0]).zero_fraction()), &[NAN]);
    assert_eq!(zeros([0, 2]).count_nonzero(0).unwrap().to_vec::<i32>().unwrap(), [0, 0]);
    assert_eq!(zeros([0]).clip_by_norm(1.0, ()).unwrap().shape(), [0]);
    assert_eq!(zeros([0, 3]).l2_normalize(0).unwrap().shape(), [0, 3]);
    let counted = tf::constant([true, false, true]).unwrap().count_nonzero(()).unwrap();
    assert_eq!(counted.item::<i32>().unwrap(), 2);
    same(&values(floats([0.0, 0.0]).clip_by_norm(1.0, ())), &[0.0, 0.0]);
    let (clipped, norm) = tf::clip_by_global_norm([floats([INF]), floats([1.0])], 1.0).unwrap();
    same(&values(Ok(norm)), &[INF]);
    same(&values(Ok(clipped[1].clone())), &[NAN]);
}

#[test]
fn words_of_refused_norms() {
    let x = zeros([2, 3, 4]);
    assert_eq!(
        text(x.norm(-1, 0)),
        "Norm: the order -1 is not the order of a norm; give a number above 0, infinity or Euclidean."
    );
    assert_eq!(
        text(x.norm(2, [0, 1])),
        "Norm: the order 2 of matrices is not supported; give Euclidean, 1 or infinity. The spectral norm, order 2, is \
         the largest singular value."
    );
    assert_eq!(
        text(x.norm(1, [0, 1, 2])),
        "Norm: 3 axes were given for a tensor of shape [2, 3, 4]; give one, two for matrices, or () for all."
    );
    for error in [text(x.norm(1, 3)), text(x.norm(1, [1, 1])), text(x.norm(1, [1, -2]))] {
        assert!(error.contains("Norm") && error.contains("axis"), "{error}");
    }
    assert!(text(ints([1]).norm(1, ())).contains("Norm: the dtype i32"));
    let none: [Tensor; 0] = [];
    assert_eq!(
        text(tf::global_norm(none)),
        "GlobalNorm: no tensors were given; it needs at least one."
    );
    assert!(text(tf::global_norm([ints([1])])).contains("GlobalNorm: the dtype i32"));
    assert!(text(ints([1]).moments(())).contains("Moments: the dtype i32"));
    assert!(text(ints([1]).clip_by_norm(1, ())).contains("ClipByNorm: the dtype i32"));
}

#[test]
fn words_of_refused_losses_and_counts() {
    let error = text(tf::weighted_cross_entropy_with_logits(&zeros([2]), &zeros([3]), 1.0));
    assert_eq!(
        error,
        "WeightedCrossEntropyWithLogits: the labels are [2] and the logits [3]; both need one shape."
    );
    assert!(text(tf::l2_loss(&ints([1]))).contains("L2Loss: the dtype i32"));
    assert!(text(tf::log_poisson_loss(&zeros([2]), &zeros([1]))).contains("both need one shape"));
    let error = text(tf::compute_average_loss(&Tensor::scalar(1f32).unwrap()));
    assert!(error.contains("it needs an axis of examples"), "{error}");
    same(&values(tf::compute_average_loss(&zeros([0]))), &[0.0]);
    let error = text(tf::confusion_matrix(&floats([1.0]), &ints([1]), 2));
    assert!(error.starts_with("ConfusionMatrix (the labels): the dtype f32"), "{error}");
    let error = text(tf::confusion_matrix(&ints([1, 2]), &ints([1]), 2));
    assert!(error.contains("the labels are [2]") && error.contains("[1]"), "{error}");
    let error = text(tf::confusion_matrix(&ints([1]), &ints([1]), usize::MAX));
    assert!(error.contains("more than 2^31 cells"), "{error}");
    let options = ConfusionMatrixOptions::new().weights(floats([1.0]));
    let error = text(tf::confusion_matrix_with(&ints([1]), &ints([1]), 2, options));
    assert!(error.starts_with("ConfusionMatrix (the weights): the dtype f32"), "{error}");
}

#[test]
fn scans_at_the_edges() {
    for x in [zeros([0]), zeros([2, 0, 3]), zeros([0, 3])] {
        for axis in 0..x.rank() {
            assert_eq!(x.cumprod(axis).unwrap().shape(), x.shape());
            assert_eq!(x.cumulative_logsumexp(axis).unwrap().shape(), x.shape());
        }
    }
    let one = CumsumOptions::new().exclusive(true);
    same(&values(floats([7.0]).cumprod_with(0, one)), &[1.0]);
    same(&values(floats([7.0]).cummax_with(0, one)), &[-INF]);
    same(&values(floats([7.0]).cummin_with(0, one)), &[INF]);
    same(&values(floats([7.0]).cumulative_logsumexp_with(0, one)), &[-INF]);
    let lowest = ints([7]).cummax_with(0, one).unwrap().to_vec::<i32>().unwrap();
    assert_eq!(lowest, [i32::MIN]);
    assert!(text(zeros([2]).cumprod(1)).contains("Cumprod"));
    assert!(text(zeros([2]).cummax(-2)).contains("Cummax"));
    assert!(text(Tensor::scalar(1f32).unwrap().cummin(0)).contains("Cummin"));
    assert!(text(ints([2]).cumulative_logsumexp(0)).contains("CumulativeLogsumexp: the dtype i32"));
}

#[test]
fn values_of_64_bits_fit_or_are_named() {
    let plain = HostOptions::new();
    let x = Tensor::from_slice_with(&[i64::from(i32::MIN), -1, i64::from(i32::MAX)], [3], plain)
        .unwrap();
    assert_eq!(
        (x.dtype(), x.to_vec::<i64>().unwrap()),
        (DType::I32, vec![-(1 << 31), -1, (1 << 31) - 1])
    );
    let x = Tensor::from_slice_with(&[u64::from(u32::MAX)], [], plain).unwrap();
    assert_eq!((x.dtype(), x.item::<u64>().unwrap()), (DType::U32, u64::from(u32::MAX)));
    assert_eq!(x.item::<i64>().unwrap(), i64::from(u32::MAX));
    let kept = [0.5, -0.0, f64::INFINITY, 1e-45f32 as f64, f64::from(f32::MAX)];
    let x = Tensor::from_slice_with(&kept, [5], plain).unwrap();
    assert_eq!((x.dtype(), x.to_vec::<f64>().unwrap()), (DType::F32, kept.to_vec()));
    assert!(
        Tensor::from_slice_with(&[f64::NAN], [], plain).unwrap().item::<f64>().unwrap().is_nan()
    );

    let values = [[1i64, 2, 3], [4, 1 << 31, 1 << 40]];
    assert_eq!(
        text(Tensor::from_slice_with(values.as_flattened(), [2, 3], plain.rounding(true))),
        "Const: the value at [1, 1] is 2147483648, which i32 does not hold. Give it as f64 with \
         HostOptions::new().rounding(true), which makes f32 of it."
    );
    assert_eq!(
        text(Tensor::from_slice_with(&[0u64, 1 << 32], [2], plain)),
        "Const: the value at [1] is 4294967296, which u32 does not hold. Give it as f64 with \
         HostOptions::new().rounding(true), which makes f32 of it."
    );
    let tenth = ndarray::arr2(&[[0.5, 0.25], [0.1, 0.2]]);
    assert_eq!(
        text(Tensor::from_array_with(&tenth, plain)),
        "Const: the value at [1, 0] is 0.1, which f32 does not hold. Round it first, or give \
         HostOptions::new().rounding(true)."
    );
    // Column-major: the first one that does not fit, in the order of the result.
    let error = text(Tensor::from_array_with(&tenth.t(), plain));
    assert!(error.starts_with("Const: the value at [0, 1] is 0.1,"), "{error}");
    let near = Tensor::from_array_with(&tenth, plain.rounding(true)).unwrap();
    assert_eq!(near.to_array::<f64>().unwrap()[[1, 0]], f64::from(0.1f32));
    let far = Tensor::from_slice_with(&[1e300, 1e-300], [2], plain.rounding(true)).unwrap();
    same(&far.to_vec::<f32>().unwrap(), &[INF, 0.0]);
    assert!(text(Tensor::from_slice_with(&[1i64], [2], plain)).contains("do not fill the shape"));
    // Nested values; literals are as before.
    let x = tf::constant([[1i64, -2], [i64::from(i32::MIN), i64::from(i32::MAX)]]).unwrap();
    assert_eq!((x.dtype(), x.shape()), (DType::I32, &[2, 2][..]));
    assert_eq!(x.to_vec::<i32>().unwrap(), [1, -2, i32::MIN, i32::MAX]);
    let x = tf::constant(u64::from(u32::MAX)).unwrap();
    assert_eq!((x.dtype(), x.item::<u32>().unwrap()), (DType::U32, u32::MAX));
    assert_eq!(
        text(tf::constant(vec![vec![1i64, 2], vec![-(1 << 40), 1 << 40]])),
        "Const: the value at [1, 0] is -1099511627776, which i32 does not hold. Give it as f64 with \
         HostOptions::new().rounding(true), which makes f32 of it."
    );
    assert_eq!(tf::constant(0.1).unwrap().item::<f32>().unwrap(), 0.1);
    assert_eq!(tf::constant([1, 2]).unwrap().dtype(), DType::I32);
    let none = Tensor::from_slice_with(&[0i64; 0], [0], plain).unwrap();
    assert!(none.to_vec::<i64>().unwrap().is_empty());

    // The array type that reads each dtype.
    let bytes = Tensor::from_slice(&[7u8], [1]).unwrap();
    assert_eq!(
        (bytes.to_vec::<i64>().unwrap(), bytes.to_vec::<u64>().unwrap()),
        (vec![7], vec![7])
    );
    assert_eq!(
        text(ints([1]).to_vec::<f64>()),
        "to_vec: the tensor is i32 and was requested as f64. Read it as i32, or cast it first: x.cast(DType::F32)."
    );
    assert!(text(ints([1]).to_vec::<u64>()).contains("requested as u64"));
    assert!(text(floats([1.0]).to_vec::<i64>()).contains("requested as i64"));
}

#[test]
fn polynomials_and_order() {
    let none: [Tensor; 0] = [];
    same(&values(tf::polyval(none, &floats([1.0, 2.0]))), &[0.0, 0.0]);
    same(&values(tf::polyval([floats([3.0])], &floats([1.0, 2.0]))), &[3.0]);
    let yes = |x: tf::Result<Tensor>| x.unwrap().item::<bool>().unwrap();
    assert!(yes(floats([1.0, 1.0, 2.0]).is_non_decreasing()));
    assert!(!yes(floats([1.0, 1.0, 2.0]).is_strictly_increasing()));
    assert!(yes(zeros([0]).is_strictly_increasing()) && yes(zeros([1, 1]).is_non_decreasing()));
    assert!(!yes(floats([1.0, NAN]).is_non_decreasing()));
    assert!(text(tf::constant([true]).unwrap().is_non_decreasing()).contains("IsNonDecreasing"));
    let error = text(tf::polyval([ints([1])], &tf::constant([true]).unwrap()));
    assert!(error.starts_with("Polyval: the dtype bool"), "{error}");
}
