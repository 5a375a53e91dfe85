"""AutoGraph: Python's `if`, `while` and `for` on values of tensors in traced functions.

`tf.function` converts a function only if its trace fails because Python needs the value of a tensor. The statements then become
calls of this module, which decide at each call: `cond` and `while_loop` for tensors without a value, Python's statements for the
rest. A statement that jumps out of a loop, or that assigns to attributes or elements, is left as it is.
"""

import ast
import functools
import inspect
import sys
import textwrap
import types

import numpy as np

from . import control_flow
from .errors import FailedPreconditionError
from .ops import FUNCTIONS
from .tape import _flat
from .tensor import Tensor, Variable, convert_to_tensor

_NAME = "_wgrad_autograph"


# ---- what converted functions call ----


class Undefined:
    """The value of a variable that has none yet."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        raise UnboundLocalError(f"tf.function: '{self._name}' has a value in one branch or in a loop only; give it one before.")


class DynamicRange:
    """A range whose bounds have no values yet."""

    def __init__(self, *bounds):
        start, limit, delta = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        self.start, self.limit, self.delta = (convert_to_tensor(bound) for bound in (start, limit, delta))


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


def _is_carried(value):
    """Whether a value consists of tensors and numbers, which a condition or a loop returns."""
    leaves, _ = _flat(value)
    return all(isinstance(leaf, (Tensor, Variable, int, float, np.ndarray, np.generic)) for leaf in leaves)


def read(function, name):
    """The value of a variable, or `Undefined`."""
    try:
        return function()
    except NameError:
        return Undefined(name)


def _same(statics, at, name, value):
    """Notes an object of Python that a condition or a loop must not change."""
    known = statics.setdefault(at, value)
    if known is not value and not (type(known) is type(value) and isinstance(value, (str, bytes, type(None))) and known == value):
        raise TypeError(
            f"tf.function: '{name}' is {known!r} and {value!r} in the branches or turns; only tensors and numbers may differ there."
        )


def if_stmt(pred, body, orelse, state, names, both):
    """An `if`: the variables that its branches assign, afterwards."""
    if not waits(pred):
        return body(*state) if pred else orelse(*state)
    kept = [at for at, name in enumerate(names) if name in both or not isinstance(state[at], Undefined)]
    statics = {}

    def branch(function):
        def run():
            made, results = function(*state), []
            for at in kept:
                if isinstance(made[at], Undefined):
                    raise ValueError(f"tf.function: '{names[at]}' has a value in one branch only; give it one before.")
                if _is_carried(made[at]):
                    results.append(made[at])
                else:
                    _same(statics, at, names[at], made[at])
                    results.append(())
            return results

        return run

    results = control_flow.cond(pred, branch(body), branch(orelse))
    after = [Undefined(name) for name in names]
    for at, result in zip(kept, results):
        after[at] = statics.get(at, result)
    return tuple(after)


def if_return(pred, body, orelse, state):
    """An `if` that ends the function: what it returns."""
    if not waits(pred):
        return body(*state) if pred else orelse(*state)
    return control_flow.cond(pred, lambda: body(*state), lambda: orelse(*state))


def _loop(test, body, state, names, first=()):
    """A traced loop. `first` is carried in front of the variables."""
    carried = [at for at, value in enumerate(state) if not isinstance(value, Undefined) and _is_carried(value)]
    statics = {at: value for at, value in enumerate(state) if at not in carried and not isinstance(value, Undefined)}

    def whole(values):
        made = [statics.get(at, Undefined(name)) for at, name in enumerate(names)]
        for at, value in zip(carried, values):
            made[at] = value
        return made

    def turn(*values):
        head, made = body(values[: len(first)], whole(values[len(first):]))
        for at, value in statics.items():
            _same(statics, at, names[at], made[at])
        return [*head, *(made[at] for at in carried)]

    begin = [*first, *(state[at] for at in carried)]
    results = control_flow.while_loop(lambda *values: test(values[: len(first)], whole(values[len(first):])), turn, begin)
    return tuple(whole(results[len(first):]))


def while_stmt(test, body, state, names):
    """A `while`: the variables that its body assigns, afterwards."""
    while True:
        goes_on = test(*state)
        if waits(goes_on):
            return _loop(lambda _, values: test(*values), lambda _, values: ((), body(*values)), state, names)
        if not goes_on:
            return state
        state = body(*state)


def for_stmt(elements, body, state, names):
    """A `for`: the variables that its body assigns, afterwards."""
    if not isinstance(elements, DynamicRange):
        for element in elements:
            state = body(element, *state)
        return state
    limit, delta = elements.limit, elements.delta
    return _loop(
        lambda head, _: (limit - head[0]) * FUNCTIONS["math.sign"](delta) > 0,
        lambda head, values: ([head[0] + delta], body(head[0], *values)),
        state, names, (elements.start,),
    )


def range_of(function, *bounds, **named):
    """What a `for` iterates over if it is a call of a function named `range`."""
    from . import ops

    if function is ops.range and not named and any(waits(bound) for bound in bounds):
        return DynamicRange(*bounds)
    return function(*bounds, **named)


def both(first, second):
    """`first and second`, for tensors without values `tf.logical_and`."""
    one = first()
    return FUNCTIONS["math.logical_and"](one, second()) if waits(one) else one and second()


def either(first, second):
    """`first or second`, for tensors without values `tf.logical_or`."""
    one = first()
    return FUNCTIONS["math.logical_or"](one, second()) if waits(one) else one or second()


def negated(value):
    """`not value`, for tensors without values `tf.logical_not`."""
    return FUNCTIONS["math.logical_not"](value) if waits(value) else not value


def if_exp(pred, first, second):
    """`first if pred else second`."""
    return control_flow.cond(pred, first, second) if waits(pred) else first() if pred else second()


def called(function):
    """A function that a converted one calls, converted if it is one of the program."""
    if isinstance(function, types.MethodType):
        made = called(function.__func__)
        return function if made is function.__func__ else types.MethodType(made, function.__self__)
    if isinstance(function, types.FunctionType) and function.__module__ not in (None, "builtins"):
        return convert(function) or function
    return function


# ---- the conversion ----

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _walk(nodes):
    """The nodes below statements, without those of inner functions and comprehensions."""
    left = list(nodes)
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, _SCOPES):
            left.extend(ast.iter_child_nodes(node))


def _assigned(nodes):
    """The names that statements assign."""
    names = set()
    for node in _walk(nodes):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
    return names


def _has(nodes, kinds):
    return any(isinstance(node, kinds) for node in _walk(nodes))


def _jumps(nodes):
    """Whether statements leave a loop that is around them."""
    for node in nodes:
        if isinstance(node, (ast.Break, ast.Continue, ast.Return)):
            return True
        if isinstance(node, (ast.For, ast.While)):
            # What leaves the inner loop stays inside.
            if _has(node.body + node.orelse, ast.Return) or _jumps(node.orelse):
                return True
        elif not isinstance(node, _SCOPES) and _jumps(ast.iter_child_nodes(node)):
            return True
    return False


def _stores(nodes):
    """Whether statements change more than variables of the function."""
    return any(
        isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del)) or isinstance(node, ast.Delete)
        for node in _walk(nodes)
    )


def _always_returns(body):
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return _always_returns(last.body) and _always_returns(last.orelse)
    return isinstance(last, (ast.Return, ast.Raise))


class _Converter(ast.NodeTransformer):
    def __init__(self):
        self._count = 0

    def _name(self, kind):
        self._count += 1
        return f"{_NAME}_{kind}_{self._count}"

    # -- parts --

    def _call(self, function, *arguments):
        target = ast.Attribute(ast.Name(_NAME, ast.Load()), function, ast.Load())
        return ast.Call(target, list(arguments), [])

    def _lambda(self, body):
        return ast.Lambda(ast.arguments([], [], None, [], [], None, []), body)

    def _state(self, names):
        reads = [self._call("read", self._lambda(ast.Name(name, ast.Load())), ast.Constant(name)) for name in names]
        return ast.Tuple(reads, ast.Load())

    def _function(self, name, parameters, body, results=None):
        arguments = ast.arguments([], [ast.arg(parameter) for parameter in parameters], None, [], [], None, [])
        if results is not None:
            body = [*body, ast.Return(ast.Tuple([ast.Name(result, ast.Load()) for result in results], ast.Load()))]
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

    # -- statements --

    def function(self, node):
        """Converts the body of the function."""
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
            falls = [not _always_returns(branch) for branch in branches]
            names = sorted(_assigned(branches[0] + branches[1] + rest))
            if rest and all(falls):
                # Both branches go on with the same statements, which are converted once.
                after = self._name("after")
                body = self._returning(rest) + [ast.Return(ast.Constant(None))]
                made += self._place([self._function(after, names, body)], statement)
                call = ast.Call(ast.Name(after, ast.Load()), [ast.Name(name, ast.Load()) for name in names], [])
                rest = self._place([ast.Return(call)], statement)
                branches = [[*branch, *rest] for branch in branches]
            else:
                ends = [] if _always_returns(rest) else [ast.Return(ast.Constant(None))]
                branches = [[*branch, *rest, *ends] if falls_through else branch for branch, falls_through in zip(branches, falls)]
            functions = [self._name("branch") for _ in branches]
            defined = [
                self._function(name, names, self._returning(branch)) for name, branch in zip(functions, branches)
            ]
            value = self._call(
                "if_return", self.visit(statement.test), *(ast.Name(name, ast.Load()) for name in functions), self._state(names)
            )
            return made + self._place([*defined, ast.Return(value)], statement)
        return made

    def _several(self, made):
        return made if isinstance(made, list) else [made]

    def _visited(self, statements):
        return [part for statement in statements for part in self._several(self.visit(statement))]

    def visit_If(self, node):
        parts = node.body + node.orelse
        if _jumps(parts) or _stores(parts):
            return self.generic_visit(node)
        names = sorted(_assigned(parts))
        shared = sorted(_assigned(node.body) & _assigned(node.orelse))
        body, orelse = self._name("body"), self._name("orelse")
        call = self._call(
            "if_stmt", self.visit(node.test), ast.Name(body, ast.Load()), ast.Name(orelse, ast.Load()), self._state(names),
            self._texts(names), self._texts(shared),
        )
        return self._place([
            self._function(body, names, self._visited(node.body), names),
            self._function(orelse, names, self._visited(node.orelse), names),
            self._assign(names, call),
        ], node)

    def visit_While(self, node):
        if node.orelse or _jumps(node.body) or _stores(node.body):
            return self.generic_visit(node)
        names = sorted(_assigned(node.body))
        test, body = self._name("test"), self._name("body")
        call = self._call(
            "while_stmt", ast.Name(test, ast.Load()), ast.Name(body, ast.Load()), self._state(names), self._texts(names)
        )
        return self._place([
            self._function(test, names, [ast.Return(self.visit(node.test))]),
            self._function(body, names, self._visited(node.body), names),
            self._assign(names, call),
        ], node)

    def visit_For(self, node):
        if node.orelse or _jumps(node.body) or _stores(node.body) or _stores([node.target]):
            return self.generic_visit(node)
        names = sorted(_assigned(node.body) | _assigned([node.target]))
        body, element = self._name("body"), self._name("element")
        elements = node.iter
        is_range = isinstance(elements, ast.Call) and getattr(elements.func, "attr", getattr(elements.func, "id", None)) == "range"
        if is_range:
            function, elements = elements.func, self.generic_visit(elements)
            elements = ast.Call(ast.Attribute(ast.Name(_NAME, ast.Load()), "range_of", ast.Load()), [function, *elements.args], elements.keywords)
        else:
            elements = self.visit(elements)
        first = ast.Assign([node.target], ast.Name(element, ast.Load()))
        call = self._call("for_stmt", elements, ast.Name(body, ast.Load()), self._state(names), self._texts(names))
        return self._place([
            self._function(body, [element, *names], [first, *self._visited(node.body)], names),
            self._assign(names, call),
        ], node)

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
_CONTROL = (ast.If, ast.While, ast.For, ast.IfExp, ast.BoolOp, ast.Call)


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


def _convert(function):
    try:
        # Of the code: for the function, `inspect` would return the source of what it wraps.
        lines, first = inspect.getsourcelines(function.__code__)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError, IndentationError):
        return None
    node = tree.body[0]
    if not isinstance(node, ast.FunctionDef) or _has(node.body, _REFUSED) or not _has(node.body, _CONTROL):
        return None
    if any(isinstance(inner, ast.Name) and inner.id in ("super", "__class__", "locals") for inner in ast.walk(node)):
        return None
    node.decorator_list = []
    ast.increment_lineno(node, first - 1)
    node = _Converter().function(node)
    # The function's own free variables stay free, and get their cells below.
    free = [*function.__code__.co_freevars, _NAME]
    factory = _Converter()._function("factory", free, [node])
    module = ast.Module([factory], [])
    ast.fix_missing_locations(module)
    code = compile(module, inspect.getsourcefile(function.__code__) or "<autograph>", "exec")
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


def checked(result):
    """What a converted function returned, if all of it has values."""
    for leaf in _flat(result)[0]:
        if isinstance(leaf, Undefined):
            raise ValueError(f"tf.function: '{leaf._name}' has a value in one branch or in a loop only; give it one before.")
    return result
