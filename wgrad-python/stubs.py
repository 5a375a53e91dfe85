"""Writes the type stubs of what the package makes from tables: functions, layers, optimizers, losses, ...

`python stubs.py` writes them, `python stubs.py --check` says which are out of date. Stubs of other modules are written by hand.
"""

import importlib
import inspect
import pathlib
import sys

PACKAGE = pathlib.Path(__file__).parent / "python" / "wgrad"
sys.path.insert(0, str(PACKAGE.parent))

import wgrad as tf  # noqa: E402
from wgrad import keras, ops  # noqa: E402
from wgrad.keras import cells, host_layers, layers, metric, metric_functions, objects  # noqa: E402
from wgrad.keras.native import (  # noqa: E402
    AdaptedDiscretization, AdaptedNormalization, HeadedAttention, ListAttention, NativeLayer, Recurrent,
)

HEAD = '# Written by stubs.py from the tables of the package.\n'

# Types by the parameter's name.
INTEGERS = """k depth num_segments units filters input_dim output_dim n groups num_tokens num_bins num_heads key_dim value_dim
height width block_size num target_height target_width offset_height offset_width minlength batch_dims depth_multiplier
head_dim num_query_heads num_key_value_heads power_iterations num_lower num_upper depth_radius num_classes N M ord_ seed
num_thresholds maxval_int stages warmup_steps decay_steps first_decay_steps iterations"""
FLOATS = """alpha epsilon rate stddev momentum rho beta_1 beta_2 beta scale offset delta clip_norm mask_value gamma gain mean_
label_smoothing threshold weight_decay negative_slope on_value off_value central_fraction saturation_factor contrast_factor pos_weight l1 l2
dropout recurrent_dropout initial_accumulator_value minval_ decay_rate power t_mul m_mul end_learning_rate clip_threshold factor
max_value_ saturation clipnorm clipvalue global_clipnorm ema_momentum bias_ loss_scale_factor gradient_accumulation_steps_"""
FLAGS = """keepdims exclusive reverse sorted transpose_a transpose_b use_bias center scale_ return_sequences return_state go_backwards
stateful unroll approximate antialias stable saturate from_logits amsgrad nesterov centered use_scale cycle staircase
mask_zero zero_output_for_mask invert normalize apply_class_balancing sparse use_ema use_gate relative_step multi_label
crop_to_aspect_ratio pad_to_aspect_ratio reset_after trainable"""
TYPES = {name: "int" for name in INTEGERS.split()} | {name: "float" for name in FLOATS.split()} | {
    name: "bool" for name in FLAGS.split()
}
TYPES |= {
    "axis": "_Axis", "axes": "Any", "shape": "Any", "dtype": "DTypeLike", "name": "str", "activation": "_Activation",
    "recurrent_activation": "_Activation", "padding": "Any", "strides": "_Window", "kernel_size": "_Window", "pool_size": "_Window",
    "dilation_rate": "_Window", "size": "_Window", "learning_rate": "float | Schedule", "data_format": "str", "mode": "str",
    "layer": "Layer", "backward_layer": "Layer", "output_mode": "str", "interpolation": "str", "seed": "int | SeedGenerator",
    "equation": "str", "value": "Any", "reduction": "str", "recurrent_dropout": "float", "sorted": "bool", "method": "str",
    "direction": "str", "side": "str", "rate": "float", "factor": "Any", "scale": "Any", "dtype_": "DTypeLike",
}


def typed(name, default, optional=True):
    kind = TYPES.get(name)
    if kind is None and name.endswith("_initializer"):
        kind = "Initializer | str"
    if kind is None and name.endswith(("_regularizer", "_constraint")):
        kind = "Any"
    kind = kind or "Any"
    if optional and kind != "Any" and default == "None":
        kind += " | None"
    return f"{name}: {kind}" + (f" = {default}" if default is not None else "")


# ---- functions ----

LISTS = {"split", "unstack", "moments", "meshgrid"}
PAIRS = {
    **dict.fromkeys("top_k slogdet qr eigh lu image_gradients unique weighted_moments".split(), "tuple[Tensor, Tensor]"),
    **dict.fromkeys("svd unique_with_counts".split(), "tuple[Tensor, Tensor, Tensor]"),
}


