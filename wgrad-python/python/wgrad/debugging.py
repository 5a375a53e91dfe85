"""Assertions: `tf.debugging`. Each reads its values, and raises `InvalidArgumentError` with them. In a traced function, each run checks on
the device, and the next read of a value raises the error, with the message and no values."""

import numpy as np

from .dtypes import as_dtype, as_name
from . import _wgrad
from .errors import FailedPreconditionError, InvalidArgumentError
from .ops import FUNCTIONS as _F
from .tensor import Tensor, convert_to_tensor


def _read(x):
    return convert_to_tensor(x).numpy()


def _checked(call, message, compare, traced, *values):
    """A check of values that compares arrays, or, where they are not known, tensors."""
    try:
        arrays = [_read(value) for value in values]
    except FailedPreconditionError:
        holds = traced(*values)
        holds = _F["math.reduce_all"](holds) if holds._shape else holds
        _wgrad.check(holds, f"{message} {call}: the condition does not hold." if message else f"{call}: the condition does not hold.")
        return
    _check(compare(*arrays), call, message, *arrays)


def _check(holds, call, message, *values):
    if np.all(holds):
        return
    wrong = np.argwhere(~np.atleast_1d(holds))[0].tolist()
    shown = ", ".join(str(np.array2string(np.asarray(value), threshold=6, edgeitems=3)) for value in values)
    text = f"{call}: the condition does not hold at {wrong}; the values are {shown}."
    raise InvalidArgumentError(f"{message} {text}" if message else text)


def _comparison(call, compare):
    def check(x, y, message=None, summarize=None, name=None):
        _checked(call, message, compare, _F[f"math.{compare.__name__}"], x, y)

    check.__name__ = check.__qualname__ = call
    check.__doc__ = f"TensorFlow's `tf.debugging.{call}`."
    return check


assert_equal = _comparison("assert_equal", np.equal)
assert_none_equal = _comparison("assert_none_equal", np.not_equal)
assert_less = _comparison("assert_less", np.less)
assert_less_equal = _comparison("assert_less_equal", np.less_equal)
assert_greater = _comparison("assert_greater", np.greater)
assert_greater_equal = _comparison("assert_greater_equal", np.greater_equal)


def _sign(call, compare):
    def check(x, message=None, summarize=None, name=None):
        _checked(call, message, lambda x: compare(x, 0), lambda x: _F[f"math.{compare.__name__}"](x, 0), x)

    check.__name__ = check.__qualname__ = call
    check.__doc__ = f"TensorFlow's `tf.debugging.{call}`."
    return check


assert_positive = _sign("assert_positive", np.greater)
assert_negative = _sign("assert_negative", np.less)
assert_non_negative = _sign("assert_non_negative", np.greater_equal)
assert_non_positive = _sign("assert_non_positive", np.less_equal)


def assert_near(x, y, rtol=None, atol=None, message=None, summarize=None, name=None):
    """TensorFlow's `tf.debugging.assert_near`."""
    x, y = convert_to_tensor(x), convert_to_tensor(y)
    tolerance = 10 * float(np.finfo(np.float16 if x._dtype == "float16" else np.float32).eps)
    rtol, atol = (tolerance if value is None else value for value in (rtol, atol))
    near = lambda x, y: abs(x - y) <= atol + rtol * abs(y)
    _checked("assert_near", message, near, near, x, y)


def Assert(condition, data=(), summarize=None, name=None):
    """TensorFlow's `tf.debugging.Assert`."""
    try:
        holds = _read(condition)
    except FailedPreconditionError:
        said = " ".join(str(value) for value in data if isinstance(value, str))
        _checked("Assert", said or None, None, lambda holds: convert_to_tensor(holds), condition)
        return
    if not np.all(holds):
        _check(holds, "Assert", None, *[_read(value) if not isinstance(value, (str, bytes)) else value for value in data])


def assert_rank(x, rank, message=None, name=None):
    """TensorFlow's `tf.debugging.assert_rank`."""
    shape = list(convert_to_tensor(x)._shape)
    if len(shape) != int(rank):
        text = f"assert_rank: the tensor is {shape}; it must have {int(rank)} axes."
        raise ValueError(f"{message} {text}" if message else text)


def _refuse(message, text):
    raise ValueError(f"{message} {text}" if message else text)


def assert_rank_at_least(x, rank, message=None, name=None):
    """TensorFlow's `tf.debugging.assert_rank_at_least`."""
    shape = list(convert_to_tensor(x)._shape)
    if len(shape) < int(rank):
        _refuse(message, f"assert_rank_at_least: the tensor is {shape}; it must have {int(rank)} axes or more.")


def assert_rank_in(x, ranks, message=None, name=None):
    """TensorFlow's `tf.debugging.assert_rank_in`."""
    shape, ranks = list(convert_to_tensor(x)._shape), [int(rank) for rank in ranks]
    if len(shape) not in ranks:
        _refuse(message, f"assert_rank_in: the tensor is {shape}; the number of its axes must be one of {ranks}.")


