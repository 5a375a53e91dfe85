//! A training that is killed, whose disk is full, or whose device is lost loses nothing but the steps since its last
//! checkpoint.
//!
//! Each program runs in a separate process, which is this test program started again, and prints a line for each step.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use ndarray::{Array1, Array2, ArrayD};
use wgrad as tf;
use wgrad::data::{Dataset, DatasetIter, IntoBatch};
use wgrad::keras::layers::{Dense, Dropout};
use wgrad::keras::metrics::Mean;
use wgrad::keras::optimizers::{Adam, Optimizer, schedules::ExponentialDecay};
use wgrad::keras::{Activation, Layer, Sequential, TRAINING};
use wgrad::random::{self, Generator};
use wgrad::train::{Checkpoint, CheckpointManager, latest_checkpoint};
use wgrad::{Device, Error, GradientTape, Result};

use crate::support::child;

/// Steps between two checkpoints.
const EVERY: u64 = 3;

/// Everything that a step depends on.
struct Program {
    model: Sequential,
    optimizer: Adam,
    mean: Mean,
    noise: Generator,
    batches: DatasetIter<(ArrayD<f32>, ArrayD<i32>)>,
}

impl Program {
    fn new() -> Self {
        random::set_seed(5);
        let mut rng = fastrand::Rng::with_seed(6);
        let x = Array2::from_shape_simple_fn((50, 10), || rng.f32() - 0.5);
        let y = Array1::from_shape_fn(50, |i| (i % 4) as i32);
        let dataset = Dataset::from_tensor_slices((x, y)).unwrap().shuffle(20);
        let dataset = dataset.batch(8).repeat(None).prefetch(2);
        Program {
            model: Sequential::new()
                .add(Dense::new(24).activation(Activation::Relu))
                .add(Dropout::new(0.3))
                .add(Dense::new(4)),
            optimizer: Adam::new(ExponentialDecay::new(0.01, 10, 0.9)),
            mean: Mean::new("loss"),
            noise: Generator::from_seed(7),
            batches: dataset.iter(),
        }
    }

    fn checkpoint(&self) -> Checkpoint<'_> {
        Checkpoint::new()
            .with("model", &self.model)
            .with("optimizer", &self.optimizer)
            .with("mean", &self.mean)
            .with("noise", &self.noise)
            .with("batches", &self.batches)
    }

    fn steps(&self) -> u64 {
        self.optimizer.iterations()
    }

    /// Makes a step; returns the bits of its loss and of the mean loss so far.
    fn step(&self) -> Result<[u32; 2]> {
        let batch = (&self.batches).next().unwrap()?.into_batch()?;
        let x = batch.x[0].add(self.noise.normal(batch.x[0].shape())?.multiply(0.1)?)?;
        let tape = GradientTape::new();
        let logits = self.model.call(&x, TRAINING)?;
        let loss = tf::sparse_softmax_cross_entropy_with_logits(&batch.y[0], &logits)?;
        let loss = loss.reduce_mean(())?;
        self.optimizer.minimize(&loss, tape, &self.model)?;
        self.mean.update_state(&loss)?;
        Ok([loss.item::<f32>()?.to_bits(), self.mean.result()?.item::<f32>()?.to_bits()])
    }
}

fn say(line: &str) {
    std::io::stdout().write_all(format!("\n{line}\n").as_bytes()).unwrap();
}

/// Resumes from the newest checkpoint and trains up to a number of steps, saving on the way.
#[test]
#[ignore = "other tests run it in a process of its own"]
fn trains() {
    let folder = PathBuf::from(std::env::var("SURVIVAL_FOLDER").unwrap());
    let until: u64 = std::env::var("SURVIVAL_UNTIL").unwrap().parse().unwrap();
    let mode = std::env::var("SURVIVAL_MODE").unwrap();
    let program = Program::new();
    let checkpoint = program.checkpoint();
    let manager = CheckpointManager::new(&checkpoint, &folder).unwrap().max_to_keep(2);
    let manager = manager.background(mode == "background");
    if mode == "checkpoint" {
        let newest = latest_checkpoint(&folder).unwrap();
        let status = checkpoint.restore(newest.as_ref()).unwrap();
        if newest.is_some() {
            status.assert_nontrivial_match().unwrap();
        }
    } else {
        manager.restore_or_initialize().unwrap();
    }
    say(&format!("at {}", program.steps()));
    while program.steps() < until {
        let [loss, mean] = program.step().unwrap();
        say(&format!("step {} {loss} {mean}", program.steps()));
        if !program.steps().is_multiple_of(EVERY) || mode == "unsaved" {
            continue;
        }
        let saved = match mode.as_str() {
            "checkpoint" => checkpoint.save(folder.join("ckpt")).map(Some),
            _ => manager.save(),
        };
        match saved {
            Ok(_) => say(&format!("saved {}", program.steps())),
            Err(error) => say(&format!("unsaved {} {error}", program.steps())),
        }
    }
    manager.sync().unwrap();
    say("done");
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("wgrad-survival-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The arguments with which this program runs only `part`.
fn arguments(part: &str) -> Vec<std::ffi::OsString> {
    child::command(module_path!(), part).get_args().map(Into::into).collect()
}

fn set<'a>(command: &'a mut Command, mode: &str, folder: &Path, until: u64) -> &'a mut Command {
    command
        .env("SURVIVAL_MODE", mode)
        .env("SURVIVAL_FOLDER", folder)
        .env("SURVIVAL_UNTIL", until.to_string())
}

