//! `wgrad::image` compared with numbers of TensorFlow 2.21, for functions without cases in `tests/oracle.rs`.

#![allow(clippy::unwrap_used)]

use crate::{near, quarters, within};
use wgrad::image::{
    self, AffineTransformOptions, ConvertImageDtypeOptions, CropAndResizeOptions, FillMode,
    Interpolation, ResizeMethod, ResizeOptions, SsimOptions,
};
use wgrad::{DType, Device, GradientTape, Result, Tensor, constant};

fn bytes(values: &[u8], shape: &[usize]) -> Tensor {
    Tensor::from_slice(values, shape).unwrap()
}

#[test]
fn methods_of_resizing() {
    use ResizeMethod::{Bicubic, Gaussian, Lanczos3, Lanczos5, MitchellCubic};
    let larger = [
        (Lanczos3, [-1.165595, 0.08444028, 0.6121864, -0.2500001, 1.107513, 1.245095, 0.3756923]),
        (Lanczos5, [-1.225426, 0.1449137, 0.608914, -0.2500001, 1.022654, 1.34141, 0.3189388]),
        (Gaussian, [-0.8757499, -0.004263143, 0.4093589, 0.04289419, 0.9645354, 1.052817, 0.571]),
        (
            MitchellCubic,
            [-0.9999998, 0.01512644, 0.4923466, -0.09722187, 1.028061, 1.121562, 0.5000002],
        ),
    ];
    for (method, want) in larger {
        let options = ResizeOptions::new().method(method);
        near(image::resize_with(&quarters(&[1, 5, 1]), [1, 7], options), &[1, 7, 1], &want);
    }
    let smaller = [
        (Lanczos3, [-0.128012, 0.6978091, 0.3780119]),
        (Lanczos5, [-0.1125357, 0.7000018, 0.3625356]),
        (Gaussian, [-0.01935165, 0.5961183, 0.4192978]),
        (MitchellCubic, [-0.07703884, 0.6412836, 0.4007937]),
        (Bicubic, [-0.1209677, 0.7008547, 0.3709676]),
    ];
    for (method, want) in smaller {
        let options = ResizeOptions::new().method(method).antialias(true);
        near(image::resize_with(&quarters(&[1, 7, 1]), [1, 3], options), &[1, 3, 1], &want);
    }
    near(
        image::resize_with(
            &quarters(&[3, 5, 1]),
            [4, 4],
            ResizeOptions::new().preserve_aspect_ratio(true),
        ),
        &[2, 4, 1],
        &[-0.65625, 0.5, 0.5390625, 0.6640625, -0.1640625, -0.0390625, 0.0, 1.15625],
    );
    let dark = bytes(&[10, 20, 250], &[1, 3, 1]);
    near(image::resize(&dark, [1, 5]), &[1, 5, 1], &[10.0, 14.0, 20.0, 158.0, 250.0]);
    let nearest = ResizeOptions::new().method(ResizeMethod::NearestNeighbor);
    let same = image::resize_with(&dark, [1, 5], nearest).unwrap();
    assert_eq!(same.to_vec::<u8>().unwrap(), [10, 10, 20, 250, 250]);
    near(
        image::resize_with_pad_with(
            &quarters(&[4, 2, 1]),
            3,
            3,
            ResizeOptions::new().method(Bicubic).antialias(true),
        ),
        &[3, 3, 1],
        &[0.09610987, 0.0, 0.0, 0.3125, 0.0, 0.0, 0.5288903, 0.0, 0.0],
    );
}

