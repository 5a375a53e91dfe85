//! A function as a JavaScript module, its kernels and its weights: a model that needs no library.

use std::path::Path;

use serde_json::{Value, json};

use super::model::{Model, Place};
use crate::device::Access;
use crate::dtype::DType;
use crate::error::Result;
use crate::files::io;
use crate::function::ConcreteFunction;
use crate::function::frozen::FrozenFunction;
use crate::plan::portable::{PortableBinding, PortablePlan};
use crate::trackable::file;

/// The program that runs the model; the same for each.
const MODULE: &str = include_str!("webgpu/model.mjs");
/// Its types, where the words `_Inputs`, `_Results` and `_Buffers` stand for the model's.
const TYPES: &str = include_str!("webgpu/model.d.ts");

/// The version of `model.json`.
const VERSION: u32 = 1;

impl ConcreteFunction {
    /// Writes the function as a model for JavaScript that needs no library: a module of 15 kB runs it in every browser with WebGPU, in
    /// workers, and in Node.js where that has WebGPU. Needs the feature `saved-model`.
    ///
    /// The folder gets `model.mjs`, the module; `model.d.ts`, its types; `model.json`, the kernels in WGSL and the order in which they
    /// run; and `model.safetensors`, the values that variables and captured tensors have now. Existing files of
    /// these names are replaced.
    ///
    /// ```no_run
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use wgrad::keras::layers::{Dense, Layer};
    /// use wgrad::keras::{INFERENCE, Sequential};
    ///
    /// let model = Sequential::new().add(Dense::new(64)).add(Dense::new(10));
    /// let predict = tf::function(move |pixels: tf::Tensor| model.call(&pixels, INFERENCE));
    /// let one = predict.get_concrete_function((tf::Tensor::zeros([1, 784])?,))?;
    /// one.export_webgpu("site/digits")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A page then runs it:
    ///
    /// ```js
    /// import { load } from './digits/model.mjs';
    /// const model = await load();
    /// const logits = await model(pixels); // A Float32Array of 784 numbers, or a GPUBuffer; returns a Float32Array.
    /// ```
    ///
    /// Inputs have the sizes of the trace. The kernels are those for any adapter: they use no subgroups, and `f16` only if a tensor is
    /// `f16`.
    ///
    /// # Errors
    /// [`Error::Trace`](crate::Error::Trace) if runs differ from each other: if the function assigns variables, draws random numbers, prints, or has
    /// branches and loops that the host decides at each run. [`Error::Io`](crate::Error::Io) if a file cannot be
    /// written. Those of reading the variables,
    /// and of a plan that cannot run on every device.
    pub fn export_webgpu(&self, folder: impl AsRef<Path>) -> Result<()> {
        let folder = folder.as_ref();
        // The plan comes last: the files before it also fit the plan that it replaces, if only the weights have changed.
        for (name, contents) in files(&self.frozen("export_webgpu")?, self)? {
            io::write_file(folder.join(name), contents)?;
        }
        Ok(())
    }
}

/// The files' names and contents.
fn files(
    frozen: &FrozenFunction,
    function: &ConcreteFunction,
) -> Result<[(&'static str, Vec<u8>); 4]> {
    let model = Model::new(frozen, function)?;
    Ok([
        ("model.safetensors", file::to_bytes(&model.weights)?),
        ("model.mjs", MODULE.into()),
        ("model.d.ts", model.types().into_bytes()),
        ("model.json", model.json(&frozen.plan).to_string().into_bytes()),
    ])
}

impl Place {
    fn json(&self) -> Value {
        json!({ "dtype": self.dtype.tensorflow_name(), "shape": self.shape, "buffer": self.buffer })
    }

    /// The class of its values in JavaScript.
    fn array(&self) -> &'static str {
        match self.dtype {
            DType::F32 => "Float32Array",
            DType::F16 => "Uint16Array",
            DType::I32 => "Int32Array",
            DType::U32 => "Uint32Array",
            DType::U8 | DType::Bool => "Uint8Array",
        }
    }
}

