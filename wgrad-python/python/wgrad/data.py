"""Input pipelines: `tf.data.Dataset`, whose elements are arrays of NumPy and tensors, and tuples and dicts of them."""

import bisect
import functools
import itertools
import queue
import random as _random
import threading

import numpy as np

from .strings import is_text, noted
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
    of = lambda leaf: noted(leaf) if is_text(leaf) else leaf if isinstance(leaf, Dataset) else convert_to_tensor(leaf)
    return build(iter([of(leaf) for leaf in leaves]))


def _called(function, element):
    """A function of an element, whose parts are its arguments if the element is a tuple."""
    made = _tensors(element)
    return function(*made) if isinstance(made, tuple) else function(made)


def _parts(given, count):
    """One value, or a structure of `count` values."""
    if count == 1 or isinstance(given, (int, float)):
        return [given[0] if isinstance(given, tuple) and len(given) == 1 and isinstance(given[0], (list, tuple)) else given] * count
    parts = list(given.values() if isinstance(given, dict) else given)
    if len(parts) != count:
        raise ValueError(f"padded_batch: {len(parts)} shapes or values are given, and the elements have {count} parts.")
    return parts


def _padded(column, shape, value):
    """Arrays of different sizes in one that has room for each."""
    arrays = [leaf.numpy() if isinstance(leaf, Tensor) else np.asarray(leaf) for leaf in column]
    ranks = {array.ndim for array in arrays}
    if len(ranks) != 1:
        raise ValueError(f"padded_batch: elements have {sorted(ranks)} axes; they need equally many.")
    longest = [max(sizes) for sizes in zip(*(array.shape for array in arrays))]
    wanted = longest if shape is None else [most if size in (None, -1) else int(size) for size, most in zip(list(shape), longest)]
    if len(wanted) != len(longest) or any(size < most for size, most in zip(wanted, longest)):
        raise ValueError(f"padded_batch: an element is {longest}, and the padded shape {list(shape)}; it must have room for each.")
    text = arrays[0].dtype.kind in "SUO"
    fill = ("" if text else 0) if value is None else value
    made = np.full([len(arrays), *wanted], fill, dtype=object if text else arrays[0].dtype)
    for at, array in enumerate(arrays):
        made[(at, *(slice(size) for size in array.shape))] = array
    return made


def _arrays(element):
    """An element in which lists are arrays; only tuples and dicts have parts."""
    if isinstance(element, tuple):
        made = [_arrays(part) for part in element]
        return type(element)(*made) if hasattr(element, "_fields") else tuple(made)
    if isinstance(element, dict):
        return {key: _arrays(part) for key, part in element.items()}
    if isinstance(element, list):
        return convert_to_tensor(element) if any(isinstance(item, Tensor) for item in element) else np.asarray(element)
    return element


_END = object()


def _begun(dataset):
    """The elements of a dataset as its stages have them."""
    if not isinstance(dataset, Dataset):
        raise TypeError(f"{dataset!r} is no dataset; tf.data.Dataset.from_tensor_slices makes one.")
    return dataset._begin()


