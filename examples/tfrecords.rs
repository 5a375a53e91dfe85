//! MNIST written as TFRecord files, and a small network trained from them.
//!
//! `cargo example tfrecords` runs it. Without the real files it writes drawn digits and prints this. At the end it compares a
//! training step from the files with one from memory.

#[path = "support/flags.rs"]
mod flags;
#[path = "support/say.rs"]
mod say;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use flags::Flags;
use say::{Result, say};
use wgrad as tf;
use wgrad::data::TfRecordDataset;
use wgrad::data::example::{Example, Feature, FixedLenFeature, parse_single_example};
use wgrad::data::mnist::{Mnist, MnistOptions};
use wgrad::data::tfrecord::TfRecordWriter;
use wgrad::keras::layers::{Conv2D, Dense, Flatten, MaxPooling2D};
use wgrad::keras::losses::SparseCategoricalCrossentropy;
use wgrad::keras::metrics::{Mean, SparseCategoricalAccuracy};
use wgrad::keras::optimizers::Adam;
use wgrad::ndarray::Array3;
use wgrad::prelude::*;

const BATCH: usize = 50;
const SHARDS: usize = 4;
const TEST: usize = 2_000;

/// An image and its label.
type Digit = (Array3<u8>, i32);

fn main() -> ExitCode {
    let about = "Write MNIST as TFRecord files, and train from them.\n\nUsage: tfrecords [OPTIONS]";
    say::exit_code(run(&Flags::parse(about, 200)))
}

