"""TensorFlow's `tf.distribute`: training on several devices of this machine."""

import threading
import traceback

from . import _wgrad
from .tape import _flat


class ReduceOp:
    """How values of replicas become one."""

    SUM = "SUM"
    MEAN = "MEAN"


class PerReplica:
    """A value for each replica."""

    def __init__(self, values):
        self.values = tuple(values)

    def __repr__(self):
        return f"PerReplica({', '.join(map(repr, self.values))})"


def _per_replica(results):
    """Structures of each replica as one structure of values for all of them."""
    flat = [_flat(result) for result in results]
    columns = list(zip(*(leaves for leaves, _ in flat)))
    same = lambda column: len(column) == 1 or all(value is column[0] for value in column)
    return flat[0][1](iter([column[0] if same(column) else PerReplica(column) for column in columns]))


def _local(structure, replica):
    """What one replica has of a structure."""
    leaves, build = _flat(structure)
    return build(iter([leaf.values[replica] if isinstance(leaf, PerReplica) else leaf for leaf in leaves]))


class MirroredStrategy:
    """Trains equal copies of a model on several devices: make it in the scope, and call `fit`, or `run` a step of your own."""

    def __init__(self, devices=None):
        self._native = _wgrad.NativeStrategy(None if devices is None else list(devices))

    @property
    def num_replicas_in_sync(self):
        return self._native.replicas

    def scope(self):
        """Variables that are made in this `with` block have a copy on each device."""
        return _Scope(self._native)

    def run(self, fn, args=(), kwargs=None, options=None):
        """Calls `fn` in every replica at the same time, each in a thread of its own, with its own part of the arguments. A result is
        a `PerReplica` if there are several replicas."""
        count = self.num_replicas_in_sync
        for leaf in _flat((args, kwargs or {}))[0]:
            if isinstance(leaf, PerReplica) and len(leaf.values) != count:
                raise ValueError(f"run: an argument has {len(leaf.values)} parts, and the strategy {count} replicas.")

        raised = []

        def call(given):
            try:
                return fn(*given[0], **given[1])
            except BaseException as error:
                # Its frames hold tapes, which belong to this thread.
                traceback.clear_frames(error.__traceback__.tb_next)
                raised.append(error)
                raise

        arguments = [(_local((tuple(args), kwargs or {}), at),) for at in range(count)]
        try:
            results = self._native.run(call, arguments)
        except Exception:
            # The other replicas may have failed because the first one did.
            if raised:
                raise raised[0] from None
            raise
        return _per_replica(results)

    def reduce(self, reduce_op, value, axis=None):
        """The sum or the mean of the replicas' values, on the first device; with an axis, over it, too."""
        leaves, build = _flat(value)
        return build(iter([self._native.reduce(str(reduce_op), self.experimental_local_results(leaf), axis) for leaf in leaves]))

    def gather(self, value, axis):
        """The replicas' values joined along an axis."""
        return self._native.gather(list(self.experimental_local_results(value)), int(axis))

    def experimental_local_results(self, value):
        """The values of the replicas as a tuple."""
        if isinstance(value, PerReplica):
            return value.values
        # One value that all replicas have.
        return (value,) * self.num_replicas_in_sync

    def experimental_distribute_values_from_function(self, value_fn):
        """The values of a function of the replica's context."""
        count = self.num_replicas_in_sync
        return _per_replica(self._native.run(lambda: value_fn(get_replica_context()), [()] * count))

    def experimental_distribute_dataset(self, dataset, options=None):
        """Batches whose rows are shared out among the replicas; a batch of fewer rows than replicas is left out."""
        return _Distributed(self, dataset)

    def __repr__(self):
        return f"<MirroredStrategy of {self.num_replicas_in_sync} replicas>"


class _Distributed:
    """A dataset whose elements are shared out among the replicas."""

    def __init__(self, strategy, dataset):
        self._strategy, self._dataset = strategy, dataset

    def __iter__(self):
        for element in self._dataset:
            leaves, build = _flat(element)
            parts = [self._strategy._native.split(leaf) for leaf in leaves]
            yield build(iter([part[0] if len(part) == 1 else PerReplica(part) for part in parts]))

    def __len__(self):
        return len(self._dataset)


class ReplicaContext:
    """The replica in which this is called."""

    def __init__(self, number, count):
        self.replica_id_in_sync_group, self.num_replicas_in_sync = number, count

    def all_reduce(self, reduce_op, value):
        """The sum or the mean of a value over all replicas, which all make this call."""
        leaves, build = _flat(value)
        return build(iter([_wgrad.all_reduce(str(reduce_op), leaf) for leaf in leaves]))


def get_replica_context():
    """The context of the replica that runs; `None` outside of `run`."""
    found = _wgrad.replica()
    return None if found is None else ReplicaContext(*found)


def in_cross_replica_context():
    return _wgrad.replica() is None


class _Scope:
    """The `with` block of a strategy."""

    def __init__(self, native):
        self._native, self._open = native, []

    def __enter__(self):
        self._open.append(self._native.enter())
        _depth.scopes = getattr(_depth, "scopes", 0) + 1
        return self

    def __exit__(self, *error):
        _depth.scopes -= 1
        self._open.pop().leave()


_depth = threading.local()


def has_strategy():
    """Whether this is in the scope of a strategy, or in one of its replicas."""
    return getattr(_depth, "scopes", 0) > 0 or _wgrad.replica() is not None
