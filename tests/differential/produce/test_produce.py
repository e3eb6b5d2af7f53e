"""Batches that are not what they say are taken and refused as Apache Kafka takes and refuses them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.differential.produce.both import both, compare
from tests.differential.produce.cases import cases


@pytest.mark.long
@pytest.mark.timeout(180)
def test_batches_that_lie_are_answered_as_apache_kafka_answers_them(tmp_path: Path) -> None:
    with both(tmp_path) as sides:
        counted, different = compare(sides, cases(int(time.time() * 1000), seed=1, flips=10))
    assert different == []
    assert counted.total() > 1_000
    assert counted["equal"] > 700
