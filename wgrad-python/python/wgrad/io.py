"""TensorFlow's `tf.io`: files, images in files, TFRecord files and the examples in them. Strings are `bytes` of the host."""

import csv
import glob as _glob
import os
import stat

import numpy as np

from . import _wgrad, errors, strings
from .dtypes import DType, as_name
from .encoded import decode_base64, decode_compressed, encode_base64, parse_tensor, serialize_tensor
from .tensor import Tensor, convert_to_tensor


def _path(name):
    """The name of a file, which may be an element of a dataset of strings."""
    if isinstance(name, np.ndarray) and name.ndim == 0:
        name = name.item()
    return os.fsdecode(name)


def _bytes(contents):
    if isinstance(contents, np.ndarray) and contents.ndim == 0:
        contents = contents.item()
    if isinstance(contents, str):
        return contents.encode()
    if not isinstance(contents, bytes):
        raise TypeError(f"the contents are {type(contents).__name__}; they must be bytes, such as those of tf.io.read_file.")
    return bytes(contents)


def _raised(error, path):
    kind = {FileExistsError: errors.AlreadyExistsError, FileNotFoundError: errors.NotFoundError, PermissionError: errors.PermissionDeniedError}.get(type(error), errors.UnknownError)
    return kind(f"{path}: {error.strerror or error}")


_RAW = {"float16": "f2", "float32": "f4", "float64": "f8", "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8", "uint8": "u1"}


def decode_raw(input_bytes, out_type, little_endian=True, fixed_length=None, name=None):
    """The numbers that a string holds, one after the other."""
    code = _RAW.get(as_name(out_type))
    if code is None:
        raise TypeError(f"decode_raw: out_type is {as_name(out_type)}; it must be one of {', '.join(_RAW)}.")
    contents = _bytes(input_bytes)
    if fixed_length is not None:
        contents = contents[:fixed_length].ljust(fixed_length, b"\0")
    if len(contents) % int(code[1]):
        raise errors.InvalidArgumentError(f"decode_raw: {len(contents)} bytes are no whole number of {as_name(out_type)}.")
    return convert_to_tensor(np.frombuffer(contents, ("<" if little_endian else ">") + code).astype(code))


def decode_csv(records, record_defaults, field_delim=",", use_quote_delim=True, na_value="", select_cols=None, name=None):
    """The columns of rows of CSV: `records` is a string or an array of them, and each default is `[value]`, or an empty list or a dtype
    for a column that each row must have."""
    rows = strings.of(records)
    columns = range(len(record_defaults)) if select_cols is None else [int(at) for at in select_cols]
    if select_cols is not None and len(columns) != len(record_defaults):
        raise ValueError(f"decode_csv: there are {len(columns)} columns and {len(record_defaults)} defaults.")
    quoting = csv.QUOTE_MINIMAL if use_quote_delim else csv.QUOTE_NONE
    texts = [text.decode() for text in rows.ravel().tolist()]
    fields = list(csv.reader(texts, delimiter=field_delim, quoting=quoting)) if texts else []
    if len(fields) != len(texts):
        raise ValueError(f"decode_csv: {len(texts)} records have {len(fields)} rows; a record is a row.")
    made = []
    for at, given in zip(columns, record_defaults):
        values, dtype = [], as_name(given) if isinstance(given, (DType, type, str)) else None
        default = [] if dtype is not None else np.asarray(given).ravel().tolist()
        if dtype is None:
            array = np.asarray(given)
            dtype = "string" if array.dtype.kind in "SUO" else "int32" if array.dtype.kind in "iu" else "float32"
        for number, row in enumerate(fields):
            if select_cols is None and len(row) != len(record_defaults) or at >= len(row):
                raise ValueError(f"decode_csv: record {number} has {len(row)} fields; expected {len(record_defaults)}.")
            field = row[at]
            if field in ("", na_value):
                if not default:
                    raise ValueError(f"decode_csv: field {at} of record {number} is missing, and its column has no default.")
                values.append(default[0])
                continue
            try:
                values.append(field if dtype == "string" else int(field) if "int" in dtype else float(field))
            except ValueError:
                raise ValueError(f"decode_csv: field {at} of record {number} is {field!r}; it must be {dtype}.") from None
        array = np.array(values, dtype=object if dtype == "string" else dtype).reshape(rows.shape)
        made.append(strings.of(array) if dtype == "string" else convert_to_tensor(array))
    return made


