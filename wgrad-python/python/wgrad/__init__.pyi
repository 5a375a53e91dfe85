# Written by stubs.py from the tables of the package.
import builtins
from typing import Any

from . import autograph as autograph, bitwise as bitwise, data as data, debugging as debugging, distribute as distribute, errors as errors, image as image
from . import io as io, keras as keras, linalg as linalg, lookup as lookup, math as math, nest as nest, nn as nn, random as random
from . import saved_model as saved_model, train as train
from .control_flow import (
    case as case,
    cond as cond,
    switch_case as switch_case,
    while_loop as while_loop,
)
from .dtypes import (
    DType as DType,
    DTypeLike,
    TensorShape as TensorShape,
    as_dtype as as_dtype,
    bool as bool,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    half as half,
    int32 as int32,
    int64 as int64,
    string as string,
    uint32 as uint32,
    uint8 as uint8,
)
from .loops import foldl as foldl, foldr as foldr, map_fn as map_fn, scan as scan, vectorized_map as vectorized_map
from .saved_model import onnx as onnx
from .tape import (
    Function as Function,
    GradientTape as GradientTape,
    TensorSpec as TensorSpec,
    UnconnectedGradients as UnconnectedGradients,
    custom_gradient as custom_gradient,
    function as function,
    gradients_function as gradients_function,
)
from .tensor_array import TensorArray as TensorArray
from .tensor import (
    Tensor as Tensor,
    TensorLike,
    Variable as Variable,
    constant as constant,
    convert_to_tensor as convert_to_tensor,
    is_tensor as is_tensor,
)
from . import audio as audio, dtypes as dtypes, ragged as ragged, signal as signal, sparse as sparse, strings as strings, summary as summary
from . import test as test
from .absent import compat as compat
from .complex_numbers import complex as complex
from .debugging import (
    Assert as Assert,
    assert_equal as assert_equal,
    assert_greater as assert_greater,
    assert_less as assert_less,
    assert_rank as assert_rank,
)
from .dtypes import (
    bfloat16 as bfloat16,
    complex64 as complex64,
    complex128 as complex128,
    double as double,
    int8 as int8,
    int16 as int16,
    uint16 as uint16,
    uint64 as uint64,
)
from .encoded import bitcast as bitcast
from .graphs import (
    AggregationMethod as AggregationMethod,
    VariableAggregation as VariableAggregation,
    VariableSynchronization as VariableSynchronization,
    broadcast_dynamic_shape as broadcast_dynamic_shape,
    broadcast_static_shape as broadcast_static_shape,
    control_dependencies as control_dependencies,
    get_logger as get_logger,
    get_static_value as get_static_value,
    group as group,
    identity_n as identity_n,
    init_scope as init_scope,
    is_symbolic_tensor as is_symbolic_tensor,
    no_op as no_op,
    shape_n as shape_n,
    timestamp as timestamp,
)
from .keras import initializers as initializers, losses as losses, metrics as metrics, optimizers as optimizers
from .keras.initializers import (
    Constant as constant_initializer,
    Ones as ones_initializer,
    RandomNormal as random_normal_initializer,
    RandomUniform as random_uniform_initializer,
    Zeros as zeros_initializer,
)
from .matrices import eig as eig, eigvals as eigvals, sqrtm as matrix_square_root
from .ragged import RaggedTensor as RaggedTensor
from .sparse import SparseTensor as SparseTensor
from .strings import as_string as as_string
from .tape import (
    grad_pass_through as grad_pass_through,
    gradients as gradients,
    hessians as hessians,
    recompute_grad as recompute_grad,
)
from .functions import (
    abs as abs,
    acos as acos,
    acosh as acosh,
    add as add,
    add_n as add_n,
    argmax as argmax,
    argmin as argmin,
    argsort as argsort,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    batch_to_space as batch_to_space,
    broadcast_to as broadcast_to,
    ceil as ceil,
    clip_by_norm as clip_by_norm,
    concat as concat,
    cos as cos,
    cosh as cosh,
    cumsum as cumsum,
    divide as divide,
    equal as equal,
    exp as exp,
    expand_dims as expand_dims,
    floor as floor,
    gather_nd as gather_nd,
    greater as greater,
    greater_equal as greater_equal,
    histogram_fixed_width as histogram_fixed_width,
    histogram_fixed_width_bins as histogram_fixed_width_bins,
    less as less,
    less_equal as less_equal,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    matmul as matmul,
    maximum as maximum,
    minimum as minimum,
    multiply as multiply,
    negative as negative,
    not_equal as not_equal,
    pad as pad,
    pow as pow,
    realdiv as realdiv,
    reduce_all as reduce_all,
    reduce_any as reduce_any,
    reduce_logsumexp as reduce_logsumexp,
    reduce_max as reduce_max,
    reduce_mean as reduce_mean,
    reduce_min as reduce_min,
    reduce_prod as reduce_prod,
    reduce_sum as reduce_sum,
    repeat as repeat,
    reshape as reshape,
    reverse as reverse,
    reverse_sequence as reverse_sequence,
    roll as roll,
    round as round,
    saturate_cast as saturate_cast,
    scatter_nd as scatter_nd,
    searchsorted as searchsorted,
    sigmoid as sigmoid,
    sign as sign,
    sin as sin,
    sinh as sinh,
    slice as slice,
    sort as sort,
    space_to_batch as space_to_batch,
    split as split,
    sqrt as sqrt,
    square as square,
    squeeze as squeeze,
    stack as stack,
    stop_gradient as stop_gradient,
    subtract as subtract,
    tan as tan,
    tanh as tanh,
    tensor_scatter_nd_add as tensor_scatter_nd_add,
    tensor_scatter_nd_max as tensor_scatter_nd_max,
    tensor_scatter_nd_min as tensor_scatter_nd_min,
    tensor_scatter_nd_sub as tensor_scatter_nd_sub,
    tensor_scatter_nd_update as tensor_scatter_nd_update,
    tensordot as tensordot,
    tile as tile,
    transpose as transpose,
    truediv as truediv,
    truncatediv as truncatediv,
    truncatemod as truncatemod,
    unique as unique,
    unique_with_counts as unique_with_counts,
    unstack as unstack,
)
from .ops import (
    cast as cast,
    clip_by_global_norm as clip_by_global_norm,
    clip_by_value as clip_by_value,
    einsum as einsum,
    ensure_shape as ensure_shape,
    eye as eye,
    fill as fill,
    identity as identity,
    linspace as linspace,
    meshgrid as meshgrid,
    ones as ones,
    ones_like as ones_like,
    py_function as py_function,
    range as range,
    rank as rank,
    sequence_mask as sequence_mask,
    shape as shape,
    size as size,
    where as where,
    zeros as zeros,
    zeros_like as zeros_like,
)
from .composed import (
    boolean_mask as boolean_mask,
    dynamic_partition as dynamic_partition,
    dynamic_stitch as dynamic_stitch,
    gather as gather,
    norm as norm,
    numpy_function as numpy_function,
    one_hot as one_hot,
    scalar_mul as scalar_mul,
    strided_slice as strided_slice,
    unravel_index as unravel_index,
)