def parameters_of(function):
    made, keywords = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            made.append(f"*{parameter.name}: Any")
            keywords = True
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            made.append(f"**{parameter.name}: Any")
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not keywords:
            made.append("*")
            keywords = True
        name = parameter.name
        if parameter.default is inspect.Parameter.empty:
            made.append(f"{name}: TensorLike" if name in TENSORS.get(function.__name__, ()) else typed(name, None))
        else:
            default = parameter.default
            shown = repr(default) if isinstance(default, (int, float, str, bool, type(None), tuple)) else "..."
            made.append(typed(name, shown) if default is None else typed(name, shown, optional=False))
    return ", ".join(made)


TENSORS = {}


def functions(table):
    """Stubs of functions by name."""
    text = ""
    for name, function in sorted(table.items()):
        parameters = []
        keywords = False
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind is parameter.KEYWORD_ONLY and not keywords:
                parameters.append("*")
                keywords = True
            if parameter.default is inspect.Parameter.empty:
                kind = "Sequence[TensorLike]" if parameter.name in function.lists else "TensorLike"
                parameters.append(f"{parameter.name}: {kind}")
            else:
                default = parameter.default
                parameters.append(typed(parameter.name, repr(default), optional=default is None))
        result = PAIRS.get(name, "list[Tensor]" if name in LISTS else "Tensor")
        text += f"def {name}({', '.join(parameters)}) -> {result}: ...\n"
    return text


FUNCTION_HEAD = HEAD + """from collections.abc import Sequence
from typing import Any

from .dtypes import DTypeLike
from .tensor import Tensor, TensorLike

_Axis = int | Sequence[int]
_Window = int | Sequence[int]

"""


def written(module, names, result):
    """Stubs of functions that a module defines in Python."""
    text = ""
    for name in names:
        function = getattr(module, name)
        kind = result.get(name, "Tensor")
        text += f"def {name}({parameters_of(function)}) -> {kind}: ...\n".replace("= -inf", "= ...")
    return text


def namespace(name):
    path = {key.rpartition(".")[2]: f for key, f in ops.FUNCTIONS.items() if key.rpartition(".")[0] == name}
    public = {key: value for key, value in vars(getattr(tf, name)).items() if not key.startswith("_") and inspect.isfunction(value)}
    table = {key: value for key, value in public.items() if hasattr(value, "lists")}
    assert set(path) <= set(public), name
    elsewhere = {}
    for key, value in public.items():
        module = value.__module__.rpartition(".")[2]
        if module in ("boxes", "diagonals", "io", "matrices", "random_images", "special"):
            elsewhere.setdefault(module, []).append(key)
    rest = [key for key in public if key not in table and not any(key in keys for keys in elsewhere.values())]
    imports = "".join(
        f"from .{module} import (\n" + "".join(f"    {key} as {key},\n" for key in sorted(keys)) + ")\n" for module, keys in sorted(elsewhere.items())
    ) + ("\n" if elsewhere else "")
    pairs = {"normalize": "tuple[Tensor, Tensor]", "svd": "Any", "collapse_repeated": "tuple[Tensor, Tensor]", "moments": "Any"}
    return FUNCTION_HEAD + imports + functions(table) + written(getattr(tf, name), rest, pairs).replace("int | SeedGenerator", "int")


def top():
    table = {key: value for key, value in vars(tf).items() if hasattr(value, "lists")}
    plain = [
        name for name, value in vars(ops).items()
        if inspect.isfunction(value) and value.__module__ == ops.__name__ and not name.startswith("_") and not hasattr(value, "lists")
        and name != "install"
    ]
    results = {
        "meshgrid": "list[Tensor]", "clip_by_global_norm": "tuple[list[Tensor], Tensor]", "shape": "Tensor", "py_function": "Any",
    }
    return FUNCTION_HEAD + functions(table), FUNCTION_HEAD + written(ops, plain, results), sorted(table), sorted(plain)


# ---- layers ----

