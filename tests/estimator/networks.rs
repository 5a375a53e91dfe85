//! Linear models, networks, and wide and deep networks.

use ndarray::Array2;
use wgrad::estimator::{
    DnnClassifier, DnnLinearCombinedClassifier, DnnLinearCombinedRegressor, DnnOptions,
    DnnRegressor, LinearClassifier, LinearRegressor,
};
use wgrad::keras::optimizers::Adam;
use wgrad::keras::{EvaluateOptions, FitOptions, PredictOptions, Verbose};
use wgrad::{Error, Trackable};

use crate::support::folder::Folder;

fn fit(epochs: usize) -> FitOptions<'static> {
    FitOptions::new().epochs(epochs).verbose(Verbose::Silent).shuffle(false)
}

fn evaluate() -> EvaluateOptions<'static> {
    EvaluateOptions::new().verbose(Verbose::Silent)
}

fn predict() -> PredictOptions<'static> {
    PredictOptions::new().verbose(Verbose::Silent)
}

fn table(rows: usize) -> Array2<f32> {
    Array2::from_shape_fn((rows, 2), |(i, j)| ((i * 2 + j) as f32 * 0.618_034).fract() * 2.0 - 1.0)
}

#[test]
fn linear_models_learn_lines_with_the_default_optimizer() {
    let x = table(256);
    let y: Vec<f32> = x.rows().into_iter().map(|x| 2.0 * x[0] - x[1] + 0.5).collect();
    let model = LinearRegressor::new(2).unwrap();
    assert_eq!(model.model().count_params(), 3);
    // The weights begin with 0.
    assert_eq!(model.predict(&x, predict()).unwrap().sum(), 0.0);
    let history = model.fit((&x, &y[..]), fit(60)).unwrap();
    assert!(history.get("loss").unwrap()[59] < 0.05, "{history:?}");
    assert!(model.evaluate((&x, &y[..]), evaluate()).unwrap().get("mae").unwrap() < 0.2);

    let labels: Vec<i32> = y.iter().map(|y| i32::from(*y > 0.0)).collect();
    let model = LinearClassifier::new(2, 2).unwrap();
    model.fit((&x, &labels[..]), fit(40)).unwrap();
    assert!(model.evaluate((&x, &labels[..]), evaluate()).unwrap().get("accuracy").unwrap() > 0.93);
    let predictions = model.predict(&x, predict()).unwrap();
    assert_eq!(
        (predictions.logits().dim(), predictions.probabilities().dim()),
        ((256, 1), (256, 2))
    );
    let labels: Vec<i32> =
        y.iter().map(|y| if *y < -0.5 { 0 } else { 1 + i32::from(*y > 1.0) }).collect();
    let model = LinearClassifier::new(2, 3).unwrap().optimizer(Adam::new(0.1)).unwrap();
    model.fit((&x, &labels[..]), fit(60)).unwrap();
    let predictions = model.predict(&x, predict()).unwrap();
    let right =
        predictions.class_ids().iter().zip(&labels).filter(|(a, b)| **a as i32 == **b).count();
    assert!(right > 220, "{right}");
}

#[test]
fn networks_learn_what_lines_cannot() {
    wgrad::random::set_seed(3);
    let x = table(256);
    let labels: Vec<f32> =
        x.rows().into_iter().map(|x| f32::from(u8::from(x[0] * x[1] > 0.0))).collect();
    let options = DnnOptions::new().dropout(0.1).batch_norm(true);
    let model = DnnClassifier::with_options(2, &[32, 16], 2, options).unwrap();
    let model = model.optimizer(Adam::new(0.02)).unwrap();
    model.fit((&x, &labels[..]), fit(40)).unwrap();
    let logs = model.evaluate((&x, &labels[..]), evaluate()).unwrap();
    // The moving means of tf.estimator's normalization move slowly.
    assert!(logs.get("accuracy").unwrap() > 0.6, "{logs}");
    let model = DnnClassifier::new(2, &[32], 2).unwrap();
    model.fit((&x, &labels[..]), fit(60)).unwrap();
    let logs = model.evaluate((&x, &labels[..]), evaluate()).unwrap();
    assert!(logs.get("accuracy").unwrap() > 0.85, "{logs}");
}

