"""Archived records back to a topic: fetched and produced by executors, each at least once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from sharecore.admin.origin import redriven_headers
from sharecore.jobs.delivery import Delivery, headers_of
from sharecore.jobs.records import records_of
from sharecore.jobs.schema import arrow_schema

SCHEMA = (
    "group string, topic string, topicId string, topicPartition int, stateEpoch int, offset bigint, "
    "deliveryCount int, toTopic string, toPartition int, toOffset bigint"
)
_ARROW = arrow_schema(SCHEMA)


@dataclass(frozen=True, slots=True)
class Target:
    """Target of redriven records: the same partition, modulo the topic's number of partitions."""

    group: str
    topic: str | None
    partitions: Mapping[str, int]

    def place(self, topic: str, partition: int) -> tuple[str, int]:
        name = topic if self.topic is None else self.topic
        return name, partition % self.partitions[name]


def redrive(planned: DataFrame, connection: Mapping[str, str], target: Target) -> DataFrame:
    """Return a row for each produced record, with its origin and target.

    The rows are there once the broker has them (acks=all, idempotent producer). A task that Spark runs again
    produces its records again.

    Args:
        planned: what `redrive_plan.plan` gave.
    """
    settings = dict(connection)

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            for row in part.to_pylist():
                if row["ranges"]:
                    yield pa.RecordBatch.from_pylist(_produce(row, settings, target), schema=_ARROW)

    return planned.select("topic", "topicId", "partition", "stateEpoch", "ranges").mapInArrow(run, SCHEMA)


def _produce(
    row: Mapping[str, Any], connection: dict[str, str], target: Target
) -> Sequence[Mapping[str, object]]:
    delivery = Delivery(connection)
    topic, partition = target.place(row["topic"], row["partition"])
    for batch in records_of(row, connection):
        for record in batch.to_pylist():
            headers = redriven_headers(
                headers_of(record),
                topic=record["topic"],
                partition=record["partition"],
                offset=record["offset"],
                group=target.group,
                deliveries=record["deliveryCount"],
            )
            done = {
                "group": target.group,
                "topic": row["topic"],
                "topicId": row["topicId"],
                "topicPartition": row["partition"],
                "stateEpoch": row["stateEpoch"],
                "offset": record["offset"],
                "deliveryCount": record["deliveryCount"],
            }
            delivery.send(topic, partition, record, headers, done)
    return delivery.finish()
