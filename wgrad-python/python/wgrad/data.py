"""Input pipelines: `tf.data.Dataset`, whose elements are arrays of NumPy and tensors, and tuples and dicts of them."""

import queue
import random as _random
import threading

import numpy as np

from .tape import _flat
from .tensor import Tensor, convert_to_tensor

AUTOTUNE = -1


def _rows(structure):
    """The number of rows of arrays, and a function that returns a row."""
    leaves, build = _flat(structure)
    if not leaves:
        raise ValueError("from_tensor_slices: there are no arrays.")
    leaves = [leaf.numpy() if isinstance(leaf, Tensor) else np.asarray(leaf) for leaf in leaves]
    if any(leaf.ndim == 0 for leaf in leaves):
        raise ValueError("from_tensor_slices: an array has no axis of rows.")
    counts = {len(leaf) for leaf in leaves}
    if len(counts) != 1:
        raise ValueError(f"from_tensor_slices: the arrays have {sorted(counts)} rows; they need equally many.")
    return counts.pop(), lambda at: build(iter([leaf[at] for leaf in leaves]))


def _stacked(elements):
    """A batch of elements."""
    leaves = [_flat(element) for element in elements]
    build = leaves[0][1]
    columns = zip(*(parts for parts, _ in leaves))
    made = []
    for column in columns:
        if any(isinstance(value, Tensor) for value in column):
            made.append(convert_to_tensor(list(column)))
            continue
        shapes = {np.shape(value) for value in column}
        if len(shapes) != 1:
            raise ValueError(f"batch: elements have the shapes {sorted(shapes)}; use padded_batch or batches of 1.")
        made.append(np.stack(column))
    return build(iter(made))


def _tensors(element):
    leaves, build = _flat(element)
    is_text = lambda leaf: isinstance(leaf, (str, bytes)) or getattr(leaf, "dtype", None) is not None and getattr(leaf.dtype, "kind", "f") in "SUO"
    return build(iter([leaf if is_text(leaf) else convert_to_tensor(leaf) for leaf in leaves]))


