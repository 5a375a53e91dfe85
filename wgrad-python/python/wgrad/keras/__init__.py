"""Keras: layers, models, losses, metrics, optimizers and callbacks."""

from types import SimpleNamespace as _Namespace

from . import callbacks, datasets, layers, utils
from . import objects as _objects
from .base import Functional, Input, Layer, Model, Sequential, load_model, model_from_json

initializers = _Namespace(**_objects.INITIALIZERS, Initializer=_objects.Initializer)
regularizers = _Namespace(**_objects.REGULARIZERS)
constraints = _Namespace(**_objects.CONSTRAINTS)
optimizers = _Namespace(
    **_objects.OPTIMIZERS,
    Optimizer=_objects.Optimizer,
    schedules=_Namespace(**_objects.SCHEDULES),
    get=_objects.get_optimizer,
)
optimizers.legacy = optimizers
losses = _Namespace(**_objects.LOSSES, Loss=_objects.Loss)
metrics = _Namespace(**_objects.METRICS, Metric=_objects.Metric)
for _name, _short in (
    ("MeanSquaredError", "mean_squared_error mse MSE"),
    ("MeanAbsoluteError", "mean_absolute_error mae MAE"),
    ("BinaryCrossentropy", "binary_crossentropy"),
    ("CategoricalCrossentropy", "categorical_crossentropy"),
    ("SparseCategoricalCrossentropy", "sparse_categorical_crossentropy"),
    ("Huber", "huber"),
    ("KLDivergence", "kl_divergence"),
):
    for _alias in _short.split():
        setattr(losses, _alias, _objects.function_of(_name))
models = _Namespace(Model=Model, Sequential=Sequential, load_model=load_model, model_from_json=model_from_json)
saving = _Namespace(load_model=load_model)


def _activations():
    from ..ops import FUNCTIONS

    return _Namespace(
        relu=FUNCTIONS["nn.relu"],
        sigmoid=FUNCTIONS["math.sigmoid"],
        tanh=FUNCTIONS["math.tanh"],
        softmax=FUNCTIONS["nn.softmax"],
        gelu=FUNCTIONS["nn.gelu"],
        elu=FUNCTIONS["nn.elu"],
        selu=FUNCTIONS["nn.selu"],
        silu=FUNCTIONS["nn.silu"],
        softplus=FUNCTIONS["math.softplus"],
    )


activations = _activations()
