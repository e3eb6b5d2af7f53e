"""Letters back to where their records came from, or to another topic: each at least once."""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sharecore.admin.letters import Letter
from sharecore.admin.origin import Header
from sharecore.cli.clients import CommandFailed
from sharecore.cli.dlq.reading import Origins, headers_of, partitions_of, plain
from sharecore.cli.producing import Records

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

_TRIED_SECONDS = 60.0
_SAVE_SECONDS = 1.0
_PRODUCER: dict[str, object] = {
    "enable.idempotence": True,
    "acks": "all",
    "linger.ms": 5,
    # whatever a topic has taken once; what the target takes is the broker's to say
    "message.max.bytes": 1_000_000_000,
}


class Progress:
    """Up to where each partition of a dead-letter topic is done, kept in a file.

    Args:
        file: None: nothing is kept.
    """

    def __init__(self, file: Path | None, topic: str) -> None:
        self._file = file
        self._topic = topic
        self.next: dict[int, int] = {}
        self._open: dict[int, deque[list[int]]] = {}
        self._saved = time.monotonic()
        if file is not None and file.exists():
            try:
                kept = json.loads(file.read_text())
                self.next = {int(index): int(offset) for index, offset in kept["next"].items()}
            except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
                raise CommandFailed(f"--progress {file}: not a file of an earlier run: {error}") from None
            if kept.get("topic") != topic:
                raise CommandFailed(f"--progress {file}: it is about topic {kept.get('topic')}")

    def begin(self, message: Message) -> list[int]:
        """A record of the topic is being worked on; what is given back goes to `end`."""
        entry = [message.offset() or 0, 0]
        self._open.setdefault(message.partition() or 0, deque()).append(entry)
        return entry

    def end(self, entry: list[int]) -> None:
        """It is done."""
        entry[1] = 1

    def save(self, *, now: bool = False) -> None:
        """Writes down what is done, once a second or now; raises CommandFailed where it cannot."""
        for index, entries in self._open.items():
            while entries and entries[0][1]:
                self.next[index] = entries.popleft()[0] + 1
        if self._file is None or (not now and time.monotonic() - self._saved < _SAVE_SECONDS):
            return
        self._saved = time.monotonic()
        fresh = self._file.with_name(self._file.name + ".new")
        try:
            fresh.write_text(json.dumps({"topic": self._topic, "next": self.next}) + "\n")
            fresh.replace(self._file)
        except OSError as error:
            fresh.unlink(missing_ok=True)
            raise CommandFailed(
                f"--progress {self._file}: {error.strerror or error}; what was produced since it was written "
                "last is produced once more by the next run"
            ) from None


def open_producer(settings: Mapping[str, str]) -> Records:
    """Where a redrive's records go."""
    return Records({**settings, **_PRODUCER}, _TRIED_SECONDS)


class Redrive:
    """Produces what letters are about.

    Args:
        reader: of `open_consumer`; for the records that bare letters are about.
        records: None: only count.
        to: the topic; None: where each record came from.
        rate: records a second; None: as fast as may be.

    Attributes:
        moved: how many records went where.
        gone: how many bare letters there were whose record is there no more.
    """

    def __init__(self, reader: Consumer, records: Records | None, to: str | None, rate: float | None) -> None:
        self._records = records
        self._reader = reader
        self._origins = Origins(reader)
        self._to = to
        self._rate = rate
        self._began = time.monotonic()
        self._sent = 0
        self._partitions: dict[str, int] = {}
        self.moved: Counter[str] = Counter()
        self.gone = 0

    def send(self, letter: Letter, progress: Progress, entry: list[int]) -> None:
        """Has one letter's record produced; `entry` is done once the broker has it."""
        topic, partition, offset = letter.origin
        key, value, own = letter.key, letter.value, letter.headers
        if not letter.is_copy:
            found = self._origins.find(topic, partition, offset)
            if found is None:
                self.gone += 1
                progress.end(entry)
                return
            key, value, own = _content(found)
        target = self._to or topic
        if target not in self._partitions:
            self._partitions[target] = partitions_of(self._reader, target)
        self.moved[target] += 1
        if self._records is None:
            progress.end(entry)
            return
        self._pace()
        self._records.send(
            target,
            value,
            key,
            partition=partition % self._partitions[target],
            headers=letter.redriven_headers(own),
            written=partial(progress.end, entry),
        )
        if self._records.failed:
            raise CommandFailed(f"{target}: {self._records.failed[0]}")

    def finish(self) -> None:
        """Waits for the broker's answers; raises CommandFailed where one is missing or is an error."""
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
