"""The share coordinator writes the records that Apache's writes, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.differential import share_state
from tests.differential.share_state import Operation, differences

from sharecore.sharestate.state import ShareState

OPERATIONS = 3000


@pytest.mark.timeout(600)  # the first use fetches Kafka's jars
def test_answers_and_records_are_apaches(tmp_path: Path) -> None:
    seed = 20  # `make differential-state` uses random ones
    counted, found = differences(seed, OPERATIONS, tmp_path)
    assert found == [], f"python -m tests.differential.share_state --seed {seed} --operations {OPERATIONS}"
    assert counted["records"] > OPERATIONS / 2


def test_a_coordinator_that_forgets_to_fence_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    operations: list[Operation] = list(share_state.operations(3, 500))
    ours = share_state.Ours(5)
    answers = [ours.run(operation) for operation in operations]
    monkeypatch.setattr(ShareState, "check", lambda *_: None)
    planted = share_state.Ours(5)
    assert [planted.run(operation) for operation in operations] != answers
