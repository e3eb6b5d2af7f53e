"""Checks of arguments to a consumer's methods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def check_timeout(timeout: float | None) -> None:
    """Raise ValueError unless a time-out is None or at least 0 seconds."""
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout >= 0:
        raise ValueError(f"timeout={timeout!r}: pass seconds, 0 or more")


def check_max_records(max_records: int | None) -> None:
    """Raise ValueError unless a maximum is None or at least one record."""
    if max_records is not None and max_records < 1:
        raise ValueError(f"max_records={max_records}: pass 1 or more")


def topic_names(topics: Any) -> tuple[str, ...]:
    """Return the topic names of a subscription, sorted, without duplicates.

    Raises:
        ValueError: the argument is a single string, or a name is blank.
    """
    if isinstance(topics, str | bytes):
        raise ValueError("topics must be several names, not one string: pass a list")
    if not isinstance(topics, Iterable):
        raise ValueError(f"topics={topics!r}: pass a list of topic names; unsubscribe() leaves the group")
    names = list(topics)
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"{name!r} is not a topic name: pass a non-blank string")
    return tuple(sorted(set(names)))
