//! ONNX models: read from files, and run by TensorFlow's ops of `graph_def/` and this crate's; and written (`save/`).
//!
//! `proto.rs` has the messages, `tensor.rs` the arrays in them. `graph.rs` runs a graph node by node: `ops/` has what each op does,
//! `call.rs` what a node gives it.

mod call;
mod graph;
mod ops;
mod proto;
#[cfg(not(target_family = "wasm"))]
mod save;
mod tensor;

#[cfg(not(target_family = "wasm"))]
pub use save::{OnnxSaveOptions, save, save_with};

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
#[cfg(not(target_family = "wasm"))]
use std::path::Path;
use std::sync::Arc;

use prost::Message;

use super::budget::Budget;
use super::graph_def::value::{Cell, Value};
use super::model_files::{ModelFiles, stays_inside};
use super::saved_function::{Outputs, SavedFunction, SavedValue};
use super::spec::SavedSpec;
use crate::error::{Error, Result, message};
use crate::host_array::HostArray;
use crate::runtime::Device;
use crate::tensor::Tensor;
use crate::trackable::{Parts, Trackable};
use crate::variable::Variable;

/// The names of ONNX's ops that models may have, sorted.
pub fn supported_ops() -> Vec<&'static str> {
    ops::names()
}

/// A model in ONNX's format. Its initializers are variables, so that it can be trained further: they are [`Trackable`].
#[derive(Debug, Clone)]
pub struct OnnxModel {
    function: SavedFunction,
    variables: Vec<(String, Variable)>,
    producer: String,
    opset: i64,
}

/// Loads a model in ONNX's format, to which PyTorch and others export. Tensors that are in other files of its folder are loaded, too.
///
/// ```no_run
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let model = tf::onnx::load("resnet.onnx")?;
/// let scores = model.predict(tf::Tensor::zeros([1, 3, 224, 224])?)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Io`] if a file is missing or cannot be read; [`Error::Data`] if one is damaged or of another format, or with all ops
/// that this crate lacks.
#[cfg(not(target_family = "wasm"))]
pub fn load(path: impl AsRef<Path>) -> Result<OnnxModel> {
    let path = path.as_ref();
    let bytes = crate::files::read(path).map_err(|error| Error::io(path, error))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    OnnxModel::read(&bytes, &ModelFiles::Folder(folder.into()))
        .map_err(|error| error.reworded(|text| message!("{}: {text}", path.display())))
}

/// As [`load`], from the contents of the file. Of a model that names other files, [`load_from_bytes_with`] takes them.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/onnx");
/// # let bytes = std::fs::read(format!("{folder}/cnn.onnx")).expect("the file is there");
/// // A program may have the bytes in itself, by include_bytes!.
/// let model = tf::onnx::load_from_bytes(&bytes)?;
/// println!("{:?}", model.inputs());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Data`] if the contents are damaged or of another format, if they name another file, or with all ops that this crate
/// lacks.
pub fn load_from_bytes(bytes: &[u8]) -> Result<OnnxModel> {
    OnnxModel::read(bytes, &ModelFiles::none())
}

/// As [`load_from_bytes`], with the names and contents of the other files that the model names
/// ([`external_files`]).
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/onnx");
/// # let read = |name: &str| std::fs::read(format!("{folder}/{name}")).expect("the file is there");
/// let bytes = read("mlp.onnx");
/// assert_eq!(tf::onnx::external_files(&bytes)?, ["mlp.data"]);
/// let model = tf::onnx::load_from_bytes_with(&bytes, [("mlp.data", read("mlp.data"))])?;
/// # let _ = model;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`load_from_bytes`]; [`Error::Data`] if a file is missing.
pub fn load_from_bytes_with<N: Into<String>, B: Into<Cow<'static, [u8]>>>(
    bytes: &[u8],
    files: impl IntoIterator<Item = (N, B)>,
) -> Result<OnnxModel> {
    OnnxModel::read(bytes, &ModelFiles::memory(files, ""))
}

