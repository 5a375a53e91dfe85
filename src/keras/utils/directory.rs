//! The files below a folder, labelled by its sub-folders, and datasets of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ndarray::{Array1, ArrayD};

use crate::data::{AUTOTUNE, Dataset, Item, MapOptions, ShuffleOptions};
use crate::error::{Error, Result, message};

/// The part of the files to use with `validation_split`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subset {
    /// The files before the fraction used for validation.
    Training,
    /// The last fraction of the files.
    Validation,
}

/// The files of a folder, and datasets of them: [`image_dataset_from_directory`](super::image_dataset_from_directory),
/// [`text_dataset_from_directory`](super::text_dataset_from_directory).
///
/// Keras's `label_mode` corresponds to the method that creates the dataset: [`dataset`](Self::dataset) is `"int"`,
/// [`categorical`](Self::categorical), [`binary`](Self::binary), and [`unlabeled`](Self::unlabeled) is `None`.
#[derive(Clone)]
pub struct DirectoryDataset<T: Item> {
    /// The names of the classes: the sub-folders. A file's label is the index of its sub-folder in this list.
    pub class_names: Vec<String>,
    /// The files. Each iteration over a dataset shuffles them, if `shuffle` is on.
    pub file_paths: Vec<PathBuf>,
    /// The label of each file, if there are classes.
    pub labels: Vec<i32>,
    pub(super) op: &'static str,
    pub(super) batch_size: usize,
    pub(super) seed: Option<u64>,
    pub(super) shuffle: bool,
    pub(super) load: Load<T>,
}

impl<T: Item> std::fmt::Debug for DirectoryDataset<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectoryDataset")
            .field("class_names", &self.class_names)
            .field("files", &self.file_paths.len())
            .field("batch_size", &self.batch_size)
            .field("shuffle", &self.shuffle)
            .finish_non_exhaustive()
    }
}

/// Loads a file as an element.
pub(super) type Load<T> = Arc<dyn Fn(&Path) -> Result<T> + Send + Sync>;

impl<T: Item> DirectoryDataset<T> {
    /// Returns a dataset of single elements and their labels, as with Keras's `batch_size=None`. Several files are read at the
    /// same time.
    ///
    /// # Errors
    /// [`Error::Data`] if there are no labels. For a file that cannot be read or is damaged, the dataset yields an error that
    /// names it; `ignore_errors` skips it.
    pub fn elements(&self) -> Result<Dataset<(T, i32)>> {
        let labels = self.labels("elements")?;
        self.loaded(labels.to_vec(), |label| label)
    }

    /// Returns a dataset of batches with labels `i32` `[N]`, Keras's `label_mode="int"`, for `sparse_categorical_crossentropy`.
    ///
    /// # Errors
    /// Same as [`DirectoryDataset::elements`].
    pub fn dataset(&self) -> Result<Dataset<(T::Batch, ArrayD<i32>)>> {
        self.batches(self.loaded(self.labels("dataset")?.to_vec(), |label| label)?)
    }

    /// Returns a dataset of batches with labels `f32` `[N, classes]`, 1 at the class and 0 elsewhere, for
    /// `categorical_crossentropy`.
    ///
    /// # Errors
    /// Same as [`DirectoryDataset::elements`].
    pub fn categorical(&self) -> Result<Dataset<(T::Batch, ArrayD<f32>)>> {
        let count = self.class_names.len();
        let one_hot = move |label: i32| {
            Array1::from_shape_fn(count, |class| f32::from(u8::from(class as i32 == label)))
        };
        self.batches(self.loaded(self.labels("categorical")?.to_vec(), one_hot)?)
    }

    /// Returns a dataset of batches with labels `f32` `[N,1]`, 0 or 1, for `binary_crossentropy`.
    ///
    /// # Errors
    /// Same as [`DirectoryDataset::elements`]; also [`Error::Data`] unless there are two classes.
    pub fn binary(&self) -> Result<Dataset<(T::Batch, ArrayD<f32>)>> {
        if self.class_names.len() != 2 {
            return Err(Error::Data(message!(
                "{}: binary labels need two classes, and there are {}: {:?}.",
                self.op,
                self.class_names.len(),
                self.class_names
            )));
        }
        let label = |label: i32| Array1::from_elem(1, label as f32);
        self.batches(self.loaded(self.labels("binary")?.to_vec(), label)?)
    }

    /// Returns a dataset of batches without labels, Keras's `label_mode=None`.
    ///
    /// # Errors
    /// [`Error::Data`] if the batch size is 0.
    pub fn unlabeled(&self) -> Result<Dataset<T::Batch>> {
        let load = self.load.clone();
        let order = self.order(self.file_paths.clone())?;
        let parallel = MapOptions::new().num_parallel_calls(AUTOTUNE);
        let elements = order.map_with(parallel, move |path: PathBuf| load(&path));
        self.batches(elements)
    }

    fn labels(&self, method: &str) -> Result<&[i32]> {
        if self.class_names.is_empty() {
            return Err(Error::Data(message!(
                "{}: the files were read without labels; `unlabeled` gives them, or leave out `labels(false)` to have \
                 `{method}`.",
                self.op
            )));
        }
        Ok(&self.labels)
    }

    fn order<E: Item>(&self, elements: Vec<E>) -> Result<Dataset<E>> {
        let count = elements.len();
        let dataset = Dataset::from_tensor_slices(elements)?;
        match self.shuffle {
            true => Ok(dataset.shuffle_with(count, ShuffleOptions::new().seed(self.seed))),
            false => Ok(dataset),
        }
    }

