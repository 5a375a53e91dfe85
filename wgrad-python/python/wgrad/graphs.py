"""What programs call to order or to name the ops of graphs. Here ops run in the order of the program, also inside of functions."""

import contextlib
import enum
import logging
import time

import numpy as np

from . import _wgrad
from .dtypes import TensorShape
from .tensor import convert_to_tensor


class VariableAggregation(enum.Enum):
    """How the values of replicas become one: for `distribute` strategies."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


class VariableSynchronization(enum.Enum):
    """When variables of replicas are made equal: for `distribute` strategies."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class AggregationMethod:
    """How gradients are added up. All are the same here."""

    ADD_N = DEFAULT = 0
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


@contextlib.contextmanager
def control_dependencies(control_inputs):
    """TensorFlow's `tf.control_dependencies`: a `with` block whose ops run after the others, as ops do anyway."""
    yield


@contextlib.contextmanager
def init_scope():
    """TensorFlow's `tf.init_scope`: a `with` block. Outside of functions it changes nothing, and inside of them it is an error."""
    try:
        (convert_to_tensor(0.0) + 0.0).numpy()
    except RuntimeError:
        raise RuntimeError("init_scope: a function cannot run ops outside of its trace; make what it needs before it is called.") from None
    yield


def group(*inputs, **options):
    """TensorFlow's `tf.group`: nothing, as the ops have run."""


def no_op(name=None):
    """TensorFlow's `tf.no_op`: nothing."""


def tuple(tensors, control_inputs=None, name=None):
    """TensorFlow's `tf.tuple`: the tensors, in a list."""
    return [None if tensor is None else convert_to_tensor(tensor) for tensor in tensors]


def identity_n(input, name=None):
    """TensorFlow's `tf.identity_n`: the tensors, in a list."""
    from .ops import identity

    return [identity(tensor) for tensor in input]


def shape_n(input, out_type="int32", name=None):
    """TensorFlow's `tf.shape_n`: the shapes of several tensors."""
    from .ops import shape

    return [shape(tensor) for tensor in input]


def get_static_value(tensor, partial=False):
    """TensorFlow's `tf.get_static_value`: the value as an array of NumPy, or `None` inside of a function."""
    try:
        return convert_to_tensor(tensor).numpy()
    except RuntimeError:
        return None


def is_symbolic_tensor(tensor):
    """Whether a value is a symbol of a model that is being defined."""
    return isinstance(tensor, _wgrad.Symbol)


def broadcast_static_shape(shape_x, shape_y):
    """TensorFlow's `tf.broadcast_static_shape`: the shape that two shapes have together."""
    one, other = list(shape_x), list(shape_y)
    rank = max(len(one), len(other))
    pairs = zip([1] * (rank - len(one)) + one, [1] * (rank - len(other)) + other)
    made = []
    for x, y in pairs:
        if x == y or y == 1:
            made.append(x)
        elif x == 1 or x is None and y != 1:
            made.append(y)
        elif y is None:
            made.append(x)
        else:
            raise ValueError(f"broadcast_static_shape: {one} and {other} do not go together.")
    return TensorShape(made)


def broadcast_dynamic_shape(shape_x, shape_y):
    """TensorFlow's `tf.broadcast_dynamic_shape`: the shape that two shapes have together, as a tensor."""
    read = lambda shape: np.asarray(shape).ravel().tolist()
    return convert_to_tensor(np.array(broadcast_static_shape(read(shape_x), read(shape_y)), dtype="int32"))


def timestamp(name=None):
    """TensorFlow's `tf.timestamp`: the seconds since 1970. A tensor has 32 bits, so it is exact to about two minutes; `time.time()` has
    more."""
    return convert_to_tensor(time.time())


def get_logger():
    """TensorFlow's `tf.get_logger`: the logger of Python with TensorFlow's name."""
    return logging.getLogger("tensorflow")


NAMES = (
    AggregationMethod, VariableAggregation, VariableSynchronization, broadcast_dynamic_shape, broadcast_static_shape, control_dependencies,
    get_logger, get_static_value, group, identity_n, init_scope, is_symbolic_tensor, no_op, shape_n, timestamp, tuple,
)
