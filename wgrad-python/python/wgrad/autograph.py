"""AutoGraph: Python's `if`, `while` and `for` on values of tensors in traced functions.

`tf.function` converts a function only if its trace fails because Python needs the value of a tensor. The statements then become
calls of this module, which decide at each call: `cond` and `while_loop` for tensors without a value, Python's statements for the
rest. Jumps out of loops become flags before (`jumps.py`). What assigns to attributes or elements must be decided by Python.
"""

import ast
import builtins
import functools
import inspect
import sys
import textwrap
import types

import numpy as np

from . import _wgrad, control_flow
from .control_flow import layout, probe, waits
from .errors import FailedPreconditionError
from .jumps import SCOPES, Jumps, ends, walk
from .liveness import Liveness, stores
from .ops import FUNCTIONS, zeros
from .tape import _flat
from .tensor import Tensor, Variable, convert_to_tensor

_NAME = "_wgrad_autograph"
# How the variables begin that hold what a loop returns, and those that end a loop, which are false when its body begins.
_RESULT = f"{_NAME}_result"
_FLAGS = f"{_NAME}_stop", f"{_NAME}_returned"
_BOUNDS = "give it one before"


# ---- what converted functions call ----


class Undefined:
    """The value of a variable that has none yet."""

    def __init__(self, name):
        self._name = name

    def _refuse(self, *others):
        raise UnboundLocalError(f"tf.function: '{self._name}' has a value in one branch or in a loop only; {_BOUNDS}.")

    def __getattr__(self, attribute):
        self._refuse()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __matmul__ = __rmatmul__ = __and__ = __rand__ = __or__ = __ror__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __invert__ = __bool__ = __getitem__ = __iter__ = __call__ = __len__ = _refuse


class DynamicRange:
    """A range whose bounds have no values yet."""

    def __init__(self, *bounds):
        start, limit, delta = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        bounds = [convert_to_tensor(bound) for bound in (start, limit, delta)]
        # Of a float all are floats; otherwise Python's numbers take the dtype of the tensors.
        kinds = [made._dtype for made in bounds if made.dtype.is_floating]
        kinds += [made._dtype for made, given in zip(bounds, (start, limit, delta)) if isinstance(given, (Tensor, Variable))]
        self.start, self.limit, self.delta = (bound if bound._dtype == kinds[0] else bound._cast(kinds[0]) for bound in bounds)


class Rows:
    """The rows of a tensor, which a loop reads by number; with their numbers if `start` is given."""

    def __init__(self, tensor, start=None):
        self._tensor, self._start = convert_to_tensor(tensor), start
        if not self._tensor._shape:
            raise TypeError("tf.function: a scalar tensor cannot be iterated over.")

    def __len__(self):
        return self._tensor._shape[0]

    def at(self, number):
        row = self._tensor[number] if isinstance(number, int) else FUNCTIONS["gather"](self._tensor, number)
        return row if self._start is None else (number + self._start, row)


def _is_number(leaf):
    if isinstance(leaf, (np.ndarray, np.generic)):
        return leaf.dtype.kind in "fiub"
    return isinstance(leaf, (Tensor, Variable, int, float))


def read(function, name):
    """The value of a variable, or `Undefined`."""
    try:
        return function()
    except NameError:
        return Undefined(name)


def decided(value, what):
    """The value of a condition that only Python can decide, because of `what`."""
    if waits(value):
        raise FailedPreconditionError(f"tf.function: {what}, so a tensor that has no value yet in a trace cannot decide here.")
    return value


def _same(known, name, value):
    """Refuses that a condition or a loop changes an object of Python."""
    if known is not value and not (type(known) is type(value) and isinstance(value, (str, bytes, type(None))) and known == value):
        raise TypeError(
            f"tf.function: {name} is {known!r} and {value!r} in the branches or passes; only tensors and numbers may differ there."
        )


