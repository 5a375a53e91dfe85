//! What happens when a call is wrong, and at the edges of what is right: the texts of messages (changing one
//! is a decision), NaN and infinity, tensors without elements, many axes, sizes beyond every limit.

#![allow(clippy::unwrap_used)]

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ndarray::{Array, ArrayD, Axis, IxDyn, s};
use wgrad as tf;
use wgrad::keras::INFERENCE;
use wgrad::{
    Conv2dOptions, DType, Device, DeviceFault, Error, GradientTape, PadMode, Padding,
    Pool2dOptions, Result, Tensor, Variable,
};

/// The text of a call's error.
#[track_caller]
fn text<T: Debug>(result: Result<T>) -> String {
    match result {
        Ok(value) => panic!("the call must be refused; it gave {value:?}"),
        Err(error) => error.to_string(),
    }
}

fn zeros<const N: usize>(shape: [usize; N]) -> Tensor {
    Tensor::zeros(shape).unwrap()
}

fn ints<const N: usize>(values: [i32; N]) -> Tensor {
    tf::constant(values).unwrap()
}

fn floats<const N: usize>(values: [f32; N]) -> Tensor {
    tf::constant(values).unwrap()
}

fn values(x: Result<Tensor>) -> Vec<f32> {
    x.unwrap().to_vec().unwrap()
}

/// Equal element by element, NaN being equal to NaN.
#[track_caller]
fn same(got: &[f32], want: &[f32]) {
    let equal = |(a, b): (&f32, &f32)| a == b || (a.is_nan() && b.is_nan());
    assert!(got.len() == want.len() && got.iter().zip(want).all(equal), "{got:?} is not {want:?}");
}

// ---- The wrong calls of tests/data/oracle/errors.json ----------------------------------------------------

