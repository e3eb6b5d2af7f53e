"""A broker for Taskiq: `pip install 'sharecore[taskiq]'`."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Mapping
from contextvars import ContextVar

from sharecore.adapters.inbox import DELIVERY_COUNT, Held, Inbox, open_inbox, pause_seconds, provide
from sharecore.client import Producer
from sharecore.client.workers.preparation import Needs
from sharecore.errors import ConfigError

try:
    from taskiq import (
        AckableMessage,
        AsyncBroker,
        BrokerMessage,
        TaskiqMessage,
        TaskiqMiddleware,
        TaskiqResult,
    )
    from taskiq.exceptions import NoResultError, TaskRejectedError
except ImportError as error:
    raise ImportError("taskiq is missing; run: pip install 'sharecore[taskiq]'") from error

logger = logging.getLogger("sharecore.adapters")

_POLL_SECONDS = 1.0
_UNKNOWN_SECONDS = 1.0
_failure: ContextVar[BaseException | None] = ContextVar("sharecore_taskiq_failure", default=None)


class ShareBroker(AsyncBroker):
    """Sends tasks to a topic, and takes them as a member of a share group.

    A task is acknowledged after its result was saved (`--ack-type` of the worker changes that). A worker that
    dies loses no task: its locks run out and others get its tasks. A task that raises is retried if it has
    the label `retry_on_error`: its record is released, and the group's delivery limit says how often.
    `context.reject()` sends the task to the group's dead-letter topic.

    Args:
        bootstrap_servers: brokers as HOST:PORT, separated by commas.
        topic: of the tasks; created where it does not exist.
        group_id: the share group of the workers.
        config: more settings of producer and consumer, such as `security.protocol`.
        retry_on_error: whether tasks without that label are retried.
        retry_seconds, retry_seconds_max: how long a failed task waits, twice as long each time.
        dead_letters: a topic for tasks that were rejected or failed too often; made and set for the group.
        max_deliveries: the group's delivery limit; None leaves it.

    Raises:
        ConfigError: a topic or group without a name.
    """

    def __init__(
        self,
        bootstrap_servers: str = "localhost:9092",
        *,
        topic: str = "taskiq",
        group_id: str = "taskiq",
        config: Mapping[str, object] | None = None,
        retry_on_error: bool = False,
        retry_seconds: float = 1.0,
        retry_seconds_max: float = 20.0,
        dead_letters: str | None = None,
        max_deliveries: int | None = None,
    ) -> None:
        super().__init__()
        if not topic or not group_id:
            raise ConfigError("a broker of Taskiq needs the names of a topic and of a group")
        self._topic = topic
        self._config = {"bootstrap.servers": bootstrap_servers} | dict(config or {})
        self._group = {**self._config, "group.id": group_id}
        self._needs = Needs(create_topics=True, max_deliveries=max_deliveries, dead_letters=dead_letters)
        self._retry_on_error = retry_on_error
        self._retry_seconds, self._retry_seconds_max = retry_seconds, retry_seconds_max
        self._producer: Producer | None = None
        self._inbox: Inbox | None = None
        self.add_middlewares(_Failures(self))

    async def startup(self) -> None:
        """Connect; a worker also joins the group."""
        self._producer = Producer(self._config)
        if self.is_worker_process:
            self._inbox = await open_inbox(self._group, [self._topic], self._needs)
        else:
            # so that a new group does not skip tasks sent before the first worker runs
            await provide(self._group, [self._topic], self._needs)
        await super().startup()

    async def shutdown(self) -> None:
        """Send pending messages; a worker also leaves the group and releases its messages."""
        await super().shutdown()
        if self._inbox is not None:
            await self._inbox.close()
        if self._producer is not None:
            await self._producer.close()

    async def kick(self, message: BrokerMessage) -> None:
        """Send a task; returns once the cluster has confirmed it."""
        if self._producer is None:
            raise RuntimeError("await broker.startup() before sending tasks")
        headers = {name: str(value) for name, value in message.labels.items()}
        headers |= {"task_id": message.task_id, "task_name": message.task_name}
        key = message.labels.get("key")
        await self._producer.send(
            self._topic, message.message, key=None if key is None else str(key), headers=headers
        )

    async def listen(self) -> AsyncGenerator[AckableMessage, None]:
        """Yield tasks; each stays locked until it is acknowledged."""
        if self._inbox is None:
            raise RuntimeError("only a worker takes tasks: run `taskiq worker`")
        while True:
            for held in await self._inbox.take(1, _POLL_SECONDS):
                message = self._message_of(held)
                if message is not None:
                    yield message

    def _message_of(self, held: Held) -> AckableMessage | None:
        """Return a task for the worker. Taskiq would drop messages that it cannot read, and unknown tasks."""
        record = held.record
        where = f"{record.topic}-{record.partition}@{record.offset}"
        try:
            message = self.formatter.loads(record.value)
        except Exception as error:
            logger.error("%s is no task and was rejected: %s: %s", where, type(error).__name__, error)
            held.reject()
            return None
        if self.find_task(message.task_name) is None:
            logger.error("%s: no task %r here; it is released for another worker", where, message.task_name)
            held.release(self.pause(record.delivery_count, _UNKNOWN_SECONDS))
            return None
        message.labels[DELIVERY_COUNT] = record.delivery_count
        data = self.formatter.dumps(message).message

        def acknowledge() -> None:
            failure = _failure.get()
            if failure is None:
                held.accept()
            elif isinstance(failure, TaskRejectedError):
                held.reject()
            else:
                held.release(self.pause(record.delivery_count, self._retry_seconds))

        return AckableMessage(data=data, ack=acknowledge)

    def pause(self, delivery_count: int, first: float) -> float:
        return pause_seconds(delivery_count, first, self._retry_seconds_max)

    def is_last(self, message: TaskiqMessage) -> bool:
        """Return whether this is the last delivery that the group allows."""
        limit = None if self._inbox is None else self._inbox.delivery_limit
        return limit is not None and int(message.labels.get(DELIVERY_COUNT, 1)) >= limit

    def retries(self, message: TaskiqMessage) -> bool:
        """Return whether a task that raised is retried."""
        label = message.labels.get("retry_on_error", self._retry_on_error)
        return label if isinstance(label, bool) else str(label).lower() == "true"


class _Failures(TaskiqMiddleware):
    """Notes how a task failed for its acknowledgement, which runs in the same task of asyncio."""

    def __init__(self, broker: ShareBroker) -> None:
        super().__init__()
        self._share_broker = broker

    def pre_execute(self, message: TaskiqMessage) -> TaskiqMessage:
        _failure.set(None)
        return message

    def on_error(
        self, message: TaskiqMessage, result: TaskiqResult[object], exception: BaseException
    ) -> None:
        if isinstance(exception, TaskRejectedError):
            _failure.set(exception)
        elif isinstance(exception, NoResultError):
            return
        elif not isinstance(exception, Exception) or self._share_broker.retries(message):
            # a stopping worker cancels running tasks
            _failure.set(exception)
            # only the result of the last delivery is saved
            if not self._share_broker.is_last(message):
                result.error = NoResultError()
