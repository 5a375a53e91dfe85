"""`keras.ops`: the functions of NumPy and of networks that Keras 3 has, as TensorFlow's."""

from .. import ops as _tf
from ..ops import FUNCTIONS as _F
from ..tensor import convert_to_tensor

# Keras's name, and TensorFlow's where it differs.
_SAME = """
abs=math.abs negative=math.negative exp=math.exp log=math.log log1p=math.log1p expm1=math.expm1 sqrt=math.sqrt rsqrt=math.rsqrt
square=math.square sin=math.sin cos=math.cos tan=math.tan tanh=math.tanh sigmoid=math.sigmoid softplus=math.softplus erf=math.erf
floor=math.floor ceil=math.ceil round=math.round sign=math.sign reciprocal=math.reciprocal sinh=math.sinh cosh=math.cosh
arcsin=math.asin arccos=math.acos arctan=math.atan arcsinh=math.asinh arccosh=math.acosh arctanh=math.atanh
log_sigmoid=math.log_sigmoid isnan=math.is_nan isinf=math.is_inf isfinite=math.is_finite logical_not=math.logical_not add=math.add
subtract=math.subtract multiply=math.multiply divide=math.divide true_divide=math.divide floor_divide=math.floordiv mod=math.floormod
power=math.pow maximum=math.maximum minimum=math.minimum arctan2=math.atan2 divide_no_nan=math.divide_no_nan less=math.less
less_equal=math.less_equal greater=math.greater greater_equal=math.greater_equal equal=math.equal not_equal=math.not_equal
logical_and=math.logical_and logical_or=math.logical_or logical_xor=math.logical_xor relu=nn.relu relu6=nn.relu6 elu=nn.elu
selu=nn.selu silu=nn.silu swish=nn.silu softsign=nn.softsign gelu=nn.gelu leaky_relu=nn.leaky_relu softmax=nn.softmax
log_softmax=nn.log_softmax reshape=reshape expand_dims=expand_dims squeeze=squeeze broadcast_to=broadcast_to stack=stack
unstack=unstack one_hot=one_hot slice=slice searchsorted=searchsorted cumsum=math.cumsum
cumprod=math.cumprod top_k=math.top_k absolute=math.abs erfinv=math.erfinv nextafter=math.nextafter i0=math.bessel_i0
bitwise_and=bitwise.bitwise_and bitwise_or=bitwise.bitwise_or bitwise_xor=bitwise.bitwise_xor bitwise_not=bitwise.invert
bitwise_invert=bitwise.invert bitwise_left_shift=bitwise.left_shift left_shift=bitwise.left_shift
bitwise_right_shift=bitwise.right_shift right_shift=bitwise.right_shift fmod=truncatemod cholesky=linalg.cholesky det=linalg.det
inv=linalg.inv pinv=linalg.pinv eigh=linalg.eigh logdet=linalg.logdet slogdet=linalg.slogdet matrix_rank=linalg.matrix_rank
saturate_cast=saturate_cast logaddexp=experimental.numpy.logaddexp outer=experimental.numpy.outer
tril=experimental.numpy.tril triu=experimental.numpy.triu layer_normalization=keras.ops.layer_normalization
nan_to_num=keras.ops.nan_to_num rms_normalization=keras.ops.rms_normalization celu=keras.activations.celu glu=keras.activations.glu
hard_shrink=keras.activations.hard_shrink hard_sigmoid=keras.activations.hard_sigmoid hard_silu=keras.activations.hard_silu
hard_swish=keras.activations.hard_silu hard_tanh=keras.activations.hard_tanh mish=keras.activations.mish
soft_shrink=keras.activations.soft_shrink sparse_plus=keras.activations.sparse_plus sparse_sigmoid=keras.activations.sparse_sigmoid
squareplus=keras.activations.squareplus tanh_shrink=keras.activations.tanh_shrink threshold=keras.activations.threshold
"""
_REDUCE = "sum mean max min prod any all"

for _pair in _SAME.split():
    _name, _, _path = _pair.partition("=")
    globals()[_name] = _F[_path]


def _reduction(name, path):
    function = _F[path]

    def reduce(x, axis=None, keepdims=False):
        return function(x, axis=axis, keepdims=keepdims)

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"Keras's `ops.{name}`."
    return reduce


for _name in _REDUCE.split():
    globals()[_name] = _reduction(_name, f"math.reduce_{_name}")
amax, amin = globals()["max"], globals()["min"]
var, std = _reduction("var", "math.reduce_variance"), _reduction("std", "math.reduce_std")
logsumexp = _reduction("logsumexp", "math.reduce_logsumexp")


def _is_symbol(x):
    return type(x).__name__ == "Symbol"


def _rank(x):
    return len(x.shape if hasattr(x, "shape") else convert_to_tensor(x).shape)


def _f(name, *arguments):
    return _F[name](*arguments)


def _tensor(x):
    return x if _is_symbol(x) else convert_to_tensor(x)


def matmul(x1, x2):
    """The product of matrices."""
    return _F["linalg.matmul"](x1, x2)


