"""Keras: layers, models, losses, metrics, optimizers and callbacks."""

import sys as _sys
import types as _types

from . import callbacks, config, datasets, layers, ops, policies as _policies, random, tree, utils
from . import metric as _metric
from . import metric_functions as _metric_functions
from . import objects as _objects
from . import serialization as _serialization
from .built import Functional, Sequential
from .layer import Layer
from .model import Model
from .files import clone_model, load_model, load_weights, model_from_json, save_model, save_weights
from .policies import DTypePolicy
from .structure import custom_object_scope, register_keras_serializable
from .symbols import Input
from .symbols import Symbol as KerasTensor  # noqa: F401
from .objects import KerasVariable as Variable  # noqa: F401
from .metric import Metric
from .objects import Initializer, Loss, Optimizer, Regularizer
from . import composed_layers as _composed_layers, ctc as _ctc, skipgrams as _skipgrams
from .composed_layers import InputSpec


def _module(name, **names):
    """A namespace such as `keras.optimizers`, which can also be imported."""
    module = _types.ModuleType(f"{__name__}.{name}", f"Keras's `keras.{name}`.")
    module.__dict__.update(names)
    _sys.modules[module.__name__] = module
    return module


def _both_ways(name, base, get):
    """The functions of a module that make configs of objects, and objects of configs."""
    return {"serialize": _serialization.serialize_keras_object, "deserialize": _serialization.deserializer(name, base, get)}


def _with_get(name, table, base):
    get = _objects.getter(name, table, base)
    plural = "losses" if name == "loss" else f"{name}s"
    return _module(plural, **table, **{base.__name__: base}, get=get, **_both_ways(name, base, get))


initializers = _with_get("initializer", _objects.INITIALIZERS, _objects.Initializer)
regularizers = _with_get("regularizer", _objects.REGULARIZERS, _objects.Regularizer)
constraints = _with_get("constraint", _objects.CONSTRAINTS, _objects.Constraint)
optimizers = _module(
    "optimizers",
    **_objects.OPTIMIZERS,
    Optimizer=_objects.Optimizer,
    schedules=_module(
        "optimizers.schedules", **_objects.SCHEDULES, LearningRateSchedule=_objects.Schedule,
        **_both_ways("schedule", _objects.Schedule, _objects.getter("schedule", _objects.SCHEDULES, _objects.Schedule)),
    ),
    get=_objects.get_optimizer,
    **_both_ways("optimizer", _objects.Optimizer, _objects.get_optimizer),
)
optimizers.legacy = optimizers
_sys.modules[f"{__name__}.optimizers.legacy"] = optimizers
losses = _with_get("loss", {**_objects.LOSSES, "CTC": _ctc.CTC}, _objects.Loss)
losses.ctc = _ctc.ctc
metrics = _with_get("metric", _metric.METRICS, Metric)
for _name, _short in (
    ("MeanSquaredError", "mean_squared_error mse MSE"),
    ("MeanAbsoluteError", "mean_absolute_error mae MAE"),
    ("BinaryCrossentropy", "binary_crossentropy"),
    ("CategoricalCrossentropy", "categorical_crossentropy"),
    ("SparseCategoricalCrossentropy", "sparse_categorical_crossentropy"),
    ("Huber", "huber"),
    ("KLDivergence", "kl_divergence kld KLD kullback_leibler_divergence"),
    ("CosineSimilarity", "cosine_similarity"),
    ("LogCosh", "log_cosh logcosh"),
    ("Poisson", "poisson"),
    ("Hinge", "hinge"),
    ("SquaredHinge", "squared_hinge"),
    ("MeanAbsolutePercentageError", "mean_absolute_percentage_error mape MAPE"),
    ("MeanSquaredLogarithmicError", "mean_squared_logarithmic_error msle MSLE"),
    ("BinaryFocalCrossentropy", "binary_focal_crossentropy"),
    ("CategoricalFocalCrossentropy", "categorical_focal_crossentropy"),
    ("CategoricalHinge", "categorical_hinge"),
    ("Dice", "dice"),
    ("Tversky", "tversky"),
    ("Circle", "circle"),
    ("CategoricalGeneralizedCrossEntropy", "categorical_generalized_cross_entropy"),
):
    _function = _objects.function_of(_name, _short.split()[0])
    for _alias in _short.split():
        setattr(losses, _alias, _function)
        setattr(metrics, _alias, _function)
for _name in _metric_functions.NAMES:
    setattr(metrics, _name, getattr(_metric_functions, _name))
models = _module(
    "models", Model=Model, Sequential=Sequential, load_model=load_model, save_model=save_model, model_from_json=model_from_json,
    clone_model=clone_model,
)
_of_saving = {
    "register_keras_serializable": register_keras_serializable,
    "custom_object_scope": custom_object_scope,
    "CustomObjectScope": custom_object_scope,
    **{
        name: getattr(_serialization, name) for name in (
            "serialize_keras_object", "deserialize_keras_object", "get_custom_objects", "get_registered_name", "get_registered_object",
        )
    },
}
saving = _module("saving", load_model=load_model, save_model=save_model, save_weights=save_weights, load_weights=load_weights, **_of_saving)
for _name, _function in _of_saving.items():
    setattr(utils, _name, _function)
