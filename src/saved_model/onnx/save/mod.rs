//! [`save`]: writes functions as ONNX models.
//!
//! `graph.rs` writes the calls of a trace (`traced/`) as ONNX's ops, of which `ops/` has those for each op of this crate;
//! `builder.rs` collects nodes.

mod builder;
mod graph;
mod ops;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::Write;
use std::path::Path;

use prost::Message;

use super::proto::{
    Dimension, GraphProto, ModelProto, OperatorSetIdProto, StringStringEntryProto, TensorProto,
    TensorShape, TensorType, TypeProto, ValueInfoProto,
};
use crate::error::{Error, Result, message};
use crate::files;
use crate::function::TensorSpec;
use crate::host_array::HostArray;
use crate::runtime::Device;
use crate::saved_model::traced::{Signature, Sizes, Traces, is_identifier, merged, unique};
use crate::support::options::options;
use crate::trackable::{Everything, Item, Scope as Variables, Trackable};
use crate::variable::Variable;
use builder::{Builder, Out, tensor, type_of};
use graph::{Scope, Writer, variables_of};

/// The version of ONNX's ops, and the one of the format that has it.
const OPSET: i64 = 18;
const IR_VERSION: i64 = 8;

/// From this many bytes of weights on, they are in a file of their own: a protobuf message has at most 2 GiB.
const LARGE: usize = 1 << 30;

options! {
    /// The options of [`save_with`].
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct OnnxSaveOptions {
        /// Whether the weights are in a file of their own in the same folder, `NAME.NUMBER.data`; `false` by default. Weights of 1
        /// GiB or more are in any case.
        external_data: bool = false,
    }
}

/// Writes a function of `model` in ONNX's format (opset 18), which onnxruntime and others run. The variables that it uses are the
/// initializers, under their names in `model`.
///
/// Open sizes stay open, under the name `batch` for the first axis. Branches and loops by values of tensors stay branches and loops.
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
/// let classify = Signature::new("classify", [("images", images)], |inputs| {
///     model.call(&inputs[0], INFERENCE)
/// });
/// tf::onnx::save(&model, "digits.onnx", &classify.outputs(["scores"]))?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Trace`] if the function does what ONNX's ops cannot: with all such calls; if it assigns variables, draws random numbers,
/// prints, or does something else for other sizes. [`Error::Checkpoint`] if it uses a variable that is no part of `model`;
/// [`Error::Data`] for names that occur twice; [`Error::Io`] if a file cannot be written.
pub fn save(model: &dyn Trackable, path: impl AsRef<Path>, function: &Signature<'_>) -> Result<()> {
    save_with(model, path, function, OnnxSaveOptions::new())
}

/// As [`save`], with options.
///
/// # Errors
/// As [`save`].
pub fn save_with(
    model: &dyn Trackable,
    path: impl AsRef<Path>,
    function: &Signature<'_>,
    options: OnnxSaveOptions,
) -> Result<()> {
    let path = path.as_ref();
    let mut proto = written(model, function)?;
    let initializers = proto.graph.as_mut().map(|graph| &mut graph.initializer);
    let total = |all: &[TensorProto]| all.iter().map(|tensor| tensor.raw_data.len()).sum::<usize>();
    if let Some(all) = initializers.filter(|all| options.external_data || total(all) >= LARGE) {
        write_apart(path, all)?;
    }
    let first = proto.graph.iter().flat_map(|graph| &graph.initializer).next();
    let location =
        first.and_then(|tensor| tensor.external_data.first()).map(|entry| entry.value.clone());
    let bytes = proto.encode_to_vec();
    if bytes.len() > i32::MAX as usize {
        return Err(Error::Data(message!(
            "save: the graph has {} bytes, and a protobuf message at most {}. Keep large tensors in variables, which are stored in \
             another file.",
            bytes.len(),
            i32::MAX
        )));
    }
    files::make_folder(files::folder_of(path)).map_err(|error| Error::io(path, error))?;
    files::replace(path, |file| file.write_all(&bytes)).map_err(|error| Error::io(path, error))?;
    remove_others(path, location.as_deref());
    Ok(())
}

