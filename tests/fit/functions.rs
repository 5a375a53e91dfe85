//! The default steps of `fit`, `evaluate` and `predict` run as functions, with the results of eager steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ndarray::{Array1, Array2};
use wgrad as tf;
use wgrad::data::Dataset;
use wgrad::keras::callbacks::{BatchLogs, Callback, LearningRateScheduler, Run};
use wgrad::keras::layers::{
    BatchNormalization, Bidirectional, Dense, Dropout, Embedding, GaussianNoise, Gru,
    LayerNormalization, Lstm, Reshape,
};
use wgrad::keras::optimizers::schedules::CosineDecay;
use wgrad::keras::optimizers::{Adam, Optimizer, Sgd};
use wgrad::keras::regularizers::Regularizer;
use wgrad::keras::{
    Activation, CompileOptions, Context, EvaluateOptions, FitOptions, History, Layer, Logs, Model,
    PredictOptions, Sequential,
};
use wgrad::{Result, Tensor, Trackable};

use super::{alone, data, loss};

/// Counts its calls, and does something else with each of them if `varies`.
#[derive(Trackable)]
struct Counts {
    #[track(skip)]
    calls: Arc<AtomicUsize>,
    #[track(skip)]
    each: fn(&Tensor, usize) -> Result<Tensor>,
}

impl Layer for Counts {
    fn call(&self, x: &Tensor, _: Context<'_>) -> Result<Tensor> {
        (self.each)(x, self.calls.fetch_add(1, Ordering::Relaxed))
    }
}

fn counts(each: fn(&Tensor, usize) -> Result<Tensor>) -> (Counts, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    (Counts { calls: calls.clone(), each }, calls)
}

fn unchanged(x: &Tensor, _: usize) -> Result<Tensor> {
    Ok(x.clone())
}

/// Trains the model that `make` makes, eagerly or not, and returns its history and its weights.
fn trained(
    eagerly: bool,
    optimizer: impl Optimizer + 'static,
    make: impl FnOnce() -> Sequential,
    fit: impl FnOnce(&Sequential, &Array2<f32>, &Array1<i32>) -> Result<History>,
) -> (History, Vec<Vec<f32>>) {
    tf::random::set_seed(7);
    let model = make();
    let options = CompileOptions::new().metrics(["accuracy"]).run_eagerly(eagerly);
    model.compile(optimizer, loss(), options).unwrap();
    let (x, y) = data(150);
    let history = fit(&model, &x, &y).unwrap();
    let weights = model.variables().iter().map(|v| v.read().to_vec::<f32>().unwrap()).collect();
    (history, weights)
}

fn deep() -> Sequential {
    Sequential::new()
        .add(Dense::new(8).activation(Activation::Relu))
        .add(BatchNormalization::new())
        .add(Dropout::new(0.3))
        .add(Reshape::new([4, 2]))
        .add(Lstm::new(5).dropout(0.2))
        .add(Dense::new(3))
}

