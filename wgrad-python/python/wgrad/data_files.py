"""Datasets of files: names, lines of texts, records of TFRecord files and of fixed lengths, CSV files, and elements that were saved."""

import csv
import gzip
import json
import os
import shutil
import zlib

import numpy as np

from . import _wgrad
from .data import Dataset
from .dtypes import DType, as_name
from .encoded import parse_tensor, serialize_tensor
from .errors import InvalidArgumentError, NotFoundError
from .strings import is_text
from .tensor import convert_to_tensor


def _names(filenames):
    """Names of files: one, a list, or a dataset of them."""
    if isinstance(filenames, (str, bytes, os.PathLike)):
        filenames = [filenames]
    made = [os.fsdecode(getattr(name, "item", lambda name=name: name)()) for name in filenames]
    if not made:
        raise ValueError("there are no files; give the name of one at least.")
    return made


class TextLineDataset(Dataset):
    """The lines of files as `bytes`, without line ends."""

    def __init__(self, filenames, compression_type=None, buffer_size=None, num_parallel_reads=None, name=None):
        elements = _wgrad.text_lines(_names(filenames), compression_type or None)
        super().__init__(lambda: iter(elements))


class TFRecordDataset(Dataset):
    """The records of TFRecord files as `bytes`."""

    def __init__(self, filenames, compression_type=None, buffer_size=None, num_parallel_reads=None, name=None):
        parallel = num_parallel_reads if num_parallel_reads is not None and num_parallel_reads > 0 else None
        elements = _wgrad.tf_records(_names(filenames), compression_type or None, parallel)
        super().__init__(lambda: iter(elements))


def list_files(file_pattern, shuffle=True, seed=None, name=None):
    """The names of the files that match a pattern, or one of several, as `bytes`; in another order in each pass, or sorted."""
    patterns = list(file_pattern) if isinstance(file_pattern, (list, tuple)) else [file_pattern]
    parts = [_wgrad.list_files(os.fsdecode(pattern), bool(shuffle) and len(patterns) == 1, seed) for pattern in patterns]
    count = sum(1 for part in parts for _ in part)
    made = Dataset(lambda: (path for part in parts for path in part), count)
    return made.shuffle(count, seed) if shuffle and len(patterns) > 1 else made


Dataset.list_files = staticmethod(list_files)


def _contents(path, compression_type):
    """The bytes of a file."""
    try:
        with open(path, "rb") as file:
            contents = file.read()
    except OSError as error:
        raise NotFoundError(f"{path}: {error.strerror or error}") from error
    if compression_type in (None, ""):
        return contents
    if compression_type not in ("GZIP", "ZLIB"):
        raise ValueError(f"compression_type is {compression_type!r}; it must be '', 'GZIP' or 'ZLIB'.")
    return gzip.decompress(contents) if compression_type == "GZIP" else zlib.decompress(contents)


class FixedLengthRecordDataset(Dataset):
    """The records of files, each of `record_bytes` bytes, without a header and a footer."""

    def __init__(self, filenames, record_bytes, header_bytes=None, footer_bytes=None, buffer_size=None, compression_type=None,
                 num_parallel_reads=None, name=None):
        names, size, head, foot = _names(filenames), int(record_bytes), int(header_bytes or 0), int(footer_bytes or 0)
        if size < 1 or head < 0 or foot < 0:
            raise ValueError(f"FixedLengthRecordDataset: a record has {size} bytes, the header {head} and the footer {foot}; a record needs one.")

        def begin():
            for path in names:
                contents = _contents(path, compression_type)
                body = contents[head : len(contents) - foot]
                if len(body) % size or len(contents) < head + foot:
                    raise InvalidArgumentError(f"{path}: {len(contents)} bytes are no whole number of records of {size} with {head + foot} others.")
                yield from (body[at : at + size] for at in range(0, len(body), size))

        super().__init__(begin)


# ---- CSV files ----


def _field(text, kind, default, na_value, place):
    """A field of a row: the default if it is empty."""
    if text in ("", na_value):
        if default is None:
            raise InvalidArgumentError(f"{place}: the field is missing, and its column has no default.")
        return default
    if kind == "string":
        return text.encode()
    try:
        return int(text) if "int" in kind else float(text)
    except ValueError:
        raise InvalidArgumentError(f"{place}: the field is {text!r}; it must be {kind}.") from None


def _column_kind(given):
    """The dtype and the default of a column, from a dtype or from `[default]`."""
    if isinstance(given, (DType, type, str)):
        return as_name(given), None
    array = np.asarray(given)
    kind = "string" if array.dtype.kind in "SUO" else "int32" if array.dtype.kind in "iu" else "float32"
    values = array.ravel().tolist()
    default = values[0] if values else None
    return kind, default.encode() if isinstance(default, str) else default


_HELD = {"int64": "int32", "float64": "float32"}


