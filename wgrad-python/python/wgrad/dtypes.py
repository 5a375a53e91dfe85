"""Dtypes and shapes."""

import typing

import numpy as np


class DType:
    """The type of a tensor's elements."""

    def __init__(self, name):
        self.name = name

    @property
    def as_numpy_dtype(self):
        if self.name == "bfloat16":
            raise TypeError("tf.bfloat16: NumPy has no such dtype; use tf.float32.")
        return object if self.name == "string" else np.dtype(self.name).type

    @property
    def as_datatype_enum(self):
        """The number of the dtype in TensorFlow's files."""
        from .encoded import NUMBERS

        return NUMBERS[self.name]

    @property
    def is_floating(self):
        return self.name.startswith(("float", "bfloat"))

    @property
    def is_complex(self):
        return self.name.startswith("complex")

    @property
    def is_unsigned(self):
        return self.name.startswith("uint")

    @property
    def is_quantized(self):
        return False

    @property
    def is_numpy_compatible(self):
        return True

    @property
    def base_dtype(self):
        return self

    @property
    def real_dtype(self):
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    def _limits(self):
        if self.name == "bool":
            return False, True
        if self.name == "bfloat16":
            return -3.3895313892515355e38, 3.3895313892515355e38
        if self.is_integer:
            return np.iinfo(self.name).min, np.iinfo(self.name).max
        if self.is_floating:
            return np.finfo(self.name).min, np.finfo(self.name).max
        raise TypeError(f"{self!r} has no smallest and no largest value.")

    @property
    def min(self):
        """The smallest value."""
        return self._limits()[0]

    @property
    def max(self):
        """The largest value."""
        return self._limits()[1]

    @property
    def limits(self):
        """The smallest and the largest value of images: 0 and 1 for floats."""
        return (0, 1) if self.is_floating else (0 if self.is_unsigned else self.min, self.max)

    def is_compatible_with(self, other):
        """Whether both are the same dtype."""
        return self == other

    @property
    def is_integer(self):
        return "int" in self.name

    @property
    def is_bool(self):
        return self.name == "bool"

    @property
    def size(self):
        """The number of bytes of an element."""
        return {"string": 1, "bfloat16": 2}.get(self.name) or np.dtype(self.name).itemsize

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

# Names that files and specs of TensorFlow have. Tensors have none of these dtypes; a call that needs one says what to use.
bfloat16, int8, int16, uint16, uint64 = map(DType, ("bfloat16", "int8", "int16", "uint16", "uint64"))
complex64, complex128 = DType("complex64"), DType("complex128")

_known = {
    dtype.name: dtype
    for dtype in (
        bfloat16, bool, complex64, complex128, float16, float32, float64, int8, int16, int32, int64, string, uint8, uint16, uint32, uint64
    )
}
half, double = float16, float64


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
    if dtype in (str, bytes):
        return "string"
    found = np.dtype(dtype)
    return "string" if found.kind in "OSU" else found.name


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

    @property
    def dims(self):
        """The sizes, in a list."""
        return list(self)

    def is_compatible_with(self, other):
        """Whether both have as many axes, and equal sizes where both are known."""
        other = tuple(other)
        return len(self) == len(other) and all(a is None or b is None or a == b for a, b in zip(self, other))

    def _check(self, holds, what):
        if not holds:
            raise ValueError(f"TensorShape: the shape is {list(self)}; {what}.")

    def assert_is_compatible_with(self, other):
        """Raises a `ValueError` unless `is_compatible_with(other)`."""
        self._check(self.is_compatible_with(other), f"it does not fit {list(other)}")

    def assert_has_rank(self, rank):
        """Raises a `ValueError` unless there are `rank` axes."""
        self._check(len(self) == rank, f"it must have {rank} axes")

    def assert_same_rank(self, other):
        """Raises a `ValueError` unless both have as many axes."""
        self._check(len(self) == len(tuple(other)), f"it must have {len(tuple(other))} axes")

    def assert_is_fully_defined(self):
        """Raises a `ValueError` unless all sizes are known."""
        self._check(self.is_fully_defined(), "all sizes must be known")

    def with_rank(self, rank):
        """The shape, which must have `rank` axes."""
        self.assert_has_rank(rank)
        return self

    def with_rank_at_least(self, rank):
        """The shape, which must have `rank` axes or more."""
        self._check(len(self) >= rank, f"it must have {rank} axes or more")
        return self

    def with_rank_at_most(self, rank):
        """The shape, which must have `rank` axes or fewer."""
        self._check(len(self) <= rank, f"it must have {rank} axes or fewer")
        return self

    def concatenate(self, other):
        """The axes of both."""
        return TensorShape((*self, *other))

    def merge_with(self, other):
        """The sizes that either has."""
        self.assert_is_compatible_with(other)
        return TensorShape(b if a is None else a for a, b in zip(self, other))

    def __add__(self, other):
        return self.concatenate(other)

    def __getitem__(self, at):
        found = super().__getitem__(at)
        return TensorShape(found) if isinstance(at, slice) else found

    def __repr__(self):
        return f"TensorShape({list(self)})"

    def __str__(self):
        return "(" + ", ".join(map(str, self)) + ("," if len(self) == 1 else "") + ")"


DTypeLike = typing.Union[DType, str, type, np.dtype]
