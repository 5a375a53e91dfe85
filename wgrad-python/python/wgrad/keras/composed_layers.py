"""Layers made of other layers, as classes that programs derive from or call: `Wrapper`, `Pipeline`; and what a layer expects."""

from ..dtypes import as_name
from ..ops import FUNCTIONS, where
from .layer import Layer, _accepted
from .native import NativeLayer
from .objects import plain
from .structure import _leaves


class InputSpec:
    """What a layer expects of an input: the rank, the dtype, the sizes of axes. A layer sets its `input_spec` to one or a list."""

    def __init__(self, dtype=None, shape=None, ndim=None, max_ndim=None, min_ndim=None, axes=None, allow_last_axis_squeeze=False,
                 name=None, optional=False):
        self.dtype = None if dtype is None else as_name(dtype)
        self.shape = None if shape is None else tuple(shape)
        self.ndim = len(self.shape) if shape is not None else ndim
        self.max_ndim, self.min_ndim, self.name, self.optional = max_ndim, min_ndim, name, optional
        self.axes = {int(axis): size for axis, size in (axes or {}).items()}
        self.allow_last_axis_squeeze = allow_last_axis_squeeze
        highest = max(self.axes, default=-1)
        limit = ndim if ndim is not None else max_ndim
        if limit is not None and highest >= limit:
            raise ValueError(f"InputSpec: axes has the axis {highest}, and an input has at most {limit} axes.")

    def __repr__(self):
        given = {key: value for key, value in vars(self).items() if value not in (None, {}, False)}
        return f"InputSpec({', '.join(f'{key}={value}' for key, value in given.items())})"

    def get_config(self):
        """The options."""
        names = ("dtype", "shape", "ndim", "max_ndim", "min_ndim", "axes")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_config(cls, config):
        """An `InputSpec` with the options of a config."""
        return cls(**config)

    def fault(self, x):
        """What of an input does not fit, as "expected .., found .."; `None` if it fits."""
        shape = tuple(x.shape)
        if self.ndim is not None and not self.allow_last_axis_squeeze and len(shape) != self.ndim:
            return f"expected ndim={self.ndim}, found ndim={len(shape)}. Full shape received: {shape}"
        if self.max_ndim is not None and len(shape) > self.max_ndim:
            return f"expected max_ndim={self.max_ndim}, found ndim={len(shape)}"
        if self.min_ndim is not None and len(shape) < self.min_ndim:
            return f"expected min_ndim={self.min_ndim}, found ndim={len(shape)}. Full shape received: {shape}"
        if self.dtype is not None and as_name(x.dtype) != self.dtype:
            return f"expected dtype={self.dtype}, found dtype={as_name(x.dtype)}"
        for axis, size in self.axes.items():
            if size is not None and shape[axis] not in (size, None):
                return f"expected axis {axis} of input shape to have value {size}, but received input with shape {shape}"
        if self.shape is not None:
            squeezed = lambda sizes: sizes[:-1] if self.allow_last_axis_squeeze and sizes and sizes[-1] == 1 else sizes
            wanted, found = squeezed(self.shape), squeezed(shape)
            if len(wanted) != len(found) or any(None not in (a, b) and a != b for a, b in zip(wanted, found)):
                return f"expected shape={self.shape}, found shape={shape}"
        return None


class Wrapper(Layer):
    """A layer around another one, which it has as `layer`. A subclass defines `call`."""

    def __init__(self, layer, **options):
        if not isinstance(layer, Layer):
            raise ValueError(f"{type(self).__name__}: {layer!r} is no layer.")
        super().__init__(**options)
        self.layer = layer

    def build(self, input_shape=None):
        """Makes the variables of the layer inside."""
        if not self.layer.built:
            self.layer.build(input_shape)
            self.layer.built = True

    def get_config(self):
        """The options, with those of the layer inside."""
        from .serialization import serialize_keras_object

        return super().get_config() | {"layer": serialize_keras_object(self.layer)}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """A layer with the options of a config."""
        from .serialization import deserialize_keras_object

        return cls(deserialize_keras_object(config.pop("layer"), custom_objects), **config)


class Pipeline(Layer):
    """Layers in a row, such as those that change images, which are applied as in training unless `training` is false."""

    def __init__(self, layers, name=None, **options):
        super().__init__(name=name, **options)
        self._pipeline_layers = list(layers)

    @property
    def layers(self):
        return self._pipeline_layers

    def call(self, inputs, training=True, mask=None):
        for layer in self._pipeline_layers:
            takes = isinstance(layer, NativeLayer) or "training" in _accepted(layer)
            inputs = layer(inputs, training=training) if takes else layer(inputs)
        return inputs

    def get_config(self):
        """The name, and the layers with their options."""
        from .serialization import serialize_keras_object

        return {"layers": serialize_keras_object(self._pipeline_layers), "name": self.name}

    @classmethod
    def from_config(cls, config):
        """A pipeline with the options of a config."""
        from .serialization import deserialize_keras_object

        return cls(**{**config, "layers": deserialize_keras_object(config["layers"])})


