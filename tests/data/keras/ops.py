"""Calls of `keras.ops` as Keras writes them into a model's JSON, with what Keras computes for them.

`python ops.py` writes `ops.json.gz` next to it, one line a case: a title, the model's JSON, its inputs and outputs. Some that Keras
refuses on TensorFlow it computes on NumPy (which takes JAX and SciPy); the others are left out, and printed.
"""

import gzip
import json
import os
import pathlib
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
from keras import ops

# The operands of calls, by letters: a first one, and a second one whose integers are not 0.
ARRAYS = {
    "f": np.array([[-1.5, -0.5, 0.25], [0.75, 1.5, 2.5]], "float32"),
    "i": np.array([[-2, 0, 3], [1, 5, -1]], "int32"),
    "u": np.array([[0, 3, 200], [255, 1, 7]], "uint8"),
    "b": np.array([[True, False, True], [False, False, True]]),
    "F": np.array([[0.5, -2.0, 1.5], [-0.75, 3.0, 0.25]], "float32"),
    "I": np.array([[2, -3, 1], [-1, 4, 2]], "int32"),
    "U": np.array([[2, 3, 1], [7, 4, 2]], "uint8"),
    "B": np.array([[True, True, False], [False, True, False]]),
}

# Calls that TensorFlow refuses although Keras documents no restriction, and that NumPy computes.
ON_NUMPY = "clip einsum logsumexp normalize pad roll take top_k".split()
ON_NUMPY_IF_BOOL = "add greater greater_equal less less_equal maximum minimum multiply".split()
CASES = []


def add(op, inputs, call, tensorflow=True):
    CASES.append((op, inputs, call, tensorflow))


def is_for_numpy(op, inputs):
    return op in ON_NUMPY or (op in ON_NUMPY_IF_BOOL and all(np.asarray(x).dtype == bool for x in inputs))


# Functions of one tensor, for each dtype.
for name in """abs absolute arccos arccosh arcsin arcsinh arctan arctanh ceil copy cos cosh erf erfc erfinv exp expm1 floor
hard_sigmoid hard_silu hard_tanh isfinite isinf isnan log log1p log_sigmoid logical_not negative ravel reciprocal relu relu6
rsqrt selu sigmoid sign silu sin sinh softplus softsign sparse_plus sparse_sigmoid sqrt square tan tanh tanh_shrink
celu elu gelu glu hard_shrink leaky_relu log_softmax softmax soft_shrink squareplus normalize round
all amax amin any logsumexp mean std sum var prod max min argmax argmin argsort sort cumsum cumprod
ones_like zeros_like flip transpose squeeze stop_gradient""".split():
    for letter in "fiub":
        if name == "glu":
            add(name, [ARRAYS[letter][:, :2]], lambda x: ops.glu(x))
        else:
            add(name, [ARRAYS[letter]], getattr(ops, name))

# Functions of two tensors, for each pair of dtypes, and with numbers.
NUMBERS = {"2": 2, "2.5": 2.5, "True": True}
for name in """add arctan2 divide divide_no_nan equal floor_divide greater greater_equal less less_equal logaddexp logical_and
logical_or logical_xor maximum minimum mod multiply not_equal power subtract true_divide""".split():
    f = getattr(ops, name)
    for a in "fiub":
        for b in "FIUB":
            add(name, [ARRAYS[a], ARRAYS[b]], f)
        for number in NUMBERS.values():
            add(name, [ARRAYS[a]], lambda x, f=f, n=number: f(x, n))
            # With the number first; nothing is divided by zero.
            add(name, [ARRAYS[a.upper()]], lambda x, f=f, n=number: f(n, x))
        # With an array of the model.
        add(name, [ARRAYS[a]], lambda x, f=f: f(x, np.array([2, 1, 3], "int64")))
        add(name, [ARRAYS[a]], lambda x, f=f: f(x, np.array([2.5, 1, 3])))
        add(name, [ARRAYS[a]], lambda x, f=f: f(x, [2.5, 1.0, 3.0]))

# Reductions, along all kinds of axes.
for name in "all amax amin any logsumexp mean std sum var prod max min".split():
    for options in [{"axis": 0}, {"axis": -1, "keepdims": True}, {"axis": [0, 1]}, {"keepdims": True}, {"axis": []}]:
        add(name, [ARRAYS["f"]], lambda x, name=name, options=options: getattr(ops, name)(x, **options))
