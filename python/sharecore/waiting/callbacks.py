"""Callbacks, in place of tasks and futures where a request must cost little."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable
from functools import partial
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

    __slots__ = ("_open", "_then", "outcomes")

    def __init__(self, names: Iterable[Name] = ()) -> None:
        self.outcomes: dict[Name, Any] = dict.fromkeys(names)
        self._open: set[Name] = set()
        self._then: Callable[[], object] | None = None

    @property
    def pending(self) -> bool:
        """Whether some have not ended yet."""
        return bool(self._open)

    @property
    def failed(self) -> dict[Name, KafkaError]:
        """Those that have ended with an error."""
        return {name: each for name, each in self.outcomes.items() if isinstance(each, KafkaError)}

    def part(self, name: Name) -> Callable[[Any], None]:
        """What the operation of that name calls when it ends; later calls are passed over."""
        self._open.add(name)
        self.outcomes.setdefault(name)
        return partial(self._end, name)

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
        if self._open:
            self._then = then
        else:
            then()

    def _end(self, name: Name, outcome: Any = None) -> None:
        if name not in self._open:
            return
        self._open.remove(name)
        self.outcomes[name] = outcome
        if not self._open and self._then is not None:
            # let go of it: whoever waits holds this object, and cycles are work for the collector
            then, self._then = self._then, None
            then()