def dot(x1, x2):
    """The product over the last axis of `x1` and the last axis but one of `x2`."""
    second = len(x2.shape) if hasattr(x2, "shape") else len(convert_to_tensor(x2).shape)
    return _F["tensordot"](x1, x2, [[-1], [0 if second == 1 else -2]])


def tensordot(x1, x2, axes=2):
    """Sums of products over axes."""
    return _F["tensordot"](x1, x2, axes)


def einsum(subscripts, *operands):
    """Sums of products, by indices."""
    return _tf.einsum(subscripts, *operands)


def concatenate(xs, axis=0):
    """The tensors one after the other."""
    return _F["concat"](xs, axis)


def split(x, indices_or_sections, axis=0):
    """Equal parts, or parts that begin at indices."""
    if isinstance(indices_or_sections, int):
        return _F["split"](x, indices_or_sections, axis)
    size = x.shape[axis]
    bounds = [0, *indices_or_sections, size]
    return _F["split"](x, [b - a for a, b in zip(bounds, bounds[1:])], axis)


def transpose(x, axes=None):
    """The tensor with its axes in another order."""
    return _F["transpose"](x, axes)


def swapaxes(x, axis1, axis2):
    """The tensor with two axes exchanged."""
    order = list(range(len(x.shape)))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return _F["transpose"](x, order)


def moveaxis(x, source, destination):
    """The tensor with an axis moved."""
    count = len(x.shape)
    order = [at for at in range(count) if at != source % count]
    order.insert(destination % count, source % count)
    return _F["transpose"](x, order)


def meshgrid(*x, indexing="xy"):
    """The coordinates of the points of a grid."""
    return _tf.meshgrid(*[ravel(part) for part in x], indexing=indexing)


def where(condition, x1=None, x2=None):
    """`x1` where the condition is true, otherwise `x2`."""
    if x1 is None or x2 is None:
        raise TypeError("where: give x1 and x2; the number of true elements would depend on values.")
    return _tf.where(condition, x1, x2)


def clip(x, x_min, x_max):
    """The values, at least `x_min` and at most `x_max`."""
    return _tf.clip_by_value(x, x_min, x_max)


def take(x, indices, axis=None):
    """The slices at indices along an axis."""
    return _F["gather"](x if axis is not None else _F["reshape"](x, [-1]), _tensor(indices), axis=axis or 0)


def take_along_axis(x, indices, axis=None):
    """The element at an index for each position of the other axes."""
    x, indices = convert_to_tensor(x), convert_to_tensor(indices)
    axis = axis % len(x._shape)
    if axis != len(x._shape) - 1:
        moved = take_along_axis(swapaxes(x, axis, -1), swapaxes(indices, axis, -1), -1)
        return swapaxes(moved, axis, -1)
    return _F["gather"](x, indices, axis=axis, batch_dims=axis)


def argmax(x, axis=None, keepdims=False):
    """The index of the largest value."""
    made = _F["math.argmax"](x if axis is not None else _F["reshape"](x, [-1]), axis=axis or 0)
    return _F["expand_dims"](made, axis) if keepdims else made


def argmin(x, axis=None, keepdims=False):
    """The index of the smallest value."""
    made = _F["math.argmin"](x if axis is not None else _F["reshape"](x, [-1]), axis=axis or 0)
    return _F["expand_dims"](made, axis) if keepdims else made


def argsort(x, axis=-1):
    """The indices in the order of the values."""
    return _F["argsort"](x, axis=axis)


def sort(x, axis=-1):
    """The values in order."""
    return _F["sort"](x, axis=axis)


def tile(x, repeats):
    """The tensor several times along axes, as NumPy: fewer numbers are those of the last axes, more ones add axes in front."""
    x, repeats = _tensor(x), [repeats] if isinstance(repeats, int) else list(repeats)
    missing = len(repeats) - len(x.shape)
    if missing > 0 and _is_symbol(x):
        raise TypeError(f"tile: there are {len(repeats)} repeats for the symbol {tuple(x.shape)}; give one an axis.")
    x = _F["reshape"](x, [1] * missing + list(x.shape)) if missing > 0 else x
    return _F["tile"](x, [1] * -missing + repeats if missing < 0 else repeats)


def repeat(x, repeats, axis=None):
    """Each slice several times."""
    return _F["repeat"](x if axis is not None else _F["reshape"](x, [-1]), repeats, axis=axis or 0)


def pad(x, pad_width, mode="constant", constant_values=None):
    """The tensor with a border."""
    return _F["pad"](x, pad_width, mode.upper(), 0 if constant_values is None else constant_values)


def norm(x, ord=None, axis=None, keepdims=False):
    """The norm of vectors."""
    if ord not in (None, 2) or keepdims:
        raise TypeError("norm: only the Euclidean norm without keepdims is supported; use sqrt(sum(square(x))).")
    return globals()["sqrt"](globals()["sum"](globals()["square"](x), axis=axis))


def normalize(x, axis=-1, order=2, epsilon=None):
    """Vectors of length 1."""
    if order != 2:
        raise TypeError("normalize: only order=2 is supported.")
    return _F["math.l2_normalize"](x, axis)


def cast(x, dtype):
    """The values in another dtype."""
    return _tf.cast(x, dtype)