class _Values:
    """The tensors in the values of variables, and what is around them."""

    def __init__(self, names, values):
        self._names, self.tensors, self._plans = list(names), [], []
        for value in values:
            if isinstance(value, Undefined):
                self._plans.append((None, None, value))
                continue
            leaves, build = _flat(value)
            is_number = [_is_number(leaf) for leaf in leaves]
            tensors = [convert_to_tensor(leaf) for leaf, yes in zip(leaves, is_number) if yes]
            # What is not a number stays as it is.
            self._plans.append((layout(value), build, [None if yes else (leaf,) for leaf, yes in zip(leaves, is_number)]))
            self.tensors += tensors
        self._specs = [(tensor._dtype, list(tensor._shape)) for tensor in self.tensors]

    def rebuilt(self, tensors):
        """The values with other tensors."""
        tensors, made = iter(tensors), []
        for _, build, kept in self._plans:
            made.append(kept if build is None else build(iter([next(tensors) if one is None else one[0] for one in kept])))
        return made

    def zeros(self):
        """Values that look the same, for variables that get theirs later."""
        return self.rebuilt([zeros(shape, dtype) for dtype, shape in self._specs])

    def fits(self, other, here, there):
        """Refuses other values that look different. `here` and `there` say where the values are from: "in the main branch"."""
        specs = iter(zip(self._specs, other._specs))
        for name, (one, _, kept), (two, _, others) in zip(self._names, self._plans, other._plans):
            shown = "what is returned" if name.startswith(_RESULT) or name == _RETURNED else f"'{name}'"
            if one != two or len(kept) != len(others):
                if shown != f"'{name}'" and "None" in (one, two):
                    has, lacks = (there, here) if one == "None" else (here, there)
                    raise ValueError(
                        f"tf.function: a value is returned {has}, and None {lacks}; where a tensor decides, return a value in both."
                    )
                raise TypeError(f"tf.function: {shown} must have the same nested structure; it is {one} {here} and {two} {there}.")
            for first, second in zip(kept, others):
                if (first is None) != (second is None):
                    raise TypeError(f"tf.function: {shown} is a tensor or number only {here if first is None else there}.")
                if first is not None:
                    _same(first[0], shown, second[0])
                    continue
                (dtype, shape), (other_dtype, other_shape) = next(specs)
                if dtype != other_dtype:
                    raise TypeError(f"tf.function: {shown} has dtype {dtype} {here}, but dtype {other_dtype} {there}; use tf.cast.")
                if shape != other_shape:
                    raise ValueError(
                        f"tf.function: {shown} has shape {shape} {here}, but shape {other_shape} {there}; shapes are fixed in a "
                        "trace."
                    )


_RETURNED = "return"
_BRANCHES = "in the else branch", "in the main branch"


def _chosen(pred, body, orelse, names):
    """The values of one of two functions, each a list for these names."""
    made = []

    def branch(function):
        def run():
            made.append(_Values(names, function()))
            if len(made) == 2:
                # A trace calls both, the one of the `else` first.
                made[0].fits(made[1], *_BRANCHES)
            return made[-1].tensors

        return run

    results = control_flow.cond(pred, branch(body), branch(orelse))
    return made[-1].rebuilt(results)


def _arrays_open(values):
    return any(control_flow.open_arrays(value) for value in values if not isinstance(value, Undefined))


