"""Which variables of a function are read after its statements, for AutoGraph.

A variable that only a pass through a loop uses, or only a branch, need not have one shape in all of them.
"""

import ast

from .jumps import SCOPES, TRIES, walk


def loads(node):
    """The names that a node reads, those in inner functions included."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Store)}


def stores(nodes):
    """The names that statements assign."""
    names = set()
    for node in walk(nodes):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
    return names


def free(node):
    """The names that an inner function takes from around it."""
    bound = {argument.arg for argument in ast.walk(node) if isinstance(argument, ast.arg)}
    body = node.body if isinstance(node.body, list) else [node.body]
    return set().union(*map(loads, body)) - bound - stores(body)


class Liveness:
    """Notes in each `if` and loop of statements: `live`, the names that are read after it; `reads`, those that it reads before it
    assigns them; `earlier`, those that functions made before it take from around them."""

    def __init__(self, statements):
        self._flows = {}
        # Functions and lambdas may be called at any time.
        self._always = set()
        for node in walk(statements):
            if isinstance(node, SCOPES) and not isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp)):
                self._always |= loads(node)
        self._earlier = set()
        self._sequence(statements, set())

    def _flow(self, node):
        """What a statement reads before it assigns it, and what it always assigns. Computed once for each statement."""
        if id(node) not in self._flows:
            self._flows[id(node)] = self._computed(node)
        return self._flows[id(node)]

    def _computed(self, node):
        if isinstance(node, ast.If):
            (body, first), (orelse, second) = self._through(node.body), self._through(node.orelse)
            return loads(node.test) | body | orelse, first & second
        if isinstance(node, (ast.While, ast.For)):
            body = self._through(node.body)[0]
            if isinstance(node, ast.While):
                body |= loads(node.test)
            else:
                # The targets may have subscripts, which are read.
                body = body - stores([node.target]) | loads(node.iter) | loads(node.target)
            stop = getattr(node, "stop", None)
            return body | self._through(node.orelse)[0] | ({stop} if stop else set()), set()
        if isinstance(node, ast.With):
            items = [loads(item) for item in node.items]
            named = stores([item.optional_vars for item in node.items if item.optional_vars is not None])
            return set().union(*items, self._through(node.body)[0] - named), set()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return loads(node), {node.name}
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Import, ast.ImportFrom, ast.Return)):
            read = loads(node)
            if isinstance(node, ast.AugAssign):
                read |= stores([node.target])
            without_value = isinstance(node, ast.AnnAssign) and node.value is None
            return read, set() if without_value else stores([node])
        if isinstance(node, TRIES):
            parts = [node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody]
            kinds = [loads(handler.type) for handler in node.handlers if handler.type is not None]
            return set().union(*kinds, *(self._through(part)[0] for part in parts)), set()
        # `match` and what else there is: all that they read, at any time.
        changed = [part.target for part in ast.walk(node) if isinstance(part, ast.AugAssign)]
        return loads(node) | stores(changed), set()

    def _through(self, statements):
        read, assigned = set(), set()
        for statement in reversed(statements):
            reads, assigns = self._flow(statement)
            read = reads | (read - assigns)
            assigned |= assigns
        return read, assigned

    def _sequence(self, statements, after, caught=frozenset()):
        """Notes what is live in statements, of which the names `after` are read later, and the names `caught` if an exception ends
        them anywhere."""
        lives = [after]
        for statement in reversed(statements):
            reads, assigns = self._flow(statement)
            lives.append(reads | (lives[-1] - assigns))
        for statement, live in zip(statements, reversed(lives[:-1])):
            self._note(statement, live | caught, caught)

    def _note(self, node, live, caught):
        inside = live
        if isinstance(node, (ast.If, ast.While, ast.For)):
            node.live, node.reads = live | self._always, self._flow(node)[0]
            node.earlier = set(self._earlier)
            if not isinstance(node, ast.If):
                # The next pass reads, too.
                inside = live | node.reads
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._earlier |= free(node)
            return
        if isinstance(node, ast.ClassDef):
            self._earlier |= loads(node)
            return
        if isinstance(node, ast.Assign):
            # A lambda that is passed to a call is called there.
            kept, left = [], [node.value]
            while left:
                part = left.pop()
                if isinstance(part, ast.Lambda):
                    kept.append(part)
                elif isinstance(part, ast.GeneratorExp):
                    self._earlier |= loads(part)
                elif isinstance(part, (ast.List, ast.Tuple, ast.Dict, ast.IfExp)):
                    left.extend(ast.iter_child_nodes(part))
            for part in kept:
                self._earlier |= free(part)
        if isinstance(node, TRIES):
            # What follows may be reached from anywhere in the body.
            last = live | self._through(node.finalbody)[0]
            handled = last.union(*(self._through(handler.body)[0] for handler in node.handlers))
            self._sequence(node.body, handled | self._through(node.orelse)[0], handled)
            for part in (*(handler.body for handler in node.handlers), node.orelse):
                self._sequence(part, last, last)
            self._sequence(node.finalbody, live, caught)
            return
        for field in ("body", "orelse"):
            if isinstance(getattr(node, field, None), list):
                self._sequence(getattr(node, field), inside, caught)
        for case in getattr(node, "cases", ()):
            self._sequence(case.body, inside, caught)
