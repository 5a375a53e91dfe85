//! Computes something small with the library that the features select, and prints the process's resident memory: when it starts, once
//! a device is open or a model loaded, and after the result.

use std::error::Error;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The program of a library: calls its argument when a device is open or a model loaded, and returns a number of the result.
type Program = fn(&mut dyn FnMut()) -> Result<f32>;

/// Rows and columns of the matrices, which are full of ones.
#[cfg(any(feature = "wgrad", feature = "burn", feature = "candle"))]
const SIDE: usize = 64;

#[cfg(feature = "wgrad")]
const PROGRAM: Program = |ready| {
    let device = wgrad::Device::new()?;
    ready();
    wgrad::Device::set_default(&device);
    let x = wgrad::Tensor::ones([SIDE, SIDE])?;
    Ok(x.matmul(&x)?.to_vec::<f32>()?[0])
};

#[cfg(feature = "burn")]
const PROGRAM: Program = |ready| {
    use burn::tensor::{Device, DeviceKind, Tensor, wgpu::WgpuBackend};
    let options = Device::wgpu_options().device_kind(DeviceKind::DefaultDevice);
    let (device, _) = options.graphics_api(WgpuBackend::Auto).init_with_setup()?;
    ready();
    let x = Tensor::<2>::ones([SIDE, SIDE], &device);
    let y = x.clone().matmul(x).into_data();
    Ok(y.to_vec::<f32>().map_err(|error| format!("{error:?}"))?[0])
};

#[cfg(feature = "candle")]
const PROGRAM: Program = |ready| {
    use candle_core::{DType, Device, Tensor};
    let device = Device::Cpu;
    ready();
    let x = Tensor::ones((SIDE, SIDE), DType::F32, &device)?;
    Ok(x.matmul(&x)?.to_vec2::<f32>()?[0][0])
};

/// The model, and a batch for it.
#[cfg(any(feature = "wgrad-onnx", feature = "tract", feature = "ort"))]
const MODEL: (&str, [usize; 2]) = ("../../tests/data/onnx/mlp.onnx", [2, 6]);

#[cfg(feature = "wgrad-onnx")]
const PROGRAM: Program = |ready| {
    let model = wgrad::onnx::load(MODEL.0)?;
    ready();
    let x = wgrad::Tensor::ones(MODEL.1)?;
    Ok(model.predict(x)?.to_vec::<f32>()?[0])
};

#[cfg(feature = "tract")]
const PROGRAM: Program = |ready| {
    use tract_onnx::prelude::*;
    let model = onnx().model_for_path(MODEL.0)?.with_input_fact(0, f32::fact(MODEL.1).into())?;
    let plan = model.into_optimized()?.into_runnable()?;
    ready();
    let x = Tensor::zero::<f32>(&MODEL.1)?;
    let results = plan.run(tvec!(x.into()))?;
    Ok(results[0].try_as_plain_ram()?.as_slice::<f32>()?[0])
};

#[cfg(feature = "ort")]
const PROGRAM: Program = |ready| {
    use ort::session::Session;
    use ort::value::Tensor;
    // ONNX Runtime's library: that of ORT_DYLIB_PATH.
    let environment = ort::init().build()?;
    let mut session = Session::builder(&environment)?.commit_from_file(MODEL.0)?;
    ready();
    let x = Tensor::from_array((MODEL.1, vec![1f32; MODEL.1[0] * MODEL.1[1]]))?;
    let results = session.run(ort::inputs![x])?;
    let (_, numbers) = results[0].try_extract_tensor::<f32>()?;
    Ok(numbers[0])
};

#[cfg(not(any(
    feature = "wgrad",
    feature = "burn",
    feature = "candle",
    feature = "wgrad-onnx",
    feature = "tract",
    feature = "ort"
)))]
const PROGRAM: Program = |_| Err("no library is selected; `cargo xtask footprint` does it".into());

fn main() -> Result<()> {
    let start = Instant::now();
    println!("start {}", resident()?);
    let mut failed = None;
    let result = PROGRAM(&mut || match resident() {
        Ok(bytes) => println!("ready {bytes} after {:?}", start.elapsed()),
        Err(error) => failed = Some(error),
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    println!("done {} after {:?}; the result is {result}", resident()?, start.elapsed());
    Ok(())
}

/// The resident memory of this process in bytes.
fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()).ok_or("no VmRSS")?;
    Ok(kilobytes.parse::<u64>()? * 1024)
}
