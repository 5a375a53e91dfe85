//! The stages of datasets: their results, which match TensorFlow 2.21, their errors, and whether they resume.

#![allow(clippy::unwrap_used)]

use crate::support::datasets;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datasets::{all, resumes, texts};
use ndarray::{arr1, arr2};
use wgrad::data::{
    self, BatchOptions, BucketOptions, Cardinality, ChooseOptions, Dataset, IgnoreErrorsOptions,
    InterleaveOptions, Item, MapOptions, PaddedBatchOptions, RandomOptions, SampleOptions, Window,
    WindowOptions,
};
use wgrad::{Error, Result, Tensor};

fn numbers(count: i64) -> Dataset<i64> {
    data::range(0..count)
}

/// `[0]`, `[1, 1]`, `[2, 2, 2]` and so on.
fn words(count: i64) -> Dataset<Vec<i64>> {
    numbers(count).map(|n| vec![n; n as usize + 1])
}

fn nested(windows: &Dataset<Window<i64>>) -> Vec<Vec<i64>> {
    all(windows).into_iter().map(|window| window.to_vec()).collect()
}

#[test]
fn every_stage_resumes_at_every_element() {
    let turns = InterleaveOptions::new().cycle_length(3).block_length(2);
    resumes(|| numbers(5).flat_map(numbers));
    resumes(|| numbers(7).interleave_with(turns.clone(), |n| numbers(n).map(move |k| 10 * n + k)));
    for calls in [2, 5] {
        let turns = turns.clone().num_parallel_calls(calls);
        resumes(|| {
            numbers(7).interleave_with(turns.clone(), |n| numbers(n).map(move |k| 10 * n + k))
        });
    }
    resumes(|| data::zip((numbers(4), words(6), numbers(9).skip(3))));
    resumes(|| numbers(3).concatenate(&numbers(0)).concatenate(&numbers(4)));
    resumes(|| words(3).enumerate(-1));
    resumes(|| words(7).padded_batch(3));
    resumes(|| words(7).ragged_batch(3));
    resumes(|| words(9).bucket_by_sequence_length(Vec::len, &[3, 6], &[2, 2, 1]));
    resumes(|| words(4).unbatch());
    resumes(|| words(4).unbatch().batch(4).rebatch(3));
    let overlaps = WindowOptions::new().shift(2).stride(3);
    resumes(|| numbers(20).window_with(4, overlaps.clone()));
    resumes(|| numbers(20).window_with(2, WindowOptions::new().shift(7)));
    resumes(|| numbers(20).take_while(|n| *n < 7));
    resumes(|| numbers(20).shard(3, 2));
    resumes(|| {
        numbers(9).scan((0, vec![1]), |(sum, mut seen), n| {
            seen.push(n);
            ((sum + n, seen.clone()), (sum, seen))
        })
    });
    let datasets = || [numbers(3), data::range(10..15), data::range(20..24)];
    let choices = || data::range(0..3).repeat(9);
    let on = ChooseOptions::new().stop_on_empty_dataset(false);
    resumes(|| data::choose_from_datasets(&datasets(), &choices()).unwrap());
    resumes(|| data::choose_from_datasets_with(&datasets(), &choices(), on.clone()).unwrap());
    let drawn = SampleOptions::new().seed(5).weights(vec![1.0, 4.0, 2.0]);
    resumes(|| data::sample_from_datasets_with(&datasets(), drawn.clone()).unwrap());
    resumes(|| data::random(RandomOptions::new().seed(2)).take(9));
    resumes(|| numbers(9).map(|n| 12 / (n % 3)).ignore_errors());
}

