//! `wgrad::image`'s decoders and encoders compared with TensorFlow's; `tests/data/images/make.py` recorded its results.

use std::path::PathBuf;

use ndarray::{Array3, ArrayD, Axis, IxDyn, s};
use serde_json::Value;
use wgrad as tf;
use wgrad::image::{
    self, DctMethod, DecodeOptions, EncodeJpegOptions, EncodePngOptions, ResizeMethod,
    ResizeOptions,
};
use wgrad::{Error, Tensor};

use crate::support::root::root;

fn folder() -> PathBuf {
    root().join("tests/data/images")
}

fn file(name: &str) -> Vec<u8> {
    tf::io::read_file(folder().join(name)).unwrap()
}

fn table(name: &str) -> Vec<(String, Value)> {
    let table: Value = serde_json::from_slice(&file(name)).unwrap();
    table.as_object().unwrap().clone().into_iter().collect()
}

fn numbers(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect()
}

/// TensorFlow's pixels, if it decodes the file to this number of channels.
fn expected(line: &Value, key: &str, blob: &[u8]) -> Option<ArrayD<u8>> {
    let answer = line[key].as_object()?;
    let (shape, at) = (numbers(&answer["shape"]), answer["at"].as_u64().unwrap() as usize);
    let values = blob[at..at + shape.iter().product::<usize>()].to_vec();
    Some(ArrayD::from_shape_vec(IxDyn(&shape), values).unwrap())
}

/// Every file, with every number of channels that TensorFlow supports for it: JPEG, PNG, BMP, GIF and lossless WebP exactly.
#[test]
fn files_have_tensorflows_pixels() {
    let (table, blob) = (table("pixels.json"), file("pixels.bin"));
    let mut compared = 0;
    for (name, line) in &table {
        for channels in [0, 1, 3, 4] {
            let Some(expected) = expected(line, &channels.to_string(), &blob) else { continue };
            // TensorFlow uses the depth of a palette or of 1 bit for the alpha channel that it adds.
            if channels == 4 && matches!(name.as_str(), "palette.png" | "bits.png") {
                continue;
            }
            compared += 1;
            let frames = image::decode_frames(&file(name), channels).unwrap();
            let first = image::decode_image(&file(name), channels).unwrap();
            assert_eq!(first, frames.index_axis(Axis(0), 0), "{name} {channels}");
            let expected = match expected.ndim() {
                3 => expected.insert_axis(Axis(0)),
                _ => expected,
            };
            assert_eq!(frames.shape(), expected.shape(), "{name} {channels}");
            let far = |a: &u8, b: &u8| a.abs_diff(*b);
            let farthest = frames.iter().zip(&expected).map(|(a, b)| far(a, b)).max().unwrap();
            // The format does not define how lossy colours are upsampled, nor how frames are blended.
            let bound = match name.as_str() {
                "lossy.webp" => 3,
                "moving.webp" => 1,
                _ => 0,
            };
            assert!(farthest <= bound, "{name} {channels}: {farthest} levels away");
        }
    }
    assert!(compared > 70, "{compared}");
}

/// `INTEGER_FAST` is TensorFlow's default.
#[test]
fn the_fast_method_is_tensorflows_too() {
    let (table, blob) = (table("pixels.json"), file("pixels.bin"));
    let fast = DecodeOptions::new().dct_method(DctMethod::IntegerFast);
    let mut compared = 0;
    for (name, line) in &table {
        let Some(expected) = expected(line, "fast", &blob) else { continue };
        let image = image::decode_jpeg_with(&file(name), 3, fast).unwrap();
        assert_eq!(image.into_dyn(), expected, "{name}");
        compared += 1;
    }
    assert_eq!(compared, 10);
}

/// The 400 photographs of cats and dogs, with checksums of TensorFlow's pixels. Set `CATS_VS_DOGS_DIR` to their folder.
#[test]
#[ignore = "needs the photographs: set CATS_VS_DOGS_DIR"]
fn photographs_have_tensorflows_pixels() {
    let folder = std::env::var_os("CATS_VS_DOGS_DIR").expect("set CATS_VS_DOGS_DIR");
    let photographs = table("cats_vs_dogs.json");
    assert_eq!(photographs.len(), 400);
    for (name, line) in photographs {
        let bytes = tf::io::read_file(PathBuf::from(&folder).join(&name)).unwrap();
        let image = image::decode_jpeg(&bytes, 3).unwrap();
        let checksum = (1u64..).zip(&image).fold(0u64, |sum, (place, &value)| {
            sum.wrapping_add(place.wrapping_mul(u64::from(value) + 1))
        });
        let (height, width) = (line[0].as_u64().unwrap(), line[1].as_u64().unwrap());
        assert_eq!(image.shape(), [height as usize, width as usize, 3], "{name}");
        assert_eq!(checksum.to_string(), line[2].as_str().unwrap(), "{name}");
    }
}

