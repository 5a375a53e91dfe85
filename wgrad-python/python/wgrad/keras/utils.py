"""Helpers of Keras."""

import time

import numpy as np

from .. import _wgrad
from .directories import (  # noqa: F401
    array_to_img, get_file, image_dataset_from_directory, img_to_array, load_img, save_img, text_dataset_from_directory,
)
from .feature_space import FeatureSpace  # noqa: F401
from .plans import PyDataset, unpack_x_y_sample_weight  # noqa: F401

Sequence = PyDataset


def to_categorical(x, num_classes=None):
    """Labels as rows of zeros and ones."""
    x = np.asarray(x, dtype="int64")
    if x.size and x.min() < 0:
        raise ValueError(f"to_categorical: the label {x.min()} is negative.")
    count = int(x.max()) + 1 if num_classes is None else num_classes
    if x.size and x.max() >= count:
        raise ValueError(f"to_categorical: the label {x.max()} is not below num_classes, {count}.")
    if x.ndim > 1 and x.shape[-1] == 1:
        x = x[..., 0]
    return np.eye(count, dtype="float32")[x]


def pad_sequences(sequences, maxlen=None, dtype="int32", padding="pre", truncating="pre", value=0.0):
    """Lists of different lengths as one array."""
    sequences = [np.asarray(sequence) for sequence in sequences]
    for name, given in (("padding", padding), ("truncating", truncating)):
        if given not in ("pre", "post"):
            raise ValueError(f"pad_sequences: {name} is {given!r}; it must be 'pre' or 'post'.")
    maxlen = max(map(len, sequences), default=0) if maxlen is None else maxlen
    rest = next((sequence.shape[1:] for sequence in sequences if len(sequence)), ())
    made = np.full((len(sequences), maxlen, *rest), value, dtype=dtype)
    for row, sequence in zip(made, sequences):
        if len(sequence) and maxlen:
            kept = sequence[-maxlen:] if truncating == "pre" else sequence[:maxlen]
            row[-len(kept) if padding == "pre" else 0 : None if padding == "pre" else len(kept)] = kept
    return made


def normalize(x, axis=-1, order=2):
    """Vectors of length 1."""
    lengths = np.atleast_1d(np.linalg.norm(x, order, axis))
    lengths[lengths == 0] = 1
    return x / np.expand_dims(lengths, axis)


def split_dataset(dataset, left_size=None, right_size=None, shuffle=False, seed=None):
    """Two datasets of arrays or elements: parts of them, or numbers."""
    from ..data import Dataset

    elements = list(Dataset.from_tensor_slices(dataset) if not isinstance(dataset, Dataset) else dataset)
    if shuffle:
        order = np.random.default_rng(seed).permutation(len(elements))
        elements = [elements[at] for at in order]
    count = lambda size: round(size * len(elements)) if isinstance(size, float) else size
    if left_size is None and right_size is None:
        raise ValueError("split_dataset: give left_size or right_size.")
    left = count(left_size) if left_size is not None else len(elements) - count(right_size)
    right = count(right_size) if right_size is not None else len(elements) - left
    if left < 0 or right < 0 or left + right > len(elements):
        raise ValueError(f"split_dataset: {left} and {right} of {len(elements)} elements.")
    made = lambda part: Dataset(lambda: iter(part), len(part))
    return made(elements[:left]), made(elements[left : left + right])


def set_random_seed(seed):
    """Seeds Python, NumPy and wgrad."""
    import random

    random.seed(seed)
    np.random.seed(seed)
    _wgrad.set_seed(seed)


