"""Writes SavedModels with TensorFlow and Keras, with the results and gradients that TensorFlow has for them when it loads them.

    python make.py FOLDER [SEED [NAME...]]

makes FOLDER/NAME/saved_model.pb and its variables, and FOLDER/NAME.safetensors with `in.*`, `out.*` and, for each trainable
variable, `grad.*`: of the sum of the squares of all float results. tests/saved_model.rs has some of them (the files beside this
one, of seed 0), tests/judge/saved_models.rs makes all of them.
"""

import functools
import os
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L
from safetensors.numpy import save_file

FOLDER = sys.argv[1]
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 0
RANDOM = np.random.default_rng(SEED)
STRIPPED = tf.saved_model.SaveOptions(experimental_debug_stripper=True)


def normal(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def at(name):
    return os.path.join(FOLDER, name)


def record(name, inputs, signature=None):
    """Writes what TensorFlow computes with the saved model."""
    loaded = tf.saved_model.load(at(name))
    f = signature or loaded.signatures["serving_default"]
    variables = f.trainable_variables
    with tf.GradientTape() as tape:
        outputs = f(**{name: tf.constant(value) for name, value in inputs.items()})
        floats = [y for y in outputs.values() if y.dtype == tf.float32]
        loss = tf.add_n([tf.reduce_sum(y * y) for y in floats]) if floats else tf.zeros([])
    gradients = tape.gradient(loss, variables)
    values = {f"in.{name}": value for name, value in inputs.items()}
    values.update({f"out.{name}": value.numpy() for name, value in outputs.items()})
    for variable, gradient in zip(variables, gradients):
        if gradient is not None:
            values[f"grad.{variable.name.split(':')[0]}"] = tf.convert_to_tensor(gradient).numpy()
    save_file({name: np.array(value, order="C") for name, value in values.items()}, at(name + ".safetensors"))


# Keras


def sequential(shape, *layers, dtype="float32"):
    return keras.Sequential([L.Input(shape, dtype=dtype), *layers])


def functional(f, *shapes, dtype="float32"):
    inputs = [L.Input(shape, dtype=dtype) for shape in shapes]
    return keras.Model(inputs if len(inputs) > 1 else inputs[0], f(*inputs))


def residual(x):
    y = L.Conv2D(8, 3, padding="same", use_bias=False)(x)
    y = L.ReLU()(L.BatchNormalization()(y))
    y = L.Add()([x, L.Conv2D(3, 3, padding="same")(y)])
    return L.Dense(4)(L.GlobalAveragePooling2D()(y))


def transformer(x):
    y = L.Embedding(50, 16)(x)
    y = L.LayerNormalization()(y + L.MultiHeadAttention(2, 8)(y, y))
    z = L.Dropout(0.1)(L.Dense(32, activation="gelu")(y))
    y = L.LayerNormalization()(y + L.Dense(16)(z))
    return L.Dense(5, activation="softmax")(L.GlobalMaxPooling1D()(y))


def merges(a, b):
    each = [L.Add(), L.Subtract(), L.Multiply(), L.Average(), L.Maximum(), L.Minimum(), L.Dot(1)]
    return L.Dense(3)(L.Concatenate()([layer([a, b]) for layer in each]))


def attention(query, value):
    both = [L.Attention(use_scale=True)([query, value]), L.AdditiveAttention()([query, value])]
    return L.Dense(2)(L.GlobalAveragePooling1D()(L.Concatenate()(both)))


ACTIVATIONS = ["softplus", "softsign", "hard_sigmoid", "exponential", "mish", "relu6", "celu", "hard_silu", "gelu", "silu"]

KERAS = {
    "mlp": lambda: sequential((20,), L.Dense(16, activation="relu"), L.Dropout(0.5), L.Dense(4, activation="softmax")),
    "cnn": lambda: sequential((16, 16, 3), L.Conv2D(8, 3, activation="relu"), L.MaxPooling2D(), L.Conv2D(8, 3, strides=2, padding="same", activation="elu"), L.Flatten(), L.Dense(5)),
    "resnet": lambda: functional(residual, (12, 12, 3)),
    "mobile": lambda: sequential((16, 16, 3), L.ZeroPadding2D(1), L.DepthwiseConv2D(3, strides=2), L.BatchNormalization(), L.ReLU(6.0), L.SeparableConv2D(8, 3, padding="same"), L.AveragePooling2D(2), L.GlobalMaxPooling2D(), L.Dense(3, activation="sigmoid")),
    "lstm": lambda: sequential((7, 5), L.LSTM(8, return_sequences=True), L.LSTM(6), L.Dense(2)),
    "gru": lambda: sequential((7, 5), L.GRU(8, return_sequences=True), L.GRU(6, reset_after=False), L.Dense(2)),
    "rnn": lambda: sequential((7, 5), L.Bidirectional(L.SimpleRNN(6, return_sequences=True)), L.TimeDistributed(L.Dense(3)), L.Flatten(), L.Dense(2)),
    "masked": lambda: sequential((9,), L.Embedding(30, 8, mask_zero=True), L.Bidirectional(L.LSTM(6)), L.Dense(3, activation="softmax"), dtype="int32"),
    "transformer": lambda: functional(transformer, (11,), dtype="int32"),
    "conv1d": lambda: sequential((20, 4), L.Conv1D(8, 3, padding="causal", dilation_rate=2, activation="silu"), L.MaxPooling1D(), L.AveragePooling1D(2), L.Conv1DTranspose(4, 3, strides=2), L.GlobalAveragePooling1D(), L.Dense(2)),
    "conv3d": lambda: sequential((6, 6, 6, 2), L.Conv3D(4, 2, activation="relu"), L.MaxPooling3D(), L.Conv3DTranspose(2, 2), L.GlobalAveragePooling3D(), L.Dense(2)),
    "unet": lambda: sequential((8, 8, 3), L.Conv2D(4, 3, padding="same", activation="leaky_relu"), L.MaxPooling2D(), L.Conv2DTranspose(4, 3, strides=2, padding="same"), L.UpSampling2D(2, interpolation="bilinear"), L.Cropping2D(2), L.Conv2D(2, 1, activation="tanh")),
    "norms": lambda: sequential((6, 6, 8), L.GroupNormalization(2), L.LayerNormalization(), L.UnitNormalization(), L.RMSNormalization(), L.BatchNormalization(), L.GlobalAveragePooling2D(), L.Dense(3, activation="selu")),
    "merges": lambda: functional(merges, (6,), (6,)),
    "reshapes": lambda: sequential((12,), L.Reshape((3, 4)), L.Permute((2, 1)), L.ZeroPadding1D(1), L.Cropping1D(1), L.UpSampling1D(2), L.Flatten(), L.RepeatVector(3), L.SpatialDropout1D(0.3), L.GaussianNoise(0.1), L.Flatten(), L.Dense(2)),
    "activations": lambda: sequential((8,), L.PReLU(), L.LeakyReLU(), L.ELU(), L.Softmax(), *[L.Dense(8, activation=name) for name in ACTIVATIONS], L.Dense(3, activation="log_softmax")),
    "convlstm": lambda: sequential((4, 6, 6, 2), L.ConvLSTM2D(3, 3, padding="same"), L.Flatten(), L.Dense(2)),
    "attention": lambda: functional(attention, (5, 6), (7, 6)),
    "image_layers": lambda: sequential((16, 16, 3), L.Rescaling(1 / 255.0), L.Resizing(8, 8), L.CenterCrop(6, 6), L.Flatten(), L.Dense(2)),
    "tabular": lambda: sequential((3,), L.Normalization(mean=[1.0, 2.0, 3.0], variance=[1.0, 4.0, 9.0]), L.Discretization([-1.0, 0.0, 1.0]), L.CategoryEncoding(4, output_mode="multi_hot"), L.Dense(2)),
    "einsum": lambda: sequential((5, 6), L.EinsumDense("abc,cd->abd", output_shape=(None, 4), bias_axes="d"), L.Dense(3)),
    "grouped_query": lambda: functional(lambda x: L.Dense(2)(L.GroupQueryAttention(4, 4, 2)(x, x)), (5, 6)),
}


def keras_model(name):
    keras.utils.set_random_seed(SEED)
    model = KERAS[name]()
    for weight in model.weights:
        if weight.dtype == "float32":
            value = 0.3 * normal(*weight.shape)
            weight.assign(np.abs(value) + 0.5 if "variance" in weight.path else value)
    archive = keras.export.ExportArchive()
    archive.track(model)
    specs = [tf.TensorSpec([None, *x.shape[1:]], x.dtype, name=f"x{i}") for i, x in enumerate(model.inputs)]
    call = (lambda x: model(x, training=False)) if len(specs) == 1 else (lambda *x: model(list(x), training=False))
    archive.add_endpoint("serve", call, input_signature=specs)
    archive.write_out(at(name), options=STRIPPED, verbose=False)
    inputs = {}
    for spec in specs:
        shape = [3, *spec.shape[1:]]
        inputs[spec.name] = RANDOM.integers(0, 30, shape).astype(np.int32) if spec.dtype == tf.int32 else normal(*shape)
    # The endpoint's arguments have the names of its specs only if the signature has them.
    names = sorted(tf.saved_model.load(at(name)).signatures["serving_default"].structured_input_signature[1])
    record(name, dict(zip(names, inputs.values())))


# TensorFlow


def module(name, spec, inputs, function, **variables):
    own = tf.Module()
    for key, value in variables.items():
        setattr(own, key, tf.Variable(value, name=key))
    own.f = tf.function(functools.partial(function, own), input_signature=spec)
    tf.saved_model.save(own, at(name), signatures={"serving_default": own.f}, options=STRIPPED)
    record(name, inputs)


def floats(*shape, name="x"):
    return tf.TensorSpec(shape, tf.float32, name=name)


def recurrence(own, x):
    array = tf.TensorArray(tf.float32, size=tf.shape(x)[0])
    h = tf.zeros([4])
    for i in tf.range(tf.shape(x)[0]):
        h = tf.tanh(tf.linalg.matvec(own.w, h) + x[i])
        array = array.write(i, h)
    return {"all": array.stack(), "last": h}


def many_ops(own, x):
    n = tf.shape(x)[0]
    y = tf.reshape(x, [n // 2, -1])
    y = tf.concat([y, tf.ones_like(y)], 1)[:, ::-2]
    return {
        "strided": y,
        "tensordot": tf.tensordot(x, own.w, [[2], [0]]),
        "pad": tf.pad(x, [[0, 0], [1, 1], [2, 0]], constant_values=0.5),
        "mirror": tf.pad(x, [[0, 0], [1, 1], [2, 0]], mode="REFLECT"),
        "gather": tf.gather(x, tf.constant([1, 0, 1]), axis=1),
        "tile": tf.tile(x[..., tf.newaxis], [1, 1, 1, 2]),
        "half": tf.cast(n, tf.float32) / 2.0,
        "one_hot": tf.one_hot(tf.range(n), 3, on_value=2.0, off_value=-1.0),
        "top": tf.math.top_k(x, 2)[0],
        "top_places": tf.math.top_k(x, 2)[1],
        "argmax": tf.argmax(x, -1),
        "cumsum": tf.cumsum(x, 1, exclusive=True, reverse=True),
        "where": tf.where(x > 0, x, tf.zeros_like(x)),
        "split": tf.split(x, [1, -1], -1)[1],
        "products": tf.matmul(x, x, transpose_b=True),
        "size": tf.size(x),
        "unstack": tf.stack(tf.unstack(x, axis=1), 0),
        "linspace": tf.linspace(0.0, 1.0, 5),
        "logsumexp": tf.reduce_logsumexp(x, [1, 2]),
        "std": tf.math.reduce_std(x, 0),
        "norm": tf.norm(x, axis=-1),
        "l2_normalize": tf.nn.l2_normalize(x, -1),
        "segments": tf.math.unsorted_segment_sum(x, tf.constant([0, 1, 0, 1]), 2),
        "roll": tf.roll(x, 1, 0),
        "broadcast": tf.broadcast_to(x[:, :1], tf.shape(x)),
        "gather_nd": tf.gather_nd(x, [[0, 1], [2, 0]]),
        "scatter": tf.tensor_scatter_nd_add(x[:, 0], [[0], [1]], tf.ones([2, 4])),
        "einsum": tf.einsum("bij,jk->bik", x, own.w),
        "band": tf.linalg.band_part(x, 1, 0),
        "reverse_sequence": tf.reverse_sequence(x, [1, 2, 3, 3], 1),
        "xent": tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(x), x * 2.0),
        "sparse_xent": tf.nn.sparse_softmax_cross_entropy_with_logits(tf.zeros([4, 3], tf.int32), x),
    }


def many_images(own, x):
    results = {method: tf.image.resize(x, [5, 7], method=method) for method in ["bilinear", "nearest", "bicubic", "area"]}
    # TensorFlow has no gradients of these.
    results["area"] = tf.stop_gradient(results["area"])
    results["average"] = tf.nn.avg_pool2d(x, 3, 2, "SAME")
    results["lrn"] = tf.nn.lrn(x)
    results["depth_to_space"] = tf.nn.depth_to_space(x, 2)
    results["space_to_batch"] = tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]])
    results["hsv"] = tf.image.rgb_to_hsv(tf.sigmoid(x[..., :3]))
    results["dilated"] = tf.stop_gradient(tf.nn.conv2d(x, own.kernel, 1, "VALID", dilations=2))
    results["explicit"] = tf.nn.conv2d(x, own.kernel, 2, [[0, 0], [1, 2], [0, 1], [0, 0]])
    results["crops"] = tf.image.crop_and_resize(x, [[0.0, 0.0, 0.5, 0.5], [0.1, 0.2, 1.0, 0.9]], [0, 1], [3, 3])
    return results


