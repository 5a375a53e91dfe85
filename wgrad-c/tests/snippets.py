"""Parses the programs in Swift and Kotlin, and checks that the header declares the functions that they call, with as many parameters.

    python snippets.py HEADER FILE...
"""

import re
import sys

import tree_sitter_kotlin
import tree_sitter_swift
from tree_sitter import Language, Parser

LANGUAGES = {"swift": tree_sitter_swift, "kt": tree_sitter_kotlin}


def walk(node):
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(node.children)


def declared(header):
    """The number of parameters of each function."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    found = re.findall(r"\b(wgrad_\w+)\(([^()]*)\)", text)
    return {name: 0 if arguments.strip() == "void" else arguments.count(",") + 1 for name, arguments in found}


def arguments(call):
    """The number of arguments of a call. Swift's grammar has a node between a call and its list, Kotlin's has none."""
    lists = [part for child in call.children for part in [child, *child.children] if part.type == "value_arguments"]
    return sum(node.type == "value_argument" for part in lists for node in part.children)


def problems(path, header):
    source = open(path, "rb").read()
    tree = Parser(Language(LANGUAGES[path.rsplit(".", 1)[1]].language())).parse(source)
    text = lambda node: source[node.start_byte : node.end_byte].decode()
    line = lambda node: node.start_point[0] + 1
    calls = 0
    for node in walk(tree.root_node):
        if node.type == "ERROR" or node.is_missing:
            yield f"{path}:{line(node)}: not parsed: {text(node)[:60]!r}"
        if node.type == "call_expression":
            name = re.match(r"(?:wgrad\.)?(wgrad_\w+)\(", text(node))
            if name:
                calls += 1
                expected = header.get(name[1])
                if expected is None:
                    yield f"{path}:{line(node)}: the header does not declare {name[1]}"
                elif arguments(node) != expected:
                    yield f"{path}:{line(node)}: {name[1]} has {expected} parameters, not {arguments(node)}"
        if node.type == "function_declaration":
            name = re.match(r"fun (wgrad_\w+)\(", text(node))
            given = sum(part.type in ("parameter", "value_parameter") for child in node.children for part in child.children)
            if name and header.get(name[1]) != given:
                yield f"{path}:{line(node)}: {name[1]} has {header.get(name[1])} parameters, not {given}"
    if calls == 0:
        yield f"{path}: no call of wgrad was found"
    print(f"{path}: {calls} calls")


def main(header, *paths):
    functions = declared(open(header).read())
    found = [problem for path in paths for problem in problems(path, functions)]
    print("\n".join(found))
    return 1 if found or not paths else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
