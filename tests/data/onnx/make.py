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

# Weights and inputs as integers of 8 bits.
def integers(*shape):
    return RANDOM.integers(-90, 90, size=shape).astype(np.int8)


write(
    "quantized",
    [
        node("QuantizeLinear", "x xs xz", "xq"),
        node("DequantizeLinear", "xq xs xz", "xd"),
        node("DequantizeLinear", "k ks kz", "kd", axis=0),
        node("Conv", "xd kd b", "c", pads=[1, 1, 1, 1]),
        node("Relu", "c", "a"),
        node("GlobalAveragePool", "a", "g"),
        node("Flatten", "g", "f"),
        node("DequantizeLinear", "w ws", "wd", axis=1, block_size=2),
        node("MatMul", "f wd", "y"),
        node("DynamicQuantizeLinear", "f", "fq fs fz"),
        node("MatMulInteger", "fq m fz", "i"),
    ],
    [value("x", 2, 3, 6, 6)],
    [value("y", 2, 5), value("fq", 2, 4, dtype=T.UINT8), value("i", 2, 2, dtype=T.INT32)],
    {
        "xs": np.float32(0.02),
        "xz": np.uint8(120),
        "k": integers(4, 3, 3, 3),
        "ks": np.abs(normal(4)) + np.float32(0.01),
        "kz": np.array([0, 3, -5, 1], np.int8),
        "b": normal(4),
        "w": integers(4, 5),
        "ws": np.abs(normal(4, 3)) + np.float32(0.01),
        "m": integers(4, 2),
    },
    {"x": normal(2, 3, 6, 6, scale=1.0)},
    opset=21,
)

# Grouped attention with a cache and a mask, after a rotation.
write(
    "attention_23",
    [
        node("RotaryEmbedding", "q cos sin places", "r", num_heads=4),
        node("Attention", "r k v mask past_key past_value", "y key value", q_num_heads=4, kv_num_heads=2, is_causal=1, softcap=3.0),
    ],
    [
        value("q", 2, 5, 32),
        value("k", 2, 5, 16),
        value("v", 2, 5, 16),
        value("mask", 5, 8),
        value("past_key", 2, 2, 3, 8),
        value("past_value", 2, 2, 3, 8),
        value("places", 2, 5, dtype=T.INT64),
    ],
    [value("y", 2, 5, 32), value("key", 2, 2, 8, 8), value("value", 2, 2, 8, 8)],
    {"cos": np.cos(normal(9, 4, scale=1.0)), "sin": np.sin(normal(9, 4, scale=1.0))},
    {
        "q": normal(2, 5, 32, scale=1.0),
        "k": normal(2, 5, 16, scale=1.0),
        "v": normal(2, 5, 16),
        "mask": np.where(RANDOM.random((5, 8)) < 0.2, -np.inf, normal(5, 8)).astype(np.float32),
        "past_key": normal(2, 2, 3, 8),
        "past_value": normal(2, 2, 3, 8),
        "places": RANDOM.integers(0, 9, size=(2, 5)),
    },
    opset=23,
)

# Detected boxes, places in images, and losses.
corners = RANDOM.random((1, 12, 2)).astype(np.float32)
write(
    "detection",
    [
        node("NonMaxSuppression", "boxes scores most limit least", "chosen"),
        node("AffineGrid", "theta size", "grid"),
        node("GridSample", "x grid", "linear", mode="linear", padding_mode="zeros"),
        node("GridSample", "x grid", "cubic", mode="cubic", padding_mode="reflection", align_corners=1),
        node("GridSample", "x grid", "nearest", mode="nearest", padding_mode="border"),
        node("LpPool", "x", "p", kernel_shape=[2, 3], strides=[2, 1], p=3),
        node("CenterCropPad", "x other", "crop", axes=[2, 3]),
        node("SoftmaxCrossEntropyLoss", "linear labels weights", "loss log", ignore_index=1),
    ],
    [value("boxes", 1, 12, 4), value("scores", 1, 2, 12), value("x", 2, 3, 5, 6), value("theta", 2, 2, 3), value("labels", 2, 4, 4, dtype=T.INT64)],
    [
        value("chosen", "n", 3, dtype=T.INT64),
        value("linear", 2, 3, 4, 4),
        value("cubic", 2, 3, 4, 4),
        value("nearest", 2, 3, 4, 4),
        value("p", 2, 3, 2, 4),
        value("crop", 2, 3, 8, 3),
        value("loss"),
        value("log", 2, 3, 4, 4),
    ],
    {
        "most": np.array([3], np.int64),
        "limit": np.array([0.3], np.float32),
        "least": np.array([0.2], np.float32),
        "size": np.array([2, 3, 4, 4], np.int64),
        "other": np.array([8, 3], np.int64),
        "weights": np.array([0.5, 1.0, 2.0], np.float32),
    },
    {
        "boxes": np.concatenate([corners, corners + np.float32(0.4)], axis=-1),
        "scores": RANDOM.random((1, 2, 12)).astype(np.float32),
        "x": normal(2, 3, 5, 6, scale=1.0),
        "theta": normal(2, 2, 3, scale=1.2),
        "labels": RANDOM.integers(0, 3, size=(2, 4, 4)),
    },
    opset=20,
)
