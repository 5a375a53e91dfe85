//! Hostile files are errors, and forms that skl2onnx does not write have the specification's results.

use crate::dtype::DType;
use crate::error::Result;
use crate::host_array::HostArray;
use crate::saved_model::SavedValue;
use crate::saved_model::model_files::ModelFiles;
use crate::saved_model::onnx::OnnxModel;
use crate::saved_model::onnx::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TensorType, TypeProto,
    ValueInfoProto,
};
use crate::saved_model::saved_function::Outputs;
use crate::tensor::Tensor;
use prost::Message;

fn attribute(name: &str) -> AttributeProto {
    AttributeProto { name: name.to_string(), ..AttributeProto::default() }
}

fn ints(name: &str, ints: &[i64]) -> AttributeProto {
    let i = ints.first().copied().unwrap_or(0);
    AttributeProto { i, ints: ints.to_vec(), ..attribute(name) }
}

fn floats(name: &str, floats: &[f32]) -> AttributeProto {
    let f = floats.first().copied().unwrap_or(0.0);
    AttributeProto { f, floats: floats.to_vec(), ..attribute(name) }
}

fn text(name: &str, text: &str) -> AttributeProto {
    AttributeProto { s: text.as_bytes().to_vec(), ..attribute(name) }
}

fn texts(name: &str, texts: &[&str]) -> AttributeProto {
    let strings = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    AttributeProto { strings, ..attribute(name) }
}

fn numbers(name: &str, numbers: &[f32]) -> AttributeProto {
    let t = TensorProto {
        dims: vec![numbers.len() as i64],
        data_type: 1,
        float_data: numbers.to_vec(),
        ..TensorProto::default()
    };
    AttributeProto { t: Some(t), ..attribute(name) }
}

/// The results `y` and `z` of a model of one node.
fn run(op: &str, input: impl Into<SavedValue>, attributes: Vec<AttributeProto>) -> Result<Outputs> {
    let input = input.into();
    model(op, &input, attributes)?.call([("x", input)])
}

fn model(op: &str, input: &SavedValue, attributes: Vec<AttributeProto>) -> Result<OnnxModel> {
    let names = if op.contains("Classifier") { vec!["y", "z"] } else { vec!["y"] };
    let elem_type = match input {
        SavedValue::Tensor(x) if x.dtype() == DType::I32 => 6,
        SavedValue::Tensor(_) => 1,
        SavedValue::Host(_) => 8,
    };
    let info = |name: &str| {
        let tensor_type = Some(TensorType { elem_type, shape: None });
        ValueInfoProto { name: name.to_string(), r#type: Some(TypeProto { tensor_type }) }
    };
    let node = NodeProto {
        input: vec!["x".to_string()],
        output: names.iter().map(ToString::to_string).collect(),
        name: "own".to_string(),
        op_type: op.to_string(),
        attribute: attributes,
        domain: "ai.onnx.ml".to_string(),
    };
    let graph = GraphProto {
        node: vec![node],
        input: vec![info("x")],
        output: names.iter().map(|name| info(name)).collect(),
        ..GraphProto::default()
    };
    let model = ModelProto { graph: Some(graph), ..ModelProto::default() };
    OnnxModel::read(&model.encode_to_vec(), &ModelFiles::none())
}

fn y(op: &str, input: impl Into<SavedValue>, attributes: Vec<AttributeProto>) -> Vec<f64> {
    let results = run(op, input, attributes).unwrap();
    results.value("y").unwrap().to_host_array().unwrap().to_f64().unwrap().into_iter().collect()
}

fn error(op: &str, input: impl Into<SavedValue>, attributes: Vec<AttributeProto>) -> String {
    let text = run(op, input, attributes).unwrap_err().to_string();
    assert!(
        text.contains(&format!("node \"own\" ({op})")) || text.contains("does not have"),
        "{text}"
    );
    text
}

fn rows() -> Tensor {
    crate::tensor::constant([[-1.0f32, 2.0], [0.5, f32::NAN], [3.0, -4.0]]).unwrap()
}

/// `(id, mode, feature, value, true, false)`.
type Node<'a> = (i64, &'a str, i64, f32, i64, i64);

