//! What flows along the edges of a graph.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::dtype::DType;
use crate::eager;
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};
use crate::saved_model::waiting::wait;
use crate::tensor::{HostOptions, Tensor};
use crate::variable::Variable;

/// A value of a graph. TensorFlow computes shapes by the same ops as everything else; here, such values are on the host.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Tensor(Tensor),
    Host(Arc<HostArray<'static>>),
    List(Arc<TensorList>),
    Variable(Arc<Cell>),
    Table(Arc<Table>),
    /// The name of a tensor in the checkpoint, which is read when it is needed.
    Stored(Arc<str>),
}

/// A `TensorList`: what loops fill and read by index.
#[derive(Debug, Clone)]
pub(crate) struct TensorList {
    pub(super) dtype: HostDType,
    /// The elements' sizes, as far as they are known.
    pub(super) shape: Option<Vec<Option<usize>>>,
    pub(super) elements: Vec<Option<Value>>,
}

/// A variable of a graph.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) name: String,
    pub(crate) dtype: HostDType,
    state: Mutex<CellState>,
}

#[derive(Debug, Clone)]
pub(crate) enum CellState {
    Empty,
    /// The name of its value in the checkpoint.
    Stored(Arc<str>),
    Device(Variable),
    /// Of a dtype that devices do not have.
    Host(Arc<HostArray<'static>>),
}

/// A table from strings or integers to others.
#[derive(Debug)]
pub(crate) struct Table {
    pub(super) keys: HostDType,
    pub(super) values: HostDType,
    pub(super) entries: Mutex<HashMap<Key, Key>>,
}

/// A key or a value of a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Text(Vec<u8>),
    Int(i64),
    /// The bits of an `f64`.
    Float(u64),
}

impl Value {
    /// A value on the host.
    pub(crate) fn host(array: HostArray<'static>) -> Self {
        Value::Host(Arc::new(array))
    }

    /// Integers along one axis.
    pub(crate) fn ints(dtype: HostDType, values: &[i64]) -> Self {
        Value::host(int_array(dtype, &[values.len()], values))
    }

    /// An integer.
    pub(crate) fn int(dtype: HostDType, value: i64) -> Self {
        Value::host(int_array(dtype, &[], &[value]))
    }

    /// What it is, for errors: `f32[2, 3]`, `int64[2] on the host`.
    pub(crate) fn describe(&self) -> String {
        match self {
            Value::Tensor(x) => x.spec().to_string(),
            Value::Host(array) => format!("{}{:?} on the host", array.dtype(), array.shape()),
            Value::List(list) => format!("a list of {} tensors", list.elements.len()),
            Value::Variable(cell) => format!("the variable \"{}\"", cell.name),
            Value::Table(_) => "a lookup table".to_string(),
            Value::Stored(key) => format!("the value \"{key}\" of the checkpoint"),
        }
    }

    /// The tensor on the device: what is on the host, is copied there.
    pub(crate) fn tensor(&self) -> Result<Tensor> {
        match self {
            Value::Tensor(x) => Ok(x.clone()),
            Value::Host(array) => upload(array),
            Value::Variable(cell) => cell.read()?.tensor(),
            _ => Err(Error::DType(message!("it expects a tensor and gets {}.", self.describe()))),
        }
    }

    /// The values on the host: what is on the device, is read.
    pub(crate) fn read(&self) -> Result<Arc<HostArray<'static>>> {
        match self {
            Value::Tensor(x) => read(x),
            Value::Host(array) => Ok(array.clone()),
            Value::Variable(cell) => cell.read()?.read(),
            _ => Err(Error::DType(message!("it expects a tensor and gets {}.", self.describe()))),
        }
    }

    /// The sizes of the tensor.
    pub(crate) fn shape(&self) -> Result<Vec<usize>> {
        match self {
            Value::Tensor(x) => Ok(x.shape().to_vec()),
            Value::Host(array) => Ok(array.shape().to_vec()),
            Value::Variable(cell) => cell.read()?.shape(),
            _ => Err(Error::DType(message!("it expects a tensor and gets {}.", self.describe()))),
        }
    }

    /// The array, if the value is on the host.
    pub(crate) fn as_host(&self) -> Option<&Arc<HostArray<'static>>> {
        match self {
            Value::Host(array) => Some(array),
            _ => None,
        }
    }
}

