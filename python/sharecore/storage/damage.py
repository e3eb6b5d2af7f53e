"""What of a damaged data directory is whole, and a new directory made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sharecore._core import Store, survey_store
from sharecore.storage.catalogue import PRODUCER_IDS
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
"""Called with the bytes that are done and how many there are."""

_RECOVERED = "recovered-{}"
_IDS_SKIPPED = 1 << 40


@dataclass(frozen=True, slots=True)
class Problem:
    """A place that is not as it was written."""

    file: str
    at: int
    what: str


@dataclass(frozen=True, slots=True)
class Torn:
    """Bytes of a write that was cut short, at the end of the journal: no answer was given for it."""

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
        topic: its name; None when nothing tells whose records they are.
        partition: its index; the number of the log when there is no topic.
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
    """What of a partition is whole: offsets from `start` to before `end`, but for what is lost."""

    part: Part
    start: int
    end: int
    batches: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Lost:
    """Offsets `first` to `last` of a partition, whose records are gone."""

    part: Part
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Damage:
    """What was found.

    Args:
        problems: what is damaged; nothing when all is whole.
        kept: every partition.
        lost: in the order of partitions and offsets.
        history_lost: more may be missing of which nothing tells: the newest records of any partition, and
            changes of topics and configurations.
        torn: what a crash left of a write, which is no damage.
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
    """Read all of a data directory and change nothing.

    Raises:
        OSError: it holds no data of a broker, a broker has it, or it cannot be read.
    """
    return _damage(path, *survey_store(path, progress))


def salvage(path: Path, to: Path, progress: Progress) -> Damage:
    """Make a data directory at `to`, new or empty, of all that is whole at `path`, which stays as it is.

    A partition of which nothing is left is there, empty; records of which nothing tells whose they are become
    a topic named `recovered-` and the number of their log. Where changes of the catalogue may be lost,
    producer ids go on far behind those that it and the logs know: nobody is given another's.

    Raises:
        OSError: as `survey`; or `to` is not empty or cannot be written. Nothing is there then.
    """
    damage = _damage(path, *survey_store(path, progress, to))
    repeated = _mend(to, skip_ids=damage.history_lost)
    _carry_identity(path, to, repeated)
    return damage


def _carry_identity(path: Path, to: Path, repeated: Repeated) -> None:
    """Tells the new directory who it belongs to, where anything whole does."""
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
    catalogue: Iterable[tuple[bytes, bytes]],
    history_lost: bool,
    torn: tuple[str, int, int] | None,
) -> Damage:
    entries = dict(catalogue)
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


def _parts(catalogue: Iterable[tuple[bytes, bytes]]) -> Mapping[int, Part]:
    return {
        log: Part(name, index) for name, _, logs in stored_topics(catalogue) for index, log in enumerate(logs)
    }


def _mend(path: Path, *, skip_ids: bool) -> Repeated:
    """Make catalogue and log agree again; return what the store knows of who it belongs to."""
    store = Store(path)
    try:
        logs = set(store.logs())
        entries = list(store.entries(b""))
        parts = _parts(entries)
        puts = [topic_entry(_RECOVERED.format(log), [log]) for log in sorted(logs - parts.keys())]
        if skip_ids:
            # the number that is kept may be old: the logs know of whoever has written
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
