//! An interrupted training continues with the same numbers as an uninterrupted one.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use ndarray::{Array1, Array2};
use wgrad::data::{Dataset, ShuffleOptions};
use wgrad::keras::callbacks::{
    BackupAndRestore, BackupOptions, BatchLogs, Callback, LearningRateScheduler, Run, SaveFreq,
};
use wgrad::keras::layers::{Dense, Dropout};
use wgrad::keras::optimizers::Adam;
use wgrad::keras::{Activation, CompileOptions, FitOptions, History, Logs, Model, Sequential};
use wgrad::{Error, Result, Trackable, random};

use crate::alone;
use crate::support::child;

const EXAMPLES: usize = 40;
const EPOCHS: usize = 3;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("wgrad-backup-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn examples() -> (Array2<f32>, Array1<i32>) {
    let mut rng = fastrand::Rng::with_seed(4);
    let x = Array2::from_shape_simple_fn((EXAMPLES, 6), || rng.f32() - 0.5);
    let y =
        x.map_axis(ndarray::Axis(1), |row| i32::from(row[0] > row[3]) + i32::from(row[1] > 0.2));
    (x, y)
}

fn model() -> Sequential {
    let model = Sequential::new()
        .add(Dense::new(12).activation(Activation::Relu))
        .add(Dropout::new(0.3))
        .add(Dense::new(3).activation(Activation::Softmax));
    let options = CompileOptions::new().metrics(["accuracy"]);
    model.compile(Adam::new(0.01), "sparse_categorical_crossentropy", options).unwrap();
    model
}

/// The source of the batches.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Arrays,
    /// The number of batches per epoch is fixed, whatever the length of a pass.
    ArraysInSteps,
    Dataset,
    DatasetInSteps,
    Closure,
}

const KINDS: [Kind; 5] =
    [Kind::Arrays, Kind::ArraysInSteps, Kind::Dataset, Kind::DatasetInSteps, Kind::Closure];

/// Records the logs of every batch, as bits, and interrupts the training before a batch.
struct Cut<'a> {
    notes: &'a RefCell<Vec<(usize, usize, Vec<u64>)>>,
    epoch: usize,
    at: Option<(usize, usize)>,
}

impl Callback for Cut<'_> {
    fn batch_logs(&self) -> BatchLogs {
        BatchLogs::Now
    }

    fn on_epoch_begin(&mut self, epoch: usize, _: &mut Run<'_>) -> Result<()> {
        self.epoch = epoch;
        Ok(())
    }

    fn on_train_batch_begin(&mut self, batch: usize, _: &mut Run<'_>) -> Result<()> {
        match self.at == Some((self.epoch, batch)) {
            true => Err(Error::Data("the power is gone".into())),
            false => Ok(()),
        }
    }

    fn on_train_batch_end(&mut self, batch: usize, logs: &Logs, _: &mut Run<'_>) -> Result<()> {
        let bits: Vec<u64> = logs.iter().map(|(_, value)| value.to_bits()).collect();
        if will_be_killed().is_some() {
            say(&batch_line(self.epoch, batch, &bits));
        }
        self.notes.borrow_mut().push((self.epoch, batch, bits));
        Ok(())
    }
}

/// The folder of the backups, in a process that the parent process kills.
fn will_be_killed() -> Option<PathBuf> {
    std::env::var_os("BACKUP_FOLDER").map(PathBuf::from)
}

fn say(line: &str) {
    std::io::stdout().write_all(format!("\n{line}\n").as_bytes()).unwrap();
}

fn batch_line(epoch: usize, batch: usize, bits: &[u64]) -> String {
    format!("batch {epoch} {batch} {bits:?}")
}

type Notes = Vec<(usize, usize, Vec<u64>)>;