for letter in "fiu":
    for initial in [1, 2.5]:
        for name in ["max", "min"]:
            f = getattr(ops, name)
            add(name, [ARRAYS[letter]], lambda x, f=f, n=initial: f(x, axis=0, initial=n))
    for dtype in ["float32", "int32", "int64", "uint8", "bool"]:
        for name in ["prod", "cumsum", "cumprod", "zeros_like", "ones_like"]:
            f = getattr(ops, name)
            # On TensorFlow, Keras loses the dtype of a product.
            on = name != "prod"
            add(name, [ARRAYS[letter]], lambda x, f=f, dtype=dtype: f(x, dtype=dtype), tensorflow=on)
for letter in "fiub":
    for dtype in ["float32", "int32", "int64", "uint8", "bool", "float16"]:
        add("cast", [ARRAYS[letter]], lambda x, dtype=dtype: ops.cast(x, dtype))
for name in ["argmax", "argmin"]:
    for options in [{"axis": 0}, {"axis": -1, "keepdims": True}, {"keepdims": True}]:
        add(name, [ARRAYS["f"]], lambda x, name=name, options=options: getattr(ops, name)(x, **options))
for name in ["argsort", "sort", "cumsum", "cumprod", "softmax", "log_softmax", "flip", "normalize"]:
    for axis in [0, 1, None]:
        add(name, [ARRAYS["f"]], lambda x, name=name, axis=axis: getattr(ops, name)(x, axis=axis))
add("softmax", [np.ones((2, 3, 2), "float32")], lambda x: ops.softmax(x, axis=(1, 2)))
add("log_softmax", [np.ones((2, 3, 2), "float32")], lambda x: ops.log_softmax(x, axis=(1, 2)))
for order in [1, 2, 3, 2.5, np.inf]:
    add("normalize", [ARRAYS["f"]], lambda x, order=order: ops.normalize(x, order=order))
    add("normalize", [ARRAYS["i"]], lambda x, order=order: ops.normalize(x, order=order, axis=0))

# Options of elementwise functions.
add("celu", [ARRAYS["f"]], lambda x: ops.celu(x, 0.5))
add("elu", [ARRAYS["f"]], lambda x: ops.elu(x, 0.5))
add("gelu", [ARRAYS["f"]], lambda x: ops.gelu(x, approximate=False))
add("glu", [ARRAYS["f"]], lambda x: ops.glu(x, axis=0))
add("hard_shrink", [ARRAYS["f"]], lambda x: ops.hard_shrink(x, 1.0))
add("leaky_relu", [ARRAYS["f"]], lambda x: ops.leaky_relu(x, 0.5))
add("soft_shrink", [ARRAYS["f"]], lambda x: ops.soft_shrink(x, 1.0))
add("squareplus", [ARRAYS["f"]], lambda x: ops.squareplus(x, 2))
for letter in "fiu":
    for decimals in [1, 2, -1]:
        x = ARRAYS[letter] * (1 if letter != "f" else np.float32(3.14159))
        add("round", [x.astype(ARRAYS[letter].dtype)], lambda x, n=decimals: ops.round(x, n))
for letter in "fiub":
    for low, high in [(0, 2), (-0.5, 1), (-1, 1.5), (1, 1)]:
        add("clip", [ARRAYS[letter]], lambda x, low=low, high=high: ops.clip(x, low, high))

# Products.
rng = np.random.default_rng(7)


def array(*shape, dtype="float32"):
    return rng.integers(-4, 5, shape).astype(dtype) if dtype != "bool" else rng.integers(0, 2, shape).astype(bool)


