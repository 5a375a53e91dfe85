//! Event files for TensorBoard.

use std::cell::RefCell;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use wgrad::summary;

use crate::arrays::to_tensor;
use crate::error::Raise;

/// A writer of event files, which is the default one of its thread between `enter` and `exit`.
#[pyclass(unsendable, module = "wgrad")]
pub struct SummaryWriter {
    writer: summary::FileWriter,
    open: RefCell<Vec<summary::DefaultWriter>>,
}

#[pymethods]
impl SummaryWriter {
    #[new]
    fn new(logdir: &str) -> PyResult<Self> {
        Ok(SummaryWriter {
            writer: summary::create_file_writer(logdir).raised()?,
            open: RefCell::default(),
        })
    }

    fn as_default(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        let this = slf.borrow();
        this.open.borrow_mut().push(this.writer.as_default());
        drop(this);
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, _error: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.open.borrow_mut().pop();
        self.flush()
    }

    fn flush(&self) -> PyResult<()> {
        self.writer.flush().raised()
    }
}

/// Writes a number. Returns whether there is a default writer.
#[pyfunction]
pub fn summary_scalar(name: &str, data: &Bound<'_, PyAny>, step: u64) -> PyResult<bool> {
    summary::scalar(name, &to_tensor(data, Some(wgrad::DType::F32))?, step).raised()
}

/// Writes the distribution of values. Returns whether there is a default writer.
#[pyfunction]
pub fn summary_histogram(
    name: &str,
    data: &Bound<'_, PyAny>,
    step: u64,
    buckets: usize,
) -> PyResult<bool> {
    let options = summary::HistogramOptions::new().buckets(buckets);
    summary::histogram_with(name, &to_tensor(data, None)?, step, options).raised()
}

/// Writes images `[N,H,W,C]`. Returns whether there is a default writer.
#[pyfunction]
pub fn summary_image(
    name: &str,
    data: &Bound<'_, PyAny>,
    step: u64,
    max_outputs: usize,
) -> PyResult<bool> {
    let options = summary::MediaOptions::new().max_outputs(max_outputs);
    summary::image_with(name, &to_tensor(data, None)?, step, options).raised()
}

/// Writes sounds `[N,T,C]`. Returns whether there is a default writer.
#[pyfunction]
pub fn summary_audio(
    name: &str,
    data: &Bound<'_, PyAny>,
    sample_rate: u32,
    step: u64,
    max_outputs: usize,
) -> PyResult<bool> {
    let options = summary::MediaOptions::new().max_outputs(max_outputs);
    summary::audio_with(name, &to_tensor(data, None)?, sample_rate, step, options).raised()
}

/// Writes a text. Returns whether there is a default writer.
#[pyfunction]
pub fn summary_text(name: &str, data: String, step: u64) -> PyResult<bool> {
    summary::text(name, data, step).raised()
}