def matrices(own, x):
    p = tf.matmul(x, x, transpose_a=True) + tf.eye(4) * 3.0
    q, r = tf.linalg.qr(p)
    return {
        "cholesky": tf.linalg.cholesky(p),
        "inv": tf.linalg.inv(p),
        "det": tf.linalg.det(p) / 1000.0,
        "solve": tf.linalg.solve(p, x[:4]),
        "triangular": tf.linalg.triangular_solve(tf.linalg.cholesky(p), x[:4]),
        "diag_part": tf.linalg.diag_part(p),
        "diag": tf.linalg.diag(x[0], k=1),
        "qr": q @ r,
        "singular": tf.linalg.svd(p, compute_uv=False),
        "trace": tf.linalg.trace(p),
        "set_diag": tf.linalg.set_diag(p, x[0]) * own.w,
    }


def integers(own, i, j):
    return {
        "floordiv": i // 3,
        "floormod": i % 3,
        "and": tf.bitwise.bitwise_and(i, 5),
        "long": j * 2,
        "cast": tf.cast(j, tf.float32) / 2,
        "bincount": tf.math.bincount(i, minlength=4),
        "unique": tf.unique(i)[0],
        "where": tf.where(i > 2),
        "max": tf.reduce_max(j),
    }


def count(own, x):
    own.steps.assign_add(1)
    own.mean.assign(own.mean * 0.9 + tf.reduce_mean(x) * 0.1)
    return {"steps": tf.cast(own.steps, tf.float32) * x, "mean": own.mean + 0.0}


