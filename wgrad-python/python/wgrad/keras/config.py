"""Settings: `keras.config` and `keras.backend`."""

import gc

from ..dtypes import as_name
from .policies import dtype_policy, set_dtype_policy  # noqa: F401
from .symbols import Symbol

_EPSILON = 1e-7


def backend():
    """The name of what computes."""
    return "wgrad"


def floatx():
    """The dtype of floats: that of the weights of layers that are made now."""
    return dtype_policy().variable_dtype


def set_floatx(value):
    """Sets the dtype of floats; devices have `float32`, and layers `float16`, too."""
    name = as_name(value)
    if name not in ("float32", "float16"):
        raise ValueError(f"set_floatx: {name}: use 'float32' or 'float16'; devices have 32 bits.")
    set_dtype_policy(name)


def epsilon():
    """The small number that functions add to a divisor."""
    return _EPSILON


def set_epsilon(value):
    """Accepts the number that functions use."""
    if value != _EPSILON:
        raise ValueError(f"set_epsilon: functions use {_EPSILON}, and it cannot be {value}; give layers an epsilon of their own.")


def image_data_format():
    """Where images have their channels: in the last axis."""
    return "channels_last"


def set_image_data_format(data_format):
    """Accepts `channels_last`, in which layers compute."""
    if data_format != "channels_last":
        raise ValueError(
            f"set_image_data_format: {data_format!r}: layers compute with the channels as the last axis. Use 'channels_last', and "
            "keras.layers.Permute((2, 3, 1)) for images that have their channels first."
        )


_INTERACTIVE = [True]


def enable_interactive_logging():
    """Lets `fit` and similar calls show a bar where `verbose` is "auto"."""
    _INTERACTIVE[0] = True


def disable_interactive_logging():
    """Lets `fit` and similar calls print a line for each epoch where `verbose` is "auto"."""
    _INTERACTIVE[0] = False


def is_interactive_logging_enabled():
    """Whether `fit` and similar calls show a bar where `verbose` is "auto"."""
    return _INTERACTIVE[0]


def enable_traceback_filtering():
    """Changes nothing: tracebacks have no frames of a library to leave out."""


def disable_traceback_filtering():
    """Changes nothing: tracebacks are whole."""


def is_traceback_filtering_enabled():
    return False


def clear_session(free_memory=True):
    """Frees what nothing uses: there is no graph that keeps layers alive, and each model counts its own names."""
    gc.collect()


def standardize_dtype(dtype):
    """The name of a dtype."""
    return floatx() if dtype is None else as_name(dtype)


def is_float_dtype(dtype):
    """Whether a dtype is one of floats."""
    return "float" in standardize_dtype(dtype)


def is_int_dtype(dtype):
    """Whether a dtype is one of integers."""
    return "int" in standardize_dtype(dtype)


def is_keras_tensor(x):
    """Whether this is a symbol of a model."""
    return isinstance(x, Symbol)


_UIDS = {}


def get_uid(prefix=""):
    """The next number for names that begin like this: 1, 2, .."""
    _UIDS[prefix] = _UIDS.get(prefix, 0) + 1
    return _UIDS[prefix]