/// Channels may or may not fill vectors, and sums are short or shared by several threads: all channels are resized in the same
/// way.
#[test]
fn every_number_of_channels() {
    for (size, target) in [([40, 50], [3, 4]), ([6, 5], [9, 13]), ([700, 3], [1, 2])] {
        for options in [
            ResizeOptions::new(),
            ResizeOptions::new().antialias(true),
            ResizeOptions::new().method(ResizeMethod::Area),
        ] {
            let plain = quarters(&[2, size[0], size[1], 1]);
            let one = image::resize_with(&plain, target, options).unwrap();
            for channels in [2, 3, 4, 5, 8] {
                let wide = plain.tile(&[1, 1, 1, channels]).unwrap();
                let all = image::resize_with(&wide, target, options).unwrap();
                let each = all.subtract(&one).unwrap().abs().unwrap().reduce_max(()).unwrap();
                let far = each.item::<f32>().unwrap();
                assert!(far <= 1e-6, "{size:?} {target:?} {channels} {options:?}: {far}");
            }
        }
    }
}

#[test]
fn dtypes_of_images() {
    let saturate = ConvertImageDtypeOptions::new().saturate(true);
    let ints = constant([0, -5, 1 << 30, i32::MAX, i32::MIN, 1 << 24]).unwrap();
    let of = |x: &Tensor, dtype, saturated: bool| {
        let options = if saturated { saturate } else { ConvertImageDtypeOptions::new() };
        image::convert_image_dtype_with(x, dtype, options).unwrap()
    };
    let small = of(&ints, DType::U8, false).to_vec::<u8>().unwrap();
    assert_eq!(small, [0, 255, 128, 255, 0, 2]);
    let small = of(&ints, DType::U8, true).to_vec::<u8>().unwrap();
    assert_eq!(small, [0, 0, 128, 255, 0, 2]);
    let wide = of(&ints, DType::U32, true).to_vec::<u32>().unwrap();
    assert_eq!(wide, [0, 0, 2147483648, 4294967294, 0, 33554432]);
    let own = bytes(&[0, 1, 100, 255], &[4]);
    let wide = of(&own, DType::I32, false).to_vec::<i32>().unwrap();
    assert_eq!(wide, [0, 8388608, 838860800, 2139095040]);
    let wide = of(&own, DType::U32, false).to_vec::<u32>().unwrap();
    assert_eq!(wide, [0, 16777216, 1677721600, 4278190080]);
    let unsigned = Tensor::from_slice(&[0u32, 5, 1 << 31, u32::MAX], [4]).unwrap();
    let signed = of(&unsigned, DType::I32, false).to_vec::<i32>().unwrap();
    assert_eq!(signed, [0, 2, 1073741824, 2147483647]);
}

#[test]
fn colours_of_bytes() {
    let b = bytes(&[10, 200, 90, 255, 0, 128], &[1, 2, 3]);
    let values = |y: Result<Tensor>| y.unwrap().to_vec::<u8>().unwrap();
    assert_eq!(values(image::adjust_brightness(&b, 0.2)), [61, 251, 141, 255, 51, 179]);
    assert_eq!(values(image::adjust_contrast(&b, 1.5)), [0, 250, 80, 255, 0, 137]);
    assert_eq!(values(image::adjust_gamma(&b, 2.0, 1.1)), [0, 172, 35, 255, 0, 70]);
    assert_eq!(values(image::adjust_hue(&b, 0.3)), [52, 10, 200, 179, 255, 0]);
    assert_eq!(values(image::adjust_saturation(&b, 1.5)), [0, 200, 84, 255, 0, 128]);
    assert_eq!(values(image::rgb_to_grayscale(&b)), [130, 90]);
}

#[test]
fn colours() {
    near(
        image::adjust_hue(&quarters(&[1, 3, 3]), -0.4),
        &[1, 3, 3],
        &[0.75, -0.95, -1.0, -0.3, -0.5, 1.5, -0.55, -0.75, 1.25],
    );
    let x = quarters(&[2, 3]);
    near(
        image::rgb_to_yuv(&x),
        &[2, 3],
        &[0.11275, -0.1785133, -0.9761967, 0.685, -0.5831516, 0.7149857],
    );
    near(
        image::yuv_to_rgb(&x),
        &[2, 3],
        &[-1.284971, -1.150826, 0.5240464, 0.9300585, 1.59299, 2.516031],
    );
    near(
        image::rgb_to_yiq(&x),
        &[2, 3],
        &[0.11275, -0.7214821, -0.681352, 0.685, 0.9172446, -0.09971786],
    );
    near(
        image::yiq_to_rgb(&x),
        &[2, 3],
        &[-0.4382164, -1.042209, -2.256113, 1.667581, 1.687596, 0.09451461],
    );
}

