# Written by stubs.py from the tables of the package.
from .built import Sequential as Sequential
from .model import Model as Model
from .files import (
    clone_model as clone_model,
    load_model as load_model,
    model_from_json as model_from_json,
    save_model as save_model,
)
