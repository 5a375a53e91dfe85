//! A variational autoencoder on MNIST (Kingma and Welling 2014), trained with a tape.
//!
//! `cargo example vae` runs it. The encoder computes the mean and the logarithm of the variance of two numbers for each image;
//! the decoder draws an image from two numbers. The picture shows its images across the plane.

#[path = "support/flags.rs"]
mod flags;
#[path = "support/picture.rs"]
mod picture;
#[path = "support/say.rs"]
mod say;
#[path = "support/settled.rs"]
mod settled;

use std::process::ExitCode;

use flags::Flags;
use say::{Result, say};
use settled::Settled;
use wgrad as tf;
use wgrad::data::mnist::{Mnist, MnistOptions};
use wgrad::keras::layers::{Conv2D, Conv2DTranspose, Dense, Flatten, Reshape};
use wgrad::keras::metrics::Mean;
use wgrad::keras::optimizers::Adam;
use wgrad::prelude::*;

/// Numbers that describe an image.
const LATENT: usize = 2;
const BATCH: usize = 64;

#[derive(Trackable)]
struct Vae {
    encoder: Sequential,
    decoder: Sequential,
}

/// The losses of a step: reconstruction, distance from the normal distribution, and their sum.
struct Losses {
    reconstruction: Tensor,
    kl: Tensor,
    total: Tensor,
}

impl Vae {
    fn new() -> Self {
        let same = tf::Padding::Same;
        let down = |filters| {
            let conv = Conv2D::new(filters, [3, 3]).strides([2, 2]).padding(same);
            conv.activation(Activation::Relu)
        };
        let up = |filters| {
            let conv = Conv2DTranspose::new(filters, [3, 3]).strides([2, 2]).padding(same);
            conv.activation(Activation::Relu)
        };
        let encoder = Sequential::new()
            .add(down(32))
            .add(down(64))
            .add(Flatten::new())
            .add(Dense::new(16).activation(Activation::Relu))
            .add_named("z", Dense::new(2 * LATENT));
        let decoder = Sequential::new()
            .add(Dense::new(7 * 7 * 64).activation(Activation::Relu))
            .add(Reshape::new([7, 7, 64]))
            .add(up(64))
            .add(up(32))
            .add(Conv2DTranspose::new(1, [3, 3]).padding(same));
        Vae { encoder, decoder }
    }

    fn losses(&self, images: &Tensor) -> tf::Result<Losses> {
        let z = self.encoder.call(images, TRAINING)?.split(2, -1)?;
        let (mean, log_variance) = (&z[0], &z[1]);
        // The noise is an input, so that gradients flow through the mean and the deviation.
        let noise = tf::random::normal(mean.shape())?;
        let point = mean.add((log_variance * 0.5).exp()?.multiply(noise)?)?;
        let logits = self.decoder.call(&point, TRAINING)?;
        let wrong = tf::sigmoid_cross_entropy_with_logits(images, &logits)?;
        let reconstruction = wrong.reduce_sum([1, 2, 3])?.reduce_mean(())?;
        let kl = (log_variance.exp()? + mean.square()? - 1.0 - log_variance) * 0.5;
        let kl = kl.reduce_sum(1)?.reduce_mean(())?;
        let total = reconstruction.add(&kl)?;
        Ok(Losses { reconstruction, kl, total })
    }
}

fn main() -> ExitCode {
    let about = "Train a variational autoencoder on MNIST.\n\nUsage: vae [OPTIONS]";
    say::exit_code(run(&Flags::parse(about, 1000)))
}

fn run(flags: &Flags) -> Result<()> {
    tf::random::set_seed(flags.seed);
    say!("adapter   {}", Device::current()?.adapter());
    let options = MnistOptions::new().dir(flags.data.clone()).download(true).seed(flags.seed);
    let mnist = Mnist::load(&options)?;
    say!("data      {}", mnist.source);

    let vae = Vae::new();
    let optimizer = Adam::new(1e-3);
    let means = [Mean::new("reconstruction"), Mean::new("kl"), Mean::new("loss")];
    let mut settled = Settled::new(flags.steps)?;
    // Eight pictures in a short training.
    let shown_every = (flags.steps / 8).clamp(1, 50);
    let count = mnist.train.len();
    let batches = Dataset::from_tensor_slices(mnist.train)?
        .map(|(image, _)| image)
        .shuffle(count)
        .batch(BATCH)
        .repeat(None)
        .take(flags.steps)
        .to_tensors()
        .map(|images| Ok(images.cast(DType::F32)? / 255.0));
    for (step, batch) in (1..).zip(&batches) {
        let images = batch?;
        let tape = GradientTape::new();
        let losses = vae.losses(&images)?;
        optimizer.minimize(&losses.total, tape, &vae)?;
        for (mean, value) in means.iter().zip([&losses.reconstruction, &losses.kl, &losses.total]) {
            mean.update_state(value)?;
        }
        if step % shown_every == 0 || step == flags.steps {
            let mut line = format!("step {step:5}");
            for mean in &means {
                line += &format!("  {} {:.2}", mean.name(), mean.result()?.item::<f32>()?);
                mean.reset_state()?;
            }
            say!("{line}");
        }
        settled.note(step);
    }

    if let Some(report) = settled.report() {
        say!("{report}");
    }
    // A grid of points from -2 to 2, each drawn.
    const SIDE: usize = 12;
    let at = |i: usize| -2.0 + 4.0 * i as f32 / (SIDE - 1) as f32;
    let points: Vec<f32> = (0..SIDE * SIDE).flat_map(|i| [at(i % SIDE), at(i / SIDE)]).collect();
    let points = Tensor::from_slice(&points, [SIDE * SIDE, LATENT])?;
    let path = flags.out.join("vae.png");
    picture::write_images(&path, &vae.decoder.call(&points, INFERENCE)?.sigmoid()?, SIDE)?;
    say!("picture   {}", path.display());
    Ok(())
}
