"""Jumps out of loops as conditions, for AutoGraph: `break`, `continue` and `return` set flags, which guard what they skip.

Each statement is copied once, so the result is as long as the source, whatever is nested in it.
"""

import ast

_LOOPS = (ast.For, ast.While)
_JUMPS = (ast.Break, ast.Continue, ast.Return)
TRIES = (ast.Try, getattr(ast, "TryStar", ast.Try))
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def walk(nodes):
    """The nodes below statements, without those of inner functions and comprehensions."""
    left = list(nodes)
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, SCOPES):
            left.extend(ast.iter_child_nodes(node))


def ends(statements, kinds):
    """Whether statements always end with one of these."""
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, ast.If):
        return ends(last.body, kinds) and ends(last.orelse, kinds)
    return isinstance(last, kinds)


def _returns(statements):
    """Whether statements always return, also from inside `with` and `try`."""
    last = statements[-1] if statements else None
    if isinstance(last, ast.If):
        return _returns(last.body) and _returns(last.orelse)
    if isinstance(last, ast.With):
        return _returns(last.body)
    if isinstance(last, TRIES):
        return (_returns(last.body) or _returns(last.orelse)) and all(_returns(handler.body) for handler in last.handlers)
    return isinstance(last, (ast.Return, ast.Raise))


def _jumps(node):
    """The jumps below a node that leave it: `break` and `continue` of inner loops stay inside."""
    if isinstance(node, _JUMPS):
        return {type(node)}
    if isinstance(node, SCOPES):
        return set()
    if isinstance(node, _LOOPS):
        inside = set().union(*(_jumps(part) for part in node.body)) & {ast.Return}
        return inside.union(*(_jumps(part) for part in node.orelse))
    return set().union(*(_jumps(part) for part in ast.iter_child_nodes(node)))


def _supported(loop):
    """Whether all jumps of a loop are where a flag can stand for them."""
    for node in walk([loop]):
        if isinstance(node, ast.AsyncFor):
            return False
        inner = []
        if isinstance(node, ast.Match):
            inner = node.cases
        elif isinstance(node, TRIES):
            inner = node.finalbody
        if any(_jumps(part) for part in inner):
            return False
    return True


class _Loop:
    """The flags of a loop: `stop` ends it, `skip` ends an iteration. `result` and `returned` are those of the function."""

    def __init__(self, stop, skip, returned, result):
        self.stop, self.skip, self.returned, self.result = stop, skip, returned, result


