//! The native part of the Python package `wgrad`: tensors, ops by name, tapes, variables, Keras's layers and training.
//!
//! `python/wgrad` contains the package, whose names are TensorFlow's. It passes plain values to this module, which calls the
//! crate. A call that waits for the device or the disk releases the interpreter's lock.

mod arrays;
mod checkpoint;
mod device;
mod error;
mod fit;
mod function;
mod layer;
mod model;
mod ops;
mod optimizer;
mod process;
mod summary;
mod tape;
mod tensor;
mod variable;

use pyo3::prelude::*;

#[pymodule]
fn _wgrad(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<tensor::Tensor>()?;
    module.add_class::<variable::Variable>()?;
    module.add_class::<ops::NativeOp>()?;
    module.add_class::<summary::SummaryWriter>()?;
    module.add_function(wrap_pyfunction!(summary::summary_scalar, module)?)?;
    module.add_function(wrap_pyfunction!(function::cond, module)?)?;
    module.add_function(wrap_pyfunction!(function::while_loop, module)?)?;
    module.add_class::<tape::Tape>()?;
    module.add_class::<device::DeviceScope>()?;
    module.add_class::<layer::NativeLayer>()?;
    module.add_class::<layer::Symbol>()?;
    module.add_class::<model::NativeModel>()?;
    module.add_class::<optimizer::NativeOptimizer>()?;
    module.add_class::<optimizer::NativeMetric>()?;
    module.add_class::<optimizer::NativeLoss>()?;
    module.add_class::<fit::Data>()?;
    module.add_class::<function::NativeFunction>()?;
    module.add_class::<checkpoint::NativeCheckpoint>()?;
    module.add_function(wrap_pyfunction!(arrays::constant, module)?)?;
    module.add_function(wrap_pyfunction!(ops::names, module)?)?;
    module.add_function(wrap_pyfunction!(ops::random, module)?)?;
    module.add_function(wrap_pyfunction!(device::set_seed, module)?)?;
    module.add_function(wrap_pyfunction!(device::devices, module)?)?;
    module.add_function(wrap_pyfunction!(device::synchronize, module)?)?;
    module.add_function(wrap_pyfunction!(device::stats, module)?)?;
    module.add_function(wrap_pyfunction!(layer::input, module)?)?;
    module.add_function(wrap_pyfunction!(tape::custom_gradient, module)?)?;
    module.add_function(wrap_pyfunction!(model::load, module)?)?;
    module.add_function(wrap_pyfunction!(process::after_fork, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
