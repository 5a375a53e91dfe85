//! Devices and the global seed.

use std::cell::RefCell;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use wgrad::distribute::{MirroredStrategy, PerReplica, ReduceOp, StrategyScope};

use crate::arrays::to_tensor;
use crate::error::{Raise, invalid, keep};
use crate::interpreter::{Release, attached};
use crate::tensor::Tensor;

/// `tf.random.set_seed`.
#[pyfunction]
pub fn set_seed(seed: u64) {
    wgrad::random::set_seed(seed);
}

/// The names of the physical devices with their kinds and adapters.
#[pyfunction]
#[pyo3(signature = (kind=None))]
pub fn devices(py: Python<'_>, kind: Option<&str>) -> PyResult<Vec<(String, String)>> {
    let found = py.released(|| wgrad::config::list_physical_devices(kind)).raised()?;
    Ok(found
        .iter()
        .map(|device| (device.name().to_string(), device.device_type().to_string()))
        .collect())
}

/// The names and kinds of the logical devices.
#[pyfunction]
#[pyo3(signature = (kind=None))]
pub fn logical_devices(py: Python<'_>, kind: Option<&str>) -> PyResult<Vec<(String, String)>> {
    let found = py.released(|| wgrad::config::list_logical_devices(kind)).raised()?;
    Ok(found
        .iter()
        .map(|device| (device.name().to_string(), device.device_type().to_string()))
        .collect())
}

/// Makes several logical devices of a physical one, which has not been used yet: a limit of memory in MB, or none, for each.
#[pyfunction]
pub fn configure_device(py: Python<'_>, name: &str, limits: Vec<Option<u64>>) -> PyResult<()> {
    use wgrad::config::{self, LogicalDeviceConfiguration};
    crate::process::check()?;
    let configure = || -> wgrad::Result<()> {
        let devices = config::list_physical_devices(None)?;
        let device = devices.iter().find(|device| device.name() == name);
        let device = device.ok_or_else(|| {
            wgrad::Error::Data(format!("config: there is no physical device '{name}'.").into())
        })?;
        let one = |limit: &Option<u64>| match limit {
            Some(limit) => LogicalDeviceConfiguration::new().memory_limit_mb(*limit),
            None => LogicalDeviceConfiguration::new(),
        };
        let list: Vec<_> = limits.iter().map(one).collect();
        config::set_logical_device_configuration(device, &list)
    };
    py.released(configure).raised()
}

/// `tf.distribute.MirroredStrategy`.
#[pyclass(frozen, module = "wgrad")]
pub struct NativeStrategy(MirroredStrategy);

#[pymethods]
impl NativeStrategy {
    #[new]
    #[pyo3(signature = (devices=None))]
    fn new(py: Python<'_>, devices: Option<Vec<String>>) -> PyResult<Self> {
        crate::process::check()?;
        let made = py.released(|| match devices {
            Some(names) => MirroredStrategy::of(&names),
            None => MirroredStrategy::new(),
        });
        made.map(NativeStrategy).raised()
    }

    #[getter]
    fn replicas(&self) -> usize {
        self.0.num_replicas_in_sync()
    }

    /// Calls `step` in every replica, with its own arguments, and returns the results.
    fn run(
        &self,
        py: Python<'_>,
        step: Py<PyAny>,
        arguments: Vec<Py<PyTuple>>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let run = |replica: usize| {
            attached(|py| step.call1(py, arguments[replica].bind(py).clone()).map_err(keep))
        };
        let replicas = PerReplica::new((0..arguments.len()).collect());
        Ok(py.released(|| self.0.run(run, replicas)).raised()?.into_values())
    }

    /// The parts of a batch on the devices of the replicas.
    fn split(&self, py: Python<'_>, batch: &Bound<'_, PyAny>) -> PyResult<Vec<Tensor>> {
        let batch = to_tensor(batch, None)?;
        let parts = py.released(|| self.0.split(&batch)).raised()?;
        Ok(parts.into_values().into_iter().map(Tensor).collect())
    }

    /// The values of all replicas as one: `sum` or `mean`.
    #[pyo3(signature = (op, values, axis=None))]
    fn reduce(
        &self,
        py: Python<'_>,
        op: &str,
        values: Vec<Bound<'_, PyAny>>,
        axis: Option<i32>,
    ) -> PyResult<Tensor> {
        let op = reduction(op)?;
        let values = values.iter().map(|x| to_tensor(x, None)).collect::<PyResult<Vec<_>>>()?;
        py.released(|| self.0.reduce(op, &PerReplica::new(values), axis)).map(Tensor).raised()
    }

    fn gather(&self, py: Python<'_>, values: Vec<Bound<'_, PyAny>>, axis: i32) -> PyResult<Tensor> {
        let values = values.iter().map(|x| to_tensor(x, None)).collect::<PyResult<Vec<_>>>()?;
        py.released(|| self.0.gather(&PerReplica::new(values), axis)).map(Tensor).raised()
    }

    fn enter(&self) -> StrategyTime {
        StrategyTime(RefCell::new(Some(self.0.enter())))
    }
}

fn reduction(op: &str) -> PyResult<ReduceOp> {
    match op.to_lowercase().as_str() {
        "sum" => Ok(ReduceOp::Sum),
        "mean" => Ok(ReduceOp::Mean),
        _ => Err(invalid(format!("reduce: the operation is {op:?}; it must be 'SUM' or 'MEAN'."))),
    }
}

/// The number of this thread's replica and how many there are; `None` outside of `run`.
#[pyfunction]
pub fn replica() -> Option<(usize, usize)> {
    let context = wgrad::distribute::get_replica_context()?;
    Some((context.replica_id_in_sync_group(), context.num_replicas_in_sync()))
}

/// The sum or the mean of a value over all replicas, which all make this call.
#[pyfunction]
pub fn all_reduce(py: Python<'_>, op: &str, value: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let (op, value) = (reduction(op)?, to_tensor(value, None)?);
    py.released(|| match wgrad::distribute::get_replica_context() {
        Some(context) => context.all_reduce(op, &value),
        None => Err(wgrad::Error::Check(
            "all_reduce: this is no replica; call it in strategy.run.".into(),
        )),
    })
    .map(Tensor)
    .raised()
}

/// The time between `enter` and `leave`.
#[pyclass(unsendable, module = "wgrad")]
pub struct StrategyTime(RefCell<Option<StrategyScope>>);

#[pymethods]
impl StrategyTime {
    fn leave(&self) {
        drop(self.0.take());
    }
}

/// Waits until the current device has computed everything.
#[pyfunction]
pub fn synchronize(py: Python<'_>) -> PyResult<()> {
    py.released(|| wgrad::Device::current()?.synchronize()).raised()
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
        let device = py.released(|| wgrad::device(name)).raised()?;
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
