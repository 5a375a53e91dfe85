"""Keras goes on with each model that wgrad wrote into a folder with its optimizer's state, and must reach wgrad's weights.

`python optimizers.py FOLDER`: NAME.keras, and NAME.npz with the batch (x, y), the steps so far, and the weights after two more
steps (after0, after1, ..). Writes NAME.back.keras, and NAME.back.npz with the weights after two steps more.
"""

import pathlib
import sys

import keras
import numpy as np

folder = pathlib.Path(sys.argv[1])
names = sorted(path.stem for path in folder.glob("*.keras"))
for name in names:
    arrays = np.load(folder / f"{name}.npz")
    model = keras.saving.load_model(folder / f"{name}.keras")
    assert int(model.optimizer.iterations) == int(arrays["steps"]), (name, int(model.optimizer.iterations), arrays["steps"])
    for _ in range(2):
        model.train_on_batch(arrays["x"], arrays["y"])
    for at, weight in enumerate(model.get_weights()):
        np.testing.assert_allclose(weight, arrays[f"after{at}"], rtol=2e-5, atol=2e-6, err_msg=name)
    model.save(folder / f"{name}.back.keras")
    for _ in range(2):
        model.train_on_batch(arrays["x"], arrays["y"])
    np.savez(folder / f"{name}.back.npz", **{f"after{at}": weight for at, weight in enumerate(model.get_weights())})
print(f"{len(names)} optimizers go on")
