"""Keras's layers: a line for each, with its parameters in Keras's order."""

from .. import _wgrad
from .base import Input, Layer, NativeLayer, _leaves

_TABLE = """
Dense units activation use_bias kernel_initializer bias_initializer kernel_regularizer bias_regularizer
EinsumDense equation output_shape activation bias_axes
Embedding input_dim output_dim embeddings_initializer embeddings_regularizer
Conv1D filters kernel_size strides padding data_format dilation_rate groups activation use_bias
Conv2D filters kernel_size strides padding data_format dilation_rate groups activation use_bias
Conv3D filters kernel_size strides padding data_format dilation_rate groups activation use_bias
Conv1DTranspose filters kernel_size strides padding output_padding data_format dilation_rate activation
Conv2DTranspose filters kernel_size strides padding output_padding data_format dilation_rate activation
Conv3DTranspose filters kernel_size strides padding output_padding data_format dilation_rate activation
DepthwiseConv1D kernel_size strides padding depth_multiplier data_format dilation_rate activation
DepthwiseConv2D kernel_size strides padding depth_multiplier data_format dilation_rate activation
SeparableConv1D filters kernel_size strides padding data_format dilation_rate depth_multiplier activation
SeparableConv2D filters kernel_size strides padding data_format dilation_rate depth_multiplier activation
MaxPooling1D=MaxPool1D pool_size strides padding
MaxPooling2D=MaxPool2D pool_size strides padding
MaxPooling3D=MaxPool3D pool_size strides padding
AveragePooling1D=AvgPool1D pool_size strides padding
AveragePooling2D=AvgPool2D pool_size strides padding
AveragePooling3D=AvgPool3D pool_size strides padding
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
Normalization axis mean variance
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
LSTM units activation recurrent_activation use_bias
GRU units activation recurrent_activation use_bias
SimpleRNN units activation use_bias
Bidirectional layer merge_mode weights backward_layer
TimeDistributed layer
CategoryEncoding num_tokens output_mode
Discretization bin_boundaries num_bins epsilon output_mode
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


def _classes(table, merges):
    made = {}
    for line in table.strip().splitlines():
        names, *parameters = line.split()
        name, *aliases = names.split("=")
        # A number stands for a window of equal sizes.
        digits = [int(letter) for letter in name if letter.isdigit()]
        body = {
            "_class": name,
            "_parameters": tuple(parameters),
            "_merges": merges,
            "_sizes": digits[0] if digits else None,
            "__module__": __name__,
            "__doc__": f"Keras's `{name}`: {', '.join(parameters) or 'no options in order'}.",
        }
        kind = type(name, (NativeLayer,), body)
        for name in (name, *aliases):
            made[name] = kind
    return made


globals().update(_classes(_TABLE, False))
globals().update(_classes(_MERGING, True))


class InputLayer(Layer):
    """The input of a stack: `Sequential([InputLayer(shape=(4,)), ..])`."""

    def __new__(cls, input_shape=None, shape=None, batch_size=None, dtype=None, name=None, batch_shape=None):
        return Input(shape if shape is not None else input_shape, batch_size, dtype, name, batch_shape)


class Lambda(Layer):
    """A layer that calls a function."""

    def __init__(self, function, name=None, arguments=None):
        super().__init__(name=name)
        self.function, self.arguments = function, arguments or {}

    def call(self, inputs):
        return self.function(inputs, **self.arguments)


def _function(name):
    def merge(inputs, **options):
        return globals()[name](**options)(inputs)

    merge.__name__ = name.lower()
    merge.__doc__ = f"Calls `{name}` once."
    return merge


add, subtract, multiply, average, maximum, minimum, concatenate, dot = map(
    _function, ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate", "Dot")
)
