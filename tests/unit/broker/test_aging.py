"""Expiry of unused state: the broker's clock is set ahead, and checks run every few milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from tests.harness.batches import batch, keyed_batch
from tests.harness.running import MovedClock, RunningBroker
from tests.harness.until import until
from tests.unit.broker.test_records import produce
from tests.unit.broker.test_topics import create

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

MINUTE_MS = 60_000
SETTINGS = {
    "offsets.retention.minutes": "1",
    "offsets.retention.check.interval.ms": "5",
    "producer.id.expiration.ms": str(2 * MINUTE_MS),
    "log.retention.check.interval.ms": "5",
    "transactional.id.expiration.ms": str(3 * MINUTE_MS),
    "transaction.remove.expired.transaction.cleanup.interval.ms": "5",
    "log.cleaner.backoff.ms": "5",
}


def none_of(conditions: list[Callable[[], bool]]) -> bool:
    return not any(holds() for holds in conditions)


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory, clock: MovedClock) -> Iterator[RunningBroker]:
    running = RunningBroker(tmp_path_factory.mktemp("data"), SETTINGS, clock).start()
    yield running
    running.stop()


def test_what_nobody_uses_is_forgotten_in_its_time(broker: RunningBroker, clock: MovedClock) -> None:
    """offsets.retention.minutes, producer.id.expiration.ms, transactional.id.expiration.ms, and their check
    intervals: offsets.retention.check.interval.ms, log.retention.check.interval.ms,
    transaction.remove.expired.transaction.cleanup.interval.ms
    """
    create(broker, name="t")

    def offset_is_there() -> bool:
        groups = [{"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]}]
        answer = broker.ask(ApiKey.OFFSET_FETCH, 8, groups=groups)
        return bool(answer.groups[0].topics[0].partitions[0].committed_offset == 3)

    def producer_is_known() -> bool:
        # an unknown producer may start with any sequence number
        one = batch([b"x"], timestamps=[clock.now_ms()], producer_id=9, producer_epoch=0, sequence=77)
        return bool(produce(broker, "t", one).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)

    def transactional_id_is_known() -> bool:
        answer = broker.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=["tx"])
        return bool(answer.transaction_states[0].error_code == 0)

    part = {"partition_index": 0, "committed_offset": 3, "committed_metadata": ""}
    topics = [{"name": "t", "partitions": [part]}]
    committed = broker.ask(ApiKey.OFFSET_COMMIT, 8, group_id="g", topics=topics)
    assert committed.topics[0].partitions[0].error_code == 0
    first = batch([b"x"], timestamps=[clock.now_ms()], producer_id=9, producer_epoch=0, sequence=0)
    assert produce(broker, "t", first).error_code == 0
    broker.ask(ApiKey.INIT_PRODUCER_ID, 4, transactional_id="tx", transaction_timeout_ms=1000)
    known: list[Callable[[], bool]] = [offset_is_there, producer_is_known, transactional_id_is_known]
    for minutes in range(4):
        clock.ahead_ms = minutes * MINUTE_MS + minutes * 1000
        until(partial(none_of, known[:minutes]))
        assert [there() for there in known[minutes:]] == [True] * (3 - minutes)


def test_old_records_go_and_compacted_ones_stay(broker: RunningBroker, clock: MovedClock) -> None:
    """log.cleaner.backoff.ms: the next check comes soon."""
    compacted = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0"}
    configs = [{"name": name, "value": text} for name, text in compacted.items()]
    create(broker, name="compacted", configs=configs)
    for value in range(4):
        one = keyed_batch([(b"k", b"%d" % value)], timestamps=[clock.now_ms()])
        assert produce(broker, "compacted", one).error_code == 0

    def offsets() -> list[int]:
        part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
        answer = broker.ask(
            ApiKey.FETCH,
            11,
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=[{"topic": "compacted", "partitions": [part]}],
        )
        records = answer.responses[0].partitions[0].records
        return [] if not records else [int.from_bytes(records[:8], "big")]

    until(lambda: offsets() == [2])
