//! Models behind layers for strings: what they compute, learn and store, and their errors. `tests/judge/preprocessing.rs` compares their
//! files with Keras's.

use std::sync::Arc;

use wgrad::data::Dataset;
use wgrad::keras::layers::{
    Concatenate, Dense, Embedding, Flatten, GlobalAveragePooling1D, HashedCrossing, HostLayer,
    OutputMode, StringLookup, Table, TextVectorization,
};
use wgrad::keras::{
    CompileOptions, Context, EvaluateOptions, FitOptions, FrontModel, Functional, HostSymbol,
    INFERENCE, Initializer, Input, Layer, LayerExt, Model, PredictOptions, Sequential,
    front_into_json, front_of_json, saving,
};
use wgrad::{DType, Device, DeviceStats, Error, Parts, Tensor, Trackable};

use crate::support::folder::Folder;

const TEXTS: [&str; 6] =
    ["good film", "bad film", "a good one", "so bad", "very good", "bad bad bad"];
const LABELS: [[f32; 1]; 6] = [[1.0], [0.0], [1.0], [0.0], [1.0], [0.0]];

/// Passes its input on, which must be indices.
struct Indices(std::sync::Arc<std::sync::Mutex<Vec<DType>>>);

impl Trackable for Indices {
    fn track(&self, _parts: &mut Parts<'_>) {}
}

impl Layer for Indices {
    fn call(&self, x: &Tensor, _cx: Context<'_>) -> wgrad::Result<Tensor> {
        self.0.lock().unwrap().push(x.dtype());
        x.cast(DType::F32)
    }
}

#[test]
fn indices_reach_a_model_as_integers_and_counts_as_floats() {
    for (mode, dtype) in [(OutputMode::Int, DType::I32), (OutputMode::Count, DType::F32)] {
        let texts = TextVectorization::new().vocabulary(["good", "film"]).output_mode(mode);
        let words = StringLookup::new().vocabulary(["good", "film"]).output_mode(mode);
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let model = || Sequential::new().add(Indices(seen.clone()));
        FrontModel::new(model()).front(texts).call_host(&["good"], INFERENCE).unwrap();
        FrontModel::new(model()).front(words).call_host(&["good"], INFERENCE).unwrap();
        assert!(seen.lock().unwrap().iter().all(|own| *own == dtype), "{mode:?}: {seen:?}");
        assert!(seen.lock().unwrap().len() >= 2);
    }
}

fn stack() -> FrontModel {
    let words = TextVectorization::new().output_sequence_length(4);
    words.adapt(&TEXTS).unwrap();
    let model = Sequential::new()
        .add(Embedding::new(words.vocabulary_size().unwrap(), 8))
        .add(GlobalAveragePooling1D::new())
        .add(Dense::new(1));
    let options = CompileOptions::new().metrics(["mae"]);
    model.compile("adam", "mse", options).unwrap();
    Model::<Tensor>::trainer(&model).optimizer().unwrap().set_learning_rate(0.05).unwrap();
    FrontModel::new(model).front(words)
}

/// A model of a text, a word and a number.
fn graph() -> FrontModel<Functional> {
    let (text, word) = (HostSymbol::input("text"), HostSymbol::input("word"));
    let words = TextVectorization::new().output_sequence_length(4);
    words.adapt(&TEXTS).unwrap();
    let count = words.vocabulary_size().unwrap();
    let colors = StringLookup::new().vocabulary(["red", "green"]).output_mode(OutputMode::OneHot);
    let cross = HostSymbol::cross(&[&text, &word], HashedCrossing::new(5));

    let tokens = Input::new([4]).with_dtype(DType::I32).with_name("tokens");
    let color = Input::new([3]).with_name("color");
    let bin = Input::new([1]).with_dtype(DType::I32).with_name("bin");
    let size = Input::new([1]).with_name("size");
    let pooled = GlobalAveragePooling1D::new().on(&Embedding::new(count, 8).on(&tokens).unwrap());
    let crossed = Flatten::new().on(&Embedding::new(5, 2).on(&bin).unwrap()).unwrap();
    let all = [&pooled.unwrap(), &color, &crossed, &size];
    let y = Dense::new(1).on(&Concatenate::new().on_all(all).unwrap()).unwrap();
    let model = Functional::new([&tokens, &color, &bin, &size], &y).unwrap();
    let tokens = text.then(Arc::new(words));
    let color = word.then(Arc::new(colors));
    FrontModel::functional(model, [("tokens", &tokens), ("color", &color), ("bin", &cross)])
        .unwrap()
}

const COLORS: [&str; 6] = ["red", "green", "blue", "red", "green", "blue"];
const SIZES: [f32; 6] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6];

