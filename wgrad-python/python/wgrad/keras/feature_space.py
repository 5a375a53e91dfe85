"""`keras.utils.FeatureSpace`: the columns of a table as one row of numbers for each example, computed on the host."""

import json
import os
import zipfile

import numpy as np

from .. import _wgrad
from ..tensor import Tensor, Variable, convert_to_tensor
from .fronts import Node
from .host_layers import HostLayer, LearningLayer, _given
from .layers import Discretization, Hashing, IntegerLookup, Normalization, Rescaling, StringLookup
from .symbols import Input


class _Bins:
    """Bins of numbers whose boundaries are learnt."""

    def __init__(self, num_bins):
        self.num_bins = int(num_bins)


class Feature:
    """How a column becomes numbers: its dtype, its layer, and what it contributes, `int`, `one_hot` or `float`."""

    def __init__(self, dtype, preprocessor, output_mode):
        if output_mode not in ("int", "one_hot", "float"):
            raise ValueError(f"FeatureSpace: output_mode is {output_mode!r}; it must be 'int', 'one_hot' or 'float'.")
        self.dtype, self.preprocessor, self.output_mode = dtype, preprocessor, output_mode

    def _described(self, name):
        """What the native part makes the feature of."""
        layer = self.preprocessor
        if layer is None:
            kind, numbers = "float", []
        elif isinstance(layer, Rescaling):
            config = layer.get_config()
            kind, numbers = "float_rescaled", [float(config["scale"]), float(config["offset"])]
        elif isinstance(layer, Normalization):
            kind, numbers = "float_normalized", []
        elif isinstance(layer, _Bins):
            kind, numbers = "float_discretized", [layer.num_bins]
        elif isinstance(layer, (HostLayer, Discretization)):
            config = {key: value for key, value in layer.get_config().items() if key not in ("name", "dtype", "trainable")}
            return name, "layer", self.dtype, [], json.dumps({"class_name": layer._class, "config": config}), self.output_mode
        else:
            raise TypeError(f"FeatureSpace: the feature '{name}' has the layer {type(layer).__name__}, which does not compute on the host.")
        return name, kind, self.dtype, numbers, None, self.output_mode

    def _learns(self):
        layer = self.preprocessor
        return isinstance(layer, (_Bins, Normalization)) or isinstance(layer, LearningLayer) and not layer.get_config().get("vocabulary")


class Cross:
    """The combinations of the categories of several features, hashed into bins."""

    def __init__(self, feature_names, crossing_dim, output_mode="one_hot"):
        if output_mode not in ("int", "one_hot"):
            raise ValueError(f"FeatureSpace: output_mode is {output_mode!r}; it must be 'int' or 'one_hot'.")
        self.feature_names, self.crossing_dim, self.output_mode = tuple(feature_names), crossing_dim, output_mode

    @property
    def name(self):
        return "_X_".join(self.feature_names)


