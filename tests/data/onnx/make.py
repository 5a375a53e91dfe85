"""Writes ONNX models, with the results that onnxruntime has for them.

    python make.py FOLDER [SEED]

makes FOLDER/NAME.onnx and FOLDER/NAME.safetensors with `in.*` and `out.*`. tests/saved_model/onnx.rs has them (the files beside
this one, of seed 0).
"""

import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper
from safetensors.numpy import save_file

FOLDER = sys.argv[1]
RANDOM = np.random.default_rng(int(sys.argv[2]) if len(sys.argv) > 2 else 0)


def normal(*shape, scale=0.3):
    return (scale * RANDOM.normal(size=shape)).astype(np.float32)


def value(name, *shape, dtype=T.FLOAT):
    return h.make_tensor_value_info(name, dtype, shape)


def node(op, inputs, outputs, **attributes):
    return h.make_node(op, inputs.split(), outputs.split(), name=f"{op}_{outputs.split()[0]}", **attributes)


def write(name, nodes, inputs, outputs, weights, arrays, opset=18, external=False, functions=()):
    initializers = [numpy_helper.from_array(array, key) for key, array in weights.items()]
    graph = h.make_graph(nodes, name, inputs, outputs, initializers)
    opsets = [h.make_opsetid("", opset), *[h.make_opsetid(function.domain, 1) for function in functions]]
    model = h.make_model(graph, opset_imports=opsets, ir_version=9, producer_name="make.py", functions=functions)
    onnx.checker.check_model(model)
    path = os.path.join(FOLDER, name + ".onnx")
    data = dict(save_as_external_data=True, location=name + ".data", size_threshold=0) if external else {}
    onnx.save(model, path, **data)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    results = session.run(None, arrays)
    files = {f"in.{key}": array for key, array in arrays.items()}
    files.update({f"out.{info.name}": result for info, result in zip(outputs, results)})
    save_file({key: np.array(array, order="C") for key, array in files.items()}, os.path.join(FOLDER, name + ".safetensors"))


os.makedirs(FOLDER, exist_ok=True)

write(
    "mlp",
    [
        node("Gemm", "x w1 b1", "h", transB=1),
        node("Relu", "h", "a"),
        node("MatMul", "a w2", "m"),
        node("Add", "m b2", "s"),
        node("Softmax", "s", "y", axis=-1),
    ],
    [value("x", "batch", 6)],
    [value("y", "batch", 3)],
    {"w1": normal(8, 6), "b1": normal(8), "w2": normal(8, 3), "b2": normal(3)},
    {"x": normal(4, 6, scale=1.0)},
    external=True,
)

