//! `shuffle` compared with its documentation: the reach of the buffer, the probability of each order, seeds and passes.

use std::collections::HashMap;

use wgrad as tf;
use wgrad::data::{self, Dataset, ShuffleOptions};

use crate::alone;
use crate::support::datasets::all;

fn shuffled(count: i64, buffer: usize, seed: u64) -> Dataset<i64> {
    data::range(0..count).shuffle_with(buffer, ShuffleOptions::new().seed(seed))
}

/// The sum of the squared differences from `expected`, relative to it.
fn chi_squared(counts: impl Iterator<Item = usize>, expected: f64) -> f64 {
    counts.map(|count| (count as f64 - expected).powi(2) / expected).sum()
}

#[test]
fn a_buffer_of_one_shuffles_nothing() {
    for seed in 0..20 {
        assert_eq!(all(&shuffled(50, 1, seed)), (0..50).collect::<Vec<_>>());
    }
}

#[test]
fn an_element_comes_no_earlier_than_the_buffer_reaches() {
    for buffer in [2, 7, 50, 199] {
        let mut earliest = 0;
        for seed in 0..40 {
            let order = all(&shuffled(200, buffer, seed));
            for (k, n) in order.iter().enumerate() {
                assert!((*n as usize) < k + buffer, "element {k} of buffer {buffer} is {n}");
                earliest = earliest.max(*n as usize - k.min(*n as usize));
            }
            let mut sorted = order;
            sorted.sort_unstable();
            assert_eq!(sorted, (0..200).collect::<Vec<_>>());
        }
        // Of 40 passes, some select the newest element of the first full buffers.
        assert!(earliest + buffer / 20 >= buffer - 1, "{earliest} of {buffer}");
    }
}

/// 24 orders, 23 degrees of freedom: one in a million fair shuffles is beyond 71.
#[test]
fn all_orders_of_a_full_buffer_are_equally_likely() {
    const TRIALS: usize = 24_000;
    let mut of_seeds: HashMap<Vec<i64>, usize> = HashMap::new();
    for seed in 0..TRIALS as u64 {
        *of_seeds.entry(all(&shuffled(4, 4, seed))).or_default() += 1;
    }
    let mut of_passes: HashMap<Vec<i64>, usize> = HashMap::new();
    let one = shuffled(4, 4, 5);
    for _ in 0..TRIALS {
        *of_passes.entry(all(&one)).or_default() += 1;
    }
    for orders in [of_seeds, of_passes] {
        assert_eq!(orders.len(), 24);
        let distance = chi_squared(orders.into_values(), TRIALS as f64 / 24.0);
        assert!(distance < 71.0, "{distance}");
    }
}

/// 10 elements at 10 positions, 81 degrees of freedom: one in a million is beyond 155.
#[test]
fn every_element_is_as_likely_in_every_place() {
    const TRIALS: usize = 10_000;
    for buffer in [10, 1000] {
        let mut counts = vec![[0usize; 10]; 10];
        for seed in 0..TRIALS as u64 {
            for (place, n) in all(&shuffled(10, buffer, seed)).into_iter().enumerate() {
                counts[place][n as usize] += 1;
            }
        }
        let distance = chi_squared(counts.into_iter().flatten(), TRIALS as f64 / 10.0);
        assert!(distance < 155.0, "{distance}");
    }
}

#[test]
fn a_seed_says_the_orders_of_all_passes() {
    let (first, second) = (shuffled(30, 30, 3), shuffled(30, 30, 3));
    let passes: Vec<Vec<i64>> = (0..5).map(|_| all(&first)).collect();
    assert_eq!(passes, (0..5).map(|_| all(&second)).collect::<Vec<_>>());
    for (at, pass) in passes.iter().enumerate() {
        assert!(!passes[..at].contains(pass), "pass {at} has the order of another");
    }
    assert_ne!(passes[0], all(&shuffled(30, 30, 4)));
    let options = ShuffleOptions::new().seed(3).reshuffle_each_iteration(false);
    let alike = data::range(0..30).shuffle_with(30, options);
    assert_eq!(all(&alike), all(&alike));
}

#[test]
fn the_global_seed_makes_shuffles_repeatable() {
    let _alone = alone();
    let orders = || {
        tf::random::set_seed(11);
        let make = || data::range(0..30).shuffle(30);
        let (first, second) = (make(), make());
        [all(&first), all(&second), all(&first)]
    };
    let [first, second, again] = orders();
    assert_eq!(orders(), [first.clone(), second.clone(), again.clone()]);
    assert!(first != second && first != again);
}
