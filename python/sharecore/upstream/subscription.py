"""One fetched partition, and the caller's capacity for it. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sharecore.errors import KafkaError
from sharecore.upstream.fetched import Fetched, Wanted
from sharecore.upstream.metadata import Topic


class Sink(Protocol):
    """Receiver of fetched records; called on the event loop, and must not block."""

    def fetched(self, fetched: Fetched) -> None:
        """Process an answer, perhaps without records."""

    def failed(self, error: KafkaError) -> None:
        """Handle the end of fetching, which `Subscription.seek` resumes.

        The errors are OFFSET_OUT_OF_RANGE, including `Truncated`; UNKNOWN_TOPIC_ID if the topic was deleted
        or recreated; TOPIC_AUTHORIZATION_FAILED.
        """


class Subscription:
    """A fetched partition, created by `Fetcher.subscribe`.

    Attributes:
        offset: offset of the next fetch.
        room: the caller's capacity in bytes; without any, nothing is fetched.
        leader_epoch: leader epoch of the last answer, or of the caller's own read; -1 without one.
        replica: the follower named by the leader for fetches (KIP-392), until `replica_until_ms`.
    """

    def __init__(
        self,
        topic: Topic,
        partition: int,
        offset: int,
        room: int,
        sink: Sink,
        changed: Callable[[Subscription], None],
    ) -> None:
        self.topic, self.topic_id, self.partition = topic.name, topic.topic_id, partition
        self.has_id = topic.has_id
        self.offset, self.room = offset, room
        self.leader_epoch = -1
        self.replica = -1
        self.replica_until_ms = 0
        self.resting = self.validating = False
        self.closed = False
        self.error: KafkaError | None = None
        self._sink = sink
        self._changed = changed
        self._marks: tuple[int, int, int] | None = None

    @property
    def place(self) -> tuple[str, int]:
        return self.topic, self.partition

    @property
    def known_end(self) -> int:
        """The highest known log end offset."""
        return self.offset if self._marks is None else max(self.offset, self._marks[0])

    @property
    def ready(self) -> bool:
        """Whether it may be fetched."""
        at_rest = self.resting or self.validating or self.closed or self.error is not None
        return self.room > 0 and not at_rest

    def allow(self, room: int) -> None:
        """Set the caller's capacity in bytes; 0 pauses.

        Each answer reduces it. One batch may exceed it.
        """
        was_ready = self.ready
        self.room = room
        if self.ready and not was_ready:
            self._changed(self)

    def seek(self, offset: int, room: int) -> None:
        """Continue at another offset; drop the pending fetch and clear an error.

        After a deletion or recreation of the topic, close the subscription and subscribe again.
        """
        self.offset, self.room = offset, room
        if self.error is not None:
            # previously returned offsets may be invalid
            self.leader_epoch, self._marks, self.error = -1, None, None
        self._changed(self)

    def was_read(self, leader_epoch: int) -> None:
        """Set the leader epoch of records that the caller has read itself, before the first fetch.

        The next leader is asked whether it has them, too.
        """
        if self.leader_epoch < 0:
            self.leader_epoch = leader_epoch

    def close(self) -> None:
        """Stop fetching and all callbacks."""
        self.closed = True
        self._changed(self)

    def wanted(self, leader_epoch: int, partition_bytes: int) -> Wanted:
        """Return the next fetch of the partition."""
        max_bytes = min(self.room, partition_bytes)
        return Wanted(self.topic, self.topic_id, self.partition, self.offset, max_bytes, leader_epoch)

    def take(self, fetched: Fetched, leader_epoch: int) -> None:
        """Process an answer, unless it is for an outdated offset."""
        if self.closed or self.error is not None or fetched.first != self.offset:
            return
        self.offset = fetched.end
        self.room -= len(fetched.records)
        self.leader_epoch = leader_epoch
        marks = fetched.high_watermark, fetched.last_stable_offset, fetched.log_start_offset
        if fetched.records or marks != self._marks:
            self._marks = marks
            self._sink.fetched(fetched)

    def fail(self, error: KafkaError) -> None:
        """Stop fetching until the caller seeks."""
        if not self.closed and self.error is None:
            self.error = error
            self._sink.failed(error)
