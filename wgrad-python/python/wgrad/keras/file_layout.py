"""Where Keras's files have the layers of a model whose class a program writes.

Keras walks the attributes of a model by name, and `layers`, the list of all its layers, is one of them. So a layer whose attribute is
behind `layers` in the alphabet is in that list: `self.out` is `layers/dense_3` if it is the fourth `Dense`.
"""

import contextlib
import re

from .layer import Layer
from .structure import _context


@contextlib.contextmanager
def in_files(are_files):
    """A `with` block in which models name their parts as files do, if `are_files`."""
    before, _context.in_files = getattr(_context, "in_files", False), are_files
    try:
        yield
    finally:
        _context.in_files = before


def _kind(name):
    """The name of a class in files: `conv2d_transpose` of `Conv2DTranspose`."""
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)).lower()


class _Listed:
    """The layers that are in the list, by their names there."""

    def __init__(self):
        self.parts = []

    def _wgrad_parts(self):
        return self.parts


def as_in_files(model, parts):
    """The parts of a model, as they are named where this is called."""
    if not getattr(_context, "in_files", False):
        return parts
    # The object must live as long as the walk.
    listed = model.__dict__.setdefault("_wgrad_listed", _Listed())
    kept, counts, listed.parts = [], {}, []
    for name, part in parts:
        if isinstance(part, Layer):
            kind = _kind(getattr(part, "_class", None) or type(part).__name__)
            number = counts[kind] = counts.get(kind, -1) + 1
            if name.partition("/")[0] > "layers":
                listed.parts.append((f"{kind}_{number}" if number else kind, part))
                continue
        kept.append((name, part))
    return [*kept, ("layers", listed)] if listed.parts else kept
