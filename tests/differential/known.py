"""Where Apache Kafka 4.4.0 differs from the engines on purpose: docs/decisions/differences-from-apache.md.

Each difference is recognized at the one operation where it shows, by what led to it and by what Apache
answered. After some of them the two states have parted, and the rest of the trace says nothing about Apache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.differential.step import Result, Step

from sharecore.reference import ARCHIVED, ARCHIVING


@dataclass(frozen=True, slots=True)
class Known:
    """A difference kept on purpose.

    Attributes:
        name: its heading in the list of differences.
        parts: the states differ from here on.
        shows: whether this is what is seen at a step that Apache answered differently.
    """

    name: str
    parts: bool
    shows: Callable[[Step, Result], bool]


def _same(step: Step, apache: Result, *but: str) -> bool:
    keys = (step.result.keys() | apache.keys()) - {"i", *but}
    return all(step.result.get(key) == apache.get(key) for key in keys)


def _inconsistent_range(step: Step, apache: Result) -> bool:
    return (
        step.operation["op"] == "acquire"
        and apache.get("threw") == "IllegalArgumentException"
        and step.result["acquired"] == []
        and _same(step, apache, "threw", "fetch_offset", "count", "acquired")
    )


def _null_pointer_in_acknowledge(step: Step, apache: Result) -> bool:
    return (
        step.operation["op"] == "ack"
        and apache.get("threw") == "NullPointerException"
        and step.result["error"] == "InvalidRecordStateException"
    )


def _null_pointer_in_the_first_batch(step: Step, apache: Result) -> bool:
    return _null_pointer_in_acknowledge(step, apache) and _same(step, apache, "threw", "error")


def _acknowledge_from_a_gap(step: Step, apache: Result) -> bool:
    before = step.before
    return (
        step.operation["op"] == "ack"
        and apache.get("error") == "InvalidRecordStateException"
        and step.result["error"] != apache["error"]
        and any(
            batch["last"] >= before.start_offset
            and max(batch["first"], before.start_offset) not in before.offsets
            for batch in step.operation["batches"]
        )
    )


def _pinned_start(step: Step, apache: Result) -> bool:
    return bool(
        step.before.held_below
        and apache["start_offset"] == step.before.start_offset < step.result["start_offset"]
        and step.result.get("acquired") == apache.get("acquired")
        and step.result["persisted"] == apache["persisted"]
    )


def _frozen_start(step: Step, apache: Result) -> bool:
    if not step.before.start_in_gap:
        return False
    forgotten = step.before.offsets > step.after.offsets
    advanced = apache["start_offset"] == step.before.start_offset < step.result["start_offset"]
    return bool(
        (advanced or (forgotten and _same(step, apache)))
        and step.result.get("acquired") == apache.get("acquired")
        and step.result["persisted"] == apache["persisted"]
    )


def _start_goes_back(step: Step, apache: Result) -> bool:
    return bool(
        apache["start_offset"] < step.before.start_offset <= step.result["start_offset"]
        and step.result["persisted"] == apache["persisted"]
    )


def _fetch_below_start(step: Step, apache: Result) -> bool:
    return apache["next_fetch_offset"] < apache["start_offset"] <= step.result["next_fetch_offset"] and _same(
        step, apache, "next_fetch_offset", "can_acquire"
    )


def _forgotten_gap(step: Step, apache: Result) -> bool:
    return (
        step.operation["op"] == "acquire"
        and step.result["next_fetch_offset"] not in step.after.offsets
        and step.result["next_fetch_offset"] <= step.result["end_offset"]
        and apache["next_fetch_offset"] == apache["end_offset"] + 1
        and _same(step, apache, "next_fetch_offset", "can_acquire")
    )


def _letter_lost(step: Step, apache: Result) -> bool:
    """A record is archived there, and waits for its letter here."""
    lost = _due(step.result) - _due(apache)
    archived = _offsets(apache["inflight"], ARCHIVED) & _offsets(step.result["inflight"], ARCHIVING)
    return bool(
        step.operation["op"] in ("ack", "complete", "release")
        and lost
        and archived <= lost
        and _due(apache) <= _due(step.result)
        and step.result["persisted"] == apache["persisted"]
    )


def _due(result: Result) -> set[int]:
    """Offsets whose dead letter the operation made due because of the delivery limit."""
    letters = result.get("letters", ())
    return {o for first, last, _, cause in letters if cause == "limit" for o in range(first, last + 1)}


def _offsets(runs: list[list[int]], state: int) -> set[int]:
    return {o for first, last, its, _ in runs if its == state for o in range(first, last + 1)}


_FROZEN = Known("frozen start offset", parts=True, shows=_frozen_start)
KNOWN = (
    Known("inconsistent range", parts=False, shows=_inconsistent_range),
    Known("null pointer in acknowledge", parts=False, shows=_null_pointer_in_the_first_batch),
    Known("null pointer in acknowledge", parts=True, shows=_null_pointer_in_acknowledge),
    Known("acknowledgement from a gap", parts=True, shows=_acknowledge_from_a_gap),
    Known("pinned start offset", parts=True, shows=_pinned_start),
    _FROZEN,
    Known("start offset goes back", parts=True, shows=_start_goes_back),
    Known("fetch below the start offset", parts=True, shows=_fetch_below_start),
    Known("forgotten gap", parts=True, shows=_forgotten_gap),
    Known("no letter after a failed write", parts=True, shows=_letter_lost),
)


def known(step: Step, apache: Result) -> Known | None:
    """Return the listed difference that explains what Apache answered at this step, if one does.

    A frozen start offset need not show: then the step is the last at which the two are known to be alike.
    """
    if _same(step, apache):
        return _FROZEN if _frozen_start(step, apache) else None
    return next((difference for difference in KNOWN if difference.shows(step, apache)), None)
