"""The layers of wgrad, with Keras's options."""

import itertools
import json

import numpy as np

from .. import _wgrad
from ..tensor import Tensor, Variable, convert_to_tensor
from .host_layers import _given
from .layer import Layer
from .objects import SeedGenerator, plain
from .own_functions import OwnFunctions
from .structure import _REGISTERED, _by_name, _context, _leaves, _named_variables, _training
from .symbols import Symbol, _connected, _noted


class NativeLayer(Layer):
    """A layer of wgrad, with Keras's options."""

    _class = None
    _parameters = ()
    _kind = "one"
    _sizes = None

    def __init__(self, *arguments, name=None, trainable=True, input_shape=None, **options):
        if self._class is None:
            raise TypeError(f"{type(self).__name__} is the base of layers; use one of keras.layers.")
        _by_name(self._class, self._parameters, arguments, options)
        super().__init__(name=name, trainable=trainable, dtype=options.get("dtype"), input_shape=input_shape)
        if options.get("data_format") == "channels_first":
            raise ValueError(self._of_channels_first())
        if "pool_size" in self._parameters:
            options.setdefault("pool_size", 2)
        if self._class.startswith("UpSampling"):
            options.setdefault("size", 2)
        if self._class.startswith("ZeroPadding"):
            options.setdefault("padding", 1)
        if self._class.startswith("Cropping"):
            options.setdefault("cropping", 1 if self._sizes == 1 else 0)
        options.pop("autocast", None)
        for key in ("input_dim", "input_length"):
            # Keras 2 had these in every layer.
            if key in options and key not in self._parameters:
                size = options.pop(key)
                self._input_shape = (size,) if key == "input_dim" else self._input_shape
        self._own = OwnFunctions(options)
        config = {key: self._option(key, value) for key, value in options.items() if value is not None}
        self._native = self._make(config)
        if self._own.initializers and self._class == "Embedding":
            # Its weight depends on no input.
            self.build((None, 1))
        if not trainable:
            self._native.set_trainable(False)

    def _of_channels_first(self):
        """What to do about an option that devices do not have."""
        axes = range(2, (self._sizes or 2) + 2)
        after = (len(axes) + 1, *range(1, len(axes) + 1))
        return (
            f"{self._class}: data_format is 'channels_first', and layers compute with the channels as the last axis. Put "
            f"keras.layers.Permute({(*axes, 1)}) in front of the layer, and Permute({after}) behind it if the result needs its channels first."
        )

    def _make(self, config):
        inside = self._program_layers() if any(key in config for key in ("layer", "backward_layer")) else []
        return _wgrad.NativeLayer(json.dumps({"class_name": self._class, "config": config}), self._kind, inside)

    def _program_layers(self):
        """The classes of the program that the config of a layer in this one may name, for the native part."""
        from .composed_layers import OF_FILES

        made = lambda text, cls: cls.from_config(json.loads(text))
        found = {(key, cls) for name, cls in {**OF_FILES, **_REGISTERED}.items() for key in (name, getattr(cls, "__name__", name))
                 if isinstance(cls, type) and issubclass(cls, Layer)}
        return [(key, False, lambda text, cls=cls: made(text, cls)) for key, cls in found]

    def _option(self, key, value):
        if isinstance(value, NativeLayer):
            # A layer inside this one, such as that of Bidirectional.
            return json.loads(value._native.config()) | {"module": "keras.layers", "registered_name": None}
        if isinstance(value, Layer):
            raise TypeError(f"{self._class}: '{key}' must be one of keras.layers; {type(value).__name__} is a class of the program.")
        if key == "dtype":
            return self._policy.name
        if self._sizes and key in ("kernel_size", "strides", "dilation_rate", "pool_size", "size") and isinstance(value, int):
            return [value] * self._sizes
        if key == "seed" and isinstance(value, SeedGenerator):
            return value.seed
        return plain(value)

    def _is_native(self):
        # The native part calls layers without their functions of the program.
        return super()._is_native() and not self._own.penalties and not self._own.initializers

    def __call__(self, inputs, training=None, mask=None):
        leaves = _leaves(inputs)
        if any(isinstance(leaf, Symbol) for leaf in leaves):
            return self._on_symbols(leaves, mask, True)
        if not leaves:
            raise TypeError(f"{self._class}: it was called without a tensor.")
        if isinstance(leaves[0], (float, int)):
            # A list of Python's numbers is an array.
            leaves = [convert_to_tensor(inputs)]
        if mask is None and self._kind in ("one", "recurrent"):
            mask = getattr(leaves[0], "_keras_mask", None)
        return self._called(leaves, training, mask)

    def _on_symbols(self, leaves, mask, single):
        """The symbols of a call on symbols."""
        if mask is not None and (self._own.penalties or not isinstance(mask, Symbol)):
            return _connected(self, (leaves[0] if len(leaves) == 1 else leaves,), {"mask": mask})
        native = _wgrad.NativeLayer.of_python(self) if self._own.penalties else self._native
        results = native.on(leaves, self._name, single and native is self._native, mask)
        self._own.fill(self._listing())
        return self._returned(_noted(self, leaves if mask is None else [*leaves, mask], results))

    def _called(self, leaves, training, mask):
        training = _training() if training is None else training
        # As in Keras, random changes of images happen unless a model says that it does not train.
        training = self._class.startswith("Random") if training is None else bool(training)
        if self._own.initializers:
            known = [convert_to_tensor(leaf) for leaf in leaves]
            self._native.on([_wgrad.input(list(leaf._shape[1:]), None, leaf._dtype, None) for leaf in known], None, False)
            self._own.fill(self._listing())
        results, mask, losses = self._native.call(leaves, training, mask)
        if self._own.penalties:
            losses = [*losses, *self._own.losses(self._listing(), results)]
        if losses:
            self._added_losses = losses
            _context.has_losses = True
        self.built = True
        if mask is not None:
            results[0]._keras_mask = mask
        return self._returned(results)

    def _returned(self, results):
        return results[0] if len(results) == 1 else results

    def compute_mask(self, inputs, previous_mask=None):
        """The mask of the result."""
        return self._native.call(_leaves(inputs), False, previous_mask)[1]

    def build(self, input_shape):
        """Makes the variables, for inputs of this shape."""
        self._native.on([_wgrad.input(list(input_shape[1:]), input_shape[0], None, None)])
        self._own.fill(self._listing())
        self.built = True

    def _wgrad_call(self, inputs, training, mask):
        return _leaves(self(inputs[0] if len(inputs) == 1 else list(inputs), training=training))

    def _listing(self):
        return _named_variables(self._native.variables())

    @property
    def losses(self):
        return list(self._added_losses) + self._native.penalties()

    def _inner(self):
        return []

    def _wgrad_parts(self):
        # Of a layer that the native part calls as one of a program.
        return [(path, variable) for path, variable, _ in self._listing()]

    def _set_trainable(self, value):
        self._native.set_trainable(value)

    def __getattr__(self, name):
        if name in ("input", "output"):
            # The property has failed; its message says why.
            return self._symbols(name == "output", name)
        # Weights by their names: layer.kernel.
        if not name.startswith("_") and "_native" in self.__dict__:
            for known, variable, _ in self._listing():
                if known == name:
                    return variable
            options = json.loads(self._native.config())["config"]
            if name in options:
                return _object_of(options[name])
        raise AttributeError(f"{self._class} has no attribute '{name}'.")

    def get_config(self):
        """The options of the layer, as JSON has them."""
        given = {key: plain(value) for key, value in self._own.given.items()}
        return json.loads(self._native.config())["config"] | {"name": self.name, "trainable": self._trainable} | given


