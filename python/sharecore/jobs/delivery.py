"""Records on their way to a topic from an executor, each at least once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sharecore.admin.origin import Header
from sharecore.errors import ConfigError, ErrorCode, KafkaError

if TYPE_CHECKING:
    from confluent_kafka import Producer

_FLUSH_SECONDS = 120.0
_PRODUCER_NAMES = ("bootstrap.servers", "client.id", "security.", "ssl.", "sasl.", "enable.ssl.")
"""The settings that a producer shares with the other clients, by their beginnings."""
_producers: dict[tuple[tuple[str, str], ...], Producer] = {}


def check_producer() -> None:
    """Raise ConfigError if confluent-kafka is not installed."""
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        raise ConfigError(
            "confluent-kafka is missing; run: pip install sharecore, on Spark's workers too"
        ) from None


def producer_settings(connection: Mapping[str, str]) -> dict[str, object]:
    """Return producer settings with the connection settings of another client."""
    shared = {name: value for name, value in connection.items() if name.startswith(_PRODUCER_NAMES)}
    return {
        **shared,
        "enable.idempotence": True,
        "acks": "all",
        "linger.ms": 5,
        # no limit here: the target topic decides what it accepts
        "message.max.bytes": 1_000_000_000,
        "log_level": 0,
    }


class Delivery:
    """Records that are produced; `finish` gives a row for each."""

    def __init__(self, connection: Mapping[str, str]) -> None:
        self._producer = _producer(connection)
        self._done: list[dict[str, object]] = []
        self._failed: list[str] = []

    def send(
        self,
        topic: str,
        partition: int,
        record: Mapping[str, Any],
        headers: Sequence[Header],
        row: Mapping[str, object],
    ) -> None:
        """Has a record produced with these headers.

        Args:
            record: with `key`, `value`, and `timestamp`, which may be None: now.
            row: what `finish` gives, and where it went besides.
        """

        def answered(error: Any, message: Any) -> None:
            if error is not None:
                self._failed.append(f"{topic}-{partition}: {error.str()}")
                return
            place = {"toPartition": message.partition(), "toOffset": message.offset()}
            self._done.append({**row, "toTopic": topic, **place})

        timestamp: datetime | None = record["timestamp"]
        while True:
            try:
                self._producer.produce(
                    topic,
                    record["value"],
                    record["key"],
                    partition,
                    on_delivery=answered,
                    timestamp=0 if timestamp is None else max(0, round(timestamp.timestamp() * 1000)),
                    headers=[*headers],
                )
                break
            except BufferError:
                self._producer.poll(0.1)
        self._producer.poll(0)

    def finish(self) -> list[dict[str, object]]:
        """Wait for the broker's answers; raise KafkaError if one is missing or is an error."""
        left = self._producer.flush(_FLUSH_SECONDS)
        if left:
            self._failed.append(f"{left} without an answer within {_FLUSH_SECONDS:g} s")
        if self._failed:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"{len(self._failed)} records could not be produced, the first: {self._failed[0]}",
            )
        return self._done


def headers_of(record: Mapping[str, Any]) -> list[Header]:
    """Return the headers of a row of records."""
    return [(header["key"], header["value"]) for header in record["headers"] or ()]


def _producer(connection: Mapping[str, str]) -> Producer:
    from confluent_kafka import Producer

    # Spark reuses its workers: the cached connection saves connecting for every task
    known = tuple(sorted(connection.items()))
    if known not in _producers:
        _producers[known] = Producer(producer_settings(connection))
    return _producers[known]
