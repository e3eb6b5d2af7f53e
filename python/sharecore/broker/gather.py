"""Several operations that end through callbacks, and one answer out of all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

from sharecore.errors import KafkaError

Name = TypeVar("Name", bound=Hashable)
Outcome = Any


class Gather(Generic[Name]):
    """Runs operations and collects what their callbacks are called with; a refusal counts as its outcome.

    Args:
        names: of the operations, in the order of the answer.
    """

    def __init__(self, names: Iterable[Name]) -> None:
        self._outcomes: dict[Name, Outcome] = dict.fromkeys(names)
        self._open = 0
        self._ended: Callable[[], None] | None = None

    @property
    def names(self) -> list[Name]:
        """The operations."""
        return list(self._outcomes)

    def run(self, name: Name, operation: Callable[..., object], *args: Any) -> None:
        """Begins an operation; its last argument is what to call with its outcome."""
        self._open += 1

        def done(outcome: Outcome) -> None:
            self._outcomes[name] = outcome
            self._open -= 1
            if not self._open and self._ended is not None:
                self._ended()

        try:
            operation(*args, done)
        except KafkaError as error:
            done(error)

    def put(self, name: Name, outcome: Outcome) -> None:
        """Sets an outcome that is known."""
        self._outcomes[name] = outcome

    def answer(
        self, answer: Callable[[dict[Name, Outcome]], dict[str, Any]]
    ) -> dict[str, Any] | asyncio.Future[dict[str, Any]]:
        """The answer out of all outcomes, at once when they are known."""
        if not self._open:
            return answer(self._outcomes)
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

        def ended() -> None:
            if not future.done():
                future.set_result(answer(self._outcomes))

        self._ended = ended
        return future