def _value(value, kind):
    return value if kind == "string" else np.dtype(_HELD.get(kind, kind)).type(value)


class CsvDataset(Dataset):
    """The rows of CSV files, as tuples of their columns: `record_defaults` has a dtype for each column that must be there, or `[default]`."""

    def __init__(self, filenames, record_defaults, compression_type=None, buffer_size=None, header=False, field_delim=",",
                 use_quote_delim=True, na_value="", select_cols=None, exclude_cols=None):
        names, kinds = _names(filenames), [_column_kind(given) for given in record_defaults]
        if select_cols is not None and exclude_cols is not None:
            raise ValueError("CsvDataset: give select_cols or exclude_cols, and not both.")

        def begin():
            for path in names:
                for number, row in enumerate(_rows_of(path, compression_type, field_delim, use_quote_delim)):
                    if header and number == 0:
                        continue
                    columns = list(range(len(row))) if select_cols is None else [int(at) for at in select_cols]
                    if exclude_cols is not None:
                        columns = [at for at in columns if at not in exclude_cols]
                    if len(columns) != len(kinds) or max(columns, default=-1) >= len(row):
                        raise InvalidArgumentError(f"{path}: row {number + 1} has {len(row)} fields; {len(kinds)} columns are expected.")
                    place = lambda at: f"{path}, row {number + 1}, column {at + 1}"
                    yield tuple(
                        _value(_field(row[at], kind, default, na_value, place(at)), kind) for at, (kind, default) in zip(columns, kinds)
                    )

        super().__init__(begin)


def _rows_of(path, compression_type, field_delim, use_quote_delim):
    text = _contents(path, compression_type).decode().splitlines(keepends=True)
    rows = csv.reader(text, delimiter=field_delim, quoting=csv.QUOTE_MINIMAL if use_quote_delim else csv.QUOTE_NONE)
    return (row for row in rows if row)


def _inferred(columns, count, na_value):
    """The dtype of a column: of integers, of floats, or of strings."""
    for kind in ("int32", "int64", "float32", "float64"):
        try:
            for text in columns[:count]:
                number = int(text) if "int" in kind else float(text) if text not in ("", na_value) else 0
                if kind == "int32" and not -(2**31) <= number < 2**31:
                    raise ValueError
            return kind
        except ValueError:
            if kind == "int64" and any(text in ("", na_value) for text in columns[:count]):
                continue
    return "string"


def make_csv_dataset(file_pattern, batch_size, column_names=None, column_defaults=None, label_name=None, select_columns=None,
                     field_delim=",", use_quote_delim=True, na_value="", header=True, num_epochs=None, shuffle=True,
                     shuffle_buffer_size=10000, shuffle_seed=None, prefetch_buffer_size=None, num_parallel_reads=None, sloppy=False,
                     num_rows_for_inference=100, compression_type=None, ignore_errors=False, encoding="utf-8"):
    """TensorFlow's `tf.data.experimental.make_csv_dataset`: batches of CSV files as dicts of columns, and the column `label_name` next to
    them. Names are in the first row, and the dtypes are those of the first rows."""
    patterns = file_pattern if isinstance(file_pattern, (list, tuple)) else [file_pattern]
    names = [path.decode() for pattern in patterns for path in sorted(list_files(pattern, shuffle=False).as_numpy_iterator())]
    if not names:
        raise ValueError(f"make_csv_dataset: no file matches {file_pattern!r}.")
    first = list(_rows_of(names[0], compression_type, field_delim, use_quote_delim))
    if column_names is None:
        if not header or not first:
            raise ValueError("make_csv_dataset: give column_names, as there is no row of names.")
        column_names = first[0]
    column_names = [str(name) for name in column_names]
    rows = first[1:] if header else first
    chosen = column_names if select_columns is None else [
        column_names[name] if isinstance(name, int) else name for name in select_columns
    ]
    for name in [*chosen, *([] if label_name is None else [label_name])]:
        if name not in column_names or name not in chosen:
            raise ValueError(f"make_csv_dataset: there is no column {name!r}; the columns are {', '.join(chosen)}.")
    places = [column_names.index(name) for name in chosen]
    if column_defaults is None:
        count = len(rows) if num_rows_for_inference is None else int(num_rows_for_inference)
        kinds = [_inferred([row[at] for row in rows], count, na_value) for at in places]
        defaults = [[b"" if kind == "string" else 0 if "int" in kind else 0.0] for kind in kinds]
    else:
        defaults = list(column_defaults)
        kinds = [_column_kind(given)[0] for given in defaults]
    data = CsvDataset(names, defaults, compression_type, None, header, field_delim, use_quote_delim, na_value, places)

    def named(*row):
        columns = dict(zip(chosen, row))
        return columns if label_name is None else (columns, columns.pop(label_name))

    if shuffle:
        data = data.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        data = data.repeat(num_epochs)
    data = data.batch(batch_size, drop_remainder=num_epochs is None).map(named)
    data = data.ignore_errors() if ignore_errors else data
    return data.prefetch(1 if prefetch_buffer_size is None else prefetch_buffer_size)


