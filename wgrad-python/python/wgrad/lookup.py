"""TensorFlow's `tf.lookup`: tables from strings or whole numbers to values, on the host."""

import numpy as np

from .strings import StringTensor, of as _strings
from .tensor import Tensor, Variable, convert_to_tensor


def _array(values):
    """Keys or values as an array of NumPy; strings are `bytes`."""
    if isinstance(values, (Tensor, Variable)):
        return values.numpy()
    array = np.asarray(values)
    return _strings(array) if array.dtype.kind in "SUO" else array


class KeyValueTensorInitializer:
    """The keys and the values of a table, in two lists, arrays or tensors."""

    def __init__(self, keys, values, key_dtype=None, value_dtype=None, name=None):
        self.keys, self.values = _array(keys).ravel(), _array(values).ravel()
        if len(self.keys) != len(self.values):
            raise ValueError(f"KeyValueTensorInitializer: there are {len(self.keys)} keys and {len(self.values)} values.")


class TextFileIndex:
    """What a `TextFileInitializer` reads of a line: all of it, or its number from 0."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class TextFileInitializer(KeyValueTensorInitializer):
    """The keys and the values of a table in a text file: a column of each line, all of it, or its number."""

    def __init__(self, filename, key_dtype, key_index, value_dtype, value_index, vocab_size=None, delimiter="\t", name=None):
        from .dtypes import as_name

        with open(filename, "rb") as file:
            lines = file.read().splitlines()[:vocab_size]

        def column(index, dtype):
            if index == TextFileIndex.LINE_NUMBER:
                return np.arange(len(lines))
            parts = lines
            if index != TextFileIndex.WHOLE_LINE:
                split = [line.split(delimiter.encode()) for line in lines]
                short = next((at for at, row in enumerate(split) if len(row) <= index), None)
                if short is not None:
                    raise ValueError(f"TextFileInitializer: line {short + 1} of {filename} has no column {index}.")
                parts = [row[index] for row in split]
            if as_name(dtype) == "string":
                return np.array(parts, dtype=object)
            return np.array([float(part) if "float" in as_name(dtype) else int(part) for part in parts])

        super().__init__(column(key_index, key_dtype), column(value_index, value_dtype))


class StaticHashTable:
    """A table that does not change. Keys that it lacks have the default value."""

    def __init__(self, initializer, default_value, name=None, experimental_is_anonymous=False):
        self._table = {}
        for key, value in zip(initializer.keys.tolist(), initializer.values.tolist()):
            if self._table.setdefault(key, value) != value:
                raise ValueError(f"StaticHashTable: the key {key!r} has the values {self._table[key]!r} and {value!r}.")
        texts = initializer.values.dtype.kind in "SUO"
        self._dtype = None if texts else initializer.values.dtype
        self._default = _array(default_value).item()
        if texts != isinstance(self._default, bytes):
            raise TypeError(f"StaticHashTable: the default value {default_value!r} is not of the kind of the values.")

    def size(self, name=None):
        """The number of keys."""
        return convert_to_tensor(len(self._table))

    def _found(self, keys):
        keys = _array(keys)
        return keys.shape, [self._table.get(key, self._default) for key in keys.ravel().tolist()]

    def lookup(self, keys, name=None):
        """The value of each key."""
        shape, found = self._found(keys)
        if self._dtype is None:
            made = np.empty(len(found), dtype=object)
            made[:] = found
            return made.reshape(shape).view(StringTensor)
        return convert_to_tensor(np.array(found, dtype=self._dtype).reshape(shape))

    __getitem__ = lookup


class StaticVocabularyTable(StaticHashTable):
    """The index of each key; keys that the table lacks are distributed among `num_oov_buckets` indices after those."""

    def __init__(self, initializer, num_oov_buckets, lookup_key_dtype=None, name=None, experimental_is_anonymous=False):
        if num_oov_buckets < 1:
            raise ValueError(f"StaticVocabularyTable: num_oov_buckets is {num_oov_buckets}; it must be at least 1.")
        super().__init__(initializer, -1)
        self._buckets = int(num_oov_buckets)

    def size(self, name=None):
        """The number of indices."""
        return convert_to_tensor(len(self._table) + self._buckets)

    def lookup(self, keys, name=None):
        """The index of each key."""
        from .strings import as_string, to_hash_bucket_fast

        keys = _array(keys)
        shape, found = self._found(keys)
        found = np.array(found, dtype="int32").reshape(shape)
        # TensorFlow hashes numbers as their digits.
        texts = keys if keys.dtype.kind == "O" else as_string(keys)
        others = to_hash_bucket_fast(texts, self._buckets).numpy() + len(self._table)
        return convert_to_tensor(np.where(found < 0, others, found).astype("int32"))

    __getitem__ = lookup
