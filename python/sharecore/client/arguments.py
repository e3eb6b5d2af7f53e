"""Checks of arguments to consumers and workers."""

from __future__ import annotations

import asyncio
import math
import operator
import os
from collections.abc import Iterable
from typing import SupportsIndex

from sharecore.errors import ConfigError


def loop_of(what: str, instead: str) -> asyncio.AbstractEventLoop:
    """Return the running event loop; raise RuntimeError, which names an alternative, without one.

    Args:
        what, instead: a class that needs a loop, and the class that needs none.
    """
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        advice = f"create it in a coroutine, or use {instead}"
        raise RuntimeError(f"{what} needs a running event loop: {advice}") from None


def check_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Raise RuntimeError in a coroutine of another event loop, where no answer would arrive."""
    if asyncio.get_running_loop() is not loop:
        advice = "create, use and close it within one asyncio.run"
        raise RuntimeError(f"this client belongs to another event loop: {advice}")


def check_process(pid: int) -> None:
    """Raise RuntimeError in a forked child, which lacks the threads of a client made before the fork.

    Args:
        pid: the process that created the client.
    """
    if os.getpid() != pid:
        raise RuntimeError("this client was created before a fork: create another one in the child process")


def check_timeout(timeout: float | None) -> None:
    """Raise ValueError unless a timeout is None or at least 0 seconds."""
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout >= 0:
        raise ValueError(f"timeout={timeout!r}: pass seconds, 0 or more")


def whole_number(value: object) -> int | None:
    """Return a whole number, also one of numpy's; None for anything else, and for True and False."""
    try:
        return None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def read_max_records(max_records: SupportsIndex) -> int:
    """Return a maximum of at least one record.

    Raises:
        ValueError: anything else.
    """
    found = whole_number(max_records)
    if found is None or found < 1:
        raise ValueError(f"max_records={max_records!r}: pass 1 or more")
    return found


def topic_names(topics: object) -> tuple[str, ...]:
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


def check_whole(name: str, value: object, low: int, high: float = math.inf) -> None:
    """Raise ConfigError unless an option is a whole number in a range."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        bounds = f"from {low} to {high}" if high < math.inf else f"of at least {low}"
        raise ConfigError(f"{name}={value!r}: must be a whole number {bounds}")


def check_number(name: str, value: object) -> None:
    """Raise ConfigError unless an option is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(f"{name}={value!r}: must be a finite number")


def check_flag(name: str, value: object) -> None:
    """Raise ConfigError unless an option is True or False."""
    if not isinstance(value, bool):
        raise ConfigError(f"{name}={value!r}: must be True or False")


def check_text(name: str, value: object) -> None:
    """Raise ConfigError unless an option is a non-empty string."""
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{name}={value!r}: must be a non-empty string")
