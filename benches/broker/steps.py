"""What is measured on a running broker; each step returns its figures by name."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from tests.harness import java
from tests.harness.broker import ROOT
from tests.harness.clients import ACCEPT, REJECT, commit, configure_group, create_topic, share_consumer

PARTITIONS = 4
RECORD_BYTES = 100
LATENCY_RATE = 1_000
LATENCY_SECONDS = 15
WARM_UP_SECONDS = 3
_JVM = ("-Xmx512m", "-Xlog:disable", "-Xlog:all=error:stderr")

Figures = dict[str, float]


class Measured(Protocol):
    """A broker, or several that are one cluster."""

    @property
    def bootstrap(self) -> str: ...

    def cpu_seconds(self) -> float:
        """User and system time so far."""


AnyMeasured = TypeVar("AnyMeasured", bound=Measured, covariant=True)


@dataclass(frozen=True)
class Run(Generic[AnyMeasured]):
    """One broker under measurement, and how many records a step moves.

    Args:
        turn: which time a step is done in the round; only the last one counts.
    """

    name: str
    broker: AnyMeasured
    records: int
    round: int = 0
    turn: int = 0

    @property
    def topic(self) -> str:
        return f"bench-{self.round}"

    def group(self, step: str) -> str:
        """Return a new group that starts at the beginning."""
        name = f"{step}-{self.round}-{self.turn}"
        configure_group(self.broker.bootstrap, name, share_auto_offset_reset="earliest")
        return name


def tool(run: Run[Measured], name: str, *arguments: str) -> str:
    main = f"{java.TOOLS}.{name}"
    command = java.command(main, "--bootstrap-server", run.broker.bootstrap, *arguments, options=_JVM)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900)
    if done.returncode:
        raise RuntimeError(f"{name} on {run.name} ended with {done.returncode}:\n{done.stdout[-2000:]}")
    return done.stdout


def cell(table: str, column: str) -> float:
    """Return a figure of the last line of the comma-separated table that Kafka's performance tools print."""
    rows = [[cell.strip() for cell in line.split(",")] for line in table.splitlines() if line.count(",") > 5]
    return float(dict(zip(rows[0], rows[-1], strict=True))[column])


def producer(run: Run[Measured], partitions: int = PARTITIONS) -> Figures:
    create_topic(run.broker.bootstrap, run.topic, partitions=partitions)
    size = ("--num-records", str(run.records), "--record-size", str(RECORD_BYTES), "--throughput", "-1")
    shown = tool(run, "ProducerPerformance", "--topic", run.topic, *size)
    rate = re.search(rf"{run.records} records sent, ([\d.]+) records/sec", shown)
    if rate is None:  # it ends well although records were not sent
        raise RuntimeError(f"not all records were sent to {run.name}:\n{shown[-2000:]}")
    return {"records/s": float(rate[1])}


def consumer(run: Run[Measured]) -> Figures:
    size = ("--num-records", str(run.records), "--timeout", "60000")
    # without the time to join a group: how long the first member is waited for is a setting of the broker
    shown = tool(run, "ConsumerPerformance", "--topic", run.topic, *size)
    return {"records/s": cell(shown, "fetch.nMsg.sec")}


def share_consumer_java(run: Run[Measured]) -> Figures:
    size = ("--num-records", str(run.records), "--timeout", "60000", "--group", run.group("java"))
    return {"records/s": cell(tool(run, "ShareConsumerPerformance", "--topic", run.topic, *size), "nMsg.sec")}


def share_consumer_implicit(run: Run[Measured]) -> Figures:
    group = run.group("implicit")
    settings = {"share.acknowledgement.mode": "implicit"}
    with share_consumer(run.broker.bootstrap, group, [run.topic], **settings) as consumer:
        seen = len(first := consumer.poll(60))
        began = time.monotonic()
        while seen < run.records:
            seen += len(consumer.poll(60))
        elapsed = time.monotonic() - began
    return {"records/s": (seen - len(first)) / elapsed}


def share_consumer_explicit(run: Run[Measured]) -> Figures:
    """Accept and reject in turn, so that no two records are settled alike: what a queue does."""
    topic, wanted = f"{run.topic}-one", run.records // 2
    create_topic(run.broker.bootstrap, topic)
    size = ("--num-records", str(wanted), "--record-size", str(RECORD_BYTES), "--throughput", "-1")
    tool(run, "ProducerPerformance", "--topic", topic, *size)
    cpu_before = run.broker.cpu_seconds()
    with share_consumer(run.broker.bootstrap, run.group("explicit"), [topic]) as consumer:
        seen, began = 0, 0.0
        while seen < wanted:
            messages = consumer.poll(60)
            began = began or time.monotonic()
            for message in messages:
                consumer.acknowledge(message, REJECT if seen % 2 else ACCEPT)
                seen += 1
        commit(consumer)
        elapsed = time.monotonic() - began
    cpu = run.broker.cpu_seconds() - cpu_before
    return {"records/s": wanted / elapsed, "CPU s a million": cpu * 1e6 / wanted}


def latency(run: Run[Measured]) -> Figures:
    """From `produce` to `poll` of the consumer, which acknowledges each record by itself."""
    topic = f"{run.topic}-latency"
    create_topic(run.broker.bootstrap, topic)
    with share_consumer(run.broker.bootstrap, run.group("latency"), [topic]) as consumer:

        def take() -> Iterator[bytes]:
            for message in consumer.poll(1):
                yield message.value() or b""
                consumer.acknowledge(message, ACCEPT)
            consumer.commit_async()

        return paced(run, topic, take)


def paced(run: Run[Measured], topic: str, take: Callable[[], Iterable[bytes]]) -> Figures:
    """How long records take that are produced at a steady rate.

    Args:
        take: waits for some, at most a second.
    """
    seconds: list[float] = []
    command = [sys.executable, "-m", "benches.broker.pacer", run.broker.bootstrap, topic]
    pace = (str(LATENCY_RATE), str(WARM_UP_SECONDS + LATENCY_SECONDS))
    list(take())
    pacer = subprocess.Popen([*command, *pace], cwd=ROOT, env=os.environ)
    expected = LATENCY_RATE * (WARM_UP_SECONDS + LATENCY_SECONDS)
    until = time.monotonic() + 60
    while len(seconds) < expected and time.monotonic() < until:
        seconds.extend((time.monotonic_ns() - int(value or 0)) / 1e9 for value in take())
    pacer.wait()
    measured = seconds[LATENCY_RATE * WARM_UP_SECONDS :]
    if len(seconds) < expected:
        raise RuntimeError(f"{len(seconds)} of {expected} records arrived at {run.name}")
    hundredths = statistics.quantiles(measured, n=100)
    return {"p50 ms": hundredths[49] * 1e3, "p99 ms": hundredths[98] * 1e3}


STEPS: dict[str, tuple[str, Callable[[Run[Measured]], Figures]]] = {
    "producer": ("ProducerPerformance", producer),
    "consumer": ("ConsumerPerformance", consumer),
    "share-java": ("ShareConsumerPerformance", share_consumer_java),
    "share-implicit": ("confluent-kafka ShareConsumer, implicit", share_consumer_implicit),
    "share-explicit": ("confluent-kafka ShareConsumer, accept and reject in turn", share_consumer_explicit),
    "latency": (f"end to end at {LATENCY_RATE:,} records/s, each acknowledged", latency),
}
