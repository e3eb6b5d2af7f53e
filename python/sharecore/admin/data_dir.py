"""Share state out of a broker's data directory, which is not changed; the broker may be running."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from sharecore.admin.share_state import History, LiveState, StateDump, StateHistory
from sharecore.admin.state_topic import CHUNK_BYTES, StateProblem, StateSink, feed
from sharecore.coordinator_log.routing import partition_for
from sharecore.errors import ErrorCode, KafkaError
from sharecore.sharestate.keys import STATE_TOPIC, SharePartitionKey
from sharecore.storage import Log, Storage, StorageOptions, Topic

Sink = TypeVar("Sink", bound=StateSink)
_ATTEMPTS = 5


def share_state(path: Path, key: SharePartitionKey | None = None) -> StateDump:
    """Return the live state in a data directory, of all share partitions or of one.

    Raises:
        OSError: there is no data of a broker, or its files are damaged.
        KafkaError: UNKNOWN_TOPIC_OR_PARTITION when the broker never had share state; KAFKA_STORAGE_ERROR when
            its files cannot be read.
    """
    state, names = _read(path, lambda: LiveState(key), key)
    return state.dump(names)


def share_state_history(path: Path, key: SharePartitionKey) -> StateHistory:
    """Return the records about one share partition in a data directory; raise as `share_state`."""
    history, _ = _read(path, lambda: History(key), key)
    return history.history()


def _read(
    path: Path, new_sink: Callable[[], Sink], key: SharePartitionKey | None
) -> tuple[Sink, dict[UUID, str]]:
    for attempt in range(_ATTEMPTS):
        storage = Storage(path, StorageOptions(cache_bytes=0, read_only=True))
        try:
            topic = storage.topics.get(STATE_TOPIC)
            if topic is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no share state: {path} has no topic {STATE_TOPIC}"
                )
            sink = new_sink()
            for log in _logs(topic, key):
                _read_log(log, sink)
            return sink, {each.topic_id: each.name for each in storage.topics}
        except KafkaError as error:
            # a running broker may remove a file between two reads of it
            if error.code != ErrorCode.KAFKA_STORAGE_ERROR or attempt == _ATTEMPTS - 1:
                raise
        finally:
            storage.close()
    raise AssertionError("the last attempt returns or raises")


def _logs(topic: Topic, key: SharePartitionKey | None) -> list[Log]:
    if key is None:
        return list(topic.partitions)
    return [topic.partitions[partition_for(key.coordinator_key(), len(topic.partitions))]]


def _read_log(log: Log, sink: StateSink) -> None:
    offset, end = log.start_offset, log.high_watermark
    while offset < end:
        following = feed(sink, log.index, log.read(offset, CHUNK_BYTES).records, offset, end)
        if following == offset:
            sink.problem(StateProblem(log.index, offset, "nothing from here on can be read"))
            return
        offset = following
