"""Models from files and from JSON."""

import json
import os
import zipfile

from .. import _wgrad
from .built import Functional, Sequential
from .feature_space import FeatureSpace
from .graph_config import connected, layer_of
from .layer import Layer
from .model import Model
from .serialization import deserialize_keras_object
from .structure import _leaves, custom_object_scope


def load_model(filepath, custom_objects=None, compile=True, safe_mode=True):
    """A model from a `.keras` file, or an old HDF5 file of Keras; `custom_objects` has classes and functions of the program by their
    names. The model is compiled as it was, and its optimizer goes on where it stopped."""
    path = os.fspath(filepath)
    if os.path.isdir(path):
        raise ValueError(f"load_model: {path} is a folder; tf.saved_model.load loads SavedModels.")
    if _is_space(path):
        return FeatureSpace.load(path)
    config = json.loads(_wgrad.config_of_file(path))
    model = _made(config, custom_objects, safe_mode)
    model.load_weights(path)
    settings = config.get("compile_config")
    if compile and settings and settings.get("optimizer") is not None:
        _compile(model, settings, custom_objects, path)
    return model


def _made(config, custom_objects, safe_mode=True):
    # Keras's class of `keras.Model(inputs, outputs)` in old files.
    config = config | {"class_name": "Functional"} if config.get("class_name") == "Model" else config
    made = deserialize_keras_object(config, custom_objects, safe_mode)
    if not isinstance(made, Model):
        raise ValueError(f"load_model: the file has a {config.get('class_name')}, which is no model.")
    return made


def _compile(model, settings, custom_objects, path):
    """Compiles a model with the settings in its file, and gives its optimizer the state that is there."""
    try:
        with custom_object_scope(custom_objects or {}):
            model.compile_from_config(settings)
    except (TypeError, ValueError) as error:
        raise type(error)(f"load_model: the settings of compile in {path}: {error} Or load the model with compile=False, and compile it.") from error
    if model.optimizer is not None:
        optimizer, scaling = model.optimizer._state()
        model._file_model().restore_optimizer(optimizer, path, scaling)


def _is_space(path):
    """Whether a file has a FeatureSpace."""
    try:
        with zipfile.ZipFile(path) as file:
            return json.loads(file.read("config.json"))["class_name"] == "FeatureSpace"
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        # The native part says what is wrong with the file.
        return False


def model_from_json(json_string, custom_objects=None):
    """A model from Keras's JSON, with new weights."""
    try:
        config = json.loads(json_string)
    except ValueError as error:
        raise ValueError(f"model_from_json: the text is not valid JSON: {error}.") from error
    return _made(config, custom_objects)


def save_model(model, filepath, overwrite=True):
    """Writes a `.keras` file."""
    model.save(filepath, overwrite)


def save_weights(model, filepath, overwrite=True):
    """Writes the weights of a model."""
    model.save_weights(filepath, overwrite)


def load_weights(model, filepath, skip_mismatch=False):
    """Gives a model the weights of a file."""
    model.load_weights(filepath, skip_mismatch)


def clone_model(model, input_tensors=None, clone_function=None, call_function=None, recursive=False):
    """A model of the same layers, with new weights. `clone_function` makes a layer of each layer of the model, and `input_tensors`
    are the inputs of the new model."""
    if call_function is not None or recursive:
        raise TypeError("clone_model: call_function and recursive are not supported; call clone_model for the models inside.")
    if not isinstance(model, (Sequential, Functional)):
        if input_tensors is not None or clone_function is not None:
            raise ValueError(f"clone_model: {type(model).__name__} is no Sequential and no model of symbols; its layers cannot be cloned.")
        return type(model).from_config(model.get_config())
    if input_tensors is None and clone_function is None:
        return model_from_json(model.to_json())
    config = json.loads(model.to_json())["config"]

    def cloned(name):
        layer = next((layer for layer in model.layers if layer.name == name and isinstance(layer, Layer)), None)
        if layer is None or clone_function is None:
            return None
        made = clone_function(layer)
        if not isinstance(made, Layer):
            raise ValueError(f"clone_model: clone_function returned {made!r} for the layer '{name}'; it must return a layer.")
        return made

    if isinstance(model, Sequential):
        made = Sequential(name=config.get("name"))
        tensors = _leaves(input_tensors)
        for symbol in tensors:
            made.add(symbol)
        for described in config["layers"]:
            is_input = described["class_name"] == "InputLayer"
            if not (is_input and tensors):
                made.add((None if is_input else cloned(described["config"]["name"])) or layer_of(described))
        return made
    given = dict(zip(model.input_names, _leaves(input_tensors)))
    inputs, outputs = connected(config, None, cloned, given)
    return Functional(inputs, outputs, name=config.get("name"))
