"""Random changes of images, `tf.image.random_*`. One number is drawn for the whole batch, except for flips and crops."""

from . import _wgrad
from .ops import FUNCTIONS
from .random import _source
from .tensor import convert_to_tensor


def _draw(seed, low, high, shape=()):
    if not low <= high:
        raise ValueError(f"image.random: the bounds are {low} and {high}; the lower one must not be above the other.")
    return _source(seed).draw("uniform", list(shape), float(low), float(high)).numpy()


def _flipped(image, flip, seed):
    image = convert_to_tensor(image)
    if len(image._shape) == 3:
        return flip(image) if _draw(seed, 0.0, 1.0) < 0.5 else image
    if len(image._shape) != 4:
        raise ValueError(f"image.random_flip: the images are {list(image._shape)}; they must have 3 or 4 axes.")
    chosen = _wgrad.constant((_draw(seed, 0.0, 1.0, [image._shape[0]]) < 0.5).reshape(-1, 1, 1, 1), "bool")
    from .ops import where

    return where(chosen, flip(image), image)


def random_flip_left_right(image, seed=None):
    """TensorFlow's `tf.image.random_flip_left_right`: each image with a probability of a half."""
    return _flipped(image, FUNCTIONS["image.flip_left_right"], seed)


def random_flip_up_down(image, seed=None):
    """TensorFlow's `tf.image.random_flip_up_down`: each image with a probability of a half."""
    return _flipped(image, FUNCTIONS["image.flip_up_down"], seed)


def random_brightness(image, max_delta, seed=None):
    """TensorFlow's `tf.image.random_brightness`."""
    if max_delta < 0:
        raise ValueError(f"image.random_brightness: max_delta is {max_delta}; it must not be negative.")
    return FUNCTIONS["image.adjust_brightness"](image, float(_draw(seed, -max_delta, max_delta)))


def random_contrast(image, lower, upper, seed=None):
    """TensorFlow's `tf.image.random_contrast`."""
    return FUNCTIONS["image.adjust_contrast"](image, float(_draw(seed, lower, upper)))


def random_saturation(image, lower, upper, seed=None):
    """TensorFlow's `tf.image.random_saturation`."""
    return FUNCTIONS["image.adjust_saturation"](image, float(_draw(seed, lower, upper)))


def random_hue(image, max_delta, seed=None):
    """TensorFlow's `tf.image.random_hue`."""
    if not 0 <= max_delta <= 0.5:
        raise ValueError(f"image.random_hue: max_delta is {max_delta}; it must be from 0 to 0.5.")
    return FUNCTIONS["image.adjust_hue"](image, float(_draw(seed, -max_delta, max_delta)))


def random_crop(value, size, seed=None, name=None):
    """TensorFlow's `tf.image.random_crop`: a part of this size."""
    value = convert_to_tensor(value)
    shape, size = list(value._shape), [int(length) for length in size]
    if len(size) != len(shape) or any(length > whole for length, whole in zip(size, shape)):
        raise ValueError(f"image.random_crop: the size is {size} and the tensor {shape}; each axis must have room.")
    begin = [min(int(_draw(seed, 0.0, 1.0) * (whole - length + 1)), whole - length) for length, whole in zip(size, shape)]
    return FUNCTIONS["slice"](value, begin, size)
