"""What the page does to groups and letters, once it was confirmed: with the rights of its user."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from sharecore._core import encode_records
from sharecore.admin.client import Admin
from sharecore.admin.letters import DeadLetterRecord
from sharecore.admin.model import OffsetChange, Target
from sharecore.admin.origin import Header
from sharecore.admin.times import parse_time
from sharecore.client.wire.cluster import TopicPartition
from sharecore.client.wire.transport import Transport
from sharecore.errors import ErrorCode, KafkaError
from sharecore.page.reading import RECORDS_MAX, letter_of, record_at
from sharecore.page.views import Json

Fresh = tuple["bytes | None", "bytes | None", Sequence[Header]]

_PAUSE_MINUTES_MAX = 3650 * 24 * 60


class BadRequest(Exception):
    """A request that makes no sense; the text says why."""


async def reset(admin: Admin, body: Json) -> Json:
    """Plan a reset of a group; execute it if `confirm` is the group's name.

    Raises:
        BadRequest, KafkaError.
    """
    group_id = text_of(body, "group")
    topics = [text_of(body, "topic")] if body.get("topic") else []
    plan = await admin.plan_reset(group_id, _target(body), topics=topics)
    if not _confirmed(body, group_id):
        return {"plan": _changes(plan.changes)}
    result = await admin.reset(plan)
    return {
        "done": _changes(result.done),
        "failed": [
            {**_change(change), "error": f"{error.code.name}: {error.message}"}
            for change, error in result.failed
        ],
    }


async def delete_offsets(admin: Admin, body: Json) -> Json:
    """Delete the offsets of a group in a topic; raise BadRequest, KafkaError."""
    group_id, topic = text_of(body, "group"), text_of(body, "topic")
    _require(body, group_id)
    error = (await admin.delete_offsets(group_id, [topic])).get(topic)
    if error is not None:
        raise error
    return {}


async def delete_group(admin: Admin, body: Json) -> Json:
    """Delete a group; raise BadRequest, KafkaError."""
    group_id = text_of(body, "group")
    _require(body, group_id)
    await admin.delete_group(group_id)
    return {}


async def pause(admin: Admin, body: Json) -> Json:
    """Give a group no more records, for `minutes` or until it is resumed; raise BadRequest, KafkaError."""
    group_id = text_of(body, "group")
    _require(body, group_id)
    minutes = body.get("minutes")
    if minutes is None:
        await admin.pause(group_id)
    elif isinstance(minutes, int | float) and 0 < minutes <= _PAUSE_MINUTES_MAX:
        await admin.pause(group_id, until_ms=round(time.time() * 1000 + minutes * 60_000))
    else:
        raise BadRequest(f"minutes: must be above 0 and at most {_PAUSE_MINUTES_MAX}, or omitted")
    return {}


async def resume(admin: Admin, body: Json) -> Json:
    """Give a group records again; raise BadRequest, KafkaError."""
    group_id = text_of(body, "group")
    _require(body, group_id)
    await admin.resume(group_id)
    return {}


async def redrive(transport: Transport, body: Json) -> Json:
    """Redrive dead-letter records, each at least once; they stay in their topic.

    Raises:
        BadRequest, KafkaError: nothing was produced, or not all; the text says how many were.
    """
    queue = text_of(body, "topic")
    _require(body, queue)
    places = _places(body)
    to = body.get("to") or None
    if to is not None and not isinstance(to, str):
        raise BadRequest("to: must be a topic name")
    partitions: dict[str, int] = {}
    batches: dict[TopicPartition, list[Fresh]] = {}
    gone = 0
    for place in places:
        record = await record_at(transport, TopicPartition(queue, place[0]), place[1])
        letter = letter_of(record) if record is not None else None
        fresh = await _content(transport, letter) if letter is not None else None
        if letter is None or fresh is None:
            gone += 1
            continue
        target = to or letter.origin[0]
        if target not in partitions:
            partitions[target] = len(await transport.partitions_of(target))
        number = letter.origin[1] % partitions[target]
        batches.setdefault(TopicPartition(target, number), []).append(fresh)
    moved = await _produce(transport, batches)
    return {"moved": dict(moved), "gone": gone}


async def _produce(transport: Transport, batches: dict[TopicPartition, list[Fresh]]) -> Counter[str]:
    moved: Counter[str] = Counter()
    for partition, records in sorted(batches.items()):
        try:
            await transport.produce(partition, encode_records(records, round(time.time() * 1000)))
        except KafkaError as error:
            done = sum(moved.values())
            raise KafkaError(error.code, f"{partition}: {error.message}; {done} were produced") from None
        moved[partition.topic] += len(records)
    return moved


async def _content(transport: Transport, letter: DeadLetterRecord) -> Fresh | None:
    """Return the record of a dead letter: its copy, or the original; None if it is gone."""
    topic, partition, offset = letter.origin
    key, value, own = letter.key, letter.value, letter.headers
    if not letter.is_copy:
        try:
            record = await record_at(transport, TopicPartition(topic, partition), offset)
        except KafkaError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            record = None
        if record is None:
            return None
        key, value, own = record.key, record.value, record.headers
    return key, value, letter.redriven_headers(own)


def text_of(body: Json, name: str) -> str:
    """Return a text of a request; raise BadRequest."""
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise BadRequest(f"{name}: must be a string")
    return value


def _require(body: Json, name: str) -> None:
    if not _confirmed(body, name):
        raise BadRequest(f"confirm: must be {name!r}")


def _confirmed(body: Json, name: str) -> bool:
    return body.get("confirm") == name


def _target(body: Json) -> Target:
    to, value = body.get("to"), body.get("value")
    try:
        if to == "earliest":
            return Target.earliest()
        if to == "latest":
            return Target.latest()
        if to == "offset" and isinstance(value, str | int):
            return Target.offset(int(value))
        if to == "time" and isinstance(value, str):
            return Target.at(parse_time(value))
    except (ValueError, OverflowError) as error:
        raise BadRequest(f"value: {error}") from None
    raise BadRequest("to: must be earliest, latest, offset or time, the last two with a value")


def _places(body: Json) -> list[tuple[int, int]]:
    given = body.get("letters")
    if not isinstance(given, list) or not 0 < len(given) <= RECORDS_MAX:
        raise BadRequest(f"letters: must be 1 to {RECORDS_MAX} pairs of partition and offset")
    places = []
    for each in given:
        if not (isinstance(each, list) and len(each) == 2 and all(type(one) is int for one in each)):
            raise BadRequest("letters: must be pairs of partition and offset")
        places.append((each[0], each[1]))
    return sorted(set(places))


def _changes(changes: Sequence[OffsetChange]) -> list[Json]:
    return [_change(each) for each in changes[:1000]]


def _change(change: OffsetChange) -> Json:
    return {
        "topic": change.partition.topic,
        "partition": change.partition.partition,
        "before": change.before,
        "after": change.after,
    }
