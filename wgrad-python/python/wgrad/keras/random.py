"""`keras.random`: random numbers from the global generator, a seed, or a `SeedGenerator`."""

from .. import _wgrad
from ..dtypes import as_dtype
from ..ops import _sizes
from .objects import SeedGenerator


def _draw(seed, kind, shape, a, b, integers=False):
    if seed is None:
        return _wgrad.random(kind, _sizes(shape), a, b, integers)
    generator = seed if isinstance(seed, SeedGenerator) else SeedGenerator(int(seed))
    return generator._native.draw(kind, _sizes(shape), a, b, integers)


def normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    """Normally distributed numbers."""
    return _draw(seed, "normal", shape, float(mean), float(stddev))


def uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
    """Numbers that are equally likely in an interval."""
    return _draw(seed, "uniform", shape, float(minval), float(maxval), dtype is not None and as_dtype(dtype).is_integer)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    """Normally distributed numbers within two deviations."""
    return _draw(seed, "truncated", shape, float(mean), float(stddev))


def randint(shape, minval, maxval, dtype="int32", seed=None):
    """Whole numbers from `minval` to `maxval - 1`."""
    return _draw(seed, "uniform", shape, float(minval), float(maxval), True)


def categorical(logits, num_samples, dtype="int32", seed=None):
    """Indices with the probabilities of each row of logits, `[rows, num_samples]`."""
    from ..tensor import convert_to_tensor

    logits = convert_to_tensor(logits)
    if seed is None:
        drawn = _wgrad.random_categorical(logits, int(num_samples))
    else:
        generator = seed if isinstance(seed, SeedGenerator) else SeedGenerator(int(seed))
        drawn = generator._native.categorical(logits, int(num_samples))
    return drawn._cast(as_dtype(dtype).name)


def shuffle(x, axis=0, seed=None):
    """The slices along an axis in a random order."""
    from ..ops import FUNCTIONS
    from ..tensor import convert_to_tensor

    x = convert_to_tensor(x)
    if seed is None:
        seed = SeedGenerator()
    generator = seed if isinstance(seed, SeedGenerator) else SeedGenerator(int(seed))
    return FUNCTIONS["gather"](x, generator._native.permutation(x._shape[axis]), axis=axis)
