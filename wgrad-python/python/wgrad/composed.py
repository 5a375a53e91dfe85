"""Functions of `tf.nn`, `tf.math` and `tf.linalg` that are composed of others."""

import numpy as np

from . import _wgrad, functions, ops as _ops, random as _random
from .ops import FUNCTIONS as _F
from .tensor import Tensor, convert_to_tensor


def dropout(x, rate, noise_shape=None, seed=None, name=None):
    """TensorFlow's `tf.nn.dropout`: elements are 0 with the probability `rate`, the others are divided by `1 - rate`."""
    x = convert_to_tensor(x)
    if isinstance(rate, (int, float)):
        if not 0 <= rate < 1:
            raise ValueError(f"dropout: rate is {rate}; it must be at least 0 and below 1.")
        if rate == 0:
            return x
    sizes = list(x._shape)
    if noise_shape is not None:
        if len(noise_shape) != len(sizes):
            raise ValueError(f"dropout: noise_shape is {list(noise_shape)}, and the tensor {sizes}; both must have as many axes.")
        sizes = [size if wanted is None else int(wanted) for wanted, size in zip(noise_shape, sizes)]
    kept = _random.uniform(sizes, seed=seed) >= rate
    share = 1 - rate if isinstance(rate, (int, float)) else 1 - _ops.cast(rate, x._dtype)
    return _ops.where(kept, x / share, _ops.zeros_like(x))


def _replicas():
    """How many replicas run this step."""
    from .distribute import get_replica_context

    context = get_replica_context()
    return 1 if context is None else context.num_replicas_in_sync


def compute_average_loss(per_example_loss, sample_weight=None, global_batch_size=None):
    """TensorFlow's `tf.nn.compute_average_loss`: the sum of the losses, divided by the size of the whole batch."""
    loss = convert_to_tensor(per_example_loss)
    if sample_weight is not None:
        loss = loss * _ops.cast(sample_weight, loss._dtype)
    if global_batch_size is None:
        global_batch_size = loss._shape[0] * _replicas()
    return _F["math.reduce_sum"](loss) / _ops.cast(global_batch_size, loss._dtype)


def scale_regularization_loss(regularization_loss):
    """TensorFlow's `tf.nn.scale_regularization_loss`: this replica's share of the losses of weights."""
    return _F["math.reduce_sum"](regularization_loss) / float(_replicas())


def scalar_mul(scalar, x, name=None):
    """TensorFlow's `tf.math.scalar_mul`."""
    scalar = convert_to_tensor(scalar)
    if scalar._shape:
        raise ValueError(f"scalar_mul: the scalar is {list(scalar._shape)}; it must have no axes.")
    return _F["math.multiply"](_ops.cast(scalar, convert_to_tensor(x)._dtype), x)


def accumulate_n(inputs, shape=None, tensor_dtype=None, name=None):
    """TensorFlow's `tf.math.accumulate_n`: the sum of tensors of one shape."""
    return _F["math.add_n"](list(inputs))


def norm(tensor, ord="euclidean", axis=None, keepdims=False, name=None):
    """TensorFlow's `tf.norm`: the norm of vectors, or of matrices if there are two axes."""
    tensor = convert_to_tensor(tensor)
    made = _F["norm"](tensor, ord if isinstance(ord, str) else str(float(ord)), axis)
    if not keepdims:
        return made
    rank = len(tensor._shape)
    gone = range(rank) if axis is None else [axis % rank] if isinstance(axis, int) else [at % rank for at in axis]
    return _F["reshape"](made, [1 if at in gone else size for at, size in enumerate(tensor._shape)])


def normalize(tensor, ord="euclidean", axis=None, name=None):
    """TensorFlow's `tf.linalg.normalize`: the tensor divided by its norm, and the norm."""
    length = norm(tensor, ord, axis, keepdims=True)
    return convert_to_tensor(tensor) / length, length


