//! Callbacks: when they are called, their effects on training, and Keras's rules.
#![allow(clippy::unwrap_used)]

use crate::support::child;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use ndarray::Array2;
use wgrad::data::Batch;
use wgrad::keras::callbacks::{
    BatchLogs, Callback, CsvLogger, EarlyStopping, LambdaCallback, Mode, ModelCheckpoint,
    ProgbarLogger, ReduceLrOnPlateau, Run, SaveFreq, TerminateOnNan,
};
use wgrad::keras::layers::Dense;
use wgrad::keras::losses::MeanSquaredError;
use wgrad::keras::optimizers::{Optimizer, Sgd};
use wgrad::keras::{
    CompileOptions, Context, EvaluateOptions, FitOptions, Initializer, Layer, Logs, Model,
    PredictOptions, Sequential, StepLogs, Trainer, Verbose,
};
use wgrad::train::{Checkpoint, latest_checkpoint};
use wgrad::{Result, Tensor, Trackable, Variable};

/// A model whose loss follows a script, epoch by epoch; its only weight counts the epochs.
#[derive(Trackable)]
struct Scripted {
    epoch: Variable,
    #[track(skip)]
    script: Vec<f32>,
    trainer: Trainer,
}

impl Scripted {
    fn new(script: &[f32]) -> Self {
        let model = Scripted {
            epoch: Variable::new(wgrad::constant(0.0).unwrap()),
            script: script.to_vec(),
            trainer: Trainer::new(),
        };
        model.compile(Sgd::new(1.0), MeanSquaredError::new(), CompileOptions::new()).unwrap();
        model
    }

    fn epochs(&self) -> f32 {
        self.epoch.read().item().unwrap()
    }

    fn fit(&self, options: FitOptions<'_>) -> Result<wgrad::keras::History> {
        let one = Tensor::ones([1, 1]).unwrap();
        self.fit_on(options.epochs(self.script.len()), &one)
    }

    fn fit_on(&self, options: FitOptions<'_>, x: &Tensor) -> Result<wgrad::keras::History> {
        Model::fit(self, (x, x), options)
    }
}

impl Layer for Scripted {
    fn call(&self, x: &Tensor, _: Context<'_>) -> Result<Tensor> {
        Ok(x.clone())
    }
}

impl Model for Scripted {
    fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    fn train_step(&self, _: &Batch) -> Result<StepLogs> {
        let loss = self.script[self.epochs() as usize % self.script.len()];
        self.epoch.assign_add(1.0)?;
        Ok(StepLogs::new().add("loss", &wgrad::constant(loss)?))
    }
}

