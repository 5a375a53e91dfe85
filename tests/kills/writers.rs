//! The files of a process that is killed while it writes: each file, or each set of files, has the old contents or the new
//! ones.
//!
//! The process, which is this test program started again, writes with all writers at once, each in its own thread, so that one
//! kill interrupts all of them. `trainings` kills trainings, `summaries` kills writers of event files, which grow.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use wgrad as tf;
use wgrad::data::tfrecord::{TfRecordReader, TfRecordWriter};
use wgrad::data::{self, Dataset};
use wgrad::keras::layers::{Dense, Layer};
use wgrad::keras::{INFERENCE, Sequential, saving};
use wgrad::onnx::OnnxSaveOptions;
use wgrad::saved_model::Signature;
use wgrad::train::{self, Best, Checkpoint, CheckpointManager};
use wgrad::weights::{self, LoadOptions, SaveOptions};
use wgrad::{Trackable, Variable};

use crate::alone;
use crate::support::child;

/// The writers, by the names of their folders.
const WRITERS: [&str; 14] = [
    "safetensors",
    "shards",
    "forms",
    "npz",
    "keras",
    "h5",
    "checkpoint",
    "tfrecord",
    "dataset",
    "file",
    "savez",
    "manager",
    "saved_model",
    "onnx",
];

fn model() -> Sequential {
    let model = Sequential::new().add(Dense::new(30)).add(Dense::new(40));
    model.build([1, 20]).unwrap();
    model
}

/// Sets all weights to one value.
fn fill(model: &impl Trackable, value: f32) {
    for variable in model.variables() {
        variable.assign(tf::Tensor::full(variable.shape(), value).unwrap()).unwrap();
    }
}

/// The value of all weights.
fn value_of(model: &impl Trackable, what: &str) -> u64 {
    let values: Vec<f32> =
        model.get_weights().unwrap().iter().flat_map(|array| array.iter().copied()).collect();
    assert!(values.iter().all(|value| *value == values[0]), "{what}: parts of several saves");
    values[0] as u64
}

fn small_shards() -> SaveOptions {
    SaveOptions::new().max_shard_size(5000)
}

/// Writes `value` with a writer into its folder.
fn write(writer: &str, folder: &Path, model: &Sequential, value: u64) -> tf::Result<()> {
    fill(model, value as f32);
    let path = |name: &str| folder.join(name);
    match writer {
        "safetensors" => model.save_weights(path("w.safetensors")),
        "shards" => model.save_weights_with(path("w.safetensors"), small_shards()),
        // One file and several, alternately.
        "forms" if value.is_multiple_of(2) => model.save_weights(path("w.safetensors")),
        "forms" => model.save_weights_with(path("w.safetensors"), small_shards()),
        "npz" => weights::save_npz(model, path("w.npz")),
        "keras" => model.save(path("w.keras")),
        "h5" => saving::save_weights(model, path("w.weights.h5")),
        "checkpoint" => Checkpoint::new().with("model", model).write(path("ckpt")).map(drop),
        "tfrecord" => {
            let mut writer = TfRecordWriter::create(path("w.tfrecord"))?;
            (0..500).try_for_each(|_| writer.write(value.to_le_bytes()))?;
            writer.close().map(drop)
        }
        "dataset" => data::range(0..500).map(move |_| value as i64).save(path("set")),
        "saved_model" => model.export(path("exported")),
        "onnx" => {
            let spec = tf::TensorSpec::new([None, Some(20)], tf::DType::F32);
            let function = Signature::new("f", [("x", spec)], |x| model.call(&x[0], INFERENCE));
            let options = OnnxSaveOptions::new().external_data(true);
            tf::onnx::save_with(model, path("w.onnx"), &function, options)
        }
        "file" => tf::io::write_file(path("w.json"), value.to_string().repeat(2000)),
        // A checkpoint, the state file that names it, and the metrics that select the best one.
        "manager" => {
            let checkpoint = Checkpoint::new().with("model", model);
            let manager = CheckpointManager::new(&checkpoint, folder)?.max_to_keep(1);
            let manager = manager.best(Best::Max);
            manager.restore_or_initialize()?;
            fill(model, value as f32);
            manager.save_with(train::CheckpointSaveOptions::new().metric(value as f64)).map(drop)
        }
        _ => {
            let array = ndarray::Array1::from_elem(2000, value as i64);
            tf::data::npy::savez(path("w.npz"), [("a", array.into())])
        }
    }
}