def if_stmt(pred, body, orelse, state, names, both, count, why=None):
    """An `if`: the first `count` of the variables that its branches assign, afterwards. `both` are those that both assign, and `why`
    says why only Python may decide."""
    if not waits(pred):
        return body(*state) if pred else orelse(*state)
    decided(pred, why) if why else None
    later = [at for at in range(count) if names[at].startswith(_RESULT) and isinstance(state[at], Undefined)]
    if later or _arrays_open(state[:count]):
        # What the branches do shows how a value looks that one of them does not have.
        seen = [probe(lambda _: function(*state)) for function in (body, orelse)]
        state = list(state)
        for at in later:
            for made in seen:
                if not isinstance(made[at], Undefined):
                    state[at] = _Values([names[at]], [made[at]]).zeros()[0]
    kept = [
        at for at in range(count) if not isinstance(state[at], Undefined) or names[at] in both and not names[at].startswith(_RESULT)
    ]
    branches = []

    def branch(function):
        def run():
            made = function(*state)
            branches.append(made)
            for at in kept:
                if isinstance(made[at], Undefined):
                    raise ValueError(f"tf.function: '{names[at]}' has a value in one branch only; {_BOUNDS}.")
            return [made[at] for at in kept]

        return run

    after = [Undefined(name) for name in names[:count]]
    for at, result in zip(kept, _chosen(pred, branch(body), branch(orelse), [names[at] for at in kept])):
        first, last = branches[0][at], branches[-1][at]
        # A flag that no branch sets stays Python's.
        after[at] = first if names[at].startswith(_NAME) and isinstance(first, bool) and first is last else result
    return tuple(after)


def if_return(pred, body, orelse, state, why=None):
    """An `if` that ends the function: what it returns."""
    if not waits(pred):
        return body(*state) if pred else orelse(*state)
    decided(pred, why) if why else None
    return _returned(pred, lambda: body(*state), lambda: orelse(*state))


def _returned(pred, first, second):
    return _chosen(pred, lambda: [checked(first())], lambda: [checked(second())], [_RETURNED])[0]


def _loop(test, body, state, names, count, head=()):
    """A traced loop. `head` is carried in front of the variables, the first `count` of which are read after the loop."""
    later = [at for at in range(count) if isinstance(state[at], Undefined)]
    state, width = list(state), len(head)
    flags, unset = [at for at, name in enumerate(names) if name.startswith(_FLAGS)], []

    def begun(values):
        """The values as the body gets them."""
        for at in flags:
            values[at] = False
        return values

    if later or _arrays_open(state):
        # Arrays that do not know the shape of their elements get it from the body.
        known = [at for at, value in enumerate(state) if not control_flow.open_arrays(value)]
        values = _Values([names[at] for at in known], [state[at] for at in known])

        def once(symbols):
            given = dict(zip(known, values.rebuilt(symbols[width:])))
            return body(symbols[:width], begun([given.get(at, value) for at, value in enumerate(state)]))[1]

        seen = probe(once, [*head, *values.tensors])
        for at in later:
            if not isinstance(seen[at], Undefined):
                state[at] = _Values([names[at]], [seen[at]]).zeros()[0]
        later = [at for at in later if not isinstance(state[at], Undefined) and not names[at].startswith(_RESULT)]
        unset = [at for at in flags if seen[at] is False]
    known = [at for at, value in enumerate(state) if not isinstance(value, Undefined)]
    # An array that nothing writes stays as it is, and a flag that nothing sets.
    fixed = {at: state[at] for at in known if at in unset or control_flow.open_arrays(state[at])}
    known = [at for at in known if at not in fixed]
    begin = _Values([names[at] for at in known], [state[at] for at in known])
    ran = [False] if later else []

    def whole(tensors):
        made = [fixed.get(at, Undefined(name)) for at, name in enumerate(names)]
        for at, value in zip(known, begin.rebuilt(tensors)):
            made[at] = value
        return made

    def once_more(*tensors):
        first, made = body(tensors[:width], begun(whole(tensors[width + len(ran):])))
        for at, value in fixed.items():
            if at not in unset:
                _same(value, f"'{names[at]}'", made[at])
        for at in known:
            if isinstance(made[at], Undefined):
                made[at]._refuse()
        after = _Values([names[at] for at in known], [made[at] for at in known])
        begin.fits(after, "before the loop", "after one iteration")
        return [*first, *([True] if ran else []), *after.tensors]

    def goes_on(*tensors):
        return test(tensors[:width], whole(tensors[width + len(ran):]))

    results = control_flow.while_loop(goes_on, once_more, [*head, *ran, *begin.tensors])
    if ran:
        listed = ", ".join(f"'{names[at]}'" for at in later)
        _wgrad.check(results[width], f"tf.function: a loop must iterate at least once to give a value to {listed}; {_BOUNDS}")
    return tuple(whole(results[width + len(ran):]))


