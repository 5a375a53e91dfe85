//! Checkpoints in TensorFlow's format.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use wgrad::Trackable;
use wgrad::train::{
    Checkpoint, CheckpointManager, CheckpointReader, CheckpointSaveOptions, load_checkpoint,
};

use crate::error::{Raise, invalid};
use crate::host_layer::numpy;
use crate::interpreter::Release;
use crate::parts::part_of;

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
        py.released(|| {
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

/// How a `tf.train.CheckpointManager` keeps checkpoints: its folder, how many, for how many hours one, and the name.
#[derive(FromPyObject)]
pub struct Keeping {
    #[pyo3(item)]
    directory: String,
    #[pyo3(item)]
    max_to_keep: Option<usize>,
    #[pyo3(item)]
    every_n_hours: Option<f64>,
    #[pyo3(item)]
    checkpoint_name: String,
}

impl Keeping {
    fn manager<'a>(&self, checkpoint: &'a Checkpoint<'a>) -> wgrad::Result<CheckpointManager<'a>> {
        let manager = CheckpointManager::new(checkpoint, &self.directory)?
            .max_to_keep(self.max_to_keep)
            .checkpoint_name(&self.checkpoint_name);
        Ok(match self.every_n_hours {
            Some(hours) => manager.keep_checkpoint_every_n_hours(hours),
            None => manager,
        })
    }
}

fn text(path: PathBuf) -> String {
    path.to_string_lossy().into_owned()
}

/// The newest complete checkpoint of a folder.
#[pyfunction]
pub fn latest_checkpoint(directory: &str) -> PyResult<Option<String>> {
    Ok(wgrad::train::latest_checkpoint(directory).raised()?.map(text))
}

/// The names, shapes, dtypes and values of a checkpoint's tensors.
#[pyclass(frozen, module = "wgrad")]
pub struct NativeCheckpointReader(CheckpointReader);

#[pymethods]
impl NativeCheckpointReader {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.released(|| load_checkpoint(path)).raised().map(NativeCheckpointReader)
    }

    fn shapes(&self) -> BTreeMap<String, Vec<usize>> {
        self.0.get_variable_to_shape_map()
    }

    fn dtypes(&self) -> BTreeMap<String, &'static str> {
        let dtypes = self.0.get_variable_to_dtype_map();
        dtypes.into_iter().map(|(name, dtype)| (name, dtype.tensorflow_name())).collect()
    }

    fn has_tensor(&self, name: &str) -> bool {
        self.0.has_tensor(name)
    }

    fn get_tensor<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        numpy(py, &py.released(|| self.0.get_tensor(name)).raised()?)
    }
}

#[pymethods]
impl NativeCheckpoint {
    /// The checkpoints that a manager keeps, oldest first, and the newest.
    fn kept(&self, py: Python<'_>, keeping: Keeping) -> PyResult<(Vec<String>, Option<String>)> {
        self.with(py, |checkpoint| {
            let manager = keeping.manager(checkpoint)?;
            let kept = manager.checkpoints().into_iter().map(text).collect();
            Ok((kept, manager.latest_checkpoint().map(text)))
        })
    }

    /// Saves as a manager does.
    #[pyo3(signature = (keeping, number=None))]
    fn keep(
        &self,
        py: Python<'_>,
        keeping: Keeping,
        number: Option<u64>,
    ) -> PyResult<Option<String>> {
        self.with(py, |checkpoint| {
            let mut options = CheckpointSaveOptions::new();
            if let Some(number) = number {
                options = options.checkpoint_number(number);
            }
            Ok(keeping.manager(checkpoint)?.save_with(options)?.map(text))
        })
    }

    /// Restores the newest checkpoint of a manager's folder.
    fn restore_newest(&self, py: Python<'_>, keeping: Keeping) -> PyResult<Option<String>> {
        self.with(py, |checkpoint| {
            Ok(keeping.manager(checkpoint)?.restore_or_initialize()?.map(text))
        })
    }

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
