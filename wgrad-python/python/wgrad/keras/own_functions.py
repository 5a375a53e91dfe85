"""Initializers and regularizers of a program, and constants that are arrays, in layers of wgrad.

The native part knows Keras's own ones by their configs. A layer with others begins with zeros, which are replaced as soon as it has its
variables, and adds penalties to its losses in each call.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .objects import Constant, Described, Initializer, initial_value, penalty

# The variable of an option, where it is more than the option's name.
_VARIABLES = {"depthwise": "depthwise_kernel", "pointwise": "pointwise_kernel", "recurrent": "recurrent_kernel"}


def _is_own(value):
    """Whether the native part does not know an initializer or a regularizer."""
    if isinstance(value, Constant):
        return np.ndim(value._options.get("value", 0.0)) > 0
    if isinstance(value, Described):
        return value._class is None
    return callable(value) and not isinstance(value, type)


class OwnFunctions:
    """The functions of a layer that its native part does not know."""

    def __init__(self, options):
        """Takes them out of a layer's options."""
        self.given, self.initializers, self.penalties = {}, {}, {}
        for key in [key for key in options if key.endswith(("_initializer", "_regularizer"))]:
            value = options[key]() if isinstance(options[key], type) and issubclass(options[key], Described) else options[key]
            if not _is_own(value):
                continue
            name, _, kind = key.rpartition("_")
            place = _VARIABLES.get(name, name)
            if kind == "initializer":
                self.initializers[place], options[key] = value, "zeros"
            else:
                self.penalties[place] = penalty(value)
                del options[key]
            self.given[key] = value

    def fill(self, listing):
        """Gives variables their first values, once. The call may be part of a trace, which belongs to its thread: another one assigns at
        once."""
        if not self.initializers or not listing:
            return
        with ThreadPoolExecutor(1) as threads:
            threads.submit(self._fill, listing).result()

    def _fill(self, listing):
        waiting = self.initializers
        found = set()
        for path, variable, _ in listing:
            name = path.rpartition("/")[2]
            if name in waiting:
                variable.assign(initial_value(waiting[name], variable._shape, variable._dtype))
                found.add(name)
        missing = sorted(set(waiting) - found)
        if missing:
            raise ValueError(f"{missing[0]}_initializer: the layer has no variable '{missing[0]}'; it has {', '.join(path for path, *_ in listing)}.")
        self.initializers = {}

    def losses(self, listing, results):
        """The penalties of a call."""
        made = []
        for name, function in self.penalties.items():
            if name == "activity":
                made.extend(function(result) * (1.0 / max(result._shape[0], 1)) for result in results)
                continue
            variables = [variable for path, variable, _ in listing if path.rpartition("/")[2] == name]
            if not variables:
                raise ValueError(f"{name}_regularizer: the layer has no variable '{name}'; it has {', '.join(path for path, *_ in listing)}.")
            made.extend(function(variable.read_value()) for variable in variables)
        return made
