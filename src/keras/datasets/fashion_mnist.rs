//! Images of clothes: `keras.datasets.fashion_mnist`.

use super::files::{LoadDataOptions, Quartet, load_quartet};
use crate::data::collection::FASHION_MNIST;
use crate::error::Result;

/// The names of the labels 0 to 9.
pub const CLASS_NAMES: [&str; 10] = [
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
];

/// Loads `(x_train, y_train), (x_test, y_test)`: 60,000 and 10,000 grayscale images `[N,28,28]` of clothes, and their labels
/// `[N]`. [`CLASS_NAMES`] lists the names of the labels.
///
/// They are read from the folder that `FASHION_MNIST_DIR` names, or else from the folder `fashion-mnist` of the cache. With the
/// feature `download`, missing files are downloaded to the cache.
///
/// ```no_run
/// # fn main() -> wgrad::Result<()> {
/// let ((x_train, y_train), _) = wgrad::keras::datasets::fashion_mnist::load_data()?;
/// assert_eq!((x_train.shape(), y_train.len()), (&[60_000, 28, 28][..], 60_000));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Same as [`mnist::load_data`](super::mnist::load_data).
pub fn load_data() -> Result<Quartet> {
    load_data_with(&LoadDataOptions::new())
}

/// Same as [`load_data`], with options.
///
/// # Errors
/// Same as [`load_data`].
pub fn load_data_with(options: &LoadDataOptions) -> Result<Quartet> {
    load_quartet(&FASHION_MNIST, options, &|name| std::env::var_os(name))
}
