//! The nodes around the functions: variables, the calls of signatures, saving and restoring.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::builder::{dtype_attr, function, shape_proto, types};
use super::number_of;
use super::objects::{Named, SavedSignature, object_graph, table_object};
use super::tables::Table;
use crate::error::Result;
use crate::files::protobuf::{TensorShapeProto, VersionDef};
use crate::host_array::HostDType;
use crate::saved_model::graph_def::proto::{
    Attr, AttrValue, CollectionDef, FunctionDef, FunctionDefLibrary, GraphDef, MetaGraphDef,
    MetaInfoDef, NodeDef, NodeList, SavedModelProto, SaverDef, SignatureDef, TensorInfo,
    TensorProto,
};
use crate::train::{ObjectsToStore, StoredVariable};

use super::body::RESOURCE;

/// The version of TensorFlow whose ops the graphs use, the first that reads them all.
const TENSORFLOW: &str = "2.11.0";
const PRODUCER: i32 = 1286;

/// The signature, and the node, that TensorFlow runs after it has restored the variables.
const INIT: &str = "__saved_model_init_op";

fn node(
    name: &str,
    op: &str,
    input: Vec<String>,
    attrs: impl IntoIterator<Item = (&'static str, Attr)>,
) -> NodeDef {
    let attr = attrs
        .into_iter()
        .map(|(key, value)| (key.to_string(), AttrValue { value: Some(value) }))
        .collect();
    NodeDef { name: name.to_string(), op: op.to_string(), input, attr }
}

fn strings(name: &str, values: impl Iterator<Item = String>) -> NodeDef {
    let values: Vec<Vec<u8>> = values.map(String::into_bytes).collect();
    let value = TensorProto {
        dtype: HostDType::String.number(),
        tensor_shape: Some(TensorShapeProto::new(&[values.len()])),
        string_val: values,
        ..TensorProto::default()
    };
    let dtype = dtype_attr(HostDType::String);
    node(name, "Const", Vec::new(), [("dtype", dtype), ("value", Attr::Tensor(value))])
}

/// The names of nodes, each its own.
#[derive(Default)]
struct Names {
    taken: HashSet<String>,
    /// The next number of each name that was wanted before.
    next: HashMap<String, usize>,
}

impl Names {
    fn take(&mut self, wanted: &str) -> String {
        let letter =
            |c: char| if c.is_ascii_alphanumeric() || "_./-".contains(c) { c } else { '_' };
        let mut base: String = wanted.chars().map(letter).collect();
        if !base.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.') {
            base.insert(0, 'v');
        }
        let count = self.next.entry(base.clone()).or_insert(0);
        loop {
            let name = if *count == 0 { base.clone() } else { format!("{base}_{count}") };
            *count += 1;
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

pub(super) fn saved_model(
    objects: &ObjectsToStore,
    tables: &[Table],
    signatures: &[SavedSignature],
    functions: Vec<FunctionDef>,
) -> Result<SavedModelProto> {
    let mut names = Names::default();
    for own in ["saver_filename", "NoOp"] {
        names.take(own);
    }
    let mut nodes = Vec::new();
    let mut handles: BTreeMap<usize, String> = BTreeMap::new();
    for (at, stored) in &objects.variables {
        let name = names.take(&stored.name);
        let attrs = [
            ("dtype", Attr::Type(number_of(stored.variable.dtype()))),
            ("shape", Attr::Shape(TensorShapeProto::new(stored.variable.shape()))),
            ("shared_name", Attr::Text(name.clone().into_bytes())),
        ];
        nodes.push(node(&name, "VarHandleOp", Vec::new(), attrs));
        handles.insert(*at, name);
    }
    let mut filled = Vec::new();
    for (place, table) in tables.iter().enumerate() {
        let name = names.take("hash_table");
        nodes.push(node(&name, "HashTableV2", Vec::new(), table.attrs()));
        let [_, initializer, _] = table.functions();
        let call = names.take("initialize_table");
        let attrs = [
            ("f", function(&initializer)),
            ("Tin", types([RESOURCE])),
            ("Tout", types([HostDType::I32.number()])),
        ];
        nodes.push(node(&call, "StatefulPartitionedCall", vec![name.clone()], attrs));
        filled.push(format!("^{call}"));
        handles.insert(table_object(objects.children.len(), place), name);
    }
    let mut signature_def = BTreeMap::new();
    for signature in signatures {
        let own = call_of(signature, &handles, &mut names, &mut nodes);
        signature_def.insert(signature.name.clone(), own);
    }
    nodes.push(node("NoOp", "NoOp", filled, []));
    let init = TensorInfo {
        name: "NoOp".to_string(),
        dtype: 0,
        tensor_shape: Some(TensorShapeProto { dim: Vec::new(), unknown_rank: true }),
    };
    let outputs = [(INIT.to_string(), init)].into();
    signature_def.insert(INIT.to_string(), SignatureDef { outputs, ..SignatureDef::default() });
    let saver_def = saver(&objects.variables, &handles, &mut names, &mut nodes);
    let main = NodeList { value: vec!["NoOp".to_string()] };
    let graph = GraphDef {
        node: nodes,
        library: Some(FunctionDefLibrary { function: functions }),
        versions: Some(VersionDef {
            producer: PRODUCER,
            min_consumer: 12,
            ..VersionDef::default()
        }),
    };
    let meta = MetaGraphDef {
        meta_info_def: Some(MetaInfoDef {
            tags: vec!["serve".to_string()],
            tensorflow_version: TENSORFLOW.to_string(),
            stripped_default_attrs: true,
        }),
        graph_def: Some(graph),
        saver_def: Some(saver_def),
        collection_def: [(
            "saved_model_main_op".to_string(),
            CollectionDef { node_list: Some(main) },
        )]
        .into(),
        signature_def,
        asset_file_def: Vec::new(),
        object_graph_def: Some(object_graph(
            &objects.children,
            &objects.variables,
            tables,
            signatures,
        )),
    };
    Ok(SavedModelProto { saved_model_schema_version: 1, meta_graphs: vec![meta] })
}

fn info(name: String, named: &Named) -> TensorInfo {
    TensorInfo { name, dtype: named.dtype.number(), tensor_shape: Some(shape_proto(&named.shape)) }
}

/// Adds the nodes that call a signature's function.
fn call_of(
    signature: &SavedSignature,
    handles: &BTreeMap<usize, String>,
    names: &mut Names,
    nodes: &mut Vec<NodeDef>,
) -> SignatureDef {
    let mut sorted: Vec<&Named> = signature.inputs.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let (mut inputs, mut input, mut kinds) = (BTreeMap::new(), Vec::new(), Vec::new());
    for named in sorted {
        let name = names.take(&format!("{}_{}", signature.name, named.name));
        let attrs =
            [("dtype", dtype_attr(named.dtype)), ("shape", Attr::Shape(shape_proto(&named.shape)))];
        nodes.push(node(&name, "Placeholder", Vec::new(), attrs));
        kinds.push(named.dtype.number());
        inputs.insert(named.name.clone(), info(format!("{name}:0"), named));
        input.push(name);
    }
    for at in &signature.bound {
        input.push(handles[at].clone());
        kinds.push(RESOURCE);
    }
    let call = names.take("StatefulPartitionedCall");
    let results = signature.outputs.iter().map(|named| named.dtype.number());
    let attrs =
        [("f", function(&signature.wrapper)), ("Tin", types(kinds)), ("Tout", types(results))];
    nodes.push(node(&call, "StatefulPartitionedCall", input, attrs));
    let outputs = signature.outputs.iter().enumerate();
    SignatureDef {
        inputs,
        outputs: outputs
            .map(|(at, named)| (named.name.clone(), info(format!("{call}:{at}"), named)))
            .collect(),
        method_name: "tensorflow/serving/predict".to_string(),
    }
}

/// Adds the nodes by which programs without objects, such as servers, restore the variables, and save them.
fn saver(
    variables: &BTreeMap<usize, StoredVariable>,
    handles: &BTreeMap<usize, String>,
    names: &mut Names,
    nodes: &mut Vec<NodeDef>,
) -> SaverDef {
    let string = || dtype_attr(HostDType::String);
    let file = "saver_filename".to_string();
    let shape = Attr::Shape(TensorShapeProto::new(&[]));
    nodes.push(node(&file, "Placeholder", Vec::new(), [("dtype", string()), ("shape", shape)]));
    let (mut restored, mut saved) = (Vec::new(), Vec::new());
    if !variables.is_empty() {
        let (keys, slices) = (names.take("save/tensor_names"), names.take("save/shape_and_slices"));
        nodes.push(strings(&keys, variables.values().map(|stored| stored.key.clone())));
        nodes.push(strings(&slices, variables.values().map(|_| String::new())));
        let dtypes = || types(variables.values().map(|stored| number_of(stored.variable.dtype())));
        let read = names.take("save/RestoreV2");
        let from = vec![file.clone(), keys.clone(), slices.clone()];
        nodes.push(node(&read, "RestoreV2", from, [("dtypes", dtypes())]));
        let mut tensors = vec![file.clone(), keys, slices];
        for (place, (at, stored)) in variables.iter().enumerate() {
            let dtype = || [("dtype", Attr::Type(number_of(stored.variable.dtype())))];
            let assign = names.take("save/AssignVariableOp");
            let input = vec![handles[at].clone(), format!("{read}:{place}")];
            nodes.push(node(&assign, "AssignVariableOp", input, dtype()));
            restored.push(format!("^{assign}"));
            let value = names.take("save/ReadVariableOp");
            nodes.push(node(&value, "ReadVariableOp", vec![handles[at].clone()], dtype()));
            tensors.push(value);
        }
        let write = names.take("save/SaveV2");
        nodes.push(node(&write, "SaveV2", tensors, [("dtypes", dtypes())]));
        saved.push(format!("^{write}"));
    }
    let restore = names.take("save/restore_all");
    nodes.push(node(&restore, "NoOp", restored, []));
    let done = names.take("save/control_dependency");
    let input = [file.clone()].into_iter().chain(saved).collect();
    nodes.push(node(&done, "Identity", input, [("T", string())]));
    SaverDef {
        filename_tensor_name: format!("{file}:0"),
        save_tensor_name: format!("{done}:0"),
        restore_op_name: restore,
        version: 2,
    }
}

/// `FingerprintDef`, by which TensorFlow tells models from each other.
#[derive(Clone, PartialEq, prost::Message)]
struct Fingerprint {
    #[prost(uint64, tag = "1")]
    saved_model_checksum: u64,
    #[prost(uint64, tag = "5")]
    checkpoint_hash: u64,
    #[prost(message, optional, tag = "6")]
    version: Option<VersionDef>,
}

/// The contents of `fingerprint.pb` for a graph and a checkpoint's index of these bytes.
pub(super) fn fingerprint(saved_model: &[u8], index: &[u8]) -> Vec<u8> {
    let version = Some(VersionDef { producer: 4, ..VersionDef::default() });
    prost::Message::encode_to_vec(&Fingerprint {
        saved_model_checksum: farmhash::fingerprint64(saved_model),
        checkpoint_hash: farmhash::fingerprint64(index),
        version,
    })
}
