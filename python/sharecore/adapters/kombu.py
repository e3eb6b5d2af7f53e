"""A transport for Celery and kombu: `pip install 'sharecore[celery]'`."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import time
from collections.abc import Collection, Mapping
from datetime import datetime
from importlib.metadata import version
from queue import Empty
from typing import Any
from uuid import uuid4

from sharecore.adapters.inbox import DELIVERY_COUNT, Held, ThreadedInbox, provide
from sharecore.admin import BlockingAdmin, Target
from sharecore.admin.topics import TopicAdmin
from sharecore.client import BlockingProducer
from sharecore.client.workers.preparation import Needs
from sharecore.errors import ErrorCode, KafkaError

try:
    from kombu.exceptions import ChannelError
    from kombu.transport import TRANSPORT_ALIASES, virtual
    from kombu.utils.json import dumps, loads
except ImportError as error:
    raise ImportError("kombu is missing; run: pip install 'sharecore[celery]'") from error

logger = logging.getLogger("sharecore.adapters")

_PORT = 9092
_POLL_SECONDS = 0.25
_GET_SECONDS = 0.5
"""How long a `get` of a single message looks for one."""
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9._-]")
_TAKE_MAX = 20
_JOIN_SECONDS = 10.0
_CONNECT_SECONDS = 5.0
_PROVIDE_SECONDS = 30.0

_OPTIONS = ("group_id", "config", "dead_letters", "max_deliveries", "visibility_timeout")

_FANOUT = (
    "sharecore:// has no fanout exchanges: a job goes to one worker of its queue. Use a queue and a group "
    "for each reader; remote control and broadcasts need another broker"
)


class QoS(virtual.QoS):
    """Maps delivery tags to records."""

    restore_at_shutdown = False

    def __init__(self, channel: Channel, prefetch_count: int = 0) -> None:
        super().__init__(channel, prefetch_count)
        self._held: dict[str, tuple[ThreadedInbox, Held]] = {}

    def hold(self, tag: str, inbox: ThreadedInbox, held: Held) -> None:
        """Note a delivery."""
        self._held[tag] = inbox, held

    def ack(self, delivery_tag: str) -> None:
        """Accept a record."""
        self._decide(delivery_tag, "accept")
        super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Release a record, or reject it: then it is a dead letter, if the group has a topic for them."""
        self._decide(delivery_tag, "release" if requeue else "reject")
        super().reject(delivery_tag, requeue=False)

    def restore_unacked(self) -> list[object]:
        """Release all records that are not acknowledged."""
        self._flush()
        for tag in list(self._delivered):
            self.reject(tag, requeue=True)
        return []

    def _decide(self, tag: str, verdict: str) -> None:
        # threads of Celery's pools acknowledge too
        inbox, held = self._held.pop(tag, (None, None))
        if inbox is not None:
            inbox.run(getattr(held, verdict))