/// On the host and on the device, compared with TensorFlow's `tf.image.resize` to 5 x 7.
#[test]
fn resized_images_are_tensorflows() {
    for (name, line) in &table("pixels.json") {
        let image = image::decode_image(&file(name), 0).unwrap();
        let expected: Vec<f32> = line["resized"]
            .as_array()
            .unwrap()
            .iter()
            .map(|value| value.as_f64().unwrap() as f32)
            .collect();
        // TensorFlow's frames of an animation have an alpha channel.
        let image = match name.as_str() {
            "moving.webp" => image::decode_image(&file(name), 4).unwrap(),
            _ => image,
        };
        assert_eq!(expected.len(), 35 * image.dim().2, "{name}");
        let host = image::resize_array(&image, [5, 7]).unwrap();
        let batch = Tensor::from_array(&image.insert_axis(Axis(0))).unwrap();
        let device = image::resize(&batch, [5, 7]).unwrap().to_vec::<f32>().unwrap();
        assert_eq!((host.shape()[0], host.shape()[1]), (5, 7));
        for ((host, device), expected) in host.iter().zip(&device).zip(&expected) {
            // Four decimals were written; the device rounds its sums in another order.
            assert!((host - expected).abs() < 1e-4, "{name}: {host} {expected}");
            assert!((device - expected).abs() < 1e-3, "{name}: {device} {expected}");
        }
    }
}

/// Every method has the same results on the host as on the device.
#[test]
fn the_host_resizes_as_the_device_does() {
    let image = image::decode_image(&file("rgba.png"), 0).unwrap();
    let tensor = Tensor::from_array(&image).unwrap();
    let methods = [
        ResizeMethod::Bilinear,
        ResizeMethod::NearestNeighbor,
        ResizeMethod::Bicubic,
        ResizeMethod::Area,
        ResizeMethod::Lanczos3,
        ResizeMethod::Lanczos5,
        ResizeMethod::Gaussian,
        ResizeMethod::MitchellCubic,
    ];
    for method in methods {
        for (size, antialias, keep) in [
            ([5, 7], false, false),
            ([40, 9], true, false),
            ([13, 19], false, false),
            ([6, 50], false, true),
        ] {
            let options = ResizeOptions::new()
                .method(method)
                .antialias(antialias)
                .preserve_aspect_ratio(keep);
            let device = image::resize_with(&tensor, size, options).unwrap();
            let host = image::resize_array_with(&image, size, options).unwrap();
            assert_eq!(host.shape(), device.shape(), "{method:?}");
            let device = device.cast(tf::DType::F32).unwrap().to_vec::<f32>().unwrap();
            for (host, device) in host.iter().zip(device) {
                assert!((host - device).abs() < 2e-3, "{method:?} {size:?}: {host} {device}");
            }
            // Other numbers of channels use another implementation.
            let two =
                image::resize_array_with(image.slice(s![.., .., 1..3]), size, options).unwrap();
            assert_eq!(two, host.slice(s![.., .., 1..3]), "{method:?}");
        }
    }
}

#[test]
fn encoded_jpegs_are_tensorflows() {
    let image = image::decode_png(&file("rgb.png"), 3).unwrap();
    let options = EncodeJpegOptions::new;
    for (name, options) in [
        ("encoded.jpg", options()),
        ("encoded_444.jpg", options().quality(70).chroma_downsampling(false)),
        ("encoded_progressive.jpg", options().progressive(true)),
        ("encoded_small.jpg", options().optimize_size(true)),
    ] {
        let bytes = image::encode_jpeg_with(&image, options).unwrap();
        assert_eq!(bytes, file(name), "{name}");
    }
    let grey = image::encode_jpeg(image.slice(s![.., .., ..1])).unwrap();
    assert_eq!(grey, file("encoded_grey.jpg"));
}

#[test]
fn pngs_come_back_as_they_went() {
    for channels in 1..=4 {
        for compression in -1..=9 {
            let image = Array3::from_shape_fn((5, 9, channels), |(row, column, channel)| {
                (row * 50 + column * 7 + channel * 31) as u8
            });
            let options = EncodePngOptions::new().compression(compression);
            let file = image::encode_png_with(&image, options).unwrap();
            assert_eq!(image::decode_png(&file, 0).unwrap(), image, "{channels} {compression}");
        }
    }
}

#[test]
fn a_ratio_shrinks_while_decoding() {
    let (table, blob) = (table("pixels.json"), file("pixels.bin"));
    let mut compared = 0;
    for (name, line) in &table {
        for ratio in [2, 4, 8] {
            let Some(expected) = expected(line, &format!("ratio {ratio}"), &blob) else { continue };
            let options = DecodeOptions::new().ratio(ratio);
            let image = image::decode_jpeg_with(&file(name), 3, options).unwrap();
            assert_eq!(image.into_dyn(), expected, "{name} {ratio}");
            compared += 1;
        }
    }
    assert_eq!(compared, 30);
}

#[test]
fn what_is_left_of_a_photograph_is_recovered_if_asked_for() {
    let image = Array3::from_shape_fn((64, 64, 3), |(row, column, _)| (2 * row + column) as u8);
    let bytes = image::encode_jpeg(&image).unwrap();
    let whole = image::decode_jpeg(&bytes, 3).unwrap();
    let cut = &bytes[..bytes.len() * 3 / 4];
    assert!(matches!(image::decode_jpeg(cut, 3), Err(Error::Data(_))));
    let options = DecodeOptions::new().try_recover_truncated(true);
    let part = image::decode_jpeg_with(cut, 3, options).unwrap();
    assert_eq!(part.slice(s![..16, .., ..]), whole.slice(s![..16, .., ..]));
    assert_ne!(part, whole);
}