def counter(name):
    own = tf.Module()
    own.steps = tf.Variable(5, dtype=tf.int64, trainable=False, name="steps")
    own.mean = tf.Variable(2.0, trainable=False, name="mean")
    own.f = tf.function(functools.partial(count, own), input_signature=[floats(2)])
    tf.saved_model.save(own, at(name), signatures={"serving_default": own.f}, options=STRIPPED)
    record(name, {"x": normal(2)})


class Tables(tf.Module):
    def __init__(self):
        super().__init__()
        words = os.path.join(tempfile.mkdtemp(), "words.txt")
        with open(words, "w") as file:
            file.write("red\ngreen\nblue\n")
        self.asset = tf.saved_model.Asset(words)
        lines = tf.lookup.TextFileIndex
        initializer = tf.lookup.TextFileInitializer(words, tf.string, lines.WHOLE_LINE, tf.int64, lines.LINE_NUMBER)
        self.places = tf.lookup.StaticHashTable(initializer, -1)
        words = tf.lookup.KeyValueTensorInitializer(tf.constant([0, 1, 2], tf.int64), tf.constant(["rot", "gruen", "blau"]))
        self.words = tf.lookup.StaticHashTable(words, "?")
        self.embedding = tf.Variable([[1.0], [2.0], [3.0]])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="s")])
    def f(self, s):
        place = self.places.lookup(s)
        return {"place": place, "word": self.words.lookup(place), "row": tf.gather(self.embedding, tf.maximum(place, 0))}


