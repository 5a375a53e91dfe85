"""Layers that a program writes in Python, and what all layers have."""

import inspect
import json
import weakref

import numpy as np

from .. import _wgrad
from ..dtypes import TensorShape, as_name
from ..tensor import Tensor, Variable, convert_to_tensor
from .objects import KerasVariable, initial_value, penalty, plain
from .policies import policy_of, weights_in
from .structure import _context, _in_training, _leaves, _named_variables, _listed, _registered_name, _snake, _structure, _training
from .symbols import Symbol, _connected, _noted


class _Inside:
    """How deep the calls of layers on this thread are."""

    __slots__ = ("layer",)

    def __init__(self, layer):
        self.layer = layer

    def __enter__(self):
        depth = getattr(_context, "depth", 0)
        if depth == 0 and getattr(_context, "has_losses", False):
            # As in Keras, a call from outside begins a new list of losses.
            self.layer._wgrad_take_losses()
        _context.depth = depth + 1

    def __exit__(self, *error):
        _context.depth -= 1


def _walk(root):
    """All layers in a layer, each once."""
    seen, waiting = {id(root)}, [root]
    while waiting:
        layer = waiting.pop()
        yield layer
        for part in layer._inner():
            if id(part) not in seen:
                seen.add(id(part))
                waiting.append(part)


