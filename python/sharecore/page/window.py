"""The in-flight window of a share partition: runs of offsets with their states and owners."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from sharecore._core import StateContent
from sharecore.admin.watch import Held
from sharecore.sharestate.records import StateBatch, unpack_batches

RUNS_MAX = 1000
"""Runs that a browser is given of one share partition."""


class Run(NamedTuple):
    """Neighboring offsets that are equal in every respect.

    Args:
        state: a delivery state's number.
        owner: the member that holds them; None where nobody does, or nobody knows.
        left_ms: until the lock runs out.
    """

    first: int
    last: int
    state: int
    deliveries: int
    owner: str | None = None
    left_ms: int | None = None


class Window(NamedTuple):
    """The window of one share partition.

    Args:
        start_offset: what lies before it is settled.
        end_offset: the highest offset in flight.
        runs: ascending; offsets between them were never delivered, or nothing durable is said of them.
        source: `leader`: acquired records; `state`: the durable state, without leases.
        cut: whether there are more runs than these.
        log_end: the end of the log, where it is known.
    """

    start_offset: int
    end_offset: int
    runs: Sequence[Run]
    source: str
    cut: bool = False
    log_end: int | None = None


class Leaders(Protocol):
    """A broker that reports the acquired records of its share-partition leaders."""

    async def held(self) -> Held:
        """Record in flight and the age of the oldest lease, by share partition."""

    async def windows(self, group_id: str, topic: str, partitions: Sequence[int]) -> dict[int, Window]:
        """Return the windows of the share partitions that have a leader."""


def of_state(state: StateContent) -> Window:
    """Return the window of the durable state."""
    batches = state.batches()
    runs = [Run(*batch) for batch in (unpack_batches(batches) if batches else ())]
    end = runs[-1].last if runs else state.start_offset
    return cut(Window(state.start_offset, end, runs, "state"))


def of_leader(
    start: int,
    end: int,
    inflight: Iterable[StateBatch],
    leases: Iterable[tuple[int, int, str, int | None]],
    now_ms: int,
    log_end: int,
) -> Window:
    """Return the window of an engine, with its leases.

    Args:
        inflight: (first, last, state, delivery count), ascending.
        leases: (first, last, member, deadline), ascending.
        now_ms: on the clock of the deadlines.
    """
    runs: list[Run] = []
    held = list(leases)
    at = 0
    for first, last, state, deliveries in inflight:
        while at < len(held) and held[at][1] < first:
            at += 1
        offset, lease = first, at
        while offset <= last:
            if lease >= len(held) or held[lease][0] > last:
                runs.append(Run(offset, last, state, deliveries))
                break
            begin, end_of_lease, member, deadline_ms = held[lease]
            if offset < begin:
                runs.append(Run(offset, begin - 1, state, deliveries))
                offset = begin
            upto = min(last, end_of_lease)
            left_ms = None if deadline_ms is None else max(0, deadline_ms - now_ms)
            runs.append(Run(offset, upto, state, deliveries, member, left_ms))
            offset, lease = upto + 1, lease + 1
    return cut(Window(start, end, runs, "leader", log_end=log_end))


def cut(window: Window) -> Window:
    """Return at most the number of runs that a browser gets."""
    if len(window.runs) <= RUNS_MAX:
        return window
    return window._replace(runs=window.runs[:RUNS_MAX], cut=True)