def _unless(stop, test):
    """`not stop and test()`."""
    return control_flow.cond(stop, lambda: False, test) if waits(stop) else False if stop else test()


def while_stmt(test, body, state, names, count, stop=None, why=None):
    """A `while`: the variables that its body assigns, afterwards. The first `count` of them are read later, and the one of number
    `stop` ends the loop."""
    def goes_on(values):
        return test(*values) if stop is None else _unless(values[stop], lambda: test(*values))

    while True:
        more = goes_on(state)
        if waits(more):
            decided(more, why) if why else None
            break
        if not more:
            return state
        state = body(*state)

    def once_more(_, values):
        made = list(body(*values))
        return [goes_on(made)], made

    # The condition is computed once for each pass, as it may assign variables.
    return _loop(lambda head, _: head[0], once_more, state, names, count, (more,))


def for_stmt(elements, body, state, names, count, stop=None, why=None):
    """A `for`: the variables that its body assigns, afterwards; the parameters are those of `while_stmt`."""
    def stops(values):
        return stop is not None and values[stop]

    def goes_on(values, test):
        return test if stop is None else FUNCTIONS["math.logical_and"](FUNCTIONS["math.logical_not"](values[stop]), test)

    if isinstance(elements, DynamicRange):
        limit, delta = elements.limit, elements.delta
        decided(limit if waits(limit) else delta if waits(delta) else elements.start, why) if why else None
        return _loop(
            lambda head, values: goes_on(values, (limit - head[0]) * FUNCTIONS["math.sign"](delta) > 0),
            lambda head, values: ([head[0] + delta], list(body(head[0], *values))),
            state, names, count, (elements.start,),
        )
    if isinstance(elements, (Tensor, Variable)):
        elements = Rows(elements)
    if isinstance(elements, Rows):
        for number in range(len(elements)):
            ended = stops(state)
            if waits(ended):
                decided(ended, why) if why else None
                return _loop(
                    lambda head, values: goes_on(values, head[0] < len(elements)),
                    lambda head, values: ([head[0] + 1], list(body(elements.at(head[0]), *values))),
                    state, names, count, (number,),
                )
            if ended:
                break
            state = body(elements.at(number), *state)
        return state
    is_finite = hasattr(elements, "__len__")
    elements = iter(elements)
    while True:
        ended = stops(state)
        if waits(ended):
            decided(ended, why) if why else None
            if not is_finite:
                raise NotImplementedError(
                    "tf.function: a break or return that a tensor decides is in a for loop over a generator, which may not end; loop "
                    "over a tensor, tf.range or a list."
                )
            for element in elements:
                state = if_stmt(
                    state[stop], lambda *values: values, functools.partial(body, element), state, names, (), len(names)
                )
            return state
        if ended:
            return state
        try:
            element = next(elements)
        except StopIteration:
            return state
        state = body(element, *state)


def iterated(function, *arguments, **named):
    """What a `for` iterates over if it is a call of a function named `range` or `enumerate`."""
    from . import ops

    if function in (ops.range, builtins.range) and not named and any(waits(bound) for bound in arguments):
        return DynamicRange(*arguments)
    if function is builtins.enumerate and arguments and isinstance(arguments[0], (Tensor, Variable)):
        return Rows(arguments[0], *(arguments[1:] or named.values() or (0,)))
    return function(*arguments, **named)


def listed(elements, what):
    """What a `for` iterates over that only Python can run, because of `what`."""
    if isinstance(elements, DynamicRange):
        raise FailedPreconditionError(f"tf.function: {what}, so the bounds of its range must have values in a trace.")
    return (elements.at(number) for number in range(len(elements))) if isinstance(elements, Rows) else elements


def both(first, second):
    """`first and second`; for tensors without values, a condition."""
    one = first()
    if not waits(one):
        return one and second()
    # The second is computed only if the first is true.
    return control_flow.cond(one, second, lambda: False) if _is_flag(one) else FUNCTIONS["math.logical_and"](one, second())