/// Moves the bytes of tensors to another file, whose name depends on them: until the model is replaced, the old one finds its own.
fn write_apart(path: &Path, tensors: &mut [TensorProto]) -> Result<()> {
    let each =
        tensors.iter().flat_map(|tensor| farmhash::fingerprint64(&tensor.raw_data).to_le_bytes());
    let location = format!(
        "{}{:016x}{DATA}",
        start_of(path),
        farmhash::fingerprint64(&each.collect::<Vec<u8>>())
    );
    let name = path.with_file_name(&location);
    files::make_folder(files::folder_of(path)).map_err(|error| Error::io(path, error))?;
    let write = |file: &mut std::fs::File| -> std::io::Result<()> {
        let mut offset = 0;
        let mut file = std::io::BufWriter::new(file);
        for tensor in tensors {
            file.write_all(&tensor.raw_data)?;
            let entry =
                |key: &str, value: String| StringStringEntryProto { key: key.to_string(), value };
            tensor.external_data = vec![
                entry("location", location.clone()),
                entry("offset", offset.to_string()),
                entry("length", tensor.raw_data.len().to_string()),
            ];
            tensor.data_location = 1;
            offset += std::mem::take(&mut tensor.raw_data).len();
        }
        file.flush()
    };
    files::replace(&name, write).map_err(|error| Error::io(&name, error))
}

/// The end of the names of files with weights.
const DATA: &str = ".data";

/// The start of the names of a model's files with weights.
fn start_of(path: &Path) -> String {
    format!("{}.", path.file_name().unwrap_or_default().to_string_lossy())
}

/// Removes the files with weights that models of this name had before, and those that killed processes began.
fn remove_others(path: &Path, keep: Option<&str>) {
    let (folder, start) = (files::folder_of(path), start_of(path));
    let is_number =
        |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_own = |name: &str| {
        let middle = name.strip_prefix(&start[..]).and_then(|rest| rest.strip_suffix(DATA));
        middle.is_some_and(is_number)
    };
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| is_own(name) && Some(name) != keep) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    for (left, of) in files::leftovers(folder) {
        if of.file_name().and_then(|name| name.to_str()).is_some_and(is_own) {
            let _ = std::fs::remove_file(left);
        }
    }
}

/// The model of a function.
fn written(model: &dyn Trackable, function: &Signature<'_>) -> Result<ModelProto> {
    let name = &function.name;
    unique(name, "inputs", function.inputs.iter().map(|(name, _)| name))?;
    unique(name, "results", function.outputs.iter().flatten())?;
    let all = function.inputs.iter().map(|(name, _)| name).chain(function.outputs.iter().flatten());
    let mut seen = HashSet::new();
    if let Some(twice) = all.clone().find(|name| !seen.insert(*name)) {
        return Err(Error::Data(message!(
            "save: {name} has an input and a result with the name \"{twice}\"; ONNX needs two names."
        )));
    }
    let device = Device::current()?;
    let specs: Vec<TensorSpec> = function.inputs.iter().map(|(_, spec)| spec.clone()).collect();
    let traces = Traces::new(&device, &specs, &*function.body)
        .map_err(|error| error.reworded(|text| message!("save: {name}: {text}")))?;
    let variables = &traces.graphs[0].variables;
    let mut used = BTreeSet::new();
    variables_of(&traces.graphs[0].body, &mut used);
    let own = initializer_names(model, name, variables, &used, &seen)?;
    let mut builder = Builder::default();
    let sizes = traces.sources.iter();
    let sizes = sizes.map(|(argument, axis)| builder.size_of(&function.inputs[*argument].0, *axis));
    builder.sizes = Sizes::new(&traces.samples, sizes.collect());
    let inputs = function.inputs.iter().map(|(name, _)| name.clone());
    let scope = Scope {
        arguments: inputs.zip(traces.arguments.iter().cloned()).collect(),
        outer: Vec::new(),
    };
    let blocks: Vec<_> = traces.graphs.iter().map(|graph| &graph.body).collect();
    let mut writer = Writer { variables, names: own.clone(), problems: Vec::new() };
    let results = writer.block(&mut builder, &blocks, &scope);
    if !writer.problems.is_empty() {
        return Err(Error::Trace(message!(
            "save: {name} cannot be written as an ONNX model: {}. Export a function of inference (call layers with INFERENCE), or \
             compute these parts outside of it.",
            writer.problems.join("; ")
        )));
    }
    let outputs = match &function.outputs {
        Some(names) if names.len() == results.len() => names.clone(),
        Some(names) => {
            return Err(Error::Data(message!(
                "save: {name} returns {} tensors, and {} names are given ({}).",
                results.len(),
                names.len(),
                names.join(", ")
            )));
        }
        None => (0..results.len()).map(|at| format!("output_{at}")).collect(),
    };
    let mut output = Vec::new();
    for ((out, specs), name) in results.iter().zip(&outputs) {
        builder.node("Identity", [out.clone()], vec![name.clone()], []);
        output.push(value_info(name, &merged(specs), &[]));
    }
    let input = function
        .inputs
        .iter()
        .enumerate()
        .map(|(argument, (name, spec))| value_info(name, spec, &size_names(argument, spec)));
    let initializer = used
        .iter()
        .map(|variable| {
            let array = HostArray::from_tensor(&variables[*variable].peek())?;
            Ok(tensor(&own[variable], &array))
        })
        .collect::<Result<_>>()?;
    let mut graph = GraphProto {
        node: builder.nodes,
        name: if is_identifier(name) { name.clone() } else { "graph".to_string() },
        initializer,
        input: input.collect(),
        output,
    };
    let mut read = HashSet::new();
    names_read(&graph, &mut read);
    drop_unread(&mut graph, &read);
    Ok(ModelProto {
        ir_version: IR_VERSION,
        producer_name: "wgrad".to_string(),
        producer_version: env!("CARGO_PKG_VERSION").to_string(),
        graph: Some(graph),
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: OPSET }],
        functions: Vec::new(),
    })
}

