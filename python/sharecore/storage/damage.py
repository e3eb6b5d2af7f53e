"""Surveys the intact parts of a damaged data directory, and builds a new directory from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sharecore._core import Store, survey_store
from sharecore.storage.catalog import PRODUCER_IDS
from sharecore.storage.identity import (
    FILE_NAME,
    DamagedIdentity,
    Repeated,
    judge,
    read_identity,
    repeated_by,
    write_identity,
)
from sharecore.storage.store_topics import stored_topics, topic_entry

Progress = Callable[[int, int], object]
"""Called with the bytes done and the total."""

_RECOVERED = "recovered-{}"
_IDS_SKIPPED = 1 << 40


@dataclass(frozen=True, slots=True)
class Problem:
    """A damaged place."""

    file: str
    at: int
    what: str


@dataclass(frozen=True, slots=True)
class Torn:
    """A torn write at the end of the journal, which was never confirmed."""

    file: str
    at: int
    bytes: int

    def __str__(self) -> str:
        return (
            f"{self.file}: the last {self.bytes} bytes, from byte {self.at} on, are of a write that was cut "
            "short and never confirmed; a start drops them"
        )


@dataclass(frozen=True, slots=True)
class Part:
    """A partition of a topic.

    Args:
        topic: its name; None if the topic is unknown.
        partition: its index; the log's number if the topic is unknown.
    """

    topic: str | None
    partition: int

    def __str__(self) -> str:
        return (
            f"log {self.partition} of no known topic"
            if self.topic is None
            else f"{self.topic}-{self.partition}"
        )


@dataclass(frozen=True, slots=True)
class Kept:
    """The intact part of a partition: offsets from `start` to before `end`, except lost ones."""

    part: Part
    start: int
    end: int
    batches: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Lost:
    """Offsets `first` to `last` of a partition, whose records are lost."""

    part: Part
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Damage:
    """The result of a survey.

    Args:
        problems: damage; empty if everything is intact.
        kept: every partition.
        lost: in partition and offset order.
        history_lost: more may be missing without a trace: the newest records of any partition, and changes of
            topics and configurations.
        torn: a torn write left by a crash, which is not damage.
    """

    problems: list[Problem]
    kept: list[Kept]
    lost: list[Lost]
    history_lost: bool
    torn: Torn | None = None

    @property
    def is_whole(self) -> bool:
        """Whether nothing is damaged."""
        return not self.problems


def survey(path: Path, progress: Progress) -> Damage:
    """Read all of a data directory, without changing it.

    Raises:
        OSError: the directory holds no data of a broker, a broker is using it, or it cannot be read.
    """
    return _damage(path, *survey_store(path, progress))


def salvage(path: Path, to: Path, progress: Progress) -> Damage:
    """Build a data directory at `to`, new or empty, from the intact parts of `path`, which is not changed.

    A partition without intact batches stays, empty; records of an unknown topic become a topic named
    `recovered-` and their log's number. If catalog changes may be lost, producer IDs continue far above all
    known ones, so that none is assigned twice.

    Raises:
        OSError: as `survey`; or `to` is not empty or cannot be written, and is left unchanged.
    """
    damage = _damage(path, *survey_store(path, progress, to))
    repeated = _mend(to, skip_ids=damage.history_lost)
    _carry_identity(path, to, repeated)
    return damage


def _carry_identity(path: Path, to: Path, repeated: Repeated) -> None:
    """Write the identity of the new directory, if an intact copy of it was found."""
    try:
        identity = read_identity(path) or repeated.identity
    except DamagedIdentity:
        identity = repeated.identity
    if identity is not None:
        write_identity(to, identity)


def _damage(
    path: Path,
    problems: Iterable[tuple[str, int, str]],
    kept: Iterable[tuple[int, int, int, int, int, bool]],
    lost: Iterable[tuple[int, int, int]],
    catalog: Iterable[tuple[bytes, bytes]],
    history_lost: bool,
    torn: tuple[str, int, int] | None,
) -> Damage:
    entries = dict(catalog)
    parts = _parts(entries.items())
    trouble = judge(path, repeated_by(entries.items()))
    identity = [] if trouble is None else [Problem(str(path / FILE_NAME), 0, trouble)]

    def part(log: int) -> Part:
        return parts.get(log, Part(None, log))

    return Damage(
        [Problem(*problem) for problem in problems] + identity,
        [Kept(part(log), start, end, batches, size) for log, start, end, batches, size, _ in kept],
        [Lost(part(log), first, last) for log, first, last in lost],
        history_lost,
        None if torn is None else Torn(*torn),
    )


def _parts(catalog: Iterable[tuple[bytes, bytes]]) -> Mapping[int, Part]:
    return {
        log: Part(name, index) for name, _, logs in stored_topics(catalog) for index, log in enumerate(logs)
    }


def _mend(path: Path, *, skip_ids: bool) -> Repeated:
    """Make catalog and logs consistent again; return the identity known to the store."""
    store = Store(path)
    try:
        logs = set(store.logs())
        entries = list(store.entries(b""))
        parts = _parts(entries)
        puts = [topic_entry(_RECOVERED.format(log), [log]) for log in sorted(logs - parts.keys())]
        if skip_ids:
            # the stored number may be outdated: the logs know all producers that have written
            written = (producer_id for log in logs for producer_id, *_ in store.active_producers(log))
            known = max(int(dict(entries).get(PRODUCER_IDS, b"0")), max(written, default=-1) + 1)
            puts.append((PRODUCER_IDS, str(known + _IDS_SKIPPED).encode()))
        missing = sorted(parts.keys() - logs)
        if puts or missing:
            store.wait(store.change(puts, create_logs=missing))
            ended, *_ = store.drain()
            if ended and ended[-1][1] is not None:
                raise OSError(ended[-1][1])
        return repeated_by(store.entries(b""))
    finally:
        store.close()
