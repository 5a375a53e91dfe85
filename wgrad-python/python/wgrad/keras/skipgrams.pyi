from collections.abc import Sequence
from typing import Any

import numpy as np

def make_sampling_table(size: int, sampling_factor: float = 1e-5) -> np.ndarray[Any, Any]: ...
def skipgrams(sequence: Sequence[int] | np.ndarray[Any, Any], vocabulary_size: int, window_size: int = 4, negative_samples: float = 1.0, shuffle: bool = True, categorical: bool = False, sampling_table: Any = None, seed: int | None = None) -> tuple[list[list[int]], list[Any]]: ...
