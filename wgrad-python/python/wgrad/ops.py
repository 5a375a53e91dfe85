"""Ops: for each of TensorFlow's functions its parameters, and which of them are tensors.

A line of the table has the function's name and its parameters in TensorFlow's order. `*` marks a tensor, `**` a list of
tensors, `~` a parameter that changes nothing here, as devices hold 32 bits, `!` one that has the given value, or one of a tuple of
them, `>` the dtype of the result, and `-` one that is not supported. `key:parameter` gives the key of the native call where it is
called differently, and `=` a default that the native call lacks. All parameters after the tensors are optional; the native call says
what is missing.
"""

import ast
import collections
import functools
import inspect

from . import _wgrad
from .dtypes import DType, as_name
from .errors import InvalidArgumentError, InvalidTypeError
from .tensor import Tensor, Variable, convert_to_tensor

Symbol = _wgrad.Symbol
# Keras's part of the package sets it: what a function does with symbols of a model that is being defined.
SYMBOLIC = None
# `wgrad.ragged` sets it: what functions do with ragged tensors, and whether there are some.
RAGGED = None

_TABLE = """
experimental.numpy.logaddexp *x1 *x2
experimental.numpy.outer *a:x1 *b:x2
experimental.numpy.tril *m:x k=0
experimental.numpy.triu *m:x k=0
keras.activations.celu *x alpha=1.0
keras.activations.glu *x axis=-1
keras.activations.hard_shrink *x threshold=0.5
keras.activations.hard_sigmoid *x
keras.activations.hard_silu *x
keras.activations.hard_tanh *x
keras.activations.mish *x
keras.activations.soft_shrink *x threshold=0.5
keras.activations.sparse_plus *x
keras.activations.sparse_sigmoid *x
keras.activations.squareplus *x b=4
keras.activations.tanh_shrink *x
keras.activations.threshold *x threshold default_value
keras.ops.layer_normalization *x *gamma=None *beta=None axis=-1 epsilon=1e-07
keras.ops.nan_to_num *x nan=0.0 posinf neginf
keras.ops.rms_normalization *x *gamma:scale=None axis=-1 epsilon=1e-07
signal.dct *input type=2 n !axis=-1 norm
signal.idct *input type=2 n !axis=-1 norm
signal.frame *signal frame_length frame_step pad_end=False pad_value=0.0 axis=-1
signal.overlap_and_add *signal frame_step
signal.hann_window window_length periodic=True >dtype
signal.hamming_window window_length periodic=True >dtype
signal.kaiser_window window_length beta=12.0 >dtype
signal.vorbis_window window_length >dtype
signal.linear_to_mel_weight_matrix num_mel_bins=20 num_spectrogram_bins=129 sample_rate=8000.0 lower_edge_hertz=125.0 upper_edge_hertz=3800.0 >dtype
signal.mfccs_from_log_mel_spectrograms *log_mel_spectrograms
histogram_fixed_width_bins *values value_range nbins=100 >dtype
image.crop_and_resize *image *boxes *box_indices crop_size method="bilinear" extrapolation_value=0.0
image.extract_patches *x:images sizes strides rates padding
image.ssim_multiscale *img1 *img2 max_val power_factors filter_size=11 filter_sigma=1.5 k1=0.01 k2=0.03
math.segment_prod *x:data *ids:segment_ids
nn.atrous_conv2d *x:value *w:filters rate padding
nn.max_pool_with_argmax *x:input ksize strides padding !data_format='NHWC' ~output_dtype include_batch_in_index=False
nn.normalize_moments *counts *mean_ss *variance_ss -
nn.sufficient_statistics *x axes - -
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
math.argmax *x:input axis ~output_type
math.argmin *x:input axis ~output_type
math.count_nonzero *x:input axis
math.l2_normalize *x axis epsilon
math.cumsum *x axis exclusive reverse
math.cumprod *x axis exclusive reverse
math.top_k *x:input k sorted ~index_type
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
math.unsorted_segment_prod *x:data *ids:segment_ids num_segments
math.unsorted_segment_sqrt_n *x:data *ids:segment_ids num_segments
math.lgamma *x
math.digamma *x
math.erfinv *x
math.erfcinv *x
math.ndtri *x
math.bessel_i0 *x
math.bessel_i0e *x
math.bessel_i1 *x
math.bessel_i1e *x
math.reciprocal_no_nan *x
math.multiply_no_nan *x *y
math.xdivy *x *y
math.xlog1py *x *y
math.nextafter *x1 *x2
math.polygamma *a *x
math.zeta *x *q
math.lbeta *x
math.in_top_k *targets *predictions k
math.polyval **coeffs *x
math.cumulative_logsumexp *x axis exclusive reverse
math.is_non_decreasing *x
math.is_strictly_increasing *x
math.invert_permutation *x
bitwise.bitwise_and *x *y
bitwise.bitwise_or *x *y
bitwise.bitwise_xor *x *y
bitwise.left_shift *x *y
bitwise.right_shift *x *y
bitwise.invert *x
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
nn.weighted_moments *x axes *frequency_weights=None keepdims
nn.convolution *x:input *w:filters strides padding='VALID' !data_format=('NWC','NHWC','NDHWC') dilations
nn.pool *x:input window_shape pooling_type strides padding='VALID' !data_format=('NWC','NHWC','NDHWC') dilations
nn.conv1d *x:input *w:filters stride padding !data_format='NWC'
nn.conv2d *x:input *w:filters strides padding !data_format='NHWC' dilations
nn.conv3d *x:input *w:filters strides padding !data_format='NDHWC'
nn.depthwise_conv2d *x:input *w:filter strides padding !data_format='NHWC' dilations
nn.separable_conv2d *x:input *dw:depthwise_filter *pw:pointwise_filter strides padding !data_format='NHWC'
nn.conv1d_transpose *x:input *w:filters output_shape strides padding='SAME' !data_format='NWC'
nn.conv2d_transpose *x:input *w:filters output_shape strides padding='SAME' !data_format='NHWC'
nn.conv3d_transpose *x:input *w:filters output_shape strides padding='SAME' !data_format='NDHWC'
nn.max_pool3d *x:input ksize strides padding !data_format='NDHWC'
nn.avg_pool3d *x:input ksize strides padding !data_format='NDHWC'
nn.batch_normalization *x *mean *var:variance *beta:offset *gamma:scale epsilon:variance_epsilon
nn.crelu *features axis
nn.zero_fraction *value
nn.log_poisson_loss *targets *log_input compute_full_loss
nn.bias_add *x:value *b:bias !data_format=('N...C','NWC','NHWC','NDHWC')
nn.max_pool2d *x:input ksize strides padding !data_format='NHWC'
nn.avg_pool2d *x:input ksize strides padding !data_format='NHWC'
nn.max_pool1d *x:input ksize strides padding !data_format='NWC'
nn.avg_pool1d *x:input ksize strides padding !data_format='NWC'
nn.space_to_depth *x:input block_size !data_format='NHWC'
nn.depth_to_space *x:input block_size !data_format='NHWC'
nn.softmax_cross_entropy_with_logits *labels *logits
nn.sparse_softmax_cross_entropy_with_logits *labels *logits
nn.sigmoid_cross_entropy_with_logits *labels *logits
nn.weighted_cross_entropy_with_logits *labels *logits pos_weight
nn.l2_loss *x:t
nn.local_response_normalization *x:input depth_radius bias alpha beta
nn.embedding_lookup *params *ids !max_norm=None
linalg.matmul *a *b transpose_a transpose_b transpose_a:adjoint_a transpose_b:adjoint_b ~a_is_sparse ~b_is_sparse
linalg.matvec *a *b
linalg.diag *x:diagonal
linalg.diag_part *x:input
linalg.trace *x
linalg.band_part *x:input num_lower num_upper
linalg.global_norm **xs:t_list
linalg.inv *input adjoint
linalg.det *input
linalg.slogdet *input
linalg.logdet *matrix
linalg.solve *matrix *rhs adjoint
linalg.cholesky *input
linalg.cholesky_solve *chol *rhs
linalg.triangular_solve *matrix *rhs lower adjoint
linalg.lstsq *matrix *rhs l2_regularizer fast
linalg.qr *input full_matrices
linalg.svd *tensor full_matrices
linalg.eigh *tensor
linalg.eigvalsh *tensor
linalg.lu *input ~output_idx_type
linalg.lu_solve *lower_upper *perm *rhs ~validate_args
linalg.expm *input
linalg.pinv *a
linalg.matrix_rank *a
linalg.cross *a *b
linalg.set_diag *input *diagonal
linalg.adjoint *matrix
linalg.matrix_transpose *a ~conjugate
linalg.tensor_diag *diagonal
linalg.tensor_diag_part *input
norm *x:tensor ord axis
tensordot *a *b axes
gather *params *indices ~validate_indices axis batch_dims
gather_nd *params *indices batch_dims !bad_indices_policy=''
scatter_nd *indices *updates shape !bad_indices_policy=''
tensor_scatter_nd_update *tensor *indices *updates
tensor_scatter_nd_add *tensor *indices *updates !bad_indices_policy=''
tensor_scatter_nd_sub *tensor *indices *updates !bad_indices_policy=''
tensor_scatter_nd_max *tensor *indices *updates !bad_indices_policy=''
tensor_scatter_nd_min *tensor *indices *updates !bad_indices_policy=''
boolean_mask *x:tensor *mask
one_hot *x:indices depth on_value=1.0 off_value=0.0 axis=-1 >dtype
searchsorted *a:sorted_sequence *v:values side ~out_type
concat **xs:values axis
split *x:value num_or_size_splits axis ~num
stack **xs:values axis
unstack *x:value ~num axis
slice *x:input_ begin size
pad *x:tensor paddings mode='CONSTANT' constant_values
tile *x:input multiples
repeat *x:input repeats axis
reverse *x:tensor axis
reverse_sequence *x:input *seq_lengths seq_axis batch_axis
saturate_cast *value dtype
histogram_fixed_width *values value_range nbins >dtype
truncatediv *x *y
unique *x ~out_idx
unique_with_counts *x ~out_idx
truncatemod *x *y
space_to_batch *x:input block_shape paddings
batch_to_space *x:input block_shape crops
roll *x:input shift axis
transpose *x:a perm ~conjugate
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
image.adjust_gamma *x:image gamma=1.0 gain=1.0
image.rgb_to_yuv *x:images
image.yuv_to_rgb *x:images
image.rgb_to_yiq *x:images
image.yiq_to_rgb *x:images
image.psnr *a *b max_val
image.ssim *img1 *img2 max_val !filter_size=11 !filter_sigma=1.5 !k1=0.01 !k2=0.03 !return_index_map=False
image.sobel_edges *image
image.total_variation *images
image.image_gradients *image
image.convert_image_dtype *x:image dtype saturate
"""