def either(first, second):
    """`first or second`; for tensors without values, a condition."""
    one = first()
    if not waits(one):
        return one or second()
    return control_flow.cond(one, lambda: True, second) if _is_flag(one) else FUNCTIONS["math.logical_or"](one, second())


def _is_flag(value):
    return value._dtype == "bool" and not value._shape


def negated(value):
    """`not value`, for tensors without values `tf.logical_not`."""
    return FUNCTIONS["math.logical_not"](value) if waits(value) else not value


def if_exp(pred, first, second):
    """`first if pred else second`."""
    return _returned(pred, first, second) if waits(pred) else first() if pred else second()


def asserted(test, message):
    """An `assert`. A tensor without a value is checked in each run, and the next read of a value raises the error."""
    value = test()
    if not waits(value):
        if not value:
            raise AssertionError(*message())
        return
    value = convert_to_tensor(value)
    if value._shape:
        raise ValueError(f"assert: a tensor of shape {list(value._shape)} has no single truth value; use tf.reduce_all.")
    parts = [part for said in message() for part in (said if isinstance(said, tuple) else (said,))]
    said = ", ".join(f"a tensor of shape {list(part._shape)}" if waits(part) else str(part) for part in parts)
    holds = value if value._dtype == "bool" else FUNCTIONS["math.not_equal"](value, 0)
    _wgrad.check(holds, f"assert: {said}" if said else "assert")


def called(function):
    """A function that a converted one calls, converted if it is one of the program."""
    if isinstance(function, types.MethodType):
        made = called(function.__func__)
        return function if made is function.__func__ else types.MethodType(made, function.__self__)
    if isinstance(function, types.FunctionType) and function.__module__ not in (None, "builtins"):
        return convert(function) or function
    return function


# ---- the conversion ----

def _has(nodes, kinds):
    return any(isinstance(node, kinds) for node in walk(nodes))


def _is_made(value):
    """Whether an expression makes an object of its own."""
    return isinstance(value, (ast.Dict, ast.List, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp))


def _why_not(nodes):
    """Why only Python may decide about statements: they change more than variables of the function. Objects that they make
    themselves are theirs."""
    made, others = set(), set()
    for node in walk(nodes):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    (made if _is_made(node.value) else others).add(target.id)
    for node in walk(nodes):
        if isinstance(node, ast.Delete) and any(isinstance(target, ast.Name) for target in node.targets):
            return f"line {node.lineno} deletes a variable"
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            if isinstance(node.value, ast.Name) and node.value.id in made - others:
                continue
            return f"line {node.lineno} assigns to {ast.unparse(node)}, which is no variable of the function"
    return None