/// A running process, and its lines as they arrive.
struct Life {
    child: Child,
    lines: mpsc::Receiver<String>,
    /// The step at which it started.
    at: u64,
}

impl Life {
    fn begin(mode: &str, folder: &Path, until: u64) -> Self {
        let mut command = child::command(module_path!(), "trains");
        let command = set(&mut command, mode, folder, until);
        let errors = std::fs::File::create(folder.with_extension("errors")).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(errors).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (give, lines) = mpsc::channel();
        std::thread::spawn(move || {
            out.lines().map_while(|line| line.ok()).try_for_each(|line| give.send(line))
        });
        let mut life = Life { child, lines, at: 0 };
        life.at = life.wait_for("at ").parse().unwrap();
        life
    }

    /// The rest of the next line that begins with these words.
    fn wait_for(&self, words: &str) -> String {
        loop {
            match self.lines.recv_timeout(Duration::from_secs(120)) {
                Ok(line) => match line.strip_prefix(words) {
                    Some(rest) => return rest.to_string(),
                    None => continue,
                },
                Err(error) => panic!("no line '{words}..' came ({error}); see the file *.errors"),
            }
        }
    }

    /// Kills it if it has not ended; returns the lines that it printed.
    fn end(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.lines.iter().collect()
    }
}

/// The bits of each step.
type Steps = BTreeMap<u64, String>;

/// Records the steps in the lines; steps that are already recorded must be the same. Returns the last saved step.
fn note(lines: &[String], steps: &mut Steps) -> Option<u64> {
    let mut saved = None;
    for line in lines {
        if let Some((step, bits)) = line.strip_prefix("step ").and_then(|rest| rest.split_once(' '))
        {
            let number = step.parse().unwrap();
            let known = steps.entry(number).or_insert_with(|| bits.to_string());
            assert_eq!(known, bits, "step {number} has another loss than in an earlier life");
        }
        saved = line.strip_prefix("saved ").map(|step| step.parse().unwrap()).or(saved);
    }
    saved
}

/// The steps of an uninterrupted training.
fn undisturbed(until: u64, mode: &str) -> Steps {
    // Tests run at the same time, and each needs its own folder.
    let folder = folder(&format!("undisturbed-{mode}"));
    let life = Life::begin("unsaved", &folder, until);
    let mut lines = Vec::new();
    loop {
        match life.lines.recv_timeout(Duration::from_secs(120)).unwrap() {
            line if line == "done" => break,
            line => lines.push(line),
        }
    }
    life.end();
    let mut steps = Steps::new();
    note(&lines, &mut steps);
    assert_eq!(steps.len() as u64, until);
    std::fs::remove_dir_all(folder).unwrap();
    steps
}

fn assert_same(steps: &Steps, mode: &str) {
    let last = *steps.keys().last().unwrap();
    let whole = undisturbed(last, mode);
    for (number, bits) in steps {
        assert_eq!(bits, &whole[number], "{mode}: step {number}");
    }
}