class Jumps:
    """Rewrites the statements of a function. `fresh` makes names of a kind."""

    def __init__(self, fresh):
        self._fresh = fresh

    def function(self, statements):
        """The statements of a function."""
        inner = [node for node in walk(statements) if isinstance(node, (ast.With, *TRIES)) and ast.Return in _jumps(node)]
        if not inner or not all(map(_supported, statements)):
            return self.outside(statements)
        # A function cannot return from the parts of a `with` or `try` that become functions; it does so at its end.
        node, returned, result = statements[0], self._fresh("returned"), self._fresh("result")
        body, _ = self._block(statements, _Loop(returned, returned, returned, result))
        back = _at(statements[-1], ast.Return(_load(result)))
        if not _returns(statements):
            back = _at(statements[-1], ast.If(_load(returned), [back], []))
        return [_set(node, returned, False), *body, back]

    def outside(self, statements):
        """Statements that are in no loop."""
        made = []
        for statement in statements:
            if isinstance(statement, _LOOPS):
                if _supported(statement):
                    made += self._outermost(statement)
                else:
                    made.append(statement)
                continue
            for field in ("body", "orelse", "finalbody"):
                if isinstance(getattr(statement, field, None), list) and not isinstance(statement, SCOPES):
                    setattr(statement, field, self.outside(getattr(statement, field)))
            for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
                part.body = self.outside(part.body)
            made.append(statement)
        return made

    def _outermost(self, node):
        # Names of their own, as what one loop returns may look different from what another one does.
        returned, result = self._fresh("returned"), self._fresh("result")
        orelse = self.outside(node.orelse)
        kinds = set().union(*(_jumps(part) for part in node.body))
        # `while True` without `break` ends only if it returns.
        always = isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and node.test.value and ast.Break not in kinds
        made, loop = self._loop(node, returned, result)
        if ast.Return in kinds:
            made.insert(0, _set(node, returned, False))
            back = ast.Return(_load(result))
            made.append(_at(node, back if always else ast.If(_load(returned), [back], [])))
        return made + self._unless(loop.stop, orelse, node)

    def _loop(self, node, returned, result):
        """The loop without jumps, and its flags. Its `else` is left to the caller, which knows what is around it."""
        kinds = set().union(*(_jumps(part) for part in node.body))
        stop = self._fresh("stop") if kinds & {ast.Break, ast.Return} else None
        skip = self._fresh("skip") if ast.Continue in kinds else stop
        loop = _Loop(stop, skip, returned, result)
        body, _ = self._block(node.body, loop)
        node.body = [_set(node, skip, False), *body] if ast.Continue in kinds else body
        node.orelse, node.stop = [], stop
        return ([_set(node, stop, False)] if stop else []) + [node], loop

    def _unless(self, flag, statements, node):
        if not statements or flag is None:
            return statements
        return [_at(node, ast.If(ast.UnaryOp(ast.Not(), _load(flag)), statements, []))]

    def _block(self, statements, loop):
        """Statements in a loop, and whether they may set its flags."""
        made = []
        for at, statement in enumerate(statements):
            rest = statements[at + 1:]
            if isinstance(statement, _JUMPS):
                return made + self._jump(statement, loop), True
            if isinstance(statement, ast.If) and _jumps(statement):
                # What follows a branch that always jumps belongs to the other one.
                for jumps, other in (("body", "orelse"), ("orelse", "body")):
                    if rest and ends(getattr(statement, jumps), (*_JUMPS, ast.Raise)):
                        setattr(statement, other, getattr(statement, other) + rest)
                        rest = []
            parts, may = self._statement(statement, loop)
            made += parts
            if may:
                body, _ = self._block(rest, loop)
                return made + self._unless(loop.skip, body, statement), True
            if not rest:
                break
        return made, False

    def _statement(self, statement, loop):
        may = False

        def block(statements):
            nonlocal may
            made, jumps = self._block(statements, loop)
            may = may or jumps
            return made

        if isinstance(statement, _LOOPS):
            returns = any(ast.Return in _jumps(part) for part in statement.body)
            orelse = statement.orelse
            made, inner = self._loop(statement, loop.returned, loop.result)
            flags = [flag for flag in dict.fromkeys((loop.stop, loop.skip)) if flag != loop.returned]
            if returns and flags:
                made.append(_at(statement, ast.If(_load(loop.returned), [_set(statement, flag, True) for flag in flags], [])))
            made += self._unless(inner.stop, block(orelse), statement)
            return made, may or returns
        if isinstance(statement, SCOPES):
            return [statement], False
        if isinstance(statement, TRIES):
            statement.body = block(statement.body)
            guarded = may
            for handler in statement.handlers:
                handler.body = block(handler.body)
            statement.orelse = block(statement.orelse)
            if guarded:
                statement.orelse = self._unless(loop.skip, statement.orelse, statement)
            statement.finalbody = block(statement.finalbody)
            return [statement], may
        for field in ("body", "orelse"):
            if isinstance(getattr(statement, field, None), list):
                # A body must not be empty.
                setattr(statement, field, block(getattr(statement, field)) or getattr(statement, field))
        for case in getattr(statement, "cases", ()):
            case.body = block(case.body)
        return [statement], may

    def _jump(self, node, loop):
        flags = [loop.skip] if isinstance(node, ast.Continue) else dict.fromkeys((loop.stop, loop.skip))
        made = [_set(node, flag, True) for flag in flags]
        if isinstance(node, ast.Return):
            value = node.value or ast.Constant(None)
            flags = dict.fromkeys((loop.returned, *flags))
            made = [_at(node, ast.Assign([ast.Name(loop.result, ast.Store())], value)), *(_set(node, flag, True) for flag in flags)]
        return made


def _load(name):
    return ast.Name(name, ast.Load())


def _at(node, made):
    return ast.fix_missing_locations(ast.copy_location(made, node))


def _set(node, name, value):
    return _at(node, ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value)))
