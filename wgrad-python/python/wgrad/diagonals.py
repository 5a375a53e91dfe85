"""Diagonals of matrices: `tf.linalg.diag`, `diag_part` and `set_diag`, also of several diagonals next to each other."""

import numpy as np

from . import ops as _ops
from .ops import FUNCTIONS as _F
from .tensor import convert_to_tensor

_ALIGNMENTS = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")


def _band(call, k, align):
    """The lowest and the highest diagonal. Numbers above 0 are above the main one."""
    numbers = [int(number) for number in np.ravel(np.asarray(k)).tolist()]
    if len(numbers) not in (1, 2) or numbers[0] > numbers[-1]:
        raise ValueError(f"{call}: k is {numbers}; it must be the number of a diagonal, or those of the lowest and the highest one.")
    if align not in _ALIGNMENTS:
        raise ValueError(f"{call}: align is {align!r}; it must be one of {', '.join(_ALIGNMENTS)}.")
    return numbers[0], numbers[-1]


def _length(low, high, rows, columns):
    """The length of the longest of the diagonals."""
    return min(rows + min(high, 0), columns - max(low, 0))


def _places(call, low, high, rows, columns, align):
    """Where the elements of diagonals are in a matrix, and -1 for those outside: a row for each diagonal, the highest one first."""
    if not (-rows < low <= high < columns or low == high == 0):
        raise ValueError(f"{call}: the diagonals {low} to {high} are not all in a matrix {[rows, columns]}.")
    length = _length(low, high, rows, columns)
    made = np.full((high - low + 1, length), -1, dtype="int32")
    above, _, below = align.partition("_")
    for at, number in enumerate(range(high, low - 1, -1)):
        own = min(rows + min(number, 0), columns - max(number, 0))
        left = number >= 0 and above == "LEFT" or number <= 0 and below == "LEFT"
        first = 0 if left else length - own
        steps = np.arange(own)
        made[at, first : first + own] = (steps + max(-number, 0)) * columns + steps + max(number, 0)
    return made


def _taken(flat, places, default):
    """Elements at places in the last axis, and others where a place is -1."""
    shape = [*flat._shape[:-1], *places.shape]
    found = _F["gather"](flat, np.maximum(places, 0).ravel(), axis=-1)
    found = _F["reshape"](found, shape)
    return _ops.where(places >= 0, found, default) if (places < 0).any() else found


def _flat(x, axes):
    return _F["reshape"](x, [*x._shape[: len(x._shape) - axes], int(np.prod(x._shape[len(x._shape) - axes :]))])


def _inverse(places, rows, columns):
    """For each element of a matrix its place in the diagonals, or -1."""
    made = np.full(rows * columns, -1, dtype="int32")
    inside = places.ravel() >= 0
    made[places.ravel()[inside]] = np.flatnonzero(inside)
    return made.reshape(rows, columns)


def _given(call, diagonal, low, high):
    """Diagonals, with an axis for their numbers."""
    diagonal = convert_to_tensor(diagonal)
    if not diagonal._shape:
        raise ValueError(f"{call}: the diagonal has no axes; it must have one at least.")
    if low == high:
        return diagonal[..., None, :]
    if len(diagonal._shape) < 2 or diagonal._shape[-2] != high - low + 1:
        raise ValueError(f"{call}: the diagonals are {list(diagonal._shape)}; they must be [.., {high - low + 1}, N].")
    return diagonal


@_ops._of_symbols
def diag(diagonal, name="diag", k=0, num_rows=-1, num_cols=-1, padding_value=0, align="RIGHT_LEFT"):
    """TensorFlow's `tf.linalg.diag`: matrices with these diagonals."""
    low, high = _band("diag", k, align)
    num_rows, num_cols = int(num_rows), int(num_cols)
    if (low, high, num_rows, num_cols) == (0, 0, -1, -1) and padding_value == 0:
        return _F["linalg.diag"](diagonal)
    diagonals = _given("diag", diagonal, low, high)
    length = diagonals._shape[-1]
    rows, columns = length - min(high, 0), length + max(low, 0)
    if num_rows == num_cols == -1:
        num_rows = num_cols = max(rows, columns)
    num_rows, num_cols = rows if num_rows == -1 else num_rows, columns if num_cols == -1 else num_cols
    if num_rows < rows or num_cols < columns or _length(low, high, num_rows, num_cols) != length:
        raise ValueError(f"diag: a matrix {[num_rows, num_cols]} has no diagonals {low} to {high} of {length} elements.")
    places = _places("diag", low, high, num_rows, num_cols, align)
    default = _ops.cast(padding_value, diagonals._dtype)
    return _taken(_flat(diagonals, 2), _inverse(places, num_rows, num_cols), default)


@_ops._of_symbols
def diag_part(input, name="diag_part", k=0, padding_value=0, align="RIGHT_LEFT"):
    """TensorFlow's `tf.linalg.diag_part`: diagonals of matrices, which end with `padding_value` where they are shorter than others."""
    low, high = _band("diag_part", k, align)
    matrix = convert_to_tensor(input)
    if len(matrix._shape) < 2:
        raise ValueError(f"diag_part: the input is {list(matrix._shape)}; it must have the axes of a matrix.")
    if low == high == 0:
        return _F["linalg.diag_part"](matrix)
    places = _places("diag_part", low, high, *matrix._shape[-2:], align)
    return _taken(_flat(matrix, 2), places[0] if low == high else places, _ops.cast(padding_value, matrix._dtype))


@_ops._of_symbols
def set_diag(input, diagonal, name="set_diag", k=0, align="RIGHT_LEFT"):
    """TensorFlow's `tf.linalg.set_diag`: matrices with other diagonals."""
    low, high = _band("set_diag", k, align)
    matrix = convert_to_tensor(input)
    if low == high == 0:
        return _F["linalg.set_diag"](matrix, diagonal)
    diagonals = _given("set_diag", diagonal, low, high)
    rows, columns = matrix._shape[-2:]
    places = _places("set_diag", low, high, rows, columns, align)
    if diagonals._shape[-1] != places.shape[1]:
        raise ValueError(f"set_diag: the diagonals have {diagonals._shape[-1]} elements; they must have {places.shape[1]}.")
    inverse = _inverse(places, rows, columns)
    return _ops.where(inverse >= 0, _taken(_flat(diagonals, 2), inverse, _ops.cast(0, matrix._dtype)), matrix)


def install(linalg):
    """Puts the functions into `tf.linalg`."""
    linalg.update(diag=diag, diag_part=diag_part, set_diag=set_diag)
