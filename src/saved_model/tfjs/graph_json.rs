//! A `GraphDef` as JSON, in the mapping of Protocol Buffers.

use std::collections::{BTreeMap, HashSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::error::{Error, Result, message};
use crate::files::protobuf::{Dim, TensorShapeProto};
use crate::host_array::HostDType;
use crate::saved_model::graph_def::proto::{
    ArgDef, Attr, AttrValue, FunctionDef, FunctionDefLibrary, GraphDef, ListValue, NameAttrList,
    NodeDef, OpDef, SignatureDef, TensorInfo, TensorProto,
};

fn broken(what: std::fmt::Arguments<'_>) -> Error {
    Error::Data(message!("{what}. The model.json is damaged; take another copy."))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or("")
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn entries<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value.get(key).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

/// The graph, with its functions.
pub(super) fn graph(value: &Value) -> Result<GraphDef> {
    let nodes = list(value, "node").iter().map(node).collect::<Result<_>>()?;
    let functions = value.get("library").map_or(&[][..], |library| list(library, "function"));
    let function = functions.iter().map(function).collect::<Result<_>>()?;
    Ok(GraphDef { node: nodes, library: Some(FunctionDefLibrary { function }), versions: None })
}

fn node(value: &Value) -> Result<NodeDef> {
    let name = text(value, "name").to_string();
    let inputs = list(value, "input").iter().map(|input| {
        input
            .as_str()
            .map(str::to_string)
            .ok_or_else(|| broken(format_args!("node \"{name}\" has an input without a name")))
    });
    let input = inputs.collect::<Result<_>>()?;
    let attr = attributes(value, "attr")
        .map_err(|error| error.reworded(|text| message!("node \"{name}\": {text}")))?;
    Ok(NodeDef { op: text(value, "op").to_string(), input, attr, name })
}

fn attributes(value: &Value, key: &str) -> Result<BTreeMap<String, AttrValue>> {
    entries(value, key)
        .map(|(name, value)| Ok((name.clone(), AttrValue { value: attribute(value)? })))
        .collect()
}

fn function(value: &Value) -> Result<FunctionDef> {
    let signature = value.get("signature").unwrap_or(&Value::Null);
    let arguments = |key: &str| -> Result<Vec<ArgDef>> {
        let argument = |value: &Value| {
            let r#type = value.get("type").map_or(Ok(0), dtype)?;
            Ok(ArgDef { name: text(value, "name").to_string(), r#type, handle_data: Vec::new() })
        };
        list(signature, key).iter().map(argument).collect()
    };
    let texts = |key: &str| {
        let text = |value: &Value| value.as_str().unwrap_or("").to_string();
        entries(value, key).map(|(name, value)| (name.clone(), text(value))).collect()
    };
    let signature = OpDef {
        name: text(signature, "name").to_string(),
        input_arg: arguments("inputArg")?,
        output_arg: arguments("outputArg")?,
        is_stateful: false,
        control_output: Vec::new(),
    };
    let named =
        |error: Error| error.reworded(|text| message!("function \"{}\": {text}", signature.name));
    let node_def = list(value, "nodeDef").iter().map(node).collect::<Result<_>>().map_err(named)?;
    let attr = attributes(value, "attr").map_err(named)?;
    Ok(FunctionDef {
        node_def,
        ret: texts("ret"),
        attr,
        control_ret: texts("controlRet"),
        signature: Some(signature),
    })
}

/// The number of a dtype, which may be there by its name: `DT_FLOAT`.
fn dtype(value: &Value) -> Result<i32> {
    if let Some(number) = value.as_i64() {
        return i32::try_from(number)
            .map_err(|_| broken(format_args!("there is no dtype {number}")));
    }
    let name = value.as_str().unwrap_or("");
    // A dtype of references is that of its values.
    let plain = name.strip_prefix("DT_").unwrap_or(name).trim_end_matches("_REF");
    let name = match plain {
        "FLOAT" => "float32".to_string(),
        "DOUBLE" => "float64".to_string(),
        "HALF" => "float16".to_string(),
        other => other.to_lowercase(),
    };
    let known = HostDType::ALL.iter().find(|dtype| dtype.tensorflow_name() == name);
    known
        .map(|dtype| dtype.number())
        .ok_or_else(|| broken(format_args!("there is no dtype {value}")))
}

/// An integer, which may be there as text, as JSON has none of 64 bits.
fn integer(value: &Value) -> Result<i64> {
    let number = match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_i64(),
    };
    number.ok_or_else(|| broken(format_args!("{value} is no integer")))
}

fn float(value: &Value) -> Result<f64> {
    match value {
        Value::String(text) => match &text[..] {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            other => other.parse().ok(),
        },
        other => other.as_f64(),
    }
    .ok_or_else(|| broken(format_args!("{value} is no number")))
}

/// Bytes in base64, or as a list of numbers in old files.
fn bytes(value: &Value) -> Result<Vec<u8>> {
    let bytes = match value {
        Value::String(text) => STANDARD.decode(text).ok(),
        Value::Array(codes) => codes.iter().map(|code| u8::try_from(code.as_u64()?).ok()).collect(),
        _ => None,
    };
    bytes.ok_or_else(|| broken(format_args!("{value} is no base64")))
}

fn shape(value: &Value) -> Result<TensorShapeProto> {
    let size = |dim: &Value| Ok(Dim { size: dim.get("size").map_or(Ok(0), integer)? });
    let dim = list(value, "dim").iter().map(size).collect::<Result<_>>()?;
    Ok(TensorShapeProto { dim, unknown_rank: value.get("unknownRank") == Some(&Value::Bool(true)) })
}

fn function_name(value: &Value) -> NameAttrList {
    NameAttrList { name: text(value, "name").to_string() }
}

fn all<T>(value: &Value, key: &str, one: impl Fn(&Value) -> Result<T>) -> Result<Vec<T>> {
    list(value, key).iter().map(one).collect()
}

fn attribute(value: &Value) -> Result<Option<Attr>> {
    let Some((kind, value)) = value.as_object().and_then(|object| object.iter().next()) else {
        return Ok(None);
    };
    Ok(Some(match &kind[..] {
        "type" => Attr::Type(dtype(value)?),
        "shape" => Attr::Shape(shape(value)?),
        "s" => Attr::Text(bytes(value)?),
        "i" => Attr::Int(integer(value)?),
        "f" => Attr::Float(float(value)? as f32),
        "b" => Attr::Bool(value == &Value::Bool(true)),
        "tensor" => Attr::Tensor(tensor(value)?),
        "placeholder" => Attr::Placeholder(value.as_str().unwrap_or("").to_string()),
        "func" => Attr::Function(function_name(value)),
        "list" => Attr::List(ListValue {
            s: all(value, "s", bytes)?,
            i: all(value, "i", integer)?,
            f: all(value, "f", |value| Ok(float(value)? as f32))?,
            r#type: all(value, "type", dtype)?,
            shape: all(value, "shape", shape)?,
            func: all(value, "func", |value| Ok(function_name(value)))?,
        }),
        _ => return Ok(None),
    }))
}

fn tensor(value: &Value) -> Result<TensorProto> {
    let int = |value: &Value| Ok(integer(value)? as i32);
    Ok(TensorProto {
        dtype: value.get("dtype").map_or(Ok(0), dtype)?,
        tensor_shape: value.get("tensorShape").map(shape).transpose()?,
        tensor_content: value.get("tensorContent").map_or(Ok(Vec::new()), bytes)?,
        float_val: all(value, "floatVal", |value| Ok(float(value)? as f32))?,
        double_val: all(value, "doubleVal", float)?,
        int_val: all(value, "intVal", int)?,
        string_val: all(value, "stringVal", bytes)?,
        int64_val: all(value, "int64Val", integer)?,
        bool_val: all(value, "boolVal", |value| Ok(value == &Value::Bool(true)))?,
        half_val: all(value, "halfVal", int)?,
        uint32_val: all(value, "uint32Val", |value| Ok(integer(value)? as u32))?,
        uint64_val: all(value, "uint64Val", |value| Ok(integer(value)? as u64))?,
    })
}

/// Whether a tensor should have values, and has none: they are among the weights.
pub(super) fn is_without_values(proto: &TensorProto) -> bool {
    let shape = proto.tensor_shape.as_ref();
    let is_empty = shape.is_some_and(|shape| shape.dim.iter().any(|dim| dim.size == 0));
    let none = TensorProto {
        dtype: proto.dtype,
        tensor_shape: proto.tensor_shape.clone(),
        ..TensorProto::default()
    };
    !is_empty && *proto == none
}

/// The signature of the model; in old files without one, from its placeholders to the nodes that no other one reads.
pub(super) fn signature(json: &Value, graph: &GraphDef) -> Result<SignatureDef> {
    let own = ["/signature", "/userDefinedMetadata/signature"];
    let own = own.iter().find_map(|place| json.pointer(place));
    if let Some(signature) = own.filter(|signature| signature.get("outputs").is_some()) {
        let infos = |key: &str| -> Result<BTreeMap<String, TensorInfo>> {
            let info = |value: &Value| {
                Ok(TensorInfo {
                    name: text(value, "name").to_string(),
                    dtype: value.get("dtype").map_or(Ok(1), dtype)?,
                    tensor_shape: value.get("tensorShape").map(shape).transpose()?,
                })
            };
            entries(signature, key).map(|(name, value)| Ok((name.clone(), info(value)?))).collect()
        };
        let (mut inputs, outputs) = (infos("inputs")?, infos("outputs")?);
        // Tables that the converter keeps as inputs are resources, and the graph has them itself.
        inputs.retain(|_, info| info.dtype != 20);
        return Ok(SignatureDef { inputs, outputs, method_name: String::new() });
    }
    let read: HashSet<&str> = graph
        .node
        .iter()
        .flat_map(|node| &node.input)
        .map(|input| input.trim_start_matches('^').split(':').next().unwrap_or(""))
        .collect();
    let info = |node: &NodeDef| {
        let attr = |name: &str| node.attr.get(name).and_then(|attr| attr.value.as_ref());
        let dtype = ["dtype", "T"].iter().find_map(|name| match attr(name) {
            Some(Attr::Type(number)) => Some(*number),
            _ => None,
        });
        let tensor_shape = match attr("shape") {
            Some(Attr::Shape(shape)) => Some(shape.clone()),
            _ => Some(TensorShapeProto { dim: Vec::new(), unknown_rank: true }),
        };
        (
            node.name.clone(),
            TensorInfo { name: node.name.clone(), dtype: dtype.unwrap_or(1), tensor_shape },
        )
    };
    let of = |wanted: &dyn Fn(&NodeDef) -> bool| {
        graph.node.iter().filter(|node| wanted(node)).map(info).collect()
    };
    Ok(SignatureDef {
        inputs: of(&|node| node.op == "Placeholder"),
        outputs: of(&|node| {
            !read.contains(&node.name[..])
                && !matches!(&node.op[..], "Placeholder" | "Const" | "NoOp")
        }),
        method_name: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn attributes_are_those_of_protocol_buffers() {
        let of = |value| attribute(&value).unwrap().unwrap();
        assert_eq!(of(json!({"type": "DT_HALF"})), Attr::Type(19));
        assert_eq!(of(json!({"i": "-3"})), Attr::Int(-3));
        assert_eq!(of(json!({"s": "U0FNRQ=="})), Attr::Text(b"SAME".to_vec()));
        assert_eq!(of(json!({"s": [83, 65]})), Attr::Text(b"SA".to_vec()));
        assert!(matches!(of(json!({"f": "NaN"})), Attr::Float(f) if f.is_nan()));
        let Attr::Shape(shape) = of(json!({"shape": {"dim": [{"size": "-1"}, {"size": 3}]}}))
        else {
            panic!()
        };
        assert_eq!(shape.dim.iter().map(|dim| dim.size).collect::<Vec<_>>(), [-1, 3]);
        let Attr::List(list) = of(json!({"list": {"i": ["1", 2], "s": ["UmVsdQ=="]}})) else {
            panic!()
        };
        assert_eq!((list.i, list.s), (vec![1, 2], vec![b"Relu".to_vec()]));
        assert_eq!(attribute(&json!({})).unwrap(), None);
        for (value, words) in [
            (json!({"type": "DT_FOO"}), "no dtype \"DT_FOO\""),
            (json!({"i": "x"}), "\"x\" is no integer"),
            (json!({"s": "%"}), "is no base64"),
        ] {
            let error = attribute(&value).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn old_files_have_their_inputs_as_placeholders() {
        let value = json!({"node": [
            {"name": "x", "op": "Placeholder", "attr": {"dtype": {"type": "DT_FLOAT"}, "shape": {"shape": {"dim": [{"size": "2"}]}}}},
            {"name": "a", "op": "Relu", "input": ["x"], "attr": {"T": {"type": "DT_FLOAT"}}},
            {"name": "b", "op": "Neg", "input": ["a:0"], "attr": {"T": {"type": "DT_FLOAT"}}},
            {"name": "c", "op": "Const"},
        ]});
        let graph = graph(&value).unwrap();
        let signature = signature(&json!({}), &graph).unwrap();
        assert_eq!(signature.inputs.keys().collect::<Vec<_>>(), ["x"]);
        assert_eq!(signature.inputs["x"].tensor_shape.as_ref().unwrap().dim[0].size, 2);
        assert_eq!(signature.outputs.keys().collect::<Vec<_>>(), ["b"]);
    }
}
