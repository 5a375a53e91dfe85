//! `text_dataset_from_directory`: texts in a sub-folder for each class.

use std::path::Path;
use std::sync::Arc;

use super::directory::{DirectoryDataset, Rules, Subset};
use crate::error::{Error, Result, message};
use crate::files::io::read_file;
use crate::support::options::options;

options! {
    /// How [`text_dataset_from_directory`] finds and reads texts.
    #[derive(Debug, Clone, PartialEq)]
    pub struct TextDatasetOptions {
        /// Whether the sub-folders are classes, Keras's `labels="inferred"`; if not, all texts below the folder are used.
        /// Default: `true`.
        labels: bool = true,
        /// The classes to use, in the order of their labels. Default: all sub-folders, sorted.
        class_names: Option<Vec<String>> as impl Into<Option<Vec<String>>> = None,
        /// The batch size. Default: 32.
        batch_size: usize = 32,
        /// The maximum number of bytes of a text. Longer texts are truncated before the first character that does not fit.
        max_length: Option<usize> as impl Into<Option<usize>> = None,
        /// Whether to shuffle the files for each iteration; if not, they are ordered by class and name. Default: `true`.
        shuffle: bool = true,
        /// The seed of the shuffling.
        seed: Option<u64> as impl Into<Option<u64>> = None,
        /// The fraction of the files for validation, between 0 and 1. It requires a `subset`, and a `seed` if files are
        /// shuffled.
        validation_split: Option<f64> as impl Into<Option<f64>> = None,
        /// The part of the files to use.
        subset: Option<Subset> as impl Into<Option<Subset>> = None,
        /// Whether links to folders are followed. Default: `false`.
        follow_links: bool = false,
    }
}

/// Finds texts in a folder with a sub-folder for each class: Keras's `text_dataset_from_directory`. They are UTF-8 files whose
/// names end in `.txt`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::utils::{TextDatasetOptions, text_dataset_from_directory};
/// # let folder = std::env::temp_dir().join(format!("wgrad-films-{}", std::process::id()));
/// wgrad::io::write_file(folder.join("neg/1.txt"), "what a bore")?;
/// wgrad::io::write_file(folder.join("pos/1.txt"), "I wept")?;
/// let films = text_dataset_from_directory(&folder, TextDatasetOptions::new().shuffle(false))?;
/// let (texts, labels) = films.dataset()?.iter().next().expect("one batch")?;
/// assert_eq!((texts[[1]].as_str(), labels[[1]]), ("I wept", 1));
/// # std::fs::remove_dir_all(&folder).map_err(|_| wgrad::Error::Data("left".into()))?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Io`] if a folder cannot be read; [`Error::Data`] if there is no text, no class, or not every requested class, and
/// if options contradict each other. For a file that is not UTF-8, the dataset yields an error that names it.
pub fn text_dataset_from_directory(
    directory: impl AsRef<Path>,
    options: TextDatasetOptions,
) -> Result<DirectoryDataset<String>> {
    let op = "text_dataset_from_directory";
    let rules = Rules {
        op,
        endings: &[".txt"],
        labels: options.labels,
        class_names: options.class_names.as_deref(),
        shuffle: options.shuffle,
        seed: options.seed,
        validation_split: options.validation_split,
        subset: options.subset,
        follow_links: options.follow_links,
    };
    let chosen = rules.choose(directory.as_ref())?;
    let most = options.max_length.unwrap_or(usize::MAX);
    let load = move |path: &Path| {
        let mut text = String::from_utf8(read_file(path)?).map_err(|error| {
            let (error, path) = (error.utf8_error(), path.display());
            Error::Data(message!(
                "{path}: the file is not valid UTF-8 from byte {} on. Convert it, or leave it out.",
                error.valid_up_to()
            ))
        })?;
        let mut end = most.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        Ok(text)
    };
    let (file_paths, labels) = chosen.files.into_iter().unzip();
    Ok(DirectoryDataset {
        class_names: chosen.class_names,
        file_paths,
        labels,
        op,
        batch_size: options.batch_size,
        seed: options.seed,
        shuffle: options.shuffle,
        load: Arc::new(load),
    })
}
