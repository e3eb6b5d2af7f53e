"""What is measured: a server that runs, and programs that produce to it and consume from it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benches.queues.load import Load, value
from confluent_kafka import KafkaError, Message, Producer
from tests.harness import java
from tests.harness.broker import ROOT, Broker
from tests.harness.clients import QUIET, configure_group, create_topic

JARS = Path(os.environ.get("QUEUE_LIBS", ROOT / "build/jars/bench-queues"))
HEADER = "deliver-at"
BATCH_BYTES = 16_384
"""Of a record batch: what Java's producer has by default."""
JOIN_SECONDS_MAX = 120
"""What a program may take beside the time of its run."""
_HEAP = (
    "-Xmx1g",
    "-Xlog:disable",
    "-Xlog:all=error:stderr",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
)


@dataclass(frozen=True)
class Run:
    """How a load is consumed.

    Args:
        settings: of the group, where it is a share group of sharecore.
        order: key or none.
        workers: consumers, or threads of one.
        poll: records a poll at most.
        work_us: sleep, in place of work on a record.
        fails: how many deliveries of each record fail.
        seconds: after which it ends where records are left.
        accepts: how many records end it; all of the load's unless given.
        run_max: how many records of a key may be with one worker at a time.
    """

    load: Load
    settings: Mapping[str, object] = field(default_factory=dict)
    order: str = "key"
    workers: int = 4
    poll: int = 500
    work_us: int = 0
    fails: int = 0
    seconds: int = 600
    accepts: int | None = None
    run_max: int = 1

    @property
    def records(self) -> int:
        return self.load.count if self.accepts is None else self.accepts


class Subject(ABC):
    """A server under measurement, with one kind of client."""

    durability: str
    keeps = True
    """Whether what one group has consumed is there for the next."""

    @abstractmethod
    def start(self) -> None:
        """Start the server where it does not run."""

    @abstractmethod
    def kill(self) -> None:
        """End the server where it runs."""

    @property
    @abstractmethod
    def pid(self) -> int:
        """The server's process."""

    @abstractmethod
    def able(self, run: Run) -> bool:
        """Return whether the system has what a run asks for, or its users a recipe."""

    @abstractmethod
    def create(self, load: Load, topic: str) -> None:
        """Make what a load is produced to."""

    @abstractmethod
    def fill(self, load: Load, topic: str, began_ns: int) -> array[int]:
        """Produce a load; return when each record was sent, in nanoseconds since the epoch.

        Args:
            began_ns: what the load's delivery times count from.
        """

    @abstractmethod
    def command(self, run: Run, topic: str, group: str) -> list[str]:
        """Set up a group; return the command line of its consumers, but for what `words` has."""

    def consume(self, run: Run, topic: str, group: str, trail: Path) -> None:
        """Consume a load, and write a trail."""
        command = [*self.command(run, topic, group), *words(run, trail)]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=run.seconds + JOIN_SECONDS_MAX
        )
        if done.returncode or not trail.exists():
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")


def words(run: Run, trail: Path) -> list[str]:
    """Return the words of a command line that all programs read."""
    named = {
        "records": run.records,
        "workers": run.workers,
        "poll": run.poll,
        "work_us": run.work_us,
        "fails": run.fails,
        "seconds": run.seconds,
        "spare": run.load.count + 10_000,
        "order": run.order.upper() if run.order == "key" else "UNORDERED",
        "run_max": run.run_max,
        "delayed": int(bool(run.load.due_s)),
        "trail": trail,
    }
    return [f"{name}={value}" for name, value in named.items()]


class KafkaSubject(Subject):
    """sharecore or Apache Kafka, with a client of Kafka's.

    Args:
        broker: may be another subject's too.
        client: java, confluent or parallel.
        durability: when the broker confirms.
    """

    def __init__(self, broker: Broker, client: str, durability: str) -> None:
        self.broker = broker
        self._client = client
        self.durability = durability

    def start(self) -> None:
        if not self.broker.running():
            self.broker.start()

    def kill(self) -> None:
        self.broker.kill()

    @property
    def pid(self) -> int:
        return self.broker.pid

    def able(self, run: Run) -> bool:
        return self._client != "parallel" or (
            not run.load.due_s and run.run_max == 1 and run.load.topics == 1
        )

    def create(self, load: Load, topic: str) -> None:
        for number in range(load.topics):
            create_topic(self.broker.bootstrap, f"{topic}.{number}", load.partitions)

    def fill(self, load: Load, topic: str, began_ns: int) -> array[int]:
        # a retry would change the order
        settings: dict[str, object] = {"enable.idempotence": True, "linger.ms": 5, "batch.size": BATCH_BYTES}
        if load.batch:
            settings |= {"batch.num.messages": load.batch, "batch.size": 1_000_000, "linger.ms": 200}
        settings["compression.type"] = load.codec
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, **settings, **QUIET})
        failed: list[KafkaError] = []

        def answered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failed.append(error)

        sent = array("q")
        for record in range(load.count):
            if load.rate and record % 10 == 0:
                time.sleep(max(0.0, began_ns / 1e9 + record / load.rate - time.time()))
            key = load.keys[record]
            headers: list[tuple[str, str | bytes | None]] = []
            if load.due_s:
                headers.append((HEADER, b"%d" % (began_ns // 1_000_000 + int(load.due_s[record] * 1000))))
            sent.append(time.time_ns())
            while True:
                try:
                    producer.produce(
                        f"{topic}.{load.topic_of(record)}",
                        value(record),
                        b"key-%d" % key,
                        partition=key % load.partitions,
                        on_delivery=answered,
                        headers=headers,
                    )
                    break
                except BufferError:
                    producer.poll(0.05)
            if record % 100 == 0 or load.rate:
                producer.poll(0)
        assert producer.flush(120) == 0, "records without an answer"
        assert not failed, failed[0]
        return sent

    def command(self, run: Run, topic: str, group: str) -> list[str]:
        if self._client != "parallel":
            settings = {name.replace(".", "_"): value for name, value in run.settings.items()}
            configure_group(self.broker.bootstrap, group, share_auto_offset_reset="earliest", **settings)
        topics = ",".join(f"{topic}.{number}" for number in range(run.load.topics))
        place = [f"bootstrap={self.broker.bootstrap}", f"topics={topics}", f"group={group}"]
        if self._client == "confluent":
            return [sys.executable, "-m", "benches.queues.confluent", *place]
        kind = "parallel" if self._client == "parallel" else "share"
        return java.program(ROOT / "benches/queues/QueueClient.java", kind, *place, libs=JARS, options=_HEAP)
