"""Models of layers: stacks, and graphs of symbols."""

import json
import weakref
from itertools import zip_longest

import numpy as np

from .. import _wgrad
from ..distribute import has_strategy
from ..tensor import Tensor, Variable, convert_to_tensor
from .fronts import Front, TextInput, is_symbolic, is_text, needed
from .graph_config import connected, is_functional, layer_of, name_of, unwrapped
from .host_layers import HostLayer
from .input_layer import InputLayer
from .layer import Layer, _Inside, _walk
from .model import Model
from .policies import policy_of
from .serialization import class_entry
from .structure import _context, _leaves, _named_variables, _structure, _training
from .symbols import Symbol, _calls_of, _made_by, _noted


class _Built(Model):
    """A model whose native form consists of native layers."""

    def _graph(self):
        """The native model that computes."""
        raise NotImplementedError

    def _model(self):
        # A class with steps of its own trains as a model written in Python does.
        return super()._model() if self._has_steps() else self._graph()

    def _file_model(self):
        return self._graph()

    def _config_text(self):
        config = json.loads(self._graph().to_json())
        own = {layer.name: layer for layer in self._inner() if not layer._is_native() and not isinstance(layer, (InputLayer, _Built))}
        for described in config["config"]["layers"]:
            layer = own.get(described["config"].get("name", described.get("name")))
            if layer is not None:
                _describe(described, layer)
        self._describe_ends(config["config"])
        return json.dumps(config)

    def _describe_ends(self, config):
        """Gives the config of a model of symbols what only the program's calls know."""

    def _fronted(self):
        """The layers for strings in front of the model, if there are some."""
        return None

    def _front_plan(self):
        front = self._fronted()
        return None if front is None else front.plan()

    def summary(self, print_fn=print, **options):
        front = self._fronted()
        for layer in front.layers if front is not None else ():
            print_fn(f"{layer.name} ({layer._class}), on the host")
        super().summary(print_fn, **options)

    def _is_written(self):
        return type(self).__module__.partition(".")[0] != __name__.partition(".")[0]

    def __call__(self, inputs, training=None, mask=None):
        leaves = self._inputs_of(inputs)
        if any(isinstance(leaf, Symbol) for leaf in leaves):
            return self._on(leaves)
        training = bool(_training() if training is None else training)
        with _Inside(self):
            results, losses = self._graph().call(leaves, training)
            if losses:
                self._added_losses = losses
                _context.has_losses = True
        return self._rebuilt(results)

    def call(self, inputs, training=None, mask=None):
        return _Built.__call__(self, inputs, training=training)

    def _inputs_of(self, inputs):
        return _leaves(inputs)

    @property
    def _native(self):
        return self._graph()

    def _listing(self):
        return _named_variables(self._graph().variables())

    @property
    def losses(self):
        added = [loss for layer in _walk(self) for loss in layer._added_losses]
        return added + _wgrad.NativeLayer.of_python(self).penalties()

    def _set_trainable(self, value):
        self._graph().set_trainable(value)

    @property
    def input_shape(self):
        shapes = [tuple(symbol.shape) for symbol in self.inputs]
        return shapes[0] if len(shapes) == 1 else shapes

    @property
    def output_shape(self):
        shapes = [tuple(symbol.shape) for symbol in self.outputs]
        return shapes[0] if len(shapes) == 1 else shapes

    def _wgrad_parts(self):
        return [("model", self._graph())]

    def _inner(self):
        return [layer for layer in self.layers if isinstance(layer, Layer)]

    def _wgrad_call(self, inputs, training, mask):
        return _leaves(_Built.__call__(self, list(inputs), training=training))

    def _on(self, symbols):
        if self._is_nested():
            results = self._graph().on(symbols, self._name)
        else:
            results = _wgrad.NativeLayer.of_python(self).on(symbols, self._name, False)
        return self._rebuilt(_noted(self, symbols, results))

    def get_config(self):
        """The layers with their options, as Keras has them."""
        if self._is_written():
            return super().get_config()
        return json.loads(self.to_json())["config"]

    def _is_nested(self):
        """Whether the native part computes the model in another one without this object."""
        return self._name is not None and not self._is_written() and self._fronted() is None

    def _name_layers(self, layers):
        """Tells layers the names that they have in this model."""
        names = {tuple(identity): name for name, identity in self._graph().layers()}
        for layer in layers:
            name = names.get(tuple(_native_of(layer).identity))
            if name is not None and "_wgrad_name" not in layer.__dict__:
                layer._wgrad_name = name