/// What this crate does where TensorFlow 2.21 on a CPU raises (or accepts).
enum Here {
    /// An error of this variant.
    Refused(&'static str, Result<Tensor>),
    /// A result, as in TensorFlow.
    Accepted(Tensor),
    /// A result where TensorFlow raises: seeing the mistake would need the values on the host.
    Differs(Tensor, Vec<f32>),
    /// The function does not exist here.
    Absent(&'static str),
}

fn variant(error: &Error) -> &'static str {
    match error {
        Error::Shape(_) => "Shape",
        Error::DType(_) => "DType",
        Error::Index(_) => "Index",
        Error::Device(..) => "Device",
        Error::Gradient(_) => "Gradient",
        _ => "another",
    }
}

fn here(case: &str) -> Here {
    use Here::{Absent, Accepted, Differs, Refused};
    let shape = |result| Refused("Shape", result);
    let index = |result| Refused("Index", result);
    match case {
        "add_shapes" => shape(zeros([2, 3]).add(zeros([2, 4]))),
        "add_dtypes" => Refused("DType", zeros([2]).add(ints([1, 2]))),
        "matmul_inner" => shape(zeros([2, 3]).matmul(zeros([4, 5]))),
        "matmul_rank1" => shape(zeros([3]).matmul(zeros([3]))),
        "reshape_size" => shape(zeros([2, 3]).reshape([4])),
        "reshape_two_unknown" => shape(zeros([2, 3]).reshape([-1, -1])),
        "concat_shapes" => shape(tf::concat(&[&zeros([2, 3]), &zeros([3, 3])], 1)),
        "concat_axis" => index(tf::concat(&[&zeros([2, 3]), &zeros([2, 3])], 5)),
        "split_uneven" => shape(zeros([5]).split(2, 0).map(|parts| parts[0].clone())),
        "squeeze_not_one" => shape(zeros([2, 3]).squeeze([0])),
        "reduce_axis" => index(zeros([2, 3]).reduce_sum(2)),
        "gather_oob" => Differs(floats([1.0, 2.0, 3.0]).gather(&ints([3]), 0).unwrap(), vec![0.0]),
        "gather_negative" => {
            Differs(floats([1.0, 2.0, 3.0]).gather(&ints([-1]), 0).unwrap(), vec![0.0])
        }
        "gather_nd_oob" | "scatter_nd_oob" => Absent("there is no gather_nd and no scatter_nd"),
        "slice_oob" => index(zeros([3]).slice(&[2], &[2])),
        "strided_slice_clamps" => Accepted(zeros([3]).strided_slice(s![1..10]).unwrap()),
        "index_oob" => index(zeros([3]).strided_slice(s![5])),
        "conv_channels" => shape(zeros([1, 5, 5, 3]).conv2d(zeros([3, 3, 2, 4]), plain())),
        "conv_kernel_too_big_valid" => {
            Accepted(zeros([1, 2, 2, 1]).conv2d(zeros([3, 3, 1, 1]), plain()).unwrap())
        }
        "pad_reflect_too_big" => shape(zeros([3]).pad_with(&[(3, 0)], PadMode::Reflect)),
        "transpose_perm" => shape(zeros([2, 3]).transpose([0, 0])),
        "tile_rank" => shape(zeros([2, 3]).tile(&[2])),
        // The dividend, as WGSL defines it.
        "int_div_zero" => {
            Differs(ints([1]).floordiv(ints([0])).unwrap().cast(DType::F32).unwrap(), vec![1.0])
        }
        // As TensorFlow's own GPU kernel.
        "sparse_xent_label_oob" => {
            let logits = zeros([1, 3]);
            let loss = tf::sparse_softmax_cross_entropy_with_logits(&ints([5]), &logits);
            Differs(loss.unwrap(), vec![f32::NAN])
        }
        "top_k_too_big" => Absent("there is no top_k"),
        "broadcast_to_bad" => shape(zeros([3]).broadcast_to([2, 4])),
        "argmax_empty" => shape(zeros([0]).argmax(0)),
        "assign_shape" => {
            let variable = Variable::new(&zeros([2]));
            shape(variable.assign(&zeros([3])).map(|()| variable.read()))
        }
        "stack_shapes" => shape(tf::stack(&[&zeros([2]), &zeros([3])], 0)),
        "where_shapes" => {
            shape(tf::where_(&tf::constant([true, false]).unwrap(), &zeros([3]), &zeros([3])))
        }
        // `if` takes a bool, and item gives one of a single element only.
        "bool_tensor_truth" => {
            let item = tf::constant([true, false]).unwrap().item::<bool>();
            shape(item.map(|_| zeros([])))
        }
        other => panic!("tests/data/oracle/errors.json has a case that is not known here: {other}"),
    }
}

fn plain() -> Conv2dOptions {
    Conv2dOptions::default()
}

#[test]
fn what_tensorflow_refuses_is_refused() {
    let own = || concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/oracle").into();
    let folder = std::env::var_os("WGRAD_ORACLE").filter(|dir| !dir.is_empty());
    let path = std::path::PathBuf::from(folder.unwrap_or_else(own)).join("errors.json");
    let file: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut absent = Vec::new();
    for case in file["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let raises = !case["raises"].is_null();
        match here(name) {
            Here::Refused(want, Err(error)) => {
                assert_eq!(variant(&error), want, "{name}: {error}");
                assert!(raises, "{name}: TensorFlow accepts this: {error}");
            }
            Here::Refused(_, Ok(y)) => panic!("{name}: it must be refused and gave {y:?}"),
            Here::Accepted(y) => {
                assert!(!raises, "{name}: TensorFlow refuses this");
                let want: Vec<u64> = case["result_shape"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|n| n.as_u64().unwrap())
                    .collect();
                let got: Vec<u64> = y.shape().iter().map(|&n| n as u64).collect();
                assert_eq!(got, want, "{name}");
            }
            Here::Differs(y, want) => {
                assert!(raises, "{name}");
                same(&y.to_vec::<f32>().unwrap(), &want);
            }
            Here::Absent(why) => absent.push(format!("{name}: {why}")),
        }
    }
    assert_eq!(absent.len(), 3, "{absent:?}");
}

// ---- Texts -----------------------------------------------------------------------------------------------

#[test]
fn messages_name_the_op_the_shapes_and_the_remedy() {
    let x = zeros([2, 3]);
    let texts = [
        (
            text(zeros([32, 784]).matmul(zeros([128, 10]))),
            "MatMul: a is [32, 784] and b is [128, 10]; the last axis of a (784) must equal the second to last of b \
             (128). Transpose one of them, or check the units of the layer before.",
        ),
        (
            text(zeros([3]).matmul(zeros([3, 2]))),
            "MatMul: a is [3] and b is [3, 2]; both need at least two axes. Use expand_dims, or matvec for a vector.",
        ),
        (
            text(x.add(zeros([2, 4]))),
            "AddV2: a is [2, 3] and b is [2, 4]; they cannot be broadcast together, as axis 1 has 3 and 4. Sizes must \
             be equal or 1, aligned at the last axis: reshape or expand_dims one of them.",
        ),
        (
            text(zeros([2]).multiply(ints([1, 2]))),
            "Mul: a is f32 [2] and b is i32 [2]; both must have one dtype. Cast one of them: x.cast(DType::F32).",
        ),
        (
            text(x.reshape([4])),
            "Reshape: [2, 3] to [4]: the tensor has 6 elements and the shape 4; they must be equal.",
        ),
        (text(x.reshape([-1, -1])), "Reshape: [2, 3] to [-1, -1]: only one size may be -1."),
        (
            text(x.reduce_sum(2)),
            "Sum: axis 2 does not exist in a tensor of rank 2; it must be in -2 to 1.",
        ),
        (
            text(tf::concat(&[&x, &zeros([3, 3])], 1)),
            "ConcatV2: along axis 1 the first tensor is [2, 3] and another is [3, 3]; all axes but axis 1 must agree.",
        ),
        (
            text(zeros([1, 5, 5, 3]).conv2d(zeros([3, 3, 2, 4]), plain())),
            "Conv2D: the images [1, 5, 5, 3] have 3 channels and the filters [3, 3, 2, 4] expect 2; the last axis of the \
             images must equal the third of the filters.",
        ),
        (
            text(x.item::<f32>()),
            "item: the tensor of shape [2, 3] has 6 elements; item needs exactly one. Reduce it first, or use to_vec.",
        ),
        (
            text(ints([1]).to_vec::<f32>()),
            "to_vec: the tensor is i32 and was asked for as f32. Read it as i32, or cast it first: x.cast(DType::F32).",
        ),
        (
            text(ints([1]).add(0.5)),
            "AddV2: the scalar 0.5 cannot join a tensor of dtype i32: cast the tensor to f32 first.",
        ),
        (
            text(Variable::new(&zeros([2])).assign(&zeros([3]))),
            "AssignVariableOp: the variable is [2] and the value is [3]; a variable keeps its shape. Make a new variable, or \
             reshape the value.",
        ),
        (
            text(zeros([3]).slice(&[2], &[2])),
            "Slice: axis 0 has the size 3; begin 2 and size 2 leave it.",
        ),
        (
            text(x.strided_slice(s![.., 3])),
            "StridedSlice: index 3 of axis 1 is out of bounds; the tensor is [2, 3].",
        ),
        (
            text(x.transpose([0, 0])),
            "Transpose: axis 0 stands twice in the order [0, 0]; name each of the 2 axes once.",
        ),
        (
            text(x.squeeze([0])),
            "Squeeze: axis 0 of [2, 3] has the size 2; only axes of size 1 can be dropped.",
        ),
        (
            text(ints([1]).sqrt()),
            "Sqrt: not defined for i32 (the tensor is [1]); use f32, f16. Cast the tensor first.",
        ),
        (
            text(GradientTape::new().watch(&ints([1, 2]))),
            "GradientTape.watch: a tensor of shape [2] is i32; only float tensors have gradients. Cast it to f32 first.",
        ),
        (
            text(Tensor::from_slice(&[1.0f32, 2.0, 3.0], [2, 2])),
            "Const: 3 values do not fill the shape [2, 2], which has 4 elements.",
        ),
    ];
    for (got, want) in texts {
        assert_eq!(got, want);
    }
}

#[test]
fn scalars_join_only_where_they_fit() {
    let bytes = tf::constant([1u8]).unwrap();
    for (result, what) in [
        (ints([1]).add(1i64 << 40), "outside -2147483648 to 2147483647"),
        (ints([1]).add(1u32 << 31), "outside -2147483648 to 2147483647"),
        (tf::constant([1u32]).unwrap().add(-1), "outside 0 to 4294967295"),
        (bytes.equal(256), "outside 0 to 255"),
        (zeros([1]).add(true), "cast the tensor first"),
        (tf::constant([true]).unwrap().equal(1), "cast the tensor first"),
    ] {
        let text = text(result);
        assert!(text.contains(what), "{text}");
    }
    assert_eq!(ints([1]).add(7u8).unwrap().to_vec::<i32>().unwrap(), [8]);
    assert_eq!(values(floats([1.0]).add(7)), [8.0]);
}

#[test]
fn dtypes_that_an_op_does_not_know_are_refused() {
    let (x, bools) = (zeros([2]), tf::constant([true, false]).unwrap());
    let refused = [
        tf::one_hot(&x, 3),
        x.gather(&x, 0),
        tf::where_(&x, &x, &x),
        x.logical_not(),
        x.reduce_any(()),
        bools.add(&bools),
        bools.reduce_sum(()),
        bools.argmax(0),
        bools.matmul(&bools),
        tf::constant([1u8]).unwrap().add(1),
        ints([1, 2]).softmax(-1),
        tf::sparse_softmax_cross_entropy_with_logits(&x, &zeros([2, 3])),
    ];
    for (i, result) in refused.into_iter().enumerate() {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::DType(_)), "{i}: {error}");
    }
}

