//! [`save`]: writes TensorFlow's SavedModels.
//!
//! `body.rs` writes the calls of a trace (`traced/`) as TensorFlow's ops, of which `ops/` has those for each op of this crate;
//! `builder.rs` collects nodes. `objects.rs` has the objects of the file, `graph.rs` the nodes that load and call them.
//! `folder.rs` replaces a folder in one step. `keras.rs` has `export` of Keras models.

mod body;
mod builder;
mod folder;
mod graph;
#[cfg(feature = "keras")]
mod keras;
mod objects;
mod ops;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use prost::Message as _;

use super::graph_def::proto::{ArgDef, Attr, AttrValue, FunctionDef, ListValue};
use super::traced::{Signature, Traces, is_identifier, merged, unique};
use crate::error::{Error, Message, Result, message};
use crate::files;
use crate::files::protobuf::TensorShapeProto;
use crate::function::TensorSpec;
use crate::host_array::HostDType;
use crate::runtime::Device;
use crate::trackable::Trackable;
use crate::train::{ObjectsToStore, index_path};
use body::{Library, argument, define, handle, variables_of};
use builder::{Builder, Out, function, shape_proto, type_of, types};
use objects::{Named, SavedSignature};

/// Writes `model` with functions of it as a SavedModel, the folder that TensorFlow, Keras (`TFSMLayer`), TensorFlow Serving and
/// TensorFlow.js's converter read. TensorFlow's `tf.saved_model.save`.
///
/// The variables of `model` are a checkpoint in the folder, under the names that [`Checkpoint`](crate::train::Checkpoint) gives
/// them. Each signature is traced, and written with TensorFlow's ops; so whoever loads it can also compute gradients. Branches
/// and loops by values of tensors stay branches and loops. The folder is replaced in one step: another program sees the old
/// model or the new one.
///
/// ```no_run
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use wgrad::keras::layers::{Dense, Layer};
/// use wgrad::keras::{INFERENCE, Sequential};
/// use wgrad::saved_model::Signature;
///
/// let model = Sequential::new().add(Dense::new(64)).add(Dense::new(10));
/// let images = tf::TensorSpec::new([None, Some(784)], tf::DType::F32);
/// let serve = Signature::new("serving_default", [("images", images)], |inputs| {
///     model.call(&inputs[0], INFERENCE)
/// });
/// tf::saved_model::save(&model, "exported/1", &[serve.outputs(["scores"])])?;
/// # Ok(())
/// # }
/// ```
///
/// ```python
/// model = tf.saved_model.load('exported/1')
/// scores = model.signatures['serving_default'](images=images)['scores']
/// ```
///
/// # Errors
/// [`Error::Trace`] if a function does what TensorFlow's ops cannot: with all such calls; if it draws random numbers, prints, or
/// does something else for other sizes. [`Error::Checkpoint`] if it uses a variable that is no part of `model`; [`Error::Data`]
/// for names that a file cannot have; [`Error::Io`] if a file cannot be written, or if the folder has other files.
pub fn save(
    model: &dyn Trackable,
    path: impl AsRef<Path>,
    signatures: &[Signature<'_>],
) -> Result<()> {
    let path = path.as_ref();
    check_names(signatures)?;
    let device = Device::current()?;
    let traced: Vec<(Vec<TensorSpec>, Traces)> = signatures
        .iter()
        .map(|signature| {
            let specs: Vec<TensorSpec> =
                signature.inputs.iter().map(|(_, spec)| spec.clone()).collect();
            let traces = Traces::new(&device, &specs, &*signature.body).map_err(|error| {
                error.reworded(|text| message!("save: {}: {text}", signature.name))
            })?;
            Ok((specs, traces))
        })
        .collect::<Result<_>>()?;
    // The traces have made the variables.
    let objects = ObjectsToStore::new(model)?;
    let parts: HashSet<&str> = objects.children[0].iter().map(|(name, _)| &name[..]).collect();
    let own = signatures.iter().map(|signature| &signature.function[..]).chain(["signatures"]);
    if let Some(name) = own.into_iter().find(|name| parts.contains(name)) {
        return Err(Error::Data(message!(
            "save: the model has a part with the name \"{name}\", which a function cannot have, too; choose another with \
             function_name."
        )));
    }
    let places: HashMap<u64, usize> =
        objects.variables.iter().map(|(at, stored)| (stored.variable.id(), *at)).collect();
    let mut library = Library::default();
    let mut saved = Vec::new();
    for (number, (signature, (specs, traces))) in signatures.iter().zip(&traced).enumerate() {
        let one = write_signature(signature, specs, traces, number, &places, &mut library)?;
        saved.push(one);
    }
    let model = graph::saved_model(&objects, &saved, library.functions)?;
    let bytes = model.encode_to_vec();
    // Protobuf's readers take no larger message.
    if bytes.len() > i32::MAX as usize {
        return Err(Error::Data(message!(
            "save: the graph has {} bytes, and a protobuf message at most {}. Keep large tensors in variables, which are stored \
             in other files.",
            bytes.len(),
            i32::MAX
        )));
    }
    folder::replace(path, |folder| {
        let variables = folder.join("variables").join("variables");
        let index = index_path(&objects.snapshot.write(&variables)?);
        let index = files::read(&index).map_err(|error| Error::io(&index, error))?;
        folder::write(&folder.join("fingerprint.pb"), &graph::fingerprint(&bytes, &index))?;
        folder::write(&folder.join("saved_model.pb"), &bytes)
    })
}

fn check_names(signatures: &[Signature<'_>]) -> Result<()> {
    let wrong = |text: Message| Err(Error::Data(text));
    if signatures.is_empty() {
        return wrong(message!("save: a SavedModel needs a function; pass a Signature."));
    }
    let (mut names, mut functions) = (HashSet::new(), HashSet::new());
    for signature in signatures {
        if signature.name.is_empty() || signature.name.starts_with("__") {
            return wrong(message!(
                "save: a signature cannot have the name \"{}\"; take one such as serving_default.",
                signature.name
            ));
        }
        if !names.insert(&signature.name) || !functions.insert(&signature.function) {
            return wrong(message!(
                "save: two signatures have the name \"{}\" or the function \"{}\"; give each its own.",
                signature.name,
                signature.function
            ));
        }
        if !is_identifier(&signature.function) || signature.function == "signatures" {
            return wrong(message!(
                "save: a function cannot have the name \"{}\", as it becomes an attribute in Python; choose another with \
                 function_name.",
                signature.function
            ));
        }
        let own = signature.inputs.iter().map(|(name, _)| name);
        unique(&signature.name, "inputs", own)?;
        if let Some(outputs) = &signature.outputs {
            unique(&signature.name, "results", outputs.iter())?;
        }
    }
    Ok(())
}

/// Names as the arguments of TensorFlow's functions have them: small letters, and each its own.
fn argument_names<'a>(names: impl Iterator<Item = &'a str>, word: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut all = Vec::new();
    for (at, name) in names.enumerate() {
        let mut own = name.to_lowercase();
        if !own.starts_with(|c: char| c.is_ascii_lowercase()) || !seen.insert(own.clone()) {
            own = format!("{word}_{at}_{own}");
            seen.insert(own.clone());
        }
        all.push(own);
    }
    all
}

/// The attribute by which TensorFlow knows the shapes of a function's arguments.
fn input_shapes(inputs: &[&TensorSpec], handles: usize) -> BTreeMap<String, AttrValue> {
    let shapes = inputs.iter().map(|spec| shape_proto(spec.shape()));
    let scalars = (0..handles).map(|_| TensorShapeProto::new(&[]));
    let list = ListValue { shape: shapes.chain(scalars).collect(), ..ListValue::default() };
    let attr = AttrValue { value: Some(Attr::List(list)) };
    [("_input_shapes".to_string(), attr)].into()
}

fn write_signature(
    signature: &Signature<'_>,
    specs: &[TensorSpec],
    traces: &Traces,
    number: usize,
    places: &HashMap<u64, usize>,
    library: &mut Library,
) -> Result<SavedSignature> {
    let name = &signature.name;
    let variables = &traces.graphs[0].variables;
    let (mut used, mut assigned) = (BTreeSet::new(), BTreeSet::new());
    variables_of(&traces.graphs[0].body, &mut used, &mut assigned);
    let mut bound = Vec::new();
    for variable in &used {
        let variable = &variables[*variable];
        bound.push(*places.get(&variable.id()).ok_or_else(|| {
            Error::Checkpoint(message!(
                "save: {name} uses a variable {} that is no part of the model that is saved. Pass an object that contains it, too.",
                variable.spec()
            ))
        })?);
    }
    let names = argument_names(signature.inputs.iter().map(|(name, _)| &name[..]), "input");
    let handle_names: Vec<String> =
        (0..used.len()).map(|at| format!("variable_handle_{at}")).collect();
    let handles: HashMap<usize, Out> =
        used.iter().copied().zip(handle_names.iter().cloned()).collect();
    let mut body = Builder::default();
    let written = library.body(&mut body, traces, &names, handles);
    if !library.problems.is_empty() {
        return Err(Error::Trace(message!(
            "save: {name} cannot be written as a SavedModel: {}. Export a function of inference (call layers with INFERENCE), or \
             compute these parts outside of it.",
            library.problems.join("; ")
        )));
    }
    if written.results.is_empty() {
        return Err(Error::Data(message!(
            "save: {name} returns no tensor, and a signature needs at least one."
        )));
    }
    let outputs = match &signature.outputs {
        Some(names) if names.len() == written.results.len() => names.clone(),
        Some(names) => {
            return Err(Error::Data(message!(
                "save: {name} returns {} tensors, and {} names are given ({}).",
                written.results.len(),
                names.len(),
                names.join(", ")
            )));
        }
        None => (0..written.results.len()).map(|at| format!("output_{at}")).collect(),
    };
    // TensorFlow sorts the keys of dictionaries.
    let mut order: Vec<usize> = (0..outputs.len()).collect();
    order.sort_by(|a, b| outputs[*a].cmp(&outputs[*b]));
    let named: Vec<Named> = order
        .iter()
        .map(|at| Named { name: outputs[*at].clone(), spec: merged(&written.specs[*at]) })
        .collect();
    let result_names = argument_names(named.iter().map(|output| &output.name[..]), "output");
    let handle_args: Vec<ArgDef> = used
        .iter()
        .zip(&handle_names)
        .map(|(variable, name)| handle(name, &variables[*variable]))
        .collect();
    let stateful = !used.is_empty();
    let results: Vec<(ArgDef, Out)> = order
        .iter()
        .zip(&named)
        .zip(&result_names)
        .map(|((at, output), arg)| {
            let dtype = output.spec.dtype();
            let out = body.op("Identity", &[&written.results[*at]], [("T", type_of(dtype))]);
            (argument(arg, dtype), out)
        })
        .collect();
    let arguments: Vec<ArgDef> = names
        .iter()
        .zip(specs)
        .map(|(name, spec)| argument(name, spec.dtype()))
        .chain(handle_args.iter().cloned())
        .collect();
    let positional = format!("__inference_{}_{number}", signature.function);
    let kinds: Vec<i32> = arguments.iter().map(|arg| arg.r#type).collect();
    let result_args: Vec<ArgDef> = results.iter().map(|(arg, _)| arg.clone()).collect();
    let all: Vec<&TensorSpec> = specs.iter().collect();
    library.functions.push(FunctionDef {
        attr: input_shapes(&all, used.len()),
        ..define(&positional, arguments, results, body, &written.effects, stateful)
    });
    // The signature's function has the arguments sorted by their names.
    let mut sorted: Vec<usize> = (0..names.len()).collect();
    sorted.sort_by(|a, b| signature.inputs[*a].0.cmp(&signature.inputs[*b].0));
    let mut call = Builder::default();
    let calls = call.node(
        "StatefulPartitionedCall",
        names.iter().chain(&handle_names).cloned(),
        [
            ("f", function(&positional)),
            ("Tin", types(kinds)),
            ("Tout", types(result_args.iter().map(|arg| arg.r#type))),
        ],
    );
    let results: Vec<(ArgDef, Out)> = result_args
        .into_iter()
        .enumerate()
        .map(|(at, arg)| {
            let from = format!("{calls}:output:{at}");
            let out = call.op("Identity", &[&from], [("T", Attr::Type(arg.r#type))]);
            (arg, out)
        })
        .collect();
    let arguments = sorted
        .iter()
        .map(|at| argument(&names[*at], specs[*at].dtype()))
        .chain(handle_args)
        .collect();
    let wrapper = format!("__inference_signature_wrapper_{}_{number}", signature.function);
    let all: Vec<&TensorSpec> = sorted.iter().map(|at| &specs[*at]).collect();
    library.functions.push(FunctionDef {
        attr: input_shapes(&all, used.len()),
        ..define(&wrapper, arguments, results, call, &[calls], true)
    });
    let inputs = signature.inputs.iter();
    Ok(SavedSignature {
        name: name.clone(),
        function: signature.function.clone(),
        inputs: inputs
            .map(|(name, spec)| Named { name: name.clone(), spec: spec.clone() })
            .collect(),
        outputs: named,
        positional,
        wrapper,
        bound,
    })
}

/// The number of a dtype in TensorFlow.
fn number_of(dtype: crate::dtype::DType) -> i32 {
    HostDType::from(dtype).number()
}