def _describe(described, layer):
    """Describes a layer of the program's class in a model's config as Keras does."""
    described |= class_entry(type(layer))
    # The native part calls the layer with a list; the program did not.
    for node in described.get("inbound_nodes", ()):
        node["args"] = unwrapped(node["args"])
    shape = (described.get("build_config") or {}).get("input_shape")
    if isinstance(shape, list) and len(shape) == 1 and isinstance(shape[0], list):
        described["build_config"]["input_shape"] = shape[0]


def _native_of(layer):
    """The native form of a layer in a model."""
    if layer._is_native():
        return layer._native
    nested = isinstance(layer, _Built) and layer._is_nested()
    return layer._graph() if nested else _wgrad.NativeLayer.of_python(layer)


class Sequential(_Built):
    """A stack of layers."""

    def __init__(self, layers=None, name=None, trainable=True):
        super().__init__(name=name)
        self._stack = []
        self._front_layers = []
        self._shape = self._text_shape = self._first = None
        for layer in layers or ():
            self.add(layer)
        if self._shape is not None and self._stack and has_strategy():
            # Its variables belong to the strategy.
            self._graph()

    def add(self, layer):
        if isinstance(layer, Symbol):
            self._shape, self._first = layer.shape, layer
            return
        if isinstance(layer, TextInput):
            self._text_shape = layer.shape
            return
        if isinstance(layer, HostLayer):
            if self._stack:
                raise TypeError(f"Sequential: {layer._class} computes on the host; it must be before all layers that do not.")
            # What comes in is not what the layers behind get.
            self._shape = None
            self._front_layers.append(layer)
            return
        if not isinstance(layer, Layer):
            raise TypeError(f"Sequential: {layer!r} is no layer.")
        if self._shape is None and getattr(layer, "_input_shape", None) is not None:
            self._shape = [None, *layer._input_shape]
        self._changed()
        self._stack.append(layer)

    def pop(self):
        """Takes the last layer away, and returns it."""
        if not self._stack and not self._front_layers:
            raise TypeError("Sequential: there is no layer to take away.")
        self._changed()
        return (self._stack or self._front_layers).pop()

    def _changed(self):
        for key in ("_native_graph", "_ends"):
            self.__dict__.pop(key, None)

    def _fronted(self):
        """The layers for strings, if there are some."""
        return Front.of_stack(self._front_layers, self._text_shape) if self._front_layers else None

    def __call__(self, inputs, training=None, mask=None):
        if self._front_layers and (is_text(inputs) or not self._has_steps()):
            inputs = self._through(inputs)
        return super().__call__(inputs, training=training, mask=mask)

    def _through(self, inputs):
        if isinstance(inputs, (list, tuple)) and len(inputs) == 1 and not isinstance(inputs[0], (str, bytes)):
            inputs = inputs[0]
        return self._fronted().run([inputs])[0]

    def _wgrad_call(self, inputs, training, mask):
        # These have come through the layers on the host.
        return _leaves(_Built.__call__(self, list(inputs), training=training))

    def _on(self, symbols):
        if self._front_layers:
            raise TypeError(f"Sequential: {self._front_layers[0]._class} computes on the host; a model that begins with it is no part of another.")
        if self._shape is None and len(symbols) == 1:
            self._shape = symbols[0].shape
        return super()._on(symbols)

    def _inner(self):
        layers = list(self.__dict__.get("_stack", ()))
        if any(layer._name is None and "_wgrad_name" not in layer.__dict__ for layer in layers):
            self._name_layers(layers)
        return [*(layer for layer in self._front_layers if isinstance(layer, Layer)), *layers]

    def build(self, input_shape=None):
        """Makes the variables, for inputs of this shape; without one, for those of its `keras.Input`."""
        self._graph().build(list(self.input_shape if input_shape is None else input_shape))
        self.built = True

    @property
    def layers(self):
        if self._shape is not None and not self._front_layers and "_ends" not in self.__dict__:
            # So that each layer has an output.
            try:
                self._symbolic()
            except (TypeError, ValueError):
                # A layer that takes no symbols; the model may still be called.
                self._ends = None
        # Names the layers, too.
        self._inner()
        return [*self._front_layers, *self._stack]

    @property
    def inputs(self):
        return self._symbolic()[0]

    @property
    def outputs(self):
        return self._symbolic()[1]

    def _symbolic(self):
        if self._shape is None:
            raise AttributeError("the model does not know its shape yet; begin it with keras.Input.")
        if self.__dict__.get("_ends") is None:
            x = y = _wgrad.input(list(self._shape[1:]), self._shape[0], None, None) if self._first is None else self._first
            for layer in self._stack:
                y = layer(y)
            self._ends = [x], [y]
        return self._ends

    @property
    def input(self):
        return self.inputs[0]

    @property
    def output(self):
        return self.outputs[0]

    def _wgrad_parts(self):
        return [("model", self._graph())]

    def _graph(self):
        if "_native_graph" not in self.__dict__:
            native = [(layer._name, _native_of(layer)) for layer in self._stack]
            native = [(name, part.as_layer() if isinstance(part, _wgrad.NativeModel) else part) for name, part in native]
            self._native_graph = _wgrad.NativeModel.sequential(self._name, native)
            if self._shape is not None:
                self._native_graph.build(list(self._shape))
            elif self._text_shape is not None and not any(layer._makes_rows for layer in self._front_layers):
                self._build_behind()
        return self._native_graph

    def _ordered(self, x, y, weight):
        if isinstance(y, dict):
            raise ValueError(f"y is a dict with the keys {', '.join(map(str, y))}; a Sequential has one output, whose y is an array.")
        return super()._ordered(self._through(x) if self._front_layers and x is not None else x, y, weight)

    def _build_behind(self):
        """Makes the variables, for what the layers on the host make of strings."""
        made = TextInput([None, 1] if self._text_shape is None else self._text_shape)
        for layer in self._front_layers:
            made = layer(made)
        if isinstance(made, Symbol):
            self._graph().build(list(made.shape))

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """A stack of the layers of a config, with new weights."""
        if not isinstance(config, dict) or "layers" not in config:
            return cls(**config)
        model = cls(name=config.get("name"))
        # Decides whether compile scales the loss.
        model._policy = policy_of(config.get("dtype"))
        for described in config["layers"]:
            model.add(layer_of(described, custom_objects))
        if model._stack and model._front_layers:
            model._build_behind()
        elif model._stack and model._first is None and config.get("build_input_shape"):
            model.build(config["build_input_shape"])
        if config.get("trainable") is False:
            model.trainable = False
        return model


