//! Measures decoding photographs: on one core and with `map` on all cores, with and without resizing.
//!
//! `CATS_VS_DOGS_DIR=<folder> cargo bench --features image-files --bench images`. Without the folder, the photographs are generated
//! noise.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;
use std::time::Instant;

use ndarray::Array3;
use wgrad::data::{AUTOTUNE, Dataset, MapOptions};
use wgrad::image::{decode_jpeg, encode_jpeg, resize_array};

fn photographs(count: usize) -> Vec<Vec<u8>> {
    let Some(folder) = std::env::var_os("CATS_VS_DOGS_DIR") else {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut draw = || {
            let (height, width) = (rng.usize(100..400), rng.usize(100..400));
            let image = Array3::from_shape_fn((height, width, 3), |(row, column, channel)| {
                ((row * 2 + column * (1 + channel)) % 200) as u8 + rng.u8(0..30)
            });
            encode_jpeg(&image).unwrap()
        };
        return (0..count).map(|_| draw()).collect();
    };
    let mut files = Vec::new();
    for part in ["train/cats", "train/dogs", "valid/cats", "valid/dogs"] {
        for entry in std::fs::read_dir(Path::new(&folder).join(part)).unwrap() {
            files.push(std::fs::read(entry.unwrap().path()).unwrap());
        }
    }
    files.truncate(count);
    files
}

/// The highest rate of some passes, in photographs per second.
fn rate(count: usize, passes: usize, mut pass: impl FnMut() -> usize) -> f64 {
    let mut best = 0.0f64;
    for _ in 0..=passes {
        let began = Instant::now();
        assert_eq!(pass(), count);
        best = best.max(count as f64 / began.elapsed().as_secs_f64());
    }
    best
}

fn main() {
    // `cargo test` runs benches with this argument to check that they work.
    let test = std::env::args().any(|arg| arg == "--test");
    let (count, passes) = if test { (4, 1) } else { (400, 9) };
    let files = photographs(count);
    let count = files.len();
    let decode = |bytes: &Vec<u8>| decode_jpeg(bytes, 3).unwrap();
    let resize = |image: &Array3<u8>| resize_array(image, [256, 256]).unwrap();
    let by_hand =
        rate(count, passes, || files.iter().map(decode).filter(|image| !image.is_empty()).count());
    let images: Vec<Array3<u8>> = files.iter().map(decode).collect();
    let resized =
        rate(count, passes, || images.iter().map(resize).filter(|image| !image.is_empty()).count());
    println!(
        "{count} photographs; a loop decodes {by_hand:.0} a second, and resizes {resized:.0} to 256 x 256"
    );
    let source = Dataset::from_tensor_slices(files).unwrap();
    let mut of_one = [0.0; 2];
    for calls in [1, AUTOTUNE] {
        let options = MapOptions::new().num_parallel_calls(calls);
        let decoded = source.map_with(options.clone(), |bytes: Vec<u8>| decode_jpeg(&bytes, 3));
        let resized = source
            .map_with(options, |bytes: Vec<u8>| resize_array(&decode_jpeg(&bytes, 3)?, [256, 256]));
        let pass = |dataset: &mut dyn Iterator<Item = bool>| dataset.filter(|ok| *ok).count();
        let rates = [
            rate(count, passes, || pass(&mut decoded.iter().map(|image| image.is_ok()))),
            rate(count, passes, || pass(&mut resized.iter().map(|image| image.is_ok()))),
        ];
        let calls = if calls == 1 { "one call at a time" } else { "AUTOTUNE" };
        println!(
            "map, {calls}: {:.0} decoded a second, {:.0} decoded and resized",
            rates[0], rates[1]
        );
        match of_one {
            [0.0, _] => of_one = rates,
            one => println!(
                "on all cores / on one: {:.2} decoded, {:.2} decoded and resized",
                rates[0] / one[0],
                rates[1] / one[1]
            ),
        }
    }
}
