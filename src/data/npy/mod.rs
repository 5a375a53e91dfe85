//! NumPy's files: `.npy` with one array, `.npz` with several.
//!
//! `header` reads and writes the description of a file, `array` the numbers after it, `npz` the archive; `tensor` converts
//! arrays to tensors. The crates for this format reserve as much memory as a header claims; here memory grows with the bytes
//! that arrive.

mod array;
mod header;
mod npz;
#[cfg(feature = "safetensors")]
mod tensor;

pub use array::{NpyArray, NpyElement};
#[cfg(not(target_family = "wasm"))]
pub use npz::{load_npz, savez, savez_compressed};
pub use npz::{parse_npz, write_npz};
#[cfg(all(feature = "safetensors", not(target_family = "wasm")))]
pub use tensor::{load_tensor, save_tensor};

#[cfg(not(target_family = "wasm"))]
mod files {
    use std::io::{BufReader, BufWriter, Write};
    use std::path::Path;

    use super::array::NpyArray;
    use crate::error::{Error, Result};

    /// Reads the `.npy` file at `path` (`numpy.load`).
    ///
    /// ```
    /// use wgrad::data::npy;
    /// let path = std::env::temp_dir().join(format!("wgrad-load-{}.npy", std::process::id()));
    /// let array = wgrad::ndarray::array![[1.0f32, 2.0], [3.0, 4.0]];
    /// npy::save(&path, array.clone())?;
    /// let read = npy::load(&path)?.into_array::<f32>()?;
    /// assert_eq!(read, array.into_dyn());
    /// # std::fs::remove_file(&path).expect("it was written");
    /// # Ok::<(), wgrad::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read, [`Error::Data`] as for [`NpyArray::parse`].
    pub fn load(path: impl AsRef<Path>) -> Result<NpyArray> {
        let path = path.as_ref();
        let system = |error| Error::io(path, error);
        crate::files::look(path).map_err(system)?;
        let file = std::fs::File::open(path).map_err(system)?;
        NpyArray::read(BufReader::new(file), path)
    }

    /// Writes an array as the `.npy` file at `path` (`numpy.save`). It replaces an existing file once the new one is complete.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be written.
    pub fn save(path: impl AsRef<Path>, array: impl Into<NpyArray>) -> Result<()> {
        let (path, array) = (path.as_ref(), array.into());
        let written = crate::files::replace(path, |file| {
            let mut to = BufWriter::new(file);
            array.write(&mut to)?;
            to.flush()
        });
        written.map_err(|error| Error::io(path, error))
    }
}
#[cfg(not(target_family = "wasm"))]
pub use files::{load, save};