#[test]
fn interleave_takes_turns_as_tensorflow() {
    let repeated = |cycle, block, count: i64| {
        let options = InterleaveOptions::new().cycle_length(cycle).block_length(block);
        data::range(1..count)
            .interleave_with(options, |n| Dataset::from_tensors(n).repeat(n as usize))
    };
    assert_eq!(all(&repeated(3, 2, 6)), [1, 2, 2, 3, 3, 4, 4, 3, 4, 4, 5, 5, 5, 5, 5]);
    let options = InterleaveOptions::new().cycle_length(2).block_length(4);
    let six = data::range(1..6).interleave_with(options, |n| Dataset::from_tensors(n).repeat(6));
    assert_eq!(
        all(&six),
        [1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5]
    );
    // More slots than elements, and slots that are never filled.
    assert_eq!(all(&repeated(usize::MAX - 1, 1, 4)), [1, 2, 3, 2, 3, 3]);
}

#[test]
fn interleave_in_parallel_keeps_the_order_and_loses_nothing() {
    let make = |calls, deterministic| {
        let options = InterleaveOptions::new()
            .cycle_length(4)
            .block_length(3)
            .num_parallel_calls(calls)
            .deterministic(deterministic);
        let inner = |n: i64| match n % 7 {
            3 => Err(Error::Data(format!("no {n}").into())),
            5 => panic!("panic at {n}"),
            _ => Ok(numbers(n % 11).map(move |k| 100 * n + k)),
        };
        numbers(60).interleave_with(options, inner)
    };
    let expected = texts(&make(1, true));
    assert!(expected.contains(&"no 3".into()));
    assert!(expected.contains(&"interleave: the closure panicked: panic at 5".into()));
    for calls in [2, 4, 9, data::AUTOTUNE] {
        assert_eq!(texts(&make(calls, true)), expected, "{calls}");
        let (mut any, mut sorted) = (texts(&make(calls, false)), expected.clone());
        any.sort();
        sorted.sort();
        assert_eq!(any, sorted, "{calls}");
    }
}

#[test]
fn a_zip_stays_in_step_where_an_element_is_an_error() {
    let broken = numbers(4).map(|n| 6 / (n - 1));
    let pairs = broken.zip(&numbers(9));
    assert_eq!(texts(&pairs)[2], "(6, 2)");
    assert_eq!(texts(&pairs).len(), 4);
    assert_eq!(texts(&broken.enumerate(5))[3], "(8, 3)");
    assert_eq!(pairs.cardinality(), Cardinality::Known(4));
    assert_eq!(pairs.element_spec().to_string(), "(i64, i64)");
}

#[test]
fn padded_batches_have_the_shapes_that_were_asked_for() {
    let batches = all(&words(3).padded_batch(2));
    assert_eq!(batches[0], arr2(&[[0, 0], [1, 1]]).into_dyn());
    assert_eq!(batches[1], arr2(&[[2, 2, 2]]).into_dyn());
    let wide = PaddedBatchOptions::new().padded_shapes([[4]]).padding_values(-1);
    let wide = words(3).padded_batch_with(2, wide.drop_remainder(true));
    assert_eq!(all(&wide), [arr2(&[[0, -1, -1, -1], [1, 1, -1, -1]]).into_dyn()]);
    assert_eq!(wide.element_spec().to_string(), "i64[2, 4]");
    let texts =
        Dataset::from_tensor_slices(vec![vec!["a".to_string()], vec!["b".into(), "c".into()]]);
    let batch = all(&texts.unwrap().padded_batch(2)).remove(0);
    assert_eq!(
        batch,
        arr2(&[["a".to_string(), String::new()], ["b".into(), "c".into()]]).into_dyn()
    );
    let planes =
        numbers(3).skip(1).map(|n| ndarray::Array2::from_elem((n as usize, 3 - n as usize), n));
    let batch = all(&planes.padded_batch(2)).remove(0);
    assert_eq!(batch.shape(), [2, 2, 2]);
    assert_eq!(batch.into_raw_vec_and_offset().0, [1, 1, 0, 0, 2, 0, 2, 0]);
}