def read_file(filename, name=None):
    """The contents of a file, as `bytes`."""
    path = _path(filename)
    try:
        with open(path, "rb") as file:
            return strings.noted(file.read())
    except OSError as error:
        raise _raised(error, path) from error


def write_file(filename, contents, name=None):
    """Writes a file, and the folders that it needs."""
    path = _path(filename)
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "wb") as file:
            file.write(_bytes(contents))
    except OSError as error:
        raise _raised(error, path) from error


def matching_files(pattern, name=None):
    """The names of the files that match a pattern or one of several, sorted."""
    return np.array([os.fsencode(path) for path in gfile.glob(pattern)], dtype=object)


class FileStatistics:
    """The size of a file in bytes, and the time of its last change in nanoseconds since 1970."""

    def __init__(self, status):
        self.length, self.mtime_nsec, self.is_directory = status.st_size, status.st_mtime_ns, stat.S_ISDIR(status.st_mode)


class gfile:
    """Files and folders: `tf.io.gfile`."""

    @staticmethod
    def join(path, *paths):
        return os.path.join(path, *paths)

    @staticmethod
    def mkdir(path):
        try:
            os.mkdir(_path(path))
        except OSError as error:
            raise _raised(error, path) from error

    @staticmethod
    def rename(src, dst, overwrite=False):
        if not overwrite and os.path.exists(_path(dst)):
            raise errors.AlreadyExistsError(f"gfile.rename: {_path(dst)} exists, and overwrite is False.")
        try:
            os.replace(_path(src), _path(dst))
        except OSError as error:
            raise _raised(error, src) from error

    @staticmethod
    def stat(path):
        """The size of a file and the time of its last change."""
        try:
            return FileStatistics(os.stat(_path(path)))
        except OSError as error:
            raise _raised(error, path) from error

    @staticmethod
    def walk(top, topdown=True, onerror=None):
        """Each folder below `top` with the names of its folders and files, as `os.walk`."""
        return os.walk(_path(top), topdown, onerror)

    @staticmethod
    def exists(path):
        return os.path.exists(_path(path))

    @staticmethod
    def isdir(path):
        return os.path.isdir(_path(path))

    @staticmethod
    def glob(pattern):
        patterns = pattern if isinstance(pattern, (list, tuple)) else [pattern]
        return [found for one in patterns for found in sorted(_glob.glob(_path(one)))]

    @staticmethod
    def listdir(path):
        try:
            return sorted(os.listdir(_path(path)))
        except OSError as error:
            raise _raised(error, path) from error

    @staticmethod
    def makedirs(path):
        os.makedirs(_path(path), exist_ok=True)

    @staticmethod
    def remove(path):
        try:
            os.remove(_path(path))
        except OSError as error:
            raise _raised(error, path) from error

    @staticmethod
    def rmtree(path):
        import shutil

        try:
            shutil.rmtree(_path(path))
        except OSError as error:
            raise _raised(error, path) from error

    @staticmethod
    def copy(src, dst, overwrite=False):
        if not overwrite and os.path.exists(_path(dst)):
            raise errors.AlreadyExistsError(f"gfile.copy: {_path(dst)} exists, and overwrite is False.")
        write_file(dst, read_file(src))

    @staticmethod
    def GFile(name, mode="r"):
        path = _path(name)
        try:
            return open(path, mode, encoding=None if "b" in mode else "utf-8")
        except OSError as error:
            raise _raised(error, path) from error


# ---- images ----

# What TensorFlow also has in `tf.image`.
IMAGES = "decode_and_crop_jpeg decode_bmp decode_gif decode_image decode_jpeg decode_png encode_jpeg encode_png extract_jpeg_shape is_jpeg".split()


def _decoded(kind, contents, channels, dtype, frames=False, fast=True):
    pixels = convert_to_tensor(_wgrad.decode_image(kind, _bytes(contents), int(channels), frames, fast))
    if as_name(dtype) == "uint8":
        return pixels
    if as_name(dtype) != "float32":
        raise TypeError(f"decode_{kind}: the dtype is {dtype}; it must be uint8, or float32 for values from 0 to 1.")
    return pixels._cast("float32") * (1.0 / 255.0)


