from typing import Any

from ..tensor import TensorLike
from .layer import Layer

class NativeLayer(Layer):
    def __init__(self, *arguments: Any, name: str | None = None, trainable: bool = True, input_shape: Any = None, **options: Any) -> None: ...
    # Weights by their names, and options.
    def __getattr__(self, name: str) -> Any: ...
    def __call__(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any: ...

class Recurrent(NativeLayer):
    def __init__(self, *arguments: Any, return_state: bool = False, **options: Any) -> None: ...
    def __call__(self, sequences: Any, initial_state: Any = None, mask: Any = None, training: bool | None = None) -> Any: ...  # type: ignore[override]

class Attending(NativeLayer): ...

class HeadedAttention(Attending):
    def __call__(  # type: ignore[override]
        self, query: Any, value: Any = None, key: Any = None, query_mask: TensorLike | None = None, value_mask: TensorLike | None = None,
        key_mask: TensorLike | None = None, attention_mask: TensorLike | None = None, return_attention_scores: bool = False,
        training: bool | None = None, use_causal_mask: bool = False,
    ) -> Any: ...

class ListAttention(Attending):
    def __call__(  # type: ignore[override]
        self, inputs: Any, mask: Any = None, return_attention_scores: bool = False, training: bool | None = None,
        use_causal_mask: bool = False,
    ) -> Any: ...

class AdaptedNormalization(NativeLayer):
    def __init__(self, *arguments: Any, **options: Any) -> None: ...
    def adapt(self, data: Any, batch_size: int | None = None, steps: int | None = None) -> None: ...
