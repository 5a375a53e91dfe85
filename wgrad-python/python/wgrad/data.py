"""Input pipelines: `tf.data.Dataset`, whose elements are arrays of NumPy and tensors, and tuples and dicts of them."""

import bisect
import functools
import itertools
import queue
import random as _random
import threading

import numpy as np

from .dtypes import as_name
from .errors import InvalidArgumentError, OutOfRangeError
from .graphs import get_logger
from .ragged import RaggedTensor, stack as _ragged_of
from .strings import is_text, noted, of as _strings_of
from .tape import _flat
from .tensor import Tensor, convert_to_tensor

AUTOTUNE = -1
# What `cardinality` is for datasets that do not end, and for those whose number of elements is not known.
INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = -1, -2


def _rows(structure):
    """The number of rows of arrays, and a function that returns a row."""
    leaves, build = _flat(structure)
    if not leaves:
        raise ValueError("from_tensor_slices: there are no arrays.")
    leaves = [leaf if isinstance(leaf, RaggedTensor) else leaf.numpy() if isinstance(leaf, Tensor) else np.asarray(leaf) for leaf in leaves]
    # Strings are bytes, as in tensors.
    leaves = [_strings_of(leaf) if isinstance(leaf, np.ndarray) and leaf.dtype.kind == "U" else leaf for leaf in leaves]
    if any(isinstance(leaf, np.ndarray) and leaf.ndim == 0 for leaf in leaves):
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
        if any(isinstance(value, RaggedTensor) for value in column):
            made.append(_ragged_of(column))
            continue
        if any(isinstance(value, Tensor) for value in column):
            made.append(convert_to_tensor(list(column)))
            continue
        shapes = {np.shape(value) for value in column}
        if len(shapes) != 1:
            raise ValueError(f"batch: elements have the shapes {sorted(shapes)}; use padded_batch or batches of 1.")
        if is_text(column[0]) or np.asarray(column[0]).dtype.kind in "SUO":
            # NumPy's arrays of fixed sizes lose zeros at the end of bytes.
            made.append(_strings_of(np.stack([np.asarray(value, dtype=object) for value in column])))
            continue
        made.append(np.stack(column))
    return build(iter(made))


def _groups(elements, size, drop_remainder):
    """Lists of `size` elements; the last one may be shorter, or is left out."""
    elements = iter(elements)
    while group := list(itertools.islice(elements, size)):
        if len(group) == size or not drop_remainder:
            yield group


def _tensors(element):
    leaves, build = _flat(element)
    of = lambda leaf: noted(leaf) if is_text(leaf) else leaf if isinstance(leaf, (Dataset, RaggedTensor)) else convert_to_tensor(leaf)
    return build(iter([of(leaf) for leaf in leaves]))


def _called(function, element):
    """A function of an element, whose parts are its arguments if the element is a tuple."""
    made = _tensors(element)
    return function(*made) if isinstance(made, tuple) else function(made)


def _parts(given, count):
    """One value, or a structure of `count` values."""
    if isinstance(given, dict):
        given = tuple(given[key] for key in sorted(given))
        given = given[0] if count == 1 else given
    if count == 1 or isinstance(given, (int, float)):
        return [given[0] if isinstance(given, tuple) and len(given) == 1 and isinstance(given[0], (list, tuple)) else given] * count
    parts = list(given)
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


