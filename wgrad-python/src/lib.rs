//! The native part of the Python package `wgrad`: tensors, ops by name, tapes, variables, Keras's layers and training.
//!
//! `python/wgrad` contains the package, whose names are TensorFlow's. It passes plain values to this module, which calls the
//! crate. A call that waits for the device or the disk releases the interpreter's lock.

mod arrays;
mod checkpoint;
mod compile;
mod device;
mod directory;
mod error;
mod feature_space;
mod files;
mod fit;
mod function;
mod host_layer;
mod interpreter;
mod layer;
mod model;
mod ops;
mod optimizer;
mod parts;
mod process;
mod python_layer;
mod python_model;
mod random;
mod saved_model;
mod summary;
mod symbol;
mod tape;
mod tensor;
mod variable;

use pyo3::prelude::*;

#[pymodule]
fn _wgrad(module: &Bound<'_, PyModule>) -> PyResult<()> {
    interpreter::begin();
    module.add_class::<tensor::Tensor>()?;
    module.add_class::<variable::Variable>()?;
    module.add_class::<ops::NativeOp>()?;
    module.add_class::<summary::SummaryWriter>()?;
    module.add_function(wrap_pyfunction!(summary::summary_scalar, module)?)?;
    module.add_function(wrap_pyfunction!(summary::summary_histogram, module)?)?;
    module.add_function(wrap_pyfunction!(summary::summary_image, module)?)?;
    module.add_function(wrap_pyfunction!(summary::summary_audio, module)?)?;
    module.add_function(wrap_pyfunction!(summary::summary_text, module)?)?;
    module.add_function(wrap_pyfunction!(random::initial_values, module)?)?;
    module.add_function(wrap_pyfunction!(function::cond, module)?)?;
    module.add_function(wrap_pyfunction!(function::while_loop, module)?)?;
    module.add_function(wrap_pyfunction!(random::random_by, module)?)?;
    module.add_function(wrap_pyfunction!(random::random_categorical, module)?)?;
    module.add_function(wrap_pyfunction!(random::stateless, module)?)?;
    module.add_function(wrap_pyfunction!(random::stateless_by, module)?)?;
    module.add_function(wrap_pyfunction!(function::vectorized_map, module)?)?;
    module.add_function(wrap_pyfunction!(files::decode_image, module)?)?;
    module.add_function(wrap_pyfunction!(files::encode_image, module)?)?;
    module.add_function(wrap_pyfunction!(files::serialize_example, module)?)?;
    module.add_function(wrap_pyfunction!(files::parse_example, module)?)?;
    module.add_function(wrap_pyfunction!(files::tf_records, module)?)?;
    module.add_function(wrap_pyfunction!(files::text_lines, module)?)?;
    module.add_function(wrap_pyfunction!(files::list_files, module)?)?;
    module.add_function(wrap_pyfunction!(directory::image_directory, module)?)?;
    module.add_function(wrap_pyfunction!(directory::text_directory, module)?)?;
    module.add_class::<files::NativeElements>()?;
    module.add_class::<files::NativePass>()?;
    module.add_class::<files::NativeRecordWriter>()?;
    module.add_class::<tape::Tape>()?;
    module.add_class::<device::DeviceScope>()?;
    module.add_class::<device::NativeStrategy>()?;
    module.add_class::<device::StrategyTime>()?;
    module.add_function(wrap_pyfunction!(device::logical_devices, module)?)?;
    module.add_function(wrap_pyfunction!(device::configure_device, module)?)?;
    module.add_class::<layer::NativeLayer>()?;
    module.add_class::<symbol::Symbol>()?;
    module.add_class::<host_layer::NativeHostLayer>()?;
    module.add_class::<feature_space::NativeFeatureSpace>()?;
    module.add_class::<model::NativeModel>()?;
    module.add_class::<optimizer::NativeOptimizer>()?;
    module.add_class::<optimizer::NativeMetric>()?;
    module.add_class::<optimizer::NativeLoss>()?;
    module.add_class::<optimizer::NativeMean>()?;
    module.add_class::<random::NativeGenerator>()?;
    module.add_class::<ops::NativeRegularizer>()?;
    module.add_class::<ops::NativeConstraint>()?;
    module.add_class::<saved_model::NativeSavedModel>()?;
    module.add_class::<saved_model::NativeSavedFunction>()?;
    module.add_class::<saved_model::NativeOnnx>()?;
    module.add_function(wrap_pyfunction!(saved_model::save_saved_model, module)?)?;
    module.add_function(wrap_pyfunction!(saved_model::save_onnx, module)?)?;
    module.add_function(wrap_pyfunction!(checkpoint::latest_checkpoint, module)?)?;
    module.add_class::<fit::Data>()?;
    module.add_class::<function::NativeFunction>()?;
    module.add_class::<checkpoint::NativeCheckpoint>()?;
    module.add_class::<checkpoint::NativeCheckpointReader>()?;
    module.add_function(wrap_pyfunction!(arrays::constant, module)?)?;
    module.add_function(wrap_pyfunction!(random::random, module)?)?;
    module.add_function(wrap_pyfunction!(device::set_seed, module)?)?;
    module.add_function(wrap_pyfunction!(device::replica, module)?)?;
    module.add_function(wrap_pyfunction!(device::all_reduce, module)?)?;
    module.add_function(wrap_pyfunction!(device::devices, module)?)?;
    module.add_function(wrap_pyfunction!(device::synchronize, module)?)?;
    module.add_function(wrap_pyfunction!(device::stats, module)?)?;
    module.add_function(wrap_pyfunction!(symbol::input, module)?)?;
    module.add_function(wrap_pyfunction!(tape::custom_gradient, module)?)?;
    module.add_function(wrap_pyfunction!(model::load, module)?)?;
    module.add_function(wrap_pyfunction!(model::front_of_json, module)?)?;
    module.add_function(wrap_pyfunction!(model::front_into_json, module)?)?;
    module.add_function(wrap_pyfunction!(process::after_fork, module)?)?;
    module.add_function(wrap_pyfunction!(interpreter::at_exit, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