def timeseries_dataset_from_array(data, targets, sequence_length, sequence_stride=1, sampling_rate=1, batch_size=128, shuffle=False,
                                  seed=None, start_index=None, end_index=None):
    """Batches of windows of an array, with the target of each window's first row if there are targets."""
    from ..data import Dataset

    if min(sequence_length, sequence_stride, sampling_rate) < 1:
        raise ValueError(
            f"timeseries_dataset_from_array: sequence_length, sequence_stride and sampling_rate are {sequence_length}, {sequence_stride} "
            f"and {sampling_rate}; each must be at least 1."
        )
    data = np.asarray(data)
    first, last = start_index or 0, len(data) if end_index is None else min(end_index, len(data))
    starts = np.arange(first, last - (sequence_length - 1) * sampling_rate, sequence_stride)
    if targets is not None:
        targets = np.asarray(targets)
        starts = starts[starts - first < len(targets)]
    if len(starts) == 0:
        raise ValueError(
            f"timeseries_dataset_from_array: {last - first} rows have no window of {sequence_length} rows at a rate of {sampling_rate}."
        )
    places = np.arange(sequence_length) * sampling_rate

    def elements():
        for start in starts:
            window = data[start + places]
            yield window if targets is None else (window, targets[start - first])

    dataset = Dataset(elements, len(starts))
    if shuffle:
        dataset = dataset.shuffle(len(starts) if batch_size is None else batch_size * 8, seed)
    return dataset if batch_size is None else dataset.batch(batch_size)


def pack_x_y_sample_weight(x, y=None, sample_weight=None):
    """What `fit` takes as an element of a dataset."""
    if y is None:
        return (x,) if isinstance(x, (tuple, list)) else x
    return (x, y) if sample_weight is None else (x, y, sample_weight)


class Progbar:
    """A line that shows how far a loop is: `update(current, [("loss", 0.5)])` prints it again. Values are averaged over the steps,
    those in `stateful_metrics` are shown as they are."""

    def __init__(self, target, width=20, verbose=1, interval=0.05, stateful_metrics=None, unit_name="step"):
        self.target, self.width, self.verbose, self.interval, self.unit_name = target, width, verbose, interval, unit_name
        self.stateful_metrics = set(stateful_metrics or ())
        self._sums, self._seen, self._last, self._start = {}, 0, 0.0, time.monotonic()

    def update(self, current, values=None, finalize=None):
        """Shows the step `current`, with names and values."""
        for name, value in values or ():
            steps = max(current - self._seen, 1)
            total, count = self._sums.get(name, (0.0, 0))
            is_state = name in self.stateful_metrics
            self._sums[name] = (float(value), 1) if is_state else (total + float(value) * steps, count + steps)
        self._seen = current
        finalize = self.target is not None and current >= self.target if finalize is None else finalize
        now = time.monotonic()
        if not self.verbose or (not finalize and (self.verbose == 2 or now - self._last < self.interval)):
            return
        self._last = now
        share = 1.0 if not self.target else min(current / self.target, 1.0)
        done = round(self.width * share)
        of = "Unknown" if self.target is None else self.target
        shown = "".join(f" - {name}: {total / max(count, 1):.4f}" for name, (total, count) in self._sums.items())
        bar = f" {'━' * done}{' ' * (self.width - done)}" if self.verbose == 1 else ""
        line = f"{current}/{of}{bar} {now - self._start:.0f}s{shown}"
        print(("\r" if self.verbose == 1 else "") + line, end="\n" if finalize else "", flush=True)

    def add(self, n, values=None):
        """Shows `n` steps more."""
        self.update(self._seen + n, values)


def plot_model(model, to_file="model.svg", **options):
    """Writes a drawing of a model's layers as an SVG file."""
    if not str(to_file).endswith(".svg"):
        raise ValueError(f"plot_model: the file is {str(to_file)!r}; drawings are SVG files, so its name must end in .svg.")
    with open(to_file, "w", encoding="utf-8") as file:
        file.write(model._file_model().to_svg())


def get_source_inputs(tensor):
    """The symbols of the inputs from which a symbol is computed."""
    found, seen, waiting = [], set(), [tensor]
    while waiting:
        symbol = waiting.pop()
        if id(symbol) in seen:
            continue
        seen.add(id(symbol))
        made = getattr(symbol, "_made", None)
        if made is None:
            found.append(symbol)
        else:
            waiting.extend(reversed(made[1]))
    return found
