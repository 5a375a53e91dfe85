from collections.abc import Sequence
from typing import Any

from .layer import Layer

class InputSpec:
    dtype: str | None
    shape: tuple[int | None, ...] | None
    ndim: int | None
    max_ndim: int | None
    min_ndim: int | None
    name: str | None
    optional: bool
    axes: dict[int, int | None]
    allow_last_axis_squeeze: bool
    def __init__(
        self, dtype: Any = None, shape: Sequence[int | None] | None = None, ndim: int | None = None, max_ndim: int | None = None,
        min_ndim: int | None = None, axes: dict[int, int | None] | None = None, allow_last_axis_squeeze: bool = False,
        name: str | None = None, optional: bool = False,
    ) -> None: ...
    def get_config(self) -> dict[str, Any]: ...
    @classmethod
    def from_config(cls, config: dict[str, Any]) -> InputSpec: ...
    def fault(self, x: Any) -> str | None: ...

class Wrapper(Layer):
    layer: Layer
    def __init__(self, layer: Layer, **options: Any) -> None: ...
    def build(self, input_shape: Any = None) -> None: ...
    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Any: ...

class Pipeline(Layer):
    def __init__(self, layers: Sequence[Any], name: str | None = None, **options: Any) -> None: ...
    @property
    def layers(self) -> list[Any]: ...
    def call(self, inputs: Any, training: bool = True, mask: Any = None) -> Any: ...

class ReversibleEmbedding(Layer):
    embeddings: Any
    def __init__(
        self, input_dim: int, output_dim: int, tie_weights: bool = True, embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None, embeddings_constraint: Any = None, mask_zero: bool = False, reverse_dtype: Any = None,
        logit_soft_cap: float | None = None, **options: Any,
    ) -> None: ...
    def build(self, input_shape: Any = None) -> None: ...
    def call(self, inputs: Any, reverse: bool = False) -> Any: ...

class AutoContrast(Layer):
    value_range: list[float]
    def __init__(self, value_range: Sequence[float] = (0, 255), **options: Any) -> None: ...
    def call(self, images: Any) -> Any: ...

OF_FILES: dict[str, type[Layer]]

def check_inputs(layer: Layer, specs: Any, inputs: Any) -> None: ...
