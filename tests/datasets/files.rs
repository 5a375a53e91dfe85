//! Elements stored in files: `cache_file`, `snapshot`, `save` and `load`, and `cache` in memory; complete files, broken ones,
//! two writers.

#![allow(clippy::unwrap_used)]

use crate::support::datasets;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datasets::{all, resumes, texts};
use wgrad::data::{
    self, Cardinality, CompressionType, Dataset, DatasetSaveOptions, ShuffleOptions,
};
use wgrad::{Error, Tensor};

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name =
            format!("wgrad-data-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = Folder(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn files(&self) -> usize {
        fs::read_dir(&self.0).unwrap().count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Numbers, and a counter of how many were made.
fn counted() -> (Dataset<(i64, Vec<i64>)>, Arc<AtomicUsize>) {
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let dataset = data::range(0..6).map(move |n| {
        count.fetch_add(1, Ordering::Relaxed);
        (n, vec![n; n as usize])
    });
    (dataset, made)
}

type Kept = Dataset<(i64, Vec<i64>)>;
type Keep = Box<dyn Fn(&Kept) -> Kept>;

fn kinds(folder: &Folder) -> Vec<Keep> {
    let (file, path) = (folder.path("cache"), folder.path("snapshot"));
    vec![
        Box::new(|dataset| dataset.cache()),
        Box::new(move |dataset| dataset.cache_file(&file)),
        Box::new(move |dataset| dataset.snapshot(&path)),
    ]
}

#[test]
fn what_is_kept_is_made_once() {
    let folder = Folder::new();
    for keep in kinds(&folder) {
        let (dataset, made) = counted();
        let expected = all(&dataset);
        let kept = keep(&dataset);
        made.store(0, Ordering::Relaxed);
        // A pass that ends early stores nothing.
        drop(kept.iter().take(3).collect::<Vec<_>>());
        assert_eq!(made.swap(0, Ordering::Relaxed), 3);
        assert!(folder.files() < 3);
        for _ in 0..3 {
            assert_eq!(all(&kept), expected);
        }
        assert_eq!(all(&kept.prefetch(2).repeat(2)).len(), 12);
        assert_eq!(made.load(Ordering::Relaxed), 6);
        assert_eq!(kept.cardinality(), Cardinality::Known(6));
    }
    // No temporary file is left.
    assert_eq!(folder.files(), 2);
}

#[test]
fn a_pass_with_errors_is_not_kept() {
    let folder = Folder::new();
    for keep in kinds(&folder) {
        let fails = Arc::new(AtomicUsize::new(1));
        let left = fails.clone();
        let (dataset, _) = counted();
        let kept = keep(&dataset.map(move |pair| match left.swap(0, Ordering::Relaxed) {
            0 => Ok(pair),
            _ => Err(Error::Data("not yet".into())),
        }));
        assert_eq!(texts(&kept).len(), 6);
        assert_eq!(all(&kept).len(), 6, "the error was not kept, nor a pass without the element");
        fails.store(1, Ordering::Relaxed);
        assert_eq!(all(&kept).len(), 6, "the second pass was kept");
    }
}

#[test]
fn a_pass_that_is_dropped_by_a_thread_keeps_nothing() {
    let folder = Folder::new();
    for keep in kinds(&folder) {
        let (dataset, _) = counted();
        let slow = dataset.map(|pair| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            pair
        });
        let kept = keep(&slow.repeat(100));
        let ahead = kept.prefetch(4);
        let mut iter = ahead.iter();
        iter.next().unwrap().unwrap();
        drop(iter);
        // The thread may still be processing an element, with its file next to the new one.
        let complete = |dataset: &Kept| dataset.iter().filter(Result::is_ok).count() == 600;
        assert!((0..200).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            complete(&kept)
        }));
    }
}

#[test]
fn kept_elements_resume() {
    let seed = || ShuffleOptions::new().seed(4);
    resumes(|| data::range(0..7).shuffle_with(7, seed()).cache().repeat(3));
    let folder = Folder::new();
    for name in ["plain", "packed"] {
        let path = folder.path(name);
        let make = || {
            let shuffled = data::range(0..5).shuffle_with(5, seed());
            let kept =
                if name == "plain" { shuffled.cache_file(&path) } else { shuffled.snapshot(&path) };
            kept.repeat(2)
        };
        let expected = all(&make());
        for given in 0..=expected.len() {
            // Each starts without a file.
            let _ =
                if name == "plain" { fs::remove_file(&path) } else { fs::remove_dir_all(&path) };
            let mut iter = make().iter();
            let mut found: Vec<i64> = iter.by_ref().take(given).map(Result::unwrap).collect();
            let state = iter.save().unwrap();
            drop(iter);
            found.extend(make().resume(&state).unwrap().map(Result::unwrap));
            assert_eq!(found, expected, "{name} after {given}");
        }
    }
    data::range(0..9).save(folder.path("saved")).unwrap();
    resumes(|| Dataset::<i64>::load(folder.path("saved")).unwrap());
}

