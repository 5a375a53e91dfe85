//! Fine-tuning: a ResNet18 with weights of others learns to tell patterns apart.
//!
//! `cargo example finetune -- --data FILE` takes its weights from a safetensors file with torchvision's names, which PyTorch writes:
//!
//! ```python
//! import torchvision, safetensors.torch
//! model = torchvision.models.resnet18(weights="DEFAULT")
//! safetensors.torch.save_file(model.state_dict(), "resnet18.safetensors")
//! ```
//!
//! Without a file the weights are random. First only a new classifier is trained, while all other layers are frozen, and then all
//! layers with small steps.

#[path = "support/flags.rs"]
mod flags;
#[path = "support/say.rs"]
mod say;

use std::process::ExitCode;
use std::sync::Arc;

use flags::Flags;
use say::{Result, say};
use wgrad as tf;
use wgrad::keras::applications::{
    ApplicationOptions, Arrangement, Pooling, Scaling, preprocess_input, resnet,
};
use wgrad::keras::layers::Dense;
use wgrad::keras::losses::SparseCategoricalCrossentropy;
use wgrad::keras::optimizers::Adam;
use wgrad::keras::{EvaluateOptions, Verbose};
use wgrad::prelude::*;

/// Pixels along each side of a picture.
const SIDE: usize = 32;
const BATCH: usize = 16;
/// Rows, columns, squares, and a disk.
const CLASSES: usize = 4;
/// Pictures with which accuracies are measured.
const TEST: usize = 64;

/// A number from 0 to 1 that depends on both arguments.
fn noise(seed: u64, at: u64) -> f32 {
    // SplitMix64.
    let mut x = seed
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(at.wrapping_mul(0xd1b5_4a32_d192_ed03));
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 40) as f32 / (1u64 << 24) as f32
}

/// Draws `count` pictures in two colours each, `[count,SIDE,SIDE,3]` as the network needs them, and says what they show.
fn draw(seed: u64, count: usize) -> Result<(Tensor, Tensor)> {
    let (mut pixels, mut classes) = (Vec::new(), Vec::new());
    for picture in 0..count {
        let (seed, class) = (seed + picture as u64, picture % CLASSES);
        let width = 3 + (noise(seed, 0) * 4.0) as usize;
        let radius = 6.0 + 6.0 * noise(seed, 1);
        for pixel in 0..SIDE * SIDE {
            let (y, x) = (pixel / SIDE, pixel % SIDE);
            let middle = |at: usize| at as f32 - SIDE as f32 / 2.0;
            let bright = match class {
                0 => (y / width).is_multiple_of(2),
                1 => (x / width).is_multiple_of(2),
                2 => (y / width + x / width).is_multiple_of(2),
                _ => middle(y).hypot(middle(x)) < radius,
            };
            for colour in 0..3 {
                let [dark, light] =
                    [100.0 * noise(seed, 2 + colour), 155.0 + 100.0 * noise(seed, 5 + colour)];
                let grain = 30.0 * noise(seed, 8 + 3 * pixel as u64 + colour);
                pixels.push((if bright { light } else { dark }) + grain - 15.0);
            }
        }
        classes.push(class as i32);
    }
    let x = Tensor::from_slice(&pixels, [count, SIDE, SIDE, 3])?;
    Ok((preprocess_input(&x, Scaling::Torch)?, Tensor::from_slice(&classes, [count])?))
}

fn main() -> ExitCode {
    let about = "Fine-tune a ResNet18 on drawn patterns; --data is a safetensors file with torchvision's names.\n\n\
                 Usage: finetune [OPTIONS]";
    say::exit_code(run(&Flags::parse(about, 40)))
}

fn run(flags: &Flags) -> Result<()> {
    tf::random::set_seed(flags.seed);
    say!("adapter   {}", Device::current()?.adapter());
    let options = ApplicationOptions::new()
        .include_top(false)
        .pooling(Pooling::Avg)
        .input_shape([SIDE, SIDE, 3])
        .arrangement(Arrangement::Torchvision);
    let options = match &flags.data {
        Some(file) => {
            say!("weights   {}", file.display());
            options.weights(file)
        }
        None => {
            say!("weights   random; --data names a file that PyTorch has written");
            options
        }
    };
    let base = Arc::new(resnet::resnet18(&options)?);
    let model = Sequential::new().add(base.clone()).add(Dense::new(CLASSES));
    model.build([BATCH, SIDE, SIDE, 3])?;

    base.set_trainable(false);
    let before = base.get_weights()?;
    train("a new classifier", &model, 1e-2, flags.seed, flags.steps)?;
    let same = base.get_weights()? == before;
    say!("frozen    the other layers are {}", if same { "as they were" } else { "changed" });
    base.set_trainable(true);
    train("all layers", &model, 1e-4, flags.seed, flags.steps.div_ceil(2))
}

/// Trains what is not frozen, and measures on new pictures.
fn train(what: &str, model: &Sequential, rate: f32, seed: u64, steps: usize) -> Result<()> {
    let loss = SparseCategoricalCrossentropy::new().from_logits(true);
    model.compile(Adam::new(rate), loss, CompileOptions::new().metrics(["accuracy"]))?;
    let (x, y) = draw(1_000 * seed, 8 * BATCH)?;
    let options = FitOptions::new().batch_size(BATCH).verbose(Verbose::Silent);
    model.fit((&x, &y), options.epochs(steps.div_ceil(8)))?;
    let (x, y) = draw(1_000_000 + 1_000 * seed, TEST)?;
    let quiet = EvaluateOptions::new().batch_size(BATCH).verbose(Verbose::Silent);
    let logs = model.evaluate((&x, &y), quiet)?;
    let accuracy = 100.0 * logs.get("accuracy").ok_or("the metric is in the logs")?;
    let trained: usize =
        model.trainable_variables().iter().map(|v| v.shape().iter().product::<usize>()).sum();
    say!("{what:18} {trained} parameters, {accuracy:.1} % of new pictures");
    Ok(())
}
