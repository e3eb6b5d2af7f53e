"""Fetch sessions: what a plain consumer fetches, remembered between its requests (KIP-227)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from secrets import randbelow
from typing import Any, NamedTuple

from sharecore._core import next_epoch
from sharecore.errors import ErrorCode, KafkaError

NO_SESSION = 0
_UNKNOWN = -1
_PARTITION_BYTES = 600
"""About what a partition of a session takes, besides the name of its topic."""
_IDLE_MS = 120_000
"""A session that was idle for so long gives way to any other; one as old as that to a larger one."""

PartitionId = tuple[Any, int]
"""Id or name of the topic, as the client has it, and index."""


class Place(NamedTuple):
    """Where in a partition a client fetches, and how much."""

    offset: int
    max_bytes: int
    leader_epoch: int
    last_epoch: int


@dataclass(slots=True)
class FetchPartition:
    """A partition of a fetch.

    Attributes:
        key: what the client calls it.
        topic: name of the topic; None as long as there is none of the id.
        place: where the client goes on.
        high_watermark: as the client was told last, -1 behind an error.
        start_offset: the same of the log's start.
    """

    key: PartitionId
    topic: str | None
    place: Place
    high_watermark: int = _UNKNOWN
    start_offset: int = _UNKNOWN

    def note(self, high_watermark: int, start_offset: int, *, failed: bool) -> bool:
        """Note what the client is told now; whether it is anything new."""
        told = (self.high_watermark, self.start_offset)
        self.high_watermark = _UNKNOWN if failed else high_watermark
        self.start_offset = start_offset
        return failed or told != (high_watermark, start_offset)


@dataclass(slots=True, eq=False)
class FetchSession:
    """A client's partitions, by what it calls them, in the order in which they are read.

    Attributes:
        by_id: whether the client names topics by their ids.
        epoch: what the next request has to have.
        created_ms: time of its begin.
        used_ms: time of its last request.
        bytes: about what its partitions take.
    """

    session_id: int
    by_id: bool
    created_ms: int
    used_ms: int
    bytes: int = 0
    epoch: int = 1
    partitions: dict[PartitionId, FetchPartition] = field(default_factory=dict)

    def update(self, wanted: Iterable[FetchPartition], forgotten: Iterable[PartitionId]) -> None:
        """Take partitions in, or their new places, and then others out."""
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
        """Has a partition that gave records wait until the others had their turn."""
        partition = self.partitions.pop(key, None)
        if partition is not None:
            self.partitions[key] = partition


class FetchSessionCache:
    """The fetch sessions of a broker, bounded in number and in memory.

    Args:
        slots: how many there may be (`max.incremental.fetch.session.cache.slots`).
        now_ms: the clock.
        bytes_max: about how much memory they may take (`sharecore.fetch.sessions.bytes.max`).
    """

    def __init__(self, slots: int, now_ms: Callable[[], int], bytes_max: int = 1 << 26) -> None:
        self._slots = slots
        self._now_ms = now_ms
        self._bytes_max = bytes_max
        self._bytes = 0
        self._sessions: dict[int, FetchSession] = {}
        """The one that has been idle for longest first."""

    def __len__(self) -> int:
        return len(self._sessions)

    def has_room_for(self, count: int) -> bool:
        """Return whether a session may have so many partitions at all."""
        return count * _PARTITION_BYTES <= self._bytes_max

    def partitions_of(self, session_id: int) -> int:
        """Return how many partitions a session has; 0 if there is none of the id."""
        session = self._sessions.get(session_id)
        return 0 if session is None else len(session.partitions)

    def open(self, partitions: Collection[FetchPartition], *, by_id: bool) -> int:
        """Remember what was fetched first.

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
        """Return the session as a request leaves it; None where no partition is left, which ends it.

        Raises:
            KafkaError: FETCH_SESSION_ID_NOT_FOUND, also where it grows beyond the bound of memory, which ends
                it; INVALID_FETCH_SESSION_EPOCH; FETCH_SESSION_TOPIC_ID_ERROR where the session has names and
                the request ids, or the other way round.
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
        """End a session, if there is one of the id."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._bytes -= session.bytes

    def _evict(self, size: int, now_ms: int) -> bool:
        """End a session that is idle, or old and no larger than the one that wants its place."""
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
