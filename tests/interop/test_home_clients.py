"""Stock clients that knew one broker of a home go over to the other when it is killed, and back."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from tests.bucket.home import TOPIC
from tests.harness import java
from tests.harness.broker import ROOT
from tests.harness.clients import ACCEPT, QUIET, configure_group, share_consumer
from tests.harness.java import TOOLS
from tests.interop.test_home import Pair, pair

from sharecore.client.blocking import ShareConsumer
from sharecore.errors import KafkaError

__all__ = ["pair"]

GO_CLIENT = Path(os.environ.get("GO_CLIENT", ROOT / "build/go/client"))
EACH = 50
WAIT_S = 60
SHARE_GROUPS = ("java", "franz-go", "librdkafka", "sharecore")

Seen = set[object]
"""Values, or places of records."""


@contextmanager
def lines_of(command: list[str], seen: Seen, read: Callable[[str], object]) -> Iterator[None]:
    """Run a program that prints a line for each record; kill it in the end."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def follow() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.endswith("\n") and (found := read(line.strip())) is not None:
                seen.add(found)

    reader = threading.Thread(target=follow)
    reader.start()
    try:
        yield
    finally:
        process.kill()
        process.wait()
        reader.join()


def place(line: str) -> object:
    if not line.startswith("came "):
        return None
    _, _, offset, _, partition = line.split()
    return partition, offset


@contextmanager
def in_thread(work: Callable[[threading.Event], None]) -> Iterator[None]:
    is_over = threading.Event()
    thread = threading.Thread(target=work, args=(is_over,))
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def librdkafka_shares(bootstrap: str, seen: Seen) -> Callable[[threading.Event], None]:
    def work(is_over: threading.Event) -> None:
        with share_consumer(bootstrap, "librdkafka", [TOPIC]) as consumer:
            while not is_over.is_set():
                for message in consumer.poll(0.2):
                    if message.error() is None:
                        seen.add(message.value())
                        consumer.acknowledge(message, ACCEPT)

    return work


def librdkafka_reads(bootstrap: str, seen: Seen) -> Callable[[threading.Event], None]:
    def work(is_over: threading.Event) -> None:
        settings = {"bootstrap.servers": bootstrap, "group.id": "plain", "auto.offset.reset": "earliest"}
        consumer = Consumer(settings | QUIET)
        consumer.subscribe([TOPIC])
        while not is_over.is_set():
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                seen.add(message.value())
        consumer.close()

    return work


def sharecore_shares(bootstrap: str, seen: Seen) -> Callable[[threading.Event], None]:
    def work(is_over: threading.Event) -> None:
        with ShareConsumer({"bootstrap.servers": bootstrap, "group.id": "sharecore"}) as consumer:
            consumer.subscribe([TOPIC])
            while not is_over.is_set():
                # an absent broker is not an error of the program
                with suppress(KafkaError):
                    seen.update(record.value for record in consumer.poll(timeout=0.2))

    return work


@contextmanager
def java_producer(bootstrap: str) -> Iterator[Callable[[str], None]]:
    command = java.command(
        f"{TOOLS}.ConsoleProducer", "--bootstrap-server", bootstrap, "--topic", TOPIC,
        "--producer-property", "acks=all",
        # a batch times out only after a takeover had enough time
        "--request-timeout-ms", "10000", "--producer-property", "delivery.timeout.ms=60000",
    )  # fmt: skip
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdin is not None

    def send(value: str) -> None:
        assert process.stdin is not None
        process.stdin.write(value + "\n")
        process.stdin.flush()

    try:
        yield send
    finally:
        process.kill()
        process.wait()


def until_both_are_named(bootstrap: str) -> None:
    """Wait until the leader has read of its standby, which it does every 30 s."""
    end = time.monotonic() + WAIT_S
    while (
        len(AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(timeout=10).brokers) < 2
    ):
        assert time.monotonic() < end
        time.sleep(1)


@pytest.mark.long
@pytest.mark.timeout(500)
def test_clients_that_knew_one_broker_go_over_and_back(pair: Pair, tmp_path: Path) -> None:
    address = pair.first.bootstrap
    until_both_are_named(address)
    for group in SHARE_GROUPS:
        configure_group(address, group, share_auto_offset_reset="earliest")
    console = java.command(
        f"{TOOLS}.consumer.ConsoleConsumer", "--bootstrap-server", address, "--topic", TOPIC,
        "--from-beginning", "--group", "java-plain",
    )  # fmt: skip
    shares = java.program(
        java.PROBES / "ShareProbe.java", "trail", address, "java", TOPIC, libs=java.CLIENT_LIBS
    )
    seen: dict[str, Seen] = {
        name: set() for name in (*SHARE_GROUPS, "librdkafka consumer", "Java's consumer")
    }
    with ExitStack() as clients:
        clients.enter_context(lines_of(shares, seen["java"], place))
        clients.enter_context(lines_of(console, seen["Java's consumer"], str))
        if GO_CLIENT.exists():
            settings = tmp_path / "franz-go.properties"
            settings.write_text(f"bootstrap.servers={address}\n")
            trail = [str(GO_CLIENT), str(settings), "trail", TOPIC, "franz-go", "10"]
            clients.enter_context(lines_of(trail, seen["franz-go"], place))
        else:
            del seen["franz-go"]
        clients.enter_context(in_thread(librdkafka_shares(address, seen["librdkafka"])))
        clients.enter_context(in_thread(librdkafka_reads(address, seen["librdkafka consumer"])))
        clients.enter_context(in_thread(sharecore_shares(address, seen["sharecore"])))
        java_send = clients.enter_context(java_producer(address))
        producer = Producer({"bootstrap.servers": address, "enable.idempotence": True} | QUIET)
        sent = 0

        def go_on(what: str) -> None:
            """Produce with both producers, and wait until all consumers have all."""
            nonlocal sent
            errors: list[object] = []
            for number in range(EACH):
                producer.produce(
                    TOPIC, f"c-{sent}-{number}", on_delivery=lambda error, _: errors.append(error)
                )
                java_send(f"j-{sent}-{number}")
            assert producer.flush(WAIT_S) == 0
            assert errors == [None] * EACH
            sent += 2 * EACH
            end, began = time.monotonic() + WAIT_S, time.monotonic()
            while missing := {name: sent - len(found) for name, found in seen.items() if len(found) < sent}:
                assert time.monotonic() < end, f"{what}: {missing} of {sent} records did not come"
                time.sleep(0.1)
            print(f"{what}: all have all after {time.monotonic() - began:.1f} s")

        go_on("before")
        pair.first.kill()
        go_on("after the first broker was killed")
        pair.first.start()
        assert "sharecore stands by at" in pair.first.read_log()
        until_both_are_named(pair.second.bootstrap)
        pair.second.kill()
        go_on("after the second broker was killed")