def _as_input(value, symbol):
    """A value in the dtype of the input's symbol, as Keras casts it."""
    if symbol is None or isinstance(value, Symbol) or value is None:
        return value
    wanted, sizes = symbol._dtype, symbol.shape
    if isinstance(value, (Tensor, Variable)):
        value = convert_to_tensor(value)
        if len(value._shape) == len(sizes) - 1 and sizes[-1] == 1:
            value = value[..., None]
        return value if value._dtype == wanted else value._cast(wanted)
    value = np.asarray(value)
    # As Keras: numbers for an input of one number each, and the other way round.
    if value.ndim == len(sizes) - 1 and sizes[-1] == 1:
        value = value[..., None]
    elif value.ndim == len(sizes) + 1 and value.shape[-1] == 1:
        value = value[..., 0]
    known = {"float64": "float32", "int64": "int32"}.get(value.dtype.name, value.dtype.name)
    return value if known == wanted or value.dtype.kind not in "fiub" else value.astype(wanted)


class Functional(_Built):
    """A model of the layers between symbols."""

    def __init__(self, inputs=None, outputs=None, name=None, trainable=True, **options):
        self._begin(inputs, outputs, name, trainable, **options)

    def _begin(self, inputs=None, outputs=None, name=None, trainable=True, **options):
        Model.__init__(self, name=name, **options)
        self._inputs, self._outputs = inputs, outputs
        self.inputs, self.outputs = _leaves(inputs), _leaves(outputs)
        behind, hosts = self.inputs, needed(self.outputs, self.inputs)
        for output in self.outputs:
            if not isinstance(output, Symbol) or getattr(output, "_host", None) is not None:
                raise TypeError(f"Model: the output {output!r} is computed on the host; an output must be a result of a layer on the device.")
        if hosts or any(isinstance(value, TextInput) for value in self.inputs):
            self._front, behind = Front.of_symbols(self.inputs, hosts)
        self._native_graph = _wgrad.NativeModel.functional(name, behind, self.outputs)
        self._behind = behind
        # As Keras: a list of one output stands for the output.
        self._wgrad_rebuild = _structure(outputs[0] if isinstance(outputs, (list, tuple)) and len(outputs) == 1 else outputs)[1]
        made = _made_by(self.outputs)
        self._name_layers(made)
        order = {name: at for at, (name, _) in enumerate(self._native_graph.layers())}
        made.sort(key=lambda layer: order.get(layer.name, len(order)))
        names = self.input_names
        self._places = [InputLayer._of(symbol, name) for symbol, name in zip(self.inputs, names)]
        self._made_layers = made
        self.built = True
        if not trainable:
            self.trainable = False

    def _graph(self):
        return self._native_graph

    @property
    def layers(self):
        layers = [*self.__dict__.get("_places", ()), *self._host_layers(), *self.__dict__.get("_made_layers", ())]
        # That of a file, if the model comes from one.
        order = self.__dict__.get("_wgrad_order")
        return layers if order is None else sorted(layers, key=lambda layer: order.get(layer.name, len(order)))

    @property
    def input(self):
        return self._inputs

    @property
    def output(self):
        return self._outputs

    @property
    def output_names(self):
        return list(self._output_places())

    def _fronted(self):
        return self.__dict__.get("_front")

    def build(self, input_shape=None):
        """Does nothing: the variables exist since the model does."""

    def _host_layers(self):
        return [] if self._fronted() is None else self._front.layers

    @property
    def input_names(self):
        return self._native_graph.names()[0] if self._fronted() is None else self._front.names

    def _output_places(self):
        names = self._native_graph.names()[1]
        outputs = self.__dict__.get("_outputs")
        keys = sorted(outputs) if isinstance(outputs, dict) else names
        return dict(zip(keys, names)) | dict(zip(names, names))  if len(set(keys) | set(names)) == len(names) else dict(zip(keys, names))

    def _describe_ends(self, config):
        calls = {layer.name: call for layer, call in _calls_of(self.outputs)}
        for described in config["layers"]:
            call, nodes = calls.get(described["config"].get("name")), described.get("inbound_nodes", ())
            if call is not None and len(nodes) == 1:
                found = nodes[0]["args"]
                found = found[0] if len(found) == 1 and isinstance(found[0], list) else found
                nodes[0] |= call.described(found)
        if self._fronted() is None:
            for key, given in (("input_layers", self._inputs), ("output_layers", self._outputs)):
                ends = config[key] if isinstance(config[key][0], list) else [config[key]]
                config[key] = _structure(given)[1](iter(ends))

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """A model of the layers and the calls of a config, with new weights."""
        if not is_functional(config):
            return cls(**config)
        inputs, outputs = connected(config, custom_objects)
        model = cls(inputs=inputs, outputs=outputs, name=config.get("name"))
        model._wgrad_order = {name: at for at, name in enumerate(map(name_of, config["layers"]))}
        if config.get("trainable") is False:
            model.trainable = False
        return model

    def _inputs_of(self, inputs):
        values = self._inputs_by_name(inputs)
        symbols = self.__dict__.get("_behind", ())
        front = self._fronted()
        if front is not None and any(map(is_symbolic, values)):
            raise TypeError(f"{front.layers[0]._class} computes on the host; a model that begins with it is no part of another.")
        if front is not None and values:
            # Steps of a program are called with what the front has made.
            if not self._has_steps() or any(map(is_text, values)):
                values = front.run(values)
        return [_as_input(value, symbol) for value, symbol in zip_longest(values, symbols)]

    def _inputs_by_name(self, inputs):
        if not isinstance(inputs, dict):
            return _leaves(inputs)
        known = self.__dict__.get("_inputs")
        names = sorted(known) if isinstance(known, dict) else self.input_names
        missing = [name for name in names if name not in inputs]
        if missing:
            raise ValueError(f"the model's input '{missing[0]}' is missing; there are {', '.join(map(str, inputs))}.")
        return [inputs[name] for name in names]

    def _ordered(self, x, y, weight):
        def by_output(values):
            if not isinstance(values, dict):
                return _leaves(values)
            places = self._output_places()
            unknown = [key for key in values if key not in places]
            if unknown:
                raise ValueError(f"y names the output '{unknown[0]}'; the model has {', '.join(map(str, places))}.")
            return [values[key] for key in places if key in values]

        self._wgrad_targets = None
        if self._has_steps():
            return super()._ordered(x if self._fronted() is None else self._inputs_of(x), y, weight)
        return tuple([self._inputs_of(x), by_output(y), by_output(weight)])


_OF_SYMBOLS = weakref.WeakKeyDictionary()


def of_symbols(cls):
    """The class of models of symbols with the methods of `cls`."""
    if cls is Model:
        return Functional
    if issubclass(cls, _Built):
        return cls
    made = _OF_SYMBOLS.get(cls)
    if made is None:
        made = _OF_SYMBOLS[cls] = type(cls.__name__, (cls, Functional), {"__module__": cls.__module__, "__doc__": cls.__doc__})
    return made
