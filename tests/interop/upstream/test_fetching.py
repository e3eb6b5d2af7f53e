"""Raw fetches from an existing cluster: what was written comes, in order and once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from confluent_kafka import Producer as ConfluentProducer
from tests.harness.aio import in_loop
from tests.harness.batches import headers_of
from tests.harness.broker import Broker
from tests.interop.upstream.connected import append, connected

from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import calls
from sharecore.upstream import Administration, ExclusiveWriter, Fetched, Fetcher, Outlet, Upstream

ROOM = 1 << 20


class Taken:
    """A sink that remembers, and gives room again."""

    def __init__(self) -> None:
        self.answers: list[Fetched] = []
        self.errors: list[KafkaError] = []
        self._news = asyncio.Event()

    def fetched(self, fetched: Fetched) -> None:
        self.answers.append(fetched)
        self._news.set()

    def failed(self, error: KafkaError) -> None:
        self.errors.append(error)
        self._news.set()

    @property
    def end(self) -> int:
        return self.answers[-1].end if self.answers else -1

    async def until_end(self, offset: int, more: Callable[[], object] = lambda: None) -> None:
        """Wait until all records before an offset have arrived; call `more` before each wait."""
        async with asyncio.timeout(10):
            while self.end < offset:
                self._news.clear()
                more()
                await self._news.wait()

    async def until_failed(self) -> ErrorCode:
        async with asyncio.timeout(10):
            while not self.errors:
                self._news.clear()
                await self._news.wait()
        return self.errors[0].code


async def written(upstream: Upstream, name: str, partitions: int) -> list[ExclusiveWriter]:
    """Return a new topic, and a writer for each partition."""
    await Administration(upstream).create_topic(name, partitions, 1, {})
    outlet = Outlet(upstream)
    writers = [ExclusiveWriter(outlet, name, index, f"{name}-{index}") for index in range(partitions)]
    for writer in writers:
        await writer.open(0)
    return writers


@in_loop
async def test_each_batch_comes_once_while_others_are_written(existing: Broker, name: str) -> None:
    async with connected(existing) as upstream:
        writers = await written(upstream, name, 3)
        fetcher = Fetcher(upstream, committed=False, max_wait_ms=100)
        taken = [Taken() for _ in writers]
        subscriptions = [fetcher.subscribe(name, index, 0, 2_000, sink) for index, sink in enumerate(taken)]
        for number in range(40):
            assert await append(writers[number % 3], b"%d" % number * 50, b"more") is None
            for each in subscriptions:
                each.allow(2_000)
        for sink, writer, subscription in zip(taken, writers, subscriptions, strict=True):
            # more may be missing than the last allowance
            await sink.until_end(writer.next_offset, partial(subscription.allow, 2_000))
            found = [header for each in sink.answers for header in headers_of(each.records)]
            assert [header["base_offset"] for header in found] == list(range(0, writer.next_offset, 2))
            assert sink.answers[-1].high_watermark == writer.next_offset
        await fetcher.close()


@in_loop
async def test_the_start_of_the_log_is_told_without_records(existing: Broker, name: str) -> None:
    async with connected(existing) as upstream:
        (writer,) = await written(upstream, name, 1)
        assert await append(writer, b"a", b"b") is None
        assert await append(writer, b"c") is None
        fetcher, taken = Fetcher(upstream, committed=False, max_wait_ms=50), Taken()
        fetcher.subscribe(name, 0, 0, ROOM, taken)
        await taken.until_end(3)
        await Administration(upstream).delete_records(name, {0: 2})
        async with asyncio.timeout(10):
            while taken.answers[-1].log_start_offset != 2:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert taken.answers[-1].records == b""
        late = Taken()
        other = Fetcher(upstream, committed=False)
        other.subscribe(name, 0, 0, ROOM, late)
        assert await late.until_failed() is ErrorCode.OFFSET_OUT_OF_RANGE
        await fetcher.close()
        await other.close()


@in_loop
async def test_aborted_transactions_are_named_where_only_committed_ones_count(
    existing: Broker, name: str
) -> None:
    async with connected(existing) as upstream:
        await Administration(upstream).create_topic(name, 1, 1, {})
        await asyncio.to_thread(_transactions, existing.bootstrap, name)
        fetchers = [Fetcher(upstream, committed=committed) for committed in (True, False)]
        committed, all_records = Taken(), Taken()
        for fetcher, sink in zip(fetchers, (committed, all_records), strict=True):
            fetcher.subscribe(name, 0, 0, ROOM, sink)
        await committed.until_end(6)
        await all_records.until_end(7)
        # two batches and their markers; the record of the open transaction is after the last stable offset
        assert [answer.last_stable_offset for answer in (committed.answers[-1], all_records.answers[-1])] == [
            6,
            6,
        ]
        assert [first for _, first in committed.answers[0].aborted] == [0]
        assert all_records.answers[0].aborted == []
        one = await Administration(upstream).read(name, 0, 0, ROOM, committed=True)
        assert (one.records, one.aborted) == (committed.answers[0].records, committed.answers[0].aborted)
        for fetcher in fetchers:
            await fetcher.close()


def _transactions(bootstrap: str, topic: str) -> None:
    """Two records aborted, two committed, one left open."""
    producer = ConfluentProducer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(10)
    for count, end in ((2, producer.abort_transaction), (2, producer.commit_transaction), (1, None)):
        producer.begin_transaction()
        for _ in range(count):
            producer.produce(topic, b"value", partition=0)
        producer.flush(10)
        if end is not None:
            end(10)


@in_loop
async def test_a_topic_that_is_made_again_ends_the_subscription(existing: Broker, name: str) -> None:
    async with connected(existing) as upstream:
        (writer,) = await written(upstream, name, 1)
        assert await append(writer, b"a") is None
        fetcher, taken = Fetcher(upstream, committed=False), Taken()
        fetcher.subscribe(name, 0, 0, ROOM, taken)
        await taken.until_end(1)
        message = {"topic_names": [name], "topics": [{"name": name}], "timeout_ms": 5_000}
        await upstream.request(0, calls.DELETE_TOPICS, message)
        await Administration(upstream).create_topic(name, 1, 1, {})
        assert await taken.until_failed() is ErrorCode.UNKNOWN_TOPIC_ID
        await fetcher.close()
