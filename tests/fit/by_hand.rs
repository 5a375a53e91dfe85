//! `fit`, `evaluate` and `predict` compared with manual loops.

use ndarray::{Array1, Array2};
use wgrad as tf;
use wgrad::keras::metrics::Metric;
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{
    CompileOptions, EvaluateOptions, FitOptions, INFERENCE, Layer, Loss, Model, PredictOptions,
    Sequential, TRAINING,
};
use wgrad::{GradientTape, Tensor, Trackable};

use super::{accuracy, all_near, alone, data, loss, near, network, series};

/// The result of a manual loop on the same data.
fn by_hand(
    model: &Sequential,
    x: &Array2<f32>,
    y: &Array1<i32>,
    size: usize,
    epochs: usize,
) -> Vec<[f64; 2]> {
    let adam = Adam::new(0.01);
    let (x, y) = (Tensor::from_array(x).unwrap(), Tensor::from_array(y).unwrap());
    model.build([1, 6]).unwrap();
    let mut history = Vec::new();
    for _ in 0..epochs {
        let order = tf::random::global().permutation(x.shape()[0]).unwrap();
        let (metric, mut sum) = (accuracy(), 0.0);
        for places in order.chunks(size) {
            let places: Vec<i32> = places.iter().map(|&place| place as i32).collect();
            let places = Tensor::from_slice(&places, [places.len()]).unwrap();
            let (x, y) = (x.gather(&places, 0).unwrap(), y.gather(&places, 0).unwrap());
            let tape = GradientTape::new();
            let logits = model.call(&x, TRAINING).unwrap();
            let value = loss().call(&y, &logits).unwrap();
            metric.update_state(&y, &logits).unwrap();
            adam.minimize(&value, tape, model).unwrap();
            sum += f64::from(value.item::<f32>().unwrap()) * places.len() as f64;
        }
        let right: f32 = metric.result().unwrap().item().unwrap();
        history.push([sum / x.shape()[0] as f64, f64::from(right)]);
    }
    history
}

#[test]
fn fit_is_a_loop_by_hand() {
    let _alone = alone();
    let (x, y) = data(103);
    let model = network();
    let want = by_hand(&model, &x, &y, 16, 3);
    let want_weights = model.get_weights().unwrap();

    let tensors = (Tensor::from_array(&x).unwrap(), Tensor::from_array(&y).unwrap());
    let compiled = || {
        let model = network();
        let options = CompileOptions::new().metrics(accuracy());
        model.compile(Adam::new(0.01), loss(), options).unwrap();
        model
    };
    let options = || FitOptions::new().epochs(3).batch_size(16);
    let on_arrays = compiled();
    let first = on_arrays.fit((&x, &y), options()).unwrap();
    let on_tensors = compiled();
    let second = on_tensors.fit(tensors, options()).unwrap();
    assert_eq!(first, second);
    assert_eq!(first.epochs(), [0, 1, 2]);
    all_near(&series(&first, "loss"), &want.iter().map(|w| w[0]).collect::<Vec<_>>(), "loss");
    assert_eq!(series(&first, "accuracy"), want.iter().map(|w| w[1]).collect::<Vec<_>>());
    // The steps are the same, so the weights are, too.
    assert_eq!(on_arrays.get_weights().unwrap(), want_weights);
    assert_eq!(on_tensors.get_weights().unwrap(), want_weights);
    assert_eq!(*on_arrays.trainer().history().unwrap(), first);
}

#[test]
fn evaluate_is_a_loop_by_hand() {
    let _alone = alone();
    let (x, y) = data(77);
    let model = network();
    let options = CompileOptions::new().metrics(accuracy());
    model.compile("sgd", loss(), options).unwrap();
    let logs = model.evaluate((&x, &y), EvaluateOptions::new().batch_size(10)).unwrap();

    let (x, y) = (Tensor::from_array(&x).unwrap(), Tensor::from_array(&y).unwrap());
    let logits = model.call(&x, INFERENCE).unwrap();
    let want: f32 = loss().call(&y, &logits).unwrap().item().unwrap();
    let hits = logits.argmax(-1).unwrap().equal(&y).unwrap().cast(tf::DType::F32).unwrap();
    let right: f32 = hits.reduce_mean(()).unwrap().item().unwrap();
    near(logs.get("loss").unwrap(), want.into(), "loss");
    near(logs.get("accuracy").unwrap(), right.into(), "accuracy");
    // An evaluation does not affect the next one.
    assert_eq!(logs, model.evaluate((&x, &y), EvaluateOptions::new().batch_size(10)).unwrap());
    let some = EvaluateOptions::new().batch_size(10).steps(3);
    let first = model.evaluate((&x, &y), some).unwrap();
    let front = tf::range(0, 30, 1).unwrap();
    let of_30 =
        loss().call(&y.gather(&front, 0).unwrap(), &logits.gather(&front, 0).unwrap()).unwrap();
    near(first.get("loss").unwrap(), of_30.item::<f32>().unwrap().into(), "three batches");
}

#[test]
fn predict_joins_all_batches() {
    let _alone = alone();
    let (x, _) = data(101);
    let model = network();
    let x_tensor = Tensor::from_array(&x).unwrap();
    let want = model.call(&x_tensor, INFERENCE).unwrap().to_vec::<f32>().unwrap();
    let got = |y: Tensor| {
        assert_eq!(y.shape(), [101, 3]);
        let got = y.to_vec::<f32>().unwrap();
        let far = got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(far < 1e-6, "{far}");
    };
    got(model.predict(&x, PredictOptions::new()).unwrap());
    got(model.predict(&x_tensor, PredictOptions::new().batch_size(7)).unwrap());
    got(model.predict((&x_tensor,), PredictOptions::new().batch_size(1000)).unwrap());
    let few = model.predict(&x, PredictOptions::new().batch_size(10).steps(2)).unwrap();
    assert_eq!(few.shape(), [20, 3]);
    assert_eq!(model.predict_on_batch(x_tensor).unwrap()[0].shape(), [101, 3]);
}
