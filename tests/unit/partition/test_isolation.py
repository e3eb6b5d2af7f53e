"""A share partition whose group changes its isolation level, on one log or with a separate one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from tests.unit.partition.bench import ACCEPT, EARLIEST, RELEASE, Bench
from tests.unit.partition.logs import MemoryLog

from sharecore.config import GroupConfig
from sharecore.errors import ErrorCode, KafkaError

COMMITTED = GroupConfig(share_auto_offset_reset="earliest", share_isolation_level="read_committed")


class TwoLogs(MemoryLog):
    """A log with a separate log for committed records, which must be loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.other: TwoLogs | None = None
        self.committed = False
        self.asked: list[Callable[[KafkaError | None], object]] | None = None

    def isolate(self, *, committed: bool) -> Any:
        return self if committed == self.committed else self.other

    def when_known(self, done: Callable[[Any], object]) -> None:
        if self.asked is None:
            done(None)
        else:
            self.asked.append(done)


def two_logs() -> tuple[Bench, TwoLogs, TwoLogs]:
    """Return a bench that reads committed records, that log, and the one with all records."""
    bench, everything, committed = Bench(), TwoLogs(), TwoLogs()
    everything.other, committed.other, committed.committed = committed, everything, True
    bench.logs = [everything]
    for log in (everything, committed):
        log.produce(5, 5)
    committed.high_watermark = committed.last_stable_offset = 5
    bench.config = COMMITTED
    return bench, committed, everything


def test_another_isolation_level_leaves_leases_alone() -> None:
    bench, committed, everything = two_logs()
    assert bench.take("m") == [(0, 4, 1)]
    leader = bench.leader()
    everything.asked, committed.asked = [], []
    leader.configure(EARLIEST)
    assert bench.take("n") == [], "it is not yet known what the other log has"
    everything.asked.pop()(None)
    assert bench.leader() is leader
    assert bench.take("n") == [(5, 9, 1)]
    bench.settle("m", (0, 4, ACCEPT))
    assert bench.ends == [None]
    everything.produce(5)
    assert bench.take("n") == [(10, 14, 1)]
    # and back, before the load completes: nothing changes
    leader.configure(bench.config)
    leader.configure(EARLIEST)
    committed.asked.pop()(None)
    assert leader.log is cast(Any, everything)


def test_nothing_is_leased_by_the_isolation_level_before_once_another_was_told() -> None:
    bench, committed, everything = two_logs()
    bench.config = EARLIEST
    assert bench.take("m") == [(0, 9, 1)]
    leader = bench.leader()
    committed.asked = []
    leader.configure(COMMITTED)
    everything.produce(5)
    assert bench.take("m") == [], "what is behind the last stable offset may be aborted"
    leader.rest(resting=True)
    committed.asked.pop()(None)
    committed.produce(5)
    assert bench.take("m") == []
    leader.rest(resting=False)
    assert bench.take("m") == [(10, 14, 1)]
    assert leader.log is cast(Any, committed)
    everything.asked = []
    leader.configure(EARLIEST)
    leader.configure(COMMITTED)
    committed.produce(5)
    assert bench.take("m") == [(15, 19, 1)], "it is as it was"


def test_a_log_of_another_isolation_level_that_cannot_be_had_ends_the_leader() -> None:
    bench, _, everything = two_logs()
    assert bench.take("m") == [(0, 4, 1)]
    leader = bench.leader()
    everything.asked = []
    leader.configure(EARLIEST)
    everything.asked.pop()(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    assert bench.leader() is not leader


def test_what_somebody_holds_of_an_aborted_transaction_is_taken_away_when_it_is_read_again() -> None:
    bench = Bench()
    log = bench.logs[0]
    log.produce(5)
    log.produce(5, attributes=0x10, producer_id=7)
    log.produce(1, attributes=0x30, producer_id=7)
    assert bench.take("m") == [(0, 10, 1)]
    bench.settle("m", (0, 4, RELEASE))
    log.transactions = [(7, 5)]
    bench.leader().configure(COMMITTED)
    bench.settle("m", (5, 5, ACCEPT))
    assert bench.take("n") == [(0, 4, 2)]
    with pytest.raises(KafkaError) as refused:
        bench.settle("m", (6, 9, ACCEPT))
    assert refused.value.code is ErrorCode.INVALID_RECORD_STATE
    bench.settle("n", (0, 4, ACCEPT))
    engine = bench.engine()
    assert engine.start_offset == 10