fn file_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Kills a training `kills` times.
fn kill(mode: &str, kills: usize) {
    let folder = folder(mode);
    let mut rng = fastrand::Rng::new();
    println!("the moments are drawn from the seed {}", rng.get_seed());
    let (mut steps, mut saved, mut begun) = (Steps::new(), 0, 0);
    for _ in 0..kills {
        let life = Life::begin(mode, &folder, u64::MAX);
        // In the background, the newest may not have its final name yet.
        let due = if mode == "background" { saved.max(EVERY) - EVERY } else { saved };
        assert!(life.at >= due, "{mode}: step {due} was saved, and it goes on from {}", life.at);
        assert_eq!(life.at % EVERY, 0);
        begun += u64::from(life.at > 0);
        // Most runs save once or several times.
        let mut lines = Vec::new();
        for _ in 0..rng.u64(1..40) {
            lines.push(life.lines.recv_timeout(Duration::from_secs(120)).unwrap());
        }
        std::thread::sleep(Duration::from_micros(rng.u64(0..8_000)));
        lines.extend(life.end());
        saved = note(&lines, &mut steps).unwrap_or(saved);
    }
    assert!(begun * 2 > kills as u64, "most lives must have begun with a checkpoint: {begun}");
    // One more save removes the files that the killed ones left.
    let life = Life::begin(mode, &folder, u64::MAX);
    let mut last = life.wait_for("saved ").parse::<u64>().unwrap();
    for _ in 0..2 {
        last = life.wait_for("saved ").parse().unwrap();
    }
    note(&life.end(), &mut steps);
    let mut life = Life::begin(mode, &folder, last + EVERY);
    assert!(life.child.wait().unwrap().success());
    note(&life.lines.iter().collect::<Vec<_>>(), &mut steps);
    let names = file_names(&folder);
    let few = if mode == "checkpoint" { usize::MAX } else { 5 };
    assert!(names.len() <= few, "{names:?}");
    assert!(!names.iter().any(|name| name.ends_with(".tmp")), "{names:?}");
    assert_same(&steps, mode);
    println!("{mode}: {kills} kills, {} steps, the last life began at {}", steps.len(), life.at);
    std::fs::remove_dir_all(&folder).unwrap();
    let _ = std::fs::remove_file(folder.with_extension("errors"));
}

#[test]
fn a_training_that_is_killed_again_and_again_goes_on_bit_for_bit() {
    for mode in ["manager", "background", "checkpoint"] {
        kill(mode, 8);
    }
}

#[test]
#[ignore = "takes two minutes: .ci/run runs it"]
fn a_training_that_is_killed_two_hundred_times_goes_on_bit_for_bit() {
    for (mode, kills) in [("manager", 100), ("background", 60), ("checkpoint", 40)] {
        kill(mode, kills);
    }
}

#[test]
fn fifty_steps_and_fifty_in_another_process_are_a_hundred() {
    let whole = undisturbed(100, "halves");
    let folder = folder("halves");
    let mut steps = Steps::new();
    // 51 is saved; the other process resumes from there.
    for until in [51, 100] {
        let mut life = Life::begin("manager", &folder, until);
        assert_eq!(life.at, if until == 51 { 0 } else { 51 });
        assert!(life.child.wait().unwrap().success());
        note(&life.lines.iter().collect::<Vec<_>>(), &mut steps);
    }
    assert_eq!(steps, whole);
    std::fs::remove_dir_all(folder).unwrap();
}

// ---- a full disk ---------------------------------------------------------------------------------------------------

/// Runs in a folder on a small file system: fills it except for a random rest, so that a save fails somewhere.
#[test]
#[ignore = "other tests run it in a process of its own"]
fn saves_on_a_full_disk() {
    let folder = PathBuf::from(std::env::var("SURVIVAL_FOLDER").unwrap());
    let (fill, saves) = (folder.join("fill"), folder.join("saves"));
    let whole: Vec<[u32; 2]> = {
        let program = Program::new();
        (0..400).map(|_| program.step().unwrap()).collect()
    };
    let mut rng = fastrand::Rng::with_seed(8);
    let (mut program, mut failures, mut tries) = (Program::new(), 0, 0);
    let mut newest = None;
    while failures < 50 {
        tries += 1;
        assert!(tries < 130, "{failures} saves have failed");
        {
            let checkpoint = program.checkpoint();
            let manager = CheckpointManager::new(&checkpoint, &saves).unwrap().max_to_keep(1);
            assert_eq!(manager.restore_or_initialize().unwrap(), newest);
            for _ in 0..2 {
                let at = program.steps() as usize;
                assert_eq!(
                    program.step().unwrap(),
                    whole[at],
                    "step {at} after {failures} failures"
                );
            }
            if newest.is_some() {
                // Whole blocks until the disk is full; then a rest of a few bytes.
                let mut file = std::fs::File::create(&fill).unwrap();
                while file.write_all(&[1; 4096]).is_ok() {}
                let full = file.metadata().unwrap().len();
                file.set_len(full.saturating_sub(4096 * rng.u64(0..9))).unwrap();
            }
            match manager.save() {
                Ok(path) => newest = path,
                Err(error) => {
                    failures += 1;
                    let Error::Io(io) = &error else { panic!("{error}") };
                    assert_eq!(io.source.kind(), std::io::ErrorKind::StorageFull, "{error}");
                    assert!(io.path.starts_with(&saves), "{error}");
                }
            }
            assert_eq!(latest_checkpoint(&saves).unwrap(), newest);
            assert!(!file_names(&saves).iter().any(|name| name.ends_with(".tmp")));
        }
        let _ = std::fs::remove_file(&fill);
        // A new program, which resumes from the last save.
        program = Program::new();
    }
    say(&format!("failed {failures} of {tries}"));
}