#[test]
fn a_function_trains_as_eager_steps_do() {
    let _alone = alone();
    let run = |eagerly| {
        let rate = CosineDecay::new(0.02, 20);
        trained(eagerly, Adam::new(rate).weight_decay(1e-3).clipnorm(0.5), deep, |model, x, y| {
            // Batches of 7 and one of 1, in another order in each epoch.
            model.fit((x, y), FitOptions::new().epochs(5).batch_size(7).validation_split(0.2))
        })
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn layers_are_called_only_to_trace() {
    let _alone = alone();
    let (x, y) = data(320);
    let calls_of = |eagerly: bool| {
        let (layer, calls) = counts(unchanged);
        let model = Sequential::new().add(layer).add(Dense::new(3));
        let options = CompileOptions::new().run_eagerly(eagerly);
        model.compile(Sgd::new(0.1), loss(), options).unwrap();
        model.fit((&x, &y), FitOptions::new().epochs(10).batch_size(16)).unwrap();
        let fitted = calls.swap(0, Ordering::Relaxed);
        model.evaluate((&x, &y), EvaluateOptions::new().batch_size(10)).unwrap();
        let evaluated = calls.swap(0, Ordering::Relaxed);
        model.predict(&x, PredictOptions::new().batch_size(10)).unwrap();
        (fitted, evaluated, calls.load(Ordering::Relaxed))
    };
    let (fitted, evaluated, predicted) = calls_of(true);
    assert!(fitted >= 200 && evaluated >= 32, "{fitted} {evaluated}");
    // In passes of 16 steps or more: traces, and comparisons at the beginning of each epoch and after 1, 2, 4, ... runs.
    let (fitted, fewer, by_function) = calls_of(false);
    assert!(fitted < 40, "{fitted}");
    assert!(fewer < evaluated, "{fewer} {evaluated}");
    // `run_eagerly` is not for predictions only of compiled models, so both run them alike.
    assert!(by_function < 16 && predicted >= 32, "{by_function} {predicted}");
}

#[test]
fn a_model_that_varies_stays_eager() {
    let _alone = alone();
    // By a number, by a tensor of other values, by another op.
    let kinds: [fn(&Tensor, usize) -> Result<Tensor>; 4] = [
        |x, call| x.multiply(1.0 + 0.01 * call as f32),
        |x, call| x.add(Tensor::from_slice(&[0.01 * call as f32; 6], [6])?),
        |x, call| if call % 4 == 3 { x.tanh() } else { x.sin() },
        // A value that the layer reads.
        |x, _| if x.reduce_sum(())?.item::<f32>()? > 0.0 { x.tanh() } else { x.sin() },
    ];
    for each in kinds {
        // What a layer does must follow from its input and the number of training steps so far: a comparison calls it, too.
        let (layer, calls) = counts(each);
        let model = Sequential::new().add(layer).add(Dense::new(3));
        model.compile(Sgd::new(0.1), loss(), CompileOptions::new()).unwrap();
        let (x, y) = data(320);
        model.fit((&x, &y), FitOptions::new().epochs(2).batch_size(16)).unwrap();
        assert!(calls.load(Ordering::Relaxed) >= 40);
    }
}

#[test]
fn a_model_that_reads_trains_as_an_eager_one() {
    let _alone = alone();
    let make = || {
        let (layer, _) =
            counts(|x, _| if x.reduce_sum(())?.item::<f32>()? > 0.0 { x.tanh() } else { x.sin() });
        Sequential::new().add(layer).add(Dense::new(3))
    };
    let run = |eagerly| {
        trained(eagerly, Sgd::new(0.1), make, |model, x, y| {
            model.fit((x, y), FitOptions::new().epochs(3).batch_size(7))
        })
    };
    assert_eq!(run(false), run(true));
}

/// Freezes the first layer at the beginning of the second epoch.
struct Freeze<'a>(&'a Sequential);

impl Callback for Freeze<'_> {
    fn on_epoch_begin(&mut self, epoch: usize, _: &mut Run<'_>) -> Result<()> {
        self.0.layers().next().unwrap().1.set_trainable(epoch != 1);
        Ok(())
    }
}

