//! [`save`]: writes TensorFlow's SavedModels.
//!
//! `body.rs` writes the calls of a trace (`traced/`) as TensorFlow's ops, of which `ops/` has those for each op of this crate;
//! `builder.rs` collects nodes. `objects.rs` has the objects of the file, `graph.rs` the nodes that load and call them, `tables.rs`
//! lookup tables. `folder.rs` replaces a folder in one step. `keras.rs` has `export` of Keras models, `front/` the layers for strings
//! in front of them.

mod body;
mod builder;
mod folder;
#[cfg(all(feature = "json", feature = "preprocessing"))]
mod front;
mod graph;
#[cfg(feature = "keras")]
mod keras;
#[cfg(all(feature = "json", feature = "preprocessing"))]
pub use keras::FrontPlan;
mod objects;
mod ops;
mod tables;

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
use builder::{Builder, Out, dtype_attr, function, shape_proto, types};
use objects::{Named, SavedSignature, table_object};
use tables::{Table, Tables};

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
    write(model, path.as_ref(), signatures, None)
}

/// What is computed in front of the only signature's function, such as indices of words.
struct Before<'a> {
    /// What the signature takes in place of the function's inputs.
    inputs: Vec<Named>,
    /// Writes the nodes that compute the function's inputs from these arguments.
    write: &'a WriteInputs<'a>,
}

type WriteInputs<'a> = dyn Fn(&[String], &mut Builder, &mut Tables) -> Result<Vec<Out>> + 'a;

fn write(
    model: &dyn Trackable,
    path: &Path,
    signatures: &[Signature<'_>],
    before: Option<&Before<'_>>,
) -> Result<()> {
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
    let mut tables = Tables::default();
    let mut saved = Vec::new();
    for (number, (signature, (specs, traces))) in signatures.iter().zip(&traced).enumerate() {
        let inputs = match before {
            Some(before) => before.inputs.clone(),
            None => {
                let names = signature.inputs.iter().zip(specs);
                names.map(|((name, _), spec)| Named::new(name, spec)).collect()
            }
        };
        let objects = objects.children.len();
        let one = Written { signature, inputs, traces, number, places: &places, objects };
        saved.push(one.write(before, &mut library, &mut tables)?);
    }
    library.functions.extend(tables.all.iter().flat_map(Table::written));
    let model = graph::saved_model(&objects, &tables.all, &saved, library.functions)?;
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
fn input_shapes(inputs: &[&Named], handles: usize) -> BTreeMap<String, AttrValue> {
    let shapes = inputs.iter().map(|input| shape_proto(&input.shape));
    let scalars = (0..handles).map(|_| TensorShapeProto::new(&[]));
    let list = ListValue { shape: shapes.chain(scalars).collect(), ..ListValue::default() };
    let attr = AttrValue { value: Some(Attr::List(list)) };
    [("_input_shapes".to_string(), attr)].into()
}

/// A signature that is being written.
struct Written<'a> {
    signature: &'a Signature<'a>,
    /// In the order of positions.
    inputs: Vec<Named>,
    traces: &'a Traces,
    number: usize,
    /// The objects that are variables, by the variables' numbers.
    places: &'a HashMap<u64, usize>,
    /// The number of objects of the checkpoint.
    objects: usize,
}

impl Written<'_> {
    fn write(
        self,
        before: Option<&Before<'_>>,
        library: &mut Library,
        tables: &mut Tables,
    ) -> Result<SavedSignature> {
        let Written { signature, inputs, traces, number, places, objects } = self;
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
        let names = argument_names(inputs.iter().map(|input| &input.name[..]), "input");
        let mut handles: Vec<ArgDef> = used
            .iter()
            .enumerate()
            .map(|(at, variable)| handle(&format!("variable_handle_{at}"), &variables[*variable]))
            .collect();
        let handle_names = handles.iter().map(|arg| arg.name.clone());
        let known: HashMap<usize, Out> = used.iter().copied().zip(handle_names).collect();
        let mut body = Builder::default();
        tables.used.clear();
        let fed = match before {
            Some(before) => (before.write)(&names, &mut body, tables)?,
            None => names.clone(),
        };
        for (at, place) in tables.used.iter().enumerate() {
            handles.push(tables::argument(at));
            bound.push(table_object(objects, *place));
        }
        let written = library.body(&mut body, traces, &fed, known);
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
            .map(|at| Named::new(&outputs[*at], &merged(&written.specs[*at])))
            .collect();
        let result_names = argument_names(named.iter().map(|output| &output.name[..]), "output");
        let stateful = !handles.is_empty();
        let results: Vec<(ArgDef, Out)> = order
            .iter()
            .zip(&named)
            .zip(&result_names)
            .map(|((at, output), arg)| {
                let kind = [("T", dtype_attr(output.dtype))];
                let out = body.op("Identity", &[&written.results[*at]], kind);
                (argument(arg, output.dtype), out)
            })
            .collect();
        let arguments: Vec<ArgDef> = names
            .iter()
            .zip(&inputs)
            .map(|(name, input)| argument(name, input.dtype))
            .chain(handles.iter().cloned())
            .collect();
        let positional = format!("__inference_{}_{number}", signature.function);
        let kinds: Vec<i32> = arguments.iter().map(|arg| arg.r#type).collect();
        let result_args: Vec<ArgDef> = results.iter().map(|(arg, _)| arg.clone()).collect();
        let all: Vec<&Named> = inputs.iter().collect();
        library.functions.push(FunctionDef {
            attr: input_shapes(&all, handles.len()),
            ..define(&positional, arguments, results, body, &written.effects, stateful)
        });
        // The signature's function has the arguments sorted by their names.
        let mut sorted: Vec<usize> = (0..names.len()).collect();
        sorted.sort_by(|a, b| inputs[*a].name.cmp(&inputs[*b].name));
        let mut call = Builder::default();
        let calls = call.node(
            "StatefulPartitionedCall",
            names.iter().cloned().chain(handles.iter().map(|arg| arg.name.clone())),
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
        let count = handles.len();
        let arguments = sorted
            .iter()
            .map(|at| argument(&names[*at], inputs[*at].dtype))
            .chain(handles)
            .collect();
        let wrapper = format!("__inference_signature_wrapper_{}_{number}", signature.function);
        let all: Vec<&Named> = sorted.iter().map(|at| &inputs[*at]).collect();
        library.functions.push(FunctionDef {
            attr: input_shapes(&all, count),
            ..define(&wrapper, arguments, results, call, &[calls], true)
        });
        Ok(SavedSignature {
            name: name.clone(),
            function: signature.function.clone(),
            inputs,
            outputs: named,
            positional,
            wrapper,
            bound,
        })
    }
}

/// The number of a dtype in TensorFlow.
fn number_of(dtype: crate::dtype::DType) -> i32 {
    HostDType::from(dtype).number()
}
