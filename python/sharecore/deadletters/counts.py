"""What became of a group's dead letters since the broker started."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class GroupCounts:
    """Counters of one group, which only grow.

    Attributes:
        letters: letters written (Kafka's metric DeadLetterQueueRecordCount).
        writes: ranges of records that were sent to the topic (DeadLetterQueueTotalProduceRequests).
        failed_writes: ranges that the topic did not take (DeadLetterQueueFailedProduceRequests).
        without_letter: records that were archived without a letter, whatever the reason.
        undeliverable: records of which no topic could take a letter as things were set: each time that was
            found out.
    """

    letters: int = 0
    writes: int = 0
    failed_writes: int = 0
    without_letter: int = 0
    undeliverable: int = 0
