"""A worker's consumer in its own event loop: handlers that block theirs do not stop renewals."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from sharecore.client.errors import ConsumerClosed, CorruptRecords, LeaseLost, WakeupError
from sharecore.client.fetching.batch import parts_of, work_on
from sharecore.client.fetching.lease import AcknowledgeType, Lease, Span
from sharecore.client.keeping import KeepingConsumer
from sharecore.client.workers.jobs import Job
from sharecore.client.workers.lanes import Order
from sharecore.client.workers.log import WorkerLog
from sharecore.client.workers.mailbox import Mailbox
from sharecore.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

_TICK_SECONDS = 0.25
CLOSE_SECONDS = 30.0
HURRIED_CLOSE_SECONDS = 2.0


class Limits(Protocol):
    """The group's settings that concern a worker."""

    @property
    def delivery_limit(self) -> int | None:
        """How often a record is delivered before it is archived; None: unknown."""

    @property
    def window(self) -> int:
        """Maximum number of a partition's records in flight."""

    @property
    def waits(self) -> bool:
        """Whether released records wait before they are delivered again."""

    @property
    def order(self) -> Order | None:
        """In which order records are delivered; None: as they come."""

    @property
    def ignores_times(self) -> bool:
        """Whether records' delivery times are ignored."""


class Listener(Protocol):
    """The worker's run, whose methods are called in the handlers' loop."""

    def started(self, member_id: str, limits: Limits) -> None:
        """Note that the consumer has joined the group."""

    def arrived(self, jobs: Sequence[Job], lock_ms: int) -> None:
        """Take acquired records, which are locked for `lock_ms`."""

    def lost(self, job: Job, error: KafkaError) -> None:
        """Note that a job is not ours any more, such as after its lock expired."""

    def settled(self, job: Job, kind: AcknowledgeType, error: KafkaError | None) -> None:
        """Note how an acknowledgement ended; `error` is None if it is durable."""

    def failed(self, error: Exception) -> None:
        """End the run: the consumer cannot go on."""

    def ended(self) -> None:
        """Note that the consumer is closed."""


Prepare = Callable[[Callable[[str], None]], Awaitable[Limits]]
"""Called with a function that receives the reason for a delay."""


