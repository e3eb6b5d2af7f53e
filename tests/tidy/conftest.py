"""What holds for every test that reads the sources."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def _nothing_is_collected() -> Iterator[None]:
    """Collect no garbage: CPython before 3.11.8 fails in `ast.parse` where a finalizer parses too
    (https://github.com/python/cpython/issues/106905), as one does that logs a traceback.
    """
    gc.disable()
    yield
    gc.enable()
