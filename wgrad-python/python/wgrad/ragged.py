"""Ragged tensors, `tf.RaggedTensor`: rows of different lengths. Their values are one tensor, or strings; how it is split into rows is known on
the host. Functions of elements, reductions, `concat`, `stack`, `gather` and `cast` take them, and `to_tensor` pads them."""

import builtins
import functools

import numpy as np

from . import ops, strings
from .dtypes import TensorShape, as_dtype, as_name
from .errors import InvalidArgumentError, InvalidTypeError
from .ops import FUNCTIONS as _F
from .strings import StringTensor
from .tensor import Tensor, Variable, convert_to_tensor


def _host(value):
    """Whole numbers, such as the lengths of rows, on the host."""
    array = np.asarray(value.numpy() if isinstance(value, (Tensor, Variable)) else value)
    if array.size and array.dtype.kind not in "iu":
        raise InvalidTypeError(f"RaggedTensor: splits, lengths and indices of rows are whole numbers; they are {array.dtype}.")
    return array.astype("int64")


def _numbers(numbers):
    """Numbers for a message."""
    listed = numbers.ravel()[:10].tolist()
    return f"{listed}" if numbers.size <= 10 else f"{str(listed)[:-1]}, ...] ({numbers.size} numbers)"


def _values(value, dtype=None):
    if isinstance(value, RaggedTensor):
        return value
    if strings.is_text(value) or isinstance(value, np.ndarray) and value.dtype.kind in "SUO":
        return strings.of(value)
    return convert_to_tensor(value, dtype)


def _count(values):
    return len(values._splits) - 1 if isinstance(values, RaggedTensor) else values.shape[0]


def _taken(values, rows):
    """Rows of values, by an array of indices."""
    if isinstance(values, RaggedTensor):
        return values._take(rows)
    return values[rows] if isinstance(values, np.ndarray) else _F["gather"](values, rows.astype("int32"))


