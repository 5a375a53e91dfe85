//! Tests of boosted trees that need their insides.

use super::boost;
use super::ensemble::Ensemble;
use super::file;
use super::objective::Objective;
use super::options::BoostedTreesOptions;
use super::tree::{SplitTest, Tree, TreeNode};
use crate::estimator::rows::Rows;

fn rows(count: usize, width: usize, seed: u64) -> Rows {
    let mut random = fastrand::Rng::with_seed(seed);
    let x: Vec<f64> = (0..count * width).map(|_| random.f64()).collect();
    let y = x.chunks_exact(width).map(|row| row[0] * 3.0 + f64::from(u8::from(row[1] > 0.5)));
    Rows { count, width, y: Some(y.collect()), weights: None, x }
}

fn copy(rows: &Rows) -> Rows {
    rows.ordered(&(0..rows.count).collect::<Vec<_>>())
}

#[test]
fn trees_do_not_depend_on_the_number_of_threads() {
    let rows = rows(20_000, 5, 3);
    let options = BoostedTreesOptions::new().n_trees(5);
    let fit = || boost::fit(&options, Objective::Squared, copy(&rows), None).unwrap();
    let pool = rayon_core::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let alone = pool.install(fit);
    let pool = rayon_core::ThreadPoolBuilder::new().num_threads(7).build().unwrap();
    assert_eq!(alone, pool.install(fit));
}

#[test]
fn the_training_predicts_what_the_trees_predict() {
    // The loss of the last iteration, from the bins, is that of the trees, from the numbers.
    let mut data = rows(3000, 3, 4);
    for at in (0..data.x.len()).step_by(7) {
        data.x[at] = f64::NAN;
    }
    let options = BoostedTreesOptions::new().n_trees(20);
    let (ensemble, history) = boost::fit(&options, Objective::Squared, copy(&data), None).unwrap();
    let raw = ensemble.raw("test", &mut copy(&data)).unwrap();
    let y = data.y.as_ref().unwrap();
    let loss = raw.iter().zip(y).map(|(p, y)| (p - y) * (p - y)).sum::<f64>() / 3000.0;
    let last = history.get("loss").unwrap().last().unwrap();
    assert!((loss - last).abs() < 1e-12, "{loss} {last}");
}

/// A tree with each kind of node.
fn ensemble() -> Ensemble {
    let leaf = |value| TreeNode::Leaf { value, rows: 4 };
    let split = |feature, test, left, right| TreeNode::Split {
        feature,
        test,
        missing_left: feature == 0,
        left,
        right,
        gain: 1.5,
        rows: 12,
    };
    let nodes = vec![
        split(0, SplitTest::AtMost(0.5), 1, 2),
        leaf(1.0),
        split(1, SplitTest::Categories([0b101, 0, 0, 1 << 60]), 3, 4),
        leaf(2.0),
        leaf(-3.0),
    ];
    Ensemble {
        objective: Objective::Squared,
        baseline: vec![0.1],
        categories: vec![None, Some(vec![3, 9, 4_000_000_000])],
        names: vec!["a".into(), "b".into()],
        trees: vec![Tree { nodes }, Tree { nodes: vec![leaf(0.25)] }],
    }
}

#[test]
fn rows_go_through_a_tree() {
    let ensemble = ensemble();
    let mut rows = Rows {
        count: 6,
        width: 2,
        x: vec![0.5, 3.0, f64::NAN, 3.0, 0.6, 3.0, 0.6, 9.0, 0.6, 4e9, 0.6, 7.0],
        ..Rows::default()
    };
    let raw = ensemble.raw("test", &mut rows).unwrap();
    let wanted = [1.0, 1.0, 2.0, -3.0, 2.0, -3.0].map(|value| 0.1 + value + 0.25);
    assert!(raw.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12), "{raw:?}");
}