class _Converter(ast.NodeTransformer):
    def __init__(self):
        self._count = 0

    def _name(self, kind):
        self._count += 1
        return f"{_NAME}_{kind}_{self._count}"

    # -- parts --

    def _call(self, function, *arguments, keywords=()):
        target = ast.Attribute(ast.Name(_NAME, ast.Load()), function, ast.Load())
        return ast.Call(target, list(arguments), list(keywords))

    def _lambda(self, body):
        return ast.Lambda(ast.arguments([], [], None, [], [], None, []), body)

    def _load(self, name):
        return ast.Name(name, ast.Load())

    def _state(self, names):
        reads = [self._call("read", self._lambda(self._load(name)), ast.Constant(name)) for name in names]
        return ast.Tuple(reads, ast.Load())

    def _function(self, name, parameters, body, results=None):
        arguments = ast.arguments([], [ast.arg(parameter) for parameter in parameters], None, [], [], None, [])
        if results is not None:
            body = [*body, ast.Return(ast.Tuple([self._load(result) for result in results], ast.Load()))]
        made = ast.FunctionDef(name, arguments, body or [ast.Pass()], [], None)
        if "type_params" in ast.FunctionDef._fields:
            made.type_params = []
        return made

    def _assign(self, names, value):
        if not names:
            return ast.Expr(value)
        return ast.Assign([ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())], value)

    def _texts(self, names):
        return ast.Tuple([ast.Constant(name) for name in names], ast.Load())

    def _place(self, made, node):
        for part in made:
            ast.copy_location(part, node)
            ast.fix_missing_locations(part)
        return made

    def _left(self, node, why):
        """A statement that only Python can decide."""
        why = ast.Constant(f"line {node.lineno} cannot be converted, as {why}")
        if isinstance(node, ast.For):
            elements, node.iter = self._elements(node.iter), ast.Constant(None)
            self.generic_visit(node)
            node.iter = self._place([self._call("listed", elements, why)], node)[0]
            return node
        self.generic_visit(node)
        node.test = self._place([self._call("decided", node.test, why)], node)[0]
        return node

    def _elements(self, node):
        """What a `for` iterates over. Ranges may have bounds that only a run knows."""
        function = node.func if isinstance(node, ast.Call) else None
        if getattr(function, "attr", getattr(function, "id", None)) not in ("range", "enumerate"):
            return self.visit(node)
        node = self.generic_visit(node)
        return self._call("iterated", function, *node.args, keywords=node.keywords)

    # -- statements --

    def function(self, node):
        """Converts the body of the function."""
        node.body = Jumps(self._name).function(node.body)
        Liveness(node.body)
        node.body = self._returning(node.body)
        return node

    def _returning(self, statements):
        """Statements of which some return: those after an `if` that returns become parts of its branches."""
        made = []
        for at, statement in enumerate(statements):
            if not (isinstance(statement, ast.If) and _has([statement], ast.Return)):
                made += self._several(self.visit(statement))
                continue
            rest, branches = statements[at + 1:], [list(statement.body), list(statement.orelse)]
            why = _why_not([*branches[0], *branches[1], *rest])
            falls = [not ends(branch, (ast.Return, ast.Raise)) for branch in branches]
            names = sorted(stores(branches[0] + branches[1] + rest))
            if statement.earlier & set(names) or _has([*branches[0], *branches[1], *rest], ast.Delete):
                made += self._several(self.visit(statement))
                continue
            if rest and all(falls):
                # Both branches go on with the same statements, which are converted once.
                after = self._name("after")
                body = self._returning(rest) + [ast.Return(ast.Constant(None))]
                made += self._place([self._function(after, names, body)], statement)
                call = ast.Call(self._load(after), [self._load(name) for name in names], [])
                rest = self._place([ast.Return(call)], statement)
                branches = [[*branch, *rest] for branch in branches]
            else:
                last = [] if ends(rest, (ast.Return, ast.Raise)) else [ast.Return(ast.Constant(None))]
                branches = [[*branch, *rest, *last] if falls_through else branch for branch, falls_through in zip(branches, falls)]
            functions = [self._name("branch") for _ in branches]
            defined = [
                self._function(name, names, self._returning(branch)) for name, branch in zip(functions, branches)
            ]
            value = self._call(
                "if_return", self.visit(statement.test), *map(self._load, functions), self._state(names), ast.Constant(why)
            )
            return made + self._place([*defined, ast.Return(value)], statement)
        return made

    def _several(self, made):
        return made if isinstance(made, list) else [made]

    def _visited(self, statements):
        return [part for statement in statements for part in self._several(self.visit(statement))]

    def _refusal(self, node, nodes):
        """Why statements cannot become functions."""
        if _has(nodes, ast.Delete):
            return "it deletes variables"
        if _has(nodes, ast.Return) or not isinstance(node, ast.If) and node.orelse:
            return "it returns from where no flag can stand for that"
        shared = sorted(node.earlier & stores(nodes))
        if shared:
            return f"a function that is defined before uses '{shared[0]}', which it assigns"
        # What jumps out of a loop that is around it.
        left = list(nodes)
        while left:
            part = left.pop()
            if isinstance(part, (ast.Break, ast.Continue)):
                return "it jumps from where no flag can stand for that"
            if not isinstance(part, (*SCOPES, ast.For, ast.While)):
                left.extend(ast.iter_child_nodes(part))
        return None

    def visit_If(self, node):
        parts = node.body + node.orelse
        refusal = self._refusal(node, parts)
        if refusal:
            return self._left(node, refusal)
        assigned = stores(parts)
        live = sorted(assigned & node.live)
        names = live + sorted((assigned & node.reads) - set(live))
        shared = sorted(stores(node.body) & stores(node.orelse) & set(live))
        body, orelse = self._name("body"), self._name("orelse")
        call = self._call(
            "if_stmt", self.visit(node.test), self._load(body), self._load(orelse), self._state(names), self._texts(names),
            self._texts(shared), ast.Constant(len(live)), ast.Constant(_why_not(parts)),
        )
        return self._place([
            self._function(body, names, self._visited(node.body), live),
            self._function(orelse, names, self._visited(node.orelse), live),
            self._assign(live, call),
        ], node)

    def _carried(self, node, nodes):
        """The variables that a loop carries, how many of them are read later, and what a call of it ends with."""
        assigned, stop = stores(nodes), getattr(node, "stop", None)
        live = sorted(assigned & node.live | ({stop} if stop else set()))
        names = live + sorted((assigned & node.reads) - set(live))
        return names, [
            self._state(names), self._texts(names), ast.Constant(len(live)), ast.Constant(names.index(stop) if stop else None),
            ast.Constant(_why_not(nodes)),
        ]

    def visit_While(self, node):
        refusal = self._refusal(node, node.body)
        if refusal:
            return self._left(node, refusal)
        names, last = self._carried(node, node.body)
        test, body = self._name("test"), self._name("body")
        call = self._call("while_stmt", self._load(test), self._load(body), *last)
        return self._place([
            self._function(test, names, [ast.Return(self.visit(node.test))]),
            self._function(body, names, self._visited(node.body), names),
            self._assign(names, call),
        ], node)

    def visit_For(self, node):
        refusal = self._refusal(node, node.body)
        if refusal:
            return self._left(node, refusal)
        names, last = self._carried(node, [node.target, *node.body])
        body, element = self._name("body"), self._name("element")
        first = ast.Assign([node.target], self._load(element))
        call = self._call("for_stmt", self._elements(node.iter), self._load(body), *last)
        return self._place([
            self._function(body, [element, *names], [first, *self._visited(node.body)], names),
            self._assign(names, call),
        ], node)

    def visit_Assert(self, node):
        self.generic_visit(node)
        said = ast.Tuple([node.msg] if node.msg else [], ast.Load())
        return self._place([ast.Expr(self._call("asserted", self._lambda(node.test), self._lambda(said)))], node)[0]

    # -- expressions --

    def visit_BoolOp(self, node):
        self.generic_visit(node)
        made = node.values[-1]
        for value in reversed(node.values[:-1]):
            made = self._call("both" if isinstance(node.op, ast.And) else "either", self._lambda(value), self._lambda(made))
        return self._place([made], node)[0]

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        return self._place([self._call("negated", node.operand)], node)[0] if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node):
        self.generic_visit(node)
        return self._place([self._call("if_exp", node.test, self._lambda(node.body), self._lambda(node.orelse))], node)[0]

    def visit_Call(self, node):
        self.generic_visit(node)
        is_made = isinstance(node.func, ast.Name) and node.func.id.startswith(_NAME)
        if isinstance(node.func, (ast.Name, ast.Attribute)) and not is_made:
            node.func = self._place([self._call("called", node.func)], node)[0]
        return node

    # Inner functions are converted when they are called.
    def visit_FunctionDef(self, node):
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = visit_FunctionDef


