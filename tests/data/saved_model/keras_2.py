"""Writes the folders `keras_2_*` next to this file: models of Keras 2, which describe their layers.

    pip install tensorflow-cpu==2.21.0 safetensors && pip install --no-deps tf_keras==2.21.0
    python keras_2.py

`NAME.safetensors` has a batch, `x`, and the model's result, `y`.
"""

import os
import shutil

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf
import tf_keras as keras
from safetensors.numpy import save_file

layers = keras.layers
HERE = os.path.dirname(os.path.abspath(__file__))


def functional():
    # The model in the model has a layer of the same name and another shape.
    inner = keras.Sequential(
        [layers.Dense(4, activation="relu", name="dense"), layers.BatchNormalization(name="norm")], name="inner"
    )
    x = keras.Input((6, 3), name="x")
    h = layers.Bidirectional(layers.LSTM(4, return_sequences=True), name="both")(x)
    h = layers.TimeDistributed(layers.Dense(4, name="each"), name="times")(h)
    h = layers.MultiHeadAttention(2, 3, name="attend")(h, h)
    a = inner(h)
    h = layers.Add(name="add")([a, inner(a)])
    y = layers.Dense(2, name="dense")(layers.Flatten()(h))
    return keras.Model(x, y, name="calls"), (6, 3)


def sequential():
    return keras.Sequential([
        layers.Conv2D(3, 3, padding="same", activation="relu", input_shape=(8, 8, 2)),
        layers.BatchNormalization(),
        layers.SeparableConv2D(4, 3),
        layers.MaxPooling2D(),
        layers.LeakyReLU(0.1),
        layers.Flatten(),
        layers.Dropout(0.5),
        layers.Dense(3, activation="softmax"),
    ]), (8, 8, 2)


class Own(keras.Model):
    def __init__(self):
        super().__init__(name="own")
        self.dense = layers.Dense(2)

    def call(self, x):
        return self.dense(x)


def main():
    tf.keras.utils.set_random_seed(1)
    random = np.random.default_rng(1)
    for name, model, shape in [
        ("functional", *functional()), ("sequential", *sequential()), ("subclass", Own(), (3,))
    ]:
        x = random.standard_normal((5, *shape)).astype(np.float32)
        # One step moves the statistics of normalizations.
        model.compile("sgd", "mse")
        model.fit(x, np.ones_like(model(x)), verbose=0)
        folder = os.path.join(HERE, f"keras_2_{name}")
        shutil.rmtree(folder, ignore_errors=True)
        # Without functions, the file is small.
        model.save(folder, save_format="tf", save_traces=False)
        if name == "subclass":
            shutil.rmtree(os.path.join(folder, "variables"))
        else:
            save_file({"x": x, "y": model.predict(x, verbose=0)}, f"{folder}.safetensors")


main()
