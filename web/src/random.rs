//! Random tensors and the seed of the global generator.

use wasm_bindgen::prelude::*;

use crate::args;
use crate::error::{Result, bad_type};
#[cfg(feature = "ops")]
use crate::tensor::Tensor;

/// Seeds the global generator, so that initial weights, dropout and the order of examples are the same at every run. A native
/// program draws the same numbers.
#[wasm_bindgen(js_name = setSeed)]
pub fn set_seed(seed: f64) -> Result<()> {
    match args::whole(seed) {
        Some(whole) => wgrad::random::set_seed(whole as u64),
        None => {
            return Err(bad_type(format!(
                "setSeed: {} is not a whole number from 0 to 4294967295.",
                args::show_number(seed)
            )));
        }
    }
    Ok(())
}

#[cfg(feature = "ops")]
/// Normally distributed numbers from the global generator; by default with mean 0 and deviation 1.
#[wasm_bindgen(js_name = randomNormal)]
pub fn random_normal(
    #[wasm_bindgen(unchecked_param_type = "readonly number[]")] shape: &JsValue,
    mean: Option<f32>,
    deviation: Option<f32>,
) -> Result<Tensor> {
    let unit = wgrad::random::global().normal(args::shape("randomNormal", shape)?)?;
    let (mean, deviation) = (mean.unwrap_or(0.0), deviation.unwrap_or(1.0));
    let scaled = if deviation == 1.0 { unit } else { unit.multiply(deviation)? };
    Ok(Tensor::new(if mean == 0.0 { scaled } else { scaled.add(mean)? }))
}

#[cfg(feature = "ops")]
/// Uniformly distributed numbers between `low` and `high` (by default 0 and 1) from the global generator.
#[wasm_bindgen(js_name = randomUniform)]
pub fn random_uniform(
    #[wasm_bindgen(unchecked_param_type = "readonly number[]")] shape: &JsValue,
    low: Option<f32>,
    high: Option<f32>,
) -> Result<Tensor> {
    let shape = args::shape("randomUniform", shape)?;
    let (low, high) = (low.unwrap_or(0.0), high.unwrap_or(1.0));
    Ok(Tensor::new(
        wgrad::random::global()
            .uniform_with(shape, wgrad::random::UniformOptions::new().minval(low).maxval(high))?,
    ))
}
