"""What a task of `format("sharestate")` reads, wherever the share state lies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from pyspark.sql.datasource import InputPartition

from sharecore.sharestate.keys import STATE_TOPIC

CHUNK_BYTES = 4 << 20
"""How much of a partition is read at a time."""


@dataclass(frozen=True)
class StatePartition(InputPartition):
    """A partition of the state topic, or a part of it.

    Args:
        first, end: offset from which on records count, and the one behind the last that does.
        topic_id: of the state topic; None where files are read.
        files: segments of an Apache broker in the order of their offsets; none where something else is read.
    """

    partition: int
    first: int
    end: int
    topic_id: UUID | None = None
    files: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{STATE_TOPIC}-{self.partition}"


class Moved(Exception):
    """The log start has passed the wanted offset: snapshots made the records redundant, and they were
    deleted.
    """


class NoBatch(Exception):
    """There are bytes in which no record batch can be found.

    Args:
        offset: of the first record that they may have.
    """

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset


class StateLog(Protocol):
    """Reads one partition of the state topic."""

    def bounds(self) -> tuple[int, int]:
        """Return the first offset, and the one after the last; raise KafkaError or OSError."""

    def chunks(self, first: int, end: int) -> Iterator[bytes]:
        """Record batches with the offsets from `first` up to `end`, each time at least one whole one.

        Raises:
            Moved: the log begins behind an offset that is wanted.
            NoBatch: something was found that is no record batch; the offset is the first that is missing.
            KafkaError, OSError: it cannot be read.
        """

    def names(self, topic_ids: Iterable[str]) -> dict[str, str]:
        """Return names of topics by id, without deleted ones; raise KafkaError, OSError."""

    def close(self) -> None:
        """Lets go of files."""
