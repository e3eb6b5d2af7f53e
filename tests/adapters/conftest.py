"""What the tests of adapters share: a broker whose locks are short, and workers that are killed.

BROKER=apache runs the same tests on Apache Kafka.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.harness.broker import KAFKA_LIBS, QUICK_GROUPS, Broker
from tests.harness.clients import (
    ACCEPT,
    configure_group,
    create_topic,
    produce,
    share_consumer,
    take,
)

from sharecore.client import ShareConsumer

KIND = os.environ.get("BROKER", "sharecore")
HAS_LETTERS = KIND == "sharecore" or not list(KAFKA_LIBS.glob("kafka-clients-4.[0-3].*.jar"))
"""Whether the broker knows dead letters, which Apache Kafka does from 4.4 on."""
SECONDS_MAX = 180.0
LOCK_MS = 5_000


def _has_done(jobs: float, done: Counter[str]) -> bool:
    return len(done) >= jobs


class Work:
    """Workers of a framework, and the ledger that their jobs write: a line a job that was done.

    Args:
        home: where the application is, and the ledger.
        application: the module that the workers import.
        command: starts a worker.
    """

    def __init__(self, home: Path, broker: Broker, application: str, command: list[str]) -> None:
        self.home, self.broker, self._command = home, broker, command
        self._ledger = home / "ledger"
        self._ledger.touch()
        (home / "jobs.py").write_text(application)
        self.environment = os.environ | {
            "BOOTSTRAP": broker.bootstrap,
            "LEDGER": str(self._ledger),
            "PYTHONPATH": f"{home}:{os.environ.get('PYTHONPATH', '')}",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        if HAS_LETTERS:
            self.environment["LETTERS"] = "dlq.jobs"
        self._workers: list[subprocess.Popen[bytes]] = []

    def start(self, count: int = 1) -> None:
        for _ in range(count):
            with (self.home / "worker.log").open("ab") as log:
                worker = subprocess.Popen(
                    self._command,
                    cwd=self.home,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            self._workers.append(worker)

    def run(self, code: str) -> str:
        """Run a program of the application's, which has to end well; return its output."""
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=self.home,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def kill(self) -> None:
        """End the oldest worker with all its processes at once: kill -9."""
        worker = self._workers.pop(0)
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()

    def stop(self) -> None:
        """End all workers as an operator does."""
        for worker in self._workers:
            worker.terminate()
        for worker in self._workers:
            try:
                worker.wait(60)
            finally:
                if worker.poll() is None:
                    os.killpg(worker.pid, signal.SIGKILL)
        self._workers.clear()

    def kill_all(self) -> None:
        while self._workers:
            self.kill()

    def done(self) -> Counter[str]:
        """How often each job was done."""
        return Counter(self._ledger.read_text().split())

    def finish_through_kills(self, jobs: int) -> Counter[str]:
        """Have jobs 0 to `jobs` done while three workers are killed; return how often each was done."""
        self.start(2)
        for share in (0.2, 0.4, 0.6):
            self.wait(partial(_has_done, jobs * share))
            self.kill()
            self.start()
        done = self.wait(lambda done: len(done) == jobs + 1)
        assert done.pop("redelivered") > 0, "no job was in hand when a worker was killed"
        assert set(done) == set(map(str, range(jobs)))
        return done

    def wait(self, enough: Callable[[Counter[str]], bool]) -> Counter[str]:
        until = time.monotonic() + SECONDS_MAX
        while not enough(done := self.done()):
            assert time.monotonic() < until, f"{len(done)} jobs done\n{self.log()[-5000:]}"
            time.sleep(0.1)
        return done

    def letters(self, count: int) -> list[bytes]:
        """Return the values of so many dead letters; on brokers that know none, none."""
        if not HAS_LETTERS:
            return []

        async def read() -> list[bytes]:
            settings = {"bootstrap.servers": self.broker.bootstrap, "group.id": "letters"}
            found: list[bytes] = []
            async with ShareConsumer(settings) as consumer:
                consumer.subscribe(["dlq.jobs"])
                while len(found) < count:
                    found += [record.value or b"" for record in await consumer.poll(timeout=60)]
            return found

        configure_group(self.broker.bootstrap, "letters", share_auto_offset_reset="earliest")
        return asyncio.run(asyncio.wait_for(read(), 90))

    def log(self) -> str:
        return (self.home / "worker.log").read_text()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    made = Broker(tmp_path / "broker", KIND, QUICK_GROUPS)
    made.start()
    if KIND == "apache":
        _warm(made)
    for group in ("jobs", "taskiq", "celery", "default"):
        configure_group(
            made.bootstrap,
            group,
            share_record_lock_duration_ms=LOCK_MS,
            share_auto_offset_reset="earliest",
        )
    yield made
    made.kill()


def _warm(broker: Broker) -> None:
    """Deliver a first record: Apache Kafka makes internal topics for it, and kombu waits only a second."""
    create_topic(broker.bootstrap, "warm")
    configure_group(broker.bootstrap, "warm", share_auto_offset_reset="earliest")
    produce(broker.bootstrap, "warm", [b"warm"])
    with share_consumer(broker.bootstrap, "warm", ["warm"]) as consumer:
        for record in take(consumer, timeout=60):
            consumer.acknowledge(record, ACCEPT)


@pytest.fixture
def make_work(tmp_path: Path, broker: Broker) -> Iterator[Callable[[str, list[str]], Work]]:
    made: list[Work] = []

    def make(application: str, command: list[str]) -> Work:
        made.append(Work(tmp_path, broker, application, command))
        return made[-1]

    yield make
    for each in made:
        each.kill_all()
