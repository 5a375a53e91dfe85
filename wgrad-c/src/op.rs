//! Ops by TensorFlow's names.

use std::collections::HashMap;
use std::ffi::c_char;
use std::sync::OnceLock;

use serde_json::{Value as Json, json};
use wgrad::Tensor;
use wgrad::inventory::{self, Args, Entry, Stop, Value};

use crate::arguments::{Outs, json_object, objects, on, out, slice, text};
use crate::border::call;
use crate::device::wgrad_device;
use crate::status::{Failure, Result, wgrad_status};
use crate::tensor::wgrad_tensor;

/// The op of a name: TensorFlow's, the same without `tf.`, or else wgrad's.
fn find(name: &str) -> Result<&'static Entry> {
    static ALL: OnceLock<HashMap<&'static str, &'static Entry>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let mut all = HashMap::new();
        let names = |entry: &'static Entry| entry.tensorflow.iter().map(move |name| (*name, entry));
        for (name, entry) in inventory::all().flat_map(names) {
            all.entry(name).or_insert(entry);
        }
        for (name, entry) in inventory::all().flat_map(names) {
            all.entry(name.strip_prefix("tf.").unwrap_or(name)).or_insert(entry);
        }
        for entry in inventory::all() {
            all.entry(entry.name).or_insert(entry);
        }
        all
    });
    all.get(name).copied().ok_or_else(|| {
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
fn arguments(names: &[String], tensors: &[Tensor], attributes: &[(String, Value)]) -> Args {
    let mut given: Vec<(String, Vec<Tensor>)> = Vec::new();
    for (name, tensor) in names.iter().zip(tensors) {
        match given.iter_mut().find(|(known, _)| known == name) {
            Some((_, list)) => list.push(tensor.clone()),
            None => given.push((name.clone(), vec![tensor.clone()])),
        }
    }
    Args::new(given, attributes.iter().cloned())
}

/// The most tensors that a call passes without names. An op of more may read them in another order than TensorFlow has them.
const UNNAMED: usize = 2;

/// Calls the op. Tensors without names get those that the op asks for, one after the other.
fn run(
    name: &str,
    entry: &Entry,
    names: Option<Vec<String>>,
    tensors: &[Tensor],
    attributes: &[(String, Value)],
) -> Result<Vec<Tensor>> {
    // No argument has such a name.
    let unnamed = |at: usize| format!("tensor {at}");
    let mut open = if names.is_some() { tensors.len()..tensors.len() } else { 0..tensors.len() };
    let mut names = names.unwrap_or_else(|| (0..tensors.len()).map(unnamed).collect());
    loop {
        let arguments = arguments(&names, tensors, attributes);
        let what = match (entry.call)(&arguments) {
            Ok(results) => match arguments.unread() {
                None => return Ok(results),
                Some(what) => {
                    return Err(Failure::argument(format!("{name} has no argument '{what}'.")));
                }
            },
            Err(Stop::Failed(error)) => return Err(error.into()),
            Err(Stop::Lacks(what)) => what,
        };
        if what.is_empty() {
            return Err(Failure::new(
                wgrad_status::WGRAD_UNIMPLEMENTED,
                format!("{name}: wgrad has no op for these arguments."),
            ));
        }
        let known = names.contains(&what) || attributes.iter().any(|(key, _)| *key == what);
        match open.next().filter(|_| !known) {
            Some(at) => names[at] = what,
            None => {
                return Err(Failure::argument(format!(
                    "{name}: '{what}' is missing, or has a value that it cannot have."
                )));
            }
        }
    }
}

/// Calls an op by TensorFlow's name, such as `tf.linalg.matmul`, also without `tf.`, or by wgrad's name, such as `matmul`.
///
/// One or two tensors need no `names`: if it is null, they come in TensorFlow's order. Otherwise `names` says which argument each
/// tensor is: mostly `x`, `x` and `y`, or `a` and `b`, else TensorFlow's names; the error of a missing one has its name. Several
/// tensors with the same name are a list. The other arguments are a JSON object with TensorFlow's names, such as
/// `{"transpose_b": true}`, or null. The results are stored in `outputs`, which has room for `capacity`, and their number in `count`,
/// which may be null. An op without tensors makes its result on `device`; null is the default device.
///
/// # Safety
/// `op` is a text, `names` null or `inputs_count` texts, `inputs` as many handles, `outputs` has `capacity` places.
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
        let tensors = unsafe { objects::<Tensor>(inputs, inputs_count, "inputs") }?;
        let names = match names.is_null() {
            true if tensors.len() > UNNAMED => {
                return Err(Failure::argument(format!(
                    "names is null; {name} has {} tensors here, and more than {UNNAMED} need names.",
                    tensors.len()
                )));
            }
            true => None,
            false => Some(unsafe { texts(names, inputs_count) }?),
        };
        let attributes: Vec<(String, Value)> = unsafe { json_object(attributes, "attributes") }?
            .into_iter()
            .filter_map(|(key, json)| Some((key, value(json)?)))
            .collect();
        let run = || run(name, entry, names, &tensors, &attributes);
        let results = match tensors.first() {
            Some(tensor) => tensor.device().clone().scope(run)?,
            None => on(device, run)?,
        };
        outs.put(results.into_iter().map(Some))
    })
}

unsafe fn texts(names: *const *const c_char, count: usize) -> Result<Vec<String>> {
    let names = unsafe { slice(names, count, "names") }?;
    let one = |(at, name): (usize, &*const c_char)| {
        Ok(unsafe { text(*name, &format!("names[{at}]")) }?.to_string())
    };
    names.iter().enumerate().map(one).collect()
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
