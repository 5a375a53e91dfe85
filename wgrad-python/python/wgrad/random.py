"""TensorFlow's `tf.random`: numbers from the global generator, from generators of a program, and from seeds alone.

Uniform numbers, integers, bits and classes of a seed or of a generator (Philox) equal TensorFlow's; normal ones differ in the last bits."""

import numpy as np

from . import _wgrad, errors
from .dtypes import as_dtype
from .ops import _sizes
from .tensor import convert_to_tensor


def _cast(x, dtype):
    dtype = as_dtype(dtype).name
    return x if x._dtype == {"float64": "float32", "int64": "int32"}.get(dtype, dtype) else x._cast(dtype)


def _uniform(call, draw, shape, minval, maxval, dtype):
    dtype = as_dtype(dtype)
    if not dtype.is_integer:
        low, high = 0.0 if minval is None else float(minval), 1.0 if maxval is None else float(maxval)
        return _cast(draw("uniform", _sizes(shape), low, high, False), dtype)
    if maxval is None:
        if minval is not None or dtype.name != "uint32":
            raise ValueError(f"{call}: give maxval for integers; without bounds, uint32 has random bits.")
        return draw("bits", _sizes(shape), 0.0, 0.0, False)
    return _cast(draw("uniform", _sizes(shape), float(minval or 0), float(maxval), True), dtype)


def _pair(call, seed):
    """A seed as two integers of 32 bits."""
    numbers = np.asarray(convert_to_tensor(seed)).ravel() if not isinstance(seed, (list, tuple)) else np.asarray(seed).ravel()
    if numbers.shape != (2,) or numbers.dtype.kind not in "iu":
        raise errors.InvalidArgumentError(f"{call}: the seed is {seed!r}; it must be two integers, such as [1, 2].")
    made = [int(number) for number in numbers]
    if not all(-(2**31) <= number < 2**32 for number in made):
        raise ValueError(f"{call}: the seed is {made}; its numbers have 32 bits.")
    return [number - 2**32 if number >= 2**31 else number for number in made]


def _of_seed(call, seed):
    pair = _pair(call, seed)
    return lambda kind, shape, a, b, integers: _wgrad.stateless(kind, shape, pair, a, b, integers)


# The generators of calls with a seed of their own, and the global seed, with which they are combined.
_own, _seed = {}, 0


def set_seed(seed):
    """Seeds the global generator, and the numbers of calls with a `seed` begin again."""
    global _seed
    _wgrad.set_seed(int(seed))
    _seed = int(seed)
    _own.clear()


class _Global:
    """The global generator."""

    draw, draw_by, categorical = _wgrad.random, _wgrad.random_by, _wgrad.random_categorical


def _source(seed):
    """What a call draws from: the global generator, or a generator of the call's seed. Calls with the same seed continue each other's
    numbers, which are not TensorFlow's."""
    if seed is None:
        return _Global
    if seed not in _own:
        _own[seed] = _wgrad.NativeGenerator((int(seed) + 0x9E3779B97F4A7C15 * _seed) % 2**64)
    return _own[seed]


def uniform(shape, minval=0, maxval=None, dtype="float32", seed=None, name=None):
    """Numbers that are equally likely from `minval` to below `maxval`."""
    if as_dtype(dtype).is_integer and maxval is None:
        raise ValueError("random.uniform: give maxval for integers.")
    return _uniform("random.uniform", _source(seed).draw, shape, minval, maxval, dtype)


def normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None, name=None):
    """Normally distributed numbers."""
    return _cast(_source(seed).draw("normal", _sizes(shape), float(mean), float(stddev)), dtype)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None, name=None):
    """Normally distributed numbers within two deviations."""
    return _cast(_source(seed).draw("truncated", _sizes(shape), float(mean), float(stddev)), dtype)


def shuffle(value, seed=None, name=None):
    """The rows in a random order."""
    from .keras import random as keras_random

    return keras_random.shuffle(value, seed=seed)


def categorical(logits, num_samples, dtype="int32", seed=None, name=None):
    """Indices drawn with the probabilities of each row of logits."""
    return _cast(_source(seed).categorical(convert_to_tensor(logits), int(num_samples)), dtype)


def gamma(shape, alpha, beta=None, dtype="float32", seed=None, name=None):
    """`shape` numbers of the gamma distribution for each element of `alpha` and `beta`."""
    alpha, beta = convert_to_tensor(alpha, "float32"), convert_to_tensor(1.0 if beta is None else beta, "float32")
    each = (alpha + beta)._shape
    return _cast(_source(seed).draw_by("gamma", [*_sizes(shape), *each], [alpha, beta]), dtype)


def poisson(shape, lam, dtype="float32", seed=None, name=None):
    """`shape` numbers of the Poisson distribution for each element of `lam`."""
    lam = convert_to_tensor(lam, "float32")
    return _cast(_source(seed).draw_by("poisson", [*_sizes(shape), *lam._shape], [lam]), dtype)


