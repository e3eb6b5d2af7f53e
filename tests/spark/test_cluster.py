"""The source on executors of other processes: spark-submit, and a standalone master with two workers."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.broker import free_port
from tests.spark.conftest import Topic
from tests.spark.sinks import Sinks
from tests.spark.submitted import JOB_SECONDS_MAX, SPARK_HOME, Job, environment, kill
from tests.spark.test_faults import settled

pytestmark = pytest.mark.timeout(500)
SENT = 1500
START_SECONDS_MAX = 120


class Standalone:
    """A master and its workers, each the leader of a session of its own."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._port = free_port()
        self._running: list[subprocess.Popen[str]] = []
        self.workers: list[subprocess.Popen[str]] = []

    @property
    def url(self) -> str:
        return f"spark://127.0.0.1:{self._port}"

    def start(self, workers: int) -> None:
        self._daemon("master", "master.Master", "--port", str(self._port))
        self._wait("master", r"Successfully started service 'sparkMaster'")
        for number in range(workers):
            name = f"worker-{number}"
            place = str(self._home / name)
            arguments = ("--cores", "1", "--memory", "700m", "--work-dir", place, self.url)
            self.workers.append(self._daemon(name, "worker.Worker", *arguments))
        for number in range(workers):
            self._wait(f"worker-{number}", r"Successfully registered with master")

    def stop(self) -> None:
        for process in self._running:
            kill(process)

    def _daemon(self, name: str, main: str, *arguments: str) -> subprocess.Popen[str]:
        (self._home / "conf").mkdir(exist_ok=True)
        (self._home / "conf/spark-defaults.conf").write_text("spark.master.rest.enabled false\n")
        (self._home / "conf/log4j2.properties").write_text(
            "rootLogger.level=info\nrootLogger.appenderRef.c.ref=c\n"
            "appender.c.type=Console\nappender.c.name=c\nappender.c.target=SYSTEM_ERR\n"
            "appender.c.layout.type=PatternLayout\nappender.c.layout.pattern=%p %c: %m%n\n"
        )
        with (self._home / f"{name}.log").open("w") as log:
            process = subprocess.Popen(
                [
                    *(str(SPARK_HOME / "bin/spark-class"), f"org.apache.spark.deploy.{main}"),
                    *("--host", "127.0.0.1", "--webui-port", "0", *arguments),
                ],
                env=environment(self._home) | {"SPARK_CONF_DIR": str(self._home / "conf")},
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self._running.append(process)
        return process

    def _wait(self, name: str, line: str) -> None:
        until = time.monotonic() + START_SECONDS_MAX
        log = self._home / f"{name}.log"
        while not re.search(line, log.read_text()):
            assert time.monotonic() < until, log.read_text()[-4000:]
            time.sleep(0.1)


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[Standalone]:
    """Provide a master with two workers, which have a core each."""
    cluster = Standalone(tmp_path)
    try:
        cluster.start(2)
        yield cluster
    finally:
        cluster.stop()


def test_spark_submit(topic: Topic, tmp_path: Path) -> None:
    topic.send(SENT)
    job = Job("local[2]", topic, tmp_path)
    job.succeed()
    assert Sinks(job.home).verdict(SENT, topic.partitions) == (0, 0, 0)
    assert settled(topic)


@pytest.mark.parametrize("killed", [False, True], ids=["both live", "one killed"])
def test_two_workers(standalone: Standalone, topic: Topic, tmp_path: Path, killed: bool) -> None:
    topic.send(SENT)
    job = Job(
        standalone.url,
        topic,
        tmp_path,
        *("--row-seconds", "0.01", "--tasks", "8"),
        executor_memory="512m",
        scheduler_minRegisteredResourcesRatio="1.0",
        scheduler_maxRegisteredResourcesWaitingTime="120s",
    )
    try:
        wait_for_rows(job, {worker.pid for worker in standalone.workers})
        if killed:
            # the worker, its executor and the executor's Python, in the middle of a batch
            kill(standalone.workers[0])
        job.succeed()
    finally:
        kill(job.process)
    assert Sinks(job.home).verdict(SENT, topic.partitions) == (0, 0, 0)
    assert settled(topic)


def wait_for_rows(job: Job, workers: set[int]) -> None:
    """Wait until something of each worker's session has worked on a row."""
    until = time.monotonic() + JOB_SECONDS_MAX
    seen: set[int] = set()
    while not workers <= seen:
        assert time.monotonic() < until, f"{seen} of {workers} work"
        assert job.process.poll() is None, job.read_log()[-4000:]
        for path in (job.home / "workers").glob("*"):
            with contextlib.suppress(ProcessLookupError):
                seen.add(os.getsid(int(path.name)))
        time.sleep(0.02)
