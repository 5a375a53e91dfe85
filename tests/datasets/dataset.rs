//! Datasets as a user sees them: passes, errors among the elements, saved iterators, ending threads.

#![allow(clippy::unwrap_used)]

use crate::support::datasets;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datasets::{all, resumes};
use wgrad::data::{self, AUTOTUNE, BatchOptions, Cardinality, Dataset, MapOptions, ShuffleOptions};
use wgrad::{DType, Error, Result, Tensor};

#[test]
fn a_saved_pass_goes_on_value_for_value() {
    let seed = ShuffleOptions::new().seed(3);
    let calls = MapOptions::new().num_parallel_calls(4);
    let numbers = || data::range(0..20);
    resumes(numbers);
    resumes(|| {
        Dataset::from_tensor_slices((
            vec![1.5f32, 2.5, 3.5],
            vec!["a".to_string(), "b".into(), "c".into()],
        ))
        .unwrap()
    });
    resumes(|| Dataset::from_generator(|| (0..7i32).map(|n| n * n)));
    resumes(|| numbers().map(|n| n * n).filter(|n| n % 3 == 0));
    resumes(|| numbers().map_with(calls.clone(), |n| n + 1));
    resumes(|| numbers().shuffle_with(6, seed.clone()));
    resumes(|| numbers().shuffle_with(6, seed.clone()).repeat(2).batch(3));
    resumes(|| numbers().repeat(2).skip(5).take(11));
    resumes(|| numbers().prefetch(4));
    resumes(|| numbers().prefetch(AUTOTUNE).batch(4).prefetch(1));
}

#[test]
fn tensors_are_saved_as_well() {
    let dataset = data::range(0..6).batch(2).to_tensors().shuffle(3);
    let mut iter = dataset.iter();
    iter.next().unwrap().unwrap();
    let state = iter.save().unwrap();
    let read = |iter: data::DatasetIter<Tensor>| -> Vec<Vec<i64>> {
        iter.map(|x| x.unwrap().to_vec().unwrap()).collect()
    };
    let rest = read(iter);
    assert_eq!(rest.len(), 2);
    assert_eq!(read(dataset.resume(&state).unwrap()), rest);
}

#[test]
fn the_next_epochs_after_a_resumed_one_are_those_that_would_have_come() {
    // Without a given seed, the drawn one is part of the state.
    let make = || data::range(0..9).shuffle(9).repeat(2);
    for given in [0, 1, 9, 10, 18, 19] {
        let (first, second) = (make(), make());
        let mut iter = first.iter();
        assert_eq!(iter.by_ref().take(given).count(), given.min(18));
        let state = iter.save().unwrap();
        let rest: Vec<i64> = iter.collect::<Result<_>>().unwrap();
        let epochs = [all(&first), all(&first)];
        assert_ne!(epochs[0], epochs[1]);
        let resumed = second.resume(&state).unwrap();
        assert_eq!(resumed.collect::<Result<Vec<i64>>>().unwrap(), rest);
        assert_eq!([all(&second), all(&second)], epochs, "{given}");
    }
}

#[test]
fn a_state_of_another_dataset_is_refused() {
    let state = data::range(0..9).shuffle(2).iter().save().unwrap();
    let error = data::range(0..9).batch(2).resume(&state).unwrap_err();
    assert_eq!(
        error.to_string(),
        "resume: the state was saved by a dataset that has `shuffle` where this one has `batch`. Resume with the dataset that \
         the iterator came from."
    );
    let bytes = state.as_bytes();
    for end in 0..bytes.len() {
        let cut = data::IteratorState::from_bytes(&bytes[..end]);
        assert!(data::range(0..9).shuffle(2).resume(&cut).is_err(), "{end}");
    }
}