fn table() -> Table {
    Table::new().column("text", &TEXTS).column("word", &COLORS).column("size", &SIZES)
}

#[test]
fn a_stack_learns_from_strings() {
    let model = stack();
    let before = model.evaluate((&TEXTS, &LABELS), EvaluateOptions::new().verbose(0)).unwrap();
    let options = FitOptions::new().epochs(30).batch_size(3).verbose(0);
    let data = model.data((&TEXTS, &LABELS)).unwrap();
    let history = model.fit((&TEXTS, &LABELS), options.validation_data(data)).unwrap();
    assert_eq!(history.get("val_loss").unwrap().len(), 30);
    let after = model.evaluate((&TEXTS, &LABELS), EvaluateOptions::new().verbose(0)).unwrap();
    assert!(after.get("loss").unwrap() < before.get("loss").unwrap() / 4.0, "{before:?} {after:?}");

    // A dataset of strings does the same as arrays do.
    let items: Vec<(String, f32)> =
        TEXTS.iter().zip(LABELS).map(|(text, label)| (text.to_string(), label[0])).collect();
    let dataset = Dataset::from_tensor_slices(items).unwrap().batch(6);
    let logs = model.evaluate(&dataset, EvaluateOptions::new().verbose(0)).unwrap();
    assert!(
        (logs.get("mae").unwrap() - after.get("mae").unwrap()).abs() < 1e-5,
        "{logs:?} {after:?}"
    );
    model.fit(&dataset, FitOptions::new().epochs(2).verbose(0)).unwrap();

    let y = model.predict(&TEXTS, PredictOptions::new().batch_size(4)).unwrap();
    let whole = model.call_host(&TEXTS, INFERENCE).unwrap();
    assert_eq!(y.shape(), [6, 1]);
    let near = y
        .to_vec::<f32>()
        .unwrap()
        .iter()
        .zip(whole.to_vec::<f32>().unwrap())
        .all(|(a, b)| (a - b).abs() < 1e-5);
    assert!(near);
}

#[test]
fn a_functional_model_has_inputs_of_strings_and_numbers() {
    let model = graph();
    assert_eq!(model.input_names(), ["text", "word", "size"]);
    let arrays = model.preprocess(&table()).unwrap();
    assert_eq!(
        arrays.iter().map(|x| x.shape().to_vec()).collect::<Vec<_>>(),
        [vec![6, 4], vec![6, 3], vec![6, 1], vec![6, 1]]
    );
    assert_eq!(
        arrays[1].to_array::<i64>().unwrap().into_raw_vec_and_offset().0,
        [0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0]
    );
    let y = model.call_host(&table(), INFERENCE).unwrap()[0].to_vec::<f32>().unwrap();
    let z = model.call_host(&(TEXTS, COLORS, SIZES), INFERENCE).unwrap();
    assert_eq!(z[0].to_vec::<f32>().unwrap(), y);

    model.model().compile("adam", "mse", CompileOptions::new()).unwrap();
    let options = FitOptions::new().epochs(2).verbose(0);
    model.fit(((TEXTS, COLORS, SIZES), &LABELS), options).unwrap();
    let rows: Vec<((String, String, f32), f32)> = (0..6)
        .map(|at| ((TEXTS[at].to_string(), COLORS[at].to_string(), SIZES[at]), LABELS[at][0]))
        .collect();
    let dataset = Dataset::from_tensor_slices(rows).unwrap().batch(4);
    let history = model.fit(&dataset, FitOptions::new().epochs(2).verbose(0)).unwrap();
    assert_eq!(history.get("loss").unwrap().len(), 2);
    let y = model.predict(&table(), PredictOptions::new()).unwrap();
    assert_eq!(y[0].shape(), [6, 1]);
}

