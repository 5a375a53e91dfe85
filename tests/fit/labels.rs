//! Labels outside the loss's classes, from any source.

use ndarray::Array2;
use wgrad::data::{Batch, Dataset};
use wgrad::keras::layers::Dense;
use wgrad::keras::losses::SparseCategoricalCrossentropy;
use wgrad::keras::optimizers::{Optimizer, Sgd};
use wgrad::keras::{
    CompileOptions, Context, EvaluateOptions, FitOptions, INFERENCE, Layer, Losses, Model,
    StepLogs, TRAINING, Trainer,
};
use wgrad::{GradientTape, Result, Tensor, Trackable};

use super::{alone, data, loss, network, series};

fn ignoring(label: i32) -> SparseCategoricalCrossentropy {
    loss().ignore_class(label)
}

#[test]
fn labels_that_the_loss_ignores_are_no_mistake() {
    let _alone = alone();
    for label in [255, -1] {
        let (x, mut y) = data(20);
        y[3] = label;
        y[17] = label;
        let model = network();
        model.compile(Sgd::new(0.1), ignoring(label), CompileOptions::new()).unwrap();
        let history = model.fit((&x, &y), of_five().validation_data((&x, &y))).unwrap();
        assert!(
            series(&history, "loss")[0].is_finite() && series(&history, "val_loss")[0].is_finite()
        );
        let tensors = (Tensor::from_array(&x).unwrap(), Tensor::from_array(&y).unwrap());
        model.fit((&tensors.0, &tensors.1), of_five()).unwrap();
        model.fit((&x, &y), of_five().class_weight([(0, 2.0)])).unwrap();
        assert!(
            model
                .evaluate((&x, &y), EvaluateOptions::new())
                .unwrap()
                .get("loss")
                .unwrap()
                .is_finite()
        );
        let batches = Dataset::from_tensor_slices((x.clone(), y.clone())).unwrap().batch(5);
        assert!(series(&model.fit(&batches, options_of_batches()).unwrap(), "loss")[0].is_finite());
        model.train_on_batch(tensors.clone()).unwrap().get("loss").unwrap().item::<f32>().unwrap();
        // Other labels are still refused, and the message names the ignored one.
        y[4] = 3;
        let error = model.fit((&x, &y), of_five()).unwrap_err().to_string();
        let want = format!(
            "fit: a label is 3, and the model's output [5, 3] has 3 classes: labels must be from 0 to 2, or {label}"
        );
        assert!(error.starts_with(&want), "{error}");
    }
}

fn of_five<'a>() -> FitOptions<'a> {
    FitOptions::new().batch_size(5).verbose(0)
}

fn options_of_batches<'a>() -> FitOptions<'a> {
    FitOptions::new().verbose(0)
}