def _ranges(starts, lengths):
    """The numbers of several ranges, one after the other."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)


class RaggedTensor:
    """Rows of different lengths; `tf.ragged.constant` and the functions `from_..` make them."""

    # NumPy leaves operators between arrays and ragged tensors to these.
    __array_priority__ = 200
    __hash__ = None

    def __init__(self, values, splits):
        self._values, self._splits = values, splits

    # ---- making ----

    @classmethod
    def from_row_splits(cls, values, row_splits, name=None, validate=True):
        """Row `i` is `values[row_splits[i] : row_splits[i + 1]]`."""
        values, splits = _values(values), _host(row_splits)
        if splits.ndim != 1 or not len(splits) or splits[0] or (np.diff(splits) < 0).any() or splits[-1] != _count(values):
            raise InvalidArgumentError(
                f"RaggedTensor: the splits are {_numbers(splits)} for {_count(values)} values; they must begin with 0, not decrease, and end with the number of values."
            )
        return cls(values, splits)

    @classmethod
    def from_row_lengths(cls, values, row_lengths, name=None, validate=True):
        """Rows of these lengths."""
        lengths = _host(row_lengths)
        if lengths.ndim != 1 or (lengths < 0).any():
            raise InvalidArgumentError(f"RaggedTensor: the lengths are {_numbers(lengths)}; they must be a list of numbers that are not negative.")
        return cls.from_row_splits(values, np.concatenate([[0], np.cumsum(lengths)]))

    @classmethod
    def from_value_rowids(cls, values, value_rowids, nrows=None, name=None, validate=True):
        """Each value goes into the row of its number; the numbers do not decrease."""
        rows = _host(value_rowids)
        count = (int(rows[-1]) + 1 if len(rows) else 0) if nrows is None else int(nrows)
        if (np.diff(rows) < 0).any() or len(rows) and not 0 <= rows[0] <= rows[-1] < count:
            raise InvalidArgumentError(f"RaggedTensor: the rows of values are {_numbers(rows)} of {count}; they must not decrease, and be from 0 to {count - 1}.")
        return cls.from_row_lengths(values, np.bincount(rows, minlength=count))

    @classmethod
    def from_row_starts(cls, values, row_starts, name=None, validate=True):
        """Rows that begin at these values."""
        values = _values(values)
        return cls.from_row_splits(values, np.concatenate([_host(row_starts), [_count(values)]]))

    @classmethod
    def from_row_limits(cls, values, row_limits, name=None, validate=True):
        """Rows that end before these values."""
        return cls.from_row_splits(values, np.concatenate([[0], _host(row_limits)]))

    @classmethod
    def from_uniform_row_length(cls, values, uniform_row_length, nrows=None, validate=True, name=None):
        """Rows of one length."""
        values, length = _values(values), int(uniform_row_length)
        if length < 1 or _count(values) % length:
            raise InvalidArgumentError(f"RaggedTensor: {_count(values)} values do not make rows of {length}.")
        return cls(values, np.arange(0, _count(values) + 1, length))

    @classmethod
    def from_nested_row_splits(cls, flat_values, nested_row_splits, name=None, validate=True):
        """Rows of rows, by the splits of each axis from the first one on."""
        made = _values(flat_values)
        for splits in reversed(list(nested_row_splits)):
            made = cls.from_row_splits(made, splits)
        return made

    @classmethod
    def from_nested_row_lengths(cls, flat_values, nested_row_lengths, name=None, validate=True):
        """Rows of rows, by the lengths of each axis from the first one on."""
        made = _values(flat_values)
        for lengths in reversed(list(nested_row_lengths)):
            made = cls.from_row_lengths(made, lengths)
        return made

    @classmethod
    def from_tensor(cls, tensor, lengths=None, padding=None, ragged_rank=1, name=None, row_splits_dtype="int64"):
        """The rows of a tensor, without what is behind `lengths`, or without the `padding` at their ends."""
        tensor = _values(tensor)
        if len(tensor.shape) <= ragged_rank or ragged_rank < 1:
            raise InvalidArgumentError(f"RaggedTensor: the tensor is {list(tensor.shape)}; ragged_rank is {ragged_rank}, which must be from 1 to one less than its axes.")
        if ragged_rank > 1:
            if lengths is not None or padding is not None:
                raise TypeError("RaggedTensor.from_tensor: lengths and padding are supported with ragged_rank=1 only.")
            rows = _reshaped(tensor, [-1, *tensor.shape[2:]])
            return cls.from_uniform_row_length(cls.from_tensor(rows, ragged_rank=ragged_rank - 1), tensor.shape[1])
        count, width = tensor.shape[:2]
        if padding is not None:
            if lengths is not None:
                raise ValueError("RaggedTensor.from_tensor: give lengths or padding, not both.")
            is_value = np.asarray(tensor) != (padding.encode() if isinstance(padding, str) else padding)
            is_value = is_value.reshape(count, width, -1).any(-1)
            lengths = np.where(is_value.any(1), width - is_value[:, ::-1].argmax(1), 0) if width else np.zeros(count, "int64")
        lengths = np.full(count, width) if lengths is None else _host(lengths)
        if lengths.shape != (count,) or (lengths < 0).any() or (lengths > width).any():
            raise InvalidArgumentError(f"RaggedTensor: the lengths are {_numbers(lengths)} for a tensor {list(tensor.shape)}; give one from 0 to {width} for each row.")
        kept = _ranges(np.arange(count) * width, lengths)
        return cls.from_row_lengths(_taken(_reshaped(tensor, [-1, *tensor.shape[2:]]), kept), lengths)

    # ---- parts ----

    @property
    def values(self):
        return self._values

    @property
    def flat_values(self):
        """The values without any rows."""
        return self._values.flat_values if isinstance(self._values, RaggedTensor) else self._values

    @property
    def row_splits(self):
        return convert_to_tensor(self._splits)

    @property
    def nested_row_splits(self):
        inner = self._values.nested_row_splits if isinstance(self._values, RaggedTensor) else ()
        return (self.row_splits, *inner)

    @property
    def ragged_rank(self):
        return 1 + (self._values.ragged_rank if isinstance(self._values, RaggedTensor) else 0)

    @property
    def dtype(self):
        flat = self.flat_values
        return as_dtype("string") if isinstance(flat, np.ndarray) else flat.dtype

    @property
    def shape(self):
        """The sizes; those of ragged axes are `None`."""
        return TensorShape([len(self._splits) - 1, None, *self._values.shape[1:]])

    def get_shape(self):
        return self.shape

    def nrows(self, out_type="int64", name=None):
        return convert_to_tensor(len(self._splits) - 1)

    def row_starts(self, name=None):
        return convert_to_tensor(self._splits[:-1])

    def row_limits(self, name=None):
        return convert_to_tensor(self._splits[1:])

    def row_lengths(self, axis=1, name=None):
        """How long rows are; those of an axis further in are a ragged tensor."""
        if axis == 0:
            return self.nrows()
        if axis == 1:
            return convert_to_tensor(np.diff(self._splits))
        if not isinstance(self._values, RaggedTensor):
            raise ValueError(f"row_lengths: axis is {axis}, and the ragged axes end with {self.ragged_rank}.")
        return RaggedTensor(self._values.row_lengths(axis - 1), self._splits)

    def nested_row_lengths(self, name=None):
        return tuple(convert_to_tensor(np.diff(splits.numpy())) for splits in self.nested_row_splits)

    def value_rowids(self, name=None):
        return convert_to_tensor(self._rows())

    def _rows(self):
        return np.repeat(np.arange(len(self._splits) - 1), np.diff(self._splits))

    def bounding_shape(self, axis=None, name=None, out_type=None):
        """The shape of `to_tensor()`."""
        longest = int(np.diff(self._splits).max(initial=0))
        inner = self._values.bounding_shape().numpy()[1:] if isinstance(self._values, RaggedTensor) else self._values.shape[1:]
        sizes = np.array([len(self._splits) - 1, longest, *inner], "int32")
        return convert_to_tensor(sizes if axis is None else sizes[axis])

    def with_values(self, new_values):
        """The same rows with other values."""
        return RaggedTensor.from_row_splits(new_values, self._splits)

    def with_flat_values(self, new_values):
        """The same rows of rows with other values."""
        inner = self._values.with_flat_values(new_values) if isinstance(self._values, RaggedTensor) else new_values
        return self.with_values(inner)

    def merge_dims(self, outer_axis, inner_axis):
        """Axes from `outer_axis` to `inner_axis` as one."""
        rank = len(self.shape)
        outer, inner = outer_axis % rank, inner_axis % rank
        if outer >= inner:
            return self
        if outer > 1:
            values = self._values
            return self.with_values(values.merge_dims(outer - 1, inner - 1) if isinstance(values, RaggedTensor) else _merged(values, outer - 1, inner - 1))
        values, splits = self._values, self._splits
        for _ in builtins.range(inner - 1):
            if isinstance(values, RaggedTensor):
                values, splits = values._values, values._splits[splits]
            else:
                values, splits = _merged(values, 0, 1), splits * values.shape[1]
        return values if outer == 0 else RaggedTensor(values, splits)

    # ---- values ----

    def to_list(self):
        """Lists in lists."""
        rows = self._values.to_list() if isinstance(self._values, RaggedTensor) else np.asarray(self._values).tolist()
        return [rows[first:last] for first, last in zip(self._splits[:-1].tolist(), self._splits[1:].tolist())]

    def numpy(self):
        """An array of the rows; one with numbers if all rows are equally long."""
        rows = self._values.numpy()
        parts = [rows[first:last] for first, last in zip(self._splits[:-1], self._splits[1:])]
        if len({part.shape for part in parts}) <= 1 and all(part.dtype != object for part in parts):
            return np.stack(parts) if parts else np.zeros((0, 0))
        made = np.empty(len(parts), dtype=object)
        made[:] = parts
        return made

    def to_tensor(self, default_value=None, name=None, shape=None):
        """A tensor with `default_value` behind short rows. `shape` cuts longer ones; `None` in it stands for the longest."""
        wanted = [None] * 2 if shape is None else list(shape)
        inner, values = wanted[1:], self._values
        if isinstance(values, RaggedTensor):
            values = values.to_tensor(default_value, shape=inner if shape is not None else None)
        lengths = np.diff(self._splits)
        count = len(lengths) if wanted[0] is None else int(wanted[0])
        width = int(lengths.max(initial=0)) if len(wanted) < 2 or wanted[1] is None else int(wanted[1])
        starts, kept = np.zeros(count, "int64"), np.zeros(count, "int64")
        used = min(count, len(lengths))
        starts[:used], kept[:used] = self._splits[:-1][:used], lengths[:used]
        is_value = np.arange(width) < kept[:, None]
        places = np.where(is_value, starts[:, None] + np.arange(width), 0)
        if isinstance(values, np.ndarray):
            made = np.full((count, width, *values.shape[1:]), b"" if default_value is None else strings._bytes(default_value), dtype=object)
            made[is_value] = values[places[is_value]]
            return strings.of(made)
        default = convert_to_tensor(0 if default_value is None else default_value, values._dtype)
        sizes = [count, width, *values._shape[1:]]
        if not values._shape[0] or not count or not width:
            return ops.fill(sizes, default) if not default._shape else _F["broadcast_to"](default, sizes)
        made = _F["gather"](values, places.astype("int32"))
        return ops.where(is_value.reshape(count, width, *[1] * (len(sizes) - 2)), made, default)

    def to_sparse(self, name=None):
        """A sparse matrix of the values, for rows of numbers."""
        from .sparse import SparseTensor

        if isinstance(self._values, RaggedTensor) or len(self._values.shape) != 1:
            raise TypeError("to_sparse: only ragged tensors of two axes are supported; use to_tensor.")
        rows = self._rows()
        at = np.stack([rows, np.arange(len(rows)) - self._splits[:-1][rows]], 1)
        return SparseTensor(at, self._values, [len(self._splits) - 1, int(np.diff(self._splits).max(initial=0))])

    def __array__(self, dtype=None, copy=None):
        raise InvalidTypeError(f"a RaggedTensor of the shape {self.shape} is no tensor here; to_tensor pads its rows.")

    # ---- rows ----

    def _take(self, rows):
        lengths = np.diff(self._splits)[rows]
        values = _taken(self._values, _ranges(self._splits[:-1][rows], lengths))
        return RaggedTensor(values, np.concatenate([[0], np.cumsum(lengths)]).astype("int64"))

    def _row(self, at):
        count = len(self._splits) - 1
        if not -count <= at < count:
            raise IndexError(f"RaggedTensor: the index {at} is out of bounds; there are {count} rows.")
        first, last = self._splits[at % count], self._splits[at % count + 1]
        values = self._values
        return values._take(np.arange(first, last)) if isinstance(values, RaggedTensor) else values[int(first) : int(last)]

    def __getitem__(self, key):
        keys = key if isinstance(key, tuple) else (key,)
        if any(part is None or part is Ellipsis for part in keys):
            raise TypeError("RaggedTensor: newaxis and ... are not supported in indices; use tf.expand_dims, or name all axes.")
        first, rest = keys[0], keys[1:]
        if not isinstance(first, slice):
            row = self._row(int(_host(first)))
            return row[rest if len(rest) > 1 else rest[0]] if rest else row
        made = self if first == slice(None) else self._take(np.arange(len(self._splits) - 1)[first])
        return made._inner(rest) if rest else made

    def _inner(self, keys):
        """The elements of each row by a slice, and of the axes behind it."""
        first, rest = keys[0], keys[1:]
        if not isinstance(first, slice):
            raise ValueError("RaggedTensor: an index of a ragged axis must be a slice, as rows may be shorter; index single rows, or use to_tensor.")
        made = self
        if first != slice(None):
            parts = [np.arange(start, end)[first] for start, end in zip(self._splits[:-1], self._splits[1:])]
            lengths = [len(part) for part in parts]
            flat = np.concatenate(parts) if parts else np.zeros(0, "int64")
            made = RaggedTensor.from_row_lengths(_taken(self._values, flat), np.array(lengths, "int64"))
        if not rest:
            return made
        values = made._values
        return made.with_values(values._inner(rest) if isinstance(values, RaggedTensor) else values[(slice(None), *rest)])

    def __len__(self):
        return len(self._splits) - 1

    def __iter__(self):
        return (self._row(at) for at in builtins.range(len(self)))

    def __bool__(self):
        raise TypeError("the truth of a RaggedTensor is not defined; use tf.reduce_any or tf.reduce_all.")

    def __repr__(self):
        return f"<tf.RaggedTensor {_shown(self)}>"


def _shown(rows):
    """Rows as lists, with numbers as NumPy prints them."""
    if isinstance(rows, RaggedTensor):
        return "[" + ", ".join(map(_shown, rows)) + "]"
    if isinstance(rows, bytes):
        return repr(bytes(rows))
    array = np.asarray(rows)
    if array.ndim:
        return "[" + ", ".join(map(_shown, array)) + "]"
    return str(array)


def _reshaped(values, sizes):
    return values.reshape(sizes) if isinstance(values, np.ndarray) else _F["reshape"](values, list(sizes))


def _merged(values, outer, inner):
    sizes = list(values.shape)
    return _reshaped(values, [*sizes[:outer], -1, *sizes[inner + 1 :]])


# ---- functions of elements ----


def _aligned(arguments):
    """The values of arguments for each element, and how the result gets its rows."""
    first = next(value for value in arguments if isinstance(value, RaggedTensor))
    made = []
    for value in arguments:
        if isinstance(value, RaggedTensor):
            if not np.array_equal(value._splits, first._splits):
                raise InvalidArgumentError(
                    f"ragged tensors with rows of {_numbers(np.diff(first._splits))} and {_numbers(np.diff(value._splits))} values do not go together."
                )
            made.append(value._values)
            continue
        shape = np.shape(value) if not isinstance(value, (Tensor, Variable)) else tuple(value._shape)
        if len(shape) <= 1 and shape not in ((), (1,)) and len(first._values.shape) <= 1:
            raise InvalidArgumentError(f"a tensor {list(shape)} and ragged rows do not go together; it may be a number, or [{len(first)}, 1].")
        if len(shape) >= 2:
            if shape[0] not in (1, len(first)) or shape[1] != 1:
                raise InvalidArgumentError(f"a tensor {list(shape)} and {len(first)} ragged rows do not go together; it may be [{len(first)}, 1, ..].")
            value = _values(value)
            rows = first._rows() if shape[0] != 1 else np.zeros(_count(first._values), "int64")
            value = _taken(_reshaped(value, [shape[0], *shape[2:]]), rows)
            # Behind rows of rows, the value is one for each of the inner rows.
            if isinstance(first._values, RaggedTensor):
                value = _reshaped(value, [value.shape[0], 1, *value.shape[1:]])
        made.append(value)
    return first, made


def _of_elements(function, arguments, named):
    if not any(isinstance(value, RaggedTensor) for value in arguments):
        return function(*arguments, **named)
    first, values = _aligned(arguments)
    return RaggedTensor(_of_elements(function, values, named), first._splits)


def map_flat_values(op, *args, **kwargs):
    """TensorFlow's `tf.ragged.map_flat_values`: a function of the values, with the same rows."""
    names = list(kwargs)
    arguments = [*args, *kwargs.values()]
    given = [value for value in arguments if isinstance(value, RaggedTensor)]
    if not given:
        return op(*args, **kwargs)
    for value in given[1:]:
        if [s.numpy().tolist() for s in value.nested_row_splits] != [s.numpy().tolist() for s in given[0].nested_row_splits]:
            raise InvalidArgumentError("map_flat_values: the ragged tensors have different rows.")
    flat = [value.flat_values if isinstance(value, RaggedTensor) else value for value in arguments]
    return given[0].with_flat_values(op(*flat[: len(args)], **dict(zip(names, flat[len(args) :]))))