SAMPLES = {
    "units": 3, "filters": 4, "kernel_size": 2, "input_dim": 5, "output_dim": 3, "target_shape": [-1, 2], "dims": [2, 1], "n": 3,
    "scale": 0.5, "stddev": 0.25, "rate": 0.5, "num_heads": 2, "key_dim": 4, "num_tokens": 4, "height": 4, "width": 4, "factor": 0.25,
    "height_factor": 0.5, "width_factor": 0.5, "head_dim": 4, "num_query_heads": 4, "num_key_value_heads": 2, "output_size": 2,
    "cropping": 1, "equation": "ab,bc->ac", "output_shape": [None], "activation": "relu", "axes": [1, 1], "bin_boundaries": [0.0, 1.0],
}


def required(name, cls):
    """Options without which a layer cannot be made."""
    given = {}
    layer = None
    for _ in range(12):
        try:
            layer = cls(**given)
            return layer, [key for key in cls._parameters if key in given]
        except Exception as error:
            text = str(error)
            wanted = [key for key in (*cls._parameters, *SAMPLES) if f"'{key}'" in text and key not in given and key in SAMPLES]
            if not wanted:
                wanted = [key for key in cls._parameters if key in SAMPLES and key not in given]
            if name in ("Bidirectional", "TimeDistributed", "SpectralNormalization"):
                given = {"layer": layers.LSTM(3) if name == "Bidirectional" else layers.Dense(3)}
                continue
            if name == "RNN":
                given = {"cell": layers.LSTMCell(3)}
                continue
            if not wanted:
                raise
            given[wanted[0]] = SAMPLES[wanted[0]]
    raise RuntimeError(f"{name}: {given}")


BASES = {
    Recurrent: "Recurrent", HeadedAttention: "HeadedAttention", ListAttention: "ListAttention",
    AdaptedDiscretization: "AdaptedDiscretization", AdaptedNormalization: "AdaptedNormalization", NativeLayer: "NativeLayer",
}


def layer_stubs():
    text = HEAD + """from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import DTypeLike
from .cells import (
    RNN as RNN,
    Cell as Cell,
    GRUCell as GRUCell,
    LSTMCell as LSTMCell,
    SimpleRNNCell as SimpleRNNCell,
    StackedRNNCells as StackedRNNCells,
)
from .composed_layers import (
    AutoContrast as AutoContrast,
    InputSpec as InputSpec,
    Pipeline as Pipeline,
    ReversibleEmbedding as ReversibleEmbedding,
    Wrapper as Wrapper,
)
from .host_layers import CrossingLayer, HostLayer, LearningLayer, VectorizingLayer
from .layer import Layer as Layer
from .native import AdaptedDiscretization, AdaptedNormalization, HeadedAttention, ListAttention, NativeLayer as NativeLayer, Recurrent
from .objects import Initializer, Schedule, SeedGenerator
from .serialization import serialize_keras_object as serialize
from .symbols import Input as Input, Symbol

_Activation = str | Callable[..., Any] | None
_Axis = int | Sequence[int]
_Window = int | Sequence[int]

"""
    seen = {}
    for name, cls in vars(layers).items():
        if not (isinstance(cls, type) and issubclass(cls, NativeLayer)) or cls._class is None or name in vars(cells):
            continue
        if cls in seen:
            text += f"{name} = {seen[cls]}\n"
            continue
        seen[cls] = name
        layer, needed = required(cls._class, cls)
        # It has boundaries, or learns them.
        needed = [] if name == "Discretization" else needed
        options = [key for key in layer.get_config() if key not in ("name", "trainable", *cls._parameters)]
        ordered = [typed(key, None) if key in needed else None for key in cls._parameters]
        parts = []
        for key, own in zip(cls._parameters, ordered):
            # Those before a required one are required, too.
            if own is not None and all(part is not None for part in ordered[: len(parts)]):
                parts.append(own)
            else:
                parts.append(typed(key, "..."))
        extra = [typed(key, "...") for key in options if key.isidentifier()]
        if issubclass(cls, Recurrent) and cls._class not in ("Bidirectional",) and "return_state" not in options:
            extra.append("return_state: bool = ...")
        extra += ["name: str | None = None", "trainable: bool = True", "input_shape: Sequence[int | None] | None = None"]
        if "dtype" not in options:
            extra.append("dtype: DTypeLike = ...")
        base = BASES[next(base for base in cls.__mro__ if base in BASES)]
        text += f"class {name}({base}):\n    def __init__(\n        self, {', '.join([*parts, '*', *extra])}\n    ) -> None: ...\n"
    for name, cls in host_layers.LAYERS.items():
        parts = "".join(f", {key}: Any = ..." for key in cls._parameters)
        text += f"class {name}({cls.__mro__[1].__name__}):\n    def __init__(self{parts}, *, name: str | None = None, **options: Any) -> None: ...\n"
    text += "def deserialize(config: Any, custom_objects: dict[str, Any] | None = None) -> Any: ...\n"
    text += "from .input_layer import InputLayer as InputLayer\n"
    text += "class Lambda(Layer):\n    def __init__(self, function: Callable[..., Any], output_shape: Any = None, mask: Any = None, arguments: dict[str, Any] | None = None, name: str | None = None, **options: Any) -> None: ...\n"
    for name in "add subtract multiply average maximum minimum concatenate dot".split():
        text += f"def {name}(inputs: Any, **options: Any) -> Any: ...\n"
    return text