impl Model {
    fn json(&self, plan: &PortablePlan) -> Value {
        let access = |access: &Access| match access {
            Access::Read => "read-only-storage",
            Access::Write => "storage",
            Access::Uniform => "uniform",
        };
        let kernels: Vec<Value> = plan
            .kernels
            .iter()
            .map(|kernel| {
                let bindings: Vec<&str> = kernel.accesses.iter().map(access).collect();
                json!({ "bindings": bindings, "wgsl": &*kernel.wgsl })
            })
            .collect();
        let binding = |binding: &PortableBinding| match binding {
            PortableBinding::Storage { buffer, bytes } => {
                json!({ "buffer": self.buffer(*buffer), "size": bytes })
            }
            PortableBinding::Uniform(words) => json!({ "uniform": words }),
        };
        let steps: Vec<Value> = plan
            .steps
            .iter()
            .map(|step| {
                json!({
                    "label": step.label,
                    "kernel": step.kernel,
                    "workgroups": step.workgroups,
                    "bindings": step.bindings.iter().map(binding).collect::<Vec<_>>(),
                })
            })
            .collect();
        let weights: Vec<Value> = self
            .weights
            .iter()
            .zip(&self.places)
            .map(|(weight, place)| {
                let mut json = place.json();
                json["name"] = (&*weight.name).into();
                json
            })
            .collect();
        let features: &[&str] = if plan.f16 { &["shader-f16"] } else { &[] };
        json!({
            "format": "wgrad-webgpu",
            "version": VERSION,
            "generator": concat!("wgrad ", env!("CARGO_PKG_VERSION")),
            "features": features,
            "limits": limits(self.buffers.iter().copied().max().unwrap_or(0), plan),
            "inputs": self.inputs.iter().map(Place::json).collect::<Vec<_>>(),
            "outputs": self.outputs.iter().map(Place::json).collect::<Vec<_>>(),
            "weights": weights,
            "buffers": self.buffers,
            "kernels": kernels,
            "steps": steps,
        })
    }

    /// The module's types.
    fn types(&self) -> String {
        let list = |types: &[String]| match types {
            [one] => one.clone(),
            all => format!("[{}]", all.join(", ")),
        };
        let described = |places: &[Place]| {
            let spec = |place: &Place| {
                let sizes: Vec<String> = place.shape.iter().map(usize::to_string).collect();
                format!("{}[{}]", place.dtype.tensorflow_name(), sizes.join(", "))
            };
            places.iter().map(spec).collect::<Vec<String>>().join(" and ")
        };
        let inputs = match &self.inputs[..] {
            [] => "void | readonly []".to_string(),
            [_] => "Input | readonly [Input]".to_string(),
            all => format!("readonly [{}]", vec!["Input"; all.len()].join(", ")),
        };
        let arrays: Vec<String> =
            self.outputs.iter().map(|place| place.array().to_string()).collect();
        let buffers = vec!["GPUBuffer".to_string(); self.outputs.len()];
        TYPES
            .replace(
                "/** INPUTS */",
                &format!(
                    "/** {}. */",
                    match &self.inputs[..] {
                        [] => "There are none".to_string(),
                        some => described(some),
                    }
                ),
            )
            .replace("/** RESULTS */", &format!("/** {}. */", described(&self.outputs)))
            .replace("_Inputs", &inputs)
            .replace("_Results", &list(&arrays))
            .replace("_Buffers", &list(&buffers))
    }
}

/// What a device must have beyond the least that WebGPU has anywhere; by the names in JavaScript.
fn limits(largest_buffer: u64, plan: &PortablePlan) -> Value {
    let least = wgpu::Limits::downlevel_defaults();
    let limits = [
        ("maxBufferSize", largest_buffer, least.max_buffer_size),
        (
            "maxStorageBufferBindingSize",
            plan.largest_binding(),
            least.max_storage_buffer_binding_size,
        ),
        (
            "maxStorageBuffersPerShaderStage",
            plan.most_storage_buffers() as u64,
            u64::from(least.max_storage_buffers_per_shader_stage),
        ),
    ];
    let beyond = limits.into_iter().filter(|(_, needed, least)| needed > least);
    beyond.map(|(name, needed, _)| (name.to_string(), Value::from(needed))).collect()
}

#[cfg(test)]
#[path = "webgpu_tests.rs"]
mod tests;
