"""Writes `partitioned/`: tensors that TensorFlow stores in pieces, in two data files."""

import os

import numpy as np
import tensorflow as tf

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "partitioned")
os.makedirs(folder, exist_ok=True)
rows = np.arange(24, dtype=np.float32).reshape(6, 4)
columns = np.arange(30, dtype=np.int64).reshape(2, 5, 3) - 7
texts = np.array([b"a", b"", b"ccc", b"dd"], dtype=object)


def save(name, pieces):
    prefix = os.path.join(folder, name)
    names = [piece[0] for piece in pieces]
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=names,
        shape_and_slices=[piece[1] for piece in pieces],
        tensors=[tf.constant(piece[2]) for piece in pieces],
    )
    return prefix


parts = [
    save("a", [("rows", "6 4 0,2:-", rows[:2]), ("columns", "2 5 3 -:0,4:-", columns[:, :4])]),
    save("b", [("rows", "6 4 2,4:-", rows[2:]), ("columns", "2 5 3 -:4,1:-", columns[:, 4:])]),
    save("c", [("texts", "4 0,3", texts[:3]), ("whole", "", rows), ("large", "100 64,36", rows.ravel()[:1].repeat(36))]),
    save("d", [("texts", "4 3,1", texts[3:]), ("large", "100 0,64", rows.ravel()[1:2].repeat(64))]),
]
tf.raw_ops.MergeV2Checkpoints(
    checkpoint_prefixes=parts, destination_prefix=os.path.join(folder, "ckpt"), delete_old_dirs=False
)
reader = tf.train.load_checkpoint(os.path.join(folder, "ckpt"))
assert (reader.get_tensor("rows") == rows).all() and (reader.get_tensor("columns") == columns).all()
# It cannot restore strings in pieces: "Dtype string not supported".
