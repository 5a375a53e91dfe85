"""Every layer of Keras, with each of its options at a value that is not the default, and calls of every kind.

`python sweep.py FOLDER [COUNT SEED]` (`--layers` names them) reads `keras.layers` itself. For each layer and each option of its constructor it writes
CASE.keras and CASE.npz (x0, .., y0, ..) into FOLDER; with COUNT and SEED only so many cases, drawn (WGRAD_SWEEP_ONLY: those that match this regular expression). Then it says `made` and waits for a line. wgrad meanwhile reads the models and writes them into
FOLDER/again; each of those must load, have the same options, and compute the same.
"""

import inspect
import json
import os
import pathlib
import random
import re
import sys
import warnings

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
from keras import layers, ops

warnings.simplefilter("ignore")

# Base classes, wrappers of other libraries, and what keras/preprocessing_judge.py has.
NO_LAYERS = {"IntegerLookup", "Layer", "InputLayer", "Wrapper", "FlaxLayer", "JaxLayer", "TFSMLayer", "TorchModuleWrapper"}

SIGNAL, IMAGE, VOLUME, VECTOR, STEPS = (7, 4), (8, 6, 4), (6, 5, 4, 2), (6,), (5, 4)


def whole(high, shape=(6,)):
    return {"shape": shape, "high": high}


def case(inputs, **options):
    """A layer's inputs, and the options that it cannot do without."""
    return inputs if isinstance(inputs, list) else [inputs], options


# Required arguments. A layer that wgrad lacks needs no row.
LAYERS = {
    "Activation": case(VECTOR, activation="selu"),
    "AdditiveAttention": case([STEPS, STEPS]),
    "AlphaDropout": case(VECTOR, rate=0.25),
    "Attention": case([STEPS, STEPS]),
    "Bidirectional": case(STEPS, layer=lambda: layers.LSTM(3)),
    "CategoryEncoding": case(whole(5), num_tokens=5),
    "CenterCrop": case((8, 6, 3), height=4, width=5),
    "Concatenate": case([STEPS, STEPS]),
    "Discretization": case(VECTOR, bin_boundaries=[-0.5, 0.25, 1.0]),
    "Dot": case([STEPS, STEPS], axes=1),
    "Dropout": case(VECTOR, rate=0.25),
    "EinsumDense": case(STEPS, equation="abc,cd->abd", output_shape=(None, 3)),
    "Embedding": case(whole(5), input_dim=5, output_dim=3),
    "GaussianDropout": case(VECTOR, rate=0.25),
    "GaussianNoise": case(VECTOR, stddev=0.5),
    "GroupNormalization": case(STEPS, groups=2),
    "GroupedQueryAttention": case([STEPS, STEPS], head_dim=4, num_query_heads=2, num_key_value_heads=1),
    "Masking": case(STEPS),
    "MultiHeadAttention": case([STEPS, STEPS], num_heads=2, key_dim=3),
    "Permute": case(STEPS, dims=(2, 1)),
    "RNN": case(STEPS, cell=lambda: layers.LSTMCell(3)),
    "RepeatVector": case(VECTOR, n=3),
    "Rescaling": case(VECTOR, scale=0.5),
    "Reshape": case(STEPS, target_shape=(-1, 2)),
    "Resizing": case((8, 6, 3), height=4, width=5),
    "RandomBrightness": case((8, 6, 3), factor=0.25),
    "RandomContrast": case((8, 6, 3), factor=0.25),
    "RandomCrop": case((8, 6, 3), height=4, width=3),
    "RandomFlip": case((8, 6, 3)),
    "RandomRotation": case((8, 6, 3), factor=0.25),
    "RandomTranslation": case((8, 6, 3), height_factor=0.25, width_factor=0.25),
    "RandomZoom": case((8, 6, 3), height_factor=0.25),
    "Solarization": case((8, 6, 3)),
    "SpatialDropout1D": case(SIGNAL, rate=0.25),
    "SpatialDropout2D": case(IMAGE, rate=0.25),
    "SpatialDropout3D": case(VOLUME, rate=0.25),
    "SpectralNormalization": case(VECTOR, layer=lambda: layers.Dense(3)),
    "StackedRNNCells": case(STEPS, cells=lambda: [layers.LSTMCell(3), layers.GRUCell(2)]),
    "TimeDistributed": case(STEPS, layer=lambda: layers.Dense(3)),
}
for name in ["Add", "Average", "Maximum", "Minimum", "Multiply", "Subtract"]:
    LAYERS[name] = case([STEPS, STEPS])
