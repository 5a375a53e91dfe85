//! [`Call`]: a node that runs, with the values of its inputs.

use std::sync::Arc;

use super::graph::Node;
use super::proto::Attr;
use super::tensor_proto::open_sizes;
use super::value::{Cell, Table, Value};
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};
use crate::tensor::Tensor;

/// The values that a node computes.
pub(super) type Results = smallvec::SmallVec<[Value; 1]>;

/// One op: its name in TensorFlow, and how it runs.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    /// The names of its results, if they have several.
    pub(super) outputs: &'static [&'static str],
    pub(super) run: Run,
}

/// How an op runs.
#[derive(Clone, Copy)]
pub(super) enum Run {
    /// Of one tensor.
    Unary(fn(&Tensor) -> Result<Tensor>),
    /// Of two tensors, which broadcast.
    Binary(fn(&Tensor, &Tensor) -> Result<Tensor>),
    /// Of anything.
    Any(fn(&Call<'_>) -> Result<Value>),
    /// With any number of results; it may take values out of the call.
    Many(fn(&mut Call<'_>) -> Result<Results>),
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Run")
    }
}

/// An op of one tensor.
pub(super) const fn unary(name: &'static str, run: fn(&Tensor) -> Result<Tensor>) -> Entry {
    Entry { name, outputs: &[], run: Run::Unary(run) }
}

/// An op of two tensors.
pub(super) const fn binary(
    name: &'static str,
    run: fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Entry {
    Entry { name, outputs: &[], run: Run::Binary(run) }
}

/// An op of anything, with one result.
pub(super) const fn any(name: &'static str, run: fn(&Call<'_>) -> Result<Value>) -> Entry {
    Entry { name, outputs: &[], run: Run::Any(run) }
}

/// An op with several results.
pub(super) const fn many(
    name: &'static str,
    outputs: &'static [&'static str],
    run: fn(&mut Call<'_>) -> Result<Results>,
) -> Entry {
    Entry { name, outputs, run: Run::Many(run) }
}

/// What ops need of the model: functions, variables, tables and files.
pub(super) trait Model {
    /// Runs a function of the library.
    fn function(&self, name: &str, arguments: Vec<Value>) -> Result<Vec<Value>>;

    /// The variable of a name, made at its first use.
    fn variable(&self, name: &str, dtype: HostDType) -> Arc<Cell>;

    /// The table of a name, made at its first use.
    fn table(&self, name: &str, keys: HostDType, values: HostDType) -> Arc<Table>;

    /// The contents of a file of the model's assets.
    fn asset(&self, name: &[u8]) -> Result<Vec<u8>>;

    /// An array of the checkpoint.
    fn stored(&self, key: &str) -> Result<HostArray<'static>>;

    /// Counts a turn of a loop.
    fn turn(&self) -> Result<()>;
}

/// A node that runs.
pub(super) struct Call<'a> {
    pub(super) node: &'a Node,
    pub(super) inputs: smallvec::SmallVec<[Value; 4]>,
    pub(super) model: &'a dyn Model,
}

impl Call<'_> {
    pub(super) fn input(&self, at: usize) -> Result<&Value> {
        self.inputs.get(at).ok_or_else(|| {
            Error::Data(message!(
                "it has {} inputs, and its op has more. The file is damaged.",
                self.inputs.len()
            ))
        })
    }

    /// Takes an input out of the call, so that its owner may change.
    pub(super) fn take(&mut self, at: usize) -> Result<Value> {
        self.input(at)?;
        let empty = Value::int(HostDType::I32, 0);
        Ok(std::mem::replace(&mut self.inputs[at], empty))
    }

    pub(super) fn tensor(&self, at: usize) -> Result<Tensor> {
        self.input(at)?.tensor()
    }

    /// The inputs from `from` on, up to `to`.
    pub(super) fn tensors(&self, from: usize, to: usize) -> Result<Vec<Tensor>> {
        (from..to).map(|at| self.tensor(at)).collect()
    }

    /// The values of an input on the host.
    pub(super) fn host(&self, at: usize) -> Result<Arc<HostArray<'static>>> {
        self.input(at)?.read()
    }

