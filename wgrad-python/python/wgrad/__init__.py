"""TensorFlow 2's eager mode and Keras on every GPU that WebGPU reaches: `import wgrad as tf`."""

import os as _os
import sys as _sys
import types as _types

from . import _wgrad, errors
from ._wgrad import __version__
from .dtypes import DType, TensorShape, as_dtype, bool, float16, float32, float64, half, int32, int64, uint8, uint32
from .tensor import Tensor, Variable, constant, convert_to_tensor, is_tensor

newaxis = None

# A forked process cannot use its parent's device; the native part then says what to do.
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_wgrad.after_fork)


def _module(name):
    """A namespace such as `tf.math`, which can also be imported."""
    module = _types.ModuleType(f"{__name__}.{name}", f"TensorFlow's `tf.{name}`.")
    _sys.modules[module.__name__] = module
    globals()[name] = module
    return module.__dict__


from . import ops as _ops  # noqa: E402

_ops.install({"": globals(), **{name: _module(name) for name in ("math", "nn", "linalg", "image")}})
from .ops import (  # noqa: E402
    cast,
    clip_by_global_norm,
    clip_by_value,
    einsum,
    eye,
    fill,
    identity,
    linspace,
    meshgrid,
    ones,
    ones_like,
    range,
    rank,
    sequence_mask,
    shape,
    size,
    zeros,
    zeros_like,
)
from . import data, keras, train  # noqa: E402
from .control_flow import TensorArray, cond, while_loop  # noqa: E402
from .tape import (  # noqa: E402
    Function,
    GradientTape,
    TensorSpec,
    UnconnectedGradients,
    custom_gradient,
    function,
    gradients_function,
)


class random:
    """Random numbers from the global generator."""

    @staticmethod
    def set_seed(seed):
        _wgrad.set_seed(seed)

    @staticmethod
    def uniform(shape, minval=0.0, maxval=None, dtype="float32", seed=None, name=None):
        integers = as_dtype(dtype).is_integer
        if integers and maxval is None:
            raise ValueError("random.uniform: give maxval for integers.")
        maxval = 1.0 if maxval is None else maxval
        return _wgrad.random("uniform", _ops._sizes(shape), float(minval), float(maxval), integers)

    @staticmethod
    def normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None, name=None):
        return _wgrad.random("normal", _ops._sizes(shape), float(mean), float(stddev))

    @staticmethod
    def truncated_normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None, name=None):
        return _wgrad.random("truncated", _ops._sizes(shape), float(mean), float(stddev))


class summary:
    """Event files for TensorBoard."""

    @staticmethod
    def create_file_writer(logdir):
        return _wgrad.SummaryWriter(str(logdir))

    @staticmethod
    def scalar(name, data, step):
        return _wgrad.summary_scalar(name, data, int(step))


class PhysicalDevice:
    """A GPU or a CPU of this machine."""

    def __init__(self, name, device_type):
        self.name, self.device_type = name, device_type

    def __repr__(self):
        return f"PhysicalDevice(name='{self.name}', device_type='{self.device_type}')"


class config:
    """The devices of this machine."""

    @staticmethod
    def list_physical_devices(device_type=None):
        return [PhysicalDevice(name, kind) for name, kind in _wgrad.devices(device_type)]


def device(name):
    """A `with` block in which new tensors are made on a device, such as `/gpu:0`."""
    return _wgrad.DeviceScope(name)


def print(*values, output_stream=None, sep=" ", end="\n", **options):
    """Prints values; tensors are read first."""
    import builtins

    text = [str(value.numpy()) if isinstance(value, (Tensor, Variable)) else str(value) for value in values]
    builtins.print(*text, sep=sep, end=end, file=output_stream or _sys.stderr)


def executing_eagerly():
    return True
