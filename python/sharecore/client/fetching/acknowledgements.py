"""Results of acknowledgements by share partition, and the callback for each response."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import NamedTuple

from sharecore.client.fetching.lease import Lease, Span
from sharecore.errors import KafkaError

logger = logging.getLogger(__name__)


class TopicPartition(NamedTuple):
    """A share partition by its topic's name."""

    topic: str
    partition: int


class Acknowledged(NamedTuple):
    """The result of acknowledgements of one share partition; `error` is None on success."""

    topic: str
    partition: int
    offsets: tuple[tuple[int, int], ...]
    """(first offset, last offset) of each range."""
    error: KafkaError | None


Callback = Callable[[Acknowledged], None]


class Results:
    """Collects results until the next commit takes them."""

    def __init__(self) -> None:
        self.callback: Callback | None = None
        self.raised: list[Exception] = []
        """Exceptions of callbacks, raised by the application's next call."""
        self.refused: Callable[[Lease, Sequence[Span], KafkaError], None] | None = None
        """Called with each error, before the application sees it."""
        self.answered: Callable[[Lease, Sequence[Span], KafkaError | None], None] | None = None
        """Called with each response and its acknowledgements, renewals included."""
        self.calling_in = 0
        """The thread that runs the callback now; 0 if none does."""
        self._since: dict[TopicPartition, KafkaError | None] = {}
        self._unreported: list[Acknowledged] = []

    def settled(
        self, lease: Lease, spans: Sequence[Span], error: KafkaError | None, *, later: bool = False
    ) -> None:
        """Record a response; the first error per share partition is kept.

        Args:
            later: call the callback in another turn of the event loop, or from the next `notify`: the
                application is inside an acknowledge call.
        """
        key = TopicPartition(lease.topic, lease.partition)
        if self._since.get(key) is None:
            self._since[key] = error
        if error is not None and self.refused is not None:
            self.refused(lease, spans, error)
        if self.answered is not None:
            self.answered(lease, spans, error)
        if self.callback is not None:
            offsets = tuple((span.first, span.last) for span in spans)
            self._unreported.append(Acknowledged(key.topic, key.partition, offsets, error))
            if later:
                asyncio.get_running_loop().call_soon(self.notify)
            else:
                self.notify()
        elif error is not None and self.answered is None:
            logger.warning(
                "acknowledgements of %s-%d failed, the records may be redelivered: %s",
                key.topic,
                key.partition,
                error,
            )

    def notify(self) -> None:
        """Call the callback with the pending results, in order."""
        unreported, self._unreported = self._unreported, []
        for answer in unreported:
            if self.callback is None:
                return
            self.calling_in = get_ident()
            try:
                self.callback(answer)
            except Exception as raised:
                self.raised.append(raised)
            finally:
                self.calling_in = 0

    def take(self) -> dict[TopicPartition, KafkaError | None]:
        """Return the results since the last call, after the callback has been called with all of them."""
        self.notify()
        since, self._since = self._since, {}
        return since
