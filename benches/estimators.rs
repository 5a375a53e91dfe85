//! Measures boosted trees: against scikit-learn's on the same tables, and the histograms of a root on the host and as segment
//! sums on the device.
//!
//! `cargo bench --bench estimators`. The first part takes a Python with scikit-learn, in `WGRAD_JUDGE_PYTHON`. Times are medians.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../tests/support/boosting.rs"]
mod boosting;

use std::time::Instant;

use wgrad::estimator::{BoostedTreesOptions, BoostedTreesRegressor, TreesFitOptions};
use wgrad::ndarray::{Array1, Array2};
use wgrad::{Device, Tensor};

const RUNS: usize = 5;

fn main() {
    match std::env::var("WGRAD_JUDGE_PYTHON") {
        Ok(python) => compare(&python),
        Err(_) => {
            println!("WGRAD_JUDGE_PYTHON names no Python with scikit-learn, which is left out")
        }
    }
    histograms();
}

fn compare(python: &str) {
    let folder =
        std::env::temp_dir().join(format!("wgrad-bench-estimators-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let lines = boosting::scikit_learn(python, &folder, RUNS);
    for name in ["regression", "binary", "classes"] {
        let here = boosting::wgrad(&lines, &folder, name, RUNS);
        let there = |property: &str| median(&boosting::numbers(&lines, name, property));
        println!(
            "{name:10} fit {:.3} s, scikit-learn {:.3} s; predict {:.3} s, {:.3} s",
            median(&here.fit),
            there("fit"),
            median(&here.predict),
            there("predict")
        );
        for (quality, value) in here.qualities {
            println!("{:10} {quality} {value:.5}, scikit-learn {:.5}", "", there(quality));
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// The sums of gradients and second derivatives of 100,000 rows in 20 columns of 255 bins.
fn histograms() {
    const ROWS: usize = 100_000;
    const COLUMNS: usize = 20;
    const BINS: usize = 256;
    let mut random = fastrand::Rng::with_seed(1);
    let x = Array2::from_shape_simple_fn((ROWS, COLUMNS), || random.f64());
    let y: Array1<f64> = x.rows().into_iter().map(|row| row.sum() + 1.0).collect();
    // A tree with one split: a histogram, the derivatives, and a search. Weights let second derivatives differ.
    let weights: Array1<f64> = (0..ROWS).map(|_| 0.5 + random.f64()).collect();
    let fit = |trees: usize| {
        let options = BoostedTreesOptions::new().n_trees(trees).max_leaf_nodes(2);
        let mut model = BoostedTreesRegressor::new(options).unwrap();
        let start = Instant::now();
        model.fit((&x, &y, &weights), TreesFitOptions::new()).unwrap();
        start.elapsed().as_secs_f64()
    };
    let host: Vec<f64> = (0..RUNS).map(|_| (fit(41) - fit(1)) / 40.0).collect();

    let code =
        |row: usize, column: usize| (column * BINS) as i32 + (x[[row, column]] * 255.0) as i32;
    let ids: Vec<i32> = (0..ROWS * COLUMNS).map(|at| code(at / COLUMNS, at % COLUMNS)).collect();
    let ids = Tensor::from_slice(&ids, [ROWS, COLUMNS]).unwrap();
    let numbers: Vec<f32> = (0..2 * ROWS).map(|_| random.f32()).collect();
    let device: Vec<f64> = (0..=RUNS)
        .map(|_| {
            let start = Instant::now();
            // In each iteration, the derivatives are new: they are uploaded, and the sums are read.
            let sums: Vec<Tensor> = numbers
                .chunks(ROWS)
                .map(|of| {
                    let of = Tensor::from_slice(of, [ROWS, 1]).unwrap();
                    let of = of.broadcast_to([ROWS, COLUMNS]).unwrap();
                    of.unsorted_segment_sum(&ids, COLUMNS * BINS).unwrap()
                })
                .collect();
            sums.iter()
                .for_each(|sums| assert_eq!(sums.to_vec::<f32>().unwrap().len(), COLUMNS * BINS));
            start.elapsed().as_secs_f64()
        })
        .collect();
    println!(
        "a histogram of {ROWS} rows and {COLUMNS} columns: host, with derivatives and the search, {:.2} ms; device {:.1} ms ({})",
        1e3 * median(&host),
        1e3 * median(&device[1..]),
        Device::current().unwrap().adapter()
    );
}

fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