    /// The integers of an input, in row-major order.
    pub(super) fn ints(&self, at: usize) -> Result<Vec<i64>> {
        let array = self.host(at)?;
        let wrong = || Error::DType(message!("its input {at} is {}, not integers.", array.dtype()));
        let bytes = array.bytes();
        Ok(match array.dtype() {
            HostDType::I32 => bytes
                .chunks_exact(4)
                .map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]]).into())
                .collect(),
            HostDType::I64 => bytes
                .chunks_exact(8)
                .map(|b| i64::from_le_bytes(b.try_into().unwrap_or_default()))
                .collect(),
            HostDType::U8 | HostDType::Bool => bytes.iter().map(|byte| i64::from(*byte)).collect(),
            HostDType::U32 => bytes
                .chunks_exact(4)
                .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]).into())
                .collect(),
            _ => return Err(wrong()),
        })
    }

    /// The only integer of an input.
    pub(super) fn int(&self, at: usize) -> Result<i64> {
        match self.ints(at)?[..] {
            [one] => Ok(one),
            _ => Err(Error::Shape(message!(
                "its input {at} is {}, and a single integer is needed.",
                self.input(at)?.describe()
            ))),
        }
    }

    /// The integers of an input, none negative.
    pub(super) fn sizes(&self, at: usize) -> Result<Vec<usize>> {
        sizes(&self.ints(at)?)
    }

    /// An integer of an input that is not negative.
    pub(super) fn size(&self, at: usize) -> Result<usize> {
        Ok(sizes(&[self.int(at)?])?[0])
    }

    /// The only number of an input.
    pub(super) fn float(&self, at: usize) -> Result<f64> {
        let array = self.host(at)?;
        array
            .to_f64()
            .filter(|_| array.len() == 1)
            .and_then(|values| values.first().copied())
            .ok_or_else(|| Error::Shape(message!("its input {at} is not a single number.")))
    }

    pub(super) fn variable(&self, at: usize) -> Result<&Arc<Cell>> {
        match self.input(at)? {
            Value::Variable(cell) => Ok(cell),
            other => {
                Err(Error::Data(message!("it expects a variable and gets {}.", other.describe())))
            }
        }
    }

    fn attribute(&self, name: &str) -> Option<&Attr> {
        self.node.attributes.get(name)
    }

    /// An integer; attributes that have their default may be missing.
    pub(super) fn attr_int(&self, name: &str, default: i64) -> i64 {
        match self.attribute(name) {
            Some(Attr::Int(value)) => *value,
            _ => default,
        }
    }

    pub(super) fn attr_size(&self, name: &str, default: usize) -> Result<usize> {
        match self.attribute(name) {
            Some(Attr::Int(value)) => Ok(sizes(&[*value])?[0]),
            _ => Ok(default),
        }
    }

    pub(super) fn attr_bool(&self, name: &str, default: bool) -> bool {
        match self.attribute(name) {
            Some(Attr::Bool(value)) => *value,
            _ => default,
        }
    }

    pub(super) fn attr_float(&self, name: &str, default: f32) -> f32 {
        match self.attribute(name) {
            Some(Attr::Float(value)) => *value,
            _ => default,
        }
    }

    pub(super) fn attr_text(&self, name: &str, default: &'static str) -> &str {
        match self.attribute(name) {
            Some(Attr::Text(value)) => std::str::from_utf8(value).unwrap_or(default),
            _ => default,
        }
    }

    pub(super) fn attr_type(&self, name: &str, default: HostDType) -> HostDType {
        match self.attribute(name) {
            Some(Attr::Type(number)) => HostDType::from_number(*number),
            _ => default,
        }
    }

    pub(super) fn attr_ints(&self, name: &str) -> &[i64] {
        match self.attribute(name) {
            Some(Attr::List(list)) => &list.i,
            _ => &[],
        }
    }

    pub(super) fn attr_sizes(&self, name: &str) -> Result<Vec<usize>> {
        sizes(self.attr_ints(name))
    }

    pub(super) fn attr_texts(&self, name: &str) -> Vec<std::borrow::Cow<'_, str>> {
        match self.attribute(name) {
            Some(Attr::List(list)) => list.s.iter().map(|s| String::from_utf8_lossy(s)).collect(),
            _ => Vec::new(),
        }
    }

    pub(super) fn attr_floats(&self, name: &str) -> &[f32] {
        match self.attribute(name) {
            Some(Attr::List(list)) => &list.f,
            _ => &[],
        }
    }

    /// The sizes of a shape, as far as they are known; `None` if the rank is not.
    pub(super) fn attr_shape(&self, name: &str) -> Option<Vec<Option<usize>>> {
        match self.attribute(name) {
            Some(Attr::Shape(shape)) => open_sizes(Some(shape)),
            _ => None,
        }
    }

    /// The names of functions.
    pub(super) fn attr_functions(&self, name: &str) -> Vec<&str> {
        functions_of(self.attribute(name))
    }

    /// The name of a function.
    pub(super) fn attr_function(&self, name: &str) -> Result<&str> {
        self.attr_functions(name).first().copied().ok_or_else(|| {
            Error::Data(message!("it lacks the attribute \"{name}\". The file is damaged."))
        })
    }
}

/// An op or attribute that has no equivalent here.
pub(super) fn unsupported(what: std::fmt::Arguments<'_>) -> Error {
    Error::Data(message!("{what} is not supported. Save the model without it."))
}

/// The functions in an attribute.
pub(super) fn functions_of(attribute: Option<&Attr>) -> Vec<&str> {
    match attribute {
        Some(Attr::Function(function)) => vec![&function.name],
        Some(Attr::List(list)) => list.func.iter().map(|function| &function.name[..]).collect(),
        _ => Vec::new(),
    }
}

/// Sizes, none of which may be negative.
pub(super) fn sizes(values: &[i64]) -> Result<Vec<usize>> {
    let size = |value: &i64| {
        usize::try_from(*value).map_err(|_| {
            Error::Shape(message!(
                "{value} is no size: of its sizes {values:?}, none may be negative."
            ))
        })
    };
    values.iter().map(size).collect()
}
