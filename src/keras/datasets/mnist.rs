//! Handwritten digits: `keras.datasets.mnist`.

use super::files::{LoadDataOptions, Quartet, load_quartet};
use crate::data::collection::MNIST;
use crate::error::Result;

/// Loads `(x_train, y_train), (x_test, y_test)`: 60,000 and 10,000 grayscale images `[N,28,28]` of digits, from 0 for paper to
/// 255 for ink, and their labels `[N]`.
///
/// They are read from the folder that `MNIST_DIR` names, or else from the folder `mnist` of the cache. With the feature
/// `download`, missing files are downloaded to the cache. [`Mnist::load`](crate::data::mnist::Mnist::load) draws digits if
/// there are no files.
///
/// ```no_run
/// # fn main() -> wgrad::Result<()> {
/// let ((x_train, y_train), (x_test, y_test)) = wgrad::keras::datasets::mnist::load_data()?;
/// assert_eq!((x_train.shape(), y_train.len()), (&[60_000, 28, 28][..], 60_000));
/// assert_eq!((x_test.shape(), y_test.len()), (&[10_000, 28, 28][..], 10_000));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Data`](crate::Error::Data) if the files are missing and cannot be downloaded, or are damaged;
/// [`Error::Io`](crate::Error::Io) if they cannot be read.
pub fn load_data() -> Result<Quartet> {
    load_data_with(&LoadDataOptions::new())
}

/// Same as [`load_data`], with options.
///
/// # Errors
/// Same as [`load_data`].
pub fn load_data_with(options: &LoadDataOptions) -> Result<Quartet> {
    load_quartet(&MNIST, options, &|name| std::env::var_os(name))
}
