"""A log of the cluster: followed while anyone listens, read separately for those behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any
from uuid import UUID

import pytest
from tests.unit.tier.test_window import Upstream

from sharecore.deadletters import DeadLetter
from sharecore.deadletters import source as source_module
from sharecore.deadletters.source import Source
from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import Reader, Slice
from sharecore.tier.upstream import log as module
from sharecore.tier.upstream.log import UpstreamLog
from sharecore.tier.upstream.sources import Sources
from sharecore.tier.upstream.window import Budget
from sharecore.upstream import EARLIEST, Fetched, ListedOffset, Truncated

LOTS = 1 << 30


class Subscription:
    """The log's requests to the fetcher."""

    def __init__(self, offset: int, room: int, sink: Any) -> None:
        self.offset, self.room, self.sink = offset, room, sink
        self.closed = False
        self.leader_epoch = -1

    def allow(self, room: int) -> None:
        self.room = room

    def seek(self, offset: int, room: int) -> None:
        self.offset, self.room = offset, room

    def was_read(self, leader_epoch: int) -> None:
        self.leader_epoch = leader_epoch

    def close(self) -> None:
        self.closed = True


class Cluster:
    """One upstream partition, with manual requests and fetches."""

    def __init__(self, ahead_bytes: int = LOTS) -> None:
        self.log = Upstream(1)
        self.subscriptions: list[Subscription] = []
        self.reads: list[int] = []
        self.committed: list[bool] = []
        self.fails: KafkaError | None = None
        self.read_fails: KafkaError | None = None
        self.sent: list[bytes] = []
        sources = Sources(self, self._fetching, self._send, Budget(LOTS), ahead_bytes=ahead_bytes)
        self.subject = UpstreamLog("t", 0, UUID(int=7), sources)
        self.told = 0

    def _fetching(self, committed: bool) -> Any:
        self.committed.append(committed)
        return self

    def _send(self, topic: str, partition: int, records: bytes) -> asyncio.Future[int]:
        self.sent.append(records)
        sent: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if self.fails is None:
            sent.set_result(3)
        else:
            sent.set_exception(self.fails)
        return sent

    def subscribe(self, topic: str, partition: int, offset: int, room: int, sink: Any) -> Subscription:
        self.subscriptions.append(Subscription(offset, room, sink))
        return self.subscriptions[-1]

    async def list_offsets(
        self, wanted: Mapping[tuple[str, int], int], *, committed: bool = False
    ) -> dict[tuple[str, int], ListedOffset | KafkaError]:
        if self.fails is not None:
            return dict.fromkeys(wanted, self.fails)
        return {
            place: ListedOffset(self.log.start if which == EARLIEST else self.log.end, -1, 0)
            for place, which in wanted.items()
        }

    async def read(
        self, topic: str, partition: int, offset: int, max_bytes: int, *, committed: bool = False
    ) -> Fetched:
        self.reads.append(offset)
        if self.read_fails is not None:
            raise self.read_fails
        return self.log.fetch(offset, 4)._replace(leader_epoch=3)

    def fetch(self, batches: int = 4) -> None:
        """Pass the next records to the subscription."""
        stream = self.subscriptions[-1]
        fetched = self.log.fetch(stream.offset, batches)
        stream.offset = fetched.end
        stream.room -= len(fetched.records)
        stream.sink.fetched(fetched)

    async def follow(self) -> None:
        await self.known()
        self.subject.on_advance(self._advanced)

    async def known(self) -> KafkaError | None:
        known: asyncio.Future[KafkaError | None] = asyncio.get_running_loop().create_future()
        self.subject.when_known(known.set_result)
        return await known

    def _advanced(self, log: object) -> None:
        self.told += 1


async def read_ahead(ahead_bytes: int) -> tuple[Cluster, Reader]:
    """Return a log that is followed and being read."""
    cluster = Cluster(ahead_bytes)
    await cluster.follow()
    reader = Reader(cluster.subject, lambda: None)
    reader.read(cluster.log.start, LOTS)
    await asyncio.sleep(0.01)
    return cluster, reader


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