#[test]
fn files_have_the_front() {
    let folder = Folder::new("front");
    let model = graph();
    let path = folder.path("graph.keras");
    model.save(&path).unwrap();
    let copy = FrontModel::load_functional(&path).unwrap();
    assert_eq!(copy.input_names(), model.input_names());
    // Its inputs may be in another order; from then on, nothing changes.
    copy.save(&path).unwrap();
    let again = FrontModel::load_functional(&path).unwrap();
    assert_eq!(again.to_json().unwrap(), copy.to_json().unwrap());
    let y = |model: &FrontModel<Functional>| {
        model.call_host(&table(), INFERENCE).unwrap()[0].to_vec::<f32>().unwrap()
    };
    assert_eq!(y(&copy), y(&model));
    assert_eq!(y(&again), y(&model));

    // Separated and joined, the JSON is the same.
    let json = model.to_json().unwrap();
    let (rest, plan) = front_of_json(&json).unwrap().unwrap();
    assert!(!rest.contains("TextVectorization") && plan.contains("TextVectorization"));
    assert_eq!(front_into_json(&rest, &plan).unwrap().len(), json.len());
    let model = Functional::from_json(&rest).unwrap();
    assert_eq!(model.inputs().len(), 4);
    assert!(front_of_json(&model.to_json().unwrap()).unwrap().is_none());

    // A reader of models without a front says what to call.
    let error = saving::load_model(&path).unwrap_err().to_string();
    assert!(error.contains("FrontModel::load_functional"), "{error}");
    let stack = stack();
    stack.model().build([1, 4]).unwrap();
    let path = folder.path("stack.keras");
    stack.save(&path).unwrap();
    let error = saving::load_model(&path).unwrap_err().to_string();
    assert!(error.contains("FrontModel::load"), "{error}");
    let copy = FrontModel::load(&path).unwrap();
    let y =
        |model: &FrontModel| model.call_host(&TEXTS, INFERENCE).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(y(&copy), y(&stack));
}

#[test]
fn wrong_inputs_are_errors() {
    let model = graph();
    let error = |result: wgrad::Result<Vec<Tensor>>| result.unwrap_err().to_string();
    let text = error(model.call_host(&TEXTS, INFERENCE));
    assert!(text.contains("3 inputs, text, word, size; it was called with 1"), "{text}");
    let text = error(model.call_host(&Table::new().column("text", &TEXTS), INFERENCE));
    assert!(text.contains("no column 'word'; it has text"), "{text}");
    let text = error(model.call_host(&(TEXTS, ["red"; 5], SIZES), INFERENCE));
    assert!(text.contains("'text' has 6 examples, and 'word' is [5, 1]"), "{text}");
    let text = error(model.call_host(&(SIZES, COLORS, SIZES), INFERENCE));
    assert!(text.contains("'text' is [6] of float32; it must be strings"), "{text}");

    let functional = |feeds: &[(&str, &HostSymbol)]| {
        let x = Input::new([1]).with_name("x");
        let y = Dense::new(1).on(&x).unwrap();
        let model = Functional::new(&x, &y).unwrap();
        FrontModel::functional(model, feeds.iter().copied()).unwrap_err().to_string()
    };
    let word = HostSymbol::input("word");
    let text = functional(&[("z", &word)]);
    assert!(text.contains("no input 'z'; it has x"), "{text}");
    let text = functional(&[("x", &word), ("x", &word)]);
    assert!(text.contains("'x' is fed twice"), "{text}");
}

#[test]
fn damaged_configs_are_errors() {
    let json = graph().to_json().unwrap();
    // The text, then what the error says.
    for (from, to, wanted) in [
        ("[\"text\",0,0]", "[\"dense\",0,0]", "'dense' is no InputLayer"),
        (
            "\"keras_history\":[\"text\",0,0]",
            "\"keras_history\":[\"dense\",0,0]",
            "takes a result of 'dense'",
        ),
        ("[\"text_vectorization\",0,0]", "[\"text_vectorization\",7,0]", "no call 7"),
        ("[\"text_vectorization\",0,0]", "[\"text\",0,0]", "takes the strings of 'text'"),
    ] {
        assert!(json.contains(from), "{from}: {json}");
        let result = front_of_json(&json.replace(from, to));
        let text = result.unwrap_err().to_string();
        assert!(text.contains(wanted), "{text}");
    }
    let (rest, plan) = front_of_json(&json).unwrap().unwrap();
    for (from, to, wanted) in
        [("\"feeds\"", "\"food\"", "no list of values"), ("\"calls\"", "\"balls\"", "no 'calls'")]
    {
        let text = front_into_json(&rest, &plan.replace(from, to)).unwrap_err().to_string();
        assert!(text.contains(wanted), "{text}");
    }
    assert!(matches!(front_of_json("{"), Err(Error::Data(_))));
}

