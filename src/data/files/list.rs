//! `list_files`: the files whose names match a pattern.

use std::path::PathBuf;

use crate::data::dataset::Dataset;
use crate::data::stages::ShuffleOptions;
use crate::error::{Error, Result, message};
use crate::support::options::options;

options! {
    /// The order of [`Dataset::list_files_with`].
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ListFilesOptions {
        /// Whether each pass has its own random order; if not, the names ascend.
        shuffle: bool = true,
        /// The seed of that order.
        seed: Option<u64> as impl Into<Option<u64>> = None,
    }
}

impl Dataset<PathBuf> {
    /// The files that match a pattern, in a different order in each pass (`Dataset.list_files`): `*` and `?` match any text and
    /// any character without `/`, `[ab]` one of the characters, `**` any folders.
    ///
    /// The call itself looks up the names.
    ///
    /// ```
    /// use wgrad::data::{Dataset, ListFilesOptions};
    /// let sorted = ListFilesOptions::new().shuffle(false);
    /// let files = Dataset::list_files_with("src/data/files/*.rs", sorted)?;
    /// let first = files.iter().next().expect("there are some")?;
    /// assert!(first.ends_with("src/data/files/dataset.rs"));
    /// assert!(Dataset::list_files("src/data/*.py").is_err());
    /// # Ok::<(), wgrad::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Data`] if nothing matches, or the pattern is invalid; [`Error::Io`] if a folder cannot be read.
    pub fn list_files(pattern: impl AsRef<str>) -> Result<Dataset<PathBuf>> {
        Dataset::list_files_with(pattern, ListFilesOptions::new())
    }

    /// As [`Dataset::list_files`], with a seed, or in ascending order.
    ///
    /// # Errors
    /// As [`Dataset::list_files`].
    pub fn list_files_with(
        pattern: impl AsRef<str>,
        options: ListFilesOptions,
    ) -> Result<Dataset<PathBuf>> {
        let pattern = pattern.as_ref();
        let rules = glob::MatchOptions { require_literal_separator: true, ..Default::default() };
        let found = glob::glob_with(pattern, rules).map_err(|error| {
            Error::Data(message!("list_files: {pattern:?} is not a valid pattern: {error}."))
        })?;
        let mut files = Vec::new();
        for path in found {
            files.push(path.map_err(|error| {
                let path = error.path().to_path_buf();
                Error::io(path, error.into())
            })?);
        }
        files.sort();
        let count = files.len();
        if count == 0 {
            return Err(Error::Data(message!(
                "list_files: no file matches {pattern:?} from the folder {}. Check the pattern.",
                std::env::current_dir().unwrap_or_default().display()
            )));
        }
        let files = Dataset::from_tensor_slices(files)?;
        match options.shuffle {
            true => Ok(files.shuffle_with(count, ShuffleOptions::new().seed(options.seed))),
            false => Ok(files),
        }
    }
}
