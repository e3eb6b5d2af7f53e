"""What is kept different on purpose (docs/decisions/differences-from-apache.md, "What tools show")."""

from __future__ import annotations

from collections.abc import Sequence

STREAMS = "no streams groups"
DEAD_LETTERS = "dead letters are newer"
START_OFFSET = "start offset is not behind"


def explain(apache: Sequence[str], sharecore: Sequence[str]) -> set[str] | None:
    """Names of the known differences between two outputs of a command; None where there is another one."""
    names: set[str] = set()
    kept = [line for line in apache if not line.startswith("streams.")]
    if len(kept) < len(apache):
        names.add(STREAMS)
    served = [line for line in sharecore if not line.startswith("errors.deadletterqueue.")]
    if len(served) < len(sharecore):
        names.add(DEAD_LETTERS)
    if len(kept) != len(served):
        return None
    columns: list[str] = []
    for theirs, ours in zip(kept, served, strict=True):
        if theirs == ours:
            columns = theirs.split() if "START-OFFSET" in theirs else columns
        elif columns and _is_ahead(columns, theirs.split(), ours.split()):
            names.add(START_OFFSET)
        else:
            return None
    return names


def _is_ahead(columns: Sequence[str], theirs: list[str], ours: list[str]) -> bool:
    """Whether two rows differ in the start offset alone, and ours is the later one."""
    if not len(columns) == len(theirs) == len(ours):
        return False
    at = columns.index("START-OFFSET")
    start, other = ours.pop(at), theirs.pop(at)
    return start.isdigit() and other.isdigit() and int(start) > int(other) and ours == theirs