def dynamic_partition(data, partitions, num_partitions, name=None):
    """TensorFlow's `tf.dynamic_partition`: the rows of each number. The numbers are read on the host."""
    data, numbers = convert_to_tensor(data), convert_to_tensor(partitions).numpy()
    if tuple(data._shape[: numbers.ndim]) != numbers.shape:
        raise ValueError(f"dynamic_partition: data is {list(data._shape)} and partitions {list(numbers.shape)}; data must begin with it.")
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < num_partitions:
        raise ValueError(f"dynamic_partition: partitions are from {numbers.min()} to {numbers.max()}; they must be below {num_partitions}.")
    rows = _F["reshape"](data, [numbers.size, *data._shape[numbers.ndim :]])
    places = [(numbers.ravel() == number).nonzero()[0].astype("int32") for number in range(num_partitions)]
    return [_F["gather"](rows, place) for place in places]


def dynamic_stitch(indices, data, name=None):
    """TensorFlow's `tf.dynamic_stitch`: rows at their indices; later ones replace earlier ones. The indices are read on the host."""
    places = [convert_to_tensor(part).numpy() for part in indices]
    parts = [convert_to_tensor(part) for part in data]
    rows = [_F["reshape"](part, [place.size, *part._shape[place.ndim :]]) for place, part in zip(places, parts, strict=True)]
    flat = np.concatenate([place.ravel() for place in places])
    if not flat.size or flat.min() < 0:
        raise ValueError("dynamic_stitch: there must be indices, and none below 0.")
    source = np.zeros(int(flat.max()) + 1, "int32")
    missing = np.ones(len(source), bool)
    for at, place in enumerate(flat.tolist()):
        source[place], missing[place] = at, False
    made = _F["gather"](_F["concat"](rows, 0), source)
    shape = [len(source)] + [1] * (len(made._shape) - 1)
    return _ops.where(missing.reshape(shape), _ops.zeros_like(made), made) if missing.any() else made


def unravel_index(indices, dims, name=None):
    """TensorFlow's `tf.unravel_index`: the coordinates of places in a tensor of these sizes, `[axes, places]`."""
    places, coordinates = convert_to_tensor(indices), []
    for size in reversed([int(size) for size in (dims.numpy() if isinstance(dims, Tensor) else dims)]):
        coordinates.append(places % size)
        places = places // size
    return _F["stack"](coordinates[::-1])


_DILATION = _wgrad.NativeOp("tf.nn.dilation2d", ["input", "filters"])


def dilation2d(input, filters, strides, padding, data_format="NHWC", dilations=1, name=None):
    """TensorFlow's `tf.nn.dilation2d`."""
    if data_format != "NHWC":
        raise ValueError(f"dilation2d: data_format is {data_format!r}; it must be 'NHWC'.")
    spatial = lambda sizes: list(sizes)[1:3] if hasattr(sizes, "__len__") and len(sizes) == 4 else sizes
    attributes = {"strides": spatial(strides), "padding": padding, "dilations": spatial(dilations)}
    return _DILATION.call({"input": input, "filters": filters}, attributes)[0]


def numpy_function(func, inp, Tout, stateful=True, name=None):
    """TensorFlow's `tf.numpy_function`, which calls `func` with arrays of NumPy."""
    return _ops.py_function(lambda *tensors: func(*[tensor.numpy() for tensor in tensors]), inp, Tout)


def svd(tensor, full_matrices=False, compute_uv=True, name=None):
    """TensorFlow's `tf.linalg.svd`: the singular values, `u` and `v`; without `compute_uv` the values alone."""
    made = _F["linalg.svd"](tensor, full_matrices=full_matrices)
    return made if compute_uv else made.s


