"""Layers and models: those of wgrad, and those that a program writes in Python."""

import contextlib
import html
import inspect
import json
import re
import threading

import numpy as np

from .. import _wgrad
from ..dtypes import TensorShape, as_dtype, as_name
from ..tensor import Tensor, Variable, convert_to_tensor
from ..ops import FUNCTIONS
from .callbacks import History, wrapped
from .objects import Loss, Metric, Optimizer, get_optimizer, initial_value, plain

Symbol = _wgrad.Symbol
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


def _snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _operator(name, swapped=False):
    return lambda self, other: self.with_op(name, other, swapped)


for _name, _op, _swapped in (
    ("__add__", "add", False), ("__radd__", "add", True), ("__mul__", "multiply", False), ("__rmul__", "multiply", True),
    ("__sub__", "subtract", False), ("__rsub__", "subtract", True), ("__truediv__", "divide", False),
):
    setattr(Symbol, _name, _operator(_op, _swapped))
Symbol.dtype = property(lambda self: as_dtype(self._dtype))
Symbol.__repr__ = lambda self: f"<KerasTensor shape={tuple(self.shape)}, dtype={self._dtype}>"


def Input(shape=None, batch_size=None, dtype=None, name=None, batch_shape=None):
    """The symbol of a model's input; `shape` is that of an example."""
    if batch_shape is not None:
        batch_size, shape = batch_shape[0], batch_shape[1:]
    if shape is None:
        raise ValueError("Input: give the shape of an example, such as (28, 28, 1).")
    return _wgrad.input(list(shape), batch_size, as_name(dtype), name)


def _noted(layer, inputs, results):
    """The symbols that a layer made, with a note of it."""
    for result in results:
        result._made = layer, inputs
    return results[0] if len(results) == 1 else results


def _made_by(symbols):
    """The layers that lead to symbols, from the first on."""
    found, seen, waiting = {}, set(), [(symbol, False) for symbol in reversed(symbols)]
    while waiting:
        symbol, done = waiting.pop()
        made = getattr(symbol, "_made", None)
        if made is None:
            continue
        layer, inputs = made
        if done:
            found.setdefault(id(layer), layer)
        elif id(symbol) not in seen:
            seen.add(id(symbol))
            waiting.append((symbol, True))
            waiting.extend((x, False) for x in reversed(inputs))
    return list(found.values())


