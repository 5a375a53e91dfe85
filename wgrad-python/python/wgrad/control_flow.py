"""Conditions and loops on values of tensors, also in traced functions."""

from . import _wgrad
from .ops import FUNCTIONS
from .tape import _flat
from .tensor import convert_to_tensor


def cond(pred, true_fn=None, false_fn=None, name=None):
    """TensorFlow's `tf.cond`: the result of one of two functions, whose results have one structure."""
    builds = []

    def branch(f):
        def call(_):
            leaves, build = _flat(f())
            builds.append(build)
            return [convert_to_tensor(leaf) for leaf in leaves]

        return call

    results = _wgrad.cond(pred, branch(true_fn), branch(false_fn))
    return builds[-1](iter(results))


def while_loop(cond, body, loop_vars, name=None, **options):
    """TensorFlow's `tf.while_loop`: calls `body` with the variables while `cond` of them is true."""
    leaves, build = _flat(list(loop_vars))

    def test(variables):
        return [cond(*build(iter(variables)))]

    def turn(variables):
        made = body(*build(iter(variables)))
        made = list(made) if isinstance(made, (list, tuple)) else [made]
        return [convert_to_tensor(leaf) for leaf in _flat(made)[0]]

    return build(iter(_wgrad.while_loop(test, turn, leaves)))


class TensorArray:
    """A list of tensors that a program writes by index; the indices are Python's numbers."""

    def __init__(self, dtype, size=0, dynamic_size=False, name=None, **options):
        self.dtype, self._dynamic = dtype, dynamic_size
        self._values = [None] * int(size)

    def write(self, index, value):
        """The array with another value at `index`."""
        index = int(index)
        made = TensorArray(self.dtype, 0, self._dynamic)
        made._values = list(self._values)
        if index >= len(made._values):
            if not self._dynamic:
                raise IndexError(f"TensorArray.write: index {index} of an array of {len(made._values)}; use dynamic_size=True.")
            made._values += [None] * (index + 1 - len(made._values))
        made._values[index] = convert_to_tensor(value, self.dtype)
        return made

    def read(self, index):
        value = self._values[int(index)]
        if value is None:
            raise ValueError(f"TensorArray.read: nothing was written at index {int(index)}.")
        return value

    def size(self):
        return len(self._values)

    def stack(self):
        """All values as one tensor."""
        return FUNCTIONS["stack"]([self.read(at) for at in range(len(self._values))])

    def unstack(self, value):
        made = TensorArray(self.dtype, 0, self._dynamic)
        made._values = list(convert_to_tensor(value))
        return made
