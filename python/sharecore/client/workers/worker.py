"""The decorator that turns a function into a worker."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from sharecore._core import Record
from sharecore.client.arguments import check_number, check_text, check_whole
from sharecore.client.fetching.lease import AcknowledgeType
from sharecore.client.settings import Settings, read_settings
from sharecore.client.workers.calls import Decode, Plan
from sharecore.client.workers.feed import Feed
from sharecore.client.workers.figures import Figures
from sharecore.client.workers.handlers import Handler, check_handler, name_of
from sharecore.client.workers.health import Health, together
from sharecore.client.workers.health_server import HealthServer
from sharecore.client.workers.log import WorkerLog
from sharecore.client.workers.preparation import Needs, check_needs, prepare
from sharecore.client.workers.retry import NO_RETRY, Backoff, Retry
from sharecore.client.workers.run import Run
from sharecore.client.workers.watch import BLOCKED_SECONDS, Watch
from sharecore.errors import ConfigError

_OUTCOMES = {"release": AcknowledgeType.RELEASE, "reject": AcknowledgeType.REJECT}
_STANDSTILL_SECONDS = 30.0
"""A consumer whose thread has done nothing for this long will not recover."""
_DESERIALIZERS = ("key.deserializer", "value.deserializer")
_NEEDED = {
    "share.acknowledgement.mode": "explicit",
    "share.acquire.mode": "record_limit",
    "prefetch.records": 0,
}


@dataclass(slots=True)
class Worker:
    """A handler and its settings; created by `worker`.

    Calling it calls the handler, so that it can be tested like any function.

    Attributes:
        counts: how many jobs were accepted, released, rejected, given_up and lost, and how many attempts
            failed, in all runs; only confirmed ones, except for failed and lost.
    """

    handler: Handler
    topics: tuple[str, ...]
    concurrency: int
    on_error: AcknowledgeType
    retry: Retry
    """How failed records are retried in place; if `needs` has a back-off, only if the group cannot have one.
    """
    handler_timeout: float | None
    drain_seconds: float | None
    needs: Needs
    settings: Mapping[str, object]
    has_thread: bool = True
    """The consumer has its own thread and loop; a simulator allows no threads."""
    health_port: int | None = None
    """The port for health and metrics while the worker runs; 0: a free one, None: not served."""
    health_host: str = ""
    counts: Counter[str] = field(default_factory=Counter, init=False)
    _left: list[asyncio.Task[BaseException | None]] = field(default_factory=list, init=False)
    _runs: dict[Run, _Running] = field(default_factory=dict, init=False)
    _figures: Figures = field(init=False)
    _server: HealthServer | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._figures = Figures(self.name, self.counts)

    def __call__(self, record: Record) -> Awaitable[object] | object:
        return self.handler(record)

    @property
    def name(self) -> str:
        return name_of(self.handler)

    async def run(self, config: Mapping[str, object] | None = None, /, **keywords: object) -> None:
        """Work until `stop` is called; then let handlers run for `drain_seconds`, and cancel the others.

        Args:
            config, keywords: settings of the consumer, which override those of the decorator.

        Raises:
            ConfigError: an invalid setting.
            KafkaError: a permanent error from the brokers, or missing prerequisites.
        """
        given = {key.replace("_", "."): value for key, value in self.settings.items()}
        given |= {**(config or {}), **{key.replace("_", "."): value for key, value in keywords.items()}}
        for key, value in _NEEDED.items():
            if given.setdefault(key, value) != value and key != "prefetch.records":
                raise ConfigError(f"{key}={given[key]}: a worker needs {value}")
        settings = read_settings(given)
        given = {key: value for key, value in given.items() if key not in _DESERIALIZERS}
        log = WorkerLog(self.name)
        plan = Plan(
            self.handler,
            _decoder(settings),
            self.topics,
            self.concurrency,
            self.on_error,
            self.retry,
            self.needs.backoff is not None,
            self.handler_timeout,
            self.drain_seconds,
        )
        run = Run(plan, log, self.counts, self._figures)
        watch = Watch(run.running, run.inbox, log)

        loop = asyncio.get_running_loop()
        feed_loop = _new_loop() if self.has_thread else loop
        feed = Feed(
            feed_loop,
            given,
            self.topics,
            lambda delayed: prepare(given, self.topics, self.needs, log, delayed),
            run,
            run.inbox,
            log,
            watch.tick,
        )
        self._runs[run] = _Running(run, loop, feed, watch)
        try:
            self._serve_health(log)
            if self.has_thread:
                _serve_in_thread(feed_loop, feed)
                await run.work(feed)
            else:
                serving = asyncio.create_task(feed.serve(), name="sharecore worker feed")
                await run.work(feed)
                await serving
        finally:
            del self._runs[run]
            self._left += [job.task for job in run.running if job.task is not None]
            if not self._runs and self._server is not None:
                server, self._server = self._server, None
                await asyncio.shield(loop.run_in_executor(None, server.close))

    def stop(self) -> None:
        """Stop taking records, let handlers end, and then return from `run`; thread-safe."""
        for run, running in list(self._runs.items()):
            running.loop.call_soon_threadsafe(run.stop)

    def interrupt(self) -> None:
        """Raise in the handler that is running in the event loop; called by a signal handler."""
        for run, running in list(self._runs.items()):
            run.interrupt(asyncio.current_task(running.loop))

    def health(self) -> Health:
        """Return the worker's health and its records; thread-safe."""
        return together(running.health() for running in list(self._runs.values()))

    @property
    def health_address(self) -> tuple[str, int] | None:
        """The address of health and metrics now."""
        return None if self._server is None else self._server.address

    def _serve_health(self, log: WorkerLog) -> None:
        self._figures.watch(self.health)
        if self.health_port is None or self._server is not None:
            return
        self._server = HealthServer(self.health_host, self.health_port, self.health)
        host, port = self._server.address
        log(logging.INFO, "health served", host=host or "*", port=port)

    @property
    def has_left(self) -> bool:
        """Whether coroutines of ended runs still run, ignoring their cancellation."""
        return any(not task.done() for task in self._left)