class Layer:
    """A part of a model. A subclass makes its variables in `__init__` or `build` and computes in `call`."""

    def __init__(self, *, name=None, trainable=True, dtype=None, **options):
        if options:
            raise TypeError(f"{type(self).__name__}: there is no option '{next(iter(options))}'.")
        self.built = False
        self._name = name
        self._trainable = trainable
        self._added_losses = []

    # ---- what programs call ----

    @property
    def name(self):
        return self._name or _snake(type(self).__name__)

    def build(self, input_shape):
        """Makes the variables, in the first call."""

    def call(self, inputs):
        raise NotImplementedError(f"{type(self).__name__} has no method call.")

    def add_weight(self, shape=None, initializer=None, dtype="float32", trainable=True, name=None, regularizer=None,
                   constraint=None):
        """Makes a variable of the layer."""
        if regularizer is not None or constraint is not None:
            raise TypeError("add_weight: regularizers and constraints are not supported; call add_loss in call, or assign.")
        shape = () if shape is None else shape
        shape = [shape] if isinstance(shape, int) else list(shape)
        if any(size is None for size in shape):
            raise ValueError(f"add_weight: the shape {shape} has an open size.")
        variable = Variable(initial_value(initializer, shape, as_name(dtype) or "float32"), trainable)
        weights = self.__dict__.setdefault("_weights", {})
        weights[name or f"weight_{len(weights)}"] = variable
        return variable

    def add_loss(self, loss):
        """Adds to the loss of the training step that runs."""
        self._added_losses.extend(_listed(loss))
        _context.has_losses = True

    @property
    def losses(self):
        return list(self._added_losses)

    def __call__(self, inputs, *arguments, training=None, **named):
        leaves = _leaves(inputs)
        if any(isinstance(leaf, Symbol) for leaf in leaves):
            return _noted(self, leaves, _wgrad.NativeLayer.of_python(self).on(leaves, self._name))
        inputs = _converted(inputs)
        if training is None:
            training = _training()
        accepted = _accepted(self)
        if "training" in accepted:
            named["training"] = bool(training)
        if not self.built:
            self._build(inputs)
        with _in_training(training):
            return self.call(inputs, *arguments, **named)

    def _build(self, inputs):
        leaves = _leaves(inputs)
        shapes = [TensorShape(leaf._shape) for leaf in leaves]
        if type(self).build is not Layer.build:
            self.build(shapes[0] if len(shapes) == 1 else shapes)
        self.built = True
        if not self._trainable:
            self._set_trainable(False)

    @property
    def variables(self):
        return [variable for _, variable, _ in _wgrad.NativeLayer.of_python(self).variables()]

    @property
    def trainable_variables(self):
        listed = _wgrad.NativeLayer.of_python(self).variables()
        return [variable for _, variable, trainable in listed if trainable]

    @property
    def non_trainable_variables(self):
        listed = _wgrad.NativeLayer.of_python(self).variables()
        return [variable for _, variable, trainable in listed if not trainable]

    weights = variables
    trainable_weights = trainable_variables
    non_trainable_weights = non_trainable_variables

    @property
    def trainable(self):
        return self._trainable

    @trainable.setter
    def trainable(self, value):
        self._trainable = value
        self._set_trainable(value)

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

    def get_config(self):
        return {"name": self.name}

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    def __repr__(self):
        return f"<{type(self).__name__} name={self.name}>"

    # ---- what the native part calls ----

    def _wgrad_call(self, inputs, training, mask):
        inputs = inputs[0] if len(inputs) == 1 else list(inputs)
        return _leaves(self(inputs, training=training))

    def _wgrad_take_losses(self):
        if not getattr(_context, "has_losses", False):
            return []
        losses, seen, waiting = [], {id(self)}, [self]
        while waiting:
            layer = waiting.pop()
            losses.extend(layer._added_losses)
            layer._added_losses = []
            parts = layer.__dict__.get("_stack") or [part for _, part in layer._wgrad_parts()]
            for part in parts:
                if isinstance(part, Layer) and not part._is_native() and id(part) not in seen:
                    seen.add(id(part))
                    waiting.append(part)
        return losses

    def _is_native(self):
        return "_native" in self.__dict__

    def _wgrad_config(self):
        return json.dumps({"class_name": type(self).__name__, "config": plain(self.get_config())})

    def _wgrad_parts(self):
        found = []
        for key, value in self.__dict__.items():
            if key == "_weights":
                # Those that are attributes, too, come under that name.
                own = [v for v in self.__dict__.values() if isinstance(v, Variable)]
                found.extend((name, v) for name, v in value.items() if not any(v is other for other in own))
            elif not key.startswith("_wgrad") and key not in ("_native_model", "optimizer"):
                found.extend(_parts(key, value))
        return found


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
    return inspect.signature(layer.call).parameters


def _converted(inputs):
    if isinstance(inputs, (list, tuple)):
        return type(inputs)(_converted(item) for item in inputs)
    if isinstance(inputs, dict):
        return {key: _converted(item) for key, item in inputs.items()}
    return inputs if inputs is None else convert_to_tensor(inputs)


class NativeLayer(Layer):
    """A layer of wgrad, with Keras's options."""

    _class = None
    _parameters = ()
    _merges = False
    _sizes = None

    def __init__(self, *arguments, name=None, trainable=True, input_shape=None, **options):
        super().__init__(name=name, trainable=trainable)
        if len(arguments) > len(self._parameters):
            raise TypeError(f"{self._class} takes {len(self._parameters)} arguments in order, not {len(arguments)}.")
        for key, value in zip(self._parameters, arguments):
            if key in options:
                raise TypeError(f"{self._class}: '{key}' is given twice.")
            options[key] = value
        if "pool_size" in self._parameters:
            options.setdefault("pool_size", 2)
        self._input_shape = input_shape
        config = {key: self._option(key, value) for key, value in options.items() if value is not None}
        self._native = _wgrad.NativeLayer(json.dumps({"class_name": self._class, "config": config}), self._merges)
        if not trainable:
            self._native.set_trainable(False)

    def _option(self, key, value):
        if isinstance(value, NativeLayer):
            # A layer inside this one, such as that of Bidirectional.
            return json.loads(value._native.config()) | {"module": "keras.layers", "registered_name": None}
        if key == "dtype":
            return as_name(value)
        if self._sizes and key in ("kernel_size", "strides", "dilation_rate", "pool_size", "size") and isinstance(value, int):
            return [value] * self._sizes
        return plain(value)

    def __call__(self, inputs, training=None, mask=None):
        leaves = _leaves(inputs)
        if any(isinstance(leaf, Symbol) for leaf in leaves):
            return _noted(self, leaves, self._native.on(leaves, self._name))
        training = bool(_training() if training is None else training)
        results = self._native.call(leaves, training, mask)
        self.built = True
        return results[0] if len(results) == 1 else results

    def _native_variables(self):
        return self._native.variables()

    @property
    def variables(self):
        return [variable for _, variable, _ in self._native.variables()]

    @property
    def trainable_variables(self):
        return [variable for _, variable, trainable in self._native.variables() if trainable]

    @property
    def non_trainable_variables(self):
        return [variable for _, variable, trainable in self._native.variables() if not trainable]

    weights = variables
    trainable_weights = trainable_variables
    non_trainable_weights = non_trainable_variables

    def _set_trainable(self, value):
        self._native.set_trainable(value)

    def __getattr__(self, name):
        # Weights by their names: layer.kernel.
        if not name.startswith("_"):
            for known, variable, _ in self._native.variables():
                if known == name:
                    return variable
            options = json.loads(self._native.config())["config"]
            if name in options:
                return options[name]
        raise AttributeError(f"{self._class} has no attribute '{name}'.")

    def get_config(self):
        return json.loads(self._native.config())["config"] | {"name": self.name}


