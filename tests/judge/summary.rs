//! TensorBoard reads and shows wgrad's files: `cargo xtask judge`, which installs TensorBoard.

#![allow(clippy::unwrap_used)]

use crate::support::folder;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use folder::Folder;
use ndarray::{Array3, Array4};
use serde_json::{Value, json};
use wgrad as tf;
use wgrad::keras::callbacks::TensorBoard;
use wgrad::keras::layers::{
    Conv2D, Dense, Embedding, Flatten, GlobalAveragePooling1D, MaxPooling2D,
};
use wgrad::keras::losses::SparseCategoricalCrossentropy;
use wgrad::keras::{Activation, CompileOptions, FitOptions, Model, Sequential};
use wgrad::summary::{
    self, Category, HParam, HParamMetric, HParams, HistogramOptions, Layout, MediaOptions, Text,
    TrialStatus,
};
use wgrad::{DType, Device, Tensor};

/// One summary of each kind, with known values.
fn kinds(folder: &Path) -> tf::Result<()> {
    let writer = summary::create_file_writer(folder.join("kinds"))?;
    let default = writer.as_default();
    for step in 0..50 {
        let x = tf::constant(step as f32)?;
        summary::scalar("loss", (-&x / 10.0).exp()?, step)?;
        summary::scalar("train/accuracy", step as f64 / 50.0, step * 10)?;
        let noise = tf::random::normal([1000])?.add(&x / 10.0)?;
        summary::histogram("weights", &noise, step)?;
    }
    let described = HistogramOptions::new().buckets(2).description("of *four* values");
    summary::histogram_with("four", tf::constant([0.0, 1.0, 2.0, 4.0])?, 1, described)?;
    let pixels =
        Array4::from_shape_fn((4, 2, 3, 3), |(n, h, w, c)| (50 * n + 20 * h + 5 * w + c) as u8);
    summary::image("pixels", Tensor::from_array(&pixels)?, 7)?;
    let floats = tf::constant([-1.0, 0.0, 0.25, 0.5, 1.0, 7.0])?.reshape([1, 2, 3, 1])?;
    summary::image_with("floats", floats, 7, MediaOptions::new().description("clipped"))?;
    let seconds = Array3::from_shape_fn((1, 8000, 2), |(_, t, c)| {
        (t as f32 * 440.0 * (1 + c) as f32 * std::f32::consts::TAU / 8000.0).sin() * 0.5
    });
    summary::audio("tones", Tensor::from_array(&seconds)?, 8000, 1)?;
    summary::text("note", "**hello**", 3)?;
    summary::text("table", Text::table([["name", "loss"], ["mlp", "0.25"]])?, 3)?;
    let x = tf::constant([[1.5, -2.0], [0.0, 4.0]])?;
    summary::tensor("raw/floats", &x, 9)?;
    summary::tensor("raw/ints", x.cast(DType::I32)?, 9)?;
    summary::tensor("raw/bools", x.greater(tf::constant(0.5)?)?, 9)?;
    let losses = Category::new("both").multiline("of two", ["loss", "train/accuracy"]);
    summary::custom_layout(Layout::new().category(losses))?;
    let power = tf::function(|x: Tensor, n: Tensor| {
        let body = |(i, y): (Tensor, Tensor)| Ok((i.add(1)?, y.multiply(&x)?));
        tf::while_loop(|(i, _)| i.less(&n), body, (tf::constant(0)?, x.ones_like()?))
    });
    let of = (Tensor::zeros([2, 3])?, tf::constant(4)?);
    summary::graph(&power.get_concrete_function(of)?)?;
    drop(default);
    writer.close()
}

fn trials(folder: &Path) -> tf::Result<()> {
    let writer = summary::create_file_writer(folder.join("trials"))?;
    let default = writer.as_default();
    let units = HParam::new("units").discrete([16, 32]).display_name("units of the layer");
    let rate = HParam::new("dropout").interval(0.0, 0.5);
    summary::hparams_config(
        [units, rate, HParam::new("optimizer")],
        [HParamMetric::new("accuracy")],
    )?;
    drop(default);
    writer.close()?;
    for (at, (units, dropout)) in [(16, 0.1), (32, 0.4)].into_iter().enumerate() {
        let writer = summary::create_file_writer(folder.join(format!("trials/{at}")))?;
        let default = writer.as_default();
        let settings = HParams::new().with("units", units).with("dropout", dropout);
        summary::hparams(settings.with("optimizer", "adam"))?;
        summary::scalar("accuracy", 0.5 + dropout, 1)?;
        summary::hparams_end(TrialStatus::Success)?;
        drop(default);
        writer.close()?;
    }
    Ok(())
}