def strided_slice(input_, begin, end, strides=None, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0,
                  var=None, name=None):
    """TensorFlow's `tf.strided_slice`: the elements from `begin` to `end`. A bit of a mask changes the meaning of a position."""
    whole = lambda values: [int(value) for value in (values.numpy() if isinstance(values, Tensor) else values)]
    begin, end = whole(begin), whole(end)
    strides = [1] * len(begin) if strides is None else whole(strides)
    if not len(begin) == len(end) == len(strides):
        raise ValueError(f"strided_slice: begin, end and strides have {len(begin)}, {len(end)} and {len(strides)} values; they need equally many.")
    has = lambda mask, at: mask >> at & 1
    index = []
    for at, (low, high, stride) in enumerate(zip(begin, end, strides)):
        if has(ellipsis_mask, at):
            index.append(...)
        elif has(new_axis_mask, at):
            index.append(None)
        elif has(shrink_axis_mask, at):
            index.append(low)
        else:
            index.append(slice(None if has(begin_mask, at) else low, None if has(end_mask, at) else high, stride))
    return convert_to_tensor(input_)[tuple(index)]


# ---- functions of the table, with more of TensorFlow's options ----


@_ops._of_symbols
def matvec(a, b, transpose_a=False, adjoint_a=False, a_is_sparse=False, b_is_sparse=False, name=None):
    """TensorFlow's `tf.linalg.matvec`: the product of a matrix and a vector."""
    if not (transpose_a or adjoint_a):
        return _F["linalg.matvec"](a, b)
    return _F["linalg.matmul"](a, convert_to_tensor(b)[..., None], transpose_a=True)[..., 0]


@_ops._of_symbols
def moments(x, axes, shift=None, keepdims=False, name=None):
    """TensorFlow's `tf.nn.moments`: the mean and the variance over axes; `shift` changes nothing."""
    made, x = _F["nn.moments"](x, axes), convert_to_tensor(x)
    if not keepdims:
        return made
    gone = {at % len(x._shape) for at in ([axes] if isinstance(axes, int) else axes)}
    sizes = [1 if at in gone else size for at, size in enumerate(x._shape)]
    return [_F["reshape"](part, sizes) for part in made]


@_ops._of_symbols
def count_nonzero(input, axis=None, keepdims=False, dtype="int32", name=None):
    """TensorFlow's `tf.math.count_nonzero`."""
    x = convert_to_tensor(input)
    there = x if x._dtype == "bool" else _F["math.not_equal"](x, 0)
    return _ops.cast(_F["math.reduce_sum"](_ops.cast(there, "int32"), axis, keepdims), dtype)


@_ops._of_symbols
def gather(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None):
    """TensorFlow's `tf.gather`: the slices of an axis at the indices. Without an axis, it is the one after the `batch_dims` first ones. As on
    TensorFlow's GPUs, an index out of range gives zeros."""
    batch_dims = int(batch_dims)
    if batch_dims < 0:
        batch_dims += len(convert_to_tensor(indices)._shape)
    if axis is None:
        return _F["gather"](params, indices, axis=batch_dims, batch_dims=batch_dims) if batch_dims else _F["gather"](params, indices)
    return _F["gather"](params, indices, axis=int(axis), batch_dims=batch_dims)


@_ops._of_symbols
def batch_normalization(x, mean, variance, offset, scale, variance_epsilon, name=None):
    """TensorFlow's `tf.nn.batch_normalization`: `scale * (x - mean) / sqrt(variance + variance_epsilon) + offset`, without those that are
    `None`."""
    offset = _ops.zeros_like(mean) if offset is None else offset
    scale = _ops.ones_like(mean) if scale is None else scale
    return _F["nn.batch_normalization"](x, mean, variance, offset, scale, variance_epsilon)


@_ops._of_symbols
def one_hot(indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None):
    """TensorFlow's `tf.one_hot`: `on_value` at the indices of an axis, and `off_value` at the others. The dtype is that of the values."""
    made = _F["one_hot"](indices, int(depth), axis=-1 if axis is None else int(axis))
    if on_value is None and off_value is None:
        return made if dtype is None else _ops.cast(made, dtype)
    given = next(convert_to_tensor(value)._dtype for value in (on_value, off_value) if value is not None)
    of = lambda value, default: _ops.cast(default if value is None else value, given if dtype is None else dtype)
    return _ops.where(_F["math.equal"](made, 1.0), of(on_value, 1), of(off_value, 0))


