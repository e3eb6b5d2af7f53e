"""Code of the package that nothing uses."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.tree import PACKAGE, ROOT, nodes, parsed, text

SOURCES = ("python", "rust", "tests", "benches", "examples", "packaging")
SUFFIXES = {".py", ".pyi", ".rs", ".js", ".html", ".toml", ".md"}
CALLED_BY_LIBRARIES = {
    # textual
    "action_back", "action_filter", "action_open", "action_reverse", "action_sort", "on_input_changed",
    "on_data_table_row_selected", "on_input_submitted", "on_mount", "on_resize",
    # uvicorn, asyncio, logging and the standard library's servers
    "capture_signals", "eof_received", "default_msec_format", "default_time_format", "do_HEAD",
    "handle_error", "redirect_request", "request_queue_size", "server_version", "service_actions",
    "sys_version", "verify_request",
    # pyspark
    "prepareForTriggerAvailableNow", "streamReader",
    # taskiq
    "pre_execute",
    # dramatiq
    "declare_queue", "nack", "requeue",
    # kombu
    "basic_get", "driver_version", "restore_unacked", "restore_at_shutdown", "_delete", "_get_many",
    "_has_queue", "_purge", "_put", "_put_fanout", "_size",
}  # fmt: skip


def definitions(path: Path) -> Iterator[tuple[str, int]]:
    """Names of functions, classes and constants, with their lines; a decorator may register one."""
    for node in nodes(path):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            registered = [
                each
                for each in node.decorator_list
                if not re.match(r"(property|staticmethod|classmethod|cache|dataclass)", ast.unparse(each))
            ]
            if not registered:
                yield node.name, node.lineno
    for statement in parsed(path).body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    yield target.id, statement.lineno


def test_each_name_of_the_package_is_used() -> None:
    words: Counter[str] = Counter()
    for folder in SOURCES:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in SUFFIXES and "target" not in path.parts:
                words.update(re.findall(r"\w+", text(path)))
    unused = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for name, line in definitions(path)
        if words[name] == 1 and not name.startswith("__") and name not in CALLED_BY_LIBRARIES
    ]
    assert not unused, "delete it, or name it in CALLED_BY_LIBRARIES"
