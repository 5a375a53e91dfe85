//! Protobuf messages of SavedModel and GraphDef: the parts of them that are needed to run a graph, or to write one.

use std::collections::BTreeMap;

use prost::{Message, Oneof};

use crate::files::protobuf::{TensorShapeProto, VersionDef};

/// `SavedModel`: `saved_model.pb`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SavedModelProto {
    #[prost(int64, tag = "1")]
    pub(crate) saved_model_schema_version: i64,
    #[prost(message, repeated, tag = "2")]
    pub(crate) meta_graphs: Vec<MetaGraphDef>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MetaGraphDef {
    #[prost(message, optional, tag = "1")]
    pub(crate) meta_info_def: Option<MetaInfoDef>,
    #[prost(message, optional, tag = "2")]
    pub(crate) graph_def: Option<GraphDef>,
    #[prost(message, optional, tag = "3")]
    pub(crate) saver_def: Option<SaverDef>,
    #[prost(btree_map = "string, message", tag = "4")]
    pub(crate) collection_def: BTreeMap<String, CollectionDef>,
    #[prost(btree_map = "string, message", tag = "5")]
    pub(crate) signature_def: BTreeMap<String, SignatureDef>,
    #[prost(message, repeated, tag = "6")]
    pub(crate) asset_file_def: Vec<AssetFileDef>,
    #[prost(message, optional, tag = "7")]
    pub(crate) object_graph_def: Option<SavedObjectGraph>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MetaInfoDef {
    #[prost(string, repeated, tag = "4")]
    pub(crate) tags: Vec<String>,
    #[prost(string, tag = "5")]
    pub(crate) tensorflow_version: String,
    #[prost(bool, tag = "7")]
    pub(crate) stripped_default_attrs: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SaverDef {
    #[prost(string, tag = "1")]
    pub(crate) filename_tensor_name: String,
    #[prost(string, tag = "2")]
    pub(crate) save_tensor_name: String,
    #[prost(string, tag = "3")]
    pub(crate) restore_op_name: String,
    /// Of the checkpoint's format: 2.
    #[prost(int32, tag = "7")]
    pub(crate) version: i32,
}

/// A collection of TensorFlow 1; of its kinds, only lists of node names are read.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct CollectionDef {
    #[prost(message, optional, tag = "1")]
    pub(crate) node_list: Option<NodeList>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NodeList {
    #[prost(string, repeated, tag = "1")]
    pub(crate) value: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SignatureDef {
    #[prost(btree_map = "string, message", tag = "1")]
    pub(crate) inputs: BTreeMap<String, TensorInfo>,
    #[prost(btree_map = "string, message", tag = "2")]
    pub(crate) outputs: BTreeMap<String, TensorInfo>,
    #[prost(string, tag = "3")]
    pub(crate) method_name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorInfo {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(int32, tag = "2")]
    pub(crate) dtype: i32,
    #[prost(message, optional, tag = "3")]
    pub(crate) tensor_shape: Option<TensorShapeProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AssetFileDef {
    #[prost(message, optional, tag = "1")]
    pub(crate) tensor_info: Option<TensorInfo>,
    #[prost(string, tag = "2")]
    pub(crate) filename: String,
}

/// A graph and the functions that it calls; also the whole of a frozen graph's file.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct GraphDef {
    #[prost(message, repeated, tag = "1")]
    pub(crate) node: Vec<NodeDef>,
    #[prost(message, optional, tag = "2")]
    pub(crate) library: Option<FunctionDefLibrary>,
    #[prost(message, optional, tag = "4")]
    pub(crate) versions: Option<VersionDef>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NodeDef {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) op: String,
    /// `node`, `node:1`, in functions `node:result:0`; `^node` for a node that must run before.
    #[prost(string, repeated, tag = "3")]
    pub(crate) input: Vec<String>,
    #[prost(btree_map = "string, message", tag = "5")]
    pub(crate) attr: BTreeMap<String, AttrValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AttrValue {
    #[prost(oneof = "Attr", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10")]
    pub(crate) value: Option<Attr>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Attr {
    #[prost(message, tag = "1")]
    List(ListValue),
    #[prost(bytes, tag = "2")]
    Text(Vec<u8>),
    #[prost(int64, tag = "3")]
    Int(i64),
    #[prost(float, tag = "4")]
    Float(f32),
    #[prost(bool, tag = "5")]
    Bool(bool),
    #[prost(int32, tag = "6")]
    Type(i32),
    #[prost(message, tag = "7")]
    Shape(TensorShapeProto),
    #[prost(message, tag = "8")]
    Tensor(TensorProto),
    /// The name of an attribute of the function around, whose value is this one's.
    #[prost(string, tag = "9")]
    Placeholder(String),
    #[prost(message, tag = "10")]
    Function(NameAttrList),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ListValue {
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub(crate) s: Vec<Vec<u8>>,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) i: Vec<i64>,
    #[prost(float, repeated, tag = "4")]
    pub(crate) f: Vec<f32>,
    #[prost(int32, repeated, tag = "6")]
    pub(crate) r#type: Vec<i32>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) shape: Vec<TensorShapeProto>,
    #[prost(message, repeated, tag = "9")]
    pub(crate) func: Vec<NameAttrList>,
}

/// A function by name.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct NameAttrList {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FunctionDefLibrary {
    #[prost(message, repeated, tag = "1")]
    pub(crate) function: Vec<FunctionDef>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FunctionDef {
    #[prost(message, optional, tag = "1")]
    pub(crate) signature: Option<OpDef>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) node_def: Vec<NodeDef>,
    /// The node's result for each result of the function.
    #[prost(btree_map = "string, string", tag = "4")]
    pub(crate) ret: BTreeMap<String, String>,
    #[prost(btree_map = "string, message", tag = "5")]
    pub(crate) attr: BTreeMap<String, AttrValue>,
    /// The nodes that run even if no result needs them.
    #[prost(btree_map = "string, string", tag = "6")]
    pub(crate) control_ret: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct OpDef {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) input_arg: Vec<ArgDef>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) output_arg: Vec<ArgDef>,
    #[prost(bool, tag = "17")]
    pub(crate) is_stateful: bool,
    #[prost(string, repeated, tag = "20")]
    pub(crate) control_output: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ArgDef {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(int32, tag = "3")]
    pub(crate) r#type: i32,
    #[prost(message, repeated, tag = "7")]
    pub(crate) handle_data: Vec<HandleData>,
}

/// What the variable holds that an argument is.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct HandleData {
    #[prost(int32, tag = "1")]
    pub(crate) dtype: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) shape: Option<TensorShapeProto>,
}

/// `TensorProto`: an array in one of many forms.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorProto {
    #[prost(int32, tag = "1")]
    pub(crate) dtype: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) tensor_shape: Option<TensorShapeProto>,
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) tensor_content: Vec<u8>,
    #[prost(float, repeated, tag = "5")]
    pub(crate) float_val: Vec<f32>,
    #[prost(double, repeated, tag = "6")]
    pub(crate) double_val: Vec<f64>,
    #[prost(int32, repeated, tag = "7")]
    pub(crate) int_val: Vec<i32>,
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub(crate) string_val: Vec<Vec<u8>>,
    #[prost(int64, repeated, tag = "10")]
    pub(crate) int64_val: Vec<i64>,
    #[prost(bool, repeated, tag = "11")]
    pub(crate) bool_val: Vec<bool>,
    #[prost(int32, repeated, tag = "13")]
    pub(crate) half_val: Vec<i32>,
    #[prost(uint32, repeated, tag = "16")]
    pub(crate) uint32_val: Vec<u32>,
    #[prost(uint64, repeated, tag = "17")]
    pub(crate) uint64_val: Vec<u64>,
}

