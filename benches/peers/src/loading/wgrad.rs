//! wgrad's side: a function around the model, with the plan that an earlier process has saved.

use std::path::Path;
use std::time::Instant;

use wgrad::saved_model::SavedValue;
use wgrad::{DType, Device, HostArray, Tensor};

use super::child::{Parts, Times, steady};
use super::tensors::{Arrays, near, numbers};
use crate::Result;

/// The adapter, its driver and its interface.
pub fn adapter() -> Result<(String, String, String)> {
    let device = Device::current()?;
    let adapter = device.adapter();
    Ok((adapter.name.clone(), adapter.driver.clone(), adapter.backend.to_string()))
}

/// Loads and runs a model. With `plan`, it runs by the saved plan, or saves one at the end if there is none.
pub fn time(file: &Path, input: &HostArray<'static>, plan: bool) -> Result<Times> {
    let start = Instant::now();
    Device::current()?;
    let device = start.elapsed();

    let start = Instant::now();
    let model = wgrad::onnx::load(file)?;
    let load = start.elapsed();

    let start = Instant::now();
    let name = file.file_stem().ok_or("the model has no name")?.to_string_lossy().into_owned();
    let function = wgrad::function(move |x: Tensor| model.predict(&x));
    let x = input.to_tensor()?;
    let concrete = function.get_concrete_function((x,))?;
    let kept = plan && concrete.load_plan(&name)?;
    let trace = start.elapsed();
    let before = Device::current()?.stats();
    let call = || -> Result<Vec<f32>> {
        // Each call uploads its input, as the other libraries take theirs from the host.
        let results = concrete.call(&[input.to_tensor()?])?;
        Ok(results[0].to_vec::<f32>()?)
    };
    let result = call()?;
    let first = start.elapsed();
    let after = Device::current()?.stats();
    let parts = Parts {
        trace,
        planning: after.planning - before.planning,
        plans: after.plan_misses - before.plan_misses,
        pipelines: after.pipelines - before.pipelines,
    };

    let steady = steady(|| call().map(drop))?;
    if plan && !kept {
        concrete.save_plan(&name)?;
    }
    let result = result.into_iter().map(f64::from).collect();
    let (device, parts) = (Some(device), Some(parts));
    Ok(Times { device, load, first, steady, version: None, kept, parts, result })
}

/// Runs a node test.
pub fn node(file: &Path, arrays: &Arrays) -> Result<()> {
    let model = wgrad::onnx::load(file)?;
    let mut inputs = Vec::new();
    for (name, array) in arrays {
        let Some(name) = name.strip_prefix("in.") else { continue };
        // Integers as the host has them, so that they can be sizes; floats on the device.
        let value = match array.dtype().tensor_dtype().is_some_and(DType::is_float) {
            true => SavedValue::Tensor(array.to_tensor()?),
            false => SavedValue::Host(array.clone()),
        };
        inputs.push((name.to_owned(), value));
    }
    let results = model.call(inputs)?;
    for (name, expected) in arrays {
        let Some(name) = name.strip_prefix("out.") else { continue };
        let actual = results.value(name)?.to_host_array()?;
        near(actual.shape(), &numbers(&actual)?, expected)?;
    }
    Ok(())
}
