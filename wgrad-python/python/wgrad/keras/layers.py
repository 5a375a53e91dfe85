"""Keras's layers: a line for each, with its parameters in Keras's order."""

from .cells import RNN, Cell, GRUCell, LSTMCell, SimpleRNNCell, StackedRNNCells  # noqa: F401
from .host_layers import LAYERS as _HOST_LAYERS
from .input_layer import InputLayer  # noqa: F401
from .layer import Layer
from .native import AdaptedDiscretization, AdaptedNormalization, HeadedAttention, ListAttention, NativeLayer, Recurrent
from .symbols import Input

_TABLE = """
Dense units activation use_bias kernel_initializer bias_initializer kernel_regularizer bias_regularizer
EinsumDense equation output_shape activation bias_axes
Embedding input_dim output_dim embeddings_initializer embeddings_regularizer
Conv1D=Convolution1D filters kernel_size strides padding data_format dilation_rate groups activation use_bias
Conv2D=Convolution2D filters kernel_size strides padding data_format dilation_rate groups activation use_bias
Conv3D=Convolution3D filters kernel_size strides padding data_format dilation_rate groups activation use_bias
Conv1DTranspose=Convolution1DTranspose filters kernel_size strides padding output_padding data_format dilation_rate activation
Conv2DTranspose=Convolution2DTranspose filters kernel_size strides padding output_padding data_format dilation_rate activation
Conv3DTranspose=Convolution3DTranspose filters kernel_size strides padding output_padding data_format dilation_rate activation
DepthwiseConv1D kernel_size strides padding depth_multiplier data_format dilation_rate activation
DepthwiseConv2D kernel_size strides padding depth_multiplier data_format dilation_rate activation
SeparableConv1D=SeparableConvolution1D filters kernel_size strides padding data_format dilation_rate depth_multiplier activation
SeparableConv2D=SeparableConvolution2D filters kernel_size strides padding data_format dilation_rate depth_multiplier activation
MaxPooling1D=MaxPool1D pool_size strides padding data_format
MaxPooling2D=MaxPool2D pool_size strides padding data_format
MaxPooling3D=MaxPool3D pool_size strides padding data_format
AveragePooling1D=AvgPool1D pool_size strides padding data_format
AveragePooling2D=AvgPool2D pool_size strides padding data_format
AveragePooling3D=AvgPool3D pool_size strides padding data_format
GlobalMaxPooling1D=GlobalMaxPool1D data_format keepdims
GlobalMaxPooling2D=GlobalMaxPool2D data_format keepdims
GlobalMaxPooling3D=GlobalMaxPool3D data_format keepdims
GlobalAveragePooling1D=GlobalAvgPool1D data_format keepdims
GlobalAveragePooling2D=GlobalAvgPool2D data_format keepdims
GlobalAveragePooling3D=GlobalAvgPool3D data_format keepdims
BatchNormalization axis momentum epsilon center scale
LayerNormalization axis epsilon center scale
GroupNormalization groups axis epsilon center scale
RMSNormalization axis epsilon
UnitNormalization axis
Dropout rate noise_shape seed
AlphaDropout rate noise_shape seed
GaussianDropout rate seed
GaussianNoise stddev seed
SpatialDropout1D rate seed
SpatialDropout2D rate data_format seed
SpatialDropout3D rate data_format seed
ActivityRegularization l1 l2
Flatten data_format
Reshape target_shape
Permute dims
RepeatVector n
Cropping1D cropping
Cropping2D cropping data_format
Cropping3D cropping data_format
ZeroPadding1D padding
ZeroPadding2D padding data_format
ZeroPadding3D padding data_format
UpSampling1D size
UpSampling2D size data_format interpolation
UpSampling3D size data_format
Identity
Masking mask_value
Activation activation
ReLU max_value negative_slope threshold
LeakyReLU negative_slope
ELU alpha
PReLU alpha_initializer
Softmax axis
Rescaling scale offset
Resizing height width interpolation
CenterCrop height width
RandomFlip mode seed
RandomRotation factor fill_mode interpolation seed
RandomZoom height_factor width_factor fill_mode interpolation seed
RandomTranslation height_factor width_factor fill_mode interpolation seed
RandomContrast factor value_range seed
RandomBrightness factor value_range seed
RandomCrop height width seed
TimeDistributed layer
SpectralNormalization layer power_iterations
Solarization addition_factor threshold_factor value_range seed
AdaptiveAveragePooling1D output_size
AdaptiveAveragePooling2D output_size
AdaptiveAveragePooling3D output_size
AdaptiveMaxPooling1D output_size
AdaptiveMaxPooling2D output_size
AdaptiveMaxPooling3D output_size
CategoryEncoding num_tokens output_mode
"""

