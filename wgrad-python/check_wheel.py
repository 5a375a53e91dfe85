"""Checks the newest wheel in a folder: what is in it, and that a program runs with it in a new environment.

`python check_wheel.py WHEELS FOLDER`: the environment is made in FOLDER, where nothing of the sources is on the path.
"""

import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import venv
import zipfile

# The largest wheel that is released, in MB; PyPI takes 100.
LIMIT = 60

PROGRAM = """
import pathlib
import numpy as np
import wgrad as tf
assert "site-packages" in tf.__file__, tf.__file__
x = np.random.default_rng(0).random((128, 4)).astype("float32")
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.Adam(0.02), "mse")
history = model.fit(x, x.sum(1, keepdims=True), epochs=20, verbose=0).history
assert history["loss"][-1] < 0.1 * history["loss"][0], history["loss"]
model.save("model.keras")
again = tf.keras.models.load_model("model.keras")
np.testing.assert_allclose(again.predict(x, verbose=0), model.predict(x, verbose=0), atol=1e-6)
print("wgrad", tf.__version__, "runs on", tf._wgrad.stats()[0])
"""


def contents(wheel):
    """What is wrong with the files in a wheel."""
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
        unpacked = sum(info.file_size for info in file.infolist())
    wanted = ["wgrad/py.typed", "wgrad/__init__.pyi", "wgrad/keras/layers.pyi", "wgrad/keras/layers.py"]
    wrong = [f"it lacks {name}" for name in wanted if name not in names]
    wrong += [
        f"it lacks {name}" for name in ("LICENSE-MIT", "LICENSE-APACHE")
        if not any(re.fullmatch(rf".*\.dist-info/licenses/{name}", path) for path in names)
    ]
    modules = [name for name in names if re.fullmatch(r"wgrad/_wgrad[^/]*\.(so|pyd)", name)]
    if len(modules) != 1:
        wrong.append(f"its native modules are {modules}")
    wrong += [f"it contains {name}" for name in names if "tests" in name or "__pycache__" in name or name.endswith(".rs")]
    system = {"Linux": r"manylinux_\d+_\d+_\w+", "Darwin": r"macosx_\w+", "Windows": r"win\w+"}.get(platform.system(), r"\w+")
    if not re.fullmatch(rf"wgrad-[\w.]+-cp310-abi3-({system}\.?)+\.whl", wheel.name):
        wrong.append("its tag is not cp310-abi3 for this system")
    return wrong, unpacked


def main():
    wheels, folder = map(pathlib.Path, sys.argv[1:])
    wheel = max(wheels.glob("wgrad-*.whl"), key=lambda path: path.stat().st_mtime)
    wrong, unpacked = contents(wheel)
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size / 1e6:.1f} MB, {unpacked / 1e6:.1f} MB unpacked")
    if size > LIMIT * 1e6:
        wrong.append(f"it is larger than {LIMIT} MB")
    if wrong:
        sys.exit(f"{wheel.name}: {'; '.join(wrong)}")
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    run = lambda *arguments: subprocess.run([python.absolute(), *arguments], check=True, env=environment, cwd=folder)
    run("-m", "pip", "install", "--quiet", str(wheel.absolute()))
    run("-m", "pip", "check")
    run("-c", PROGRAM)


if __name__ == "__main__":
    main()