class FeatureSpace:
    """Encodes dicts of columns. `features` has a `Feature` or the name of a kind for each column, such as `"string_categorical"`."""

    # What comes out has its dtype already.
    _class, _given, _makes_rows = "FeatureSpace", {}, False

    def __init__(self, features, output_mode="concat", crosses=None, crossing_dim=32, hashing_dim=32, num_discretization_bins=32, name=None):
        if not features:
            raise ValueError("FeatureSpace: there is no feature.")
        if output_mode not in ("concat", "dict"):
            raise ValueError(f"FeatureSpace: output_mode is {output_mode!r}; it must be 'concat' or 'dict'.")
        kinds = {
            "float": self.float, "float_normalized": self.float_normalized, "float_rescaled": self.float_rescaled,
            "float_discretized": lambda: self.float_discretized(num_discretization_bins), "integer_categorical": self.integer_categorical,
            "string_categorical": self.string_categorical, "integer_hashed": lambda: self.integer_hashed(hashing_dim),
            "string_hashed": lambda: self.string_hashed(hashing_dim),
        }
        for key, value in features.items():
            if not isinstance(value, Feature) and value not in kinds:
                raise ValueError(f"FeatureSpace: the feature '{key}' is {value!r}; it must be a Feature or one of {', '.join(kinds)}.")
        self.features = {key: value if isinstance(value, Feature) else kinds[value]() for key, value in features.items()}
        self.crosses = [cross if isinstance(cross, Cross) else Cross(cross, crossing_dim) for cross in crosses or ()]
        for cross in self.crosses:
            unknown = [key for key in cross.feature_names if key not in self.features]
            if unknown:
                raise ValueError(f"FeatureSpace: the cross {cross.name} names '{unknown[0]}', which is no feature.")
        self._adapted = not any(feature._learns() for feature in self.features.values())
        self._begin(output_mode, name, _wgrad.NativeFeatureSpace(
            [feature._described(key) for key, feature in self.features.items()],
            [(list(cross.feature_names), int(cross.crossing_dim), cross.output_mode) for cross in self.crosses],
        ))

    def _begin(self, output_mode, name, native):
        self.output_mode, self.name, self._native = output_mode, name or "feature_space", native
        self._inputs = self._encoded = None

    # ---- kinds of features ----

    @classmethod
    def cross(cls, feature_names, crossing_dim, output_mode="one_hot"):
        return Cross(feature_names, crossing_dim, output_mode)

    @classmethod
    def feature(cls, dtype, preprocessor, output_mode):
        return Feature(dtype, preprocessor, output_mode)

    @classmethod
    def float(cls, name=None):
        return Feature("float32", None, "float")

    @classmethod
    def float_rescaled(cls, scale=1.0, offset=0.0, name=None):
        return Feature("float32", Rescaling(scale, offset), "float")

    @classmethod
    def float_normalized(cls, name=None):
        return Feature("float32", Normalization(axis=-1), "float")

    @classmethod
    def float_discretized(cls, num_bins, bin_boundaries=None, output_mode="one_hot", name=None):
        layer = _Bins(num_bins) if bin_boundaries is None else Discretization(bin_boundaries=list(bin_boundaries))
        return Feature("float32", layer, output_mode)

    @classmethod
    def integer_categorical(cls, max_tokens=None, num_oov_indices=1, output_mode="one_hot", name=None):
        return Feature("int32", IntegerLookup(max_tokens=max_tokens, num_oov_indices=num_oov_indices), output_mode)

    @classmethod
    def string_categorical(cls, max_tokens=None, num_oov_indices=1, output_mode="one_hot", name=None):
        return Feature("string", StringLookup(max_tokens=max_tokens, num_oov_indices=num_oov_indices), output_mode)

    @classmethod
    def string_hashed(cls, num_bins, output_mode="one_hot", name=None):
        return Feature("string", Hashing(num_bins=num_bins), output_mode)

    @classmethod
    def integer_hashed(cls, num_bins, output_mode="one_hot", name=None):
        return Feature("int32", Hashing(num_bins=num_bins), output_mode)

    # ---- calls ----

    def _columns(self, data):
        if not isinstance(data, dict):
            raise TypeError(f"FeatureSpace: it is called with a dict of columns; this is {type(data).__name__}.")
        return [(name, _given(data[name])) for name in self.features if name in data]

    def adapt(self, dataset):
        """Learns vocabularies, means and bins from a dict of columns, or from a dataset of dicts."""
        if isinstance(dataset, dict):
            self._native.adapt([self._columns(dataset)])
        elif hasattr(dataset, "__iter__"):
            self._native.adapt(self._columns(self._alone(element)) for element in dataset)
        else:
            raise TypeError(f"FeatureSpace: adapt takes a dict or a dataset of dicts; this is {type(dataset).__name__}.")
        self._adapted = True
        self._inputs = self._encoded = None

    def _of_list(self, values):
        """What a model of symbols calls, with the columns in their order."""
        return self(dict(zip(self.features, values)))

    def _alone(self, element):
        if not isinstance(element, dict):
            raise TypeError(f"FeatureSpace: the dataset's elements must be dicts of columns; this is {type(element).__name__}.")
        # An element without a batch: a row of its own.
        values = {key: value.numpy() if isinstance(value, (Tensor, Variable)) else np.asarray(value) for key, value in element.items()}
        return {key: value[None] if value.ndim == 0 else value for key, value in values.items()}

    def __call__(self, data):
        if not self._adapted:
            raise ValueError("FeatureSpace: it has features that learn from data; call adapt first.")
        columns = self._columns(data)
        if self.output_mode == "concat":
            return convert_to_tensor(self._native.apply(columns))
        return {name: convert_to_tensor(array) for name, array in self._native.apply_dict(columns)}

    # ---- models of symbols ----

    def get_inputs(self):
        """A symbol for each column."""
        if self._inputs is None:
            self._inputs = {key: Input((1,), dtype=feature.dtype, name=key) for key, feature in self.features.items()}
        return self._inputs

    def get_encoded_features(self):
        """The symbol of the encoded columns, or a dict of one for each feature."""
        if self._encoded is None:
            empty = {key: np.array([["a"]], dtype=object) if f.dtype == "string" else np.zeros((1, 1), f.dtype) for key, f in self.features.items()}
            made, inputs = self(empty), list(self.get_inputs().values())
            if self.output_mode == "concat":
                self._encoded = self._symbol(made, self, inputs)
            else:
                self._encoded = {key: self._symbol(array, _Part(self, key), inputs) for key, array in made.items()}
        return self._encoded

    @staticmethod
    def _symbol(made, layer, inputs):
        symbol = _wgrad.input(list(made.shape[1:]), None, made._dtype, None)
        symbol._host = Node(layer, inputs)
        return symbol

    # ---- files ----

    def save(self, filepath):
        """Writes a `.keras` file, which Keras reads as a FeatureSpace."""
        self._native.save(os.fspath(filepath))

    @classmethod
    def load(cls, filepath):
        """The space in a `.keras` file."""
        native = _wgrad.NativeFeatureSpace.load(os.fspath(filepath))
        with zipfile.ZipFile(filepath) as file:
            options = json.loads(file.read("config.json"))["config"]
        space = cls.__new__(cls)
        space._adapted = True
        described = {key: value["config"] for key, value in options["features"].items()}
        space.features = {key: Feature(value["dtype"], None, value["output_mode"]) for key, value in described.items()}
        space.crosses = [Cross(**value["config"]) for value in options.get("crosses") or ()]
        space._begin(options.get("output_mode") or "concat", options.get("name"), native)
        return space

    def get_config(self):
        return {"output_mode": self.output_mode, "name": self.name}


class _Part:
    """One feature of a space, as a layer of a model of symbols."""

    # What comes out has its dtype already.
    _class, _given, _makes_rows = "FeatureSpace", {}, False

    def __init__(self, space, key):
        self._space, self._key, self.name = space, key, f"{space.name}_{key}"

    def _of_list(self, values):
        return self._space._of_list(values)[self._key]

    def get_config(self):
        return self._space.get_config()
