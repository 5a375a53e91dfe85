"""Trains the model that web/examples/models.html loads first, with Keras on MNIST, and writes it as ONNX.

    python train-digits.py MNIST_FOLDER

MNIST_FOLDER has MNIST's four files. It needs tensorflow and onnx, and writes examples/digits.onnx next to this file.
"""

import gzip
import os
import sys

import keras
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))


def read(name, skip):
    for path in [os.path.join(sys.argv[1], name), os.path.join(sys.argv[1], name + ".gz")]:
        if os.path.exists(path):
            with (gzip.open if path.endswith(".gz") else open)(path) as file:
                return np.frombuffer(file.read(), np.uint8)[skip:]
    raise SystemExit(f"{sys.argv[1]} has no {name}")


def part(half):
    x = read(f"{half}-images-idx3-ubyte", 16).reshape(-1, 28, 28, 1).astype(np.float32) / 255
    return x, read(f"{half}-labels-idx1-ubyte", 8).astype(np.int32)


keras.utils.set_random_seed(0)
model = keras.Sequential([
    keras.Input((28, 28, 1)),
    keras.layers.Conv2D(8, 3, strides=2, activation="relu"),
    keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
    keras.layers.Flatten(),
    keras.layers.Dense(10, activation="softmax"),
])
model.compile(keras.optimizers.Adam(2e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(*part("train"), epochs=5, batch_size=128, verbose=2)
print("on the test images:", model.evaluate(*part("t10k"), verbose=0)[1])

first, second, _, dense = model.layers
weights = []


def weight(name, value):
    weights.append(numpy_helper.from_array(np.ascontiguousarray(value, np.float32), name))
    return name


def conv(name, layer, x, y):
    kernel, bias = layer.get_weights()
    inputs = [x, weight(f"{name}/kernel", kernel.transpose(3, 2, 0, 1)), weight(f"{name}/bias", bias)]
    return [helper.make_node("Conv", inputs, [f"{y}_0"], strides=[2, 2]), helper.make_node("Relu", [f"{y}_0"], [y])]


kernel, bias = dense.get_weights()
nodes = [
    helper.make_node("Transpose", ["image"], ["x"], perm=[0, 3, 1, 2]),
    *conv("first", first, "x", "a"),
    *conv("second", second, "a", "b"),
    # Keras flattens images with their channels last.
    helper.make_node("Transpose", ["b"], ["c"], perm=[0, 2, 3, 1]),
    helper.make_node("Flatten", ["c"], ["d"]),
    helper.make_node("Gemm", ["d", weight("dense/kernel", kernel), weight("dense/bias", bias)], ["e"]),
    helper.make_node("Softmax", ["e"], ["digit"], axis=-1),
]
image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 28, 28, 1])
digit = helper.make_tensor_value_info("digit", TensorProto.FLOAT, ["batch", 10])
graph = helper.make_graph(nodes, "digits", [image], [digit], weights)
made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], producer_name="Keras, by hand")
made.ir_version = 9
onnx.checker.check_model(made, full_check=True)
onnx.save(made, os.path.join(HERE, "examples", "digits.onnx"))
