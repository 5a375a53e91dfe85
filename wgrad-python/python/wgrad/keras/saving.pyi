# Written by stubs.py from the tables of the package.
from .files import load_model as load_model
from .structure import (
    custom_object_scope as custom_object_scope,
    register_keras_serializable as register_keras_serializable,
)
