from collections.abc import Sequence
from typing import Any

class OwnFunctions:
    given: dict[str, Any]
    initializers: dict[str, Any]
    penalties: dict[str, Any]
    def __init__(self, options: dict[str, Any]) -> None: ...
    def fill(self, listing: Sequence[Any]) -> None: ...
    def losses(self, listing: Sequence[Any], results: Sequence[Any]) -> list[Any]: ...