#[test]
fn the_target_of_a_gradient_is_float() {
    let x = floats([1.0, 2.0]);
    let tape = GradientTape::new();
    tape.watch(&x).unwrap();
    let y = x.cast(DType::I32).unwrap();
    let error = tape.gradient(&y, &x).unwrap_err();
    assert!(matches!(error, Error::Gradient(_)), "{error}");
    assert!(error.to_string().contains("i32"), "{error}");
}

#[test]
fn a_missing_gradient_tells_each_reason_once() {
    let x = floats([1.5, -2.5]);
    let tape = GradientTape::new();
    tape.watch(&x).unwrap();
    let mut y = x.floor().unwrap();
    for _ in 0..3 {
        y = y.add(x.floor().unwrap()).unwrap();
    }
    // Eight reasons are enough; IsNan is the ninth.
    x.ceil().unwrap();
    x.round().unwrap();
    x.less(&y).unwrap();
    x.less_equal(&y).unwrap();
    x.greater(&y).unwrap();
    x.greater_equal(&y).unwrap();
    x.equal(&y).unwrap();
    x.is_nan().unwrap();
    let error = text(tape.required_gradient(&y, &x));
    let (_, reasons) = error.split_once(" Gradients ended at ").unwrap();
    let reasons: Vec<&str> = reasons.trim_end_matches('.').split("; ").collect();
    assert_eq!(reasons.len(), 8, "{error}");
    assert_eq!(reasons[..2], ["Floor: piecewise constant", "Ceil: piecewise constant"]);
    assert_eq!(reasons[7], "Equal: a comparison");
}

#[test]
fn operators_panic_with_the_words_of_the_method() {
    let (a, b, i) = (zeros([2, 3]), zeros([2, 4]), ints([1, 2]));
    let panics = |f: &dyn Fn() -> Tensor| {
        let payload = catch_unwind(AssertUnwindSafe(f)).unwrap_err();
        payload.downcast_ref::<String>().unwrap().clone()
    };
    assert_eq!(panics(&|| &a + &b), text(a.add(&b)));
    assert_eq!(panics(&|| &a - &b), text(a.subtract(&b)));
    assert_eq!(panics(&|| &a * &b), text(a.multiply(&b)));
    assert_eq!(panics(&|| &a / &b), text(a.divide(&b)));
    assert_eq!(panics(&|| &a % &b), text(a.floormod(&b)));
    assert_eq!(panics(&|| &i + 0.5), text(i.add(0.5)));
    assert_eq!(panics(&|| 0.5 * &i), text(i.multiply(0.5)));
    let bools = tf::constant([true]).unwrap();
    assert_eq!(panics(&|| -&bools), text(bools.negative()));
    // Nothing was left locked.
    assert_eq!(values(a.add(1.0)), [1.0; 6]);
}

// ---- NaN and infinity ------------------------------------------------------------------------------------

