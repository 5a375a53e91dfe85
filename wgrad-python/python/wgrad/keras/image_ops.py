"""`keras.ops.image`: sizes, colours, patches and moved points of images, whose channels are the last axis."""

import math

import numpy as np

from .. import ops as _tf
from ..ops import FUNCTIONS as _F
from ..ops import _of_symbols
from ..tensor import convert_to_tensor


def _images(call, images, data_format=None):
    """A batch of images, and whether there was one image only."""
    if data_format not in (None, "channels_last"):
        raise TypeError(f"image.{call}: data_format is {data_format!r}; only 'channels_last' is supported. Transpose the images.")
    images = convert_to_tensor(images)
    rank = len(images._shape)
    if rank not in (3, 4):
        raise ValueError(f"image.{call}: the images are {list(images._shape)}; they must be [H, W, C] or [B, H, W, C].")
    return (images, False) if rank == 4 else (_F["expand_dims"](images, 0), True)


def _returned(images, is_one):
    return images[0] if is_one else images


def _pair(call, name, value):
    pair = [int(value)] * 2 if isinstance(value, (int, np.integer)) else [int(number) for number in value]
    if len(pair) != 2 or min(pair) < 1:
        raise ValueError(f"image.{call}: {name} is {value!r}; it must be one or two numbers from 1 on.")
    return pair


def _float(images):
    return images if images._dtype.startswith("float") else images._cast("float32")


def _like(images, dtype):
    """Values as Keras returns them: rounded, if the images are whole numbers."""
    if dtype == images._dtype:
        return images
    return _tf.cast(_F["math.round"](images), dtype) if not dtype.startswith("float") else images._cast(dtype)


@_of_symbols
def rgb_to_grayscale(images, data_format=None):
    """The brightness of pixels, as one channel."""
    images, is_one = _images("rgb_to_grayscale", images, data_format)
    return _returned(_F["image.rgb_to_grayscale"](images), is_one)


@_of_symbols
def rgb_to_hsv(images, data_format=None):
    """Hue, saturation and value."""
    images, is_one = _images("rgb_to_hsv", images, data_format)
    return _returned(_F["image.rgb_to_hsv"](images), is_one)


@_of_symbols
def hsv_to_rgb(images, data_format=None):
    """Red, green and blue of hue, saturation and value."""
    images, is_one = _images("hsv_to_rgb", images, data_format)
    return _returned(_F["image.hsv_to_rgb"](images), is_one)


