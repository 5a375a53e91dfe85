//! Calls of `wgrad::image` that are refused, and images without elements.

use wgrad as tf;
use wgrad::image::{self, ResizeMethod, ResizeOptions};
use wgrad::{DType, Tensor};

use crate::{ints, text, zeros};

#[test]
fn ranks_and_channels() {
    assert_eq!(
        text(image::flip_left_right(&zeros([2, 3]))),
        "flip_left_right: the image is [2, 3]; an image has the axes [H,W,C], and a batch of them [N,H,W,C]."
    );
    for x in [zeros([2, 3]), zeros([1, 2, 3, 4, 5])] {
        for result in [
            image::flip_up_down(&x),
            image::transpose(&x),
            image::rot90(&x, 1),
            image::central_crop(&x, 0.5),
            image::crop_to_bounding_box(&x, 0, 0, 1, 1),
            image::pad_to_bounding_box(&x, 0, 0, 9, 9),
            image::resize_with_crop_or_pad(&x, 2, 2),
            image::resize(&x, [2, 2]),
            image::resize_with_pad(&x, 2, 2),
        ] {
            assert!(text(result).contains("[H,W,C]"));
        }
    }
    assert_eq!(
        text(image::rgb_to_hsv(&zeros([2, 2, 4]))),
        "RGBToHSV: the image is [2, 2, 4]; its last axis must have 3 channels."
    );
    assert_eq!(
        text(image::grayscale_to_rgb(&zeros([2, 2, 3]))),
        "grayscale_to_rgb: the image is [2, 2, 3]; its last axis must have 1 channel."
    );
    let scalar = Tensor::scalar(1.0f32).unwrap();
    for result in [
        image::rgb_to_grayscale(&scalar),
        image::hsv_to_rgb(&scalar),
        image::rgb_to_yuv(&scalar),
        image::grayscale_to_rgb(&scalar),
    ] {
        assert!(text(result).contains("the image is []"));
    }
    assert_eq!(
        text(image::adjust_hue(&zeros([3]), 0.5)),
        "AdjustHue: the image is [3]; it must have at least 3 axes."
    );
    assert!(text(image::adjust_contrast(&zeros([2, 3]), 1.0)).contains("at least 3 axes"));
    assert!(text(image::per_image_standardization(&zeros([2, 3]))).contains("at least 3 axes"));
}

#[test]
fn numbers_outside_their_range() {
    let x = zeros([4, 5, 3]);
    assert_eq!(
        text(image::central_crop(&x, 0.0)),
        "central_crop: central_fraction is 0; it must be above 0 and at most 1."
    );
    for fraction in [f64::NAN, 1.5, -0.5] {
        assert!(text(image::central_crop(&x, fraction)).contains("above 0 and at most 1"));
    }
    assert_eq!(text(image::adjust_hue(&x, 1.5)), "AdjustHue: delta is 1.5; it must be in -1 to 1.");
    assert!(text(image::adjust_hue(&x, f32::NAN)).contains("in -1 to 1"));
    assert_eq!(
        text(image::adjust_gamma(&x, -0.5, 1.0)),
        "adjust_gamma: gamma is -0.5; it must be 0 or more."
    );
}

#[test]
fn boxes_and_targets() {
    let x = zeros([4, 5, 3]);
    assert_eq!(
        text(image::crop_to_bounding_box(&x, 2, 0, 3, 5)),
        "crop_to_bounding_box: a box of 3 x 5 at (2, 0) extends beyond the image of 4 x 5; offset and target \
         together must not be larger than the image."
    );
    assert!(
        text(image::crop_to_bounding_box(&x, usize::MAX, 0, 2, 5))
            .contains("extends beyond the image")
    );
    assert_eq!(
        text(image::crop_to_bounding_box(&x, 0, 0, 0, 5)),
        "crop_to_bounding_box: the target is 0 x 5; both numbers must be above 0."
    );
    assert_eq!(
        text(image::pad_to_bounding_box(&x, 1, 0, 4, 9)),
        "pad_to_bounding_box: an image of 4 x 5 at (1, 0) does not fit into 4 x 9; the target must be at least offset \
         and image together."
    );
    let far = usize::MAX;
    assert!(text(image::pad_to_bounding_box(&x, far, 0, 4, 9)).contains("does not fit"));
    assert!(text(image::pad_to_bounding_box(&x, 0, 0, far, 9)).contains("wider than any tensor"));
    assert!(text(image::resize_with_crop_or_pad(&x, 0, 3)).contains("above 0"));
    assert!(text(image::resize_with_crop_or_pad(&x, far, 3)).contains("wider than any tensor"));
    assert_eq!(
        text(image::resize(&x, [0, 3])),
        "resize: the target is 0 x 3; both numbers must be above 0."
    );
    assert_eq!(
        text(image::resize(&x, [usize::MAX, 3])),
        format!(
            "resize: from 4 x 5 to {} x 3; an image has at most 4194304 rows and columns here.",
            usize::MAX
        )
    );
    assert!(text(image::resize(&x, [1 << 20, 1 << 20])).contains("1048576"));
    assert_eq!(
        text(image::resize(&zeros([0, 5, 3]), [2, 3])),
        "resize: the image is [0, 5, 3]; an empty one cannot be resized."
    );
    // With these proportions, no row is left.
    let keep = ResizeOptions::new().preserve_aspect_ratio(true);
    assert!(text(image::resize_with(&zeros([1, 50, 1]), [10, 10], keep)).contains("0 x 10"));
    assert!(text(image::resize_with_pad(&x, 2, 0)).contains("above 0"));
}