#[test]
fn nan_and_infinity_pass_through() {
    const NAN: f32 = f32::NAN;
    const INF: f32 = f32::INFINITY;
    let x = floats([NAN, INF, -INF, 1.0]);
    same(&values(x.add(1.0)), &[NAN, INF, -INF, 2.0]);
    same(&values(x.add(floats([1.0, -INF, -INF, NAN]))), &[NAN, NAN, -INF, NAN]);
    same(&values(x.multiply(0.0)), &[NAN, NAN, NAN, 0.0]);
    same(&values(x.multiply(-2.0)), &[NAN, -INF, INF, -2.0]);
    same(&values(x.divide(0.0)), &[NAN, INF, -INF, INF]);
    same(&values(x.relu()), &[NAN, INF, 0.0, 1.0]);
    same(&values(x.maximum(0.0)), &[NAN, INF, 0.0, 1.0]);
    same(&values(x.minimum(0.0)), &[NAN, 0.0, -INF, 0.0]);
    same(&values(floats([0.0, 0.0, 0.0, 0.0]).maximum(&x)), &[NAN, INF, 0.0, 1.0]);
    same(&values(x.reduce_sum(())), &[NAN]);
    same(&values(x.reduce_max(())), &[NAN]);
    same(&values(x.reduce_min(())), &[NAN]);
    same(&values(floats([INF, 1.0]).reduce_sum(())), &[INF]);
    same(&values(floats([-INF, -1.0]).reduce_max(())), &[-1.0]);
    // NaN in the middle of a long reduction.
    let mut long = vec![1.0f32; 10_000];
    long[7001] = NAN;
    let long = Tensor::from_slice(&long, [10_000]).unwrap();
    same(&values(long.reduce_max(())), &[NAN]);
    same(&values(long.reduce_sum(())), &[NAN]);

    let rows = Tensor::from_slice(&[NAN, 1.0, 0.0, 0.0], [2, 2]).unwrap();
    same(&values(rows.softmax(-1)), &[NAN, NAN, 0.5, 0.5]);
    same(&values(floats([-INF, 0.0]).softmax(-1)), &[0.0, 1.0]);
    same(&values(rows.matmul(Tensor::eye(2).unwrap())), &[NAN, NAN, 0.0, 0.0]);
    let large = Tensor::from_slice(&[INF, 0.0, 1.0, 2.0], [2, 2]).unwrap();
    same(&values(large.matmul(Tensor::ones([2, 1]).unwrap())), &[INF, 3.0]);
    same(&values(floats([-1.0, 0.0]).log()), &[NAN, -INF]);
    same(&values(floats([-1.0, INF]).sqrt()), &[NAN, INF]);
}

/// The documented ends of integer arithmetic, where TensorFlow's CPU raises or C leaves it open.
#[test]
fn integers_have_defined_ends() {
    let list = |x: Result<Tensor>| x.unwrap().to_vec::<i32>().unwrap();
    assert_eq!(list(ints([7, -7, 0]).floordiv(0)), [7, -7, 0]);
    assert_eq!(list(ints([7, -7, 0]).floormod(0)), [0, 0, 0]);
    assert_eq!(list(ints([i32::MIN]).floordiv(-1)), [i32::MIN]);
    assert_eq!(list(ints([i32::MIN]).floormod(-1)), [0]);
    assert_eq!(list(ints([i32::MAX]).add(1)), [i32::MIN]);
    assert_eq!(list(ints([2, -2]).pow(-1)), [0, 0]);
    same(&values(ints([5, 0, -5]).divide(0)), &[f32::INFINITY, f32::NAN, f32::NEG_INFINITY]);
}

#[test]
fn casts_stop_at_the_ends() {
    let x = floats([300.0, -1.0, 255.9, 0.9]);
    assert_eq!(x.cast(DType::U8).unwrap().to_vec::<u8>().unwrap(), [255, 0, 255, 0]);
    assert_eq!(x.cast(DType::U32).unwrap().to_vec::<u32>().unwrap(), [300, 0, 255, 0]);
    assert_eq!(x.cast(DType::I32).unwrap().to_vec::<i32>().unwrap(), [300, -1, 255, 0]);
    assert_eq!(x.cast(DType::Bool).unwrap().to_vec::<bool>().unwrap(), [true; 4]);
    // Integers keep their low bits, as in TensorFlow.
    let low = ints([300, -1, 256]).cast(DType::U8).unwrap();
    assert_eq!(low.to_vec::<u8>().unwrap(), [44, 255, 0]);
}

// ---- Tensors without elements ----------------------------------------------------------------------------

/// Has the shape `shape`, and can be read.
#[track_caller]
fn empty<const N: usize>(x: Result<Tensor>, shape: [usize; N]) {
    let x = x.unwrap();
    assert_eq!(x.shape(), shape);
    assert!(x.is_empty());
    assert!(values(x.cast(DType::F32)).is_empty());
}

