"""Writes models of tf_keras (Keras 2) as layers models of TensorFlow.js, one for each of its layers, with their results.

    python sweep.py FOLDER

makes FOLDER/NAME/model.json, its weights, and FOLDER/NAME.safetensors with `in.x` and `out.y`, as the converter of TensorFlow.js
does: it names weights without the models around a layer, and sorts them by layer.
"""

import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import numpy as np
import tf_keras
from safetensors.numpy import save_file

K = tf_keras.layers
RANDOM = np.random.default_rng(0)
FOLDER = sys.argv[1]


def write(name, model, x):
    folder = os.path.join(FOLDER, name)
    os.makedirs(folder)
    for weight in model.weights:
        value = RANDOM.normal(size=weight.shape).astype(np.float32) * 0.4
        weight.assign(np.abs(value) + 0.5 if "variance" in weight.name or "gamma" in weight.name else value)
    named = {}
    for layer in layers_of(model):
        for weight in [*layer.trainable_weights, *layer.non_trainable_weights]:
            named[weight.name.removesuffix(":0")] = weight.numpy()
    names = sorted(named, key=lambda key: key.split("/")[0])
    specs = [{"name": key, "shape": list(named[key].shape), "dtype": "float32"} for key in names]
    with open(os.path.join(folder, "weights.bin"), "wb") as file:
        for key in names:
            file.write(named[key].astype("<f4").tobytes())
    topology = {"keras_version": "2.21.0", "backend": "tensorflow", "model_config": json.loads(model.to_json())}
    manifest = [{"paths": ["weights.bin"], "weights": specs}]
    with open(os.path.join(folder, "model.json"), "w") as file:
        json.dump({"format": "layers-model", "modelTopology": topology, "weightsManifest": manifest}, file)
    save_file({"in.x": x, "out.y": np.ascontiguousarray(model(x, training=False).numpy())}, folder + ".safetensors")


def layers_of(model):
    for layer in model.layers:
        if isinstance(layer, tf_keras.Model):
            yield from layers_of(layer)
        else:
            yield layer


def normal(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


IMAGE, ROWS, FLAT = normal(2, 8, 8, 3), normal(2, 6, 4), normal(3, 5)
LAYERS = [
    (FLAT, K.Dense(4, activation="hard_sigmoid"), K.Dense(3, activation="selu", kernel_regularizer="l2")),
    (FLAT, K.Dense(4), K.LeakyReLU(0.1), K.ELU(0.7), K.ReLU(6.0, 0.1, 0.2), K.Softmax()),
    (FLAT, K.Dense(4), K.PReLU(), K.Activation("swish"), K.Dropout(0.5), K.GaussianNoise(0.1), K.ActivityRegularization(0.1)),
    (FLAT, K.Reshape((5, 1)), K.Permute((2, 1)), K.Flatten(), K.RepeatVector(3)),
    (FLAT, K.BatchNormalization(), K.LayerNormalization(), K.UnitNormalization()),
    (IMAGE, K.Conv2D(4, 3, 2, "same", use_bias=False), K.BatchNormalization(scale=False), K.GroupNormalization(2)),
    (IMAGE, K.DepthwiseConv2D(3, depth_multiplier=2), K.SeparableConv2D(5, 3, activation="relu6")),
    (IMAGE, K.Conv2DTranspose(4, 3, 2, "same"), K.Cropping2D(2), K.ZeroPadding2D(((1, 0), (0, 2))), K.UpSampling2D(2)),
    (IMAGE, K.Conv2D(6, 3, groups=3), K.SpatialDropout2D(0.2), K.GlobalAveragePooling2D(keepdims=True)),
    (IMAGE, K.MaxPooling2D(2), K.AveragePooling2D(3, 1, "same"), K.GlobalMaxPooling2D()),
    (IMAGE, K.Rescaling(0.5, 0.1), K.Resizing(6, 6), K.CenterCrop(4, 4)),
    (ROWS, K.Conv1D(5, 3, padding="causal", dilation_rate=2), K.MaxPooling1D(2), K.GlobalAveragePooling1D()),
    (ROWS, K.SeparableConv1D(5, 2), K.Conv1DTranspose(3, 2), K.AveragePooling1D(2), K.ZeroPadding1D(1), K.Cropping1D((0, 1)), K.UpSampling1D(2)),
    (ROWS, K.LSTM(4, return_sequences=True), K.GRU(3)),
    (ROWS, K.LSTM(4, recurrent_activation="hard_sigmoid", unit_forget_bias=False, go_backwards=True),),
    (ROWS, K.GRU(4, reset_after=False, return_sequences=True), K.SimpleRNN(3)),
    (ROWS, K.Bidirectional(K.LSTM(3, return_sequences=True), merge_mode="ave"), K.Bidirectional(K.GRU(2))),
    (ROWS, K.TimeDistributed(K.Dense(3)), K.RNN([K.LSTMCell(3), K.GRUCell(2)])),
    (ROWS, K.Masking(0.0), K.LSTM(3)),
    (RANDOM.integers(0, 7, (2, 5)).astype(np.int32), K.Embedding(7, 4, mask_zero=True), K.GRU(3)),
    (normal(2, 5, 6, 4, 2), K.Conv3D(3, 2, activation="relu"), K.MaxPooling3D(2), K.GlobalAveragePooling3D()),
    (normal(2, 4, 4, 4, 2), K.ConvLSTM2D(2, 2)),
]
for layers in LAYERS:
    x, layers = layers[0], layers[1:]
    dtype = "int32" if x.dtype == np.int32 else "float32"
    name = "_".join(type(layer).__name__.lower() for layer in layers)[:60]
    write(name, tf_keras.Sequential([K.Input(x.shape[1:], dtype=dtype), *layers]), x)


def functional(name, x, body):
    a = K.Input(x.shape[1:])
    write(name, tf_keras.Model(a, body(a)), x)


def shared(a):
    dense, inner = K.Dense(5, activation="tanh"), tf_keras.Sequential([K.Dense(5), K.LayerNormalization()])
    b = dense(dense(a))
    b = K.Add()([inner(inner(b)), a])
    c = tf_keras.Input((5,))
    block = tf_keras.Model(c, K.Multiply()([K.Dense(5)(c), c]))
    return K.Concatenate()([block(block(b)), K.Subtract()([a, b]), K.Maximum()([a, b]), K.Average()([a, b])])


functional("shared", FLAT, shared)
functional("attention", ROWS, lambda a: K.MultiHeadAttention(2, 3)(a, K.Dense(4)(a), use_causal_mask=True))
functional("dots", ROWS, lambda a: K.Dot(axes=(2, 2), normalize=True)([a, K.AdditiveAttention()([a, a])]))
functional("states", ROWS, lambda a: K.LSTM(3)(a, initial_state=[K.Dense(3)(K.Flatten()(a)), K.Dense(3)(K.Flatten()(a))]))
