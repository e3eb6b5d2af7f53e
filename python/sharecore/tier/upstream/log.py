"""One upstream partition as read by share partitions: a window of its bytes, filled on demand."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Unpack
from uuid import UUID

from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import Appended, Found, Log, Slice, Ticket
from sharecore.storage.log import ReadApart, ReadSpec
from sharecore.tier.upstream.sources import Sources, Subscription, passing
from sharecore.tier.upstream.window import Window
from sharecore.upstream import Fetched, ListedOffset, Trouble, Truncated
from sharecore.waiting import Done, settle

logger = logging.getLogger("sharecore.tier")

_MAX_TIMESTAMP = -3
_RETRY_S = 1.0
_ROOM_LEAST = 1 / 4
"""Minimum fraction of the read-ahead fetched at once."""


class UpstreamLog(Log):
    """A log of the cluster.

    While it has listeners (`on_advance`) it is fetched continuously, ahead of its readers. Other records that
    are not cached are read on demand. Batches are never decoded.

    Args:
        committed: whether to read only up to the last stable offset, with the list of aborted transactions.
    """

    __slots__ = (
        "_fills",
        "_isolated",
        "_known",
        "_read_to",
        "_sources",
        "_streamed",
        "_subscription",
        "_trouble",
        "_window",
        "committed",
    )

    def __init__(
        self, topic: str, index: int, topic_id: UUID, sources: Sources, *, committed: bool = False
    ) -> None:
        super().__init__(topic, index, topic_id)
        self.committed = committed
        self._sources = sources
        self._window = Window(sources.budget)
        self._subscription: Subscription | None = None
        self._known = False
        self._read_to = 0
        self._streamed = False
        self._fills: dict[int, list[Callable[[ReadApart], object]]] = {}
        self._isolated: UpstreamLog | None = None
        self._trouble: Trouble | None = None

    # start and end offset

    def isolate(self, *, committed: bool) -> Log:
        if committed == self.committed:
            return self
        if self._isolated is None:
            other = UpstreamLog(self.topic, self.index, self.topic_id, self._sources, committed=committed)
            self._isolated, other._isolated = other, self
        return self._isolated

    @property
    def is_known(self) -> bool:
        return self._known and self._subscription is not None

    def when_known(self, done: Done) -> None:
        if self.is_known:
            done(None)
        else:
            self.ask_limits(done)

    def ask_limits(self, done: Done) -> None:
        self._sources.find_limits(self, done)

    def set_limits(self, start: int, end: int) -> None:
        """Set the offsets returned by the cluster."""
        if not self.is_known and end < self.high_watermark:
            # previously known offsets are invalid, or were not followed since
            self.truncate(end)
        self._known = True
        if self._moved(start, end):
            self.notify()

    def _moved(self, start: int, end: int) -> bool:
        """Advance the offsets; only `truncate` moves them back, as a new leader may lag a little."""
        before = self.start_offset, self.high_watermark
        self.start_offset = max(self.start_offset, start)
        self.high_watermark = max(self.high_watermark, end)
        self.last_stable_offset = self.end_offset = self.high_watermark
        return before != (self.start_offset, self.high_watermark)

    # following

    def on_advance(self, callback: Callable[[Log], object]) -> None:
        super().on_advance(callback)
        if self._subscription is None:
            self._follow()

    def _follow(self) -> None:
        fetching = self._sources.fetching(self.committed)
        self._read_to, self._streamed = self.high_watermark, False
        try:
            self._subscription = fetching.subscribe(
                self.topic, self.index, self._read_to, self._sources.ahead_bytes, self
            )
        except KafkaError as error:
            # the topic is being deleted: listeners are about to be notified
            logger.info("cannot follow %s-%d: %s", self.topic, self.index, error)

    def off_advance(self, callback: Callable[[Log], object]) -> None:
        super().off_advance(callback)
        if not self.has_listeners:
            self.close()

    def close(self) -> None:
        """Stop following, and drop cached records."""
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None
        self._known = False
        self._window.clear()
        fills, self._fills = self._fills, {}
        for waiting in fills.values():
            settle(waiting, None)

    def fetched(self, fetched: Fetched, /) -> None:
        """Process fetched records; called by the fetcher."""
        if self._trouble is not None:
            self._trouble.is_over()
            self._trouble = None
        self._window.add(fetched)
        end = fetched.last_stable_offset if self.committed else fetched.high_watermark
        moved = self._moved(fetched.log_start_offset, max(end, fetched.end))
        self._filled()
        self._allow()
        if moved or fetched.records:
            self.notify()

    def failed(self, error: KafkaError, /) -> None:
        """Handle the end of fetching; called by the fetcher."""
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._known = False
        else:
            self._complain(error)
        if isinstance(error, Truncated):
            logger.error("%s", error)
            self.truncate(error.end_offset)
        asyncio.get_running_loop().call_later(_RETRY_S, self._fetch_again)

    def _complain(self, error: KafkaError) -> None:
        """Log a read failure once while it lasts."""
        if self._trouble is None:
            self._trouble = Trouble(logger, f"{self.topic}-{self.index} cannot be read")
        self._trouble.goes_on(error)

    def truncate(self, end_offset: int) -> None:
        """Truncate the log: the cluster has lost the records after an offset."""
        self._window.clear()
        self.high_watermark = min(self.high_watermark, end_offset)
        self.last_stable_offset = self.end_offset = self.high_watermark
        # waiting reads may have no records left
        fills, self._fills = self._fills, {}
        for waiting in fills.values():
            settle(waiting, None)

    def _fetch_again(self) -> None:
        def located(error: KafkaError | None) -> None:
            if self._subscription is not None:
                offset = min(max(self._subscription.offset, self.start_offset), self.high_watermark)
                self._seek(offset)
                self.notify()

        self._sources.find_limits(self, located)

    def _seek(self, offset: int) -> None:
        """Continue at another offset; waiting reads get a separate read."""
        stream = self._subscription
        assert stream is not None
        before = stream.offset
        stream.seek(offset, self._sources.ahead_bytes)
        if before != offset and before in self._fills:
            self._begin_fill(before)

    def _allow(self) -> None:
        """Grant read-ahead to the reader."""
        if self._subscription is not None:
            ahead_bytes = self._sources.ahead_bytes
            room = ahead_bytes - self._window.bytes_from(self._read_to)
            # wait for a larger amount, so that it is not filled by many small fetches
            self._subscription.allow(room if room >= ahead_bytes * _ROOM_LEAST else 0)

    # reading

    def read_cached(self, offset: int, max_bytes: int, **spec: Unpack[ReadSpec]) -> Slice | None:
        self._check(offset)
        if spec.get("limit") is None:
            spec["limit"] = self.high_watermark
        found = self._window.read(offset, max_bytes, **spec)
        if found is not None and found.batches:
            self._read_to, self._streamed = found.batches[-1][1] + 1, True
            self._allow()
        return found

    def read(self, offset: int, max_bytes: int, **spec: Unpack[ReadSpec]) -> Slice:
        """Read as `read_cached` does; missing records are fetched, and listeners are notified."""
        found = self.read_cached(offset, max_bytes, **spec)
        if found is None:
            self.read_apart(offset, max_bytes, lambda _: self.notify())
            return Slice(b"", [])
        return found

    def read_apart(
        self,
        offset: int,
        max_bytes: int,
        ended: Callable[[ReadApart], object],
        *,
        whole: bool = False,
        **spec: Unpack[ReadSpec],
    ) -> int:
        """Fill the window from `offset` on."""

        def end(found: ReadApart) -> None:
            if whole and found is None:
                try:
                    found = self.read_cached(offset, max_bytes, **spec)
                except KafkaError as error:
                    found = error
                # the window did not keep the records, or they could not be fetched: the client asks again
                found = Slice(b"", []) if found is None else found
            ended(found)

        waiting = self._fills.setdefault(offset, [])
        waiting.append(end)
        if len(waiting) == 1:
            self._begin_fill(offset)
        return max_bytes

    def _begin_fill(self, offset: int) -> None:
        stream = self._subscription
        if stream is not None and offset == stream.offset:
            self._read_to = offset
            stream.allow(self._sources.ahead_bytes)
            return
        # no reader used the fetched records: continue from this reader's offset
        leads = stream is not None and (offset > stream.offset or not self._streamed)
        self._sources.run(asyncio.get_running_loop().create_task(self._fill(offset, leads=leads)))

    async def _fill(self, offset: int, *, leads: bool) -> None:
        """Read once; a fetch would also wait for new records."""
        stream = self._subscription
        try:
            fetched = await self._sources.asking.read(
                self.topic, self.index, offset, self._sources.ahead_bytes, committed=self.committed
            )
            self._window.add(fetched)
            if stream is not None and stream is self._subscription:
                stream.was_read(fetched.leader_epoch)
            moved = self._moved(fetched.log_start_offset, 0)
            if leads and self._subscription is not None:
                self._read_to, self._streamed = offset, True
                self._seek(fetched.end)
                self._allow()
            if moved:
                self.notify()
        except KafkaError as error:
            self._complain(error)
            await asyncio.sleep(_RETRY_S)
            if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                self._known = False
                self._fetch_again()
        settle(self._fills.pop(offset, ()), None)

    def _filled(self) -> None:
        for offset in [each for each in self._fills if self._window.find(each) is not None]:
            settle(self._fills.pop(offset), None)

    def _check(self, offset: int) -> None:
        if not self.start_offset <= offset <= self.high_watermark:
            text = f"{self.topic}-{self.index} has offsets {self.start_offset} to {self.high_watermark}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{text}, not {offset}")

    def readable_bytes(self, offset: int, max_bytes: int, *, limit: int | None = None) -> int:
        self._check(offset)
        end = self.high_watermark if limit is None else limit
        found = self._window.readable_bytes(offset, max_bytes, limit=end)
        return max_bytes if found is None else found

    def aborted(self, first: int, end: int) -> list[tuple[int, int]]:
        return self._window.aborted(first, end)

    def find_offset(self, timestamp: int) -> asyncio.Future[Found | None]:
        return asyncio.ensure_future(self._find_offset(timestamp))

    def find_max_timestamp(self) -> asyncio.Future[Found | None]:
        return asyncio.ensure_future(self._find_offset(_MAX_TIMESTAMP))

    async def _find_offset(self, timestamp: int) -> Found | None:
        place = self.topic, self.index
        found = (await self._sources.asking.list_offsets({place: timestamp}))[place]
        if isinstance(found, KafkaError):
            raise passing(found)
        assert isinstance(found, ListedOffset)
        return None if found.offset < 0 else (found.offset, found.timestamp, found.leader_epoch)

    @property
    def size_bytes(self) -> int:
        """Number of cached bytes."""
        return self._window.size_bytes

    # writing dead letters

    def append(self, records: bytes, *, now_ms: int) -> Appended:
        """Send a record batch; its offset is not reported."""
        ticket = Ticket(0)

        def sent(sending: asyncio.Future[int]) -> None:
            error = None if sending.cancelled() else sending.exception()
            if isinstance(error, KafkaError) or (error is None and not sending.cancelled()):
                ticket.settle(error)
            else:
                ticket.settle(KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error or "the node stops")))

        self._sources.send(self.topic, self.index, records).add_done_callback(sent)
        return Appended(-1, -1, -1, self.start_offset, ticket)

    def configure(self, **settings: object) -> None:
        """Do nothing: the cluster decides what a topic accepts."""
