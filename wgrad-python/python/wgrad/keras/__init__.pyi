from . import (
    activations as activations,
    callbacks as callbacks,
    constraints as constraints,
    datasets as datasets,
    initializers as initializers,
    layers as layers,
    losses as losses,
    metrics as metrics,
    models as models,
    ops as ops,
    optimizers as optimizers,
    random as random,
    regularizers as regularizers,
    saving as saving,
    utils as utils,
)
from .built import Functional as Functional, Sequential as Sequential
from .layer import Layer as Layer
from .metric import Metric as Metric
from .model import Model as Model
from .objects import (
    Initializer as Initializer,
    KerasVariable as Variable,
    Loss as Loss,
    Optimizer as Optimizer,
    Regularizer as Regularizer,
)
from .files import load_model as load_model, model_from_json as model_from_json
from .structure import custom_object_scope as custom_object_scope, register_keras_serializable as register_keras_serializable
from .symbols import Input as Input