# Functions that TensorFlow has at its top, too.
_TOP = """abs add argmax argmin acos acosh asin asinh atan atan2 atanh ceil cos cosh cumsum divide equal exp floor greater
greater_equal less less_equal logical_and logical_not logical_or maximum minimum multiply negative not_equal pow reduce_all
reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum round sigmoid sign sin sinh sqrt square
subtract tan tanh add_n""".split()

# The names of several results.
_TUPLES = {
    path: collections.namedtuple(kind, names)
    for path, kind, names in (
        ("math.top_k", "TopKV2", "values indices"),
        ("unique", "Unique", "y idx"),
        ("unique_with_counts", "UniqueWithCounts", "y idx count"),
        ("linalg.eigh", "SelfAdjointEigV2", "e v"),
        ("linalg.lu", "Lu", "lu p"),
        ("linalg.qr", "Qr", "q r"),
        ("linalg.slogdet", "LogMatrixDeterminant", "sign log_abs_determinant"),
        ("linalg.svd", "Svd", "s u v"),
        ("nn.max_pool_with_argmax", "MaxPoolWithArgmax", "output argmax"),
    )
}

# The order of the tensors in which TensorFlow's arguments go to the native call, where both differ.
_SHORT = {"ksize", "strides", "dilations", "sizes", "rates"}