for name in ["ActivityRegularization", "ELU", "Identity", "LeakyReLU", "PReLU", "ReLU", "Softmax", "Flatten"]:
    LAYERS[name] = case(STEPS)
for name in ["BatchNormalization", "LayerNormalization", "RMSNormalization", "UnitNormalization", "Normalization"]:
    LAYERS[name] = case(STEPS)
for name in ["LSTM", "GRU", "SimpleRNN", "LSTMCell", "GRUCell", "SimpleRNNCell", "Dense"]:
    LAYERS[name] = case(STEPS, units=3)
for axes, shape in [(1, SIGNAL), (2, IMAGE), (3, VOLUME)]:
    two = (2,) * axes if axes > 1 else 2
    for name in [f"Conv{axes}D", f"Conv{axes}DTranspose", f"SeparableConv{axes}D"]:
        LAYERS[name] = case(shape, filters=4, kernel_size=two)
    LAYERS[f"DepthwiseConv{axes}D"] = case(shape, kernel_size=two)
    LAYERS[f"ConvLSTM{axes}D"] = case((3, *shape[:-1], 2), filters=2, kernel_size=two)
    for name in ["Average", "Max"]:
        LAYERS[f"Adaptive{name}Pooling{axes}D"] = case(shape, output_size=two)
        LAYERS[f"Global{name}Pooling{axes}D"] = case(shape)
        LAYERS[f"{name}Pooling{axes}D"] = case(shape, pool_size=two)
    for name in ["Cropping", "UpSampling", "ZeroPadding"]:
        LAYERS[f"{name}{axes}D"] = case(shape)

