//! Convolutions and pools of every kind that are refused, and valid edge cases.

use super::{text, values, zeros};

use wgrad::{
    Conv1dOptions, Conv2dOptions, Conv2dTransposeOptions, Conv3dOptions, Conv3dTransposeOptions,
    ConvolutionOptions, DType, Padding, Pool1dOptions, Pool2dOptions, Pool3dOptions, PoolOptions,
    PoolingType,
};

const HUGE: usize = usize::MAX;

#[test]
fn channels_and_groups_that_do_not_fit_are_refused() {
    let six = zeros([1, 4, 4, 6]);
    assert_eq!(
        text(six.conv2d(zeros([3, 3, 2, 4]), Conv2dOptions::new())),
        "Conv2D: the 6 channels of the images [1, 4, 4, 6] are 3 groups of 2, which cannot share the 4 filters of \
         [3, 3, 2, 4]; the number of filters must be a multiple of the number of groups."
    );
    assert!(
        text(six.conv2d(zeros([3, 3, 4, 4]), Conv2dOptions::new())).contains("or be a multiple")
    );
    assert!(text(six.conv2d(zeros([3, 3, 0, 4]), Conv2dOptions::new())).contains("expect 0"));
    assert!(text(six.conv2d(zeros([3, 3, 1, 4]), Conv2dOptions::new())).contains("6 groups of 1"));
    assert!(
        text(six.depthwise_conv2d(zeros([3, 3, 2, 1]), Conv2dOptions::new()))
            .ends_with("must equal the third of the filters.")
    );
    assert_eq!(
        text(zeros([1, 2, 4, 4, 6]).conv3d(zeros([1, 3, 3, 2, 4]), Conv3dOptions::new())),
        "Conv3D: the volumes [1, 2, 4, 4, 6] have 6 channels and the filters [1, 3, 3, 2, 4] expect 2; the last axis of \
         the volumes must equal the fourth of the filters."
    );
    assert_eq!(
        text(six.separable_conv2d(zeros([3, 3, 6, 2]), zeros([1, 1, 6, 4]), Conv2dOptions::new())),
        "SeparableConv2D: the pointwise filter is [1, 1, 6, 4]; it must be [1, 1, 12, O], as each position has 12 \
         channels after the depthwise convolution."
    );
}

#[test]
fn ranks_are_checked() {
    let x = zeros([1, 4, 4, 6]);
    assert_eq!(
        text(x.conv1d(zeros([3, 6, 2]), Conv1dOptions::new())),
        "Conv1D: the input is [1, 4, 4, 6] and the filters [3, 6, 2]; the input needs the 3 axes [N,W,C] and the \
         filters [K,C,O]. Use expand_dims or reshape."
    );
    let options = Conv2dTransposeOptions::new();
    assert!(
        text(x.conv2d_transpose(zeros([3, 3, 6]), options)).contains("the filters [KH,KW,O,C]")
    );
    assert_eq!(
        text(zeros([4, 4]).convolution(zeros([3, 3]), ConvolutionOptions::new())),
        "Convolution: the input is [4, 4]; it needs a batch, one to three axes of space and channels."
    );
    assert_eq!(
        text(x.convolution(zeros([3, 3, 6, 1]), ConvolutionOptions::new().strides([1, 2, 3]))),
        "Convolution: [1, 2, 3] has 3 numbers for 2 axes of space; give one for each, or one for all."
    );
    assert!(matches!(
        zeros([1, 4, 2])
            .cast(DType::F16)
            .and_then(|x| x.conv1d(zeros([1, 2, 2]), Conv1dOptions::new())),
        Err(wgrad::Error::DType(_))
    ));
    let whole = zeros([1, 2, 2, 2, 1]).cast(DType::I32).unwrap();
    assert!(text(whole.conv3d(&whole, Conv3dOptions::new())).contains("i32"));
    assert!(text(whole.conv3d_transpose(&whole, Conv3dTransposeOptions::new())).contains("i32"));
}

#[test]
fn explicit_paddings_are_checked() {
    let x = zeros([1, 4, 4, 2]);
    let w = zeros([3, 3, 2, 2]);
    assert_eq!(
        text(x.conv2d(&w, Conv2dOptions::new().padding([(1, 1)]))),
        "Conv2D: the padding [(1, 1)] has 1 pairs and the input 2 axes of space; give one pair for each of them, and \
         none for batch and channels."
    );
    assert_eq!(
        text(x.conv2d(&w, Conv2dOptions::new().padding([(1, HUGE), (0, 0)]))),
        "Conv2D: the padding [(1, 18446744073709551615), (0, 0)] is too wide; with 2 channels it may have at most \
         268435455 positions."
    );
    assert!(text(x.conv1d(zeros([1, 1, 1]), Conv1dOptions::new())).contains("needs the 3 axes"),);
    let signal = zeros([1, 4, 2]);
    let filter = zeros([3, 2, 2]);
    let options = Conv1dOptions::new().padding([(1, 1), (1, 1)]);
    assert!(text(signal.conv1d(&filter, options)).contains("2 pairs and the input 1 axes"));
    let volume = zeros([1, 4, 4, 4, 2]);
    let block = zeros([2, 2, 2, 2, 2]);
    let options = Conv3dOptions::new().padding([(1, 1), (1, 1)]);
    assert!(text(volume.conv3d(&block, options)).contains("2 pairs and the input 3 axes"));
}

