//! NumPy's files: `.npy` with one array, `.npz` with several.
//!
//! `header` reads and writes the description of a file, `array` the numbers after it, `npz` the archive; `tensor` has the
//! functions for tensors. The crates for this format reserve as much memory as a header claims; here memory grows with the bytes
//! that arrive.

mod array;
mod header;
mod npz;
#[cfg(not(target_family = "wasm"))]
mod tensor;

pub use array::{parse, read, write};
#[cfg(not(target_family = "wasm"))]
pub use npz::{load_npz, savez, savez_compressed};
pub use npz::{parse_npz, write_npz};
#[cfg(not(target_family = "wasm"))]
pub use tensor::{load_tensor, save_tensor};

#[cfg(not(target_family = "wasm"))]
mod files {
    use std::io::{BufReader, BufWriter, Write};
    use std::path::Path;

    use super::array;
    use crate::error::{Error, Result};
    use crate::host_array::HostArray;

    /// Reads the `.npy` file at `path` (`numpy.load`).
    ///
    /// ```
    /// use wgrad::data::npy;
    /// let path = std::env::temp_dir().join(format!("wgrad-load-{}.npy", std::process::id()));
    /// let array = wgrad::ndarray::array![[1.0f32, 2.0], [3.0, 4.0]];
    /// npy::save(&path, array.clone())?;
    /// let read = npy::load(&path)?.to_array::<f32>()?;
    /// assert_eq!(read, array.into_dyn());
    /// # std::fs::remove_file(&path).expect("it was written");
    /// # Ok::<(), wgrad::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read, [`Error::Data`] as for [`parse`](super::parse).
    pub fn load(path: impl AsRef<Path>) -> Result<HostArray<'static>> {
        let path = path.as_ref();
        let system = |error| Error::io(path, error);
        crate::files::look(path).map_err(system)?;
        let file = std::fs::File::open(path).map_err(system)?;
        array::read(BufReader::new(file), path)
    }

    /// Writes an array as the `.npy` file at `path` (`numpy.save`). It replaces an existing file once the new one is complete.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be written; [`Error::DType`] if NumPy does not have the dtype.
    pub fn save<'a>(path: impl AsRef<Path>, array: impl Into<HostArray<'a>>) -> Result<()> {
        let (path, array) = (path.as_ref(), array.into());
        array::header(&array)?;
        let written = crate::files::replace(path, |file| {
            let mut to = BufWriter::new(file);
            array::write(&array, &mut to)?;
            to.flush()
        });
        written.map_err(|error| Error::io(path, error))
    }
}
#[cfg(not(target_family = "wasm"))]
pub use files::{load, save};