# Values other than the default, for the options of all layers; `(option, with)` if other options must also be set.
VALUES = {
    "activation": "sigmoid",
    "addition_factor": 0.25,
    "alpha": 0.5,
    "attention_axes": 1,
    "axes": 2,
    "axis": 1,
    "backward_layer": lambda: layers.GRU(3, go_backwards=True),
    "beta_initializer": lambda: keras.initializers.RandomNormal(0.1, 0.2, seed=3),
    "bias_axes": "d",
    "bin_boundaries": [0.0, 0.5],
    "cells": lambda: [layers.SimpleRNNCell(2), layers.SimpleRNNCell(3), layers.LSTMCell(2)],
    "cell": lambda: [layers.SimpleRNNCell(2), layers.GRUCell(3)],
    "center": False,
    "crop_to_aspect_ratio": True,
    "cropping": 1,
    "data_format": "channels_first",
    "depth_multiplier": 2,
    "dilation_rate": 2,
    "dropout": 0.25,
    "encoding": "utf-16-le",
    "epsilon": 0.125,
    "equation": "abc,bcd->ad",
    "factor": 0.5,
    "fill_mode": "wrap",
    "fill_value": 2.0,
    "flash_attention": False,
    "go_backwards": True,
    "gptq_unpacked_column_size": 3,
    "groups": 2,
    "invert": True,
    "keepdims": True,
    "l1": 0.125,
    "l2": 0.25,
    "layer": lambda: layers.GRU(3),
    "lora_alpha": ({"lora_rank": 2}, 0.5),
    "lora_rank": 2,
    "mask_value": 1.0,
    "mask_zero": True,
    "max_value": 1.5,
    "mean": ({"variance": 4.0}, 0.5),
    "merge_mode": "sum",
    "mode": "horizontal",
    "momentum": 0.5,
    "negative_slope": 0.125,
    "noise_shape": (None, 1),
    "normalize": True,
    "num_bins": 3,
    "offset": 0.25,
    "output_mode": "one_hot",
    "output_padding": ({"strides": 2}, 1),
    "output_shape": (None, 2),
    "pad_to_aspect_ratio": True,
    "padding": "same",
    "power_iterations": 2,
    "quantization_config": lambda: keras.quantizers.Int8QuantizationConfig(),
    "rate": 0.5,
    "recurrent_activation": "hard_sigmoid",
    "recurrent_dropout": 0.25,
    "renorm": True,
    "renorm_clipping": ({"renorm": True}, {"rmax": 2.0}),
    "renorm_momentum": 0.5,
    "reset_after": False,
    "return_sequences": True,
    "return_state": True,
    "scale": False,
    "score_mode": "concat",
    "seed": 7,
    "shared_axes": [1],
    "sliding_window": 2,
    "sparse": True,
    "stateful": True,
    "stddev": 0.25,
    "strides": 2,
    "synchronized": True,
    "threshold": 0.25,
    "threshold_factor": 0.5,
    "trainable": False,
    "unit_forget_bias": False,
    "unroll": True,
    "use_bias": False,
    "use_cudnn": False,
    "use_gate": True,
    "value_dim": 2,
    "value_range": (0.0, 1.0),
    "variance": ({"mean": 0.5}, 4.0),
    "width_factor": 0.5,
    "zero_output_for_mask": True,
}
OWN = {
    "Activation.activation": "celu",
    "AdditiveAttention.use_scale": False,
    "Attention.use_scale": True,
    "CategoryEncoding.output_mode": "count",
    "CategoryEncoding.num_tokens": 7,
    "Discretization.num_bins": lambda: adapted(layers.Discretization(num_bins=3)),
    "Dot.axes": (1, 1),
    "EinsumDense.output_shape": (None, 2),
    "EinsumDense.equation": ({"output_shape": 2}, "abc,bcd->ad"),
    "GroupNormalization.groups": -1,
    "GroupNormalization.axis": ({"groups": 1}, 1),
    "Masking.mask_value": 0.5,
    "MultiHeadAttention.output_shape": 2,
    "MultiHeadAttention.attention_axes": [1],
    "Normalization.axis": None,
    "Permute.dims": (1, 2),
    "RMSNormalization.axis": [-1],
    "RandomFlip.mode": "vertical",
    "Rescaling.scale": [0.5, 1.0, 2.0, 4.0, 8.0, 16.0],
    "Rescaling.offset": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    "Resizing.interpolation": "nearest",
    "Resizing.fill_mode": ({"pad_to_aspect_ratio": True}, "constant"),
    "Resizing.fill_value": ({"pad_to_aspect_ratio": True}, 2.0),
    "Resizing.antialias": True,
    "SpectralNormalization.layer": lambda: layers.Dense(2, use_bias=False),
    "Discretization.sparse": ({"output_mode": "one_hot"}, True),
    "TimeDistributed.layer": lambda: layers.Dense(2, activation="relu"),
    "UpSampling2D.interpolation": "bilinear",
    "ZeroPadding1D.padding": 2,
    "ZeroPadding2D.padding": ((0, 1), (2, 3)),
    "ZeroPadding3D.padding": 2,
    "Cropping1D.cropping": (0, 2),
    "Cropping2D.cropping": ((0, 1), (2, 0)),
}
# Names, and shapes of weights given as arrays, are not stored in a file.
NO_OPTIONS = {"name", "dtype", "weights"}
# Sizes: any number shows whether they are read.
SIZES = {
    "units": 2, "filters": 2, "num_heads": 1, "key_dim": 2, "head_dim": 2, "num_query_heads": 4, "num_key_value_heads": 2,
    "input_dim": 9, "output_dim": 2, "n": 2, "height": 3, "width": 2, "height_factor": 0.5, "target_shape": (4, 5),
}


def adapted(layer):
    layer.adapt(np.linspace(-1, 1, 40, dtype="float32"))
    return layer