# ---- Keras's objects ----


def object_stubs(table, base, extra=""):
    text, seen = "", {}
    for name, cls in table.items():
        if cls in seen:
            text += f"{name} = {seen[cls]}\n"
            continue
        seen[cls] = name
        if cls in (metric.Mean, metric.Sum, metric.MeanMetricWrapper):
            text += f"from .metric import {name} as {name}\n"
            continue
        if name == "LossScaleOptimizer":
            text += "from ..policies import LossScaleOptimizer as LossScaleOptimizer\n"
            continue
        parts = [typed(key, "...") for key in cls._parameters]
        keywords = ["**options: Any"] if base in ("Optimizer", "Metric", "Loss", "Initializer") else []
        text += f"class {name}({base}):\n    def __init__(self{''.join(', ' + part for part in [*parts, *keywords])}) -> None: ...\n"
    return text + extra


def objects_head(*names):
    return HEAD + f"""from collections.abc import Callable, Sequence
from typing import Any

from {names[0]} import DTypeLike
from {names[1]} import Tensor
from {names[2]} import {', '.join(sorted(set(names[3:])))}

_Axis = int | Sequence[int]

"""


def objects_modules():
    head = lambda *names: objects_head("..dtypes", "..tensor", ".objects", *(f"{n} as {n}" for n in names))
    both = (
        "def serialize(obj: Any) -> Any: ...\n"
        "def deserialize(config: Any, custom_objects: dict[str, Any] | None = None) -> Any: ...\n"
    )
    finds = "def get(identifier: Any) -> Any: ...\n" + both
    elsewhere = ("get", "serialize", "deserialize")
    losses = [name for name, value in vars(keras.losses).items() if inspect.isfunction(value) and name not in (*elsewhere, "ctc")]
    listed = lambda module, names: f"from .{module} import (\n" + "".join(f"    {name} as {name},\n" for name in names) + ")\n"
    settings = sorted(name for name, value in vars(keras.backend).items() if not name.startswith("_") and inspect.isfunction(value) and name != "ctc_batch_cost")
    own = [name for name in settings if name not in ("dtype_policy", "set_dtype_policy")]
    of_losses = "".join(f"def {name}(y_true: Any, y_pred: Any, **options: Any) -> Tensor: ...\n" for name in losses)
    schedules = objects_head("...dtypes", "...tensor", "..objects", "Schedule as LearningRateSchedule", "Schedule")
    return {
        "initializers": head("Initializer", "SeedGenerator") + object_stubs(objects.INITIALIZERS, "Initializer") + finds,
        "regularizers": head("Regularizer") + object_stubs(objects.REGULARIZERS, "Regularizer") + finds,
        "constraints": head("Constraint") + object_stubs(objects.CONSTRAINTS, "Constraint") + finds,
        "optimizers/schedules": schedules + object_stubs(objects.SCHEDULES, "Schedule") + both,
        "optimizers/__init__": objects_head("...dtypes", "...tensor", "..objects", "Optimizer as Optimizer", "Schedule")
        + "from . import schedules as schedules\n\n" + object_stubs(objects.OPTIMIZERS, "Optimizer") + "def get(value: str | dict[str, Any] | Optimizer) -> Optimizer: ...\n" + both,
        "losses": head("Loss") + "from .ctc import CTC as CTC, ctc as ctc\n\n" + object_stubs(objects.LOSSES, "Loss", of_losses) + finds,
        "metrics": objects_head("..dtypes", "..tensor", ".metric", "Metric as Metric") + object_stubs(metric.METRICS, "Metric", of_losses)
        + listed("metric_functions", metric_functions.NAMES) + finds,
        "activations": FUNCTION_HEAD.replace("from .", "from ..") + functions(
            {name: value for name, value in vars(keras.activations).items() if hasattr(value, "lists")}
        ) + "def linear(x: TensorLike) -> Any: ...\ndef threshold(x: TensorLike, threshold: Any, default_value: Any) -> Any: ...\n"
        "def get(identifier: Any) -> Any: ...\ndef deserialize(identifier: Any) -> Any: ...\n"
        "def serialize(activation: Any) -> Any: ...\n" + "".join(f"def {name}(x: TensorLike) -> Any: ...\n" for name in layers.ACTIVATIONS),
        "saving": HEAD + listed("files", ("load_model", "load_weights", "save_model", "save_weights")) + listed("serialization", (
            "deserialize_keras_object", "get_custom_objects", "get_registered_name", "get_registered_object", "serialize_keras_object",
        )) + "from .structure import (\n    custom_object_scope as CustomObjectScope,\n    custom_object_scope as custom_object_scope,\n"
        "    register_keras_serializable as register_keras_serializable,\n)\n",
        "backend": HEAD + listed("config", own) + listed("policies", ("dtype_policy", "set_dtype_policy")) + listed("ctc", ("ctc_batch_cost",)),
        "dtype_policies": HEAD + "from .policies import DTypePolicy as DTypePolicy, DTypePolicy as FloatDTypePolicy, policy_of as get\n"
        "from typing import Any\n\n" + both,
        "mixed_precision": HEAD + "from .policies import (\n    DTypePolicy as DTypePolicy,\n    DTypePolicy as Policy,\n"
        "    LossScaleOptimizer as LossScaleOptimizer,\n    dtype_policy as dtype_policy,\n    dtype_policy as global_policy,\n"
        "    set_dtype_policy as set_dtype_policy,\n    set_dtype_policy as set_global_policy,\n)\n",
        "models": HEAD + "from .built import Sequential as Sequential\nfrom .model import Model as Model\n"
        "from .files import (\n    clone_model as clone_model,\n    load_model as load_model,\n    model_from_json as model_from_json,\n"
        "    save_model as save_model,\n)\n",
    }


