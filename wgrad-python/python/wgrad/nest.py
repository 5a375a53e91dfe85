"""TensorFlow's `tf.nest`: functions of the leaves of nested lists, tuples, named tuples and dicts."""


def _is_nested(structure):
    return isinstance(structure, (list, tuple, dict))


is_nested = _is_nested


def _parts(structure):
    """The parts of a level; those of a dict in the order of their keys, as in TensorFlow."""
    return [structure[key] for key in sorted(structure)] if isinstance(structure, dict) else list(structure)


def _like(structure, parts):
    """A level of the same kind with other parts."""
    if isinstance(structure, dict):
        made = dict(zip(sorted(structure), parts))
        return type(structure)((key, made[key]) for key in structure)
    return type(structure)(*parts) if hasattr(structure, "_fields") else type(structure)(parts)


def flatten(structure, expand_composites=False):
    """The leaves in order."""
    if not _is_nested(structure):
        return [structure]
    return [leaf for part in _parts(structure) for leaf in flatten(part)]


def pack_sequence_as(structure, flat_sequence, expand_composites=False):
    """The structure with other leaves."""
    leaves = list(flat_sequence)
    count = len(flatten(structure))
    if count != len(leaves):
        raise ValueError(f"pack_sequence_as: the structure has {count} leaves, and {len(leaves)} are given.")
    leaves = iter(leaves)

    def build(part):
        return _like(part, [build(inner) for inner in _parts(part)]) if _is_nested(part) else next(leaves)

    return build(structure)


def assert_same_structure(nest1, nest2, check_types=True, expand_composites=False):
    """Raises an error unless both have the same nesting: `TypeError` for other kinds of sequences, otherwise `ValueError`."""
    if _is_nested(nest1) != _is_nested(nest2):
        raise ValueError(f"assert_same_structure: one is a leaf where the other is nested: {nest1!r} and {nest2!r}.")
    if not _is_nested(nest1):
        return
    if check_types and type(nest1) is not type(nest2):
        raise TypeError(f"assert_same_structure: the kinds differ: {type(nest1).__name__} and {type(nest2).__name__}.")
    keys = [sorted(nest) if isinstance(nest, dict) else len(nest) for nest in (nest1, nest2)]
    if keys[0] != keys[1]:
        raise ValueError(f"assert_same_structure: the keys or lengths differ: {keys[0]} and {keys[1]}.")
    for one, other in zip(_parts(nest1), _parts(nest2)):
        assert_same_structure(one, other, check_types)


def map_structure(func, *structure, check_types=True, expand_composites=False):
    """The structure of the results of `func` for each leaf, or for the leaves of several structures at a place."""
    if not structure:
        raise ValueError("map_structure: give a structure.")
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types)
    return pack_sequence_as(structure[0], [func(*leaves) for leaves in zip(*map(flatten, structure))])