# Functions that compute bytes in 32 bits, as their kernels have no bytes: "bytes" if the first result has bytes again, cut to 8 bits as in
# TensorFlow, and "same" if not. Truth values are bytes here, where TensorFlow has the function for them.
_OF_BYTES = {
    **dict.fromkeys(
        """math.reduce_sum math.reduce_mean math.reduce_max math.reduce_min math.reduce_prod math.cumsum math.cumprod sort math.square
        math.top_k math.round nn.relu math.add math.subtract math.multiply math.maximum math.minimum math.floordiv math.floormod
        truncatediv bitwise.bitwise_and bitwise.bitwise_or bitwise.bitwise_xor bitwise.left_shift bitwise.right_shift
        bitwise.invert math.add_n gather gather_nd boolean_mask scatter_nd tensor_scatter_nd_update tensor_scatter_nd_add
        tensor_scatter_nd_sub tensor_scatter_nd_max tensor_scatter_nd_min math.segment_sum math.segment_max math.segment_min
        math.unsorted_segment_sum math.unsorted_segment_max math.unsorted_segment_min math.unsorted_segment_prod unique
        unique_with_counts pad image.pad_to_bounding_box image.resize_with_crop_or_pad""".split(),
        "bytes",
    ),
    **dict.fromkeys(
        """math.argmax math.argmin argsort searchsorted math.divide math.less math.less_equal math.greater math.greater_equal math.equal
        math.not_equal""".split(),
        "same",
    ),
}
_OF_TRUTH = {"math.argmax", "math.argmin", "unique", "unique_with_counts", "pad", "image.pad_to_bounding_box", "image.resize_with_crop_or_pad"}


