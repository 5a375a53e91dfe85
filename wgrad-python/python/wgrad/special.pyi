# Written by stubs.py from the tables of the package.
from collections.abc import Sequence
from typing import Any

from .dtypes import DTypeLike
from .tensor import Tensor, TensorLike

_Axis = int | Sequence[int]
_Window = int | Sequence[int]

FUNCTIONS: tuple[Any, ...]

def igamma(a: Any, x: Any, name: str | None = None) -> Tensor: ...
def igammac(a: Any, x: Any, name: str | None = None) -> Tensor: ...
def betainc(a: Any, b: Any, x: Any, name: str | None = None) -> Tensor: ...
def install(math: Any) -> None: ...
