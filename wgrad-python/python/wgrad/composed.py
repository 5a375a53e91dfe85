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
    import numpy as np

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


def non_max_suppression(boxes, scores, max_output_size, iou_threshold=0.5, score_threshold=float("-inf"), name=None):
    """TensorFlow's `tf.image.non_max_suppression`: the indices of boxes `[y1, x1, y2, x2]` with the highest scores, without those that
    overlap a better one by more than `iou_threshold`. It computes on the host."""
    boxes, scores = convert_to_tensor(boxes, "float32").numpy(), convert_to_tensor(scores, "float32").numpy()
    if boxes.ndim != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        raise ValueError(f"non_max_suppression: boxes are {list(boxes.shape)} and scores {list(scores.shape)}; they must be [N, 4] and [N].")
    if not 0 <= iou_threshold <= 1:
        raise ValueError(f"non_max_suppression: iou_threshold is {iou_threshold}; it must be from 0 to 1.")
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    areas = np.prod(high - low, axis=1)
    chosen = []
    for at in np.argsort(-scores, kind="stable"):
        if len(chosen) >= int(max_output_size) or not scores[at] > score_threshold:
            break
        shared = np.prod(np.maximum(np.minimum(high[chosen], high[at]) - np.maximum(low[chosen], low[at]), 0), axis=1)
        united = areas[chosen] + areas[at] - shared
        overlaps = np.divide(shared, united, out=np.zeros_like(shared), where=united > 0)
        if not (overlaps > iou_threshold).any():
            chosen.append(at)
    return convert_to_tensor(np.array(chosen, dtype="int32"))


TOP = [dynamic_partition, dynamic_stitch, norm, numpy_function, scalar_mul, strided_slice, unravel_index]


def install(namespaces):
    """Puts the functions, and others under more than one name, into their namespaces."""
    top, nn, math, linalg = (namespaces[name] for name in ("", "nn", "math", "linalg"))
    for function in TOP:
        top[function.__name__] = function
    for function in (dilation2d, dropout, compute_average_loss, scale_regularization_loss):
        nn[function.__name__] = function
    for function in (scalar_mul, accumulate_n):
        math[function.__name__] = function
    nn["in_top_k"] = _F["math.in_top_k"]
    namespaces["image"]["non_max_suppression"] = non_max_suppression
    linalg.update(svd=svd, norm=norm, normalize=normalize, eye=_ops.eye, einsum=_ops.einsum)
    for name in ("softmax", "log_softmax", "softsign", "zero_fraction"):
        math[name] = _F[f"nn.{name}"]
    linalg.update(tensordot=_F["tensordot"], l2_normalize=_F["math.l2_normalize"])
    math["truediv"] = _F["math.divide"]
    for namespace in (top, functions.__dict__):
        namespace["truediv"] = namespace["realdiv"] = _F["math.divide"]