    /// Shuffles the file names, which are small, and reads the files in that order.
    fn loaded<L: Item>(
        &self,
        labels: Vec<i32>,
        label: impl Fn(i32) -> L + Send + Sync + 'static,
    ) -> Result<Dataset<(T, L)>> {
        let load = self.load.clone();
        let pairs: Vec<(PathBuf, i32)> = self.file_paths.iter().cloned().zip(labels).collect();
        let parallel = MapOptions::new().num_parallel_calls(AUTOTUNE);
        let load = move |(path, of): (PathBuf, i32)| Ok((load(&path)?, label(of)));
        Ok(self.order(pairs)?.map_with(parallel, load))
    }

    fn batches<E: Item>(&self, elements: Dataset<E>) -> Result<Dataset<E::Batch>> {
        if self.batch_size == 0 {
            return Err(Error::Data(
                "batch: batch_size is 0; a batch needs at least one element.".into(),
            ));
        }
        Ok(elements.batch(self.batch_size).prefetch(AUTOTUNE))
    }
}

/// The options that all kinds of files have.
pub(super) struct Rules<'a> {
    pub(super) op: &'static str,
    pub(super) endings: &'static [&'static str],
    pub(super) labels: bool,
    pub(super) class_names: Option<&'a [String]>,
    pub(super) shuffle: bool,
    pub(super) seed: Option<u64>,
    pub(super) validation_split: Option<f64>,
    pub(super) subset: Option<Subset>,
    pub(super) follow_links: bool,
}

/// The files that the rules select, with the index of each file's class, and the classes.
pub(super) struct Chosen {
    pub(super) files: Vec<(PathBuf, i32)>,
    pub(super) class_names: Vec<String>,
}

impl Rules<'_> {
    pub(super) fn choose(&self, directory: &Path) -> Result<Chosen> {
        let share = self.share()?;
        let class_names = if self.labels { self.classes(directory)? } else { Vec::new() };
        let mut files = Vec::new();
        let mut folders: Vec<PathBuf> =
            class_names.iter().map(|name| directory.join(name)).collect();
        if !self.labels {
            folders.push(directory.to_path_buf());
        }
        for (class, folder) in folders.iter().enumerate() {
            let mut found = Vec::new();
            self.walk(folder, &mut found, 0)?;
            found.sort();
            files.extend(found.into_iter().map(|path| (path, class as i32)));
        }
        if files.is_empty() {
            return Err(self.refuse(
                directory,
                &format!("there is no file in it that ends in {}", self.endings.join(", ")),
            ));
        }
        let Some(share) = share else { return Ok(Chosen { files, class_names }) };
        if let (true, Some(seed)) = (self.shuffle, self.seed) {
            fastrand::Rng::with_seed(seed).shuffle(&mut files);
        }
        let last = (share * files.len() as f64) as usize;
        let rest = files.split_off(files.len() - last);
        let (files, what) = match self.subset {
            Some(Subset::Validation) => (rest, "validation"),
            _ => (files, "training"),
        };
        if files.is_empty() {
            let what = format!("a split of {share} leaves no file for {what}");
            return Err(self.refuse(directory, &what));
        }
        Ok(Chosen { files, class_names })
    }

    /// The fraction of the files for validation.
    fn share(&self) -> Result<Option<f64>> {
        let refuse = |words: &str| Err(Error::Data(message!("{}: {words}", self.op)));
        match (self.validation_split, self.subset) {
            (None, None) => Ok(None),
            (None, Some(_)) => refuse("subset needs a validation_split."),
            (Some(_), None) => refuse("validation_split needs a subset: which part is wanted?"),
            (Some(share), _) if !(share > 0.0 && share < 1.0) => {
                refuse(&format!("validation_split is {share}; it must be between 0 and 1."))
            }
            (Some(_), _) if self.shuffle && self.seed.is_none() => refuse(
                "validation_split needs a seed, the same for both subsets, so that no file is in both; or shuffle(false).",
            ),
            (share, _) => Ok(share),
        }
    }

    /// The names of the classes: those that the caller specifies, or the sub-folders in order.
    fn classes(&self, directory: &Path) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for entry in list(directory)? {
            let name = entry.file_name().unwrap_or_default();
            let Some(name) = name.to_str() else {
                return Err(self
                    .refuse(&entry, "its name is not valid Unicode, which a class name must be"));
            };
            if entry.is_dir() && !name.starts_with('.') {
                found.push(name.to_string());
            }
        }
        found.sort();
        if found.is_empty() {
            let what = "there is no sub-folder in it, and each class needs one; `labels(false)` does without classes";
            return Err(self.refuse(directory, what));
        }
        let Some(wanted) = self.class_names else { return Ok(found) };
        match wanted.iter().find(|name| !found.contains(name)) {
            None => Ok(wanted.to_vec()),
            Some(missing) => {
                let what =
                    format!("class_names has {missing:?}, and the sub-folders are {found:?}");
                Err(self.refuse(directory, &what))
            }
        }
    }

    /// Adds the files below a folder. A link to a parent folder would cause an endless recursion.
    fn walk(&self, folder: &Path, found: &mut Vec<PathBuf>, depth: usize) -> Result<()> {
        const DEEPEST: usize = 64;
        if depth > DEEPEST {
            return Err(self
                .refuse(folder, "folders are nested without end; is there a link to one above?"));
        }
        for path in list(folder)? {
            if path.is_dir() {
                if self.follow_links || !path.is_symlink() {
                    self.walk(&path, found, depth + 1)?;
                }
                continue;
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
            if self.endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path);
            }
        }
        Ok(())
    }

    fn refuse(&self, path: &Path, what: &str) -> Error {
        Error::Data(message!("{}: {}: {what}.", self.op, path.display()))
    }
}

fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let io = |error| Error::io(folder, error);
    let entries = fs::read_dir(folder).map_err(io)?;
    entries.map(|entry| Ok(entry.map_err(io)?.path())).collect()
}
