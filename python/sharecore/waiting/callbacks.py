"""Callbacks, in place of tasks and futures where a request must cost little."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from sharecore._core import Gather as _Gather
from sharecore._core import settle
from sharecore.errors import KafkaError

__all__ = ["Done", "Gather", "settle"]

Name = TypeVar("Name", bound=Hashable)

Done = Callable[[KafkaError | None], None]
"""Called once: with None when an operation is durable, else with why it is not."""


class Gather(_Gather, Generic[Name]):
    """Operations that end through callbacks, and what they have ended with.

    All of them begin before somebody asks with `when_ended`.
    """

    __slots__ = ()

    @property
    def failed(self) -> dict[Name, KafkaError]:
        """Those that have ended with an error."""
        return {name: each for name, each in self.outcomes.items() if isinstance(each, KafkaError)}