class ReversibleEmbedding(Layer):
    """An `Embedding` that `layer(x, reverse=True)` runs backwards: from vectors to a number for each index."""

    def __init__(self, input_dim, output_dim, tie_weights=True, embeddings_initializer="uniform", embeddings_regularizer=None,
                 embeddings_constraint=None, mask_zero=False, reverse_dtype=None, logit_soft_cap=None, **options):
        super().__init__(**options)
        self.input_dim, self.output_dim, self.tie_weights, self.mask_zero = input_dim, output_dim, tie_weights, mask_zero
        from .serialization import deserialize_keras_object

        # Those of a file are configs.
        made = lambda value: deserialize_keras_object(value) if isinstance(value, dict) else value
        self.embeddings_initializer, self.embeddings_regularizer = made(embeddings_initializer), made(embeddings_regularizer)
        self.embeddings_constraint, self.reverse_dtype, self.logit_soft_cap = made(embeddings_constraint), reverse_dtype, logit_soft_cap

    def build(self, input_shape=None):
        """Makes the variables."""
        self.embeddings = self.add_weight(
            (self.input_dim, self.output_dim), self.embeddings_initializer, name="embeddings", regularizer=self.embeddings_regularizer,
            constraint=self.embeddings_constraint,
        )
        if not self.tie_weights:
            self.reverse_embeddings = self.add_weight(
                (self.output_dim, self.input_dim), self.embeddings_initializer, name="reverse_embeddings"
            )

    def call(self, inputs, reverse=False):
        if not reverse:
            return FUNCTIONS["gather"](self.embeddings, inputs)
        kernel = FUNCTIONS["transpose"](self.embeddings) if self.tie_weights else self.reverse_embeddings.read_value()
        if self.reverse_dtype is not None:
            inputs, kernel = inputs._cast(as_name(self.reverse_dtype)), kernel._cast(as_name(self.reverse_dtype))
        logits = inputs @ kernel
        cap = self.logit_soft_cap
        return logits if cap is None else FUNCTIONS["math.tanh"](logits / cap) * cap

    def compute_mask(self, inputs, previous_mask=None):
        """Where indices are not 0, with `mask_zero`."""
        is_index = self.mask_zero and not inputs._dtype.startswith("float")
        return FUNCTIONS["math.not_equal"](inputs, 0) if is_index else None

    def get_config(self):
        """The options."""
        names = (
            "input_dim", "output_dim", "tie_weights", "embeddings_initializer", "embeddings_regularizer", "embeddings_constraint", "mask_zero",
            "reverse_dtype", "logit_soft_cap",
        )
        return super().get_config() | {name: plain(getattr(self, name)) for name in names}


class AutoContrast(Layer):
    """Images whose smallest value becomes the lowest of `value_range` and whose largest the highest, for each channel."""

    def __init__(self, value_range=(0, 255), **options):
        super().__init__(**options)
        if not isinstance(value_range, (list, tuple)) or len(value_range) != 2 or value_range[0] == value_range[1]:
            raise ValueError(f"AutoContrast: value_range is {value_range!r}; it must be two numbers, such as (0, 255).")
        self.value_range = sorted(value_range)

    def call(self, images):
        images = images._cast(self.compute_dtype)
        axes = [-3, -2]
        low = FUNCTIONS["math.reduce_min"](images, axis=axes, keepdims=True)
        high = FUNCTIONS["math.reduce_max"](images, axis=axes, keepdims=True)
        first, last = map(float, self.value_range)
        # Channels of one value stay as they are.
        flat = FUNCTIONS["math.equal"](low, high)
        span = high - low + flat._cast(low._dtype)
        return where(flat, images, (images - low) * ((last - first) / span) + first)

    def get_config(self):
        """The options."""
        return super().get_config() | {"value_range": self.value_range}


# Layers of Keras that files have by these names.
OF_FILES = {layer.__name__: layer for layer in (AutoContrast, Pipeline, ReversibleEmbedding)}
for _class in (*OF_FILES.values(), Wrapper):
    _class.__module__ = "wgrad.keras.layers"


def check_inputs(layer, specs, inputs):
    """Raises an error if inputs are not what a layer expects."""
    specs = specs if isinstance(specs, (list, tuple)) else [specs]
    given = _leaves(inputs)
    if len(given) != len(specs):
        raise ValueError(f'Layer "{layer.name}" expects {len(specs)} input(s), but it received {len(given)}.')
    for at, (spec, x) in enumerate(zip(specs, given)):
        fault = None if spec is None else spec.fault(x)
        if fault is not None:
            raise ValueError(f"Input {at} of layer '{layer.name}' is incompatible with the layer: {fault}")
