//! Tensors: operators, indexing, reading.

use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyFloat, PyInt, PySlice, PyTuple};
use wgrad::ndarray::SliceInfoElem;
use wgrad::{Operand, Scalar};

use crate::arrays::{to_numpy, to_tensor};
use crate::error::{Raise, invalid, raise};
use crate::interpreter::Release;

/// Values on a device. They never change. The package notes the mask of Keras that belongs to them.
#[pyclass(frozen, subclass, dict, weakref, module = "wgrad")]
pub struct Tensor(pub wgrad::Tensor);

/// The other operand of an operator; numbers take the dtype of the tensor.
pub fn operand(value: &Bound<'_, PyAny>) -> PyResult<Operand> {
    if let Ok(tensor) = value.cast::<Tensor>() {
        return Ok(Operand::Tensor(tensor.get().0.clone()));
    }
    if let Ok(yes) = value.cast::<PyBool>() {
        return Ok(Operand::Scalar(Scalar::Bool(yes.is_true())));
    }
    if value.is_exact_instance_of::<PyFloat>() {
        return Ok(Operand::Scalar(Scalar::Float(value.extract()?)));
    }
    if value.is_exact_instance_of::<PyInt>() {
        return Ok(Operand::Scalar(match value.extract::<i64>() {
            Ok(whole) => Scalar::Int(whole),
            Err(_) => Scalar::Unsigned(value.extract()?),
        }));
    }
    Ok(Operand::Tensor(to_tensor(value, None)?))
}

/// As [`operand`], next to a tensor: an array or a list of Python numbers takes its dtype, as in TensorFlow.
fn next_to(tensor: &wgrad::Tensor, value: &Bound<'_, PyAny>) -> PyResult<Operand> {
    match operand(value)? {
        Operand::Tensor(other)
            if other.dtype() != tensor.dtype() && !value.is_instance_of::<Tensor>() =>
        {
            let is_float = other.dtype().is_float();
            let converts =
                tensor.dtype().is_float() || !is_float && other.dtype() != wgrad::DType::Bool;
            // What differs is refused by the op, which names both dtypes.
            Ok(Operand::Tensor(if converts { other.cast(tensor.dtype()).raised()? } else { other }))
        }
        // A float next to integers is refused; a truth value next to numbers is a number, as in Python.
        Operand::Scalar(Scalar::Bool(yes)) if tensor.dtype() != wgrad::DType::Bool => {
            Ok(Operand::Scalar(Scalar::Int(i64::from(yes))))
        }
        other => Ok(other),
    }
}

type Binary = fn(&wgrad::Tensor, Operand) -> wgrad::Result<wgrad::Tensor>;

/// The result of an operator. Bytes are computed in 32 bits, and the result is cut to bytes, as in TensorFlow.
fn binary(a: &wgrad::Tensor, b: Operand, op: Binary) -> wgrad::Result<wgrad::Tensor> {
    use wgrad::DType::{I32, U8};
    let b = match b {
        Operand::Tensor(b) if a.dtype() == U8 && b.dtype() == U8 => Operand::Tensor(b.cast(I32)?),
        Operand::Scalar(number) if a.dtype() == U8 => Operand::Scalar(number),
        // What differs is refused by the op, which names both dtypes.
        b => return op(a, b),
    };
    let made = op(&a.cast(I32)?, b)?;
    if made.dtype() == I32 { made.cast(U8) } else { Ok(made) }
}

impl Tensor {
    fn with(&self, other: &Bound<'_, PyAny>, op: Binary) -> PyResult<Self> {
        crate::process::check()?;
        binary(&self.0, next_to(&self.0, other)?, op).map(Tensor).raised()
    }

    /// An operator of truth values, or of the bits of integers.
    fn logical(&self, other: &Bound<'_, PyAny>, truth: Binary, bits: Binary) -> PyResult<Self> {
        self.with(other, if self.0.dtype() == wgrad::DType::Bool { truth } else { bits })
    }

    /// The operator with the operands exchanged.
    fn after(&self, other: &Bound<'_, PyAny>, op: Binary) -> PyResult<Self> {
        let first = match next_to(&self.0, other)? {
            Operand::Tensor(first) => first,
            Operand::Scalar(number) => {
                wgrad::Tensor::full_of(&[] as &[usize], number, self.0.dtype()).raised()?
            }
            _ => return Err(invalid("operator: the operand is neither a tensor nor a number.")),
        };
        binary(&first, Operand::Tensor(self.0.clone()), op).map(Tensor).raised()
    }

    /// The one value of the tensor, for `float(x)` and the like.
    fn one<T: wgrad::HostElement>(&self, py: Python<'_>) -> PyResult<T> {
        py.released(|| self.0.item::<T>()).raised()
    }
}

#[pymethods]
impl Tensor {
    #[getter]
    fn _shape(&self) -> Vec<usize> {
        self.0.shape().to_vec()
    }