#[test]
fn tensors_without_elements_go_everywhere() {
    let none = zeros([0, 3]);
    empty(none.add(&none), [0, 3]);
    empty(none.add(1.0), [0, 3]);
    empty(none.multiply(zeros([1, 3])), [0, 3]);
    empty(none.add(zeros([1])), [0, 3]);
    empty(none.exp(), [0, 3]);
    empty(none.cast(DType::I32), [0, 3]);
    empty(tf::where_(&none.greater(0.0).unwrap(), &none, &none), [0, 3]);
    empty(none.reshape([3, 0, 2]), [3, 0, 2]);
    empty(none.transpose(()), [3, 0]);
    empty(none.broadcast_to([2, 0, 3]), [2, 0, 3]);
    empty(zeros([2, 3]).slice(&[0, 3], &[2, 0]), [2, 0]);
    empty(zeros([2, 3]).strided_slice(s![.., 2..2]), [2, 0]);
    empty(zeros([2, 3]).strided_slice(s![..0;-1]), [0, 3]);
    empty(none.reverse([0, 1]), [0, 3]);
    empty(none.tile(&[4, 2]), [0, 6]);
    empty(zeros([2]).tile(&[0]), [0]);
    empty(none.gather(&ints([2, 0]), 1), [0, 2]);
    empty(zeros([5, 3]).gather(&zeros([0]).cast(DType::I32).unwrap(), 0), [0, 3]);
    empty(tf::concat(&[&none, &none], 1), [0, 6]);
    empty(tf::stack(&[&none, &none], 0), [2, 0, 3]);
    empty(tf::one_hot(&zeros([0]).cast(DType::I32).unwrap(), 3), [0, 3]);
    empty(none.softmax(-1), [0, 3]);
    empty(none.argmax(1), [0]);
    empty(none.reduce_sum(1), [0]);
    empty(none.reduce_max(wgrad::Axes::from(1).keepdims(true)), [0, 1]);
    empty(none.matmul(zeros([3, 4])), [0, 4]);
    empty(zeros([4, 3]).matmul(zeros([3, 0])), [4, 0]);
    empty(zeros([0, 2, 3]).matmul(zeros([3, 4])), [0, 2, 4]);
    empty(zeros([0, 2, 3]).matmul(zeros([0, 3, 4])), [0, 2, 4]);
    empty(zeros([0, 5, 5, 2]).conv2d(zeros([3, 3, 2, 4]), plain()), [0, 3, 3, 4]);
    empty(zeros([1, 2, 2, 1]).conv2d(zeros([3, 3, 1, 2]), plain()), [1, 0, 0, 2]);
    empty(zeros([0, 4, 4, 2]).max_pool2d([2, 2], Pool2dOptions::new()), [0, 2, 2, 2]);
    empty(tf::range(3, 3, 1), [0]);
    empty(Tensor::from_slice::<f32>(&[], [2, 0]), [2, 0]);
    empty(zeros([0, 3]).unsorted_segment_sum(&zeros([0]).cast(DType::I32).unwrap(), 0), [0, 3]);
    // A concatenation with something, and edges around nothing.
    assert_eq!(values(tf::concat(&[&zeros([0]), &floats([1.0, 2.0]), &zeros([0])], 0)), [1.0, 2.0]);
    let nine = PadMode::Constant(9.into());
    assert_eq!(values(zeros([0]).pad_with(&[(1, 2)], nine)), [9.0; 3]);
    assert!(matches!(zeros([0]).argmax(0), Err(Error::Shape(_))));
    assert!(matches!(zeros([3, 0]).argmin(1), Err(Error::Shape(_))));
}

#[test]
fn sums_over_nothing_are_their_start() {
    let none = zeros([2, 0]);
    assert_eq!(values(none.reduce_sum(1)), [0.0, 0.0]);
    assert_eq!(values(none.reduce_prod(1)), [1.0, 1.0]);
    assert_eq!(values(none.reduce_max(1)), [f32::NEG_INFINITY; 2]);
    assert_eq!(values(none.reduce_min(())), [f32::INFINITY]);
    same(&values(none.reduce_mean(1)), &[f32::NAN; 2]);
    let ints = none.cast(DType::I32).unwrap();
    assert_eq!(ints.reduce_max(()).unwrap().item::<i32>().unwrap(), i32::MIN);
    assert_eq!(ints.reduce_min(()).unwrap().item::<i32>().unwrap(), i32::MAX);
    let bools = none.cast(DType::Bool).unwrap();
    assert!(bools.reduce_all(()).unwrap().item::<bool>().unwrap());
    assert!(!bools.reduce_any(()).unwrap().item::<bool>().unwrap());
    assert_eq!(values(zeros([5, 0]).matmul(zeros([0, 4]))), [0.0; 20]);
    assert_eq!(values(zeros([2, 3, 0]).matmul(zeros([0, 2]))), [0.0; 12]);
    let ids = zeros([0]).cast(DType::I32).unwrap();
    assert_eq!(values(zeros([0, 2]).unsorted_segment_sum(&ids, 2)), [0.0; 4]);
}

#[test]
fn gradients_of_nothing_are_zero() {
    let (x, w) = (zeros([0, 5, 5, 2]), Tensor::ones([3, 3, 2, 1]).unwrap());
    let tape = GradientTape::new();
    tape.watch(&x).unwrap();
    tape.watch(&w).unwrap();
    let y = x.conv2d(&w, plain()).unwrap().reduce_sum(()).unwrap();
    let [dx, dw] = tape.gradient(&y, [&x, &w]).unwrap();
    empty(Ok(dx.unwrap()), [0, 5, 5, 2]);
    assert_eq!(dw.unwrap().to_vec::<f32>().unwrap(), [0.0; 18]);

    let (a, b) = (zeros([0, 3]), Tensor::ones([3, 2]).unwrap());
    let tape = GradientTape::new();
    tape.watch(&a).unwrap();
    tape.watch(&b).unwrap();
    let y = a.matmul(&b).unwrap();
    let [da, db] = tape.gradient(&y, [&a, &b]).unwrap();
    empty(Ok(da.unwrap()), [0, 3]);
    assert_eq!(db.unwrap().to_vec::<f32>().unwrap(), [0.0; 6]);
}

// ---- Many axes -------------------------------------------------------------------------------------------

/// 0, 1, 2, ... in this shape, here and on the device.
fn counted(shape: &[usize]) -> (ArrayD<f32>, Tensor) {
    let host = Array::range(0.0, shape.iter().product::<usize>() as f32, 1.0);
    let host = host.into_shape_with_order(IxDyn(shape)).unwrap();
    let there = Tensor::from_array(&host).unwrap();
    (host, there)
}

