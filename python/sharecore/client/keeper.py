"""Renews acquisition locks: of records in a handler, and of buffered ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Protocol

from sharecore.client.errors import LeaseLost
from sharecore.client.fetching.batch import Part
from sharecore.client.fetching.buffer import Buffer
from sharecore.client.fetching.lease import AcknowledgeType, Lease, Span
from sharecore.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

_RENEW_AT = 0.5
_TICKS_A_LOCK = 8
_TICK_MIN_MS = 20
_RAN_OUT = KafkaError(ErrorCode.INVALID_RECORD_STATE, "the acquisition lock expired")


class Owner(Protocol):
    """The consumer, as the keeper sees it."""

    lock_ms: int
    buffer: Buffer

    def now_ms(self) -> int:
        """Return the client's monotonic time in milliseconds."""

    def idle_ms(self) -> float:
        """Return the milliseconds since the application last asked for records."""

    def expire(self) -> None:
        """Give up the leases whose locks have expired."""

    def acknowledge_parts(self, parts: Iterable[Part], kind: AcknowledgeType) -> None:
        """Mark parts of leases; they are sent by `send`."""

    def send(self, leases: Iterable[Lease]) -> None:
        """Send what is marked of some leases."""

    @property
    def leased(self) -> bool:
        """Whether any record is acquired."""


def _ends(part: Part) -> int | None:
    return part.lease.lock_until(part.low, part.high)


def _is_markable(part: Part) -> bool:
    """Return False if the lock of a waiting record is lost, as after a refused renewal."""
    return part.lease.accepts_marks(part.low, part.high)


class Kept:
    """Records whose locks are renewed while a block of code runs; created by `ShareConsumer.lease`.

    `async with` yields this object; it raises `LeaseLost` at once if a lock is already lost. When a lock is
    lost later, the block's task is cancelled, the block raises `LeaseLost`, and records still held are
    released. Otherwise, records that the block did not acknowledge are accepted when it ends, or acknowledged
    with `on_error` when it raises.

    Args:
        keeper: the renewer.
        parts: the parts of leases.
        max_ms: no renewal starts later than this after the start of the block.
        on_error: the acknowledge type if the block raises.
        cancel: whether losing a lock cancels the block; `lost` is set in any case.
    """

    def __init__(
        self, keeper: Keeper, parts: Sequence[Part], max_ms: int, on_error: AcknowledgeType, cancel: bool
    ) -> None:
        self.lost = asyncio.Event()
        self.when_lost: Callable[[], object] | None = None
        self.parts = parts
        self.until_ms = 0
        self._keeper, self._max_ms, self._on_error, self._cancel = keeper, max_ms, on_error, cancel
        self._task: asyncio.Task[object] | None = None
        self._to_cancel: asyncio.Handle | None = None
        self._cancelled = False
        self._cancelling = 0
        self.error: KafkaError | None = None

    async def __aenter__(self) -> Kept:
        self._task = asyncio.current_task()
        self._cancelling = self._task.cancelling() if self._task is not None else 0
        self.until_ms = self._keeper.now_ms() + self._max_ms
        self._keeper.keep(self)
        if self.error is not None:
            self._end()
            self._keeper.settle(self.parts, AcknowledgeType.RELEASE)
            raise LeaseLost(self.error.code, self.error.message)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        if self.error is None:
            self._keeper.settle(self.parts, AcknowledgeType.ACCEPT if kind is None else self._on_error)
            return
        # a lost lock says nothing about the other records, whatever `on_error` is
        self._keeper.settle(self.parts, AcknowledgeType.RELEASE)
        ours = self._cancelled and self._task is not None and self._task.uncancel() <= self._cancelling
        if kind is None or (ours and kind is asyncio.CancelledError):
            raise LeaseLost(self.error.code, self.error.message) from error

    @property
    def held(self) -> bool:
        """Whether any of the records is unacknowledged."""
        return any(part.lease.holds(part.low, part.high) for part in self.parts)

    def lose(self, error: KafkaError) -> None:
        """Handle the loss of the locks."""
        if not self.lost.is_set():
            self.error = error
            self.lost.set()
            if self.when_lost is not None:
                self.when_lost()
            if self._cancel and self._task is not None:
                # in the next turn of the loop: a task that cancels itself would be cancelled at its next
                # await, possibly after the block
                self._to_cancel = asyncio.get_running_loop().call_soon(self._cancel_block)

    def _end(self) -> None:
        self._keeper.drop(self)
        if self._to_cancel is not None:
            self._to_cancel.cancel()

    def _cancel_block(self) -> None:
        assert self._task is not None
        self._cancelled = True
        self._task.cancel()