for _name in ("AutoContrast", "InputSpec", "Pipeline", "ReversibleEmbedding", "Wrapper"):
    setattr(layers, _name, getattr(_composed_layers, _name))
layers.serialize = _serialization.serialize_keras_object
layers.deserialize = _serialization.deserializer("layer", Layer, _serialization.deserialize_keras_object)
mixed_precision = _module(
    "mixed_precision", Policy=DTypePolicy, DTypePolicy=DTypePolicy, LossScaleOptimizer=_policies.LossScaleOptimizer,
    **dict.fromkeys(("global_policy", "dtype_policy"), _policies.dtype_policy),
    **dict.fromkeys(("set_global_policy", "set_dtype_policy"), _policies.set_dtype_policy),
)
dtype_policies = _module(
    "dtype_policies", DTypePolicy=DTypePolicy, FloatDTypePolicy=DTypePolicy, get=_policies.policy_of,
    **_both_ways("policy", DTypePolicy, _policies.policy_of),
)


def _activations():
    def linear(x):
        return x

    def threshold(x, threshold, default_value):
        """`x` where it is above the threshold, and another value elsewhere."""
        x = convert_to_tensor(x)
        return where(x > threshold, x, convert_to_tensor(default_value, x._dtype))

    from ..ops import where
    from ..tensor import convert_to_tensor
    from ..ops import FUNCTIONS

    return _module(
        "activations",
        **{name: layers.activation_of(name) for name in layers.ACTIVATIONS},
        relu=FUNCTIONS["nn.relu"],
        sigmoid=FUNCTIONS["math.sigmoid"],
        tanh=FUNCTIONS["math.tanh"],
        softmax=FUNCTIONS["nn.softmax"],
        gelu=FUNCTIONS["nn.gelu"],
        elu=FUNCTIONS["nn.elu"],
        selu=FUNCTIONS["nn.selu"],
        silu=FUNCTIONS["nn.silu"],
        softplus=FUNCTIONS["math.softplus"],
        softsign=FUNCTIONS["nn.softsign"],
        swish=FUNCTIONS["nn.silu"],
        relu6=FUNCTIONS["nn.relu6"],
        leaky_relu=FUNCTIONS["nn.leaky_relu"],
        log_softmax=FUNCTIONS["nn.log_softmax"],
        exponential=FUNCTIONS["math.exp"],
        linear=linear,
        threshold=threshold,
    )


activations = _activations()
ops.ctc_loss, ops.ctc_decode = _ctc.ctc_loss, _ctc.ctc_decode


def _get_activation(identifier):
    """An activation by its name, or as it is."""
    if identifier is None:
        return activations.linear
    if callable(identifier):
        return identifier
    registered = _serialization.get_registered_object(str(identifier))
    if registered is not None:
        return registered
    if isinstance(identifier, dict):
        return _serialization.deserialize_keras_object(identifier)
    found = vars(activations).get(str(identifier))
    if not callable(found):
        raise ValueError(f"there is no activation '{identifier}'; keras.activations has them.")
    return found


def _serialize_activation(activation):
    """The name of an activation."""
    return _objects.plain(activation)


_get_activation.__name__, _serialize_activation.__name__ = "get", "serialize"
activations.get = activations.deserialize = _get_activation
activations.serialize = _serialize_activation


def _with_functions(module):
    """The function `get` of a module that finds functions by their names, too."""
    of_class = module.get

    def get(identifier):
        if isinstance(identifier, dict):
            return _serialization.deserialize_keras_object(identifier)
        found = vars(module).get(identifier) if isinstance(identifier, str) else None
        if not callable(found):
            return of_class(identifier)
        return found() if isinstance(found, type) else found

    return get


for _name, _functions, _base in (("loss", losses, _objects.Loss), ("metric", metrics, Metric)):
    _functions.get = _with_functions(_functions)
    _functions.deserialize = _serialization.deserializer(_name, _base, _functions.get)
backend = _module("backend", **{
    name: value for name, value in vars(config).items() if getattr(value, "__module__", "") in (config.__name__, _policies.__name__)
})
backend.ctc_batch_cost = _ctc.ctc_batch_cost
utils.clear_session, utils.standardize_dtype, utils.is_keras_tensor = config.clear_session, config.standardize_dtype, config.is_keras_tensor
preprocessing = _module(
    "preprocessing",
    sequence=_module(
        "preprocessing.sequence", pad_sequences=utils.pad_sequences, skipgrams=_skipgrams.skipgrams,
        make_sampling_table=_skipgrams.make_sampling_table,
    ),
    image_dataset_from_directory=utils.image_dataset_from_directory,
    text_dataset_from_directory=utils.text_dataset_from_directory,
    timeseries_dataset_from_array=utils.timeseries_dataset_from_array,
)