class Recurrent(NativeLayer):
    """A recurrent layer, which takes and returns states."""

    _kind = "recurrent"

    def __init__(self, *arguments, return_state=False, **options):
        if self._class in ("Bidirectional", "RNN"):
            if return_state and self._class == "Bidirectional":
                raise TypeError("Bidirectional: set return_state of the layer inside.")
            inner = arguments[0] if arguments else options.get("layer")
            inside = inner.get("config", {}).get("return_state") if isinstance(inner, dict) else getattr(inner, "_returns_state", False)
            returns = return_state or inside
            split = options.get("merge_mode", "concat") is None
        else:
            returns, split = return_state, False
        self._returns_state, self._returns_several = bool(returns), bool(returns or split)
        if self._class != "Bidirectional":
            options["return_state"] = bool(return_state)
        super().__init__(*arguments, **options)

    def _make(self, config):
        if self._class == "Bidirectional" and self._returns_several and not self._returns_state:
            config["merge_mode"] = None
        return super()._make(config)

    def reset_states(self):
        """Makes the next call of a stateful layer begin with the initial states; it may have another batch size."""
        self._native.reset_states()

    reset_state = reset_states

    def get_initial_state(self, batch_size):
        """Zeros for the states of a batch: one tensor for `SimpleRNN` and `GRU`, two for `LSTM`."""
        count = {"SimpleRNN": 1, "GRU": 1, "LSTM": 2}.get(self._class)
        if count is None:
            raise TypeError(f"get_initial_state: {self._class} has no states of one size; call the layer with return_state=True.")
        return [_wgrad.constant(0, self.compute_dtype, [int(batch_size), self.units]) for _ in range(count)]

    def __call__(self, sequences, initial_state=None, mask=None, training=None):
        leaves = _leaves(sequences) + _leaves(initial_state)
        if not leaves:
            raise TypeError(f"{self._class}: it was called without a tensor.")
        if any(isinstance(leaf, Symbol) for leaf in leaves):
            return self._on_symbols(leaves, mask, len(leaves) == 1 and not self._returns_several)
        if mask is None:
            mask = getattr(leaves[0], "_keras_mask", None)
        return self._called(leaves, training, mask)


