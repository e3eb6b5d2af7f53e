"""What holds for every test that reads the sources."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from tests.tidy import tree


@pytest.fixture(autouse=True, scope="package")
def _nothing_is_collected() -> Iterator[None]:
    """Collect no garbage: CPython before 3.11.8 fails in `ast.parse` where a finalizer parses too
    (https://github.com/python/cpython/issues/106905), as one does that logs a traceback.
    """
    gc.disable()
    yield
    for remembered in (tree.text, tree.parsed, tree.nodes):
        remembered.cache_clear()
    gc.collect()
    gc.freeze()  # later collections need not visit what remains
    gc.enable()
