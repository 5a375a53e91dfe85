"""Dtypes and shapes."""

import typing

import numpy as np


class DType:
    """The type of a tensor's elements."""

    def __init__(self, name):
        self.name = name

    @property
    def as_numpy_dtype(self):
        return object if self.name == "string" else np.dtype(self.name).type

    @property
    def is_floating(self):
        return self.name.startswith("float")

    @property
    def is_integer(self):
        return "int" in self.name

    @property
    def is_bool(self):
        return self.name == "bool"

    @property
    def size(self):
        return np.dtype(self.name).itemsize

    def __eq__(self, other):
        try:
            return self.name == as_name(other)
        except TypeError:
            return NotImplemented

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f"tf.{self.name}"

    def __str__(self):
        return f"<dtype: '{self.name}'>"


float32 = DType("float32")
float16 = DType("float16")
float64 = DType("float64")
int32 = DType("int32")
int64 = DType("int64")
uint32 = DType("uint32")
uint8 = DType("uint8")
bool = DType("bool")
# Strings are on the host: `bytes`, and arrays of them.
string = DType("string")

_known = {dtype.name: dtype for dtype in (float32, float16, float64, int32, int64, uint32, uint8, bool, string)}
half = float16


def as_name(dtype):
    """The name of a dtype of wgrad, NumPy or Python, or of a string."""
    if dtype is None:
        return None
    if isinstance(dtype, DType):
        return dtype.name
    if isinstance(dtype, str):
        return {"float": "float32", "double": "float64", "half": "float16", "int": "int32"}.get(dtype, dtype)
    if dtype is float:
        return "float32"
    if dtype is int:
        return "int32"
    if dtype is str:
        return "string"
    return np.dtype(dtype).name


def as_dtype(dtype):
    name = as_name(dtype)
    if name not in _known:
        _known[name] = DType(name)
    return _known[name]


class TensorShape(tuple):
    """The sizes of a tensor's axes: a tuple with TensorFlow's methods."""


    @property
    def rank(self):
        return len(self)

    ndims = rank

    def as_list(self):
        return list(self)

    def num_elements(self):
        count = 1
        for size in self:
            if size is None:
                return None
            count *= size
        return count

    def is_fully_defined(self):
        return all(size is not None for size in self)

    def __getitem__(self, at):
        found = super().__getitem__(at)
        return TensorShape(found) if isinstance(at, slice) else found

    def __repr__(self):
        return f"TensorShape({list(self)})"

    def __str__(self):
        return "(" + ", ".join(map(str, self)) + ("," if len(self) == 1 else "") + ")"


DTypeLike = typing.Union[DType, str, type, np.dtype]
