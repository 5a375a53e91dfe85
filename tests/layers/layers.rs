//! Layers compared with Keras's numbers and formulas, beyond the golden cases of `tests/oracle.rs`.

#![allow(clippy::unwrap_used)]

use crate::support::compare::close;
use crate::values;
use wgrad::image::{FillMode, Interpolation, ResizeMethod};
use wgrad::keras::layers::*;
use wgrad::keras::{
    Activation, Context, INFERENCE, Initializer, Layer, Losses, Sequential, TRAINING,
};
use wgrad::random::Generator;
use wgrad::{DType, GradientTape, Padding, Tensor, Trackable, constant, range};

/// 0, 1, 2, ... in this shape.
fn counted<const N: usize>(shape: [usize; N]) -> Tensor {
    let count: usize = shape.iter().product();
    range(0.0, count as f64, 1.0).unwrap().reshape(shape).unwrap()
}

fn run(layer: impl Layer, x: &Tensor) -> Tensor {
    layer.call(x, INFERENCE).unwrap()
}

// ---- activations --------------------------------------------------------------------------------------------

#[test]
fn activations_have_keras_names_and_values() {
    let x = constant([[-2.5, -0.7, -0.2, 0.1, 0.6, 3.0]]).unwrap();
    let of = |name: &str| name.parse::<Activation>().unwrap().apply(&x).unwrap();
    close(&of("hard_tanh"), &[-1.0, -0.7, -0.2, 0.1, 0.6, 1.0]);
    close(&of("hard_shrink"), &[-2.5, -0.7, 0.0, 0.0, 0.6, 3.0]);
    close(&of("soft_shrink"), &[-2.0, -0.2, 0.0, 0.0, 0.1, 2.5]);
    // (x + sqrt(x^2 + 4)) / 2
    let squareplus = |x: f32| (x + (x * x + 4.0).sqrt()) / 2.0;
    close(&of("squareplus"), &[-2.5, -0.7, -0.2, 0.1, 0.6, 3.0].map(squareplus));
    // (x + 1)^2 / 4 within -1 to 1
    close(&of("sparse_plus"), &[0.0, 0.0225, 0.16, 0.3025, 0.64, 3.0]);
    close(&of("sparse_sigmoid"), &[0.0, 0.15, 0.4, 0.55, 0.8, 1.0]);
    // max(x - 2, 0): the largest exceeds the others by more than 1.
    close(&of("sparsemax"), &[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    // For 0.5 and 0.1 in the middle: (0.6 + 0.1 - 1) / 2 = -0.15.
    let pair = constant([[0.6, 0.1], [-3.0, -3.0]]).unwrap();
    close(&Activation::sparsemax().apply(&pair).unwrap(), &[0.75, 0.25, 0.5, 0.5]);
    let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
    close(&of("glu"), &[-2.5 * sigmoid(0.1), -0.7 * sigmoid(0.6), -0.2 * sigmoid(3.0)]);
    close(
        &of("celu"),
        &[-2.5f32, -0.7, -0.2, 0.1, 0.6, 3.0].map(|x| if x > 0.0 { x } else { x.exp_m1() }),
    );
    let own = Activation::new(|x| x.square()?.add(1.0));
    close(&Activate::new(own).call(&x, INFERENCE).unwrap(), &[7.25, 1.49, 1.04, 1.01, 1.36, 10.0]);
    close(
        &Activation::threshold(0.5, -1.0).apply(&x).unwrap(),
        &[-1.0, -1.0, -1.0, -1.0, 0.6, 3.0],
    );
}

#[test]
fn rectifiers_follow_their_options() {
    let x = constant([[-1.0, 0.5, 1.0, 1.5, 3.0]]).unwrap();
    let layer = Relu::new().max_value(2.0).negative_slope(0.5).threshold(1.0);
    // 0.5 (x - 1) below 1; at 1 itself the output is 0, as in Keras's formula.
    close(&run(layer, &x), &[-1.0, -0.25, 0.0, 1.5, 2.0]);
    let nan = constant([f32::NAN, f32::NEG_INFINITY]).unwrap();
    let y = values(&run(Relu::new().threshold(1.0), &nan));
    assert!(y[0].is_nan() && y[1] == 0.0, "{y:?}");
}

#[test]
fn softmax_over_several_axes_and_masked_adds_up_to_one() {
    let x = counted([2, 2, 3]);
    let y = run(Softmax::new().axis([1, 2]), &x);
    close(&y.reduce_sum([1, 2]).unwrap(), &[1.0, 1.0]);
    let mask = constant([[true, false, true], [false, false, false]]).unwrap();
    let y = Softmax::new().call(
        &constant([[1.0, 7.0, 1.0], [1.0, 2.0, 3.0]]).unwrap(),
        INFERENCE.with_mask(Some(&mask)),
    );
    assert_eq!(values(&y.unwrap()), [0.5, 0.0, 0.5, 0.0, 0.0, 0.0]);
}

// ---- shapes -------------------------------------------------------------------------------------------------

#[test]
fn reshaping_moves_what_it_says() {
    let x = counted([1, 2, 3]);
    close(&run(Permute::new([2, 1]), &x), &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    close(
        &run(UpSampling1D::new(2), &x),
        &[0.0, 1.0, 2.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 3.0, 4.0, 5.0],
    );
    close(&run(Cropping1D::new((1, 0)), &x), &[3.0, 4.0, 5.0]);
    assert_eq!(run(ZeroPadding1D::new((2, 1)), &x).shape(), [1, 5, 3]);
    let volume = counted([1, 2, 2, 2, 1]);
    assert_eq!(run(UpSampling3D::new([1, 2, 3]), &volume).shape(), [1, 2, 4, 6, 1]);
    assert_eq!(run(ZeroPadding3D::new([1, 2, 3]), &volume).shape(), [1, 4, 6, 8, 1]);
    close(&run(Cropping3D::new([(1, 0), (0, 1), (1, 0)]), &volume), &[5.0]);
    // An empty batch keeps the sizes of its examples.
    let empty = Tensor::zeros([0, 4, 3]).unwrap();
    assert_eq!(run(Reshape::new([-1, 2]), &empty).shape(), [0, 6, 2]);
    assert_eq!(run(Flatten::new(), &empty).shape(), [0, 12]);
    // Integers keep their dtype.
    assert_eq!(
        run(Reshape::new([6]), &constant([[1, 2, 3, 4, 5, 6]]).unwrap()).dtype(),
        DType::I32
    );
}

#[test]
fn a_mask_passes_only_where_the_steps_stay() {
    let mask = constant([[true, false]]).unwrap();
    let masked = INFERENCE.with_mask(Some(&mask));
    let x = Tensor::ones([1, 2, 3]).unwrap();
    let after = |layer: &dyn Layer| layer.call_with_mask(&x, masked).unwrap().1;
    assert!(after(&Dense::new(2)).is_some());
    assert!(after(&Dropout::new(0.5)).is_some());
    assert!(after(&BatchNormalization::new()).is_some());
    let drops: [Box<dyn Layer>; 5] = [
        Box::new(Flatten::new()),
        Box::new(Reshape::new([6])),
        Box::new(Conv1D::new(2, 1)),
        Box::new(MaxPooling1D::new(2)),
        Box::new(GlobalAveragePooling1D::new()),
    ];
    drops.iter().for_each(|layer| assert!(after(layer).is_none(), "{}", layer.kind()));
    let model = Sequential::new()
        .add(Embedding::new(10, 4).mask_zero(true))
        .add(GlobalAveragePooling1D::new());
    let y = model.call(&constant([[3, 0, 0], [3, 3, 0]]).unwrap(), INFERENCE).unwrap();
    // Padding does not count, so both are the row of 3.
    let y = values(&y);
    assert!(y[..4].iter().zip(&y[4..]).all(|(a, b)| (a - b).abs() < 1e-6), "{y:?}");
}

// ---- convolutions and pools ---------------------------------------------------------------------------------

#[test]
fn convolutions_of_every_rank_count_their_windows() {
    let ones = || Initializer::Ones;
    let x = counted([1, 3, 4]);
    // Groups: [0 + 1 + 4 + 5, .., 2 + 3 + 6 + 7, ..].
    let layer = Conv1D::new(4, 2).groups(2).kernel_initializer(ones());
    close(&run(layer, &x), &[10.0, 10.0, 18.0, 18.0, 26.0, 26.0, 34.0, 34.0]);
    let causal = Conv1D::new(1, 2).padding(SignalPadding::Causal).dilation_rate(2);
    let signal = constant([1.0, 2.0, 3.0, 4.0]).unwrap().reshape([1, 4, 1]).unwrap();
    close(&run(causal.kernel_initializer(ones()), &signal), &[1.0, 2.0, 4.0, 6.0]);
    let image = counted([1, 2, 2, 2]);
    let layer = Conv2D::new(2, [2, 2]).groups(2).kernel_initializer(ones());
    close(&run(layer, &image), &[12.0, 16.0]);
    let volume = counted([1, 1, 2, 2, 2]);
    let layer = Conv3D::new(2, [1, 2, 2]).groups(2).kernel_initializer(ones());
    close(&run(layer, &volume), &[12.0, 16.0]);
    let layer = DepthwiseConv1D::new(2).depth_multiplier(2).depthwise_initializer(ones());
    close(&run(layer, &signal), &[3.0, 3.0, 5.0, 5.0, 7.0, 7.0]);
    let layer = SeparableConv1D::new(1, 2).depth_multiplier(2);
    let layer = layer.depthwise_initializer(ones()).pointwise_initializer(ones());
    close(&run(layer, &signal), &[6.0, 10.0, 14.0]);
}

#[test]
fn transposed_convolutions_are_as_long_as_in_keras() {
    let x = constant([1.0, 2.0, 3.0]).unwrap().reshape([1, 3, 1]).unwrap();
    let layer = || Conv1DTranspose::new(1, 3).strides(2).kernel_initializer(Initializer::Ones);
    // Each element is added to three, two apart.
    close(&run(layer(), &x), &[1.0, 1.0, 3.0, 2.0, 5.0, 3.0, 3.0]);
    close(&run(layer().output_padding(1), &x), &[1.0, 1.0, 3.0, 2.0, 5.0, 3.0, 3.0, 0.0]);
    assert_eq!(run(layer().padding(Padding::Same), &x).shape(), [1, 6, 1]);
    assert_eq!(run(layer().padding(Padding::Same).output_padding(0), &x).shape(), [1, 5, 1]);
    let wide = Conv2DTranspose::new(2, [1, 1]).strides([3, 2]);
    assert_eq!(run(wide, &Tensor::ones([1, 2, 2, 1]).unwrap()).shape(), [1, 6, 4, 2]);
    let volume = Conv3DTranspose::new(2, [2, 2, 2]).strides([2, 1, 1]).padding(Padding::Same);
    assert_eq!(run(volume, &Tensor::ones([1, 2, 3, 3, 1]).unwrap()).shape(), [1, 4, 3, 3, 2]);
}

#[test]
fn pools_take_what_they_say() {
    let x = counted([1, 5, 1]);
    close(&run(MaxPooling1D::new(2), &x), &[1.0, 3.0]);
    // One position of the last window is outside, and does not count.
    close(&run(AveragePooling1D::new(2).padding(Padding::Same), &x), &[0.5, 2.5, 4.0]);
    close(&run(AdaptiveMaxPooling1D::new(2), &x), &[2.0, 4.0]);
    let volume = counted([1, 2, 2, 2, 1]);
    close(&run(AveragePooling3D::new([2, 2, 2]), &volume), &[3.5]);
    close(&run(MaxPooling3D::new([1, 2, 2]), &volume), &[3.0, 7.0]);
    let y = run(GlobalAveragePooling3D::new().keepdims(true), &volume);
    assert_eq!((y.shape(), values(&y)), (&[1, 1, 1, 1, 1][..], vec![3.5]));
    let image = counted([1, 2, 2, 2]);
    close(&run(GlobalMaxPooling2D::new(), &image), &[6.0, 7.0]);
    close(&run(AdaptiveAveragePooling2D::new([1, 1]), &image), &[3.0, 4.0]);
}

// ---- normalization ------------------------------------------------------------------------------------------

fn state(layer: &impl Trackable, name: &str) -> Vec<f32> {
    let variables = layer.named_variables();
    values(&variables.iter().find(|(known, _)| known == name).unwrap().1.read())
}

#[test]
fn batch_normalization_moves_its_statistics_only_while_it_trains() {
    let layer = BatchNormalization::new().momentum(0.5);
    let x = constant([[1.0, 10.0], [3.0, 30.0]]).unwrap();
    let root = |variance: f32| 1.0 / (variance + 1e-3).sqrt();
    close(
        &layer.call(&x, TRAINING).unwrap(),
        &[-root(1.0), -10.0 * root(100.0), root(1.0), 10.0 * root(100.0)],
    );
    // Half of 0 and half of the mean; half of 1 and half of the biased variance.
    assert_eq!(state(&layer, "moving_mean"), [1.0, 10.0]);
    assert_eq!(state(&layer, "moving_variance"), [1.0, 50.5]);
    close(&layer.call(&x, INFERENCE).unwrap(), &[0.0, 0.0, 2.0 * root(1.0), 20.0 * root(50.5)]);
    assert_eq!(state(&layer, "moving_mean"), [1.0, 10.0]);
    // A frozen layer runs in inference mode.
    layer.set_trainable(false);
    close(&layer.call(&x, TRAINING).unwrap(), &[0.0, 0.0, 2.0 * root(1.0), 20.0 * root(50.5)]);
    assert_eq!(state(&layer, "moving_mean"), [1.0, 10.0]);
    layer.set_trainable(true);
    layer.call(&x, TRAINING).unwrap();
    assert_eq!(state(&layer, "moving_mean"), [1.5, 15.0]);
    assert_eq!(layer.trainable_variables().len(), 2);
}

#[test]
fn batch_normalization_leaves_masked_steps_out() {
    let layer = BatchNormalization::new().momentum(0.0).epsilon(0.0);
    let x = constant([[[1.0], [3.0], [100.0]]]).unwrap();
    let mask = constant([[true, true, false]]).unwrap();
    let y = layer.call(&x, TRAINING.with_mask(Some(&mask))).unwrap();
    close(&y, &[-1.0, 1.0, 98.0]);
    // Keras's numbers.
    let x = constant([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 10.0]]]).unwrap();
    let other = BatchNormalization::new();
    let y = other.call(&x, TRAINING.with_mask(Some(&mask))).unwrap();
    close(
        &y.slice(&[0, 1, 0], &[1, -1, -1]).unwrap(),
        &[0.99978, 0.99978, 0.99978, 2.99933, 2.99933, 3.66585],
    );
    close(
        &constant([state(&other, "moving_mean")[2], state(&other, "moving_variance")[2]]).unwrap(),
        &[0.045, 1.0125],
    );
    close(
        &constant([state(&layer, "moving_mean")[0], state(&layer, "moving_variance")[0]]).unwrap(),
        &[2.0, 1.0],
    );
}

#[test]
fn batch_normalization_along_another_axis_and_in_half_precision() {
    let x = counted([2, 3, 4]);
    let middle = BatchNormalization::new().axis(1);
    let turned = BatchNormalization::new();
    let y = middle.call(&x, TRAINING).unwrap();
    let z = turned.call(&x.transpose([0, 2, 1]).unwrap(), TRAINING).unwrap();
    close(&y, &values(&z.transpose([0, 2, 1]).unwrap()));
    if let Ok(half) = x.cast(DType::F16) {
        use wgrad::keras::DTypePolicy;
        let layer = BatchNormalization::new().dtype(DTypePolicy::MIXED_FLOAT16);
        // The squares of these exceed the range of f16.
        let y = layer.call(&half.multiply(1000.0).unwrap(), TRAINING).unwrap();
        assert_eq!(y.dtype(), DType::F16);
        let y: Vec<f32> = y.cast(DType::F32).unwrap().to_vec().unwrap();
        assert!(y.iter().all(|y| y.is_finite() && y.abs() < 3.0), "{y:?}");
        assert_eq!(layer.variables()[2].dtype(), DType::F32);
    }
}

#[test]
fn other_normalizations_follow_their_axes() {
    let x = counted([2, 4, 3]);
    let one = run(GroupNormalization::new().groups(2).axis(1), &x);
    let other = run(GroupNormalization::new().groups(2), &x.transpose([0, 2, 1]).unwrap());
    close(&one, &values(&other.transpose([0, 2, 1]).unwrap()));
    let each = run(GroupNormalization::new().groups(-1), &x);
    // Each channel separately: 0, 3, 6, 9 with variance 11.25.
    let root = 1.0 / (11.25f32 + 1e-3).sqrt();
    close(
        &each.slice(&[0, 0, 0], &[1, -1, 1]).unwrap(),
        &[-4.5 * root, -1.5 * root, 1.5 * root, 4.5 * root],
    );
    let unit = run(
        UnitNormalization::new().axis([1, 2]),
        &constant([[[3.0], [4.0]], [[0.0], [0.0]]]).unwrap(),
    );
    close(&unit, &[0.6, 0.8, 0.0, 0.0]);
    let rms = run(RmsNormalization::new().axis([1, 2]), &constant([[[1.0, 7.0]]]).unwrap());
    close(&rms, &[0.2, 1.4]);
}

// ---- embeddings, dense ones ---------------------------------------------------------------------------------

#[test]
fn an_embedding_gathers_rows_and_sums_their_gradients() {
    let layer = Embedding::new(4, 2);
    let ids = constant([[1, 3, 1]]).unwrap();
    layer.call(&ids, INFERENCE).unwrap();
    let table = layer.variables()[0].clone();
    assert!(values(&table.read()).iter().all(|value| value.abs() <= 0.05));
    table.assign(counted([4, 2])).unwrap();
    let tape = GradientTape::new();
    let y = layer.call(&ids, TRAINING).unwrap();
    assert_eq!(values(&y), [2.0, 3.0, 6.0, 7.0, 2.0, 3.0]);
    let grad = tape.required_gradient(y.reduce_sum(()).unwrap(), &table).unwrap();
    assert_eq!(values(&grad), [0.0, 0.0, 2.0, 2.0, 0.0, 0.0, 1.0, 1.0]);
    // Floats are rounded towards 0; indices outside the table give rows of zeros.
    assert_eq!(
        values(&run(&layer, &constant([2.9, 4.0, -1.0]).unwrap())),
        [4.0, 5.0, 0.0, 0.0, 0.0, 0.0]
    );
    let unsigned = Tensor::from_slice(&[3u32], [1]).unwrap();
    assert_eq!(values(&run(&layer, &unsigned)), [6.0, 7.0]);
}

#[test]
fn einsum_dense_sizes_its_weights_as_keras_does() {
    let x = counted([1, 3, 3]);
    let shapes = |layer: &EinsumDense| -> Vec<Vec<usize>> {
        layer.variables().iter().map(|variable| variable.shape().to_vec()).collect()
    };
    let layer = EinsumDense::new("abc,cd->abd", [None, Some(2)]).bias_axes("bd");
    assert_eq!(layer.call(&x, INFERENCE).unwrap().shape(), [1, 3, 2]);
    assert_eq!(shapes(&layer), [vec![3, 2], vec![3, 2]]);
    let layer = EinsumDense::new("...x,xy->...y", 2).bias_axes("y");
    assert_eq!(layer.call(&x, INFERENCE).unwrap().shape(), [1, 3, 2]);
    assert_eq!(shapes(&layer), [vec![3, 2], vec![2]]);
    let layer = EinsumDense::new("ab...,bc->ac...", 2).bias_axes("c");
    assert_eq!(layer.call(&x, INFERENCE).unwrap().shape(), [1, 2, 3]);
    assert_eq!(shapes(&layer), [vec![3, 2], vec![2, 1]]);
    // The query projection of attention, with separate heads.
    let layer = EinsumDense::new("abc,cde->abde", [None, Some(4), Some(5)]);
    let layer = layer.kernel_initializer(Initializer::Ones);
    let y = layer.call(&x, INFERENCE).unwrap();
    assert_eq!(y.shape(), [1, 3, 4, 5]);
    assert_eq!((values(&y)[0], values(&y)[59]), (3.0, 21.0));
}

// ---- random layers ------------------------------------------------------------------------------------------

#[test]
fn dropouts_keep_the_mean_and_drop_what_belongs_together() {
    let x = Tensor::ones([64, 16, 32]).unwrap();
    let mean = |y: &Tensor| y.reduce_mean(()).unwrap().item::<f32>().unwrap();
    let y = SpatialDropout1D::new(0.25).seed(1).call(&x, TRAINING).unwrap();
    // 2048 channels: a deviation of the mean of 0.013.
    assert!((mean(&y) - 1.0).abs() < 0.06, "{}", mean(&y));
    let steps = y.reduce_max(1).unwrap().subtract(y.reduce_min(1).unwrap()).unwrap();
    assert!(values(&steps).iter().all(|apart| *apart == 0.0));
    let noise = Dropout::new(0.5).noise_shape([None, Some(1), Some(1)]).seed(2);
    let y = noise.call(&x, TRAINING).unwrap().reshape([64, -1]).unwrap();
    assert!(values(&y).chunks(512).all(|row| row.iter().all(|v| *v == row[0])));
    let y = GaussianDropout::new(0.5).seed(3).call(&x, TRAINING).unwrap();
    let deviation = y.reduce_std(()).unwrap().item::<f32>().unwrap();
    assert!((mean(&y) - 1.0).abs() < 0.03 && (deviation - 1.0).abs() < 0.03);
    let normal = Generator::from_seed(4).normal([64, 16, 32]).unwrap();
    let y = AlphaDropout::new(0.3).seed(5).call(&normal, TRAINING).unwrap();
    let deviation = y.reduce_std(()).unwrap().item::<f32>().unwrap();
    assert!(mean(&y).abs() < 0.03 && (deviation - 1.0).abs() < 0.03, "{} {deviation}", mean(&y));
    let same =
        |layer: &dyn Layer| assert_eq!(values(&layer.call(&x, INFERENCE).unwrap()), values(&x));
    same(&SpatialDropout1D::new(0.5));
    same(&AlphaDropout::new(0.5));
    same(&GaussianDropout::new(0.5));
}

#[test]
fn activity_regularization_costs_once() {
    let losses = Losses::new();
    let layer = ActivityRegularization::new().l1(0.5).l2(1.0);
    layer.call(&constant([[-1.0, 2.0]]).unwrap(), TRAINING.collect(&losses)).unwrap();
    assert_eq!(losses.sum().unwrap().item::<f32>().unwrap(), 6.5);
    // Keras divides by the size of the batch.
    let losses = Losses::new();
    let x = constant([[-1.0, 2.0], [0.0, 0.0], [4.0, 0.0], [0.0, 1.0]]).unwrap();
    layer.call(&x, TRAINING.collect(&losses)).unwrap();
    assert_eq!(losses.sum().unwrap().item::<f32>().unwrap(), (4.0 + 22.0) / 4.0);
    let losses = Losses::new();
    layer.call(&Tensor::zeros([0, 2]).unwrap(), TRAINING.collect(&losses)).unwrap();
    assert_eq!(losses.sum().unwrap().item::<f32>().unwrap(), 0.0);
}

// ---- merging ------------------------------------------------------------------------------------------------

#[test]
fn merging_layers_fold_their_inputs() {
    let inputs = [constant([[1.0, 4.0]]).unwrap(), constant([[3.0, 2.0]]).unwrap()];
    let of = |layer: &dyn Layer<[Tensor]>| values(&layer.call(&inputs, INFERENCE).unwrap());
    assert_eq!(of(&Add::new()), [4.0, 6.0]);
    assert_eq!(of(&Subtract::new()), [-2.0, 2.0]);
    assert_eq!(of(&Multiply::new()), [3.0, 8.0]);
    assert_eq!(of(&Average::new()), [2.0, 3.0]);
    assert_eq!(of(&Maximum::new()), [3.0, 4.0]);
    assert_eq!(of(&Minimum::new()), [1.0, 2.0]);
    assert_eq!(of(&Concatenate::new()), [1.0, 4.0, 3.0, 2.0]);
    assert_eq!(of(&Concatenate::new().axis(0)), [1.0, 4.0, 3.0, 2.0]);
    assert_eq!(of(&Dot::new(-1)), [11.0]);
    // A lower rank gets axes after the batch axis.
    let mixed = [Tensor::ones([2, 3]).unwrap(), Tensor::ones([2, 4, 3]).unwrap()];
    assert_eq!(Add::new().call(&mixed, INFERENCE).unwrap().shape(), [2, 4, 3]);
    let (a, b) = (counted([1, 3, 4]), counted([1, 4, 2]));
    let y = Dot::new([2, 1]).call(&[a.clone(), b.clone()], INFERENCE).unwrap();
    close(&y, &[28.0, 34.0, 76.0, 98.0, 124.0, 162.0]);
    let cosines = Dot::new([2, 1]).normalize(true).call(&[a.clone(), b], INFERENCE).unwrap();
    close(&cosines, &[1.0, 0.99146, 0.90476, 0.95258, 0.86614, 0.92392]);
    let mask = constant([[true, false, true]]).unwrap();
    let concatenate = |axis: i64| {
        Concatenate::new().axis(axis).compute_mask(&[a.clone(), a.clone()], Some(&mask))
    };
    assert!(concatenate(-1).unwrap().is_some() && concatenate(1).unwrap().is_none());
}

// ---- preprocessing ------------------------------------------------------------------------------------------

#[test]
fn images_are_resized_and_cut_as_in_keras() {
    let x = counted([1, 4, 4, 1]);
    let nearest = Resizing::new(2, 2).interpolation(ResizeMethod::NearestNeighbor);
    close(&run(nearest, &x), &[5.0, 7.0, 13.0, 15.0]);
    close(&run(CenterCrop::new(2, 2), &x), &[5.0, 6.0, 9.0, 10.0]);
    close(&run(CenterCrop::new(2, 2), &x.squeeze(0).unwrap()), &[5.0, 6.0, 9.0, 10.0]);
    // Rows 1 and 2 alone have the proportions of 2 by 4.
    let cut = Resizing::new(2, 4).crop_to_aspect_ratio(true);
    close(&run(cut, &x), &[4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]);
    let padded = Resizing::new(4, 8).pad_to_aspect_ratio(true).fill_value(9.0);
    let y = run(padded, &x);
    assert_eq!(values(&y)[..8], [9.0, 9.0, 0.0, 1.0, 2.0, 3.0, 9.0, 9.0]);
    // Keras's numbers.
    let x = counted([1, 5, 4, 1]);
    let cut = Resizing::new(2, 3).crop_to_aspect_ratio(true);
    close(&run(cut, &x), &[4.16667, 5.5, 6.83333, 8.16667, 9.5, 10.83333]);
    let padded = Resizing::new(2, 3).pad_to_aspect_ratio(true);
    close(&run(padded, &x), &[1.5, 4.5, 3.0, 6.5, 14.5, 8.0]);
    close(&run(CenterCrop::new(2, 3), &x), &[4.0, 5.0, 6.0, 8.0, 9.0, 10.0]);
    let small = run(CenterCrop::new(6, 3), &x);
    close(
        &small.slice(&[0, 0, 0, 0], &[1, 3, -1, 1]).unwrap(),
        &[1.0, 1.5, 2.0, 4.0, 4.5, 5.0, 7.33333, 7.83333, 8.33333],
    );
    let cubic = UpSampling2D::new([2, 2]).interpolation(ResizeMethod::Bicubic);
    let y = run(cubic, &counted([1, 2, 2, 1]));
    close(&y.slice(&[0, 0, 0, 0], &[1, 1, -1, 1]).unwrap(), &[-0.26471, 0.03067, 0.61639, 0.91176]);
    // Bytes are computed in the layer's dtype.
    let bytes = Tensor::from_slice(&[0u8, 255], [1, 2, 1]).unwrap();
    close(&run(Rescaling::new(1.0 / 255.0), &bytes), &[0.0, 1.0]);
    assert_eq!(run(CenterCrop::new(1, 1), &bytes).dtype(), DType::F32);
}

#[test]
fn random_moves_go_where_their_factors_say() {
    let x = constant([1.0, 2.0, 3.0, 4.0]).unwrap().reshape([1, 2, 2, 1]).unwrap();
    let train = |layer: &dyn Layer| layer.call(&x, TRAINING).unwrap();
    let nearest = Interpolation::Nearest;
    // A quarter turn counterclockwise: the right column becomes the top row.
    let y = train(&RandomRotation::new([0.25, 0.25]).interpolation(nearest));
    close(&y, &[2.0, 4.0, 1.0, 3.0]);
    let y = train(
        &RandomTranslation::new([0.5, 0.5], 0.0).fill_mode(FillMode::Constant).fill_value(7.0),
    );
    close(&y, &[7.0, 7.0, 1.0, 2.0]);
    let y = train(&RandomTranslation::new([-0.5, -0.5], 0.0).fill_mode(FillMode::Wrap));
    close(&y, &[3.0, 4.0, 1.0, 2.0]);
    let y = train(&RandomZoom::new([1.0, 1.0]).fill_mode(FillMode::Constant));
    // Zoomed out by 2: positions -0.5 and 1.5 of two.
    assert_eq!(y.shape(), [1, 2, 2, 1]);
    let y = train(&RandomContrast::new([0.0, 0.0]));
    close(&y, &[1.0, 2.0, 3.0, 4.0]);
    let y = train(&RandomBrightness::new([0.01, 0.01]));
    close(&y, &[3.55, 4.55, 5.55, 6.55]);
    // As in Keras 3.15: 255 - x.
    close(&train(&Solarization::new()), &[254.0, 253.0, 252.0, 251.0]);
    let unit = Solarization::new().value_range([0.0, 5.0]);
    close(&train(&unit), &[4.0, 3.0, 2.0, 1.0]);
    // Half of the range is added, and what is below 0.8 of it then stays.
    let part = unit.addition_factor([0.5, 0.5]).threshold_factor([0.8, 0.8]);
    close(&train(&part), &[3.5, 0.5, 0.0, 0.0]);
    let inference: [Box<dyn Layer>; 6] = [
        Box::new(Solarization::new()),
        Box::new(RandomFlip::new()),
        Box::new(RandomRotation::new(0.5)),
        Box::new(RandomZoom::new(0.5)),
        Box::new(RandomBrightness::new(0.5)),
        Box::new(RandomContrast::new(0.5)),
    ];
    inference.iter().for_each(|layer| close(&run(layer, &x), &[1.0, 2.0, 3.0, 4.0]));
}

#[test]
fn each_image_of_a_batch_draws_for_itself() {
    let row = constant([1.0, 2.0, 3.0, 4.0]).unwrap().reshape([1, 1, 4, 1]).unwrap();
    let x = row.tile(&[64, 1, 1, 1]).unwrap();
    let kinds = |layer: &dyn Layer, width: usize| {
        let y = values(&layer.call(&x, TRAINING).unwrap());
        let mut rows: Vec<Vec<u32>> =
            y.chunks(width).map(|row| row.iter().map(|v| v.to_bits()).collect()).collect();
        rows.sort();
        rows.dedup();
        rows.len()
    };
    assert_eq!(kinds(&RandomFlip::new().mode(FlipMode::Horizontal).seed(1), 4), 2);
    assert_eq!(kinds(&RandomCrop::new(1, 2).seed(2), 2), 3);
    assert_eq!(kinds(&RandomBrightness::new([0.0, 0.5]).seed(3), 4), 64);
    assert_eq!(kinds(&Solarization::new().addition_factor(0.5).seed(5), 4), 64);
    assert!(kinds(&RandomRotation::new(0.5).seed(4), 4) > 32);
    // The same seed gives the same result; a second call continues the sequence.
    let layer = |seed| RandomZoom::new(0.5).seed(seed);
    let (a, b) = (layer(7), layer(7));
    let train = |layer: &RandomZoom| values(&layer.call(&x, TRAINING).unwrap());
    assert_eq!(train(&a), train(&b));
    let first = values(&layer(8).call(&x, TRAINING).unwrap());
    assert_ne!(values(&a.call(&x, TRAINING).unwrap()), first);
}

#[test]
fn normalization_adapts_to_all_batches_alike() {
    let x =
        Generator::from_seed(9).normal([60, 3]).unwrap().multiply(4.0).unwrap().add(2.0).unwrap();
    let (whole, parts) = (Normalization::new(), Normalization::new());
    whole.adapt(&x).unwrap();
    // Batches of unequal sizes.
    let batches =
        [(0, 7), (7, 30), (37, 23)].map(|(from, n)| x.slice(&[from, 0], &[n, -1]).unwrap());
    parts.adapt_batches(&batches).unwrap();
    close(&parts.variables()[0].read(), &state(&whole, "mean"));
    close(&parts.variables()[1].read(), &state(&whole, "variance"));
    let y = run(&whole, &x);
    close(&y.reduce_mean(0).unwrap(), &[0.0; 3]);
    close(&y.reduce_variance(0).unwrap(), &[1.0; 3]);
    assert!(whole.trainable_variables().is_empty());
    let back = Normalization::new().invert(true);
    back.adapt(&x).unwrap();
    close(&run(back, &y), &values(&x));
    let all = Normalization::new().axis(());
    all.adapt(&constant([[1.0, 3.0]]).unwrap()).unwrap();
    close(&run(all, &constant([[5.0]]).unwrap()), &[3.0]);
    let middle = Normalization::new().axis(1);
    middle.adapt(&counted([2, 2, 2])).unwrap();
    // From 0, 1, 4, 5 and from 2, 3, 6, 7.
    assert_eq!(
        (state(&middle, "mean"), state(&middle, "variance")),
        (vec![2.5, 4.5], vec![4.25, 4.25])
    );
}

// ---- a step settles -----------------------------------------------------------------------------------------

#[test]
fn a_training_step_of_them_all_plans_once() {
    // Other tests run concurrently on the current device.
    let device = wgrad::Device::new().unwrap();
    device.scope(|| settles(&device));
}

fn settles(device: &wgrad::Device) {
    use wgrad::keras::optimizers::{Adam, Optimizer};
    let model = Sequential::new()
        .add(RandomFlip::new())
        .add(RandomRotation::new(0.1))
        .add(RandomZoom::new(0.1))
        .add(RandomTranslation::new(0.1, 0.1))
        .add(RandomContrast::new(0.1))
        .add(RandomBrightness::new(0.1))
        .add(RandomCrop::new(8, 8))
        .add(Conv2D::new(4, [3, 3]).padding(Padding::Same))
        .add(BatchNormalization::new())
        .add(LeakyRelu::new())
        .add(SpatialDropout2D::new(0.2))
        .add(DepthwiseConv2D::new([3, 3]))
        .add(GaussianNoise::new(0.1))
        .add(GlobalAveragePooling2D::new())
        .add(AlphaDropout::new(0.1))
        .add(Dense::new(2));
    let adam = Adam::new(1e-3);
    let x = Generator::from_seed(1).uniform([4, 10, 10, 1]).unwrap();
    let step = || {
        let tape = GradientTape::new();
        let training: Context<'_> = TRAINING;
        let loss = model.call(&x, training).unwrap().square().unwrap().reduce_mean(()).unwrap();
        adam.minimize(&loss, tape, &model).unwrap();
    };
    (0..3).for_each(|_| step());
    device.synchronize().unwrap();
    let before = device.stats();
    (0..3).for_each(|_| step());
    device.synchronize().unwrap();
    let after = device.stats();
    assert_eq!(after.plan_misses, before.plan_misses, "a later step made a plan");
    assert_eq!(after.pipelines, before.pipelines, "a later step compiled");
    assert_eq!(after.buffers, before.buffers, "a later step allocated");
}

#[test]
fn spectral_normalization_is_keras() {
    let layer = SpectralNormalization::new(Dense::new(3)).power_iterations(2);
    let x = counted([2, 4]).multiply(0.1).unwrap();
    layer.call(&x, INFERENCE).unwrap();
    let named = layer.named_variables();
    let names: Vec<&str> = named.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["dense/kernel", "dense/bias", "vector_u"]);
    let start: Vec<f32> = (0..12).map(|i| ((i % 5) as f32 - 2.0) * 0.5).collect();
    named[0].1.assign(Tensor::from_slice(&start, [4, 3]).unwrap()).unwrap();
    named[1].1.assign(constant([0.1, 0.2, 0.3]).unwrap()).unwrap();
    named[2].1.assign(constant([[0.5, -0.25, 0.75]]).unwrap()).unwrap();
    // Inference does not change the vectors.
    layer.call(&x, INFERENCE).unwrap();
    assert_eq!(values(&named[0].1.read()), start);
    // Keras 3.15's results and vectors of two calls in training.
    close(
        &layer.call(&x, TRAINING).unwrap(),
        &[0.262_257_3, 0.070_194_155, 0.202_645_63, 0.262_257_25, -0.059_611_663, -0.056_966_037],
    );
    close(&named[2].1.read(), &[0.0, -0.922_194_4, 0.386_726_68]);
    let tape = GradientTape::new();
    let y = layer.call(&x, TRAINING).unwrap();
    close(
        &y,
        &[0.249_274_73, 0.080_580_205, 0.210_435_17, 0.249_274_7, -0.038_839_564, -0.028_404_385],
    );
    close(&named[2].1.read(), &[-0.359_218_5, -0.804_915_67, 0.472_305_86]);
    // The gradient is with respect to the normalized kernel, as in Keras.
    let [gradient] = tape.gradient(y.reduce_sum(()).unwrap(), [&named[0].1]).unwrap();
    close(
        gradient.as_ref().unwrap(),
        &[0.4, 0.4, 0.4, 0.6, 0.6, 0.6, 0.8, 0.8, 0.8, 1.0, 1.0, 1.0],
    );
    // A kernel of zeros stays unchanged.
    named[0].1.assign(Tensor::zeros([4, 3]).unwrap()).unwrap();
    layer.call(&x, TRAINING).unwrap();
    assert_eq!(values(&named[0].1.read()), [0.0; 12]);
    close(&named[2].1.read(), &[-0.359_218_5, -0.804_915_67, 0.472_305_86]);
    let none = SpectralNormalization::new(Relu::new()).call(&x, TRAINING).unwrap_err().to_string();
    assert!(none.contains("a ReLU has neither a 'kernel' nor 'embeddings'"), "{none}");
}
