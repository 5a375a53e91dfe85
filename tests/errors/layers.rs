//! Errors of layers: wrong ranks, changed sizes, invalid options.

use wgrad::keras::layers::*;
use wgrad::keras::{INFERENCE, Layer, TRAINING};

use super::*;

fn call(layer: impl Layer, x: &Tensor) -> String {
    text(layer.call(x, TRAINING))
}

#[test]
fn ranks_are_named_with_the_form_that_fits() {
    let x = zeros([2, 3]);
    assert_eq!(call(Conv1D::new(4, 3), &x), "Conv1D: the input is [2, 3]; it must be [N, W, C].");
    assert_eq!(
        call(Conv2D::new(4, [3, 3]), &zeros([5, 5, 4])),
        "Conv2D: the input is [5, 5, 4]; it must be [N, H, W, C]."
    );
    let volume = Conv3DTranspose::new(4, [1, 1, 1]);
    assert_eq!(
        call(volume, &x),
        "Conv3DTranspose: the input is [2, 3]; it must be [N, D, H, W, C]."
    );
    assert!(
        call(GlobalMaxPooling2D::new(), &x).starts_with("GlobalMaxPooling2D: the input is [2, 3]")
    );
    assert!(call(SpatialDropout1D::new(0.5), &x).contains("must be [N, W, C]"));
    assert!(call(RandomFlip::new(), &x).contains("must be [N, H, W, C], or [H, W, C]"));
    assert!(call(RepeatVector::new(2), &zeros([2])).contains("must be [N, D]"));
    assert!(call(Masking::new(), &zeros([2])).contains("whose last axis decides"));
    assert!(call(Flatten::new(), &zeros([])).contains("needs a batch axis"));
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let image = zeros([1, 4, 4, 6]);
    assert_eq!(
        call(Conv2D::new(0, [3, 3]), &image),
        "Conv2D: filters is 0; it must be at least 1."
    );
    assert_eq!(
        call(Conv2D::new(4, [3, 0]), &image),
        "Conv2D: kernel_size is [3, 0]; each size must be at least 1."
    );
    assert_eq!(
        call(Conv2D::new(4, [3, 5]), &image),
        "Conv2D: the input is [1, 4, 4, 6], which is smaller than a kernel of [3, 5] with a dilation_rate of [1, 1]. Pad it \
         (padding 'same'), or take smaller kernels."
    );
    assert!(call(Conv2D::new(4, [3, 3]).dilation_rate([2, 1]), &image).contains("smaller than"));
    let huge = Conv2D::new(4, [usize::MAX, 3]).dilation_rate([usize::MAX, 1]);
    assert!(call(huge, &image).contains("smaller than"));
    assert_eq!(
        call(Conv2D::new(4, [1, 1]).groups(4), &image),
        "Conv2D: 4 groups, 6 channels and 4 filters; the groups must divide both."
    );
    assert!(call(Conv2D::new(4, [1, 1]).groups(0), &image).contains("0 groups"));
    assert!(call(Conv2D::new(4, [1, 1]).strides([0, 1]), &image).contains("strides is [0, 1]"));
    assert!(
        call(DepthwiseConv2D::new([1, 1]).depth_multiplier(0), &image).contains("depth_multiplier")
    );
    assert_eq!(
        call(Conv2DTranspose::new(2, [3, 3]).output_padding([1, 0]), &image),
        "Conv2DTranspose: output_padding is [1, 0] and strides [1, 1]; the padding must be below the stride."
    );
    let huge = Conv2DTranspose::new(2, [3, 3]).strides([usize::MAX, 1]);
    assert!(call(huge, &image).contains("too large"));
    assert_eq!(
        call(MaxPooling2D::new([5, 2]), &image),
        "MaxPooling2D: the input is [1, 4, 4, 6], which is smaller than a window of [5, 2]. Take smaller windows, or padding \
         'same'."
    );
    assert!(call(AveragePooling2D::new([0, 2]), &image).contains("pool_size is [0, 2]"));
    assert!(call(MaxPooling2D::new([2, 2]).strides([0, 1]), &image).contains("strides is [0, 1]"));
    assert!(call(UpSampling2D::new([0, 2]), &image).contains("size is [0, 2]"));
    assert_eq!(
        call(Cropping2D::new(2), &image),
        "Cropping2D: the input is [1, 4, 4, 6] and the cropping [(2, 2), (2, 2)], which leaves nothing."
    );
    assert!(call(Cropping2D::new(usize::MAX), &image).contains("leaves nothing"));
    assert!(call(ZeroPadding2D::new(usize::MAX), &image).contains("Pad"));
    for rate in [1.5, 1.0, -0.1, f32::NAN] {
        let wrong = format!("the rate is {rate}; it must be at least 0 and below 1.");
        assert_eq!(text(Dropout::new(rate).call(&image, INFERENCE)), format!("Dropout: {wrong}"));
        assert!(call(GaussianDropout::new(rate), &image).contains(&wrong));
        assert!(call(SpatialDropout2D::new(rate), &image).contains(&wrong));
    }
    assert!(
        call(Dropout::new(0.5).noise_shape([1, 3, 1, 1]), &image)
            .contains("noise_shape [1, 3, 1, 1]")
    );
    assert!(call(GaussianNoise::new(-1.0), &image).contains("the stddev is -1"));
    assert!(call(LeakyRelu::new().negative_slope(-0.5), &image).contains("at least 0"));
    assert!(call(Relu::new().max_value(-1.0), &image).contains("max_value is -1"));
    assert!(call(Embedding::new(0, 3), &ints([1])).contains("input_dim is 0"));
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let x = zeros([2, 3, 4]);
    assert_eq!(
        call(Reshape::new([5, -1]), &x),
        "Reshape: the input is [2, 3, 4], and its examples do not fit the target_shape [5, -1]. The batch axis \
         stays; the other axes must keep the number of elements, and one size may be -1."
    );
    for wrong in [vec![-1, -1], vec![-2, 6], vec![13], vec![i64::MAX, 2], vec![0, -1]] {
        assert!(call(Reshape::new(wrong), &x).starts_with("Reshape:"));
    }
    assert_eq!(
        call(Permute::new([1, 3]), &x),
        "Permute: the input is [2, 3, 4] and dims [1, 3]; dims must have each axis of an example once, counted from 1."
    );
    assert!(call(Permute::new([0, 1]), &x).contains("once"));
    assert!(call(Prelu::new().shared_axes([3]), &x).contains("shared_axes [3]"));
    assert!(call(Prelu::new().shared_axes([0]), &x).contains("other than 0"));
    let mask = zeros([2, 4, 4]);
    let masked = Softmax::new().call(&x, INFERENCE.with_mask(Some(&mask)));
    assert_eq!(
        text(masked),
        "Softmax: the input is [2, 3, 4] and the mask [2, 4, 4]; the mask must broadcast to the input."
    );
    assert!(call(BatchNormalization::new().axis(3), &x).contains("axis 3"));
    assert_eq!(
        text(BatchNormalization::new().call(&x, TRAINING.with_mask(Some(&mask)))),
        "BatchNormalization: the input is [2, 3, 4] and the mask [2, 4, 4]; the mask must have all axes of the input but the \
         last."
    );
    assert_eq!(
        call(GroupNormalization::new().groups(3), &x),
        "GroupNormalization: the input is [2, 3, 4], for 3 groups along axis 2; the groups must divide the channels, and axis 0 \
         is that of the batch."
    );
    assert!(call(GroupNormalization::new().groups(-2), &x).contains("for -2 groups"));
    assert!(call(GroupNormalization::new().groups(1).axis(0), &x).contains("axis 0"));
    let average = GlobalAveragePooling1D::new().call(&x, INFERENCE.with_mask(Some(&mask)));
    assert!(text(average).contains("the mask must have the input's batch and steps"));
    assert!(call(GlobalMaxPooling1D::new(), &zeros([2, 0, 4])).contains("an empty input"));
    assert!(call(EinsumDense::new("abc,cd", 4), &x).contains("the equation must be"));
    assert!(call(EinsumDense::new("ab,bc->ac", 4), &x).contains("does not have the axes"));
    assert!(call(EinsumDense::new("abc,cd->abd", 4), &x).contains("a size for each letter"));
    assert!(call(EinsumDense::new("abc,cd->abd", [5, 4]), &x).contains("'b' has different sizes"));
    assert!(call(EinsumDense::new("abc,cd->abd", [None, None]), &x).contains("the size of 'd'"));
    assert!(call(EinsumDense::new("abc,cd->abe", [3, 4]), &x).contains("'e' of the result"));
    let biased = EinsumDense::new("abc,cd->abd", [3, 4]).bias_axes("c");
    assert!(call(biased, &x).contains("'c' of bias_axes"));
}