SHAPES = [((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((2, 3), (3, 2)), ((2, 4, 3), (3,)), ((3,), (2, 3, 4)),
          ((2, 4, 3), (3, 5)), ((4, 3), (2, 3, 5)), ((2, 1, 4, 3), (5, 3, 2)), ((2, 0), (0, 3))]
for a, b in SHAPES:
    add("matmul", [array(*a), array(*b)], ops.matmul)
    add("dot", [array(*a), array(*b)], ops.dot)
add("dot", [array(2, 3), np.float32(3)], ops.dot)
add("dot", [array(2, 3)], lambda x: ops.dot(x, 2))
add("dot", [array(2, 4, 3), array(5, 3, 6)], ops.dot)
for a in ["float32", "int32", "uint8", "bool"]:
    for b in ["float32", "int32", "uint8", "bool"]:
        for name in ["matmul", "dot"]:
            add(name, [np.abs(array(2, 3, dtype=a)).astype(a), np.abs(array(3, 2, dtype=b)).astype(b)], getattr(ops, name))
        add("einsum", [np.abs(array(2, 3, dtype=a)).astype(a), np.abs(array(3, 2, dtype=b)).astype(b)],
            lambda x, y: ops.einsum("ab,bc->ca", x, y))
for equation, shapes in [("ij,ij->", [(2, 3), (2, 3)]), ("...i,i->...", [(2, 4, 3), (3,)]), ("ij,jk", [(2, 3), (3, 4)]),
                         ("ii->i", [(3, 3)]), ("ij->ji", [(2, 3)]), ("i,j,k->ijk", [(2,), (3,), (4,)])]:
    add("einsum", [array(*shape) for shape in shapes], lambda *xs, equation=equation: ops.einsum(equation, *xs))

# Shapes.
x = array(2, 3, 4)
for width in [1, (1, 2), ((1, 2),), ((0, 1), (2, 0), (1, 1))]:
    add("pad", [x], lambda x, width=width: ops.pad(x, width))
    add("pad", [x], lambda x, width=width: ops.pad(x, width, constant_values=2.5))
    for mode in ["reflect", "symmetric"]:
        add("pad", [x], lambda x, width=width, mode=mode: ops.pad(x, width, mode=mode))
for mode in ["edge", "wrap", "linear_ramp", "maximum", "mean", "median", "minimum", "empty"]:
    add("pad", [x], lambda x, mode=mode: ops.pad(x, ((0, 1), (2, 0), (1, 1)), mode=mode))
for mode in ["reflect", "symmetric"]:
    add("pad", [array(2, 1)], lambda x, mode=mode: ops.pad(x, ((0, 0), (1, 0)), mode=mode))
    add("pad", [array(2, 3)], lambda x, mode=mode: ops.pad(x, ((0, 0), (3, 3)), mode=mode))
    add("pad", [array(2, 3)], lambda x, mode=mode: ops.pad(x, ((0, 0), (5, 4)), mode=mode))
for letter in "fiub":
    for value in [0, 2, -1, 2.5, True, np.inf]:
        add("pad", [ARRAYS[letter]], lambda x, value=value: ops.pad(x, 1, constant_values=value))
    for mode in ["reflect", "symmetric"]:
        add("pad", [ARRAYS[letter]], lambda x, mode=mode: ops.pad(x, 1, mode=mode))
for letter in "fiub":
    for name, call in {
        "expand_dims": lambda x: ops.expand_dims(x, (0, -1)),
        "repeat": lambda x: ops.repeat(x, 2, axis=1),
        "reshape": lambda x: ops.reshape(x, (3, -1)),
        "roll": lambda x: ops.roll(x, 1, axis=1),
        "tile": lambda x: ops.tile(x, (1, 2)),
        "swapaxes": lambda x: ops.swapaxes(x, 0, 1),
        "moveaxis": lambda x: ops.moveaxis(x, 0, -1),
        "broadcast_to": lambda x: ops.broadcast_to(x, (2, 2, 3)),
        "split": lambda x: ops.split(x, 3, axis=1),
        "unstack": lambda x: ops.unstack(x, axis=1),
        "get_item": lambda x: x[:, 1:],
        "take": lambda x: ops.take(x, [2, 0, -1], axis=1),
        "top_k": lambda x: ops.top_k(x, 2),
        "one_hot": lambda x: ops.one_hot(x, 4),
        "hstack": lambda x: ops.hstack([x, x]),
        "vstack": lambda x: ops.vstack([x, x]),
        "stack": lambda x: ops.stack([x, x], axis=1),
        "concatenate": lambda x: ops.concatenate([x, x], axis=1),
        "where": lambda x: ops.where(x, x, 0),
    }.items():
        add(name, [ARRAYS[letter]], call)
for a in "fiub":
    for b in "FIUB":
        pair = [ARRAYS[a], ARRAYS[b]]
        add("concatenate", pair, lambda x, y: ops.concatenate([x, y], axis=-1))
        add("stack", pair, lambda x, y: ops.stack([x, y], axis=-1))
        add("where", [ARRAYS["B"], *pair], ops.where)
        add("where", pair, lambda x, y: ops.where(y, x, 1.5))
        add("where", pair, lambda x, y: ops.where(y, 1, x))
        add("hstack", pair, lambda x, y: ops.hstack([x, y]))
        add("vstack", pair, lambda x, y: ops.vstack([x, y]))
for shapes in [[(3,), (3,)], [(2, 1), (2, 3)]]:
    add("hstack", [array(*shape) for shape in shapes], lambda *xs: ops.hstack(list(xs)))
for shapes in [[(3,), (3,)], [(1, 3), (2, 3)], [(2, 3, 1), (1, 3, 1)]]:
    add("vstack", [array(*shape) for shape in shapes], lambda *xs: ops.vstack(list(xs)))
for axes in [0, 3, -1, (0, 2), (1, -1), (-3, 0)]:
    add("expand_dims", [x], lambda x, axes=axes: ops.expand_dims(x, axes))
for repeats, axis in [(2, None), (2, -1), ([1, 0, 2], 1), ([3], 0)]:
    add("repeat", [x], lambda x, repeats=repeats, axis=axis: ops.repeat(x, repeats, axis=axis))
for shape in [(-1,), (2, -1), (4, 3, 2), (2, 3, 2, 2), -1, 24]:
    add("reshape", [x], lambda x, shape=shape: ops.reshape(x, shape))
for shift, axis in [(1, None), (-5, None), (2, 1), ((1, 2), (0, 2)), (7, -1), (1, (0, 1))]:
    add("roll", [x], lambda x, shift=shift, axis=axis: ops.roll(x, shift, axis=axis))
for repeats in [2, (2,), (1, 2), (2, 1, 1), (2, 1, 1, 3), (1, 0, 1)]:
    add("tile", [x], lambda x, repeats=repeats: ops.tile(x, repeats))
for a, b in [(0, 1), (-1, 0), (1, 1)]:
    add("swapaxes", [x], lambda x, a=a, b=b: ops.swapaxes(x, a, b))
for a, b in [(0, 2), (-1, 0), ((0, 1), (2, 0)), ((0, 1, 2), (2, 1, 0))]:
    add("moveaxis", [x], lambda x, a=a, b=b: ops.moveaxis(x, a, b))
for axes in [(0, 2, 1), (-1, 0, 1), None]:
    add("transpose", [x], lambda x, axes=axes: ops.transpose(x, axes))
for axis in [None, 0, 2, (0, 2), (0, -1)]:
    add("squeeze", [array(1, 3, 1)], lambda x, axis=axis: ops.squeeze(x, axis=axis))
    add("flip", [x], lambda x, axis=axis: ops.flip(x, axis=axis))
for shape in [(2, 3, 4), (5, 2, 3, 4)]:
    add("broadcast_to", [x], lambda x, shape=shape: ops.broadcast_to(x, shape))
add("broadcast_to", [array(2, 1)], lambda x: ops.broadcast_to(x, (3, 2, 4)))
for sections, axis in [(2, 0), (2, -1), ((1,), 1), ((1, 2), 1), ((0, 1), 1), ([1, 3], 2)]:
    add("split", [x], lambda x, sections=sections, axis=axis: ops.split(x, sections, axis=axis))
for options in [{}, {"axis": -1}, {"num": 2}, {"num": 3, "axis": 1}]:
    add("unstack", [x], lambda x, options=options: ops.unstack(x, **options))
for key in [0, -1, np.s_[:, 1], np.s_[..., 0], np.s_[:, None], np.s_[:, ::-1], np.s_[1, :, 1:3], np.s_[:, 5:], np.s_[:, -2:],
            np.s_[None, ..., None], np.s_[::-1, 2:0:-1, ::2], np.s_[:, 2:1], (), ..., None, np.s_[:, -9:9], np.s_[0, 1, 2],
            np.s_[:, :, 3:0:-2], np.s_[1:, 0], True]:
    add("get_item", [x], lambda x, key=key: x[key])
for axis in [None, 0, 1, -1]:
    for places in [0, [1, 0], [[0, 1], [1, 1]], -1, [-1, 0], np.array([1, 0], "int64")]:
        add("take", [x], lambda x, places=places, axis=axis: ops.take(x, places, axis=axis))
    for letter in "fiub":
        places = np.array([[0, 1, 1]]).astype(ARRAYS[letter].dtype)
        add("take", [x, places], lambda x, places, axis=axis: ops.take(x, places, axis=axis))
for options in [{"k": 1}, {"k": 3}, {"k": 4, "sorted": False}, {"k": 0}]:
    add("top_k", [x], lambda x, options=options: ops.top_k(x, **options))
for options in [{"axis": 0}, {"axis": 1}, {"axis": -2}, {"axis": 2}, {"dtype": "int32"}, {"dtype": "bool"}, {"dtype": "float16"}]:
    add("one_hot", [ARRAYS["i"]], lambda x, options=options: ops.one_hot(x, 4, **options))
add("one_hot", [ARRAYS["i"]], lambda x: ops.one_hot(x, 1))
for axis in [0, 1, -1, -2]:
    add("concatenate", [array(2, 3), array(2, 3)], lambda x, y, axis=axis: ops.concatenate([x, y], axis=axis))
    add("stack", [array(2, 3), array(2, 3)], lambda x, y, axis=axis: ops.stack([x, y], axis=axis))
add("concatenate", [array(2, 3)], lambda x: ops.concatenate([x, np.ones((1, 3), "float32")]))
add("concatenate", [array(2, 3)], lambda x: ops.concatenate([x, np.ones((1, 3), "int64")]))
add("concatenate", [array(2, 3)], lambda x: ops.concatenate([x]))
add("where", [ARRAYS["B"]], lambda c: ops.where(c, 1, 0))
add("where", [ARRAYS["B"]], lambda c: ops.where(c, 1.0, 0))
add("where", [ARRAYS["B"]], lambda c: ops.where(c, [1, 2, 3], 0.5))
add("where", [ARRAYS["b"][0], ARRAYS["f"]], lambda c, x: ops.where(c, x, -x))

# Numbers that Python's JSON writes and others do not.
for number in [np.inf, -np.inf, np.nan]:
    for name in ["add", "maximum", "multiply", "less", "equal"]:
        f = getattr(ops, name)
        add(name, [ARRAYS["f"]], lambda x, f=f, n=float(number): f(x, n))
        add(name, [ARRAYS["i"]], lambda x, f=f, n=float(number): f(x, n))
    add("add", [ARRAYS["f"]], lambda x, n=float(number): ops.add(x, np.array([1, n, 2], "float32")))
    add("where", [ARRAYS["B"], ARRAYS["f"]], lambda c, x, n=float(number): ops.where(c, x, n))
add("clip", [ARRAYS["f"]], lambda x: ops.clip(x, -np.inf, 1.0))
add("clip", [ARRAYS["f"]], lambda x: ops.clip(x, 0.5, np.inf))
add("max", [ARRAYS["f"]], lambda x: ops.max(x, axis=0, initial=-np.inf))


def plain(array):
    """Values as JSON has them; numbers that are none as texts."""
    array = np.asarray(array)
    values = array.reshape(-1).astype("float64").tolist()
    name = {"int64": "int32", "float64": "float32", "int16": "int32", "int8": "int32", "uint16": "uint32"}
    shown = [value if np.isfinite(value) else str(value) for value in values]
    return {"shape": list(array.shape), "dtype": name.get(str(array.dtype), str(array.dtype)), "values": shown}


def results_of(place, op, arrays, call):
    """A line for the file, or why Keras refuses the case."""
    keras.backend.clear_session()
    given = [np.asarray(x) for x in arrays]
    inputs = [keras.Input(batch_shape=x.shape, dtype=str(x.dtype)) for x in given]
    given = given if len(given) > 1 else given[0]
    try:
        model = keras.Model(inputs, call(*inputs))
        text = model.to_json()
        keras.models.model_from_json(text)(given)
        results = model(given)
    except Exception as error:
        return None, " ".join(str(error).split())[:120]
    results = results if isinstance(results, (list, tuple)) else [results]
    given = given if isinstance(given, list) else [given]
    layer = json.loads(text)["config"]["layers"][-1]
    shapes = [f"{x.dtype}{list(x.shape)}" for x in given]
    case = {
        "title": " ".join([op, *shapes, json.dumps(layer["config"]), keras.backend.backend()]),
        "model": text,
        "inputs": [plain(x) for x in given],
        "outputs": [plain(ops.convert_to_numpy(y)) for y in results],
    }
    return (place, json.dumps(case)), None


def main():
    if len(sys.argv) > 1:
        # The cases that need NumPy.
        for place in json.loads(sys.stdin.read()):
            print(json.dumps(results_of(place, *CASES[place][:3])))
        return
    lines, left, refused = [], [], []
    for place, (op, arrays, call, tensorflow) in enumerate(CASES):
        line, why = results_of(place, op, arrays, call) if tensorflow else (None, "")
        if line:
            lines.append(line)
        elif is_for_numpy(op, arrays) or not tensorflow:
            left.append(place)
        else:
            refused.append((place, why))
    answer = subprocess.run(
        [sys.executable, __file__, "left"],
        input=json.dumps(left),
        env={**os.environ, "KERAS_BACKEND": "numpy"},
        capture_output=True,
        text=True,
        check=True,
    )
    for place, (line, why) in zip(left, map(json.loads, answer.stdout.splitlines())):
        lines.append(line) if line else refused.append((place, why))
    for place, why in refused:
        op, arrays, *_ = CASES[place]
        print("refused", op, [f"{np.asarray(x).dtype}{list(np.shape(x))}" for x in arrays], why)
    path = pathlib.Path(__file__).parent / "ops.json.gz"
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        for _, line in sorted(lines, key=lambda line: line[0]):
            file.write(line.encode() + b"\n")
    print(len(lines), "cases of", len(CASES))


if __name__ == "__main__":
    main()
