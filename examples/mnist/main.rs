//! Trains a network on MNIST, eagerly, on any adapter that WebGPU finds.
//!
//! `cargo xtask mnist` runs it. The MLP reaches about 95 % in one epoch (a few seconds on two processor cores without a GPU),
//! the CNN about 98 %. Without the real files it trains on drawn digits and prints this.

mod board;
mod flags;
mod out;
#[path = "../support/say.rs"]
mod say;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use board::Board;
use flags::{Flags, Model};
use indicatif::{ProgressBar, ProgressStyle};
use say::{Result, say};
use wgrad as tf;
use wgrad::data::mnist::{Images, Mnist, MnistOptions, Source};
use wgrad::keras::layers::{Conv2D, Dense, Dropout, Flatten, MaxPooling2D};
use wgrad::keras::metrics::{Mean, SparseCategoricalAccuracy};
use wgrad::keras::optimizers::Adam;
use wgrad::prelude::*;

fn main() -> ExitCode {
    match Flags::parse(std::env::args().skip(1)) {
        Ok(Some(flags)) => say::exit_code(run(&flags)),
        Ok(None) => say::exit_code(help()),
        Err(problem) => {
            eprintln!("error: {problem}\n\nFor more information, try '--help'.");
            ExitCode::from(2)
        }
    }
}

fn help() -> Result<()> {
    say!("{}", flags::HELP.trim_end());
    Ok(())
}

fn run(flags: &Flags) -> Result<()> {
    let started = Instant::now();
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();

    // 1. A device. This is optional: by default, the first tensor opens the fastest adapter.
    let mut options = tf::DeviceOptions::new();
    options.adapter = flags.adapter.clone();
    let device = Device::open(&options)?;
    Device::set_default(&device);
    say!("adapter   {}", device.adapter());

    // 2. Data: the real MNIST if available, else drawn digits.
    tf::random::set_seed(flags.seed);
    let mnist =
        Mnist::load(&MnistOptions::new().dir(flags.data.clone()).download(true).seed(flags.seed))?;
    say!("data      {}", mnist.source);

    // 3. A model. Layers are built at the first batch.
    let model = match flags.model {
        Model::Mlp => Sequential::new()
            .add(Flatten::new())
            .add(Dense::new(100).activation(Activation::Relu))
            .add(Dense::new(10)),
        Model::Cnn => Sequential::new()
            .add(Conv2D::new(32, [5, 5]).padding(tf::Padding::Same).activation(Activation::Relu))
            .add(MaxPooling2D::new([2, 2]))
            .add(Conv2D::new(64, [5, 5]).padding(tf::Padding::Same).activation(Activation::Relu))
            .add(MaxPooling2D::new([2, 2]))
            .add(Flatten::new())
            .add(Dense::new(1024).activation(Activation::Relu))
            .add(Dropout::new(0.4))
            .add(Dense::new(10)),
    };
    let optimizer = Adam::new(flags.lr);

    // 4. Train and evaluate.
    let board = Board::new(flags.log_dir.as_deref())?;
    let run = train(flags, started, &device, mnist.train, &model, &optimizer, &board)?;
    let test = evaluate(&model, &mnist.test, flags.test)?;
    board.end(run.losses.len(), &model, &mnist.test, &test)?;
    say!("test accuracy {:.2} % on {} images", 100.0 * test.accuracy, test.images);
    print_confusion(&test.confusion)?;

    std::fs::create_dir_all(&flags.out)?;
    let curve = flags.out.join("loss.svg");
    std::fs::write(&curve, out::loss_curve(&run.losses))?;
    let misread = flags.out.join("misread.svg");
    std::fs::write(&misread, out::misread_digits(&mnist.test, &test.misread))?;
    say!("pictures  {} and {}", curve.display(), misread.display());
    if let Some(folder) = &flags.log_dir {
        say!("look      tensorboard --logdir {}", folder.display());
    }
    if let Some(path) = &flags.json {
        std::fs::write(path, figures(flags, &mnist.source, &device, &run, test.accuracy))?;
        say!("figures   {}", path.display());
    }
    Ok(())
}