#[track_caller]
fn equal(got: Result<Tensor>, want: &ArrayD<f32>) {
    let got = got.unwrap();
    assert_eq!(got.shape(), want.shape());
    assert_eq!(got.to_array::<f32>().unwrap(), want.as_standard_layout());
}

#[test]
fn five_to_eight_axes() {
    let shapes: [&[usize]; 5] = [
        &[2, 3, 2, 3, 4],
        &[2, 3, 2, 1, 3, 5],
        &[2, 1, 3, 2, 2, 3, 2],
        &[2, 3, 1, 2, 2, 3, 2, 2],
        &[1, 2, 2, 2, 2, 2, 2, 3],
    ];
    for shape in shapes {
        let rank = shape.len();
        let (host, x) = counted(shape);

        // Every second axis of the other operand is broadcast, and its first axis is left out.
        let thin: Vec<usize> =
            (1..rank).map(|axis| if axis % 2 == 0 { 1 } else { shape[axis] }).collect();
        let (thin_host, thin) = counted(&thin);
        equal(x.add(&thin), &(&host + &thin_host));
        equal(thin.subtract(&x), &(&thin_host - &host));

        let order: Vec<usize> = (0..rank).map(|k| (k * 3 + 1) % rank).collect();
        // 3 k + 1 meets every axis unless 3 divides the rank.
        let order: Vec<usize> = if rank % 3 == 0 { (0..rank).rev().collect() } else { order };
        let perm: Vec<i64> = order.iter().map(|&axis| axis as i64).collect();
        let turned = host.clone().permuted_axes(IxDyn(&order));
        equal(x.transpose(&perm), &turned);
        equal(x.transpose(&perm).unwrap().add(1.0), &(&turned + 1.0));

        let sum = host.sum_axis(Axis(rank - 2)).sum_axis(Axis(1));
        equal(x.reduce_sum([1, -2]), &sum);
        let alternate: Vec<i64> = (0..rank as i64).step_by(2).collect();
        let mut folded = host.clone();
        for &axis in alternate.iter().rev() {
            folded = folded.map_axis(Axis(axis as usize), |line| {
                line.iter().copied().fold(f32::NEG_INFINITY, f32::max)
            });
        }
        equal(x.reduce_max(&alternate[..]), &folded);

        let merged = [shape[0] * shape[1], shape[2..].iter().product()];
        let flat = host.clone().into_shape_with_order(IxDyn(&merged)).unwrap();
        equal(x.reshape([merged[0] as i64, -1]), &flat);

        for axis in [0, rank / 2, rank - 1] {
            let both = ndarray::concatenate(Axis(axis), &[host.view(), host.view()]).unwrap();
            equal(tf::concat(&[&x, &x], axis as i64), &both);
        }

        let begin: Vec<usize> = shape.iter().map(|&size| usize::from(size > 2)).collect();
        let rest = vec![-1; rank];
        let boxed =
            host.slice_each_axis(|ax| ndarray::Slice::from(usize::from(ax.len > 2) as isize..));
        equal(x.slice(&begin, &rest), &boxed.to_owned());
        let axes: Vec<i64> = vec![0, rank as i64 - 1];
        let mut back = host.view();
        back.invert_axis(Axis(0));
        back.invert_axis(Axis(rank - 1));
        equal(x.reverse(&axes), &back.to_owned());
    }
}

// ---- Sizes beyond limits ---------------------------------------------------------------------------------

#[track_caller]
fn beyond(result: Result<Tensor>) {
    match result {
        Err(Error::Device(DeviceFault::Limit, text)) => {
            assert!(text.contains("binds at most"), "{text}");
        }
        Err(other) => panic!("{other:?}"),
        Ok(x) => panic!("a tensor of shape {:?} was made", x.shape()),
    }
}

#[test]
fn tensors_beyond_the_adapter_are_refused_before_anything_is_allocated() {
    let device = Device::new().unwrap();
    device.scope(|| {
        let one = Tensor::ones([1]).unwrap();
        one.to_vec::<f32>().unwrap();
        let before = device.stats();
        beyond(Tensor::zeros([1 << 40]));
        beyond(Tensor::zeros([1 << 20, 1 << 20]));
        beyond(one.broadcast_to([1 << 40]));
        beyond(one.tile(&[1 << 40]));
        beyond(one.pad(&[(1 << 40, 0)]));
        beyond(tf::range(0.0, 1e12, 1.0));
        beyond(Tensor::eye(1 << 20));
        beyond(tf::random::Generator::from_seed(1).uniform([1 << 40]));
        let column = Tensor::zeros([1 << 20, 1]).unwrap();
        beyond(column.matmul(column.transpose(()).unwrap()));
        drop(column);
        let after = device.stats();
        let work = |s: &tf::DeviceStats| (s.buffers, s.live_bytes, s.peak_bytes, s.submits);
        assert_eq!(work(&before), work(&after), "nothing may be allocated or submitted");
        // The device goes on.
        assert_eq!(values(one.add(1.0)), [2.0]);
    });
}

