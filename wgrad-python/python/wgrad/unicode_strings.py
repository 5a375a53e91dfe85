"""Functions of `tf.strings` for texts and their characters. Encodings are those of Python."""

import codecs

import numpy as np

from .strings import _each, in_rows, of
from .tensor import Tensor, Variable, convert_to_tensor

_OUTPUTS = {"UTF-8": "utf-8", "UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be"}


def _codec(call, encoding):
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        raise ValueError(f"{call}: there is no encoding {encoding!r}, such as 'UTF-8', 'UTF-16-BE' or 'ISO-8859-1'.") from None


def _reader(call, encoding, mode, replacement, controls=False):
    """A function that reads a string; what is not valid is an error, left out, or replaced."""
    if mode not in ("strict", "replace", "ignore"):
        raise ValueError(f"{call}: errors is {mode!r}; it must be 'strict', 'replace' or 'ignore'.")
    codec, other = _codec(call, encoding), chr(int(replacement))

    def read(text):
        made, rest = [], bytes(text)
        while rest:
            try:
                made.append(rest.decode(codec))
                break
            except UnicodeDecodeError as error:
                if mode == "strict":
                    raise ValueError(f"{call}: {bytes(text)!r} is not valid {encoding}.") from None
                made.append(rest[: error.start].decode(codec))
                made.append(other if mode == "replace" else "")
                rest = rest[error.end :]
        whole = "".join(made)
        return "".join(other if ord(one) < 32 else one for one in whole) if controls else whole

    return read


def _writer(call, encoding, mode, replacement):
    if encoding not in _OUTPUTS:
        raise ValueError(f"{call}: output_encoding is {encoding!r}; it must be one of {', '.join(_OUTPUTS)}.")
    other = chr(int(replacement))

    def write(codes):
        made = []
        for code in codes:
            if 0 <= code < 0x110000 and not 0xD800 <= code < 0xE000:
                made.append(chr(code))
            elif mode == "strict":
                raise ValueError(f"{call}: {code} is no character.")
            elif mode == "replace":
                made.append(other)
        return "".join(made).encode(_OUTPUTS[encoding])

    return write


def _of_each(input, made):
    """A result for a string, or a ragged tensor of results."""
    texts = of(input)
    return in_rows([_of_each(row, made) for row in texts]) if texts.ndim else made(texts.item())


def unicode_decode(input, input_encoding, errors="replace", replacement_char=65533, replace_control_characters=False, name=None):
    """TensorFlow's `tf.strings.unicode_decode`: a tensor of the characters' numbers; for several strings, a ragged tensor."""
    read = _reader("unicode_decode", input_encoding, errors, replacement_char, replace_control_characters)
    return _of_each(input, lambda text: convert_to_tensor(np.array([ord(one) for one in read(text)], dtype="int32")))


def unicode_split(input, input_encoding, errors="replace", replacement_char=65533, name=None):
    """TensorFlow's `tf.strings.unicode_split`: an array of characters in UTF-8; for several strings, a ragged tensor."""
    read = _reader("unicode_split", input_encoding, errors, replacement_char)
    return _of_each(input, lambda text: of(np.array([one.encode() for one in read(text)], dtype=object)))


def unicode_encode(input, output_encoding, errors="replace", replacement_char=65533, name=None):
    """TensorFlow's `tf.strings.unicode_encode`: strings of rows of characters' numbers, in a tensor or in lists."""
    write = _writer("unicode_encode", output_encoding, errors, replacement_char)

    def rows(value):
        if isinstance(value, (Tensor, Variable, np.ndarray)):
            return np.asarray(value).tolist()
        return [rows(part) for part in value] if isinstance(value, (list, tuple)) else int(value)

    def encoded(value):
        if not value or not isinstance(value[0], list):
            return write(value)
        made = np.empty(len(value), dtype=object)
        made[:] = [encoded(part) for part in value]
        return np.array(made.tolist(), dtype=object)

    value = rows(input)
    if not isinstance(value, list):
        raise ValueError("unicode_encode: the input is one number; it must have an axis of characters.")
    return of(encoded(value))


def unicode_transcode(input, input_encoding, output_encoding, errors="replace", replacement_char=65533,
                      replace_control_characters=False, name=None):
    """TensorFlow's `tf.strings.unicode_transcode`: strings in another encoding."""
    read = _reader("unicode_transcode", input_encoding, errors, replacement_char, replace_control_characters)
    write = _writer("unicode_transcode", output_encoding, errors, replacement_char)
    return _each(lambda text: write([ord(one) for one in read(text)]), of(input))