class Dataset:
    """Elements that can be iterated over any number of times. Each method returns a new dataset."""

    def __init__(self, begin, count=None):
        self._begin, self._count = begin, count

    # ---- sources ----

    @staticmethod
    def from_tensor_slices(tensors):
        count, row = _rows(tensors)
        return Dataset(lambda: (row(at) for at in range(count)), count)

    @staticmethod
    def from_tensors(tensors):
        return Dataset(lambda: iter([tensors]), 1)

    @staticmethod
    def from_generator(generator, output_signature=None, output_types=None, output_shapes=None, args=()):
        return Dataset(lambda: iter(generator(*args)))

    @staticmethod
    def range(*bounds):
        numbers = range(*bounds)
        return Dataset(lambda: (np.int32(number) for number in numbers), len(numbers))

    @staticmethod
    def zip(*datasets):
        datasets = datasets[0] if len(datasets) == 1 else datasets
        counts = [dataset._count for dataset in datasets]
        count = None if None in counts else min(counts)
        return Dataset(lambda: zip(*datasets), count)

    # ---- stages ----

    def map(self, map_func, num_parallel_calls=None, deterministic=None):
        """Calls `map_func` with each element, whose arrays are tensors."""

        def begin():
            for element in self:
                element = _tensors(element)
                yield map_func(*element) if isinstance(element, tuple) else map_func(element)

        return Dataset(begin, self._count)

    def filter(self, predicate):
        def begin():
            for element in self:
                made = _tensors(element)
                if predicate(*made) if isinstance(made, tuple) else predicate(made):
                    yield element

        return Dataset(begin)

    def batch(self, batch_size, drop_remainder=False, **options):
        if batch_size < 1:
            raise ValueError(f"batch: the size is {batch_size}; it must be at least 1.")

        def begin():
            elements = []
            for element in self:
                elements.append(element)
                if len(elements) == batch_size:
                    yield _stacked(elements)
                    elements = []
            if elements and not drop_remainder:
                yield _stacked(elements)

        count = self._count
        if count is not None:
            count = count // batch_size if drop_remainder else -(-count // batch_size)
        return Dataset(begin, count)

    def unbatch(self):
        def begin():
            for element in self:
                count, row = _rows(element)
                yield from (row(at) for at in range(count))

        return Dataset(begin)

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True):
        if buffer_size < 1:
            raise ValueError(f"shuffle: the buffer has {buffer_size} places; it needs at least 1.")
        passes = [0]

        def begin():
            passes[0] += 1
            number = passes[0] if reshuffle_each_iteration else 1
            source = _random.Random(None if seed is None else seed * 1_000_003 + number)
            buffer = []
            for element in self:
                if len(buffer) < buffer_size:
                    buffer.append(element)
                    continue
                at = source.randrange(buffer_size)
                chosen, buffer[at] = buffer[at], element
                yield chosen
            source.shuffle(buffer)
            yield from buffer

        return Dataset(begin, self._count)

    def repeat(self, count=None):
        forever = count is None or count < 0

        def begin():
            turn = 0
            while forever or turn < count:
                turn, empty = turn + 1, True
                for element in self:
                    empty = False
                    yield element
                if empty:
                    return

        known = self._count is not None and not forever
        return Dataset(begin, self._count * count if known else None)

    def take(self, count):
        def begin():
            if count == 0:
                return
            for at, element in enumerate(self, 1):
                yield element
                if at == count:
                    return

        return Dataset(begin, None if self._count is None else min(count, self._count) if count >= 0 else self._count)

    def skip(self, count):
        def begin():
            for at, element in enumerate(self):
                if at >= count:
                    yield element

        return Dataset(begin, None if self._count is None else max(self._count - count, 0))

    def shard(self, num_shards, index):
        return Dataset(lambda: (element for at, element in enumerate(self) if at % num_shards == index))

    def concatenate(self, dataset):
        def begin():
            yield from self
            yield from dataset

        both = self._count is not None and dataset._count is not None
        return Dataset(begin, self._count + dataset._count if both else None)

    def enumerate(self, start=0):
        return Dataset(lambda: ((np.int32(at), element) for at, element in enumerate(self, start)), self._count)

    def cache(self, filename=""):
        """Keeps the elements of the first whole pass in memory."""
        if filename:
            raise ValueError("cache: files are not supported; cache() keeps the elements in memory.")
        kept = []

        def begin():
            if kept:
                yield from kept[0]
                return
            elements = []
            for element in self:
                elements.append(element)
                yield element
            kept[:] = [elements]

        return Dataset(begin, self._count)

    def prefetch(self, buffer_size):
        """Makes the next elements in a thread."""
        ahead = 2 if buffer_size == AUTOTUNE else max(int(buffer_size), 1)

        def begin():
            places, ends = queue.Queue(ahead), threading.Event()

            def put(item):
                while not ends.is_set():
                    try:
                        places.put(item, timeout=0.1)
                        return True
                    except queue.Full:
                        continue
                return False

            def work():
                try:
                    for element in self:
                        if not put((element, None)):
                            return
                    put((None, StopIteration()))
                except BaseException as error:
                    put((None, error))

            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            try:
                while True:
                    element, error = places.get()
                    if isinstance(error, StopIteration):
                        return
                    if error is not None:
                        raise error
                    yield element
            finally:
                ends.set()

        return Dataset(begin, self._count)

    # ---- reading ----

    def __iter__(self):
        return iter(self._begin())

    def as_numpy_iterator(self):
        for element in self:
            leaves, build = _flat(element)
            yield build(iter([leaf.numpy() if isinstance(leaf, Tensor) else leaf for leaf in leaves]))

    def cardinality(self):
        return -2 if self._count is None else self._count

    def __len__(self):
        if self._count is None:
            raise TypeError("The dataset does not know its length.")
        return self._count
