"""Writes the node tests of the package onnx: one small model for each behavior of each op, with its inputs and results.

    python nodes.py FOLDER

makes FOLDER/NAME.onnx and FOLDER/NAME.safetensors with `in.*` and `out.*`, and FOLDER/skipped.txt with the tests that have values
other than tensors. tests/judge/onnx.rs runs them.
"""

import os
import sys
import warnings

import numpy as np
import onnx
from onnx.backend.test.case.node import collect_testcases
from safetensors.numpy import save_file

warnings.filterwarnings("ignore")
folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
skipped = []
for case in collect_testcases(None):
    try:
        (inputs, outputs), *_ = case.data_sets
        arrays = {}
        for kind, values, infos in [("in", inputs, case.model.graph.input), ("out", outputs, case.model.graph.output)]:
            for value, info in zip(values, infos, strict=True):
                if not isinstance(value, (np.ndarray, np.generic, float, int)) or value is None:
                    raise TypeError(type(value).__name__)
                arrays[f"{kind}.{info.name}"] = np.array(value, order="C")
        save_file(arrays, os.path.join(folder, case.name + ".safetensors"))
    except Exception as error:  # Values that are no tensors, of many kinds.
        skipped.append(f"{case.name} {case.model.graph.node[0].op_type} {str(error)[:60]}")
        continue
    onnx.save(case.model, os.path.join(folder, case.name + ".onnx"))
with open(os.path.join(folder, "skipped.txt"), "w") as file:
    file.write("\n".join(skipped))