def _narrow_dtype(value):
    """The dtype of the first value of bytes or truth values."""
    if isinstance(value, (list, tuple)):
        return next(filter(None, map(_narrow_dtype, value)), None)
    if isinstance(value, bool):
        return "bool"
    dtype = getattr(value, "_dtype", None) or getattr(getattr(value, "dtype", None), "name", None)
    return dtype if dtype in ("uint8", "bool") else None


def _widened(call, path, arguments, named):
    """The results of a function of bytes or of truth values, computed in 32 bits."""
    dtype = _narrow_dtype([*arguments, *named.values()])

    def wide(value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(wide, value)) if _narrow_dtype(value) == dtype else value
        return convert_to_tensor(value)._cast("int32") if _narrow_dtype(value) == dtype else value

    results = call(*map(wide, arguments), **{key: wide(value) for key, value in named.items()})
    if _OF_BYTES[path] == "same":
        return results
    if isinstance(results, tuple):
        return type(results)(results[0]._cast(dtype), *results[1:])
    return results._cast(dtype)


def _spatial(name, key, value):
    """Window sizes and strides without the axes of the batch and the channels."""
    if key in _SHORT and isinstance(value, (list, tuple)) and len(value) == 4 and ("2d" in name or name in ("image.extract_patches", "nn.max_pool_with_argmax")):
        return list(value[1:3])
    return value


