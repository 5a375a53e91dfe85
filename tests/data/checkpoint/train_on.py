"""TensorFlow restores wgrad's checkpoints, trains on, and saves its own: `cargo xtask judge`.

For each case: restore FOLDER/NAME/wgrad-1 into an equal Keras model and its optimizer, and ask whether all of it was
taken; predict; make three steps; save FOLDER/NAME/keras-1; make three more. FOLDER/x.json holds the inputs by name.
Prints JSON: {"tensorflow": version, NAME: {"predictions": [...], "losses": [six], "variables": [[name, shape]]}}.
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


def mlp():
    return keras.Sequential([keras.Input((6,)), L.Dense(4, activation="tanh"), L.Dropout(0.0), L.Dense(2)])


def lazy():
    return keras.Sequential([L.Dense(4, activation="tanh"), L.LayerNormalization(), L.Dense(2)])


def cnn():
    x = keras.Input((6, 6, 2))
    y = L.Conv2D(3, 3, padding="same", use_bias=False)(x)
    y = L.BatchNormalization()(y)
    y = L.ReLU()(y)
    side = L.DepthwiseConv2D(3, padding="same")(y)
    y = L.Add()([y, side])
    y = L.SeparableConv2D(4, 3)(y)
    y = L.GlobalAveragePooling2D()(y)
    return keras.Model(x, L.Dense(2)(y))


def rnn():
    return keras.Sequential([
        keras.Input((5,), dtype="int32"),
        L.Embedding(7, 3),
        L.Bidirectional(L.LSTM(3, return_sequences=True)),
        L.TimeDistributed(L.Dense(3)),
        L.GRU(2),
    ])


def attention():
    a, b = keras.Input((4, 6)), keras.Input((4, 6))
    y = L.MultiHeadAttention(2, 3)(a, b)
    y = L.LayerNormalization()(L.Add()([a, y]))
    nested = keras.Sequential([L.Dense(5, activation="relu"), L.Dense(6)])
    y = L.Add()([y, nested(y)])
    return keras.Model([a, b], L.Dense(2)(L.GlobalAveragePooling1D()(y)))


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.first = L.Dense(4, activation="tanh")
        self.blocks = [L.Dense(3), L.Dense(3)]
        self.head = L.Dense(2)

    def call(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


OPTIMIZERS = {
    "sgd": lambda: O.SGD(0.05),
    "momentum": lambda: O.SGD(0.05, momentum=0.9, nesterov=True),
    "adam": lambda: O.Adam(0.01),
    "amsgrad": lambda: O.Adam(0.01, amsgrad=True),
    "adamw": lambda: O.AdamW(0.01),
    "rmsprop": lambda: O.RMSprop(0.01, momentum=0.5, centered=True),
    "adagrad": lambda: O.Adagrad(0.1),
    "adadelta": lambda: O.Adadelta(0.5),
    "adamax": lambda: O.Adamax(0.01),
    "nadam": lambda: O.Nadam(0.01),
    "ftrl": lambda: O.Ftrl(0.1),
    "lion": lambda: O.Lion(0.01),
    "lamb": lambda: O.Lamb(0.01),
    "adafactor": lambda: O.Adafactor(0.01),
    "averages": lambda: O.SGD(0.05, momentum=0.9, use_ema=True, gradient_accumulation_steps=2),
    "schedule": lambda: O.Adam(O.schedules.ExponentialDecay(0.05, 2, 0.5)),
    "scaled": lambda: O.LossScaleOptimizer(O.Adam(0.01)),
}
MODELS = {"mlp": mlp, "lazy": lazy, "cnn": cnn, "rnn": rnn, "attention": attention, "net": Net}


def main(folder):
    x = {name: np.array(v["values"], v["dtype"]).reshape(v["shape"])
         for name, v in json.load(open(os.path.join(folder, "x.json"))).items()}
    report = {"tensorflow": tf.__version__}
    for case in json.load(open(os.path.join(folder, "cases.json"))):
        model_name, optimizer_name = case.split("-")
        inputs = x[model_name]
        inputs = [inputs, inputs * 0.5] if model_name == "attention" else inputs
        model, optimizer = MODELS[model_name](), OPTIMIZERS[optimizer_name]()
        model(inputs)
        optimizer.build(model.trainable_variables)
        step = tf.Variable(0, dtype=tf.int64)
        checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, step=step)
        path = os.path.join(folder, case, "wgrad-1")
        checkpoint.restore(path).assert_consumed()
        assert step.numpy() == 3, step.numpy()
        found = {"predictions": np.array(model(inputs)).ravel().tolist(), "losses": []}

        def train():
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(inputs, training=True)))
                scaled = optimizer.scale_loss(loss) if optimizer_name == "scaled" else loss
            # Keras's RMSprop squares the rows of an embedding's gradient separately if a row occurs several times.
            grads = tape.gradient(scaled, model.trainable_variables)
            grads = [g if g is None else tf.convert_to_tensor(g) for g in grads]
            optimizer.apply_gradients(zip(grads, model.trainable_variables))
            step.assign_add(1)
            found["losses"].append(float(loss))

        for _ in range(3):
            train()
        checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, step=step)
        checkpoint.save(os.path.join(folder, case, "keras"))
        for _ in range(3):
            train()
        found["variables"] = [[name, shape] for name, shape in tf.train.list_variables(path)]
        report[case] = found
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1])
