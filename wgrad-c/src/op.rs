//! Ops by TensorFlow's names.

use std::ffi::c_char;

use serde_json::{Map, Value as Json, json};
use wgrad::Tensor;
use wgrad::inventory::{self, Args, Entry, Stop, Value};

use crate::arguments::{Outs, json_object, objects, on, out, slice, text};
use crate::border::call;
use crate::device::wgrad_device;
use crate::status::{Failure, Result, wgrad_status};
use crate::tensor::wgrad_tensor;

fn find(name: &str) -> Result<&'static Entry> {
    let is = |entry: &&Entry, name: &str| entry.tensorflow.contains(&name);
    let full = format!("tf.{name}");
    let found = inventory::all()
        .find(|entry| is(entry, name))
        .or_else(|| inventory::all().find(|entry| is(entry, &full)))
        .or_else(|| inventory::all().find(|entry| entry.name == name));
    found.ok_or_else(|| {
        Failure::new(
            wgrad_status::WGRAD_NOT_FOUND,
            format!("there is no op '{name}'; wgrad_ops lists all."),
        )
    })
}

fn value(json: Json) -> Option<Value> {
    Some(match json {
        Json::Null => return None,
        Json::Bool(yes) => Value::Bool(yes),
        Json::Number(number) => match number.as_i64() {
            Some(n) => Value::Int(n),
            None => Value::Float(number.as_f64()?),
        },
        Json::String(text) => Value::Text(text),
        Json::Array(list) => Value::List(list.into_iter().filter_map(value).collect()),
        Json::Object(fields) => Value::Fields(
            fields.into_iter().filter_map(|(key, field)| Some((key, value(field)?))).collect(),
        ),
    })
}

/// Tensors with equal names are one argument, a list.
fn arguments(names: Vec<&str>, tensors: Vec<Tensor>, attributes: Map<String, Json>) -> Args {
    let mut given: Vec<(String, Vec<Tensor>)> = Vec::new();
    for (name, tensor) in names.into_iter().zip(tensors) {
        match given.iter_mut().find(|(known, _)| known == name) {
            Some((_, list)) => list.push(tensor),
            None => given.push((name.to_string(), vec![tensor])),
        }
    }
    Args::new(given, attributes.into_iter().filter_map(|(key, json)| Some((key, value(json)?))))
}

fn run(name: &str, entry: &Entry, arguments: &Args) -> Result<Vec<Tensor>> {
    let results = (entry.call)(arguments).map_err(|stop| match stop {
        Stop::Failed(error) => error.into(),
        Stop::Lacks(what) if what.is_empty() => Failure::new(
            wgrad_status::WGRAD_UNIMPLEMENTED,
            format!("{name}: wgrad has no op for these arguments."),
        ),
        Stop::Lacks(what) => Failure::argument(format!(
            "{name}: '{what}' is missing, or has a value that it cannot have."
        )),
    })?;
    match arguments.unread() {
        None => Ok(results),
        Some(what) => Err(Failure::argument(format!("{name} has no argument '{what}'."))),
    }
}

/// Calls an op by TensorFlow's name, such as `tf.linalg.matmul`, also without `tf.`, or by wgrad's name, such as `matmul`.
///
/// `names` are TensorFlow's names of the arguments that are tensors, such as `a` and `b`; several tensors with the same name are a
/// list. The other arguments are a JSON object with TensorFlow's names, such as `{"transpose_b": true}`, or null. The results are
/// stored in `outputs`, which has room for `capacity`, and their number in `count`, which may be null. An op without tensors makes
/// its result on `device`; null is the default device.
///
/// # Safety
/// `op` is a text, `names` are `inputs_count` texts, `inputs` as many handles, `outputs` has `capacity` places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_op(
    device: *const wgrad_device,
    op: *const c_char,
    names: *const *const c_char,
    inputs: *const *mut wgrad_tensor,
    inputs_count: usize,
    attributes: *const c_char,
    outputs: *mut *mut wgrad_tensor,
    capacity: usize,
    count: *mut usize,
) -> wgrad_status {
    call(|| {
        let outs = unsafe { Outs::new(outputs, capacity, count) }?;
        let name = unsafe { text(op, "op") }?;
        let entry = find(name)?;
        let names = unsafe { slice(names, inputs_count, "names") }?;
        let names: Vec<&str> = names
            .iter()
            .enumerate()
            .map(|(at, name)| unsafe { text(*name, &format!("names[{at}]")) })
            .collect::<Result<_>>()?;
        let tensors = unsafe { objects::<Tensor>(inputs, inputs_count, "inputs") }?;
        let attributes = unsafe { json_object(attributes, "attributes") }?;
        let home = tensors.first().map(|tensor| tensor.device().clone());
        let arguments = arguments(names, tensors, attributes);
        let results = match home {
            Some(home) => home.scope(|| run(name, entry, &arguments))?,
            None => on(device, || run(name, entry, &arguments))?,
        };
        outs.put(results.into_iter().map(Some))
    })
}

/// Stores a JSON list of all ops: `name`, TensorFlow's names (`tensorflow`) and the dtypes that an op accepts; free it with
/// `wgrad_string_free`.
///
/// # Safety
/// `ops` is a place for a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgrad_ops(ops: *mut *mut c_char) -> wgrad_status {
    call(|| {
        let place = unsafe { out(ops, "ops") }?;
        let one = |entry: &Entry| {
            let dtypes: Vec<String> = entry.dtypes.iter().map(ToString::to_string).collect();
            json!({"name": entry.name, "tensorflow": entry.tensorflow, "dtypes": dtypes})
        };
        place.text(&Json::Array(inventory::all().map(one).collect()).to_string());
        Ok(())
    })
}
