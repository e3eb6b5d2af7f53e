"""Differences that are kept, each with its name."""

from __future__ import annotations

from tests.differential.access.case import CREATES, SENSELESS, Case
from tests.differential.wire.compare import MISSING, Difference

_UNKNOWN_TOPIC = 3
_SERVER_ERROR = -1


def explain(case: Case, difference: Difference) -> str | None:
    """The name of a difference that is kept; None for one that nobody knows."""
    if case.name == CREATES and difference.path == "topics[]":
        # Apache Kafka answers before the topic is there, and the client asks again; ours waits for it
        apache, ours = difference.apache, difference.ours
        if apache is MISSING and ours["error_code"] == 0:
            return "created topics are in the first answer"
        if ours is MISSING and apache["error_code"] == _UNKNOWN_TOPIC:
            return "created topics are in the first answer"
    if case.name == SENSELESS and difference.apache == _SERVER_ERROR:
        return "server error"
    return None
