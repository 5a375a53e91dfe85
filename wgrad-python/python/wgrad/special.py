"""Special functions of `tf.math` that are composed of others: the incomplete gamma and beta functions."""

import functools
import math

import numpy as np

from . import ops as _ops
from .ops import FUNCTIONS as _F
from .tape import custom_gradient
from .tensor import Tensor, Variable, convert_to_tensor

# Lanczos's approximation with six terms: the gamma function from 1 on, divided by ((x + G - 1/2) / e)^(x - 1/2).
_G = 1.428456135094165802001953125
_LANCZOS = (
    (14.026143287499647, 43.74732405540315, 50.59547402616589, 26.904566805624820, 6.595765571169315, 0.6007854010515291),
    (0.0, 24.0, 50.0, 35.0, 10.0, 1.0),
)
# Temme's expansion for large `a`: polynomials of the distance from the middle, for each power of 1 / a.
_TEMME = (
    (-0.333333333, 0.0833333333, -0.0148148148, 0.00115740741, 0.000352733686, -0.000178755144, 0.391926318e-4, -0.218544851e-5),
    (-0.00185185185, -0.00347222222, 0.00264550265, -0.000990226337, 0.000205761317, -0.40187757e-6),
    (0.00413359788, -0.00268132716, 0.000771604938, 0.200938786e-5),
)
_TERMS, _NODES = 48, 32


def _floats(call, *values):
    """Tensors of one float dtype, and of one shape."""
    found = [convert_to_tensor(value) for value in values if isinstance(value, (Tensor, Variable, np.ndarray))]
    dtype = found[0]._dtype if found else "float32"
    tensors = [convert_to_tensor(value, None if isinstance(value, (Tensor, Variable, np.ndarray)) else dtype) for value in values]
    if any(x._dtype != dtype for x in tensors) or not dtype.startswith("float"):
        raise TypeError(f"{call}: the dtypes are {', '.join(x._dtype for x in tensors)}; they must be one float dtype.")
    wide = [_ops.cast(x, "float32") for x in tensors]
    zero = functools.reduce(_F["math.add"], [_ops.zeros_like(x) for x in wide])
    return [x + zero for x in wide], dtype


def _polynomial(coefficients, x):
    """The value of a polynomial, whose constant is first."""
    made = coefficients[-1]
    for one in reversed(coefficients[:-1]):
        made = made * x + one
    return made


def _log1pmx(x):
    """`(log(1 + x) - x) / x^2` from -0.5 to 0.5, without the difference, whose digits cancel."""
    # With r = x / (2 + x): log(1 + x) = 2 (r + r^3 / 3 + ...), and 2 r - x = -x r.
    r = x / (x + 2.0)
    squares = r * r
    return -1.0 / (x + 2.0) + 2.0 / (x + 2.0) / (x + 2.0) * r * _polynomial([1 / (2 * at + 3) for at in range(8)], squares)


def _power(a, x):
    """`x^a e^-x / gamma(a + 1)`."""
    # For large `a`, by Stirling's series.
    large = a > 20.0
    ones = _ops.ones_like(a)
    a_, x_ = _ops.where(large, a, ones * 30.0), _ops.where(large, x, ones * 30.0)
    distance = (x_ - a_) / a_
    rest = _polynomial((1.0, 1 / 12, 1 / 288), 1.0 / a_) * _F["math.sqrt"](a_ * (2 * math.pi))
    of_large = _F["math.exp"](a_ * (_F["math.log1p"](distance) - distance)) / rest
    # Beyond 400 the result is 0, and the power may be infinite.
    a_, x_ = _ops.where(large, ones, a), _F["math.minimum"](_ops.where(large, ones, x), 400.0)
    top, bottom = (_polynomial(row, a_ + 1.0) for row in _LANCZOS)
    middle = a_ + (_G + 0.5)
    power = _F["math.pow"](x_ / middle, a_) * _F["math.exp"](a_ + 0.5 - x_)
    return _ops.where(large, of_large, power / _F["math.sqrt"](middle) * bottom / top)


def _incomplete(a, x):
    """The smaller one of both incomplete gamma functions, roughly, and whether it is the lower one."""
    ones = _ops.ones_like(x)
    distance = (x - a) / a
    middle = (a > 20.0) & (_F["math.abs"](distance) < 0.4)
    lower = (x <= a) | (x <= 1.0)

    # Branches that are not taken get harmless numbers, whose gradients are finite.
    def only(where, value, harmless):
        return _ops.where(where, value, ones * harmless)

    def temme():
        a_, s = only(middle, a, 30.0), only(middle, distance, 0.1)
        half = -_log1pmx(s)
        z = s * _F["math.sqrt"](half * 2.0)
        y = a_ * half * s * s
        rest = _polynomial([_polynomial(row, z) for row in _TEMME], 1.0 / a_)
        rest = rest * _F["math.exp"](-y) / _F["math.sqrt"](a_ * (2 * math.pi))
        sign = only(lower, -ones, 1.0)
        return (_F["math.erfc"](sign * z * _F["math.sqrt"](a_ * 0.5)) * 0.5 + sign * rest)

    def series():
        here = lower & ~middle & (x > 0.0)
        a_, x_ = only(here, a, 1.0), only(here, x, 0.5)
        n = np.arange(1, _TERMS + 1, dtype="float32")
        terms = _F["math.cumprod"](x_[..., None] / (a_[..., None] + n), -1)
        made = _power(a_, x_) * (1.0 + _F["math.reduce_sum"](terms, -1))
        return _ops.where(here, made, _ops.zeros_like(x))

    def quadrature():
        here = ~lower & ~middle
        a_, x_ = only(here, a, 1.0), only(here, x, 2.0)
        nodes, weights = np.polynomial.laguerre.laggauss(_NODES)
        kept = weights > 1e-35
        nodes, weights = nodes[kept].astype("float32"), np.log(weights[kept]).astype("float32")
        # Each weight and its power of 1 + node / x may be out of range, and not their product.
        logs = (a_[..., None] - 1.0) * _F["math.log1p"](nodes / x_[..., None]) + weights
        return _power(a_, x_) * a_ / x_ * _F["math.reduce_sum"](_F["math.exp"](logs), -1)

    return _ops.where(middle, temme(), _ops.where(lower, series(), quadrature())), lower


