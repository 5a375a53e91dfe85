from typing import Any

import numpy.typing as npt

from .dtypes import DTypeLike
from .tensor import Tensor

class KeyValueTensorInitializer:
    keys: npt.NDArray[Any]
    values: npt.NDArray[Any]
    def __init__(
        self, keys: Any, values: Any, key_dtype: DTypeLike | None = None, value_dtype: DTypeLike | None = None, name: str | None = None
    ) -> None: ...

class TextFileIndex:
    WHOLE_LINE: int
    LINE_NUMBER: int

class TextFileInitializer(KeyValueTensorInitializer):
    def __init__(
        self, filename: Any, key_dtype: DTypeLike, key_index: int, value_dtype: DTypeLike, value_index: int,
        vocab_size: int | None = None, delimiter: str = "\t", name: str | None = None,
    ) -> None: ...

class StaticHashTable:
    def __init__(
        self, initializer: KeyValueTensorInitializer, default_value: Any, name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None: ...
    def size(self, name: str | None = None) -> Tensor: ...
    def lookup(self, keys: Any, name: str | None = None) -> Any: ...
    def __getitem__(self, keys: Any, name: str | None = None) -> Any: ...

class StaticVocabularyTable(StaticHashTable):
    def __init__(
        self, initializer: KeyValueTensorInitializer, num_oov_buckets: int, lookup_key_dtype: DTypeLike | None = None,
        name: str | None = None, experimental_is_anonymous: bool = False,
    ) -> None: ...
    def size(self, name: str | None = None) -> Tensor: ...
    def lookup(self, keys: Any, name: str | None = None) -> Any: ...
    def __getitem__(self, keys: Any, name: str | None = None) -> Any: ...
