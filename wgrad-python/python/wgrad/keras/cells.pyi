from collections.abc import Callable, Sequence
from typing import Any

from ..tensor import Tensor
from .layer import Layer
from .native import NativeLayer, Recurrent

_Activation = str | Callable[..., Any] | None

class Cell(NativeLayer):
    @property
    def state_size(self) -> Any: ...
    @property
    def output_size(self) -> int: ...
    def get_initial_state(self, batch_size: int | None = None) -> list[Any]: ...
    # Symbols of a model in place of tensors, too.
    def __call__(self, inputs: Any, states: Any, training: bool | None = None) -> Any: ...  # type: ignore[override]

class LSTMCell(Cell):
    def __init__(
        self, units: int, activation: _Activation = ..., recurrent_activation: _Activation = ..., use_bias: bool = ..., *,
        name: str | None = None, trainable: bool = True, input_shape: Any = None, **options: Any,
    ) -> None: ...

class GRUCell(Cell):
    def __init__(
        self, units: int, activation: _Activation = ..., recurrent_activation: _Activation = ..., use_bias: bool = ..., *,
        name: str | None = None, trainable: bool = True, input_shape: Any = None, **options: Any,
    ) -> None: ...

class SimpleRNNCell(Cell):
    def __init__(
        self, units: int, activation: _Activation = ..., use_bias: bool = ..., *, name: str | None = None, trainable: bool = True,
        input_shape: Any = None, **options: Any,
    ) -> None: ...

class StackedRNNCells(Cell):
    def __init__(self, cells: Sequence[Any] = (), **options: Any) -> None: ...
    @property
    def cells(self) -> list[Layer]: ...

def cell_of(value: Any) -> Any: ...

class RNN(Recurrent):
    def __init__(
        self, cell: Any = None, return_sequences: bool = False, return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, zero_output_for_mask: bool = False, **options: Any,
    ) -> None: ...
    @property
    def cell(self) -> Any: ...
    @property
    def state_size(self) -> Any: ...
    def get_initial_state(self, batch_size: int) -> list[Tensor]: ...
