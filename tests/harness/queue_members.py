"""Stock clients as members of a group: Java's share consumer, Spring's, franz-go's and librdkafka's."""

from __future__ import annotations

import os
import random
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.harness import java
from tests.harness.broker import KAFKA_LIBS, ROOT
from tests.harness.clients import ACCEPT, RELEASE, share_consumer
from tests.harness.queue_ledger import Came, Ledger, Place

GROUP, TOPIC = "ordered", "orders"
OLDEST_LIBS = Path(os.environ.get("OLDEST_CLIENT_LIBS", ROOT / "build/jars/clients-4.2.2"))
SPRING_LIBS = Path(os.environ.get("SPRING_LIBS", ROOT / "build/jars/spring-kafka"))
GO_CLIENT = os.environ.get("GO_CLIENT", str(ROOT / "build/go/client"))
JAVA = {"java 4.2.2": OLDEST_LIBS, "java 4.3.1": KAFKA_LIBS, "java 4.4.0": java.CLIENT_LIBS}
SPRING, GO = "spring-kafka", "franz-go"
RDKAFKA = ("librdkafka 1", "librdkafka 2")
POLL = 10


@contextmanager
def java_member(bootstrap: str, ledger: Ledger, name: str, libs: Path = java.CLIENT_LIBS) -> Iterator[None]:
    """Java's consumer, which accepts what comes; it is killed in the end."""
    command = java.program(java.PROBES / "ShareProbe.java", "trail", bootstrap, GROUP, TOPIC, libs=libs)
    with _member(command, ledger, name):
        yield


@contextmanager
def spring_member(bootstrap: str, ledger: Ledger) -> Iterator[None]:
    """Spring's container for share groups, likewise."""
    source = ROOT / "tests/queues/SpringMember.java"
    with _member(java.program(source, bootstrap, GROUP, TOPIC, libs=SPRING_LIBS), ledger, SPRING):
        yield


@contextmanager
def go_member(bootstrap: str, ledger: Ledger, home: Path) -> Iterator[None]:
    """franz-go's, likewise.

    Args:
        home: for its settings.
    """
    settings = home / "franz-go.properties"
    settings.write_text(f"bootstrap.servers={bootstrap}\n")
    with _member([GO_CLIENT, str(settings), "trail", TOPIC, GROUP, str(POLL)], ledger, GO):
        yield


@contextmanager
def _member(command: list[str], ledger: Ledger, name: str) -> Iterator[None]:
    """Run a program that says of each record when it came; kill it in the end."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("came ") and line.endswith("\n"):
                at_ns, offset, delivery, partition = map(int, line.split()[1:])
                ledger.add(Came(at_ns, name, (partition, offset), delivery))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield
    finally:
        process.kill()
        process.wait()
        reader.join()


@contextmanager
def uneven_member(
    bootstrap: str, ledger: Ledger, name: str, seed: int, pauses_s: Sequence[float] = (0, 0.005, 0.02)
) -> Iterator[None]:
    """librdkafka's consumer, which is slow and gives a third of what comes back at first.

    Args:
        pauses_s: how long it may take over what a poll brought.
    """
    chance = random.Random(seed)
    is_over = threading.Event()

    def work() -> None:
        with share_consumer(bootstrap, GROUP, [TOPIC]) as consumer:
            while not is_over.is_set():
                messages = [each for each in consumer.poll(0.1) if each.error() is None]
                at_ns = time.monotonic_ns()
                released: list[Place] = []
                for message in messages:
                    place = (message.partition() or 0, message.offset() or 0)
                    delivery = message.delivery_count() or 1
                    ledger.add(Came(at_ns, name, place, delivery))
                    gives_back = delivery == 1 and chance.random() < 0.3
                    consumer.acknowledge(message, RELEASE if gives_back else ACCEPT)
                    released += [place] if gives_back else []
                if not messages:
                    continue
                time.sleep(chance.choice(pauses_s))
                asked_ns = time.monotonic_ns()
                try:
                    answer = consumer.commit_sync(10)
                except Exception:  # the broker is gone
                    continue
                good = {each.partition for each, error in answer.items() if error is None}
                for place in released:
                    if place[0] in good:
                        ledger.released(place, asked_ns)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
