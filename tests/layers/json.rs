//! Models as JSON: Keras's files are read, ours are read back, hostile ones are refused.

#![cfg(feature = "json")]
#![allow(clippy::unwrap_used)]

use crate::support::compare::close;
use crate::support::root;
use crate::values;

use std::sync::Arc;

use wgrad::keras::layers::{Conv2D, Dense, Dropout, Flatten};
use wgrad::keras::{
    Activation, Config, Context, CustomObjects, Functional, INFERENCE, Input, Layer, LayerExt,
    Sequential,
};
use wgrad::{DType, Result, Tensor, Trackable};

/// A file that Keras 3.15 wrote.
fn keras(name: &str) -> String {
    let folder = root::root().join("tests/data/keras");
    std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap()
}

/// Sets the weights to -0.5, -0.49, ... in order, and the inputs to 0, 0.01, ...: Keras's results for them are below.
fn count_weights(model: &impl Trackable) {
    let mut next = 0;
    for variable in model.variables() {
        let count: usize = variable.shape().iter().product();
        let numbers: Vec<f32> =
            (next..next + count).map(|i| (i % 101) as f32 * 0.01 - 0.5).collect();
        variable.assign(Tensor::from_slice(&numbers, variable.shape()).unwrap()).unwrap();
        next += count;
    }
}

fn counted(shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let numbers: Vec<f32> = (0..count).map(|i| (i % 97) as f32 * 0.01).collect();
    Tensor::from_slice(&numbers, shape).unwrap()
}

#[test]
fn a_stack_of_keras_is_read() {
    let model = Sequential::from_json(&keras("stack")).unwrap();
    count_weights(&model);
    close(&model.call(&counted(&[2, 8, 8, 1]), INFERENCE).unwrap(), STACK);
    assert!(model.summary().starts_with("Model: \"stack\""));
    let again = Sequential::from_json(&model.to_json().unwrap()).unwrap();
    assert_eq!(again.to_json().unwrap(), model.to_json().unwrap());
}

#[test]
fn a_graph_of_keras_is_read() {
    let model = Functional::from_json(&keras("graph")).unwrap();
    assert_eq!(model.input_names(), ["left", "right"]);
    assert_eq!(model.output_names(), ["inner", "minus"]);
    count_weights(&model);
    let y = model.call(&[counted(&[2, 4]), counted(&[2, 6])], INFERENCE).unwrap();
    close(&y[0], GRAPH_0);
    close(&y[1], GRAPH_1);
    // The frozen layer is frozen.
    assert!(model.get_layer("frozen").unwrap().trainable_variables().is_empty());
    let again = Functional::from_json(&model.to_json().unwrap()).unwrap();
    assert_eq!(again.to_json().unwrap(), model.to_json().unwrap());
    assert_eq!(again.summary(), model.summary());
}

#[test]
fn masks_that_keras_writes_are_read() {
    let model = Functional::from_json(&keras("masked")).unwrap();
    count_weights(&model);
    let words = wgrad::constant([[1, 2, 0, 0], [3, 9, 4, 0]]).unwrap();
    close(&model.call(&words, INFERENCE).unwrap(), MASKED);
}

#[test]
fn sequences_under_masks_are_those_of_keras() {
    let model = Functional::from_json(&keras("sequence")).unwrap();
    // Recurrent layers, attention over padded queries, and a mean over all positions, including the padding.
    let words = wgrad::constant([[1, 2, 0, 0], [3, 9, 4, 0]]).unwrap();
    model.call(&words, INFERENCE).unwrap();
    count_weights(&model);
    close(
        &model.call(&words, INFERENCE).unwrap(),
        &[0.3799315, 0.3951745, 0.4104174, 0.3835585, 0.3988821, 0.4142057],
    );
}