def tables(name):
    own = Tables()
    tf.saved_model.save(own, at(name), signatures={"serving_default": own.f}, options=STRIPPED)


class Functions(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(normal(4, 3), name="w")
        self.c = tf.constant(normal(100))

    @tf.function
    def f(self, x, training=False):
        return {"y": x @ self.w * (2.0 if training else 1.0) + tf.reduce_sum(self.c), "list": [x, x + 1]}

    @tf.function(input_signature=[floats(None, 4)])
    def g(self, x):
        return x @ self.w


def functions(name):
    own = Functions()
    x = normal(2, 4)
    results = {"in.x": x, "out.f": own.f(x)["y"].numpy(), "out.g": own.g(x).numpy()}
    own.f(x, training=True)
    tf.saved_model.save(own, at(name), options=STRIPPED)
    save_file(results, at(name + ".safetensors"))


def tensorflow_1(name):
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        w = v1.get_variable("w", initializer=normal(4, 3), use_resource=False)
        b = v1.get_variable("b", initializer=normal(3), use_resource=True)
        y = tf.nn.softmax(tf.matmul(x, w) + b, name="y")
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            v1.saved_model.simple_save(session, at(name), {"x": x}, {"y": y})
            inputs = normal(3, 4)
            save_file({"in.x": inputs, "out.y": session.run(y, {x: inputs})}, at(name + ".safetensors"))
            frozen = v1.graph_util.convert_variables_to_constants(session, session.graph_def, ["y"])
            with open(at("frozen.pb"), "wb") as file:
                file.write(frozen.SerializeToString())


def unknown(name):
    """Ops that wgrad lacks."""
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="s")])
    def scripts(s):
        head = tf.strings.substr(tf.strings.unicode_transcode(s, "UTF-8", "UTF-16-BE"), 0, 3)
        return {"y": tf.strings.unicode_script(tf.strings.to_number(head, tf.int32))}

    own = tf.Module()
    own.f = scripts
    tf.saved_model.save(own, at(name), signatures={"serving_default": own.f}, options=STRIPPED)


