"""Layers for tables and text: vocabularies, hashes, `TextVectorization`. They compute on the host, where strings are."""

import json

import numpy as np

from .. import _wgrad, strings
from ..ragged import RaggedTensor
from ..strings import host_array as _given
from ..tensor import Tensor, Variable, convert_to_tensor
from .fronts import called, is_symbolic
from .structure import _by_name, _snake


def _text(word):
    return word.decode() if isinstance(word, bytes) else word


def _standardize(name):
    """Keras's function of this name."""
    lowers, strips = name in ("lower", "lower_and_strip_punctuation"), name in ("strip_punctuation", "lower_and_strip_punctuation")
    if name is not None and not (lowers or strips):
        raise ValueError(f"TextVectorization: standardize is {name!r}; it must be lower, strip_punctuation, lower_and_strip_punctuation, None or a function.")

    def standardize(texts):
        texts = strings.lower(texts) if lowers else texts
        return strings.regex_replace(texts, _PUNCTUATION, "") if strips else texts

    return standardize


# Keras's own pattern.
_PUNCTUATION = r"""[!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\']"""


class HostLayer:
    """A layer whose inputs are strings, or numbers on the host. Call it on arrays, or in `Dataset.map`: numbers come back as tensors,
    strings as arrays of NumPy."""

    _class = None
    _parameters = ()
    supports_masking = False

    def __init__(self, *arguments, name=None, trainable=True, dtype=None, **options):
        _by_name(self._class, self._parameters, arguments, options)
        self._functions = {key: options.pop(key) for key in ("standardize", "split") if callable(options.get(key))}
        # What the layer was given, where the native part gets something else.
        self._given = dict(self._functions)
        if "split" in self._functions and "standardize" not in self._functions:
            # The native part would standardize what has been split.
            self._given["standardize"] = options.get("standardize", "lower_and_strip_punctuation")
            self._functions["standardize"] = _standardize(self._given["standardize"])
        if "standardize" in self._functions:
            options["standardize"] = None
        for key in ("sparse", "ragged"):
            if options.pop(key, False):
                raise TypeError(f"{self._class}: there are no {key} tensors.")
        vocabulary = options.get("vocabulary")
        if isinstance(vocabulary, str):
            # A file with a word in each line.
            with open(vocabulary, encoding=options.get("encoding") or "utf-8") as file:
                words = file.read().split("\n")
            words = words[:-1] if words[-1] == "" else words
            options["vocabulary"] = [int(word) for word in words] if self._class == "IntegerLookup" else words
        self.name = name or _snake(self._class)
        # Whether results are rows of numbers, not indices. The config, which has all words, is too long to ask for each batch.
        self._makes_rows = options.get("output_mode", "int") != "int"
        config = {key: self._option(value) for key, value in options.items() if value is not None or key in ("standardize", "split")}
        self._native = _wgrad.NativeHostLayer(json.dumps({"class_name": self._class, "config": config}))

    @staticmethod
    def _option(value):
        value = value.numpy() if isinstance(value, (Tensor, Variable)) else value
        if isinstance(value, (np.ndarray, np.generic)):
            value = value.tolist()
        if isinstance(value, (list, tuple)):
            return [_text(item) for item in value]
        return _text(value)

    def __call__(self, inputs):
        if is_symbolic(inputs):
            return called(self, inputs)
        if isinstance(inputs, RaggedTensor):
            return inputs.with_flat_values(self(inputs.flat_values))
        result = self._native.call([_given(self._prepared(inputs))])
        return strings.noted(result) if result.dtype.kind == "O" else convert_to_tensor(result)

    call = __call__

    weights = variables = trainable_weights = trainable_variables = non_trainable_weights = non_trainable_variables = ()

    def get_weights(self):
        """No arrays: what the layer has learned is in its config."""
        return []

    def set_weights(self, weights):
        """Takes no arrays: what the layer has learned is in its config."""
        if len(weights):
            raise ValueError(f"{self._class}: set_weights: the layer has no weights; it was given {len(weights)}.")

    def _prepared(self, inputs):
        """What the functions of the program make of strings."""
        return inputs

    def get_config(self):
        return json.loads(self._native.config())["config"] | {"name": self.name} | self._given

    @classmethod
    def from_config(cls, config):
        """A layer with the options of a config."""
        # A vocabulary of Keras's files is part of the config when this is called.
        left = ("vocabulary_size", "has_input_vocabulary", "trainable", "dtype")
        return cls(**{key: value for key, value in config.items() if key not in left and not (key == "vocabulary" and value is None)})

    def __repr__(self):
        return f"<{self._class} name={self.name}>"


