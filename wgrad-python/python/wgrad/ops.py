"""Ops: for each of TensorFlow's functions its parameters, and which of them are tensors.

A line of the table has the function's name and its parameters in TensorFlow's order. `*` marks a tensor, `**` a list of
tensors; `key:parameter` gives the key of the native call where it is called differently, and `=` a default that the native call lacks. All parameters
after the tensors are optional; the native call says what is missing.
"""

import ast
import inspect

from . import _wgrad
from .dtypes import DType, as_name
from .tensor import Tensor, Variable, convert_to_tensor

_TABLE = """
math.abs *x
math.negative *x
math.exp *x
math.log *x
math.log1p *x
math.expm1 *x
math.sqrt *x
math.rsqrt *x
math.square *x
math.sin *x
math.cos *x
math.tan *x
math.tanh *x
math.sigmoid *x
math.softplus *x:features
math.erf *x
math.erfc *x
math.floor *x
math.ceil *x
math.round *x
math.rint *x
math.sign *x
math.reciprocal *x
math.sinh *x
math.cosh *x
math.asin *x
math.acos *x
math.atan *x
math.asinh *x
math.acosh *x
math.atanh *x
math.log_sigmoid *x
math.is_nan *x
math.is_inf *x
math.is_finite *x
math.logical_not *x
math.add *x *y
math.subtract *x *y
math.multiply *x *y
math.divide *x *y
math.floordiv *x *y
math.floormod *x *y
math.pow *x *y
math.maximum *x *y
math.minimum *x *y
math.squared_difference *x *y
math.atan2 *x:y *y:x
math.divide_no_nan *x *y
math.xlogy *x *y
math.less *x *y
math.less_equal *x *y
math.greater *x *y
math.greater_equal *x *y
math.equal *x *y
math.not_equal *x *y
math.logical_and *x *y
math.logical_or *x *y
math.logical_xor *x *y
math.reduce_sum *x:input_tensor axis keepdims
math.reduce_mean *x:input_tensor axis keepdims
math.reduce_max *x:input_tensor axis keepdims
math.reduce_min *x:input_tensor axis keepdims
math.reduce_prod *x:input_tensor axis keepdims
math.reduce_logsumexp *x:input_tensor axis keepdims
math.reduce_variance *x:input_tensor axis keepdims
math.reduce_std *x:input_tensor axis keepdims
math.reduce_euclidean_norm *x:input_tensor axis keepdims
math.reduce_any *x:input_tensor axis keepdims
math.reduce_all *x:input_tensor axis keepdims
math.argmax *x:input axis
math.argmin *x:input axis
math.count_nonzero *x:input axis
math.l2_normalize *x axis epsilon
math.cumsum *x axis exclusive reverse
math.cumprod *x axis exclusive reverse
math.top_k *x:input k sorted
math.add_n **xs:inputs
math.bincount *x:arr - minlength
math.segment_sum *x:data *ids:segment_ids
math.segment_mean *x:data *ids:segment_ids
math.segment_max *x:data *ids:segment_ids
math.segment_min *x:data *ids:segment_ids
math.unsorted_segment_sum *x:data *ids:segment_ids num_segments
math.unsorted_segment_mean *x:data *ids:segment_ids num_segments
math.unsorted_segment_max *x:data *ids:segment_ids num_segments
math.unsorted_segment_min *x:data *ids:segment_ids num_segments
nn.relu *x:features
nn.relu6 *x:features
nn.elu *x:features
nn.selu *x:features
nn.silu *x:features
nn.softsign *x:features
nn.gelu *x:features approximate
nn.leaky_relu *x:features alpha=0.2
nn.softmax *x:logits axis
nn.log_softmax *x:logits axis
nn.moments *x axes
nn.conv1d *x:input *w:filters stride padding
nn.conv2d *x:input *w:filters strides padding - dilations
nn.conv3d *x:input *w:filters strides padding
nn.depthwise_conv2d *x:input *w:filter strides padding - dilations
nn.separable_conv2d *x:input *dw:depthwise_filter *pw:pointwise_filter strides padding
nn.bias_add *x:value *b:bias
nn.max_pool2d *x:input ksize strides padding
nn.avg_pool2d *x:input ksize strides padding
nn.max_pool1d *x:input ksize strides padding
nn.avg_pool1d *x:input ksize strides padding
nn.space_to_depth *x:input block_size
nn.depth_to_space *x:input block_size
nn.softmax_cross_entropy_with_logits *labels *logits
nn.sparse_softmax_cross_entropy_with_logits *labels *logits
nn.sigmoid_cross_entropy_with_logits *labels *logits
nn.weighted_cross_entropy_with_logits *labels *logits pos_weight
nn.l2_loss *x:t
nn.local_response_normalization *x:input depth_radius bias alpha beta
nn.embedding_lookup *params *ids
linalg.matmul *a *b transpose_a transpose_b
linalg.matvec *a *b
linalg.diag *x:diagonal
linalg.diag_part *x:input
linalg.trace *x
linalg.band_part *x:input num_lower num_upper
linalg.global_norm **xs:t_list
norm *x:tensor ord axis
tensordot *a *b axes
where *cond:condition *x *y
gather *params *indices - axis batch_dims
gather_nd *params *indices batch_dims
scatter_nd *indices *updates shape
tensor_scatter_nd_update *tensor *indices *updates
tensor_scatter_nd_add *tensor *indices *updates
tensor_scatter_nd_sub *tensor *indices *updates
tensor_scatter_nd_max *tensor *indices *updates
tensor_scatter_nd_min *tensor *indices *updates
boolean_mask *x:tensor *mask
one_hot *x:indices depth on_value=1.0 off_value=0.0 axis=-1
searchsorted *a:sorted_sequence *v:values side
concat **xs:values axis
split *x:value num_or_size_splits axis
stack **xs:values axis
unstack *x:value - axis
slice *x:input_ begin size
pad *x:tensor paddings mode='CONSTANT' constant_values
tile *x:input multiples
repeat *x:input repeats axis
reverse *x:tensor axis
roll *x:input shift axis
transpose *x:a perm
reshape *x:tensor shape
expand_dims *x:input axis
squeeze *x:input axis
broadcast_to *x:input shape
sort *x:values axis direction
argsort *x:values axis direction stable
clip_by_norm *x:t clip_norm axes
stop_gradient *x:input
image.resize *x:images size method - antialias
image.rot90 *x:image k
image.flip_left_right *x:image
image.flip_up_down *x:image
image.transpose *x:image
image.central_crop *x:image central_fraction
image.crop_to_bounding_box *x:image offset_height offset_width target_height target_width
image.pad_to_bounding_box *x:image offset_height offset_width target_height target_width
image.resize_with_crop_or_pad *x:image target_height target_width
image.resize_with_pad *x:image target_height target_width
image.adjust_brightness *x:image delta
image.adjust_contrast *x:images contrast_factor
image.adjust_saturation *x:image saturation_factor
image.adjust_hue *x:image delta
image.rgb_to_grayscale *x:images
image.grayscale_to_rgb *x:images
image.rgb_to_hsv *x:images
image.hsv_to_rgb *x:images
image.per_image_standardization *x:image
image.convert_image_dtype *x:image dtype saturate
"""

