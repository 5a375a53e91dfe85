//! Errors of `compile`, `fit`, `evaluate` and `predict` for wrong calls.

use super::{floats, text, zeros};
use ndarray::{Array1, Array2, ArrayD};
use wgrad::data::Dataset;
use wgrad::data::drawn_digits::draw_digits;
use wgrad::keras::layers::{Dense, Flatten};
use wgrad::keras::losses::{MeanSquaredError, Reduction, SparseCategoricalCrossentropy};
use wgrad::keras::optimizers::Sgd;
use wgrad::keras::{
    CompileOptions, EvaluateOptions, FitOptions, Model, PredictOptions, Sequential, Trainer,
};
use wgrad::{Error, Tensor, Trackable};

fn model() -> Sequential {
    let model = Sequential::new().add(Dense::new(3));
    model.compile("sgd", "mse", CompileOptions::new()).unwrap();
    model
}

fn classifier() -> Sequential {
    let model = Sequential::new().add(Dense::new(3));
    let loss = SparseCategoricalCrossentropy::new().from_logits(true);
    model.compile("sgd", loss, CompileOptions::new()).unwrap();
    model
}

fn x() -> Array2<f32> {
    Array2::zeros((10, 2))
}

fn y() -> Array2<f32> {
    Array2::zeros((10, 3))
}

fn options<'a>() -> FitOptions<'a> {
    FitOptions::new()
}

#[test]
fn a_model_is_compiled_first() {
    let model = Sequential::new().add(Dense::new(3));
    let advice = "the model is not compiled. Call compile(\"adam\", \"mse\", CompileOptions::new()) first, with the \
                  optimizer and the loss that it is to be trained with.";
    assert_eq!(text(model.fit((&x(), &y()), options())), format!("fit: {advice}"));
    let error = text(model.evaluate((&x(), &y()), EvaluateOptions::new()));
    assert_eq!(error, format!("evaluate: {advice}"));
    assert!(text(model.train_on_batch((zeros([2, 2]), zeros([2, 3])))).contains("is not compiled"));
    assert!(text(Trainer::new().optimizer().map(|_| ())).starts_with("Trainer::optimizer: "));
    // Predicting needs neither loss nor optimizer.
    assert_eq!(model.predict(x(), PredictOptions::new()).unwrap().shape(), [10, 3]);
}

#[test]
fn names_must_be_known() {
    let model = Sequential::new().add(Dense::new(3));
    let compile = |optimizer: &str, loss: &str, metric: &str| {
        text(model.compile(optimizer, loss, CompileOptions::new().metrics([metric])))
    };
    assert!(compile("adamm", "mse", "accuracy").contains("'adamm'"));
    assert!(compile("adam", "msee", "accuracy").contains("'msee'"));
    assert!(compile("adam", "mse", "accurate").contains("'accurate'"));
}

#[test]
fn arrays_have_examples_and_one_length() {
    let short = Array2::<f32>::zeros((9, 3));
    assert_eq!(
        text(model().fit((&x(), &short), options())),
        "fit: the arrays differ in length: x is [10, 2], y is [9, 3]; their first axes count the examples and must be \
         equal."
    );
    let weights = Array1::<f32>::ones(11);
    let error = text(model().fit((&x(), &y(), &weights), options()));
    assert!(error.contains("sample_weight is [11]"), "{error}");
    let none = (Array2::<f32>::zeros((0, 2)), Array2::<f32>::zeros((0, 3)));
    assert_eq!(
        text(model().fit((&none.0, &none.1), options())),
        "fit: there are no examples: the first axis of the arrays is 0."
    );
    assert!(
        text(model().predict(&none.0, PredictOptions::new()))
            .starts_with("predict: there are no examples")
    );
    let scalar = Tensor::zeros([]).unwrap();
    assert!(
        text(model().fit((&scalar, &scalar), options())).starts_with("fit: the data have a scalar")
    );
    let ragged = vec![vec![1.0f32, 2.0], vec![3.0]];
    assert!(
        text(model().fit((&ragged, &y()), options())).contains("nested values differ in length")
    );
}

