"""The oracle is started once for all tests; without Java and Maven these tests fail and say so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.differential.oracle import Oracle


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    with Oracle() as process:
        yield process