@_ops._of_symbols
def boolean_mask(tensor, mask, axis=None, name="boolean_mask"):
    """TensorFlow's `tf.boolean_mask`: what the mask has at true values, along one or more axes that begin with `axis`."""
    x, axis = convert_to_tensor(tensor), 0 if axis is None else int(axis)
    if axis == 0:
        return _F["boolean_mask"](x, mask)
    mask = convert_to_tensor(mask).numpy()
    rank, axis = len(x._shape), axis % max(len(x._shape), 1)
    if mask.dtype != bool or not 0 < mask.ndim <= rank - axis or list(mask.shape) != list(x._shape[axis : axis + mask.ndim]):
        raise ValueError(f"boolean_mask: the mask is {mask.dtype}{list(mask.shape)}, and the tensor {list(x._shape)} from axis {axis} on.")
    flat = _F["reshape"](x, [*x._shape[:axis], mask.size, *x._shape[axis + mask.ndim :]])
    return _F["gather"](flat, np.flatnonzero(mask).astype("int32"), axis=axis)


@_ops._of_symbols
def bincount(arr, weights=None, minlength=None, maxlength=None, dtype="int32", name=None, axis=None, binary_output=False):
    """TensorFlow's `tf.math.bincount`: how often each number is there, or the sum of its weights; with `axis=-1` for each row. The largest
    number is read on the host."""
    numbers = convert_to_tensor(arr)
    if numbers._dtype not in ("int32", "uint32", "uint8", "bool"):
        raise TypeError(f"bincount: the numbers are {numbers._dtype}; they must be integers, and not below 0.")
    numbers = _ops.cast(numbers, "int32")
    if axis not in (None, 0, -1) or axis == -1 and len(numbers._shape) not in (1, 2):
        raise ValueError(f"bincount: axis is {axis} and the numbers {list(numbers._shape)}; the axis must be None, 0, or -1 for one or two axes.")
    lowest = int(_F["math.reduce_min"](numbers).numpy()) if 0 not in numbers._shape else 0
    if lowest < 0:
        raise ValueError(f"bincount: the smallest number is {lowest}; none must be below 0.")
    bins = max(_ops._above(numbers), int(minlength or 0))
    bins = bins if maxlength is None else min(bins, int(maxlength))
    rows = numbers._shape[0] if axis == -1 and len(numbers._shape) == 2 else 1
    table = _F["reshape"](numbers, [rows, -1] if numbers._shape and 0 not in numbers._shape else [rows, 0])
    # Numbers that are too large are counted in a place of their own.
    places = _F["math.minimum"](table, bins) + np.arange(rows, dtype="int32")[:, None] * (bins + 1)
    if weights is None or binary_output:
        values = _ops.ones_like(places)
    else:
        values = _F["reshape"](convert_to_tensor(weights), list(places._shape))
    sums = _F["math.unsorted_segment_sum"](_F["reshape"](values, [-1]), _F["reshape"](places, [-1]), rows * (bins + 1))
    sums = _F["reshape"](sums, [rows, bins + 1])[:, :bins]
    sums = _F["math.minimum"](sums, 1) if binary_output else sums
    sums = sums if weights is not None and not binary_output else _ops.cast(sums, dtype)
    return sums if axis == -1 and len(numbers._shape) == 2 else sums[0]


@_ops._of_symbols
def silu(features, beta=1.0):
    """TensorFlow's `tf.nn.silu`: `x * sigmoid(beta * x)`."""
    if isinstance(beta, (int, float)) and beta == 1:
        return _F["nn.silu"](features)
    x = convert_to_tensor(features)
    return x * _F["math.sigmoid"](x * beta)