# ---- functions of whole tensors ----

def _reduced(kind, x, axis=None, keepdims=False):
    """A reduction over an axis, or over all elements."""
    if keepdims:
        raise TypeError(f"reduce_{kind}: keepdims is not supported for ragged tensors; use tf.expand_dims of the result.")
    if axis is None:
        return _F[f"math.reduce_{kind}"](x.flat_values)
    if not isinstance(axis, int):
        raise TypeError(f"reduce_{kind}: axis is {axis!r}; ragged tensors are reduced over one axis, or over all.")
    rank = len(x.shape)
    if not -rank <= axis < rank:
        raise InvalidArgumentError(f"reduce_{kind}: axis is {axis}, and the ragged tensor has {rank} axes.")
    axis %= rank
    if kind == "mean":
        if x.flat_values._dtype not in ("float32", "float16"):
            x = x.with_flat_values(x.flat_values._cast("float32"))
        ones = x.with_flat_values(_F["math.add"](_F["math.multiply"](x.flat_values, 0.0), 1.0))
        return _f("math.divide", _reduced("sum", x, axis), _reduced("sum", ones, axis))
    if kind in ("any", "all"):
        numbers = x.with_flat_values(x.flat_values._cast("int32"))
        neutral = _reduced("max" if kind == "any" else "min", numbers, axis)
        return _f("math.greater", neutral, 0)
    if axis > 1:
        values = x._values
        return x.with_values(_reduced(kind, values, axis - 1) if isinstance(values, RaggedTensor) else _F[f"math.reduce_{kind}"](values, axis=axis - 1))
    if axis == 1:
        rows, count = x._rows(), len(x)
    else:
        # The place of each value in its row.
        rows, count = _ranges(np.zeros(len(x), "int64"), np.diff(x._splits)), int(np.diff(x._splits).max(initial=0))
    values = x._values
    if isinstance(values, RaggedTensor):
        # The rows of rows that fall together are one longer list each; the places in them are reduced.
        order = np.argsort(rows, kind="stable")
        values, rows = values._take(order), rows[order]
        width = int(np.diff(values._splits).max(initial=0))
        places = _ranges(np.zeros(len(values), "int64"), np.diff(values._splits))
        keys = np.repeat(rows, np.diff(values._splits)) * max(width, 1) + places
        found, flat = np.unique(keys, return_inverse=True)
        if isinstance(values._values, RaggedTensor):
            raise TypeError(f"reduce_{kind}: axis {axis} of {rank} axes is not supported; reduce the last axis first.")
        made = _F[f"math.unsorted_segment_{kind}"](values._values, flat.astype("int32"), len(found))
        return RaggedTensor.from_value_rowids(made, found // max(width, 1), count)
    return _F[f"math.unsorted_segment_{kind}"](values, rows.astype("int32"), count)


def _f(path, *arguments):
    return call(path, _F[path], arguments, {}) if has_ragged(arguments) else _F[path](*arguments)


def _as_ragged(value):
    return value if isinstance(value, RaggedTensor) else RaggedTensor.from_tensor(value)


def _joined(values):
    """Values of several ragged tensors, one after the other."""
    if any(isinstance(value, RaggedTensor) for value in values):
        return _concat([_as_ragged(value) for value in values], 0)
    if any(isinstance(value, np.ndarray) for value in values):
        return strings.of(np.concatenate([np.asarray(value, dtype=object) for value in values]))
    return _F["concat"]([convert_to_tensor(value) for value in values], 0)


def _concat(values, axis, name=None):
    values = [_as_ragged(value) for value in values]
    rank = len(values[0].shape)
    axis %= rank
    if axis == 0:
        return RaggedTensor.from_row_lengths(_joined([value._values for value in values]), np.concatenate([np.diff(value._splits) for value in values]))
    if len({len(value) for value in values}) != 1:
        raise InvalidArgumentError(f"concat: the ragged tensors have {[len(value) for value in values]} rows; they need equally many.")
    if axis > 1:
        first, parts = _aligned(values)
        return first.with_values(_concat(parts, axis - 1) if isinstance(parts[0], RaggedTensor) else _F["concat"](parts, axis - 1))
    # Row 0 of each, then row 1 of each.
    whole, count = _concat(values, 0), len(values[0])
    order = np.arange(count * len(values)).reshape(len(values), count).T.ravel()
    mixed = whole._take(order)
    return RaggedTensor(mixed._values, mixed._splits[:: len(values)])


def stack(values, axis=0, name=None):
    """TensorFlow's `tf.ragged.stack`: tensors of different lengths as rows."""
    values = [value if isinstance(value, RaggedTensor) else _values(value) for value in values]
    if axis != 0:
        raise TypeError(f"ragged.stack: axis is {axis}; only 0 is supported.")
    if not values:
        raise ValueError("ragged.stack: there are no tensors.")
    if any(not len(value.shape) for value in values):
        return _F["stack"](values)
    if any(isinstance(value, RaggedTensor) or len(value.shape) > 1 for value in values):
        values = [_as_ragged(value) for value in values]
    return RaggedTensor.from_row_lengths(_joined(values), np.array([_count(value) for value in values], "int64"))


def _gather(params, indices, axis=None, batch_dims=0):
    if batch_dims or axis not in (None, 0):
        raise TypeError("gather: axis and batch_dims are not supported for ragged tensors; gather rows, or use to_tensor.")
    if isinstance(indices, RaggedTensor):
        if isinstance(params, RaggedTensor):
            return indices.with_flat_values(_gather(params, indices.flat_values))
        params = _values(params)
        flat = indices.flat_values
        return indices.with_flat_values(params[_host(flat)] if isinstance(params, np.ndarray) else _F["gather"](params, flat))
    at = _host(indices)
    if at.ndim > 1:
        raise TypeError(f"gather: the indices of ragged rows are {list(at.shape)}; they must be a number or a list.")
    if at.size and not 0 <= at.min() <= at.max() < len(params):
        raise InvalidArgumentError(f"gather: the indices are {_numbers(at)}, and there are {len(params)} rows.")
    return params._take(at) if at.ndim else params._row(int(at))


def _expanded(x, axis, name=None):
    rank = len(x.shape)
    if not -rank - 1 <= axis <= rank:
        raise InvalidArgumentError(f"expand_dims: axis is {axis}, and the ragged tensor has {rank} axes.")
    axis %= rank + 1
    if axis == 0:
        return RaggedTensor(x, np.array([0, len(x)], "int64"))
    if axis == 1:
        return RaggedTensor(x, np.arange(len(x) + 1))
    values = x._values
    return x.with_values(_expanded(values, axis - 1) if isinstance(values, RaggedTensor) else _F["expand_dims"](values, axis - 1))


_ELEMENTS = """abs negative exp log log1p expm1 sqrt rsqrt square sin cos tan tanh sigmoid softplus erf floor ceil round sign reciprocal
sinh cosh asin acos atan is_nan is_inf is_finite logical_not add subtract multiply divide floordiv floormod pow maximum minimum less
less_equal greater greater_equal equal not_equal logical_and logical_or logical_xor divide_no_nan multiply_no_nan squared_difference"""
_OF_NN = "relu relu6 elu selu silu gelu leaky_relu softsign log_softmax"
_REDUCTIONS = "sum mean max min prod any all".split()
# Functions that take ragged tensors, by their paths. Others raise an error that names to_tensor.
_TAKE = {
    **{f"math.{name}": None for name in _ELEMENTS.split()}, **{f"nn.{name}": None for name in _OF_NN.split()},
    "clip_by_value": None, "cast": None, "zeros_like": None, "ones_like": None, "identity": None, "stop_gradient": None,
    **{f"math.reduce_{kind}": (lambda kind: lambda *arguments, **named: _reduced(kind, *_renamed(arguments, named)))(kind) for kind in _REDUCTIONS},
    "concat": lambda values, axis, name=None: _concat(values, axis),
    "stack": lambda values, axis=0, name=None: stack(values, axis),
    "gather": lambda params, indices, validate_indices=None, axis=None, batch_dims=0, name=None: _gather(params, indices, axis, batch_dims),
    "nn.embedding_lookup": lambda params, ids, max_norm=None, name=None: ids.with_flat_values(_F["nn.embedding_lookup"](params, ids.flat_values, max_norm=max_norm)),
    "expand_dims": _expanded,
    "size": lambda input, out_type=None, name=None: ops.size(input.flat_values),
    "rank": lambda input, name=None: convert_to_tensor(len(input.shape)),
}


def _renamed(arguments, named):
    """The tensor, the axis and keepdims of a reduction."""
    given = dict(zip(("input_tensor", "axis", "keepdims"), arguments)) | {key: value for key, value in named.items() if key != "name"}
    return given["input_tensor"], given.get("axis"), given.get("keepdims", False)


def has_ragged(arguments, named=None):
    """Whether there are ragged tensors among the arguments of a function."""
    for value in (*arguments, *(named or {}).values()):
        if isinstance(value, RaggedTensor) or isinstance(value, (list, tuple)) and any(isinstance(part, RaggedTensor) for part in value):
            return True
    return False


def call(path, function, arguments, named):
    """A function of ragged tensors."""
    if path in ("math.equal", "math.not_equal") and any(isinstance(value, RaggedTensor) and value.dtype.name == "string" for value in arguments):
        return _of_elements(_SAME if path == "math.equal" else _OTHER, arguments, {})
    if path not in _TAKE:
        raise InvalidTypeError(f"{path}: ragged tensors are not supported; to_tensor pads their rows, and tf.ragged.map_flat_values calls a function of the values.")
    made = _TAKE[path]
    if made is not None:
        return made(*arguments, **named)
    return _by_name(function, arguments, named)


_SAME = lambda x, y: convert_to_tensor(np.equal(strings.of(x), strings.of(y)).astype(bool))
_OTHER = lambda x, y: convert_to_tensor(np.not_equal(strings.of(x), strings.of(y)).astype(bool))


def _by_name(function, arguments, named):
    """A function of elements, some of which are given by name."""
    keys = [key for key, value in named.items() if isinstance(value, RaggedTensor)]
    others = {key: value for key, value in named.items() if key not in keys}
    count = len(arguments)
    return _of_elements(lambda *given: function(*given[:count], **dict(zip(keys, given[count:])), **others), [*arguments, *(named[key] for key in keys)], {})


ops.RAGGED = call, has_ragged


def _operator(path, swapped=False):
    return (lambda self, other: _f(path, other, self)) if swapped else (lambda self, other: _f(path, self, other))


for _name, _path in (
    ("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("truediv", "divide"), ("floordiv", "floordiv"), ("mod", "floormod"), ("pow", "pow"),
):
    setattr(RaggedTensor, f"__{_name}__", _operator(f"math.{_path}"))
    setattr(RaggedTensor, f"__r{_name}__", _operator(f"math.{_path}", True))
for _name, _path in (
    ("lt", "less"), ("le", "less_equal"), ("gt", "greater"), ("ge", "greater_equal"), ("eq", "equal"), ("ne", "not_equal"),
    ("and", "logical_and"), ("or", "logical_or"), ("xor", "logical_xor"),
):
    setattr(RaggedTensor, f"__{_name}__", _operator(f"math.{_path}"))
RaggedTensor.__neg__ = lambda self: _f("math.negative", self)
RaggedTensor.__abs__ = lambda self: _f("math.abs", self)
RaggedTensor.__invert__ = lambda self: _f("math.logical_not", self)


# ---- tf.ragged ----


def _depth(value):
    """How many lists are in each other around the values."""
    if isinstance(value, (list, tuple)):
        return 1 + max(map(_depth, value), default=0)
    return np.ndim(value) if isinstance(value, np.ndarray) else 0


def constant(pylist, dtype=None, ragged_rank=None, inner_shape=None, name=None, row_splits_dtype="int64"):
    """TensorFlow's `tf.ragged.constant`: a ragged tensor of lists in lists. The last `inner_shape` axes are equally long."""
    if isinstance(pylist, RaggedTensor):
        raise TypeError("ragged.constant: the value is a RaggedTensor; give lists.")
    depth = _depth(pylist)
    rank = ragged_rank if ragged_rank is not None else max(depth - 1 - len(inner_shape or ()), 0)
    if rank == 0:
        return strings.of(pylist) if strings.is_text(pylist) else convert_to_tensor(pylist, as_name(dtype))
    if not 0 <= rank < max(depth, 1):
        raise ValueError(f"ragged.constant: ragged_rank is {rank}, and the value has {depth} axes; it must be less.")
    rows, lengths = list(pylist), []
    for _ in builtins.range(rank):
        if any(not isinstance(row, (list, tuple, np.ndarray)) for row in rows):
            raise ValueError("ragged.constant: there are values and lists in one row; all values must be equally deep.")
        lengths.append(np.array([len(row) for row in rows], "int64"))
        rows = [item for row in rows for item in row]
    if any(isinstance(row, (list, tuple)) for row in rows) != all(isinstance(row, (list, tuple)) for row in rows) and rows:
        raise ValueError("ragged.constant: there are values and lists in one row; all values must be equally deep.")
    kind = as_name(dtype)
    if kind == "string" or kind is None and rows and strings.is_text(rows):
        flat = strings.of(np.array(rows, dtype=object))
    elif rows:
        flat = convert_to_tensor(rows, kind)
    else:
        flat = convert_to_tensor(np.zeros((0, *(inner_shape or ())), "float32"), kind)
    return RaggedTensor.from_nested_row_lengths(flat, lengths)


def range(starts, limits=None, deltas=1, dtype=None, name=None, row_splits_dtype="int64"):
    """TensorFlow's `tf.ragged.range`: a row of numbers for each start and limit, or from 0 to each limit."""
    read = lambda value: np.asarray(value.numpy() if isinstance(value, (Tensor, Variable)) else value)
    first, last, step = read(0 if limits is None else starts), read(starts if limits is None else limits), read(deltas)
    first, last, step = (np.atleast_1d(part) for part in np.broadcast_arrays(first, last, step))
    if (step == 0).any():
        raise InvalidArgumentError("ragged.range: a step is 0; rows would have no end.")
    rows = [np.arange(*bounds) for bounds in zip(first.tolist(), last.tolist(), step.tolist())]
    flat = np.concatenate(rows) if rows else np.zeros(0, "int32")
    return RaggedTensor.from_row_lengths(convert_to_tensor(flat, as_name(dtype)), np.array([len(row) for row in rows], "int64"))


def boolean_mask(data, mask, name=None):
    """TensorFlow's `tf.ragged.boolean_mask`: the elements that a mask of rows keeps, in their rows."""
    if isinstance(mask, RaggedTensor) or len(np.shape(mask)) == 2:
        data, mask = _as_ragged(data), _as_ragged(mask)
        if not np.array_equal(data._splits, mask._splits) or isinstance(mask._values, RaggedTensor):
            raise InvalidArgumentError("ragged.boolean_mask: the mask must have the rows of the data, and two axes.")
        kept = np.asarray(mask._values).astype(bool)
        counts = np.bincount(data._rows()[kept], minlength=len(data))
        return RaggedTensor.from_row_lengths(_taken(data._values, np.flatnonzero(kept)), counts)
    kept = np.flatnonzero(np.asarray(mask))
    return data._take(kept) if isinstance(data, RaggedTensor) else _taken(_values(data), kept)


def row_splits_to_segment_ids(splits, name=None, out_type=None):
    """TensorFlow's `tf.ragged.row_splits_to_segment_ids`: the row of each value."""
    splits = _host(splits)
    return convert_to_tensor(np.repeat(np.arange(len(splits) - 1), np.diff(splits)))


def segment_ids_to_row_splits(segment_ids, num_segments=None, out_type=None, name=None):
    """TensorFlow's `tf.ragged.segment_ids_to_row_splits`: where rows begin and end, by the row of each value."""
    rows = _host(segment_ids)
    counts = np.bincount(rows, minlength=0 if num_segments is None else int(num_segments))
    return convert_to_tensor(np.concatenate([[0], np.cumsum(counts)]))


# ---- strings ----


def texts_in_rows(rows):
    """The parts of several strings, arrays or ragged tensors, as the rows of a ragged tensor."""
    return stack(rows) if rows else RaggedTensor.from_row_lengths(strings.of(np.zeros(0, dtype=object)), np.zeros(0, "int64"))


def _of_texts(function):
    """A function of strings, also of ragged ones."""

    @functools.wraps(function)
    def each(*arguments, **named):
        if arguments and isinstance(arguments[0], RaggedTensor):
            return _of_elements(function, arguments, named)
        return function(*arguments, **named)

    return each


def _join(function):
    @functools.wraps(function)
    def join(inputs, *arguments, **named):
        if any(isinstance(value, RaggedTensor) for value in inputs):
            return _of_elements(lambda *values: function(list(values), *arguments, **named), list(inputs), {})
        return function(inputs, *arguments, **named)

    return join


def _reduce_join(function):
    @functools.wraps(function)
    def reduce_join(inputs, axis=None, keepdims=False, separator="", name=None):
        if not isinstance(inputs, RaggedTensor):
            return function(inputs, axis, keepdims, separator, name)
        if keepdims or axis is None or inputs.ragged_rank > 1 or axis % len(inputs.shape) != 1:
            raise TypeError(f"reduce_join: axis is {axis!r}; the strings of each row of a ragged matrix are joined, with axis=1.")
        return strings.of(np.array([function(row, 0, False, separator).item() for row in inputs], dtype=object))

    return reduce_join


for _name in "lower upper strip length substr regex_replace regex_full_match to_number as_string to_hash_bucket_fast to_hash_bucket_strong unicode_transcode".split():
    setattr(strings, _name, _of_texts(getattr(strings, _name)))
strings.join, strings.reduce_join = _join(strings.join), _reduce_join(strings.reduce_join)
