"""What tensors and variables have in Python besides the native part: how they look, and methods with TensorFlow's names."""

import html

import numpy as np

from . import _wgrad
from .dtypes import TensorShape, as_dtype, as_name

Tensor = _wgrad.Tensor
Variable = _wgrad.Variable


_ROUND = _wgrad.NativeOp("tf.math.round", ["x"])


def convert_to_tensor(value, dtype=None, dtype_hint=None, name=None):
    if isinstance(value, Tensor) and dtype is None:
        return value
    return _wgrad.constant(value, as_name(dtype))


def constant(value, dtype=None, shape=None, name="Const"):
    return _wgrad.constant(value, as_name(dtype), None if shape is None else [int(size) for size in shape])


def is_tensor(value):
    return isinstance(value, (Tensor, Variable))


def _values(array):
    return np.array2string(array, separator=" ") if array.ndim else str(array)


def _tensor_str(self):
    return f"tf.Tensor({_values(self.numpy())}, shape={self.shape}, dtype={self.dtype.name})"


def _tensor_repr(self):
    array = self.numpy()
    shown = str(array) if array.ndim == 0 else np.array_repr(array)
    return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, numpy={shown}>"


def _html(self):
    array = self.numpy()
    title = f"<b>Tensor</b> shape {html.escape(str(self.shape))}, dtype {self.dtype.name}"
    if array.ndim == 2 and array.shape[0] <= 20 and array.shape[1] <= 20:
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(format(value, '.6g') if isinstance(value, np.floating) else str(value))}</td>" for value in row) + "</tr>"
            for row in array
        )
        return f"<div>{title}<table>{rows}</table></div>"
    return f"<div>{title}<pre>{html.escape(np.array2string(array, threshold=200))}</pre></div>"


def _iter(self):
    if not self._shape:
        raise TypeError("a scalar tensor cannot be iterated over.")
    return (self[at] for at in range(self._shape[0]))


def _array(self, dtype=None, copy=None):
    array = self.numpy()
    return array if dtype is None else array.astype(dtype)


def _extend_tensor():
    Tensor.shape = property(lambda self: TensorShape(self._shape))
    Tensor.dtype = property(lambda self: as_dtype(self._dtype))
    Tensor.get_shape = lambda self: self.shape
    Tensor.__str__ = _tensor_str
    Tensor.__repr__ = _tensor_repr
    Tensor._repr_html_ = _html
    Tensor.__iter__ = _iter
    Tensor.__array__ = _array
    # NumPy leaves operators between arrays and tensors to the tensors.
    Tensor.__array_priority__ = 100
    Tensor.__round__ = lambda self, digits=0: _ROUND(self)
    Tensor.__format__ = lambda self, spec: format(self.numpy()[()] if not self._shape else str(self), spec)
    Tensor.__dlpack__ = lambda self, **options: self.numpy().__dlpack__()
    Tensor.__dlpack_device__ = lambda self: (1, 0)
    Tensor.__copy__ = lambda self: self
    Tensor.__deepcopy__ = lambda self, memo: self
    Tensor.__reduce__ = lambda self: (constant, (self.numpy(),))
    Tensor.ref = lambda self: id(self)


def _forward(name):
    def method(self, *arguments):
        return getattr(self.read_value(), name)(*arguments)

    method.__name__ = name
    return method


_OPERATORS = """__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ __rfloordiv__ __mod__
__rmod__ __pow__ __rpow__ __matmul__ __rmatmul__ __neg__ __abs__ __and__ __or__ __xor__ __invert__ __lt__ __le__ __gt__ __ge__
__getitem__ __len__ __bool__ __float__ __int__ __index__ __iter__ __format__""".split()


def _assigning(name):
    native = getattr(Variable, f"_{name}")

    def method(self, value, use_locking=None, name=None, read_value=True):
        native(self, value)
        return self

    method.__name__ = name
    return method


def _extend_variable():
    Variable.shape = property(lambda self: TensorShape(self._shape))
    Variable.dtype = property(lambda self: as_dtype(self._dtype))
    Variable.value = lambda self: self.read_value()
    for name in _OPERATORS:
        setattr(Variable, name, _forward(name))
    for name in ("assign", "assign_add", "assign_sub"):
        setattr(Variable, name, _assigning(name))
    Variable.__array__ = _array
    Variable.__array_priority__ = 100
    Variable.__str__ = Variable.__repr__ = lambda self: (
        f"<tf.Variable shape={self.shape}, dtype={self.dtype.name}, numpy={np.array_repr(self.numpy()) if self._shape else self.numpy()}>"
    )
    Variable._repr_html_ = lambda self: _html(self.read_value()).replace("Tensor", "Variable", 1)


_extend_tensor()
_extend_variable()
