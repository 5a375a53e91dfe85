"""Tensors and bytes as strings: TensorFlow's protocol buffer of a tensor, base64, and compressed bytes. It computes on the host."""

import base64
import re
import zlib

import numpy as np

from . import errors, strings
from .dtypes import as_name
from .tensor import convert_to_tensor

# The numbers of dtypes in TensorFlow's files, and the fields with values that are not bytes.
NUMBERS = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7, "int64": 9, "bool": 10, "uint16": 17,
    "float16": 19, "uint32": 22, "uint64": 23,
}
_NAMES = {number: name for name, number in NUMBERS.items()}
_FIXED = {5: "<f4", 6: "<f8"}
_WHOLE = {7, 10, 11, 13, 16, 17}
# A larger tensor in a few bytes is damaged.
_MOST = 2**28


def _varint(number):
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)


def _field(number, contents):
    return _varint(number << 3 | 2) + _varint(len(contents)) + contents


def serialize_tensor(tensor, name=None):
    """TensorFlow's `tf.io.serialize_tensor`: a tensor, or strings, as a string that `parse_tensor` and TensorFlow read."""
    if strings.is_text(tensor):
        array = strings.of(tensor)
        number, values = NUMBERS["string"], b"".join(_field(8, text) for text in array.ravel().tolist())
    else:
        array = convert_to_tensor(tensor).numpy()
        number = NUMBERS[array.dtype.name]
        contents = array.astype(array.dtype.newbyteorder("<")).tobytes()
        values = _field(4, contents) if contents else b""
    sizes = b"".join(_field(2, b"\x08" + _varint(size) if size else b"") for size in array.shape)
    return strings.noted(b"\x08" + _varint(number) + _field(2, sizes) + values)


class _Reader:
    """The fields of a message."""

    def __init__(self, contents):
        self._contents, self._at = contents, 0

    def varint(self):
        made, shift = 0, 0
        while True:
            byte = self._take(1)[0]
            made |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return made & (1 << 64) - 1
            if shift > 63:
                raise ValueError("a number has more than 64 bits")

    def _take(self, count):
        end = self._at + count
        if end > len(self._contents):
            raise ValueError("it ends early")
        taken, self._at = self._contents[self._at : end], end
        return taken

    def fields(self):
        while self._at < len(self._contents):
            key = self.varint()
            kind = key & 7
            if kind == 0:
                yield key >> 3, self.varint()
            elif kind in (1, 5):
                yield key >> 3, self._take(8 if kind == 1 else 4)
            elif kind == 2:
                yield key >> 3, self._take(self.varint())
            else:
                raise ValueError(f"there is a field of the kind {kind}")

    def all_varints(self):
        made = []
        while self._at < len(self._contents):
            made.append(self.varint())
        return made


def _shape(contents):
    sizes = []
    for number, value in _Reader(contents).fields():
        if number == 2:
            size = dict(_Reader(value).fields()).get(1, 0)
            sizes.append(size - (1 << 64) if size >> 63 else size)
    if any(size < 0 for size in sizes):
        raise ValueError(f"the shape is {sizes}")
    return sizes


def _parsed(contents):
    """The dtype and the array of a message."""
    number, shape, raw, values = 0, [], None, []
    for field, value in _Reader(contents).fields():
        if field == 1:
            number = value
        elif field == 2:
            shape = _shape(value)
        elif field == 4:
            raw = value
        elif field == 8:
            values.append(value)
        elif field in _FIXED:
            values += np.frombuffer(value, _FIXED[field]).tolist()
        elif field in _WHOLE:
            values += [value] if isinstance(value, int) else _Reader(value).all_varints()
    name = _NAMES.get(number)
    if name is None:
        raise ValueError(f"the number of its dtype is {number}")
    count = int(np.prod(shape, dtype="object")) if shape else 1
    if raw is not None and name != "string":
        dtype = np.dtype(name).newbyteorder("<")
        if len(raw) != count * dtype.itemsize:
            raise ValueError(f"it has {len(raw)} bytes for the shape {shape}")
        return name, np.frombuffer(raw, dtype).astype(name).reshape(shape)
    if len(values) > count or count > _MOST:
        raise ValueError(f"it has {len(values)} values for the shape {shape}")
    if name == "string":
        array = np.empty(len(values), dtype=object)
        array[:] = values
    elif name == "float16":
        array = np.array(values, dtype="uint16").view("float16")
    elif name.startswith("float"):
        array = np.array(values, dtype=name)
    else:
        array = np.array(values, dtype="uint64").astype(name)
    # The last value stands for those that follow.
    last = array[-1] if len(array) else b"" if name == "string" else 0
    rest = np.full(count - len(array), last, dtype=array.dtype)
    return name, np.concatenate([array, rest]).reshape(shape)


