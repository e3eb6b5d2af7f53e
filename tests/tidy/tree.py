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


@cache
def text(path: Path) -> str:
    """Read a file, by its path from the root or a whole one."""
    return (ROOT / path).read_text()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(text(path))


@cache
def nodes(path: Path) -> list[ast.AST]:
    """List every node of a file; walking a tree takes longer than parsing it."""
    return list(ast.walk(parsed(path)))


def line_of(source: str, offset: int) -> int:
    return source.count("\n", 0, offset) + 1