/// The objects of a model; the first is the model itself.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SavedObjectGraph {
    #[prost(message, repeated, tag = "1")]
    pub(crate) nodes: Vec<SavedObject>,
    #[prost(btree_map = "string, message", tag = "2")]
    pub(crate) concrete_functions: BTreeMap<String, SavedConcreteFunction>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SavedObject {
    #[prost(message, repeated, tag = "1")]
    pub(crate) children: Vec<ObjectReference>,
    #[prost(oneof = "SavedObjectKind", tags = "4, 6, 7, 8, 9, 10")]
    pub(crate) kind: Option<SavedObjectKind>,
}

/// A part of an object, with its name there.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ObjectReference {
    #[prost(int32, tag = "1")]
    pub(crate) node_id: i32,
    #[prost(string, tag = "2")]
    pub(crate) local_name: String,
}

/// The kinds of objects that functions capture, functions, and all others.
#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum SavedObjectKind {
    #[prost(message, tag = "4")]
    User(UserObject),
    #[prost(message, tag = "6")]
    Function(SavedFunctionProto),
    #[prost(message, tag = "7")]
    Variable(SavedVariable),
    #[prost(message, tag = "8")]
    BareConcreteFunction(BareConcreteFunction),
    #[prost(message, tag = "9")]
    Constant(SavedConstant),
    #[prost(message, tag = "10")]
    Resource(SavedResource),
}