/// In debug builds an overflow would panic, in others the size would wrap to a small one.
#[test]
fn sizes_beyond_the_machine_are_refused() {
    const HUGE: usize = usize::MAX;
    let x = zeros([2]);
    beyond(Tensor::zeros([HUGE, HUGE]));
    beyond(Tensor::zeros([HUGE / 2 + 1, 2]));
    beyond(x.broadcast_to([HUGE, 2]));
    beyond(zeros([1, 1]).broadcast_to([HUGE, HUGE]));
    assert!(matches!(Tensor::from_slice(&[1.0f32], [HUGE, 2]), Err(Error::Shape(_))));
    assert!(matches!(x.reshape([i64::MAX, 4]), Err(Error::Shape(_))));
    assert!(x.tile(&[HUGE]).is_err());
    assert!(x.pad(&[(HUGE, 0)]).is_err());
    assert!(x.pad(&[(HUGE / 2, HUGE / 2)]).is_err());
    assert!(x.split_sizes(&[HUGE, 3], 0).is_err());
    assert!(x.slice(&[HUGE], &[i64::MAX]).is_err());
    assert!(x.slice(&[1], &[-2]).is_err());
    assert!(x.strided_slice(s![isize::MIN]).is_err());
    assert_eq!(x.strided_slice(s![isize::MIN..isize::MAX;isize::MIN]).unwrap().shape(), [1]);
    assert!(x.reduce_sum(i64::MIN).is_err());
    assert!(x.expand_dims(i64::MAX).is_err());
    assert!(tf::one_hot(&ints([1]), HUGE).is_err());
    // An axis of size 0 makes a tensor empty. Its other sizes are multiplied all the same.
    let wide = Tensor::zeros([1 << 29, 1 << 29, 0]).unwrap();
    assert!(values(wide.add(1.0)).is_empty());
    assert!(values(wide.transpose(())).is_empty());
    for shape in [[HUGE, HUGE, 0], [0, HUGE, HUGE], [0, 1 << 30, 1 << 30]] {
        assert_eq!(
            text(Tensor::zeros(shape)),
            format!(
                "Fill: a tensor of shape {shape:?} has no elements, and its other sizes multiply to more than \
                 4611686018427387903 bytes. Use smaller ones."
            )
        );
    }
}

/// The tests run as they should: in debug builds an overflow panics, wherever it happens.
#[test]
fn overflows_are_seen_in_debug_builds() {
    let most = std::hint::black_box(usize::MAX);
    assert_eq!(catch_unwind(|| most + 1).is_err(), cfg!(debug_assertions));
}

#[test]
fn sizes_are_added_and_multiplied_with_checks() {
    const HUGE: usize = usize::MAX;
    let nothing = zeros([0, 3]);
    assert_eq!(nothing.split(4, 0).unwrap().len(), 4);
    assert_eq!(
        text(nothing.split(HUGE >> 8, 0)),
        "Split: [0, 3] would become 72057594037927935 tensors, and one call makes 1048576 at most. Take what is needed \
         with slice or gather."
    );
    let long = zeros([1 << 40, 0]);
    assert_eq!(
        text(long.unstack(0)),
        "Unpack: [1099511627776, 0] would become 1099511627776 tensors, and one call makes 1048576 at most. Take what is \
         needed with slice or gather."
    );
    assert!(text(long.split(1 << 40, 0)).starts_with("Split: [1099511627776, 0] would become"));

    // Tensors without elements that are put together, and what is made of them.
    let most = zeros([HUGE >> 4, 0]);
    let refused = "has no elements, and its other sizes multiply to more than";
    for result in [
        tf::concat(&[&most, &most, &most, &most, &most], 0),
        most.tile(&[9, 1]),
        most.pad(&[(HUGE >> 16, 0), (9, 9)]),
        tf::stack(&[&most; 9], 0),
        most.gather(&ints([0; 9]), 1),
        most.expand_dims(0).unwrap().broadcast_to([99, HUGE >> 4, 0]),
        nothing
            .unsorted_segment_sum(&tf::constant([0; 0]).unwrap(), HUGE)
            .map(|x| x.reshape([-1, 0]).unwrap()),
        zeros([0, 1 << 33])
            .matmul_with(
                zeros([1 << 33, 0]),
                wgrad::MatmulOptions::new().transpose_a(true).transpose_b(true),
            )
            .and(most.tile(&[9, 1])),
    ] {
        let text = text(result);
        assert!(text.contains(refused) || text.contains("binds at most"), "{text}");
    }
    for x in [&most, &long, &zeros([0, 1 << 30, 1 << 28])] {
        assert_eq!(values(x.reduce_sum(wgrad::Axes::ALL.keepdims(true))), [0.0]);
        assert_eq!(values(x.reduce_prod(())), [1.0]);
        assert!(x.strided_slice(s![isize::MIN]).is_err());
        assert!(x.strided_slice(s![..;2]).unwrap().is_empty());
        assert!(x.argmax(0).is_err() || x.argmax(0).unwrap().is_empty());
    }

    use tf::keras::Layer;
    use tf::keras::layers::{AveragePooling2D, Conv2D, Dense, Flatten, MaxPooling2D};
    let flat = zeros([0, 1 << 30, 1 << 28]);
    assert_eq!(Flatten::new().call(&flat, INFERENCE).unwrap().shape(), [0, 1 << 58]);
    let image = zeros([1, 5, 5, 1]);
    beyond(Conv2D::new(2, [HUGE, HUGE]).call(&image, INFERENCE));
    beyond(Conv2D::new(HUGE, [1, 1]).call(&image, INFERENCE));
    beyond(Dense::new(HUGE).call(&zeros([1, 2]), INFERENCE));
    assert!(Dense::new(3).call(&zeros([1 << 30, 1 << 28, 0]), INFERENCE).is_err());
    for layer in [
        &MaxPooling2D::new([HUGE, HUGE]) as &dyn Layer,
        &AveragePooling2D::new([1, HUGE]),
        &MaxPooling2D::new([2, 2]).strides([HUGE, 1]),
        &Conv2D::new(1, [2, 2]).strides([1, HUGE]),
        &Conv2D::new(1, [2, 2]).dilations([HUGE, HUGE]),
    ] {
        assert!(matches!(layer.call(&image, INFERENCE), Err(Error::Shape(_))));
    }

    let digits = tf::data::drawn_digits::draw_digits(3, 1);
    let whole: Vec<usize> =
        digits.batches(HUGE, None).map(|batch| batch.unwrap().0.shape()[0]).collect();
    assert_eq!(whole, [3]);
    let mut none = digits.batches(0, None);
    assert_eq!(
        text(none.next().unwrap()),
        "Images: batches of 0 images never end; a batch needs at least one."
    );
    assert!(none.next().is_none());
}