fn whole() -> Functional {
    let x = Input::new([8, 8, 1]).with_name("image");
    let stack = Sequential::new()
        .with_name("stack")
        .add(Conv2D::new(4, [3, 3]).activation(Activation::Relu))
        .add(Dropout::new(0.5))
        .add(Flatten::new());
    let y = stack.on(&x).unwrap();
    let shared = Arc::new(Dense::new(144).use_bias(false));
    let y = shared.clone().on(&y).unwrap();
    let y = shared.on(&(&(2.0 / &(&y + 3.0)) - &y)).unwrap();
    Functional::new(&x, &y).unwrap().with_name("whole")
}

#[test]
fn what_is_written_comes_back() {
    let model = whole();
    let text = model.to_json().unwrap();
    let copy = Functional::from_json(&text).unwrap();
    assert_eq!(copy.to_json().unwrap(), text);
    assert_eq!(copy.summary(), model.summary());
    copy.set_weights(&model.get_weights().unwrap()).unwrap();
    let x = counted(&[3, 8, 8, 1]);
    let of = |model: &Functional| values(&model.call(&x, INFERENCE).unwrap());
    assert_eq!(of(&copy), of(&model));
    // Keras's results for this text with these weights.
    count_weights(&copy);
    let y = values(&copy.call(&counted(&[1, 8, 8, 1]), INFERENCE).unwrap());
    let want = [-0.546_667_5, -0.260_001_03, 0.026_665_6, 0.313_332_35, 0.599_999, 0.213_332_3];
    assert!(y.iter().zip(want).all(|(y, want)| (y - want).abs() < 1e-4), "{y:?}");
}

/// `scale x`
#[derive(Trackable)]
struct Scale {
    scale: f32,
}

impl Layer for Scale {
    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        x.multiply(self.scale)
    }

    fn get_config(&self) -> Result<Config> {
        let mut config = Config::new("Scale");
        config.set("scale", &self.scale)?;
        Ok(config)
    }
}

/// The sum of several.
#[derive(Trackable)]
struct Sum;

impl Layer<[Tensor]> for Sum {
    fn call(&self, x: &[Tensor], _cx: Context<'_>) -> Result<Tensor> {
        x[1..].iter().try_fold(x[0].clone(), |sum, x| sum.add(x))
    }

    fn get_config(&self) -> Result<Config> {
        Ok(Config::new("Sum"))
    }
}

#[test]
fn layers_of_ones_own_come_back() {
    let x = Input::new([3]);
    let inner = Sequential::new().add(Scale { scale: 2.0 });
    let y = inner.on(&x).unwrap();
    let y = Sum.on_all([&y, &*x, &y]).unwrap();
    let model = Functional::new(&x, &y).unwrap();
    let text = model.to_json().unwrap();
    let custom = CustomObjects::new()
        .layer("Scale", |config| Ok(Scale { scale: config.need("scale")? }))
        .merging_layer("Sum", |_| Ok(Sum));
    let copy = Functional::from_json_with(&text, &custom).unwrap();
    assert_eq!(values(&copy.call(&Tensor::ones([1, 3]).unwrap(), INFERENCE).unwrap()), [5.0; 3]);
    let error = Functional::from_json(&text).err().unwrap().to_string();
    assert!(
        error.starts_with("layer 'sequential/scale': from_config: there is no layer 'Scale'."),
        "{error}"
    );
}

#[track_caller]
fn reported(text: &str) -> String {
    Functional::from_json(text).err().unwrap().to_string()
}

fn graph(layers: &str, ends: &str) -> String {
    format!(
        r#"{{"class_name": "Functional", "config": {{"name": "m", "layers": [{layers}], {ends}}}}}"#
    )
}

const X: &str = r#"{"class_name": "InputLayer", "config": {"batch_shape": [null, 2]}, "name": "x", "inbound_nodes": []}"#;

fn dense(name: &str, units: &str, from: &str) -> String {
    format!(
        r#"{{"module": "keras.layers", "class_name": "Dense", "config": {{"units": {units}}}, "name": "{name}",
        "inbound_nodes": [{{"args": [{{"class_name": "__keras_tensor__", "config": {{"keras_history": {from}}}}}]}}]}}"#
    )
}

