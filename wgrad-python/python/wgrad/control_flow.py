"""Conditions and loops on values of tensors, and functions of the host, also in traced functions."""

from . import _wgrad
from .dtypes import as_name
from .errors import FailedPreconditionError, InvalidArgumentError
from .ops import FUNCTIONS
from .tape import _TRACES, TensorSpec, _flat
from .tensor import Tensor, Variable, convert_to_tensor


def waits(value):
    """Whether a value is a tensor whose value is not known during a trace."""
    if isinstance(value, Variable):
        value = value.read_value()
    if not isinstance(value, Tensor):
        return False
    try:
        value.numpy()
    except FailedPreconditionError:
        return True
    return False


def layout(structure):
    """What is around the leaves of a structure, which are points: `(., [., .])`."""
    if isinstance(structure, (list, tuple)):
        parts = ", ".join(map(layout, structure))
        if isinstance(structure, list):
            return f"[{parts}]"
        return f"{type(structure).__name__ if hasattr(structure, '_fields') else ''}({parts})"
    if isinstance(structure, dict):
        return "{" + ", ".join(sorted(f"{key!r}: {layout(part)}" for key, part in structure.items())) + "}"
    if hasattr(type(structure), "_wgrad_flat"):
        return type(structure).__name__
    return "None" if structure is None else "."


def cond(pred, true_fn=None, false_fn=None, name=None):
    """TensorFlow's `tf.cond`: the result of one of two functions, whose results have one structure."""
    made = []

    def branch(f):
        def call(_):
            result = f()
            leaves, build = _flat(result)
            made.append((layout(result), [leaf is None for leaf in leaves], build))
            if made[0][0] != made[-1][0]:
                # A trace calls both, the one for `False` first.
                raise TypeError(
                    f"cond: true_fn and false_fn must return the same structure; they return {made[-1][0]} and {made[0][0]}."
                )
            return [convert_to_tensor(leaf) for leaf in leaves if leaf is not None]

        return call

    results = iter(_wgrad.cond(pred, branch(true_fn), branch(false_fn)))
    _, is_none, build = made[-1]
    return build(iter([None if none else next(results) for none in is_none]))


class _Seen(Exception):
    """Ends what `probe` calls."""


def probe(function, tensors=()):
    """What a function of a list of tensors returns where these have no values. Nothing of it is recorded."""
    found = []

    def run(symbols):
        found.append(function(symbols))
        raise _Seen

    try:
        _wgrad.while_loop(lambda _: [convert_to_tensor(True)], run, list(tensors))
    except _Seen:
        pass
    return found[0]


def open_arrays(structure):
    """The arrays in a structure that do not know the shape of their elements."""
    if isinstance(structure, (list, tuple)):
        return [array for part in structure for array in open_arrays(part)]
    if isinstance(structure, dict):
        return open_arrays(list(structure.values()))
    return [structure] if hasattr(type(structure), "_wgrad_flat") and not structure._knows_shape() else []


def while_loop(cond, body, loop_vars, shape_invariants=None, parallel_iterations=10, back_prop=True, swap_memory=False,
               maximum_iterations=None, name=None):
    """TensorFlow's `tf.while_loop`: calls `body` with the variables while `cond` of them is true, `maximum_iterations` times at most."""
    if maximum_iterations is not None:
        most = convert_to_tensor(maximum_iterations)

        def go_on(passes, variables):
            return (passes < most) & cond(*variables)

        def one_more(passes, variables):
            made = body(*variables)
            return passes + 1, made if isinstance(made, (list, tuple)) else [made]

        return while_loop(go_on, one_more, (convert_to_tensor(0)._cast(most._dtype), loop_vars))[1]

    def listed(made):
        return list(made) if isinstance(made, (list, tuple)) else [made]

    if open_arrays(loop_vars):
        goes_on = cond(*loop_vars)
        if not waits(goes_on):
            if not goes_on:
                return loop_vars
            made = listed(body(*loop_vars))
            return while_loop(cond, body, type(loop_vars)(made) if type(loop_vars) in (list, tuple) else made)
        # What the body writes shows the shape.
        numbers = [at for at, value in enumerate(loop_vars) if not open_arrays(value)]
        leaves, build = _flat([loop_vars[at] for at in numbers])

        def once(symbols):
            given = dict(zip(numbers, build(iter(symbols))))
            return body(*(given.get(at, value) for at, value in enumerate(loop_vars)))

        probe(once, leaves)
    leaves, build = _flat(loop_vars)

    def test(variables):
        return [cond(*build(iter(variables)))]

    def once_more(variables):
        return [convert_to_tensor(leaf) for leaf in _flat(listed(body(*build(iter(variables)))))[0]]

    return build(iter(_wgrad.while_loop(test, once_more, leaves)))


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


def host_function(func, inp, Tout):
    """TensorFlow's `tf.py_function`. In a traced function, each run calls `func`, so `Tout` must say the shapes of what it returns."""
    inputs = [convert_to_tensor(x) for x in inp]
    several = isinstance(Tout, (list, tuple))
    specs = list(Tout) if several else [Tout]

    def results_of(*tensors):
        made = func(*tensors)
        if several and not specs and made is None:
            return []
        made = list(made) if several and isinstance(made, (list, tuple)) else [made]
        if len(made) != len(specs):
            raise InvalidArgumentError(f"py_function: the function returned {len(made)} values, and Tout has {len(specs)}: {Tout!r}.")
        results = []
        for at, (value, spec) in enumerate(zip(made, specs)):
            value = convert_to_tensor(value)
            if isinstance(spec, TensorSpec):
                sizes = list(spec.shape)
                if len(sizes) != len(value._shape) or any(size not in (None, real) for size, real in zip(sizes, value._shape)):
                    raise InvalidArgumentError(
                        f"py_function: result {at} of the function has the shape {list(value._shape)}, and Tout says {sizes}."
                    )
            dtype = spec.dtype if isinstance(spec, TensorSpec) else spec
            results.append(value if dtype is None else value._cast(as_name(dtype)))
        return results

    if not (getattr(_TRACES, "depth", 0) or any(map(waits, inputs))):
        results = results_of(*inputs)
        return results if several else results[0]
    for at, spec in enumerate(specs):
        if not isinstance(spec, TensorSpec) or None in list(spec.shape):
            raise InvalidArgumentError(
                f"py_function: in a traced function, each run calls the function, so the shapes of its results must be known "
                f"before. Result {at} is {spec!r}; give Tout=tf.TensorSpec(shape, dtype), or a list of them, with all sizes."
            )
    kinds = [(list(spec.shape), convert_to_tensor(0, spec.dtype)._dtype) for spec in specs]
    results = _wgrad.host_call(lambda tensors: results_of(*tensors), inputs, kinds)
    return results if several else results[0]