#[test]
fn strides_and_dilations_are_checked() {
    let volume = zeros([1, 4, 4, 4, 2]);
    let block = zeros([2, 2, 2, 2, 2]);
    let base = Conv3dOptions::new();
    for options in [
        base.strides([0, 1, 1]),
        base.dilations([0, 1, 1]),
        base.strides([HUGE, 1, 1]),
        base.dilations([HUGE, 1, 1]),
    ] {
        assert!(text(volume.conv3d(&block, options)).contains("along the depth"), "{options:?}");
    }
    for options in [base.strides([1, 0, 1]), base.dilations([1, 1, HUGE])] {
        assert!(text(volume.conv3d(&block, options)).contains("must all be at least 1"));
    }
    let base = Conv3dTransposeOptions::new();
    for options in [base.strides([0, 1, 1]), base.strides([HUGE; 3]), base.dilations([1, HUGE, 1])]
    {
        assert!(volume.conv3d_transpose(&block, options).is_err(), "{options:?}");
    }
    let x = zeros([1, 4, 4, 2]);
    let base = Conv2dTransposeOptions::new();
    for options in [base.strides([0, 1]), base.strides([HUGE; 2]), base.dilations([1, HUGE])] {
        assert!(x.conv2d_transpose(zeros([2, 2, 2, 2]), options).is_err(), "{options:?}");
    }
    assert!(
        text(x.conv2d_transpose(zeros([2, 2, 2, 2]), base.strides([HUGE; 2]))).contains("2^64")
    );
    // Every size fits, but their product does not.
    assert!(x.conv2d_transpose(zeros([2, 2, 2, 2]), base.strides([1 << 28; 2])).is_err());
}

#[test]
fn results_of_transposed_convolutions_must_fit() {
    let x = zeros([2, 4, 4, 3]);
    let w = zeros([3, 3, 5, 3]);
    let base = Conv2dTransposeOptions::new().strides([2, 2]);
    assert_eq!(
        text(x.conv2d_transpose(&w, base.output_shape([2, 9, 8, 5]))),
        "Conv2DTranspose: with these strides, padding and filters a convolution of [2, 9, 8, 5] does not give \
         [2, 4, 4, 3], which the input is; leave out output_shape to get the one that fits, or choose one that does."
    );
    assert!(
        text(x.conv2d_transpose(&w, base.output_shape([3, 8, 8, 5]))).contains("does not give")
    );
    assert!(text(x.conv2d_transpose(&w, base.output_shape([2, 8, 8, 4]))).contains("expect 5"));
    assert_eq!(
        text(x.conv2d_transpose(zeros([3, 3, 3, 5]), base)),
        "Conv2DTranspose: the input [2, 4, 4, 3] has 3 channels and the filters [3, 3, 3, 5] expect 5; the last axes of \
         both must be equal. The filters' axis before it is of the result."
    );
    let volume = zeros([2, 2, 4, 4, 3]);
    let block = zeros([2, 3, 3, 5, 3]);
    let base = Conv3dTransposeOptions::new();
    for shape in [[2, 3, 4, 4, 5], [1, 2, 4, 4, 5], [2, 2, 4, 5, 5], [2, 2, 4, 4, 10]] {
        let refused = text(volume.conv3d_transpose(&block, base.output_shape(shape)));
        assert!(refused.contains("does not give"), "{shape:?}: {refused}");
    }
}

#[test]
fn empty_convolutions() {
    let none = zeros([0, 4, 4, 3]);
    let options = Conv2dTransposeOptions::new().strides([2, 2]);
    let spread = none.conv2d_transpose(zeros([3, 3, 5, 3]), options).unwrap();
    assert_eq!(spread.shape(), [0, 8, 8, 5]);
    let volume = zeros([0, 3, 4, 4, 3]);
    let y = volume.conv3d(zeros([2, 2, 2, 3, 5]), Conv3dOptions::new()).unwrap();
    assert_eq!(y.shape(), [0, 2, 3, 3, 5]);
    // No window fits: zeros.
    let small = zeros([1, 2, 2, 1]);
    let valid = Conv2dOptions::new();
    assert_eq!(small.conv2d(zeros([3, 3, 1, 1]), valid).unwrap().shape(), [1, 0, 0, 1]);
    // No channels: empty sums.
    let bare = zeros([1, 2, 2, 0]);
    assert_eq!(values(bare.conv2d(zeros([1, 2, 0, 1]), valid)), [0.0, 0.0]);
    let same = Conv3dOptions::new().padding(Padding::Same);
    let deep = zeros([1, 0, 2, 2, 1]).conv3d(zeros([3, 1, 1, 1, 1]), same).unwrap();
    assert_eq!(deep.shape(), [1, 0, 2, 2, 1]);
    // Other axes of an empty tensor may be of any size.
    let wide = zeros([1 << 20, 1 << 20, 0, 1, 1]);
    assert_eq!(wide.conv3d(zeros([3, 1, 1, 1, 1]), same).unwrap().shape()[2], 0);
}

