"""One partition that is fetched, and how much the caller has room for. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sharecore.errors import KafkaError
from sharecore.upstream.fetched import Fetched, Wanted
from sharecore.upstream.metadata import Topic


class Sink(Protocol):
    """Takes what a subscription brings; called on the event loop, and must not wait."""

    def fetched(self, fetched: Fetched) -> None:
        """An answer about the partition, also one that only moves watermarks or the log's start."""

    def failed(self, error: KafkaError) -> None:
        """Nothing more comes until `Subscription.seek`.

        OFFSET_OUT_OF_RANGE, `Truncated` among them; UNKNOWN_TOPIC_ID when the topic was deleted or made
        again; TOPIC_AUTHORIZATION_FAILED.
        """


class Subscription:
    """A partition as it is fetched; `Fetcher.subscribe` makes it.

    Attributes:
        offset: where the next fetch begins.
        room: bytes that the caller has room for; nothing is fetched without any.
        leader_epoch: under which the last fetch was answered, or what the caller had read; -1 where none was.
        replica: the follower that the leader named to be fetched from (KIP-392), until `replica_until_ms`.
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
        """Behind the last offset that the log is known to have had."""
        return self.offset if self._marks is None else max(self.offset, self._marks[0])

    @property
    def ready(self) -> bool:
        """Whether it may be fetched."""
        at_rest = self.resting or self.validating or self.closed or self.error is not None
        return self.room > 0 and not at_rest

    def allow(self, room: int) -> None:
        """Says how many bytes the caller has room for now; 0 pauses.

        Each answer takes off what it brought. One batch may be larger than the room.
        """
        was_ready = self.ready
        self.room = room
        if self.ready and not was_ready:
            self._changed(self)

    def seek(self, offset: int, room: int) -> None:
        """Fetch from another offset on; what is under way is dropped, and an error is over.

        Where the topic was deleted or made again, close it and subscribe anew.
        """
        self.offset, self.room = offset, room
        if self.error is not None:
            # what was told before it may not stand
            self.leader_epoch, self._marks, self.error = -1, None, None
        self._changed(self)

    def was_read(self, leader_epoch: int) -> None:
        """Says under which epoch the caller has read by itself, where no fetch was answered yet.

        The next leader is asked whether it has that, too.
        """
        if self.leader_epoch < 0:
            self.leader_epoch = leader_epoch

    def close(self) -> None:
        """Fetch no more, and call nobody."""
        self.closed = True
        self._changed(self)

    def wanted(self, leader_epoch: int, partition_bytes: int) -> Wanted:
        """Return what the next fetch asks for."""
        max_bytes = min(self.room, partition_bytes)
        return Wanted(self.topic, self.topic_id, self.partition, self.offset, max_bytes, leader_epoch)

    def take(self, fetched: Fetched, leader_epoch: int) -> None:
        """An answer came; one for another offset than the next is out of date."""
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