#[test]
fn a_label_out_of_range_is_an_error_wherever_it_comes_from() {
    let _alone = alone();
    for wrong in [7, -2] {
        let (x, mut y) = data(40);
        y[33] = wrong;
        let batches = || Dataset::from_tensor_slices((x.clone(), y.clone())).unwrap().batch(8);
        let compiled = || {
            let model = network();
            model
                .compile(Sgd::new(0.1), loss(), CompileOptions::new().metrics(["accuracy"]))
                .unwrap();
            model
        };
        let refused = |error: wgrad::Error, begin: &str| {
            assert!(matches!(error, wgrad::Error::Index(_)), "{error}");
            let want =
                format!("{begin}a label is {wrong}, and the model's output [8, 3] has 3 classes");
            assert!(error.to_string().starts_with(&want), "{error}");
        };
        let tensors: Vec<(Tensor, Tensor)> = batches()
            .iter()
            .map(|batch| batch.unwrap())
            .map(|(x, y)| (Tensor::from_array(&x).unwrap(), Tensor::from_array(&y).unwrap()))
            .collect();
        refused(compiled().fit(batches(), options_of_batches()).unwrap_err(), "fit: batch 4: ");
        refused(compiled().fit(&tensors, options_of_batches()).unwrap_err(), "fit: batch 4: ");
        let weighted = options_of_batches().class_weight([(1, 2.0)]);
        refused(compiled().fit(batches(), weighted).unwrap_err(), "fit: batch 4: ");
        let options = || EvaluateOptions::new();
        refused(compiled().evaluate(batches(), options()).unwrap_err(), "evaluate: batch 4: ");
        refused(compiled().evaluate((&x, &y), options().batch_size(8)).unwrap_err(), "evaluate: ");
        let (good_x, good_y) = data(40);
        let validated = options_of_batches().validation_data(batches()).epochs(2);
        let error = compiled().fit((&good_x, &good_y), validated).unwrap_err();
        refused(error, "fit: validation data: batch 4: ");
        let validated = options_of_batches().validation_data((&x, &y)).validation_batch_size(8);
        let error = compiled().fit((&good_x, &good_y), validated).unwrap_err();
        refused(error, "fit: validation data: ");
        // The program reads a single batch's scalars, unless the device has already reported the error.
        for trains in [true, false] {
            let model = compiled();
            let (logs, call) = match trains {
                true => (model.train_on_batch(tensors[4].clone()), "train_on_batch: "),
                false => (model.test_on_batch(tensors[4].clone()), "test_on_batch: "),
            };
            let read = logs.and_then(|logs| logs.get("loss").unwrap().item::<f32>());
            refused(read.unwrap_err(), call);
        }
        // A custom step that uses the losses of `compile` gets the error, too.
        let model = OwnStep { dense: Dense::new(3), trainer: Trainer::new() };
        model.compile(Sgd::new(0.1), loss(), CompileOptions::new()).unwrap();
        refused(model.fit(&tensors, options_of_batches()).unwrap_err(), "fit: batch 4: ");
    }
}

/// The error is reported up to 128 steps late, and the steps until then use weights that the batch has not changed.
#[test]
fn a_batch_with_a_wrong_label_changes_no_weight() {
    let _alone = alone();
    let (x, y) = data(24);
    let batch = |at: usize, wrong: Option<i32>| {
        let rows = ndarray::s![8 * at..8 * at + 8, ..];
        let mut y = y.slice(ndarray::s![8 * at..8 * at + 8]).to_owned();
        if let Some(wrong) = wrong {
            y[5] = wrong;
        }
        (Tensor::from_array(&x.slice(rows).to_owned()).unwrap(), Tensor::from_array(&y).unwrap())
    };
    let compiled = |optimizer: &str| {
        let model = network();
        model.call(&batch(0, None).0, INFERENCE).unwrap();
        model.compile(optimizer, loss(), CompileOptions::new().metrics(["accuracy"])).unwrap();
        model
    };
    let good = compiled("sgd");
    let start = good.get_weights().unwrap();
    good.fit(&[batch(0, None), batch(2, None)][..], options_of_batches()).unwrap();
    let good = good.get_weights().unwrap();
    assert_ne!(good, start);
    for wrong in [3, -1, i32::MAX, i32::MIN] {
        let begin = |batch| format!("fit: batch {batch}: a label is ");
        // Twice three steps: all are called before the first numbers arrive.
        let model = compiled("sgd");
        let batches = [batch(0, None), batch(1, Some(wrong)), batch(2, None)];
        let error = model.fit(&batches[..], options_of_batches()).unwrap_err().to_string();
        assert!(error.starts_with(&begin(1)), "{error}");
        assert_eq!(model.get_weights().unwrap(), good, "a label {wrong}");
        assert!(model.trainer().history().unwrap().epochs().is_empty());
        // Many epochs: the history is empty, and no weight is NaN, even with slots.
        let model = compiled("adam");
        let error = model.fit(&batches[..], options_of_batches().epochs(300)).unwrap_err();
        assert!(error.to_string().starts_with(&begin(1)), "{error}");
        let finite = |list: Vec<ndarray::ArrayD<f32>>| {
            assert!(list.iter().flatten().all(|value| value.is_finite()), "{list:?}");
        };
        finite(model.get_weights().unwrap());
        assert!(model.trainer().history().unwrap().epochs().is_empty());
        let steps = model.trainer().optimizer().unwrap().iterations();
        assert!((3..=2 + 128 + 1).contains(&steps), "{steps}");
        // The model can still be trained.
        let history = model.fit(&[batch(0, None)][..], options_of_batches()).unwrap();
        assert!(series(&history, "loss")[0].is_finite());
        finite(model.get_weights().unwrap());
    }
    // A single step, and a custom one with the losses of `compile`.
    let model = compiled("sgd");
    let logs = model.train_on_batch(batch(1, Some(3)));
    let read = logs.and_then(|logs| logs.get("loss").unwrap().item::<f32>());
    let error = read.unwrap_err().to_string();
    assert!(error.starts_with("train_on_batch: a label is 3"), "{error}");
    assert_eq!(model.get_weights().unwrap(), start);
    let model = OwnStep { dense: Dense::new(3), trainer: Trainer::new() };
    model.compile(Sgd::new(0.1), loss(), CompileOptions::new()).unwrap();
    model.call(&batch(0, None).0, INFERENCE).unwrap();
    let start = model.get_weights().unwrap();
    model.fit(&[batch(1, Some(3))][..], options_of_batches()).unwrap_err();
    assert_eq!(model.get_weights().unwrap(), start);
}