__version__: str
newaxis: None

class Module:
    def __init__(self, name: str | None = None) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def variables(self) -> tuple[Variable, ...]: ...
    @property
    def trainable_variables(self) -> tuple[Variable, ...]: ...

class _dlpack:
    @staticmethod
    def to_dlpack(tf_tensor: TensorLike) -> Any: ...
    @staticmethod
    def from_dlpack(dlcapsule: Any) -> Tensor: ...

class experimental:
    dlpack = _dlpack

class version:
    VERSION: str

class name_scope:
    name: str
    def __init__(self, name: str) -> None: ...
    def __enter__(self) -> str: ...
    def __exit__(self, *error: object) -> None: ...

class PhysicalDevice:
    name: str
    device_type: str
    def __init__(self, name: str, device_type: str) -> None: ...

class LogicalDevice(PhysicalDevice): ...

class config:
    @staticmethod
    def run_functions_eagerly(run_eagerly: builtins.bool) -> None: ...
    @staticmethod
    def functions_run_eagerly() -> builtins.bool: ...
    class experimental:
        @staticmethod
        def set_memory_growth(device: PhysicalDevice, enable: builtins.bool) -> None: ...
        @staticmethod
        def get_memory_growth(device: PhysicalDevice) -> builtins.bool: ...
        @staticmethod
        def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]: ...
    @staticmethod
    def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]: ...
    @staticmethod
    def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]: ...
    @staticmethod
    def set_logical_device_configuration(
        device: PhysicalDevice, logical_devices: list[config.LogicalDeviceConfiguration]
    ) -> None: ...

    class LogicalDeviceConfiguration:
        memory_limit: int | None
        def __init__(self, memory_limit: int | None = None) -> None: ...

def device(name: str) -> Any: ...
def print(*values: Any, output_stream: Any = None, sep: str = " ", end: str = "\n", **options: Any) -> None: ...
def executing_eagerly() -> builtins.bool: ...
