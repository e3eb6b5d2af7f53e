"""Whether a worker is alive, and whether it processes records."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Health:
    """The health of a worker.

    Args:
        live: its threads work; otherwise only a restart of the process helps.
        ready: it is a member of its group, the broker responds, and the event loop is not blocked.
        reason: why it is not ready or not live; None if it is both.
        last_poll_seconds: seconds since it last polled, 0 during a poll; None before the first.
        loop_lag_seconds: lag of the handlers' event loop.
        records_in_hand: records locked for it.
        running: of these, how many are in a handler.
        queued: how many wait for a free slot.
        retrying: how many failed and wait for a retry.
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
        """Return this as a JSON object with the attributes' names."""
        return json.dumps(asdict(self))


NOT_RUNNING = Health(True, False, "the worker is not running", None, 0.0, 0, 0, 0, 0)


def together(several: Iterable[Health]) -> Health:
    """Return the combined health of several runs: ready if all are."""
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