#[test]
fn each_part_of_a_wide_and_deep_network_has_its_optimizer() {
    wgrad::random::set_seed(3);
    let x = table(128);
    let y: Vec<f32> = x.rows().into_iter().map(|x| x[0]).collect();
    let model = DnnLinearCombinedRegressor::new(2, 2, &[4]).unwrap();
    let weights = |of: &DnnLinearCombinedRegressor| {
        of.model()
            .named_variables()
            .into_iter()
            .map(|(name, variable)| (name, variable.read().to_vec::<f32>().unwrap()))
            .collect::<Vec<_>>()
    };
    // A learning rate of nearly 0 leaves the deep part where it is.
    let model = model.linear_optimizer(Adam::new(0.1)).unwrap();
    let model = model.dnn_optimizer(Adam::new(1e-30)).unwrap();
    let before = weights(&model);
    model.fit(((&x, &x), &y[..]), fit(5)).unwrap();
    for ((name, before), (_, after)) in before.iter().zip(weights(&model)) {
        let moved = before.iter().zip(&after).any(|(a, b)| (a - b).abs() > 1e-6);
        assert_eq!(moved, name.starts_with("linear/"), "{name}");
    }
    let model = model.dnn_optimizer(Adam::new(0.05)).unwrap();
    model.fit(((&x, &x), &y[..]), fit(30)).unwrap();
    let logs = model.evaluate(((&x, &x), &y[..]), evaluate()).unwrap();
    assert!(logs.get("mae").unwrap() < 0.1, "{logs}");
}

#[test]
fn files_hold_the_models() {
    let folder = Folder::new("estimator-networks");
    let (x, path) = (table(8), folder.path("model.keras"));
    let model = LinearClassifier::new(2, 3).unwrap();
    model.fit((&x, vec![0, 1, 2, 0, 1, 2, 0, 1]), fit(2)).unwrap();
    model.save(&path).unwrap();
    let loaded = LinearClassifier::load(&path).unwrap();
    assert_eq!(loaded.predict(&x, predict()).unwrap(), model.predict(&x, predict()).unwrap());
    loaded.fit((&x, vec![0, 1, 2, 0, 1, 2, 0, 1]), fit(1)).unwrap();
    let error = LinearRegressor::load(&path).unwrap_err().to_string();
    assert!(error.contains("a model called 'LinearClassifier', not 'LinearRegressor'"), "{error}");

    let model = DnnRegressor::new(2, &[3]).unwrap();
    model.save(&path).unwrap();
    let loaded = DnnRegressor::load(&path).unwrap();
    assert_eq!(loaded.predict(&x, predict()).unwrap(), model.predict(&x, predict()).unwrap());

    let model = DnnLinearCombinedClassifier::new(2, 2, &[3], 2).unwrap();
    model.save(&path).unwrap();
    let loaded = DnnLinearCombinedClassifier::load(&path).unwrap();
    let data = (&x, &x);
    assert_eq!(
        loaded.predict((data,), predict()).unwrap(),
        model.predict((data,), predict()).unwrap()
    );
    loaded.fit((data, vec![0, 1, 0, 0, 1, 1, 0, 1]), fit(1)).unwrap();

    let bytes = std::fs::read(&path).unwrap();
    for length in (0..bytes.len()).step_by(97) {
        assert!(DnnLinearCombinedClassifier::from_keras(&bytes[..length]).is_err(), "{length}");
    }
    assert!(matches!(DnnClassifier::load(folder.path("none")), Err(Error::Io(_))));
}

#[test]
fn wrong_sizes_and_labels_are_errors() {
    let error = |result: Result<(), Error>| result.unwrap_err().to_string();
    assert!(error(LinearRegressor::new(0).map(drop)).contains("LinearRegressor: features is 0"));
    assert!(error(LinearClassifier::new(2, 1).map(drop)).contains("n_classes is 1"));
    assert!(error(DnnRegressor::new(2, &[]).map(drop)).contains("hidden layers is 0"));
    assert!(error(DnnClassifier::new(2, &[4, 0], 3).map(drop)).contains("number of units is 0"));
    let none = DnnLinearCombinedClassifier::new(0, 2, &[4], 2);
    assert!(error(none.map(drop)).contains("linear_features is 0"));
    assert!(error(LinearRegressor::new(2).unwrap().optimizer("adm").map(drop)).contains("'adm'"));

    let x = table(8);
    for (classes, label) in [(2, 2), (2, -1), (3, 3)] {
        let model = LinearClassifier::new(2, classes).unwrap();
        let mut labels = [0; 8];
        labels[3] = label;
        let error = model.fit((&x, &labels[..]), fit(1)).unwrap_err();
        assert!(matches!(error, Error::Index(_)), "{error}");
        assert!(error.to_string().contains(&format!("a label is {label}")), "{error}");
    }
    let model = LinearClassifier::new(3, 2).unwrap();
    let refused = model.fit((&x, vec![0; 8]), fit(1)).unwrap_err();
    assert!(matches!(refused, Error::Shape(_)), "{refused}");
    let none = Array2::<f32>::zeros((0, 3));
    assert!(matches!(model.fit((&none, Vec::<i32>::new()), fit(1)), Err(Error::Data(_))));
}