def test_it_is_not_known_before_the_cluster_has_told() -> None:
    async def test() -> None:
        cluster = Cluster()
        assert await cluster.known() is None
        assert cluster.subject.start_offset == cluster.log.start
        assert cluster.subject.high_watermark == cluster.log.end
        cluster.fails = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "no leader")
        error = await cluster.known()
        assert error is not None
        assert error.code is ErrorCode.KAFKA_STORAGE_ERROR, "clients try that again"
        assert "no leader" in error.message

    run(test)


def test_a_reader_gets_what_it_misses_as_soon_as_it_comes() -> None:
    async def test() -> None:
        cluster = Cluster()
        await cluster.follow()
        ready = asyncio.Event()
        reader = Reader(cluster.subject, ready.set)
        start = cluster.log.start
        assert reader.read(start, LOTS) is None
        await ready.wait()
        found = reader.read(start, LOTS)
        assert found is not None
        assert found.batches == [(first, last) for first, last, _ in cluster.log.batches[:4]]
        following = found.batches[-1][1] + 1
        assert cluster.subscriptions[0].offset == following, "who begins is followed"
        ready.clear()
        assert reader.read(following, LOTS) is None
        assert not ready.is_set()
        cluster.fetch(100)
        assert ready.is_set()
        rest = reader.read(following, LOTS)
        assert rest is not None
        assert len(rest.batches) == len(cluster.log.batches) - 4
        assert cluster.reads == [start], "nothing was read twice"

    run(test)


def test_who_is_behind_is_read_for_once_and_does_not_disturb_the_others() -> None:
    async def test() -> None:
        cluster = Cluster()
        await cluster.follow()
        middle = cluster.log.batches[30][0]
        first = Reader(cluster.subject, lambda: None)
        first.read(middle, LOTS)
        await asyncio.sleep(0.01)
        assert first.read(middle, LOTS) is not None
        assert cluster.subscriptions[0].leader_epoch == 3
        at = cluster.subscriptions[0].offset
        came = asyncio.Event()
        second = Reader(cluster.subject, came.set)
        assert second.read(cluster.log.start, LOTS) is None
        await came.wait()
        assert second.read(cluster.log.start, LOTS) is not None
        assert cluster.reads == [middle, cluster.log.start]
        assert cluster.subscriptions[0].offset == at

    run(test)


def test_it_reads_ahead_so_far_and_goes_on_when_it_was_read() -> None:
    async def test() -> None:
        cluster, reader = await read_ahead(600)
        while cluster.subscriptions[0].room > 0:
            cluster.fetch(1)
        found = reader.read(cluster.log.start, LOTS)
        assert found is not None
        assert cluster.subscriptions[0].room > 0

    run(test)


def test_a_little_room_is_not_asked_for() -> None:
    """Otherwise read-ahead would split into ever smaller pieces, each of which costs a request."""

    async def test() -> None:
        cluster, reader = await read_ahead(2_000)
        stream = cluster.subscriptions[0]
        size = len(cluster.log.fetch(stream.offset, 1).records)
        while stream.room > 0:
            cluster.fetch(1)
        assert cluster.subject.size_bytes >= 1_500 - size
        while not stream.room:
            offset = cluster.subject._read_to
            assert reader.read(offset, size) is not None
        assert stream.room >= 500

    run(test)


def test_who_listens_hears_of_new_records_and_of_a_start_that_moved() -> None:
    async def test() -> None:
        cluster = Cluster()
        await cluster.follow()
        stream, subject = cluster.subscriptions[0], cluster.subject
        end = cluster.log.end
        stream.sink.fetched(Fetched(b"", end, end, end, end, cluster.log.start, []))
        assert cluster.told == 0, "nothing has changed"
        stream.sink.fetched(Fetched(b"", end, end, end, end, cluster.log.start + 5, []))
        assert (cluster.told, subject.start_offset) == (1, cluster.log.start + 5)
        stream.sink.fetched(Fetched(b"", end, end, end + 2, end, cluster.log.start, []))
        assert (cluster.told, subject.high_watermark) == (2, end + 2)
        assert subject.start_offset == cluster.log.start + 5, "it never goes back"
        with pytest.raises(KafkaError) as error:
            subject.read(cluster.log.start, LOTS)
        assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE

    run(test)