/// What functions make, fill and free, such as a lookup table.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SavedResource {
    #[prost(string, tag = "1")]
    pub(crate) device: String,
}

/// An object of a class of a program, which `identifier` names.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct UserObject {
    #[prost(string, tag = "1")]
    pub(crate) identifier: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) version: Option<VersionDef>,
}

/// The function of a signature, whose arguments have names.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct BareConcreteFunction {
    #[prost(string, tag = "1")]
    pub(crate) concrete_function_name: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) argument_keywords: Vec<String>,
    #[prost(int64, tag = "3")]
    pub(crate) allowed_positional_arguments: i64,
    #[prost(message, optional, tag = "4")]
    pub(crate) function_spec: Option<FunctionSpec>,
}

/// The parameters of a function, as Python has them.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FunctionSpec {
    #[prost(message, optional, tag = "1")]
    pub(crate) fullargspec: Option<StructuredValue>,
    #[prost(bool, tag = "2")]
    pub(crate) is_method: bool,
    #[prost(message, optional, tag = "5")]
    pub(crate) input_signature: Option<StructuredValue>,
}

/// A `tf.function`, with a concrete function for each of its traces.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SavedFunctionProto {
    #[prost(string, repeated, tag = "1")]
    pub(crate) concrete_functions: Vec<String>,
    #[prost(message, optional, tag = "2")]
    pub(crate) function_spec: Option<FunctionSpec>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SavedVariable {
    #[prost(int32, tag = "1")]
    pub(crate) dtype: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) shape: Option<TensorShapeProto>,
    #[prost(bool, tag = "3")]
    pub(crate) trainable: bool,
    #[prost(string, tag = "6")]
    pub(crate) name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SavedConstant {
    /// The node whose value it is.
    #[prost(string, tag = "1")]
    pub(crate) operation: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SavedConcreteFunction {
    /// The objects that it captures, whose values are its last arguments.
    #[prost(int32, repeated, tag = "2")]
    pub(crate) bound_inputs: Vec<i32>,
    #[prost(message, optional, tag = "3")]
    pub(crate) canonicalized_input_signature: Option<StructuredValue>,
    #[prost(message, optional, tag = "4")]
    pub(crate) output_signature: Option<StructuredValue>,
}

/// Tensors in nested containers.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StructuredValue {
    #[prost(oneof = "Structured", tags = "1, 13, 33, 34, 51, 52, 53, 54")]
    pub(crate) kind: Option<Structured>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Structured {
    #[prost(message, tag = "1")]
    None(NoneValue),
    #[prost(string, tag = "13")]
    Text(String),
    #[prost(message, tag = "33")]
    TensorSpec(TensorSpecProto),
    #[prost(message, tag = "34")]
    TypeSpec(TypeSpecProto),
    #[prost(message, tag = "51")]
    List(StructuredList),
    #[prost(message, tag = "52")]
    Tuple(StructuredList),
    #[prost(message, tag = "53")]
    Dict(StructuredDict),
    #[prost(message, tag = "54")]
    NamedTuple(NamedTuple),
}

/// Python's `None`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct NoneValue {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorSpecProto {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) shape: Option<TensorShapeProto>,
    #[prost(int32, tag = "3")]
    pub(crate) dtype: i32,
}

/// A composite tensor, such as a ragged one.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TypeSpecProto {
    #[prost(string, tag = "3")]
    pub(crate) type_spec_class_name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StructuredList {
    #[prost(message, repeated, tag = "1")]
    pub(crate) values: Vec<StructuredValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StructuredDict {
    #[prost(btree_map = "string, message", tag = "1")]
    pub(crate) fields: BTreeMap<String, StructuredValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NamedTuple {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) values: Vec<NamedField>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NamedField {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<StructuredValue>,
}