def shape(x):
    """The sizes as a tuple; open ones of symbols are `None`."""
    return tuple(x.shape)


def ndim(x):
    """The number of axes."""
    return len(x.shape)


def size(x):
    """The number of elements."""
    count = 1
    for length in x.shape:
        count *= length
    return count


def zeros(shape, dtype="float32"):
    return _tf.zeros(shape, dtype or "float32")


def ones(shape, dtype="float32"):
    return _tf.ones(shape, dtype or "float32")


def full(shape, fill_value, dtype=None):
    made = _tf.fill(shape, fill_value)
    return made if dtype is None else _tf.cast(made, dtype)


def zeros_like(x, dtype=None):
    return _tf.zeros_like(x, dtype)


def ones_like(x, dtype=None):
    return _tf.ones_like(x, dtype)


def full_like(x, fill_value, dtype=None):
    return _tf.fill(convert_to_tensor(x)._shape, fill_value)


def eye(N, M=None, k=0, dtype="float32"):
    if k:
        raise TypeError("eye: only the main diagonal is supported.")
    return _tf.eye(N, M, dtype=dtype or "float32")


def identity(n, dtype="float32"):
    return _tf.eye(n, dtype=dtype or "float32")


def arange(start, stop=None, step=1, dtype=None):
    return _tf.range(start, stop, step, dtype)


def linspace(start, stop, num=50):
    return _tf.linspace(start, stop, num)


def array(x, dtype=None):
    return convert_to_tensor(x, dtype)


def convert_to_numpy(x):
    """The values as an array of NumPy."""
    return x.numpy() if hasattr(x, "numpy") else convert_to_tensor(x).numpy()


def stop_gradient(variable):
    return _F["stop_gradient"](variable)


def in_top_k(targets, predictions, k):
    """Whether the class of each row is among the `k` largest predictions."""
    return _F["math.in_top_k"](targets, predictions, k)


def scatter_update(inputs, indices, updates):
    return _F["tensor_scatter_nd_update"](inputs, indices, updates)


def conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    """A convolution in one, two or three dimensions."""
    rank = _rank(inputs) - 2
    if data_format not in (None, "channels_last"):
        raise TypeError("conv: only channels_last is supported.")
    if dilation_rate in (1, (1,), [1], (1, 1), [1, 1], (1, 1, 1), [1, 1, 1]):
        return _F[f"nn.conv{rank}d"](inputs, kernel, strides, padding.upper())
    if rank != 2:
        raise TypeError(f"conv: dilation_rate is {dilation_rate}; it is supported in two dimensions only. Use a layer.")
    return _F["nn.conv2d"](inputs, kernel, strides, padding.upper(), dilations=dilation_rate)


def batch_normalization(x, mean, variance, axis, offset=None, scale=None, epsilon=1e-3):
    """`x` normalized by a mean and a variance of an axis."""
    x = _tensor(x)
    sizes = [1] * len(x.shape)
    sizes[axis] = -1
    shaped = [None if part is None else _F["reshape"](part, sizes) for part in (mean, variance, scale, offset)]
    y = (x - shaped[0]) * _f("math.rsqrt", shaped[1] + epsilon)
    y = y if scale is None else y * shaped[2]
    return y if offset is None else y + shaped[3]


def _pool(kind, x, size, strides, padding, data_format):
    if data_format not in (None, "channels_last"):
        raise TypeError(f"{kind}_pool: only channels_last is supported.")
    return _F[f"nn.{kind}_pool{_rank(x) - 2}d"](x, size, size if strides is None else strides, padding.upper())


def max_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    """The largest value of each window."""
    return _pool("max", inputs, pool_size, strides, padding, data_format)


def average_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    """The mean of each window."""
    return _pool("avg", inputs, pool_size, strides, padding, data_format)


def binary_crossentropy(target, output, from_logits=False):
    """The cross-entropy of each element."""
    if from_logits:
        return _F["nn.sigmoid_cross_entropy_with_logits"](labels=target, logits=output)
    output = clip(output, 1e-7, 1 - 1e-7)
    return -(target * _F["math.log"](output) + (1 - target) * _F["math.log"](1 - output))


def categorical_crossentropy(target, output, from_logits=False, axis=-1):
    from .objects import LOSSES

    return LOSSES["CategoricalCrossentropy"](from_logits=from_logits, axis=axis, reduction="none")(target, output)


def sparse_categorical_crossentropy(target, output, from_logits=False, axis=-1):
    from .objects import LOSSES

    return LOSSES["SparseCategoricalCrossentropy"](from_logits=from_logits, reduction="none")(target, output)


def is_tensor(x):
    from ..tensor import is_tensor as known

    return known(x) or _is_symbol(x)


def cond(pred, true_fn, false_fn):
    from ..control_flow import cond as run

    return run(pred, true_fn, false_fn)


def while_loop(cond, body, loop_vars, maximum_iterations=None):
    from ..control_flow import while_loop as run

    return run(cond, body, loop_vars, maximum_iterations=maximum_iterations)


from . import array_ops, image_ops as image  # noqa: E402
from .array_ops import *  # noqa: E402, F403