fn folder(name: &str) -> PathBuf {
    let folder =
        std::env::temp_dir().join(format!("wgrad-callbacks-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn small() -> (Sequential, Array2<f32>, Array2<f32>) {
    let model = Sequential::new().add(Dense::new(1).kernel_initializer(Initializer::Ones));
    model.compile(Sgd::new(0.1), MeanSquaredError::new(), CompileOptions::new()).unwrap();
    let x = Array2::from_shape_fn((20, 2), |(i, j)| (i * 2 + j) as f32 / 40.0);
    let y = x.map_axis(ndarray::Axis(1), |row| 2.0 * row[0] - row[1]).insert_axis(ndarray::Axis(1));
    (model, x, y)
}

// ---- order ---------------------------------------------------------------------------------------------------------

/// Records every call.
#[derive(Default)]
struct Noting {
    calls: Vec<String>,
    logs: Vec<Logs>,
    batch_logs: BatchLogs,
}

impl Callback for Noting {
    fn batch_logs(&self) -> BatchLogs {
        self.batch_logs
    }

    fn on_train_begin(&mut self, run: &mut Run<'_>) -> Result<()> {
        self.calls.push(format!("train of {} epochs with {:?} steps", run.epochs(), run.steps()));
        Ok(())
    }

    fn on_train_end(&mut self, logs: &Logs, _: &mut Run<'_>) -> Result<()> {
        self.calls.push(format!("train ends with {}", logs.iter().count()));
        Ok(())
    }

    fn on_epoch_begin(&mut self, epoch: usize, _: &mut Run<'_>) -> Result<()> {
        self.calls.push(format!("epoch {epoch}"));
        Ok(())
    }

    fn on_epoch_end(&mut self, epoch: usize, logs: &mut Logs, _: &mut Run<'_>) -> Result<()> {
        self.calls.push(format!("epoch {epoch} ends"));
        self.logs.push(logs.clone());
        logs.set("extra", 7.0);
        Ok(())
    }

    fn on_train_batch_begin(&mut self, batch: usize, _: &mut Run<'_>) -> Result<()> {
        self.calls.push(format!("batch {batch}"));
        Ok(())
    }

    fn on_train_batch_end(&mut self, batch: usize, logs: &Logs, _: &mut Run<'_>) -> Result<()> {
        self.calls.push(format!("batch {batch} ends with {}", logs.iter().count()));
        self.logs.push(logs.clone());
        Ok(())
    }

    fn on_test_begin(&mut self, run: &mut Run<'_>) -> Result<()> {
        self.calls.push(format!("test of {:?} steps", run.steps()));
        Ok(())
    }

    fn on_test_end(&mut self, logs: &Logs, _: &mut Run<'_>) -> Result<()> {
        self.calls.push(format!("test ends with {}", logs.iter().count()));
        Ok(())
    }

    fn on_test_batch_begin(&mut self, batch: usize, _: &mut Run<'_>) -> Result<()> {
        self.calls.push(format!("test batch {batch}"));
        Ok(())
    }

    fn on_test_batch_end(&mut self, batch: usize, _: &Logs, _: &mut Run<'_>) -> Result<()> {
        self.calls.push(format!("test batch {batch} ends"));
        Ok(())
    }

    fn on_predict_batch_end(&mut self, batch: usize, _: &mut Run<'_>) -> Result<()> {
        self.calls.push(format!("predict batch {batch} ends"));
        Ok(())
    }
}

#[test]
fn callbacks_are_called_in_kerass_order() {
    let (model, x, y) = small();
    let mut noting = Noting { batch_logs: BatchLogs::Now, ..Noting::default() };
    let options = FitOptions::new().batch_size(10).validation_data((&x, &y)).callback(&mut noting);
    let history = model.fit((&x, &y), options).unwrap();
    // Keras calls them in this order.
    let want = [
        "train of 1 epochs with Some(2) steps",
        "epoch 0",
        "batch 0",
        "batch 0 ends with 1",
        "batch 1",
        "batch 1 ends with 1",
        "test of Some(2) steps",
        "test batch 0",
        "test batch 0 ends",
        "test batch 1",
        "test batch 1 ends",
        "test ends with 1",
        "epoch 0 ends",
        "train ends with 3",
    ];
    assert_eq!(noting.calls, want);
    // Other callbacks see values that a callback adds, and the history stores them.
    assert_eq!(history.get("extra"), Some(&[7.0][..]));
    // The second batch's logs are the mean of both batches, which is also the epoch's.
    assert_eq!(noting.logs[1].get("loss"), noting.logs[2].get("loss"));
    assert_ne!(noting.logs[0].get("loss"), noting.logs[1].get("loss"));
    let mut of_predict = Noting::default();
    model.predict(&x, PredictOptions::new().batch_size(10).callback(&mut of_predict)).unwrap();
    assert_eq!(of_predict.calls, ["predict batch 0 ends", "predict batch 1 ends"]);
    let mut of_evaluate = Noting::default();
    model.evaluate((&x, &y), EvaluateOptions::new().callback(&mut of_evaluate)).unwrap();
    assert_eq!(
        of_evaluate.calls,
        ["test of Some(1) steps", "test batch 0", "test batch 0 ends", "test ends with 1"]
    );
}

#[test]
fn batch_ends_come_in_order_and_with_the_same_logs_behind_the_training() {
    let ends = |batch_logs: BatchLogs| {
        let (model, x, y) = small();
        let mut noting = Noting { batch_logs, ..Noting::default() };
        let options =
            FitOptions::new().batch_size(1).shuffle(false).epochs(2).callback(&mut noting);
        model.fit((&x, &y), options).unwrap();
        let calls: Vec<String> =
            noting.calls.into_iter().filter(|c| c.contains("ends with")).collect();
        (calls, noting.logs)
    };
    let (now, behind) = (ends(BatchLogs::Now), ends(BatchLogs::Behind));
    assert_eq!(now, behind);
    assert_eq!(now.0.len(), 41);
    let unused = ends(BatchLogs::Unused);
    assert_eq!(unused.0[0], "batch 0 ends with 0");
    assert_eq!(unused.0.len(), 41);
}

#[test]
fn a_callback_stops_and_reads_the_model() {
    let (model, x, y) = small();
    let weights = Arc::new(Mutex::new(Vec::new()));
    let seen = weights.clone();
    let stop = LambdaCallback::new().batch_logs(BatchLogs::Now).on_train_batch_end(
        move |batch, _, run| {
            seen.lock().unwrap().push(run.model().variables()[0].read().to_vec::<f32>()?);
            assert_eq!(run.call(&[Tensor::ones([3, 2])?])?[0].shape(), [3, 1]);
            if batch == 2 {
                run.stop_training();
            }
            Ok(())
        },
    );
    let options = FitOptions::new().batch_size(2).epochs(5).callback(stop);
    let history = model.fit((&x, &y), options).unwrap();
    assert_eq!((history.epochs(), history.interrupted()), (&[0][..], false));
    assert_eq!(model.trainer().optimizer().unwrap().iterations(), 3);
    let weights = weights.lock().unwrap();
    assert_eq!(weights.len(), 3);
    assert_eq!(weights[2], model.variables()[0].read().to_vec::<f32>().unwrap());
    // `fit` returns a callback's error.
    let refuse =
        LambdaCallback::new().on_epoch_begin(|_, _| Err(wgrad::Error::Data("enough".into())));
    let error = model.fit((&x, &y), FitOptions::new().callback(refuse)).unwrap_err();
    assert_eq!(error.to_string(), "enough");
}

// ---- early stopping, plateau ---------------------------------------------------------------------------------------

/// The epochs trained with this script, and the callback afterwards.
fn stopped(script: &[f32], mut stopping: EarlyStopping) -> (usize, EarlyStopping, f32) {
    let model = Scripted::new(script);
    let history = model.fit(FitOptions::new().callback(&mut stopping)).unwrap();
    (history.epochs().len(), stopping, model.epochs())
}

fn watch() -> EarlyStopping {
    EarlyStopping::new().monitor("loss")
}

// The numbers of epochs are those of Keras 3.15.1 with a model that returns the same losses.
#[test]
fn early_stopping_is_kerass() {
    assert_eq!(stopped(&[5.0, 4.0, 4.5, 3.0], watch()).0, 3);
    assert_eq!(stopped(&[5.0, 4.0, 4.5, 3.0, 3.5], watch().patience(1)).0, 3);
    assert_eq!(stopped(&[5.0, 4.0, 4.5, 3.0, 3.5, 3.6, 1.0], watch().patience(2)).0, 6);
    assert_eq!(stopped(&[5.0, 4.9, 4.8, 4.7, 1.0], watch().patience(2).min_delta(0.5)).0, 3);
    assert_eq!(stopped(&[5.0, 4.0, 6.0, 7.0, 8.0], watch().start_from_epoch(2)).0, 4);
    assert_eq!(stopped(&[5.0, 4.0, 3.0, 2.0], watch().patience(2).baseline(1.0)).0, 4);
    assert_eq!(stopped(&[5.0, 4.0, 3.0, 3.0, 2.0], watch().patience(2).baseline(1.0)).0, 4);
    assert_eq!(stopped(&[1.0, 2.0, 2.0, 3.0, 1.0], watch().mode(Mode::Max)).0, 3);
    let (epochs, stopping, weight) =
        stopped(&[5.0, 2.0, 3.0, 4.0, 1.0], watch().patience(2).restore_best_weights(true));
    assert_eq!((epochs, stopping.stopped_epoch(), stopping.best()), (4, Some(3), Some((1, 2.0))));
    // The weight counts the epochs: the value after the second one is restored.
    assert_eq!(weight, 2.0);
    // It is also restored if training was not stopped early.
    let (epochs, stopping, weight) =
        stopped(&[5.0, 2.0, 3.0], watch().patience(9).restore_best_weights(true));
    assert_eq!((epochs, stopping.stopped_epoch(), weight), (3, None, 2.0));
    // A metric that the logs lack stops nothing.
    assert_eq!(stopped(&[5.0, 5.0, 5.0], EarlyStopping::new()).0, 3);
}

fn rates(script: &[f32], reduce: ReduceLrOnPlateau) -> Vec<f64> {
    let model = Scripted::new(script);
    let history = model.fit(FitOptions::new().callback(reduce)).unwrap();
    history.get("learning_rate").unwrap().to_vec()
}

// As in Keras 3.15.1: the rate at each epoch's end, before that epoch's reduction.
#[test]
fn a_plateau_reduces_the_rate_as_in_keras() {
    let reduce = || ReduceLrOnPlateau::new().monitor("loss").factor(0.5);
    let flat = [1.0; 7];
    assert_eq!(rates(&flat, reduce().patience(2)), [1.0, 1.0, 1.0, 0.5, 0.5, 0.25, 0.25]);
    assert_eq!(
        rates(&flat, reduce().patience(1).cooldown(2)),
        [1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.125]
    );
    assert_eq!(
        rates(&flat, reduce().patience(1).min_lr(0.3)),
        [1.0, 1.0, 0.5, 0.3f32.into(), 0.3f32.into(), 0.3f32.into(), 0.3f32.into()]
    );
    let falling = [1.0, 0.9, 0.8, 0.7];
    assert_eq!(rates(&falling, reduce().patience(1)), [1.0; 4]);
    assert_eq!(rates(&falling, reduce().patience(1).min_delta(0.5)), [1.0, 1.0, 0.5, 0.25]);
}

// ---- NaN -----------------------------------------------------------------------------------------------------------

#[test]
fn a_loss_that_is_no_number_ends_the_training() {
    let script = [1.0, f32::NAN, 1.0, 1.0];
    let model = Scripted::new(&script);
    let history = model.fit(FitOptions::new().callback(TerminateOnNan::new())).unwrap();
    assert_eq!(history.epochs(), [0, 1]);
    assert!(history.get("loss").unwrap()[1].is_nan());
    let error = Scripted::new(&[f32::INFINITY])
        .fit(FitOptions::new().callback(TerminateOnNan::new().raise_error(true)))
        .unwrap_err();
    assert!(
        error.to_string().starts_with("TerminateOnNaN: the loss is inf at batch 0."),
        "{error}"
    );
    // Without it the training continues, as in Keras.
    assert_eq!(Scripted::new(&script).fit(FitOptions::new()).unwrap().epochs().len(), 4);
}

// ---- files ---------------------------------------------------------------------------------------------------------

fn files(folder: &std::path::Path) -> Vec<String> {
    let names =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn checkpoints_have_the_weights_of_their_epoch() {
    let folder = folder("epochs");
    let model = Scripted::new(&[3.0, 1.0, 2.0]);
    let all = ModelCheckpoint::new(folder.join("all-{epoch:02d}-{loss:.1f}.safetensors"))
        .save_weights_only(true);
    let mut best =
        ModelCheckpoint::new(folder.join("sub/best")).monitor("loss").save_best_only(true);
    model.fit(FitOptions::new().callback(all).callback(&mut best)).unwrap();
    assert_eq!(
        files(&folder),
        ["all-01-3.0.safetensors", "all-02-1.0.safetensors", "all-03-2.0.safetensors", "sub"]
    );
    assert_eq!(best.saved().unwrap(), folder.join("sub/best"));
    assert_eq!(latest_checkpoint(folder.join("sub")).unwrap(), Some(folder.join("sub/best")));
    model.load_weights(folder.join("all-01-3.0.safetensors")).unwrap();
    assert_eq!(model.epochs(), 1.0);
    // The full checkpoint has the optimizer, too.
    let optimizer = model.trainer().optimizer().unwrap();
    optimizer.set_learning_rate(0.25).unwrap();
    let checkpoint = Checkpoint::new().with("model", &model).with("optimizer", &optimizer);
    checkpoint.read(folder.join("sub/best")).unwrap().assert_consumed().unwrap();
    assert_eq!((model.epochs(), optimizer.learning_rate()), (2.0, 1.0));
    // The best value of an earlier training must be beaten.
    let later = folder.join("later");
    let none = ModelCheckpoint::new(&later)
        .monitor("loss")
        .save_best_only(true)
        .initial_value_threshold(0.5);
    Scripted::new(&[3.0, 1.0]).fit(FitOptions::new().callback(none)).unwrap();
    assert!(!later.exists());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn weights_alone_are_a_checkpoint_of_the_model() {
    let folder = folder("weights");
    let (model, x, y) = small();
    let weights = ModelCheckpoint::new(folder.join("weights")).save_weights_only(true);
    model.fit((&x, &y), FitOptions::new().callback(weights)).unwrap();
    let trained = model.get_weights().unwrap();
    let (other, ..) = small();
    // Before the model's first call.
    let checkpoint = Checkpoint::new().with("model", &other);
    checkpoint.read(folder.join("weights")).unwrap().expect_partial();
    other.build([1, 2]).unwrap();
    assert_eq!(other.get_weights().unwrap(), trained);
    let whole = ModelCheckpoint::new(folder.join("whole.safetensors"));
    let error = model.fit((&x, &y), FitOptions::new().callback(whole)).unwrap_err().to_string();
    assert!(
        error.starts_with("ModelCheckpoint: ")
            && error.ends_with("leave out the ending .safetensors."),
        "{error}"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn checkpoints_come_after_so_many_batches() {
    let folder = folder("batches");
    let (model, x, y) = small();
    let every = ModelCheckpoint::new(folder.join("{epoch}-{batch}.safetensors"));
    let every = every.save_freq(SaveFreq::Batches(4)).save_weights_only(true);
    let weights = Arc::new(Mutex::new(Vec::new()));
    let seen = weights.clone();
    let look =
        LambdaCallback::new().batch_logs(BatchLogs::Now).on_train_batch_end(move |_, _, run| {
            seen.lock().unwrap().push(run.model().variables()[0].read().to_vec::<f32>()?);
            Ok(())
        });
    let options = FitOptions::new().batch_size(4).epochs(2).callback(every).callback(look);
    model.fit((&x, &y), options).unwrap();
    // Five batches an epoch: the fourth of the first, and the third of the second.
    assert_eq!(files(&folder), ["1-4.safetensors", "2-3.safetensors"]);
    for (file, at) in [("1-4", 3), ("2-3", 7)] {
        model.load_weights(folder.join(format!("{file}.safetensors"))).unwrap();
        assert_eq!(
            model.variables()[0].read().to_vec::<f32>().unwrap(),
            weights.lock().unwrap()[at]
        );
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// A full disk, as far as a file system can be made to fail.
#[test]
fn a_file_that_cannot_be_written_is_an_error_and_the_old_one_stays() {
    let folder = folder("full");
    let path = folder.join("model.safetensors");
    let (model, x, y) = small();
    let save = || ModelCheckpoint::new(&path).save_weights_only(true);
    model.fit((&x, &y), FitOptions::new().callback(save())).unwrap();
    let old = std::fs::read(&path).unwrap();
    // A name that is too long for the file system: the new file cannot even be created.
    let long = folder.join("n".repeat(300));
    let error =
        model.fit((&x, &y), FitOptions::new().callback(ModelCheckpoint::new(&long))).unwrap_err();
    assert!(matches!(error, wgrad::Error::Io(_)), "{error}");
    // A device that is always full replaces the folder's disk.
    #[cfg(unix)]
    if std::path::Path::new("/dev/full").exists() {
        let link = folder.join("link.safetensors");
        std::os::unix::fs::symlink("/dev/full", &link).unwrap();
        let weights = ModelCheckpoint::new(&link).save_weights_only(true);
        let error = model.fit((&x, &y), FitOptions::new().callback(weights)).unwrap_err();
        assert!(error.to_string().contains("link.safetensors"), "{error}");
        std::fs::remove_file(link).unwrap();
    }
    assert_eq!(std::fs::read(&path).unwrap(), old);
    assert_eq!(files(&folder), ["model.safetensors"]);
    // The training is still there.
    assert_eq!(model.trainer().history().unwrap().epochs().len(), 0);
    model.fit((&x, &y), FitOptions::new().callback(save())).unwrap();
    assert_ne!(std::fs::read(&path).unwrap(), old);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_log_is_a_table() {
    let folder = folder("csv");
    let path = folder.join("log.csv");
    let script = [0.5, 0.25];
    Scripted::new(&script).fit(FitOptions::new().callback(CsvLogger::new(&path))).unwrap();
    let text = "epoch,loss,val_loss\n0,0.5,NA\n1,0.25,NA\n";
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    // Keras does not write the header again.
    let more = CsvLogger::new(&path).append(true);
    Scripted::new(&[0.125]).fit(FitOptions::new().callback(more)).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{text}0,0.125,NA\n"));
    let other = CsvLogger::new(&path).separator(";");
    Scripted::new(&[0.125]).fit(FitOptions::new().callback(other)).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "epoch;loss;val_loss\n0;0.125;NA\n");
    let nowhere = CsvLogger::new(folder.join("no/such/folder.csv"));
    let error = Scripted::new(&script).fit(FitOptions::new().callback(nowhere)).unwrap_err();
    assert!(matches!(error, wgrad::Error::Io(_)), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}

// ---- progress ------------------------------------------------------------------------------------------------------

/// A writer whose text can be read.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The progress output, with all times as 0.
fn drawn(verbose: Verbose, terminal: bool) -> String {
    let page = Page::default();
    let bar = match terminal {
        true => ProgbarLogger::terminal(page.clone(), verbose),
        false => ProgbarLogger::new(page.clone(), verbose),
    };
    Scripted::new(&[0.5, 0.0000123]).fit(FitOptions::new().callback(bar)).unwrap();
    let text = String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
    let mut plain = String::new();
    for word in text.split_inclusive(' ') {
        let time =
            ["us/step", "ms/step", "s/step"].iter().find(|unit| word.trim_end().ends_with(*unit));
        match time {
            Some(_) => plain.push_str("0s/step "),
            None => plain.push_str(word),
        }
    }
    plain
}

#[test]
fn the_bar_is_kerass() {
    let bar = "━".repeat(20);
    let lines = "Epoch 1/2\n1/1 - 0s - 0s/step - loss: 0.5000\nEpoch 2/2\n1/1 - 0s - 0s/step - loss: 1.2300e-05\n";
    assert_eq!(drawn(Verbose::Lines, false), lines);
    let last = |loss: &str| format!("1/1 {bar} 0s 0s/step - loss: {loss}\n");
    let text = drawn(Verbose::Bar, false);
    assert!(text.starts_with("Epoch 1/2\n1/1 ━"), "{text}");
    assert!(text.contains(&last("0.5000")) && text.ends_with(&last("1.2300e-05")), "{text}");
    let text = drawn(Verbose::Bar, true);
    let coloured = format!(
        "\r\x1b[1m1/1\x1b[0m \x1b[32m{bar}\x1b[0m\x1b[37m\x1b[0m \x1b[1m0s\x1b[0m 0s/step - loss: 0.5000"
    );
    assert!(text.contains(&coloured), "{text:?}");
    assert_eq!(drawn(Verbose::Auto, false), "");
    assert_eq!(drawn(Verbose::Silent, true), "");
}

// ---- Ctrl-C --------------------------------------------------------------------------------------------------------

/// Run by another test in a separate process: trains until Ctrl-C is pressed.
#[test]
#[ignore = "another test starts it"]
fn trains_until_ctrl_c() {
    let (model, x, y) = small();
    // After the first batch of the fourth epoch: before it, Ctrl-C would end the training between two epochs.
    let ended = std::sync::atomic::AtomicUsize::new(0);
    let begun = LambdaCallback::new().on_train_batch_end(move |_, _, _| {
        if ended.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 60 {
            println!("\nTRAINING");
        }
        Ok(())
    });
    // A slow step, so that Ctrl-C arrives in the middle of an epoch.
    let slow = LambdaCallback::new().on_train_batch_begin(|_, _| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        Ok(())
    });
    let options = FitOptions::new().epochs(usize::MAX).batch_size(1).callback(begun).callback(slow);
    let history = model.fit((&x, &y), options).unwrap();
    let steps = model.trainer().optimizer().unwrap().iterations();
    let losses = history.get("loss").unwrap().len();
    assert!(history.interrupted() && losses == history.epochs().len());
    println!("\nKEPT {losses} {steps}");
    // After the training, Ctrl-C ends the process as usual.
    std::thread::sleep(std::time::Duration::from_secs(60));
    println!("\nSTILL HERE");
}

#[cfg(all(unix, feature = "ctrl-c"))]
#[test]
fn ctrl_c_ends_the_training_and_then_the_process() {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};
    // If the tests were started in the background, Ctrl-C may be ignored, which processes inherit.
    let program = child::command(module_path!(), "trains_until_ctrl_c");
    let mut child = Command::new("env")
        .arg("--default-signal=INT")
        .arg(program.get_program())
        .args(program.get_args())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut until = |word: &str| loop {
        match lines.next() {
            Some(line) => {
                let line = line.unwrap();
                if line.starts_with(word) {
                    break line;
                }
            }
            None => panic!("the process ended before it said {word}"),
        }
    };
    let interrupt = |child: &std::process::Child| {
        let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    };
    until("TRAINING");
    interrupt(&child);
    let kept = until("KEPT");
    let numbers: Vec<u64> = kept.split(' ').skip(1).map(|n| n.parse().unwrap()).collect();
    // Twenty batches per epoch, the last epoch interrupted.
    assert!(
        numbers[0] >= 4 && numbers[1] > 20 * (numbers[0] - 1) && numbers[1] <= 20 * numbers[0],
        "{kept}"
    );
    interrupt(&child);
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(2), "{status}");
}

// ---- warnings --------------------------------------------------------------------------------------------------------

/// Run by another test in a separate process, without a logger.
#[test]
#[ignore = "another test starts it"]
fn watches_a_number_that_is_not_there() {
    let (model, x, y) = small();
    for _ in 0..2 {
        let stop = EarlyStopping::new().monitor("val_loss");
        model.fit((&x, &y), FitOptions::new().epochs(3).callback(stop)).unwrap();
    }
}

#[test]
fn warnings_reach_a_user_without_a_logger() {
    let out =
        child::command(module_path!(), "watches_a_number_that_is_not_there").output().unwrap();
    assert!(out.status.success());
    let text = String::from_utf8(out.stderr).unwrap();
    let warning =
        "wgrad: EarlyStopping: the logs have no 'val_loss', so it does nothing. They have loss.";
    assert_eq!(text.matches(warning).count(), 1, "{text}");
}
