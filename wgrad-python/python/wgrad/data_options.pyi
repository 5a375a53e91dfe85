import enum
from collections.abc import Callable
from typing import Any

from . import data as _data
from .data import Dataset, Optional as _Optional
from .data_files import CsvDataset as CsvDataset, make_csv_dataset as make_csv_dataset
from .tensor import Tensor

class AutoShardPolicy(enum.IntEnum):
    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3

class _Settings:
    def __getattr__(self, name: str) -> Any: ...

class Options(_Settings):
    deterministic: bool | None
    def __init__(self) -> None: ...
    def merge(self, options: Options) -> Options: ...

ThreadingOptions = _Settings
_AutoShardPolicy = AutoShardPolicy
_CsvDataset = CsvDataset

class experimental:
    AUTOTUNE: int
    INFINITE_CARDINALITY: int
    UNKNOWN_CARDINALITY: int
    AutoShardPolicy = _AutoShardPolicy
    Optional = _Optional
    CsvDataset = _CsvDataset
    make_csv_dataset: Any
    @staticmethod
    def cardinality(dataset: Dataset) -> Tensor: ...
    @staticmethod
    def assert_cardinality(expected_cardinality: int) -> Callable[[Dataset], Dataset]: ...
    @staticmethod
    def prefetch_to_device(device: str, buffer_size: int | None = None) -> Callable[[Dataset], Dataset]: ...
    @staticmethod
    def ignore_errors(log_warning: bool = False) -> Callable[[Dataset], Dataset]: ...
    @staticmethod
    def get_single_element(dataset: Dataset) -> Any: ...
    @staticmethod
    def unique() -> Callable[[Dataset], Dataset]: ...
    @staticmethod
    def take_while(predicate: Callable[..., Any]) -> Callable[[Dataset], Dataset]: ...
    @staticmethod
    def enumerate_dataset(start: int = 0) -> Callable[[Dataset], Dataset]: ...

def install(module: Any) -> None: ...