    #[getter]
    fn _dtype(&self) -> &'static str {
        self.0.dtype().tensorflow_name()
    }

    #[getter]
    fn ndim(&self) -> usize {
        self.0.rank()
    }

    #[getter]
    fn device(&self) -> Option<String> {
        self.0.device().name()
    }

    /// Prints the value when it is computed, also in each run of a traced function.
    fn _print(&self, message: &str) -> PyResult<()> {
        self.0.print(message).raised()
    }

    /// The values as an array of NumPy. Waits for the device.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_numpy(py, &self.0)
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.0.shape().first() {
            Some(&count) => Ok(count),
            None => Err(raise(wgrad::Error::DType("len: a scalar has no length.".into()))),
        }
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        if self.0.len() != 1 {
            return Err(invalid(format!(
                "bool: a tensor of shape {:?} has no single truth value. Use tf.reduce_any or tf.reduce_all.",
                self.0.shape()
            )));
        }
        let numbers = to_numpy(py, &self.0)?;
        numbers.call_method0("item")?.is_truthy()
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        let x = self.0.cast(wgrad::DType::F32).raised()?;
        Tensor(x).one::<f32>(py).map(f64::from)
    }

    fn __int__(&self, py: Python<'_>) -> PyResult<i64> {
        if self.0.dtype() == wgrad::DType::U32 {
            return self.one::<u32>(py).map(i64::from);
        }
        let x = self.0.cast(wgrad::DType::I32).raised()?;
        Tensor(x).one::<i32>(py).map(i64::from)
    }

    fn __index__(&self, py: Python<'_>) -> PyResult<i64> {
        if self.0.dtype().is_float() || self.0.dtype() == wgrad::DType::Bool {
            return Err(raise(wgrad::Error::DType(
                format!(
                    "index: a tensor of dtype {} is no index; it must be an integer.",
                    self.0.dtype()
                )
                .into(),
            )));
        }
        self.__int__(py)
    }

    fn __add__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, wgrad::Tensor::add)
    }

    fn __radd__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.after(other, wgrad::Tensor::add)
    }

    fn __sub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, wgrad::Tensor::subtract)
    }

    fn __rsub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.after(other, wgrad::Tensor::subtract)
    }

    fn __mul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, wgrad::Tensor::multiply)
    }

    fn __rmul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.after(other, wgrad::Tensor::multiply)
    }

    fn __truediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, wgrad::Tensor::divide)
    }

    fn __rtruediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.after(other, wgrad::Tensor::divide)
    }

    fn __floordiv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, wgrad::Tensor::floordiv)
    }

    fn __rfloordiv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.after(other, wgrad::Tensor::floordiv)
    }

    fn __mod__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(other, wgrad::Tensor::floormod)
    }

    fn __rmod__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.after(other, wgrad::Tensor::floormod)
    }

    fn __pow__(&self, other: &Bound<'_, PyAny>, modulo: Option<i64>) -> PyResult<Self> {
        if modulo.is_some() {
            return Err(invalid("pow: a modulus is not supported; use x ** y % m."));
        }
        self.with(other, wgrad::Tensor::pow)
    }

    fn __rpow__(&self, other: &Bound<'_, PyAny>, _modulo: Option<i64>) -> PyResult<Self> {
        self.after(other, wgrad::Tensor::pow)
    }

    fn __matmul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.0.matmul(&to_tensor(other, Some(self.0.dtype()))?).map(Tensor).raised()
    }

    fn __rmatmul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        to_tensor(other, Some(self.0.dtype()))?.matmul(&self.0).map(Tensor).raised()
    }

    fn __neg__(&self) -> PyResult<Self> {
        self.0.negative().map(Tensor).raised()
    }

    fn __abs__(&self) -> PyResult<Self> {
        self.0.abs().map(Tensor).raised()
    }

    fn __and__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.logical(other, |x, y| x.logical_and(y), |x, y| x.bitwise_and(y))
    }

    fn __or__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.logical(other, |x, y| x.logical_or(y), |x, y| x.bitwise_or(y))
    }

    fn __xor__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.logical(other, |x, y| x.logical_xor(y), |x, y| x.bitwise_xor(y))
    }

    fn __invert__(&self) -> PyResult<Self> {
        match self.0.dtype() {
            wgrad::DType::I32 | wgrad::DType::U32 => self.0.invert(),
            wgrad::DType::U8 => {
                self.0.cast(wgrad::DType::I32).and_then(|x| x.invert()?.cast(wgrad::DType::U8))
            }
            _ => self.0.logical_not(),
        }
        .map(Tensor)
        .raised()
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let compare: Binary = match op {
            CompareOp::Lt => wgrad::Tensor::less,
            CompareOp::Le => wgrad::Tensor::less_equal,
            CompareOp::Gt => wgrad::Tensor::greater,
            CompareOp::Ge => wgrad::Tensor::greater_equal,
            CompareOp::Eq => wgrad::Tensor::equal,
            CompareOp::Ne => wgrad::Tensor::not_equal,
        };
        // Comparing with what is no value is not an error: it is different.
        if matches!(op, CompareOp::Eq | CompareOp::Ne)
            && (other.is_none() || other.is_instance_of::<pyo3::types::PyString>())
        {
            return Ok(py.NotImplemented());
        }
        Ok(Py::new(py, self.with(other, compare)?)?.into_any())
    }

    fn __hash__(slf: &Bound<'_, Self>) -> isize {
        slf.as_ptr() as isize >> 4
    }

    fn __getitem__(&self, index: &Bound<'_, PyAny>) -> PyResult<Self> {
        let items: Vec<Bound<'_, PyAny>> = match index.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter().collect(),
            Err(_) => vec![index.clone()],
        };
        if let [item] = &items[..] {
            if let Ok(mask) = item.cast::<Tensor>() {
                if mask.get().0.dtype() == wgrad::DType::Bool {
                    let mask = mask.get().0.clone();
                    return index
                        .py()
                        .released(|| match self.0.dtype() {
                            wgrad::DType::U8 => self
                                .0
                                .cast(wgrad::DType::I32)?
                                .boolean_mask(&mask, 0)?
                                .cast(wgrad::DType::U8),
                            _ => self.0.boolean_mask(&mask, 0),
                        })
                        .map(Tensor)
                        .raised();
                }
            }
        }
        let named = items
            .iter()
            .filter(|item| !item.is_none() && !item.is_instance_of::<PyEllipsis>())
            .count();
        let (mut elements, mut source, mut axis) = (Vec::new(), self.0.clone(), 0);
        for item in &items {
            if item.is_none() {
                elements.push(SliceInfoElem::NewAxis);
            } else if item.is_instance_of::<PyEllipsis>() {
                let whole = SliceInfoElem::Slice { start: 0, end: None, step: 1 };
                let count = self.0.rank().saturating_sub(named);
                elements.extend(vec![whole; count]);
                axis += count;
            } else {
                elements.push(match scalar_index(item) {
                    None => element(item)?,
                    Some(at) => match index.py().released(|| at.item::<i32>()) {
                        // Only a run of the traced function knows it.
                        Err(wgrad::Error::Trace(_)) if axis < source.rank() => {
                            source = element_at(&source, &at, axis).raised()?;
                            SliceInfoElem::Index(0)
                        }
                        known => SliceInfoElem::Index(known.raised()? as isize),
                    },
                });
                axis += 1;
            }
        }
        source.strided_slice(&elements).map(Tensor).raised()
    }

    fn _cast(&self, dtype: &str) -> PyResult<Self> {
        self.0.cast(crate::arrays::dtype(dtype)?).map(Tensor).raised()
    }
}

