"""What ShareFetch and ShareAcknowledge have in common: acknowledgements in, errors a partition out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any
from uuid import UUID

from sharecore.broker.share import Share
from sharecore.errors import ErrorCode, KafkaError
from sharecore.session import SharePartitionId

_RENEW = 4

Batches = list[Any]
"""Acknowledgement batches as they are in the request: first offset, last offset, types."""


class Acknowledgements:
    """The acknowledgements of one request, on their way.

    Args:
        topics: the request's. Where one partition is acknowledged, the answer tells of each that is named.
        may_renew: whether the request says that it renews locks.

    Attributes:
        errors: what became of each partition; None when it is well, or not known yet.
    """

    def __init__(
        self,
        share: Share,
        group_id: str,
        member_id: str,
        topics: Iterable[Any],
        *,
        may_renew: bool,
    ) -> None:
        self.errors: dict[SharePartitionId, KafkaError | None] = {}
        self._open = 1
        self._then: Callable[[], None] | None = None
        asked = [
            ((topic.topic_id or UUID(int=0), partition.partition_index), partition.acknowledgement_batches)
            for topic in topics
            for partition in topic.partitions
        ]
        for partition, batches in asked if any(batches for _, batches in asked) else ():
            self.errors[partition] = None
            self._open += 1
            try:
                _check(batches, may_renew=may_renew)
                leader = share.partitions.get(group_id, *partition)
                if batches:
                    leader.load()
                    leader.acknowledge(member_id, batches, partial(self._ended, partition))
                else:
                    self._ended(partition, None)
            except KafkaError as error:
                self._ended(partition, error)
        self._open -= 1

    @property
    def pending(self) -> bool:
        """Whether some are not durable yet."""
        return self._open > 0

    def when_ended(self, callback: Callable[[], None]) -> None:
        """Calls back when all of them have ended; only while some are pending."""
        self._then = callback

    def _ended(self, partition: SharePartitionId, error: KafkaError | None) -> None:
        self.errors[partition] = error
        self._open -= 1
        if not self._open and self._then is not None:
            # let go of it: whoever waits holds these acknowledgements, and cycles are work for the collector
            then, self._then = self._then, None
            then()


def _check(batches: Batches, *, may_renew: bool) -> None:
    """Refuses what no engine needs to look at: strange types, and batches that do not ascend."""
    types = b"".join([batch[2] for batch in batches])
    if types and (largest := max(types)) >= _RENEW and not (largest == _RENEW and may_renew):
        # an unknown type, or a renewal that was not announced
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    last = -1
    for batch in batches:
        if batch[0] < last:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        last = batch[1]
