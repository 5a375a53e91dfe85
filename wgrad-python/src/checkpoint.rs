//! Checkpoints in TensorFlow's format.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use wgrad::Trackable;
use wgrad::train::Checkpoint;

use crate::error::{Raise, invalid};
use crate::layer::part_of;

/// `tf.train.Checkpoint`: named objects, and the number of saves.
#[pyclass(frozen, module = "wgrad")]
pub struct NativeCheckpoint {
    parts: Vec<(String, Py<PyAny>)>,
    saves: AtomicU64,
}

impl NativeCheckpoint {
    fn with<T>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&Checkpoint<'_>) -> wgrad::Result<T> + Send,
    ) -> PyResult<T>
    where
        T: Send,
    {
        let mut parts: Vec<(&str, Box<dyn Trackable>)> = Vec::new();
        for (name, part) in &self.parts {
            let part = part_of(part.bind(py)).ok_or_else(|| {
                invalid(format!("Checkpoint: '{name}' has no variables; a checkpoint holds models, layers, optimizers and variables."))
            })?;
            parts.push((name, part));
        }
        py.detach(|| {
            let mut checkpoint =
                Checkpoint::new().with_save_counter(self.saves.load(Ordering::Relaxed));
            for (name, part) in &parts {
                checkpoint = checkpoint.with(name, &**part);
            }
            let result = f(&checkpoint);
            self.saves.store(checkpoint.save_counter(), Ordering::Relaxed);
            result
        })
        .raised()
    }
}

#[pymethods]
impl NativeCheckpoint {
    #[new]
    fn new(parts: Vec<(String, Py<PyAny>)>) -> Self {
        NativeCheckpoint { parts, saves: AtomicU64::new(0) }
    }

    #[getter]
    fn save_counter(&self) -> u64 {
        self.saves.load(Ordering::Relaxed)
    }

    fn save(&self, py: Python<'_>, prefix: &str) -> PyResult<String> {
        let path = self.with(py, |checkpoint| checkpoint.save(prefix))?;
        Ok(path.to_string_lossy().into_owned())
    }

    fn write(&self, py: Python<'_>, prefix: &str) -> PyResult<String> {
        let path = self.with(py, |checkpoint| checkpoint.write(prefix))?;
        Ok(path.to_string_lossy().into_owned())
    }

    /// Restores, and returns the names that the file has and the program lacks, and the other way round.
    fn restore(
        &self,
        py: Python<'_>,
        prefix: &str,
        counts: bool,
    ) -> PyResult<(Vec<String>, Vec<String>)> {
        self.with(py, |checkpoint| {
            let status = if counts { checkpoint.restore(prefix) } else { checkpoint.read(prefix) }?;
            let names = (status.unused().to_vec(), status.missing().to_vec());
            status.expect_partial();
            Ok(names)
        })
    }
}
