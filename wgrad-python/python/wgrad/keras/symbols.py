"""Symbols of models: layers and functions on them, and which layer made which."""

import operator
import weakref

from .. import _wgrad
from .. import ops as ops_module
from ..dtypes import as_dtype, as_name
from ..ops import FUNCTIONS
from .structure import _in_training, _snake, _structure

Symbol = _wgrad.Symbol


def _operator(name, swapped=False):
    function = _OPS[name]

    def operator(self, other):
        if isinstance(other, (Symbol, int, float)) and not (name == "divide" and swapped):
            made = self.with_op(name, other, swapped)
            made._made = None, [self, other] if isinstance(other, Symbol) else [self]
            return made
        return function(other, self) if swapped else function(self, other)

    return operator


_OPS = {name: FUNCTIONS[f"math.{name}"] for name in ("add", "multiply", "subtract", "divide")}
for _name, _op, _swapped in (
    ("__add__", "add", False), ("__radd__", "add", True), ("__mul__", "multiply", False), ("__rmul__", "multiply", True),
    ("__sub__", "subtract", False), ("__rsub__", "subtract", True), ("__truediv__", "divide", False),
    ("__rtruediv__", "divide", True),
):
    setattr(Symbol, _name, _operator(_op, _swapped))


def _unary(function):
    return lambda self: function(self)


def _binary(function):
    return lambda self, other: function(self, other)


for _name, _op in (("__neg__", "math.negative"), ("__abs__", "math.abs")):
    setattr(Symbol, _name, _unary(FUNCTIONS[_op]))
for _name, _op in (
    ("__pow__", "math.pow"), ("__matmul__", "linalg.matmul"), ("__lt__", "math.less"), ("__gt__", "math.greater"),
    ("__le__", "math.less_equal"), ("__ge__", "math.greater_equal"),
):
    setattr(Symbol, _name, _binary(FUNCTIONS[_op]))
Symbol.__getitem__ = lambda self, index: symbolic(operator.getitem, (self, index), {})
_SIZES = Symbol.shape
Symbol.shape = property(lambda self: tuple(_SIZES.__get__(self)))
Symbol.dtype = property(lambda self: as_dtype(self._dtype))
Symbol.__repr__ = lambda self: f"<KerasTensor shape={tuple(self.shape)}, dtype={self._dtype}>"


def _refuse_iteration(self):
    raise TypeError("A symbol of a model cannot be iterated over; use its slices: x[:, 0].")


def _refuse_truth(self):
    raise TypeError("A symbol of a model has no value. Use layers and functions of it, or a Lambda layer.")


Symbol.__iter__, Symbol.__bool__ = _refuse_iteration, _refuse_truth


def Input(shape=None, batch_size=None, dtype=None, name=None, batch_shape=None, tensor=None, sparse=None):
    """The symbol of a model's input; `shape` is that of an example."""
    if tensor is not None or sparse:
        raise TypeError("Input: tensor and sparse are not supported; give the shape of an example.")
    if batch_shape is not None:
        batch_size, shape = batch_shape[0], batch_shape[1:]
    if shape is None:
        raise ValueError("Input: give the shape of an example, such as (28, 28, 1).")
    shape = [shape] if isinstance(shape, int) else list(shape)
    if dtype is not None and as_name(dtype) == "string":
        from .fronts import TextInput

        return TextInput([batch_size, *shape], name)
    symbol = _wgrad.input(shape, batch_size, as_name(dtype), name)
    symbol.name = name
    return symbol


def _noted(layer, inputs, results):
    """The symbols that a layer made, with a note of it."""
    for result in results:
        result._made = layer, inputs
    if layer is None:
        # Operators are no layers.
        return results
    # The symbols know their layer; the other way round, weak references do not keep both alive.
    layer.__dict__.setdefault("_calls", []).append(([weakref.ref(x) for x in inputs], [weakref.ref(y) for y in results]))
    return results


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
            # Operators are no layers.
            if layer is not None:
                found.setdefault(id(layer), layer)
        elif id(symbol) not in seen:
            seen.add(id(symbol))
            waiting.append((symbol, True))
            waiting.extend((x, False) for x in reversed(inputs))
    return list(found.values())


def _calls_of(symbols):
    """The calls with more arguments than tensors that lead to symbols, with their layers."""
    found, seen, waiting = {}, set(), list(symbols)
    while waiting:
        symbol = waiting.pop()
        made = getattr(symbol, "_made", None)
        if made is None or id(symbol) in seen:
            continue
        seen.add(id(symbol))
        call = getattr(symbol, "_call", None)
        if call is not None and call._is_of_layer():
            found[id(call)] = made[0], call
        waiting.extend(made[1])
    return list(found.values())


class _Call:
    """A call of a layer or a function with arguments that are more than a tensor or a list of tensors, as a layer of a list."""

    def __init__(self, target, arguments, named):
        self.target = target
        self._leaves, self._build = _structure((arguments, named))
        self._places = [at for at, leaf in enumerate(self._leaves) if isinstance(leaf, Symbol)]
        self.symbols = [self._leaves[at] for at in self._places]
        self._leaves = [None if isinstance(leaf, Symbol) else leaf for leaf in self._leaves]
        self.rebuild = None

    def _wgrad_call(self, inputs, training, mask):
        leaves = list(self._leaves)
        for at, value in zip(self._places, inputs):
            leaves[at] = value
        arguments, named = self._build(iter(leaves))
        with _in_training(training):
            made, self.rebuild = _structure(self.target(*arguments, **named))
        return made

    def _wgrad_mask(self, inputs, mask):
        return None

    def _wgrad_take_losses(self):
        return self.target._wgrad_take_losses() if hasattr(self.target, "_wgrad_take_losses") else []

    def _is_of_layer(self):
        return hasattr(self.target, "_wgrad_parts") and not self.target._is_native()

    def _wgrad_parts(self):
        # Where files have the parts of the layer.
        if self._is_of_layer():
            return self.target._wgrad_parts()
        return [("layer", self.target)] if hasattr(self.target, "_wgrad_parts") else []

    def described(self, tensors):
        """The arguments as Keras's files have them, with these tensors."""
        from .serialization import serialize_keras_object

        tensors, places = iter(tensors), set(self._places)
        leaves = [next(tensors) if at in places else serialize_keras_object(leaf) for at, leaf in enumerate(self._leaves)]
        arguments, named = self._build(iter(leaves))
        return {"args": list(arguments), "kwargs": named}

    def _wgrad_config(self):
        if self._is_of_layer():
            return self.target._wgrad_config()
        raise ValueError(
            f"a call of {getattr(self.target, '__name__', self.target)} has no config, so the model cannot be written as JSON. Use "
            "layers in place of functions, or save_weights."
        )


def _connected(layer, arguments, named):
    """The result of a call on symbols among `arguments`."""
    from .layer import Layer

    name = type(layer).__name__ if isinstance(layer, Layer) else "".join(
        part.title() for part in getattr(layer, "__name__", "operation").split("_")
    )
    call = type(name, (_Call,), {})(layer, arguments, named)
    title = layer._name if isinstance(layer, Layer) else None
    results = _wgrad.NativeLayer.of_python(call).on(call.symbols, title, False)
    owner = layer if isinstance(layer, Layer) else Layer()
    if owner is not layer:
        owner._name = _snake(name)
    for result in results:
        result._call = call
    return call.rebuild(iter(_noted(owner, call.symbols, results)))


def symbolic(function, arguments, named):
    """A function of tensors on symbols: a part of the model that is being defined."""
    return _connected(function, arguments, named)


ops_module.SYMBOLIC = symbolic