write(
    "cnn",
    [
        node("Conv", "x k1 b1", "c", pads=[1, 1, 1, 1]),
        node("BatchNormalization", "c scale offset mean variance", "n"),
        node("Clip", "n zero six", "r"),
        node("MaxPool", "r", "p", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Conv", "p k2", "d", group=4, strides=[2, 2], pads=[0, 1, 1, 0]),
        node("ConvTranspose", "d k3", "t", strides=[2, 2], output_padding=[1, 1]),
        node("AveragePool", "t", "v", kernel_shape=[2, 2], ceil_mode=1, strides=[2, 2]),
        node("Resize", "v none scales", "z", mode="linear"),
        node("GlobalAveragePool", "z", "g"),
        node("Flatten", "g", "y"),
    ],
    [value("x", "batch", 3, 9, 8)],
    [value("y", "batch", 4)],
    {
        "k1": normal(4, 3, 3, 3), "b1": normal(4), "scale": normal(4) + 1, "offset": normal(4), "mean": normal(4),
        "variance": np.abs(normal(4)) + 0.5, "zero": np.float32(0), "six": np.float32(6), "k2": normal(8, 1, 2, 2),
        "k3": normal(8, 4, 3, 3), "none": np.zeros(0, np.float32), "scales": np.array([1, 1, 1.5, 2], np.float32),
    },
    {"x": normal(2, 3, 9, 8, scale=1.0)},
)

write(
    "attention",
    [
        node("Gather", "table ids", "e"),
        node("LayerNormalization", "e g b", "n"),
        node("MatMul", "n wqkv", "m"),
        node("Shape", "m", "shape"),
        node("Slice", "shape start two", "lengths"),
        node("Concat", "lengths heads", "split_shape", axis=0),
        node("Reshape", "m split_shape", "r"),
        node("Transpose", "r", "t", perm=[2, 3, 0, 1, 4]),
        node("Split", "t", "q k v", axis=0, num_outputs=3),
        node("Transpose", "k", "kt", perm=[0, 1, 2, 4, 3]),
        node("MatMul", "q kt", "scores"),
        node("Div", "scores root", "scaled"),
        node("Softmax", "scaled", "p", axis=-1),
        node("MatMul", "p v", "o"),
        node("Squeeze", "o first", "o4"),
        node("Transpose", "o4", "o5", perm=[1, 2, 0, 3]),
        node("Concat", "lengths minus", "join_shape", axis=0),
        node("Reshape", "o5 join_shape", "joined"),
        node("Add", "joined e", "y"),
    ],
    [value("ids", "batch", "time", dtype=T.INT64)],
    [value("y", "batch", "time", 8)],
    {
        "table": normal(20, 8), "g": normal(8) + 1, "b": normal(8), "wqkv": normal(8, 24), "start": np.array([0]), "two": np.array([2]),
        "heads": np.array([3, 2, 4]), "root": np.float32(2), "first": np.array([0]), "minus": np.array([-1]),
    },
    {"ids": RANDOM.integers(0, 20, (2, 5))},
)

write(
    "recurrent",
    [
        node("LSTM", "x w r b", "a h c", hidden_size=4, direction="bidirectional"),
        node("Transpose", "a", "t", perm=[0, 2, 1, 3]),
        node("Reshape", "t shape", "s"),
        node("GRU", "s w2 r2 b2", "g last", hidden_size=3, linear_before_reset=1),
        node("Squeeze", "last zero", "y"),
    ],
    [value("x", 7, "batch", 5)],
    [value("y", "batch", 3), value("c", 2, "batch", 4)],
    {
        "w": normal(2, 16, 5), "r": normal(2, 16, 4), "b": normal(2, 32), "shape": np.array([0, 0, 8]), "w2": normal(1, 9, 8),
        "r2": normal(1, 9, 3), "b2": normal(1, 18), "zero": np.array([0]),
    },
    {"x": normal(7, 2, 5, scale=1.0)},
)

then = h.make_graph([node("Mul", "x w", "yes")], "then", [], [value("yes", "n", 3)])
other = h.make_graph([node("Neg", "x", "no")], "else", [], [value("no", "n", 3)])
step = h.make_graph(
    [
        node("Tanh", "v", "u"),
        node("Add", "u w", "v_out"),
        node("ReduceSum", "v_out", "row", keepdims=0),
        node("Identity", "go", "go_out"),
    ],
    "body",
    [value("i", dtype=T.INT64), value("go", dtype=T.BOOL), value("v", "n", 3)],
    [value("go_out", dtype=T.BOOL), value("v_out", "n", 3), value("row")],
)
fold = h.make_graph(
    [node("Add", "state item", "state_out"), node("Mul", "state_out w", "item_out")],
    "fold",
    [value("state", 3), value("item", 3)],
    [value("state_out", 3), value("item_out", 3)],
)
write(
    "control",
    [
        node("ReduceSum", "x", "sum", keepdims=0),
        node("Greater", "sum zero", "positive"),
        node("If", "positive", "chosen", then_branch=then, else_branch=other),
        node("Loop", "turns yes_flag chosen", "last rows", body=step),
        node("Scan", "start x", "total items", body=fold, num_scan_inputs=1),
    ],
    [value("x", "n", 3)],
    [value("last", "n", 3), value("rows", 4), value("total", 3), value("items", "n", 3)],
    {
        "w": normal(3), "zero": np.float32(0), "turns": np.array(4), "yes_flag": np.array(True), "start": np.zeros(3, np.float32),
    },
    {"x": normal(4, 3, scale=1.0)},
)

# A function with the name of a standard op, and an integer to the power of a float.
square = h.make_function("own", "Relu", ["a"], ["b"], [node("Mul", "a a", "b")], [h.make_opsetid("", 18)])
write(
    "functions",
    [
        node("Relu", "x", "r"),
        h.make_node("Relu", ["x"], ["s"], name="own", domain="own"),
        node("Add", "r s", "y"),
        node("Pow", "i half", "p"),
    ],
    [value("x", "n"), value("i", "n", dtype=T.INT32)],
    [value("y", "n"), value("p", "n", dtype=T.INT32)],
    {"half": np.float32(0.5)},
    {"x": normal(3, scale=1.0), "i": np.array([4, 9, 17], np.int32)},
    functions=[square],
)