def value_of(name, option, default, axes):
    """Another value for an option, and what must be set beside it."""
    own = {**SIZES, **VALUES}.get(option, ...)
    own = OWN.get(f"{name}.{option}", own)
    if own is ...:
        if option.endswith("_initializer"):
            own = lambda: keras.initializers.RandomNormal(0.1, 0.2, seed=3)
        elif option.endswith("_regularizer"):
            own = lambda: keras.regularizers.L1L2(0.01, 0.02)
        elif option.endswith("_constraint"):
            own = lambda: keras.constraints.MaxNorm(1.5)
        elif option in {"kernel_size", "pool_size", "size", "output_size"}:
            own = 3 if axes == 1 else (1, 3, 2)[:axes]
        elif option == "interpolation":
            own = "nearest"
        else:
            raise SystemExit(f"sweep.py has no other value for the option '{option}' of {name}; its default is {default!r}")
    return own if isinstance(own, tuple) and own and isinstance(own[0], dict) else ({}, own)


def known_layers():
    found = {}
    for name in dir(layers):
        layer = getattr(layers, name)
        if inspect.isclass(layer) and issubclass(layer, layers.Layer) and layer.__name__ not in NO_LAYERS:
            found[layer.__name__] = layer
    return found


def options_of(layer):
    """The options of the constructor, with their defaults."""
    parameters = inspect.signature(layer.__init__).parameters.values()
    named = {p.name: p.default for p in parameters if p.name != "self" and p.kind is not p.VAR_KEYWORD}
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        named.setdefault("trainable", True)
        # This layer makes one from its own options.
        if layer is not keras.layers.ActivityRegularization:
            named.setdefault("activity_regularizer", None)
    return {name: default for name, default in named.items() if name not in NO_OPTIONS}


def made(value):
    return value() if callable(value) else value


def layer_cases():
    for name, layer in sorted(known_layers().items()):
        if name not in LAYERS:
            continue
        inputs, needed = LAYERS[name]
        axes = next((int(d) for d in reversed(name) if d in "123"), 0)

        def build(options, name=name, layer=layer, inputs=inputs, needed=needed):
            options = {**needed, **options}
            stateful = options.get("stateful")
            xs = [symbol(x, stateful) for x in inputs]
            options = {key: made(value) for key, value in options.items()}
            if isinstance(options.get("num_bins"), layers.Layer):
                one = options["num_bins"]
            elif name == "StackedRNNCells" or name.endswith("Cell"):
                one = layers.RNN(layer(**options))
            else:
                one = layer(**options)
            positional = name in {"MultiHeadAttention", "GroupedQueryAttention"}
            return xs, one(*xs) if positional else one(xs if len(xs) > 1 else xs[0])

        yield name, lambda build=build: build({})
        for option, default in options_of(layer).items():
            if option == "trainable" and (name == "StackedRNNCells" or name.endswith("Cell")):
                # A nested layer is read as trainable (docs/weights.md).
                continue
            beside, value = value_of(name, option, default, axes)
            yield f"{name}.{option}", lambda build=build, beside=beside, option=option, value=value: build({**beside, option: value})


def symbol(spec, stateful=False):
    spec = {"shape": spec} if isinstance(spec, tuple) else spec
    dtype = "int32" if "high" in spec else "float32"
    x = keras.Input(batch_shape=(2 if stateful else None, *spec["shape"]), dtype=dtype)
    x.high = spec.get("high")
    return x