#[test]
fn callbacks_change_rates_and_freeze_layers() {
    let _alone = alone();
    let make = || Sequential::new().add(Dense::new(8)).add(Dense::new(3));
    let run = |eagerly| {
        trained(eagerly, Adam::new(0.01), make, |model, x, y| {
            let options = FitOptions::new().epochs(4).batch_size(7).callback(Freeze(model));
            let halved = LearningRateScheduler::new(|_, rate| rate * 0.5);
            model.fit((x, y), options.callback(halved))
        })
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn accumulated_gradients_and_datasets() {
    let _alone = alone();
    let make = || Sequential::new().add(Dense::new(8)).add(Dropout::new(0.5)).add(Dense::new(3));
    let run = |eagerly, several: u64| {
        let optimizer = match several {
            1 => Adam::new(0.01),
            several => Adam::new(0.01).gradient_accumulation_steps(several),
        };
        trained(eagerly, optimizer, make, |model, x, y| {
            let examples = Dataset::from_tensor_slices((x.clone(), y.clone()))?;
            model.fit(examples.shuffle(50).batch(9), FitOptions::new().epochs(3))
        })
    };
    for several in [1, 3] {
        assert_eq!(run(false, several), run(true, several));
    }
}

#[test]
fn a_wrong_label_is_found_by_a_function() {
    let _alone = alone();
    let (x, mut y) = data(320);
    y[300] = 3;
    let model = Sequential::new().add(Dense::new(3));
    model.compile(Sgd::new(0.1), loss(), CompileOptions::new()).unwrap();
    let batches = Dataset::from_tensor_slices((x, y)).unwrap().batch(16);
    let error = model.fit(&batches, FitOptions::new()).unwrap_err().to_string();
    assert!(error.contains("a label is 3") && error.contains("batch 18"), "{error}");
    let weights = model.variables()[0].read().to_vec::<f32>().unwrap();
    assert!(weights.iter().all(|w| w.is_finite()));
}

#[test]
fn compiling_in_a_callback_and_fitting_inside_of_fit() {
    let _alone = alone();
    struct Evaluates<'a>(&'a Sequential, Vec<f64>);
    impl Callback for Evaluates<'_> {
        fn on_epoch_begin(&mut self, epoch: usize, _: &mut Run<'_>) -> Result<()> {
            let (x, y) = data(64);
            if epoch == 2 {
                let options = CompileOptions::new().metrics(["accuracy"]);
                self.0.compile(Sgd::new(0.0), loss(), options)?;
            }
            let logs = self.0.evaluate((&x, &y), EvaluateOptions::new().batch_size(4))?;
            self.1.push(logs.get("loss").unwrap());
            Ok(())
        }
    }
    let model = Sequential::new().add(Dense::new(3));
    model.compile(Sgd::new(0.1), loss(), CompileOptions::new().metrics(["accuracy"])).unwrap();
    let (x, y) = data(128);
    let mut seen = Evaluates(&model, Vec::new());
    let options = FitOptions::new().epochs(4).batch_size(8);
    model.fit((&x, &y), options.callback(&mut seen)).unwrap();
    let losses = seen.1;
    assert!(losses[0] > losses[1] && losses[1] > losses[2], "{losses:?}");
    // From the second epoch on, the optimizer changes nothing.
    assert_eq!(losses[2], losses[3]);
}

/// Trains `model` with `compile` and `fit` both ways and compares the histories and weights.
fn same_both_ways<M: Model + Trackable>(
    make: impl Fn() -> M,
    compile: impl Fn(&M, CompileOptions) -> Result<()>,
    fit: impl Fn(&M) -> Result<History>,
) {
    let run = |eagerly: bool| {
        tf::random::set_seed(11);
        let model = make();
        compile(&model, CompileOptions::new().run_eagerly(eagerly)).unwrap();
        let history = fit(&model).unwrap();
        let weights: Vec<Vec<f32>> =
            model.variables().iter().map(|v| v.read().to_vec().unwrap()).collect();
        (history, weights)
    };
    let (function, eager) = (run(false), run(true));
    assert!(eager.0.get("loss").unwrap().iter().all(|loss| loss.is_finite()), "{eager:?}");
    assert_eq!(function, eager);
}

#[test]
fn sequences_with_masks_weights_and_many_lengths() {
    let _alone = alone();
    // Batches of 8 sentences, each batch as long as its longest sentence.
    let batches = |weighted: bool| {
        move || {
            (0..30_usize).map(move |batch| {
                let length = 3 + batch * 7 % 11;
                let words: Vec<i32> = (0..8 * length)
                    .map(|at| if at % length > batch % 5 + 2 { 0 } else { (at % 9) as i32 + 1 })
                    .collect();
                let labels: Vec<i32> = (0..8).map(|at| ((at + batch) % 2) as i32).collect();
                let weights: Vec<f32> =
                    (0..8).map(|at| if weighted { 0.5 + at as f32 } else { 1.0 }).collect();
                let x = Tensor::from_slice(&words, [8, length])?;
                let y = Tensor::from_slice(&labels, [8])?;
                Ok((x, y, Tensor::from_slice(&weights, [8])?))
            })
        }
    };
    for weighted in [false, true] {
        same_both_ways(
            || {
                Sequential::new()
                    .add(Embedding::new(12, 4).mask_zero(true))
                    .add(Bidirectional::new(Gru::new(3).recurrent_dropout(0.1)))
                    .add(Dense::new(2))
            },
            |model, options| {
                let options = options.metrics(["accuracy"]).weighted_metrics(["accuracy"]);
                model.compile(Adam::new(0.01).use_ema(true).clipvalue(0.1), loss(), options)
            },
            |model| model.fit(batches(weighted), FitOptions::new().epochs(3)),
        );
    }
}

