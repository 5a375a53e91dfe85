//! The texts of messages.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{floats, ints, plain, text, values, zeros};

use ndarray::s;
use wgrad as tf;
use wgrad::{DType, Error, GradientTape, Tensor, Variable};

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
            text(tf::concat([&x, &zeros([3, 3])], 1)),
            "ConcatV2: along axis 1 the first tensor is [2, 3] and another is [3, 3]; all axes but axis 1 must agree.",
        ),
        (
            text(zeros([1, 5, 5, 3]).conv2d(zeros([3, 3, 2, 4]), plain())),
            "Conv2D: the images [1, 5, 5, 3] have 3 channels and the filters [3, 3, 2, 4] expect 2; the last axis of the \
             images must equal the third of the filters, or be a multiple of it.",
        ),
        (
            text(x.item::<f32>()),
            "item: the tensor of shape [2, 3] has 6 elements; item needs exactly one. Reduce it first, or use to_vec.",
        ),
        (
            text(ints([1]).to_vec::<f32>()),
            "to_vec: the tensor is i32 and was requested as f32. Read it as i32, or cast it first: \
             x.cast(DType::F32).",
        ),
        (
            text(ints([1]).add(0.5)),
            "AddV2: the scalar 0.5 cannot join a tensor of dtype i32: cast the tensor to f32 first.",
        ),
        (
            text(Variable::new(zeros([2])).assign(zeros([3]))),
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
            "Transpose: axis 0 occurs twice in the order [0, 0]; name each of the 2 axes once.",
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
fn a_missing_gradient_gives_each_reason_once() {
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