def _typed(element, wanted, kinds):
    """An element of a generator with the structure and the dtypes that were given."""
    flat = _flat(wanted)[0]
    if isinstance(wanted, (tuple, list)):
        if not isinstance(element, (tuple, list)) or len(element) != len(wanted):
            raise TypeError(f"from_generator: the generator yielded {element!r}; it must yield tuples of {len(wanted)} parts.")
        element = tuple(element)
    leaves, build = _flat(_arrays(element) if isinstance(element, (tuple, dict)) else _arrays_of_leaf(element))
    if len(leaves) != len(flat):
        raise TypeError(f"from_generator: the generator yielded {len(leaves)} parts; {len(flat)} were declared.")
    made = []
    for leaf, kind, spec in zip(leaves, kinds, flat):
        shape = getattr(spec, "shape", None)
        if kind == "string":
            leaf = _strings_of(leaf) if not isinstance(leaf, (str, bytes)) else leaf
        elif isinstance(leaf, Tensor):
            leaf = leaf if leaf.dtype == kind else leaf._cast(kind)
        else:
            array = np.asarray(leaf)
            if array.dtype.kind in "SUO" or array.dtype.kind == "f" and "int" in kind and (array != np.trunc(array)).any():
                raise TypeError(f"from_generator: the generator yielded {leaf!r}, which is no {kind}.")
            leaf = array.astype({"int64": "int32", "float64": "float32", "uint64": "uint32"}.get(kind, kind))
        sizes = np.shape(leaf)
        if shape is not None and not shape.is_compatible_with(sizes):
            raise TypeError(f"from_generator: the generator yielded the shape {list(sizes)}; {list(shape)} was declared.")
        made.append(leaf)
    return build(iter(made))


def _arrays_of_leaf(element):
    """A list of a generator is an array."""
    return np.asarray(element) if isinstance(element, list) and not any(isinstance(part, Tensor) for part in element) else element


_END = object()


def _dataset(value):
    if not isinstance(value, Dataset):
        raise TypeError(f"{value!r} is no dataset; tf.data.Dataset.from_tensor_slices makes one.")
    return value


def _begun(dataset):
    """The elements of a dataset as its stages have them."""
    return _dataset(dataset)._begin()


class Iterator:
    """The elements of one pass over a dataset."""

    def __init__(self, elements):
        self._elements = elements

    def __iter__(self):
        return self

    def __next__(self):
        return _tensors(next(self._elements))

    def get_next(self):
        """The next element. At the end it is an `OutOfRangeError`."""
        element = next(self._elements, _END)
        if element is _END:
            raise OutOfRangeError("End of sequence: the dataset has no more elements.")
        return _tensors(element)

    def get_next_as_optional(self):
        """The next element in an object that may have none."""
        return Optional(next(self._elements, _END))


class Optional:
    """An element, or none at the end of a dataset."""

    def __init__(self, element):
        self._element = element

    def has_value(self, name=None):
        """Whether there is an element, as a tensor."""
        return convert_to_tensor(self._element is not _END)

    def get_value(self, name=None):
        """The element."""
        if self._element is _END:
            raise InvalidArgumentError("Optional.get_value: the dataset has ended, and there is no value.")
        return _tensors(self._element)


def _resized(size, change):
    """The number of elements after a stage: a function of a number that is known."""
    return size if size is None or size == INFINITE_CARDINALITY else change(size)


