//! tract's side. It optimizes a model while it loads it, and needs the values of sizes by then.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tract_onnx::prelude::*;
use tract_onnx::tract_hir::ops::konst::Const;
use wgrad::{HostArray, HostDType};

use super::child::{Times, steady};
use super::tensors::{Arrays, near};
use crate::Result;

/// The version in Cargo.toml.
const VERSION: &str = "0.23.9";

pub fn time(file: &Path, input: &HostArray<'static>) -> Result<Times> {
    let input = tensor(input)?;
    let start = Instant::now();
    let plan = onnx().model_for_path(file)?.into_optimized()?.into_runnable()?;
    let load = start.elapsed();

    let start = Instant::now();
    let result = plan.run(tvec!(input.clone().into()))?;
    let first = start.elapsed();

    let steady = steady(|| {
        plan.run(tvec!(input.clone().into()))?;
        Ok(())
    })?;
    let result = numbers(&result[0])?;
    Ok(Times {
        device: None,
        load,
        first,
        steady,
        version: Some(VERSION),
        kept: false,
        parts: None,
        result,
    })
}

/// The inputs that are part of the model, so that their values are known while it loads.
#[derive(Clone, Copy)]
enum Constants {
    None,
    Integers,
    /// All but the first.
    Further,
}

/// Runs a node test. With `constants`, it passes if it does so in one of three ways: with no input as a constant, with the integers,
/// or with all but the first.
pub fn node(file: &Path, arrays: &Arrays, constants: bool) -> Result<()> {
    if !constants {
        return node_with(file, arrays, Constants::None);
    }
    let mut problem = None;
    for constants in [Constants::None, Constants::Integers, Constants::Further] {
        // A panic ends this way only.
        match catch_unwind(AssertUnwindSafe(|| node_with(file, arrays, constants))) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => drop(problem.get_or_insert(error)),
            Err(_) => drop(problem.get_or_insert("a panic".into())),
        }
    }
    problem.map_or(Ok(()), Err)
}

fn node_with(file: &Path, arrays: &Arrays, constants: Constants) -> Result<()> {
    let onnx = onnx();
    let proto = onnx.proto_model_for_path(file)?;
    let graph = proto.graph.as_ref().ok_or("the file has no graph")?;
    let outputs: Vec<String> = graph.output.iter().map(|output| output.name.clone()).collect();
    let mut model = onnx.model_for_path(file)?;
    let mut inputs = TVec::new();
    let mut kept = Vec::new();
    for (at, outlet) in model.input_outlets()?.to_vec().into_iter().enumerate() {
        let name = &model.node(outlet.node).name;
        let array = arrays.get(&format!("in.{name}")).ok_or("an input is missing")?;
        let tensor = tensor(array)?;
        let float = array.dtype().tensor_dtype().is_some_and(wgrad::DType::is_float);
        let constant = match constants {
            Constants::None => false,
            Constants::Integers => !float,
            Constants::Further => at > 0,
        };
        if constant {
            model.set_outlet_fact(outlet, InferenceFact::from(tensor.clone()))?;
            model.node_mut(outlet.node).op = Box::new(Const::new(Arc::new(tensor))?);
        } else {
            inputs.push(tensor.into());
            kept.push(outlet);
        }
    }
    if !matches!(constants, Constants::None) {
        model.set_input_outlets(&kept)?;
    }
    let results = model.into_optimized()?.into_runnable()?.run(inputs)?;
    let mut seen = HashSet::new();
    for (name, result) in outputs.iter().zip(results.iter()) {
        if let Some(expected) = arrays.get(&format!("out.{name}")) {
            near(result.shape(), &numbers(result)?, expected)?;
            seen.insert(name);
        }
    }
    let expected = arrays.keys().filter(|name| name.starts_with("out.")).count();
    if seen.len() < expected { Err("wrong: a result is missing".into()) } else { Ok(()) }
}

fn tensor(array: &HostArray<'_>) -> Result<Tensor> {
    fn of<const N: usize, T: Datum + Copy>(
        array: &HostArray<'_>,
        number: impl Fn([u8; N]) -> T,
    ) -> Result<Tensor> {
        let (pieces, _) = array.bytes().as_chunks::<N>();
        let numbers: Vec<T> = pieces.iter().map(|&piece| number(piece)).collect();
        Ok(Tensor::from_shape(array.shape(), &numbers)?)
    }
    match array.dtype() {
        HostDType::F32 => of(array, f32::from_le_bytes),
        HostDType::F16 => of(array, f16::from_le_bytes),
        HostDType::I32 => of(array, i32::from_le_bytes),
        HostDType::I64 => of(array, i64::from_le_bytes),
        HostDType::U32 => of(array, u32::from_le_bytes),
        HostDType::U8 => of(array, u8::from_le_bytes),
        HostDType::Bool => of(array, |[byte]| byte != 0),
        other => Err(format!("arrays of {other:?} are not passed to tract").into()),
    }
}

fn numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    if tensor.datum_type() == bool::datum_type() {
        let view = tensor.to_plain_array_view::<bool>()?;
        return Ok(view.iter().map(|&value| f64::from(u8::from(value))).collect());
    }
    // Sizes are expressions in tract.
    let tensor = match tensor.datum_type() == TDim::datum_type() {
        true => tensor.cast_to::<i64>()?,
        false => std::borrow::Cow::Borrowed(tensor),
    };
    let numbers = tensor.cast_to::<f64>()?;
    Ok(numbers.to_plain_array_view::<f64>()?.iter().copied().collect())
}
