//! Shared by tests of datasets.

#![allow(dead_code)]

use std::fmt::Debug;

use wgrad::Result;
use wgrad::data::{Dataset, Item};

/// The elements of a pass without errors.
pub fn all<T: Item>(dataset: &Dataset<T>) -> Vec<T> {
    dataset.iter().collect::<Result<_>>().unwrap()
}

/// The elements of a pass; errors as texts.
pub fn texts<T: Item + Debug>(dataset: &Dataset<T>) -> Vec<String> {
    let text = |item: Result<T>| item.map_or_else(|e| e.to_string(), |item| format!("{item:?}"));
    dataset.iter().map(text).collect()
}

/// Checks that a pass saved after any number of elements continues with the same ones.
pub fn resumes<T: Item + PartialEq + Debug>(make: impl Fn() -> Dataset<T>) {
    let expected = all(&make());
    for given in 0..=expected.len() {
        let mut iter = make().iter();
        assert_eq!(
            iter.by_ref().take(given).collect::<Result<Vec<T>>>().unwrap(),
            expected[..given]
        );
        let state = iter.save().unwrap();
        let rest: Vec<T> = iter.collect::<Result<_>>().unwrap();
        assert_eq!(rest, expected[given..], "saving changed the pass");
        let again: Vec<T> = make().resume(&state).unwrap().collect::<Result<_>>().unwrap();
        assert_eq!(again, expected[given..], "after {given} of {}", expected.len());
    }
}
