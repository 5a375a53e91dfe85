//! The tables on which boosted trees are compared with scikit-learn's, and what it measured; tests/data/estimator/judge.py makes both.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use wgrad::estimator::{
    BoostedTreesClassifier, BoostedTreesOptions, BoostedTreesRegressor, TreesFitOptions,
};
use wgrad::ndarray::{Array2, aview1, s};

/// Runs the script with a Python that has scikit-learn. Returns its lines.
pub fn scikit_learn(python: &str, folder: &Path, runs: usize) -> Vec<String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/estimator/judge.py");
    let output =
        Command::new(python).arg(script).arg(folder).arg(runs.to_string()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(folder.join("measured.txt")).unwrap();
    text.lines().map(String::from).collect()
}

/// The numbers of a table's property.
pub fn numbers(lines: &[String], name: &str, property: &str) -> Vec<f64> {
    let start = format!("{name} {property} ");
    let line = lines.iter().find_map(|line| line.strip_prefix(&start)).unwrap();
    line.split(' ').map(|number| number.parse().unwrap()).collect()
}

/// What wgrad's trees reach: qualities by name, and the times of each run in seconds.
pub struct Measured {
    pub qualities: Vec<(&'static str, f64)>,
    pub fit: Vec<f64>,
    pub predict: Vec<f64>,
}

/// Trains on a table as the script does.
pub fn wgrad(lines: &[String], folder: &Path, name: &str, runs: usize) -> Measured {
    let size: Vec<usize> = numbers(lines, name, "size").iter().map(|size| *size as usize).collect();
    let read = |ending: &str| -> Vec<f64> {
        let bytes = std::fs::read(folder.join(format!("{name}.{ending}"))).unwrap();
        bytes.chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap())).collect()
    };
    let (x, y) = (Array2::from_shape_vec((size[0], size[1]), read("x")).unwrap(), read("y"));
    let train = x.slice(s![..size[2], ..]);
    let (labels, held) = y.split_at(size[2]);
    let mut options = BoostedTreesOptions::new();
    if name == "binary" {
        options = options.categorical_features([0, 1, 2, 3]);
    }
    let mut measured = Measured { qualities: Vec::new(), fit: Vec::new(), predict: Vec::new() };
    for run in 0..runs {
        let start = Instant::now();
        let seconds = |start: Instant| start.elapsed().as_secs_f64();
        if name == "regression" {
            let mut model = BoostedTreesRegressor::new(options.clone()).unwrap();
            model.fit((&train, &aview1(labels)), TreesFitOptions::new()).unwrap();
            measured.fit.push(seconds(start));
            let start = Instant::now();
            let p = model.predict(&x).unwrap();
            measured.predict.push(seconds(start));
            let p = p.slice(s![size[2]..]);
            let mean = held.iter().sum::<f64>() / held.len() as f64;
            let sum = |f: &dyn Fn(f64, f64) -> f64| {
                p.iter().zip(held).map(|(p, y)| f(*p, *y)).sum::<f64>()
            };
            let (errors, spread) = (sum(&|p, y| (p - y).powi(2)), sum(&|_, y| (mean - y).powi(2)));
            let mae = sum(&|p, y| (p - y).abs()) / held.len() as f64;
            if run == 0 {
                measured.qualities = vec![("r2", 1.0 - errors / spread), ("mae", mae)];
            }
        } else {
            let classes = if name == "binary" { 2 } else { 5 };
            let mut model = BoostedTreesClassifier::new(classes, options.clone()).unwrap();
            model.fit((&train, &aview1(labels)), TreesFitOptions::new()).unwrap();
            measured.fit.push(seconds(start));
            let start = Instant::now();
            let p = model.predict(&x).unwrap().probabilities();
            measured.predict.push(seconds(start));
            if run == 0 {
                let logs = model.evaluate((&x.slice(s![size[2].., ..]), &aview1(held))).unwrap();
                assert_eq!(p.dim(), (size[0], classes));
                let logs = ["accuracy", "loss"].map(|name| (name, logs.get(name).unwrap()));
                measured.qualities = logs.to_vec();
            }
        }
    }
    measured
}
