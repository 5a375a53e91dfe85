"""Models from files and from JSON."""

import json
import os
import zipfile

from .. import _wgrad
from .built import Functional, Sequential
from .composed_layers import OF_FILES
from .feature_space import FeatureSpace
from .fronts import Front
from .layer import Layer
from .metric import METRICS
from .objects import LOSSES, OPTIMIZERS, SCHEDULES
from .settings import _object_of, _settings_of
from .structure import _REGISTERED


def _custom(custom_objects):
    found = []
    for name, cls in {**OF_FILES, **_REGISTERED, **(custom_objects or {})}.items():
        if isinstance(cls, type) and issubclass(cls, Layer):
            made = lambda text, cls=cls: cls.from_config(json.loads(text))
            found.extend({(key, False, made) for key in (name, cls.__name__)})
    return found


def load_model(filepath, custom_objects=None, compile=True):
    """A model from a `.keras` file; `custom_objects` has the classes of layers that the program defines."""
    path = str(filepath)
    if os.path.isdir(path):
        raise ValueError(f"load_model: {path} is a folder; tf.saved_model.load loads SavedModels.")
    if _is_space(path):
        return FeatureSpace.load(path)
    settings = _settings_of(path) if compile else None
    native, plan = _wgrad.load(path=path, compile=compile and settings is None, custom=_custom(custom_objects))
    kind = Sequential if json.loads(native.to_json())["class_name"] == "Sequential" else Functional
    model = kind._of(native)
    if plan is not None:
        model._take_front(Front.of_plan(plan))
    if settings is not None:
        model.compile(
            _object_of(settings["optimizer"], (OPTIMIZERS, SCHEDULES)), _object_of(settings["loss"], (LOSSES,)),
            metrics=_object_of(settings.get("metrics"), (METRICS,)), loss_weights=settings.get("loss_weights"),
        )
        native.restore_optimizer(model.optimizer._with_state()._native, path)
    return model


def _is_space(path):
    """Whether a file has a FeatureSpace."""
    try:
        with zipfile.ZipFile(path) as file:
            return json.loads(file.read("config.json"))["class_name"] == "FeatureSpace"
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        # The native part says what is wrong with the file.
        return False


def model_from_json(json_string, custom_objects=None):
    """A model from Keras's JSON, without weights."""
    separated = _wgrad.front_of_json(json_string)
    text, plan = separated or (json_string, None)
    native, _ = _wgrad.load(json=text, custom=_custom(custom_objects))
    model = (Sequential if json.loads(text)["class_name"] == "Sequential" else Functional)._of(native)
    if plan is not None:
        model._take_front(Front.of_plan(plan))
    return model


def save_model(model, filepath, overwrite=True):
    """Writes a `.keras` file."""
    model.save(filepath, overwrite)


def save_weights(model, filepath, overwrite=True):
    """Writes the weights of a model."""
    model.save_weights(filepath, overwrite)


def load_weights(model, filepath, skip_mismatch=False):
    """Gives a model the weights of a file."""
    model.load_weights(filepath, skip_mismatch)


def clone_model(model, input_tensors=None, clone_function=None):
    """A model of the same layers, with new weights."""
    if input_tensors is not None or clone_function is not None:
        raise TypeError("clone_model: input_tensors and clone_function are not supported.")
    return model_from_json(model.to_json())