fn run(flags: &Flags) -> Result<()> {
    tf::random::set_seed(flags.seed);
    say!("adapter   {}", Device::current()?.adapter());
    let options = MnistOptions::new().dir(flags.data.clone()).download(true).seed(flags.seed);
    let mnist = Mnist::load(&options)?;
    say!("data      {}", mnist.source);

    let folder = std::env::temp_dir().join(format!("wgrad-tfrecords-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let train = Dataset::from_tensor_slices(mnist.train)?;
    let test = Dataset::from_tensor_slices(mnist.test)?.take(TEST);
    let result = write(&train, "train", SHARDS, &folder)
        .and_then(|_| write(&test, "test", 1, &folder))
        .and_then(|_| train_from(&folder, &train, flags));
    std::fs::remove_dir_all(&folder)?;
    result
}

/// Distributes digits over `shards` files.
fn write(digits: &Dataset<Digit>, name: &str, shards: usize, folder: &Path) -> Result<()> {
    let path = |shard| folder.join(format!("{name}-{shard:05}-of-{shards:05}.tfrecord"));
    let files: Vec<PathBuf> = (0..shards).map(path).collect();
    let mut writers = files.iter().map(TfRecordWriter::create).collect::<tf::Result<Vec<_>>>()?;
    let mut count = 0;
    for digit in digits {
        let (image, label) = digit?;
        let pixels: Vec<u8> = image.into_iter().collect();
        let features = [("image_raw", Feature::from(pixels)), ("label", Feature::from(label))];
        writers[count % shards].write(Example::new(features).serialize())?;
        count += 1;
    }
    for writer in writers {
        writer.close()?;
    }
    let sizes = files.iter().map(|file| Ok(std::fs::metadata(file)?.len()));
    let bytes = sizes.sum::<Result<u64>>()?;
    say!("{name:8}  {count} records in {shards} files, {:.1} MB", bytes as f64 / 1e6);
    Ok(())
}

/// The digit in a record.
fn decode(record: Vec<u8>) -> tf::Result<Digit> {
    let (pixels, label) = parse_single_example(
        &record,
        &(
            ("image_raw", FixedLenFeature::<Vec<u8>>::scalar()),
            ("label", FixedLenFeature::<i64>::scalar()),
        ),
    )?;
    let image = Array3::from_shape_vec((28, 28, 1), pixels);
    let image = image.map_err(|error| tf::Error::Data(format!("image_raw: {error}").into()))?;
    Ok((image, label as i32))
}

/// The digits of all matching files.
fn read(folder: &Path, pattern: &str) -> tf::Result<Dataset<Digit>> {
    let files = Dataset::list_files(folder.join(pattern).to_string_lossy())?;
    Ok(TfRecordDataset::new(files).num_parallel_reads(SHARDS).build()?.map(decode))
}

/// Endless shuffled batches, on the device.
fn batches(digits: &Dataset<Digit>) -> tf::Result<Dataset<(Tensor, Tensor)>> {
    Ok(digits.shuffle(1_000).repeat(None).batch(BATCH).to_tensors())
}

struct Classifier {
    network: Sequential,
    optimizer: Adam,
    loss: SparseCategoricalCrossentropy,
}

impl Classifier {
    fn logits(&self, images: &Tensor, context: tf::keras::Context<'_>) -> tf::Result<Tensor> {
        self.network.call(&(images.cast(DType::F32)? / 255.0), context)
    }

    fn step(&self, batch: (Tensor, Tensor)) -> tf::Result<(Tensor, Tensor, Tensor)> {
        let (images, labels) = batch;
        let tape = GradientTape::new();
        let logits = self.logits(&images, TRAINING)?;
        let loss = self.loss.call(&labels, &logits)?;
        let variables = self.network.trainable_variables();
        let gradients = tape.gradient(&loss, &variables)?;
        self.optimizer.apply_gradients(&gradients, &variables)?;
        Ok((loss, labels, logits))
    }
}

fn train_from(folder: &Path, in_memory: &Dataset<Digit>, flags: &Flags) -> Result<()> {
    let classifier = Classifier {
        network: Sequential::new()
            .add(Conv2D::new(8, [5, 5]).activation(Activation::Relu))
            .add(MaxPooling2D::new([2, 2]))
            .add(Flatten::new())
            .add(Dense::new(64).activation(Activation::Relu))
            .add(Dense::new(10)),
        optimizer: Adam::new(1e-3),
        loss: SparseCategoricalCrossentropy::new().from_logits(true),
    };
    let (mean_loss, accuracy) = (Mean::new("loss"), SparseCategoricalAccuracy::new("accuracy"));
    let from_files = batches(&read(folder, "train-*")?)?;
    for (step, batch) in (1..=flags.steps).zip(&from_files) {
        let (loss, labels, logits) = classifier.step(batch?)?;
        mean_loss.update_state(&loss)?;
        accuracy.update_state(&labels, &logits)?;
        if step % 10 == 0 {
            say!(
                "step {step:5}  loss {:.4}  accuracy {:.3}",
                mean_loss.result()?.item::<f32>()?,
                accuracy.result()?.item::<f32>()?
            );
            mean_loss.reset_state()?;
            accuracy.reset_state()?;
        }
    }

    accuracy.reset_state()?;
    for batch in &read(folder, "test-*")?.batch(500).to_tensors() {
        let (images, labels) = batch?;
        accuracy.update_state(&labels, &classifier.logits(&images, INFERENCE)?)?;
    }
    let accuracy = 100.0 * accuracy.result()?.item::<f32>()?;
    say!("after {} steps: {accuracy:.2} % of {TEST} test images", flags.steps);

    // Alternately, so that other load on the machine slows down both.
    let from_memory = batches(in_memory)?;
    let (mut files, mut memory) = (from_files.iter(), from_memory.iter());
    let steps = flags.steps.div_ceil(4);
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..5 {
        for (times, batches) in times.iter_mut().zip([&mut files, &mut memory]) {
            let started = Instant::now();
            let mut last = None;
            for batch in batches.take(steps) {
                last = Some(classifier.step(batch?)?.0);
            }
            last.ok_or("there are batches")?.item::<f32>()?;
            times.push(started.elapsed().as_secs_f64() * 1e3 / steps as f64);
        }
    }
    // The first iteration fills buffers.
    let [files, memory] = times.map(|times| times[1..].iter().copied().fold(f64::MAX, f64::min));
    say!("a step    {files:.2} ms from files, {memory:.2} ms from memory");
    Ok(())
}
