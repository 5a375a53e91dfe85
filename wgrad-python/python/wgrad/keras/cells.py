"""Cells of recurrent layers, called step by step or run over sequences by `RNN`."""

import json

from .. import _wgrad
from ..tensor import convert_to_tensor
from .layer import Layer, _accepted
from .native import NativeLayer, Recurrent, _only
from .structure import _context, _leaves, _listed, _structure, _training
from .symbols import Symbol, _connected


def _flat(sizes):
    return [size for part in _listed(sizes) for size in (_flat(part) if isinstance(part, (list, tuple)) else [part])]


def _like(sizes, states):
    """Flat states in the lists of `sizes`."""
    return [_like(part, states) if isinstance(part, (list, tuple)) else next(states) for part in _listed(sizes)]


class Cell(NativeLayer):
    """One step of a recurrent layer: `output, states = cell(inputs, states)`."""

    _kind = "cell"
    # How many states of the size `units` the cell has.
    _count = 1

    def _make(self, config):
        return _wgrad.NativeCell(json.dumps({"class_name": self._class, "config": config}))

    @property
    def state_size(self):
        """The sizes of the states: a number if there is one state."""
        return self.output_size if self._count == 1 else [self.output_size] * self._count

    @property
    def output_size(self):
        if "_units" not in self.__dict__:
            self._units = self.units
        return self._units

    def get_initial_state(self, batch_size=None):
        """The states before the first step: zeros."""
        if batch_size is None:
            raise ValueError(f"{self._class}: get_initial_state needs a batch_size.")
        dtype = self.compute_dtype
        return [_wgrad.constant(0, dtype, [batch_size, size]) for size in _flat(self.state_size)]

    def __call__(self, inputs, states, training=None):
        if any(isinstance(leaf, Symbol) for leaf in _leaves((inputs, states))):
            return _connected(self, (inputs, states), {} if training is None else {"training": training})
        training = bool(_training() if training is None else training)
        result, after, losses = self._native.step(inputs, _leaves(states), training)
        if losses:
            self._added_losses = losses
            _context.has_losses = True
        self.built = True
        # As in Keras: a state that comes without a list goes without one.
        return result, _structure(states)[1](iter(after)) if isinstance(states, (list, tuple)) else after[0]

    def build(self, input_shape):
        """Makes the variables, for inputs of this shape."""
        size = input_shape[-1]
        self._native.step(_wgrad.constant(0, self.compute_dtype, [1, size]), _leaves(self.get_initial_state(1)), False)
        self.built = True


class LSTMCell(Cell):
    """Keras's `LSTMCell`: units, activation, recurrent_activation, use_bias."""

    _class, _parameters, _count = "LSTMCell", ("units", "activation", "recurrent_activation", "use_bias"), 2


class GRUCell(Cell):
    """Keras's `GRUCell`: units, activation, recurrent_activation, use_bias."""

    _class, _parameters = "GRUCell", ("units", "activation", "recurrent_activation", "use_bias")


class SimpleRNNCell(Cell):
    """Keras's `SimpleRNNCell`: units, activation, use_bias."""

    _class, _parameters = "SimpleRNNCell", ("units", "activation", "use_bias")


class _Caller:
    """Calls a cell of a program as Keras does. The native part calls it."""

    def __init__(self, cell):
        self.cell = cell

    def step(self, x, states, training):
        given = {"training": training} if "training" in _accepted(self.cell) else {}
        # Keras gives lists to cells whatever their state_size is.
        nested = isinstance(self.cell.state_size, (list, tuple))
        result, after = self.cell(x, _like(self.cell.state_size, iter(states)) if nested else list(states), **given)
        return result, _leaves(after)

    def initial_state(self, x):
        if hasattr(self.cell, "get_initial_state"):
            return _leaves(self.cell.get_initial_state(batch_size=x.shape[0]))
        return [_wgrad.constant(0, x._dtype, [x.shape[0], size]) for size in _flat(self.cell.state_size)]


