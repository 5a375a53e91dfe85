//! Errors of the stages of datasets, at their calls and among the elements.

use wgrad::data::{
    self, BucketOptions, Dataset, InterleaveOptions, PaddedBatchOptions, SampleOptions,
    WindowOptions,
};

use crate::text;

fn numbers() -> Dataset<i64> {
    data::range(0..4)
}

fn words() -> Dataset<Vec<i64>> {
    numbers().map(|n| vec![n; n as usize])
}

/// The first error of a pass.
#[track_caller]
fn first<T: data::Item>(dataset: &Dataset<T>) -> String {
    dataset.iter().find_map(|item| item.err()).unwrap().to_string()
}

#[test]
fn sizes_of_zero_are_refused() {
    assert_eq!(
        first(&numbers().padded_batch(0)),
        "padded_batch: batch_size is 0; a batch needs at least one element."
    );
    assert_eq!(
        first(&words().ragged_batch(0)),
        "ragged_batch: batch_size is 0; a batch needs at least one element."
    );
    assert_eq!(first(&numbers().window(0)), "window: size is 0; it must be at least 1.");
    assert_eq!(
        first(&numbers().window_with(1, WindowOptions::new().stride(0))),
        "window: stride is 0; it must be at least 1."
    );
    assert_eq!(
        first(&numbers().interleave_with(InterleaveOptions::new().block_length(0), |_| numbers())),
        "interleave: block_length is 0; it must be at least 1."
    );
    assert_eq!(
        first(&numbers().shard(3, 3)),
        "shard: index is 3 and num_shards 3; the index must be below the number."
    );
}

#[test]
fn padded_shapes_must_fit() {
    let to = |size: i64| PaddedBatchOptions::<Vec<i64>>::new().padded_shapes([[size]]);
    assert_eq!(
        first(
            &numbers()
                .zip(&words())
                .padded_batch_with(2, PaddedBatchOptions::new().padded_shapes([[-1]]))
        ),
        "padded_batch: padded_shapes has 1 shapes, and the elements have 2 arrays; give one shape for each."
    );
    assert_eq!(
        first(&words().padded_batch_with(2, to(-2))),
        "padded_batch: padded_shapes has [-2]; each size must be -1, for the longest of the batch, or at least 0."
    );
    assert_eq!(
        first(&words().padded_batch_with(4, to(2))),
        "padded_batch: array 0 of an element is [3], and is to be padded to [2], which is smaller. Cut it in a `map`, or give \
         -1, which is the longest of the batch. (batch 0)"
    );
    let deep = PaddedBatchOptions::<Vec<i64>>::new().padded_shapes([[2, 2]]);
    assert_eq!(
        first(&words().padded_batch_with(4, deep)),
        "padded_batch: the padded shape of array 0 is [2, 2], and the array is [0]; they need the same number of \
         axes. (batch 0)"
    );
    let ranks = numbers().map(|n| ndarray::ArrayD::<f32>::zeros(vec![1; n as usize]));
    assert_eq!(
        first(&ranks.padded_batch(2)),
        "padded_batch: array 0 of element 1 of the batch is [1], and of the first []; padding changes sizes, not the number of \
         axes. (batch 0)"
    );
    assert_eq!(
        first(&words().padded_batch_with(4, to(i64::MAX / 2))),
        "padded_batch: a batch of [4, 4611686018427387903] does not fit in memory. (batch 0)"
    );
    let planes = numbers().map(|n| ndarray::Array2::<f32>::zeros((1, n as usize)));
    assert_eq!(
        first(&planes.ragged_batch(2)),
        "ragged_batch: element 1 of the batch is [1, 1], and the first is [1, 0]; arrays may differ only in the \
         first axis, and need one. (batch 0)"
    );
}

#[test]
fn buckets_must_rise() {
    let make = |boundaries: &[usize], sizes: &[usize]| {
        first(&words().bucket_by_sequence_length(Vec::len, boundaries, sizes))
    };
    let name = "bucket_by_sequence_length: the boundaries are ";
    assert_eq!(
        make(&[3], &[2]),
        format!("{name}[3] and the sizes [2]; there must be one size more than boundaries.")
    );
    assert_eq!(
        make(&[3, 3], &[2, 2, 2]),
        format!(
            "{name}[3, 3] and the sizes [2, 2, 2]; boundaries must increase and start above 0."
        )
    );
    assert_eq!(
        make(&[3], &[2, 0]),
        format!("{name}[3] and the sizes [2, 0]; a batch needs at least one element.")
    );
    let options = BucketOptions::new().pad_to_bucket_boundary(true);
    let dataset = words().bucket_by_sequence_length_with(Vec::len, &[1, 2], &[1, 1, 1], options);
    assert_eq!(
        first(&dataset),
        "bucket_by_sequence_length: an element has length 2; with pad_to_bucket_boundary it must be below the last boundary, of \
         [1, 2]."
    );
}

#[test]
fn what_has_no_rows_is_not_taken_apart() {
    assert_eq!(
        first(&numbers().unbatch()),
        "unbatch: the elements are scalars; they need a first axis, as batches have it."
    );
    let uneven = numbers().map(|n| (vec![n; 2], vec![n; n as usize + 1]));
    assert_eq!(
        first(&uneven.unbatch()),
        "unbatch: the parts of the element differ in their first axes: [2, 1]; they count the rows and must be equal."
    );
}

#[test]
fn there_must_be_something_to_choose_from() {
    let none: [Dataset<i64>; 0] = [];
    assert_eq!(
        text(data::choose_from_datasets(&none, &numbers())),
        "choose_from_datasets: there is no dataset to take elements from."
    );
    assert_eq!(
        text(data::sample_from_datasets(&none)),
        "sample_from_datasets: there is no dataset to take elements from."
    );
    let weights = |weights: &[f64]| {
        let options = SampleOptions::new().weights(weights.to_vec());
        text(data::sample_from_datasets_with(&[numbers(), numbers()], options))
    };
    assert_eq!(
        weights(&[1.0]),
        "sample_from_datasets: 1 weights for 2 datasets; give one for each."
    );
    for wrong in [[0.0, 0.0], [-1.0, 2.0], [f64::NAN, 1.0], [f64::INFINITY, 1.0]] {
        assert_eq!(
            weights(&wrong),
            format!(
                "sample_from_datasets: the weights are {wrong:?}; they must be finite and not negative, and at least \
                 one above 0."
            )
        );
    }
}

#[test]
fn a_state_of_other_choices_is_refused() {
    let two = data::sample_from_datasets(&[numbers(), numbers()]).unwrap();
    let three = data::sample_from_datasets(&[numbers(), numbers(), numbers()]).unwrap();
    let state = two.iter().save().unwrap();
    assert_eq!(
        text(three.resume(&state)),
        "resume: the state was saved with 2 datasets to take elements from, and there are 3."
    );
}