/// Scales the pixels to 0 to 1.
fn scaled((images, labels): (Tensor, Tensor)) -> tf::Result<(Tensor, Tensor)> {
    Ok((images.cast(DType::F32)? / 255.0, labels))
}

/// The measurements of a training run.
struct Run {
    losses: Vec<f32>,
    images_per_s: f64,
    first_step: Duration,
    step_median: Duration,
    kernels_per_step: f64,
    submits_per_step: f64,
    peak_device_bytes: u64,
}

/// One step: the loss and its gradients from a tape, then the update. Nothing here waits for the GPU.
fn train_step(
    model: &Sequential,
    optimizer: &Adam,
    images: &Tensor,
    labels: &Tensor,
) -> tf::Result<(Tensor, Tensor)> {
    let tape = GradientTape::new();
    let logits = model.call(images, TRAINING)?;
    let loss = tf::sparse_softmax_cross_entropy_with_logits(labels, &logits)?.reduce_mean(())?;
    let variables = model.trainable_variables();
    let gradients = tape.gradient(&loss, &variables)?;
    optimizer.apply_gradients(&gradients, &variables)?;
    Ok((loss, logits))
}

fn train(
    flags: &Flags,
    started: Instant,
    device: &Device,
    images: Images,
    model: &Sequential,
    optimizer: &Adam,
    board: &Board,
) -> Result<Run> {
    let count = images.len();
    let epoch = Dataset::from_tensor_slices(images)?.shuffle(count).batch(flags.batch);
    let per_epoch = count.div_ceil(flags.batch);
    let total = flags.steps.unwrap_or(per_epoch.saturating_mul(flags.epochs));
    // A thread shuffles and batches ahead; the pixels are uploaded as bytes.
    let batches = epoch.repeat(None).take(total).to_tensors().map(scaled);
    let bar = ProgressBar::new(total as u64);
    bar.set_style(ProgressStyle::with_template(
        "{bar:30} {pos}/{len} steps {elapsed}<{eta} {msg}",
    )?);
    let accuracy = SparseCategoricalAccuracy::new("accuracy");
    let mean_loss = Mean::new("loss");
    let (mut losses, mut step_times) = (Vec::new(), Vec::new());
    // The losses stay on the device until the progress bar is drawn: reading one would wait for its step.
    let mut waiting = Vec::new();
    let mut first_step = Duration::ZERO;
    let mut steady = (Instant::now(), device.stats(), 0);
    let mut step = 0;
    for batch in &batches {
        let begun = Instant::now();
        let (x, y) = batch?;
        let (loss, logits) = train_step(model, optimizer, &x, &y)?;
        mean_loss.update_state(&loss)?;
        accuracy.update_state(&y, &logits)?;
        step += 1;
        board.step(step, &loss, model)?;
        waiting.push(loss);
        if step == 1 {
            waiting[0].item::<f32>()?;
            first_step = started.elapsed();
            bar.println(format!("first step {:.2} s after the start", first_step.as_secs_f64()));
        }
        if step == 10.min(total) {
            // By now every pipeline is compiled and every plan is cached.
            device.synchronize()?;
            steady = (Instant::now(), device.stats(), step);
        }
        if step % 20 == 0 || step == total {
            // One read for everything that the bar shows.
            waiting.push(mean_loss.result()?);
            waiting.push(accuracy.result()?);
            let mut values = tf::stack(waiting.iter().collect::<Vec<_>>(), 0)?.to_vec::<f32>()?;
            waiting.clear();
            let (accuracy_now, loss_now) = (values.pop(), values.pop());
            losses.extend(values);
            board.accuracy(step, accuracy_now.unwrap_or(f32::NAN))?;
            let rate = (step - steady.2) as f64 / steady.0.elapsed().as_secs_f64();
            bar.set_message(format!(
                "loss {:.4} accuracy {:.3} {:.0} images/s",
                loss_now.unwrap_or(f32::NAN),
                accuracy_now.unwrap_or(f32::NAN),
                rate * flags.batch as f64
            ));
            mean_loss.reset_state()?;
            accuracy.reset_state()?;
        }
        step_times.push(begun.elapsed());
        bar.set_position(step as u64);
    }
    device.synchronize()?;
    let steps = (step - steady.2).max(1) as f64;
    let (elapsed, stats) = (steady.0.elapsed(), device.stats());
    bar.finish();
    step_times.sort_unstable();
    let run = Run {
        images_per_s: steps * flags.batch as f64 / elapsed.as_secs_f64(),
        first_step,
        step_median: step_times.get(step_times.len() / 2).copied().unwrap_or_default(),
        kernels_per_step: (stats.kernels - steady.1.kernels) as f64 / steps,
        submits_per_step: (stats.submits - steady.1.submits) as f64 / steps,
        peak_device_bytes: stats.peak_bytes,
        losses,
    };
    say!(
        "training  {step} steps, {:.1} steps/s, {:.0} images/s, {:.1} kernels and {:.2} submissions a step, peak {:.1} MB",
        steps / elapsed.as_secs_f64(),
        run.images_per_s,
        run.kernels_per_step,
        run.submits_per_step,
        run.peak_device_bytes as f64 / 1e6
    );
    Ok(run)
}

