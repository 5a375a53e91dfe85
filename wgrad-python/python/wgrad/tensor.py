"""What tensors and variables have in Python besides the native part: how they look, and methods with TensorFlow's names."""

import functools
import html
from collections.abc import Sequence
from typing import Any, Union

import numpy as np

from . import _wgrad
from .dtypes import TensorShape, as_dtype, as_name
from .errors import FailedPreconditionError

Tensor = _wgrad.Tensor
Variable = _wgrad.Variable
# What functions take for a tensor.
TensorLike = Union[Tensor, Variable, np.ndarray, np.generic, float, int, bool, Sequence[Any]]


_ROUND = _wgrad.NativeOp("tf.math.round", ["x"])


def convert_to_tensor(value, dtype=None, dtype_hint=None, name=None):
    if isinstance(value, Tensor) and dtype is None:
        return value
    return _wgrad.constant(_read(value), as_name(dtype))


def _read(value):
    """The value, or the array of an object that only DLPack reads."""
    if isinstance(value, (Tensor, Variable, np.ndarray, list, tuple, float, int)) or not hasattr(value, "__dlpack__"):
        return value
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        return value
    from . import _host_array

    return _host_array(value)


def constant(value, dtype=None, shape=None, name="Const"):
    if isinstance(value, (str, bytes, list, tuple, np.ndarray)):
        from . import strings

        if strings.is_text(value):
            if as_name(dtype) not in (None, "string"):
                raise TypeError(f"constant: strings cannot be {as_name(dtype)}; tf.strings.to_number makes numbers of them.")
            made = strings.of(value)
            return made if shape is None else np.broadcast_to(made, tuple(shape)).view(strings.StringTensor)
    if as_name(dtype) in ("complex64", "complex128") or dtype is None and _is_complex(value):
        from . import complex_numbers

        if shape is not None:
            raise TypeError("constant: a shape of complex numbers is not supported; use tf.complex of two tensors.")
        return complex_numbers.of(value)
    return _wgrad.constant(_read(value), as_name(dtype), None if shape is None else [int(size) for size in shape])


