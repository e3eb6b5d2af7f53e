"""Records of Produce requests are validated before the append: small batches at once, large ones in a
thread.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from tests.differential.produce.cases import Header, record, sized, varint
from tests.differential.produce.codecs import CODECS, zstd_of_zeros
from tests.harness.batches import batch, headers_of, keyed_batch
from tests.harness.running import Client, RunningBroker

from sharecore.broker.broker import Broker
from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey
from sharecore.storage.disk_reads import DiskReads

T = 1_700_000_000_000
BIG_BYTES = 1 << 20
"""More than a broker decompresses before it passes a request to a thread."""
_names = itertools.count()


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the work passed to threads of the store."""
    begun: list[int] = []
    original = DiskReads.begun

    def noted(self: DiskReads, number: int, *rest: Any) -> None:
        begun.append(number)
        original(self, number, *rest)

    monkeypatch.setattr(DiskReads, "begun", noted)
    return begun


class Held:
    """Results of the store's threads, withheld from the loop until released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._done: list[tuple[DiskReads, Sequence[int]]] = []
        self._original = DiskReads.ended
        self._monkeypatch = monkeypatch
        monkeypatch.setattr(DiskReads, "ended", lambda disk, numbers: self._done.append((disk, numbers)))

    def wait(self, broker: RunningBroker) -> None:
        """Wait until a thread has finished something."""
        broker.until(lambda _: any(numbers for _, numbers in self._done))

    def release(self, broker: RunningBroker) -> None:
        """Notify the loop."""
        self._monkeypatch.undo()
        broker.look(lambda _: [self._original(disk, numbers) for disk, numbers in self._done])


def fields(topic: str, *batches: bytes, acks: int = -1) -> dict[str, Any]:
    """Return a request with batches for partitions 0, 1, ..."""
    data = [{"index": index, "records": records} for index, records in enumerate(batches)]
    topics = [{"name": topic, "partition_data": data}]
    return {"acks": acks, "timeout_ms": 5000, "topic_data": topics, "transactional_id": None}


def produce(client: Client, topic: str, *batches: bytes) -> list[Any]:
    """Return the responses for partitions 0, 1, ..."""
    answer = client.ask(ApiKey.PRODUCE, 9, **fields(topic, *batches))
    found: list[Any] = answer.responses[0].partition_responses
    return found


def fetched(broker: RunningBroker, topic: str, partition: int = 0) -> list[dict[str, int]]:
    asked = {"partition": partition, "fetch_offset": 0, "partition_max_bytes": 1 << 24}
    topics = [{"topic": topic, "partitions": [asked]}]
    answer = broker.ask(ApiKey.FETCH, 11, max_wait_ms=0, min_bytes=0, max_bytes=1 << 24, topics=topics)
    return headers_of(answer.responses[0].partitions[0].records)


def until_end(broker: RunningBroker, topic: str, offset: int) -> None:
    """Wait until the first partition ends at an offset."""

    def ends_there(found: Broker) -> bool:
        known = found.topics.get(topic)
        return known is not None and known.partitions[0].high_watermark == offset

    broker.until(ends_there)


def big(value: bytes = b"x", **more: Any) -> bytes:
    """One gzipped record with a large uncompressed size."""
    return keyed_batch([(None, value * BIG_BYTES)], gzipped=True, timestamps=[T], **more)


def test_a_few_records_are_checked_at_once_and_many_in_a_thread(
    broker: RunningBroker, topic: str, threads: list[int]
) -> None:
    client = broker.connect()
    small = [batch([b"a"]), keyed_batch([(None, b"b")], gzipped=True)]
    assert [each.error_code for each in produce(client, topic, *small)] == [0, 0]
    assert threads == []
    assert [each.error_code for each in produce(client, topic, big())] == [0]
    assert [each.error_code for each in produce(client, topic, batch([b""] * 20_000))] == [0]
    assert len(threads) == 2


def test_each_partition_of_a_request_has_its_own_answer(broker: RunningBroker, topic: str) -> None:
    client = broker.connect()
    wrong = bytearray(big())
    wrong[-1] ^= 1
    lies = Header(attributes=1, count=1, first_ms=T).on(bytes(wrong[61:]))
    first, second = produce(client, topic, big(), lies)
    assert (first.error_code, first.base_offset, first.log_start_offset) == (0, 0, 0)
    assert (second.error_code, second.base_offset) == (ErrorCode.INVALID_RECORD, -1)
    assert second.error_message
    assert fetched(broker, topic, 1) == []


def test_requests_of_a_connection_reach_their_log_in_order(broker: RunningBroker, topic: str) -> None:
    client = broker.connect()
    values = [b"a", b"b", b"c", b"d"]
    for sequence, value in enumerate(values * 3):
        producer: dict[str, Any] = {"producer_id": 4000, "producer_epoch": 0, "sequence": sequence}
        records = big(value, **producer) if sequence % 2 == 0 else batch([value], timestamps=[T], **producer)
        client.send(ApiKey.PRODUCE, 9, **fields(topic, records))
    answers = [client.receive(ApiKey.PRODUCE, 9) for _ in values * 3]
    told = [each.responses[0].partition_responses[0] for each in answers]
    assert [(each.error_code, each.base_offset) for each in told] == [(0, n) for n in range(len(told))]
    assert [each["sequence"] for each in fetched(broker, topic)] == list(range(len(told)))


def test_others_are_answered_while_a_thread_checks(
    broker: RunningBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, other = broker.connect(), broker.connect()
    held = Held(monkeypatch)
    client.send(ApiKey.PRODUCE, 9, **fields(topic, big()))
    client.send(ApiKey.PRODUCE, 9, **fields(topic, batch([b"behind"], timestamps=[T])))
    held.wait(broker)
    assert produce(other, topic, batch([b"other"], timestamps=[T]))[0].base_offset == 0
    assert client.has_nothing()
    held.release(broker)
    answers = [client.receive(ApiKey.PRODUCE, 9) for _ in range(2)]
    assert [each.responses[0].partition_responses[0].base_offset for each in answers] == [1, 2]


def test_without_acknowledgement_a_batch_is_appended_or_the_connection_closed(
    broker: RunningBroker, topic: str, threads: list[int]
) -> None:
    client = broker.connect()
    client.send(ApiKey.PRODUCE, 9, **fields(topic, big(), acks=0))
    client.send(ApiKey.METADATA, 9, topics=[{"name": topic}])
    client.receive(ApiKey.METADATA, 9)  # there was no response before this one
    until_end(broker, topic, 1)
    lies = Header(attributes=1, count=7, first_ms=T).on(big()[61:])
    client.send(ApiKey.PRODUCE, 9, **fields(topic, lies, acks=0))
    with pytest.raises(EOFError):
        client.receive(ApiKey.PRODUCE, 9)
    assert len(threads) == 2


def test_what_a_client_sent_is_appended_though_it_has_gone(
    broker: RunningBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = broker.connect()
    held = Held(monkeypatch)
    client.send(ApiKey.PRODUCE, 9, **fields(topic, big()))
    held.wait(broker)
    client.close()
    held.release(broker)
    until_end(broker, topic, 1)


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_claims_other_records_than_it_has_is_refused(
    broker: RunningBroker, topic: str, codec: str
) -> None:
    number, compress = CODECS[codec]
    client = broker.connect()
    records = compress(record(0) + record(1) + record(2))
    for count in (2, 4, 2**31 - 1):
        lies = Header(attributes=number, count=count, first_ms=T).on(records)
        assert produce(client, topic, lies)[0].error_code == ErrorCode.INVALID_RECORD
    for cut in range(1, len(records) + 1):
        lies = Header(attributes=number, first_ms=T).on(records[:-cut])
        assert produce(client, topic, lies)[0].error_code == ErrorCode.INVALID_RECORD
    assert produce(client, topic, Header(attributes=number, first_ms=T).on(records))[0].error_code == 0


def test_records_that_expand_far_to_a_compacted_topic_are_checked_in_a_thread(
    broker: RunningBroker, threads: list[int]
) -> None:
    topic, partitions = f"compacted-{next(_names)}", 8
    configs = [{"name": "cleanup.policy", "value": "compact"}]
    asked = {"name": topic, "num_partitions": partitions, "replication_factor": 1, "configs": configs}
    broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)

    def expanding(size: int) -> bytes:
        front = b"\0\0\0" + sized(b"k") + varint(size)
        head = varint(len(front) + size + 1) + front
        return Header(attributes=4, count=1, first_ms=T).on(zstd_of_zeros(head, size, b"\0"))

    answers = produce(broker.connect(), topic, *[expanding(16 << 20)] * partitions)
    assert [each.error_code for each in answers] == [0] * partitions
    assert len(threads) == 1
    answers = produce(broker.connect(), topic, *[expanding(512 << 20)] * partitions)
    assert {each.error_code for each in answers} == {ErrorCode.MESSAGE_TOO_LARGE}
    assert {each.base_offset for each in answers} == {-1}