#[test]
fn tensors_are_padded_on_their_device() {
    let tensors = numbers(3).skip(1).map(|n| Tensor::ones([n as usize, 2]));
    let options = PaddedBatchOptions::new().padding_values(wgrad::Scalar::Int(7));
    let batch = all(&tensors.padded_batch_with(2, options)).remove(0);
    assert_eq!(batch.shape(), [2, 2, 2]);
    assert_eq!(batch.to_vec::<f32>().unwrap(), [1.0, 1.0, 7.0, 7.0, 1.0, 1.0, 1.0, 1.0]);
}

#[test]
fn ragged_batches_have_values_and_lengths() {
    let pairs = words(3).zip(&numbers(3));
    let ((values, lengths), labels) = all(&pairs.ragged_batch(3)).remove(0);
    assert_eq!(values, arr1(&[0, 1, 1, 2, 2, 2]).into_dyn());
    assert_eq!(lengths, arr1(&[1, 2, 3]).into_dyn());
    assert_eq!(labels, arr1(&[0, 1, 2]).into_dyn());
    let rows = numbers(2).map(|n| ndarray::Array2::from_elem((n as usize, 2), n));
    let (values, lengths) = all(&rows.ragged_batch(2)).remove(0);
    assert_eq!((values.shape(), lengths), (&[1, 2][..], arr1(&[0, 1]).into_dyn()));
}

#[test]
fn buckets_are_those_of_tensorflow() {
    let words: Vec<Vec<i64>> = vec![
        vec![0],
        vec![1, 2, 3, 4],
        vec![5, 6, 7],
        vec![7, 8, 9, 10, 11],
        vec![13, 14, 15, 16, 19, 20],
        vec![21, 22],
    ];
    let words = Dataset::from_tensor_slices(words).unwrap();
    let make =
        |options| words.bucket_by_sequence_length_with(Vec::len, &[3, 5], &[2, 2, 2], options);
    let rows = |batches: &Dataset<ndarray::ArrayD<i64>>| -> Vec<Vec<Vec<i64>>> {
        let rows = |batch: ndarray::ArrayD<i64>| {
            batch.outer_iter().map(|row| row.iter().copied().collect()).collect()
        };
        batches.ignore_errors().iter().map(|batch| rows(batch.unwrap())).collect()
    };
    let plain = make(BucketOptions::new());
    assert_eq!(
        rows(&plain),
        [
            vec![vec![1, 2, 3, 4], vec![5, 6, 7, 0]],
            vec![vec![7, 8, 9, 10, 11, 0], vec![13, 14, 15, 16, 19, 20]],
            vec![vec![0, 0], vec![21, 22]],
        ]
    );
    let dropped = make(BucketOptions::new().drop_remainder(true));
    assert_eq!(rows(&dropped).len(), 3);
    let wide = make(BucketOptions::new().pad_to_bucket_boundary(true).padding_values(-1));
    assert_eq!(
        rows(&wide),
        [vec![vec![1, 2, 3, 4], vec![5, 6, 7, -1]], vec![vec![0, -1], vec![21, 22]]]
    );
    assert_eq!(texts(&wide).len(), 4, "two batches, two elements beyond the last boundary");
    let none = make(BucketOptions::new().no_padding(true));
    assert!(texts(&none)[0].contains("is [3], and the first is [4]"), "{:?}", texts(&none));
}

#[test]
fn windows_are_those_of_tensorflow() {
    let make = |count, size, shift: Option<usize>, stride, drop| {
        let options = WindowOptions::new().shift(shift).stride(stride).drop_remainder(drop);
        let windows = numbers(count).window_with(size, options);
        let found = nested(&windows);
        assert_eq!(windows.cardinality(), Cardinality::Known(found.len()));
        found
    };
    assert_eq!(make(7, 3, Some(2), 2, false), [vec![0, 2, 4], vec![2, 4, 6], vec![4, 6], vec![6]]);
    assert_eq!(make(7, 3, None, 1, true), [[0, 1, 2], [3, 4, 5]]);
    assert_eq!(
        make(5, 3, Some(1), 2, false),
        [vec![0, 2, 4], vec![1, 3], vec![2, 4], vec![3], vec![4]]
    );
    assert_eq!(make(9, 2, Some(4), 1, false), [vec![0, 1], vec![4, 5], vec![8]]);
    assert_eq!(make(10, 2, Some(5), 3, false), [[0, 3], [5, 8]]);
    assert_eq!(make(10, 2, Some(5), 3, true), [[0, 3], [5, 8]]);
    assert_eq!(make(2, usize::MAX, None, usize::MAX, false), [[0]]);
    let batches = numbers(6).window(2).batch(3);
    assert_eq!(all(&batches), [arr2(&[[0, 1], [2, 3], [4, 5]]).into_dyn()]);
    let rows = numbers(5).window(3).padded_batch(2);
    assert_eq!(all(&rows), [arr2(&[[0, 1, 2], [3, 4, 0]]).into_dyn()]);
}

