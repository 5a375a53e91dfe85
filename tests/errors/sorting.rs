//! Sorting, segments, scatter and counting: errors with their messages, and edge cases.

use super::{floats, ints, same, text, values, zeros};

use wgrad as tf;
use wgrad::{BincountOptions, DType, GatherOptions, Side, SortOptions, Tensor};

fn grid<const N: usize, const K: usize>(values: [[i32; K]; N]) -> Tensor {
    tf::constant(values).unwrap()
}

fn truths<const N: usize>(values: [bool; N]) -> Tensor {
    tf::constant(values).unwrap()
}

fn indices(x: tf::Result<Tensor>) -> Vec<i32> {
    x.unwrap().to_vec().unwrap()
}

#[test]
fn messages_name_the_op_and_the_remedy() {
    let x = zeros([2, 3]);
    let ids = ints([0, 1]);
    let texts = [
        (
            text(x.sort(2)),
            "Sort: axis 2 does not exist in a tensor of rank 2; it must be in -2 to 1.",
        ),
        (
            text(zeros([]).argsort(0)),
            "ArgSort: axis 0 does not exist in a tensor of rank 0; a scalar has no axes.",
        ),
        (
            text(truths([true]).sort(0)),
            "Sort: the dtype bool is not supported here; use f32, f16, i32, u32. Cast the tensor first.",
        ),
        (
            text(x.top_k(4)),
            "TopKV2: k is 4 and the last axis of [2, 3] has 3 elements; k must not be larger.",
        ),
        (text(zeros([]).top_k(0)), "TopKV2: the tensor is a scalar; it needs at least one axis."),
        (
            text(ids.in_top_k(&zeros([3, 4]), 1)),
            "InTopKV2: targets is [2] and predictions [3, 4]; they must be [batch] and [batch, classes].",
        ),
        (
            text(x.searchsorted(&zeros([3, 1]), Side::Left)),
            "SearchSorted: the rows are [2, 3] and the values [3, 1]; all axes but the last must be as many rows.",
        ),
        (
            text(x.gather_nd(&grid([[0, 0, 0]]))),
            "GatherNd: params is [2, 3], indices [1, 3] and batch_dims 0: the first 0 axes must agree, and the last axis of \
             indices names that many more of params, at most 2.",
        ),
        (
            text(x.gather_nd_with(&grid([[0]]), GatherOptions::new().batch_dims(1))),
            "GatherNd: params is [2, 3], indices [1, 1] and batch_dims 1: the first 1 axes must agree, and the last axis of \
             indices names that many more of params, at most 1.",
        ),
        (
            text(x.gather_nd(&floats([0.0]))),
            "GatherNd (the indices): the dtype f32 is not supported here; use i32. Cast the tensor first.",
        ),
        (
            text(x.tensor_scatter_nd_update(&grid([[0], [1]]), &zeros([2, 2]))),
            "TensorScatterUpdate: the shape is [2, 3], indices [2, 1] and updates [2, 2]: the last axis of indices names \
             leading axes, and updates must be indices without its last axis, then the axes that are not named.",
        ),
        (
            text(tf::scatter_nd(&tf::constant(1).unwrap(), &zeros([2]), [3])),
            "ScatterNd: indices is a scalar; its last axis holds the coordinates.",
        ),
        (
            text(tf::scatter_nd(&grid([[0, 0]]), &zeros([1]), [1 << 20, 1 << 20])),
            "ScatterNd: the indices name axes of [1048576, 1048576], 1099511627776 slices in all; an i32 counts to \
             2147483647.",
        ),
        (
            text(x.unsorted_segment_max(&ints([0, 1, 2]), 3)),
            "UnsortedSegmentMax: segment_ids is [3] and data [2, 3]; the ids need the shape of data's first axes.",
        ),
        (
            text(ints([1, 2]).unsorted_segment_mean(&ids, 2)),
            "UnsortedSegmentMean: the dtype i32 is not supported here; use f32, f16. Cast the tensor first.",
        ),
        (
            text(x.segment_sum(&ints([1, 0]))),
            "SegmentSum: segment_ids begins with 1 and decreases at 1 positions; it must begin with 0 or more and \
             never decrease. unsorted_segment_* take ids in any order.",
        ),
        (
            text(x.segment_max(&ints([0]))),
            "SegmentMax: segment_ids is [1] and data [2, 3]; the ids need one axis, as long as data's first.",
        ),
        (
            text(ints([3, -1]).bincount(BincountOptions::new())),
            "Bincount: the smallest number is -1; none may be negative.",
        ),
        (
            text(ids.bincount(BincountOptions::new().weights(zeros([3])))),
            "Bincount: the weights are [3] and the numbers [2]; the shapes must be equal.",
        ),
        (
            text(x.boolean_mask(&truths([true, false]), 1)),
            "BooleanMask: the mask is [2] and the tensor [2, 3]; from axis 1 on the tensor's axes must be those of the mask, \
             which has at least one.",
        ),
        (
            text(x.unique()),
            "Unique: the tensor is [2, 3]; it needs exactly one axis. Reshape it first: x.reshape([-1]).",
        ),
        (
            text(x.histogram_fixed_width([1.0, 1.0], 3)),
            "HistogramFixedWidth: the range is 1 to 1 and nbins 3; it needs finite numbers, the second larger, and 1 to \
             2147483647 bins.",
        ),
        (
            text(zeros([2, 2]).cast(DType::I32).unwrap().invert_permutation()),
            "InvertPermutation: the tensor is [2, 2]; a permutation has one axis.",
        ),
    ];
    for (got, want) in texts {
        assert_eq!(got, want);
    }
}

