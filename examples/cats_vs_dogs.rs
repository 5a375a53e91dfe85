//! Cats and dogs: photographs in folders, a convolutional network, `compile`, `fit`, `evaluate`.
//!
//! `cargo example cats_vs_dogs -- --data FOLDER` trains on the photographs in `FOLDER/train/cats`, `train/dogs`, `valid/cats`
//! and `valid/dogs`. Without a folder it draws discs for cats and stripes for dogs. It writes pictures of a batch and of
//! misclassified photographs to `out/`.

#[path = "support/picture.rs"]
mod picture;
#[path = "support/say.rs"]
mod say;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lexopt::prelude::*;
use say::{Result, say};
use wgrad as tf;
use wgrad::data::{AUTOTUNE, MapOptions, ShuffleOptions};
use wgrad::keras::layers::{Conv2D, Dense, Flatten, MaxPooling2D};
use wgrad::keras::losses::SparseCategoricalCrossentropy;
use wgrad::keras::optimizers::Adam;
use wgrad::keras::{EvaluateOptions, PredictOptions};
use wgrad::ndarray::{Array3, ArrayD, Axis};
use wgrad::prelude::*;
use wgrad::{image, io};

struct Flags {
    data: Option<PathBuf>,
    size: usize,
    epochs: usize,
    batch: usize,
    seed: u64,
    out: PathBuf,
}

const USAGE: &str = "Train a network to distinguish cats from dogs.

Usage: cats_vs_dogs [OPTIONS]

Options:
  --data <DATA>      Folder with train/cats, train/dogs, valid/cats, valid/dogs; drawings without
  --size <SIZE>      Height and width of the pictures [default: 256]
  --epochs <EPOCHS>  Passes through the photographs [default: 2]
  --batch <BATCH>    Photographs in a step [default: 32]
  --seed <SEED>      Seed of the random numbers [default: 1]
  --out <OUT>        Folder for pictures [default: out]";

/// `Err(None)` if help was requested.
fn flags() -> std::result::Result<Flags, Option<lexopt::Error>> {
    let mut flags =
        Flags { data: None, size: 256, epochs: 2, batch: 32, seed: 1, out: "out".into() };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("data") => flags.data = Some(parser.value()?.into()),
            Long("size") => flags.size = parser.value()?.parse()?,
            Long("epochs") => flags.epochs = parser.value()?.parse()?,
            Long("batch") => flags.batch = parser.value()?.parse()?,
            Long("seed") => flags.seed = parser.value()?.parse()?,
            Long("out") => flags.out = parser.value()?.into(),
            Short('h') | Long("help") => return Err(None),
            other => return Err(Some(other.unexpected())),
        }
    }
    if flags.size < 16 || flags.epochs == 0 || flags.batch == 0 {
        let words = "--size must be 16 or more, --epochs and --batch 1 or more";
        return Err(Some(words.into()));
    }
    Ok(flags)
}