def python_module(module, results, default="Tensor"):
    """Stubs of the functions of a module of Keras."""
    names = [
        name for name, value in vars(module).items()
        if not name.startswith("_") and inspect.isfunction(value)
        and (value.__module__ == module.__name__ or hasattr(value, "lists") or name in ("var", "std"))
        and name != "convert_to_tensor"
    ]
    text = HEAD + """from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import DTypeLike
from ..tensor import Tensor, TensorLike
from .objects import SeedGenerator

_Axis = int | Sequence[int]
_Window = int | Sequence[int]

"""
    for name in sorted(names):
        function = getattr(module, name)
        if hasattr(function, "lists"):
            text += functions({name: function})
        else:
            text += f"def {name}({parameters_of(function)}) -> {results.get(name, default)}: ...\n"
    return text


def signal_stubs():
    public = {name: value for name, value in vars(tf.signal).items() if not name.startswith("_") and inspect.isfunction(value)}
    table = {name: value for name, value in public.items() if hasattr(value, "lists")}
    results = dict.fromkeys("fft ifft fft2d ifft2d rfft rfft2d stft".split(), "ComplexTensor") | {"inverse_stft_window_fn": "Any"}
    rest = sorted(name for name in public if name not in table)
    return FUNCTION_HEAD + "from .complex_numbers import ComplexTensor\n\n" + functions(table) + written(tf.signal, rest, results)


