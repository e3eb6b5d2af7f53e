"""Callbacks, for requests on which tasks and futures would cost too much."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from sharecore._core import Gather as _Gather
from sharecore._core import settle
from sharecore.errors import KafkaError

__all__ = ["Done", "Gather", "settle"]

Name = TypeVar("Name", bound=Hashable)

Done = Callable[[KafkaError | None], None]
"""Called once: with None when an operation is durable, else with an error."""


class Gather(_Gather, Generic[Name]):
    """Operations that end through callbacks, and their results.

    All operations must begin before `when_ended` is called.
    """

    __slots__ = ()

    @property
    def failed(self) -> dict[Name, KafkaError]:
        """Operations that failed, with their errors."""
        return {name: each for name, each in self.outcomes.items() if isinstance(each, KafkaError)}
