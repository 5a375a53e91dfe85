from typing import Any

import numpy.typing as npt

class mnist:
    @staticmethod
    def load_data(path: str = "mnist.npz") -> tuple[tuple[npt.NDArray[Any], npt.NDArray[Any]], tuple[npt.NDArray[Any], npt.NDArray[Any]]]: ...
