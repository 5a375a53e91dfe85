# Written by stubs.py from the tables of the package.
from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import DTypeLike
from ..tensor import Tensor
from .objects import Regularizer as Regularizer

_Axis = int | Sequence[int]

class L1(Regularizer):
    def __init__(self, l1: float = ...) -> None: ...
l1 = L1
class L2(Regularizer):
    def __init__(self, l2: float = ...) -> None: ...
l2 = L2
class L1L2(Regularizer):
    def __init__(self, l1: float = ..., l2: float = ...) -> None: ...
l1_l2 = L1L2
class OrthogonalRegularizer(Regularizer):
    def __init__(self, factor: Any = ..., mode: str = ...) -> None: ...
orthogonal_regularizer = OrthogonalRegularizer
def get(identifier: Any) -> Any: ...
def serialize(obj: Any) -> Any: ...
def deserialize(config: Any, custom_objects: dict[str, Any] | None = None) -> Any: ...
