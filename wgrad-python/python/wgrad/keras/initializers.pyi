# Written by stubs.py from the tables of the package.
from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import DTypeLike
from ..tensor import Tensor
from .objects import Initializer as Initializer, SeedGenerator as SeedGenerator

_Axis = int | Sequence[int]

class Zeros(Initializer):
    def __init__(self, **options: Any) -> None: ...
zeros = Zeros
class Ones(Initializer):
    def __init__(self, **options: Any) -> None: ...
ones = Ones
class Constant(Initializer):
    def __init__(self, value: Any = ..., **options: Any) -> None: ...
constant = Constant
class RandomNormal(Initializer):
    def __init__(self, mean: Any = ..., stddev: float = ..., seed: int | SeedGenerator = ..., **options: Any) -> None: ...
random_normal = RandomNormal
class RandomUniform(Initializer):
    def __init__(self, minval: Any = ..., maxval: Any = ..., seed: int | SeedGenerator = ..., **options: Any) -> None: ...
random_uniform = RandomUniform
class TruncatedNormal(Initializer):
    def __init__(self, mean: Any = ..., stddev: float = ..., seed: int | SeedGenerator = ..., **options: Any) -> None: ...
truncated_normal = TruncatedNormal
class VarianceScaling(Initializer):
    def __init__(self, scale: Any = ..., mode: str = ..., distribution: Any = ..., seed: int | SeedGenerator = ..., **options: Any) -> None: ...
variance_scaling = VarianceScaling
class GlorotNormal(Initializer):
    def __init__(self, seed: int | SeedGenerator = ..., **options: Any) -> None: ...
glorot_normal = GlorotNormal
class GlorotUniform(Initializer):
    def __init__(self, seed: int | SeedGenerator = ..., **options: Any) -> None: ...
glorot_uniform = GlorotUniform
class HeNormal(Initializer):
    def __init__(self, seed: int | SeedGenerator = ..., **options: Any) -> None: ...
he_normal = HeNormal
class HeUniform(Initializer):
    def __init__(self, seed: int | SeedGenerator = ..., **options: Any) -> None: ...
he_uniform = HeUniform
class LecunNormal(Initializer):
    def __init__(self, seed: int | SeedGenerator = ..., **options: Any) -> None: ...
lecun_normal = LecunNormal
class LecunUniform(Initializer):
    def __init__(self, seed: int | SeedGenerator = ..., **options: Any) -> None: ...
lecun_uniform = LecunUniform
class Orthogonal(Initializer):
    def __init__(self, gain: float = ..., seed: int | SeedGenerator = ..., **options: Any) -> None: ...
OrthogonalInitializer = Orthogonal
orthogonal = Orthogonal
class Identity(Initializer):
    def __init__(self, gain: float = ..., **options: Any) -> None: ...
IdentityInitializer = Identity
identity = Identity
def get(identifier: Any) -> Any: ...
def serialize(obj: Any) -> Any: ...
def deserialize(config: Any, custom_objects: dict[str, Any] | None = None) -> Any: ...
