"""TensorFlow 2's eager mode and Keras on every GPU that WebGPU reaches: `import wgrad as tf`."""

import atexit as _atexit
import os as _os
import sys as _sys
import types as _types

from . import _wgrad, errors
from ._wgrad import __version__
from .dtypes import (
    DType, TensorShape, as_dtype, bfloat16, bool, complex64, complex128, double, float16, float32, float64, half, int8, int16, int32, int64,
    string, uint8, uint16, uint32, uint64,
)
from .tensor import Tensor, Variable, constant, convert_to_tensor, is_tensor

newaxis = None

# A forked process cannot use its parent's device; the native part then says what to do.
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_wgrad.after_fork)
# Threads that compute must not return to an interpreter that has ended.
_atexit.register(_wgrad.at_exit)


def _module(name):
    """A namespace such as `tf.math`, which can also be imported."""
    module = _types.ModuleType(f"{__name__}.{name}", f"TensorFlow's `tf.{name}`.")
    _sys.modules[module.__name__] = module
    globals()[name] = module
    return module.__dict__


from . import ops as _ops  # noqa: E402

_ops.install({"": globals(), **{name: _module(name) for name in ("math", "nn", "linalg", "image", "bitwise")}})
from .ops import (  # noqa: E402
    cast,
    clip_by_global_norm,
    clip_by_value,
    einsum,
    ensure_shape,
    eye,
    fill,
    identity,
    linspace,
    meshgrid,
    ones,
    ones_like,
    py_function,
    range,
    rank,
    sequence_mask,
    shape,
    size,
    where,
    zeros,
    zeros_like,
)
from . import data, distribute, io, keras, random, saved_model, train  # noqa: E402
from . import data_files as _data_files, data_options as _data_options  # noqa: E402
from .saved_model import onnx  # noqa: E402
from . import debugging, lookup, nest, random_images as _random_images  # noqa: E402
from .control_flow import case, cond, switch_case, while_loop  # noqa: E402
from .tensor_array import TensorArray  # noqa: E402
from . import composed as _composed  # noqa: E402

_composed.install({"": globals(), **{name: globals()[name].__dict__ for name in ("image", "math", "nn", "linalg")}})
from . import complex_numbers as _complex_numbers, signal, strings  # noqa: E402

_complex_numbers.install(globals(), math.__dict__)
from . import boxes as _boxes, diagonals as _diagonals, matrices as _matrices, special as _special  # noqa: E402

from . import candidates as _candidates, ctc as _ctc, random, sparse  # noqa: E402
from . import ragged  # noqa: E402
from .ragged import RaggedTensor  # noqa: E402
from .sparse import SparseTensor  # noqa: E402

_ctc.install(nn.__dict__)
_candidates.install(random, nn.__dict__)
_special.install(math.__dict__)
_matrices.install(globals(), linalg.__dict__)
_boxes.install(image.__dict__)
_diagonals.install(linalg.__dict__)
strings.install(globals())
from .encoded import bitcast  # noqa: E402
from .strings import as_string  # noqa: E402
from .loops import foldl, foldr, map_fn, scan, vectorized_map  # noqa: E402
image.__dict__.update({name: value for name, value in vars(_random_images).items() if name.startswith(("random_", "stateless_random_"))})
image.__dict__.update({name: getattr(io, name) for name in io.IMAGES})
for _name in ("FixedLengthRecordDataset", "TFRecordDataset", "TextLineDataset"):
    setattr(data, _name, getattr(_data_files, _name))
_data_options.install(data)
from .tape import (  # noqa: E402
    Function,
    GradientTape,
    TensorSpec,
    UnconnectedGradients,
    custom_gradient,
    function,
    functions_run_eagerly as _functions_run_eagerly,
    grad_pass_through,
    gradients,
    gradients_function,
    hessians,
    recompute_grad,
    run_functions_eagerly as _run_functions_eagerly,
)
from . import audio, autograph, dtypes, summary, test  # noqa: E402
from .graphs import (  # noqa: E402
    AggregationMethod, VariableAggregation, VariableSynchronization, broadcast_dynamic_shape, broadcast_static_shape,
    control_dependencies, get_logger, get_static_value, group, identity_n, init_scope, is_symbolic_tensor, no_op, shape_n, timestamp, tuple,
)
from .debugging import Assert, assert_equal, assert_greater, assert_less, assert_rank  # noqa: E402
from .absent import compat, getter as _getter  # noqa: E402

initializers, losses, metrics, optimizers = keras.initializers, keras.losses, keras.metrics, keras.optimizers
constant_initializer, ones_initializer, zeros_initializer = initializers.Constant, initializers.Ones, initializers.Zeros
random_normal_initializer, random_uniform_initializer = initializers.RandomNormal, initializers.RandomUniform
compat.v2 = _sys.modules[__name__]
dtypes.cast, dtypes.complex, dtypes.saturate_cast = cast, complex, saturate_cast
__getattr__ = _getter(__name__)
for _name in ("math", "nn", "linalg", "io", "strings", "data", "signal", "image", "random"):
    globals()[_name].__getattr__ = _getter(f"{__name__}.{_name}", _name)
del _name


