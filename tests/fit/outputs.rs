//! Several outputs: losses, weights and metrics of each.

use ndarray::Array2;
use wgrad::keras::layers::Dense;
use wgrad::keras::losses::MeanSquaredError;
use wgrad::keras::metrics::Metric;
use wgrad::keras::{
    CompileOptions, Context, EvaluateOptions, FitOptions, Initializer, Layer, Model,
    PredictOptions, Trainer,
};
use wgrad::{Result, Tensor, Trackable};

use super::{alone, data, near, series};

/// `(a + b, a - b)`, each through a layer.
#[derive(Trackable)]
struct TwoHeads {
    sum: Dense,
    difference: Dense,
    trainer: Trainer,
}

impl Layer<[Tensor; 2], (Tensor, Tensor)> for TwoHeads {
    fn call(&self, [a, b]: &[Tensor; 2], cx: Context<'_>) -> Result<(Tensor, Tensor)> {
        Ok((self.sum.call(&a.add(b)?, cx)?, self.difference.call(&a.subtract(b)?, cx)?))
    }
}

impl Model<[Tensor; 2], (Tensor, Tensor)> for TwoHeads {
    fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    fn output_names(&self) -> Vec<String> {
        vec!["sum".into(), "difference".into()]
    }
}

fn two_heads() -> TwoHeads {
    let ones = || Dense::new(1).kernel_initializer(Initializer::Ones);
    TwoHeads { sum: ones(), difference: ones(), trainer: Trainer::new() }
}

/// The mean squares over the two outputs, computed manually: weights are ones, so the outputs are
/// row sums.
fn of_rows(a: &Array2<f32>, b: &Array2<f32>, sign: f32, y: f32, weights: &[f32]) -> f64 {
    let rows = a.rows().into_iter().zip(b.rows()).zip(weights);
    let one = rows.map(|((a, b), w)| w * (a.sum() + sign * b.sum() - y).powi(2)).sum::<f32>();
    f64::from(one) / weights.len() as f64
}

#[test]
fn outputs_have_losses_weights_and_metrics_each() {
    let _alone = alone();
    let (a, b) = (data(20).0, data(20).0.mapv(|v| 0.5 - v));
    let y = [Array2::from_elem((20, 1), 0.5f32), Array2::from_elem((20, 1), -1.0f32)];
    let ones = vec![1.0; 20];
    let (sum, difference) = (of_rows(&a, &b, 1.0, 0.5, &ones), of_rows(&a, &b, -1.0, -1.0, &ones));
    let by_place = two_heads();
    let options = CompileOptions::new().loss_weights([2.0, 0.5]);
    by_place.compile("sgd", (MeanSquaredError::new(), "mse"), options).unwrap();
    let logs = by_place.evaluate(((&a, &b), (&y[0], &y[1])), EvaluateOptions::new()).unwrap();
    near(logs.get("sum_loss").unwrap(), sum, "sum_loss");
    near(logs.get("difference_loss").unwrap(), difference, "difference_loss");
    near(logs.get("loss").unwrap(), 2.0 * sum + 0.5 * difference, "loss");

    let by_name = two_heads();
    let options = CompileOptions::new()
        .loss_weight_of("difference", 0.5)
        .metrics_of("difference", squares("far"))
        .weighted_metrics_of(0, squares("far"));
    by_name.compile("sgd", [("difference", "mse"), ("sum", "mse")], options).unwrap();
    let weights: Vec<f32> = (0..20).map(|i| (i % 4) as f32).collect();
    let logs = by_name
        .evaluate(
            ((&a, &b), (&y[0], &y[1]), (&weights, &ones)),
            EvaluateOptions::new().batch_size(6),
        )
        .unwrap();
    let weighted = of_rows(&a, &b, 1.0, 0.5, &weights);
    near(logs.get("sum_loss").unwrap(), weighted, "sum_loss with weights");
    near(logs.get("loss").unwrap(), weighted + 0.5 * difference, "loss with weights");
    near(logs.get("difference_far").unwrap(), difference, "difference_far");
    // Weights of 0, 1, 2, 3 have the mean 1.5.
    near(logs.get("sum_far").unwrap(), weighted / 1.5, "sum_far");

    // Only one of the outputs has a loss, and the data has only its target.
    let one = two_heads();
    one.compile("sgd", [("difference", "mse")], CompileOptions::new()).unwrap();
    let logs = one.evaluate(((&a, &b), &y[1]), EvaluateOptions::new()).unwrap();
    near(logs.get("loss").unwrap(), difference, "loss of one");
    assert_eq!(logs.get("difference_loss"), None);

    let history = by_place.fit(((&a, &b), (&y[0], &y[1])), FitOptions::new().epochs(5)).unwrap();
    let losses = series(&history, "loss");
    assert!(losses[4] < losses[0], "{losses:?}");
    let outputs =
        pollster::block_on(by_place.predict_all_async(((&a, &b),), PredictOptions::new())).unwrap();
    assert_eq!((outputs.len(), outputs[1].shape()), (2, &[20, 1][..]));
}

/// A custom metric: the weighted mean of squared differences.
#[derive(Trackable)]
struct Squares(wgrad::keras::metrics::Mean);

fn squares(name: &str) -> Squares {
    Squares(wgrad::keras::metrics::Mean::new(name))
}

impl Metric for Squares {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn update(&self, y_true: &Tensor, y_pred: &Tensor, weight: Option<&Tensor>) -> Result<()> {
        let squares = y_pred.squared_difference(y_true)?.squeeze([-1])?;
        self.0.update(&squares, weight)
    }

    fn result(&self) -> Result<Tensor> {
        self.0.result()
    }

    fn reset_state(&self) -> Result<()> {
        self.0.reset_state()
    }
}