@_of_symbols
def resize(images, size, interpolation="bilinear", antialias=False, crop_to_aspect_ratio=False, pad_to_aspect_ratio=False,
           fill_mode="constant", fill_value=0.0, data_format=None):
    """The images in another size. The part with the ratio of the size may be cut out first, or a border may be added."""
    images, is_one = _images("resize", images, data_format)
    height, width = _pair("resize", "size", size)
    if crop_to_aspect_ratio and pad_to_aspect_ratio:
        raise ValueError("image.resize: choose one of crop_to_aspect_ratio and pad_to_aspect_ratio.")
    if fill_mode != "constant":
        raise ValueError(f"image.resize: fill_mode is {fill_mode!r}; only 'constant' is supported.")
    given, (rows, columns) = images._dtype, images._shape[1:3]
    if crop_to_aspect_ratio:
        tall, wide = min(rows, columns * height // width), min(columns, rows * width // height)
        tall, wide = max(tall, 1), max(wide, 1)
        images = _F["image.crop_to_bounding_box"](images, (rows - tall) // 2, (columns - wide) // 2, tall, wide)
    elif pad_to_aspect_ratio:
        tall, wide = max(rows, columns * height // width), max(columns, rows * width // height)
        # As Keras: both borders are equal, and an odd row or column is left out.
        top, left = (tall - rows) // 2, (wide - columns) // 2
        border = [[0, 0], [top, top], [left, left], [0, 0]]
        images = _F["pad"](images, border, "CONSTANT", fill_value)
    made = _F["image.resize"](images, [height, width], interpolation, antialias=antialias)
    return _returned(_like(made, given), is_one)


@_of_symbols
def extract_patches(images, size, strides=None, dilation_rate=1, padding="valid", data_format=None):
    """The values of each window in one row: `[B, rows, columns, height * width * C]`."""
    images, is_one = _images("extract_patches", images, data_format)
    size = _pair("extract_patches", "size", size)
    strides = size if strides is None else _pair("extract_patches", "strides", strides)
    rates = _pair("extract_patches", "dilation_rate", dilation_rate)
    made = _F["image.extract_patches"](images, [1, *size, 1], [1, *strides, 1], [1, *rates, 1], padding.upper())
    return _returned(made, is_one)


def _border(call, sizes):
    """What is before, inside and behind an axis; two of the three are given."""
    before, behind, target = sizes
    if sum(value is None for value in sizes) != 1:
        raise ValueError(f"image.{call}: give two of the paddings or croppings of an axis and its target size; they are {sizes}.")
    return before, behind, target


@_of_symbols
def pad_images(images, top_padding=None, left_padding=None, bottom_padding=None, right_padding=None, target_height=None,
               target_width=None, data_format=None):
    """The images with borders of zeros."""
    images, is_one = _images("pad_images", images, data_format)
    border = []
    for sizes, whole in (((top_padding, bottom_padding, target_height), images._shape[1]), ((left_padding, right_padding, target_width), images._shape[2])):
        before, behind, target = _border("pad_images", sizes)
        before = target - whole - behind if before is None else before
        behind = target - whole - before if behind is None else behind
        if min(before, behind) < 0:
            raise ValueError(f"image.pad_images: {whole} rows or columns get {before} in front and {behind} behind; neither may be negative.")
        border.append([before, behind])
    return _returned(_F["pad"](images, [[0, 0], *border, [0, 0]]), is_one)


@_of_symbols
def crop_images(images, top_cropping=None, left_cropping=None, bottom_cropping=None, right_cropping=None, target_height=None,
                target_width=None, data_format=None):
    """The images without borders."""
    images, is_one = _images("crop_images", images, data_format)
    begin, kept = [], []
    for sizes, whole in (((top_cropping, bottom_cropping, target_height), images._shape[1]), ((left_cropping, right_cropping, target_width), images._shape[2])):
        before, behind, target = _border("crop_images", sizes)
        before = whole - target - behind if before is None else before
        target = whole - before - behind if target is None else target
        if before < 0 or target < 1 or before + target > whole:
            raise ValueError(f"image.crop_images: {target} of {whole} rows or columns from {before} on; they must be inside.")
        begin.append(before)
        kept.append(target)
    batch, channels = images._shape[0], images._shape[3]
    return _returned(_F["slice"](images, [0, *begin, 0], [batch, *kept, channels]), is_one)


_FILLS = ("constant", "nearest", "wrap", "mirror", "reflect")


def _inside(at, size, mode):
    """Indices as a mode moves them into an axis."""
    if mode == "wrap":
        return _F["math.floormod"](at, float(size))
    if mode == "mirror":
        # The edge is not repeated.
        period = float(max(2 * (size - 1), 1))
        at = _F["math.floormod"](at, period)
        return _F["math.minimum"](at, period - at) if size > 1 else at * 0.0
    if mode == "reflect":
        at = _F["math.floormod"](at, 2.0 * size)
        return _F["math.minimum"](at, 2.0 * size - 1.0 - at)
    return _F["math.maximum"](_F["math.minimum"](at, size - 1.0), 0.0)


def _sampled(x, places, order, mode, fill):
    """The values of `[B, sizes.., C]` at places, one tensor `[B, points]` for each axis of sizes: `[B, points, C]`."""
    sizes = list(x._shape[1:-1])
    flat = _F["reshape"](x, [x._shape[0], math.prod(sizes), x._shape[-1]])

    def values(ats):
        index, is_in = None, None
        for at, size in zip(ats, sizes):
            valid = _F["math.logical_and"](at >= 0.0, at <= size - 1.0)
            is_in = valid if is_in is None else _F["math.logical_and"](is_in, valid)
            moved = _tf.cast(_inside(at, size, mode), "int32")
            index = moved if index is None else index * size + moved
        made = _F["gather"](flat, index, axis=1, batch_dims=1)
        return _tf.where(is_in[..., None], made, convert_to_tensor(fill, made._dtype)) if mode == "constant" else made

    if order == 0:
        return values([_F["math.round"](at) for at in places])
    lower = [_F["math.floor"](at) for at in places]
    shares, total = [at - low for at, low in zip(places, lower)], None
    # The corners of the cell around each point.
    for corner in range(2 ** len(sizes)):
        bits = [corner >> at & 1 for at in range(len(sizes))]
        weight = None
        for bit, share in zip(bits, shares):
            part = share if bit else 1.0 - share
            weight = part if weight is None else weight * part
        value = values([low + float(bit) for low, bit in zip(lower, bits)]) * weight[..., None]
        total = value if total is None else total + value
    return total


def _mode(call, mode):
    if mode not in _FILLS:
        raise ValueError(f"image.{call}: fill_mode is {mode!r}; it must be one of {', '.join(_FILLS)}.")
    return mode


@_of_symbols
def map_coordinates(inputs, coordinates, order, fill_mode="constant", fill_value=0.0):
    """The values at coordinates, `[axes, ..]`, between the elements of a tensor with so many axes."""
    inputs, coordinates = convert_to_tensor(inputs), convert_to_tensor(coordinates, "float32")
    if order not in (0, 1):
        raise ValueError(f"image.map_coordinates: the order is {order!r}; it must be 0 or 1.")
    axes = len(inputs._shape)
    if not coordinates._shape or coordinates._shape[0] != axes:
        raise ValueError(f"image.map_coordinates: the coordinates are {list(coordinates._shape)} for {axes} axes; their first axis must have as many.")
    x = _F["reshape"](_float(inputs), [1, *inputs._shape, 1])
    places = [_F["reshape"](coordinates[at], [1, -1]) for at in range(axes)]
    made = _sampled(x, places, order, _mode("map_coordinates", fill_mode), fill_value)
    return _like(_F["reshape"](made, list(coordinates._shape[1:])), inputs._dtype)


@_of_symbols
def affine_transform(images, transform, interpolation="bilinear", fill_mode="constant", fill_value=0, data_format=None):
    """The images moved: the pixel at x and y of the result is that at `(a0 x + a1 y + a2) / k` and `(b0 x + b1 y + b2) / k` of the image,
    where `k` is `c0 x + c1 y + 1`. The eight numbers are one row for all images, or a row for each."""
    images, is_one = _images("affine_transform", images, data_format)
    if interpolation not in ("nearest", "bilinear"):
        raise ValueError(f"image.affine_transform: interpolation is {interpolation!r}; it must be 'nearest' or 'bilinear'.")
    transform = convert_to_tensor(transform, "float32")
    batch, rows, columns, channels = images._shape
    transform = _F["expand_dims"](transform, 0) if len(transform._shape) == 1 else transform
    if len(transform._shape) != 2 or transform._shape[1] != 8 or transform._shape[0] not in (1, batch):
        raise ValueError(f"image.affine_transform: the transform is {list(transform._shape)} for {batch} images; it must be [8] or [{batch}, 8].")
    transform = _F["broadcast_to"](transform, [batch, 8])
    grid = np.mgrid[0:rows, 0:columns].reshape(2, -1).astype("float32")
    y, x = convert_to_tensor(grid[0]), convert_to_tensor(grid[1])
    number = [transform[:, at : at + 1] for at in range(8)]
    k = number[6] * x + number[7] * y + 1.0
    places = [(number[3] * x + number[4] * y + number[5]) / k, (number[0] * x + number[1] * y + number[2]) / k]
    order = 0 if interpolation == "nearest" else 1
    made = _sampled(_float(images), places, order, _mode("affine_transform", fill_mode), fill_value)
    return _returned(_like(_F["reshape"](made, [batch, rows, columns, channels]), images._dtype), is_one)


@_of_symbols
def gaussian_blur(images, kernel_size=(3, 3), sigma=(1.0, 1.0), data_format=None):
    """The images blurred by a window of the normal distribution; beyond the border are zeros."""
    images, is_one = _images("gaussian_blur", images, data_format)
    height, width = _pair("gaussian_blur", "kernel_size", kernel_size)
    tall, wide = [float(sigma)] * 2 if isinstance(sigma, (int, float)) else [float(number) for number in sigma]
    if min(tall, wide) <= 0:
        raise ValueError(f"image.gaussian_blur: sigma is {sigma!r}; it must be positive.")

    def weights(count, deviation):
        at = np.arange(count) - (count - 1) / 2
        made = np.exp(-(at**2) / (2 * deviation**2))
        return made / made.sum()

    window = np.outer(weights(height, tall), weights(width, wide)).astype("float32")
    window = np.repeat(window[:, :, None, None], images._shape[3], axis=2)
    made = _F["nn.depthwise_conv2d"](_float(images), window, [1, 1, 1, 1], "SAME")
    return _returned(_like(made, images._dtype), is_one)