class Keeper:
    """Renews locks after half of their duration; checks several times per lock.

    Args:
        owner: the consumer.
    """

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._kept: set[Kept] = set()
        self._kick = asyncio.Event()

    @property
    def busy(self) -> bool:
        """Whether handlers are running."""
        return bool(self._kept)

    def now_ms(self) -> int:
        return self._owner.now_ms()

    def keeps(self, lease: Lease) -> bool:
        """Return whether a block is using part of the lease; thread-safe."""
        return any(part.lease is lease for kept in list(self._kept) for part in kept.parts)

    def kick(self) -> None:
        """Start renewing after records were acquired."""
        self._kick.set()

    def keep(self, kept: Kept) -> None:
        """Start renewing these locks."""
        self._kept.add(kept)
        self._kick.set()
        for part in kept.parts:
            if part.lease.lost is not None:
                kept.lose(part.lease.lost)
            elif part.lease.expired(part.low, part.high):
                kept.lose(_RAN_OUT)

    def drop(self, kept: Kept) -> None:
        """Stop renewing: the block has ended."""
        self._kept.discard(kept)

    def settle(self, parts: Sequence[Part], kind: AcknowledgeType) -> None:
        """Acknowledge records that a block left open, and send it."""
        left = [part for part in parts if part.lease.holds(part.low, part.high)]
        self._owner.acknowledge_parts(left, kind)
        self._owner.send({part.lease for part in parts})

    def refused(self, lease: Lease, spans: Iterable[Span], error: KafkaError) -> None:
        """Notify the blocks with these offsets that their locks are lost."""
        ranges = [(span.at, span.at + len(span.types)) for span in spans]
        for kept in list(self._kept):
            for part in kept.parts:
                if part.lease is lease and any(low < part.high and part.low < high for low, high in ranges):
                    kept.lose(error)

    def lose(self, lease: Lease, error: KafkaError) -> None:
        """Notify the blocks with records of a lease that its locks are lost."""
        for kept in list(self._kept):
            if any(part.lease is lease for part in kept.parts):
                kept.lose(error)

    async def run(self) -> None:
        """Renew and expire leases until cancelled."""
        while True:
            self._kick.clear()
            if not self._owner.leased and not self._kept:
                await self._kick.wait()
                continue
            await asyncio.sleep(max(self._owner.lock_ms // _TICKS_A_LOCK, _TICK_MIN_MS) / 1000)
            self._tick()

    def _tick(self) -> None:
        now = self._owner.now_ms()
        due = now + int(self._owner.lock_ms * _RENEW_AT)
        self._renew_kept(now, due)
        self._renew_buffered(due)
        self._owner.expire()

    def _renew_kept(self, now: int, due: int) -> None:
        leases: set[Lease] = set()
        for kept in list(self._kept):
            held = [part for part in kept.parts if (_ends(part) or due + 1) <= due]
            if not held:
                continue
            if min(_ends(part) or due for part in held) <= now:
                kept.lose(_RAN_OUT)
            elif now < kept.until_ms:
                self._owner.acknowledge_parts(held, AcknowledgeType.RENEW)
                leases |= {part.lease for part in held}
        self._owner.send(leases)

    def _renew_buffered(self, due: int) -> None:
        old = [part for part in self._owner.buffer.parts() if (_ends(part) or 0) <= due]
        if not old:
            return
        leases = {part.lease for part in old}
        abandoned = self._owner.idle_ms() > self._owner.lock_ms
        renewable = {lease for lease in leases if lease.owner.renews and not abandoned}
        self._owner.acknowledge_parts(
            [part for part in old if part.lease in renewable and _is_markable(part)], AcknowledgeType.RENEW
        )
        if leases - renewable:
            logger.info("records not polled in time are released")
            dropped = self._owner.buffer.drop(lambda lease: lease in leases - renewable)
            self._owner.acknowledge_parts(filter(_is_markable, dropped), AcknowledgeType.RELEASE)
        self._owner.send(leases)
