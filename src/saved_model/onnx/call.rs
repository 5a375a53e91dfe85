//! [`Call`]: a node that runs, with the values of its inputs.

use std::collections::{BTreeMap, HashMap};

use super::proto::AttributeProto;
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};
use crate::saved_model::graph_def::proto::{Attr, ListValue};
use crate::saved_model::graph_def::run_op;
use crate::saved_model::graph_def::value::Value;
use crate::tensor::Tensor;

pub(super) type Results = Vec<Value>;

/// How an op runs.
pub(super) type Run = fn(&Call<'_>) -> Result<Results>;

/// Ops by name.
pub(super) type Table = &'static [(&'static str, Run)];

/// A node of a graph.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) op: String,
    /// The op with its domain: the name of a function, if the file has one.
    pub(super) function: String,
    pub(super) domain: String,
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
    pub(super) attributes: BTreeMap<String, AttributeProto>,
    pub(super) graphs: BTreeMap<String, Graph>,
    pub(super) constants: BTreeMap<String, Value>,
}

/// Nodes in an order in which each runs after those that it needs.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
    pub(super) nodes: Vec<Node>,
    pub(super) initializers: HashMap<String, Value>,
    /// For each node, the values that no later one reads.
    pub(super) drops: Vec<Vec<String>>,
}

/// What control flow needs of who runs the graph.
pub(super) trait Runner {
    /// Runs a graph inside a node, which also reads the values around the node.
    fn graph(&self, graph: &Graph, inputs: Vec<Value>) -> Result<Vec<Value>>;
}

pub(super) struct Call<'a> {
    pub(super) node: &'a Node,
    pub(super) inputs: Vec<Option<Value>>,
    pub(super) opset: i64,
    pub(super) runner: &'a dyn Runner,
}

impl Call<'_> {
    /// An input that may be left out.
    pub(super) fn get(&self, at: usize) -> Option<&Value> {
        self.inputs.get(at)?.as_ref()
    }

    pub(super) fn input(&self, at: usize) -> Result<Value> {
        self.get(at)
            .cloned()
            .ok_or_else(|| Error::Data(message!("it lacks its input {at}. The file is damaged.")))
    }

    pub(super) fn all(&self) -> Result<Vec<Value>> {
        (0..self.inputs.len()).map(|at| self.input(at)).collect()
    }

    pub(super) fn tensor(&self, at: usize) -> Result<Tensor> {
        self.input(at)?.tensor()
    }

    pub(super) fn ints(&self, at: usize) -> Result<Vec<i64>> {
        ints(&self.input(at)?)
    }

    /// The integers of an input, or of an attribute: where older versions of an op had them.
    pub(super) fn ints_or(&self, at: usize, name: &str) -> Result<Option<Vec<i64>>> {
        if let Some(value) = self.get(at) {
            return ints(value).map(Some);
        }
        Ok(self.node.attributes.get(name).map(|attribute| attribute.ints.clone()))
    }

    pub(super) fn floats(&self, at: usize) -> Result<Vec<f64>> {
        let array = self.input(at)?.read()?;
        let wrong = || Error::DType(message!("its input {at} is {}, not numbers.", array.dtype()));
        Ok(array.to_f64().ok_or_else(wrong)?.into_iter().collect())
    }

    pub(super) fn attr_int(&self, name: &str, default: i64) -> i64 {
        self.node.attributes.get(name).map_or(default, |attribute| attribute.i)
    }

    pub(super) fn attr_float(&self, name: &str, default: f32) -> f32 {
        self.node.attributes.get(name).map_or(default, |attribute| attribute.f)
    }

    pub(super) fn attr_ints(&self, name: &str) -> Option<&[i64]> {
        self.node.attributes.get(name).map(|attribute| &attribute.ints[..])
    }

    pub(super) fn attr_floats(&self, name: &str) -> Option<&[f32]> {
        self.node.attributes.get(name).map(|attribute| &attribute.floats[..])
    }

    pub(super) fn attr_text(&self, name: &str, default: &'static str) -> &str {
        let attribute = self.node.attributes.get(name);
        attribute.and_then(|attribute| std::str::from_utf8(&attribute.s).ok()).unwrap_or(default)
    }

    pub(super) fn attr_texts(&self, name: &str) -> Vec<String> {
        let attribute = self.node.attributes.get(name);
        let text = |text: &Vec<u8>| String::from_utf8_lossy(text).into_owned();
        attribute.map_or(Vec::new(), |attribute| attribute.strings.iter().map(text).collect())
    }

    pub(super) fn graph(&self, name: &str) -> Result<&Graph> {
        self.node.graphs.get(name).ok_or_else(|| {
            Error::Data(message!("it lacks its graph \"{name}\". The file is damaged."))
        })
    }
}

