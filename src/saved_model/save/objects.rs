//! The objects of a SavedModel: its variables, functions and signatures, in TensorFlow's format.

use std::collections::BTreeMap;

use super::body::RESOURCE;
use super::builder::shape_proto;
use super::tables::{self, Table};
use crate::files::protobuf::{TensorShapeProto, VersionDef};
use crate::function::TensorSpec;
use crate::host_array::HostDType;
use crate::saved_model::graph_def::proto::{
    BareConcreteFunction, FunctionSpec, NamedField, NamedTuple, NoneValue, ObjectReference,
    SavedConcreteFunction, SavedFunctionProto, SavedObject, SavedObjectGraph, SavedObjectKind,
    SavedResource, SavedVariable, Structured, StructuredDict, StructuredList, StructuredValue,
    TensorSpecProto, UserObject,
};
use crate::train::StoredVariable;

/// The name, shape and dtype of what a function takes or returns.
#[derive(Clone)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) shape: Vec<Option<usize>>,
    pub(super) dtype: HostDType,
}

/// A function of the model, of which the file has two forms: one for calls with positions, and the signature, whose
/// arguments and results have names.
pub(super) struct SavedSignature {
    /// The name of the signature.
    pub(super) name: String,
    /// The name of the function among the parts of the model.
    pub(super) function: String,
    /// In the order of positions.
    pub(super) inputs: Vec<Named>,
    /// Sorted by their names.
    pub(super) outputs: Vec<Named>,
    /// The functions in the graph.
    pub(super) positional: String,
    pub(super) wrapper: String,
    /// The objects that are its variables and its tables, which follow its arguments.
    pub(super) bound: Vec<usize>,
}

fn value(kind: Structured) -> StructuredValue {
    StructuredValue { kind: Some(kind) }
}

fn none() -> StructuredValue {
    value(Structured::None(NoneValue {}))
}

fn list(values: Vec<StructuredValue>) -> StructuredValue {
    value(Structured::List(StructuredList { values }))
}

fn tuple(values: Vec<StructuredValue>) -> StructuredValue {
    value(Structured::Tuple(StructuredList { values }))
}

