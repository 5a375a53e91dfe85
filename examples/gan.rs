//! A generative adversarial network on MNIST: two networks, two optimizers, two tapes.
//!
//! `cargo example gan` runs it and writes pictures of the generator's images. A generator makes images from random numbers, a
//! discriminator distinguishes them from real ones, and each learns from the other (Goodfellow et al. 2014; the networks are
//! those of TensorFlow's DCGAN tutorial, half as wide).

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
use wgrad::keras::layers::{
    BatchNormalization, Conv2D, Conv2DTranspose, Dense, Dropout, Flatten, LeakyRelu, Reshape,
};
use wgrad::keras::losses::BinaryCrossentropy;
use wgrad::keras::metrics::Mean;
use wgrad::keras::optimizers::Adam;
use wgrad::prelude::*;

const NOISE: usize = 100;
const BATCH: usize = 32;

fn generator() -> Sequential {
    let up = |filters, stride| {
        let up = Conv2DTranspose::new(filters, [5, 5]).strides([stride, stride]).use_bias(false);
        up.padding(tf::Padding::Same)
    };
    Sequential::new()
        .add(Dense::new(7 * 7 * 64).use_bias(false))
        .add(BatchNormalization::new())
        .add(LeakyRelu::new())
        .add(Reshape::new([7, 7, 64]))
        .add(up(32, 1))
        .add(BatchNormalization::new())
        .add(LeakyRelu::new())
        .add(up(16, 2))
        .add(BatchNormalization::new())
        .add(LeakyRelu::new())
        .add(up(1, 2).activation(Activation::Tanh))
}

fn discriminator() -> Sequential {
    let down = |filters| Conv2D::new(filters, [5, 5]).strides([2, 2]).padding(tf::Padding::Same);
    Sequential::new()
        .add(down(32))
        .add(LeakyRelu::new())
        .add(Dropout::new(0.3))
        .add(down(64))
        .add(LeakyRelu::new())
        .add(Dropout::new(0.3))
        .add(Flatten::new())
        .add(Dense::new(1))
}

fn main() -> ExitCode {
    let about = "Train a GAN on MNIST.\n\nUsage: gan [OPTIONS]";
    say::exit_code(run(&Flags::parse(about, 300)))
}

fn run(flags: &Flags) -> Result<()> {
    tf::random::set_seed(flags.seed);
    say!("adapter   {}", Device::current()?.adapter());
    let options = MnistOptions::new().dir(flags.data.clone()).download(true).seed(flags.seed);
    let mnist = Mnist::load(&options)?;
    say!("data      {}", mnist.source);

    let (generator, discriminator) = (generator(), discriminator());
    let (generator_optimizer, discriminator_optimizer) = (Adam::new(1e-4), Adam::new(1e-4));
    let cross_entropy = BinaryCrossentropy::new().from_logits(true);
    let (generator_loss, discriminator_loss) = (Mean::new("generator"), Mean::new("discriminator"));
    // Always the same noise, to show how its images become digits.
    let shown = tf::random::normal([16, NOISE])?;

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
        // Scaled to -1 to 1, the range of the generator's tanh.
        .map(|images| Ok(images.cast(DType::F32)? / 127.5 - 1.0));
    for (step, batch) in (1..).zip(&batches) {
        let real = batch?;
        let rows = real.shape()[0];
        let noise = tf::random::normal([rows, NOISE])?;

        // Both tapes record both networks; each computes the gradients of one.
        let generator_tape = GradientTape::new();
        let discriminator_tape = GradientTape::new();
        let fake = generator.call(&noise, TRAINING)?;
        let says_of_real = discriminator.call(&real, TRAINING)?;
        let says_of_fake = discriminator.call(&fake, TRAINING)?;
        let (yes, no) = (says_of_fake.ones_like()?, says_of_fake.zeros_like()?);
        let fooled = cross_entropy.call(&yes, &says_of_fake)?;
        let loss = cross_entropy
            .call(&says_of_real.ones_like()?, &says_of_real)?
            .add(cross_entropy.call(&no, &says_of_fake)?)?;
        discriminator_optimizer.minimize(&loss, discriminator_tape, &discriminator)?;
        generator_optimizer.minimize(&fooled, generator_tape, &generator)?;

        generator_loss.update_state(&fooled)?;
        discriminator_loss.update_state(&loss)?;
        if step % shown_every == 0 || step == flags.steps {
            say!(
                "step {step:5}  generator {:.4}  discriminator {:.4}",
                generator_loss.result()?.item::<f32>()?,
                discriminator_loss.result()?.item::<f32>()?
            );
            generator_loss.reset_state()?;
            discriminator_loss.reset_state()?;
            let path = flags.out.join(format!("gan-{step:05}.png"));
            let images = generator.call(&shown, INFERENCE)? * 0.5 + 0.5;
            picture::write_images(&path, &images, 4)?;
            say!("picture   {}", path.display());
        }
        settled.note(step);
    }
    if let Some(report) = settled.report() {
        say!("{report}");
    }
    Ok(())
}