#[test]
fn hostile_texts_are_refused() {
    let ends = r#""input_layers": ["x", 0, 0], "output_layers": ["a", 0, 0]"#;
    assert!(reported("{").starts_with("from_json: the text is not valid JSON: EOF"));
    let deep = "[".repeat(100_000);
    assert!(reported(&deep).contains("recursion limit exceeded"), "{}", reported(&deep));
    assert_eq!(reported("{}"), "from_json: the model has no 'class_name'; it must be a string.");
    assert_eq!(
        reported(r#"{"class_name": "Sequential", "config": {}}"#),
        "from_json: the text describes a Sequential, and a Functional was requested. Call Sequential::from_json."
    );
    assert_eq!(
        reported(r#"{"class_name": "Functional"}"#),
        "from_json: the Functional has no 'config'."
    );
    assert_eq!(
        reported(r#"{"class_name": "Functional", "config": {}}"#),
        "from_json: the Functional has no 'layers'; it must be a list."
    );
    let of = |layers: &[String]| reported(&graph(&layers.join(","), ends));
    assert_eq!(
        of(&[X.into(), dense("a", "1", r#"["b", 0, 0]"#), dense("b", "1", r#"["a", 0, 0]"#)]),
        "from_json: call 0 of 'a' uses results that are never computed: the layers form a cycle, or one refers to a \
         call that does not exist."
    );
    assert_eq!(
        of(&[X.into(), dense("a", "1", r#"["c", 0, 0]"#)]),
        "layer 'a': from_json: there is no layer 'c', whose result is taken."
    );
    assert_eq!(
        of(&[X.into(), dense("a", "1", r#"["x", 0, 7]"#)]),
        "from_json: 'a' takes result 7 of 'x', which has none."
    );
    assert_eq!(of(&[X.into(), X.into()]), "from_json: two layers are called 'x'.");
    assert_eq!(
        of(&[X.into(), dense("a", "-3", r#"["x", 0, 0]"#)]),
        "layer 'a': from_config: 'units' of Dense is -3; it must be a whole number."
    );
    for units in ["900000000000000", "4611686018427387904", "1e30"] {
        let error = of(&[X.into(), dense("a", units, r#"["x", 0, 0]"#)]);
        assert!(error.starts_with("layer 'a': "), "{error}");
    }
    let unknown = r#"{"class_name": "Nonsense", "config": {}, "name": "a", "inbound_nodes": []}"#;
    assert!(
        of(&[X.into(), unknown.into()])
            .starts_with("layer 'a': from_config: there is no layer 'Nonsense'.")
    );
    let wide = X.replace("[null, 2]", "[null, -1]");
    assert_eq!(
        of(&[wide]),
        "layer 'x': from_json: 'batch_shape' is [null,-1]; it must be a list of sizes and null."
    );
    let nested = (0..20)
        .fold(r#"{"class_name": "Dense", "config": {"units": 1}}"#.to_string(), |inner, _| {
            format!(r#"{{"class_name": "Sequential", "config": {{"layers": [{inner}]}}}}"#)
        });
    Sequential::from_json(&nested).unwrap();
}

/// The result of a call of `keras.ops` on `x` in a model: `config` and `more` arguments as JSON.
fn of_op(class: &str, config: &str, more: &str, x: &Tensor) -> Result<Tensor> {
    let sizes = |shape: &[usize]| shape.iter().map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let dtype = if x.dtype() == DType::F32 { "float32" } else { "int32" };
    let input = format!(
        r#"{{"class_name": "InputLayer", "config": {{"batch_shape": [null, {}], "dtype": "{dtype}", "name": "x"}}, "name": "x",
        "inbound_nodes": []}}"#,
        sizes(&x.shape()[1..])
    );
    let tensor = r#"{"class_name": "__keras_tensor__", "config": {"keras_history": ["x", 0, 0]}}"#;
    let more = if more.is_empty() { String::new() } else { format!(", {more}") };
    let args = match more.strip_prefix(", before ") {
        Some(number) => format!("{number}, {tensor}"),
        None => format!("{tensor}{more}"),
    };
    let op = format!(
        r#"{{"module": "keras.src.ops.numpy", "class_name": "{class}", "config": {config}, "name": "a",
        "inbound_nodes": [{{"args": [{args}], "kwargs": {{}}}}]}}"#
    );
    let ends = r#""input_layers": [["x", 0, 0]], "output_layers": [["a", 0, 0]]"#;
    let model = Functional::from_json(&graph(&[input, op].join(","), ends))?;
    // Reading the written text gives the same model.
    let again = Functional::from_json(&model.to_json()?)?;
    let (y, same) = (model.call(x, INFERENCE)?, again.call(x, INFERENCE)?);
    assert_eq!((y.shape(), y.dtype()), (same.shape(), same.dtype()), "{class}");
    Ok(y)
}

#[test]
fn options_of_ops_are_those_of_keras() -> Result<()> {
    let x = Tensor::from_slice(&[-3.0f32, -1.0, -2.0, 1.0, 2.0, 0.5], [2, 3])?;
    let shape = |axis: &str| -> Result<Vec<usize>> {
        Ok(of_op("ExpandDims", &format!(r#"{{"axis": {axis}}}"#), "", &x)?.shape().to_vec())
    };
    assert_eq!(shape("1")?, [2, 1, 3]);
    assert_eq!(shape("[-2, -1]")?, [2, 3, 1, 1]);
    assert_eq!(shape("[1, -1]")?, [2, 1, 3, 1]);
    let values = |class: &str, config: &str| -> Result<Vec<f32>> {
        Ok(values(&of_op(class, config, "", &x)?))
    };
    assert_eq!(values("Max", r#"{"axis": -1, "initial": 0.0}"#)?, [0.0, 2.0]);
    assert_eq!(values("Max", r#"{"axis": -1}"#)?, [-1.0, 2.0]);
    assert_eq!(values("Min", r#"{"axis": -1, "initial": 0}"#)?, [-3.0, 0.0]);
    assert_eq!(values("Sort", r#"{"axis": null}"#)?, [-3.0, -2.0, -1.0, 0.5, 1.0, 2.0]);
    assert_eq!(values("Cumsum", r#"{"axis": null}"#)?, [-3.0, -4.0, -6.0, -5.0, -3.0, -2.5]);
    let all = of_op("Softmax", r#"{"axis": null}"#, "", &x)?;
    assert_eq!(all.shape(), [2, 3]);
    assert!((all.reduce_sum(())?.item::<f32>()? - 1.0).abs() < 1e-6);
    let length = of_op("Normalize", r#"{"axis": null, "epsilon": 1e-12}"#, "", &x)?;
    assert!((length.square()?.reduce_sum(())?.item::<f32>()? - 1.0).abs() < 1e-6);
    let tiny = (&x * 1e-10).clone();
    let length = of_op("Normalize", r#"{"axis": -1, "epsilon": 1e-12}"#, "", &tiny)?;
    assert!((length.square()?.reduce_sum(())?.item::<f32>()? - 2.0).abs() < 1e-5);
    let ones = of_op("OnesLike", r#"{"dtype": "int32"}"#, "", &x)?;
    assert_eq!(ones.to_vec::<i32>()?, [1; 6]);
    let place = of_op("Argmax", r#"{"axis": null, "keepdims": true}"#, "", &x)?;
    assert_eq!((place.shape(), place.to_vec::<i32>()?), (&[1, 1][..], vec![4]));
    Ok(())
}

#[test]
fn numbers_next_to_tensors_have_the_dtypes_of_keras() -> Result<()> {
    let n = Tensor::from_slice(&[2, 40, -1], [1, 3])?;
    let floats =
        |class: &str, more: &str| -> Result<Vec<f32>> { of_op(class, "{}", more, &n)?.to_vec() };
    assert_eq!(floats("Power", "-1.0")?, [0.5, 0.025, -1.0]);
    assert_eq!(floats("Power", "before 2.0")?, [4.0, 1_099_511_627_776.0, 0.5]);
    assert_eq!(floats("Multiply", "1.0")?, [2.0, 40.0, -1.0]);
    assert_eq!(of_op("Multiply", "{}", "3", &n)?.to_vec::<i32>()?, [6, 120, -3]);
    assert_eq!(of_op("Clip", r#"{"x_min": 0, "x_max": 9}"#, "", &n)?.to_vec::<i32>()?, [2, 9, 0]);
    let x = Tensor::from_slice(&[0.6f32, 0.6], [1, 2])?;
    assert_eq!(of_op("Greater", "{}", "[0.5, 0.7]", &x)?.to_vec::<bool>()?, [true, false]);
    // A number that Rust adds to integers stays an integer, also in a file.
    let ids = Input::new([3]).with_dtype(DType::I32);
    let model = Functional::new(&ids, &*ids + 1.0)?;
    let again = Functional::from_json(&model.to_json()?)?;
    for model in [&model, &again] {
        assert_eq!(model.call(&n, INFERENCE)?.to_vec::<i32>()?, [3, 41, 0]);
    }
    Ok(())
}

#[test]
fn hostile_calls_of_ops_are_errors() -> Result<()> {
    let x = counted(&[2, 3]);
    let wrong = |class: &str, config: &str, more: &str, what: &str| {
        let error = of_op(class, config, more, &x).unwrap_err().to_string();
        assert!(error.contains(what), "{class}: {error}");
    };
    let dots = r#"{"class_name": "__ellipsis__", "config": {}}"#;
    wrong("GetItem", "{}", &format!("[{dots}, {dots}, 0]"), "several ellipses");
    wrong("Swapaxes", r#"{"axis1": [], "axis2": 0}"#, "", "moves axes [] to [0]");
    wrong("Moveaxis", r#"{"source": [0, 1], "destination": 0}"#, "", "moves axes [0, 1] to [0]");
    wrong("ExpandDims", r#"{"axis": [1, 1]}"#, "", "adds axis 1 to [2, 3]");
    wrong("Split", r#"{"indices_or_sections": [2, 1], "axis": 1}"#, "", "has 1 behind 2");
    wrong("Sort", r#"{"axis": -1, "descending": true}"#, "", "has true as 'descending'");
    wrong("Greater", "{}", "[1099511627776, 0, 1]", "1099511627776");
    wrong("Clip", r#"{"x_min": "a", "x_max": 1}"#, "", r#"has "a" as 'x_min'"#);
    // A thousand operands are multiplied one after the other.
    let letters = format!("ab{}->ab", ",".repeat(1000));
    let ones = vec!["1.0"; 1000].join(",");
    let y = of_op("Einsum", &format!(r#"{{"subscripts": "{letters}"}}"#), &ones, &x)?;
    close(&y, &values(&x));
    Ok(())
}

/// Keras fills in the masks that a call omits.
#[test]
fn a_mask_that_a_call_names_leaves_the_others_on() -> Result<()> {
    let input = |name: &str, dtype: &str| {
        format!(
            r#"{{"class_name": "InputLayer", "config": {{"batch_shape": [null, 3], "dtype": "{dtype}", "name": "{name}"}},
            "name": "{name}", "inbound_nodes": []}}"#
        )
    };
    let from = |name: &str| {
        format!(
            r#"{{"class_name": "__keras_tensor__", "config": {{"keras_history": ["{name}", 0, 0]}}}}"#
        )
    };
    let embedding = format!(
        r#"{{"module": "keras.layers", "class_name": "Embedding", "config": {{"input_dim": 5, "output_dim": 4,
        "mask_zero": true}}, "name": "e", "inbound_nodes": [{{"args": [{}], "kwargs": {{}}}}]}}"#,
        from("ids")
    );
    let attention = format!(
        r#"{{"module": "keras.layers", "class_name": "MultiHeadAttention", "config": {{"num_heads": 2, "key_dim": 4}},
        "name": "a", "inbound_nodes": [{{"args": [{0}, {0}], "kwargs": {{"query_mask": {1}}}}}]}}"#,
        from("e"),
        from("mask")
    );
    let layers = [input("ids", "int32"), input("mask", "bool"), embedding, attention];
    let ends = r#""input_layers": [["ids", 0, 0], ["mask", 0, 0]], "output_layers": [["a", 0, 0]]"#;
    let model = Functional::from_json(&graph(&layers.join(","), ends))?;
    let ids = Tensor::from_slice(&[1, 2, 0], [1, 3])?;
    let mask = Tensor::from_slice(&[true, true, true], [1, 3])?;
    let heard = || -> Result<Vec<f32>> {
        let y = model.call(&[ids.clone(), mask.clone()][..], INFERENCE)?.remove(0);
        y.slice(&[0, 0, 0], &[1, 2, 4])?.to_vec()
    };
    let before = heard()?;
    let table = model.variables().into_iter().find(|v| v.shape() == [5, 4]).unwrap();
    // Padding words are not attended to.
    let other = Tensor::from_slice(&[100.0f32; 4], [1, 4])?;
    let rest = table.read().slice(&[1, 0], &[4, 4])?;
    table.assign(wgrad::concat([&other, &rest], 0)?)?;
    assert_eq!(heard()?, before);
    Ok(())
}

/// TensorFlow's checkpoints identify layers by numbers, and operators count.
#[cfg(feature = "checkpoint")]
#[test]
fn operators_of_a_file_are_numbered_as_those_of_a_program() -> Result<()> {
    use wgrad::keras::layers::{Embedding, Lstm};
    let (a, b) = (Input::new([5]).with_dtype(DType::I32), Input::new([5]).with_dtype(DType::I32));
    let words = || Embedding::new(9, 4).mask_zero(true);
    let sum = words().on(&a)? + words().on(&b)?;
    let y = Dense::new(2).on(&Lstm::new(3).on(&sum)?)?;
    let model = Functional::new([&a, &b], y)?;
    let read = Functional::from_json(&model.to_json()?)?;
    let folder = std::env::temp_dir().join(format!("wgrad-model-json-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let names = |model: &Functional, name: &str| -> Result<Vec<String>> {
        let path = wgrad::train::Checkpoint::new().with("model", model).write(folder.join(name))?;
        let list = wgrad::train::list_variables(path)?;
        Ok(list.into_iter().map(|(name, _)| name).collect())
    };
    assert_eq!(names(&model, "a")?, names(&read, "b")?);
    std::fs::remove_dir_all(folder).unwrap();
    Ok(())
}

#[test]
fn functions_cannot_be_written() {
    let x = Input::new([2]);
    let model = Functional::new(&x, x.map("square", |x| x.square()).unwrap()).unwrap();
    assert_eq!(
        model.to_json().unwrap_err().to_string(),
        "layer 'square': get_config: a function of the program cannot be written as JSON. Make it a layer of your own with \
         a get_config."
    );
}

#[test]
fn large_models_are_read_in_linear_time() {
    let x = Input::new([2]);
    let mut y = x.add(1.0).unwrap();
    for _ in 0..2000 {
        y = y.add(&x).unwrap();
    }
    let text = Functional::new(&x, &y).unwrap().to_json().unwrap();
    let model = Functional::from_json(&text).unwrap();
    assert_eq!(model.layers().count(), 2001);
}
const STACK: &[f32] = &[0.331003, 0.333328, 0.335669, 0.331003, 0.333328, 0.335669];
const GRAPH_0: &[f32] = &[0.758317, 0.79199, 0.756945, 0.790553];
const GRAPH_1: &[f32] = &[0.914577, 0.865288, 0.94204, 0.894074];
const MASKED: &[f32] = &[
    0.287738,
    0.285707,
    0.283245,
    0.280369,
    -0.363304,
    -0.352717,
    -0.34192,
    -0.330924,
    0.259003,
    0.26389,
    0.268529,
    0.272927,
    -0.0197972,
    -0.00554936,
    0.0088267,
    0.0233242,
];
