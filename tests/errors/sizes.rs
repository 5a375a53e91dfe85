//! Sizes beyond the limits of the adapter, the machine or a dtype.

use std::panic::catch_unwind;

use super::{floats, ints, text, values, zeros};

use ndarray::s;
use wgrad as tf;
use wgrad::keras::INFERENCE;
use wgrad::{
    Conv2dOptions, DType, Device, DeviceFault, Error, Padding, Pool2dOptions, Result, Tensor,
    Variable,
};

#[track_caller]
fn beyond(result: Result<Tensor>) {
    match result {
        Err(Error::Device(DeviceFault::Limit, text)) => {
            assert!(text.contains("binds at most"), "{text}");
        }
        Err(other) => panic!("{other:?}"),
        Ok(x) => panic!("a tensor of shape {:?} was made", x.shape()),
    }
}

#[test]
fn tensors_beyond_the_adapter_are_refused_before_anything_is_allocated() {
    let device = Device::new().unwrap();
    device.scope(|| {
        let one = Tensor::ones([1]).unwrap();
        one.to_vec::<f32>().unwrap();
        let before = device.stats();
        beyond(Tensor::zeros([1 << 40]));
        beyond(Tensor::zeros([1 << 20, 1 << 20]));
        beyond(one.broadcast_to([1 << 40]));
        beyond(one.tile(&[1 << 40]));
        beyond(one.pad(&[(1 << 40, 0)]));
        beyond(tf::range(0.0, 1e12, 1.0));
        beyond(Tensor::eye(1 << 20));
        beyond(tf::random::Generator::from_seed(1).uniform([1 << 40]));
        let column = Tensor::zeros([1 << 20, 1]).unwrap();
        beyond(column.matmul(column.transpose(()).unwrap()));
        drop(column);
        let after = device.stats();
        let work = |s: &tf::DeviceStats| (s.buffers, s.live_bytes, s.peak_bytes, s.submits);
        assert_eq!(work(&before), work(&after), "nothing may be allocated or submitted");
        // The device remains usable.
        assert_eq!(values(one.add(1.0)), [2.0]);
    });
}

/// In debug builds an overflow would panic, in release builds the size would wrap to a small one.
#[test]
fn sizes_beyond_the_machine_are_refused() {
    const HUGE: usize = usize::MAX;
    let x = zeros([2]);
    beyond(Tensor::zeros([HUGE, HUGE]));
    beyond(Tensor::zeros([HUGE / 2 + 1, 2]));
    beyond(x.broadcast_to([HUGE, 2]));
    beyond(zeros([1, 1]).broadcast_to([HUGE, HUGE]));
    assert!(matches!(Tensor::from_slice(&[1.0f32], [HUGE, 2]), Err(Error::Shape(_))));
    assert!(matches!(x.reshape([i64::MAX, 4]), Err(Error::Shape(_))));
    assert!(x.tile(&[HUGE]).is_err());
    assert!(x.pad(&[(HUGE, 0)]).is_err());
    assert!(x.pad(&[(HUGE / 2, HUGE / 2)]).is_err());
    assert!(x.split_sizes(&[HUGE, 3], 0).is_err());
    assert!(x.slice(&[HUGE], &[i64::MAX]).is_err());
    assert!(x.slice(&[1], &[-2]).is_err());
    assert!(x.strided_slice(s![isize::MIN]).is_err());
    assert_eq!(x.strided_slice(s![isize::MIN..isize::MAX;isize::MIN]).unwrap().shape(), [1]);
    assert!(x.reduce_sum(i64::MIN).is_err());
    assert!(x.expand_dims(i64::MAX).is_err());
    assert!(tf::one_hot(&ints([1]), HUGE).is_err());
    // An axis of size 0 makes a tensor empty, but its other sizes are still multiplied.
    let wide = Tensor::zeros([1 << 29, 1 << 29, 0]).unwrap();
    assert!(values(wide.add(1.0)).is_empty());
    assert!(values(wide.transpose(())).is_empty());
    for shape in [[HUGE, HUGE, 0], [0, HUGE, HUGE], [0, 1 << 30, 1 << 30]] {
        assert_eq!(
            text(Tensor::zeros(shape)),
            format!(
                "Fill: a tensor of shape {shape:?} has no elements, and its other sizes multiply to more than \
                 4611686018427387903 bytes. Use smaller ones."
            )
        );
    }
}