class Feed:
    """Fetches as many records as the run requests, renews their locks, and acknowledges them.

    All methods run in the loop of `serve`; the run calls them through `inbox`.

    Args:
        loop: where `serve` will run.
        settings: of the consumer.
        topics: topics to subscribe to.
        prepare: ensures the worker's prerequisites; may take its time.
        run: receives records and results.
        to_run: the way to the run's loop.
        tick: called several times a second.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        settings: Mapping[str, object],
        topics: Sequence[str],
        prepare: Prepare,
        run: Listener,
        to_run: Mailbox,
        log: WorkerLog,
        tick: Callable[[], None],
    ) -> None:
        self._settings, self._topics, self._prepare = settings, topics, prepare
        self._run, self._to_run, self._log, self._tick = run, to_run, log, tick
        self.inbox = Mailbox(loop)
        self._consumer: KeepingConsumer | None = None
        self._wanted = self._given = 0
        """The total numbers of records requested by and passed to the run."""
        self._polling_for = 0
        self._polled_at: float | None = None
        self._ticked_at = time.monotonic()
        self._trouble = "no broker has responded yet"
        self._work = asyncio.Event()
        self._stopping = asyncio.Event()
        self._closing = asyncio.Event()
        self._close_seconds = CLOSE_SECONDS
        self._unasked_ticks = 0
        self._pending: dict[tuple[Lease, int], tuple[Job, AcknowledgeType]] = {}
        self._committing = False

    async def serve(self) -> None:
        """Work until `close`; a failure is passed to the run, which ends its jobs and closes."""
        ticking = asyncio.create_task(self._ticks(), name="sharecore worker ticks")
        try:
            try:
                await self._until(self._stopping, self._work_on())
            except Exception as error:
                self._to_run.post(self._run.failed, error)
            await self._closing.wait()
            if self._consumer is not None:
                await self._consumer.close(self._close_seconds)
        except Exception:
            logger.exception("the consumer could not be closed")
        finally:
            ticking.cancel()
            late = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "the broker did not respond in time")
            for job, kind in self._pending.values():
                self._to_run.post(self._run.settled, job, kind, late)
            self._to_run.post(self._run.ended)

    async def _until(self, stopped: asyncio.Event, work: Awaitable[None]) -> None:
        """Run something until it ends or `stopped` is set."""
        doing = asyncio.ensure_future(work)
        waiting = asyncio.create_task(stopped.wait())
        try:
            await asyncio.wait((doing, waiting), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            doing.cancel()
            await asyncio.wait((doing, waiting))
        if not doing.cancelled():
            doing.result()

    async def _work_on(self) -> None:
        limits = await self._prepare(self._cannot_begin)
        consumer = self._consumer = KeepingConsumer(self._settings)
        consumer.when_answered(self._answered)
        consumer.subscribe(self._topics)
        self._to_run.post(self._run.started, consumer.member_id, limits)
        while True:
            count = self._wanted - self._given
            if count <= 0:
                self._work.clear()
                await self._work.wait()
                continue
            try:
                self._polling_for = count
                batch = await consumer.poll(count)
            except WakeupError:
                continue
            except CorruptRecords as error:
                self._log(logging.ERROR, "corrupt", error=error)
                continue
            finally:
                self._polling_for = 0
                self._polled_at = time.monotonic()
            jobs = []
            for record in batch:
                parts = list(parts_of(record))
                # from here on the next poll need not wait for it
                work_on(parts)
                kept = consumer.keep(parts)
                job = Job(record, kept)
                kept.when_lost = partial(self._lost, job)
                jobs.append(job)
                if kept.lost.is_set():
                    self._lost(job)
            self._given += len(jobs)
            self._to_run.post(self._run.arrived, jobs, consumer.acquisition_lock_timeout_ms or 0)

    # state of the consumer; safe to call from any thread

    def trouble(self) -> str:
        """Return why no records can arrive or be acknowledged now, or an empty string."""
        consumer = self._consumer
        return self._trouble if consumer is None else consumer.trouble()

    def silent_seconds(self) -> float:
        """Return how long ago this last did anything."""
        return time.monotonic() - self._ticked_at

    def last_poll_seconds(self) -> float | None:
        """Return how long ago the last poll ended: 0 during one, None before the first."""
        if self._polling_for:
            return 0.0
        return None if self._polled_at is None else round(time.monotonic() - self._polled_at, 3)

    def _cannot_begin(self, why: str) -> None:
        self._trouble = why

    # calls by the run

    def want(self, total: int) -> None:
        """Fetch until the run has had `total` records; a smaller total than before cancels some."""
        self._wanted = total
        self._work.set()
        if total - self._given < self._polling_for and self._consumer is not None:
            self._consumer.wakeup()

    def keep_on(self, job: Job) -> None:
        """Renew the lock of a job that is retried; `lease.max.ms` is the limit of one attempt."""
        if self._consumer is not None:
            self._consumer.keep_on(job.kept)

    def settle(self, job: Job, kind: AcknowledgeType) -> None:
        """Acknowledge a job's record, and pass the broker's response to the run."""
        consumer = self._consumer
        assert consumer is not None, "a job comes from the consumer"
        consumer.drop(job.kept)
        (part,) = job.kept.parts
        self._pending[part.lease, part.low] = job, kind
        try:
            consumer.settle(part, kind)
        except KafkaError as error:
            self._to_run.post(self._run.settled, *self._pending.pop((part.lease, part.low)), error)
            return
        if not self._committing:
            # one request for all acknowledgements of this turn
            self._committing = True
            asyncio.get_running_loop().call_soon(self._commit)

    def stop(self) -> None:
        """Stop fetching; locks are renewed and records acknowledged until `close`."""
        self._wanted = self._given
        self._stopping.set()

    def close(self, seconds: float) -> None:
        """Send pending acknowledgements, release other records, leave the group, and end `serve`."""
        self._close_seconds = seconds
        self.stop()
        self._closing.set()

    # calls by the consumer

    def _commit(self) -> None:
        self._committing = False
        if self._consumer is not None:
            try:
                self._consumer.commit_async()
            except (ConsumerClosed, RuntimeError):
                return  # closing sends it

    def _answered(self, lease: Lease, spans: Sequence[Span], error: KafkaError | None) -> None:
        for span in spans:
            for position, kind in enumerate(span.types, span.at):
                if kind != AcknowledgeType.RENEW and (found := self._pending.pop((lease, position), None)):
                    self._to_run.post(self._run.settled, *found, error)

    def _lost(self, job: Job) -> None:
        if self._consumer is not None:
            self._consumer.drop(job.kept)
        error = job.kept.error or LeaseLost(ErrorCode.INVALID_RECORD_STATE, "the lock was lost")
        self._to_run.post(self._run.lost, job, error)

    async def _ticks(self) -> None:
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            self._ticked_at = time.monotonic()
            self._tick()
            self._release_unasked()

    def _release_unasked(self) -> None:
        """Release records of a fetch that was in flight when the run wanted no more.

        Only after half a lock: a briefly occupied slot is no reason to use up a delivery.
        """
        consumer = self._consumer
        if consumer is None or self._wanted > self._given:
            self._unasked_ticks = 0
            return
        self._unasked_ticks += 1
        lock_ms = consumer.acquisition_lock_timeout_ms or 0
        if self._stopping.is_set() or self._unasked_ticks * _TICK_SECONDS * 1000 > lock_ms / 2:
            consumer.release_fetched()