def decode_image(contents, channels=0, dtype="uint8", name=None, expand_animations=True):
    """The pixels of a BMP, GIF, JPEG, PNG or WebP file, `[H,W,C]`; those of a GIF are `[N,H,W,C]` with `expand_animations`."""
    return _decoded("image", contents, channels or 0, dtype, bool(expand_animations))


def decode_jpeg(contents, channels=0, ratio=1, fancy_upscaling=True, try_recover_truncated=False, acceptable_fraction=1, dct_method="",
                name=None):
    """The pixels of a JPEG file; `dct_method` is 'INTEGER_FAST', TensorFlow's own, or 'INTEGER_ACCURATE'."""
    if ratio != 1 or not fancy_upscaling or try_recover_truncated:
        raise TypeError("decode_jpeg: ratio, fancy_upscaling and try_recover_truncated are not supported; leave them out.")
    if dct_method not in ("", "INTEGER_FAST", "INTEGER_ACCURATE"):
        raise errors.InvalidArgumentError(f"decode_jpeg: dct_method is {dct_method!r}; it must be 'INTEGER_FAST' or 'INTEGER_ACCURATE'.")
    return _decoded("jpeg", contents, channels, "uint8", fast=dct_method != "INTEGER_ACCURATE")


def is_jpeg(contents, name=None):
    """Whether the contents begin as those of a JPEG file."""
    return convert_to_tensor(_bytes(contents)[:3] == b"\xff\xd8\xff")


def extract_jpeg_shape(contents, output_type="int32", name=None):
    """The height, the width and the number of channels of a JPEG file, from its header."""
    data, at = _bytes(contents), 2
    while data[:2] == b"\xff\xd8" and at + 9 < len(data) and data[at] == 0xFF:
        kind, size = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if kind == 0xFF:
            at += 1
        elif 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = int.from_bytes(data[at + 5 : at + 7], "big"), int.from_bytes(data[at + 7 : at + 9], "big")
            return convert_to_tensor([height, width, data[at + 9]])._cast(as_name(output_type))
        else:
            at += 2 + size
    raise errors.InvalidArgumentError(f"extract_jpeg_shape: the {len(data)} bytes have no header of a JPEG file.")


def decode_and_crop_jpeg(contents, crop_window, channels=0, ratio=1, fancy_upscaling=True, try_recover_truncated=False,
                         acceptable_fraction=1, dct_method="", name=None):
    """The pixels of a part of a JPEG file: `crop_window` has the first row, the first column, the height and the width."""
    image = decode_jpeg(contents, channels, ratio, fancy_upscaling, try_recover_truncated, acceptable_fraction, dct_method)
    top, left, height, width = (int(number) for number in np.asarray(crop_window).tolist())
    if min(top, left) < 0 or min(height, width) < 1 or top + height > image._shape[0] or left + width > image._shape[1]:
        raise errors.InvalidArgumentError(
            f"decode_and_crop_jpeg: crop_window is {[top, left, height, width]}, and the image {list(image._shape)}; it must be inside."
        )
    return image[top : top + height, left : left + width]


def decode_png(contents, channels=0, dtype="uint8", name=None):
    """The pixels of a PNG file."""
    return _decoded("png", contents, channels, dtype)


def decode_bmp(contents, channels=0, name=None):
    """The pixels of a BMP file."""
    return _decoded("bmp", contents, channels, "uint8")


def decode_gif(contents, name=None):
    """The frames of a GIF file, `[N,H,W,3]`."""
    return _decoded("gif", contents, 3, "uint8")


def _pixels(call, image):
    image = image.numpy() if isinstance(image, Tensor) else np.asarray(image)
    if image.dtype != np.uint8 or image.ndim != 3:
        raise errors.InvalidArgumentError(f"{call}: the image is {image.dtype}{list(image.shape)}; it must be uint8[H, W, C].")
    return np.ascontiguousarray(image)


def encode_jpeg(image, format="", quality=95, name=None):
    """An image as the contents of a JPEG file."""
    return _wgrad.encode_image("jpeg", _pixels("encode_jpeg", image), int(quality))


def encode_png(image, compression=-1, name=None):
    """An image as the contents of a PNG file."""
    return _wgrad.encode_image("png", _pixels("encode_png", image), int(compression))


# ---- records ----


