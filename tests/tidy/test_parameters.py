"""The names of tests: two collections name them alike, as the workers of one run must."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.tidy.tree import nodes, parsed, tracked

VARYING = {"time", "random", "uuid", "secrets", "datetime", "os"}
"""Modules whose functions return something else each time."""


def is_parametrize(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.parametrize")


def calls(node: ast.AST) -> Iterator[ast.expr]:
    """List what is called in a node."""
    return (each.func for each in ast.walk(node) if isinstance(each, ast.Call))


def varies(node: ast.AST, functions: dict[str, ast.FunctionDef], seen: frozenset[str] = frozenset()) -> bool:
    """Whether a node calls a function of these modules, by itself or through functions of its file.

    Generators with a seed, `random.Random(1)`, return the same each time.
    """
    for called in calls(node):
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
            if called.value.id in VARYING and called.attr not in {"Random", "fromtimestamp"}:
                return True
        elif isinstance(called, ast.Name):
            behind = None if called.id in seen else functions.get(called.id)
            if behind is not None and varies(behind, functions, seen | {called.id}):
                return True
    return False


def found(tree: ast.Module, every: list[ast.AST]) -> list[int]:
    """List the lines of parameters that vary and have no ids."""
    functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
    return [
        node.lineno
        for node in every
        if isinstance(node, ast.Call)
        and is_parametrize(node)
        and all(keyword.arg != "ids" for keyword in node.keywords)
        and varies(node, functions)
    ]


def test_a_time_behind_a_function_is_found() -> None:
    now = "def now():\n    return str(time.time())\n"
    tree = ast.parse(f"{now}\n@pytest.mark.parametrize('x', [now()])\ndef test_x(x): ...")
    assert found(tree, list(ast.walk(tree))) == [4]


def test_no_name_of_a_test_depends_on_the_time() -> None:
    places = [
        f"{path}:{line}"
        for path in tracked()
        if path.parts[0] == "tests" and path.suffix == ".py"
        for line in found(parsed(path), nodes(path))
    ]
    assert places == [], "give them ids"
