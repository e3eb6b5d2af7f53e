"""Many share partitions on two nodes, one of which is killed: when all are led again, and what they cost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path

from confluent_kafka import KafkaException, Producer
from tests.harness.broker import Broker
from tests.harness.clients import ACCEPT, configure_group, create_topic, share_consumer
from tests.harness.tier import SMALL, VERSIONS, Nodes, wait_until

SLOTS = 64
_SECONDS_MAX = 300.0


class Members:
    """One member of each group; it accepts all that comes, and notes of which partitions that was."""

    def __init__(self, bootstrap: str, groups: Iterable[str], topic: str) -> None:
        self.seen: dict[str, set[int]] = {group: set() for group in groups}
        self._bootstrap, self._topic = bootstrap, topic
        self._working = threading.Event()
        self._working.set()
        self._threads = [threading.Thread(target=self._work, args=(group,)) for group in self.seen]

    def __enter__(self) -> Members:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._working.clear()
        for thread in self._threads:
            thread.join()

    def forget(self) -> None:
        """Nothing has come yet."""
        for seen in self.seen.values():
            seen.clear()

    def _work(self, group: str) -> None:
        with share_consumer(self._bootstrap, group, [self._topic]) as consumer:
            while self._working.is_set():
                # what a node could not do in time is told as an exception, and comes again
                with suppress(KafkaException):
                    for message in consumer.poll(0.2):
                        if message.error() is None:
                            consumer.acknowledge(message, ACCEPT)
                            self.seen[group].add(message.partition() or 0)
                    consumer.commit_async()


def take_over(home: Path, version: str, groups: int, partitions: int) -> dict[str, float]:
    """Figures by what they say, with their units."""
    cluster = Broker(home / "cluster", "apache", SMALL, libs=VERSIONS[version])
    nodes = Nodes(home, cluster.bootstrap, **{"sharecore.tier.slots": str(SLOTS)})
    first, second = nodes.add(), nodes.add()
    names = [f"group-{number}" for number in range(groups)]
    with ExitStack() as ending:
        for each in (cluster, nodes):
            ending.callback(each.kill)
        cluster.start()
        create_topic(cluster.bootstrap, "t", partitions)
        first.start()
        second.start()
        wait_until(second, f"has {SLOTS // 2} of {SLOTS} slots, gives up 0 and gets 0", seconds_max=120)
        for name in names:
            configure_group(first.bootstrap, name, share_auto_offset_reset="earliest")
        before = [node.resident_bytes() for node in nodes.made]
        produce_to_each(cluster.bootstrap, partitions)
        began = time.monotonic()
        with Members(f"{first.bootstrap},{second.bootstrap}", names, "t") as members:

            def all_came() -> bool:
                return all(len(seen) == partitions for seen in members.seen.values())

            until(all_came)
            joined = time.monotonic() - began
            time.sleep(5)
            grown = sum(node.resident_bytes() for node in nodes.made) - sum(before)
            members.forget()
            cpu_before, began = second.cpu_seconds(), time.monotonic()
            first.kill()
            produce_to_each(cluster.bootstrap, partitions)
            wait_until(second, f"has {SLOTS} of {SLOTS} slots", seconds_max=120)
            assigned = time.monotonic() - began
            until(all_came)
            served = time.monotonic() - began
            cpu = second.cpu_seconds() - cpu_before
    return {
        "share partitions": groups * partitions,
        "slots": SLOTS,
        "memory of the nodes a share partition, bytes": grown / (groups * partitions),
        "first record of each share partition, from nothing, s": joined,
        "from the kill until the other node has been given all slots, s": assigned,
        "from the kill until each share partition has served a new record, s": served,
        "CPU of the node that is left meanwhile, s": cpu,
    }


def produce_to_each(bootstrap: str, partitions: int) -> None:
    """A record to each partition."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "log_level": 0})
    for partition in range(partitions):
        producer.produce("t", b"x" * 100, partition=partition)
        producer.poll(0)
    if producer.flush(60):
        raise RuntimeError("records without an answer after 60 s")


def until(reached: Callable[[], bool]) -> None:
    """Wait."""
    end = time.monotonic() + _SECONDS_MAX
    while not reached():
        if time.monotonic() > end:
            raise RuntimeError(f"not reached within {_SECONDS_MAX:.0f} s")
        time.sleep(0.05)
