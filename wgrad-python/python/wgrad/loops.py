"""Loops over the rows of tensors: `map_fn`, `vectorized_map`, `foldl`, `foldr`, `scan`.

A loop over many rows traces its body, as a function does, and runs what it recorded. A body that needs values, or that records
something else when it is traced again, runs for each row."""

import re

from . import _wgrad
from .ops import FUNCTIONS, zeros
from .tape import _flat, _Structure
from .tensor import Tensor, convert_to_tensor

# Fewer rows than this are not worth a trace.
_FEW = 16
# How many rows a trace of a fold computes.
_CHUNK = 64
# Lines of a trace that only compute: arguments, captured values, reads of variables, and ops.
_COMPUTES = re.compile(r"%\d+ = (argument |captured|read variable |stop_gradient|%|[A-Z])|return ")
_DRAWS = re.compile(r"philox|random|dropout|shuffle|categorical|gamma|poisson|binomial", re.IGNORECASE)


class _Untraceable(Exception):
    """The body cannot be repeated from a trace."""


def _rows(call, elems):
    """The number of rows, the tensors of `elems`, and a function that builds its structure of others."""
    leaves, build = _flat(elems)
    leaves = [convert_to_tensor(leaf) for leaf in leaves]
    counts = {leaf._shape[0] if leaf._shape else None for leaf in leaves}
    if len(counts) != 1 or None in counts:
        raise ValueError(f"{call}: the elements have the shapes {[list(leaf._shape) for leaf in leaves]}; their first axes must be equal.")
    return counts.pop(), leaves, build


def _each(leaves, build):
    """The rows, one after the other."""
    columns = [FUNCTIONS["unstack"](leaf) for leaf in leaves]
    return [build(iter(row)) for row in zip(*columns)]


def _stacked(call, results):
    if not results:
        raise ValueError(f"{call}: there are no elements.")
    flat = [_flat(result) for result in results]
    build = flat[0][1]
    return build(iter([FUNCTIONS["stack"](list(column)) for column in zip(*(leaves for leaves, _ in flat))]))


class _Traced:
    """A function of lists of tensors, traced for tensors of these shapes. Two traces that differ show that it needs Python's values."""

    def __init__(self, body, examples):
        self._function, self.text = self._trace(body, examples)
        if self._trace(body, examples)[1] != self.text:
            raise _Untraceable

    @staticmethod
    def _trace(body, examples):
        function = _wgrad.NativeFunction(lambda _, tensors: (body(tensors), None))
        return function, function.trace(None, examples, "")

    def __call__(self, tensors):
        return self._function.call(None, tensors, "")[0]


def _tensors(result):
    """The tensors of what a body returned; other values cannot be traced."""
    structure = _Structure(result)
    if not all(is_tensor for is_tensor, _ in structure._plan):
        raise _Untraceable
    return structure.tensors


def _only_computes(text):
    lines = [line.strip() for line in text.splitlines()]
    return all(_COMPUTES.match(line) for line in lines) and not _DRAWS.search(text)


def _mapped(fn, leaves, build, count):
    """A function that applies `fn` to all rows by traces."""
    shapes = []

    def body(row):
        result = fn(build(iter(row)))
        tensors = _tensors(result)
        shapes.append(_flat(result)[1])
        return tensors

    first = [leaf[0] for leaf in leaves]
    if _only_computes(_Traced(body, first).text):
        results = _wgrad.vectorized_map(body, leaves)
        return lambda: shapes[-1](iter(results))
    # Random numbers differ from row to row, and assignments follow one another.
    run = _chunks(lambda state, row: (state, body(row)), [], leaves, count, False)
    return lambda: shapes[-1](iter([FUNCTIONS["concat"](column, 0) for column in run()[1]]))


