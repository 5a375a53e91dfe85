"""Keras: layers, models, losses, metrics, optimizers and callbacks."""

import sys as _sys
import types as _types

from . import callbacks, datasets, layers, ops, random, utils
from . import metric as _metric
from . import objects as _objects
from .built import Functional, Sequential
from .layer import Layer
from .model import Model
from .files import clone_model, load_model, model_from_json
from .structure import custom_object_scope, register_keras_serializable
from .symbols import Input
from .objects import KerasVariable as Variable  # noqa: F401
from .metric import Metric
from .objects import Initializer, Loss, Optimizer, Regularizer



def _module(name, **names):
    """A namespace such as `keras.optimizers`, which can also be imported."""
    module = _types.ModuleType(f"{__name__}.{name}", f"Keras's `keras.{name}`.")
    module.__dict__.update(names)
    _sys.modules[module.__name__] = module
    return module


def _with_get(name, table, base):
    return _module(f"{name}s", **table, **{base.__name__: base}, get=_objects.getter(name, table, base))


initializers = _with_get("initializer", _objects.INITIALIZERS, _objects.Initializer)
regularizers = _with_get("regularizer", _objects.REGULARIZERS, _objects.Regularizer)
constraints = _with_get("constraint", _objects.CONSTRAINTS, _objects.Constraint)
optimizers = _module(
    "optimizers",
    **_objects.OPTIMIZERS,
    Optimizer=_objects.Optimizer,
    schedules=_module("optimizers.schedules", **_objects.SCHEDULES, LearningRateSchedule=_objects.Schedule),
    get=_objects.get_optimizer,
)
optimizers.legacy = optimizers
_sys.modules[f"{__name__}.optimizers.legacy"] = optimizers
losses = _with_get("losse", _objects.LOSSES, _objects.Loss)
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
):
    _function = _objects.function_of(_name, _short.split()[0])
    for _alias in _short.split():
        setattr(losses, _alias, _function)
        setattr(metrics, _alias, _function)
models = _module("models", Model=Model, Sequential=Sequential, load_model=load_model, model_from_json=model_from_json, clone_model=clone_model)
saving = _module(
    "saving",
    load_model=load_model,
    register_keras_serializable=register_keras_serializable,
    custom_object_scope=custom_object_scope,
)
utils.register_keras_serializable, utils.custom_object_scope = register_keras_serializable, custom_object_scope


def _activations():
    def linear(x):
        return x

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
    )


activations = _activations()


def _clear_session(free_memory=True):
    """Frees what nothing uses: there is no graph that keeps layers alive, and each model counts its own names."""
    import gc

    gc.collect()


_clear_session.__name__ = "clear_session"


def _get_activation(identifier):
    """An activation by its name, or as it is."""
    if identifier is None:
        return activations.linear
    if callable(identifier):
        return identifier
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
        found = vars(module).get(identifier) if isinstance(identifier, str) else None
        if not callable(found):
            return of_class(identifier)
        return found() if isinstance(found, type) else found

    return get


for _functions in (losses, metrics):
    _functions.get = _functions.deserialize = _with_functions(_functions)
backend = _module(
    "backend", floatx=lambda: "float32", epsilon=lambda: 1e-7, image_data_format=lambda: "channels_last", clear_session=_clear_session,
)
utils.clear_session = _clear_session
preprocessing = _module(
    "preprocessing",
    sequence=_module("preprocessing.sequence", pad_sequences=utils.pad_sequences),
    image_dataset_from_directory=utils.image_dataset_from_directory,
    text_dataset_from_directory=utils.text_dataset_from_directory,
    timeseries_dataset_from_array=utils.timeseries_dataset_from_array,
)
