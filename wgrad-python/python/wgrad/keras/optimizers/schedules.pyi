# Written by stubs.py from the tables of the package.
from collections.abc import Callable, Sequence
from typing import Any

from ...dtypes import DTypeLike
from ...tensor import Tensor
from ..objects import Schedule, Schedule as LearningRateSchedule

_Axis = int | Sequence[int]

class ExponentialDecay(Schedule):
    def __init__(self, initial_learning_rate: Any = ..., decay_steps: int = ..., decay_rate: float = ..., staircase: bool = ...) -> None: ...
class PiecewiseConstantDecay(Schedule):
    def __init__(self, boundaries: Any = ..., values: Any = ...) -> None: ...
class PolynomialDecay(Schedule):
    def __init__(self, initial_learning_rate: Any = ..., decay_steps: int = ..., end_learning_rate: float = ..., power: float = ..., cycle: bool = ...) -> None: ...
class InverseTimeDecay(Schedule):
    def __init__(self, initial_learning_rate: Any = ..., decay_steps: int = ..., decay_rate: float = ..., staircase: bool = ...) -> None: ...
class CosineDecay(Schedule):
    def __init__(self, initial_learning_rate: Any = ..., decay_steps: int = ..., alpha: float = ..., warmup_target: Any = ..., warmup_steps: int = ...) -> None: ...
class CosineDecayRestarts(Schedule):
    def __init__(self, initial_learning_rate: Any = ..., first_decay_steps: int = ..., t_mul: float = ..., m_mul: float = ..., alpha: float = ...) -> None: ...
