"""The only writer of a partition: it knows at which offset its next batch will stand.

Compare and append: an answer counts only if it names that offset. Another offset means that somebody else
writes there, or that the cluster has lost records. Where the batch stands further behind, whoever owns the
writer may look at what is in front of it, and say that the batch counts all the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from sharecore._core import encode_batch
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey
from sharecore.upstream.cluster import TRANSACTION
from sharecore.upstream.delivery import TIMEOUT_MS, deliver
from sharecore.upstream.errors import Fenced, Unresolved
from sharecore.upstream.outlet import Outlet
from sharecore.upstream.producer import Producer, Record, following, new_producer
from sharecore.waiting import Done, settle

logger = logging.getLogger(__name__)

_WARN_AGAIN_MS = 60_000
BATCH_BYTES = 512 * 1024
"""About how large a batch becomes."""


Intrusion = Callable[[int, int, int], Awaitable[bool]]
"""Looks at what stands in front of a batch, and returns whether the batch counts. It is given where the batch
should stand, where it does, and the sequence number of its first record.
"""


class _Append(NamedTuple):
    records: Sequence[Record]
    now_ms: int
    base_offset: int
    done: Done
    size: int


class ExclusiveWriter:
    """Appends to one partition, one batch under way; what is appended meanwhile is the next batch.

    The producer id comes from a transactional id, so that a newer writer's first batch stops an older writer
    (INVALID_PRODUCER_EPOCH); no transaction is ever begun. A lost answer is found out by sending the same
    sequence number again: the leader names the first offset then.

    Args:
        outlet: sends the batches; one for all writers of a cluster.
        topic, partition: where; the topic must be known to the cluster's metadata.
        transactional_id: of this partition, the same on every node that may write it.
        timeout_ms: how long one batch is tried.
        batch_bytes: about how large a batch becomes; less than the topic's max.message.bytes.

    Attributes:
        next_offset: where the next append goes.
        producer: None until it was opened.
        closed: why nothing can be appended; None where it can.
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
        """Call back whenever the writer is closed by what the cluster answers."""
        self._on_closed.append(callback)

    def on_intrusion(self, callback: Intrusion) -> None:
        """Let a callback judge a batch in front of which somebody else has written; without one, or where it
        raises KafkaError, the batch does not count, and the writer is closed.
        """
        self._on_intrusion = callback

    async def renew(self) -> Producer:
        """Return a producer of the next epoch, to open the writer with later. It stops nobody until it
        writes.

        Raises:
            KafkaError: the right is missing, or nobody answers.
        """
        upstream = self._outlet.upstream

        async def ask(message: dict[str, Any]) -> Any:
            connection = await upstream.coordinator(TRANSACTION, self._transactional_id, "claim")
            return await connection.request(ApiKey.INIT_PRODUCER_ID, message)

        return await new_producer(upstream, ask, self._transactional_id)

    async def open(self, next_offset: int, producer: Producer | None = None) -> Producer:
        """Take the partition over: from the first batch on, the cluster refuses what older writers send.

        Args:
            next_offset: where the partition ends, as far as is known; a first append that comes to stand
                elsewhere closes the writer again.
            producer: whom `renew` has given; it is called here without one.

        Raises:
            KafkaError: the right is missing, or nobody answers.
        """
        if self.closed is None:
            self.close(Unresolved(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.name} is opened anew"))
        self.producer = producer or await self.renew()
        self.next_offset, self._sequence, self.closed = next_offset, 0, None
        return self.producer

    def close(self, error: KafkaError) -> None:
        """Append nothing any more; what is under way ends with `error`, and may be appended all the same."""
        if self.closed is not None:
            return
        self.closed = error
        if self._task is not None:
            self._task.cancel()
            self._task = None
        lost, self._sent, self._staged = [*self._sent, *self._staged], [], deque()
        settle([each.done for each in lost], error)

    def append(self, records: Sequence[Record], now_ms: int, done: Done) -> int:
        """Append records, in one batch with what else comes in this turn of the event loop.

        Args:
            records: at least one.
            now_ms: timestamp of the batch, milliseconds since the epoch.
            done: called with None once all replicas in sync have them, at the offset that was told or, where
                somebody else has written in front of them, behind it; with
                `NotWritten` (they are not in the log, nor is what was staged behind them), `Fenced` or
                `Unresolved`.

        Returns:
            The offset of the first of them, unless `done` is called with an error.

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
                # what is staged was told offsets that follow on these
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
        """Send one batch until its fate is known, or the time is over; None where it stands as expected."""
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
                f"{self.name}: the batch stands at {found} and not at {expected}: somebody else writes there",
            )
        self._sequence = following(self._sequence, count)
        return None

    async def _is_intruded(self, found: int, expected: int) -> bool:
        """Return whether somebody else has written in front of a batch, and the batch counts all the same."""
        if self._on_intrusion is None:
            return False
        try:
            counts = await self._on_intrusion(expected, found, self._sequence)
        except KafkaError as error:
            logger.warning(
                "%s: what stands at %d to %d cannot be read: %s", self.name, expected, found, error
            )
            return False
        now_ms = self._outlet.upstream.clock.monotonic_ms()
        if counts and (self._warned_ms is None or now_ms - self._warned_ms >= _WARN_AGAIN_MS):
            self._warned_ms = now_ms
            logger.warning(
                "%s: another client has written offsets %d to %d, which are ignored. Only the nodes of the "
                "tier may write to this topic: check who else has the right",
                self.name,
                expected,
                found - 1,
            )
        return counts

    def _move(self, offsets: int) -> None:
        """Expect all that follows so many offsets further behind."""
        self.next_offset += offsets
        self._staged = deque(each._replace(base_offset=each.base_offset + offsets) for each in self._staged)
