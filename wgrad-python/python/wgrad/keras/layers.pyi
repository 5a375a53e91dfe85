# Written by stubs.py from the tables of the package.
from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import DTypeLike
from .cells import (
    RNN as RNN,
    Cell as Cell,
    GRUCell as GRUCell,
    LSTMCell as LSTMCell,
    SimpleRNNCell as SimpleRNNCell,
    StackedRNNCells as StackedRNNCells,
)
from .composed_layers import (
    AutoContrast as AutoContrast,
    InputSpec as InputSpec,
    Pipeline as Pipeline,
    ReversibleEmbedding as ReversibleEmbedding,
    Wrapper as Wrapper,
)
from .host_layers import CrossingLayer, HostLayer, LearningLayer, VectorizingLayer
from .layer import Layer as Layer
from .native import AdaptedDiscretization, AdaptedNormalization, HeadedAttention, ListAttention, NativeLayer as NativeLayer, Recurrent
from .objects import Initializer, Schedule, SeedGenerator
from .serialization import serialize_keras_object as serialize
from .symbols import Input as Input, Symbol

_Activation = str | Callable[..., Any] | None
_Axis = int | Sequence[int]
_Window = int | Sequence[int]

class Dense(NativeLayer):
    def __init__(
        self, units: int, activation: _Activation = ..., use_bias: bool = ..., kernel_initializer: Initializer | str = ..., bias_initializer: Initializer | str = ..., kernel_regularizer: Any = ..., bias_regularizer: Any = ..., *, activity_regularizer: Any = ..., bias_constraint: Any = ..., dtype: DTypeLike = ..., kernel_constraint: Any = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class EinsumDense(NativeLayer):
    def __init__(
        self, equation: str, output_shape: Any, activation: _Activation = ..., bias_axes: Any = ..., *, activity_regularizer: Any = ..., bias_constraint: Any = ..., bias_initializer: Initializer | str = ..., bias_regularizer: Any = ..., dtype: DTypeLike = ..., kernel_constraint: Any = ..., kernel_initializer: Initializer | str = ..., kernel_regularizer: Any = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Embedding(NativeLayer):
    def __init__(
        self, input_dim: int, output_dim: int, embeddings_initializer: Initializer | str = ..., embeddings_regularizer: Any = ..., *, dtype: DTypeLike = ..., embeddings_constraint: Any = ..., mask_zero: bool = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Conv1D(NativeLayer):
    def __init__(
        self, filters: int, kernel_size: _Window, strides: _Window = ..., padding: Any = ..., data_format: str = ..., dilation_rate: _Window = ..., groups: int = ..., activation: _Activation = ..., use_bias: bool = ..., *, activity_regularizer: Any = ..., bias_constraint: Any = ..., bias_initializer: Initializer | str = ..., bias_regularizer: Any = ..., dtype: DTypeLike = ..., kernel_constraint: Any = ..., kernel_initializer: Initializer | str = ..., kernel_regularizer: Any = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
Convolution1D = Conv1D
class Conv2D(NativeLayer):
    def __init__(
        self, filters: int, kernel_size: _Window, strides: _Window = ..., padding: Any = ..., data_format: str = ..., dilation_rate: _Window = ..., groups: int = ..., activation: _Activation = ..., use_bias: bool = ..., *, activity_regularizer: Any = ..., bias_constraint: Any = ..., bias_initializer: Initializer | str = ..., bias_regularizer: Any = ..., dtype: DTypeLike = ..., kernel_constraint: Any = ..., kernel_initializer: Initializer | str = ..., kernel_regularizer: Any = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
Convolution2D = Conv2D
class Conv3D(NativeLayer):
    def __init__(
        self, filters: int, kernel_size: _Window, strides: _Window = ..., padding: Any = ..., data_format: str = ..., dilation_rate: _Window = ..., groups: int = ..., activation: _Activation = ..., use_bias: bool = ..., *, activity_regularizer: Any = ..., bias_constraint: Any = ..., bias_initializer: Initializer | str = ..., bias_regularizer: Any = ..., dtype: DTypeLike = ..., kernel_constraint: Any = ..., kernel_initializer: Initializer | str = ..., kernel_regularizer: Any = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
Convolution3D = Conv3D
class Conv1DTranspose(NativeLayer):
    def __init__(
        self, filters: int, kernel_size: _Window, strides: _Window = ..., padding: Any = ..., output_padding: Any = ..., data_format: str = ..., dilation_rate: _Window = ..., activation: _Activation = ..., *, activity_regularizer: Any = ..., bias_constraint: Any = ..., bias_initializer: Initializer | str = ..., bias_regularizer: Any = ..., dtype: DTypeLike = ..., kernel_constraint: Any = ..., kernel_initializer: Initializer | str = ..., kernel_regularizer: Any = ..., use_bias: bool = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
Convolution1DTranspose = Conv1DTranspose
class Conv2DTranspose(NativeLayer):
    def __init__(
        self, filters: int, kernel_size: _Window, strides: _Window = ..., padding: Any = ..., output_padding: Any = ..., data_format: str = ..., dilation_rate: _Window = ..., activation: _Activation = ..., *, activity_regularizer: Any = ..., bias_constraint: Any = ..., bias_initializer: Initializer | str = ..., bias_regularizer: Any = ..., dtype: DTypeLike = ..., kernel_constraint: Any = ..., kernel_initializer: Initializer | str = ..., kernel_regularizer: Any = ..., use_bias: bool = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
Convolution2DTranspose = Conv2DTranspose
class Conv3DTranspose(NativeLayer):
    def __init__(
        self, filters: int, kernel_size: _Window, strides: _Window = ..., padding: Any = ..., output_padding: Any = ..., data_format: str = ..., dilation_rate: _Window = ..., activation: _Activation = ..., *, activity_regularizer: Any = ..., bias_constraint: Any = ..., bias_initializer: Initializer | str = ..., bias_regularizer: Any = ..., dtype: DTypeLike = ..., kernel_constraint: Any = ..., kernel_initializer: Initializer | str = ..., kernel_regularizer: Any = ..., use_bias: bool = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
Convolution3DTranspose = Conv3DTranspose
class DepthwiseConv1D(NativeLayer):
    def __init__(
        self, kernel_size: _Window, strides: _Window = ..., padding: Any = ..., depth_multiplier: int = ..., data_format: str = ..., dilation_rate: _Window = ..., activation: _Activation = ..., *, activity_regularizer: Any = ..., bias_constraint: Any = ..., bias_initializer: Initializer | str = ..., bias_regularizer: Any = ..., depthwise_constraint: Any = ..., depthwise_initializer: Initializer | str = ..., depthwise_regularizer: Any = ..., dtype: DTypeLike = ..., use_bias: bool = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class DepthwiseConv2D(NativeLayer):
    def __init__(
        self, kernel_size: _Window, strides: _Window = ..., padding: Any = ..., depth_multiplier: int = ..., data_format: str = ..., dilation_rate: _Window = ..., activation: _Activation = ..., *, activity_regularizer: Any = ..., bias_constraint: Any = ..., bias_initializer: Initializer | str = ..., bias_regularizer: Any = ..., depthwise_constraint: Any = ..., depthwise_initializer: Initializer | str = ..., depthwise_regularizer: Any = ..., dtype: DTypeLike = ..., use_bias: bool = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class SeparableConv1D(NativeLayer):
    def __init__(
        self, filters: int, kernel_size: _Window, strides: _Window = ..., padding: Any = ..., data_format: str = ..., dilation_rate: _Window = ..., depth_multiplier: int = ..., activation: _Activation = ..., *, activity_regularizer: Any = ..., bias_constraint: Any = ..., bias_initializer: Initializer | str = ..., bias_regularizer: Any = ..., depthwise_constraint: Any = ..., depthwise_initializer: Initializer | str = ..., depthwise_regularizer: Any = ..., dtype: DTypeLike = ..., pointwise_constraint: Any = ..., pointwise_initializer: Initializer | str = ..., pointwise_regularizer: Any = ..., use_bias: bool = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
SeparableConvolution1D = SeparableConv1D
class SeparableConv2D(NativeLayer):
    def __init__(
        self, filters: int, kernel_size: _Window, strides: _Window = ..., padding: Any = ..., data_format: str = ..., dilation_rate: _Window = ..., depth_multiplier: int = ..., activation: _Activation = ..., *, activity_regularizer: Any = ..., bias_constraint: Any = ..., bias_initializer: Initializer | str = ..., bias_regularizer: Any = ..., depthwise_constraint: Any = ..., depthwise_initializer: Initializer | str = ..., depthwise_regularizer: Any = ..., dtype: DTypeLike = ..., pointwise_constraint: Any = ..., pointwise_initializer: Initializer | str = ..., pointwise_regularizer: Any = ..., use_bias: bool = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
SeparableConvolution2D = SeparableConv2D
class MaxPooling1D(NativeLayer):
    def __init__(
        self, pool_size: _Window = ..., strides: _Window = ..., padding: Any = ..., data_format: str = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
MaxPool1D = MaxPooling1D
class MaxPooling2D(NativeLayer):
    def __init__(
        self, pool_size: _Window = ..., strides: _Window = ..., padding: Any = ..., data_format: str = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
MaxPool2D = MaxPooling2D
class MaxPooling3D(NativeLayer):
    def __init__(
        self, pool_size: _Window = ..., strides: _Window = ..., padding: Any = ..., data_format: str = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
MaxPool3D = MaxPooling3D
class AveragePooling1D(NativeLayer):
    def __init__(
        self, pool_size: _Window = ..., strides: _Window = ..., padding: Any = ..., data_format: str = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
AvgPool1D = AveragePooling1D
class AveragePooling2D(NativeLayer):
    def __init__(
        self, pool_size: _Window = ..., strides: _Window = ..., padding: Any = ..., data_format: str = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
AvgPool2D = AveragePooling2D
class AveragePooling3D(NativeLayer):
    def __init__(
        self, pool_size: _Window = ..., strides: _Window = ..., padding: Any = ..., data_format: str = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
AvgPool3D = AveragePooling3D
class GlobalMaxPooling1D(NativeLayer):
    def __init__(
        self, data_format: str = ..., keepdims: bool = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
GlobalMaxPool1D = GlobalMaxPooling1D
class GlobalMaxPooling2D(NativeLayer):
    def __init__(
        self, data_format: str = ..., keepdims: bool = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
GlobalMaxPool2D = GlobalMaxPooling2D
class GlobalMaxPooling3D(NativeLayer):
    def __init__(
        self, data_format: str = ..., keepdims: bool = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
GlobalMaxPool3D = GlobalMaxPooling3D
class GlobalAveragePooling1D(NativeLayer):
    def __init__(
        self, data_format: str = ..., keepdims: bool = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
GlobalAvgPool1D = GlobalAveragePooling1D
class GlobalAveragePooling2D(NativeLayer):
    def __init__(
        self, data_format: str = ..., keepdims: bool = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
GlobalAvgPool2D = GlobalAveragePooling2D
class GlobalAveragePooling3D(NativeLayer):
    def __init__(
        self, data_format: str = ..., keepdims: bool = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
GlobalAvgPool3D = GlobalAveragePooling3D
class BatchNormalization(NativeLayer):
    def __init__(
        self, axis: _Axis = ..., momentum: float = ..., epsilon: float = ..., center: bool = ..., scale: Any = ..., *, beta_constraint: Any = ..., beta_initializer: Initializer | str = ..., beta_regularizer: Any = ..., dtype: DTypeLike = ..., gamma_constraint: Any = ..., gamma_initializer: Initializer | str = ..., gamma_regularizer: Any = ..., moving_mean_initializer: Initializer | str = ..., moving_variance_initializer: Initializer | str = ..., renorm: Any = ..., renorm_momentum: Any = ..., synchronized: Any = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class LayerNormalization(NativeLayer):
    def __init__(
        self, axis: _Axis = ..., epsilon: float = ..., center: bool = ..., scale: Any = ..., *, beta_constraint: Any = ..., beta_initializer: Initializer | str = ..., beta_regularizer: Any = ..., dtype: DTypeLike = ..., gamma_constraint: Any = ..., gamma_initializer: Initializer | str = ..., gamma_regularizer: Any = ..., rms_scaling: Any = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class GroupNormalization(NativeLayer):
    def __init__(
        self, groups: int = ..., axis: _Axis = ..., epsilon: float = ..., center: bool = ..., scale: Any = ..., *, beta_constraint: Any = ..., beta_initializer: Initializer | str = ..., beta_regularizer: Any = ..., dtype: DTypeLike = ..., gamma_constraint: Any = ..., gamma_initializer: Initializer | str = ..., gamma_regularizer: Any = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class RMSNormalization(NativeLayer):
    def __init__(
        self, axis: _Axis = ..., epsilon: float = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class UnitNormalization(NativeLayer):
    def __init__(
        self, axis: _Axis = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Dropout(NativeLayer):
    def __init__(
        self, rate: float, noise_shape: Any = ..., seed: int | SeedGenerator = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class AlphaDropout(NativeLayer):
    def __init__(
        self, rate: float, noise_shape: Any = ..., seed: int | SeedGenerator = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class GaussianDropout(NativeLayer):
    def __init__(
        self, rate: float, seed: int | SeedGenerator = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class GaussianNoise(NativeLayer):
    def __init__(
        self, stddev: float, seed: int | SeedGenerator = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class SpatialDropout1D(NativeLayer):
    def __init__(
        self, rate: float, seed: int | SeedGenerator = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class SpatialDropout2D(NativeLayer):
    def __init__(
        self, rate: float, data_format: str = ..., seed: int | SeedGenerator = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class SpatialDropout3D(NativeLayer):
    def __init__(
        self, rate: float, data_format: str = ..., seed: int | SeedGenerator = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class ActivityRegularization(NativeLayer):
    def __init__(
        self, l1: float = ..., l2: float = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Flatten(NativeLayer):
    def __init__(
        self, data_format: str = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Reshape(NativeLayer):
    def __init__(
        self, target_shape: Any, *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Permute(NativeLayer):
    def __init__(
        self, dims: Any, *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class RepeatVector(NativeLayer):
    def __init__(
        self, n: int, *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Cropping1D(NativeLayer):
    def __init__(
        self, cropping: Any = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Cropping2D(NativeLayer):
    def __init__(
        self, cropping: Any = ..., data_format: str = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Cropping3D(NativeLayer):
    def __init__(
        self, cropping: Any = ..., data_format: str = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class ZeroPadding1D(NativeLayer):
    def __init__(
        self, padding: Any = ..., *, data_format: str = ..., dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class ZeroPadding2D(NativeLayer):
    def __init__(
        self, padding: Any = ..., data_format: str = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class ZeroPadding3D(NativeLayer):
    def __init__(
        self, padding: Any = ..., data_format: str = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class UpSampling1D(NativeLayer):
    def __init__(
        self, size: _Window = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class UpSampling2D(NativeLayer):
    def __init__(
        self, size: _Window = ..., data_format: str = ..., interpolation: str = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class UpSampling3D(NativeLayer):
    def __init__(
        self, size: _Window = ..., data_format: str = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Identity(NativeLayer):
    def __init__(
        self, *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Masking(NativeLayer):
    def __init__(
        self, mask_value: float = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Activation(NativeLayer):
    def __init__(
        self, activation: _Activation, *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class ReLU(NativeLayer):
    def __init__(
        self, max_value: Any = ..., negative_slope: float = ..., threshold: float = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class LeakyReLU(NativeLayer):
    def __init__(
        self, negative_slope: float = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class ELU(NativeLayer):
    def __init__(
        self, alpha: float = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class PReLU(NativeLayer):
    def __init__(
        self, alpha_initializer: Initializer | str = ..., *, alpha_constraint: Any = ..., alpha_regularizer: Any = ..., dtype: DTypeLike = ..., shared_axes: Any = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Softmax(NativeLayer):
    def __init__(
        self, axis: _Axis = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Rescaling(NativeLayer):
    def __init__(
        self, scale: Any, offset: float = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Resizing(NativeLayer):
    def __init__(
        self, height: int, width: int, interpolation: str = ..., *, antialias: bool = ..., crop_to_aspect_ratio: bool = ..., data_format: str = ..., dtype: DTypeLike = ..., fill_mode: Any = ..., fill_value: Any = ..., pad_to_aspect_ratio: bool = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class CenterCrop(NativeLayer):
    def __init__(
        self, height: int, width: int, *, data_format: str = ..., dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class RandomFlip(NativeLayer):
    def __init__(
        self, mode: str = ..., seed: int | SeedGenerator = ..., *, data_format: str = ..., dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class RandomRotation(NativeLayer):
    def __init__(
        self, factor: Any, fill_mode: Any = ..., interpolation: str = ..., seed: int | SeedGenerator = ..., *, data_format: str = ..., dtype: DTypeLike = ..., fill_value: Any = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class RandomZoom(NativeLayer):
    def __init__(
        self, height_factor: Any, width_factor: Any = ..., fill_mode: Any = ..., interpolation: str = ..., seed: int | SeedGenerator = ..., *, data_format: str = ..., dtype: DTypeLike = ..., fill_value: Any = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class RandomTranslation(NativeLayer):
    def __init__(
        self, height_factor: Any, width_factor: Any, fill_mode: Any = ..., interpolation: str = ..., seed: int | SeedGenerator = ..., *, data_format: str = ..., dtype: DTypeLike = ..., fill_value: Any = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class RandomContrast(NativeLayer):
    def __init__(
        self, factor: Any, value_range: Any = ..., seed: int | SeedGenerator = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class RandomBrightness(NativeLayer):
    def __init__(
        self, factor: Any, value_range: Any = ..., seed: int | SeedGenerator = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class RandomCrop(NativeLayer):
    def __init__(
        self, height: int, width: int, seed: int | SeedGenerator = ..., *, data_format: str = ..., dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class TimeDistributed(NativeLayer):
    def __init__(
        self, layer: Layer, *, name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None, dtype: DTypeLike = ...
    ) -> None: ...
class SpectralNormalization(NativeLayer):
    def __init__(
        self, layer: Layer, power_iterations: int = ..., *, name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None, dtype: DTypeLike = ...
    ) -> None: ...
class Solarization(NativeLayer):
    def __init__(
        self, addition_factor: Any = ..., threshold_factor: Any = ..., value_range: Any = ..., seed: int | SeedGenerator = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class AdaptiveAveragePooling1D(NativeLayer):
    def __init__(
        self, output_size: Any, *, data_format: str = ..., dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class AdaptiveAveragePooling2D(NativeLayer):
    def __init__(
        self, output_size: Any, *, data_format: str = ..., dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class AdaptiveAveragePooling3D(NativeLayer):
    def __init__(
        self, output_size: Any, *, data_format: str = ..., dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class AdaptiveMaxPooling1D(NativeLayer):
    def __init__(
        self, output_size: Any, *, data_format: str = ..., dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class AdaptiveMaxPooling2D(NativeLayer):
    def __init__(
        self, output_size: Any, *, data_format: str = ..., dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class AdaptiveMaxPooling3D(NativeLayer):
    def __init__(
        self, output_size: Any, *, data_format: str = ..., dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class CategoryEncoding(NativeLayer):
    def __init__(
        self, num_tokens: int, output_mode: str = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Add(NativeLayer):
    def __init__(
        self, *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Subtract(NativeLayer):
    def __init__(
        self, *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Multiply(NativeLayer):
    def __init__(
        self, *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Average(NativeLayer):
    def __init__(
        self, *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Maximum(NativeLayer):
    def __init__(
        self, *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Minimum(NativeLayer):
    def __init__(
        self, *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Concatenate(NativeLayer):
    def __init__(
        self, axis: _Axis = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Dot(NativeLayer):
    def __init__(
        self, axes: Any, normalize: bool = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class LSTM(Recurrent):
    def __init__(
        self, units: int, activation: _Activation = ..., recurrent_activation: _Activation = ..., use_bias: bool = ..., *, activity_regularizer: Any = ..., bias_constraint: Any = ..., bias_initializer: Initializer | str = ..., bias_regularizer: Any = ..., dropout: float = ..., dtype: DTypeLike = ..., go_backwards: bool = ..., kernel_constraint: Any = ..., kernel_initializer: Initializer | str = ..., kernel_regularizer: Any = ..., recurrent_constraint: Any = ..., recurrent_dropout: float = ..., recurrent_initializer: Initializer | str = ..., recurrent_regularizer: Any = ..., return_sequences: bool = ..., return_state: bool = ..., seed: int | SeedGenerator = ..., stateful: bool = ..., unit_forget_bias: Any = ..., unroll: bool = ..., zero_output_for_mask: bool = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class GRU(Recurrent):
    def __init__(
        self, units: int, activation: _Activation = ..., recurrent_activation: _Activation = ..., use_bias: bool = ..., *, activity_regularizer: Any = ..., bias_constraint: Any = ..., bias_initializer: Initializer | str = ..., bias_regularizer: Any = ..., dropout: float = ..., dtype: DTypeLike = ..., go_backwards: bool = ..., kernel_constraint: Any = ..., kernel_initializer: Initializer | str = ..., kernel_regularizer: Any = ..., recurrent_constraint: Any = ..., recurrent_dropout: float = ..., recurrent_initializer: Initializer | str = ..., recurrent_regularizer: Any = ..., reset_after: bool = ..., return_sequences: bool = ..., return_state: bool = ..., seed: int | SeedGenerator = ..., stateful: bool = ..., unroll: bool = ..., zero_output_for_mask: bool = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class SimpleRNN(Recurrent):
    def __init__(
        self, units: int, activation: _Activation = ..., use_bias: bool = ..., *, activity_regularizer: Any = ..., bias_constraint: Any = ..., bias_initializer: Initializer | str = ..., bias_regularizer: Any = ..., dropout: float = ..., dtype: DTypeLike = ..., go_backwards: bool = ..., kernel_constraint: Any = ..., kernel_initializer: Initializer | str = ..., kernel_regularizer: Any = ..., recurrent_constraint: Any = ..., recurrent_dropout: float = ..., recurrent_initializer: Initializer | str = ..., recurrent_regularizer: Any = ..., return_sequences: bool = ..., return_state: bool = ..., seed: int | SeedGenerator = ..., stateful: bool = ..., unroll: bool = ..., zero_output_for_mask: bool = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Bidirectional(Recurrent):
    def __init__(
        self, layer: Layer, merge_mode: Any = ..., weights: Any = ..., backward_layer: Layer = ..., *, name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None, dtype: DTypeLike = ...
    ) -> None: ...
class ConvLSTM1D(Recurrent):
    def __init__(
        self, filters: int, kernel_size: _Window, strides: _Window = ..., padding: Any = ..., *, activation: _Activation = ..., activity_regularizer: Any = ..., bias_constraint: Any = ..., bias_initializer: Initializer | str = ..., bias_regularizer: Any = ..., dilation_rate: _Window = ..., dropout: float = ..., dtype: DTypeLike = ..., go_backwards: bool = ..., kernel_constraint: Any = ..., kernel_initializer: Initializer | str = ..., kernel_regularizer: Any = ..., recurrent_activation: _Activation = ..., recurrent_constraint: Any = ..., recurrent_dropout: float = ..., recurrent_initializer: Initializer | str = ..., recurrent_regularizer: Any = ..., return_sequences: bool = ..., return_state: bool = ..., seed: int | SeedGenerator = ..., stateful: bool = ..., unit_forget_bias: Any = ..., unroll: bool = ..., use_bias: bool = ..., zero_output_for_mask: bool = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class ConvLSTM2D(Recurrent):
    def __init__(
        self, filters: int, kernel_size: _Window, strides: _Window = ..., padding: Any = ..., *, activation: _Activation = ..., activity_regularizer: Any = ..., bias_constraint: Any = ..., bias_initializer: Initializer | str = ..., bias_regularizer: Any = ..., dilation_rate: _Window = ..., dropout: float = ..., dtype: DTypeLike = ..., go_backwards: bool = ..., kernel_constraint: Any = ..., kernel_initializer: Initializer | str = ..., kernel_regularizer: Any = ..., recurrent_activation: _Activation = ..., recurrent_constraint: Any = ..., recurrent_dropout: float = ..., recurrent_initializer: Initializer | str = ..., recurrent_regularizer: Any = ..., return_sequences: bool = ..., return_state: bool = ..., seed: int | SeedGenerator = ..., stateful: bool = ..., unit_forget_bias: Any = ..., unroll: bool = ..., use_bias: bool = ..., zero_output_for_mask: bool = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class ConvLSTM3D(Recurrent):
    def __init__(
        self, filters: int, kernel_size: _Window, strides: _Window = ..., padding: Any = ..., *, activation: _Activation = ..., activity_regularizer: Any = ..., bias_constraint: Any = ..., bias_initializer: Initializer | str = ..., bias_regularizer: Any = ..., dilation_rate: _Window = ..., dropout: float = ..., dtype: DTypeLike = ..., go_backwards: bool = ..., kernel_constraint: Any = ..., kernel_initializer: Initializer | str = ..., kernel_regularizer: Any = ..., recurrent_activation: _Activation = ..., recurrent_constraint: Any = ..., recurrent_dropout: float = ..., recurrent_initializer: Initializer | str = ..., recurrent_regularizer: Any = ..., return_sequences: bool = ..., return_state: bool = ..., seed: int | SeedGenerator = ..., stateful: bool = ..., unit_forget_bias: Any = ..., unroll: bool = ..., use_bias: bool = ..., zero_output_for_mask: bool = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class MultiHeadAttention(HeadedAttention):
    def __init__(
        self, num_heads: int, key_dim: int, value_dim: int = ..., dropout: float = ..., use_bias: bool = ..., output_shape: Any = ..., attention_axes: Any = ..., *, activity_regularizer: Any = ..., bias_constraint: Any = ..., bias_initializer: Initializer | str = ..., bias_regularizer: Any = ..., dtype: DTypeLike = ..., kernel_constraint: Any = ..., kernel_initializer: Initializer | str = ..., kernel_regularizer: Any = ..., seed: int | SeedGenerator = ..., sliding_window: Any = ..., use_gate: bool = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class GroupQueryAttention(HeadedAttention):
    def __init__(
        self, head_dim: int, num_query_heads: int, num_key_value_heads: int, dropout: float = ..., use_bias: bool = ..., *, activity_regularizer: Any = ..., bias_constraint: Any = ..., bias_initializer: Initializer | str = ..., bias_regularizer: Any = ..., dtype: DTypeLike = ..., kernel_constraint: Any = ..., kernel_initializer: Initializer | str = ..., kernel_regularizer: Any = ..., seed: int | SeedGenerator = ..., sliding_window: Any = ..., use_gate: bool = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
GroupedQueryAttention = GroupQueryAttention
class Attention(ListAttention):
    def __init__(
        self, use_scale: bool = ..., score_mode: Any = ..., dropout: float = ..., seed: int | SeedGenerator = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class AdditiveAttention(ListAttention):
    def __init__(
        self, use_scale: bool = ..., dropout: float = ..., *, dtype: DTypeLike = ..., seed: int | SeedGenerator = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Normalization(AdaptedNormalization):
    def __init__(
        self, axis: _Axis = ..., mean: Any = ..., variance: Any = ..., invert: bool = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class Discretization(AdaptedDiscretization):
    def __init__(
        self, bin_boundaries: Any = ..., num_bins: int = ..., epsilon: float = ..., output_mode: str = ..., *, dtype: DTypeLike = ..., name: str | None = None, trainable: bool = True, input_shape: Sequence[int | None] | None = None
    ) -> None: ...
class StringLookup(LearningLayer):
    def __init__(self, max_tokens: Any = ..., num_oov_indices: Any = ..., mask_token: Any = ..., oov_token: Any = ..., vocabulary: Any = ..., idf_weights: Any = ..., invert: Any = ..., output_mode: Any = ..., pad_to_max_tokens: Any = ..., *, name: str | None = None, **options: Any) -> None: ...
class IntegerLookup(LearningLayer):
    def __init__(self, max_tokens: Any = ..., num_oov_indices: Any = ..., mask_token: Any = ..., oov_token: Any = ..., vocabulary: Any = ..., vocabulary_dtype: Any = ..., idf_weights: Any = ..., invert: Any = ..., output_mode: Any = ..., *, name: str | None = None, **options: Any) -> None: ...
class TextVectorization(VectorizingLayer):
    def __init__(self, max_tokens: Any = ..., standardize: Any = ..., split: Any = ..., ngrams: Any = ..., output_mode: Any = ..., output_sequence_length: Any = ..., pad_to_max_tokens: Any = ..., vocabulary: Any = ..., idf_weights: Any = ..., *, name: str | None = None, **options: Any) -> None: ...
class Hashing(HostLayer):
    def __init__(self, num_bins: Any = ..., mask_value: Any = ..., salt: Any = ..., output_mode: Any = ..., *, name: str | None = None, **options: Any) -> None: ...
class HashedCrossing(CrossingLayer):
    def __init__(self, num_bins: Any = ..., output_mode: Any = ..., *, name: str | None = None, **options: Any) -> None: ...
def deserialize(config: Any, custom_objects: dict[str, Any] | None = None) -> Any: ...
from .input_layer import InputLayer as InputLayer
class Lambda(Layer):
    def __init__(self, function: Callable[..., Any], output_shape: Any = None, mask: Any = None, arguments: dict[str, Any] | None = None, name: str | None = None, **options: Any) -> None: ...
def add(inputs: Any, **options: Any) -> Any: ...
def subtract(inputs: Any, **options: Any) -> Any: ...
def multiply(inputs: Any, **options: Any) -> Any: ...
def average(inputs: Any, **options: Any) -> Any: ...
def maximum(inputs: Any, **options: Any) -> Any: ...
def minimum(inputs: Any, **options: Any) -> Any: ...
def concatenate(inputs: Any, **options: Any) -> Any: ...
def dot(inputs: Any, **options: Any) -> Any: ...
