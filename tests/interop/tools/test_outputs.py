"""Apache Kafka's tools print the same on sharecore as on Apache Kafka; `make compare-tools` for all of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.interop.tools.compare import compare
from tests.interop.tools.scenarios import SCENARIOS


@pytest.mark.long
def test_tools_print_the_same_on_both_brokers(tmp_path: Path) -> None:
    scenario, settings = SCENARIOS["in-brief"]
    found = compare(tmp_path, scenario(), settings)
    assert found.difference() == []
    assert any("orders 0 " in line for line in found.sharecore), "the tools have seen a group"
