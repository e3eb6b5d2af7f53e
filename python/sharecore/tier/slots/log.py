"""One slot's partition of the state topic: claimed, read, and written only by this node."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from sharecore.clock import Clock
from sharecore.coordinator_log.topic_log import Record
from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import Appended, Ticket
from sharecore.tier.slots.claims import Claim, SlotHistory, claim_record, release_record
from sharecore.tier.slots.intrusion import OwnersView, read_between
from sharecore.tier.upstream.batches import Batch, Scanned, last_batch
from sharecore.tier.upstream.replay import Reading, bounds_of, replay, start_of
from sharecore.upstream import Fenced, NotWritten, Producer
from sharecore.waiting import Done

logger = logging.getLogger("sharecore.tier")

_CLAIM_ATTEMPTS = 5
NOT_OURS = KafkaError(ErrorCode.NOT_COORDINATOR, "Another node has this slot.")


class Right(Enum):
    """Right of a node to claim a slot."""

    ANY = "any"
    """No live owner: the group's leader knows that no node may still act as one."""
    OWN = "own"
    """This node owned it last, or it was released for this node, or it has no owner."""
    GIVEN = "given"
    """Released for this node by the owner before the next claim."""


class Taken(KafkaError):
    """Another node owns the slot.

    Attributes:
        claim: that node's claim.
    """

    def __init__(self, name: str, claim: Claim) -> None:
        super().__init__(
            ErrorCode.NOT_COORDINATOR, f"{name} is node {claim.node_id}'s, under epoch {claim.epoch}"
        )
        self.claim = claim


class Keeping(Reading, Protocol):
    """Requests about the state topic (`upstream.Administration`)."""

    async def delete_records(self, topic: str, before: Mapping[int, int]) -> dict[int, int | KafkaError]:
        """Delete the records before an offset of each partition; return new start offsets, or errors."""


class Writer(Protocol):
    """Compare and append (`upstream.ExclusiveWriter`)."""

    next_offset: int
    producer: Producer | None

    async def renew(self) -> Producer:
        """Return a producer of the next epoch; it fences others once it writes."""

    async def open(self, next_offset: int, producer: Producer | None = None) -> Producer:
        """Take over the partition; a first append at another offset than `next_offset` closes the writer."""

    def append(self, records: Sequence[Record], now_ms: int, done: Done) -> int:
        """Append a batch; return its base offset, before it is durable."""

    def close(self, error: KafkaError) -> None:
        """Fail all pending appends, and refuse further ones."""

    def on_closed(self, callback: Callable[[KafkaError], None]) -> None:
        """Call `callback` once when the writer is closed."""

    def on_intrusion(self, callback: Callable[[int, int, int], Awaitable[bool]]) -> None:
        """Set the judge of displaced batches; without one the writer is closed."""


class Read:
    """Records read from a slot's partition.

    Args:
        name: the partition's name, for errors.
        start: start offset of the partition.

    Attributes:
        end: the next offset to read.
        last: the batch before `end`; None without one.
        producer: producer of the claim; None to request one with the claim.
    """

    def __init__(self, name: str, start: int) -> None:
        self.history = SlotHistory(name)
        self.records: list[Scanned] = []
        self.start = self.end = start
        self.last: Batch | None = None
        self.producer: Producer | None = None

    def take(self, batches: bytes) -> None:
        """Process the next batches; raise ValueError if a valid one cannot be read."""
        self.records += self.history.take(batches)
        self.last = last_batch(batches) or self.last
        if self.last is not None:
            self.end = self.last.last_offset + 1


class _Claiming(NamedTuple):
    """A pending claim.

    Attributes:
        read: the records before it.
        epoch: its epoch.
        least, right: arguments of `SlotLog.claim`.
    """

    read: Read
    epoch: int
    least: int
    right: Right

    def follows(self, before: Batch | None) -> bool:
        """Return whether the last batch read is unchanged."""
        return before == self.read.last


