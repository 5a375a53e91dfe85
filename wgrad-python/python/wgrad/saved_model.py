"""SavedModels and ONNX models: loading and writing them."""

import inspect

from . import _wgrad, errors
from .concrete_function import ConcreteFunction
from .strings import host_array, noted
from .tape import Function, TensorSpec, _flat
from .tensor import convert_to_tensor


# What holds values of dtypes that devices do not have.
_WIDER = {"int8": "int32", "int16": "int32", "uint16": "uint32"}


class SavedFunction:
    """A function of a loaded model. It takes tensors and arrays of strings by name, or in order, and returns a dict of them."""

    def __init__(self, native, keep=None):
        self._native, self._keep = native, keep
        self._inputs, self._outputs = native.inputs(), native.outputs()

    @property
    def name(self):
        return self._native.name

    @property
    def structured_input_signature(self):
        return (), {name: _spec(*spec) for name, *spec in self._inputs}

    @property
    def structured_outputs(self):
        return {name: _spec(*spec) for name, *spec in self._outputs}

    def __call__(self, *arguments, **named):
        names = [name for name, *_ in self._inputs]
        if len(arguments) > len(names):
            raise TypeError(f"{self.name}: there are {len(arguments)} arguments, and the function takes {len(names)}: {', '.join(names)}.")
        for name, value in zip(names, arguments):
            if name in named:
                raise TypeError(f"{self.name}: the argument '{name}' is given twice.")
            named[name] = value
        dtypes = {name: dtype for name, dtype, _ in self._inputs}
        given, texts = {}, {}
        for name, value in named.items():
            if dtypes.get(name) == "string":
                texts[name] = host_array(value)
            else:
                given[name] = convert_to_tensor(value, _WIDER.get(dtypes.get(name), dtypes.get(name)))
        results, texts = self._native.call(given, texts)
        return results | {name: noted(text) for name, text in texts.items()}

    def __repr__(self):
        inputs = ", ".join(f"{name}: {dtype}" for name, dtype, _ in self._inputs)
        return f"<SavedFunction {self.name}({inputs}) -> {', '.join(name for name, *_ in self._outputs)}>"


def _spec(dtype, shape):
    return TensorSpec([None] if shape is None else shape, dtype)


class _Object:
    """A loaded model: its signatures, and its functions as methods."""

    def __init__(self, native):
        self._native = native
        self.signatures = _Signatures(native)

    def __getattr__(self, name):
        if not name.startswith("__") and "_native" in self.__dict__:
            if name in self._native.functions():
                return _Method(name, self._native)
        raise AttributeError(f"the loaded model has no function '{name}'; it has {', '.join(self._native.functions()) or 'none'}.")

    def __call__(self, *arguments, **named):
        return self.__getattr__("__call__")(*arguments, **named) if "__call__" in self._native.functions() else self._serve(arguments, named)

    def _serve(self, arguments, named):
        for name in ("serve", "call"):
            if name in self._native.functions():
                return _Method(name, self._native)(*arguments, **named)
        raise TypeError("the loaded model cannot be called; use one of its signatures.")

    @property
    def variables(self):
        return [variable for _, variable, _ in self._native.variables()]

    @property
    def trainable_variables(self):
        return [variable for _, variable, trainable in self._native.variables() if trainable]

    def _wgrad_parts(self):
        return [(name.replace("/", "."), variable) for name, variable, _ in self._native.variables()]


class _Signatures:
    """The signatures of a model by name, each made when it is first used."""

    def __init__(self, native):
        self._native, self._names, self._made = native, native.signatures(), {}

    def __getitem__(self, name):
        if name not in self._names:
            raise KeyError(f"there is no signature '{name}'; the model has {', '.join(self._names) or 'none'}.")
        if name not in self._made:
            self._made[name] = SavedFunction(self._native.signature(name), self._native)
        return self._made[name]

    def __iter__(self):
        return iter(self._names)

    def __len__(self):
        return len(self._names)

    def __contains__(self, name):
        return name in self._names

    def keys(self):
        return list(self._names)

    def items(self):
        return [(name, self[name]) for name in self._names]

    def __repr__(self):
        return f"_SignatureMap({', '.join(self._names)})"


