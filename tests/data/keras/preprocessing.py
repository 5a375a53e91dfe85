"""Writes preprocessing.json: what Keras's preprocessing layers for tables and text make of some inputs.

    pip install tensorflow-cpu==2.21 && python preprocessing.py

A case has a class, the arguments of its constructor, the batches for `adapt` (null: none), the options that `get_config` has
afterwards, its vocabulary, the inputs and the output. Strings that are no UTF-8 are lists of bytes.
"""

import json
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from keras import layers  # noqa: E402
from keras.utils import FeatureSpace  # noqa: E402

CASES = []


def plain(value):
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return list(value)
    if isinstance(value, np.generic):
        return value.item()
    return value


def array(value, dtype=None):
    value = np.array(tf.convert_to_tensor(value, dtype=dtype))
    name = "string" if value.dtype == object else value.dtype.name
    return {"dtype": name, "shape": list(value.shape), "values": [plain(x) for x in value.reshape(-1)]}


def case(kind, options, x, adapt=None, dtype=None):
    layer = getattr(layers, kind)(**options)
    batches = None
    if adapt is not None:
        batches = [array(batch, dtype) for batch in adapt]
        feed = [tf.constant(batch, dtype=dtype) for batch in adapt]
        if kind == "Discretization":
            layer.adapt(feed if len(feed) > 1 else feed[0].numpy())
        elif len(feed) > 1:
            layer.adapt(iter(feed))
        else:
            layer.adapt(feed[0])
    many = kind == "HashedCrossing"
    inputs = [array(one, dtype if not isinstance(one[0], int) else None) for one in x] if many else [array(x, dtype)]
    y = layer([tf.constant(one) for one in x] if many else tf.constant(x, dtype=dtype))
    config = {k: v for k, v in layer.get_config().items() if k not in ("name", "trainable", "dtype")}
    vocabulary = [plain(w) for w in layer.get_vocabulary()] if hasattr(layer, "get_vocabulary") else None
    CASES.append({
        "class": kind, "options": options, "adapt": batches, "config": config, "vocabulary": vocabulary,
        "inputs": inputs, "output": array(y),
    })


WORDS = ["a", "b", "c"]
ROWS = [["a", "z"], ["c", "b"], ["", "a"], ["[UNK]", "q"]]
MODES = ["one_hot", "multi_hot", "count"]

for options in [
    {}, {"num_oov_indices": 3}, {"mask_token": ""}, {"mask_token": "", "num_oov_indices": 2},
    {"num_oov_indices": 4, "salt": [5, 7]}, {"num_oov_indices": 4, "salt": 9}, {"oov_token": "?"},
]:
    case("StringLookup", {"vocabulary": WORDS, **options}, ROWS)
for mode in MODES:
    case("StringLookup", {"vocabulary": WORDS, "output_mode": mode}, ROWS)
    case("StringLookup", {"vocabulary": WORDS, "output_mode": mode, "mask_token": "", "num_oov_indices": 2}, ROWS)
    case("StringLookup", {"vocabulary": WORDS, "output_mode": mode}, ["a", "c", "c"])
    case("StringLookup", {"vocabulary": WORDS, "output_mode": mode}, [["a"], ["x"]])
    case("StringLookup", {"vocabulary": WORDS, "output_mode": mode}, "b")
    pad = {} if mode == "one_hot" else {"pad_to_max_tokens": True}
    case("StringLookup", {"vocabulary": WORDS, "output_mode": mode, "max_tokens": 7, **pad}, ROWS)
case("StringLookup", {"vocabulary": WORDS}, "b")
case("StringLookup", {"vocabulary": ["[UNK]", "a", "b"]}, ["b", "a", "x"])
case("StringLookup", {"vocabulary": WORDS, "num_oov_indices": 0}, ["b", "a"])
case("StringLookup", {"vocabulary": WORDS, "output_mode": "tf_idf", "idf_weights": [0.5, 0.25, 2.0]}, ROWS)
case("StringLookup", {"vocabulary": ["[UNK]"] + WORDS, "output_mode": "tf_idf", "idf_weights": [9.0, 0.5, 0.25, 2.0]}, ROWS)
case("StringLookup", {
    "vocabulary": WORDS, "output_mode": "tf_idf", "idf_weights": [0.5, 0.25, 2.0], "pad_to_max_tokens": True, "max_tokens": 6
}, ROWS)
case("StringLookup", {"vocabulary": WORDS, "invert": True}, [[1, 3], [0, 9]], dtype="int64")
case("StringLookup", {"vocabulary": WORDS, "invert": True, "mask_token": ""}, [[0, 1, 2, 4]], dtype="int64")
TEXT = [["b", "a", "c"], ["c", "a", "c"], ["é", "z", "b"]]
for options in [
    {}, {"max_tokens": 3}, {"mask_token": "a"}, {"num_oov_indices": 2, "mask_token": ""}, {"output_mode": "tf_idf"},
    {"output_mode": "tf_idf", "max_tokens": 9, "pad_to_max_tokens": True}, {"output_mode": "count", "oov_token": "b"},
]:
    case("StringLookup", options, TEXT, adapt=[TEXT])
    case("StringLookup", options, TEXT, adapt=[TEXT, [["z", "z"]]])
