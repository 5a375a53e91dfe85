"""Layers for strings in front of a model: they compute on the host, and are part of the model's file.

A layer for strings that is called on a symbol returns a symbol of the device, whose `_host` says how the host computes it. A `Front`
has the layers of a model in order. Its plan is what the native part puts into files; see `keras/front/plan.rs` of the crate.
"""

import json

import numpy as np

from .. import _wgrad
from ..errors import InvalidTypeError
from ..tensor import Tensor, Variable

Symbol = _wgrad.Symbol

# Layers whose inputs may be numbers, too.
_OF_NUMBERS = ("Hashing", "HashedCrossing", "IntegerLookup")


class TextInput:
    """Strings of a model that is being defined: `keras.Input(shape, dtype="string")`, or what a layer makes of others."""

    dtype = "string"

    def __init__(self, shape, name=None, node=None):
        self.shape, self.name, self._host = tuple(shape), name, node

    def __repr__(self):
        return f"<KerasTensor shape={self.shape}, dtype=string>"

    def __array__(self, dtype=None, copy=None):
        raise InvalidTypeError(f"{self!r}: no device computes with strings. Call a layer for strings on it first: StringLookup, TextVectorization, Hashing.")


class Node:
    """A call of a layer on values of the host."""

    def __init__(self, layer, inputs):
        self.layer, self.inputs = layer, inputs


def is_text(value):
    """Whether a value is a string or has strings in it."""
    if isinstance(value, (Tensor, Variable)):
        return False
    if isinstance(value, (list, tuple)):
        return bool(value) and is_text(value[0])
    return isinstance(value, (str, bytes)) or np.asarray(value).dtype.kind in "SUO"


def is_symbolic(value):
    return isinstance(value, (TextInput, Symbol))


def _is_on_host(value):
    return isinstance(value, TextInput) or getattr(value, "_host", None) is not None or getattr(value, "_made", None) is None


def _example(layer, value):
    """An array of one example for a layer, with values that it knows."""
    sizes = [1 if size is None else size for size in value.shape[1:]]
    if isinstance(value, TextInput):
        known = layer.get_vocabulary() if hasattr(layer, "get_vocabulary") else ["a"]
        return np.full([1, *sizes], known[-1], dtype=object)
    known = layer.get_vocabulary() if hasattr(layer, "get_vocabulary") else [0]
    return np.full([1, *sizes], int(known[-1]), dtype=np.int64)


def called(layer, inputs):
    """The symbol of what a layer makes of symbols."""
    values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    for value in values:
        if not _is_on_host(value):
            raise TypeError(
                f"{layer._class}: it computes on the host, and its input is a result of the layer "
                f"'{getattr(value._made[0], 'name', 'operator')}', which the device computes. Call it on keras.Input(.., dtype=\"string\") or on another layer for strings."
            )
        if isinstance(value, Symbol) and layer._class not in _OF_NUMBERS and not layer.get_config().get("invert"):
            raise TypeError(f"{layer._class}: its input is {value.shape} of {value._dtype}; it must be strings: Input(.., dtype=\"string\").")
    node, shape = Node(layer, values), list(values[0].shape)
    options = layer.get_config()
    if options.get("invert"):
        return TextInput(shape, node=node)
    if layer._makes_rows:
        examples = [_example(layer, value) for value in values]
        made = layer(examples if len(examples) > 1 else examples[0])
        shape = [shape[0], *made.shape[1:]]
    elif layer._class == "TextVectorization":
        shape = [shape[0], options.get("output_sequence_length")]
    symbol = _wgrad.input(list(shape[1:]), None, "float32" if layer._makes_rows else "int32", None)
    symbol._host = node
    return symbol


def needed(outputs, given):
    """The symbols of the host from which outputs are computed, in the order of their making, without those in `given`."""
    known, seen, found = {id(symbol) for symbol in given}, set(), []
    waiting = list(reversed(outputs))
    while waiting:
        symbol = waiting.pop()
        if id(symbol) in seen or id(symbol) in known:
            continue
        seen.add(id(symbol))
        if getattr(symbol, "_host", None) is not None:
            found.append(symbol)
        else:
            made = getattr(symbol, "_made", None)
            waiting.extend(reversed(made[1] if made else []))
    return found