@dataclass(frozen=True, slots=True)
class _Running:
    """A run and the sources of its health."""

    run: Run
    loop: asyncio.AbstractEventLoop
    feed: Feed
    watch: Watch

    def health(self) -> Health:
        """Return how the run is; safe to call from any thread."""
        silent, lag = self.feed.silent_seconds(), self.watch.lag_seconds()
        if silent > _STANDSTILL_SECONDS:
            reason = f"the consumer's thread has done nothing for {silent:.0f} s"
        elif self.run.stopping:
            reason = "the worker is stopping"
        elif lag > BLOCKED_SECONDS:
            reason = f"the event loop has been blocked for {lag:.1f} s; the log names the line"
        else:
            reason = self.feed.trouble()
        running, queued, retrying = self.run.in_hand()
        return Health(
            live=silent <= _STANDSTILL_SECONDS,
            ready=not reason,
            reason=reason or None,
            last_poll_seconds=self.feed.last_poll_seconds(),
            loop_lag_seconds=round(lag, 3),
            records_in_hand=running + queued + retrying,
            running=running,
            queued=queued,
            retrying=retrying,
        )


def worker(
    topics: str | Iterable[str],
    *,
    concurrency: int = 1,
    on_error: str = "release",
    retry: Retry | Backoff | None = None,
    backoff: Backoff | None = None,
    handler_timeout: float | None = None,
    drain_seconds: float | None = None,
    create_topics: bool = False,
    from_beginning: bool | None = None,
    max_deliveries: int | None = None,
    dead_letters: str | None = None,
    health_port: int | None = None,
    health_host: str = "",
    **settings: object,
) -> Callable[[Handler], Worker]:
    """Turn a function of a record into a worker: a coroutine function, or a plain one for a thread.

    A record is accepted when the function returns. Any exception is a failure of that record alone: it is
    retried in place according to `retry`, and then released or rejected according to `on_error`. `Reject` and
    `Release` end it at once.

    Args:
        topics: one or more topics.
        concurrency: how many records are processed at once.
        on_error: what happens to a record when its retries in one delivery end. release: it is redelivered,
            up to the group's delivery limit; reject: it is not, and without `retry`, it is rejected at its
            first failure.
        retry: when a failed record is retried. `Retry`: by this worker, in place. `Backoff`: the group gets
            this back-off at startup, and a failed record is released at once; the broker redelivers it later.
            On a cluster without such a setting, such as Apache Kafka, the worker retries in place with these
            waits, and logs that.
        backoff: the waits of retries in place, in milliseconds; see `Backoff`.
        handler_timeout: seconds after which a call of the function fails. A coroutine is cancelled; a thread
            cannot be stopped, and keeps its slot.
        drain_seconds: how long handlers may run after `stop`; by default one and a half times the group's
            lock duration, at least 45 s.
        create_topics: create missing topics, with the brokers' defaults.
        from_beginning: True: share partitions new to the group start at their first record; False: according
            to the cluster's default, usually after their last. By default, a new group without
            share.auto.offset.reset starts at the first record.
        max_deliveries: the group's delivery limit.
        dead_letters: the topic for the group's dead-letter records; created if it does not exist.
        health_port: serve /livez, /readyz and /metrics on this port while the worker runs; 0: a free one.
        health_host: the address to serve them on; by default all.
        settings: of the consumer, with `_` for each dot.

    Raises:
        ConfigError: an invalid value, or a function that cannot be called with a record.
    """
    names = _names(topics)
    check_whole("concurrency", concurrency, 1)
    if not isinstance(on_error, str) or on_error not in _OUTCOMES:
        raise ConfigError(f"on_error={on_error!r}: must be one of {', '.join(_OUTCOMES)}")
    if retry is not None and not isinstance(retry, Retry | Backoff):
        raise ConfigError(f"retry={retry!r}: must be a Retry or a Backoff, such as Retry(attempts=3)")
    if backoff is not None and not isinstance(backoff, Backoff):
        raise ConfigError(f"backoff={backoff!r}: must be a Backoff, such as Backoff(1000)")
    if retry is not None and backoff is not None:
        raise ConfigError("retry and backoff are alternatives: pass one of them")
    if handler_timeout is not None:
        check_number("handler_timeout", handler_timeout)
        if handler_timeout <= 0:
            raise ConfigError(f"handler_timeout={handler_timeout}: must be more than 0 s")
    if drain_seconds is not None:
        check_number("drain_seconds", drain_seconds)
        if drain_seconds < 0:
            raise ConfigError(f"drain_seconds={drain_seconds}: must be 0 s or more")
    if health_port is not None:
        check_whole("health_port", health_port, 0, 65535)
    group_backoff = retry if isinstance(retry, Backoff) else None
    if group_backoff is not None and on_error == "reject":
        raise ConfigError(f"retry={retry}: on_error='reject' ends a record at its first failure; drop one")
    if group_backoff is not None and group_backoff.first_ms == 0:
        raise ConfigError(f"retry={retry}: must have first_ms of at least 1")
    in_place = backoff if retry is None else retry
    if isinstance(in_place, Backoff):
        in_place = in_place.as_retry()
    policy = in_place or (NO_RETRY if on_error == "reject" else Retry())
    needs = Needs(create_topics, from_beginning, max_deliveries, dead_letters, group_backoff)
    check_needs(needs)

    def decorate(handler: Handler) -> Worker:
        if isinstance(handler, Worker):
            raise ConfigError(f"{handler.name} is a worker already: decorate the function once")
        check_handler(handler)
        return Worker(
            handler,
            names,
            concurrency,
            _OUTCOMES[on_error],
            policy,
            handler_timeout,
            drain_seconds,
            needs,
            settings,
            health_port=health_port,
            health_host=health_host,
        )

    return decorate