def text(name):
    """Texts in front of a model."""
    x = L.Input((1,), dtype="string")
    words = L.TextVectorization(vocabulary=["a", "b"], output_mode="int", output_sequence_length=4)
    archive = keras.export.ExportArchive()
    model = keras.Model(x, L.Embedding(5, 3)(words(x)))
    archive.track(model)
    archive.add_endpoint("serve", model.call, input_signature=[tf.TensorSpec([None, 1], tf.string)])
    archive.write_out(at(name), options=STRIPPED, verbose=False)


TENSORFLOW = {
    "cond": lambda name: module(name, [floats(None, 4)], {"x": normal(3, 4)}, lambda own, x: {"y": tf.cond(tf.reduce_sum(x) > 0, lambda: x @ own.w, lambda: -x @ own.w)}, w=normal(4, 4)),
    "loop": lambda name: module(name, [floats(4)], {"x": normal(4)}, lambda own, x: {"y": tf.while_loop(lambda x: tf.reduce_sum(tf.abs(x)) < 100.0, lambda x: (x * 1.5 + own.b,), [x])[0]}, b=normal(4)),
    "recurrence": lambda name: module(name, [floats(None, 4)], {"x": normal(6, 4)}, recurrence, w=normal(4, 4) * 0.5),
    "case": lambda name: module(name, [tf.TensorSpec([], tf.int32, name="i"), floats(3)], {"i": np.int32(2), "x": normal(3)}, lambda own, i, x: {"y": tf.switch_case(i, [lambda: x * own.w, lambda: x * 2, lambda: tf.exp(x * own.w)])}, w=normal(3)),
    "ops": lambda name: module(name, [floats(None, 3, 4)], {"x": normal(4, 3, 4)}, many_ops, w=normal(4, 5)),
    "images": lambda name: module(name, [floats(None, 8, 8, 4)], {"x": normal(2, 8, 8, 4)}, many_images, kernel=normal(3, 3, 4, 5)),
    "matrices": lambda name: module(name, [floats(6, 4)], {"x": normal(6, 4)}, matrices, w=normal(4)),
    "integers": lambda name: module(name, [tf.TensorSpec([None], tf.int32, name="i"), tf.TensorSpec([None], tf.int64, name="j")], {"i": np.array([1, 5, 3, 1, 7], np.int32), "j": np.array([4, -2, 9], np.int64)}, integers),
    "dynamic": lambda name: module(name, [floats(None)], {"x": normal(9)}, lambda own, x: {"y": tf.boolean_mask(x * own.w, x > 0), "n": tf.reduce_sum(tf.cast(x > 0, tf.int32))}, w=normal(9)),
    "counter": counter,
    "tables": tables,
    "functions": functions,
    "tensorflow_1": tensorflow_1,
    "text": text,
    "unknown": unknown,
}

os.makedirs(FOLDER, exist_ok=True)
for name in sys.argv[3:] or [*KERAS, *TENSORFLOW]:
    keras_model(name) if name in KERAS else TENSORFLOW[name](name)
    print(name, flush=True)
