"""What holds for every test that reads the sources."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from tests.tidy import tree

HERE = Path(__file__).parent


def pytest_runtest_setup() -> None:
    """Collect no garbage: CPython before 3.11.8 fails in `ast.parse` where a finalizer parses too
    (https://github.com/python/cpython/issues/106905), as one does that logs a traceback.
    """
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Forget the sources before other tests: each full collection would visit millions of nodes."""
    if nextitem is None or nextitem.path.parent != HERE:
        tree.forget()
        gc.collect()
        gc.freeze()  # later collections need not visit what remains
        gc.enable()
