"""Tensors of complex numbers: pairs of floats on the device, `[.., 2]`, with a real and an imaginary part each."""

import numpy as np

from . import _wgrad
from . import ops as _ops
from .dtypes import TensorShape, as_dtype, as_name
from .ops import FUNCTIONS as _F
from .tensor import Tensor, Variable, convert_to_tensor

_NAMES = ("complex64", "complex128")


def _native(name, *keys):
    return _wgrad.NativeOp(f"tf.{name}", list(keys))


_JOIN = _native("complex", "real", "imag")
_REAL, _IMAG, _ANGLE = (_native(f"math.{name}", "input") for name in ("real", "imag", "angle"))
_CONJ = _native("math.conj", "x")
_SLICE = slice(None)


class ComplexTensor:
    """A tensor of `complex64`. Its functions are operators, slices, `tf.abs`, `tf.math.real`, `imag`, `conj`, `angle`, `tf.cast` and those
    of `tf.signal`; tapes differentiate them."""

    dtype = as_dtype("complex64")
    # NumPy leaves operators between arrays and tensors to the tensors.
    __array_priority__ = 100

    def __init__(self, pairs):
        self._pairs = pairs

    @property
    def shape(self):
        return TensorShape(self._pairs._shape[:-1])

    def get_shape(self):
        return self.shape

    def numpy(self):
        return np.ascontiguousarray(self._pairs.numpy()).view(np.complex64)[..., 0]

    def __array__(self, dtype=None, copy=None):
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __repr__(self):
        return f"<tf.Tensor: shape={self.shape}, dtype=complex64, numpy={np.array_repr(self.numpy())}>"

    def __len__(self):
        if not self.shape:
            raise TypeError("a scalar tensor has no length.")
        return self.shape[0]

    def __getitem__(self, key):
        key = key if isinstance(key, tuple) else (key,)
        if any(part is Ellipsis for part in key):
            key = (*key, _SLICE)
        elif sum(part is not None for part in key) > len(self.shape):
            raise IndexError(f"{len(key)} indices for a tensor {self.shape}.")
        return ComplexTensor(self._pairs[key])

    def _parts(self):
        return _REAL(self._pairs), _IMAG(self._pairs)

    def __neg__(self):
        return ComplexTensor(-self._pairs)

    def __abs__(self):
        return absolute(self)

    def __add__(self, other):
        return ComplexTensor(self._pairs + of(other)._pairs)

    def __sub__(self, other):
        return ComplexTensor(self._pairs - of(other)._pairs)

    def __rsub__(self, other):
        return of(other) - self

    def __mul__(self, other):
        (a, b), (c, d) = self._parts(), of(other)._parts()
        return complex(a * c - b * d, a * d + b * c)

    def __truediv__(self, other):
        other = of(other)
        (c, d), turned = other._parts(), ComplexTensor(_CONJ(other._pairs))
        made, size = self * turned, c * c + d * d
        return ComplexTensor(made._pairs / size[..., None])

    def __rtruediv__(self, other):
        return of(other) / self

    __radd__, __rmul__ = __add__, __mul__


def of(value):
    """A value as complex numbers; real ones have no imaginary part."""
    if isinstance(value, ComplexTensor):
        return value
    if not isinstance(value, (Tensor, Variable)):
        array = np.asarray(value)
        if array.dtype.kind == "c":
            pairs = np.ascontiguousarray(array.astype(np.complex64))[..., None].view(np.float32)
            return ComplexTensor(_wgrad.constant(pairs.reshape(*array.shape, 2), "float32"))
        value = array
    real = _ops.cast(value, "float32")
    return complex(real, _ops.zeros_like(real))


def complex(real, imag, name=None):
    """TensorFlow's `tf.complex`."""
    return ComplexTensor(_JOIN(real, imag))


def real(input, name=None):
    """TensorFlow's `tf.math.real`."""
    return _REAL(input._pairs) if isinstance(input, ComplexTensor) else convert_to_tensor(input)


def imag(input, name=None):
    """TensorFlow's `tf.math.imag`."""
    return _IMAG(input._pairs) if isinstance(input, ComplexTensor) else _ops.zeros_like(input)


def conj(x, name=None):
    """TensorFlow's `tf.math.conj`."""
    return ComplexTensor(_CONJ(x._pairs)) if isinstance(x, ComplexTensor) else convert_to_tensor(x)


def angle(input, name=None):
    """TensorFlow's `tf.math.angle`."""
    if isinstance(input, ComplexTensor):
        return _ANGLE(input._pairs)
    x = convert_to_tensor(input)
    return _ops.where(x < 0, _ops.fill(list(x._shape), np.pi), _ops.zeros_like(x))


def absolute(x, name=None):
    """The size of complex numbers. Its gradient at 0 is 0."""
    a, b = x._parts()
    squares = a * a + b * b
    # The root of 0 has no finite gradient.
    zero = squares <= 0
    root = _F["math.sqrt"](_ops.where(zero, _ops.ones_like(squares), squares))
    return _ops.where(zero, _ops.zeros_like(squares), root)


def _with_complex(function, of_complex):
    """A function of real tensors that also takes complex ones."""

    def call(*arguments, **named):
        first = arguments[0] if arguments else next(iter(named.values()), None)
        return (of_complex if isinstance(first, ComplexTensor) else function)(*arguments, **named)

    call.__name__ = call.__qualname__ = function.__name__
    call.__doc__ = function.__doc__
    call.__signature__ = getattr(function, "__signature__", None)
    call.lists = getattr(function, "lists", set())
    return call


def _cast(x, dtype, name=None):
    if as_name(dtype) in _NAMES:
        return x
    return _ops.cast(real(x), dtype)


def cast(x, dtype, name=None):
    """TensorFlow's `tf.cast`."""
    if isinstance(x, ComplexTensor):
        return _cast(x, dtype)
    return of(x) if as_name(dtype) in _NAMES else _ops.cast(x, dtype)


def _binary(name):
    native, method = _F[f"math.{name}"], {"add": "__add__", "subtract": "__sub__", "multiply": "__mul__", "divide": "__truediv__"}[name]

    def call(x, y, name=None):
        if isinstance(x, ComplexTensor) or isinstance(y, ComplexTensor):
            return getattr(of(x), method)(y)
        return native(x, y)

    call.__name__ = call.__qualname__ = name
    call.__doc__, call.__signature__, call.lists = native.__doc__, native.__signature__, set()
    return call


def _reduced(name):
    """A sum or a mean, whose axes count from the front or from the end."""
    native = _F[f"math.{name}"]

    def of_complex(input_tensor, axis=None, keepdims=False, name=None):
        rank = len(input_tensor.shape)
        axes = list(range(rank)) if axis is None else [at % rank for at in ([axis] if isinstance(axis, int) else axis)]
        return ComplexTensor(native(input_tensor._pairs, axes, keepdims)) if axes else input_tensor

    return _with_complex(native, of_complex)


def install(top, math):
    """Puts the functions into their namespaces."""
    top.update(complex=complex, cast=cast, abs=_with_complex(_F["math.abs"], absolute))
    math.update(real=real, imag=imag, conj=conj, angle=angle, abs=top["abs"])
    for name in ("add", "subtract", "multiply", "divide"):
        math[name] = _binary(name)
        if name in top:
            top[name] = math[name]
    for name in ("reduce_sum", "reduce_mean"):
        math[name] = _reduced(name)
        if name in top:
            top[name] = math[name]
    top["complex64"] = ComplexTensor.dtype
