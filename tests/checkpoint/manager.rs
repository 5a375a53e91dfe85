//! Checkpoint managers: which checkpoints they keep and find, and saving during training.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use wgrad::train::{
    Best, Checkpoint, CheckpointManager, CheckpointSaveOptions, get_checkpoint_state,
    latest_checkpoint,
};
use wgrad::{Error, Tensor, Variable, constant};

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("wgrad-manager-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn file_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The names of the checkpoints in the folder.
fn saved(folder: &Path) -> Vec<String> {
    let names = file_names(folder).into_iter();
    names.filter_map(|name| name.strip_suffix(".index").map(String::from)).collect()
}

fn weight(value: f32) -> Variable {
    Variable::new(constant(value).unwrap())
}

fn value(weight: &Variable) -> f32 {
    weight.read().item().unwrap()
}

/// Saves 1, 2, .. up to `count` as the values of the checkpoints with those numbers.
fn save_all(folder: &Path, weight: &Variable, count: u64) {
    let checkpoint = Checkpoint::new().with("weight", weight);
    let manager = CheckpointManager::new(&checkpoint, folder).unwrap();
    for number in 1..=count {
        weight.assign(number as f32).unwrap();
        assert_eq!(manager.save().unwrap(), Some(folder.join(format!("ckpt-{number}"))));
    }
}

fn damage(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_manager_keeps_three_and_the_next_goes_on() {
    let folder = folder("three");
    let weight = weight(0.0);
    for (first, last) in [(1u64, 4u64), (5, 6)] {
        let checkpoint = Checkpoint::new().with("weight", &weight);
        let manager = CheckpointManager::new(&checkpoint, &folder).unwrap().max_to_keep(3);
        let found = manager.restore_or_initialize().unwrap();
        assert_eq!(found, (first > 1).then(|| folder.join("ckpt-4")));
        assert_eq!(value(&weight), (first - 1) as f32);
        for number in first..=last {
            weight.assign(number as f32).unwrap();
            manager.save().unwrap();
            assert_eq!(latest_checkpoint(&folder).unwrap(), manager.latest_checkpoint());
        }
        assert_eq!(checkpoint.save_counter(), last);
        weight.assign(-1.0).unwrap();
        manager.restore_or_initialize().unwrap();
    }
    assert_eq!(saved(&folder), ["ckpt-4", "ckpt-5", "ckpt-6"]);
    assert_eq!(file_names(&folder).len(), 7);
    let state = get_checkpoint_state(&folder).unwrap().unwrap();
    assert_eq!(state.all_model_checkpoint_paths.len(), 3);
    assert_eq!(state.all_model_checkpoint_timestamps.len(), 3);
    assert!(state.last_preserved_timestamp.is_some());
    // Paths in the file are relative, so the folder can be moved.
    let moved = folder.with_extension("moved");
    let _ = std::fs::remove_dir_all(&moved);
    std::fs::rename(&folder, &moved).unwrap();
    let checkpoint = Checkpoint::new().with("weight", &weight);
    let manager = CheckpointManager::new(&checkpoint, &moved).unwrap().max_to_keep(1);
    assert_eq!(manager.restore_or_initialize().unwrap(), Some(moved.join("ckpt-6")));
    manager.save().unwrap();
    assert_eq!(saved(&moved), ["ckpt-7"]);
    std::fs::remove_dir_all(moved).unwrap();
}

#[test]
fn numbers_of_ones_own_may_come_again() {
    let folder = folder("numbers");
    let weight = weight(0.0);
    let checkpoint = Checkpoint::new().with("weight", &weight);
    let manager = CheckpointManager::new(&checkpoint, &folder).unwrap();
    let manager = manager.checkpoint_name("model.ckpt").max_to_keep(2);
    for (at, number) in [100, 200, 100, 300, 300].into_iter().enumerate() {
        weight.assign(at as f32).unwrap();
        let path =
            manager.save_with(CheckpointSaveOptions::new().checkpoint_number(number)).unwrap();
        assert_eq!(path, Some(folder.join(format!("model.ckpt-{number}"))));
        manager.restore_or_initialize().unwrap();
        assert_eq!(value(&weight), at as f32);
    }
    assert_eq!(saved(&folder), ["model.ckpt-100", "model.ckpt-300"]);
    // The checkpoint has counted nevertheless.
    assert_eq!(checkpoint.save_counter(), 5);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn nothing_is_saved_before_the_interval_has_passed() {
    let folder = folder("interval");
    let steps = AtomicU64::new(0);
    let checkpoint = Checkpoint::new().with("steps", &steps);
    let manager = || {
        let manager = CheckpointManager::new(&checkpoint, &folder).unwrap();
        manager.step_counter(|| Ok(steps.load(Ordering::Relaxed))).checkpoint_interval(5)
    };
    let first = manager();
    let mut kept = Vec::new();
    for step in 0..13 {
        steps.store(step, Ordering::Relaxed);
        if first.save().unwrap().is_some() {
            kept.push(step);
        }
    }
    assert_eq!(kept, [0, 5, 10]);
    let at_once = CheckpointSaveOptions::new().check_interval(false);
    assert!(first.save_with(at_once.clone()).unwrap().is_some());
    // A second one for the same step is still left out.
    assert!(first.save_with(at_once).unwrap().is_none());
    steps.store(0, Ordering::Relaxed);
    let second = manager();
    second.restore_or_initialize().unwrap();
    assert_eq!(steps.load(Ordering::Relaxed), 12);
    steps.store(16, Ordering::Relaxed);
    assert!(second.save().unwrap().is_none());
    steps.store(17, Ordering::Relaxed);
    assert!(second.save().unwrap().is_some());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_empty_folder_calls_for_the_init_function() {
    let folder = folder("init");
    let (weight, calls) = (weight(0.0), Rc::new(Cell::new(0)));
    let checkpoint = Checkpoint::new().with("weight", &weight);
    let manager = CheckpointManager::new(&checkpoint, &folder).unwrap().init_fn({
        let calls = calls.clone();
        let weight = &weight;
        move || {
            calls.set(calls.get() + 1);
            weight.assign(5.0)
        }
    });
    assert_eq!(manager.restore_or_initialize().unwrap(), None);
    assert_eq!((calls.get(), value(&weight)), (1, 5.0));
    manager.save().unwrap();
    weight.assign(1.0).unwrap();
    assert_eq!(manager.restore_or_initialize().unwrap(), Some(folder.join("ckpt-1")));
    assert_eq!((calls.get(), value(&weight)), (1, 5.0));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_best_are_known_in_the_next_process() {
    let folder = folder("best");
    let weight = weight(0.0);
    let checkpoint = Checkpoint::new().with("weight", &weight);
    let accuracies = [0.5, 0.9, 0.7, 0.8, 0.1];
    for accuracy in accuracies {
        // A new manager for each save, as in separate processes.
        let manager = CheckpointManager::new(&checkpoint, &folder).unwrap();
        let manager = manager.max_to_keep(2).best(Best::Max);
        manager.restore_or_initialize().unwrap();
        manager.save_with(CheckpointSaveOptions::new().metric(accuracy)).unwrap();
    }
    let manager = CheckpointManager::new(&checkpoint, &folder).unwrap().best(Best::Max);
    assert_eq!(manager.best_checkpoint(), Some(folder.join("ckpt-2")));
    // The two best, and the newest to resume from.
    assert_eq!(saved(&folder), ["ckpt-2", "ckpt-4", "ckpt-5"]);
    assert_eq!(latest_checkpoint(&folder).unwrap(), Some(folder.join("ckpt-5")));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_damaged_checkpoint_is_reported_and_an_older_one_taken_if_wanted() {
    let folder = folder("damaged");
    let weight = weight(0.0);
    save_all(&folder, &weight, 4);
    damage(&folder.join("ckpt-4.data-00000-of-00001"));
    std::fs::remove_file(folder.join("ckpt-3.index")).unwrap();
    weight.assign(-1.0).unwrap();
    let checkpoint = Checkpoint::new().with("weight", &weight);
    let manager = CheckpointManager::new(&checkpoint, &folder).unwrap();
    let error = manager.restore_or_initialize().unwrap_err();
    assert!(matches!(error, Error::Data(_)));
    let text = error.to_string();
    assert!(
        text.starts_with("CheckpointManager: the newest checkpoint, ckpt-4, cannot be read: "),
        "{text}"
    );
    assert!(text.contains("Older ones are ckpt-2, ckpt-1."), "{text}");
    assert_eq!(value(&weight), -1.0);
    let manager = CheckpointManager::new(&checkpoint, &folder).unwrap().fall_back(true);
    assert_eq!(manager.restore_or_initialize().unwrap(), Some(folder.join("ckpt-2")));
    assert_eq!(value(&weight), 2.0);
    // It numbers from the restored checkpoint on.
    assert_eq!(manager.save().unwrap(), Some(folder.join("ckpt-3")));
    assert_eq!(manager.restore_or_initialize().unwrap(), Some(folder.join("ckpt-3")));
    // A checkpoint of another model is not a damaged one.
    let wide = Variable::new(Tensor::zeros([2]).unwrap());
    let other = Checkpoint::new().with("weight", &wide);
    let manager = CheckpointManager::new(&other, &folder).unwrap().fall_back(true);
    let error = manager.restore_or_initialize().unwrap_err();
    assert!(matches!(error, Error::Checkpoint(_)), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_save_in_the_background_has_the_values_of_its_moment() {
    let folder = folder("background");
    let weight = Variable::new(Tensor::zeros([1 << 16]).unwrap());
    let checkpoint = Checkpoint::new().with("weight", &weight);
    let manager = CheckpointManager::new(&checkpoint, &folder).unwrap();
    let manager = manager.max_to_keep(30).background(true);
    for number in 1..=20 {
        manager.save().unwrap();
        // The training continues at once.
        weight.assign_add(1.0).unwrap();
        assert_eq!(checkpoint.save_counter(), number);
    }
    manager.sync().unwrap();
    assert_eq!(manager.checkpoints().len(), 20);
    for number in 1..=20u64 {
        let path = folder.join(format!("ckpt-{number}"));
        checkpoint.restore(&path).unwrap().assert_consumed().unwrap();
        let values = weight.read().to_vec::<f32>().unwrap();
        assert!(values.iter().all(|value| *value == (number - 1) as f32), "{number}");
        assert_eq!(checkpoint.save_counter(), number);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_error_of_a_save_in_the_background_is_returned_by_the_next_call() {
    let folder = folder("error");
    let weight = weight(3.0);
    let checkpoint = Checkpoint::new().with("weight", &weight);
    // There is a file in place of the folder.
    std::fs::write(&folder, "a file").unwrap();
    assert!(CheckpointManager::new(&checkpoint, &folder).is_err());
    std::fs::remove_file(&folder).unwrap();
    let manager = CheckpointManager::new(&checkpoint, &folder).unwrap().background(true);
    std::fs::write(&folder, "a file").unwrap();
    assert!(manager.save().is_ok());
    let error = manager.save().unwrap_err();
    assert!(matches!(&error, Error::Io(io) if io.path.starts_with(&folder)), "{error}");
    // The error was already reported.
    manager.sync().unwrap();
    assert_eq!(manager.latest_checkpoint(), None);
    std::fs::remove_file(&folder).unwrap();
    let path = manager.save().unwrap().unwrap();
    manager.sync().unwrap();
    assert_eq!(manager.latest_checkpoint(), Some(path));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
#[cfg(unix)]
fn a_folder_that_may_not_be_written_leaves_all_as_it_was() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder("read-only");
    let weight = weight(0.0);
    save_all(&folder, &weight, 2);
    let before = file_names(&folder);
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o555)).unwrap();
    let may_write = std::fs::write(folder.join("probe"), "").is_ok();
    if may_write {
        // An administrator may write everywhere; a folder in place of the state file makes writing fail for them, too.
        std::fs::remove_file(folder.join("probe")).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        let checkpoint = Checkpoint::new().with("weight", &weight);
        let manager = CheckpointManager::new(&checkpoint, &folder).unwrap().max_to_keep(1);
        std::fs::rename(folder.join("checkpoint"), folder.join("state")).unwrap();
        std::fs::create_dir(folder.join("checkpoint")).unwrap();
        assert!(matches!(manager.save(), Err(Error::Io(_))));
        assert_eq!(manager.latest_checkpoint(), Some(folder.join("ckpt-2")));
        assert_eq!(manager.checkpoints().len(), 2);
        std::fs::remove_dir(folder.join("checkpoint")).unwrap();
        std::fs::rename(folder.join("state"), folder.join("checkpoint")).unwrap();
    } else {
        let checkpoint = Checkpoint::new().with("weight", &weight);
        let manager = CheckpointManager::new(&checkpoint, &folder).unwrap().max_to_keep(1);
        assert!(matches!(manager.save(), Err(Error::Io(_))));
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    assert_eq!(file_names(&folder), before);
    std::fs::remove_dir_all(folder).unwrap();
}
