//! The parts of an epoch: its steps, and how often the validation set is measured.

use wgrad::keras::layers::Dense;
use wgrad::keras::losses::MeanSquaredError;
use wgrad::keras::optimizers::{Adam, Sgd};
use wgrad::keras::{CompileOptions, Context, EvaluateOptions, FitOptions, Layer, Model, Trainer};
use wgrad::{Result, Tensor, Trackable};

use super::{accuracy, alone, data, loss, network, series};

#[test]
fn validation_data_are_measured_as_often_as_asked_for() {
    let _alone = alone();
    let (x, y) = data(50);
    let model = network();
    model.compile(Adam::new(0.01), loss(), CompileOptions::new().metrics(accuracy())).unwrap();
    let options = FitOptions::new().epochs(5).initial_epoch(1).validation_data((&x, &y));
    let history =
        model.fit((&x, &y), options.validation_freq(2).validation_batch_size(50)).unwrap();
    assert_eq!(history.epochs(), [1, 2, 3, 4]);
    assert_eq!(series(&history, "loss").len(), 4);
    // After the second and the fourth epoch.
    let measured = series(&history, "val_loss");
    assert_eq!(measured.len(), 2);
    let names: Vec<&str> = history.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["accuracy", "loss", "val_accuracy", "val_loss"]);

    // The last epoch's validation equals an evaluation.
    let again = network();
    again.compile(Adam::new(0.01), loss(), CompileOptions::new()).unwrap();
    let options = FitOptions::new().epochs(2).validation_data((&x, &y));
    let history = again.fit((&x, &y), options).unwrap();
    let logs = again.evaluate((&x, &y), EvaluateOptions::new()).unwrap();
    assert_eq!(series(&history, "val_loss")[1], logs.get("loss").unwrap());
}

#[test]
fn steps_per_epoch_goes_on_where_the_last_epoch_stopped() {
    let _alone = alone();
    let x: Vec<Vec<f32>> = (0..10).map(|i| vec![i as f32]).collect();
    let y = vec![vec![0.0f32]; 10];
    // The model records its inputs.
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let model = Noting { dense: Dense::new(1), seen: seen.clone(), trainer: Trainer::new() };
    model.compile(Sgd::new(0.0), MeanSquaredError::new(), CompileOptions::new()).unwrap();
    let options = || FitOptions::new().batch_size(3).shuffle(false).steps_per_epoch(3);
    model.fit((&x, &y), options().epochs(3)).unwrap();
    let want = [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7, 8], vec![9], vec![0, 1, 2], vec![3, 4, 5]];
    let got = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(got.len(), 9);
    assert_eq!(got[..6], want);
    // A shuffled epoch has each example once.
    model.fit((&x, &y), FitOptions::new().batch_size(4).epochs(2)).unwrap();
    let got = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(got.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 2, 4, 4, 2]);
    let orders = [got[..3].concat(), got[3..].concat()];
    assert_ne!(orders[0], orders[1]);
    for mut order in orders {
        order.sort_unstable();
        assert_eq!(order, (0..10).collect::<Vec<_>>());
    }
    // A split removes the last examples before shuffling.
    model.fit((&x, &y), FitOptions::new().validation_split(0.3)).unwrap();
    let mut got = std::mem::take(&mut *seen.lock().unwrap()).concat();
    got.sort_unstable();
    assert_eq!(got, (0..7).collect::<Vec<_>>());
}

#[derive(Trackable)]
struct Noting {
    dense: Dense,
    #[track(skip)]
    seen: std::sync::Arc<std::sync::Mutex<Vec<Vec<i32>>>>,
    trainer: Trainer,
}

impl Layer for Noting {
    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        if cx.training() {
            let now = x.to_vec::<f32>()?.into_iter().map(|v| v as i32).collect();
            self.seen.lock().unwrap().push(now);
        }
        self.dense.call(x, cx)
    }
}

impl Model for Noting {
    fn trainer(&self) -> &Trainer {
        &self.trainer
    }
}