#[test]
fn nan_is_the_largest_and_ties_keep_their_order() {
    let x = floats([2.0, f32::NAN, -0.0, 0.0, f32::NEG_INFINITY, 2.0]);
    assert_eq!(indices(x.argsort(0)), [4, 2, 3, 0, 5, 1]);
    let down = SortOptions::new().descending(true);
    assert_eq!(indices(x.argsort_with(0, down)), [1, 0, 5, 2, 3, 4]);
    let nan = f32::NAN;
    same(&values(x.sort(0)), &[f32::NEG_INFINITY, 0.0, 0.0, 2.0, 2.0, nan]);
    same(&values(x.top_k(3).map(|(values, _)| values)), &[nan, 2.0, 2.0]);
}

#[test]
fn indices_out_of_range_drop_their_rows() {
    let x = floats([1.0, 2.0, 3.0]);
    let at = grid([[-1], [3], [i32::MAX], [i32::MIN], [1]]);
    let updates = floats([10.0, 20.0, 30.0, 40.0, 50.0]);
    same(&values(x.tensor_scatter_nd_update(&at, &updates)), &[1.0, 50.0, 3.0]);
    same(&values(x.tensor_scatter_nd_add(&at, &updates)), &[1.0, 52.0, 3.0]);
    same(&values(x.tensor_scatter_nd_sub(&at, &updates)), &[1.0, -48.0, 3.0]);
    same(&values(x.tensor_scatter_nd_max(&at, &updates)), &[1.0, 50.0, 3.0]);
    same(&values(x.tensor_scatter_nd_min(&at, &updates)), &[1.0, 2.0, 3.0]);
    same(&values(x.gather_nd(&at)), &[0.0, 0.0, 0.0, 0.0, 2.0]);
    // One coordinate in range does not make the other valid.
    let table = zeros([2, 3]).add(1.0).unwrap();
    same(
        &values(table.gather_nd(&grid([[0, 3], [1, -1], [-1, 4], [2, 0], [1, 2]]))),
        &[0.0, 0.0, 0.0, 0.0, 1.0],
    );
}

#[test]
fn the_last_of_several_updates_counts() {
    let at = grid([[1], [0], [1], [1]]);
    let x = zeros([2]);
    same(&values(x.tensor_scatter_nd_update(&at, &floats([1.0, 2.0, 3.0, 4.0]))), &[2.0, 4.0]);
    let flags = truths([false, false]);
    let y = flags.tensor_scatter_nd_update(&grid([[1]]), &truths([true])).unwrap();
    assert_eq!(y.to_vec::<bool>().unwrap(), [false, true]);
}

#[test]
fn segments_without_rows_have_tensorflows_identities() {
    let (x, ids) = (floats([1.0, 4.0]), ints([2, 2]));
    same(&values(x.unsorted_segment_sum(&ids, 3)), &[0.0, 0.0, 5.0]);
    same(&values(x.unsorted_segment_prod(&ids, 3)), &[1.0, 1.0, 4.0]);
    same(&values(x.unsorted_segment_mean(&ids, 3)), &[0.0, 0.0, 2.5]);
    same(&values(x.unsorted_segment_sqrt_n(&ids, 3)), &[0.0, 0.0, 5.0 / 2f32.sqrt()]);
    same(&values(x.unsorted_segment_max(&ids, 3)), &[f32::MIN, f32::MIN, 4.0]);
    same(&values(x.unsorted_segment_min(&ids, 3)), &[f32::MAX, f32::MAX, 1.0]);
    same(&values(x.segment_max(&ids)), &[0.0, 0.0, 4.0]);
    same(&values(x.segment_min(&ids)), &[0.0, 0.0, 1.0]);
    same(&values(x.segment_prod(&ids)), &[1.0, 1.0, 4.0]);
    let x = ints([-3, 5]);
    assert_eq!(indices(x.unsorted_segment_max(&ids, 3)), [i32::MIN, i32::MIN, 5]);
    assert_eq!(indices(x.unsorted_segment_min(&ids, 3)), [i32::MAX, i32::MAX, -3]);
    let x = x.cast(DType::U32).unwrap();
    let least = x.unsorted_segment_max(&ids, 3).unwrap().to_vec::<u32>().unwrap();
    assert_eq!(least, [0, 0, (-3i32) as u32]);
    // NaN is the result, and infinities are ordinary numbers.
    let x = floats([f32::NAN, 1.0, f32::NEG_INFINITY, f32::NEG_INFINITY]);
    same(&values(x.unsorted_segment_max(&ints([0, 0, 0, 1]), 2)), &[f32::NAN, f32::MIN]);
    same(&values(x.unsorted_segment_min(&ints([0, 0, 0, 1]), 2)), &[f32::NAN, f32::NEG_INFINITY]);
}