#[test]
fn options_make_sense() {
    let fit = |options: FitOptions<'_>| text(model().fit((&x(), &y()), options));
    assert_eq!(fit(options().batch_size(0)), "fit: batch_size is 0; it must be at least 1.");
    assert_eq!(
        fit(options().steps_per_epoch(0)),
        "fit: steps_per_epoch is 0; it must be at least 1."
    );
    assert_eq!(
        fit(options().validation_freq(0)),
        "fit: validation_freq is 0; it must be at least 1."
    );
    assert_eq!(
        fit(options().validation_split(1.0)),
        "fit: validation_split is 1; it must be at least 0 and below 1."
    );
    assert!(fit(options().validation_split(f64::NAN)).starts_with("fit: validation_split is NaN"));
    assert_eq!(
        fit(options().validation_split(0.95)),
        "fit: validation_split 0.95 of 10 examples leaves 0 to train on and 10 to validate. Choose another share."
    );
    assert_eq!(
        fit(options().batch_size(3).steps_per_epoch(5)),
        "fit: 5 steps are requested, and 10 examples make 4 batches. Ask for fewer, or leave the number out."
    );
    assert_eq!(
        text(model().evaluate((&x(), &y()), EvaluateOptions::new().batch_size(0))),
        "evaluate: batch_size is 0; it must be at least 1."
    );
    assert_eq!(
        text(model().predict(x(), PredictOptions::new().steps(0))),
        "predict: steps is 0; it must be at least 1."
    );
    assert!(
        fit(options().class_weight([(usize::MAX, 1.0)])).contains("class_weight names the class")
    );
    assert!(
        fit(options().validation_data((&x(), &x().slice(ndarray::s![..3, ..]))))
            .contains("differ in length")
    );
    let weights = Array1::<f32>::ones(10);
    let both = options().class_weight([(0, 2.0)]);
    assert_eq!(
        text(model().fit((&x(), &y(), &weights), both)),
        "fit: class_weight and sample weights cannot be given together. Multiply them into one."
    );
}

#[test]
fn batches_come_as_they_are() {
    let batch = || (zeros([4, 2]), zeros([4, 3]));
    let two = vec![batch(), batch()];
    assert_eq!(
        text(model().fit(&two, options().batch_size(2))),
        "fit: batch_size is 2, and the data come in batches of their own. Leave it out."
    );
    assert_eq!(
        text(model().fit(&two, options().validation_split(0.5))),
        "fit: validation_split needs arrays, and the data come in batches. Give validation_data."
    );
    assert_eq!(
        text(model().fit(&two, options().steps_per_epoch(3))),
        "fit: 3 steps are requested, and the data ended after 2 batches. Ask for fewer, or repeat the data."
    );
    let none: Vec<(Tensor, Tensor)> = Vec::new();
    assert_eq!(
        text(model().fit(&none, options())),
        "fit: the data gave no batch. Give a closure that makes a new iterator for each epoch."
    );
    // An exhausted iterator has nothing for the second epoch.
    let mut once = Some(two.clone());
    let used_up = move || once.take().unwrap_or_default();
    assert!(
        text(model().fit(used_up, options().epochs(2))).starts_with("fit: the data gave no batch.")
    );
    let empty = vec![batch(), (zeros([0, 2]), zeros([0, 3]))];
    assert_eq!(
        text(model().fit(&empty, options())),
        "fit: batch 1 has no examples: x is [0, 2]. Leave empty batches out."
    );
    // A batch that could not be made is the error of `fit`.
    let digits = draw_digits(4, 1);
    let bad = || [[0, 1], [0, 9]].into_iter().map(|places| digits.tensors(&places));
    assert!(
        text(flat().fit(bad, options()))
            .starts_with("fit: batch 1: Images: index 9 is out of bounds")
    );
}

/// A model of images.
fn flat() -> Sequential {
    let model = Sequential::new().add(Flatten::new()).add(Dense::new(10));
    let loss = SparseCategoricalCrossentropy::new().from_logits(true);
    model.compile("sgd", loss, CompileOptions::new()).unwrap();
    model
}

