"""Keras loads the feature space and the models with lookups that wgrad wrote into a folder, and must compute wgrad's results; then
it makes such files itself.

`python preprocessing_judge.py FOLDER`: NAME.keras and wanted.json there; writes made_NAME.keras and made.json.
"""

import json
import os
import pathlib
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from keras import layers  # noqa: E402
from keras.utils import FeatureSpace  # noqa: E402

folder = pathlib.Path(sys.argv[1])
wanted = json.loads((folder / "wanted.json").read_text())
TEXTS = tf.constant(["A good film", "a bad, bad film!", "the film", "no words known"])
NAMES = tf.constant([["ann"], ["bob"], ["cid"], ["ann"]])
SIZES = np.array([[1.0], [2.0], [3.0], [4.0]], "float32")
KINDS = np.array([[3], [5], [3], [9]])
NUMBERS = np.array([[4, 9], [1000, 7], [8, 8]])
AGES = [1.0, 2.0, 4.0, 9.0]
WORDS = ["x", "y", "x", "z"]
TABLE = {
    "word": WORDS, "kind": [3, 5, 3, 9], "age": AGES, "old": AGES, "half": AGES, "hash": WORDS,
}
TABLE = {k: tf.constant(v) for k, v in TABLE.items()}


def result(name, model):
    if name == "space":
        return np.asarray(model({k: TABLE[k] for k in model.features})).reshape(-1)
    if name.startswith("graph"):
        # The order of the inputs is part of the file.
        inputs = {"text": TEXTS[:, None], "first": NAMES, "second": NAMES, "kind": tf.constant(KINDS), "size": tf.constant(SIZES)}
        return np.asarray(model([inputs[x.name] for x in model.inputs])).reshape(-1)
    return np.asarray(model(TEXTS[:, None] if name.startswith("front") else tf.constant(NUMBERS))).reshape(-1)


for name, values in wanted.items():
    model = keras.saving.load_model(folder / f"{name}.keras")
    np.testing.assert_allclose(result(name, model), values, rtol=1e-5, atol=1e-5, err_msg=name)
    if name == "space":
        # It can learn again.
        model.adapt(TABLE)
print(len(wanted), "files agree")

made = {}


def keep(name, model):
    model.save(folder / f"made_{name}.keras")
    made[name] = result(name, model).tolist()


space = FeatureSpace(
    features={
        "word": FeatureSpace.string_categorical(name="word"),
        "kind": FeatureSpace.integer_categorical(name="kind", num_oov_indices=2),
        "age": FeatureSpace.float_normalized(name="age"),
        "hash": FeatureSpace.string_hashed(5, name="hash"),
        "old": FeatureSpace.float_discretized(2, name="old"),
    },
    crosses=[("word", "kind")], crossing_dim=8,
)
space.adapt(tf.data.Dataset.from_tensor_slices(TABLE).batch(4))
keep("space", space)
for mode in ["int", "tf_idf"]:
    words = layers.TextVectorization(output_mode=mode, ngrams=2, output_sequence_length=5 if mode == "int" else None)
    words.adapt(TEXTS)
    inner = [layers.Embedding(words.vocabulary_size(), 3), layers.GlobalAveragePooling1D()] if mode == "int" else []
    keep(f"front_{mode}", keras.Sequential([keras.Input((1,), dtype="string"), words, *inner, layers.Dense(2)]))
    lookup = layers.IntegerLookup(num_oov_indices=2, output_mode=mode)
    lookup.adapt(np.array([[4, 7], [7, 1000], [4, 4]]))
    inner = [layers.Embedding(lookup.vocabulary_size(), 3), layers.Flatten()] if mode == "int" else []
    keep(f"numbers_{mode}", keras.Sequential([keras.Input((2,), dtype="int32"), lookup, *inner, layers.Dense(2)]))
# Layers that are shared, chained, crossed, and called on several inputs.
text, first, second = (keras.Input((1,), dtype="string", name=name) for name in ("text", "first", "second"))
kind, size = keras.Input((1,), dtype="int64", name="kind"), keras.Input((1,), name="size")
words = layers.TextVectorization(output_mode="tf_idf", name="all_words")
words.adapt(TEXTS)
pairs = layers.TextVectorization(output_mode="tf_idf", ngrams=2, name="pairs")
pairs.adapt(TEXTS)
names = layers.StringLookup(vocabulary=["ann", "bob"], output_mode="multi_hot", name="names")
embedded = layers.Embedding(8, 3)(layers.HashedCrossing(8)([first, kind]))
joined = layers.Concatenate()([
    layers.Flatten()(words(text)), layers.Flatten()(pairs(text)), names(first), names(second), layers.Flatten()(embedded), layers.Hashing(4, output_mode="one_hot")(kind), size,
])
keep("graph", keras.Model([size, text, first, second, kind], layers.Dense(2)(joined)))
(folder / "made.json").write_text(json.dumps(made))