def calls():
    """Models with calls of every kind."""

    def of(f, *shapes):
        def build():
            xs = [symbol(shape) for shape in (shapes or (STEPS,))]
            return xs, f(*xs)

        return build

    two = (STEPS, STEPS)
    mha = lambda **options: layers.MultiHeadAttention(2, 3, **options)
    gqa = lambda **options: layers.GroupQueryAttention(4, 2, 1, **options)
    yield "call.mha.causal", of(lambda a, b: mha()(a, b, use_causal_mask=True), *two)
    yield "call.mha.keywords", of(lambda a, b: mha()(query=a, key=b, value=ops.add(b, 1.0)), *two)
    yield "call.mha.value_keyword", of(lambda a, b: mha()(a, value=b), *two)
    yield "call.mha.attention_mask", of(lambda a, b: mha()(a, b, attention_mask=ops.matmul(a, ops.transpose(b, (0, 2, 1))) > 0), *two)
    yield "call.mha.masks", of(lambda a, b: mha()(layers.Masking()(a * ops.cast(a[:, :, :1] > 0, "float32")), b[:, 1:]), *two)
    yield "call.mha.value_mask", of(lambda a, b: mha()(a[:, 1:], layers.Masking()(b * ops.cast(b[:, :, :1] > 0, "float32"))), *two)
    yield "call.mha.scores", of(lambda a, b: list(mha()(a, b, return_attention_scores=True)), *two)

    def shared(a, b):
        layer = mha()
        return [layer(a, b, use_causal_mask=True), layer(b, a)]

    yield "call.mha.shared", of(shared, *two)
    yield "call.gqa.causal", of(lambda a, b: gqa()(a, b, use_causal_mask=True), *two)
    yield "call.attention.causal", of(lambda a, b: layers.Attention()([a, b], use_causal_mask=True), *two)
    yield "call.attention.scores", of(lambda a, b: list(layers.Attention()([a, b], return_attention_scores=True)), *two)
    yield "call.additive.causal", of(lambda a, b: layers.AdditiveAttention()([a, b, a], use_causal_mask=True), *two)
    yield "call.dense.inputs", of(lambda a: layers.Dense(3)(inputs=a))
    yield "call.dense.training", of(lambda a: layers.Dropout(0.5)(layers.Dense(3)(a), training=False))

    def seq2seq(cell):
        def f(a, b):
            _, *states = cell(3, return_state=True)(a)
            y, *rest = cell(3, return_sequences=True, return_state=True)(b, initial_state=states)
            return [y, *rest]

        return f

    for cell in [layers.LSTM, layers.GRU, layers.SimpleRNN]:
        yield f"call.states.{cell.__name__}", of(seq2seq(cell), *two)
    yield "call.states.bidirectional", of(lambda a: list(layers.Bidirectional(layers.LSTM(3, return_state=True))(a)))
    yield "call.states.list", of(lambda a, h: layers.GRU(4)(a, initial_state=[h]), STEPS, (4,))
    yield "call.states.one", of(lambda a, h: layers.GRU(4)(a, initial_state=h), STEPS, (4,))
    yield "call.rnn.mask", of(lambda a: layers.LSTM(3)(a, mask=ops.any(a > 0, axis=-1)))
    yield "call.rnn.masking", of(lambda a: layers.Bidirectional(layers.GRU(3, return_sequences=True))(layers.Masking()(a)))
    yield "call.bidirectional.rnn", of(lambda a: layers.Bidirectional(layers.RNN(layers.GRUCell(2)))(a))
    yield "call.bidirectional.conv", of(lambda a: layers.Bidirectional(layers.ConvLSTM1D(2, 2))(a), (3, 6, 2))
    yield "call.embedding.mask", of(lambda a: layers.LSTM(3)(layers.Embedding(5, 4, mask_zero=True)(a)), whole(5))
    yield "call.time_distributed.model", of(lambda a: layers.TimeDistributed(keras.Sequential([layers.Dense(3), layers.ReLU()]))(a))
    yield "call.spectral.conv", of(lambda a: layers.SpectralNormalization(layers.Conv2D(3, 2), power_iterations=3)(a), IMAGE)

    one = {
        "relu": ops.relu, "relu6": ops.relu6, "sigmoid": ops.sigmoid, "softplus": ops.softplus, "softsign": ops.softsign,
        "silu": ops.silu, "gelu": ops.gelu, "gelu_exact": lambda x: ops.gelu(x, approximate=False), "elu": ops.elu,
        "elu_alpha": lambda x: ops.elu(x, alpha=0.5), "selu": ops.selu, "celu": lambda x: ops.celu(x, alpha=0.5),
        "leaky_relu": lambda x: ops.leaky_relu(x, negative_slope=0.1), "hard_sigmoid": ops.hard_sigmoid,
        "hard_silu": ops.hard_silu, "log_sigmoid": ops.log_sigmoid, "softmax": ops.softmax,
        "softmax_axis": lambda x: ops.softmax(x, axis=1), "log_softmax": ops.log_softmax,
        "absolute": ops.absolute, "negative": lambda x: -x, "square": ops.square, "sqrt": lambda x: ops.sqrt(ops.abs(x)),
        "rsqrt": lambda x: ops.rsqrt(ops.abs(x) + 1.0), "exp": ops.exp, "expm1": ops.expm1,
        "log": lambda x: ops.log(ops.abs(x) + 1.0), "log1p": lambda x: ops.log1p(ops.abs(x)), "sin": ops.sin, "cos": ops.cos,
        "tanh": ops.tanh, "sinh": ops.sinh, "cosh": ops.cosh, "erf": ops.erf, "sign": ops.sign, "floor": ops.floor,
        "ceil": ops.ceil, "round": ops.round, "reciprocal": lambda x: ops.reciprocal(ops.abs(x) + 1.0),
        "mean": lambda x: ops.mean(x, axis=[1, 2], keepdims=True), "mean_all": lambda x: ops.mean(x) + 0 * x,
        "sum": lambda x: ops.sum(x, axis=1), "max": lambda x: ops.max(x, axis=-1), "min": lambda x: ops.min(x, axis=1, keepdims=True),
        "prod": lambda x: ops.prod(x, axis=-1), "var": lambda x: ops.var(x, axis=-1), "std": lambda x: ops.std(x, axis=-1),
        "any": lambda x: ops.any(x > 1, axis=-1), "all": lambda x: ops.all(x > -1, axis=-1),
        "argmax": lambda x: ops.argmax(x, axis=-1), "argmin": lambda x: ops.argmin(x, axis=1),
        "cumsum": lambda x: ops.cumsum(x, axis=1), "logsumexp": lambda x: ops.logsumexp(x, axis=-1),
        "reshape": lambda x: ops.reshape(x, (-1, 20)),
        "transpose": lambda x: ops.transpose(x, (0, 2, 1)), "swapaxes": lambda x: ops.swapaxes(x, 1, 2),
        "moveaxis": lambda x: ops.moveaxis(x, 1, -1),
        "expand_dims": lambda x: ops.expand_dims(x, 1), "squeeze": lambda x: ops.squeeze(x[:, :1], 1),
        "split": lambda x: list(ops.split(x, 2, axis=2)), "split_at": lambda x: list(ops.split(x, [1, 3], axis=1)),
        "unstack": lambda x: list(ops.unstack(x, axis=2)), "tile": lambda x: ops.tile(x, [1, 2, 1]), "repeat": lambda x: ops.repeat(x, 2, axis=1),
        "flip": lambda x: ops.flip(x, axis=1), "roll": lambda x: ops.roll(x, 2, axis=1),
        "pad": lambda x: ops.pad(x, [[0, 0], [1, 2], [0, 0]]), "clip": lambda x: ops.clip(x, -0.5, 0.5),
        "cast": lambda x: ops.cast(x > 0.5, "float32"), "cast_int": lambda x: ops.cast(x * 3, "int32"),
        "one_hot": lambda x: ops.one_hot(ops.argmax(x, axis=-1), 6), "normalize": ops.normalize,
        "take": lambda x: ops.take(x, [0, 2], axis=1), "zeros_like": lambda x: ops.zeros_like(x) + x, "ones_like": lambda x: ops.ones_like(x) * x,
        "sort": lambda x: ops.sort(x, axis=-1), "top_k": lambda x: ops.top_k(x, 2)[0], "einsum": lambda x: ops.einsum("bij,bkj->bik", x, x),
        "item": lambda x: x[:, 0], "item_last": lambda x: x[:, -1], "item_range": lambda x: x[:, 1:3, ::2],
        "item_ellipsis": lambda x: x[..., -1], "item_new": lambda x: x[:, None, :, 1], "item_back": lambda x: x[:, ::-1],
        "add_number": lambda x: x + 1.5, "subtract_from": lambda x: 2 - x, "divide_number": lambda x: x / 4, "divide_into": lambda x: 2 / (ops.abs(x) + 1.0),
        "power": lambda x: ops.abs(x) ** 1.5, "square_power": lambda x: x**2, "floor_divide": lambda x: x // 0.3, "mod": lambda x: x % 0.3,
        "constant": lambda x: x + np.arange(4, dtype="float32"), "tensor": lambda x: x * ops.convert_to_tensor(np.arange(4, dtype="float32")),
        "logical_not": lambda x: ops.logical_not(x > 0), "where_number": lambda x: ops.where(x > 0, x, 0.0), "stop_gradient": ops.stop_gradient,
        "identity": lambda x: ops.broadcast_to(ops.mean(x, axis=0, keepdims=True), (2, 5, 4)), "flatten": lambda x: ops.reshape(x, (-1,)),
    }
    for name, f in one.items():
        yield f"ops.{name}", of(f)
    pairs = {
        "add": ops.add, "subtract": ops.subtract, "multiply": ops.multiply, "divide": lambda a, b: ops.divide(a, ops.abs(b) + 1.0),
        "true_divide": lambda a, b: a / (ops.abs(b) + 1.0), "maximum": ops.maximum, "minimum": ops.minimum, "equal": ops.equal, "not_equal": ops.not_equal,
        "greater": ops.greater, "greater_equal": ops.greater_equal, "less": ops.less, "less_equal": ops.less_equal,
        "logical_and": lambda a, b: ops.logical_and(a > 0, b > 0), "logical_or": lambda a, b: ops.logical_or(a > 0, b > 0),
        "matmul": lambda a, b: ops.matmul(a, ops.transpose(b, (0, 2, 1))), "matmul_operator": lambda a, b: a @ ops.swapaxes(b, 1, 2),
        "dot": lambda a, b: ops.dot(a, ops.ones((4, 2))) + ops.mean(b), "concatenate": lambda a, b: ops.concatenate([a, b], axis=1), "concatenate_last": lambda a, b: ops.concatenate([a, b]),
        "stack": lambda a, b: ops.stack([a, b], axis=1), "where": lambda a, b: ops.where(a > 0, a, b), "arctan2": ops.arctan2,
        "squared_difference": lambda a, b: (a - b) ** 2, "hstack": lambda a, b: ops.hstack([a, b]), "three": lambda a, b: ops.concatenate([a, b, a], axis=-1),
    }
    for name, f in pairs.items():
        yield f"ops.{name}", of(f, *two)