fn main() -> ExitCode {
    match flags() {
        Ok(flags) => say::exit_code(run(&flags)),
        Err(None) => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        Err(Some(problem)) => {
            eprintln!("error: {problem}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run(flags: &Flags) -> Result<()> {
    tf::random::set_seed(flags.seed);
    say!("adapter   {}", Device::current()?.adapter());
    let folder = match &flags.data {
        Some(folder) => folder.clone(),
        None => draw_animals(&flags.out.join("drawn_animals"))?,
    };

    // 1. The names of the files, and their labels: 0 for cats, 1 for dogs.
    let train_cats = filenames(&folder.join("train/cats"))?;
    let train_dogs = filenames(&folder.join("train/dogs"))?;
    let train_labels = [vec![0; train_cats.len()], vec![1; train_dogs.len()]].concat();
    let train_filenames = [train_cats, train_dogs].concat();
    say!("data      {} photographs in {}", train_filenames.len(), folder.display());

    // 2. The pipeline. The guide shuffles the pictures; here the names are shuffled, as 23,000 pictures of 256 x 256 need 18
    //    GB.
    let size = [flags.size, flags.size];
    let calls = MapOptions::new().num_parallel_calls(AUTOTUNE);
    let train = Dataset::from_tensor_slices((train_filenames, train_labels))?
        .shuffle_with(23_000, ShuffleOptions::new().seed(flags.seed))
        .map_with(calls.clone(), move |(filename, label): (PathBuf, i32)| {
            decode_and_resize(&filename, label, size)
        })
        .batch(flags.batch)
        .prefetch(AUTOTUNE);
    let (images, labels) = train.iter().next().ok_or("there is no photograph")??;
    say!("batch     {:?}, labels {:?}", images.shape(), labels.as_slice());
    draw(&flags.out, "batch", &images)?;

    // 3. The network.
    let model = Sequential::new()
        .add(Conv2D::new(32, [3, 3]).activation(Activation::Relu))
        .add(MaxPooling2D::new([2, 2]))
        .add(Conv2D::new(32, [5, 5]).activation(Activation::Relu))
        .add(MaxPooling2D::new([2, 2]))
        .add(Flatten::new())
        .add(Dense::new(64).activation(Activation::Relu))
        .add(Dense::new(2).activation(Activation::Softmax));
    model.compile(
        Adam::new(1e-3),
        SparseCategoricalCrossentropy::new(),
        CompileOptions::new().metrics(["sparse_categorical_accuracy"]),
    )?;

    // 4. Training.
    let history = model.fit(&train, FitOptions::new().epochs(flags.epochs))?;
    for (epoch, loss) in history.get("loss").unwrap_or_default().iter().enumerate() {
        say!("epoch {}   loss {loss:.4}", epoch + 1);
    }

    // 5. Evaluation on photographs that it has not seen.
    let valid_cats = filenames(&folder.join("valid/cats"))?;
    let valid_dogs = filenames(&folder.join("valid/dogs"))?;
    let valid_labels = [vec![0; valid_cats.len()], vec![1; valid_dogs.len()]].concat();
    let valid_filenames = [valid_cats, valid_dogs].concat();
    let valid = Dataset::from_tensor_slices((valid_filenames.clone(), valid_labels.clone()))?
        .map_with(calls, move |(filename, label): (PathBuf, i32)| {
            decode_and_resize(&filename, label, size)
        })
        .batch(flags.batch);
    let logs = model.evaluate(&valid, EvaluateOptions::new())?;
    let names: Vec<&str> = logs.iter().map(|(name, _)| name).collect();
    say!("metrics_names {names:?}");
    for (name, value) in logs.iter() {
        say!("{name} {value:.4}");
    }

    // 6. The misclassified photographs.
    let pictures = valid.map(|(images, _): (ArrayD<f32>, ArrayD<i32>)| images);
    let likely = model.predict(&pictures, PredictOptions::new())?.argmax(-1)?.to_vec::<i32>()?;
    let misread: Vec<usize> = (0..likely.len()).filter(|&i| likely[i] != valid_labels[i]).collect();
    say!("misread   {} of {}", misread.len(), likely.len());
    if misread.is_empty() {
        return Ok(());
    }
    let mut images = Vec::new();
    for &i in misread.iter().take(32) {
        images.push(decode_and_resize(&valid_filenames[i], valid_labels[i], size)?.0);
    }
    let views: Vec<_> = images.iter().map(|image| image.view()).collect();
    draw(&flags.out, "misread", &wgrad::ndarray::stack(Axis(0), &views)?.into_dyn())
}

/// The files of a folder, in order.
fn filenames(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.path());
    }
    names.sort();
    if names.is_empty() {
        return Err(format!("{}: there is no photograph in it", folder.display()).into());
    }
    Ok(names)
}

/// The picture in a file, from 0 to 1, and its label.
fn decode_and_resize(
    filename: &Path,
    label: i32,
    size: [usize; 2],
) -> tf::Result<(Array3<f32>, i32)> {
    let image_string = io::read_file(filename)?;
    let image_decoded = image::decode_jpeg(&image_string, 3)?;
    let image_resized = image::resize_array(&image_decoded, size)? / 255.0;
    Ok((image_resized, label))
}

fn draw(out: &Path, name: &str, images: &ArrayD<f32>) -> Result<()> {
    let path = out.join(format!("cats_vs_dogs-{name}.png"));
    picture::write_images(&path, &Tensor::from_array(images)?, 8)?;
    say!("picture   {}", path.display());
    Ok(())
}

/// Draws discs for cats and stripes for dogs, as JPEGs of many sizes.
fn draw_animals(folder: &Path) -> Result<PathBuf> {
    for (part, count) in [("train", 48), ("valid", 16)] {
        for (class, name) in ["cats", "dogs"].into_iter().enumerate() {
            for i in 0..count {
                // The validation pictures continue the sequence of the training pictures.
                let k = if part == "train" { i } else { 48 + i };
                let (height, width) = (60 + 7 * k % 50, 60 + 11 * k % 60);
                let (y, x) = (height / 2 + k % 9, width / 2 - k % 7);
                let light = |row: usize, column: usize| match class {
                    0 => row.abs_diff(y).pow(2) + column.abs_diff(x).pow(2) < (14 + k % 12).pow(2),
                    _ => ((row + k * column / 40) / 8).is_multiple_of(2),
                };
                let drawn = Array3::from_shape_fn((height, width, 3), |(row, column, channel)| {
                    let ink = if light(row, column) { 170 } else { 40 };
                    (ink + (29 * k + 41 * channel + row + column) % 60) as u8
                });
                let file = folder.join(format!("{part}/{name}/{name}.{k}.jpg"));
                io::write_file(file, image::encode_jpeg(&drawn)?)?;
            }
        }
    }
    Ok(folder.to_path_buf())
}