#[test]
fn a_loop_goes_on_from_what_is_restored_on_the_way() {
    let make = || data::range(0..20).shuffle(5).repeat(2).prefetch(2);
    let (first, second) = (make(), make());
    let mut states = Vec::new();
    let mut given = Vec::new();
    let iter = first.iter();
    for n in &iter {
        given.push(n.unwrap());
        states.push(iter.save().unwrap());
    }
    assert_eq!((given.len(), (&iter).count()), (40, 0));
    // Iterators that had ended also resume, in this process and in another.
    for at in [0, 7, 19, 20, 38, 39] {
        for iter in [&iter, &second.iter()] {
            let mut numbers = iter.take(3);
            assert!(numbers.next().is_none_or(|n| n.is_ok()));
            iter.restore(&states[at]).unwrap();
            assert_eq!(iter.collect::<Result<Vec<i64>>>().unwrap(), given[at + 1..], "{at}");
        }
    }
}

#[test]
fn a_state_that_does_not_fit_leaves_an_iterator_where_it_stood() {
    let make = || data::range(0..20).shuffle(5).batch(2);
    let (dataset, other) = (make(), make());
    let (iter, same) = (dataset.iter(), dataset.iter());
    let state = same.save().unwrap();
    let foreign = other.iter().save().unwrap();
    iter.restore(&state).unwrap();
    for end in 0..foreign.as_bytes().len() {
        let cut = data::IteratorState::from_bytes(&foreign.as_bytes()[..end]);
        assert!(iter.restore(&cut).is_err(), "{end}");
    }
    // The order of this pass and of the next is unaffected by the attempt.
    let text = |iter: &data::DatasetIter<_>| format!("{:?}", iter.collect::<Vec<_>>());
    assert_eq!(text(&iter), text(&same));
    let again = make();
    again.resume(&state).unwrap();
    assert_eq!(text(&dataset.iter()), text(&again.iter()));
}

#[test]
fn an_error_stands_among_the_elements() {
    let odd = |n: i64| match n % 2 {
        0 => Ok(n),
        _ => Err(Error::Data(format!("{n} is odd").into())),
    };
    for calls in [1, 4] {
        let options = MapOptions::new().num_parallel_calls(calls);
        let dataset = data::range(0..5).map_with(options, odd);
        let texts: Vec<String> =
            dataset.iter().map(|n| n.map_or_else(|e| e.to_string(), |n| n.to_string())).collect();
        assert_eq!(texts, ["0", "1 is odd", "2", "3 is odd", "4"]);
        let batches: Vec<_> = dataset.batch(2).iter().collect();
        assert_eq!(batches.len(), 4, "two errors, and batches of 0, 2 and of 4");
        assert_eq!(batches[1].as_ref().unwrap().as_slice(), Some(&[0, 2][..]));
    }
}

#[test]
fn a_panic_in_a_closure_is_the_error_of_that_element() {
    for calls in [1, 3] {
        let options = MapOptions::new().num_parallel_calls(calls);
        let dataset = data::range(0..4)
            .map_with(options, |n| {
                assert!(n != 2, "two is not wanted");
                n
            })
            .prefetch(2);
        let items: Vec<Result<i64>> = dataset.iter().collect();
        assert_eq!(items.len(), 4);
        let error = items[2].as_ref().unwrap_err().to_string();
        assert_eq!(error, "map: the closure panicked: two is not wanted");
        assert_eq!(*items[3].as_ref().unwrap(), 3);
    }
}

#[test]
fn elements_of_different_shapes_make_no_batch() {
    let dataset = Dataset::from_tensor_slices(vec![vec![1, 2], vec![3]]).unwrap();
    let error = dataset.batch(2).iter().next().unwrap().unwrap_err().to_string();
    assert!(
        error.starts_with("batch: element 1 of the batch is [1], and the first is [2]"),
        "{error}"
    );
    assert!(error.contains("padded_batch"), "{error}");
}

