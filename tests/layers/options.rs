//! Options of all layers in addition to their formulas: penalties, constraints, initializers, dtype policies.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use wgrad::keras::initializers::{Distribution, FanMode};
use wgrad::keras::layers::Dense;
use wgrad::keras::optimizers::{Optimizer, Sgd};
use wgrad::keras::{
    Constraint, DTypePolicy, INFERENCE, Initializer, Layer, Losses, Regularizer, Sequential,
    TRAINING,
};
use wgrad::random::Generator;
use wgrad::{DType, GradientTape, Tensor, Trackable, constant};

#[test]
fn a_penalty_counts_once_and_only_while_its_weight_trains() {
    let dense = || {
        let dense = Dense::new(1).kernel_initializer(Initializer::Constant(2.0));
        dense.kernel_regularizer(Regularizer::l1(0.5)).bias_regularizer(Regularizer::l2(1.0))
    };
    let shared = Arc::new(dense());
    let model = Sequential::new().add(shared.clone()).add(shared.clone()).add(dense());
    model.call(&constant([[1.0]]).unwrap(), INFERENCE).unwrap();
    let loss = |part: &Sequential| part.regularization_loss().unwrap().item::<f32>().unwrap();
    // 0.5 |2| for each of two kernels; the biases are 0.
    assert_eq!(loss(&model), 2.0);
    assert_eq!(model.regularization_losses().unwrap().len(), 4);
    shared.set_trainable(false);
    assert_eq!(loss(&model), 1.0);
    model.set_trainable(false);
    assert_eq!(loss(&model), 0.0);
    shared.set_trainable(true);

    let tape = GradientTape::new();
    let penalty = model.regularization_loss().unwrap();
    let kernel = &shared.variables()[0];
    let grad = tape.required_gradient(&penalty, kernel).unwrap();
    assert_eq!(grad.to_vec::<f32>().unwrap(), [0.5]);
}

#[test]
fn an_activity_penalty_is_collected_and_a_constraint_holds_after_each_step() {
    let layer = Dense::new(1)
        .use_bias(false)
        .kernel_initializer(Initializer::Ones)
        .kernel_constraint(Constraint::non_neg())
        .activity_regularizer(Regularizer::l1(0.25));
    let x = constant([[1.0, -3.0], [2.0, 1.0]]).unwrap();
    let error = layer.call(&x, TRAINING).unwrap_err().to_string();
    assert!(
        error.starts_with("add_loss: the model adds a loss, and nothing collects it."),
        "{error}"
    );
    let losses = Losses::new();
    let tape = GradientTape::new();
    let y = layer.call(&x, TRAINING.collect(&losses)).unwrap();
    // 0.25 (|-2| + |3|) for two examples
    assert_eq!(losses.sum().unwrap().item::<f32>().unwrap(), 0.625);
    let loss = y.reduce_sum(()).unwrap().add(losses.sum().unwrap()).unwrap();
    Sgd::new(1.0).minimize(&loss, tape, &layer).unwrap();
    // The gradient is [3, -2] + 0.125 ([-1, 3] + [2, 1]) = [3.125, -1.5]; 1 - 3.125 is below 0.
    assert_eq!(layer.variables()[0].read().to_vec::<f32>().unwrap(), [0.0, 2.5]);
}

#[test]
fn constraints_and_initializers_keep_their_words() {
    let w = constant([[3.0, 0.0], [4.0, 2.0]]).unwrap();
    let near = |got: Tensor, want: [f32; 4]| {
        let got = got.to_vec::<f32>().unwrap();
        assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-5), "{got:?}, not {want:?}");
    };
    near(Constraint::max_norm(2.5, 0).call(&w).unwrap(), [1.5, 0.0, 2.0, 2.0]);
    near(Constraint::unit_norm(0).call(&w).unwrap(), [0.6, 0.0, 0.8, 1.0]);
    // Half of the way from 5 to 4, and from 2 to 3.
    near(Constraint::min_max_norm(3.0, 4.0, 0.5, 0).call(&w).unwrap(), [2.7, 0.0, 3.6, 2.5]);

    let generator = Generator::from_seed(3);
    for shape in [&[40, 7][..], &[7, 40], &[3, 3, 4, 8]] {
        let drawn = Initializer::orthogonal(2.0).init(shape, &generator).unwrap();
        assert_eq!(drawn.shape(), shape);
        let columns = shape[shape.len() - 1];
        let rows = shape.iter().product::<usize>() / columns;
        let matrix = drawn.reshape([rows, columns]).unwrap();
        let other = matrix.transpose(()).unwrap();
        let square = if rows > columns { other.matmul(&matrix) } else { matrix.matmul(&other) };
        let square = square.unwrap().to_array::<f32>().unwrap();
        for (place, value) in square.indexed_iter() {
            let want = if place[0] == place[1] { 4.0 } else { 0.0 };
            assert!((value - want).abs() < 1e-4, "{place:?}: {value}");
        }
    }
    let seeded = Initializer::HeNormal.seed(5);
    let draw = || seeded.init([4, 4], &generator.split()).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(draw(), draw());
    let scaled = Initializer::VarianceScaling {
        scale: 3.0,
        mode: FanMode::FanOut,
        distribution: Distribution::Uniform,
    };
    let values = scaled.init([10, 300], &generator).unwrap().to_vec::<f32>().unwrap();
    // A limit of sqrt(3 * 3 / 300), and its variance a third of its square.
    let limit = (9.0f32 / 300.0).sqrt();
    let largest = values.iter().fold(0f32, |a, b| a.max(b.abs()));
    assert!(largest <= limit && largest > 0.99 * limit, "{largest} {limit}");
    let own = Initializer::new(|_, _| Tensor::zeros([1])).init([2], &generator).unwrap_err();
    assert_eq!(own.to_string(), "an initializer gave [1] for a weight of [2].");
}

#[test]
fn a_mixed_policy_computes_in_half_and_trains_in_single_precision() {
    let x = constant([[1.0, 2.0]]).unwrap();
    if x.cast(DType::F16).is_err() {
        eprintln!("the adapter has no f16: nothing to test");
        return;
    }
    let layer = Dense::new(2)
        .kernel_initializer(Initializer::Constant(1.0 / 3.0))
        .dtype(DTypePolicy::MIXED_FLOAT16);
    let tape = GradientTape::new();
    let y = layer.call(&x, TRAINING).unwrap();
    assert_eq!(y.dtype(), DType::F16);
    let kernel = layer.variables()[0].clone();
    assert_eq!(kernel.dtype(), DType::F32);
    let loss = y.cast(DType::F32).unwrap().reduce_sum(()).unwrap();
    let grad = tape.required_gradient(&loss, &kernel).unwrap();
    assert_eq!(grad.dtype(), DType::F32);
    assert_eq!(grad.to_vec::<f32>().unwrap(), [1.0, 1.0, 2.0, 2.0]);
    // A layer with another policy casts its input to its own dtype.
    let last = Dense::new(1).kernel_initializer(Initializer::Ones);
    let z = last.call(&y, INFERENCE).unwrap();
    assert_eq!(z.dtype(), DType::F32);
    assert!((z.item::<f32>().unwrap() - 2.0).abs() < 2e-3);
}
