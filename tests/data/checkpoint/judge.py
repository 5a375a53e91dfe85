"""Prints what TensorFlow says of the checkpoint at the prefix in the first argument, as JSON."""

import json
import sys

import tensorflow as tf

prefix = sys.argv[1]
reader = tf.train.load_checkpoint(prefix)
dtypes = reader.get_variable_to_dtype_map()
tensors = {}
for name, shape in tf.train.list_variables(prefix):
    dtype = dtypes[name]
    value = tf.raw_ops.RestoreV2(prefix=prefix, tensor_names=[name], shape_and_slices=[""], dtypes=[dtype])[0]
    value = value.numpy()
    if dtype == tf.string:
        flat = [value] if shape == [] else list(value.ravel())
        values = [string.hex() for string in flat]
    else:
        values = [value.tobytes().hex()]
    tensors[name] = {"dtype": dtype.name, "shape": shape, "values": values}
latest = [tf.train.latest_checkpoint(folder) for folder in sys.argv[2:]]
json.dump({"tensorflow": tf.__version__, "tensors": tensors, "latest": latest}, sys.stdout)
