"""Callbacks, in place of tasks and futures where a request must cost little."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

from sharecore.errors import KafkaError

logger = logging.getLogger(__name__)

Name = TypeVar("Name", bound=Hashable)

Done = Callable[[KafkaError | None], None]
"""Called once: with None when an operation is durable, else with why it is not."""


def settle(callbacks: Iterable[Callable[..., object]], *outcome: Any) -> None:
    """Calls each callback; one that raises is logged, and the others are called all the same."""
    for callback in callbacks:
        try:
            callback(*outcome)
        except Exception:  # noqa: PERF203
            logger.exception("a callback failed: %r", callback)


class Gather(Generic[Name]):
    """Operations that end through callbacks, and what they have ended with.

    All of them begin before somebody asks with `when_ended`.

    Args:
        names: of operations that are known beforehand, in the order of the outcomes.

    Attributes:
        outcomes: what each operation's callback was called with; None for one that has not ended.
    """

    __slots__ = ("_left", "_then", "outcomes")

    def __init__(self, names: Iterable[Name] = ()) -> None:
        self.outcomes: dict[Name, Any] = dict.fromkeys(names)
        self._left = 0
        self._then: Callable[[], object] | None = None

    @property
    def pending(self) -> bool:
        """Whether some have not ended yet."""
        return self._left > 0

    @property
    def failed(self) -> dict[Name, KafkaError]:
        """Those that have ended with an error."""
        return {name: each for name, each in self.outcomes.items() if isinstance(each, KafkaError)}

    def part(self, name: Name) -> Callable[[Any], None]:
        """What the operation of that name calls when it ends; later calls are passed over."""
        self._left += 1
        self.outcomes.setdefault(name)
        return _Part(self, name)

    def run(self, name: Name, operation: Callable[..., object], *args: Any) -> None:
        """Begins an operation; its last argument is what to call with its outcome. KafkaError is one, too."""
        done = self.part(name)
        try:
            operation(*args, done)
        except KafkaError as error:
            done(error)

    def put(self, name: Name, outcome: Any) -> None:
        """Sets an outcome that is known."""
        self.outcomes[name] = outcome

    def when_ended(self, then: Callable[[], object]) -> None:
        """Calls back when all of them have ended, at once when they have."""
        if self._left:
            self._then = then
        else:
            then()

    def end(self, name: Name, outcome: Any) -> None:
        """An operation has ended; for its part alone."""
        self.outcomes[name] = outcome
        self._left -= 1
        if not self._left and self._then is not None:
            # let go of it: whoever waits holds this object, and cycles are work for the collector
            then, self._then = self._then, None
            then()


class _Part:
    """What one operation calls when it ends."""

    __slots__ = ("_gather", "_name")

    def __init__(self, gather: Gather[Any], name: Any) -> None:
        self._gather: Gather[Any] | None = gather
        self._name = name

    def __call__(self, outcome: Any = None) -> None:
        gather, self._gather = self._gather, None
        if gather is not None:
            gather.end(self._name, outcome)
