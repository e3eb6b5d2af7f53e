"""Fetch sessions of consumers, remembered between requests (KIP-227)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from secrets import randbelow
from typing import Any, NamedTuple

from sharecore._core import next_epoch
from sharecore.errors import ErrorCode, KafkaError

INITIAL_EPOCH = 0
"""Epoch of a request that opens a session."""

FINAL_EPOCH = -1
"""Epoch of a request that closes a session."""


NO_SESSION = 0
_UNKNOWN = -1
_PARTITION_BYTES = 600
"""Approximate memory size of a session's partition, without its topic name."""
_IDLE_MS = 120_000
"""A session idle for this long may be evicted by any other; one of this age, by a larger one."""

PartitionId = tuple[Any, int]
"""Topic id or name, as used by the client, and partition index."""


class Place(NamedTuple):
    """Fetch position and size limit in a partition."""

    offset: int
    max_bytes: int
    leader_epoch: int
    last_epoch: int


@dataclass(slots=True)
class FetchPartition:
    """A partition of a fetch.

    Attributes:
        key: its id for the client.
        topic: the topic's name; None if the id is unknown.
        place: the client's fetch position.
        high_watermark: the last value sent to the client, -1 after an error.
        start_offset: the last log start offset sent to the client.
    """

    key: PartitionId
    topic: str | None
    place: Place
    high_watermark: int = _UNKNOWN
    start_offset: int = _UNKNOWN

    def note(self, high_watermark: int, start_offset: int, *, failed: bool) -> bool:
        """Store the values sent to the client; return whether any has changed."""
        before = (self.high_watermark, self.start_offset)
        self.high_watermark = _UNKNOWN if failed else high_watermark
        self.start_offset = start_offset
        return failed or before != (high_watermark, start_offset)


@dataclass(slots=True, eq=False)
class FetchSession:
    """A client's partitions in read order.

    Attributes:
        by_id: whether the client names topics by their ids.
        epoch: the epoch expected in the next request.
        created_ms: creation time.
        used_ms: time of its last request.
        bytes: approximate memory size of its partitions.
    """

    session_id: int
    by_id: bool
    created_ms: int
    used_ms: int
    bytes: int = 0
    epoch: int = 1
    partitions: dict[PartitionId, FetchPartition] = field(default_factory=dict)

    def update(self, wanted: Iterable[FetchPartition], forgotten: Iterable[PartitionId]) -> None:
        """Add or update partitions, then remove others."""
        for partition in wanted:
            known = self.partitions.get(partition.key)
            if known is None:
                self.partitions[partition.key] = partition
                self.bytes += _bytes_of(partition.key)
            else:
                known.place = partition.place
        for key in forgotten:
            if self.partitions.pop(key, None) is not None:
                self.bytes -= _bytes_of(key)

    def to_the_end(self, key: PartitionId) -> None:
        """Move a partition that returned records behind the others."""
        partition = self.partitions.pop(key, None)
        if partition is not None:
            self.partitions[key] = partition


class FetchSessionCache:
    """Fetch sessions of a broker, limited in number and memory.

    Args:
        slots: maximum number of sessions (`max.incremental.fetch.session.cache.slots`).
        now_ms: the clock.
        bytes_max: approximate memory limit (`sharecore.fetch.sessions.bytes.max`).
    """

    def __init__(self, slots: int, now_ms: Callable[[], int], bytes_max: int = 1 << 26) -> None:
        self._slots = slots
        self._now_ms = now_ms
        self._bytes_max = bytes_max
        self._bytes = 0
        self._sessions: dict[int, FetchSession] = {}
        """Sessions, the longest idle one first."""

    def __len__(self) -> int:
        return len(self._sessions)

    def has_room_for(self, count: int) -> bool:
        """Return whether a session may have this many partitions."""
        return count * _PARTITION_BYTES <= self._bytes_max

    def partitions_of(self, session_id: int) -> int:
        """Return the number of a session's partitions; 0 for an unknown session."""
        session = self._sessions.get(session_id)
        return 0 if session is None else len(session.partitions)

    def open(self, partitions: Collection[FetchPartition], *, by_id: bool) -> int:
        """Open a session; return its id, or `NO_SESSION` if the cache is full.

        Return the id of the session, `NO_SESSION` if there is no room.
        """
        if not self.has_room_for(len(partitions)):
            return NO_SESSION
        kept = {partition.key: partition for partition in partitions}
        now_ms = self._now_ms()
        size = sum(map(_bytes_of, kept))
        while len(self._sessions) >= self._slots or self._bytes + size > self._bytes_max:
            if size > self._bytes_max or not self._evict(len(kept), now_ms):
                return NO_SESSION
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = randbelow(2**31)
        session = FetchSession(session_id, by_id, now_ms, now_ms, bytes=size, partitions=kept)
        self._sessions[session_id] = session
        self._bytes += size
        return session_id

    def resume(
        self,
        session_id: int,
        epoch: int,
        wanted: Collection[FetchPartition],
        forgotten: Iterable[PartitionId],
        *,
        by_id: bool,
    ) -> FetchSession | None:
        """Update and return a session; None if it has no partitions left and ends.

        Raises:
            KafkaError: FETCH_SESSION_ID_NOT_FOUND, also for a session that exceeds the memory limit and ends;
                INVALID_FETCH_SESSION_EPOCH; FETCH_SESSION_TOPIC_ID_ERROR if the session uses names and the
                request ids, or vice versa.
        """
        session = self._sessions.get(session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_id != by_id:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if not self.has_room_for(len(wanted)):
            self.close(session_id)
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        before = session.bytes
        session.update(wanted, forgotten)
        self._bytes += session.bytes - before
        if not session.partitions:
            self.close(session_id)
            return None
        if self._bytes > self._bytes_max and session.bytes > before:
            self.close(session_id)
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        session.epoch = next_epoch(epoch)
        session.used_ms = self._now_ms()
        self._sessions[session_id] = self._sessions.pop(session_id)
        return session

    def close(self, session_id: int) -> None:
        """End a session, if it exists."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._bytes -= session.bytes

    def _evict(self, size: int, now_ms: int) -> bool:
        """Evict a session that is idle, or that is old and no larger than the new one."""
        if not self._sessions:
            return False
        victim = next(iter(self._sessions.values()))
        if now_ms - victim.used_ms <= _IDLE_MS:
            old = [each for each in self._sessions.values() if now_ms - each.created_ms > _IDLE_MS]
            if not old:
                return False
            victim = min(old, key=lambda each: len(each.partitions))
            if size <= len(victim.partitions):
                return False
        self.close(victim.session_id)
        return True


def _bytes_of(key: PartitionId) -> int:
    topic = key[0]
    return _PARTITION_BYTES + (len(topic) if isinstance(topic, str) else 0)
