//! Runs the examples as programs: their messages about invalid arguments, and their behaviour if the output pipe closes.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn example(name: &str) -> Command {
    let mut command = Command::new(match name {
        "gpt2" => env!("CARGO_BIN_EXE_gpt2"),
        "mnist" => env!("CARGO_BIN_EXE_mnist"),
        "datasets" => env!("CARGO_BIN_EXE_datasets"),
        "devices" => env!("CARGO_BIN_EXE_devices"),
        "distribute" => env!("CARGO_BIN_EXE_distribute"),
        "eager" => env!("CARGO_BIN_EXE_eager"),
        "embed" => env!("CARGO_BIN_EXE_embed"),
        "cats_vs_dogs" => env!("CARGO_BIN_EXE_cats_vs_dogs"),
        "checkpoint" => env!("CARGO_BIN_EXE_checkpoint"),
        "char_rnn" => env!("CARGO_BIN_EXE_char_rnn"),
        "finetune" => env!("CARGO_BIN_EXE_finetune"),
        "functions" => env!("CARGO_BIN_EXE_functions"),
        "gan" => env!("CARGO_BIN_EXE_gan"),
        "mnist_cnn_lstm" => env!("CARGO_BIN_EXE_mnist_cnn_lstm"),
        "reinforce" => env!("CARGO_BIN_EXE_reinforce"),
        "segment" => env!("CARGO_BIN_EXE_segment"),
        "tabular" => env!("CARGO_BIN_EXE_tabular"),
        "tensorboard" => env!("CARGO_BIN_EXE_tensorboard"),
        "text_classification" => env!("CARGO_BIN_EXE_text_classification"),
        "tfrecords" => env!("CARGO_BIN_EXE_tfrecords"),
        "transfer" => env!("CARGO_BIN_EXE_transfer"),
        "vae" => env!("CARGO_BIN_EXE_vae"),
        _ => panic!("no such example: {name}"),
    });
    // `cargo xtask test` makes llvmpipe compile faster but slower kernels; these programs train, and need fast kernels.
    command.env_remove("GALLIVM_PERF");
    command
}

