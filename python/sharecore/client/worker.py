"""Workers: a handler a record, several at once, locks renewed meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import signal
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from sharecore._core import Record
from sharecore.client.consumer import ShareConsumer
from sharecore.client.errors import ConsumerClosed, CorruptRecords, DeserializationError, LeaseLost
from sharecore.client.fetching.lease import AcknowledgeType
from sharecore.client.keeper import Kept
from sharecore.errors import ConfigError, KafkaError

logger = logging.getLogger("sharecore.worker")

Handler = Callable[[Record], Awaitable[object] | object]
_OUTCOMES = {"release": AcknowledgeType.RELEASE, "reject": AcknowledgeType.REJECT}
_WAITING_A_SLOT = 10


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a record whose handler failed waits before it is released: `first_ms` after the first
    delivery, `factor` times as long after each further one, at most `last_ms`. Its lock is renewed meanwhile.
    """

    first_ms: int = 1_000
    factor: float = 2.0
    last_ms: int = 60_000

    def __post_init__(self) -> None:
        if self.first_ms < 0 or self.last_ms < self.first_ms or self.factor < 1:
            raise ConfigError(f"{self}: 0 <= first_ms <= last_ms and factor >= 1 are needed")

    def seconds(self, delivery_count: int) -> float:
        exponent = min(delivery_count - 1, 64)
        return float(min(self.last_ms, self.first_ms * self.factor**exponent)) / 1000


class Reject(Exception):
    """Raised by a handler: this record can never be processed."""


class Release(Exception):
    """Raised by a handler: this record is to be delivered again at once, whatever `on_error` says."""


@dataclass(slots=True)
class Worker:
    """A handler and how it is run; made by `worker`.

    Calling it calls the handler, so that it can be tested like any function.
    """

    handler: Handler
    topics: tuple[str, ...]
    concurrency: int
    on_error: AcknowledgeType
    backoff: Backoff | None
    drain_seconds: float
    settings: Mapping[str, Any]
    _stop: asyncio.Event | None = field(default=None, init=False)

    def __call__(self, record: Record) -> Awaitable[object] | object:
        return self.handler(record)

    @property
    def name(self) -> str:
        return getattr(self.handler, "__qualname__", repr(self.handler))

    async def run(self, config: Mapping[str, Any] | None = None, /, **keywords: Any) -> None:
        """Works until `stop` is called; then lets handlers end for `drain_seconds`, and cancels them after
        that.

        Args:
            config, keywords: settings of the consumer, which win over those of the decorator.

        Raises:
            ConfigError: a setting that cannot stand.
            KafkaError: what the brokers refuse for good.
        """
        merged = {key.replace("_", "."): value for key, value in self.settings.items()}
        merged |= {**(config or {}), **{key.replace("_", "."): value for key, value in keywords.items()}}
        for key, value in (
            ("share.acknowledgement.mode", "explicit"),
            ("share.acquire.mode", "record_limit"),
            ("prefetch.records", 0),
        ):
            if merged.setdefault(key, value) != value and key != "prefetch.records":
                raise ConfigError(f"{key}={merged[key]}: a worker needs {value}")
        self._stop = asyncio.Event()
        async with ShareConsumer(merged) as consumer:
            consumer.subscribe(self.topics)
            await _Run(self, consumer, self._stop).work()

    def stop(self) -> None:
        """Takes no more records, lets handlers end, and then `run` returns."""
        if self._stop is not None:
            self._stop.set()


def worker(
    topics: str | Iterable[str],
    *,
    concurrency: int = 1,
    on_error: str = "release",
    backoff: Backoff | None = None,
    drain_seconds: float = 30.0,
    **settings: Any,
) -> Callable[[Handler], Worker]:
    """Makes a worker of a function that takes a record: a coroutine function, or a plain one that runs in a
    thread.

    A record is accepted when the function returns. When it raises, the record is released or rejected, as
    `on_error` says or as `Reject` and `Release` do; deliveries end at the group's delivery limit.

    Args:
        topics: one topic or several.
        concurrency: how many records are worked on at once.
        on_error: release or reject.
        backoff: how long a record waits before it is released; at once without it.
        drain_seconds: how long handlers may go on after `stop`.
        settings: of the consumer, with `_` for each dot.

    Raises:
        ConfigError: a value that cannot stand.
    """
    names = (topics,) if isinstance(topics, str) else tuple(topics)
    if concurrency < 1:
        raise ConfigError(f"concurrency={concurrency}: at least 1 is needed")
    if on_error not in _OUTCOMES:
        raise ConfigError(f"on_error={on_error!r}: one of {', '.join(_OUTCOMES)} is needed")
    if not names:
        raise ConfigError("a worker needs a topic")

    def decorate(handler: Handler) -> Worker:
        return Worker(handler, names, concurrency, _OUTCOMES[on_error], backoff, drain_seconds, settings)

    return decorate


