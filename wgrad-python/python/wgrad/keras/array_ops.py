"""Functions of NumPy in `keras.ops` that are composed of others."""

from builtins import max as _max, min as _min, range as _range, slice as _slice

import numpy as _np

from .. import ops as _tf
from ..ops import FUNCTIONS as _F
from ..tensor import convert_to_tensor, scattered
from . import ops as _ops
from .ops import _f, _rank, _tensor, expand_dims, moveaxis, swapaxes, take

__all__ = [
    "allclose", "append", "argpartition", "associative_scan", "average", "bincount", "cbrt", "count_nonzero", "cross", "deg2rad", "diag", "diagonal", "diff",
    "digitize", "dot_product_attention", "exp2", "extract_sequences", "fft", "fft2", "flip", "fliplr", "flipud", "fori_loop", "heaviside", "histogram", "hstack", "ifft", "irfft", "hypot", "inner", "isclose", "isneginf", "isposinf", "kron",
    "log10", "log2", "lstsq", "map", "median", "moments", "multi_hot", "nonzero", "percentile", "psnr", "ptp", "qr", "quantile", "rad2deg",
    "ravel", "rfft", "roll", "rot90", "scan", "scatter", "segment_max", "segment_sum", "select", "slice_update", "solve", "solve_triangular", "svd", "switch", "trace", "tri", "trunc",
    "unravel_index", "vdot", "vectorized_map", "vstack",
]


def ravel(x):
    """The elements along one axis."""
    return _F["reshape"](x, [-1])


def log2(x):
    return _f("math.log", x) / _np.log(2.0).item()


def log10(x):
    return _f("math.log", x) / _np.log(10.0).item()


def exp2(x):
    return _f("math.exp", _tensor(x) * _np.log(2.0).item())


def cbrt(x):
    """The real cube root."""
    x = _tensor(x)
    return _f("math.sign", x) * _f("math.pow", _f("math.abs", x), 1.0 / 3.0)


def hypot(x1, x2):
    """The length of a hypotenuse, without an overflow of its square."""
    a, b = _f("math.abs", x1), _f("math.abs", x2)
    large, small = _f("math.maximum", a, b), _f("math.minimum", a, b)
    share = _f("math.divide_no_nan", small, large)
    return large * _f("math.sqrt", 1.0 + share * share)


def deg2rad(x):
    return _tensor(x) * (_np.pi / 180)


def rad2deg(x):
    return _tensor(x) * (180 / _np.pi)


def trunc(x):
    """The whole part."""
    x = _tensor(x)
    return _f("math.sign", x) * _f("math.floor", _f("math.abs", x))


def heaviside(x1, x2):
    x1 = _tensor(x1)
    return _tf.where(x1 > 0, _tf.ones_like(x1), _tf.where(x1 < 0, _tf.zeros_like(x1), x2))


