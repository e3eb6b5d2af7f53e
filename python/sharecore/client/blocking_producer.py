"""The producer for programs without an event loop."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from sharecore.client.arguments import check_process, check_timeout
from sharecore.client.errors import ProducerClosed
from sharecore.client.producing.engine import Engine, NoSpace
from sharecore.client.producing.records import (
    Headers,
    NewRecord,
    Sent,
    SentRecords,
    sent_of,
    several,
)
from sharecore.client.producing.schedules import TOPIC as SCHEDULES
from sharecore.client.producing.schedules import check_key, check_value, schedule_headers
from sharecore.client.producing.settings import read_producer_settings
from sharecore.client.producing.times import timed_headers
from sharecore.errors import KafkaError

if TYPE_CHECKING:
    from confluent_kafka import Message


T = TypeVar("T")
_SPACE_SECONDS = 0.01


class BlockingProducer:
    """A blocking `sharecore.client.Producer`. Thread-safe; a forked child needs its own.

    Args:
        config, keywords: as for the asyncio producer.

    Raises:
        ConfigError: an unknown, missing or invalid setting.
    """

    def __init__(self, config: Mapping[str, object] | None = None, /, **keywords: object) -> None:
        self._engine = Engine(read_producer_settings(config, **keywords))
        # runs callbacks and librdkafka's long calls, away from Ctrl-C
        self._work = ThreadPoolExecutor(1, "sharecore producer")
        self._order = threading.Lock()
        self._closed = False
        self._process = os.getpid()
        self._forgotten = weakref.finalize(self, self._engine.end)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for pending records, and close."""
        self.close()

    def send(
        self,
        topic: str,
        value: object,
        *,
        key: object = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        deliver_at: datetime | int | None = None,
        delay: timedelta | float | None = None,
        ttl: timedelta | float | None = None,
    ) -> Sent:
        """Send a record, and return its position once the cluster has confirmed it; as `Producer.send`."""
        headers = timed_headers(headers, deliver_at=deliver_at, delay=delay, ttl=ttl)
        sending = self.submit(
            topic, value, key=key, headers=headers, partition=partition, timestamp=timestamp
        )
        return sending.result()

    def submit(
        self,
        topic: str,
        value: object,
        *,
        key: object = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        deliver_at: datetime | int | None = None,
        delay: timedelta | float | None = None,
        ttl: timedelta | float | None = None,
    ) -> Future[Sent]:
        """Send a record without waiting; the future has the result or exception of `send`.

        Waits, up to `max.block.ms`, only while the limit of pending records is reached. Callbacks of the
        future run in the producer's thread.
        """
        self._check_open()
        headers = timed_headers(headers, deliver_at=deliver_at, delay=delay, ttl=ttl)
        ready = self._engine.ready(topic, NewRecord(value, key, headers, partition, timestamp))
        future: Future[Sent] = Future()

        def done(error: KafkaError | None, message: Message[bytes, bytes]) -> None:
            if future.set_running_or_notify_cancel():
                if error is None:
                    future.set_result(sent_of(message))
                else:
                    future.set_exception(error)

        until = time.monotonic() + self._engine.settings.max_block_ms / 1000
        # threads waiting for space keep their order
        with self._order:
            while True:
                try:
                    self._engine.send(ready, done)
                    return future
                except NoSpace:
                    if time.monotonic() >= until:
                        raise self._engine.no_space() from None
                time.sleep(_SPACE_SECONDS)
                self._check_open()

    def schedule(
        self,
        key: str | bytes,
        topic: str,
        value: object,
        *,
        at: datetime | int | None = None,
        delay: timedelta | float | None = None,
        every: timedelta | float | None = None,
        cron: str = "",
        zone: str = "UTC",
        record_key: str | bytes | None = None,
        headers: Headers | None = None,
        schedules: str = SCHEDULES,
    ) -> Sent:
        """Schedule a record for a topic; as `Producer.schedule`."""
        named = schedule_headers(
            key,
            topic,
            at=at,
            delay=delay,
            every=every,
            cron=cron,
            zone=zone,
            record_key=record_key,
            headers=headers,
        )
        check_value(value)
        return self.send(schedules, value, key=key, headers=named)

    def cancel_schedule(self, key: str | bytes, *, schedules: str = SCHEDULES) -> Sent:
        """Cancel a schedule; as `Producer.cancel_schedule`."""
        check_key(key)
        return self.send(schedules, None, key=key)

    def send_many(self, topic: str, records: Iterable[object]) -> SentRecords:
        """Send records in order, and return their positions; as `Producer.send_many`."""
        self._check_open()
        given = several(records)
        answer: Future[SentRecords] = Future()
        self._run(
            lambda: self._engine.send_bulk(topic, self._engine.prepare(topic, given), answer.set_result)
        )
        return answer.result().checked()

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all pending records are answered; return whether they were."""
        check_timeout(timeout)
        self._check_open()
        return self._flush(timeout)

    def _flush(self, timeout: float | None) -> bool:
        seconds = self._engine.settings.delivery_timeout_ms / 1000 if timeout is None else timeout
        return self._run(lambda: self._engine.flush(seconds))

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit the records sent within `with producer.transaction():`, or abort; as `Producer`'s."""
        self._check_open()
        with self._engine.one_transaction():
            self._run(self._engine.begin_transaction)
            try:
                yield
                self._run(lambda: self._engine.transact("commit_transaction"))
            except BaseException:
                with contextlib.suppress(KafkaError):
                    self._run(lambda: self._engine.transact("abort_transaction"))
                raise

    def close(self, timeout: float | None = None) -> None:
        """Wait for pending records, and close; records not confirmed by then fail.

        Args:
            timeout: seconds; `delivery.timeout.ms` by default.

        Raises:
            ValueError: a negative timeout; the producer stays open.
        """
        check_timeout(timeout)
        if self._closed or self._process != os.getpid():
            return
        self._closed = True
        flushed = False
        try:
            flushed = self._flush(timeout)
        finally:
            self._forgotten.detach()
            self._engine.end(give_up=not flushed)
            self._work.shutdown(wait=False)
        self._engine.join()

    def _run(self, work: Callable[[], T]) -> T:
        return self._work.submit(work).result()

    def _check_open(self) -> None:
        if self._closed:
            raise ProducerClosed("the producer is closed")
        check_process(self._process)
