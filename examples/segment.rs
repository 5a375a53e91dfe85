//! A U-Net learns which pixels belong to a disk, to a square, and to neither, on pictures that the program draws.
//!
//! `cargo example segment` trains it and writes `out/segment.ppm`: pictures, the network's answers and the right ones. It ends with
//! the share of pixels that are right in new pictures, and how well each shape is covered.

#[path = "support/flags.rs"]
mod flags;
#[path = "support/say.rs"]
mod say;

use std::process::ExitCode;

use flags::Flags;
use say::{Result, say};
use wgrad as tf;
use wgrad::keras::applications::{ApplicationOptions, unet};
use wgrad::keras::losses::SparseCategoricalCrossentropy;
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::prelude::*;

/// Pixels along each side of a picture.
const SIDE: usize = 32;
const BATCH: usize = 8;
/// Neither, a disk, a square.
const CLASSES: usize = 3;

/// Pictures and the class of each pixel.
struct Pictures {
    pixels: Vec<f32>,
    classes: Vec<i32>,
}

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

/// Draws `count` pictures, each with a disk and a square in front of noise.
fn draw(seed: u64, count: usize) -> Pictures {
    let mut pictures = Pictures { pixels: Vec::new(), classes: Vec::new() };
    for picture in 0..count {
        let seed = seed + picture as u64;
        let place = |at: u64| 7.0 + noise(seed, at) * (SIDE as f32 - 14.0);
        let (disk, square) = ([place(0), place(1)], [place(2), place(3)]);
        let radius = [4.0 + 3.0 * noise(seed, 4), 3.0 + 3.0 * noise(seed, 5)];
        for pixel in 0..SIDE * SIDE {
            let (y, x) = ((pixel / SIDE) as f32, (pixel % SIDE) as f32);
            let far = |of: [f32; 2]| [(x - of[0]).abs(), (y - of[1]).abs()];
            let (d, s) = (far(disk), far(square));
            let class = match (d[0].hypot(d[1]) < radius[0], s[0].max(s[1]) < radius[1]) {
                (_, true) => 2,
                (true, _) => 1,
                _ => 0,
            };
            let light = if class == 0 { 0.2 } else { 0.7 };
            pictures.pixels.push(light + 0.3 * (noise(seed, 6 + pixel as u64) - 0.5));
            pictures.classes.push(class);
        }
    }
    pictures
}

impl Pictures {
    fn tensors(&self) -> Result<(Tensor, Tensor)> {
        let count = self.classes.len() / (SIDE * SIDE);
        let x = Tensor::from_slice(&self.pixels, [count, SIDE, SIDE, 1])?;
        Ok((x, Tensor::from_slice(&self.classes, [count, SIDE, SIDE])?))
    }
}

fn main() -> ExitCode {
    let about = "Train a U-Net on drawn shapes.\n\nUsage: segment [OPTIONS]";
    say::exit_code(run(&Flags::parse(about, 120)))
}

fn run(flags: &Flags) -> Result<()> {
    tf::random::set_seed(flags.seed);
    say!("adapter   {}", Device::current()?.adapter());
    let options = ApplicationOptions::new()
        .input_shape([SIDE, SIDE, 1])
        .classes(CLASSES)
        .classifier_activation(Activation::Linear);
    let model = unet::unet(unet::UnetConfig::new().filters(8).depth(2), &options)?;
    say!("network   {} parameters", model.count_params());

    let loss_of = SparseCategoricalCrossentropy::new().from_logits(true);
    let adam = Adam::new(3e-3);
    for step in 0..flags.steps {
        let (x, y) = draw(1_000 + (step * BATCH) as u64, BATCH).tensors()?;
        let tape = tf::GradientTape::new();
        let loss = loss_of.call(&y, &model.call(&x, TRAINING)?)?;
        adam.minimize(&loss, tape, &model)?;
        if (step + 1) % 40 == 0 || step + 1 == flags.steps {
            say!("step {:5}  loss {:.4}", step + 1, loss.item::<f32>()?);
        }
    }

    let test = draw(0, 64);
    let (x, _) = test.tensors()?;
    let answers: Vec<i32> = model.call(&x, INFERENCE)?.argmax(-1)?.to_vec()?;
    let right = answers.iter().zip(&test.classes).filter(|(a, b)| a == b).count();
    say!("pixels    {:.2} % right", 100.0 * right as f64 / answers.len() as f64);
    for (class, name) in [(1, "disk"), (2, "square")] {
        let is = |of: &i32| *of == class;
        let pairs = || answers.iter().zip(&test.classes);
        let both = pairs().filter(|(a, b)| is(a) && is(b)).count();
        let either = pairs().filter(|(a, b)| is(a) || is(b)).count();
        say!("{name:9} {:.1} % of what either covers", 100.0 * both as f64 / either.max(1) as f64);
    }
    std::fs::create_dir_all(&flags.out)?;
    let path = flags.out.join("segment.ppm");
    std::fs::write(&path, picture(&test, &answers, 8))?;
    say!(
        "picture   {}: above the pictures, then the network's answers, then the right ones",
        path.display()
    );
    Ok(())
}

/// The first `count` pictures, answers and classes, in three rows, in the format PPM.
fn picture(test: &Pictures, answers: &[i32], count: usize) -> Vec<u8> {
    let mut bytes = format!("P6 {} {} 255\n", count * SIDE, 3 * SIDE).into_bytes();
    let color = |class: i32| match class {
        1 => [230, 120, 40],
        2 => [50, 120, 220],
        _ => [20, 20, 20],
    };
    for row in 0..3 * SIDE {
        for column in 0..count * SIDE {
            let at = (column / SIDE) * SIDE * SIDE + (row % SIDE) * SIDE + column % SIDE;
            bytes.extend(match row / SIDE {
                0 => [(255.0 * test.pixels[at].clamp(0.0, 1.0)) as u8; 3],
                1 => color(answers[at]),
                _ => color(test.classes[at]),
            });
        }
    }
    bytes
}
