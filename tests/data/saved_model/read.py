"""Calls the SavedModels that wgrad wrote, and compares the results and the gradients with wgrad's.

    python read.py FOLDER NAME...

FOLDER has, for each name, the folder NAME and the file NAME.safetensors: the inputs `3.in.x0`, the results `3.out.output_0` and
the gradients `3.grad.VARIABLE` of the sum of their squares, for a batch of 3, and others. Needs TensorFlow and safetensors.
"""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402


def near(what, actual, expected, tolerance):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, f"{what}: {actual.shape} is not {expected.shape}"
    assert actual.dtype == expected.dtype, f"{what}: {actual.dtype} is not {expected.dtype}"
    actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    bound = tolerance * max(1.0, np.max(np.abs(expected), initial=0.0))
    worst = np.max(np.abs(actual - expected), initial=0.0)
    assert worst <= bound, f"{what}: differs by {worst}"


def part(arrays, prefix):
    return {name[len(prefix) :]: value for name, value in arrays.items() if name.startswith(prefix)}


def compare(folder, name):
    arrays = load_file(os.path.join(folder, f"{name}.safetensors"))
    path = os.path.join(folder, name)
    sizes = sorted({name.split(".")[0] for name in arrays})
    for size in sizes:
        inputs = {key: tf.constant(value) for key, value in part(arrays, f"{size}.in.").items()}
        outputs = part(arrays, f"{size}.out.")
        # A model may change its variables at a call.
        model = tf.saved_model.load(path)
        serve = model.signatures["serving_default"]
        results = serve(**inputs)
        assert sorted(results) == sorted(outputs), f"{name}: {sorted(results)}"
        for key, expected in outputs.items():
            near(f"{name}, {key}, a batch of {size}", results[key], expected, 1e-5)
        # By position, as a function of the object.
        model = tf.saved_model.load(path)
        ordered = [inputs[key] for key in sorted(inputs)]
        results = model.serve(*ordered)
        results = results if isinstance(results, dict) else {"output_0": results}
        for key, expected in outputs.items():
            near(f"{name}, {key}, serve, a batch of {size}", results[key], expected, 1e-5)
        gradients = part(arrays, f"{size}.grad.")
        if gradients:
            variables = {variable.name.split(":")[0]: variable for variable in model.serve.concrete_functions[0].variables}
            with tf.GradientTape() as tape:
                results = serve_again(model, inputs)
                loss = tf.add_n([tf.reduce_sum(y**2) for y in results.values() if y.dtype.is_floating])
            found = tape.gradient(loss, {key: variables[key] for key in gradients})
            for key, expected in gradients.items():
                gradient = tf.convert_to_tensor(found[key])
                near(f"{name}, the gradient of {key}", gradient, expected, 1e-4)
    served(path, name, arrays, sizes[0])


def serve_again(model, inputs):
    results = model.serve(*[inputs[key] for key in sorted(inputs)])
    return results if isinstance(results, dict) else {"output_0": results}


def served(path, name, arrays, size):
    """As programs without objects load it, such as TensorFlow Serving."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.loader.load(session, ["serve"], path)
        signature = meta.signature_def["serving_default"]
        feeds = part(arrays, f"{size}.in.")
        feed = {signature.inputs[key].name: value for key, value in feeds.items()}
        fetch = {key: info.name for key, info in signature.outputs.items()}
        results = session.run(fetch, feed)
        for key, expected in part(arrays, f"{size}.out.").items():
            near(f"{name}, {key}, in a session", results[key], expected, 1e-5)


def main():
    folder, *names = sys.argv[1:]
    failures = 0
    for name in names:
        try:
            compare(folder, name)
        except Exception as error:  # Each model is reported.
            failures += 1
            print(f"{name}: {type(error).__name__}: {str(error)[:2000]}", file=sys.stderr)
    sys.exit(f"{failures} of {len(names)} models differ" if failures else 0)


if __name__ == "__main__":
    main()