def _native_cell(cell):
    """The native form of a cell, which layers share."""
    if isinstance(cell, Cell):
        return cell._native
    sizes = getattr(cell, "state_size", None)
    if not isinstance(cell, Layer) or sizes is None:
        raise TypeError(
            f"RNN: {cell!r} is no cell; use one of keras.layers, or a Layer with a state_size and a call(inputs, states) that returns the "
            "output and the new states."
        )
    if not all(isinstance(size, int) for size in _flat(sizes)):
        raise TypeError(f"RNN: state_size of {type(cell).__name__} is {sizes!r}; it must be whole numbers.")
    return _wgrad.NativeCell.of_python(cell, _Caller(cell), _flat(sizes))


class StackedRNNCells(Cell):
    """Cells of which each gets the output of the one before it."""

    _class, _parameters = "StackedRNNCells", ("cells",)

    def __init__(self, cells=(), **options):
        self._cells = [cell_of(cell) for cell in cells]
        super().__init__(**options)

    def _make(self, config):
        _only(self._class, config, {"dtype"})
        if not self._cells:
            raise ValueError("StackedRNNCells: there is no cell; give a list of cells.")
        return _wgrad.NativeCell.stacked([_native_cell(cell) for cell in self._cells])

    @property
    def cells(self):
        return list(self._cells)

    @property
    def state_size(self):
        """The sizes of the states of each cell."""
        return [cell.state_size for cell in self._cells]

    @property
    def output_size(self):
        return getattr(self._cells[-1], "output_size", None) or _flat(self._cells[-1].state_size)[0]

    def get_initial_state(self, batch_size=None):
        """The states of each cell before the first step."""
        return [cell.get_initial_state(batch_size=batch_size) for cell in self._cells]

    def get_config(self):
        """The options, with those of the cells."""
        from .serialization import serialize_keras_object

        return {"name": self.name, "trainable": self._trainable, "cells": [serialize_keras_object(cell) for cell in self._cells]}


def cell_of(value):
    """A cell, the config of one, or a list of cells that is stacked."""
    if isinstance(value, dict):
        from .serialization import deserialize_keras_object

        return deserialize_keras_object(value)
    return StackedRNNCells(value) if isinstance(value, (list, tuple)) else value


class RNN(Recurrent):
    """Runs a cell over sequences: one of Keras, a list of cells, or a layer of the program with a `state_size`."""

    _class, _parameters = "RNN", ("cell", "return_sequences", "return_state", "go_backwards", "stateful", "unroll", "zero_output_for_mask")

    def __init__(self, cell=None, return_sequences=False, return_state=False, go_backwards=False, stateful=False, unroll=False,
                 zero_output_for_mask=False, **options):
        self._cell = cell_of(cell)
        super().__init__(
            return_sequences=return_sequences, return_state=return_state, go_backwards=go_backwards, stateful=stateful, unroll=unroll,
            zero_output_for_mask=zero_output_for_mask, **options,
        )

    def _make(self, config):
        _only(self._class, config, {*self._parameters, "activity_regularizer", "dtype"})
        if self._cell is None:
            raise TypeError("RNN: there is no cell; give one, such as LSTMCell(4), or a list of cells.")
        return _native_cell(self._cell).layer(json.dumps({"class_name": "RNN", "config": config}))

    @property
    def cell(self):
        return self._cell

    def _inner(self):
        return [] if isinstance(self._cell, Cell) else [self._cell]

    @property
    def state_size(self):
        return self._cell.state_size

    def get_initial_state(self, batch_size):
        """The states before the first step, in a list."""
        if hasattr(self._cell, "get_initial_state"):
            return _listed(self._cell.get_initial_state(batch_size=batch_size))
        return [convert_to_tensor(_wgrad.constant(0, self.compute_dtype, [batch_size, size])) for size in _flat(self.state_size)]

    def _returned(self, results):
        results = super()._returned(results)
        sizes = self.state_size
        if self._returns_state and isinstance(sizes, (list, tuple)) and any(isinstance(size, (list, tuple)) for size in sizes):
            states = iter(results[1:])
            return [results[0], *(_like(size, states) for size in sizes)]
        return results

    def get_config(self):
        """The options, with those of the cell."""
        from .serialization import serialize_keras_object

        return super().get_config() | {"cell": serialize_keras_object(self._cell)}


# Where Keras exports them.
for _class in (Cell, LSTMCell, GRUCell, SimpleRNNCell, StackedRNNCells, RNN):
    _class.__module__ = "wgrad.keras.layers"
