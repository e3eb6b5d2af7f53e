"""The share consumer for programs without an event loop."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import UUID

from sharecore._core import Record
from sharecore.client import consumer as aio
from sharecore.client.arguments import check_process, check_timeout
from sharecore.client.delivery import Marks
from sharecore.client.errors import ConsumerClosed
from sharecore.client.fetching.acknowledgements import Callback, TopicPartition
from sharecore.client.fetching.batch import Batch, batch_of
from sharecore.client.fetching.lease import AcknowledgeType
from sharecore.client.fetching.refusals import Refusal
from sharecore.client.metrics import MetricName
from sharecore.errors import KafkaError

T = TypeVar("T")
_LEAVE_SECONDS = 1.0
_OWN_THREAD = "a callback or deserializer may call only wakeup and metrics of its consumer"


class ShareConsumer:
    """A blocking `sharecore.client.ShareConsumer`, whose event loop runs in a separate thread.

    Heartbeats and renewals go on while the program works. Thread-safe. Acknowledgements are kept here until
    the next call that reaches the loop.

    A consumer that is not closed leaves its group when it is garbage-collected or the program ends, and its
    records are released; acknowledgements since the last call are lost then.

    Args:
        config, keywords: as for the asyncio consumer.

    Raises:
        ConfigError: an unknown, missing or invalid setting.
    """

    def __init__(self, config: Mapping[str, object] | None = None, /, **keywords: object) -> None:
        self._marked: deque[Marks] = deque()
        self._process = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=_serve, args=(self._loop,), name="sharecore consumer", daemon=True
        )
        self._thread.start()
        try:
            self._inner = self._run(self._make(config, keywords))
        except BaseException:
            self._stop()
            raise
        self._forgotten = weakref.finalize(self, _leave, self._inner, self._loop)
        _open.add(self)

    @staticmethod
    async def _make(config: Mapping[str, object] | None, keywords: dict[str, Any]) -> aio.ShareConsumer:
        return aio.ShareConsumer(config, **keywords)

    def _run(self, work: Coroutine[object, None, T]) -> T:
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError(_OWN_THREAD)
        if not self._thread.is_alive():
            work.close()
            check_process(self._process)
            raise ConsumerClosed("the consumer is closed")
        waiting = asyncio.run_coroutine_threadsafe(self._after_marks(work), self._loop)
        try:
            return waiting.result()
        except BaseException:
            # only this thread gets KeyboardInterrupt
            waiting.cancel()
            raise

    async def _after_marks(self, work: Coroutine[object, None, T]) -> T:
        while self._marked:
            self._inner.deliveries.mark_late(self._marked.popleft())
        return await work

    def _take(self, call: Callable[[], Coroutine[object, None, T]], records: Callable[[T], Batch]) -> T:
        """Run a call for records.

        An interrupted call, by Ctrl-C for example, returns its records to the buffer: in implicit mode the
        next call would otherwise accept them.
        """
        taken: list[T] = []

        async def take() -> T:
            taken.append(await call())
            return taken[0]

        try:
            return self._run(take())
        except BaseException:
            # after the call's cancellation, so that it takes no more records
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._give_back, taken, records)
            raise

    def _give_back(self, taken: list[T], records: Callable[[T], Batch]) -> None:
        for each in taken:
            self._inner.deliveries.take_back(records(each))

    def _call(self, function: Callable[..., T], *arguments: object) -> T:
        async def call() -> T:
            return function(*arguments)

        return self._run(call())

    def _stop(self) -> None:
        if self in _open:
            _open.discard(self)
            self._forgotten.detach()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the consumer. Records neither accepted nor committed are released, in implicit mode too."""
        self.close()

    @property
    def subscription(self) -> frozenset[str]:
        """The subscribed topics."""
        return self._inner.subscription

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The share partitions assigned to this member, as far as their topic names are known."""
        return self._call(lambda: self._inner.assignment)

    @property
    def refusals(self) -> dict[TopicPartition, Refusal]:
        """The share partitions that currently return an error in place of records; they are retried."""
        return self._call(lambda: self._inner.refusals)

    @property
    def member_id(self) -> str:
        """This member's ID in the group; it never changes."""
        return self._inner.member_id

    @property
    def acquisition_lock_timeout_ms(self) -> int | None:
        """The duration of acquisition locks in the last response of a leader; None before the first."""
        return self._inner.acquisition_lock_timeout_ms

    def subscribe(self, topics: Iterable[str]) -> None:
        """Replace the subscription; an empty list is the same as `unsubscribe`."""
        self._call(self._inner.subscribe, topics)

    def unsubscribe(self) -> None:
        """Leave the group, and release buffered records; returned records may still be acknowledged."""
        self._call(self._inner.unsubscribe)

    def poll(self, max_records: int | None = None, *, timeout: float | None = None) -> Batch:
        """Return records as soon as there are any; an empty batch after `timeout` seconds."""
        return self._take(lambda: self._inner.poll(max_records, timeout=timeout), lambda batch: batch)

    def __iter__(self) -> Iterator[Record]:
        """Yield records one by one; in implicit mode, asking for the next one accepts the previous one."""
        return self

    def __next__(self) -> Record:
        try:
            return self._take(self._inner.__anext__, lambda record: batch_of([record]))
        except (StopAsyncIteration, ConsumerClosed):
            raise StopIteration from None

    def put_back(self, records: Iterable[Record]) -> None:
        """Return records to the buffer, as part of the same delivery; acknowledged ones are left out."""
        self._call(self._inner.put_back, records)

    def acknowledge(
        self, records: Record | Iterable[Record], kind: AcknowledgeType = AcknowledgeType.ACCEPT
    ) -> None:
        """Acknowledge a record, several, or the rest of a batch; sent with the next poll or commit."""
        if not self._inner.settings.explicit:
            raise RuntimeError("acknowledge needs share.acknowledgement.mode=explicit")
        if threading.current_thread() is self._thread:
            raise RuntimeError(_OWN_THREAD)
        if not self._thread.is_alive():
            check_process(self._process)
            raise ConsumerClosed("the consumer is closed")
        self._marked.append(self._inner.deliveries.check(records, kind))

    def accept(self, records: Record | Iterable[Record]) -> None:
        """Acknowledge records as processed."""
        self.acknowledge(records, AcknowledgeType.ACCEPT)

    def release(self, records: Record | Iterable[Record]) -> None:
        """Release records for redelivery, unless they reached the delivery limit."""
        self.acknowledge(records, AcknowledgeType.RELEASE)

    def reject(self, records: Record | Iterable[Record]) -> None:
        """Reject records that cannot be processed; they are not redelivered."""
        self.acknowledge(records, AcknowledgeType.REJECT)

    def renew(self, records: Record | Iterable[Record]) -> None:
        """Restart the records' acquisition locks; sent at once, with all other pending acknowledgements."""
        self._run(self._inner.renew(records))

    @contextmanager
    def lease(
        self,
        records: Record | Iterable[Record],
        *,
        max_ms: int | None = None,
        on_error: AcknowledgeType = AcknowledgeType.RELEASE,
    ) -> Iterator[threading.Event]:
        """Renew locks while the block of `with consumer.lease(record) as lost:` runs; as asyncio's
        `ShareConsumer.lease`.

        A thread cannot be cancelled: `lost` is set when a lock is lost, and the block raises `LeaseLost` at
        its end. If a lock is already lost, `LeaseLost` is raised at once.
        """
        lost = threading.Event()
        kept = self._inner.lease(records, max_ms=max_ms, on_error=on_error, cancel=False)
        kept.when_lost = lost.set
        try:
            self._run(kept.__aenter__())
            yield lost
        except BaseException as error:
            self._run(kept.__aexit__(type(error), error, error.__traceback__))
            raise
        self._run(kept.__aexit__(None, None, None))

    def commit_sync(self, timeout: float | None = None) -> dict[TopicPartition, KafkaError | None]:
        """Send acknowledgements and wait for the responses, at most `timeout` seconds."""
        return self._run(self._inner.commit_sync(timeout))

    def commit_async(self) -> None:
        """Send acknowledgements without waiting; results go to the callback, and to `commit_sync`."""
        self._call(self._inner.commit_async)

    def set_acknowledgement_commit_callback(self, callback: Callback | None) -> None:
        """Set the callback, as for asyncio; `callback` runs in the consumer's own thread."""
        self._call(self._inner.set_acknowledgement_commit_callback, callback)

    def metrics(self) -> dict[MetricName, float]:
        """Return the metrics of KIP-932, by name and group."""
        if threading.current_thread() is self._thread:
            return self._inner.metrics()
        return self._call(self._inner.metrics)

    def client_instance_id(self, timeout: float | None = None) -> UUID:
        """Return the ID that the cluster assigned to this client for its metrics (KIP-714)."""
        return self._run(self._inner.client_instance_id(timeout))

    def wakeup(self) -> None:
        """Make the waiting poll or commit, or else the next one, raise `WakeupError`; thread-safe."""
        self._inner.wakeup()

    def close(self, timeout: float = 30.0) -> dict[TopicPartition, KafkaError | None]:
        """Send pending acknowledgements, release other records, and leave the group."""
        if threading.current_thread() is self._thread:
            raise RuntimeError(_OWN_THREAD)
        check_timeout(timeout)
        if not self._thread.is_alive():
            return {}
        try:
            return self._run(self._inner.close(timeout))
        finally:
            self._stop()


_open: weakref.WeakSet[ShareConsumer] = weakref.WeakSet()
"""Consumers that are not closed."""


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run the consumer's thread."""
    loop.run_forever()
    loop.close()


def _leave(inner: aio.ShareConsumer, loop: asyncio.AbstractEventLoop) -> None:
    """Make a consumer that was not closed leave its group, and end its thread."""

    async def leave() -> None:
        try:
            await inner.close(_LEAVE_SECONDS)
        finally:
            loop.stop()

    asyncio.run_coroutine_threadsafe(leave(), loop)


@atexit.register
def _leave_all() -> None:
    """Close consumers before OpenSSL shuts down at program exit: no thread may be in a handshake then."""
    left = list(_open)
    for consumer in left:
        consumer._forgotten()
    for consumer in left:
        consumer._thread.join(2 * _LEAVE_SECONDS)
