//! Datasets: pairs of numbers, and the digits of MNIST rotated, batched and shuffled.
//!
//! `cargo example datasets` prints the pairs and the shapes, and draws the digits into `out/`.

#[path = "support/flags.rs"]
mod flags;
#[path = "support/picture.rs"]
mod picture;
#[path = "support/say.rs"]
mod say;

use std::process::ExitCode;

use flags::Flags;
use say::{Result, say};
use wgrad as tf;
use wgrad::data::mnist::{Mnist, MnistOptions};
use wgrad::data::{Dataset, ToTensors};
use wgrad::ndarray::{Array3, ArrayD, Axis};

const ABOUT: &str = "Datasets: pairs of numbers, and MNIST rotated, batched and shuffled";

fn main() -> ExitCode {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    say::exit_code(run(&Flags::parse(ABOUT, 3)))
}

fn run(flags: &Flags) -> Result<()> {
    years_and_prices()?;
    tf::random::set_seed(flags.seed);
    let options = MnistOptions::new().dir(flags.data.clone()).download(true).seed(flags.seed);
    let mnist = Mnist::load(&options)?;
    say!("data      {}", mnist.source);
    let digits = Dataset::from_tensor_slices(mnist.train)?;

    // Each image separately.
    let turned = digits.map(|(image, label)| (rot90(&image), label));
    for (name, dataset) in [("upright", &digits), ("turned", &turned)] {
        let (image, label) = dataset.iter().next().ok_or("MNIST has images")??;
        say!("{name:8}  a {label}, {:?}", image.shape());
        let one = image.insert_axis(Axis(0)).into_dyn();
        draw(flags, name, &one, 1)?;
    }

    // Four at a time: the next element of the dataset is a batch.
    let batches = turned.batch(4);
    let (images, labels) = batches.iter().next().ok_or("MNIST has images")??;
    say!("batch     {:?}, labels {labels}", images.shape());
    draw(flags, "batch", &images, 4)?;

    // A new order in each pass.
    let shuffled = digits.shuffle(10_000).batch(4);
    for pass in 1..=flags.steps {
        let (images, labels) = shuffled.iter().next().ok_or("MNIST has images")??;
        say!("shuffled  pass {pass}: labels {labels}");
        draw(flags, &format!("shuffled-{pass}"), &images, 4)?;
    }
    Ok(())
}

/// The slices of two arrays, in pairs.
fn years_and_prices() -> Result<()> {
    let years = vec![2013, 2014, 2015, 2016, 2017];
    let prices = vec![12000, 14000, 15000, 16500, 17500];
    let dataset = Dataset::from_tensor_slices((years, prices))?;
    for pair in &dataset {
        let (year, price) = pair?;
        say!("{year} {price}");
    }
    Ok(())
}

/// A quarter turn to the left, like `tf.image.rot90`.
fn rot90(image: &Array3<u8>) -> Array3<u8> {
    let mut turned = image.view().permuted_axes([1, 0, 2]);
    turned.invert_axis(Axis(0));
    turned.to_owned()
}

/// Draws the images of a batch next to each other.
fn draw(flags: &Flags, name: &str, images: &ArrayD<u8>, columns: usize) -> Result<()> {
    let pixels = images.to_tensors()?.cast(tf::DType::F32)? / 255.0;
    let path = flags.out.join(format!("datasets-{name}.png"));
    picture::write_images(&path, &pixels, columns)?;
    say!("picture   {}", path.display());
    Ok(())
}
