"""Dead-letter records (KIP-1191) as rows, and the redrive of their records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sharecore.admin import TopicPartition
from sharecore.admin.letters import Wanted, read_letter
from sharecore.admin.origin import Header, redriven_headers
from sharecore.jobs.cluster import Ends, ends, topic_of
from sharecore.jobs.delivery import Delivery, headers_of
from sharecore.jobs.records import read_records, records_of
from sharecore.jobs.redrivable import CHUNK
from sharecore.jobs.schema import arrow_schema
from sharecore.sharestate.keys import topic_id_text
from sharecore.spark.rows import HEADERS, headers_type

_Row = Mapping[str, Any]

PLACE = ("letterTopicId", "letterPartition", "letterOffset")
"""What a letter is known by."""
_PLACE = "letterTopicId string, letterPartition int, letterOffset bigint"
_ABOUT = "group string, topic string, topicPartition int, offset bigint, deliveryCount int"
_PLAIN = f"{_PLACE}, letterTimeMs bigint, {_ABOUT}, cause string, copy boolean, key binary, value binary"
LETTERS = _PLAIN + HEADERS
_LETTERS = arrow_schema(_PLAIN, headers=headers_type())
REDRIVEN = f"{_PLACE}, {_ABOUT}, toTopic string, toPartition int, toOffset bigint"
_REDRIVEN = arrow_schema(REDRIVEN)
_WHERE = ("toTopic", "toPartition", "toOffset")
_RANGES = (
    "topic string, topicId string, partition int, "
    "ranges array<struct<first: bigint, last: bigint, count: int>>"
)


@dataclass(frozen=True, slots=True)
class DeadLetterTopic:
    """A dead-letter topic, read within the `ends` of each partition."""

    name: str
    topic_id: str
    ends: Mapping[int, Ends]


@dataclass(frozen=True, slots=True)
class Sources:
    """Origins and targets of records.

    Args:
        to: the topic that all go to; None: each to where it came from.
        logs: of each partition that is still there the id of its topic, and from where to where it reaches.
        partitions: how many a target has.
    """

    to: str | None
    logs: Mapping[tuple[str, int], tuple[str, Ends]]
    partitions: Mapping[str, int]

    def place(self, topic: str, partition: int) -> tuple[str, int]:
        name = topic if self.to is None else self.to
        return name, partition % self.partitions[name]


def letter_topic(connection: Mapping[str, str], topic: str) -> DeadLetterTopic:
    """Return a dead-letter topic as it is now; raise KafkaError (UNKNOWN_TOPIC_OR_PARTITION)."""
    topic_id, partitions = topic_of(connection, topic)
    found = ends(connection, partitions)
    return DeadLetterTopic(topic, topic_id_text(topic_id), {each.partition: found[each] for each in found})


def logs(
    connection: Mapping[str, str], partitions: Iterable[tuple[str, int]]
) -> dict[tuple[str, int], tuple[str, Ends]]:
    """Return topic ids and ends of partitions; deleted ones are skipped."""
    found = ends(connection, (TopicPartition(*each) for each in partitions))
    ids = {topic: topic_id_text(topic_of(connection, topic)[0]) for topic in {each.topic for each in found}}
    return {each: (ids[each.topic], between) for each, between in found.items()}


def letters(
    spark: SparkSession,
    connection: Mapping[str, str],
    topic: DeadLetterTopic,
    wanted: Wanted,
    *,
    topics: Collection[str] = (),
) -> DataFrame:
    """Return the matching dead-letter records, with the columns of LETTERS; other records are skipped.

    `copy` says whether a letter carries its record: key, value, and headers without the letter's own.

    Args:
        topics: only records of these.
    """
    topic_id = topic.topic_id
    ranges = [
        (topic.name, topic_id, partition, [(first, min(first + CHUNK, ends.log_end) - 1, 0)])
        for partition, ends in topic.ends.items()
        for first in range(ends.log_start, ends.log_end, CHUNK)
    ]
    records = read_records(spark.createDataFrame(ranges, _RANGES), connection)

    def read(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            rows = [row for record in part.to_pylist() if (row := _letter(record, topic_id, wanted))]
            yield pa.RecordBatch.from_pylist(rows, schema=_LETTERS)

    found = records.mapInArrow(read, LETTERS)
    return found.where(F.col("topic").isin(*topics)) if topics else found


def _letter(record: Mapping[str, Any], topic_id: str, wanted: Wanted) -> dict[str, object] | None:
    time_ms = round(record["timestamp"].timestamp() * 1000)
    content = record["key"], record["value"], headers_of(record)
    letter = read_letter(record["partition"], record["offset"], time_ms, *content)
    if letter is None or not wanted.takes(letter):
        return None
    topic, partition, offset = letter.origin
    return {
        "letterTopicId": topic_id,
        "letterPartition": letter.partition,
        "letterOffset": letter.offset,
        "letterTimeMs": letter.time_ms,
        "group": letter.group,
        "topic": topic,
        "topicPartition": partition,
        "offset": offset,
        "deliveryCount": letter.deliveries,
        "cause": letter.cause,
        "copy": letter.is_copy,
        "key": letter.key,
        "value": letter.value,
        "headers": [{"key": name, "value": value} for name, value in letter.headers],
    }


def redrive_letters(found: DataFrame, connection: Mapping[str, str], sources: Sources) -> DataFrame:
    """Return a row for each record that was produced, with the columns of REDRIVEN.

    A letter that carries its record gives that one; another the record that is in its topic still, or none. A
    record that is younger than its letter is another one: the topic was deleted and created again.
    The rows are there once the broker has them. A task that Spark runs again produces its records again.

    Args:
        found: what `letters` gave.
    """
    settings = dict(connection)

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            delivery = Delivery(settings)
            for letter, record, headers in _with_records(part.to_pylist(), settings, sources):
                topic, partition = sources.place(letter["topic"], letter["topicPartition"])
                row = {name: letter[name] for name in _REDRIVEN.names[: -len(_WHERE)]}
                delivery.send(topic, partition, record, _headers(letter, headers), row)
            yield pa.RecordBatch.from_pylist(delivery.finish(), schema=_REDRIVEN)

    bare = found.where("not copy").repartition("topic", "topicPartition")
    sorted_bare = bare.sortWithinPartitions("topic", "topicPartition", "offset")
    copies = found.where("copy").mapInArrow(run, REDRIVEN)
    return copies.unionByName(sorted_bare.mapInArrow(run, REDRIVEN))


def _headers(letter: Mapping[str, Any], own: list[Header]) -> list[Header]:
    return redriven_headers(
        own,
        topic=letter["topic"],
        partition=letter["topicPartition"],
        offset=letter["offset"],
        group=letter["group"],
        deliveries=letter["deliveryCount"],
    )


def _with_records(
    rows: list[dict[str, Any]], connection: dict[str, str], sources: Sources
) -> Iterator[tuple[_Row, _Row, list[Header]]]:
    """Yield each dead letter with its record and the record's headers; those without a record are skipped."""
    for (copy, topic, partition), some in groupby(
        rows, lambda row: (row["copy"], row["topic"], row["topicPartition"])
    ):
        about = list(some)
        if copy:
            # a dead-letter record has its own timestamp; the original's is unknown
            yield from ((letter, {**letter, "timestamp": None}, headers_of(letter)) for letter in about)
        elif (topic, partition) in sources.logs:
            topic_id, ends = sources.logs[topic, partition]
            there = [letter for letter in about if ends.log_start <= letter["offset"] < ends.log_end]
            yield from _fetched(
                there, {"topic": topic, "topicId": topic_id, "partition": partition}, connection
            )


def _fetched(
    letters: list[dict[str, Any]], place: _Row, connection: dict[str, str]
) -> Iterator[tuple[_Row, _Row, list[Header]]]:
    """Bare letters with the records that they are about.

    A letter has no topic id, so a topic of the same name may have other records at its offsets.
    """
    by_offset: dict[int, list[dict[str, object]]] = {}
    for letter in letters:
        by_offset.setdefault(letter["offset"], []).append(letter)
    ranges = [{"first": offset, "last": offset, "count": 0} for offset in sorted(by_offset)]
    for batch in records_of({**place, "ranges": ranges}, connection):
        for record in batch.to_pylist():
            time_ms = round(record["timestamp"].timestamp() * 1000)
            for letter in by_offset[record["offset"]]:
                if time_ms <= letter["letterTimeMs"]:
                    yield letter, record, headers_of(record)
