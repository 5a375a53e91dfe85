"""Options of datasets, and `tf.data.experimental`."""

import enum

from . import data as _data
from .data_files import CsvDataset, make_csv_dataset


class AutoShardPolicy(enum.IntEnum):
    """How strategies share out a dataset. They share out its elements."""

    OFF, AUTO, FILE, DATA, HINT = -1, 0, 1, 2, 3


class _Settings:
    """Settings that change nothing: any name has a value."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = _Settings()
        setattr(self, name, made)
        return made


class Options(_Settings):
    """TensorFlow's `tf.data.Options`, which change nothing: elements are always in order, and stages run as they are."""

    def __init__(self):
        self.deterministic = None

    def merge(self, options):
        """These options, with those that the others set."""
        made = Options()
        made.__dict__.update({**self.__dict__, **options.__dict__})
        return made


ThreadingOptions = _Settings


class experimental:
    """TensorFlow's `tf.data.experimental`."""

    AUTOTUNE = _data.AUTOTUNE
    INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = _data.INFINITE_CARDINALITY, _data.UNKNOWN_CARDINALITY
    AutoShardPolicy, Optional = AutoShardPolicy, _data.Optional
    CsvDataset, make_csv_dataset = CsvDataset, staticmethod(make_csv_dataset)

    @staticmethod
    def cardinality(dataset):
        """The number of elements: -1 without an end, -2 if it is not known."""
        return dataset.cardinality()

    @staticmethod
    def assert_cardinality(expected_cardinality):
        """A function for `Dataset.apply`: the dataset has this number of elements, which is checked at its end."""

        def apply(dataset):
            def begin():
                count = 0
                for element in dataset._begin():
                    count += 1
                    yield element
                if count != expected_cardinality:
                    raise _data.InvalidArgumentError(f"assert_cardinality: the dataset has {count} elements, and not {expected_cardinality}.")

            return dataset._with(begin, int(expected_cardinality))

        return apply

    @staticmethod
    def prefetch_to_device(device, buffer_size=None):
        """A function for `Dataset.apply`: makes the next elements in a thread."""
        return lambda dataset: dataset.prefetch(_data.AUTOTUNE if buffer_size is None else buffer_size)

    @staticmethod
    def ignore_errors(log_warning=False):
        """A function for `Dataset.apply`: `Dataset.ignore_errors`."""
        return lambda dataset: dataset.ignore_errors(log_warning)

    @staticmethod
    def get_single_element(dataset):
        """The element of a dataset that has one."""
        return dataset.get_single_element()

    @staticmethod
    def unique():
        """A function for `Dataset.apply`: `Dataset.unique`."""
        return lambda dataset: dataset.unique()

    @staticmethod
    def take_while(predicate):
        """A function for `Dataset.apply`: `Dataset.take_while`."""
        return lambda dataset: dataset.take_while(predicate)

    @staticmethod
    def enumerate_dataset(start=0):
        """A function for `Dataset.apply`: `Dataset.enumerate`."""
        return lambda dataset: dataset.enumerate(start)


def install(module):
    """Puts the options into `tf.data`."""
    module.Options, module.ThreadingOptions, module.experimental = Options, ThreadingOptions, experimental
