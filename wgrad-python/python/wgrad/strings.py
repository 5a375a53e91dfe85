"""TensorFlow's `tf.strings`. Strings are on the host: arrays of NumPy whose elements are `bytes`.

Patterns are those of Python's `re`, which reads nearly all of RE2's.
"""

import functools
import inspect
import re
import typing

import numpy as np

from . import _wgrad
from .dtypes import as_name
from .tensor import Tensor, Variable, convert_to_tensor

# What functions take for strings.
StringLike = typing.Any


class StringTensor(np.ndarray):
    """An array of NumPy with `numpy()`, as tensors have it."""

    def numpy(self):
        """The array; a string without axes as `bytes`."""
        return np.asarray(self) if self.ndim else self.item()

    def __getitem__(self, key):
        made = super().__getitem__(key)
        return StringScalar(made) if isinstance(made, bytes) else made

    def __iter__(self):
        return (self[at] for at in range(len(self)))

    def __eq__(self, other):
        return np.asarray(self) == (np.asarray(of(other)) if is_text(other) else other)

    def __ne__(self, other):
        return np.asarray(self) != (np.asarray(of(other)) if is_text(other) else other)

    def __add__(self, other):
        return join([self, other])

    def __radd__(self, other):
        return join([other, self])

    # Arrays have no hash, and what defines `__eq__` says so.
    __hash__ = None


class StringScalar(bytes):
    """A string with `numpy()`, as tensors have it."""

    __slots__ = ()
    shape = ()

    def numpy(self):
        """The string as `bytes`."""
        return bytes(self)

    def __eq__(self, other):
        return bytes.__eq__(self, other.encode() if isinstance(other, str) else other)

    def __ne__(self, other):
        return not self == other

    def __add__(self, other):
        return StringScalar(bytes(self) + _bytes(other)) if isinstance(other, (str, bytes)) else join([self, other])

    def __radd__(self, other):
        return StringScalar(_bytes(other) + bytes(self))

    __hash__ = bytes.__hash__


def host_array(value):
    """An array of strings or numbers on the host, as the native part takes it."""
    if isinstance(value, (Tensor, Variable)):
        value = value.numpy()
    array = np.asarray(value)
    if array.dtype.kind in "SUO":
        texts = []
        for text in array.ravel().tolist():
            if not isinstance(text, (str, bytes)):
                raise TypeError(f"an array of strings contains {text!r} of {type(text).__name__}.")
            texts.append(text.encode() if isinstance(text, str) else text)
        return "str", list(array.shape), texts
    return array.dtype.str[1:], list(array.shape), array.astype(array.dtype.newbyteorder("<")).tobytes()


def noted(text):
    """A string or an array of strings, with the methods of tensors."""
    if isinstance(text, (str, bytes)):
        return text if isinstance(text, StringScalar) else StringScalar(_bytes(text))
    return text if isinstance(text, StringTensor) else np.asarray(text).view(StringTensor)


def is_text(value):
    """Whether a value is a string, or a list or an array of strings."""
    # NumPy's arrays have 64 axes at most; a list may contain itself.
    for _ in range(64):
        if not (isinstance(value, (list, tuple)) and value):
            break
        value = value[0]
    return isinstance(value, (str, bytes)) or isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "SUO"


def of(values):
    """The strings in a string, a list or an array."""
    if isinstance(values, (Tensor, Variable)):
        raise TypeError(f"strings: the values are {values.dtype.name}; they must be strings. tf.strings.as_string makes strings of numbers.")
    # NumPy's arrays of fixed sizes lose zeros at the end of bytes.
    array = np.asarray(values) if isinstance(values, np.ndarray) or not is_text(values) else np.asarray(values, dtype=object)
    if array.dtype.kind not in "SUO":
        raise TypeError(f"strings: the values are {array.dtype}; they must be strings. tf.strings.as_string makes strings of numbers.")
    return _each(_bytes, array)


def _bytes(text):
    if isinstance(text, str):
        return text.encode()
    if isinstance(text, bytes):
        return text
    raise TypeError(f"strings: {text!r} is {type(text).__name__}; it must be str or bytes.")


def _each(function, array):
    made = np.empty(array.shape, dtype=object)
    # The items of NumPy's arrays of fixed sizes are Python's, too.
    made.ravel()[:] = [function(text) for text in array.ravel().tolist()] if array.size else []
    return made.view(StringTensor)


