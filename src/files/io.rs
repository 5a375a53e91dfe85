//! Whole files, in and out: `tf.io.read_file` and `write_file`. A browser has no files.

#[cfg(not(target_family = "wasm"))]
pub use native::{read_file, write_file};

#[cfg(not(target_family = "wasm"))]
mod native {
    //! Both call the operating system.

    use std::io::Write;
    use std::path::Path;

    use crate::error::{Error, Result};
    use crate::files;

    /// The contents of the file at `filename`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// let path = std::env::temp_dir().join("wgrad-io-example");
    /// wgrad::io::write_file(&path, b"cat")?;
    /// assert_eq!(wgrad::io::read_file(&path)?, b"cat");
    /// # let _ = std::fs::remove_file(&path);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`], which names the file, if it cannot be read, or is a folder or a pipe.
    pub fn read_file(filename: impl AsRef<Path>) -> Result<Vec<u8>> {
        let path = filename.as_ref();
        files::read(path).map_err(|error| Error::io(path, error))
    }

    /// Writes `contents` to the file at `filename` and creates missing folders. It replaces an existing file in one
    /// step, so that no reader sees half of it.
    ///
    /// # Errors
    /// [`Error::Io`], which names the file, if it cannot be written.
    pub fn write_file(filename: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> Result<()> {
        let path = filename.as_ref();
        let write = || {
            if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                files::make_folder(folder)?;
            }
            files::replace(path, |file| file.write_all(contents.as_ref()))
        };
        write().map_err(|error| Error::io(path, error))
    }
}