class Front:
    """The layers on the host in front of a model. Values are numbered: the inputs first, then the result of each call."""

    def __init__(self, inputs, calls, feeds):
        self.inputs, self.calls, self.feeds = inputs, calls, feeds

    @classmethod
    def of_stack(cls, layers, shape):
        """Layers in a row."""
        shape = [None, 1] if shape is None else list(shape)
        return cls([{"name": "input_layer", "batch_shape": shape, "dtype": "string"}], [(layer, [at]) for at, layer in enumerate(layers)], [len(layers)])

    @classmethod
    def of_symbols(cls, inputs, symbols):
        """What computes `symbols` from the inputs of a model, which are passed on if they are not strings. Returns the front and the
        symbols of the model behind it."""
        places = {id(value): at for at, value in enumerate(inputs)}
        passed = [value for value in inputs if isinstance(value, Symbol)]
        described, names = [], set()
        for value in inputs:
            text = isinstance(value, TextInput)
            name, number = value.name or "input_layer", 1
            while name in names:
                name, number = f"{value.name or 'input_layer'}_{number}", number + 1
            names.add(name)
            described.append({"name": name, "batch_shape": list(value.shape), "dtype": "string" if text else value._dtype})
        calls, made = [], {}

        def place(value):
            node = getattr(value, "_host", None)
            if id(value) in places:
                return places[id(value)]
            if node is None:
                raise ValueError(f"the model's outputs depend on {value!r}, which is not among its inputs.")
            return made.get(id(node))

        for symbol in symbols:
            # Depth first, without recursion: an input of a node before the node itself.
            waiting = [symbol]
            while waiting:
                value = waiting[-1]
                if place(value) is not None:
                    waiting.pop()
                    continue
                missing = [x for x in value._host.inputs if place(x) is None]
                if missing:
                    waiting.extend(reversed(missing))
                    continue
                waiting.pop()
                made[id(value._host)] = len(inputs) + len(calls)
                calls.append((value._host.layer, [place(x) for x in value._host.inputs]))
        feeds = [places[id(value)] for value in passed] + [place(symbol) for symbol in symbols]
        _number([layer for layer, _ in calls])
        return cls(described, calls, feeds), passed + symbols

    def plan(self):
        """What the native part puts into files."""
        layers = self.layers
        for layer in layers:
            if layer._class == "FeatureSpace":
                raise ValueError("FeatureSpace: a model that begins with it is not written. Save the space, and the model behind it.")
            own = [key for key, value in layer._given.items() if callable(value)]
            if own:
                raise ValueError(
                    f"{layer._class}: {' and '.join(own)}: functions of a program cannot be written. Use one of Keras's names, or save_weights."
                )
        places = {id(layer): at for at, layer in enumerate(layers)}
        return json.dumps({
            "inputs": self.inputs, "feeds": self.feeds,
            "layers": [{"class_name": layer._class, "config": layer.get_config()} for layer in layers],
            "calls": [{"layer": places[id(layer)], "from": sources} for layer, sources in self.calls],
        })

    @property
    def layers(self):
        return list({id(layer): layer for layer, _ in self.calls}.values())

    @property
    def names(self):
        return [described["name"] for described in self.inputs]

    def run(self, values):
        """What the inputs of the model behind get for values of the inputs, in their order."""
        if len(values) != len(self.inputs):
            raise ValueError(f"the model has {len(self.inputs)} inputs, {', '.join(self.names)}; it was called with {len(values)}.")
        values = [self._input(value, at) for at, value in enumerate(values)]
        for layer, sources in self.calls:
            given = [values[at] for at in sources]
            if layer._class == "FeatureSpace":
                values.append(layer._of_list(given))
            else:
                values.append(layer(given if layer._class == "HashedCrossing" else given[0]))
        return [self._fed(values[at], at) for at in self.feeds]

    def _input(self, value, at):
        described = self.inputs[at]
        takers = [layer for layer, sources in self.calls if at in sources]
        # The columns of a FeatureSpace have dtypes of their own.
        numbers = _OF_NUMBERS if described["dtype"] == "string" else (*_OF_NUMBERS, "FeatureSpace")
        if takers and not is_text(value) and any(layer._class not in numbers for layer in takers):
            kind = getattr(value, "dtype", type(value).__name__)
            raise TypeError(f"{takers[0]._class}: the model's input is strings; it was called with {getattr(kind, 'name', kind)}.")
        if takers:
            if isinstance(value, (list, tuple)):
                value = np.asarray(value)
            rank = np.ndim(value) if not isinstance(value, (Tensor, Variable)) else len(value.shape)
            # As Keras: one value for each example may be without its axis.
            if rank == 1 and len(described["batch_shape"]) == 2 and described["batch_shape"][1] == 1:
                value = value[..., None]
        return value

    def _fed(self, value, at):
        # Indices stay integers; rows of zeros, ones and counts are what layers compute with.
        if at >= len(self.inputs) and isinstance(value, Tensor) and self.calls[at - len(self.inputs)][0]._makes_rows:
            return value._cast("float32")
        return value


def _number(layers):
    """Different names for layers that have the name of their class, as in Keras."""
    names, seen = set(), set()
    for layer in layers:
        if id(layer) in seen:
            continue
        seen.add(id(layer))
        name, number = layer.name, 1
        while name in names:
            name, number = f"{layer.name}_{number}", number + 1
        names.add(name)
        layer.name = name