class Model(Layer):
    """A model: of symbols, `Model(inputs, outputs)`, or a subclass with layers and a `call`."""

    def __new__(cls, *arguments, **options):
        if cls is Model and (arguments or "inputs" in options):
            return super().__new__(Functional)
        return super().__new__(cls)

    def __init__(self, *, name=None, **options):
        super().__init__(name=name, **options)
        self.optimizer = None
        self.stop_training = False
        self.history = None

    def _model(self):
        """The native model."""
        if "_native_model" not in self.__dict__:
            self._native_model = _wgrad.NativeModel.of_python(self)
        return self._native_model

    def compile(self, optimizer="rmsprop", loss=None, metrics=None, weighted_metrics=None, loss_weights=None,
                run_eagerly=False, **options):
        """Sets the optimizer, the loss and the metrics."""
        for name in options:
            if name not in ("jit_compile", "steps_per_execution", "auto_scale_loss"):
                raise TypeError(f"compile: there is no option '{name}'.")
        self.optimizer = get_optimizer(optimizer)
        if loss is None:
            raise ValueError("compile: give a loss.")
        if isinstance(loss, dict) or isinstance(metrics, dict):
            raise TypeError("compile: give losses as a list in the order of the outputs, and metrics of the first output.")
        self._loss, self._metrics = loss, [_metric(value) for value in metrics or ()]
        native = [_native(value, Loss) for value in _listed(loss)]
        self._model().compile(
            self.optimizer._native, native, [_native(value, Metric) for value in metrics or ()],
            [_native(value, Metric) for value in weighted_metrics or ()], loss_weights, run_eagerly,
        )

    def _data(self, x, y=None, sample_weight=None):
        if x is not None and (hasattr(x, "__iter__") and not isinstance(x, (list, tuple, dict, np.ndarray, Tensor, Variable))):
            if y is not None:
                raise ValueError("fit: y is part of a dataset of pairs; do not give it separately.")
            return _wgrad.Data.batches(lambda: (_batch(element) for element in x))
        arrays = [[_array(value) for value in _leaves(part)] for part in (x, y, sample_weight)]
        return _wgrad.Data.arrays(*arrays)

    def fit(self, x=None, y=None, batch_size=None, epochs=1, verbose="auto", callbacks=None, validation_split=0.0,
            validation_data=None, shuffle=True, class_weight=None, sample_weight=None, initial_epoch=0,
            steps_per_epoch=None, validation_steps=None, validation_batch_size=None, validation_freq=1):
        """Trains the model, and returns the `History`."""
        self._compiled("fit")
        if validation_data is not None:
            validation_data = self._data(*validation_data) if isinstance(validation_data, tuple) else self._data(validation_data)
        self.stop_training = False
        history = History()
        history.set_model(self)
        params = {"epochs": epochs, "steps": steps_per_epoch, "verbose": verbose}
        options = dict(
            epochs=epochs, batch_size=batch_size, verbose=_verbose(verbose), validation_split=validation_split or None,
            validation_data=validation_data, shuffle=shuffle,
            class_weight=None if class_weight is None else [(int(c), float(w)) for c, w in class_weight.items()],
            initial_epoch=initial_epoch, steps_per_epoch=steps_per_epoch, validation_steps=validation_steps,
            validation_batch_size=validation_batch_size, validation_freq=validation_freq,
            callbacks=wrapped(callbacks, self, params),
        )
        values, epochs, _ = self._model().fit(self._data(x, y, sample_weight), options)
        history.history, history.epoch = dict(values), epochs
        self.history = history
        return history

    def evaluate(self, x=None, y=None, batch_size=None, verbose="auto", sample_weight=None, steps=None, return_dict=False):
        """The loss and the metrics on data: a number, a list, or a dict with `return_dict`."""
        self._compiled("evaluate")
        options = {"batch_size": batch_size, "verbose": _verbose(verbose), "steps": steps}
        values = self._model().evaluate(self._data(x, y, sample_weight), options)
        values.sort(key=lambda value: value[0] != "loss")
        if return_dict:
            return dict(values)
        return values[0][1] if len(values) == 1 else [value for _, value in values]

    @property
    def metrics_names(self):
        names = [name for name in self.history.history if not name.startswith("val_")] if self.history else ["loss"]
        return sorted(names, key=lambda name: name != "loss")

    def predict(self, x, batch_size=None, verbose="auto", steps=None):
        """The outputs as arrays of NumPy."""
        options = {"batch_size": batch_size, "verbose": _verbose(verbose), "steps": steps}
        results = self._model().predict(self._data(x), options)
        return results[0] if len(results) == 1 else results

    def train_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        self._compiled("train_on_batch")
        return _values(self._model().on_batch(_leaves(x), _leaves(y), _leaves(sample_weight), True), return_dict)

    def test_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        self._compiled("test_on_batch")
        return _values(self._model().on_batch(_leaves(x), _leaves(y), _leaves(sample_weight), False), return_dict)

    def predict_on_batch(self, x):
        return np.asarray(self(x, training=False))

    # ---- steps that a subclass may define ----

    def train_step(self, data):
        """A step of training on a batch `(x, y)` or `(x, y, sample_weight)`; returns logs. A subclass may define its own."""
        raise NotImplementedError

    def test_step(self, data):
        """A step of an evaluation, as `train_step`."""
        raise NotImplementedError

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None):
        """The compiled loss, and what layers have added to it."""
        self._compiled("compute_loss")
        loss = self._loss
        if isinstance(loss, str):
            loss = _wgrad.NativeLoss(loss)
        value = loss(y, y_pred) if sample_weight is None else loss(y, y_pred, sample_weight)
        if value._shape:
            value = FUNCTIONS["math.reduce_mean"](value)
        for added in self._wgrad_take_losses():
            value = value + added
        return value

    @property
    def metrics(self):
        """The compiled metrics, for steps of a subclass."""
        return list(getattr(self, "_metrics", ()))

    def reset_metrics(self):
        for metric in self.metrics:
            metric.reset_state()

    def _wgrad_step(self, name, data):
        if getattr(type(self), name) is getattr(Model, name):
            return None
        # Parts without tensors are the last ones.
        logs = getattr(self, name)(tuple(part[0] if len(part) == 1 else tuple(part) for part in data if part))
        if not isinstance(logs, dict):
            raise TypeError(f"{name} returned {type(logs).__name__}; it must return a dict of names and values.")
        return list(logs.items())

    def _compiled(self, call):
        if self.optimizer is None:
            raise RuntimeError(f"{call}: compile the model first: model.compile(optimizer, loss).")

    @property
    def layers(self):
        return [value for _, value in self._wgrad_parts() if isinstance(value, Layer)]

    def get_layer(self, name=None, index=None):
        if index is not None:
            return self.layers[index]
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise ValueError(f"get_layer: there is no layer '{name}'; there are {', '.join(layer.name for layer in self.layers)}.")

    def summary(self, print_fn=print):
        print_fn(self._model().summary())

    def _repr_html_(self):
        return f"<pre>{html.escape(self._model().summary())}</pre>"

    def save_weights(self, filepath, overwrite=True):
        self._model().save_weights(str(filepath))

    def load_weights(self, filepath):
        self._model().load_weights(str(filepath))

    def save(self, filepath, overwrite=True):
        self._model().save(str(filepath))

    def to_json(self):
        return self._model().to_json()


