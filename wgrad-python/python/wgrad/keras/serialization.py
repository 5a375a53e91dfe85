"""Objects as configs, and back: `keras.saving.serialize_keras_object`, and `serialize` and `deserialize` of the modules."""

import sys
import types

import numpy as np

from .. import _wgrad
from ..dtypes import DType, TensorShape
from ..tensor import Tensor, Variable
from .host_layers import HostLayer
from .layer import Layer
from .native import NativeLayer
from .objects import Described
from .structure import _REGISTERED, custom_object_scope

_PLAIN = (str, int, float, bool, type(None))


def get_custom_objects():
    """The dict of the classes and functions that the program has registered."""
    return _REGISTERED


def get_registered_name(obj):
    """The name under which a class or a function is registered, or else its own."""
    return next((name for name, known in _REGISTERED.items() if known is obj), obj.__name__)


def get_registered_object(name, custom_objects=None, module_objects=None):
    """The class or the function of a registered name, or `None`."""
    for table in (custom_objects, _REGISTERED, module_objects):
        if table and name in table:
            return table[name]
    return None


def _place(cls):
    """The module and the name under which Keras exports a class, or `None` for a class of the program."""
    own = cls.__dict__.get("_class") if issubclass(cls, (Described, NativeLayer, HostLayer)) else None
    if own is not None:
        return cls.__module__.removeprefix("wgrad."), own
    if cls.__module__.startswith("wgrad.keras"):
        return {"DTypePolicy": "keras", "Sequential": "keras", "Functional": "keras.src.models.functional"}.get(
            cls.__name__, cls.__module__.removeprefix("wgrad.")
        ), cls.__name__
    return None


def serialize_keras_object(obj):
    """The config of an object: `{"module": .., "class_name": .., "config": .., "registered_name": ..}`."""
    if isinstance(obj, _PLAIN):
        return obj
    if isinstance(obj, TensorShape):
        return list(obj)
    if isinstance(obj, (list, tuple)):
        made = [serialize_keras_object(item) for item in obj]
        return tuple(made) if isinstance(obj, tuple) else made
    if isinstance(obj, dict):
        return {key: serialize_keras_object(value) for key, value in obj.items()}
    if isinstance(obj, bytes):
        return {"class_name": "__bytes__", "config": {"value": obj.decode("utf-8")}}
    if isinstance(obj, (Tensor, Variable)):
        return {"class_name": "__tensor__", "config": {"value": obj.numpy().tolist(), "dtype": obj._dtype}}
    if isinstance(obj, np.ndarray) and obj.ndim:
        return {"class_name": "__numpy__", "config": {"value": obj.tolist(), "dtype": obj.dtype.name}}
    if isinstance(obj, (np.ndarray, np.generic)):
        return obj.item()
    if isinstance(obj, DType):
        return obj.name
    if isinstance(obj, types.FunctionType):
        if obj.__name__ == "<lambda>":
            raise TypeError("serialize_keras_object: a lambda has no name; define a function, and register it.")
        return {"module": "builtins", "class_name": "function", "config": get_registered_name(obj), "registered_name": "function"}
    if not hasattr(obj, "get_config"):
        raise TypeError(f"serialize_keras_object: {type(obj).__name__} has no get_config; define one that returns a dict of options.")
    config = obj.get_config()
    if not isinstance(config, dict):
        raise TypeError(f"serialize_keras_object: get_config of {type(obj).__name__} returned {type(config).__name__}; it must be a dict.")
    return class_entry(type(obj)) | {"config": serialize_keras_object(config)}


def class_entry(cls):
    """What a config says of a class."""
    place = _place(cls)
    module, name = place or (cls.__module__, cls.__name__)
    return {"module": module, "class_name": name, "registered_name": None if place else get_registered_name(cls)}


def _exported(module, name):
    """The class or the function of this package that Keras exports there."""
    if module == "keras.src.models.functional" or name == "Functional":
        from .built import Functional

        return Functional
    for place in (module, "keras.layers", "keras.models", "keras", "keras.optimizers", "keras.losses", "keras.metrics"):
        found = getattr(sys.modules.get(f"wgrad.{place}"), name, None) if place else None
        if callable(found):
            return found
    return None


