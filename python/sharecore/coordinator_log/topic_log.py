"""The part of `sharecore.storage.Log` that coordinators use, so that a test may replace it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from sharecore.errors import KafkaError
from sharecore.storage import ScannedBatch

Record = tuple[bytes, bytes | None]
"""Key and value; a null value deletes the key."""


class Producer(NamedTuple):
    """Producer of a transaction."""

    id: int
    epoch: int


class WriteTicket(Protocol):
    """A write that becomes durable or fails with `error`."""

    @property
    def error(self) -> KafkaError | None:
        """Why the write failed; None while it is pending and once it is durable."""

    def add_done_callback(self, callback: Callable[[WriteTicket], None], /) -> None:
        """Call `callback` with the ticket once the write is durable or has failed."""


class AppendedBatch(Protocol):
    """Result of an append."""

    @property
    def base_offset(self) -> int:
        """Offset of the first record."""

    @property
    def ticket(self) -> WriteTicket:
        """The write that makes the batch durable."""


class TopicLog(Protocol):
    """One partition of a coordinator topic."""

    @property
    def topic(self) -> str:
        """The topic's name."""

    @property
    def index(self) -> int:
        """Number of the partition in its topic."""

    @property
    def start_offset(self) -> int:
        """Offset of the first record that is kept."""

    @property
    def high_watermark(self) -> int:
        """Offset after the last durable record."""

    @property
    def last_stable_offset(self) -> int:
        """Offset before which no transaction is open."""

    @property
    def end_offset(self) -> int:
        """Offset after the last record, durable or not."""

    def append_local(
        self,
        records: Sequence[Record],
        /,
        *,
        now_ms: int,
        producer: tuple[int, int] | None = None,
        lingers: bool = False,
    ) -> AppendedBatch:
        """Append a batch. A lingering batch has no waiting caller, and may become durable a little later."""

    def hurry(self) -> None:
        """Flush lingering batches: a caller now waits for them."""

    def scan(self, offset: int, /) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
        """Return offset, timestamp, key and value of each durable record from `offset` on."""

    def scan_batches(self, offset: int, /) -> Iterator[ScannedBatch]:
        """Return the durable batches from `offset` on, with their producers and control records."""

    def delete_records(self, before_offset: int, /) -> WriteTicket:
        """Delete the records before an offset."""
