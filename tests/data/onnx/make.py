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


class Net:
    """A graph that is made node by node; each method returns the name of its result."""

    def __init__(self):
        self.nodes, self.weights, self.count = [], {}, 0

    def weight(self, array):
        name = f"w{len(self.weights)}"
        self.weights[name] = array
        return name

    def op(self, op, *inputs, **attributes):
        self.count += 1
        inputs = [value if isinstance(value, str) else self.weight(np.asarray(value)) for value in inputs]
        self.nodes.append(h.make_node(op, inputs, [f"v{self.count}"], name=f"{op}_{self.count}", **attributes))
        return f"v{self.count}"

    def conv(self, x, cin, cout, size=3, **attributes):
        group = attributes.get("group", 1)
        return self.op("Conv", x, normal(cout, cin // group, *[size] * attributes.pop("axes", 2)), normal(cout), **attributes)

    def norm(self, x, channels):
        positive = np.abs(normal(channels, scale=1.0)) + np.float32(0.5)
        return self.op("BatchNormalization", x, positive, normal(channels), normal(channels), positive + np.float32(0.1))

    def dense(self, x, rows, columns):
        return self.op("Add", self.op("MatMul", x, normal(rows, columns)), normal(columns))

    def heads(self, x, length, width, heads):
        """Self-attention, as PyTorch exports it."""
        q, k, v = [self.op("Reshape", self.dense(x, width, width), np.array([0, 0, heads, width // heads])) for _ in range(3)]
        q, v = self.op("Transpose", q, perm=[0, 2, 1, 3]), self.op("Transpose", v, perm=[0, 2, 1, 3])
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 2, 3, 1]))
        scores = self.op("Softmax", self.op("Div", scores, np.float32((width // heads) ** 0.5)), axis=-1)
        y = self.op("Transpose", self.op("MatMul", scores, v), perm=[0, 2, 1, 3])
        return self.dense(self.op("Reshape", y, np.array([0, 0, width])), width, width)

    def scaled(self, x, width):
        return self.op("LayerNormalization", x, np.abs(normal(width)) + np.float32(0.5), normal(width), axis=-1)

    def write(self, name, arrays, result, rank):
        self.nodes.append(h.make_node("Identity", [result], ["y"], name="last"))
        kinds = {np.float32: T.FLOAT, np.int64: T.INT64}
        inputs = [value(key, "n", *array.shape[1:], dtype=kinds[array.dtype.type]) for key, array in arrays.items()]
        write(name, self.nodes, inputs, [value("y", *[None] * rank)], self.weights, arrays, opset=21)


def resnet(net):
    x = net.op("Relu", net.norm(net.conv("x", 3, 8, pads=[1] * 4), 8))
    for cin, cout, stride in [(8, 8, 1), (8, 12, 2)]:
        y = net.op("Relu", net.norm(net.conv(x, cin, cout, strides=[stride] * 2, pads=[1] * 4), cout))
        y = net.norm(net.conv(y, cout, cout, pads=[1] * 4), cout)
        x = net.op("Relu", net.op("Add", y, x if stride == 1 else net.conv(x, cin, cout, 1, strides=[2, 2])))
    return net.op("Gemm", net.op("Flatten", net.op("GlobalAveragePool", x)), normal(5, 12), normal(5), transB=1)


def mobile(net):
    x = net.op("Clip", net.conv("x", 3, 8, strides=[2, 2], auto_pad="SAME_UPPER"), np.float32(0), np.float32(6))
    y = net.op("HardSwish", net.conv(x, 8, 16, 1))
    y = net.op("HardSwish", net.conv(y, 16, 16, 5, group=16, pads=[2] * 4))
    gate = net.op("Relu", net.conv(net.op("GlobalAveragePool", y), 16, 4, 1))
    y = net.op("Mul", y, net.op("HardSigmoid", net.conv(gate, 4, 16, 1), alpha=1 / 6))
    x = net.op("Add", net.conv(y, 16, 8, 1), x)
    return net.op("Squeeze", net.op("ReduceMean", x, np.array([2, 3])), np.array([2, 3]))


def unet(net):
    down = net.op("LeakyRelu", net.conv("x", 3, 6, pads=[1] * 4), alpha=0.1)
    low = net.op("Relu", net.conv(net.op("MaxPool", down, kernel_shape=[2, 2], strides=[2, 2]), 6, 8, pads=[1] * 4))
    up = net.op("ConvTranspose", low, normal(8, 6, 2, 2), normal(6), strides=[2, 2])
    other = net.op("Resize", low, "", np.array([1, 1, 2, 2], np.float32), mode="linear", coordinate_transformation_mode="half_pixel")
    return net.op("Sigmoid", net.conv(net.op("Concat", up, down, other, axis=1), 20, 1, 1))


def densenet(net):
    x = net.conv("x", 3, 6, pads=[1] * 4)
    for cin in [6, 10, 14]:
        x = net.op("Concat", x, net.conv(net.op("Relu", net.norm(x, cin)), cin, 4, pads=[2] * 4, dilations=[2, 2]), axis=1)
    x = net.op("AveragePool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, count_include_pad=1)
    return net.op("ReduceMax", x, np.array([2, 3]), keepdims=0)


def encoder(net):
    x = net.op("Add", net.op("Gather", normal(20, 16), "tokens"), normal(7, 16))
    for _ in range(2):
        x = net.scaled(net.op("Add", x, net.heads(x, 7, 16, 4)), 16)
        y = net.op("Mul", net.dense(x, 16, 32), net.op("Sigmoid", net.dense(x, 16, 32)))
        x = net.scaled(net.op("Add", x, net.dense(y, 32, 16)), 16)
    return net.op("Tanh", net.dense(net.op("Slice", x, np.array([0]), np.array([1]), np.array([1])), 16, 3))


def vision(net):
    x = net.conv("x", 3, 16, 4, strides=[4, 4])
    x = net.op("Transpose", net.op("Reshape", x, np.array([0, 0, -1])), perm=[0, 2, 1])
    first = net.op("Expand", normal(1, 1, 16), net.op("Concat", net.op("Slice", net.op("Shape", "x"), np.array([0]), np.array([1])), np.array([1, 16]), axis=0))
    x = net.op("Concat", first, x, axis=1)
    x = net.op("Add", x, net.heads(net.scaled(x, 16), 10, 16, 2))
    y = net.dense(net.scaled(x, 16), 16, 32)
    half = net.op("Mul", y, np.float32(0.5))
    y = net.op("Mul", half, net.op("Add", net.op("Erf", net.op("Div", y, np.float32(2**0.5))), np.float32(1)))
    x = net.op("Add", x, net.dense(y, 32, 16))
    return net.dense(net.op("Gather", x, np.array(0), axis=1), 16, 4)


def audio(net):
    x = net.op("Unsqueeze", "x", np.array([1]))
    for cin, cout in [(1, 6), (6, 8)]:
        x = net.op("Elu", net.conv(x, cin, cout, 5, axes=1, strides=[2], pads=[2, 2]))
        x = net.op("InstanceNormalization", x, np.abs(normal(cout)) + np.float32(0.5), normal(cout))
    x = net.op("Transpose", x, perm=[2, 0, 1])
    y = net.op("LSTM", x, normal(2, 16, 8), normal(2, 16, 4), normal(2, 32), hidden_size=4, direction="bidirectional")
    return net.op("ReduceMean", y, np.array([0, 1]), keepdims=0)


def volume(net):
    x = net.op("PRelu", net.conv("x", 2, 4, 3, axes=3, pads=[1] * 6), np.abs(normal(4, 1, 1, 1)))
    x = net.op("MaxPool", x, kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    x = net.op("GroupNormalization", x, np.abs(normal(4)) + np.float32(0.5), normal(4), num_groups=2)
    return net.op("Softplus", net.op("ReduceL2", x, np.array([2, 3, 4]), keepdims=0))


def tabular(net):
    numbers = net.op("Div", net.op("Sub", "x", normal(6)), np.abs(normal(6)) + np.float32(0.5))
    place = net.op("Gather", normal(9, 3), net.op("Mod", "tokens", np.array(9)))
    x = net.op("Concat", numbers, net.op("ReduceSum", place, np.array([1]), keepdims=0), axis=-1)
    return net.op("Selu", net.op("Celu", net.dense(x, 9, 8), alpha=0.7))


def upscale(net):
    x = net.op("Pad", "x", np.array([0, 0, 1, 1, 0, 0, 1, 1]), mode="reflect")
    x = net.op("Mish", net.conv(x, 3, 12))
    x = net.op("DepthToSpace", x, blocksize=2, mode="CRD")
    return net.op("Where", net.op("Greater", x, np.float32(0)), x, net.op("Mul", x, np.float32(0.2)))


def sequence(net):
    x = net.op("Transpose", net.op("Gather", normal(20, 5), "tokens"), perm=[1, 0, 2])
    y = net.op("GRU", x, normal(1, 12, 5), normal(1, 12, 4), normal(1, 24), hidden_size=4, linear_before_reset=1)
    y = net.op("Transpose", net.op("Squeeze", y, np.array([1])), perm=[1, 0, 2])
    weights = net.op("Softmax", net.dense(y, 4, 1), axis=1)
    y = net.op("Einsum", weights, y, equation="bti,btj->bj")
    return net.op("LogSoftmax", net.dense(y, 4, 3), axis=-1)


IMAGE = {"x": normal(2, 3, 12, 12, scale=1.0)}
TOKENS = {"tokens": RANDOM.integers(0, 20, size=(2, 7))}
for body, arrays, rank in [
    (resnet, IMAGE, 2),
    (mobile, IMAGE, 2),
    (unet, IMAGE, 4),
    (densenet, IMAGE, 2),
    (vision, IMAGE, 2),
    (upscale, IMAGE, 4),
    (encoder, TOKENS, 3),
    (sequence, TOKENS, 2),
    (audio, {"x": normal(2, 40, scale=1.0)}, 2),
    (volume, {"x": normal(2, 2, 6, 6, 4, scale=1.0)}, 2),
    (tabular, {"x": normal(3, 6, scale=1.0), "tokens": RANDOM.integers(0, 50, size=(3, 4))}, 2),
]:
    net = Net()
    net.write(body.__name__, arrays, body(net), rank)