/// Trains like a new process: with a new model and new data.
fn fit(
    kind: Kind,
    backup: Option<BackupAndRestore>,
    at: Option<(usize, usize)>,
) -> (Result<History>, Notes, Vec<u32>) {
    random::set_seed(11);
    let model = model();
    let notes = RefCell::default();
    let (x, y) = examples();
    let schedule =
        LearningRateScheduler::new(|epoch, rate| if epoch == 0 { rate } else { rate * 0.5 });
    let mut options = FitOptions::new().epochs(EPOCHS).callback(schedule);
    if let Some(backup) = backup {
        options = options.callback(backup);
    }
    options = options.callback(Cut { notes: &notes, epoch: 0, at });
    let dataset = |repeat: bool| {
        let validation = Dataset::from_tensor_slices((x.clone(), y.clone())).unwrap();
        let validation = validation.take(16).shuffle(16).batch(8).repeat(None);
        let dataset = Dataset::from_tensor_slices((x.clone(), y.clone())).unwrap();
        let dataset = dataset.shuffle_with(16, ShuffleOptions::new()).batch(8);
        (if repeat { dataset.repeat(None) } else { dataset }, validation)
    };
    let ended = match kind {
        Kind::Arrays => model.fit((&x, &y), options.batch_size(8).validation_split(0.2)),
        Kind::ArraysInSteps => model.fit((&x, &y), options.batch_size(8).steps_per_epoch(3)),
        Kind::Dataset => {
            let (dataset, validation) = dataset(false);
            model.fit(&dataset, options.validation_data(&validation).validation_steps(3))
        }
        Kind::DatasetInSteps => {
            let (dataset, validation) = dataset(true);
            let options = options.validation_data(&validation).validation_steps(1);
            model.fit(&dataset, options.steps_per_epoch(4))
        }
        Kind::Closure => {
            let batches = || {
                let pieces = x.axis_chunks_iter(ndarray::Axis(0), 8);
                let pieces = pieces.zip(y.axis_chunks_iter(ndarray::Axis(0), 8));
                pieces.map(|(x, y)| (x.to_owned(), y.to_owned())).collect::<Vec<_>>()
            };
            model.fit(batches, options)
        }
    };
    let mut bits = Vec::new();
    for array in model.get_weights().unwrap() {
        bits.extend(array.iter().map(|x| x.to_bits()));
    }
    (ended, notes.into_inner(), bits)
}

fn steps(kind: Kind) -> usize {
    match kind {
        Kind::Arrays | Kind::DatasetInSteps => 4,
        Kind::ArraysInSteps => 3,
        Kind::Dataset | Kind::Closure => 5,
    }
}

fn backup(folder: &Path, options: BackupOptions) -> Option<BackupAndRestore> {
    Some(BackupAndRestore::new(folder, options))
}

#[test]
fn a_training_that_was_cut_off_goes_on_bit_for_bit() {
    let _alone = alone();
    for kind in KINDS {
        let (whole, all, weights) = fit(kind, None, None);
        let whole = whole.unwrap();
        assert_eq!(all.len(), EPOCHS * steps(kind), "{kind:?}");
        for freq in [SaveFreq::Epoch, SaveFreq::Batches(1), SaveFreq::Batches(3)] {
            let options = BackupOptions::new().save_freq(freq);
            let folder = folder("cut");
            // Backups do not change the results.
            let (kept, notes, bits) = fit(kind, backup(&folder, options.clone()), None);
            assert_eq!(kept.unwrap().get("loss"), whole.get("loss"), "{kind:?} {freq:?}");
            assert!(notes == all && bits == weights, "{kind:?} {freq:?}");
            assert!(!folder.exists(), "a training that has ended needs no backup");
            for at in [(0, 2), (1, 0), (1, 1), (2, steps(kind) - 1)] {
                let (ended, before, _) = fit(kind, backup(&folder, options.clone()), Some(at));
                assert!(ended.unwrap_err().to_string().ends_with("the power is gone"));
                let (resumed, after, bits) = fit(kind, backup(&folder, options.clone()), None);
                let name = format!("{kind:?} {freq:?} {at:?}");
                // The repeated batches and the later ones.
                let first = after.first().map(|(epoch, batch, _)| (*epoch, *batch)).unwrap();
                let begun = all.iter().position(|(e, b, _)| (*e, *b) == first).unwrap();
                assert!(begun <= before.len(), "{name}");
                match freq {
                    SaveFreq::Epoch => assert_eq!(begun, at.0 * steps(kind), "{name}"),
                    SaveFreq::Batches(every) => {
                        assert_eq!(begun, before.len() / every * every, "{name}");
                    }
                    _ => unreachable!(),
                }
                assert!(all[begun..] == after, "{name}: {:?} {after:?}", &all[begun..]);
                assert!(bits == weights, "{name}");
                let resumed = resumed.unwrap();
                // An epoch whose last batch was saved ends a second time.
                let from = resumed.epochs()[0];
                assert!(from == first.0 || (from + 1 == first.0 && first.1 == 0), "{name}");
                for (log, values) in resumed.iter() {
                    let of_whole = &whole.get(log).unwrap()[from..];
                    assert_eq!(values, of_whole, "{name} {log}");
                }
                assert!(!folder.exists());
            }
        }
    }
}