class Layer:
    """A part of a model. A subclass makes its variables in `__init__` or `build` and computes in `call`."""

    # What inputs must be: an `InputSpec` or a list of them.
    input_spec = None

    def __init__(self, *, name=None, trainable=True, dtype=None, activity_regularizer=None, input_shape=None, autocast=True, **options):
        for key in ("dynamic", "quantization_config"):
            if not options.get(key):
                options.pop(key, None)
        if options:
            raise TypeError(f"{type(self).__name__}: there is no option '{next(iter(options))}'.")
        self._policy = policy_of(dtype)
        # Whether the tensors that the layer is called with are cast to the dtype in which it computes.
        self.autocast = autocast
        self.built = False
        self.supports_masking = False
        self._name = name
        self._trainable = trainable
        self._input_shape = input_shape
        self._added_losses = []
        self._activity_regularizer = None if activity_regularizer is None else penalty(activity_regularizer)

    # ---- what programs call ----

    @property
    def name(self):
        return self._name or self.__dict__.get("_wgrad_name") or _snake(type(self).__name__)

    @name.setter
    def name(self, value):
        self._name = value

    @property
    def dtype_policy(self):
        """In which dtype the layer computes, and which dtype its weights have."""
        return self._policy

    @property
    def dtype(self):
        return self._policy.variable_dtype

    variable_dtype = dtype

    @property
    def compute_dtype(self):
        return self._policy.compute_dtype

    def build(self, input_shape):
        """Makes the variables, in the first call."""
        self.built = True

    build.is_default = True

    def call(self, inputs):
        raise NotImplementedError(f"{type(self).__name__} has no method call.")

    def add_weight(self, shape=None, initializer=None, dtype=None, trainable=True, name=None, regularizer=None,
                   constraint=None, **options):
        """Makes a variable of the layer. Optimizers apply the constraint after each step."""
        if isinstance(shape, str):
            # Keras 2 had the name first.
            shape, name = name, shape
        shape = () if shape is None else shape
        shape = [shape] if isinstance(shape, int) else list(shape)
        if any(size is None for size in shape):
            raise ValueError(f"add_weight: the shape {shape} has an open size.")
        dtype = as_name(getattr(dtype, "name", dtype)) or self.variable_dtype
        value = convert_to_tensor(initial_value(initializer, shape, dtype), dtype)
        variable = KerasVariable(value, trainable, constraint=constraint)
        if regularizer is not None:
            variable._regularizer = penalty(regularizer)
        weights = self.__dict__.setdefault("_weights", {})
        name = name or f"weight_{len(weights)}"
        if name in weights:
            name = f"{name}_{len(weights)}"
        weights[name] = variable
        return variable

    def add_loss(self, loss):
        """Adds to the loss of the training step that runs."""
        self._added_losses.extend(_listed(loss))
        _context.has_losses = True

    @property
    def losses(self):
        """What the layer and those in it have added in their last calls, and the penalties of their weights."""
        added = [loss for layer in _walk(self) for loss in layer._added_losses]
        return added + _wgrad.NativeLayer.of_python(self).penalties()

    def __call__(self, *arguments, **named):
        leaves = _leaves((arguments, named))
        if any(isinstance(leaf, Symbol) for leaf in leaves):
            return self._on(arguments, named)
        if not arguments and not named:
            raise TypeError(f"{type(self).__name__}: it was called without a tensor.")
        if "_added_losses" not in self.__dict__:
            raise RuntimeError(f"{type(self).__name__}: call super().__init__() at the beginning of __init__.")
        if arguments and leaves and isinstance(leaves[0], (float, int)):
            # A list of Python's numbers is an array.
            arguments = (convert_to_tensor(arguments[0]), *arguments[1:])
        wanted = self.compute_dtype if self.autocast else None
        arguments = tuple(_converted(argument, wanted) for argument in arguments)
        accepted = _accepted(self)
        training = named.pop("training", None)
        if training is None:
            training = _training()
        if "training" in accepted:
            named["training"] = bool(training)
        mask = None
        if leaves and "mask" in accepted and named.get("mask") is None:
            masks = [getattr(leaf, "_keras_mask", None) for leaf in _leaves(arguments[0] if arguments else named)]
            if any(one is not None for one in masks):
                named["mask"] = masks[0] if len(masks) == 1 else masks
        if leaves and self._passes_masks():
            mask = named.get("mask")
            mask = getattr(leaves[0], "_keras_mask", None) if mask is None else mask
        if self.input_spec is not None and arguments:
            from .composed_layers import check_inputs

            check_inputs(self, self.input_spec, arguments[0])
        with _Inside(self):
            if not self.built:
                self._build(arguments[0] if arguments else next(iter(named.values())))
            with _in_training(training), weights_in(self._policy):
                result = self.call(*arguments, **named)
            if self._activity_regularizer is not None:
                for leaf in _leaves(result):
                    self.add_loss(self._activity_regularizer(leaf) * (1.0 / max(leaf._shape[0], 1)))
        if mask is not None or type(self).compute_mask is not Layer.compute_mask:
            mask = _first(self.compute_mask(arguments[0] if arguments else None, mask))
            if mask is not None and isinstance(result, Tensor):
                result._keras_mask = convert_to_tensor(mask)
        return result

    def _passes_masks(self):
        return self.supports_masking or type(self).compute_mask is not Layer.compute_mask

    def compute_mask(self, inputs, previous_mask=None):
        """The mask of the result; a layer with `supports_masking` passes that of its input on."""
        return previous_mask if self.supports_masking else None

    def compute_output_shape(self, input_shape):
        """The shape of the result, with an open batch if that of the input is open."""
        shapes = input_shape if isinstance(input_shape, list) and isinstance(input_shape[0], (list, tuple)) else [input_shape]
        symbols = [_wgrad.input(list(shape[1:]), shape[0], None, None) for shape in shapes]
        made = self(symbols if shapes is input_shape else symbols[0])
        return made.shape if isinstance(made, Symbol) else [one.shape for one in made]

    def _on(self, arguments, named):
        """The symbols of a call on symbols."""
        named = {key: value for key, value in named.items() if value is not None}
        mask = named.get("mask")
        if len(arguments) == 1 and (not named or set(named) == {"mask"} and isinstance(mask, Symbol)):
            inputs = arguments[0]
            flat = isinstance(inputs, (list, tuple)) and all(isinstance(x, Symbol) for x in inputs)
            if isinstance(inputs, Symbol) or flat and len(inputs) > 1:
                leaves = _listed(inputs)
                results = _wgrad.NativeLayer.of_python(self).on(leaves, self._name, False, mask)
                return self.__dict__["_wgrad_rebuild"](iter(_noted(self, leaves if mask is None else [*leaves, mask], results)))
        return _connected(self, arguments, named)

    def _build(self, inputs):
        leaves, rebuild = _structure(inputs)
        shapes = [TensorShape(leaf._shape) if isinstance(leaf, (Tensor, Variable)) else None for leaf in leaves]
        if not getattr(type(self).build, "is_default", False):
            self._wgrad_building = True
            self.build(rebuild(iter(shapes)))
        if len(shapes) == 1 and shapes[0] is not None:
            self._wgrad_build_shape = [None, *shapes[0][1:]]
        self.built = True
        if not self._trainable:
            self._set_trainable(False)

    def _symbols(self, at, what):
        calls = self.__dict__.get("_calls", ())
        if not calls:
            raise AttributeError(f"{what}: the layer {self.name} was not called on symbols, so it has none.")
        found = [reference() for reference in calls[0][at]]
        if any(symbol is None for symbol in found):
            raise AttributeError(f"{what}: the symbols of the layer {self.name} are gone; keep the model that uses them.")
        return found[0] if len(found) == 1 else found

    @property
    def input(self):
        """The symbols of the first call."""
        return self._symbols(0, "input")

    @property
    def output(self):
        return self._symbols(1, "output")

    def _listing(self):
        """Names, variables, and whether training changes them."""
        return _named_variables(_wgrad.NativeLayer.of_python(self).variables())

    @property
    def variables(self):
        return [variable for _, variable, _ in self._listing()]

    @property
    def trainable_variables(self):
        return [variable for _, variable, trainable in self._listing() if trainable]

    @property
    def non_trainable_variables(self):
        return [variable for _, variable, trainable in self._listing() if not trainable]

    weights = variables
    trainable_weights = trainable_variables
    non_trainable_weights = non_trainable_variables

    @property
    def trainable(self):
        return self._trainable

    @trainable.setter
    def trainable(self, value):
        self._trainable = bool(value)
        self._set_trainable(bool(value))
        for layer in _walk(self):
            layer._trainable = bool(value)

    def _set_trainable(self, value):
        _wgrad.NativeLayer.of_python(self).set_trainable(value)

    def get_weights(self):
        return [variable.numpy() for variable in self.variables]

    def set_weights(self, weights):
        variables = self.variables
        if len(variables) != len(weights):
            raise ValueError(f"set_weights: {len(weights)} arrays were given for {len(variables)} variables.")
        for variable, value in zip(variables, weights):
            if list(np.shape(value)) != list(variable._shape):
                raise ValueError(f"set_weights: an array is {np.shape(value)}, its variable {variable.shape}.")
        for variable, value in zip(variables, weights):
            variable.assign(value)

    def count_params(self):
        return int(sum(np.prod(variable._shape) for variable in self.variables))

    def get_build_config(self):
        """What `build_from_config` needs to make the variables of a layer that was loaded."""
        shape = self.__dict__.get("_wgrad_build_shape")
        return None if shape is None else {"input_shape": shape}

    def build_from_config(self, config):
        """Makes the variables, for the shapes of a config."""
        shapes = (config or {}).get("shapes_dict") or config or {}
        given = shapes.get("input_shape") if "input_shape" in shapes else None
        if given is not None:
            self.build(_shapes(given))
            self.built = True
        elif shapes:
            self.build(**{key: _shapes(shape) for key, shape in shapes.items()})
            self.built = True

    def get_config(self):
        """The options of the layer, as JSON has them."""
        config = {"name": self.name, "trainable": self._trainable}
        # A class of a program that takes no dtype has Keras's default.
        return config if self._policy == policy_of(None) else config | {"dtype": self._policy.name}

    @classmethod
    def from_config(cls, config):
        """A layer with the options of a config."""
        return cls(**config)

    def __repr__(self):
        return f"<{type(self).__name__} name={self.name}>"

    # ---- what the native part calls ----

    def _wgrad_call(self, inputs, training, mask):
        # Layers inside find the masks on their inputs.
        for x, known in zip(inputs, mask if isinstance(mask, list) else [mask]):
            if known is not None:
                x._keras_mask = known
        build = self.__dict__.get("_wgrad_inputs")
        if build is not None and build[0] == len(inputs):
            inputs = build[1](iter(inputs))
            mask = build[1](iter(mask)) if isinstance(mask, list) else mask
        else:
            inputs = inputs[0] if len(inputs) == 1 else list(inputs)
        named = {"mask": mask} if mask is not None and "mask" in _accepted(self) else {}
        result = self(inputs, training=training, **named)
        if isinstance(result, dict):
            self._output_keys = sorted(result)
        leaves, self._wgrad_rebuild = _structure(result)
        return leaves

    def _wgrad_mask(self, inputs, mask):
        if mask is None and type(self).compute_mask is Layer.compute_mask:
            return None
        return _first(self.compute_mask(inputs[0] if len(inputs) == 1 else list(inputs), mask))

    def _wgrad_take_losses(self):
        if not getattr(_context, "has_losses", False):
            return []
        losses = []
        for layer in _walk(self):
            losses.extend(layer._added_losses)
            layer._added_losses = []
        return losses

    def _is_written(self):
        """Whether the program wrote the class."""
        return True

    def _is_native(self):
        return "_native" in self.__dict__

    def _inner(self):
        """The layers that are parts of this one."""
        return [part for _, part in self._wgrad_parts() if isinstance(part, Layer)]

    def _wgrad_config(self):
        return json.dumps({"class_name": _registered_name(type(self)), "config": plain(self.get_config())})

    def _wgrad_parts(self):
        found = []
        own = {id(value) for value in self.__dict__.values() if isinstance(value, Variable)}
        for key, value in self.__dict__.items():
            if key == "_weights":
                # Those that are attributes, too, come under that name.
                found.extend((name, v) for name, v in value.items() if id(v) not in own)
            elif not key.startswith("_wgrad") and key not in ("_native_model", "optimizer", "_calls"):
                found.extend(_parts(key, value))
        # As in Keras: the layer's own variables, those that training changes first, and then those of the layers inside.
        place = lambda part: 2 if not isinstance(part[1], Variable) else 0 if part[1].trainable else 1
        return sorted(found, key=place)