def _is_complex(value):
    """Whether a value is a complex number, or a list or an array of them."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return isinstance(value, (complex, np.complexfloating)) or isinstance(value, np.ndarray) and value.dtype.kind == "c"


def is_tensor(value):
    return isinstance(value, (Tensor, Variable))


def _values(array):
    return np.array2string(array, separator=" ") if array.ndim else str(array)


def _known(tensor):
    """The values, or `None` while a function is traced that computes them in each run."""
    try:
        return tensor.numpy()
    except FailedPreconditionError:
        return None


def _tensor_str(self):
    array = _known(self)
    if array is None:
        return f"Tensor(shape={self.shape}, dtype={self.dtype.name})"
    return f"tf.Tensor({_values(array)}, shape={self.shape}, dtype={self.dtype.name})"


def _tensor_repr(self):
    array = _known(self)
    if array is None:
        return f"<tf.Tensor shape={self.shape}, dtype={self.dtype.name}>"
    shown = str(array) if array.ndim == 0 else np.array_repr(array)
    return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, numpy={shown}>"


def _tensor_format(self, spec):
    array = None if self._shape else _known(self)
    return format(str(self) if array is None else array[()], spec)


def _html(self):
    if self._shape and int(np.prod(self._shape)) > 100_000:
        # Showing a large tensor must not read all of it.
        corner = self[tuple(slice(0, 3) for _ in self._shape)].numpy()
        title = f"<b>Tensor</b> shape {html.escape(str(self.shape))}, dtype {self.dtype.name}; its first elements:"
        return f"<div>{title}<pre>{html.escape(np.array2string(corner, threshold=200))}</pre></div>"
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


def _dlpack(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    if stream is not None:
        raise BufferError("__dlpack__: memory of the host has no streams; pass stream=None.")
    if dl_device is not None and tuple(dl_device) != (1, 0):
        raise BufferError(f"__dlpack__: the values are in the host's memory, not on the device {tuple(dl_device)}.")
    # Each call reads the values, so they belong to the caller.
    return self.numpy().__dlpack__()


def _variable_repr(self):
    array = _known(self)
    head = f"<tf.Variable '{self.name}' shape={self.shape}, dtype={self.dtype.name}"
    if array is None:
        return head + ">"
    return f"{head}, numpy={np.array_repr(array) if self._shape else array}>"


def _set_shape(self, shape):
    """Checks the sizes that are given. All sizes of a tensor are known here, so that there is nothing to set."""
    given = TensorShape(shape)
    if not self.shape.is_compatible_with(given):
        raise ValueError(f"set_shape: the tensor is {self.shape}, which does not fit {given}; reshape it instead.")


def _extend_tensor():
    Tensor.set_shape = _set_shape
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
    Tensor.__format__ = _tensor_format
    Tensor.__dlpack__ = _dlpack
    Tensor.__dlpack_device__ = lambda self: (1, 0)
    Tensor.__copy__ = lambda self: self
    Tensor.__deepcopy__ = lambda self, memo: self
    Tensor.__reduce__ = lambda self: (constant, (self.numpy(),))
    Tensor.ref = lambda self: id(self)


_ALONE = {"__len__", "__bool__", "__float__", "__int__", "__index__", "__iter__", "__neg__", "__abs__", "__invert__"}


def _forward(name):
    if name in _ALONE:
        def method(self):
            return getattr(self.read_value(), name)()
    else:
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


def _positions(shape, indices):
    """The positions, among all elements of a shape, of the elements of an index."""
    read = lambda part: part.numpy() if isinstance(part, (Tensor, Variable)) else part
    indices = tuple(map(read, indices)) if isinstance(indices, tuple) else (read(indices),)
    is_plain = lambda part: isinstance(part, (int, np.integer, slice)) and not isinstance(part, bool)
    if not all(map(is_plain, indices)):
        return np.arange(int(np.prod(shape))).reshape(shape)[indices]
    # Axis by axis: a row of a large variable has few positions.
    places, stride = np.zeros((), "int64"), int(np.prod(shape))
    for size, part in zip(shape, (*indices, *[slice(None)] * (len(shape) - len(indices)))):
        stride //= max(size, 1)
        along = np.arange(size)[part] * stride
        places = places[..., None] + along if along.ndim else places + along
    return places


def scattered(x, indices, scatter, value):
    """`x` with the elements of an index changed by a function such as `tensor_scatter_nd_update`."""
    from .ops import FUNCTIONS

    places = _positions(x._shape, indices)
    values = FUNCTIONS["reshape"](FUNCTIONS["broadcast_to"](convert_to_tensor(value, x._dtype), list(places.shape)), [-1])
    flat = FUNCTIONS[scatter](FUNCTIONS["reshape"](x, [-1]), places.reshape(-1, 1), values)
    return FUNCTIONS["reshape"](flat, list(x._shape))


def _assign_slice(self, indices, scatter, value, use_locking=None, name=None, read_value=True):
    """Changes the elements of an index; `v[0].assign(value)` calls it."""
    self._assign(scattered(self.read_value(), indices, scatter, value))
    return self


_SLICES = {
    "assign": "tensor_scatter_nd_update", "assign_add": "tensor_scatter_nd_add", "assign_sub": "tensor_scatter_nd_sub"
}


def _slice(self, indices):
    part = self.read_value()[indices]
    if isinstance(part, Tensor):
        for name, scatter in _SLICES.items():
            setattr(part, name, functools.partial(_assign_slice, self, indices, scatter))
    return part


def _scattering(scatter):
    def method(self, indices, updates, name=None):
        from .ops import FUNCTIONS

        self._assign(FUNCTIONS[f"tensor_{scatter}"](self.read_value(), indices, convert_to_tensor(updates, self._dtype)))
        return self

    method.__name__ = scatter
    return method


# What TensorFlow's variables take for graphs and strategies; nothing here depends on them.
_IGNORED = {"validate_shape", "caching_device", "variable_def", "import_scope", "synchronization", "aggregation", "constraint"}


def _named(self, initial_value, trainable=True, dtype=None, name=None, shape=None, **options):
    unknown = next((option for option in options if option not in _IGNORED), None)
    if unknown is not None:
        raise TypeError(f"Variable: there is no option '{unknown}'.")
    if shape is not None and not self.shape.is_compatible_with(TensorShape(shape)):
        raise ValueError(f"Variable: the first value is {self.shape}, which does not fit the shape {TensorShape(shape)}.")
    if name is not None:
        self._name = name


def _extend_variable():
    Variable.__init__ = _named
    Variable.get_shape = lambda self: self.shape
    Variable.name = property(lambda self: self.__dict__.get("_name", "Variable"))
    Variable.path = property(lambda self: self.__dict__.get("_path") or self.name)
    Variable.shape = property(lambda self: TensorShape(self._shape))
    Variable.dtype = property(lambda self: as_dtype(self._dtype))
    Variable.value = lambda self: self.read_value()
    for name in _OPERATORS:
        setattr(Variable, name, _forward(name))
    for name in ("assign", "assign_add", "assign_sub"):
        setattr(Variable, name, _assigning(name))
    for name in ("scatter_nd_update", "scatter_nd_add", "scatter_nd_sub", "scatter_nd_min", "scatter_nd_max"):
        setattr(Variable, name, _scattering(name))
    Variable.__getitem__ = _slice
    Variable.ref = lambda self: id(self)
    Variable.__array__ = _array
    Variable.__array_priority__ = 100
    Variable.__str__ = Variable.__repr__ = _variable_repr
    Variable._repr_html_ = lambda self: _html(self.read_value()).replace("Tensor", "Variable", 1)


_extend_tensor()
_extend_variable()
