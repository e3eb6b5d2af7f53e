"""Exclusive writer of a partition, which knows the offset of its next batch.

Compare and append: an answer counts only if it has that offset. Another offset means that another client has
written, or that the cluster has lost records. If the batch is further behind, the writer's owner may inspect
the batches before it, and declare it valid nevertheless.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sharecore._core import encode_batch
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import calls
from sharecore.upstream.cluster import TRANSACTION
from sharecore.upstream.delivery import TIMEOUT_MS, deliver
from sharecore.upstream.errors import Fenced, Unresolved
from sharecore.upstream.outlet import Outlet
from sharecore.upstream.producer import Producer, Record, following, new_producer
from sharecore.waiting import Done, settle

if TYPE_CHECKING:
    from sharecore.protocol.received import InitProducerIdResponse

logger = logging.getLogger(__name__)

_WARN_AGAIN_MS = 60_000
BATCH_BYTES = 512 * 1024
"""Approximate maximum batch size."""


Intrusion = Callable[[int, int, int], Awaitable[bool]]
"""Inspects the batches before a displaced batch; returns whether it is valid.

Arguments are its expected and actual offset, and the sequence number of its first record.
"""


class _Append(NamedTuple):
    records: Sequence[Record]
    now_ms: int
    base_offset: int
    done: Done
    size: int


class ExclusiveWriter:
    """Append to one partition with one pending batch; records appended meanwhile form the next batch.

    The producer id belongs to a transactional id, so that a newer writer's first batch fences an older writer
    (INVALID_PRODUCER_EPOCH). No transaction is ever started. After a lost answer the same sequence number is
    sent again, and the leader returns the first offset.

    Args:
        outlet: sends the batches; shared by all writers of a cluster.
        topic, partition: the partition; its topic must be in the cluster's metadata.
        transactional_id: id of this partition, the same on every node that may write it.
        timeout_ms: timeout of a batch with its retries.
        batch_bytes: approximate maximum batch size; less than the topic's max.message.bytes.

    Attributes:
        next_offset: offset of the next append.
        producer: None until the writer is opened.
        closed: why nothing can be appended; None while it can.
    """

    def __init__(
        self,
        outlet: Outlet,
        topic: str,
        partition: int,
        transactional_id: str,
        *,
        timeout_ms: int = TIMEOUT_MS,
        batch_bytes: int = BATCH_BYTES,
    ) -> None:
        self.topic, self.partition = topic, partition
        self.next_offset = 0
        self.producer: Producer | None = None
        self.closed: KafkaError | None = Unresolved(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic}-{partition} is not open for writing"
        )
        self._outlet = outlet
        self._transactional_id = transactional_id
        self._timeout_ms, self._batch_bytes = timeout_ms, batch_bytes
        self._sequence = 0
        self._staged: deque[_Append] = deque()
        self._sent: list[_Append] = []
        self._task: asyncio.Task[None] | None = None
        self._on_closed: list[Callable[[KafkaError], None]] = []
        self._on_intrusion: Intrusion | None = None
        self._warned_ms: int | None = None

    @property
    def name(self) -> str:
        """Topic and partition."""
        return f"{self.topic}-{self.partition}"

    def on_closed(self, callback: Callable[[KafkaError], None]) -> None:
        """Call back when an answer of the cluster closes the writer."""
        self._on_closed.append(callback)

    def on_intrusion(self, callback: Intrusion) -> None:
        """Set the judge of displaced batches; without one, or on KafkaError, the writer is closed."""
        self._on_intrusion = callback

    async def renew(self) -> Producer:
        """Return a producer of the next epoch to open the writer with later; it fences others once it writes.

        Raises:
            KafkaError: the right is missing, or nobody answers.
        """
        upstream = self._outlet.upstream

        async def ask(message: dict[str, object]) -> InitProducerIdResponse:
            connection = await upstream.coordinator(TRANSACTION, self._transactional_id, "claim")
            return await connection.request(calls.INIT_PRODUCER_ID, message)

        return await new_producer(upstream, ask, self._transactional_id)

    async def open(self, next_offset: int, producer: Producer | None = None) -> Producer:
        """Take over the partition: from the first batch on, the cluster refuses older writers.

        Args:
            next_offset: the known end of the partition; a first append at another offset closes the writer.
            producer: result of `renew`, which is called here without one.

        Raises:
            KafkaError: the right is missing, or nobody answers.
        """
        if self.closed is None:
            self.close(Unresolved(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.name} is being reopened"))
        self.producer = producer or await self.renew()
        self.next_offset, self._sequence, self.closed = next_offset, 0, None
        return self.producer

    def close(self, error: KafkaError) -> None:
        """Close the writer; pending appends end with `error`, but may be in the log."""
        if self.closed is not None:
            return
        self.closed = error
        if self._task is not None:
            self._task.cancel()
            self._task = None
        lost, self._sent, self._staged = [*self._sent, *self._staged], [], deque()
        settle([each.done for each in lost], error)

    def append(self, records: Sequence[Record], now_ms: int, done: Done) -> int:
        """Append records, in one batch with others of this event-loop turn.

        Args:
            records: at least one.
            now_ms: timestamp of the batch, milliseconds since the epoch.
            done: called with None once all in-sync replicas have them, at the returned offset, or after it
                if another client has written before them. Otherwise called with `NotWritten` (neither these
                records nor later staged ones are in the log), `Fenced` or `Unresolved`.

        Returns:
            The offset of the first record, unless `done` is called with an error.

        Raises:
            KafkaError: the writer is closed.
        """
        if self.closed is not None:
            raise self.closed
        base_offset = self.next_offset
        self.next_offset += len(records)
        size = sum(len(key or b"") + len(value or b"") for key, value in records)
        self._staged.append(_Append(records, now_ms, base_offset, done, size))
        if self._task is None:
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._drain(), name=f"sharecore upstream {self.name}")
        return base_offset

    async def _drain(self) -> None:
        while self._staged:
            appends = self._sent = self._take()
            base_offset = appends[0].base_offset
            error = await self._write(appends)
            if isinstance(error, Fenced | Unresolved):
                logger.error("%s: %s", self.name, error)
                self._task = None
                self.close(error)
                settle(list(self._on_closed), error)
                return
            self._sent = []
            if error is not None:
                logger.warning("%s: %s", self.name, error)
                # staged records were promised offsets after these
                appends += self._staged
                self._staged.clear()
                self.next_offset = base_offset
            settle([each.done for each in appends], error)
        self._task = None

    def _take(self) -> list[_Append]:
        taken = [self._staged.popleft()]
        size = taken[0].size
        while self._staged and size + self._staged[0].size <= self._batch_bytes:
            size += self._staged[0].size
            taken.append(self._staged.popleft())
        return taken

    async def _write(self, appends: Sequence[_Append]) -> KafkaError | None:
        """Send one batch until its fate is known or the timeout expires; None if it is as expected."""
        assert self.producer is not None
        records = [record for each in appends for record in each.records]
        data = encode_batch(records, now_ms=appends[-1].now_ms, producer=(*self.producer, self._sequence))
        try:
            base_offset = await deliver(self._outlet, self.topic, self.partition, data, self._timeout_ms)
        except KafkaError as error:
            return error
        return await self._compare(base_offset, appends[0].base_offset, len(records))

    async def _compare(self, found: int, expected: int, count: int) -> KafkaError | None:
        if found > expected and await self._is_intruded(found, expected):
            self._move(found - expected)
        elif found != expected:
            return Fenced(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"{self.name}: the batch is at {found} instead of {expected}: another client writes there",
            )
        self._sequence = following(self._sequence, count)
        return None

    async def _is_intruded(self, found: int, expected: int) -> bool:
        """Return whether another client has written before a batch that is valid nevertheless."""
        if self._on_intrusion is None:
            return False
        try:
            counts = await self._on_intrusion(expected, found, self._sequence)
        except KafkaError as error:
            logger.warning("%s: cannot read offsets %d to %d: %s", self.name, expected, found, error)
            return False
        now_ms = self._outlet.upstream.clock.monotonic_ms()
        if counts and (self._warned_ms is None or now_ms - self._warned_ms >= _WARN_AGAIN_MS):
            self._warned_ms = now_ms
            logger.warning(
                "%s: another client has written offsets %d to %d, which are ignored. Only the nodes of the "
                "tier may write to this topic: check which other users may write",
                self.name,
                expected,
                found - 1,
            )
        return counts

    def _move(self, offsets: int) -> None:
        """Shift the expected offsets of all later batches."""
        self.next_offset += offsets
        self._staged = deque(each._replace(base_offset=each.base_offset + offsets) for each in self._staged)