#[test]
fn a_count_of_steps_does_not_wrap() {
    use tf::keras::optimizers::{Adam, Optimizer, Sgd};
    let w = [Variable::new(&floats([1.0]))];
    let step = |optimizer: &dyn Optimizer| {
        optimizer.set_iterations(u64::MAX);
        optimizer.apply_gradients(&[Some(floats([1.0]))], &w)
    };
    assert_eq!(
        text(step(&Sgd::new(0.1))),
        "sgd: 18446744073709551615 steps were made, and there is no number for another. Set the count with set_iterations."
    );
    let adam = Adam::new(0.1);
    assert!(step(&adam).is_err());
    adam.set_iterations(u64::MAX - 1);
    adam.apply_gradients(&[Some(floats([1.0]))], &w).unwrap();
    assert_eq!(adam.iterations(), u64::MAX);
}

#[test]
fn integers_that_a_dtype_does_not_hold_are_refused() {
    assert_eq!(
        text(tf::range(0, 4_000_000_000u32, 1_000_000_000)),
        "Range: from 0 to 4000000000 in steps of 1000000000 the last number is 3000000000, and i32 holds -2147483648 to \
         2147483647. Give one of the three as a float."
    );
    assert_eq!(
        text(tf::range(0, -3_000_000_000i64, -1)),
        "Range: from 0 to -3000000000 in steps of -1 the last number is -2999999999, and i32 holds -2147483648 to \
         2147483647. Give one of the three as a float."
    );
    // The limit itself is no element.
    let most = tf::range(0, 1i64 << 31, 1 << 30).unwrap();
    assert_eq!(most.to_vec::<i32>().unwrap(), [0, 1 << 30]);
    let least =
        tf::range(i64::from(i32::MAX), i64::from(i32::MIN) - 1, i64::from(i32::MIN)).unwrap();
    assert_eq!(least.to_vec::<i32>().unwrap(), [i32::MAX, -1]);
    assert!(tf::range(0, usize::MAX, usize::MAX).is_err());
    assert!(tf::range(5, 0, 1).unwrap().is_empty());
    assert_eq!(values(tf::range(0.0, 4_000_000_000u32, 1_000_000_000)), [0.0, 1e9, 2e9, 3e9]);

    assert_eq!(
        text(ints([1]).add(usize::MAX)),
        "AddV2: the scalar 18446744073709551615 cannot join a tensor of dtype i32: it is outside -2147483648 to \
         2147483647; cast the tensor to f32 first."
    );
    assert!(Tensor::full([2], usize::MAX).is_err());
    assert!(Tensor::full_of([2], usize::MAX, DType::U32).is_err());
    assert_eq!(values(floats([1.0]).multiply(usize::MAX)), [18446744073709551615f32]);
}

#[test]
fn absurd_windows_are_refused_or_empty() {
    const HUGE: usize = usize::MAX;
    let (image, filter) = (zeros([1, 5, 5, 1]), zeros([2, 2, 1, 1]));
    let never_panics = |options: Conv2dOptions| image.conv2d(&filter, options).map(|y| y.len());
    for padding in [Padding::Valid, Padding::Same] {
        for [strides, dilations] in
            [[[0, 1], [1, 1]], [[1, 1], [0, 1]], [[HUGE, HUGE], [1, 1]], [[1, 1], [HUGE, HUGE]]]
        {
            let result = never_panics(
                Conv2dOptions::new().strides(strides).padding(padding).dilations(dilations),
            );
            if strides.contains(&0) || dilations.contains(&0) {
                assert!(matches!(result, Err(Error::Shape(_))));
            }
        }
    }
    let pools = [[0, 2], [2, 0], [HUGE, HUGE]];
    for window in pools {
        let options = Pool2dOptions::new().strides([2, 2]);
        let result = image.max_pool2d(window, options).map(|y| y.len());
        assert!(matches!(result, Err(Error::Shape(_)) | Ok(0)), "{window:?}: {result:?}");
    }
}

// ---- Two devices -----------------------------------------------------------------------------------------

#[test]
fn tensors_of_two_devices_do_not_meet() {
    let [first, second] = [Device::new().unwrap(), Device::new().unwrap()];
    let a = first.scope(|| zeros([2]));
    let b = second.scope(|| zeros([2]));
    let mixed = [
        a.add(&b),
        tf::concat(&[&a, &b], 0),
        tf::where_(&a.greater(0.0).unwrap(), &a, &b),
        a.gather(&second.scope(|| ints([0])), 0),
    ];
    for result in mixed {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Device(DeviceFault::Mismatch, _)), "{error}");
        assert!(error.to_string().contains("Device::scope"), "{error}");
    }
    // A number goes to its tensor's device, whatever the scope.
    assert_eq!(first.scope(|| values(b.add(1.0))), [1.0, 1.0]);
    assert_eq!(first.scope(|| values(b.reduce_mean(()))), [0.0]);
    assert_eq!(first.scope(|| values(b.softmax(0))), [0.5, 0.5]);
}
