//! Additions to a loss: the layers' own losses, and regularizers.

use ndarray::Array2;
use wgrad as tf;
use wgrad::keras::layers::Dense;
use wgrad::keras::optimizers::Sgd;
use wgrad::keras::{
    CompileOptions, Context, EvaluateOptions, FitOptions, Layer, Model, PredictOptions, Sequential,
};
use wgrad::{Result, Tensor, Trackable};

use super::{alone, data, near};

/// Adds the mean of its input's squares to the loss.
#[derive(Trackable)]
struct Penalty;

impl Layer for Penalty {
    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        cx.add_loss(x.square()?.reduce_mean(())?)?;
        Ok(x.clone())
    }
}

#[test]
fn losses_of_layers_and_regularizers_count() {
    let _alone = alone();
    let (x, _) = data(32);
    let y = Array2::<f32>::zeros((32, 2));
    let model = |regularized: bool| {
        tf::random::set_seed(2);
        let mut dense = Dense::new(2);
        if regularized {
            dense = dense.kernel_regularizer(wgrad::keras::regularizers::Regularizer::l2(0.1));
        }
        let model = Sequential::new().add(Penalty).add(dense);
        model.build([1, 6]).unwrap();
        model.compile(Sgd::new(0.1), "mse", CompileOptions::new()).unwrap();
        model
    };
    let (plain, regularized) = (model(false), model(true));
    let loss = |model: &Sequential| {
        model.evaluate((&x, &y), EvaluateOptions::new()).unwrap().get("loss").unwrap()
    };
    let before = (loss(&plain), loss(&regularized));
    let kernel = &plain.get_weights().unwrap()[0];
    near(before.1 - before.0, 0.1 * f64::from(kernel.mapv(|w| w * w).sum()), "the regularizer");
    let predicted = plain.predict(&x, PredictOptions::new()).unwrap().to_vec::<f32>().unwrap();
    let mse = predicted.iter().map(|p| f64::from(p * p)).sum::<f64>() / predicted.len() as f64;
    let penalty = x.iter().map(|x| f64::from(x * x)).sum::<f64>() / x.len() as f64;
    near(before.0, mse + penalty, "the layer's loss");
    for model in [&plain, &regularized] {
        model.fit((&x, &y), FitOptions::new().shuffle(false)).unwrap();
    }
    let sizes = [&plain, &regularized].map(|m| m.get_weights().unwrap()[0].mapv(|w| w * w).sum());
    assert!(sizes[1] < sizes[0], "{sizes:?}");
}
