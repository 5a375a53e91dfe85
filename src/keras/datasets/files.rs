//! Finds the files of a data set, and reads the arrays in files of MNIST's format.

use std::path::{Path, PathBuf};

use ndarray::{Array1, Array3};

use crate::data::collection::Collection;
use crate::data::idx::{Idx, read_idx};
use crate::error::{Error, Result, message};
use crate::files::cache_folder::{Env, cache, folder};
use crate::support::options::options;

options! {
    /// Where `load_data_with` looks for files.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct LoadDataOptions {
        /// The folder of the files, which must then exist.
        dir: Option<PathBuf> as impl Into<Option<PathBuf>> = None,
        /// Whether to download missing files; this needs the feature `download`. Default: `true`.
        download: bool = true,
    }
}

/// `(x_train, y_train), (x_test, y_test)` of grayscale images.
pub type Quartet = ((Array3<u8>, Array1<u8>), (Array3<u8>, Array1<u8>));

/// The folder in which `found` succeeds: the one that the options or the environment name, or else the one in the cache, to
/// which missing files are downloaded.
pub(super) fn find<T>(
    collection: &Collection,
    options: &LoadDataOptions,
    env: Env,
    found: impl Fn(&Path) -> Option<T>,
) -> Result<T> {
    let names = collection.names().join(", ");
    if let Some(dir) = options.dir.clone().or_else(|| folder(env, collection.variable)) {
        return found(&dir).ok_or_else(|| {
            Error::Data(message!(
                "{}: {}: the folder should hold {names}, compressed or not. Put them there, or omit the folder to \
                 have them downloaded.",
                collection.name,
                dir.display()
            ))
        });
    }
    let dir = cache(env).map(|cache| cache.join(collection.folder));
    if let Some(found) = dir.as_deref().and_then(&found) {
        return Ok(found);
    }
    #[cfg(feature = "download")]
    if let Some(dir) = dir.as_deref().filter(|_| options.download) {
        crate::data::download::fetch(collection, dir)?;
        if let Some(found) = found(dir) {
            return Ok(found);
        }
    }
    let place = dir.map_or("there is no cache folder".into(), |dir| {
        format!("they are not in {}", dir.display())
    });
    let remedy = match cfg!(feature = "download") {
        true => "Let them be downloaded",
        false => "Build with the feature \"download\"",
    };
    Err(Error::Data(message!(
        "{}: it needs {names}, and {place}. {remedy}, or name their folder with {} or LoadDataOptions::dir.",
        collection.name,
        collection.variable
    )))
}

/// Reads the four files of MNIST's format.
pub(super) fn load_quartet(
    collection: &Collection,
    options: &LoadDataOptions,
    env: Env,
) -> Result<Quartet> {
    let stems = ["train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"];
    let files = find(collection, options, env, |dir| {
        let file = |stem: &str| {
            let plain = dir.join(format!("{stem}-ubyte"));
            let packed = dir.join(format!("{stem}-ubyte.gz"));
            [plain, packed].into_iter().find(|path| path.is_file())
        };
        stems.map(file).into_iter().collect::<Option<Vec<PathBuf>>>()
    })?;
    let pair = |images: &Path, labels: &Path| -> Result<_> {
        let (x, y) = (read_idx(images)?, read_idx(labels)?);
        let refuse = |what: String| {
            Err(Error::Data(message!(
                "{}: {}: {what}. Check that it is a file of this data set, and fetch it again.",
                collection.name,
                images.display()
            )))
        };
        let Idx { shape, data } = x;
        let &[count, 28, 28] = shape.as_slice() else {
            return refuse(format!("the values are {shape:?}, not [images, 28, 28]"));
        };
        if y.shape != [count] {
            return refuse(format!(
                "there are {count} images, and {} has {:?} labels",
                labels.display(),
                y.shape
            ));
        }
        if let Some(wrong) = y.data.iter().find(|label| **label > 9) {
            return refuse(format!(
                "{} has the label {wrong}, and they end at 9",
                labels.display()
            ));
        }
        match Array3::from_shape_vec([count, 28, 28], data) {
            Ok(images) => Ok((images, Array1::from(y.data))),
            Err(error) => refuse(error.to_string()),
        }
    };
    match files.as_slice() {
        [a, b, c, d] => Ok((pair(a, b)?, pair(c, d)?)),
        _ => Err(Error::Data(message!("{}: a file is missing.", collection.name))),
    }
}