/// Adds the names of the values that a graph, or one in its nodes, reads.
fn names_read(graph: &GraphProto, read: &mut HashSet<String>) {
    read.extend(graph.output.iter().map(|output| output.name.clone()));
    for node in &graph.node {
        read.extend(node.input.iter().cloned());
        let graphs = node.attribute.iter().filter_map(|attribute| attribute.g.as_deref());
        graphs.for_each(|graph| names_read(graph, read));
    }
}

/// Removes constants that nothing reads.
fn drop_unread(graph: &mut GraphProto, read: &HashSet<String>) {
    graph.node.retain(|node| {
        node.op_type != "Constant" || node.output.iter().any(|output| read.contains(output))
    });
    for node in &mut graph.node {
        let graphs = node.attribute.iter_mut().filter_map(|attribute| attribute.g.as_deref_mut());
        graphs.for_each(|graph| drop_unread(graph, read));
    }
}

/// The names of the variables that a function uses: those in `model`.
fn initializer_names(
    model: &dyn Trackable,
    function: &str,
    variables: &[Variable],
    used: &BTreeSet<usize>,
    taken: &HashSet<&String>,
) -> Result<HashMap<usize, Out>> {
    let everything = Everything::forms(model, Variables::Checkpoint);
    let named: HashMap<u64, &str> = everything
        .entries()
        .filter_map(|(name, item)| match item {
            Item::Variable(variable) => Some((variable.id(), name)),
            _ => None,
        })
        .collect();
    let mut names = HashMap::new();
    for at in used {
        let variable = &variables[*at];
        let name = named.get(&variable.id()).ok_or_else(|| {
            Error::Checkpoint(message!(
                "save: {function} uses a variable {} that is no part of the model that is saved. Pass an object that contains it, \
                 too.",
                variable.spec()
            ))
        })?;
        let mut name = name.to_string();
        while taken.contains(&name) {
            name.push('_');
        }
        names.insert(*at, name);
    }
    Ok(names)
}

/// The names of an input's open sizes.
fn size_names(argument: usize, spec: &TensorSpec) -> Vec<String> {
    let name = |axis: usize| match axis {
        0 => "batch".to_string(),
        _ => format!("size_{argument}_{axis}"),
    };
    (0..spec.shape().len()).map(name).collect()
}

/// The type of a value; `names` are those of its open sizes.
fn value_info(name: &str, spec: &TensorSpec, names: &[String]) -> ValueInfoProto {
    let dim = spec.shape().iter().enumerate().map(|(axis, size)| Dimension {
        dim_value: size.map(|size| size as i64),
        dim_param: match size {
            Some(_) => None,
            None => names.get(axis).cloned(),
        },
    });
    info(name, &dim.collect::<Vec<_>>(), type_of(spec.dtype()))
}

fn info(name: &str, dims: &[Dimension], elem_type: i32) -> ValueInfoProto {
    let shape = Some(TensorShape { dim: dims.to_vec() });
    let tensor_type = Some(TensorType { elem_type, shape });
    ValueInfoProto { name: name.to_string(), r#type: Some(TypeProto { tensor_type }) }
}