# ---- elements that were saved ----

_LAYOUT = "dataset.json"


def _layout(element):
    """The structure of an element for JSON."""
    if isinstance(element, tuple):
        return {"tuple": [_layout(part) for part in element]}
    if isinstance(element, dict):
        return {"dict": [[key, _layout(part)] for key, part in element.items()]}
    if isinstance(element, Dataset):
        raise TypeError("save: an element is a dataset, which cannot be saved; call flat_map before.")
    return "string" if is_text(element) else convert_to_tensor(element).numpy().dtype.name


def _packed(element):
    if isinstance(element, (tuple, dict)):
        parts = element.values() if isinstance(element, dict) else element
        return [leaf for part in parts for leaf in _packed(part)]
    return [bytes(serialize_tensor(element))]


def _unpacked(layout, leaves):
    if isinstance(layout, str):
        made = parse_tensor(next(leaves), layout)
        return made if layout != "string" or made.ndim else made.item()
    if "tuple" in layout:
        return tuple(_unpacked(part, leaves) for part in layout["tuple"])
    return {key: _unpacked(part, leaves) for key, part in layout["dict"]}


def _compression(compression):
    if compression not in (None, "", "NONE", "AUTO", "GZIP"):
        raise ValueError(f"compression is {compression!r}; it must be None or 'GZIP'.")
    return "GZIP" if compression == "GZIP" else None


class _Saving:
    """Writes elements into a folder, which appears when it is complete."""

    def __init__(self, path, compression):
        self._path, self._kind = os.fsdecode(path), _compression(compression)
        self._folder, self._layout, self._count = f"{self._path}.{os.getpid()}.part", None, 0
        shutil.rmtree(self._folder, ignore_errors=True)
        os.makedirs(self._folder)
        self._writer = _wgrad.NativeRecordWriter(os.path.join(self._folder, "elements.tfrecord"), self._kind)

    def write(self, element):
        layout = _layout(element)
        if self._layout not in (None, layout):
            raise TypeError(f"save: an element is {layout}, and the ones before are {self._layout}; all must be alike.")
        self._layout, self._count = layout, self._count + 1
        self._writer.write(bytes(serialize_tensor(np.array(_packed(element), dtype=object))))

    def finish(self):
        self._writer.close()
        with open(os.path.join(self._folder, _LAYOUT), "w", encoding="utf-8") as file:
            json.dump({"layout": self._layout, "count": self._count, "compression": self._kind}, file)
        shutil.rmtree(self._path, ignore_errors=True)
        os.replace(self._folder, self._path)

    def drop(self):
        self._writer.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def save(dataset, path, compression):
    """Writes the elements of a dataset into a folder."""
    target = os.fsdecode(path)
    if os.path.exists(target) and not os.path.exists(os.path.join(target, _LAYOUT)) and (not os.path.isdir(target) or os.listdir(target)):
        raise ValueError(f"save: {target} exists, and no dataset is in it; choose another folder.")
    writing = _Saving(path, compression)
    try:
        for element in dataset._begin():
            writing.write(element)
    except BaseException:
        writing.drop()
        raise
    writing.finish()


def load(path, compression=None):
    """The elements in a folder that `save` wrote."""
    folder = os.fsdecode(path)
    try:
        with open(os.path.join(folder, _LAYOUT), encoding="utf-8") as file:
            found = json.load(file)
        layout, count, kind = found["layout"], int(found["count"]), found["compression"]
    except FileNotFoundError:
        raise NotFoundError(f"load: there is no dataset in {folder} that Dataset.save of this package wrote.") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidArgumentError(f"load: {os.path.join(folder, _LAYOUT)} is damaged: {error}.") from None
    records = _wgrad.tf_records([os.path.join(folder, "elements.tfrecord")], kind, None) if count else []

    def begin():
        for record in records:
            yield _unpacked(layout, iter(parse_tensor(record, "string").tolist()))

    return Dataset(begin, count)


def cached(dataset, path):
    """A function that begins a pass: over the elements in a folder, or over those of the dataset, which it writes there."""
    folder = os.fsdecode(path)

    def begin():
        if os.path.exists(os.path.join(folder, _LAYOUT)):
            yield from load(folder)._begin()
            return
        if os.path.exists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
            raise ValueError(f"cache: {folder} exists, and no dataset is in it; choose another name.")
        writing = _Saving(folder, None)
        try:
            for element in dataset._begin():
                writing.write(element)
                yield element
        except BaseException:
            writing.drop()
            raise
        writing.finish()

    return begin