def filled(model, seed):
    """Weights that differ from each other; variances stay positive."""
    numbers = np.random.default_rng(seed)
    for variable in model.variables:
        if "float" in str(variable.dtype):
            value = numbers.normal(size=variable.shape) * 0.5
            variable.assign(np.abs(value) + 0.5 if "variance" in variable.path else value)
    for layer in model.layers:
        if isinstance(layer, layers.Normalization) and layer.input_mean is None:
            # It computes with copies of its weights.
            layer.finalize_state()


def result(model, inputs):
    reset = [layer for layer in model.layers if getattr(layer, "stateful", False)]
    for layer in reset:
        layer.reset_state()
    # By default, random layers compute as in training.
    ys = model(inputs if len(inputs) > 1 else inputs[0], training=False)
    return [np.asarray(y) for y in (ys if isinstance(ys, (list, tuple)) else [ys])]


def make(folder, count=None, seed=0):
    cases = list(layer_cases()) + list(calls())
    only = os.environ.get("WGRAD_SWEEP_ONLY")
    if only:
        cases = [(name, build) for name, build in cases if re.search(only, name)]
    if count is not None:
        cases = random.Random(seed).sample(cases, min(count, len(cases)))
    failed = []
    for at, (name, build) in enumerate(cases):
        print(name, flush=True)
        keras.backend.clear_session()
        try:
            xs, ys = build()
        except Exception as error:
            if "data_format" in name or "quantization" in name or "lora" in name:
                # TensorFlow on a CPU cannot build all of these, so such files do not come from a CPU.
                print("not made:", name, str(error).splitlines()[0][:100])
                continue
            failed.append(f"{name}: {type(error).__name__} {' '.join(str(error).split())[:300]}")
            continue
        numbers = np.random.default_rng(at)
        inputs = [
            numbers.integers(0, x.high, size=(2, *x.shape[1:])).astype("int32")
            if x.high
            else numbers.normal(size=(2, *x.shape[1:])).astype("float32")
            for x in xs
        ]
        model = keras.Model(xs, ys)
        filled(model, at)
        try:
            model.save(folder / f"{name}.keras")
        except Exception as error:
            # If Keras itself cannot save it, no such file exists.
            (folder / f"{name}.keras").unlink(missing_ok=True)
            print("not saved:", name, " ".join(str(error).split())[:100])
            continue
        arrays = {f"x{i}": x for i, x in enumerate(inputs)}
        try:
            # If TensorFlow has no kernel for channels first on a processor, it ends the process.
            if name.endswith("data_format") or name.endswith("sparse"):
                raise NotImplementedError("channels first, or a sparse result")
            if name.startswith("RandomCrop"):
                raise NotImplementedError("Keras crops in training alone (RandomCrop's documentation)")
            arrays.update({f"y{i}": y for i, y in enumerate(result(model, inputs))})
        except Exception as error:
            # The processor has no kernel for channels first: a reader that refuses the file needs no result.
            print("not run:", name, str(error).splitlines()[0][:100])
        np.savez(folder / f"{name}.npz", **arrays)
    if failed:
        raise SystemExit("sweep.py cannot make:\n" + "\n".join(failed))