class Dataset:
    """Elements that can be iterated over any number of times. Each method returns a new dataset."""

    def __init__(self, begin, count=None):
        self._begin, self._count = begin, count

    # ---- sources ----

    @staticmethod
    def from_tensor_slices(tensors):
        count, row = _rows(_arrays(tensors))
        return Dataset(lambda: (row(at) for at in range(count)), count)

    @staticmethod
    def from_tensors(tensors):
        element = _arrays(tensors)
        return Dataset(lambda: iter([element]), 1)

    @staticmethod
    def from_generator(generator, output_signature=None, output_types=None, output_shapes=None, args=()):
        return Dataset(lambda: map(_arrays, generator(*args)))

    @staticmethod
    def range(*bounds):
        numbers = range(*bounds)
        return Dataset(lambda: (np.int32(number) for number in numbers), len(numbers))

    @staticmethod
    def zip(*datasets):
        datasets = datasets[0] if len(datasets) == 1 else datasets
        counts = [dataset._count for dataset in (datasets.values() if isinstance(datasets, dict) else datasets)]
        count = None if None in counts else min(counts)
        if isinstance(datasets, dict):
            return Dataset(lambda: (dict(zip(datasets, row)) for row in zip(*(_begun(part) for part in datasets.values()))), count)
        return Dataset(lambda: zip(*(_begun(dataset) for dataset in datasets)), count)

    # ---- stages ----

    def map(self, map_func, num_parallel_calls=None, deterministic=None):
        """Calls `map_func` with each element, whose arrays are tensors."""

        def begin():
            for element in self._begin():
                element = _tensors(element)
                yield map_func(*element) if isinstance(element, tuple) else map_func(element)

        return Dataset(begin, self._count)

    def filter(self, predicate):
        def begin():
            for element in self._begin():
                made = _tensors(element)
                if predicate(*made) if isinstance(made, tuple) else predicate(made):
                    yield element

        return Dataset(begin)

    def batch(self, batch_size, drop_remainder=False, **options):
        if batch_size < 1:
            raise ValueError(f"batch: the size is {batch_size}; it must be at least 1.")

        def begin():
            elements = []
            for element in self._begin():
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
            for element in self._begin():
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
            for element in self._begin():
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
                for element in self._begin():
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
            for at, element in enumerate(self._begin(), 1):
                yield element
                if at == count:
                    return

        return Dataset(begin, None if self._count is None else min(count, self._count) if count >= 0 else self._count)

    def skip(self, count):
        def begin():
            for at, element in enumerate(self._begin()):
                if at >= count:
                    yield element

        return Dataset(begin, None if self._count is None else max(self._count - count, 0))

    def shard(self, num_shards, index):
        return Dataset(lambda: (element for at, element in enumerate(self._begin()) if at % num_shards == index))

    def concatenate(self, dataset):
        def begin():
            yield from self._begin()
            yield from _begun(dataset)

        both = self._count is not None and dataset._count is not None
        return Dataset(begin, self._count + dataset._count if both else None)

    def enumerate(self, start=0):
        return Dataset(lambda: ((np.int32(at), element) for at, element in enumerate(self._begin(), start)), self._count)

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
            for element in self._begin():
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
                    for element in self._begin():
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

    def flat_map(self, map_func):
        """Calls `map_func` with each element; the elements of the datasets that it returns follow one another."""

        def begin():
            for element in self._begin():
                yield from _begun(_called(map_func, element))

        return Dataset(begin)

    def interleave(self, map_func, cycle_length=None, block_length=1, num_parallel_calls=None, deterministic=None):
        """As `flat_map`, with `block_length` elements of each of `cycle_length` datasets in turn."""
        cycle = 2 if cycle_length in (None, AUTOTUNE) else int(cycle_length)
        if cycle < 1 or block_length < 1:
            raise ValueError(f"interleave: cycle_length is {cycle} and block_length {block_length}; both must be at least 1.")

        def begin():
            sources = self._begin()
            open_ones = [_begun(_called(map_func, element)) for element in itertools.islice(sources, cycle)]
            at = 0
            while open_ones:
                at %= len(open_ones)
                block = list(itertools.islice(open_ones[at], block_length))
                yield from block
                if len(block) == block_length:
                    at += 1
                    continue
                following = next(sources, _END)
                if following is _END:
                    del open_ones[at]
                else:
                    open_ones[at] = _begun(_called(map_func, following))
                    # A new dataset waits for its turn, unless the last one ended without an element.
                    at += bool(block)

        return Dataset(begin)

    def window(self, size, shift=None, stride=1, drop_remainder=False):
        """Datasets of `size` elements each; for elements of several parts, as many datasets."""
        shift = size if shift is None else shift
        if min(size, shift, stride) < 1:
            raise ValueError(f"window: size, shift and stride are {size}, {shift} and {stride}; each must be at least 1.")

        def made(elements):
            columns = [_flat(element) for element in elements]
            build = columns[0][1]
            parts = zip(*(leaves for leaves, _ in columns))
            return build(iter([Dataset(functools.partial(iter, list(part)), len(part)) for part in parts]))

        def begin():
            reach, buffer, missing = (size - 1) * stride + 1, [], 0
            for element in self._begin():
                if missing > 0:
                    missing -= 1
                    continue
                buffer.append(element)
                if len(buffer) == reach:
                    yield made(buffer[::stride])
                    missing = max(shift - reach, 0)
                    del buffer[:shift]
            while buffer and not drop_remainder:
                yield made(buffer[::stride][:size])
                del buffer[:shift]

        return Dataset(begin)

    def padded_batch(self, batch_size, padded_shapes=None, padding_values=None, drop_remainder=False):
        """Batches of elements of different sizes: each axis as long as in the longest one, or as `padded_shapes` says."""
        if batch_size < 1:
            raise ValueError(f"padded_batch: the size is {batch_size}; it must be at least 1.")

        def padded(elements):
            flat = [_flat(element) for element in elements]
            if len({len(leaves) for leaves, _ in flat}) != 1:
                raise ValueError("padded_batch: the elements have different numbers of parts; make each part an array.")
            build, columns = flat[0][1], list(zip(*(leaves for leaves, _ in flat)))
            of = lambda given, default: [default] * len(columns) if given is None else _parts(given, len(columns))
            shapes, values = of(padded_shapes, None), of(padding_values, None)
            return build(iter([_padded(*part) for part in zip(columns, shapes, values)]))

        def begin():
            elements = []
            for element in self._begin():
                elements.append(element)
                if len(elements) == batch_size:
                    yield padded(elements)
                    elements = []
            if elements and not drop_remainder:
                yield padded(elements)

        count = self._count
        if count is not None:
            count = count // batch_size if drop_remainder else -(-count // batch_size)
        return Dataset(begin, count)

    def bucket_by_sequence_length(self, element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes=None,
                                  padding_values=None, pad_to_bucket_boundary=False, drop_remainder=False, **options):
        """Padded batches of elements of similar lengths: a batch size for each bucket, and one for longer elements."""
        bounds, sizes = list(bucket_boundaries), list(bucket_batch_sizes)
        if len(sizes) != len(bounds) + 1 or bounds != sorted(bounds):
            raise ValueError(f"bucket_by_sequence_length: {len(bounds)} boundaries in order need {len(bounds) + 1} batch sizes, not {len(sizes)}.")
        if pad_to_bucket_boundary:
            raise TypeError("bucket_by_sequence_length: pad_to_bucket_boundary is not supported; give padded_shapes.")

        def begin():
            buckets = [[] for _ in sizes]
            batch = lambda elements: next(
                Dataset(lambda: iter(elements)).padded_batch(len(elements), padded_shapes, padding_values)._begin()
            )
            for element in self._begin():
                length = _called(element_length_func, element)
                at = bisect.bisect_right(bounds, int(length))
                buckets[at].append(element)
                if len(buckets[at]) == sizes[at]:
                    yield batch(buckets[at])
                    buckets[at] = []
            if not drop_remainder:
                for elements in buckets:
                    if elements:
                        yield batch(elements)

        return Dataset(begin)

    def scan(self, initial_state, scan_func):
        """Calls `scan_func` with a state and each element; it returns the next state and an element."""

        def begin():
            state = initial_state
            for element in self._begin():
                made = _tensors(element)
                state, result = scan_func(state, *made) if isinstance(made, tuple) else scan_func(state, made)
                yield result

        return Dataset(begin, self._count)

    def take_while(self, predicate):
        def begin():
            for element in self._begin():
                if not _called(predicate, element):
                    return
                yield element

        return Dataset(begin)

    def reduce(self, initial_state, reduce_func):
        """The state after `reduce_func` of the state and each element."""
        state = _tensors(initial_state)
        for element in self._begin():
            made = _tensors(element)
            state = reduce_func(state, made)
        return _tensors(state)

    def group_by_window(self, key_func, reduce_func, window_size=None, window_size_func=None):
        """Collects elements by their keys; `reduce_func` makes a dataset of a key and a dataset of `window_size` elements."""
        if (window_size is None) == (window_size_func is None):
            raise ValueError("group_by_window: give window_size, or the function window_size_func, and not both.")

        def begin():
            groups, sizes = {}, {}
            reduced = lambda key, elements: _begun(reduce_func(
                convert_to_tensor(key), Dataset(functools.partial(iter, elements), len(elements))
            ))
            for element in self._begin():
                key = int(_called(key_func, element))
                if key not in groups:
                    groups[key] = []
                    sizes[key] = int(window_size if window_size_func is None else window_size_func(convert_to_tensor(key)))
                groups[key].append(element)
                if len(groups[key]) == sizes[key]:
                    yield from reduced(key, groups[key])
                    groups[key] = []
            for key, elements in groups.items():
                if elements:
                    yield from reduced(key, elements)

        return Dataset(begin)

    def rebatch(self, batch_size, drop_remainder=False):
        """Batches of another size."""
        return self.unbatch().batch(batch_size, drop_remainder)

    def unique(self):
        """The elements without those that came before. Elements are scalars, also strings."""

        def begin():
            seen = set()
            for element in self._begin():
                key = np.asarray(element.numpy() if isinstance(element, Tensor) else element)
                if key.ndim:
                    raise ValueError(f"unique: an element is {list(key.shape)}; elements must be scalars.")
                key = key.item()
                if key not in seen:
                    seen.add(key)
                    yield element

        return Dataset(begin)

    def get_single_element(self, name=None):
        """The element of a dataset that has one."""
        elements = list(itertools.islice(self, 2))
        if len(elements) != 1:
            raise ValueError(f"get_single_element: the dataset has {'no' if not elements else 'more than one'} element.")
        return elements[0]

    def with_options(self, options, name=None):
        """The same dataset: it needs no options."""
        return self

    def apply(self, transformation_func):
        """The dataset that a function makes of this one."""
        return transformation_func(self)

    @staticmethod
    def choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=True):
        """The next element of the dataset whose index `choice_dataset` has next."""

        def begin():
            sources = [_begun(dataset) for dataset in datasets]
            for choice in _begun(choice_dataset):
                at = int(choice)
                if not 0 <= at < len(sources):
                    raise ValueError(f"choose_from_datasets: the choice is {at}, and there are {len(sources)} datasets.")
                element = next(sources[at], _END)
                if element is not _END:
                    yield element
                elif stop_on_empty_dataset:
                    return

        return Dataset(begin)

    @staticmethod
    def sample_from_datasets(datasets, weights=None, seed=None, stop_on_empty_dataset=False, **options):
        """Elements of several datasets at random, with these weights."""
        weights = [1.0] * len(datasets) if weights is None else [float(weight) for weight in weights]
        if len(weights) != len(datasets) or min(weights, default=0) < 0 or sum(weights) <= 0:
            raise ValueError(f"sample_from_datasets: the weights are {weights}; {len(datasets)} are needed, none below 0, and not all 0.")

        def begin():
            source = _random.Random(seed)
            sources, left = [_begun(dataset) for dataset in datasets], list(weights)
            while sum(left) > 0:
                at = source.choices(range(len(sources)), left)[0]
                element = next(sources[at], _END)
                if element is not _END:
                    yield element
                elif stop_on_empty_dataset:
                    return
                else:
                    left[at] = 0.0

        return Dataset(begin)

    # ---- reading ----

    @property
    def element_spec(self):
        """The shape and the dtype of each part of the first element."""
        from .tape import TensorSpec

        leaves, build = _flat(next(self._begin()))
        spec = lambda leaf: TensorSpec(np.shape(leaf), "string") if is_text(leaf) else (
            lambda tensor: TensorSpec(tensor._shape, tensor._dtype)
        )(convert_to_tensor(leaf))
        return build(iter([spec(leaf) for leaf in leaves]))

    def __iter__(self):
        """The elements, whose arrays are tensors; strings stay arrays of NumPy."""
        return map(_tensors, self._begin())

    def as_numpy_iterator(self):
        for element in self._begin():
            leaves, build = _flat(element)
            yield build(iter([leaf.numpy() if hasattr(leaf, "numpy") else leaf for leaf in leaves]))

    def cardinality(self):
        """The number of elements; -2 if it is not known."""
        return convert_to_tensor(-2 if self._count is None else self._count, "int32")

    def __len__(self):
        if self._count is None:
            raise TypeError("The dataset does not know its length.")
        return self._count