def _metric(value):
    """A metric as an object that a step can update."""
    if isinstance(value, Metric):
        return value
    metric = Metric(name=value if isinstance(value, str) else value.__name__)
    if isinstance(value, str):
        metric._native = _wgrad.NativeMetric(value) if value not in ("accuracy", "acc") else None
    return metric


def _values(values, return_dict):
    if return_dict:
        return dict(values)
    return values[0][1] if len(values) == 1 else [value for _, value in values]


def _verbose(verbose):
    return None if verbose == "auto" else int(verbose)


def _native(value, kind):
    """The native form of a loss or a metric, a name, or a function."""
    if isinstance(value, kind):
        return value._native if value._native is not None else value.call
    return value


def _array(value):
    if isinstance(value, (Tensor, np.ndarray)):
        return np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value
    array = np.asarray(value)
    return array


def _batch(element):
    if isinstance(element, tuple):
        parts = [_leaves(part) for part in element[:3]]
    else:
        parts = [_leaves(element)]
    return tuple(parts + [[]] * (3 - len(parts)))


class _Built(Model):
    """A model whose native form consists of native layers."""

    def __call__(self, inputs, training=None, mask=None):
        leaves = _leaves(inputs)
        if any(isinstance(leaf, Symbol) for leaf in leaves):
            return self._on(leaves)
        results = self._model().call(leaves, bool(_training() if training is None else training))
        return results[0] if len(results) == 1 else results

    def call(self, inputs, training=None):
        return self(inputs, training=training)

    @property
    def _native(self):
        return self._model()

    @property
    def variables(self):
        return [variable for _, variable, _ in self._model().variables()]

    @property
    def trainable_variables(self):
        return [variable for _, variable, trainable in self._model().variables() if trainable]

    @property
    def non_trainable_variables(self):
        return [variable for _, variable, trainable in self._model().variables() if not trainable]

    weights = variables
    trainable_weights = trainable_variables
    non_trainable_weights = non_trainable_variables

    def _set_trainable(self, value):
        self._model().set_trainable(value)

    def build(self, input_shape):
        self._model().build(list(input_shape))
        self.built = True

    def _wgrad_parts(self):
        return [("model", self._model())]

    def _on(self, symbols):
        return _noted(self, symbols, _wgrad.NativeLayer.of_python(self).on(symbols, self._name))

    @classmethod
    def _of(cls, native, name=None):
        model = cls.__new__(cls)
        Model.__init__(model, name=name)
        model._native_model = native
        optimizer = native.optimizer()
        model.optimizer = None if optimizer is None else Optimizer._of(optimizer)
        return model