def _text(text):
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"strings: {text!r} is not valid UTF-8 from byte {error.start} on.") from None


def _encoded(encoding):
    if encoding not in ("", "utf-8"):
        raise ValueError(f"strings: encoding is {encoding!r}; it must be '' or 'utf-8'.")
    return encoding == "utf-8"


def lower(input, encoding="", name=None):
    """TensorFlow's `tf.strings.lower`: ASCII letters, or all with `encoding="utf-8"`."""
    whole = _encoded(encoding)
    return _each(lambda text: _text(text).lower().encode() if whole else text.lower(), of(input))


def upper(input, encoding="", name=None):
    """TensorFlow's `tf.strings.upper`: ASCII letters, or all with `encoding="utf-8"`."""
    whole = _encoded(encoding)
    return _each(lambda text: _text(text).upper().encode() if whole else text.upper(), of(input))


def strip(input, name=None):
    """TensorFlow's `tf.strings.strip`: without spaces at both ends."""
    return _each(bytes.strip, of(input))


def _counted(unit):
    if unit not in ("BYTE", "UTF8_CHAR"):
        raise ValueError(f"strings: unit is {unit!r}; it must be 'BYTE' or 'UTF8_CHAR'.")
    return unit == "UTF8_CHAR"


def length(input, unit="BYTE", name=None):
    """TensorFlow's `tf.strings.length`, a tensor."""
    characters, texts = _counted(unit), of(input)
    sizes = [len(_text(text)) if characters else len(text) for text in texts.ravel().tolist()]
    return convert_to_tensor(np.array(sizes, dtype="int32").reshape(texts.shape))


def substr(input, pos, len, unit="BYTE", name=None):
    """TensorFlow's `tf.strings.substr`."""
    characters, begin, count = _counted(unit), int(pos), int(len)

    def part(text):
        whole = _text(text) if characters else text
        size = whole.__len__()
        if not -size <= begin <= size:
            raise ValueError(f"substr: pos is {begin}, and {text!r} has {size}.")
        first = begin + size if begin < 0 else begin
        found = whole[first : first + max(count, 0)]
        return found.encode() if characters else found

    return _each(part, of(input))


# RE2's classes inside of brackets, which `re` does not have.
_CLASSES = {
    b"alnum": rb"0-9A-Za-z", b"alpha": rb"A-Za-z", b"digit": rb"0-9", b"lower": rb"a-z", b"upper": rb"A-Z", b"space": rb"\s",
    b"punct": rb"!-/:-@\[-`{-~", b"word": rb"\w", b"xdigit": rb"0-9A-Fa-f",
}


@functools.lru_cache(64)
def _pattern(pattern):
    for name, characters in _CLASSES.items():
        pattern = pattern.replace(b"[:" + name + b":]", characters)
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"strings: the pattern {pattern!r} is not valid: {error}.") from None


def _rewriting(rewrite, groups):
    r"""The function that makes the new text of a match. As in RE2, `\0` to `\9` are groups and `\\` is a backslash."""
    parts = re.split(rb"\\(.?)", rewrite, flags=re.DOTALL)
    for at, escaped in enumerate(parts[1::2]):
        if escaped == b"\\":
            parts[2 * at + 1] = escaped
        elif escaped.isdigit() and int(escaped) <= groups:
            parts[2 * at + 1] = int(escaped)
        else:
            raise ValueError(f"regex_replace: rewrite is {rewrite!r}; after a backslash there must be another one or a group, 0 to {groups}.")
    return lambda match: b"".join(match[part] or b"" if isinstance(part, int) else part for part in parts)


def regex_replace(input, pattern, rewrite, replace_global=True, name=None):
    r"""TensorFlow's `tf.strings.regex_replace`; `\1` in `rewrite` is the first group."""
    found = _pattern(_bytes(pattern))
    new = _rewriting(_bytes(rewrite), found.groups)
    return _each(lambda text: found.sub(new, text, 0 if replace_global else 1), of(input))