def parse_tensor(serialized, out_type, name=None):
    """TensorFlow's `tf.io.parse_tensor`: the tensor, or the strings, in a string of `serialize_tensor`."""
    text = strings.of(serialized)
    if text.ndim:
        raise ValueError(f"parse_tensor: the strings are {list(text.shape)}; give one string.")
    contents = text.item()
    try:
        found, array = _parsed(contents)
    except (ValueError, AttributeError, TypeError, OverflowError, MemoryError) as error:
        shown = contents if len(contents) <= 32 else contents[:32] + b".."
        raise errors.InvalidArgumentError(f"parse_tensor: {shown!r} is no tensor that serialize_tensor wrote: {error}.") from None
    if found != as_name(out_type):
        raise errors.InvalidArgumentError(f"parse_tensor: the tensor is {found}, and out_type is {as_name(out_type)}; give tf.{found}.")
    return strings.of(array) if found == "string" else convert_to_tensor(array)


# ---- bytes ----


def encode_base64(input, pad=False, name=None):
    """TensorFlow's `tf.io.encode_base64`: strings in the alphabet of base64 for URLs, without `=` at the end unless `pad`."""
    made = strings._each(base64.urlsafe_b64encode, strings.of(input))
    return made if pad else strings._each(lambda text: text.rstrip(b"="), made)


def decode_base64(input, name=None):
    """TensorFlow's `tf.io.decode_base64`: the bytes of strings in the alphabet of base64 for URLs, with or without `=` at the end."""

    def decoded(text):
        bare = re.sub(rb"={1,2}$", b"", text)
        if len(bare) % 4 == 1 or not re.fullmatch(rb"[A-Za-z0-9_-]*", bare):
            raise errors.InvalidArgumentError(f"decode_base64: {text!r} is not base64 in the alphabet for URLs, A-Z, a-z, 0-9, - and _.")
        return base64.urlsafe_b64decode(bare + b"=" * (-len(bare) % 4))

    return strings._each(decoded, strings.of(input))


def decode_compressed(bytes, compression_type="", name=None):
    """TensorFlow's `tf.io.decode_compressed`: the contents of strings that were compressed: 'ZLIB', 'GZIP', or '' for none."""
    windows = {"ZLIB": 15, "GZIP": 31}
    if compression_type and compression_type not in windows:
        raise ValueError(f"decode_compressed: compression_type is {compression_type!r}; it must be '', 'ZLIB' or 'GZIP'.")

    def decoded(text):
        if not compression_type:
            return text
        try:
            return zlib.decompress(text, windows[compression_type])
        except zlib.error as error:
            raise errors.InvalidArgumentError(f"decode_compressed: a string of {len(text)} bytes is not {compression_type}: {error}.") from None

    return strings._each(decoded, strings.of(bytes))


# Numbers with these sizes are read as others.
_SIZES = {"float64": 8, "int64": 8, "uint64": 8, "float32": 4, "int32": 4, "uint32": 4, "float16": 2, "uint8": 1}


def bitcast(input, type, name=None):
    """TensorFlow's `tf.bitcast`: the bits of a tensor as numbers of another dtype. Numbers of other sizes are in a last axis. It reads the
    values."""
    array = convert_to_tensor(input).numpy()
    wanted, own = as_name(type), array.dtype
    if wanted not in _SIZES or wanted in ("float64", "int64", "uint64") or own == bool:
        raise errors.InvalidTypeError(
            f"bitcast: bits of {own.name} cannot be read as {wanted}; devices hold float32, float16, int32, uint32 and uint8."
        )
    size = _SIZES[wanted]
    if size == own.itemsize:
        return convert_to_tensor(array.view(wanted))
    if size < own.itemsize:
        return convert_to_tensor(array[..., None].view(wanted))
    if not array.ndim or array.shape[-1] * own.itemsize != size:
        raise errors.InvalidArgumentError(
            f"bitcast: {own.name}{list(array.shape)} cannot be read as {wanted}; its last axis must have {size // own.itemsize} elements."
        )
    return convert_to_tensor(array.view(wanted)[..., 0])
