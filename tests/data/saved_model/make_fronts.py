"""Keras exports models with layers for strings: FOLDER/NAME, with inputs and results in FOLDER/made.json."""

import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf
from keras import layers

FOLDER = sys.argv[1]
GIVEN = {
    "text": ["A good, GOOD film!", "", "a bad\tfilm ", "no words known", "\u00e4u\u00dferst gut", "a-b c_d"],
    "word": ["red", "green", "", "blue", "yellow", "red"],
    "kind": [4, 7, -3, 1000, 8, 0],
}
COLOURS, WORDS = ["red", "green", "blue"], ["a", "good", "film", "bad", "a good"]
made = {}


def export(name, inputs, layer, rows=None):
    """A model of one layer; with `rows`, the layer makes rows of numbers, else indices."""
    symbols = [keras.Input((1,), dtype="int64" if key == "kind" else "string", name=key) for key in inputs]
    x = layer(symbols if len(symbols) > 1 else symbols[0])
    y = layers.Dense(2)(x) if rows else layers.Embedding(16, 2)(x)
    model = keras.Model(symbols, y)
    values = [tf.constant(np.array(GIVEN[key], dtype=np.int64 if key == "kind" else object)[:, None]) for key in inputs]
    y = np.asarray(model(values if len(values) > 1 else values[0]))
    model.export(os.path.join(FOLDER, name), verbose=False)
    made[name] = {
        "inputs": {key: GIVEN[key] for key in inputs},
        "y": {"shape": list(y.shape), "values": y.reshape(-1).tolist()},
    }


V = layers.TextVectorization
export("text", ["text"], V(vocabulary=WORDS))
export("text_length", ["text"], V(vocabulary=WORDS, output_sequence_length=3))
export("text_ngrams", ["text"], V(vocabulary=WORDS, ngrams=2))
export("text_lower", ["text"], V(vocabulary=WORDS, standardize="lower"))
export("text_characters", ["text"], V(vocabulary=["a", "o", "d"], split="character"))
export("text_multi_hot", ["text"], V(vocabulary=WORDS, output_mode="multi_hot"), rows=True)
export("text_count", ["text"], V(vocabulary=WORDS, output_mode="count", ngrams=2), rows=True)
adapted = V(output_mode="tf_idf")
adapted.adapt(GIVEN["text"])
export("text_tf_idf", ["text"], adapted, rows=True)
export("lookup", ["word"], layers.StringLookup(vocabulary=COLOURS))
export("lookup_mask", ["word"], layers.StringLookup(vocabulary=COLOURS, mask_token="", num_oov_indices=3))
export("lookup_rows", ["word"], layers.StringLookup(vocabulary=COLOURS, output_mode="multi_hot"), rows=True)
export("numbers", ["kind"], layers.IntegerLookup(vocabulary=[4, 7, 1000], num_oov_indices=2))
export("hash", ["word"], layers.Hashing(7))
export("hash_salt", ["word"], layers.Hashing(7, salt=[3, 5]))
export("hash_mask", ["word"], layers.Hashing(7, mask_value=""))
export("cross", ["word", "kind"], layers.HashedCrossing(7))
export("cross_rows", ["word", "kind"], layers.HashedCrossing(7, output_mode="one_hot"), rows=True)

with open(os.path.join(FOLDER, "made.json"), "w", encoding="utf-8") as file:
    json.dump(made, file)