class Attending(NativeLayer):
    """An attention layer."""

    _kind = "attention"

    def _attend(self, inputs, masks, attention_mask, scores, training, causal):
        given = {"attention_mask": attention_mask, "masks": masks, "scores": scores or None, "causal": causal or None}
        given = {key: value for key, value in given.items() if value is not None and _leaves(value)}
        symbols = [x for x in _leaves((inputs, given)) if isinstance(x, Symbol)]
        if symbols:
            if not given and len(symbols) == len(inputs):
                return self._on_symbols(inputs, None, False)
            names = ("query", "value", "key"), ("query_mask", "value_mask", "key_mask")
            named = dict([*zip(names[0], inputs), ("attention_mask", attention_mask), *zip(names[1], masks or ())])
            named = {name: value for name, value in named.items() if value is not None}
            if len(symbols) < len(named):
                # Arrays among them are part of no config.
                return _connected(_Attend(self), (inputs,), given)
            return self._returned(_noted(self, list(named.values()), self._attend_on(named, scores, causal)))
        training = bool(_training() if training is None else training)
        masks = list(masks or ()) + [None] * (len(inputs) - len(masks or ()))
        own = [getattr(x, "_keras_mask", None) if mask is None else mask for x, mask in zip(inputs, masks)]
        known = own if any(mask is not None for mask in own) else []
        if self._own.initializers or self._own.penalties:
            key = next(iter(self._own.given))
            raise TypeError(f"{self._class}: {key} is a function of the program or an array, which attention does not take on tensors yet; use it in a model of symbols.")
        result, weights = self._native.attend(inputs, known, attention_mask, (training, bool(causal), bool(scores)))
        self.built = True
        if own[0] is not None:
            result._keras_mask = convert_to_tensor(own[0])
        return (result, weights) if scores else result

    def _attend_on(self, named, scores, causal):
        """The symbols of a call. The native part takes its arguments as files have them."""
        tensor = lambda at: {"class_name": "__keras_tensor__", "config": {"keras_history": [str(at), 0, 0]}}
        options = {"use_causal_mask": bool(causal), "return_attention_scores": bool(scores)}
        node = {"args": [], "kwargs": {name: tensor(at) for at, name in enumerate(named)} | options}
        return self._native.attend_on(json.dumps(node), list(named.values()), self._name)


class _Attend(Layer):
    """A call of attention with masks that are arrays, as a part of a model of symbols."""

    def __init__(self, layer):
        super().__init__(name=layer._name)
        self.layer = layer

    def __call__(self, inputs, attention_mask=None, masks=None, scores=False, causal=False):
        return self.layer._attend(inputs, masks, attention_mask, scores, None, causal)


