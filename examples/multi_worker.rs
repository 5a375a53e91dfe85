//! A network trained in several processes that `mpirun` starts: `cargo example multi_worker` runs one, and
//! `mpirun -n 2 target/release/multi_worker` two. The training continues from its last backup if it was interrupted.

use wgrad as tf;
use wgrad::data::drawn_digits::draw_digits;
use wgrad::distribute::MultiWorkerMirroredStrategy;
use wgrad::keras::callbacks::{BackupAndRestore, BackupOptions};
use wgrad::keras::layers::{Dense, Flatten};
use wgrad::keras::losses::SparseCategoricalCrossentropy;
use wgrad::keras::optimizers::Adam;
use wgrad::keras::{Activation, CompileOptions, EvaluateOptions, FitOptions, Model, Sequential};

const BATCH: usize = 64;

fn network() -> Sequential {
    Sequential::new()
        .add(Flatten::new())
        .add(Dense::new(64).activation(Activation::Relu))
        .add(Dense::new(10))
}

fn main() -> tf::Result<()> {
    // Equal in all processes, like the rest of the program.
    tf::random::set_seed(1);
    let strategy = MultiWorkerMirroredStrategy::new()?;
    let model = strategy.scope(network);
    if strategy.is_chief() {
        println!("{} processes, {strategy:?}", strategy.num_workers());
    }
    let loss = SparseCategoricalCrossentropy::new().from_logits(true);
    model.compile(Adam::new(1e-3), loss, CompileOptions::new().metrics(["accuracy"]))?;
    let digits = draw_digits(2048, 1);
    let (images, labels) = digits.tensors(&(0..2048).collect::<Vec<_>>())?;
    // A folder that all processes share.
    let folder = std::env::temp_dir().join("wgrad-multi-worker");
    let backup = BackupAndRestore::new(folder, BackupOptions::new());
    let options = FitOptions::new().batch_size(BATCH).epochs(8).verbose(2).callback(backup);
    model.fit((&images, &labels), options)?;
    let logs = model.evaluate((&images, &labels), EvaluateOptions::new().verbose(0))?;
    if strategy.is_chief() {
        println!("accuracy {:.3}", logs.get("accuracy").unwrap_or(0.0));
    }
    Ok(())
}