class Module:
    """Variables and functions of a program: attributes that are variables, layers or modules are its parts."""

    def __init__(self, name=None):
        self._name = name

    @property
    def name(self):
        return self._name or type(self).__name__.lower()

    def _wgrad_parts(self):
        from .keras.layer import _parts

        return [part for key, value in self.__dict__.items() if not key.startswith("_wgrad") for part in _parts(key, value)]

    def _listing(self):
        return _wgrad.NativeLayer.of_python(self).variables()

    @property
    def variables(self):
        return (*(variable for _, variable, _ in self._listing()),)

    @property
    def trainable_variables(self):
        return (*(variable for _, variable, trainable in self._listing() if trainable),)


class _Capsule:
    """A capsule of DLPack as an object that NumPy reads."""

    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **options):
        return self._capsule

    def __dlpack_device__(self):
        return 1, 0


class _dlpack:
    """Tensors of other libraries, without files. Values pass through the host's memory."""

    @staticmethod
    def to_dlpack(tf_tensor):
        """A capsule with the tensor's values, which are copied from the device once."""
        return convert_to_tensor(tf_tensor).__dlpack__()

    @staticmethod
    def from_dlpack(dlcapsule):
        """The tensor of a capsule, or of an object with `__dlpack__`."""
        return convert_to_tensor(_host_array(dlcapsule if hasattr(dlcapsule, "__dlpack__") else _Capsule(dlcapsule)))


def _host_array(exchanged):
    """An array of NumPy that shares the memory of an object with `__dlpack__`."""
    import numpy as np

    if type(exchanged) is _Capsule and type(exchanged._capsule).__name__ != "PyCapsule":
        raise TypeError(f"from_dlpack: {type(exchanged._capsule).__name__} is neither a capsule nor an object with __dlpack__.")
    kind = exchanged.__dlpack_device__()[0]
    if kind not in (1, 3, 11):
        raise errors.InvalidArgumentError(
            f"from_dlpack: the tensor is on a device of DLPack's kind {int(kind)}; only memory of the host can be read. Copy it to "
            "the CPU first."
        )
    try:
        return np.from_dlpack(exchanged)
    except (BufferError, RuntimeError, ValueError) as error:
        raise errors.InvalidArgumentError(f"from_dlpack: {error}") from error


class experimental:
    """TensorFlow's `tf.experimental`."""

    dlpack = _dlpack


class PhysicalDevice:
    """A GPU or a CPU of this machine."""

    def __init__(self, name, device_type):
        self.name, self.device_type = name, device_type

    def __repr__(self):
        return f"PhysicalDevice(name='{self.name}', device_type='{self.device_type}')"


class LogicalDevice(PhysicalDevice):
    """A device as programs see it."""

    def __repr__(self):
        return f"LogicalDevice(name='{self.name}', device_type='{self.device_type}')"


class config:
    """The devices of this machine."""

    @staticmethod
    def list_physical_devices(device_type=None):
        return [PhysicalDevice(name, kind) for name, kind in _wgrad.devices(device_type)]

    @staticmethod
    def list_logical_devices(device_type=None):
        return [LogicalDevice(name, kind) for name, kind in _wgrad.logical_devices(device_type)]

    @staticmethod
    def set_logical_device_configuration(device, logical_devices):
        """Makes several logical devices of a physical one, before it is used."""
        _wgrad.configure_device(device.name, [configuration.memory_limit for configuration in logical_devices])

    run_functions_eagerly = staticmethod(_run_functions_eagerly)
    functions_run_eagerly = staticmethod(_functions_run_eagerly)

    class experimental:
        """TensorFlow's `tf.config.experimental`."""

        @staticmethod
        def set_memory_growth(device, enable):
            """Changes nothing: memory is allocated as it is needed."""

        @staticmethod
        def get_memory_growth(device):
            """True: memory is allocated as it is needed."""
            return True

        @staticmethod
        def list_physical_devices(device_type=None):
            return config.list_physical_devices(device_type)

    class LogicalDeviceConfiguration:
        """One of the logical devices on a physical device, with a limit of memory in MB."""

        def __init__(self, memory_limit=None):
            self.memory_limit = memory_limit


class version:
    """The version of this package: `tf.version.VERSION`."""

    VERSION = __version__


class name_scope:
    """A `with` block for names in TensorFlow's graphs; ops have no names here."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        return f"{self.name}/"

    def __exit__(self, *error):
        pass


def device(name):
    """A `with` block in which new tensors are made on a device, such as `/gpu:0`."""
    return _wgrad.DeviceScope(name)


def print(*values, output_stream=None, sep=" ", end="\n", **options):
    """Prints values; tensors are read first. In a traced function, each run prints a line for each tensor, with the texts before it."""
    import builtins

    is_tensor = [isinstance(value, (Tensor, Variable)) for value in values]
    try:
        text = [str(value.numpy()) if yes else str(value) for yes, value in zip(is_tensor, values)]
    except errors.FailedPreconditionError:
        last = len(values) - 1 - is_tensor[::-1].index(True)
        texts = []
        for at, value in enumerate(values[: last + 1]):
            if not is_tensor[at]:
                texts.append(str(value))
                continue
            texts += map(str, values[at + 1:] if at == last else ())
            convert_to_tensor(value)._print(sep.join(texts))
            texts = []
        return
    builtins.print(*text, sep=sep, end=end, file=output_stream or _sys.stderr)


def executing_eagerly():
    return True