#[test]
fn a_broken_backup_is_reported_and_the_one_before_used() {
    let _alone = alone();
    for double in [false, true] {
        let folder = folder("broken");
        let options =
            BackupOptions::new().save_freq(SaveFreq::Batches(1)).double_checkpoint(double);
        let (ended, ..) = fit(Kind::Arrays, backup(&folder, options.clone()), Some((1, 2)));
        ended.unwrap_err();
        let data: Vec<PathBuf> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.to_string_lossy().contains(".data-"))
            .collect();
        assert_eq!(data.len(), if double { 2 } else { 1 });
        let newest = folder.join("ckpt-6.data-00000-of-00001");
        let mut bytes = std::fs::read(&newest).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&newest, bytes).unwrap();
        let (resumed, notes, bits) = fit(Kind::Arrays, backup(&folder, options.clone()), None);
        match double {
            false => assert!(matches!(resumed.unwrap_err(), Error::Data(_))),
            true => {
                resumed.unwrap();
                assert_eq!((notes[0].0, notes[0].1), (1, 1));
                assert!(bits == fit(Kind::Arrays, None, None).2);
            }
        }
        let _ = std::fs::remove_dir_all(&folder);
    }
}

#[test]
fn backups_stay_where_they_are_wanted() {
    let _alone = alone();
    let folder = folder("stay");
    let options = BackupOptions::new().delete_checkpoint(false);
    fit(Kind::Arrays, backup(&folder, options.clone()), None).0.unwrap();
    assert_eq!(
        wgrad::train::latest_checkpoint(&folder).unwrap(),
        Some(folder.join(format!("ckpt-{EPOCHS}")))
    );
    // There is nothing left to do.
    let (history, notes, bits) = fit(Kind::Arrays, backup(&folder, options), None);
    assert!(history.unwrap().epochs().is_empty() && notes.is_empty());
    assert!(bits == fit(Kind::Arrays, None, None).2);
    std::fs::remove_dir_all(folder).unwrap();
}

/// Trains from the last backup to the end, and prints each batch.
#[test]
#[ignore = "other tests run it in a process of its own"]
fn fits() {
    let options = BackupOptions::new().save_freq(SaveFreq::Batches(1));
    let (ended, _, bits) = fit(Kind::Dataset, backup(&will_be_killed().unwrap(), options), None);
    ended.unwrap();
    say(&format!("ended {bits:?}"));
}

/// Kills trainings at random moments, `kills` times in total, and resumes each in a new process until it has ended.
fn kill(kills: usize) {
    let _alone = alone();
    let (whole, all, weights) = fit(Kind::Dataset, None, None);
    whole.unwrap();
    let all: Vec<String> =
        all.iter().map(|(epoch, batch, bits)| batch_line(*epoch, *batch, bits)).collect();
    let weights = format!("ended {weights:?}");
    let folder = folder("kills");
    std::fs::create_dir_all(&folder).unwrap();
    let mut rng = fastrand::Rng::new();
    println!("the moments are drawn from the seed {}", rng.get_seed());
    let (mut killed, mut ended) = (0, 0);
    // The number of batches reported by the running training.
    let mut reported = 0;
    while killed < kills || ended == 0 {
        let mut child = child::command(module_path!(), "fits")
            .env("BACKUP_FOLDER", folder.join("backups"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines =
            BufReader::new(child.stdout.take().unwrap()).lines().map_while(|line| line.ok());
        let mut lines =
            lines.filter(|line| line.starts_with("batch ") || line.starts_with("ended "));
        let is_killed = killed < kills;
        let wanted = if is_killed { rng.usize(0..all.len()) } else { usize::MAX };
        let mut heard: Vec<String> = lines.by_ref().take(wanted).collect();
        if is_killed {
            std::thread::sleep(std::time::Duration::from_micros(rng.u64(0..20_000)));
            child.kill().unwrap();
            killed += 1;
        }
        heard.extend(lines);
        let status = child.wait().unwrap();
        assert!(is_killed || status.success(), "{status}, behind {heard:?}");
        let has_ended = heard.last().is_some_and(|line| line.starts_with("ended "));
        if has_ended {
            assert!(heard.pop().unwrap() == weights, "the weights of the training that ended");
        }
        if let Some(first) = heard.first() {
            let begun = all.iter().position(|line| line == first);
            let begun = begun.unwrap_or_else(|| panic!("no training had {first}"));
            // The last batch may be repeated; a training may have ended without a report.
            let again = reported.max(1) - 1..=reported;
            assert!(
                again.contains(&begun) || (reported == all.len() && begun == 0),
                "{begun}, {reported}"
            );
            assert!(all[begun..].starts_with(&heard), "from batch {begun} on: {heard:?}");
            reported = begun + heard.len();
        }
        if has_ended {
            (reported, ended) = (0, ended + 1);
            assert!(!folder.join("backups").exists() || is_killed);
        }
    }
    println!("{killed} kills, {ended} trainings came to their end");
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn a_training_that_is_killed_goes_on_bit_for_bit() {
    kill(5);
}

#[test]
#[ignore = "takes a while: continuous integration runs it by itself"]
fn a_training_is_killed_fifty_times() {
    kill(50);
}
