//! Small colour photographs of ten classes: `keras.datasets.cifar10`.

#[cfg(feature = "gzip")]
use std::io::Read;
use std::path::{Path, PathBuf};

use ndarray::{Array2, Array4, ArrayView, Ix4};

use super::files::{LoadDataOptions, find};
use crate::data::collection::CIFAR10;
use crate::error::{Error, Result, message};
use crate::files::cache_folder::Env;
use crate::files::io::read_file;

/// The names of the labels 0 to 9.
pub const CLASS_NAMES: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

/// `(x_train, y_train), (x_test, y_test)`.
pub type Quartet = ((Array4<u8>, Array2<u8>), (Array4<u8>, Array2<u8>));

/// The bytes of a record: a label, and three planes of 32 by 32.
const RECORD: usize = 1 + 3 * 1024;
/// The files; the last one contains the test images.
const FILES: [&str; 6] = [
    "data_batch_1.bin",
    "data_batch_2.bin",
    "data_batch_3.bin",
    "data_batch_4.bin",
    "data_batch_5.bin",
    "test_batch.bin",
];
const ARCHIVE: &str = "cifar-10-binary.tar.gz";

/// Loads `(x_train, y_train), (x_test, y_test)`: 50,000 and 10,000 colour images `[N,32,32,3]` and their labels `[N,1]`.
/// [`CLASS_NAMES`] lists the names of the labels.
///
/// They are read from the folder that `CIFAR10_DIR` names, or else from the folder `cifar-10` of the cache: from the archive
/// `cifar-10-binary.tar.gz`, or from its extracted files. With the feature `download`, a missing archive (170 MB) is downloaded
/// to the cache. It is the binary version of the data set, because reading the Python version can run code.
///
/// ```no_run
/// # fn main() -> wgrad::Result<()> {
/// let ((x_train, y_train), _) = wgrad::keras::datasets::cifar10::load_data()?;
/// assert_eq!((x_train.shape(), y_train.shape()), (&[50_000, 32, 32, 3][..], &[50_000, 1][..]));
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
    load(options, &|name| std::env::var_os(name))
}

pub(super) fn load(options: &LoadDataOptions, env: Env) -> Result<Quartet> {
    /// The contents of a folder.
    enum Found {
        Files(PathBuf),
        Archive(PathBuf),
    }
    let found = find(&CIFAR10, options, env, |dir| {
        let whole = |dir: &Path| FILES.iter().all(|name| dir.join(name).is_file());
        let unpacked = dir.join("cifar-10-batches-bin");
        let folder = [dir.to_path_buf(), unpacked].into_iter().find(|dir| whole(dir));
        let archive = dir.join(ARCHIVE);
        folder.map(Found::Files).or_else(|| archive.is_file().then_some(Found::Archive(archive)))
    })?;
    let mut files = Vec::new();
    match found {
        Found::Files(dir) => {
            for name in FILES {
                let path = dir.join(name);
                files.push((path.display().to_string(), read_file(&path)?));
            }
        }
        Found::Archive(path) => {
            let name = path.display().to_string();
            let mut unpacked = unpack(&read_file(&path)?, &name)?;
            for file in FILES {
                let place = unpacked.iter().position(|(found, _)| found == file);
                let place = place.ok_or_else(|| refused(&name, &format!("{file} is not in it")))?;
                let (_, bytes) = unpacked.swap_remove(place);
                files.push((format!("{name}: {file}"), bytes));
            }
        }
    }
    let test = files.split_off(5);
    Ok((arrays(&files)?, arrays(&test)?))
}

/// Images and labels of some files, in order.
fn arrays(files: &[(String, Vec<u8>)]) -> Result<(Array4<u8>, Array2<u8>)> {
    let (mut labels, mut pixels) = (Vec::new(), Vec::new());
    for (name, bytes) in files {
        let (count, rest) = (bytes.len() / RECORD, bytes.len() % RECORD);
        if count == 0 || rest != 0 {
            let what =
                format!("its {} bytes are not a multiple of an image's {RECORD}", bytes.len());
            return Err(refused(name, &what));
        }
        for (i, record) in bytes.chunks_exact(RECORD).enumerate() {
            let (label, planes) = (record[0], &record[1..]);
            if label > 9 {
                return Err(refused(
                    name,
                    &format!("image {i} has the label {label}, and they end at 9"),
                ));
            }
            labels.push(label);
            pixels.extend_from_slice(planes);
        }
    }
    let count = labels.len();
    let shaped = |error: ndarray::ShapeError| refused("the files", &error.to_string());
    let planes = ArrayView::<u8, Ix4>::from_shape([count, 3, 32, 32], &pixels).map_err(shaped)?;
    let images = planes.permuted_axes([0, 2, 3, 1]).as_standard_layout().into_owned();
    Ok((images, Array2::from_shape_vec([count, 1], labels).map_err(shaped)?))
}

/// The files in a tar archive compressed by gzip, each with its name without folders. It reads at most the size of the whole
/// data set.
#[cfg(feature = "gzip")]
fn unpack(bytes: &[u8], name: &str) -> Result<Vec<(String, Vec<u8>)>> {
    const MOST: u64 = 200 << 20;
    let mut tar = Vec::new();
    let packed = flate2::read::GzDecoder::new(bytes);
    packed.take(MOST).read_to_end(&mut tar).map_err(|error| refused(name, &error.to_string()))?;
    let mut files = Vec::new();
    let mut rest = tar.as_slice();
    // A header of 512 bytes, then the file in blocks of 512; two empty blocks end it.
    while let Some((header, behind)) = rest.split_at_checked(512) {
        if header[0] == 0 {
            break;
        }
        let octal = |digits: &[u8]| {
            let digits = digits.iter().take_while(|byte| (b'0'..=b'7').contains(byte));
            digits.fold(0usize, |size, byte| {
                size.saturating_mul(8).saturating_add(usize::from(byte - b'0'))
            })
        };
        let size = octal(&header[124..135]);
        let Some(file) = behind.get(..size) else {
            return Err(refused(name, "the archive ends within a file"));
        };
        let path: Vec<u8> = header[..100].iter().copied().take_while(|byte| *byte != 0).collect();
        let path = String::from_utf8_lossy(&path).into_owned();
        if let b'0' | 0 = header[156] {
            let file_name = path.rsplit('/').next().unwrap_or_default();
            files.push((file_name.to_string(), file.to_vec()));
        }
        rest = behind.get(size.div_ceil(512) * 512..).unwrap_or_default();
    }
    Ok(files)
}

#[cfg(not(feature = "gzip"))]
fn unpack(_: &[u8], name: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let what = "it is compressed with gzip, and wgrad was built without gzip; decompress it, or build with the \
                feature \"gzip\"";
    Err(refused(name, what))
}

fn refused(name: &str, what: &str) -> Error {
    Error::Data(message!("cifar10: {name}: {what}. Fetch it again, or unpack it again."))
}