#[test]
fn a_batch_taken_apart_is_what_it_was_made_of() {
    let pairs = numbers(7).zip(&words(7)).batch(1);
    let apart = pairs.unbatch();
    assert_eq!(apart.cardinality(), Cardinality::Known(7));
    let lengths: Vec<usize> = all(&apart).into_iter().map(|(_, word)| word.len()).collect();
    assert_eq!(lengths, [1, 2, 3, 4, 5, 6, 7]);
    let batches = numbers(7).batch(3);
    let again = batches.rebatch_with(2, BatchOptions::new().drop_remainder(true));
    assert_eq!(all(&again), [arr1(&[0, 1]), arr1(&[2, 3]), arr1(&[4, 5])].map(|a| a.into_dyn()));
    assert_eq!(again.element_spec().to_string(), "i64[2]");
}

#[test]
fn errors_pass_through_and_panics_become_some() {
    let odd =
        |n: i64| if n % 2 == 0 { Ok(n) } else { Err(Error::Data(format!("{n} is odd").into())) };
    let make = || numbers(6).map(odd);
    assert_eq!(
        texts(&make().scan(0, |sum, n| (sum + n, sum))),
        ["0", "1 is odd", "0", "3 is odd", "2", "5 is odd"]
    );
    assert_eq!(make().reduce(0, |a, b| a + b).unwrap_err().to_string(), "1 is odd");
    assert_eq!(texts(&make().take_while(|n| *n < 3)), ["0", "1 is odd", "2", "3 is odd"]);
    assert_eq!(texts(&make().shard(2, 1)), ["1 is odd", "3 is odd", "5 is odd"]);
    assert_eq!(texts(&make().window(2))[1], "Window([0, 2])");
    assert_eq!(
        texts(&make().flat_map(numbers)),
        ["1 is odd", "0", "1", "3 is odd", "0", "1", "2", "3", "5 is odd"]
    );
    assert_eq!(texts(&make().concatenate(&numbers(1))).len(), 7);
    let panics = [
        texts(&numbers(2).scan(0, |_, n| -> (i64, i64) { panic!("at {n}") })),
        texts(&numbers(2).take_while(|n| -> bool { panic!("at {n}") })),
        texts(&numbers(2).flat_map(|n| -> Dataset<i64> { panic!("at {n}") })),
        texts(&numbers(2).bucket_by_sequence_length(|n| panic!("at {n}"), &[], &[1])),
    ];
    for found in panics {
        assert_eq!(found.len(), 2);
        assert!(found[1].ends_with(": the closure panicked: at 1"), "{found:?}");
    }
    let error = numbers(2).reduce(0, |_, n| -> i64 { panic!("at {n}") }).unwrap_err();
    assert_eq!(error.to_string(), "reduce: the closure panicked: at 0");
}

#[test]
fn ignored_errors_are_counted() {
    let counter = Arc::new(AtomicUsize::new(0));
    let options = IgnoreErrorsOptions::new().log_warning(true).counter(counter.clone());
    let parallel = MapOptions::new().num_parallel_calls(3);
    let dataset = numbers(90).map_with(parallel, |n| 1 / (n % 3)).ignore_errors_with(options);
    assert_eq!(all(&dataset).len(), 60);
    assert_eq!(all(&dataset).len(), 60);
    assert_eq!(counter.load(Ordering::Relaxed), 60);
    assert_eq!(dataset.cardinality(), Cardinality::Unknown);
}

