//! Tests of bundles on the disk: leftovers of killed writers, overwriting, errors.

use std::path::Path;
#[cfg(target_os = "linux")]
use std::process::{Child, Command, Stdio};

use super::*;
use crate::device::fresh_id;
use crate::train::state_file::update_checkpoint_state;
use crate::train::{CheckpointState, latest_checkpoint};

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("wgrad-bundle-{}-{}", std::process::id(), fresh_id());
        let folder = Folder(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).unwrap();
        folder
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A tensor of `count` times the same number.
fn bytes(number: u8, count: usize) -> HostArray<'static> {
    ndarray::Array1::from_elem(count, number).into()
}

/// Ten tensors with the same number.
fn save(prefix: &Path, version: u8) -> Result<()> {
    let mut files = BundleFiles::begin(prefix)?;
    for i in 0..10 {
        files.add(&format!("t{i}"), &bytes(version, 10_000))?;
    }
    files.finish()
}

/// The number in all tensors.
fn version(prefix: &Path) -> u8 {
    let reader = BundleReader::open(prefix).unwrap();
    let version = reader.array("t0").unwrap().bytes()[0];
    for i in 0..10 {
        assert_eq!(reader.array(&format!("t{i}")).unwrap(), bytes(version, 10_000));
    }
    version
}

#[test]
fn a_bundle_is_written_over_and_keeps_its_names() {
    let folder = Folder::new();
    // A missing folder is created, as in TensorFlow.
    let prefix = folder.0.join("a/b/ckpt.v1");
    for number in 1..4 {
        save(&prefix, number).unwrap();
        assert_eq!(version(&prefix), number);
        let inside = Folder(folder.0.join("a/b"));
        assert_eq!(inside.names(), ["ckpt.v1.data-00000-of-00001", "ckpt.v1.index"]);
        std::mem::forget(inside);
    }
    remove(&prefix).unwrap();
    remove(&prefix).unwrap();
    assert_eq!(fs::read_dir(folder.0.join("a/b")).unwrap().count(), 0);
}

#[test]
fn an_unfinished_bundle_leaves_the_one_before() {
    let folder = Folder::new();
    let prefix = folder.0.join("ckpt");
    save(&prefix, 1).unwrap();
    let mut files = BundleFiles::begin(&prefix).unwrap();
    files.add("t0", &bytes(2, 3)).unwrap();
    drop(files);
    assert_eq!(version(&prefix), 1);
    assert_eq!(folder.names(), ["ckpt.data-00000-of-00001", "ckpt.index"]);
}

/// The index refers to the old data until it is replaced, whatever other files exist.
#[test]
fn data_without_their_index_are_not_read_and_are_removed() {
    let folder = Folder::new();
    let prefix = folder.0.join("ckpt");
    save(&prefix, 1).unwrap();
    // The state that a process leaves if it is killed between the two renames.
    fs::write(data_path(&prefix, 0, 2), b"new").unwrap();
    assert_eq!(version(&prefix), 1);
    save(&prefix, 2).unwrap();
    assert_eq!(version(&prefix), 2);
    assert_eq!(folder.names(), ["ckpt.data-00000-of-00001", "ckpt.index"]);
    // A TensorFlow checkpoint with several shards is overwritten.
    let sharded = super::super::root::root().join("tests/data/checkpoint/sharded");
    let other = folder.0.join("ckpt-1");
    for i in 0..3 {
        fs::copy(data_path(&sharded.join("ckpt-1"), i, 3), data_path(&other, i, 3)).unwrap();
    }
    fs::copy(index_path(&sharded.join("ckpt-1")), index_path(&other)).unwrap();
    save(&other, 3).unwrap();
    assert_eq!((version(&other), version(&prefix), folder.names().len()), (3, 2, 4));
}

/// Whichever writer is last, all tensors are from one of them.
#[test]
fn threads_that_save_at_one_place_take_turns() {
    let folder = Folder::new();
    let prefix = folder.0.join("ckpt");
    std::thread::scope(|scope| {
        for number in 0..6 {
            let prefix = prefix.clone();
            scope.spawn(move || (0..4).for_each(|_| save(&prefix, number).unwrap()));
        }
    });
    assert!(version(&prefix) < 6);
    assert_eq!(folder.names(), ["ckpt.data-00000-of-00001", "ckpt.index"]);
}

#[test]
fn a_damaged_index_keeps_nobody_from_saving() {
    let folder = Folder::new();
    let prefix = folder.0.join("ckpt");
    save(&prefix, 1).unwrap();
    fs::write(index_path(&prefix), b"").unwrap();
    save(&prefix, 2).unwrap();
    assert_eq!(version(&prefix), 2);
}