#[test]
fn datasets_are_batched_and_have_an_end() {
    let digits = Dataset::from_tensor_slices(draw_digits(10, 1)).unwrap();
    // The compiler refuses batches of single numbers; for arrays, the dataset may know the shape.
    let scalars = digits.map(|(x, y)| (x, ndarray::arr0(y)));
    let fit = |options: FitOptions<'_>, batches: &Dataset<(ArrayD<u8>, ArrayD<i32>)>| {
        text(flat().fit(batches, options))
    };
    assert_eq!(
        text(flat().fit(&scalars, options())),
        "fit: the dataset's elements are (u8[_, _, _], i32): a part of each is a scalar, so they are single examples. \
         Batch them: dataset.batch(32)."
    );
    let hidden = digits.map(|(x, y)| (x.into_dyn(), ndarray::arr0(y).into_dyn()));
    assert_eq!(
        fit(options(), &hidden),
        "fit: batch 0: y is a scalar, so the dataset's elements are single examples. Batch them: dataset.batch(32)."
    );
    let batches = digits.batch(4);
    assert_eq!(
        fit(options(), &batches.take(0)),
        "fit: the dataset has no batch. Look at what it leaves out: take, skip, filter, drop_remainder."
    );
    assert_eq!(
        fit(options(), &batches.filter(|_| false)),
        "fit: the dataset gave no batch. Look at what it reads and leaves out."
    );
    assert_eq!(
        fit(options().steps_per_epoch(4), &batches),
        "fit: 4 steps are requested, and the dataset has 3 batches. Ask for fewer, or repeat it: \
         dataset.repeat(None)."
    );
    assert_eq!(
        fit(options().steps_per_epoch(4), &batches.filter(|_| true)),
        "fit: 4 steps are requested, and the dataset ended after 3 batches. Ask for fewer, or repeat the data."
    );
    let endless = batches.repeat(None);
    assert_eq!(
        fit(options(), &endless),
        "fit: the dataset never ends. Say how many batches to take with steps_per_epoch, or end it: dataset.take(100)."
    );
    assert!(
        fit(options().validation_data(&endless), &batches)
            .starts_with("fit: validation data: the dataset never ends. Say how many batches to take with validation_steps")
    );
    assert!(
        text(flat().evaluate(&endless, EvaluateOptions::new())).starts_with(
            "evaluate: the dataset never ends. Say how many batches to take with steps,"
        )
    );
    assert_eq!(
        fit(options().batch_size(2), &batches),
        "fit: batch_size is 2, and the data come in batches of their own. Leave it out."
    );
}

#[test]
fn an_element_that_could_not_be_made_ends_fit() {
    let digits = Dataset::from_tensor_slices(draw_digits(10, 1)).unwrap();
    let places: Vec<i64> = (0..10).collect();
    let numbered = Dataset::from_tensor_slices((draw_digits(10, 1), places)).unwrap();
    let broken = numbered.map(|(pair, at)| match at {
        6 => Err(Error::Data("cat.7.jpg is cut off".into())),
        _ => Ok(pair),
    });
    let model = flat();
    assert_eq!(text(model.fit(broken.batch(4), options())), "fit: batch 1: cat.7.jpg is cut off");
    // The previous batch was trained.
    assert_eq!(model.trainer().optimizer().unwrap().iterations(), 1);
    let large = digits.map(|(x, _)| (x, i64::MAX)).batch(5);
    assert!(text(flat().fit(large, options())).starts_with("fit: batch 0: "));
}

#[test]
fn labels_are_classes_of_the_model() {
    let fit = |labels: Vec<i32>| text(classifier().fit((&x(), &labels), options()));
    let mut labels = vec![0; 10];
    labels[7] = 3;
    assert_eq!(
        fit(labels.clone()),
        "fit: a label is 3, and the model's output [10, 3] has 3 classes: labels must be from 0 to 2. Count the classes \
         from 0, or give the last layer more units."
    );
    labels[7] = -1;
    assert!(fit(labels.clone()).starts_with("fit: a label is -1, and"));
    // Labels on a device are checked once.
    let on_device = wgrad::constant(labels.clone()).unwrap();
    assert!(
        text(classifier().fit((&x(), &on_device), options()))
            .starts_with("fit: a label is -1, and")
    );
    let as_floats = Array1::from_elem(10, 5.0f64);
    assert!(
        text(classifier().fit((&x(), &as_floats), options())).starts_with("fit: a label is 5, and")
    );
    let wrong = vec![9; 10];
    let validation = options().validation_data((x(), wrong));
    assert!(
        text(classifier().fit((&x(), &vec![0; 10]), validation))
            .starts_with("fit: validation data: a label is 9, and")
    );
    // Nothing was trained.
    let model = classifier();
    let _ = text(model.fit((&x(), &labels), options()));
    assert_eq!(model.trainer().history().unwrap().epochs().len(), 0);
}

