"""Schedules of stock producers, written to their topics once, while schedulers and the broker are killed."""

from __future__ import annotations

import json
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import cast

from confluent_kafka import Consumer, Message, Producer
from tests.harness.broker import SHARECORE
from tests.harness.clients import QUIET, create_topic
from tests.interop.conftest import BrokerMaker

from sharecore.client import BlockingProducer

PATIENCE_S = 90
TARGET = "jobs"


@contextmanager
def scheduler(bootstrap: str) -> Iterator[subprocess.Popen[bytes]]:
    """Provide a scheduler that is killed in the end."""
    process = subprocess.Popen([SHARECORE, "schedules", "run", "--bootstrap-server", bootstrap])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def set_schedule(producer: Producer, key: str, value: str | None, **headers: object) -> None:
    named: list[tuple[str, str | bytes | None]] = [
        (f"schedule-{name}", str(content).encode()) for name, content in headers.items()
    ]
    producer.produce("schedules", value, key, headers=named)


class Ledger:
    """What a consumer that reads committed records has got of each schedule: when it was due."""

    def __init__(self, bootstrap: str) -> None:
        self.dues: defaultdict[bytes, list[int]] = defaultdict(list)
        self.records: defaultdict[bytes, list[Message]] = defaultdict(list)
        self.early: list[tuple[bytes, int]] = []
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": "ledger",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
        self._consumer = Consumer(settings | QUIET)
        self._consumer.subscribe([TARGET])

    def read(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for message in self._consumer.consume(1000, 0.2):
                if message.error() is not None:
                    continue  # the broker is away
                headers = cast("dict[str, bytes]", dict(message.headers() or []))
                key, due_ms = headers["schedule"], int(headers["schedule-due"])
                self.dues[key].append(due_ms)
                self.records[key].append(message)
                if message.timestamp()[1] < due_ms:
                    self.early.append((key, due_ms))

    @property
    def count(self) -> int:
        return sum(map(len, self.dues.values()))

    def read_until(self, done: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE_S
        while not done():
            assert time.monotonic() < until
            self.read(0.3)

    def close(self) -> None:
        self._consumer.close()


def run_program(*arguments: str) -> str:
    ended = subprocess.run([SHARECORE, *arguments], capture_output=True, text=True, timeout=60, check=True)
    return ended.stdout


def test_each_time_of_a_schedule_is_written_once_over_kill_9(new_broker: BrokerMaker) -> None:
    broker = new_broker()
    broker.start()
    create_topic(broker.bootstrap, TARGET, 3)
    create_topic(broker.bootstrap, "schedules", 2)
    producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
    now_ms = round(time.time() * 1000)
    once = {f"once {number}": now_ms + number * 30 for number in range(300)}
    for key, at_ms in once.items():
        set_schedule(producer, key, "x", target=TARGET, at=at_ms)
    set_schedule(producer, "again", "x", target=TARGET, at=now_ms, every=1000)
    set_schedule(producer, "replaced", "x", target=TARGET, at=now_ms + 600_000)
    set_schedule(producer, "replaced", "x", target=TARGET, at=now_ms + 1000)
    set_schedule(producer, "canceled", "x", target=TARGET, at=now_ms + 600_000)
    set_schedule(producer, "canceled", None)
    set_schedule(producer, "no topic", "x", target="no topic", at=now_ms)
    set_schedule(producer, "no time", "x", target=TARGET)
    assert producer.flush(PATIENCE_S) == 0
    at = ("--bootstrap-server", broker.bootstrap)
    with BlockingProducer({"bootstrap.servers": broker.bootstrap}) as ours:
        ours.schedule("of ours", TARGET, {"n": 1}, at=now_ms + 1, record_key="k", headers={"h": "1"})
        ours.schedule("canceled by hand", TARGET, "x", delay=600)
        ours.schedule("canceled by ours", TARGET, "x", every=3600)
        ours.cancel_schedule("canceled by ours")
    run_program("schedules", "add", "by hand", "x", "--to", TARGET, "--delay", "1ms", *at)
    assert (
        run_program("schedules", "cancel", "canceled by hand", *at) == "schedule canceled by hand: canceled\n"
    )
    for gone in ("canceled by hand", "canceled by ours", "never set"):
        failed = subprocess.run([SHARECORE, "schedules", "cancel", gone, *at], capture_output=True, text=True)
        assert (failed.returncode, failed.stdout) == (1, "")
        assert failed.stderr == f"sharecore: no such schedule: {gone}\n"
    ledger = Ledger(broker.bootstrap)
    with scheduler(broker.bootstrap):
        ledger.read_until(lambda: len(ledger.dues) > 20)
    with scheduler(broker.bootstrap):
        seen = ledger.count
        ledger.read_until(lambda: ledger.count > seen)
        broker.kill()
        broker.start()
        wanted = {*(key.encode() for key in once), b"again", b"replaced", b"of ours", b"by hand"}
        ledger.read_until(lambda: wanted <= ledger.dues.keys())
        listed = json.loads(run_program("schedules", "list", "--output", "json", *at))
        ledger.read(2)
    # what the scheduler has taken up is found in its state
    assert run_program("schedules", "cancel", "again", *at) == "schedule again: canceled\n"
    failed = subprocess.run([SHARECORE, "schedules", "cancel", "once 7", *at], capture_output=True, text=True)
    assert (failed.returncode, failed.stderr) == (1, "sharecore: no such schedule: once 7\n")
    ledger.close()
    again = sorted(ledger.dues.pop(b"again"))
    assert [after - before for before, after in pairwise(again)] == [1000] * (len(again) - 1)
    assert again[0] == now_ms
    assert ledger.dues.pop(b"replaced") == [now_ms + 1000]
    assert ledger.dues.pop(b"of ours") == [now_ms + 1]
    assert len(ledger.dues.pop(b"by hand")) == 1
    (record,) = ledger.records[b"of ours"]
    assert (record.key(), record.value(), dict(record.headers() or [])["h"]) == (b"k", b'{"n":1}', b"1")
    assert ledger.dues == {key.encode(): [at_ms] for key, at_ms in once.items()}
    assert ledger.early == []
    # a target that cannot be the name of a topic is no schedule, as is one without a time
    assert {each["key"]: each["everyMs"] for each in listed} == {"again": 1000}