/// Whether this user may mount a small file system in a private namespace.
fn may_mount() -> bool {
    let mount = "mount -t tmpfs -o size=64k none /mnt";
    let tried = Command::new("unshare").args(["-Urm", "sh", "-c", mount]).output();
    tried.is_ok_and(|output| output.status.success())
}

#[test]
fn saves_that_fail_on_a_full_disk_lose_nothing() {
    if !may_mount() {
        // The next test limits the sizes of files, which every user may.
        println!("no small file system can be mounted here, so no disk was full");
        return;
    }
    let folder = folder("full");
    let mount = "mount -t tmpfs -o size=96k none \"$SURVIVAL_FOLDER\" && exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-Urm", "sh", "-c", mount]).arg(std::env::current_exe().unwrap());
    command.args(arguments("saves_on_a_full_disk"));
    let output = set(&mut command, "full", &folder, 0).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("failed 50 of "), "{text}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
#[cfg(unix)]
fn saves_that_fail_as_files_grow_too_large_lose_nothing() {
    let folder = folder("limit");
    let mut steps = Steps::new();
    let mut life = Life::begin("manager", &folder, 6);
    assert!(life.child.wait().unwrap().success());
    note(&life.lines.iter().collect::<Vec<_>>(), &mut steps);
    let mut refused = 0;
    // Blocks of 512 bytes: from nothing to more than the size of a checkpoint.
    for blocks in [0, 1, 2, 5, 9, 14, 100] {
        let limit = format!("trap '' XFSZ; ulimit -f {blocks} && exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command
            .args(["-c", &limit])
            .arg(std::env::current_exe().unwrap())
            .args(arguments("trains"));
        let before = latest_checkpoint(&folder).unwrap();
        let at = steps.len() as u64;
        let output = set(&mut command, "manager", &folder, at + EVERY).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let lines: Vec<String> = text.lines().map(String::from).collect();
        note(&lines, &mut steps);
        let reported = lines.iter().find(|line| line.starts_with("unsaved "));
        assert_eq!(reported.is_some(), blocks < 100, "{blocks}: {text}");
        if let Some(reported) = reported {
            refused += 1;
            assert!(reported.contains("File too large"), "{reported}");
            assert_eq!(latest_checkpoint(&folder).unwrap(), before);
            // They will be repeated.
            steps.retain(|step, _| *step <= at);
        }
        let names = file_names(&folder);
        assert!(!names.iter().any(|name| name.ends_with(".tmp")), "{names:?}");
    }
    assert_eq!(refused, 6);
    assert_same(&steps, "limit");
    std::fs::remove_dir_all(folder).unwrap();
}

// ---- a lost device --------------------------------------------------------------------------------------------------

#[test]
#[ignore = "other tests run it in a process of its own"]
fn loses_its_device() {
    let folder = PathBuf::from(std::env::var("SURVIVAL_FOLDER").unwrap());
    let whole: Vec<[u32; 2]> = {
        let program = Program::new();
        (0..20).map(|_| program.step().unwrap()).collect()
    };
    let first = Device::new().unwrap();
    Device::set_default(&first);
    let program = Program::new();
    let checkpoint = program.checkpoint();
    for loss in &whole[..10] {
        assert_eq!(program.step().unwrap(), *loss);
    }
    let path = checkpoint.save(folder.join("ckpt")).unwrap();
    program.step().unwrap();
    first.destroy();
    assert!(program.step().unwrap_err().is_device_lost());
    assert!(checkpoint.save(folder.join("ckpt")).unwrap_err().is_device_lost());
    assert_eq!(latest_checkpoint(&folder).unwrap(), Some(path.clone()));
    // The same objects continue on a new device.
    Device::set_default(&Device::new().unwrap());
    checkpoint.restore(&path).unwrap().assert_consumed().unwrap();
    assert_eq!(program.steps(), 10);
    for (at, loss) in whole.iter().enumerate().skip(10) {
        assert_eq!(program.step().unwrap(), *loss, "step {at}");
    }
    say("done");
}

#[test]
fn a_training_goes_on_bit_for_bit_on_a_new_device() {
    let folder = folder("loss");
    let mut command = child::command(module_path!(), "loses_its_device");
    let output = set(&mut command, "", &folder, 0).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("\ndone\n"), "{text}");
    std::fs::remove_dir_all(folder).unwrap();
}
