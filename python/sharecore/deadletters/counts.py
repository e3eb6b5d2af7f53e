"""Dead-letter counters of a group since the broker started."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class GroupCounts:
    """Counters of one group; they never decrease.

    Attributes:
        letters: dead-letter records written (Kafka's metric DeadLetterQueueRecordCount).
        writes: record ranges sent to the topic (DeadLetterQueueTotalProduceRequests).
        failed_writes: record ranges rejected by the topic (DeadLetterQueueFailedProduceRequests).
        without_letter: records archived without a dead-letter record, for any reason.
        undeliverable: records without a usable dead-letter topic in the settings, counted at each attempt.
    """

    letters: int = 0
    writes: int = 0
    failed_writes: int = 0
    without_letter: int = 0
    undeliverable: int = 0