case("StringLookup", {}, [b"\xff\xfe", b"ok"], adapt=[[b"ok", b"ok"]])

NUMBERS = [[12, -5], [7, 0], [1000000000000, 12]]
for options in [
    {}, {"num_oov_indices": 3}, {"mask_token": 0}, {"mask_token": 0, "num_oov_indices": 2}, {"oov_token": 99},
    {"num_oov_indices": 4, "oov_method": "farmhash"}, {"num_oov_indices": 4, "oov_method": "farmhash", "salt": [3, 4]},
]:
    case("IntegerLookup", {"vocabulary": [12, 7, 36], **options}, NUMBERS, dtype="int64")
for mode in MODES:
    case("IntegerLookup", {"vocabulary": [12, 7, 36], "output_mode": mode}, NUMBERS, dtype="int64")
    case("IntegerLookup", {"output_mode": mode, "mask_token": 0}, NUMBERS, adapt=[NUMBERS], dtype="int64")
case("IntegerLookup", {"vocabulary": [12, 7, 36], "invert": True}, [[1, 3, 0, 8]], dtype="int64")
case("IntegerLookup", {"output_mode": "tf_idf"}, NUMBERS, adapt=[NUMBERS], dtype="int64")
case("IntegerLookup", {}, NUMBERS, adapt=[NUMBERS, [[7, 7]]], dtype="int64")
case("IntegerLookup", {"max_tokens": 3}, NUMBERS, adapt=[NUMBERS], dtype="int64")

LONG = ["", "a", "ab", "Grüße", "0123456789abcdef", "x" * 17, "y" * 33, "z" * 65, "w" * 200]
for options in [{}, {"mask_value": ""}, {"salt": 133}, {"salt": [133, 137]}, {"salt": [133, 137], "mask_value": "a"}]:
    case("Hashing", {"num_bins": 1000003, **options}, LONG)
    case("Hashing", {"num_bins": 3, **options}, [[word] for word in LONG])
for mode in MODES:
    case("Hashing", {"num_bins": 4, "output_mode": mode}, [["a", "b"], ["c", "c"]])
    case("Hashing", {"num_bins": 4, "output_mode": mode}, [["a"], ["b"], ["c"]])
    case("Hashing", {"num_bins": 4, "output_mode": mode}, ["a", "b", "b"])
case("Hashing", {"num_bins": 1}, ["a", "b"])
case("Hashing", {"num_bins": 1, "mask_value": "a"}, ["a", "b"])
case("Hashing", {"num_bins": 97}, [[0, -1], [123456789, 7]], dtype="int64")
case("Hashing", {"num_bins": 97, "mask_value": 7}, [[0, -1], [123456789, 7]], dtype="int32")
case("Hashing", {"num_bins": 97}, [[0.9, -1.5], [1e9, 7.0]], dtype="float32")
case("Hashing", {"num_bins": 97, "salt": 5}, [[0, -1], [123456789, 7]], dtype="int64")

for mode in ["int", "one_hot"]:
    case("HashedCrossing", {"num_bins": 5, "output_mode": mode}, [["A", "B", "A", "B", "A"], [101, 101, 101, 102, 102]])
    case("HashedCrossing", {"num_bins": 7, "output_mode": mode}, [[["A"], ["B"]], [["x"], ["y"]], [["q"], ["r"]]])
case("HashedCrossing", {"num_bins": 1000003}, [[1, -2, 3], [4, 5, -6]])

VALUES = [[-1.5, 1.0, 3.4, 0.5], [0.0, 3.0, 1.3, 0.0]]
for mode in ["int"] + MODES:
    case("Discretization", {"bin_boundaries": [0.0, 1.0, 2.0], "output_mode": mode}, VALUES, dtype="float32")
    case("Discretization", {"num_bins": 4, "epsilon": 0.01, "output_mode": mode}, VALUES, adapt=[VALUES], dtype="float32")
RANDOM = np.random.default_rng(7)
SPREAD = RANDOM.normal(size=(300, 1)).round(3).astype("float32").tolist()
MORE = (RANDOM.normal(size=(120, 1)) * 3 + 1).round(3).astype("float32").tolist()
for options in [{"num_bins": 5}, {"num_bins": 10, "epsilon": 0.1}, {"num_bins": 3, "epsilon": 0.3}]:
    case("Discretization", options, VALUES, adapt=[SPREAD], dtype="float32")
    case("Discretization", options, VALUES, adapt=[SPREAD, MORE, VALUES], dtype="float32")