def strings_stubs():
    names = [name for name, value in vars(tf.strings).items() if inspect.isfunction(value) and value.__module__ in (tf.strings.__name__, "wgrad.unicode_strings") and not name.startswith("_") and name != "install"]
    results = dict.fromkeys(names, "StringTensor") | {"noted": "Any", "is_text": "bool"}
    results |= dict.fromkeys("split bytes_split format ngrams unicode_decode unicode_split".split(), "Any")
    results |= dict.fromkeys("length regex_full_match to_number to_hash_bucket_fast to_hash_bucket_strong".split(), "Tensor")
    head = FUNCTION_HEAD.replace("from .dtypes", "import numpy as np\n\nfrom .dtypes")
    classes = (
        "StringLike = Any\n\nclass StringTensor(np.ndarray[Any, Any]):\n    def numpy(self) -> Any: ...\n\n"
        "class StringScalar(bytes):\n    shape: tuple[()]\n    def numpy(self) -> bytes: ...\n\n"
    )
    return head + classes + "def install(top: dict[str, Any]) -> None: ...\n" + written(tf.strings, names, results)


# Modules whose public functions are those that they define, and what they return if it is no tensor.
MODULES = {
    "audio": {"decode_wav": "tuple[Tensor, Tensor]", "encode_wav": "Any"},
    "boxes": {
        "combined_non_max_suppression": "CombinedNonMaxSuppression", "install": "None",
        **dict.fromkeys(("non_max_suppression_padded", "non_max_suppression_with_scores"), "tuple[Tensor, Tensor]"),
    },
    "candidates": {"install": "None", **dict.fromkeys(
        (f"{kind}_candidate_sampler" for kind in ("log_uniform", "uniform", "fixed_unigram")), "tuple[Tensor, Tensor, Tensor]"
    )},
    "ctc": {
        "install": "None", **dict.fromkeys("beam_search greedy ctc_beam_search_decoder ctc_greedy_decoder padded read".split(), "Any"),
    },
    "diagonals": {"install": "None"},
    "encoded": dict.fromkeys("decode_base64 decode_compressed encode_base64 parse_tensor serialize_tensor".split(), "Any"),
    "matrices": {"install": "None", **dict.fromkeys("eig eigh_tridiagonal eigvals logm".split(), "Any")},
    "special": {"install": "None"},
    "unicode_strings": dict.fromkeys("unicode_decode unicode_encode unicode_split unicode_transcode".split(), "Any"),
}
MODULE_EXTRAS = {
    "candidates": "from .keras.objects import SeedGenerator\n\n",
    "boxes": "from typing import NamedTuple\n\nclass CombinedNonMaxSuppression(NamedTuple):\n"
    + "".join(f"    {name}: Tensor\n" for name in "nmsed_boxes nmsed_scores nmsed_classes valid_detections".split()) + "\n",
    "encoded": "NUMBERS: dict[str, int]\n\n",
}


def module_stubs(name, results):
    module = importlib.import_module(f"wgrad.{name}")
    names = [key for key, value in vars(module).items() if inspect.isfunction(value) and value.__module__ == module.__name__ and key[0] != "_"]
    tables = "FUNCTIONS: tuple[Any, ...]\n\n" if hasattr(module, "FUNCTIONS") else ""
    return FUNCTION_HEAD + MODULE_EXTRAS.get(name, "") + tables + written(module, names, results)


# ---- the native module ----

ELSEWHERE = {"Tensor": ".tensor", "Variable": ".tensor", "Symbol": ".keras.symbols"}


def native_parameters(item, skip=()):
    """The parameters of a native function or method, all of which take anything."""
    made = []
    for parameter in list(inspect.signature(item).parameters.values()):
        if parameter.name in skip:
            continue
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = "" if parameter.default is parameter.empty else " = ..."
        own = parameter.name == "self"
        made.append("self" if own else f"{star}{parameter.name}: Any{default}")
        if parameter.kind is parameter.POSITIONAL_ONLY and own:
            made.append("/")
    # A method's own parameter is positional only, and so is nothing else.
    return ", ".join(part for part in made if part != "/")


