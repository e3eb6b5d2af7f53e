"""A broker for Dramatiq: `pip install 'sharecore[dramatiq]'`."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

from sharecore.adapters.inbox import DELIVERY_COUNT, Held, ThreadedInbox, provide
from sharecore.client import BlockingProducer
from sharecore.client.workers.preparation import Needs
from sharecore.errors import ErrorCode, KafkaError

try:
    from dramatiq import Broker, Consumer, Message, MessageProxy, Middleware
    from dramatiq.common import current_millis, dq_name
    from dramatiq.errors import BrokerConnectionError, QueueNotFound
except ImportError as error:
    raise ImportError("dramatiq is missing; run: pip install 'sharecore[dramatiq]'") from error

logger = logging.getLogger("sharecore.adapters")

_PROVIDE_SECONDS = 30.0
_FULL_SECONDS = 0.05


class ShareBroker(Broker):
    """Sends messages to a topic for each queue, and takes them as a member of a share group.

    A message is acknowledged when its actor has returned, or its retry was sent. A worker that dies loses no
    message: its locks run out and others get them.

    A message with a delay goes to a topic of its own, named after the queue with `.DQ` behind it. A worker
    takes it, keeps it locked until its time, sends it to the queue, and then accepts it: so a worker that
    dies meanwhile loses none, and one message may be sent twice. Dramatiq's retries are such messages.

    Args:
        bootstrap_servers: brokers as HOST:PORT, separated by commas.
        group_id: the share group of the workers.
        config: more settings of producer and consumer, such as `security.protocol`.
        dead_letters: a topic for messages that failed for good; created and set for the group.
        max_deliveries: the group's delivery limit; None leaves it.
        middleware: as for every broker of Dramatiq.
    """

    def __init__(
        self,
        bootstrap_servers: str = "localhost:9092",
        *,
        group_id: str = "dramatiq",
        config: Mapping[str, object] | None = None,
        dead_letters: str | None = None,
        max_deliveries: int | None = None,
        middleware: list[Middleware] | None = None,
    ) -> None:
        super().__init__(middleware)
        self._config = {"bootstrap.servers": bootstrap_servers} | dict(config or {})
        self._group = {**self._config, "group.id": group_id}
        self._needs = Needs(create_topics=True, max_deliveries=max_deliveries, dead_letters=dead_letters)
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._producer: BlockingProducer | None = None
        self._made: set[str] = set()

    def close(self) -> None:
        """Send pending messages."""
        with self._lock:
            producer, self._producer = self._producer, None
        if producer is not None and self._process == os.getpid():
            producer.close()

    def declare_queue(self, queue_name: str) -> None:
        """Declare a queue; its topics are created when they are first used."""
        if queue_name in self.queues:
            return
        self.emit_before("declare_queue", queue_name)
        self.queues[queue_name] = None
        self.emit_after("declare_queue", queue_name)
        delayed = dq_name(queue_name)
        self.queues[delayed] = None
        self.delay_queues.add(delayed)
        self.emit_after("declare_delay_queue", delayed)

    def enqueue(self, message: Message[Any], *, delay: int | None = None) -> Message[Any]:
        """Send a message; returns once the cluster has confirmed it.

        Args:
            delay: in milliseconds.

        Raises:
            QueueNotFound: the queue was not declared.
            BrokerConnectionError: the cluster did not confirm it.
        """
        queue_name = message.queue_name
        if queue_name not in self.queues:
            raise QueueNotFound(queue_name)
        if delay is not None:
            queue_name = dq_name(queue_name)
            message = message.copy(queue_name=queue_name, options={"eta": current_millis() + delay})
        message.options.pop(DELIVERY_COUNT, None)
        self.emit_before("enqueue", message, delay)
        headers = {"message_id": message.message_id, "actor": message.actor_name}
        try:
            self._provide(queue_name)
            self._sender().send(queue_name, message.encode(), headers=headers)
        except KafkaError as error:
            raise BrokerConnectionError(f"message {message.message_id} was not confirmed: {error}") from error
        self.emit_after("enqueue", message, delay)
        return message

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 30_000) -> Consumer:
        """Return a consumer of a queue; raises QueueNotFound."""
        if queue_name not in self.queues:
            raise QueueNotFound(queue_name)
        try:
            inbox = ThreadedInbox(self._group, [queue_name], self._needs)
        except KafkaError as error:
            raise BrokerConnectionError(f"queue {queue_name}: {error}") from error
        return _Consumer(inbox, prefetch, timeout)

    def _provide(self, topic: str) -> None:
        if topic in self._made:
            return
        try:
            asyncio.run(asyncio.wait_for(provide(self._group, [topic], self._needs), _PROVIDE_SECONDS))
        except TimeoutError:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, f"no broker answered within {_PROVIDE_SECONDS:g} s"
            ) from None
        self._made.add(topic)

    def _sender(self) -> BlockingProducer:
        with self._lock:
            if self._producer is None or self._process != os.getpid():
                # a forked process does not have its parent's threads
                self._producer, self._process = BlockingProducer(self._config), os.getpid()
            return self._producer


class _Consumer(Consumer):
    """Takes messages of one queue, no more than `prefetch` at once."""

    def __init__(self, inbox: ThreadedInbox, prefetch: int, timeout: int) -> None:
        self._inbox, self._prefetch, self._timeout = inbox, prefetch, timeout
        # worker threads acknowledge messages
        self._lock = threading.Lock()
        self._held = 0

    def __next__(self) -> MessageProxy | None:
        """Return a message; None if none arrives in time, or `prefetch` messages are held."""
        if self._held >= self._prefetch:
            time.sleep(min(_FULL_SECONDS, self._timeout / 1000))
            return None
        for held in self._inbox.take(1, self._timeout / 1000):
            record = held.record
            try:
                message = Message.decode(record.value)
            except Exception as error:
                where = f"{record.topic}-{record.partition}@{record.offset}"
                logger.error("%s is no message of Dramatiq and was rejected: %s", where, error)
                self._inbox.run(held.reject)
                return None
            message.options[DELIVERY_COUNT] = record.delivery_count
            with self._lock:
                self._held += 1
            return _Message(message, held)
        return None

    def ack(self, message: MessageProxy) -> None:
        """Accept a message."""
        self._decide(message, "accept")

    def nack(self, message: MessageProxy) -> None:
        """Reject a message: it is a dead letter, if the group has a topic for them."""
        self._decide(message, "reject")

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        """Release messages for other workers."""
        for message in messages:
            self._decide(message, "release")

    def close(self) -> None:
        """Release held messages, and leave the group."""
        self._inbox.close()

    def _decide(self, message: MessageProxy, verdict: str) -> None:
        assert isinstance(message, _Message)
        with self._lock:
            self._held -= 1
        self._inbox.run(getattr(message.held, verdict))


class _Message(MessageProxy):
    """A message and its delivery."""

    def __init__(self, message: Message[Any], held: Held) -> None:
        super().__init__(message)
        self.held = held
