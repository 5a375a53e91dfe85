"""Nested lists, tuples and dicts: `keras.tree`."""

from ..nest import _is_nested, assert_same_structure, flatten, map_structure, pack_sequence_as  # noqa: F401


def is_nested(structure):
    """Whether this is a list, a tuple or a dict."""
    return _is_nested(structure)


def map_structure_up_to(shallow_structure, func, *structures):
    """Calls a function with the parts of structures that stand where the first structure has its leaves."""
    if isinstance(shallow_structure, dict):
        return {key: map_structure_up_to(part, func, *(other[key] for other in structures)) for key, part in shallow_structure.items()}
    if isinstance(shallow_structure, (list, tuple)):
        made = [map_structure_up_to(part, func, *(other[at] for other in structures)) for at, part in enumerate(shallow_structure)]
        return type(shallow_structure)(*made) if hasattr(shallow_structure, "_fields") else type(shallow_structure)(made)
    return func(*structures)


def lists_to_tuples(structure):
    """The same with tuples in place of lists."""
    if isinstance(structure, (list, tuple)):
        made = [lists_to_tuples(part) for part in structure]
        return type(structure)(*made) if hasattr(structure, "_fields") else tuple(made)
    return {key: lists_to_tuples(part) for key, part in structure.items()} if isinstance(structure, dict) else structure
