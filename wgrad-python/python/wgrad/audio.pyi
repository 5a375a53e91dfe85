# Written by stubs.py from the tables of the package.
from collections.abc import Sequence
from typing import Any

from .dtypes import DTypeLike
from .tensor import Tensor, TensorLike

_Axis = int | Sequence[int]
_Window = int | Sequence[int]

def decode_wav(contents: Any, desired_channels: Any = -1, desired_samples: Any = -1, name: str | None = None) -> tuple[Tensor, Tensor]: ...
def encode_wav(audio: Any, sample_rate: Any, name: str | None = None) -> Any: ...
