//! A function as a Rust source file, with its kernels, and its weights: a model that needs only wgpu.

use std::collections::HashMap;
use std::path::Path;

use super::model::{Model, Place};
use crate::device::Access;
use crate::dtype::DType;
use crate::error::Result;
use crate::files::io;
use crate::function::ConcreteFunction;
use crate::plan::portable::{PortableBinding, PortablePlan};
use crate::trackable::file;

/// The file without the tables. The words with an underscore stand for the model's version, signature, and the parts of `run`.
const SOURCE: &str = include_str!("rust_source/model.rs.txt");

impl ConcreteFunction {
    /// Writes the function as a Rust source file that needs no crate but `wgpu`, in the version of
    /// [`interop::wgpu`](crate::interop::wgpu): `model.rs`, and next to it `model.safetensors`, with the values that variables and
    /// captured tensors have now. Needs the feature `saved-model`.
    ///
    /// ```no_run
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let f = tf::function(|x: tf::Tensor| x.square()?.reduce_sum(()));
    /// let concrete = f.get_concrete_function((tf::Tensor::zeros([100])?,))?;
    /// concrete.export_wgpu("src/sum_of_squares")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// An application then includes it, and passes its device:
    ///
    /// ```text
    /// #[path = "sum_of_squares/model.rs"]
    /// mod sum_of_squares;
    ///
    /// let model = sum_of_squares::Model::new(&device, &queue)?;
    /// let sum: Vec<f32> = model.run(&numbers)?;
    /// ```
    ///
    /// `run` waits for the results. `encode` records the kernels into an encoder of the application instead, which writes the buffers
    /// `input` and reads the buffers `output`.
    ///
    /// # Errors
    /// As [`export_webgpu`](Self::export_webgpu).
    pub fn export_wgpu(&self, folder: impl AsRef<Path>) -> Result<()> {
        let frozen = self.frozen("export_wgpu")?;
        let model = Model::new(&frozen, self)?;
        let weights = file::to_bytes(&model.weights)?;
        let source = source(&model, &frozen.plan, &weights)?;
        let folder = folder.as_ref();
        // `Model::new` refuses weights of another length.
        io::write_file(folder.join("model.safetensors"), weights)?;
        io::write_file(folder.join("model.rs"), source)
    }
}

impl Place {
    /// The Rust type of its elements; `f16` is its bits.
    fn element(&self) -> &'static str {
        match self.dtype {
            DType::F32 => "f32",
            DType::F16 => "u16",
            DType::I32 => "i32",
            DType::U32 => "u32",
            DType::U8 => "u8",
            DType::Bool => "bool",
        }
    }

    fn literal(&self) -> String {
        let Place { dtype, shape, buffer } = self;
        format!("Place {{ dtype: \"{dtype}\", shape: &{shape:?}, buffer: {buffer} }}")
    }

    /// As in a signature: `f32[1, 784]`.
    fn described(&self) -> String {
        format!("{}{:?}", self.dtype, self.shape)
    }
}

/// The source file.
fn source(model: &Model, plan: &PortablePlan, weights: &[u8]) -> Result<String> {
    let list =
        |places: &[Place]| places.iter().map(Place::described).collect::<Vec<_>>().join(", ");
    let signature = format!("({}) -> ({})", list(&model.inputs), list(&model.outputs));
    let inputs = || (0..).zip(&model.inputs);
    let parameters: Vec<String> =
        inputs().map(|(at, place)| format!(", input_{at}: &[{}]", place.element())).collect();
    let bytes: Vec<String> = inputs().map(|(at, place)| input_bytes(place, at)).collect();
    let results: Vec<String> =
        (0..).zip(&model.outputs).map(|(at, place)| result_values(place, at)).collect();
    let types: Vec<String> =
        model.outputs.iter().map(|place| format!("Vec<{}>", place.element())).collect();
    let tuple = |parts: &[String]| match parts {
        [one] => one.clone(),
        all => format!("({})", all.join(", ")),
    };
    let parts = [
        ("_VERSION", env!("CARGO_PKG_VERSION").to_string()),
        ("_SIGNATURE", signature),
        ("_PARAMETERS", parameters.concat()),
        ("_TYPES", tuple(&types)),
        ("_BYTES", bytes.join(", ")),
        ("_RESULTS", tuple(&results)),
    ];
    let text = parts.iter().fold(SOURCE.to_string(), |text, (name, part)| text.replace(name, part));
    Ok(text + &tables(model, plan, weights)?)
}