#[test]
fn pools_that_are_refused() {
    let x = zeros([1, 4, 4, 2]);
    let signal = zeros([1, 4, 2]);
    let volume = zeros([1, 4, 4, 4, 2]);
    assert_eq!(
        text(x.max_pool1d(2, Pool1dOptions::new())),
        "MaxPool1D: the input is [1, 4, 4, 2]; it needs the 3 axes [N,W,C]. Use expand_dims or reshape."
    );
    assert!(
        text(x.avg_pool3d([2; 3], Pool3dOptions::new())).starts_with("AvgPool3D: the input is")
    );
    assert_eq!(
        text(signal.avg_pool1d(0, Pool1dOptions::new())),
        "AvgPool1D: the window [0] and the strides [0] must all be in 1 to 1073741823."
    );
    assert!(text(signal.max_pool1d(HUGE, Pool1dOptions::new())).contains("must all be in"));
    let strides = Pool3dOptions::new().strides([1, 0, 1]);
    assert!(text(volume.max_pool3d([1; 3], strides)).contains("[1, 0, 1]"));
    assert_eq!(
        text(x.max_pool2d([2, 2], Pool2dOptions::new().padding([(0, 0), (1, 2)]))),
        "MaxPool: the padding (1, 2) is not smaller than the window [2, 2], which would lie in the padding only; use \
         less padding."
    );
    assert!(
        text(signal.max_pool1d(2, Pool1dOptions::new().padding([(2, 0)])))
            .contains("is not smaller than the window")
    );
    assert!(
        text(volume.avg_pool3d([2; 3], Pool3dOptions::new().padding([(1, 0)])))
            .contains("1 pairs and the input 3 axes")
    );
    let whole = signal.cast(DType::I32).unwrap();
    assert!(text(whole.max_pool1d(2, Pool1dOptions::new())).contains("i32"));
    let pool = |window: &[usize], options| text(x.pool(window, PoolingType::Max, options));
    assert_eq!(
        pool(&[2], PoolOptions::new().dilations([2]).padding(Padding::Same)),
        "Pool: the dilations [2, 2] leave gaps in the windows, and such windows cannot reach beyond the ends; use \
         Padding::Valid, and pad before."
    );
    assert!(pool(&[2, 2, 2], PoolOptions::new()).contains("3 numbers for 2 axes"));
    assert!(pool(&[2], PoolOptions::new().dilations([0])).contains("must all be in"));
    assert!(
        text(zeros([2, 2]).pool(&[2], PoolingType::Avg, PoolOptions::new()))
            .contains("one to three axes")
    );
    assert_eq!(
        text(x.adaptive_avg_pool2d([0, 2])),
        "AdaptiveAvgPool2D: [4, 4] positions cannot be pooled to [0, 2]; all of these must be in 1 to 1073741823."
    );
    assert!(text(zeros([1, 0, 2]).adaptive_max_pool1d([1])).contains("cannot be pooled"));
    assert!(text(whole.adaptive_max_pool1d([1])).contains("i32"));
    assert!(text(x.adaptive_avg_pool3d([1; 3])).contains("[N,D,H,W,C]"));
    assert_eq!(
        text(x.adaptive_avg_pool2d([1 << 29, 1 << 29])),
        "AdaptiveAvgPool2D: 4 positions do not divide into 536870912 windows of one size, and the host lists where \
         each lies; at most 16777216 positions or windows are possible. Choose a number that divides."
    );
}

#[test]
fn dilations_say_what_does_not_fit() {
    let images = zeros([1, 4, 4, 2]);
    let call = |w: &[usize]| {
        let w = wgrad::Tensor::zeros(w).unwrap();
        text(images.dilation2d(&w, Conv2dOptions::new()))
    };
    assert!(
        call(&[2, 2, 2, 1]).contains("images need the four axes [N,H,W,C] and filters [KH,KW,C]")
    );
    assert!(
        call(&[2, 2, 3])
            .contains("the images [1, 4, 4, 2] have 2 channels and the filters [2, 2, 3] 3")
    );
    assert!(call(&[0, 2, 2]).contains("must all be at least 1"));
    assert!(call(&[200, 200, 2]).contains("too many taps"));
}