#[test]
fn differences_within_an_image() {
    near(image::total_variation(&quarters(&[2, 3, 4, 2])), &[2], &[27.0, 27.0]);
    let (dy, dx) = image::image_gradients(&quarters(&[1, 2, 3, 1])).unwrap();
    near(Ok(dy), &[1, 2, 3, 1], &[2.5, -0.25, -0.25, 0.0, 0.0, 0.0]);
    near(Ok(dx), &[1, 2, 3, 1], &[1.75, -1.0, 0.0, -1.0, -1.0, 0.0]);
    near(
        image::sobel_edges(&quarters(&[1, 3, 3, 2])),
        &[1, 3, 3, 2, 2],
        &[
            0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, -5.0, 0.0, 0.0, 0.0, 0.0, 7.0, 0.0, -4.0, 0.0, 4.25,
            -2.25, -1.25, -2.25, 1.5, 0.0, 1.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -5.0, 0.0, 0.5, 0.0,
            0.0, 0.0, 0.0,
        ],
    );
}

#[test]
fn differences_between_images() {
    let a = quarters(&[2, 12, 13, 2]).add(1.0).unwrap().divide(2.5).unwrap();
    let noise = quarters(&[2, 12, 13, 2]).reverse(0).unwrap().multiply(0.1).unwrap();
    let b = a.add(noise).unwrap().clip_by_value(0.0, 1.0).unwrap();
    within(1e-5, image::psnr(&a, &b, 1.0), &[2], &[21.67691, 21.60456]);
    within(1e-5, image::ssim(&a, &b, 1.0), &[2], &[0.9639006, 0.9645382]);
    let first = a.slice(&[0, 0, 0, 0], &[1, -1, -1, -1]).unwrap().reshape([12, 13, 2]).unwrap();
    let options = SsimOptions::new().filter_size(3).filter_sigma(0.8).k1(0.02).k2(0.05);
    // One image against a batch of two.
    within(1e-5, image::ssim_with(&first, &b, 1.0, options), &[2], &[0.9638007, -0.2879018]);
    let map = image::ssim_with(&a, &b, 1.0, SsimOptions::new().return_index_map(true)).unwrap();
    assert_eq!(map.shape(), [2, 2, 3]);
    let corner = map.slice(&[0, 0, 0], &[1, 2, 2]);
    within(1e-5, corner, &[1, 2, 2], &[0.9640743, 0.9639195, 0.9638116, 0.963837]);
    let small = SsimOptions::new().filter_size(3);
    let scales = image::ssim_multiscale_with(&a, &b, 1.0, &[0.5, 0.3, 0.2], small);
    within(1e-5, scales, &[2], &[0.9680125, 0.9694117]);
    let of = |a: usize, b: usize| {
        let value = |k: usize| (k / 12 * a + k % 12 * b) as u8;
        bytes(&(0..132).map(value).collect::<Vec<_>>(), &[11, 12, 1])
    };
    let (a, b) = (of(37, 91), of(31, 93));
    within(1e-5, image::psnr(&a, &b, 255.0), &[], &[9.862949]);
    within(1e-5, image::ssim(&a, &b, 255.0), &[], &[0.439344]);
}