/// The value in a writer's folder; `None` before the first save.
fn read(writer: &str, folder: &Path) -> Option<u64> {
    let path = |name: &str| folder.join(name);
    let fresh = model();
    let there = |name: &str| path(name).exists();
    match writer {
        "safetensors" | "shards" | "forms" => {
            if !there("w.safetensors") && !there("w.safetensors.index.json") {
                return None;
            }
            fresh.load_weights(path("w.safetensors")).unwrap();
        }
        "npz" => {
            there("w.npz").then_some(())?;
            weights::load_npz(&fresh, path("w.npz"), LoadOptions::new()).unwrap();
        }
        "keras" => {
            there("w.keras").then_some(())?;
            let loaded = saving::load_model(path("w.keras")).unwrap().sequential().unwrap();
            return Some(value_of(&loaded, writer));
        }
        "h5" => {
            there("w.weights.h5").then_some(())?;
            saving::load_weights(&fresh, path("w.weights.h5")).unwrap();
        }
        "checkpoint" => {
            there("ckpt.index").then_some(())?;
            let checkpoint = Checkpoint::new().with("model", &fresh);
            checkpoint.read(path("ckpt")).unwrap().assert_consumed().unwrap();
        }
        "saved_model" => {
            there("exported").then_some(())?;
            let loaded = tf::saved_model::load(path("exported")).unwrap();
            loaded.signature("serving_default").unwrap();
            return Some(value_of(&loaded, writer));
        }
        "onnx" => {
            there("w.onnx").then_some(())?;
            return Some(value_of(&tf::onnx::load(path("w.onnx")).unwrap(), writer));
        }
        "manager" => {
            let checkpoint = Checkpoint::new().with("model", &fresh);
            let manager = CheckpointManager::new(&checkpoint, folder).unwrap().max_to_keep(2);
            let manager = manager.best(Best::Max);
            let newest = manager.restore_or_initialize().unwrap()?;
            // Each save is better than the previous one, according to the metrics next to the state file.
            assert_eq!(manager.best_checkpoint(), Some(newest));
        }
        "tfrecord" => {
            there("w.tfrecord").then_some(())?;
            let file = std::fs::File::open(path("w.tfrecord")).unwrap();
            let records = TfRecordReader::new(BufReader::new(file), "w.tfrecord");
            let all: Vec<Vec<u8>> = records.map(|record| record.unwrap()).collect();
            assert!(all.len() == 500 && all.iter().all(|one| *one == all[0]));
            return Some(u64::from_le_bytes(all[0][..].try_into().unwrap()));
        }
        "dataset" => {
            path("set/dataset.elements").exists().then_some(())?;
            let all: Vec<i64> =
                Dataset::<i64>::load(path("set")).unwrap().iter().map(|one| one.unwrap()).collect();
            assert!(all.len() == 500 && all.iter().all(|one| *one == all[0]));
            return Some(all[0] as u64);
        }
        "file" => {
            there("w.json").then_some(())?;
            let text = String::from_utf8(tf::io::read_file(path("w.json")).unwrap()).unwrap();
            let one = &text[..text.len() / 2000];
            assert_eq!(text, one.repeat(2000));
            return Some(one.parse().unwrap());
        }
        _ => {
            there("w.npz").then_some(())?;
            let arrays = tf::data::npy::load_npz(path("w.npz")).unwrap();
            let array = arrays["a"].to_array::<i64>().unwrap();
            assert!(array.len() == 2000 && array.iter().all(|one| *one == array[0]));
            return Some(array[0] as u64);
        }
    }
    Some(value_of(&fresh, writer))
}

fn say(line: &str) {
    std::io::stdout().write_all(format!("\n{line}\n").as_bytes()).unwrap();
}

/// Writes for ever, with increasing values.
#[test]
#[ignore = "other tests run it in a process of its own"]
fn writes() {
    let folder = PathBuf::from(std::env::var("KILLS_FOLDER").unwrap());
    let begin: u64 = std::env::var("KILLS_BEGIN").unwrap().parse().unwrap();
    let rounds: u64 = std::env::var("KILLS_ROUNDS").unwrap().parse().unwrap();
    std::thread::scope(|scope| {
        for writer in WRITERS {
            let folder = folder.join(writer);
            scope.spawn(move || {
                let model = model();
                for value in begin..begin.saturating_add(rounds) {
                    write(writer, &folder, &model, value).unwrap();
                    say(&format!("done {writer} {value}"));
                }
            });
        }
    });
}

fn life(folder: &Path, begin: u64, rounds: u64) -> std::process::Child {
    let mut command = child::command(module_path!(), "writes");
    let errors = std::fs::File::create(folder.join("errors")).unwrap();
    command
        .env("KILLS_FOLDER", folder)
        .env("KILLS_BEGIN", begin.to_string())
        .env("KILLS_ROUNDS", rounds.to_string())
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .unwrap()
}

