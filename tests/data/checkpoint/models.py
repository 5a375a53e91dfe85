"""TensorFlow restores wgrad's checkpoints of models whose numbers and lists are easily mistaken, trains on, and saves its own.

As train_on.py, for models with masks, unused heads, frozen, shared and nested parts, and a pair of optimizers. FOLDER/x.json holds
a list of inputs by the model's name. Prints JSON: {NAME: {"predictions": [...], "losses": [six]}}.
"""
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import keras
import numpy as np
import tensorflow as tf

L, O = keras.layers, keras.optimizers


def words(mask_zero=True):
    return L.Embedding(7, 3, mask_zero=mask_zero)


def ids():
    return keras.Input((5,), dtype="int32")


def mask():
    x = ids()
    return keras.Model(x, L.Dense(2)(L.LSTM(3)(words()(x))))


def bimask():
    return keras.Sequential([
        keras.Input((5,), dtype="int32"),
        words(),
        L.Bidirectional(L.GRU(3, return_sequences=True)),
        L.LSTM(2),
        L.Dense(2),
    ])


def masking():
    return keras.Sequential([
        keras.Input((5, 2)),
        L.Masking(),
        L.TimeDistributed(L.Dense(3)),
        L.LSTM(3),
        L.Dense(2),
    ])


def join():
    a, b = ids(), ids()
    y = L.Add()([words()(a), words()(b)])
    return keras.Model([a, b], L.Dense(2)(L.LSTM(3)(y)))


def concat():
    a, b = ids(), ids()
    y = L.Concatenate()([words()(a), words()(b)])
    return keras.Model([a, b], L.Dense(2)(L.GRU(3)(y)))


def heads():
    x = ids()
    y = words()(x)
    y = L.LayerNormalization()(L.Add()([y, L.MultiHeadAttention(2, 3)(y, y)]))
    return keras.Model(x, L.Dense(2)(L.GlobalAveragePooling1D()(y)))


def branches():
    x = keras.Input((5, 2))
    y, z = L.Dense(3)(x), L.Dense(3)(x)
    y, z = L.LSTM(2)(L.Masking()(y)), L.LSTM(2)(z)
    return keras.Model(x, L.Dense(2)(L.Subtract()([y, z])))


def unused():
    x = keras.Input((4,))
    y = L.Dense(4, activation="tanh")(x)
    return keras.Model(x, [L.Dense(4)(y), L.Dense(4)(y)])


def frozen():
    x = keras.Input((4,))
    y = L.Dense(4, activation="tanh")(x)
    y = L.Dense(4, activation="tanh")(y)
    return keras.Model(x, L.Dense(4)(y))


def shared():
    a, b = keras.Input((4,)), keras.Input((4,))
    layer = L.Dense(4, activation="tanh")
    y = L.Concatenate()([layer(a), layer(b)])
    return keras.Model([a, b], L.Dense(2)(y))


def nested():
    x = ids()
    inner = keras.Sequential([keras.Input((5, 3)), L.Dense(3), L.LSTM(3, return_sequences=True)])
    y = inner(words()(x))
    return keras.Model(x, L.Dense(2)(L.GRU(3)(y)))


class Gan:
    def __init__(self):
        self.generator = keras.Sequential([keras.Input((4,)), L.Dense(4, activation="tanh"), L.Dense(4)])
        self.discriminator = keras.Sequential([keras.Input((4,)), L.Dense(4, activation="tanh"), L.Dense(1)])


MODELS = {f.__name__: f for f in (mask, bimask, masking, join, concat, heads, branches, unused, shared, nested)}
MODELS["frozenbefore"] = MODELS["frozenafter"] = frozen


def one(case, inputs, folder):
    model, optimizer = MODELS[case](), O.Adam(0.01)
    inputs = inputs if len(inputs) > 1 else inputs[0]
    if case == "frozenbefore":
        model.layers[1].trainable = False
    optimizer.build(model.trainable_variables)
    if case == "frozenafter":
        model.layers[1].trainable = False
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
    checkpoint.read(os.path.join(folder, case, "wgrad")).assert_consumed()

    def predict(training=False):
        y = model(inputs, training=training)
        return y[0] if isinstance(y, (list, tuple)) else y

    found = {"predictions": np.array(predict()).ravel().tolist(), "losses": []}

    def train():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(predict(True)))
        # Keras's Adam handles the rows of an embedding's gradient separately if a row occurs several times.
        grads = tape.gradient(loss, model.trainable_variables)
        grads = [g if g is None else tf.convert_to_tensor(g) for g in grads]
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        found["losses"].append(float(loss))

    go_on(train, checkpoint, os.path.join(folder, case, "keras"))
    return found


def gan(case, inputs, folder):
    z, real = inputs
    model, d_optimizer, g_optimizer = Gan(), O.Adam(0.01), O.Adam(0.02)
    generator, discriminator = model.generator, model.discriminator
    d_optimizer.build(discriminator.trainable_variables)
    g_optimizer.build(generator.trainable_variables)
    checkpoint = tf.train.Checkpoint(
        generator=generator, discriminator=discriminator, d_optimizer=d_optimizer, g_optimizer=g_optimizer
    )
    checkpoint.read(os.path.join(folder, case, "wgrad")).assert_consumed()
    found = {"predictions": np.array(discriminator(generator(z))).ravel().tolist(), "losses": []}

    def train():
        with tf.GradientTape() as tape:
            fake = discriminator(generator(z))
            loss = tf.reduce_mean(tf.square(discriminator(real) - 1)) + tf.reduce_mean(tf.square(fake))
        variables = discriminator.trainable_variables
        d_optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        with tf.GradientTape() as tape:
            g_loss = tf.reduce_mean(tf.square(discriminator(generator(z)) - 1))
        variables = generator.trainable_variables
        g_optimizer.apply_gradients(zip(tape.gradient(g_loss, variables), variables))
        found["losses"].append(float(loss + g_loss))

    go_on(train, checkpoint, os.path.join(folder, case, "keras"))
    return found


def go_on(train, checkpoint, path):
    for _ in range(3):
        train()
    checkpoint.write(path)
    for _ in range(3):
        train()


def main(folder):
    report = {}
    for case, inputs in json.load(open(os.path.join(folder, "x.json"))).items():
        inputs = [np.array(v["values"], v["dtype"]).reshape(v["shape"]) for v in inputs]
        report[case] = (gan if case == "gan" else one)(case, inputs, folder)
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1])