/// A training with the callback, with everything that it writes.
fn training(folder: &Path) -> tf::Result<()> {
    let model = Sequential::new()
        .add(Conv2D::new(8, [3, 3]).activation(Activation::Relu))
        .add(MaxPooling2D::new([2, 2]))
        .add(Flatten::new())
        .add(Dense::new(10));
    model.compile(
        "adam",
        SparseCategoricalCrossentropy::new().from_logits(true),
        CompileOptions::new().metrics(["accuracy"]),
    )?;
    let x = tf::random::uniform([200, 14, 14, 1])?;
    let y: Vec<i32> = (0..200).map(|i| i % 10).collect();
    let y = Tensor::from_slice(&y, [200])?;
    let board = TensorBoard::new(folder)
        .histogram_freq(1)
        .write_images(true)
        .write_steps_per_second(true)
        .update_freq(2)
        .profile_batch(2, 3);
    let options = FitOptions::new().epochs(3).batch_size(20).validation_split(0.2);
    model.fit((&x, &y), options.callback(board))?;
    Ok(())
}

/// Vectors for eight words.
fn words(folder: &Path) -> tf::Result<()> {
    let model = Sequential::new()
        .add(Embedding::new(8, 4))
        .add(GlobalAveragePooling1D::new())
        .add(Dense::new(1));
    model.compile("adam", "mse", CompileOptions::new())?;
    let x = tf::random::global().uniform_int([16, 5], 0, 8)?;
    let y = tf::random::uniform([16, 1])?;
    let names = ["the", "a", "cat", "dog", "sat", "ran", "on", "mat"];
    let board = TensorBoard::new(folder).embeddings_freq(1).embeddings_metadata("embedding", names);
    model.fit((&x, &y), FitOptions::new().epochs(2).callback(board))?;
    Ok(())
}