#[test]
fn dtypes() {
    let yes = tf::constant([[[true], [false]]]).unwrap();
    assert_eq!(
        text(image::resize(&yes, [2, 2])),
        "resize: the dtype bool is not supported here; use f32, f16, i32, u32, u8. Cast the tensor first."
    );
    assert!(text(image::convert_image_dtype(&yes, DType::F32)).contains("bool is not supported"));
    assert_eq!(
        text(image::convert_image_dtype(&zeros([1, 1, 1]), DType::Bool)),
        "convert_image_dtype: an image cannot be of the dtype bool; use f32, f16, i32, u32 or u8."
    );
    let bytes = Tensor::from_slice(&[1u8, 2, 3], [1, 1, 3]).unwrap();
    assert!(text(image::rgb_to_hsv(&bytes)).contains("u8 is not supported"));
    assert!(text(image::adjust_brightness(&yes, 0.5)).contains("bool is not supported"));
}

#[test]
fn images_without_elements() {
    let none = zeros([0, 4, 5, 3]);
    assert_eq!(image::resize(&none, [7, 2]).unwrap().shape(), [0, 7, 2, 3]);
    assert_eq!(image::rot90(&none, 1).unwrap().shape(), [0, 5, 4, 3]);
    assert_eq!(image::rgb_to_hsv(&none).unwrap().shape(), [0, 4, 5, 3]);
    assert_eq!(image::resize(&zeros([4, 5, 0]), [2, 2]).unwrap().shape(), [2, 2, 0]);
    let nearest = ResizeOptions::new().method(ResizeMethod::NearestNeighbor);
    assert_eq!(image::resize_with(&none, [9, 9], nearest).unwrap().shape(), [0, 9, 9, 3]);
}

#[test]
fn crops_and_transforms() {
    let (x, boxes) = (zeros([2, 4, 5, 3]), zeros([2, 4]));
    let own = ints([0, 1]);
    assert_eq!(
        text(image::crop_and_resize(&x, &boxes, &ints([0]), [2, 2])),
        "CropAndResize: the images are [2, 4, 5, 3], the boxes [2, 4] and their indices [1]; they must be [N,H,W,C], [M,4] \
         and [M]."
    );
    assert!(
        text(image::crop_and_resize(&zeros([4, 5, 3]), &boxes, &own, [2, 2])).contains("[N,H,W,C]")
    );
    assert!(text(image::crop_and_resize(&x, &boxes, &own, [0, 2])).contains("above 0"));
    assert!(text(image::crop_and_resize(&x, &boxes, &boxes, [2, 2])).contains("use i32"));
    assert!(text(image::crop_and_resize(&x, &ints([1, 2]), &own, [2, 2])).contains("use f32"));
    let empty = image::crop_and_resize(
        &x,
        &zeros([0, 4]),
        &Tensor::from_slice(&[0i32; 0], [0]).unwrap(),
        [2, 2],
    );
    assert_eq!(empty.unwrap().shape(), [0, 2, 2, 3]);
    assert_eq!(
        text(image::affine_transform(&x, &zeros([3, 8]))),
        "ImageProjectiveTransform: the transforms are [3, 8] for 2 images; they must be [8], or [2,8]."
    );
    assert!(text(image::affine_transform(&zeros([2, 2]), &zeros([8]))).contains("[H,W,C]"));
    assert!(
        text(image::affine_transform(&zeros([2, 0, 5, 1]), &zeros([8]))).contains("pixels to read")
    );
    let yes = tf::constant([[[true], [false]]]).unwrap();
    assert!(text(image::affine_transform(&yes, &zeros([8]))).contains("bool is not supported"));
}

#[test]
fn comparisons() {
    let (a, b) = (zeros([4, 5, 3]), zeros([4, 6, 3]));
    assert_eq!(
        text(image::psnr(&a, &b, 1.0)),
        "PSNR: the images are [4, 5, 3] and [4, 6, 3]; both must be images [H,W,C] of one size, or batches of them."
    );
    assert_eq!(
        text(image::ssim(&a, &a, 1.0)),
        "SSIM: the window has 11 rows and columns, and the images 4 x 5; it must have at least one, and fit."
    );
    let twenty = zeros([20, 20, 1]);
    assert!(text(image::ssim_multiscale(&twenty, &twenty, 1.0)).contains("the images 10 x 10"));
    let none = image::ssim_multiscale_with(&twenty, &twenty, 1.0, &[], image::SsimOptions::new());
    assert!(text(none).contains("no power_factors"));
    let pair = (zeros([2, 12, 12, 1]), zeros([3, 12, 12, 1]));
    assert!(text(image::ssim(&pair.0, &pair.1, 1.0)).contains("cannot be broadcast"));
    assert!(text(image::total_variation(&zeros([3]))).contains("[H,W,C]"));
    assert!(text(image::sobel_edges(&zeros([1, 5, 1]))).contains("positions can be mirrored"));
}