fn dict(fields: BTreeMap<String, StructuredValue>) -> StructuredValue {
    value(Structured::Dict(StructuredDict { fields }))
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> StructuredValue {
    list(names.map(|name| value(Structured::Text(name.to_string()))).collect())
}

impl Named {
    pub(super) fn new(name: &str, spec: &TensorSpec) -> Self {
        let (shape, dtype) = (spec.shape().to_vec(), spec.dtype().into());
        Named { name: name.to_string(), shape, dtype }
    }

    fn structured(&self, name: &str) -> StructuredValue {
        value(Structured::TensorSpec(TensorSpecProto {
            name: name.to_string(),
            shape: Some(shape_proto(&self.shape)),
            dtype: self.dtype.number(),
        }))
    }
}

/// What a function of a table returns.
fn scalar(dtype: i32) -> StructuredValue {
    let shape = Some(TensorShapeProto::new(&[]));
    value(Structured::TensorSpec(TensorSpecProto { name: String::new(), shape, dtype }))
}

/// What Python shows of a function's parameters: those with positions, and those with names only.
fn function_spec(
    positions: &[&str],
    keywords: &[&str],
    signature: StructuredValue,
) -> FunctionSpec {
    let field =
        |key: &str, value: StructuredValue| NamedField { key: key.to_string(), value: Some(value) };
    let values = vec![
        field("args", names(positions.iter().copied())),
        field("varargs", none()),
        field("varkw", none()),
        field("defaults", none()),
        field("kwonlyargs", names(keywords.iter().copied())),
        field("kwonlydefaults", none()),
        field("annotations", dict(BTreeMap::new())),
    ];
    FunctionSpec {
        fullargspec: Some(value(Structured::NamedTuple(NamedTuple {
            name: "FullArgSpec".to_string(),
            values,
        }))),
        is_method: false,
        input_signature: Some(signature),
    }
}

fn user_object(identifier: &str) -> Option<SavedObjectKind> {
    Some(SavedObjectKind::User(UserObject {
        identifier: identifier.to_string(),
        version: Some(VersionDef { producer: 1, min_consumer: 1, ..VersionDef::default() }),
    }))
}

fn reference(node: usize, name: &str) -> ObjectReference {
    ObjectReference {
        node_id: i32::try_from(node).unwrap_or(i32::MAX),
        local_name: name.to_string(),
    }
}

/// The object that is a table, by its place, where the checkpoint has `objects`.
pub(super) fn table_object(objects: usize, place: usize) -> usize {
    objects + place * tables::OBJECTS
}

/// The objects: those of the checkpoint, in its order, then the tables and the functions. `variables` are those objects that are
/// variables.
pub(super) fn object_graph(
    children: &[Vec<(String, usize)>],
    variables: &BTreeMap<usize, StoredVariable>,
    tables: &[Table],
    signatures: &[SavedSignature],
) -> SavedObjectGraph {
    let mut nodes: Vec<SavedObject> = children
        .iter()
        .enumerate()
        .map(|(at, children)| SavedObject {
            children: children.iter().map(|(name, node)| reference(*node, name)).collect(),
            kind: match variables.get(&at) {
                Some(stored) => Some(SavedObjectKind::Variable(SavedVariable {
                    dtype: HostDType::from(stored.variable.dtype()).number(),
                    shape: Some(TensorShapeProto::new(stored.variable.shape())),
                    trainable: stored.variable.trainable(),
                    name: stored.name.clone(),
                })),
                None => user_object("_generic_user_object"),
            },
        })
        .collect();
    let mut concrete_functions = BTreeMap::new();
    for (place, table) in tables.iter().enumerate() {
        let at = table_object(children.len(), place);
        // An object's names are Python's attributes; a model has none that begin so.
        nodes[0].children.push(reference(at, &format!("_lookup_table_{place}")));
        let own = ["_create_resource", "_initialize", "_destroy_resource"];
        let children =
            own.iter().enumerate().map(|(number, name)| reference(at + 1 + number, name)).collect();
        let kind = Some(SavedObjectKind::Resource(SavedResource::default()));
        nodes.push(SavedObject { children, kind });
        let results = [RESOURCE, HostDType::I32.number(), HostDType::I32.number()];
        for ((name, result), is_bound) in
            table.functions().into_iter().zip(results).zip([false, true, false])
        {
            nodes.push(SavedObject {
                children: Vec::new(),
                kind: Some(SavedObjectKind::Function(SavedFunctionProto {
                    concrete_functions: vec![name.clone()],
                    function_spec: Some(function_spec(&[], &[], tuple(Vec::new()))),
                })),
            });
            concrete_functions.insert(
                name,
                SavedConcreteFunction {
                    bound_inputs: is_bound.then_some(at as i32).into_iter().collect(),
                    canonicalized_input_signature: Some(tuple(vec![
                        tuple(Vec::new()),
                        dict(BTreeMap::new()),
                    ])),
                    output_signature: Some(scalar(result)),
                },
            );
        }
    }
    let mut map = Vec::new();
    for signature in signatures {
        let bound: Vec<i32> = signature.bound.iter().map(|at| *at as i32).collect();
        let positions: Vec<&str> = signature.inputs.iter().map(|input| &*input.name).collect();
        let mut sorted: Vec<&Named> = signature.inputs.iter().collect();
        sorted.sort_by(|a, b| a.name.cmp(&b.name));
        let keywords: Vec<&str> = sorted.iter().map(|input| &*input.name).collect();
        let specs: Vec<StructuredValue> =
            signature.inputs.iter().map(|input| input.structured(&input.name)).collect();
        let results: BTreeMap<String, StructuredValue> = signature
            .outputs
            .iter()
            .map(|output| (output.name.clone(), output.structured(&output.name)))
            .collect();
        let output_signature = match &signature.outputs[..] {
            // TensorFlow's word for a result without a name.
            [one] => one.structured("unknown"),
            _ => dict(results.clone()),
        };
        concrete_functions.insert(
            signature.positional.clone(),
            SavedConcreteFunction {
                bound_inputs: bound.clone(),
                canonicalized_input_signature: Some(tuple(vec![
                    tuple(specs.clone()),
                    dict(BTreeMap::new()),
                ])),
                output_signature: Some(output_signature),
            },
        );
        let named: BTreeMap<String, StructuredValue> = sorted
            .iter()
            .map(|input| (input.name.clone(), input.structured(&input.name)))
            .collect();
        concrete_functions.insert(
            signature.wrapper.clone(),
            SavedConcreteFunction {
                bound_inputs: bound,
                canonicalized_input_signature: Some(tuple(vec![tuple(Vec::new()), dict(named)])),
                output_signature: Some(dict(results)),
            },
        );
        let function = nodes.len();
        nodes.push(SavedObject {
            children: Vec::new(),
            kind: Some(SavedObjectKind::Function(SavedFunctionProto {
                concrete_functions: vec![signature.positional.clone()],
                function_spec: Some(function_spec(&positions, &[], tuple(specs))),
            })),
        });
        nodes[0].children.push(reference(function, &signature.function));
        map.push(reference(nodes.len(), &signature.name));
        nodes.push(SavedObject {
            children: Vec::new(),
            kind: Some(SavedObjectKind::BareConcreteFunction(BareConcreteFunction {
                concrete_function_name: signature.wrapper.clone(),
                argument_keywords: keywords.iter().map(|name| name.to_string()).collect(),
                allowed_positional_arguments: i64::from(keywords.len() == 1),
                function_spec: Some(function_spec(&[], &keywords, none())),
            })),
        });
    }
    let signatures = reference(nodes.len(), "signatures");
    nodes[0].children.push(signatures);
    nodes.push(SavedObject { children: map, kind: user_object("signature_map") });
    SavedObjectGraph { nodes, concrete_functions }
}
