"""Fetch requests and results: whole record batches as bytes, never decoded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypedDict
from uuid import UUID

from sharecore._core import whole_batches

if TYPE_CHECKING:
    from sharecore.protocol.received import FetchPartitionData

NO_SESSION = -1
"""Epoch of a fetch without a session."""
_NO_EPOCH = _NO_OFFSET = -1


class Wanted(NamedTuple):
    """A partition to fetch, with offset and byte limit."""

    topic: str
    topic_id: UUID
    partition: int
    offset: int
    max_bytes: int
    leader_epoch: int


class Fetched(NamedTuple):
    """Result for one partition.

    Attributes:
        records: whole batches; the first may start before the requested offset. Empty without any.
        first: the requested offset.
        end: the offset after the last batch; `first` without one.
        high_watermark, last_stable_offset, log_start_offset: offsets of the upstream log.
        aborted: (producer id, first offset) of aborted transactions, for read_committed only.
        leader_epoch: leader epoch of the answer; -1 if the request had none.
    """

    records: bytes
    first: int
    end: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[tuple[int, int]]
    leader_epoch: int = -1


class FetchOptions(TypedDict):
    """Arguments of `fetch_message` that all fetches of a link share."""

    committed: bool
    max_bytes: int
    rack: str


def fetch_message(
    wanted: Iterable[Wanted],
    *,
    committed: bool,
    max_wait_ms: int,
    max_bytes: int,
    session: tuple[int, int] = (0, NO_SESSION),
    forgotten: Sequence[tuple[str, UUID, int]] = (),
    rack: str = "",
) -> dict[str, object]:
    """Return a Fetch with topic names and ids, for any version.

    Args:
        committed: whether to read only committed records, with the list of aborted transactions.
        session: session id and epoch.
        forgotten: topic, topic id and partition of those leaving the session.
    """
    return {
        "replica_id": -1,
        "max_wait_ms": max_wait_ms,
        "min_bytes": 1,
        "max_bytes": max_bytes,
        "isolation_level": 1 if committed else 0,
        "session_id": session[0],
        "session_epoch": session[1],
        "topics": _by_topic((each.topic, each.topic_id, _asked(each)) for each in wanted),
        "forgotten_topics_data": _by_topic(forgotten),
        "rack_id": rack,
    }


def _by_topic(entries: Iterable[tuple[str, UUID, object]]) -> list[dict[str, object]]:
    topics: dict[str, tuple[UUID, list[object]]] = {}
    for topic, topic_id, entry in entries:
        topics.setdefault(topic, (topic_id, []))[1].append(entry)
    return [
        {"topic": topic, "topic_id": topic_id, "partitions": partitions}
        for topic, (topic_id, partitions) in topics.items()
    ]


def _asked(wanted: Wanted) -> dict[str, int]:
    return {
        "partition": wanted.partition,
        "current_leader_epoch": wanted.leader_epoch,
        "fetch_offset": wanted.offset,
        "last_fetched_epoch": _NO_EPOCH,
        "log_start_offset": _NO_OFFSET,
        "partition_max_bytes": wanted.max_bytes,
    }


def read_fetched(answer: FetchPartitionData, first: int) -> Fetched:
    """Return a partition's result for the offset `first`."""
    records = answer.records or b""
    end = first
    if records:
        # the broker cuts the answer at a byte limit, not at the end of a batch
        size, following = whole_batches(records)
        if size < len(records):
            records = records[:size]
        end = first if following is None else max(first, following)
    return Fetched(
        records,
        first,
        end,
        answer.high_watermark,
        answer.last_stable_offset,
        answer.log_start_offset,
        [(each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()],
    )