def regex_full_match(input, pattern, name=None):
    """TensorFlow's `tf.strings.regex_full_match`, a tensor of truth values."""
    found, texts = _pattern(_bytes(pattern)), of(input)
    return convert_to_tensor(np.array([found.fullmatch(text) is not None for text in texts.ravel().tolist()], dtype=bool).reshape(texts.shape))


def join(inputs, separator="", name=None):
    """TensorFlow's `tf.strings.join`: strings at the same places in several arrays."""
    parts, between = np.broadcast_arrays(*[of(part) for part in inputs], subok=True), _bytes(separator)
    made = np.empty(parts[0].shape, dtype=object)
    made.ravel()[:] = [between.join(texts) for texts in zip(*[part.ravel().tolist() for part in parts])]
    return made.view(StringTensor)


def reduce_join(inputs, axis=None, keepdims=False, separator="", name=None):
    """TensorFlow's `tf.strings.reduce_join`: the strings along axes, all by default."""
    texts, between = of(inputs), _bytes(separator)
    axes = range(texts.ndim) if axis is None else [at % texts.ndim for at in ([axis] if isinstance(axis, int) else axis)]
    kept = [at for at in range(texts.ndim) if at not in axes]
    moved = np.transpose(texts, [*kept, *axes]).reshape([texts.shape[at] for at in kept] + [-1])
    made = np.empty(moved.shape[:-1], dtype=object)
    made.ravel()[:] = [between.join(row) for row in moved.reshape(-1, moved.shape[-1]).tolist()]
    if keepdims:
        made = made.reshape([1 if at in axes else size for at, size in enumerate(texts.shape)])
    return made.view(StringTensor)


def in_rows(parts):
    """The parts of each string, as a ragged tensor."""
    from .ragged import texts_in_rows

    return texts_in_rows(parts)


def split(input, sep=None, maxsplit=-1, name=None):
    """TensorFlow's `tf.strings.split`: an array of the parts of a string; for several strings, a ragged tensor."""
    between = None if sep in (None, "", b"") else _bytes(sep)
    texts = of(input)
    parts = lambda text: of(np.array(text.split(between, maxsplit) or [], dtype=object))
    return parts(texts.item()) if texts.ndim == 0 else in_rows([split(row, sep, maxsplit) for row in texts])


def to_number(input, out_type="float32", name=None):
    """TensorFlow's `tf.strings.to_number`, a tensor."""
    texts, dtype = of(input), as_name(out_type)

    def number(text):
        try:
            return float(text) if dtype.startswith("float") else int(text)
        except ValueError:
            raise ValueError(f"to_number: {text!r} is no {dtype}.") from None

    values = np.array([number(text) for text in texts.ravel().tolist()], dtype=dtype)
    return convert_to_tensor(values.reshape(texts.shape))


def as_string(input, precision=-1, scientific=False, shortest=False, width=-1, fill="", name=None):
    """TensorFlow's `tf.strings.as_string`."""
    array = np.asarray(input)
    pad = f"{fill}{width}" if width >= 0 else ""
    digits = f".{precision}" if precision >= 0 else ""
    kind = "e" if scientific else "g" if shortest else "f"

    def text(value):
        if isinstance(value, (bytes, str)):
            return _bytes(value)
        if isinstance(value, bool):
            return b"true" if value else b"false"
        return (f"%{pad}d" % value if isinstance(value, int) else f"%{pad}{digits}{kind}" % value).encode()

    return _each(text, array)


def _hashed(input, options):
    import json

    texts = of(input)
    layer = _wgrad.NativeHostLayer(json.dumps({"class_name": "Hashing", "config": options}))
    return convert_to_tensor(layer.call([("str", list(texts.shape), texts.ravel().tolist())]))


def to_hash_bucket_fast(input, num_buckets, name=None):
    """TensorFlow's `tf.strings.to_hash_bucket_fast` (FarmHash64), a tensor."""
    return _hashed(input, {"num_bins": int(num_buckets)})


def to_hash_bucket_strong(input, num_buckets, key, name=None):
    """TensorFlow's `tf.strings.to_hash_bucket_strong` (SipHash), a tensor."""
    return _hashed(input, {"num_bins": int(num_buckets), "salt": [int(number) for number in key]})


# ---- texts of tensors, and pieces of texts ----