#[test]
fn choices_and_draws_end_as_they_say() {
    let datasets = [numbers(2), data::range(10..15)];
    let choices = Dataset::from_tensor_slices(vec![0i64, 0, 7, 1, 0, 1, 1]).unwrap();
    let found = texts(&data::choose_from_datasets(&datasets, &choices).unwrap());
    assert_eq!(
        found,
        ["0", "1", "choose_from_datasets: the choice is 7, and the datasets are 0 to 1.", "10"]
    );
    let on = ChooseOptions::new().stop_on_empty_dataset(false);
    let found = texts(&data::choose_from_datasets_with(&datasets, &choices, on).unwrap());
    assert_eq!(found[3..], ["10", "11", "12"]);
    // If everything is drawn, each element appears; with weight 0, none.
    let mut drawn = all(&data::sample_from_datasets(&datasets).unwrap());
    drawn.sort_unstable();
    assert_eq!(drawn, [0, 1, 10, 11, 12, 13, 14]);
    let never = SampleOptions::new().weights(vec![0.0, 1.0]).seed(1);
    assert_eq!(
        all(&data::sample_from_datasets_with(&datasets, never).unwrap()),
        [10, 11, 12, 13, 14]
    );
    let stop = SampleOptions::new().stop_on_empty_dataset(true).seed(1);
    let long = [numbers(3), data::range(0..1_000_000)];
    assert!(all(&data::sample_from_datasets_with(&long, stop).unwrap()).len() < 100);
    // 0.9 of 20,000 draws, whose standard deviation is 42.
    let shares = SampleOptions::new().weights(vec![9.0, 1.0]).seed(3);
    let ends = [data::range(0..1).repeat(None), data::range(1..2).repeat(None)];
    let dataset = data::sample_from_datasets_with(&ends, shares).unwrap();
    assert_eq!(dataset.cardinality(), Cardinality::Infinite);
    let ones: i64 = all(&dataset.take(20_000)).iter().sum();
    assert!((ones - 2000).abs() < 210, "{ones}");
}

#[test]
fn random_numbers_are_the_same_in_each_pass_unless_asked() {
    let same = data::random(RandomOptions::new().seed(4)).take(50);
    assert_eq!(all(&same), all(&same));
    assert!(all(&same).iter().all(|n| (0..1 << 32).contains(n)));
    let other =
        data::random(RandomOptions::new().seed(4).rerandomize_each_iteration(true)).take(50);
    assert_ne!(all(&other), all(&other));
    assert_ne!(
        all(&data::random(RandomOptions::new()).take(50)),
        all(&data::random(RandomOptions::new()).take(50))
    );
}

#[derive(Clone, Debug, PartialEq, Item)]
struct Pet {
    age: f32,
    r#type: String,
    weights: Vec<f32>,
}

#[derive(Clone, Debug, PartialEq, Item)]
#[item(crate = ::wgrad)]
pub(crate) struct Pair(Pet, pub [i32; 2]);

