"""One run of a worker: assigns slots to jobs, and decides the outcome of each."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Sequence

from sharecore._core import Record
from sharecore.client.fetching.lease import AcknowledgeType
from sharecore.client.producing.times import DELIVER_AT_HEADER
from sharecore.client.workers.calls import Calls, Plan
from sharecore.client.workers.feed import CLOSE_SECONDS, HURRIED_CLOSE_SECONDS, Feed, Limits
from sharecore.client.workers.figures import Figures
from sharecore.client.workers.group_settings import DELIVER_AT, is_early
from sharecore.client.workers.jobs import Job, State
from sharecore.client.workers.lanes import Lanes
from sharecore.client.workers.log import WorkerLog, shown_key
from sharecore.client.workers.mailbox import Mailbox
from sharecore.client.workers.obstacles import Obstacles
from sharecore.client.workers.retry import NO_RETRY
from sharecore.client.workers.verdicts import describe, verdict_of
from sharecore.errors import KafkaError

_ACCEPT, _RELEASE, _REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
_DRAIN_SECONDS_MIN, _DRAIN_LOCKS = 45.0, 1.5
_CANCEL_SECONDS = 2.0
"""How long cancelled coroutines may take to end."""
_LEFT_WAITING_SECONDS = 60.0
"""A job without a slot for this long, while no handler ended, is released."""


class Interrupted(BaseException):
    """Raised in a handler that blocks the event loop when its worker must end at once."""


class Run:
    """Passes jobs to handlers, and decides their outcomes; all in the handlers' loop."""

    def __init__(self, plan: Plan, log: WorkerLog, counts: Counter[str], figures: Figures) -> None:
        self._plan, self._log, self._counts, self._figures = plan, log, counts, figures
        self._loop = asyncio.get_running_loop()
        self.inbox = Mailbox(self._loop)
        self.running: dict[Job, None] = {}
        """Jobs in slots; the watch reads it from another thread."""
        self._calls = Calls(plan, self.inbox, self._attempt_ended, self._timed_out)
        self._retry_policy = plan.retry
        self._watches_times = False
        self._group_waits = False
        """Whether a released record is redelivered after the group's back-off."""
        self._ready: deque[Job] = deque()
        self._lanes = Lanes()
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
        """Return how many jobs run, wait for a slot, and wait for a retry; thread-safe."""
        queued = len(self._ready) + len(self._lanes.behind)
        return len(self.running), queued, len(self._obstacles.waiting)

    # the course of a run

    async def work(self, feed: Feed) -> None:
        """Work until `stop`, a permanent error, or cancellation; then let handlers end, and leave.

        Raises:
            KafkaError: a permanent error from the brokers.
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
        """Stop taking records, let handlers end, and return from `work`."""
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
        """Release jobs that have not begun, and let running ones end."""
        self.stopping = True
        self._post("stop")
        if self._checking is not None:
            self._checking.cancel()
        self._runs_last_deliveries = patience > 0
        for job in [*self._ready, *self._obstacles.waiting, *self._lanes.behind]:
            if job.state is not State.ENDED:
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
        """Release a job that is not running, unless that would archive it: then it is tried once more."""
        if self._runs_last_deliveries and self._is_last_delivery(job):
            job.is_last_attempt = True
            if job.state is State.BEHIND:
                return
            job.state = State.READY
            self._ready.append(job)
        else:
            self._release(job)

    async def _cut_off(self) -> None:
        """Cancel running coroutines; release the jobs of threads, which cannot be stopped."""
        self._runs_last_deliveries = False
        late = list(self.running)
        tasks = [job.task for job in late if job.task is not None]
        for job in late:
            self._cancel(job, "the worker is stopping")
        for job in [*self._ready, *(job for job in late if job.task is None), *self._lanes.behind]:
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
        self._calls.close()

    # calls by the feed

    def started(self, member_id: str, limits: Limits) -> None:
        self._delivery_limit = limits.delivery_limit
        self._obstacles.window = limits.window
        self._group_waits = limits.waits
        self._lanes.order = limits.order
        self._watches_times = limits.ignores_times
        if self._plan.by_group and limits.waits:
            self._retry_policy = NO_RETRY
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
            if self._watches_times and job.record.headers:
                self._look_at_time(job.record)
            in_front = self._lanes.enter(job)
            if self.stopping:
                self._give_back(job)
            elif in_front:
                self._ready.append(job)
        self._start_ready()

    def _look_at_time(self, record: Record) -> None:
        """Log the first record that came before its delivery time: whoever sent it expects a delay."""
        if is_early(record, time.time() * 1000):
            self._watches_times = False
            advice = f"set {DELIVER_AT}={DELIVER_AT_HEADER} on the group, or do not send with a delay"
            self._log(logging.WARNING, "delivered before its time", record=record, advice=advice)

    def lost(self, job: Job, error: KafkaError) -> None:
        """Handle a job's lost lock: others may have the record by now."""
        if job.state is State.ENDED:
            return
        self._log(logging.WARNING, "lost", record=job.record, error=error)
        self._counts["lost"] += 1
        self._cancel(job, "the lock was lost")
        self._forget(job)
        job.state = State.ENDED
        self._leave_lane(job, goes_on=False)
        self._start_ready()

    def settled(self, job: Job, kind: AcknowledgeType, error: KafkaError | None) -> None:
        """Handle the broker's response to an acknowledgement."""
        self._settling.discard(job)
        log_line, job.log_line = job.log_line, None
        if error is not None:
            self._counts["lost"] += 1
            self._log(logging.WARNING, "lost", record=job.record, outcome=kind.name.lower(), error=error)
            if job.lane is not None:
                # it is redelivered, and later ones must not overtake it
                self._give_back_rest(job)
        elif log_line is not None:
            self._counts[log_line[1].replace(" ", "_")] += 1
            level, event, trace, fields = log_line
            self._log(level, event, record=job.record, error=job.error, trace=trace, **fields)
        job.error = None

    # slots

    def _post(self, method: str, *arguments: object) -> None:
        assert self._feed is not None
        self._feed.inbox.post(getattr(self._feed, method), *arguments)

    def _ask_soon(self) -> None:
        if not self._asking:
            self._asking = True
            self._loop.call_soon(self._ask)

    def _ask(self) -> None:
        """Request as many records as there are free slots."""
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
        self._calls.start(job)

    def _attempt_ended(self, job: Job, error: BaseException | None) -> None:
        """Free the slot of an ended attempt."""
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

    def interrupt(self, task: asyncio.Task[object] | None) -> None:
        """Raise if this is a handler's task, so that the handler ends; its job is released."""
        for job in list(self.running):
            if task is not None and job.task is task:
                job.cancelled = "interrupted"
                raise Interrupted

    def _timed_out(self, job: Job, error: BaseException) -> None:
        """End the job; its thread keeps the slot, since a thread cannot be stopped."""
        self._failed(job, error, again=False)

    # failures

    def _failed(self, job: Job, error: BaseException, *, again: bool = True) -> None:
        """Retry a job, or end this delivery of it."""
        now = self._loop.time()
        job.error = error
        retry = self._retry_policy
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
            may_wait = again and not (self.stopping or job.is_last_attempt or self._group_waits)
            if may_wait and self._plan.on_error is _RELEASE and not self._is_last_delivery(job):
                # it would be redelivered at once, and use up its deliveries within milliseconds
                job.is_leaving = True
                self._wait(job, error, retry.wait_seconds(job.record.delivery_count))
            else:
                self._end_delivery(job, self._plan.on_error)
        else:
            self._wait(job, error, retry.wait_seconds(job.attempts))

    def _wait(self, job: Job, error: BaseException, seconds: float) -> None:
        """Retry a failed job after a while, or release it if it is leaving."""
        said, job.failure = job.failure, describe(error)
        self._counts["failed"] += 1
        self._log(
            logging.WARNING,
            "failed",
            record=job.record,
            error=error,
            trace=job.failure != said,
            attempt=job.attempts,
            **{"release_in_seconds" if job.is_leaving else "retry_in_seconds": round(seconds, 1)},
        )
        job.state = State.WAITING
        job.timer = self._loop.call_later(seconds, self._retry, job)
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
        if job.is_leaving:
            self._end_delivery(job, _RELEASE)
        else:
            self._ready_again(job)
        self._start_ready()

    def _ready_again(self, job: Job) -> None:
        job.state = State.READY
        self._ready.append(job)

    def _release(self, job: Job) -> None:
        """Release a job that is not at fault; at the delivery limit that archives it."""
        if self._is_last_delivery(job):
            job.error = job.error or RuntimeError("released by a stopping worker, at the delivery limit")
            self._end_delivery(job, _RELEASE)
        else:
            self._settle(job, _RELEASE, logging.INFO, "released")

    def _settle(
        self,
        job: Job,
        kind: AcknowledgeType,
        level: int,
        event: str,
        *,
        trace: bool = False,
        **fields: object,
    ) -> None:
        """Acknowledge a job; logging and counting wait for the broker's response."""
        self._forget(job)
        job.state = State.ENDED
        job.log_line = (level, event, trace, fields)
        self._settling.add(job)
        self._post("settle", job, kind)
        self._leave_lane(job, goes_on=kind is not _RELEASE)

    def _leave_lane(self, job: Job, *, goes_on: bool) -> None:
        """Run the next job of an ended job's lane, or release the others: they are redelivered in order."""
        if job.lane is None:
            return
        if not goes_on:
            self._give_back_rest(job)
        following = self._lanes.leave(job)
        if following is not None and following.state is State.BEHIND:
            self._ready_again(following)

    def _give_back_rest(self, job: Job) -> None:
        for other in self._lanes.rest(job):
            # one in its last delivery would be archived untried, so it is processed after all
            if not self._is_last_delivery(other):
                self._release(other)

    def _forget(self, job: Job) -> None:
        """Remove a job from all queues."""
        job.stop_timer()
        self._obstacles.waiting.pop(job, None)
        if job.state is State.READY and job in self._ready:
            self._ready.remove(job)

    # jobs that hold up others

    def _check_later(self) -> None:
        if self._checking is None:
            self._checking = self._loop.call_later(Obstacles.CHECK_SECONDS, self._check)

    def _check(self) -> None:
        """Retry blocking jobs once more at once; release jobs that get no slot."""
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