/// Verifies the test setup: in debug builds an overflow panics, wherever it occurs.
#[test]
fn overflows_are_seen_in_debug_builds() {
    let most = std::hint::black_box(usize::MAX);
    assert_eq!(catch_unwind(|| most + 1).is_err(), cfg!(debug_assertions));
}

#[test]
fn sizes_are_added_and_multiplied_with_checks() {
    const HUGE: usize = usize::MAX;
    let nothing = zeros([0, 3]);
    assert_eq!(nothing.split(4, 0).unwrap().len(), 4);
    assert_eq!(
        text(nothing.split(HUGE >> 8, 0)),
        "Split: [0, 3] would become 72057594037927935 tensors, and one call makes 1048576 at most. Take what is needed \
         with slice or gather."
    );
    let long = zeros([1 << 40, 0]);
    assert_eq!(
        text(long.unstack(0)),
        "Unpack: [1099511627776, 0] would become 1099511627776 tensors, and one call makes 1048576 at most. Take what is \
         needed with slice or gather."
    );
    assert!(text(long.split(1 << 40, 0)).starts_with("Split: [1099511627776, 0] would become"));

    // Concatenations of tensors without elements, and values computed from them.
    let most = zeros([HUGE >> 4, 0]);
    let refused = "has no elements, and its other sizes multiply to more than";
    for result in [
        tf::concat([&most, &most, &most, &most, &most], 0),
        most.tile(&[9, 1]),
        most.pad(&[(HUGE >> 16, 0), (9, 9)]),
        tf::stack([&most; 9], 0),
        most.gather(&ints([0; 9]), 1),
        most.expand_dims(0).unwrap().broadcast_to([99, HUGE >> 4, 0]),
        nothing
            .unsorted_segment_sum(&tf::constant([0; 0]).unwrap(), HUGE)
            .map(|x| x.reshape([-1, 0]).unwrap()),
        zeros([0, 1 << 33])
            .matmul_with(
                zeros([1 << 33, 0]),
                wgrad::MatmulOptions::new().transpose_a(true).transpose_b(true),
            )
            .and(most.tile(&[9, 1])),
    ] {
        let text = text(result);
        assert!(text.contains(refused) || text.contains("binds at most"), "{text}");
    }
    for x in [&most, &long, &zeros([0, 1 << 30, 1 << 28])] {
        assert_eq!(values(x.reduce_sum(wgrad::Axes::ALL.keepdims(true))), [0.0]);
        assert_eq!(values(x.reduce_prod(())), [1.0]);
        assert!(x.strided_slice(s![isize::MIN]).is_err());
        assert!(x.strided_slice(s![..;2]).unwrap().is_empty());
        assert!(x.argmax(0).is_err() || x.argmax(0).unwrap().is_empty());
    }

    use tf::keras::Layer;
    use tf::keras::layers::{AveragePooling2D, Conv2D, Dense, Flatten, MaxPooling2D};
    let flat = zeros([0, 1 << 30, 1 << 28]);
    assert_eq!(Flatten::new().call(&flat, INFERENCE).unwrap().shape(), [0, 1 << 58]);
    let image = zeros([1, 5, 5, 1]);
    beyond(Conv2D::new(HUGE, [1, 1]).call(&image, INFERENCE));
    beyond(Dense::new(HUGE).call(&zeros([1, 2]), INFERENCE));
    assert!(Dense::new(3).call(&zeros([1 << 30, 1 << 28, 0]), INFERENCE).is_err());
    for layer in [
        &MaxPooling2D::new([HUGE, HUGE]) as &dyn Layer,
        &AveragePooling2D::new([1, HUGE]),
        &MaxPooling2D::new([2, 2]).strides([HUGE, 1]),
        &Conv2D::new(2, [HUGE, HUGE]),
        &Conv2D::new(1, [2, 2]).strides([1, HUGE]),
        &Conv2D::new(1, [2, 2]).dilation_rate([HUGE, HUGE]),
    ] {
        assert!(matches!(layer.call(&image, INFERENCE), Err(Error::Shape(_))));
    }

    let digits = tf::data::drawn_digits::draw_digits(3, 1);
    let digits = tf::data::Dataset::from_tensor_slices(digits).unwrap();
    let whole = digits.batch(HUGE);
    let whole: Vec<usize> = whole.iter().map(|batch| batch.unwrap().0.shape()[0]).collect();
    assert_eq!(whole, [3]);
    assert_eq!(
        text(digits.batch(0).iter().next().unwrap()),
        "batch: batch_size is 0; a batch needs at least one element."
    );
}

