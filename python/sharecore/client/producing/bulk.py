"""Confirmations of many records sent together."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sharecore.client.producing.records import SentRecords
from sharecore.errors import KafkaError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError as RdkafkaError

UNUSED_MAX = 20_000
"""The most callbacks kept for reuse, about 2 MB."""


class Bulk:
    """Collects the positions of the records of one `send_many`.

    Args:
        topic, count: of its records.
        failure: converts librdkafka's error.
        done: called once all are answered; in any thread.
    """

    def __init__(
        self,
        topic: str,
        count: int,
        failure: Callable[[RdkafkaError], KafkaError],
        done: Callable[[SentRecords], None],
    ) -> None:
        self.count, self._failure, self._done = count, failure, done
        self._results = results = SentRecords(topic, count)
        self.partitions, self.offsets = results.partitions, results.offsets
        self.timestamps = results.timestamps
        # atomic: two threads never lose a count
        self.answers = itertools.count(1)
        if not count:
            self.finish()

    def finish(self) -> None:
        """Pass on the results after the last record's response."""
        self._done(self._results)

    def failed(self, index: int, error: RdkafkaError) -> None:
        """Record librdkafka's error for a record."""
        self._results.failures[index] = self._failure(error)

    def not_sent(self, first: int, error: KafkaError) -> None:
        """Fail this record and all later ones, which would overtake it."""
        for index in range(first, self.count):
            self._results.failures[index] = error
            if next(self.answers) == self.count:
                self.finish()


class Callback:
    """Records the position of one record, or why it was not confirmed; then reused for another record.

    The garbage collector visits all pending callbacks again and again, which costs more than the callback's
    own work: so it is one reused object, rather than a function with its bound state.

    Args:
        unused: where it returns itself after a call.
    """

    __slots__ = ("_unused", "bulk", "index")

    bulk: Bulk
    index: int

    def __init__(self, unused: list[Callback]) -> None:
        self._unused = unused

    def __call__(self, error: RdkafkaError | None, message: Any) -> None:
        bulk, index = self.bulk, self.index
        if error is None:
            bulk.partitions[index] = message.partition()
            bulk.offsets[index] = message.offset()
            bulk.timestamps[index] = message.timestamp()[1]
        else:
            bulk.failed(index, error)
        if len(self._unused) < UNUSED_MAX:
            self._unused.append(self)
        if next(bulk.answers) == bulk.count:
            bulk.finish()