/// The expression for an input's bytes, as the device stores them.
fn input_bytes(place: &Place, at: usize) -> String {
    match place.dtype {
        DType::U8 => format!("input_{at}.to_vec()"),
        DType::Bool => {
            format!("input_{at}.iter().flat_map(|x| u32::from(*x).to_le_bytes()).collect()")
        }
        _ => format!("input_{at}.iter().flat_map(|x| x.to_le_bytes()).collect()"),
    }
}

/// The expression for a result's elements.
fn result_values(place: &Place, at: usize) -> String {
    let number = |element: &str, size: usize| {
        let bytes: Vec<String> = (0..size).map(|i| format!("x[{i}]")).collect();
        format!("{element}::from_le_bytes([{}])", bytes.join(", "))
    };
    let (size, number) = match place.dtype {
        DType::U8 => return format!("results[{at}].clone()"),
        DType::Bool => (4, format!("{} != 0", number("u32", 4))),
        DType::F16 => (2, number("u16", 2)),
        _ => (4, number(place.element(), 4)),
    };
    format!("results[{at}].chunks_exact({size}).map(|x| {number}).collect()")
}

/// The model as constants.
fn tables(model: &Model, plan: &PortablePlan, weights: &[u8]) -> Result<String> {
    let places =
        |places: &[Place]| places.iter().map(Place::literal).collect::<Vec<_>>().join(", ");
    let mut text = format!(
        "\nstatic PLAN: Plan = Plan {{\n    inputs: &[{}],\n    outputs: &[{}],\n    weights: &[\n",
        places(&model.inputs),
        places(&model.outputs)
    );
    let named = model.weights.iter().zip(&model.places);
    let place_of: HashMap<&str, &Place> =
        named.map(|(weight, place)| (&*weight.name, place)).collect();
    let parsed = file::parse(weights)?;
    for weight in file::from_bytes(&parsed)? {
        let (place, bytes) = (place_of[&*weight.name], weight.array.bytes());
        let start = bytes.as_ptr() as usize - weights.as_ptr() as usize;
        text += &format!(
            "        Weight {{ name: {:?}, start: {start}, bytes: {}, bool: {}, buffer: {} }},\n",
            weight.name,
            bytes.len(),
            place.dtype == DType::Bool,
            place.buffer
        );
    }
    text += &format!(
        "    ],\n    weight_bytes: {},\n    buffers: &{:?},\n    f16: {},\n    kernels: &[\n",
        weights.len(),
        model.buffers,
        plan.f16
    );
    for kernel in &plan.kernels {
        let access = |access: &Access| match access {
            Access::Read => "Binding::Read",
            Access::Write => "Binding::Write",
            Access::Uniform => "Binding::Uniform",
        };
        let accesses: Vec<&str> = kernel.accesses.iter().map(access).collect();
        text += &format!("        Kernel {{ bindings: &[{}], wgsl: r#\"\n", accesses.join(", "));
        text += &kernel.wgsl;
        text += "\"# },\n";
    }
    text += "    ],\n    steps: &[\n";
    for step in &plan.steps {
        let bound = |binding: &PortableBinding| match binding {
            PortableBinding::Storage { buffer, bytes } => {
                format!("Bound::Storage({}, {bytes})", model.buffer(*buffer))
            }
            PortableBinding::Uniform(words) => format!("Bound::Uniform(&{words:?})"),
        };
        let bound: Vec<String> = step.bindings.iter().map(bound).collect();
        text += &format!(
            "        Step {{ label: {:?}, kernel: {}, workgroups: {:?}, bound: &[{}] }},\n",
            step.label,
            step.kernel,
            step.workgroups,
            bound.join(", ")
        );
    }
    text += "    ],\n};\n";
    Ok(text)
}