# The attribute of a function with what it became, and the code that this was made of: `functools.wraps` copies attributes.
_KEPT = "_wgrad_converted"
# What would mean something else in another function.
_REFUSED = (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)
_CONTROL = (ast.If, ast.While, ast.For, ast.IfExp, ast.BoolOp, ast.Call, ast.Assert)


def convert(function):
    """The converted function, or `None` if there is nothing to convert or no source."""
    if function.__module__ is not None and function.__module__.partition(".")[0] in ("wgrad", "numpy"):
        return None
    code, made = function.__dict__.get(_KEPT, (None, None))
    if code is not function.__code__:
        made = _convert(function)
        _keep(function, made)
    return made


def _keep(function, made):
    setattr(function, _KEPT, (function.__code__, made))


def _lambda_of(code):
    """The source of a lambda as a function, if it is the only one of its line that looks like that."""
    tree = ast.parse("".join(inspect.findsource(code)[0]))
    names = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno:
            parts = node.args
            if [part.arg for part in (*parts.posonlyargs, *parts.args, *parts.kwonlyargs)] == names:
                found.append(node)
    if len({ast.unparse(node) for node in found}) != 1:
        return None
    made = ast.FunctionDef(f"{_NAME}_lambda", found[0].args, [ast.Return(found[0].body)], [], None)
    if "type_params" in ast.FunctionDef._fields:
        made.type_params = []
    return ast.fix_missing_locations(ast.copy_location(made, found[0]))


