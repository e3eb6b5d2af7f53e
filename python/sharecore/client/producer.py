"""The producer for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sharecore.client.arguments import check_loop, check_process, check_timeout, loop_of
from sharecore.client.errors import ProducerClosed
from sharecore.client.producing.engine import Engine, NoSpace, Ready
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


_Waiting = tuple[Ready, "asyncio.Future[Sent]"]


class Producer:
    """Send records with librdkafka: exactly once, in order, confirmed by all in-sync replicas.

    Keys map to the same partitions as in Java's producer. Strings are sent as UTF-8, pydantic models and JSON
    values as JSON, unless a serializer is set.

    Must be created in a running event loop, and used in that loop. A producer that is not closed sends its
    pending records when it is garbage-collected or the program ends.

    Args:
        config: settings named as in confluent-kafka and Kafka's Java client; see docs/producer.md.
        keywords: the same settings with `_` for each dot.

    Raises:
        ConfigError: an unknown, missing or invalid setting.
    """

    def __init__(self, config: Mapping[str, object] | None = None, /, **keywords: object) -> None:
        self._loop = loop_of("sharecore.client.Producer", "sharecore.client.BlockingProducer")
        self._engine = Engine(read_producer_settings(config, **keywords))
        self._work = ThreadPoolExecutor(1, "sharecore producer")
        self._waiting: deque[_Waiting] = deque()
        self._answers: deque[tuple[asyncio.Future[Sent], KafkaError | None, Message[bytes, bytes]]] = deque()
        self._woken = self._closed = False
        self._process = os.getpid()
        self._engine.when_served = _Weakly(self)
        self._forgotten = weakref.finalize(self, self._engine.end)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for pending records, and close."""
        await self.close()

    # records

    async def send(
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
        """Send a record, and return its position once the cluster has confirmed it.

        Concurrent calls share requests: gather several calls, or use `send_many`. Calls keep their order in
        each partition. A cancelled call may have sent its record.

        Args:
            value, key: bytes, a string, None, a pydantic model, or a JSON value.
            headers: a mapping, or pairs for repeated names.
            partition: by default, chosen by the key.
            timestamp: in ms since the epoch; now by default.
            deliver_at: earliest delivery in share groups with `share.deliver.at.header=deliver-at`: a time
                with a zone, or ms since the epoch.
            delay: the same as a delay, in seconds or as a timedelta.
            ttl: expiry in share groups with `share.record.ttl.header=ttl`, in seconds or as a timedelta.

        Raises:
            KafkaError: the record was not confirmed, with the reason; REQUEST_TIMED_OUT: not within
                `delivery.timeout.ms`, or there was no space for it within `max.block.ms`.
            ProducerClosed: the producer is closed.
            RuntimeError: it belongs to another event loop, or to the process that forked this one.
            TypeError, ValueError: an invalid record.
        """
        self._check_open()
        headers = timed_headers(headers, deliver_at=deliver_at, delay=delay, ttl=ttl)
        ready = self._engine.ready(topic, NewRecord(value, key, headers, partition, timestamp))
        answer: asyncio.Future[Sent] = self._loop.create_future()
        if not self._waiting:
            try:
                self._produce(ready, answer)
                return await answer
            except NoSpace:
                pass
        self._waiting.append((ready, answer))
        timer = self._loop.call_later(self._engine.settings.max_block_ms / 1000, self._no_space, answer)
        try:
            return await answer
        finally:
            timer.cancel()

    async def schedule(
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
        """Schedule a record for a topic, to be written by a scheduler (`sharecore schedules run`).

        A schedule with the same key is replaced. Consumers that read committed records get each occurrence
        once.

        Args:
            key: the schedule's name.
            topic, value, record_key, headers: the record, as for `send`.
            at: the first time: with a zone, or ms since the epoch; with `cron`, the earliest.
            delay: the same as a delay, in seconds or as a timedelta.
            every: repeat after this time, in seconds or as a timedelta; at least 1 s.
            cron: five cron fields; needs `sharecore[schedules]`.
            zone: the time zone of `cron`, such as Europe/Berlin.
            schedules: the topic of the schedules.

        Raises:
            ConfigError: an invalid value.
            KafkaError: as `send`.
        """
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
        return await self.send(schedules, value, key=key, headers=named)

    async def cancel_schedule(self, key: str | bytes, *, schedules: str = SCHEDULES) -> Sent:
        """Cancel a schedule and all its future records; raise as `send`."""
        check_key(key)
        return await self.send(schedules, None, key=key)

    def _produce(self, ready: Ready, answer: asyncio.Future[Sent]) -> None:
        self._engine.send(ready, lambda error, message: self._answered(answer, error, message))

    def _no_space(self, answer: asyncio.Future[Sent]) -> None:
        """Fail a record that is still waiting for space."""
        for waiting in self._waiting:
            if waiting[1] is answer:
                self._waiting.remove(waiting)
                if not answer.done():
                    answer.set_exception(self._engine.no_space())
                return

    def _answered(
        self, answer: asyncio.Future[Sent], error: KafkaError | None, message: Message[bytes, bytes]
    ) -> None:
        """Handle a confirmation, in a thread of the engine."""
        self._answers.append((answer, error, message))
        self._wake()

    def _wake(self) -> None:
        if not self._woken:
            self._woken = True
            # after the loop was closed nobody is waiting
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        """Complete confirmed records, and send those waiting for space."""
        self._woken = False
        while self._answers:
            answer, error, message = self._answers.popleft()
            if answer.done():
                continue
            if error is None:
                answer.set_result(sent_of(message))
            else:
                answer.set_exception(error)
        while self._waiting:
            ready, answer = self._waiting[0]
            if not answer.done():
                try:
                    self._produce(ready, answer)
                except NoSpace:
                    return
                except Exception as error:  # such as a serializer's str: records behind it go on
                    answer.set_exception(error)
            self._waiting.popleft()

    async def send_many(self, topic: str, records: Iterable[object]) -> SentRecords:
        """Send records in order, and return their positions once the cluster has confirmed all.

        Args:
            records: values as for `send`, or `NewRecord`s; all are held in memory.

        Raises:
            RecordsNotSent: some were not confirmed; contains a result for each.
            ProducerClosed: the producer is closed.
            TypeError, ValueError: an invalid record; nothing was sent.
        """
        self._check_open()
        given = several(records)
        answer: asyncio.Future[SentRecords] = self._loop.create_future()

        def written(results: SentRecords) -> None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_resolve, answer, results)

        def work() -> None:
            self._engine.send_bulk(topic, self._engine.prepare(topic, given), written)

        await self._loop.run_in_executor(self._work, work)
        return (await answer).checked()

    async def flush(self, timeout: float | None = None) -> bool:
        """Wait until all pending records are answered.

        Args:
            timeout: seconds; `delivery.timeout.ms` by default.

        Returns:
            Whether all of them were.

        Raises:
            ProducerClosed: the producer is closed.
            ValueError: a negative timeout.
        """
        check_timeout(timeout)
        self._check_open()
        return await self._flush(timeout)

    async def _flush(self, timeout: float | None) -> bool:
        seconds = self._engine.settings.delivery_timeout_ms / 1000 if timeout is None else timeout
        until = self._loop.time() + seconds
        # records waiting for space are not in librdkafka yet
        while self._waiting and self._loop.time() < until:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        left = max(0.0, until - self._loop.time())
        flushed = await self._loop.run_in_executor(self._work, self._engine.flush, left)
        return flushed and not self._waiting

    # transactions

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Commit the records sent in the block of `async with producer.transaction():`, or abort if it
        raises. Needs `transactional.id`.

        Raises:
            KafkaError: the transaction could not begin or commit, and was aborted; PRODUCER_FENCED: another
                producer uses the `transactional.id`.
            RuntimeError: there is no `transactional.id`, or a transaction is in progress.
        """
        self._check_open()
        with self._engine.one_transaction():
            await self._loop.run_in_executor(self._work, self._engine.begin_transaction)
            try:
                yield
                await self._transact("commit_transaction")
            except BaseException:
                with contextlib.suppress(KafkaError):
                    await asyncio.shield(self._transact("abort_transaction"))
                raise

    async def _transact(self, step: str) -> None:
        await self._loop.run_in_executor(self._work, self._engine.transact, step)

    # the end

    async def close(self, timeout: float | None = None) -> None:
        """Wait for pending records, and close; records not confirmed by then fail.

        Args:
            timeout: seconds; `delivery.timeout.ms` by default.

        Raises:
            ValueError: a negative timeout; the producer stays open.
            RuntimeError: it belongs to another event loop.
        """
        check_timeout(timeout)
        if self._closed or self._process != os.getpid():
            return
        check_loop(self._loop)
        self._closed = True
        flushed = False
        try:
            flushed = await self._flush(timeout)
        finally:
            self._forgotten.detach()
            self._engine.end(give_up=not flushed)
            for _, answer in self._waiting:
                if not answer.done():
                    answer.set_exception(ProducerClosed("the producer was closed before the record was sent"))
            self._waiting.clear()
            self._work.shutdown(wait=False)
        await self._loop.run_in_executor(None, self._engine.join)
        self._settle()

    def _check_open(self) -> None:
        if self._closed:
            raise ProducerClosed("the producer is closed")
        check_process(self._process)
        check_loop(self._loop)


class _Weakly:
    """Wakes a producer whose records wait for space, without keeping it alive."""

    def __init__(self, producer: Producer) -> None:
        self._producer = weakref.ref(producer)

    def __call__(self) -> None:
        producer = self._producer()
        if producer is not None and producer._waiting:
            producer._wake()


def _resolve(answer: asyncio.Future[SentRecords], results: SentRecords) -> None:
    if not answer.done():
        answer.set_result(results)
