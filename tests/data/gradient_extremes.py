"""Writes gradient_extremes.json: gradients of elementwise ops at extreme numbers, in f64, where nothing overflows or cancels.

    python gradient_extremes.py > gradient_extremes.json

The numbers are those of f32. A gradient that is beyond the range of f32 is written as infinity. Numbers are strings, since JSON
has no NaN.
"""
import json
import os
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np
import tensorflow as tf

inf, nan = float("inf"), float("nan")
SIZES = [0.0, 2e-38, 1e-20, 1e-7, 0.25, 0.9999, 0.99999994, 1.0, 1.0000001, 3.0, 9.0, 15.0, 50.0, 88.0, 1e4, 1e10, 1e20, 3e38, inf]
X = [s * x for x in SIZES for s in (1.0, -1.0)] + [nan]
FEW = [0.0, 2e-38, 1e-20, -1e-20, 0.5, -1.0, 3.0, 1e10, 1e20, -1e20, 3e38, inf, nan]
A = keras.activations

UNARY = {
    "abs": tf.abs, "negative": tf.negative, "exp": tf.exp, "expm1": tf.math.expm1, "log": tf.math.log, "log1p": tf.math.log1p,
    "sqrt": tf.sqrt, "rsqrt": tf.math.rsqrt, "square": tf.square, "reciprocal": tf.math.reciprocal, "sin": tf.sin,
    "cos": tf.cos, "tan": tf.tan, "asin": tf.asin, "acos": tf.acos, "atan": tf.atan, "sinh": tf.sinh, "cosh": tf.cosh,
    "tanh": tf.tanh, "asinh": tf.asinh, "acosh": tf.acosh, "atanh": tf.atanh, "sigmoid": tf.sigmoid,
    "softplus": tf.math.softplus, "relu": tf.nn.relu, "elu": tf.nn.elu, "selu": tf.nn.selu, "softsign": tf.nn.softsign,
    "erf": tf.math.erf, "erfc": tf.math.erfc, "erfinv": tf.math.erfinv, "ndtri": tf.math.ndtri,
    "bessel_i0e": tf.math.bessel_i0e, "bessel_i1e": tf.math.bessel_i1e, "reciprocal_no_nan": tf.math.reciprocal_no_nan,
    "relu6": tf.nn.relu6, "silu": tf.nn.silu, "log_sigmoid": tf.math.log_sigmoid, "gelu": lambda x: tf.nn.gelu(x),
    "gelu_tanh": lambda x: tf.nn.gelu(x, approximate=True), "mish": A.mish, "leaky_relu": lambda x: tf.nn.leaky_relu(x, 0.25),
    "hard_sigmoid": A.hard_sigmoid, "hard_silu": A.hard_silu, "hard_tanh": A.hard_tanh, "tanh_shrink": A.tanh_shrink,
    "hard_shrink": lambda x: A.hard_shrink(x, 0.5), "soft_shrink": lambda x: A.soft_shrink(x, 0.5),
    "threshold": lambda x: A.threshold(x, 0.5, -1.0), "squareplus": lambda x: A.squareplus(x, 4.0),
    "sparse_plus": A.sparse_plus, "sparse_sigmoid": A.sparse_sigmoid, "celu": lambda x: A.celu(x, 0.75),
}
BINARY = {
    "multiply": tf.multiply, "divide": tf.divide, "divide_no_nan": tf.math.divide_no_nan,
    "multiply_no_nan": tf.math.multiply_no_nan, "xdivy": tf.math.xdivy, "xlogy": tf.math.xlogy, "xlog1py": tf.math.xlog1py,
    "maximum": tf.maximum, "minimum": tf.minimum, "squared_difference": tf.math.squared_difference, "atan2": tf.atan2,
    "pow": tf.pow, "logaddexp": lambda a, b: tf.experimental.numpy.logaddexp(a, b),
    "complex_abs": lambda a, b: tf.abs(tf.complex(a, b)),
}


def text(x):
    with np.errstate(over="ignore"):
        far = [np.isinf(np.float32(v)) for v in np.reshape(x, [-1])]
    return [f"{np.sign(v) * inf if far else v:.9g}" for v, far in zip(np.reshape(x, [-1]), far)]


def case(f, inputs):
    x = [tf.constant(np.float32(v).astype(np.float64)) for v in inputs]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(*x)
    return [text(g.numpy()) for g in tape.gradient(y, x)]


pairs = [[a for a in FEW for _ in FEW], [b for _ in FEW for b in FEW]]
table = {"x": text(np.float32(X)), "a": text(np.float32(pairs[0])), "b": text(np.float32(pairs[1]))}
table |= {name: case(f, [X]) for name, f in UNARY.items()}
table |= {name: case(f, pairs) for name, f in BINARY.items()}
print("{")
print(",\n".join(f' "{name}": {json.dumps(c)}' for name, c in table.items()))
print("}")
