"""The files of the tree, each read and parsed once."""

from __future__ import annotations

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python/sharecore"


@cache
def tracked() -> list[Path]:
    """List the files of the tree that git does not ignore, by their paths from its root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file()]


def text(path: Path) -> str:
    """Read a file, by its path from the root or a whole one."""
    return _text(ROOT / path)


def parsed(path: Path) -> ast.Module:
    return _parsed(ROOT / path)


def nodes(path: Path) -> list[ast.AST]:
    """List every node of a file; walking a tree takes longer than parsing it."""
    return _nodes(ROOT / path)


def forget() -> None:
    """Free all texts and trees that were read."""
    for remembered in (_text, _parsed, _nodes):
        remembered.cache_clear()


# by a file's whole path, so that both of its paths have one entry


@cache
def _text(path: Path) -> str:
    return path.read_text()


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(_text(path))


@cache
def _nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(_parsed(path)))


def line_of(source: str, offset: int) -> int:
    return source.count("\n", 0, offset) + 1
