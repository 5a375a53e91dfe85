"""Random changes of images, `tf.image.random_*`. One number is drawn for the whole batch, except for flips and crops.

In a traced function, the number is not known; each run draws another one.

Those of `stateless_random_*` depend on their seed alone, and are TensorFlow's."""

from . import _wgrad
from .errors import FailedPreconditionError
from .ops import FUNCTIONS, cast, range, where
from .random import _source, stateless_uniform
from .tensor import convert_to_tensor


def _draw(seed, low, high, shape=()):
    """Uniform numbers, as a tensor."""
    if not low <= high:
        raise ValueError(f"image.random: the bounds are {low} and {high}; the lower one must not be above the other.")
    return _source(seed).draw("uniform", list(shape), float(low), float(high))


def _number(drawn):
    """The number of a tensor, or `None` in a traced function."""
    try:
        return float(drawn.numpy())
    except FailedPreconditionError:
        return None


def _flipped(image, flip, seed):
    image = convert_to_tensor(image)
    if len(image._shape) == 3:
        drawn = _draw(seed, 0.0, 1.0)
        known = _number(drawn)
        if known is None:
            return where(drawn < 0.5, flip(image), image)
        return flip(image) if known < 0.5 else image
    if len(image._shape) != 4:
        raise ValueError(f"image.random_flip: the images are {list(image._shape)}; they must have 3 or 4 axes.")
    chosen = FUNCTIONS["reshape"](_draw(seed, 0.0, 1.0, [image._shape[0]]) < 0.5, [-1, 1, 1, 1])
    return where(chosen, flip(image), image)


def random_flip_left_right(image, seed=None):
    """TensorFlow's `tf.image.random_flip_left_right`: each image with a probability of a half."""
    return _flipped(image, FUNCTIONS["image.flip_left_right"], seed)


def random_flip_up_down(image, seed=None):
    """TensorFlow's `tf.image.random_flip_up_down`: each image with a probability of a half."""
    return _flipped(image, FUNCTIONS["image.flip_up_down"], seed)


def _in_floats(image, change):
    """A change of floats from 0 to 1, for images of any dtype."""
    image = convert_to_tensor(image)
    dtype = image._dtype
    if dtype.startswith("float"):
        return change(image)
    convert = FUNCTIONS["image.convert_image_dtype"]
    return convert(change(convert(image, "float32")), dtype, saturate=True)


def _contrasted(image, factor):
    mean = FUNCTIONS["math.reduce_mean"](image, axis=[-3, -2], keepdims=True)
    return (image - mean) * factor + mean


def _in_hues(image, hue=0.0, saturation=1.0):
    hsv = FUNCTIONS["image.rgb_to_hsv"](image)
    h, s, v = hsv[..., 0:1], hsv[..., 1:2], hsv[..., 2:3]
    h = FUNCTIONS["math.floormod"](h + hue, 1.0)
    s = FUNCTIONS["math.minimum"](FUNCTIONS["math.maximum"](s * saturation, 0.0), 1.0)
    return FUNCTIONS["image.hsv_to_rgb"](FUNCTIONS["concat"]([h, s, v], -1))


def _changed(image, adjust, drawn, traced):
    """The image changed by a number; `traced` does so by a tensor."""
    known = _number(drawn)
    return FUNCTIONS[f"image.{adjust}"](image, known) if known is not None else _in_floats(image, lambda x: traced(x, drawn))


def random_brightness(image, max_delta, seed=None):
    """TensorFlow's `tf.image.random_brightness`."""
    if max_delta < 0:
        raise ValueError(f"image.random_brightness: max_delta is {max_delta}; it must not be negative.")
    return _changed(image, "adjust_brightness", _draw(seed, -max_delta, max_delta), lambda x, delta: x + delta)


def random_contrast(image, lower, upper, seed=None):
    """TensorFlow's `tf.image.random_contrast`."""
    return _changed(image, "adjust_contrast", _draw(seed, lower, upper), _contrasted)


def random_saturation(image, lower, upper, seed=None):
    """TensorFlow's `tf.image.random_saturation`."""
    return _changed(image, "adjust_saturation", _draw(seed, lower, upper), lambda x, factor: _in_hues(x, saturation=factor))


def random_hue(image, max_delta, seed=None):
    """TensorFlow's `tf.image.random_hue`."""
    if not 0 <= max_delta <= 0.5:
        raise ValueError(f"image.random_hue: max_delta is {max_delta}; it must be from 0 to 0.5.")
    return _changed(image, "adjust_hue", _draw(seed, -max_delta, max_delta), lambda x, delta: _in_hues(x, hue=delta))


