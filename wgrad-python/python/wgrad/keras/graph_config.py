"""Models of symbols from their configs: the layers are made, and called as the config says."""

import collections
import json

from .. import _wgrad
from .layer import Layer
from .serialization import deserialize_keras_object
from .structure import _leaves, _snake
from .symbols import Input, _connected, _noted


class _Op:
    """A function of Keras among the layers of a config."""

    def __init__(self, described):
        self.module, self.class_name = described["module"], described["class_name"]
        self.options = described.get("config") or {}
        self.name = name_of(described)

    def call(self, node, symbols):
        """The results of the call of a node, whose tensors are these symbols."""
        try:
            config = json.dumps({"class_name": self.class_name, "config": self.options})
            results = _wgrad.op_on(self.name, self.module, config, json.dumps(_by_place(node)), symbols)
            return _noted(None, symbols, results)
        except ValueError as error:
            function = self._function()
            if function is None or "not supported" not in str(error):
                raise
        # The native part has no such function; that of this package calls others.
        found = iter(symbols)
        args = _with(node.get("args", ()), found)
        options = {key: value for key, value in self.options.items() if key != "name"} | _with(node.get("kwargs", {}), found)
        return _leaves(_connected(function, args, options))

    def _function(self):
        from . import ops

        return getattr(ops, _snake(self.class_name), None)


def is_functional(config):
    """Whether a config is that of a model of symbols."""
    return isinstance(config, dict) and {"layers", "input_layers", "output_layers"} <= set(config)


def name_of(described):
    """The name of the layer that an entry of a model's config describes."""
    return described.get("name") or (described.get("config") or {}).get("name")


def _is_tensor(value):
    return isinstance(value, dict) and value.get("class_name") == "__keras_tensor__"


def _tensors(value):
    """The tensors among arguments, in their order."""
    if _is_tensor(value):
        return [value["config"]["keras_history"]]
    if isinstance(value, dict):
        return [found for item in value.values() for found in _tensors(item)]
    return [found for item in value for found in _tensors(item)] if isinstance(value, (list, tuple)) else []


def _by_place(node):
    """A node whose tensors are named by their places, for the native part."""
    places = iter(range(len(_tensors([node.get("args", ()), node.get("kwargs", {})]))))

    def placed(value):
        if _is_tensor(value):
            return {"class_name": "__keras_tensor__", "config": {"keras_history": [str(next(places)), 0, 0]}}
        if isinstance(value, dict):
            return {key: placed(item) for key, item in value.items()}
        return [placed(item) for item in value] if isinstance(value, (list, tuple)) else value

    return {"args": placed(node.get("args", ())), "kwargs": placed(node.get("kwargs", {}))}


def _with(value, symbols, custom_objects=None):
    """Arguments with symbols in place of tensors, and objects in place of configs."""
    if _is_tensor(value):
        return next(symbols)
    if isinstance(value, dict) and "class_name" not in value:
        return {key: _with(item, symbols, custom_objects) for key, item in value.items()}
    if isinstance(value, dict) and value["class_name"] == "__tuple__":
        return tuple(_with(value["config"]["value"], symbols, custom_objects))
    if isinstance(value, list):
        return [_with(item, symbols, custom_objects) for item in value]
    return deserialize_keras_object(value, custom_objects)


def unwrapped(listed):
    """What a list has in a list of one."""
    return listed[0] if len(listed) == 1 and isinstance(listed[0], list) and len(listed[0]) == 1 else listed


class _Made:
    """A layer, the nodes that wait to be called, the results of its calls, and the layers that wait for more of them."""

    def __init__(self, layer, described):
        self.layer, self.results, self.waiting = layer, [], []
        self.nodes = [] if layer is None else list(described.get("inbound_nodes", ()))
        if isinstance(layer, Layer) and not layer._is_native() and described.get("module") is None:
            # Older files of this package have a list around a single tensor, which the program did not pass.
            self.nodes = [node | {"args": unwrapped(node["args"])} for node in self.nodes]
        # The next one is the last.
        self.nodes.reverse()


def _input(described):
    config = described["config"]
    shape = config.get("batch_shape") or config.get("batch_input_shape")
    if shape is None:
        raise ValueError(f"from_config: the input '{name_of(described)}' has no batch_shape, such as [None, 28, 28, 1].")
    return Input(shape[1:], shape[0], config.get("dtype"), name_of(described))