/// An index that is a tensor of one `int32`.
fn scalar_index(item: &Bound<'_, PyAny>) -> Option<wgrad::Tensor> {
    let index = item.cast::<Tensor>().ok()?.get().0.clone();
    (index.dtype() == wgrad::DType::I32 && index.rank() == 0).then_some(index)
}

/// The elements with this index along an axis, which stays with the size 1. Indices that do not exist are errors of the next read.
fn element_at(
    x: &wgrad::Tensor,
    index: &wgrad::Tensor,
    axis: usize,
) -> wgrad::Result<wgrad::Tensor> {
    let size = i32::try_from(x.shape()[axis]).unwrap_or(i32::MAX);
    let place = index.less(0)?.cast(wgrad::DType::I32)?.multiply(size)?.add(index)?;
    let words = format!("index: an index is not below the size {size} of axis {axis}");
    wgrad::debugging::assert_less(&place, size, &words)?;
    wgrad::debugging::assert_greater_equal(&place, 0, &words)?;
    x.gather(&place.reshape([1])?, axis as i64)
}

/// One index of `x[..]`.
fn element(item: &Bound<'_, PyAny>) -> PyResult<SliceInfoElem> {
    let whole = |value: &Bound<'_, PyAny>| -> PyResult<isize> {
        value.extract::<isize>().or_else(|_| value.call_method0("__index__")?.extract()).map_err(|_| {
            invalid(format!(
                "index: {} cannot be an index; use integers, slices, None, ... or a mask. tf.gather takes tensors of indices, and \
                 tf.slice has bounds that only a run knows.",
                value.get_type()
            ))
        })
    };
    if let Ok(slice) = item.cast::<PySlice>() {
        let part = |name: &str| -> PyResult<Option<isize>> {
            let value = slice.getattr(name)?;
            if value.is_none() { Ok(None) } else { whole(&value).map(Some) }
        };
        let step = part("step")?.unwrap_or(1);
        let (start, stop) = (part("start")?, part("stop")?);
        if step == 0 {
            return Err(invalid("index: the step of a slice is 0; it must not be."));
        }
        // With a negative step, Python's bounds say where to begin; ndarray's say which elements to reverse.
        return Ok(match step > 0 {
            true => SliceInfoElem::Slice { start: start.unwrap_or(0), end: stop, step },
            false => {
                let after = |bound: isize| if bound == -1 { None } else { Some(bound + 1) };
                let first = match stop {
                    None => 0,
                    Some(stop) => after(stop).unwrap_or(isize::MAX),
                };
                let end = start.and_then(after);
                SliceInfoElem::Slice { start: first, end, step }
            }
        });
    }
    Ok(SliceInfoElem::Index(whole(item)?))
}
