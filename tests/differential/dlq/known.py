"""What is kept different on purpose (docs/decisions/differences-from-apache.md, "Dead letters")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

Path = tuple[Any, ...]
Difference = tuple[Path, Any, Any]
MISSING = "nothing"


def differences(apache: Any, ours: Any, path: Path = ()) -> list[Difference]:
    """Where two things that were seen differ: the way there, Apache's and ours."""
    if isinstance(apache, dict) and isinstance(ours, dict):
        return [
            found
            for key in [*apache, *(key for key in ours if key not in apache)]
            for found in differences(apache.get(key, MISSING), ours.get(key, MISSING), (*path, key))
        ]
    if isinstance(apache, list) and isinstance(ours, list) and len(apache) == len(ours):
        return [
            found
            for index, (theirs, mine) in enumerate(zip(apache, ours, strict=True))
            for found in differences(theirs, mine, (*path, index))
        ]
    return [] if apache == ours else [(path, apache, ours)]


def _own_headers(scenario: str, difference: Difference) -> bool:
    """A copy carries the record's own headers."""
    path, apache, _ = difference
    return bool(path[-1] == "own" and apache == [])


def _kept_bare(scenario: str, difference: Difference) -> bool:
    """What is too large together with the letter's headers comes without its value, and the rest comes."""
    path, apache, ours = difference
    return bool(
        scenario == "too_large_with_the_headers_of_the_letter"
        and path[0] == "letters"
        and [letter["value"] for letter in apache] == [b"small"]
        and [letter["value"] for letter in ours] == [b"small", None, b"small"]
    )


def _some_keys(scenario: str, difference: Difference) -> bool:
    """A compacted topic refuses a batch whole for the record without a key; the others come alone."""
    path, apache, ours = difference
    return bool(
        scenario == "compacted_topic_and_some_keys"
        and path == ("letters", 0)
        and apache == []
        and [letter["key"] for letter in ours] == [b"k0", b"k2"]
    )


def _pinned(scenario: str, difference: Difference) -> bool:
    """The start offset passes what is leased and no longer in the log."""
    return scenario == "records_are_deleted_while_leased" and difference == (("lag", 0), 5, 0)


def _control_records(scenario: str, difference: Difference) -> bool:
    """Markers of transactions get letters there, with their bytes."""
    path, apache, ours = difference
    if not (scenario.startswith("transactions") and path == ("letters", 0)):
        return False
    return bool([letter for letter in apache if not _is_marker(letter)] == ours)


def _is_marker(letter: dict[str, Any]) -> bool:
    key, value = letter["key"], letter["value"]
    return isinstance(key, bytes) and len(key) == 4 and isinstance(value, bytes) and len(value) in (6, 10, 16)


KNOWN: dict[str, Callable[[str, Difference], bool]] = {
    "own headers": _own_headers,
    "a letter without its value": _kept_bare,
    "letters that a compacted topic takes": _some_keys,
    "pinned start offset": _pinned,
    "control records": _control_records,
}


def unexplained(scenario: str, apache: Any, ours: Any, counts: Counter[str]) -> list[Difference]:
    """The differences that have no name; those that have are counted."""
    left = []
    for difference in differences(apache, ours):
        name = next((name for name, is_it in KNOWN.items() if is_it(scenario, difference)), None)
        if name is None:
            left.append(difference)
        else:
            counts[name] += 1
    return left