#[test]
fn layers_that_have_seen_one_size_refuse_another() {
    let layer = BatchNormalization::new();
    layer.call(&zeros([2, 3]), TRAINING).unwrap();
    assert!(text(layer.call(&zeros([2, 4]), TRAINING)).contains("its weight is [3]"));
    let layer = DepthwiseConv1D::new(2);
    layer.call(&zeros([2, 5, 3]), TRAINING).unwrap();
    assert!(text(layer.call(&zeros([2, 5, 4]), TRAINING)).contains("its weight is [2, 3, 1]"));
}

#[test]
fn merging_layers_say_what_does_not_fit() {
    let merge =
        |layer: &dyn Layer<[Tensor]>, inputs: &[Tensor]| text(layer.call(inputs, INFERENCE));
    let (a, b) = (zeros([2, 3]), zeros([2, 4]));
    assert_eq!(
        merge(&Add::new(), std::slice::from_ref(&a)),
        "Add: 1 inputs were given; it needs at least two."
    );
    assert!(merge(&Add::new(), &[a.clone(), b.clone()]).contains("[2, 3]"));
    let three = [a.clone(), a.clone(), a.clone()];
    assert_eq!(merge(&Subtract::new(), &three), "Subtract: 3 inputs were given; it needs two.");
    assert!(merge(&Concatenate::new(), &[]).contains("no inputs"));
    assert!(merge(&Concatenate::new().axis(2), &three).contains("axis 2"));
    assert_eq!(
        merge(&Dot::new(1), &[a.clone(), b]),
        "Dot: the inputs are [2, 3] and [2, 4] and the axes [1, 1]; batches and summed axes must have one size, and axis 0 is \
         that of the batch."
    );
    assert!(merge(&Dot::new(0), &three[..2]).contains("axis 0"));
    assert!(merge(&Dot::new(1), &three).contains("it needs two"));
}

