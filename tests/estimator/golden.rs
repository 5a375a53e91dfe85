//! The trees that scikit-learn grows for small tables: the same splits, gains, counts and values.

use ndarray::{Array1, Array2};
use serde_json::Value;
use wgrad::estimator::{
    BoostedTreesClassifier, BoostedTreesOptions, BoostedTreesRegressor, SplitTest, Tree, TreeNode,
    TreesFitOptions, TreesLoss,
};

fn close(a: f64, b: f64) -> bool {
    // Both sum derivatives of 32 bits in different orders.
    (a - b).abs() <= 1e-5 * (1.0 + a.abs().max(b.abs()))
}

/// Compares a tree from a node on.
fn same(tree: &Tree, at: usize, wanted: &[Value], of: usize, place: &str) {
    let wanted_node = wanted[of].as_array().unwrap();
    let float = |at: usize| wanted_node[at].as_f64().unwrap();
    match &tree.nodes()[at] {
        TreeNode::Leaf { value, rows } => {
            assert_eq!(wanted_node.len(), 2, "{place}: a leaf, not {wanted_node:?}");
            assert_eq!(*rows as f64, float(1), "{place}");
            assert!(close(*value, float(0)), "{place}: {value}, not {}", float(0));
        }
        TreeNode::Split { feature, test, missing_left, left, right, gain, rows } => {
            assert_eq!(wanted_node.len(), 7, "{place}: a split, not {wanted_node:?}");
            assert_eq!(*feature as f64, float(0), "{place}: {wanted_node:?}");
            match test {
                SplitTest::AtMost(f64::INFINITY) => assert!(wanted_node[1].is_null(), "{place}"),
                SplitTest::AtMost(edge) => {
                    assert!(close(*edge, float(1)), "{place}: {edge} {wanted_node:?}")
                }
                SplitTest::Categories(set) => {
                    let list: Vec<u64> = serde_json::from_value(wanted_node[1].clone()).unwrap();
                    let bits = list.iter().fold(0, |bits, category| bits | 1 << category);
                    // The bit for missing values is beyond the nine categories.
                    assert_eq!(set[0] & 0x1ff, bits & 0x1ff, "{place}: {set:?} {wanted_node:?}");
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(*missing_left, wanted_node[2].as_bool().unwrap(), "{place}");
            assert!(close(*gain, float(3)), "{place}: {gain} {wanted_node:?}");
            assert_eq!(*rows as f64, float(4), "{place}");
            same(tree, *left, wanted, float(5) as usize, &format!("{place} left"));
            same(tree, *right, wanted, float(6) as usize, &format!("{place} right"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn splits_are_those_of_scikit_learn() {
    let text = include_str!("../data/estimator/trees.json");
    let cases: Vec<Value> = serde_json::from_str(text).unwrap();
    assert_eq!(cases.len(), 6);
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        let rows: Vec<Vec<Option<f64>>> = serde_json::from_value(case["x"].clone()).unwrap();
        let values = rows.iter().flatten().map(|value| value.unwrap_or(f64::NAN));
        let x = Array2::from_shape_vec((rows.len(), 4), values.collect()).unwrap();
        let y: Vec<f64> = serde_json::from_value(case["y"].clone()).unwrap();
        let y = Array1::from(y);
        let option = |name: &str| case["options"][name].as_u64().map(|value| value as usize);
        let mut options = BoostedTreesOptions::new()
            .n_trees(option("max_iter").unwrap())
            .max_leaf_nodes(option("max_leaf_nodes").unwrap_or(31))
            .max_depth(option("max_depth"))
            .min_samples_leaf(option("min_samples_leaf").unwrap_or(20))
            .max_bins(option("max_bins").unwrap_or(255))
            .l2_regularization(case["options"]["l2_regularization"].as_f64().unwrap_or(0.0))
            .categorical_features([0]);
        if name == "absolute" {
            options = options.loss(TreesLoss::AbsoluteError);
        }
        let fit = TreesFitOptions::new();
        let first = x.slice(ndarray::s![..50, ..]);
        let (trees, baseline, raw) = match name {
            "binary" | "classes" => {
                let classes = if name == "binary" { 2 } else { 3 };
                let mut model = BoostedTreesClassifier::new(classes, options).unwrap();
                model.fit((&x, &y), fit).unwrap();
                let raw = model.predict(&first).unwrap().logits().clone();
                (model.trees().to_vec(), model.baseline().to_vec(), raw)
            }
            _ => {
                let mut model = BoostedTreesRegressor::new(options).unwrap();
                match serde_json::from_value::<Option<Vec<f64>>>(case["weights"].clone()).unwrap() {
                    Some(weights) => model.fit((&x, &y, &Array1::from(weights)), fit).unwrap(),
                    None => model.fit((&x, &y), fit).unwrap(),
                };
                let raw = model.predict(&first).unwrap().insert_axis(ndarray::Axis(1));
                (model.trees().to_vec(), model.baseline().to_vec(), raw)
            }
        };
        let wanted: Vec<f64> = serde_json::from_value(case["baseline"].clone()).unwrap();
        assert_eq!(baseline.len(), wanted.len(), "{name}");
        assert!(
            baseline.iter().zip(&wanted).all(|(a, b)| close(*a, *b)),
            "{name}: {baseline:?} {wanted:?}"
        );
        let wanted = case["trees"].as_array().unwrap();
        assert_eq!(trees.len(), wanted.len(), "{name}");
        for (at, (tree, wanted)) in trees.iter().zip(wanted).enumerate() {
            let wanted = wanted.as_array().unwrap();
            assert_eq!(tree.nodes().len(), wanted.len(), "{name}");
            same(tree, 0, wanted, 0, &format!("{name}, tree {at}:"));
        }
        let wanted: Vec<Vec<f64>> = serde_json::from_value(case["raw"].clone()).unwrap();
        assert!(raw.iter().zip(wanted.iter().flatten()).all(|(a, b)| close(*a, *b)), "{name}");
    }
}
