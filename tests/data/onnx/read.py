"""Runs the ONNX models that wgrad wrote with onnxruntime, and compares the results with wgrad's.

    python read.py FOLDER NAME...

FOLDER has, for each name, NAME.onnx and NAME.safetensors: the inputs `3.in.x0` and the results `3.out.output_0` for a batch of 3, and
for others. Needs onnx, onnxruntime and safetensors.
"""

import os
import sys

import numpy as np
import onnx
import onnxruntime
from safetensors.numpy import load_file


def part(arrays, prefix):
    return {name[len(prefix) :]: value for name, value in arrays.items() if name.startswith(prefix)}


def compare(folder, name):
    path = os.path.join(folder, f"{name}.onnx")
    onnx.checker.check_model(path, full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    arrays = load_file(os.path.join(folder, f"{name}.safetensors"))
    for size in sorted({name.split(".")[0] for name in arrays}):
        expected = part(arrays, f"{size}.out.")
        results = session.run(sorted(expected), part(arrays, f"{size}.in."))
        for key, actual in zip(sorted(expected), results):
            what = f"{name}, {key}, a batch of {size}"
            wanted = expected[key]
            assert actual.shape == wanted.shape, f"{what}: {actual.shape} is not {wanted.shape}"
            assert actual.dtype == wanted.dtype, f"{what}: {actual.dtype} is not {wanted.dtype}"
            actual, wanted = actual.astype(np.float64), wanted.astype(np.float64)
            bound = 1e-5 * max(1.0, np.max(np.abs(wanted), initial=0.0))
            worst = np.max(np.abs(actual - wanted), initial=0.0)
            assert worst <= bound, f"{what}: differs by {worst}"


def main():
    folder, *names = sys.argv[1:]
    failures = 0
    for name in names:
        try:
            compare(folder, name)
        except Exception as error:  # Each model is reported.
            failures += 1
            print(f"{name}: {type(error).__name__}: {str(error)[:1500]}", file=sys.stderr)
    sys.exit(f"{failures} of {len(names)} models differ" if failures else 0)


if __name__ == "__main__":
    main()
