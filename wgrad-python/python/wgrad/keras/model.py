"""Models: `compile`, `fit`, and the steps that a subclass may define."""

import html
import inspect
import json
import os
import re

import numpy as np

from .. import _wgrad
from ..ops import FUNCTIONS
from ..tape import GradientTape
from ..data import Dataset
from ..errors import FailedPreconditionError
from ..tensor import Tensor, Variable
from .callbacks import BackupAndRestore, History, wrapped
from .file_layout import as_in_files, in_files
from .graph_config import is_functional
from .layer import Layer, _walk
from .native import NativeLayer
from .metric import Mean, Metric
from .objects import get_optimizer
from .policies import LossScaleOptimizer
from .plans import (
    OwnSteps,
    PyDataset,
    _array,
    _factors,
    _flat_callbacks,
    _keys_of,
    _loss_plan,
    _metric_plan,
    _native,
    _symbols_given,
    _values,
    _verbose,
    _weight_plan,
    unpack_x_y_sample_weight,
)
from .structure import _leaves, _structure


def _floats(value):
    """A value, with truth values as floats."""
    if getattr(value, "_dtype", None) == "bool":
        return value._cast("float32")
    return value.astype("float32") if isinstance(value, np.ndarray) and value.dtype == bool else value


def _step_count(x, batch_size, validation_split):
    """The batches of an epoch, for callbacks; `None` if they are not known."""
    if isinstance(x, PyDataset):
        return len(x)
    if isinstance(x, Dataset):
        return x._count
    first = next(iter(_leaves(x)), None)
    if not getattr(first, "shape", None):
        return None
    rows = first.shape[0]
    return -(-int(rows * (1 - (validation_split or 0))) // (batch_size or 32))


class Model(Layer):
    """A model: of symbols, `Model(inputs, outputs)`, or a subclass with layers and a `call`."""

    def __new__(cls, *arguments, **options):
        if _symbols_given(arguments, options):
            return super().__new__(_of_symbols(cls))
        return super().__new__(cls)

    def __init__(self, *arguments, name=None, **options):
        if _symbols_given(arguments, options):
            # A subclass that makes its symbols in its own __init__.
            self.__class__ = _of_symbols(type(self))
            self._begin(*arguments, name=name, **options)
            return
        if arguments:
            raise TypeError(f"{type(self).__name__}: a model is made of symbols: Model(inputs, outputs).")
        super().__init__(name=name, **options)
        self.optimizer = None
        self.stop_training = False
        self.history = None

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """A model with the options of a config, which may be the layers and calls of a model of symbols."""
        if is_functional(config) and _takes_symbols(cls):
            return _of_symbols(cls).from_config(config, custom_objects)
        return cls(**config)

    def _model(self):
        """The native model that trains."""
        if "_native_model" not in self.__dict__:
            self._native_model = _wgrad.NativeModel.of_python(self)
        return self._native_model

    def build(self, input_shape):
        """Makes the variables, for inputs of these shapes: a shape, or a list or a dict of them."""
        is_shape = lambda value: isinstance(value, (list, tuple)) and all(size is None or isinstance(size, int) for size in value)

        def symbols(shapes):
            if is_shape(shapes):
                return _wgrad.input(list(shapes[1:]), shapes[0], None, None)
            if isinstance(shapes, dict):
                return {key: symbols(shape) for key, shape in shapes.items()}
            return [symbols(shape) for shape in shapes]

        # A class with a `build` of its own may call this one in it.
        if not self.built and not self.__dict__.get("_wgrad_building"):
            self(symbols(input_shape))
        self.built = True

    build.is_default = True

    def _has_steps(self):
        """Whether the class defines its own steps."""
        return any(getattr(type(self), step) is not getattr(Model, step) for step in ("train_step", "test_step", "compute_loss", "compute_metrics"))

    def compile(self, optimizer="rmsprop", loss=None, metrics=None, weighted_metrics=None, loss_weights=None,
                run_eagerly=False, auto_scale_loss=True, **options):
        """Sets the optimizer, the loss and the metrics. Those of several outputs are lists, or dicts with the outputs' names. A model
        that was made under the policy `mixed_float16` gets a `LossScaleOptimizer`, unless `auto_scale_loss` is false."""
        for name in options:
            if name not in ("jit_compile", "steps_per_execution"):
                raise TypeError(f"compile: there is no option '{name}'.")
        self.optimizer = get_optimizer(optimizer)
        if auto_scale_loss and self.dtype_policy.name == "mixed_float16" and not isinstance(self.optimizer, LossScaleOptimizer):
            self.optimizer = LossScaleOptimizer(self.optimizer)
        names = self._output_places()
        losses = _loss_plan(loss, names)
        self._loss, self._loss_weights, self._given_metrics, self._given_weighted_metrics = loss, loss_weights, metrics, weighted_metrics
        if loss is not None or "loss" not in self.__dict__:
            # Steps of a program call it: self.loss(y, y_pred).
            self.loss = loss
        self._loss_tracker = Mean(name="loss")
        plan, weighted = _metric_plan(metrics, names), _metric_plan(weighted_metrics, names)
        self._compiled_metrics = [metric for _, group in plan + weighted for metric in group]
        # Steps of a program update the metrics themselves.
        own = self._has_steps()
        native = lambda plan: [] if own else [(output, [_native(value, Metric) for value in group]) for output, group in plan if group]
        self._model().compile(
            self.optimizer._native, losses, native(plan), native(weighted), _weight_plan(loss_weights, names), bool(run_eagerly),
        )

    def _output_places(self):
        """The names under which losses and metrics name outputs, with the native names."""
        return None

    def _data(self, x, y=None, sample_weight=None, call="fit"):
        arrays = (list, tuple, dict, np.ndarray, Tensor, Variable)
        if x is not None and isinstance(x, PyDataset):
            return _wgrad.Data.batches(lambda: (self._batch(x[at]) for at in range(len(x))))
        if x is not None and hasattr(x, "__iter__") and not isinstance(x, arrays) and not hasattr(x, "__array__"):
            if y is not None:
                raise ValueError(f"{call}: y is part of a dataset of pairs; do not give it separately.")
            return _wgrad.Data.batches(lambda: (self._batch(element) for element in x))
        if x is None:
            raise ValueError(f"{call}: give x, the inputs.")
        parts = self._ordered(x, y, sample_weight)
        return _wgrad.Data.arrays(*([_array(value) for value in part] for part in parts))

    def _batch(self, element):
        x, y, weight = (tuple(element) + (None, None))[:3] if isinstance(element, tuple) else (element, None, None)
        return self._ordered(x, y, weight)

    def _ordered(self, x, y, weight):
        """The arrays of a batch in the order of the model's inputs and outputs."""
        leaves, build = _structure(x)
        if hasattr(self, "_stack"):
            # As in Keras, a stack computes with floats where it gets truth values.
            leaves = [_floats(leaf) for leaf in leaves]
        if isinstance(x, dict) or len(leaves) > 1:
            self._wgrad_inputs = len(leaves), build
        targets, build = _structure(y)
        targets = [_floats(target) for target in targets]
        self._wgrad_targets = (len(targets), build) if isinstance(y, dict) else None
        return tuple([leaves, targets, _leaves(weight)])

    def fit(self, x=None, y=None, batch_size=None, epochs=1, verbose="auto", callbacks=None, validation_split=0.0,
            validation_data=None, shuffle=True, class_weight=None, sample_weight=None, initial_epoch=0,
            steps_per_epoch=None, validation_steps=None, validation_batch_size=None, validation_freq=1):
        """Trains the model, and returns the `History`."""
        self._compiled("fit")
        if validation_data is not None:
            if isinstance(validation_data, (tuple, list)):
                validation_data = self._data(*validation_data)
            else:
                validation_data = self._data(validation_data)
        self.stop_training = False
        history = History()
        history.set_model(self)
        params = {"epochs": epochs, "steps": steps_per_epoch or _step_count(x, batch_size, validation_split), "verbose": verbose}
        history.set_params(params)
        callbacks = _flat_callbacks(callbacks)
        if self._has_steps():
            callbacks.insert(0, OwnSteps())
        options = dict(
            epochs=epochs, batch_size=batch_size, verbose=_verbose(verbose), validation_split=validation_split or None,
            validation_data=validation_data, shuffle=bool(shuffle),
            class_weight=None if class_weight is None else [(int(c), float(w)) for c, w in class_weight.items()],
            initial_epoch=initial_epoch, steps_per_epoch=steps_per_epoch, validation_steps=validation_steps,
            validation_batch_size=validation_batch_size, validation_freq=validation_freq,
            callbacks=wrapped(callbacks, self, params),
            backup=next((callback._plan() for callback in callbacks if isinstance(callback, BackupAndRestore)), None),
        )
        values, epochs, _ = self._model().fit(self._data(x, y, sample_weight), options)
        history.history, history.epoch = dict(values), epochs
        self.history = history
        return history

    def evaluate(self, x=None, y=None, batch_size=None, verbose="auto", sample_weight=None, steps=None, callbacks=None,
                 return_dict=False):
        """The loss and the metrics on data: a number, a list, or a dict with `return_dict`."""
        self._compiled("evaluate")
        callbacks, own = _flat_callbacks(callbacks), OwnSteps() if self._has_steps() else None
        if own is not None:
            callbacks.insert(0, own)
        options = {
            "batch_size": batch_size, "verbose": _verbose(verbose), "steps": steps,
            "callbacks": wrapped(callbacks, self, {"verbose": verbose}),
        }
        values = self._model().evaluate(self._data(x, y, sample_weight, "evaluate"), options)
        if own is not None:
            values = list(own.tested.items())
        values.sort(key=lambda value: self._place_of(value[0]))
        self._evaluated = [name for name, _ in values]
        return _values(values, return_dict)

    def _place_of(self, name):
        """The place of a value in the list that `evaluate` returns: the loss, those of outputs, the metrics in their order."""
        metrics = [metric.name for metric in getattr(self, "_compiled_metrics", ())]
        places = lambda name: [at for at, metric in enumerate(metrics) if name == metric or name.endswith(f"_{metric}")]
        # A metric of several numbers has one name for each: precision_0, precision_1, ..
        found = places(name) or places(re.sub(r"_\d+$", "", name))
        return 0 if name == "loss" else 2 + found[0] if found else 1

    @property
    def metrics_names(self):
        names = [name for name in self.history.history if not name.startswith("val_")] if self.history else ["loss"]
        return sorted(getattr(self, "_evaluated", names), key=self._place_of)

    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
        """The outputs as arrays of NumPy."""
        options = {
            "batch_size": batch_size, "verbose": _verbose(verbose), "steps": steps,
            "callbacks": wrapped(_flat_callbacks(callbacks), self, {"verbose": verbose}),
        }
        results = self._model().predict(self._data(x, call="predict"), options)
        return self._rebuilt(results)

    def _rebuilt(self, results):
        build = self.__dict__.get("_wgrad_rebuild")
        if build is not None:
            return build(iter(results))
        return results[0] if len(results) == 1 else results

    def train_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        self._compiled("train_on_batch")
        return self._on_batch(x, y, sample_weight, True, return_dict)

    def test_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        self._compiled("test_on_batch")
        return self._on_batch(x, y, sample_weight, False, return_dict)

    def _on_batch(self, x, y, sample_weight, trains, return_dict):
        values = self._model().on_batch(*self._ordered(x, y, sample_weight), trains)
        return _values(sorted(values, key=lambda value: self._place_of(value[0])), return_dict)

    def predict_on_batch(self, x):
        made, build = _structure(self(x, training=False))
        return build(iter([np.asarray(y) for y in made]))

    # ---- steps that a subclass may define ----

    def train_step(self, data):
        """A step of training on a batch `(x, y)` or `(x, y, sample_weight)`; returns logs. A subclass may define its own."""
        x, y, weight = unpack_x_y_sample_weight(data)
        with GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(x, y, y_pred, weight)
            scaled = self.optimizer.scale_loss(loss)
        self._loss_tracker.update_state(loss, _leaves(x)[0]._shape[0])
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(scaled, variables), variables))
        return self.compute_metrics(x, y, y_pred, weight)

    def test_step(self, data):
        """A step of an evaluation, as `train_step`."""
        x, y, weight = unpack_x_y_sample_weight(data)
        y_pred = self(x, training=False)
        self._loss_tracker.update_state(self.compute_loss(x, y, y_pred, weight), _leaves(x)[0]._shape[0])
        return self.compute_metrics(x, y, y_pred, weight)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The compiled loss, and what layers have added to it."""
        self._compiled("compute_loss")
        total = None
        if self._loss is not None:
            names = self._output_places() or _keys_of(y_pred)
            plan = _loss_plan(self._loss, names)
            predictions, targets = _leaves(y_pred), _leaves(y)
            weights = _leaves(sample_weight) or [None] * len(predictions)
            if plan and isinstance(plan[0], tuple):
                known = dict(plan)
                plan = [known.get(name) for name in (names.values() if isinstance(names, dict) else names or known)]
            elif len(plan) == 1:
                plan = plan * len(predictions)
            factors = _factors(self._loss_weights, names, len(predictions))
            given = iter(targets)
            for loss, prediction, weight, factor in zip(plan, predictions, weights, factors):
                if loss is None:
                    if len(targets) == len(predictions):
                        next(given, None)
                    continue
                target = next(given, None)
                if target is None:
                    raise ValueError("compute_loss: there is no y for an output that has a loss.")
                value = (_wgrad.NativeLoss(loss) if isinstance(loss, str) else loss)(
                    *((target, prediction) if weight is None else (target, prediction, weight))
                )
                value = FUNCTIONS["math.reduce_mean"](value) if value._shape else value
                total = value * factor if total is None else total + value * factor
        for added in self.losses:
            added = FUNCTIONS["math.reduce_sum"](added) if added._shape else added
            total = added if total is None else total + added
        if total is None:
            raise ValueError("compute_loss: the model was compiled without a loss, and no layer adds one.")
        return total

    def compute_metrics(self, x=None, y=None, y_pred=None, sample_weight=None):
        """Adds a batch to the compiled metrics, and returns all results."""
        predictions, targets = _leaves(y_pred), _leaves(y)
        for at, metric in enumerate(self._compiled_metrics):
            if len(predictions) > 1:
                raise ValueError("compute_metrics: update the metrics of several outputs in the step itself.")
            metric.update_state(targets[0], predictions[0], sample_weight)
        return self.get_metrics_result()

    def get_metrics_result(self):
        return {metric.name: metric.result() for metric in self.metrics}

    @property
    def metrics(self):
        """The tracker of the loss, metrics that are attributes, and the compiled ones."""
        found = [self._loss_tracker] if getattr(self, "_loss", None) is not None else []
        for layer in _walk(self):
            for key, value in layer.__dict__.items():
                if key not in ("_loss_tracker", "_compiled_metrics"):
                    listed = value if isinstance(value, (list, tuple)) else [value]
                    found.extend(m for m in listed if isinstance(m, Metric) and not any(m is one for one in found))
        return found + list(getattr(self, "_compiled_metrics", ()))

    def reset_metrics(self):
        for metric in self.metrics:
            metric.reset_state()

    def _wgrad_step(self, name, data):
        if getattr(type(self), name) is getattr(Model, name) and not self._has_steps():
            return None
        x, y, weight = data
        inputs, targets = self.__dict__.get("_wgrad_inputs"), self.__dict__.get("_wgrad_targets")
        x = inputs[1](iter(x)) if inputs and inputs[0] == len(x) else x[0] if len(x) == 1 else tuple(x)
        y = targets[1](iter(y)) if targets and targets[0] == len(y) else y[0] if len(y) == 1 else tuple(y)
        parts = [x, y, weight[0] if len(weight) == 1 else tuple(weight)]
        # Parts without tensors are the last ones.
        while len(parts) > 1 and not data[len(parts) - 1]:
            parts.pop()
        # A batch without targets is the inputs themselves, as in Keras.
        logs = getattr(self, name)(tuple(parts) if len(parts) > 1 else parts[0])
        if not isinstance(logs, dict):
            raise TypeError(f"{name} returned {type(logs).__name__}; it must return a dict of names and values.")
        logs = {key: value for log, result in logs.items()
                for key, value in (result.items() if isinstance(result, dict) else [(log, result)])}
        self._step_logs = logs
        return list(logs.items())

    def _compiled(self, call):
        if self.optimizer is None:
            raise RuntimeError(f"{call}: compile the model first: model.compile(optimizer, loss).")
        if call == "fit" and getattr(self, "_loss", True) is None and not self._has_steps() and not self._may_add_losses():
            raise ValueError("fit: compile the model with a loss; no layer adds one.")

    def _may_add_losses(self):
        """Whether a layer of the program may add losses."""
        own = any(not isinstance(layer, NativeLayer) and layer._is_written() for layer in _walk(self))
        return own or bool(_wgrad.NativeLayer.of_python(self).penalties())

    @property
    def layers(self):
        return self._inner()

    def get_layer(self, name=None, index=None):
        if index is not None:
            return self.layers[index]
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise ValueError(f"get_layer: there is no layer '{name}'; there are {', '.join(layer.name for layer in self.layers)}.")

    def reset_states(self):
        """Makes the next call of all stateful layers begin with the initial states."""
        _wgrad.NativeLayer.of_python(self).reset_states()

    def summary(self, print_fn=print, **options):
        """Prints the layers, and the numbers of parameters: once the optimizer has some, with those."""
        print_fn(self._with_optimizer(self._file_model().summary()))

    def _with_optimizer(self, text):
        """A summary with the optimizer's parameters, as Keras counts them: with the number of steps and the learning rate."""
        if self.optimizer is None or not self.optimizer.built:
            return text
        count, size = self.optimizer._size()
        own = sum(int(np.prod(variable._shape)) for variable in self.variables)
        own_size = sum(int(np.prod(variable._shape)) * np.dtype(variable._dtype).itemsize for variable in self.variables)
        lines = [
            f" Total params: {own + count:,} ({_readable(own_size + size)})" if line.startswith(" Total params:") else line
            for line in text.rstrip("\n").split("\n")
        ]
        return "\n".join([*lines, f" Optimizer params: {count:,} ({_readable(size)})"])

    def _wgrad_parts(self):
        return as_in_files(self, super()._wgrad_parts())

    def _file_model(self):
        """The native model that files and tables describe."""
        return self._model()

    def _repr_html_(self):
        return f"<pre>{html.escape(self._file_model().summary())}</pre>"

    def save_weights(self, filepath, overwrite=True):
        _may_write(filepath, overwrite, "save_weights")
        with in_files(str(filepath).endswith(".h5")):
            self._file_model().save_weights(str(filepath))

    def load_weights(self, filepath, skip_mismatch=False):
        if skip_mismatch:
            raise TypeError("load_weights: skip_mismatch is not supported.")
        path = str(filepath)
        try:
            with in_files(path.endswith((".h5", ".hdf5", ".keras"))):
                self._file_model().load_weights(path)
        except FailedPreconditionError:
            if not self._is_written():
                raise
            # Older files of this package have each attribute at its name.
            try:
                self._file_model().load_weights(path)
            except FailedPreconditionError:
                pass
            else:
                return
            raise

    def save(self, filepath, overwrite=True):
        """Writes a `.keras` file. If the model is compiled, it has the optimizer, its state, the loss and the metrics."""
        _may_write(filepath, overwrite, "save")
        settings = self.get_compile_config()
        state = () if settings is None else (json.dumps(settings), *self.optimizer._state())
        config = self.to_json()
        with in_files(True):
            self._file_model().save(str(filepath), config, *state)

    def get_compile_config(self):
        """What `compile` was given, as Keras's files have it; `None` if it cannot be written."""
        from .serialization import serialize_keras_object

        if self.optimizer is None or self.optimizer._class is None:
            return None
        given = {
            "optimizer": self.optimizer, "loss": self._loss, "metrics": self._given_metrics, "loss_weights": self._loss_weights,
            "weighted_metrics": self._given_weighted_metrics,
        }
        try:
            return {key: serialize_keras_object(value) for key, value in given.items()}
        except TypeError:
            # A lambda, or a class without a config.
            return None

    def compile_from_config(self, config):
        """Compiles the model with what `get_compile_config` has returned."""
        from .serialization import deserialize_keras_object

        known = ("optimizer", "loss", "metrics", "weighted_metrics", "loss_weights", "run_eagerly")
        self.compile(**{key: deserialize_keras_object(config[key]) for key in known if config.get(key) is not None})

    def export(self, filepath, format="tf_saved_model"):
        """Writes a SavedModel with the function `serve`, as Keras's `model.export`."""
        if format != "tf_saved_model":
            raise ValueError(f"export: the format {format!r} is not supported; use 'tf_saved_model', or wgrad.onnx.save.")
        self._file_model().export(str(filepath), self._front_plan())

    def to_json(self):
        text, front = self._config_text(), self._front_plan()
        return text if front is None else _wgrad.front_into_json(text, front)

    def _config_text(self):
        """The class and the config of the model as JSON."""
        from .serialization import serialize_keras_object

        described = serialize_keras_object(self)
        build = self.get_build_config()
        return json.dumps(described if build is None else described | {"build_config": build})

    def _front_plan(self):
        """The layers for strings in front of the model, as the native part writes them."""
        return None


def _readable(size):
    """A number of bytes as Keras prints it."""
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if size < 1024:
            return f"{size:.2f} {unit}"
        size /= 1024
    return f"{size:.2f} PB"


def _takes_symbols(cls):
    """Whether a class is made of `inputs` and `outputs`, as `Model` is."""
    parameters = inspect.signature(cls.__init__).parameters
    given = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters.values())
    return given or {"inputs", "outputs"} <= set(parameters)


def _may_write(path, overwrite, call):
    if not overwrite and os.path.exists(path):
        raise FileExistsError(f"{call}: {path} exists, and overwrite is False.")


def _of_symbols(cls):
    """The class of models of symbols with the methods of `cls`."""
    from .built import of_symbols

    return of_symbols(cls)
