//! Keras loads `.keras` and `.weights.h5` files written here, and computes the same results: `cargo xtask judge`.

#![allow(clippy::unwrap_used)]

use crate::support::compare::near;
use crate::support::folder;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use folder::Folder;
use wgrad::data::npy;
use wgrad::keras::layers::*;
use wgrad::keras::saving::{LoadedModel, SaveModelOptions};
use wgrad::keras::{
    Activation, Config, Functional, INFERENCE, Input, Layer, LayerExt, Model, Sequential, Symbols,
    saving,
};
use wgrad::{DType, HostArray, Padding, Tensor, Trackable};

/// Sets distinct numbers; moving variances stay positive.
fn shaken(model: &impl Trackable) {
    for (at, (name, variable)) in model.named_variables().into_iter().enumerate() {
        let random = wgrad::random::Generator::from_seed(16 + at as u64);
        let value = random.normal(variable.shape()).unwrap().multiply(0.5).unwrap();
        let value =
            if name.contains("variance") { value.abs().unwrap().add(0.5).unwrap() } else { value };
        variable.assign(&value).unwrap();
    }
}

fn write(folder: &Folder, name: &str, inputs: &[Tensor], y: &Tensor, keras: Vec<u8>) {
    folder.write(&format!("{name}.keras"), &keras);
    let array = |x: &Tensor| HostArray::from_tensor(x).unwrap();
    let mut arrays: Vec<(String, HostArray<'_>)> =
        inputs.iter().enumerate().map(|(at, x)| (format!("x{at}"), array(x))).collect();
    arrays.push(("y".to_string(), array(y)));
    npy::savez(folder.path(&format!("{name}.npz")), arrays).unwrap();
}

fn sequential(folder: &Folder, name: &str, model: &Sequential, x: &Tensor) {
    model.build(x.shape()).unwrap();
    shaken(model);
    let y = model.call(x, INFERENCE).unwrap();
    write(
        folder,
        name,
        std::slice::from_ref(x),
        &y,
        pollster::block_on(model.to_keras_async()).unwrap(),
    );
    saving::save_weights(model, folder.path(&format!("{name}.weights.h5"))).unwrap();
}

fn functional(
    folder: &Folder,
    name: &str,
    inputs: impl Symbols,
    outputs: impl Symbols,
    xs: &[Tensor],
) {
    let model = Functional::new(inputs, outputs).unwrap();
    shaken(&model);
    let y = Layer::<[Tensor], Vec<Tensor>>::call(&model, xs, INFERENCE).unwrap().remove(0);
    write(folder, name, xs, &y, pollster::block_on(model.to_keras_async()).unwrap());
    saving::save_weights(&model, folder.path(&format!("{name}.weights.h5"))).unwrap();
}

#[test]
#[ignore = "takes a Python with TensorFlow, in WGRAD_JUDGE_PYTHON: `cargo xtask judge`"]
fn keras_loads_what_is_written() {
    let folder = Folder::new("judge-keras-files");
    let normal = |shape: &[usize]| wgrad::random::Generator::from_seed(1).normal(shape).unwrap();
    let cnn = Sequential::new()
        .add(Conv2D::new(3, [3, 3]).activation(Activation::Relu).padding(Padding::Same))
        .add(BatchNormalization::new())
        .add(MaxPooling2D::new([2, 2]))
        .add(Dropout::new(0.25))
        .add(SeparableConv2D::new(2, [2, 2]))
        .add(DepthwiseConv2D::new([2, 2]))
        .add(Conv2DTranspose::new(2, [2, 2]))
        .add(Flatten::new())
        .add(Dense::new(4));
    sequential(&folder, "cnn", &cnn, &normal(&[2, 8, 8, 1]));
    let sequence = Sequential::new()
        .add(Lstm::new(4).return_sequences(true))
        .add(TimeDistributed::new(Dense::new(3)))
        .add(Bidirectional::new(Gru::new(3).return_sequences(true)))
        .add(SimpleRnn::new(3))
        .add(Prelu::new())
        .add(GroupNormalization::new().groups(3))
        .add(LayerNormalization::new())
        .add(Dense::new(2).activation(Activation::Softmax));
    sequential(&folder, "sequence", &sequence, &normal(&[2, 6, 5]));
    let inner =
        Sequential::new().add(Dense::new(3).activation(Activation::Tanh)).add(Dense::new(3));
    let nested = Sequential::new().add(Dense::new(4)).add(inner).add(Dense::new(2));
    sequential(&folder, "nested", &nested, &normal(&[2, 4]));
    // More layers than fit in one node of a B-tree.
    let mut deep = Sequential::new();
    for _ in 0..300 {
        deep = deep.add(Dense::new(2).activation(Activation::Tanh));
    }
    sequential(&folder, "deep", &deep, &normal(&[2, 2]));

    let words = Input::new([6]).with_dtype(DType::I32);
    let y = Embedding::new(20, 5).on(&words).unwrap();
    let y = Dense::new(3).on(&GlobalAveragePooling1D::new().on(&y).unwrap()).unwrap();
    let x = wgrad::constant([[1, 2, 3, 4, 5, 19], [0, 0, 7, 8, 9, 10]]).unwrap();
    functional(&folder, "words", &words, &y, &[x]);
    let a = Input::new([4]).with_name("a");
    let b = Input::new([3]).with_name("b");
    let z = Concatenate::new()
        .on_all(&[Dense::new(5).on(&a).unwrap(), Dense::new(5).on(&b).unwrap()])
        .unwrap();
    let y = Dense::new(2).on(&z).unwrap();
    functional(
        &folder,
        "two_inputs",
        &[(*a).clone(), (*b).clone()],
        &y,
        &[normal(&[2, 4]), normal(&[2, 3])],
    );

    let c = Input::new([2]).with_name("c");
    functional(
        &folder,
        "unused_inputs",
        &[(*c).clone(), (*a).clone(), (*b).clone()],
        Dense::new(2).on(&a).unwrap(),
        &[normal(&[2, 2]), normal(&[2, 4]), normal(&[2, 3])],
    );

    let python = std::env::var("WGRAD_JUDGE_PYTHON").expect("WGRAD_JUDGE_PYTHON names a Python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/keras_files/judge.py");
    let output = Command::new(python).arg(script).arg(folder.path("")).output().unwrap();
    let (said, reported) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{reported}");
    assert!(said.contains("7 models agree"), "{said}");
}

/// Optimizers: a name, the class, and its options.
const OPTIMIZERS: [(&str, &str, &str); 18] = [
    ("adadelta", "Adadelta", r#""learning_rate": 1.0"#),
    ("adafactor", "Adafactor", r#""learning_rate": 0.01"#),
    ("adagrad", "Adagrad", r#""learning_rate": 0.1"#),
    ("adam", "Adam", r#""learning_rate": 0.01"#),
    ("adam_accumulating", "Adam", r#""learning_rate": 0.01, "gradient_accumulation_steps": 2"#),
    ("adam_amsgrad", "Adam", r#""learning_rate": 0.01, "amsgrad": true"#),
    ("adam_averaging", "Adam", r#""learning_rate": 0.01, "use_ema": true, "ema_momentum": 0.9"#),
    (
        "adam_scheduled",
        "Adam",
        r#""learning_rate": {"module": "keras.optimizers.schedules", "class_name": "ExponentialDecay", "config":
            {"initial_learning_rate": 0.05, "decay_steps": 2, "decay_rate": 0.5}, "registered_name": null}"#,
    ),
    ("adamax", "Adamax", r#""learning_rate": 0.01"#),
    ("adamw", "AdamW", r#""learning_rate": 0.01, "weight_decay": 0.1"#),
    ("ftrl", "Ftrl", r#""learning_rate": 0.1"#),
    ("lamb", "Lamb", r#""learning_rate": 0.01"#),
    ("lion", "Lion", r#""learning_rate": 0.01"#),
    ("muon", "Muon", r#""learning_rate": 0.01"#),
    ("nadam", "Nadam", r#""learning_rate": 0.01"#),
    ("rmsprop", "RMSprop", r#""learning_rate": 0.01, "momentum": 0.5, "centered": true"#),
    ("sgd", "SGD", r#""learning_rate": 0.1"#),
    ("sgd_nesterov", "SGD", r#""learning_rate": 0.1, "momentum": 0.9, "nesterov": true"#),
];

fn steps(model: &Sequential, x: &Tensor, y: &Tensor, count: usize) {
    for _ in 0..count {
        model.train_on_batch((x, y)).unwrap();
    }
}

#[test]
#[ignore = "takes a Python with TensorFlow, in WGRAD_JUDGE_PYTHON: `cargo xtask judge`"]
fn keras_goes_on_with_the_state_of_each_optimizer_and_back() {
    let folder = Folder::new("judge-keras-optimizers");
    let normal = |shape: &[usize]| wgrad::random::Generator::from_seed(1).normal(shape).unwrap();
    let (x, y) = (normal(&[8, 3]), normal(&[8, 1]));
    for (name, class, options) in OPTIMIZERS {
        let model =
            Sequential::new().add(Dense::new(4).activation(Activation::Tanh)).add(Dense::new(1));
        model.build([8, 3]).unwrap();
        shaken(&model);
        let settings = format!(
            r#"{{"optimizer": {{"module": "keras.optimizers", "class_name": "{class}", "config": {{{options}}},
                "registered_name": null}}, "loss": "mse"}}"#
        );
        let compiled = LoadedModel::Sequential(model);
        compiled.compile_from_json(&settings).unwrap();
        let model = compiled.sequential().unwrap();
        steps(&model, &x, &y, 3);
        let path = folder.path(&format!("{name}.keras"));
        model.save_with(&path, &SaveModelOptions::new().compile_settings(settings)).unwrap();
        let made = model.trainer().optimizer().unwrap().iterations();
        steps(&model, &x, &y, 2);
        let mut arrays = vec![
            ("x".to_string(), HostArray::from_tensor(&x).unwrap()),
            ("y".to_string(), HostArray::from_tensor(&y).unwrap()),
            ("steps".to_string(), wgrad::ndarray::arr0(made as i32).into()),
        ];
        for (at, weight) in model.get_weights().unwrap().into_iter().enumerate() {
            arrays.push((format!("after{at}"), weight.into()));
        }
        npy::savez(folder.path(&format!("{name}.npz")), arrays).unwrap();
    }
    let python = std::env::var("WGRAD_JUDGE_PYTHON").expect("WGRAD_JUDGE_PYTHON names a Python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/keras_files/optimizers.py");
    let output = Command::new(python).arg(script).arg(folder.path("")).output().unwrap();
    let (said, reported) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{reported}");
    assert!(said.contains("18 optimizers go on"), "{said}");
    for (name, ..) in OPTIMIZERS {
        let back = saving::load_model(folder.path(&format!("{name}.back.keras"))).unwrap();
        let model = back.sequential().unwrap();
        steps(&model, &x, &y, 2);
        let after = npy::load_npz(folder.path(&format!("{name}.back.npz"))).unwrap();
        for (at, weight) in model.get_weights().unwrap().iter().enumerate() {
            let wanted = after[&format!("after{at}")].to_tensor().unwrap();
            near(&format!("{name} {at}"), &Tensor::from_array(weight).unwrap(), &wanted, 2e-5);
        }
    }
}

/// The list in `docs/weights.md` between `<!-- sweep: NAME -->` and the next `<!-- end -->`.
fn listed(name: &str) -> Vec<String> {
    let docs = include_str!("../../docs/weights.md");
    let start = docs.find(&format!("<!-- sweep: {name} -->")).expect("the docs have the list");
    let part = &docs[start..];
    let part = &part[..part.find("<!-- end -->").expect("the list ends")];
    part.lines().map(String::from).collect()
}

/// The words in backticks of a line.
fn ticked(line: &str) -> Vec<String> {
    line.split('`').skip(1).step_by(2).map(String::from).collect()
}

/// The option that the error names, if `docs/weights.md` lists it as refused for the layer.
fn refused_option(case: &str, error: &str, rows: &[String]) -> Option<String> {
    let (layer, _) = case.split_once('.')?;
    let row = rows.iter().map(|row| ticked(row)).find(|row| {
        let [option, layers @ ..] = &row[..] else { return false };
        error.contains(&format!("'{option}' of {layer} is "))
            && layers.iter().any(|known| known == layer || known == "*")
    })?;
    Some(format!("{layer}.{}", row[0]))
}

/// Compares the results of a model on the arrays of a case with Keras's.
fn compared(model: &LoadedModel, arrays: &BTreeMap<String, HostArray<'_>>) -> Result<(), String> {
    let inputs: Vec<Tensor> = (0..)
        .map_while(|at| arrays.get(&format!("x{at}")))
        .map(|x| x.to_tensor().unwrap())
        .collect();
    let LoadedModel::Functional(model) = model else { return Err("no functional model".into()) };
    let ys = Layer::<[Tensor], Vec<Tensor>>::call(model, &inputs, INFERENCE);
    let ys = ys.map_err(|error| format!("computes not: {error}"))?;
    let wanted: Vec<&HostArray<'_>> = (0..).map_while(|at| arrays.get(&format!("y{at}"))).collect();
    // Keras had no kernel for it, or returned a sparse tensor: the option is refused, or Keras's file does not contain it.
    if wanted.is_empty() {
        return Ok(());
    }
    if ys.len() != wanted.len() {
        return Err(format!("{} results, and Keras has {}", ys.len(), wanted.len()));
    }
    for (y, wanted) in ys.iter().zip(wanted) {
        if y.shape() != wanted.shape() {
            return Err(format!("{:?}, and Keras's is {:?}", y.shape(), wanted.shape()));
        }
        let numbers = |x: &Tensor| x.cast(DType::F32).unwrap().to_vec::<f32>().unwrap();
        // Keras has 64-bit indices.
        let wanted = wanted.to_tensor().map_err(|error| error.to_string())?;
        for (at, (y, want)) in numbers(y).iter().zip(numbers(&wanted)).enumerate() {
            if !((y - want).abs() <= 2e-5 * (1.0 + want.abs()) || (y.is_nan() && want.is_nan())) {
                return Err(format!("element {at} is {y}, and Keras's is {want}"));
            }
        }
    }
    Ok(())
}

/// Keras makes a model with each layer and each option (`sweep.py`); wgrad reads, compares and writes it, and Keras judges the
/// result. `WGRAD_SWEEP_FOLDER` keeps the files.
fn sweep(draw: &[String]) -> (usize, Vec<String>, BTreeSet<String>) {
    let kept = std::env::var("WGRAD_SWEEP_FOLDER").ok();
    let own = Folder::new("judge-sweep");
    let folder = kept.map_or_else(|| own.path(""), PathBuf::from);
    std::fs::create_dir_all(&folder).unwrap();
    let python = std::env::var("WGRAD_JUDGE_PYTHON").expect("WGRAD_JUDGE_PYTHON names a Python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/keras_files/sweep.py");
    let mut keras = Command::new(python)
        .arg(script)
        .arg(&folder)
        .args(draw)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(keras.stdout.take().unwrap()).lines();
    let made: Vec<String> =
        said.by_ref().map(Result::unwrap).take_while(|line| line != "made").collect();
    let rows = listed("options");
    let (mut count, mut wrong, mut refused) = (0, Vec::new(), BTreeSet::new());
    let mut cases: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "keras"))
        .collect();
    cases.sort();
    for path in cases {
        let case = path.file_stem().unwrap().to_string_lossy().into_owned();
        count += 1;
        match saving::load_model(&path) {
            Err(error) => {
                let text = error.to_string();
                match refused_option(&case, &text, &rows) {
                    Some(option) => drop(refused.insert(option)),
                    None => wrong.push(format!("{case}: {text}")),
                }
            }
            Ok(model) => {
                let arrays = npy::load_npz(folder.join(format!("{case}.npz")));
                let arrays = arrays.map_err(|error| error.to_string());
                if let Err(what) = arrays.and_then(|arrays| compared(&model, &arrays)) {
                    wrong.push(format!("{case}: {what}"));
                }
                let LoadedModel::Functional(model) = model else { continue };
                match pollster::block_on(model.to_keras_async()) {
                    Ok(bytes) => {
                        std::fs::write(folder.join(format!("again/{case}.keras")), bytes).unwrap()
                    }
                    Err(error) => wrong.push(format!("{case}: writes not: {error}")),
                }
            }
        }
    }
    keras.stdin.take().unwrap().write_all(b"\n").unwrap();
    for line in said.map(Result::unwrap) {
        if let Some(what) = line.strip_prefix("DIFFERS ") {
            wrong.push(format!("Keras reads it otherwise: {what}"));
        }
    }
    assert!(keras.wait().unwrap().success(), "{}", made.join("\n"));
    (count, wrong, refused)
}

#[test]
#[ignore = "takes a Python with TensorFlow, in WGRAD_JUDGE_PYTHON: `cargo xtask judge`"]
fn layers_and_options_go_to_wgrad_and_back() {
    // All of them (WGRAD_SWEEP=all) take a quarter of an hour. Otherwise 60 are selected; the seed is WGRAD_SWEEP, or the day.
    let day = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / 86_400;
    let seed = std::env::var("WGRAD_SWEEP").unwrap_or_else(|_| day.to_string());
    let whole = seed == "all";
    let draw = if whole { Vec::new() } else { vec!["60".to_string(), seed.clone()] };
    let (count, mut wrong, refused) = sweep(&draw);
    if whole {
        for row in listed("options").iter().map(|row| ticked(row)).filter(|row| row.len() > 1) {
            for layer in row[1..].iter().filter(|layer| *layer != "*") {
                let case = format!("{layer}.{}", row[0]);
                if !refused.contains(&case) {
                    wrong.push(format!("{case} is read, and docs/weights.md says that it is not"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "of {count} cases (seed {seed}):\n{}", wrong.join("\n"));
    println!("{count} cases (seed {seed}), {} of them refused as the docs say", refused.len());
}

#[test]
#[ignore = "takes a Python with TensorFlow, in WGRAD_JUDGE_PYTHON: `cargo xtask judge`"]
fn the_docs_list_the_layers_that_are_not_here() {
    let python = std::env::var("WGRAD_JUDGE_PYTHON").expect("WGRAD_JUDGE_PYTHON names a Python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/keras_files/sweep.py");
    let output = Command::new(python).arg(script).arg("--layers").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = |start: &str| -> BTreeSet<String> {
        let line =
            said.lines().find_map(|line| line.strip_prefix(start)).expect("sweep.py lists layers");
        line.split_whitespace().map(String::from).collect()
    };
    let (all, swept) = (line("all "), line("swept "));
    let missing: BTreeSet<String> = all
        .iter()
        .filter(|class| {
            let config = Config::with_options(class.as_str(), Default::default());
            // Cells are read inside of RNN. Layers for strings are read as the front of a model.
            let made = layer_from_config(&config).err().map(|error| error.to_string());
            made.is_some_and(|text| {
                text.contains("there is no layer") || text.contains("computes on the host")
            }) && !class.ends_with("Cell")
                && *class != "StackedRNNCells"
        })
        .cloned()
        .collect();
    let listed: BTreeSet<String> = listed("layers").iter().flat_map(|line| ticked(line)).collect();
    assert_eq!(missing, listed, "docs/weights.md lists the layers of Keras that are not here");
    let unswept: Vec<_> =
        all.difference(&missing).filter(|class| !swept.contains(*class)).collect();
    assert!(unswept.is_empty(), "sweep.py makes no {unswept:?}");
}
