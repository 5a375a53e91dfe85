from . import (
    activations as activations,
    backend as backend,
    callbacks as callbacks,
    config as config,
    constraints as constraints,
    datasets as datasets,
    dtype_policies as dtype_policies,
    initializers as initializers,
    layers as layers,
    losses as losses,
    metrics as metrics,
    mixed_precision as mixed_precision,
    models as models,
    ops as ops,
    optimizers as optimizers,
    random as random,
    regularizers as regularizers,
    saving as saving,
    tree as tree,
    utils as utils,
)
from .built import Functional as Functional, Sequential as Sequential
from .composed_layers import InputSpec as InputSpec
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
from .files import load_model as load_model, model_from_json as model_from_json, save_model as save_model
from .policies import DTypePolicy as DTypePolicy
from .structure import custom_object_scope as custom_object_scope, register_keras_serializable as register_keras_serializable
from .symbols import Input as Input, Symbol as KerasTensor