/// The names of the other files that a model with these contents names: where a program cannot look into the folder, as on the web.
///
/// # Errors
/// [`Error::Data`] if the contents are damaged.
pub fn external_files(bytes: &[u8]) -> Result<Vec<String>> {
    let proto = proto::ModelProto::decode(bytes)
        .map_err(|error| Error::Data(message!("it is no ONNX model ({error}).")))?;
    let tensors = proto.graph.iter().flat_map(|graph| &graph.initializer);
    let places = tensors.filter(|tensor| tensor.data_location == 1);
    let places = places.flat_map(|tensor| &tensor.external_data);
    let names = places.filter(|entry| entry.key == "location").map(|entry| entry.value.clone());
    let mut names: Vec<String> = names.filter(|name| stays_inside(name)).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

impl OnnxModel {
    fn read(bytes: &[u8], files: &ModelFiles) -> Result<Self> {
        let proto = proto::ModelProto::decode(bytes)
            .map_err(|error| Error::Data(message!("it is no ONNX model ({error}).")))?;
        let none = || Error::Data(message!("it is no ONNX model: it has no graph."));
        let mut def = proto.graph.ok_or_else(none)?;
        let opset = proto.opset_import.iter().find(|set| matches!(&set.domain[..], "" | "ai.onnx"));
        let opset = opset.map_or(1, |set| set.version);
        let device = Device::current()?;
        let name = std::mem::take(&mut def.name);
        let initial: HashSet<String> = def.initializer.iter().map(|t| t.name.clone()).collect();
        let inputs: Vec<SavedSpec> =
            def.input.iter().filter(|info| !initial.contains(&info.name)).map(spec).collect();
        let outputs: Vec<SavedSpec> = def.output.iter().map(spec).collect();
        let (constant, fixed) = roles(&def);
        let mut variables = Vec::new();
        let mut functions = HashMap::new();
        for function in proto.functions {
            let name = graph::function_name(&function.domain, &function.name);
            functions.insert(name, graph::read_function(function, files)?);
        }
        // Initializers of graphs in nodes may share names with others, and are constants.
        let own = std::mem::take(&mut def.initializer);
        let mut plain = |_: &str, array: HostArray<'static>| Ok(Value::host(array));
        let mut graph = graph::read(def, files, 0, &mut plain)?;
        for proto in own {
            let name = proto.name.clone();
            let array = tensor::array(proto, files)?;
            let float = array.dtype().is_float() && array.dtype().tensor_dtype().is_some();
            let value = if !float || array.shape().is_empty() || constant.contains(&name) {
                Value::host(array)
            } else {
                let cell = Cell::new(&name, array.dtype());
                device.scope(|| cell.fill(Arc::new(array), !fixed.contains(&name)))?;
                variables.extend(cell.variable().map(|variable| (name.clone(), variable)));
                Value::Variable(Arc::new(cell))
            };
            graph.initializers.insert(name.clone(), value);
        }
        graph.inputs.retain(|name| !initial.contains(name));
        let mut unknown = Vec::new();
        graph::unknown(&graph, &functions, &mut unknown);
        functions.values().for_each(|function| graph::unknown(function, &functions, &mut unknown));
        if !unknown.is_empty() {
            return Err(graph::unknown_error(&unknown));
        }
        let run = move |inputs: Vec<Value>| {
            let budget = Budget::default();
            let scope = graph::Scope::new(&graph, &functions, opset, &budget);
            device.scope(|| scope.run(inputs))
        };
        let function = SavedFunction::new(name, inputs, outputs, Box::new(run));
        Ok(OnnxModel { function, variables, producer: proto.producer_name, opset })
    }

    /// The model's function.
    pub fn function(&self) -> &SavedFunction {
        &self.function
    }

    /// The inputs.
    pub fn inputs(&self) -> &[SavedSpec] {
        self.function.inputs()
    }

    /// The results.
    pub fn outputs(&self) -> &[SavedSpec] {
        self.function.outputs()
    }

    /// The program that wrote the file.
    pub fn producer(&self) -> &str {
        &self.producer
    }

    /// The version of ONNX's ops that the file has.
    pub fn opset(&self) -> i64 {
        self.opset
    }

    /// Calls the model with its inputs by name, in any order.
    ///
    /// # Errors
    /// As [`SavedFunction::call`].
    pub fn call<N: AsRef<str>, V: Into<SavedValue>>(
        &self,
        inputs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Outputs> {
        self.function.call(inputs)
    }

    /// The only result of the only input.
    ///
    /// # Errors
    /// As [`SavedFunction::predict`].
    pub fn predict(&self, input: impl Into<SavedValue>) -> Result<Tensor> {
        self.function.predict(input)
    }
}

impl Trackable for OnnxModel {
    fn track(&self, parts: &mut Parts<'_>) {
        self.variables.iter().for_each(|(name, variable)| parts.add(name, variable));
    }
}

/// The initializers that are numbers of an op, not weights: the host needs their values. And those that training must not change.
fn roles(graph: &proto::GraphProto) -> (HashSet<String>, HashSet<String>) {
    let (mut constant, mut fixed) = (HashSet::new(), HashSet::new());
    for node in &graph.node {
        let from = match &node.op_type[..] {
            "Clip" | "Pad" | "Resize" | "Upsample" | "OneHot" | "Dropout" => 1,
            "Range" => 0,
            "QuantizeLinear" | "DequantizeLinear" => {
                fixed.extend(node.input.iter().skip(1).cloned());
                continue;
            }
            "BatchNormalization" => {
                fixed.extend(node.input.iter().skip(3).cloned());
                continue;
            }
            _ => continue,
        };
        constant.extend(node.input.iter().skip(from).cloned());
    }
    (constant, fixed)
}

fn spec(info: &proto::ValueInfoProto) -> SavedSpec {
    let tensor = info.r#type.as_ref().and_then(|kind| kind.tensor_type.as_ref());
    let dim = |dim: &proto::Dimension| dim.dim_value.and_then(|size| usize::try_from(size).ok());
    SavedSpec {
        name: info.name.clone(),
        dtype: tensor::dtype(tensor.map_or(0, |tensor| tensor.elem_type)),
        shape: tensor
            .and_then(|tensor| tensor.shape.as_ref())
            .map(|shape| shape.dim.iter().map(dim).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::proto::{
        AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto,
    };
    use super::*;

    fn ints(name: &str, ints: &[i64]) -> AttributeProto {
        let i = ints.first().copied().unwrap_or(0);
        AttributeProto {
            name: name.to_string(),
            i,
            ints: ints.to_vec(),
            ..AttributeProto::default()
        }
    }

    /// The error of a model of one node, whose inputs are zeros of these sizes.
    fn error(op: &str, inputs: &[&[i64]], attribute: Vec<AttributeProto>) -> String {
        let names: Vec<String> = (0..inputs.len()).map(|at| format!("x{at}")).collect();
        let zeros = inputs.iter().zip(&names).map(|(dims, name)| TensorProto {
            dims: dims.to_vec(),
            data_type: 1,
            float_data: vec![0.0; dims.iter().product::<i64>() as usize],
            name: name.clone(),
            ..TensorProto::default()
        });
        let output = vec!["y".to_string()];
        let op_type = op.to_string();
        let graph = GraphProto {
            initializer: zeros.collect(),
            node: vec![NodeProto {
                input: names,
                output,
                op_type,
                attribute,
                ..NodeProto::default()
            }],
            output: vec![ValueInfoProto { name: "y".to_string(), ..ValueInfoProto::default() }],
            ..GraphProto::default()
        };
        let opset = proto::OperatorSetIdProto { domain: String::new(), version: 18 };
        let model =
            ModelProto { graph: Some(graph), opset_import: vec![opset], ..ModelProto::default() };
        let model = OnnxModel::read(&model.encode_to_vec(), &ModelFiles::none()).unwrap();
        model.call(Vec::<(&str, SavedValue)>::new()).unwrap_err().to_string()
    }

    /// A function's inputs keep their places.
    #[test]
    fn a_function_may_lack_its_last_inputs_only() {
        let node = |op: &str, domain: &str, input: &[&str]| NodeProto {
            input: input.iter().map(ToString::to_string).collect(),
            output: vec!["y".to_string()],
            op_type: op.to_string(),
            domain: domain.to_string(),
            ..NodeProto::default()
        };
        let list = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let function = proto::FunctionProto {
            name: "First".to_string(),
            domain: "own".to_string(),
            input: list(&["a", "b", "c"]),
            output: list(&["y"]),
            node: vec![node("Identity", "", &["a"])],
        };
        let one = TensorProto {
            data_type: 1,
            float_data: vec![1.0],
            name: "x".to_string(),
            ..TensorProto::default()
        };
        let run = |input: &[&str]| {
            let graph = GraphProto {
                initializer: vec![one.clone()],
                node: vec![node("First", "own", input)],
                output: vec![ValueInfoProto { name: "y".to_string(), ..ValueInfoProto::default() }],
                ..GraphProto::default()
            };
            let functions = vec![function.clone()];
            let model = ModelProto { graph: Some(graph), functions, ..ModelProto::default() };
            let model = OnnxModel::read(&model.encode_to_vec(), &ModelFiles::none())?;
            model.call(Vec::<(&str, SavedValue)>::new())?.tensor("y")?.item::<f32>()
        };
        assert_eq!(run(&["x"]).unwrap(), 1.0);
        assert_eq!(run(&["x", "x", ""]).unwrap(), 1.0);
        let error = run(&["x", "", "x"]).unwrap_err().to_string();
        assert!(error.contains("leaves out an input of a function"), "{error}");
    }

    /// Numbers in a file may be anything: no panic, and no memory for sizes without measure.
    #[test]
    fn numbers_without_measure_are_errors() {
        let huge = 1 << 60;
        let image: &[i64] = &[1, 4, 2, 2];
        for (op, inputs, attributes, words) in [
            ("GatherElements", vec![&[][..], &[]], vec![], "the axis 0 is out of range"),
            ("Split", vec![&[]], vec![], "the axis 0 is out of range"),
            ("SpaceToDepth", vec![image], vec![ints("blocksize", &[huge])], "no blocks"),
            ("DepthToSpace", vec![image], vec![ints("blocksize", &[huge])], "no blocks"),
            ("TopK", vec![image], vec![ints("k", &[-1])], "its k is -1"),
            (
                "Conv",
                vec![image, image],
                vec![ints("dilations", &[huge, huge])],
                "do not fit 2 axes",
            ),
            ("MaxPool", vec![image], vec![ints("kernel_shape", &[huge, 1])], "not supported"),
            ("Pad", vec![&[2]], vec![ints("pads", &[i64::MIN, 0])], "do not fit"),
            ("LSTM", vec![&[1, 1, 1], &[2, 4, 1], &[1, 4, 1]], vec![], "no direction 1"),
            ("Attention", vec![&[1, 2, 3]; 3], vec![ints("q_num_heads", &[huge])], "not"),
            ("Attention", vec![image; 3], vec![ints("left_window_size", &[huge])], "i32"),
            (
                "RotaryEmbedding",
                vec![image; 3],
                vec![ints("rotary_embedding_dim", &[huge])],
                "a rotation",
            ),
            (
                "LpPool",
                vec![image],
                vec![ints("kernel_shape", &[1, 1]), ints("p", &[0])],
                "the power 0",
            ),
            ("GridSample", vec![image, &[1, 2, 2, 3]], vec![], "names no places"),
            ("AffineGrid", vec![&[1, 3, 3], &[4]], vec![], "do not map"),
            ("NonMaxSuppression", vec![image, image], vec![], "are not [batch, boxes, 4]"),
            ("DequantizeLinear", vec![image, &[4]], vec![ints("axis", &[9])], "the axis 9"),
            ("SoftmaxCrossEntropyLoss", vec![&[2], &[2]], vec![], "axis 1 does not exist"),
            ("DFT", vec![&[2]], vec![], "the axis 1 is out of range"),
            ("DFT", vec![&[2, 1]], vec![ints("axis", &[-1])], "the parts of complex numbers"),
            ("STFT", vec![&[1, 4, 1], &[]], vec![], "is 0, which is no size"),
            ("Col2Im", vec![image, &[2], &[2]], vec![], "no sizes of an image"),
        ] {
            let text = error(op, &inputs, attributes);
            assert!(text.contains(words), "{op}: {text}");
            assert!(text.contains(&format!("node \"\" ({op})")), "{text}");
        }
    }
}
