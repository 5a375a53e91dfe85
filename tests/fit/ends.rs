//! How training ends early: signals and errors.

use wgrad::data::Dataset;
use wgrad::keras::callbacks::LambdaCallback;
use wgrad::keras::optimizers::{Adam, Optimizer, Sgd};
use wgrad::keras::{
    CompileOptions, EvaluateOptions, FitOptions, Model, PredictOptions, StopSignal,
};
use wgrad::{Result, Tensor};

use super::{alone, data, loss, network, series};

#[test]
fn a_signal_ends_the_training_and_keeps_the_history() {
    let _alone = alone();
    let (x, y) = data(64);
    let model = network();
    model.compile(Adam::new(0.01), loss(), CompileOptions::new()).unwrap();
    let stop = StopSignal::new();
    let signal = stop.clone();
    let at = LambdaCallback::new().on_train_batch_begin(move |batch, _| {
        if batch == 1 {
            signal.stop();
        }
        Ok(())
    });
    let options = FitOptions::new().epochs(50).batch_size(8).stop_signal(&stop).callback(at);
    let history = model.fit((&x, &y), options.validation_data((&x, &y))).unwrap();
    assert!(history.interrupted());
    // The batch that ran is in the history; a validation would delay the end.
    assert_eq!((history.epochs(), series(&history, "loss").len()), (&[0][..], 1));
    assert_eq!(history.get("val_loss"), None);
    assert_eq!(model.trainer().optimizer().unwrap().iterations(), 2);
}

/// A late error during training leaves the history of the previous epochs.
#[test]
fn an_error_leaves_the_epochs_that_ended() {
    let _alone = alone();
    let (x, y) = data(8);
    let (x, y) = (Tensor::from_array(&x).unwrap(), Tensor::from_array(&y).unwrap());
    let model = network();
    model.compile(Adam::new(0.01), loss(), CompileOptions::new()).unwrap();
    let mut passes = 0;
    let batches = move || {
        passes += 1;
        let broken = passes == 4;
        let (x, y) = (x.clone(), y.clone());
        std::iter::once_with(move || match broken {
            true => Err(wgrad::Error::Data("the disk is gone".into())),
            false => Ok((x, y)),
        })
    };
    let error = model.fit(batches, FitOptions::new().epochs(9).verbose(0)).unwrap_err().to_string();
    assert!(error.contains("fit: batch 0: the disk is gone"), "{error}");
    let history = model.trainer().history().unwrap();
    assert_eq!((history.epochs(), series(&history, "loss").len()), (&[0, 1, 2][..], 3));
}

#[test]
fn a_message_names_the_call() {
    let _alone = alone();
    let (x, y) = data(10);
    let model = network();
    let batch = || (Tensor::from_array(&x).unwrap(), Tensor::from_array(&y).unwrap());
    let calls: [(&str, Result<()>); 5] = [
        ("fit", model.fit((&x, &y), FitOptions::new()).map(drop)),
        ("evaluate", model.evaluate((&x, &y), EvaluateOptions::new()).map(drop)),
        ("train_on_batch", model.train_on_batch(batch()).map(drop)),
        ("test_on_batch", model.test_on_batch(batch()).map(drop)),
        ("reset_metrics", model.reset_metrics()),
    ];
    for (call, result) in calls {
        let error = result.unwrap_err().to_string();
        assert!(error.starts_with(&format!("{call}: the model is not compiled")), "{error}");
    }
    // A single example, or unbatched examples.
    model.compile(Sgd::new(0.1), loss(), CompileOptions::new()).unwrap();
    let column = y.clone().insert_axis(ndarray::Axis(1));
    let one = Dataset::from_tensor_slices((x.clone(), column)).unwrap();
    let error = model.fit(&one, FitOptions::new()).unwrap_err().to_string();
    assert!(error.starts_with("fit: ") && error.contains(".batch("), "{error}");
    let error = model.evaluate(&one, EvaluateOptions::new()).unwrap_err().to_string();
    assert!(error.starts_with("evaluate: ") && error.contains(".batch("), "{error}");
    let inputs = Dataset::from_tensor_slices(x.clone()).unwrap();
    let error = model.predict(&inputs, PredictOptions::new()).unwrap_err().to_string();
    assert!(error.starts_with("predict: ") && error.contains(".batch("), "{error}");
    let row = Tensor::from_array(&x.row(0)).unwrap();
    let error = model.predict(&row, PredictOptions::new()).unwrap_err().to_string();
    assert!(error.starts_with("predict: ") && error.contains("x.expand_dims(0)"), "{error}");
}