fn kill(kills: usize) {
    let _alone = alone();
    let folder = std::env::temp_dir().join(format!("wgrad-kills-{kills}-{}", std::process::id()));
    for writer in WRITERS {
        std::fs::create_dir_all(folder.join(writer)).unwrap();
    }
    let mut rng = fastrand::Rng::new();
    println!("the moments are drawn from the seed {}", rng.get_seed());
    let mut done: HashMap<String, u64> = HashMap::new();
    let (mut greatest, mut seen) = (0, 0);
    for _ in 0..kills {
        let begin = greatest + 1;
        let mut child = life(&folder, begin, u64::MAX);
        let out = BufReader::new(child.stdout.take().unwrap());
        let (give, lines) = mpsc::channel();
        std::thread::spawn(move || {
            out.lines().map_while(|line| line.ok()).try_for_each(|line| give.send(line))
        });
        let mut all: Vec<String> = Vec::new();
        for _ in 0..rng.usize(1..60) {
            all.push(lines.recv_timeout(Duration::from_secs(120)).expect("see the file errors"));
        }
        std::thread::sleep(Duration::from_micros(rng.u64(0..8_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        all.extend(lines.iter());
        for line in &all {
            let Some(rest) = line.strip_prefix("done ") else { continue };
            // A line truncated by the kill.
            let Some((writer, value)) = rest.split_once(' ') else { continue };
            let Ok(value) = value.parse::<u64>() else { continue };
            let known = done.entry(writer.to_string()).or_default();
            *known = value.max(*known);
            greatest = greatest.max(value + 1);
        }
        for writer in WRITERS {
            let known = done.get(writer).copied().unwrap_or(0);
            let found = read(writer, &folder.join(writer));
            seen += usize::from(found.is_some());
            let value = found.unwrap_or(0);
            assert!(value >= known, "{writer}: save {known} was done, and {value} is there");
            // One more may have become valid before it was reported; after a restart that is the first.
            assert!(value <= known.max(begin) + 1, "{writer}: {value} is there behind {known}");
            done.insert(writer.to_string(), value);
            greatest = greatest.max(value);
        }
    }
    // How many depends on other load on the machine.
    assert!(seen > kills * WRITERS.len() / 8, "some lives must have saved something: {seen}");
    // Two more saves remove the files that the killed ones left.
    let ended = life(&folder, greatest + 1, 2).wait().unwrap();
    assert!(ended.success());
    for writer in WRITERS {
        assert_eq!(read(writer, &folder.join(writer)), Some(greatest + 2), "{writer}");
        let mut names: Vec<String> = std::fs::read_dir(folder.join(writer))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert!(!names.iter().any(|name| name.ends_with(".tmp")), "{writer}: {names:?}");
        let shards = names.iter().filter(|name| name.contains("-of-0")).count();
        assert!(shards <= 4, "{writer}: {names:?}");
        // The manager's are a checkpoint of two files, the state and the metrics.
        let most = if writer == "manager" { 4 } else { shards + 2 };
        assert!(names.len() <= most, "{writer}: {names:?}");
    }
    println!("{kills} kills of {} writers, {greatest} saves at most", WRITERS.len());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_file_is_the_old_one_or_the_new_one_whenever_its_writer_is_killed() {
    kill(3);
}

#[test]
#[ignore = "takes a minute: continuous integration runs it by itself"]
fn each_writer_is_killed_fifty_times() {
    kill(50);
}

/// A sharded save leaves no part of the previous one, and uses other names while that one is valid.
#[test]
fn parts_of_older_saves_go() {
    let folder = std::env::temp_dir().join(format!("wgrad-parts-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (saved, path) = (model(), folder.join("w.safetensors"));
    let names = || {
        let entries = std::fs::read_dir(&folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    // Another model's parts, and names that are only similar.
    for name in
        ["ww-00001-of-00002.safetensors", "w.x-00001-of-00002.safetensors", "w-1-of-2.safetensors"]
    {
        std::fs::write(folder.join(name), "other").unwrap();
    }
    let others = names();
    let with = |more: &[&str]| {
        let mut all: Vec<String> = others.clone();
        all.extend(more.iter().map(|name| name.to_string()));
        all.sort();
        all
    };
    let variables: Vec<Variable> = saved.variables();
    assert_eq!(variables.len(), 4);
    for (value, stem) in [(1.0, "w"), (2.0, "w.2"), (3.0, "w")] {
        fill(&saved, value);
        saved.save_weights_with(&path, small_shards()).unwrap();
        let parts: Vec<String> =
            (1..=2).map(|part| format!("{stem}-{part:05}-of-00002.safetensors")).collect();
        assert_eq!(names(), with(&[&parts[0], &parts[1], "w.safetensors.index.json"]));
        assert_eq!(read("shards", &folder), Some(value as u64));
    }
    fill(&saved, 4.0);
    saved.save_weights(&path).unwrap();
    assert_eq!(names(), with(&["w.safetensors"]));
    assert_eq!(read("shards", &folder), Some(4));
    std::fs::remove_dir_all(&folder).unwrap();
}