def _names(topics: object) -> tuple[str, ...]:
    if callable(topics):
        raise ConfigError("a worker needs a topic: write `@worker('jobs')` above the function")
    if not isinstance(topics, str | bytes) and isinstance(topics, Iterable):
        names = tuple(topics)
    else:
        names = (topics,)
    if not names:
        raise ConfigError("a worker needs a topic")
    for name in names:
        check_text("topic", name)
    return names


def _decoder(settings: Settings) -> Decode | None:
    """Return a function that deserializes a record.

    It runs with the handler: its failures are the job's, and a slow one does not delay renewals.
    """
    key_of, value_of = settings.key_deserializer, settings.value_deserializer
    if key_of is None and value_of is None:
        return None

    def decode(record: Record) -> Record:
        key, value = record.key, record.value
        if key_of is not None and key is not None:
            key = key_of(key)
        if value_of is not None and value is not None:
            value = value_of(value)
        return record.replace(key, value)

    return decode


def _serve_in_thread(loop: asyncio.AbstractEventLoop, feed: Feed) -> None:
    def serve() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(feed.serve())

    threading.Thread(target=serve, name="sharecore consumer", daemon=True).start()


def _new_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop of the current kind: uvloop's or asyncio's."""
    running = type(asyncio.get_running_loop())
    return running() if running.__module__.startswith("uvloop") else asyncio.new_event_loop()
