"""Datasets of files: names, lines of texts, records of TFRecord files."""

import os

from . import _wgrad
from .data import Dataset


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
