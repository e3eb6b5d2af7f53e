"""What tests of nodes share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.broker import Broker
from tests.harness.links import Links
from tests.harness.tier import Nodes


@pytest.fixture
def links() -> Iterator[Links]:
    made = Links()
    yield made
    made.close()


@pytest.fixture
def nodes(tmp_path: Path, cluster: Broker) -> Iterator[Nodes]:
    made = Nodes(tmp_path, cluster.bootstrap)
    yield made
    made.kill()
