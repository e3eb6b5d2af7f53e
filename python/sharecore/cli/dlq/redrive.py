"""Redrive dead-letter records to their origin or to another topic, each at least once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from sharecore.admin.letters import DeadLetterRecord
from sharecore.admin.origin import Header
from sharecore.cli.clients import CommandFailed
from sharecore.cli.dlq.progress import Progress
from sharecore.cli.dlq.reading import SECONDS, Origins, headers_of, partitions_of, plain
from sharecore.cli.producing import Records

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

_TRIED_SECONDS = 60.0
_PRODUCER: dict[str, object] = {
    "enable.idempotence": True,
    "acks": "all",
    "linger.ms": 5,
    # no limit here: the target topic decides what it accepts
    "message.max.bytes": 1_000_000_000,
}


def open_producer(settings: Mapping[str, object]) -> Records:
    """Where a redrive's records go."""
    return Records({**settings, **_PRODUCER}, _TRIED_SECONDS)


class Redrive:
    """Produces the records of dead letters.

    Args:
        reader: of `open_consumer`; for the records that bare letters are about.
        records: None: only count.
        to: the topic; None: where each record came from.
        rate: records a second; None: as fast as may be.
        seconds: how long to wait for brokers.

    Attributes:
        moved: how many records went where.
        gone: how many bare letters there were whose record is there no more.
        younger: records at the offsets of bare letters that were written after them, and so are others.
    """

    def __init__(
        self,
        reader: Consumer,
        records: Records | None,
        to: str | None,
        rate: float | None,
        seconds: float = SECONDS,
    ) -> None:
        self._records = records
        self._reader, self._seconds = reader, seconds
        self._origins = Origins(reader, seconds)
        self._to = to
        self._rate = rate
        self._began = time.monotonic()
        self._sent = 0
        self._partitions: dict[str, int] = {}
        self.moved: Counter[str] = Counter()
        self.gone = 0
        self.younger: list[str] = []

    def send(self, letter: DeadLetterRecord, progress: Progress) -> None:
        """Produce one letter's record; the letter is done once the broker has it.

        A letter whose record is younger than itself stays open: most likely the topic was deleted and created
        again, and the record is gone; or the clock of a producer is ahead.
        """
        done = partial(progress.end, letter.partition, letter.offset)
        topic, partition, offset = letter.origin
        key, value, own = letter.key, letter.value, letter.headers
        if not letter.is_copy:
            found = self._origins.find(topic, partition, offset)
            if found is None:
                self.gone += 1
                done()
                return
            if found.timestamp()[1] > letter.time_ms:
                self.gone += 1
                self.younger.append(f"{topic}-{partition}@{offset}")
                return
            key, value, own = _content(found)
        target = self._to or topic
        if target not in self._partitions:
            self._partitions[target] = partitions_of(self._reader, target, self._seconds)
        self.moved[target] += 1
        if self._records is None:
            return
        self._pace()
        self._records.send(
            target,
            value,
            key,
            partition=partition % self._partitions[target],
            headers=letter.redriven_headers(own),
            written=done,
        )
        if self._records.failed:
            raise CommandFailed(f"{target}: {self._records.failed[0]}")

    def finish(self) -> None:
        """Wait for the broker's answers; raise CommandFailed if one is missing or is an error."""
        if self._records is not None:
            self._records.finish()

    def _pace(self) -> None:
        self._sent += 1
        if self._rate is not None:
            early = self._began + self._sent / self._rate - time.monotonic()
            if early > 0:
                time.sleep(early)


def _content(message: Message) -> tuple[bytes | None, bytes | None, list[Header]]:
    return plain(message.key()), plain(message.value()), headers_of(message)