def _shown(value):
    """An element as TensorFlow prints it."""
    if isinstance(value, bytes):
        escapes = {0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t", 0x22: '\\"', 0x27: "\\'", 0x5C: "\\\\"}
        plain = lambda byte: chr(byte) if 32 <= byte < 127 or byte >= 128 else f"\\{byte:03o}"
        return ('"' + "".join(escapes.get(byte) or plain(byte) for byte in value) + '"').encode("latin-1")
    if isinstance(value, (bool, np.bool_)):
        return b"1" if value else b"0"
    if isinstance(value, np.floating):
        # Six digits if they are enough, otherwise nine, which are for all numbers of 32 bits.
        short = f"{value:.6g}"
        return (short if value.dtype.type(short) == value else f"{value:.9g}").encode()
    return str(value).encode()


def _summary(array, ends, depth=0):
    """An array in brackets, with the first and the last elements of each axis; `depth` is the number of brackets around it."""
    if isinstance(array, (bytes, np.generic)) or not array.ndim:
        return _shown(array if isinstance(array, bytes) else array[()])
    space = b" " if array.ndim == 1 else b"\n" * (array.ndim - 1) + b" " * (depth + 1)
    count = array.shape[0]
    parts = [_summary(part, ends, depth + 1) for part in array[: min(ends, count)]]
    if count > 2 * ends:
        # With nothing in front, TensorFlow begins with the space.
        parts.append(b"..." if parts else space + b"...")
    parts += [_summary(part, ends, depth + 1) for part in array[max(ends, count - ends) :]]
    return b"[" + space.join(parts) + b"]"


def format(template, inputs, placeholder="{}", summarize=3, name=None):
    """TensorFlow's `tf.strings.format`: a string with the values of tensors in place of `{}`. Each axis shows `summarize` elements at both
    ends, or all with -1."""
    given = list(inputs) if isinstance(inputs, (list, tuple)) and not isinstance(inputs, np.ndarray) else [inputs]
    parts = _bytes(template).split(_bytes(placeholder))
    if len(parts) != len(given) + 1:
        raise ValueError(f"format: the template has {len(parts) - 1} times {placeholder!r}, and there are {len(given)} tensors.")
    made = parts[0]
    for one, after in zip(given, parts[1:]):
        array = of(one) if is_text(one) else convert_to_tensor(one).numpy()
        made += _summary(np.asarray(array), array.size if summarize < 0 else min(int(summarize), array.size)) + after
    return noted(made)


def bytes_split(input, name=None):
    """TensorFlow's `tf.strings.bytes_split`: an array of the bytes of a string; for several strings, a list of such arrays."""
    texts = of(input)
    if texts.ndim:
        return [bytes_split(row) for row in texts]
    text = texts.item()
    return of(np.array([text[at : at + 1] for at in range(len(text))], dtype=object))


def ngrams(data, ngram_width, separator=" ", pad_values=None, padding_width=None, preserve_short_sequences=False, name=None):
    """TensorFlow's `tf.strings.ngrams`: neighbours in the last axis, joined. Rows of different lengths are a list of arrays."""
    widths = [int(width) for width in (ngram_width if isinstance(ngram_width, (list, tuple)) else [ngram_width])]
    if min(widths) < 1:
        raise ValueError(f"ngrams: ngram_width is {ngram_width}; it must be at least 1.")
    if isinstance(data, list) and data and not isinstance(data[0], (str, bytes)):
        return [ngrams(row, ngram_width, separator, pad_values, padding_width, preserve_short_sequences) for row in data]
    texts, between = of(data), _bytes(separator)
    if not texts.ndim:
        raise ValueError("ngrams: the data is a string; it must have an axis of strings.")
    if texts.ndim > 1:
        rows = [ngrams(row, ngram_width, separator, pad_values, padding_width, preserve_short_sequences) for row in texts]
        return np.stack(rows).view(StringTensor)
    pads = (pad_values, pad_values) if isinstance(pad_values, (str, bytes)) else pad_values
    if padding_width is not None and padding_width < 1:
        raise ValueError(f"ngrams: padding_width is {padding_width}; it must be at least 1.")
    made = []
    for width in widths:
        pad = 0 if pads is None else min(width - 1, width - 1 if padding_width is None else int(padding_width))
        row = ([_bytes(pads[0])] * pad + texts.tolist() + [_bytes(pads[1])] * pad) if pad else texts.tolist()
        count = row.__len__() - width + 1
        made += [between.join(row[at : at + width]) for at in range(count)]
        if count < 1 and preserve_short_sequences and row:
            made.append(between.join(row))
    return of(np.array(made, dtype=object))


def unsorted_segment_join(inputs, segment_ids, num_segments, separator="", name=None):
    """TensorFlow's `tf.strings.unsorted_segment_join`: the strings of each number, joined in order."""
    texts, ids, between = of(inputs), np.asarray(segment_ids), _bytes(separator)
    if texts.shape[: ids.ndim] != ids.shape:
        raise ValueError(f"unsorted_segment_join: the strings are {list(texts.shape)} and the ids {list(ids.shape)}; the strings must begin with it.")
    rest = texts.shape[ids.ndim :]
    rows = texts.reshape(-1, *rest)
    if ids.size and not ids.max() < num_segments:
        raise ValueError(f"unsorted_segment_join: an id is {ids.max()}; they must be below {num_segments}.")
    made = np.empty((int(num_segments), *rest), dtype=object)
    for place in np.ndindex(made.shape):
        of_place = [text for number, text in zip(ids.ravel().tolist(), rows[(slice(None), *place[1:])].tolist()) if number == place[0]]
        made[place] = between.join(of_place)
    return made.view(StringTensor)


# At the end, as it needs the functions above.
from .unicode_strings import unicode_decode, unicode_encode, unicode_split, unicode_transcode  # noqa: E402


# ---- functions of shapes, which take strings, too ----


def _sizes(shape):
    return np.asarray(shape).ravel().tolist()


def _compared(x, y, name=None):
    return convert_to_tensor(np.asarray(np.equal(*np.broadcast_arrays(np.asarray(of(x)), np.asarray(of(y)))), dtype=bool))


_OF_SHAPES = {
    "equal": _compared,
    "not_equal": lambda x, y, name=None: convert_to_tensor(~_compared(x, y).numpy()),
    "shape": lambda input, out_type="int32", name=None: convert_to_tensor(np.array(of(input).shape, dtype="int32")),
    "size": lambda input, out_type="int32", name=None: convert_to_tensor(of(input).size),
    "rank": lambda input, name=None: convert_to_tensor(of(input).ndim),
    "reverse": lambda tensor, axis, name=None: np.flip(of(tensor), tuple(_sizes(axis))),
    "transpose": lambda a, perm=None, conjugate=False, name=None: np.transpose(of(a), None if perm is None else _sizes(perm)),
    "tile": lambda input, multiples, name=None: np.tile(np.asarray(of(input)), _sizes(multiples)).view(StringTensor),
    "identity": lambda input, name=None: of(input),
    "expand_dims": lambda input, axis, name=None: np.expand_dims(of(input), axis),
    "squeeze": lambda input, axis=None, name=None: np.squeeze(of(input), None if axis is None else tuple(_sizes(axis))),
    "reshape": lambda tensor, shape, name=None: of(tensor).reshape(_sizes(shape)),
    "stack": lambda values, axis=0, name=None: np.stack([of(value) for value in values], axis).view(StringTensor),
    "concat": lambda values, axis, name=None: np.concatenate([of(value) for value in values], axis).view(StringTensor),
    "boolean_mask": lambda tensor, mask, axis=None, name=None: np.compress(
        np.asarray(mask), of(tensor), axis or 0
    ).view(StringTensor) if np.ndim(mask) == 1 else of(tensor)[np.asarray(mask)],
    "gather": lambda params, indices, *rest, axis=0, name=None: np.take(of(params), np.asarray(indices), axis).view(StringTensor),
}


def install(top):
    """Puts functions of shapes that also take strings into a namespace."""
    for key, of_strings in _OF_SHAPES.items():
        top[key] = _with_strings(top[key], of_strings)


def _with_strings(function, of_strings):
    def call(*arguments, **named):
        first = arguments[0] if arguments else next(iter(named.values()), None)
        if is_text(first):
            return of_strings(*arguments, **named)
        return function(*arguments, **named)

    call.__name__ = call.__qualname__ = function.__name__
    call.__doc__, call.__signature__ = function.__doc__, inspect.signature(function)
    if hasattr(function, "lists"):
        call.lists = function.lists
    return call