#[test]
fn penalties_custom_losses_and_rates_set_between_batches() {
    let _alone = alone();
    struct Rates(usize);
    impl Callback for Rates {
        // Called between the steps, not when the values of several steps have been read.
        fn batch_logs(&self) -> BatchLogs {
            BatchLogs::Unused
        }

        fn on_train_batch_end(&mut self, _: usize, _: &Logs, run: &mut Run<'_>) -> Result<()> {
            self.0 += 1;
            run.set_learning_rate(0.05 / self.0 as f32)
        }
    }
    let (x, y) = data(100);
    let y = y.mapv(|class| class as f32).into_shape_with_order((100, 1)).unwrap();
    for optimizer in ["sgd", "rmsprop", "adamw", "lion"] {
        same_both_ways(
            || {
                let l2 = || Regularizer::l2(0.01);
                Sequential::new()
                    .add(Dense::new(6).kernel_regularizer(l2()).activity_regularizer(l2()))
                    .add(GaussianNoise::new(0.1))
                    .add(LayerNormalization::new())
                    .add(Dense::new(1))
            },
            |model, options| {
                let pinball = |y: &Tensor, y_pred: &Tensor| {
                    let e = y.subtract(y_pred)?;
                    e.multiply(0.9)?.maximum(e.multiply(-0.1)?)?.reduce_mean(-1)
                };
                model.compile(optimizer, pinball, options.metrics(["mae"]))
            },
            |model| {
                let options = FitOptions::new().epochs(3).batch_size(4).validation_split(0.3);
                model.fit((&x, &y), options.callback(Rates(0)))
            },
        );
    }
}

#[test]
fn a_model_is_trained_while_another_thread_evaluates_it() {
    let _alone = alone();
    let (x, y) = data(400);
    let model = Arc::new(Sequential::new().add(Dense::new(8)).add(Dense::new(3)));
    model.compile(Sgd::new(0.01), loss(), CompileOptions::new()).unwrap();
    model.train_on_batch((x.clone(), y.clone())).unwrap();
    let there = {
        let (model, x) = (model.clone(), x.clone());
        std::thread::spawn(move || {
            for _ in 0..20 {
                let y = model.predict(&x, PredictOptions::new().batch_size(16)).unwrap();
                assert_eq!(y.shape(), [400, 3]);
            }
        })
    };
    let history = model.fit((&x, &y), FitOptions::new().epochs(10).batch_size(16)).unwrap();
    there.join().unwrap();
    let losses = history.get("loss").unwrap();
    assert!(losses[9] < losses[0], "{losses:?}");
}

// The gradient of the condition is part of the traced program.
#[test]
fn a_layer_with_a_condition_is_not_called_at_each_step() {
    let _alone = alone();
    let run = |eagerly| {
        let (layer, calls) = counts(|x, _| {
            let large = x.abs()?.reduce_max(())?.greater(1.2)?;
            tf::cond(&large, || x.multiply(0.5), || x.tanh())
        });
        let make = || Sequential::new().add(Dense::new(6)).add(layer).add(Dense::new(3));
        let (history, weights) = trained(eagerly, Sgd::new(0.1), make, |model, x, y| {
            model.fit((x, y), FitOptions::new().epochs(3).batch_size(7))
        });
        (history, weights, calls.load(Ordering::Relaxed))
    };
    let (function, eager) = (run(false), run(true));
    assert!(function.2 < 30 && eager.2 >= 66, "{} {}", function.2, eager.2);
    assert_eq!(function.0.epochs(), eager.0.epochs());
    for (one, two) in function.1.iter().flatten().zip(eager.1.iter().flatten()) {
        assert!((one - two).abs() < 1e-5, "{one} {two}");
    }
}
