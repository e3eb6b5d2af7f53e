"""Reads topics with confluent-kafka, as no member of any group."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import typer

from sharecore.admin.letters import DeadLetterRecord, read_letter
from sharecore.admin.origin import Header
from sharecore.cli.clients import CommandFailed

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

SECONDS = 15.0
"""How long to wait for brokers, unless it is said."""
_BATCH = 500
_SETTINGS: dict[str, object] = {
    "group.id": "sharecore-dlq",
    "enable.auto.commit": False,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
}
_ENABLED = "errors.deadletterqueue.group.enable"


def open_consumer(settings: Mapping[str, object]) -> Consumer:
    """Return a consumer without group assignment; use it in `with`, as its threads must end with it."""
    from confluent_kafka import Consumer

    return Consumer({**settings, **_SETTINGS})


def dead_letter_topics(settings: Mapping[str, object], seconds: float = SECONDS) -> list[str]:
    """Return the topics that may hold dead-letter records; name those without permission on stderr.

    Args:
        seconds: how long to wait for an answer.
    """
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient, ConfigResource

    found, hidden = [], []
    # its types lack callbacks, such as oauth_cb
    with AdminClient(dict(settings)) as admin:  # type: ignore[arg-type]
        names = [name for name in admin.list_topics(timeout=seconds).topics if not name.startswith("__")]
        if not names:
            return []
        asked = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, name) for name in names])
        for resource, answer in asked.items():
            try:
                entry = answer.result(seconds).get(_ENABLED)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    raise
                hidden.append(resource.name)
                continue
            if entry is not None and entry.value == "true":
                found.append(resource.name)
    if hidden:
        typer.echo(f"no right to DESCRIBE_CONFIGS, skipped: {', '.join(sorted(hidden))}", err=True)
    return sorted(found)


def partitions_of(consumer: Consumer, topic: str, seconds: float = SECONDS) -> int:
    """Return the number of partitions of a topic; raise CommandFailed if it does not exist."""
    found = consumer.list_topics(topic, timeout=seconds).topics.get(topic)
    if found is None or found.error is not None or not found.partitions:
        raise CommandFailed(f"there is no topic {topic}, or none that this client may DESCRIBE")
    return len(found.partitions)


class Topic:
    """A topic from a start to its end at the time of construction.

    Args:
        begin: the first offset that is wanted, by partition; those that are left out begin at the start.
        seconds: how long to wait for brokers.
    """

    def __init__(
        self,
        consumer: Consumer,
        topic: str,
        begin: Mapping[int, int] | None = None,
        seconds: float = SECONDS,
    ) -> None:
        from confluent_kafka import TopicPartition

        self._consumer, self._seconds = consumer, seconds
        self._topic = topic
        self.begin: dict[int, int] = {}
        self.end: dict[int, int] = {}
        for index in range(partitions_of(consumer, topic, seconds)):
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, index), timeout=seconds)
            self.begin[index] = min(high, max(low, (begin or {}).get(index, low)))
            self.end[index] = high

    @property
    def offsets(self) -> int:
        """How many offsets lie between."""
        return sum(self.end[index] - first for index, first in self.begin.items())

    def read(self) -> Iterator[Message]:
        """Yield the records, each partition in its order.

        Raises:
            CommandFailed: they cannot be read.
        """
        from confluent_kafka import KafkaError, TopicPartition

        left = {index for index, first in self.begin.items() if first < self.end[index]}
        self._consumer.assign([TopicPartition(self._topic, index, self.begin[index]) for index in left])
        answered_s = time.monotonic()
        while left:
            messages = self._consumer.consume(_BATCH, 0.5)
            if messages:
                answered_s = time.monotonic()
            elif time.monotonic() - answered_s > self._seconds:
                raise CommandFailed(f"{self._topic}: nothing came within {self._seconds:g} s")
            for message in messages:
                index, error = message.partition(), message.error()
                if error is not None:
                    if error.code() != KafkaError._PARTITION_EOF:
                        raise CommandFailed(f"{self._topic}: {error.str()}")
                    left.discard(index or 0)
                elif index in left:
                    offset = message.offset() or 0
                    if offset >= self.end[index] - 1:
                        left.discard(index)
                    if offset < self.end[index]:
                        yield message
        self._consumer.unassign()


class Origins:
    """Records that bare letters are about, read one after the other."""

    def __init__(self, consumer: Consumer, seconds: float = SECONDS) -> None:
        self._consumer, self._seconds = consumer, seconds
        self._at: tuple[str, int, int] | None = None

    def find(self, topic: str, partition: int, offset: int) -> Message | None:
        """Return the record at an offset; None if it is gone."""
        from confluent_kafka import KafkaException, TopicPartition

        place = TopicPartition(topic, partition)
        try:
            low, high = self._consumer.get_watermark_offsets(place, timeout=self._seconds)
        except KafkaException:
            return None  # the topic is gone
        if not low <= offset < high:
            return None
        if self._at != (topic, partition, offset):
            self._consumer.assign([TopicPartition(topic, partition, offset)])
        until = time.monotonic() + self._seconds
        while time.monotonic() < until:
            message = self._consumer.poll(0.5)
            if message is None:
                continue
            if message.error() is not None:
                self._at = None
                return None
            self._at = topic, partition, (message.offset() or 0) + 1
            return message if message.offset() == offset else None
        raise CommandFailed(f"{topic}-{partition}: nothing came within {self._seconds:g} s")


def letter_of(message: Message) -> DeadLetterRecord | None:
    """Return the dead-letter record that a record contains; None for any other record."""
    return read_letter(
        message.partition() or 0,
        message.offset() or 0,
        message.timestamp()[1],
        plain(message.key()),
        plain(message.value()),
        headers_of(message),
    )


def headers_of(message: Message) -> list[Header]:
    """Return the headers of a record."""
    return [(str(header[0]), plain(header[1])) for header in message.headers() or ()]


def plain(content: str | bytes | None) -> bytes | None:
    """Content as bytes."""
    return content.encode() if isinstance(content, str) else content
