"""What is kept different on purpose (docs/decisions/differences-from-apache.md, "Dead letters")."""

from __future__ import annotations

import re
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
    if scenario.endswith("_at_the_edge") and path[0] == "kept":
        return (apache, ours) == ("nothing", "bare")
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


_GONE = {"records_are_deleted_while_leased": 5, "gone_below_the_range": 5, "gone_altogether": 10}
"""Where the log began when records below were given up."""


def _pinned(scenario: str, difference: Difference) -> bool:
    """The start offset passes what is leased and no longer in the log: that gets no letter."""
    path, apache, ours = difference
    gone = _GONE.get(scenario, 0)
    if path[0] == "states":
        return bool(path[2] < gone and ours == MISSING)
    if path[0] == "lag":
        # nothing is written for deleted records: the persisted offset follows with the next write
        return (scenario, apache, ours) in (
            ("records_are_deleted_while_leased", 5, 0),
            ("gone_altogether", 0, 10),
        )
    if path != ("letters", 0) or not gone:
        return False
    return [_offset(letter) for letter in apache if _offset(letter) >= gone] == [
        _offset(each) for each in ours
    ]


def _copied_beside_what_is_gone(scenario: str, difference: Difference) -> bool:
    """Apache copies none of a range that begins below the log's start."""
    path, apache, ours = difference
    if scenario != "found_and_records_are_gone" or path[-1] not in ("key", "value"):
        return False
    return path[2] >= 4 and apache is None and ours is not None


def _offset(letter: dict[str, Any]) -> int:
    return int(letter["headers"][2][1])


def _control_records(scenario: str, difference: Difference) -> bool:
    """Markers of transactions get letters there, with their bytes."""
    path, apache, ours = difference
    if path != ("letters", 0) or not isinstance(apache, list):
        return False
    return bool([letter for letter in apache if not _is_marker(letter)] == ours)


def _is_marker(letter: dict[str, Any]) -> bool:
    key, value = letter["key"], letter["value"]
    return isinstance(key, bytes) and len(key) == 4 and isinstance(value, bytes) and len(value) in (6, 10, 16)


def _segments(scenario: str, difference: Difference) -> bool:
    """A batch of letters that is larger than a segment is refused; here logs share one journal."""
    path, apache, ours = difference
    return (
        scenario == "larger_than_a_segment" and path == ("letters", 0) and apache == [] and len(ours) == 700
    )


def _group_made_anew(scenario: str, difference: Difference) -> bool:
    """A group that is deleted and made again goes on with the leader of the old one, and its records."""
    return scenario == "the_group_is_deleted_behind_its_letters" and difference == (
        ("leased", 0),
        (5, 9, 2),
        (0, 9, 1),
    )


def _state_that_cannot_be(scenario: str, difference: Difference) -> bool:
    """Share state is written whatever it says; ours is refused, with INVALID_REQUEST."""
    path, apache, ours = difference
    if scenario != "state_as_it_is_written":
        return False
    if path == ("start",):  # earlier writes are visible
        return bool(apache[:3] == ours[:3] and apache[3][:3] == ours[3][:3])
    return bool(apache[0] in (0, -1) and ours[0] == 42)


def _synonyms(scenario: str, difference: Difference) -> bool:
    """A default that no other setting stands behind names itself as its synonym."""
    path, apache, ours = difference
    if scenario != "settings_of_a_topic" or path[-1] != "synonyms":
        return False
    return apache == [] and [source for _, _, source in ours] == [5]


_NAME = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{0,249}")
_INVALID_CONFIG = 40


def _illegal_name(scenario: str, difference: Difference) -> bool:
    """A name that no topic can have is taken there, and no letter is ever written; ours refuses it."""
    path, apache, ours = difference
    if scenario != "settings_of_a_group":
        return False
    if path[-1] == "value":
        return isinstance(apache, str) and not _NAME.fullmatch(apache)
    if path[-2:-1] == ("synonyms",):
        return not _NAME.fullmatch(apache[1])
    return bool(apache == (0, None) and ours[0] == _INVALID_CONFIG and "is illegal" in ours[1])


KNOWN: dict[str, Callable[[str, Difference], bool]] = {
    "own headers": _own_headers,
    "a letter without its value": _kept_bare,
    "letters that a compacted topic takes": _some_keys,
    "pinned start offset": _pinned,
    "control records": _control_records,
    "copies beside what is gone": _copied_beside_what_is_gone,
    "segments": _segments,
    "a group that is made anew": _group_made_anew,
    "state that cannot be": _state_that_cannot_be,
    "synonyms of a default": _synonyms,
    "names that no topic can have": _illegal_name,
}


def unexplained(scenario: str, apache: Any, ours: Any, counts: Counter[str]) -> list[Difference]:
    """Return the differences that have no name; those that have are counted."""
    left = []
    for difference in differences(apache, ours):
        name = next((name for name, is_it in KNOWN.items() if is_it(scenario, difference)), None)
        if name is None:
            left.append(difference)
        else:
            counts[name] += 1
    return left