/// An array of integers, each of which must be one of `dtype`: `i32`, `i64` or `bool`.
pub(super) fn int_array(dtype: HostDType, shape: &[usize], values: &[i64]) -> HostArray<'static> {
    let bytes: Vec<u8> = match dtype {
        HostDType::I64 => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        HostDType::Bool => values.iter().map(|v| u8::from(*v != 0)).collect(),
        _ => values.iter().flat_map(|v| (*v as i32).to_le_bytes()).collect(),
    };
    let dtype =
        if matches!(dtype, HostDType::I64 | HostDType::Bool) { dtype } else { HostDType::I32 };
    HostArray::of_bytes(dtype, shape.into(), bytes)
}

/// A device has no 64-bit dtypes: integers become `i32` if they fit, floats `f32` if that changes none.
fn upload(array: &HostArray<'static>) -> Result<Tensor> {
    if array.is_empty() || array.len() > 1 {
        return array.to_tensor();
    }
    // A single number becomes a part of the kernels, and takes no buffer.
    let scalar = array.to_f64().and_then(|value| value.first().copied());
    match (array.dtype().tensor_dtype(), scalar) {
        (Some(DType::F32), Some(value)) if f64::from(value as f32) == value => {
            Tensor::full_of(array.shape(), value, DType::F32)
        }
        (Some(DType::I32), Some(value)) if f64::from(value as i32) == value => {
            Tensor::full_of(array.shape(), value as i64, DType::I32)
        }
        _ => array.to_tensor(),
    }
}

/// Reads a tensor.
fn read(x: &Tensor) -> Result<Arc<HostArray<'static>>> {
    let own = x.clone();
    let values =
        wait(x, async move { Ok(vec![Value::host(HostArray::from_tensor_async(&own).await?)]) })?;
    match values.into_iter().next() {
        Some(Value::Host(array)) => Ok(array),
        _ => unreachable!("one array was read"),
    }
}

impl Cell {
    pub(crate) fn new(name: &str, dtype: HostDType) -> Self {
        Cell { name: name.to_string(), dtype, state: Mutex::new(CellState::Empty) }
    }

    fn lock(&self) -> MutexGuard<'_, CellState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> CellState {
        self.lock().clone()
    }

    pub(super) fn is_initialized(&self) -> bool {
        !matches!(*self.lock(), CellState::Empty)
    }

    /// The variable on the device, if it is there.
    pub(crate) fn variable(&self) -> Option<Variable> {
        match &*self.lock() {
            CellState::Device(variable) => Some(variable.clone()),
            _ => None,
        }
    }

    /// The present value.
    pub(super) fn read(&self) -> Result<Value> {
        match self.state() {
            CellState::Device(variable) => Ok(Value::Tensor(variable.read())),
            // A trace would take it for a constant.
            CellState::Host(_) if eager::in_trace() => Err(self.untraceable()),
            CellState::Host(array) => Ok(Value::Host(array)),
            CellState::Stored(key) => Ok(Value::Stored(key)),
            CellState::Empty => Err(Error::Data(message!(
                "it reads the variable \"{}\", which has no value: the checkpoint lacks it. Save the model again.",
                self.name
            ))),
        }
    }

    /// Assigns a value.
    pub(super) fn assign(&self, value: &Value) -> Result<()> {
        if let Value::Stored(key) = value {
            *self.lock() = CellState::Stored(key.clone());
            return Ok(());
        }
        match self.state() {
            CellState::Device(variable) => variable.assign(value.tensor()?),
            _ if eager::in_trace() => Err(self.untraceable()),
            _ => self.fill(value.read()?, true),
        }
    }

    /// Takes its first value, or the next one of a variable on the host.
    pub(crate) fn fill(&self, array: Arc<HostArray<'static>>, trainable: bool) -> Result<()> {
        // 64-bit integers count steps and hold seeds; they remain on the host, as do strings.
        let host = !matches!(
            self.dtype,
            HostDType::F32
                | HostDType::F16
                | HostDType::Bf16
                | HostDType::F64
                | HostDType::I32
                | HostDType::U8
                | HostDType::Bool
        );
        let state = if host {
            CellState::Host(array)
        } else {
            let rounding = HostOptions::new().rounding(false);
            let dtype = self.dtype.tensor_dtype().unwrap_or(DType::F32);
            let value = array.to_tensor_of(dtype, rounding)?;
            CellState::Device(match trainable && value.dtype().is_float() {
                true => Variable::new(value),
                false => Variable::untrainable(value),
            })
        };
        *self.lock() = state;
        Ok(())
    }

    fn untraceable(&self) -> Error {
        Error::Trace(message!(
            "it uses the variable \"{}\" of {}, which is on the host and so not a part of a trace.",
            self.name,
            self.dtype
        ))
    }
}