class _Method:
    """A function of a loaded model's object, which may have several traces."""

    def __init__(self, name, native):
        self._name, self._traces = name, [SavedFunction(trace, native) for trace in native.function(name)]

    def __call__(self, *arguments, **named):
        errors = []
        for trace in self._traces:
            if len(trace._inputs) != len(arguments) + len(named):
                continue
            try:
                results = trace(*arguments, **named)
            except (ValueError, IndexError) as error:
                errors.append(error)
                continue
            values = [results[name] for name, *_ in trace._outputs]
            return values[0] if len(values) == 1 else results
        if errors:
            raise errors[0]
        counts = sorted({len(trace._inputs) for trace in self._traces})
        raise TypeError(f"{self._name}: it was called with {len(arguments) + len(named)} tensors; its traces take {counts}.")


def load(export_dir, tags=None, options=None):
    """A SavedModel of TensorFlow, Keras or wgrad: `model.signatures["serving_default"](x=..)` returns a dict of tensors."""
    return _Object(_wgrad.NativeSavedModel(str(export_dir)))


def _written(name, function, signature=None):
    """A function as the native part writes it."""
    if isinstance(function, ConcreteFunction):
        function = function._as_function()
    if not isinstance(function, Function):
        raise TypeError(f"save: the signature '{name}' is {type(function).__name__}; it must be a tf.function.")
    specs = function._signature if signature is None else signature
    if specs is None:
        raise ValueError(f"save: the function '{name}' needs an input_signature, which says what it is called with.")
    leaves, build = _flat(list(specs))
    known = [parameter for parameter in inspect.signature(function.python_function).parameters if parameter != "self"]
    names = [spec.name or (known[at] if at < len(known) else f"input_{at}") for at, spec in enumerate(leaves)]

    def body(tensors):
        try:
            made = function._traced(*build(iter(tensors)))
        except errors.FailedPreconditionError:
            if not function._converts():
                raise
            made = function._traced(*build(iter(tensors)))
        if isinstance(made, dict):
            return [convert_to_tensor(made[key]) for key in sorted(made)]
        return [convert_to_tensor(leaf) for leaf in _flat(made)[0]]

    # The names of a dict's results, which a call shows.
    example = [_wgrad.constant(0, spec.dtype.name, [1 if size is None else size for size in spec.shape]) for spec in leaves]
    made = function.python_function(*build(iter(example)))
    return {
        "name": name,
        "inputs": [(one, list(spec.shape), spec.dtype.name) for one, spec in zip(names, leaves)],
        "outputs": sorted(made) if isinstance(made, dict) else None,
        "body": body,
    }


def save(obj, export_dir, signatures=None, options=None):
    """Writes a SavedModel of an object with variables: a model, a layer, or a `tf.Module`.

    `signatures` is a `tf.function` with an `input_signature`, or a dict of them. Without it, a Keras model of known shapes has the
    signature `serving_default`.
    """
    if signatures is None:
        if hasattr(obj, "export"):
            return obj.export(export_dir)
        found = {}
        for name in dir(type(obj)):
            value = getattr(type(obj), name, None)
            if isinstance(value, Function) and value._signature is not None:
                found[name] = getattr(obj, name)
        if not found:
            raise ValueError("save: give signatures, tf.functions with an input_signature.")
        signatures = found
    if not isinstance(signatures, dict):
        signatures = {"serving_default": signatures}
    written = [_written(name, function) for name, function in signatures.items()]
    _wgrad.save_saved_model(obj, str(export_dir), written)
    return None


class OnnxModel:
    """A loaded ONNX model. It takes tensors by name, or in order, and returns a dict of tensors."""

    def __init__(self, native):
        self._native = native
        self._function = SavedFunction(native.function(), native)

    @property
    def input_names(self):
        return [name for name, *_ in self._function._inputs]

    @property
    def output_names(self):
        return [name for name, *_ in self._function._outputs]

    def __call__(self, *arguments, **named):
        return self._function(*arguments, **named)

    @property
    def variables(self):
        return [variable for _, variable, _ in self._native.variables()]


class onnx:
    """ONNX models."""

    @staticmethod
    def load(path):
        return OnnxModel(_wgrad.NativeOnnx(str(path)))

    @staticmethod
    def save(obj, path, function):
        """Writes a `tf.function` with an `input_signature`, whose variables belong to `obj`."""
        _wgrad.save_onnx(obj, str(path), _written("serving_default", function))