#[test]
fn shapes_fit_the_loss_and_the_model() {
    let wide = Array2::<f32>::zeros((10, 4));
    let error = text(model().fit((&x(), &wide), options()));
    assert!(error.contains("[10, 4]") && error.contains("[10, 3]"), "{error}");
    let error = text(model().fit(((&x(), &x()), &y()), options()));
    assert!(error.starts_with("the call takes one tensor, and was given 2."), "{error}");
    let error = text(model().fit((&x(), (&y(), &y())), options()));
    assert!(
        error.starts_with(
            "the batch has 2 targets, and the model 1 outputs, of which 1 have a loss."
        ),
        "{error}"
    );
    let error = text(model().fit((x(),), options()));
    assert!(error.starts_with("the batch has 0 targets"), "{error}");
    let apart = Sequential::new().add(Dense::new(3));
    let loss = MeanSquaredError::new().reduction(Reduction::None);
    apart.compile("sgd", loss, CompileOptions::new()).unwrap();
    let error = text(apart.fit((&x(), &y()), options()));
    assert!(
        error.starts_with("the loss 'mean_squared_error' is [10]; training needs a scalar."),
        "{error}"
    );
    let weights = floats([1.0, 2.0, 3.0]);
    let error = text(model().train_on_batch((zeros([2, 2]), zeros([2, 3]), weights)));
    assert!(error.contains("weights"), "{error}");
}

#[test]
fn outputs_are_named_rightly() {
    let fit = |options: CompileOptions| {
        let model = Sequential::new().add(Dense::new(3));
        model.compile("sgd", "mse", options).unwrap();
        text(model.fit((&x(), &y()), self::options()))
    };
    assert_eq!(
        fit(CompileOptions::new().metrics_of("head", ["accuracy"])),
        "compile: there is no output called 'head'; the model has 1: output_1."
    );
    assert_eq!(
        fit(CompileOptions::new().metrics_of(1, ["accuracy"])),
        "compile: there is no output at position 1; the model has 1: output_1."
    );
    assert_eq!(
        fit(CompileOptions::new().loss_weights([1.0, 2.0])),
        "compile: there are 2 loss weights, and the model has 1 losses. Give a weight for each."
    );
    let model = Sequential::new().add(Dense::new(3));
    model.compile("sgd", ["mse", "mse"], CompileOptions::new()).unwrap();
    assert_eq!(
        text(model.fit((&x(), &y()), options())),
        "compile: there are 2 losses, and the model has 1 outputs: output_1. Give a loss for each, one for all, or pairs \
         of names and losses."
    );
}

#[test]
fn a_frozen_model_has_nothing_to_train() {
    let model = model();
    model.build([1, 2]).unwrap();
    model.set_trainable(false);
    assert_eq!(
        text(model.fit((&x(), &y()), options())),
        "sgd: there is no trainable variable to change. A model has none before its first call, nor while \
         set_trainable(false) freezes it."
    );
    // Evaluating works.
    model.evaluate((&x(), &y()), EvaluateOptions::new()).unwrap();
    let mine = Sequential::new().add(Dense::new(3));
    mine.compile(Sgd::new(0.1), "mse", CompileOptions::new()).unwrap();
    mine.set_trainable(false);
    assert!(
        text(mine.fit((&x(), &y()), options())).starts_with("sgd: there is no trainable variable")
    );
}

#[test]
fn callbacks_say_what_they_lack() {
    use wgrad::keras::callbacks::{EarlyStopping, ModelCheckpoint, ReduceLrOnPlateau};
    let fit = |options: FitOptions<'_>| text(model().fit((&x(), &y()), options));
    assert_eq!(
        fit(options().callback(ReduceLrOnPlateau::new().factor(1.0))),
        "ReduceLROnPlateau: the factor is 1; it must be below 1."
    );
    let folder = std::env::temp_dir();
    assert!(
        fit(options().callback(ModelCheckpoint::new(folder.join("{val_loss:.2f}.safetensors"))))
            .contains("names 'val_loss', and the logs have loss. Name one of these, or epoch.")
    );
    let gain = wgrad::keras::callbacks::LambdaCallback::new().on_epoch_end(|_, logs, _| {
        logs.set("gain", 1.0);
        Ok(())
    });
    let stop = EarlyStopping::new().monitor("gain");
    assert_eq!(
        fit(options().callback(gain).callback(stop)),
        "EarlyStopping: it is not known whether 'gain' should increase or decrease. Set mode(Mode::Min) or \
         mode(Mode::Max)."
    );
}