SENTENCES = ["The quick, brown FOX!", "the lazy  dog.", "", "Fox & dog\t(don't)", "ÄRGER über ñ"]
LEARNT = {"vocabulary": ["fox", "the", "dog", "the lazy"]}
for options in [
    {}, {"standardize": "lower"}, {"standardize": "strip_punctuation"}, {"standardize": None}, {"output_sequence_length": 3},
    {"output_sequence_length": 9}, {"ngrams": 2}, {"ngrams": [2]}, {"ngrams": [2, 3]}, {"output_mode": "multi_hot"},
    {"output_mode": "count", "ngrams": 2}, {"output_mode": "count", "max_tokens": 8, "pad_to_max_tokens": True},
    {"output_mode": "tf_idf", "idf_weights": [0.5, 1.5, 0.25, 4.0]},
]:
    python = {k: tuple(v) if k == "ngrams" and isinstance(v, list) else v for k, v in options.items()}
    case("TextVectorization", {**LEARNT, **python}, SENTENCES)
    if "idf_weights" not in options:
        case("TextVectorization", python, SENTENCES, adapt=[SENTENCES])
    else:
        case("TextVectorization", {"output_mode": "tf_idf", "ngrams": 2}, SENTENCES, adapt=[SENTENCES])
        case("TextVectorization", {"output_mode": "tf_idf", "max_tokens": 6}, SENTENCES, adapt=[SENTENCES, ["the", "fox fox"]])
case("TextVectorization", {"split": "character"}, ["añb", "b a"], adapt=[["añb", "b a"]])
case("TextVectorization", {"split": "character"}, [b"a\xff\xe4\xb8b", b"ok"], adapt=[["ab"]])
case("TextVectorization", {"max_tokens": 4}, [[s] for s in SENTENCES], adapt=[[[s] for s in SENTENCES]])
case("TextVectorization", {"split": None, "standardize": "lower"}, [["A b", "c"]], adapt=[[["A b", "c"]]])
case("TextVectorization", {"split": None, "output_mode": "multi_hot"}, [["A b", "c"]], adapt=[[["A b", "c"]]])
case("TextVectorization", {}, "the fox", adapt=[SENTENCES])

for mode in MODES:
    case("CategoryEncoding", {"num_tokens": 4, "output_mode": mode}, [[0, 2], [3, 3]], dtype="int32")
    case("CategoryEncoding", {"num_tokens": 4, "output_mode": mode}, [3, 1], dtype="int32")
    case("CategoryEncoding", {"num_tokens": 4, "output_mode": mode}, [[3], [1]], dtype="int32")


# A table with a column of each kind.
TABLE = {
    "word": ["x", "y", "x", "z", "w", "x"],
    "kind": [3, 5, 3, 3, 9, 7],
    "hash": ["p", "q", "r", "p", "s", "t"],
    "code": [10, 20, 30, 40, 50, 60],
    "size": [0.5, 1.5, -2.0, 0.25, 8.0, 3.0],
    "share": [10.0, 20.0, 30.0, 40.0, 50.0, 60.0],
    "age": [1.0, 2.0, 3.0, 4.0, 5.0, 9.0],
    "fare": [5.0, 1.0, 2.0, 8.0, 9.0, 3.0],
}
NEW = {
    "word": ["x", "none"], "kind": [5, 4], "hash": ["q", "new"], "code": [20, 21], "size": [1.0, -1.0], "share": [15.0, 75.0],
    "age": [2.5, 4.0], "fare": [4.0, 90.0],
}
DTYPES = {"kind": "int32", "code": "int32", "size": "float32", "share": "float32", "age": "float32", "fare": "float32"}


def tensors(table):
    return {k: tf.constant(v, dtype=DTYPES.get(k)) for k, v in table.items()}


def spaces():
    def make(**options):
        return FeatureSpace(
            features={
                "word": FeatureSpace.string_categorical(name="word"),
                "kind": FeatureSpace.integer_categorical(name="kind", num_oov_indices=2),
                "hash": FeatureSpace.string_hashed(num_bins=5, name="hash"),
                "code": FeatureSpace.integer_hashed(num_bins=4, name="code"),
                "size": FeatureSpace.float(name="size"),
                "share": FeatureSpace.float_rescaled(scale=0.1, offset=-1.0, name="share"),
                "age": FeatureSpace.float_normalized(name="age"),
                "fare": FeatureSpace.float_discretized(num_bins=3, name="fare"),
            },
            crosses=[("word", "kind"), FeatureSpace.cross(("hash", "code"), crossing_dim=6)], crossing_dim=8, **options,
        )

    found = {}
    for mode in ["concat", "dict"]:
        space = make(output_mode=mode)
        space.adapt(tf.data.Dataset.from_tensor_slices(tensors(TABLE)))
        y = space(tensors(NEW))
        found[mode] = {k: array(v) for k, v in y.items()} if mode == "dict" else array(y)
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"feature_space_{mode}.keras")
        space.save(path)
    space = make(output_mode="concat")
    space.adapt(tf.data.Dataset.from_tensor_slices(tensors(TABLE)).batch(4))
    one = space({k: v[0] for k, v in tensors(NEW).items()})
    found["one"] = array(one)
    return {"table": {k: array(v) for k, v in tensors(TABLE).items()}, "new": {k: array(v) for k, v in tensors(NEW).items()}, **found}


SPACES = spaces()
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "preprocessing.json")
with open(path, "w") as f:
    json.dump({"cases": CASES, "feature_space": SPACES}, f, ensure_ascii=False)
print(len(CASES), "cases", os.path.getsize(path), "bytes")