def native_stubs():
    from wgrad import _wgrad

    text = HEAD + "from typing import Any, final\n\n"
    for name, module in ELSEWHERE.items():
        text += f"from {module} import {name} as {name}\n"
    text += "\n__version__: str\n\n"
    for name, item in sorted(vars(_wgrad).items()):
        if name.startswith("__") or name in ELSEWHERE:
            continue
        if not isinstance(item, type):
            text += f"def {name}({native_parameters(item)}) -> Any: ...\n"
            continue
        body = ""
        if item.__text_signature__ is not None:
            body += f"    def __new__(cls, {native_parameters(item)}) -> {name}: ...\n"
        for key, member in sorted(vars(item).items()):
            if key in ("__enter__", "__exit__", "__call__"):
                body += f"    def {key}({native_parameters(member)}) -> Any: ...\n"
            elif key.startswith("__"):
                continue
            elif isinstance(member, staticmethod):
                body += f"    @staticmethod\n    def {key}({native_parameters(member.__func__)}) -> Any: ...\n"
            elif callable(member):
                body += f"    def {key}({native_parameters(member)}) -> Any: ...\n"
            else:
                body += f"    @property\n    def {key}(self) -> Any: ...\n"
        text += f"@final\nclass {name}:\n{body or '    ...' + chr(10)}\n"
    return text


def all_stubs():
    top_text, plain_text, table, plain = top()
    composed = [function.__name__ for function in tf._composed.TOP]
    made = {"composed": FUNCTION_HEAD + written(tf._composed, composed, {"dynamic_partition": "list[Tensor]", "numpy_function": "Any"})}
    made |= {"_wgrad": native_stubs(), "functions": top_text, "ops": plain_text, **{name: namespace(name) for name in ("math", "nn", "linalg", "image", "bitwise")}}
    made["signal"] = signal_stubs()
    made["strings"] = strings_stubs()
    made |= {name: module_stubs(name, results) for name, results in MODULES.items()}
    listed = lambda module, names: f"from .{module} import (\n" + "".join(f"    {name} as {name},\n" for name in names) + ")\n"
    plain.remove("confusion_matrix")
    made["__init__"] = HEAD + INIT + INIT_OTHERS + listed("functions", table) + listed("ops", plain) + listed("composed", composed) + INIT_REST
    keras_made = {"layers": layer_stubs(), **objects_modules()}
    results = {
        "shape": "tuple[int | None, ...]", "ndim": "int", "size": "int", "convert_to_numpy": "Any", "is_tensor": "bool", "cond": "Any",
        "while_loop": "Any", "split": "list[Tensor]", "meshgrid": "list[Tensor]", "moments": "tuple[Tensor, Tensor]",
        "qr": "tuple[Tensor, Tensor]", "svd": "Any", "scan": "tuple[Any, Any]", "associative_scan": "Any", "switch": "Any",
        "histogram": "tuple[Tensor, Tensor]", "unravel_index": "tuple[Tensor, ...]", **dict.fromkeys(
            ("fft", "fft2", "ifft", "rfft"), "tuple[Tensor, Tensor]"
        ), "nonzero": "tuple[Tensor, ...]", "fori_loop": "Any", "map": "Any", "vectorized_map": "Any",
    }
    keras_made["ops"] = python_module(keras.ops, results)
    names = sorted(keras.ops.array_ops.__all__)
    listing = "".join(f'    "{name}",\n' for name in names)
    keras_made["array_ops"] = python_module(keras.ops.array_ops, results) + f"\n__all__ = [\n{listing}]\n"
    keras_made["ops"] += listed("array_ops", names)
    keras_made["random"] = python_module(keras.random, {}) + "from .objects import SeedGenerator as SeedGenerator\n"
    return {f"{name}.pyi": text for name, text in made.items()} | {f"keras/{name}.pyi": text for name, text in keras_made.items()}


INIT = '''import builtins
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
'''
INIT_OTHERS = '''from . import audio as audio, dtypes as dtypes, ragged as ragged, signal as signal, sparse as sparse, strings as strings, summary as summary
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
'''
INIT_REST = '''
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
def print(*values: Any, output_stream: Any = None, sep: str = " ", end: str = "\\n", **options: Any) -> None: ...
def executing_eagerly() -> builtins.bool: ...
'''


def main():
    wrong = []
    for name, text in all_stubs().items():
        path = PACKAGE / name
        if "--check" in sys.argv:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                wrong.append(name)
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if wrong:
        sys.exit(f"out of date: {', '.join(wrong)}; run python stubs.py")


if __name__ == "__main__":
    main()
