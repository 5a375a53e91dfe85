"""Checkpoints in TensorFlow's format."""

import operator

from . import _wgrad
from .dtypes import DType


class _Restored:
    """What a checkpoint restored."""

    def __init__(self, unused, missing):
        self._unused, self._missing = unused, missing

    def assert_consumed(self):
        if self._unused or self._missing:
            raise AssertionError(
                f"restore: the file has {self._unused[:10]} that the program lacks, and the program has {self._missing[:10]} "
                "that the file lacks."
            )
        return self

    def assert_existing_objects_matched(self):
        if self._missing:
            raise AssertionError(f"restore: the file lacks {self._missing[:10]}.")
        return self

    def expect_partial(self):
        return self


class _Container:
    """A list or a dict as an object with parts: the items are called 0, 1 ..., or by their keys."""

    def __init__(self):
        self._items = []

    def _wgrad_parts(self):
        return self._items


def _part(value, made):
    """A value with containers in place of lists and dicts. `made` has those made so far, as lists may be shared and contain
    themselves; they live as long as the checkpoint, because a part is known by its address."""
    if not isinstance(value, (list, tuple, dict)):
        return value
    container = made.get(id(value))
    if container is None:
        container = made[id(value)] = _Container()
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        container._items.extend((str(name), _part(item, made)) for name, item in pairs)
    return container


class Checkpoint:
    """Saves and restores models, optimizers and variables by their names. Lists and dicts of these, and other checkpoints, are
    parts, too."""

    def __init__(self, **objects):
        self._objects = objects
        made = {}
        self._items = [(name, _part(value, made)) for name, value in objects.items()]
        self._native = _wgrad.NativeCheckpoint(self._items)

    def _wgrad_parts(self):
        return self._items

    def __getattr__(self, name):
        if name != "_objects" and name in self._objects:
            return self._objects[name]
        raise AttributeError(name)

    @property
    def save_counter(self):
        return self._native.save_counter

    def save(self, file_prefix):
        return self._native.save(str(file_prefix))

    def write(self, file_prefix):
        return self._native.write(str(file_prefix))

    def restore(self, save_path):
        if save_path is None:
            return _Restored([], [])
        return _Restored(*self._native.restore(str(save_path), True))

    def read(self, save_path):
        return _Restored(*self._native.restore(str(save_path), False))


def latest_checkpoint(checkpoint_dir, latest_filename=None):
    """The path of the newest checkpoint in a folder; `None` if there is none."""
    if latest_filename is not None:
        raise TypeError("latest_checkpoint: latest_filename is not supported.")
    return _wgrad.latest_checkpoint(str(checkpoint_dir))


class CheckpointReader:
    """The tensors of a checkpoint by their names; values are arrays of NumPy."""

    def __init__(self, filename):
        self._native = _wgrad.NativeCheckpointReader(filename)

    def has_tensor(self, tensor_name):
        return self._native.has_tensor(tensor_name)

    def get_tensor(self, tensor_name):
        return self._native.get_tensor(tensor_name)

    def get_variable_to_shape_map(self):
        return self._native.shapes()

    def get_variable_to_dtype_map(self):
        return {name: DType(dtype) for name, dtype in self._native.dtypes().items()}


def load_checkpoint(ckpt_dir_or_file):
    """Reads a checkpoint, or the newest one of a folder."""
    return CheckpointReader(ckpt_dir_or_file)


