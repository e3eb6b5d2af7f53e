"""What became of acknowledgements: results a share partition, and the callback that hears of each answer."""

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
    """The answer to acknowledgements of one share partition; `error` is None when they are committed."""

    topic: str
    partition: int
    offsets: tuple[tuple[int, int], ...]
    """(first offset, last offset) of each range."""
    error: KafkaError | None


Callback = Callable[[Acknowledged], None]


class Results:
    """Collects answers until the next commit asks for them."""

    def __init__(self) -> None:
        self.callback: Callback | None = None
        self.raised: list[Exception] = []
        """What callbacks raised, for the application's next call to raise."""
        self.refused: Callable[[Lease, Sequence[Span], KafkaError], None] | None = None
        """Called with each error, before the application learns of it."""
        self.answered: Callable[[Lease, Sequence[Span], KafkaError | None], None] | None = None
        """Called with each answer and what it answers, renewals included."""
        self.calling_in = 0
        """The thread in which the callback runs now; 0 while it doesn't."""
        self._since: dict[TopicPartition, KafkaError | None] = {}
        self._untold: list[Acknowledged] = []

    def settled(
        self, lease: Lease, spans: Sequence[Span], error: KafkaError | None, *, later: bool = False
    ) -> None:
        """Note an answer; of a share partition's answers the first error is kept.

        Args:
            later: the callback hears of it in a turn of the event loop of its own, or from the next `tell`:
                the application acknowledges, and may yet have to note what.
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
            self._untold.append(Acknowledged(key.topic, key.partition, offsets, error))
            if later:
                asyncio.get_running_loop().call_soon(self.tell)
            else:
                self.tell()
        elif error is not None and self.answered is None:
            logger.warning(
                "acknowledgements of %s-%d failed, the records may come again: %s",
                key.topic,
                key.partition,
                error,
            )

    def tell(self) -> None:
        """Call the callback with the answers that it has not heard of, in their order."""
        untold, self._untold = self._untold, []
        for answer in untold:
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
        """Return the answers since the last time; the callback has heard of all of them."""
        self.tell()
        since, self._since = self._since, {}
        return since
