# Written by stubs.py from the tables of the package.
from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import DTypeLike
from ..tensor import Tensor
from .objects import Constraint as Constraint

_Axis = int | Sequence[int]

class MaxNorm(Constraint):
    def __init__(self, max_value: Any = ..., axis: _Axis = ...) -> None: ...
max_norm = MaxNorm
class MinMaxNorm(Constraint):
    def __init__(self, min_value: Any = ..., max_value: Any = ..., rate: float = ..., axis: _Axis = ...) -> None: ...
min_max_norm = MinMaxNorm
class NonNeg(Constraint):
    def __init__(self) -> None: ...
non_neg = NonNeg
class UnitNorm(Constraint):
    def __init__(self, axis: _Axis = ...) -> None: ...
unit_norm = UnitNorm
def get(identifier: Any) -> Any: ...
def serialize(obj: Any) -> Any: ...
def deserialize(config: Any, custom_objects: dict[str, Any] | None = None) -> Any: ...
