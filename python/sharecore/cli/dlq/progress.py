"""Which letters of a dead-letter topic are redriven, kept in a file between runs."""

from __future__ import annotations

import json
import time
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path

from sharecore.cli.clients import CommandFailed

_VERSION = 2
_SAVE_SECONDS = 1.0
_SAVE_PART_MAX = 0.05
"""Of the time of a run that goes into writing the file."""


class Ranges:
    """Offsets that are done, as ranges in their order."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._first: list[int] = []
        self._last: list[int] = []
        for first, last in ranges:
            if last < first or (self._last and first <= self._last[-1]):
                raise ValueError(f"{first} to {last}: no range behind the one before")
            self._first.append(first)
            self._last.append(last)

    def __contains__(self, offset: int) -> bool:
        at = bisect_right(self._first, offset) - 1
        return at >= 0 and offset <= self._last[at]

    def add(self, offset: int) -> None:
        """Add one offset."""
        if offset in self:
            return
        at = bisect_right(self._first, offset)
        joins_before = at > 0 and self._last[at - 1] == offset - 1
        joins_after = at < len(self._first) and self._first[at] == offset + 1
        if joins_before and joins_after:
            self._last[at - 1] = self._last.pop(at)
            self._first.pop(at)
        elif joins_before:
            self._last[at - 1] = offset
        elif joins_after:
            self._first[at] = offset
        else:
            self._first.insert(at, offset)
            self._last.insert(at, offset)

    def pairs(self) -> list[tuple[int, int]]:
        """Return the first and the last offset of each range."""
        return list(zip(self._first, self._last, strict=True))


class Progress:
    """Finished dead-letter records of a topic, by partition and offset; filtered ones do not count.

    The topic is known by its id: a topic that was deleted and created again has other letters at the same
    offsets. The file keeps what was done of either.

    Args:
        file: None: nothing is kept.
        topic: the name of the dead-letter topic.
        topic_id: of the topic as it is now.

    Raises:
        CommandFailed: the file is of another topic or an earlier version, or is not a progress file.
    """

    def __init__(self, file: Path | None, topic: str, topic_id: str) -> None:
        self._file = file
        self._topic = topic
        self._topic_id = topic_id
        self._others: dict[str, object] = {}
        self._done: dict[int, Ranges] = {}
        self._saved = time.monotonic()
        self._pause = _SAVE_SECONDS
        self.was_another = False
        """The file is about a topic of this name that was deleted, and not about this one."""
        if file is not None and file.exists():
            self._read(file)

    def _read(self, file: Path) -> None:
        try:
            kept = json.loads(file.read_text())
            topic, version = kept["topic"], kept.get("version", 1)
            topics = kept["topics"] if version == _VERSION else {}
            self._others = {name: done for name, done in topics.items() if name != self._topic_id}
            self._done = {
                int(index): Ranges((first, last) for first, last in ranges)
                for index, ranges in topics.get(self._topic_id, {}).items()
            }
        except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            raise CommandFailed(f"--progress {file}: not a file of an earlier run: {error}") from None
        if topic != self._topic:
            raise CommandFailed(f"--progress {file}: it is about topic {topic}; take another file")
        if version != _VERSION:
            raise CommandFailed(
                f"--progress {file}: another version of sharecore wrote it, and may call letters done that a "
                "filter left out; take another file: letters that were redriven are redriven once more"
            )
        self.was_another = bool(self._others) and not self._done

    def is_done(self, partition: int, offset: int) -> bool:
        """Return whether a letter is done."""
        return partition in self._done and offset in self._done[partition]

    def end(self, partition: int, offset: int) -> None:
        """Note that a letter is done."""
        self._done.setdefault(partition, Ranges()).add(offset)

    def first_open(self) -> dict[int, int]:
        """Return by partition the first offset that may be unfinished, if it is not the first of all."""
        found = {}
        for partition, ranges in self._done.items():
            pairs = ranges.pairs()
            if pairs and pairs[0][0] == 0:
                found[partition] = pairs[0][1] + 1
        return found

    def save(self, *, now: bool = False) -> None:
        """Save the progress, at most once a second unless forced; raise CommandFailed on an error."""
        if self._file is None or (not now and time.monotonic() - self._saved < self._pause):
            return
        began = time.monotonic()
        done = {str(index): ranges.pairs() for index, ranges in sorted(self._done.items())}
        kept = {"version": _VERSION, "topic": self._topic, "topics": {**self._others, self._topic_id: done}}
        fresh = self._file.with_name(self._file.name + ".new")
        try:
            fresh.write_text(json.dumps(kept) + "\n")
            fresh.replace(self._file)
        except OSError as error:
            fresh.unlink(missing_ok=True)
            raise CommandFailed(
                f"--progress {self._file}: {error.strerror or error}; what was produced since it was written "
                "last is produced once more by the next run"
            ) from None
        self._saved = time.monotonic()
        self._pause = max(_SAVE_SECONDS, (self._saved - began) / _SAVE_PART_MAX)