def _make(line):
    path, *parts = line.split()
    name = path.rpartition(".")[2]
    native = path if path.startswith("keras.") else f"tf.{path}"
    fields, signature, defaults, allowed, needed_tensors = [], [], {}, {}, set()
    tensors = sum(part.startswith("*") for part in parts)
    for part in parts:
        kind = "list" if part.startswith("**") else "tensor" if part.startswith("*") else "attribute"
        kind = {"~": "ignored", "!": "fixed", ">": "dtype"}.get(part[0], kind)
        part, _, default = part.lstrip("~!>").partition("=")
        key, _, parameter = part.lstrip("*").partition(":")
        if part == "-":
            key, parameter, kind = None, f"_unused{len(fields)}", "unused"
        fields.append((kind, key, parameter or key))
        value = ast.literal_eval(default) if default else None
        if kind == "fixed":
            allowed[parameter or key] = value if isinstance(value, tuple) else (value,)
            value = None if isinstance(value, tuple) else value
        defaults[parameter or key] = value
        if kind in ("tensor", "list") and not default:
            needed_tensors.add(parameter or key)
    for kind, _, parameter in fields:
        needed = parameter in needed_tensors
        default = inspect.Parameter.empty if needed else defaults[parameter]
        signature.append(inspect.Parameter(parameter, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
    signature.append(inspect.Parameter("name", inspect.Parameter.KEYWORD_ONLY, default=None))
    signature = inspect.Signature(signature)
    simple = [key for kind, key, _ in fields]
    only_tensors = all(kind == "tensor" for kind, _, _ in fields)
    # A plain number takes the dtype of the other tensors; these are whole numbers.
    whole = {at for at, (kind, key, _) in enumerate(fields) if kind == "tensor" and key in ("ids", "indices")}
    op = _wgrad.NativeOp(native, [key for key in simple if key is not None])
    tuple_of = _TUPLES.get(path)
    narrow = {"uint8": path in _OF_BYTES, "bool": path in _OF_TRUTH}

    def function(*arguments, **named):
        try:
            if whole and any(type(value) is int for value in (*arguments, *named.values())):
                plain = signature.bind(*arguments, **named).arguments
                numbers = {fields[at][2] for at in whole}
                named = {key: convert_to_tensor(v) if key in numbers and type(v) is int else v for key, v in plain.items()}
                arguments = ()
            if only_tensors and not named and len(arguments) == tensors:
                for argument in arguments:
                    if type(argument) is Symbol:
                        return SYMBOLIC(function, arguments, named)
                made = op(*arguments)
                return made if tuple_of is None else tuple_of(*made)
            bound = signature.bind(*arguments, **named).arguments
            given, attributes, result = {}, {}, None
            for kind, key, parameter in fields:
                value = bound.get(parameter, defaults[parameter])
                if value is None or kind == "ignored":
                    continue
                if kind == "fixed":
                    if parameter in bound and value not in allowed[parameter]:
                        raise TypeError(f"{name}: {parameter} is {value!r}; only {' and '.join(map(repr, allowed[parameter]))} is supported.")
                    continue
                if kind == "dtype":
                    result = as_name(value)
                    continue
                if kind == "unused":
                    raise TypeError(f"{name}: this argument is not supported; leave it out.")
                if kind == "tensor":
                    if type(value) is Symbol:
                        return SYMBOLIC(function, arguments, named)
                    given[key] = value
                elif kind == "list":
                    given[key] = list(value)
                    if any(type(item) is Symbol for item in given[key]):
                        return SYMBOLIC(function, arguments, named)
                elif value is not False or key not in attributes:
                    value = as_name(value) if isinstance(value, (DType, type)) else value
                    attributes[key] = _spatial(path, key, value)
            results = op.call(given, attributes)
            if result is not None:
                results = [x._cast(result) for x in results]
            if tuple_of is not None:
                return tuple_of(*results)
            return results[0] if len(results) == 1 and name not in ("split", "unstack") else results
        except (InvalidTypeError, InvalidArgumentError) as error:
            if RAGGED is not None and RAGGED[1](arguments, named):
                return RAGGED[0](path, function, arguments, named)
            if not isinstance(error, InvalidTypeError) or not narrow.get(_narrow_dtype([*arguments, *named.values()])):
                raise
        # In 32 bits, which the call has.
        return _widened(function, path, arguments, named)

    function.__name__ = function.__qualname__ = name
    function.__signature__ = signature
    function.__doc__ = f"TensorFlow's `tf.{path}`."
    # Which parameters are lists, for the type stubs.
    function.lists = {parameter for kind, _, parameter in fields if kind == "list"}
    return path, function


FUNCTIONS = dict(_make(line) for line in _TABLE.strip().splitlines())


def install(namespaces):
    """Puts each function into its namespace: `{"": .., "math": .., ..}`."""
    for path, function in FUNCTIONS.items():
        place, _, name = path.rpartition(".")
        # Functions of Keras and of NumPy are in `keras.ops`.
        if place in namespaces:
            namespaces[place][name] = function
    for name in _TOP:
        namespaces[""].setdefault(name, FUNCTIONS[f"math.{name}"])
    top = namespaces[""]
    from . import functions

    functions.__dict__.update({path: function for path, function in FUNCTIONS.items() if "." not in path})
    functions.__dict__.update({name: FUNCTIONS[f"math.{name}"] for name in _TOP}, matmul=FUNCTIONS["linalg.matmul"])
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


def _of_symbols(function):
    """The same function, also of symbols."""

    @functools.wraps(function)
    def call(*arguments, **named):
        if any(type(value) is Symbol for value in (*arguments, *named.values())):
            return SYMBOLIC(call, arguments, named)
        try:
            return function(*arguments, **named)
        except (InvalidTypeError, InvalidArgumentError):
            if RAGGED is None or not RAGGED[1](arguments, named):
                raise
        return RAGGED[0](function.__name__, function, arguments, named)

    return call


_WHERE = _wgrad.NativeOp("tf.where", ["cond", "x", "y"])
_EINSUM, _MESHGRID, _CLIP, _CONFUSION, _MASK = (
    _wgrad.NativeOp(f"tf.{name}", [])
    for name in ("einsum", "meshgrid", "clip_by_global_norm", "math.confusion_matrix", "sequence_mask")
)


@_of_symbols
def cast(x, dtype, name=None):
    """TensorFlow's `tf.cast`."""
    return convert_to_tensor(x)._cast(as_name(dtype))


@_of_symbols
def einsum(equation, *inputs, optimize="greedy", name=None):
    """TensorFlow's `tf.einsum`; the order of the products is always chosen by their sizes."""
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


@_of_symbols
def zeros_like(input, dtype=None, name=None):
    """TensorFlow's `tf.zeros_like`."""
    x = convert_to_tensor(input)
    return zeros(x._shape, dtype or x._dtype)


@_of_symbols
def ones_like(input, dtype=None, name=None):
    """TensorFlow's `tf.ones_like`."""
    x = convert_to_tensor(input)
    return ones(x._shape, dtype or x._dtype)


def eye(num_rows, num_columns=None, batch_shape=None, dtype="float32", name=None):
    """TensorFlow's `tf.eye`."""
    import numpy as np

    made = _wgrad.constant(np.eye(int(num_rows), None if num_columns is None else int(num_columns), dtype="float32"), as_name(dtype))
    return made if batch_shape is None else FUNCTIONS["broadcast_to"](made, [*_sizes(batch_shape), *made._shape])


def range(start, limit=None, delta=1, dtype=None, name=None):
    """TensorFlow's `tf.range`."""
    import numpy as np

    numbers = [float(n) if isinstance(n, float) else int(n) for n in (start, limit, delta) if n is not None]
    values = np.arange(*numbers) if limit is not None else np.arange(0, numbers[0], numbers[-1])
    return _wgrad.constant(values, as_name(dtype))


def linspace(start, stop, num, name=None, axis=0):
    """TensorFlow's `tf.linspace`: numbers at equal distances, which begin with `start` and end with `stop`, in an axis of the result."""
    import numpy as np

    num = int(num)
    if num < 1:
        raise ValueError(f"linspace: num is {num}; it must be at least 1.")
    if not any(isinstance(bound, (Tensor, Variable)) for bound in (start, stop)) and np.ndim(start) == np.ndim(stop) == 0:
        return _wgrad.constant(np.linspace(start, stop, num, dtype="float32"), None)
    start, stop = (x if x._dtype.startswith("float") else x._cast("float32") for x in map(convert_to_tensor, (start, stop)))
    start, stop = start + zeros_like(stop), stop + zeros_like(start)
    axis = axis % (len(start._shape) + 1)
    first, last = FUNCTIONS["expand_dims"](start, axis), FUNCTIONS["expand_dims"](stop, axis)
    if num == 1:
        return first
    steps = np.arange(1, num - 1, dtype=start._dtype).reshape([-1] + [1] * (len(start._shape) - axis))
    return FUNCTIONS["concat"]([first, first + (last - first) / (num - 1) * steps, last], axis)


@_of_symbols
def shape(input, out_type="int32", name=None):
    """TensorFlow's `tf.shape`. The sizes are `int32`, as devices hold 32 bits."""
    return _wgrad.constant(list(convert_to_tensor(input)._shape), "int32", None)


@_of_symbols
def size(input, out_type="int32", name=None):
    """TensorFlow's `tf.size`. The number is `int32`, as devices hold 32 bits."""
    count = 1
    for length in convert_to_tensor(input)._shape:
        count *= length
    return _wgrad.constant(count, "int32")


@_of_symbols
def rank(input, name=None):
    """TensorFlow's `tf.rank`."""
    return _wgrad.constant(len(convert_to_tensor(input)._shape), "int32")


@_of_symbols
def identity(input, name=None):
    """TensorFlow's `tf.identity`."""
    return FUNCTIONS["reshape"](input, list(convert_to_tensor(input)._shape))


def meshgrid(*args, indexing="xy"):
    """TensorFlow's `tf.meshgrid`."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing is {indexing!r}; it must be 'xy' or 'ij'.")
    return _MESHGRID.call({f"x{at}": x for at, x in enumerate(args)}, {"indexing": indexing})


def clip_by_global_norm(t_list, clip_norm, use_norm=None, name=None):
    """TensorFlow's `tf.clip_by_global_norm`: tensors that are made smaller together if their norm is above `clip_norm`, and the norm. `None`
    stays `None`."""
    given = [tensor for tensor in t_list if tensor is not None]
    if use_norm is None:
        norm = FUNCTIONS["linalg.global_norm"](given)
        made = _CLIP.call({"xs": given}, {"clip_norm": clip_norm})[: len(given)]
    else:
        norm = convert_to_tensor(use_norm, "float32")
        scale = clip_norm * FUNCTIONS["math.minimum"](1.0 / norm, 1.0 / clip_norm)
        made = [convert_to_tensor(tensor) * cast(scale, convert_to_tensor(tensor)._dtype) for tensor in given]
    made = iter(made)
    return [None if tensor is None else next(made) for tensor in t_list], norm


@_of_symbols
def clip_by_value(t, clip_value_min, clip_value_max, name=None):
    """TensorFlow's `tf.clip_by_value`."""
    return FUNCTIONS["math.maximum"](FUNCTIONS["math.minimum"](t, clip_value_max), clip_value_min)


def _above(values):
    """One more than the largest of whole numbers."""
    array = convert_to_tensor(values).numpy()
    return int(array.max()) + 1 if array.size else 0


def confusion_matrix(labels, predictions, num_classes=None, weights=None, dtype="int32", name=None):
    """TensorFlow's `tf.math.confusion_matrix`: for each label and each prediction their number, or the sum of their weights."""
    num_classes = None if num_classes is None else int(num_classes)
    if num_classes is None:
        num_classes = max(_above(labels), _above(predictions))
    if weights is None:
        return _CONFUSION.call({"labels": labels, "predictions": predictions}, {"num_classes": num_classes})[0]._cast(as_name(dtype))
    weights, places = convert_to_tensor(weights), convert_to_tensor(labels) * num_classes + convert_to_tensor(predictions)
    sums = FUNCTIONS["math.unsorted_segment_sum"](weights, places, num_classes * num_classes)
    return FUNCTIONS["reshape"](sums, [num_classes, num_classes])._cast(as_name(dtype))


@_of_symbols
def sequence_mask(lengths, maxlen=None, dtype="bool", name=None):
    """TensorFlow's `tf.sequence_mask`."""
    maxlen = _above(lengths) - 1 if maxlen is None else int(maxlen)
    mask = _MASK.call({"x": lengths}, {"maxlen": maxlen})[0]
    return mask if as_name(dtype) == "bool" else cast(mask, dtype)


@_of_symbols
def where(condition, x=None, y=None, name=None):
    """TensorFlow's `tf.where`. Without `x` and `y`: the indices of true values, which are read on the host."""
    if x is None and y is None:
        import numpy as np

        return _wgrad.constant(np.argwhere(convert_to_tensor(condition).numpy()).astype("int32"), "int32")
    if x is None or y is None:
        raise ValueError("where: give both x and y, or neither.")
    return _WHERE(condition, x, y)


@_of_symbols
def ensure_shape(x, shape, name=None):
    """TensorFlow's `tf.ensure_shape`; `None` stands for any size."""
    x = convert_to_tensor(x)
    sizes = list(x._shape)
    if len(sizes) != len(shape) or any(wanted is not None and int(wanted) != size for wanted, size in zip(shape, sizes)):
        raise ValueError(f"ensure_shape: the tensor is {sizes}; it must be {list(shape)}.")
    return x


def py_function(func, inp, Tout=None, name=None):
    """TensorFlow's `tf.py_function`, which calls `func` with tensors. In a traced function, each run calls it, and `Tout` must be a
    `tf.TensorSpec` or a list of them."""
    from .control_flow import host_function

    return host_function(func, inp, Tout)


def _sizes(shape):
    if isinstance(shape, (Tensor, Variable)):
        shape = shape.numpy().tolist()
    return [int(size) for size in ([shape] if isinstance(shape, int) else shape)]
