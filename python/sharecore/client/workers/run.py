"""One run of a worker: which job has a slot, which one waits, and what becomes of each."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sharecore._core import Record
from sharecore.client.fetching.lease import AcknowledgeType
from sharecore.client.workers.feed import CLOSE_SECONDS, HURRIED_CLOSE_SECONDS, Feed, Limits
from sharecore.client.workers.figures import Figures
from sharecore.client.workers.handlers import Handler, check_result, finish, is_coroutine_handler
from sharecore.client.workers.jobs import Job, State
from sharecore.client.workers.log import WorkerLog, shown_key
from sharecore.client.workers.mailbox import Mailbox
from sharecore.client.workers.obstacles import Obstacles
from sharecore.client.workers.retry import Retry
from sharecore.client.workers.threads import HandlerThreads
from sharecore.client.workers.verdicts import describe, verdict_of
from sharecore.errors import KafkaError

Decode = Callable[[Record], Record]
_ACCEPT, _RELEASE, _REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
_DRAIN_SECONDS_MIN, _DRAIN_LOCKS = 45.0, 1.5
_CANCEL_SECONDS = 2.0
"""How long cancelled coroutines may take to end."""
_LEFT_WAITING_SECONDS = 60.0
"""A job that got no slot for so long, while no handler ended, is given back."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a worker runs its handler.

    Args:
        decode: what the deserializers make of a record; their failures are the job's.
        on_error: what becomes of a job when its retries in one delivery end: RELEASE or REJECT.
        drain_seconds: None for one and a half locks, 45 s at least.
    """

    handler: Handler
    decode: Decode | None
    topics: tuple[str, ...]
    concurrency: int
    on_error: AcknowledgeType
    retry: Retry
    handler_timeout: float | None
    drain_seconds: float | None


class Interrupted(BaseException):
    """Raised in a handler that blocks the event loop while its worker is to end at once."""


class Run:
    """Gives jobs to handlers, and decides what becomes of them; all of it in the handlers' loop."""

    def __init__(self, plan: Plan, log: WorkerLog, counts: Counter[str], figures: Figures) -> None:
        self._plan, self._log, self._counts, self._figures = plan, log, counts, figures
        self._loop = asyncio.get_running_loop()
        self.inbox = Mailbox(self._loop)
        self.running: dict[Job, None] = {}
        """Jobs in slots; the watch reads it from another thread."""
        self._is_coroutine = is_coroutine_handler(plan.handler)
        self._threads = HandlerThreads(plan.concurrency)
        self._ready: deque[Job] = deque()
        self._settling: set[Job] = set()
        self._obstacles = Obstacles(plan.retry.max_waiting)
        self._feed: Feed | None = None
        self._asked = self._arrived = 0
        self._asking = False
        self._delivery_limit: int | None = None
        self._lock_ms = 0
        self._slot_freed_at = self._loop.time()
        self.stopping = False
        self._runs_last_deliveries = False
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._none_running = asyncio.Event()
        self._feed_ended = asyncio.Event()
        self._checking: asyncio.TimerHandle | None = None

    def in_hand(self) -> tuple[int, int, int]:
        """Return how many jobs run, wait for a slot, and wait for a retry; safe to call from any thread."""
        return len(self.running), len(self._ready), len(self._obstacles.waiting)

    # the course of a run

    async def work(self, feed: Feed) -> None:
        """Work until `stop`, an error that is final, or cancellation; then let handlers end, and leave.

        Raises:
            KafkaError: what the brokers refuse for good.
        """
        self._feed = feed
        patience: float | None = self._plan.drain_seconds
        try:
            self._ask()
            await self._over
        except asyncio.CancelledError:
            patience = 0.0
            raise
        finally:
            await self._end(patience)

    def stop(self) -> None:
        """Take no more records, let handlers end, and return from `work`."""
        if not self._over.done():
            self._over.set_result(None)

    async def _end(self, patience: float | None) -> None:
        if patience is None:
            patience = max(_DRAIN_SECONDS_MIN, _DRAIN_LOCKS * self._lock_ms / 1000)
        hurried = patience == 0
        try:
            await self._drain(patience)
        except asyncio.CancelledError:
            hurried = True
            raise
        finally:
            try:
                await self._cut_off()
            finally:
                self._post("close", HURRIED_CLOSE_SECONDS if hurried else CLOSE_SECONDS)
                await self._feed_ended.wait()
                self._log(logging.INFO, "stopped")

    async def _drain(self, patience: float) -> None:
        """Release what has not begun, and let what runs come to its end."""
        self.stopping = True
        self._post("stop")
        if self._checking is not None:
            self._checking.cancel()
        self._runs_last_deliveries = patience > 0
        for job in [*self._ready, *self._obstacles.waiting]:
            self._forget(job)
            self._give_back(job)
        self._start_ready()
        if not self.running:
            return
        self._log(logging.INFO, "draining", handlers=len(self.running), drain_seconds=round(patience, 1))
        if patience > 0:
            try:
                async with asyncio.timeout(patience):
                    await self._none_running.wait()
            except TimeoutError:
                pass

    def _give_back(self, job: Job) -> None:
        """Release a job that does not run, unless that would archive it: then it is tried once more."""
        if self._runs_last_deliveries and self._is_last_delivery(job):
            job.is_last_attempt = True
            job.state = State.READY
            self._ready.append(job)
        else:
            self._release(job)

    async def _cut_off(self) -> None:
        """Cancel coroutines that still run; release what no thread can be stopped from working on."""
        self._runs_last_deliveries = False
        late = list(self.running)
        tasks = [job.task for job in late if job.task is not None]
        for job in late:
            self._cancel(job, "the worker stops")
        for job in [*self._ready, *(job for job in late if job.task is None)]:
            if job.state is not State.ENDED:
                self._release(job)
        if late:
            self._log(logging.WARNING, "cancelled", handlers=len(late), threads=len(late) - len(tasks))
        if tasks:
            await asyncio.wait(tasks, timeout=_CANCEL_SECONDS)
            for job in late:
                if job.state is State.RUNNING:
                    # it ignores its cancellation
                    self._release(job)
        self._threads.close()

    # what the feed tells

    def started(self, member_id: str, limits: Limits) -> None:
        self._delivery_limit = limits.delivery_limit
        self._obstacles.window = limits.window
        self._log(logging.INFO, "started", topics=self._plan.topics, member=member_id)

    def failed(self, error: Exception) -> None:
        self._log(logging.ERROR, "stopping", error=error)
        if not self._over.done():
            self._over.set_exception(error)

    def ended(self) -> None:
        self._feed_ended.set()

    def arrived(self, jobs: Sequence[Job], lock_ms: int) -> None:
        self._lock_ms = lock_ms
        self._arrived += len(jobs)
        for job in jobs:
            if job.state is not State.READY:
                continue
            self._obstacles.seen(job.record)
            if self.stopping:
                self._give_back(job)
            else:
                self._ready.append(job)
        self._start_ready()

    def lost(self, job: Job, error: KafkaError) -> None:
        """The job's lock is gone: others may have the record by now."""
        if job.state is State.ENDED:
            return
        self._log(logging.WARNING, "lost", record=job.record, error=error)
        self._counts["lost"] += 1
        self._cancel(job, "the lock was lost")
        self._forget(job)
        job.state = State.ENDED
        self._ask_soon()

    def settled(self, job: Job, kind: AcknowledgeType, error: KafkaError | None) -> None:
        """The broker has answered an acknowledgement."""
        self._settling.discard(job)
        told, job.told = job.told, None
        if error is not None:
            self._counts["lost"] += 1
            self._log(logging.WARNING, "lost", record=job.record, outcome=kind.name.lower(), error=error)
        elif told is not None:
            self._counts[told[1].replace(" ", "_")] += 1
            level, event, trace, fields = told
            self._log(level, event, record=job.record, error=job.error, trace=trace, **fields)
        job.error = None

    # slots

    def _post(self, method: str, *arguments: Any) -> None:
        assert self._feed is not None
        self._feed.inbox.post(getattr(self._feed, method), *arguments)

    def _ask_soon(self) -> None:
        if not self._asking:
            self._asking = True
            self._loop.call_soon(self._ask)

    def _ask(self) -> None:
        """Tell the feed how many records may come: as many as there are free slots."""
        self._asking = False
        if self.stopping:
            return
        free = self._plan.concurrency - len(self.running) - len(self._ready)
        if self._obstacles.is_full:
            free = 0
        total = self._arrived + max(0, free)
        if total != self._asked:
            self._asked = total
            self._post("want", total)

    def _start_ready(self) -> None:
        while self._ready and len(self.running) < self._plan.concurrency:
            self._begin(self._ready.popleft())
        self._ask_soon()
        if self._ready:
            self._check_later()

    def _begin(self, job: Job) -> None:
        job.state = State.RUNNING
        job.attempts += 1
        job.began = self._loop.time()
        job.minutes_logged = 0
        self.running[job] = None
        self._none_running.clear()
        if job.attempts > 1:
            self._post("keep_on", job)
        if self._is_coroutine:
            self._start_task(job, self._run_coroutine(job))
            return
        if self._plan.handler_timeout is not None:
            job.timer = self._loop.call_later(self._plan.handler_timeout, self._thread_timed_out, job)
        try:
            self._threads.submit(partial(self._run_in_thread, job))
        except RuntimeError as error:  # no thread can be started
            self._attempt_ended(job, error)

    def _start_task(self, job: Job, work: Coroutine[Any, Any, BaseException | None]) -> None:
        job.task = self._loop.create_task(work, name="sharecore handler")
        job.task.add_done_callback(partial(self._task_ended, job))

    def _task_ended(self, job: Job, task: asyncio.Task[BaseException | None]) -> None:
        # one that was cancelled before its first step ends as cancelled; all others return what was raised
        self._attempt_ended(job, asyncio.CancelledError() if task.cancelled() else task.result())

    async def _run_coroutine(self, job: Job) -> BaseException | None:
        limit = asyncio.timeout(self._plan.handler_timeout)
        try:
            async with limit:
                await finish(self._plan.handler(self._decoded(job.record)))
        except BaseException as error:
            # not even SystemExit is anything but a failure of this job; the loop would end at it
            if not (isinstance(error, TimeoutError) and limit.expired()):
                return error
            late = TimeoutError(f"handler_timeout={self._plan.handler_timeout} s has passed")
            late.__cause__ = error
            return late
        return None

    def _run_in_thread(self, job: Job) -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = self._plan.handler(self._decoded(job.record))
        except BaseException as raised:
            error = raised
        self.inbox.post(self._thread_ended, job, result, error)

    def _thread_ended(self, job: Job, result: Any, error: BaseException | None) -> None:
        job.stop_timer()
        if error is None and hasattr(result, "__await__") and job.state is State.RUNNING:
            self._start_task(job, self._run_returned(result))
            return
        if error is None:
            try:
                check_result(result)
            except TypeError as refused:
                error = refused
        self._attempt_ended(job, error)

    async def _run_returned(self, result: Any) -> BaseException | None:
        try:
            await finish(result)
        except BaseException as error:
            return error
        return None

    def _decoded(self, record: Record) -> Record:
        return record if self._plan.decode is None else self._plan.decode(record)

    def _attempt_ended(self, job: Job, error: BaseException | None) -> None:
        """A slot is free again."""
        del self.running[job]
        self._figures.called(self._loop.time() - job.began, again=job.attempts > 1)
        self._slot_freed_at = self._loop.time()
        job.task = None
        if job.state is State.ENDED:
            if not job.cancelled:
                self._log(logging.WARNING, "ended late", record=job.record, seconds=self._seconds(job))
        elif error is None:
            self._obstacles.succeeded(job)
            took_ms = round((self._loop.time() - job.began) * 1000, 1)
            self._settle(job, _ACCEPT, logging.INFO, "accepted", took_ms=took_ms)
        elif job.cancelled:
            self._release(job)
        else:
            self._failed(job, error)
        self._start_ready()
        if not self.running:
            self._none_running.set()

    def _seconds(self, job: Job) -> float:
        return round(self._loop.time() - job.began, 1)

    def _cancel(self, job: Job, why: str) -> None:
        if job.task is not None and not job.task.done():
            job.cancelled = why
            job.task.cancel()

    def interrupt(self, task: asyncio.Task[Any] | None) -> None:
        """Raise if this is the task of a handler, so that the handler ends; its job is released."""
        for job in list(self.running):
            if task is not None and job.task is task:
                job.cancelled = "interrupted"
                raise Interrupted

    def _thread_timed_out(self, job: Job) -> None:
        """End the job; its thread keeps the slot, since nothing can end a thread."""
        job.timer = None
        limit = self._plan.handler_timeout
        error = TimeoutError(f"handler_timeout={limit} s has passed, and a thread cannot be ended")
        self._failed(job, error, again=False)

    # failures

    def _failed(self, job: Job, error: BaseException, *, again: bool = True) -> None:
        """Try a job again, or end this delivery of it."""
        now = self._loop.time()
        job.error = error
        retry = self._plan.retry
        if job.attempts == 1:
            job.failed_at = now
        self._obstacles.failed(job)
        verdict = verdict_of(error)
        if verdict is None:
            self._figures.failed()
        if verdict is _REJECT:
            self._settle(job, _REJECT, logging.ERROR, "rejected", trace=True)
        elif verdict is _RELEASE:
            self._end_delivery(job, _RELEASE, level=logging.INFO)
        elif (
            not again
            or self.stopping
            or job.is_last_attempt
            or retry.is_over(job.attempts, now - job.failed_at)
        ):
            self._end_delivery(job, self._plan.on_error)
        else:
            wait = retry.wait_seconds(job.attempts)
            said, job.failure = job.failure, describe(error)
            self._counts["failed"] += 1
            self._log(
                logging.WARNING,
                "failed",
                record=job.record,
                error=error,
                trace=job.failure != said,
                attempt=job.attempts,
                retry_in_seconds=round(wait, 1),
            )
            job.state = State.WAITING
            job.timer = self._loop.call_later(wait, self._retry, job)
            self._obstacles.waiting[job] = None
            self._check_later()

    def _end_delivery(self, job: Job, kind: AcknowledgeType, level: int = logging.WARNING) -> None:
        assert job.error is not None
        over = kind is _REJECT or self._is_last_delivery(job)
        fields = {
            "key": shown_key(job.record),
            "deliveries": job.record.delivery_count,
            "attempts": job.attempts,
        }
        if over:
            outcome = "rejected" if kind is _REJECT else "archived at the delivery limit"
            self._settle(job, kind, logging.ERROR, "given up", trace=True, outcome=outcome, **fields)
        else:
            self._settle(job, kind, level, "released", trace=True, attempts=job.attempts)

    def _is_last_delivery(self, job: Job) -> bool:
        limit = self._delivery_limit
        return limit is not None and job.record.delivery_count >= limit

    def _retry(self, job: Job) -> None:
        job.timer = None
        del self._obstacles.waiting[job]
        job.state = State.READY
        self._ready.append(job)
        self._start_ready()

    def _release(self, job: Job) -> None:
        """Give back a job that is not to blame; at the delivery limit that is its end."""
        if self._is_last_delivery(job):
            job.error = job.error or RuntimeError("released by a worker that stops, at the delivery limit")
            self._end_delivery(job, _RELEASE)
        else:
            self._settle(job, _RELEASE, logging.INFO, "released")

    def _settle(
        self, job: Job, kind: AcknowledgeType, level: int, event: str, *, trace: bool = False, **fields: Any
    ) -> None:
        """Acknowledge a job; what is logged and counted waits for the broker's answer."""
        self._forget(job)
        job.state = State.ENDED
        job.told = (level, event, trace, fields)
        self._settling.add(job)
        self._post("settle", job, kind)

    def _forget(self, job: Job) -> None:
        """Take a job out of wherever it waits."""
        job.stop_timer()
        self._obstacles.waiting.pop(job, None)
        if job.state is State.READY and job in self._ready:
            self._ready.remove(job)

    # what holds up others

    def _check_later(self) -> None:
        if self._checking is None:
            self._checking = self._loop.call_later(Obstacles.CHECK_SECONDS, self._check)

    def _check(self) -> None:
        """Try jobs that hold up others once more at once; give back jobs that no slot is free for."""
        self._checking = None
        if self.stopping:
            return
        for job in self._obstacles.find():
            job.is_last_attempt = True
            job.stop_timer()
            self._retry(job)
        if self._ready and self._loop.time() - self._slot_freed_at > _LEFT_WAITING_SECONDS:
            for job in list(self._ready):
                self._release(job)
        self._ask_soon()
        if self._ready or self._obstacles.waiting:
            self._check_later()