class Channel(virtual.Channel):
    """A queue is a topic, read by a share group.

    Options (`transport_options`):
        group_id: the share group, celery by default.
        config: more settings of producer and consumer.
        dead_letters: a topic for rejected messages; made and set for the group.
        max_deliveries: the group's delivery limit.
        visibility_timeout: seconds after which a message that is still held is delivered again; without limit
            by default.
    """

    QoS = QoS
    do_restore = False
    supports_fanout = False
    from_transport_options = (*virtual.Channel.from_transport_options, *_OPTIONS)

    group_id = "celery"
    config: Mapping[str, object] | None = None
    dead_letters: str | None = None
    max_deliveries: int | None = None
    visibility_timeout: float | None = None

    def __init__(self, connection: object, **more: object) -> None:
        super().__init__(connection, **more)
        self._process = os.getpid()
        self._producer: BlockingProducer | None = None
        self._inbox: ThreadedInbox | None = None
        self._single: dict[str, ThreadedInbox] = {}
        self._subscribed: Collection[str] = ()
        self._unacknowledged: set[str] = set()
        self._made: set[str] = set()

    # queues

    def exchange_declare(
        self, exchange: str | None = None, type: str = "direct", *arguments: object, **more: object
    ) -> None:
        """Declare an exchange; raises ChannelError for fanout."""
        if type == "fanout":
            raise ChannelError(_FANOUT)
        super().exchange_declare(exchange, type, *arguments, **more)

    def _new_queue(self, queue: str, **_: object) -> None:
        topic = topic_of(queue)
        if topic not in self._made:
            waiting = provide(self._consumer_config(), [topic], self._needs())
            try:
                asyncio.run(asyncio.wait_for(waiting, _PROVIDE_SECONDS))
            except TimeoutError:
                raise KafkaError(
                    ErrorCode.REQUEST_TIMED_OUT, f"no broker answered within {_PROVIDE_SECONDS:g} s"
                ) from None
            self._made.add(topic)

    def _has_queue(self, queue: str, **_: object) -> bool:
        topic = topic_of(queue)

        async def look() -> bool:
            async with TopicAdmin(self._client_config()) as admin:
                return any(each.name == topic for each in await admin.list_topics())

        return asyncio.run(look())

    def _size(self, queue: str) -> int:
        """Return the group's lag; 0 if it is unknown."""
        topic = topic_of(queue)
        with BlockingAdmin(self._client_config()) as admin:
            try:
                offsets = admin.offsets(self.group_id)
            except KafkaError as error:
                if error.code == ErrorCode.GROUP_ID_NOT_FOUND:
                    return 0
                raise
        return sum(each.lag or 0 for each in offsets if each.partition.topic == topic)

    def _purge(self, queue: str) -> int:
        """Skip all messages of the queue; raise ChannelError if the group has members."""
        count = self._size(queue)
        with BlockingAdmin(self._client_config()) as admin:
            try:
                admin.reset(admin.plan_reset(self.group_id, Target.latest(), topics=[topic_of(queue)]))
            except KafkaError as error:
                raise ChannelError(f"queue {queue} was not purged: {error}") from error
        return count

    def _delete(self, queue: str, *_: object, **__: object) -> None:
        """Leave the topic: other groups may read it, and it may hold jobs."""

    # messages

    def _put(self, queue: str, message: Mapping[str, Any], **_: object) -> None:
        """Send a message; returns once the cluster has confirmed it.

        An `eta` is the record's delivery time, in groups that have these.
        """
        topic = topic_of(queue)
        self._new_queue(queue)
        given = message.get("headers", {})
        headers = {
            name: str(value)
            for name, value in given.items()
            if name in ("id", "task", "retries", "eta", "expires") and value is not None
        }
        due = _time_of(given.get("eta"))
        self._sender().send(topic, dumps(message).encode(), headers=headers, deliver_at=due)

    def _put_fanout(self, *_: object, **__: object) -> None:
        raise ChannelError(_FANOUT)

    def basic_consume(self, queue: str, no_ack: bool, *arguments: object, **more: object) -> None:
        """Consume a queue; messages without acknowledgement are accepted when they are delivered."""
        (self._unacknowledged.add if no_ack else self._unacknowledged.discard)(queue)
        super().basic_consume(queue, no_ack, *arguments, **more)

    def basic_get(self, queue: str, no_ack: bool = False, **more: object) -> object:
        """Return a message, or None."""
        message = super().basic_get(queue, no_ack=no_ack, **more)
        if message is not None and no_ack:
            self.qos.ack(message.delivery_tag)
        return message

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, object]:
        topic = topic_of(queue)
        inbox = self._single.get(topic)
        if inbox is None:
            inbox = self._single[topic] = self._open([topic])
        until = time.monotonic() + (_GET_SECONDS if timeout is None else timeout)
        while True:
            left = max(0.0, until - time.monotonic())
            for held in inbox.take(1, min(_POLL_SECONDS, left)):
                message = self._message_of(held, inbox)
                if message is not None:
                    return message
            if not left:
                raise Empty

    def _get_many(self, queues: list[str], timeout: float | None = None) -> None:
        """Deliver messages of the consumed queues; raise Empty if none arrives in time."""
        topics = {topic_of(queue): queue for queue in queues}
        if self._inbox is None:
            self._inbox = self._open(list(topics))
        elif self._subscribed != topics.keys():
            self._inbox.subscribe(self._consumer_config(), list(topics), self._needs())
        self._subscribed = topics.keys()
        count = min(self.qos.can_consume_max_estimate() or _TAKE_MAX, _TAKE_MAX)
        wait = _POLL_SECONDS if timeout is None else min(timeout, _POLL_SECONDS)
        delivered = 0
        for held in self._inbox.take(count, wait):
            message = self._message_of(held, self._inbox)
            if message is None:
                continue
            tag = message["properties"]["delivery_tag"]
            queue = topics.get(held.record.topic)
            if queue is None:
                # the queue has no consumer any more
                self.qos.reject(tag, requeue=True)
                continue
            delivered += 1
            self.connection._deliver(message, queue)
            if queue in self._unacknowledged:
                self.qos.ack(tag)
        if not delivered:
            raise Empty

    def _message_of(self, held: Held, inbox: ThreadedInbox) -> dict[str, Any] | None:
        record = held.record
        try:
            message: dict[str, Any] = loads(record.value)
            properties = message["properties"]
            info = {"redelivered": record.delivery_count > 1, DELIVERY_COUNT: record.delivery_count}
            properties["delivery_info"] |= info
            if "task" in message["headers"]:
                # Celery turns headers into attributes of a task's request, and nothing else
                message["headers"][DELIVERY_COUNT] = record.delivery_count
        except Exception as error:
            where = f"{record.topic}-{record.partition}@{record.offset}"
            logger.error("%s is no message of kombu and was rejected: %s", where, error)
            inbox.run(held.reject)
            return None
        properties["delivery_tag"] = tag = str(uuid4())
        self.qos.hold(tag, inbox, held)
        return message

    # connections

    def _open(self, topics: list[str]) -> ThreadedInbox:
        inbox = ThreadedInbox(self._consumer_config(), topics, self._needs())
        inbox.wait_until_joined(_JOIN_SECONDS)
        return inbox

    def _client_config(self) -> dict[str, object]:
        client = self.connection.client
        given = {"bootstrap.servers": f"{client.hostname or 'localhost'}:{client.port or _PORT}"}
        if client.userid:
            given |= {"sasl.username": client.userid, "sasl.password": client.password or ""}
        return given | dict(self.config or {})

    def _consumer_config(self) -> dict[str, object]:
        config = self._client_config() | {"group.id": self.group_id}
        if self.visibility_timeout is not None:
            config["lease.max.ms"] = round(self.visibility_timeout * 1000)
        return config

    def _needs(self) -> Needs:
        return Needs(create_topics=True, max_deliveries=self.max_deliveries, dead_letters=self.dead_letters)

    def _sender(self) -> BlockingProducer:
        if self._producer is None or self._process != os.getpid():
            # a forked process does not have its parent's threads
            self._producer, self._process = BlockingProducer(self._client_config()), os.getpid()
        return self._producer

    def close(self) -> None:
        """Release held messages, and leave the group."""
        was_closed = self.closed
        super().close()
        if was_closed or self._process != os.getpid():
            return
        for inbox in (*self._single.values(), *([self._inbox] if self._inbox is not None else [])):
            inbox.close()
        if self._producer is not None:
            self._producer.close()