# Functions that TensorFlow has at its top, too.
_TOP = """abs add argmax argmin acos acosh asin asinh atan atan2 atanh ceil cos cosh cumsum divide equal exp floor greater
greater_equal less less_equal logical_and logical_not logical_or maximum minimum multiply negative not_equal pow reduce_all
reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum round sigmoid sign sin sinh sqrt square
subtract tan tanh add_n""".split()

# The order of the tensors in which TensorFlow's arguments go to the native call, where both differ.
_SHORT = {"ksize", "strides", "dilations"}


def _spatial(name, key, value):
    """Window sizes and strides without the axes of the batch and the channels."""
    if key in _SHORT and isinstance(value, (list, tuple)) and len(value) == 4 and "2d" in name:
        return list(value[1:3])
    return value


def _make(line):
    path, *parts = line.split()
    name = path.rpartition(".")[2]
    native = f"tf.{path}"
    fields, signature, defaults = [], [], {}
    tensors = sum(part.startswith("*") for part in parts)
    for part in parts:
        kind = "list" if part.startswith("**") else "tensor" if part.startswith("*") else "attribute"
        part, _, default = part.partition("=")
        key, _, parameter = part.lstrip("*").partition(":")
        if part == "-":
            key, parameter, kind = None, f"_unused{len(fields)}", "unused"
        fields.append((kind, key, parameter or key))
        defaults[parameter or key] = ast.literal_eval(default) if default else None
    for kind, _, parameter in fields:
        needed = kind in ("tensor", "list") and not (name == "where" and parameter != "condition")
        default = inspect.Parameter.empty if needed else defaults[parameter]
        signature.append(inspect.Parameter(parameter, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
    signature.append(inspect.Parameter("name", inspect.Parameter.KEYWORD_ONLY, default=None))
    signature = inspect.Signature(signature)
    simple = [key for kind, key, _ in fields]
    only_tensors = all(kind == "tensor" for kind, _, _ in fields)
    op = _wgrad.NativeOp(native, [key for key in simple if key is not None])

    def function(*arguments, **named):
        if only_tensors and not named and len(arguments) == tensors:
            return op(*arguments)
        bound = signature.bind(*arguments, **named).arguments
        given, attributes = {}, {}
        for kind, key, parameter in fields:
            value = bound.get(parameter, defaults[parameter])
            if value is None:
                continue
            if kind == "unused":
                raise TypeError(f"{name}: this argument is not supported; leave it out.")
            if kind == "tensor":
                given[key] = value
            elif kind == "list":
                given[key] = list(value)
            else:
                value = as_name(value) if isinstance(value, (DType, type)) else value
                attributes[key] = _spatial(path, key, value)
        results = op.call(given, attributes)
        return results[0] if len(results) == 1 and name not in ("split", "unstack") else results

    function.__name__ = function.__qualname__ = name
    function.__signature__ = signature
    function.__doc__ = f"TensorFlow's `tf.{path}`."
    return path, function


FUNCTIONS = dict(_make(line) for line in _TABLE.strip().splitlines())


def install(namespaces):
    """Puts each function into its namespace: `{"": .., "math": .., ..}`."""
    for path, function in FUNCTIONS.items():
        place, _, name = path.rpartition(".")
        namespaces[place][name] = function
    for name in _TOP:
        namespaces[""].setdefault(name, FUNCTIONS[f"math.{name}"])
    top = namespaces[""]
    namespaces["math"]["confusion_matrix"] = confusion_matrix
    top["matmul"] = FUNCTIONS["linalg.matmul"]
    namespaces["math"]["mod"] = FUNCTIONS["math.floormod"]
    namespaces["nn"]["sigmoid"] = FUNCTIONS["math.sigmoid"]
    namespaces["nn"]["tanh"] = FUNCTIONS["math.tanh"]
    namespaces["nn"]["softplus"] = FUNCTIONS["math.softplus"]
    namespaces["nn"]["swish"] = FUNCTIONS["nn.silu"]
    namespaces["nn"]["l2_normalize"] = FUNCTIONS["math.l2_normalize"]
    namespaces["nn"]["top_k"] = FUNCTIONS["math.top_k"]
    namespaces["nn"]["max_pool"] = FUNCTIONS["nn.max_pool2d"]
    namespaces["nn"]["avg_pool"] = FUNCTIONS["nn.avg_pool2d"]


_EINSUM, _MESHGRID, _CLIP, _CONFUSION, _MASK = (
    _wgrad.NativeOp(f"tf.{name}", [])
    for name in ("einsum", "meshgrid", "clip_by_global_norm", "math.confusion_matrix", "sequence_mask")
)


def cast(x, dtype, name=None):
    """TensorFlow's `tf.cast`."""
    return convert_to_tensor(x)._cast(as_name(dtype))


def einsum(equation, *inputs):
    """TensorFlow's `tf.einsum`."""
    tensors = {f"x{at}": value for at, value in enumerate(inputs)}
    return _EINSUM.call(tensors, {"equation": equation})[0]


def fill(dims, value, name=None):
    """TensorFlow's `tf.fill`."""
    value = convert_to_tensor(value)
    return FUNCTIONS["broadcast_to"](value, _sizes(dims))


def zeros(shape, dtype="float32", name=None):
    """TensorFlow's `tf.zeros`."""
    return _wgrad.constant(0, as_name(dtype), _sizes(shape))


def ones(shape, dtype="float32", name=None):
    """TensorFlow's `tf.ones`."""
    return _wgrad.constant(1, as_name(dtype), _sizes(shape))


def zeros_like(input, dtype=None, name=None):
    """TensorFlow's `tf.zeros_like`."""
    x = convert_to_tensor(input)
    return zeros(x._shape, dtype or x._dtype)


def ones_like(input, dtype=None, name=None):
    """TensorFlow's `tf.ones_like`."""
    x = convert_to_tensor(input)
    return ones(x._shape, dtype or x._dtype)


def eye(num_rows, num_columns=None, batch_shape=None, dtype="float32", name=None):
    """TensorFlow's `tf.eye`, without `batch_shape`."""
    if batch_shape is not None:
        raise TypeError("eye: batch_shape is not supported; use tf.broadcast_to.")
    import numpy as np

    return _wgrad.constant(np.eye(num_rows, num_columns, dtype="float32"), as_name(dtype))


def range(start, limit=None, delta=1, dtype=None, name=None):
    """TensorFlow's `tf.range`."""
    import numpy as np

    numbers = [float(n) if isinstance(n, float) else int(n) for n in (start, limit, delta) if n is not None]
    values = np.arange(*numbers) if limit is not None else np.arange(0, numbers[0], numbers[-1])
    return _wgrad.constant(values, as_name(dtype))


def linspace(start, stop, num, name=None):
    """TensorFlow's `tf.linspace`."""
    import numpy as np

    return _wgrad.constant(np.linspace(start, stop, num, dtype="float32"), None)


def shape(input, name=None):
    """TensorFlow's `tf.shape`."""
    return _wgrad.constant(list(convert_to_tensor(input)._shape), "int32", None)


def size(input, name=None):
    """TensorFlow's `tf.size`."""
    count = 1
    for length in convert_to_tensor(input)._shape:
        count *= length
    return _wgrad.constant(count, "int32")


def rank(input, name=None):
    """TensorFlow's `tf.rank`."""
    return _wgrad.constant(len(convert_to_tensor(input)._shape), "int32")


def identity(input, name=None):
    """TensorFlow's `tf.identity`."""
    return FUNCTIONS["reshape"](input, list(convert_to_tensor(input)._shape))


def meshgrid(*args, indexing="xy"):
    """TensorFlow's `tf.meshgrid`."""
    x, y = args
    return _MESHGRID.call({"x": x, "y": y}, {"indexing": indexing})


def clip_by_global_norm(t_list, clip_norm, use_norm=None, name=None):
    """TensorFlow's `tf.clip_by_global_norm`."""
    norm = FUNCTIONS["linalg.global_norm"](t_list)
    return _CLIP.call({"xs": list(t_list)}, {"clip_norm": clip_norm}), norm


def clip_by_value(t, clip_value_min, clip_value_max, name=None):
    """TensorFlow's `tf.clip_by_value`."""
    return FUNCTIONS["math.maximum"](FUNCTIONS["math.minimum"](t, clip_value_max), clip_value_min)


def _above(values):
    """One more than the largest of whole numbers."""
    array = convert_to_tensor(values).numpy()
    return int(array.max()) + 1 if array.size else 0


def confusion_matrix(labels, predictions, num_classes=None, name=None):
    """TensorFlow's `tf.math.confusion_matrix`, without weights."""
    if num_classes is None:
        num_classes = max(_above(labels), _above(predictions))
    return _CONFUSION.call({"labels": labels, "predictions": predictions}, {"num_classes": num_classes})[0]


def sequence_mask(lengths, maxlen=None, dtype="bool", name=None):
    """TensorFlow's `tf.sequence_mask`."""
    maxlen = _above(lengths) - 1 if maxlen is None else int(maxlen)
    mask = _MASK.call({"x": lengths}, {"maxlen": maxlen})[0]
    return mask if as_name(dtype) == "bool" else cast(mask, dtype)


def _sizes(shape):
    if isinstance(shape, (Tensor, Variable)):
        shape = shape.numpy().tolist()
    return [int(size) for size in ([shape] if isinstance(shape, int) else shape)]
