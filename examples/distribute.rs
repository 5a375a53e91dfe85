//! A network trained on two devices at once, by hand and by `fit`: drawn digits, in a strategy's replicas. Where there is one
//! adapter, two virtual devices are made of it.

use wgrad as tf;
use wgrad::config::{self, LogicalDeviceConfiguration};
use wgrad::data::drawn_digits::draw_digits;
use wgrad::distribute::{MirroredStrategy, ReduceOp};
use wgrad::keras::layers::{Dense, Flatten};
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{
    Activation, CompileOptions, EvaluateOptions, FitOptions, Layer, Model, Sequential, TRAINING,
};
use wgrad::{Result, Tensor};

const BATCH: usize = 64;

fn network() -> Sequential {
    Sequential::new()
        .add(Flatten::new())
        .add(Dense::new(64).activation(Activation::Relu))
        .add(Dense::new(10))
}

fn main() -> Result<()> {
    let physical = config::list_physical_devices(None)?;
    let gpus = config::list_physical_devices("GPU")?;
    if let (true, Some(only)) = (gpus.len() < 2, gpus.first().or(physical.first())) {
        let half = LogicalDeviceConfiguration::new();
        config::set_logical_device_configuration(only, &[half.clone(), half])?;
    }
    let strategy = MirroredStrategy::new()?;
    println!("Number of devices: {}", strategy.num_replicas_in_sync());

    tf::random::set_seed(1);
    let digits = draw_digits(2048, 1);
    let places: Vec<usize> = (0..2048).collect();
    let (model, adam) = strategy.scope(|| (network(), Adam::new(1e-3)));
    for (step, places) in places.chunks(BATCH).enumerate() {
        let (images, labels) = digits.tensors(places)?;
        let (x, y) = (strategy.split(&images)?, strategy.split(&labels)?);
        let losses = strategy.run(
            |(x, y): (Tensor, Tensor)| {
                let tape = tf::GradientTape::new();
                let logits = model.call(&x, TRAINING)?;
                let loss = tf::sparse_softmax_cross_entropy_with_logits(&y, &logits)?;
                // Of the whole batch: the gradients of the replicas are added.
                let loss = loss.reduce_sum(())?.divide(BATCH as f32)?;
                adam.minimize(&loss, tape, &model)?;
                Ok(loss)
            },
            (&x, &y),
        )?;
        if step % 8 == 0 {
            let loss = strategy.reduce(ReduceOp::Sum, &losses, None)?;
            println!("step {step:2}: loss {:.3}", loss.item::<f32>()?);
        }
    }

    // The same by `fit`: the model knows the strategy in whose scope it was made.
    let model = strategy.scope(network);
    let loss = tf::keras::losses::SparseCategoricalCrossentropy::new().from_logits(true);
    model.compile(Adam::new(1e-3), loss, CompileOptions::new().metrics(["accuracy"]))?;
    let (images, labels) = digits.tensors(&places)?;
    let options = FitOptions::new().batch_size(BATCH).epochs(8).verbose(2);
    model.fit((&images, &labels), options)?;
    let logs = model.evaluate((&images, &labels), EvaluateOptions::new().verbose(0))?;
    println!("accuracy {:.3}", logs.get("accuracy").unwrap_or(0.0));
    Ok(())
}