class LearningLayer(HostLayer):
    """A layer with a vocabulary, which it learns from data or is given."""

    def adapt(self, data, batch_size=None, steps=None):
        """Learns the vocabulary from an array, or from the batches of a dataset."""
        self._native.reset_state()
        if isinstance(data, (str, bytes, list, tuple, np.ndarray, Tensor, Variable)):
            kind, shape, values = _given(self._prepared(data))
            self._native.update_state((kind, [*shape, 1] if len(shape) == 1 else shape, values))
        else:
            for at, batch in enumerate(data):
                if steps is not None and at >= steps:
                    break
                kind, shape, values = _given(self._prepared(batch))
                self._native.update_state((kind, shape or [1], values))
        self._native.finalize_state()

    def get_vocabulary(self, include_special_tokens=True):
        """The words by index."""
        words = [_text(word) for word in self._native.vocabulary().tolist()]
        return words if include_special_tokens else words[self._special_tokens():]

    def _special_tokens(self):
        options = json.loads(self._native.config())["config"]
        # TextVectorization has an empty word and one for unknown words.
        mask = options.get("mask_token", "") is not None and options.get("output_mode") == "int"
        return options.get("num_oov_indices", 1) + mask

    def vocabulary_size(self):
        return len(self._native.vocabulary())

    def set_vocabulary(self, vocabulary, idf_weights=None):
        """Sets the words by index, without special tokens or beginning with all of them."""
        weights = None if idf_weights is None else [float(weight) for weight in np.ravel(idf_weights)]
        self._native.set_vocabulary(_given(vocabulary), weights)


class VectorizingLayer(LearningLayer):
    """`TextVectorization`, whose `standardize` and `split` may be functions of the program."""

    def _prepared(self, inputs):
        if not self._functions:
            return inputs
        texts = strings.of(inputs)
        standardize, split = self._functions.get("standardize"), self._functions.get("split")
        if standardize is not None:
            texts = strings.of(standardize(texts))
        if split is None:
            return texts
        texts = texts[..., 0] if texts.ndim == 2 and texts.shape[1] == 1 else texts
        rows = [split(texts)] if texts.ndim == 0 else split(texts)
        if len(rows) != texts.size:
            raise ValueError(f"{self._class}: split made {len(rows)} lists of words for {texts.size} texts.")
        joined = []
        for row in rows:
            words = strings.of(row).ravel().tolist()
            odd = next((word for word in words if word.split() != [word]), None)
            if odd is not None:
                raise ValueError(f"{self._class}: split made the word {odd!r}; words must have letters and no spaces.")
            joined.append(b" ".join(words))
        made = np.empty(len(joined), dtype=object)
        made[:] = joined
        return made.reshape(texts.shape)


class CrossingLayer(HostLayer):
    """`HashedCrossing`, which takes several columns."""

    def __call__(self, inputs):
        if any(map(is_symbolic, inputs)):
            return called(self, inputs)
        return convert_to_tensor(self._native.call([_given(column) for column in inputs]))

    call = __call__


def _classes(base, table):
    made = {}
    for line in table.strip().splitlines():
        name, *parameters = line.split()
        doc = f"Keras's `{name}`: {', '.join(parameters)}."
        made[name] = type(name, (base,), {"_class": name, "_parameters": tuple(parameters), "__module__": "wgrad.keras.layers", "__doc__": doc})
    return made


LAYERS = {
    **_classes(LearningLayer, """
StringLookup max_tokens num_oov_indices mask_token oov_token vocabulary idf_weights invert output_mode pad_to_max_tokens
IntegerLookup max_tokens num_oov_indices mask_token oov_token vocabulary vocabulary_dtype idf_weights invert output_mode
"""),
    **_classes(
        VectorizingLayer,
        "TextVectorization max_tokens standardize split ngrams output_mode output_sequence_length pad_to_max_tokens vocabulary idf_weights",
    ),
    **_classes(HostLayer, "Hashing num_bins mask_value salt output_mode"),
    **_classes(CrossingLayer, "HashedCrossing num_bins output_mode"),
}
