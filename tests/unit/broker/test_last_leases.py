"""The broker's record of leases at shutdown, and its use at startup."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from sharecore.broker.store.last_leases import LastLeases
from sharecore.clock import SystemClock
from sharecore.partition.predecessors import Predecessors
from sharecore.persister import SharePartitionKey
from sharecore.storage import Catalog, Ticket

TOPIC = UUID(int=7)


class MemoryCatalog(Catalog):
    def change(self, puts: Iterable[tuple[bytes, bytes]] = (), deletes: Iterable[bytes] = ()) -> Ticket:
        self._changed(puts, deletes)
        ticket = Ticket(0)
        ticket.settle()
        return ticket


class Life:
    """One run of a broker, on the data of the previous one."""

    def __init__(self, catalog: Catalog, *held: str) -> None:
        self.clock = SystemClock()
        self.predecessors = Predecessors(self.clock)
        self.rested: list[int] = []
        partitions = SimpleNamespace(
            predecessors=self.predecessors,
            groups_with_leases=lambda: set(held),
            rest=lambda part, which: self.rested.append(part),
        )
        self.leases = LastLeases(catalog, cast(Any, partitions), self.clock)

    def begin(self, *, has_topics: bool = True) -> None:
        asyncio.run(self.leases.begin(has_topics=has_topics))

    def waits(self, group: str) -> bool:
        return self.predecessors.since_ms(SharePartitionKey(group, TOPIC, 0)) is not None


def test_an_empty_broker_waits_for_nobody_and_one_that_was_not_stopped_for_all() -> None:
    catalog = MemoryCatalog()
    first = Life(catalog)
    first.begin(has_topics=False)
    assert not first.waits("any")
    second = Life(catalog)
    second.begin()
    assert second.waits("any")


def test_after_a_stop_those_groups_wait_whose_members_held_records_then() -> None:
    catalog = MemoryCatalog()
    life = Life(catalog, "busy")
    life.begin()
    asyncio.run(life.leases.end())
    assert life.rested == [0], "nothing is leased behind the note"
    life = Life(catalog)
    life.begin()
    assert (life.waits("busy"), life.waits("idle")) == (True, False)
    life = Life(catalog)
    life.begin()
    assert life.waits("idle"), "it was not stopped since"


def test_after_a_stop_at_which_nobody_held_anything_nobody_waits() -> None:
    catalog = MemoryCatalog()
    asyncio.run(Life(catalog).leases.end())
    life = Life(catalog)
    life.begin()
    assert not life.waits("any")


@pytest.mark.parametrize("note", [b"", b"[]", b'{"groups": []}', b'{"stoppedMs": "x", "groups": []}'])
def test_a_note_that_cannot_be_read_is_none(note: bytes) -> None:
    life = Life(MemoryCatalog([(b"share/last-leases", note)]))
    life.begin()
    assert life.waits("any")


def test_the_time_since_the_stop_counts_and_a_clock_that_went_back_does_not() -> None:
    clock = SystemClock()
    for ago_ms in (20_000, -20_000):
        note = {"stoppedMs": clock.now_ms() - ago_ms, "groups": ["g"]}
        life = Life(MemoryCatalog([(b"share/last-leases", json.dumps(note).encode())]))
        life.begin()
        since_ms = life.predecessors.since_ms(SharePartitionKey("g", TOPIC, 0))
        assert since_ms is not None
        passed_ms = clock.monotonic_ms() - since_ms
        assert max(0, ago_ms) <= passed_ms < max(0, ago_ms) + 15_000