class TFRecordOptions:
    """How a TFRecord file is compressed: '', 'GZIP' or 'ZLIB'."""

    def __init__(self, compression_type=None, **options):
        self.compression_type = compression_type


class TFRecordWriter:
    """Writes the records of a TFRecord file; also as a `with` block."""

    def __init__(self, path, options=None):
        kind = options.compression_type if isinstance(options, TFRecordOptions) else options
        self._native = _wgrad.NativeRecordWriter(_path(path), kind)

    def write(self, record):
        self._native.write(_bytes(record))

    def flush(self):
        self._native.flush()

    def close(self):
        self._native.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


class FixedLenFeature:
    """A feature with a shape, for `parse_single_example`."""

    def __init__(self, shape, dtype, default_value=None):
        self.shape, self.dtype, self.default_value = [int(size) for size in ([shape] if isinstance(shape, int) else shape)], as_name(dtype), default_value


class FixedLenSequenceFeature:
    """A feature with any number of values of a shape."""

    def __init__(self, shape, dtype, allow_missing=False, default_value=None):
        if not allow_missing:
            raise ValueError("FixedLenSequenceFeature: examples need allow_missing=True.")
        self.shape, self.dtype = [int(size) for size in ([shape] if isinstance(shape, int) else shape)], as_name(dtype)


class VarLenFeature:
    """A feature with any number of values."""

    def __init__(self, dtype):
        self.dtype = as_name(dtype)


_KINDS = {"string": "bytes", "int64": "int64", "float32": "float"}


def _feature(name, wanted, found):
    """A feature of an example as a tensor, or as an array of strings."""
    if wanted.dtype not in _KINDS:
        raise TypeError(f"parse_example: the feature '{name}' is to be {wanted.dtype}; files have string, int64 and float32.")
    kind, values = found.get(name, ("", []))
    if kind and kind != _KINDS[wanted.dtype]:
        raise errors.InvalidArgumentError(f"parse_example: the feature '{name}' has values of {kind}; {wanted.dtype} was asked for.")
    shape = [-1] if isinstance(wanted, VarLenFeature) else list(wanted.shape)
    if isinstance(wanted, FixedLenSequenceFeature):
        shape = [-1, *shape]
    elif isinstance(wanted, FixedLenFeature):
        count = int(np.prod(shape)) if shape else 1
        if not kind:
            if wanted.default_value is None:
                raise errors.InvalidArgumentError(f"parse_example: the feature '{name}' is missing, and it has no default_value.")
            values = np.ravel(wanted.default_value).tolist()
            values = values * count if len(values) == 1 else values
        if len(values) != count:
            raise errors.InvalidArgumentError(f"parse_example: the feature '{name}' has {len(values)} values; the shape {shape} needs {count}.")
    if wanted.dtype == "string":
        texts = np.empty(len(values), dtype=object)
        texts[:] = [value.encode() if isinstance(value, str) else value for value in values]
        return strings.noted(texts.reshape(shape) if shape else texts[0])
    return convert_to_tensor(np.array(values, dtype=wanted.dtype).reshape(shape))


def parse_single_example(serialized, features, example_names=None, name=None):
    """The features of a serialized `tf.train.Example`: numbers as tensors, strings as `bytes` and arrays of them. Values of a
    `VarLenFeature` are a tensor of one axis, as there are no sparse tensors."""
    found = {key: (kind, values) for key, kind, values in _wgrad.parse_example(_bytes(serialized))}
    return {key: _feature(key, wanted, found) for key, wanted in features.items()}


def parse_example(serialized, features, example_names=None, name=None):
    """As `parse_single_example` for several examples, whose features are stacked."""
    rows = [parse_single_example(one, features) for one in np.ravel(np.asarray(serialized, dtype=object))]
    ragged = [key for key, wanted in features.items() if not isinstance(wanted, FixedLenFeature)]
    if ragged:
        raise TypeError(f"parse_example: the feature '{ragged[0]}' has any number of values; call parse_single_example for each example.")
    if not rows:
        raise ValueError("parse_example: there are no examples.")
    joined = lambda values: convert_to_tensor(values) if isinstance(values[0], Tensor) else strings.noted(np.stack([np.array(v, dtype=object) for v in values]))
    return {key: joined([row[key] for row in rows]) for key in features}