/// A custom step with the losses of `compile`.
#[derive(Trackable)]
struct OwnStep {
    dense: Dense,
    trainer: Trainer,
}

impl Layer for OwnStep {
    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        self.dense.call(x, cx)
    }
}

impl Model for OwnStep {
    fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    fn train_step(&self, batch: &Batch) -> Result<StepLogs> {
        let (tape, losses) = (GradientTape::new(), Losses::new());
        let y_pred = self.call(&batch.x[0], TRAINING.collect(&losses))?;
        let (loss, logs) = self.compute_loss(batch, &[y_pred], &losses)?;
        self.trainer.optimizer()?.minimize(&loss, tape, self)?;
        Ok(logs)
    }
}

#[test]
fn validation_data_are_looked_at_before_the_training() {
    let _alone = alone();
    let (x, y) = data(20);
    let narrow = Array2::<f32>::zeros((20, 5));
    let compiled = || {
        let model = network();
        model.compile(Sgd::new(0.1), loss(), CompileOptions::new()).unwrap();
        model
    };
    let dataset =
        |x: &Array2<f32>| Dataset::from_tensor_slices((x.clone(), y.clone())).unwrap().batch(4);
    let refused = |options: FitOptions<'_>, on_batches: bool| {
        let model = compiled();
        let fitted = match on_batches {
            true => model.fit(dataset(&x), options.epochs(3).verbose(0)),
            false => model.fit((&x, &y), options.epochs(3).verbose(0)),
        };
        let error = fitted.unwrap_err().to_string();
        assert!(error.starts_with("fit: validation data: "), "{error}");
        // No step was made.
        assert_eq!(model.trainer().optimizer().unwrap().iterations(), 0, "{error}");
        error
    };
    for on_batches in [false, true] {
        let error = refused(FitOptions::new().validation_data((&narrow, &y)), on_batches);
        assert!(error.contains("[20, 5]") && error.contains("layer 'dense'"), "{error}");
        refused(FitOptions::new().validation_data(dataset(&narrow)), on_batches);
        // Labels of another shape, and none at all.
        refused(FitOptions::new().validation_data((&x, &narrow)), on_batches);
        refused(FitOptions::new().validation_data((&x,)), on_batches);
    }
    // Errors that appear only with the batches name the batch, too.
    let batches = || [(Tensor::zeros([4, 5]).unwrap(), Tensor::zeros([4]).unwrap())];
    let model = compiled();
    let options = FitOptions::new().validation_data(batches).verbose(0);
    let error = model.fit((&x, &y), options).unwrap_err().to_string();
    assert!(error.starts_with("fit: validation data: batch 0: layer 'dense'"), "{error}");
}