@_ops._of_symbols
def softmax_cross_entropy_with_logits(labels, logits, axis=-1, name=None):
    """TensorFlow's `tf.nn.softmax_cross_entropy_with_logits`: the loss of each row, whose classes are in an axis."""
    function, rank = _F["nn.softmax_cross_entropy_with_logits"], len(getattr(logits, "shape", None) or np.shape(logits))
    if axis in (-1, rank - 1):
        return function(labels, logits)
    order = [at for at in range(rank) if at != axis % rank] + [axis % rank]
    return function(_F["transpose"](labels, order), _F["transpose"](logits, order))


@_ops._of_symbols
def pinv(a, rcond=None, validate_args=False, name=None):
    """TensorFlow's `tf.linalg.pinv`: the pseudoinverse; singular values up to `rcond` times the largest one count as 0."""
    if rcond is None:
        return _F["linalg.pinv"](a)
    s, u, v = _F["linalg.svd"](a)
    large = s > _F["math.reduce_max"](s, -1, True) * convert_to_tensor(rcond, s._dtype)[..., None]
    inverse = _ops.where(large, 1.0 / _ops.where(large, s, 1.0), 0.0)
    return _F["linalg.matmul"](v * inverse[..., None, :], u, transpose_b=True)


@_ops._of_symbols
def matrix_rank(a, tol=None, validate_args=False, name=None):
    """TensorFlow's `tf.linalg.matrix_rank`: how many singular values are above `tol`."""
    if tol is None:
        return _F["linalg.matrix_rank"](a)
    s = _F["linalg.svd"](a).s
    return _F["math.reduce_sum"](_ops.cast(s > convert_to_tensor(tol, s._dtype)[..., None], "int32"), -1)


def _image_size(call, x):
    x = convert_to_tensor(x)
    if len(x._shape) not in (3, 4):
        raise ValueError(f"{call}: the images are {list(x._shape)}; they must have 3 or 4 axes.")
    return x, *x._shape[-3:-1]


@_ops._of_symbols
def resize(images, size, method="bilinear", preserve_aspect_ratio=False, antialias=False, name=None):
    """TensorFlow's `tf.image.resize`: images of another size, or of the largest one of the same shape that fits into it."""
    method = getattr(method, "value", method)
    if not preserve_aspect_ratio:
        return _F["image.resize"](images, size, method, antialias=antialias)
    images, height, width = _image_size("resize", images)
    wanted = _ops._sizes(size)
    scale = min(np.float32(wanted[0] / height), np.float32(wanted[1] / width))
    return _F["image.resize"](images, [round(float(scale * side)) for side in (height, width)], method, antialias=antialias)


