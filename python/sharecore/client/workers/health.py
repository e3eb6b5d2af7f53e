"""Whether a worker is alive, and whether it handles records."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Health:
    """How a worker is.

    Args:
        live: its threads work; where it is False, only a new process helps.
        ready: it is a member of its group, the broker answers and the event loop is not blocked.
        reason: why it is not ready, or not live; None where it is both.
        last_poll_seconds: seconds since it last asked for records, 0 while it waits for some; None before.
        loop_lag_seconds: how late the handlers' event loop comes to what is due.
        records_in_hand: records that are locked for it.
        running: of these, how many are with the handler.
        queued: how many wait for a free slot.
        retrying: how many failed and wait for the next try.
    """

    live: bool
    ready: bool
    reason: str | None
    last_poll_seconds: float | None
    loop_lag_seconds: float
    records_in_hand: int
    running: int
    queued: int
    retrying: int

    def as_json(self) -> str:
        """Return this as an object of JSON, by the names of the attributes."""
        return json.dumps(asdict(self))


NOT_RUNNING = Health(True, False, "the worker does not run", None, 0.0, 0, 0, 0, 0)


def together(several: Iterable[Health]) -> Health:
    """Return how several runs are as one: ready where all are."""
    found = list(several)
    if len(found) <= 1:
        return found[0] if found else NOT_RUNNING
    polls = [each.last_poll_seconds for each in found if each.last_poll_seconds is not None]
    return Health(
        all(each.live for each in found),
        all(each.ready for each in found),
        next((each.reason for each in found if each.reason), None),
        max(polls) if polls else None,
        max(each.loop_lag_seconds for each in found),
        sum(each.records_in_hand for each in found),
        sum(each.running for each in found),
        sum(each.queued for each in found),
        sum(each.retrying for each in found),
    )