#[test]
fn preprocessing_says_what_does_not_fit() {
    let x = zeros([1, 4, 4, 3]);
    assert!(call(RandomRotation::new(1.5), &x).contains("the factor is -1 to 1.5"));
    assert!(call(RandomZoom::new([-2.0, 0.0]), &x).contains("the height_factor is -2 to 0"));
    assert!(call(RandomContrast::new(2.0), &x).contains("must lie within 0 to 1"));
    let brightness = RandomBrightness::new(0.5).value_range([1.0, 1.0]);
    assert!(call(brightness, &x).contains("it must increase"));
    let bright = Solarization::new().addition_factor([0.0, 2.0]);
    assert!(call(bright, &x).contains("the addition_factor is 0 to 2; it must lie within 0 to 1"));
    let dark = Solarization::new().threshold_factor([-0.5, 0.0]);
    assert!(call(dark, &x).contains("the threshold_factor is -0.5 to 0"));
    assert!(call(Resizing::new(0, 4), &x).contains("the size is [0, 4]"));
    assert!(call(Resizing::new(2, 2), &zeros([1, 0, 4, 3])).contains("[0, 4]"));
    let both = Resizing::new(2, 2).crop_to_aspect_ratio(true).pad_to_aspect_ratio(true);
    assert!(call(both, &x).contains("exclude each other"));
    assert!(call(Discretization::new([2.0, 1.0]), &x).contains("they must increase"));
    assert!(call(CategoryEncoding::new(0), &ints([1])).contains("is 0"));
    let layer = Normalization::new();
    assert!(text(layer.adapt(&zeros([0, 3]))).contains("an empty batch"));
    assert!(text(layer.adapt_batches::<Tensor>([])).contains("no batches"));
    layer.adapt(&zeros([2, 3])).unwrap();
    assert!(text(layer.adapt(&zeros([2, 4]))).contains("its weight is [3]"));
    let given = Normalization::new().mean([1.0, 2.0]);
    assert!(call(given, &x).contains("2 means and 0 variances"));
    let given = Normalization::new().mean([1.0, 2.0]).variance([1.0, 2.0]);
    assert!(text(given.adapt(&x)).contains("adapt would change nothing"));
    assert!(call(given, &x).contains("one for each index of the axes: 3"));
}