#[test]
fn a_second_writer_is_refused() {
    let folder = Folder::new();
    let cached = data::range(0..5).cache_file(folder.path("numbers"));
    let mut first = cached.iter();
    first.next().unwrap().unwrap();
    let found = texts(&cached);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("cache: another pass writes ") && found[0].contains(".tmp"),
        "{found:?}"
    );
    assert_eq!(first.count(), 4);
    assert_eq!(all(&cached).len(), 5);
}

fn saved(folder: &Folder, gzip: bool) -> PathBuf {
    let elements = data::range(0..20).map(|n| (n, format!("element {n}")));
    let compression = if gzip { CompressionType::Gzip } else { CompressionType::None };
    elements.save_with(&folder.0, DatasetSaveOptions::new().compression(compression)).unwrap();
    folder.path("dataset.elements")
}

type Saved = Dataset<(i64, String)>;

#[test]
fn what_is_saved_is_loaded() {
    for gzip in [false, true] {
        let folder = Folder::new();
        let file = saved(&folder, gzip);
        let loaded = Saved::load(&folder.0).unwrap();
        assert_eq!(loaded.cardinality(), Cardinality::Known(20));
        assert_eq!(all(&loaded)[7], (7, "element 7".to_string()));
        assert_eq!(all(&loaded), all(&loaded));
        assert_eq!(folder.files(), 1);
        let plain = 20 * (12 + 8 + 8 + 9);
        assert_eq!(fs::metadata(&file).unwrap().len() < plain, gzip);
        // An error among the elements leaves the existing file unchanged.
        let broken = data::range(0..3).map(|n| (1 / (1 - n), String::new()));
        assert!(broken.save(&folder.0).unwrap_err().to_string().contains("divide by zero"));
        assert_eq!(all(&loaded).len(), 20);
        assert_eq!(folder.files(), 1);
    }
    let folder = Folder::new();
    let tensors = data::range(0..3).map(|n| Tensor::from_slice(&[n as f32, 0.5], [2]));
    tensors.save(&folder.0).unwrap();
    let loaded = Dataset::<Tensor>::load(&folder.0).unwrap();
    assert_eq!(all(&loaded)[2].to_vec::<f32>().unwrap(), [2.0, 0.5]);
}

#[test]
fn changed_files_are_refused_in_words() {
    for gzip in [false, true] {
        let folder = Folder::new();
        let file = saved(&folder, gzip);
        let bytes = fs::read(&file).unwrap();
        let found = |bytes: &[u8]| -> Vec<String> {
            fs::write(&file, bytes).unwrap();
            match Saved::load(&folder.0) {
                Ok(loaded) => {
                    loaded.iter().filter_map(|item| item.err()).map(|e| e.to_string()).collect()
                }
                Err(error) => vec![error.to_string()],
            }
        };
        assert!(found(&bytes).is_empty());
        for end in 0..bytes.len() {
            let errors = found(&bytes[..end]);
            assert!(
                errors.len() == 1 && errors[0].contains("dataset.elements: "),
                "{end}: {errors:?}"
            );
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x55;
            let errors = found(&changed);
            // The name, time and system in gzip's header are not checked.
            let free = gzip && (at >= 17 && errors.is_empty());
            assert!(free || errors.len() == 1, "{at}: {errors:?}");
            assert!(!free || Saved::load(&folder.0).unwrap().iter().count() == 20);
        }
        let other = Dataset::<(i64, i64)>::load(&folder.0).unwrap_err().to_string();
        assert!(other.contains("dataset.elements"), "{other}");
    }
}

#[test]
fn elements_of_another_type_are_refused() {
    let folder = Folder::new();
    let file = folder.path("kept");
    assert_eq!(all(&data::range(0..3).cache_file(&file)).len(), 3);
    let found = texts(&data::range(0..3).map(|n| n as f32).cache_file(&file));
    assert_eq!(found.len(), 1);
    assert!(
        found[0].ends_with(
            "its elements are i64, and those of this dataset f32. Use another file, or delete it."
        ),
        "{found:?}"
    );
}

#[test]
fn what_cannot_be_written_is_an_error_with_its_path() {
    let folder = Folder::new();
    let missing = folder.path("no/such/folder/file");
    let found = texts(&data::range(0..3).cache_file(&missing));
    assert!(found.len() == 1 && found[0].contains("no/such/folder/file"), "{found:?}");
    fs::write(folder.path("file"), "").unwrap();
    let error = data::range(0..3).save(folder.path("file")).unwrap_err();
    assert!(matches!(&error, Error::Io(io) if io.path.ends_with("file")), "{error}");
    assert!(matches!(Dataset::<i64>::load(Path::new("no/such")), Err(Error::Io(_))));
    let found = texts(&data::range(0..3).cache_file(&folder.0));
    assert!(found[0].contains("a folder and not a file"), "{found:?}");
}
