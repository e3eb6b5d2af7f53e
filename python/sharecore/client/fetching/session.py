"""The client's side of a share session (KIP-932): epochs, and the partitions known to the leader."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from uuid import UUID

from sharecore.client.fetching.lease import Span
from sharecore.client.wire.cluster import TopicIdPartition

INITIAL_EPOCH, FINAL_EPOCH = 0, -1
_EPOCH_MAX = 2**31 - 1

Acknowledgements = Mapping[TopicIdPartition, Sequence[Span]]


class ShareSession:
    """Builds the share session's part of requests; without I/O.

    Args:
        group_id, member_id: of the session's member.
    """

    def __init__(self, group_id: str, member_id: str) -> None:
        self._group_id, self._member_id = group_id, member_id
        self.epoch = INITIAL_EPOCH
        self._known: frozenset[TopicIdPartition] = frozenset()
        self._next: frozenset[TopicIdPartition] = frozenset()

    @property
    def opened(self) -> bool:
        """Whether the leader is assumed to have the session; only then it accepts acknowledgements."""
        return self.epoch != INITIAL_EPOCH

    def fetch(
        self, wanted: frozenset[TopicIdPartition], acknowledgements: Acknowledgements
    ) -> dict[str, object]:
        """Return the session's fields of a ShareFetch for `wanted`, which must include the acknowledged
        partitions.
        """
        self._next = wanted
        forgotten: dict[UUID, list[int]] = defaultdict(list)
        for topic_id, partition in sorted(self._known - wanted):
            forgotten[topic_id].append(partition)
        return {
            **self._identity(self.epoch),
            "topics": _topics(wanted - self._known, acknowledgements),
            "forgotten_topics_data": [
                {"topic_id": topic_id, "partitions": partitions} for topic_id, partitions in forgotten.items()
            ],
        }

    def acknowledge(self, acknowledgements: Acknowledgements, *, final: bool = False) -> dict[str, object]:
        """Return the session's ShareAcknowledge fields; the final request closes the session."""
        self._next = frozenset() if final else self._known
        return {
            **self._identity(FINAL_EPOCH if final else self.epoch),
            "topics": _topics(frozenset(), acknowledgements),
        }

    def sent(self) -> None:
        """Record that the last request built was sent; once accepted, the leader is at the next epoch."""
        self._known = self._next
        self.epoch = 1 if self.epoch == _EPOCH_MAX else self.epoch + 1

    def reset(self) -> None:
        """Forget a session that the leader lacks or cannot close; the next fetch opens a new one."""
        self.epoch = INITIAL_EPOCH
        self._known = frozenset()

    def _identity(self, epoch: int) -> dict[str, object]:
        return {"group_id": self._group_id, "member_id": self._member_id, "share_session_epoch": epoch}


def _topics(
    added: frozenset[TopicIdPartition], acknowledgements: Acknowledgements
) -> list[dict[str, object]]:
    topics: dict[UUID, list[dict[str, object]]] = defaultdict(list)
    for key in sorted(added | acknowledgements.keys()):
        topics[key.topic_id].append(
            {
                "partition_index": key.partition,
                "acknowledgement_batches": [_batch(span) for span in acknowledgements.get(key, ())],
            }
        )
    return [{"topic_id": topic_id, "partitions": partitions} for topic_id, partitions in topics.items()]


def _batch(span: Span) -> dict[str, object]:
    types = span.types
    uniform = types.count(types[0]) == len(types)
    return {
        "first_offset": span.first,
        "last_offset": span.last,
        "acknowledge_types": types[:1] if uniform else types,
    }