#[test]
fn crops_of_any_place() {
    let image = quarters(&[2, 4, 5, 1]);
    let boxes =
        constant([[0.1f32, 0.2, 0.8, 0.7], [0.9, -0.3, 0.15, 1.2], [0.0, 0.0, 1.0, 1.0]]).unwrap();
    let indices = constant([1, 0, 1]).unwrap();
    let outside = CropAndResizeOptions::new().extrapolation_value(0.5);
    let tape = GradientTape::new();
    tape.watch(&image).unwrap();
    tape.watch(&boxes).unwrap();
    let crops = image::crop_and_resize_with(&image, &boxes, &indices, [2, 3], outside).unwrap();
    near(
        Ok(crops.clone()),
        &[3, 2, 3, 1],
        &[
            0.35, -0.65, 0.55, 0.85, 0.4, -0.6, 0.5, 0.75, 0.5, 0.5, 0.175, 0.5, 1.0, -1.0, -0.25,
            -0.25, 0.5, 1.25,
        ],
    );
    let loss = crops.multiply(quarters(&[3, 2, 3, 1])).unwrap();
    let [of_image, of_boxes] = tape.gradient(&loss, [&image, &boxes]).unwrap();
    near(
        Ok(of_image.unwrap()),
        &[2, 4, 5, 1],
        &[
            0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.015, 0.06, 0.0, 0.0, 0.0,
            0.035, 0.14, 0.0, 0.0, 0.61, -0.455, 0.135, -0.14, 1.5, -0.06, -0.195, 0.165, -0.06,
            0.0, 0.18, 0.78, 0.18, -0.24, 0.0, 0.62, 0.52, -0.38, -0.16, 1.25,
        ],
    );
    near(
        Ok(of_boxes.unwrap()),
        &[3, 4],
        &[-0.75, 12.0, 2.25, -2.25, 0.375, 0.875, 0.0, 0.875, 0.0, 0.0, 0.0, 0.0],
    );
    let nearest = outside.method(Interpolation::Nearest);
    near(
        image::crop_and_resize_with(&image, &boxes, &indices, [2, 3], nearest),
        &[3, 2, 3, 1],
        &[
            0.0, -1.0, 0.75, 1.0, 0.0, -1.0, 0.5, 1.25, 0.5, 0.5, -0.25, 0.5, 1.0, -1.0, -0.25,
            -0.25, 0.5, 1.25,
        ],
    );
    near(
        image::crop_and_resize(&image, &boxes, &indices, [1, 1]),
        &[3, 1, 1, 1],
        &[-0.125, 0.42125, -0.25],
    );
    // A number that is not an image's index.
    let none = constant([2, -1, 7]).unwrap();
    near(
        image::crop_and_resize_with(&image, &boxes, &none, [1, 1], outside),
        &[3, 1, 1, 1],
        &[0.5, 0.5, 0.5],
    );
}

