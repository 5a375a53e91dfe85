# Written by stubs.py from the tables of the package.
from collections.abc import Sequence
from typing import Any

from .dtypes import DTypeLike
from .tensor import Tensor, TensorLike

_Axis = int | Sequence[int]
_Window = int | Sequence[int]

def diag(diagonal: Any, name: str = 'diag', k: int = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0, align: Any = 'RIGHT_LEFT') -> Tensor: ...
def diag_part(input: Any, name: str = 'diag_part', k: int = 0, padding_value: Any = 0, align: Any = 'RIGHT_LEFT') -> Tensor: ...
def set_diag(input: Any, diagonal: Any, name: str = 'set_diag', k: int = 0, align: Any = 'RIGHT_LEFT') -> Tensor: ...
def install(linalg: Any) -> None: ...