def _chunks(step, state, leaves, count, reverse):
    """A function that folds all rows by traces of many rows: the last state, and for each result of a step a list of stacked
    results."""
    # At most two sizes are traced.
    sizes = [count % _CHUNK] if count % _CHUNK else []
    sizes += [_CHUNK] * (count // _CHUNK)
    states = len(state)

    def rows_of(begin, size):
        at = count - begin - size if reverse else begin
        return [leaf[at : at + size] for leaf in leaves]

    def body(tensors):
        state, rows = list(tensors[:states]), [FUNCTIONS["unstack"](x) for x in tensors[states:]]
        results = []
        for row in reversed(list(zip(*rows))) if reverse else zip(*rows):
            state, made = step(state, list(row))
            results.append(made)
        if reverse:
            results.reverse()
        return [*state, *(FUNCTIONS["stack"](list(column)) for column in zip(*results))]

    traced = {size: _Traced(body, [*state, *rows_of(0, size)]) for size in set(sizes)}

    def run():
        now, columns, begin = state, None, 0
        for size in sizes:
            made = traced[size]([*now, *rows_of(begin, size)])
            begin += size
            now, made = made[:states], made[states:]
            columns = [[] for _ in made] if columns is None else columns
            for column, part in zip(columns, made):
                column.append(part)
        if reverse:
            for column in columns:
                column.reverse()
        return now, columns

    return run


def _traced(trace):
    """What `trace` returns, or `None` if the body cannot be traced: then it runs for each row, which also shows its own errors.
    Nothing has run by then, so no assignment happens twice."""
    try:
        return trace()
    except Exception:
        return None


def map_fn(fn, elems, dtype=None, parallel_iterations=None, fn_output_signature=None, name=None, **options):
    """TensorFlow's `tf.map_fn`: the results of `fn` for each row, stacked."""
    count, leaves, build = _rows("map_fn", elems)
    if count == 0:
        # The results of a row of zeros have the shapes and dtypes.
        results, build_result = _flat(fn(build(iter([zeros(leaf._shape[1:], leaf._dtype) for leaf in leaves]))))
        return build_result(iter([zeros([0, *x._shape], x._dtype) for x in map(convert_to_tensor, results)]))
    run = _traced(lambda: _mapped(fn, leaves, build, count)) if count >= _FEW else None
    if run is not None:
        return run()
    return _stacked("map_fn", [fn(row) for row in _each(leaves, build)])


def vectorized_map(fn, elems, fallback_to_while_loop=True, warn=True):
    """TensorFlow's `tf.vectorized_map`: `fn` of all rows together."""
    return map_fn(fn, elems)


def foldl(fn, elems, initializer=None, name=None, **options):
    """TensorFlow's `tf.foldl`: `fn` of the result so far and each row, from the first to the last."""
    return _folded("foldl", fn, elems, initializer, False, False)


def foldr(fn, elems, initializer=None, name=None, **options):
    """TensorFlow's `tf.foldr`: `fn` of the result so far and each row, from the last to the first."""
    return _folded("foldr", fn, elems, initializer, True, False)


def scan(fn, elems, initializer=None, reverse=False, name=None, **options):
    """TensorFlow's `tf.scan`: the results of `fn` of the last one and each row, stacked."""
    return _folded("scan", fn, elems, initializer, reverse, True)


def _folded(call, fn, elems, initializer, reverse, keeps):
    count, leaves, build = _rows(call, elems)
    first = []
    if initializer is None:
        if not count:
            raise ValueError(f"{call}: there are no elements; give an initializer.")
        initializer = build(iter([leaf[count - 1 if reverse else 0] for leaf in leaves]))
        leaves = [leaf[: count - 1] if reverse else leaf[1:] for leaf in leaves] if count > 1 else leaves
        count, first = count - 1, [initializer]
    run = _traced(lambda: _folding(fn, leaves, build, initializer, count, reverse, keeps, first)) if count >= _FEW else None
    if run is not None:
        return run()
    state, results = initializer, list(first)
    rows = _each(leaves, build) if count else []
    for row in reversed(rows) if reverse else rows:
        state = fn(state, row)
        results.append(state)
    if not keeps:
        return state
    if reverse:
        results.reverse()
    return _stacked(call, results)


def _folding(fn, leaves, build, initializer, count, reverse, keeps, first):
    start, rebuild = _flat(initializer)
    start = [convert_to_tensor(leaf) for leaf in start]

    def step(state, row):
        result = fn(rebuild(iter(state)), build(iter(row)))
        tensors = _tensors(result)
        if [(x._shape, x._dtype) for x in tensors] != [(x._shape, x._dtype) for x in state]:
            # The state changes its shape or dtype, which a trace of tensors cannot follow.
            raise _Untraceable
        return tensors, tensors if keeps else []

    run = _chunks(step, start, leaves, count, reverse)

    def fold():
        state, columns = run()
        if not keeps:
            return rebuild(iter(state))
        if first:
            columns = [[*column, x[None]] if reverse else [x[None], *column] for column, x in zip(columns, start)]
        return rebuild(iter([FUNCTIONS["concat"](column, 0) for column in columns]))

    return fold
