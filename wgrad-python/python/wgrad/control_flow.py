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


def while_loop(cond, body, loop_vars, shape_invariants=None, parallel_iterations=10, back_prop=True, swap_memory=False,
               maximum_iterations=None, name=None):
    """TensorFlow's `tf.while_loop`: calls `body` with the variables while `cond` of them is true, `maximum_iterations` times at most."""
    if maximum_iterations is not None:
        most = convert_to_tensor(maximum_iterations)

        def go_on(turns, variables):
            return (turns < most) & cond(*variables)

        def one_more(turns, variables):
            made = body(*variables)
            return turns + 1, made if isinstance(made, (list, tuple)) else [made]

        return while_loop(go_on, one_more, (convert_to_tensor(0)._cast(most._dtype), loop_vars))[1]
    leaves, build = _flat(loop_vars)

    def test(variables):
        return [cond(*build(iter(variables)))]

    def turn(variables):
        made = body(*build(iter(variables)))
        made = list(made) if isinstance(made, (list, tuple)) else [made]
        return [convert_to_tensor(leaf) for leaf in _flat(made)[0]]

    return build(iter(_wgrad.while_loop(test, turn, leaves)))


def case(pred_fn_pairs, default=None, exclusive=False, name=None):
    """TensorFlow's `tf.case`: the result of the first function whose predicate is true."""
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    if not pairs:
        raise ValueError("case: there are no pairs of predicates and functions.")
    (predicate, function), rest = pairs[0], pairs[1:]
    if not rest and default is None:
        # TensorFlow's last function runs if no predicate is true.
        return function()
    return cond(predicate, function, (lambda: case(rest, default)) if rest else default)


def switch_case(branch_index, branch_fns, default=None, name=None):
    """TensorFlow's `tf.switch_case`: the result of the function with this index; of the default, or of the last one, for others."""
    pairs = list(branch_fns.items() if isinstance(branch_fns, dict) else enumerate(branch_fns))
    pairs = [pair if isinstance(pair, tuple) else (at, pair) for at, pair in enumerate(pairs)]
    if not pairs:
        raise ValueError("switch_case: there are no functions.")
    index = convert_to_tensor(branch_index)
    if default is None:
        default = max(pairs)[1]
    return case([(FUNCTIONS["math.equal"](index, at), function) for at, function in pairs], default)


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
