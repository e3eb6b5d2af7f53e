"""One scenario on one broker: a source topic, a group, and the topic of its dead letters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.differential.dlq.member import Member
from tests.differential.dlq.observe import (
    ARCHIVED,
    ARCHIVING,
    batches,
    histories,
    letters,
    progress,
    records_of,
    settled,
    told,
)
from tests.differential.dlq.side import ALLOWED, Entry, Side

Seen = dict[str, Any]


class World:
    """Names of the scenario's own, so that others do not show."""

    def __init__(self, side: Side, name: str) -> None:
        self.side = side
        self.source, self.dlq, self.group = f"{name}-source", f"dlq.{name}", f"{name}-group"
        self.members = 0

    def prepare(
        self,
        records: int | Sequence[Entry] = 10,
        *,
        partitions: int = 1,
        queue: Mapping[str, str] | None = ALLOWED,
        queue_partitions: int = 1,
        source: Mapping[str, str] | None = None,
        copy: bool = False,
        gzipped: bool = False,
        headers: Sequence[tuple[str, bytes | None]] = (),
        **group: str,
    ) -> None:
        """Make the topics, fill each partition of the source and set the group up.

        Args:
            records: how many, or keys and values.
            queue: settings of the topic of dead letters; None: it is not made.
            source: settings of the source.
        """
        self.side.create(self.source, partitions, source)
        self.source_id = self.side.topic_id(self.source)
        if queue is not None:
            self.side.create(self.dlq, queue_partitions, queue)
        if isinstance(records, int):
            records = [(f"k{number}".encode(), f"v{number}".encode()) for number in range(records)]
        for index in range(partitions if records else 0):
            self.side.produce(self.source, records, partition=index, headers=headers, gzipped=gzipped)
        self.side.group(self.group, self.dlq, copy=copy, **group)

    def begin(self, records: int | Sequence[Entry] = 10, *, partitions: int = 1, **prepare: Any) -> Member:
        """As `prepare`, and has a member join."""
        self.prepare(records, partitions=partitions, **prepare)
        return self.join(partitions)

    def begin_waiting(self, *batches: tuple[int, int, int, int], **begin: Any) -> Member:
        """As `begin`; share state is written before anybody leads it: what a crash may leave.

        Args:
            batches: first and last offset, state (3: a letter is due), delivery count.
        """
        member = self.begin(**begin)
        assert self.side.write_state(self.group, self.source_id, batches) == 0
        return member

    def join(self, partitions: int = 1) -> Member:
        """Another member."""
        self.members += 1
        return Member(self.side, self.group, self.source, partitions, f"m{self.members}")

    def outcome(
        self,
        archived: Mapping[int, Iterable[int]] | Iterable[int],
        wanted: int | None = None,
        *,
        lag: int | None = None,
    ) -> Seen:
        """What is seen once these offsets are archived and there are as many letters.

        Args:
            archived: offsets by partition, or of partition 0.
            wanted: how many letters; None: as many as there are once all is archived.
            lag: what the group's lag comes to.
        """
        offsets = archived if isinstance(archived, Mapping) else {0: archived}
        expected = {index: set(some) for index, some in offsets.items()}

        def good(seen: Seen) -> bool:
            return (
                all(
                    {offset for offset, states in seen["states"][index].items() if states[-1] == ARCHIVED}
                    >= some
                    for index, some in expected.items()
                )
                and not any(
                    states[-1] == ARCHIVING for part in seen["states"].values() for states in part.values()
                )
                and (wanted is None or sum(map(len, seen["letters"].values())) >= wanted)
                and (lag is None or seen["lag"] == {0: lag})
            )

        return dict(settled(lambda: self.seen(expected), good, 15.0))

    def seen(self, partitions: Iterable[int]) -> Seen:
        """States in these partitions of the source, letters and lag as they are now."""
        found = {
            "states": {index: self.states(index) for index in partitions},
            "letters": letters(self.side, self.dlq),
        }
        # the lag is read last: it reflects at least what the states show
        lags = progress(self.side, self.group, self.source)
        return found | {"lag": {index: behind for index, (_, behind) in lags.items()}}

    def batches(self) -> dict[int, list[tuple[int, int]]]:
        """Letters in each batch of their topic, and the batch's attributes."""
        return batches(self.side, self.dlq)

    def offsets(self) -> dict[int, list[int]]:
        """Offsets of the letters, by partition."""
        return {
            index: [record.offset for record in records_of(self.side, self.dlq, index)]
            for index in range(self.side.partitions(self.dlq))
        }

    def told(self) -> dict[int, str]:
        """Which records of the source's one partition have a letter, and whether they are in it."""
        return told(letters(self.side, self.dlq))

    def states(self, partition: int = 0) -> dict[int, list[int]]:
        """Return the archiving part of each offset's history."""
        history = histories(self.side, self.group, self.source_id, partition)
        kept = {
            offset: [state for state in states if state in (ARCHIVING, ARCHIVED)]
            for offset, states in history.items()
        }
        return {offset: states for offset, states in sorted(kept.items()) if states}