def list_variables(ckpt_dir_or_file):
    """The names and shapes of a checkpoint's tensors."""
    return list(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def load_variable(ckpt_dir_or_file, name):
    """The values of one tensor."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name)


class CheckpointManager:
    """Keeps the newest checkpoints in a folder."""

    def __init__(self, checkpoint, directory, max_to_keep, keep_checkpoint_every_n_hours=None, checkpoint_name="ckpt"):
        if max_to_keep is not None and max_to_keep < 1:
            raise ValueError(f"CheckpointManager: max_to_keep is {max_to_keep}; it must be at least 1, or None.")
        self._checkpoint = checkpoint
        self._keeping = {
            "directory": str(directory), "max_to_keep": max_to_keep, "every_n_hours": keep_checkpoint_every_n_hours,
            "checkpoint_name": checkpoint_name,
        }

    @property
    def directory(self):
        return self._keeping["directory"]

    @property
    def checkpoint(self):
        return self._checkpoint

    @property
    def checkpoints(self):
        return self._checkpoint._native.kept(self._keeping)[0]

    @property
    def latest_checkpoint(self):
        return self._checkpoint._native.kept(self._keeping)[1]

    def save(self, checkpoint_number=None, check_interval=True, options=None):
        number = None if checkpoint_number is None else int(checkpoint_number)
        return self._checkpoint._native.keep(self._keeping, number)

    def restore_or_initialize(self):
        return self._checkpoint._native.restore_newest(self._keeping)


# ---- examples of TFRecord files ----


class _Values:
    """A list of values of one kind."""

    def __init__(self, value=()):
        self.value = list(value)

    def __eq__(self, other):
        return type(self) is type(other) and self.value == other.value

    def __repr__(self):
        return f"{type(self).__name__}(value={self.value})"


class BytesList(_Values):
    """Byte strings."""

    _kind = "bytes"

    def __init__(self, value=()):
        super().__init__(value)
        wrong = next((item for item in self.value if not isinstance(item, bytes)), None)
        if wrong is not None:
            raise TypeError(f"BytesList: {wrong!r} is {type(wrong).__name__}; the values must be bytes.")


class Int64List(_Values):
    """Integers."""

    _kind = "int64"

    def __init__(self, value=()):
        super().__init__(operator.index(item) for item in value)


class FloatList(_Values):
    """Floats."""

    _kind = "float"

    def __init__(self, value=()):
        super().__init__(float(item) for item in value)


class Feature:
    """Values of one kind: of a `bytes_list`, an `int64_list` or a `float_list`."""

    def __init__(self, bytes_list=None, int64_list=None, float_list=None):
        given = [values for values in (bytes_list, int64_list, float_list) if values is not None]
        if len(given) > 1:
            raise ValueError("Feature: give one of bytes_list, int64_list and float_list.")
        self._values = given[0] if given else None

    def _of(self, kind):
        return self._values if isinstance(self._values, kind) else kind()

    @property
    def bytes_list(self):
        return self._of(BytesList)

    @property
    def int64_list(self):
        return self._of(Int64List)

    @property
    def float_list(self):
        return self._of(FloatList)

    def WhichOneof(self, oneof_group):
        return None if self._values is None else f"{self._values._kind}_list"

    def __eq__(self, other):
        return isinstance(other, Feature) and self._values == other._values

    def __repr__(self):
        return f"Feature({self._values!r})"


class Features:
    """Features by their names."""

    def __init__(self, feature=None):
        self.feature = dict(feature or {})

    def __eq__(self, other):
        return isinstance(other, Features) and self.feature == other.feature


class Example:
    """One example: the usual content of a record of a TFRecord file."""

    def __init__(self, features=None):
        self.features = Features() if features is None else features

    def SerializeToString(self):
        """The example as `bytes`."""
        return _wgrad.serialize_example([
            (name, "" if feature._values is None else feature._values._kind, [] if feature._values is None else feature._values.value)
            for name, feature in self.features.feature.items()
        ])

    def ParseFromString(self, serialized):
        """Takes over the features of a serialized example."""
        lists = {"bytes": BytesList, "int64": Int64List, "float": FloatList}
        found = {}
        for name, kind, values in _wgrad.parse_example(bytes(serialized)):
            found[name] = Feature(**{f"{kind}_list": lists[kind](values)}) if kind else Feature()
        self.features = Features(found)

    @classmethod
    def FromString(cls, serialized):
        made = cls()
        made.ParseFromString(serialized)
        return made

    def __eq__(self, other):
        return isinstance(other, Example) and self.features == other.features

    def __repr__(self):
        return f"Example({self.features.feature!r})"
