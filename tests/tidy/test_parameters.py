"""The names of tests: two collections name them alike, as the workers of one run must."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.tidy.tree import ROOT, nodes, parsed, tracked

VARYING = {"time", "random", "uuid", "secrets", "datetime", "os"}
"""Modules whose functions return something else each time."""
MAKING = {"generate_private_key"}
"""Functions of other modules that do."""
STEADY = {"Random", "fromtimestamp", "environ", "path"}
"""What these modules have that does not; `random.Random(1)` has a seed."""


@dataclass(frozen=True)
class Names:
    """The functions and constants of a file, and what it imports from other tests."""

    made: dict[str, ast.FunctionDef | ast.expr]
    imported: dict[str, tuple[Path, str]]

    @classmethod
    def of(cls, tree: ast.Module) -> Names:
        made: dict[str, ast.FunctionDef | ast.expr] = {}
        imported: dict[str, tuple[Path, str]] = {}
        for each in tree.body:
            match each:
                case ast.FunctionDef(name=name):
                    made[name] = each
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    made[name] = value
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    made[name] = value
                case ast.ImportFrom(module=str(module), names=names) if module.startswith("tests."):
                    path = Path(*module.split(".")).with_suffix(".py")
                    imported |= {one.asname or one.name: (path, one.name) for one in names}
        return cls(made, imported)

    def find(self, name: str) -> tuple[ast.AST, Names] | None:
        """Return what a name stands for, and the names of the file that has it."""
        if name in self.made:
            return self.made[name], self
        path, other = self.imported.get(name, (None, name))
        if path is None or not (ROOT / path).is_file():
            return None
        return names_of(path).find(other)


@cache
def names_of(path: Path) -> Names:
    return Names.of(parsed(path))


def is_parametrized(node: ast.Call) -> bool:
    if not isinstance(node.func, ast.Attribute):
        return False
    has_params = any(keyword.arg == "params" for keyword in node.keywords)
    return node.func.attr == "parametrize" or (node.func.attr == "fixture" and has_params)


def evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """List a node and those in it, without the bodies of lambdas, which run later."""
    yield node
    if not isinstance(node, ast.Lambda):
        for each in ast.iter_child_nodes(node):
            yield from evaluated(each)


def varies(node: ast.AST, names: Names, seen: frozenset[str] = frozenset()) -> bool:
    """Whether a node calls a function that varies, by itself or through names of its file."""
    for each in evaluated(node):
        match each:
            case ast.Call(func=ast.Attribute(attr=attribute)) if attribute in MAKING:
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=attribute)):
                if module in VARYING and attribute not in STEADY:
                    return True
            case ast.Call(func=ast.Name(id=name)) if name not in seen:
                behind = names.find(name)
                if behind is not None and varies(*behind, seen | {name}):
                    return True
            case ast.Name(id=name) if name not in seen:
                behind = names.find(name)
                # a function that is not called here is a value with a name of its own
                if behind is not None and isinstance(behind[0], ast.expr) and varies(*behind, seen | {name}):
                    return True
    return False


def found(tree: ast.Module, every: list[ast.AST]) -> list[int]:
    """List the lines of parameters that vary and have no ids."""
    unnamed = [
        node
        for node in every
        if isinstance(node, ast.Call)
        and is_parametrized(node)
        and all(keyword.arg != "ids" for keyword in node.keywords)
    ]
    names = Names.of(tree) if unnamed else Names({}, {})
    return [node.lineno for node in unnamed if any(varies(each, names) for each in parameters(node))]


def parameters(node: ast.Call) -> Iterator[ast.expr]:
    yield from node.args
    yield from (keyword.value for keyword in node.keywords if keyword.arg in {"params", "argvalues"})


def lines(text: str) -> list[int]:
    tree = ast.parse(text)
    return found(tree, list(ast.walk(tree)))


def test_a_time_behind_a_function_is_found() -> None:
    now = "def now():\n    return str(time.time())\n"
    assert lines(f"{now}\n@pytest.mark.parametrize('x', [now()])\ndef test_x(x): ...") == [4]


def test_a_key_behind_a_constant_is_found() -> None:
    key = "KEY = ec.generate_private_key(ec.SECP256R1())\nTOKEN = signed(KEY)\n"
    assert lines(f"{key}@pytest.mark.parametrize('x', [TOKEN])\ndef test_x(x): ...") == [3]


def test_a_parameter_of_a_fixture_is_found() -> None:
    assert lines("@pytest.fixture(params=[uuid.uuid4()])\ndef x(request): ...") == [1]
    assert lines("@pytest.fixture(params=[1], name=str(uuid.uuid4()))\ndef x(request): ...") == []


def test_a_name_from_another_file_is_found() -> None:
    imported = "from tests.unit.client.test_tokens import KEY as OTHER, token\n"
    assert lines(f"{imported}@pytest.mark.parametrize('x', [token(OTHER)])\ndef test_x(x): ...") == [2]


def test_no_name_of_a_test_depends_on_the_time() -> None:
    places = [
        f"{path}:{line}"
        for path in tracked()
        if path.parts[0] == "tests" and path.suffix == ".py"
        for line in found(parsed(path), nodes(path))
    ]
    assert places == [], "give them ids"
