"""The share coordinator only reports durable state."""

from __future__ import annotations

import pytest
from tests.unit.sharestate.test_share_coordinator import ACKED, KEY, Bench, content

from sharecore.errors import ErrorCode, KafkaError
from sharecore.sharestate.coordinator import ReadState, StateSummary


def test_a_summary_tells_nothing_that_a_failure_would_take_back() -> None:
    bench = Bench(hold=True)
    bench.coordinator.initialize(KEY, 0, 5, bench.ends.append)
    bench.world.run()
    bench.logs[0].settle()
    told: list[StateSummary | KafkaError] = []
    bench.coordinator.write(KEY, 0, 0, 8, 0, b"", bench.ends.append)
    bench.coordinator.summary(KEY, told.append)
    bench.world.run()
    assert told == []
    bench.logs[0].settle()
    assert [each.start_offset for each in told if isinstance(each, StateSummary)] == [8]


def test_what_is_at_hand_is_durable() -> None:
    bench = Bench(hold=True)

    def at_hand() -> list[tuple[int, int]]:
        found = bench.coordinator.at_hand(KEY.group_id, KEY.topic_id, range(KEY.partition + 2))
        return [(partition, state.start_offset) for partition, state in found]

    bench.initialize(start_offset=5)
    bench.coordinator.summary(KEY, lambda summary: None)
    assert at_hand() == []
    bench.logs[0].settle()
    assert at_hand() == [(KEY.partition, 5)]
    bench.coordinator.write(KEY, 0, 0, 8, 0, b"", bench.ends.append)
    assert at_hand() == []
    bench.world.run()
    bench.logs[0].settle()
    assert at_hand() == [(KEY.partition, 8)]
    bench.coordinator.delete(KEY, bench.ends.append)
    bench.world.run()
    bench.logs[0].settle()
    assert at_hand() == []


@pytest.mark.parametrize("lost", [False, True], ids=["written", "lost"])
def test_a_leader_reads_nothing_that_a_failure_would_take_back(lost: bool) -> None:
    bench = Bench(hold=True)
    bench.initialize()
    bench.logs[0].settle()
    bench.write(0, [(0, 4, ACKED, 1)])
    told: list[ReadState | KafkaError] = []
    bench.coordinator.read(KEY, 0, told.append)
    bench.world.run()
    assert told == []
    bench.logs[0].failing, bench.logs[0].hold = lost, False
    bench.logs[0].settle()
    bench.world.run(4_000)
    (found,) = told
    if lost:
        assert isinstance(found, KafkaError)
        assert found.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert content(bench.read()) == (0, 0, [])
    else:
        assert isinstance(found, ReadState)
        assert content(found) == (0, 0, [(0, 4, ACKED, 1)])


def test_state_is_gone_for_nobody_before_its_deletion_is_durable() -> None:
    bench = Bench(hold=True)
    bench.initialize()
    bench.logs[0].settle()
    for _ in range(2):
        bench.coordinator.delete(KEY, bench.ends.append)
        bench.world.run()
    assert bench.ends == [None]
    bench.logs[0].settle()
    assert bench.ends == [None] * 3