pub(super) fn unsupported(what: std::fmt::Arguments<'_>) -> Error {
    Error::Data(message!("{what} is not supported. Export the model without it."))
}

/// The integers of a value, in row-major order.
pub(super) fn ints(value: &Value) -> Result<Vec<i64>> {
    let array = value.read()?;
    let wrong = || Error::DType(message!("it needs integers, and gets {}.", value.describe()));
    let long = tf("Cast", vec![Value::host((*array).clone())], vec![("DstT", Attr::Type(9))])?;
    let array = long.read()?;
    if array.dtype() != HostDType::I64 {
        return Err(wrong());
    }
    let each = array.bytes().chunks_exact(8);
    Ok(each.map(|b| i64::from_le_bytes(b.try_into().unwrap_or_default())).collect())
}

/// The only result of an op of TensorFlow.
pub(super) fn tf(op: &str, inputs: Vec<Value>, attributes: Vec<(&str, Attr)>) -> Result<Value> {
    let results = run_op(op, inputs, attributes)?;
    results.into_iter().next().ok_or_else(|| Error::Data(message!("{op} has no result.")))
}

/// 64-bit integers along one axis.
pub(super) fn long(values: &[i64]) -> Value {
    Value::ints(HostDType::I64, values)
}

/// A number as an attribute.
pub(super) fn list(ints: &[i64]) -> Attr {
    Attr::List(ListValue { i: ints.to_vec(), ..ListValue::default() })
}

pub(super) fn one(value: Value) -> Result<Results> {
    Ok(vec![value])
}

pub(super) fn tensor(x: Tensor) -> Result<Results> {
    Ok(vec![Value::Tensor(x)])
}

/// The dtype of a value in the file.
pub(super) fn dtype_of(value: &Value) -> HostDType {
    match value {
        Value::Host(array) => array.dtype(),
        Value::Tensor(x) => x.dtype().into(),
        Value::Variable(cell) => cell.dtype,
        _ => HostDType::F32,
    }
}

/// A number of the dtype of `like`.
pub(super) fn number(value: f64, like: &Value) -> Result<Value> {
    let array = HostArray::new(HostDType::F64, [], value.to_le_bytes().to_vec())?;
    let dtype = Attr::Type(dtype_of(like).number());
    tf("Cast", vec![Value::host(array)], vec![("DstT", dtype)])
}

/// A value in another dtype, as the results of an op.
pub(super) fn cast(x: Value, dtype: HostDType) -> Result<Results> {
    one(tf("Cast", vec![x], vec![("DstT", Attr::Type(dtype.number()))])?)
}

/// The axis of this number, which may count from the end.
pub(super) fn axis(axis: i64, rank: usize) -> Result<usize> {
    let wrapped = if axis < 0 { axis.saturating_add(rank as i64) } else { axis };
    usize::try_from(wrapped).ok().filter(|axis| *axis < rank).ok_or_else(|| {
        Error::Index(message!("the axis {axis} is out of range for a tensor of {rank} axes."))
    })
}
