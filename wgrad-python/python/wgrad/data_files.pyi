from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .data import Dataset

class TextLineDataset(Dataset):
    def __init__(
        self, filenames: Any, compression_type: str | None = None, buffer_size: int | None = None,
        num_parallel_reads: int | None = None, name: str | None = None,
    ) -> None: ...

class TFRecordDataset(Dataset):
    def __init__(
        self, filenames: Any, compression_type: str | None = None, buffer_size: int | None = None,
        num_parallel_reads: int | None = None, name: str | None = None,
    ) -> None: ...

class FixedLengthRecordDataset(Dataset):
    def __init__(
        self, filenames: Any, record_bytes: int, header_bytes: int | None = None, footer_bytes: int | None = None,
        buffer_size: int | None = None, compression_type: str | None = None, num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None: ...

class CsvDataset(Dataset):
    def __init__(
        self, filenames: Any, record_defaults: Sequence[Any], compression_type: str | None = None, buffer_size: int | None = None,
        header: bool = False, field_delim: str = ",", use_quote_delim: bool = True, na_value: str = "",
        select_cols: Sequence[int] | None = None, exclude_cols: Sequence[int] | None = None,
    ) -> None: ...

def make_csv_dataset(
    file_pattern: Any, batch_size: int, column_names: Sequence[str] | None = None, column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None, select_columns: Sequence[Any] | None = None, field_delim: str = ",", use_quote_delim: bool = True,
    na_value: str = "", header: bool = True, num_epochs: int | None = None, shuffle: bool = True, shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None, prefetch_buffer_size: int | None = None, num_parallel_reads: int | None = None,
    sloppy: bool = False, num_rows_for_inference: int | None = 100, compression_type: str | None = None, ignore_errors: bool = False,
    encoding: str = "utf-8",
) -> Dataset: ...
def save(dataset: Dataset, path: Any, compression: str | None) -> None: ...
def load(path: Any, compression: str | None = None) -> Dataset: ...
def cached(dataset: Dataset, path: Any) -> Callable[[], Iterator[Any]]: ...
def list_files(file_pattern: Any, shuffle: bool = True, seed: int | None = None, name: str | None = None) -> Dataset: ...
