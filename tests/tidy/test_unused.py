"""Code and dependencies that nothing uses."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomllib
from tests.tidy.tree import ROOT, nodes, parsed, text, tracked

SOURCES = ("python", "rust", "tests", "benches", "examples", "packaging")
SUFFIXES = {".py", ".pyi", ".rs", ".js", ".html", ".toml", ".md"}
CALLED = re.compile(r"__\w+__$|(test|pytest)_|Test")
"""Names that Python and pytest call."""
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
    # mkdocs
    "on_files", "on_page_markdown", "on_post_build",
    # asyncio
    "_process_events", "_repr", "_run_once", "_selector", "_source_traceback", "_write_to_self",
    # the standard library's servers and parsers
    "do_DELETE", "do_PUT", "handle_endtag", "handle_startendtag", "handle_starttag",
    # hypothesis
    "teardown",
    # called by the name of an API or an operation
    "_answer_writes", "_compact", "_get_telemetry_subscriptions", "_hold_writes",
    "_incremental_alter_configs", "_join_group", "_leave_group", "_list_groups", "_lso",
    "_push_telemetry", "_share_acknowledge", "_share_group_heartbeat", "_sync_group",
    # an application's, for type checkers
    "consume_blocking", "produce_blocking",
    # imported so that their scenarios register
    "_FILES",
}  # fmt: skip


def definitions(path: Path) -> Iterator[tuple[str, int]]:
    """Names defined by a file, with their lines; a decorator may register one."""
    for node in nodes(path):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            registered = [
                each
                for each in node.decorator_list
                if not re.match(r"(property|staticmethod|classmethod|cache|dataclass)", ast.unparse(each))
            ]
            if not registered:
                yield node.name, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id == "self":
                yield node.attr, node.lineno
    for statement in parsed(path).body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    yield target.id, statement.lineno


def test_each_name_is_used() -> None:
    words: Counter[str] = Counter()
    for path in tracked():
        if path.parts[0] in SOURCES and path.suffix in SUFFIXES:
            words.update(re.findall(r"\w+", text(path)))
    python = [path for path in tracked() if path.parts[0] in SOURCES and path.suffix == ".py"]
    unused = [
        f"{path}:{line}: {name}"
        for path in python
        for name, line in definitions(ROOT / path)
        if words[name] == 1 and not CALLED.match(name) and name not in CALLED_BY_LIBRARIES
    ]
    assert unused == [], "delete it, or name it in CALLED_BY_LIBRARIES"


@pytest.mark.parametrize("manifest", [path for path in tracked() if path.name == "Cargo.toml"], ids=str)
def test_each_dependency_of_a_crate_is_used(manifest: Path) -> None:
    content = tomllib.loads(text(manifest))
    tables = [content, *content.get("target", {}).values()]
    kinds = ("dependencies", "dev-dependencies", "build-dependencies")
    wanted = {name for table in tables for kind in kinds for name in table.get(kind, {})}
    code = "\n".join(
        text(path) for path in tracked() if path.suffix == ".rs" and path.is_relative_to(manifest.parent)
    )
    unused = {name for name in wanted if not re.search(rf"\b{name.replace('-', '_')}\b", code)}
    # reqwest is named to choose its features
    assert unused - {"reqwest"} == set()