class HeadedAttention(Attending):
    """Attention with several heads: called on query, value and, if it differs from the value, key."""

    def __call__(self, query, value=None, key=None, query_mask=None, value_mask=None, key_mask=None, attention_mask=None,
                 return_attention_scores=False, training=None, use_causal_mask=False):
        if value is None:
            raise TypeError(f"{self._class}: call it on query and value: layer(query, value).")
        inputs = [query, value] + ([] if key is None else [key])
        masks = [query_mask, value_mask] + ([] if key is None else [key_mask])
        return self._attend(inputs, masks, attention_mask, return_attention_scores, training, use_causal_mask)


class ListAttention(Attending):
    """Attention without heads: called on a list of query, value and optionally key."""

    def __call__(self, inputs, mask=None, return_attention_scores=False, training=None, use_causal_mask=False):
        inputs = _leaves(inputs)
        if len(inputs) not in (2, 3):
            raise TypeError(f"{self._class}: call it on [query, value] or [query, value, key]; there are {len(inputs)} tensors.")
        return self._attend(inputs, mask, None, return_attention_scores, training, use_causal_mask)


def _object_of(value):
    """The object of an option that a config describes, such as an initializer."""
    if not isinstance(value, dict) or str(value.get("module", "")) not in ("keras.initializers", "keras.regularizers", "keras.constraints"):
        return value
    from .serialization import deserialize_keras_object

    return deserialize_keras_object(value)


def _only(call, config, known):
    """Raises an error if a config has other options than the known ones."""
    unknown = sorted(set(config) - known)
    if unknown:
        raise ValueError(f"from_config: {call} has no option '{unknown[0]}'.")


class AdaptedDiscretization(NativeLayer):
    """`Discretization`, which learns the boundaries of `num_bins` bins from data."""

    def _make(self, config):
        if not config.get("sparse"):
            config.pop("sparse", None)
        _only(self._class, config, {*self._parameters, "dtype"})
        bins, bounds = config.get("num_bins"), config.get("bin_boundaries")
        if bins is None and bounds is None:
            raise ValueError("Discretization: there are no bin_boundaries and no num_bins; give one of them.")
        self._must_learn = bounds is None
        return _wgrad.NativeLayer.discretization(json.dumps({"class_name": "Discretization", "config": config}))

    def adapt(self, data, batch_size=None, steps=None):
        """Learns the boundaries from an array, or from the batches of a dataset."""
        if isinstance(data, (np.ndarray, Tensor, Variable, list, tuple)):
            data, steps = [data], None
        self._native.adapt_on_host(map(_given, itertools.islice(data, steps)))
        self._must_learn = False

    def _called(self, leaves, training, mask):
        if self._must_learn:
            raise ValueError("Discretization: num_bins is set, and the boundaries are not known yet. Call adapt with data first.")
        return super()._called(leaves, training, mask)


class AdaptedNormalization(NativeLayer):
    """`Normalization`, which learns the mean and the variance of data."""

    def _make(self, config):
        _only(self._class, config, {"axis", "mean", "variance", "invert", "dtype"})
        listed = lambda value: None if value is None else [float(x) for x in np.ravel(value)]
        axis = [] if self._no_axis else [int(x) for x in np.ravel(config.get("axis", -1))]
        mean, variance = listed(config.get("mean")), listed(config.get("variance"))
        return _wgrad.NativeLayer.normalization(axis, mean, variance, bool(config.get("invert", False)))

    def __init__(self, *arguments, **options):
        self._no_axis = bool(arguments) and arguments[0] is None or options.get("axis", -1) is None
        super().__init__(*arguments, **options)

    def adapt(self, data, batch_size=None, steps=None):
        """Learns from an array, or from the batches of a dataset."""
        if isinstance(data, (np.ndarray, Tensor, Variable, list, tuple)):
            batches = [convert_to_tensor(data)]
        else:
            batches = [convert_to_tensor(batch) for at, batch in enumerate(data) if steps is None or at < steps]
        self._native.adapt(batches)
        self.built = True
