"""Prints as JSON what TensorFlow reads in the folder that tests/judge/datasets.rs has filled."""

import base64
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import numpy as np
import tensorflow as tf

folder = sys.argv[1]


def text(value):
    return base64.b64encode(value).decode()


found = {"tensorflow": tf.__version__}
for name, packing in (("plain", ""), ("gzip", "GZIP"), ("zlib", "ZLIB")):
    records = tf.data.TFRecordDataset(os.path.join(folder, name + ".tfrecord"), packing)
    description = {
        "label": tf.io.FixedLenFeature([], tf.int64),
        "numbers": tf.io.VarLenFeature(tf.int64),
        "floats": tf.io.FixedLenFeature([2, 2], tf.float32),
        "bytes": tf.io.VarLenFeature(tf.string),
        "missing": tf.io.FixedLenFeature([], tf.float32, 0.5),
    }
    rows = []
    for record in records:
        example = tf.io.parse_single_example(record, description)
        rows.append(
            {
                "label": int(example["label"]),
                "numbers": [str(n) for n in example["numbers"].values.numpy()],
                "floats": example["floats"].numpy().ravel().tolist(),
                "bytes": [text(b) for b in example["bytes"].values.numpy()],
                "missing": float(example["missing"]),
            }
        )
    found[name] = rows

(record,) = tf.data.TFRecordDataset(os.path.join(folder, "sequence.tfrecord"))
context, lists = tf.io.parse_single_sequence_example(
    record,
    {"name": tf.io.FixedLenFeature([], tf.string)},
    {"steps": tf.io.FixedLenSequenceFeature([2], tf.float32)},
)
found["sequence"] = {"name": text(context["name"].numpy()), "steps": lists["steps"].numpy().tolist()}

arrays = {"one": np.load(os.path.join(folder, "array.npy"))}
for name in ("stored", "packed"):
    with np.load(os.path.join(folder, name + ".npz")) as archive:
        for inside in archive.files:
            arrays[name + "/" + inside] = archive[inside]
found["arrays"] = {
    name: {"dtype": a.dtype.str, "shape": list(a.shape), "values": [float(v) for v in a.ravel()]}
    for name, a in arrays.items()
}
json.dump(found, sys.stdout)
