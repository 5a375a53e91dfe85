"""Helpers of Keras."""

import numpy as np

from .. import _wgrad


def to_categorical(x, num_classes=None):
    """Labels as rows of zeros and ones."""
    x = np.asarray(x, dtype="int64")
    if x.size and x.min() < 0:
        raise ValueError(f"to_categorical: the label {x.min()} is negative.")
    count = int(x.max()) + 1 if num_classes is None else num_classes
    if x.size and x.max() >= count:
        raise ValueError(f"to_categorical: the label {x.max()} is not below num_classes, {count}.")
    if x.ndim > 1 and x.shape[-1] == 1:
        x = x[..., 0]
    return np.eye(count, dtype="float32")[x]


def set_random_seed(seed):
    """Seeds Python, NumPy and wgrad."""
    import random

    random.seed(seed)
    np.random.seed(seed)
    _wgrad.set_seed(seed)