def _gamma(call, a, x, wants_lower):
    (a, x), dtype = _floats(call, a, x)
    finite = (a > 0.0) & (x >= 0.0) & _F["math.is_finite"](a) & _F["math.is_finite"](x)
    ones = _ops.ones_like(x)
    value, is_lower = _incomplete(_ops.where(finite, a, ones), _ops.where(finite, x, ones))
    made = _ops.where(is_lower, value, 1.0 - value) if wants_lower else _ops.where(is_lower, 1.0 - value, value)
    # The limits: of x, of a, and no number where the function is not defined.
    at_zero, at_infinity = (0.0, 1.0) if wants_lower else (1.0, 0.0)
    limit = _ops.where(x > a, ones * at_infinity, ones * at_zero)
    defined = (a > 0.0) & (x >= 0.0) & ~(_F["math.is_inf"](a) & _F["math.is_inf"](x))
    made = _ops.where(finite, made, _ops.where(defined, limit, ones * math.nan))
    if wants_lower:
        made = _ops.where(_F["math.equal"](x, 0.0), _ops.zeros_like(x), made)
    return _ops.cast(made, dtype)


def igamma(a, x, name=None):
    """TensorFlow's `tf.math.igamma`: the lower incomplete gamma function, divided by the whole one. Tapes differentiate it by both.

    The relative error is up to 1e-5 where the result is above 1e-9."""
    return _gamma("igamma", a, x, True)


def igammac(a, x, name=None):
    """TensorFlow's `tf.math.igammac`: the upper incomplete gamma function, divided by the whole one. Tapes differentiate it by both.

    The relative error is up to 1e-5 where the result is above 1e-9, and the absolute one up to 1e-6 where `a` is below 0.05 and `x` below
    1: there the result is 1 minus the lower function, as in TensorFlow."""
    return _gamma("igammac", a, x, False)


def _log_beta(a, b):
    gamma = np.vectorize(math.lgamma, otypes=[float])
    return gamma(a) + gamma(b) - gamma(a + b)


def _beta_fraction(a, b, x):
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    nonzero = lambda value: np.where(np.abs(value) < tiny, tiny, value)
    c, d = np.ones_like(x), 1 / nonzero(1 - (a + b) * x / (a + 1))
    made = d.copy()
    # It needs about as many steps as the root of the larger parameter.
    for m in range(1, 100 + int(20 * np.sqrt(max(a.max(initial=1), b.max(initial=1))))):
        for step in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d = 1 / nonzero(1 + step * d)
            c = nonzero(1 + step / c)
            made = made * c * d
        if np.all(np.abs(c * d - 1) < 1e-13):
            break
    return made


def _regularized_beta(a, b, x):
    """The function for arrays of 64 bits."""
    swap = x > (a + 1) / (a + b + 2)
    p, q, z = np.where(swap, b, a), np.where(swap, a, b), np.where(swap, 1 - x, x)
    with np.errstate(all="ignore"):
        size = np.exp(p * np.log(z) + q * np.log1p(-z) - _log_beta(p, q)) / p
        made = size * _beta_fraction(p, q, z)
    return np.where(swap, 1 - made, made)


def _host(values):
    return convert_to_tensor(values.astype("float32"))


def _beta_density(a, b, x):
    """The derivative of the function by `x`, from arrays of 64 bits. Each of its own derivatives calls it."""

    @custom_gradient
    def call(x):
        wide = x.numpy().astype("float64")
        with np.errstate(all="ignore"):
            density = np.exp((a - 1) * np.log(wide) + (b - 1) * np.log1p(-wide) - _log_beta(a, b))
            slope = _host((a - 1) / wide - (b - 1) / (1 - wide))
        return _host(density), lambda dy: dy * _beta_density(a, b, x) * slope

    return call(x)


def betainc(a, b, x, name=None):
    """TensorFlow's `tf.math.betainc`: the regularized incomplete beta function. As in TensorFlow, its gradient is that of `x` alone.

    It computes on the host in 64 bits, so the result is rounded once; inside of functions it has no values."""
    (a, b, x), dtype = _floats("betainc", a, b, x)
    arrays = [value.numpy().astype("float64") for value in (a, b, x)]
    good = (arrays[0] > 0) & (arrays[1] > 0) & (arrays[2] >= 0) & (arrays[2] <= 1) & np.isfinite(arrays[0] + arrays[1])
    values = np.where(good, arrays[2], np.nan)
    inner = good & (arrays[2] > 0) & (arrays[2] < 1)
    if inner.any():
        values[inner] = _regularized_beta(*[array[inner] for array in arrays])
    a, b = (np.where(good, array, np.nan) for array in arrays[:2])
    call = custom_gradient(lambda x: (_host(values), lambda dy: dy * _beta_density(a, b, x)))
    return _ops.cast(call(x), dtype)


FUNCTIONS = (betainc, igamma, igammac)


def install(math):
    """Puts the functions into `tf.math`."""
    for function in FUNCTIONS:
        math[function.__name__] = function