def _source(function):
    """The source of a function."""
    # Of the code: for the function, `inspect` would return the source of what it wraps.
    code = function.__code__
    if code.co_name == "<lambda>":
        return _lambda_of(code)
    lines, first = inspect.getsourcelines(code)
    node = ast.parse(textwrap.dedent("".join(lines))).body[0]
    return ast.increment_lineno(node, first - 1)


def _convert(function):
    try:
        node = _source(function)
    except (OSError, TypeError, SyntaxError, IndentationError):
        return None
    if not isinstance(node, ast.FunctionDef) or _has(node.body, _REFUSED) or not _has(node.body, _CONTROL):
        return None
    if any(isinstance(inner, ast.Name) and inner.id in ("super", "__class__", "locals") for inner in ast.walk(node)):
        return None
    node.decorator_list = []
    # The function's own free variables stay free, and get their cells below.
    free = [*function.__code__.co_freevars, _NAME]
    try:
        node = _Converter().function(node)
        module = ast.Module([_Converter()._function("factory", free, [node])], [])
        ast.fix_missing_locations(module)
        code = compile(module, inspect.getsourcefile(function.__code__) or "<autograph>", "exec")
    except RecursionError:
        # Statements are nested too deep.
        return None
    code = next(part for part in code.co_consts if isinstance(part, types.CodeType) and part.co_name == "factory")
    code = next(part for part in code.co_consts if isinstance(part, types.CodeType) and part.co_name == node.name)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    cells[_NAME] = types.CellType(sys.modules[__name__])
    made = types.FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, tuple(cells[name] for name in code.co_freevars)
    )
    made.__kwdefaults__ = function.__kwdefaults__
    # Module and documentation are the program's; a converted function is not converted again.
    functools.update_wrapper(made, function)
    _keep(made, made)
    return made


class experimental:
    """TensorFlow's `tf.autograph.experimental`."""

    @staticmethod
    def do_not_convert(func=None):
        """Keeps a function as it is where converted functions call it; also as a decorator."""
        if func is None:
            return experimental.do_not_convert
        _keep(func, None)
        return func

    @staticmethod
    def set_loop_options(parallel_iterations=None, swap_memory=None, maximum_iterations=None, shape_invariants=None):
        """Options of the loop around the call, of which the first two change nothing here. Shapes are fixed in a trace."""
        if maximum_iterations is not None:
            raise NotImplementedError("set_loop_options: there is no maximum_iterations; use break, or tf.while_loop.")


def checked(result):
    """What a converted function returned, if all of it has values."""
    for leaf in _flat(result)[0]:
        if isinstance(leaf, Undefined):
            raise ValueError(f"tf.function: '{leaf._name}' has a value in one branch or in a loop only; give it one before.")
    return result