/// The results on images that the model has not seen.
struct Test {
    images: usize,
    accuracy: f64,
    /// Rows: the digit; columns: the prediction.
    confusion: [[usize; 10]; 10],
    /// Indices and predictions of misclassified digits.
    misread: Vec<(usize, usize)>,
}

fn evaluate(model: &Sequential, images: &Images, count: usize) -> Result<Test> {
    let count = count.min(images.len());
    let mut test = Test { images: count, accuracy: 0.0, confusion: [[0; 10]; 10], misread: vec![] };
    let mut at = 0;
    let batches = Dataset::from_tensor_slices(images.clone())?.take(count).batch(500);
    for batch in &batches.to_tensors().map(scaled) {
        let (x, _) = batch?;
        for guess in model.call(&x, INFERENCE)?.argmax(-1)?.to_vec::<i32>()? {
            let (label, guess) = (usize::from(images.labels[at]), guess as usize);
            test.confusion[label][guess] += 1;
            if label != guess {
                test.misread.push((at, guess));
            }
            at += 1;
        }
    }
    test.accuracy = 1.0 - test.misread.len() as f64 / count.max(1) as f64;
    Ok(test)
}

fn print_confusion(confusion: &[[usize; 10]; 10]) -> Result<()> {
    say!("confusion matrix (rows: the digit, columns: the prediction)");
    say!("      {}", (0..10).map(|d| format!("{d:5}")).collect::<String>());
    for (digit, row) in confusion.iter().enumerate() {
        say!("  {digit:3} {}", row.iter().map(|n| format!("{n:5}")).collect::<String>());
    }
    Ok(())
}

/// The measurements of the run as JSON.
fn figures(flags: &Flags, source: &Source, device: &Device, run: &Run, accuracy: f64) -> String {
    use out::{json_number as number, json_text as text};
    let model = match flags.model {
        Model::Mlp => "mlp",
        Model::Cnn => "cnn",
    };
    let losses: Vec<String> = run.losses.iter().map(|&loss| number(loss.into())).collect();
    out::json(&[
        ("model", text(model)),
        ("data", text(&source.to_string())),
        ("adapter", text(&device.adapter().name)),
        ("driver", text(&device.adapter().driver)),
        ("steps", run.losses.len().to_string()),
        ("losses", format!("[{}]", losses.join(", "))),
        ("test_accuracy", number(accuracy)),
        ("images_per_s", number(run.images_per_s)),
        ("first_step_ms", number(run.first_step.as_secs_f64() * 1e3)),
        ("step_ms_median", number(run.step_median.as_secs_f64() * 1e3)),
        ("kernels_per_step", number(run.kernels_per_step)),
        ("submits_per_step", number(run.submits_per_step)),
        ("peak_device_bytes", run.peak_device_bytes.to_string()),
    ])
}