#[test]
fn a_struct_is_an_element() {
    let pet =
        |n: i64| Pet { age: n as f32, r#type: format!("cat {n}"), weights: vec![0.5; n as usize] };
    let pairs = move || numbers(4).map(move |n| Pair(pet(n), [n as i32, 7]));
    assert_eq!(
        pairs().element_spec().to_string(),
        "Pair { 0: Pet { age: f32, type: string, weights: f32[_] }, 1: i32[2] }"
    );
    let batch: PairBatch = all(&pairs().padded_batch(4)).remove(0);
    assert_eq!(batch.0.weights.shape(), [4, 3]);
    assert_eq!(batch.0.r#type[3], "cat 3");
    assert_eq!(batch.1.shape(), [4, 2]);
    let values = PetPadding { weights: -1.0, ..PetPadding::default() };
    let options = PaddedBatchOptions::new().padding_values(PairPadding(values, 0)).padded_shapes((
        (),
        (),
        [5],
        [-1],
    ));
    let batch = all(&pairs().padded_batch_with(4, options)).remove(0);
    assert_eq!(batch.0.weights.row(0).unwrap(), arr1(&[-1.0; 5]).into_dyn());
    resumes(|| pairs().shuffle_with(3, data::ShuffleOptions::new().seed(1)));
    let whole = pairs().padded_batch(2);
    assert_eq!(all(&whole.rebatch(3).take(0)).len(), 0);
    assert_eq!(all(&whole.unbatch()).len(), 4);
}

#[test]
fn what_is_known_before_the_first_element() {
    let count = |n| Cardinality::Known(n);
    assert_eq!(numbers(3).concatenate(&numbers(4)).cardinality(), count(7));
    // A loop chains many datasets: neither a pass nor dropping the dataset may recurse for each.
    let chained = (1..50_000).fold(numbers(1), |all, k| all.concatenate(&data::range(k..k + 1)));
    let given = chained.prefetch(2).iter().enumerate().all(|(at, n)| n.unwrap() == at as i64);
    assert!(given && chained.cardinality() == count(50_000));
    assert_eq!(numbers(3).repeat(None).zip(&numbers(4)).cardinality(), count(4));
    assert_eq!(numbers(10).shard(3, 0).cardinality(), count(4));
    assert_eq!(numbers(10).shard(3, 1).cardinality(), count(3));
    assert_eq!(numbers(7).batch(2).unbatch().cardinality(), Cardinality::Unknown);
    assert_eq!(numbers(8).batch(2).unbatch().cardinality(), count(8));
    assert_eq!(words(5).padded_batch(2).cardinality(), count(3));
    assert_eq!(words(4).padded_batch(2).element_spec().to_string(), "i64[2, _]");
    assert_eq!(numbers(5).window(2).element_spec().to_string(), "i64[_]");
    assert_eq!(words(4).ragged_batch(2).element_spec().to_string(), "(i64[...], i64[...])");
    assert_eq!(numbers(4).flat_map(numbers).cardinality(), Cardinality::Unknown);
    assert_eq!(numbers(4).scan(0, |a, n| (a, n)).cardinality(), count(4));
}

#[test]
fn long_loops_without_elements_end_with_the_iterator() {
    // `prefetch` runs them in a thread, which must end when the iterator is dropped.
    let endless = || numbers(1).repeat(None);
    let forever: [Dataset<i64>; 5] = [
        endless().flat_map(|_| numbers(0)),
        endless().map(|n| 1 / n).ignore_errors(),
        endless().shard(usize::MAX, 5),
        endless().map(|_| Vec::<i64>::new()).unbatch().map(|row| row.sum()),
        endless().window_with(1, WindowOptions::new().shift(usize::MAX)).skip(1).map(|w| w[0]),
    ];
    for dataset in forever {
        let ahead = numbers(1).concatenate(&dataset).prefetch(3);
        let mut iter = ahead.iter();
        iter.next().unwrap().unwrap();
        drop(iter);
    }
    let waits = |_: &()| std::thread::sleep(std::time::Duration::from_millis(10));
    let ended = || prefetch_threads() == 0;
    assert!(
        (0..1000).any(|_| ended() || (waits(&()), false).1),
        "{} threads still run",
        prefetch_threads()
    );
}

/// The threads of this process that `prefetch` started; 0 if the system does not report them.
fn prefetch_threads() -> usize {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
    tasks
        .flatten()
        .filter_map(|task| name(task).ok())
        .filter(|name| name.trim() == "wgrad-prefetch")
        .count()
}

#[test]
fn a_result_of_making_a_dataset_is_the_error_of_its_elements() {
    let refused: Result<Vec<i64>> = numbers(3).flat_map(|_| numbers(1).shuffle(0)).iter().collect();
    assert!(refused.unwrap_err().to_string().starts_with("shuffle: buffer_size is 0"));
}
