"""Records for a browser: by state, poisoned, dead letters. Nothing is taken, no delivery counted."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable

from sharecore._core import Record, decode_records, whole_batches
from sharecore.admin.letters import DeadLetterRecord, read_letter
from sharecore.admin.model import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from sharecore.admin.peek import PeekedRecord, Spans, look_at_records
from sharecore.client.wire.cluster import TopicPartition
from sharecore.client.wire.transport import Transport
from sharecore.errors import ErrorCode, KafkaError
from sharecore.page.looker import Looker
from sharecore.page.views import Json, group_settings, windows_of
from sharecore.protocol import calls

RECORDS_MAX = 100
VALUE_BYTES_MAX = 4096
_POISON_RUNS = 100
_POISON_RECORDS = 50
_FETCHES_AT_ONCE = 4
_LETTER_CHUNK = 1 << 20
_LETTER_CHUNKS_MAX = 8
_TOPICS_ASKED = 1000
_TOPIC_RESOURCE = 2
_ENABLED = "errors.deadletterqueue.group.enable"


async def browse(
    looker: Looker, group_id: str, topic: str, partition: int, states: Collection[str], first: int, most: int
) -> Json:
    """Return records of a share partition in one of `states`, from offset `first` on.

    Raises:
        KafkaError: they may not be read, or are not there.
    """
    position = _position(looker, group_id, topic, partition)
    window = (await windows_of(looker, group_id, topic, [partition])).get(partition)
    runs = window.runs if window is not None else ()
    start = window.start_offset if window is not None else position
    spans = Spans(start, [(run.first, run.last, run.state, run.deliveries) for run in runs], states)
    place = TopicPartition(topic, partition)
    found = await look_at_records(
        looker.transport, place, spans, first=first, max_records=min(most, RECORDS_MAX)
    )
    return {
        "records": [_peeked(each) for each in found.records],
        "next": found.next_offset,
        "start": start,
        "source": window.source if window is not None else "none",
    }


async def poison(looker: Looker, group_id: str) -> Json:
    """Return records near their delivery limit with their content, highest count first.

    Raises:
        KafkaError: share state cannot be read.
    """
    settings = await group_settings(looker, group_id)
    least = max(2, settings["limit"] - 2)
    overview = looker.now.groups.get(group_id) if looker.now is not None else None
    if looker.now is None or overview is None or looker.now.came_back is None:
        return {**settings, "least": least, "runs": None}
    found = sorted(looker.watch.tail.came_back(group_id, least), key=lambda each: (-each[1][3], each[1][0]))
    names = await looker.transport.names_of({key.topic_id for key, _ in found})
    runs = [
        (TopicPartition(names[key.topic_id], key.partition), batch)
        for key, batch in found
        if names.get(key.topic_id) in overview.positions
    ]
    shown = runs[:_POISON_RUNS]
    records = await _of_runs(looker.transport, shown[:_POISON_RECORDS])
    return {
        **settings,
        "least": least,
        "total": sum(last - first + 1 for _, (first, last, _, _) in runs),
        "cut": len(runs) > len(shown),
        "runs": [
            {
                "topic": place.topic, "partition": place.partition, "first": first, "last": last,
                "deliveries": count, "record": records.get((place, first)),
            }
            for place, (first, last, _, count) in shown
        ],
    }  # fmt: skip


async def letter_topics(transport: Transport) -> list[str]:
    """Return the visible topics that may hold dead-letter records."""
    answer = await transport.any(calls.METADATA, {"topics": None, "allow_auto_topic_creation": False})
    names = sorted(
        topic.name
        for topic in answer.topics
        if topic.name and not topic.error_code and not topic.is_internal and not topic.name.startswith("__")
    )
    asked = [
        {"resource_type": _TOPIC_RESOURCE, "resource_name": name, "configuration_keys": [_ENABLED]}
        for name in names[:_TOPICS_ASKED]
    ]
    if not asked:
        return []
    message = {"resources": asked, "include_synonyms": False, "include_documentation": False}
    configs = await transport.any(calls.DESCRIBE_CONFIGS, message)
    return [
        result.resource_name
        for result in configs.results
        if not result.error_code
        and any(entry.name == _ENABLED and entry.value == "true" for entry in result.configs)
    ]


async def letters(transport: Transport, topic: str, group: str, cause: str, most: int) -> Json:
    """Return the newest letters of a topic, newest first.

    Raises:
        KafkaError: the topic may not be read, or is not there.
    """
    partitions = await transport.partitions_of(topic)
    starts = await transport.offsets_for(partitions, EARLIEST_TIMESTAMP)
    ends = await transport.offsets_for(partitions, LATEST_TIMESTAMP)
    most = min(most, RECORDS_MAX)
    found: list[DeadLetterRecord] = []
    complete = True
    for place in partitions:
        some, whole = await _newest(transport, place, starts[place], ends[place], most, group, cause)
        found += some
        complete = complete and whole
    found.sort(key=lambda letter: (-letter.time_ms, letter.partition, -letter.offset))
    return {
        "letters": [_letter(each) for each in found[:most]],
        "total": sum(ends[place] - starts[place] for place in partitions),
        "complete": complete and len(found) <= most,
    }


async def record_at(transport: Transport, place: TopicPartition, offset: int) -> Record | None:
    """Return the record at an offset; None if it is gone; raise KafkaError."""
    try:
        answer = await transport.fetch(place, offset, _LETTER_CHUNK)
    except KafkaError as error:
        if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
            raise
        return None
    records = decode_records(answer.records or b"", [(offset, offset, 1)], *place, None)[0]
    return records[0] if records else None


def letter_of(record: Record) -> DeadLetterRecord | None:
    """Return the dead-letter record that a record contains; None for any other record."""
    return read_letter(
        record.partition, record.offset, record.timestamp, record.key, record.value, record.headers
    )


async def _newest(
    transport: Transport, place: TopicPartition, start: int, end: int, most: int, group: str, cause: str
) -> tuple[list[DeadLetterRecord], bool]:
    """Letters of one partition, and whether these are all; the log is read from its end in steps back."""
    found: list[DeadLetterRecord] = []
    upto = end
    for _ in range(_LETTER_CHUNKS_MAX):
        if upto <= start or len(found) > most:
            break
        first = max(start, upto - max(2 * most, 50))
        some: list[DeadLetterRecord] = []
        offset = first
        while offset < upto:
            answer = await transport.fetch(place, offset, _LETTER_CHUNK)
            data = answer.records or b""
            behind = whole_batches(data)[1]
            if behind is None:
                break
            records = decode_records(data, [(offset, min(behind, upto) - 1, 1)], *place, None)[0]
            some += [
                letter
                for record in records
                if (letter := letter_of(record)) is not None
                and group in ("", letter.group)
                and cause in ("", letter.cause)
            ]
            offset = behind
        found = some + found
        upto = first
    return found[-most:], upto <= start and len(found) <= most


async def _of_runs(
    transport: Transport, runs: Iterable[tuple[TopicPartition, tuple[int, int, int, int]]]
) -> dict[tuple[TopicPartition, int], Json | None]:
    room = asyncio.Semaphore(_FETCHES_AT_ONCE)

    async def read(place: TopicPartition, first: int) -> tuple[tuple[TopicPartition, int], Json | None]:
        async with room:
            try:
                record = await record_at(transport, place, first)
            except KafkaError as error:
                return (place, first), {"error": error.code.name}
            return (place, first), None if record is None else content(record)

    return dict(await asyncio.gather(*(read(place, batch[0]) for place, batch in runs)))


def _position(looker: Looker, group_id: str, topic: str, partition: int) -> int:
    overview = looker.now.groups.get(group_id) if looker.now is not None else None
    if overview is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no share group {group_id}")
    if overview.error is not None:
        raise overview.error
    position = overview.positions.get(topic, {}).get(partition)
    if position is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{group_id} has no state of {topic}-{partition}"
        )
    return position.start_offset


def _peeked(each: PeekedRecord) -> Json:
    return {"state": each.state, "deliveries": each.deliveries, **content(each.record)}


def content(record: Record) -> Json:
    """Return a record's content as text, cut for a browser."""
    return {
        "offset": record.offset,
        "time_ms": record.timestamp,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [[name, _text(value)] for name, value in record.headers[:100]],
        "value_bytes": record.serialized_value_size,
    }


def _letter(letter: DeadLetterRecord) -> Json:
    topic, partition, offset = letter.origin
    return {
        "partition": letter.partition,
        "offset": letter.offset,
        "time_ms": letter.time_ms,
        "group": letter.group,
        "cause": letter.cause,
        "deliveries": letter.deliveries,
        "origin": {"topic": topic, "partition": partition, "offset": offset},
        "copy": letter.is_copy,
        "key": _text(letter.key),
        "value": _text(letter.value),
        "headers": [[name, _text(value)] for name, value in letter.headers[:100]],
    }


def _text(data: bytes | None) -> Json | None:
    if data is None:
        return None
    shown = data[:VALUE_BYTES_MAX]
    return {
        "text": shown.decode("utf-8", "backslashreplace"),
        "cut": len(data) > VALUE_BYTES_MAX,
        "bytes": len(data),
    }