#[test]
fn long_chains_are_linear() {
    // 20,000 lookups in a row, from a file and by hand.
    let count = 20_000;
    let mut layers = vec![serde_json::json!({
        "class_name": "InputLayer", "name": "x", "inbound_nodes": [],
        "config": {"batch_shape": [null, 1], "dtype": "string", "name": "x"},
    })];
    let tensor = |from: String| serde_json::json!({"class_name": "__keras_tensor__", "config": {"shape": [null, 1], "dtype": "string", "keras_history": [from, 0, 0]}});
    for at in (0..count).rev() {
        let from = if at == 0 { "x".to_string() } else { format!("l{}", at - 1) };
        layers.push(serde_json::json!({
            "class_name": "Hashing", "name": format!("l{at}"), "config": {"num_bins": 3, "name": format!("l{at}")},
            "inbound_nodes": [{"args": [tensor(from)], "kwargs": {}}],
        }));
    }
    layers.push(serde_json::json!({
        "class_name": "Flatten", "name": "y", "config": {"name": "y"},
        "inbound_nodes": [{"args": [tensor(format!("l{}", count - 1))], "kwargs": {}}],
    }));
    let config = serde_json::json!({"class_name": "Functional", "config": {
        "name": "m", "layers": layers, "input_layers": [["x", 0, 0]], "output_layers": [["y", 0, 0]],
    }});
    let (rest, plan) = front_of_json(&config.to_string()).unwrap().unwrap();
    assert_eq!(Functional::from_json(&rest).unwrap().inputs().len(), 1);
    assert_eq!(plan.matches("\"from\"").count(), count);
}

#[test]
fn nothing_grows_in_thousands_of_predictions() {
    let device = Device::new().unwrap();
    device.scope(|| {
        let model = graph();
        let mut first = None;
        let mut turn = |at: usize| {
            // One to six rows.
            let rows = 1 + at % 6;
            let some = Table::new()
                .column("text", &TEXTS[..rows])
                .column("word", &COLORS[..rows])
                .column("size", &SIZES[..rows]);
            let y = model.call_host(&some, INFERENCE).unwrap()[0].to_vec::<f32>().unwrap();
            assert_eq!(y.len(), rows);
            assert!((y[0] - *first.get_or_insert(y[0])).abs() < 1e-5);
        };
        // A plan for few runs is replaced by one for many after a thousand runs of each number of rows.
        (0..9_000).for_each(&mut turn);
        let before = device.stats();
        (0..3_000).for_each(turn);
        let after = device.stats();
        let held = |stats: DeviceStats| [stats.pipelines, stats.buffers, stats.live_bytes];
        assert_eq!(held(after), held(before));
        // A replacement may be late.
        assert!(after.plan_misses <= before.plan_misses + 6, "{before:?} {after:?}");
    });
}

#[test]
fn a_hundred_thousand_rows_are_preprocessed() {
    let count = 100_000;
    let texts: Vec<&str> = (0..count).map(|at| TEXTS[at % 6]).collect();
    let colors: Vec<&str> = (0..count).map(|at| COLORS[at % 6]).collect();
    let sizes: Vec<f32> = (0..count).map(|at| SIZES[at % 6]).collect();
    let model = graph();
    let y = model.predict(&(&texts, &colors, &sizes), PredictOptions::new().batch_size(10_000));
    let y = y.unwrap()[0].to_vec::<f32>().unwrap();
    let few = model.call_host(&table(), INFERENCE).unwrap()[0].to_vec::<f32>().unwrap();
    assert!(y.iter().enumerate().all(|(at, y)| (y - few[at % 6]).abs() < 1e-5));
}

#[test]
fn dense_layers_multiply_integers() {
    let layer = Dense::new(1).kernel_initializer(Initializer::Ones);
    let y = layer.call(&wgrad::constant([[1, 2], [3, 4]]).unwrap(), INFERENCE).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [3.0, 7.0]);
}