#[test]
fn specs_and_cardinalities_are_known_before_the_first_element() {
    let pairs =
        Dataset::from_tensor_slices((ndarray::Array3::<u8>::zeros((10, 4, 3)), vec![1i64; 10]))
            .unwrap();
    assert_eq!(pairs.element_spec().to_string(), "(u8[4, 3], i64)");
    let batches = pairs.batch(4);
    assert_eq!(
        (batches.cardinality(), batches.element_spec().to_string()),
        (Cardinality::Known(3), "(u8[_, 4, 3], i64[_])".into())
    );
    let whole = pairs.batch_with(4, BatchOptions::new().drop_remainder(true));
    assert_eq!(
        (whole.cardinality(), whole.element_spec().to_string()),
        (Cardinality::Known(2), "(u8[4, 4, 3], i64[4])".into())
    );
    assert_eq!(pairs.repeat(None).cardinality(), Cardinality::Infinite);
    assert_eq!(pairs.filter(|_| true).cardinality(), Cardinality::Unknown);
    assert_eq!(pairs.skip(8).cardinality(), Cardinality::Known(2));
}

#[test]
fn threads_end_when_the_iterator_is_dropped() {
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    // After the first number the filter accepts nothing, so the thread of `prefetch` makes no second element.
    let endless = Dataset::from_generator(|| 0i64..)
        .filter(move |n| {
            count.fetch_add(1, Ordering::Relaxed);
            *n == 0
        })
        .prefetch(2);
    let mut iter = endless.iter();
    assert_eq!(iter.next().unwrap().unwrap(), 0);
    while made.load(Ordering::Relaxed) < 1000 {
        std::thread::yield_now();
    }
    drop(iter);
    let stands = || {
        let before = made.load(Ordering::Relaxed);
        std::thread::sleep(std::time::Duration::from_millis(50));
        made.load(Ordering::Relaxed) == before
    };
    assert!((0..100).any(|_| stands()), "the thread still runs");
}

#[test]
fn prefetch_never_holds_more_than_it_says() {
    for size in [1, 3] {
        let made = Arc::new(AtomicUsize::new(0));
        let count = made.clone();
        let dataset = data::range(0..100)
            .map(move |n| {
                count.fetch_add(1, Ordering::SeqCst);
                n
            })
            .prefetch(size);
        for (given, n) in dataset.iter().enumerate() {
            assert_eq!(n.unwrap(), given as i64);
            let ahead = made.load(Ordering::SeqCst) - given - 1;
            assert!(ahead <= size, "{ahead} elements are ahead of {given}");
        }
    }
}

#[test]
fn pixels_travel_as_bytes() {
    let images =
        ndarray::Array4::from_shape_fn((4, 2, 2, 1), |(n, y, x, _)| (50 * n + 2 * y + x) as u8);
    let dataset = Dataset::from_tensor_slices((images, vec![0i64, 1, 2, 3]))
        .unwrap()
        .batch(2)
        .to_tensors()
        .map(|(image, label): (Tensor, Tensor)| {
            assert_eq!(image.dtype(), DType::U8);
            Ok((image.cast(DType::F32)? / 255.0, label))
        });
    let batches = all(&dataset);
    let (image, label) = &batches[1];
    assert_eq!((image.shape(), label.to_vec::<i64>().unwrap()), (&[2, 2, 2, 1][..], vec![2, 3]));
    assert_eq!(image.to_vec::<f32>().unwrap()[3], 103.0 / 255.0);
}

#[test]
fn wrong_sizes_are_refused_in_words() {
    let numbers = data::range(0..3);
    let none = MapOptions::new().num_parallel_calls(0);
    let errors = [
        // Each pass begins with it, and ends.
        numbers.batch(0).iter().next().unwrap().unwrap_err(),
        numbers.shuffle(0).map(|n| n + 1).prefetch(1).iter().next().unwrap().unwrap_err(),
        numbers.map_with(none, |n| n).ignore_errors().iter().next().unwrap().unwrap_err(),
        Dataset::from_tensor_slices((vec![1, 2], vec![1])).unwrap_err(),
        Dataset::from_tensor_slices(ndarray::arr0(1).into_dyn()).unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().contains(['0', '2', ';']), "{error}");
    }
    assert_eq!(numbers.batch(0).iter().count(), 1);
    assert!(numbers.take(0).iter().next().is_none());
    assert!(numbers.repeat(0).iter().next().is_none());
    assert!(data::range(0..0).repeat(None).iter().next().is_none());
}