def plain(value):
    """Options as they are compared."""
    if isinstance(value, dict):
        # Keys about the layer's module and how it was built.
        return {key: plain(item) for key, item in value.items() if key not in {"name", "build_config", "module", "registered_name"}}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return round(value, 5) if isinstance(value, float) else value


def options(model):
    found = []
    for layer in model.layers:
        if not isinstance(layer, layers.InputLayer):
            config = plain(json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))["config"])
            if not layer.weights or isinstance(layer, layers.Normalization):
                # Nothing is frozen.
                config.pop("trainable", None)
            if isinstance(layer, layers.Dot) and isinstance(config["axes"], int):
                config["axes"] = [config["axes"]] * 2
            found.append((type(layer).__name__, config))
    return found


def judge(folder):
    failed = 0
    names = sorted(path.stem for path in (folder / "again").glob("*.keras"))
    for name in names:
        keras.backend.clear_session()
        try:
            arrays = np.load(folder / f"{name}.npz")
            inputs = [arrays[f"x{at}"] for at in range(sum(key[0] == "x" for key in arrays.files))]
            wanted = [arrays[f"y{at}"] for at in range(len(arrays.files) - len(inputs))]
            model = keras.saving.load_model(folder / "again" / f"{name}.keras")
            given = result(model, inputs)
            assert not wanted or len(given) == len(wanted), (len(given), len(wanted))
            for y, want in zip(given, wanted):
                np.testing.assert_allclose(y, want, rtol=2e-5, atol=2e-5)
            first = keras.saving.load_model(folder / f"{name}.keras")
            for (kind, ours), (_, theirs) in zip(options(model), options(first)):
                for key in theirs.keys() | ours.keys():
                    assert ours.get(key) == theirs.get(key), (kind, key, ours.get(key), theirs.get(key))
            for ours, theirs in zip(model.variables, first.variables):
                assert ours.trainable == theirs.trainable, (ours.path, ours.trainable)
        except Exception as error:
            failed += 1
            print("DIFFERS", name, type(error).__name__, " ".join(str(error).split())[:600])
    print(f"{len(names) - failed} of {len(names)} agree", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--layers":
        print("all", *sorted(known_layers()))
        print("swept", *sorted(LAYERS))
        sys.exit()
    folder = pathlib.Path(sys.argv[1])
    (folder / "again").mkdir(exist_ok=True)
    if not os.environ.get("WGRAD_SWEEP_FOLDER") or not list(folder.glob("*.keras")):
        make(folder, *map(int, sys.argv[2:4]))
    print("made", flush=True)
    sys.stdin.readline()
    judge(folder)