@_ops._of_symbols
def resize_with_pad(image, target_height, target_width, method="bilinear", antialias=False):
    """TensorFlow's `tf.image.resize_with_pad`: images as large as fits into a size, with zeros around them."""
    if method == "bilinear" and not antialias:
        return _F["image.resize_with_pad"](image, target_height, target_width)
    image, height, width = _image_size("resize_with_pad", image)
    ratio = max(np.float32(width / target_width), np.float32(height / target_height))
    sizes = [int(np.floor(np.float32(side / ratio))) for side in (height, width)]
    top, left = max(0, (target_height - sizes[0]) // 2), max(0, (target_width - sizes[1]) // 2)
    made = _F["image.resize"](image, sizes, method, antialias=antialias)
    return _F["image.pad_to_bounding_box"](made, top, left, target_height, target_width)


@_ops._of_symbols
def lrn(input, depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, name=None):
    """TensorFlow's `tf.nn.lrn`: `local_response_normalization`."""
    return _F["nn.local_response_normalization"](input, depth_radius, bias, alpha, beta)


@_ops._of_symbols
def erosion2d(value, filters, strides, padding, data_format="NHWC", dilations=1, name=None):
    """TensorFlow's `tf.nn.erosion2d`: the smallest differences of windows and filters."""
    return -dilation2d(-convert_to_tensor(value), _F["reverse"](filters, [0, 1]), strides, padding, data_format, dilations)


@_ops._of_symbols
def conv_transpose(input, filters, output_shape, strides, padding="SAME", data_format=None, dilations=None, name=None):
    """TensorFlow's `tf.nn.conv_transpose`: `conv1d_transpose`, `conv2d_transpose` or `conv3d_transpose`, by the number of axes."""
    axes = len(convert_to_tensor(input)._shape) - 2
    if axes not in (1, 2, 3):
        raise ValueError(f"conv_transpose: the input has {axes + 2} axes; it must have 3 to 5.")
    if dilations not in (None, 1) and any(int(one) != 1 for one in np.ravel(dilations)):
        raise ValueError(f"conv_transpose: dilations are {dilations}; only 1 is supported.")
    form = ("NWC", "NHWC", "NDHWC")[axes - 1]
    return _F[f"nn.conv{axes}d_transpose"](input, filters, output_shape, strides, padding, form if data_format is None else data_format)


def collapse_repeated(labels, seq_length, name=None):
    """TensorFlow's `tf.nn.collapse_repeated`: rows without labels that equal the one in front of them, and their lengths. It computes on
    the host."""
    rows, lengths = convert_to_tensor(labels).numpy(), convert_to_tensor(seq_length).numpy()
    kept = [[row[at] for at in range(int(size)) if at == 0 or row[at] != row[at - 1]] for row, size in zip(rows, lengths)]
    made = np.zeros((len(kept), max(map(len, kept), default=0)), dtype=rows.dtype)
    for at, row in enumerate(kept):
        made[at, : len(row)] = row
    return convert_to_tensor(made), convert_to_tensor(np.array([len(row) for row in kept], dtype="int32"))


class ResizeMethod:
    """The methods of `tf.image.resize`."""

    AREA, BICUBIC, BILINEAR, GAUSSIAN = "area", "bicubic", "bilinear", "gaussian"
    LANCZOS3, LANCZOS5, MITCHELLCUBIC, NEAREST_NEIGHBOR = "lanczos3", "lanczos5", "mitchellcubic", "nearest"


TOP = [boolean_mask, dynamic_partition, dynamic_stitch, gather, norm, numpy_function, one_hot, scalar_mul, strided_slice, unravel_index]


def install(namespaces):
    """Puts the functions, and others under more than one name, into their namespaces."""
    top, nn, math, linalg = (namespaces[name] for name in ("", "nn", "math", "linalg"))
    for function in TOP:
        top[function.__name__] = function
    for function in (dilation2d, dropout, compute_average_loss, scale_regularization_loss):
        nn[function.__name__] = function
    for function in (scalar_mul, accumulate_n):
        math[function.__name__] = function
    for function in (batch_normalization, collapse_repeated, conv_transpose, erosion2d, lrn, moments, silu, softmax_cross_entropy_with_logits):
        nn[function.__name__] = function
    nn.update(swish=silu, space_to_batch=_F["space_to_batch"])
    math.update(bincount=bincount, count_nonzero=count_nonzero)
    linalg.update(matvec=matvec, pinv=pinv, matrix_rank=matrix_rank)
    namespaces["image"].update(resize=resize, resize_with_pad=resize_with_pad, ResizeMethod=ResizeMethod)
    nn["in_top_k"] = _F["math.in_top_k"]
    linalg.update(svd=svd, norm=norm, normalize=normalize, eye=_ops.eye, einsum=_ops.einsum)
    for name in ("softmax", "log_softmax", "softsign", "zero_fraction"):
        math[name] = _F[f"nn.{name}"]
    linalg.update(tensordot=_F["tensordot"], l2_normalize=_F["math.l2_normalize"])
    math["truediv"] = _F["math.divide"]
    for namespace in (top, functions.__dict__):
        namespace["truediv"] = namespace["realdiv"] = _F["math.divide"]