fn run(name: &str, arguments: &[&str]) -> Output {
    example(name).args(arguments).output().unwrap()
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    let whole = "a whole number from 1 on is needed";
    let above = "a number above 0 is needed, such as 0.001";
    for (option, value, metavar, why) in [
        ("--steps", "0", "STEPS", whole),
        ("--batch", "0", "BATCH", whole),
        ("--epochs", "0", "EPOCHS", whole),
        ("--test", "0", "TEST", whole),
        ("--batch", "many", "BATCH", whole),
        ("--lr", "nan", "LR", above),
        ("--lr", "0", "LR", above),
        ("--lr", "inf", "LR", above),
        ("--lr", "1e-60", "LR", above),
    ] {
        let output = run("mnist", &[option, value]);
        assert_eq!(output.status.code(), Some(2), "{option} {value}");
        assert!(output.stdout.is_empty());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let first = format!("error: invalid value '{value}' for '{option} <{metavar}>': {why}\n");
        assert!(text.starts_with(&first), "{text}");
    }
    let output = run("mnist", &["--lr=-0.1"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn an_embedded_network_draws_what_it_should() {
    let folder = std::env::temp_dir().join(format!("wgrad-embed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let picture = folder.join("picture.ppm");
    // The program compares its pictures with the host's result, and fails if they differ.
    let output = run("embed", &[picture.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    let bytes = std::fs::read(&picture).unwrap();
    assert!(bytes.starts_with(b"P6 64 64 255\n") && bytes.len() == 13 + 64 * 64 * 3);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn devices_are_listed_divided_and_limited() {
    let output = run("devices", &[]);
    let (text, placed) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}{placed}");
    for words in [
        "Physical devices:\n  PhysicalDevice(name='/physical_device:",
        "Num GPUs Available: ",
        "1 physical, 2 logical ",
        "[[22. 28.]\n [49. 64.]]",
        "10 loops: ",
        ":1: 14\n",
        ":0: [2.0, 4.0, 6.0]\n",
        ":1 takes MemoryInfo { current: 10",
        "the largest tensors are 1048576 bytes: f32 [256, 1024] made by Square.",
        "it is still there: 1\n",
    ] {
        assert!(text.contains(words), "{words:?} is missing: {text}");
    }
    let line = "Executing op MatMul in device /job:localhost/replica:0/task:0/device:";
    assert_eq!(placed.matches(line).count(), 1, "{placed}");
}

#[test]
fn a_network_is_trained_on_two_devices() {
    let output = run("distribute", &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.starts_with("Number of devices: "), "{text}");
    let number = |line: &str| line.rsplit(' ').next().unwrap().parse::<f32>().unwrap();
    let losses: Vec<f32> =
        text.lines().filter(|line| line.starts_with("step ")).map(number).collect();
    assert!(losses.len() == 4 && losses[3] < 0.7 * losses[0], "{text}");
    assert!(number(text.lines().last().unwrap()) > 0.85, "{text}");
}

/// The grey values of a picture, and its width.
fn grey(path: &Path) -> (Vec<u8>, usize) {
    let file = std::io::BufReader::new(std::fs::File::open(path).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    (pixels, info.width as usize)
}

#[test]
fn datasets_print_and_draw_what_they_hold() {
    let folder = std::env::temp_dir().join(format!("wgrad-datasets-{}", std::process::id()));
    let output = run("datasets", &["--out", folder.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let begin = "2013 12000\n2014 14000\n2015 15000\n2016 16500\n2017 17500\n";
    assert!(text.starts_with(begin), "{text}");
    assert!(text.contains("batch     [4, 28, 28, 1], labels ["), "{text}");
    let orders: std::collections::HashSet<&str> = text
        .lines()
        .filter_map(|line| line.split_once(": labels "))
        .map(|(_, order)| order)
        .collect();
    assert_eq!(orders.len(), 3, "an order came twice: {text}");
    let [(upright, _), (turned, _)] =
        ["upright", "turned"].map(|name| grey(&folder.join(format!("datasets-{name}.png"))));
    assert!(upright.iter().any(|pixel| *pixel > 200));
    for (at, pixel) in turned.iter().enumerate() {
        // A quarter turn to the left: the right column is the top row.
        let (row, column) = (at / 28, at % 28);
        assert_eq!(*pixel, upright[28 * column + 27 - row], "row {row}, column {column}");
    }
    let (batch, width) = grey(&folder.join("datasets-batch.png"));
    assert_eq!((width, batch.len()), (4 * 28, 4 * 28 * 28));
    assert!((0..28).all(|row| batch[row * width..][..28] == turned[28 * row..][..28]));
    std::fs::remove_dir_all(folder).unwrap();
}

/// Uses the photographs in `CATS_VS_DOGS_DIR` if it is set, else drawings; few in either case.
#[test]
fn cats_are_distinguished_from_dogs() {
    let folder = std::env::temp_dir().join(format!("wgrad-cats-{}", std::process::id()));
    let out = folder.to_str().unwrap();
    let photographs = std::env::var("CATS_VS_DOGS_DIR").ok();
    let mut arguments = vec!["--out", out, "--size", "40", "--epochs", "6"];
    if let Some(data) = &photographs {
        arguments.extend(["--data", data]);
    }
    let output = run("cats_vs_dogs", &arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("batch     [32, 40, 40, 3], labels Some(["), "{text}");
    assert!(text.contains("metrics_names [\"loss\", \"sparse_categorical_accuracy\"]"), "{text}");
    let number = |name: &str| -> f64 {
        let line = text.lines().rfind(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    // 160 photographs of each are too few to generalize, but the loss of a guess is ln 2, 0.693.
    assert!(number("epoch 6   loss ") < 0.69, "{text}");
    if photographs.is_none() {
        assert!(number("sparse_categorical_accuracy ") > 0.8, "{text}");
    }
    let batch = std::fs::read(folder.join("cats_vs_dogs-batch.png")).unwrap();
    assert!(batch.starts_with(b"\x89PNG"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_network_learns_from_records() {
    let output = run("tfrecords", &["--steps", "80"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains(" records in 4 files, ") && text.contains("a step "), "{text}");
    assert!(share(&text, "after 80 steps") > 70.0, "{text}");
}

#[test]
fn loops_by_hand_settle() {
    // After half of the steps each has printed or drawn twice: a structure is fused at its second occurrence.
    let folder = std::env::temp_dir().join(format!("wgrad-loops-{}", std::process::id()));
    for (name, steps) in
        [("char_rnn", "16"), ("gan", "24"), ("mnist_cnn_lstm", "30"), ("vae", "24")]
    {
        let output = run(name, &["--steps", steps, "--out", folder.to_str().unwrap()]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(
            text.contains("later steps made 0 plans, 0 pipelines and 0 buffers"),
            "{name}: {text}"
        );
    }
    for picture in ["gan-00024.png", "vae.png"] {
        assert!(std::fs::read(folder.join(picture)).unwrap().starts_with(b"\x89PNG"));
    }
    std::fs::remove_dir_all(folder).unwrap();
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_network_is_saved_on_the_way_and_tested_by_another_process() {
    let folder = std::env::temp_dir().join(format!("wgrad-save-{}", std::process::id()));
    for manager in [false, true] {
        let save = folder.join(if manager { "managed" } else { "all" });
        let mut arguments = vec!["--save", save.to_str().unwrap(), "--num-epochs", "2"];
        if manager {
            arguments.push("--manager");
        }
        let output = run("checkpoint", &arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let saves = text.lines().filter(|line| line.contains("  saved ")).count();
        assert!(saves > 3, "{text}");
        let numbers: Vec<usize> = match manager {
            // Named by batch number; the last three are kept.
            true => (saves - 2..=saves).map(|save| 100 * save).collect(),
            false => (1..=saves).collect(),
        };
        let mut files = vec!["checkpoint".to_string()];
        for number in &numbers {
            files.push(format!("model.ckpt-{number}.data-00000-of-00001"));
            files.push(format!("model.ckpt-{number}.index"));
        }
        files.sort();
        assert_eq!(names(&save), files);
        let output = run("checkpoint", &["--save", save.to_str().unwrap(), "--mode", "test"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let newest = save.join(format!("model.ckpt-{}", numbers.last().unwrap()));
        assert!(share(&text, newest.to_str().unwrap()) > 90.0, "{text}");
    }
    let output = run("checkpoint", &["--save", "nowhere", "--mode", "test"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("has no checkpoint; train first"));
    assert_eq!(run("checkpoint", &["--mode", "tast"]).status.code(), Some(2));
    std::fs::remove_dir_all(folder).unwrap();
}

/// The percentage of examples in the line that begins with `name`.
fn share(text: &str, name: &str) -> f64 {
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    let before = line.split(" %").next().unwrap();
    before.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_head_learns_while_the_base_stays() {
    let output = run("transfer", &["--steps", "60"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("325 of") && text.contains("the base is as it was"), "{text}");
    // Guessing is right for a fifth.
    assert!(share(&text, "0 to 4") > 60.0 && share(&text, "5 to 9, a new head") > 40.0, "{text}");
}

#[test]
fn a_decoder_needs_no_pipelines_for_more_tokens() {
    let output = run("gpt2", &["--steps", "30"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("compiled  0 pipelines after the second token"), "{text}");
    let tokens = text.lines().find_map(|line| line.strip_prefix("text      ")).unwrap();
    assert_eq!(tokens.split(',').count(), 30);
}

#[test]
fn a_pole_is_balanced() {
    let output = run("reinforce", &["--seeds", "1"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.ends_with("learned   1 of 1 seeds\n"), "{text}");
}

#[test]
fn a_decoder_with_a_tokenizer_takes_text_and_prints_text() {
    use wgrad::Trackable;
    use wgrad::keras::applications::{Gpt2, Gpt2Config};
    let folder = std::env::temp_dir().join(format!("wgrad-gpt2-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let config = r#"{"model_type": "gpt2", "vocab_size": 4, "n_positions": 64, "n_embd": 8, "n_layer": 1, "n_head": 2}"#;
    let words = r#"{"version": "1.0", "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": {"a": 0, "cat": 1, "sleeps": 2, "?": 3}, "unk_token": "?"}}"#;
    std::fs::write(folder.join("config.json"), config).unwrap();
    std::fs::write(folder.join("tokenizer.json"), words).unwrap();
    let model = Gpt2::new(Gpt2Config::from_json(config).unwrap()).unwrap();
    model.save_weights(folder.join("model.safetensors")).unwrap();
    let data = folder.to_str().unwrap();
    let output = run("gpt2", &["--steps", "8", "--data", data, "--text", "a cat"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("prompt    [0, 1]\n") && text.contains("\ntext      a cat "), "{text}");
    let output = run("gpt2", &["--text", "a cat"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("--text needs a folder with tokenizer.json"), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_new_classifier_is_trained_and_then_all_layers() {
    let output = run("finetune", &["--steps", "40"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("random; --data names a file that PyTorch has written"), "{text}");
    assert!(text.contains("the other layers are as they were"), "{text}");
    assert!(text.contains("2052 parameters") && text.contains("11178564 parameters"), "{text}");
    // Guessing is right for a fourth.
    assert!(share(&text, "a new classifier") > 50.0 && share(&text, "all layers") > 60.0, "{text}");
    let output = run("finetune", &["--data", "/nowhere/resnet18.safetensors"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nowhere/resnet18.safetensors"));
}

mod judge {
    use super::{run, share};

    #[test]
    #[ignore = "takes a Python with torch, torchvision and safetensors, in WGRAD_TORCH_PYTHON: `cargo xtask judge`"]
    fn pytorch_weights_are_fine_tuned() {
        let python =
            std::env::var("WGRAD_TORCH_PYTHON").expect("WGRAD_TORCH_PYTHON names a Python");
        let name = format!("wgrad-finetune-{}.safetensors", std::process::id());
        let path = std::env::temp_dir().join(name);
        let script = "import sys, torch, torchvision, safetensors.torch\n\
                      torch.manual_seed(1)\n\
                      model = torchvision.models.resnet18(weights=None)\n\
                      safetensors.torch.save_file(model.state_dict(), sys.argv[1])";
        let output =
            std::process::Command::new(python).args(["-c", script]).arg(&path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let output = run("finetune", &["--data", path.to_str().unwrap()]);
        std::fs::remove_file(&path).unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("the other layers are as they were"), "{text}");
        assert!(
            share(&text, "a new classifier") > 50.0 && share(&text, "all layers") > 60.0,
            "{text}"
        );
    }
}

#[test]
fn shapes_are_found_in_pictures() {
    let folder = std::env::temp_dir().join(format!("wgrad-segment-{}", std::process::id()));
    let output = run("segment", &["--steps", "200", "--out", folder.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Most pixels belong to no shape: nine tenths.
    assert!(share(&text, "pixels") > 95.0, "{text}");
    let picture = std::fs::read(folder.join("segment.ppm")).unwrap();
    assert!(picture.starts_with(b"P6 256 96 255\n"));
    assert_eq!(picture.len(), 14 + 3 * 256 * 96);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_loss_becomes_a_curve() {
    let folder = std::env::temp_dir().join(format!("wgrad-tensorboard-{}", std::process::id()));
    let output = run("tensorboard", &["--steps", "200", "--out", folder.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("losses    20 of 200 batches, from 2."), "{text}");
    let events = wgrad::summary::read(folder.join("tensorboard")).unwrap();
    let steps: Vec<i64> = events.iter().map(|event| event.step).collect();
    assert_eq!(steps, (0..20).map(|at| 10 * at).collect::<Vec<_>>());
    let losses: Vec<f64> = events.iter().map(|event| event.scalar().unwrap()).collect();
    assert!(losses[19] < 0.5 * losses[0], "{losses:?}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_order_of_words_matters() {
    let output = run("text_classification", &["--steps", "300"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(share(&text, "GRU") > 80.0, "{text}");
    assert!(share(&text, "transformer") > 70.0, "{text}");
}

#[test]
fn a_network_learns_from_a_table_of_words_and_numbers() {
    let folder = std::env::temp_dir().join(format!("wgrad-tabular-{}", std::process::id()));
    let output = run("tabular", &["--steps", "400", "--out", folder.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("passenger 82 numbers from 6 columns and 3 crosses"), "{text}");
    assert!(share(&text, "both") > 80.0 && share(&text, "trees") > 80.0, "{text}");
    assert!(share(&text, "  sex") > 30.0, "{text}");
    let chance = |who: &str| share(&text, who);
    assert!(chance("a girl in the first class") > 80.0 && chance("a man in") < 30.0, "{text}");
    assert!(
        text.contains("column 'port': StringLookup: \"Atlantis\" is not in the vocabulary"),
        "{text}"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn wrong_flags_are_refused() {
    for (arguments, words) in [
        (&["--steps", "0"][..], "error: --steps must be a whole number from 1 on"),
        (&["--step", "3"], "error: invalid option '--step'"),
    ] {
        let output = run("gan", arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2));
        assert!(text.starts_with(words) && text.contains("Usage: gan"), "{text}");
    }
}

#[test]
fn functions_compute_what_eager_code_does() {
    let output = run("functions", &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for part in ["27 reaches 1 after 111 steps", "is 80", "choose by", "after 4 traces"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
}

#[test]
fn a_reader_may_leave() {
    for name in ["mnist", "eager", "embed"] {
        let mut child =
            example(name).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !text.contains("panicked"), "{name}: {text}");
    }
}

/// `count` grey images that are all the same, labelled 0 to 9 cyclically, in MNIST's file format.
fn write_mnist(folder: &Path, name: &str, count: u32) {
    let numbers =
        |numbers: &[u32]| numbers.iter().flat_map(|n| n.to_be_bytes()).collect::<Vec<u8>>();
    let mut images = numbers(&[0x803, count, 28, 28]);
    images.extend(vec![128; count as usize * 28 * 28]);
    let mut labels = numbers(&[0x801, count]);
    labels.extend((0..count).map(|i| (i % 10) as u8));
    std::fs::write(folder.join(format!("{name}-images-idx3-ubyte")), images).unwrap();
    std::fs::write(folder.join(format!("{name}-labels-idx1-ubyte")), labels).unwrap();
}

#[test]
fn a_run_leaves_pictures_and_figures() {
    let folder = std::env::temp_dir().join(format!("wgrad-example-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    write_mnist(&folder, "train", 60);
    write_mnist(&folder, "t10k", 300);
    let json = folder.join("figures.json");
    let mut command = example("mnist");
    command.args(["--batch=20", "--data"]).arg(&folder).arg("--out").arg(&folder);
    command.arg("--log-dir").arg(folder.join("logs"));
    let output = command.arg("--json").arg(&json).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("10.00 % on 300 images"));

    let figures: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(figures["model"], "mlp");
    // 60 images in batches of 20.
    assert_eq!(figures["steps"], 3);
    assert_eq!(figures["losses"].as_array().unwrap().len(), 3);
    // Identical images get the same prediction, which is right for one in ten.
    let accuracy = figures["test_accuracy"].as_f64().unwrap();
    assert!((accuracy - 0.1).abs() < 1e-12, "{accuracy}");
    let misread = std::fs::read_to_string(folder.join("misread.svg")).unwrap();
    assert_eq!(misread.matches(" read as ").count(), 100);
    // Grey of 128 is shade 8 of 15, in each of the 28 * 28 pixels.
    assert_eq!(misread.matches("<path stroke-opacity='0.53'").count(), 100);
    assert_eq!(misread.matches("h1").count(), 100 * 28 * 28);
    let curve = std::fs::read_to_string(folder.join("loss.svg")).unwrap();
    let lines = curve.lines().filter_map(|line| line.strip_prefix("<polyline points='"));
    let points: Vec<usize> =
        lines.map(|line| line.split('\'').next().unwrap().split_whitespace().count()).collect();
    assert_eq!(points, [3, 3]);

    let events = wgrad::summary::read(folder.join("logs")).unwrap();
    let count = |tag: &str| events.iter().filter(|event| event.tag.starts_with(tag)).count();
    assert_eq!((count("loss"), count("accuracy"), count("test/accuracy")), (3, 1, 1));
    // Two kernels and two biases, at the first step.
    assert_eq!((count("dense"), count("filters"), count("confusion")), (4, 1, 1));
    assert_eq!(count("misread/"), 20);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_is_no_flag_is_refused_and_help_lists_the_flags() {
    for (line, problem) in [
        (&["--stepz", "3"][..], "unexpected argument '--stepz' found"),
        (&["train"], "unexpected argument 'train' found"),
        (&["--model", "rnn"], "invalid value 'rnn' for '--model <MODEL>': mlp or cnn is needed"),
        (&["--seed=-1"], "invalid value '-1' for '--seed <SEED>': a whole number is needed"),
        (&["--out"], "a value is required for '--out <OUT>'"),
    ] {
        let output = run("mnist", line);
        assert_eq!(output.status.code(), Some(2), "{line:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.starts_with(&format!("error: {problem}\n")), "{text}");
    }
    let output = run("mnist", &["--help"]);
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for flag in ["--model", "--steps", "--json", "--help"] {
        assert!(text.contains(flag), "{text}");
    }
}
