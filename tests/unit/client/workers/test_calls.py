"""Calls of a handler: threads that cannot be started, and time limits, in virtual time."""

from __future__ import annotations

import asyncio
import threading
from queue import SimpleQueue
from typing import Any, cast

import pytest
from tests.unit.client.virtual import in_virtual_time

from sharecore.client import Record
from sharecore.client.fetching.lease import AcknowledgeType
from sharecore.client.workers.calls import Calls, HandlerThreads, Plan
from sharecore.client.workers.handlers import Handler
from sharecore.client.workers.jobs import Job, State
from sharecore.client.workers.mailbox import Mailbox
from sharecore.client.workers.retry import Retry


def refuse(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_a_call_that_no_thread_could_be_started_for_never_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, ran = HandlerThreads(2), SimpleQueue[str]()
    may_end = threading.Event()

    def first() -> None:
        may_end.wait()
        ran.put("first")

    threads.submit(first)
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            threads.submit(lambda: ran.put("refused"))
    # its place is free again, while the first thread is busy
    threads.submit(lambda: ran.put("second"))
    assert ran.get(timeout=60) == "second"
    may_end.set()
    assert ran.get(timeout=60) == "first"
    threads.close()
    for thread in threads._threads:
        thread.join(60)
    assert ran.empty()


def calls_of(handler: Handler, ended: list[BaseException | None]) -> tuple[Calls, Job]:
    """Return calls with a limit of 3 s, and a job that runs."""
    plan = Plan(handler, None, ("topic",), 1, AcknowledgeType.RELEASE, Retry(), False, 3.0, None)
    job = Job(Record(value=b"x"), cast("Any", None))
    job.state, job.began = State.RUNNING, asyncio.get_running_loop().time()
    inbox = Mailbox(asyncio.get_running_loop())
    return Calls(plan, inbox, lambda _, error: ended.append(error), lambda _, error: ended.append(error)), job


@in_virtual_time
async def test_a_job_whose_thread_cannot_be_started_fails_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", refuse)
    ended: list[BaseException | None] = []
    calls, job = calls_of(lambda _: None, ended)
    calls.start(job)
    await asyncio.sleep(10)
    assert [str(error) for error in ended] == ["can't start new thread"]


@in_virtual_time
async def test_the_limit_holds_for_what_a_plain_function_returns() -> None:
    ended: list[BaseException | None] = []
    calls, job = calls_of(lambda _: None, ended)
    await asyncio.sleep(2)  # the function itself takes a part of the time
    calls._thread_ended(job, asyncio.sleep(600), None)
    await asyncio.sleep(0.9)
    assert ended == []
    await asyncio.sleep(0.2)
    assert [str(error) for error in ended] == ["handler_timeout=3.0 s has passed"]