def assert_scalar(tensor, message=None, name=None):
    """TensorFlow's `tf.debugging.assert_scalar`: the tensor, if it has no axes."""
    tensor = convert_to_tensor(tensor)
    if tensor._shape:
        _refuse(message, f"assert_scalar: the tensor is {list(tensor._shape)}; it must have no axes.")
    return tensor


def _refuse_dtype(message, text):
    raise TypeError(f"{message} {text}" if message else text)


def assert_type(tensor, tf_type, message=None, name=None):
    """TensorFlow's `tf.debugging.assert_type`."""
    found = convert_to_tensor(tensor).dtype
    if found != tf_type:
        _refuse_dtype(message, f"assert_type: the tensor is {found.name}; it must be {as_name(tf_type)}.")


def assert_integer(x, message=None, name=None):
    """TensorFlow's `tf.debugging.assert_integer`."""
    found = convert_to_tensor(x).dtype
    if not found.is_integer:
        _refuse_dtype(message, f"assert_integer: the tensor is {found.name}; it must be of integers.")


def assert_same_float_dtype(tensors=None, dtype=None):
    """TensorFlow's `tf.debugging.assert_same_float_dtype`: the float dtype that all have."""
    found = [convert_to_tensor(tensor).dtype for tensor in tensors or ()] + ([] if dtype is None else [as_dtype(dtype)])
    if not found:
        return as_dtype("float32")
    if len(set(found)) > 1 or not found[0].is_floating:
        raise ValueError(f"assert_same_float_dtype: the dtypes are {', '.join(one.name for one in found)}; they must be one float dtype.")
    return found[0]


def assert_proper_iterable(values):
    """TensorFlow's `tf.debugging.assert_proper_iterable`: a list or another collection, and no tensor, array or text."""
    if isinstance(values, (Tensor, np.ndarray, str, bytes)) or not hasattr(values, "__iter__"):
        raise TypeError(f"assert_proper_iterable: the value is {type(values).__name__}; it must be a list or another collection.")


def is_numeric_tensor(tensor):
    """Whether a value is a tensor of numbers."""
    return isinstance(tensor, Tensor) and not tensor.dtype.is_bool


def enable_check_numerics(stack_height_limit=30, path_length_limit=50):
    """TensorFlow's `tf.debugging.enable_check_numerics`, which this package lacks: it is an error."""
    raise NotImplementedError("enable_check_numerics: ops are not checked in Python; call tf.debugging.check_numerics for a tensor.")


def assert_shapes(shapes, data=None, summarize=None, message=None, name=None):
    """TensorFlow's `tf.debugging.assert_shapes`: `shapes` has pairs of a tensor and its sizes, or is a dict of them. A size is a
    number, `None` or a name, which stands for one size in all tensors; `...` or `"*"` in front stands for any number of axes."""
    known = {}

    def refuse(at, shape, wanted, why):
        text = f"assert_shapes: tensor {at} is {list(shape)} and should be {list(wanted)}: {why}."
        raise ValueError(f"{message} {text}" if message else text)

    for at, (x, wanted) in enumerate(shapes.items() if isinstance(shapes, dict) else shapes):
        shape, wanted = tuple(convert_to_tensor(x)._shape), tuple(wanted) if isinstance(wanted, (tuple, list)) else (wanted,)
        open_rank = bool(wanted) and wanted[0] in (..., "*")
        sizes = wanted[1:] if open_rank else wanted
        if len(shape) < len(sizes) or not open_rank and len(shape) != len(sizes):
            refuse(at, shape, wanted, f"its rank is {len(shape)}")
        for axis, size in enumerate(sizes, len(shape) - len(sizes)):
            if isinstance(size, str) and not size.lstrip("-").isdigit():
                first = known.setdefault(size, (shape[axis], at))
                if first[0] != shape[axis]:
                    refuse(at, shape, wanted, f"axis {axis} is {shape[axis]}, and {size} is {first[0]} of tensor {first[1]}")
            elif size is not None and int(size) != shape[axis]:
                refuse(at, shape, wanted, f"axis {axis} is {shape[axis]}, and not {size}")


def check_numerics(tensor, message, name=None):
    """TensorFlow's `tf.debugging.check_numerics`: the tensor, if it has no infinity and no NaN."""
    tensor = convert_to_tensor(tensor)
    try:
        values = tensor.numpy()
    except FailedPreconditionError:
        finite = _F["math.reduce_all"](_F["math.is_finite"](tensor))
        _wgrad.check(finite, f"{message}: the tensor {list(tensor._shape)} had Inf or NaN values.")
        return tensor
    if not np.isfinite(values).all():
        found = " and ".join(name for name, test in (("Inf", np.isinf), ("NaN", np.isnan)) if test(values).any())
        raise InvalidArgumentError(f"{message}: the tensor {list(tensor._shape)} had {found} values.")
    return tensor


assert_all_finite = check_numerics
