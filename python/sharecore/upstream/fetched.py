"""What a fetch asks for, and what it brought: whole record batches as bytes, never decoded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sharecore._core import whole_batches

NO_SESSION = -1
"""The epoch of a fetch that belongs to no session."""
_NO_EPOCH = _NO_OFFSET = -1


class Wanted(NamedTuple):
    """A partition that is fetched, from which offset on, and how many bytes of it at most."""

    topic: str
    topic_id: UUID
    partition: int
    offset: int
    max_bytes: int
    leader_epoch: int


class Fetched(NamedTuple):
    """What an answer says of one partition.

    Attributes:
        records: whole batches; the first may begin before the offset that was asked for. Empty where there is
            nothing.
        first: the offset that was asked for.
        end: the offset behind the last batch; `first` where there is none.
        high_watermark, last_stable_offset, log_start_offset: of the log upstream.
        aborted: (producer id, first offset) of aborted transactions; read_committed alone brings them.
        leader_epoch: of the leader that answered; -1 where it was not held to one.
    """

    records: bytes
    first: int
    end: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[tuple[int, int]]
    leader_epoch: int = -1


def fetch_message(
    wanted: Iterable[Wanted],
    *,
    committed: bool,
    max_wait_ms: int,
    max_bytes: int,
    session: tuple[int, int] = (0, NO_SESSION),
    forgotten: Sequence[tuple[str, UUID, int]] = (),
    rack: str = "",
) -> dict[str, Any]:
    """Return a Fetch; topics by name and by id, for whichever version is spoken.

    Args:
        committed: only what no open transaction is in front of, with the aborted ones named.
        session: id and epoch.
        forgotten: topic, its id and partition of those that leave the session.
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


def _by_topic(entries: Iterable[tuple[str, UUID, Any]]) -> list[dict[str, Any]]:
    topics: dict[str, dict[str, Any]] = {}
    for topic, topic_id, entry in entries:
        found = topics.get(topic)
        if found is None:
            found = topics[topic] = {"topic": topic, "topic_id": topic_id, "partitions": []}
        found["partitions"].append(entry)
    return list(topics.values())


def _asked(wanted: Wanted) -> dict[str, int]:
    return {
        "partition": wanted.partition,
        "current_leader_epoch": wanted.leader_epoch,
        "fetch_offset": wanted.offset,
        "last_fetched_epoch": _NO_EPOCH,
        "log_start_offset": _NO_OFFSET,
        "partition_max_bytes": wanted.max_bytes,
    }


def read_fetched(answer: Any, first: int) -> Fetched:
    """Return what a partition's part of the answer brought for the offset `first`."""
    records: bytes = answer.records or b""
    end = first
    if records:
        # the log cuts at so many bytes, not behind a batch
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
