//! Errors of checkpoint managers, backups and saved iterators.

use std::path::PathBuf;

use wgrad::data::{self, IteratorState};
use wgrad::keras::callbacks::{BackupAndRestore, BackupOptions, SaveFreq};
use wgrad::keras::{CompileOptions, FitOptions, Model, Sequential, layers::Dense};
use wgrad::train::{Checkpoint, CheckpointManager};
use wgrad::{Error, Tensor, Variable, constant};

use crate::text;

fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("wgrad-errors-{name}-{}", std::process::id()))
}

#[test]
fn what_a_manager_cannot_keep_to_is_refused() {
    let folder = folder("manager");
    let weight = Variable::new(constant(1.0).unwrap());
    let checkpoint = Checkpoint::new().with("weight", &weight);
    let manager = || CheckpointManager::new(&checkpoint, &folder).unwrap();
    assert_eq!(
        text(manager().max_to_keep(0).save()),
        "CheckpointManager: max_to_keep is 0; it must be at least 1. Leave it out to keep all."
    );
    assert_eq!(
        text(manager().checkpoint_interval(10).save()),
        "CheckpointManager: checkpoint_interval is 10, and nothing counts the steps. Add step_counter(|| \
         Ok(optimizer.iterations()))."
    );
    assert_eq!(
        text(manager().checkpoint_name("a/b").save()),
        format!(
            "CheckpointManager: checkpoint_name is \"a/b\"; it must be the name of a file in the folder {}, such as ckpt.",
            folder.display()
        )
    );
    let counter = || Err(Error::Data("nobody has counted".into()));
    let manager = manager().checkpoint_interval(1).step_counter(counter);
    assert_eq!(text(manager.save()), "nobody has counted");
    assert_eq!(checkpoint.save_counter(), 0);
    assert!(!folder.exists());
}

#[test]
fn broken_numbers_of_the_best_are_refused() {
    let folder = folder("metrics");
    let weight = Variable::new(constant(1.0).unwrap());
    let checkpoint = Checkpoint::new().with("weight", &weight);
    CheckpointManager::new(&checkpoint, &folder).unwrap().save().unwrap();
    let path = folder.join("checkpoint_metrics");
    std::fs::write(&path, "ckpt-1\t0.5\nckpt-2 good\n").unwrap();
    assert_eq!(
        text(CheckpointManager::new(&checkpoint, &folder)),
        format!(
            "{}: line 2 is \"ckpt-2 good\", not a name and a number separated by a tab. The file is damaged; delete \
             it, and all checkpoints that it names count as the worst.",
            path.display()
        )
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_backup_needs_batches_and_its_own_training() {
    let folder = folder("backup");
    let model = Sequential::new().add(Dense::new(1));
    model.compile("sgd", "mse", CompileOptions::new()).unwrap();
    let (x, y) = (Tensor::ones([8, 2]).unwrap(), Tensor::zeros([8, 1]).unwrap());
    let fit = |options: BackupOptions| {
        let backup = BackupAndRestore::new(&folder, options);
        model.fit((&x, &y), FitOptions::new().callback(backup))
    };
    assert_eq!(
        text(fit(BackupOptions::new().save_freq(SaveFreq::Batches(0)))),
        "BackupAndRestore: save_freq is 0 batches; it must be at least 1."
    );
    // A checkpoint of the model alone is not a backup.
    let optimizer = model.trainer().optimizer().unwrap();
    let checkpoint = Checkpoint::new().with("model", &model).with("optimizer", &optimizer);
    model.build([1, 2]).unwrap();
    checkpoint.save(folder.join("ckpt")).unwrap();
    assert!(
        text(fit(BackupOptions::new())).starts_with("fit: the backup of the training is damaged: "),
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_state_of_another_dataset_is_named_with_its_part() {
    let folder = folder("iterator");
    let (shuffled, plain) = (data::range(0..9).shuffle(2).iter(), data::range(0..9).iter());
    let path = Checkpoint::new().with("batches", &shuffled).save(folder.join("ckpt")).unwrap();
    let reported = text(Checkpoint::new().with("batches", &plain).restore(&path).map(drop));
    assert!(reported.contains("'batches'"), "{reported}");
    assert!(
        reported.contains("a dataset that has `shuffle` where this one has `range`"),
        "{reported}"
    );
    assert_eq!(
        text(plain.restore(&IteratorState::from_bytes(*b"something else"))),
        "resume: these bytes are not an iterator that this version saved."
    );
    std::fs::remove_dir_all(folder).unwrap();
}
