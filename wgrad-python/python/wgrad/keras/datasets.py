"""Data sets as files on this machine: nothing is downloaded."""

import gzip
import os
import pathlib

import numpy as np


def _folders():
    if "MNIST_DIR" in os.environ:
        yield pathlib.Path(os.environ["MNIST_DIR"])
    yield pathlib.Path.home() / ".keras" / "datasets"
    yield pathlib.Path("data") / "mnist"


def _idx(path):
    for name, opened in ((path, open), (path.with_name(path.name + ".gz"), gzip.open)):
        if name.exists():
            with opened(name, "rb") as file:
                content = file.read()
            if len(content) < 8 or content[:3] != b"\0\0\x08":
                raise ValueError(f"{name} is not a file of MNIST.")
            sizes = [int.from_bytes(content[4 + 4 * at : 8 + 4 * at], "big") for at in range(content[3])]
            values = np.frombuffer(content, np.uint8, offset=4 + 4 * content[3])
            if values.size != int(np.prod(sizes)):
                raise ValueError(f"{name} should have {sizes} values, but has {values.size}.")
            return values.reshape(sizes)
    raise FileNotFoundError(path)


class mnist:
    """Handwritten digits."""

    @staticmethod
    def load_data(path="mnist.npz"):
        """`(x_train, y_train), (x_test, y_test)` from the four files of MNIST in `$MNIST_DIR` or `data/mnist`, or from Keras's
        `mnist.npz` in `~/.keras/datasets`."""
        for folder in _folders():
            if (folder / path).exists():
                with np.load(folder / path) as arrays:
                    return (arrays["x_train"], arrays["y_train"]), (arrays["x_test"], arrays["y_test"])
            try:
                train, test = [
                    (_idx(folder / f"{kind}-images-idx3-ubyte"), _idx(folder / f"{kind}-labels-idx1-ubyte"))
                    for kind in ("train", "t10k")
                ]
                return train, test
            except FileNotFoundError:
                continue
        raise FileNotFoundError(
            f"mnist.load_data: there is no mnist.npz in {pathlib.Path.home() / '.keras' / 'datasets'}, and no files of MNIST in "
            "$MNIST_DIR or data/mnist. Download them and set MNIST_DIR."
        )