def _found(config, name, custom_objects):
    for key in (config.get("registered_name"), name):
        found = get_registered_object(key, custom_objects) if key else None
        if found is not None:
            return found
    module = config.get("module")
    if module is None or module == "builtins" or module.partition(".")[0] == "keras":
        found = _exported(module, name)
        if found is not None:
            return found
        if module is not None and module.startswith("keras"):
            raise ValueError(f"deserialize_keras_object: wgrad has no {module}.{name}.")
    raise TypeError(
        f"deserialize_keras_object: '{name}' of the module {module} is not known. Register it with keras.saving.register_keras_serializable, or "
        f"pass custom_objects={{'{name}': ..}}."
    )


_SPECIAL = {
    "__bytes__": lambda config: config["value"].encode("utf-8"),
    "__tensor__": lambda config: _wgrad.constant(config["value"], config["dtype"]),
    "__numpy__": lambda config: np.array(config["value"], dtype=config["dtype"]),
    "__tuple__": lambda config: tuple(deserialize_keras_object(item) for item in config["value"]),
    "__slice__": lambda config: slice(config["start"], config["stop"], config["step"]),
    "__ellipsis__": lambda config: ...,
}


def deserialize_keras_object(config, custom_objects=None, safe_mode=True):
    """The object of a config that `serialize_keras_object`, or Keras, has made."""
    if isinstance(config, str):
        found = get_registered_object(config, custom_objects)
        return config if found is None else found
    if isinstance(config, _PLAIN):
        return config
    if isinstance(config, (list, tuple)):
        return [deserialize_keras_object(item, custom_objects, safe_mode) for item in config]
    if not isinstance(config, dict):
        raise TypeError(f"deserialize_keras_object: a config is {config!r} of {type(config).__name__}; it must be a dict.")
    if "class_name" not in config or "config" not in config:
        return {key: deserialize_keras_object(value, custom_objects, safe_mode) for key, value in config.items()}
    name, options = config["class_name"], config["config"]
    if name in _SPECIAL:
        return _SPECIAL[name](options)
    if name == "__lambda__":
        raise TypeError("deserialize_keras_object: the config has a lambda, whose code is not run. Define a function, and register it.")
    if name == "function":
        return _found(config, options, custom_objects)
    cls = _found(config, name, custom_objects)
    if isinstance(cls, types.FunctionType):
        return cls
    if not hasattr(cls, "from_config"):
        raise TypeError(f"deserialize_keras_object: the class {name} has no from_config.")
    with custom_object_scope(custom_objects or {}):
        try:
            made = cls.from_config(dict(options or {}))
        except TypeError as error:
            if "layers" in (options or ()):
                # A model: the error is that of one of its layers.
                raise
            raise TypeError(f"deserialize_keras_object: {name} cannot be made: {error} Its options are {options}.") from error
        if isinstance(made, Layer) and not made.built and config.get("build_config"):
            _build(made, config["build_config"])
    return made


def _build(layer, config):
    shape = config.get("input_shape")
    is_one = shape is not None and all(size is None or isinstance(size, int) for size in shape)
    # Layers of several inputs are built by their first call, unless their class says how.
    if is_one or not isinstance(layer, NativeLayer) and not getattr(type(layer).build, "is_default", False):
        layer.build_from_config(config)


def deserializer(what, base, get):
    """The function `deserialize` of a module: makes an object of this base of a config, or of a name."""

    def deserialize(config, custom_objects=None):
        if isinstance(config, dict):
            made = deserialize_keras_object(config, custom_objects)
        else:
            made = (get_registered_object(config, custom_objects) if isinstance(config, str) else None) or get(config)
        if not isinstance(made, base) and not callable(made):
            raise ValueError(f"deserialize: {config!r} is no {what}.")
        return made

    return deserialize
