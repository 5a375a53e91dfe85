"""Writes gradient_edges.json: TensorFlow's gradients at edges (zeros, ties, large values, infinities, NaN).

    python gradient_edges.py > gradient_edges.json

A case is the name of wgrad's method, its inputs, and the gradients of the sum of the results, first and second order: the
second is the gradient of the sum of the first gradients. Numbers are strings, since JSON has no NaN.
"""
import json
import tensorflow as tf

X = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 6.0, -6.0, 30.0, -30.0, 100.0, -100.0, 1e6, -1e6]
FAR = X + [1e30, -1e30, float("inf"), float("-inf"), float("nan")]
POSITIVE = [0.0, 1e-30, 1e-6, 0.5, 1.0, 2.0, 100.0, 1e6, 1e30, float("inf")]
UNIT = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 0.999999, -0.999999]

UNARY = {
    "abs": (tf.abs, FAR), "negative": (tf.negative, FAR), "exp": (tf.exp, FAR), "expm1": (tf.math.expm1, FAR),
    "log": (tf.math.log, POSITIVE), "log1p": (tf.math.log1p, POSITIVE), "sqrt": (tf.sqrt, POSITIVE),
    "rsqrt": (tf.math.rsqrt, POSITIVE), "square": (tf.square, X), "reciprocal": (tf.math.reciprocal, X),
    "sin": (tf.sin, X), "cos": (tf.cos, X), "tan": (tf.tan, UNIT), "asin": (tf.asin, UNIT), "acos": (tf.acos, UNIT),
    "atan": (tf.atan, X), "sinh": (tf.sinh, UNIT + [30.0, -30.0]), "cosh": (tf.cosh, UNIT + [30.0, -30.0]),
    "tanh": (tf.tanh, FAR), "asinh": (tf.asinh, X), "atanh": (tf.atanh, UNIT), "sigmoid": (tf.sigmoid, FAR),
    "softplus": (tf.math.softplus, FAR), "relu": (tf.nn.relu, FAR), "relu6": (tf.nn.relu6, FAR),
    "elu": (tf.nn.elu, FAR), "selu": (tf.nn.selu, FAR), "softsign": (tf.nn.softsign, X), "silu": (tf.nn.silu, X),
    "erf": (tf.math.erf, FAR), "erfc": (tf.math.erfc, FAR), "sign": (tf.sign, FAR),
    "floor": (tf.floor, X), "log_sigmoid": (tf.math.log_sigmoid, FAR), "gelu": (tf.nn.gelu, X),
}

PAIRS = [(a, b) for a in [0.0, 1.0, -1.0, 2.5, 1e30] for b in [0.0, 1.0, -1.0, 2.5]]
BINARY = {
    "add": (tf.add, PAIRS), "subtract": (tf.subtract, PAIRS), "multiply": (tf.multiply, PAIRS),
    "divide": (tf.divide, PAIRS), "divide_no_nan": (tf.math.divide_no_nan, PAIRS), "maximum": (tf.maximum, PAIRS),
    "minimum": (tf.minimum, PAIRS), "squared_difference": (tf.math.squared_difference, PAIRS),
    "atan2": (tf.atan2, [p for p in PAIRS if p[0] < 1e20]),
    "pow": (tf.pow, [(0.0, 2.0), (0.0, 1.0), (0.0, 0.0), (0.0, 3.0), (0.0, 0.5), (1.0, 0.0), (2.0, 0.0), (-2.0, 2.0),
                     (-2.0, 3.0), (-1.0, 0.0), (2.0, -1.0), (1e10, 2.0), (0.0, 1.5)]),
    "xlogy": (tf.math.xlogy, [(0.0, 0.0), (0.0, 1.0), (0.0, 2.0), (1.0, 1.0), (2.0, 0.5), (-1.0, 2.0), (1.0, 1e30)]),
}

ROWS = [[1.0, 3.0, 3.0, 2.0], [0.0, 0.0, 0.0, 0.0], [2.0, 0.0, 3.0, -1.0], [2.0, 0.0, 3.0, 0.0], [-1.0, -1.0, -2.0, -3.0],
        [1e3, 0.0, -1e3, 1e3], [100.0, 100.0, 99.0, 0.0]]
FOLDS = {
    "reduce_max": lambda x: tf.reduce_max(x, 1), "reduce_min": lambda x: tf.reduce_min(x, 1),
    "reduce_prod": lambda x: tf.reduce_prod(x, 1), "reduce_logsumexp": lambda x: tf.reduce_logsumexp(x, 1),
    "reduce_euclidean_norm": lambda x: tf.math.reduce_euclidean_norm(x, 1),
    "reduce_std": lambda x: tf.math.reduce_std(x, 1), "reduce_variance": lambda x: tf.math.reduce_variance(x, 1),
    "softmax": lambda x: tf.nn.softmax(x) * tf.constant([1.0, 2.0, 3.0, 4.0]), "log_softmax": lambda x: tf.nn.log_softmax(x) * tf.constant([1.0, 2.0, 3.0, 4.0]),
    "clip_by_value": lambda x: tf.clip_by_value(x, 0.0, 3.0),
}


def text(x):
    return [repr(float(v)) for v in tf.reshape(x, [-1]).numpy()]


def none(g):
    return None if g is None else text(g)


def case(f, inputs):
    x = [tf.constant(v, tf.float32) for v in inputs]
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(*x)
        first = inner.gradient(y, x)
        total = sum(tf.reduce_sum(g) for g in first if g is not None)
    try:
        second = outer.gradient(total, x) if isinstance(total, tf.Tensor) else [None] * len(x)
    except LookupError:  # TensorFlow has no second order of softsign and selu.
        return {"inputs": [text(v) for v in x], "first": [none(g) for g in first]}
    return {"inputs": [text(v) for v in x], "first": [none(g) for g in first], "second": [none(g) for g in second]}


cases = {}
for name, (f, x) in UNARY.items():
    cases[name] = case(f, [x])
for name, (f, pairs) in BINARY.items():
    cases[name] = case(f, [[a for a, _ in pairs], [b for _, b in pairs]])
for name, f in FOLDS.items():
    cases[name] = case(f, [ROWS])
print("{")
print(",\n".join(f' "{name}": {json.dumps(c)}' for name, c in cases.items()))
print("}")
