"""What tests of nodes that can be cut off share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.harness.links import Links


@pytest.fixture
def links() -> Iterator[Links]:
    made = Links()
    yield made
    made.close()
