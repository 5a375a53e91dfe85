"""Writes models in TensorFlow.js's formats, with the results that TensorFlow.js has for them.

    python make.py NODE_FOLDER [FOLDER]

makes FOLDER/NAME/model.json and its weights, and FOLDER/NAME.safetensors with `in.*` and `out.*`. It needs the package
`tensorflowjs` (4.22), and in NODE_FOLDER the npm package `@tensorflow/tfjs` (4.22). FOLDER is by default that of this file.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import keras
import numpy as np
import tensorflow as tf
import tf_keras
from keras import layers as L
from safetensors.numpy import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
NODE = os.path.abspath(sys.argv[1])
FOLDER = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else HERE
RANDOM = np.random.default_rng(0)


def normal(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def convert(source, name, *flags):
    target = os.path.join(FOLDER, name)
    shutil.rmtree(target, ignore_errors=True)
    command = [os.path.join(os.path.dirname(sys.executable), "tensorflowjs_converter"), *flags, source, target]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def node(*arguments, text=""):
    script = os.path.join(NODE, "tfjs-cases.mjs")
    shutil.copy(os.path.join(HERE, "run.mjs"), script)
    done = subprocess.run(["node", script, *arguments], input=text, text=True, check=True, capture_output=True, cwd=NODE)
    return json.loads(done.stdout) if done.stdout.strip() else None


def record(name, inputs, text=None):
    """Writes the results of TensorFlow.js."""
    given = {
        key: {"dtype": "int32" if value.dtype == np.int32 else "float32", "shape": value.shape, "values": value.ravel().tolist()}
        for key, value in inputs.items()
    }
    results = node("run", os.path.join(FOLDER, name), text=json.dumps(given))
    values = {f"in.{key}": value for key, value in inputs.items()}
    for key, result in results.items():
        dtype = {"float32": np.float32, "int32": np.int32, "bool": np.bool_}[result["dtype"]]
        values[f"out.{key}"] = np.array(result["values"], dtype).reshape(result["shape"])
    save_file(values, os.path.join(FOLDER, name + ".safetensors"))


def randomize(model):
    """Weights that differ from their first values, as after training: moving variances stay above zero."""
    for weight in model.weights:
        value = normal(*weight.shape) * 0.4
        name = getattr(weight, "path", weight.name)
        weight.assign(np.abs(value) + 0.5 if "variance" in name or "gamma" in name else value)


def pictures():
    """Layers whose ops the converter fuses."""
    keras.utils.clear_session()
    model = keras.Sequential([
        L.Input((12, 12, 3)),
        L.Conv2D(4, 3, strides=2, padding="same", use_bias=False),
        L.BatchNormalization(),
        L.ReLU(max_value=6.0),
        L.DepthwiseConv2D(3, padding="same", use_bias=False),
        L.BatchNormalization(),
        L.ReLU(),
        L.Conv2D(6, 1, activation="elu"),
        L.Conv2D(6, 1),
        L.PReLU(shared_axes=[1, 2]),
        L.Conv2D(6, 3, activation="leaky_relu"),
        L.GlobalAveragePooling2D(),
        L.Dense(8, activation="relu"),
        L.Dense(5, activation="softmax"),
    ])
    randomize(model)
    return model


class Control(tf.Module):
    """A loop and a branch by values."""

    def __init__(self):
        self.w = tf.Variable(normal(3, 3), name="w")

    @tf.function(input_signature=[tf.TensorSpec([2, 3], tf.float32, name="x")])
    def __call__(self, x):
        i, y = tf.while_loop(
            lambda i, y: tf.logical_and(i < 6, tf.reduce_sum(tf.abs(y)) < 40.0),
            lambda i, y: (i + 1, tf.matmul(y, self.w) + x),
            [tf.constant(0), x],
        )
        y = tf.cond(tf.reduce_sum(y) > 0.0, lambda: y * 2.0, lambda: tf.nn.relu(y) - 1.0)
        return {"y": y, "turns": i}


class Tables(tf.Module):
    """The numbers of words, and words for them."""

    def __init__(self):
        numbers = tf.lookup.KeyValueTensorInitializer(["red", "green", "blue"], tf.constant([0, 1, 2], tf.int64))
        self.numbers = tf.lookup.StaticHashTable(numbers, -1)
        words = tf.lookup.KeyValueTensorInitializer(tf.constant([0, 1, 2], tf.int64), ["rot", "gruen", "blau"])
        self.words = tf.lookup.StaticHashTable(words, "?")
        self.rows = tf.Variable([[1.0], [2.0], [3.0]])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="s")])
    def __call__(self, s):
        place = self.numbers.lookup(s)
        return {"place": place, "word": self.words.lookup(place), "row": tf.gather(self.rows, tf.maximum(place, 0))}


def graph_models():
    with tempfile.TemporaryDirectory() as folder:
        graph = ["--input_format=tf_saved_model", "--output_format=tfjs_graph_model"]
        tables = Tables()
        tf.saved_model.save(tables, os.path.join(folder, "tables"), signatures=tables.__call__)
        convert(os.path.join(folder, "tables"), "graph_tables", *graph)
        model = pictures()
        x = normal(2, 12, 12, 3)
        model.export(os.path.join(folder, "pictures"), verbose=False)
        convert(os.path.join(folder, "pictures"), "graph_pictures", *graph, "--weight_shard_size_bytes=2048")
        for kind in ["uint8", "uint16", "float16"]:
            convert(os.path.join(folder, "pictures"), f"graph_{kind}", *graph, f"--quantize_{kind}=*")
        for name in ["pictures", "uint8", "uint16", "float16"]:
            record(f"graph_{name}", {"keras_tensor": x})
        control = Control()
        tf.saved_model.save(control, os.path.join(folder, "control"), signatures=control.__call__)
        convert(os.path.join(folder, "control"), "graph_control", *graph, "--control_flow_v2=True")
        record("graph_control", {"x": normal(2, 3)})


def layers_models():
    with tempfile.TemporaryDirectory() as folder:
        tf_keras.utils.set_random_seed(0)
        K = tf_keras.layers
        a = tf_keras.Input((8, 8, 2), name="picture")
        x = K.Conv2D(4, 3, padding="same", activation="relu", name="conv_b")(a)
        y = K.BatchNormalization(name="bn_a")(x)
        y = K.DepthwiseConv2D(3, padding="same", activation="relu6")(y)
        x = K.Add()([x, y])
        inner = tf_keras.Sequential([K.Input((4,)), K.Dense(6, activation="tanh"), K.BatchNormalization()], name="inner")
        z = inner(K.GlobalMaxPooling2D()(x))
        model = tf_keras.Model(a, K.Dense(3, activation="softmax", name="scores")(z))
        randomize(model)
        model.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
        path = os.path.join(folder, "functional.h5")
        model.save(path)
        convert(path, "layers_functional", "--input_format=keras")
        record("layers_functional", {"picture": normal(2, 8, 8, 2)})
    node("make", os.path.join(FOLDER, "layers_sequential"))
    record("layers_sequential", {"input": RANDOM.integers(0, 9, size=(2, 5)).astype(np.int32)})


graph_models()
layers_models()