class Sequential(_Built):
    """A stack of layers."""

    def __init__(self, layers=None, name=None):
        super().__init__(name=name)
        self._stack = []
        self._shape = None
        for layer in layers or ():
            self.add(layer)

    def add(self, layer):
        if isinstance(layer, Symbol):
            self._shape = layer.shape
            return
        if not isinstance(layer, Layer):
            raise TypeError(f"Sequential: {layer!r} is no layer.")
        if self._shape is None and getattr(layer, "_input_shape", None) is not None:
            self._shape = [None, *layer._input_shape]
        if "_native_model" in self.__dict__:
            if "_stack" not in self.__dict__:
                raise ValueError("Sequential: a loaded model takes no more layers; make a new one.")
            del self._native_model
        self._stack.append(layer)

    def pop(self):
        self.__dict__.pop("_native_model", None)
        return self._stack.pop()

    @property
    def layers(self):
        return list(self.__dict__.get("_stack", ()))

    def _model(self):
        if "_native_model" not in self.__dict__:
            native = [
                (layer._name, layer._native if layer._is_native() else _wgrad.NativeLayer.of_python(layer))
                for layer in self._stack
            ]
            self._native_model = _wgrad.NativeModel.sequential(self._name, native)
            if self._shape is not None and all(layer._is_native() for layer in self._stack):
                self._native_model.build(list(self._shape))
        return self._native_model


class Functional(_Built):
    """A model of the layers between symbols."""

    def __init__(self, inputs=None, outputs=None, name=None):
        Model.__init__(self, name=name)
        self.inputs, self.outputs = _leaves(inputs), _leaves(outputs)
        self._native_model = _wgrad.NativeModel.functional(name, self.inputs, self.outputs)

    def _model(self):
        return self._native_model

    @property
    def layers(self):
        return _made_by(self.__dict__.get("outputs", []))


def load_model(filepath, custom_objects=None, compile=True):
    """A model from a `.keras` file."""
    if custom_objects:
        raise TypeError("load_model: layers written in Python are not supported in files; use load_weights.")
    native = _wgrad.load(path=str(filepath), compile=compile)
    return Sequential._of(native) if "Sequential" in native.to_json()[:200] else Functional._of(native)


def model_from_json(json_string):
    """A model from Keras's JSON, without weights."""
    native = _wgrad.load(json=json_string)
    return Sequential._of(native) if json.loads(json_string)["class_name"] == "Sequential" else Functional._of(native)
