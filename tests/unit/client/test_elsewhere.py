"""Clients in a place that they do not belong to: another event loop, or a forked child."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from sharecore.client import Producer, ShareConsumer

NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}

FORK = """
import os, sys
from sharecore.client import BlockingProducer
from sharecore.client.blocking import ShareConsumer

producer = BlockingProducer({"bootstrap.servers": "127.0.0.1:1"})
consumer = ShareConsumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"})
if os.fork() == 0:
    for call in (
        lambda: producer.send("jobs", b"x"),
        lambda: producer.send_many("jobs", [b"x"]),
        lambda: producer.flush(),
        lambda: consumer.poll(),
    ):
        try:
            call()
        except RuntimeError as error:
            print(error)
    producer.close()
    consumer.close()
    sys.exit()
print("child", os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
os._exit(0)
"""


def test_a_forked_child_is_told_that_it_needs_its_own_clients() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, timeout=60, check=True
    )
    lines = ended.stdout.splitlines()
    advice = "this client was created before a fork: create another one in the child process"
    assert lines == [advice] * 4 + ["child 0"]


async def _producer() -> Producer:
    return Producer(NOWHERE)


async def _consumer() -> ShareConsumer:
    consumer = ShareConsumer(NOWHERE | {"group.id": "g"})
    consumer.subscribe(["jobs"])
    return consumer


@pytest.mark.parametrize(
    ("made", "call"),
    [
        (_producer, lambda producer: producer.send("jobs", b"x")),
        (_producer, lambda producer: producer.send_many("jobs", [b"x"])),
        (_producer, lambda producer: producer.flush(0)),
        (_producer, lambda producer: producer.close(0)),
        (_consumer, lambda consumer: consumer.poll(timeout=0)),
        (_consumer, lambda consumer: consumer.commit_sync(0)),
        (_consumer, lambda consumer: consumer.close(0)),
    ],
)
def test_another_event_loop_is_an_error_that_says_so(
    made: Callable[[], Coroutine[Any, Any, Any]], call: Callable[[Any], Coroutine[Any, Any, Any]]
) -> None:
    with asyncio.Runner() as own, asyncio.Runner() as other:
        client = own.run(made())
        with pytest.raises(RuntimeError, match=r"another event loop: .* within one asyncio\.run"):
            other.run(call(client))
        own.run(client.close(0))