_MERGING = """
Add
Subtract
Multiply
Average
Maximum
Minimum
Concatenate axis
Dot axes normalize
"""


_RECURRENT = """
LSTM units activation recurrent_activation use_bias
GRU units activation recurrent_activation use_bias
SimpleRNN units activation use_bias
Bidirectional layer merge_mode weights backward_layer
ConvLSTM1D filters kernel_size strides padding
ConvLSTM2D filters kernel_size strides padding
ConvLSTM3D filters kernel_size strides padding
"""

_HEADED = """
MultiHeadAttention num_heads key_dim value_dim dropout use_bias output_shape attention_axes
GroupQueryAttention=GroupedQueryAttention head_dim num_query_heads num_key_value_heads dropout use_bias
"""

_ATTENTION = """
Attention use_scale score_mode dropout seed
AdditiveAttention use_scale dropout
"""


def _classes(table, base, kind=None):
    made = {}
    for line in table.strip().splitlines():
        names, *parameters = line.split()
        name, *aliases = names.split("=")
        # A number stands for a window of equal sizes.
        digits = [int(letter) for letter in name if letter.isdigit()]
        body = {
            "_class": name,
            "_parameters": tuple(parameters),
            "_sizes": digits[0] if digits else None,
            "__module__": __name__,
            "__doc__": f"Keras's `{name}`: {', '.join(parameters) or 'no options in order'}.",
        }
        if kind is not None:
            body["_kind"] = kind
        made_class = type(name, (base,), body)
        for name in (name, *aliases):
            made[name] = made_class
    return made


globals().update(_classes(_TABLE, NativeLayer))
globals().update(_classes(_MERGING, NativeLayer, "many"))
globals().update(_classes(_RECURRENT, Recurrent))
globals().update(_classes(_HEADED, HeadedAttention))
globals().update(_classes(_ATTENTION, ListAttention))
globals().update(_HOST_LAYERS)
globals().update(_classes("Normalization axis mean variance invert", AdaptedNormalization))
globals().update(_classes("Discretization bin_boundaries num_bins epsilon output_mode", AdaptedDiscretization))


class Lambda(Layer):
    """A layer that calls a function."""

    def __init__(self, function, output_shape=None, mask=None, arguments=None, name=None, **options):
        super().__init__(name=name, **options)
        self.function, self.arguments = function, arguments or {}

    def call(self, inputs):
        return self.function(inputs, **self.arguments)

    def get_config(self):
        """The options, with the name of the function."""
        from .serialization import serialize_keras_object

        if getattr(self.function, "__name__", "<lambda>") == "<lambda>":
            raise ValueError("Lambda: a lambda has no name by which a file could have it. Define and register a function, or use save_weights.")
        return super().get_config() | {"function": serialize_keras_object(self.function), "arguments": self.arguments}

    @classmethod
    def from_config(cls, config):
        """A layer with the options of a config, whose function is registered."""
        from .serialization import deserialize_keras_object

        function = deserialize_keras_object(config["function"]) if isinstance(config["function"], (dict, str)) else config["function"]
        if not callable(function):
            raise TypeError(f"Lambda: the function {function!r} is not known. Register it, or pass it in custom_objects.")
        known = ("function", "output_shape", "mask", "arguments", "name", "trainable", "dtype")
        return cls(**{**{key: config[key] for key in known if key in config}, "function": function})


def _function(name):
    def merge(inputs, **options):
        return globals()[name](**options)(inputs)

    merge.__name__ = name.lower()
    merge.__doc__ = f"Calls `{name}` once."
    return merge


add, subtract, multiply, average, maximum, minimum, concatenate, dot = map(
    _function, ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate", "Dot")
)

# The functions of `keras.activations` that are not among TensorFlow's.
ACTIVATIONS = """celu glu hard_shrink hard_sigmoid hard_silu hard_swish hard_tanh log_sigmoid mish soft_shrink sparse_plus sparse_sigmoid
sparsemax squareplus tanh_shrink""".split()


def activation_of(name):
    """The function of an activation."""

    def activation(x):
        return globals()["Activation"](name)(x)

    activation.__name__ = activation.__qualname__ = name
    activation.__doc__ = f"Keras's `keras.activations.{name}`."
    return activation