#[test]
fn tensors_without_elements_give_tensorflows_results() {
    let none = zeros([0]);
    let no_ids = none.cast(DType::I32).unwrap();
    let shape = |x: tf::Result<Tensor>| x.unwrap().shape().to_vec();
    assert_eq!(shape(none.sort(0)), [0]);
    assert_eq!(shape(zeros([2, 0]).argsort(1)), [2, 0]);
    assert_eq!(shape(zeros([2, 3]).top_k(0).map(|(_, indices)| indices)), [2, 0]);
    assert_eq!(shape(none.searchsorted(&none, Side::Right)), [0]);
    assert_eq!(indices(none.searchsorted(&zeros([2]), Side::Left)), [0, 0]);
    assert_eq!(shape(zeros([3, 2]).gather_nd(&no_ids.reshape([0, 1]).unwrap())), [0, 2]);
    same(&values(tf::scatter_nd(&no_ids.reshape([0, 1]).unwrap(), &none, [2])), &[0.0, 0.0]);
    let x = floats([1.0, 2.0]);
    let nowhere = no_ids.reshape([0, 1]).unwrap();
    same(&values(x.tensor_scatter_nd_update(&nowhere, &none)), &[1.0, 2.0]);
    same(&values(x.tensor_scatter_nd_max(&nowhere, &none)), &[1.0, 2.0]);
    same(&values(none.unsorted_segment_sum(&no_ids, 2)), &[0.0, 0.0]);
    same(&values(none.unsorted_segment_max(&no_ids, 1)), &[f32::MIN]);
    assert_eq!(shape(none.segment_sum(&no_ids)), [0]);
    assert_eq!(indices(no_ids.bincount(BincountOptions::new().minlength(2))), [0, 0]);
    assert_eq!(shape(none.where_indices()), [0, 1]);
    assert_eq!(shape(zeros([2, 3]).where_indices()), [0, 2]);
    assert_eq!(shape(zeros([]).add(1.0).unwrap().where_indices()), [1, 0]);
    assert_eq!(shape(zeros([2, 3]).boolean_mask(&truths([false, false]), 0)), [0, 3]);
    assert_eq!(shape(none.unique().map(|(y, _)| y)), [0]);
    assert_eq!(indices(none.histogram_fixed_width([0.0, 1.0], 2)), [0, 0]);
    // Coordinates without axes select the whole tensor.
    assert_eq!(shape(x.gather_nd(&zeros([3, 0]).cast(DType::I32).unwrap())), [3, 2]);
}

#[test]
fn counts_keep_to_their_bounds() {
    let x = ints([1, 1, 5, 2]);
    let options = BincountOptions::new();
    assert_eq!(indices(x.bincount(options.clone())), [0, 2, 1, 0, 0, 1]);
    assert_eq!(indices(x.bincount(options.clone().maxlength(3))), [0, 2, 1]);
    assert_eq!(indices(x.bincount(options.clone().minlength(7))), [0, 2, 1, 0, 0, 1, 0]);
    let weights = floats([0.5, 1.0, 2.0, 4.0]);
    same(&values(x.bincount(options.weights(weights))), &[0.0, 1.5, 4.0, 0.0, 0.0, 2.0]);
    // Equal bounds: nothing is read, and negative numbers are ignored.
    let bounds = BincountOptions::new().minlength(2).maxlength(2);
    assert_eq!(indices(ints([-1, 1, 9]).bincount(bounds)), [0, 1]);
    let bins = floats([-9.0, 0.0, 0.49, 0.5, 1.0, f32::NAN]);
    assert_eq!(indices(bins.histogram_fixed_width_bins([0.0, 1.0], 2)), [0, 0, 0, 1, 1, -1]);
    assert_eq!(indices(bins.histogram_fixed_width([0.0, 1.0], 2)), [3, 2]);
}

#[test]
fn distinct_elements_come_in_their_first_order() {
    let x = floats([3.0, -0.0, 3.0, 0.0, 1.0]);
    let (y, idx, counts) = x.unique_with_counts().unwrap();
    same(&y.to_vec::<f32>().unwrap(), &[3.0, 0.0, 1.0]);
    assert_eq!(indices(Ok(idx)), [0, 1, 0, 1, 2]);
    assert_eq!(indices(Ok(counts)), [2, 2, 1]);
    let many: Vec<i32> = (0..5000).map(|i| i * 7919 % 257).collect();
    let (y, idx) = Tensor::from_slice(&many, [5000]).unwrap().unique().unwrap();
    let (y, idx) = (y.to_vec::<i32>().unwrap(), idx.to_vec::<i32>().unwrap());
    let mut want = Vec::new();
    for (&x, &at) in many.iter().zip(&idx) {
        let place = want.iter().position(|&known| known == x).unwrap_or_else(|| {
            want.push(x);
            want.len() - 1
        });
        assert_eq!(place, at as usize);
    }
    assert_eq!(y, want);
}