#[test]
fn a_count_of_steps_does_not_wrap() {
    use tf::keras::optimizers::{Adam, Optimizer, Sgd};
    let w = [Variable::new(floats([1.0]))];
    let step = |optimizer: &dyn Optimizer| {
        optimizer.set_iterations(u64::MAX);
        optimizer.apply_gradients(&[Some(floats([1.0]))], &w)
    };
    assert_eq!(
        text(step(&Sgd::new(0.1))),
        "sgd: 18446744073709551615 steps were made, and the count cannot be larger. Set the count with \
         set_iterations."
    );
    let adam = Adam::new(0.1);
    assert!(step(&adam).is_err());
    adam.set_iterations(u64::MAX - 1);
    adam.apply_gradients(&[Some(floats([1.0]))], &w).unwrap();
    assert_eq!(adam.iterations(), u64::MAX);
}

#[test]
fn integers_that_a_dtype_does_not_hold_are_refused() {
    assert_eq!(
        text(tf::range(0, 4_000_000_000u32, 1_000_000_000)),
        "Range: from 0 to 4000000000 in steps of 1000000000 the last number is 3000000000, and i32 holds -2147483648 to \
         2147483647. Give one of the three as a float."
    );
    assert_eq!(
        text(tf::range(0, -3_000_000_000i64, -1)),
        "Range: from 0 to -3000000000 in steps of -1 the last number is -2999999999, and i32 holds -2147483648 to \
         2147483647. Give one of the three as a float."
    );
    // The limit itself is not an element.
    let most = tf::range(0, 1i64 << 31, 1 << 30).unwrap();
    assert_eq!(most.to_vec::<i32>().unwrap(), [0, 1 << 30]);
    let least =
        tf::range(i64::from(i32::MAX), i64::from(i32::MIN) - 1, i64::from(i32::MIN)).unwrap();
    assert_eq!(least.to_vec::<i32>().unwrap(), [i32::MAX, -1]);
    assert!(tf::range(0, usize::MAX, usize::MAX).is_err());
    assert!(tf::range(5, 0, 1).unwrap().is_empty());
    assert_eq!(values(tf::range(0.0, 4_000_000_000u32, 1_000_000_000)), [0.0, 1e9, 2e9, 3e9]);

    assert_eq!(
        text(ints([1]).add(usize::MAX)),
        "AddV2: the scalar 18446744073709551615 cannot join a tensor of dtype i32: it is outside -2147483648 to \
         2147483647; cast the tensor to f32 first."
    );
    assert!(Tensor::full([2], usize::MAX).is_err());
    assert!(Tensor::full_of([2], usize::MAX, DType::U32).is_err());
    assert_eq!(values(floats([1.0]).multiply(usize::MAX)), [18446744073709551615f32]);
}

#[test]
fn absurd_windows_are_refused_or_empty() {
    const HUGE: usize = usize::MAX;
    let (image, filter) = (zeros([1, 5, 5, 1]), zeros([2, 2, 1, 1]));
    let never_panics = |options: Conv2dOptions| image.conv2d(&filter, options).map(|y| y.len());
    for padding in [Padding::Valid, Padding::Same] {
        for [strides, dilations] in
            [[[0, 1], [1, 1]], [[1, 1], [0, 1]], [[HUGE, HUGE], [1, 1]], [[1, 1], [HUGE, HUGE]]]
        {
            let result = never_panics(
                Conv2dOptions::new().strides(strides).padding(padding).dilations(dilations),
            );
            if strides.contains(&0) || dilations.contains(&0) {
                assert!(matches!(result, Err(Error::Shape(_))));
            }
        }
    }
    let pools = [[0, 2], [2, 0], [HUGE, HUGE]];
    for window in pools {
        let options = Pool2dOptions::new().strides([2, 2]);
        let result = image.max_pool2d(window, options).map(|y| y.len());
        assert!(matches!(result, Err(Error::Shape(_)) | Ok(0)), "{window:?}: {result:?}");
    }
}
