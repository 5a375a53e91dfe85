"""TensorFlow loads exported models with layers for strings, with objects and without them, and compares their results."""

import json
import sys

import numpy as np
import tensorflow as tf

folder = sys.argv[1]
with open(f"{folder}/cases.json", encoding="utf-8") as file:
    given = json.load(file)


def column(name, floats):
    values = given[name]
    if isinstance(values[0], str):
        return np.array([[value.encode()] for value in values], dtype=object)
    return np.array([[value] for value in values], dtype=np.float32 if name in floats else np.int64)


def check(name, how, y, case):
    wanted = np.array(case["y"]["values"], np.float32).reshape(case["y"]["shape"])
    assert y.shape == wanted.shape, f"{name}, {how}: {y.shape}, not {wanted.shape}"
    assert np.allclose(y, wanted, atol=1e-5), f"{name}, {how}: {y}, not {wanted}"


for name, case in given["cases"].items():
    floats = case.get("floats", [])
    inputs = {key: column(key, floats) for key in case["inputs"]}
    loaded = tf.saved_model.load(f"{folder}/{name}")
    y = loaded.serve(*[tf.constant(value) for value in inputs.values()])
    check(name, "as an object", y.numpy(), case)
    signature = loaded.signatures["serving_default"]
    y = signature(**{key: tf.constant(value) for key, value in inputs.items()})
    check(name, "by its signature", y["output_0"].numpy(), case)
    # A batch of one, whose texts may have no words.
    for at in range(len(given["text"])):
        one = loaded.serve(*[tf.constant(value[at : at + 1]) for value in inputs.values()])
        assert one.shape[0] == 1, f"{name}: {one.shape}"
    # As servers do, which know no objects.
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.load(session, ["serve"], f"{folder}/{name}")
        signature = meta.signature_def["serving_default"]
        feeds = {signature.inputs[key].name: value for key, value in inputs.items()}
        y = session.run(signature.outputs["output_0"].name, feeds)
        check(name, "without objects", y, case)

strict = tf.saved_model.load(f"{folder}/strict")
strict.serve(tf.constant([["red"], ["green"]]))
try:
    strict.serve(tf.constant([["red"], ["blue"]]))
except tf.errors.InvalidArgumentError as error:
    assert given["strict"] in str(error), error
else:
    raise AssertionError("an unknown word was accepted")

print(f"{len(given['cases'])} models agree")
