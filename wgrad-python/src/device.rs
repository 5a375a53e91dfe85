//! Devices and the global seed.

use std::cell::RefCell;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::Raise;

/// `tf.random.set_seed`.
#[pyfunction]
pub fn set_seed(seed: u64) {
    wgrad::random::set_seed(seed);
}

/// The names of the physical devices with their kinds and adapters.
#[pyfunction]
#[pyo3(signature = (kind=None))]
pub fn devices(py: Python<'_>, kind: Option<&str>) -> PyResult<Vec<(String, String)>> {
    let found = py.detach(|| wgrad::config::list_physical_devices(kind)).raised()?;
    Ok(found
        .iter()
        .map(|device| (device.name().to_string(), device.device_type().to_string()))
        .collect())
}

/// Waits until the current device has computed everything.
#[pyfunction]
pub fn synchronize(py: Python<'_>) -> PyResult<()> {
    py.detach(|| wgrad::Device::current()?.synchronize()).raised()
}

/// The adapter's name, and counts of what the current device holds: bytes, buffers, plans and pipelines.
#[pyfunction]
pub fn stats() -> PyResult<(String, u64, u64, u64, u64)> {
    let device = wgrad::Device::current().raised()?;
    let stats = device.stats();
    Ok((
        device.adapter().to_string(),
        stats.live_bytes,
        stats.buffers,
        stats.plan_misses,
        stats.pipelines,
    ))
}

/// `tf.device`: new tensors of the thread are made on a device between `enter` and `exit`.
#[pyclass(unsendable, module = "wgrad")]
pub struct DeviceScope {
    device: wgrad::Device,
    open: RefCell<Vec<wgrad::DeviceScope>>,
}

#[pymethods]
impl DeviceScope {
    #[new]
    fn new(py: Python<'_>, name: &str) -> PyResult<Self> {
        crate::process::check()?;
        let device = py.detach(|| wgrad::device(name)).raised()?;
        Ok(DeviceScope { device, open: RefCell::default() })
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        let this = slf.borrow();
        this.open.borrow_mut().push(this.device.enter());
        drop(this);
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, _error: &Bound<'_, PyTuple>) {
        self.open.borrow_mut().pop();
    }

    #[getter]
    fn name(&self) -> Option<String> {
        self.device.name()
    }
}