def _first(mask):
    """The mask of a result: of those of several inputs, the first one."""
    each = list(mask.values()) if isinstance(mask, dict) else mask
    return (each[0] if each else None) if isinstance(each, (list, tuple)) else mask


def _shapes(value):
    """The shapes of a config: one, or a list or a dict of them."""
    if isinstance(value, dict):
        return {key: _shapes(shape) for key, shape in value.items()}
    if value is None or all(size is None or isinstance(size, int) for size in value):
        return None if value is None else TensorShape(value)
    return [_shapes(shape) for shape in value]


def _parts(key, value):
    if isinstance(value, (Variable, Layer)):
        return [(key, value)]
    if isinstance(value, (list, tuple)):
        return [part for at, item in enumerate(value) for part in _parts(f"{key}/{at}", item)]
    if isinstance(value, dict):
        return [part for name, item in value.items() for part in _parts(f"{key}/{name}", item)]
    return []


def _accepted(layer):
    """The parameters of a layer's `call`."""
    function = type(layer).call
    known = _PARAMETERS.get(function)
    if known is None:
        known = _PARAMETERS[function] = frozenset(inspect.signature(function).parameters)
    return known


_PARAMETERS = weakref.WeakKeyDictionary()


def _converted(inputs, dtype):
    """Arrays as tensors, and floats in a dtype if there is one."""
    if isinstance(inputs, (list, tuple)):
        made = [_converted(item, dtype) for item in inputs]
        return type(inputs)(*made) if hasattr(inputs, "_fields") else type(inputs)(made)
    if isinstance(inputs, dict):
        return {key: _converted(item, dtype) for key, item in inputs.items()}
    if isinstance(inputs, (np.ndarray, np.generic)):
        if inputs.dtype.kind in "SUO":
            return inputs
        inputs = convert_to_tensor(inputs)
    if isinstance(inputs, Tensor) and dtype in ("float32", "float16") and inputs._dtype != dtype and inputs._dtype.startswith("float"):
        mask = getattr(inputs, "_keras_mask", None)
        inputs = inputs._cast(dtype)
        if mask is not None:
            inputs._keras_mask = mask
    return inputs
