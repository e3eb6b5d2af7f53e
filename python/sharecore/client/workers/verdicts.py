"""Decide what an exception from a handler means, and describe it."""

from __future__ import annotations

from builtins import BaseExceptionGroup  # requires Python 3.11, as the client does

from sharecore.client.fetching.lease import AcknowledgeType

_TEXT_LENGTH_MAX = 500


class Reject(Exception):
    """Raised by a handler: this record can never be processed. It is not redelivered."""


class Release(Exception):
    """Raised by a handler: redeliver this record at once, to this worker or another.

    It uses up one delivery, regardless of `on_error` and `retry`.
    """


def verdict_of(error: BaseException) -> AcknowledgeType | None:
    """Return REJECT or RELEASE if the handler requested it, None for any other failure.

    For an exception group its contents count, and `Reject` wins over `Release`: asyncio.TaskGroup wraps the
    exceptions of its tasks.
    """
    found = {type_of for leaf in _leaves(error) for type_of in (Reject, Release) if isinstance(leaf, type_of)}
    if Reject in found:
        return AcknowledgeType.REJECT
    return AcknowledgeType.RELEASE if Release in found else None


def _leaves(error: BaseException) -> list[BaseException]:
    leaves, rest = [], [error]
    while rest:
        each = rest.pop()
        if isinstance(each, BaseExceptionGroup):
            rest += each.exceptions
        else:
            leaves.append(each)
    return leaves


def describe(error: BaseException) -> str:
    """Return the exception's class and text in one line, even if the text raises or is very long."""
    name = type(error).__name__
    try:
        text = str(error)
    except BaseException as broken:
        text = f"<its text raises {type(broken).__name__}>"
    if len(text) > _TEXT_LENGTH_MAX:
        text = text[:_TEXT_LENGTH_MAX] + "..."
    text = " ".join(text.split())
    return f"{name}: {text}" if text else name