def _batches(size, batch_size, drop_remainder):
    return _resized(size, lambda size: size // batch_size if drop_remainder else -(-size // batch_size))


class Dataset:
    """Elements that can be iterated over any number of times. Each method returns a new dataset."""

    # Whether the first axis of the elements is a batch whose last one may be smaller.
    _open = False

    def __init__(self, begin, count=None):
        # The number of elements, -1 for one without an end, `None` if it is not known.
        self._begin, self._size = begin, count

    @property
    def _count(self):
        return None if self._size == INFINITE_CARDINALITY else self._size

    def _with(self, begin, size):
        """A dataset whose elements are shaped as these."""
        made = Dataset(begin, size)
        made._open = self._open
        return made

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
    def from_generator(generator, output_types=None, output_shapes=None, args=(), output_signature=None, name=None):
        """What a function yields. `output_signature`, or `output_types`, are the dtypes of the parts."""
        # A signature in the second place, where it was in earlier versions of this package.
        if output_signature is None and output_types is not None and any(hasattr(leaf, "_accepts") for leaf in _flat(output_types)[0]):
            output_signature, output_types = output_types, None
        wanted = output_types if output_signature is None else output_signature
        if wanted is None:
            return Dataset(lambda: map(_arrays, generator(*args)))
        kinds = [as_name(getattr(leaf, "dtype", leaf)) for leaf in _flat(wanted)[0]]
        arguments = tuple(map(_tensors, args))

        def begin():
            for element in generator(*arguments):
                yield _typed(element, wanted, kinds)

        return Dataset(begin)

    @staticmethod
    def range(*bounds, output_type="int32", name=None):
        """The numbers of Python's `range`."""
        numbers = range(*[int(bound) for bound in bounds])
        kind = {"int64": "int32", "float64": "float32"}.get(as_name(output_type), as_name(output_type))
        of = np.dtype(kind).type
        return Dataset(lambda: (of(number) for number in numbers), len(numbers))

    @staticmethod
    def counter(start=0, step=1, dtype="int32", name=None):
        """Numbers without an end, from `start`."""
        of = np.dtype({"int64": "int32"}.get(as_name(dtype), as_name(dtype))).type
        return Dataset(lambda: map(of, itertools.count(start, step)), INFINITE_CARDINALITY)

    @staticmethod
    def random(seed=None, rerandomize_each_iteration=None, name=None):
        """Random integers of 31 bits, without an end; those of a `seed` repeat in each pass, and are not TensorFlow's."""

        def begin():
            source = _random.Random(seed)
            while True:
                yield np.int32(source.getrandbits(31))

        return Dataset(begin, INFINITE_CARDINALITY)

    @staticmethod
    def zip(*args, datasets=None, name=None):
        """Elements of several datasets, in tuples or dicts as the datasets are given."""
        if datasets is None:
            datasets = args[0] if len(args) == 1 else args
        leaves, build = _flat(datasets)
        sizes = [_dataset(leaf)._size for leaf in leaves]
        ends = [size for size in sizes if size != INFINITE_CARDINALITY]
        size = None if None in sizes else min(ends, default=INFINITE_CARDINALITY)
        return Dataset(lambda: (build(iter(row)) for row in zip(*map(_begun, leaves))), size)

    # ---- stages ----

    def map(self, map_func, num_parallel_calls=None, deterministic=None, synchronous=None, use_unbounded_threadpool=False, name=None):
        """Calls `map_func` with each element, whose arrays are tensors."""
        # Python's own map goes on after an exception, for `ignore_errors`.
        return self._with(lambda: map(functools.partial(_called, map_func), self._begin()), self._size)

    def filter(self, predicate, name=None):
        """The elements for which `predicate` is true."""
        return self._with(lambda: filter(functools.partial(_called, predicate), self._begin()), None)

    def batch(self, batch_size, drop_remainder=False, num_parallel_calls=None, deterministic=None, name=None):
        """Stacks `batch_size` elements; the last batch may be smaller, or is left out."""
        batch_size = int(batch_size)
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

        made = Dataset(begin, _batches(self._size, batch_size, drop_remainder))
        made._open = not drop_remainder
        return made

    def ragged_batch(self, batch_size, drop_remainder=False, row_splits_dtype="int64", name=None):
        """Batches of elements of different lengths, as ragged tensors; those without an axis are stacked."""
        batch_size = int(batch_size)
        if batch_size < 1:
            raise ValueError(f"ragged_batch: the size is {batch_size}; it must be at least 1.")

        def begin():
            for elements in _groups(self._begin(), batch_size, drop_remainder):
                flat = [_flat(element) for element in elements]
                yield flat[0][1](iter([_ragged_of(list(column)) for column in zip(*(leaves for leaves, _ in flat))]))

        return Dataset(begin, _batches(self._size, batch_size, drop_remainder))

    def unbatch(self, name=None):
        """The rows of the elements."""

        def begin():
            for element in self._begin():
                count, row = _rows(element)
                yield from (row(at) for at in range(count))

        return Dataset(begin)

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True, name=None):
        """The elements in a random order: each is drawn from the next `buffer_size` ones. Orders of a seed are not TensorFlow's."""
        buffer_size = int(buffer_size)
        if buffer_size < 1:
            raise ValueError(f"shuffle: the buffer has {buffer_size} places; it needs at least 1.")
        passes, own = [0], _random.SystemRandom().getrandbits(62) if seed is None else int(seed)
        reshuffles = reshuffle_each_iteration is None or reshuffle_each_iteration

        def begin():
            passes[0] += 1
            number = passes[0] if reshuffles else 1
            source = _random.Random(own * 1_000_003 + number)
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

        return self._with(begin, self._size)

    def repeat(self, count=None, name=None):
        """The elements `count` times, or without an end."""
        count = None if count is None else int(count)
        forever = count is None or count < 0

        def begin():
            passes = 0
            while forever or passes < count:
                passes, empty = passes + 1, True
                for element in self._begin():
                    empty = False
                    yield element
                if empty:
                    return

        if forever:
            size = _resized(self._size, lambda size: INFINITE_CARDINALITY if size else 0)
        else:
            size = 0 if count == 0 else _resized(self._size, lambda size: size * count)
        return self._with(begin, size)

    def take(self, count, name=None):
        """The first `count` elements, or all with -1."""
        count = int(count)

        def begin():
            if count == 0:
                return
            for at, element in enumerate(self._begin(), 1):
                yield element
                if at == count:
                    return

        if count < 0:
            size = self._size
        else:
            size = count if self._size == INFINITE_CARDINALITY else _resized(self._size, lambda size: min(count, size))
        return self._with(begin, size)

    def skip(self, count, name=None):
        """The elements after the first `count`, or none with -1."""
        count = int(count)

        def begin():
            if count < 0:
                return
            for at, element in enumerate(self._begin()):
                if at >= count:
                    yield element

        return self._with(begin, 0 if count < 0 else _resized(self._size, lambda size: max(size - count, 0)))

    def shard(self, num_shards, index, name=None):
        """Each element whose number is `index` modulo `num_shards`."""
        num_shards, index = int(num_shards), int(index)
        if not 0 <= index < num_shards:
            raise InvalidArgumentError(f"shard: index is {index} of {num_shards} shards; it must be at least 0 and below them.")
        begin = lambda: (element for at, element in enumerate(self._begin()) if at % num_shards == index)
        return self._with(begin, _resized(self._size, lambda size: (size - index + num_shards - 1) // num_shards))

    def concatenate(self, dataset, name=None):
        """These elements, and then those of another dataset."""

        def begin():
            yield from self._begin()
            yield from _begun(dataset)

        sizes = self._size, _dataset(dataset)._size
        known = INFINITE_CARDINALITY if INFINITE_CARDINALITY in sizes else None if None in sizes else sum(sizes)
        return self._with(begin, known)

    def enumerate(self, start=0, name=None):
        """Pairs of a number, from `start`, and an element."""
        return Dataset(lambda: ((np.int32(at), element) for at, element in enumerate(self._begin(), int(start))), self._size)

    def cache(self, filename="", name=None):
        """Keeps the elements of the first whole pass: in memory, or in a folder that later runs read, too. Its files are not TensorFlow's."""
        if filename:
            from .data_files import cached

            return self._with(cached(self, filename), self._size)
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

        return self._with(begin, self._size)

    def snapshot(self, path, compression="AUTO", reader_func=None, shard_func=None, name=None):
        """Keeps the elements of the first whole pass in a folder, which later runs read. Its files are not TensorFlow's."""
        if reader_func is not None or shard_func is not None:
            raise TypeError("snapshot: reader_func and shard_func are not supported; leave them out.")
        return self.cache(path)

    def save(self, path, compression=None, shard_func=None, checkpoint_args=None):
        """Writes the elements into a folder, which `Dataset.load` reads. Its files are not TensorFlow's."""
        from .data_files import save

        if shard_func is not None or checkpoint_args is not None:
            raise TypeError("save: shard_func and checkpoint_args are not supported; leave them out.")
        save(self, path, compression)

    @staticmethod
    def load(path, element_spec=None, compression=None, reader_func=None, wait=False):
        """The elements that `save` wrote."""
        from .data_files import load

        if reader_func is not None:
            raise TypeError("load: reader_func is not supported; leave it out.")
        return load(path, compression)

    def prefetch(self, buffer_size, name=None):
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

        return self._with(begin, self._size)

    def flat_map(self, map_func, name=None):
        """Calls `map_func` with each element; the elements of the datasets that it returns follow one another."""

        def begin():
            for element in self._begin():
                yield from _begun(_called(map_func, element))

        return Dataset(begin)

    def interleave(self, map_func, cycle_length=None, block_length=1, num_parallel_calls=None, deterministic=None, name=None):
        """As `flat_map`, with `block_length` elements of each of `cycle_length` datasets, one after the other."""
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

    def window(self, size, shift=None, stride=1, drop_remainder=False, name=None):
        """Datasets of `size` elements each; for elements of several parts, as many datasets."""
        size, stride, shift = int(size), int(stride), int(size if shift is None else shift)
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

        reach = (size - 1) * stride
        count = _resized(self._size, lambda count: max(0, -(-(count - reach) // shift)) if drop_remainder else -(-count // shift))
        return Dataset(begin, count)

    def padded_batch(self, batch_size, padded_shapes=None, padding_values=None, drop_remainder=False, name=None):
        """Batches of elements of different sizes: each axis as long as in the longest one, or as `padded_shapes` says."""
        batch_size = int(batch_size)
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

        made = Dataset(begin, _batches(self._size, batch_size, drop_remainder))
        made._open = not drop_remainder
        return made

    def bucket_by_sequence_length(self, element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes=None,
                                  padding_values=None, pad_to_bucket_boundary=False, no_padding=False, drop_remainder=False, name=None):
        """Padded batches of elements of similar lengths: a batch size for each bucket, and one for longer elements."""
        bounds, sizes = list(bucket_boundaries), list(bucket_batch_sizes)
        if len(sizes) != len(bounds) + 1 or bounds != sorted(bounds):
            raise ValueError(f"bucket_by_sequence_length: {len(bounds)} boundaries in order need {len(bounds) + 1} batch sizes, not {len(sizes)}.")
        if pad_to_bucket_boundary and no_padding:
            raise ValueError("bucket_by_sequence_length: give pad_to_bucket_boundary or no_padding, and not both.")

        def batch(elements, at):
            part = Dataset(lambda: iter(elements))
            if no_padding:
                return next(part.batch(len(elements))._begin())
            shapes = padded_shapes
            if pad_to_bucket_boundary:
                if at == len(bounds):
                    raise InvalidArgumentError(
                        f"bucket_by_sequence_length: an element is longer than the last boundary, {bounds[-1]}, and has none to be padded to."
                    )
                # As in TensorFlow, an axis without a given size becomes one shorter than the boundary.
                leaves, build = _flat(elements[0])
                given = [None] * len(leaves) if shapes is None else _parts(shapes, len(leaves))
                of = lambda leaf, shape: [bounds[at] - 1 if size in (None, -1) else size for size in shape or [None] * np.ndim(leaf)]
                shapes = [of(leaf, shape) for leaf, shape in zip(leaves, given)]
                shapes = shapes[0] if len(shapes) == 1 else build(iter(map(tuple, shapes)))
            return next(part.padded_batch(len(elements), shapes, padding_values)._begin())

        def begin():
            buckets = [[] for _ in sizes]
            for element in self._begin():
                length = _called(element_length_func, element)
                at = bisect.bisect_right(bounds, int(length))
                buckets[at].append(element)
                if len(buckets[at]) == sizes[at]:
                    yield batch(buckets[at], at)
                    buckets[at] = []
            if not drop_remainder:
                for at, elements in enumerate(buckets):
                    if elements:
                        yield batch(elements, at)

        return Dataset(begin)

    def scan(self, initial_state, scan_func, name=None):
        """Calls `scan_func` with a state and each element; it returns the next state and an element."""

        def begin():
            state = initial_state
            for element in self._begin():
                made = _tensors(element)
                state, result = scan_func(state, *made) if isinstance(made, tuple) else scan_func(state, made)
                yield result

        return Dataset(begin, self._size)

    def take_while(self, predicate, name=None):
        """The elements in front of the first one for which `predicate` is false."""

        def begin():
            for element in self._begin():
                if not _called(predicate, element):
                    return
                yield element

        return self._with(begin, None)

    def ignore_errors(self, log_warning=False, name=None):
        """The elements without those whose stages raise an exception."""

        def begin():
            elements = self._begin()
            while True:
                try:
                    element = next(elements, _END)
                except Exception as error:
                    if log_warning:
                        get_logger().warning("ignore_errors: %s", error)
                    continue
                if element is _END:
                    return
                yield element

        return self._with(begin, None)

    def rejection_resample(self, class_func, target_dist, initial_dist=None, seed=None, name=None):
        """Pairs of a class and an element, of which some are left out at random, so that the classes have the shares of `target_dist`.
        `class_func` gives the class of an element; without `initial_dist`, the shares so far are counted."""
        target = np.asarray(target_dist, dtype="float64").ravel()
        given = None if initial_dist is None else np.asarray(initial_dist, dtype="float64").ravel()
        for name_, shares in (("target_dist", target), ("initial_dist", given)):
            if shares is not None and (len(shares) != len(target) or (shares < 0).any() or shares.sum() <= 0):
                raise ValueError(f"rejection_resample: {name_} is {shares.tolist()}; it must have a share for each of {len(target)} classes.")

        def begin():
            source, seen = _random.Random(seed), np.zeros(len(target))
            # Whether the next result is whatever comes next, with the share of the classes that all results have in common.
            keeps = None
            for element in self._begin():
                kind = int(_called(class_func, element))
                if not 0 <= kind < len(target):
                    raise ValueError(f"rejection_resample: a class is {kind}, and there are {len(target)}.")
                seen[kind] += 1
                ratios = target / target.sum() / np.maximum((seen if given is None else given) / (seen if given is None else given).sum(), 1e-12)
                least, most = ratios.min(), ratios.max()
                if keeps is None:
                    keeps = source.random() < least
                chance = 1.0 if most <= least else (ratios[kind] - least) / (most - least)
                if keeps or source.random() < chance:
                    keeps = None
                    yield np.int32(kind), element

        return Dataset(begin)

    def reduce(self, initial_state, reduce_func, name=None):
        """The state after `reduce_func` of the state and each element."""
        state = _tensors(initial_state)
        for element in self._begin():
            state = reduce_func(state, _tensors(element))
        return _tensors(state)

    def group_by_window(self, key_func, reduce_func, window_size=None, window_size_func=None, name=None):
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

    def rebatch(self, batch_size, drop_remainder=False, name=None):
        """Batches of another size."""
        return self.unbatch().batch(batch_size, drop_remainder)

    def unique(self, name=None):
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

    def options(self):
        """Options with their defaults: they change nothing."""
        from .data_options import Options

        return Options()

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
        """The shape and the dtype of each part of the first element. The size of a batch is `None` if the last one may be smaller."""
        from .tape import TensorSpec

        element = next(self._begin(), _END)
        if element is _END:
            raise ValueError("element_spec: the dataset has no elements.")
        leaves, build = _flat(element)

        def spec(leaf):
            if isinstance(leaf, Dataset):
                return leaf
            shape, dtype = (np.shape(leaf), "string") if is_text(leaf) else (lambda x: (x._shape, x._dtype))(convert_to_tensor(leaf))
            return TensorSpec([None, *shape[1:]] if self._open and len(shape) else shape, dtype)

        return build(iter([spec(leaf) for leaf in leaves]))

    def __iter__(self):
        """The elements, whose arrays are tensors; strings stay arrays of NumPy."""
        return Iterator(self._begin())

    def as_numpy_iterator(self):
        for element in self._begin():
            leaves, build = _flat(element)
            yield build(iter([leaf.numpy() if hasattr(leaf, "numpy") else leaf for leaf in leaves]))

    def cardinality(self):
        """The number of elements: -1 without an end, -2 if it is not known."""
        return convert_to_tensor(UNKNOWN_CARDINALITY if self._size is None else self._size, "int32")

    def __len__(self):
        if self._size == INFINITE_CARDINALITY:
            raise TypeError("The dataset is infinite.")
        if self._size is None:
            raise TypeError("The dataset length is unknown.")
        return self._size

    def __bool__(self):
        return True
