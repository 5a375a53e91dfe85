from collections.abc import Callable
from typing import Any

from ..nest import (
    assert_same_structure as assert_same_structure,
    flatten as flatten,
    map_structure as map_structure,
    pack_sequence_as as pack_sequence_as,
)

def is_nested(structure: Any) -> bool: ...
def map_structure_up_to(shallow_structure: Any, func: Callable[..., Any], *structures: Any) -> Any: ...
def lists_to_tuples(structure: Any) -> Any: ...
