//! Single batches, and custom steps and metrics.

use wgrad as tf;
use wgrad::data::Batch;
use wgrad::keras::layers::{Dense, Dropout};
use wgrad::keras::metrics::Metric;
use wgrad::keras::optimizers::{Adam, Optimizer, Sgd};
use wgrad::keras::{
    CompileOptions, Context, FitOptions, Layer, Losses, Model, StepLogs, TRAINING, Trainer,
};
use wgrad::{GradientTape, Result, Tensor, Trackable};

use super::{alone, data, loss, network, series};

/// Trains with a custom step.
#[derive(Trackable)]
struct Own {
    dense: Dense,
    dropout: Dropout,
    trainer: Trainer,
}

impl Layer for Own {
    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        self.dense.call(&self.dropout.call(x, cx)?, cx)
    }
}

impl Model for Own {
    fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    fn train_step(&self, batch: &Batch) -> Result<StepLogs> {
        let (tape, losses) = (GradientTape::new(), Losses::new());
        let y_pred = self.call(&batch.x[0], TRAINING.collect(&losses))?;
        let (loss, logs) = self.compute_loss(batch, std::slice::from_ref(&y_pred), &losses)?;
        self.trainer.optimizer()?.minimize(&loss, tape, self)?;
        let size = y_pred.detach_mean()?;
        Ok(logs.add("size", &size))
    }
}

trait DetachMean {
    fn detach_mean(&self) -> Result<Tensor>;
}

impl DetachMean for Tensor {
    fn detach_mean(&self) -> Result<Tensor> {
        self.stop_gradient().abs()?.reduce_mean(())
    }
}

#[test]
fn a_model_may_have_a_step_of_its_own() {
    let _alone = alone();
    let (x, y) = data(48);
    let model = Own { dense: Dense::new(3), dropout: Dropout::new(0.1), trainer: Trainer::new() };
    model.compile(Adam::new(0.02), loss(), CompileOptions::new().metrics(["accuracy"])).unwrap();
    let options = FitOptions::new().epochs(4).validation_data((&x, &y));
    let history = model.fit((&x, &y), options).unwrap();
    let names: Vec<&str> = history.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["accuracy", "loss", "size", "val_accuracy", "val_loss"]);
    let losses = series(&history, "loss");
    assert!(losses[3] < losses[0], "{losses:?}");
    // The trainer's variables are not part of the model.
    assert_eq!(model.variables().len(), 2);
    assert!(!model.summary().contains("rainer"), "{}", model.summary());
    assert_eq!(model.trainer().metrics()[0].0, "accuracy");
}

#[test]
fn single_batches_can_be_trained() {
    let _alone = alone();
    let (x, y) = data(30);
    let (x, y) = (Tensor::from_array(&x).unwrap(), Tensor::from_array(&y).unwrap());
    let model = network();
    model.compile(Adam::new(0.05), loss(), CompileOptions::new().metrics(["accuracy"])).unwrap();
    let first: f32 = model.train_on_batch((&x, &y)).unwrap().get("loss").unwrap().item().unwrap();
    for _ in 0..20 {
        model.train_on_batch((&x, &y)).unwrap();
    }
    let tested: f32 = model.test_on_batch((&x, &y)).unwrap().get("loss").unwrap().item().unwrap();
    assert!(tested < first, "{tested} {first}");
    // As in Keras 3.15.1, where train_on_batch and test_on_batch start with reset_metrics: the numbers are this batch's.
    let names = |logs: &StepLogs| logs.iter().map(|(n, _)| n.to_string()).collect::<Vec<_>>();
    let number = |logs: &StepLogs, name: &str| logs.get(name).unwrap().item::<f32>().unwrap();
    let half =
        |from: usize| (x.slice(&[from, 0], &[15, -1]).unwrap(), y.slice(&[from], &[15]).unwrap());
    let [front, back] = [half(0), half(15)].map(|half| model.test_on_batch(half).unwrap());
    assert_eq!(names(&front), ["loss", "accuracy"]);
    let both = model.test_on_batch((&x, &y)).unwrap();
    for name in ["loss", "accuracy"] {
        let mean = (number(&front, name) + number(&back, name)) / 2.0;
        assert!((mean - number(&both, name)).abs() < 1e-5, "{name}: {mean} {front:?} {back:?}");
    }
    let trained = model.train_on_batch((&x, &y)).unwrap();
    assert_eq!(names(&trained), ["loss", "accuracy"]);
    assert!((number(&trained, "loss") - number(&both, "loss")).abs() < 1e-5);
    model.reset_metrics().unwrap();
    let metric = model.trainer().metrics()[0].1.clone();
    assert_eq!(metric.result().unwrap().item::<f32>().unwrap(), 0.0);
    let none = Tensor::zeros([30]).unwrap();
    let weighted = model.test_on_batch((&x, &y, &none)).unwrap();
    assert_eq!(weighted.get("loss").unwrap().item::<f32>().unwrap(), 0.0);
}

/// Counts its batches in its own metric.
#[derive(Trackable)]
struct Watched {
    dense: Dense,
    seen: tf::keras::metrics::Sum,
    trainer: Trainer,
}

impl Layer for Watched {
    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        self.dense.call(x, cx)
    }
}

impl Model for Watched {
    fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    fn train_step(&self, batch: &Batch) -> Result<StepLogs> {
        let tape = GradientTape::new();
        let loss = self.call(&batch.x[0], TRAINING)?.square()?.reduce_mean(())?;
        self.trainer.optimizer()?.minimize(&loss, tape, self)?;
        self.seen.update_state(&Tensor::ones([1])?)?;
        Ok(StepLogs::new().add("loss", &loss).add("seen", &self.seen.result()?))
    }
}

// Keras 3.15.1 returns 1 to 4 in each of three epochs for a `metrics.Mean` that a model owns and updates.
#[test]
fn metrics_that_a_model_owns_begin_again_with_each_epoch() {
    let _alone = alone();
    let model = Watched {
        dense: Dense::new(1),
        seen: tf::keras::metrics::Sum::new("seen"),
        trainer: Trainer::new(),
    };
    model.compile(Sgd::new(0.1), "mse", CompileOptions::new()).unwrap();
    let (x, y) = (Tensor::ones([8, 2]).unwrap(), Tensor::ones([8, 1]).unwrap());
    let history =
        model.fit((&x, &y), FitOptions::new().epochs(3).batch_size(2).verbose(0)).unwrap();
    // The mean of 1, 2, 3, 4.
    assert_eq!(series(&history, "seen"), [2.5, 2.5, 2.5]);
    assert_eq!(model.seen.result().unwrap().item::<f32>().unwrap(), 4.0);
    model.reset_metrics().unwrap();
    assert_eq!(model.seen.result().unwrap().item::<f32>().unwrap(), 0.0);
}
