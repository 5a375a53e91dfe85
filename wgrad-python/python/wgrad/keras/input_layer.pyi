from typing import Any

from ..dtypes import DTypeLike
from .layer import Layer
from .symbols import Symbol

class InputLayer(Layer):
    def __new__(  # type: ignore[misc]
        cls, input_shape: Any = None, shape: Any = None, batch_size: int | None = None, dtype: DTypeLike | None = None,
        name: str | None = None, batch_shape: Any = None, sparse: bool | None = None, ragged: bool | None = None, optional: bool = False,
        **options: Any,
    ) -> Symbol: ...
    @property
    def batch_shape(self) -> tuple[int | None, ...]: ...