#[test]
fn transforms() {
    let image = quarters(&[1, 4, 5, 1]);
    let near_by = constant([0.9f32, -0.3, 0.4, 0.25, 1.1, -0.7, 0.01, -0.02]).unwrap();
    let far = constant([[2.5f32, 0.3, -7.3, -0.6, 1.9, -6.2, 0.0, 0.0]]).unwrap();
    let of = |transform: &Tensor, mode: FillMode, how: Interpolation| {
        let options = AffineTransformOptions::new()
            .interpolation(how)
            .fill_mode(mode)
            .fill_value(0.25)
            .output_shape([3, 4]);
        image::affine_transform_with(&image, transform, options)
    };
    let (bilinear, nearest) = (Interpolation::Bilinear, Interpolation::Nearest);
    let shape = [1, 3, 4, 1];
    let tail = [1.382364, -0.6173469, 1.068182, 0.3, -0.4529701];
    let end = [-0.4308639, 0.1275507, 0.361111];
    let whole = |head: [f32; 3], middle: f32| [&head[..], &tail, &[middle], &end].concat();
    let want = whole([0.085, 0.3680277, 0.06872355], -0.1210937);
    near(of(&near_by, FillMode::Constant, bilinear), &shape, &want);
    near(of(&far, FillMode::Constant, bilinear), &shape, &[0.25; 12]);
    let mirrored = whole([-0.3, 0.4628713, 0.02450979], -0.21875);
    near(of(&near_by, FillMode::Reflect, bilinear), &shape, &mirrored);
    near(
        of(&far, FillMode::Reflect, bilinear),
        &shape,
        &[-0.05, 0.75, 0.75, -0.65, 0.25, -0.25, -0.75, -0.4125, -0.025, 0.1, -0.4, -0.3],
    );
    let wrapped = whole([0.1, 0.002475202, 1.093137], 1.28125);
    near(of(&near_by, FillMode::Wrap, bilinear), &shape, &wrapped);
    near(
        of(&far, FillMode::Wrap, bilinear),
        &shape,
        &[0.55, -0.75, 0.55, 0.3, 0.25, -0.75, 0.0, 0.0, 0.075, -0.75, -0.05, -0.3],
    );
    near(of(&near_by, FillMode::Nearest, bilinear), &shape, &mirrored);
    near(
        of(&far, FillMode::Nearest, bilinear),
        &shape,
        &[-1.0, -1.0, -1.0, -0.65, -1.0, -1.0, -1.0, -0.125, -1.0, -1.0, -1.0, 0.4],
    );
    near(
        of(&near_by, FillMode::Constant, nearest),
        &shape,
        &[0.25, 0.75, -0.25, 1.5, -1.0, 1.25, 0.25, -0.75, 0.0, -1.0, 0.75, -0.25],
    );
    near(
        of(&near_by, FillMode::Wrap, nearest),
        &shape,
        &[0.5, -0.5, 1.25, 1.5, -1.0, 1.25, 0.25, -0.75, 1.5, -1.0, 0.75, -0.25],
    );
    near(
        of(&far, FillMode::Reflect, nearest),
        &shape,
        &[-0.25, 1.0, 1.25, -1.0, 0.25, -0.75, -0.5, -1.0, -0.75, -0.25, -0.5, -0.5],
    );
    let steps = bytes(&(0..20).map(|i| i * 12).collect::<Vec<u8>>(), &[4, 5, 1]);
    let mirrored = AffineTransformOptions::new().fill_mode(FillMode::Reflect).output_shape([3, 4]);
    let turned = image::affine_transform_with(&steps, &near_by, mirrored).unwrap();
    assert_eq!(turned.to_vec::<u8>().unwrap(), [4, 15, 25, 39, 25, 51, 76, 101, 93, 116, 142, 166]);
}

/// Functions of a pixel's channels are one kernel, whatever their composition. Values that all channels need, a hue or the
/// weights of a mixture, may be computed once, in a preceding kernel.
#[test]
fn colours_are_one_kernel_or_two() {
    let device = Device::new().unwrap();
    device.set_fusion(true);
    let x = device.scope(|| quarters(&[2, 16, 16, 3]));
    type Function = fn(&Tensor) -> Result<Tensor>;
    let functions: [(&str, usize, Function); 11] = [
        ("brightness", 1, |x| image::adjust_brightness(x, 0.2)),
        ("gamma", 1, |x| image::adjust_gamma(x, 0.5, 1.0)),
        ("yuv", 2, image::rgb_to_yuv),
        ("yiq", 2, image::yiq_to_rgb),
        ("gray", 1, image::rgb_to_grayscale),
        ("bytes", 1, |x| image::convert_image_dtype(x, DType::U8)),
        ("hue", 2, |x| image::adjust_hue(x, 0.2)),
        ("saturation", 2, |x| image::adjust_saturation(x, 0.2)),
        ("hsv", 2, image::rgb_to_hsv),
        ("rgb", 2, image::hsv_to_rgb),
        ("resized", 1, |x| image::resize(x, [8, 12])?.multiply(2.0)?.subtract(1.0)),
    ];
    let counts: Vec<(&str, usize, usize)> = functions
        .iter()
        .map(|(name, most, f)| {
            // At the first call each op has a kernel; a repeated call is fused.
            for _ in 0..2 {
                device.synchronize().unwrap();
                let y = f(&x).unwrap();
                device.flush().unwrap();
                drop(y);
            }
            (*name, device.last_plan().unwrap().kernels().len(), *most)
        })
        .collect();
    assert!(counts.iter().all(|(_, count, most)| count <= most), "{counts:?}");
}
