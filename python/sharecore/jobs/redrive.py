"""Archived records back to a topic: fetched and produced by executors, each at least once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame

from sharecore.admin.origin import redriven_headers
from sharecore.errors import ConfigError, ErrorCode, KafkaError
from sharecore.jobs.records import records_of
from sharecore.jobs.schema import arrow_schema

if TYPE_CHECKING:
    from confluent_kafka import Producer

SCHEMA = (
    "group string, topic string, topicId string, topicPartition int, stateEpoch int, offset bigint, "
    "deliveryCount int, toTopic string, toPartition int, toOffset bigint"
)
_ARROW = arrow_schema(SCHEMA)
_FLUSH_SECONDS = 120.0
_PRODUCER_NAMES = ("bootstrap.servers", "client.id", "security.", "ssl.", "sasl.", "enable.ssl.")
"""The settings that a producer shares with the other clients, by their beginnings."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where records go: the partition of the same number, as far as the topic has that many."""

    group: str
    topic: str | None
    partitions: Mapping[str, int]

    def place(self, topic: str, partition: int) -> tuple[str, int]:
        name = topic if self.topic is None else self.topic
        return name, partition % self.partitions[name]


def check_producer() -> None:
    """Raises ConfigError where there is no producer in this Python."""
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        raise ConfigError(
            'confluent-kafka is missing: pip install "sharecore[spark,clients]", on the workers too'
        ) from None


def redrive(planned: DataFrame, connection: Mapping[str, str], target: Target) -> DataFrame:
    """A row for each record that was produced, from where and to where.

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


_producers: dict[tuple[tuple[str, str], ...], Producer] = {}


def _producer(connection: Mapping[str, str]) -> Producer:
    from confluent_kafka import Producer

    # workers are used again by Spark: what is kept here saves connecting for every task
    known = tuple(sorted(connection.items()))
    if known not in _producers:
        _producers[known] = Producer(producer_settings(connection))
    return _producers[known]


def producer_settings(connection: Mapping[str, str]) -> dict[str, object]:
    """The settings of a producer for whoever has those of another client."""
    shared = {name: value for name, value in connection.items() if name.startswith(_PRODUCER_NAMES)}
    return {
        **shared,
        "enable.idempotence": True,
        "acks": "all",
        "linger.ms": 5,
        # whatever the topic has taken once; what the target takes is the broker's to say
        "message.max.bytes": 1_000_000_000,
        "log_level": 0,
    }


def _produce(
    row: Mapping[str, Any], connection: dict[str, str], target: Target
) -> Sequence[Mapping[str, Any]]:
    delivery = _Delivery(_producer(connection), row, target)
    for batch in records_of(row, connection):
        for record in batch.to_pylist():
            delivery.send(record)
    return delivery.finish()


class _Delivery:
    """The records of one row of the plan on their way to the target."""

    def __init__(self, producer: Producer, row: Mapping[str, Any], target: Target) -> None:
        self._producer = producer
        self._group = target.group
        self._topic, self._partition = target.place(row["topic"], row["partition"])
        self._from = {
            "group": target.group,
            "topic": row["topic"],
            "topicId": row["topicId"],
            "topicPartition": row["partition"],
            "stateEpoch": row["stateEpoch"],
        }
        self._done: list[dict[str, Any]] = []
        self._failed: list[str] = []

    def send(self, record: Mapping[str, Any]) -> None:
        headers = redriven_headers(
            [(header["key"], header["value"]) for header in record["headers"] or ()],
            topic=record["topic"],
            partition=record["partition"],
            offset=record["offset"],
            group=self._group,
            deliveries=record["deliveryCount"],
        )

        def answered(error: Any, message: Any) -> None:
            if error is not None:
                self._failed.append(error.str())
                return
            self._done.append(
                {
                    **self._from,
                    "offset": record["offset"],
                    "deliveryCount": record["deliveryCount"],
                    "toTopic": self._topic,
                    "toPartition": message.partition(),
                    "toOffset": message.offset(),
                }
            )

        while True:
            try:
                self._producer.produce(
                    self._topic,
                    record["value"],
                    record["key"],
                    self._partition,
                    on_delivery=answered,
                    timestamp=max(0, round(record["timestamp"].timestamp() * 1000)),
                    headers=[*headers],
                )
                break
            except BufferError:
                self._producer.poll(0.1)
        self._producer.poll(0)

    def finish(self) -> list[dict[str, Any]]:
        """Waits for the broker's answers; raises KafkaError where one is missing or is an error."""
        left = self._producer.flush(_FLUSH_SECONDS)
        if left:
            self._failed.append(f"{left} without an answer within {_FLUSH_SECONDS:g} s")
        if self._failed:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"{len(self._failed)} records could not be produced to {self._topic}-{self._partition}, "
                f"the first: {self._failed[0]}",
            )
        return self._done