@pytest.mark.parametrize("by", ["a read", "a question"])
def test_who_listens_hears_of_a_start_that_moved_however_that_was_found_out(by: str) -> None:
    """No later fetch would reveal it: it finds the start as known."""

    async def test() -> None:
        cluster = Cluster()
        await cluster.follow()
        subject, heard = cluster.subject, list[int]()
        subject.on_advance(lambda log: heard.append(log.start_offset))
        cluster.log.start = start = cluster.log.batches[3][0]
        if by == "a read":
            Reader(subject, lambda: None).read(cluster.log.batches[30][0], LOTS)
            await asyncio.sleep(0.01)
        else:
            subject._sources.find_limits(subject, lambda error: None)
            await asyncio.sleep(0.01)
        assert heard == [start]

    run(test)


def test_nobody_listens_nothing_is_fetched() -> None:
    async def test() -> None:
        cluster = Cluster()
        await cluster.follow()
        cluster.subject.off_advance(cluster._advanced)
        assert cluster.subscriptions[0].closed
        assert cluster.subject.size_bytes == 0

    run(test)


def test_a_log_that_was_cut_off_says_so_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_RETRY_S", 0.0)

    async def test() -> None:
        cluster = Cluster()
        await cluster.follow()
        cluster.log.end = cluster.log.batches[10][1] + 1
        cluster.subscriptions[0].sink.failed(Truncated("t", 0, cluster.log.end))
        await asyncio.sleep(0.02)
        assert "was truncated" in caplog.text
        assert cluster.subject.high_watermark == cluster.subscriptions[0].offset == cluster.log.end

    run(test)


