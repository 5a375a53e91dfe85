//! NumPy's arrays as tensors, and back.

use numpy::{Element, IntoPyArray, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use wgrad::{DType, HostElement, HostOptions};

use crate::error::{Raise, invalid, raise};
use crate::interpreter::Release;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::{policy, process};

/// A dtype from its name, as NumPy and TensorFlow have it.
pub fn dtype(name: &str) -> PyResult<DType> {
    Ok(match name {
        "float32" | "float64" => DType::F32,
        "float16" => DType::F16,
        "int32" | "int64" => DType::I32,
        "uint32" | "uint64" => DType::U32,
        "uint8" => DType::U8,
        "bool" => DType::Bool,
        _ => {
            // The narrowest dtype that has all of its values.
            let instead = match name {
                "int8" | "int16" => "; use int32",
                "uint16" => "; use uint32",
                "bfloat16" => "; use float32",
                _ => "",
            };
            return Err(raise(wgrad::Error::DType(
                format!(
                    "dtype: there is no '{name}'{instead}. A device holds float32, float16, int32, uint32, uint8 and bool; 64 bits \
                     are narrowed to 32."
                )
                .into(),
            )));
        }
    })
}

/// The dtype that an array of NumPy has as a tensor, from its name or from an object with a name.
pub fn dtype_of(value: &Bound<'_, PyAny>) -> PyResult<DType> {
    let name = match value.extract::<String>() {
        Ok(name) => name,
        Err(_) => value.getattr("name")?.extract::<String>()?,
    };
    match name.as_str() {
        "int8" | "int16" => Ok(DType::I32),
        "uint16" => Ok(DType::U32),
        name => dtype(name),
    }
}

fn numpy_module(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static NUMPY: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    Ok(NUMPY.get_or_try_init(py, || py.import("numpy").map(Bound::unbind))?.bind(py))
}

/// Any value as a tensor: a tensor, a variable, an array, a number or lists of them.
pub fn to_tensor(value: &Bound<'_, PyAny>, wanted: Option<DType>) -> PyResult<wgrad::Tensor> {
    process::check()?;
    let made = if let Ok(tensor) = value.cast::<Tensor>() {
        tensor.get().0.clone()
    } else if let Ok(variable) = value.cast::<Variable>() {
        policy::read(variable)?
    } else if let Some(value) = inner(value)? {
        return to_tensor(&value, wanted);
    } else {
        from_array(value, wanted)?
    };
    match wanted {
        Some(dtype) if dtype != made.dtype() => made.cast(dtype).raised(),
        _ => Ok(made),
    }
}

/// The value of an object that is not a tensor but has one, such as a layer's weight.
fn inner<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    match value.getattr_opt("_wgrad_value")? {
        Some(get) => Ok(Some(get.call0()?)),
        None => Ok(None),
    }
}

/// The tensors of a list, which are stacked if the list contains at least one.
fn stacked(value: &Bound<'_, PyAny>) -> PyResult<Option<wgrad::Tensor>> {
    let list = value.is_instance_of::<pyo3::types::PyList>()
        || value.is_instance_of::<pyo3::types::PyTuple>();
    if !list {
        return Ok(None);
    }
    let items: Vec<Bound<'_, PyAny>> = value.try_iter()?.collect::<PyResult<_>>()?;
    let is_tensor = |item: &Bound<'_, PyAny>| {
        item.is_instance_of::<Tensor>() || item.is_instance_of::<Variable>()
    };
    if !items.iter().any(is_tensor) {
        return Ok(None);
    }
    let first =
        items.iter().find(|item| is_tensor(item)).map(|item| to_tensor(item, None)).transpose()?;
    let dtype = first.map(|first| first.dtype());
    let tensors = items.iter().map(|item| to_tensor(item, dtype)).collect::<PyResult<Vec<_>>>()?;
    wgrad::stack(&tensors, 0).raised().map(Some)
}