class Transport(virtual.Transport):
    """Reaches a sharecore broker, or any Kafka cluster with share groups."""

    Channel = Channel
    default_port = _PORT
    polling_interval = 0.02
    driver_type = "sharecore"
    driver_name = "sharecore"
    connection_errors = (*virtual.Transport.connection_errors, OSError, KafkaError)
    implements = virtual.Transport.implements.extend(
        asynchronous=False, exchange_type=frozenset(["direct", "topic"]), heartbeats=False
    )

    def driver_version(self) -> str:
        return version("sharecore")

    def establish_connection(self) -> object:
        """Connect; raise OSError if no broker listens."""
        client = self.client
        seconds = client.connect_timeout or _CONNECT_SECONDS
        socket.create_connection((client.hostname or "localhost", client.port or _PORT), seconds).close()
        return super().establish_connection()


def _time_of(eta: object) -> datetime | None:
    """Return the eta of a task; None if it has no zone, which only its worker knows, or is no time."""
    try:
        found = datetime.fromisoformat(eta) if isinstance(eta, str) else None
        return found if found is not None and found.tzinfo and found.timestamp() > 0 else None
    except (ValueError, OverflowError):
        return None


def topic_of(queue: str) -> str:
    """Return the topic of a queue: its name, with _ for each character that a topic's name cannot have."""
    return _NOT_IN_A_NAME.sub("_", queue)


TRANSPORT_ALIASES["sharecore"] = f"{__name__}:Transport"