def layer_of(described, custom_objects=None):
    """The layer that an entry of a model's config describes, or the symbol of an input."""
    name = name_of(described)
    if described["class_name"] == "InputLayer":
        return _input(described)
    if str(described.get("module") or "").startswith(("keras.src.ops", "keras.ops")):
        return _Op(described)
    # The calls build the layers.
    described = {key: value for key, value in described.items() if key != "build_config"}
    try:
        made = deserialize_keras_object(described, custom_objects)
    except (TypeError, ValueError) as error:
        raise type(error)(f"the layer '{name}': {error}") from error
    if not callable(made):
        raise TypeError(f"from_config: '{name}' of the class {described.get('class_name')} is no layer.")
    return made


def _called(layer, name, node, find, custom_objects):
    """The results of a node, whose tensors are known."""
    if not isinstance(node, dict):
        raise ValueError(f"from_config: a call of the layer '{name}' is {node!r}; it must have args and kwargs, as Keras 3 writes them.")
    symbols = [find(history) for history in _tensors([node.get("args", ()), node.get("kwargs", {})])]
    if isinstance(layer, _Op):
        return layer.call(node, symbols)
    found = iter(symbols)
    arguments = _with(list(node.get("args", ())), found, custom_objects)
    named = {key: _with(value, found, custom_objects) for key, value in node.get("kwargs", {}).items() if value is not None}
    # In training, the call of the model says so.
    named.pop("training", None)
    if not _leaves(named.get("mask")):
        named.pop("mask", None)
    try:
        return _leaves(layer(*arguments, **named))
    except (TypeError, ValueError) as error:
        raise type(error)(f"a call of the layer '{name}': {error}") from error


def connected(config, custom_objects=None, clone=None, given=None):
    """The inputs and the outputs of the model that a config describes, in its lists and dicts. `clone` makes a layer of its name
    in place of the config, and `given` has symbols for inputs."""
    from .built import Functional

    made, given = {}, dict(given or {})
    for described in config["layers"]:
        name = name_of(described)
        if name in made:
            raise ValueError(f"from_config: two layers are called '{name}'.")
        if described["class_name"] == "InputLayer":
            made[name] = _Made(None, described)
            made[name].results.append([given[name] if name in given else layer_of(described)])
            continue
        layer = clone(name) if clone is not None else None
        made[name] = _Made(layer_of(described, custom_objects) if layer is None else layer, described)

    def found(history, of_ends=False):
        """The symbol of a result, `None` if its call is not made yet."""
        name, call, at = history[:3]
        if name not in made:
            raise ValueError(f"from_config: there is no layer '{name}', whose result is taken.")
        results = made[name].results
        # Among the outputs, Keras counts the calls of a functional model in another one from 1.
        if of_ends and call > 0 and isinstance(made[name].layer, Functional):
            call -= 1
        if call >= len(results):
            return None
        if at >= len(results[call]):
            raise ValueError(f"from_config: result {at} of call {call} of '{name}' is taken, and it has {len(results[call])}.")
        return results[call][at]

    # Each layer is tried once, and again for each result that it waited for.
    ready = collections.deque(made)
    while ready:
        name = ready.popleft()
        one = made[name]
        while one.nodes:
            lacking = next((history for history in _tensors(one.nodes[-1]) if found(history) is None), None)
            if lacking is not None:
                made[lacking[0]].waiting.append(name)
                break
            one.results.append(_called(one.layer, name, one.nodes.pop(), found, custom_objects))
            ready.extend(one.waiting)
            one.waiting = []
    for name, one in made.items():
        if one.nodes:
            raise ValueError(
                f"from_config: call {len(one.results)} of '{name}' uses results that are never computed: the layers form a cycle, or one "
                "refers to a call that does not exist."
            )

    def ends(value, key):
        if isinstance(value, dict):
            return {name: ends(item, key) for name, item in value.items()}
        if len(value) >= 3 and isinstance(value[0], str) and isinstance(value[1], int):
            symbol = found(value, of_ends=True)
            if symbol is None:
                raise ValueError(f"from_config: '{key}' names call {value[1]} of '{value[0]}', which has {len(made[value[0]].results)}.")
            return symbol
        return [ends(item, key) for item in value]

    return ends(config["input_layers"], "input_layers"), ends(config["output_layers"], "output_layers")