fn from_array(value: &Bound<'_, PyAny>, wanted: Option<DType>) -> PyResult<wgrad::Tensor> {
    if let Some(tensor) = stacked(value)? {
        return Ok(tensor);
    }
    let py = value.py();
    let array = numpy_module(py)?.call_method1("asarray", (value,)).map_err(|error| {
        invalid(format!("constant: {} is no array: {}", value.get_type(), error.value(py)))
    })?;
    // Python's own numbers become 32 bits, NumPy's are narrowed if the device can hold them.
    // Unlike the dtype's name, these run no Python: while the interpreter ends, a thread that runs Python is unwound, and unwinding
    // through a call from Rust would abort the process.
    let kind = array.getattr("dtype")?;
    let (letter, bytes): (char, usize) =
        (kind.getattr("kind")?.extract()?, kind.getattr("itemsize")?.extract()?);
    match (letter, bytes) {
        ('f', 4) => of::<f32>(&array),
        ('f', 8) => of::<f64>(&array),
        ('f', 2) => of::<wgrad::f16>(&array),
        ('i', 4) => of::<i32>(&array),
        ('i', 8) if wanted.is_some_and(DType::is_float) => {
            of::<f64>(&array.call_method1("astype", ("float64",))?)
        }
        ('i', 8) => of::<i64>(&array),
        ('u', 1) => of::<u8>(&array),
        ('u', 4) => of::<u32>(&array),
        ('u', 8) => of::<u64>(&array),
        ('b', 1) => of::<bool>(&array),
        ('i', 1 | 2) => of::<i32>(&array.call_method1("astype", ("int32",))?),
        ('u', 2) => of::<u32>(&array.call_method1("astype", ("uint32",))?),
        _ => Err(raise(wgrad::Error::DType(
            format!(
                "constant: an array of dtype {} cannot be a tensor. Devices hold numbers and truth values; strings stay in NumPy \
                 arrays.",
                kind.getattr("name")?
            )
            .into(),
        ))),
    }
}

fn of<T: HostElement + Element>(array: &Bound<'_, PyAny>) -> PyResult<wgrad::Tensor> {
    let array = match array.cast::<PyArrayDyn<T>>() {
        Ok(array) => array.clone(),
        // Its bytes are in the other order.
        Err(_) => array.call_method1("astype", (T::get_dtype(array.py()),))?.cast_into()?,
    };
    let array: PyReadonlyArrayDyn<'_, T> = array.readonly();
    wgrad::Tensor::from_array_with(&array.as_array(), HostOptions::new().rounding(true)).raised()
}

/// A tensor's values as an array of NumPy. Waits for the device, and lets other threads of Python run meanwhile.
pub fn to_numpy<'py>(py: Python<'py>, tensor: &wgrad::Tensor) -> PyResult<Bound<'py, PyAny>> {
    process::check()?;
    macro_rules! read {
        ($t:ty) => {{
            let read = py.released(|| tensor.to_array::<$t>()).raised()?;
            Ok(read.into_pyarray(py).into_any())
        }};
    }
    match tensor.dtype() {
        DType::F32 => read!(f32),
        DType::F16 => read!(wgrad::f16),
        DType::I32 => read!(i32),
        DType::U32 => read!(u32),
        DType::U8 => read!(u8),
        DType::Bool => read!(bool),
        other => Err(invalid(format!("numpy: there is no array of {other}"))),
    }
}

/// `tf.constant`.
#[pyfunction]
#[pyo3(signature = (value, dtype=None, shape=None))]
pub fn constant(
    value: &Bound<'_, PyAny>,
    dtype: Option<&str>,
    shape: Option<Vec<usize>>,
) -> PyResult<Tensor> {
    let dtype = dtype.map(self::dtype).transpose()?;
    let made = to_tensor(value, dtype)?;
    Ok(Tensor(match shape {
        None => made,
        Some(shape) if made.len() == 1 => {
            made.reshape(&[] as &[i64]).and_then(|one| one.broadcast_to(shape)).raised()?
        }
        Some(shape) => {
            let sizes: Vec<i64> = shape.iter().map(|&size| size as i64).collect();
            made.reshape(&sizes).raised()?
        }
    }))
}