#[test]
#[ignore = "takes a Python with TensorBoard, in WGRAD_JUDGE_PYTHON: `cargo xtask judge`"]
fn tensorboard_reads_and_shows_what_is_written() {
    let folder = Folder::new("judge-summary");
    kinds(&folder.path("")).unwrap();
    trials(&folder.path("")).unwrap();
    // On its own device: a profile has the kernels of every thread that uses the device.
    Device::new().unwrap().scope(|| training(&folder.path(""))).unwrap();
    words(&folder.path("words")).unwrap();

    let python = std::env::var("WGRAD_JUDGE_PYTHON").expect("`cargo xtask judge` names a Python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/summary/judge.py");
    let shots = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tensorboard-screenshots");
    std::fs::create_dir_all(&shots).unwrap();
    let output = Command::new(python)
        .arg(script)
        .arg(folder.path(""))
        .arg(&shots)
        .env("TF_CPP_MIN_LOG_LEVEL", "3")
        .env("CUDA_VISIBLE_DEVICES", "-1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    println!("TensorBoard {}", found["tensorboard"].as_str().unwrap());

    // The contents of the files, by run.
    let runs = found["runs"].as_object().unwrap();
    let names: Vec<&str> = runs.keys().map(String::as_str).collect();
    let wanted = ["kinds", "train", "trials", "trials/0", "trials/1", "validation", "words/train"];
    assert_eq!(names, wanted);
    for events in runs.values() {
        assert_eq!(events[0], json!({"version": "brain.Event:2"}));
    }
    let of = |run: &str, tag: &str| -> Vec<&Value> {
        let events = runs[run].as_array().unwrap().iter();
        events.filter(|event| event["tag"] == tag).collect()
    };
    let steps = |run: &str, tag: &str| -> Vec<i64> {
        of(run, tag).iter().map(|event| event["step"].as_i64().unwrap()).collect()
    };
    check_kinds(&of);
    assert_eq!(found["accumulator"]["loss"].as_array().unwrap().len(), 50);

    // Keras's names. 160 images in batches of 20: 8 steps per epoch, of which every second one is written.
    assert_eq!(steps("train", "epoch_loss"), [0, 1, 2]);
    assert_eq!(steps("validation", "epoch_accuracy"), [0, 1, 2]);
    assert_eq!(steps("train", "epoch_learning_rate"), [0, 1, 2]);
    assert_eq!(steps("train", "epoch_steps_per_second"), [0, 1, 2]);
    assert_eq!(steps("train", "batch_loss"), (1..=12).map(|at| 2 * at).collect::<Vec<_>>());
    assert_eq!(steps("validation", "evaluation_loss_vs_iterations"), [8, 16, 24]);
    assert_eq!(steps("train", "sequential/conv2d/kernel/histogram"), [0, 1, 2]);
    let filters = of("train", "sequential/conv2d/kernel/image");
    assert_eq!((filters.len(), &filters[0]["size"]), (3, &json!([3, 3])));
    assert_eq!(filters[0]["pixels"].as_array().unwrap().len(), 8);

    // The answers of the web app's server.
    let server = &found["server"];
    let plugins = server["plugins"].as_array().unwrap();
    for plugin in [
        "audio",
        "custom_scalars",
        "distributions",
        "graphs",
        "histograms",
        "hparams",
        "images",
        "projector",
        "scalars",
        "text",
        "timeseries",
    ] {
        assert!(plugins.contains(&json!(plugin)), "{plugin} shows nothing: {plugins:?}");
    }
    assert_eq!(server["loss"], 50);
    assert_eq!((&server["histograms"], &server["distributions"]), (&json!(50), &json!(50)));
    assert_eq!(server["picture"], "iVBORw0KGgo=");
    assert_eq!(server["text"], "<p><strong>hello</strong></p>");
    assert_eq!(server["images"]["kinds"]["pixels"]["samples"], 3);
    assert!(server["audio"]["kinds"].get("tones").is_some(), "{}", server["audio"]);
    let tags = &server["graphs"]["train"];
    assert_eq!(tags["run_graph"], true);
    assert_eq!(tags["tags"]["keras"]["conceptual_graph"], true);
    assert_eq!(tags["tags"]["batch_3"]["profile"], true);
    let graph = server["op_graph"].as_str().unwrap();
    for words in ["name: \"conv2d\"", "op: \"Conv2D\"", "input: \"flatten\"", "size: 288"] {
        assert!(graph.contains(words), "{words} is not in {graph}");
    }
    let function = server["function_graph"].as_str().unwrap();
    for words in ["name: \"argument_0\"", "op: \"While\"", "/do/Mul_", "/repeat:1\"", "size: 3"] {
        assert!(function.contains(words), "{words} is not in {function}");
    }
    let conceptual = server["conceptual"].as_str().unwrap();
    assert!(conceptual.contains("keras_class") && conceptual.contains("max_pooling2d"));
    assert!(server["profile"].as_str().unwrap().contains("node_stats"), "{}", server["profile"]);
    assert_eq!(server["layout"]["category"][0]["chart"][0]["title"], "of two");
    let infos = server["experiment"]["hparamInfos"].as_array().unwrap();
    assert_eq!(infos.len(), 3, "{infos:?}");
    let groups = server["trials"]["sessionGroups"].as_array().unwrap();
    let units: BTreeMap<String, f64> = groups
        .iter()
        .map(|group| {
            let units = group["hparams"]["units"].as_f64().unwrap();
            (units.to_string(), group["metricValues"][0]["value"].as_f64().unwrap())
        })
        .collect();
    assert!((units["16"] - 0.6).abs() < 1e-6 && (units["32"] - 0.9).abs() < 1e-6, "{units:?}");
    assert_eq!(server["vectors"].as_array().unwrap().len(), 8 * 4);
    assert!(server["labels"].as_str().unwrap().starts_with("the\na\ncat\n"));

    match found["screenshots"].as_array() {
        Some(pages) => {
            // An empty page has about 10 kB.
            for page in pages {
                assert!(page[1].as_u64().unwrap() > 20_000, "{page} is empty");
            }
            println!("{} pages in {}", pages.len(), shots.display());
        }
        None => println!("no Chromium draws the pages: set WGRAD_CHROMIUM"),
    }
}

fn check_kinds<'a>(of: &dyn Fn(&str, &str) -> Vec<&'a Value>) {
    let close = |found: &Value, wanted: f64| {
        let found = found.as_f64().unwrap();
        assert!((found - wanted).abs() <= 1e-6 * wanted.abs().max(1.0), "{found} and not {wanted}");
    };
    let losses = of("kinds", "loss");
    assert_eq!(losses.len(), 50);
    for (step, loss) in losses.iter().enumerate() {
        assert_eq!((&loss["step"], &loss["array"]["shape"]), (&json!(step), &json!([])));
        assert_eq!(
            (&loss["plugin"], &loss["array"]["dtype"]),
            (&json!("scalars"), &json!("float32"))
        );
        close(&loss["array"]["values"][0], (-(step as f64) / 10.0).exp());
    }
    let four = of("kinds", "four")[0];
    assert_eq!(four["array"]["values"], json!([0.0, 2.0, 2.0, 2.0, 4.0, 2.0]));
    assert_eq!(four["description"], "of *four* values");
    let weights = of("kinds", "weights")[3];
    assert_eq!(weights["array"]["shape"], json!([30, 3]));
    let count: f64 = weights["array"]["values"]
        .as_array()
        .unwrap()
        .chunks(3)
        .map(|row| row[2].as_f64().unwrap())
        .sum();
    assert_eq!(count, 1000.0);
    let pixels = of("kinds", "pixels")[0];
    assert_eq!((&pixels["size"], &pixels["step"]), (&json!([3, 2]), &json!(7)));
    let wanted = |n: usize, h: usize, w: usize, c: usize| 50 * n + 20 * h + 5 * w + c;
    for n in 0..3 {
        for (h, w, c) in [(0, 0, 0), (1, 2, 2), (0, 1, 1)] {
            assert_eq!(pixels["pixels"][n][h][w][c], wanted(n, h, w, c));
        }
    }
    assert_eq!(pixels["pixels"].as_array().unwrap().len(), 3);
    // tf.image.convert_image_dtype(x, tf.uint8, saturate=True).
    let floats = of("kinds", "floats")[0];
    assert_eq!(floats["pixels"][0], json!([[[0], [0], [63]], [[127], [255], [255]]]));
    let tones = of("kinds", "tones")[0];
    assert_eq!(tones["rates"], json!([8000]));
    let samples = tones["samples"][0].as_array().unwrap();
    assert_eq!(samples.len(), 8000);
    for (t, sample) in samples.iter().enumerate().step_by(97) {
        for c in 0..2 {
            let wanted =
                0.5 * (t as f64 * 440.0 * (1 + c) as f64 * std::f64::consts::TAU / 8000.0).sin();
            // 16-bit samples, and f32 at large angles.
            assert!((sample[c].as_f64().unwrap() - wanted).abs() < 5e-4, "{t}: {sample}");
        }
    }
    assert_eq!(of("kinds", "note")[0]["array"]["strings"], json!(["KipoZWxsbyoq"]));
    assert_eq!(of("kinds", "table")[0]["array"]["shape"], json!([2, 2]));
    let raw = |tag: &str| of("kinds", tag)[0]["array"].clone();
    let array =
        |dtype: &str, values: Value| json!({"shape": [2, 2], "dtype": dtype, "values": values});
    assert_eq!(raw("raw/floats"), array("float32", json!([1.5, -2.0, 0.0, 4.0])));
    assert_eq!(raw("raw/ints"), array("int32", json!([1.0, -2.0, 0.0, 4.0])));
    assert_eq!(raw("raw/bools"), array("bool", json!([1.0, 0.0, 0.0, 1.0])));
    for (run, data) in [("trials", "experiment"), ("trials/0", "session_start_info")] {
        let tag = format!("_hparams_/{data}");
        assert_eq!(of(run, &tag)[0]["data"], data);
    }
}
