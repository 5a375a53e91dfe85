"""Lists and dicts of tensors, the call that runs on this thread, and the classes that a program registers."""

import contextlib
import re
import threading

_context = threading.local()


def _training():
    """Whether the call that runs on this thread is part of training."""
    return getattr(_context, "training", None)


@contextlib.contextmanager
def _in_training(training):
    before = _training()
    _context.training = training
    try:
        yield
    finally:
        _context.training = before


def _listed(values):
    return list(values) if isinstance(values, (list, tuple)) else [values]


def _leaves(values):
    """Tensors in the order of lists and dicts."""
    if isinstance(values, dict):
        return [leaf for key in sorted(values) for leaf in _leaves(values[key])]
    if isinstance(values, (list, tuple)):
        return [leaf for value in values for leaf in _leaves(value)]
    return [] if values is None else [values]


def _structure(values):
    """The leaves of `values`, as `_leaves`, and a function that builds the same of an iterator of other leaves."""
    if isinstance(values, dict):
        keys = sorted(values)
        parts = [_structure(values[key]) for key in keys]
        return [leaf for leaves, _ in parts for leaf in leaves], lambda new: {
            key: build(new) for key, (_, build) in zip(keys, parts)
        }
    if isinstance(values, (list, tuple)):
        parts = [_structure(value) for value in values]
        kind = type(values)

        def rebuild(new):
            made = [build(new) for _, build in parts]
            return kind(*made) if hasattr(kind, "_fields") else kind(made)

        return [leaf for leaves, _ in parts for leaf in leaves], rebuild
    if values is None:
        return [], lambda new: None
    return [values], next


def _snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _by_name(call, parameters, arguments, options):
    """Adds the arguments that are given in order to the options."""
    if len(arguments) > len(parameters):
        raise TypeError(f"{call} takes {len(parameters)} arguments in order, not {len(arguments)}.")
    for name, value in zip(parameters, arguments):
        if name in options:
            raise TypeError(f"{call}: '{name}' is given twice.")
        options[name] = value


# ---- classes of programs in files ----

_REGISTERED = {}


def _registered_name(cls):
    return next((name for name, known in _REGISTERED.items() if known is cls), cls.__name__)


def register_keras_serializable(package="Custom", name=None):
    """Registers a class of a program under its name, so that `load_model` finds it."""

    def register(cls):
        _REGISTERED[f"{package}>{name or cls.__name__}"] = cls
        return cls

    return register


class custom_object_scope:
    """A `with` block in which `load_model` knows these classes."""

    def __init__(self, custom_objects):
        self._objects = dict(custom_objects)

    def __enter__(self):
        self._before = dict(_REGISTERED)
        _REGISTERED.update(self._objects)
        return self

    def __exit__(self, *error):
        _REGISTERED.clear()
        _REGISTERED.update(self._before)


def _named_variables(listing):
    """Names, variables and whether training changes them, as a native object lists them; the variables know their names."""
    for path, variable, _ in listing:
        variable._path, variable._name = path, path.rpartition("/")[2]
    return listing