def stateless_uniform(shape, seed, minval=0, maxval=None, dtype="float32", name=None, alg="auto_select"):
    """As `uniform`; the numbers depend on the seed alone."""
    if as_dtype(dtype).is_integer and maxval is None and minval == 0:
        raise ValueError("stateless_uniform: give maxval for integers, or minval=None for all bits.")
    return _uniform("stateless_uniform", _of_seed("stateless_uniform", seed), shape, minval, maxval, dtype)


def stateless_normal(shape, seed, mean=0.0, stddev=1.0, dtype="float32", name=None, alg="auto_select"):
    """As `normal`; the numbers depend on the seed alone."""
    return _cast(_of_seed("stateless_normal", seed)("normal", _sizes(shape), float(mean), float(stddev), False), dtype)


def stateless_truncated_normal(shape, seed, mean=0.0, stddev=1.0, dtype="float32", name=None, alg="auto_select"):
    """As `truncated_normal`; the numbers depend on the seed alone."""
    draw = _of_seed("stateless_truncated_normal", seed)
    return _cast(draw("truncated", _sizes(shape), float(mean), float(stddev), False), dtype)


def stateless_categorical(logits, num_samples, seed, dtype="int32", name=None):
    """As `categorical`; the indices depend on the seed alone. They are TensorFlow's, except where one of its numbers of 64 bits is between
    two of 24 bits: about one index in a million."""
    from .ops import FUNCTIONS, where

    logits, count = convert_to_tensor(logits), int(num_samples)
    if len(logits._shape) != 2 or not logits._shape[1]:
        raise errors.InvalidArgumentError(f"stateless_categorical: logits are {list(logits._shape)}; they must be [B, N], with a class to draw.")
    if count < 0:
        raise errors.InvalidArgumentError(f"stateless_categorical: num_samples is {count}; it must not be negative.")
    if not logits._dtype.startswith("float"):
        raise errors.InvalidTypeError(f"stateless_categorical: logits are {logits._dtype}; they must be floats.")
    rows = logits._shape[0]
    logits = FUNCTIONS["stop_gradient"](logits._cast("float32"))
    # As in TensorFlow, the words of a draw are the high and the low half of a fraction, and classes without a finite logit have no share.
    words = _wgrad.stateless("bits", [rows, count, 2], _pair("stateless_categorical", seed), 0.0, 0.0, False)
    bits, words = FUNCTIONS["bitwise.bitwise_and"](words[..., 0], np.uint32(0xFFFFF)), words[..., 1]
    fraction = bits._cast("float32") * 2.0**-20 + FUNCTIONS["bitwise.right_shift"](words, np.uint32(28))._cast("float32") * 2.0**-24
    finite = FUNCTIONS["math.is_finite"](logits)
    known = where(finite, logits, -3e38)
    shares = where(finite, FUNCTIONS["math.exp"](known - FUNCTIONS["math.reduce_max"](known, -1, True)), 0.0)
    sums = FUNCTIONS["math.cumsum"](shares, -1)
    # The largest fraction stays below the sum, so that a class without a share is never drawn.
    wanted = FUNCTIONS["math.minimum"](fraction, 1 - 2.0**-23) * sums[:, -1:]
    return _cast(FUNCTIONS["searchsorted"](sums, wanted, side="right"), dtype)


def stateless_shuffle(value, seed, alg="auto_select", name=None):
    """As `shuffle`; the order depends on the seed alone."""
    return _wgrad.stateless_by("shuffle", [], _pair("stateless_shuffle", seed), [convert_to_tensor(value)])


def stateless_gamma(shape, seed, alpha, beta=None, dtype="float32", name=None):
    """Numbers of the gamma distribution that depend on the seed alone; `alpha` and `beta` broadcast to `shape`."""
    given = [convert_to_tensor(alpha, "float32"), convert_to_tensor(1.0 if beta is None else beta, "float32")]
    return _cast(_wgrad.stateless_by("gamma", _sizes(shape), _pair("stateless_gamma", seed), given), dtype)


def stateless_poisson(shape, seed, lam, dtype="int32", name=None):
    """Numbers of the Poisson distribution that depend on the seed alone; `lam` broadcasts to `shape`."""
    given = [convert_to_tensor(lam, "float32")]
    return _cast(_wgrad.stateless_by("poisson", _sizes(shape), _pair("stateless_poisson", seed), given), dtype)


def stateless_binomial(shape, seed, counts, probs, output_dtype="int32", name=None):
    """Numbers of the binomial distribution that depend on the seed alone; `counts` and `probs` broadcast to `shape`."""
    given = [convert_to_tensor(counts, "float32"), convert_to_tensor(probs, "float32")]
    return _cast(_wgrad.stateless_by("binomial", _sizes(shape), _pair("stateless_binomial", seed), given), output_dtype)


