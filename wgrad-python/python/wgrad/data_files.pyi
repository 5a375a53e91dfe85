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

def list_files(file_pattern: Any, shuffle: bool = True, seed: int | None = None, name: str | None = None) -> Dataset: ...