def isclose(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether values are equal up to a tolerance."""
    x1, x2 = _tensor(x1), _tensor(x2)
    # Of infinities, only equal ones are close.
    close = _f("math.abs", x1 - x2) <= atol + rtol * _f("math.abs", x2)
    close = (close & _f("math.is_finite", x2)) | _f("math.equal", x1, x2)
    return close | (_f("math.is_nan", x1) & _f("math.is_nan", x2)) if equal_nan else close


def allclose(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether all values are equal up to a tolerance."""
    return _f("math.reduce_all", isclose(x1, x2, rtol, atol, equal_nan))


def isposinf(x):
    x = _tensor(x)
    return _f("math.is_inf", x) & (x > 0)


def isneginf(x):
    x = _tensor(x)
    return _f("math.is_inf", x) & (x < 0)


def average(x, axis=None, weights=None):
    """The mean, with weights of an axis or of all elements."""
    x = _tensor(x)
    if weights is None:
        return _ops.mean(x, axis=axis)
    weights = _tf.cast(weights, x.dtype)
    if _rank(weights) == 1 and len(x.shape) > 1:
        if axis is None:
            raise TypeError("average: weights of one axis need the axis.")
        sizes = [1] * len(x.shape)
        sizes[axis] = -1
        weights = _F["reshape"](weights, sizes)
    total = _ops.sum(x * weights, axis=axis)
    return total / _ops.sum(weights * _tf.ones_like(x), axis=axis)


def ptp(x, axis=None, keepdims=False):
    """The distance from the smallest to the largest value."""
    return _ops.max(x, axis, keepdims) - _ops.min(x, axis, keepdims)


def count_nonzero(x, axis=None):
    return _F["math.count_nonzero"](x, axis=axis)


def moments(x, axes, keepdims=False, synchronized=False):
    """The mean and the variance."""
    if synchronized:
        raise TypeError("moments: synchronized is not supported.")
    return _ops.mean(x, axes, keepdims), _ops.var(x, axes, keepdims)


def quantile(x, q, axis=None, method="linear", keepdims=False):
    """Quantiles, with linear interpolation between values."""
    if method != "linear":
        raise TypeError(f"quantile: the method is {method!r}; only 'linear' is supported.")
    if isinstance(axis, (list, tuple)):
        raise TypeError("quantile: one axis or none is supported.")
    x = _tensor(x)
    rank, flat = len(x.shape), axis is None
    if flat:
        x, axis = ravel(x), 0
    ordered = _F["sort"](x, axis=axis)
    last = ordered.shape[axis] - 1
    if last < 0:
        raise ValueError(f"quantile: the tensor is {list(x.shape)}; it needs at least one element along the axis.")

    def one(q):
        if not 0 <= q <= 1:
            raise ValueError(f"quantile: q is {q}; it must be from 0 to 1.")
        place = q * last
        low = int(place)
        part = place - low
        below = take(ordered, low, axis)
        return below if part == 0 else below + (take(ordered, low + 1, axis) - below) * part

    def kept(y):
        return _F["reshape"](y, [1] * rank) if keepdims and flat else expand_dims(y, axis) if keepdims else y

    levels = _np.asarray(q.numpy() if hasattr(q, "numpy") else q, "float64")
    if levels.ndim > 1:
        raise TypeError("quantile: q must be a number or a list of numbers.")
    if levels.ndim == 0:
        return kept(one(float(levels)))
    return _F["stack"]([kept(one(float(level))) for level in levels])


def percentile(x, q, axis=None, method="linear", keepdims=False):
    """Quantiles, from 0 to 100."""
    return quantile(x, _np.asarray(q.numpy() if hasattr(q, "numpy") else q, "float64") / 100, axis, method, keepdims)


def median(x, axis=None, keepdims=False):
    """The value in the middle."""
    return quantile(x, 0.5, axis, "linear", keepdims)


def diff(a, n=1, axis=-1):
    """Differences between neighbours, `n` times."""
    a = _tensor(a)
    axis = axis % len(a.shape)
    for _ in range(n):
        before = [_slice(None)] * axis
        a = a[tuple([*before, _slice(1, None)])] - a[tuple([*before, _slice(None, -1)])]
    return a


def fliplr(x):
    return _F["reverse"](x, [1])


def flipud(x):
    return _F["reverse"](x, [0])


def rot90(array, k=1, axes=(0, 1)):
    """A quarter turn, `k` times."""
    array = _tensor(array)
    first, second = (axis % len(array.shape) for axis in axes)
    if first == second:
        raise ValueError(f"rot90: the axes are {axes}; they must differ.")
    k %= 4
    if k == 0:
        return array
    if k == 2:
        return _F["reverse"](array, [first, second])
    if k == 1:
        return swapaxes(_F["reverse"](array, [second]), first, second)
    return _F["reverse"](swapaxes(array, first, second), [second])


def _with_axes(x, least):
    x = _tensor(x)
    return x if len(x.shape) >= least else _F["reshape"](x, [1] * (least - len(x.shape)) + list(x.shape))


def hstack(xs):
    """Tensors next to each other: along the second axis, vectors along the first."""
    xs = [_with_axes(x, 1) for x in xs]
    return _F["concat"](xs, 0 if len(xs[0].shape) == 1 else 1)


def vstack(xs):
    """Tensors below each other; vectors are rows."""
    return _F["concat"]([_with_axes(x, 2) for x in xs], 0)


def append(x1, x2, axis=None):
    """The second tensor after the first."""
    return _F["concat"]([ravel(x1), ravel(x2)], 0) if axis is None else _F["concat"]([x1, x2], axis)


def inner(x1, x2):
    """Sums of products over the last axes."""
    if not _rank(x1) or not _rank(x2):
        return _f("math.multiply", x1, x2)
    return _F["tensordot"](x1, x2, [[-1], [-1]])


def vdot(x1, x2):
    """The sum of the products of all elements."""
    return _F["tensordot"](ravel(x1), ravel(x2), [[0], [0]])


def cross(x1, x2, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """The cross products of vectors of three elements."""
    if axis is not None:
        axisa = axisb = axisc = axis
    made = _F["linalg.cross"](moveaxis(_tensor(x1), axisa, -1), moveaxis(_tensor(x2), axisb, -1))
    return moveaxis(made, -1, axisc)


def kron(x1, x2):
    """The Kronecker product of two matrices."""
    x1, x2 = _tensor(x1), _tensor(x2)
    if len(x1.shape) != 2 or len(x2.shape) != 2:
        raise TypeError(f"kron: the tensors are {list(x1.shape)} and {list(x2.shape)}; both must be matrices.")
    (a, b), (c, d) = x1.shape, x2.shape
    return _F["reshape"](_F["reshape"](x1, [a, 1, b, 1]) * _F["reshape"](x2, [1, c, 1, d]), [a * c, b * d])


def tri(N, M=None, k=0, dtype="float32"):
    """Ones up to the diagonal `k`."""
    return _tf.cast(_np.tri(N, M, k, dtype="float32"), dtype or "float32")


def diagonal(x, offset=0, axis1=0, axis2=1):
    """The diagonals of matrices, along the last axis."""
    x = moveaxis(moveaxis(_tensor(x), axis1 % _rank(x), -1), axis2 % _rank(x) - (axis2 % _rank(x) > axis1 % _rank(x)), -1)
    rows, columns = x.shape[-2:]
    count = _max(0, _min(rows - _max(-offset, 0), columns - _max(offset, 0)))
    at = _np.arange(count)
    places = (at + _max(-offset, 0)) * columns + at + _max(offset, 0)
    return _F["gather"](_F["reshape"](x, [*x.shape[:-2], rows * columns]), places.astype("int32"), axis=-1)


def diag(x, k=0):
    """The diagonal of a matrix, or a matrix with this diagonal."""
    x = _tensor(x)
    if len(x.shape) == 2:
        return diagonal(x, k)
    if len(x.shape) != 1:
        raise ValueError(f"diag: the tensor is {list(x.shape)}; it must be a vector or a matrix.")
    return _F["pad"](_F["linalg.diag"](x), [[_max(-k, 0), _max(k, 0)], [_max(k, 0), _max(-k, 0)]])


def trace(x, offset=0, axis1=0, axis2=1):
    """The sum of a diagonal."""
    return _ops.sum(diagonal(x, offset, axis1, axis2), axis=-1)


def nonzero(x):
    """The places of elements that are not 0, which are read on the host."""
    return tuple(convert_to_tensor(places.astype("int32")) for places in _np.nonzero(convert_to_tensor(x).numpy()))


def bincount(x, weights=None, minlength=0, sparse=False):
    """How often each number occurs."""
    if sparse or weights is not None:
        raise TypeError("bincount: weights and sparse are not supported.")
    return _F["math.bincount"](x, minlength=minlength)


def select(condlist, choicelist, default=0):
    """For each element the choice of the first condition that is true."""
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ValueError(f"select: there are {len(condlist)} conditions and {len(choicelist)} choices; give as many of each.")
    first = _tensor(choicelist[0])
    made = _tf.cast(default, first.dtype)
    for condition, choice in zip(reversed(condlist), reversed(choicelist)):
        made = _tf.where(condition, choice, made)
    return made


def multi_hot(inputs, num_classes=None, axis=-1, dtype=None, sparse=False):
    """Ones at the classes of the last axis."""
    if num_classes is None or axis not in (-1, _rank(inputs)) or sparse:
        raise TypeError("multi_hot: give num_classes; other axes and sparse are not supported.")
    ones = _F["one_hot"](_tf.cast(inputs, "int32"), num_classes)
    return _tf.cast(_F["math.reduce_max"](ones, axis=-2), dtype or "float32")


def scatter(indices, values, shape):
    """Zeros, with values added at indices."""
    return _F["scatter_nd"](indices, values, shape)


def segment_sum(data, segment_ids, num_segments=None, sorted=False):
    """The sums of rows with the same number."""
    return _segments("sum", data, segment_ids, num_segments)


def segment_max(data, segment_ids, num_segments=None, sorted=False):
    """The largest values of rows with the same number."""
    return _segments("max", data, segment_ids, num_segments)


def _segments(kind, data, segment_ids, count):
    if count is None:
        count = int(convert_to_tensor(segment_ids).numpy().max(initial=-1)) + 1
    return _F[f"math.unsorted_segment_{kind}"](data, segment_ids, count)


def vectorized_map(function, elements):
    """The function of all rows."""
    from ..loops import vectorized_map as run

    return run(function, elements)


def map(f, xs):
    """The results of a function for each row."""
    from ..loops import map_fn as run

    return run(f, xs)


def fori_loop(lower, upper, body_fun, init_val):
    """Calls `body_fun(i, value)` for each number from `lower` to `upper` without it."""
    from ..control_flow import while_loop as run

    return run(lambda i, value: i < upper, lambda i, value: (i + 1, body_fun(i, value)), (convert_to_tensor(lower), init_val))[1]


def qr(x, mode="reduced"):
    """The QR decomposition of matrices."""
    if mode != "reduced":
        raise TypeError(f"qr: the mode is {mode!r}; only 'reduced' is supported.")
    return tuple(_F["linalg.qr"](x))


def solve(a, b):
    """The solution of a system of linear equations; `b` may be a vector."""
    if _rank(b) == _rank(a) - 1:
        return _F["squeeze"](_F["linalg.solve"](a, _F["expand_dims"](b, -1)), [-1])
    return _F["linalg.solve"](a, b)


def solve_triangular(a, b, lower=False):
    """The solution of a triangular system; `b` may be a vector."""
    if _rank(b) == _rank(a) - 1:
        return _F["squeeze"](solve_triangular(a, _F["expand_dims"](b, -1), lower), [-1])
    return _F["linalg.triangular_solve"](a, b, lower=lower)


def svd(x, full_matrices=True, compute_uv=True):
    """`u`, the singular values and the transpose of `v`, or the singular values alone."""
    s, u, v = _F["linalg.svd"](x, full_matrices=full_matrices)
    return (u, s, _F["linalg.matrix_transpose"](v)) if compute_uv else s


def lstsq(a, b, rcond=None):
    """The solution of the least squares."""
    if rcond is not None:
        raise TypeError("lstsq: rcond is not supported; leave it out.")
    if _rank(b) == 1:
        return _F["squeeze"](_F["linalg.lstsq"](a, expand_dims(b, -1)), -1)
    return _F["linalg.lstsq"](a, b)


def flip(x, axis=None):
    """The elements in the opposite order along axes, or along all."""
    axes = _range(_rank(x)) if axis is None else [axis] if isinstance(axis, int) else axis
    return _F["reverse"](x, [at % _rank(x) for at in axes])


def roll(x, shift, axis=None):
    """The elements moved along an axis, or along all of them in a row; what leaves at one end returns at the other."""
    if axis is None:
        return _F["reshape"](_F["roll"](ravel(x), shift, 0), list(_tensor(x).shape))
    return _F["roll"](x, shift, axis)


def slice_update(inputs, start_indices, updates):
    """`inputs` with a block that begins at an index replaced."""
    inputs, updates = convert_to_tensor(inputs), convert_to_tensor(updates)
    start = [int(at) for at in start_indices]
    if any(at < 0 or at + size > length for at, size, length in zip(start, updates._shape, inputs._shape)):
        raise ValueError(f"slice_update: updates of {list(updates._shape)} at {start} do not fit in {list(inputs._shape)}.")
    block = tuple(_slice(at, at + size) for at, size in zip(start, updates._shape))
    return scattered(inputs, block, "tensor_scatter_nd_update", updates)


def digitize(x, bins):
    """For each element the number of `bins` that are not above it; `bins` increase."""
    x = convert_to_tensor(x)
    return _F["reshape"](_F["searchsorted"](bins, ravel(x), "right"), list(x._shape))


def unravel_index(indices, shape):
    """The indices of each axis, from indices of the elements in a row."""
    indices, made = convert_to_tensor(indices), []
    for size in reversed(list(shape)):
        made.append(_f("math.floormod", indices, int(size)))
        indices = _f("math.floordiv", indices, int(size))
    return tuple(reversed(made))


def argpartition(x, kth, axis=-1):
    """Indices that put the `kth` smallest element at its place, smaller ones before it and larger ones after it."""
    return _F["argsort"](x, axis=axis)


def histogram(x, bins=10, range=None):
    """How many elements are in each of `bins` intervals of equal width, and their edges."""
    x = ravel(convert_to_tensor(x))
    low, high = (float(_F["math.reduce_min"](x)), float(_F["math.reduce_max"](x))) if range is None else [float(edge) for edge in range]
    if low == high:
        low, high = low - 0.5, high + 0.5
    counts = _F["histogram_fixed_width"](x, [low, high], bins)
    return counts, _tf.linspace(low, high, bins + 1)


def psnr(x1, x2, max_val):
    """The ratio of the largest possible value to the mean squared error, in decibels."""
    error = _F["math.reduce_mean"](_F["math.square"](_tensor(x1) - _tensor(x2)))
    return 20 * _np.log10(max_val).item() - 10 * log10(error)


def extract_sequences(x, sequence_length, sequence_stride):
    """Windows of the last axis."""
    return _F["signal.frame"](x, sequence_length, sequence_stride)


def _complex(x):
    from ..complex_numbers import complex as made

    return made(convert_to_tensor(x[0]), convert_to_tensor(x[1]))


def _parts(x):
    from ..complex_numbers import imag, real

    return real(x), imag(x)


def _transformed(name):
    def transform(x):
        from .. import signal

        return _parts(getattr(signal, name)(_complex(x)))

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"Keras's `ops.{name}`: real and imaginary parts."
    return transform


fft, fft2, ifft = (_transformed(name) for name in ("fft", "fft2d", "ifft"))


def rfft(x, fft_length=None):
    """The Fourier transform of real numbers: real and imaginary parts."""
    from .. import signal

    return _parts(signal.rfft(x) if fft_length is None else signal.rfft(x, [fft_length]))


def irfft(x, fft_length=None):
    """The inverse of `rfft`."""
    from .. import signal

    return signal.irfft(_complex(x)) if fft_length is None else signal.irfft(_complex(x), [fft_length])


def switch(index, branches, *operands):
    """The result of the branch of an index, which is moved into their range."""
    from ..control_flow import switch_case

    index = _f("math.maximum", 0, _f("math.minimum", convert_to_tensor(index), len(branches) - 1))
    return switch_case(index, [lambda branch=branch: branch(*operands) for branch in branches])


def _stacked(results):
    from ..nest import flatten, pack_sequence_as

    columns = zip(*(flatten(result) for result in results))
    return pack_sequence_as(results[0], [_F["stack"](list(column)) for column in columns])


def _rows(xs):
    from ..nest import flatten, map_structure

    xs = map_structure(convert_to_tensor, xs)
    counts = {leaf._shape[0] for leaf in flatten(xs)}
    if len(counts) != 1:
        raise ValueError(f"the tensors have {sorted(counts)} rows; they need equally many.")
    return counts.pop(), lambda at: map_structure(lambda leaf: leaf[at], xs)


def scan(f, init, xs=None, length=None, reverse=False, unroll=True):
    """The last carry and the stacked results of `f(carry, x)`, row by row."""
    if xs is None and length is None:
        raise ValueError("scan: give xs or length.")
    count, row = _rows(xs) if xs is not None else (int(length), lambda at: None)
    if not count:
        raise ValueError("scan: there are no rows.")
    carry, made = init, []
    for at in list(_range(count))[::-1] if reverse else _range(count):
        carry, result = f(carry, row(at))
        made.append(result)
    made = made[::-1] if reverse else made
    return carry, None if made[0] is None else _stacked(made)


def associative_scan(f, elems, reverse=False, axis=0):
    """The results of `f` over the first elements of an axis, the first two, the first three, and so on."""
    from ..nest import map_structure

    move = lambda a, b: map_structure(lambda leaf: moveaxis(convert_to_tensor(leaf), a, b), elems) if axis else elems
    count, row = _rows(move(axis, 0))
    order = list(_range(count))[::-1] if reverse else list(_range(count))
    made = [row(order[0])]
    for at in order[1:]:
        made.append(f(made[-1], row(at)))
    made = _stacked(made[::-1] if reverse else made)
    return map_structure(lambda leaf: moveaxis(leaf, 0, axis), made) if axis else made


def dot_product_attention(query, key, value, bias=None, mask=None, scale=None, is_causal=False, flash_attention=None,
                          attn_logits_soft_cap=None):
    """The attention of queries `[B, T, N, H]` to keys and values `[B, S, K, H]`; `N` is a multiple of `K`."""
    query, key, value = _tensor(query), _tensor(key), _tensor(value)
    heads, own = query.shape[2], key.shape[2]
    if heads % own:
        raise ValueError(f"dot_product_attention: {heads} heads of queries are no multiple of {own} heads of keys.")
    if heads != own:
        key, value = _F["repeat"](key, heads // own, 2), _F["repeat"](value, heads // own, 2)
    scores = _tf.einsum("BTNH,BSNH->BNTS", query, key) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if attn_logits_soft_cap is not None:
        scores = _F["math.tanh"](scores / attn_logits_soft_cap) * attn_logits_soft_cap
    scores = scores if bias is None else scores + _tensor(bias)
    if is_causal:
        length, reach = query.shape[1], key.shape[1]
        causal = convert_to_tensor(_np.tril(_np.ones((1, 1, length, reach), dtype=bool)))
        mask = causal if mask is None else _F["math.logical_and"](_tensor(mask), causal)
    if mask is not None:
        mask = _F["broadcast_to"](_tensor(mask), list(scores.shape))
        scores = _tf.where(mask, scores, _F["math.multiply"](_tf.ones_like(scores), -0.7 * 3.4e38))
    return _tf.einsum("BNTS,BSNH->BTNH", _F["nn.softmax"](scores, -1), value)
