"""Calls of a worker's handler: in a task or in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue

from sharecore._core import Record
from sharecore.client.fetching.lease import AcknowledgeType
from sharecore.client.workers.handlers import Handler, check_result, finish, is_coroutine_handler
from sharecore.client.workers.jobs import Job, State
from sharecore.client.workers.mailbox import Mailbox
from sharecore.client.workers.retry import Retry

Decode = Callable[[Record], Record]


@dataclass(frozen=True, slots=True)
class Plan:
    """How a worker runs its handler.

    Args:
        decode: the deserializers' work on a record; their failures are the job's.
        on_error: the acknowledgement of a job when its retries in one delivery end: RELEASE or REJECT.
        by_group: a failed job is released, and redelivered after the group's back-off; `retry` applies only
            if the group has none.
        drain_seconds: None for one and a half locks, at least 45 s.
    """

    handler: Handler
    decode: Decode | None
    topics: tuple[str, ...]
    concurrency: int
    on_error: AcknowledgeType
    retry: Retry
    by_group: bool
    handler_timeout: float | None
    drain_seconds: float | None


class Calls:
    """Calls the handler with jobs; all methods run in the handlers' loop.

    Args:
        inbox: the way back from threads.
        ended: called with a job and the exception of its call.
        timed_out: called with a job whose thread timed out, and the error.
    """

    def __init__(
        self,
        plan: Plan,
        inbox: Mailbox,
        ended: Callable[[Job, BaseException | None], None],
        timed_out: Callable[[Job, BaseException], None],
    ) -> None:
        self._plan, self._inbox, self._ended, self._timed_out = plan, inbox, ended, timed_out
        self._loop = asyncio.get_running_loop()
        self._is_coroutine = is_coroutine_handler(plan.handler)
        self._threads = HandlerThreads(plan.concurrency)

    def close(self) -> None:
        """Start no more threads."""
        self._threads.close()

    def start(self, job: Job) -> None:
        """Call the handler with a job."""
        if self._is_coroutine:
            self._start_task(job, self._run_coroutine(job))
            return
        if self._plan.handler_timeout is not None:
            job.timer = self._loop.call_later(self._plan.handler_timeout, self._thread_timed_out, job)
        try:
            self._threads.submit(partial(self._run_in_thread, job))
        except RuntimeError as error:  # no thread can be started
            job.stop_timer()
            self._ended(job, error)

    def _start_task(self, job: Job, work: Coroutine[object, None, BaseException | None]) -> None:
        job.task = self._loop.create_task(work, name="sharecore handler")
        job.task.add_done_callback(partial(self._task_ended, job))

    def _task_ended(self, job: Job, task: asyncio.Task[BaseException | None]) -> None:
        # a task cancelled before its first step ends as cancelled; all others return their exception
        self._ended(job, asyncio.CancelledError() if task.cancelled() else task.result())

    async def _run_coroutine(self, job: Job) -> BaseException | None:
        return await self._limited(job, lambda: self._plan.handler(self._decoded(job.record)))

    async def _limited(self, job: Job, call: Callable[[], object]) -> BaseException | None:
        """Call something and await its result until the job's time is over; return its exception."""
        timeout = self._plan.handler_timeout
        limit = asyncio.timeout_at(None if timeout is None else job.began + timeout)
        try:
            async with limit:
                await finish(call())
        except BaseException as error:
            # any exception, even SystemExit, is only a failure of this job; it would end the loop otherwise
            if not (isinstance(error, TimeoutError) and limit.expired()):
                return error
            late = TimeoutError(f"handler_timeout={timeout} s has passed")
            late.__cause__ = error
            return late
        return None

    def _run_in_thread(self, job: Job) -> None:
        result: object = None
        error: BaseException | None = None
        try:
            result = self._plan.handler(self._decoded(job.record))
        except BaseException as raised:
            error = raised
        self._inbox.post(self._thread_ended, job, result, error)

    def _thread_ended(self, job: Job, result: object, error: BaseException | None) -> None:
        job.stop_timer()
        if error is None and hasattr(result, "__await__") and job.state is State.RUNNING:
            self._start_task(job, self._limited(job, lambda: result))
            return
        if error is None:
            try:
                check_result(result)
            except TypeError as refused:
                error = refused
        self._ended(job, error)

    def _decoded(self, record: Record) -> Record:
        return record if self._plan.decode is None else self._plan.decode(record)

    def _thread_timed_out(self, job: Job) -> None:
        job.timer = None
        limit = self._plan.handler_timeout
        self._timed_out(
            job, TimeoutError(f"handler_timeout={limit} s has passed, and a thread cannot be stopped")
        )


_Call = Callable[[], None]


class HandlerThreads:
    """Runs calls in up to `most` threads, each started when it is first needed.

    concurrent.futures' pool is not used because Python waits for its threads at exit: a hanging one would
    keep a worker's process alive forever.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = threading.Semaphore(0)

    def submit(self, call: _Call) -> None:
        """Run a call in a thread; it must not raise.

        Raises:
            RuntimeError: no thread can be started; the call will not run.
        """
        if not self._idle.acquire(blocking=False) and len(self._threads) < self._most:
            name = f"sharecore handler {len(self._threads)}"
            thread = threading.Thread(target=self._serve, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)
        self._calls.put(call)

    def close(self) -> None:
        """End the threads, each after its current call."""
        for _ in self._threads:
            self._calls.put(None)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
            del call  # a job must not stay alive until the next one
            self._idle.release()