class Generator:
    """A generator of random numbers (Philox) with a state of its own."""

    def __init__(self, seed):
        self._native = _wgrad.NativeGenerator(int(seed))

    @classmethod
    def _of(cls, native):
        made = cls.__new__(cls)
        made._native = native
        return made

    @classmethod
    def from_seed(cls, seed, alg=None):
        _philox(alg)
        return cls(seed)

    @classmethod
    def from_state(cls, state, alg=None):
        """Continues where a generator had this `state`."""
        _philox(alg)
        return cls._of(_wgrad.NativeGenerator.from_state(_words(state)))

    @classmethod
    def from_non_deterministic_state(cls, alg=None):
        import secrets

        return cls(secrets.randbits(63))

    @property
    def state(self):
        """Three integers of 64 bits: the counter's low and high half and the key, as TensorFlow has them; an array of NumPy."""
        return np.array(self._native.state, dtype="uint64").astype("int64")

    def reset(self, state):
        self._native.set_state(_words(state))

    def reset_from_seed(self, seed):
        self._native.reset(int(seed))

    def split(self, count=1):
        """Generators whose numbers are independent of each other."""
        if count < 1:
            raise ValueError(f"Generator.split: count is {count}; it must be at least 1.")
        # As TensorFlow: each key is an integer of 64 random bits, and this generator advances by as many numbers.
        low, high, key = self._native.state
        bits = _wgrad.NativeGenerator.from_state([low, high, key]).draw("bits", [count, 2], 0.0, 0.0).numpy().astype("uint64")
        counter = (low + (high << 64) + 256 * count) % 2**128
        self._native.set_state([counter % 2**64, counter >> 64, key])
        return [Generator.from_state([0, 0, int(row[0]) + (int(row[1]) << 32)]) for row in bits]

    def uniform(self, shape, minval=0, maxval=None, dtype="float32", name=None):
        if as_dtype(dtype).is_integer and maxval is None:
            raise ValueError("Generator.uniform: give maxval for integers.")
        return _uniform("Generator.uniform", self._native.draw, shape, minval, maxval, dtype)

    def uniform_full_int(self, shape, dtype="uint32", name=None):
        """All bits random."""
        return _cast(self._native.draw("bits", _sizes(shape), 0.0, 0.0), dtype)

    def normal(self, shape, mean=0.0, stddev=1.0, dtype="float32", name=None):
        return _cast(self._native.draw("normal", _sizes(shape), float(mean), float(stddev)), dtype)

    def truncated_normal(self, shape, mean=0.0, stddev=1.0, dtype="float32", name=None):
        return _cast(self._native.draw("truncated", _sizes(shape), float(mean), float(stddev)), dtype)

    def binomial(self, shape, counts, probs, dtype="int32", name=None):
        given = [convert_to_tensor(counts, "float32"), convert_to_tensor(probs, "float32")]
        return _cast(self._native.draw_by("binomial", _sizes(shape), given), dtype)

    def make_seeds(self, count=1):
        """Seeds for the functions of seeds: `[2, count]`."""
        bits = self._native.draw("bits", [2, int(count)], 0.0, 0.0).numpy()
        return convert_to_tensor(bits.view("int32"))

    def __repr__(self):
        return f"<Generator state={self.state.tolist()}>"


def _philox(alg):
    if alg not in (None, 1, "philox", "auto_select"):
        raise ValueError(f"Generator: the algorithm {alg!r} is not supported; there is 'philox'.")


def _words(state):
    state = state if isinstance(state, (list, tuple)) else np.asarray(getattr(state, "numpy", lambda: state)()).ravel()
    numbers = [int(number) % 2**64 for number in state]
    if len(numbers) != 3:
        raise ValueError(f"Generator: the state has {len(numbers)} numbers; it needs 3.")
    return numbers


_global = None


def get_global_generator():
    """The generator that `set_global_generator` set, or one with a random seed."""
    global _global
    if _global is None:
        _global = Generator.from_non_deterministic_state()
    return _global


def set_global_generator(generator):
    global _global
    _global = generator


def _whole(call, shape, seed):
    """Integers of 32 random bits, with signs."""
    bits = _wgrad.stateless("bits", _sizes(shape), _pair(call, seed), 0.0, 0.0, False).numpy()
    return convert_to_tensor(bits.view("int32"))


def split(seed, num=2, alg="auto_select"):
    """`num` seeds, `[num, 2]`, that are independent of each other and depend on the seed alone."""
    return _whole("random.split", [int(num), 2], seed)


def fold_in(seed, data, alg="auto_select"):
    """A seed that depends on a seed and a number, such as that of a step."""
    return convert_to_tensor([_whole("random.fold_in", [], seed), convert_to_tensor(data)])


class experimental:
    """Functions of seeds."""

    Generator = Generator
    get_global_generator = staticmethod(get_global_generator)
    set_global_generator = staticmethod(set_global_generator)
    stateless_shuffle = staticmethod(stateless_shuffle)
    stateless_split = staticmethod(split)
    stateless_fold_in = staticmethod(fold_in)
