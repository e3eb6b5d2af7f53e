"""Reads the log of a share partition and leases what it finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sharecore._core import Partition
from sharecore.errors import KafkaError
from sharecore.partition.records import Acquired, aborted_ranges, holding, subtracted
from sharecore.storage import Reader

if TYPE_CHECKING:
    from sharecore.storage import Log, Slice

_READS_MAX = 8


class Leased(NamedTuple):
    """What was leased.

    Args:
        records: the record batches that hold it.
        acquired: first offset, last offset, delivery count.
        total: records of them.
        archived: whether records of aborted transactions were taken out of it.
        error: why the log was read no further, or the engine failed.
    """

    records: bytes
    acquired: list[Acquired]
    total: int
    archived: bool
    error: KafkaError | None


class Leasing:
    """Leases the records of one log.

    Args:
        log: the log.
        ready: called when what was not in memory is there, so that trying again gets it.

    Attributes:
        read_committed: whether records of aborted transactions are archived instead.
    """

    __slots__ = ("_log", "_reader", "read_committed")

    def __init__(self, log: Log, ready: Callable[[], object]) -> None:
        self._log = log
        self._reader = Reader(log, ready)
        self.read_committed = False

    @property
    def reading(self) -> bool:
        """Whether a thread reads from the disk; `ready` will be called."""
        return self._reader.warming

    def acquire(
        self,
        engine: Partition,
        now_ms: int,
        member: str,
        end: int,
        max_bytes: int,
        max_records: int,
        batch_size: int,
        *,
        record_limit: bool,
        at_least_one: bool,
    ) -> Leased:
        """Leases records to a member.

        Each read starts at the engine's next fetch offset and goes no further than the records wanted, and
        what was acquired together with the last of them: records given back far behind the newest do not make
        everything between them be read. What is near its delivery limit comes without other reads: in smaller
        company, in the end alone. What lies on the disk is not waited for: a thread reads it.

        Args:
            end: the offset before which records may be delivered.
            max_bytes: about how many bytes of record batches.
            max_records: about how many records, exact with `record_limit`.
            at_least_one: one record batch comes whatever its size.
        """
        log = self._log
        parts: list[bytes] = []
        acquired: list[Acquired] = []
        size = count = 0
        read_to = -1
        archived = slow = False
        failure: KafkaError | None = None
        for _ in range(_READS_MAX):
            try:
                left = max_records - count
                if left <= 0 or (parts and size >= max_bytes) or not engine.can_acquire:
                    break
                offset = max(engine.next_fetch_offset, log.start_offset)
                if offset >= end or offset <= read_to:
                    break
                was_slow, slow = slow, engine.is_slow(offset)
                if acquired and (was_slow or slow):
                    break
                to = offset + left - 1
                part = self._reader.read(
                    offset,
                    max_bytes - size,
                    limit=end,
                    at_least_one=at_least_one and not parts,
                    max_records=(to if record_limit else engine.batch_end(to)) - offset + 1,
                )
                if part is None or not part.batches:
                    break
                if part.batches[0][0] > offset:
                    engine.pass_hole(now_ms, offset, part.batches[0][0] - 1)
                aborted = self._aborted(part) if self.read_committed else None
                # by position: each name would cost as much as a getter
                more = engine.acquire(now_ms, member, part.batches, offset, left, batch_size, record_limit)
                if aborted and more:
                    more = _without(engine, aborted, now_ms, more)
                    archived = True
            except KafkaError as error:
                failure = error
                break
            read_to = part.batches[-1][1]
            if not more:
                continue
            records = holding(part.records, part.batches, more)
            parts.append(records)
            size += len(records)
            acquired += more
            for first, last, _ in more:
                count += last - first + 1
        records = parts[0] if len(parts) == 1 else b"".join(parts)
        return Leased(records, acquired, count, archived, failure)

    def _aborted(self, part: Slice) -> list[tuple[int, int]]:
        """The offsets of what was read that belong to aborted transactions, as ranges."""
        aborted = self._log.aborted(part.batches[0][0], part.batches[-1][1] + 1)
        return aborted_ranges(part.records, part.batches, aborted) if aborted else []


def _without(
    engine: Partition, aborted: Sequence[tuple[int, int]], now_ms: int, acquired: list[Acquired]
) -> list[Acquired]:
    """What is left of an acquisition once the records of aborted transactions are archived."""
    for first, last in aborted:
        # an acquisition may end before the records that were read
        for acquired_first, acquired_last, _ in acquired:
            if first <= acquired_last and acquired_first <= last:
                engine.archive(now_ms, max(first, acquired_first), min(last, acquired_last))
    return subtracted(acquired, aborted)