class SlotLog:
    """A slot's partition.

    Args:
        topic: the state topic.
        index: partition index: the slot's number.
        lost: called if another writer has appended, or the contents are uncertain.

    Attributes:
        epoch: epoch of this node's last claim; -1 before the first.
        start_offset, end_offset, high_watermark: log offsets; only `end_offset` includes pending writes.
        claims: offsets of this node's claims, ascending.
        owned: whether this node may write it.
    """

    def __init__(
        self,
        topic: str,
        index: int,
        node_id: int,
        reading: Keeping,
        writer: Writer,
        clock: Clock,
        lost: Callable[[SlotLog, KafkaError], object],
    ) -> None:
        self.topic, self.index = topic, index
        self.epoch = -1
        self.start_offset = self.end_offset = self.high_watermark = 0
        self.claims: list[int] = []
        self.owned = False
        self.void = 0
        self.was_released = False
        self._node_id = node_id
        self._reading, self._writer = reading, writer
        self._clock = clock
        self._lost = lost
        self._under_way: set[Ticket] = set()
        self._claiming: _Claiming | None = None
        writer.on_closed(self._closed)
        writer.on_intrusion(self._counts)

    @property
    def name(self) -> str:
        """Topic and partition."""
        return f"{self.topic}-{self.index}"

    async def claim(self, epoch: int, right: Right = Right.ANY, read: Read | None = None) -> list[Scanned]:
        """Claim the slot: records of other nodes are void from here on.

        Args:
            epoch: minimum epoch of the claim; it is also above that of every earlier claim.
            right: the right to claim it.
            read: the records read so far. Later ones are read after the claim; if the partition has changed,
                everything is read again.

        Returns:
            The valid records, in order.

        Raises:
            Taken: another node owns it.
            KafkaError: the cluster cannot be reached, or others keep claiming the slot.
            ValueError: a record cannot be read.
        """
        for _ in range(_CLAIM_ATTEMPTS):
            found, read = read or await self._read(), None
            last = found.history.claim
            if last is not None and not self._may_claim(found.history, epoch, right):
                raise Taken(self.name, last)
            await self._writer.open(found.end, found.producer)
            claimed = max(epoch, 0 if last is None else last.epoch + 1)
            self._claiming = _Claiming(found, claimed, epoch, right)
            try:
                await self._append_claim(claimed)
            except Fenced as error:
                logger.info("%s: retrying the claim, as another writer came first: %s", self.name, error)
                continue
            finally:
                self._claiming = None
            self.start_offset, self.claims, self.void = found.start, [found.end], found.history.void
            self.end_offset = self.high_watermark = found.end + 1
            self.epoch, self.owned = claimed, True
            self.was_released = last is None or found.history.release is not None
            return found.records
        raise KafkaError(ErrorCode.NOT_COORDINATOR, f"{self.name}: others keep claiming this slot")

    async def find_start(self) -> int:
        """Return the start offset of the partition; raise KafkaError."""
        return await start_of(self._reading, self.topic, self.index)

    async def find_recent(self, records: int) -> int:
        """Return the offset of the most recent `records` records; raise KafkaError."""
        start, end = await bounds_of(self._reading, self.topic, self.index)
        return max(start, end - records)

    async def renew_producer(self) -> Producer:
        """Return a producer for a later claim; the owner keeps writing with its own until then.

        Raises:
            KafkaError: a permission is missing, or the cluster does not answer.
        """
        return await self._writer.renew()

    async def _read(self) -> Read:
        start, end = await bounds_of(self._reading, self.topic, self.index)
        read = Read(self.name, start)
        async for batches in replay(self._reading, self.topic, self.index, start, end):
            read.take(batches)
        # after all records that existed when this began
        read.end = max(read.end, end)
        return read

    def is_given(self, read: Read, epoch: int) -> bool:
        """Return whether the slot was released for this node by the owner before a claim's epoch."""
        return read.history.claim is not None and self._may_claim(read.history, epoch, Right.GIVEN)

    def _may_claim(self, history: SlotHistory, epoch: int, right: Right) -> bool:
        release, last = history.release, history.claim
        given = release is not None and release.next_node_id == self._node_id
        if right is Right.GIVEN:
            return given and release is not None and release.epoch >= epoch - 1
        own = last is not None and last.node_id == self._node_id and release is None
        # a claim of this node followed the last one: the cluster has lost it
        lost = last is not None and last.epoch < self.epoch
        return right is Right.ANY or own or given or lost

    async def _counts(self, expected: int, found: int, sequence: int) -> bool:
        """Return whether this node's batch is valid although it is after the expected offset.

        Raises:
            KafkaError: the batches before it cannot be read.
        """
        claiming, place = self._claiming, (self.topic, self.index)
        try:
            if claiming is not None:
                begin = expected if claiming.read.last is None else expected - 1
                as_read = await read_between(
                    self._reading, place, begin, expected, found, claiming.follows, claiming.read.take
                )
                claiming.read.end = found
                last = claiming.read.history.claim
                may_claim = last is None or self._may_claim(
                    claiming.read.history, claiming.least, claiming.right
                )
                return as_read and may_claim and (last is None or last.epoch < claiming.epoch)
            assert self._writer.producer is not None
            own = Claim(self.epoch, self._node_id, self._writer.producer, self.claims[-1])
            view = OwnersView(self.name, own, sequence)
            as_written = await read_between(
                self._reading, place, expected - 1, expected, found, view.follows, view.take
            )
        except ValueError as error:
            logger.warning("%s: cannot read the batches before a displaced batch: %s", self.name, error)
            return False
        return as_written and view.holds

    async def release(self, next_node_id: int) -> None:
        """Release the slot after all pending writes, so that another node may claim it at once.

        Raises:
            KafkaError: the release was not written; the slot is given up nevertheless.
        """
        await self.idle()
        self.owned = False
        now_ms = self._clock.now_ms()
        try:
            await self._append_mark(release_record(self.index, self.epoch, next_node_id, now_ms), now_ms)
        finally:
            self._writer.close(NOT_OURS)

    def give_up(self) -> None:
        """Give up the slot so that it is claimed and read again: reported results are not in the log."""
        if self.owned:
            self.owned = False
            error = KafkaError(ErrorCode.NOT_COORDINATOR, f"{self.name}: writes were abandoned")
            self._writer.close(error)
            self._lost(self, error)

    def resign(self) -> None:
        """Stop writing; pending writes fail with NOT_COORDINATOR."""
        self.owned = False
        self._writer.close(NOT_OURS)

    def append(self, records: Sequence[Record], now_ms: int) -> Appended:
        """Append records of a coordinator atomically.

        Raises:
            KafkaError: NOT_COORDINATOR if this node does not own the slot.
        """
        if not self.owned:
            raise NOT_OURS
        ticket = Ticket(0)
        self._under_way.add(ticket)
        ticket.add_done_callback(self._under_way.discard)
        base = self._writer.next_offset
        end = self.end_offset = base + len(records)

        def done(error: KafkaError | None) -> None:
            if error is None:
                self.high_watermark = max(self.high_watermark, end)
            else:
                self.end_offset = max(self.high_watermark, self._writer.next_offset)
            ticket.settle(None if error is None else _translated(error))

        try:
            self._writer.append(records, now_ms, done)
        except KafkaError as error:
            self.end_offset = base
            self._under_way.discard(ticket)
            raise _translated(error) from error
        return Appended(base, end - 1, -1, self.start_offset, ticket)

    async def idle(self) -> None:
        """Wait until no write is pending."""
        while self._under_way:
            with contextlib.suppress(KafkaError):
                await next(iter(self._under_way))

    async def renew_claim(self) -> None:
        """Write the claim again, so that older records can be deleted later.

        Raises:
            KafkaError: the claim was not written.
        """
        self.claims.append(await self._append_claim(self.epoch))

    async def delete_before(self, offset: int) -> None:
        """Delete obsolete records up to a claim, as records are valid only after one.

        Raises:
            KafkaError: the cluster refuses, or cannot be reached.
        """
        before = max((claim for claim in self.claims if claim <= offset), default=0)
        if before <= self.start_offset or not self.owned:
            return
        found = (await self._reading.delete_records(self.topic, {self.index: before}))[self.index]
        if isinstance(found, KafkaError):
            raise found
        self.start_offset = found
        self.claims = [claim for claim in self.claims if claim >= before]

    async def _append_claim(self, epoch: int) -> int:
        now_ms = self._clock.now_ms()
        return await self._append_mark(claim_record(self.index, epoch, self._node_id, now_ms), now_ms)

    async def _append_mark(self, record: Record, now_ms: int) -> int:
        appended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(error: KafkaError | None) -> None:
            if appended.done():
                return
            if error is None:
                appended.set_result(None)
            else:
                appended.set_exception(error)

        offset = self._writer.append([record], now_ms, done)
        self.end_offset = offset + 1
        await appended
        self.high_watermark = max(self.high_watermark, offset + 1)
        return offset

    def _closed(self, error: KafkaError) -> None:
        if self.owned:
            self.owned = False
            self._lost(self, error)


def _translated(error: KafkaError) -> KafkaError:
    """Return the coordinators' error: retriable if nothing was written, else the slot is lost."""
    if isinstance(error, NotWritten):
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, error.message)
    return KafkaError(ErrorCode.NOT_COORDINATOR, error.message)