/// A tree of these nodes, whose leaves weigh 10 times their ids.
fn tree(nodes: &[Node<'_>]) -> Vec<AttributeProto> {
    let all = |of: fn(&Node<'_>) -> i64| nodes.iter().map(of).collect::<Vec<i64>>();
    let modes: Vec<&str> = nodes.iter().map(|node| node.1).collect();
    let values: Vec<f32> = nodes.iter().map(|node| node.3).collect();
    let leaves: Vec<i64> =
        nodes.iter().filter(|node| node.1 == "LEAF").map(|node| node.0).collect();
    let weights: Vec<f32> = leaves.iter().map(|id| *id as f32 * 10.0).collect();
    let zeros = vec![0; leaves.len()];
    vec![
        ints("nodes_treeids", &vec![0; nodes.len()]),
        ints("nodes_nodeids", &all(|node| node.0)),
        texts("nodes_modes", &modes),
        ints("nodes_featureids", &all(|node| node.2)),
        floats("nodes_values", &values),
        ints("nodes_truenodeids", &all(|node| node.4)),
        ints("nodes_falsenodeids", &all(|node| node.5)),
        ints("target_treeids", &zeros),
        ints("target_nodeids", &leaves),
        ints("target_ids", &zeros),
        floats("target_weights", &weights),
        ints("n_targets", &[1]),
    ]
}

const LEAVES: [(i64, &str, i64, f32, i64, i64); 4] = [
    (3, "LEAF", 0, 0.0, 0, 0),
    (4, "LEAF", 0, 0.0, 0, 0),
    (5, "LEAF", 0, 0.0, 0, 0),
    (6, "LEAF", 0, 0.0, 0, 0),
];

/// A tree of two levels, whose first node compares by `a` and whose others by `b`.
fn two_levels(a: &'static str, b: &'static str) -> Vec<AttributeProto> {
    let mut nodes = vec![(0, a, 0, 0.5, 1, 2), (1, b, 1, 2.0, 3, 4), (2, b, 1, -4.0, 5, 6)];
    nodes.extend(LEAVES);
    tree(&nodes)
}

#[test]
fn trees_compare_in_all_ways() {
    // The rows are (-1, 2), (0.5, NaN), (3, -4).
    for (a, b, wanted) in [
        ("BRANCH_LEQ", "BRANCH_LEQ", [30.0, 40.0, 50.0]),
        ("BRANCH_LT", "BRANCH_LT", [40.0, 60.0, 60.0]),
        ("BRANCH_GTE", "BRANCH_GTE", [50.0, 40.0, 40.0]),
        ("BRANCH_GT", "BRANCH_GT", [50.0, 60.0, 40.0]),
        ("BRANCH_EQ", "BRANCH_EQ", [60.0, 40.0, 50.0]),
        ("BRANCH_NEQ", "BRANCH_NEQ", [40.0, 50.0, 30.0]),
        ("BRANCH_LEQ", "BRANCH_NEQ", [40.0, 30.0, 60.0]),
    ] {
        assert_eq!(y("TreeEnsembleRegressor", rows(), two_levels(a, b)), wanted, "{a}, {b}");
    }
    let mut tracked = two_levels("BRANCH_LEQ", "BRANCH_LEQ");
    tracked.push(ints("nodes_missing_value_tracks_true", &[0, 1, 0, 0, 0, 0, 0]));
    assert_eq!(y("TreeEnsembleRegressor", rows(), tracked), [30.0, 30.0, 50.0]);
    for how in ["AVERAGE", "MIN", "MAX"] {
        let mut tree = two_levels("BRANCH_LEQ", "BRANCH_LEQ");
        tree.extend([text("aggregate_function", how), floats("base_values", &[1.0])]);
        assert_eq!(y("TreeEnsembleRegressor", rows(), tree), [31.0, 41.0, 51.0], "{how}");
    }
}

#[test]
fn hostile_trees_are_errors() {
    let branch = "BRANCH_LEQ";
    let with = |nodes: &[(i64, &'static str, i64, f32, i64, i64)]| {
        let mut all = nodes.to_vec();
        all.extend(LEAVES);
        tree(&all)
    };
    let whole = [(0, branch, 0, 0.5, 1, 2), (1, branch, 1, 2.0, 3, 4), (2, branch, 1, 0.0, 5, 6)];
    let changed = |at: usize, node: (i64, &'static str, i64, f32, i64, i64)| {
        let mut nodes = whole;
        nodes[at] = node;
        with(&nodes)
    };
    let without = |name: &str| {
        let mut tree = with(&whole);
        tree.retain(|attribute| attribute.name != name);
        tree
    };
    let replaced = |attribute: AttributeProto| {
        let mut tree = without(&attribute.name);
        tree.push(attribute);
        tree
    };
    let mut chain: Vec<(i64, &str, i64, f32, i64, i64)> =
        (0..3000).map(|at| (100 + at, branch, 0, 0.0, 3, 101 + at)).collect();
    chain.push((3100, "LEAF", 0, 0.0, 0, 0));
    chain.push(LEAVES[0]);
    for (tree, words) in [
        (changed(1, (1, branch, 1, 2.0, 0, 4)), "no way leads from a root to its tree node 0"),
        (changed(1, (1, branch, 1, 2.0, 1, 4)), "tree 0 has two roots"),
        (changed(1, (1, branch, 1, 2.0, 2, 4)), "tree 0 has two roots"),
        (changed(1, (1, branch, 1, 2.0, 9, 4)), "leads from node 1 to node 9"),
        (changed(1, (1, branch, 1, 2.0, -1, 4)), "leads from node 1 to node -1"),
        (changed(1, (0, branch, 1, 2.0, 3, 4)), "tree 0 has two nodes 0"),
        (changed(0, (0, branch, 2, 0.5, 1, 2)), "reads the feature 2, and rows have 2"),
        (changed(0, (0, branch, i64::MAX, 0.5, 1, 2)), "reads the feature -1"),
        (changed(0, (0, branch, 0, 0.5, 1, 1)), "tree 0 has two roots"),
        (changed(0, (0, "BRANCH_MEMBER", 0, 0.5, 1, 2)), "the mode \"BRANCH_MEMBER\""),
        (tree(&chain), "more than 1024 levels"),
        (without("nodes_values"), "nodes_values has 0 elements, and 7 are needed"),
        (without("nodes_nodeids"), "elements, and 1 are needed"),
        (without("target_weights"), "target_weights has 0 elements, and 4 are needed"),
        (replaced(ints("target_nodeids", &[3, 4, 5, 99])), "a weight for node 99 of tree 0"),
        (replaced(ints("target_ids", &[0, 0, 0, 7])), "a target that is none of 1"),
        (replaced(ints("target_ids", &[0, 0, 0, -1])), "a target that is none of 1"),
        (replaced(ints("n_targets", &[1 << 60])), "7 nodes and"),
    ] {
        let text = error("TreeEnsembleRegressor", rows(), tree);
        assert!(text.contains(words), "{words}: {text}");
    }
    let ensemble = |next: i64| {
        vec![
            ints("tree_roots", &[0]),
            ints("nodes_featureids", &[0, 0]),
            numbers("nodes_splits", &[0.0, 1.0]),
            numbers("nodes_modes", &[0.0, 0.0]),
            ints("nodes_truenodeids", &[0, 1]),
            ints("nodes_trueleafs", &[1, 1]),
            ints("nodes_falsenodeids", &[1, next]),
            ints("nodes_falseleafs", &[0, i64::from(next > 0)]),
            ints("leaf_targetids", &[0, 0, 0]),
            numbers("leaf_weights", &[1.0, 2.0, 3.0]),
        ]
    };
    assert_eq!(y("TreeEnsemble", rows(), ensemble(2)), [1.0, 2.0, 3.0]);
    let text = error("TreeEnsemble", rows(), ensemble(0));
    assert!(text.contains("more than one way"), "{text}");
    let text = error("TreeEnsemble", rows(), ensemble(3));
    assert!(text.contains("lead to the leaf 3, and have 3"), "{text}");
}

#[test]
fn labels_and_categories_may_be_strings() {
    let words = |words: &[&str]| {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        HostArray::from_strings([words.len()], words).unwrap()
    };
    let strings = |results: &Outputs| {
        let array = results.value("y").unwrap().to_host_array().unwrap();
        let texts = array.strings().unwrap().iter();
        texts.map(|text| String::from_utf8(text.clone()).unwrap()).collect::<Vec<_>>()
    };
    let x = crate::tensor::constant([[1.0f32, 0.0], [-1.0, 0.0]]).unwrap();
    let attributes = vec![
        texts("classlabels_strings", &["no", "yes"]),
        floats("coefficients", &[-1.0, 0.0, 1.0, 0.0]),
        floats("intercepts", &[0.0, 0.0]),
    ];
    let results = run("LinearClassifier", x, attributes).unwrap();
    assert_eq!(strings(&results), ["yes", "no"]);
    let keys = || texts("keys_strings", &["a", "b"]);
    let encoded = y(
        "LabelEncoder",
        words(&["b", "c", "a"]),
        vec![keys(), ints("values_int64s", &[4, 5]), ints("default_int64", &[9])],
    );
    assert_eq!(encoded, [5.0, 9.0, 4.0]);
    let values = texts("values_strings", &["one", "two"]);
    let numbers = crate::tensor::constant([2, 3, 1]).unwrap();
    let results = run("LabelEncoder", numbers, vec![ints("keys_int64s", &[1, 2]), values]).unwrap();
    assert_eq!(strings(&results), ["two", "_Unused", "one"]);
    let hot = y("OneHotEncoder", words(&["b", "c"]), vec![texts("cats_strings", &["a", "b"])]);
    assert_eq!(hot, [0.0, 1.0, 0.0, 0.0]);
    let nan = vec![floats("keys_floats", &[f32::NAN, 2.0]), floats("values_floats", &[7.0, 8.0])];
    assert_eq!(y("LabelEncoder", rows(), nan), [-0.0, 8.0, -0.0, 7.0, -0.0, -0.0]);
    let text = error("LabelEncoder", words(&["a"]), vec![keys(), ints("values_int64s", &[4])]);
    assert!(text.contains("2 keys and 1 values"), "{text}");
}

#[test]
fn an_unknown_category_is_refused_in_each_call() {
    let rows = |last: i32| crate::tensor::constant([0, 1, last]).unwrap();
    let attributes = vec![ints("cats_int64s", &[0, 1, 2]), ints("zeros", &[0])];
    let model = model("OneHotEncoder", &rows(2).into(), attributes).unwrap();
    for last in [2, 0, 1, 2] {
        let y = model.call([("x", rows(last))]).unwrap();
        let hot = y.tensor("y").unwrap().to_vec::<f32>().unwrap();
        assert_eq!(hot[6 + last as usize], 1.0);
        let text = model.call([("x", rows(3))]).map(drop).unwrap_err().to_string();
        assert!(text.contains("handle_unknown='ignore'"), "{text}");
    }
}

#[test]
fn numbers_that_do_not_fit_are_errors() {
    for (op, attributes, words) in [
        ("Scaler", vec![], "offset has 0 elements"),
        ("Imputer", vec![floats("imputed_value_floats", &[1.0; 3])], "has 3 elements, and 1 or 2"),
        ("Normalizer", vec![text("norm", "L3")], "the norm L3"),
        ("LinearRegressor", vec![floats("coefficients", &[1.0; 3])], "it has 3 coefficients"),
        (
            "LinearRegressor",
            vec![floats("coefficients", &[1.0]), ints("targets", &[i64::MAX])],
            "1 coefficients",
        ),
        ("LinearClassifier", vec![ints("classlabels_ints", &[1 << 40])], "which is no i32"),
        ("LinearClassifier", vec![], "classlabels_ints has 0 elements"),
        ("OneHotEncoder", vec![], "cats_int64s has 0 elements"),
        ("SVMRegressor", vec![], "rho has 0 elements"),
        (
            "SVMRegressor",
            vec![floats("rho", &[0.0]), ints("n_supports", &[i64::MAX])],
            "coefficients has 0 elements",
        ),
        (
            "SVMClassifier",
            vec![
                ints("classlabels_ints", &[0, 1]),
                ints("vectors_per_class", &[i64::MAX, i64::MAX]),
            ],
            "is not supported",
        ),
        (
            "SVMClassifier",
            vec![ints("classlabels_ints", &[0, 1]), ints("vectors_per_class", &[-1, 1])],
            "fewer than no vectors",
        ),
        (
            "SVMClassifier",
            vec![ints("classlabels_ints", &[0, 1]), ints("vectors_per_class", &[1, 1])],
            "coefficients has 0 elements, and 2 for each of 1",
        ),
        ("FeatureVectorizer", vec![ints("inputdimensions", &[3])], "2 features in each row, and 3"),
        ("ZipMap", vec![], "Export it with zipmap=False"),
    ] {
        let text = error(op, rows(), attributes);
        assert!(text.contains(words), "{op}: {text}");
    }
}