class _Run:
    """One run of a worker."""

    def __init__(self, owner: Worker, consumer: ShareConsumer, stop: asyncio.Event) -> None:
        self._worker = owner
        self._consumer = consumer
        self._stop = stop
        self._handling: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Task[None]] = set()
        self._free = asyncio.Event()
        self._threads = ThreadPoolExecutor(owner.concurrency, "sharecore handler")

    async def work(self) -> None:
        self._log(logging.INFO, "started", topics=self._worker.topics, member=self._consumer.member_id)
        stopped = asyncio.create_task(self._stop.wait())
        patience = self._worker.drain_seconds
        try:
            while not self._stop.is_set():
                await self._round(stopped)
        except asyncio.CancelledError:
            patience = 0
            raise
        finally:
            stopped.cancel()
            try:
                await self._drain(patience)
            finally:
                self._threads.shutdown(wait=False, cancel_futures=True)
                self._log(logging.INFO, "stopped")

    async def _round(self, stopped: asyncio.Task[bool]) -> None:
        """Takes as many records as there are free places, once there are any."""
        free = self._worker.concurrency - len(self._handling)
        crowded = len(self._waiting) >= self._worker.concurrency * _WAITING_A_SLOT
        self._free.clear()
        step: Awaitable[Any] = self._free.wait() if free <= 0 or crowded else self._take(free)
        task = asyncio.ensure_future(step)
        try:
            await asyncio.wait((task, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()

    async def _take(self, count: int) -> None:
        try:
            batch = await self._consumer.poll(count)
        except DeserializationError as error:
            self._log(logging.ERROR, "rejected", record=error.record, error=error)
            self._consumer.reject(error.record)
            self._consumer.commit_async()
            return
        except CorruptRecords as error:
            self._log(logging.ERROR, "corrupt", error=error)
            return
        for record in batch:
            # leased from here on, so that the next poll need not wait for it
            lease = self._consumer.lease(record)
            task = asyncio.create_task(self._handle(record, lease), name=f"sharecore handler {record.offset}")
            self._handling.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._handling.discard(task)
        self._waiting.discard(task)
        self._free.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a handler's record could not be settled", exc_info=error)

    async def _handle(self, record: Record, lease: Kept) -> None:
        """Runs the handler on one record, and settles the record as it ends."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with lease:
                kind, error = await self._call(record)
                level = logging.INFO if kind is AcknowledgeType.ACCEPT else logging.ERROR
                event = {1: "accepted", 2: "released", 3: "rejected"}[kind]
                took_ms = round((loop.time() - began) * 1000, 1)
                self._log(level, event, record=record, error=error, took_ms=took_ms)
                if kind is AcknowledgeType.RELEASE and not isinstance(error, Release):
                    await self._back_off(record)
                self._consumer.acknowledge(record, kind)
        except LeaseLost as error:
            self._log(logging.ERROR, "lost", record=record, error=error)
        except ConsumerClosed:
            self._log(logging.WARNING, "closed", record=record)

    async def _call(self, record: Record) -> tuple[AcknowledgeType, Exception | None]:
        handler = self._worker.handler
        try:
            if inspect.iscoroutinefunction(handler):
                await handler(record)
            else:
                result = await asyncio.get_running_loop().run_in_executor(self._threads, handler, record)
                if inspect.isawaitable(result):
                    await result
        except Reject as error:
            return AcknowledgeType.REJECT, error
        except Release as error:
            return AcknowledgeType.RELEASE, error
        except Exception as error:
            return self._worker.on_error, error
        return AcknowledgeType.ACCEPT, None

    async def _back_off(self, record: Record) -> None:
        """Keeps a record that failed for a while; it takes no handler's place."""
        backoff = self._worker.backoff
        if backoff is None or self._stop.is_set():
            return
        task = asyncio.current_task()
        assert task is not None
        self._handling.discard(task)
        self._waiting.add(task)
        self._free.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(backoff.seconds(record.delivery_count)):
                await self._stop.wait()

    async def _drain(self, patience: float) -> None:
        """Lets what runs come to its end; cancels it when that takes too long or the worker is cancelled."""
        tasks = self._handling | self._waiting
        if not tasks:
            return
        self._log(logging.INFO, "draining", handlers=len(self._handling))
        try:
            await asyncio.wait(tasks, timeout=patience)
        finally:
            late = [task for task in tasks if not task.done()]
            for task in late:
                task.cancel()
            if late:
                self._log(logging.WARNING, "cancelled", handlers=len(late))
            await asyncio.gather(*tasks, return_exceptions=True)

    def _log(
        self,
        level: int,
        event: str,
        *,
        record: Record | None = None,
        error: Exception | None = None,
        **rest: Any,
    ) -> None:
        fields: dict[str, Any] = {"event": event, "worker": self._worker.name, **rest}
        if record is not None:
            fields |= {
                "topic": record.topic,
                "partition": record.partition,
                "offset": record.offset,
                "delivery_count": record.delivery_count,
            }
        if error is not None:
            fields["error"] = f"{type(error).__name__}: {error}"
        text = " ".join(f"{key}={value}" for key, value in fields.items())
        trace = (
            error if level >= logging.ERROR and not isinstance(error, (KafkaError, Reject, Release)) else None
        )
        logger.log(level, text, exc_info=trace, extra={"fields": fields})


async def run_until_signal(work: Worker, config: Mapping[str, Any] | None = None) -> None:
    """Runs a worker; SIGTERM and SIGINT let it drain, a second one cancels what still runs."""
    loop = asyncio.get_running_loop()
    running = asyncio.ensure_future(work.run(config))
    signals = 0

    def heard() -> None:
        nonlocal signals
        signals += 1
        work.stop() if signals == 1 else running.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, heard)
    try:
        await running
    except asyncio.CancelledError:
        if not signals:
            raise
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