#[test]
fn a_file_has_the_same_trees() {
    let mut ensemble = ensemble();
    assert_eq!(file::from_bytes(&file::to_bytes(&ensemble).unwrap()).unwrap(), ensemble);
    ensemble.objective = Objective::Classes(4);
    ensemble.baseline = vec![0.1, 0.2, 0.3, -1e-300];
    ensemble.trees.extend(ensemble.trees.clone());
    ensemble.names.clear();
    assert_eq!(file::from_bytes(&file::to_bytes(&ensemble).unwrap()).unwrap(), ensemble);
}

#[test]
fn hostile_trees_are_refused() {
    let good = ensemble();
    let refused = |change: &dyn Fn(&mut Vec<TreeNode>), words: &str| {
        let mut bad = good.clone();
        change(&mut bad.trees[0].nodes);
        let error = file::from_bytes(&file::to_bytes(&bad).unwrap()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}, not {words}");
    };
    fn split(
        nodes: &mut [TreeNode],
        at: usize,
        change: impl Fn(&mut usize, &mut usize, &mut SplitTest),
    ) {
        if let TreeNode::Split { feature, left, test, .. } = &mut nodes[at] {
            change(feature, left, test);
        }
    }
    refused(&|nodes| split(nodes, 2, |_, left, _| *left = 0), "node 2 of tree 0 has the child 0");
    refused(&|nodes| split(nodes, 2, |_, left, _| *left = 2), "has the child 2");
    refused(&|nodes| split(nodes, 2, |_, left, _| *left = 4), "has the child 4");
    refused(&|nodes| split(nodes, 2, |_, left, _| *left = 5), "has the child 5");
    refused(&|nodes| split(nodes, 0, |feature, _, _| *feature = 2), "tests feature 2 of 2");
    refused(
        &|nodes| split(nodes, 0, |_, _, test| *test = SplitTest::AtMost(f64::NAN)),
        "the value NaN",
    );
    refused(&|nodes| split(nodes, 0, |feature, _, _| *feature = 1), "has the kind 1");
    refused(&|nodes| split(nodes, 2, |feature, _, _| *feature = 0), "has the kind 2");
    refused(
        &|nodes| nodes[1] = TreeNode::Leaf { value: f64::INFINITY, rows: 0 },
        "has the value inf",
    );
    refused(
        &|nodes| nodes[2] = TreeNode::Leaf { value: 0.0, rows: 0 },
        "node 3 of tree 0 is no node's child",
    );
    refused(&|nodes| nodes.clear(), "tree 0 has no nodes");
    let changed = |change: &dyn Fn(&mut Ensemble)| {
        let mut bad = good.clone();
        change(&mut bad);
        file::from_bytes(&file::to_bytes(&bad).unwrap()).unwrap_err().to_string()
    };
    assert!(changed(&|e| e.baseline.push(0.0)).contains("'baseline'"));
    assert!(changed(&|e| e.baseline[0] = f64::NAN).contains("'baseline'"));
    assert!(changed(&|e| e.categories[1] = Some(vec![9, 3])).contains("in order"));
    assert!(changed(&|e| e.categories.push(Some(vec![]))).contains("1 to 255"));
    assert!(changed(&|e| e.names.truncate(1)).contains("'feature_names'"));
    assert!(
        changed(&|e| {
            e.objective = Objective::Classes(3);
            e.baseline = vec![0.0; 3];
        })
        .contains("not a multiple")
    );
}

#[test]
fn damaged_files_are_errors() {
    let good = file::to_bytes(&ensemble()).unwrap();
    for length in 0..good.len() {
        assert!(file::from_bytes(&good[..length]).is_err(), "{length}");
    }
    let mut random = fastrand::Rng::with_seed(5);
    let mut rows = Rows { count: 1, width: 2, x: vec![0.7, 9.0], ..Rows::default() };
    for _ in 0..20_000 {
        let mut bad = good.clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..bad.len());
            bad[at] = random.u8(..);
        }
        // What is accepted predicts something.
        if let Ok(ensemble) = file::from_bytes(&bad) {
            if ensemble.categories.len() == 2 {
                ensemble.raw("test", &mut rows).unwrap();
            }
        }
    }
}