#[test]
fn where_no_file_can_be_the_error_names_it() {
    let folder = Folder::new();
    fs::write(folder.0.join("file"), b"x").unwrap();
    let prefix = folder.0.join("file/ckpt");
    let Error::Io(error) = save(&prefix, 1).unwrap_err() else { panic!() };
    assert!(error.path.ends_with("file"), "{error}");
    assert!(matches!(save(Path::new("/"), 1), Err(Error::Data(_))));
    fs::create_dir(index_path(&folder.0.join("ckpt"))).unwrap();
    let Error::Io(error) = save(&folder.0.join("ckpt"), 1).unwrap_err() else { panic!() };
    assert!(error.path.ends_with("ckpt.index"), "{error}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_reported_with_the_name_of_the_file() {
    let full = BufWriter::new(File::options().write(true).open("/dev/full").unwrap());
    let mut writer = BundleWriter::named(full, Path::new("ckpt.data-00000-of-00001"));
    let written = writer.add("t", &bytes(0, 100_000));
    let Error::Io(error) = written.unwrap_err() else { panic!() };
    assert_eq!(error.source.kind(), io::ErrorKind::StorageFull);
    assert!(error.to_string().starts_with("ckpt.data-00000-of-00001: "));
}

#[test]
fn paths_in_the_state_file_are_relative_to_its_folder() {
    let folder = Folder::new();
    let here = folder.0.join("run");
    let state = |newest: PathBuf, others: &[PathBuf]| CheckpointState {
        model_checkpoint_path: newest,
        all_model_checkpoint_paths: others.to_vec(),
        all_model_checkpoint_timestamps: vec![1.5; others.len()],
        last_preserved_timestamp: None,
    };
    let written = |state: &CheckpointState| {
        update_checkpoint_state(&here, state).unwrap();
        fs::read_to_string(here.join("checkpoint")).unwrap()
    };
    let inside = here.join("sub/../ckpt-1");
    let text = written(&state(inside, &[here.join("ckpt-0"), folder.0.join("other/ckpt")]));
    assert_eq!(
        text,
        "model_checkpoint_path: \"ckpt-1\"\nall_model_checkpoint_paths: \"ckpt-0\"\n\
         all_model_checkpoint_paths: \"../other/ckpt\"\nall_model_checkpoint_timestamps: 1.5\n\
         all_model_checkpoint_timestamps: 1.5\n"
    );
    // There is none yet.
    assert_eq!(latest_checkpoint(&here).unwrap(), None);
    save(&here.join("ckpt-1"), 1).unwrap();
    assert_eq!(latest_checkpoint(&here).unwrap(), Some(here.join("ckpt-1")));
    let clash = state(here.join("checkpoint"), &[]);
    assert!(matches!(update_checkpoint_state(&here, &clash), Err(Error::Data(_))));
    // The folder that the program runs in.
    let relative = state(PathBuf::from("ckpt-3"), &[PathBuf::from("./ckpt-3")]);
    let plain = relative.relative_to(Path::new("")).unwrap();
    assert_eq!(plain.model_checkpoint_path, Path::new("ckpt-3"));
    assert_eq!(plain.all_model_checkpoint_paths, [PathBuf::from("ckpt-3")]);
}

/// Starts this test program again, to save in `folder` until it is killed. The program has begun when this returns.
#[cfg(target_os = "linux")]
fn saving(folder: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "train::bundle::disk::tests::saving_for_ever",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env("WGRAD_TEST_FOLDER", folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("saving begins") {
        line.clear();
        assert_ne!(io::BufRead::read_line(&mut output, &mut line).unwrap(), 0);
    }
    child
}

#[test]
#[ignore = "run by a_writer_killed_at_any_moment_leaves_a_whole_bundle"]
fn saving_for_ever() {
    let folder = PathBuf::from(std::env::var_os("WGRAD_TEST_FOLDER").unwrap());
    let same = folder.join("same");
    println!("saving begins");
    let first = BundleReader::open(&same).map_or(1, |_| version(&same).wrapping_add(1));
    for number in (0..).map(|i| first.wrapping_add(i as u8)) {
        save(&same, number).unwrap();
        let numbered = folder.join(format!("numbered-{number}"));
        save(&numbered, number).unwrap();
        let state =
            CheckpointState { model_checkpoint_path: numbered, ..CheckpointState::default() };
        update_checkpoint_state(&folder, &state).unwrap();
        remove(&folder.join(format!("numbered-{}", number.wrapping_sub(2)))).unwrap();
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_writer_killed_at_any_moment_leaves_a_whole_bundle() {
    let folder = Folder::new();
    let same = folder.0.join("same");
    save(&same, 0).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..40 {
        let mut child = saving(&folder.0);
        std::thread::sleep(std::time::Duration::from_micros(random.u64(..60_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        version(&same);
        if let Some(newest) = latest_checkpoint(&folder.0).unwrap() {
            let name = newest.file_name().unwrap().to_str().unwrap().to_string();
            assert_eq!(name, format!("numbered-{}", version(&newest)));
        }
    }
    // The next save cleans the folder: each data file has an index. A writer that was killed before it renamed the data has
    // left them as the first of two shards, which the index states, too.
    save(&same, 7).unwrap();
    let names = folder.names();
    for name in &names {
        match data_name(name) {
            Some((prefix, _)) => assert!(names.contains(&format!("{prefix}.index")), "{names:?}"),
            None => assert!(name.ends_with(".index") || name == "checkpoint", "{names:?}"),
        }
    }
    assert_eq!(version(&same), 7);
}

#[test]
fn names_of_data_files_are_taken_apart() {
    assert_eq!(data_name("a.b.data-00001-of-00003"), Some(("a.b", 3)));
    assert_eq!(data_name("a.data-00000-of-100000"), Some(("a", 100_000)));
    for name in ["a.data-0-of-1", "a.data-00000-of-00001.tmp", "a.index", "a.data-0000x-of-00001"] {
        assert_eq!(data_name(name), None, "{name}");
    }
}
