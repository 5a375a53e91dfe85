"""Keras loads each model that wgrad wrote into a folder, and must compute wgrad's outputs.

`python judge.py FOLDER`: NAME.keras, NAME.weights.h5 and NAME.npz (x0, x1, .., y) for each model.
"""

import pathlib
import sys

import h5py
import keras
import numpy as np

folder = pathlib.Path(sys.argv[1])
names = sorted(path.stem for path in folder.glob("*.keras"))
for name in names:
    arrays = np.load(folder / f"{name}.npz")
    inputs = [arrays[f"x{at}"] for at in range(len(arrays.files) - 1)]
    inputs = inputs if len(inputs) > 1 else inputs[0]
    model = keras.saving.load_model(folder / f"{name}.keras")
    np.testing.assert_allclose(np.asarray(model(inputs)), arrays["y"], rtol=2e-5, atol=2e-5, err_msg=name)
    # Only the weights, into a model that has others.
    other = keras.saving.load_model(folder / f"{name}.keras")
    for variable in other.variables:
        if "seed" not in variable.path:
            variable.assign(np.zeros(variable.shape, variable.dtype))
    other.load_weights(folder / f"{name}.weights.h5")
    np.testing.assert_allclose(np.asarray(other(inputs)), arrays["y"], rtol=2e-5, atol=2e-5, err_msg=name)
    # Keras writes the same datasets.
    other.save_weights(folder / f"{name}.again.weights.h5")

    def datasets(path):
        found = {}
        with h5py.File(path) as file:
            file.visititems(lambda at, node: found.update({at: node[()]}) if isinstance(node, h5py.Dataset) else None)
        return found

    ours, theirs = datasets(folder / f"{name}.weights.h5"), datasets(folder / f"{name}.again.weights.h5")
    assert ours.keys() == theirs.keys(), (name, ours.keys() ^ theirs.keys())
    for path in ours:
        np.testing.assert_array_equal(ours[path], theirs[path])
    print(name, len(ours), "datasets")
print(f"{len(names)} models agree")