def _fits(call, shape, size):
    if len(size) != len(shape) or any(length > whole for length, whole in zip(size, shape)):
        raise ValueError(f"image.{call}: the size is {size} and the tensor {shape}; each axis must have room.")


def random_crop(value, size, seed=None, name=None):
    """TensorFlow's `tf.image.random_crop`: a part of this size."""
    value = convert_to_tensor(value)
    shape, size = list(value._shape), [int(length) for length in size]
    _fits("random_crop", shape, size)
    begin = []
    for axis, (length, whole) in enumerate(zip(size, shape)):
        drawn = _draw(seed, 0.0, 1.0)
        known = _number(drawn)
        if known is not None:
            begin.append(min(int(known * (whole - length + 1)), whole - length))
            continue
        begin.append(0)
        if length < whole:
            first = FUNCTIONS["math.minimum"](cast(drawn * float(whole - length + 1), "int32"), whole - length)
            value = FUNCTIONS["gather"](value, first + range(length), axis=axis)
    return FUNCTIONS["slice"](value, begin, size)


# ---- numbers of a seed ----


def _between(call, seed, low, high):
    if not low <= high:
        raise ValueError(f"image.{call}: the bounds are {low} and {high}; the lower one must not be above the other.")
    return float(stateless_uniform([], seed, float(low), float(high)).numpy())


def _at_most(call, seed, largest, limit=float("inf")):
    if not 0 <= largest <= limit:
        raise ValueError(f"image.{call}: max_delta is {largest}; it must be at least 0" + (f" and at most {limit}." if limit < 1 else "."))
    return _between(call, seed, -largest, largest)


def _flipped_by(call, image, flip, seed):
    image = convert_to_tensor(image)
    if len(image._shape) == 3:
        # TensorFlow flips an image below a half, and the images of a batch above it.
        return flip(image) if stateless_uniform([], seed).numpy() < 0.5 else image
    if len(image._shape) != 4:
        raise ValueError(f"image.{call}: the images are {list(image._shape)}; they must have 3 or 4 axes.")
    chosen = FUNCTIONS["reshape"](stateless_uniform([image._shape[0]], seed) > 0.5, [-1, 1, 1, 1])
    return where(chosen, flip(image), image)


def stateless_random_flip_left_right(image, seed):
    """TensorFlow's `tf.image.stateless_random_flip_left_right`: each image with a probability of a half."""
    return _flipped_by("stateless_random_flip_left_right", image, FUNCTIONS["image.flip_left_right"], seed)


def stateless_random_flip_up_down(image, seed):
    """TensorFlow's `tf.image.stateless_random_flip_up_down`: each image with a probability of a half."""
    return _flipped_by("stateless_random_flip_up_down", image, FUNCTIONS["image.flip_up_down"], seed)


def stateless_random_brightness(image, max_delta, seed):
    """TensorFlow's `tf.image.stateless_random_brightness`."""
    return FUNCTIONS["image.adjust_brightness"](image, _at_most("stateless_random_brightness", seed, max_delta))


def stateless_random_contrast(image, lower, upper, seed):
    """TensorFlow's `tf.image.stateless_random_contrast`."""
    return FUNCTIONS["image.adjust_contrast"](image, _between("stateless_random_contrast", seed, lower, upper))


def stateless_random_saturation(image, lower, upper, seed):
    """TensorFlow's `tf.image.stateless_random_saturation`."""
    return FUNCTIONS["image.adjust_saturation"](image, _between("stateless_random_saturation", seed, lower, upper))


def stateless_random_hue(image, max_delta, seed):
    """TensorFlow's `tf.image.stateless_random_hue`."""
    return FUNCTIONS["image.adjust_hue"](image, _at_most("stateless_random_hue", seed, max_delta, 0.5))


def stateless_random_crop(value, size, seed, name=None):
    """TensorFlow's `tf.image.stateless_random_crop`: a part of this size."""
    value = convert_to_tensor(value)
    shape, size = list(value._shape), [int(length) for length in size]
    _fits("stateless_random_crop", shape, size)
    drawn = stateless_uniform([len(shape)], seed, 0, 2**31 - 1, "int32").numpy().tolist()
    begin = [number % (whole - length + 1) for number, whole, length in zip(drawn, shape, size)]
    return FUNCTIONS["slice"](value, begin, size)