@pytest.mark.parametrize("found", ["by its fetches", "by a read", "by who follows it anew"])
def test_a_log_is_no_longer_than_the_cluster_says_though_nobody_could_say_where_it_was_cut_off(
    found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a reader at the end would wait for lost records."""
    monkeypatch.setattr(module, "_RETRY_S", 0.0)

    async def test() -> None:
        cluster = Cluster()
        await cluster.follow()
        subject = cluster.subject
        before, cluster.log.end = cluster.log.end, cluster.log.batches[10][1] + 1
        refused = KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if found == "by its fetches":
            cluster.subscriptions[0].sink.failed(refused)
        elif found == "by a read":
            cluster.read_fails = refused
            Reader(subject, lambda: None).read(before - 1, LOTS)
        else:
            subject.off_advance(cluster._advanced)
            await cluster.follow()
        await asyncio.sleep(0.02)
        assert subject.high_watermark == cluster.subscriptions[-1].offset == cluster.log.end
        cluster.log.end = cluster.log.start
        assert await cluster.known() is None
        assert subject.high_watermark > cluster.log.end, "a new leader may lag a little"

    run(test)


def test_nobody_waits_for_records_that_are_lost() -> None:
    async def test() -> None:
        cluster = Cluster()
        await cluster.follow()
        stream, came = cluster.subscriptions[0], asyncio.Event()
        stream.offset = end = cluster.log.batches[40][0]
        reader = Reader(cluster.subject, came.set)
        assert reader.read(end, LOTS) is None
        stream.sink.failed(Truncated("t", 0, end))
        await came.wait()
        assert reader.read(end, LOTS) == Slice(b"", [])

    run(test)


def test_who_waits_where_it_is_fetched_gets_it_though_that_goes_on_elsewhere() -> None:
    async def test() -> None:
        cluster = Cluster()
        await cluster.follow()
        first, third, fifth = (cluster.log.batches[index][0] for index in (0, 20, 40))
        begun, came = asyncio.Event(), asyncio.Event()
        Reader(cluster.subject, begun.set).read(first, LOTS)
        await begun.wait()
        waits_at = cluster.subscriptions[0].offset
        assert first < waits_at < third
        reader = Reader(cluster.subject, came.set)
        assert reader.read(waits_at, LOTS) is None
        Reader(cluster.subject, lambda: None).read(fifth, LOTS)
        await came.wait()
        found = reader.read(waits_at, LOTS)
        assert found is not None
        assert found.batches[0][0] == cluster.log.batches[4][0]

    run(test)


def test_those_who_read_what_is_committed_have_a_window_of_their_own() -> None:
    async def test() -> None:
        cluster = Cluster()
        committed = cluster.subject.isolate(committed=True)
        assert committed is not cluster.subject
        assert cluster.subject.isolate(committed=True) is committed
        assert cluster.subject.isolate(committed=False) is cluster.subject
        assert committed.isolate(committed=False) is cluster.subject
        committed.on_advance(lambda log: None)
        assert cluster.committed == [True]
        offset = cluster.log.start
        cluster.subscriptions[0].offset = offset
        fetched = cluster.log.fetch(offset, 3)._replace(last_stable_offset=offset + 2, aborted=[(9, offset)])
        cluster.subscriptions[0].sink.fetched(fetched._replace(end=offset + 2))
        assert committed.last_stable_offset == offset + 2
        assert committed.aborted(offset, offset + 2) == [(9, offset)]

    run(test)


@pytest.mark.parametrize("trouble", [False, True])
def test_a_letter_finds_its_record_though_nobody_follows_the_log_that_has_it(
    trouble: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group that reads committed records follows another log."""
    monkeypatch.setattr(source_module, "_RETRY_SECONDS", 0.01)

    async def test() -> None:
        cluster = Cluster()
        if trouble:
            cluster.fails = KafkaError(ErrorCode.NETWORK_EXCEPTION)
        ready = asyncio.Event()
        source = Source(cluster.subject, ready.set, asyncio.get_running_loop().call_later)
        first = cluster.log.start
        letters = [DeadLetter(first, first, 1, why=1)]
        tries = 0
        while (found := source.read(letters)) is None:
            await asyncio.wait_for(ready.wait(), 5)
            ready.clear()
            tries += 1
            if tries == 3:
                cluster.fails = None
        assert found[0][:8] == first.to_bytes(8, "big")
        assert tries >= (4 if trouble else 2), tries
        gone = [DeadLetter(cluster.log.end + 5, cluster.log.end + 5, 1, why=1)]
        while (found := source.read(gone)) is None:
            await asyncio.wait_for(ready.wait(), 5)
            ready.clear()
        assert found == (b"", cluster.log.end + 6)

    run(test)


def test_a_letter_finds_its_record_though_who_follows_the_log_has_not_heard_of_it_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another node has learned of it and acquired it, while this node's fetch is still in flight."""
    monkeypatch.setattr(source_module, "_RETRY_SECONDS", 0.01)

    async def test() -> None:
        cluster = Cluster()
        cluster.subject.on_advance(lambda log: None)
        cluster.subject.set_limits(cluster.log.start, cluster.log.start)
        ready = asyncio.Event()
        source = Source(cluster.subject, ready.set, asyncio.get_running_loop().call_later)
        last = cluster.log.end - 1
        while (found := source.read([DeadLetter(last, last, 1, why=1)])) is None:
            await asyncio.wait_for(ready.wait(), 5)
            ready.clear()
        assert found[1] == cluster.log.end
        assert found[0]

    run(test)


def test_who_has_asked_where_a_log_ends_before_following_it_knows_it_then() -> None:
    """Even if another group follows its committed records."""

    async def test() -> None:
        cluster = Cluster()
        committed = cluster.subject.isolate(committed=True)
        assert isinstance(committed, UpstreamLog)
        committed.on_advance(lambda log: None)
        committed.set_limits(cluster.log.start, cluster.log.start + 1)
        assert await cluster.known() is None
        cluster.subject.on_advance(lambda log: None)
        assert (cluster.subject.is_known, cluster.subject.high_watermark) == (True, cluster.log.end)

    run(test)


def test_dead_letters_are_sent_and_their_fate_is_told() -> None:
    async def test() -> None:
        cluster = Cluster()
        await cluster.subject.append(b"letters", now_ms=1).ticket
        assert cluster.sent == [b"letters"]
        cluster.fails = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        with pytest.raises(KafkaError) as error:
            await cluster.subject.append(b"letters", now_ms=1).ticket
        assert error.value.code is ErrorCode.NOT_ENOUGH_REPLICAS

    run(test)
